"""Keyword arguments find their place, or say what is wrong."""
import os

import numpy as np
import penstock
import pytest
from penstock import _options


def test_routing(data):
    s = dict(_options.settle([str(data / "x.npy")], {
        "batch_size": 4, "sampler": "block", "chunk": 8, "samples": "first",
        "store": "posix", "direct": False, "take": (2, 3),
        "format_trailing": "ignore", "options": {"store.fsync": True},
        "sampler_opts": {"mix": False}, "cache": None}))
    assert s == {"batch_size": "4", "sampler": "block", "sampler.chunk": "8",
                 "format.samples": "first", "store": "posix",
                 "store.direct": "false", "take": "2x3",
                 "format.trailing": "ignore", "store.fsync": "true",
                 "sampler.mix": "false"}


def test_dtype_is_the_formats_where_it_has_one(tmp_path):
    np.arange(12, dtype="f4").tofile(tmp_path / "a.raw")
    batch = next(iter(penstock.Loader(tmp_path / "a.raw", dtype="float32",
                                      shape=(3,))))
    assert np.asarray(batch[batch.keys()[0]]).tolist() == \
        np.arange(12.).reshape(4, 3).tolist()


@pytest.mark.parametrize("wrong, word", [
    ({"bach_size": 3}, "did you mean 'batch_size'"),
    ({"chnk": 3, "sampler": "block"}, "did you mean 'chunk'"),
    ({"chunk": 3}, "option of sampler 'block'"),
    ({"nonsense_": 3}, "unknown setting"),
    ({"sampler": "blok"}, "block"),
    ({"batch_size": 0}, "batch_size"),
    ({"batch_size": "many"}, "batch_size"),
    ({"ahead": 0}, "ahead"),
    ({"collate": "list"}, "list"),
    ({"on_error": "ignore"}, "on_error"),
    ({"rank": 3, "world": 2}, "rank"),
])
def test_wrong(data, wrong, word):
    with pytest.raises(ValueError, match=word):
        penstock.Loader(data / "x.npy", **wrong)


def test_ambiguous(tmp_path):
    np.save(tmp_path / "a.npy", np.zeros((4, 4)))
    known = {"batch_size"}
    have = {"format": ("f", {"chunk"}), "store": (None, set()),
            "sampler": ("block", {"chunk"})}
    with pytest.raises(ValueError, match="sampler_chunk="):
        _options.route("chunk", known, have)
    assert _options.route("sampler_chunk", known, have) == "sampler.chunk"


def test_lists_are_kept_by_content():
    a = _options.array_file([1, 2, 3])
    assert a == _options.array_file(np.array([1, 2, 3]))
    assert a != _options.array_file([1, 2, 4])
    assert np.load(a).tolist() == [1, 2, 3]
    assert a.startswith(os.environ["XDG_CACHE_HOME"])
    with open(_options.lines_file(["b", "a"])[1:], encoding="utf-8") as f:
        assert f.read() == "b\na\n"


@pytest.mark.parametrize("env, want", [
    ({}, (0, 1)),
    ({"RANK": "2", "WORLD_SIZE": "4"}, (2, 4)),
    ({"OMPI_COMM_WORLD_RANK": "1", "OMPI_COMM_WORLD_SIZE": "2"}, (1, 2)),
    ({"PMI_RANK": "1", "PMI_SIZE": "3"}, (1, 3)),
    ({"SLURM_PROCID": "5", "SLURM_STEP_NUM_TASKS": "8"}, (5, 8)),
    ({"SLURM_PROCID": "0", "SLURM_NTASKS": "8"}, (0, 1)),
    ({"RANK": "x", "WORLD_SIZE": "4"}, (0, 1)),
])
def test_ranks(monkeypatch, data, env, want):
    from penstock import _ranks
    for pair in _ranks.PLACES:
        for name in pair:
            monkeypatch.delenv(name, raising=False)
    for name, value in env.items():
        monkeypatch.setenv(name, value)
    loader = penstock.Loader(data / "x.npy")
    assert (loader.rank, loader.world) == want
    loader = penstock.Loader(data / "x.npy", rank=1, world=2)
    assert (loader.rank, loader.world) == (1, 2)


def test_options_of_a_format_that_only_the_data_tells(tmp_path):
    """An @list and a glob have the format of their files."""
    np.save(tmp_path / "a.npy", np.zeros((4, 3)))
    (tmp_path / "list").write_text("\na.npy\n")
    (tmp_path / "globs").write_text("a*\n")
    for path in ("@" + str(tmp_path / "list"), "@" + str(tmp_path / "globs"),
                 str(tmp_path / "*.npy"), str(tmp_path / "a*")):
        loader = penstock.Loader(path, 2, samples="first")
        assert loader.nsamples == 4, path
        loader.close()
    with pytest.raises(ValueError, match="not known here; set format="):
        penstock.Loader(tmp_path / "list", samples="first")
