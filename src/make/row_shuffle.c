/*
 * Distributes rows to buckets. The rows of a bucket are collected in memory;
 * when there are enough of them, they are packed and appended to the file. The
 * file has no name, so nothing remains of it whatever happens to the process;
 * if all rows fit into one bucket, there is no file. Refuses data that needs
 * more than a thousand buckets in the given memory.
 */
#include "make/row_shuffle.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/show.h"
#include "codec/cellpack.h"
#include "codec/crc32c.h"

#define BUCKETS 1024u	   /* at most */
#define LEAST 65536u	   /* bytes of rows that justify a block */
#define ROWS 1024u	   /* rows returned per call */
#define STREAM 0x63656c6cu /* of the permutation */
#define PLACE 8u /* bytes of a row's position, at the start of its record */

/* X, or another sparse matrix. */
struct matrix {
	bool sparse;
	enum pen_dtype dtype;
	size_t item;
	uint64_t ncols;
};

/* Values of a matrix and their indices, row by row. */
struct lists {
	struct pen_buf places, values;
};

/* Pending rows: a record with the position of each, its number of values (4
 * bytes per matrix), columns and dense matrices; and its values. */
struct rows {
	struct pen_buf record;
	struct lists *m; /* nmatrices, or NULL: empty */
};

/* Rows as stored in the file, followed by a part for each matrix. */
struct block {
	uint64_t at;
	uint32_t nrows, record, crc, zero;
};
struct part {
	uint32_t nnz, places, values, zero;
};

struct bucket {
	uint64_t first, n; /* positions of its rows */
	struct rows waiting;
	struct pen_buf blocks;
};

struct pen_row_shuffle {
	const struct pen_cells_spec *spec;
	struct pen_perm perm;
	char *path;
	int fd;
	uint64_t at; /* bytes in the file */
	struct matrix *matrix;
	uint32_t nmatrices;
	size_t record;		 /* bytes of a row's record */
	size_t limit;		 /* bytes of a pending bucket */
	uint64_t next_row;	 /* the next row to be added */
	uint64_t nbuckets, open; /* the bucket being returned, plus 1 */
	struct bucket *bucket;
	/* of the bucket being returned */
	struct rows all;
	uint64_t **start; /* per matrix */
	uint32_t *order;  /* the row at each position */
	uint64_t given;
	/* rows being returned */
	struct pen_buf *out_start; /* per matrix */
	struct rows out;	   /* record: not used */
	struct pen_cells_lists *lists;
	struct pen_buf *column;
	const void **pointer;
	struct pen_buf packed;
	struct pen_scratch scratch;
};

static int nomem(const struct pen_row_shuffle *d, size_t n, struct pen_err *err)
{
	return pen__fail_nomem(err, d->path ? d->path : "shuffle", n);
}

static uint32_t ncolumns(const struct pen_cells_spec *s)
{
	return s->nobs + s->ndense;
}

/* Bytes per row of a column of obs, or of a matrix other than X. */
static size_t width_of(const struct pen_cells_spec *s, uint32_t i)
{
	if (i >= s->nobs)
		return pen_dtype_size(s->dense[i - s->nobs].dtype) *
		       s->dense[i - s->nobs].ncols;
	return s->obs[i].coded ? 4 : pen_dtype_size(s->obs[i].dtype);
}

static bool make_rows(const struct pen_row_shuffle *d, struct rows *r)
{
	if (!r->m)
		r->m = pen__calloc(d->nmatrices, sizeof(*r->m));
	return r->m != NULL;
}

static void free_rows(const struct pen_row_shuffle *d, struct rows *r)
{
	for (uint32_t i = 0; r->m && i < d->nmatrices; i++) {
		pen__buf_fini(&r->m[i].places);
		pen__buf_fini(&r->m[i].values);
	}
	pen__buf_fini(&r->record);
	pen__free(r->m);
	*r = (struct rows){ 0 };
}

static void empty_rows(const struct pen_row_shuffle *d, struct rows *r)
{
	for (uint32_t i = 0; r->m && i < d->nmatrices; i++)
		r->m[i].places.n = r->m[i].values.n = 0;
	r->record.n = 0;
}

