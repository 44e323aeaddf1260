/* Variants: medians and spread, wrong content, and out of memory. */
#include <math.h>
#include <string.h>

#include "base/mem.h"
#include "experiment/harness.h"
#include "report/variants.h"
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
	struct pen_variants a;
	struct pen_range r;
	struct pen_err err;

	parse(row, at, text, 5);
	CHECK(!pen__variants_init(&a, &pen__exp_prefetch.kind, at, 5, &err));
	CHECK(a.n == 3 && !a.nwrong);
	CHECK(a.v[0].n == 3 && a.v[1].n == 1 && a.v[2].n == 0);
	r = pen__range_of(&a, &a.v[0], "samples_per_s");
	CHECK(r.mid == 200 && r.low == 100 && r.high == 300 && r.n == 3);
	CHECK_STR(pen__show_range(r, pen__show_count).s, "200 +-50 %");
	CHECK(pen__median_of(&a, &a.v[1], "samples_per_s") == 50);
	CHECK_STR(pen__shown_of(&a, &a.v[1], "samples_per_s").s, "50");
	CHECK_STR(pen__shown_of(&a, &a.v[2], "samples_per_s").s, "-");
	CHECK(isnan(pen__median_of(&a, &a.v[2], "samples_per_s")));
	CHECK(pen__variant_most(&a, "samples_per_s") == &a.v[0]);
	CHECK(pen__variant_find(&a, "2", NULL) == &a.v[1]);
	CHECK(!pen__variant_find(&a, "3", NULL));
	pen__variants_fini(&a);
	for (size_t i = 0; i < 5; i++)
		pen__line_fini(&row[i]);
}

/* The number of wrong variants among two rows. */
static size_t wrong(const char *first, const char *second)
{
	const char *text[] = { first, second };
	struct pen_line row[2];
	const struct pen_line *at[2];
	struct pen_variants a;
	struct pen_err err;
	struct pen_text out = { 0 };
	size_t n;

	parse(row, at, text, 2);
	CHECK(!pen__variants_init(&a, &pen__exp_prefetch.kind, at, 2, &err));
	pen__variants_print(&out, &a, 0);
	pen__variants_words(&out, &a);
	n = a.nwrong;
	CHECK(!out.failed && (!n || !strstr(out.p, "12.3 k")));
	CHECK(!strstr(out.p, "Fastest")); /* of one run each */
	CHECK(strstr(out.p, "no conclusion"));
	pen__text_fini(&out);
	pen__variants_fini(&a);
	pen__line_fini(&row[0]);
	pen__line_fini(&row[1]);
	return n;
}

