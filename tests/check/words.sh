#!/bin/bash
# Words that must not be in the code: unsafe calls, memory outside
# src/base/mem.c, a library that prints or exits, tests that sleep, and notes
# about unfinished work. Comments and strings are looked at for the last only.
set -u
cd "${SOURCE:-$(dirname "$0")/../..}" || exit 1
fail=0

complain() {
	echo "$1:" >&2
	echo "$2" >&2
	fail=1
}

# Prints "file:line:text" of the files named on stdin, without what stands in
# comments and strings.
code() {
	xargs -r perl -0777 -ne '
		s{("(?:\\.|[^"\\])*"|\x27(?:\\.|[^\x27\\])*\x27)|/\*.*?\*/|//[^\n]*}
		 {my $n = ($& =~ tr/\n//); ($1 ? "\"\"" : " ") . "\n" x $n}gse;
		my $i = 0;
		print $ARGV, ":", ++$i, ":", $_, "\n" for split /\n/;'
}

# banned WHY REGEX: complains of each line on stdin that calls such a
# function; a member of the same name (ops->free) is something else.
banned() {
	local hits
	hits=$(grep -E "(^|[^A-Za-z0-9_.>])($2)[[:space:]]*\(")
	[ -z "$hits" ] || complain "$1" "$hits"
}

list() { find "$@" -name '*.[ch]' -type f 2>/dev/null | sort; }
# A forked child has to end by itself.
library() { list src | grep -v '^src/cli/\|^src/experiment/process\.c$'; }
all() { list include src python tests bench; }

# These forget how long the target is, or share a buffer, or hide an error.
banned "unsafe" \
	'v?sprintf|st[rp]cpy|strcat|strtok|ato[ifl]|atoll|alloca|gets|tmpnam|mktemp' \
	< <(all | code)
# Tests do run a shell: to ask the other implementation.
banned "the code runs no shell" 'system|popen' < <(list src | code)
banned "memory comes from src/base/mem.c only" \
	'[mc]alloc|realloc|reallocarray|free|strn?dup|v?asprintf|aligned_alloc|posix_memalign|memalign' \
	< <(list src | grep -v '^src/base/mem\.c$' | code)
banned "the library prints nothing and does not exit" \
	'v?[fd]?printf|f?puts|putchar|perror|_?exit|abort|errx?|warnx?' \
	< <(library | code)
banned "a test does not sleep" 'u?sleep|(clock_)?nanosleep' \
	< <(list tests | code)

hits=$(find tests -name '*.sh' -print0 | xargs -0 -r grep -nwE 'sleep +[0-9.]+')
hits+=$(find tests -name '*.py' -print0 | xargs -0 -r grep -nE '\bsleep\(')
[ -z "$hits" ] || complain "a test does not sleep" "$hits"

# Spelled in pieces, so that this file does not find itself.
notes='TO''DO|FIX''ME|XX''X|HA''CK'
hits=$(find include src python tests bench scripts cmake .ci Makefile \
	CMakeLists.txt -type f ! -name '*.pyc' 2>/dev/null | sort |
	xargs grep -InwE "$notes")
[ -z "$hits" ] || complain "unfinished work" "$hits"

count=$(all | wc -l)
echo "$count files looked at"
[ "$count" -gt 0 ] && exit $fail
