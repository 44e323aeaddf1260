/* Result files and their pages. */
#include <fcntl.h>
#include <math.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"
#include "report/chart.h"
#include "report/report.h"
#include "report/page_run.h"
#include "test.h"

#define FILE_NAME "report.tmp.jsonl"

static bool parse(struct pen_line *r, const char *text)
{
	bool nomem = false;
	const bool ok = pen__line_parse(r, text, strlen(text), &nomem);

	CHECK(!nomem);
	return ok;
}

static void test_line(void)
{
	struct pen_line r;

	if (!CHECK(parse(&r,
			 " {\"a\": 1, \"b\": \"x\\n\\u00e9\\ud83d\\ude00\", "
			 "\"c\": {\"d\": true, \"e\": [1.5, null]}, "
			 "\"f\": {}, \"g\": [], \"a\": -2e3 } ")))
		return;
	CHECK(pen__line_number(&r, "a") == -2000); /* the last one */
	CHECK_STR(pen__line_text(&r, "b"), "x\n\xc3\xa9\xf0\x9f\x98\x80");
	CHECK(pen__line_true(&r, "c.d"));
	CHECK(pen__line_number(&r, "c.e.0") == 1.5);
	CHECK_STR(pen__line_text(&r, "c.e.1"), "");
	CHECK(isnan(pen__line_number(&r, "c.e.1")));
	CHECK(isnan(pen__line_number(&r, "b")));
	CHECK(isnan(pen__line_number(&r, "nothing")));
	CHECK(!pen__line_find(&r, "f"));
	CHECK_EQ(r.n, 6);
	pen__line_fini(&r);
	CHECK(parse(&r, "{}"));
	CHECK_EQ(r.n, 0);
	pen__line_fini(&r);
	/* a NUL and a lone surrogate are replaced and do not truncate */
	CHECK(parse(&r, "{\"a\": \"x\\u0000y\\ud800z\"}"));
	CHECK_STR(pen__line_text(&r, "a"), "x\xef\xbf\xbdy\xef\xbf\xbdz");
	pen__line_fini(&r);
}

static void test_bad_lines(void)
{
	static const char *const bad[] = {
		"",
		"{",
		"[]",
		"1",
		"{\"a\"}",
		"{\"a\":}",
		"{\"a\":1",
		"{\"a\":1,}",
		"{\"a\":1}x",
		"{a:1}",
		"{\"a\":tru}",
		"{\"a\":+1}",
		"{\"a\":1e999}",
		"{\"a\":0x10}",
		"{\"a\":nan}",
		"{\"a\":\"",
		"{\"a\":\"\\",
		"{\"a\":\"\\q\"}",
		"{\"a\":\"\\u12\"}",
		"{\"a\":\"\\ud83d\\u0041\"}",
		"{\"a\":[1,]}",
		"{\"a\":.}",
		"{\"a\":\"\n\"}",
		"{\"a\" 1}",
		"{\"a\":-}",
		"{\"a\":{}",
	};
	char deep[128];
	struct pen_line r;

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		test_check(!parse(&r, bad[i]), __FILE__, __LINE__, bad[i]);
	memset(deep, '[', sizeof(deep));
	memcpy(deep, "{\"a\":", 5);
	deep[127] = '\0';
	CHECK(!parse(&r, deep));
}

/* No prefix of a valid line is valid. */
static void test_cuts(void)
{
	static const char line[] =
		"{\"a\": \"\\u00e9\", \"b\": {\"c\": [1, true, null]}}";
	struct pen_line r;
	bool nomem;

	for (size_t n = 0; n + 1 < sizeof(line) - 1; n++) {
		char *copy = pen__strndup(line, n); /* for the sanitizer */

		CHECK(!pen__line_parse(&r, copy, n, &nomem));
		pen__free(copy);
	}
	CHECK(pen__line_parse(&r, line, sizeof(line) - 1, &nomem));
	pen__line_fini(&r);
}

