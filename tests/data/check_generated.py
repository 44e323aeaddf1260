#!/usr/bin/python3
"""Checks generated data sets with NumPy, h5py, Pillow and pandas.

Each line of the file named by the argument is a JSON object that describes
one data set. Names and sizes are worked out here, the way DLIO does it.
"""
import io
import json
import math
import os
import struct
import sys
import zipfile
import zlib

import numpy as np


def paths(d):
    out = []
    for split, n, sub in (("train", d["train"], d["sub_train"]),
                          ("valid", d["eval"], d["sub_eval"])):
        for i in range(n):
            where = os.path.join(d["root"], split)
            if sub > 1:
                where = os.path.join(where,
                                     str(i % sub).rjust(len(str(sub)), "0"))
            name = "%s_%s_of_%d.%s" % (
                d["prefix"], str(i).rjust(len(str(n)), "0"), n, d["format"])
            out.append((split, os.path.join(where, name)))
    return out


def shapes(d):
    total = d["train"] + d["eval"]
    if d["dims"]:
        return [tuple(d["dims"])] * total
    side = int(math.sqrt(d["length"]))
    stdev = d["stdev"] / 2.0 / math.sqrt(d["length"])
    np.random.seed(10)
    v = (np.random.normal(side, stdev, 2 * total) if stdev > 0
         else [side] * (2 * total))
    v = [max(int(x), 1) for x in v]
    return [(v[2 * i], v[2 * i + 1]) for i in range(total)]


def check_npy(d, path, shape, i):
    a = np.load(path)
    assert a.shape == shape + (d["samples"],) and a.dtype == d["dtype"]
    again = io.BytesIO()
    np.save(again, a)
    assert again.getvalue() == open(path, "rb").read()
    return a


def check_npz(d, path, shape, i):
    z = np.load(path)
    assert sorted(z.files) == ["x", "y"]
    assert z["x"].shape == shape + (d["samples"],), z["x"].shape
    assert z["x"].dtype == d["dtype"]
    assert z["y"].shape == (d["samples"],) and z["y"].dtype == np.int64
    assert not z["y"].any()
    raw = zipfile.ZipFile(path)
    assert raw.testzip() is None
    want = zipfile.ZIP_DEFLATED if d["packed"] else zipfile.ZIP_STORED
    assert all(m.compress_type == want for m in raw.infolist())
    if not d["packed"]:
        again = io.BytesIO()
        np.savez(again, x=z["x"], y=[0] * d["samples"])
        assert again.getvalue() == open(path, "rb").read(), path
    return z["x"]


