"""The emulator: `penstock run` compared with DLIO, with the same arguments and
files, and with fio for writes. DLIO takes part if PEN_DLIO is its path."""
import json
import os
import shutil
import statistics
import time

import numpy as np

from tools import Missing, fio_job, rate

DLIO = os.environ.get("PEN_DLIO")
NOTHING = ("workflow.generate_data=false", "workflow.train=false",
           "workflow.evaluation=false", "train.epochs=1")
# 2 GiB for one process: 157 M parameters in half precision, and three times in
# single precision for the optimizer
LLAMA = ("model.name=llama", "model.type=transformer", "model.num_layers=6",
         "model.model_datatype=fp16", "model.optimizer_datatype=fp32",
         "model.parallelism.tensor=1", "model.parallelism.pipeline=1",
         "model.parallelism.zero_stage=1", "model.transformer.vocab_size=32000",
         "model.transformer.hidden_size=1024",
         "model.transformer.ffn_hidden_size=4096",
         "model.transformer.num_attention_heads=16",
         "model.transformer.num_kv_heads=4",
         "workflow.checkpoint=true", "checkpoint.fsync=true",
         "checkpoint.time_between_checkpoints=0",
         "checkpoint.num_checkpoints_write=1",
         "checkpoint.num_checkpoints_read=1")


def smallest(folder):
    """Settings of a run that only generates one tiny file, unless it exists."""
    return (f"dataset.data_folder={folder}/one", "dataset.format=npy",
            "dataset.num_files_train=1", "dataset.num_files_eval=0",
            "dataset.num_subfolders_train=0", "dataset.record_length_bytes=64",
            *NOTHING, "workflow.generate_data=true")


def penstock(tools):
    return lambda *settings: [tools.penstock_path, "run", "default", *settings]


def dlio(tools):
    return lambda *settings: [DLIO, "workload=default",
                              *("++workload." + s for s in settings),
                              f"hydra.run.dir={tools.scratch.name}"]


def output(tools, name):
    with open(os.path.join(tools.scratch.name, name),
              encoding="utf-8") as f:
        return json.load(f)


def rates_penstock(tools, work):
    return [(e["samples"], e["seconds"])
            for e in output(tools, "result.json")["epochs"]]


def rates_dlio(tools, work):
    """From its step times, which exclude the time between epochs."""
    epochs = output(tools, "0_output.json")
    out = []
    for k in range(1, work.more["epochs"] + 1):
        steps = [s for b in epochs[str(k)]["proc"].values() for s in b]
        out.append((len(steps) * work.batch, sum(steps)))
    return out


def settings_of(tools, work, path, *more):
    """Settings of a training run on a data set of class Dlio."""
    d = work.data
    out = [f"dataset.data_folder={path}", f"dataset.format={d.kind}",
           f"dataset.num_files_train={d.n}", "dataset.num_files_eval=0",
           f"dataset.record_length_bytes={d.size}",
           "dataset.num_subfolders_train=0", "dataset.num_subfolders_eval=0",
           "workflow.generate_data=false", "workflow.train=true",
           "workflow.evaluation=false", "train.computation_time=0",
           f"reader.batch_size={work.batch}",
           f"output.folder={tools.scratch.name}", *more]
    if work.more.get("resize"):
        out.append(f"dataset.record_length_bytes_resize={work.more['resize']}")
    return out


def train(tools, work, path):
    """samples/s: the median of the epochs after the first. CPU: that of the run
    minus that of the smallest run, with one reading thread."""
    found, empty = {}, {}

    def once(program, rates, settings):
        r = tools.limits("run", *program(*settings))
        epochs = rates(tools, work)
        if [n for n, _ in epochs] != [work.data.n] * work.more["epochs"]:
            raise Missing(f"wrong (samples, seconds): {epochs}")
        return r["cpu_s"], [n / s for n, s in epochs[1:]]

    def measure(name, program, rates, threads):
        settings = settings_of(tools, work, path,
                               f"train.epochs={work.more['epochs']}",
                               f"reader.read_threads={threads}")
        empty.setdefault(name, []).append(tools.limits("run", *program(
            *settings, *smallest(tools.scratch.name)))["cpu_s"])
        end = time.monotonic() + tools.seconds
        runs = [once(program, rates, settings)]
        while time.monotonic() < end:
            runs.append(once(program, rates, settings))
        cpu = statistics.median(cpu for cpu, _ in runs) - statistics.median(
            empty[name])
        found[name] = cpu * 1e3 / work.data.n / work.more["epochs"]
        return statistics.median(r for _, rates in runs for r in rates)

    def ours(threads):
        return lambda: measure("penstock", penstock(tools), rates_penstock,
                               threads)

    def theirs(threads):
        return lambda: measure("dlio", dlio(tools), rates_dlio, threads)

    t = tools.threads
    out = {"penstock": ours(t), "penstock_1t": ours(0),
           "penstock_cpu": (lambda: found["penstock"], "ms")}
    if DLIO:
        out.update({f"dlio_w{t}": theirs(t), "dlio_w0": theirs(0),
                    "dlio_cpu": (lambda: found["dlio"], "ms")})
    listed = tools.write_list(work.data.ranges(path))
    out["limit"] = lambda: rate(tools.limits(
        "decode", work.more["how"], listed, work.more.get("resize") or
        work.data.row, work.batch, t, tools.seconds))
    return "samples/s", out, lambda: tools.limits("warm", listed)


