"""Resuming, exactly, with respect to what the user has received."""
import numpy as np
import penstock
import pytest
from conftest import ids_of


def slow(batch):
    return batch


@pytest.mark.parametrize("transform", [None, slow])
@pytest.mark.parametrize("at", [0, 1, 7, 33, 34])
def test_mid_epoch(data, transform, at):
    def loader(**kw):
        return penstock.Loader(data / "x.npy", 30, True, seed=5,
                               transform=transform, ahead=4, **kw)
    whole = loader()
    want = ids_of(whole) + ids_of(whole)
    first = loader()
    it = iter(first)
    got = [next(it).ids.tolist() for _ in range(at)]
    state = first.state_dict()
    assert all(isinstance(v, int) for v in state.values())
    second = loader(threads=1, prefetch=1)
    second.load_state_dict(state)
    if at == 34:    # everything was received, but not the end
        assert ids_of(second) in ([], want[34:])
        return
    got += ids_of(second) + ids_of(second)
    assert got == want


def test_state_at_the_end_of_an_epoch(data):
    loader = penstock.Loader(data / "x.npy", 100, True)
    list(loader)
    state = loader.state_dict()
    assert (state["epoch"], state["position"]) == (1, 0)
    want = ids_of(loader)
    loader.load_state_dict(state)
    assert ids_of(loader) == want


def test_same_loader_goes_back(data):
    loader = penstock.Loader(data / "x.npy", 100, True)
    it = iter(loader)
    next(it)
    state = loader.state_dict()
    rest = [b.ids.tolist() for b in it]
    loader.load_state_dict(state)
    assert ids_of(loader) == rest
    with pytest.raises(RuntimeError):
        it2 = iter(loader)
        next(it2)
        loader.load_state_dict(state)
        next(it2)


def ranks(data, world, batch, state=None, stop=None):
    """What the ranks receive together, and the state of each."""
    got, states = [], []
    for r in range(world):
        loader = penstock.Loader(data / "x.npy", batch, True, seed=2, rank=r,
                                 world=world, tail="keep")
        if state:
            loader.load_state_dict(state)
        it = iter(loader)
        mine = [b.ids.tolist() for _, b in zip(range(stop or 10**6), it)]
        got.append(mine)
        states.append(loader.state_dict())
    flat = [i for step in zip(*got) for part in step for i in part]
    tail = [i for mine in got for part in mine[min(map(len, got)):]
            for i in part]
    return flat + tail, states


@pytest.mark.parametrize("then", [1, 2, 5])
def test_other_world(data, then):
    whole, _ = ranks(data, 1, 40)
    assert sorted(whole) == list(range(1000))
    first, states = ranks(data, 4, 10, stop=6)
    assert first == whole[:240]
    assert len({s["position"] for s in states}) == 1
    rest, _ = ranks(data, then, 40 // then, states[3])
    assert first + rest == whole


def test_what_does_not_fit(data):
    loader = penstock.Loader(data / "x.npy", 10, True, seed=1)
    state = loader.state_dict()
    for other in ({"seed": 2}, {"shuffle": "block"}, {"subset": [1, 2, 3]}):
        with pytest.raises(ValueError, match="state"):
            penstock.Loader(data / "x.npy", 10, **{
                "shuffle": True, "seed": 1, **other}).load_state_dict(state)
    for wrong in ({}, {**state, "version": 9}, {**state, "order": "x"}, None):
        with pytest.raises(ValueError, match="state"):
            loader.load_state_dict(wrong)


def test_subset_by_array_resumes(data):
    keep = np.arange(0, 1000, 3)
    a = penstock.Loader(data / "x.npy", 20, True, subset=keep)
    it = iter(a)
    next(it)
    b = penstock.Loader(data / "x.npy", 20, True, subset=keep.tolist())
    b.load_state_dict(a.state_dict())
    assert ids_of(b) == [x.ids.tolist() for x in it]
