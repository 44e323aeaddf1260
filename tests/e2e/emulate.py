#!/usr/bin/python3
"""Runs of the emulator from end to end: output files, figures and failures."""
import glob
import hashlib
import json
import os
import re
import resource
import shutil
import signal
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)),
                                "..", "data"))
from e2e import check, main, skip  # noqa: E402

PENSTOCK = os.environ["PENSTOCK"]


def run(*args, code=0, cwd=None, **more):
    p = subprocess.run([PENSTOCK, *args], cwd=cwd, capture_output=True,
                       text=True, timeout=600, stdin=subprocess.DEVNULL, **more)
    if code is not None:
        check(p.returncode == code, f"{' '.join(args)}: exit {p.returncode}, "
              f"not {code}: {p.stderr.strip()[-300:]}")
    return p


def result(where):
    with open(f"{where}/result.json", encoding="utf-8") as f:
        return json.load(f)


def digest(where):
    """Names and content of all files below a directory."""
    h = hashlib.sha256()
    for path in sorted(glob.glob(f"{where}/**/*", recursive=True)):
        if os.path.isfile(path):
            h.update(os.path.relpath(path, where).encode())
            with open(path, "rb") as f:
                h.update(f.read())
    return h.hexdigest()


SMALL = ["dataset.num_files_train=16", "dataset.num_files_eval=8",
         "train.computation_time=0.001", "evaluation.eval_time=0.001"]


def test_files(tmp):
    """All files of a run, their steps, and the same run as DLIO's command."""
    run("run", "default_small", *SMALL, "output.folder=out",
        "output.trace=true", cwd=tmp)
    for name in ("summary.json", "0_output.json", "0_per_epoch_stats.json",
                 "dlio.log", "result.json", "trace-0.json",
                 ".hydra/config.yaml", ".hydra/overrides.yaml",
                 ".hydra/hydra.yaml"):
        check(os.path.exists(f"{tmp}/out/{name}"), f"{name} is missing")
    with open(f"{tmp}/out/0_output.json", encoding="utf-8") as f:
        out = json.load(f)
    check(len(out["1"]["load"]["block1"]) == 4, "16 files / 4 = 4 steps")
    check(len(out["2"]["compute"]["eval"]) == 8, "8 eval steps of 1")
    with open(f"{tmp}/out/summary.json", encoding="utf-8") as f:
        s = json.load(f)
    check(s["num_accelerators"] == 1 and s["epochs"] == 2, "summary")
    check(len(s["metric"]["train_au_percentage"]) == 2, "AU of each epoch")
    r = result(f"{tmp}/out")
    check(r["schema"] == "penstock.result/1" and not r["partial"], "schema")
    os.symlink(PENSTOCK, f"{tmp}/dlio_benchmark")
    p = subprocess.run(
        [f"{tmp}/dlio_benchmark", "workload=default",
         "++workload.workflow.generate_data=True",
         "++workload.train.computation_time=0.001",
         "++workload.evaluation.eval_time=0.001", "++workload.train.epochs=1",
         "++workload.model.unknown_key=3", f"++hydra.run.dir={tmp}/dlio",
         "++hydra.output_subdir=dlio_config"], cwd=tmp, capture_output=True,
        text=True, timeout=600)
    check(p.returncode == 0, f"dlio_benchmark: {p.stderr[-300:]}")
    check("[METRIC] Number of Simulated Accelerators: 1" in p.stderr, "metric")
    check("unknown_key" in p.stderr, "an unknown key is noted")
    check(os.path.exists(f"{tmp}/dlio/dlio_config/overrides.yaml"), "subdir")


def metrics(where):
    with open(f"{where}/summary.json", encoding="utf-8") as f:
        return json.load(f)["metric"]


