/*
 * Finds the rows of a csv file in one pass over all bytes, because a quoted
 * value may contain newlines. Counts the values of every row; emit() parses
 * them. Rejects NUL bytes, rows of different lengths, unterminated quotes and
 * rows of more than 1 GiB, with the line number.
 */
#include <inttypes.h>

#include "base/mem.h"
#include "format/table/csv.h"
#include "format/table/csv_marks.h"
#include "format/value.h"
#include "format/window.h"

struct scan {
	const struct pen_csv *p;
	struct pen_peek *pk;
	struct pen_window win;
	struct pen_err *err;
	uint64_t *off; /* start of each row */
	uint64_t n, cap;
	uint64_t end; /* end of the last row */
	uint64_t ncolumns;
	/* scanner state */
	uint64_t line, row, row_line, values;
	bool quoted, closed; /* inside a quoted value; just after one */
	bool fresh;	     /* a value starts here */
	uint8_t last;	     /* the previous byte */
	bool special[256];
	struct pen_csv_line found[PEN_CSV_BLOCK];
};

static int fail(const struct scan *s, uint64_t line, const char *what)
{
	return pen__fail(s->err, P_BAD_TEXT, s->pk->name,
			 "line %" PRIu64 ": %s", line, what);
}

static int add_row(struct scan *s, uint64_t end, uint64_t len)
{
	if (len > PEN_CSV_MAX_ROW)
		return fail(s, s->row_line, "the row is longer than 1 GiB");
	if (s->n && s->values != s->ncolumns)
		return pen__fail(s->err, P_BAD_TEXT, s->pk->name,
				 "line %" PRIu64 ": %" PRIu64
				 " values, but the first row has %" PRIu64,
				 s->row_line, s->values, s->ncolumns);
	s->ncolumns = s->values;
	if (s->n == s->cap) {
		const uint64_t cap = s->cap ? s->cap * 2 : 256;
		void *p = pen__realloc(s->off, cap, sizeof(*s->off));

		if (!p)
			return pen__fail_nomem(s->err, s->pk->name, cap * 8);
		s->off = p;
		s->cap = cap;
	}
	s->off[s->n++] = s->row;
	s->end = end;
	return 0;
}

/* Handles a newline at `at`, or the end of the object; the next row starts
 * after it. Empty lines are not rows. */
static int end_row(struct scan *s, uint64_t at)
{
	const uint64_t len = at - s->row;
	int rc = 0;

	if (len > 1 || (len == 1 && s->last != '\r'))
		rc = add_row(s, at, len);
	s->row = at + 1;
	s->row_line = s->line + 1;
	s->values = 1;
	s->fresh = true;
	return rc;
}

static int special_byte(struct scan *s, uint64_t at, uint8_t c)
{
	int rc = 0;

	if (c == 0)
		return fail(s, s->line, "NUL byte found; the file is not text");
	if (c == '"') {
		if (s->quoted || s->fresh || s->closed)
			s->quoted = !s->quoted;
		s->closed = !s->quoted;
		s->fresh = false;
		return 0;
	}
	if (c == '\n' && !s->quoted)
		rc = end_row(s, at);
	s->closed = false;
	s->line += c == '\n';
	return rc;
}

static int scan_bytes(struct scan *s, uint64_t at, const uint8_t *p, size_t n)
{
	const uint8_t *q = p, *e = p + n, delim = (uint8_t)s->p->delim;
	int rc;

	while (q < e) {
		const uint8_t *from = q;

		while (q < e && !s->special[*q])
			q++;
		if (q > from) {
			s->fresh = s->closed = false;
			s->last = q[-1];
		}
		if (q == e)
			break;
		if (*q == delim && !s->quoted) { /* the most frequent case */
			s->values++;
			s->fresh = true;
			s->closed = false;
			s->last = *q++;
			continue;
		}
		rc = special_byte(s, at + (uint64_t)(q - p), *q);
		if (rc)
			return rc;
		s->last = *q++;
	}
	return 0;
}

