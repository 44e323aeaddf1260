"""penstock.torch.DataLoader beside PyTorch's own."""
import warnings

import numpy as np
import penstock
import pytest

torch = pytest.importorskip("torch", reason="python3-torch is not installed")
from penstock.torch import DataLoader, collate  # noqa: E402
from torch.utils import data as tud             # noqa: E402


class Rows(tud.Dataset):
    """The same data as PyTorch users write it."""

    def __init__(self, x):
        self.x = x

    def __len__(self):
        return len(self.x)

    def __getitem__(self, i):
        return {"x": self.x[i]}


def same(ours, theirs):
    ours, theirs = list(ours), list(theirs)
    assert len(ours) == len(theirs)
    for a, b in zip(ours, theirs):
        assert a.keys() == b.keys()
        for k in a:
            assert a[k].dtype == b[k].dtype and torch.equal(a[k], b[k])


def test_batch_torch(data, x):
    for batch in penstock.Loader(data / "x.npy", 64, True):
        t = batch.torch()["x"]
        assert torch.equal(t, torch.from_numpy(x[np.asarray(batch.ids)]))
        t[0, 0] = -1
        assert np.asarray(batch["x"])[0, 0] == -1   # the same memory
    assert torch.equal(torch.from_dlpack(batch["x"]), batch["x"].torch())


def test_types(tmp_path):
    for name, want in {"bool": torch.bool, "uint16": torch.int32,
                       "uint32": torch.int64, "uint64": torch.int64,
                       "float16": torch.float16, "int8": torch.int8,
                       "complex64": torch.complex64}.items():
        a = (np.arange(24).reshape(6, 4) % 3).astype(name)
        np.save(tmp_path / f"{name}.npy", a)
        t = next(iter(penstock.Loader(tmp_path / f"{name}.npy", 6)))["x"]
        t = t.torch()
        assert t.dtype == want
        assert t.tolist() == a.tolist()
    a[:] = 2**63
    np.save(tmp_path / "big.npy", np.full((3, 2), 2**63, "u8"))
    with pytest.raises(OverflowError):
        next(iter(penstock.Loader(tmp_path / "big.npy"))).torch()
    np.save(tmp_path / "wide.npy", np.zeros((3, 2), "longdouble"))
    with pytest.raises(TypeError):
        next(iter(penstock.Loader(tmp_path / "wide.npy"))).torch()


def test_views_outlive_all(data, x):
    kept = []
    loader = penstock.Loader(data / "x.npy", 100, True)
    for batch in loader:
        kept.append((batch.ids.tolist(), batch.torch()["x"]))
    loader.close()
    del loader, batch
    for ids, t in kept:
        assert torch.equal(t, torch.from_numpy(x[ids]))
    t = kept[0][1]
    del kept
    assert t.sum().item() == t.numpy().sum()


@pytest.mark.parametrize("drop_last", [False, True])
@pytest.mark.parametrize("batch_size", [1, 64, 1000, 3000])
def test_same_as_pytorch(data, x, batch_size, drop_last):
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        ours = DataLoader(data / "x.npy", batch_size, drop_last=drop_last)
    theirs = tud.DataLoader(Rows(x), batch_size, drop_last=drop_last)
    assert len(ours) == len(theirs)
    assert any("no batches" in str(w.message) for w in said) == \
        (len(theirs) == 0)
    if len(theirs):
        same(ours, theirs)


def test_sampler(data, x):
    def sampler():
        return tud.RandomSampler(range(1000),
                                 generator=torch.Generator().manual_seed(4))
    ours = DataLoader(data / "x.npy", 64, sampler=sampler())
    theirs = tud.DataLoader(Rows(x), 64, sampler=sampler())
    assert len(ours) == len(theirs) == 16
    same(ours, theirs)
    same(DataLoader(data / "x.npy", 64, sampler=[5, 2, -1]),
         tud.DataLoader(Rows(x), 64, sampler=[5, 2, -1]))


