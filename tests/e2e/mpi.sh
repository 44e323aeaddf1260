#!/bin/bash
# Ranks under mpirun: every call among 1 to 4 of them, over shared memory, over
# TCP and between two hosts; and no way for one rank to end that leaves the
# others waiting.
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
# what MPI keeps until the end is not ours to free
export ASAN_OPTIONS=detect_leaks=0
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
export PENSTOCK_MODULES=$build/src/comm
# a launcher around this test is not meant
unset "${!OMPI_@}" "${!PMIX_@}" "${!PMI_@}" "${!SLURM_@}"

fail() {
	echo "failed: $*" >&2
	cat "$dir/out" "$dir/err" >&2
	exit 1
}

# run CODE ARGUMENTS...: mpirun ends by itself, with that exit code, or with
# any but 0 when CODE is "bad", or with whichever when it is "any"
run() {
	local want=$1 code=0
	shift
	timeout -k 5 600 mpirun --allow-run-as-root --oversubscribe "$@" \
		>"$dir/out" 2>"$dir/err" </dev/null || code=$?
	[ $code != 124 ] || fail "$*: hangs"
	[ "$want" = any ] || [ "$want" = "$code" ] || { [ "$want" = bad ] && [ $code != 0 ]; } ||
		fail "$*: exit $code, not $want"
}

# Two hosts that are this one: mpirun starts its daemons through this, each
# with a place for files of its own.
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

# One fails, the others are in any call: all end, with its message.
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
[ "$(grep -c '^told .: -8 .*rank 2 ended' "$dir/err")" = 2 ] ||
	fail "close: not told"

# One ends and says nothing: mpirun ends the rest, and does not wait for them.
at_once=(--mca odls_base_sigkill_timeout 0)
for how in kill leave abort early; do
	case $how in
	kill) code=137 ;;
	*) code=bad ;;
	esac
	run $code "${at_once[@]}" -n 3 "$ranks" $how
done
run 137 "${at_once[@]}" "${hosts[@]}" -n 3 "$ranks" kill

# Nor does anybody wait where mpirun lets the others live.
for call in barrier reduce bcast gather; do
	run any --enable-recovery -n 3 "$ranks" kill $call
	[ "$(grep -o 'told .: -3 ranks: rank 2 has ended' "$dir/err" |
		wc -l)" = 2 ] ||
		fail "kill $call: not told"
done

# MPI is loaded by many only, and never does one of many believe to be alone.
[ "$("$ranks" name)" = "self 1 not" ] || fail "alone: $("$ranks" name)"
run 0 -n 1 "$ranks" name
[ "$(cat "$dir/out")" = "self 1 not" ] || fail "one rank"
# said NAME: by two ranks, whose lines may run together
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

# where it is looked for
mkdir -p "$dir/bin" "$dir/lib/penstock"
cp "$ranks" "$dir/bin"
cp "$build/src/comm/penstock-mpi.so" "$dir/lib/penstock"
(
	unset PENSTOCK_MODULES
	run 0 -n 2 "$dir/bin/comm_ranks" name
	said "mpi 2 loaded" || fail "installed"
)
exported=$(nm -D --defined-only "$PENSTOCK_MODULES/penstock-mpi.so" |
	awk '{ print $NF }')
[ -n "${SANITIZE:-}" ] || [ "$exported" = pen_comm_module ] ||
	fail "the module exports $exported"
