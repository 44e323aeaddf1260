#!/usr/bin/python3
"""Reads single cells that test_cells_write.c wrote, with anndata, h5py and
zarr 2, and version 3 of zarr by a reader made from its specification; compares
value by value with what was asked for, which is a formula here and there.

usage: check_cells.py DIR: for each line of DIR/manifest
FILE NROWS NCOLS sparse|dense DTYPE INDICES bare|full
"""
import gzip
import itertools
import json
import os
import sys
import warnings

import anndata
import h5py
import numcodecs
import numpy as np
import scipy.sparse as sp
import zarr

warnings.simplefilter("ignore")

SMALL = 'kl\u00e4in "\U0001f9ec"'
TYPES = ["B cell", "T cell", "Zelle \u00e4\u00f6", "naive, \"mixed\"", ""]


def matrix(n, m, dtype):
    x = np.zeros((n, m), dtype)
    for i in range(n):
        for j in range(i * 7 % 40):
            at = i % 20 + j * 7
            if at < m:
                x[i, at] = (i * 31 + j * 17) % 97 + 1
    return x


def nnz(n, m):
    return sum(1 for i in range(n) for j in range(i * 7 % 40)
               if i % 20 + j * 7 < m)


# ---- zarr version 3 ----

def crc32c(data):
    table = []
    for i in range(256):
        for _ in range(8):
            i = i >> 1 ^ (0x82f63b78 if i & 1 else 0)
        table.append(i)
    crc = 0xffffffff
    for b in data:
        crc = crc >> 8 ^ table[(crc ^ b) & 255]
    return crc ^ 0xffffffff


