"""A dictionary as a data set: Loader, Dataset and DataLoader over its keys."""
import io
import os
import pickle
import shutil
import subprocess
import sys
import textwrap

import numpy
import pytest

import penstock
from penstock import DDict, Dataset, Loader


def npy(value):
    out = io.BytesIO()
    numpy.save(out, value)
    return out.getvalue()


@pytest.fixture
def d():
    with DDict(memory="16MB", ranks=False) as d:
        yield d


def keys_of(loader):
    return [loader.path_of(i).rsplit("/", 1)[1] for i in range(loader.nsamples)]


def test_raw_values(d):
    rows = numpy.random.default_rng(1).random((300, 4, 3), dtype="f4")
    d.put_many(range(300), rows)
    for more in {}, {"threads": 1}, {"shuffle": True, "seed": 5}:
        with Loader(d, 7, decode={"x": "raw:float32,shape=4x3"}, **more) as l:
            seen = []
            for b in l:
                numpy.testing.assert_array_equal(b["x"].numpy(), rows[b.ids])
                seen += b.ids.tolist()
            assert sorted(seen) == list(range(300))
            assert (seen == list(range(300))) != ("shuffle" in more)
            assert l.store == "dictionary" and l.format == "files"


def test_same_order_as_files(d, tmp_path):
    rows = numpy.arange(100)
    numpy.save(tmp_path / "x.npy", rows)
    d.put_many(range(100), [npy(r) for r in rows])
    with Loader(tmp_path / "x.npy", 8, True, seed=3) as a, \
            Loader(d, 8, True, seed=3, decode={"x": "npy"}) as b:
        for p, q in zip(a, b, strict=True):
            assert p["x"].numpy().tolist() == q["x"].numpy().tolist()


def test_resume(d):
    d.put_many(range(50), [bytes([i]) for i in range(50)])
    with Loader(d, 8, True, seed=1) as l:
        every = [b.ids.tolist() for b in l]
    with Loader(d, 8, True, seed=1) as l:
        it = iter(l)
        next(it)
        state = l.state_dict()
    with Loader(d, 8, True, seed=1) as l:
        l.load_state_dict(state)
        assert [b.ids.tolist() for b in l] == every[1:]


def test_decoders_and_tokens(d):
    d["a"] = b"ACGTACGT"
    d["b"] = b"TTTT"
    with Loader(d, 2, decode={"x": "text"}) as l:
        b = next(iter(l))
        assert bytes(b["x"][0].numpy()) == b"ACGTACGT"
    with Loader(d, 2, format="lines", tokens="chars", alphabet="ACGT") as l:
        tokens, = next(iter(l)).values()
        assert [len(t.numpy()) for t in tokens] == [8, 4]
    pytest.importorskip("PIL")
    from PIL import Image
    for kind in "png", "jpeg":
        d.clear()
        for i in range(5):
            out = io.BytesIO()
            Image.new("RGB", (6, 4), (i * 40, 0, 0)).save(out, kind)
            d[i] = out.getvalue()
        with Loader(d, 5, decode={"x": kind}) as l:
            x = next(iter(l))["x"].numpy()
            assert x.shape[0] == 5 and abs(int(x[4].max()) - 160) < 4


def test_order_and_keys(d):
    for k in 10, 9, "b", "a b", b"12", b"", b"\xff":
        d[k] = b"v"
    with Loader(d, 7) as l:
        assert keys_of(l) == ["9", "10", "%", "%312", "a%20b", "b", "%FF"]
    for keys, names in (
            (["b", 9, b"12"], ["b", "9", "%312"]), (range(9, 11), ["9", "10"]),
            (numpy.array([10, 9]), ["10", "9"]), (slice(9, 11), ["9", "10"]),
            ("b,9", ["b", "9"]), ([b"", b"\xff"], ["%", "%FF"])):
        with Loader(d, 7, keys=keys) as l:
            assert keys_of(l) == names
    for keys, why in ((["b", "b"], "twice"), (["zz"], "no such key"),
                      ([], "empty"), ("%4", "not a key"),
                      ([-1], "negative")):
        with pytest.raises((ValueError, OSError), match=why):
            Loader(d, keys=keys)
    with Loader(d, 7, keys=[9, 11, 10], on_error="skip") as l:
        assert sum(b.nsamples for b in l) == 2
    for dtype in "u1", "i4", "u8":
        with Loader(d, 7, keys=numpy.array([9, 10], dtype)) as l:
            assert keys_of(l) == ["9", "10"]


