"""The data sets of the benchmarks, generated once by NumPy or pen_limits, never by
the loader under test. A set is complete when it has its final name.

The first four bytes of every sample are its number, as float32 or (for bytes)
little-endian uint32, so that any batch can be checked against its source.
"""
import os
import shutil
import subprocess
import zipfile

import numpy as np


class Set:
    """A directory of nfiles files, or (0) one file; disk: its size in bytes;
    more: other attributes."""

    def __init__(self, name, nfiles, end, disk, **more):
        self.name = name
        self.nfiles = nfiles
        self.end = end
        self.disk = int(disk)
        vars(self).update(more)

    def paths(self, path):
        return [f"{path}/{i:06d}{self.end}" for i in range(self.nfiles)] or \
            [path]

    def make(self, path):
        rng = np.random.default_rng(1)
        os.mkdir(path)
        for i, name in enumerate(self.paths(path) if self.nfiles else ()):
            self.write(name, i, rng)

    def ranges(self, path):
        """(offset, length, checksum, path) of the bytes that a reader needs."""
        for name in self.paths(path):
            yield 0, os.path.getsize(name), 0, name


class Arrays(Set):
    """n samples of one shape."""

    def __init__(self, name, n, shape, dtype, end=None):
        dtype = np.dtype(dtype)
        row = int(np.prod(shape)) * dtype.itemsize
        super().__init__(name, n if end else 0, end,
                         n * (row + 4096 * bool(end)), n=n, shape=shape,
                         dtype=dtype, row=row)


class Rows(Arrays):
    """One .npy file with n samples."""

    def __init__(self, name, n, shape, dtype):
        super().__init__(name + ".npy", n, shape, dtype)

    def make(self, path):
        rng = np.random.default_rng(1)
        out = np.lib.format.open_memmap(path, "w+", self.dtype,
                                        (self.n,) + self.shape)
        flat = out.reshape(self.n, -1)
        step = max(1, (64 << 20) // self.row)
        for at in range(0, self.n, step):
            end = min(self.n, at + step)
            flat[at:end] = content(rng, self.dtype, (end - at, flat.shape[1]))
            number(flat[at:end], np.arange(at, end))
        out.flush()

    def source(self, path):
        """All samples as a two-dimensional array."""
        return np.load(path, mmap_mode="r").reshape(self.n, -1)

    def offset(self, path):
        return np.load(path, mmap_mode="r").offset


class Files(Arrays):
    """A directory of n files with one sample each."""

    def write(self, name, i, rng):
        x = content(rng, self.dtype, (1, int(np.prod(self.shape))))
        number(x, np.array([i]))
        if self.end == ".npz":
            np.savez(name, x=x.reshape(self.shape))
        else:
            np.save(name, x.reshape(self.shape))

    def source(self, path):
        return Lazy(self.paths(path))

    def ranges(self, path):
        for name in self.paths(path):
            if self.end == ".npy":
                yield os.path.getsize(name) - self.row, self.row, 0, name
            else:
                yield member(name, "x.npy")


def member(name, inside):
    """(offset, length, crc32, path) of a stored member of a zip file."""
    with zipfile.ZipFile(name) as z, open(name, "rb") as f:
        info = z.getinfo(inside)
        f.seek(info.header_offset + 26)
        lens = f.read(4)
        at = info.header_offset + 30 + int.from_bytes(
            lens[:2], "little") + int.from_bytes(lens[2:], "little")
        return at, info.file_size, info.CRC, name


class Lazy:
    """Reads samples file by file, for checks."""

    def __init__(self, paths):
        self.paths = paths

    def __getitem__(self, ids):
        out = []
        for i in ids:
            x = np.load(self.paths[i])
            out.append((x if isinstance(x, np.ndarray) else x["x"]).ravel())
        return np.stack(out)


class Blob(Set):
    """Random bytes, on disk and not in the page cache."""

    def __init__(self, name, size):
        super().__init__(name + ".bin", 0, "", size, size=size)

    def make(self, path, limits):
        subprocess.run([limits, "make_random", path, str(self.size)],
                       check=True)


class Tiny(Set):
    """Files with one number each."""

    def __init__(self, name, n):
        super().__init__(name, 0, "", n * 4352, n=n)

    def make(self, path, limits):
        subprocess.run([limits, "make_tiny", path, str(self.n)], check=True)


def content(rng, dtype, shape):
    if dtype == np.uint8:
        return rng.integers(0, 256, shape, np.uint8)
    return rng.random(shape, dtype)


def number(rows, ids):
    """Writes sample numbers into the first four bytes."""
    if rows.dtype == np.uint8:
        rows[:, :4] = ids.astype("<u4").view(np.uint8).reshape(-1, 4)
    else:
        rows[:, 0] = ids


def numbers(rows):
    """Reads them back."""
    if rows.dtype == np.uint8:
        return rows[:, :4].copy().view("<u4").ravel().astype(int)
    return rows[:, 0].astype(int)


def check_batch(rows, source):
    """Raises unless every row equals the sample with its number."""
    rows = np.asarray(rows).reshape(len(rows), -1)
    if not np.array_equal(rows, source[numbers(rows)]):
        raise RuntimeError("a batch differs from its source")


def ready(spec, top, tool, say, *more):
    """The path of a data set; generates it, with NumPy or with a tool (and more
    arguments), if it does not exist."""
    path = os.path.join(top, spec.name)
    if os.path.exists(path):
        return path
    os.makedirs(top, exist_ok=True)
    if shutil.disk_usage(top).free < spec.disk * 1.1 + (1 << 30):
        raise RuntimeError(f"{top}: not enough space for {spec.name} "
                           f"({spec.disk / 1e9:.1f} GB)")
    say(f"generating {path} ({spec.disk / 1e9:.1f} GB) ...")
    part = path + ".part"
    if os.path.isdir(part):
        shutil.rmtree(part)
    if os.path.isfile(part):
        os.remove(part)
    if isinstance(spec, (Blob, Tiny)) or more:
        spec.make(part, tool, *more)
    else:
        spec.make(part)
    os.rename(part, path)
    return path
