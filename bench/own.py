#!/usr/bin/python3
"""Measures penstock from Python once: own.py WHAT THREADS SECONDS PATH BATCH
prints the samples (or batches, or calls) and the seconds they took."""
import json
import sys
import time

now = time.perf_counter


def say(samples, seconds):
    print(json.dumps({"samples": samples, "seconds": seconds}))


def loader(path, batch, threads, **settings):
    import penstock
    return penstock.Loader(path, batch_size=batch, shuffle=True,
                           threads=threads, **settings)


def load(threads, seconds, path, batch):
    """Complete epochs after the first, like `penstock load`; the first imports
    NumPy, which takes longer than most epochs."""
    data = loader(path, batch, threads)
    for b in data:
        b.numpy()
    samples, start = 0, now()
    while now() - start < seconds:
        for b in data:
            samples += b.nsamples
            b.numpy()
    say(samples, now() - start)


def overhead(threads, seconds, path, batch):
    """CPU time of the thread that takes batches of one tiny record: the overhead
    of Python, because other threads do everything else."""
    data = loader("bench", 1, threads, store="null", format="raw",
                  **{"format.record": 64, "store.size": 64 << 16})
    for b in data:
        b.numpy()
    n, start, cpu = 0, now(), time.thread_time()
    while now() - start < seconds:
        for b in data:
            b.numpy()
            n += 1
    say(n, time.thread_time() - cpu)


def frombuffer(threads, seconds, path, batch):
    import numpy
    memory = bytes(64)
    n, start, cpu = 0, now(), time.thread_time()
    while now() - start < seconds:
        for _ in range(1 << 16):
            numpy.frombuffer(memory, "u1")
        n += 1 << 16
    say(n, time.thread_time() - cpu)


ROWS, ROW = 1 << 18, 256    # 256 MiB of float32


def store(folder):
    import penstock
    return penstock.TensorStore.create(folder + "/store",
                                       {"x": ((ROW,), "float32")}, ROWS,
                                       overwrite=True)


def fill(put, seconds, block):
    """The first pass faults in the pages and is not timed."""
    n, start = -ROWS, 0.0
    while n <= 0 or now() - start < seconds:
        for at in range(0, ROWS, len(block)):
            put(at, block)
        n += ROWS
        start = start or now()
    say(n, now() - start)


def store_fill(threads, seconds, path, batch):
    import numpy
    s = store(path)
    block = numpy.ones((4096, ROW), "float32")

    def put(at, b):
        s[at:at + len(b)] = {"x": b}
    fill(put, seconds, block)
    if float(s["x"][ROWS - 1].sum()) != ROW:
        sys.exit("the store has not been filled")
    s.discard()


def memcpy(threads, seconds, path, batch):
    import numpy
    to = numpy.zeros((ROWS, ROW), "float32")

    def put(at, b):
        to[at:at + len(b)] = b
    fill(put, seconds, numpy.ones((4096, ROW), "float32"))


def gather(take, seconds, batch):
    """Passes over all rows in the same random order."""
    import numpy
    rng = numpy.random.default_rng(1)
    ids = rng.permutation(ROWS).reshape(-1, batch)
    n = 0
    for i in ids:
        take(i)
    start = now()
    while now() - start < seconds:
        for i in ids:
            take(i)
        n += ROWS
    say(n, now() - start)


def store_gather(threads, seconds, path, batch):
    import numpy
    s = store(path)
    s["x"][:] = numpy.arange(ROWS, dtype="float32")[:, None]
    out = {"x": numpy.empty((batch, ROW), "float32")}
    got = s.gather([3, 1, 2])["x"][:, 5].tolist()
    if got != [3.0, 1.0, 2.0]:
        sys.exit(f"gathered {got}")
    gather(lambda i: s.gather(i, out), seconds, batch)
    s.discard()


def numpy_gather(threads, seconds, path, batch):
    import numpy
    with store(path) as s:
        s["x"][:] = 1
    mm = numpy.load(path + "/store/x.npy", mmap_mode="r")
    gather(lambda i: mm[i], seconds, batch)


def import_time(threads, seconds, path, batch):
    start = now()
    import penstock  # noqa: F401
    say(1, now() - start)


def numpy_import(threads, seconds, path, batch):
    start = now()
    import numpy  # noqa: F401
    say(1, now() - start)


def first_batch(threads, seconds, path, batch):
    """After the import, with a cached index. Excludes the import of NumPy, which
    takes ten times as long."""
    import penstock  # noqa: F401
    start = now()
    memoryview(next(iter(loader(path, batch, threads)))["x"])[0, 0]
    say(1, now() - start)


def main():
    what, threads, seconds, path, batch = sys.argv[1:]
    globals()[what](int(threads), float(seconds), path, int(batch))


main()
