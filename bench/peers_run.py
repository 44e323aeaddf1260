#!/usr/bin/python3
"""Runs the other loaders: peers_run.py WORK DATA reads requests from standard
input, one JSON line each ({"contender": ..., "seconds": ..., "cells": ...}), and
answers with the number of samples and the seconds they took, or with an error,
in the protocol of src/experiment/peers.py. The clock starts after the first
batches, workers stay alive across epochs, and mapped pages have been touched.
"""
import os
import sys

import numpy as np

import data
import peers_cells
import peers_tokens
from tools import SOURCE, timed
from works import WORKS

sys.path.append(os.path.join(SOURCE, "src", "experiment"))
from peers import Items, say, serve  # noqa: E402

try:
    import torch
    from torch.utils.data import BatchSampler, DataLoader, RandomSampler
except ImportError:
    torch = None


def load(path):
    """np.load of a file, as users write it."""
    x = np.load(path)
    return x if isinstance(x, np.ndarray) else x["x"]


def load_torch(path):
    return torch.from_numpy(load(path))


def read_raw(path):
    """A file known to have a header of 128 bytes and a float32 array."""
    with open(path, "rb", buffering=0) as f:
        raw = bytearray(f.read())
    return torch.frombuffer(raw, dtype=torch.float32, offset=128)


def decode(path):
    """An image, as in torchvision's ImageFolder."""
    from PIL import Image
    with Image.open(path) as picture:
        return torch.from_numpy(np.array(picture.convert("RGB")))


def touched(x):
    """A plain array over a mapped one, with its pages in memory."""
    x = np.asarray(x)
    x.reshape(-1).view(np.uint8)[::4096].sum()
    return x


def torch_batches(work, path, style, nworkers):
    """Endless shuffled batches of a DataLoader. The sampler repeats small data
    sets, so that an epoch does not end every few batches."""
    common = {"num_workers": nworkers, "persistent_workers": nworkers > 0}
    if isinstance(work.data, data.Rows):
        # a private writable mapping: PyTorch warns about read-only arrays
        items = Items(touched(np.load(path, mmap_mode="c")), torch.from_numpy)
    else:
        items = Items(work.data.paths(path),
                      {"torch_pillow": decode, "torch_rawread": read_raw}.get(
                          style, load_torch))
    n = len(items)
    order = RandomSampler(items, num_samples=n * max(1, 20_000 // n))
    if style == "torch_batched":
        loader = DataLoader(items, batch_size=None, sampler=BatchSampler(
            order, work.batch, False), **common)
    else:
        loader = DataLoader(items, batch_size=work.batch, sampler=order,
                            **common)
    while True:
        yield from loader


# --- readers: a function of the indices of a batch ---

def one_by_one(read):
    return lambda ids: [read(i) for i in ids]


def numpy_memmap(work, paths):
    return touched(np.load(paths[0], mmap_mode="r")).__getitem__


def numpy_take(work, paths):
    x = touched(np.load(paths[0], mmap_mode="r"))
    out = np.empty((work.batch,) + work.data.shape, work.data.dtype)
    return lambda ids: np.take(x, ids, axis=0, out=out[:len(ids)], mode="clip")


def windows(work, letters):
    """Windows of a FASTA file by its index, then a table lookup per letter."""
    codes = np.zeros(256, np.uint8)
    codes[np.frombuffer(b"ACGTN", np.uint8)] = range(7, 12)
    row = work.data.row
    return one_by_one(lambda i: codes[np.frombuffer(
        letters(i * row, (i + 1) * row).encode(), np.uint8)])


def by_pysam(work, paths):
    import pysam
    chromosome = pysam.FastaFile(paths[0])
    return windows(work, lambda a, b: chromosome.fetch("chr", a, b))


def by_pyfaidx(work, paths):
    import pyfaidx
    chromosome = pyfaidx.Fasta(paths[0], as_raw=True)["chr"]
    return windows(work, lambda a, b: chromosome[a:b])


def by_pillow(work, paths):
    from PIL import Image
    return one_by_one(lambda i: np.asarray(Image.open(paths[i])))


def by_h5py(work, paths):
    import h5py
    return one_by_one(h5py.File(paths[0])["records"].__getitem__)


READERS = {
    "numpy_memmap": numpy_memmap, "numpy_take": numpy_take,
    "numpy_load": lambda work, paths: lambda ids: np.stack(
        [load(paths[i]) for i in ids]),
    "numpy_npz": lambda work, paths: one_by_one(
        lambda i: np.load(paths[i])["x"]),
    "pysam": by_pysam, "pyfaidx": by_pyfaidx, "pillow": by_pillow,
    "h5py": by_h5py}


def batches(work, path, name):
    """Endless shuffled batches of a reader; pandas reads entire files."""
    paths = work.data.paths(path)
    rng = np.random.default_rng(1)
    if name == "pandas":
        import pandas as pd
        while True:
            for p in paths:
                yield pd.read_csv(p, header=work.more["header"]).to_numpy()
    read = READERS[name](work, paths)
    while True:
        order = rng.permutation(work.data.n)
        for at in range(0, work.data.n, work.batch):
            yield read(order[at:at + work.batch])


def chunk_info(path):
    import h5py
    with h5py.File(path) as f:
        d = f["records"].id
        return [d.get_chunk_info(k) for k in range(d.get_num_chunks())]


def drain(found, source, seconds, skip=2, least=8):
    """Times batches; the first ones are not timed, but checked if there is a
    source."""
    for _ in range(skip):
        batch = next(found)
        if source is not None:
            data.check_batch(batch, source)
    return timed(lambda: len(next(found)), seconds, least)


def measure(work, path, name, seconds, cells):
    def repeat(function, samples=1, seconds=seconds):
        return timed(lambda: (function(), samples)[1], seconds)

    if name.startswith("torch_") and torch is None:
        raise RuntimeError("PyTorch is not installed")
    if name == "python_scandir":
        return repeat(lambda: [e.name for e in os.scandir(path)])
    if name == "h5py_chunk_info":
        return repeat(lambda: chunk_info(work.data.paths(path)[0]))
    if name == "libhdf5":
        file = work.data.path(path, work.more["file"])
        return repeat(lambda: peers_cells.open_file(file), seconds=0)
    if work.kind == "shuffle":
        n = work.more["n"]
        how = {"numpy_permutation": np.random.permutation,
               "torch_randperm": torch and torch.randperm}[name]
        return repeat(lambda: how(n), n)
    if work.kind == "cells":
        return peers_cells.measure(work, path, name, cells)
    if work.kind.startswith("tokens"):
        return peers_tokens.measure(work, path, name, seconds)
    source = work.data.source(path) if hasattr(work.data, "source") else None
    if name.startswith("torch_"):
        style, nworkers = name.rsplit("_w", 1)
        return drain(torch_batches(work, path, style, int(nworkers)), source,
                     seconds, 2 * int(nworkers) + 2)
    found = batches(work, path, name)
    if source is None:
        return drain(found, None, seconds, 1, 1)
    return drain(found, source, seconds)


def main():
    work, path = WORKS[sys.argv[1]], sys.argv[2]
    serve(lambda q: say(**measure(work, path, q["contender"], q["seconds"],
                                  q["cells"])))


if __name__ == "__main__":
    main()
