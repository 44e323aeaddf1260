#!/bin/bash
# .ci/run and scripts/fresh where a fresh Debian cannot be created, for example
# without root: the tests run on this machine, and the last lines say why.
set -euo pipefail
source=${SOURCE:-$(cd "$(dirname "$0")/../.." && pwd)}
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
mkdir "$dir/.ci" "$dir/scripts"
cp "$source/.ci/run" "$dir/.ci"
cp "$source/scripts/fresh" "$dir/scripts"
printf 'test:\n\t@./tests\n' >"$dir/Makefile"
as=()
if [ "$(id -u)" = 0 ]; then
	chown -R 65534 "$dir"
	as=(setpriv --reuid 65534 --clear-groups)
fi
cd "$dir"

fail() {
	echo "failed: $*" >&2
	cat out >&2
	exit 1
}

# runs CODE COMMAND...: expects the exit code; the output is in out
runs() {
	local want=$1 code=0
	shift
	"${as[@]}" "$@" >out 2>&1 </dev/null || code=$?
	[ $code = "$want" ] || fail "$*: exit $code, not $want"
}

runs 77 scripts/fresh trixie demo
grep -q 'debootstrap and chroot need root' out || fail "no reason"
runs 2 scripts/fresh bookworm nothing
grep -q "unknown step 'nothing'; the steps are demo test user plain mpi" out ||
	fail "steps"
for code in 0 2; do # make exits with 2 if a command failed
	printf '#!/bin/sh\necho 4 passed, %s failed, 0 skipped\nexit %s\n' \
		$code $code >tests
	chmod 755 tests
	runs $code .ci/run
	tail -n 4 out | grep -qx "4 passed, $code failed, 0 skipped" ||
		fail "the counts are not near the end"
	tail -n 2 out | grep -q 'Not a fresh Debian.*need root' ||
		fail "the last lines do not say that it ran in place"
done
echo "ci: ok"