def test_batch_sampler(data, x):
    groups = [[1, 2], list(range(100)), [999], list(range(500, 800))]
    ours = DataLoader(penstock.Dataset(data / "x.npy"), batch_sampler=groups)
    assert len(ours) == 4
    same(ours, tud.DataLoader(Rows(x), batch_sampler=groups))
    same(ours, tud.DataLoader(Rows(x), batch_sampler=groups))
    for _ in ours:      # left early, and again
        break
    same(ours, tud.DataLoader(Rows(x), batch_sampler=groups))
    with pytest.raises(ValueError):
        DataLoader(data / "x.npy", 3, batch_sampler=groups)
    with pytest.raises(IndexError):
        list(DataLoader(data / "x.npy", batch_sampler=[[1], [1000]]))


def test_no_batching(data, x):
    ours = DataLoader(data / "x.npy", None)
    got = list(ours)
    assert len(got) == len(ours) == 1000
    assert torch.equal(got[7]["x"], torch.from_numpy(x[7]))
    ours = DataLoader(data / "x.npy", None, sampler=[[1, 2], [3]])
    assert [len(b["x"].shape) for b in ours] == [2, 1]


def test_collate_fn(data, x):
    def fn(samples):
        return torch.stack([s["x"] for s in samples]).sum(0)
    ours = DataLoader(data / "x.npy", 100, collate_fn=fn)
    theirs = tud.DataLoader(Rows(torch.from_numpy(x)), 100, collate_fn=fn)
    for a, b in zip(ours, theirs):
        assert torch.equal(a, b)


def test_tuples(data):
    x, y = next(iter(DataLoader(data / "tables", 8, samples="first",
                                tuples=True)))
    assert x.shape == (8, 4) and y.tolist() == list(range(8))


def test_shuffle_and_seed(data):
    def order(**kw):
        return torch.cat([b["x"][:, 0] for b in DataLoader(
            data / "x.npy", 100, shuffle=True, **kw)]).tolist()
    assert sorted(order()) == [8.0 * i for i in range(1000)]
    assert order(seed=1) == order(seed=1) != order(seed=2)
    g = torch.Generator().manual_seed(9)
    a, b = order(generator=g), order(generator=g)
    g.manual_seed(9)
    assert [a, b] == [order(generator=g), order(generator=g)] and a != b
    torch.manual_seed(5)
    a, b = order(), order()     # as PyTorch's own, each draws its seed
    torch.manual_seed(6)
    assert order() not in (a, b)
    torch.manual_seed(5)
    assert [a, b] == [order(), order()] and a != b


def test_seed_is_one_draw(data):
    """The same as RandomSampler takes, and nothing when a seed is given."""
    torch.manual_seed(7)
    DataLoader(data / "x.npy", 10, shuffle=True)
    state = torch.get_rng_state()
    DataLoader(data / "x.npy", 10, shuffle=True, seed=1)
    assert torch.equal(state, torch.get_rng_state())
    torch.manual_seed(7)
    next(iter(tud.RandomSampler(range(3))))
    assert torch.equal(state, torch.get_rng_state())


def test_epochs(data):
    loader = DataLoader(data / "x.npy", 100, shuffle=True, seed=1)
    first = [b["x"][0, 0].item() for b in loader]
    second = [b["x"][0, 0].item() for b in loader]
    assert first != second
    loader.sampler.set_epoch(0)     # as Lightning and others do
    assert [b["x"][0, 0].item() for b in loader] == first
    loader.set_epoch(0)
    assert [b["x"][0, 0].item() for b in loader] == first
    assert len(loader.sampler) == 1000 and len(loader.dataset) == 1000


def test_distributed_sampler(data, x):
    ours, theirs = [], []
    for epoch in range(2):
        for rank in range(3):
            def sampler():
                s = tud.distributed.DistributedSampler(range(1000), 3, rank,
                                                       shuffle=True, seed=1)
                s.set_epoch(epoch)
                return s
            ours += DataLoader(data / "x.npy", 50, sampler=sampler())
            theirs += tud.DataLoader(Rows(x), 50, sampler=sampler())
    same(ours, theirs)


