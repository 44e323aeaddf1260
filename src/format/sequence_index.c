/*
 * Indexing sequences: the text goes through once, its format finds records,
 * and here they are counted, cut into samples and put down in columns. Lines
 * of equal length, as nearly all files have them, take nothing but a number
 * that says how long they are. Of others it is put down where every 4096th
 * letter is.
 *
 * Refuses bytes that are no text, naming the line.
 */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

#include "base/mem.h"
#include "format/sequence.h"

#define VERSION 1u

int pen__seq_fail(struct pen_seq_scan *s, const char *fmt, ...)
{
	char what[200];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(what, sizeof(what), fmt, ap);
	va_end(ap);
	return pen__fail(s->err, PEN_EDATA, s->pk->name, "line %" PRIu64 ": %s",
			 s->line, what);
}

int pen__seq_nomem(struct pen_seq_scan *s)
{
	return pen__fail_nomem(s->err, s->pk->name, s->col[0].n * 8);
}

int pen__seq_put(struct pen_seq_scan *s, enum pen_seq_column c, uint64_t v)
{
	return pen__list_add(&s->col[c], v) ? 0 : pen__seq_nomem(s);
}

/* ---- lines of letters ---- */

void pen__seq_lines_begin(struct pen_seq_lines *l, uint64_t at)
{
	*l = (struct pen_seq_lines){ .first = at, .line = at };
}

/* Are there marks to be kept of these lines? Not of qualities. */
static bool is_marked(const struct pen_seq_scan *s,
		      const struct pen_seq_lines *l)
{
	return !s->p->ops->quality && l == &s->letters;
}

static int add_marks(struct pen_seq_scan *s, const struct pen_seq_lines *l,
		     uint64_t to)
{
	const struct pen_list *first = &s->col[PEN_SEQ_ODD_FIRST];
	const uint64_t had = s->col[PEN_SEQ_MARK].n - first->v[first->n - 1];
	int rc = 0;

	for (uint64_t j = had * PEN_SEQ_MARK_EVERY; !rc && j < to;
	     j += PEN_SEQ_MARK_EVERY)
		rc = pen__seq_put(s, PEN_SEQ_MARK,
				  !l->bases ? l->first + j
					    : l->first + j / l->bases * l->width +
						      j % l->bases);
	return rc;
}

/* From here on letters are found by marks; those before are put down now. */
static int turn_irregular(struct pen_seq_scan *s, struct pen_seq_lines *l)
{
	int rc;

	if (l->irregular)
		return 0;
	l->irregular = true;
	if (!is_marked(s, l))
		return 0;
	rc = pen__seq_put(s, PEN_SEQ_ODD, s->col[PEN_SEQ_START].n);
	if (!rc)
		rc = pen__seq_put(s, PEN_SEQ_ODD_FIRST,
				  s->col[PEN_SEQ_MARK].n);
	return rc ? rc : add_marks(s, l, l->n + l->now);
}

/* So many letters at the byte at hand. */
static int take_letters(struct pen_seq_scan *s, struct pen_seq_lines *l,
			uint64_t run)
{
	const uint64_t n = l->n + l->now;
	uint64_t next;
	int rc = 0;

	if (!run)
		return 0;
	if (!n)
		l->first = l->line = s->at;
	if (l->closed)
		rc = turn_irregular(s, l);
	if (!rc && l->irregular && is_marked(s, l)) {
		next = (n + PEN_SEQ_MARK_EVERY - 1) / PEN_SEQ_MARK_EVERY *
		       PEN_SEQ_MARK_EVERY;
		for (; !rc && next < n + run; next += PEN_SEQ_MARK_EVERY)
			rc = pen__seq_put(s, PEN_SEQ_MARK, s->at + next - n);
	}
	l->now += run;
	return rc;
}