def test_sizes(tmp):
    """The keys of DLIO count records as configured, regardless of the resize;
    the bytes read are separate."""
    run("run", "default_small", *SMALL, "dataset.record_length_bytes=65536",
        "dataset.record_length_bytes_resize=1024", "output.folder=out",
        cwd=tmp)
    m = metrics(f"{tmp}/out")
    for split in "train", "eval":
        rate = m[f"{split}_throughput_mean_samples_per_second"]
        io = m[f"{split}_io_mean_MB_per_second"]
        check(abs(io / (rate * 65536 / 2**20) - 1) < 1e-6,
              f"{split}: {io} MB/s of {rate} samples/s")
        got = m[f"{split}_delivered_mean_MB_per_second"]
        check(abs(got / (rate * (1024 + 8) / 2**20) - 1) < 1e-3,
              f"{split}: {got} MB/s delivered, x of 1 KiB and y")
    check(m["train_read_mean_MB_per_second"] >=
          m["train_io_mean_MB_per_second"], "all of it was read")
    with open(f"{tmp}/out/dlio.log", encoding="utf-8") as f:
        log = f.read()
    for line, key in (("Training I/O Throughput", "train_io"),
                      ("Training Bytes Read", "train_read")):
        said = re.findall(rf"\[METRIC\] {line} \(MB/second\): ([0-9.]+)",
                          log)
        want = m[f"{key}_mean_MB_per_second"]
        # both are rounded, to different digits
        check(len(said) == 1 and abs(float(said[0]) - want) < 1.1e-4,
              f"{line}: {said}, not {want}")


def test_checkpoint_names(tmp):
    """Directories are named as in DLIO: at the end of an epoch after the next
    step, within an epoch after the last one."""
    base = ["run", "default_small", *SMALL, "workflow.evaluation=false",
            "dataset.num_files_eval=0", "workflow.checkpoint=true",
            "checkpoint.checkpoint_folder=ck", "model.model_size=5000"]
    p = run(*base, "output.folder=out", cwd=tmp)
    check(sorted(os.listdir(f"{tmp}/ck")) ==
          ["global_epoch1_step5", "global_epoch2_step5"], "4 steps an epoch")
    with open(f"{tmp}/out/dlio.log", encoding="utf-8") as f:
        check("saving checkpoint 1 after total step 4 for epoch 1" in f.read(),
              "4 steps were taken")
    check("DLIO ignores" in p.stderr, f"model_size is noted: {p.stderr}")
    m = metrics(f"{tmp}/out")
    check(m["checkpoint_size_GB"] == m["checkpoint_written_GB"] and
          abs(m["checkpoint_size_GB"] * 2**30 - 5000) < 1, "5000 bytes")
    shutil.rmtree(f"{tmp}/ck")
    run(*base, "checkpoint.steps_between_checkpoints=2", "train.epochs=1",
        "model.optimization_groups=[1000]", cwd=tmp)
    check(sorted(os.listdir(f"{tmp}/ck")) ==
          ["global_epoch1_step2", "global_epoch1_step4"], "every 2 steps")


def opened(trace):
    """Names of data files in the order of opening, from strace."""
    names = []
    with open(trace, encoding="utf-8", errors="replace") as f:
        for line in f:
            if "openat(" in line and ".npy" in line and "NONBLOCK" not in line:
                names.append(line.split('"')[1].rsplit("/", 1)[-1])
    return names


def test_order(tmp):
    """Shuffled orders differ between epochs and repeat for equal seeds."""
    base = ["run", "default_small", "dataset.format=npy", *SMALL,
            "workflow.evaluation=false", "dataset.num_files_eval=0",
            "reader.read_threads=1", "reader.batch_size=1",
            "loader.open_files=1", "loader.store=posix",
            "dataset.num_subfolders_train=0"]
    run(*base, "workflow.train=false", cwd=tmp)
    if os.environ.get("SANITIZE"):
        return  # the order is the same, and strace disturbs the sanitizers
    if not shutil.which("strace"):
        skip("strace is not installed")
        return
    seen = {}
    for name, more in (("a", ["train.seed=7"]), ("b", ["train.seed=7"]),
                       ("c", ["train.seed=8"]),
                       ("same", ["train.seed_change_epoch=false"]),
                       ("off", ["reader.sample_shuffle=off",
                                "reader.file_shuffle=off"])):
        if name != "off":
            more = more + ["reader.sample_shuffle=seed"]
        subprocess.run(["strace", "-f", "-e", "trace=openat", "-o",
                        f"{tmp}/{name}.trace", PENSTOCK, *base, *more,
                        f"output.folder={name}", "workflow.generate_data=false",
                        "loader.index_cache=" + f"{tmp}/index"],
                       cwd=tmp, timeout=600, check=True, capture_output=True)
        order = opened(f"{tmp}/{name}.trace")[-32:]
        seen[name] = order[:16], order[16:]
        for epoch in seen[name]:
            check(len(set(epoch)) == 16, f"{name}: every file once an epoch")
    check(seen["a"] == seen["b"], "equal seeds repeat")
    check(seen["a"] != seen["c"], "other seeds differ")
    check(seen["a"][0] != seen["a"][1], "epochs differ")
    check(seen["same"][0] == seen["same"][1], "seed_change_epoch=false")
    check(seen["off"][0] == sorted(seen["off"][0]), "off is in order")


