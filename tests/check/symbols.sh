#!/bin/bash
# The shared library exports exactly the functions of penstock.h, and keeps no
# writable data of its own. Nothing that is built looks for libraries in the
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
exported=$(nm -D --defined-only "$lib" | awk '{ print $NF }' | sort -u)

strays=$(comm -13 <(echo "$declared") <(echo "$exported"))
absent=$(comm -23 <(echo "$declared") <(echo "$exported"))
if [ -n "$strays" ]; then
	echo "exported, but not in penstock.h: $strays" >&2
	fail=1
fi
if [ -n "$absent" ]; then
	echo "in penstock.h, but not exported: $absent" >&2
	fail=1
fi

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
case "$soname" in
libpenstock.so.[0-9]*) ;;
*)
	echo "the soname '$soname' has no version" >&2
	fail=1
	;;
esac

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