/* Any byte in any place: a row or none, and no read out of bounds. */
static void test_flips(void)
{
	static const char line[] =
		"{\"a\": \"\\u00e9\\n\", \"b\": {\"c\": [-1.5e3, "
		"true, null]}, \"d\": \"\\ud83d\\ude00\"}";
	static const char with[] = "\"\\{}[],:u0e-\n\t\xff";
	unsigned good = 0;

	for (size_t i = 0; i + 1 < sizeof(line); i++)
		for (size_t k = 0; k + 1 < sizeof(with); k++) {
			char *copy = pen__strndup(line, sizeof(line) - 1);
			struct pen_line r;
			bool nomem;

			copy[i] = with[k];
			if (pen__line_parse(&r, copy, sizeof(line) - 1,
					    &nomem)) {
				good++;
				pen__line_fini(&r);
			}
			pen__free(copy);
		}
	CHECK(good > 0);
}

static int append(const char *text)
{
	struct pen_text t = { 0 };
	struct pen_err err = { 0 };
	int rc;

	pen__text_put(&t, text, strlen(text));
	rc = pen__lines_append(FILE_NAME, &t, &err);
	pen__text_fini(&t);
	return rc;
}

static void raw_append(const char *text)
{
	FILE *f = fopen(FILE_NAME, "a");

	if (f) {
		fputs(text, f);
		fclose(f);
	}
}

static void test_file(void)
{
	struct pen_lines rows = { 0 };
	struct pen_err err = { 0 };

	unlink(FILE_NAME);
	CHECK_EQ(pen__lines_read(&rows, FILE_NAME, &err), PEN_ENOTFOUND);
	CHECK_EQ(append("{\"a\": 1}"), 0);
	CHECK_EQ(append("{\"a\": 2, \"unknown\": \"kept\"}\n"), 0);
	raw_append("{\"a\": 3, \"half"); /* incomplete line, as after a crash */
	CHECK_EQ(append("{\"a\": 4}\n"), 0);
	raw_append("\n\nnot a row\n{\"a\": 5}");
	CHECK_EQ(pen__lines_read(&rows, FILE_NAME, &err), 0);
	CHECK_EQ(rows.n, 4);
	CHECK_EQ(rows.nbad, 2);
	CHECK_EQ(rows.first_bad, 3);
	CHECK(rows.n == 4 && pen__line_number(&rows.row[2], "a") == 4);
	CHECK(rows.n == 4 && pen__line_number(&rows.row[3], "a") == 5);
	CHECK(rows.n == 4 &&
	      !strcmp(pen__line_text(&rows.row[1], "unknown"), "kept"));
	/* a second file is appended */
	CHECK_EQ(pen__lines_read(&rows, FILE_NAME, &err), 0);
	CHECK_EQ(rows.n, 8);
	pen__lines_fini(&rows);
	unlink(FILE_NAME);
	/* a directory is not a file */
	CHECK(pen__lines_read(&rows, ".", &err) < 0);
	pen__lines_fini(&rows);
}

static const char *const samples[] = {
	"{\"experiment\": \"blocks\", \"setup\": \"s1\", \"path\": "
	"\"/x/<script>alert(1)</script>&\\\"'.h5ad\", \"host\": \"<b>\", "
	"\"unit\": \"cells\", \"samples\": 1000, \"n_cols\": 10, \"bytes\": "
	"5, \"method\": \"csr\", \"cold\": false, \"chunk_rows\": 64, "
	"\"block_chunks\": 2000, \"block_rows\": 128000, \"batch\": 1024, "
	"\"n_rows\": 1000, \"samples_per_s\": 26600, "
	"\"samples_per_s_rest\": 51400000, \"drop_first\": true, "
	"\"peak_memory_bytes\": 1e9, \"quality\": {\"n_eff\": 682.5}, "
	"\"oom\": false}",
	"{\"experiment\": \"blocks\", \"setup\": \"s2\", \"path\": "
	"\"/x/<script>alert(1)</script>&\\\"'.h5ad\", \"host\": \"<b>\", "
	"\"method\": \"dense\", \"cold\": true, \"resident\": 0.9, "
	"\"chunk_rows\": 512, \"block_chunks\": 32, \"block_rows\": 16384, "
	"\"batch\": 1024, \"samples_per_s\": 5000, \"peak_memory_bytes\": "
	"2e8, \"quality\": {\"n_eff\": 31.2}, \"oom\": false}",
	"{\"experiment\": \"blocks\", \"setup\": \"s3\", \"path\": "
	"\"/x/<script>alert(1)</script>&\\\"'.h5ad\", \"host\": \"<b>\", "
	"\"method\": \"dense\", \"oom\": true}",
	"{\"experiment\": \"read-chunks\", \"setup\": \"r1\", \"shuffle\": "
	"\"none\", \"reader\": \"raw\", \"seconds\": 1, \"samples_per_s\": "
	"7777, \"nnz\": 10, \"n_rows\": 5, \"samples\": 5, \"content_sum\": "
	"\"aa\"}",
	"{\"experiment\": \"read-chunks\", \"setup\": \"r2\", \"shuffle\": "
	"\"none\", \"reader\": \"csr\", \"seconds\": 2, \"samples_per_s\": "
	"8888, \"nnz\": 10, \"n_rows\": 5, \"samples\": 5, \"content_sum\": "
	"\"bb\"}",
	"{\"experiment\": \"tomorrow's\", \"<k>\": \"v,\\\"w\\\"\"}",
};