def test_ranks(data):
    got = []
    for rank in range(4):
        got.append(torch.cat([b["x"][:, 0] for b in DataLoader(
            data / "x.npy", 25, shuffle=True, rank=rank, world=4)]))
    assert len({len(g) for g in got}) == 1      # all have the same steps
    assert sorted(torch.cat(got).tolist()) == [8.0 * i for i in range(1000)]


def test_ranks_of_torch_distributed(data, monkeypatch):
    # Debian's PyTorch is built without torch.distributed: nothing to ask there
    for name, answer in (("is_available", True), ("is_initialized", True),
                         ("get_rank", 1), ("get_world_size", 4)):
        monkeypatch.setattr(torch.distributed, name, lambda x=answer: x,
                            raising=False)
    loader = penstock.Loader(data / "x.npy", 10)
    assert (loader.rank, loader.world) == (1, 4)
    assert next(iter(loader)).ids.tolist() == list(range(10, 20))


@pytest.mark.parametrize("sampler", [None, list(range(999, -1, -1))])
def test_state(data, sampler):
    def loader():
        return DataLoader(data / "x.npy", 30, sampler=sampler,
                          shuffle=sampler is None or None,
                          **({"seed": 3} if sampler is None else {}))
    want = [b["x"] for b in loader()]
    first = loader()
    it = iter(first)
    got = [next(it)["x"] for _ in range(5)]
    state = first.state_dict()
    second = loader()
    second.load_state_dict(state)
    got += [b["x"] for b in second]
    assert len(got) == len(want)
    assert all(torch.equal(a, b) for a, b in zip(got, want))
    assert len(list(second)) == 34      # the next epoch is whole


@pytest.mark.parametrize("batch_size", [None, 1, 30])
@pytest.mark.parametrize("shuffle", [True, "block"])
def test_resume_draws_no_other_order(data, batch_size, shuffle):
    """A new process has a generator that stands elsewhere: what was left goes
    on all the same, each sample once, and the epochs after it as well."""
    def rows(batches):
        return [int(v) // 8 for b in batches
                for v in b["x"].reshape(-1, 8)[:, 0]]
    torch.manual_seed(1)
    whole = DataLoader(data / "x.npy", batch_size, shuffle=shuffle)
    want = [rows(whole) for _ in range(2)]
    torch.manual_seed(1)
    first = DataLoader(data / "x.npy", batch_size, shuffle=shuffle)
    it = iter(first)
    got = rows(next(it) for _ in range(241 if batch_size != 30 else 7))
    state = first.state_dict()
    torch.manual_seed(2)
    second = DataLoader(data / "x.npy", batch_size, shuffle=shuffle)
    second.load_state_dict(state)
    assert len(second.sampler) == 1000
    got += rows(second)
    assert sorted(got) == list(range(1000))
    assert [got, rows(second)] == want
    assert second.state_dict()["seed"] == state["seed"]
    # a seed that was asked for is not given up
    third = DataLoader(data / "x.npy", batch_size, shuffle=shuffle, seed=3)
    with pytest.raises(penstock.Error, match="seed"):
        third.load_state_dict(state)
    assert sorted(rows(third)) == list(range(1000))


def test_bad_states(data):
    loader = DataLoader(data / "x.npy", None, shuffle=True)
    for bad in ({"batches": 3}, {}, 7, {"seed": "x"}, {"seed": -1},
                {**loader.state_dict(), "seed": 5}):
        with pytest.raises((penstock.Error, ValueError)):
            loader.load_state_dict(bad)
    assert len(list(loader)) == 1000


