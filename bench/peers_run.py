#!/usr/bin/python3
"""Runs the other loaders: peers_run.py WORK DATA reads requests from its input,
one JSON line each ({"contender": ..., "seconds": ..., "cells": ...}), and
answers with the samples delivered and the seconds they took, or with an error,
as src/experiment/peers.py has it. The clock starts after the first batches,
workers stay alive across epochs, and mapped pages have been touched.
"""
import os
import sys
import time

import numpy as np

import data
import peers_cells
import peers_tokens
from works import WORKS

sys.path.append(os.path.join(os.path.dirname(os.path.dirname(
    os.path.abspath(__file__))), "src", "experiment"))
from peers import Items, say, serve  # noqa: E402

try:
    import torch
    from torch.utils.data import BatchSampler, DataLoader, RandomSampler
except ImportError:
    torch = None


def load(path):
    """np.load a file, as users write it."""
    x = np.load(path)
    return x if isinstance(x, np.ndarray) else x["x"]


def load_torch(path):
    return torch.from_numpy(load(path))


def read_raw(path):
    """What is known to be 128 bytes of header and a float32 array."""
    with open(path, "rb", buffering=0) as f:
        raw = bytearray(f.read())
    return torch.frombuffer(raw, dtype=torch.float32, offset=128)


def decode(path):
    """A picture, as torchvision's ImageFolder does."""
    from PIL import Image
    with Image.open(path) as picture:
        return torch.from_numpy(np.array(picture.convert("RGB")))


def touched(x):
    """A plain array over a mapped one, with its pages in place."""
    x = np.asarray(x)
    x.reshape(-1).view(np.uint8)[::4096].sum()
    return x


