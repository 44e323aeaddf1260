"""TensorStore, against NumPy."""
import gc
import os
import threading

import numpy as np
import penstock
import pytest
from penstock import TensorStore

SPEC = {"x": ((3, 4), "f4"), "a": {"b": ((), "i8")}, "a/c": (5, "u1")}


def make(path, n=100):
    rng = np.random.default_rng(0)
    want = {"x": rng.normal(size=(n, 3, 4)).astype("f4"),
            "a/b": rng.integers(0, 99, n),
            "a/c": rng.integers(0, 99, (n, 5)).astype("u1")}
    with TensorStore.create(path, SPEC, length=n) as ts:
        for k, v in want.items():
            ts[k][:] = v
    return want


def test_round_trip(tmp_path):
    want = make(tmp_path / "t")
    ts = TensorStore.open(tmp_path / "t")
    assert len(ts) == 100 and ts.keys() == ["x", "a/b", "a/c"]
    assert "a/b" in ts and "b" not in ts and "100 rows" in repr(ts)
    for k, v in want.items():
        assert np.array_equal(np.asarray(ts[k]), v)
        file = np.load(tmp_path / "t" / (k + ".npy"))
        assert file.dtype == v.dtype and np.array_equal(file, v)
        mapped = np.load(tmp_path / "t" / (k + ".npy"), mmap_mode="r")
        assert np.array_equal(mapped, v)
    # and by penstock itself, as any other file
    assert penstock.Loader(tmp_path / "t" / "x.npy").nsamples == 100


def test_index(tmp_path):
    want = make(tmp_path / "t")
    ts = TensorStore.open(tmp_path / "t")
    mask = want["a/b"] > 50
    for i in (3, -1, slice(5, 50, 7), [4, 0, 99, 4, -2], mask,
              np.array([7, 8], "i4"), np.array([], "i8"), range(3)):
        got = ts[i]
        j = list(i) if isinstance(i, range) else i
        assert np.array_equal(got["x"], want["x"][j])
        assert np.array_equal(got["a"]["b"], want["a/b"][j])
        assert np.array_equal(got["a"]["c"], want["a/c"][j])
    assert ts["a"]["b"][[3, 4]].tolist() == want["a/b"][3:5].tolist()
    assert ts["x"].shape == (100, 3, 4) and ts["x"].dtype == "f4"
    for wrong in ([100], [-101], [[1, 2]], [0.5], np.ones(99, bool)):
        with pytest.raises(IndexError):
            ts[wrong]
    with pytest.raises(KeyError):
        ts["y"]


def test_gather_into(tmp_path):
    want = make(tmp_path / "t")
    ts = TensorStore.open(tmp_path / "t")
    out = {"x": np.zeros((3, 3, 4), "f4"), "a": {"b": np.zeros(3, "i8")}}
    got = ts.gather([5, 6, 7], out=out)
    assert got["x"] is out["x"]
    assert np.array_equal(out["x"], want["x"][5:8])
    assert np.array_equal(out["a"]["b"], want["a/b"][5:8])
    for wrong in (np.zeros((2, 3, 4), "f4"), np.zeros((3, 3, 4))):
        with pytest.raises(ValueError):
            ts.gather([5, 6, 7], out={"x": wrong})


def test_memory_is_used_again_but_not_while_looked_at(tmp_path):
    make(tmp_path / "t")
    ts = TensorStore.open(tmp_path / "t")
    a = ts[[1, 2, 3]]["x"]
    copy, place = a.copy(), a.__array_interface__["data"][0]
    b = ts[[4, 5, 6]]["x"]
    assert np.array_equal(a, copy)
    del a, b
    gc.collect()
    places = {ts[[i]]["x"].__array_interface__["data"][0] for i in range(50)}
    assert len(places) < 10 and place


def test_gather_into_with_an_array(tmp_path):
    """The short way gives what the long way gives, and leaves to it what it
    cannot do."""
    ts = TensorStore.create(
        tmp_path / "s", {"x": ((3,), "float32"), "y": ((), "int16")}, 100)
    ts["x"][:] = np.arange(300).reshape(100, 3)
    ts["y"][:] = np.arange(100)
    ids = np.array([5, -1, 99, 0, 5])
    out = {"x": np.zeros((5, 3), "float32"), "y": np.zeros(5, "int16")}
    assert ts.gather(ids, out)["x"] is out["x"]
    assert out["x"][:, 0].tolist() == [15, 297, 297, 0, 15]
    assert out["y"].tolist() == [5, 99, 99, 0, 5]
    spread = np.zeros((5, 6), "float32")[:, ::2]
    for x in (np.zeros((5, 4), "float32"), np.zeros((5, 3), "int32"),
              np.zeros((4, 3), "float32"), np.zeros((5, 3)), spread):
        with pytest.raises((ValueError, BufferError)):
            ts.gather(ids, {"x": x, "y": out["y"]})
    with pytest.raises(IndexError):
        ts.gather(np.array([1, 100, 1, 1, 1]), out)
    with pytest.raises(IndexError):
        ts.gather(np.array([[1, 2, 3, 4, 5]]), out)
    every = np.arange(10)[::2]   # not one after another in memory
    assert ts.gather(every, out)["y"].tolist() == [0, 2, 4, 6, 8]
    ts.append({"x": np.ones((1, 3), "float32"), "y": [7]})
    assert ts.gather(np.array([100, 0, 1, 2, 3]), out)["y"][0] == 7
    ts.close()
    with pytest.raises(ValueError, match="closed"):
        ts.gather(ids, out)


