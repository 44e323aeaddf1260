#!/bin/bash
# What `cmake --install` puts down can be imported, and finds its library.
set -eu
if [ -n "${SANITIZE:-}" ] || [ ! -e "$BUILD/python/penstock" ]; then
	echo "skipped: no Python module here"
	exit 77
fi
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT

cmake --install "$BUILD" --prefix "$dir/p" >"$dir/log" || {
	cat "$dir/log"
	exit 1
}
"$PENSTOCK" gen "$dir/x.npy" samples=100 shape=4 >/dev/null
where=$(dirname "$(find "$dir/p" -name '_penstock*.so')")
[ -e "$where/py.typed" ] && [ -e "$where/__init__.pyi" ]
cd "$dir"
python=/usr/bin/python3
PYTHONPATH=$(dirname "$where") "$python" -B -c '
import penstock
assert penstock.__file__.startswith("'"$dir"'"), penstock.__file__
assert sum(b.nsamples for b in penstock.Loader("x.npy", 7, True)) == 100
'
# with a prefix of /usr it goes where Debian looks
DESTDIR=$dir/d cmake --install "$BUILD" --prefix /usr >"$dir/log"
[ -e "$dir/d/usr/lib/python3/dist-packages/penstock/__init__.py" ]
echo installed
