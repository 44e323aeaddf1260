"""image=: crop, resize and normalise, compared with Pillow to the bit."""
import io
import os
import sys

import numpy as np
import penstock
import pytest

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "data"))
from make_formats import example, frame  # noqa: E402

Image = pytest.importorskip("PIL.Image")

SIZES = [(100, 75), (75, 100), (66, 100), (17, 33), (1, 1), (200, 60),
         (48, 48), (31, 7), (400, 300)]
MEAN = np.array([.485, .456, .406], np.float32)
STD = np.array([.229, .224, .225], np.float32)


def photo(w, h, seed):
    a = np.random.default_rng(seed).integers(
        0, 256, (max(2, h // 8), max(2, w // 8), 3), dtype=np.uint8)
    return Image.fromarray(a).resize((w, h), Image.BICUBIC)


def kinds(im):
    """(suffix, picture, arguments of save) of every kind that we read."""
    for sub in (0, 1, 2):
        yield f"s{sub}.jpg", im, {"quality": 90, "subsampling": sub}
    yield "p.jpg", im, {"progressive": True}
    yield "g.jpg", im.convert("L"), {}
    yield "c.jpg", im.convert("CMYK"), {}
    yield "rgb.png", im, {}
    yield "pal.png", im.convert("P"), {}
    yield "la.png", im.convert("LA"), {}
    yield "rgba.png", im.convert("RGBA"), {}
    yield "1.png", im.convert("1"), {}
    grey = np.array(im.convert("L")).astype(np.uint16)
    yield "i16.png", Image.fromarray(grey * 3), {}


@pytest.fixture(scope="module")
def photos(tmp_path_factory):
    top = tmp_path_factory.mktemp("photos")
    for i, (w, h) in enumerate(SIZES):
        for suffix, im, how in kinds(photo(w, h, i)):
            os.makedirs(top / suffix[0], exist_ok=True)
            im.save(top / suffix[0] / f"{i}{suffix}", **how)
    return top


def files(top):
    return sorted(os.path.join(d, n) for d, _, names in os.walk(top)
                  for n in names)


def resized(im, shorter, size, how=Image.BILINEAR):
    """Resize and CenterCrop of torchvision."""
    w, h = im.size
    if w <= h:
        to = shorter, int(shorter * h / w)
    else:
        to = int(shorter * w / h), shorter
    im = im.resize(to, how)
    left, top = (int(round((n - size) / 2.0)) for n in to)
    return im.crop((left, top, left + size, top + size))


def compare(top, want, **settings):
    names = files(top)
    loader = penstock.Loader(str(top), batch_size=4, **settings)
    rows = [np.array(x) for b in loader for x in np.asarray(b["x"])]
    assert len(rows) == len(names)
    for name, x in zip(names, rows):
        with Image.open(name) as im:
            e = np.asarray(want(im.convert("RGB")))
        assert x.dtype == e.dtype and x.shape == e.shape, name
        assert (x == e).all(), name


@pytest.mark.parametrize("threads", [1, 3])
def test_eval(photos, threads):
    compare(photos, lambda im: resized(im, 40, 32), threads=threads,
            **{"image.resize": 40, "image.crop": "center", "image.size": 32})


def test_normalised(photos):
    def want(im):
        x = np.asarray(resized(im, 40, 32)).astype(np.float32)
        return ((x / np.float32(255) - MEAN) / STD).transpose(2, 0, 1)
    compare(photos, want, image="eval:40,32")
    compare(photos, lambda im: want(im).astype(np.float16),
            image="eval:40,32", image_dtype="float16")
    compare(photos, lambda im: want(im).transpose(1, 2, 0),
            image="eval:40,32", image_layout="hwc")


@pytest.mark.parametrize("name", ["nearest", "box", "bilinear", "hamming",
                                  "bicubic", "lanczos"])
def test_filters(photos, name):
    how = getattr(Image, name.upper())
    for size in ((9, 61), (120, 90)):
        compare(photos, lambda im, s=size: im.resize(s[::-1], how),
                image_size=f"{size[0]}x{size[1]}", image_filter=name)


def test_crop_and_flip(photos):
    def want(im, size=24):
        w, h = im.size
        a = np.zeros((size, size, 3), np.uint8)
        left = round((w - size) / 2) if w >= size else -((size - w) // 2)
        top = round((h - size) / 2) if h >= size else -((size - h) // 2)
        a[:] = np.asarray(im.crop((left, top, left + size, top + size)))
        return a[::-1, ::-1]
    compare(photos, want, image_size=24, image_crop="center", image_flip=1,
            image_vflip=1)


def batches(path, **settings):
    return [np.array(b["x"]) for b in penstock.Loader(
        str(path), batch_size=5, shuffle=True, seed=3, image="train:16",
        image_jitter="0.4,0.4,0.4,0.1", image_grey=0.2, **settings)]


def test_random_is_a_function_of_the_sample(photos):
    one = batches(photos, threads=1, epochs=2)
    for a, b in zip(one, batches(photos, threads=4, epochs=2), strict=True):
        assert (a == b).all()
    half = len(one) // 2
    assert any((a != b).any() for a, b in zip(one[:half], one[half:])
               if a.shape == b.shape)
    state = None
    loader = penstock.Loader(str(photos), batch_size=5, shuffle=True, seed=3,
                             image="train:16", image_grey=0.2, epochs=2,
                             image_jitter="0.4,0.4,0.4,0.1")
    for i, _ in enumerate(loader):
        if i == 6:
            state = loader.state_dict()
            break
    again = penstock.Loader(str(photos), batch_size=5, shuffle=True, seed=3,
                            image="train:16", image_grey=0.2, epochs=2,
                            image_jitter="0.4,0.4,0.4,0.1")
    again.load_state_dict(state)
    for a, b in zip(one[7:], again):
        assert (a == np.asarray(b["x"])).all()


def test_labels_of_folders(photos):
    loader = penstock.Loader(str(photos), batch_size=8, labels="folder",
                             image="eval:20,16")
    classes = sorted(os.listdir(photos))
    names = [os.path.basename(os.path.dirname(n)) for n in files(photos)]
    y = np.concatenate([np.asarray(b["y"]) for b in loader])
    assert [classes[i] for i in y] == names


def test_records(tmp_path):
    values = []
    for i in range(6):
        b = io.BytesIO()
        photo(40 + i, 30, i).save(b, "JPEG")
        values.append(b.getvalue())
    with open(tmp_path / "a.tfrecord", "wb") as f:
        for i, v in enumerate(values):
            f.write(frame(example({"image": v, "label": np.int64(i)})))
    rows = [np.array(x) for b in penstock.Loader(
        str(tmp_path), batch_size=2, decode={"image": "jpeg"},
        image_size="12x10") for x in np.asarray(b["image"])]
    for v, x in zip(values, rows, strict=True):
        im = Image.open(io.BytesIO(v)).convert("RGB")
        assert (x == np.asarray(im.resize((10, 12), Image.BILINEAR))).all()


def test_damage_obeys_the_policy(tmp_path):
    for i in range(4):
        photo(64, 48, i).save(tmp_path / f"{i}.jpg")
    data = (tmp_path / "2.jpg").read_bytes()
    (tmp_path / "2.jpg").write_bytes(data[:len(data) // 2])
    with pytest.raises(penstock.Error, match="2.jpg"):
        list(penstock.Loader(str(tmp_path), batch_size=4, image="eval:40,32"))
    b, = penstock.Loader(str(tmp_path), batch_size=4, image="eval:40,32",
                         on_error="skip")
    assert np.asarray(b["x"]).shape[0] == 3


@pytest.mark.parametrize("settings, message", [
    ({"image": "train:16", "take": "3x3"}, "conflicts"),
    ({"image": "train:16", "cast": "float16"}, "conflicts"),
    ({"image": "train"}, "train:SIZE or eval:RESIZE,SIZE"),
    ({"image_flip": 0.5}, "image.size"),
    ({"image": "train:16", "image_dtype": "uint8"}, "contradicts"),
    ({"image": "train:16", "image_sise": 3}, "size"),
    ({"image.y.size": 16}, "no such field"),
    ({"image": "train:16", "format_color": "rgba"}, "RGB"),
])
def test_refused(photos, settings, message):
    with pytest.raises(penstock.SettingError, match=message):
        penstock.Loader(str(photos), batch_size=4, **settings)


def test_only_images(tmp_path):
    np.save(tmp_path / "x.npy", np.zeros((4, 3)))
    with pytest.raises(penstock.SettingError, match="decoded as an image"):
        penstock.Loader(str(tmp_path / "x.npy"), image="train:16")
