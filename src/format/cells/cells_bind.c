/*
 * Derives the fields from all files together. Refuses files that do not fit:
 * with different genes unless they are joined, or with columns of obs of
 * different types.
 */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

#include "base/mem.h"
#include "format/cells/cells.h"
#include "format/cells/cells_stream.h"

/* State while bind() visits the views. */
struct binder {
	struct pen_format *f;
	struct pen_cells *p;
	const struct pen_index *ix;
	struct pen_err *err;
	uint64_t blob;
	struct {
		uint32_t data, indices; /* units */
	} most[PEN_CELLS_MATRICES];
	size_t room;
};

static int __attribute__((format(printf, 3, 4)))
misfit(const struct binder *b, int kind, const char *fmt, ...)
{
	char name[256], text[256];
	va_list ap;

	pen__blob_name(b->ix, b->blob, name, sizeof(name));
	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	return pen__fail(b->err, kind, name, "%s", text);
}

/* ---- columns of obs ---- */

static bool is_alike(const struct pen_cells_field *a,
		     const struct pen_cells_field *b)
{
	return a->dtype == b->dtype && a->coded == b->coded &&
	       !a->mask == !b->mask;
}

static struct pen_cells_field *find_column(const struct pen_cells_view *v,
					   struct pen_span name)
{
	for (uint32_t i = 0; i < v->nfields; i++)
		if (pen__cells_compare(v->field[i].name, name) == 0)
			return &v->field[i];
	return NULL;
}

static int refuse_column(const struct binder *b,
			 const struct pen_cells_field *c,
			 const struct pen_cells_field *c0)
{
	return misfit(
		b, P_FILES_DISAGREE,
		"obs column '%.*s' has type %s%s, but %s%s in earlier files",
		(int)c->name.n, (const char *)c->name.p,
		c->coded ? "categorical " : "", pen_dtype_name(c->dtype),
		c0->coded ? "categorical " : "", pen_dtype_name(c0->dtype));
}

/* obs=*: the columns that all files have, in the order of the first. */
static bool is_everywhere(const struct pen_cells *p,
			  const struct pen_cells_field *c)
{
	for (uint64_t i = 0; i < p->nviews; i++) {
		const struct pen_cells_field *o;

		if (!p->view[i].matrix)
			continue;
		o = find_column(&p->view[i], c->name);
		if (!o || !is_alike(o, c))
			return false;
	}
	return true;
}

/* Makes the column of that name column k of the view. */
static void move_column(struct pen_cells_view *v, uint32_t k,
			struct pen_span name)
{
	struct pen_cells_field *c = find_column(v, name);
	const struct pen_cells_field was = v->field[k];

	v->field[k] = *c;
	*c = was;
}

static int pick_columns(struct binder *b)
{
	struct pen_cells *p = b->p;
	const struct pen_cells_view *v0 = p->view0;
	uint32_t n = 0;

	for (uint32_t i = 0; i < v0->nfields; i++) {
		const struct pen_span name = v0->field[i].name;

		if (!is_everywhere(p, &v0->field[i]))
			continue;
		if (!p->copy && 2 * p->nmatrices + n + 1 >= PEN_MAX_FIELDS)
			return pen__fail(b->err, P_TOO_LONG, "obs",
					 "obs has too many columns to load all "
					 "as fields; list the ones to load");
		for (uint64_t k = 0; k < p->nviews; k++)
			if (p->view[k].matrix)
				move_column(&p->view[k], n, name);
		n++;
	}
	p->nobs = n;
	return 0;
}

static int check_columns(struct binder *b)
{
	struct pen_cells *p = b->p;
	const struct pen_cells_view *v0 = p->view0;

	if (p->obs && strcmp(p->obs, "*") == 0)
		return pick_columns(b);
	p->nobs = v0->nfields;
	for (b->blob = 0; b->blob < p->nviews; b->blob++) {
		const struct pen_cells_view *v = &p->view[b->blob];

		if (!v->matrix)
			continue;
		if (v->nfields != p->nobs ||
		    (!p->copy && p->nobs + 2 * p->nmatrices > PEN_MAX_FIELDS))
			return misfit(b, P_BAD_INDEX,
				      "the index entry is damaged");
		for (uint32_t i = 0; i < p->nobs; i++)
			if (!is_alike(&v->field[i], &v0->field[i]))
				return refuse_column(b, &v->field[i],
						     &v0->field[i]);
	}
	return 0;
}

/* ---- genes ---- */