/* A block without quotes: only lines and their number of delimiters count.
 * PEN_END: the block has quotes or NULs. */
static int scan_block(struct scan *s, uint64_t at, const uint8_t *p)
{
	uint32_t rest;
	bool plain;
	size_t n = pen__csv_lines(p, (uint8_t)s->p->delim, s->found, &rest,
				  &plain);
	int rc = 0;

	if (!plain)
		return PEN_END;
	for (size_t i = 0; i < n && !rc; i++) {
		const uint32_t end = s->found[i].at;

		s->values += s->found[i].delims;
		s->last = end ? p[end - 1] : s->last;
		rc = end_row(s, at + end);
		s->line++;
	}
	s->values += rest;
	s->last = p[PEN_CSV_BLOCK - 1];
	s->fresh = s->last == '\n' || s->last == (uint8_t)s->p->delim;
	s->closed = false;
	return rc;
}

static int scan_piece(struct scan *s, uint64_t at, const uint8_t *p, size_t n)
{
	int rc = 0;

	for (size_t i = 0; i < n && !rc; i += PEN_CSV_BLOCK) {
		const size_t len = n - i < PEN_CSV_BLOCK ? n - i
							 : PEN_CSV_BLOCK;

		rc = PEN_END;
		if (!s->quoted && len == PEN_CSV_BLOCK)
			rc = scan_block(s, at + i, p + i);
		if (rc == PEN_END)
			rc = scan_bytes(s, at + i, p + i, len);
	}
	return rc;
}

/* A UTF-8 byte order mark is not part of the first value. */
static int skip_mark(struct scan *s)
{
	uint8_t b[3] = { 0 };
	int rc = s->pk->size >= 3 ? s->pk->read(s->pk, 0, b, 3, s->err) : 0;

	if (!rc && !memcmp(b, "\xef\xbb\xbf", 3))
		s->row = 3;
	return rc;
}

static int scan_all(struct scan *s)
{
	const uint64_t size = s->pk->size;
	int rc = skip_mark(s);

	s->special[0] = s->special['"'] = s->special['\n'] = true;
	s->special[(uint8_t)s->p->delim] = true;
	s->line = s->row_line = s->values = 1;
	s->fresh = true;
	for (uint64_t at = s->row; at < size && !rc;) {
		const size_t n = size - at < PEN_PIECE ? (size_t)(size - at)
						       : PEN_PIECE;
		const uint8_t *p = pen__window_get(&s->win, at, n, 0, s->err);

		if (!p)
			return s->err->code;
		rc = scan_piece(s, at, p, n);
		at += n;
	}
	if (!rc && s->quoted)
		rc = fail(s, s->row_line,
			  "a quoted value starts in this row and never ends");
	if (!rc && s->row < size)
		rc = end_row(s, size);
	return rc;
}

/* ---- header and columns= ---- */

static int first_row(struct scan *s, struct pen_csv_text *out)
{
	const uint64_t end = s->n > 1 ? s->off[1] : s->end;

	out->p = pen__window_get(&s->win, s->off[0], (size_t)(end - s->off[0]),
				 0, s->err);
	if (!out->p)
		return s->err->code;
	out->e = out->p + (end - s->off[0]);
	return 0;
}

static bool looks_like_header(const struct scan *s, struct pen_csv_text row)
{
	struct pen_csv_text v;
	bool more = true;
	double d;

	while (pen__csv_next(&row, s->p->delim, &more, &v))
		if (pen__csv_value(v, PEN_F64, s->p->c, &d) == PEN_CSV_BAD)
			return true;
	return false;
}

static void unquote(struct pen_csv_text *t)
{
	while (t->p < t->e && *t->p == ' ')
		t->p++;
	while (t->p < t->e && t->e[-1] == ' ')
		t->e--;
	if (t->e - t->p >= 2 && *t->p == '"' && t->e[-1] == '"') {
		t->p++;
		t->e--;
	}
}