static bool load(struct pen_lines *rows)
{
	struct pen_err err = { 0 };
	bool ok;

	unlink(FILE_NAME);
	for (size_t i = 0; i < sizeof(samples) / sizeof(samples[0]); i++)
		CHECK_EQ(append(samples[i]), 0);
	ok = CHECK_EQ(pen__lines_read(rows, FILE_NAME, &err), 0);
	unlink(FILE_NAME);
	return ok;
}

static unsigned count(const char *text, const char *what)
{
	unsigned n = 0;

	for (; (text = strstr(text, what)); text += strlen(what))
		n++;
	return n;
}

static void test_page(void)
{
	struct pen_results r = { 0 };
	struct pen_text t = { 0 };
	struct pen_err err = { 0 };

	if (!load(&r.rows) || !CHECK_EQ(pen__report_html(&r, &t, &err), 0) ||
	    !CHECK(t.p && !t.failed))
		return;
	/* the page has exactly one script */
	CHECK_EQ(count(t.p, "<script"), 1);
	CHECK_EQ(count(t.p, "alert(1)</script>"), 0);
	CHECK(count(t.p, "&lt;script&gt;") > 0);
	CHECK_EQ(count(t.p, "http://") + count(t.p, "https://"), 0);
	/* two runs in two charts, wide and narrow */
	CHECK_EQ(count(t.p, "<g class=\"mark"), 2 * 2 * 2);
	CHECK_EQ(count(t.p, "<g class=\"mark hollow"), 4);
	/* the rate covers the entire run; the first batch contains all the work
	 */
	CHECK_EQ(count(t.p, "51.4 M"), 0);
	CHECK(count(t.p, "26.6 k") > 0);
	/* one run of each, and no conclusion */
	CHECK_EQ(count(t.p, "Fastest") + count(t.p, "fastest<"), 0);
	CHECK(count(t.p, "no conclusion is drawn") > 0);
	CHECK_EQ(count(t.p, "1 setting ran out of memory"), 1);
	CHECK_EQ(count(t.p, "1 run was not cold"), 1);
	/* no rates for readers with different content */
	CHECK_EQ(count(t.p, "2 of 2 variants did not deliver the expected"), 1);
	CHECK_EQ(count(t.p, "7.78 k") + count(t.p, "8.89 k"), 0);
	CHECK(count(t.p, "&lt;k&gt;") > 0);
	/* missing values are omitted */
	CHECK_EQ(count(t.p, "nan B") + count(t.p, "( usable)"), 0);
	pen__text_fini(&t);
	CHECK_EQ(pen__report_csv(&r.rows, &t, &err), 0);
	CHECK(t.p && strstr(t.p, "\"v,\"\"w\"\"\""));
	CHECK(t.p && strstr(t.p, "quality.n_eff"));
	CHECK_EQ(t.p ? count(t.p, "\n") : 0, 7);
	pen__text_fini(&t);
	pen__results_fini(&r);
}

#define BLOCK(setup, chunk, chunks, rate, rest, n_eff)                         \
	"{\"experiment\":\"blocks\",\"setup\":\"" setup "\",\"unit\":"         \
	"\"cells\",\"path\":\"x\",\"method\":\"csr\",\"cold\":false,"          \
	"\"chunk_rows\":" chunk ",\"block_chunks\":" chunks                    \
	",\"block_rows\":4096,\"n_rows\":40960,\"batch\":64,"                  \
	"\"samples_per_s\":" rate ",\"samples_per_s_rest\":" rest              \
	",\"own_memory_bytes\":1e8,\"quality\":{\"n_eff\":" n_eff "}}"

