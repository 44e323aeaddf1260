/* Arms: medians and spread, what counts as wrong, and running out of memory. */
#include <math.h>
#include <string.h>

#include "base/mem.h"
#include "experiment/experiment.h"
#include "report/arms.h"
#include "test.h"

#define ROW(setup, arm, rate, rows, sum, more)                                 \
	"{\"experiment\":\"prefetch\",\"setup\":\"" setup "\",\"arm\":\"" arm  \
	"\",\"check\":\"c\",\"samples_per_s\":" rate ",\"n_rows\":" rows       \
	",\"expected_rows\":10,\"content_sum\":\"" sum "\",\"oom\":false" more \
	"}"

static void parse(struct pen_line *row, const struct pen_line **at,
		  const char *const *text, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		bool nomem;

		CHECK(pen__line_parse(&row[i], text[i], strlen(text[i]),
				      &nomem));
		at[i] = &row[i];
	}
}

static void medians(void)
{
	static const char *const text[] = {
		ROW("a", "1", "100", "10", "ff", ""),
		ROW("b", "2", "50", "10", "ff", ""),
		ROW("a", "1", "300", "10", "ff", ""),
		ROW("a", "1", "200", "10", "ff", ""),
		"{\"setup\":\"c\",\"arm\":\"3\",\"check\":\"c\",\"oom\":true}",
	};
	struct pen_line row[5];
	const struct pen_line *at[5];
	struct pen_arms a;
	struct pen_err err;

	parse(row, at, text, 5);
	CHECK(!pen__arms_init(&a, &pen__kind_prefetch, at, 5, &err));
	CHECK(a.narms == 3 && !a.nwrong);
	CHECK(a.arm[0].n == 3 && a.arm[1].n == 1 && a.arm[2].n == 0);
	CHECK(pen__arms_median(&a, &a.arm[0], "samples_per_s") == 200);
	CHECK(pen__arms_get(&a, &a.arm[0], "samples_per_s", PEN_SPREAD) == 1);
	CHECK(pen__arms_get(&a, &a.arm[0], "samples_per_s", PEN_LOWEST) == 100);
	CHECK(pen__arms_get(&a, &a.arm[0], "samples_per_s", PEN_HIGHEST) ==
	      300);
	CHECK(pen__arms_median(&a, &a.arm[1], "samples_per_s") == 50);
	CHECK(isnan(pen__arms_get(&a, &a.arm[1], "samples_per_s", PEN_SPREAD)));
	CHECK(isnan(pen__arms_median(&a, &a.arm[2], "samples_per_s")));
	CHECK(pen__arms_best(&a, "samples_per_s", false) == &a.arm[0]);
	CHECK(pen__arms_best(&a, "samples_per_s", true) == &a.arm[1]);
	CHECK(pen__arms_find(&a, "2", NULL) == &a.arm[1]);
	CHECK(!pen__arms_find(&a, "3", NULL));
	pen__arms_fini(&a);
	for (size_t i = 0; i < 5; i++)
		pen__line_fini(&row[i]);
}

/* How many arms of two rows are wrong. */
static size_t wrong(const char *first, const char *second)
{
	const char *text[] = { first, second };
	struct pen_line row[2];
	const struct pen_line *at[2];
	struct pen_arms a;
	struct pen_err err;
	struct pen_text out = { 0 };
	size_t n;

	parse(row, at, text, 2);
	CHECK(!pen__arms_init(&a, &pen__kind_prefetch, at, 2, &err));
	pen__arms_print(&out, &a);
	pen__arms_words(&out, &a);
	n = a.nwrong;
	CHECK(!out.failed && (!n || !strstr(out.p, "12.3 k")));
	CHECK(!n == !!strstr(out.p, "Fastest"));
	pen__text_fini(&out);
	pen__arms_fini(&a);
	pen__line_fini(&row[0]);
	pen__line_fini(&row[1]);
	return n;
}

static void refusals(void)
{
	const char *good = ROW("a", "1", "100", "10", "ff", "");

	CHECK(wrong(good, ROW("b", "2", "12345", "10", "ff", "")) == 0);
	CHECK(wrong(good, ROW("b", "2", "12345", "9", "ff", "")) >= 1);
	/* nobody knows which of the two it is */
	CHECK(wrong(good, ROW("b", "2", "12345", "10", "fe", "")) == 2);
	CHECK(wrong(good, ROW("b", "2", "12345", "10", "ff",
			      ",\"n_skipped\":1")) == 1);
	CHECK(wrong(good, ROW("b", "2", "12345", "10", "ff",
			      ",\"n_substituted\":1")) == 1);
	CHECK(wrong(good, ROW("b", "2", "12345", "10", "ff",
			      ",\"expected_sum\":\"fe\"")) == 1);
	CHECK(wrong(good, ROW("b", "2", "12345", "10", "ff",
			      ",\"wrong\":\"order\"")) == 1);
}

#define STEP(setup, arm, compute, workers, step, wrong)                        \
	"{\"experiment\":\"workers\",\"setup\":\"" setup "\",\"arm\":\"" arm   \
	"\",\"load_s\":0.01,\"compute_s\":" compute ",\"workers\":" workers    \
	",\"step_s\":" step ",\"n_samples\":4,\"wanted_samples\":4,"           \
	"\"content_sum\":\"9\",\"wanted_sum\":\"9\",\"wrong\":" wrong "}"

