#!/bin/bash
# No file of the tree names a path of somebody's machine: what lies there lies
# nowhere else, and a test that looks for it passes or fails for no reason.
# Nor does any name a host that Debian's packages come from: that is for apt's
# configuration to say.
set -u
cd "${SOURCE:-$(dirname "$0")/../..}" || exit 1
fail=0

# complain WHY REGEX: of every line of the tree that matches
complain() {
	local hits
	hits=$(find . \( -path ./.git -o -path ./build -o -path ./demo -o \
		-path ./runs -o -name __pycache__ \) -prune -o \
		-type f -print0 | xargs -0 grep -InE "$2")
	[ -n "$hits" ] || return 0
	echo "$1:" >&2
	echo "$hits" >&2
	fail=1
}

# Folders spelled in pieces, so that this file does not find itself; not after
# a letter or dot (a URL, a folder of that name below another one).
folders='wor''k|hom''e|roo''t|User''s'
complain "a path of one machine" "(^|[^A-Za-z0-9_.~}/*-])/($folders)/"
# The format of debian/copyright is named by an address of its own.
complain "a host of packages" '\.debia''n\.(org|net)(/[^d]|$|[^/])'
[ $fail = 0 ] && echo "no path of one machine"
exit $fail
