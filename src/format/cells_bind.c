/*
 * From index blobs to views, and fields out of all of them together. Refuses
 * files that do not fit together: with other genes, or with columns of obs
 * of another type.
 */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

#include "base/mem.h"
#include "format/cells.h"

/* While bind() goes through the blobs. */
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

static int damaged(const struct binder *b)
{
	return pen__fail(b->err, PEN_EDATA, "cells", "damaged index entry");
}

static int __attribute__((format(printf, 2, 3)))
misfit(const struct binder *b, const char *fmt, ...)
{
	char name[256], text[256];
	va_list ap;

	pen__blob_name(b->ix, b->blob, name, sizeof(name));
	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	return pen__fail(b->err, PEN_ENOTSUP, name, "%s", text);
}

static struct pen_span take_bytes(struct pen_bytes *in)
{
	const uint64_t n = pen__take_u64(in);
	const uint8_t *p = pen__take(in, n);

	return (struct pen_span){ p, p ? (size_t)n : 0 };
}

/* ---- one blob ---- */

static bool take_starts(struct pen_bytes *in, struct pen_cells_matrix *m,
			uint64_t *n)
{
	m->width = pen__take_u8(in);
	*n = pen__take_u64(in);
	if (in->bad || (m->width != 4 && m->width != 8) || !*n ||
	    *n > pen__bytes_left(in) / m->width)
		return false;
	m->indptr = pen__take(in, *n * m->width);
	return true;
}

/* Numbers among the file's chunks for all arrays, one after another. */
static bool number_chunks(struct pen_cells_array *a, uint64_t *n)
{
	a->id0 = (uint32_t)*n;
	*n += a->nchunks;
	return *n <= UINT32_MAX;
}

static bool take_matrix(struct pen_bytes *in, struct pen_cells_matrix *m,
			uint64_t *chunks)
{
	uint64_t n = 0;

	m->sparse = pen__take_u8(in);
	if (!pen__cells_array_take(in, &m->data) ||
	    !number_chunks(&m->data, chunks) ||
	    (m->sparse &&
	     (!pen__cells_array_take(in, &m->indices) ||
	      !number_chunks(&m->indices, chunks) || !take_starts(in, m, &n))))
		return false;
	m->nrows = pen__take_u64(in);
	m->ncols = pen__take_u64(in);
	m->nnz = pen__take_u64(in);
	m->most = pen__take_u64(in);
	m->extent = m->ncols;
	m->ntake = (uint32_t)m->ncols;
	if (in->bad || !m->ncols || m->ncols > PEN_CELLS_GENES ||
	    m->most > INT32_MAX)
		return false;
	if (m->sparse)
		return n - 1 == m->nrows && m->data.ncols == m->nnz &&
		       m->indices.ncols == m->nnz;
	return m->most == m->ncols && m->nnz / m->ncols == m->nrows &&
	       (m->data.layout == PEN_CELLS_GROUPED ||
		m->data.ncols == m->ncols);
}

static bool take_rows(struct pen_bytes *in, struct pen_cells_view *v)
{
	struct pen_span s;

	v->nsamples = v->nrows;
	if (!pen__take_u8(in))
		return !in->bad;
	s = take_bytes(in);
	if (in->bad || s.n / 4 > v->nrows)
		return false;
	v->rows = s.p;
	v->nsamples = s.n / 4;
	return true;
}

static bool take_columns(struct pen_bytes *in, struct pen_cells_view *v,
			 uint32_t n)
{
	for (uint32_t i = 0; i < n; i++) {
		struct pen_cells_field *c = &v->field[i];
		size_t bytes;

		c->dtype = pen__take_u8(in);
		c->coded = pen__take_u8(in);
		c->nnames = pen__take_u32(in);
		c->names = take_bytes(in);
		if (in->bad || c->dtype > PEN_F64 ||
		    (c->coded && c->dtype != PEN_I32) ||
		    !pen__mul((size_t)v->nsamples, pen_dtype_size(c->dtype),
			      &bytes))
			return false;
		c->values = pen__take(in, bytes);
	}
	return !in->bad;
}

