/*
 * Text with a sequence on each line, and perhaps an id or a label after it:
 * `ACGT`, `ACGT,id_1`, `ACGT<tab>0`, `ACGT 0`. Columns are apart by a comma,
 * semicolon, tab or blanks; blanks around them are no part of them. The first
 * is the sequence, the second is the label where it is a number on every line
 * and the id where not, others are passed over. Empty lines are no samples;
 * CRLF is all right.
 *
 * Refuses what is no printable ASCII among letters, with the line it is on.
 * Where a second column is no number it is put down, for whoever asks for
 * labels.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "format/sequence/sequence.h"

enum { LETTERS, GAP, SECOND, REST };

/* Lines that are looked at for numbers though one had none. */
#define LOOKS 64u

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
	s->letters.n = s->id = s->gap = s->blanks = 0;
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

/* The second column as a number: whole where it can be, unless others are not.
 * false: it is none. */
static bool take_number(const struct pen_seq_scan *s, bool *whole,
			uint64_t *bits)
{
	char text[sizeof(s->text64) + 1], *end;
	double v;

	if (!s->id || s->id >= sizeof(s->text64) ||
	    !memchr("+-.0123456789", s->text64[0], 13))
		return false;
	memcpy(text, s->text64, s->id);
	text[s->id] = '\0';
	if (memchr(text, 'x', s->id) || memchr(text, 'X', s->id))
		return false;
	errno = 0;
	*bits = (uint64_t)strtoll(text, &end, 10) ^ PEN_SEQ_SIGN;
	*whole = !*end && !errno && !s->floats;
	if (*whole)
		return true;
	v = strtod(text, &end);
	memcpy(bits, &v, 8);
	return !*end && isfinite(v);
}

/* The first second column that is no number. */
static void note_odd(struct pen_seq_scan *s)
{
	if (s->odd.line)
		return;
	s->odd.line = s->line - 1; /* it has ended */
	s->odd.n = sizeof(s->odd.text);
	if (s->id < s->odd.n)
		s->odd.n = (uint8_t)s->id;
	for (unsigned i = 0; i < s->odd.n; i++)
		s->odd.text[i] = s->text64[i] < ' ' ? '?' : s->text64[i];
}

static int put_label(struct pen_seq_scan *s)
{
	uint64_t bits = 0;
	bool whole = true;

	if (s->p->column == PEN_SEQ_COLUMN_ID ||
	    s->p->column == PEN_SEQ_COLUMN_NONE)
		s->no_labels = true;
	else if (s->no_labels && s->line > LOOKS)
		return 0;
	else if (take_number(s, &whole, &bits))
		s->odd.others = true;
	else
		note_odd(s);
	s->no_labels = s->no_labels || s->odd.line;
	if (s->no_labels)
		return 0;
	if (!whole && !s->floats)
		turn_floats(s);
	return pen__seq_put(s, PEN_SEQ_LABEL, bits);
}

static int line_end(struct pen_seq_scan *s)
{
	int rc = 0;

	s->line++;
	s->names.n = s->id_at;
	if ((!s->letters.n && !s->word) || /* empty */
	    (s->p->header && s->line == 2))
		return 0;
	if (s->keep_names)
		s->names.n += s->id;
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
		rc = pen__seq_put(s, PEN_SEQ_ID_AT, s->gap);
	if (!rc && s->keep_names)
		rc = pen__seq_put(s, PEN_SEQ_NAMES, s->id_at);
	return rc ? rc : put_label(s);
}

/* Blanks before a sequence are no part of it. */
static size_t skip_blanks(struct pen_seq_scan *s, const uint8_t *p, size_t n)
{
	size_t i = 0;

	while (!s->letters.n && i < n && p[i] == ' ')
		i++;
	s->start += i;
	return i;
}

