/* What may be written for a value, and the message if it may not. */
#include "test.h"

#include <locale.h>

#include "base/mem.h"
#include "base/opt.h"

struct settings {
	bool flag;
	int64_t depth;
	uint64_t buffer, count, timeout;
	double rate;
	char *path, *other;
	int mode;
};

static const char *const modes[] = { "fast", "safe", "slow", NULL };

#define OPT(member) .name = #member, .off = offsetof(struct settings, member)
static const struct pen_opt table[] = {
	{ OPT(flag), .type = PEN_OPT_BOOL, .dflt = "yes" },
	{ OPT(depth), .type = PEN_OPT_INT, .dflt = "8", .min = -4, .max = 64 },
	{ OPT(buffer), .type = PEN_OPT_SIZE, .dflt = "64KiB" },
	{ OPT(count), .type = PEN_OPT_COUNT, .dflt = "10k", .max = 1e9 },
	{ OPT(timeout), .type = PEN_OPT_TIME, .dflt = "1.5ms" },
	{ OPT(rate), .type = PEN_OPT_DOUBLE, .dflt = "0.1" },
	{ OPT(path), .type = PEN_OPT_STR, .dflt = "/tmp" },
	{ OPT(other), .type = PEN_OPT_STR },
	{ OPT(mode), .type = PEN_OPT_ENUM, .dflt = "safe", .choices = modes },
	{ .name = NULL },
};

static void sizes(void)
{
	static const struct {
		const char *s;
		uint64_t v;
	} good[] = {
		{ "0", 0 },
		{ "4096", 4096 },
		{ "1B", 1 },
		{ "3kB", 3000 },
		{ "3KB", 3000 },
		{ "64KiB", 65536 },
		{ "64K", 65536 },
		{ "64k", 65536 },
		{ "1.5GB", 1500000000 },
		{ "2G", 2147483648 },
		{ "1.5MiB", 1572864 },
		{ "7TB", 7000000000000 },
		{ "2TiB", 2199023255552 },
		{ "1T", 1099511627776 },
		{ "1.3GiB", 1395864371 },
		{ "1e3", 1000 },
		{ "2.0", 2 },
		{ ".5K", 512 },
		{ "18446744073709551615", UINT64_MAX },
	};
	static const char *const bad[] = {
		"",
		"x",
		"12x",
		"-1",
		"+1",
		" 1",
		"1 ",
		"1 KB",
		"1.5",
		"1.5B",
		"0.1",
		"nan",
		"inf",
		"1e40",
		"K",
		"KiB",
		"1kib",
		"1e",
		"1e+",
		".",
		"0x10",
		"1,5GB",
		"1..2",
		"1KiBB",
		"18446744073709551616",
		"16777216TiB",
		"18446744073709551615K",
		"18446744.1TB",
		"0.00001K",
	};
	uint64_t v;

	for (unsigned i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		CHECK_EQ(pen__parse_size(good[i].s, &v), 0);
		CHECK_EQ(v, good[i].v);
	}
	for (unsigned i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		v = 77;
		if (!CHECK(pen__parse_size(bad[i], &v) == PEN_EINVAL))
			fprintf(stderr, "'%s' is %" PRIu64 "\n", bad[i], v);
		/* "1.5" of anything is not a count either */
		CHECK_EQ(pen__parse_count(bad[i], &v), PEN_EINVAL);
	}
}

static void counts(void)
{
	uint64_t v;

	CHECK(!pen__parse_count("1000", &v) && v == 1000);
	CHECK(!pen__parse_count("10k", &v) && v == 10000);
	CHECK(!pen__parse_count("1M", &v) && v == 1000000);
	CHECK(!pen__parse_count("1e6", &v) && v == 1000000);
	CHECK(!pen__parse_count("1.1M", &v) && v == 1100000);
	CHECK(!pen__parse_count("2.5G", &v) && v == 2500000000);
	CHECK(!pen__parse_count("1e18", &v) && v == 1000000000000000000);
	CHECK(pen__parse_count("1.0001k", &v) == PEN_EINVAL);
	CHECK(pen__parse_count("1KiB", &v) == PEN_EINVAL);
	CHECK(pen__parse_count("1e-1", &v) == PEN_EINVAL);
}

