#!/bin/bash
# A program of somebody else's is built against what `cmake --install` puts
# down, by pkg-config as C99, C11 and C++, and by CMake; it runs, and a header
# of another version is not taken.
set -euo pipefail
if [ -n "${SANITIZE:-}" ]; then
	echo "skipped: what is installed has no sanitizers"
	exit 77
fi
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
source=${SOURCE:-$(cd "$(dirname "$0")/../.." && pwd)}
consumer=$source/tests/consumer

fail() {
	echo "failed: $*" >&2
	cat "$dir/log" >&2
	exit 1
}

cmake --install "$BUILD" --prefix "$dir/p" >"$dir/log" || fail "install"
"$PENSTOCK" gen "$dir/x.npy" samples=100 shape=4 >"$dir/log"
for f in man3/pen_loader_next.3 man1/dlio_benchmark.1; do
	[ -s "$dir/p/share/man/$f" ] || fail "share/man/$f is not installed"
done
# a build with a sanitizer installs no completion
if [ -e "$dir/p/share/man/man1/penstock.1" ]; then
	for f in bash-completion/completions/penstock \
		zsh/vendor-completions/_penstock \
		fish/vendor_completions.d/penstock.fish; do
		[ -s "$dir/p/share/$f" ] || fail "share/$f is not installed"
	done
fi
pc=$(dirname "$(find "$dir/p" -name penstock.pc)")
export PKG_CONFIG_PATH=$pc LD_LIBRARY_PATH=${pc%/pkgconfig}
expect="100 samples, version $(pkg-config --modversion penstock)"

runs() {
	[ "$("$1" "$dir/x.npy" 2>&1)" = "$expect" ] || fail "$2"
}

read -ra flags < <(pkg-config --cflags --libs penstock)
strict=(-Wall -Wextra -Wpedantic -Wconversion -Werror)
for std in c99 c11; do
	gcc -std=$std "${strict[@]}" -Wshadow -Wstrict-prototypes \
		"$consumer/load.c" "${flags[@]}" -o "$dir/$std" 2>"$dir/log" || fail $std
	runs "$dir/$std" $std
done
g++ -std=c++11 -x c++ "${strict[@]}" -Wshadow "$consumer/load.c" \
	"${flags[@]}" -o "$dir/c++" 2>"$dir/log" || fail "C++"
runs "$dir/c++" "C++"

cmake -S "$consumer" -B "$dir/b" -DCMAKE_PREFIX_PATH="$dir/p" \
	>"$dir/log" 2>&1 && cmake --build "$dir/b" >>"$dir/log" 2>&1 ||
	fail "CMake"
runs "$dir/b/load" "CMake"
sed 's/penstock 0\.1/penstock 99/' "$consumer/CMakeLists.txt" \
	>"$dir/CMakeLists.txt"
if cmake -S "$dir" -B "$dir/b99" -DCMAKE_PREFIX_PATH="$dir/p" \
	>"$dir/log" 2>&1; then
	fail "version 99 was found"
fi
echo "installed: C99, C11, C++ and CMake"