def test_keys_in_files(d, tmp_path):
    d.put_many([1, 2**64 - 1, 5], [b"a", b"b", b"c"])
    numpy.save(tmp_path / "k.npy", numpy.array([2**64 - 1, 1], "u8"))
    with Loader(d, keys=tmp_path / "k.npy") as l:
        assert keys_of(l) == [str(2**64 - 1), "1"]
    (tmp_path / "k.txt").write_text("5\r\n\n1")
    with Loader(d, keys=tmp_path / "k.txt") as l:
        assert keys_of(l) == ["5", "1"]
    for bad in numpy.array([-1]), numpy.eye(2), numpy.array([1.5]):
        numpy.save(tmp_path / "bad.npy", bad)
        with pytest.raises(ValueError):
            Loader(d, keys=tmp_path / "bad.npy")
    (tmp_path / "k.txt").write_bytes(b"5\0")
    with pytest.raises((ValueError, penstock.DataError), match="NUL"):
        Loader(d, keys=tmp_path / "k.txt")


def test_gone_and_changed(d):
    d.put_many(range(40), [b"abcd"] * 40)
    with Loader(d, 8, on_error="skip", epochs=1) as l:
        del d[11]
        d[13] = b"longer than before"
        d[14] = b""
        # a batch that was read before the change has the old values
        for b in l:
            assert (b["x"].numpy() == list(b"abcd")).all()
    with Loader(d, 8) as l:
        assert l.nsamples == 39
    d.clear()
    d.put_many(range(4000), [b"abcd"] * 4000)
    with Loader(d, 8, prefetch=1, threads=1) as l:
        it = iter(l)
        next(it)
        del d[3999]
        with pytest.raises(FileNotFoundError, match="no longer exists"):
            for _ in it:
                pass
    d.clear()
    d.put_many(range(100), [b""] * 100)
    with Loader(d, 10, prefetch=1, threads=1) as l:
        it = iter(l)
        next(it)
        del d[99]
        with pytest.raises(FileNotFoundError):
            for _ in it:
                pass


def test_pickles_are_refused():
    with DDict("data-pickles", memory="4MB", pickle=True) as d:
        d.put_many(range(20), [{"a": i} for i in range(20)])
        with pytest.raises(TypeError, match="pickles"):
            Loader(d)
        with pytest.raises(penstock.DataError, match="pickles"):
            Loader("ddict:data-pickles")


