"""Data for the tests, made by NumPy and others, never by penstock itself."""
import os
import tempfile

import pytest

# before penstock is imported: neither index nor lists in the user's cache
os.environ["XDG_CACHE_HOME"] = tempfile.mkdtemp(prefix="penstock-test-")

import numpy
import penstock


def pytest_sessionfinish():
    import shutil
    shutil.rmtree(os.environ["XDG_CACHE_HOME"], ignore_errors=True)


@pytest.fixture(scope="session")
def data(tmp_path_factory):
    """x.npy: 1000 rows of 8 float32, row i is 8*i, 8*i+1, ...; table.npz: x, y
    of 100; words/: files of different length; damaged/: one of ten is."""
    d = tmp_path_factory.mktemp("data")
    x = numpy.arange(8000, dtype="f4").reshape(1000, 8)
    numpy.save(d / "x.npy", x)
    (d / "words").mkdir()
    rng = numpy.random.default_rng(0)
    for i in range(40):
        numpy.save(d / "words" / f"{i:03}.npy",
                   numpy.full((1 + i % 7, 3), i, dtype="i4"))
    (d / "tables").mkdir()
    for i in range(5):
        numpy.savez(d / "tables" / f"{i}.npz",
                    x=rng.normal(size=(20, 4)).astype("f4"),
                    y=numpy.arange(20 * i, 20 * i + 20))
    (d / "damaged").mkdir()
    for i in range(10):
        numpy.savez(d / "damaged" / f"{i}.npz", x=numpy.full((4, 4), i))
    bad = d / "damaged" / "7.npz"
    raw = bytearray(bad.read_bytes())
    raw[len(raw) // 2] ^= 0xff
    bad.write_bytes(raw)
    return d


@pytest.fixture(scope="session")
def x(data):
    return numpy.load(data / "x.npy")


def ids_of(loader):
    return [b.ids.tolist() for b in loader]
