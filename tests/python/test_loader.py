"""Batches against what NumPy reads, and epochs."""
import gc
import threading
import warnings

import numpy as np
import penstock
import pytest
from conftest import ids_of


@pytest.mark.parametrize("shuffle", [False, True, "block"])
@pytest.mark.parametrize("threads", [1, 3])
def test_values(data, x, shuffle, threads):
    loader = penstock.Loader(data / "x.npy", 96, shuffle, threads=threads)
    seen = []
    assert len(loader) == 11
    for batch in loader:
        ids = np.asarray(batch.ids)
        assert np.array_equal(np.asarray(batch["x"]), x[ids])
        seen += ids.tolist()
    assert sorted(seen) == list(range(1000))
    assert (seen == sorted(seen)) == (shuffle is False)


def test_paths(data):
    many = [data / "tables" / f"{i}.npz" for i in range(5)]
    for path in (data / "tables", str(data / "tables"), many,
                 str(data / "tables") + "/*.npz"):
        assert penstock.Loader(path, samples="first").nsamples == 100


def test_mapping(data):
    batch = next(iter(penstock.Loader(data / "tables", 7, samples="first")))
    assert list(batch) == batch.keys() == ["x", "y"]
    assert len(batch) == 2 and "x" in batch and "z" not in batch
    assert batch.get("z") is None and batch.get("z", 3) == 3
    assert batch.nsamples == 7 and batch.epoch == 0 and batch.position == 0
    assert batch.end == 7 and batch.nskipped == 0
    with pytest.raises(KeyError):
        batch["z"]
    from collections.abc import Mapping
    assert isinstance(batch, Mapping)
    assert dict(batch.items()).keys() == {"x", "y"}
    assert [a.shape for a in batch.values()] == [(7, 4), (7,)]
    y = batch["y"]
    assert (y.dtype, y.ndim, y.nbytes, len(y)) == ("int64", 1, 56, 7)
    assert y.tolist() == list(range(7)) and y[2] == 2
    assert memoryview(y).format == "q" and memoryview(y).tolist()[6] == 6
    assert batch.numpy()["y"].dtype == "int64"
    assert "float32" in repr(batch["x"]) and "7 samples" in repr(batch)
    with pytest.raises(TypeError):
        penstock.Batch()


def test_every_dtype(tmp_path):
    for name in ("bool int8 uint8 int16 uint16 int32 uint32 int64 uint64 "
                 "float16 float32 float64 longdouble complex64 complex128 "
                 "clongdouble").split():
        a = (np.arange(24).reshape(6, 4) % 5).astype(name)
        np.save(tmp_path / f"{name}.npy", a)
        batch = next(iter(penstock.Loader(tmp_path / f"{name}.npy", 6)))
        got = np.asarray(batch["x"])
        assert got.dtype == a.dtype and np.array_equal(got, a)
        assert np.array_equal(np.array(batch["x"], dtype="c16"),
                              a.astype("c16"))
        if name not in ("longdouble", "clongdouble", "bool"):
            assert np.array_equal(np.from_dlpack(batch["x"]), a)
    with pytest.raises(BufferError):
        batch["x"].__dlpack__()
    assert batch["x"].__dlpack_device__() == (1, 0)


def test_zero_copy(data):
    batch = next(iter(penstock.Loader(data / "x.npy", 10)))
    a, b = np.asarray(batch["x"]), np.from_dlpack(batch["x"])
    a[3, 3] = -5        # a batch is the caller's
    assert b[3, 3] == -5 and memoryview(batch["x"])[3, 3] == -5


def test_ragged(data):
    batch = next(iter(penstock.Loader(data / "words", 20)))
    r = batch["x"]
    assert isinstance(r, penstock.Ragged) and len(r) == 20
    values, offsets, shapes = batch.numpy()["x"]
    for i in range(20):
        want = np.full((1 + i % 7, 3), i)
        assert np.array_equal(np.asarray(r[i]), want)
        assert np.array_equal(
            values[offsets[i]:offsets[i + 1]].reshape(shapes[i]), want)
    assert r.dtype == "int32" and "20 rows" in repr(r)
    with pytest.raises(IndexError):
        r[20]
    assert len(list(r)) == 20


def test_padded(data):
    batch = next(iter(penstock.Loader(data / "words", 20, shapes="padded")))
    a = batch["x"]
    assert a.shape == (20, 7, 3)
    for i, n in enumerate(np.asarray(a.shapes)[:, 0]):
        assert n == 1 + i % 7
        assert (np.asarray(a)[i, :n] == i).all()
        assert (np.asarray(a)[i, n:] == 0).all()
    dense = next(iter(penstock.Loader(data / "tables")))
    assert dense["x"].shapes is None


