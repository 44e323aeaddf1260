/*
 * Option tables: text in, typed members of a struct out. Numbers are strict:
 * the entire string counts, nothing is silently negative, infinite or
 * truncated, and the decimal point is a point in every locale. What cannot be
 * read is answered with a suggestion.
 */
#include "base/opt.h"

#include <errno.h>
#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

struct unit {
	const char *name;
	uint64_t mult;
};

static const struct unit sizes[] = {
	{ "", 1 },
	{ "B", 1 },
	{ "kB", 1000 },
	{ "KB", 1000 },
	{ "MB", 1000000 },
	{ "GB", 1000000000 },
	{ "TB", 1000000000000 },
	{ "KiB", (uint64_t)1 << 10 },
	{ "MiB", (uint64_t)1 << 20 },
	{ "GiB", (uint64_t)1 << 30 },
	{ "TiB", (uint64_t)1 << 40 },
	/* bare letters are binary, as in fio and dd */
	{ "k", (uint64_t)1 << 10 },
	{ "K", (uint64_t)1 << 10 },
	{ "M", (uint64_t)1 << 20 },
	{ "G", (uint64_t)1 << 30 },
	{ "T", (uint64_t)1 << 40 },
	{ NULL, 0 },
};

static const struct unit counts[] = {
	{ "", 1 },	  { "k", 1000 },       { "K", 1000 },
	{ "M", 1000000 }, { "G", 1000000000 }, { NULL, 0 },
};

/* No bare numbers: the unit of 5 is ambiguous. */
static const struct unit times[] = {
	{ "ns", 1 },	     { "us", 1000 },	     { "ms", 1000000 },
	{ "s", 1000000000 }, { "min", 60000000000 }, { "h", 3600000000000 },
	{ NULL, 0 },
};

static size_t digits(const char *s)
{
	return strspn(s, "0123456789");
}

/*
 * The length of an unsigned decimal number at s, 0 if there is none; *whole: it
 * has neither point nor exponent.
 */
static size_t number_length(const char *s, bool *whole)
{
	size_t n = digits(s), e;

	*whole = true;
	if (s[n] == '.') {
		const size_t frac = digits(s + n + 1);

		if (!n && !frac)
			return 0;
		n += 1 + frac;
		*whole = false;
	}
	if (n && (s[n] == 'e' || s[n] == 'E')) {
		e = n + 1 + (s[n + 1] == '+' || s[n + 1] == '-');
		if (digits(s + e)) {
			n = e + digits(s + e);
			*whole = false;
		}
	}
	return n;
}

/* In glibc, newlocale() allocates nothing for "C". */
static long double to_real(const char *s)
{
	locale_t c = newlocale(LC_ALL_MASK, "C", (locale_t)0);
	long double v = c ? strtold_l(s, NULL, c) : (long double)NAN;

	if (c)
		freelocale(c);
	return v;
}

/* Not a truncated to_real(): that would round twice. */
static double to_double(const char *s)
{
	locale_t c = newlocale(LC_ALL_MASK, "C", (locale_t)0);
	double v = c ? strtod_l(s, NULL, c) : (double)NAN;

	if (c)
		freelocale(c);
	return v;
}

static bool parse_whole(const char *s, size_t n, uint64_t *out)
{
	uint64_t v = 0;

	for (size_t i = 0; i < n; i++)
		if (__builtin_mul_overflow(v, (uint64_t)10, &v) ||
		    __builtin_add_overflow(v, (uint64_t)(s[i] - '0'), &v))
			return false;
	*out = v;
	return true;
}

/*
 * Number and unit. `exact` rejects anything but an integer number of base
 * units; otherwise it is rounded, as in 1.3GiB, but never between 0 and 1.
 */
static int parse_units(const char *s, const struct unit *u, bool exact,
		       uint64_t *out)
{
	bool whole;
	const size_t n = number_length(s, &whole);
	long double v;

	while (u->name && strcmp(u->name, s + n))
		u++;
	if (!n || !u->name)
		return PEN_EINVAL;
	if (whole) {
		uint64_t i;

		if (!parse_whole(s, n, &i) ||
		    __builtin_mul_overflow(i, u->mult, out))
			return PEN_EINVAL;
		return 0;
	}
	v = to_real(s) * (long double)u->mult;
	if (!(v < 0x1p64L))
		return PEN_EINVAL;
	if (v != roundl(v) && (exact || u->mult == 1 || v < 1))
		return PEN_EINVAL;
	v = roundl(v);
	if (!(v < 0x1p64L))
		return PEN_EINVAL;
	*out = (uint64_t)v;
	return 0;
}