/* The line's end, its byte at hand or the one before the text's end. */
static int end_line(struct pen_seq_scan *s, struct pen_seq_lines *l)
{
	const uint64_t width = s->at + 1 - l->line, now = l->now;
	int rc = 0;

	if (l->irregular || !(l->n + now)) {
		/* nothing to compare */
	} else if (!l->bases) {
		l->bases = now;
		l->width = width;
	} else if (now > l->bases) {
		rc = turn_irregular(s, l);
	} else if (now < l->bases || width != l->width) {
		l->closed = true;
	}
	l->n += now;
	l->now = 0;
	l->line = s->at + 1;
	return rc;
}

static int odd_byte(struct pen_seq_scan *s, struct pen_seq_lines *l, uint8_t c)
{
	if (c == ' ' || c == '\t' || c == '\r')
		return l->now ? turn_irregular(s, l) : 0;
	if (!c)
		return pen__seq_fail(s, "a NUL byte: this is not text");
	return pen__seq_fail(s, "byte 0x%02x where letters should be", c);
}

int pen__seq_lines_take(struct pen_seq_scan *s, struct pen_seq_lines *l,
			struct pen_span in, size_t *used, bool *ended)
{
	const uint8_t *p = in.p, *e = in.p + in.n;
	int rc = 0;

	*ended = false;
	while (!rc && p < e && !*ended) {
		const size_t run = pen__seq_odd(p, (size_t)(e - p));

		/* what looked like a line's end was none */
		if (s->cr && (run || *p != '\n'))
			rc = odd_byte(s, l, '\r');
		if (!rc)
			rc = take_letters(s, l, run);
		s->cr = false;
		p += run;
		s->at += run;
		if (rc || p == e)
			break;
		if (*p == '\n') {
			rc = end_line(s, l);
			s->line++;
			*ended = true;
		} else if (*p == '\r') {
			s->cr = true;
		} else {
			rc = odd_byte(s, l, *p);
		}
		p++;
		s->at++;
	}
	*used = (size_t)(p - in.p);
	return rc;
}

static unsigned layout_of(struct pen_seq_scan *s, const struct pen_seq_lines *l)
{
	unsigned i = 1;

	while (i < s->nlayouts && (s->layout[i].bases != l->bases ||
				   s->layout[i].width != l->width))
		i++;
	if (i == PEN_SEQ_IRREGULAR)
		return i;
	if (i == s->nlayouts)
		s->layout[s->nlayouts++] =
			(struct pen_seq_layout){ l->bases, l->width };
	return i;
}

int pen__seq_lines_end(struct pen_seq_scan *s, struct pen_seq_lines *l,
		       uint64_t *layout)
{
	int rc = 0;

	if (l->now) /* the text ends without a line's end */
		rc = end_line(s, l);
	s->cr = false;
	s->nlayouts += !s->nlayouts;
	if (l->irregular)
		*layout = PEN_SEQ_IRREGULAR;
	else
		*layout = l->n <= l->bases ? 0 : layout_of(s, l);
	if (!rc && !l->irregular && *layout == PEN_SEQ_IRREGULAR)
		rc = turn_irregular(s, l); /* more kinds than are counted */
	return rc;
}

/* The first word, after any blanks; its bytes are kept where names matter. */
int pen__seq_heading(struct pen_seq_scan *s, struct pen_span in)
{
	const bool keep = s->p->bed_path ||
			  (s->p->window && s->p->want[PEN_SEQ_F_ID]);

	for (size_t i = 0; i < in.n; i++) {
		const uint8_t c = in.p[i];

		if (c == ' ' || c == '\t' || c == '\r') {
			if (s->id || s->cr) { /* the word is over */
				s->cr = s->id > 0;
				if (s->id)
					return 0;
			}
			s->id_at++;
			continue;
		}
		if (s->cr)
			return 0;
		if (!c)
			return pen__seq_fail(s, "a NUL byte: this is not text");
		s->id++;
		if (keep)
			pen__buf_put(&s->names, in.p + i, 1);
	}
	return s->names.bad ? pen__seq_nomem(s) : 0;
}
