/*
 * A cell's numbers into its row: sparse ones are scattered over a row of zeros
 * (several for one gene are added up), or stay a list; normalizing, log1p and
 * the choice of genes happen on the way. Common types go straight through, all
 * others in blocks by way of double. Refuses genes that are none of the
 * matrix', and numbers that the type asked for cannot hold.
 */
#include <inttypes.h>
#include <stdio.h>

#include "base/half.h"
#include "format/cells.h"

#define BLOCK 256u

/* log1p() of small counts, of which a row has many alike. */
struct logs {
	uint64_t known; /* bit i: of[i] is */
	double of[64];
};

/* A row under way. */
struct cell {
	const struct pen_format *f;
	const struct pen_cells *p;
	const struct pen_cells_view *v;
	const struct pen_row *r;
	struct pen_err *err;
	uint64_t row; /* in the matrix */
	double scale; /* of normalizing; 1 without */
	void *dst;
	struct logs *logs;
};

static int fail(const struct cell *c, const char *what)
{
	char name[256];

	c->f->ix->name_of(c->f->ix, c->r->object, name, sizeof(name));
	return pen__fail(c->err, PEN_EDATA, name, "row %" PRIu64 " of %s: %s",
			 c->row, c->p->matrix, what);
}

static int fail_gene(const struct cell *c, uint32_t most)
{
	char text[96];

	snprintf(text, sizeof(text),
		 "refers to gene %" PRIu32 ", but there are %" PRIu64, most,
		 c->v->ncols);
	return fail(c, text);
}

static int fail_value(const struct cell *c, double v)
{
	char text[96];

	snprintf(text, sizeof(text),
		 "%g does not fit %s; ask for another with dtype=", v,
		 pen_dtype_name(c->p->type));
	return fail(c, text);
}

static int fail_bytes(const struct cell *c)
{
	return fail(c, "the bytes read are not the matrix'");
}

/* ---- numbers of any type ---- */

#define LOAD(T, expr)                                                          \
	for (uint64_t i = 0; i < n; i++) {                                     \
		T x;                                                           \
		memcpy(&x, p + i * sizeof(x), sizeof(x));                      \
		out[i] = (expr);                                               \
	}                                                                      \
	break

/* At most BLOCK numbers, in this machine's order. */
static const uint8_t *native(const struct pen_cells_array *a, const uint8_t *p,
			     uint64_t n, uint8_t *mem)
{
	const struct pen_tile t = { .ni = 1, .nj = n, .src_j = a->item };

	if (p && !a->swap)
		return p;
	if (p)
		pen__tile_copy(&t, a->item, a->item, mem, p);
	for (uint64_t i = 0; !p && i < n; i++)
		memcpy(mem + i * a->item, a->fill, a->item);
	return mem;
}

static void to_doubles(const struct pen_cells_array *a, const uint8_t *p,
		       uint64_t n, double *out)
{
	uint8_t mem[BLOCK * 8];

	p = native(a, p, n, mem);
	switch ((enum pen_dtype)a->dtype) {
	case PEN_I8:
		LOAD(int8_t, x);
	case PEN_I16:
		LOAD(int16_t, x);
	case PEN_U16:
		LOAD(uint16_t, x);
	case PEN_I32:
		LOAD(int32_t, x);
	case PEN_U32:
		LOAD(uint32_t, x);
	case PEN_I64:
		LOAD(int64_t, (double)x);
	case PEN_U64:
		LOAD(uint64_t, (double)x);
	case PEN_F16:
		LOAD(uint16_t, pen__half_to_double(x));
	case PEN_F32:
		LOAD(float, (double)x);
	case PEN_F64:
		LOAD(double, x);
	default:
		LOAD(uint8_t, x);
	}
}

/* What is no gene of any matrix becomes the largest number. */
static void to_genes(const struct pen_cells_array *a, const uint8_t *p,
		     uint64_t n, uint32_t *out)
{
	uint8_t mem[BLOCK * 8];

	p = native(a, p, n, mem);
	switch ((enum pen_dtype)a->dtype) {
	case PEN_I8:
		LOAD(int8_t, (uint32_t)x);
	case PEN_I16:
		LOAD(int16_t, (uint32_t)x);
	case PEN_U16:
		LOAD(uint16_t, x);
	case PEN_I32:
	case PEN_U32:
		LOAD(uint32_t, x);
	case PEN_I64:
	case PEN_U64:
		LOAD(uint64_t, x > UINT32_MAX ? UINT32_MAX : (uint32_t)x);
	default:
		LOAD(uint8_t, x);
	}
}

