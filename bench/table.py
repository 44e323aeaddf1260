#!/usr/bin/python3
"""Fills the tables of figures in docs/performance.md and README.md from
bench/results.json, between these two lines:

    <!-- figures: NAME (bench/table.py) -->
    <!-- figures: end -->

    bench/table.py [--check]    # check: write nothing, exit 1 if one differs
"""
import os
import re
import statistics
import sys

import figures
from tools import SOURCE

KEPT = os.path.join(SOURCE, "bench/results.json")
PAGES = "README.md", "docs/performance.md"

# name -> (description, work, figure of ours)
TABLES = {
    "rows": [
        ("1 M samples of 1 KiB, batch 256", "rows_1k_b256"),
        ("1 M samples of 1 KiB, batch 1,024", "rows_1k_b1024"),
        ("20,000 samples of 67 KB, batch 64", "rows_67k"),
        ("4,096 samples of 602 KB, batch 32", "rows_602k"),
    ],
    "files": [
        ("20,000 npy files of 16 KiB, batch 64", "files_16k"),
        ("16 stored npz files of 10 MB, batch 4", "npz_10m"),
        ("10 npz files of 20 to 150 MB, batch 2", "npz_unet3d"),
        ("4,000 jpeg of grey noise, 338 x 338, batch 32", "jpeg_noise"),
        ("2,000 jpeg like photos, 500 x 375, batch 32", "jpeg_photo"),
        ("5,004 tfrecords of 115 KB, batch 64", "tfrecord"),
        ("2,048 gzip chunks of 256 KiB in one hdf5, batch 32", "hdf5_gzip"),
        ("800 rows of csv, 65,536 bytes each, batch 16", "csv_dlio"),
        ("400,000 rows of csv, 20 float64 each, batch 256", "csv_float"),
    ],
    "direct": [
        ("reads of 4 KiB", "direct_4k"),
        ("reads of 128 KiB", "direct_128k"),
        ("reads of 1 MiB", "direct_1m"),
    ],
    "engine": [
        ("a sample", "null_1k"),
        ("a batch", "null_1k", "penstock_batch"),
        ("a shuffled index", "shuffle_index"),
        ("opening a million npy files, index cached", "open_1m"),
        ("memory of that, per file", "open_1m", "penstock_memory"),
        ("opening an hdf5 file of 16,000 chunks, no index", "hdf5_open"),
    ],
    "cells": [
        ("gzip h5ad, dense", "cells_gzip_dense"),
        ("gzip h5ad, CSR", "cells_gzip_csr"),
        ("gzip h5ad, dense, 2,000 chunks", "cells_gzip_dense_2000"),
        ("gzip h5ad, CSR, 2,000 chunks", "cells_gzip_csr_2000"),
        ("h5ad without compression, dense", "cells_none_dense"),
        ("h5ad without compression, CSR", "cells_none_csr"),
        ("zarr with blosc-lz4, dense", "cells_zarr_dense"),
        ("zarr with blosc-lz4, CSR", "cells_zarr_csr"),
        ("packed (`penstock convert`), CSR", "cells_packed_csr"),
        ("opening the gzip h5ad, no index", "cells_open"),
        ("opening it with a kept index", "cells_open", "penstock_warm"),
    ],
    "sequences": [
        ("FASTA, windows of 1,024 bases as tokens", "fasta_1k"),
        ("FASTA, windows of 131,072 bases as tokens", "fasta_131k"),
        ("the tensors of Doc2Vec (targets, context, noise)", "tokens_dm"),
        ("characters as uint8", "tokens_chars"),
        ("a vocabulary with counts, 128 MiB of text", "tokens_vocab"),
        ("Doc2Vec, one step per batch of 4", "doc2vec"),
        ("128 MiB of text into the dictionary, 4 ranks", "ddict_load"),
    ],
    "python": [
        ("1 M samples of 1 KiB, batch 256", "python_rows_1k"),
        ("2,000 jpeg of 224 x 224, batch 32", "python_jpeg_224"),
        ("CPU time of the caller, per batch", "python_overhead"),
        ("filling a TensorStore, rows of 1 KiB", "python_store_fill"),
        ("gathering from a TensorStore, batch 256", "python_store_gather"),
        ("`import penstock`", "python_start"),
        ("the first batch, index cached", "python_start", "penstock_first"),
    ],
    "emulator": [
        ("4,000 npy files of 4 KB, batch 100", "run_npy4k"),
        ("2,000 npy files of 110 KB, batch 100", "run_npy110k"),
        ("2,000 jpeg files, batch 100", "run_jpeg110k"),
        ("64 npz files of 10 MB, 2 MiB of each delivered", "run_npz10m"),
        ("64 hdf5 files of 10 MB, 2 MiB of each delivered", "run_hdf5_10m"),
        ("a run that finds one file made and ends", "start"),
        ("memory of 64 accelerators in one process", "accel64",
         "penstock_memory"),
        ("generating npz files of 10 MB", "generate"),
        ("the same until they are on the disk", "generate", "penstock_sync"),
        ("a checkpoint of 2 GiB, with fsync", "checkpoint"),
    ],
}
TABLES["summary"] = [
    ("1 M samples of 1 KiB in one npy file", "rows_1k_b256"),
    ("20,000 npy files of 16 KiB", "files_16k"),
    ("2,000 jpeg files like photos, decoded", "jpeg_photo"),
    ("single cells from a gzip h5ad, as CSR", "cells_gzip_csr"),
    ("FASTA, windows of 1,024 bases as tokens", "fasta_1k"),
    ("opening a million npy files, index cached", "open_1m"),
]
NAMES = {  # of contenders in the tables
    "torch_default": "DataLoader", "torch_batched": "DataLoader by batches",
    "torch_pillow": "DataLoader", "torch_adam": "PyTorch, dense Adam",
    "torch_sparse": "PyTorch, sparse Adam", "pandas": "pandas",
    "torch_randperm": "torch.randperm", "numpy_permutation": "NumPy",
    "numpy_npz": "NumPy", "pillow": "Pillow", "h5py": "h5py",
    "h5py_chunk_info": "h5py", "libhdf5": "libhdf5", "fio": "fio",
    "fio_sync": "fio", "python_scandir": "os.scandir",
    "annloader": "AnnLoader", "census": "Census's way",
    "annbatch": "annbatch's way", "penstock_gzip": "our gzip h5ad",
    "pysam": "pysam", "pyfaidx": "pyfaidx", "dataset": "the example's Dataset",
    "numpy": "NumPy", "command": "`penstock load`", "memcpy": "memcpy",
    "dlio": "DLIO",
}


