/* Rows copied by several threads are the same rows; several callers at the same
 * time; ids that are not rows. */
#include "base/mem.h"
#include "base/rng.h"
#include "base/team.h"
#include "penstock.h"
#include "test.h"

#define NROWS 5000
#define WIDE 1000

static uint8_t wide[NROWS * WIDE];
static uint32_t narrow[NROWS];

struct call {
	struct pen_copier *c;
	uint64_t most;
};

static void fill(void)
{
	pen__rng_fill(1, 2, 0, wide, sizeof(wide));
	for (uint32_t i = 0; i < NROWS; i++)
		narrow[i] = i;
}

static void check_one(struct pen_copier *c, uint64_t n, uint64_t seed)
{
	struct pen_rng rng = { seed, 0 };
	int64_t *ids = calloc(n + 1, sizeof(*ids));
	uint8_t *a = malloc(n * WIDE + 1);
	uint32_t *b = calloc(n + 1, sizeof(*b));
	struct pen_rows rows[] = { { wide, a, WIDE, NROWS },
				   { narrow, b, 4, NROWS } };
	struct pen_err err;
	bool ok = true;

	for (uint64_t i = 0; i < n; i++)
		ids[i] = (int64_t)pen__rng_below(&rng, 2 * NROWS) - NROWS;
	CHECK_EQ(pen_copier_copy(c, rows, 2, ids, n, &err), 0);
	for (uint64_t i = 0; i < n; i++) {
		int64_t id = ids[i] < 0 ? ids[i] + NROWS : ids[i];

		ok = ok && b[i] == (uint32_t)id &&
		     !memcmp(a + i * WIDE, wide + id * WIDE, WIDE);
	}
	CHECK(ok);
	free(ids);
	free(a);
	free(b);
}

static void run(void *arg, unsigned i)
{
	struct call *call = arg;

	for (uint64_t k = 0; k < 50; k += TEST_EVERY(3))
		check_one(call->c, 1 + (k * 37 + i) % call->most, k * 8 + i);
}

static void test_copy(unsigned threads)
{
	struct call call = { .most = 1500 };
	uint8_t *all = malloc(sizeof(wide));
	struct pen_rows rows = { wide, all, WIDE, NROWS };
	struct pen_team *team;
	struct pen_err err;
	int64_t bad[] = { 3, -NROWS - 1, 5 };

	CHECK_EQ(pen_copier_new(&call.c, threads, &err), 0);
	check_one(call.c, 0, 1);
	check_one(call.c, 1, 1);
	check_one(call.c, 4000, 1);
	CHECK_EQ(pen_copier_copy(call.c, &rows, 1, NULL, NROWS, &err), 0);
	CHECK(!memcmp(all, wide, sizeof(wide)));
	CHECK_EQ(pen_copier_copy(call.c, &rows, 1, NULL, NROWS + 1, &err),
		 PEN_EINVAL);
	CHECK_EQ(pen_copier_copy(call.c, &rows, 1, bad, 3, &err), PEN_EINVAL);
	CHECK(strstr(err.msg, "-5001"));
	bad[1] = NROWS;
	CHECK_EQ(pen_copier_copy(call.c, &rows, 1, bad, 3, &err), PEN_EINVAL);
	CHECK_EQ(pen__team_start(&team, 3, "callers", run, &call, &err), 0);
	pen__team_join(team);
	pen_copier_free(call.c);
	free(all);
}

static void test_no_memory(void)
{
	struct pen_copier *c;
	struct pen_err err;
	int rc = -1;

	for (uint64_t n = 1; n < 50 && rc; n++) {
		pen__mem_fail_nth(n, false);
		rc = pen_copier_new(&c, 3, &err);
		pen__mem_fail_nth(0, false);
	}
	CHECK_EQ(rc, 0);
	pen_copier_free(c);
	pen_copier_free(NULL);
}

int main(void)
{
	fill();
	for (unsigned threads = 0; threads < 5; threads++)
		test_copy(threads);
	test_no_memory();
	return test_end();
}
