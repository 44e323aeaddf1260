"""The data sets of formats that are more than rows: as DLIO and the formats'
own libraries write them. Each has n samples, and d.row: the bytes of the
largest sample when it is decoded."""
import itertools
import os
import struct

import numpy as np

from data import Set, member


class Volumes(Set):
    """npz files of one volume and a label each, of very different sizes."""

    def __init__(self, name, sizes):
        super().__init__(name, len(sizes), ".npz", sum(sizes))
        self.n = len(sizes)
        self.sizes = sizes
        self.row = max(sizes) + 128

    def write(self, name, i, rng):
        side = int(self.sizes[i] ** 0.5)
        x = rng.integers(0, 256, (side, side, 1), np.uint8)
        np.savez(name, x=x, y=np.array([0]))

    def ranges(self, path):
        for name in self.paths(path):
            yield member(name, "x.npy")


class Images(Set):
    """jpeg files: noise in grey as DLIO makes them, or like photos: smooth
    colours with some noise."""

    def __init__(self, name, n, width, height, photo):
        super().__init__(name, n, ".jpeg", n * width * height)
        self.n = n
        self.width, self.height, self.photo = width, height, photo
        self.row = width * height * (3 if photo else 1)

    def write(self, name, i, rng):
        from PIL import Image
        w, h = self.width, self.height
        if not self.photo:
            Image.fromarray(rng.integers(0, 255, (h, w), np.uint8)).save(
                name, format="JPEG")
            return
        small = rng.integers(0, 256, (h // 16, w // 16, 3), np.uint8)
        x = np.asarray(Image.fromarray(small).resize((w, h), 2), np.int16)
        x = x + rng.integers(-12, 13, (h, w, 1), np.int16)
        Image.fromarray(np.clip(x, 0, 255).astype(np.uint8)).save(
            name, format="JPEG", quality=90)


class Dlio(Set):
    """A training set as DLIO makes it: a file a sample, named as there, of a
    square of noise as large as fits into size bytes."""

    def __init__(self, name, kind, n, size):
        super().__init__(name, n, "." + kind, n * (size + 4096))
        self.n = n
        self.kind, self.size = kind, size
        self.side = int(size ** 0.5)
        self.row = self.side ** 2

    def paths(self, path):
        width = len(str(self.n))
        return [f"{path}/train/img_{i:0{width}}_of_{self.n}{self.end}"
                for i in range(self.n)]

    def ranges(self, path):
        for name in self.paths(path):
            if self.kind == "npz":
                yield member(name, "x.npy")
            elif self.kind == "hdf5":
                import h5py
                with h5py.File(name) as f:
                    yield f["records_0"].id.get_offset(), self.row, 0, name
            else:
                size = os.path.getsize(name)
                head = size - self.row if self.kind == "npy" else 0
                yield head, size - head, 0, name

    def make(self, path):
        os.makedirs(path + "/train")
        os.mkdir(path + "/valid")
        rng = np.random.default_rng(1)
        for name in self.paths(path):
            x = rng.integers(0, 255, (self.side, self.side), np.uint8)
            self.write(name, x, np.zeros(1, np.int64))

    def write(self, name, x, labels):
        if self.kind == "npy":
            np.save(name, x[..., None])
        elif self.kind == "npz":
            np.savez(name, x=x[..., None], y=labels)
        elif self.kind == "jpeg":
            from PIL import Image
            Image.fromarray(x).save(name, format="JPEG")
        else:
            import h5py
            with h5py.File(name, "w", libver="latest") as f:
                f["records_0"] = x[None]
                f["labels"] = labels


class Place(Set):
    """An empty directory, with room for what a work writes into it."""

    def __init__(self, name, disk):
        super().__init__(name, 0, "", disk)


class Sequences(Set):
    """Sequences as text, a line each: half DNA, half RNA, the last line of each
    half shorter, and the name of the sequence after a comma."""

    def __init__(self, name, n, letters, last):
        super().__init__(name + ".txt", 0, "", n * (letters + 18))
        self.n, self.letters, self.last = n, letters, last

    def make(self, path):
        rng = np.random.default_rng(1)
        half = self.n // 2
        with open(path, "wb") as f:
            for i in range(self.n):
                m = self.last if i in (half - 1, self.n - 1) else self.letters
                alphabet = b"ATCG" if i < half else b"AUCG"
                s = np.frombuffer(alphabet, "u1")[rng.integers(0, 4, m)]
                f.write(s.tobytes() + b",design_id_%d\n" % (i + 1))

    def lines(self, path, most):
        """The first whole sequences."""
        with open(path, "rb") as f:
            letters = (line.split(b",")[0] for line in f)
            return list(itertools.islice(
                (s for s in letters if len(s) == self.letters), most))


CRC32C = []


def crc32c(data):
    """Slow on purpose of being short; only used when data is made."""
    if not CRC32C:
        for i in range(256):
            c = i
            for _ in range(8):
                c = c >> 1 ^ (0x82f63b78 if c & 1 else 0)
            CRC32C.append(c)
    c = 0xffffffff
    for b in data:
        c = c >> 8 ^ CRC32C[(c ^ b) & 255]
    return c ^ 0xffffffff


def masked(crc):
    return ((crc >> 15 | crc << 17) + 0xa282ead8) & 0xffffffff


class Records(Set):
    """tfrecord files: Examples with bytes `image` and a number `size`. One
    record is repeated, as DLIO does, because Python is slow at checksums."""

    def __init__(self, name, nfiles, nrecords, size):
        super().__init__(name, nfiles, ".tfrecord", nfiles * nrecords * size)
        self.n = nfiles * nrecords
        self.nrecords, self.size = nrecords, size
        self.row = size + 128

    @staticmethod
    def varint(n):
        out = b""
        while n > 127:
            out += bytes([n & 127 | 128])
            n >>= 7
        return out + bytes([n])

    def field(self, number, data):
        return bytes([number << 3 | 2]) + self.varint(len(data)) + data

    def feature(self, name, value):
        return self.field(1, self.field(1, name) + self.field(2, value))

    def write(self, name, i, rng):
        image = rng.integers(0, 256, self.size, np.uint8).tobytes()
        size = self.field(1, self.varint(self.size))
        record = self.field(
            1, self.feature(b"image", self.field(1, self.field(1, image))) +
            self.feature(b"size", self.field(3, size)))
        length = struct.pack("<Q", len(record))
        whole = (length + struct.pack("<I", masked(crc32c(length))) + record +
                 struct.pack("<I", masked(crc32c(record))))
        with open(name, "wb") as f:
            for _ in range(self.nrecords):
                f.write(whole)

    def ranges(self, path):
        for name in self.paths(path):
            with open(name, "rb") as f:
                n, = struct.unpack("<Q", f.read(8))
                f.seek(12 + n)
                crc, = struct.unpack("<I", f.read(4))
            crc = crc - 0xa282ead8 & 0xffffffff
            crc = (crc >> 17 | crc << 15) & 0xffffffff
            for k in range(self.nrecords):
                yield 12 + k * (n + 16), n, crc, name


class Chunks(Set):
    """One HDF5 file whose samples are chunks, packed with gzip."""

    def __init__(self, name, n, shape):
        super().__init__(name, 1, ".h5", n * int(np.prod(shape)))
        self.n = n
        self.shape = shape
        self.row = int(np.prod(shape)) * 4

    def write(self, name, i, rng):
        import h5py
        with h5py.File(name, "w") as f:
            d = f.create_dataset("records", (self.n,) + self.shape, "<i4",
                                 chunks=(1,) + self.shape, compression="gzip",
                                 compression_opts=4)
            # as measured values are: near one another
            step = rng.integers(-9, 10, (8,) + self.shape, np.int32)
            walk = np.cumsum(step, axis=2, dtype=np.int32)
            for k in range(self.n):
                d[k] = np.roll(walk[k % 8], k)

    def ranges(self, path):
        import h5py
        name = self.paths(path)[0]
        with h5py.File(name) as f:
            d = f["records"].id
            for k in range(self.n):
                c = d.get_chunk_info(k)
                yield c.byte_offset, c.size, 0, name


class Text(Set):
    """csv files: bytes without a header as DLIO writes them, or columns of
    float64 with one."""

    def __init__(self, name, nfiles, nrows, ncolumns, dtype):
        super().__init__(name, nfiles, ".csv", nfiles * nrows * ncolumns *
                         (4 if dtype == "uint8" else 20))
        self.n = nfiles * nrows
        self.nrows, self.ncolumns, self.dtype = nrows, ncolumns, dtype

    def write(self, name, i, rng):
        import pandas as pd
        shape = self.nrows, self.ncolumns
        if self.dtype != "uint8":
            names = [f"c{c}" for c in range(self.ncolumns)]
            pd.DataFrame(rng.standard_normal(shape), columns=names).to_csv(
                name, index=False)
            return
        x = rng.integers(0, 255, shape, np.uint8)
        with open(name, "w", encoding="ascii") as f:
            for row in x.tolist():
                print(*row, sep=",", file=f)


class Fasta(Set):
    """One long sequence in lines of 60, read in windows."""

    LINE, HEAD = 60, ">chr\n"

    def __init__(self, name, letters, window):
        super().__init__(name, 1, ".fa", letters * 61 // 60)
        self.letters, self.row = letters, window
        self.n = letters // window

    def write(self, name, i, rng):
        letters = np.frombuffer(b"ACGT", np.uint8)
        lines = letters[rng.integers(0, 4, self.letters, np.uint8)]
        lines = lines.reshape(-1, self.LINE)
        with open(name, "wb") as f:
            f.write(self.HEAD.encode())
            np.pad(lines, ((0, 0), (0, 1)), constant_values=10).tofile(f)

    def at(self, letter):
        return (len(self.HEAD) + letter // self.LINE * (self.LINE + 1) +
                letter % self.LINE)

    def ranges(self, path):
        for i in range(self.n):
            first = self.at(i * self.row)
            yield (first, self.at((i + 1) * self.row - 1) + 1 - first, 0,
                   self.paths(path)[0])
