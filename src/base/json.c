/*
 * A JSON reader for small documents: one pass, nodes in the order they start,
 * strings decoded into one arena that is never longer than the document.
 * Rejects anything outside the grammar, nesting deeper than DEPTH, escapes that
 * are not Unicode, and documents of 4 GiB.
 */
#include "base/json.h"

#include <math.h>
#include <stdlib.h>

#include "base/mem.h"

#define DEPTH 64

struct reader {
	struct pen_jdoc *j;
	const char *at, *end;
	const char *why; /* what is wrong; NULL: out of memory */
	bool bad;
};

static uint32_t fail(struct reader *r, const char *why)
{
	if (!r->bad)
		r->why = why;
	r->bad = true;
	return PEN_JDOC_NONE;
}

static void skip_space(struct reader *r)
{
	while (r->at < r->end && (*r->at == ' ' || *r->at == '\t' ||
				  *r->at == '\n' || *r->at == '\r'))
		r->at++;
}

static bool take_char(struct reader *r, char c)
{
	skip_space(r);
	if (r->at == r->end || *r->at != c)
		return false;
	r->at++;
	return true;
}

static uint32_t add(struct reader *r, enum pen_jdoc_type type)
{
	struct pen_jdoc *j = r->j;

	if (j->n == j->cap) {
		const uint32_t cap = j->cap ? j->cap * 2 : 32;
		void *p = pen__realloc(j->node, cap, sizeof(*j->node));

		if (!p)
			return fail(r, NULL);
		j->node = p;
		j->cap = cap;
	}
	j->node[j->n] = (struct pen_jdoc_node){ .type = type,
						.next = PEN_JDOC_NONE,
						.first = PEN_JDOC_NONE };
	return j->n++;
}

/* ---- strings ---- */

static void put(struct reader *r, unsigned c)
{
	r->j->text[r->j->ntext++] = (char)c;
}

/* An escape is at least as long as its character. */
static void put_rune(struct reader *r, uint32_t c)
{
	if (c < 0x80) {
		put(r, c);
	} else if (c < 0x800) {
		put(r, 0xc0 | c >> 6);
		put(r, 0x80 | (c & 0x3f));
	} else if (c < 0x10000) {
		put(r, 0xe0 | c >> 12);
		put(r, 0x80 | (c >> 6 & 0x3f));
		put(r, 0x80 | (c & 0x3f));
	} else {
		put(r, 0xf0 | c >> 18);
		put(r, 0x80 | (c >> 12 & 0x3f));
		put(r, 0x80 | (c >> 6 & 0x3f));
		put(r, 0x80 | (c & 0x3f));
	}
}

static bool take_hex(struct reader *r, uint32_t *out)
{
	*out = 0;
	if (r->end - r->at < 4)
		return false;
	for (int i = 0; i < 4; i++) {
		const char c = *r->at++;

		*out <<= 4;
		if (c >= '0' && c <= '9')
			*out |= (uint32_t)(c - '0');
		else if ((c | 32) >= 'a' && (c | 32) <= 'f')
			*out |= (uint32_t)((c | 32) - 'a' + 10);
		else
			return false;
	}
	return true;
}

static bool take_unicode(struct reader *r)
{
	uint32_t c, low;

	if (!take_hex(r, &c))
		return false;
	if (c >= 0xdc00 && c < 0xe000)
		return false;
	if (c >= 0xd800 && c < 0xdc00) {
		if (r->end - r->at < 2 || r->at[0] != '\\' || r->at[1] != 'u')
			return false;
		r->at += 2;
		if (!take_hex(r, &low) || low < 0xdc00 || low >= 0xe000)
			return false;
		c = 0x10000 + ((c - 0xd800) << 10) + (low - 0xdc00);
	}
	put_rune(r, c);
	return true;
}

static bool take_escape(struct reader *r)
{
	static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
	const char *p;

	if (r->at == r->end)
		return false;
	if (*r->at == 'u') {
		r->at++;
		return take_unicode(r);
	}
	p = *r->at ? strchr(from, *r->at) : NULL;
	if (!p)
		return false;
	r->at++;
	put(r, (unsigned char)to[p - from]);
	return true;
}

/* After the opening quote: its position in text, and its length. */
static bool take_string(struct reader *r, uint32_t *at, uint32_t *n)
{
	*at = r->j->ntext;
	while (r->at < r->end && *r->at != '"') {
		const unsigned char c = (unsigned char)*r->at++;

		if (c < 0x20 || (c == '\\' && !take_escape(r))) {
			fail(r, "a string contains an invalid character or "
				"escape");
			return false;
		}
		if (c != '\\')
			put(r, c);
	}
	if (r->at == r->end) {
		fail(r, "a string is not terminated");
		return false;
	}
	r->at++;
	*n = r->j->ntext - *at;
	put(r, 0); /* its quotes leave room for that */
	return true;
}

