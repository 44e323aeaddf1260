"""Single cells as anndata writes them: the same matrix in an h5ad with gzip, an
h5ad without compression, and a zarr store, with a chunk map of each for
pen_limits; and the packed file that penstock converts them to. Generating them
needs 2.7 GB of memory and some minutes."""
import os
import subprocess

import numpy as np

from data import Set

NPLATES, NTYPES = 14, 20
H5AD_GZIP, H5AD_NONE, ZARR = "gzip.h5ad", "none.h5ad", "lz4.zarr"
MAPS, SUMS = "maps", "sums.npy"
RAW, ZLIB, BLOSC = 0, 1, 2  # how pen_limits unpacks a chunk


class Cells(Set):
    """n cells of ngenes genes, with about nnz non-zeros per cell. Rates of genes
    are skewed and differ by type, most counts are 1, and cells are sorted by
    plate."""

    def __init__(self, name, n, ngenes, nnz):
        super().__init__(name, 0, "", n * nnz * (8 + 2.3 + 2.4), n=n,
                         ngenes=ngenes, nnz=nnz)

    def path(self, top, file):
        return os.path.join(top, file)

    def files(self, top, file):
        """All files, to read them into the page cache."""
        path = self.path(top, file)
        if not os.path.isdir(path):
            return [path]
        return [os.path.join(d, f) for d, _, files in os.walk(path)
                for f in files]

    def make(self, path):
        import anndata
        os.mkdir(path)
        a = self.cells(np.random.default_rng(1))
        total = int(a.X.sum(dtype=np.float64))
        a.write_h5ad(self.path(path, H5AD_NONE))
        a.write_h5ad(self.path(path, H5AD_GZIP), compression="gzip")
        a.write_zarr(self.path(path, ZARR))
        indptr = a.X.indptr
        os.mkdir(os.path.join(path, MAPS))
        np.save(self.map(path, SUMS), np.add.reduceat(
            a.X.data, indptr[:-1], dtype=np.float64))
        del a
        for file in (H5AD_NONE, H5AD_GZIP, ZARR):
            self.write_map(path, file, indptr, total)
            back = anndata.read_h5ad if file != ZARR else anndata.read_zarr
            if int(back(self.path(path, file)).X.sum(
                    dtype=np.float64)) != total:
                raise RuntimeError(f"{file}: the sum differs after reading it")

    def cells(self, rng):
        import anndata
        import pandas as pd
        import scipy.sparse as sp
        n = self.n
        types = rng.choice(NTYPES, n, p=rng.dirichlet(np.full(NTYPES, 4.0)))
        plates = np.sort(rng.choice(
            NPLATES, n, p=rng.dirichlet(np.full(NPLATES, 8.0))))
        data, indices, indptr = self.counts(rng, types)
        obs = pd.DataFrame(
            {"plate": pd.Categorical.from_codes(
                plates, [f"plate{i + 1}" for i in range(NPLATES)]),
             "cell_type": pd.Categorical.from_codes(
                 types, [f"type {i + 1}" for i in range(NTYPES)]),
             "n_genes": np.diff(indptr).astype(np.int32)},
            index=[f"cell{i:07d}" for i in range(n)])
        var = pd.DataFrame(index=[f"ENSG{i:011d}"
                                  for i in range(self.ngenes)])
        return anndata.AnnData(
            sp.csr_matrix((data, indices, indptr), (n, self.ngenes)),
            obs=obs, var=var, dtype=np.float32)

    def rates(self, rng):
        """Types x genes: the probability of a gene in a cell."""
        base = rng.lognormal(0, 1.2, self.ngenes)
        rate = base * rng.lognormal(0, 0.5, (NTYPES, self.ngenes))
        scale = self.nnz / self.ngenes / rate.mean()
        for _ in range(40):  # some are clipped
            scale *= self.nnz / self.ngenes / np.minimum(
                rate * scale, 0.95).mean()
        return np.minimum(rate * scale, 0.95).astype(np.float32)

    def counts(self, rng, types):
        rate = self.rates(rng)
        # frequent genes have higher counts
        again = np.log(0.1 + 0.55 * rate.mean(axis=0) ** 0.5)
        depth = np.minimum(rng.lognormal(-0.06, 0.35, self.n), 4)
        step = 1000
        most = int(self.n * self.nnz * 1.1) + 16
        data = np.empty(most, np.float32)
        indices = np.empty(most, np.int32)
        indptr = np.zeros(self.n + 1, np.int64)
        at = 0
        for first in range(0, self.n, step):
            rows = slice(first, min(self.n, first + step))
            p = rate[types[rows]] * depth[rows, None].astype(np.float32)
            u = rng.random(p.shape, np.float32)
            seen = u < p
            gene = np.flatnonzero(seen)
            ratio = (u.ravel()[gene] + 1e-9) / p.ravel()[gene]
            gene %= self.ngenes
            # the ratio is uniform in (0, 1], so the count is geometric
            count = 1 + np.floor(np.log(np.minimum(ratio, 1)) / again[gene])
            end = at + len(gene)
            data[at:end] = count
            indices[at:end] = gene
            indptr[first + 1:rows.stop + 1] = at + np.cumsum(
                np.count_nonzero(seen, axis=1))
            at = end
        kept = np.int32 if at < 1 << 31 else np.int64
        return data[:at], indices[:at], indptr.astype(kept)

    def write_map(self, path, file, indptr, total):
        """For pen_limits, as 64-bit words: rows, genes, total, kind, numbers per
        chunk, chunks; offsets of rows; offset and length of the chunks of data,
        then of indices. In a zarr store a chunk is a file."""
        import h5py
        if file == ZARR:
            import zarr
            x = zarr.open(self.path(path, file), "r")["X"]
            step, n, kind = x["data"].chunks[0], x["data"].nchunks, BLOSC
            place = [[(0, os.path.getsize(self.path(
                path, f"{file}/X/{name}/{i}"))) for i in range(n)]
                for name in ("data", "indices")]
            same = x["indices"].chunks[0] == step
        else:
            with h5py.File(self.path(path, file)) as f:
                d, g = f["X/data"], f["X/indices"]
                step, n = d.chunks[0], d.id.get_num_chunks()
                kind = ZLIB if d.compression else RAW
                same = g.chunks[0] == step
                place = [[d.id.get_chunk_info_by_coord((i * step,))
                          for i in range(n)] for d in (d, g)]
                place = [[(c.byte_offset, c.size) for c in list_]
                         for list_ in place]
        if not same:
            raise RuntimeError(f"{file}: data and indices have different chunks")
        head = [len(indptr) - 1, self.ngenes, total, kind, step, n]
        with open(self.map(path, file), "wb") as f:
            for part in (head, indptr, *place):
                f.write(np.asarray(part, "<u8").tobytes())

    def map(self, path, file):
        return os.path.join(path, MAPS, file)

    def sums(self, path):
        """Sums of the rows, to check the output of loaders."""
        return np.load(self.map(path, SUMS))


class Packed(Set):
    """The packed file of a set of cells, converted by penstock."""

    def __init__(self, cells):
        super().__init__(cells.name + ".pen", 0, "", cells.n * cells.nnz * 2)

    def make(self, path, penstock, source):
        made = path + ".pen"  # the extension selects the format
        if os.path.exists(made):
            os.remove(made)
        p = subprocess.run([penstock, "convert", source, made],
                           stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                           text=True, check=False)
        if p.returncode:
            raise RuntimeError("penstock convert: " + (
                p.stdout.strip() or "failed").split("\n")[-1])
        os.rename(made, path)
