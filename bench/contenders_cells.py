"""Single cells: penstock, the limit and other loaders over the same file. A rate
is that of one complete epoch in a new process, from the open data set to the
last batch: it includes the first batch and all page faults, for every contender.
Figures named later_ exclude the first batch."""
import os

import data
from data_cells import H5AD_GZIP, H5AD_NONE, ZARR, Packed
from tools import Missing, rate


def load(tools, work, file, chunks):
    """One epoch of penstock over a file."""
    r = tools.penstock("load", file, "sampler=block",
                       f"sampler.chunk={work.more['size']}",
                       f"sampler.chunks={chunks}", f"batch_size={work.batch}",
                       "format.obs=cell_type",
                       f"format.output={work.more['output']}",
                       f"threads={tools.threads}")
    tools.count_cpu(r)
    if r["samples"] != work.data.n:
        raise Missing(f"penstock: {r['samples']} cells, not {work.data.n}")
    return r


def after_first(r, batch):
    return (r["samples"] - batch) / (
        r["seconds"] - r["first_batch_s"] + r["open_s"])


def penstock(tools, work, file):
    """Figures of penstock that share one run."""
    found = {}

    def measure():
        found.update(load(tools, work, file, work.more["chunks"]))
        return found["samples"] / found["seconds"]

    return {"penstock": measure,
            "later_penstock": lambda: after_first(found, work.batch),
            "penstock_memory": (lambda: found["peak_memory_bytes"] / 1e6,
                                "MB")}


def cells(tools, work, path):
    d, file = work.data, work.more["file"]

    def limit():
        return rate(tools.limits(
            "cells", d.map(path, file), d.path(path, file),
            work.more["output"], work.more["size"], work.more["chunks"],
            work.batch, tools.threads))

    return "samples/s", {**penstock(tools, work, d.path(path, file)),
                         "limit": limit}, tools.warm(d.files(path, file))


def packed(tools, work, path):
    """The packed file compared with the file it was converted from."""
    d = work.data
    source = d.path(path, H5AD_GZIP)
    spec = Packed(d)
    file = data.ready(spec, os.path.dirname(path), tools.penstock_path,
                      tools.say, source)

    def gzip():
        r = load(tools, work, source, work.more["chunks"])
        return r["samples"] / r["seconds"]

    share = os.path.getsize(file) / os.path.getsize(source)
    return "samples/s", {**penstock(tools, work, file),
                         "penstock_gzip": gzip,
                         "share_of_gzip": (lambda: share, "bytes")}, \
        tools.warm((file, source))


def open_cells(tools, work, path):
    """Time to open the data, without and with a cached index."""
    file = work.data.path(path, work.more["file"])
    cache = os.path.join(tools.scratch.name, "index")

    def inspect(where):
        return tools.penstock("inspect", file, "format.obs=cell_type",
                              f"index_cache={where}")["open_s"] * 1e3

    def warm():
        if not os.path.isdir(cache):
            os.mkdir(cache)
            inspect(cache)
        return inspect(cache)

    return "ms", {"penstock": lambda: inspect("off"),
                  "penstock_warm": warm}, tools.warm([file])


KINDS = {"cells": cells, "cells_packed": packed, "cells_open": open_cells}
FILES = {"gzip": H5AD_GZIP, "none": H5AD_NONE, "zarr": ZARR}
