#!/bin/bash
# Ranks under mpirun: every call among 1 to 4 of them, over shared memory, over
# TCP and between two hosts; and however one rank ends, the others do not wait
# forever. Then the same with MPICH, whose module is another one.
set -euo pipefail
build=${BUILD:?the build directory}
ranks=$build/tests/comm_ranks
skip() {
	echo "skipped: $*"
	exit 77
}
command -v mpirun >/dev/null || skip "mpirun is not installed"
[ -x "$ranks" ] || skip "built without MPI"
[ "${SANITIZE:-}" != thread ] || skip "MPI is not built for ThreadSanitizer"
# MPI keeps memory until the end; it is not ours to free
export ASAN_OPTIONS=detect_leaks=0
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
export PENSTOCK_MODULES=$build/src/comm
# ignore a launcher around this test
unset "${!OMPI_@}" "${!PMIX_@}" "${!PMI_@}" "${!SLURM_@}"

fail() {
	echo "failed: $*" >&2
	cat "$dir/out" "$dir/err" >&2
	exit 1
}

launch=("$(dirname "$0")/../mpirun")
# run CODE ARGUMENTS...: the launcher ends on its own, with that exit code, with any
# but 0 if CODE is "bad", or with any if it is "any"
run() {
	local want=$1 code=0
	shift
	timeout -k 5 600 "${launch[@]}" "$@" \
		>"$dir/out" 2>"$dir/err" </dev/null || code=$?
	[ $code != 124 ] || fail "$*: hangs"
	[ "$want" = any ] || [ "$want" = "$code" ] || { [ "$want" = bad ] && [ $code != 0 ]; } ||
		fail "$*: exit $code, not $want"
}

# Two hosts simulated on this one: mpirun starts its daemons through this, each
# with its own directory for files.
cat >"$dir/rsh" <<'SH'
#!/bin/sh
export TMPDIR="$(dirname "$0")/$1"
mkdir -p "$TMPDIR"
shift
exec sh -c "$*"
SH
chmod +x "$dir/rsh"
hosts=(--mca plm_rsh_agent "$dir/rsh" --host 'one:1,two:2')

for n in 1 2 3 4; do
	run 0 -n $n "$ranks" all
	[ "$(grep -o ', 0 failed' "$dir/out" | wc -l)" = $n ] || fail "$n ranks"
done
run 0 --mca btl tcp,self -n 3 "$ranks" all
run 0 "${hosts[@]}" -n 3 "$ranks" all two

# One fails while the others are in any call: all end, with its message.
for call in barrier reduce bcast gather agree; do
	run 3 -n 3 "$ranks" fail $call
	[ "$(grep -c '^told .: -4 thing: rank 2 failed: is broken$' "$dir/err")" = 2 ] &&
		grep -q '^told 2: -4 thing: is broken$' "$dir/err" ||
		fail "fail $call: not told"
done
run 3 --mca btl tcp,self -n 2 "$ranks" fail gather
run 3 "${hosts[@]}" -n 3 "$ranks" fail gather
[ "$(grep -c '^told .: -4 thing: rank 2 failed: is broken$' "$dir/err")" = 2 ] ||
	fail "two hosts: not told"
run 3 -n 3 "$ranks" close
[ "$(grep -c '^told .: -8 .*rank 2 closed' "$dir/err")" = 2 ] ||
	fail "close: not told"

# One ends without a message: mpirun ends the rest, and does not wait for them.
at_once=(--mca odls_base_sigkill_timeout 0)
for how in kill leave abort early; do
	case $how in
	kill) code=137 ;;
	*) code=bad ;;
	esac
	run $code "${at_once[@]}" -n 3 "$ranks" $how
done
run 137 "${at_once[@]}" "${hosts[@]}" -n 3 "$ranks" kill

# Nor does a rank wait forever if mpirun does not end the others.
for call in barrier reduce bcast gather; do
	run any --enable-recovery -n 3 "$ranks" kill $call
	[ "$(grep -o 'told .: -3 ranks: rank 2 has ended' "$dir/err" |
		wc -l)" = 2 ] ||
		fail "kill $call: not told"
done

# MPI is loaded only for several ranks, and none of them ever runs as if alone.
[ "$("$ranks" name)" = "self 1 not" ] || fail "alone: $("$ranks" name)"
run 0 -n 1 "$ranks" name
[ "$(cat "$dir/out")" = "self 1 not" ] || fail "one rank"
# said NAME: printed by two ranks, whose lines may be interleaved
said() {
	[ "$(grep -o "$1" "$dir/out" | wc -l)" = 2 ]
}
run 0 -n 2 "$ranks" name
said "mpi 2 loaded" || fail "two ranks"
(
	export PENSTOCK_MODULES=$dir
	run 0 -n 1 "$ranks" name
	run bad -n 2 "$ranks" name
	grep -q 'not open:.*install libopenmpi-dev' "$dir/err" ||
		fail "no module: not said"
)
for set in "PMI_SIZE=2 PMI_RANK=1" "PMIX_RANK=1"; do
	code=0
	# shellcheck disable=SC2086 # two settings
	env $set timeout -k 5 600 "$ranks" name >"$dir/out" 2>"$dir/err" ||
		code=$?
	[ $code != 0 ] && [ $code != 124 ] && [ ! -s "$dir/out" ] ||
		fail "$set and no MPI launcher: exit $code"
done

# directories that are searched
mkdir -p "$dir/bin" "$dir/lib/penstock"
cp "$ranks" "$dir/bin"
cp "$build/src/comm/penstock-openmpi.so" "$dir/lib/penstock"
(
	unset PENSTOCK_MODULES
	run 0 -n 2 "$dir/bin/comm_ranks" name
	said "mpi 2 loaded" || fail "installed"
)
for module in "$PENSTOCK_MODULES"/penstock-*.so; do
	exported=$(nm -D --defined-only "$module" | awk '{ print $NF }')
	case $module in
	*-ucx.so) symbol=pen_ucx_module ;;
	*) symbol=pen_comm_module ;;
	esac
	[ -n "${SANITIZE:-}" ] || [ "$exported" = $symbol ] ||
		fail "$module exports $exported"
done

# MPICH: mpiexec sets other variables, and its module is loaded by them.
command -v mpiexec.mpich >/dev/null || skip "MPICH is not installed"
launch=(mpiexec.mpich)
for n in 1 2 3 4; do
	run 0 -n $n "$ranks" all
	[ "$(grep -o ', 0 failed' "$dir/out" | wc -l)" = $n ] ||
		fail "MPICH: $n ranks"
done
for call in barrier reduce bcast gather agree; do
	run 3 -n 3 "$ranks" fail $call
	[ "$(grep -c '^told .: -4 thing: rank 2 failed: is broken$' "$dir/err")" = 2 ] ||
		fail "MPICH: fail $call: not told"
done
for how in kill leave abort early; do
	run bad -n 3 "$ranks" $how
done
run 0 -n 2 "$ranks" name
said "mpi 2 loaded" || fail "MPICH: two ranks"
# only the module of another library is installed
mkdir "$dir/other"
cp "$build/src/comm/penstock-openmpi.so" "$dir/other"
(
	export PENSTOCK_MODULES=$dir/other
	run bad -n 2 "$ranks" name
	grep -q 'not open:.*penstock-mpich.so is missing; install libmpich-dev' \
		"$dir/err" || fail "MPICH: no module: not said"
)