def scaled(value, unit):
    """Three digits and a readable unit."""
    steps = {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1,
             "bytes": 1, "MB": 1e6}
    if unit in ("ns", "us", "ms", "s"):
        seconds = value * steps[unit]
        unit = next((u for u in ("s", "ms", "us")
                     if seconds >= steps[u]), "ns")
        return f"{seconds / steps[unit]:.3g} {unit}"
    if unit == "MB" and value >= 1000:
        return f"{value / 1000:.3g} GB"
    if unit in steps:
        return f"{value:.3g} {unit}"
    for scale, letter in ((1e6, "M "), (1e3, "k ")):
        if value >= scale:
            return f"{value / scale:.3g} {letter}{unit}"
    return f"{value:.3g} {unit}"


def figure(f):
    """A median and the deviation of the farthest repeat; both ends if that is as
    far as zero."""
    off = max(f["high"] - f["median"], f["median"] - f["low"]) / f["median"]
    spread = f" +-{100 * off:.0f} %" if off >= 0.005 else ""
    if off >= 0.995:
        spread = (f" ({scaled(f['low'], f['unit'])} .. "
                  f"{scaled(f['high'], f['unit'])})")
    return scaled(f["median"], f["unit"]) + spread


def ratio(values):
    """A median with the lowest and highest repeat."""
    def show(v):
        return f"{v:.2f}" if v < 9.95 else f"{v:,.0f}"

    text = show(statistics.median(values))
    if len(values) > 1:
        text += f" ({show(min(values))} .. {show(max(values))})"
    return text


def row(kept, what, work, which="penstock"):
    w = kept[work]
    limits = [w["ratios"].get(pair) for pair in (
        f"{which} / limit{which.removeprefix('penstock')}",
        "penstock_cpu / limit_cpu" if which == "penstock" else None)]
    memory = w["figures"].get("penstock_memory")
    mine = figure(w["figures"][which])
    if which == "penstock" and memory and memory["unit"] == "MB":
        mine += f", {scaled(memory['median'], 'MB')}"
    others = [f"{NAMES[k]} {ratio(w['ratios'][f'{which} / {k}'])}"
              for k in NAMES if w["ratios"].get(f"{which} / {k}")]
    busy = " *" if w["others"] >= figures.BUSY else ""
    cells = [what + busy, mine, *(ratio(v) if v else "" for v in limits),
             "; ".join(others)]
    return f"| {' | '.join(cells)} |"


def foot(kept, works):
    """Date and machine: once, or for each work if they differ."""
    groups = {}
    for name in works:
        w = kept[name]
        runs = max(f["runs"] for f in w["figures"].values())
        said = (f"{w['date']}, {w['machine']}, {w['threads']} threads, "
                f"{runs} repeats")
        groups.setdefault(said, []).append(f"`{name}`")
    for said, names in groups.items():
        of = f" ({', '.join(names)})" if len(groups) > 1 else ""
        yield f"Measured {said}{of}."
    if any(kept[n]["others"] >= figures.BUSY for n in works):
        yield ("Rows with * were measured while other programs had a fifth "
               "or more of the CPUs.")


def table(kept, name):
    rows = [r for r in TABLES[name] if r[1] in kept]
    if not rows:
        return "Not measured yet."
    return "\n".join([
        "| work | penstock | of the limit | of its CPU time | "
        "times as good as others |",
        "| --- | --- | --- | --- | --- |",
        *(row(kept, *r) for r in rows), "",
        *foot(kept, dict.fromkeys(r[1] for r in rows))])


def fill(text, kept):
    """A page with its tables filled."""
    def one(m):
        if m[2] not in TABLES:
            raise SystemExit(f"unknown table '{m[2]}'; choose from "
                             f"{', '.join(TABLES)}")
        return f"{m[1]}\n{table(kept, m[2])}\n\n<!-- figures: end -->"

    return re.sub(r"(<!-- figures: (\w+) \([^)]*\) -->\n)"
                  r".*?<!-- figures: end -->", one, text, flags=re.S)


def main(args):
    kept = figures.read(KEPT)
    wrong = 0
    for page in PAGES:
        path = os.path.join(SOURCE, page)
        with open(path, encoding="utf-8") as f:
            old = f.read()
        new = fill(old, kept)
        if new == old:
            continue
        wrong += 1
        print(f"{page}: " + ("tables differ from bench/results.json; run: "
                             "bench/table.py" if "--check" in args
                             else "tables written"))
        if "--check" not in args:
            with open(path, "w", encoding="utf-8") as f:
                f.write(new)
    return 1 if wrong and "--check" in args else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
