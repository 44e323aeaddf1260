/*
 * Conversions of a chunk of sparse rows: none, a table (row, column, value),
 * coordinates, or compressed rows. The output is written to reused memory and
 * then read once for sums that must agree between readers; the raw reader sums
 * the batch itself, so that all readers pay for the sums.
 *
 * Refuses batches that are not rows of numbers with their columns.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "experiment/experiment.h"

const char *const pen__readers[] = { "raw", "table", "coo", "csr", NULL };

/* A batch as compressed rows. */
struct csr {
	uint32_t nrows;
	const int64_t *start;
	const int32_t *cols;
	const uint32_t *bits; /* of the values */
	const uint64_t *ids;
};

static bool ragged(const struct pen_tensor *t, const char *tail)
{
	const size_t n = strlen(t->name), k = strlen(tail);

	return t->layout == PEN_RAGGED && t->offsets &&
	       pen_dtype_size(t->dtype) == 4 && n >= k &&
	       !strcmp(t->name + n - k, tail);
}

static int find_csr(const struct pen_batch *b, struct csr *c,
		    struct pen_err *err)
{
	const struct pen_tensor *data = NULL, *cols = NULL;

	for (uint32_t i = 0; i < b->ntensors; i++) {
		const struct pen_tensor *t = &b->tensors[i];

		if (!data && ragged(t, "_data"))
			data = t;
		else if (!cols && ragged(t, "_indices"))
			cols = t;
	}
	if (!data || !cols)
		return pen__fail(err, P_UNSUPPORTED_TYPE, "batch",
				 "the batch has no sparse rows of 4-byte "
				 "numbers; use a format with format.output=csr "
				 "and a 4-byte format.dtype=");
	*c = (struct csr){ b->nsamples, data->offsets, cols->data, data->data,
			   b->ids };
	return 0;
}

static void *room(struct pen_sparse_reader *v, int i, uint64_t n, size_t size)
{
	size_t bytes;

	if (!pen__mul((size_t)n, size, &bytes) ||
	    pen__block_reserve(&v->part[i], bytes + !bytes))
		return NULL;
	return v->part[i].p;
}

static uint64_t sum32(const uint32_t *v, uint64_t n)
{
	uint64_t sum = 0;

	for (uint64_t i = 0; i < n; i++)
		sum += v[i];
	return sum;
}

/* ---- readers ---- */

static int raw(struct pen_sparse_reader *v, const struct csr *c)
{
	const uint64_t nnz = (uint64_t)c->start[c->nrows];

	for (uint32_t r = 0; r < c->nrows; r++)
		v->sums.rows +=
			c->ids[r] * (uint64_t)(c->start[r + 1] - c->start[r]);
	v->sums.cols += sum32((const uint32_t *)c->cols, nnz);
	v->sums.values += sum32(c->bits, nnz);
	return 0;
}

/* 64-bit columns; rows are numbered from 0. */
static int table(struct pen_sparse_reader *v, const struct csr *c)
{
	const uint64_t nnz = (uint64_t)c->start[c->nrows];
	int64_t *row = room(v, 0, nnz, 8), *col = room(v, 1, nnz, 8);
	uint32_t *val = room(v, 2, nnz, 4);

	if (!row || !col || !val)
		return PEN_ENOMEM;
	for (uint32_t r = 0; r < c->nrows; r++)
		for (int64_t i = c->start[r]; i < c->start[r + 1]; i++)
			row[i] = r;
	for (uint64_t i = 0; i < nnz; i++)
		col[i] = c->cols[i];
	memcpy(val, c->bits, nnz * 4);
	for (uint64_t i = 0; i < nnz; i++) {
		v->sums.rows += c->ids[row[i]];
		v->sums.cols += (uint64_t)col[i];
	}
	v->sums.values += sum32(val, nnz);
	return 0;
}

