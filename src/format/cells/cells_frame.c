/*
 * Operations on entire frames: the rows that a filter selects, the names of
 * genes, the list of columns. A filter is COLUMN:VALUE|VALUE, several joined by
 * '&'; a value is a category, a string or a number.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/mem.h"
#include "format/cells/cells.h"

/* ---- filter ---- */

/* One condition: the text up to '&'. */
struct clause {
	char column[64];
	const char *values;
	size_t n; /* bytes of values */
};

static int bad_filter(struct pen_cells_file *f, const char *text)
{
	return pen__fail(f->err, P_BAD_VALUE, "filter",
			 "'%s' is not a filter; write COLUMN:VALUE|VALUE, "
			 "several joined with &",
			 text);
}

static bool take_clause(const char **text, struct clause *c)
{
	const char *s = *text;
	const size_t n = strcspn(s, ":&"), end = strcspn(s, "&");

	if (!n || n >= sizeof(c->column) || s[n] != ':' || end == n + 1)
		return false;
	memcpy(c->column, s, n);
	c->column[n] = '\0';
	c->values = s + n + 1;
	c->n = end - n - 1;
	*text = s + end + (s[end] == '&');
	return s[end] != '&' || s[end + 1];
}

/* Whether this is one of the values. */
static bool is_value(const struct clause *c, const uint8_t *p, size_t n)
{
	const char *s = c->values, *end = s + c->n;

	while (s <= end) {
		const char *bar = memchr(s, '|', (size_t)(end - s));
		const size_t k = (size_t)((bar ? bar : end) - s);

		if (k == n && (!n || memcmp(s, p, n) == 0))
			return true;
		s += k + 1;
	}
	return false;
}

static bool is_number(const struct clause *c, double v, bool truth)
{
	const char *s = c->values, *end = s + c->n;

	while (s < end) {
		const char *bar = memchr(s, '|', (size_t)(end - s));
		const size_t k = (size_t)((bar ? bar : end) - s);
		char text[64], *stop;
		double x;

		snprintf(text, sizeof(text), "%.*s", k < 63 ? (int)k : 63, s);
		x = strtod(text, &stop);
		if (stop != text && !*stop && x >= v && x <= v)
			return true;
		if (truth && strcmp(text, v != 0 ? "True" : "False") == 0)
			return true;
		if (truth && strcmp(text, v != 0 ? "true" : "false") == 0)
			return true;
		s += k + 1;
	}
	return false;
}

/* keep: one byte per row. */
static int keep_coded(struct pen_cells_file *f, const struct clause *c,
		      const struct pen_cells_column *col, uint8_t *keep)
{
	struct pen_bytes b = pen__bytes(col->names.p, col->names.n);
	uint8_t *wanted = pen__calloc(col->nnames ? col->nnames : 1, 1);
	struct pen_span s;
	int32_t code;

	if (!wanted)
		return pen__fail_nomem(f->err, f->name, col->nnames);
	for (uint32_t i = 0; i < col->nnames && pen__cells_next_name(&b, &s);
	     i++)
		wanted[i] = is_value(c, s.p, s.n);
	for (uint64_t i = 0; i < f->nrows; i++) {
		memcpy(&code, col->values.p + i * 4, 4);
		keep[i] &= code >= 0 && wanted[code];
	}
	pen__free(wanted);
	return 0;
}

static int keep_clause(struct pen_cells_file *f, const struct clause *c,
		       uint8_t *keep)
{
	struct pen_cells_column col;
	int rc = pen__cells_column_open(f, "obs", c->column, f->nrows, &col);
	const enum pen_dtype t = (enum pen_dtype)col.dtype;
	const size_t size = pen_dtype_size(t);

	if (rc >= 0 && col.coded)
		rc = keep_coded(f, c, &col, keep);
	else
		for (uint64_t i = 0; rc >= 0 && i < f->nrows; i++)
			keep[i] &= is_number(
				c,
				pen__cells_number(t, col.values.p + i * size),
				t == PEN_BOOL || t == PEN_I8);
	pen__cells_column_close(&col);
	return rc;
}

int pen__cells_filter(struct pen_cells_file *f, const char *text,
		      struct pen_buf *rows)
{
	const char *left = text;
	struct clause c;
	uint8_t *keep;
	int rc = 0;

	if (f->nrows > UINT32_MAX)
		return pen__fail(
			f->err, P_OVER_LIMIT, f->name,
			"too many rows for format.filter= (2^32 or more)");
	keep = pen__alloc(f->nrows ? f->nrows : 1, 1);
	if (!keep)
		return pen__fail_nomem(f->err, f->name, f->nrows);
	memset(keep, 1, f->nrows);
	while (rc >= 0 && *left) {
		rc = take_clause(&left, &c) ? keep_clause(f, &c, keep)
					    : bad_filter(f, text);
	}
	for (uint64_t i = 0; rc >= 0 && i < f->nrows; i++) {
		const uint32_t row = (uint32_t)i;

		if (keep[i])
			pen__buf_put(rows, &row, 4);
	}
	pen__free(keep);
	if (rc >= 0 && rows->bad)
		rc = pen__fail_nomem(f->err, f->name, f->nrows * 4);
	return rc;
}

/* ---- genes ---- */

/* The index of a frame that is a compound. */
static int compound_names(struct pen_cells_file *f,
			  const struct pen_cells_node *frame,
			  struct pen_buf *names, uint64_t *n)
{
	struct pen_cells_list l = { 0 };
	int rc = f->src->list(f, frame, "index", &l);

	if (rc < 0)
		return rc;
	*n = l.n;
	rc = pen__cells_list_names(f, &l, names);
	pen__cells_list_close(&l);
	return rc;
}

int pen__cells_index_name(struct pen_cells_file *f, const char *frame,
			  char *buf, size_t cap)
{
	struct pen_cells_node node;
	int rc = f->src->find(f, frame, &node);

	snprintf(buf, cap, "_index");
	if (rc <= 0)
		return rc;
	if (!node.group) {
		snprintf(buf, cap, "index");
		return 0;
	}
	rc = f->src->text_attr(f, &node, "_index", buf, cap);
	if (rc >= 0 && !*buf)
		snprintf(buf, cap, "_index");
	return rc;
}

static int group_names(struct pen_cells_file *f, struct pen_buf *names,
		       uint64_t *n)
{
	char name[PEN_CELLS_NAME], path[PEN_CELLS_PATH];
	struct pen_cells_node node;
	int rc = pen__cells_index_name(f, f->var, name, sizeof(name));

	if (rc < 0)
		return rc;
	snprintf(path, sizeof(path), "%s/%s", f->var, name);
	*n = f->ncols; /* without names, assume the expected number */
	rc = f->src->find(f, path, &node);
	return rc <= 0 ? rc : pen__cells_names(f, &node, names, n);
}

int pen__cells_genes(struct pen_cells_file *f, struct pen_buf *names)
{
	struct pen_cells_node node;
	uint64_t n = 0;
	int rc = f->src->find(f, f->var, &node);

	if (rc <= 0)
		return rc;
	rc = node.group ? group_names(f, names, &n)
			: compound_names(f, &node, names, &n);
	if (rc >= 0 && n != f->ncols)
		rc = pen__fail(f->err, P_DAMAGED, f->name,
			       "the matrix has %" PRIu64 " columns, but %s "
			       "names %" PRIu64 " genes",
			       f->ncols, f->var, n);
	return rc;
}

/* ---- list of columns ---- */

int pen__cells_columns_list(struct pen_cells_file *f, const char *frame,
			    struct pen_buf *out)
{
	return f->src->inventory(f, frame, out);
}
