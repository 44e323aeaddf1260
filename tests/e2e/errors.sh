#!/bin/bash
# What goes wrong is said in one line on stderr, with the name of the thing and
# the exit code that the help promises; nothing half-made is left behind.
set -euo pipefail
penstock=${PENSTOCK:?the command}
dir=$(mktemp -d)
mounted=
cleanup() {
	[ -z "$mounted" ] || umount "$dir/full"
	chmod -R u+rwx "$dir"
	rm -rf "$dir"
}
trap cleanup EXIT
export XDG_CACHE_HOME=$dir/cache
cd "$dir"

fail() {
	echo "failed: $*" >&2
	[ ! -s err ] || cat err >&2
	exit 1
}

# expect CODE TEXT COMMAND...: that exit code, one line on stderr, with TEXT
expect() {
	local want=$1 text=$2 code=0
	shift 2
	"$penstock" "$@" >out 2>err || code=$?
	[ $code = "$want" ] || fail "$*: exit $code, not $want"
	[ "$(wc -l <err)" = 1 ] || fail "$*: not one line on stderr"
	grep -qF -- "$text" err || fail "$*: says nothing of '$text'"
}

"$penstock" gen d files=20 shape=8x8 >/dev/null
"$penstock" gen z.npz samples=50 shape=30 format.compress=true >/dev/null
"$penstock" gen s.npz samples=50 shape=30 >/dev/null

# wrong use
expect 2 "did you mean 'load'" laod d
expect 2 "batch_size" load d bach_size=3
expect 2 "many" load d batch_size=many
expect 2 "--json" load d --jsn
expect 2 "needs" load d --batches
expect 2 "takes no value" load d --json=yes
expect 2 "path" load
expect 2 "floppy" load d store=floppy
expect 2 "npx" load d format=npx
expect 2 "direct" load d store=posix store.dirct=1
expect 2 "keep" load d tail=some
expect 2 "shape" gen g shape=0x3
expect 2 "dtype" gen g dtype=float33
expect 2 "not empty" gen d files=3
expect 2 "exists" gen z.npz
[ ! -e g ] || fail "gen left something behind"

# nothing there
expect 4 "nowhere" load nowhere
expect 4 "nowhere" verify nowhere
expect 4 "nowhere" inspect nowhere
mkdir empty
expect 4 "empty" load empty

# damaged files, named
cp -r d cut
f=$(find cut -name '*.npy' | sort | sed -n 7p)
truncate -s 200 "$f"
expect 3 "$f" load cut
code=0
"$penstock" verify cut >out 2>err || code=$?
[ $code = 3 ] || fail "verify cut: exit $code"
grep -qF "$f" out || fail "verify does not name $f"
grep -q "19 samples are good" out || fail "verify miscounts"
[ "$(wc -l <err)" = 0 ] || fail "verify complains on stderr"
"$penstock" load cut on_error=skip >out 2>err || fail "load on_error=skip"

# a bit flipped in the middle of a member: stored and deflated
for z in s.npz z.npz; do
	cp $z bad.npz
	at=$(($(stat -c %s bad.npz) / 2))
	printf '\xa5' | dd of=bad.npz bs=1 seek=$at conv=notrunc status=none
	expect 3 "bad.npz" load bad.npz
	code=0
	"$penstock" verify bad.npz >out 2>err || code=$?
	[ $code = 3 ] || fail "verify of a flipped bit in $z: exit $code"
	grep -qF bad.npz out || fail "verify does not name bad.npz"
done

# not readable; root reads everything
if [ "$(id -u)" != 0 ]; then
	cp -r d locked
	chmod 0 "$(find locked -name '*.npy' | sort | head -n1)"
	expect 4 "permission" load locked
fi

# results that cannot be written
expect 4 "no/such" load d -o no/such/file.json
[ ! -e no ] || fail "-o left something behind"

# a disk that fills up: one line, no file under its final name
mkdir full
if [ "$(id -u)" = 0 ] && mount -t tmpfs -o size=1m none full 2>/dev/null; then
	mounted=yes
	code=0
	"$penstock" gen full/x.npy samples=1k shape=1024 >out 2>err || code=$?
	[ $code = 4 ] || fail "gen on a full disk: exit $code"
	[ "$(wc -l <err)" = 1 ] || fail "gen on a full disk: not one line"
	[ -z "$(ls -A full)" ] || fail "gen left something on a full disk"
	# what fits by its payload, but not with its headers and blocks
	code=0
	"$penstock" gen full/d files=230 shape=1024 dtype=float32 \
		>out 2>err || code=$?
	[ $code = 4 ] || fail "gen of many on a full disk: exit $code"
	[ "$(wc -l <err)" = 1 ] || fail "gen of many: not one line"
	grep -qi "space" err || fail "gen does not say that the disk is full"
	[ -z "$(find full -type f ! -name '*.npy')" ] ||
		fail "gen left parts of files"
	bad=$(find full -name '*.npy' -size -8 | wc -l)
	[ "$bad" = 0 ] || fail "gen left $bad short files under final names"
	if [ -n "$(find full -name '*.npy' -print -quit)" ]; then
		"$penstock" verify full >/dev/null ||
			fail "what gen left on a full disk is damaged"
	fi
else
	echo "no tmpfs here: the full disk is left out"
fi
echo "errors: ok"
