#!/bin/bash
# Single cells from `penstock gen`: anndata reads them back, the same seed gives
# the same bytes, files share genes, and a failure leaves nothing under the final
# name.
set -euo pipefail
penstock=${PENSTOCK:?the command}
python=/usr/bin/python3
dir=$(mktemp -d)
mounted=
trap '[ -z "$mounted" ] || umount "$dir/full"; rm -rf "$dir"' EXIT
export XDG_CACHE_HOME=$dir/cache
cd "$dir"

fail() {
	echo "failed: $*" >&2
	exit 1
}

skip() {
	echo "skipped: $*"
	exit 77
}

# expect CODE TEXT ARGS: the exit code, and one line that contains the text
expect() {
	local want=$1 text=$2 code=0
	shift 2
	"$penstock" "$@" >out 2>err || code=$?
	[ $code = "$want" ] || fail "$*: exit $code, not $want: $(cat err)"
	[ "$(wc -l <err)" = 1 ] || fail "$*: not one line: $(cat err)"
	grep -q -- "$text" err || fail "$*: $(cat err)"
}

"$penstock" gen none.zarr samples=10 genes=50 >/dev/null || fail "gen zarr"
"$penstock" gen a.h5ad samples=2000 genes=3000 seed=4 >/dev/null ||
	skip "this build does not write h5ad"

# format.fields= leaves out the others: 50 float32 of X, a code of int32
"$penstock" convert none.zarr none.pen >/dev/null || fail "convert to packed"
"$penstock" gen none.h5ad samples=10 genes=50 >/dev/null
for file in none.zarr none.pen none.h5ad; do
	for want in X:2000 cell_type:40 cell_type,X:2040; do
		"$penstock" load $file "format.obs=*" --json \
			format.fields=${want%:*} >out
		grep -q "\"payload_bytes\": ${want#*:}," out ||
			fail "$file: not $want: $(grep payload_bytes out)"
	done
	"$penstock" load $file "format.obs=*" format.fields=X --json \
		labels=field:cell_type >out
	grep -q '"payload_bytes": 2080,' out || fail "$file: X and its label"
	expect 2 "'Y' is not a field" load $file format.fields=Y
	expect 2 "unknown field 'plate'" load $file "format.obs=*" \
		format.fields=X fields=plate
done

# the same seed with any number of threads; another seed
"$penstock" gen b.h5ad samples=2000 genes=3000 seed=4 threads=8 >/dev/null
"$penstock" gen c.h5ad samples=2000 genes=3000 seed=5 >/dev/null
cmp a.h5ad b.h5ad || fail "h5ad differs with the same seed"
! cmp -s a.h5ad c.h5ad || fail "h5ad is the same with another seed"
for t in 1 7; do
	"$penstock" gen gzip$t.h5ad samples=2000 genes=3000 seed=4 threads=$t \
		format.compression=gzip format.chunk=10000 >/dev/null
	"$penstock" gen v2-$t.zarr samples=2000 genes=3000 seed=4 threads=$t \
		pca=8 >/dev/null
	"$penstock" gen v3-$t.zarr samples=2000 genes=3000 seed=4 threads=$t \
		format.version=3 format.shard=500 format.chunk=10k >/dev/null
done
cmp gzip1.h5ad gzip7.h5ad || fail "gzip differs with other threads"
diff -r v2-1.zarr v2-7.zarr || fail "zarr differs with other threads"
diff -r v3-1.zarr v3-7.zarr || fail "sharded zarr differs with other threads"
"$penstock" gen d.h5ad samples=100 genes=200 dense=true dtype=uint16 \
	format.compression=lzf --json >gen.json
"$penstock" gen many format=h5ad files=3 samples=50 genes=1000 overlap=0.6 \
	>/dev/null
[ "$(find many -type f | sort | tr '\n' ' ')" = "many/cells_0_of_3.h5ad \
many/cells_1_of_3.h5ad many/cells_2_of_3.h5ad " ] || fail "names: $(find many)"

# our own reader
for f in a.h5ad gzip1.h5ad d.h5ad; do
	"$penstock" verify "$f" >/dev/null || fail "verify $f"
	"$penstock" load "$f" batch_size=64 format.obs=plate --json >load.json ||
		fail "load $f"
done

# errors
expect 2 "exists" gen a.h5ad
expect 2 "shape" gen x.h5ad shape=3
expect 2 "genes" gen x.npy genes=3
expect 2 "density" gen x.h5ad density=0.9
expect 2 "compresion" gen x.h5ad format.compresion=gzip
expect 2 "version=3" gen x.zarr format.shard=10
mkdir dir.zarr
expect 2 "exists" gen dir.zarr
expect 2 "not a zarr store" gen dir.zarr --force
touch file
expect 4 "file" gen file/x.h5ad
[ -z "$(find . -name 'x.*')" ] || fail "left behind: $(find . -name 'x.*')"
"$penstock" gen ./none.zarr/ samples=20 genes=50 --force >/dev/null ||
	fail "a zarr store was not replaced"

