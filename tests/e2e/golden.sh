#!/bin/bash
# Files that NumPy wrote load with the same bytes through every store and any
# number of threads; files that `penstock gen` wrote are read by NumPy, and are
# the same from run to run.
set -euo pipefail
penstock=${PENSTOCK:?the command}
python=/usr/bin/python3
"$python" -c 'import numpy' 2>/dev/null || {
	echo "skipped: no NumPy"
	exit 77
}
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
export XDG_CACHE_HOME=$dir/cache
cd "$dir"

fail() {
	echo "failed: $*" >&2
	exit 1
}

# of CHECKSUM of a load, in hex
checksum() {
	"$penstock" load --checksum --quiet "$@" |
		sed -n 's/^ *checksum *\([0-9a-f]*\)$/\1/p'
}

"$python" - <<'PY'
import numpy as np, os
r = np.random.default_rng(1)
types = ["?", "i1", "u1", "<i2", "<u2", "<i4", "<u4", "<i8", "<u8", "<f2",
         "<f4", "<f8", "<c8", "<c16", "longdouble", "clongdouble", ">i4",
         ">f8"]
for i, t in enumerate(types):
    a = (r.random((13, 3, 4)) * 100).astype(t)
    os.makedirs(f"t{i}")
    np.save(f"t{i}/c.npy", a)
    np.save(f"t{i}/f.npy", np.asfortranarray(a))
os.makedirs("many")
for i in range(40):
    np.save(f"many/{i:03}.npy", r.random((5, 6)).astype("f4"))
os.makedirs("ragged")
for i in range(20):
    np.save(f"ragged/{i:03}.npy", r.random((1 + i % 4, 2)))
for name, save in ("npz", np.savez), ("npzc", np.savez_compressed):
    os.makedirs(name)
    for i in range(6):
        save(f"{name}/{i}.npz", x=r.random((9, 8)).astype("f4"),
             y=np.arange(9))
PY

stores="posix mmap ram fault"
"$penstock" load many store=uring --quiet >/dev/null 2>&1 && stores+=" uring"

same() {
	local want got store threads
	want=$(checksum "$@" store=posix threads=1)
	[ -n "$want" ] || fail "no checksum of $*"
	for store in $stores; do
		for threads in 1 4; do
			got=$(checksum "$@" store="$store" threads=$threads \
				shuffle=true batch_size=7)
			[ "$got" = "$want" ] ||
				fail "$*: $store, $threads threads: $got"
		done
	done
	"$penstock" verify "$@" >/dev/null || fail "verify $*"
}

for t in t[0-9]*; do
	same "$t" format.samples=first
	same "$t/c.npy" format.samples=last
	# C and Fortran order hold the same samples
	[ "$(checksum "$t/c.npy" format.samples=first)" = \
		"$(checksum "$t/f.npy" format.samples=first)" ] ||
		fail "$t: Fortran order reads differently"
done
same many
same ragged
same ragged shapes=padded
same npz format.samples=first
same npzc format.samples=first
same npz
same npzc format.fields=x

# What is in a sample, value by value: the sum of one known array.
"$penstock" gen a.npy samples=50 shape=3x5 dtype=float64 seed=4 >/dev/null
"$penstock" gen b.npy samples=50 shape=3x5 dtype=float64 seed=4 threads=3 \
	>/dev/null
"$penstock" gen c.npy samples=50 shape=3x5 dtype=float64 seed=5 >/dev/null
cmp a.npy b.npy || fail "gen differs with the same seed"
! cmp -s a.npy c.npy || fail "gen is the same with another seed"
"$penstock" gen d1 files=30 samples=4 shape=6 format=npz classes=3 \
	subfolders=2 format.compress=true >/dev/null
"$penstock" gen d2 files=30 samples=4 shape=6 format=npz classes=3 \
	subfolders=2 format.compress=true threads=5 >/dev/null
diff -r d1 d2 || fail "gen differs with other threads"
for t in bool int8 uint8 int16 uint16 int32 uint32 int64 uint64 float16 \
	float32 float64 complex64 complex128; do
	"$penstock" gen "g_$t.npy" samples=7 shape=2x3 dtype=$t >/dev/null
done
"$penstock" gen one.npy shape=2x3 >/dev/null
"$python" - <<'PY'
import glob, numpy as np
a = np.load("a.npy")
assert a.shape == (50, 3, 5) and a.dtype == np.float64, (a.shape, a.dtype)
assert (0 <= a).all() and (a < 1).all() and len(np.unique(a)) == a.size
for f in glob.glob("g_*.npy"):
    a = np.load(f)
    assert a.shape == (7, 2, 3) and a.dtype == np.dtype(f[2:-4]), f
    assert np.isfinite(a).all(), f
assert np.load("one.npy").shape == (2, 3)
files = sorted(glob.glob("d1/*/*.npz"))
assert len(files) == 30
for f in files:
    z = np.load(f)
    assert z["x"].shape == (4, 6) and z["y"].shape == (4,)
    assert (0 <= z["y"]).all() and (z["y"] < 3).all()
PY
same d1 format.samples=first
echo "golden: ok"
