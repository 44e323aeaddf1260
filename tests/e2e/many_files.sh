#!/bin/bash
# A hundred thousand small files, and sixty-four open ones at most: every store
# gets through, in random order, and sees each of them once.
set -euo pipefail
penstock=${PENSTOCK:?the command}
folders=100
[ -z "${SANITIZE:-}" ] || folders=5
n=$((folders * 1000))
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
export XDG_CACHE_HOME=$dir/cache
cd "$dir"

fail() {
	echo "failed: $*" >&2
	exit 1
}

# made once and linked: what counts is names, and opening them
"$penstock" gen d/1 files=1000 shape=4 >/dev/null
for ((i = 2; i <= folders; i++)); do
	cp -rl d/1 "d/$i"
done
ulimit -n 64
sum=
stores="posix mmap"
"$penstock" load d store=uring --batches 1 >/dev/null 2>&1 && stores+=" uring"
for store in $stores; do
	"$penstock" load d store="$store" shuffle=true batch_size=256 threads=4 \
		--checksum --json --quiet -o r.json >/dev/null ||
		fail "store=$store"
	grep -q "\"samples\": $n,\$" r.json || fail "store=$store: count"
	now=$(sed -n 's/.*"checksum": \([0-9]*\).*/\1/p' r.json)
	[ -n "$now" ] && [ "${sum:-$now}" = "$now" ] ||
		fail "store=$store: other bytes"
	sum=$now
done
echo "many_files: $n files, $stores: ok"
