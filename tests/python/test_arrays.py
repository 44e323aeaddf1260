"""The format arrays: are files fields of the same samples, or samples?"""
import json
import os
import shutil

import numpy as np
import penstock
import pytest


def save(folder, **arrays):
    folder.mkdir(exist_ok=True)
    for name, a in arrays.items():
        np.save(folder / f"{name}.npy", a)
    return folder


def check(path, want, **settings):
    """Every field of every sample, in any order."""
    n = len(next(iter(want.values())))
    for how in ({}, {"shuffle": True}, {"shuffle": "block"},
                {"store": "posix", "shuffle": True}, {"store": "mmap"}):
        loader = penstock.Loader(path, 7, **how, **settings)
        assert loader.nsamples == n
        assert {f[0] for f in loader.fields} == set(want)
        seen = []
        for b in loader:
            ids = np.asarray(b.ids)
            seen += ids.tolist()
            for name, a in want.items():
                got = np.asarray(b[name])
                assert got.dtype == a.dtype.newbyteorder("=")
                assert np.array_equal(got, a[ids]), (name, how)
        assert sorted(seen) == list(range(n))
    ds = penstock.Dataset(path, **settings)
    for name, a in want.items():
        assert np.array_equal(ds[3][name], a[3])


def nfiles(path, **settings):
    loader = penstock.Loader(path, 1, **settings)
    assert loader.format == "npy" and len(loader.fields) == 1
    return loader.nsamples


def fails(path, match, **settings):
    with pytest.raises((penstock.Error, OSError), match=match):
        penstock.Loader(path, **settings)


@pytest.fixture
def xy():
    rng = np.random.default_rng(1)
    return {"x": rng.normal(size=(100, 8)).astype("f4"),
            "y": rng.integers(0, 9, 100)}


def test_fields(tmp_path, xy):
    check(save(tmp_path / "d", **xy), xy)
    loader = penstock.Loader(tmp_path / "d", 10)
    assert loader.format == "arrays"
    for kept in ("off", "auto"):
        os.utime(tmp_path / "d", (1e9, 1e9))
        for _ in range(2):
            check(tmp_path / "d", xy, index_cache=kept)
            check(tmp_path / "d", {"y": xy["y"]}, fields=["y"],
                  index_cache=kept)


@pytest.mark.parametrize("x, y", [
    (np.zeros((50, 3)), np.ones((50, 3))),          # types and shapes agree
    (np.zeros(50, "f4"), np.ones(50, "f4")),
    (np.zeros((50, 3), "f4"), np.ones((50, 1), "f4")),
    (np.zeros((50, 3), "f4"), np.arange(50)),
    (np.zeros((50, 3), ">f4"), np.asfortranarray(np.eye(50, 4))),
    (np.zeros((50, 3), "c8"), np.ones((50, 2, 2), bool)),
])
def test_types(tmp_path, x, y):
    check(save(tmp_path / "d", x=x, y=y), {"x": x, "y": y})
    check(save(tmp_path / "e", X_train=x, y_train=y),
          {"X_train": x, "y_train": y})


def test_other_names(tmp_path):
    a = {"images": np.zeros((20, 4, 4), "u1"), "targets": np.arange(20),
         "mask": np.zeros((20, 4, 4), bool), "weight": np.ones(20)}
    check(save(tmp_path / "d", **a), a)
    # more than a few, but they cannot be samples
    a = {f"col_{'abcdefghijklmnopqrstuvwxyz'[i]}": np.full(30, i, f"f{4 + i % 2 * 4}")
         for i in range(26)}
    check(save(tmp_path / "e", **a), a)


def test_series_are_samples(tmp_path):
    a = np.zeros((6, 5), "f4")
    d = save(tmp_path / "d", **{f"img_{i}": a for i in range(3)})
    assert nfiles(d) == 3
    d = save(tmp_path / "e", **{f"{i}": a for i in range(3)})
    assert nfiles(d) == 3
    # many of equal type and shape, with any name
    d = save(tmp_path / "f", **{chr(97 + i) * 3: a for i in range(20)})
    assert nfiles(d) == 20
    # lengths differ
    d = save(tmp_path / "g", anna=a, bob=a[:3], x=a[:4])
    assert nfiles(d) == 3
    # in several folders, or listed one by one
    d = save(tmp_path / "h", x=a)
    save(d / "in", y=a)
    assert nfiles(d) == 2
    d = save(tmp_path / "i", x=a, y=a)
    assert nfiles([d / "y.npy", d / "x.npy"]) == 2
    assert nfiles(d / "*.npy") == 2
    assert nfiles(tmp_path / "h" / "x.npy") == 6


