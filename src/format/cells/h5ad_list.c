/*
 * The contents of a frame or group of an h5ad file, for inspect and messages: a
 * line per column or object with its kind. Damage here does not prevent reading
 * the matrix, so it is ignored.
 */
#include <inttypes.h>
#include <stdio.h>

#include "format/cells/cells.h"
#include "format/cells/h5ad_file.h"

struct lister {
	struct pen_cells_file f; /* with its own error */
	const char *frame;
	struct pen_buf *out;
	struct pen_buf order; /* names of columns */
	struct pen_err why;
};

static void put_line(struct pen_buf *out, const char *s)
{
	pen__cells_put_text(out, s, strlen(s));
}

static void type_text(const struct pen_h5_type *t, char *buf, size_t cap)
{
	const bool text = t->vlen_string || t->cls == PEN_H5_STRING;

	snprintf(buf, cap, "%s",
		 text		 ? "strings"
		 : t->dtype >= 0 ? pen_dtype_name((enum pen_dtype)t->dtype)
				 : pen__h5_type_name(t));
}

/* With the shape, for a matrix. */
static void data_text(const struct pen_h5_data *d, char *buf, size_t cap)
{
	size_t n;

	type_text(&d->type, buf, cap);
	n = strlen(buf);
	if (d->space.ndim == 2)
		snprintf(buf + n, cap - n, " %" PRIu64 "x%" PRIu64,
			 d->space.dim[0], d->space.dim[1]);
	else if (d->space.ndim > 2)
		snprintf(buf + n, cap - n, ", %" PRIu32 " axes", d->space.ndim);
}

/* A member of a compound data set; an array member is the row of a matrix. */
static void member_text(const struct pen_h5_data *d,
			const struct pen_h5_type *m, char *buf, size_t cap)
{
	struct pen_h5_type base;

	if (m->cls != PEN_H5_ARRAY || !pen__h5_base(m, &base) || !base.size) {
		type_text(m, buf, cap);
		return;
	}
	type_text(&base, buf, cap);
	snprintf(buf + strlen(buf), cap - strlen(buf), " %" PRIu64 "x%" PRIu32,
		 d->space.dim[0], m->size / base.size);
}

/* The length of the list at addr; 0 if unknown. */
static uint64_t length_at(struct lister *l, uint64_t addr)
{
	struct pen_h5_data d;
	uint64_t n = 0;

	if (pen__h5_data_open(l->f.in, addr, &d, "obs", &l->why) < 0)
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
	l->f.nrows = length_at(l, pen__h5_referred(l->f.in, &a->type, a->data));
	return 1;
}

static void group_text(struct lister *l, const char *name, char *buf,
		       size_t cap)
{
	const struct pen_cells_source *src = l->f.src;
	struct pen_cells_node node;
	char kind[64], path[512];
	uint64_t n = 0;

	snprintf(path, sizeof(path), "%.100s/%.300s", l->frame, name);
	if (src->find(&l->f, path, &node) <= 0 ||
	    src->text_attr(&l->f, &node, "encoding-type", kind, sizeof(kind)) <
		    0)
		return;
	if (!*kind && src->text_attr(&l->f, &node, "h5sparse_format", kind,
				     sizeof(kind)) < 0)
		return;
	snprintf(path, sizeof(path), "%.100s/%.300s/categories", l->frame,
		 name);
	if (src->find(&l->f, path, &node) > 0)
		n = length_at(l, node.addr);
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
	    pen__h5_head_open(l->f.in, link->addr, &hd, &l->why) < 0)
		return l->why.code == PEN_ENOMEM ? PEN_ENOMEM : 0;
	l->f.nrows = 0;
	if (pen__h5_is_group(&hd)) {
		group_text(l, link->name, text, sizeof(text));
	} else if (pen__h5_data_open(l->f.in, link->addr, &d, "obs", &l->why) >=
		   0) {
		(void)pen__h5_attrs(l->f.in, &hd, see_reference, l, &l->why);
		data_text(&d, text, sizeof(text));
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

	if (pen__h5_data_open(l->f.in, addr, &d, "obs", &l->why) < 0)
		return;
	for (uint32_t i = 0;
	     d.type.cls == PEN_H5_COMPOUND && i < d.type.nmembers && i < 1024;
	     i++) {
		if (!pen__h5_member(&d.type, i, &name, &m, &at))
			break;
		member_text(&d, &m, text, sizeof(text));
		put_line(l->out, name);
		put_line(l->out, text);
	}
	pen__h5_data_close(&d);
}

