/*
 * Text with one sequence per line, optionally followed by an id or a label:
 * `ACGT`, `ACGT,id_1`, `ACGT<tab>0`, `ACGT 0`. Columns are separated by a
 * comma, semicolon, tab or blanks; blanks around a column are ignored. The
 * first column is the sequence. The second is a label if it is a number on
 * every line, otherwise an id. Further columns and empty lines are ignored;
 * CRLF is accepted.
 *
 * Refuses bytes other than printable ASCII among the letters, naming the line.
 * The first second column that is not a number is recorded, for the error
 * message if labels are requested.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "format/sequence/sequence.h"

enum { LETTERS, GAP, SECOND, REST };

/* Lines still checked for numbers after one that had none. */
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
	  .help = "meaning of the second column; auto: label if it is a number "
		  "on every line" },
	{ .name = "header",
	  .type = PEN_OPT_BOOL,
	  .off = OFF(header),
	  .dflt = "false",
	  .help = "skip the first line, which holds the column names" },
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

/* Converts the integers seen so far, because a fraction has come. */
static void turn_floats(struct pen_seq_scan *s)
{
	struct pen_list *l = &s->col[PEN_SEQ_LABEL];

	for (uint64_t i = 0; i < l->n; i++) {
		const double v = (double)(int64_t)(l->v[i] ^ PEN_SEQ_SIGN);

		memcpy(&l->v[i], &v, 8);
	}
	s->floats = true;
}

/* Parses the second column as a number: an integer if possible, unless other
 * lines have fractions. False: it is not a number. */
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

/* Records the first second column that is not a number. */
static void note_odd(struct pen_seq_scan *s)
{
	if (s->odd.line)
		return;
	s->odd.line = s->line - 1; /* s->line is already the next one */
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
	int rc;

	s->line++;
	s->names.n = s->id_at;
	if ((!s->letters.n && !s->word) || /* empty */
	    (s->p->header && s->line == 2))
		return 0;
	if (s->keep_names)
		s->names.n += s->id;
	rc = pen__seq_record_put(s,
				 (const uint64_t[]){ s->start, 0, s->letters.n,
						     0, s->id, s->gap });
	if (!rc && s->keep_names)
		rc = pen__seq_put(s, PEN_SEQ_NAMES, s->id_at);
	return rc ? rc : put_label(s);
}

/* Skips blanks before the sequence. */
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
		return pen__seq_fail(s, P_BAD_TEXT,
				     "carriage return inside the line; end "
				     "lines with LF or CRLF");
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
		return pen__seq_fail(s, P_BAD_TEXT,
				     "NUL byte: this is not a text file");
	default:
		return pen__seq_fail(s, P_BAD_TEXT,
				     "byte 0x%02x where a letter is expected",
				     p[*used]);
	}
}

static bool separates(uint8_t c)
{
	return c == ',' || c == ';' || c == '\t';
}

/* Between the sequence and the second column: one separator and any blanks.
 * After a comma or semicolon, a tab counts as a blank. */
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

/* Bytes that do not belong to the second column, or not always. */
static const bool marks[256] = {
	['\0'] = true, ['\t'] = true, ['\n'] = true, ['\r'] = true,
	[' '] = true,  [','] = true,  [';'] = true
};

/* Adds n bytes to the second column, and the blanks before them. */
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

/* Reads the second column, up to the next separator or the end of the line.
 * Blanks count only if something follows them. */
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
		return pen__seq_fail(s, P_BAD_TEXT,
				     "NUL byte: this is not a text file");
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
		       : pen__seq_fail(s, P_BAD_TEXT,
				       "carriage return inside the line; end "
				       "lines with LF or CRLF");
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
	.help = "one sequence per line, with an optional id or label",
	.suffixes = lines_suffixes,
	.opts = lines_opts,
	.open = lines_open,
	.write = pen__lines_write,
	PEN_SEQ_FORMAT,
};