static uint32_t largest(const uint32_t *g, uint64_t n)
{
	uint32_t most = 0;

	for (uint64_t i = 0; i < n; i++)
		most = g[i] > most ? g[i] : most;
	return most;
}

/* ---- numbers into rows ---- */

#define ADD_FLOAT(T)                                                           \
	for (uint64_t i = 0; i < n; i++)                                       \
		if (at[i] != PEN_CELLS_NONE)                                   \
			((T *)dst)[at[i]] = (T)(((T *)dst)[at[i]] + v[i]);     \
	return n

#define ADD_INT(T, least, most)                                                \
	for (uint64_t i = 0; i < n; i++) {                                     \
		double s;                                                      \
		if (at[i] == PEN_CELLS_NONE)                                   \
			continue;                                              \
		s = ((T *)dst)[at[i]] + v[i];                                  \
		if (!(s >= (least) && s <= (most)) || s != floor(s))           \
			return i;                                              \
		((T *)dst)[at[i]] = (T)s;                                      \
	}                                                                      \
	return n

/* Adds v[i] to place at[i] of the row; returns how many fit before one that
 * does not. */
static uint64_t add(enum pen_dtype type, void *dst, const uint32_t *at,
		    const double *v, uint64_t n)
{
	uint16_t *h = dst;

	switch (type) {
	case PEN_I8:
		ADD_INT(int8_t, INT8_MIN, INT8_MAX);
	case PEN_U8:
		ADD_INT(uint8_t, 0, UINT8_MAX);
	case PEN_I16:
		ADD_INT(int16_t, INT16_MIN, INT16_MAX);
	case PEN_U16:
		ADD_INT(uint16_t, 0, UINT16_MAX);
	case PEN_I32:
		ADD_INT(int32_t, INT32_MIN, INT32_MAX);
	case PEN_U32:
		ADD_INT(uint32_t, 0, UINT32_MAX);
	case PEN_F32:
		ADD_FLOAT(float);
	case PEN_F64:
		ADD_FLOAT(double);
	default:
		break;
	}
	for (uint64_t i = 0; i < n; i++)
		if (at[i] != PEN_CELLS_NONE)
			h[at[i]] = pen__double_to_half(
				(h[at[i]] ? pen__half_to_double(h[at[i]]) : 0) +
				v[i]);
	return n;
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

	if (c->p->log1p)
		for (uint64_t i = 0; i < n; i++)
			v[i] = log_of(c->logs, v[i], scale);
	else if (c->p->normalize > 0)
		for (uint64_t i = 0; i < n; i++)
			v[i] *= scale;
}

/* A gene's column in the row. */
static uint32_t column(const struct pen_cells_view *v, uint32_t gene)
{
	if (v->map)
		return v->map[gene];
	return gene < v->ntake ? gene : PEN_CELLS_NONE;
}

static int put_block(const struct cell *c, const uint32_t *at, double *v,
		     uint64_t n)
{
	uint64_t k;

	change(c, v, n);
	k = add(c->p->type, c->dst, at, v, n);
	return k < n ? fail_value(c, v[k]) : 0;
}

/* ---- sparse ---- */

/* float32 at 32-bit genes into float32, unchanged: what most files are. */
static bool is_common(const struct cell *c)
{
	const struct pen_cells_array *d = &c->v->data, *g = &c->v->indices;

	return d->dtype == PEN_F32 && !d->swap && !g->swap &&
	       (g->dtype == PEN_I32 || g->dtype == PEN_U32) &&
	       c->p->type == PEN_F32 && c->p->normalize <= 0 && !c->p->log1p;
}

static int scatter_common(const struct cell *c, const uint8_t *d,
			  const uint8_t *g, uint64_t n)
{
	const struct pen_cells_view *v = c->v;
	uint32_t most = 0, at;
	float *dst = c->dst;
	float x;

	for (uint64_t i = 0; i < n; i++) {
		memcpy(&at, g + i * 4, 4);
		most = at > most ? at : most;
	}
	if (most >= v->ncols)
		return fail_gene(c, most);
	if (!v->map && v->ntake == v->ncols) {
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
		at = column(v, at);
		if (at != PEN_CELLS_NONE)
			dst[at] += x;
	}
	return 0;
}