def test_arithmetic(tmp):
    """A store that takes 20 ms for each of a step's reads, on one thread, and
    10 ms of computation: utilisation is 10 / 20, or less where a busy machine
    makes reads longer; batches made ahead may add a few steps to it. And it is
    what the steps a second say, however long they took."""
    base = ["run", "default_small", "dataset.format=npy",
            "dataset.num_files_train=60", "dataset.num_files_eval=0",
            "workflow.evaluation=false", "reader.batch_size=1",
            "reader.read_threads=1", "train.epochs=1",
            "dataset.num_subfolders_train=0"]
    run(*base, "workflow.train=false", cwd=tmp)
    run(*base, "workflow.generate_data=false",
        "train.computation_time=0.010", "loader.store=fault",
        "loader.store.delay=20ms", "loader.prefetch=2", "output.folder=out",
        cwd=tmp)
    with open(f"{tmp}/out/summary.json", encoding="utf-8") as f:
        metric = json.load(f)["metric"]
    au = metric["train_au_mean_percentage"]
    rate = metric["train_throughput_mean_samples_per_second"]
    check(0 < au < 60, f"utilisation should be 50 % or less: {au}")
    check(abs(au - 100 * 0.010 * rate) < 0.001 * au,
          f"{rate} steps a second of 10 ms are not {au} %")


def test_generation(tmp):
    """A second run completes the data of a killed one, to the same bytes."""
    args = ["run", "default_small", "workflow.train=false",
            "dataset.num_files_train=400", "dataset.num_files_eval=0",
            "dataset.record_length_bytes=262144"]
    run(*args, cwd=f"{tmp}", code=0)
    whole = digest(f"{tmp}/data")
    shutil.rmtree(f"{tmp}/data")
    p = subprocess.Popen([PENSTOCK, *args], cwd=tmp,
                         stdout=subprocess.DEVNULL)
    while p.poll() is None:
        if len(glob.glob(f"{tmp}/data/**/*.npz", recursive=True)) > 40:
            p.kill()
            break
    p.wait()
    done = glob.glob(f"{tmp}/data/**/*.npz", recursive=True)
    stamps = {f: os.stat(f).st_mtime_ns for f in done}
    run(*args, cwd=tmp)
    check(digest(f"{tmp}/data") == whole, "the same bytes after a kill")
    check(all(os.stat(f).st_mtime_ns == t for f, t in stamps.items()),
          "what was complete is not made again")


def test_full_disk(tmp):
    """Full disk: one line, and no file with a final name."""
    def limit():
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, 1 << 20))
    p = run("run", "default_small", "workflow.train=false",
            "dataset.num_files_train=4", "dataset.num_files_eval=0",
            "dataset.record_length_bytes=4194304", cwd=tmp, code=4,
            preexec_fn=limit)
    check(p.stderr.count("\n") == 1, f"one line: {p.stderr}")
    left = [f for f in glob.glob(f"{tmp}/data/**/*", recursive=True)
            if os.path.isfile(f)]
    check(not left, f"nothing is left: {left}")
    if os.environ.get("SANITIZE"):
        return
    os.mkdir(f"{tmp}/disk")
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=3m", "none",
                       f"{tmp}/disk"], capture_output=True).returncode:
        skip("a full disk needs root and tmpfs")
        return
    try:
        p = run("run", "llama_small", "checkpoint.checkpoint_folder=disk/c",
                "checkpoint.time_between_checkpoints=0", cwd=tmp, code=4)
        check("space" in p.stderr.lower(), p.stderr)
        left = [f for f in glob.glob(f"{tmp}/disk/**/*", recursive=True)
                if os.path.isfile(f)]
        check(not left, f"nothing is left: {left}")
        p = run("run", "unet3d_small", "dataset.data_folder=disk/d", cwd=tmp,
                code=4)
        check("free" in p.stderr, f"space is looked at first: {p.stderr}")
    finally:
        subprocess.run(["umount", f"{tmp}/disk"], check=True)