/* Groups are taken together whatever the order of rows, and compared with the
 * best of the arm that is ours. */
static void versus(void)
{
	static const char *const text[] = {
		STEP("a", "penstock", "0.001", "1", "0.004", "false"),
		STEP("b", "penstock", "0.002", "1", "0.010", "false"),
		STEP("c", "penstock", "0.001", "2", "0.002", "false"),
		STEP("d", "DataLoader", "0.001", "2", "0.005", "false"),
		STEP("e", "DataLoader", "0.002", "2", "0.5", "true"),
	};
	struct pen_line row[5];
	const struct pen_line *at[5];
	struct pen_arms a;
	struct pen_err err;
	struct pen_text out = { 0 };
	static const size_t want[] = { 0, 2, 3, 1, 4 };

	parse(row, at, text, 5);
	CHECK(!pen__arms_init(&a, &pen__kind_workers, at, 5, &err));
	CHECK(a.narms == 5 && a.nwrong == 1);
	CHECK(!memcmp(a.by_group, want, sizeof(want)));
	CHECK(!strcmp(a.arm[2].name, "penstock, 2 threads"));
	CHECK(!strcmp(a.arm[3].brief, "DataLoader 2w"));
	CHECK(pen__arms_rival(&a, &a.arm[0], "penstock") == &a.arm[2]);
	pen__arms_print(&out, &a);
	CHECK(strstr(out.p, "WRONG: other samples"));
	CHECK(!strstr(out.p, "500 ms"));
	pen__arms_words(&out, &a);
	CHECK(strstr(out.p, "compute 1.0 ms: penstock, 2 threads 2.0 ms a "
			    "step; DataLoader, 2 workers takes 2.50 times"));
	CHECK(strstr(out.p, "1 of 5 arms did not deliver"));
	pen__text_fini(&out);
	pen__arms_fini(&a);
	for (size_t i = 0; i < 5; i++)
		pen__line_fini(&row[i]);
}

static void no_memory(void)
{
	const char *text[] = { ROW("a", "1", "100", "10", "ff", "") };
	struct pen_line row[1];
	const struct pen_line *at[1];
	struct pen_group g = { at, 1, 0 };
	bool done = false;

	parse(row, at, text, 1);
	for (uint64_t n = 1; !done && n < 100; n++) {
		struct pen_text t = { 0 };
		struct pen_err err = { 0 };
		int rc;

		pen__mem_fail_nth(n, false);
		rc = pen__arms_verdict(&t, &pen__kind_prefetch, &g, &err);
		if (!rc)
			rc = pen__arms_show(&t, &pen__kind_prefetch, &g, &err);
		pen__mem_fail_nth(0, false);
		CHECK(rc == 0 || rc == PEN_ENOMEM);
		done = !rc && !t.failed;
		pen__text_fini(&t);
	}
	CHECK(done);
	pen__line_fini(&row[0]);
}

/* Any order, any batches: the same; another byte or number: not. */
static void contents(void)
{
	uint8_t x[3][37];
	uint64_t ids[] = { 5, 9, 2 }, swapped[] = { 9, 5, 2 };
	struct pen_tensor t = { .data = x,
				.nbytes = sizeof(x),
				.dtype = PEN_U8,
				.layout = PEN_DENSE };
	struct pen_batch b = { .nsamples = 3, .ntensors = 1, .tensors = &t };
	uint64_t all, sum = 0;

	for (size_t i = 0; i < sizeof(x); i++)
		((uint8_t *)x)[i] = (uint8_t)(i * 31);
	all = pen__content_batch(&b, ids);
	for (size_t i = 3; i-- > 0;)
		sum += pen__content_row(ids[i], 0, x[i], sizeof(x[i]));
	CHECK(all == sum);
	CHECK(all != pen__content_batch(&b, swapped));
	for (size_t i = 0; i < sizeof(x); i++) {
		((uint8_t *)x)[i] ^= 1;
		CHECK(all != pen__content_batch(&b, ids));
		((uint8_t *)x)[i] ^= 1;
	}
}

static void makes(void)
{
	struct pen_fresh m = { .seed = 3 };
	struct pen_err err = { 0 };
	uint8_t whole[96], part[96];
	uint64_t a, b, ab;

	CHECK(!pen__fresh_init(&m, "4x4x3", "uint8", &err) && m.row == 48);
	CHECK(pen__fresh_is_image(&m));
	pen__fresh_fill(&m, 0, whole, sizeof(whole));
	pen__fresh_fill(&m, 30, part, 40);
	CHECK(!memcmp(whole + 30, part, 40));
	CHECK(!pen__fresh_sum(&m, 0, 1, &a, &err));
	CHECK(!pen__fresh_sum(&m, 1, 1, &b, &err));
	CHECK(!pen__fresh_sum(&m, 0, 2, &ab, &err));
	CHECK(a + b == ab);
	CHECK(pen__fresh_init(&m, "0", "uint8", &err) == PEN_EINVAL);
	CHECK(pen__fresh_init(&m, "4", "uint9", &err) < 0);
}

int main(void)
{
	medians();
	refusals();
	versus();
	no_memory();
	contents();
	makes();
	return test_end();
}
