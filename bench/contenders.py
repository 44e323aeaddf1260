"""The contenders of each kind of work. A kind is a function that returns the unit,
the contenders as functions that return a value in that unit, and a function that
reads the data into the page cache. A contender that cannot run raises Missing."""
import json
import os
import shutil
import subprocess

import contenders_cells
import emulate
from tools import Missing, fio_job, rate, run_json

HERE = os.path.dirname(os.path.abspath(__file__))


class Peers:
    """The process that runs the other loaders for one work."""

    def __init__(self, work, path, tools):
        self.seconds = tools.seconds
        self.cells = tools.peer_cells
        self.process = subprocess.Popen(
            ["/usr/bin/python3", "-B", os.path.join(HERE, "peers_run.py"), work,
             path], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def ask(self, contender):
        p = self.process
        try:
            print(json.dumps({"contender": contender,
                              "seconds": self.seconds,
                              "cells": self.cells}),
                  file=p.stdin, flush=True)
            line = p.stdout.readline()
        except BrokenPipeError:
            line = ""
        if not line:
            raise Missing("peers_run.py has ended")
        r = json.loads(line)
        if "error" in r:
            raise Missing(r["error"])
        return r

    def close(self):
        self.process.stdin.close()
        self.process.wait()


# --- compared with a limit ---

def by_threads(tools, **makers):
    """Contenders with all threads and with one."""
    out = {name: make(tools.threads) for name, make in makers.items()}
    if tools.threads > 1:
        out.update({name + "_1t": make(1) for name, make in makers.items()})
    return out


def loads(tools, work, path, *settings, n=None):
    """Shuffled epochs of `penstock load`."""
    def make(threads):
        def measure():
            samples, seconds, _ = tools.load(
                n or work.data.n, path, f"batch_size={work.batch}",
                "shuffle=true", f"threads={threads}", *settings,
                skip=work.more.get("skip", 1))
            return samples / seconds
        return measure
    return make


def limit(tools, *args):
    return lambda threads: lambda: rate(tools.limits(*args, threads,
                                                     tools.seconds))


def rows(tools, work, path):
    """Shuffled rows of one large file."""
    d = work.data
    return "samples/s", by_threads(
        tools, penstock=loads(tools, work, path),
        limit=limit(tools, "rows", path, d.offset(path), d.row, d.n,
                    work.batch)), tools.warm([path])


def decode(tools, work, path):
    """Ranges of files, with checksums or decoding."""
    listed = tools.write_list(work.data.ranges(path))
    return "samples/s", by_threads(
        tools,
        penstock=loads(tools, work, path, *work.more.get("settings", ())),
        limit=limit(tools, "decode", work.more["how"], listed, work.data.row,
                    work.batch)), lambda: tools.limits("warm", listed)


def direct(tools, work, path):
    """Random reads that bypass the page cache."""
    bs = work.more["bs"]

    def fio():
        return fio_job(path, "--readonly", "--rw=randread", f"--bs={bs}",
                       "--ioengine=io_uring", "--direct=1", "--iodepth=32",
                       f"--numjobs={tools.threads}", "--group_reporting",
                       "--randrepeat=0", "--time_based",
                       "--runtime=1")["read"]["iops"]

    return "samples/s", {**by_threads(
        tools,
        penstock=loads(tools, work, path, "format=raw", f"format.record={bs}",
                       "store=uring", "store.direct=true", "queue_depth=32",
                       n=work.data.size // bs),
        limit=limit(tools, "direct", path, bs, work.more["depth"])),
        "fio": fio}, None


def text(tools, work, path):
    """Rows of csv, in order and shuffled, and pandas, which reads entire files."""
    settings = work.more.get("settings", ())

    def indexing():
        """Indexing and one pass, without a cached index."""
        r = tools.penstock("load", path, "index_cache=off",
                           f"batch_size={work.batch}",
                           f"threads={tools.threads}", *settings)
        return work.data.n / (r["open_s"] + r["epochs"][0]["seconds"])

    return "samples/s", {
        **by_threads(tools, penstock=loads(tools, work, path, "shuffle=false",
                                           *settings)),
        "penstock_shuffled": loads(tools, work, path,
                                   *settings)(tools.threads),
        "penstock_indexing": indexing}, tools.warm(work.data.paths(path))


# --- overhead of the loader ---

def open_chunks(tools, work, path):
    """Opens a file of many chunks without a cached index."""
    return "ms", {"penstock": lambda: tools.penstock(
        "inspect", path, "index_cache=off")["open_s"] * 1e3}, None


def fit(points):
    """a, b of y = a + b x, with points weighted by 1/y, so that small ones, which
    determine a, count as much as large ones, which determine b."""
    s = sx = sxx = sy = sxy = 0.0
    for x, y in points:
        w = 1 / (y * y)
        s += w
        sx += w * x
        sxx += w * x * x
        sy += w * y
        sxy += w * x * y
    b = (s * sxy - sx * sy) / (s * sxx - sx * sx)
    return (sy - b * sx) / s, b


def null(tools, work, path):
    """Reads nothing, which leaves the overhead of the loader. Several batch sizes
    separate the cost per sample from that per batch. `copy` is the time to copy a
    cached record of 64 bytes."""
    found = {}
    small = os.path.join(tools.scratch.name, "small")
    with open(small, "wb") as f:
        f.write(bytes(64 << 10))

    def measure():
        points = []
        for batch in (1, 4, 16, 64, 256, 1024):
            n = min(4 << 20, max(128 << 10, batch * 4096))
            _, seconds, nbatches = tools.load(
                n, "bench", "store=null", "format=raw", "format.record=1024",
                f"store.size={n * 1024}", f"batch_size={batch}",
                "shuffle=true", "threads=1")
            points.append((batch, seconds / nbatches * 1e9))
        found["batch"], found["sample"] = fit(points)
        found["b256"] = dict(points)[256] / 256
        return found["sample"]

    return "ns", {"penstock": measure,
                  "penstock_batch": lambda: found["batch"],
                  "penstock_at_b256": lambda: found["b256"],
                  "copy": lambda: 1e9 / rate(tools.limits(
                      "rows", small, 0, 64, 1024, 256, 1, tools.seconds))
                  }, None


def open_index(tools, work, path):
    """Time and memory to open a million files with a cached index."""
    found = {}

    def measure():
        if not found:  # fills the index cache
            tools.penstock("inspect", path)
        r = tools.penstock("inspect", path)
        found["memory"] = r["peak_memory_bytes"] / work.data.n
        return r["open_s"]

    return "s", {"penstock": measure,
                 "penstock_memory": (lambda: found["memory"], "bytes"),
                 "readdir": lambda: tools.limits("scan", path)["seconds"]
                 }, None


def shuffle(tools, work, path):
    def measure():
        r = run_json([tools.shuffle_path, str(work.more["n"]),
                      str(tools.seconds)])
        return r["seconds"] / r["samples"] * 1e9

    return "ns", {"penstock": measure}, None


# --- sequences ---

def make_vocabulary(tools, path, *settings):
    """The output of `penstock vocab`, and the path of the file."""
    out = os.path.join(tools.scratch.name, "words.txt")
    return tools.penstock("vocab", path, "format=lines", "pads=true", "-o",
                          out, *settings), out


def tokens(tools, work, path):
    how = work.more["how"]
    settings = ["format=lines", f"format.tokens={how}"]
    if how == "dm":
        settings.append(f"format.vocab={make_vocabulary(tools, path)[1]}")
    return "samples/s", by_threads(
        tools, penstock=loads(tools, work, path, *settings),
        limit=limit(tools, "tokens", how, path, work.batch)), \
        tools.warm([path])


def vocabulary(tools, work, path):
    """From opening the data, including the index, to the finished file."""
    def penstock():
        r, _ = make_vocabulary(tools, path, "index_cache=off")
        return r["sequences"] / r["seconds"]

    return "samples/s", {
        "penstock": penstock,
        "limit": limit(tools, "tokens", "vocab", path, work.batch)(
            tools.threads)}, tools.warm([path])


def doc2vec(tools, work, path):
    """Steps of a model while the loader makes the next batches."""
    _, out = make_vocabulary(tools, path)
    program = os.path.join(tools.build, "examples", "doc2vec")

    def penstock(update, steps):
        def measure():
            r = run_json([program, path, f"format.vocab={out}",
                          f"batch_size={work.batch}", "--update", update,
                          "--steps", str(steps // work.batch), "--json"])
            return rate(r["epochs"][0])
        return measure

    return "samples/s", {"penstock": penstock("sparse", 8192),
                         "penstock_dense": penstock("adam", 256)}, \
        tools.warm([path])


def dictionary(tools, work, path):
    """Files per second into a dictionary on 4 ranks, without and with a cached
    index, compared with 4 processes that only read and copy."""
    if not shutil.which("mpirun"):
        raise Missing("mpirun is not installed")
    cache = os.path.join(tools.scratch.name, "index")

    def penstock(keep):
        def measure():
            if not keep:
                shutil.rmtree(cache, ignore_errors=True)
            r = run_json(["mpirun", "--allow-run-as-root", "--oversubscribe",
                          "-n", "4", tools.penstock_path, "ddict", "load",
                          path, "format=lines", f"index_cache={cache}",
                          "--json"])
            return 1 / r["seconds"]
        return measure

    return "files/s", {
        "penstock": penstock(False), "penstock_indexed": penstock(True),
        "limit": lambda: rate(tools.limits("place", path, 4, tools.seconds))
    }, None


# --- the Python module, compared with the command and with other modules ---

def own(tools, what, path, batch=1):
    if not os.path.exists(os.path.join(tools.python_path, "penstock")):
        raise Missing("the Python module is not built; run: make python")
    return run_json(["/usr/bin/env", f"PYTHONPATH={tools.python_path}",
                     "/usr/bin/python3", os.path.join(HERE, "own.py"), what,
                     str(tools.threads), str(tools.seconds), str(path),
                     str(batch)])


def python_samples(tools, work, path):
    """Batches from Python and from `penstock load`."""
    return "samples/s", {
        "penstock": lambda: rate(own(tools, "load", path, work.batch)),
        "command": loads(tools, work, path)(tools.threads)}, None


def python_overhead(tools, work, path):
    """Compared with arrays over existing memory."""
    return "us", {name: lambda what=what: 1e6 / rate(own(tools, what, "-"))
                  for name, what in (("penstock", "overhead"),
                                     ("frombuffer", "frombuffer"))}, None


def python_store(tools, work, path):
    """Two ways to do the same, in separate processes. The limit of gathering is
    the same number of rows of the same size from another file."""
    out = {name: lambda what=what: rate(own(tools, what, tools.scratch.name,
                                            work.batch))
           for name, what in work.more["ways"].items()}
    if work.data:
        d = work.data
        out["limit"] = limit(tools, "rows", path, d.offset(path), d.row,
                             1 << 18, work.batch)(tools.threads)
    return "samples/s", out, None


def python_start(tools, work, path):
    found = {}

    def milliseconds(what):
        def measure():
            if what not in found:   # fills the index cache, writes .pyc files
                own(tools, what, path, work.batch)
            found[what] = True
            return own(tools, what, path, work.batch)["seconds"] * 1e3
        return measure

    return "ms", {"penstock": milliseconds("import_time"),
                  "penstock_first": milliseconds("first_batch"),
                  "numpy_import": milliseconds("numpy_import")}, None


KINDS = {"rows": rows, "null": null, "open": open_index,
         "shuffle": shuffle, "direct": direct, "decode": decode,
         "text": text, "open_chunks": open_chunks, "tokens": tokens,
         "tokens_model": doc2vec, "tokens_vocab": vocabulary,
         "ddict_load": dictionary, "python_samples": python_samples,
         "python_overhead": python_overhead, "python_store": python_store,
         "python_start": python_start, **emulate.KINDS,
         **contenders_cells.KINDS}


def cpu_times(tools, out):
    """Adds the CPU time per sample of penstock and of the limit, which other
    programs on the machine hardly change."""
    found = {}

    def keep(key, measure):
        tools.cpu = None
        value = measure()
        found[key] = tools.cpu
        return value

    for key in ("penstock", "limit"):
        measure, unit = out[key]
        out[key] = (lambda k=key, m=measure: keep(k, m)), unit
    for key in ("penstock", "limit"):
        out[key + "_cpu"] = (lambda k=key: found[k]), "ns"


def contenders(tools, name, work, path):
    """name -> (function, unit); a function to call before every repeat, or None;
    the process of the peers, or None."""
    unit, mine, warm = KINDS[work.kind](tools, work, path)
    scale = {"ns": 1e9, "ms": 1e3, "s": 1}.get(unit)
    out = {}
    later = {}  # the last answers of the peers
    peers = None
    for key, how in mine.items():
        out[key] = how if isinstance(how, tuple) else (how, unit)
    if {"penstock", "limit"} <= out.keys() and "penstock_cpu" not in out:
        cpu_times(tools, out)
    if work.peers:
        peers = Peers(name, path or "-", tools)
    for peer in work.peers:
        def ask(peer=peer):
            later[peer] = peers.ask(peer)
            return scale / rate(later[peer]) if scale else rate(later[peer])
        out[peer] = (ask, unit)
        if work.kind == "cells":
            out["later_" + peer] = (
                lambda peer=peer: later[peer]["after_first"], unit)
    return out, warm, peers
