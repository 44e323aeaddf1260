#!/bin/bash
# The dictionary: the command on one machine; ranks under mpirun, in shared
# memory, over each transport, and (as root) on two hosts that are network
# namespaces; files saved by another number of ranks; and killed ranks.
set -euo pipefail
penstock=${PENSTOCK:?the command}
build=${BUILD:?the build directory}
ranks=$build/tests/ddict_ranks
# MPI keeps memory until the end; it is not ours to free
export ASAN_OPTIONS=detect_leaks=0
export PENSTOCK_MODULES=$build/src/comm
unset "${!OMPI_@}" "${!PMIX_@}" "${!PMI_@}" "${!SLURM_@}"
dir=$(mktemp -d)
export XDG_CACHE_HOME=$dir/cache
# shellcheck source=tests/hosts.bash
. "${SOURCE:-$(dirname "$0")/../..}/tests/hosts.bash"
trap 'hosts_down; rm -rf "$dir"' EXIT

fail() {
	echo "failed: $*" >&2
	cat "$dir/out" "$dir/err" >&2
	exit 1
}

# one CODE ARGUMENTS...: the command ends on its own, with that exit code
one() {
	local want=$1 code=0
	shift
	timeout -k 5 600 "$penstock" "$@" >"$dir/out" 2>"$dir/err" || code=$?
	[ "$want" = "$code" ] || fail "$*: exit $code, not $want"
}

small=(values=2000 time=5ms memory=32MiB)
one 0 ddict bench "${small[@]}"
grep -q 'get_many, lent' "$dir/out" || fail "bench"
grep -q 'transport: shared memory' "$dir/out" || fail "bench: transport"
one 0 ddict bench "${small[@]}" size=100 batch=3 --json
python3 - "$dir/out" <<'PY' || fail "bench --json"
import json, sys
r = json.load(open(sys.argv[1]))
assert r["schema"] == "penstock.ddict.bench/1" and len(r["ways"]) == 10
assert r["shards"][0]["keys"] == 2000
PY
one 1 ddict bench memory=1MiB values=5000
grep -q 'full' "$dir/err" || fail "bench: full"
one 2 ddict bench colour=red
one 2 ddict
one 2 ddict stat
one 4 ddict stat nobody-has-this
one 0 ddict bench --help
grep -q 'width=' "$dir/out" || fail "help"

one 0 gen "$dir/data.npy" samples=600 shape=16x16 dtype=float32
one 0 ddict load "$dir/data.npy" ddict.memory=16MiB --save "$dir/saved"
grep -q '^loaded 600 keys, 614 kB' "$dir/out" || fail "load"
one 0 ddict stat "$dir/saved" --verify
grep -q ' 600 ' "$dir/out" || fail "stat of a file"
printf x | dd of="$dir/saved" bs=1 seek=100000 conv=notrunc 2>/dev/null
one 3 ddict stat "$dir/saved" --verify
one 1 ddict load "$dir/data.npy" ddict.memory=1MiB ddict.keys=1M

# another user occupies a name of this one
if [ "$(id -u)" = 0 ]; then
	coproc squatter { setpriv --reuid 65534 --clear-groups /usr/bin/python3 -c '
import socket, sys
s = socket.socket(socket.AF_UNIX)
s.bind("\0penstock.taken-%s.0.0" % sys.argv[1])
s.listen()
print("ready", flush=True)
sys.stdin.read()
' $$; }
	read -r _ <&"${squatter[0]}"
	one 4 ddict stat "taken-$$"
	grep -q 'of another user (uid 65534) occupies this name' "$dir/err" ||
		fail "stat: squatted"
	one 4 ddict load "$dir/data.npy" "ddict.name=taken-$$" --serve
	grep -q 'of another user (uid 65534) occupies this name' "$dir/err" ||
		fail "load: squatted"
	exec {squatter[1]}>&-
	wait "$squatter_PID" || fail "the other user"
	one 4 ddict stat "taken-$$"
	grep -q 'no process of this user' "$dir/err" || fail "stat: nobody"
fi

skip() {
	echo "skipped: $*"
	exit 77
}
command -v mpirun >/dev/null || skip "mpirun is not installed"
[ -x "$ranks" ] || skip "built without MPI"
[ "${SANITIZE:-}" != thread ] || skip "MPI is not built for ThreadSanitizer"

# run CODE ARGUMENTS...: mpirun ends on its own, with that exit code; lost: a
# rank was killed, and the others either got an error or were ended by mpirun;
# any: any exit code
run() {
	local want=$1 code=0
	shift
	timeout -k 5 600 "$(dirname "$0")/../mpirun" \
		--bind-to none "$@" >"$dir/out" 2>"$dir/err" </dev/null ||
		code=$?
	[ $code != 124 ] || fail "$*: hangs"
	[ "$want" != lost ] || case $code in
	3 | 137) want=$code ;;
	esac
	[ "$want" != any ] || want=$code
	[ "$want" = "$code" ] || fail "$*: exit $code, not $want"
}

