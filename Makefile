# A thin front end: CMake builds (see CMakePresets.json), ctest runs the tests.
export JOBS ?= 2
PREFIX ?= /usr/local
WORK ?=
BENCH_ARGS ?=
HARNESS ?=
TIME ?= 60

# Twice as many as cores: tests mostly wait, for disks and for processes.
CTEST = ctest --output-on-failure --no-tests=error \
	-j$(shell echo $$((2 * $(JOBS))))

MAKEFLAGS += --no-print-directory
.NOTPARALLEL:
.PHONY: all setup build demo test check fuzz fuzz-coverage mutants abi format \
	bench python docs dist deb install clean

all: build

setup:
	@scripts/setup build

release = scripts/build release all -DBUILD_TESTING=OFF

build: setup
	@$(release)

demo: build
	@scripts/demo

# All tests: the build that users get, then both sanitizers.
test:
	@scripts/setup test
	@scripts/test

# Only the checks of the source tree: layers, symbols, words, sizes, format; and
# clang-tidy, on files that differ from origin/main.
check:
	@scripts/setup test check
	@scripts/build dev
	@$(CTEST) --test-dir build/dev -R '^check_'
	@scripts/tidy

# Do the tests notice when the code is wrong? Changes N places of the files in
# DIR, one at a time, and lists those that no test noticed; SEED draws others.
N ?= 60
DIR ?= src/base
SEED ?= 1
mutants:
	@scripts/setup test
	@scripts/build dev
	@scripts/build asan tests_unrepeated
	@/usr/bin/python3 -B tests/mutants.py -n $(N) --seed $(SEED) $(DIR)

# Regenerates tests/abi.xml, if the SONAME allows it; check_abi compares with it.
abi:
	@scripts/setup test
	@scripts/build dev penstock
	@tests/check/abi.sh --renew

# Runs clang-format 14 in place; check_format verifies the result.
format:
	@find include src python examples tests bench -name '*.[ch]' -type f 2>/dev/null | \
		xargs clang-format -i

# make fuzz [HARNESS=format_hdf5] [TIME=60]: fuzzes all parsers, or one, for this
# many seconds each; continues where the last run ended (build/corpus).
fuzz:
	@scripts/setup test fuzz
	@scripts/fuzz run --time $(TIME) $(HARNESS)

# The share of each parser's lines that the corpus in the tree reaches.
fuzz-coverage:
	@scripts/setup test
	@scripts/fuzz coverage $(HARNESS)

# make bench WORK=rows_1k_b256; without WORK it runs all. BENCH_ARGS=--against
# compares with the stored figures and fails when one is worse;
# BENCH_ARGS=--keep stores the new figures and updates the tables in docs/.
bench:
	@scripts/setup bench
	@$(release)
	@/usr/bin/python3 bench/run.py --build build/release $(BENCH_ARGS) $(WORK)

# Builds the Python module: PYTHONPATH=build/python python3 -c 'import penstock'
python:
	@scripts/setup python
	@$(release)
	@ln -sfn release/python build/python

# Static pages in build/docs: tutorials, guides, and the generated reference.
docs:
	@scripts/setup docs
	@$(release)
	@scripts/docs html

# The source tarball, in build/dist; SIGN=KEY signs it.
dist:
	@scripts/package dist

# Debian packages, in build/deb.
deb:
	@scripts/setup deb
	@scripts/package deb

install: build
	@cmake --install build/release --prefix $(PREFIX)

clean:
	rm -rf build demo
