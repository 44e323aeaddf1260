#!/bin/bash
# Sequences from `penstock gen`: the layout of the example's file to the byte,
# the same bytes for the same seed, FASTA that samtools reads; files from
# samtools and bgzip are loaded, and errors are reported in one line.
set -euo pipefail
penstock=${PENSTOCK:?the command}
python=/usr/bin/python3
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
export XDG_CACHE_HOME=$dir/cache
cd "$dir"

fail() {
	echo "failed: $*" >&2
	exit 1
}

# expect CODE TEXT ARGS: the exit code, and one line that contains the text
expect() {
	local want=$1 text=$2 code=0
	shift 2
	"$penstock" "$@" >out 2>err || code=$?
	[ $code = "$want" ] || fail "$*: exit $code, not $want: $(cat err)"
	[ "$(wc -l <err)" = 1 ] || fail "$*: not one line: $(cat err)"
	grep -q -- "$text" err || fail "$*: $(cat err)"
}

"$penstock" gen dna+rna all.txt size=0.125GiB --seed 3 >/dev/null
[ "$(stat -c %s all.txt)" = 136332707 ] || fail "size of the example's file"
[ "$(wc -l <all.txt)" = 130946 ] || fail "lines of the example's file"
head -65473 all.txt | tail -1 | grep -qx '[ATCG]\{64\},design_id_65473' ||
	fail "last line of the first half"
tail -1 all.txt | grep -qx '[AUCG]\{64\},design_id_130946' ||
	fail "last line of the second half"
head -2 all.txt | grep -qx '[ATCG]\{1024\},design_id_2' || fail "second line"
rm all.txt

for what in "dna a.fa" "protein a.fa --lengths realistic" "rna a.txt" \
	"dna a.fa length=3M"; do
	# shellcheck disable=SC2086 # words
	"$penstock" gen $what size=5MB threads=1 seed=9 >/dev/null
	name=$(ls a.*)
	mv "$name" one
	# shellcheck disable=SC2086
	"$penstock" gen $what size=5MB threads=3 --seed 9 >/dev/null
	cmp one "$name" || fail "$what: other bytes with other threads"
	# shellcheck disable=SC2086
	"$penstock" gen $what size=5MB seed=8 --force >/dev/null
	! cmp -s one "$name" || fail "$what: same bytes with another seed"
	rm -f one a.*
done

expect 2 "no PATH given" gen dna
expect 2 "from random letters" gen dna x.fq
expect 2 "omit .gz" gen dna x.fa.gz
expect 2 "size= does not apply" gen x.npy size=1MB
expect 2 "genes= does not apply" gen dna x.fa genes=5
[ -z "$(ls)" ] || [ "$(ls)" = "$(printf 'err\nout')" ] || fail "left: $(ls)"

"$penstock" gen protein p.fa size=2MB lengths=realistic >/dev/null
n=$(grep -c '>' p.fa)
"$penstock" load p.fa epochs=1 batch_size=64 format.fields=all \
	format.rc=none >out || fail "load p.fa"
printf 'design_id_1\t0\t10\nnowhere\t0\t10\n' >b.bed
expect 3 "nowhere" load p.fa format.bed=b.bed epochs=1
printf '>a\nAC\001GT\n' >bad.fa
expect 3 "line 2: byte 0x01" load bad.fa epochs=1
gzip -c p.fa >g.fa.gz
expect 3 "with bgzip" load g.fa.gz format.gzip_limit=1MB epochs=1
# a column that is a label except on one line is reported
printf 'sequence,label\nACGT, 1\nAC,2\n' >l.seq
"$penstock" inspect l.seq >out
grep -q "'label' in column 2.*header=true" out || fail "$(cat out)"
"$penstock" load l.seq format.header=true fields=label epochs=1 >/dev/null ||
	fail "labels after blanks"
expect 3 "line 1, column 2: 'label' is not a number" load l.seq \
	format.column=label epochs=1
expect 3 "line 1, column 2: 'label' is not a number" load l.seq \
	fields=label epochs=1

# records too short for a window are counted
printf '>a\nACGT\n>b\nAC\n>c\nACGTA\n' >w.fa
for cmd in load inspect verify; do
	"$penstock" $cmd w.fa format.window=4 format.last=back >out 2>&1 ||
		fail "$cmd w.fa"
	grep -q "note: w.fa: 1 of 3 records are shorter than format.window=4" \
		out || fail "$cmd: $(cat out)"
done
"$penstock" load w.fa format.window=4 format.last=back --json 2>/dev/null |
	grep -q '"warning": "1 of 3 records' || fail "no warning in load --json"

skip() {
	echo "skipped: $*"
	exit 77
}
"$python" -c 'import pysam' 2>err || skip "python3-pysam is not installed"
"$python" - <<'END' || fail "pysam differs"
import pysam
f = pysam.FastaFile('p.fa')
assert all(set(f.fetch(n)) <= set('ACDEFGHIKLMNPQRSTVWY') for n in
           f.references[:50])
END
for tool in samtools bgzip; do
	command -v $tool >/dev/null || skip "$tool is not installed"
done
samtools faidx p.fa
[ "$(wc -l <p.fa.fai)" = "$n" ] || fail "samtools counts others"
bgzip -c p.fa >p.fa.gz
samtools faidx p.fa.gz
for f in p.fa p.fa.gz; do
	"$penstock" inspect $f format.fai=always --json >out
	grep -q "\"samples\": $n\b" out || fail "samples of $f"
done

# a file truncated after any of its blocks lacks the last, empty one
printf '@r%d\nACGT\n+\nIIII\n' 1 2 3 >r.fq
samtools import -0 r.fq -o r.bam
samtools fastq -0 r.fq.gz r.bam 2>/dev/null
head -c -28 r.fq.gz >cut.fq.gz
head -c -28 p.fa.gz >cut.fa.gz
# start of the second block: FILE.gzi has a count, then pairs
second=$(od -A n -t u8 -j 8 -N 8 p.fa.gz.gzi)
head -c $((second)) p.fa.gz >block.fa.gz
for f in p.fa.gz r.fq.gz; do
	"$penstock" verify $f >out || fail "verify $f: $(cat out)"
	"$penstock" load $f >out 2>err || fail "load $f"
	[ ! -s err ] || fail "load $f: $(cat err)"
done
for f in cut.fq.gz cut.fa.gz block.fa.gz; do
	code=0
	"$penstock" verify $f >out || code=$?
	[ $code = 3 ] || fail "verify $f: exit $code"
	grep -q "^bad: $f: the bgzip end-of-file block is missing" out ||
		fail "verify $f: $(cat out)"
	expect 0 "warning: $f: the bgzip end-of-file block" load $f
	expect 0 "warning: $f: the bgzip end-of-file block" vocab $f -o v.txt k=2
	"$penstock" inspect $f | grep -q "note: damaged: $f: the bgzip end-of" ||
		fail "inspect $f"
done