int pen__parse_size(const char *s, uint64_t *out)
{
	return parse_units(s, sizes, false, out);
}

int pen__parse_count(const char *s, uint64_t *out)
{
	return parse_units(s, counts, true, out);
}

static int parse_time(const char *s, uint64_t *out)
{
	if (!strcmp(s, "0")) {
		*out = 0;
		return 0;
	}
	return parse_units(s, times, false, out);
}

static int parse_int(const char *s, int64_t *out)
{
	const bool minus = *s == '-';
	const uint64_t most = (uint64_t)INT64_MAX + minus;
	uint64_t v;
	size_t n;

	s += *s == '-' || *s == '+';
	n = digits(s);
	if (!n || s[n] || !parse_whole(s, n, &v) || v > most)
		return PEN_EINVAL;
	*out = minus ? (int64_t)-v : (int64_t)v;
	return 0;
}

static int parse_double(const char *s, double *out)
{
	const char *p = s + (*s == '-' || *s == '+');
	bool whole;
	const size_t n = number_length(p, &whole);
	double v;

	if (!n || p[n])
		return PEN_EINVAL;
	v = to_double(p);
	if (!isfinite(v))
		return PEN_EINVAL;
	*out = *s == '-' ? -v : v;
	return 0;
}

static int parse_bool(const char *s, bool *out)
{
	static const char *const words[] = { "false", "true", "no", "yes",
					     "off",   "on",   "0",  "1" };

	for (unsigned i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		if (!strcasecmp(s, words[i])) {
			*out = i % 2;
			return 0;
		}
	return PEN_EINVAL;
}

static int parse_enum(const char *s, const char *const *choices, int *out)
{
	for (int i = 0; choices && choices[i]; i++)
		if (!strcmp(s, choices[i])) {
			*out = i;
			return 0;
		}
	return PEN_EINVAL;
}

/* Appends to a string in cap bytes; excess is cut off. */
static void append(char *to, size_t cap, const char *more)
{
	const size_t n = strlen(to);

	snprintf(to + n, cap - n, "%s", more);
}

static int fail_enum(const struct pen_opt *o, const char *value,
		     struct pen_err *err)
{
	const char *near = o->choices ? pen__nearest(value, o->choices) : NULL;
	char list[200] = "";

	if (near)
		return pen__fail(
			err, P_BAD_VALUE, o->name,
			"'%.40s' is not a valid choice; did you mean '%s'?",
			value, near);
	for (unsigned i = 0; o->choices && o->choices[i]; i++) {
		append(list, sizeof(list), i ? ", " : "");
		append(list, sizeof(list), o->choices[i]);
	}
	return pen__fail(err, P_BAD_VALUE, o->name,
			 "'%.40s' is not a valid choice; choose from: %s",
			 value, list);
}

static int fail_kind(const struct pen_opt *o, const char *value,
		     struct pen_err *err)
{
	static const char *const kind[] = {
		[PEN_OPT_BOOL] = "a boolean",
		[PEN_OPT_INT] = "an integer",
		[PEN_OPT_SIZE] = "a size",
		[PEN_OPT_COUNT] = "a count",
		[PEN_OPT_DOUBLE] = "a number",
		[PEN_OPT_TIME] = "a time",
		[PEN_OPT_LIST] = "a list of integers",
	};
	static const char *const hint[] = {
		[PEN_OPT_BOOL] = "true or false",
		[PEN_OPT_INT] = "8",
		[PEN_OPT_SIZE] = "64KiB or 1.5GB",
		[PEN_OPT_COUNT] = "1000, 10k or 1e6",
		[PEN_OPT_DOUBLE] = "0.5",
		[PEN_OPT_TIME] = "50us, 1.5ms or 2s",
		[PEN_OPT_LIST] = "[64, 64] or 64x64",
	};

	return pen__fail(err, P_BAD_VALUE, o->name, "'%.80s' is not %s; try %s",
			 value, kind[o->type], hint[o->type]);
}

static int check_range(const struct pen_opt *o, double v, const char *value,
		       struct pen_err *err)
{
	if (!(o->max > o->min) || (v >= o->min && v <= o->max))
		return 0;
	return pen__fail(err, P_BAD_VALUE, o->name,
			 "'%.80s' is out of range; use %.15g to %.15g", value,
			 o->min, o->max);
}

static int set_str(char **to, const char *name, const char *value,
		   struct pen_err *err)
{
	char *s = NULL;

	if (*value) {
		s = pen__strdup(value);
		if (!s)
			return pen__fail_nomem(err, name, strlen(value) + 1);
	}
	pen__free(*to);
	*to = s;
	return 0;
}

/* Members are written only if the value is valid. */
static int set_number(const struct pen_opt *o, void *to, const char *value,
		      struct pen_err *err)
{
	double d = 0;
	uint64_t u = 0;
	int64_t i = 0;
	int ret;

	switch (o->type) {
	case PEN_OPT_INT:
		ret = parse_int(value, &i);
		d = (double)i;
		break;
	case PEN_OPT_DOUBLE:
		ret = parse_double(value, &d);
		break;
	case PEN_OPT_SIZE:
		ret = pen__parse_size(value, &u);
		d = (double)u;
		break;
	case PEN_OPT_TIME:
		ret = parse_time(value, &u);
		d = (double)u;
		break;
	default:
		ret = pen__parse_count(value, &u);
		d = (double)u;
		break;
	}
	if (ret)
		return fail_kind(o, value, err);
	if (check_range(o, d, value, err))
		return PEN_EINVAL;
	if (o->type == PEN_OPT_INT)
		*(int64_t *)to = i;
	else if (o->type == PEN_OPT_DOUBLE)
		*(double *)to = d;
	else
		*(uint64_t *)to = u;
	return 0;
}

#define LIST_MAX 4096

/* Integers separated by commas, blanks or x, with or without brackets. */
static int parse_list(const char *s, int64_t *v, size_t *n)
{
	static const char between[] = ", x\t\n";
	const bool open = s[strspn(s, between)] == '[';

	s += open ? strspn(s, between) + 1 : 0;
	for (*n = 0;; (*n)++) {
		char *end;

		s += strspn(s, between);
		if (!*s || *s == ']')
			break;
		errno = 0;
		if (*s < '0' || *s > '9' || *n == LIST_MAX)
			return PEN_EINVAL;
		v[*n] = strtoll(s, &end, 10);
		if (errno)
			return PEN_EINVAL;
		s = end;
	}
	if (open != (*s == ']'))
		return PEN_EINVAL;
	s += *s == ']';
	return s[strspn(s, between)] ? PEN_EINVAL : 0;
}

static int set_list(const struct pen_opt *o, struct pen_opt_list *to,
		    const char *value, struct pen_err *err)
{
	int64_t *v = pen__alloc(LIST_MAX, sizeof(*v)), *fit = NULL;
	size_t n = 0;
	int rc = v ? 0 : pen__fail_nomem(err, o->name, LIST_MAX);

	if (!rc && parse_list(value, v, &n))
		rc = fail_kind(o, value, err);
	if (!rc && n) {
		fit = pen__alloc(n, sizeof(*v));
		if (fit)
			memcpy(fit, v, n * sizeof(*v));
		else
			rc = pen__fail_nomem(err, o->name, n * sizeof(*v));
	}
	pen__free(v);
	if (rc)
		return rc;
	pen__free(to->v);
	*to = (struct pen_opt_list){ fit, n };
	return 0;
}

static int set(const struct pen_opt *o, void *base, const char *value,
	       struct pen_err *err)
{
	void *to = (char *)base + o->off;
	int i;

	if (!value)
		return pen__fail(err, P_MISSING_SETTING, o->name,
				 "needs a value");
	switch (o->type) {
	case PEN_OPT_BOOL:
		return parse_bool(value, to) ? fail_kind(o, value, err) : 0;
	case PEN_OPT_STR:
		if (o->choices && parse_enum(value, o->choices, &i))
			return fail_enum(o, value, err);
		return set_str(to, o->name, value, err);
	case PEN_OPT_LIST:
		return set_list(o, to, value, err);
	case PEN_OPT_ENUM:
		return parse_enum(value, o->choices, to)
			       ? fail_enum(o, value, err)
			       : 0;
	default:
		return set_number(o, to, value, err);
	}
}

static unsigned min3(unsigned a, unsigned b, unsigned c)
{
	a = a < b ? a : b;
	return a < c ? a : c;
}

#define WORD_MAX PEN_NEAR_MAX

/* Edits between two words: insert, delete, replace, swap neighbours. */
static unsigned distance(const char *a, const char *b)
{
	unsigned d[3][WORD_MAX + 1];
	const unsigned na = (unsigned)strlen(a), nb = (unsigned)strlen(b);

	if (na > WORD_MAX || nb > WORD_MAX)
		return UINT32_MAX;
	for (unsigned j = 0; j <= nb; j++)
		d[0][j] = j;
	for (unsigned i = 1; i <= na; i++) {
		unsigned *now = d[i % 3];
		const unsigned *up = d[(i + 2) % 3], *up2 = d[(i + 1) % 3];

		now[0] = i;
		for (unsigned j = 1; j <= nb; j++) {
			now[j] = min3(up[j] + 1, now[j - 1] + 1,
				      up[j - 1] + (a[i - 1] != b[j - 1]));
			if (i > 1 && j > 1 && a[i - 1] == b[j - 2] &&
			    a[i - 2] == b[j - 1] && up2[j - 2] + 1 < now[j])
				now[j] = up2[j - 2] + 1;
		}
	}
	return d[na % 3][nb];
}

void pen__guess(struct pen_guess *n, const char *word, const char *candidate,
		const char *meant)
{
	const unsigned d = distance(word, candidate);

	if (d <= 1 + strlen(word) / 4 && d < strlen(candidate) &&
	    (!n->best || d < n->edits))
		*n = (struct pen_guess){ meant, d };
}

const char *pen__nearest(const char *word, const char *const *words)
{
	struct pen_guess n = { 0 };

	for (; *words; words++)
		pen__guess(&n, word, *words, *words);
	return n.best;
}

struct pen_near pen__near(const void *word, size_t n)
{
	struct pen_near near = { 0 };

	if (n <= WORD_MAX)
		memcpy(near.word, word, n);
	return near;
}

void pen__near_see(struct pen_near *near, const void *name, size_t n)
{
	char text[WORD_MAX + 1] = "";
	struct pen_guess g = { *near->best ? near->best : NULL, near->edits };

	if (!*near->word || n > WORD_MAX)
		return;
	memcpy(text, name, n);
	pen__guess(&g, near->word, text, text);
	if (g.best != text)
		return;
	memcpy(near->best, text, sizeof(text));
	near->edits = g.edits;
}

struct pen_near_text pen__near_text(const struct pen_near *near)
{
	struct pen_near_text t = { "" };

	if (*near->best)
		snprintf(t.s, sizeof(t.s), "; did you mean '%s'?", near->best);
	return t;
}

static int fail_unknown(const struct pen_opt *opts, const char *kind,
			const char *name, struct pen_err *err)
{
	struct pen_guess near = { 0 };
	char list[200] = "";

	for (const struct pen_opt *o = opts; o && o->name; o++) {
		pen__guess(&near, name, o->name, o->name);
		append(list, sizeof(list), o == opts ? "" : ", ");
		append(list, sizeof(list), kind);
		append(list, sizeof(list), o->name);
	}
	if (near.best)
		return pen__fail(err, P_UNKNOWN_NAME, name,
				 "unknown option; did you mean '%s%s'?", kind,
				 near.best);
	if (!list[0])
		return pen__fail(err, P_UNKNOWN_NAME, name,
				 "unknown option; there are no options here");
	return pen__fail(err, P_UNKNOWN_NAME, name,
			 "unknown option; choose from: %s", list);
}

const struct pen_opt *pen__opt_find(const struct pen_opt *opts,
				    const char *name)
{
	for (; opts && opts->name; opts++)
		if (!strcmp(opts->name, name))
			return opts;
	return NULL;
}

static size_t size_of(enum pen_opt_type type)
{
	switch (type) {
	case PEN_OPT_BOOL:
		return sizeof(bool);
	case PEN_OPT_ENUM:
		return sizeof(int);
	case PEN_OPT_STR:
		return sizeof(char *);
	case PEN_OPT_LIST:
		return sizeof(struct pen_opt_list);
	default:
		return sizeof(uint64_t);
	}
}

int pen__opt_defaults(const struct pen_opt *opts, void *to, struct pen_err *err)
{
	int ret;

	/* zero all first: a failure half-way leaves nothing undefined */
	for (const struct pen_opt *o = opts; o && o->name; o++)
		memset((char *)to + o->off, 0, size_of(o->type));
	for (const struct pen_opt *o = opts; o && o->name; o++) {
		ret = o->dflt ? set(o, to, o->dflt, err) : 0;
		if (ret) {
			pen__opt_fini(opts, to);
			return ret;
		}
	}
	return 0;
}

int pen__opt_set(const struct pen_opt *opts, void *to, const char *name,
		 const char *value, struct pen_err *err)
{
	const struct pen_opt *o = pen__opt_find(opts, name);

	return o ? set(o, to, value, err) : fail_unknown(opts, "", name, err);
}

/* The same, with the name as users write it in messages. */
static int set_kind(const struct pen_opt *opts, void *to, const char *kind,
		    const struct pen_opts_kv *kv, struct pen_err *err)
{
	const struct pen_opt *o = pen__opt_find(opts, kv->key);
	struct pen_err why = { 0 };
	char name[128];
	int rc = o ? set(o, to, kv->value, &why)
		   : fail_unknown(opts, kind, kv->key, &why);

	if (!rc)
		return 0;
	snprintf(name, sizeof(name), "%s%s", kind, kv->key);
	return pen__fail_as(err, &why, name, "%s", why.msg);
}

int pen__opt_fill(const struct pen_opt *opts, void *to,
		  const struct pen_opts_kv *kv, size_t nkv, const char *kind,
		  struct pen_err *err)
{
	int ret = pen__opt_defaults(opts, to, err);

	for (size_t i = 0; i < nkv && !ret; i++) {
		ret = set_kind(opts, to, kind, &kv[i], err);
		if (ret)
			pen__opt_fini(opts, to);
	}
	return ret;
}

void pen__opt_err(const struct pen_opt *opts, const char *kind,
		  struct pen_err *err)
{
	char where[sizeof(err->where)];

	if (!err || !pen__opt_find(opts, err->where))
		return;
	snprintf(where, sizeof(where), "%s", err->where);
	snprintf(err->where, sizeof(err->where), "%s%s", kind, where);
}

static void list_text(const struct pen_opt_list *list, char *buf, size_t cap)
{
	size_t n = 0;

	for (size_t i = 0; i < list->n && n < cap; i++)
		n += (size_t)snprintf(buf + n, cap - n, "%s%lld", i ? "x" : "",
				      (long long)list->v[i]);
}

void pen__opt_text(const struct pen_opt *o, const void *of, char *buf,
		   size_t cap)
{
	const void *at = (const char *)of + o->off;

	if (cap)
		buf[0] = '\0';
	switch (o->type) {
	case PEN_OPT_BOOL:
		snprintf(buf, cap, "%s", *(const bool *)at ? "true" : "false");
		break;
	case PEN_OPT_INT:
		snprintf(buf, cap, "%lld", (long long)*(const int64_t *)at);
		break;
	case PEN_OPT_SIZE:
	case PEN_OPT_COUNT:
		snprintf(buf, cap, "%llu",
			 (unsigned long long)*(const uint64_t *)at);
		break;
	case PEN_OPT_TIME:
		snprintf(buf, cap, "%lluns",
			 (unsigned long long)*(const uint64_t *)at);
		break;
	case PEN_OPT_DOUBLE:
		snprintf(buf, cap, "%.17g", *(const double *)at);
		break;
	case PEN_OPT_STR:
		if (*(char *const *)at)
			snprintf(buf, cap, "%s", *(char *const *)at);
		break;
	case PEN_OPT_ENUM:
		snprintf(buf, cap, "%s", o->choices[*(const int *)at]);
		break;
	case PEN_OPT_LIST:
		list_text(at, buf, cap);
		break;
	}
}

void pen__opt_fini(const struct pen_opt *opts, void *of)
{
	for (; opts && opts->name; opts++) {
		void *at = (char *)of + opts->off;

		if (opts->type == PEN_OPT_STR) {
			pen__free(*(char **)at);
			*(char **)at = NULL;
		} else if (opts->type == PEN_OPT_LIST) {
			pen__free(((struct pen_opt_list *)at)->v);
			*(struct pen_opt_list *)at =
				(struct pen_opt_list){ NULL, 0 };
		}
	}
}

const char *pen__opt_type(const struct pen_opt *o)
{
	static const char *const names[] = {
		[PEN_OPT_BOOL] = "boolean",  [PEN_OPT_INT] = "integer",
		[PEN_OPT_SIZE] = "size",     [PEN_OPT_COUNT] = "count",
		[PEN_OPT_DOUBLE] = "number", [PEN_OPT_TIME] = "time",
		[PEN_OPT_STR] = "text",	     [PEN_OPT_ENUM] = "choice",
		[PEN_OPT_LIST] = "list",
	};

	return names[o->type];
}
