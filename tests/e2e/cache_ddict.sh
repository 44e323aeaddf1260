#!/bin/bash
# cache=ddict: formats whose readers differ, alone and as ranks of mpirun, give
# the content they give without it; ranks read the data once in all; a budget
# that is too small; what goes wrong on one rank; and a rank that is killed.
set -euo pipefail
penstock=${PENSTOCK:?the command}
build=${BUILD:?the build directory}
# what MPI keeps until the end is not ours to free
export ASAN_OPTIONS=detect_leaks=0
export PENSTOCK_MODULES=$build/src/comm
unset "${!OMPI_@}" "${!PMIX_@}" "${!PMI_@}" "${!SLURM_@}"
dir=$(mktemp -d)
export XDG_CACHE_HOME=$dir/cache
trap 'rm -rf "$dir"' EXIT

fail() {
	echo "failed: $*" >&2
	cat "$dir/out" "$dir/err" >&2
	exit 1
}

# one CODE ARGUMENTS...: the command ends by itself, with that exit code
one() {
	local want=$1 code=0
	shift
	timeout -k 5 600 "$penstock" "$@" >"$dir/out" 2>"$dir/err" || code=$?
	[ "$want" = "$code" ] || fail "$*: exit $code, not $want"
}

# is PYTHON: holds for the result r
is() {
	python3 -c "import json, sys
r = json.load(open(sys.argv[1])); c = r.get('cache')
assert $1, (r, c)" "$dir/out" 2>>"$dir/err" || fail "$1"
}

one 0 gen "$dir/rows.npy" samples=6000 shape=64 dtype=float32
one 0 gen "$dir/npz" format=npz files=30 shape=20x20 classes=3
one 0 gen "$dir/tfr" format=tfrecord files=3 samples=200 shape=8x8
sets=(rows.npy npz tfr)
# what a build may be without
make() {
	local name=$1
	shift
	if "$penstock" gen "$dir/$name" "$@" >"$dir/out" 2>"$dir/err"; then
		sets+=("$name")
	else
		echo "$name: left out: $(cat "$dir/err")"
	fi
}
make cells.h5ad samples=900 genes=300 format.compression=gzip
make jpeg format=jpeg files=30 shape=32x32x3 dtype=uint8

declare -A sum
cache=(cache=ddict cache.memory=64MiB)
load=(shuffle=true epochs=3 batch_size=10 --checksum --json --quiet)
for s in "${sets[@]}"; do
	one 0 load "$dir/$s" "${load[@]}"
	sum[$s]=$(python3 -c "import json, sys
print(json.load(open(sys.argv[1]))['checksum'])" "$dir/out")
	for store in auto mmap; do
		one 0 load "$dir/$s" "${load[@]}" "${cache[@]}" store=$store
		is "r['checksum'] == ${sum[$s]}"
		is "c['ranks'] == 1 and not c['full'] and c['hits'] > 0"
		is "r['read_bytes'] == c['store_bytes'] == c['held_bytes']"
	done
done
one 0 load "$dir/rows.npy" "${load[@]}" cache=ddict cache.memory=1MiB
is "r['checksum'] == ${sum[rows.npy]} and c['full'] and c['hits'] > 0"
is "0 < c['held_share'] < 1 and c['hit_rate'] < 0.66"
one 0 load "$dir/rows.npy" cache=ddict,1MB epochs=2
grep -q '50.0 % of the bytes from memory' "$dir/out" || fail "text"
one 2 load "$dir/rows.npy" cache=none
grep -q 'use a size such as 512MiB, `ddict`' "$dir/err" || fail "cache=none"
one 2 load "$dir/rows.npy" cache.memory=1MiB
one 2 load "$dir/rows.npy" cache=ddict cache.color=red
one 0 load --help
grep -q 'mpirun -n 4 penstock load data/ cache=ddict' "$dir/out" || fail "help"

skip() {
	echo "skipped: $*"
	exit 77
}
command -v mpirun >/dev/null || skip "mpirun is not installed"
[ -e "$build/src/comm/penstock-openmpi.so" ] || skip "built without MPI"
[ "${SANITIZE:-}" != thread ] || skip "MPI is not built for ThreadSanitizer"

# ranks CODE N ARGUMENTS...: mpirun ends by itself, with that exit code
ranks() {
	local want=$1 n=$2 code=0
	shift 2
	timeout -k 5 600 "$(dirname "$0")/../mpirun" \
		--bind-to none -n "$n" "$@" >"$dir/out" 2>"$dir/err" \
		</dev/null || code=$?
	[ $code != 124 ] || fail "$*: hangs"
	[ "$want" = any ] && [ $code != 0 ] && return
	[ "$want" = "$code" ] || fail "$*: exit $code, not $want"
}

for s in "${sets[@]}"; do
	ranks 0 3 "$penstock" load "$dir/$s" "${load[@]}" "${cache[@]}"
	is "r['checksum'] == ${sum[$s]} and c['ranks'] == 3"
	# chunks of cells are wanted by several ranks in the first epoch
	[ "$s" = cells.h5ad ] || is "c['store_bytes'] == c['held_bytes']"
done
ranks 0 3 "$penstock" load "$dir/rows.npy" "${load[@]}" "${cache[@]}"
is "c['store_bytes'] == 6000 * 256 and c['held_bytes'] == 6000 * 256"
is "r['samples'] == 18000 and r['epochs'][1]['samples'] == 6000"
for transport in tcp mpi; do
	ranks 0 3 "$penstock" load "$dir/rows.npy" "${load[@]}" "${cache[@]}" \
		cache.share=false cache.transport=$transport
	is "r['checksum'] == ${sum[rows.npy]}"
	is "c['store_bytes'] == 6000 * 256 and '$transport' in c['transport']"
done
ranks 0 4 "$penstock" load "$dir/rows.npy" "${load[@]}" "${cache[@]}" \
	cache.width=2
is "c['store_bytes'] == 6000 * 256 and c['held_share'] <= 1"
ranks 0 2 "$penstock" load "$dir/rows.npy" "${load[@]}" cache=ddict \
	cache.memory=1MiB --batches 500
is "c['ranks'] == 2"

# One rank's error is all ranks', said once.
ranks 2 3 "$penstock" load "$dir/rows.npy" "${cache[@]}" cache.width=2
[ "$(grep -c 'does not divide' "$dir/err")" = 1 ] || fail "width"
ranks 2 3 "$penstock" load "$dir/rows.npy" "${cache[@]}" cache.name=x
ranks 4 2 "$penstock" load "$dir/rows.npy" "${cache[@]}" store=fault \
	store.fail_nth=20
[ "$(grep -c 'Input/output error' "$dir/err")" = 1 ] || fail "failing store"
ranks 4 2 "$penstock" load "$dir/nothing" "${cache[@]}"

# A rank that is killed takes the job with it; nobody waits.
endless=("$penstock" load "$dir/rows.npy" shuffle=true epochs=0 --quiet
	"${cache[@]}")
for how in share=true share=false; do
	ranks any 1 "${endless[@]}" cache.$how : \
		-n 1 timeout -s KILL 2 "${endless[@]}" cache.$how : \
		-n 1 "${endless[@]}" cache.$how
	grep -qE 'rank 1|exited|status|signal' "$dir/err" "$dir/out" ||
		fail "a rank was killed: nobody says so"
done
