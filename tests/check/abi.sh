#!/bin/bash
# The binary interface of the shared library is the one that tests/abi.xml
# describes.
#
#   abi.sh           compares; any difference is a failure
#   abi.sh --renew   writes the description anew (`make abi`)
#
# Renewing needs a new SONAME, the number in src/penstock.map, unless programs
# that were linked before cannot tell the difference: functions were added, or
# members at the end of structs that are passed with their size.
set -u
cd "${SOURCE:-$(dirname "$0")/../..}" || exit 1
lib=${BUILD:-build/dev}/libpenstock.so
kept=tests/abi.xml
if ! command -v abidiff >/dev/null; then
	echo "skipped: abidiff (abigail-tools) is not installed"
	exit 77
fi
if [ ! -e "$lib" ]; then
	echo "$lib is not there" >&2
	exit 1
fi
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT

# What is in penstock.h, without what differs between machines.
abidw --headers-dir include --drop-private-types --drop-undefined-syms \
	--exported-interfaces-only --type-id-style hash --no-show-locs \
	--no-parameter-names --no-corpus-path --no-comp-dir-path \
	--no-architecture --no-elf-needed "$lib" |
	sed "s:path='$PWD/:path=':" >"$dir/now.xml"
if ! grep -q '<function-decl' "$dir/now.xml"; then
	echo "$lib has no debug information: build it with -g" >&2
	exit 1
fi

differs() {
	! abidiff --drop-private-types "$@" "$kept" "$dir/now.xml" >"$dir/log" 2>&1
}

soname() { sed -n "s/.* soname='\([^']*\)'.*/\1/p" "$1"; }

# These are passed with their size, and may grow.
for s in dataset_info loader_info option shard_stats stats; do
	printf '[suppress_type]\ntype_kind = struct\nname = pen_%s\n' $s
	printf 'has_data_member_inserted_at = end\n'
done >"$dir/may_grow"

if [ "${1:-}" = --renew ]; then
	if [ -e $kept ] && [ "$(soname $kept)" = "$(soname "$dir/now.xml")" ] &&
		differs --no-added-syms --suppressions "$dir/may_grow"; then
		cat "$dir/log" >&2
		echo "programs that were linked before would break: raise the" \
			"number of PENSTOCK_ in src/penstock.map first" >&2
		exit 1
	fi
	cp "$dir/now.xml" $kept
	echo "$kept: $(soname $kept)"
	exit 0
fi
if differs; then
	cat "$dir/log" >&2
	echo "the binary interface is not that of $kept; where that is meant," \
		"see CONTRIBUTING.md (make abi)" >&2
	exit 1
fi
echo "$(soname $kept), $(grep -c '<function-decl' $kept) functions"