def test_errors(tmp):
    """One line that says what, where and what to do."""
    bad = [
        (["nosuch"], "nosuch"),
        (["default_small", "dataset.num_file_train=3"], "num_files_train"),
        (["default_small", "dataset.num_files_train=many"], "num_files_train"),
        (["default_small", "batch_size=3"], "reader.batch_size"),
        (["default_small", "dataset.format=npx"], "npx"),
        (["default_small", "workflow.generate_data=false"], "generate_data"),
        (["default_small", "loader.stor=posix"], "stor"),
        (["default_small", *SMALL, "reader.batch_size=500"], "samples"),
        (["default_small", *SMALL, "train.total_training_steps=99"],
         "Only have enough data for 4 steps but 99 wanted"),
        (["missing.yaml"], "missing.yaml"),
    ]
    for args, word in bad:
        p = run("run", *args, cwd=tmp, code=None)
        check(p.returncode in (2, 4), f"{args}: exit {p.returncode}")
        lines = [x for x in p.stderr.splitlines() if "note:" not in x]
        check(len(lines) == 1 and word in lines[0], f"{args}: {p.stderr}")


def test_interrupt(tmp):
    """Ctrl-C: a valid result that is marked as partial."""
    p = subprocess.Popen([PENSTOCK, "run", "default_small", *SMALL,
                          "train.computation_time=0.2", "output.folder=out",
                          "workflow.evaluation=false", "train.epochs=50"],
                         cwd=tmp, stdout=subprocess.PIPE,
                         stderr=subprocess.PIPE, text=True)
    log = f"{tmp}/out/dlio.log"
    while p.poll() is None:
        if os.path.exists(log):
            with open(log, encoding="utf-8") as f:
                if "Starting epoch 2" in f.read():
                    break
    p.send_signal(signal.SIGINT)
    p.communicate(timeout=600)
    check(p.returncode == 130, f"interrupted: exit {p.returncode}")
    check(result(f"{tmp}/out")["partial"], "marked as partial")


def test_accelerators(tmp):
    """Four accelerators in one process: each sample goes to one of them."""
    run("run", "default_small", *SMALL, "accelerators=4",
        "reader.batch_size=1", "output.folder=out", cwd=tmp)
    for a in range(4):
        with open(f"{tmp}/out/{a}_output.json", encoding="utf-8") as f:
            check(len(json.load(f)["1"]["load"]["block1"]) == 4,
                  "16 samples / 4")
    p = run("capacity", "default_small", *SMALL, "--max", "4", "--repeats",
            "1", "--seconds", "0.01", "--json", cwd=tmp)
    curve = json.loads(p.stdout)
    check([c["accelerators"] for c in curve["curve"]][:1] == [1], p.stdout)


def test_plan(tmp):
    """--dry-run prints the plan and does nothing."""
    p = run("run", "unet3d_h100", "--dry-run", "--json", cwd=tmp)
    plan = json.loads(p.stdout)
    check(plan["files_train"] == 168 and plan["steps_per_epoch"] == 24, plan)
    check(24.5e9 < plan["data_bytes"] < 25.5e9, "sizes from the seed")
    check(not os.listdir(tmp), "nothing is left behind")
    run("run", "llama3_8b", "--dry-run", cwd=tmp)
    run("config", "unet3d_h100", cwd=tmp)
    run("workloads", cwd=tmp)


main(globals())
