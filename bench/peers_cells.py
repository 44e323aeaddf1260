"""Loaders of single cells by others, over the same files:

census     reads each chunk of a block as a slice, makes a CSR matrix of them,
           shuffles its rows and cuts batches; a thread fetches the next block
annbatch   the same, one block after another
tuned      better than any published loader with h5py and scipy: reads adjacent
           chunks together, directly into one array, and selects rows when a
           batch is made; a thread fetches the next block
annloader  of anndata, over a file that stays on disk

Each delivers a given number of cells. The time of an epoch is extrapolated: the
time to the first batch once, then the rate of the later batches. If a block is
larger than that number, its first batches are taken without a fetch in parallel,
and the epoch is computed as if fetching and delivering overlapped fully: both
favour the contender. The time to open the file is not included. Every batch is
checked against the sums of its rows, outside the timed part."""
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np


class Matrix:
    """X of an h5ad or zarr store, and a label of its rows."""

    def __init__(self, path):
        if path.endswith(".zarr"):
            import zarr
            f = zarr.open(path, "r")
        else:
            import h5py
            f = h5py.File(path, "r")
        x = f["X"]
        self.ncols = int(x.attrs["shape"][1])
        self.indptr = x["indptr"][:].astype(np.int64)
        self.nrows = len(self.indptr) - 1
        self.columns = x["data"], x["indices"]
        self.labels = f["obs/cell_type/codes"][:]

    def slices(self, chunks, size):
        """The rows of chunks and their ids, read chunk by chunk."""
        import scipy.sparse as sp
        parts, ids, lens = ([], []), [], []
        for c in chunks:
            first, last = c * size, min((c + 1) * size, self.nrows)
            a, b = self.indptr[first], self.indptr[last]
            for column, part in zip(self.columns, parts):
                part.append(column[a:b])
            ids.append(np.arange(first, last))
            lens.append(np.diff(self.indptr[first:last + 1]))
        indptr = np.concatenate(([0], np.cumsum(np.concatenate(lens))))
        return sp.csr_matrix(
            (np.concatenate(parts[0]), np.concatenate(parts[1]), indptr),
            (len(indptr) - 1, self.ncols)), np.concatenate(ids)

    def runs(self, chunks, size):
        """The same, with adjacent chunks read together and in place."""
        import scipy.sparse as sp
        ids = np.concatenate([np.arange(f, min(f + size, self.nrows))
                              for f in chunks * size])
        indptr = np.concatenate(([0], np.cumsum(np.diff(self.indptr)[ids])))
        out = [np.empty(indptr[-1], c.dtype) for c in self.columns]
        cuts = np.flatnonzero(np.diff(ids) != 1) + 1
        for at, run in zip((0, *cuts), np.split(ids, cuts)):
            a, b = self.indptr[run[0]], self.indptr[run[-1] + 1]
            for column, to in zip(self.columns, out):
                column.read_direct(to, np.s_[a:b],
                                   np.s_[indptr[at]:indptr[at] + b - a])
        return sp.csr_matrix((out[0], out[1], indptr),
                             (len(ids), self.ncols)), ids


class Blocks:
    """Batches of shuffled chunks, with the rows of a block shuffled."""

    def __init__(self, matrix, style, size, count):
        self.matrix, self.style = matrix, style
        self.size, self.count = size, count
        self.rng = np.random.default_rng(1)

    def fetch(self, chunks):
        chunks = np.sort(chunks)
        if self.style == "tuned":
            return self.matrix.runs(chunks, self.size)
        m, ids = self.matrix.slices(chunks, self.size)
        rows = self.rng.permutation(len(ids))
        return m[rows], ids[rows]

    def cut(self, m, ids, batch):
        rows = self.rng.permutation(len(ids)) if self.style == "tuned" else ()
        for at in range(0, len(ids), batch):
            if self.style == "tuned":
                take = rows[at:at + batch]
                yield m[take], ids[take]
            else:
                yield m[at:at + batch], ids[at:at + batch]

    def batches(self, batch, dense, parallel):
        order = self.rng.permutation(
            (self.matrix.nrows + self.size - 1) // self.size)
        cuts = [order[i:i + self.count]
                for i in range(0, len(order), self.count)]
        with ThreadPoolExecutor(1) as pool:
            ahead = None
            for k, chunks in enumerate(cuts):
                m, ids = ahead.result() if ahead else self.fetch(chunks)
                if parallel and k + 1 < len(cuts):
                    ahead = pool.submit(self.fetch, cuts[k + 1])
                for x, rows in self.cut(m, ids, batch):
                    yield (x.toarray() if dense else x), \
                        self.matrix.labels[rows], rows


def ann_batches(path, batch):
    """AnnLoader over a file that stays on disk: dense, by index lists."""
    import anndata
    from anndata.experimental.pytorch import AnnLoader
    a = anndata.read_h5ad(path, backed="r")
    a.obs["row"] = np.arange(a.n_obs)
    for b in AnnLoader(a, batch_size=batch, shuffle=True):
        yield b.X, b.obs["cell_type"], np.asarray(b.obs["row"])


def drain(batches, ncells, sums):
    """Takes cells. Returns the seconds to the first batch, the seconds per cell
    after it, and the cells in the first batch."""
    took = first = 0.0
    seen = []
    while sum(map(len, seen)) < ncells:
        start = time.perf_counter()
        got = next(batches, None)
        took += time.perf_counter() - start
        if got is None:
            break
        x, labels, ids = got
        first = first or took
        seen.append(ids)
        if not x.shape[0] == len(labels) == len(ids) or \
                float(x.sum()) != sums[ids].sum():
            raise RuntimeError("a batch differs from its source")
    batches.close()
    ids = np.concatenate(seen)
    if len(np.unique(ids)) != len(ids):
        raise RuntimeError("a cell was delivered twice")
    return first, (took - first) / (len(ids) - len(seen[0])), len(seen[0])


def epoch(n, block, fetch, later):
    """Seconds of an epoch that fetches the next block in parallel."""
    took = fetch
    for at in range(0, n, block):
        rest = n - at - block
        took += max(later * min(block, n - at),
                    fetch * min(max(rest, 0), block) / block)
    return took


def measure(work, path, name, most):
    """annloader, or a style followed by _wCHUNKxCOUNT."""
    d = work.data
    file = d.path(path, work.more["file"])
    dense = work.more["output"] == "dense"
    seconds = 0
    if name == "annloader":
        first, later, m = drain(ann_batches(file, work.batch),
                                min(most, 4 * work.batch), d.sums(path))
    else:
        style, shape = name.rsplit("_w", 1)
        size, count = map(int, shape.split("x"))
        block = size * count
        parallel = style != "annbatch" and most >= block
        cells = max(1, round(most / block)) * block if most >= block else \
            min(most, 16 * work.batch)
        blocks = Blocks(Matrix(file), style, size, count)
        first, later, m = drain(blocks.batches(work.batch, dense, parallel),
                                cells, d.sums(path))
        if most < block:
            seconds = epoch(d.n, block, first - later * m, later)
    return {"samples": d.n, "after_first": 1 / later,
            "seconds": seconds or first + later * (d.n - m)}


def open_file(path):
    """The chunk map of a matrix and a column of obs, by libhdf5."""
    import h5py
    with h5py.File(path, "r") as f:
        found = [f["X"][k].id.get_chunk_info(i) for k in ("data", "indices")
                 for i in range(f["X"][k].id.get_num_chunks())]
        codes = f["obs/cell_type/codes"][:]
        return found, f["X/indptr"][:], codes, f["obs/cell_type/categories"][:]
