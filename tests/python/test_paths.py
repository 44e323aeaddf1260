"""The order of samples is that of the paths given."""
import os

import numpy as np
import penstock
import pytest


def npy(path, n):
    np.save(path, np.array([n, n], "f4"))


def npz(path, n):
    np.savez(path, x=np.array([n, n], "f4"))


def csv(path, n):
    path.write_text(f"{n},{n}\n")


def png(path, n):
    image = pytest.importorskip("PIL.Image")
    image.new("L", (2, 2), n).save(path)


def jpg(path, n):
    png(path, n)


def h5(path, n):
    h5py = pytest.importorskip("h5py")
    with h5py.File(path, "w") as f:
        f["x"] = np.array([[n, n]], "f4")


def cells(n):
    anndata = pytest.importorskip("anndata")
    a = anndata.AnnData(np.array([[n, n]], "f4"), dtype="f4")
    a.var_names = ["g", "h"]
    return a


def h5ad(path, n):
    cells(n).write_h5ad(path)


def zarr(path, n):
    cells(n).write_zarr(path)


def fa(path, n):
    path.write_text(f">s\n{'ACGT'[n % 4]}\n")


def settle(path):
    """Folders that were not changed just now: their index is kept."""
    for where, *_ in os.walk(path):
        os.utime(where, (1e9, 1e9))


def values(batches, field=None):
    """The first number of every sample."""
    out = []
    for b in batches:
        a = b[field or list(b)[0]]
        a = a.values if hasattr(a, "values") and a.shapes is not None else a
        out += np.asarray(a).reshape(len(b.ids), -1)[:, 0].astype(int).tolist()
    return out


@pytest.mark.parametrize("cache", ["off", "auto"])
@pytest.mark.parametrize("make", [npy, npz, csv, png, jpg, h5, h5ad, zarr, fa])
def test_every_format(tmp_path, make, cache):
    suffix = "." + make.__name__
    for n, name in enumerate("abcd"):
        make(tmp_path / (name + suffix), n)
    settle(tmp_path)
    want = [2, 0, 3, 1]
    paths = [tmp_path / ("abcd"[n] + suffix) for n in want]
    if make is fa:
        want = ["ACGT"[n] for n in want]
    for _ in range(2):      # the second time out of a kept index
        loader = penstock.Loader(paths, 4, index_cache=cache)
        got = values(loader)
        if make is fa:
            got = [chr(n) for n in got]
        assert got == want
        assert [loader.path_of(i) for i in range(4)] == [
            str(p) for p in paths] or make is zarr


def test_families(tmp_path):
    """zarr among h5ad, and files that lie in other folders."""
    (tmp_path / "sub").mkdir()
    h5ad(tmp_path / "m.h5ad", 1)
    zarr(tmp_path / "z.zarr", 2)
    h5ad(tmp_path / "sub" / "a.h5ad", 3)
    zarr(tmp_path / "a.zarr", 4)
    for order in (["z.zarr", "m.h5ad", "sub/a.h5ad", "a.zarr"],
                  ["sub/a.h5ad", "a.zarr", "m.h5ad", "z.zarr"],
                  ["m.h5ad", "z.zarr", "a.zarr", "sub"]):
        want = [{"m": 1, "z": 2, "s": 3, "a": 4}[n[0]] for n in order]
        paths = [tmp_path / n for n in order]
        assert values(penstock.Loader(paths, 4), "X") == want
        assert values(penstock.CellLoader(paths, 4), "X") == want


def test_folders_and_globs(tmp_path):
    """What one path has stays sorted, also as a line of a list."""
    for folder, first in (("a", 0), ("b", 10)):
        (tmp_path / folder / "in").mkdir(parents=True)
        for n in range(5):
            npy(tmp_path / folder / f"{n}.npy", first + n)
        npy(tmp_path / folder / "in" / "0.npy", first + 5)
    npy(tmp_path / "z.npy", 20)
    a, b = list(range(6)), list(range(10, 16))
    t = tmp_path
    assert values(penstock.Loader(t, 64)) == [20, *a, *b]
    assert values(penstock.Loader([t / "b", t / "z.npy", t / "a"], 64)) == \
        [*b, 20, *a]
    assert values(penstock.Loader([t / "b" / "*.npy", t / "a" / "in"], 64)) \
        == [10, 11, 12, 13, 14, 5]
    (t / "list").write_text("b\nz.npy\na/3.npy\na/1.npy\na/in\n")
    assert values(penstock.Loader(f"@{t}/list", 64)) == [*b, 20, 3, 1, 5]
    (t / "list").write_text("a\n")
    assert values(penstock.Loader([t / "z.npy", f"@{t}/list"], 64)) == [20, *a]


def test_numbers_go_to_the_samples_meant(tmp_path):
    order = [3, 1, 4, 0, 2]
    for n in range(5):
        npy(tmp_path / f"{n}.npy", n)
    paths = [tmp_path / f"{n}.npy" for n in order]
    got = values(penstock.Loader(paths, 5, subset=[0, 2]))
    assert got == [3, 4]
    got = values(penstock.Loader(paths, 64, sampler="weighted",
                                 weights=[0, 0, 1, 0, 0], epoch_batches=1,
                                 seed=1))
    assert set(got) == {4}
    # class k is the k-th path; the sampler draws the classes alike
    loader = penstock.Loader(paths, 64, sampler="balanced",
                             labels=[7, 7, 7, 7, 9], seed=1)
    got = sum((values([b]) for _, b in zip(range(20), loader)), [])
    assert got.count(2) / len(got) > 0.3


def test_state_of_another_order_is_refused(tmp_path):
    for n in range(8):
        npy(tmp_path / f"{n}.npy", n)
    order = [5, 2, 7, 0, 1, 3, 4, 6]
    paths = [tmp_path / f"{n}.npy" for n in order]
    states = {}
    for name, p in (("given", paths), ("sorted", sorted(paths)),
                    ("folder", [tmp_path]), ("reversed", paths[::-1])):
        loader = penstock.Loader(p, 2, shuffle=True, seed=3)
        next(iter(loader))
        states[name] = loader.state_dict()
    loader = penstock.Loader(paths, 2, shuffle=True, seed=3)
    loader.load_state_dict(states["given"])
    for name in ("sorted", "folder", "reversed"):
        with pytest.raises(penstock.Error, match="order of paths"):
            loader.load_state_dict(states[name])
    # sorted paths are what every version took them to be
    penstock.Loader(tmp_path, 2, shuffle=True, seed=3).load_state_dict(
        states["sorted"])


def test_twice(tmp_path):
    for n in range(3):
        npy(tmp_path / f"{n}.npy", n)
    one = tmp_path / "1.npy"
    for paths in ([one, one], [one, tmp_path], [tmp_path / "*.npy", one]):
        with pytest.raises(penstock.Error, match="1.npy.*each file once"):
            penstock.Loader(paths)
    (tmp_path / "list").write_text("1.npy\n0.npy\n1.npy\n")
    with pytest.raises(penstock.Error, match="1.npy.*each file once"):
        penstock.Loader(f"@{tmp_path}/list")


def test_a_set_has_no_order(tmp_path):
    npy(tmp_path / "a.npy", 1)
    with pytest.raises(TypeError, match="no order"):
        penstock.Loader({tmp_path / "a.npy"})
