/*
 * Writes the values of a cell to its row. Sparse values are scattered over a
 * row of zeros (duplicates of a gene are added up) or stay a list;
 * normalization, log1p and gene selection happen in the same pass. Common types
 * have direct code, all others are converted to double in blocks. Refuses gene
 * indices beyond the matrix and values that the requested type cannot
 * represent.
 */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "format/cells/cells.h"
#include "format/cells/cells_stream.h"

#define BLOCK PEN_CELLS_BLOCK

/* log1p() of small counts, which repeat often in a row. */
struct logs {
	uint64_t known; /* bit i: of[i] is valid */
	double of[64];
};

/* A row being built. */
struct cell {
	const struct pen_format *f;
	const struct pen_cells *p;
	const struct pen_cells_slot *t;
	const struct pen_cells_matrix *m;
	const struct pen_row *r;
	struct pen_err *err;
	bool changes;
	uint64_t row; /* in the matrix */
	double scale; /* of normalization; 1 without it */
	void *dst;
	struct logs *logs;
};

static int fail(const struct cell *c, int kind, const char *what)
{
	char name[256];

	c->f->ix->name_of(c->f->ix, c->r->object, name, sizeof(name));
	return pen__fail(c->err, kind, name, "row %" PRIu64 " of %s: %s",
			 c->row, c->t->path, what);
}

/* Recovers the stored value from what pen__cells_genes_of() made of it. */
static int fail_gene(const struct cell *c, uint32_t most)
{
	const enum pen_dtype t = (enum pen_dtype)c->m->indices.dtype;
	const bool is_signed = t == PEN_I8 || t == PEN_I16 || t == PEN_I32 ||
			       t == PEN_I64;
	const int64_t v = is_signed ? (int32_t)most : (int64_t)most;
	const bool below = t == PEN_I64 && v == INT32_MIN;
	const bool above = (t == PEN_I64 && v == INT32_MAX) ||
			   (t == PEN_U64 && v == UINT32_MAX);
	char text[96];

	snprintf(text, sizeof(text),
		 "refers to gene %" PRId64 "%s, but there are only %" PRIu64, v,
		 below	 ? " or below"
		 : above ? " or above"
			 : "",
		 c->m->ncols);
	return fail(c, P_BAD_DATA_VALUE, text);
}

/* Reports the largest gene. */
static int fail_genes(const struct cell *c, const uint8_t *g, uint64_t n)
{
	uint32_t most = 0, at;

	for (uint64_t i = 0; i < n; i++) {
		memcpy(&at, g + i * 4, 4);
		most = at > most ? at : most;
	}
	return fail_gene(c, most);
}

static int fail_value(const struct cell *c, double v)
{
	char text[96];

	snprintf(text, sizeof(text),
		 "%g does not fit %s; choose another type with format.dtype=",
		 v, pen_dtype_name(c->t->type));
	return fail(c, P_BAD_DATA_VALUE, text);
}

static int fail_bytes(const struct cell *c)
{
	return fail(c, P_DAMAGED, "the bytes read do not belong to the matrix");
}

static double log_of(struct logs *l, double v, double scale)
{
	unsigned k;

	if (!(v >= 0 && v < 64))
		return log1p(v * scale);
	k = (unsigned)v;
	if (v > k)
		return log1p(v * scale);
	if (!(l->known >> k & 1))
		l->of[k] = log1p(v * scale);
	l->known |= (uint64_t)1 << k;
	return l->of[k];
}

static void change(const struct cell *c, double *v, uint64_t n)
{
	const double scale = c->scale;

	if (!c->changes)
		return;
	if (c->p->log1p)
		for (uint64_t i = 0; i < n; i++)
			v[i] = log_of(c->logs, v[i], scale);
	else
		for (uint64_t i = 0; i < n; i++)
			v[i] *= scale;
}

/* The column of a gene in the row. */
static uint32_t column(const struct pen_cells_matrix *m, uint32_t gene)
{
	if (m->map)
		return m->map[gene];
	return gene < m->ntake ? gene : PEN_CELLS_NONE;
}

