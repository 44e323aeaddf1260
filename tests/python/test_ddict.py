"""penstock.DDict: a mapping, many keys per call, views, processes, files."""
import multiprocessing
import os
import subprocess
import sys

import numpy
import pytest

import penstock


@pytest.fixture
def d():
    with penstock.DDict(memory="16MB") as d:
        yield d


def test_mapping(d):
    assert len(d) == 0 and not list(d)
    d[7] = b"seven"
    d["seven"] = bytearray(b"text")
    d[b"\xff\x00"] = memoryview(b"bytes")
    d[2**64 - 1] = b""
    assert d[7] == b"seven" and d["seven"] == b"text"
    assert d[b"\xff\x00"] == b"bytes" and d[2**64 - 1] == b""
    assert d[b"seven"] == b"text"
    assert set(d) == {7, "seven", b"\xff\x00", 2**64 - 1}
    assert 7 in d and 8 not in d and "nothing" not in d
    assert d.get(8) is None and d.get(8, 1) == 1
    assert dict(d.items())[7] == b"seven"
    d[7] = b"new"
    assert d.pop(7) == b"new" and d.pop(7, None) is None
    with pytest.raises(KeyError):
        d.pop(7)
    with pytest.raises(KeyError):
        d[7]
    with pytest.raises(KeyError):
        del d[7]
    del d["seven"]
    d.update({1: b"one", "two": b"2"})
    assert d.setdefault(1, b"other") == b"one"
    d.clear()
    assert len(d) == 0


def test_what_is_refused(d):
    with pytest.raises(TypeError, match="pickle"):
        d[1] = "text"
    with pytest.raises(TypeError, match="pickle"):
        d[1] = 1.5
    with pytest.raises(ValueError):
        d[-1] = b""
    with pytest.raises(TypeError, match="key"):
        d[1.5] = b""
    with pytest.raises(ValueError):
        d.get_many(numpy.array([-1]))
    with pytest.raises(ValueError):
        d.put_many([1, 2], [b"x"])
    with pytest.raises(penstock.SettingError):
        penstock.DDict(colour="red")
    with pytest.raises(MemoryError, match="memory="):
        d[1] = bytes(20_000_000)


def test_arrays(d):
    x = numpy.arange(12, dtype="f4").reshape(3, 4)
    d["x"] = x
    d["t"] = x.T  # not contiguous
    assert d["x"] == x.tobytes() and d["t"] == x.T.tobytes()
    view = d.view("x", dtype="f4")
    assert (view == x.ravel()).all() and not view.flags.writeable
    with pytest.raises(KeyError):
        d.view("y")


def test_many(d):
    x = numpy.random.default_rng(0).integers(0, 99, (500, 16))
    keys = numpy.arange(500)
    d.put_many(keys, x)
    order = numpy.random.default_rng(1).permutation(500)
    got = d.get_many(order, dtype=x.dtype)
    assert (numpy.stack(got) == x[order]).all()
    out = numpy.empty_like(x)
    assert d.gather(order, out) is out and (out == x[order]).all()
    assert [bytes(v) for v in d.get_many([3, 1])] == [
        x[3].tobytes(), x[1].tobytes()]
    assert d.get_many([1000, "no"]) == [None, None]
    with pytest.raises(KeyError):
        d.gather([1, 1000], out[:2])
    with pytest.raises(ValueError, match="bytes"):
        d.gather([1, 2], numpy.empty(2))
    ahead = [d.ask(order[i:i + 100]) for i in range(0, 500, 100)]
    assert (numpy.concatenate([a.into(numpy.empty_like(x[:100]))
                               for a in ahead]) == x[order]).all()


def test_views_stay(d):
    d[1] = bytes(range(200))
    view = d.view(1)
    array = d.view(1, dtype="u1")
    for i in range(1000):
        d[1] = bytes([i % 256]) * 100_000
    d.clear()
    assert bytes(view) == bytes(range(200)) == array.tobytes()
    with pytest.raises(TypeError):
        view[0] = 1
    with pytest.raises(BufferError):
        d.close()
    del view, array


def test_closed():
    d = penstock.DDict(memory="2MB")
    d.close()
    d.close()
    with pytest.raises(ValueError, match="closed"):
        d[1]


def test_pickle():
    with penstock.DDict(memory="4MB", pickle=True) as d:
        d[1] = {"a": [1, 2]}
        d["s"] = "text"
        assert d[1] == {"a": [1, 2]} and d.get_many(["s", 2]) == ["text", None]
        assert d.pop("s") == "text"


def test_stats_and_freeze(d):
    d[1] = b"x" * 1000
    s, = d.stats()
    assert s["keys"] == 1 and s["value_bytes"] == 1000 and s["host"]
    assert s["used_bytes"] + s["free_bytes"] == s["total_bytes"]
    assert "shared memory" in d.transport
    assert (d.rank, d.ranks) == (0, 1) and d.local_keys() == [1]
    d.barrier()
    d.freeze()
    with pytest.raises(penstock.SettingError, match="frozen"):
        d[2] = b""
    assert d[1] == b"x" * 1000