static bool take_vars(struct pen_bytes *in, struct pen_cells_view *v)
{
	for (int i = 0; i < PEN_CELLS_FRAMES; i++) {
		v->var[i].ncols = pen__take_u64(in);
		v->var[i].hash = pen__take_u64(in);
		v->var[i].genes = take_bytes(in);
	}
	return !in->bad;
}

static int take_view(struct binder *b, struct pen_cells_view *v)
{
	const struct pen_span s = b->ix->blob(b->ix, b->blob);
	struct pen_bytes in = pen__bytes(s.p, s.n);
	const struct pen_cells *p = b->p;
	uint64_t chunks = 0;

	if (pen__take_u32(&in) != p->nmatrices)
		return damaged(b);
	for (uint32_t i = 0; i < p->nmatrices; i++)
		if (!take_matrix(&in, &v->matrix[i], &chunks) ||
		    v->matrix[i].nrows != v->matrix[0].nrows)
			return damaged(b);
	v->nrows = v->matrix[0].nrows;
	if (!take_rows(&in, v) || !take_columns(&in, v, p->nobs) ||
	    !take_vars(&in, v))
		return damaged(b);
	for (uint32_t i = 0; i < p->nmatrices; i++)
		if (p->slot[i].frame < PEN_CELLS_FRAMES &&
		    v->var[p->slot[i].frame].ncols != v->matrix[i].ncols)
			return damaged(b);
	v->inventory = take_bytes(&in);
	return in.bad ? damaged(b) : 0;
}

/* ---- all together ---- */

/* The same matrix in the first file that has it: what others are held to. */
static const struct pen_cells_matrix *first_of(const struct binder *b,
					       uint32_t i)
{
	return &b->p->view[0].matrix[i];
}

static bool is_float(unsigned t)
{
	return t >= PEN_F16 && t <= PEN_F64;
}

/* What a matrix becomes is settled by the first file. */
static void settle(struct binder *b)
{
	struct pen_cells *p = b->p;

	for (uint32_t i = 0; i < p->nmatrices; i++) {
		const struct pen_cells_matrix *m = first_of(b, i);
		struct pen_cells_slot *t = &p->slot[i];
		const unsigned own = m->data.dtype;

		t->most = 0;
		t->list = p->output == PEN_CELLS_CSR && (m->sparse || !i);
		t->type = p->type;
		t->ntake = m->ntake;
		if (t->frame == PEN_CELLS_NOVAR &&
		    (!p->dtype || !is_float(p->type)))
			t->type = is_float(own) ? (enum pen_dtype)own : PEN_F32;
	}
}

/* Are numbers changed on the way? */
bool pen__cells_changes(const struct pen_cells *p,
			const struct pen_cells_slot *t)
{
	return t->frame < PEN_CELLS_FRAMES && (p->normalize > 0 || p->log1p);
}

/* Bytes that are the row as they are, so that nothing is copied. */
static bool is_plain(const struct pen_cells *p, const struct pen_cells_slot *t,
		     const struct pen_cells_matrix *m)
{
	const struct pen_cells_array *a = &m->data;

	return a->layout == PEN_CELLS_FLAT && !a->swap && a->dtype == t->type &&
	       !pen__cells_changes(p, t) && !m->map &&
	       (t->list ? m->sparse : !m->sparse && m->extent == m->ntake);
}

static void note_room(struct binder *b, const struct pen_cells_array *a)
{
	const size_t n = pen__cells_decode_room(a);

	if (a->layout == PEN_CELLS_FLAT || !a->pipe.n)
		return;
	b->f->shares = true;
	b->room = n > b->room ? n : b->room;
}