# Ctrl-C
set -m
for f in big.h5ad big.zarr; do
	code=0
	"$penstock" gen $f samples=20M genes=1000 format.compression=gzip \
		>out 2>err &
	pid=$!
	while kill -0 $pid 2>/dev/null &&
		! grep -q 'pen-cells' /proc/$pid/task/*/comm 2>/dev/null; do
		:
	done
	kill -s INT $pid
	wait $pid || code=$?
	[ $code = 130 ] || fail "Ctrl-C: exit $code: $(cat err)"
	[ -z "$(find . -name 'big*')" ] || fail "Ctrl-C left $(find . -name 'big*')"
done

# missing chunks: nothing is reported as good, and every command warns
"$penstock" gen gone.zarr samples=300 genes=200 >/dev/null
rm gone.zarr/X/indices/0
code=0
"$penstock" verify gone.zarr >out || code=$?
[ $code = 3 ] || fail "verify gone.zarr: exit $code"
grep -q "^bad: gone.zarr:X/indices: 1 of 1 chunk is not stored" out ||
	fail "verify gone.zarr: $(cat out)"
grep -q "are good" out && fail "verify gone.zarr: $(cat out)"
expect 0 "warning: gone.zarr:X/indices: 1 of 1 chunk" load gone.zarr
expect 0 "warning: gone.zarr:X/indices: 1 of 1 chunk" convert gone.zarr g.pen
"$penstock" inspect gone.zarr | grep -q "note: damaged: gone.zarr:X/indices" ||
	fail "inspect gone.zarr"

"$python" -c 'import anndata, zarr' 2>/dev/null ||
	skip "python3-anndata or python3-zarr is not installed"
"$python" - <<'PY' || fail "what anndata finds"
import json
import warnings

import anndata
import numpy as np

warnings.simplefilter("ignore")
a = anndata.read_h5ad("a.h5ad")
x = a.X
assert a.shape == (2000, 3000) and x.dtype == "f4" and x.has_sorted_indices
assert abs(x.nnz / 2000 / 3000 / 0.062 - 1) < 0.03, x.nnz
assert (x.data == np.round(x.data)).all() and x.data.min() == 1
assert a.obs_names.is_unique and a.var_names.is_unique
assert (np.diff(x.indptr) == a.obs["n_genes"]).all()
total = np.asarray(x.sum(1)).ravel()
mito = np.asarray(x[:, a.var["mito"].values].sum(1)).ravel()
assert (total == a.obs["n_counts"]).all()
assert np.allclose(100 * mito / total, a.obs["pct_mito"], rtol=1e-5)
assert (np.diff(a.obs["plate"].cat.codes) >= 0).all()
assert a.obs["plate"].nunique() == 14
share = a.obs["cell_type"].value_counts(normalize=True)
assert len(share) == 20 and 0.2 < share[0] < 0.35
assert a.obs["is_primary"].dtype == bool
assert a.var["highly_variable"].dtype == bool
mean = np.asarray(x.mean(0)).ravel()
rest = ~a.var["highly_variable"].values
assert np.corrcoef(mean[rest], a.var["mean"][rest])[0, 1] > 0.9
for other in (anndata.read_h5ad("gzip7.h5ad"), anndata.read_zarr("v2-1.zarr")):
    assert (other.X != x).nnz == 0 and other.obs.equals(a.obs)
    assert other.var.equals(a.var)
assert other.obsm["X_pca"].shape == (2000, 8)
d = anndata.read_h5ad("d.h5ad")
assert d.X.dtype == "u2" and isinstance(d.X, np.ndarray)
r = json.load(open("gen.json"))
assert r["numbers"] == (d.X != 0).sum() and r["samples"] == 100
genes = [set(anndata.read_h5ad(f"many/cells_{i}_of_3.h5ad").var_names)
         for i in range(3)]
assert 500 < len(genes[0] & genes[1] & genes[2]) < 700
assert genes[0] & genes[1] == genes[1] & genes[2]
PY

# a full disk
mkdir full
[ "$(id -u)" = 0 ] && mount -t tmpfs -o size=3m none full 2>/dev/null ||
	skip "a full disk needs root and tmpfs"
mounted=yes
expect 4 "free" gen full/x.h5ad samples=20k
expect 4 "pace" gen full/x.h5ad samples=1500 format.compression=gzip
expect 4 "pace" gen full/x.zarr samples=1500
expect 4 "pace" gen full/x.zarr samples=1500 format.version=3 format.shard=1M
[ -z "$(ls -A full)" ] || fail "left on a full disk: $(ls -A full)"

# with one page less each time
every_size() {
	local pages
	"$penstock" "$@" >/dev/null
	pages=$(du -s --block-size=4096 full | cut -f1)
	rm -r full/*
	for ((; pages > 1; pages--)); do
		mount -o remount,size=$(((pages - 1) * 4096)) full
		expect 4 "free\|pace" "$@"
		[ -z "$(ls -A full)" ] ||
			fail "$*: left on $pages pages: $(ls -A full)"
	done
	mount -o remount,size=3m full
}
"$penstock" gen small.h5ad samples=300 genes=100 >/dev/null
every_size gen full/x.h5ad samples=300 genes=100
every_size gen full/x.h5ad samples=300 genes=100 format.compression=gzip
every_size convert small.h5ad full/x.h5ad
every_size convert small.h5ad full/x.pen
echo "cells: ok"
