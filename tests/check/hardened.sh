#!/bin/bash
# What is built resists attacks as far as the compiler can help: position
# independent, relocations read-only, stack protected and not executable, calls
# of libc that know the size of their target, indirect jumps only to marked
# places; and what is installed has no run path. Reads the files themselves.
set -u
if [ -n "${SANITIZE:-}" ]; then
	echo "skipped: sanitizers replace these checks"
	exit 77
fi
build=${BUILD:?the build directory}
fail=0

bad() {
	echo "$1: $2" >&2
	fail=1
}

count=0
for f in "$build/src/cli/penstock" "$build/libpenstock.so" \
	"$build/examples/doc2vec" "$build"/python/penstock/*.so \
	"$build"/src/comm/*.so; do
	[ -e "$f" ] || continue
	count=$((count + 1))
	head=$(readelf -hlW "$f")
	dynamic=$(readelf -dW "$f")
	symbols=$(readelf --dyn-syms -W "$f")
	grep -q 'Type: *DYN' <<<"$head" || bad "$f" "not position independent"
	grep -q GNU_RELRO <<<"$head" || bad "$f" "relocations stay writable"
	grep -q 'BIND_NOW\|FLAGS_1.*NOW' <<<"$dynamic" ||
		bad "$f" "symbols are bound later, in writable memory"
	grep -qE 'GNU_STACK.* RW ' <<<"$head" || bad "$f" "an executable stack"
	grep -q TEXTREL <<<"$dynamic" && bad "$f" "relocations in the code"
	grep -q '__stack_chk_fail' <<<"$symbols" || bad "$f" "no stack protector"
	grep -q '__[a-z]*_chk@' <<<"$symbols" || bad "$f" "no _FORTIFY_SOURCE"
	case $f in
	*/penstock | */doc2vec)
		grep -q 'FLAGS_1.*PIE' <<<"$dynamic" || bad "$f" "no PIE" ;;
	esac
	if grep -q 'X86-64' <<<"$head"; then
		# the note of CET is missing where libc's start files lack it
		marks=$(objdump -d -j .text "$f" | grep -c endbr64)
		[ "$marks" -ge 20 ] || bad "$f" "no CET: $marks marked places"
	fi
	grep -qE 'R(UN)?PATH' <<<"$dynamic" &&
		bad "$f" "a run path: $(grep -oE '\[.*\]' <<<"$(grep PATH <<<"$dynamic")")"
done
[ $count -ge 2 ] || bad "$build" "only $count files"

# the level of _FORTIFY_SOURCE is not in the files: 3 from GCC 12 on
commands=$build/compile_commands.json
level=2
echo '#include <string.h>
#if __USE_FORTIFY_LEVEL < 3
#error
#endif' | cc -O2 -U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=3 -Werror -fsyntax-only \
	-xc - 2>/dev/null && level=3
grep -q -e "-D_FORTIFY_SOURCE=$level" "$commands" ||
	bad "$commands" "_FORTIFY_SOURCE is not $level"
echo "$count files are hardened"
exit $fail