static void defaults(void)
{
	struct settings s;
	struct pen_err e = { 0 };

	memset(&s, 0xff, sizeof(s)); /* defaults do not need zeroed memory */
	CHECK_EQ(pen__opt_defaults(table, &s, &e), 0);
	CHECK(s.flag);
	CHECK_EQ(s.depth, 8);
	CHECK_EQ(s.buffer, 65536);
	CHECK_EQ(s.count, 10000);
	CHECK_EQ(s.timeout, 1500000);
	CHECK(s.rate == 0.1);
	CHECK_STR(s.path, "/tmp");
	CHECK(s.other == NULL);
	CHECK_EQ(s.mode, 1);
	CHECK_EQ(pen__opt_set(table, &s, "path", "a", &e), 0);
	CHECK_EQ(pen__opt_set(table, &s, "path", "", &e), 0);
	CHECK(s.path == NULL);
	CHECK_EQ(pen__opt_set(table, &s, "path", "b", &e), 0);
	pen__opt_fini(table, &s);
	CHECK(s.path == NULL);
	CHECK_EQ(pen__opt_defaults(NULL, &s, &e), 0);
	pen__opt_fini(NULL, &s);
	CHECK(pen__opt_find(table, "rate") == &table[5]);
	CHECK(!pen__opt_find(table, "rat"));
	CHECK(!pen__opt_find(NULL, "rate"));
}

static void good(struct settings *s, const char *name, const char *value)
{
	struct pen_err e = { 0 };

	if (!CHECK(pen__opt_set(table, s, name, value, &e) == 0))
		fprintf(stderr, "%s=%s: %s\n", name, value, e.msg);
}

static void values(struct settings *s)
{
	good(s, "flag", "off");
	CHECK(!s->flag);
	good(s, "flag", "TRUE");
	CHECK(s->flag);
	good(s, "flag", "0");
	CHECK(!s->flag);
	good(s, "depth", "-4");
	CHECK_EQ(s->depth, -4);
	good(s, "depth", "+64");
	CHECK_EQ(s->depth, 64);
	good(s, "rate", "-1.25e-3");
	CHECK(s->rate == -1.25e-3);
	good(s, "rate", "3");
	CHECK(s->rate == 3);
	good(s, "timeout", "50us");
	CHECK_EQ(s->timeout, 50000);
	good(s, "timeout", "2s");
	CHECK_EQ(s->timeout, 2000000000);
	good(s, "timeout", "0.1s");
	CHECK_EQ(s->timeout, 100000000);
	good(s, "timeout", "2min");
	CHECK_EQ(s->timeout, 120000000000);
	good(s, "timeout", "0");
	CHECK_EQ(s->timeout, 0);
	good(s, "mode", "slow");
	CHECK_EQ(s->mode, 2);
}

static void bad(const char *name, const char *value, const char *msg)
{
	struct settings s, old;
	struct pen_err e = { 0 };

	CHECK_EQ(pen__opt_defaults(table, &s, NULL), 0);
	old = s;
	CHECK_EQ(pen__opt_set(table, &s, name, value, &e), PEN_EINVAL);
	CHECK_EQ(e.code, PEN_EINVAL);
	CHECK_STR(e.where, name);
	CHECK_STR(e.msg, msg);
	CHECK(s.depth == old.depth && s.buffer == old.buffer &&
	      s.rate == old.rate && s.mode == old.mode && s.flag == old.flag &&
	      s.count == old.count && s.timeout == old.timeout);
	CHECK_EQ(pen__opt_set(table, &s, name, value, NULL), PEN_EINVAL);
	pen__opt_fini(table, &s);
}

static void errors(void)
{
	bad("buffer", "12x", "'12x' is not a size; try 64KiB or 1.5GB");
	bad("depth", "9x", "'9x' is not an integer; try 8");
	bad("depth", "9223372036854775808",
	    "'9223372036854775808' is not an integer; try 8");
	bad("depth", "65", "'65' is out of range; use -4 to 64");
	bad("count", "2G", "'2G' is out of range; use 0 to 1000000000");
	bad("count", "-5", "'-5' is not a count; try 1000, 10k or 1e6");
	bad("rate", "nan", "'nan' is not a number; try 0.5");
	bad("rate", "1e999", "'1e999' is not a number; try 0.5");
	bad("rate", "0x1p3", "'0x1p3' is not a number; try 0.5");
	bad("rate", "", "'' is not a number; try 0.5");
	bad("timeout", "5", "'5' is not a time; try 50us, 1.5ms or 2s");
	bad("flag", "maybe", "'maybe' is not a boolean; try true or false");
	bad("mode", "quick",
	    "'quick' is not a valid choice; choose from: fast, safe, slow");
	bad("mode", "fasst",
	    "'fasst' is not a valid choice; did you mean 'fast'?");
	bad("depht", "1", "unknown option; did you mean 'depth'?");
	bad("bufer", "1", "unknown option; did you mean 'buffer'?");
	bad("xyzzy", "1",
	    "unknown option; choose from: flag, depth, buffer, count, timeout, "
	    "rate, path, other, mode");
	bad("depth", NULL, "needs a value");
}