/* ---- order of columns ---- */

static int see_order(void *arg, const struct pen_h5_attr *a,
		     struct pen_err *err)
{
	struct lister *l = arg;
	struct pen_buf text = { 0 };
	uint64_t n;
	int rc = 0;

	if (strcmp(a->name, "column-order") != 0)
		return 0;
	if ((a->type.cls != PEN_H5_STRING && !a->type.vlen_string) ||
	    !pen__h5_count(&a->space, &n))
		return 1;
	for (uint64_t i = 0; rc >= 0 && i < n; i++) {
		text.n = 0;
		rc = pen__h5_string(l->f.in, &a->type, a->data, i, &text, err);
		if (rc >= 0)
			pen__cells_put_text(&l->order, text.p, text.n);
	}
	pen__buf_fini(&text);
	return rc < 0 ? rc : 1;
}

/* Finds the line of that name and its end. */
static bool find_line(const struct pen_buf *lines, struct pen_span name,
		      struct pen_span *line)
{
	struct pen_bytes b = pen__bytes(lines->p, lines->n);
	struct pen_span s, kind;
	const uint8_t *p = b.p;

	while (pen__cells_next_name(&b, &s) &&
	       pen__cells_next_name(&b, &kind)) {
		if (pen__cells_compare(s, name) == 0) {
			*line = (struct pen_span){ p, (size_t)(b.p - p) };
			return true;
		}
		p = b.p;
	}
	return false;
}

/* Lines in the order of the frame's column-order, then all others. */
static void put_lines(const struct lister *l, const struct pen_buf *lines,
		      struct pen_buf *out)
{
	struct pen_bytes b = pen__bytes(l->order.p, l->order.n);
	struct pen_span s, kind, line;
	const size_t from = out->n;
	const uint8_t *p;

	while (pen__cells_next_name(&b, &s))
		if (find_line(lines, s, &line))
			pen__buf_put(out, line.p, line.n);
	b = pen__bytes(lines->p, lines->n);
	for (p = b.p;
	     pen__cells_next_name(&b, &s) && pen__cells_next_name(&b, &kind);
	     p = b.p) {
		const struct pen_buf put = { .p = out->p ? out->p + from : NULL,
					     .n = out->n - from };

		if (!find_line(&put, s, &line))
			pen__buf_put(out, p, (size_t)(b.p - p));
	}
}

static int list_columns(struct lister *l, uint64_t addr)
{
	struct pen_buf *out = l->out, lines = { 0 };
	struct pen_h5_head hd;
	int rc;

	l->out = &lines;
	rc = pen__h5_links(l->f.in, addr, see_column, l, &l->why);
	if (rc >= 0 && pen__h5_head_open(l->f.in, addr, &hd, &l->why) >= 0) {
		(void)pen__h5_attrs(l->f.in, &hd, see_order, l, &l->why);
		pen__h5_head_close(&hd);
	}
	out->bad |= lines.bad || l->order.bad;
	if (!out->bad)
		put_lines(l, &lines, out);
	l->out = out;
	pen__buf_fini(&lines);
	pen__buf_fini(&l->order);
	return rc;
}

int pen__h5ad_inventory(struct pen_cells_file *f, const char *frame,
			struct pen_buf *out)
{
	struct lister l = { .f = *f, .frame = frame, .out = out };
	struct pen_cells_node node;
	int rc;

	l.f.err = &l.why;
	rc = f->src->find(&l.f, frame, &node);
	if (rc == 0)
		return 0;
	if (rc > 0 && node.group)
		(void)list_columns(&l, node.addr);
	else if (rc > 0)
		list_members(&l, node.addr);
	if (l.why.code == PEN_ENOMEM || l.why.code == PEN_EIO || out->bad) {
		if (f->err)
			*f->err = l.why;
		return out->bad ? pen__fail_nomem(f->err, f->name, out->n)
				: l.why.code;
	}
	return 0;
}