# all TRANSPORT N ARGUMENTS...: N ranks run all checks and print the transport
all() {
	local transport=$1 n=$2
	shift 2
	run 0 -n "$n" "$@"
	[ "$(grep -o ', 0 failed' "$dir/out" | wc -l)" = "$n" ] || fail "$*"
	grep -qE "transport $transport" "$dir/out" || fail "$*: not $transport"
}

for n in 1 2 3 4; do
	all 'shared memory' $n "$ranks" all
done
all 'shared memory' 4 "$ranks" all width=2
all 'shared memory' 3 "$ranks" all spread=blocks keys=2100
all tcp 3 "$ranks" all share=false transport=tcp
all mpi 2 "$ranks" all share=false transport=mpi
all '(tcp|mpi|ucx)' 4 "$ranks" all share=false width=2
run 2 -n 3 "$ranks" all width=2
grep -q '2 does not divide the number of ranks, 3' "$dir/err" || fail "width"
run 2 -n 2 "$ranks" all share=false transport=shm
grep -q 'set transport=auto' "$dir/err" || fail "shm"

run 0 -n 3 "$ranks" save "$dir/three"
[ -e "$dir/three.2-of-3" ] || fail "save"
run 0 -n 3 "$ranks" load "$dir/three"
run 0 -n 2 "$ranks" load "$dir/three" memory=16MiB
run 0 -n 1 "$ranks" load "$dir/three" memory=16MiB
run 0 -n 3 "$ranks" load "$dir/three" writable=true memory=16MiB
run 0 -n 2 "$ranks" save "$dir/three"
run 2 -n 1 "$ranks" load "$dir/three" memory=16MiB
grep -q 'remove the older set of files' "$dir/err" || fail "two sets of files"
rm "$dir"/three.?-of-2
mv "$dir/three.0-of-3" "$dir/zero"
cp "$dir/three.1-of-3" "$dir/three.0-of-3"
run 2 -n 3 "$ranks" load "$dir/three" memory=16MiB
grep -q 'contains shard 1 of 3' "$dir/err" || fail "files mixed up"
mv "$dir/zero" "$dir/three.0-of-3"
run 0 -n 2 "$ranks" fork
rm "$dir/three.1-of-3"
run 2 -n 3 "$ranks" load "$dir/three" memory=16MiB
[ "$(grep -c 'three.1-of-3' "$dir/err")" -ge 1 ] || fail "a shard is missing"

run 0 -n 2 "$penstock" ddict load "$dir/data.npy" ddict.memory=16MiB
grep -q 'loaded 600 keys, 614 kB' "$dir/out" || fail "load on two"
run 0 -n 2 "$penstock" ddict bench "${small[@]}" share=false
grep -q '2 ranks' "$dir/out" || fail "bench on two"

# A rank that dies ends the job, whatever the others do; mpirun asks them to
# end, and does not wait for that.
at_once=(--mca odls_base_sigkill_timeout 0)
for what in put get barrier; do
	run lost "${at_once[@]}" -n 3 "$ranks" kill $what
	run lost "${at_once[@]}" -n 3 "$ranks" kill $what share=false \
		transport=tcp
done
run lost "${at_once[@]}" -n 3 "$ranks" kill put share=false transport=mpi
# nor does a rank wait forever if mpirun does not end the others
run any --enable-recovery -n 3 "$ranks" kill barrier
[ "$(grep -o 'told: ranks: rank [0-9] has ended' "$dir/err" | wc -l)" = 2 ] &&
	grep -q 'told: ranks: rank 2 ' "$dir/err" ||
	fail "killed in a barrier: not told"
for transport in tcp mpi; do
	run any --enable-recovery -n 3 "$ranks" kill get share=false \
		transport=$transport
	# who is told first ends, and the other may be told of that
	[ "$(grep -oE 'told: rank [0-9] .[^)]*.: (its process has ended|connection lost)' \
		"$dir/err" | wc -l)" = 2 ] && grep -q 'told: rank 2 ' \
		"$dir/err" || fail "killed in get, $transport: not told"
done

hosts_up 2>"$dir/err" || skip "two hosts need root and network namespaces"
all 'shared memory on a machine, between machines (tcp|mpi|ucx)' 4 "${hosts[@]}" \
	"$ranks" all
all 'shared memory on a machine' 4 "${hosts[@]}" "$ranks" all width=2
run lost "${at_once[@]}" "${hosts[@]}" -n 4 "$ranks" kill get transport=tcp
[ -z "${BENCH:-}" ] || {
	run 0 "${hosts[@]}" -n 4 "$penstock" ddict bench
	cat "$dir/out"
}