def test_epochs(data):
    loader = penstock.Loader(data / "x.npy", 100, True, seed=3)
    first, second = ids_of(loader), ids_of(loader)
    assert first != second and loader.epoch == 2
    again = penstock.Loader(data / "x.npy", 100, True, seed=3)
    assert ids_of(again) == first
    # left early: the next iteration is the next epoch, from its start
    again.set_epoch(0)
    for batch in again:
        break
    assert ids_of(again) == second
    # asked for, but nothing taken: nothing is passed over
    again.set_epoch(0)
    iter(again)
    assert ids_of(again) == first
    again.set_epoch(1)
    assert ids_of(again) == second
    with pytest.raises(ValueError):
        again.set_epoch(-1)


def test_epochs_end(data):
    loader = penstock.Loader(data / "x.npy", 100, epochs=2)
    assert [len(ids_of(loader)) for _ in range(4)] == [10, 10, 0, 0]


def test_two_iterations_at_once(data):
    loader = penstock.Loader(data / "x.npy", 100)
    one = iter(loader)
    next(one)
    two = iter(loader)
    assert next(two).epoch == 1
    with pytest.raises(RuntimeError):
        next(one)


def test_fields(data):
    batch = next(iter(penstock.Loader(data / "tables", samples="first",
                                      fields=["y"])))
    assert batch.keys() == ["y"]
    loader = penstock.Loader(data / "tables", samples="first", fields="x")
    assert next(iter(loader)).keys() == ["x"]
    with pytest.raises((ValueError, OSError), match="z"):
        penstock.Loader(data / "tables", samples="first", fields=["z"])


def test_dtype(data, x):
    batch = next(iter(penstock.Loader(data / "x.npy", 8, dtype="float16")))
    assert np.array_equal(np.asarray(batch["x"]), x[:8].astype("f2"))
    batch = next(iter(penstock.Loader(data / "x.npy", 8, dtype=np.int32)))
    assert batch["x"].dtype == "int32"


def test_subset(data):
    def ids(s):
        return sum(ids_of(penstock.Loader(data / "x.npy", 64, subset=s)), [])
    assert ids(slice(10, 20, 3)) == [10, 13, 16, 19]
    assert ids([5, 3, 999]) == [5, 3, 999]
    assert ids(np.arange(1000) % 100 == 7) == list(range(7, 1000, 100))
    assert ids("0:3") == [0, 1, 2]
    with pytest.raises(ValueError):
        ids(["a", "b"])


def test_weights(data):
    w = np.zeros(1000)
    w[[3, 4]] = 1
    loader = penstock.Loader(data / "x.npy", 100, sampler="weighted",
                             weights=w)
    assert set(sum(ids_of(loader), [])) == {3, 4}


def test_tail(data):
    def sizes(**kw):
        return [b.nsamples for b in penstock.Loader(data / "x.npy", 300, **kw)]
    assert sizes() == [300, 300, 300, 100]
    assert sizes(drop_last=True) == [300] * 3
    assert sizes(tail="pad") == [300] * 4
    for kw in ({"drop_last": True}, {"tail": "drop"}):
        with pytest.raises(penstock.SettingError, match="fill a batch"):
            penstock.Loader(data / "x.npy", 1001, **kw)
    with pytest.raises(penstock.SettingError, match="tail=pad"):
        sizes(tail="pad", drop_last=True)


def test_kept_batches(data, x):
    """The pool grows for who keeps everything, and shrinks again."""
    loader = penstock.Loader(data / "x.npy", 10, True, prefetch=2)
    kept = list(loader)
    assert len(kept) == 100
    for b in kept:
        assert np.array_equal(np.asarray(b["x"]), x[np.asarray(b.ids)])
    much = loader.stats()["memory_bytes"]
    del kept, b
    gc.collect()
    assert loader.stats()["memory_bytes"] < much / 4
    assert len(list(loader)) == 100


def test_kept_batches_and_budget(data):
    loader = penstock.Loader(data / "x.npy", 100, memory=40000)
    kept = []
    with pytest.raises(MemoryError, match="holds all"):
        for b in loader:
            kept.append(b)
    assert len(kept) >= 2


def test_errors(data, tmp_path):
    with pytest.raises(FileNotFoundError):
        penstock.Loader(tmp_path / "none.npy")
    (tmp_path / "bad.npy").write_bytes(b"nothing")
    with pytest.raises(penstock.DataError, match="bad.npy"):
        penstock.Loader(tmp_path / "bad.npy")
    with pytest.raises(penstock.DataError, match="7.npz"):
        for batch in penstock.Loader(data / "damaged", 1):
            pass
    assert issubclass(penstock.DataError, (penstock.Error, ValueError))


