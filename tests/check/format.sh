#!/bin/bash
# Lines of at most 80 columns (a tab is 8) without blanks at the end, in all C
# files; and the layout clang-format gives, where it is installed.
set -u
export LC_ALL=C.UTF-8
cd "${SOURCE:-$(dirname "$0")/../..}" || exit 1
fail=0
mapfile -t files < <(find include src python examples tests bench -name '*.[ch]' \
	-type f 2>/dev/null | sort)
if [ "${#files[@]}" = 0 ]; then
	echo "no files" >&2
	exit 1
fi

# ten times either eight characters or up to a tab, and one more
if grep -nHE $'^([^\t]{0,7}\t|[^\t]{8}){10}.' "${files[@]}" >&2; then
	echo "lines longer than 80 columns" >&2
	fail=1
fi
if grep -nHE '[[:blank:]]$' "${files[@]}" >&2; then
	echo "blanks at the end of a line" >&2
	fail=1
fi
if [ -n "$(tail -qc1 "${files[@]}")" ]; then
	for f in "${files[@]}"; do
		[ -z "$(tail -c1 "$f")" ] || echo "$f: no newline at the end" >&2
	done
	fail=1
fi
[ $fail = 0 ] || exit 1

echo "${#files[@]} files looked at"
if ! command -v clang-format >/dev/null; then
	echo "skipped: clang-format is not installed"
	exit 77
fi
# Other versions lay out differently: only the one the tree is kept with
# judges. `make format` does what it asks for.
version=$(clang-format --version | sed 's/.*version \([0-9]*\).*/\1/')
if [ "$version" != 14 ]; then
	echo "skipped: clang-format is not version 14"
	exit 77
fi
clang-format --dry-run -Werror "${files[@]}" >&2
