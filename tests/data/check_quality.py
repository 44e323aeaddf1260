#!/usr/bin/env python3
"""Shuffle quality by NumPy, for test_quality.c.

measure DIR: of the epochs in DIR/ids and DIR/labels (int64, one after another)
what a batch's chunks and labels come to, into DIR/measured. simulate DIR: a
block shuffle of plates in runs, drawn here, into DIR/simulated.
"""
import sys
from pathlib import Path

import numpy as np


def entropy(labels):
    n = np.unique(labels, return_counts=True)[1]
    p = n / n.sum()
    return float(-(p * np.log2(p)).sum())


def of_batches(ids, labels, m, chunk):
    """Share of pairs from one chunk, and entropies, of full batches."""
    same, ent = [], []
    for at in range(0, len(ids) - m + 1, m):
        c = np.unique(ids[at:at + m] // chunk, return_counts=True)[1]
        same.append((c * (c - 1)).sum() / (m * (m - 1)))
        ent.append(entropy(labels[at:at + m]))
    return np.mean(same), np.mean(ent), np.std(ent), len(ent)


def measure(where):
    n, m, chunk, epochs = map(int, (where / "setup").read_text().split())
    ids = np.fromfile(where / "ids", np.int64).reshape(epochs, -1)
    labels = np.fromfile(where / "labels", np.int64).reshape(epochs, -1)
    same, mean, sd, nb = of_batches(ids[-1], labels[-1], m, chunk)
    kept = -1.0
    if epochs > 1:
        old = {frozenset(p) for p in zip(ids[-2][:-1], ids[-2][1:])}
        new = [frozenset(p) for p in zip(ids[-1][:-1], ids[-1][1:])]
        kept = sum(p in old for p in new) / len(new)
    distinct = len(np.unique(ids[-1]))
    out = [nb, ids.shape[1] - distinct, n - distinct, same,
           m / (1 + (m - 1) * same), len(np.unique(labels[-1])),
           entropy(labels[-1]), mean, sd, kept]
    (where / "measured").write_text(" ".join(map(repr, map(float, out))))


def simulate(where):
    rng = np.random.default_rng(7)
    n = 131072
    runs = np.fromfile(where / "runs", np.int64)
    plate = np.repeat(np.arange(len(runs)), runs)
    out = []
    for m, chunk, window in ((64, 16, 4096), (64, 64, 1024), (64, 256, 16384),
                             (1024, 64, 16384), (1024, 1, 131072)):
        chunks = rng.permutation(n // chunk)
        ids = (chunks[:, None] * chunk + np.arange(chunk)).ravel()
        ids = rng.permuted(ids.reshape(-1, window), axis=1).ravel()
        same, mean, _, _ = of_batches(ids, plate[ids], m, chunk)
        out += [m, chunk, window, same, mean]
    (where / "simulated").write_text(
        " ".join(map(repr, map(float, [entropy(plate)] + out))))


{"measure": measure, "simulate": simulate}[sys.argv[1]](Path(sys.argv[2]))