static int check_genes(const struct binder *b, const struct pen_cells_view *v,
		       int frame)
{
	const struct pen_cells_var *g0 = &b->p->view0->var[frame];
	const struct pen_cells_var *g = &v->var[frame];

	if (b->p->join != PEN_CELLS_SAME ||
	    (b->p->genes && *b->p->genes == '@') || !g->ncols)
		return 0;
	if (g->ncols != g0->ncols)
		return misfit(
			b, P_FILES_DISAGREE,
			"the file has %" PRIu64
			" genes, but earlier files have %" PRIu64
			"; use format.join=inner (shared genes), "
			"format.join=outer (all genes) or format.genes=@FILE",
			g->ncols, g0->ncols);
	if (g->hash && g0->hash && g->hash != g0->hash)
		return misfit(
			b, P_FILES_DISAGREE,
			"the genes or their order differ from earlier files; "
			"use format.join=inner (shared genes), "
			"format.join=outer (all genes) or format.genes=@FILE");
	if (b->p->set[g->set].ntake != b->p->set[g0->set].ntake)
		return misfit(b, P_FILES_DISAGREE,
			      "format.genes=%s selects %" PRIu32
			      " genes here, but %" PRIu32 " in earlier files",
			      b->p->genes, b->p->set[g->set].ntake,
			      b->p->set[g0->set].ntake);
	return 0;
}

static int check_fit(const struct binder *b, const struct pen_cells_view *v)
{
	int rc = 0;

	for (int i = 0; rc >= 0 && i < PEN_CELLS_FRAMES; i++)
		rc = check_genes(b, v, i);
	for (uint32_t i = 0; rc >= 0 && i < b->p->nmatrices; i++) {
		const struct pen_cells_slot *t = &b->p->slot[i];

		if (v->matrix[i].ntake != t->ntake)
			rc = misfit(b, P_FILES_DISAGREE,
				    "%s has %" PRIu64 " columns, but %" PRIu64
				    " in earlier files",
				    t->path, v->matrix[i].ncols,
				    b->p->view0->matrix[i].ncols);
	}
	return rc;
}

/* ---- matrices ---- */

static bool is_float(unsigned t)
{
	return t >= PEN_F16 && t <= PEN_F64;
}

/* The type that can represent the values of a matrix in all files. */
static enum pen_dtype stored_type(const struct pen_cells *p, uint32_t matrix)
{
	const bool changes = pen__cells_changes(p, &p->slot[matrix]);
	const enum pen_dtype first =
		pen__chunked_declared(&p->view0->matrix[matrix].data);
	bool same = true, wide = false;

	for (uint64_t i = 0; i < p->nviews; i++) {
		enum pen_dtype t;

		if (!p->view[i].matrix)
			continue;
		t = pen__chunked_declared(&p->view[i].matrix[matrix].data);
		same &= t == first;
		wide |= t == PEN_F64 || (t >= PEN_I32 && t <= PEN_U64);
	}
	if (!same || (changes && !is_float(first)))
		return wide ? PEN_F64 : PEN_F32;
	return first == PEN_BOOL ? PEN_U8 : first;
}

/* The first file determines what a matrix becomes. */
static void settle(struct binder *b)
{
	struct pen_cells *p = b->p;

	p->piece = 0;
	for (uint32_t i = 0; i < p->nmatrices; i++) {
		const struct pen_cells_matrix *m = &p->view0->matrix[i];
		struct pen_cells_slot *t = &p->slot[i];
		const unsigned own = m->data.dtype;

		t->most = 0;
		t->list = p->copy ? m->sparse
				  : p->output == PEN_CELLS_CSR &&
					    (m->sparse || !i);
		t->type = p->type;
		t->ntake = m->ntake;
		if (p->copy && (!p->dtype || t->frame == PEN_CELLS_NOVAR))
			t->type = stored_type(p, i);
		else if (t->frame == PEN_CELLS_NOVAR &&
			 (!p->dtype || !is_float(p->type)))
			t->type = is_float(own) ? (enum pen_dtype)own : PEN_F32;
	}
}

/* Whether values are modified while they are loaded. */
bool pen__cells_changes(const struct pen_cells *p,
			const struct pen_cells_slot *t)
{
	return t->frame < PEN_CELLS_FRAMES && (p->normalize > 0 || p->log1p);
}

/* Whether the stored bytes are the row, so that nothing is copied. */
static bool is_plain(const struct pen_cells *p, const struct pen_cells_slot *t,
		     const struct pen_cells_matrix *m)
{
	const struct pen_chunked *a = &m->data;

	return a->layout == PEN_CHUNKED_FLAT && !a->swap &&
	       a->dtype == t->type && !pen__cells_changes(p, t) && !m->map &&
	       (t->list ? pen__cells_whole(m)
			: !m->sparse && m->extent == m->ntake);
}

