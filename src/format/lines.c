/*
 * Text with a sequence on each line, and perhaps an id or a label after it:
 * `ACGT`, `ACGT,id_1`, `ACGT<tab>0`. Columns are apart by a comma, semicolon,
 * tab or blank; the first is the sequence, the second is the label where it
 * is a number on every line and the id where not, others are passed over.
 * Empty lines are no samples; CRLF is all right.
 *
 * Refuses what is no printable ASCII among letters, with the line it is on.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "format/sequence.h"

enum { LETTERS, SECOND, REST };

static const char *const columns[] = { "auto", "id", "label", "none", NULL };

#define OFF(x) offsetof(struct pen_seqs, x)
static const struct pen_opt lines_opts[] = {
	PEN_SEQ_OPTS,
	PEN_SEQ_WINDOW_OPTS,
	{ .name = "column",
	  .type = PEN_OPT_ENUM,
	  .off = OFF(column),
	  .dflt = "auto",
	  .choices = columns,
	  .help = "what the second column is; auto: a label when it is a "
		  "number on every line" },
	{ .name = "header",
	  .type = PEN_OPT_BOOL,
	  .off = OFF(header),
	  .dflt = "false",
	  .help = "the first line is names of columns" },
	{ .name = NULL },
};

static void line_begin(struct pen_seq_scan *s)
{
	s->start = s->at;
	s->letters.n = s->id = 0;
	s->mode = LETTERS;
	s->cr = false;
	s->word = 0;
	s->id_at = s->names.n;
}

/* Numbers so far were whole: from now on they are not. */
static void turn_floats(struct pen_seq_scan *s)
{
	struct pen_list *l = &s->col[PEN_SEQ_LABEL];

	for (uint64_t i = 0; i < l->n; i++) {
		const double v = (double)(int64_t)(l->v[i] ^ PEN_SEQ_SIGN);

		memcpy(&l->v[i], &v, 8);
	}
	s->floats = true;
}

/* The second column as a number; all of them have to be. */
static int put_label(struct pen_seq_scan *s)
{
	char text[sizeof(s->text64) + 1], *end;
	uint64_t bits;
	double v;

	if (s->no_labels)
		return 0;
	s->no_labels = true;
	if (!s->id || s->id >= sizeof(s->text64) ||
	    !memchr("+-.0123456789", s->text64[0], 13))
		return 0;
	memcpy(text, s->text64, s->id);
	text[s->id] = '\0';
	if (memchr(text, 'x', s->id) || memchr(text, 'X', s->id))
		return 0;
	errno = 0;
	bits = (uint64_t)strtoll(text, &end, 10) ^ PEN_SEQ_SIGN;
	if (*end || errno || s->floats) {
		v = strtod(text, &end);
		if (*end || !isfinite(v))
			return 0;
		if (!s->floats)
			turn_floats(s);
		memcpy(&bits, &v, 8);
	}
	s->no_labels = false;
	return pen__seq_put(s, PEN_SEQ_LABEL, bits);
}

static int line_end(struct pen_seq_scan *s)
{
	int rc = 0;

	s->line++;
	if ((!s->letters.n && !s->word) || /* empty */
	    (s->p->header && s->line == 2)) {
		s->names.n = s->id_at;
		return 0;
	}
	rc = pen__seq_put(s, PEN_SEQ_START, s->start);
	if (!rc)
		rc = pen__seq_put(s, PEN_SEQ_HEAD, 0);
	if (!rc)
		rc = pen__seq_put(s, PEN_SEQ_LETTERS, s->letters.n);
	if (!rc)
		rc = pen__seq_put(s, PEN_SEQ_LAYOUT, 0);
	if (!rc)
		rc = pen__seq_put(s, PEN_SEQ_ID, s->id);
	if (!rc)
		rc = pen__seq_put(s, PEN_SEQ_ID_AT, s->word);
	if (!rc && s->keep_names)
		rc = pen__seq_put(s, PEN_SEQ_NAMES, s->id_at);
	return rc ? rc : put_label(s);
}

