/*
 * Untrusted text on its way to people and programs: what a terminal would
 * interpret is quoted, and invalid UTF-8 never gets into JSON.
 */
#include "test.h"

#include "base/err.h"
#include "base/json.h"
#include "base/text.h"

static void check_quote(const char *from, const char *want)
{
	struct pen_text t = { 0 };
	char buf[256];

	CHECK(pen__quote(buf, sizeof(buf), from));
	CHECK_STR(buf, want);
	CHECK_EQ(pen__is_plain(from), !strcmp(from, want));
	CHECK(pen__is_plain(want));
	pen__text_quote(&t, from);
	CHECK_STR(t.p ? t.p : "", want);
	pen__text_fini(&t);
	/* as much as fits, in entire characters */
	for (size_t cap = 1; cap <= strlen(want); cap++) {
		CHECK(!pen__quote(buf, cap, from));
		CHECK(strlen(buf) < cap && pen__is_plain(buf));
		CHECK(!strncmp(buf, want, strlen(buf)));
	}
}

/* The first and the last character of each range that is not plain, and their
 * neighbours. */
static void test_plain(void)
{
	static const char *const plain[] = {
		" ",
		"~",
		"\xc2\xa0",
		"\xe2\x80\xa7",
		"\xe2\x80\xaf",
		"\xe2\x81\xa5",
		"\xe2\x81\xaa",
	};
	static const char *const other[] = {
		"\x1f",		"\x7f",		"\xc2\x80",
		"\xc2\x9f",	"\xe2\x80\xa8", "\xe2\x80\xae",
		"\xe2\x81\xa6", "\xe2\x81\xa9", "\xff",
	};

	for (size_t i = 0; i < sizeof(plain) / sizeof(*plain); i++)
		CHECK_EQ(pen__plain_len(plain[i]), strlen(plain[i]));
	for (size_t i = 0; i < sizeof(other) / sizeof(*other); i++)
		CHECK_EQ(pen__plain_len(other[i]), 0);
}

static void test_quote(void)
{
	check_quote("", "");
	check_quote("plain \\ text\xc3\xa9 \xe2\x82\xac \xf0\x9f\x8e\xb5",
		    "plain \\ text"
		    "\xc3\xa9 \xe2\x82\xac \xf0\x9f\x8e\xb5");
	check_quote("\x1b[2J\x1b]0;t\a", "\\x1b[2J\\x1b]0;t\\x07");
	check_quote("a\nb\tc\rd\x7f", "a\\x0ab\\x09c\\x0dd\\x7f");
	/* C1: a terminal takes U+009B for ESC [ */
	check_quote("\xc2\x9b"
		    "2J \xc2\xa0",
		    "\\xc2\\x9b2J \xc2\xa0");
	check_quote("\x9b"
		    "2J \xff",
		    "\\x9b2J \\xff");
	/* reverses the direction of what follows */
	check_quote("x\xe2\x80\xaegnp", "x\\xe2\\x80\\xaegnp");
	check_quote("\xe2\x81\xa6", "\\xe2\\x81\\xa6");
	check_quote("cut \xe2\x82", "cut \\xe2\\x82");
	CHECK_STR(pen__quoted("", 0).s, "''");
	CHECK_STR(pen__quoted("a\0\n\r\t\xff\x1b", 7).s,
		  "'a\\x00\\n\\r\\t\\xff\\x1b'");
	CHECK_STR(pen__quoted("123456789012345678901234", 24).s,
		  "'123456789012345678901234'");
	CHECK_STR(pen__quoted("\1\1\1\1\1\1\1\1\1\1\1\1\1\1\1\1\1\1\1\1\1\1\1"
			      "\1\1",
			      25)
			  .s,
		  "'\\x01\\x01\\x01\\x01\\x01\\x01\\x01\\x01\\x01\\x01"
		  "\\x01\\x01\\x01\\x01\\x01\\x01\\x01\\x01\\x01\\x01"
		  "\\x01\\x01\\x01\\x01...'");
}

/* A length beyond all memory is a failure, and does not wrap around. */
static void test_too_long(void)
{
	static const size_t of[] = { SIZE_MAX, SIZE_MAX - 1, SIZE_MAX / 2 };

	for (size_t i = 0; i < sizeof(of) / sizeof(of[0]); i++) {
		volatile size_t n = of[i];
		struct pen_text t = { 0 };

		pen__text_put(&t, "abc", 3);
		CHECK(!t.failed);
		pen__text_put(&t, "x", n);
		CHECK(t.failed && t.n == 3);
		CHECK_STR(t.p, "abc");
		pen__text_fini(&t);
	}
}

