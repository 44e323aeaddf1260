#!/bin/bash
# Requests between ranks under mpirun: on one host, on one that claims to be
# two, and (as root) on two hosts that are network namespaces, with addresses
# that both have and that lead nowhere. Nothing hangs when a rank dies.
set -euo pipefail
build=${BUILD:?the build directory}
ranks=$build/tests/wire_ranks
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

# all TRANSPORT CHOSEN N ARGUMENTS...: N ranks send each other all requests
all() {
	local transport=$1 chosen=$2 n=$3
	shift 3
	run 0 "$@" -n "$n" "$ranks" all "$transport"
	[ "$(grep -o ', 0 failed' "$dir/out" | wc -l)" = "$n" ] || fail "$transport"
	# what another rank says may be on that line, too
	grep -qE "(^|failed)($chosen)(:|[0-9]|\$)" "$dir/out" ||
		fail "$transport: not $chosen"
}

all tcp tcp 2
all mpi mpi 2
all tcp tcp 4
all mpi mpi 4
all auto 'tcp|mpi|ucx' 3
ucx=
[ ! -e "$PENSTOCK_MODULES/penstock-ucx.so" ] || ucx=ucx
if [ $ucx ]; then
	all ucx ucx 2
	all ucx ucx 4
fi
# mpirun asks the others to end, and does not wait for that
at_once=(--mca odls_base_sigkill_timeout 0)
for t in tcp mpi $ucx; do
	run 137 "${at_once[@]}" -n 3 "$ranks" kill $t
done
run 2 -n 2 "$ranks" all rma
grep -q 'rma: no benefit within one host' "$dir/err" || fail "rma"
run 2 -n 2 "$ranks" all pigeon
grep -q "'pigeon' is not a transport; choose from auto, tcp, mpi, ucx, rma" "$dir/err" || fail "name"

# a program that already uses MPI, for one thread at a time
run 0 -n 2 "$ranks" theirs
grep -q 'mpi: initialised without MPI_THREAD_MULTIPLE' "$dir/out" ||
	fail "theirs"

# and mpi4py, which may come first or second
cat >"$dir/both.py" <<'PY'
import ctypes, os, sys
lib = ctypes.CDLL(os.environ["BUILD"] + "/libpenstock.so")
ranks = ctypes.c_void_p()
def meet():
    err = ctypes.create_string_buffer(4096)
    assert lib.pen_ranks_open(ctypes.byref(ranks), err) == 0, err.raw
if sys.argv[1] == "first":
    meet()
from mpi4py import MPI
if sys.argv[1] != "first":
    meet()
comm = MPI.COMM_WORLD
assert lib.pen_ranks_size(ranks) == comm.size == 2
assert lib.pen_ranks_rank(ranks) == comm.rank
assert lib.pen_ranks_barrier(ranks, None) == 0
assert comm.allreduce(1) == 2
lib.pen_ranks_close(ranks)
assert comm.allreduce(1) == 2
print("fine")
PY
if [ -z "${SANITIZE:-}" ]; then
	/usr/bin/python3 -c 'import mpi4py' 2>"$dir/err" ||
		skip "python3-mpi4py is not installed"
	for which in first second; do
		BUILD=$build run 0 -n 2 /usr/bin/python3 "$dir/both.py" $which
		# both may end up on one line
		[ "$(grep -o fine "$dir/out" | wc -l)" = 2 ] ||
			fail "mpi4py $which"
	done
fi

# one host that mpirun treats as two
cat >"$dir/rsh" <<'SH'
#!/bin/sh
export TMPDIR="$(dirname "$0")/$1"
mkdir -p "$TMPDIR"
shift
exec sh -c "$*"
SH
chmod +x "$dir/rsh"
all tcp tcp 3 --mca plm_rsh_agent "$dir/rsh" --host one:1,two:2

# two hosts
hosts_up 2>"$dir/err" || skip "two hosts need root and network namespaces"
all tcp tcp 4 "${hosts[@]}"
all mpi mpi 4 "${hosts[@]}"
all auto 'tcp|mpi|ucx' 4 "${hosts[@]}"
grep -q 'rma: .' "$dir/out" || fail "two hosts: rma not looked at"
[ ! $ucx ] || all ucx ucx 4 "${hosts[@]}"
for t in tcp $ucx; do
	run 137 "${at_once[@]}" "${hosts[@]}" -n 4 "$ranks" kill "$t"
done
# without the module, it is not an error
mkdir "$dir/modules"
cp "$PENSTOCK_MODULES/penstock-openmpi.so" "$dir/modules"
PENSTOCK_MODULES=$dir/modules all auto 'tcp|mpi' 2
grep -q 'ucx: .*penstock-ucx.so' "$dir/out" || fail "no UCX module: not said"
# prints figures: BENCH=1 BUILD=build/release tests/e2e/wire.sh
[ -n "${BENCH:-}" ] || exit 0
for t in auto tcp mpi $ucx; do
	run 0 "${hosts[@]}" --map-by node -n 2 "$ranks" bench $t
	cat "$dir/out"
done
