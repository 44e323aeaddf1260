"""Views outlive batch, loader and module; memory goes back, and nothing
leaks."""
import gc
import os
import subprocess
import sys
import tracemalloc
import weakref

import numpy as np
import penstock
import pytest


def rss():
    with open("/proc/self/statm", encoding="ascii") as f:
        return int(f.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


@pytest.mark.parametrize("how", [np.asarray, np.from_dlpack, memoryview])
def test_views_outlive_all(data, x, how):
    views = []
    for seed in range(3):
        loader = penstock.Loader(data / "x.npy", 50, True, seed=seed)
        for n, batch in enumerate(loader):
            views.append((batch.ids.tolist(), how(batch["x"])))
            if n == 12:
                break
        loader.close()
        del loader, batch
    gc.collect()
    for ids, view in views:
        assert np.array_equal(np.asarray(view), x[ids])


def test_memory_is_used_again(data):
    """With nothing kept, a handful of batches serves a whole epoch."""
    loader = penstock.Loader(data / "x.npy", 10, prefetch=2)
    places = set()
    for batch in loader:
        places.add(np.asarray(batch["x"]).__array_interface__["data"][0])
    assert len(places) <= 4


def test_a_kept_view_is_not_written_over(data, x):
    loader = penstock.Loader(data / "x.npy", 10, True, prefetch=2)
    it = iter(loader)
    first = next(it)
    ids, view = first.ids.tolist(), np.asarray(first["x"])
    del first
    for _ in it:
        pass
    assert np.array_equal(view, x[ids])


def test_an_unused_capsule(data):
    loader = penstock.Loader(data / "x.npy", 10, prefetch=1)
    for batch in loader:
        batch["x"].__dlpack__()     # nobody takes it
    assert loader.stats()["memory_bytes"] < 10000


def test_loader_is_dropped(data):
    loader = penstock.Loader(data / "x.npy", 10)
    gone = weakref.ref(loader)
    it = iter(loader)
    next(it)
    del loader, it
    gc.collect()
    assert gone() is None


def test_views_at_exit(data):
    """Views that are still there when the interpreter goes down."""
    for more in ("", "loader.close(); del loader",
                 "del sys.modules['penstock']; del penstock"):
        code = f"""
import sys, penstock, numpy
loader = penstock.Loader({str(data / 'x.npy')!r}, 10, True,
                         transform=lambda b: b)
it = iter(loader)
kept = [next(it) for _ in range(5)]
views = [numpy.asarray(b["x"]) for b in kept] + [
    numpy.from_dlpack(b["x"]) for b in kept]
{more}
print(len(views))
"""
        p = subprocess.run([sys.executable, "-c", code], timeout=600, text=True,
                           capture_output=True)
        assert (p.returncode, p.stdout, p.stderr) == (0, "10\n", "")


def test_no_leak(data):
    """100,000 batches; every kind of view of some of them."""
    def work(n):
        loader = penstock.Loader(store="null", format="raw", record=64,
                                 batch_size=2, store_size=n * 128, threads=1)
        for k, batch in enumerate(loader):
            if k % 10 == 0:
                batch.numpy()
                batch["x"].shape
                memoryview(batch["x"])
                np.from_dlpack(batch["x"])
                batch.ids.tolist()
                batch.items()
    field, = [f[0] for f in penstock.Loader(
        store="null", format="raw", record=64, store_size=640).fields]
    assert field == "x"
    work(20000)
    gc.collect()
    tracemalloc.start()
    work(1000)
    gc.collect()
    before, start = tracemalloc.take_snapshot(), rss()
    work(100000)
    gc.collect()
    after, end = tracemalloc.take_snapshot(), rss()
    tracemalloc.stop()
    grown = sum(s.size_diff for s in after.compare_to(before, "filename"))
    assert grown < 200000   # two bytes a batch: no object is that small
    # a sanitizer keeps what was freed for a while
    if not os.environ.get("SANITIZE"):
        assert end - start < 2 << 20


def _used():
    gc.collect()
    return sys.getallocatedblocks()


def test_no_reference_is_left(data):
    """Everything there is, over and over: not one object more."""
    ds = penstock.Dataset(data / "tables", samples="first")
    loader = penstock.Loader(data / "words", 7, True, shapes="padded")
    words = penstock.Loader(data / "words", 7)
    ahead = penstock.Loader(data / "x.npy", 100, True, transform=lambda b: b,
                            collate="numpy")
    bad = penstock.Loader(data / "damaged", 2)

    def once():
        ds[3], ds[[1, 2]], ds[-1], ds[2:9:3]
        for wrong in ([100], "x", []):
            try:
                ds[wrong]
            except (IndexError, ValueError, TypeError):
                pass
        for batch in loader:
            batch["x"].shapes.tolist(), batch["x"].dtype, repr(batch)
            batch.get("y"), "y" in batch, list(batch), batch.values()
        for batch in words:
            x = batch["x"]
            x[0].tolist(), x.values.numpy(), x.offsets, x.shapes, repr(x)
            try:
                memoryview(x)
            except TypeError:
                pass
        for batch in ahead:
            loader.state_dict()
        it = iter(ahead)
        next(it)
        ahead.set_epoch(0)
        try:
            next(it)
        except RuntimeError:
            pass
        ahead.load_state_dict(ahead.state_dict())
        try:
            for batch in bad:
                pass
        except (ValueError, OSError):
            pass
        bad.set_epoch(0)
        loader.stats(), loader.about(), loader.labels("x"), loader.fields
        try:
            penstock.Loader(data / "none.npy")
        except OSError:
            pass
        try:
            penstock.Loader(data / "x.npy", colour="red")
        except ValueError:
            pass

    types = penstock.Batch, penstock.Array, penstock.Ragged
    for _ in range(5):
        once()
    held, before = list(map(sys.getrefcount, types)), _used()
    for _ in range(300):
        once()
    grown = _used() - before
    # Python keeps some 80 to 130 lists and tuples that it freed
    assert grown < 250, f"{grown} blocks"
    assert list(map(sys.getrefcount, types)) == held


def test_items(data, x):
    """Whatever NumPy takes as an index, tuples too."""
    batch = next(iter(penstock.Loader(data / "x.npy", 10)))
    a = batch["x"]
    for key in (3, -1, slice(2, 5), (3, 4), (slice(None), 0), (..., 1),
                [1, 2], (), None):
        assert np.array_equal(a[key], x[:10][key])
    assert np.array_equal(np.asarray(a, dtype="i8"), x[:10].astype("i8"))


def test_names_of_any_bytes(tmp_path):
    """Errors name files whose names are no text, too: as \\xNN."""
    name = os.fsdecode(bytes(tmp_path) + b"/no-\xff\xe4")
    with pytest.raises(FileNotFoundError) as e:
        penstock.Loader(name, 2)
    assert e.value.filename.endswith(r"no-\xff\xe4")
    os.mkdir(name)
    for i in range(4):
        np.savez(os.path.join(name, f"{i}.npz"), x=np.full((4, 4), i))
    bad = os.path.join(name, os.fsdecode(b"\xfe.npz"))
    with open(os.path.join(name, "0.npz"), "rb") as f:
        raw = bytearray(f.read())
    raw[len(raw) // 3] ^= 255
    with open(bad, "wb") as f:
        f.write(raw)
    loader = penstock.Loader(name, 2, on_error="skip")
    for _ in loader:
        pass
    for _, where, why in loader.skipped():
        assert where.endswith(r"\xfe.npz") and why
