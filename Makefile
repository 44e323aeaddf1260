# A thin front: CMake builds (see CMakePresets.json), ctest tests.
JOBS ?= 2
PREFIX ?= /usr/local
WORK ?=
BENCH_ARGS ?=

# ThreadSanitizer of GCC 12 dies where the kernel randomises addresses widely.
NOASLR := $(shell setarch -R true 2>/dev/null && echo setarch -R)
CTEST = ctest --output-on-failure --no-tests=error -j$(JOBS)

MAKEFLAGS += --no-print-directory
.NOTPARALLEL:
.PHONY: all setup build demo test check format bench python install clean

all: build

setup:
	@scripts/setup build

# $(call built,preset[,options]): configures and builds build/<preset>
built = cmake --preset $(1) $(2) >build/$(1).log || \
	{ cat build/$(1).log; exit 1; }; \
	cmake --build --preset $(1) -j$(JOBS)
release = $(call built,release,-DBUILD_TESTING=OFF)

build/.:
	@mkdir -p $@

build: setup | build/.
	@$(release)

demo: build
	@scripts/demo

# Under the address sanitizer these would only do again what others have done.
REPEATED = e2e_(sweep|page|arms|bench|golden|dna|compare|live|old_results|vocab|workloads|simulate|convert|mixing|ddict|ddict_hosts|cache_ddict|wire|mpi|signals|borders|fault)$$|e2e_bench_|python_(docs|training|install|doc2vec)|test_spread

# The tests as users run them, then under the address and undefined-behaviour
# sanitizers, then what has threads under the thread sanitizer.
test: | build/.
	@scripts/setup test
	@$(call built,dev)
	@$(CTEST) --test-dir build/dev
	@$(call built,asan)
	@$(CTEST) --test-dir build/asan -E '$(REPEATED)'
	@$(call built,tsan)
	@$(NOASLR) $(CTEST) --test-dir build/tsan \
		-R 'test_ddict|test_wire|batching|comm|loader|ask|copier|resume|units|pool|index|ring|guard|conform_store|sampler|stress'

# Only the checks of the tree itself: layers, symbols, words, sizes, format.
check: | build/.
	@scripts/setup test
	@$(call built,dev)
	@$(CTEST) --test-dir build/dev -R '^check_'

# clang-format 14 in place; check_format holds the result.
format:
	@find include src python tests bench -name '*.[ch]' -type f 2>/dev/null | \
		xargs clang-format -i

# make bench WORK=rows_1k_b256; without WORK all of them
bench: | build/.
	@scripts/setup bench
	@$(release)
	@/usr/bin/python3 bench/run.py --build build/release $(BENCH_ARGS) $(WORK)

# The Python module: PYTHONPATH=build/python python3 -c 'import penstock'
python: | build/.
	@scripts/setup python
	@$(release)
	@ln -sfn release/python build/python

install: build
	@cmake --install build/release --prefix $(PREFIX)

clean:
	rm -rf build demo