/* Bytes of all; SIZE_MAX: out of memory. */
static size_t bytes_of(const struct pen_row_shuffle *d, const struct rows *r)
{
	size_t n = r->record.n;
	bool bad = r->record.bad;

	for (uint32_t i = 0; i < d->nmatrices; i++) {
		bad |= r->m[i].places.bad || r->m[i].values.bad;
		n += r->m[i].places.n + r->m[i].values.n;
	}
	return bad ? SIZE_MAX : n;
}

static uint32_t length_of(const uint8_t *record, uint32_t matrix)
{
	uint32_t n;

	memcpy(&n, record + PLACE + 4 * (size_t)matrix, sizeof(n));
	return n;
}

void pen__row_shuffle_order(struct pen_perm *p, uint64_t n, uint64_t seed)
{
	pen__perm_init(p, n, seed, STREAM);
}

/* ---- the file ---- */

static int open_file(struct pen_row_shuffle *d, struct pen_err *err)
{
	char name[4128];
	char *slash;

	snprintf(name, sizeof(name), "%s", d->path);
	slash = strrchr(name, '/');
	if (slash)
		slash[1] = '\0';
	d->fd = open(slash ? name : ".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
	if (d->fd >= 0)
		return 0;
	/* not every file system supports files without a name */
	snprintf(name, sizeof(name), "%s.%ld.rows", d->path, (long)getpid());
	d->fd = open(name, O_CREAT | O_EXCL | O_RDWR | O_CLOEXEC, 0600);
	if (d->fd < 0)
		return pen__fail_sys(err, errno, name,
				     "cannot create the temporary file");
	unlink(name);
	return 0;
}

static int write_all(struct pen_row_shuffle *d, struct pen_err *err)
{
	size_t done = 0;
	int rc = d->fd < 0 ? open_file(d, err) : 0;

	while (rc >= 0 && done < d->packed.n) {
		const ssize_t n = pwrite(d->fd, d->packed.p + done,
					 d->packed.n - done,
					 (off_t)(d->at + done));

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return pen__fail_sys(err, n ? errno : ENOSPC, d->path,
					     "cannot write the rows to shuffle "
					     "to a temporary file next to it");
		done += (size_t)n;
	}
	d->at += done;
	return rc;
}

static int read_all(struct pen_row_shuffle *d, uint64_t at, size_t n,
		    struct pen_err *err)
{
	size_t done = 0;

	d->packed.n = 0;
	if (n > d->packed.cap) {
		uint8_t *p = pen__realloc(d->packed.p, n, 1);

		if (!p)
			return nomem(d, n, err);
		d->packed.p = p;
		d->packed.cap = n;
	}
	while (done < n) {
		const ssize_t k = pread(d->fd, d->packed.p + done, n - done,
					(off_t)(at + done));

		if (k < 0 && errno == EINTR)
			continue;
		if (k <= 0)
			return pen__fail_sys(
				err, k ? errno : EIO, d->path,
				"cannot read the rows to shuffle from the "
				"temporary file next to it");
		done += (size_t)k;
	}
	d->packed.n = n;
	return 0;
}

/* ---- adding rows ---- */

/* Row offsets of a matrix, from the records. */
static uint64_t *starts_of(const struct pen_row_shuffle *d,
			   const struct pen_buf *r, uint32_t matrix,
			   uint64_t *n)
{
	uint64_t *start, at = 0;

	*n = r->n / d->record;
	start = pen__alloc(*n + 1, sizeof(*start));
	for (uint64_t i = 0; start && i < *n; i++) {
		start[i] = at;
		at += length_of(r->p + i * d->record, matrix);
	}
	if (start)
		start[*n] = at;
	return start;
}

/* Appends the values of a matrix to packed. */
static int pack_lists(struct pen_row_shuffle *d, const struct rows *r,
		      uint32_t i, struct part *part, struct pen_err *err)
{
	const size_t from = d->packed.n;
	uint64_t n;
	uint64_t *start = starts_of(d, &r->record, i, &n);
	const struct pen_cellrows rows = { start, 8, (uint32_t)n };

	if (!start)
		return nomem(d, n * sizeof(*start), err);
	*part = (struct part){ .nnz = (uint32_t)start[n] };
	if (d->matrix[i].sparse)
		pen__places_pack(&rows,
				 (const uint32_t *)(void *)r->m[i].places.p,
				 part->nnz, &d->packed);
	part->places = (uint32_t)(d->packed.n - from);
	pen__numbers_pack(&rows, d->matrix[i].dtype, r->m[i].values.p,
			  part->nnz, &d->packed, NULL);
	part->values = (uint32_t)(d->packed.n - from) - part->places;
	pen__free(start);
	return 0;
}

/* Writes the pending rows as a block of the file. */
static int put_block(struct pen_row_shuffle *d, struct bucket *b,
		     struct pen_err *err)
{
	struct rows *r = &b->waiting;
	struct block k = { .at = d->at,
			   .nrows = (uint32_t)(r->record.n / d->record),
			   .record = (uint32_t)r->record.n };
	int rc = 0;

	k.crc = pen__crc32c(0, r->record.p, r->record.n);
	d->packed.n = 0;
	pen__buf_put(&d->packed, r->record.p, r->record.n);
	pen__buf_put(&b->blocks, &k, sizeof(k));
	for (uint32_t i = 0; rc >= 0 && i < d->nmatrices; i++) {
		struct part part;

		rc = pack_lists(d, r, i, &part, err);
		if (rc >= 0)
			pen__buf_put(&b->blocks, &part, sizeof(part));
	}
	if (rc >= 0)
		rc = d->packed.bad || b->blocks.bad ? nomem(d, d->packed.n, err)
						    : write_all(d, err);
	empty_rows(d, r);
	return rc;
}

static struct bucket *bucket_of(const struct pen_row_shuffle *d, uint64_t place)
{
	/* the first position of bucket i is i * n / nbuckets, rounded down */
	uint64_t i = place * d->nbuckets / d->spec->nrows;

	while (i + 1 < d->nbuckets && place >= d->bucket[i + 1].first)
		i++;
	while (place < d->bucket[i].first)
		i--;
	return &d->bucket[i];
}

/* Row i of r in one matrix. */
static struct pen_cells_lists lists_of(const struct pen_cells_rows *r,
				       uint32_t matrix)
{
	return matrix ? r->csr[matrix - 1]
		      : (struct pen_cells_lists){ r->start, r->indices,
						  r->values };
}

static void put_lists(const struct matrix *m, const struct pen_cells_lists *l,
		      uint64_t i, struct lists *to, struct pen_buf *record)
{
	const uint64_t at = m->sparse ? l->start[i] : i * m->ncols;
	const uint64_t n = m->sparse ? l->start[i + 1] - at : m->ncols;

	pen__buf_le(record, n, 4);
	if (m->sparse)
		pen__buf_put(&to->places, l->indices + at, n * 4);
	pen__buf_put(&to->values, (const uint8_t *)l->values + at * m->item,
		     n * m->item);
}

static int put_row(struct pen_row_shuffle *d, const struct pen_cells_rows *r,
		   uint64_t i, struct pen_err *err)
{
	const struct pen_cells_spec *s = d->spec;
	const uint64_t place = pen__perm_inverse(&d->perm, d->next_row);
	struct bucket *b = bucket_of(d, place);
	struct rows *w = &b->waiting;
	size_t n;

	if (!make_rows(d, w))
		return nomem(d, sizeof(*w->m), err);
	pen__buf_le(&w->record, place, PLACE);
	for (uint32_t k = 0; k < d->nmatrices; k++) {
		const struct pen_cells_lists l = lists_of(r, k);

		put_lists(&d->matrix[k], &l, i, &w->m[k], &w->record);
	}
	for (uint32_t k = 0; k < ncolumns(s); k++) {
		const size_t size = width_of(s, k);
		const uint8_t *p = k < s->nobs ? r->obs[k]
					       : r->dense[k - s->nobs];

		pen__buf_put(&w->record, p + i * size, size);
	}
	n = bytes_of(d, w);
	if (n == SIZE_MAX)
		return nomem(d, w->record.n, err);
	d->next_row++;
	return n < d->limit ? 0 : put_block(d, b, err);
}

int pen__row_shuffle_put(struct pen_row_shuffle *d,
			 const struct pen_cells_rows *r, struct pen_err *err)
{
	int rc = 0;

	if (r->n > d->spec->nrows - d->next_row)
		return pen__fail(err, P_DAMAGED, d->path,
				 "more rows than announced");
	for (uint64_t i = 0; rc >= 0 && i < r->n; i++)
		rc = put_row(d, r, i, err);
	return rc;
}

/* ---- returning rows ---- */

/* Returns room for n more bytes at the end of b. */
static uint8_t *grow(struct pen_buf *b, size_t n)
{
	if (n > b->cap - b->n) {
		uint8_t *p = pen__realloc(b->p, b->n + n, 1);

		if (!p)
			return NULL;
		b->p = p;
		b->cap = b->n + n;
	}
	b->n += n;
	return b->p + b->n - n;
}

static int damaged(const struct pen_row_shuffle *d, const char *why,
		   struct pen_err *err)
{
	return pen__fail(err, P_COPY_DIFFERS, d->path,
			 "rows read back from the temporary file differ: %s",
			 why);
}

static int make_room(struct pen_row_shuffle *d, size_t n, struct pen_err *err)
{
	if (n <= d->scratch.size)
		return 0;
	pen__scratch_fini(&d->scratch);
	return pen__scratch_init(&d->scratch, n) < 0 ? nomem(d, n, err) : 0;
}

/* Unpacks the values of a matrix behind the existing ones. */
static int unpack_lists(struct pen_row_shuffle *d, const struct part *part,
			const struct pen_buf *record, uint32_t i,
			const uint8_t *p, struct pen_err *err)
{
	const struct matrix *m = &d->matrix[i];
	struct pen_cellrows rows = { NULL, 8, 0 };
	struct pen_cellplaces g = { &rows, NULL, part->nnz, 4 };
	struct pen_cellnumbers c = { m->dtype, m->dtype, part->nnz, NULL,
				     &rows };
	const char *why = "wrong row lengths";
	uint64_t n, *start = starts_of(d, record, i, &n);
	int rc = make_room(d, pen__numbers_room(c.dtype, part->nnz), err);

	rows.starts = start;
	rows.nrows = (uint32_t)n;
	g.to = grow(&d->all.m[i].places, m->sparse ? 4 * (size_t)part->nnz : 0);
	c.to = grow(&d->all.m[i].values, m->item * part->nnz);
	if (rc >= 0 &&
	    (!start || (part->nnz && (!c.to || (m->sparse && !g.to)))))
		rc = nomem(d, m->item * part->nnz, err);
	if (rc < 0) {
		pen__free(start);
		return rc;
	}
	if (start[n] != part->nnz)
		rc = PEN_EDATA;
	if (rc >= 0 && m->sparse)
		rc = pen__places_unpack(&g, p, part->places, &why);
	if (rc >= 0)
		rc = pen__numbers_unpack(&c, p + part->places, part->values,
					 &d->scratch, &why);
	pen__free(start);
	return rc == PEN_ENOMEM ? nomem(d, part->nnz, err)
	       : rc < 0		? damaged(d, why, err)
				: 0;
}

static int take_block(struct pen_row_shuffle *d, const uint8_t *entry,
		      struct pen_err *err)
{
	struct pen_buf record;
	struct block k;
	struct part part;
	const uint8_t *p, *parts = entry + sizeof(k);
	size_t n;
	int rc;

	memcpy(&k, entry, sizeof(k));
	n = k.record;
	for (uint32_t i = 0; i < d->nmatrices; i++) {
		memcpy(&part, parts + i * sizeof(part), sizeof(part));
		n += (size_t)part.places + part.values;
	}
	rc = read_all(d, k.at, n, err);
	if (rc < 0)
		return rc;
	p = d->packed.p;
	if (pen__crc32c(0, p, k.record) != k.crc)
		return damaged(d, "the checksum differs", err);
	record = (struct pen_buf){ .p = d->packed.p, .n = k.record };
	pen__buf_put(&d->all.record, p, k.record);
	if (d->all.record.bad)
		return nomem(d, k.record, err);
	p += k.record;
	for (uint32_t i = 0; rc >= 0 && i < d->nmatrices; i++) {
		memcpy(&part, parts + i * sizeof(part), sizeof(part));
		rc = unpack_lists(d, &part, &record, i, p, err);
		p += (size_t)part.places + part.values;
	}
	return rc;
}

/* Finds the row at each position; every position must have one. */
static int sort_rows(struct pen_row_shuffle *d, const struct bucket *b,
		     struct pen_err *err)
{
	uint64_t n = d->all.record.n / d->record, place;

	for (uint32_t i = 0; i < d->nmatrices; i++) {
		pen__free(d->start[i]);
		d->start[i] = starts_of(d, &d->all.record, i, &n);
		if (!d->start[i])
			return nomem(d, n * sizeof(*d->start[i]), err);
	}
	pen__free(d->order);
	d->order = pen__alloc(b->n + 1, sizeof(*d->order));
	if (!d->order)
		return nomem(d, b->n * sizeof(*d->order), err);
	memset(d->order, 0xff, (b->n + 1) * sizeof(*d->order));
	for (uint64_t i = 0; i < n; i++) {
		memcpy(&place, d->all.record.p + i * d->record, PLACE);
		if (place < b->first || place - b->first >= b->n)
			return damaged(d, "a wrong position", err);
		d->order[place - b->first] = (uint32_t)i;
	}
	for (uint64_t i = 0; i < b->n; i++)
		if (d->order[i] == UINT32_MAX)
			return pen__fail(err, P_DAMAGED, d->path,
					 "fewer rows than announced");
	return 0;
}

static int open_bucket(struct pen_row_shuffle *d, struct pen_err *err)
{
	const size_t entry =
		sizeof(struct block) + d->nmatrices * sizeof(struct part);
	struct bucket *b = &d->bucket[d->open++];
	int rc = 0;

	d->given = 0;
	if (!b->blocks.n) { /* all of it is still in memory */
		free_rows(d, &d->all);
		d->all = b->waiting;
		b->waiting = (struct rows){ 0 };
		return make_rows(d, &d->all) ? sort_rows(d, b, err)
					     : nomem(d, 0, err);
	}
	empty_rows(d, &d->all);
	if (!make_rows(d, &d->all))
		return nomem(d, 0, err);
	if (b->waiting.record.n)
		rc = put_block(d, b, err);
	free_rows(d, &b->waiting);
	for (size_t at = 0; rc >= 0 && at < b->blocks.n; at += entry)
		rc = take_block(d, b->blocks.p + at, err);
	return rc < 0 ? rc : sort_rows(d, b, err);
}

static void give_lists(struct pen_row_shuffle *d, uint32_t i, uint32_t row)
{
	const struct matrix *m = &d->matrix[i];
	const uint64_t at = d->start[i][row], n = d->start[i][row + 1] - at;
	struct lists *to = &d->out.m[i];
	uint64_t end;

	if (m->sparse)
		pen__buf_put(&to->places, d->all.m[i].places.p + at * 4, n * 4);
	pen__buf_put(&to->values, d->all.m[i].values.p + at * m->item,
		     n * m->item);
	end = to->values.n / m->item;
	pen__buf_put(&d->out_start[i], &end, sizeof(end));
}

static void give_row(struct pen_row_shuffle *d, uint32_t row)
{
	const struct pen_cells_spec *s = d->spec;
	const uint8_t *p = d->all.record.p + row * d->record + PLACE +
			   4 * (size_t)d->nmatrices;

	for (uint32_t i = 0; i < d->nmatrices; i++)
		give_lists(d, i, row);
	for (uint32_t k = 0; k < ncolumns(s); k++) {
		const size_t size = width_of(s, k);

		pen__buf_put(&d->column[k], p, size);
		p += size;
	}
}

static int give_out(struct pen_row_shuffle *d, struct pen_cells_rows *r,
		    struct pen_err *err)
{
	bool bad = bytes_of(d, &d->out) == SIZE_MAX;

	for (uint32_t i = 0; i < d->nmatrices; i++) {
		bad |= d->out_start[i].bad;
		d->lists[i] = (struct pen_cells_lists){
			(const uint64_t *)(void *)d->out_start[i].p,
			(const uint32_t *)(void *)d->out.m[i].places.p,
			d->out.m[i].values.p
		};
	}
	for (uint32_t k = 0; k < ncolumns(d->spec); k++) {
		bad |= d->column[k].bad;
		d->pointer[k] = d->column[k].p;
	}
	r->start = d->lists[0].start;
	r->indices = d->lists[0].indices;
	r->values = d->lists[0].values;
	r->csr = d->lists + 1;
	r->obs = d->pointer;
	r->dense = d->pointer + d->spec->nobs;
	return bad ? nomem(d, 0, err) : 0;
}

int pen__row_shuffle_take(struct pen_row_shuffle *d, struct pen_cells_rows *r,
			  struct pen_err *err)
{
	const uint64_t zero = 0;
	int rc = 0;

	*r = (struct pen_cells_rows){ 0 };
	while (rc >= 0 && (!d->open || d->given == d->bucket[d->open - 1].n)) {
		if (d->open == d->nbuckets)
			return 0;
		rc = open_bucket(d, err);
	}
	if (rc < 0)
		return rc;
	if (!make_rows(d, &d->out))
		return nomem(d, 0, err);
	empty_rows(d, &d->out);
	for (uint32_t i = 0; i < d->nmatrices; i++) {
		d->out_start[i].n = 0;
		pen__buf_put(&d->out_start[i], &zero, sizeof(zero));
	}
	for (uint32_t k = 0; k < ncolumns(d->spec); k++)
		d->column[k].n = 0;
	for (; r->n < ROWS && d->given < d->bucket[d->open - 1].n; r->n++)
		give_row(d, d->order[d->given++]);
	return give_out(d, r, err);
}

/* ---- open and close ---- */

/* Bytes of all rows in memory. */
static uint64_t bytes_in_all(const struct pen_row_shuffle *d)
{
	const struct pen_cells_spec *s = d->spec;
	const uint64_t nnz = s->sparse ? s->nnz : s->nrows * s->ncols;
	uint64_t all = nnz * (d->matrix[0].item + (s->sparse ? 4 : 0)) +
		       s->nrows * (d->record + 8 + 8 * (uint64_t)d->nmatrices);

	for (uint32_t i = 0; i < s->ncsr; i++)
		all += s->csr[i].nnz * (d->matrix[i + 1].item + 4);
	return all;
}

static int make_matrices(struct pen_row_shuffle *d, struct pen_err *err)
{
	const struct pen_cells_spec *s = d->spec;

	d->nmatrices = 1 + s->ncsr;
	d->matrix = pen__calloc(d->nmatrices, sizeof(*d->matrix));
	d->start = pen__calloc(d->nmatrices, sizeof(*d->start));
	d->out_start = pen__calloc(d->nmatrices, sizeof(*d->out_start));
	d->lists = pen__calloc(d->nmatrices, sizeof(*d->lists));
	if (!d->matrix || !d->start || !d->out_start || !d->lists)
		return nomem(d, d->nmatrices * sizeof(*d->matrix), err);
	d->matrix[0] = (struct matrix){ s->sparse, s->dtype,
					pen_dtype_size(s->dtype), s->ncols };
	for (uint32_t i = 0; i < s->ncsr; i++)
		d->matrix[i + 1] =
			(struct matrix){ true, s->csr[i].dtype,
					 pen_dtype_size(s->csr[i].dtype),
					 s->csr[i].ncols };
	return 0;
}

static int make_buckets(struct pen_row_shuffle *d, uint64_t memory,
			struct pen_err *err)
{
	const struct pen_cells_spec *s = d->spec;
	const uint64_t all = bytes_in_all(d);
	const uint64_t half = memory / 2 > LEAST ? memory / 2 : LEAST;

	d->nbuckets = all / half + 1;
	if (d->nbuckets > BUCKETS)
		return pen__fail(
			err, P_BAD_VALUE, "memory",
			"%s is too little to shuffle %s; set at least %" PRIu64
			"MB",
			pen__show_bytes((double)memory).s,
			pen__show_bytes((double)all).s,
			all / BUCKETS * 2 / 1000000 + 1);
	if (d->nbuckets > s->nrows)
		d->nbuckets = s->nrows ? s->nrows : 1;
	d->limit = d->nbuckets == 1 ? SIZE_MAX : (size_t)(half / d->nbuckets);
	if (d->limit < LEAST)
		d->limit = LEAST;
	/* lengths of a block have 4 bytes */
	if (d->nbuckets > 1 && d->limit > (size_t)1 << 28)
		d->limit = (size_t)1 << 28;
	d->bucket = pen__calloc(d->nbuckets, sizeof(*d->bucket));
	if (!d->bucket)
		return nomem(d, d->nbuckets * sizeof(*d->bucket), err);
	for (uint64_t i = 0; i < d->nbuckets; i++) {
		struct bucket *b = &d->bucket[i];

		/* cannot overflow: nbuckets is small */
		b->first = s->nrows / d->nbuckets * i +
			   s->nrows % d->nbuckets * i / d->nbuckets;
		if (i)
			b[-1].n = b->first - b[-1].first;
		b->n = s->nrows - b->first;
	}
	return 0;
}

int pen__row_shuffle_new(struct pen_row_shuffle **out,
			 const struct pen_row_shuffle_setup *setup,
			 struct pen_err *err)
{
	const struct pen_cells_spec *s = setup->spec;
	struct pen_row_shuffle *d = pen__calloc(1, sizeof(*d));
	int rc = 0;

	*out = NULL;
	if (!d)
		return pen__fail_nomem(err, setup->target, sizeof(*d));
	d->fd = -1;
	d->spec = s;
	d->record = PLACE + 4 * (1 + (size_t)s->ncsr);
	for (uint32_t i = 0; i < ncolumns(s); i++)
		d->record += width_of(s, i);
	d->path = pen__strdup(setup->target);
	d->column = pen__calloc(ncolumns(s) + 1, sizeof(*d->column));
	d->pointer = pen__calloc(ncolumns(s) + 1, sizeof(*d->pointer));
	if (!d->path || !d->column || !d->pointer)
		rc = nomem(d, sizeof(*d->column), err);
	if (rc >= 0)
		rc = make_matrices(d, err);
	if (rc >= 0)
		rc = make_buckets(d, setup->memory, err);
	if (rc < 0) {
		pen__row_shuffle_free(d);
		return rc;
	}
	if (s->nrows)
		pen__row_shuffle_order(&d->perm, s->nrows, setup->seed);
	*out = d;
	return 0;
}

void pen__row_shuffle_free(struct pen_row_shuffle *d)
{
	if (!d)
		return;
	if (d->fd >= 0)
		close(d->fd);
	for (uint64_t i = 0; d->bucket && i < d->nbuckets; i++) {
		free_rows(d, &d->bucket[i].waiting);
		pen__buf_fini(&d->bucket[i].blocks);
	}
	for (uint32_t i = 0; d->column && i < ncolumns(d->spec); i++)
		pen__buf_fini(&d->column[i]);
	free_rows(d, &d->all);
	free_rows(d, &d->out);
	for (uint32_t i = 0; i < d->nmatrices; i++) {
		if (d->out_start)
			pen__buf_fini(&d->out_start[i]);
		if (d->start)
			pen__free(d->start[i]);
	}
	pen__buf_fini(&d->packed);
	pen__scratch_fini(&d->scratch);
	pen__free(d->matrix);
	pen__free(d->out_start);
	pen__free(d->lists);
	pen__free(d->start);
	pen__free(d->order);
	pen__free(d->column);
	pen__free(d->pointer);
	pen__free(d->bucket);
	pen__free(d->path);
	pen__free(d);
}

uint64_t pen__row_shuffle_nbuckets(const struct pen_row_shuffle *d)
{
	return d->nbuckets;
}

uint64_t pen__row_shuffle_bytes(const struct pen_row_shuffle *d)
{
	return d->at;
}
