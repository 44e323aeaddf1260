#!/usr/bin/python3
"""Why an accelerator waits: situations that are made to happen, and the cause
that `load`, `run`, `capacity` and the page name for each. docs/method.md has
the table; tests/test_verdict.c has the same on recorded figures.

Delays are so long that other load on the machine cannot change the answer.
Where it can, because the CPU is what the situation is about, "cpu" is right as
well, when the figures prove that threads were kept from one."""
import json
import os
import shutil
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)),
                                "..", "data"))
from e2e import check, main, skip  # noqa: E402

PENSTOCK = os.environ["PENSTOCK"]
STORAGE = {"storage_latency", "storage_rate", "storage", "open"}
CPUS = len(os.sched_getaffinity(0))


def run(*args, before=()):
    p = subprocess.run([*before, PENSTOCK, *args], capture_output=True,
                       text=True, timeout=600)
    check(p.returncode == 0, f"{args}: exit {p.returncode}: {p.stderr}")
    return p.stdout


def load(*args):
    doc = json.loads(run("load", *args, "--json", "--quiet"))
    doc["verdict"] = "{what}: {evidence}. {advice}".format(**doc["why"])
    return doc


def train(*args, before=()):
    """A workload that computes next to nothing: it always waits."""
    out = run("run", "unet3d_small", "dataset.format=npy",
              "dataset.num_files_train=16", "reader.batch_size=2",
              "dataset.record_length_bytes=200000",
              "dataset.record_length_bytes_stdev=0", "train.epochs=1",
              "train.computation_time=0.001", "workflow.checkpoint=false",
              "output.folder=out", "--json", "--quiet", *args,
              before=before)
    return json.loads(out)


def starved(doc):
    """Threads had less than half of the CPU time they wanted."""
    f = doc["why"]["figures"]
    wanted = f["run_s"] + f["queue_s"]
    return f["run_s"] < 0.5 * min(wanted, f["cpu_room_s"]) or \
        f["consumer_queue_s"] > 0.5 * (f["seconds"] - f.get("compute_s", 0))


def causes_of(doc, *causes):
    """On a machine that is busy enough the CPU is what all wait for; and before
    that, reads that waited for one do not tell latency from rate."""
    f = doc["why"]["figures"]
    queued = f["queue_s"] / (f["threads_s"] - f["idle_s"])
    if queued > 0.1 and STORAGE & set(causes):
        causes += ("storage",)
    return causes + ("cpu",) * (queued > 0.4)


def right(doc, what, *causes, cpu=False):
    """One of the causes; two statements never exclude each other."""
    cause, said = doc["why"]["cause"], doc["verdict"]
    ok = cause in causes_of(doc, *causes) or \
        (cpu and cause == "cpu" and starved(doc))
    check(ok, f"{what}: {cause}: {said} {doc['why']['figures']}")
    check(doc["why"]["evidence"], f"{what}: no evidence")
    if cause in STORAGE:
        check("page cache" not in said, f"{what}: {said}")
    f = doc["why"]["figures"]
    store = doc.get("store") or doc["loader"]["store"]
    if cause in STORAGE - {"open"} and store != "fault":
        check(f["device_bytes"] > 0.1 * f["read_bytes"], f"{what}: {said}")
    print(f"{what}: {cause}: {doc['why']['evidence']}", flush=True)


def files(n=40):
    run("gen", "npy", f"files={n}", "shape=160x160", "--force")
    return "npy", "format.samples=file"


def test_storage(tmp):
    """By latency and by rate, alone and in a workload, and on the page."""
    os.chdir(tmp)
    data = files()
    slow = ("store=fault", "threads=8", "batch_size=4")
    doc = load(*data, *slow, "store.delay=200ms")
    right(doc, "latency", "storage_latency")
    f = doc["why"]["figures"]
    check(f["threads_s"] < 8.1 * f["seconds"], f"8 threads: {f}")
    check(doc["stage_ns"]["read"] > 0, "latency: no time was spent reading")
    right(load(*data, *slow, "store.rate=1MB"), "rate", "storage_rate")
    right(load(*data, *slow[:2], "prefetch=1", "batch_size=1",
               "store.delay=200ms"), "prefetch", "prefetch")
    right(load(*data, "store=fault", "threads=16", "batch_size=1",
               "memory=500kB", "store.delay=200ms"), "memory", "memory")
    doc = train("loader.store=fault", "loader.store.delay=200ms")
    right(doc, "latency, a workload", "storage_latency")
    run("report", "out", "-o", "p.html")
    with open("p.html", encoding="utf-8") as f:
        check(doc["why"]["what"] in f.read(), "the page does not say it")


def test_pieces(tmp):
    """Late reads of samples that come in pieces, stored and deflated."""
    os.chdir(tmp)
    for fmt, more in (("npz", []), ("npz", ["dataset.compression=zip"])):
        doc = train(f"dataset.format={fmt}", *more,
                    f"dataset.data_folder=data-{len(more)}",
                    "loader.store=fault", "loader.store.delay=200ms")
        s = doc["stages"]
        check(s["read_ns"] > s["unpack_ns"] + s["emit_ns"], f"{more}: {s}")
        right(doc, f"pieces {more}", *STORAGE)