@pytest.mark.parametrize("policy", ["skip", "substitute"])
def test_on_error(data, policy):
    loader = penstock.Loader(data / "damaged", 5, on_error=policy, epochs=1)
    n = sum(b.nsamples for b in loader)
    assert n == (9 if policy == "skip" else 10)
    (sample, where, why), = loader.skipped()
    assert sample == 7 and where.endswith("7.npz") and why
    assert loader.stats()["nskipped" if policy == "skip" else
                          "nsubstituted"] == 1


@pytest.mark.parametrize("kind", [penstock.Loader, penstock.Dataset])
def test_doubtful_data(tmp_path, kind):
    """What is left out is said, once for each opening."""
    file = tmp_path / "a.fa"
    file.write_text(">a\nACGT\n>b\nAC\n")
    with pytest.warns(UserWarning, match="1 of 2 records are shorter than"):
        kind(file, window=4, last="back")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        kind(file)


def test_after_an_error(data):
    """The next iteration is the next epoch, as after any other end."""
    loader = penstock.Loader(data / "damaged", 1)
    for _ in range(2):
        got = []
        with pytest.raises(penstock.DataError):
            for batch in loader:
                got.append(batch.ids.tolist()[0])
        assert got == list(range(7))


def test_close(data):
    with penstock.Loader(data / "x.npy", 100) as loader:
        batch = next(iter(loader))
    assert loader.closed and "closed" in repr(loader)
    assert np.asarray(batch["x"])[0, 1] == 1
    with pytest.raises(ValueError, match="closed"):
        next(iter(loader))
    loader.close()


def test_close_while_waiting(data):
    """Another thread closes what this one waits for."""
    loader = penstock.Loader(data / "x.npy", 100, store="fault",
                             delay="300ms", under="posix", threads=1,
                             queue_depth=1)
    timer = threading.Timer(0.05, loader.close)
    timer.start()
    with pytest.raises(ValueError, match="closed"):
        next(iter(loader))
    timer.join()


def test_stats(data):
    loader = penstock.Loader(data / "x.npy", 100)
    for _ in loader:
        pass
    s = loader.stats()
    assert s["nsamples"] == 1000 and s["nbatches"] == 10
    assert s["payload_bytes"] == 32000 and s["wait_p50_s"] <= s["wait_p100_s"]
    assert loader.fields == [("x", "float32", (8,), "dense")]
    assert loader.format == "npy" and loader.path_of(5).endswith("x.npy")
    assert "samples" not in loader.about() or loader.about()


def test_many_dropped(data):
    """A hundred loaders, each dropped in the middle of an epoch."""
    before = threading.active_count()
    for i in range(100):
        it = iter(penstock.Loader(data / "x.npy", 10, True, seed=i,
                                  transform=(lambda b: b) if i % 2 else None))
        next(it)
        next(it)
    del it
    gc.collect()
    for t in threading.enumerate():
        if t.name == "penstock-transform":
            t.join(10)
    assert threading.active_count() <= before


def test_labels_of_a_field_that_is_left_out(data):
    """labels= and weights= may name a field that fields= does not deliver."""
    settings = {"samples": "first", "fields": ["x"], "sampler": "balanced"}
    loader = penstock.Loader(data / "tables", 10, labels="field:y", **settings)
    batch = next(iter(loader))
    assert batch.keys() == ["x"] and len(batch.ids) == 10
    with pytest.raises((penstock.DataError, penstock.SettingError),
                       match="one number per sample"):
        penstock.Loader(data / "tables", 10, labels="field:x",
                        label_name="kind", **{**settings, "fields": ["y"]})
    with pytest.raises(OSError, match="no member 'z"):
        penstock.Loader(data / "tables", 10, labels="field:z", **settings)


def test_what_is_no_number_or_path(data):
    loader = penstock.Loader(data / "x.npy", 10)
    state = loader.state_dict()
    for wrong in (-1, 2**64, 2**70, "x", None):
        with pytest.raises(penstock.SettingError):
            loader.load_state_dict({**state, "position": wrong})
    with pytest.raises(penstock.SettingError):
        loader.set_epoch(2**64)
    for wrong in (None, 5, [None]):
        with pytest.raises(TypeError, match="path"):
            penstock.Loader(wrong)
    assert len(ids_of(loader)) == 100


def test_rows_of_an_array(data, x):
    batch = next(iter(penstock.Loader(data / "x.npy", 10)))
    assert [r.tolist() for r in batch["x"]] == x[:10].tolist()
    assert list(batch.ids) == list(range(10))
