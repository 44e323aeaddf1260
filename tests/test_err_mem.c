/* Errors keep their text within bounds; memory checks sizes and can fail. */
#include "test.h"

#include <errno.h>

#include "base/err.h"
#include "base/mem.h"

static void err_basic(void)
{
	struct pen_err e = { 0 };

	CHECK_EQ(pen__fail(&e, P_DAMAGED, "a/b.npy", "magic is %d, not %d", 1,
			   2),
		 PEN_EDATA);
	CHECK_EQ(e.code, PEN_EDATA);
	CHECK_EQ(e.sys, 0);
	CHECK_STR(e.where, "a/b.npy");
	CHECK_STR(e.msg, "magic is 1, not 2");
	CHECK_EQ(pen__fail(NULL, P_BAD_VALUE, "x", "y"), PEN_EINVAL);
	CHECK_EQ(pen__fail(&e, P_BAD_VALUE, NULL, "y"), PEN_EINVAL);
	CHECK_STR(e.where, "");
	pen__err_where(&e, "found later");
	CHECK_STR(e.where, "found later");
	pen__err_where(&e, "too late");
	CHECK_STR(e.where, "found later");
	pen__err_where(NULL, "nobody");
}

static void err_sys(void)
{
	struct pen_err e = { 0 };

	CHECK_EQ(pen__fail_sys(&e, EACCES, "/f", "cannot open"), PEN_EIO);
	CHECK_EQ(e.sys, EACCES);
	CHECK_STR(e.msg, "cannot open: Permission denied");
	CHECK_EQ(pen__fail_sys(&e, ENOENT, "/f", "cannot open"), PEN_ENOTFOUND);
	CHECK_EQ(pen__fail_sys(&e, ENOMEM, "/f", "cannot map"), PEN_ENOMEM);
	CHECK_EQ(pen__fail_sys(NULL, ENOENT, "/f", "x"), PEN_ENOTFOUND);
	CHECK_EQ(pen__fail_nomem(&e, "/f", 77), PEN_ENOMEM);
	CHECK_STR(e.msg, "out of memory: cannot allocate 77 B");
}

/* Code and number agree, and no error is P000. */
static void err_numbers(void)
{
	static const int codes[] = { PEN_ENOMEM,    PEN_EINVAL, PEN_EIO,
				     PEN_EDATA,	    PEN_ESTALE, PEN_ENOTSUP,
				     PEN_ENOTFOUND, PEN_ECLOSED };
	struct pen_err e = { 0 }, cause = { .code = PEN_EIO };

	pen__fail_sys(&e, ENOTDIR, "/f", "cannot create");
	CHECK_EQ(e.number, P_IO);
	CHECK_EQ(pen__err_code(&e, PEN_ENOTFOUND), PEN_ENOTFOUND);
	CHECK_EQ(e.code, PEN_ENOTFOUND);
	CHECK_EQ(e.number, P_NOT_FOUND);
	CHECK_EQ(pen__err_code(NULL, PEN_EIO), PEN_EIO);
	pen__fail(&e, P_CHECKSUM, "f", "differs");
	pen__err_code(&e, PEN_EDATA); /* nothing is lost */
	CHECK_EQ(e.number, P_CHECKSUM);
	for (size_t i = 0; i < sizeof(codes) / sizeof(*codes); i++) {
		CHECK_EQ(pen__fail(&e, codes[i], "f", "x"), codes[i]);
		CHECK(e.number > 0);
		cause.code = codes[i];
		cause.number = 0;
		CHECK_EQ(pen__fail_as(&e, &cause, "f", "x"), codes[i]);
		CHECK(e.number > 0);
		cause.number = 123456789; /* from another process */
		CHECK_EQ(pen__fail_as(&e, &cause, "f", "x"), codes[i]);
		CHECK(e.number > 0 && e.number < 1000);
	}
}

static void err_long(void)
{
	struct pen_err e = { 0 };
	char text[1000];

	memset(text, 'x', sizeof(text));
	memcpy(text + sizeof(text) - 10, "/last.npy", 10);
	pen__fail(&e, P_IO, text, "%s", text);
	CHECK_EQ(strlen(e.where), sizeof(e.where) - 1);
	CHECK(!strncmp(e.where, "...xxx", 6));
	CHECK_STR(e.where + strlen(e.where) - 9, "/last.npy");
	CHECK_EQ(strlen(e.msg), sizeof(e.msg) - 1);
	CHECK_STR(e.msg + strlen(e.msg) - 4, "x...");
	pen__fail_sys(&e, EACCES, text, "%s", text);
	CHECK_EQ(strlen(e.msg), sizeof(e.msg) - 1);
	CHECK_STR(e.msg + strlen(e.msg) - 3, "...");
	/* a strerror that no longer fits */
	pen__fail_sys(&e, EACCES, "f", "%.250s", text);
	CHECK_EQ(strlen(e.msg), sizeof(e.msg) - 1);
	CHECK_STR(e.msg + strlen(e.msg) - 3, "...");
}

