"""decode=: decoding of fields of bytes in every format."""
import io
import json
import os
import sys

import numpy as np
import penstock
import pytest

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "data"))
from make_formats import example, frame  # noqa: E402

Image = pytest.importorskip("PIL.Image")


def encoded(i, kind, equal=False, quality=80):
    """A picture that differs, and its bytes."""
    h, w = (24, 32) if equal else (9 + i % 11, 40 - i % 7)
    y, x, k = np.mgrid[0:h, 0:w, 0:3]
    im = Image.fromarray((x * 5 + y * (3 + k) + i * 7).astype(np.uint8))
    b = io.BytesIO()
    im.save(b, kind, **({"quality": quality} if kind == "JPEG" else {}))
    return b.getvalue()


def pixels(b):
    return np.array(Image.open(io.BytesIO(b)))


def records(path, values, name="image"):
    """Two files of records, each with a picture and a number."""
    data = [frame(example({name: v, "label": np.int64(i)}))
            for i, v in enumerate(values)]
    os.makedirs(path, exist_ok=True)
    half = len(data) // 2
    for file, part in ("a", data[:half]), ("b", data[half:]):
        with open(path / f"{file}.tfrecord", "wb") as f:
            f.write(b"".join(part))
    return path


def rows(loader, name="image"):
    """{label: array} of all batches."""
    out = {}
    for b in loader:
        for i, label in enumerate(np.asarray(b["label"]).tolist()):
            assert label not in out
            out[label] = np.array(b[name][i])
    return out


def same(got, want):
    assert got.keys() == want.keys()
    for k, v in want.items():
        assert got[k].dtype == v.dtype and np.array_equal(got[k], v)


@pytest.mark.parametrize("kind", ["JPEG", "PNG"])
@pytest.mark.parametrize("equal", [False, True])
def test_images_in_records(tmp_path, kind, equal):
    data = [encoded(i, kind, equal) for i in range(53)]
    path = records(tmp_path / "r", data)
    want = {i: pixels(b) for i, b in enumerate(data)}
    for threads in (1, 2, 4):
        for shuffle in (None, True):
            loader = penstock.Loader(path, 8, shuffle, threads=threads,
                                     decode={"image": kind.lower()})
            same(rows(loader), want)
    # fields without a decoder stay bytes
    for b in penstock.Loader(path, 1):
        label = int(np.asarray(b["label"])[0])
        assert bytes(np.array(b["image"][0])) == data[label]
    padded = penstock.Loader(path, 8, shapes="padded", decode_image="auto")
    for b in padded:
        x = np.asarray(b["image"])
        for i, label in enumerate(np.asarray(b["label"]).tolist()):
            h, w, _ = want[label].shape
            assert np.array_equal(x[i, :h, :w], want[label])
            assert not x[i, h:].any() and not x[i, :, w:].any()


def test_resume(tmp_path):
    data = [encoded(i, "JPEG") for i in range(40)]
    path = records(tmp_path / "r", data)
    how = {"decode": {"image": "jpeg"}, "seed": 3}
    whole = [np.asarray(b["label"]).tolist()
             for b in penstock.Loader(path, 6, True, threads=2, **how)]
    first = penstock.Loader(path, 6, True, threads=2, **how)
    it = iter(first)
    seen = [np.asarray(next(it)["label"]).tolist() for _ in range(3)]
    second = penstock.Loader(path, 6, True, threads=1, **how)
    second.load_state_dict(first.state_dict())
    for b in second:
        seen.append(np.asarray(b["label"]).tolist())
        for i, label in enumerate(seen[-1]):
            assert np.array_equal(np.array(b["image"][i]),
                                  pixels(data[label]))
    assert seen == whole


