"""A data set by index."""
import os
import pickle
import subprocess
import threading

import numpy as np
import penstock
import pytest


def test_index(data, x):
    ds = penstock.Dataset(data / "x.npy")
    assert len(ds) == 1000 and "1000" in repr(ds) and ds.format == "npy"
    assert np.array_equal(ds[17]["x"], x[17])
    assert np.array_equal(ds[-1]["x"], x[-1])
    assert np.array_equal(ds[np.int64(3)]["x"], x[3])
    for ids in ([5, 2, 2, 999], np.array([1, -1]), range(3), (7, 8)):
        got = ds[ids]
        assert got.ids.tolist() == [i % 1000 for i in ids]
        assert np.array_equal(got["x"].numpy(), x[list(ids)])
    assert ds[10:20:3].ids.tolist() == [10, 13, 16, 19]
    assert ds[np.arange(1000) % 500 == 2].ids.tolist() == [2, 502]
    for wrong in (1000, -1001, [0, 1000], [], "x", [1.5], 2**70,
                  np.ones(3, bool)):
        with pytest.raises((IndexError, ValueError, TypeError)):
            ds[wrong]
    with pytest.raises(IndexError, match="-1001"):
        ds[-1001]
    assert np.array_equal(ds[17]["x"], x[17])
    with pytest.raises(FileNotFoundError):
        penstock.Dataset(data / "none.npy")


def test_random_access_is_right(data, x):
    rng = np.random.default_rng(1)
    ds = penstock.Dataset(data / "x.npy", threads=3)
    for _ in range(200):
        ids = rng.integers(0, 1000, rng.integers(1, 300))
        got = ds[ids]
        assert np.array_equal(np.asarray(got["x"]), x[ids])
        assert np.array_equal(np.asarray(got.ids), ids)


def test_shared_units(tmp_path):
    """Samples that are unpacked out of common chunks."""
    h5py = pytest.importorskip("h5py")
    a = np.random.default_rng(0).normal(size=(500, 6)).astype("f4")
    with h5py.File(tmp_path / "a.h5", "w") as f:
        f.create_dataset("x", data=a, chunks=(32, 6), compression="gzip")
    ds = penstock.Dataset(tmp_path / "a.h5")
    for ids in ([3], [499, 0, 250], list(range(500)), [7] * 50):
        assert np.array_equal(np.asarray(ds[ids]["x"]), a[ids])


@pytest.mark.parametrize("module, name", [("h5py", "a.h5"), ("zarr", "a.zarr")])
def test_arrays_left_out(tmp_path, module, name):
    """Arrays that are no fields are counted by inspect, unless fields= chose."""
    m = pytest.importorskip(module)
    f = m.File(tmp_path / name, "w") if module == "h5py" else \
        m.open_group(str(tmp_path / name), mode="w")
    for key, value in (("x", np.zeros((50, 4))), ("z", np.arange(9))):
        f.create_dataset(key, data=value)
    if module == "h5py":
        f.close()

    def said(*args):
        return subprocess.run(
            [os.environ["PENSTOCK"], "inspect", tmp_path / name, *args],
            stdout=subprocess.PIPE, text=True, check=True).stdout

    assert "note: 1 array excluded" in said()
    assert "excluded" not in said("fields=x")


def test_ragged(data):
    ds = penstock.Dataset(data / "words")
    assert ds[9]["x"].tolist() == [[9] * 3] * 3
    rows = ds.__getitems__([0, 9, 13])
    assert [r["x"].shape for r in rows] == [(1, 3), (3, 3), (7, 3)]
    padded = penstock.Dataset(data / "words", shapes="padded")
    assert padded[9]["x"].shape == (3, 3)
    assert padded[[9, 13]]["x"].shape == (2, 7, 3)


def test_error_and_on(data):
    ds = penstock.Dataset(data / "damaged")
    for _ in range(3):
        with pytest.raises(penstock.DataError, match="7.npz"):
            ds[7]
        assert (ds[6]["x"] == 6).all()
        with pytest.raises(penstock.DataError):
            ds[[1, 7, 2]]
        assert ds[[1, 2]]["x"].shape == (2, 4, 4)


def test_subset(data):
    ds = penstock.Dataset(data / "x.npy", subset=[30, 10, 20])
    assert len(ds) == 3 and ds[1]["x"][0] == 80
    with pytest.raises(IndexError):
        ds[3]


def test_iterate(data, x):
    ds = penstock.Dataset(data / "x.npy")
    assert np.array_equal(np.stack([s["x"] for s in ds]), x)


def test_pickle(data, x):
    ds = pickle.loads(pickle.dumps(penstock.Dataset(
        data / "x.npy", dtype="float16")))
    assert ds[5]["x"].dtype == "float16" and len(ds) == 1000
    ds.close()
    assert ds[5]["x"].tolist() == x[5].tolist()


def test_threads(data, x):
    ds = penstock.Dataset(data / "x.npy")
    bad = []

    def run(seed):
        rng = np.random.default_rng(seed)
        for _ in range(100):
            ids = rng.integers(0, 1000, 20)
            if not np.array_equal(np.asarray(ds[ids]["x"]), x[ids]):
                bad.append(ids)
    threads = [threading.Thread(target=run, args=(i,)) for i in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not bad


def test_too_much_at_once(tmp_path):
    """What does not fit into memory= is that request's error; the ones before
    and after it come all the same."""
    from array import array
    from penstock import _penstock
    for i in range(20):
        np.savez_compressed(tmp_path / f"{i:02}.npz",
                            x=np.full((64, 2048), i, "f4"))
    engine = _penstock.Engine(
        [str(tmp_path)], [("memory", "6MiB"), ("batch_size", "20"),
                          ("format.samples", "first"), ("threads", "2"),
                          ("prefetch", "2")], True)
    every = list(range(0, 20 * 64, 64))
    for _ in range(3):
        for ids in (every, [3, 70], every, [5]):
            engine.ask(array("q", ids))
        for ids in (every, [3, 70], every, [5]):
            if ids is every:
                with pytest.raises(MemoryError, match="raise memory="):
                    engine.next()
                continue
            batch = engine.next()
            assert batch.ids.tolist() == ids
            assert batch["x"].numpy()[:, 0].tolist() == [i // 64 for i in ids]
    assert engine.next() is None
    assert engine.stats()["memory_peak_bytes"] <= 6 << 20
    ds = penstock.Dataset(tmp_path, samples="first", memory="6MiB",
                          batch_size=20)
    with pytest.raises(MemoryError):
        ds[every]
    assert ds[64]["x"][0] == 1
