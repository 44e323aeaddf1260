"""labels=: the label is a field of the batches, whatever the format."""
import os

import numpy as np
import penstock
import pytest


def y_of(batches, name="y"):
    out = {}
    for b in batches:
        y = np.asarray(b[name])
        assert y.dtype == np.int64 and y.shape == (len(b.ids),)
        out.update(zip(b.ids.tolist(), y.tolist()))
    return [out[i] for i in range(len(out))]


def test_array(data, x):
    want = np.arange(1000) * 7 % 13
    for shuffle in (None, True, "block"):
        loader = penstock.Loader(data / "x.npy", 64, shuffle, labels=want)
        assert [f[0] for f in loader.fields] == ["x", "y"]
        assert y_of(loader) == want.tolist()
        assert loader.labels("y") is None
    loader = penstock.Loader(data / "x.npy", 64, labels=want, fields="x")
    assert next(iter(loader)).keys() == ["x"]
    assert [f[0] for f in loader.fields] == ["x"]
    loader = penstock.Loader(data / "x.npy", 64, labels=want, fields=["y"])
    assert y_of(loader) == want.tolist()
    assert next(iter(loader)).keys() == ["y"]


def test_subset_and_dataset(data):
    want = np.arange(1000) * 7 % 13
    ds = penstock.Dataset(data / "x.npy", labels=want, subset=[5, 900, 7])
    assert [int(s["y"]) for s in ds] == want[[5, 900, 7]].tolist()
    assert [int(s["x"][0]) // 8 for s in ds] == [5, 900, 7]
    ds = penstock.Dataset(data / "x.npy", labels=want, subset=slice(3, 99, 4))
    assert ds[2]["y"] == want[11]
    loader = penstock.Loader(data / "x.npy", 10, True, labels=[4, 5, 6],
                             subset=[900, 1, 44])
    b = next(iter(loader))
    assert dict(zip(b.ids.tolist(), np.asarray(b["y"]).tolist())) == {
        900: 4, 1: 5, 44: 6}


def test_a_field_of_that_name(data):
    with pytest.raises(penstock.SettingError, match="label_name="):
        penstock.Loader(data / "tables", 10, samples="first",
                        labels=np.arange(100))
    loader = penstock.Loader(data / "tables", 10, samples="first",
                             labels=np.arange(100) % 3, label_name="kind")
    for b in loader:
        assert b.keys() == ["x", "y", "kind"]
        assert np.array_equal(np.asarray(b["kind"]), np.asarray(b.ids) % 3)
        assert np.array_equal(np.asarray(b["y"]), b.ids)
    # the label is that field already
    loader = penstock.Loader(data / "tables", 10, samples="first",
                             labels="field:y")
    b = next(iter(loader))
    assert b.keys() == ["x", "y"] and np.array_equal(np.asarray(b["y"]), b.ids)
    loader = penstock.Loader(data / "tables", 10, samples="first",
                             labels="field:y", label_name="kind")
    assert y_of(loader, "kind") == list(range(100))


def test_fields_and_kept_indexes(tmp_path):
    """fields= that name the label: the data's field of that name is noticed
    though the format is not asked for it, and indexes are not mixed up."""
    x = np.arange(20, dtype="f4").reshape(10, 2)
    (tmp_path / "a").mkdir(), (tmp_path / "b").mkdir()
    np.savez(tmp_path / "a" / "t.npz", x=x, y=np.arange(10) + 50, z=x)
    np.savez(tmp_path / "b" / "t.npz", x=x, z=x)
    for p in ("a", "b"):
        os.utime(tmp_path / p, (1e9, 1e9))
    labels = np.arange(10) % 3
    for _ in range(2):
        own = penstock.Loader(tmp_path / "a", 10, fields=["x", "y"],
                              samples="first")
        assert y_of(own) == list(range(50, 60))
        with pytest.raises(penstock.SettingError, match="label_name="):
            penstock.Loader(tmp_path / "a", 10, fields=["x", "y"],
                            samples="first", labels=labels)
        added = penstock.Loader(tmp_path / "b", 10, fields=["x", "y"],
                                samples="first", labels=labels)
        assert y_of(added) == labels.tolist()
        assert np.array_equal(np.asarray(next(iter(added))["x"]), x)
        with pytest.raises(OSError, match="no member .y.npy."):
            penstock.Loader(tmp_path / "b", 10, fields=["x", "y"],
                            samples="first")


def test_folders(tmp_path):
    """As torchvision's ImageFolder: classes are folders, sorted by name."""
    image = pytest.importorskip("PIL.Image")
    for n, name in enumerate(("zebra", "ant", "Bee", "empty")):
        (tmp_path / name).mkdir()
        for i in range(3 * (name != "empty")):
            image.new("RGB", (4, 4), (n, i, 0)).save(
                tmp_path / name / f"{i}.png")
    names = ["Bee", "ant", "zebra"]
    for path in (tmp_path, tmp_path / "*" / "*.png"):
        loader = penstock.Loader(path, 4, True, labels="folder")
        assert loader.labels("y") == names
        for b in loader:
            for image, y in zip(np.asarray(b["x"]), np.asarray(b["y"])):
                assert {0: "zebra", 1: "ant", 2: "Bee"}[image[0, 0, 0]] == \
                    names[y]
    about = loader.about()
    assert about["codes of y"] == "0 Bee, 1 ant, 2 zebra"
    # several paths: as many classes as folders
    loader = penstock.Loader([tmp_path / "zebra", tmp_path / "ant"], 6,
                             labels="folder")
    assert y_of(loader) == [1, 1, 1, 0, 0, 0]
    assert loader.labels("y") == ["ant", "zebra"]


def test_cells(tmp_path):
    anndata = pytest.importorskip("anndata")
    import pandas as pd
    a = anndata.AnnData(np.arange(24, dtype="f4").reshape(12, 2), dtype="f4")
    kinds = pd.Categorical(
        ["B", "T", None, "NK", "T", "B"] * 2, categories=["T", "NK", "B"])
    a.obs["kind"] = kinds
    a.obs["size"] = np.arange(12, dtype="i4") - 1
    a.write_h5ad(tmp_path / "a.h5ad")
    a.write_zarr(tmp_path / "a.zarr")
    for name in ("a.h5ad", "a.zarr"):
        loader = penstock.CellLoader(tmp_path / name, 5, True, obs=["kind"],
                                     labels="field:kind")
        assert y_of(loader) == kinds.codes.tolist()
        assert loader.labels("y") == loader.labels("kind") == \
            list(kinds.categories)
        assert loader.classes == {"kind": ["T", "NK", "B"],
                                  "y": ["T", "NK", "B"]}
        # -1 is a label like any other where none is missing
        loader = penstock.CellLoader(tmp_path / name, 5, obs=["size"],
                                     labels="field:size")
        assert y_of(loader) == list(range(-1, 11))


def test_sequences(tmp_path):
    (tmp_path / "s.fa").write_text("".join(
        f">s{i}\n{'ACGT' * (i % 3 + 1)}\n" for i in range(20)))
    labels = [i % 4 for i in range(20)]
    for how in ({}, {"shapes": "padded"}, {"batch_tokens": 40},
                {"pack": 16, "batch_size": 2}):
        loader = penstock.Loader(tmp_path / "s.fa", labels=labels, **how)
        assert y_of(loader) == labels


def test_torch(data):
    torch = pytest.importorskip("torch")
    from penstock.torch import DataLoader
    want = torch.arange(1000) % 10
    for batch in DataLoader(data / "x.npy", 100, shuffle=True,
                            labels=want.numpy()):
        assert batch["y"].dtype == torch.int64
        ids = (batch["x"][:, 0] / 8).long()
        assert torch.equal(batch["y"], want[ids])
    x, y = next(iter(DataLoader(data / "x.npy", None, labels=want.numpy(),
                                tuples=True, sampler=[7])))
    assert y == want[7]


def test_resume(data):
    """Labels do not change the order: a state fits with or without fields."""
    labels = np.arange(1000) % 3
    a = penstock.Loader(data / "x.npy", 64, True, labels=labels)
    next(iter(a))
    b = penstock.Loader(data / "x.npy", 64, True, labels=labels, fields="x")
    b.load_state_dict(a.state_dict())
    assert len(list(b)) == 15
