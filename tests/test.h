/*
 * The entire test framework: checks that print where and what, and a count.
 * Works from any thread (a failed check does not jump). A test program ends
 * with `return test_end();`; exit code 77 means skipped.
 */
#ifndef TEST_H
#define TEST_H

#include <inttypes.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static atomic_uint test_checks, test_failures;

static inline bool test_check(bool ok, const char *file, int line,
			      const char *what)
{
	atomic_fetch_add(&test_checks, 1);
	if (!ok && atomic_fetch_add(&test_failures, 1) < 20)
		fprintf(stderr, "%s:%d: failed: %s\n", file, line, what);
	return ok;
}

/* The text is made for failures only: many checks are in the innermost loop. */
static inline bool test_eq(long long a, long long b, const char *file, int line,
			   const char *what)
{
	char buf[256];

	if (a == b)
		return test_check(true, file, line, what);
	snprintf(buf, sizeof(buf), "%.160s (%lld, %lld)", what, a, b);
	return test_check(false, file, line, buf);
}

static inline bool test_str(const char *a, const char *b, const char *file,
			    int line)
{
	char buf[512];

	if (strcmp(a, b) == 0)
		return test_check(true, file, line, a);
	snprintf(buf, sizeof(buf), "\"%.200s\" == \"%.200s\"", a, b);
	return test_check(false, file, line, buf);
}

#define CHECK(x) test_check((x), __FILE__, __LINE__, #x)
#define CHECK_EQ(a, b)                                                         \
	test_eq((long long)(a), (long long)(b), __FILE__, __LINE__,            \
		#a " == " #b)
#define CHECK_STR(a, b) test_str((a), (b), __FILE__, __LINE__)

static inline int test_end(void)
{
	unsigned bad = atomic_load(&test_failures);

	printf("%u checks, %u failed\n", atomic_load(&test_checks), bad);
	return bad || !atomic_load(&test_checks) ? 1 : 0;
}

/*
 * A sanitizer slows everything down several times. Where a plain build tries
 * very many places, it tries every n-th.
 */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define TEST_EVERY(n) (n)
#else
#define TEST_EVERY(n) 1
#endif

/* The next place of n to damage: both ends are covered completely. */
static inline size_t test_next_place(size_t i, size_t n)
{
	return i + (i < 64 || n - i <= 64 ? 1 : TEST_EVERY(3));
}

/* The Python with third-party modules, if there is one. */
#define PYTHON "/usr/bin/python3"

/* "numpy, h5py": are they installed? Searched for, not imported: some take
 * seconds to import, and users import them again. */
static inline bool test_python_has(const char *modules)
{
	char cmd[512];

	snprintf(cmd, sizeof(cmd),
		 PYTHON " -c 'import sys; from importlib.util import find_spec"
			"\nsys.exit(not all(map(find_spec, \"%s\".split(\", "
			"\"))))' 2>/dev/null",
		 modules);
	return system(cmd) == 0;
}

#define TEST_SKIP(why)                                                         \
	do {                                                                   \
		printf("skipped: %s\n", why);                                  \
		exit(77);                                                      \
	} while (0)

#endif