/* Three runs of each: the fastest beyond noise by the rate of the entire run;
 * the steady-state rate is in the table. */
static void test_blocks(void)
{
	static const char *const rows[] = {
		BLOCK("a", "4096", "1", "9000", "9900", "1"),
		BLOCK("a", "4096", "1", "9100", "9900", "1"),
		BLOCK("a", "4096", "1", "9200", "9900", "1"),
		BLOCK("b", "64", "64", "5000", "7700", "40"),
		BLOCK("b", "64", "64", "5100", "7700", "40"),
		BLOCK("b", "64", "64", "5200", "7700", "40"),
		BLOCK("c", "32", "128", "4900", "7700", "50"),
		BLOCK("c", "32", "128", "5150", "7700", "50"),
		BLOCK("c", "32", "128", "5300", "7700", "50"),
	};
	struct pen_results r = { 0 };
	struct pen_text t = { 0 };
	struct pen_err err = { 0 };

	unlink(FILE_NAME);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		CHECK_EQ(append(rows[i]), 0);
	CHECK_EQ(pen__lines_read(&r.rows, FILE_NAME, &err), 0);
	unlink(FILE_NAME);
	if (!CHECK_EQ(pen__report_html(&r, &t, &err), 0) || !CHECK(t.p))
		return;
	CHECK_EQ(count(t.p, "<p>Fastest: 1 x 4,096 rows, csr (9.10 k cells/s "
			    "&plusmn;1 % in 100 MB).</p>"),
		 1);
	CHECK_EQ(count(t.p, "are poorly mixed: n_eff 1.0 of 64."), 1);
	CHECK_EQ(count(t.p,
		       "quarter of the batch: equal within noise: 128 x 32 "
		       "rows, csr (5.15 k cells/s"),
		 1);
	CHECK_EQ(count(t.p, "Short chunks are slow: with 32 rows per chunk"),
		 1);
	CHECK(count(t.p, ">fastest</text>") > 0);
	CHECK(count(t.p, "9.90 k after the first batch") > 0);
	pen__text_fini(&t);
	pen__results_fini(&r);
}

static void test_none(void)
{
	struct pen_results r = { 0 };
	struct pen_text t = { 0 };
	struct pen_err err = { 0 };

	CHECK_EQ(pen__report_html(&r, &t, &err), PEN_ENOTFOUND);
	CHECK_EQ(pen__report_csv(&r.rows, &t, &err), PEN_ENOTFOUND);
	pen__text_fini(&t);
}

static void test_memory(void)
{
	int rc = PEN_ENOMEM;

	for (uint64_t k = 1; rc && k < 500; k++) {
		struct pen_results r = { 0 };
		struct pen_text t = { 0 };
		struct pen_err err = { 0 };
		FILE *f = fopen(FILE_NAME, "w");

		for (size_t i = 0; f && i < 6; i++)
			fprintf(f, "%s\n", samples[i]);
		if (f)
			fclose(f);
		pen__mem_fail_nth(k, false);
		rc = pen__results_read(&r, FILE_NAME, &err);
		if (!rc)
			rc = pen__report_html(&r, &t, &err);
		if (!rc && t.failed)
			rc = PEN_ENOMEM;
		if (!rc) {
			pen__text_fini(&t);
			rc = pen__report_csv(&r.rows, &t, &err);
		}
		if (!rc && t.failed)
			rc = PEN_ENOMEM;
		/* the failure is reported, and nothing else fails */
		CHECK(pen__mem_count() < k ? !rc : rc == PEN_ENOMEM);
		pen__mem_fail_nth(0, false);
		pen__text_fini(&t);
		pen__results_fini(&r);
	}
	CHECK_EQ(rc, 0);
	unlink(FILE_NAME);
}