static int scatter(const struct cell *c, const uint8_t *d, const uint8_t *g,
		   uint64_t n)
{
	const struct pen_cells_array *da = &c->v->data, *ga = &c->v->indices;
	uint32_t at[BLOCK];
	double v[BLOCK];
	int rc = 0;

	for (uint64_t i = 0; rc >= 0 && i < n; i += BLOCK) {
		const uint64_t k = n - i < BLOCK ? n - i : BLOCK;
		uint32_t most;

		to_genes(ga, g + i * ga->item, k, at);
		most = largest(at, k);
		if (most >= c->v->ncols)
			return fail_gene(c, most);
		to_doubles(da, d + i * da->item, k, v);
		for (uint64_t j = 0; j < k; j++)
			at[j] = column(c->v, at[j]);
		rc = put_block(c, at, v, k);
	}
	return rc;
}

static struct pen_cells_run
run_of(const struct cell *c, const struct pen_cells_array *a, uint32_t unit)
{
	struct pen_cells_run run = { .a = a,
				     .unit = c->r->units + unit,
				     .data = c->r->data + unit,
				     .room = c->r->scratch->mem };

	/* both kinds of numbers are looked at side by side */
	if (unit)
		run.room += c->v->piece;

	if (c->v->sparse) {
		run.at = pen__cells_start(c->v, c->row);
		run.end = pen__cells_start(c->v, c->row + 1);
	} else {
		run.row = c->row;
		run.end = c->v->extent;
	}
	return run;
}

/* What data and indices both have in one piece, one after another. */
static int emit_scattered(const struct cell *c)
{
	struct pen_cells_run dr = run_of(c, &c->v->data, 0);
	struct pen_cells_run gr = run_of(c, &c->v->indices, c->p->indices);
	const bool common = is_common(c);
	const uint8_t *d = NULL, *g = NULL;
	uint64_t left = dr.end - dr.at, dn = 0, gn = 0;
	int rc = 0;

	while (rc >= 0 && left) {
		uint64_t n;

		if (!dn)
			dn = pen__cells_run_next(&dr, &d);
		if (!gn)
			gn = pen__cells_run_next(&gr, &g);
		if (!dn || !gn || !d || !g)
			return fail_bytes(c);
		n = dn < gn ? dn : gn;
		rc = common ? scatter_common(c, d, g, n) : scatter(c, d, g, n);
		d += n * c->v->data.item;
		g += n * c->v->indices.item;
		dn -= n;
		gn -= n;
		left -= n;
	}
	return rc;
}

/* ---- lists, and dense matrices ---- */

/* Numbers n of a piece that begins at column `first` of the output. */
static int put_piece(const struct cell *c, const uint8_t *p, uint64_t n,
		     uint64_t first)
{
	const struct pen_cells_array *a = &c->v->data;
	uint32_t at[BLOCK];
	double v[BLOCK];
	int rc = 0;

	for (uint64_t i = 0; rc >= 0 && i < n; i += BLOCK) {
		const uint64_t k = n - i < BLOCK ? n - i : BLOCK;

		to_doubles(a, p ? p + i * a->item : NULL, k, v);
		for (uint64_t j = 0; j < k; j++)
			at[j] = c->v->sparse
					? (uint32_t)(first + i + j)
					: column(c->v,
						 (uint32_t)(first + i + j));
		rc = put_block(c, at, v, k);
	}
	return rc;
}

/* The row's data in order: a dense matrix, or the values of a list. */
static int emit_in_order(const struct cell *c)
{
	struct pen_cells_run run = run_of(c, &c->v->data, 0);
	const struct pen_cells_array *a = &c->v->data;
	const bool all = c->v->sparse || c->v->extent == c->v->ntake;
	const bool same = a->dtype == c->p->type && !a->swap && !c->v->map &&
			  c->p->normalize <= 0 && !c->p->log1p && all;
	const uint64_t start = run.at;
	const uint8_t *p;
	int rc = 0;

	while (rc >= 0 && run.at < run.end) {
		const uint64_t first = run.at - start;
		const uint64_t n = pen__cells_run_next(&run, &p);

		if (!n)
			return fail_bytes(c);
		if (same && p)
			memcpy((uint8_t *)c->dst + first * a->item, p,
			       n * a->item);
		else
			rc = put_piece(c, p, n, first);
	}
	return rc;
}

