#!/usr/bin/python3
"""Runs the other loaders: peers.py WORK DATA reads requests from its input,
one JSON line each ({"contender": ..., "seconds": ..., "cells": ...}), and answers with the
samples delivered and the seconds they took, or with an error.

One process for a whole work, because importing PyTorch takes longer than most
measurements; but each request runs in a fork of its own, because what earlier
ones left behind in malloc changes results by a factor of four. Peers are
measured as their documentation shows them, and in their favour where there is
a choice: workers stay alive across epochs, the clock starts after the first
batches, and the mapped pages have been touched.
"""
import json
import multiprocessing
import os
import sys
import time

import numpy as np

import data
import peers_cells
import peers_tokens
from works import WORKS

try:
    import torch
    from torch.utils.data import (BatchSampler, DataLoader, Dataset,
                                  RandomSampler)
except ImportError:
    torch = None
    Dataset = object


class RowItems(Dataset):
    """A sample an index; the usual Dataset over an array."""

    def __init__(self, x):
        self.x = x

    def __len__(self):
        return len(self.x)

    def __getitem__(self, i):
        return torch.from_numpy(self.x[i])


class NpyItems(Dataset):
    """np.load a file, as users write it."""

    def __init__(self, paths):
        self.paths = paths

    def __len__(self):
        return len(self.paths)

    def __getitem__(self, i):
        x = np.load(self.paths[i])
        return torch.from_numpy(x if isinstance(x, np.ndarray) else x["x"])


class RawItems(Dataset):
    """Reads what it knows to be 128 bytes of header and a float32 array."""

    def __init__(self, paths):
        self.paths = paths

    def __len__(self):
        return len(self.paths)

    def __getitem__(self, i):
        with open(self.paths[i], "rb", buffering=0) as f:
            raw = bytearray(f.read())
        return torch.frombuffer(raw, dtype=torch.float32, offset=128)


class PillowItems(Dataset):
    """Decodes a picture an index, as torchvision's ImageFolder does."""

    def __init__(self, paths):
        self.paths = paths

    def __len__(self):
        return len(self.paths)

    def __getitem__(self, i):
        from PIL import Image
        with Image.open(self.paths[i]) as picture:
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


def torch_loader(work, path, name):
    if torch is None:
        raise RuntimeError("PyTorch is not installed")
    style, nworkers = name.rsplit("_w", 1)
    nworkers = int(nworkers)
    common = {"num_workers": nworkers, "persistent_workers": nworkers > 0}
    if isinstance(work.data, data.Rows):
        # a writable private mapping: PyTorch warns about read-only arrays
        items = RowItems(touched(np.load(path, mmap_mode="c")))
    elif style == "torch_pillow":
        items = PillowItems(work.data.paths(path))
    elif style == "torch_rawread":
        items = RawItems(work.data.paths(path))
    else:
        items = NpyItems(work.data.paths(path))
    order = long_order(items)
    if style == "torch_batched":
        return DataLoader(items, batch_size=None, sampler=BatchSampler(
            order, work.batch, False), **common), nworkers
    return DataLoader(items, batch_size=work.batch, sampler=order,
                      **common), nworkers


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
                loaded = [np.load(paths[i]) for i in ids]
                yield np.stack([v if isinstance(v, np.ndarray) else v["x"]
                                for v in loaded])
            elif name == "numpy_take":
                yield np.take(x, ids, axis=0, out=out[:len(ids)],
                              mode="clip")
            else:
                yield x[ids]


PASSES = "pandas", "pillow", "h5py", "numpy_npz", "pysam", "pyfaidx"


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
    if name == "pillow":
        from PIL import Image

        def read(i):
            return np.asarray(Image.open(paths[i]))
    elif name == "h5py":
        import h5py
        records = h5py.File(paths[0])["records"]

        def read(i):
            return records[i]
    elif name in ("pysam", "pyfaidx"):
        read = windows(work.data, paths[0], name)
    else:
        def read(i):
            return np.load(paths[i])["x"]
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


def measure(work, path, name, seconds, cells):
    if name == "python_scandir":
        return once(lambda: [e.name for e in os.scandir(path)], 1, seconds)
    if name == "numpy_permutation":
        n = work.more["n"]
        return once(lambda: np.random.permutation(n), n, seconds)
    if name == "torch_randperm":
        if torch is None:
            raise RuntimeError("PyTorch is not installed")
        n = work.more["n"]
        return once(lambda: torch.randperm(n), n, seconds)
    if name == "h5py_chunk_info":
        file = work.data.paths(path)[0]
        return once(lambda: chunk_info(file), 1, seconds)
    if name in PASSES:
        return drain(passes(work, path, name), None, 1, seconds, 1)
    if work.kind == "cells":
        return peers_cells.measure(work, path, name, cells)
    if work.kind.startswith("tokens"):
        return peers_tokens.measure(work, path, name, seconds)
    if name == "libhdf5":
        file = work.data.path(path, work.more["file"])
        return once(lambda: peers_cells.open_file(file), 1, 0)
    if name.startswith("torch_pillow"):
        loader, nworkers = torch_loader(work, path, name)
        return drain(endless(loader), None, 2 * nworkers + 2, seconds)
    source = work.data.source(path)
    if name.startswith("torch_"):
        loader, nworkers = torch_loader(work, path, name)
        return drain(endless(loader), source, 2 * nworkers + 2, seconds)
    return drain(numpy_batches(work, path, name), source, 2, seconds)


def answer(work, path, request):
    """Measures in a child process; returns its JSON line."""
    theirs, mine = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            r = measure(work, path, request["contender"], request["seconds"],
                        request["cells"])
        except Exception as e:  # a peer that fails must not end the rest
            r = {"error": f"{type(e).__name__}: {e}"}
        for worker in multiprocessing.active_children():
            worker.terminate()
            worker.join()
        os.write(mine, json.dumps(r).encode())
        os._exit(0)
    os.close(mine)
    with os.fdopen(theirs) as f:
        line = f.read()
    os.waitpid(child, 0)
    return line or '{"error": "it died"}'


def main():
    work = WORKS[sys.argv[1]]
    path = sys.argv[2]
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # whatever libraries print must not look like an answer
    for line in sys.stdin:
        print(answer(work, path, json.loads(line)), file=answers, flush=True)


if __name__ == "__main__":
    main()
