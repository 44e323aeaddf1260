"""The commands that run with failing calls, each with small data."""
import os
import shutil

from faults import Scene, run

ROWS = ("samples=64", "shape=16")
IMAGES = ("files=3", "shape=8x8x3", "dtype=uint8")
CELLS = ("samples=30", "genes=20")
SYNC = "store.fsync=true"
JOB = ("default_small", "dataset.num_files_train=4",
       "dataset.num_files_eval=0", "train.epochs=1",
       "train.computation_time=0.001", "workflow.evaluation=false",
       "output.folder=out")
LOADED = ("samples", "batches", "payload_bytes", "skipped", "substituted")
RUN = (r"^out/", )
# Inputs of the others, made once: in/
INPUTS = (
    ("gen", "rows.npy", *ROWS), ("gen", "rows.csv", *ROWS),
    ("gen", "rows.h5", *ROWS), ("gen", "many", "files=12", "shape=16"),
    ("gen", "rows.tfrecord", *ROWS),
    ("gen", "images", "format=png", *IMAGES),
    ("gen", "cells.h5ad", *CELLS), ("gen", "cells.zarr", *CELLS),
    ("gen", "cells.pen", *CELLS),
    ("gen", "dna", "dna.fasta", "size=5kB", "length=100"),
    ("run", *JOB), ("sweep", "rows.npy", "batch_size=8,16", "--repeats", "1",
                    "-o", "sweep.jsonl"),
    ("ddict", "load", "rows.npy", "--save", "rows.dict"),
)


def inputs(top):
    os.mkdir(os.path.join(top, "in"))
    for args in INPUTS:
        r = run(args, os.path.join(top, "in"))
        if r.code:
            raise OSError(f"{args}: exit {r.code}: {r.err}")


def loading():
    for name, path, *args in (
            ("npy", "rows.npy"), ("uring", "many", "store=uring"),
            ("posix", "rows.npy", "store=posix", "shuffle=true"),
            ("ram", "many", "store=ram"), ("csv", "rows.csv"),
            ("hdf5", "rows.h5", "store=uring"), ("png", "images"),
            ("h5ad", "cells.h5ad", "store=posix"),
            ("zarr", "cells.zarr"), ("packed", "cells.pen"),
            ("fasta", "dna.fasta"), ("tfrecord", "rows.tfrecord"),
            ("tier", "rows.npy", "store=posix", "cache=ddict")):
        yield Scene(f"load_{name}", "load", f"../../in/{path}", "batch_size=8",
                    "epochs=2", "--json", *args, figures=LOADED, writes=False)


def making():
    for name in ("npy", "npz", "raw", "hdf5", "tfrecord", "indexed_binary",
                 "mmap_indexed_binary", "csv"):
        yield Scene(f"gen_{name}", "gen", "x", f"format={name}", *ROWS,
                    "files=2", SYNC)
    for name in ("png", "jpeg"):
        yield Scene(f"gen_{name}", "gen", "x", f"format={name}", *IMAGES, SYNC)
    for name, path in (("h5ad", "x.h5ad"), ("zarr", "x.zarr"),
                       ("packed", "x.pen")):
        yield Scene(f"gen_{name}", "gen", path, *CELLS, SYNC)
    for name, path in (("fasta", "x.fasta"), ("lines", "x.txt")):
        yield Scene(f"gen_{name}", "gen", "dna", path, "size=5kB",
                    "length=100", SYNC)


def converting():
    for name, a, b in (("packed", "cells.h5ad", "x.pen"),
                       ("zarr", "cells.pen", "x.zarr"),
                       ("h5ad", "cells.zarr", "x.h5ad")):
        yield Scene(f"convert_{name}", "convert", f"../../in/{a}", b,
                    "shuffle=true")
    # over what is there
    yield Scene("convert_force", "convert", "../../in/cells.h5ad", "x.zarr",
                "--force", before=(("gen", "x.zarr", "samples=10",
                                    "genes=20"),))
    yield Scene("gen_force", "gen", "x.npy", *ROWS, SYNC, "--force",
                before=(("gen", "x.npy", "samples=10", "shape=16"),))


def jobs():
    yield Scene("run", "run", *JOB, "output.trace=true", varies=RUN,
                unsynced=("data/", "out/dlio.log"))
    yield Scene("checkpoint", "run", "default_small", "output.folder=out",
                "workflow.generate_data=false", "workflow.train=false",
                "workflow.checkpoint=true", "checkpoint.num_checkpoints_write=2",
                "checkpoint.time_between_checkpoints=0",
                "checkpoint.fsync=true", varies=RUN,
                unsynced=("out/dlio.log",))
    yield Scene("report", "report", "../../in/out", "-o", "page.html",
                "--csv", "rows.csv", varies=(r"\.html$",))
    yield Scene("report_rows", "report", "../../in/sweep.jsonl", "--csv",
                "rows.csv")
    yield Scene("sweep", "sweep", "../../in/rows.npy", "batch_size=8,16",
                "--repeats", "1", "-o", "x.jsonl", varies=(r"\.jsonl$",))
    yield Scene("ddict_save", "ddict", "load", "../../in/rows.npy",
                "threads=1", "batch_size=64", "--save", "x.dict")
    # "@": the name of the folder it runs in
    yield Scene("ddict_named", "ddict", "load", "../../in/rows.npy",
                "ddict.name=@", "--json", figures=("keys", "value_bytes"),
                writes=False)
    if shutil.which("mpirun"):
        yield Scene("ddict_tcp", "ddict", "load", "../../in/rows.npy",
                    "ddict.transport=tcp", "ddict.share=false", "--json",
                    figures=("keys", "value_bytes"), writes=False, ranks=2)
    yield Scene("ddict_restore", "ddict", "load", "../../in/rows.npy",
                "ddict.restore=../../in/rows.dict", "ddict.verify=true",
                "ddict.writable=true", "--json",
                figures=("keys", "value_bytes"), writes=False)
    yield Scene("inspect", "inspect", "../../in/cells.h5ad", "--json",
                figures=("samples", "fields"), writes=False)
    yield Scene("verify", "verify", "../../in/many", "--json",
                figures=("good_samples", "bad"), writes=False)
    yield Scene("vocab", "vocab", "../../in/dna.fasta", "k=3", "-o", "x.txt")


def scenes(names=()):
    every = [*loading(), *making(), *converting(), *jobs()]
    return [s for s in every if not names or
            any(s.name.startswith(n) for n in names)]


def writers(names=()):
    """Those with more to write: a megabyte each, so that the disk can be full
    at many places."""
    rows, cells = ("samples=600", "shape=500"), ("samples=4000", "genes=2000")
    for s in scenes(names):
        if not s.writes:
            continue
        swap = {"samples=64": rows[0], "shape=16": rows[1],
                "samples=30": cells[0], "genes=20": cells[1],
                "shape=8x8x3": "shape=400x400x3", "size=5kB": "size=1200kB"}
        if s.name.startswith("gen_"):
            s.args = tuple(swap.get(a, a) for a in s.args)
        yield s
