/*
 * The JSON reader: what it accepts, what it rejects and with which message,
 * every truncation of a document, out of memory.
 */
#include <math.h>

#include "base/json.h"
#include "base/mem.h"
#include "test.h"

static int parse(struct pen_jdoc *j, const char *text, struct pen_err *err)
{
	*err = (struct pen_err){ 0 };
	return pen__jdoc_open(j, text, strlen(text), "doc", err);
}

static void test_values(void)
{
	struct pen_jdoc j;
	struct pen_err err;
	uint64_t n = 0;
	double v = 0;
	uint32_t a;

	CHECK_EQ(parse(&j,
		       " {\"a\": [1, 2.5e1, -3, \"x\"], \"b\": {\"c\": null},\n"
		       "\"t\": true, \"f\": false, \"a\": [7, 0], \"e\": [],"
		       "\"n\": NaN, \"i\": -Infinity, \"big\": 1e300}\t",
		       &err),
		 0);
	CHECK_EQ(pen__jdoc_type(&j, 0), PEN_JDOC_OBJECT);
	CHECK_EQ(pen__jdoc_count(&j, 0), 9);
	a = pen__jdoc_get(&j, 0, "a");
	CHECK_EQ(pen__jdoc_count(&j, a), 2); /* the last one counts */
	CHECK(pen__jdoc_count_of(&j, pen__jdoc_first(&j, a), &n) && n == 7);
	a = pen__jdoc_next(&j, pen__jdoc_first(&j, a));
	CHECK(pen__jdoc_count_of(&j, a, &n) && n == 0);
	CHECK_EQ(pen__jdoc_next(&j, a), PEN_JDOC_NONE);
	a = pen__jdoc_first(&j, pen__jdoc_first(&j, 0));
	a = pen__jdoc_next(&j, a);
	CHECK(pen__jdoc_number(&j, a, &v) && v >= 25 && v <= 25);
	a = pen__jdoc_next(&j, a);
	CHECK(pen__jdoc_number(&j, a, &v) && v <= -3);
	CHECK(!pen__jdoc_count_of(&j, a, &n));
	CHECK(pen__jdoc_is(&j, pen__jdoc_next(&j, a), "x"));
	a = pen__jdoc_get(&j, pen__jdoc_get(&j, 0, "b"), "c");
	CHECK(a != PEN_JDOC_NONE && pen__jdoc_type(&j, a) == PEN_JDOC_NULL);
	CHECK_EQ(pen__jdoc_type(&j, pen__jdoc_get(&j, 0, "t")), PEN_JDOC_TRUE);
	CHECK_EQ(pen__jdoc_type(&j, pen__jdoc_get(&j, 0, "f")), PEN_JDOC_FALSE);
	CHECK_EQ(pen__jdoc_first(&j, pen__jdoc_get(&j, 0, "e")), PEN_JDOC_NONE);
	CHECK(pen__jdoc_number(&j, pen__jdoc_get(&j, 0, "n"), &v) && isnan(v));
	CHECK(!pen__jdoc_count_of(&j, pen__jdoc_get(&j, 0, "n"), &n));
	CHECK(pen__jdoc_number(&j, pen__jdoc_get(&j, 0, "i"), &v) && isinf(v) &&
	      v < 0);
	CHECK(!pen__jdoc_count_of(&j, pen__jdoc_get(&j, 0, "big"), &n));
	/* missing nodes lead nowhere */
	CHECK_EQ(pen__jdoc_get(&j, 0, "z"), PEN_JDOC_NONE);
	CHECK_EQ(pen__jdoc_get(&j, PEN_JDOC_NONE, "z"), PEN_JDOC_NONE);
	CHECK_EQ(pen__jdoc_get(&j, a, "z"), PEN_JDOC_NONE);
	CHECK(!pen__jdoc_text(&j, PEN_JDOC_NONE) && !pen__jdoc_text(&j, 0));
	CHECK(!pen__jdoc_number(&j, PEN_JDOC_NONE, &v));
	CHECK_EQ(pen__jdoc_count(&j, PEN_JDOC_NONE), 0);
	pen__jdoc_close(&j);
}

/* All digits, which a double does not have. */
static void test_integers(void)
{
	static const struct {
		const char *text;
		uint64_t amount;
		bool minus;
	} good[] = {
		{ "0", 0, false },
		{ "-0", 0, false },
		{ "9007199254740993", 9007199254740993, false },
		{ "9223372036854775807", INT64_MAX, false },
		{ "-9223372036854775808", (uint64_t)1 << 63, true },
		{ "18446744073709551615", UINT64_MAX, false },
		{ "-5.0", 5, true },
		{ "1e3", 1000, false },
	};
	static const char *const bad[] = { "18446744073709551616",
					   "0.5",
					   "1e19",
					   "NaN",
					   "-Infinity",
					   "\"1\"",
					   "null" };
	struct pen_jdoc j;
	struct pen_err err;
	uint64_t n;
	bool minus;

	for (size_t i = 0; i < sizeof(good) / sizeof(*good); i++) {
		CHECK_EQ(parse(&j, good[i].text, &err), 0);
		CHECK(pen__jdoc_integer(&j, 0, &n, &minus) &&
		      n == good[i].amount && minus == good[i].minus);
		pen__jdoc_close(&j);
	}
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		CHECK_EQ(parse(&j, bad[i], &err), 0);
		CHECK(!pen__jdoc_integer(&j, 0, &n, &minus));
		CHECK(!pen__jdoc_integer(&j, PEN_JDOC_NONE, &n, &minus));
		pen__jdoc_close(&j);
	}
}

