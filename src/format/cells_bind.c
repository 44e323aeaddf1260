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
	uint64_t most; /* numbers in the longest row of all */
	uint32_t data_units, gene_units;
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

static bool take_starts(struct pen_bytes *in, struct pen_cells_view *v,
			uint64_t *n)
{
	v->width = pen__take_u8(in);
	*n = pen__take_u64(in);
	if (in->bad || (v->width != 4 && v->width != 8) || !*n ||
	    *n > pen__bytes_left(in) / v->width)
		return false;
	v->indptr = pen__take(in, *n * v->width);
	return true;
}

static bool take_rows(struct pen_bytes *in, struct pen_cells_view *v)
{
	struct pen_span s;

	v->nsamples = v->nrows;
	if (!pen__take_u8(in))
		return !in->bad;
	s = take_bytes(in);
	if (in->bad)
		return false;
	v->rows = s.p;
	v->nsamples = s.n / 4;
	for (uint64_t i = 0; i < v->nsamples; i++)
		if (pen__cells_u32(s.p, i) >= v->nrows)
			return false;
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

/* The longest row: what units and lists have to have room for. */
static bool measure(struct pen_cells_view *v, uint32_t *data, uint32_t *genes)
{
	*data = *genes = 0;
	v->extent = v->ncols;
	v->most = v->ncols;
	if (!v->sparse) {
		*data = pen__cells_array_units(&v->data, 0, v->ncols);
		return v->data.ncols == v->ncols;
	}
	v->most = 0;
	for (uint64_t i = 0; i < v->nrows; i++) {
		const uint64_t at = pen__cells_start(v, i);
		const uint64_t end = pen__cells_start(v, i + 1);
		uint32_t n;

		if (end < at || end > v->nnz || end - at > INT32_MAX)
			return false;
		if (end - at > v->most)
			v->most = end - at;
		n = pen__cells_array_units(&v->data, at, end);
		*data = n > *data ? n : *data;
		n = pen__cells_array_units(&v->indices, at, end);
		*genes = n > *genes ? n : *genes;
	}
	return v->data.ncols == v->nnz && v->indices.ncols == v->nnz;
}

static int take_view(struct binder *b, struct pen_cells_view *v)
{
	const struct pen_span s = b->ix->blob(b->ix, b->blob);
	struct pen_bytes in = pen__bytes(s.p, s.n);
	uint32_t data, genes;
	uint64_t n = 0;

	v->sparse = pen__take_u8(&in);
	if (!pen__cells_array_take(&in, &v->data) ||
	    (v->sparse && (!pen__cells_array_take(&in, &v->indices) ||
			   !take_starts(&in, v, &n))))
		return damaged(b);
	v->nrows = pen__take_u64(&in);
	v->ncols = pen__take_u64(&in);
	v->nnz = pen__take_u64(&in);
	if (in.bad || !v->ncols || v->ncols > PEN_CELLS_GENES ||
	    (v->sparse && n != v->nrows + 1) || !take_rows(&in, v) ||
	    !take_columns(&in, v, b->p->nobs))
		return damaged(b);
	v->genes_hash = pen__take_u64(&in);
	v->genes = take_bytes(&in);
	v->inventory = take_bytes(&in);
	if (in.bad || !measure(v, &data, &genes))
		return damaged(b);
	if (data + genes > PEN_CELLS_UNITS)
		return misfit(b,
			      "a row of %s lies in more than %d chunks, each a "
			      "read of its own; store it in larger ones",
			      b->p->matrix, PEN_CELLS_UNITS);
	b->data_units = data > b->data_units ? data : b->data_units;
	b->gene_units = genes > b->gene_units ? genes : b->gene_units;
	v->indices.id0 = (uint32_t)v->data.nchunks;
	return 0;
}

/* ---- all together ---- */

/* Bytes that are the row as they are, so that nothing is copied. */
static bool is_plain(const struct pen_cells *p, const struct pen_cells_view *v)
{
	const struct pen_cells_array *a = &v->data;

	return a->flat && !a->swap && a->dtype == p->type &&
	       p->normalize <= 0 && !p->log1p && !v->map &&
	       (p->output == PEN_CELLS_CSR ||
		(!v->sparse && v->extent == v->ntake));
}

static void note(struct binder *b, struct pen_cells_view *v)
{
	const struct pen_cells_array *a[] = { &v->data, &v->indices };

	for (int i = 0; i < (v->sparse ? 2 : 1); i++) {
		const size_t n =
			pen__h5_pipe_room(&a[i]->pipe, a[i]->chunk_bytes);

		if (a[i]->flat || !a[i]->pipe.n)
			continue;
		b->f->shares = true;
		b->room = n > b->room ? n : b->room;
		v->piece = (v->sparse ? v->most : v->extent) * 8;
	}
	/* for data and genes that were narrowed */
	b->room = 2 * v->piece > b->room ? 2 * v->piece : b->room;
	v->plain = is_plain(b->p, v);
	b->f->all_plain &= v->plain && !v->sparse && !b->p->nobs;
	b->f->uniform &= b->f->all_plain && !v->rows && v->ntake == v->ncols;
	b->most = v->most > b->most ? v->most : b->most;
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

static int check_fit(const struct binder *b, const struct pen_cells_view *v)
{
	const struct pen_cells_view *v0 = &b->p->view[0];
	const bool named = b->p->genes && *b->p->genes == '@';

	if (b->p->output == PEN_CELLS_CSR && !v->sparse)
		return misfit(b,
			      "%s is a dense matrix, which output=csr does "
			      "not make sparse; leave output=dense",
			      b->p->matrix);
	if (!named && (v->ncols != v0->ncols || v->ntake != v0->ntake))
		return misfit(b,
			      "has %" PRIu64 " genes, files before have "
			      "%" PRIu64 "; choose some of all with "
			      "genes=@FILE",
			      v->ncols, v0->ncols);
	if (!named && v->genes_hash && v0->genes_hash &&
	    v->genes_hash != v0->genes_hash)
		return misfit(b, "has other genes than files before, or in "
				 "another order; choose some of all with "
				 "genes=@FILE");
	return check_columns(b, v);
}

static void set_field(struct pen_field *fd, const char *name, size_t n,
		      enum pen_dtype t)
{
	*fd = (struct pen_field){ .dtype = t };
	memcpy(fd->name, name, n < sizeof(fd->name) ? n : 0);
	fd->max_bytes = pen_dtype_size(t);
}

static void set_fields(struct binder *b)
{
	struct pen_format *f = b->f;
	const char *s = b->p->obs;
	const size_t size = pen_dtype_size(b->p->type);

	f->nfields = b->p->output == PEN_CELLS_CSR ? 2 : 1;
	for (uint32_t i = 0; i < f->nfields; i++) {
		struct pen_field *fd = &f->field[i];

		if (f->nfields == 1)
			set_field(fd, "X", 1, b->p->type);
		else if (i == 0)
			set_field(fd, "X_data", 6, b->p->type);
		else
			set_field(fd, "X_indices", 9, PEN_I32);
		fd->ndim = 1;
		fd->layout = f->nfields == 1 ? PEN_DENSE : PEN_RAGGED;
		fd->shape[0] = f->nfields == 1 ? (int64_t)b->p->view[0].ntake
					       : -1;
		fd->max_bytes = f->nfields == 1 ? b->p->view[0].ntake * size
				: i == 0	? b->most * size
						: b->most * 4;
	}
	for (uint32_t i = 0; i < b->p->nobs; i++) {
		const size_t n = strcspn(s, ",");

		set_field(&f->field[f->nfields++], s, n,
			  b->p->view[0].field[i].dtype);
		s += n + (s[n] == ',');
	}
}

static int add_view(struct binder *b)
{
	struct pen_cells_view *v = &b->p->view[b->blob];
	char name[256];
	int rc;

	v->field = b->p->field + b->blob * b->p->nobs;
	rc = take_view(b, v);
	if (rc < 0)
		return rc;
	pen__blob_name(b->ix, b->blob, name, sizeof(name));
	rc = pen__cells_take_genes(b->p, v, name, b->err);
	if (rc < 0)
		return rc;
	if (!v->sparse && !v->map && b->p->normalize <= 0)
		v->extent = v->ntake;
	rc = check_fit(b, v);
	if (rc >= 0)
		note(b, v);
	return rc;
}

int pen__cells_bind(struct pen_format *f, const struct pen_index *ix,
		    struct pen_err *err)
{
	struct pen_cells *p = f->priv;
	struct binder b = { .f = f, .p = p, .ix = ix, .err = err };
	size_t n;
	int rc;

	pen__cells_unbind(f);
	f->ix = ix;
	f->shares = false;
	f->all_plain = f->uniform = true;
	if (!ix->nblobs)
		return pen__fail(err, PEN_ENOTFOUND, "cells", "no objects");
	if (!pen__mul((size_t)ix->nblobs, p->nobs, &n))
		return damaged(&b);
	p->view = pen__calloc((size_t)ix->nblobs, sizeof(*p->view));
	p->field = pen__calloc(n ? n : 1, sizeof(*p->field));
	if (!p->view || !p->field)
		return pen__fail_nomem(err, "cells",
				       (size_t)ix->nblobs * sizeof(*p->view));
	p->nviews = ix->nblobs;
	for (; b.blob < ix->nblobs; b.blob++) {
		rc = add_view(&b);
		if (rc < 0)
			return rc;
	}
	rc = pen__cells_merge(p, err);
	if (rc < 0)
		return rc;
	p->indices = b.data_units;
	f->units_per_sample = b.data_units + b.gene_units;
	f->units_per_sample += !f->units_per_sample;
	f->scratch_size = b.room;
	set_fields(&b);
	return 0;
}

void pen__cells_unbind(struct pen_format *f)
{
	struct pen_cells *p = f->priv;

	for (uint64_t i = 0; p->view && i < p->nviews; i++)
		pen__free(p->view[i].map);
	for (int i = 0; i < PEN_MAX_FIELDS; i++) {
		pen__free(p->merged[i]);
		p->merged[i] = NULL;
	}
	pen__free(p->view);
	pen__free(p->field);
	p->view = NULL;
	p->field = NULL;
	p->nviews = 0;
}
