/*
 * BED files: name, start, end (zero-based, end excluded), then optionally a
 * label or name, a score and a strand. Columns are separated by tabs, and may
 * then be empty or contain blanks, or by blanks. Header lines (#, track,
 * browser) and empty lines are skipped.
 *
 * Refuses lines that are not intervals and empty intervals, naming the line.
 */
#include <errno.h>
#include <inttypes.h>
#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/quote.h"
#include "base/rng.h"
#include "format/sequence/sequence.h"

#define MOST_BED ((size_t)1 << 31)

static int read_file(struct pen_seq_bed *b, const char *path,
		     struct pen_err *err)
{
	FILE *in = fopen(path, "re");
	static const size_t piece = 65536;
	uint8_t *buf = pen__alloc(piece, 1);
	size_t n = 0;
	int rc = 0;

	if (!in)
		rc = pen__fail_sys(err, errno, path,
				   "cannot open the BED file");
	else if (!buf)
		rc = pen__fail_nomem(err, path, piece);
	while (!rc && (n = fread(buf, 1, piece, in)) > 0 && !b->file.bad &&
	       b->file.n < MOST_BED)
		pen__buf_put(&b->file, buf, n);
	if (!rc && ferror(in))
		rc = pen__fail_sys(err, errno, path,
				   "cannot read the BED file");
	else if (!rc && b->file.bad)
		rc = pen__fail_nomem(err, path, b->file.n);
	else if (!rc && n)
		rc = pen__fail(err, P_OVER_LIMIT, path,
			       "larger than 2 GiB, the limit for BED files");
	if (in)
		fclose(in);
	pen__free(buf);
	return rc;
}

static uint64_t hash_of(const void *p, size_t n)
{
	const uint8_t *b = p;
	uint64_t h = 0xbed ^ n;

	for (size_t i = 0; i < n; i++)
		h = pen__mix64(h ^ b[i]) + i;
	return h;
}

/* The rest of a line, and how its columns are separated. */
struct line {
	const uint8_t *p, *e;
	bool tabs;
};

static bool is_blank(uint8_t c)
{
	return c == ' ' || c == '\t';
}

static struct pen_span next_column(struct line *l)
{
	struct pen_span s;

	while (l->p < l->e && (l->tabs ? *l->p == ' ' : is_blank(*l->p)))
		l->p++;
	s.p = l->p;
	while (l->p < l->e && !(l->tabs ? *l->p == '\t' : is_blank(*l->p)))
		l->p++;
	s.n = (size_t)(l->p - s.p);
	while (s.n && s.p[s.n - 1] == ' ')
		s.n--;
	l->p += l->tabs && l->p < l->e;
	return s;
}

static bool take_count(struct pen_span s, uint64_t *v)
{
	*v = 0;
	for (size_t i = 0; i < s.n; i++) {
		if (s.p[i] < '0' || s.p[i] > '9' || *v > INT64_MAX / 10 - 10)
			return false;
		*v = *v * 10 + (uint64_t)(s.p[i] - '0');
	}
	return s.n > 0;
}

/* Parses a label; false: it is not a number. */
static bool take_label(struct pen_span s, double *v)
{
	char text[64], *end;

	if (!s.n || s.n >= sizeof(text) || !memchr("+-.0123456789", s.p[0], 13))
		return false;
	memcpy(text, s.p, s.n);
	text[s.n] = '\0';
	if (strpbrk(text, "xX") || strlen(text) < s.n)
		return false;
	*v = strtod(text, &end);
	return *end == '\0' && isfinite(*v);
}

static bool is_heading(struct pen_span s)
{
	return !s.n || s.p[0] == '#' ||
	       (s.n == 5 && !memcmp(s.p, "track", 5)) ||
	       (s.n == 7 && !memcmp(s.p, "browser", 7));
}

/* Parses name, start and end. */
static bool take_place(struct pen_seq_bed *b, struct line *l,
		       struct pen_seq_interval *v)
{
	const struct pen_span s = next_column(l);

	v->name = (uint32_t)(s.p - b->file.p);
	v->name_len = (uint32_t)s.n;
	return s.n && take_count(next_column(l), &v->from) &&
	       take_count(next_column(l), &v->to);
}

static int add_line(struct pen_seq_bed *b, const uint8_t *p, const uint8_t *e,
		    uint64_t *cap, struct pen_seq_interval *v)
{
	struct line l = { p, e, .tabs = false };
	struct pen_span s = next_column(&l);

	if (is_heading(s))
		return 0;
	l = (struct line){ p, e, .tabs = true };
	if (!take_place(b, &l, v)) {
		l = (struct line){ p, e, .tabs = false };
		if (!take_place(b, &l, v))
			return PEN_EDATA;
	}
	if (v->from >= v->to)
		return PEN_EINVAL;
	if (!take_label(next_column(&l), &v->label))
		b->labels = false;
	b->whole &= v->label == floor(v->label) && fabs(v->label) < 0x1p53;
	next_column(&l); /* score */
	s = next_column(&l);
	v->minus = s.n == 1 && s.p[0] == '-';
	if (b->n == *cap) {
		void *more =
			pen__realloc(b->v, *cap ? *cap * 2 : 64, sizeof(*v));

		if (!more)
			return PEN_ENOMEM;
		b->v = more;
		*cap = *cap ? *cap * 2 : 64;
	}
	if (b->n >= UINT32_MAX - 1)
		return PEN_EDATA;
	b->v[b->n++] = *v;
	return 0;
}