def test_both_are_possible(tmp_path):
    a = np.zeros((6, 5), "f4")
    both = "format=arrays .* format.samples=file"
    cases = {
        "alike": {"cat": a, "dog": a},
        "mixed": {"x1": a, "x2": a, "y": a},
        "many": {chr(97 + i) * 3: a[:, :1 + i % 2] for i in range(20)},
    }
    for name, arrays in cases.items():
        d = save(tmp_path / name, **arrays)
        fails(d, both)
        check(d, arrays, format="arrays")
        assert nfiles(d, samples="file") == len(arrays)
        assert nfiles(d, format="npy") == len(arrays)
    # unambiguous folders need no setting
    arrays = {"x1": a, "x2": a, "y": np.arange(6)}
    check(save(tmp_path / "clear", **arrays), arrays)


def test_damage(tmp_path, xy):
    d = save(tmp_path / "d", **xy)
    raw = (d / "y.npy").read_bytes()
    (d / "y.npy").write_bytes(raw[:-9])
    for on_error in ("fail", "skip", "substitute"):
        fails(d, "y.npy" if on_error == "fail" else "", on_error=on_error)
        fails(d, "y.npy", on_error=on_error, format="arrays")
    check(d, {"x": xy["x"]}, format="arrays", fields=["x"])
    (d / "y.npy").write_bytes(raw + b"more")
    fails(d, "trailing")
    check(d, xy, format="arrays", trailing="ignore")
    np.save(d / "y.npy", xy["y"][:99])
    fails(d, "99 rows.* 100", format="arrays")
    fails(d, "format=arrays")       # types differ: not samples, either
    np.save(d / "y.npy", np.float32(3))
    fails(d, "0-d", format="arrays")
    np.save(d / "y.npy", np.array(["a", "b"]))
    fails(d, "y.npy")
    check(d, {"x": xy["x"]}, format="arrays", fields="x")
    np.save(d / "z.npy", xy["y"])
    check(d, {"x": xy["x"], "z": xy["y"]}, format="arrays", fields=["z", "x"])
    check(d, {"z": xy["y"]}, format="arrays", fields=["z"])
    fails(d, "no array 'q'", format="arrays", fields=["z", "q"])


def test_order_of_a_list(tmp_path, xy):
    d = save(tmp_path / "d", **xy)
    loader = penstock.Loader([d / "y.npy", d / "x.npy"], 5, format="arrays")
    assert [f[0] for f in loader.fields] == ["y", "x"]
    assert loader.path_of(3) == str(d / "y.npy")
    save(tmp_path / "e", x=xy["x"])
    fails([d, tmp_path / "e"], "not in the directory", format="arrays")


def test_labels(tmp_path, xy):
    d = save(tmp_path / "d", **xy)
    fails(d, "label_name=", labels=np.arange(100))
    fails(d, "label_name=", labels=np.arange(100), fields=["x", "y"])
    loader = penstock.Loader(d, 10, labels=np.arange(100), fields=["x", "kind"],
                             label_name="kind", shuffle=True)
    for b in loader:
        assert b.keys() == ["x", "kind"]
        assert np.array_equal(np.asarray(b["kind"]), b.ids)
    loader = penstock.Loader(d, 10, labels="field:y", sampler="balanced")
    assert next(iter(loader)).keys() == ["x", "y"]


def test_bad_rows(tmp_path, xy):
    """A failed read costs its sample, in all fields."""
    d = save(tmp_path / "d", **xy)
    loader = penstock.Loader(d, 10, True, store="fault", fail_nth=40,
                             threads=1, on_error="skip")
    n = 0
    for b in loader:
        ids = np.asarray(b.ids)
        n += len(ids)
        assert np.array_equal(np.asarray(b["x"]), xy["x"][ids])
        assert np.array_equal(np.asarray(b["y"]), xy["y"][ids])
    assert 90 <= n < 100 and len(loader.skipped()) == 100 - n


# -- the folder of a TensorStore --