def test_large_gather_is_right(tmp_path):
    """Enough to be shared out among threads."""
    rng = np.random.default_rng(0)
    a = rng.integers(0, 255, (3000, 1000)).astype("u1")
    with TensorStore.create(tmp_path / "t", {"x": (1000, "u1"),
                                             "y": ((), "i4")}, 3000) as ts:
        ts["x"][:] = a              # by several threads
        ts["y"][:] = np.arange(3000)
    ts = TensorStore.open(tmp_path / "t")
    for n in (1, 100, 1000, 5000):
        ids = rng.integers(-3000, 3000, n)
        got = ts[ids]
        assert np.array_equal(got["x"], a[ids])
        assert np.array_equal(got["y"], ids % 3000)
    ids[4321] = 3000
    with pytest.raises(IndexError, match="3000"):
        ts[ids]


def test_large_writes_in_any_order(tmp_path):
    """Rows that have memory already, and rows that have none yet."""
    rng = np.random.default_rng(0)
    a = rng.integers(0, 255, (4000, 1000)).astype("u1")
    ts = TensorStore.create(tmp_path / "t", {"x": (1000, "u1")}, 4000)
    view = ts["x"][:]
    for start, stop in ((1000, 2000), (0, 500), (500, 1500), (3000, 4000),
                        (1900, 3100), (7, 3999)):
        ts["x"][start:stop] = a[start:stop][::-1]
        assert np.array_equal(view[start:stop], a[start:stop][::-1])
        ts["x"][start:stop] = a[start:stop]
        assert np.array_equal(view[start:stop], a[start:stop])
    ts.append({"x": a})
    ts["x"] = np.concatenate([a, a])
    ts.close()
    got = np.load(tmp_path / "t" / "x.npy")
    assert np.array_equal(got, np.concatenate([a, a]))


def test_write(tmp_path):
    ts = TensorStore.create(tmp_path / "t", SPEC, length=20)
    ts[3] = {"x": np.ones((3, 4)), "a": {"b": 7}}
    ts[5:8] = {"a/b": [1, 2, 3]}
    ts[[9, 11]] = {"a/b": [4, 5]}
    ts["a/c"] = np.arange(5)
    ts["x"][0, 1] = 3
    with pytest.raises(KeyError):
        ts[0] = {"z": 1}
    with pytest.raises(ValueError):
        ts["x"][0:2] = np.zeros((3, 3, 4))
    ts.close()
    ts.close()
    with pytest.raises(ValueError, match="closed"):
        ts[0]
    ts = TensorStore.open(tmp_path / "t")
    assert ts["a/b"][:12].tolist() == [0, 0, 0, 7, 0, 1, 2, 3, 0, 4, 0, 5]
    assert ts[3]["x"].sum() == 12 and ts[19]["a"]["c"].tolist() == [0, 1, 2, 3,
                                                                    4]
    assert ts[0]["x"][1].tolist() == [3] * 4
    with pytest.raises(ValueError, match="r\\+"):
        ts["x"][0] = 1
    with pytest.raises(ValueError):
        ts.append({})


def test_append_and_grow(tmp_path):
    with TensorStore.create(tmp_path / "t", {"x": (2, "f4"),
                                             "y": ((), "i8")}) as ts:
        assert len(ts) == 0
        for i in range(100):
            assert ts.append({"x": np.full((i % 3, 2), i),
                              "y": [i] * (i % 3)}) == len(ts) - i % 3
        ts.grow(120)
        with pytest.raises(ValueError):
            ts.grow(5)
        with pytest.raises(KeyError, match="y"):
            ts.append({"x": np.zeros((1, 2))})
        with pytest.raises(ValueError):
            ts.append({"x": np.zeros((1, 2)), "y": [1, 2]})
    want = [i for i in range(100) for _ in range(i % 3)]
    ts = TensorStore.open(tmp_path / "t", "r+")
    assert ts["y"][:len(want)].tolist() == want
    assert ts["y"][len(want):].tolist() == [0] * (120 - len(want))
    assert np.load(tmp_path / "t" / "y.npy").shape == (120,)
    ts.append({"x": np.zeros((1, 2)), "y": [77]})
    ts.close(sync=True)
    assert TensorStore.open(tmp_path / "t")["y"][120] == 77
    assert os.path.getsize(tmp_path / "t" / "y.npy") == 4096 + 121 * 8


