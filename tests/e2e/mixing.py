#!/usr/bin/python3
"""Orders of single-cell data: quality as `load` reports it, labels and weights
from columns, on files that anndata and NumPy wrote."""
import json
import os
import subprocess
import sys

try:
    import anndata
    import numpy as np
    import pandas as pd
    import scipy.sparse as sp
except ImportError:
    print("skipped: anndata is not installed")
    sys.exit(77)

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)),
                                "..", "data"))
from e2e import check, main  # noqa: E402

PENSTOCK = os.environ["PENSTOCK"]
N = 12000


def load(*args, code=0):
    p = subprocess.run([PENSTOCK, "load", *args, "--json", "--quiet"],
                       capture_output=True, text=True, timeout=600)
    check(p.returncode == code, f"{args}: exit {p.returncode}: {p.stderr}")
    return json.loads(p.stdout) if not code else p.stderr


def entropy(n):
    p = np.asarray(n) / np.sum(n)
    return float(-(p[p > 0] * np.log2(p[p > 0])).sum())


def near(a, b, by, what):
    check(abs(a - b) <= by, f"{what}: {a}, not {b}")


def cells(tmp):
    """Plates in runs, cell types all over, some of them missing."""
    rng = np.random.default_rng(3)
    plate = np.sort(rng.choice(7, N, p=[.3, .2, .1, .1, .1, .15, .05]))
    kind = rng.choice(5, N, p=[.6, .2, .1, .06, .04])
    kind[rng.random(N) < .1] = -1
    obs = pd.DataFrame({
        "plate": pd.Categorical.from_codes(plate, list("abcdefg")),
        "cell_type": pd.Categorical.from_codes(kind, list("vwxyz")),
        "w": np.where(kind == 4, 3.0, 1.0).astype(np.float32),
        "depth": rng.random(N)}, index=[f"c{i}" for i in range(N)])
    obs.loc[obs.index[:50], "w"] = np.nan
    a = anndata.AnnData(sp.random(N, 40, .1, "csr", np.float32, rng), obs=obs,
                        dtype=np.float32)
    a.write_h5ad(f"{tmp}/a.h5ad", compression="gzip")
    return f"{tmp}/a.h5ad", plate, kind, obs


def test_quality(tmp):
    path, plate, kind, _ = cells(tmp)
    base = (path, "format.obs=plate,cell_type,depth", "batch_size=100")
    r = load(*base, "sampler=block", "sampler.chunk=20", "sampler.chunks=30",
             "epochs=2", "--quality=plate")
    q = r["quality"]
    check(q["exactly_once"] and q["complete_epoch"], "every sample once")
    check(q["full_batches"] == N / 100 and q["samples"] == N, "counts")
    near(q["n_eff_expected"], 100 / (1 + 99 * 19 / 599), 1e-4, "n_eff expected")
    near(q["n_eff"], q["n_eff_expected"], 1.5, "n_eff")
    near(q["label"]["entropy"], entropy(np.bincount(plate)), 1e-5, "entropy")
    near(q["label"]["batch_entropy"], q["label"]["batch_entropy_expected"],
         .03, "entropy of batches")
    check(q["label"]["classes"] == 7, "classes")
    check(q["neighbours_kept"] < .01, "another order")
    check(r["wait_p99_over_p50"] > 0 and
          0 < r["wait_slowest_tenth"] <= 1, "how even batches come")
    q = load(*base, "shuffle=true", "reshuffle=false", "epochs=2",
             "--quality")["quality"]
    check(q["neighbours_kept"] == 1 and "label" not in q, "the same order")
    q = load(*base, "--quality=plate")["quality"]
    near(q["n_eff"], 1, 1e-9, "in order")
    check(load(*base)["sampler"] == "sequential", "no flag")
    check("quality" not in load(*base), "only when asked")
    q = load(*base, "shuffle=true", "tail=drop", "batch_size=700",
             "--quality")["quality"]
    check(q["missing"] == N % 700 and not q["exactly_once"], "a tail dropped")
    err = load(*base, "--quality=X", code=2)
    check("one integer per sample" in err, err)
    err = load(*base, "--quality=depth", code=2)
    check("one integer per sample" in err, err)
    err = load(*base, "--quality=color", code=2)
    check("not a field" in err, err)
    q = load(*base, "fields=X,cell_type", "--quality=cell_type")["quality"]
    near(q["label"]["entropy"], entropy(np.bincount(kind + 1)), 1e-5,
         "the label among fewer fields")
    err = load(*base, "fields=X,cell_type", "--quality=plate", code=2)
    check("not a field" in err, err)