def _rank(rank, world, path, port, out):
    torch.distributed.init_process_group(
        "gloo", f"tcp://127.0.0.1:{port}", rank=rank, world_size=world)
    torch.manual_seed(rank)     # they draw differently
    loader = DataLoader(path, 10, shuffle=True)
    it = iter(loader)
    got = [b["x"][:, 0].tolist() for _, b in zip(range(20), it)]
    state = loader.state_dict()
    again = DataLoader(path, 10, shuffle=True)
    assert again.state_dict()["seed"] != state["seed"]
    again.load_state_dict(state)
    got += [b["x"][:, 0].tolist() for b in again]
    alone = DataLoader(path, 10, shuffle=True, rank=0, world=1)
    out.put((rank, state, got, alone.state_dict()["seed"]))
    torch.distributed.destroy_process_group()


def test_ranks_share_a_draw(data):
    """rank 0 draws for all: each sample once, whatever the ranks' seeds."""
    if not torch.distributed.is_available():
        pytest.skip("this PyTorch has no torch.distributed")
    import multiprocessing
    import socket
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port = s.getsockname()[1]
    context = multiprocessing.get_context("spawn")
    out = context.Queue()
    ranks = [context.Process(target=_rank,
                             args=(r, 2, data / "x.npy", port, out))
             for r in range(2)]
    for p in ranks:
        p.start()
    results = sorted(out.get(timeout=600) for _ in ranks)
    for p in ranks:
        p.join(120)
        assert p.exitcode == 0
    rows = [v for _, _, got, _ in results for batch in got for v in batch]
    assert sorted(rows) == [8.0 * i for i in range(1000)]
    assert results[0][1] == results[1][1]
    assert results[0][3] != results[1][3]   # alone, each has its own


@pytest.mark.parametrize("workers", [0, 2])
def test_in_pytorchs_loader(data, x, workers):
    ds = penstock.Dataset(data / "x.npy")
    same(tud.DataLoader(ds, 64, num_workers=workers),
         tud.DataLoader(Rows(x), 64))
    batched = tud.DataLoader(
        ds, batch_size=None, num_workers=workers, collate_fn=_numpy,
        sampler=tud.BatchSampler(range(1000), 64, False))
    same(batched, tud.DataLoader(Rows(x), 64))


def _numpy(batch):
    return {k: torch.from_numpy(v.copy()) for k, v in batch.numpy().items()}


def test_collate_of_a_dataset(data, x):
    ds = penstock.Dataset(data / "x.npy")
    got = collate(ds.__getitems__([3, 1]))
    assert torch.equal(got["x"], torch.from_numpy(x[[3, 1]]))
    got = collate([ds[3], ds[1]])
    assert torch.equal(got["x"], torch.from_numpy(x[[3, 1]]))


def test_what_is_ignored_is_said_once(data):
    import penstock.torch as module
    module._warned.clear()
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        for _ in range(2):
            DataLoader(data / "x.npy", 10, num_workers=2, prefetch_factor=2,
                       persistent_workers=True, worker_init_fn=print,
                       multiprocessing_context="spawn", pin_memory=True)
    ours = [str(w.message) for w in seen if "penstock" in str(w.message)]
    assert len(ours) == 3
    assert seen[0].filename == __file__


def test_refuses(data, x):
    with pytest.raises(TypeError, match="path"):
        DataLoader(Rows(x))
    with pytest.raises(ValueError):
        DataLoader(data / "x.npy", shuffle=True, sampler=[1])
    with pytest.raises(ValueError, match="did you mean"):
        DataLoader(data / "x.npy", thread=3)


def test_ragged(data):
    values, offsets, shapes = next(iter(DataLoader(data / "words", 10)))["x"]
    assert values.dtype == torch.int32 and len(offsets) == 11
    assert shapes.shape == (10, 2)


def test_close(data):
    with DataLoader(data / "x.npy", 10) as loader:
        t = next(iter(loader))["x"]
        assert loader.stats()["nbatches"] == 1
    assert t[0, 1] == 1


