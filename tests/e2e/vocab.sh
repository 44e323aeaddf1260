#!/bin/sh
# penstock vocab: its output, and that errors are reported before counting and
# leave no files.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
export XDG_CACHE_HOME="$dir/cache"

fail() {
	echo "failed: $*" >&2
	exit 1
}

# exit code, text in the message, arguments
wrong() {
	code=$1 words=$2
	shift 2
	rc=0
	"$PENSTOCK" vocab "$@" > out 2> err || rc=$?
	[ $rc -eq "$code" ] || fail "vocab $*: exit code $rc: $(cat err)"
	[ "$(wc -l < err)" -eq 1 ] || fail "vocab $*: not one line: $(cat err)"
	grep -q "$words" err || fail "vocab $*: $(cat err)"
	rm -f out err
	[ -z "$(ls | grep -v -e '^s\.' -e '^cache$')" ] ||
		fail "vocab $*: left $(ls)"
}

printf 'ACGTAC,one\nacgtNACGU,two\nAC,three\n' > s.txt
printf '>a\nACGT\nAC\n>b\nACGTNACGU\n>c\nAC\n' > s.fa
"$PENSTOCK" vocab s.txt format=lines k=3 specials=unk,pad -o words > out
grep -q '7 words (5 seen)' out || fail "$(cat out)"
grep -q '3 places with letters' out || fail "$(cat out)"
"$PENSTOCK" vocab s.fa k=3 specials=unk,pad -o other > /dev/null
cmp words other || fail "lines and fasta differ"
sed 1d words > bare
printf '<unk>\t0\n<pad>\t0\nACG\t3\nCGT\t2\nCGU\t1\nGTA\t1\nTAC\t1\n' > want
cmp bare want || fail "$(cat words)"
"$PENSTOCK" vocab s.txt format=lines k=3 min_count=2 -o words --json > json
grep -q '"words": 2' json || fail "$(cat json)"
"$PENSTOCK" load s.txt format=lines format.tokens=kmers format.vocab=words \
	--json > json
grep -q '"samples": 3' json || fail "$(cat json)"
# fields= may name fields of the tokeniser
"$PENSTOCK" load s.fa format.tokens=kmers format.k=3 fields=tokens,length \
	--json > json
grep -q '"samples": 3' json || fail "$(cat json)"
rm -f words other bare want json out

wrong 2 'needs input and output' s.txt format=lines
wrong 2 'needs input and output' -o words
wrong 2 'out of range' s.txt format=lines k=13 -o words
wrong 2 'twice' s.txt format=lines alphabet=AA -o words
wrong 2 "'unk' is listed twice" s.txt format=lines specials=unk,pad,unk -o words
wrong 2 'up to 15 letters' s.txt format=lines specials=a_name_of_16_let -o words
wrong 3 'no word' s.txt format=lines alphabet=XZ -o words
wrong 3 'often enough' s.txt format=lines min_count=1k -o words
wrong 4 'no such file' nothing format=lines -o words
wrong 4 'cannot write' s.txt format=lines -o none/words
wrong 2 'not a regular file' s.txt format=lines -o .
wrong 2 "no field 'seq'" s.txt format=lines format.tokens=chars -o words
wrong 2 'is an input file' s.txt format=lines -o s.txt
wrong 2 'is an input file' s.fa s.txt format=lines -o ./s.txt
# a field seq that is not letters, or is hidden
printf 'seq,y\n1.5,2\n2.5,3\n' > s.csv
wrong 2 "no field 'seq'" s.csv format=csv -o words
wrong 2 'not delivered as letters' s.fa format.fields=id fields=id -o words
printf 'A\nACGT\nACGTACGT\n' > s.pad
"$PENSTOCK" vocab s.pad format=lines k=2 -o want > /dev/null
"$PENSTOCK" vocab s.pad format=lines format.pad=left shapes=padded k=2 \
	-o words > /dev/null
cmp words want || fail "padding before was counted"
"$PENSTOCK" vocab s.pad format=lines pack=16 k=2 -o words > /dev/null
cmp words want || fail "packed letters were counted"
echo "vocab: ok"
