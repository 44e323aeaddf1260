#!/bin/bash
# A dictionary under stress: large values, many requests ahead, all ranks using
# the same keys; with each rank as a host of its own, and (as root) on two hosts
# that are network namespaces, where the command is measured, too.
set -euo pipefail
build=${BUILD:?the build directory}
penstock=${PENSTOCK:-$build/src/cli/penstock}
ranks=$build/tests/ddict_hosts
skip() {
	echo "skipped: $*"
	exit 77
}
command -v mpirun >/dev/null || skip "mpirun is not installed"
[ -x "$ranks" ] || skip "built without MPI"
[ "${SANITIZE:-}" != thread ] || skip "MPI is not built for ThreadSanitizer"
# MPI keeps memory until the end; it is not ours to free
export ASAN_OPTIONS=detect_leaks=0
export PENSTOCK_MODULES=$build/src/comm
unset "${!OMPI_@}" "${!PMIX_@}" "${!PMI_@}" "${!SLURM_@}"
dir=$(mktemp -d)
# shellcheck source=tests/hosts.bash
. "${SOURCE:-$(dirname "$0")/../..}/tests/hosts.bash"
trap 'hosts_down; rm -rf "$dir"' EXIT

fail() {
	echo "failed: $*" >&2
	cat "$dir/out" "$dir/err" >&2
	exit 1
}

# run CODE ARGUMENTS...: mpirun ends on its own, with that exit code
run() {
	local want=$1 code=0
	shift
	timeout -k 5 600 "$(dirname "$0")/../mpirun" \
		--bind-to none "$@" >"$dir/out" 2>"$dir/err" </dev/null ||
		code=$?
	[ $code != 124 ] || fail "$*: hangs"
	[ "$want" = "$code" ] || fail "$*: exit $code, not $want"
}

# all WAY N ARGUMENTS...: N ranks run all checks over this transport
all() {
	local way=$1 n=$2
	shift 2
	run 0 -n "$n" "$@"
	[ "$(grep -o ', 0 failed' "$dir/out" | wc -l)" = "$n" ] || fail "$*"
	grep -q "$way" "$dir/out" || fail "$*: not $way"
}

small=memory=128MiB
ucx=
[ ! -e "$PENSTOCK_MODULES/penstock-ucx.so" ] || ucx=ucx
for t in tcp mpi $ucx; do
	all $t 3 "$ranks" $small share=false transport=$t
done

# one-sided reads, and the owner is killed
if [ $ucx ]; then
	all ucx 3 "$ranks" $small share=false transport=ucx direct=always
	run 137 --mca odls_base_sigkill_timeout 0 -n 3 "$ranks" kill $small \
		share=false transport=ucx direct=always
	run 0 -n 3 --enable-recovery "$ranks" kill $small share=false \
		transport=ucx direct=always
	[ "$(grep -o 'told rank 2 (' "$dir/err" | wc -l)" = 2 ] ||
		fail "kill: not told"
fi
run 2 -n 2 "$ranks" $small share=false transport=tcp direct=always
grep -q 'always requires transport=ucx' "$dir/err" || fail "direct"

hosts_up 2>"$dir/err" || skip "two hosts need root and network namespaces"
for t in tcp mpi $ucx; do
	all "between machines $t" 4 "${hosts[@]}" "$ranks" $small transport=$t
done
all 'tcp\|mpi\|ucx' 2 "${hosts[@]}" --map-by node "$ranks" $small
[ ! $ucx ] || all ucx 4 "${hosts[@]}" "$ranks" $small transport=ucx direct=always

# the JSON output of the command
run 0 "${hosts[@]}" -n 4 "$penstock" ddict bench values=20k time=20ms \
	memory=64MiB --json
python3 - "$dir/out" <<'PY' || fail "bench between two hosts"
import json, sys
r = json.load(open(sys.argv[1]))
assert r["ranks"] == 4 and r["machines"] == 2, r
assert "tcp" in r["transport"] and "rma: " in r["transport"], r
assert len({s["host"] for s in r["shards"]}) == 2, r
assert sum(s["keys"] for s in r["shards"]) == r["values"] == 20000, r
assert all(w["values_per_second"] > 0 for w in r["ways"]), r
assert sum(s["served"] for s in r["shards"]) > 0, r
PY
# BENCH=1 BUILD=build/release tests/e2e/ddict_hosts.sh: prints figures
if [ -n "${BENCH:-}" ]; then
	run 0 "${hosts[@]}" --map-by node -n 2 "$penstock" ddict bench
	cat "$dir/out"
fi