static void filling(void)
{
	const struct pen_opts_kv kv[] = { { "path", "/data" },
					  { "other", "x" },
					  { "depth", "99" } };
	struct settings s;
	struct pen_err e = { 0 };

	CHECK_EQ(pen__opt_fill(table, &s, kv, 2, "", &e), 0);
	CHECK_STR(s.path, "/data");
	pen__opt_fini(table, &s);
	CHECK_EQ(pen__opt_fill(table, &s, kv, 3, "", &e), PEN_EINVAL);
	CHECK(!s.path && !s.other);
	CHECK_EQ(pen__opt_fill(NULL, NULL, NULL, 0, "", &e), 0);
	CHECK_EQ(pen__opt_fill(NULL, NULL, kv, 1, "", &e), PEN_EINVAL);
	CHECK_STR(e.msg, "unknown option; there are no options here");
	/* by the names that users write */
	CHECK_EQ(pen__opt_fill(table, &s, kv + 2, 1, "of.", &e), PEN_EINVAL);
	CHECK_STR(e.where, "of.depth");
	CHECK_EQ(pen__opt_fill(table, &s, &(struct pen_opts_kv){ "dept", "1" },
			       1, "of.", &e),
		 PEN_EINVAL);
	CHECK_STR(e.where, "of.dept");
	CHECK_STR(e.msg, "unknown option; did you mean 'of.depth'?");
	for (uint64_t nth = 1; nth <= 3; nth++) {
		pen__mem_fail_nth(nth, false);
		CHECK_EQ(pen__opt_fill(table, &s, kv, 2, "", &e), PEN_ENOMEM);
		pen__mem_fail_nth(0, false);
		CHECK(!s.path && !s.other);
	}
}

static void nearest(void)
{
	static const char *const words[] = { "shuffle", "sequential", "block",
					     NULL };
	struct pen_near near;
	char longer[200];

	CHECK_STR(pen__nearest("shufle", words), "shuffle");
	CHECK_STR(pen__nearest("sequental", words), "sequential");
	CHECK_STR(pen__nearest("blcok", words), "block");
	CHECK(!pen__nearest("weighted", words));
	CHECK(!pen__nearest("", words));
	memset(longer, 'a', sizeof(longer));
	longer[sizeof(longer) - 1] = '\0';
	CHECK(!pen__nearest(longer, words));
	near = pen__near("cel_type,x", 8);
	pen__near_see(&near, "cell", 4);
	CHECK_STR(pen__near_text(&near).s, "");
	pen__near_see(&near, "cell_types", 10);
	pen__near_see(&near, "cell_type of", 9);
	pen__near_see(&near, longer, sizeof(longer));
	pen__near_see(&near, "", 0);
	CHECK_STR(pen__near_text(&near).s, "; did you mean 'cell_type'?");
	near = pen__near(longer, sizeof(longer));
	pen__near_see(&near, longer, sizeof(longer));
	pen__near_see(&near, longer, PEN_NEAR_MAX);
	CHECK_STR(pen__near_text(&near).s, "");
	near = pen__near(longer, PEN_NEAR_MAX);
	pen__near_see(&near, longer, PEN_NEAR_MAX - 1);
	CHECK_EQ(strlen(pen__near_text(&near).s), 16 + 39 + 2);
}

int main(void)
{
	struct settings s;

	sizes();
	counts();
	defaults();
	CHECK_EQ(pen__opt_defaults(table, &s, NULL), 0);
	values(&s);
	/* a comma as the decimal point must not matter, where a locale has
	 * one */
	if (setlocale(LC_ALL, "de_DE.UTF-8"))
		values(&s);
	pen__opt_fini(table, &s);
	errors();
	filling();
	nearest();
	return test_end();
}