static int note(struct binder *b, struct pen_cells_view *v, uint32_t i)
{
	struct pen_cells_matrix *m = &v->matrix[i];
	struct pen_cells_slot *t = &b->p->slot[i];
	uint32_t data = pen__cells_array_units(m, &m->data), indices = 0;

	/* one at least, so that there always is a first one */
	data += !data;
	note_room(b, &m->data);
	if (m->sparse) {
		note_room(b, &m->indices);
		indices = pen__cells_array_units(m, &m->indices);
		indices += !indices;
	}
	if (data + indices > PEN_CELLS_UNITS)
		return misfit(b,
			      "a row of %s lies in more than %d chunks, each a "
			      "read of its own; store it in larger ones",
			      t->path, PEN_CELLS_UNITS);
	if (data > b->most[i].data)
		b->most[i].data = data;
	if (indices > b->most[i].indices)
		b->most[i].indices = indices;
	m->plain = is_plain(b->p, t, m);
	b->f->all_plain &= m->plain && !m->sparse && !b->p->nobs;
	b->f->uniform &= b->f->all_plain && b->p->nmatrices == 1 && !v->rows &&
			 m->ntake == m->ncols;
	t->most = m->most > t->most ? m->most : t->most;
	return 0;
}

static int check_columns(const struct binder *b, const struct pen_cells_view *v)
{
	const struct pen_cells_view *v0 = &b->p->view[0];

	for (uint32_t i = 0; i < b->p->nobs; i++) {
		const struct pen_cells_field *c = &v->field[i];
		const struct pen_cells_field *c0 = &v0->field[i];
		char name[64] = "";
		const char *s = b->p->obs;

		for (uint32_t k = 0; k < i; k++)
			s += strcspn(s, ",") + 1;
		snprintf(name, sizeof(name), "%.*s", (int)strcspn(s, ","), s);
		if (c->dtype != c0->dtype || c->coded != c0->coded)
			return misfit(b,
				      "column %s of obs is of %s%s, but of "
				      "%s%s in files before",
				      name, c->coded ? "categories, " : "",
				      pen_dtype_name(c->dtype),
				      c0->coded ? "categories, " : "",
				      pen_dtype_name(c0->dtype));
	}
	return 0;
}

static int check_genes(const struct binder *b, const struct pen_cells_view *v,
		       int frame)
{
	const struct pen_cells_var *g0 = &b->p->view[0].var[frame];
	const struct pen_cells_var *g = &v->var[frame];

	if (b->p->genes && *b->p->genes == '@')
		return 0;
	if (g->ncols != g0->ncols || g->ntake != g0->ntake)
		return misfit(b,
			      "has %" PRIu64 " genes, files before have "
			      "%" PRIu64 "; choose some of all with "
			      "genes=@FILE",
			      g->ncols, g0->ncols);
	if (g->hash && g0->hash && g->hash != g0->hash)
		return misfit(b, "has other genes than files before, or in "
				 "another order; choose some of all with "
				 "genes=@FILE");
	return 0;
}