/* ---- values ---- */

static bool word(struct reader *r, const char *w)
{
	const size_t n = strlen(w);

	if ((size_t)(r->end - r->at) < n || memcmp(r->at, w, n) != 0)
		return false;
	r->at += n;
	return true;
}

static bool digits(const char **p, const char *end)
{
	const char *from = *p;

	while (*p < end && **p >= '0' && **p <= '9')
		++*p;
	return *p > from;
}

/* 0: it has a fraction or an exponent, or exceeds 64 bits. */
static uint64_t amount_of(const char *text)
{
	uint64_t v = 0;

	for (; *text; text++)
		if (*text < '0' || *text > '9' ||
		    __builtin_mul_overflow(v, 10, &v) ||
		    __builtin_add_overflow(v, (uint64_t)(*text - '0'), &v))
			return 0;
	return v;
}

static uint32_t take_number(struct reader *r)
{
	const char *p = r->at;
	uint32_t i = add(r, PEN_JDOC_NUMBER);
	char text[64], *stop;
	size_t n;

	p += p < r->end && *p == '-';
	if (p < r->end && *p == '0')
		p++;
	else if (!digits(&p, r->end))
		return fail(r, "a value is missing");
	if (p < r->end && *p == '.') {
		p++;
		if (!digits(&p, r->end))
			return fail(r, "a number is malformed");
	}
	if (p < r->end && (*p | 32) == 'e') {
		p++;
		p += p < r->end && (*p == '+' || *p == '-');
		if (!digits(&p, r->end))
			return fail(r, "a number is malformed");
	}
	n = (size_t)(p - r->at);
	if (n >= sizeof(text))
		return fail(r, "a number has more than 63 characters");
	if (i == PEN_JDOC_NONE)
		return i;
	memcpy(text, r->at, n);
	text[n] = '\0';
	r->j->node[i].number = strtod(text, &stop);
	r->j->node[i].amount = amount_of(text + (text[0] == '-'));
	r->at = p;
	return i;
}

static uint32_t add_number(struct reader *r, double v)
{
	const uint32_t i = add(r, PEN_JDOC_NUMBER);

	if (i != PEN_JDOC_NONE)
		r->j->node[i].number = v;
	return i;
}

static uint32_t take_scalar(struct reader *r)
{
	uint32_t i, at, n;

	if (take_char(r, '"')) {
		i = add(r, PEN_JDOC_STRING);
		if (i == PEN_JDOC_NONE || !take_string(r, &at, &n))
			return PEN_JDOC_NONE;
		r->j->node[i].text = at;
		r->j->node[i].n = n;
		return i;
	}
	if (word(r, "null"))
		return add(r, PEN_JDOC_NULL);
	if (word(r, "true"))
		return add(r, PEN_JDOC_TRUE);
	if (word(r, "false"))
		return add(r, PEN_JDOC_FALSE);
	if (word(r, "NaN"))
		return add_number(r, (double)NAN);
	if (word(r, "Infinity"))
		return add_number(r, (double)INFINITY);
	if (word(r, "-Infinity"))
		return add_number(r, -(double)INFINITY);
	return take_number(r);
}

static uint32_t take_value(struct reader *r, unsigned depth);

/* One child of a list or an object. */
static uint32_t take_child(struct reader *r, bool named, unsigned depth)
{
	uint32_t key = 0, n, i;

	if (named) {
		if (!take_char(r, '"'))
			return fail(r, "a member has no name");
		if (!take_string(r, &key, &n))
			return PEN_JDOC_NONE;
		if (!take_char(r, ':'))
			return fail(r, "a member has no value");
	}
	i = take_value(r, depth);
	if (i != PEN_JDOC_NONE)
		r->j->node[i].key = key;
	return i;
}

static uint32_t take_children(struct reader *r, bool named, unsigned depth)
{
	const char close = named ? '}' : ']';
	uint32_t last = PEN_JDOC_NONE, i, child;

	i = add(r, named ? PEN_JDOC_OBJECT : PEN_JDOC_LIST);
	if (i == PEN_JDOC_NONE || take_char(r, close))
		return i;
	if (depth >= DEPTH)
		return fail(r, "it is nested too deeply");
	do {
		child = take_child(r, named, depth + 1);
		if (child == PEN_JDOC_NONE)
			return child;
		if (last == PEN_JDOC_NONE)
			r->j->node[i].first = child;
		else
			r->j->node[last].next = child;
		last = child;
		r->j->node[i].n++;
	} while (take_char(r, ','));
	return take_char(r, close)
		       ? i
		       : fail(r, "a list or object is not terminated");
}

static uint32_t take_value(struct reader *r, unsigned depth)
{
	skip_space(r);
	if (take_char(r, '{'))
		return take_children(r, true, depth);
	if (take_char(r, '['))
		return take_children(r, false, depth);
	return take_scalar(r);
}