/* X_indices that were read straight into their row. */
static int check_genes(const struct cell *c, const uint8_t *p, uint64_t n)
{
	uint32_t most = 0, at;

	for (uint64_t i = 0; i < n; i++) {
		memcpy(&at, p + i * 4, 4);
		most = at > most ? at : most;
	}
	return n && most >= c->v->ncols ? fail_gene(c, most) : 0;
}

static int emit_genes(const struct cell *c, uint8_t *dst)
{
	struct pen_cells_run run = run_of(c, &c->v->indices, c->p->indices);
	uint32_t at[BLOCK], most;
	const uint8_t *p;

	while (run.at < run.end) {
		const uint64_t n = pen__cells_run_next(&run, &p);

		if (!n || !p)
			return fail_bytes(c);
		for (uint64_t i = 0; i < n; i += BLOCK) {
			const uint64_t k = n - i < BLOCK ? n - i : BLOCK;

			to_genes(run.a, p + i * run.a->item, k, at);
			most = largest(at, k);
			if (most >= c->v->ncols)
				return fail_gene(c, most);
			memcpy(dst, at, k * 4);
			dst += k * 4;
		}
	}
	return 0;
}

/* The sum of the row as it is in the file, whatever genes are taken. */
static int measure(struct cell *c)
{
	struct pen_cells_run run = run_of(c, &c->v->data, 0);
	double v[BLOCK], total = 0;
	const uint8_t *p;

	c->scale = 1;
	if (c->p->normalize <= 0)
		return 0;
	while (run.at < run.end) {
		const uint64_t n = pen__cells_run_next(&run, &p);

		if (!n)
			return fail_bytes(c);
		for (uint64_t i = 0; i < n; i += BLOCK) {
			const uint64_t k = n - i < BLOCK ? n - i : BLOCK;

			to_doubles(run.a, p ? p + i * run.a->item : NULL, k, v);
			for (uint64_t j = 0; j < k; j++)
				total += v[j];
		}
	}
	c->scale = total > 0 ? c->p->normalize / total : 0;
	return 0;
}

static int emit_matrix(struct cell *c)
{
	const bool list = c->p->output == PEN_CELLS_CSR;
	const struct pen_row *r = c->r;
	int rc = measure(c);

	if (rc >= 0 && !(r->units[0].flags & PEN_UNIT_PLAIN)) {
		memset(c->dst, 0, r->dst_len[0]);
		rc = c->v->sparse && !list ? emit_scattered(c)
					   : emit_in_order(c);
	}
	if (rc < 0 || !list)
		return rc;
	if (r->units[c->p->indices].flags & PEN_UNIT_PLAIN)
		return check_genes(c, r->dst[1], r->dst_len[1] / 4);
	return emit_genes(c, r->dst[1]);
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
	struct logs logs;
	struct cell c = { .f = f, .p = p, .v = v, .r = r, .err = err };
	const uint32_t nx = p->output == PEN_CELLS_CSR ? 2 : 1;
	uint64_t n = f->field[0].max_bytes;
	int rc;

	c.row = v->rows ? pen__cells_u32(v->rows, r->k) : r->k;
	c.dst = r->dst[0];
	c.logs = &logs;
	logs.known = 0;
	if (nx == 2)
		n = (pen__cells_start(v, c.row + 1) -
		     pen__cells_start(v, c.row)) *
		    pen_dtype_size(p->type);
	if (r->dst_len[0] != n)
		return fail_bytes(&c);
	rc = emit_matrix(&c);
	for (uint32_t i = 0; rc >= 0 && i < p->nobs; i++)
		put_column(&v->field[i], r->k, r->dst[nx + i]);
	return rc;
}

bool pen__cells_value(const struct pen_format *f, uint32_t object, uint64_t k,
		      uint32_t field, double *out)
{
	const struct pen_cells *p = f->priv;
	const struct pen_cells_view *v =
		&p->view[f->ix->blob_of(f->ix, object)];
	const uint32_t first = f->nfields - p->nobs;
	const struct pen_cells_field *c;
	uint8_t raw[8];

	if (field < first)
		return false;
	c = &v->field[field - first];
	put_column(c, k, raw);
	*out = pen__cells_number((enum pen_dtype)c->dtype, raw);
	if (c->coded && *out < 0)
		*out = NAN;
	return true;
}