static int coo(struct pen_sparse_reader *v, const struct csr *c)
{
	const uint64_t nnz = (uint64_t)c->start[c->nrows];
	int32_t *row = room(v, 0, nnz, 4), *col = room(v, 1, nnz, 4);
	uint32_t *val = room(v, 2, nnz, 4);

	if (!row || !col || !val)
		return PEN_ENOMEM;
	for (uint32_t r = 0; r < c->nrows; r++)
		for (int64_t i = c->start[r]; i < c->start[r + 1]; i++)
			row[i] = (int32_t)r;
	memcpy(col, c->cols, nnz * 4);
	memcpy(val, c->bits, nnz * 4);
	for (uint64_t i = 0; i < nnz; i++)
		v->sums.rows += c->ids[row[i]];
	v->sums.cols += sum32((const uint32_t *)col, nnz);
	v->sums.values += sum32(val, nnz);
	return 0;
}

static int by_column(const void *a, const void *b)
{
	const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

/* Sorts the columns of a row. Most files have them sorted, so only the check
 * needs to be fast. */
static int sort_row(struct pen_sparse_reader *v, int32_t *col, uint32_t *val,
		    int64_t n)
{
	uint64_t *both;
	int64_t i = 1;

	while (i < n && col[i - 1] <= col[i])
		i++;
	if (i >= n)
		return 0;
	both = room(v, 3, (uint64_t)n, 8);
	if (!both)
		return PEN_ENOMEM;
	for (i = 0; i < n; i++)
		both[i] = (uint64_t)col[i] << 32 | val[i];
	qsort(both, (size_t)n, 8, by_column);
	for (i = 0; i < n; i++) {
		col[i] = (int32_t)(both[i] >> 32);
		val[i] = (uint32_t)both[i];
	}
	return 0;
}

static int csr(struct pen_sparse_reader *v, const struct csr *c)
{
	const uint64_t nnz = (uint64_t)c->start[c->nrows];
	int64_t *start = room(v, 0, (uint64_t)c->nrows + 1, 8);
	int32_t *col = room(v, 1, nnz, 4);
	uint32_t *val = room(v, 2, nnz, 4);

	if (!start || !col || !val)
		return PEN_ENOMEM;
	memcpy(start, c->start, ((size_t)c->nrows + 1) * 8);
	memcpy(col, c->cols, nnz * 4);
	memcpy(val, c->bits, nnz * 4);
	for (uint32_t r = 0; r < c->nrows; r++) {
		if (sort_row(v, col + start[r], val + start[r],
			     start[r + 1] - start[r]))
			return PEN_ENOMEM;
		v->sums.rows += c->ids[r] * (uint64_t)(start[r + 1] - start[r]);
	}
	v->sums.cols += sum32((const uint32_t *)col, nnz);
	v->sums.values += sum32(val, nnz);
	return 0;
}

int pen__convert_batch(void *convert, const struct pen_batch *b,
		       struct pen_err *err)
{
	static int (*const make[])(struct pen_sparse_reader *,
				   const struct csr *) = {
		[PEN_READ_RAW] = raw,
		[PEN_READ_TABLE] = table,
		[PEN_READ_COO] = coo,
		[PEN_READ_CSR] = csr,
	};
	struct pen_sparse_reader *v = convert;
	struct csr c;
	int rc = find_csr(b, &c, err);

	if (rc)
		return rc;
	v->sums.nnz += (uint64_t)c.start[c.nrows];
	if (make[v->reader](v, &c))
		return pen__fail_nomem(err, pen__readers[v->reader],
				       (size_t)c.start[c.nrows] * 20);
	return 0;
}

void pen__convert_fini(struct pen_sparse_reader *v)
{
	for (size_t i = 0; i < 4; i++)
		pen__block_fini(&v->part[i]);
}

void pen__sums_json(struct pen_text *j, const struct pen_sparse_sums *s)
{
	pen__json_int(j, "nnz", s->nnz);
	pen__json_hex(j, "content_sum", s->rows * 3 ^ s->cols * 5 ^ s->values);
}