static void note_room(struct binder *b, const struct pen_chunked *a)
{
	const size_t n = pen__chunked_room(a);

	if (a->layout == PEN_CHUNKED_FLAT || !a->filters.n)
		return;
	b->f->shares = true;
	b->room = n > b->room ? n : b->room;
}

static int note(struct binder *b, struct pen_cells_view *v, uint32_t i)
{
	struct pen_cells_matrix *m = &v->matrix[i];
	struct pen_cells_slot *t = &b->p->slot[i];
	uint32_t data = pen__cells_array_units(m, &m->data), indices = 0;
	uint64_t n;

	/* at least one, so that a first one always exists */
	data += !data;
	note_room(b, &m->data);
	if (m->sparse) {
		note_room(b, &m->indices);
		indices = pen__cells_array_units(m, &m->indices);
		indices += !indices;
	}
	if (data + indices > PEN_CELLS_UNITS)
		return misfit(b, P_OVER_LIMIT,
			      "a row of %s spans more than %d chunks, each a "
			      "separate read; store it in larger chunks",
			      t->path, PEN_CELLS_UNITS);
	if (data > b->most[i].data)
		b->most[i].data = data;
	if (indices > b->most[i].indices)
		b->most[i].indices = indices;
	m->plain = is_plain(b->p, t, m);
	b->f->all_plain &= m->plain && !m->sparse &&
			   (b->p->copy || (!b->p->nobs && !b->p->source));
	b->f->uniform &= b->f->all_plain && b->p->nmatrices == 1 && !v->rows &&
			 m->ntake == m->ncols;
	n = pen__cells_most(m);
	t->most = n > t->most ? n : t->most;
	n = m->sparse ? m->most : m->extent;
	if (b->f->shares && b->p->piece < n * 8)
		b->p->piece = (n * 8 + 63) / 64 * 64;
	return 0;
}

/* ---- fields ---- */

static int add_field(struct binder *b, const char *name, size_t n,
		     enum pen_dtype t)
{
	struct pen_format *f = b->f;
	struct pen_field *fd = &f->field[f->nfields];

	*fd = (struct pen_field){ .dtype = t };
	memcpy(fd->name, name, n < sizeof(fd->name) ? n : 0);
	fd->max_bytes = pen_dtype_size(t);
	for (uint32_t i = 0; i < f->nfields; i++)
		if (strcmp(f->field[i].name, fd->name) == 0)
			return pen__fail(
				b->err, P_CONFLICT, "cells",
				"two of the requested matrices and columns "
				"would both become the field '%s'",
				fd->name);
	f->nfields++;
	return 0;
}

static int add_row(struct binder *b, const struct pen_cells_slot *t,
		   const char *suffix, enum pen_dtype type)
{
	struct pen_field *fd = &b->f->field[b->f->nfields];
	char name[sizeof(fd->name)];
	const int n = snprintf(name, sizeof(name), "%s%s", t->name, suffix);
	const uint64_t len = t->list ? t->most : t->ntake;
	int rc = add_field(b, name, (size_t)n, type);

	fd->ndim = 1;
	fd->layout = t->list ? PEN_RAGGED : PEN_DENSE;
	fd->shape[0] = t->list ? -1 : (int64_t)t->ntake;
	fd->max_bytes = len * pen_dtype_size(type);
	return rc;
}

static int set_fields(struct binder *b)
{
	struct pen_cells *p = b->p;
	int rc = 0;

	b->f->nfields = 0;
	for (uint32_t i = 0; rc >= 0 && i < p->nmatrices; i++) {
		struct pen_cells_slot *t = &p->slot[i];

		t->field = b->f->nfields;
		b->f->paired |= t->list;
		rc = add_row(b, t, t->list ? "_data" : "", t->type);
		if (rc >= 0 && t->list)
			rc = add_row(b, t, "_indices", PEN_I32);
	}
	p->obs_field = b->f->nfields;
	if (p->copy)
		return rc;
	for (uint32_t i = 0; rc >= 0 && i < p->nobs; i++) {
		const struct pen_cells_field *c = &p->view0->field[i];

		rc = add_field(b, (const char *)c->name.p, c->name.n,
			       (enum pen_dtype)c->dtype);
	}
	if (rc >= 0 && p->source)
		rc = add_field(b, "source", 6, PEN_I32);
	return rc;
}