/* The scale increases in lightness. */
static void test_colours(void)
{
	double last[2] = { -1, -1 };

	for (int i = 0; i <= 12; i++) {
		const struct pen_colour c = pen__colour_at(i / 12.0);
		const char *both[] = { c.light, c.dark };

		for (int k = 0; k < 2; k++) {
			unsigned r, g, b;
			double l;

			CHECK_EQ(sscanf(both[k], "#%2x%2x%2x", &r, &g, &b), 3);
			l = 0.2126 * r + 0.7152 * g + 0.0722 * b;
			CHECK(l > last[k]);
			last[k] = l;
		}
	}
}

/* ---- capacity ---- */

/* The summary, or the section of a page. */
static char *capacity(const char *more, const char *curve, bool page)
{
	struct pen_text json = { 0 }, out = { 0 };
	struct pen_doc d = { .name = "c.json" };

	pen__text_add(&json,
		      "{\"schema\": \"penstock.capacity/1\", \"workload\": "
		      "\"w\\u001b\", \"au_wanted_percentage\": 90, %s, "
		      "\"curve\": [%s]}",
		      more, curve);
	CHECK(!pen__jdoc_open(&d.j, json.p, json.n, d.name, NULL));
	if (page)
		pen__capacity_show(&out, &d, 0, true);
	else
		pen__capacity_words(&out, &d);
	pen__jdoc_close(&d.j);
	pen__text_fini(&json);
	return out.p;
}

#define POINT(n, a, b, c)                                                      \
	"{\"accelerators\": " #n ", \"au_repeats\": [" #a ", " #b ", " #c "]}"

static void check_capacity(const char *more, const char *curve,
			   const char *want)
{
	char *words = capacity(more, curve, false);

	CHECK_STR(words, want);
	pen__free(words);
}

/* A number with repeats on both sides of the target is uncertain. */
static void test_capacity(void)
{
	const char *feed =
		"This machine and storage feed 4 emulated "
		"accelerators of w\\x1b at 90 % utilisation or more.\n";
	char want[512];

	check_capacity("\"accelerators\": 4",
		       POINT(2, 99, 98, 99) "," POINT(4, 93, 95, 91) "," POINT(
			       5, 80, 82, 81),
		       feed);
	snprintf(want, sizeof(want),
		 "%sWithin noise: 2 reached the target in every repeat, 5 in "
		 "some.\n",
		 feed);
	check_capacity("\"accelerators\": 4",
		       POINT(2, 99, 98, 99) "," POINT(4, 93, 95, 89) "," POINT(
			       5, 80, 92, 81),
		       want);
	snprintf(want, sizeof(want),
		 "%sEvery point was measured once, so the noise is unknown; "
		 "use --repeats 3 or more.\nLarger numbers were not tried: "
		 "--max.\n",
		 feed);
	check_capacity("\"accelerators\": 4, \"stopped\": \"--max\"",
		       "{\"accelerators\": 4, \"au_repeats\": [95]}", want);
	check_capacity("\"accelerators\": 0", POINT(1, 50, 60, 40),
		       "This machine and storage cannot feed one accelerator "
		       "of w\\x1b at 90 % utilisation.\n");
	check_capacity("\"accelerators\": 0, \"partial\": true", "",
		       "The search was interrupted: the limit is unknown.\n");
}

/* A busy machine is reported before the answer, and points have their spread.
 */
static void test_capacity_page(void)
{
	char *page = capacity("\"accelerators\": 4, \"others\": {\"seconds\": "
			      "2, \"cpus\": 2, \"cpu_s\": 3}",
			      POINT(4, 93, 95, 89) "," POINT(5, 80, 92, 81),
			      true);
	const char *busy = strstr(page, "The machine was busy");

	CHECK(busy && strstr(busy, "feed 4 emulated"));
	CHECK(strstr(page,
		     "none reached the target in every repeat, 5 in some"));
	pen__free(page);
	page = capacity("\"accelerators\": 4",
			"{\"accelerators\": 4, \"au_percentage\": 93, "
			"\"au_repeats\": [93, 95, 89]}",
			true);
	CHECK(strstr(page, "class=\"spread\""));
	CHECK(!strstr(page, "busy"));
	pen__free(page);
}

int main(void)
{
	CHECK_EQ(pen__experiments_read(NULL), 0);
	test_line();
	test_bad_lines();
	test_cuts();
	test_flips();
	test_file();
	test_page();
	test_blocks();
	test_none();
	test_memory();
	test_colours();
	test_capacity();
	test_capacity_page();
	return test_end();
}