static void test_utf8(void)
{
	static const struct {
		const char *s;
		size_t n;
	} of[] = {
		{ "a", 1 },
		{ "\x7f", 1 },
		{ "\xc3\xa9", 2 },
		{ "\xed\x9f\xbf", 3 },
		{ "\xf4\x8f\xbf\xbf", 4 },
		{ "\x80", 0 },
		{ "\xc0\x80", 0 }, /* overlong */
		{ "\xe0\x9f\xbf", 0 },
		{ "\xf0\x8f\xbf\xbf", 0 },
		{ "\xed\xa0\x80", 0 },	   /* half of a surrogate pair */
		{ "\xf4\x90\x80\x80", 0 }, /* beyond the last */
		{ "\xf5\x80\x80\x80", 0 },
		{ "\xe2\x82", 0 },
		{ "\xff", 0 },
	};

	for (size_t i = 0; i < sizeof(of) / sizeof(of[0]); i++)
		CHECK_EQ(pen__utf8_len(of[i].s), of[i].n);
}

/* What is written can be read by other programs, whatever it contains. */
static void test_json(void)
{
	struct pen_text t = { 0 };
	struct pen_jdoc j;
	struct pen_err err = { 0 };

	pen__json_open(&t, NULL, '{');
	pen__json_str(&t, "s", "\xed\xa0\x80\xc0\xaf\x1b\x9b\xc3\xa9\n\"\\<");
	pen__json_close(&t, '}');
	for (size_t i = 0; i < t.n; i += pen__utf8_len(t.p + i))
		if (!pen__utf8_len(t.p + i)) {
			CHECK(!"UTF-8");
			break;
		}
	CHECK(!strchr(t.p, 0x1b));
	CHECK_EQ(pen__jdoc_open(&j, t.p, t.n, "text", &err), 0);
	CHECK(pen__jdoc_is(&j, pen__jdoc_get(&j, 0, "s"),
			   "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd"
			   "\xef\xbf\xbd\x1b\xef\xbf\xbd\xc3\xa9\n\"\\<"));
	pen__jdoc_close(&j);
	pen__text_fini(&t);
}

/* Errors quote untrusted names, and are printed by all kinds of programs. */
static void test_err(void)
{
	struct pen_err e = { 0 };
	char name[2 * sizeof(e.msg)];

	pen__fail(&e, P_DAMAGED, "a\x1b[31m\nb.npy", "of '%s'", "\x9b\x1b]");
	CHECK_STR(e.where, "a\\x1b[31m\\x0ab.npy");
	CHECK_STR(e.msg, "of '\\x9b\\x1b]'");
	pen__fail(&e, P_DAMAGED, e.where, "again");
	CHECK_STR(e.where, "a\\x1b[31m\\x0ab.npy");
	/* too long when quoted: a place keeps its end */
	memset(name, 0x1b, sizeof(name));
	memcpy(name + sizeof(name) - 10, "/last.npy", 10);
	pen__fail(&e, P_DAMAGED, name, "%s", name);
	CHECK(strlen(e.where) < sizeof(e.where));
	CHECK(!strncmp(e.where, "...\\x1b", 7));
	CHECK_STR(e.where + strlen(e.where) - 9, "/last.npy");
	CHECK(strlen(e.msg) < sizeof(e.msg));
	CHECK(!strncmp(e.msg, "\\x1b\\x1b", 8));
	CHECK_STR(e.msg + strlen(e.msg) - 3, "...");
	CHECK(pen__is_plain(e.where) && pen__is_plain(e.msg));
	/* fits as it is, but not quoted */
	memset(name, 'x', sizeof(name));
	name[sizeof(e.where) - 2] = 0x1b;
	name[sizeof(e.where) - 1] = '\0';
	pen__fail(&e, P_DAMAGED, name, "x");
	CHECK(!strncmp(e.where, "...x", 4));
	CHECK_STR(e.where + strlen(e.where) - 6, "xx\\x1b");
}

int main(void)
{
	test_plain();
	test_quote();
	test_too_long();
	test_utf8();
	test_json();
	test_err();
	return test_end();
}