static int letters(struct pen_seq_scan *s, const uint8_t *p, size_t n,
		   size_t *used)
{
	const size_t run = pen__seq_stop(p, n);

	*used = run;
	s->letters.n += run;
	if (s->cr && (run || p[run] != '\n'))
		return pen__seq_fail(s, "a carriage return inside the line");
	if (run == n)
		return 0;
	switch (p[run]) {
	case '\n':
	case ',':
	case ';':
	case '\t':
	case ' ':
		return 0;
	case '\r':
		s->cr = true;
		++*used;
		return 0;
	case 0:
		return pen__seq_fail(s, "a NUL byte: this is not text");
	default:
		return pen__seq_fail(s, "byte 0x%02x where letters should be",
				     p[run]);
	}
}

/* Bytes of the second column, up to the next one or the line's end. */
static int second(struct pen_seq_scan *s, const uint8_t *p, size_t n,
		  size_t *used)
{
	size_t i = 0;

	for (; i < n && s->mode == SECOND; i++) {
		const uint8_t c = p[i];

		if (c == '\n' || c == '\r' || c == ',' || c == ';' ||
		    c == '\t') {
			s->mode = REST;
			break;
		}
		if (s->id < sizeof(s->text64))
			s->text64[s->id] = c;
		s->id++;
	}
	if (s->keep_names)
		pen__buf_put(&s->names, p, i);
	*used = i;
	return s->names.bad ? pen__seq_nomem(s) : 0;
}

static int lines_piece(struct pen_seq_scan *s, struct pen_span in)
{
	const uint8_t *p = in.p, *e = in.p + in.n, *nl;
	size_t used;
	int rc = 0;

	if (s->line == 1 && !s->start && s->mode == LETTERS && !s->letters.n)
		s->start = s->at;
	while (!rc && p < e) {
		used = 0;
		if (s->mode == LETTERS) {
			rc = letters(s, p, (size_t)(e - p), &used);
		} else if (s->mode == SECOND) {
			rc = second(s, p, (size_t)(e - p), &used);
		} else {
			nl = memchr(p, '\n', (size_t)(e - p));
			used = (size_t)((nl ? nl : e) - p);
			if (!pen__seq_one_line(s, p, used))
				rc = pen__seq_fail(s, "a carriage return "
						      "inside the line");
		}
		p += used;
		s->at += used;
		if (rc || p == e)
			break;
		if (*p == '\n') {
			rc = line_end(s);
			p++;
			s->at++;
			line_begin(s);
		} else if (s->mode == LETTERS && !s->cr) {
			s->mode = SECOND;
			s->word = 1;
			p++;
			s->at++;
		}
	}
	return rc;
}

static int lines_end(struct pen_seq_scan *s)
{
	int rc = 0;

	if (s->letters.n || s->word)
		rc = line_end(s);
	if (s->no_labels)
		s->col[PEN_SEQ_LABEL].n = 0;
	return rc;
}

static const struct pen_seq_ops lines_ops = {
	.piece = lines_piece,
	.end = lines_end,
	.lines = true,
};

static int lines_open(struct pen_format *f, struct pen_err *err)
{
	return pen__seq_open(f, &lines_ops, err);
}

static const char *const lines_suffixes[] = { ".seq", ".seq.gz", NULL };

const struct pen_format_ops pen__format_lines = {
	.name = "lines",
	.help = "a sequence on each line, perhaps with an id or a label",
	.suffixes = lines_suffixes,
	.opts = lines_opts,
	.priv_size = sizeof(struct pen_seqs),
	.open = lines_open,
	.close = pen__seq_close,
	.index = pen__seq_index,
	.bind = pen__seq_bind,
	.shape = pen__seq_shape,
	.locate = pen__seq_locate,
	.unpack = pen__seq_unpack,
	.emit = pen__seq_emit,
	.value = pen__seq_value,
	.nlabels = pen__seq_nlabels,
	.label = pen__seq_label,
	.describe = pen__seq_describe,
	.write = pen__lines_write,
};