def _outcome(make, **args):
    """What comes of a loader: an error, or lengths, shapes and rows of two
    epochs."""
    torch.manual_seed(0)
    try:
        loader = make(**args)
    except (TypeError, ValueError) as e:
        return "refused", isinstance(e, ValueError)
    out = [len(loader), loader.batch_size, loader.drop_last]
    for _ in range(2):
        batches = [b["x"] for b in loader]
        out.append([tuple(b.shape) for b in batches])
        rows = torch.cat([b.reshape(-1, 8) for b in batches])[:, 0].tolist() \
            if batches else []
        random = args["shuffle"] or args["sampler"] == "random"
        out.append((len(rows), len(set(rows))) if random else rows)
    return out


@pytest.mark.parametrize("batch_size", [None, 1, 7, 30, 0, -1, True, 2.0])
def test_arguments_as_pytorch(tmp_path, x, batch_size):
    """Every combination of what says which samples come in which batch."""
    np.save(tmp_path / "x.npy", x[:23])
    path = tmp_path / "x.npy"
    rows = Rows(torch.from_numpy(x[:23]))
    samplers = {None: lambda: None, "list": lambda: [3, 1, 2, 7, 0],
                "random": lambda: tud.SubsetRandomSampler([1, 2, 3])}
    groups = {None: lambda: None, "lists": lambda: [[1, 2], [3], [4, 5, 6]],
              "drawn": lambda: tud.BatchSampler(range(23), 5, True)}

    def maker(cls, of):
        def make(sampler, batch_sampler, **args):
            return cls(of, sampler=samplers[sampler](),
                       batch_sampler=groups[batch_sampler](), **args)
        return make
    for shuffle in (None, False, True):
        for sampler in samplers:
            for batch_sampler in groups:
                for drop_last in (False, True):
                    args = {"batch_size": batch_size, "shuffle": shuffle,
                            "sampler": sampler, "drop_last": drop_last,
                            "batch_sampler": batch_sampler}
                    assert _outcome(maker(DataLoader, path), **args) == \
                        _outcome(maker(tud.DataLoader, rows), **args), args


def test_single_samples_are_shuffled(data):
    def first(loader):
        return [int(b["x"][0]) for b in loader]
    args = {"batch_size": None, "shuffle": True}
    g = torch.Generator()
    orders = []
    for seed in (1, 2, 1):
        g.manual_seed(seed)
        orders.append(first(DataLoader(data / "x.npy", generator=g, **args)))
    assert orders[0] == orders[2] != orders[1]
    assert sorted(orders[0]) == list(range(0, 8000, 8))


def test_loops_of_trainers(data):
    """What frameworks do: a look at two batches, whole epochs after it, the
    sampler's epoch set before each, and lengths asked for."""
    loader = DataLoader(data / "x.npy", batch_size=100, shuffle=True,
                        drop_last=True)
    assert len(loader.sampler) == 1000 and len(loader) == 10
    for n, _ in enumerate(loader):
        if n == 1:
            break
    seen = []
    for epoch in range(3):
        loader.sampler.set_epoch(epoch)
        it = iter(loader)
        rows = [int(v) // 8 for b in it for v in b["x"][:, 0]]
        assert sorted(rows) == list(range(1000))
        assert next(it, None) is None
        seen.append(rows)
    assert seen[0] != seen[1] != seen[2]
    loader.set_epoch(1)
    assert [int(v) // 8 for b in loader for v in b["x"][:, 0]] == seen[1]


def test_iterations_of_a_sampler(data, x):
    """An iteration that was left does not give its batches to the next."""
    loader = DataLoader(data / "x.npy", 10, sampler=range(200))
    left = iter(loader)
    next(left)
    again = [b["x"] for b in loader]
    assert len(again) == 20
    for i, rows in enumerate(again):
        assert np.array_equal(rows, x[10 * i:10 * i + 10])
    with pytest.raises(RuntimeError, match="another iteration"):
        next(left)
    one, other = iter(loader), iter(loader)
    next(one), next(other)
    with pytest.raises(RuntimeError, match="another iteration"):
        next(one)
    assert np.array_equal(next(other)["x"], x[10:20])
    loader.close()
    with pytest.raises(ValueError, match="closed"):
        next(other)