static bool same_name(const struct pen_seq_bed *b, uint64_t i, const void *p,
		      size_t n)
{
	const struct pen_seq_interval *v = &b->v[i];

	return v->name_len == n && (!n || !memcmp(b->file.p + v->name, p, n));
}

/* Each name leads to its first interval, which leads to the next of that
 * name. */
static bool hash_names(struct pen_seq_bed *b)
{
	uint64_t n = 16;

	while (n < b->n * 2)
		n *= 2;
	b->slot = pen__calloc(n, sizeof(*b->slot));
	b->next = pen__alloc(b->n ? b->n : 1, sizeof(*b->next));
	b->mask = n - 1;
	if (!b->slot || !b->next)
		return false;
	for (uint64_t i = b->n;
	     i-- > 0;) { /* so that the lists are in file order */
		const void *name = b->file.p + b->v[i].name;
		const size_t len = b->v[i].name_len;
		uint64_t at = hash_of(name, len) & b->mask;

		while (b->slot[at] && !same_name(b, b->slot[at] - 1, name, len))
			at = (at + 1) & b->mask;
		b->next[i] = b->slot[at] - 1; /* UINT32_MAX: last of its name */
		b->slot[at] = (uint32_t)i + 1;
	}
	return true;
}

uint32_t pen__seq_bed_find(const struct pen_seq_bed *b, const void *name,
			   size_t len)
{
	uint64_t at = hash_of(name, len) & b->mask;

	while (b->slot[at] && !same_name(b, b->slot[at] - 1, name, len))
		at = (at + 1) & b->mask;
	return b->slot[at] - 1;
}

static int no_interval(const char *path, const struct pen_seq_interval *v,
		       struct pen_span line, int rc, struct pen_err *err)
{
	if (rc == PEN_EINVAL)
		return pen__fail(err, P_BAD_DATA_VALUE, path,
				 "line %u: the interval from %" PRIu64
				 " to %" PRIu64 " is empty",
				 v->line, v->from, v->to);
	return pen__fail(err, P_BAD_TEXT, path,
			 "line %u is not an interval: %s; write NAME START "
			 "END, for example chr1 1000 2024",
			 v->line, pen__quoted(line.p, line.n).s);
}

/* Skips a UTF-8 byte order mark. */
static size_t text_start(const struct pen_buf *b)
{
	return b->n >= 3 && !memcmp(b->p, "\xef\xbb\xbf", 3) ? 3 : 0;
}

int pen__seq_bed_read(struct pen_seq_bed *b, const char *path,
		      struct pen_err *err)
{
	struct pen_seq_interval v = { 0 };
	struct pen_span text = { 0 };
	uint64_t cap = 0;
	uint32_t line = 0;
	locale_t c, was;
	int rc = read_file(b, path, err);

	if (rc)
		return rc;
	if (b->file.n > 2 && !memcmp(b->file.p, "\x1f\x8b", 2))
		return pen__fail(err, P_UNSUPPORTED_FEATURE, path,
				 "compressed BED files are not supported; "
				 "decompress it with gunzip");
	c = newlocale(LC_ALL_MASK, "C", (locale_t)0);
	if (!c)
		return pen__fail_nomem(err, path, 0);
	was = uselocale(c);
	b->labels = b->whole = true;
	b->hash = hash_of(b->file.p, b->file.n) | 1;
	for (size_t at = text_start(&b->file); !rc && at < b->file.n;) {
		const uint8_t *p = b->file.p + at,
			      *nl = memchr(p, '\n', b->file.n - at),
			      *e = nl ? nl : b->file.p + b->file.n;

		at = (size_t)(e - b->file.p) + 1;
		e -= e > p && e[-1] == '\r';
		v = (struct pen_seq_interval){ .line = ++line };
		text = (struct pen_span){ p, (size_t)(e - p) };
		rc = add_line(b, p, e, &cap, &v);
	}
	uselocale(was);
	freelocale(c);
	if (rc == PEN_EDATA || rc == PEN_EINVAL)
		return no_interval(path, &v, text, rc, err);
	if (!rc && !b->n)
		return pen__fail(err, P_NO_SAMPLES, path,
				 "the BED file has no intervals");
	b->labels = b->labels && b->n;
	return rc || !hash_names(b) ? pen__fail_nomem(err, path, b->n * 48) : 0;
}

void pen__seq_bed_fini(struct pen_seq_bed *b)
{
	pen__buf_fini(&b->file);
	pen__free(b->v);
	pen__free(b->slot);
	pen__free(b->next);
	*b = (struct pen_seq_bed){ 0 };
}