static void refusals(void)
{
	const char *good = ROW("a", "1", "100", "10", "ff", "");

	CHECK(wrong(good, ROW("b", "2", "12345", "10", "ff", "")) == 0);
	CHECK(wrong(good, ROW("b", "2", "12345", "9", "ff", "")) >= 1);
	/* either of the two may be wrong */
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

/* The summary of four variants of three runs each. */
static struct pen_text words_of(const struct pen_kind *kind,
				const char *const (*rates)[3], size_t nof,
				const char *more)
{
	struct pen_line row[12];
	const struct pen_line *at[12] = { NULL };
	struct pen_text out = { 0 };
	struct pen_variants a;
	struct pen_err err;
	size_t n = 0;

	for (size_t i = 0; i < nof; i++)
		for (size_t k = 0; k < 3 && rates[i][k]; k++, n++) {
			char text[512];
			bool nomem;

			snprintf(text, sizeof(text),
				 "{\"setup\":\"%zu\",\"arm\":\"arm%zu\","
				 "\"samples_per_s\":%s,"
				 "\"own_memory_bytes\":%zu%s}",
				 i, i, rates[i][k], (i + 1) * 1000000, more);
			CHECK(pen__line_parse(&row[n], text, strlen(text),
					      &nomem));
			at[n] = &row[n];
		}
	CHECK(!pen__variants_init(&a, kind, at, n, &err));
	pen__variants_busy(&out, &a);
	pen__variants_print(&out, &a, 40);
	pen__variants_words(&out, &a);
	pen__variants_fini(&a);
	for (size_t i = 0; i < n; i++)
		pen__line_fini(&row[i]);
	return out;
}

/* The fastest variant is named only if it is faster beyond noise. */
static void winners(void)
{
	static const char *const clear[][3] = { { "100", "101", "99" },
						{ "200", "202", "199" },
						{ "50", "51", "52" } };
	static const char *const close[][3] = { { "100", "150", "99" },
						{ "120", "90", "149" },
						{ "50", "51", "52" } };
	static const char *const once[][3] = { { "100", NULL, NULL },
					       { "200", NULL, NULL } };
	struct pen_text t = words_of(&pen__exp_prefetch.kind, clear, 3, "");

	CHECK(strstr(t.p, "arm1 (200 samples/s +-1 % in 2 MB).") ||
	      strstr(t.p, "arm1 (200 samples/s +-1 % in 2.00 MB)."));
	CHECK(!strstr(t.p, "equal within noise"));
	pen__text_fini(&t);
	t = words_of(&pen__exp_prefetch.kind, close, 3, "");
	CHECK(strstr(t.p, "equal within noise: arm1 (120 samples/s +-25 %"));
	CHECK(strstr(t.p, "arm0 (100 samples/s +-50 %"));
	CHECK(strstr(t.p, "Of these, arm0 uses the least memory."));
	CHECK(!strstr(t.p, "arm2 (51"));
	pen__text_fini(&t);
	t = words_of(&pen__exp_prefetch.kind, once, 2, "");
	CHECK(strstr(t.p, "ran once: no conclusion is drawn"));
	CHECK(!strstr(t.p, "Fastest") && !strstr(t.p, "+-"));
	pen__text_fini(&t);
	/* the same rule, sorted by the figure */
	t = words_of(&pen__exp_sweep.kind, close, 3, "");
	CHECK(strstr(t.p, "Fastest: equal within noise: 1 (120 samples/s"));
	CHECK(strstr(t.p, "The slowest (2) reaches 42 % of that."));
	pen__text_fini(&t);
}

/* A busy machine is reported first. */
static void others(void)
{
	static const char *const rates[][3] = { { "100", "101", "99" } };
	static const struct {
		const char *more, *says;
	} of[] = {
		{ ",\"others\":{\"seconds\":1,\"cpus\":4,\"cpu_s\":2.5,"
		  "\"stolen_s\":0,\"load_average\":7.25}",
		  "The machine was busy: other processes used 2.5 of its 4 "
		  "CPUs "
		  "(load average 7.2)" },
		{ ",\"others\":{\"seconds\":1,\"cpus\":4,\"cpu_s\":0.1,"
		  "\"stolen_s\":1}",
		  "The machine was busy: the hypervisor withheld 25 % of the "
		  "CPU time" },
		{ ",\"others\":{\"seconds\":1,\"cpus\":4,\"cpu_s\":0.5,"
		  "\"stolen_s\":0.1}",
		  NULL },
		/* too short */
		{ ",\"others\":{\"seconds\":0.1,\"cpus\":4,\"cpu_s\":0.4}",
		  NULL },
		{ "", NULL },
	};

	for (size_t i = 0; i < sizeof(of) / sizeof(of[0]); i++) {
		struct pen_text t =
			words_of(&pen__exp_prefetch.kind, rates, 1, of[i].more);

		if (of[i].says)
			CHECK(!strncmp(t.p, of[i].says, strlen(of[i].says)));
		else
			CHECK(!strstr(t.p, "busy"));
		pen__text_fini(&t);
	}
}

/* No line of a table exceeds the width of the terminal. */
static void narrow(void)
{
	static const char *const rates[][3] = { { "100", "101", "99" },
						{ "200", "300", "199" } };
	struct pen_text t =
		words_of(&pen__exp_prefetch.kind, rates, 2,
			 ",\"cache\":\"warm\",\"wait_p50_s\":0.00012345,"
			 "\"wait_p99_s\":0.012,\"wait_share\":0.5");

	CHECK(strstr(
		t.p,
		"\n  arm0  warm\n    samples/s 100 +-1 %\n    wait p50 123 "
		"us, wait p99 12.0 ms\n    waiting 50 %, memory"));
	pen__text_fini(&t);
}

/* Bars show their spread, and cells print it after the median. */
static void error_bars(void)
{
	static const char *const text[] = {
		ROW("a", "1", "100", "10", "ff", ""),
		ROW("a", "1", "300", "10", "ff", ""),
		ROW("a", "1", "200", "10", "ff", ""),
	};
	struct pen_line row[3];
	const struct pen_line *at[3];
	struct pen_group g = { at, 3, 0 };
	struct pen_text t = { 0 };
	struct pen_err err;

	parse(row, at, text, 3);
	CHECK(!pen__variants_show(&t, &pen__exp_prefetch.kind, &g, &err));
	CHECK(strstr(t.p, "class=\"spread\""));
	CHECK(strstr(t.p, "data-v=\"200\">200 &plusmn;50 %</td>"));
	pen__text_fini(&t);
	/* a single run has no spread */
	g.n = 1;
	CHECK(!pen__variants_show(&t, &pen__exp_prefetch.kind, &g, &err));
	CHECK(!strstr(t.p, "class=\"spread\"") && !strstr(t.p, "&plusmn;"));
	pen__text_fini(&t);
	for (size_t i = 0; i < 3; i++)
		pen__line_fini(&row[i]);
}

/* Rows are grouped in any order, and compared with the best variant of
 * Penstock. */
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
	struct pen_variants a;
	struct pen_err err;
	struct pen_text out = { 0 };
	static const size_t want[] = { 0, 2, 3, 1, 4 };

	parse(row, at, text, 5);
	CHECK(!pen__variants_init(&a, &pen__exp_workers.kind, at, 5, &err));
	CHECK(a.n == 5 && a.nwrong == 1);
	CHECK(!memcmp(a.by_group, want, sizeof(want)));
	CHECK(!strcmp(a.v[2].name, "penstock, 2 threads"));
	CHECK(!strcmp(a.v[3].brief, "DataLoader 2w"));
	CHECK(pen__variant_rival(&a, &a.v[0], "penstock") == &a.v[2]);
	pen__variants_print(&out, &a, 0);
	CHECK(strstr(out.p, "WRONG: different samples"));
	CHECK(!strstr(out.p, "500 ms"));
	pen__variants_words(&out, &a);
	CHECK(strstr(out.p, "no conclusion"));
	CHECK(strstr(out.p, "1 of 5 variants did not deliver the expected"));
	pen__text_fini(&out);
	pen__variants_fini(&a);
	for (size_t i = 0; i < 5; i++)
		pen__line_fini(&row[i]);
}

