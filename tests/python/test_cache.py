"""cache="ddict": the same batches, and the store is read once."""
import shutil
import subprocess
import sys

import numpy as np
import penstock
import pytest


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


RANK = """
import os, sys, threading
import penstock

path, flag = sys.argv[1:]
loader = penstock.Loader(path, 4, epochs=2, cache="ddict", samples="first",
                         cache_memory="4MiB")
ended, seen = threading.Event(), []


def train():
    for _ in range(2):
        for n, batch in enumerate(loader):
            seen.extend(batch.ids.tolist())
            if n == len(loader) - 1:
                ended.set()


if loader.rank:
    while not os.path.exists(flag):
        os.sched_yield()
    train()
else:
    thread = threading.Thread(target=train)
    thread.start()
    ended.wait()
    for _ in range(100000):     # by now it waits for the other rank
        pass
    open(flag, "w").close()
    thread.join()
assert len(seen) == 2 * 32, seen
loader.close()
"""


@pytest.mark.skipif(not shutil.which("mpirun"), reason="no mpirun")
def test_ranks_wait_without_the_lock(tmp_path):
    """After the first epoch a rank waits for the others, and its own threads
    go on meanwhile: here the other rank waits for one of them."""
    np.save(tmp_path / "x.npy", np.arange(256, dtype="f4").reshape(64, 4))
    (tmp_path / "rank.py").write_text(RANK)
    p = subprocess.run(
        ["mpirun", "--allow-run-as-root", "--oversubscribe", "-n", "2",
         sys.executable, "rank.py", "x.npy", "flag"],
        cwd=tmp_path, timeout=600, check=False, stderr=subprocess.PIPE)
    assert p.returncode == 0, p.stderr.decode()