static int put_block(const struct cell *c, const uint32_t *at, double *v,
		     uint64_t n)
{
	uint64_t k;

	change(c, v, n);
	k = pen__cells_add(c->t->type, c->dst, at, v, n);
	return k < n ? fail_value(c, v[k]) : 0;
}

/* ---- sparse ---- */

/* Values that convert directly to float32. */
static bool is_float(const struct pen_chunked *a)
{
	return !a->swap && (a->dtype == PEN_F32 || a->dtype == PEN_U16 ||
			    a->dtype == PEN_U8);
}

static bool is_wide(const struct pen_chunked *a)
{
	return !a->swap && (a->dtype == PEN_I32 || a->dtype == PEN_U32);
}

/* float32 or counts, with genes of 2 or 4 bytes, into float32 unchanged: the
 * common case. */
static bool is_common(const struct cell *c)
{
	const struct pen_chunked *g = &c->m->indices;

	return is_float(&c->m->data) &&
	       (is_wide(g) || (g->dtype == PEN_U16 && !g->swap)) &&
	       c->t->type == PEN_F32 && !c->changes;
}

typedef int piece_fn(const struct cell *, const uint8_t *d, const uint8_t *g,
		     uint64_t n, uint64_t *arg);

/* Calls fn with values and genes widened to 4 bytes. */
static int widened(const struct cell *c, piece_fn *fn, const uint8_t *d,
		   const uint8_t *g, uint64_t n, uint64_t *arg)
{
	const struct pen_chunked *da = &c->m->data, *ga = &c->m->indices;
	uint8_t floats[BLOCK * 4], genes[BLOCK * 4];
	int rc = 0;

	if (da->dtype == PEN_F32 && ga->item == 4)
		return fn(c, d, g, n, arg);
	for (uint64_t i = 0; rc >= 0 && i < n; i += BLOCK) {
		const uint64_t k = n - i < BLOCK ? n - i : BLOCK;

		pen__cells_floats(da->dtype, d + i * da->item, k, floats);
		if (ga->item == 2)
			pen__cells_widen(g + i * 2, k, genes);
		rc = fn(c, floats, ga->item == 2 ? genes : g + i * 4, k, arg);
	}
	return rc;
}

/* Columns and values of some elements. */
struct block {
	uint32_t at[BLOCK];
	double v[BLOCK];
};

/* The n elements from i on, at most BLOCK. */
static inline int read_block(const struct cell *c, const uint8_t *d,
			     const uint8_t *g, uint64_t i, uint64_t n,
			     struct block *b)
{
	const struct pen_chunked *da = &c->m->data, *ga = &c->m->indices;
	uint32_t *at = b->at;

	pen__cells_genes_of(ga, g ? g + i * ga->item : NULL, n, at);
	if (!pen__cells_below((const uint8_t *)at, n, c->m->ncols))
		return fail_genes(c, (const uint8_t *)at, n);
	pen__cells_doubles(da, d ? d + i * da->item : NULL, n, b->v);
	for (uint64_t j = 0; j < n; j++)
		at[j] = column(c->m, at[j]);
	return 0;
}

static int scatter(const struct cell *c, const uint8_t *d, const uint8_t *g,
		   uint64_t n, uint64_t *arg)
{
	struct block b;
	int rc = 0;

	(void)arg;
	for (uint64_t i = 0; rc >= 0 && i < n; i += BLOCK) {
		const uint64_t k = n - i < BLOCK ? n - i : BLOCK;

		rc = read_block(c, d, g, i, k, &b);
		if (rc >= 0)
			rc = put_block(c, b.at, b.v, k);
	}
	return rc;
}

static int scatter_wide(const struct cell *c, const uint8_t *d,
			const uint8_t *g, uint64_t n, uint64_t *arg)
{
	const struct pen_cells_matrix *m = c->m;
	float *dst = c->dst;
	uint32_t at;
	float x;

	(void)arg;
	if (!pen__cells_below(g, n, m->ncols))
		return fail_genes(c, g, n);
	if (!m->map && m->ntake == m->ncols) {
		for (uint64_t i = 0; i < n; i++) {
			memcpy(&at, g + i * 4, 4);
			memcpy(&x, d + i * 4, 4);
			dst[at] += x;
		}
		return 0;
	}
	for (uint64_t i = 0; i < n; i++) {
		memcpy(&at, g + i * 4, 4);
		memcpy(&x, d + i * 4, 4);
		at = column(m, at);
		if (at != PEN_CELLS_NONE)
			dst[at] += x;
	}
	return 0;
}