def start(tools, work, path):
    """The smallest run, with an existing file."""
    found = {}

    def measure(name, program):
        end = time.monotonic() + tools.seconds
        runs = []
        while not runs or time.monotonic() < end:
            runs.append(tools.limits("run", *program(
                f"output.folder={path}", *smallest(path))))
        found[name] = statistics.median(
            r["peak_memory_bytes"] for r in runs) / 1e6
        return statistics.median(r["seconds"] for r in runs) * 1e3

    out = {}
    for name, program in (("penstock", penstock(tools)), ("dlio", dlio(tools))):
        if name == "penstock" or DLIO:
            out[name] = lambda n=name, p=program: measure(n, p)
            out[name + "_memory"] = (lambda n=name: found[n], "MB")
    out["true"] = lambda: measure("true", lambda *_: ["true"])
    return "ms", out, None


def accelerators(tools, work, path):
    """Many accelerators in one process."""
    listed = tools.write_list(work.data.ranges(path))

    def measure():
        r = tools.limits("run", *penstock(tools)(*settings_of(
            tools, work, path, "train.epochs=2",
            f"accelerators={work.more['accelerators']}")))
        return r["peak_memory_bytes"] / 1e6

    return "MB", {"penstock_memory": measure}, \
        lambda: tools.limits("warm", listed)


def clear(path):
    for entry in os.scandir(path):
        if entry.is_dir():
            shutil.rmtree(entry.path)
        else:
            os.unlink(entry.path)
    os.sync()


def prepare(path, size):
    """Empties a directory and syncs. Touches memory, too, because the host of a
    virtual machine reclaims free memory, and the first writer would pay for
    it."""
    clear(path)
    np.ones(size + (512 << 20), np.uint8)


def write_fio(path, size, block, *settings):
    """Bytes per second written to a new file."""
    prepare(path, size)
    r = fio_job(os.path.join(path, "fio"), "--rw=write", f"--bs={block}",
                f"--size={size // block * block}", *settings)
    clear(path)
    return r["write"]["bw_bytes"]


def generate(tools, work, path):
    """Files of a data set, compared with the same number of bytes by fio; sync:
    until they are on disk."""
    size = work.more["n"] * work.more["size"]
    command = penstock(tools)(
        f"dataset.data_folder={path}", "dataset.format=npz",
        f"dataset.num_files_train={work.more['n']}",
        "dataset.num_files_eval=0", "dataset.num_subfolders_train=0",
        f"dataset.record_length_bytes={work.more['size']}",
        f"output.folder={path}", *NOTHING, "workflow.generate_data=true")

    def measure(*before):
        prepare(path, size)
        r = tools.limits("run", *before, *command)
        made = sum(e.stat().st_size for e in os.scandir(path + "/train"))
        clear(path)
        if made < 0.99 * size:
            raise Missing(f"{made} of {size} bytes were written")
        return made / r["seconds"] / 1e6

    def fio(*settings):
        return write_fio(path, size, 1 << 20, *settings) / 1e6

    return "MB/s", {
        "penstock": measure, "fio": fio,
        "penstock_sync": lambda: measure(
            "sh", "-c", '"$@" && sync -f "$0"', path),
        "fio_sync": lambda: fio("--end_fsync=1")}, None


def checkpoint(tools, work, path):
    """Writing a checkpoint with fsync, and reading it."""
    found = {}

    def measure():
        prepare(path, work.data.disk // 2)
        r = tools.limits("run", *penstock(tools)(
            f"checkpoint.checkpoint_folder={path}",
            f"checkpoint.block_size={work.more['block']}",
            f"output.folder={tools.scratch.name}", *NOTHING, *LLAMA))
        c = output(tools, "result.json")["checkpoints"]
        found.update(bytes=c["bytes"], load=c["loads"][0]["gib_per_s"],
                     memory=r["peak_memory_bytes"] / 1e6)
        clear(path)
        return c["saves"][0]["gib_per_s"]

    def fio():
        return write_fio(path, found["bytes"], work.more["block"],
                         "--refill_buffers=1", "--end_fsync=1") / (1 << 30)

    return "GiB/s", {
        "penstock": measure, "fio": fio,
        "penstock_load": lambda: found["load"],
        "penstock_memory": (lambda: found["memory"], "MB")}, None


KINDS = {"run": train, "start": start, "accelerators": accelerators,
         "generate": generate, "checkpoint": checkpoint}
