"""Batches by length against the rules written down in Python, content against
what NumPy wrote."""
import numpy as np
import penstock
import pytest

N = 57


@pytest.fixture(scope="module")
def words(tmp_path_factory):
    """Files of different length with a label each."""
    d = tmp_path_factory.mktemp("lists")
    rng = np.random.default_rng(3)
    lists = [rng.integers(1, 1000, rng.integers(1, 40)).astype("i4")
             for _ in range(N)]
    for i, x in enumerate(lists):
        np.savez(d / f"{i:03}.npz", x=x, y=np.int64(i * 3))
    return d, lists


def order_of(path, **how):
    loader = penstock.Loader(path, 1, samples="file", **how)
    return [b.ids.tolist()[0] for b in loader]


def greedy(lengths, tokens, padded):
    """[(first, end)] of batches."""
    out, first = [], 0
    for i in range(len(lengths)):
        part = lengths[first:i + 1]
        used = max(part) * len(part) if padded else sum(part)
        if used > tokens and i > first:
            out.append((first, i))
            first = i
    return out + [(first, len(lengths))]


@pytest.mark.parametrize("padded", [False, True])
@pytest.mark.parametrize("world", [1, 2, 3])
def test_tokens(words, padded, world):
    path, lists = words
    order = order_of(path, shuffle=True, seed=4)
    want = greedy([len(lists[i]) for i in order], 90, padded)
    more = {"shapes": "padded"} if padded else {}
    for rank in range(world):
        loader = penstock.Loader(path, shuffle=True, seed=4, rank=rank,
                                 world=world, tail="keep", samples="file",
                                 batch_tokens=90, **more)
        mine = want[rank::world]
        assert len(loader) == len(mine)
        for b, (first, end) in zip(loader, mine):
            assert b.ids.tolist() == order[first:end]
            x = b["x"]
            if padded:
                full = x.numpy()
                assert full.shape[1] == max(len(lists[i]) for i in b.ids.tolist())
                rows = [r[:n] for r, (n,) in zip(full, x.shapes.tolist())]
            else:
                v, o, _ = x.numpy()     # what varlen attention takes
                assert o[0] == 0 and o[-1] == len(v) == x.values.shape[0]
                rows = np.split(v, o[1:-1])
            for i, row in zip(b.ids.tolist(), rows):
                assert np.array_equal(row, lists[i])
            assert b["y"].tolist() == [3 * i for i in b.ids.tolist()]


@pytest.mark.parametrize("shuffle", [True, "bucket"])
def test_resume(words, shuffle):
    path, _ = words
    how = dict(shuffle=shuffle, seed=4, samples="file", batch_tokens=90)
    loader = penstock.Loader(path, **how)
    first, states = [], []
    for b in loader:
        first.append(b.ids.tolist())
        states.append(loader.state_dict())
    assert sorted(sum(first, [])) == list(range(N))
    second = [b.ids.tolist() for b in loader]
    assert second != first and sorted(sum(second, [])) == list(range(N))
    for n, state in enumerate(states[:-1]):
        loader.load_state_dict(state)
        assert [b.ids.tolist() for b in loader] == first[n + 1:]


def test_pack(words):
    path, lists = words
    loader = penstock.Loader(path, 3, shuffle=True, samples="file", pack=64)
    assert [f[3] for f in loader.fields] == ["packed", "dense"]
    seen, used, room = [], 0, 0
    for b in loader:
        x, segment, position = (b[k].numpy() for k in
                                ("x", "x.segment", "x.position"))
        assert x.shape == segment.shape == position.shape == (3, 64)
        ids = iter(b.ids.tolist())
        labels = iter(b["y"].tolist())
        starts = iter(b["x"].offsets.tolist())
        for r in range(3):
            for s in range(1, segment[r].max() + 1):
                where = np.flatnonzero(segment[r] == s)
                i = next(ids)
                seen.append(i)
                assert next(labels) == 3 * i
                assert next(starts) == r * 64 + where[0]
                assert position[r, where].tolist() == list(range(len(where)))
                assert np.array_equal(x[r, where], lists[i])
        assert not x[segment == 0].any()
        assert next(ids, None) is None
        used += (segment > 0).sum()
        room += x.size
    assert sorted(seen) == list(range(N))
    assert used / room > 0.8    # the last batch is short


