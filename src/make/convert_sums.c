/*
 * Hashes of rows, and comparison of everything else in two sources. Codes are
 * hashed by their labels, since two sources may number categories differently.
 */
#include "make/convert_sums.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "base/rng.h"

/* ---- rows ---- */

struct hash {
	uint64_t a, b;
};

/* Folds both halves of a product. */
static uint64_t fold(uint64_t x, uint64_t y)
{
	return x * y ^ pen__mulhi(x, y);
}

static void add_word(struct hash *h, uint64_t v)
{
	h->a = fold(h->a ^ v, 0x9e3779b97f4a7c15u);
	h->b = fold(h->b + v, 0xd1b54a32d192ed03u);
}

/* Includes the length, so that two adjacent strings differ from one. */
static void add_bytes(struct hash *h, const uint8_t *p, size_t n)
{
	uint64_t v;

	add_word(h, n);
	for (; n >= 8; n -= 8, p += 8) {
		memcpy(&v, p, 8);
		add_word(h, v);
	}
	v = 0;
	if (n)
		memcpy(&v, p, n);
	add_word(h, v);
}

/* The label of a code; empty for a missing value. */
static struct pen_span text_of(const struct pen_cellsource *s, uint32_t column,
			       int32_t code)
{
	const struct pen_cells_column_spec *c = &s->spec.obs[column];
	const char *text;

	if (c->index && s->index)
		return (uint32_t)code < s->index->n ? s->index->s[code]
						    : (struct pen_span){ 0 };
	if ((uint32_t)code >= c->nnames)
		return (struct pen_span){ 0 };
	text = c->names[code];
	return (struct pen_span){ (const uint8_t *)text, strlen(text) };
}

static void add_column(struct hash *h, const struct pen_cellsource *s,
		       uint32_t column, const uint8_t *values, uint64_t i)
{
	const struct pen_cells_column_spec *c = &s->spec.obs[column];
	const size_t size = pen_dtype_size(c->dtype);
	struct pen_span text;
	int32_t code;

	if (!c->coded) {
		add_bytes(h, values + i * size, size);
		return;
	}
	memcpy(&code, values + i * 4, 4);
	text = text_of(s, column, code);
	add_word(h, text.p != NULL);
	add_bytes(h, text.p, text.n);
}

static void add_lists(struct hash *h, const struct pen_cells_lists *l,
		      size_t item, uint64_t i)
{
	const uint64_t at = l->start[i], n = l->start[i + 1] - at;

	add_bytes(h, (const uint8_t *)(l->indices + at), n * 4);
	add_bytes(h, (const uint8_t *)l->values + at * item, n * item);
}

void pen__sums_row(struct pen_sums *sums, const struct pen_cellsource *s,
		   const struct pen_cells_rows *r, uint64_t i, uint64_t number)
{
	const struct pen_cells_spec *c = &s->spec;
	const size_t item = pen_dtype_size(c->dtype);
	const struct pen_cells_lists x = { r->start, r->indices, r->values };
	struct hash h = { pen__mix64(number + 0x8cb92ba72f3d8dd7u),
			  pen__mix64(number ^ 0x2545f4914f6cdd1du) };

	if (c->sparse)
		add_lists(&h, &x, item, i);
	else
		add_bytes(&h, (const uint8_t *)r->values + i * c->ncols * item,
			  c->ncols * item);
	for (uint32_t k = 0; k < c->nobs; k++)
		add_column(&h, s, k, r->obs[k], i);
	for (uint32_t k = 0; k < c->ncsr; k++)
		add_lists(&h, &r->csr[k], pen_dtype_size(c->csr[k].dtype), i);
	for (uint32_t k = 0; k < c->ndense; k++) {
		const size_t size =
			c->dense[k].ncols * pen_dtype_size(c->dense[k].dtype);

		add_bytes(&h, (const uint8_t *)r->dense[k] + i * size, size);
	}
	if (number / PEN_SUMS_ROWS < sums->n) {
		sums->v[number / PEN_SUMS_ROWS][0] += pen__mix64(h.a);
		sums->v[number / PEN_SUMS_ROWS][1] += pen__mix64(h.b);
	}
}

int pen__sums_init(struct pen_sums *s, uint64_t nrows, struct pen_err *err)
{
	s->n = nrows / PEN_SUMS_ROWS + 1;
	s->v = pen__calloc(s->n, sizeof(*s->v));
	return s->v ? 0 : pen__fail_nomem(err, "verify", s->n * sizeof(*s->v));
}

void pen__sums_fini(struct pen_sums *s)
{
	pen__free(s->v);
	*s = (struct pen_sums){ 0 };
}

int64_t pen__sums_differ(const struct pen_sums *a, const struct pen_sums *b)
{
	for (uint64_t i = 0; i < a->n; i++)
		if (i >= b->n || memcmp(a->v[i], b->v[i], sizeof(a->v[i])) != 0)
			return (int64_t)i;
	return -1;
}

