/* What inspect says of single cells: the matrix, how it is stored, and obs. */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

#include "format/cells.h"

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
		      const struct pen_cells_array *a)
{
	const char *type = pen_dtype_name(a->dtype);
	const char *order = a->swap ? ", big-endian" : "";
	char filters[128];

	if (a->flat) {
		say(d, name, "%s%s, in one piece, not compressed", type, order);
		return;
	}
	pen__h5_pipe_text(&a->pipe, filters, sizeof(filters));
	if (a->chunk_rows > 1)
		say(d, name,
		    "%s%s, %" PRIu64 " chunks of %" PRIu64 "x%" PRIu64 ", %s",
		    type, order, a->nchunks, a->chunk_rows, a->chunk_cols,
		    filters);
	else
		say(d, name, "%s%s, %" PRIu64 " chunks of %" PRIu64 ", %s",
		    type, order, a->nchunks, a->chunk_cols, filters);
}

static void advise(struct pen_describe *d, const struct pen_cells_view *v)
{
	const struct pen_cells_array *a = &v->data;
	const uint64_t row = v->sparse && v->nrows ? v->nnz / v->nrows
						   : v->ncols;
	const uint64_t chunk = a->chunk_rows * a->chunk_cols;
	char text[256];

	if (a->flat || !a->pipe.n || !row || chunk < 8 * row)
		return;
	snprintf(text, sizeof(text),
		 "a chunk holds %" PRIu64 " numbers, a row about %" PRIu64
		 ": a random cell costs all of it; read with sampler=block, "
		 "which unpacks a chunk once for all cells of it",
		 chunk, row);
	d->advice(d->arg, text);
}

static void say_columns(struct pen_describe *d, const struct pen_cells_view *v)
{
	struct pen_bytes b = pen__bytes(v->inventory.p, v->inventory.n);
	struct pen_span name, kind;
	char text[96];

	while (pen__cells_next_name(&b, &name) &&
	       pen__cells_next_name(&b, &kind)) {
		snprintf(text, sizeof(text), "obs %.*s",
			 name.n < 80 ? (int)name.n : 80, (const char *)name.p);
		say(d, text, "%.*s", (int)kind.n, (const char *)kind.p);
	}
}

/* What the codes of a column that was asked for stand for, in this file. */
static void say_codes(struct pen_describe *d, const char *column,
		      const struct pen_cells_field *c)
{
	struct pen_bytes b = pen__bytes(c->names.p, c->names.n);
	char name[96], text[200] = "";
	struct pen_span s;
	size_t n = 0;

	for (uint32_t i = 0; i < c->nnames && n < sizeof(text) - 64 &&
			     pen__cells_next_name(&b, &s);
	     i++)
		n += (size_t)snprintf(
			text + n, sizeof(text) - n, "%s%" PRId32 " %.*s",
			i ? ", " : "", c->merged ? c->merged[i] : (int32_t)i,
			s.n < 40 ? (int)s.n : 40, (const char *)s.p);
	snprintf(name, sizeof(name), "codes of %s", column);
	say(d, name, "%s%s", text, pen__bytes_left(&b) ? ", ..." : "");
}

void pen__cells_describe(const struct pen_format *f, struct pen_describe *d)
{
	const struct pen_cells *p = f->priv;
	const struct pen_cells_view *v = &p->view[0];

	say(d, "matrix", "%s, %s", p->matrix,
	    v->sparse ? "sparse (csr)" : "dense");
	say(d, "genes", "%" PRIu64, v->ncols);
	if (v->ntake != v->ncols)
		say(d, "genes taken", "%" PRIu32, v->ntake);
	if (v->sparse) {
		const double all = (double)v->nrows * (double)v->ncols;

		say(d, "non-zeros", "%" PRIu64 ", %.1f a cell, %.2f %%", v->nnz,
		    v->nrows ? (double)v->nnz / (double)v->nrows : 0.0,
		    all > 0 ? 100 * (double)v->nnz / all : 0.0);
		say(d, "longest row", "%" PRIu64, v->most);
	}
	say_array(d, v->sparse ? "data" : "numbers", &v->data);
	if (v->sparse)
		say_array(d, "indices", &v->indices);
	say_columns(d, v);
	for (uint32_t i = 0; i < p->nobs; i++)
		if (v->field[i].coded)
			say_codes(d, f->field[f->nfields - p->nobs + i].name,
				  &v->field[i]);
	advise(d, v);
}