def test_paths(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(OSError, match="no such file"):
        Loader("ddict:nothing-here")
    with DDict("data-paths", memory="4MB") as d:
        d.put_many(range(3), [b"a", b"b", b"c"])
        d.persist("saved")
        for path in "ddict:data-paths", "ddict:saved", "ddict:./saved":
            with Loader(path, 3) as l:
                assert next(iter(l))["x"].numpy().tobytes() == b"abc"
        d.persist("data-paths")
        with pytest.raises(ValueError, match="both"):
            Loader("ddict:data-paths")
        with Loader("ddict:./data-paths", 3) as l:
            assert l.nsamples == 3
        for bad in (["ddict:saved", "saved"], ["ddict:saved", "ddict:saved"]):
            with pytest.raises(ValueError, match="alone"):
                Loader(bad)
        for more in ({"cache": "ddict"}, {"store": "posix"},
                     {"local": True, "shuffle": True}):
            with pytest.raises(ValueError):
                Loader("ddict:saved", **more)
    with pytest.raises(ValueError, match="an option of store"):
        Loader("saved", keys=[1])


def test_close_while_a_loader_reads(d):
    d[1] = b"a"
    l = Loader(d)
    with pytest.raises(BufferError, match="loader"):
        d.close()
    l.close()
    with DDict(memory="4MB", ranks=False) as e:
        e[1] = b"a"
    with pytest.raises(ValueError, match="closed"):
        Loader(e)


def test_dataset(d):
    d.put_many(range(9), numpy.arange(9.0))
    ds = Dataset(d, decode={"x": "raw:float64"})
    assert ds[[7, 0, 7]]["x"].numpy().ravel().tolist() == [7, 0, 7]
    with pytest.raises(TypeError, match="no name"):
        pickle.dumps(ds)
    ds.close()


def test_pickled_by_name(tmp_path):
    with DDict("data-pickled", memory="4MB") as d:
        d.put_many(range(9), numpy.arange(9.0))
        code = ("import pickle, sys; ds = pickle.load(sys.stdin.buffer); "
                "print(ds[3]['x'].item(), len(ds))")
        ds = Dataset(d, decode={"x": "raw:float64"})
        out = subprocess.run([sys.executable, "-c", code],
                             input=pickle.dumps(ds), check=True,
                             stdout=subprocess.PIPE).stdout
        assert out.split() == [b"3.0", b"9"]
        ds.close()
        d.persist(str(tmp_path / "saved"))
        text = pickle.dumps(d)
    with pytest.raises(OSError, match="data-pickled"):
        pickle.loads(text)      # it is gone, and not created again
    with DDict(restore=str(tmp_path / "saved")) as d:
        with pickle.loads(pickle.dumps(d)) as e:
            assert len(e) == 9


def test_torch_workers():
    torch = pytest.importorskip("torch")
    from penstock.torch import DataLoader, collate
    with DDict("data-torch", memory="4MB") as d:
        d.put_many(range(20), numpy.arange(20.0))
        with DataLoader(d, 5, decode={"x": "raw:float64"}) as l:
            assert torch.cat([b["x"] for b in l]).flatten().tolist() == \
                list(range(20))
        ds = Dataset(d, decode={"x": "raw:float64"})
        for how in "fork", "spawn":
            l = torch.utils.data.DataLoader(
                ds, 5, num_workers=2, collate_fn=collate,
                multiprocessing_context=how)
            assert torch.cat([b["x"] for b in l]).flatten().tolist() == \
                list(range(20))
        ds.close()


@pytest.mark.parametrize("items, fields", [
    ([b"aa", b"bbb"], [("x", "uint8", (-1,), "ragged")]),
    (["héllo", "x"], [("x", "uint8", (-1,), "ragged")]),
    ([1, 2, 3], [("x", "int64", (), "dense")]),
    ([numpy.zeros(2), numpy.zeros(3)], [("x", "float64", (-1,), "ragged")]),
    ([(numpy.ones(3), 1), (numpy.ones(3), 2)],
     [("x", "float64", (3,), "dense"), ("y", "int64", (), "dense")]),
    ([{"a": 1.0, "b": 2}], [("a", "float64", (), "dense"),
                            ("b", "int64", (), "dense")]),
    ({7: b"x", "k": b"y"}, [("x", "uint8", (1,), "dense")]),
    (numpy.eye(3), [("x", "float64", (3,), "dense")]),
])
def test_from_iterable(items, fields, capfd):
    with DDict.from_iterable(items, memory="16MB") as d:
        assert len(d) == len(items)
        with Loader(d, 10) as l:
            assert l.fields == fields
            assert sum(b.nsamples for b in l) == len(items)
    assert capfd.readouterr().err == ""     # not a terminal


def test_loader_of_an_iterable(capfd):
    with Loader((numpy.full(3, i) for i in range(5000)), 1000) as l:
        got = numpy.concatenate([b["x"].numpy().copy() for b in l])
    assert got[:, 1].tolist() == list(range(5000))
    with DDict.from_iterable(range(3), memory="4MB", progress=True):
        assert "3 of 3 items" in capfd.readouterr().err
    for items, why in (([object()], "pickle"), ([1, "a"], "another kind"),
                       ([1, b"a"], "another kind")):
        with pytest.raises(TypeError, match=why):
            DDict.from_iterable(items, memory="4MB")
    with pytest.raises(TypeError, match="path"):
        Loader(3)
    with pytest.raises(TypeError, match="item that is none"):
        Loader(["a", 3])


RANKS = textwrap.dedent("""
    import os, signal, sys
    import numpy, penstock
    from penstock import DDict, Loader
    share, what, out = sys.argv[1] == "share", sys.argv[2], sys.argv[3]
    n = 700
    with DDict(memory="16MB", share=share) as d:
        r, w = d.rank, d.ranks
        for i in range(r, n, w):
            d[i] = numpy.full(6, i, "i4")
        if what == "differ" and r == 0:
            d[n + 1] = b"x"      # no barrier: some ranks may not see it
        d.barrier()
        if what == "differ":
            try:
                Loader(d, keys=[1, 2] if r else [1, 3])
            except ValueError as e:
                assert "different keys" in str(e), e
                sys.exit(0)
            sys.exit(w > 1)
        if what == "load":
            for i in range(50):
                d.fetch_add(n + i % 5, r + 1)
            d.barrier()
            assert [d.fetch_add(n + i, 0) for i in range(5)] == \
                [10 * w * (w + 1) // 2] * 5
            assert d.wait_for(n + 4, 60) == d[n + 4]
            assert set(d.local_keys()) == {k for k in d if d.owner(k) == r}
            with d.copy(memory="16MB", share=share) as e:
                e.barrier()
                assert dict(e.items()) == dict(d.items())
            d.barrier()
            if r == 0:
                for i in range(5):
                    del d[n + i]
                d.compact()
            d.barrier()
        raw = {"x": "raw:int32"}
        for name, more in (("order", {}), ("shuffle", {"shuffle": True}),
                           ("local", {"local": True})):
            got = []
            with Loader(d, 16, tail="keep", epochs=2, decode=raw, seed=3,
                        on_error="skip", **more) as l:
                for e in range(2):
                    for b in l:
                        x = b["x"].numpy()
                        keys = [int(l.path_of(int(i)).rsplit("/", 1)[1])
                                for i in b.ids]
                        assert (x == numpy.array(keys)[:, None]).all()
                        got += keys
                        if what == "kill" and r == 1 and name == "shuffle":
                            os.kill(os.getpid(), signal.SIGKILL)
            mine = set(d.local_keys())
            if name == "local" and w > 1:
                assert sum(k in mine for k in got) > 0.8 * len(got)
            with open(f"{out}/{name}.{r}", "w") as f:
                f.write(" ".join(map(str, got)))
        d.barrier()
    d = DDict.from_iterable((numpy.full(3, i) for i in range(101)),
                            memory="4MB")
    with Loader(d, 7, tail="keep") as l, open(f"{out}/items.{r}", "w") as f:
        f.write(" ".join(str(int(v)) for b in l for v in b["x"].numpy()[:, 0]))
    d.close()
""")
MPIRUN = os.path.join(os.path.dirname(__file__), "..", "mpirun")
needs_mpi = pytest.mark.skipif(not shutil.which("mpirun"), reason="no mpirun")


def run_ranks(n, *args, more=()):
    return subprocess.run(
        [sys.executable, MPIRUN, *more, "-n", str(n), sys.executable, "-c", RANKS,
         *map(str, args)], capture_output=True, text=True, timeout=600,
        check=False)


@needs_mpi
@pytest.mark.parametrize("n, how", [(1, "share"), (2, "share"), (2, "wire"),
                                    (3, "wire"), (4, "share"), (4, "wire")])
def test_ranks(n, how, tmp_path):
    job = run_ranks(n, how, "load", tmp_path)
    assert job.returncode == 0, job.stderr
    for name, times, size in (("order", 2, 700), ("shuffle", 2, 700),
                              ("local", 2, 700), ("items", 1, 101)):
        got = sorted(int(k) for r in range(n)
                     for k in (tmp_path / f"{name}.{r}").read_text().split())
        assert got == sorted(list(range(size)) * times), name


@needs_mpi
@pytest.mark.parametrize("how", ["share", "wire"])
def test_ranks_that_see_different_keys(how, tmp_path):
    job = run_ranks(3, how, "differ", tmp_path)
    assert job.returncode == 0, job.stderr


@needs_mpi
def test_killed_rank(tmp_path):
    job = run_ranks(3, "wire", "kill", tmp_path, more=["--enable-recovery"])
    assert "rank 1" in job.stderr       # regardless of on_error=
    assert not (tmp_path / "local.0").exists()