/* Cut text is still UTF-8, with as much of it as fits. */
static void err_utf8(void)
{
	struct pen_err e = { 0 };
	char text[900];

	for (unsigned shift = 0; shift < 3; shift++) {
		size_t n;

		memset(text, 'a', shift);
		for (unsigned i = 0; i < 280; i++)
			memcpy(text + shift + 3 * i, "\xe2\x82\xac", 3);
		text[shift + 3 * 280] = '\0';
		pen__fail(&e, P_IO, text, "%s", text);
		n = strlen(e.msg);
		CHECK(n > sizeof(e.msg) - 4 && n < sizeof(e.msg));
		CHECK_STR(e.msg + n - 3, "...");
		CHECK_EQ((n - 3 - shift) % 3, 0);
		n = strlen(e.where);
		CHECK(n > sizeof(e.where) - 4 && n < sizeof(e.where));
		CHECK_EQ((n - 3) % 3, 0);
		CHECK_EQ((unsigned char)e.where[3], 0xe2);
	}
}

static void mem_sizes(void)
{
	char *p = pen__alloc(0, 8), *q;

	CHECK(p != NULL);
	q = pen__realloc(p, 3, 100);
	CHECK(q != NULL);
	q[299] = 1;
	CHECK(pen__realloc(q, SIZE_MAX, 2) == NULL);
	CHECK_EQ(q[299], 1);
	pen__free(q);
	CHECK(pen__alloc(SIZE_MAX / 2, 4) == NULL);
	CHECK(pen__calloc(SIZE_MAX, 1) == NULL);
	p = pen__calloc(7, 9);
	for (unsigned i = 0; i < 63; i++)
		CHECK_EQ(p[i], 0);
	pen__free(p);
	pen__free(NULL);
	p = pen__strdup("hello");
	CHECK_STR(p, "hello");
	pen__free(p);
	p = pen__strndup("hello", 2);
	CHECK_STR(p, "he");
	pen__free(p);
	p = pen__strndup("hello", 99);
	CHECK_STR(p, "hello");
	pen__free(p);
}

static void mem_fail(void)
{
	void *p[5];

	pen__mem_fail_nth(3, false);
	for (unsigned i = 0; i < 5; i++)
		p[i] = pen__alloc(1, 1);
	for (unsigned i = 0; i < 5; i++) {
		CHECK_EQ(p[i] == NULL, i == 2);
		pen__free(p[i]);
	}
	CHECK_EQ(pen__mem_count(), 5);
	pen__mem_fail_nth(2, true);
	for (unsigned i = 0; i < 5; i++)
		p[i] = i == 3 ? pen__strdup("x") : pen__calloc(1, 1);
	for (unsigned i = 0; i < 5; i++) {
		CHECK_EQ(p[i] == NULL, i >= 1);
		pen__free(p[i]);
	}
	pen__mem_fail_nth(1, false);
	CHECK(pen__mem_tick());
	CHECK(!pen__mem_tick());
	pen__mem_fail_nth(0, false);
	CHECK(!pen__mem_tick());
	CHECK_EQ(pen__mem_count(), 1);
}

static void blocks(void)
{
	static const size_t caps[] = { 0,	1,	 4096,	       4097,
				       1048575, 1048576, (5 << 20) + 1 };
	struct pen_block b;
	void *old;

	for (unsigned i = 0; i < sizeof(caps) / sizeof(caps[0]); i++) {
		CHECK_EQ(pen__block_init(&b, caps[i]), 0);
		CHECK(b.cap >= caps[i] && b.p);
		CHECK_EQ((uintptr_t)b.p % 4096, 0);
		CHECK_EQ(b.mapped, caps[i] >= 1048576);
		if (b.mapped)
			CHECK_EQ((uintptr_t)b.p % (2 << 20), 0);
		memset(b.p, 7, b.cap);
		pen__block_fini(&b);
		CHECK(!b.p && !b.cap);
	}
	CHECK_EQ(pen__block_init(&b, SIZE_MAX - 5), PEN_ENOMEM);
	CHECK_EQ(pen__block_init(&b, (size_t)PTRDIFF_MAX), PEN_ENOMEM);
	pen__block_fini(&b);
	CHECK_EQ(pen__block_reserve(&b, 100), 0);
	old = b.p;
	CHECK_EQ(pen__block_reserve(&b, 50), 0);
	CHECK(b.p == old);
	CHECK_EQ(pen__block_reserve(&b, 3 << 20), 0);
	CHECK(b.mapped && b.cap >= 3 << 20);
	pen__mem_fail_nth(1, false);
	CHECK_EQ(pen__block_reserve(&b, 30 << 20), PEN_ENOMEM);
	pen__mem_fail_nth(0, false);
	CHECK(!b.p && !b.cap);
	CHECK(!pen__block_lock(&b));
	CHECK_EQ(pen__block_reserve(&b, 4096), 0);
	pen__block_lock(&b); /* may be refused; must not break fini */
	pen__block_fini(&b);
}

int main(void)
{
	err_basic();
	err_sys();
	err_numbers();
	err_long();
	err_utf8();
	mem_sizes();
	mem_fail();
	blocks();
	return test_end();
}
