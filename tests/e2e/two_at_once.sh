#!/bin/bash
# Several processes with one index cache, all at once: each gets the whole
# index, whether it wrote it, read it, or found it damaged; the cache holds one
# file afterwards and nothing half-written.
set -euo pipefail
penstock=${PENSTOCK:?the command}
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
export XDG_CACHE_HOME=$dir/cache
cd "$dir"
rounds=12
[ -z "${SANITIZE:-}" ] || rounds=3

fail() {
	echo "failed: $*" >&2
	exit 1
}

"$penstock" gen x.tfrecord samples=3000 shape=16 >log
"$penstock" inspect x.tfrecord index_cache=off | grep -v 'opened in' >want

for ((round = 0; round < rounds; round++)); do
	case $((round % 3)) in
	0) rm -rf cache ;; # all of them write it
	1) # a damaged one: it is written again
		for f in cache/penstock/*.idx; do
			printf '\377' | dd of="$f" bs=1 seek=200 conv=notrunc status=none
		done ;;
	2) # the lock of a process that was killed before it wrote it
		for f in cache/penstock/*.idx; do
			mv "$f" "$f.lock"
		done ;;
	esac
	pids=()
	for i in 1 2 3 4 5 6; do
		"$penstock" inspect x.tfrecord >"out.$i" 2>"err.$i" &
		pids+=($!)
	done
	for pid in "${pids[@]}"; do
		wait "$pid" || fail "round $round: exit $? $(cat err.*)"
	done
	for i in 1 2 3 4 5 6; do
		[ ! -s "err.$i" ] || fail "round $round: $(cat "err.$i")"
		grep -v 'opened in' "out.$i" | cmp -s - want ||
			fail "round $round: $(diff "out.$i" want)"
	done
	left=$(ls cache/penstock)
	[ "$(wc -w <<<"$left")" = 1 ] || fail "round $round: the cache has $left"
	case $left in *.idx) ;; *) fail "the cache has $left" ;; esac
done
# and what is there is right
"$penstock" inspect x.tfrecord | grep -q 'index from the cache' ||
	fail "the index of $rounds rounds is not used"
echo "$rounds rounds of six processes share an index"
