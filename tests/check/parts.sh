#!/bin/bash
# Every optional part is in this build, and this machine runs it. Other tests
# pass over the formats, codecs and stores that are missing; here each missing
# part is a skip, so that none goes unnoticed.
set -u
build=${BUILD:?the build directory}
penstock=${PENSTOCK:?the command}
skipped=

absent() {
	echo "skipped: $*"
	skipped=yes
}

cat "$build"/gen/*_absent.h >/dev/null || exit 1
while IFS='(,) ' read -r _ name library; do
	absent "built without $name: $library not found"
done < <(cat "$build"/gen/*_absent.h)
for module in openmpi mpich ucx; do
	[ -e "$build/src/comm/penstock-$module.so" ] ||
		absent "built without $module"
done
[ -e "$build/python/penstock/_penstock.abi3.so" ] ||
	absent "built without the Python module"
"$penstock" doctor --json | tr -d '\n' |
	grep -qE '"io_uring", *"verdict": *"ok"' ||
	absent "io_uring does not work here"
[ -z "$skipped" ] || exit 77
echo "all parts are there"