def test_work(tmp):
    """Decoding, with as many threads as CPUs and with too few; copying."""
    os.chdir(tmp)
    run("gen", "jpg", "format=jpeg", "files=24", "shape=768x768x3",
        "dtype=uint8")
    doc = load("jpg", "batch_size=4", "epochs=3", f"threads={CPUS}")
    right(doc, "decode", "decode", cpu=True)
    check(doc["stage_ns"]["decode"] > 0 and not doc["stage_ns"]["emit"],
          f"decoding is a stage: {doc['stage_ns']}")
    doc = load("jpg", "batch_size=4", "epochs=3", "threads=1")
    f = doc["why"]["figures"]
    crowded = CPUS < 2 or f["queue_s"] > 0.1 * (f["run_s"] + f["queue_s"])
    right(doc, "threads", "threads", *["decode"] * crowded, cpu=True)
    doc = train("reader.preprocess_time=0.2", "reader.read_threads=2")
    right(doc, "preprocessing", "preprocess")
    check(doc["stages"]["preprocess_ns"] > 0, doc["stages"])


def test_cache(tmp):
    """Out of the page cache storage is not waited for; out of a device the
    page cache is not named."""
    os.chdir(tmp)
    data = files(200)
    args = ("store=posix", "batch_size=4", f"threads={CPUS}")
    load(*data, *args)
    doc = load(*data, *args, "epochs=20")
    right(doc, "warm", "copy", "open", "unknown", "consumer", cpu=True)
    doc = load(*data, *args, "--drop-cache")
    f = doc["why"]["figures"]
    if f["device_bytes"] > 0.5 * f["read_bytes"]:
        right(doc, "cold", *STORAGE, "unknown", cpu=True)
    else:
        print("cold: the file system kept the data", flush=True)


def test_consumer(tmp):
    """Accelerators that compute for long, and a machine that keeps up."""
    os.chdir(tmp)
    doc = train("train.computation_time=0.4", "metric.au=0.5")
    right(doc, "slow consumer", "none", "startup", cpu=True)


def test_cpu(tmp):
    """Busy loops on the CPU the job has to use; its data is in the page
    cache, and must not be blamed."""
    os.chdir(tmp)
    cpu = min(os.sched_getaffinity(0))
    large = ("dataset.record_length_bytes=2000000", "train.epochs=2")
    train(*large)  # makes the data
    loops = [subprocess.Popen([sys.executable, "-c", "while True: pass"],
                              preexec_fn=lambda: os.sched_setaffinity(0, [cpu]))
             for _ in range(16)]
    try:
        doc = train(*large, before=["taskset", "-c", str(cpu)])
    finally:
        for p in loops:
            p.kill()
            p.wait()
    right(doc, "starved CPU", "cpu")
    check(starved(doc), f"starved CPU: {doc['why']['figures']}")


def test_rank(tmp):
    """One of two ranks has slow storage."""
    if not shutil.which("mpirun"):
        skip("mpirun is not installed")
        return
    os.chdir(tmp)
    args = ["dataset.num_files_train=32", "dataset.format=npy",
            "reader.batch_size=2", "dataset.record_length_bytes=200000",
            "dataset.record_length_bytes_stdev=0", "train.epochs=1",
            "train.computation_time=0.001", "workflow.checkpoint=false",
            "--quiet", "output.folder=out", "loader.store=fault"]
    run("run", "unet3d_small", *args)
    one = ["-n", "1", PENSTOCK, "run", "unet3d_small", *args]
    p = subprocess.run(["mpirun", "--allow-run-as-root", "--oversubscribe",
                        *one, ":", *one, "loader.store.delay=300ms"],
                       capture_output=True, text=True, timeout=600)
    check(p.returncode == 0, f"two ranks: {p.stderr}")
    with open("out/result.json", encoding="utf-8") as f:
        doc = json.load(f)
    right(doc, "one slow rank", "rank")
    check(doc["why"].get("rank") == 1 and doc["why"].get("rank_cause") in
          {"storage_latency", "storage", "cpu"}, f"one slow rank: {doc['why']}")


def test_capacity(tmp):
    """Says what keeps the answer from being larger."""
    os.chdir(tmp)
    out = run("capacity", "unet3d_small", "dataset.num_files_train=16",
              "reader.batch_size=2", "dataset.record_length_bytes=200000",
              "loader.store=fault", "loader.store.delay=200ms", "--repeats",
              "1", "--seconds", "0.5", "--json")
    doc = json.loads(out)
    check(doc["accelerators"] == 0, out)
    check(doc["why"]["cause"] in causes_of(doc, "storage_latency"), out)
    with open("c.json", "w", encoding="utf-8") as f:
        f.write(out)
    run("report", "c.json", "-o", "p.html")
    with open("p.html", encoding="utf-8") as f:
        page = f.read()
    check(doc["why"]["what"] in page, "the page does not say it")
    check("page cache" not in page, "the page contradicts itself")


main(globals())
