# A thin front: CMake builds (see CMakePresets.json), ctest tests.
export JOBS ?= 2
PREFIX ?= /usr/local
WORK ?=
BENCH_ARGS ?=

# Tests wait a lot: for disks, for processes to start, for one another.
CTEST = ctest --output-on-failure --no-tests=error \
	-j$(shell echo $$((2 * $(JOBS))))

MAKEFLAGS += --no-print-directory
.NOTPARALLEL:
.PHONY: all setup build demo test check abi format bench python install clean

all: build

setup:
	@scripts/setup build

release = scripts/build release all -DBUILD_TESTING=OFF

build: setup
	@$(release)

demo: build
	@scripts/demo

# Everything: the build that users have, then both sanitizers.
test:
	@scripts/setup test
	@scripts/test

# Only the checks of the tree itself: layers, symbols, words, sizes, format; and
# clang-tidy, on what differs from origin/main.
check:
	@scripts/setup test check
	@scripts/build dev
	@$(CTEST) --test-dir build/dev -R '^check_'
	@scripts/tidy

# Writes tests/abi.xml anew, if the SONAME allows it; check_abi holds it.
abi:
	@scripts/setup test
	@scripts/build dev penstock
	@tests/check/abi.sh --renew

# clang-format 14 in place; check_format holds the result.
format:
	@find include src python examples tests bench -name '*.[ch]' -type f 2>/dev/null | \
		xargs clang-format -i

# make bench WORK=rows_1k_b256; without WORK all of them. BENCH_ARGS=--against
# compares with the figures that are kept and fails when one is worse;
# BENCH_ARGS=--keep keeps what was measured, and writes the tables of docs/.
bench:
	@scripts/setup bench
	@$(release)
	@/usr/bin/python3 bench/run.py --build build/release $(BENCH_ARGS) $(WORK)

# The Python module: PYTHONPATH=build/python python3 -c 'import penstock'
python:
	@scripts/setup python
	@$(release)
	@ln -sfn release/python build/python

install: build
	@cmake --install build/release --prefix $(PREFIX)

clean:
	rm -rf build demo
