#!/bin/bash
# The shared library exports exactly the functions of penstock.h, each under the
# version of src/penstock.map, whose number is that of the SONAME; and it keeps
# no writable data of its own. Nothing that is built looks for libraries in the
# current directory.
set -u
cd "${SOURCE:-$(dirname "$0")/../..}" || exit 1
if [ -n "${SANITIZE:-}" ]; then
	echo "skipped: sanitizers add symbols of their own"
	exit 77
fi
BUILD=${BUILD:-build/dev}
lib=$BUILD/libpenstock.so
if [ ! -e "$lib" ]; then
	echo "$lib is not there" >&2
	exit 1
fi
fail=0

# A declaration may span lines: PEN_API ... name(
declared=$(tr '\n\t' '  ' <include/penstock.h | sed 's/PEN_API/\n&/g' |
	sed -n 's/^PEN_API[^(;]*[ *]\(pen_[a-z0-9_]*\)(.*/\1/p' | sort -u)
node=$(sed -n 's/^\(PENSTOCK_[0-9]*\) {$/\1/p' src/penstock.map)
mapped=$(sed -n 's/^\t\(pen_[a-z0-9_]*\);$/\1/p' src/penstock.map | sort)
# name@@VERSION; the version itself is a symbol, too
exported=$(nm -D --defined-only "$lib" | awk '$2 != "A" { print $NF }' |
	sort -u)

# says LIST OTHER WHAT: what is in the first and not in the other
says() {
	local only
	only=$(comm -23 <(echo "$1") <(echo "$2"))
	[ -n "$only" ] || return 0
	echo "$3:" $only >&2
	fail=1
}
says "$declared" "$mapped" "in penstock.h, but not in src/penstock.map"
says "$mapped" "$declared" "in src/penstock.map, but not in penstock.h"
wanted=$(echo "$declared" | sed "s/$/@@$node/")
says "$wanted" "$exported" "in penstock.h, but not exported"
says "$exported" "$wanted" "exported, but not in penstock.h"

# Sections .data and .bss hold what a library without global state has not;
# .data.rel.ro is constant tables. Allowed are the compiler's own, the counters
# with which tests make an allocation fail (base/mem.c), and what a signal
# handler cannot have but for the whole process (base/guard.c), the lock around
# a library that has state for the whole process (format/hdf5_lib.c), and the
# sockets that a forked child closes (ddict/wire_tcp.c).
compiler='__cpu_model|__cpu_features2|completed\.[0-9]+|__dso_handle|__TMC_END__|_DYNAMIC|__gcov.*'
allowed="^($compiler|fail_at|fail_on|counted|once|previous|libhdf5_lock|open_wires)\$"
globals=$(objdump -t "$lib" |
	awk '/ O \.(data|bss)[ \t]/ { print $NF }' |
	sed 's/\.lto_priv\.[0-9]*$//' | grep -vE "$allowed" | sort -u)
if [ -n "$globals" ]; then
	echo "writable global data: $globals" >&2
	fail=1
fi

soname=$(objdump -p "$lib" | awk '/SONAME/ { print $2 }')
if [ "$soname" != "libpenstock.so.${node#PENSTOCK_}" ]; then
	echo "the soname '$soname' has not the number of $node" >&2
	fail=1
fi

# An empty element of a run path is the current directory.
for f in "$lib" "$BUILD/src/cli/penstock" "$BUILD/examples/doc2vec" \
	"$BUILD"/python/penstock/*.so "$BUILD"/src/comm/*.so; do
	[ -e "$f" ] || continue
	path=$(objdump -p "$f" | awk '/R(UN)?PATH/ { print $2 }')
	case ":$path:" in
	::) ;;
	*::* | *:.:* | *:./*)
		echo "$f: the run path '$path' names the current directory" >&2
		fail=1
		;;
	esac
done

echo "$(echo "$declared" | wc -l) functions declared," \
	"$(echo "$exported" | wc -l) symbols exported"
[ -n "$declared" ] && exit $fail
