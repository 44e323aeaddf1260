#!/bin/bash
# `make demo` ends with a page, the path of the command, and commands to try
# next, which work as printed.
set -euo pipefail
penstock=${PENSTOCK:?the command}
source=${SOURCE:-$(cd "$(dirname "$0")/../.." && pwd)}
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
export XDG_CACHE_HOME=$dir/cache

fail() {
	echo "failed: $*" >&2
	cat "$dir/out" >&2
	exit 1
}

"$source/scripts/demo" "$dir/demo" >"$dir/out" 2>&1 || fail "demo"
grep -q '"schema"' "$dir/demo/result.json" || fail "result.json"
page=$(sed -n 's/^Report:  *\(.*\) (.*/\1/p' "$dir/out")
grep -q '<svg' "$page" || fail "the page '$page'"
[ "$(sed -n 's/^Command:  *//p' "$dir/out")" = "$(realpath "$penstock")" ] ||
	fail "the path of the command"
[ ! -e "$dir/demo/data" ] || fail "the data is left"

mkdir "$dir/bin"
ln -s "$(realpath "$penstock")" "$dir/bin/penstock"
export PATH=$dir/bin:$PATH
cd "$dir"
penstock gen DATA files=20 shape=8 >/dev/null
n=0
while IFS= read -r line; do
	# the description follows three blanks
	command=${line%%   *}
	# shellcheck disable=SC2086 # words
	timeout 600 $command >ran 2>&1 </dev/null ||
		fail "$command: exit $?: $(cat ran)"
	n=$((n + 1))
done < <(sed -n '/^Next steps/,$ s/^  \(penstock .*\)/\1/p' "$dir/out")
[ $n -ge 4 ] || fail "$n commands to try"
echo "demo: ok"