static int scatter_common(const struct cell *c, const uint8_t *d,
			  const uint8_t *g, uint64_t n, uint64_t *arg)
{
	if (!d || !g) /* never written */
		return scatter(c, d, g, n, arg);
	return widened(c, scatter_wide, d, g, n, arg);
}

static struct pen_cells_run run_of(const struct cell *c,
				   const struct pen_chunked *a, uint32_t unit)
{
	struct pen_cells_run run = { .m = c->m,
				     .a = a,
				     .unit = c->r->units + unit,
				     .data = c->r->data + unit,
				     .row = c->row,
				     .room = c->r->scratch->mem };

	/* data and indices are used together, so each has its own room */
	if (a == &c->m->indices)
		run.room += c->p->piece;
	pen__cells_span(c->m, c->row, &run.at, &run.end);
	return run;
}

/* Calls fn for each run that is contiguous in both data and indices. */
static int each_piece(const struct cell *c, piece_fn *fn, uint64_t *arg)
{
	struct pen_cells_run dr = run_of(c, &c->m->data, c->t->data);
	struct pen_cells_run gr = run_of(c, &c->m->indices, c->t->indices);
	const uint8_t *d = NULL, *g = NULL;
	uint64_t left = dr.end - dr.at, dn = 0, gn = 0;
	int rc = 0;

	while (rc >= 0 && left) {
		uint64_t n;

		if (!dn)
			dn = pen__cells_run_next(&dr, &d);
		if (!gn)
			gn = pen__cells_run_next(&gr, &g);
		if (!dn || !gn)
			return fail_bytes(c);
		n = dn < gn ? dn : gn;
		rc = fn(c, d, g, n, arg);
		d = d ? d + n * c->m->data.item : NULL;
		g = g ? g + n * c->m->indices.item : NULL;
		dn -= n;
		gn -= n;
		left -= n;
	}
	return rc;
}

/* Builds the row in memory that stays in the cache, if its size justifies
 * that. */
static int emit_scattered(struct cell *c)
{
	const struct pen_row *r = c->r;
	const size_t n = r->dst_len[c->t->field], at = 2 * c->p->piece;
	const bool streams = pen__cells_streams(n) &&
			     at + n <= r->scratch->size;
	int rc;

	if (streams)
		c->dst = (uint8_t *)r->scratch->mem + at;
	memset(c->dst, 0, n);
	rc = each_piece(c, is_common(c) ? scatter_common : scatter, NULL);
	if (rc >= 0 && streams)
		pen__cells_stream(r->dst[c->t->field], c->dst, n);
	return rc;
}

/* ---- lists, and dense matrices ---- */

/* n values of a run that starts at column `first` of the output. */
static int put_piece(const struct cell *c, const uint8_t *p, uint64_t n,
		     uint64_t first)
{
	const struct pen_chunked *a = &c->m->data;
	uint32_t at[BLOCK];
	double v[BLOCK];
	int rc = 0;

	for (uint64_t i = 0; rc >= 0 && i < n; i += BLOCK) {
		const uint64_t k = n - i < BLOCK ? n - i : BLOCK;

		pen__cells_doubles(a, p ? p + i * a->item : NULL, k, v);
		for (uint64_t j = 0; j < k; j++)
			at[j] = c->m->sparse
					? (uint32_t)(first + i + j)
					: column(c->m,
						 (uint32_t)(first + i + j));
		rc = put_block(c, at, v, k);
	}
	return rc;
}

/* Whether the row has exactly the values of the file. */
static bool is_same(const struct cell *c)
{
	const struct pen_chunked *a = &c->m->data;

	return (a->dtype == c->t->type ||
		(c->t->type == PEN_F32 && is_float(a))) &&
	       !a->swap && !c->m->map && !c->changes &&
	       (c->m->sparse ? c->t->list : c->m->extent == c->m->ntake);
}