def test_file(d, tmp_path):
    for i in range(100):
        d[i] = bytes([i]) * i
    d.persist(tmp_path / "saved")
    with penstock.DDict(restore=tmp_path / "saved", verify=True) as e:
        assert len(e) == 100 and e[99] == bytes([99]) * 99
        with pytest.raises(penstock.SettingError):
            e[1] = b""
    with penstock.DDict(restore=tmp_path / "saved", writable=True,
                        memory="4MB") as e:
        e[1] = b"changed"
        assert e[1] == b"changed" and e[2] == d[2]
    (tmp_path / "saved").write_bytes(b"no dictionary at all" * 300)
    with pytest.raises(penstock.DataError):
        penstock.DDict(restore=tmp_path / "saved")
    with pytest.raises(FileNotFoundError):
        penstock.DDict(restore=tmp_path / "nothing")


def child(d, i):
    assert d["from the parent"] == b"hello"
    d[i] = b"%d" % i


def test_asked_before_fork(d):
    """A child neither waits for requests of its parent nor frees them."""
    d[1] = b"one"
    asked = d.ask([1])
    pid = os.fork()
    if not pid:
        code = 1
        try:
            asked.values()
        except RuntimeError as error:
            code = 0 if "before fork" in str(error) else 2
        del asked
        if d[1] != b"one":
            code = 3
        os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    assert bytes(asked.values()[0]) == b"one"
    del asked


def test_fork(d):
    d["from the parent"] = b"hello"
    fork = multiprocessing.get_context("fork")
    children = [fork.Process(target=child, args=(d, i)) for i in range(4)]
    for c in children:
        c.start()
    for c in children:
        c.join()
    assert [c.exitcode for c in children] == [0] * 4
    assert [d[i] for i in range(4)] == [b"0", b"1", b"2", b"3"]


def test_name():
    name = f"python-{os.getpid()}"
    code = ("import penstock\n"
            f"with penstock.DDict({name!r}, create=False) as d:\n"
            "    assert d[1] == b'one'\n"
            "    d[2] = b'two'\n")
    with penstock.DDict(name, memory="2MB") as d:
        d[1] = b"one"
        subprocess.run([sys.executable, "-c", code], check=True)
        assert d[2] == b"two"
    with pytest.raises(FileNotFoundError):
        penstock.DDict(name, create=False)


class Samples:
    """A PyTorch-style data set, for forked workers."""

    def __init__(self, d, n):
        self.d, self.n = d, n

    def __len__(self):
        return self.n

    def __getitems__(self, ids):
        return self.d.get_many(ids, dtype="f4")

    def __getitem__(self, i):
        return self.d.view(i, dtype="f4").copy()


def test_torch_workers(d):
    torch = pytest.importorskip("torch")
    x = numpy.arange(400, dtype="f4").reshape(50, 8)
    d.put_many(range(50), x)
    loader = torch.utils.data.DataLoader(Samples(d, 50), batch_size=10,
                                         num_workers=2)
    assert (torch.cat(list(loader)).numpy() == x).all()


def test_groups_and_filter(d):
    d.put_many(range(3000), [b"%d" % i for i in range(3000)])
    d["ab"] = b"x"
    d["abc"] = b"y"
    assert dict(d.items()) == {k: d[k] for k in d}
    assert sorted(d.values()) == sorted(d[k] for k in d)
    assert dict(d.filter(prefix="ab")) == {"ab": b"x", "abc": b"y"}
    assert dict(d.filter(prefix=b"abc")) == {"abc": b"y"}
    assert dict(d.filter(where=lambda k, v: v == b"7")) == {7: b"7"}
    with d.copy(memory="16MB") as e:
        assert dict(e.items()) == dict(d.items())


def test_tuple_keys(d):
    keys = [(1, "a"), ("x",), (1.5, b"\xff", (2, 3)), ()]
    d.put_many(keys, [b"0", b"1", b"2", b"3"])
    assert d[1, "a"] == b"0" and d[()] == b"3" and ("x",) in d
    assert set(d) == set(keys) and d.get_many(keys[2:])[0] == b"2"
    assert d.pop((1, "a")) == b"0" and (1, "a") not in d
    with penstock.Loader(d, 2, keys=[("x",), ()]) as loader:
        assert next(iter(loader))["x"].numpy().tobytes() == b"13"
    with pytest.raises(TypeError):
        d[(1, object())] = b""


def test_counters(d):
    def count():
        with penstock.DDict("test-counters", memory="4MB") as e:
            for _ in range(2000):
                e.fetch_add("n", 3)
                e.fetch_add(5, -1)

    with penstock.DDict("test-counters", memory="4MB") as e:
        fork = multiprocessing.get_context("fork")
        jobs = [fork.Process(target=count) for _ in range(3)]
        for job in jobs:
            job.start()
        for job in jobs:
            job.join()
            assert job.exitcode == 0
        assert e.fetch_add("n", 0) == 18000 and e.fetch_add(5, 0) == -6000
    d[1] = b"abc"
    with pytest.raises(ValueError, match="8"):
        d.fetch_add(1)


def test_wait_for(d):
    import threading
    with pytest.raises(TimeoutError):
        d.wait_for("a", 0)
    thread = threading.Thread(target=lambda: d.update(a=b"1"))
    thread.start()
    assert d.wait_for("a", 60) == b"1"
    thread.join()
    assert d.owner("a") == 0


def test_garbage(d):
    d.put_many(range(8), [bytes(1 << 20)] * 8)
    full = d.stats()[0]
    assert full["garbage_bytes"] < 1 << 20 < 8 << 20 <= full["used_bytes"]
    for key in range(8):
        del d[key]
    d.compact()
    empty = d.stats()[0]
    assert empty["used_bytes"] < 1 << 20 and empty["garbage_bytes"] < 1 << 20
    d[1] = bytes(12 << 20)      # all of it can be used again
