"""CellLoader, against anndata."""
import numpy as np
import penstock
import pytest
from penstock import _penstock

anndata = pytest.importorskip("anndata")
sparse = pytest.importorskip("scipy.sparse")
import pandas as pd     # noqa: E402


def make(path, ncells, genes, seed, kinds=("B cell", "T cell")):
    rng = np.random.default_rng(seed)
    m = sparse.random(ncells, len(genes), 0.2, "csr", "f4", rng)
    m.data = np.ceil(m.data * 9).astype("f4")
    a = anndata.AnnData(m, dtype="f4")
    a.obs_names = [f"c{i}" for i in range(ncells)]
    a.var_names = list(genes)
    a.obs["cell_type"] = pd.Categorical(
        [kinds[i % len(kinds)] for i in range(ncells)])
    a.obs["n"] = np.arange(ncells, dtype="f8")
    a.layers["counts"] = m * 2
    a.write_h5ad(path, compression="gzip")
    return a


@pytest.fixture(scope="module")
def one(tmp_path_factory):
    path = tmp_path_factory.mktemp("cells") / "a.h5ad"
    return path, make(path, 200, [f"g{i}" for i in range(50)], 0)


@pytest.fixture
def cells(one):
    return one[0]


@pytest.mark.parametrize("shuffle", [None, True, "block"])
def test_dense(one, shuffle):
    path, a = one
    want = a.X.toarray()
    loader = penstock.CellLoader(path, 32, shuffle, obs=["cell_type", "n"])
    assert loader.classes == {"cell_type": ["B cell", "T cell"]}
    assert loader.ngenes == 50
    seen = 0
    for b in loader:
        ids = np.asarray(b.ids)
        assert np.array_equal(np.asarray(b["X"]), want[ids])
        assert np.array_equal(np.asarray(b["cell_type"]), ids % 2)
        assert np.array_equal(np.asarray(b["n"]), ids)
        seen += len(ids)
    assert seen == 200


def test_csr(one):
    path, a = one
    for b in penstock.CellLoader(path, 32, True, output="csr"):
        want = a.X[np.asarray(b.ids)]
        data, indices, indptr = b.csr()
        assert np.array_equal(indptr, want.indptr)
        assert np.array_equal(indices, want.indices)
        assert np.array_equal(data, want.data)
        got = b.scipy()
        assert got.shape == (len(want.indptr) - 1, 50)
        assert (got != want).nnz == 0
    with pytest.raises(KeyError):
        b.csr("Y")
    with pytest.raises(KeyError, match="csr"):
        next(iter(penstock.CellLoader(path))).csr()


def test_torch_csr(one):
    torch = pytest.importorskip("torch")
    path, a = one
    for b in penstock.CellLoader(path, 64, output="csr"):
        assert b.torch().keys() == {"X"}
        t = b.torch()["X"]
        assert t.shape == (b.nsamples, 50) and t.layout == torch.sparse_csr
        assert np.array_equal(t.to_dense().numpy(),
                              a.X[np.asarray(b.ids)].toarray())


def test_layer_genes_and_filter(one):
    path, a = one
    b = next(iter(penstock.CellLoader(path, 200, layer="counts")))
    assert np.array_equal(np.asarray(b["X"]), a.layers["counts"].toarray())
    b = next(iter(penstock.CellLoader(path, 200, var_names=["g7", "g3"])))
    assert np.array_equal(np.asarray(b["X"]), a[:, ["g7", "g3"]].X.toarray())
    b = next(iter(penstock.CellLoader(path, 200, genes=5, output="csr")))
    assert (b.scipy() != a.X[:, :5]).nnz == 0
    for want in ({"cell_type": "T cell"}, {"cell_type": ["T cell"]},
                 "cell_type:T cell"):
        loader = penstock.CellLoader(path, 200, obs_filter=want)
        assert loader.nsamples == 100
    b = next(iter(loader))
    assert np.array_equal(np.asarray(b["X"]), a.X[1::2].toarray())
    with pytest.raises(ValueError):
        penstock.CellLoader(path, layer="counts", use_raw=True)
    with pytest.raises(ValueError):
        penstock.CellLoader(path, genes=[1], var_names=[2])
    with pytest.raises(ValueError):
        penstock.CellLoader(path, obs_filter={"a": "b|c"})


def test_fields_of_cells(one):
    """A format that cannot leave fields alone: they are not delivered."""
    path, a = one
    loader = penstock.CellLoader(path, 30, True, obs=["cell_type", "n"],
                                 fields=["n"])
    assert [f[0] for f in loader.fields] == ["n"] and loader.classes == {}
    for b in loader:
        assert b.keys() == ["n"]
        assert np.array_equal(np.asarray(b["n"]), np.asarray(b.ids))
    for b in penstock.CellLoader(path, 30, True, obs=["n"], output="csr",
                                 fields=["X_indices", "n"]):
        assert b.keys() == ["X_indices", "n"]
        assert np.array_equal(b["X_indices"].values.numpy(),
                              a.X[np.asarray(b.ids)].indices)


@pytest.mark.skipif("join" not in _penstock.options("format", "h5ad"),
                    reason="this build joins no files")
def test_collection(tmp_path):
    genes = [f"g{i}" for i in range(30)]
    one = make(tmp_path / "1.h5ad", 40, genes[:20], 1, ("B", "T"))
    two = make(tmp_path / "2.h5ad", 60, genes[10:], 2, ("T", "NK"))
    for join in ("inner", "outer"):
        loader = penstock.CellLoader(
            [tmp_path / "1.h5ad", tmp_path / "2.h5ad"], 100, join=join,
            obs=["cell_type"], source=True)
        b = next(iter(loader))
        want = anndata.concat([one, two], join=join, fill_value=0)
        got = pd.DataFrame(np.asarray(b["X"]))
        assert got.shape == want.shape
        assert np.asarray(b["X"]).sum() == want.X.sum()
        names = loader.classes["cell_type"]
        assert [names[c] for c in b["cell_type"].tolist()] == \
            list(want.obs["cell_type"])
        assert [s.rsplit("/", 1)[-1].split(".")[0]
                for s in loader.classes["source"]] == ["1", "2"]
        assert b["source"].tolist() == [0] * 40 + [1] * 60


@pytest.mark.skipif("census" not in _penstock.names("sampler"),
                    reason="this build has no sampler census")
def test_census(one):
    path, a = one
    loader = penstock.CellLoader(path, 16, "census")
    ids = sum((b.ids.tolist() for b in loader), [])
    assert sorted(ids) == list(range(200)) != ids