/* The row's data in order: a dense matrix, or the values of a list. */
static int emit_in_order(const struct cell *c)
{
	struct pen_cells_run run = run_of(c, &c->m->data, c->t->data);
	const struct pen_chunked *a = &c->m->data;
	const size_t item = pen_dtype_size(c->t->type);
	const bool same = is_same(c);
	const uint64_t start = run.at;
	uint8_t *dst = c->dst;
	const uint8_t *p;
	int rc = 0;

	if (!same) /* values are added */
		memset(c->dst, 0, c->r->dst_len[c->t->field]);
	while (rc >= 0 && run.at < run.end) {
		const uint64_t first = run.at - start;
		uint64_t n;

		if (same && a->dtype == c->t->type) /* widen in one pass */
			run.room = dst + first * item;
		n = pen__cells_run_next(&run, &p);
		if (!n)
			return fail_bytes(c);
		if (same && p && a->dtype == c->t->type) {
			if (p != run.room)
				memcpy(dst + first * item, p, n * item);
			continue;
		}
		if (same && p) {
			pen__cells_floats(a->dtype, p, n, dst + first * item);
			continue;
		}
		if (same) /* values are added */
			memset(dst + first * item, 0, n * item);
		rc = put_piece(c, p, n, first);
	}
	return rc;
}

/* Checks X_indices that were read directly into their row. */
static int check_genes(const struct cell *c, const uint8_t *p, uint64_t n)
{
	return pen__cells_below(p, n, c->m->ncols) ? 0 : fail_genes(c, p, n);
}

static int emit_genes(const struct cell *c, uint8_t *dst)
{
	struct pen_cells_run run = run_of(c, &c->m->indices, c->t->indices);
	const bool two = run.a->dtype == PEN_U16 && !run.a->swap;
	const bool quick = two || is_wide(run.a);
	uint32_t at[BLOCK];
	const uint8_t *p;

	while (run.at < run.end) {
		uint64_t n;

		if (quick && !two) /* widen in one pass */
			run.room = dst;
		n = pen__cells_run_next(&run, &p);
		if (!n)
			return fail_bytes(c);
		if (quick && p) {
			if (two)
				pen__cells_widen(p, n, dst);
			else if (p != dst)
				memcpy(dst, p, n * 4);
			if (!pen__cells_below(dst, n, c->m->ncols))
				return fail_genes(c, dst, n);
			dst += n * 4;
			continue;
		}
		for (uint64_t i = 0; i < n; i += BLOCK) {
			const uint64_t k = n - i < BLOCK ? n - i : BLOCK;

			pen__cells_genes_of(
				run.a, p ? p + i * run.a->item : NULL, k, at);
			if (!pen__cells_below((const uint8_t *)at, k,
					      c->m->ncols))
				return fail_genes(c, (const uint8_t *)at, k);
			memcpy(dst, at, k * 4);
			dst += k * 4;
		}
	}
	return 0;
}

/* The sum of the row as stored, independent of the gene selection. */
static int measure(struct cell *c)
{
	struct pen_cells_run run = run_of(c, &c->m->data, c->t->data);
	double v[BLOCK], total = 0;
	const uint8_t *p;

	c->scale = 1;
	if (!c->changes || c->p->normalize <= 0)
		return 0;
	while (run.at < run.end) {
		const uint64_t n = pen__cells_run_next(&run, &p);

		if (!n)
			return fail_bytes(c);
		for (uint64_t i = 0; i < n; i += BLOCK) {
			const uint64_t k = n - i < BLOCK ? n - i : BLOCK;

			pen__cells_doubles(
				run.a, p ? p + i * run.a->item : NULL, k, v);
			for (uint64_t j = 0; j < k; j++)
				total += v[j];
		}
	}
	c->scale = total > 0 ? c->p->normalize / total : 0;
	return 0;
}

/* ---- lists shorter than the stored ones ---- */

/* Moves the kept values of a block to its front and returns their number.
 * at: columns, or PEN_CELLS_NONE; zeros: keep zeros, too. */
static uint64_t keep(uint32_t *at, double *v, uint64_t n, bool zeros)
{
	uint64_t k = 0;

	for (uint64_t i = 0; i < n; i++) {
		at[k] = at[i];
		v[k] = v[i];
		k += at[i] != PEN_CELLS_NONE && (zeros || v[i] != 0);
	}
	return k;
}