def test_presets(tmp):
    path, _, _, _ = cells(tmp)
    for name, window, chunk, more in (
            ("census", N, 64, ()), ("annbatch", N, 512, ()),
            ("census", 640, 64, ("sampler.chunks=10",)),
            ("scdataset", 6400, 16, ("sampler.fetch=100",))):
        q = load(path, f"sampler={name}", "batch_size=64", "--quality",
                 *more)["quality"]
        windows = [window] * (N // window) + [N % window][:N % window]
        same = sum(w / N * (chunk - 1) / (w - 1) for w in windows)
        want = 64 / (1 + 63 * same)
        # a short chunk moves windows against batches
        near(q["n_eff_expected"], want, .03 * want, f"n_eff of {name}")
        check(q["exactly_once"], f"{name}: once")


def test_silent(tmp):
    """Exact, also where a batch takes several windows, or not told at all."""
    np.save(f"{tmp}/x.npy", np.zeros((16384, 4), np.float32))
    base = (f"{tmp}/x.npy", "batch_size=1024", "sampler=block",
            "sampler.chunk=16")
    q = load(*base, "sampler.chunks=32", "--quality")["quality"]
    near(q["n_eff"], 64, 1e-6, "two windows a batch")
    near(q["n_eff_expected"], 64, 1e-6, "two windows a batch, expected")
    np.save(f"{tmp}/w.npy", np.arange(16384, dtype=float) + 1)
    for more in (("sampler.mix=false",),
                 ("sampler=weighted", f"weights={tmp}/w.npy")):
        q = load(*base, *more, "--quality")["quality"]
        check(q["n_eff"] > 0 and q["n_eff_expected"] is None and
              q["same_chunk_expected"] is None, f"{more}: {q}")


def test_labels(tmp):
    path, _, kind, obs = cells(tmp)
    base = (path, "format.obs=cell_type,w,depth", "batch_size=100",
            "--quality=cell_type")
    for more in ((), ("sampler.chunk=32",)):
        q = load(*base, "sampler=balanced", "labels=field:cell_type",
                 *more)["quality"]["label"]
        check(q["classes"] == 5, "missing ones are left out")
        near(q["entropy"], np.log2(5), .02, "balanced")
        q = load(*base, "sampler=weighted", "weights=inverse:cell_type",
                 *more)["quality"]["label"]
        check(q["classes"] == 5, "missing ones have no weight")
        near(q["entropy"], np.log2(5), .02, "inverse")
    want = [obs.w[kind == k].sum() for k in range(-1, 5)]
    q = load(*base, "sampler=weighted", "weights=field:w",
             "sampler.length=100k")["quality"]["label"]
    near(q["entropy"], entropy(want), .02, "weights")
    q = load(*base, "sampler=balanced", "labels=field:cell_type",
             "subset=:6000")["quality"]
    check(q["label"]["classes"] == 5 and q["samples"] == 6000, "of a subset")
    err = load(path, "sampler=balanced", "labels=field:cell_type", code=2)
    check("format.obs=cell_type" in err, err)
    err = load(*base, "sampler=balanced", "labels=field:depth", code=2)
    check("must be integers" in err, err)
    err = load(*base, "sampler=weighted", "weights=inverse:depth", code=2)
    check("must be integers" in err, err)
    err = load(*base, "sampler=weighted", "weights=field:X", code=2)
    check("not one number per sample" in err, err)


def test_labels_read(tmp):
    """Labels that are in the data only are read once."""
    rng = np.random.default_rng(1)
    y = rng.choice([-1, 1, 7], 600, p=[.8, .15, .05])
    np.savez(f"{tmp}/d.npz", x=rng.random((600, 3)), y=y)
    base = (f"{tmp}/d.npz", "format.samples=first", "batch_size=60",
            "--quality=y")
    q = load(*base, "sampler=balanced", "labels=field:y", "tail=drop",
             "epochs=2")["quality"]["label"]
    check(q["classes"] == 3, "-1 is a label like others")
    near(q["batch_entropy"], np.log2(3), 1e-6, "20 of each in every batch")
    q = load(*base, "sampler=weighted", "weights=inverse:y",
             "sampler.length=60k", "sampler.chunk=4")["quality"]["label"]
    near(q["entropy"], np.log2(3), .02, "inverse")
    err = load(*base, "sampler=balanced", "labels=field:z", code=2)
    check("not a field" in err, err)


main(globals())
