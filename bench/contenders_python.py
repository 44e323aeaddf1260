"""The Python module: the same work from Python, by the command, and by what
people use otherwise."""
import os

from tools import Missing, rate, run_json

OWN = os.path.join(os.path.dirname(os.path.abspath(__file__)), "own.py")


def own(tools, what, path, batch=1, threads=None):
    if not os.path.exists(os.path.join(tools.python_path, "penstock")):
        raise Missing("the Python module is not built; run: make python")
    return run_json(["/usr/bin/env", f"PYTHONPATH={tools.python_path}",
                     "/usr/bin/python3", OWN, what,
                     str(threads or tools.threads), str(tools.seconds),
                     str(path), str(batch)])


def samples(tools, work, path):
    """Batches from Python beside `penstock load`."""
    def command():
        n, seconds, _ = tools.load(
            work.data.n, path, f"batch_size={work.batch}", "shuffle=true",
            f"threads={tools.threads}")
        return n / seconds

    return "samples/s", {
        "penstock": lambda: rate(own(tools, "load", path, work.batch)),
        "command": command}, None


def overhead(tools, work, path):
    """Beside arrays made of memory that is there already."""
    def measure(what):
        def once():
            r = own(tools, what, "-")
            return r["seconds"] / r["samples"] * 1e6
        return once

    return "us", {"penstock": measure("overhead"),
                  "frombuffer": measure("frombuffer")}, None


def pair(mine, other, name):
    """Two ways to do the same, in processes of their own."""
    def kind(tools, work, path):
        def measure(what):
            return lambda: rate(own(tools, what, tools.scratch.name,
                                    work.batch))
        return "samples/s", {"penstock": measure(mine),
                             name: measure(other)}, None
    return kind


def gather(tools, work, path):
    """The limit takes as many rows as large out of another file."""
    unit, out, _ = pair("store_gather", "numpy_gather", "numpy")(
        tools, work, path)
    d = work.data
    out["limit"] = lambda: rate(tools.limits(
        "rows", path, d.offset(path), d.row, 1 << 18, work.batch,
        tools.threads, tools.seconds))
    return unit, out, None


def start(tools, work, path):
    found = {}

    def milliseconds(what):
        def measure():
            if what not in found:   # the first leaves an index and .pyc files
                own(tools, what, path, work.batch)
            found[what] = True
            return own(tools, what, path, work.batch)["seconds"] * 1e3
        return measure

    return "ms", {"penstock": milliseconds("import_time"),
                  "penstock_first": milliseconds("first_batch"),
                  "numpy_import": milliseconds("numpy_import")}, None


KINDS = {"python_samples": samples, "python_overhead": overhead,
         "python_fill": pair("store_fill", "memcpy", "memcpy"),
         "python_gather": gather,
         "python_start": start}
