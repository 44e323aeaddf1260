/*
 * What is asked of whole frames: which rows a filter leaves, what genes are
 * called, which columns there are. A filter is COLUMN:VALUE|VALUE, several
 * joined by '&'; a value is a category, a string, or a number.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/mem.h"
#include "format/cells.h"

/* ---- filter ---- */

/* One condition: text until '&'. */
struct clause {
	char column[64];
	const char *values;
	size_t n; /* bytes of values */
};

static int bad_filter(struct pen_cells_file *f, const char *text)
{
	return pen__fail(f->err, PEN_EINVAL, "filter",
			 "'%s' is no filter; write COLUMN:VALUE|VALUE, and "
			 "join several with &",
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

/* Is this one of the values? */
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

/* keep: a byte for each row. */
static int keep_coded(struct pen_cells_file *f, const struct clause *c,
		      const struct pen_cells_column *col, uint8_t *keep)
{
	struct pen_bytes b = pen__bytes(col->names.p, col->names.n);
	uint8_t *wanted = pen__calloc(col->nnames ? col->nnames : 1, 1);
	struct pen_span s;
	int32_t code;

	if (!wanted)
		return pen__fail_nomem(f->err, f->pk->name, col->nnames);
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
		return pen__fail(f->err, PEN_ENOTSUP, f->pk->name,
				 "has too many rows to filter");
	keep = pen__alloc(f->nrows ? f->nrows : 1, 1);
	if (!keep)
		return pen__fail_nomem(f->err, f->pk->name, f->nrows);
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
		rc = pen__fail_nomem(f->err, f->pk->name, f->nrows * 4);
	return rc;
}

/* ---- genes ---- */

/* The index of a frame that is one compound. */
static int compound_names(struct pen_cells_file *f, uint64_t addr,
			  struct pen_buf *names, uint64_t *n)
{
	struct pen_cells_list l;
	int rc = pen__cells_list_open(f, addr, f->var, &l);

	if (rc < 0)
		return rc;
	*n = l.n;
	rc = pen__cells_member(f, &l, "index", f->var);
	if (rc >= 0)
		rc = pen__cells_list_names(f, &l, f->var, names);
	pen__cells_list_close(&l);
	return rc;
}

int pen__cells_index_name(struct pen_cells_file *f, const char *frame,
			  char *buf, size_t cap)
{
	struct pen_h5_head hd;
	uint64_t addr;
	int rc = pen__cells_there(f, frame, &addr);

	snprintf(buf, cap, "_index");
	if (rc > 0)
		rc = pen__h5_head_open(f->h, addr, &hd, f->err);
	else
		return rc;
	if (rc < 0)
		return rc;
	if (pen__h5_is_group(&hd))
		rc = pen__cells_text_attr(f, &hd, "_index", buf, cap);
	else
		snprintf(buf, cap, "index");
	if (rc >= 0 && !*buf)
		snprintf(buf, cap, "_index");
	pen__h5_head_close(&hd);
	return rc;
}

static int group_names(struct pen_cells_file *f, struct pen_buf *names,
		       uint64_t *n)
{
	char name[128], path[256];
	uint64_t addr;
	int rc = pen__cells_index_name(f, f->var, name, sizeof(name));

	if (rc < 0)
		return rc;
	snprintf(path, sizeof(path), "%s/%s", f->var, name);
	*n = f->ncols; /* nameless ones are as many as they should be */
	rc = pen__cells_there(f, path, &addr);
	return rc <= 0 ? rc : pen__cells_names(f, addr, path, names, n);
}

int pen__cells_genes(struct pen_cells_file *f, struct pen_buf *names)
{
	struct pen_h5_head hd;
	uint64_t addr, n = 0;
	int rc = pen__cells_there(f, f->var, &addr);

	if (rc <= 0)
		return rc;
	rc = pen__h5_head_open(f->h, addr, &hd, f->err);
	if (rc < 0)
		return rc;
	rc = pen__h5_is_group(&hd) ? group_names(f, names, &n)
				   : compound_names(f, addr, names, &n);
	pen__h5_head_close(&hd);
	if (rc >= 0 && n != f->ncols)
		rc = pen__fail(f->err, PEN_EDATA, f->pk->name,
			       "the matrix has %" PRIu64 " columns, but %s "
			       "names %" PRIu64 " genes",
			       f->ncols, f->var, n);
	return rc;
}

/* ---- what there is ---- */

struct lister {
	struct pen_cells_file f; /* with an error of its own */
	const char *frame;
	struct pen_buf *out;
	struct pen_err why;
};

static void put_line(struct pen_buf *out, const char *s)
{
	const uint32_t n = (uint32_t)strlen(s);

	pen__buf_put(out, &n, 4);
	pen__buf_put(out, s, n);
}

static void type_text(const struct pen_h5_type *t, char *buf, size_t cap)
{
	const bool text = t->vlen_string || t->cls == PEN_H5_STRING;

	snprintf(buf, cap, "%s",
		 text		 ? "strings"
		 : t->dtype >= 0 ? pen_dtype_name((enum pen_dtype)t->dtype)
				 : pen__h5_type_name(t));
}

/* How many the list at addr has; 0 when that cannot be said. */
static uint64_t length_at(struct lister *l, uint64_t addr)
{
	struct pen_h5_data d;
	uint64_t n = 0;

	if (pen__h5_data_open(l->f.h, addr, &d, "obs", &l->why) < 0)
		return 0;
	(void)pen__h5_count(&d.space, &n);
	pen__h5_data_close(&d);
	return n;
}

static int see_reference(void *arg, const struct pen_h5_attr *a,
			 struct pen_err *err)
{
	struct lister *l = arg;

	(void)err;
	if (strcmp(a->name, "categories") != 0)
		return 0;
	l->f.nrows = length_at(l, pen__h5_referred(l->f.h, &a->type, a->data));
	return 1;
}

static void group_text(struct lister *l, const struct pen_h5_head *hd,
		       const char *name, char *buf, size_t cap)
{
	char kind[64], path[512];
	uint64_t addr, n = 0;

	if (pen__cells_text_attr(&l->f, hd, "encoding-type", kind,
				 sizeof(kind)) < 0)
		return;
	snprintf(path, sizeof(path), "%.100s/%.300s/categories", l->frame,
		 name);
	if (pen__cells_there(&l->f, path, &addr) > 0)
		n = length_at(l, addr);
	if (strcmp(kind, "categorical") == 0)
		snprintf(buf, cap, "%" PRIu64 " categories", n);
	else
		snprintf(buf, cap, "%s", *kind ? kind : "group");
}

static int see_column(void *arg, const struct pen_h5_link *link,
		      struct pen_err *err)
{
	struct lister *l = arg;
	char text[96] = "unreadable";
	struct pen_h5_head hd;
	struct pen_h5_data d;

	(void)err;
	if (link->target || link->external ||
	    strcmp(link->name, "__categories") == 0 ||
	    pen__h5_head_open(l->f.h, link->addr, &hd, &l->why) < 0)
		return l->why.code == PEN_ENOMEM ? PEN_ENOMEM : 0;
	l->f.nrows = 0;
	if (pen__h5_is_group(&hd)) {
		group_text(l, &hd, link->name, text, sizeof(text));
	} else if (pen__h5_data_open(l->f.h, link->addr, &d, "obs", &l->why) >=
		   0) {
		(void)pen__h5_attrs(l->f.h, &hd, see_reference, l, &l->why);
		type_text(&d.type, text, sizeof(text));
		if (l->f.nrows)
			snprintf(text, sizeof(text), "%" PRIu64 " categories",
				 l->f.nrows);
		pen__h5_data_close(&d);
	}
	pen__h5_head_close(&hd);
	put_line(l->out, link->name);
	put_line(l->out, text);
	return l->why.code == PEN_ENOMEM ? PEN_ENOMEM : 0;
}

static void list_members(struct lister *l, uint64_t addr)
{
	struct pen_h5_data d;
	struct pen_h5_type m;
	const char *name;
	char text[96];
	uint64_t at;

	if (pen__h5_data_open(l->f.h, addr, &d, "obs", &l->why) < 0)
		return;
	for (uint32_t i = 0;
	     d.type.cls == PEN_H5_COMPOUND && i < d.type.nmembers && i < 1024;
	     i++) {
		if (!pen__h5_member(&d.type, i, &name, &m, &at))
			break;
		type_text(&m, text, sizeof(text));
		put_line(l->out, name);
		put_line(l->out, text);
	}
	pen__h5_data_close(&d);
}

/* What is damaged here need not keep anyone from reading the matrix. */
int pen__cells_columns_list(struct pen_cells_file *f, const char *frame,
			    struct pen_buf *out)
{
	struct lister l = { .f = *f, .frame = frame, .out = out };
	struct pen_h5_head hd;
	uint64_t addr;
	bool group;
	int rc;

	l.f.err = &l.why;
	rc = pen__cells_there(&l.f, frame, &addr);
	if (rc > 0)
		rc = pen__h5_head_open(f->h, addr, &hd, &l.why);
	else if (rc == 0)
		return 0;
	if (rc >= 0) {
		group = pen__h5_is_group(&hd);
		pen__h5_head_close(&hd);
		if (group)
			rc = pen__h5_links(f->h, addr, see_column, &l, &l.why);
		else
			list_members(&l, addr);
	}
	if (l.why.code == PEN_ENOMEM || l.why.code == PEN_EIO || out->bad) {
		if (f->err)
			*f->err = l.why;
		return out->bad ? pen__fail_nomem(f->err, f->pk->name, out->n)
				: l.why.code;
	}
	return 0;
}
