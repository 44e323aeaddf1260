"""fork, spawn, and Ctrl-C."""
import multiprocessing
import os
import signal
import subprocess
import sys
import threading

import numpy as np
import penstock
import pytest


def in_child(fn):
    """Runs fn in a forked child; what it returns, as text."""
    r, w = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            os.write(w, str(fn()).encode())
        except BaseException as e:
            os.write(w, repr(e).encode())
        finally:
            os._exit(0)
    os.close(w)
    with os.fdopen(r, "rb") as f:
        out = f.read().decode()
    assert os.waitpid(pid, 0)[1] == 0
    return out


def test_loader_after_fork(data):
    loader = penstock.Loader(data / "x.npy", 10, True)
    it = iter(loader)
    next(it)
    kept = np.asarray(next(it)["x"])
    assert "before fork" in in_child(lambda: next(it))
    assert "before fork" in in_child(lambda: len(loader))
    # the child may use what it has, drop it, and open its own
    assert in_child(lambda: kept.shape) == "(10, 8)"

    def child():
        nonlocal loader, it, kept
        del loader, it, kept
        return sum(b.nsamples for b in penstock.Loader(data / "x.npy", 10))
    assert in_child(child) == "1000"
    assert next(it).nsamples == 10      # the parent goes on


def test_transform_after_fork(data):
    """Its thread is not in the child, where nothing would ever come."""
    loader = penstock.Loader(data / "x.npy", 10, transform=lambda b: b)
    it = iter(loader)
    next(it)
    assert "before fork" in in_child(lambda: next(it))
    assert "before fork" in in_child(lambda: next(iter(loader)))
    assert in_child(loader.close) == "None"
    assert next(it).nsamples == 10


def test_dataset_after_fork(data, x):
    ds = penstock.Dataset(data / "x.npy")
    assert ds[3]["x"][0] == 24
    assert in_child(lambda: ds[[1, 2]]["x"].tolist()) == str(x[1:3].tolist())
    assert ds[4]["x"][0] == 32


def test_tensors_after_fork(tmp_path):
    ts = penstock.TensorStore.create(tmp_path / "t", {"x": (1024, "f4")}, 500)
    ts["x"][:] = np.arange(500)[:, None]
    ids = list(range(0, 500, 2))
    assert ts[ids]["x"][3, 0] == 6
    assert in_child(lambda: ts[ids]["x"][3, 0]) == "6.0"


def look(ds):
    return ds[5]["x"].tolist(), len(ds)


def test_spawn(data, x):
    ds = penstock.Dataset(data / "x.npy", subset=slice(10, 20))
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        assert pool.apply(look, (ds,)) == (x[15].tolist(), 10)


@pytest.mark.parametrize("hook", ["None", "lambda b: b"])
def test_ctrl_c(data, hook):
    """The wait ends, before the batch that comes much later."""
    code = f"""
import os, signal, sys, threading, penstock
loader = penstock.Loader({str(data / 'x.npy')!r}, 1, store="fault",
                         under="posix", delay="2s", threads=1, queue_depth=1,
                         transform={hook})
it = iter(loader)
threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGINT)).start()
try:
    next(it)
    print("a batch")
except KeyboardInterrupt:
    print("interrupted")
sys.stdout.flush()
os._exit(0)
"""
    p = subprocess.run([sys.executable, "-c", code], timeout=600, text=True,
                       capture_output=True)
    assert p.stdout == "interrupted\n", p.stderr


def test_gil_is_free_while_waiting(data):
    """Another thread runs while this one waits for a batch."""
    loader = penstock.Loader(data / "x.npy", 1, store="fault",
                             under="posix", delay="200ms", threads=1,
                             queue_depth=1,
                             prefetch=1)
    count = [0]
    stop = threading.Event()

    def run():
        while not stop.is_set():
            count[0] += 1
    t = threading.Thread(target=run)
    t.start()
    next(iter(loader))
    stop.set()
    t.join()
    assert count[0] > 100


def test_one_thread_at_a_time(data):
    loader = penstock.Loader(data / "x.npy", 1, store="fault",
                             under="posix", delay="300ms", threads=1,
                             queue_depth=1)
    errors = []

    def take():
        try:
            loader._engine.next()
        except RuntimeError as e:
            errors.append(str(e))
    threads = [threading.Thread(target=take) for _ in range(2)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert len(errors) == 1 and "one at a time" in errors[0]


def test_signal_handlers_run(data):
    """A handler that does not raise: the wait goes on."""
    seen = []
    old = signal.signal(signal.SIGALRM, lambda *a: seen.append(1))
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.05)
        loader = penstock.Loader(data / "x.npy", 1, store="fault",
                                 under="posix", delay="400ms", threads=1,
                                 queue_depth=1)
        assert next(iter(loader)).nsamples == 1
        assert seen == [1]
    finally:
        signal.signal(signal.SIGALRM, old)