def test_split(words):
    path, lists = words
    loader = penstock.Loader(path, 4, samples="file", pack=16,
                             too_long="split", tail="keep")
    parts = {i: [] for i in range(N)}
    for b in loader:
        flat = b["x"].numpy().reshape(-1)
        for i, at, (n,) in zip(b.ids.tolist(), b["x"].offsets.tolist(),
                               b["x"].shapes.tolist()):
            parts[i].append(flat[at:at + n].tolist())
    for i, x in enumerate(lists):
        want = [x[k:k + 16].tolist() for k in range(0, len(x), 16)]
        assert sorted(parts[i]) == sorted(want)


def test_lengths(words):
    path, _ = words
    loader = penstock.Loader(path, samples="file", batch_tokens=10,
                             lengths=np.full(N, 5))
    assert [b.nsamples for b in loader] == [2] * (N // 2) + [1]


def test_torch(words):
    torch = pytest.importorskip("torch")
    from penstock.torch import DataLoader
    path, lists = words
    loader = DataLoader(path, shuffle="bucket", samples="file", seed=1,
                        batch_tokens=200, shapes="padded", pad_multiple=8)
    n = len(loader)
    batches = list(loader)
    assert len(batches) == n < N
    assert all(b["x"].shape[1] % 8 == 0 for b in batches)
    assert all(b["x"].numel() <= 200 or len(b["x"]) == 1 for b in batches)
    assert sum(len(b["y"]) for b in batches) == N
    assert len(loader.dataset) == N
    loader = DataLoader(path, 2, samples="file", pack=64)
    batch = next(iter(loader))
    assert batch["x"].shape == batch["x.segment"].shape == (2, 64)
    assert batch["x.segment"].dtype == torch.int32
    loader = DataLoader(path, 2, samples="file", pack=64,
                        collate_fn=lambda samples: samples)
    for s in next(iter(loader)):
        assert np.array_equal(s["x"].numpy(), lists[int(s["y"]) // 3])


@pytest.mark.parametrize("side", ["left", "right"])
def test_padding_token(tmp_path, side):
    """What fills a row is the tokeniser's, on its side; rows of samples are
    without it."""
    (tmp_path / "s.fa").write_text(">a\nACG\n>b\nGGGTTT\n")
    how = dict(format_tokens="chars", format_specials="unk,cls,pad",
               format_pad=side, shapes="padded")
    b = next(iter(penstock.Loader(tmp_path / "s.fa", 2, pad_multiple=4, **how)))
    fill = [2] * 5
    rows = [[3, 4, 5], [5, 5, 5, 6, 6, 6]]
    assert b["tokens"].tolist() == [
        fill + rows[0] if side == "left" else rows[0] + fill,
        fill[:2] + rows[1] if side == "left" else rows[1] + fill[:2]]
    ds = penstock.Dataset(tmp_path / "s.fa", **how)
    assert ds[0]["tokens"].tolist() == rows[0]
    b = next(iter(penstock.Loader(tmp_path / "s.fa", 1, pack=12, **how)))
    assert b["tokens"].tolist() == [rows[1] + rows[0] + [2] * 3]


def test_refused(words):
    path, _ = words
    with pytest.raises(penstock.SettingError, match="too_long=cut or split"):
        penstock.Loader(path, samples="file", pack=8)
    with pytest.raises(penstock.SettingError, match="combined with pack="):
        penstock.Loader(path, samples="file", pack=64, batch_tokens=8)