/* ---- columns ---- */

static bool same_names(const struct pen_cells_column_spec *a,
		       const struct pen_cells_column_spec *b)
{
	if (a->nnames != b->nnames)
		return false;
	for (uint32_t i = 0; i < a->nnames; i++)
		if (strcmp(a->names[i], b->names[i]) != 0)
			return false;
	return true;
}

static int same_column(const char *frame, const struct pen_cells_column_spec *a,
		       const struct pen_cells_column_spec *b, const char *path,
		       struct pen_err *err)
{
	if (strcmp(a->name, b->name) != 0)
		return pen__fail(err, P_COPY_DIFFERS, path,
				 "column '%s' of %s is named '%s' in the copy",
				 a->name, frame, b->name);
	if (a->coded != b->coded || (!a->coded && a->dtype != b->dtype) ||
	    a->ordered != b->ordered || a->mask != b->mask)
		return pen__fail(err, P_COPY_DIFFERS, path,
				 "column '%s' of %s has a different type in "
				 "the copy (%s, not %s)",
				 a->name, frame, pen_dtype_name(b->dtype),
				 pen_dtype_name(a->dtype));
	/* row names are compared row by row */
	if (a->coded && !a->index && !same_names(a, b))
		return pen__fail(err, P_COPY_DIFFERS, path,
				 "column '%s' of %s has different categories "
				 "in the copy",
				 a->name, frame);
	return 0;
}

/* Compares values of var; codes by their labels. */
static bool same_values(const struct pen_cellsource *a,
			const struct pen_cellsource *b, uint32_t i)
{
	const struct pen_cells_column_spec *c = &a->spec.var[i];
	const size_t size = pen_dtype_size(c->dtype);

	if (!c->coded)
		return memcmp(a->spec.var_values[i], b->spec.var_values[i],
			      a->spec.ncols * size) == 0;
	for (uint64_t j = 0; j < a->spec.ncols; j++) {
		const char *x =
			pen__cells_column_text(c, a->spec.var_values[i], j);
		const char *y = pen__cells_column_text(
			&b->spec.var[i], b->spec.var_values[i], j);

		if (!x != !y || (x && strcmp(x, y) != 0))
			return false;
	}
	return true;
}

static int same_matrix(const struct pen_cells_spec *a,
		       const struct pen_cells_spec *b, const char *path,
		       struct pen_err *err)
{
	if (a->nrows != b->nrows || a->ncols != b->ncols)
		return pen__fail(err, P_COPY_DIFFERS, path,
				 "the copy has %" PRIu64 " cells and %" PRIu64
				 " genes, not %" PRIu64 " and %" PRIu64,
				 b->nrows, b->ncols, a->nrows, a->ncols);
	if (a->sparse != b->sparse || a->dtype != b->dtype)
		return pen__fail(err, P_COPY_DIFFERS, path,
				 "the matrix has a different type in the copy");
	if (a->nobs != b->nobs || a->nvar != b->nvar ||
	    a->ndense != b->ndense || a->ncsr != b->ncsr)
		return pen__fail(err, P_COPY_DIFFERS, path,
				 "the copy has %u columns of obs and %u of "
				 "var, not %u and %u",
				 b->nobs, b->nvar, a->nobs, a->nvar);
	return 0;
}

int pen__sources_same(const struct pen_cellsource *want,
		      const struct pen_cellsource *got, const char *path,
		      struct pen_err *err)
{
	const struct pen_cells_spec *a = &want->spec, *b = &got->spec;
	int rc = same_matrix(a, b, path, err);

	for (uint32_t i = 0; rc >= 0 && i < a->nobs; i++)
		rc = same_column("obs", &a->obs[i], &b->obs[i], path, err);
	for (uint32_t i = 0; rc >= 0 && i < a->nvar; i++) {
		rc = same_column("var", &a->var[i], &b->var[i], path, err);
		if (rc >= 0 && !same_values(want, got, i))
			rc = pen__fail(err, P_COPY_DIFFERS, path,
				       "column '%s' of var has different "
				       "values in the copy",
				       a->var[i].name);
	}
	for (uint32_t i = 0; rc >= 0 && i < a->ndense; i++)
		if (a->dense[i].dtype != b->dense[i].dtype ||
		    a->dense[i].ncols != b->dense[i].ncols)
			rc = pen__fail(err, P_COPY_DIFFERS, path,
				       "%s has a different type in the copy",
				       a->dense[i].path);
	for (uint32_t i = 0; rc >= 0 && i < a->ncsr; i++)
		if (a->csr[i].dtype != b->csr[i].dtype ||
		    a->csr[i].ncols != b->csr[i].ncols ||
		    strcmp(a->csr[i].path, b->csr[i].path) != 0)
			rc = pen__fail(err, P_COPY_DIFFERS, path,
				       "%s has a different type in the copy",
				       a->csr[i].path);
	return rc;
}