/* Three runs each: Penstock, a slower variant, and an equal one. */
static void versus_noise(void)
{
	static const char *const text[] = {
		STEP("c", "penstock", "0.001", "2", "0.002", "false"),
		STEP("c", "penstock", "0.001", "2", "0.0021", "false"),
		STEP("c", "penstock", "0.001", "2", "0.0019", "false"),
		STEP("d", "DataLoader", "0.001", "2", "0.005", "false"),
		STEP("d", "DataLoader", "0.001", "2", "0.0051", "false"),
		STEP("d", "DataLoader", "0.001", "2", "0.0049", "false"),
		STEP("e", "slices", "0.001", "2", "0.00205", "false"),
		STEP("e", "slices", "0.001", "2", "0.0022", "false"),
		STEP("e", "slices", "0.001", "2", "0.0018", "false"),
	};
	struct pen_line row[9];
	const struct pen_line *at[9];
	struct pen_variants a;
	struct pen_err err;
	struct pen_text out = { 0 };

	parse(row, at, text, 9);
	CHECK(!pen__variants_init(&a, &pen__exp_workers.kind, at, 9, &err));
	pen__variants_words(&out, &a);
	CHECK(strstr(out.p, "penstock, 2 threads 2.0 ms +-5 % per step; "
			    "DataLoader, 2 workers takes 2.50 times as long"));
	CHECK(strstr(out.p, "slices, 2 workers is equal within noise (2.1 ms "
			    "+-12 %)") ||
	      strstr(out.p, "slices, 2 workers is equal within noise (2.0 ms "
			    "+-12 %)"));
	pen__text_fini(&out);
	pen__variants_fini(&a);
	for (size_t i = 0; i < 9; i++)
		pen__line_fini(&row[i]);
}

static void no_memory(void)
{
	const char *text[] = { ROW("a", "1", "100", "10", "ff", "") };
	struct pen_line row[1];
	const struct pen_line *at[1];
	struct pen_group g = { at, 1, 0 };
	bool done = false;
	uint64_t n = 1;

	parse(row, at, text, 1);
	for (; !done && n < 100; n++) {
		struct pen_text t = { 0 };
		struct pen_err err = { 0 };
		int rc;

		pen__mem_fail_nth(n, false);
		rc = pen__variants_verdict(&t, &pen__exp_prefetch.kind, &g,
					   &err);
		if (!rc)
			rc = pen__variants_show(&t, &pen__exp_prefetch.kind, &g,
						&err);
		pen__mem_fail_nth(0, false);
		CHECK(rc == 0 || rc == PEN_ENOMEM);
		done = !rc && !t.failed;
		pen__text_fini(&t);
	}
	CHECK(done);
	CHECK(n > 2); /* at least one did fail */
	pen__line_fini(&row[0]);
}

/* Independent of order and batches; changes with any byte or number. */
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

/* Every experiment and every setting that it changes is described. */
static void descriptions(void)
{
	struct pen_err err = { 0 };

	CHECK_EQ(pen__experiments_read(&err), 0);
	if (err.code)
		printf("%s: %s\n", err.where, err.msg);
	for (size_t i = 0; pen__experiments[i]; i++) {
		const struct pen_experiment *x = pen__experiments[i];
		const struct pen_kind *k = &x->kind;

		CHECK(k->title && x->args && x->summary && x->about);
		CHECK(x->examples[0].first && x->nflags > 5);
		CHECK(k->columns);
		for (size_t c = 0; c < PEN_MOST_CHARTS; c++)
			CHECK(!k->chart[c].title ||
			      pen__measure_of(k->chart[c].key));
		for (size_t b = 0; k->best[b].what; b++)
			CHECK(pen__measure_of(k->best[b].key));
		CHECK(pen__kind_of(k->experiment) == k);
	}
	CHECK(pen__kind_of("sweep") == &pen__exp_sweep.kind);
	CHECK(!pen__kind_of("no such"));
}

int main(void)
{
	descriptions();
	medians();
	refusals();
	versus();
	versus_noise();
	winners();
	others();
	narrow();
	error_bars();
	no_memory();
	contents();
	makes();
	return test_end();
}