/* Appends a block to both lists, after the first *kept. */
static int append(const struct cell *c, const uint32_t *at, double *v,
		  uint64_t n, uint64_t *kept)
{
	uint32_t place[BLOCK];
	uint8_t *genes = c->r->dst[c->t->field + 1];
	int rc;

	if (*kept + n > c->r->dst_len[c->t->field + 1] / 4)
		return fail_bytes(c);
	for (uint64_t i = 0; i < n; i++)
		place[i] = (uint32_t)(*kept + i);
	memcpy(genes + *kept * 4, at, n * 4);
	rc = put_block(c, place, v, n);
	*kept += n;
	return rc;
}

static int keep_sparse(const struct cell *c, const uint8_t *d, const uint8_t *g,
		       uint64_t n, uint64_t *kept)
{
	struct block b;
	int rc = 0;

	for (uint64_t i = 0; rc >= 0 && i < n; i += BLOCK) {
		const uint64_t k = n - i < BLOCK ? n - i : BLOCK;

		rc = read_block(c, d, g, i, k, &b);
		if (rc >= 0)
			rc = append(c, b.at, b.v, keep(b.at, b.v, k, true),
				    kept);
	}
	return rc;
}

/* The same if genes are selected but values are not modified. */
static int keep_wide(const struct cell *c, const uint8_t *d, const uint8_t *g,
		     uint64_t n, uint64_t *kept)
{
	uint8_t *genes = c->r->dst[c->t->field + 1], *out = c->dst;
	uint64_t k = *kept;
	uint32_t at;

	if (k + n > c->r->dst_len[c->t->field + 1] / 4)
		return fail_bytes(c);
	if (!pen__cells_below(g, n, c->m->ncols))
		return fail_genes(c, g, n);
	for (uint64_t i = 0; i < n; i++) {
		memcpy(&at, g + i * 4, 4);
		at = column(c->m, at);
		memcpy(genes + k * 4, &at, 4);
		memcpy(out + k * 4, d + i * 4, 4);
		k += at != PEN_CELLS_NONE;
	}
	*kept = k;
	return 0;
}

static int keep_common(const struct cell *c, const uint8_t *d, const uint8_t *g,
		       uint64_t n, uint64_t *kept)
{
	if (!d || !g)
		return keep_sparse(c, d, g, n, kept);
	return widened(c, keep_wide, d, g, n, kept);
}

static int keep_dense(const struct cell *c, uint64_t *kept)
{
	struct pen_cells_run run = run_of(c, &c->m->data, c->t->data);
	uint32_t at[BLOCK];
	double v[BLOCK];
	const uint8_t *p;
	int rc = 0;

	while (rc >= 0 && run.at < run.end) {
		const uint64_t first = run.at;
		const uint64_t n = pen__cells_run_next(&run, &p);

		if (!n)
			return fail_bytes(c);
		for (uint64_t i = 0; rc >= 0 && i < n; i += BLOCK) {
			uint64_t k = n - i < BLOCK ? n - i : BLOCK;

			pen__cells_doubles(
				run.a, p ? p + i * run.a->item : NULL, k, v);
			for (uint64_t j = 0; j < k; j++)
				at[j] = column(c->m, (uint32_t)(first + i + j));
			k = keep(at, v, k, false);
			rc = append(c, at, v, k, kept);
		}
	}
	return rc;
}

/* Lists of the remaining values: of selected genes, or without zeros. */
static int emit_kept(const struct cell *c)
{
	const uint32_t f = c->t->field;
	uint64_t kept = 0;
	piece_fn *fn = is_common(c) ? keep_common : keep_sparse;
	int rc;

	memset(c->dst, 0, c->r->dst_len[f]); /* values are added */
	rc = c->m->sparse ? each_piece(c, fn, &kept) : keep_dense(c, &kept);
	c->r->used[f] = (size_t)kept * pen_dtype_size(c->t->type);
	c->r->used[f + 1] = (size_t)kept * 4;
	return rc;
}

