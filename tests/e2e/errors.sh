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
# of a process that the command starts: without a second "penstock: "
expect 4 "penstock: ./gone: no such file" simulate ./gone
expect 4 "penstock: ./gone: no such file" tune ./gone
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

# settings that exclude one another
"$penstock" gen c.zarr samples=20 genes=30 >/dev/null
expect 2 "format.output=dense" load c.zarr format.output=csr take=4
expect 2 "format.output=dense" load c.zarr format.output=csr cast=float16
for option in k=3 stride=2 singles=true gap=0.25 context=2 noise=3 power=1; do
	echo ACGT >seq.txt
	expect 2 "cannot be combined with format.tokens=chars" load seq.txt \
		format=lines format.tokens=chars "format.$option"
done
for option in dropcache=true fadvise=random readahead=1MiB; do
	expect 2 "store.${option%%=*}: has no effect with store.direct" \
		load d store=posix store.direct=true "store.$option"
done
expect 2 "not a number of batches" load d --batches 0
expect 2 "sampler=shuffle" inspect d shuffle=false sampler=shuffle
expect 2 "tail=pad" verify d drop_last=true tail=pad
expect 2 "is a single file" gen one.npy subfolders=3
expect 2 "is a single file" gen one.npy prefix=x
expect 2 "on a single file" gen one.zarr overlap=0.5
expect 2 "does not apply to sequences" gen dna one.fa samples=3
expect 2 "without shuffle=true" convert c.zarr one.pen seed=5
expect 2 "without shuffle=true" convert c.zarr one.pen memory=1GB
expect 2 "the suffix means packed" convert c.zarr one.pen to=zarr
for setting in fields=X_data fields= format.fields=X_data labels=folder \
	batch_size=8 subset=0:5 world=2 pack=10; do
	expect 2 "has no effect on convert" convert c.zarr one.pen $setting
done
job="sample_bytes=1MB batch=4 compute=1ms"
expect 2 "conflicts with steps=" simulate $job samples=100 steps=5
expect 2 "with sync=" simulate $job steps=5 sync=1ms gradients=1GB
expect 2 "with cache=none" simulate $job steps=5 memory=1GB
expect 2 "without --step" bench prefetch d --busy
expect 2 "--label and --no-quality exclude each other" bench blocks d --label x --no-quality
expect 2 "d: not sequence data" vocab d -o words
expect 2 "format.filter: 'x' is not a filter" load c.zarr format.filter=x
expect 2 "from 1 to" capacity unet3d_small --max 0
[ ! -e one.npy ] && [ ! -e one.pen ] || fail "what was refused was made"
expect 2 "sampler=shuffle" load d shuffle=false sampler=shuffle
expect 2 "tail=pad" load d drop_last=true tail=pad
expect 2 "store=uring" load d store=mmap queue_depth=4
expect 2 "do not fill one batch" load d drop_last=true batch_size=21
expect 2 "do not fill one batch" bench prefetch d tail=drop batch_size=21
expect 2 "sampler.chunk" load d sampler=block sampler.chnk=4
expect 2 "--checksum" load d decode=false --checksum

# names of what is in a file
mkdir a
"$penstock" gen a/width.npy samples=9 shape=3 >/dev/null
"$penstock" gen a/label.npy samples=9 shape=2 >/dev/null
expect 4 "did you mean 'label'" load a format=arrays format.fields=lable,width
expect 3 "fields=lable; " load a format=arrays fields=lable
expect 4 "has no member 'y.npy'" load s.npz format.fields=y
expect 4 "did you mean 'cell_type'" load c.zarr format.obs=cel_type
expect 4 "did you mean 'plate'" load c.zarr format.filter=plat:x
echo ENSG0000000000 >genes
expect 3 "of the list is not in the file; did you" load c.zarr \
	format.genes=@genes
if "$penstock" gen r.h5 samples=20 shape=8 >/dev/null 2>&1; then
	expect 4 "did you mean 'records_0'" load r.h5 format.fields=record_0
fi

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

# files with nothing in them
mkdir -p nil/run nil/z.zarr
: >nil/words
for f in run/result.json rows.jsonl load.json my.yaml z.zarr/zarr.json \
	x.npy x.npz x.h5 x.h5ad x.tfrecord x.csv x.jpg x.png x.fa x.fastq \
	x.pen x.zarr.zip x.indexed_binary; do
	: >"nil/$f"
	case $f in
	*.json | *.jsonl) set -- report "nil/$f" ;;
	*.yaml) set -- config "nil/$f" ;;
	*) set -- load "nil/$f" ;;
	esac
	[ $f != z.zarr/zarr.json ] || set -- load nil/z.zarr
	code=0
	"$penstock" "$@" >out 2>err || code=$?
	[[ $code == [234] ]] || fail "$*: exit $code"
	[ "$(wc -l <err)" = 1 ] || fail "$*: not one line on stderr"
done
expect 3 "is empty" report nil/run
expect 3 "is empty" compare nil/run nil/run
expect 3 "is empty" simulate unet3d_h100 --from nil/load.json
echo ACGT >seq.txt
expect 3 "no words" load seq.txt format=lines format.tokens=vocab \
	format.vocab=nil/words

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
	# an index beside the file does not stay without it
	"$penstock" gen full/x.indexed_binary samples=60 shape=256 >/dev/null
	pages=$(du -s --block-size=4096 full | cut -f1)
	rm full/*
	for ((; pages > 1; pages--)); do
		mount -o remount,size=$(((pages - 1) * 4096)) full
		expect 4 "free" gen full/x.indexed_binary samples=60 shape=256
		[ -z "$(ls -A full)" ] || fail "left: $(ls -A full)"
	done
	mount -o remount,size=1m full
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
	echo "skipped: a full disk needs root and tmpfs"
	exit 77
fi
echo "errors: ok"