/* Numbers the objects that contain cells. */
static int set_sources(struct binder *b)
{
	const struct pen_index *ix = b->ix;
	struct pen_cells *p = b->p;

	if (!p->source)
		return 0;
	p->source_of = pen__alloc(ix->nobjects ? (size_t)ix->nobjects : 1,
				  sizeof(*p->source_of));
	if (!p->source_of)
		return pen__fail_nomem(b->err, "source",
				       (size_t)ix->nobjects * 4);
	for (uint64_t i = 0; i < ix->nobjects; i++) {
		const uint64_t blob = ix->blob_of(ix, i);

		p->source_of[i] = p->nsources;
		p->nsources += blob < p->nviews && p->view[blob].matrix;
	}
	return 0;
}

/* Bytes a thread needs to unpack a chunk or to build a row. */
static size_t room_of(const struct binder *b)
{
	size_t row = 0, n;

	for (uint32_t i = 0; i < b->p->nmatrices; i++) {
		const struct pen_cells_slot *t = &b->p->slot[i];

		n = t->list ? 0 : t->ntake * pen_dtype_size(t->type);
		if (pen__cells_streams(n) && n > row)
			row = n;
	}
	n = 2 * b->p->piece + row;
	return n > b->room ? n : b->room;
}

static void set_units(struct binder *b)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < b->p->nmatrices; i++) {
		struct pen_cells_slot *t = &b->p->slot[i];

		t->data = n;
		t->indices = n + b->most[i].data;
		n = t->indices + b->most[i].indices;
	}
	b->f->units_per_sample = n;
	b->f->scratch_size = room_of(b);
}

static int bind_views(struct binder *b)
{
	struct pen_cells *p = b->p;
	int rc = 0;

	settle(b);
	for (b->blob = 0; rc >= 0 && b->blob < p->nviews; b->blob++) {
		struct pen_cells_view *v = &p->view[b->blob];

		if (!v->matrix)
			continue;
		rc = check_fit(b, v);
		for (uint32_t i = 0; rc >= 0 && i < p->nmatrices; i++)
			rc = note(b, v, i);
	}
	return rc;
}

int pen__cells_bind(struct pen_format *f, const struct pen_index *ix,
		    struct pen_err *err)
{
	struct pen_cells *p = f->priv;
	struct binder b = { .f = f, .p = p, .ix = ix, .err = err };
	char name[256];
	int rc;

	pen__cells_unbind(f);
	f->ix = ix;
	f->shares = false;
	f->all_plain = f->uniform = true;
	rc = pen__cells_take_views(p, ix, &b.blob, err);
	if (rc >= 0)
		rc = pen__cells_take_genes(p, &b.blob, err);
	if (rc < 0) {
		pen__blob_name(ix, b.blob, name, sizeof(name));
		pen__err_where(err, name[0] ? name : "cells");
		return rc;
	}
	rc = check_columns(&b);
	if (rc >= 0)
		rc = bind_views(&b);
	if (rc >= 0)
		rc = pen__cells_merge(p, err);
	if (rc >= 0)
		rc = set_fields(&b);
	if (rc >= 0)
		rc = set_sources(&b);
	if (rc >= 0)
		rc = pen__cells_name_genes(p, err);
	if (rc >= 0)
		set_units(&b);
	return rc;
}

void pen__cells_unbind(struct pen_format *f)
{
	struct pen_cells *p = f->priv;

	for (uint64_t i = 0; p->view && i < p->nviews; i++)
		pen__free(p->view[i].field);
	for (uint64_t i = 0; p->matrices && i < p->nviews * p->nmatrices; i++)
		pen__free(p->matrices[i].own);
	for (uint32_t i = 0; p->set && i < p->nsets; i++)
		pen__free(p->set[i].map);
	for (uint32_t i = 0; i < p->nlabelled; i++) {
		pen__free(p->merged[i]);
		pen__free(p->label[i].s);
	}
	pen__free(p->merged);
	pen__free(p->label);
	p->merged = NULL;
	p->label = NULL;
	p->nlabelled = 0;
	pen__free(p->view);
	pen__free(p->common);
	pen__free(p->matrices);
	pen__free(p->set);
	pen__free(p->vars);
	pen__free(p->var_row);
	pen__free(p->gene);
	pen__free(p->source_of);
	p->view = NULL;
	p->view0 = NULL;
	p->common = NULL;
	p->matrices = NULL;
	p->set = NULL;
	p->vars = NULL;
	p->var_row = NULL;
	p->gene = NULL;
	p->source_of = NULL;
	p->nviews = 0;
	p->nsets = p->ncommon = p->nvars = p->nsources = 0;
}
