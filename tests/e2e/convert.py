#!/usr/bin/python3
"""convert against anndata: h5ad and zarr to packed and back, value by value;
shuffled, joined and filtered; and failures leave no files."""
import json
import os
import resource
import signal
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)),
                                "..", "data"))
from e2e import check, main  # noqa: E402

try:
    import anndata
    import numpy as np
    import pandas as pd
    import scipy.sparse as sp
except ImportError:
    print("skipped: anndata is not installed")
    sys.exit(77)

PENSTOCK = os.environ["PENSTOCK"]


def run(*args, cwd, code=0, **kw):
    p = subprocess.run([PENSTOCK, "convert", *args], cwd=cwd, timeout=600,
                       capture_output=True, text=True, check=False, **kw)
    check((p.returncode == 0) == (code == 0),
          f"convert {' '.join(args)}: exit {p.returncode}: {p.stderr[-400:]}")
    if code:
        lines = p.stderr.strip().split("\n")
        check(len(lines) == 1 and lines[0].startswith("penstock: "),
              f"convert {' '.join(args)} says: {p.stderr}")
    return p.stdout, p.stderr


def make(path, n=500, genes=300, seed=1, dtype="f4", dense=False,
         scaled=False, first=0, unsorted=False, **write):
    rng = np.random.default_rng(seed)
    x = rng.poisson(0.3, (n, genes)) * rng.integers(1, 9, (n, genes))
    x[n // 3] = 0
    x = x.astype(dtype)
    if scaled:
        total = x.sum(1, keepdims=True)
        x = np.log1p(x / np.where(total > 0, total, 1) * 1e4).astype(dtype)
    if not dense:
        x = sp.csr_matrix(x)
    if unsorted:
        for i in range(n):
            a, b = x.indptr[i], x.indptr[i + 1]
            x.indices[a:b] = x.indices[a:b][::-1].copy()
            x.data[a:b] = x.data[a:b][::-1].copy()
        x.has_sorted_indices = False
    kind = pd.Categorical(
        np.array(["T", "B", "\u00e4 b", "x"])[rng.integers(0, 4, n)],
        categories=["x", "T", "B", "\u00e4 b", "never"], ordered=seed % 2 == 1)
    obs = pd.DataFrame({
        "z_first": rng.integers(-5, 1000, n),
        "kind": kind,
        "share": rng.normal(size=n).astype("f4"),
        "flag": rng.integers(0, 2, n).astype(bool),
        "plate": pd.Categorical([f"p{i // 50}" for i in range(n)]),
    }, index=pd.Index([f"cell-{seed}-{i}" for i in range(n)], name="barcode"))
    obs["kind"] = obs["kind"].where(rng.random(n) > 0.1)
    var = pd.DataFrame({
        "score": rng.normal(size=genes),
        "chosen": rng.integers(0, 2, genes).astype(bool),
        "chrom": pd.Categorical(
            np.array(["2", "1", "X"])[rng.integers(0, 3, genes)]),
    }, index=pd.Index([f"G{first + i}" for i in range(genes)], name="gene"))
    a = anndata.AnnData(x, obs=obs, var=var, dtype=dtype)
    a.obsm["X_pca"] = rng.normal(size=(n, 7)).astype("f4")
    if path.endswith(".zarr"):
        a.write_zarr(path)
    else:
        a.write_h5ad(path, **write)
    return a


def same(a, b, what, order=None, genes=None):
    """b contains a, restricted to rows and genes if these are given."""
    try:
        x, y, obs, var = a.X, b.X, a.obs, a.var
        if order is not None:
            x, obs = x[order], obs.iloc[order]
        if genes is not None:
            x, var = x[:, genes], var[genes]
        check(x.dtype == y.dtype, f"{what}: {x.dtype} became {y.dtype}")
        if sp.issparse(x):
            check(sp.issparse(y), f"{what}: is dense")
            if order is None:
                check((x.indptr == y.indptr).all() and
                      (x.indices == y.indices).all() and
                      x.data.tobytes() == y.data.tobytes(),
                      f"{what}: X is not what it was, as it is stored")
            check(x.shape == y.shape and (x != y).nnz == 0,
                  f"{what}: X differs")
        else:
            check(np.array_equal(x, y), f"{what}: X differs")
        pd.testing.assert_frame_equal(obs, b.obs)
        pd.testing.assert_frame_equal(var, b.var)
        if "X_pca" in b.obsm:
            pca = a.obsm["X_pca"]
            check(np.array_equal(pca if order is None else pca[order],
                                 b.obsm["X_pca"]), f"{what}: obsm differs")
    except AssertionError as e:
        check(False, f"{what}: {e}")


def test_there_and_back(tmp):
    cases = [
        ("plain", {}),
        ("gzip", {"compression": "gzip"}),
        ("scaled", {"scaled": True}),
        ("double", {"scaled": True, "dtype": "f8"}),
        ("counts", {"dtype": "i4"}),
        ("long", {"dtype": "i8"}),
        ("unsorted", {"unsorted": True}),
        ("dense", {"dense": True}),
        ("one", {"n": 1}),
    ]
    for name, how in cases:
        a = make(f"{tmp}/{name}.h5ad", **how)
        both = "matrix=X,obsm/X_pca"
        run(f"{name}.h5ad", f"{name}.pen", both, cwd=tmp)
        run(f"{name}.pen", f"{name}.back.h5ad", both, cwd=tmp)
        same(a, anndata.read_h5ad(f"{tmp}/{name}.back.h5ad"), name)
        run(f"{name}.pen", f"{name}.zarr", both, cwd=tmp)
        same(a, anndata.read_zarr(f"{tmp}/{name}.zarr"), f"{name} by zarr")
        run(f"{name}.zarr", f"{name}.2.pen", both, "to.source=", cwd=tmp)
        run(f"{name}.h5ad", f"{name}.3.pen", both, "to.source=", cwd=tmp)
        with open(f"{tmp}/{name}.2.pen", "rb") as x, \
                open(f"{tmp}/{name}.3.pen", "rb") as y:
            check(x.read() == y.read(),
                  f"{name}: zarr and h5ad do not pack to the same bytes")


def test_zarr_of_others(tmp):
    a = make(f"{tmp}/a.zarr")
    run("a.zarr", "a.pen", cwd=tmp)
    run("a.pen", "b.h5ad", "to.compression=gzip", cwd=tmp)
    same(a, anndata.read_h5ad(f"{tmp}/b.h5ad"), "zarr by anndata")


def order_of(a, b):
    at = {name: i for i, name in enumerate(a.obs_names)}
    return [at[name] for name in b.obs_names]


def test_shuffle(tmp):
    a = make(f"{tmp}/a.h5ad", n=3000, genes=400)
    seen = {}
    for name, args in (("1", ["seed=1"]), ("1m", ["seed=1", "memory=1M"]),
                       ("2", ["seed=2", "memory=2M"])):
        out, _ = run("a.h5ad", f"{name}.pen", "shuffle=true", *args,
                     "matrix=X,obsm/X_pca", "to.source=", "--json", cwd=tmp)
        r = json.loads(out)
        check(r["verified"] and r["shuffled"], f"{name}: {out}")
        check((r["buckets"] > 1) == ("memory" in " ".join(args)),
              f"{name}: {r['buckets']} buckets")
        run(f"{name}.pen", f"{name}.h5ad", "matrix=X,obsm/X_pca", cwd=tmp)
        b = anndata.read_h5ad(f"{tmp}/{name}.h5ad")
        seen[name] = order_of(a, b)
        check(sorted(seen[name]) == list(range(3000)),
              f"{name}: is no permutation")
        same(a, b, f"shuffled {name}", order=seen[name])
        # far from its old position: a third of n on average
        moved = np.abs(np.array(seen[name]) - np.arange(3000)).mean()
        check(800 < moved < 1200, f"{name}: moved by {moved}")
    check(seen["1"] == seen["1m"], "the order depends on memory")
    check(seen["1"] != seen["2"], "the order does not depend on the seed")
    with open(f"{tmp}/1.pen", "rb") as x, open(f"{tmp}/1m.pen", "rb") as y:
        check(x.read() == y.read(), "bytes depend on memory")
    check(not [f for f in os.listdir(tmp) if "tmp" in f or "rows" in f],
          f"left behind: {os.listdir(tmp)}")


def make_full(path, n=700, genes=60, seed=5, **more):
    """An AnnData with all kinds of members."""
    rng = np.random.default_rng(seed)
    obs = pd.DataFrame({f"n{i}": rng.integers(0, 99, n) for i in range(80)},
                       index=[f"c{i}" for i in range(n)])
    obs["long " * 20] = 1.5
    obs["with,comma"] = np.arange(n) % 3 == 0
    obs["maybe"] = pd.array(rng.integers(-9, 9, n), dtype="Int64")
    obs["perhaps"] = pd.array(rng.integers(0, 2, n) > 0, dtype="boolean")
    obs["small"] = pd.array(rng.integers(0, 9, n), dtype="UInt8")
    obs.loc[obs.index[::7], ["maybe", "perhaps", "small"]] = pd.NA
    var = pd.DataFrame({"v": rng.normal(size=genes)},
                       index=[f"g{i}" for i in range(genes)])
    var["vn"] = pd.array(rng.integers(0, 9, genes), dtype="Int32")
    var.loc["g3", "vn"] = pd.NA
    a = anndata.AnnData(sp.random(n, genes, 0.1, "csr", "f4", 1), obs=obs,
                        var=var, dtype="f4")
    a.layers["counts"] = (a.X * 10).astype("i4").tocsr()
    a.layers["spliced"] = sp.random(n, genes, 0.02, "csr", "f8", 2)
    a.layers["scaled"] = rng.normal(size=(n, genes))
    a.obsm["counts"] = rng.normal(size=(n, 7)).astype("f4")
    a.obsm["ints"] = rng.integers(0, 2**40, (n, 3))
    a.obsm["sparse"] = sp.random(n, 11, 0.2, "csr", "f4", 3)
    for k, v in more.items():
        a.layers[k] = v
    if path.endswith(".zarr"):
        a.write_zarr(path)
    else:
        a.write_h5ad(path)
    return a


def same_full(a, b, what, order=None):
    at = np.arange(a.n_obs) if order is None else order
    for group in "layers", "obsm":
        x, y = getattr(a, group), getattr(b, group)
        check(sorted(x) == sorted(y), f"{what}: {group} {list(y)}")
        for k in x:
            check(x[k].dtype == y[k].dtype, f"{what}: {k} {y[k].dtype}")
            check((x[k][at] != y[k]).nnz == 0 if sp.issparse(x[k]) else
                  np.array_equal(x[k][at], y[k]), f"{what}: {group}/{k}")
    same(a, b, what, order=order)


def test_all_of_it(tmp):
    for src in "a.h5ad", "a.zarr":
        a = make_full(f"{tmp}/{src}")
        p = src.replace(".", "-") + ".pen"
        out, _ = run(src, p, "to.source=", cwd=tmp)
        check("omitted" not in out, f"{src}: {out}")
        for back in "b.h5ad", "b.zarr":
            run(p, back, "--force", cwd=tmp)
            read = anndata.read_zarr if back[2] == "z" else anndata.read_h5ad
            same_full(a, read(f"{tmp}/{back}"), f"{src} to {back}")
    for args in ("threads=1",), ("threads=5",):
        run("a.h5ad", "t.pen", "to.source=", "to." + args[0], "--force",
            cwd=tmp)
        with open(f"{tmp}/t.pen", "rb") as x, \
                open(f"{tmp}/a-h5ad.pen", "rb") as y:
            check(x.read() == y.read(), f"{args}: other bytes")
    run("a.h5ad", "s.pen", "shuffle=true", "memory=200k", cwd=tmp)
    run("s.pen", "s.h5ad", cwd=tmp)
    b = anndata.read_h5ad(f"{tmp}/s.h5ad")
    same_full(a, b, "shuffled", order=order_of(a, b))
    # several files: shared members are copied, codes by their labels
    make_full(f"{tmp}/two.h5ad", seed=6, other=np.ones((700, 60)))
    out, _ = run("a.h5ad", "two.h5ad", "both.h5ad", "filter=with,comma:true",
                 "--json", cwd=tmp)
    check(json.loads(out)["left_out"] == [
        {"kind": "layers", "names": ["other"]}], out)
    keep = np.arange(700) % 3 == 0
    two = anndata.read_h5ad(f"{tmp}/two.h5ad")
    both = anndata.read_h5ad(f"{tmp}/both.h5ad")
    want = anndata.concat([a[keep], two[keep]])
    check((both.layers["counts"] != want.layers["counts"]).nnz == 0 and
          np.array_equal(both.obsm["ints"], want.obsm["ints"]), "two files")
    check(list(both.obs["maybe"].astype(str)) ==
          list(want.obs["maybe"].astype(str)), "two files: missing values")


def test_left_out(tmp):
    a = make_full(f"{tmp}/a.h5ad")
    a.layers["by_column"] = sp.csc_matrix(a.X)
    a.obsm["table"] = pd.DataFrame({"q": np.arange(700)}, index=a.obs_names)
    a.varm["PCs"] = np.ones((60, 4))
    a.obsp["near"] = sp.identity(700, format="csr")
    a.varp["far"] = np.ones((60, 60))
    a.uns["log"] = {"base": 2}
    a.raw = a
    a.write_h5ad(f"{tmp}/a.h5ad")
    a.write_zarr(f"{tmp}/a.zarr")
    want = {"layers": ["by_column"], "obsm": ["table"], "varm": ["PCs"],
            "obsp": ["near"], "varp": ["far"], "uns": ["log"]}
    for src in "a.h5ad", "a.zarr":
        out, _ = run(src, "x.pen", "--json", "--force", cwd=tmp)
        left = {x["kind"]: x["names"] for x in json.loads(out)["left_out"]}
        check(sorted(left.pop("raw"))[:2] == ["X", "var"], f"{src}: {left}")
        check(left == want, f"{src}: {left}")
    out, _ = run("a.h5ad", "x.pen", "--force", cwd=tmp)
    check(out.count("omitted:") == 7 and "omitted: uns (log)" in out, out)
    out, _ = run("a.h5ad", "y.pen", "matrix=layers/counts", "obs=maybe", "var=",
                 "--json", cwd=tmp)
    left = {x["kind"]: x["names"] for x in json.loads(out)["left_out"]}
    check(sorted(left) == ["obsp", "uns", "varm", "varp"], f"chosen: {left}")
    run("y.pen", "y.h5ad", cwd=tmp)
    b = anndata.read_h5ad(f"{tmp}/y.h5ad")
    check((b.X != a.layers["counts"]).nnz == 0 and not b.layers and
          list(b.obs) == ["maybe"] and not len(b.var.columns), f"{b}")


def test_several(tmp):
    a = make(f"{tmp}/a.h5ad", seed=1)
    b = make(f"{tmp}/b.h5ad", seed=3, first=100)
    for join in ("inner", "outer"):
        run("a.h5ad", "b.h5ad", f"{join}.pen", f"join={join}", "source=true",
            cwd=tmp)
        run(f"{join}.pen", f"{join}.h5ad", cwd=tmp)
        got = anndata.read_h5ad(f"{tmp}/{join}.h5ad")
        want = anndata.concat([a, b], join=join, fill_value=0)
        check(list(got.obs_names) == list(want.obs_names), f"{join}: names")
        check(sorted(got.var_names) == sorted(want.var_names),
              f"{join}: genes")
        check((got[:, want.var_names].X != want.X).nnz == 0, f"{join}: X")
        check(list(got.obs["kind"].astype(str)) ==
              list(want.obs["kind"].astype(str)), f"{join}: kind")
        check(got.obs["source"].cat.categories.tolist() ==
              ["a.h5ad", "b.h5ad"], f"{join}: {got.obs['source'].cat}")


def test_mixed(tmp):
    """Files of all three formats as one data set."""
    a, b = make(f"{tmp}/a.h5ad", seed=1), make(f"{tmp}/b.zarr", seed=3)
    c = make(f"{tmp}/c.h5ad", seed=5)
    run("c.h5ad", "c.pen", cwd=tmp)
    os.mkdir(f"{tmp}/all")
    for f in "a.h5ad", "b.zarr", "c.pen":
        os.rename(f"{tmp}/{f}", f"{tmp}/all/{f}")
    for src in (["all"], ["all/c.pen", "all/b.zarr", "all/a.h5ad"]):
        run(*src, "x.h5ad", "--force", cwd=tmp)
        got = anndata.read_h5ad(f"{tmp}/x.h5ad")
        want = anndata.concat([a, b, c])
        check(sorted(got.obs_names) == sorted(want.obs_names), "names")
        want = want[got.obs_names]
        check((got.X != want.X).nnz == 0, "mixed: X")
        check(np.array_equal(got.obsm["X_pca"], want.obsm["X_pca"]),
              "mixed: obsm")
        check(list(got.obs["kind"].astype(str)) ==
              list(want.obs["kind"].astype(str)), "mixed: kind")


def test_some(tmp):
    a = make(f"{tmp}/a.h5ad")
    run("a.h5ad", "a.pen", "filter=kind:T|B", "genes=var:chosen", cwd=tmp)
    run("a.pen", "b.h5ad", cwd=tmp)
    keep = a.obs["kind"].isin(["T", "B"]).to_numpy()
    same(a, anndata.read_h5ad(f"{tmp}/b.h5ad"), "some cells, some genes",
         order=np.flatnonzero(keep), genes=a.var["chosen"].to_numpy())


def test_numbers_as_categories(tmp):
    a = make(f"{tmp}/a.h5ad")
    half = np.arange(a.n_obs) % 2 == 0
    for name, two in (("f8", np.array([0.1, 100.0])),
                      ("i8", np.array([2**60 + 1, -10])),
                      ("i2", np.array([10, 2000], "i2"))):
        a.obs[name] = pd.Categorical(np.where(half, two[0], two[1])
                                     .astype(two.dtype))
    a.write_h5ad(f"{tmp}/b.h5ad")
    for one in ("f8:0.1", "f8:100",
                f"i8:{2**60 + 1}", "i8:-10", "i2:10", "i2:2000"):
        run("b.h5ad", "b.pen", f"filter={one}", "--force", cwd=tmp)
    _, err = run("b.h5ad", "c.pen", "filter=f8:0.2", cwd=tmp, code=1)
    check("filter=f8:0.2 leaves" in err, err)


def nothing(tmp, name, what):
    left = [f for f in os.listdir(tmp) if f.startswith(name)]
    check(not left, f"{what}: {left} left behind")


def test_refused(tmp):
    make(f"{tmp}/a.h5ad", n=2000)
    with open(f"{tmp}/text.h5ad", "w", encoding="utf-8") as f:
        f.write("no HDF5")
    run("text.h5ad", "x.pen", cwd=tmp, code=1)
    nothing(tmp, "x.", "no h5ad")
    run("a.h5ad", "x.what", cwd=tmp, code=1)
    run("a.h5ad", "nowhere/x.pen", cwd=tmp, code=1)
    run("a.h5ad", "x.pen", "to.rows=-3", cwd=tmp, code=1)
    run("missing.h5ad", "x.pen", cwd=tmp, code=1)
    run("a.h5ad", cwd=tmp, code=1)
    nothing(tmp, "x.", "refused")
    run("a.h5ad", "y.pen", cwd=tmp)
    run("a.h5ad", "y.pen", cwd=tmp, code=1)
    run("a.h5ad", "y.pen", "--force", "--no-verify", cwd=tmp)


def test_without_genes(tmp):
    a = make(f"{tmp}/a.h5ad")
    a.obsm["X_pca"] = np.arange(a.n_obs * 5.0).reshape(-1, 5)
    a.write_h5ad(f"{tmp}/a.h5ad")
    for dst in ("x.pen", "x.h5ad", "x.zarr"):
        run("a.h5ad", dst, "matrix=obsm/X_pca", cwd=tmp)
    run("x.pen", "y.h5ad", cwd=tmp)
    for b in (anndata.read_h5ad(f"{tmp}/x.h5ad"),
              anndata.read_zarr(f"{tmp}/x.zarr"),
              anndata.read_h5ad(f"{tmp}/y.h5ad")):
        check(np.array_equal(b.X, a.obsm["X_pca"]), "an embedding as X")
        check(list(b.obs_names) == list(a.obs_names), "names of cells")


def test_itself(tmp):
    a = make(f"{tmp}/a.h5ad")
    a.write_zarr(f"{tmp}/a.zarr")
    os.link(f"{tmp}/a.h5ad", f"{tmp}/b.h5ad")
    os.mkdir(f"{tmp}/d")
    os.symlink("../a.h5ad", f"{tmp}/d/c.h5ad")
    for src, dst in (("a.h5ad", "a.h5ad"), ("a.h5ad", "b.h5ad"),
                     ("a.h5ad", "d/c.h5ad"), ("d/c.h5ad", "a.h5ad"),
                     ("a.zarr", "./a.zarr/"), ("a.zarr", "d/../a.zarr")):
        _, err = run(src, dst, "--force", cwd=tmp, code=1)
        check("this is the source" in err, err)
    _, err = run("a.zarr", "a.zarr/X/x.pen", cwd=tmp, code=1)
    check("inside a zarr store" in err, err)
    same(a, anndata.read_h5ad(f"{tmp}/a.h5ad"), "source left as it was")
    same(a, anndata.read_zarr(f"{tmp}/a.zarr"), "source left as it was")


def test_damaged(tmp):
    make(f"{tmp}/a.h5ad", n=2000, compression="gzip")
    run("a.h5ad", "a.pen", cwd=tmp)
    for name in ("a.h5ad", "a.pen"):
        with open(f"{tmp}/{name}", "rb") as f:
            b = bytearray(f.read())
        for at in (len(b) // 3, len(b) // 2):
            b[at] ^= 0x55
        for i in range(len(b) // 3, len(b) // 2, 97):
            b[i] ^= 1
        bad = f"bad-{name}"
        with open(f"{tmp}/{bad}", "wb") as f:
            f.write(b)
        run(bad, "x.pen", cwd=tmp, code=1)
        nothing(tmp, "x.", f"damaged {name}")
        run(bad, "x.h5ad", "shuffle=true", cwd=tmp, code=1)
        nothing(tmp, "x.", f"damaged {name}")


def test_full_disk(tmp):
    make(f"{tmp}/a.h5ad", n=4000, genes=400)

    def small():
        signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
        resource.setrlimit(resource.RLIMIT_FSIZE, (200000, 200000))
    for args in (("x.pen",), ("x.pen", "shuffle=true", "memory=1M"),
                 ("x.h5ad",), ("x.h5ad", "to.compression=gzip")):
        _, err = run("a.h5ad", *args, cwd=tmp, code=1, preexec_fn=small)
        check("cannot write" in err, err)
        nothing(tmp, "x.", "full disk")


def interrupt(tmp, sig, *args):
    """Interrupts it once the temporary file exists."""
    with subprocess.Popen([PENSTOCK, "convert", "a.h5ad", "x.pen", *args],
                          cwd=tmp, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE) as p:
        while p.poll() is None and \
                not any(f.startswith("x.pen.") for f in os.listdir(tmp)):
            os.sched_yield()
        p.send_signal(sig)
        p.communicate(timeout=600)
        return p.returncode


def test_interrupted(tmp):
    make(f"{tmp}/a.h5ad", n=20000, genes=300, compression="gzip")
    for args in ((), ("shuffle=true", "memory=1M")):
        code = interrupt(tmp, signal.SIGINT, *args)
        check(code == 130, f"Ctrl-C: exit {code}")
        nothing(tmp, "x.", "Ctrl-C")
        code = interrupt(tmp, signal.SIGKILL, *args)
        check(code == -signal.SIGKILL, f"kill -9: exit {code}")
        check(not os.path.exists(f"{tmp}/x.pen"), "kill -9 left a file")
        check(any(f.startswith("x.pen.") for f in os.listdir(tmp)),
              "kill -9 came too late")
        # the next run cleans up
        run("a.h5ad", "x.pen", "--no-verify", cwd=tmp)
        nothing(tmp, "x.pen.", "after kill -9")
        os.unlink(f"{tmp}/x.pen")


if __name__ == "__main__":
    main(globals())