int pen__jdoc_again(struct pen_jdoc *j, const void *p, size_t n,
		    const char *where, struct pen_err *err)
{
	struct reader r = { .j = j, .at = p };
	void *text = j->text;

	j->n = j->ntext = 0;
	if (!n || n >= UINT32_MAX)
		return pen__fail(err, P_BAD_TEXT, where,
				 n ? "the JSON document exceeds 4 GiB"
				   : "the JSON document is empty");
	r.end = r.at + n; /* p may be NULL if n is 0 */
	if (n >= j->text_cap)
		text = pen__realloc(j->text, n + 1, 1);
	if (!text)
		return pen__fail_nomem(err, where, n);
	j->text = text;
	if (n >= j->text_cap)
		j->text_cap = n + 1;
	(void)take_value(&r, 0);
	skip_space(&r);
	if (!r.bad && r.at == r.end)
		return 0;
	j->n = 0;
	if (r.bad && !r.why)
		return pen__fail_nomem(err, where, n);
	return pen__fail(err, P_BAD_TEXT, where,
			 "not valid JSON: at byte %zu, %s",
			 (size_t)(r.at - (const char *)p),
			 r.bad ? r.why : "there is more than one value");
}

int pen__jdoc_open(struct pen_jdoc *j, const void *p, size_t n,
		   const char *where, struct pen_err *err)
{
	int rc;

	*j = (struct pen_jdoc){ 0 };
	rc = pen__jdoc_again(j, p, n, where, err);
	if (rc)
		pen__jdoc_close(j);
	return rc;
}

void pen__jdoc_close(struct pen_jdoc *j)
{
	pen__free(j->node);
	pen__free(j->text);
	*j = (struct pen_jdoc){ 0 };
}

/* ---- queries ---- */

static const struct pen_jdoc_node *node(const struct pen_jdoc *j, uint32_t i)
{
	return i < j->n ? &j->node[i] : NULL;
}

enum pen_jdoc_type pen__jdoc_type(const struct pen_jdoc *j, uint32_t i)
{
	return i < j->n ? j->node[i].type : PEN_JDOC_NULL;
}

uint32_t pen__jdoc_first(const struct pen_jdoc *j, uint32_t i)
{
	return i < j->n ? j->node[i].first : PEN_JDOC_NONE;
}

uint32_t pen__jdoc_next(const struct pen_jdoc *j, uint32_t i)
{
	return i < j->n ? j->node[i].next : PEN_JDOC_NONE;
}

uint32_t pen__jdoc_count(const struct pen_jdoc *j, uint32_t i)
{
	const struct pen_jdoc_node *v = node(j, i);

	return v && v->type >= PEN_JDOC_LIST ? v->n : 0;
}

uint32_t pen__jdoc_get(const struct pen_jdoc *j, uint32_t i, const char *key)
{
	uint32_t found = PEN_JDOC_NONE;

	if (pen__jdoc_type(j, i) != PEN_JDOC_OBJECT)
		return found;
	for (uint32_t c = j->node[i].first; c != PEN_JDOC_NONE;
	     c = j->node[c].next)
		if (strcmp(j->text + j->node[c].key, key) == 0)
			found = c;
	return found;
}

const char *pen__jdoc_text(const struct pen_jdoc *j, uint32_t i)
{
	const struct pen_jdoc_node *v = node(j, i);

	return v && v->type == PEN_JDOC_STRING ? j->text + v->text : NULL;
}

bool pen__jdoc_is(const struct pen_jdoc *j, uint32_t i, const char *text)
{
	const char *s = pen__jdoc_text(j, i);

	return s && strcmp(s, text) == 0;
}

bool pen__jdoc_number(const struct pen_jdoc *j, uint32_t i, double *out)
{
	const struct pen_jdoc_node *v = node(j, i);

	if (!v || v->type != PEN_JDOC_NUMBER)
		return false;
	*out = v->number;
	return true;
}

bool pen__jdoc_count_of(const struct pen_jdoc *j, uint32_t i, uint64_t *out)
{
	double v;

	if (!pen__jdoc_number(j, i, &v) || !(v >= 0 && v <= 0x1p53) ||
	    v > floor(v))
		return false;
	*out = (uint64_t)v;
	return true;
}

bool pen__jdoc_integer(const struct pen_jdoc *j, uint32_t i, uint64_t *amount,
		       bool *minus)
{
	const struct pen_jdoc_node *v = node(j, i);
	double x;

	if (!v || v->type != PEN_JDOC_NUMBER)
		return false;
	x = fabs(v->number);
	*minus = v->number < 0;
	*amount = v->amount;
	if (*amount)
		return true;
	/* 0, or written as 5.0 or 1e3 */
	if (!(x <= 0x1p53) || x > floor(x))
		return false;
	*amount = (uint64_t)x;
	return true;
}