static int letters(struct pen_seq_scan *s, const uint8_t *p, size_t n,
		   size_t *used)
{
	const size_t lead = skip_blanks(s, p, n);
	const size_t run = pen__seq_stop(p + lead, n - lead);

	*used = lead + run;
	s->letters.n += run;
	if (s->cr)
		return pen__seq_fail(s, "a carriage return inside the line");
	if (*used == n)
		return 0;
	switch (p[*used]) {
	case '\n':
		return 0;
	case ',':
	case ';':
	case '\t':
	case ' ':
		s->mode = GAP;
		return 0;
	case '\r':
		s->cr = true;
		++*used;
		return 0;
	case 0:
		return pen__seq_fail(s, "a NUL byte: this is not text");
	default:
		return pen__seq_fail(s, "byte 0x%02x where letters should be",
				     p[*used]);
	}
}

static bool separates(uint8_t c)
{
	return c == ',' || c == ';' || c == '\t';
}

/* From the sequence to the second column: one separator, and blanks, of which
 * a tab is one beside a comma. */
static int gap(struct pen_seq_scan *s, const uint8_t *p, size_t n, size_t *used)
{
	size_t i = 0;

	for (; i < n; i++) {
		const bool apart = s->word == ',' || s->word == ';';

		if (separates(p[i]) && s->word != '\t' && !apart)
			s->word = p[i];
		else if (p[i] == ' ')
			s->word = s->word ? s->word : ' ';
		else if (p[i] != '\t' || !apart)
			break;
	}
	s->gap += i;
	*used = i;
	if (i < n)
		s->mode = SECOND;
	return 0;
}

/* What is more than a byte of the second column. */
static const bool marks[256] = {
	['\0'] = true, ['\t'] = true, ['\n'] = true, ['\r'] = true,
	[' '] = true,  [','] = true,  [';'] = true
};

/* n bytes of the second column, and the blanks before them. */
static void take_bytes(struct pen_seq_scan *s, const uint8_t *p, size_t n)
{
	const uint64_t at = s->id + s->blanks, room = sizeof(s->text64);

	for (uint64_t i = s->id; i < at && i < room; i++)
		s->text64[i] = ' ';
	if (at < room)
		memcpy(s->text64 + at, p, n < room - at ? n : room - at);
	s->id = at + n;
	s->blanks = 0;
}

/* Bytes of the second column, up to the next one or the line's end. Blanks
 * count once something follows them. */
static int second(struct pen_seq_scan *s, const uint8_t *p, size_t n,
		  size_t *used)
{
	size_t i = 0;

	for (;;) {
		size_t run = 0;

		while (i + run < n && !marks[p[i + run]])
			run++;
		if (run)
			take_bytes(s, p + i, run);
		i += run;
		if (i == n || p[i] != ' ' || s->word == ' ')
			break;
		s->blanks++;
		i++;
	}
	if (i < n && !p[i])
		return pen__seq_fail(s, "a NUL byte: this is not text");
	if (i < n)
		s->mode = REST;
	if (s->keep_names)
		pen__buf_put(&s->names, p, i);
	*used = i;
	return s->names.bad ? pen__seq_nomem(s) : 0;
}

static int rest(struct pen_seq_scan *s, const uint8_t *p, size_t n,
		size_t *used)
{
	const uint8_t *nl = memchr(p, '\n', n);

	*used = nl ? (size_t)(nl - p) : n;
	return pen__seq_one_line(s, p, *used)
		       ? 0
		       : pen__seq_fail(s, "a carriage return inside the line");
}

static int lines_piece(struct pen_seq_scan *s, struct pen_span in)
{
	static int (*const step[])(struct pen_seq_scan *, const uint8_t *,
				   size_t n, size_t *used) = {
		[LETTERS] = letters,
		[GAP] = gap,
		[SECOND] = second,
		[REST] = rest,
	};
	const uint8_t *p = in.p, *e = in.p + in.n;
	int rc = 0;

	if (s->line == 1 && !s->start && s->mode == LETTERS && !s->letters.n)
		s->start = s->at;
	while (!rc && p < e) {
		size_t used = 1;

		if (*p == '\n')
			rc = line_end(s);
		else
			rc = step[s->mode](s, p, (size_t)(e - p), &used);
		s->at += used;
		if (*p == '\n')
			line_begin(s);
		p += used;
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
	.warn = pen__seq_warn,
	.write = pen__lines_write,
};