static int check_fit(const struct binder *b, const struct pen_cells_view *v)
{
	int rc = 0;

	for (int i = 0; rc >= 0 && i < PEN_CELLS_FRAMES; i++)
		rc = check_genes(b, v, i);
	for (uint32_t i = 0; rc >= 0 && i < b->p->nmatrices; i++) {
		const struct pen_cells_matrix *m = &v->matrix[i];
		const struct pen_cells_slot *t = &b->p->slot[i];

		if (t->list && !m->sparse)
			rc = misfit(b,
				    "%s is a dense matrix, which output=csr "
				    "does not make sparse; leave output=dense",
				    t->path);
		else if (m->ntake != t->ntake)
			rc = misfit(b,
				    "%s has %" PRIu64 " columns, in files "
				    "before it has %" PRIu64,
				    t->path, m->ncols, first_of(b, i)->ncols);
	}
	return rc < 0 ? rc : check_columns(b, v);
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
			return pen__fail(b->err, PEN_EINVAL, "cells",
					 "two of the matrices and columns that "
					 "are asked for would be field %s",
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
	const char *s = b->p->obs;
	int rc = 0;

	b->f->nfields = 0;
	for (uint32_t i = 0; rc >= 0 && i < b->p->nmatrices; i++) {
		struct pen_cells_slot *t = &b->p->slot[i];

		t->field = b->f->nfields;
		rc = add_row(b, t, t->list ? "_data" : "", t->type);
		if (rc >= 0 && t->list)
			rc = add_row(b, t, "_indices", PEN_I32);
	}
	for (uint32_t i = 0; rc >= 0 && i < b->p->nobs; i++) {
		const size_t n = strcspn(s, ",");

		rc = add_field(b, s, n, b->p->view[0].field[i].dtype);
		s += n + (s[n] == ',');
	}
	return rc;
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
	b->f->scratch_size = b->room;
}

static int add_view(struct binder *b)
{
	struct pen_cells *p = b->p;
	struct pen_cells_view *v = &p->view[b->blob];
	char name[256];
	int rc;

	v->field = p->field + b->blob * p->nobs;
	v->matrix = p->matrices + b->blob * p->nmatrices;
	rc = take_view(b, v);
	if (rc < 0)
		return rc;
	rc = pen__cells_take_genes(p, v, b->err);
	if (rc < 0) {
		pen__blob_name(b->ix, b->blob, name, sizeof(name));
		pen__err_where(b->err, name);
		return rc;
	}
	if (!b->blob)
		settle(b);
	rc = check_fit(b, v);
	for (uint32_t i = 0; rc >= 0 && i < p->nmatrices; i++)
		rc = note(b, v, i);
	return rc;
}

static int make_room(struct binder *b)
{
	struct pen_cells *p = b->p;
	const uint64_t n = b->ix->nblobs;
	size_t columns, matrices;

	if (!n)
		return pen__fail(b->err, PEN_ENOTFOUND, "cells", "no objects");
	if (!pen__mul((size_t)n, p->nobs, &columns) ||
	    !pen__mul((size_t)n, p->nmatrices, &matrices))
		return damaged(b);
	p->view = pen__calloc((size_t)n, sizeof(*p->view));
	p->matrices = pen__calloc(matrices, sizeof(*p->matrices));
	p->field = pen__calloc(columns ? columns : 1, sizeof(*p->field));
	if (!p->view || !p->field || !p->matrices)
		return pen__fail_nomem(b->err, "cells",
				       matrices * sizeof(*p->matrices));
	p->nviews = n;
	return 0;
}

int pen__cells_bind(struct pen_format *f, const struct pen_index *ix,
		    struct pen_err *err)
{
	struct pen_cells *p = f->priv;
	struct binder b = { .f = f, .p = p, .ix = ix, .err = err };
	int rc;

	pen__cells_unbind(f);
	f->ix = ix;
	f->shares = false;
	f->all_plain = f->uniform = true;
	rc = make_room(&b);
	for (; rc >= 0 && b.blob < ix->nblobs; b.blob++)
		rc = add_view(&b);
	if (rc >= 0)
		rc = pen__cells_merge(p, err);
	if (rc >= 0)
		rc = set_fields(&b);
	if (rc >= 0)
		set_units(&b);
	return rc;
}

void pen__cells_unbind(struct pen_format *f)
{
	struct pen_cells *p = f->priv;

	for (uint64_t i = 0; p->view && i < p->nviews; i++)
		for (int k = 0; k < PEN_CELLS_FRAMES; k++)
			pen__free(p->view[i].var[k].map);
	for (int i = 0; i < PEN_MAX_FIELDS; i++) {
		pen__free(p->merged[i]);
		p->merged[i] = NULL;
	}
	pen__free(p->view);
	pen__free(p->field);
	pen__free(p->matrices);
	p->view = NULL;
	p->matrices = NULL;
	p->field = NULL;
	p->nviews = 0;
}