static void test_strings(void)
{
	struct pen_jdoc j;
	struct pen_err err;

	CHECK_EQ(parse(&j,
		       "[\"\\\"\\\\\\/\\b\\f\\n\\r\\t\", \"\\u0041\\u00eb"
		       "\\u20ac\\ud83e\\uddec\", \"Zo\xc3\xab\", \"\"]",
		       &err),
		 0);
	CHECK_STR(pen__jdoc_text(&j, 1), "\"\\/\b\f\n\r\t");
	CHECK_STR(pen__jdoc_text(&j, 2),
		  "A\xc3\xab\xe2\x82\xac\xf0\x9f\xa7\xac");
	CHECK_STR(pen__jdoc_text(&j, 3), "Zo\xc3\xab");
	CHECK_STR(pen__jdoc_text(&j, 4), "");
	pen__jdoc_close(&j);
}

static void test_refused(void)
{
	static const char *const bad[][2] = {
		{ "", "is empty" },
		{ " ", "a value is missing" },
		{ "{", "no name" },
		{ "{}{", "more than one" },
		{ "[1,]", "a value is missing" },
		{ "[1 2]", "is not terminated" },
		{ "{\"a\"}", "no value" },
		{ "{\"a\" 1}", "no value" },
		{ "{a: 1}", "no name" },
		{ "{\"a\": 1,}", "no name" },
		{ "\"abc", "is not terminated" },
		{ "\"a\tb\"", "invalid character or escape" },
		{ "\"\\x\"", "invalid character or escape" },
		{ "\"\\u12g4\"", "invalid character or escape" },
		{ "\"\\ud83e\"", "invalid character or escape" },
		{ "\"\\ud83e\\u0041\"", "invalid character or escape" },
		{ "\"\\udded\"", "invalid character or escape" },
		{ "\"\\u12", "invalid character or escape" },
		{ "01", "more than one" },
		{ "1.", "is malformed" },
		{ "1e", "is malformed" },
		{ "-", "a value is missing" },
		{ "+1", "a value is missing" },
		{ ".5", "a value is missing" },
		{ "tru", "a value is missing" },
		{ "nul", "a value is missing" },
		{ "'a'", "a value is missing" },
	};
	struct pen_jdoc j;
	struct pen_err err;
	char deep[300];

	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		if (!CHECK_EQ(parse(&j, bad[i][0], &err), PEN_EDATA) ||
		    !CHECK(strstr(err.msg, bad[i][1]) != NULL))
			fprintf(stderr, "  %s: %s\n", bad[i][0], err.msg);
		CHECK_STR(err.where, "doc");
	}
	CHECK_EQ(pen__jdoc_open(&j, NULL, 0, "doc", &err), PEN_EDATA);
	CHECK_STR(err.msg, "the JSON document is empty");
	memset(deep, '[', sizeof(deep));
	CHECK_EQ(pen__jdoc_open(&j, deep, sizeof(deep), "doc", &err),
		 PEN_EDATA);
	CHECK(strstr(err.msg, "deeply") != NULL);
	memset(deep, '9', sizeof(deep));
	CHECK_EQ(pen__jdoc_open(&j, deep, sizeof(deep), "doc", &err),
		 PEN_EDATA);
	CHECK(strstr(err.msg, "63 characters") != NULL);
}

/* Exactly these bytes, so that a sanitizer detects one more. */
static void test_cut(void)
{
	static const char doc[] =
		"{\"shape\": [3, 4], \"name\": \"Zo\\u00eb\\n\", \"x\": "
		"-1.5e-3,"
		" \"o\": {\"a\": [true, false, null, [], {}]}}";
	struct pen_jdoc j;

	for (size_t n = 0; n < sizeof(doc); n++) {
		char *p = malloc(n ? n : 1);
		int rc;

		memcpy(p, doc, n);
		rc = pen__jdoc_open(&j, p, n, "doc", NULL);
		CHECK_EQ(rc, n == sizeof(doc) - 1 ? 0 : PEN_EDATA);
		pen__jdoc_close(&j);
		free(p);
	}
	for (uint64_t i = 1;; i++) {
		struct pen_err err = { 0 };
		int rc;

		pen__mem_fail_nth(i, false);
		rc = parse(&j, doc, &err);
		if (pen__mem_count() < i) {
			pen__mem_fail_nth(0, false);
			CHECK_EQ(rc, 0);
			pen__jdoc_close(&j);
			break;
		}
		pen__mem_fail_nth(0, false);
		CHECK(rc == PEN_ENOMEM && err.code == PEN_ENOMEM);
	}
}

int main(void)
{
	test_values();
	test_integers();
	test_strings();
	test_refused();
	test_cut();
	return test_end();
}