def check_hdf5(d, path, shape, i):
    import h5py
    parts = d["parts"]
    if d["dims"]:
        shape = (shape[0] // parts,) + shape[1:]
        if shape[0] == 1:
            shape = shape[1:]
    h = h5py.File(path, "r")
    assert sorted(h) == sorted(["labels"] +
                               ["records_%d" % k for k in range(parts)])
    assert h["labels"].shape == (d["samples"],)
    assert h["labels"].dtype == np.int64 and not h["labels"][:].any()
    for k in range(parts):
        s = h["records_%d" % k]
        assert s.shape == (d["samples"],) + shape, (s.shape, shape)
        assert s.dtype == d["dtype"], s.dtype
        assert s.compression == d["packed"], s.compression
        if d["chunk"]:
            assert s.chunks == tuple(d["chunk"]), s.chunks
        if d["maxshape"]:
            assert s.maxshape == (d["samples"],) + tuple(d["maxshape"])
    return h["records_0"][...]


def take_varint(b, at):
    v = shift = 0
    while True:
        c = b[at]
        at += 1
        v |= (c & 127) << shift
        shift += 7
        if c < 128:
            return v, at


def fields(b):
    at, out = 0, []
    while at < len(b):
        tag, at = take_varint(b, at)
        if tag & 7 == 2:
            n, at = take_varint(b, at)
            out.append((tag >> 3, b[at:at + n]))
            at += n
        else:
            assert tag & 7 == 0
            n, at = take_varint(b, at)
            out.append((tag >> 3, n))
    return out


def check_tfrecord(d, path, shape, i):
    split = "train" if i < d["train"] else "valid"
    idx = os.path.join(d["root"], "index", split,
                       os.path.basename(path) + ".idx")
    b = open(path, "rb").read()
    at, lines, last = 0, [], b""
    size = int(np.prod(shape)) * np.dtype(d["dtype"]).itemsize
    while at < len(b):
        n = struct.unpack_from("<Q", b, at)[0]
        (one, features), = fields(b[at + 12:at + 12 + n])
        assert one == 1
        got = {}
        for _, entry in fields(features):
            (_, key), (_, value) = fields(entry)
            (kind, value), = fields(value)
            (_, value), = fields(value)
            got[key] = value
        assert sorted(got) == [b"image", b"size"]
        last = got[b"image"]
        assert len(last) == size
        value = got[b"size"]
        if not isinstance(value, int):
            value = take_varint(value, 0)[0]
        assert value == size
        lines.append("%d %d\n" % (at, n + 16))
        at += n + 16
    assert len(lines) == d["samples"]
    assert open(idx).read() == "".join(lines)
    return np.frombuffer(last, d["dtype"])


def check_csv(d, path, shape, i):
    import pandas
    a = pandas.read_csv(path, header=None)
    assert a.shape == (d["samples"], int(np.prod(shape))), a.shape
    if np.dtype(d["dtype"]).kind in "iu":
        assert (a.dtypes.map(lambda t: t.kind) == "i").all()
        info = np.iinfo(d["dtype"])
        assert (a >= info.min).all().all() and (a <= info.max).all().all()
    else:
        assert (a >= 0).all().all() and (a < 1).all().all()
        assert (a.astype(d["dtype"]) == a.astype("float32")).all().all()
    return None


def check_image(d, path, shape, i):
    from PIL import Image
    p = Image.open(path)
    assert p.mode == "L" and p.format == d["format"].upper()
    a = np.array(p)
    assert a.shape == shape and a.dtype == np.uint8
    return a


def check_indexed(d, path, shape, i):
    size = int(np.prod(shape)) * np.dtype(d["dtype"]).itemsize
    n = d["samples"]
    assert os.path.getsize(path) == n * size
    off = np.fromfile(path + ".off.idx", "<u8")
    sz = np.fromfile(path + ".sz.idx", "<u8")
    assert (off == np.arange(n) * size).all() and len(off) == n
    assert (sz == size).all() and len(sz) == n
    return np.fromfile(path, d["dtype"])


def check_synthetic(d, path, shape, i):
    assert open(path).read() == str(i)
    return None


CHECKS = {"npy": check_npy, "npz": check_npz, "hdf5": check_hdf5,
          "tfrecord": check_tfrecord, "csv": check_csv, "jpeg": check_image,
          "png": check_image, "indexed_binary": check_indexed,
          "mmap_indexed_binary": check_indexed, "synthetic": check_synthetic}


def gain(b, level=1):
    return 1 - len(zlib.compress(b, level)) / len(b)


def check_content(d, arrays):
    """Every file differs, all is finite, and as compressible as asked."""
    bodies = [a.tobytes() for a in arrays]
    assert len(set(bodies)) == len(bodies), "files alike"
    for a in arrays:
        assert np.isfinite(a).all()
    if d["share"] is None:
        return
    for b in bodies:
        for size in (4096, 65536, len(b)):
            pieces = [b[k:k + size] for k in range(0, len(b), size)]
            pieces = [p for p in pieces if len(p) == size]
            got = sum(len(zlib.compress(p, 1)) for p in pieces)
            got = 1 - got / (len(pieces) * size)
            if not d["share"]:
                assert got < 0.01, (d["dtype"], size, got)
            else:
                assert abs(got - d["share"]) < 0.05, (d["share"], size, got)


def main():
    for line in open(sys.argv[1]):
        d = json.loads(line)
        want = paths(d)
        arrays = []
        for i, ((split, path), shape) in enumerate(zip(want, shapes(d))):
            a = CHECKS[d["format"]](d, path, shape, i)
            if a is not None:
                arrays.append(a)
        there = []
        for split in ("train", "valid"):
            for where, _, names in os.walk(os.path.join(d["root"], split)):
                there += [os.path.join(where, x) for x in names
                          if not x.endswith(".idx")]
        assert sorted(there) == sorted(p for _, p in want), there
        if arrays:
            check_content(d, arrays)


main()