/* Column `name`, by the header or by its number from 0. */
static int64_t find_column(const struct scan *s, struct pen_csv_text row,
			   bool header, const char *name, size_t len)
{
	struct pen_csv_text v;
	bool more = true;
	uint64_t number = 0;

	for (int64_t i = 0;
	     header && pen__csv_next(&row, s->p->delim, &more, &v); i++) {
		unquote(&v);
		if ((size_t)(v.e - v.p) == len && !memcmp(v.p, name, len))
			return i;
	}
	for (size_t i = 0; i < len; i++) {
		if (name[i] < '0' || name[i] > '9' || number > s->ncolumns)
			return -1;
		number = number * 10 + (uint64_t)(name[i] - '0');
	}
	return len && number < s->ncolumns ? (int64_t)number : -1;
}

static int no_column(const struct scan *s, struct pen_csv_text row, bool header,
		     const char *name, size_t len)
{
	struct pen_near near = pen__near(name, len);
	struct pen_csv_text v;
	bool more = true;

	while (header && pen__csv_next(&row, s->p->delim, &more, &v)) {
		unquote(&v);
		pen__near_see(&near, v.p, (size_t)(v.e - v.p));
	}
	return pen__fail(s->err, P_NO_SUCH_PART, s->pk->name,
			 "there is no column '%.*s'%s",
			 (int)(len < 64 ? len : 64), name,
			 pen__near_text(&near).s);
}

static int put_columns(const struct scan *s, struct pen_csv_text row,
		       bool header, struct pen_buf *b)
{
	const char *list = s->p->columns;
	uint32_t n = 1;

	pen__buf_le(b, s->ncolumns, 4);
	for (const char *c = list; c && *c; c++)
		n += *c == ',';
	pen__buf_le(b, list ? n : 0, 4);
	while (list) {
		const size_t len = strcspn(list, ",");
		const int64_t i = find_column(s, row, header, list, len);

		if (i < 0)
			return no_column(s, row, header, list, len);
		pen__buf_le(b, (uint64_t)i, 4);
		list = list[len] ? list + len + 1 : NULL;
	}
	return 0;
}

static void put_rows(const struct scan *s, uint64_t from, struct pen_buf *b)
{
	const uint64_t n = s->n - from, *off = from ? s->off + from : s->off;
	bool even = true;

	for (uint64_t k = 2; k < n; k++)
		even = even && off[k] - off[k - 1] == off[1] - off[0];
	pen__buf_le(b, n, 8);
	pen__buf_le(b, s->end, 8);
	pen__buf_le(b, even, 1);
	if (even) {
		pen__buf_le(b, n ? off[0] : 0, 8);
		pen__buf_le(b, n > 1 ? off[1] - off[0] : 0, 8);
	}
	for (uint64_t k = 0; !even && k < n; k++)
		pen__buf_le(b, off[k], 8);
}

static int put_blob(struct scan *s, struct pen_found *found)
{
	struct pen_csv_text row = { NULL, NULL };
	bool header = s->p->header == PEN_CSV_HEADER_YES;
	int rc = s->n ? first_row(s, &row) : 0;

	if (!rc && s->n && s->p->header == PEN_CSV_HEADER_AUTO)
		header = looks_like_header(s, row);
	if (!rc && s->ncolumns > INT32_MAX)
		rc = fail(s, 1, "too many values in a row");
	if (rc)
		return rc;
	header = header && s->n;
	found->nsamples = s->n - header;
	put_rows(s, header, &found->blob);
	if (s->n)
		rc = put_columns(s, row, header, &found->blob);
	if (!rc && found->blob.bad)
		rc = pen__fail_nomem(s->err, s->pk->name, found->blob.n);
	return rc;
}

int pen__csv_index(const struct pen_format *f, struct pen_peek *pk,
		   struct pen_found *found, struct pen_err *err)
{
	struct pen_err own = { 0 };
	struct scan s = {
		.p = f->priv, .pk = pk, .win.pk = pk, .err = err ? err : &own
	};
	int rc = scan_all(&s);

	if (!rc)
		rc = put_blob(&s, found);
	pen__window_fini(&s.win);
	pen__free(s.off);
	return rc;
}
