"""transform= and collate=."""
import threading

import numpy as np
import penstock
import pytest


def test_transform(data, x):
    main = threading.get_ident()

    def f(batch):
        assert threading.get_ident() != main
        return np.asarray(batch["x"]) * 2, np.asarray(batch.ids)
    n = 0
    for twice, ids in penstock.Loader(data / "x.npy", 64, True, transform=f):
        assert np.array_equal(twice, x[ids] * 2)
        n += len(ids)
    assert n == 1000


def test_order_is_kept(data):
    loader = penstock.Loader(data / "x.npy", 10, transform=lambda b: b.position)
    assert list(loader) == list(range(0, 1000, 10))
    assert list(loader) == list(range(0, 1000, 10))


def test_at_most_ahead(data):
    made, most = [0], [0]
    lock = threading.Lock()

    def f(batch):
        with lock:
            made[0] += 1
        return batch.position
    taken = 0
    for _ in penstock.Loader(data / "x.npy", 10, transform=f, ahead=3):
        with lock:
            most[0] = max(most[0], made[0] - taken)
        taken += 1
    assert most[0] <= 5


def test_exception_at_its_batch(data):
    def f(batch):
        if batch.position == 300:
            raise KeyError("three hundred")
        return batch.position
    loader = penstock.Loader(data / "x.npy", 100, transform=f, ahead=8)
    got = []
    with pytest.raises(KeyError, match="three hundred"):
        for p in loader:
            got.append(p)
    assert got == [0, 100, 200]
    assert loader.state_dict()["position"] == 300
    # the loader is as good as before
    got = []
    with pytest.raises(KeyError):
        for p in loader:
            got.append(p)
    assert got == [0, 100, 200]


def test_engine_error_at_its_batch(data):
    loader = penstock.Loader(data / "damaged", 1, ahead=8,
                             transform=lambda b: b.ids.tolist()[0])
    got = []
    with pytest.raises(penstock.DataError):
        for i in loader:
            got.append(i)
    assert got == list(range(7))


def test_collate(data):
    main = threading.get_ident()

    def f(batch):
        assert threading.get_ident() == main
        return batch.nsamples
    assert sum(penstock.Loader(data / "x.npy", 64, collate=f)) == 1000
    for batch in penstock.Loader(data / "x.npy", 64, collate="numpy"):
        assert type(batch["x"]) is np.ndarray
    both = penstock.Loader(data / "x.npy", 64, transform="numpy",
                           collate=lambda d: len(d["x"]))
    assert sum(both) == 1000
    bad = penstock.Loader(data / "x.npy", 64, collate=lambda b: 1 // 0)
    with pytest.raises(ZeroDivisionError):
        next(iter(bad))


def test_left_early(data):
    loader = penstock.Loader(data / "x.npy", 10, True,
                             transform=lambda b: (b.epoch, b.position))
    for want in range(5):
        for n, (epoch, position) in enumerate(loader):
            assert (epoch, position) == (want, n * 10)
            if n == want:
                break


def test_slow_consumer_does_not_hold_the_thread(data):
    """A loader is dropped while its hook has not come back."""
    go = threading.Event()

    def f(batch):
        go.wait(10)
        return batch
    loader = penstock.Loader(data / "x.npy", 10, transform=f)
    it = iter(loader)
    del it
    loader.close()
    go.set()


def test_closed_meanwhile(data):
    """What was made ahead may still come, and then an error: no waiting."""
    for taken in range(3):
        loader = penstock.Loader(data / "x.npy", 10, transform=lambda b: 1)
        it = iter(loader)
        for _ in range(taken + 1):
            next(it)
        loader.close()
        with pytest.raises(ValueError, match="closed"):
            for _ in range(5):
                next(it)