def make_store(path, n=50, seed=0):
    rng = np.random.default_rng(seed)
    want = {"x": rng.integers(0, 256, (n, 4, 4)).astype("u1"),
            "next/x": rng.integers(0, 256, (n, 4, 4)).astype("u1"),
            "reward": rng.normal(size=n).astype("f4"),
            "deep/er/z": rng.normal(size=(n, 2))}
    with penstock.TensorStore.create(
            path, {k: (a.shape[1:], a.dtype) for k, a in want.items()},
            n) as store:
        for k, a in want.items():
            store[k][:] = a
    return want


def test_tensor_store(tmp_path):
    want = make_store(tmp_path / "replay")
    check(tmp_path / "replay", want)
    check(tmp_path / "replay", {"reward": want["reward"]}, fields=["reward"])
    loader = penstock.Loader(tmp_path / "replay", 10)
    assert loader.format == "arrays"
    assert loader.about()["TensorStores"] == "1"
    # arrays that store.json does not list are not part of it
    np.save(tmp_path / "replay" / "stray.npy", np.zeros(50))
    (tmp_path / "replay" / "notes.txt").write_text("mine")
    check(tmp_path / "replay", want)
    # grown in place
    with penstock.TensorStore.open(tmp_path / "replay", "r+") as store:
        store.append({k: a[:3] for k, a in want.items()})
    check(tmp_path / "replay",
          {k: np.concatenate([a, a[:3]]) for k, a in want.items()})


def test_several_stores(tmp_path):
    a = make_store(tmp_path / "b", 50, 1)
    b = make_store(tmp_path / "a", 20, 2)
    check([tmp_path / "b", tmp_path / "a"],
          {k: np.concatenate([a[k], b[k]]) for k in a})
    with penstock.TensorStore.create(tmp_path / "c", {"x": ((4, 4), "u1")},
                                     5):
        pass
    fails([tmp_path / "a", tmp_path / "c"], "c/store.json.*lacks")
    fails([tmp_path / "c", tmp_path / "a"], "do not contain this array")
    loader = penstock.Loader([tmp_path / "c", tmp_path / "a"], fields=["x"])
    assert loader.nsamples == 25
    np.save(tmp_path / "x.npy", np.zeros((5, 4, 4), "u1"))
    fails([tmp_path / "c", tmp_path / "x.npy"], "TensorStore")


def test_damaged_stores(tmp_path):
    make_store(tmp_path / "s")
    about = json.loads((tmp_path / "s" / "store.json").read_text())

    def changed(match, **change):
        shutil.rmtree(tmp_path / "t", ignore_errors=True)
        shutil.copytree(tmp_path / "s", tmp_path / "t")
        (tmp_path / "t" / "store.json").write_text(
            json.dumps({**about, **change}))
        fails(tmp_path / "t", match)
    changed("50 rows.* 49", length=49)
    changed("not the store.json", version=2)
    changed("not the store.json", arrays=[])
    changed("not the store.json", length=-1)
    changed("is missing", arrays={"q": {}})
    changed("not a valid field name", arrays={"../x": {}})
    changed("not a valid field name", arrays={"a//x": {}})
    changed("not a valid field name", arrays={"n" * 64: {}})
    shutil.rmtree(tmp_path / "t")
    shutil.copytree(tmp_path / "s", tmp_path / "t")
    os.unlink(tmp_path / "t" / "next" / "x.npy")
    fails(tmp_path / "t", "next/x.npy.*is missing")
    (tmp_path / "s" / "reward.npy").write_bytes(b"\x93NUMPY\1\0")
    fails(tmp_path / "s", "reward.npy")


def test_a_store_json_of_others(tmp_path, xy):
    d = save(tmp_path / "d", **xy)
    (d / "store.json").write_text('{"format": "shop"}')
    check(d, xy)
    check(d, xy, format="arrays")


def test_torch(tmp_path, xy):
    torch = pytest.importorskip("torch")
    from penstock.torch import DataLoader
    from torch.utils import data as tud
    d = save(tmp_path / "d", **xy)
    theirs = tud.DataLoader(tud.TensorDataset(
        torch.from_numpy(xy["x"]), torch.from_numpy(xy["y"])), 16)
    for a, b in zip(DataLoader(d, 16, tuples=True), theirs, strict=True):
        assert torch.equal(a[0], b[0]) and torch.equal(a[1], b[1])