static int emit_lists(const struct cell *c)
{
	const struct pen_row *r = c->r;
	const struct pen_unit *g = &r->units[c->t->indices];
	const uint32_t field = c->t->field + 1;

	if (g->object != PEN_NO_OBJECT && g->flags & PEN_UNIT_PLAIN)
		return check_genes(c, r->dst[field], r->dst_len[field] / 4);
	return emit_genes(c, r->dst[field]);
}

/* Bytes the row needs. */
static uint64_t room_of(const struct cell *c)
{
	const size_t size = pen_dtype_size(c->t->type);
	uint64_t at, end;

	if (!c->t->list)
		return c->t->ntake * size;
	if (!c->m->sparse)
		return pen__cells_most(c->m) * size;
	pen__cells_span(c->m, c->row, &at, &end);
	return (end - at) * size;
}

static int emit_matrix(struct cell *c)
{
	const struct pen_row *r = c->r;
	const struct pen_unit *d = &r->units[c->t->data];
	const uint64_t n = room_of(c);
	int rc;

	c->dst = r->dst[c->t->field];
	c->changes = pen__cells_changes(c->p, c->t);
	if (r->dst_len[c->t->field] != n)
		return fail_bytes(c);
	rc = measure(c);
	if (rc < 0)
		return rc;
	if (c->t->list && !pen__cells_whole(c->m))
		return emit_kept(c);
	if (!(d->flags & PEN_UNIT_PLAIN))
		rc = c->m->sparse && !c->t->list ? emit_scattered(c)
						 : emit_in_order(c);
	return rc < 0 || !c->t->list ? rc : emit_lists(c);
}

static void put_column(const struct pen_cells_field *c, uint64_t k, void *dst)
{
	const size_t size = pen_dtype_size(c->dtype);
	int32_t code;

	memcpy(dst, c->values + k * size, size);
	if (!c->merged)
		return;
	memcpy(&code, dst, sizeof(code));
	if (code >= 0 && (uint32_t)code < c->nnames)
		memcpy(dst, &c->merged[code], sizeof(code));
}

int pen__cells_emit(const struct pen_format *f, const struct pen_row *r,
		    struct pen_err *err)
{
	const struct pen_cells *p = f->priv;
	const struct pen_cells_view *v =
		&p->view[f->ix->blob_of(f->ix, r->object)];
	const uint32_t first = p->obs_field;
	struct logs logs;
	struct cell c = { .f = f, .p = p, .r = r, .err = err, .logs = &logs };
	int rc = 0;

	c.row = pen__cells_row(v, r->k);
	for (uint32_t i = 0; rc >= 0 && i < p->nmatrices; i++) {
		c.t = &p->slot[i];
		c.m = &v->matrix[i];
		logs.known = 0;
		rc = emit_matrix(&c);
	}
	if (p->copy)
		return rc;
	for (uint32_t i = 0; rc >= 0 && i < p->nobs; i++)
		put_column(&v->field[i], r->k, r->dst[first + i]);
	if (p->source)
		memcpy(r->dst[first + p->nobs], &p->source_of[r->object], 4);
	return rc;
}

bool pen__cells_obs_take(const struct pen_format *f, uint32_t i,
			 uint32_t object, uint64_t k, void *to)
{
	const struct pen_cells *p = f->priv;
	const struct pen_cells_field *c =
		&p->view[f->ix->blob_of(f->ix, object)].field[i];

	put_column(c, k, to);
	return c->mask && c->mask[k];
}

uint32_t pen__cells_source_of(const struct pen_format *f, uint32_t object)
{
	const struct pen_cells *p = f->priv;

	return p->source_of[object];
}

bool pen__cells_value(const struct pen_format *f, uint32_t object, uint64_t k,
		      uint32_t field, double *out)
{
	const struct pen_cells *p = f->priv;
	const struct pen_cells_view *v =
		&p->view[f->ix->blob_of(f->ix, object)];
	const struct pen_cells_field *c;
	uint8_t raw[8];

	if (p->source && field == p->obs_field + p->nobs) {
		*out = p->source_of[object];
		return true;
	}
	if (field < p->obs_field || field - p->obs_field >= p->nobs)
		return false;
	c = &v->field[field - p->obs_field];
	put_column(c, k, raw);
	*out = pen__cells_number((enum pen_dtype)c->dtype, raw);
	if (c->coded && *out < 0)
		*out = NAN;
	return true;
}
