"""Measures one contender once. A kind of work gives the unit, the contenders as
functions that return a value in it, and what brings the data into the page
cache; what a tool cannot do raises Missing."""
import json
import os
import subprocess

import contenders_cells
import contenders_python
import contenders_tokens
import emulate
from tools import Missing, fio_job, rate, run_json

HERE = os.path.dirname(os.path.abspath(__file__))


class Peers:
    """The process that runs the other loaders of one work."""

    def __init__(self, work, path, tools):
        self.seconds = tools.seconds
        self.cells = tools.peer_cells
        self.process = subprocess.Popen(
            ["/usr/bin/python3", os.path.join(HERE, "peers.py"), work, path],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

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
            raise Missing("peers.py ended")
        r = json.loads(line)
        if "error" in r:
            raise Missing(r["error"])
        return r

    def close(self):
        self.process.stdin.close()
        self.process.wait()


def load_settings(path, work, threads):
    return [path, f"batch_size={work.batch}", "shuffle=true",
            f"threads={threads}"]


def rows(tools, work, path):
    """One big file: everyone gathers shuffled rows of it."""
    d = work.data
    offset = d.offset(path)
    listed = tools.write_list([(0, 0, 0, path)])

    def limit(threads):
        return lambda: rate(tools.limits("rows", path, offset, d.row, d.n,
                                         work.batch, threads, tools.seconds))

    def penstock(threads):
        def measure():
            samples, seconds, _ = tools.load(
                d.n, *load_settings(path, work, threads))
            return samples / seconds
        return measure

    t = tools.threads
    out = {"penstock": penstock(t), "limit": limit(t)}
    if t > 1:
        out.update({"penstock_1t": penstock(1), "limit_1t": limit(1)})
    return "samples/s", out, lambda: tools.limits("warm", listed)


def loads(tools, work, path, *settings):
    """penstock with all threads and with one."""
    def penstock(threads):
        def measure():
            samples, seconds, _ = tools.load(
                work.data.n, *load_settings(path, work, threads), *settings,
                skip=work.more.get("skip", 1))
            return samples / seconds
        return measure

    t = tools.threads
    return {"penstock": penstock(t),
            **({"penstock_1t": penstock(1)} if t > 1 else {})}


def decode(tools, work, path):
    """Ranges of files, which may be checked or decoded on the way."""
    d = work.data
    listed = tools.write_list(d.ranges(path))
    settings = work.more.get("settings", ())

    def limit(threads):
        return lambda: rate(tools.limits(
            "decode", work.more["how"], listed, d.row, work.batch, threads,
            tools.seconds))

    t = tools.threads
    out = {**loads(tools, work, path, *settings), "limit": limit(t)}
    if t > 1:
        out["limit_1t"] = limit(1)
    return "samples/s", out, lambda: tools.limits("warm", listed)


def text(tools, work, path):
    """Rows of csv, in order and shuffled, beside who reads whole files."""
    listed = tools.write_list((0, os.path.getsize(p), 0, p)
                              for p in work.data.paths(path))
    settings = work.more.get("settings", ())
    mine = loads(tools, work, path, "shuffle=false", *settings)
    out = {**mine, "penstock_shuffled":
           loads(tools, work, path, *settings)["penstock"]}

    def indexing():
        """Finding the rows and one pass, with no index kept from before."""
        r = run_json([tools.penstock_path, "load", path, "index_cache=off",
                      f"batch_size={work.batch}", f"threads={tools.threads}",
                      *settings, "--json"])
        return work.data.n / (r["open_s"] + r["epochs"][0]["seconds"])

    out["penstock_indexing"] = indexing
    return "samples/s", out, lambda: tools.limits("warm", listed)


def open_chunks(tools, work, path):
    """A file of many chunks whose index is not kept."""
    def measure():
        r = run_json([tools.penstock_path, "inspect", path,
                      "index_cache=off", "--json"])
        return r["open_s"] * 1e3

    return "ms", {"penstock": measure}, None


def fit(points):
    """a, b of y = a + b x, each point weighted by 1/y: the small ones, which
    tell a, count as much as the large ones, which tell b."""
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
    """Nothing is read: what is left is the loader's own cost. Batches of
    several sizes tell the cost of a sample from that of a batch. `copy` is
    what this machine takes for a record of 64 bytes that is in its cache."""
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
    """A million files whose index is cached: until the first sample could be
    asked for, and the memory that takes."""
    found = {}

    def measure():
        if not found:  # the first fills the cache
            run_json([tools.penstock_path, "inspect", path, "--json"])
        r = run_json([tools.penstock_path, "inspect", path, "--json"])
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


def direct(tools, work, path):
    """Random reads past the page cache."""
    bs = work.more["bs"]
    n = work.data.size // bs

    def limit(threads):
        return lambda: rate(tools.limits("direct", path, bs,
                                         work.more["depth"], threads,
                                         tools.seconds))

    def fio():
        return fio_job(path, "--readonly", "--rw=randread", f"--bs={bs}",
                       "--ioengine=io_uring", "--direct=1", "--iodepth=32",
                       f"--numjobs={tools.threads}", "--group_reporting",
                       "--randrepeat=0", "--time_based",
                       "--runtime=1")["read"]["iops"]

    def penstock(threads):
        def measure():
            samples, seconds, _ = tools.load(
                n, *load_settings(path, work, threads), "format=raw",
                f"format.record={bs}", "store=uring", "store.direct=true",
                "queue_depth=32")
            return samples / seconds
        return measure

    t = tools.threads
    out = {"penstock": penstock(t), "limit": limit(t)}
    if t > 1:
        out.update({"penstock_1t": penstock(1), "limit_1t": limit(1)})
    return "samples/s", {**out, "fio": fio}, None


KINDS = {"rows": rows, "null": null, "open": open_index,
         "shuffle": shuffle, "direct": direct, "decode": decode,
         "text": text, "open_chunks": open_chunks, **emulate.KINDS,
         **contenders_cells.KINDS, **contenders_python.KINDS,
         **contenders_tokens.KINDS}


def cpu_times(tools, out):
    """CPU time a sample beside the rates of us and of the limit: other programs
    on the machine hardly change it."""
    found = {}

    def keep(who, measure):
        def both():
            tools.cpu = None
            value = measure()
            found[who] = tools.cpu
            return value
        return both

    for who in ("penstock", "limit"):
        out[who] = keep(who, out[who][0]), out[who][1]
    for who in ("penstock", "limit"):
        out[who + "_cpu"] = (lambda who=who: found[who]), "ns"


def contenders(tools, name, work, path):
    """name -> (function, unit); what to do before every repeat, or None; and
    the peers' process or None."""
    unit, mine, warm = KINDS[work.kind](tools, work, path)
    out = {}
    later = {}  # the peers' last answers
    peers = None
    for key, how in mine.items():
        out[key] = how if isinstance(how, tuple) else (how, unit)
    if {"penstock", "limit"} <= out.keys() and "penstock_cpu" not in out:
        cpu_times(tools, out)
    if work.peers:
        peers = Peers(name, path or "-", tools)
    for peer in work.peers:
        def ask(peer=peer):
            r = peers.ask(peer)
            later[peer] = r
            if unit == "ns":
                return r["seconds"] / r["samples"] * 1e9
            if unit == "ms":
                return r["seconds"] / r["samples"] * 1e3
            return r["seconds"] / r["samples"] if unit == "s" else rate(r)
        out[peer] = (ask, unit)
        if work.kind == "cells":
            out["later_" + peer] = (
                lambda peer=peer: later[peer]["after_first"], unit)
    return out, warm, peers
