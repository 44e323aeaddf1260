#!/bin/bash
# CMake configures with every optional library absent, and with an MPI that has
# its compiler wrapper but no headers (openmpi-bin without libopenmpi-dev), and
# says what is left out.
set -euo pipefail
source=${SOURCE:-$(cd "$(dirname "$0")/../.." && pwd)}
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT

fail() {
	echo "failed: $*" >&2
	cat "$dir/log" >&2
	exit 1
}

# only what is needed is to be found
mkdir "$dir/pc" "$dir/bin"
for name in libdeflate yaml-0.1; do
	ln -s "$(pkg-config --variable=pcfiledir $name)/$name.pc" "$dir/pc"
done
# answers as Open MPI's does, with folders that are not there
cat >"$dir/bin/mpicc" <<-'SH'
	#!/bin/sh
	case $1 in
	-showme:compile) echo -I/nonexistent/include -pthread ;;
	-showme:incdirs) echo /nonexistent/include ;;
	-showme:link) echo -pthread -L/nonexistent/lib -lmpi ;;
	-showme:libdirs) echo /nonexistent/lib ;;
	-showme:libs) echo mpi ;;
	*) exit 1 ;;
	esac
SH
chmod +x "$dir/bin/mpicc"
PKG_CONFIG_LIBDIR=$dir/pc PKG_CONFIG_PATH='' cmake \
	-S "$source" -B "$dir/build" -DBUILD_TESTING=OFF \
	-DMPI_C_COMPILER="$dir/bin/mpicc" >"$dir/log" 2>&1 ||
	fail "CMake stops"
for what in "store 'uring'" "format 'jpeg'" "format 'png'" "MPI module"; do
	grep -q "^-- penstock: no $what" "$dir/log" || fail "no word of $what"
done
echo "configure: ok"
