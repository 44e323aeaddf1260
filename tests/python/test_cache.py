"""cache="ddict": the same batches, and the store is read once."""
import numpy as np
import penstock


def test_cache(tmp_path):
    np.save(tmp_path / "x.npy", np.arange(4000, dtype="f4").reshape(1000, 4))
    epochs = {}
    for how in ({}, {"cache": "ddict", "cache_memory": "16MiB"}):
        with penstock.Loader(tmp_path / "x.npy", 16, shuffle=True, epochs=3,
                             samples="first", **how) as loader:
            epochs[len(how)] = [np.array(b["x"]) for _ in range(3)
                                for b in loader]
            stats = loader.stats()
    assert all(map(np.array_equal, epochs[0], epochs[2]))
    assert len(epochs[0]) == len(epochs[2]) == 3 * 63
    assert stats["read_bytes"] == 16000
    assert stats["cache_hits"] == 2000 and stats["cache_bytes"] == 32000