@pytest.mark.parametrize("threads", [1, 4])
def test_damaged_are_skipped(tmp_path, threads):
    data = [encoded(i, "JPEG") for i in range(40)]
    bad = {3: data[3][:-30], 17: b"no picture", 18: b"", 25: data[25][:40],
           39: data[39][:len(data[39]) // 2]}
    path = records(tmp_path / "r",
                   [bad.get(i, b) for i, b in enumerate(data)])
    want = {i: pixels(b) for i, b in enumerate(data) if i not in bad}
    loader = penstock.Loader(path, 7, True, threads=threads, on_error="skip",
                             decode={"image": "jpeg"})
    same(rows(loader), want)
    told = {s[0]: str(s[-1]) for s in loader.skipped()}
    assert sorted(told) == sorted(bad)
    assert all("image" in text for text in told.values())
    assert "the value is empty" in told[18]
    assert "starts with 'no pictu'" in told[17]
    with pytest.raises(penstock.DataError, match="sample 3, field"):
        rows(penstock.Loader(path, 7, decode={"image": "jpeg"}))


def test_files_are_told_by_content(tmp_path):
    data = [encoded(i, "PNG" if i % 2 else "JPEG") for i in range(20)]
    for i, b in enumerate(data):
        name = f"{i:02}." + ("png" if i % 2 else "jpg")
        (tmp_path / name).write_bytes(b)
    got = [s["x"] for s in penstock.Dataset(tmp_path)]
    assert all(np.array_equal(a, pixels(b)) for a, b in zip(got, data))
    got = [s["x"] for s in penstock.Dataset(tmp_path, format="jpeg")]
    assert len(got) == 10
    got = [s["x"] for s in penstock.Dataset(tmp_path, format="files")]
    assert [bytes(a) for a in got] == data
    got = penstock.Dataset(tmp_path, decode={"x": None})
    assert [bytes(s["x"]) for s in got] == data


def test_index_cache(tmp_path):
    """Another decoder means another index; the same one is reused."""
    data = [encoded(i, "JPEG") for i in range(12)]
    path = records(tmp_path / "r", data)
    want = {i: pixels(b) for i, b in enumerate(data)}
    for _ in range(2):
        for color in ("rgb", "grey", None):
            how = "none" if not color else f"jpeg:color={color}"
            loader = penstock.Loader(path, 5, index_cache=tmp_path / "cache",
                                     decode={"image": how})
            got = rows(loader)
            if color == "rgb":
                same(got, want)
            elif color:
                assert got[3].shape == want[3].shape[:2]
            else:
                assert bytes(got[3]) == data[3]


def test_labels_and_text(tmp_path):
    words = ["", "a", "hé", "日本語" * 5, "x"]
    docs = [f'{{"t": "{w}", "n": {i}}}'.encode() for i, w in enumerate(words)]
    path = records(tmp_path / "r", docs, "doc")
    got = rows(penstock.Loader(path, 2, decode={"doc": "json:t"}), "doc")
    assert [bytes(got[i]).decode() for i in range(5)] == words
    got = rows(penstock.Loader(path, 2, decode={"doc": "json:n,type=int"}),
               "doc")
    assert [int(got[i]) for i in range(5)] == list(range(5))


def test_labels_beside_images(tmp_path):
    """A column is read without decoding other fields."""
    data = [encoded(i, "JPEG") for i in range(20)]
    path = tmp_path / "r"
    path.mkdir()
    (path / "a.tfrecord").write_bytes(b"".join(
        frame(example({"image": b, "cls": b" %d\n" % (i % 3),
                       "label": np.int64(i)}))
        for i, b in enumerate(data)))
    loader = penstock.Loader(path, 4, "balanced", labels="field:cls",
                             decode={"image": "jpeg", "cls": "int"})
    for b in loader:
        y, cls, label = (np.asarray(b[k]) for k in ("y", "cls", "label"))
        assert np.array_equal(y, label % 3) and np.array_equal(cls, y)
        for i, k in enumerate(label.tolist()):
            assert np.array_equal(np.array(b["image"][i]), pixels(data[k]))
    got = rows(penstock.Loader(path, 4, labels="field:label",
                               decode={"image": "jpeg"}))
    same(got, {i: pixels(b) for i, b in enumerate(data)})


def test_arrays_of_bytes(tmp_path):
    h5py = pytest.importorskip("h5py")
    a = np.arange(60, dtype=np.float32).reshape(10, 2, 3)
    with h5py.File(tmp_path / "a.h5", "w") as f:
        f["x"] = np.frombuffer(a.tobytes(), np.uint8).reshape(10, 24)
        f["y"] = np.arange(10)
    for chunk in (None, (3, 24)):
        with h5py.File(tmp_path / "a.h5", "a") as f:
            x = f["x"][:]
            del f["x"]
            f.create_dataset("x", data=x, chunks=chunk,
                             compression="gzip" if chunk else None)
        ds = penstock.Dataset(tmp_path / "a.h5",
                              decode={"x": "raw:float32,shape=2x3"})
        assert all(np.array_equal(s["x"], b) for s, b in zip(ds, a))
        with pytest.raises(penstock.Error, match="does not provide"):
            penstock.Dataset(tmp_path / "a.h5", decode={"x": "jpeg"})


def zarr_array(path, a, chunk):
    """Version 2, not compressed, chunks along the first axis."""
    path.mkdir()
    rest = a.shape[1:]
    (path / ".zarray").write_text(json.dumps({
        "zarr_format": 2, "shape": a.shape, "chunks": [chunk, *rest],
        "dtype": a.dtype.str, "compressor": None, "fill_value": 0,
        "order": "C", "filters": None}))
    for i in range(0, len(a), chunk):
        part = np.zeros((chunk, *rest), a.dtype)
        part[:len(a[i:i + chunk])] = a[i:i + chunk]
        (path / ".".join([str(i // chunk)] + ["0"] * len(rest))).write_bytes(
            part.tobytes())


@pytest.mark.parametrize("sampler", ["sequential", "block", "balanced"])
def test_bytes_in_zarr(tmp_path, sampler):
    """A format that is decided only at bind()."""
    a = np.arange(60, dtype=np.float32).reshape(10, 2, 3)
    root = tmp_path / "a.zarr"
    root.mkdir()
    (root / ".zgroup").write_text('{"zarr_format": 2}')
    zarr_array(root / "img",
               np.frombuffer(a.tobytes(), np.uint8).reshape(10, 24), 3)
    zarr_array(root / "label", np.arange(10), 4)
    more = {"labels": "field:label"} if sampler == "balanced" else {}
    loader = penstock.Loader(root, 4, sampler, **more,
                             decode={"img": "raw:float32,shape=2x3"})
    assert not loader.labels("label")
    for b in loader:
        for i, label in enumerate(np.asarray(b["label"]).tolist()):
            assert np.array_equal(np.array(b["img"][i]), a[label])


def test_label_of_a_taken_name(tmp_path):
    """With decoded fields, too."""
    path = tmp_path / "r"
    path.mkdir()
    for folder in "ab":
        (path / folder).mkdir()
        (path / folder / "a.tfrecord").write_bytes(b"".join(
            frame(example({"v": b"12", "y": np.int64(i)})) for i in range(3)))
    for how in ({}, {"decode": {"v": "int"}}):
        with pytest.raises(penstock.Error, match="which the data has too"):
            penstock.Loader(path, 2, labels="folder", fields=["v", "y"], **how)


def test_first_record_damaged(tmp_path):
    """It gets the shape of its neighbours, so theirs does not change."""
    data = [frame(example({"v": b"12", "label": np.int64(i)}))
            for i in range(5)]
    for n in 1, 2:
        hurt = [b[:-1] + bytes([b[-1] ^ 1]) if i < n else b
                for i, b in enumerate(data)]
        (tmp_path / f"{n}.tfrecord").write_bytes(b"".join(hurt))
        loader = penstock.Loader(tmp_path / f"{n}.tfrecord", 5,
                                 on_error="skip",
                                 options={"format.scan": "full"})
        label = np.concatenate([np.asarray(b["label"]) for b in loader])
        assert label.shape == (5 - n,) and label.tolist() == [*range(n, 5)]


@pytest.mark.parametrize("n", [2**53 + 1, -2**53 - 1, 2**63, 0.5, 1e300])
def test_json_integers_are_exact(tmp_path, n):
    path = records(tmp_path / "r", [b'{"n": %s}' % str(k).encode()
                                    for k in (n, -2**53, 2**53, 1.0)], "doc")
    loader = penstock.Loader(path, 2, on_error="skip",
                             decode={"doc": "json:n,type=int"})
    got = rows(loader, "doc")
    assert {k: int(v) for k, v in got.items()} == {1: -2**53, 2: 2**53, 3: 1}


def test_refusals(tmp_path):
    path = records(tmp_path / "r", [encoded(i, "JPEG") for i in range(4)])
    for text, how in [
            ("did you mean 'jpeg'", {"decode": {"image": "jpgeg"}}),
            ("no field 'imag'; did you mean 'image'",
             {"decode": {"imag": "jpeg"}}),
            ("only bytes", {"decode": {"label": "int"}}),
            ("omit one of them",
             {"options": {"decode": False, "decode.image": "jpeg"}})]:
        with pytest.raises(penstock.Error, match=text):
            penstock.Loader(path, 2, **how)
