/*
 * What a frame of an h5ad has, for inspect: a line for each column, with what
 * it is. Damage here need not keep anyone from reading the matrix.
 */
#include <inttypes.h>
#include <stdio.h>

#include "format/cells.h"
#include "format/h5ad_file.h"

struct lister {
	struct pen_cells_file f; /* with an error of its own */
	const char *frame;
	struct pen_buf *out;
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

/* How many the list at addr has; 0 when that cannot be said. */
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

	if (pen__h5_data_open(l->f.in, addr, &d, "obs", &l->why) < 0)
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
		rc = pen__h5_links(f->in, node.addr, see_column, &l, &l.why);
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
