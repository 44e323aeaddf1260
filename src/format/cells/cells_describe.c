/*
 * The output of inspect for single cells: the matrix, its storage, and obs; and
 * warnings. Warnings are found while a file is indexed and kept in its blob,
 * each as a location and a text; the text starts with '!' if the data is
 * damaged.
 */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

#include "base/show.h"
#include "format/cells/cells.h"

static void say(struct pen_describe *d, const char *name, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

static void say(struct pen_describe *d, const char *name, const char *fmt, ...)
{
	char text[256];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	d->fact(d->arg, name, text);
}

static void say_array(struct pen_describe *d, const char *name,
		      const struct pen_chunked *a)
{
	const char *type = pen_dtype_name(pen__chunked_declared(a));
	const char *order = a->swap ? ", big-endian" : "";
	char filters[128];

	if (a->layout == PEN_CHUNKED_FLAT) {
		say(d, name, "%s%s, in one piece, not compressed", type, order);
		return;
	}
	if (a->filters.n)
		pen__chunked_text(a, filters, sizeof(filters));
	else
		snprintf(filters, sizeof(filters), "not compressed");
	if (a->layout == PEN_CHUNKED_GROUPED) {
		say(d, name, "%s%s, %" PRIu64 " chunks of %" PRIu64 " rows, %s",
		    type, order, a->nchunks, a->group_rows, filters);
		return;
	}
	if (a->cut_cols)
		say(d, name,
		    "%s%s, %" PRIu64 " blocks of %" PRIu64 " in chunks of "
		    "%" PRIu64 ", %s",
		    type, order, a->nchunks, a->chunk_cols, a->cut_cols,
		    filters);
	else if (a->chunk_rows > 1)
		say(d, name,
		    "%s%s, %" PRIu64 " chunks of %" PRIu64 "x%" PRIu64 ", %s",
		    type, order, a->nchunks, a->chunk_rows, a->chunk_cols,
		    filters);
	else
		say(d, name, "%s%s, %" PRIu64 " chunks of %" PRIu64 ", %s",
		    type, order, a->nchunks, a->chunk_cols, filters);
}

static void advise(struct pen_describe *d, const struct pen_cells_matrix *m)
{
	const struct pen_chunked *a = &m->data;
	const uint64_t row = m->nrows ? m->nnz / m->nrows : 0;
	const uint64_t chunk = a->layout == PEN_CHUNKED_GROUPED
				       ? a->group_rows * row
				       : a->chunk_rows * a->chunk_cols;
	char text[256];

	if (a->layout == PEN_CHUNKED_FLAT || !a->filters.n || !row ||
	    chunk < 8 * row)
		return;
	snprintf(text, sizeof(text),
		 "a chunk contains %" PRIu64 " values, a row about %" PRIu64
		 ": each random cell unpacks a whole chunk; use sampler=block, "
		 "which unpacks a chunk once for all its cells",
		 chunk, row);
	d->advice(d->arg, text);
}

static void say_matrix(struct pen_describe *d, const struct pen_cells_slot *t,
		       const struct pen_cells_matrix *m)
{
	const double all = (double)m->nrows * (double)m->ncols;

	say(d, "matrix", "%s, %s", t->path,
	    m->sparse ? "sparse (csr)" : "dense");
	say(d, t->frame < PEN_CELLS_FRAMES ? "genes" : "columns", "%" PRIu64,
	    m->nown ? m->nown : m->ncols);
	if (m->ntake != m->ncols && !m->nown)
		say(d, "genes taken", "%" PRIu32, m->ntake);
	if (m->sparse) {
		say(d, "non-zeros", "%" PRIu64 ", %.1f per cell, %.2f %%",
		    m->nnz, m->nrows ? (double)m->nnz / (double)m->nrows : 0.0,
		    all > 0 ? 100 * (double)m->nnz / all : 0.0);
		say(d, "longest row", "%" PRIu64, m->most);
	}
	say_array(d, m->sparse ? "data" : "numbers", &m->data);
	if (m->sparse)
		say_array(d, "indices", &m->indices);
}

/* Reports pairs of names and values. */
static void say_pairs(struct pen_describe *d, const char *prefix,
		      struct pen_span pairs)
{
	struct pen_bytes b = pen__bytes(pairs.p, pairs.n);
	struct pen_span name, value;
	char text[96];

	while (pen__cells_next_name(&b, &name) &&
	       pen__cells_next_name(&b, &value)) {
		snprintf(text, sizeof(text), "%s%.*s", prefix,
			 name.n < 80 ? (int)name.n : 80, (const char *)name.p);
		say(d, text, "%.*s", value.n < 200 ? (int)value.n : 200,
		    (const char *)value.p);
	}
}

/* The first few labels of a field's codes. */
static void say_codes(const struct pen_format *f, uint32_t field,
		      struct pen_describe *d)
{
	const struct pen_cells *p = f->priv;
	const uint64_t all = pen__cells_nlabels(f, field);
	char name[96], text[200] = "", label[4096];
	uint64_t i;
	size_t n = 0;

	for (i = 0; i < all && n < sizeof(text) - 64; i++) {
		const char *last;

		pen__cells_label(f, field, i, label, sizeof(label));
		/* shorten files to their base name, the part that differs */
		last = field == p->obs_field + p->nobs ? strrchr(label, '/')
						       : NULL;
		n += (size_t)snprintf(text + n, sizeof(text) - n,
				      "%s%" PRIu64 " %.40s", i ? ", " : "", i,
				      last ? last + 1 : label);
	}
	snprintf(name, sizeof(name), "codes of %s", f->field[field].name);
	if (all)
		say(d, name, "%s%s", text, i < all ? ", ..." : "");
}

void pen__cells_describe(const struct pen_format *f, struct pen_describe *d)
{
	const struct pen_cells *p = f->priv;
	const struct pen_cells_view *v = p->view0;

	say_pairs(d, "", v->facts);
	for (uint32_t i = 0; i < p->nmatrices; i++)
		say_matrix(d, &p->slot[i], &v->matrix[i]);
	say_pairs(d, "obs ", v->inventory);
	for (uint32_t i = p->obs_field; i < f->nfields; i++)
		say_codes(f, i, d);
	advise(d, &v->matrix[0]);
}

/* ---- warnings ---- */

static bool has_text(const struct pen_buf *b, const char *text)
{
	struct pen_bytes in = pen__bytes(b->p, b->n);
	struct pen_span where, what;

	while (pen__cells_next_name(&in, &where) &&
	       pen__cells_next_name(&in, &what))
		if (where.n == strlen(text) &&
		    memcmp(where.p, text, where.n) == 0)
			return true;
	return false;
}

void pen__cells_warn_absent(struct pen_cells_file *f, const char *path,
			    const struct pen_cells_absent *a, bool damage)
{
	char where[256], text[400];

	pen__cells_where(f, path, where, sizeof(where));
	if (!a->n || !f->warned || has_text(f->warned, where))
		return;
	snprintf(text, sizeof(text),
		 "%s%s of %s %s not stored (%s) and %s as the fill value%s",
		 damage ? "!" : "", pen__show_grouped(a->n).s,
		 pen__show_counted(a->of, "chunk").s, a->n == 1 ? "is" : "are",
		 a->names, a->n == 1 ? "reads" : "read",
		 damage ? ": the matrix is wrong; copy the data again"
			: "; zarr omits chunks that contain nothing else");
	pen__cells_put_text(f->warned, where, strlen(where));
	pen__cells_put_text(f->warned, text, strlen(text));
}

void pen__cells_warn(const struct pen_format *f, void *arg,
		     void (*see)(void *arg, const struct pen_err *))
{
	const struct pen_cells *p = f->priv;
	struct pen_span where, what;
	struct pen_err e;

	for (uint64_t i = 0; i < p->nviews; i++) {
		const struct pen_span s = p->view[i].warned;
		struct pen_bytes in = pen__bytes(s.p, s.n);

		while (pen__cells_next_name(&in, &where) &&
		       pen__cells_next_name(&in, &what) && what.n) {
			const bool damage = *what.p == '!';
			char at[256];

			snprintf(at, sizeof(at), "%.*s",
				 where.n < 255 ? (int)where.n : 255,
				 (const char *)where.p);
			pen__fail(&e, damage ? P_DAMAGED : PEN_OK, at, "%.*s",
				  what.n < 255 ? (int)what.n - damage : 254,
				  (const char *)what.p + damage);
			see(arg, &e);
		}
	}
}