def long_order(dataset):
    """Shuffled passes one after another, so that a small data set does not
    end an epoch every few batches."""
    n = len(dataset)
    return RandomSampler(dataset, num_samples=n * max(1, 20_000 // n))


def torch_loader(work, path, style, nworkers):
    if torch is None:
        raise RuntimeError("PyTorch is not installed")
    common = {"num_workers": nworkers, "persistent_workers": nworkers > 0}
    if isinstance(work.data, data.Rows):
        # a writable private mapping: PyTorch warns about read-only arrays
        items = Items(touched(np.load(path, mmap_mode="c")), torch.from_numpy)
    else:
        items = Items(work.data.paths(path),
                      {"torch_pillow": decode, "torch_rawread": read_raw}.get(
                          style, load_torch))
    order = long_order(items)
    if style == "torch_batched":
        return DataLoader(items, batch_size=None, sampler=BatchSampler(
            order, work.batch, False), **common)
    return DataLoader(items, batch_size=work.batch, sampler=order, **common)


def endless(loader):
    while True:
        yield from loader


def numpy_batches(work, path, name):
    rng = np.random.default_rng(1)
    paths = work.data.paths(path)
    x = None
    if isinstance(work.data, data.Rows):
        x = touched(np.load(path, mmap_mode="r"))
    out = np.empty((work.batch,) + work.data.shape, work.data.dtype)
    while True:
        order = rng.permutation(work.data.n)
        for at in range(0, work.data.n, work.batch):
            ids = order[at:at + work.batch]
            if name == "numpy_load":
                yield np.stack([load(paths[i]) for i in ids])
            elif name == "numpy_take":
                yield np.take(x, ids, axis=0, out=out[:len(ids)],
                              mode="clip")
            else:
                yield x[ids]


def windows(data, path, name):
    """Windows of a FASTA file by its index, then a table for the letters."""
    codes = np.zeros(256, np.uint8)
    codes[np.frombuffer(b"ACGTN", np.uint8)] = range(7, 12)
    if name == "pysam":
        import pysam
        chromosome = pysam.FastaFile(path)

        def letters(a, b):
            return chromosome.fetch("chr", a, b)
    else:
        import pyfaidx
        chromosome = pyfaidx.Fasta(path, as_raw=True)["chr"]

        def letters(a, b):
            return chromosome[a:b]
    return lambda i: codes[np.frombuffer(
        letters(i * data.row, (i + 1) * data.row).encode(), np.uint8)]


def pictures(data, paths):
    from PIL import Image
    return lambda i: np.asarray(Image.open(paths[i]))


def records(data, paths):
    import h5py
    return h5py.File(paths[0])["records"].__getitem__


READERS = {"pandas": None, "pillow": pictures, "h5py": records,
           "numpy_npz": lambda data, paths: lambda i: np.load(paths[i])["x"],
           "pysam": lambda data, paths: windows(data, paths[0], "pysam"),
           "pyfaidx": lambda data, paths: windows(data, paths[0], "pyfaidx")}


def passes(work, path, name):
    """Batches of formats that are more than rows, as their libraries are used.
    The order is random, but for pandas, which takes a file whole."""
    paths = work.data.paths(path)
    rng = np.random.default_rng(1)
    if name == "pandas":
        import pandas as pd
        while True:
            for p in paths:
                yield pd.read_csv(p, header=work.more["header"]).to_numpy()
    read = READERS[name](work.data, paths)
    while True:
        order = rng.permutation(work.data.n)
        for at in range(0, work.data.n, work.batch):
            yield [read(i) for i in order[at:at + work.batch]]


def chunk_info(path):
    import h5py
    with h5py.File(path) as f:
        d = f["records"].id
        return [d.get_chunk_info(k) for k in range(d.get_num_chunks())]


def drain(batches, source, skip, seconds, least=8):
    """Takes batches for so long; the first ones are checked, not timed."""
    samples = nbatches = 0
    for _ in range(skip):
        batch = next(batches)
        if source is not None:
            data.check_batch(batch, source)
    start = time.perf_counter()
    while True:
        batch = next(batches)
        samples += len(batch)
        nbatches += 1
        took = time.perf_counter() - start
        if took >= seconds and nbatches >= least:
            return {"samples": samples, "seconds": took}


def once(function, samples, seconds):
    """Calls a function over and over."""
    count = 0
    start = time.perf_counter()
    while True:
        function()
        count += samples
        took = time.perf_counter() - start
        if took >= seconds:
            return {"samples": count, "seconds": took}


def permute(work, name):
    if name == "torch_randperm" and torch is None:
        raise RuntimeError("PyTorch is not installed")
    n = work.more["n"]
    how = torch.randperm if name == "torch_randperm" else np.random.permutation
    return lambda: how(n), n


def measure(work, path, name, seconds, cells):
    if name == "python_scandir":
        return once(lambda: [e.name for e in os.scandir(path)], 1, seconds)
    if name in ("numpy_permutation", "torch_randperm"):
        return once(*permute(work, name), seconds)
    if name == "h5py_chunk_info":
        file = work.data.paths(path)[0]
        return once(lambda: chunk_info(file), 1, seconds)
    if name in READERS:
        return drain(passes(work, path, name), None, 1, seconds, 1)
    if work.kind == "cells":
        return peers_cells.measure(work, path, name, cells)
    if work.kind.startswith("tokens"):
        return peers_tokens.measure(work, path, name, seconds)
    if name == "libhdf5":
        file = work.data.path(path, work.more["file"])
        return once(lambda: peers_cells.open_file(file), 1, 0)
    if not name.startswith("torch_"):
        return drain(numpy_batches(work, path, name), work.data.source(path),
                     2, seconds)
    style, nworkers = name.rsplit("_w", 1)
    source = None if style == "torch_pillow" else work.data.source(path)
    loader = torch_loader(work, path, style, int(nworkers))
    return drain(endless(loader), source, 2 * int(nworkers) + 2, seconds)


def main():
    work, path = WORKS[sys.argv[1]], sys.argv[2]
    serve(lambda q: say(**measure(work, path, q["contender"], q["seconds"],
                                  q["cells"])))


if __name__ == "__main__":
    main()
