/* Reading ahead: every byte once and in order, errors at their position, and an
 * early end. */
#include "base/mem.h"
#include "format/ahead.h"
#include "test.h"

struct object {
	struct pen_peek pk;
	uint64_t bad; /* reads beyond this offset fail */
};

static uint8_t byte_at(uint64_t at)
{
	return (uint8_t)(at ^ at >> 8 ^ at >> 16);
}

static int read_object(struct pen_peek *pk, uint64_t off, void *buf, size_t len,
		       struct pen_err *err)
{
	const struct object *o = (struct object *)pk;
	uint8_t *to = buf;

	if (off + len > o->bad)
		return pen__fail(err, P_IO, pk->name, "is broken");
	for (size_t i = 0; i < len; i++)
		to[i] = byte_at(off + i);
	return 0;
}

static struct object object_of(uint64_t size)
{
	return (struct object){
		.pk = { .name = "object", .size = size, .read = read_object },
		.bad = UINT64_MAX
	};
}

/* Reads the object; the number of right bytes. */
static uint64_t go_through(struct object *o, int *rc, struct pen_err *err)
{
	struct pen_ahead *a = NULL;
	struct pen_span in;
	uint64_t at = 0;
	bool right = true;

	if (!CHECK_EQ(pen__ahead_new(&a, &o->pk, err), 0))
		return 0;
	while ((*rc = pen__ahead_next(a, &in, err)) == 0)
		for (size_t i = 0; i < in.n; i++, at++)
			right = right && in.p[i] == byte_at(at);
	CHECK(right);
	pen__ahead_free(a);
	return at;
}

static void test_all(void)
{
	const uint64_t sizes[] = { 0, 1, 262143, 262144, 262145, 5000001 };
	struct pen_err err = { 0 };
	int rc;

	for (unsigned i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		struct object o = object_of(sizes[i]);

		CHECK_EQ(go_through(&o, &rc, &err), sizes[i]);
		CHECK_EQ(rc, PEN_END);
	}
}

static void test_errors(void)
{
	struct object o = object_of(5000001);
	struct pen_err err = { 0 };
	int rc;

	o.bad = 1000000;
	CHECK_EQ(go_through(&o, &rc, &err), 262144 * 3);
	CHECK_EQ(rc, PEN_EIO);
	CHECK(strstr(err.msg, "is broken"));
}

static void test_left(void)
{
	struct object o = object_of(5000001);
	struct pen_err err = { 0 };
	struct pen_ahead *a = NULL;
	struct pen_span in;

	for (unsigned n = 0; n < 5; n++) {
		CHECK_EQ(pen__ahead_new(&a, &o.pk, &err), 0);
		for (unsigned i = 0; i < n; i++)
			CHECK_EQ(pen__ahead_next(a, &in, &err), 0);
		pen__ahead_free(a);
	}
	pen__ahead_free(NULL);
}

static void test_memory(void)
{
	struct object o = object_of(1000);
	struct pen_err err = { 0 };
	struct pen_ahead *a = NULL;
	int rc = PEN_ENOMEM;

	for (unsigned n = 1; n < 50 && rc; n++) {
		pen__mem_fail_nth(n, false);
		rc = pen__ahead_new(&a, &o.pk, &err);
		CHECK(!rc || err.msg[0]); /* no memory, or no thread */
	}
	pen__mem_fail_nth(0, false);
	CHECK_EQ(rc, 0);
	pen__ahead_free(a);
}

int main(void)
{
	test_all();
	test_errors();
	test_left();
	test_memory();
	return test_end();
}