def test_views_survive_growth(tmp_path):
    ts = TensorStore.create(tmp_path / "t", {"x": ((), "i8")}, 4)
    view = ts["x"][:]
    view[:] = [1, 2, 3, 4]
    ts.grow(1 << 20)
    view[0] = 9
    assert ts["x"][0] == 9      # it is the same memory
    ts.close()
    assert view.tolist() == [9, 2, 3, 4]


def test_threads_write_at_once(tmp_path):
    ts = TensorStore.create(tmp_path / "t", {"x": (100, "f4"),
                                             "y": ((), "i8")})

    def run(k):
        for i in range(50):
            start = ts.reserve(10)
            ts[start:start + 10] = {"x": np.full((10, 100), k),
                                    "y": np.full(10, k)}
    threads = [threading.Thread(target=run, args=(k,)) for k in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    ts.close()
    ts = TensorStore.open(tmp_path / "t")
    assert len(ts) == 2000
    assert np.bincount(ts["y"][:]).tolist() == [500] * 4
    assert (np.asarray(ts["x"])[:, 0] == np.asarray(ts["y"])).all()
    assert (np.asarray(ts["x"]) == np.asarray(ts["y"])[:, None]).all()


def test_whole_or_not_there(tmp_path):
    ts = TensorStore.create(tmp_path / "t", SPEC, length=3)
    assert not (tmp_path / "t").exists()
    ts.close()
    assert (tmp_path / "t").is_dir()
    with pytest.raises(FileExistsError):
        TensorStore.create(tmp_path / "t", SPEC)
    with pytest.raises(RuntimeError):
        with TensorStore.create(tmp_path / "u", SPEC, length=3):
            raise RuntimeError
    ts = TensorStore.create(tmp_path / "v", SPEC, length=3)
    del ts
    gc.collect()
    assert os.listdir(tmp_path) == ["t"]
    with TensorStore.create(tmp_path / "t", {"y": ((), "f8")}, 2,
                            overwrite=True):
        assert len(TensorStore.open(tmp_path / "t")) == 3
    assert TensorStore.open(tmp_path / "t").keys() == ["y"]
    assert os.listdir(tmp_path) == ["t"]


def test_damaged(tmp_path):
    make(tmp_path / "t")
    about = tmp_path / "t" / "store.json"
    good = about.read_text()
    for text in ("", "{}", "[]", good.replace("penstock-tensors", "other"),
                 good.replace('"length": 100', '"length": 100000000'),
                 good.replace('"length": 100', '"length": -1'),
                 good.replace('"a/b"', '"../b"')):
        about.write_text(text)
        with pytest.raises((penstock.Error, OSError)):
            TensorStore.open(tmp_path / "t")
    about.write_text(good)
    file = tmp_path / "t" / "x.npy"
    raw = file.read_bytes()
    for bad in (b"", raw[:50], raw[:5000], b"x" * 5000):
        file.write_bytes(bad)
        with pytest.raises(penstock.DataError):
            TensorStore.open(tmp_path / "t")
    file.write_bytes(raw)
    assert len(TensorStore.open(tmp_path / "t")) == 100
    with pytest.raises(FileNotFoundError):
        TensorStore.open(tmp_path / "none")
    for spec in ({}, {"../x": (1, "f4")}, {"": (1, "f4")}, {"x": (1, object)}):
        with pytest.raises(ValueError):
            TensorStore.create(tmp_path / "w", spec)
    assert sorted(os.listdir(tmp_path)) == ["t"]


def test_odd_types(tmp_path):
    t = np.array(["2020-01-01", "2021-05-05"], "M8[D]")
    v = np.array([(1, 2.5), (3, 4.5)], [("a", "i4"), ("b", "f8")])
    with TensorStore.create(tmp_path / "t", {
            "t": ((), t.dtype), "v": ((), v.dtype), "s": ((), "S3"),
            "big": ((), ">f4"), "none": (0, "f4"), "h": (2, "f2")}, 2) as ts:
        ts["t"][:] = t
        ts["v"][:] = v
        ts["s"][:] = [b"abc", b"d"]
        ts["big"][:] = [1, 2]
        ts["h"][:] = 3
    ts = TensorStore.open(tmp_path / "t")
    got = ts[[1, 0]]
    assert got["t"].tolist() == t[::-1].tolist()
    assert got["v"].tolist() == v[::-1].tolist()
    assert got["s"].tolist() == [b"d", b"abc"]
    assert got["big"].tolist() == [2, 1]
    assert got["none"].shape == (2, 0)