def decode(raw, codecs, shape, meta):
    """One chunk, or a shard of them."""
    if codecs[0]["name"] == "sharding_indexed":
        conf = codecs[0]["configuration"]
        assert conf["index_location"] == "end"
        assert [c["name"] for c in conf["index_codecs"]] == ["bytes", "crc32c"]
        inner = conf["chunk_shape"]
        grid = [s // c for s, c in zip(shape, inner)]
        assert [g * c for g, c in zip(grid, inner)] == shape
        n = int(np.prod(grid))
        index = raw[-16 * n - 4:]
        assert int.from_bytes(index[-4:], "little") == crc32c(index[:-4])
        index = np.frombuffer(index[:-4], "<u8").reshape(*grid, 2)
        out = np.zeros(shape, meta["data_type"])
        for at in itertools.product(*map(range, grid)):
            off, size = map(int, index[at])
            if off == size == 2 ** 64 - 1:
                continue
            where = tuple(slice(a * c, a * c + c) for a, c in zip(at, inner))
            out[where] = decode(raw[off:off + size], conf["codecs"], inner,
                                meta)
        return out
    for c in reversed(codecs[1:]):
        if c["name"] == "gzip":
            raw = gzip.decompress(raw)
        elif c["name"] == "blosc":
            assert c["configuration"]["shuffle"] == "shuffle"
            raw = numcodecs.Blosc().decode(raw)
        else:
            assert c["name"] == "zstd", c
            raw = numcodecs.Zstd().decode(raw)
    if codecs[0]["name"] == "vlen-utf8":
        return numcodecs.VLenUTF8().decode(raw).reshape(shape)
    assert codecs[0]["configuration"]["endian"] == "little"
    return np.frombuffer(raw, meta["data_type"]).reshape(shape)


class V3:
    def __init__(self, path):
        self.path = path
        with open(os.path.join(path, "zarr.json"), encoding="utf-8") as f:
            self.meta = json.load(f)
        assert self.meta["zarr_format"] == 3
        self.attrs = self.meta["attributes"]

    def __getitem__(self, name):
        return V3(os.path.join(self.path, name))

    def __contains__(self, name):
        return os.path.exists(os.path.join(self.path, name, "zarr.json"))

    def value(self):
        meta = self.meta
        shape = meta["shape"]
        chunk = meta["chunk_grid"]["configuration"]["chunk_shape"]
        dtype = object if meta["data_type"] == "string" else meta["data_type"]
        grid = [-(-s // c) for s, c in zip(shape, chunk)]
        out = np.zeros([g * c for g, c in zip(grid, chunk)], dtype)
        for at in itertools.product(*map(range, grid)):
            name = os.path.join(self.path, "c", *map(str, at))
            with open(name, "rb") as f:
                part = decode(f.read(), meta["codecs"], chunk, meta)
            out[tuple(slice(a * c, a * c + c)
                      for a, c in zip(at, chunk))] = part
        return out[tuple(slice(0, s) for s in shape)]

    def column(self):
        if self.attrs["encoding-type"] != "categorical":
            return list(self.value())
        names = list(self["categories"].value()) + [None]
        return [names[i] for i in self["codes"].value()]


# ---- the expected values ----

def want_columns(n):
    i = np.arange(n)
    kinds = [TYPES[k % 5] if k % 11 else None for k in range(n)]
    return {"cell_type": kinds,
            "n_counts": list(i * 1000003 - 5),
            "frac": list((i % 64 / 64).astype("f4")),
            "is_primary": [bool(k % 3 == 0) for k in range(n)],
            SMALL: list((i % 100).astype("u1")),
            "many": [f"n{k * 13 % 300:03d}" for k in range(n)]}


def same(a, b, what):
    a, b = list(a), list(b)
    assert len(a) == len(b), (what, len(a), len(b))
    for k, (x, y) in enumerate(zip(a, b)):
        x = None if x is None or x != x else x
        assert x == y, (what, k, x, y)


def check_v3(path, n, m, sparse, dtype, indices, full):
    g = V3(path)
    assert g.attrs["encoding-type"] == "anndata"
    x = matrix(n, m, dtype)
    if sparse:
        assert g["X"].attrs["encoding-type"] == "csr_matrix"
        assert g["X"].attrs["shape"] == [n, m]
        assert g["X"]["indices"].meta["data_type"] == indices
        got = sp.csr_matrix(tuple(g["X"][k].value() for k in
                                  ("data", "indices", "indptr")), (n, m))
        assert got.nnz == nnz(n, m)
        got = got.toarray()
    else:
        got = g["X"].value()
    assert got.dtype == x.dtype and (got == x).all()
    if not full:
        same(g["obs"]["_index"].value(), map(str, range(n)), "names")
        return
    same(g["obs"]["barcode"].value(), [f"cell-{i}" for i in range(n)], "names")
    want = want_columns(n)
    assert g["obs"].attrs["column-order"] == list(want)
    for k, v in want.items():
        same(g["obs"][k].column(), v, k)
    same(g["var"]["gene"].value(), [f"G{m - 1 - j}" for j in range(m)], "gene")
    assert (g["obsm"]["X_pca"].value() == pca(n)).all()


def pca(n):
    return (np.arange(n * 7).reshape(n, 7) % 1009).astype("f4")


def check_anndata(path, n, m, sparse, dtype, indices, full):
    a = (anndata.read_zarr(path) if path.endswith(".zarr")
         else anndata.read_h5ad(path))
    assert a.shape == (n, m)
    x = matrix(n, m, dtype)
    if sparse:
        assert sp.isspmatrix_csr(a.X) and a.X.nnz == nnz(n, m)
        got = a.X.toarray()
    else:
        got = np.asarray(a.X)
    assert got.dtype == x.dtype and (got == x).all()
    raw = zarr.open_consolidated(path, mode="r") if path.endswith(".zarr") \
        else h5py.File(path, "r")
    if sparse:
        assert raw["X/indices"].dtype == indices
        assert raw["X/indptr"].dtype == "i4"
    if full:
        assert raw["obs/many/codes"].dtype == "i2"
        assert raw["obs/cell_type/codes"].dtype == "i1"
    for k in ("layers", "obsm", "varm", "obsp", "varp", "uns"):
        assert raw[k].attrs["encoding-type"] == "dict"
    if not full:
        same(a.obs_names, map(str, range(n)), "names")
        same(a.var_names, map(str, range(m)), "names")
        assert not len(a.obs.columns)
        return
    want = want_columns(n)
    assert list(a.obs.columns) == list(want)
    assert a.obs.index.name == "barcode" and a.var.index.name == "gene"
    same(a.obs_names, [f"cell-{i}" for i in range(n)], "names")
    for k, v in want.items():
        same(a.obs[k], v, k)
    assert a.obs["cell_type"].cat.ordered
    assert list(a.obs["cell_type"].cat.categories) == TYPES
    assert a.obs["n_counts"].dtype == "i8" and a.obs[SMALL].dtype == "u1"
    assert a.obs["is_primary"].dtype == bool
    same(a.var_names, [f"G{m - 1 - j}" for j in range(m)], "genes")
    same(a.var["mean"], [j / 8 for j in range(m)], "mean")
    assert (a.obsm["X_pca"] == pca(n)).all()
    assert a.obsm["X_pca"].dtype == "f4"
    assert (a.layers["scaled"] ==
            np.arange(n * m).reshape(n, m) % 251).all()


def main():
    top = sys.argv[1]
    with open(os.path.join(top, "manifest"), encoding="utf-8") as f:
        lines = f.read().splitlines()
    for line in lines:
        name, n, m, kind, dtype, indices, full = line.split()
        path = os.path.join(top, name)
        check = (check_v3 if os.path.exists(os.path.join(path, "zarr.json"))
                 else check_anndata)
        try:
            check(path, int(n), int(m), kind == "sparse", dtype, indices,
                  full == "full")
        except Exception:
            print("in", line, file=sys.stderr)
            raise
    print(len(lines), "files")


main()
