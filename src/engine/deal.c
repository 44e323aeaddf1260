/*
 * Dealing rows into buckets. A bucket's rows wait in memory; when they are
 * many enough they are packed and appended to the file. The file has no name
 * from the start, so that nothing is left of it whatever happens to the
 * program; when all rows fit into one bucket there is none. Refuses data of
 * which a bucket would not fit into the given memory with a thousand buckets.
 */
#include "engine/deal.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "codec/cellpack.h"
#include "codec/crc32c.h"

#define BUCKETS 1024u	   /* the most */
#define LEAST 65536u	   /* bytes of rows that are worth a block */
#define ROWS 1024u	   /* that are given out at a time */
#define STREAM 0x63656c6cu /* the permutation's */
#define HEAD 12u	   /* of a row: its place (8), its numbers (4) */

/* Rows as they wait: a record of HEAD, columns and matrices for each, and
 * their places and numbers one after another. */
struct rows {
	struct pen_buf record, places, values;
};

/* Rows as they are in the file. */
struct block {
	uint64_t at;
	uint32_t nrows, nnz, record, places, values, crc;
};

struct bucket {
	uint64_t first, n; /* places of its rows */
	struct rows waiting;
	struct pen_buf blocks;
};

struct pen_deal {
	const struct pen_cells_spec *spec;
	struct pen_perm perm;
	char *path;
	int fd;
	uint64_t at;		 /* bytes in the file */
	size_t item, record;	 /* bytes of a number, of a row's record */
	size_t limit;		 /* bytes of a bucket that waits */
	uint64_t next_row;	 /* that comes in */
	uint64_t nbuckets, open; /* the bucket that goes out, plus 1 */
	struct bucket *bucket;
	/* of the bucket that goes out */
	struct rows all;
	uint64_t *start;
	uint32_t *order; /* which row is at which place */
	uint64_t given;
	/* rows that are given out */
	struct pen_buf out_start;
	struct rows out; /* record: not used */
	struct pen_buf *column;
	const void **pointer;
	struct pen_buf packed;
	struct pen_scratch scratch;
};

static int nomem(const struct pen_deal *d, size_t n, struct pen_err *err)
{
	return pen__fail_nomem(err, d->path ? d->path : "shuffle", n);
}

static uint32_t ncolumns(const struct pen_cells_spec *s)
{
	return s->nobs + s->ndense;
}

/* Bytes that a column of obs, or a matrix beside X, has in a row. */
static size_t width_of(const struct pen_cells_spec *s, uint32_t i)
{
	if (i >= s->nobs)
		return pen_dtype_size(s->dense[i - s->nobs].dtype) *
		       s->dense[i - s->nobs].ncols;
	return s->obs[i].coded ? 4 : pen_dtype_size(s->obs[i].dtype);
}

static void free_rows(struct rows *r)
{
	pen__buf_fini(&r->record);
	pen__buf_fini(&r->places);
	pen__buf_fini(&r->values);
}

static void empty_rows(struct rows *r)
{
	r->record.n = r->places.n = r->values.n = 0;
}

static bool bad_rows(const struct rows *r)
{
	return r->record.bad || r->places.bad || r->values.bad;
}

static uint32_t length_of(const uint8_t *record)
{
	uint32_t n;

	memcpy(&n, record + 8, sizeof(n));
	return n;
}

void pen__deal_order(struct pen_perm *p, uint64_t n, uint64_t seed)
{
	pen__perm_init(p, n, seed, STREAM);
}

/* ---- the file ---- */

static int open_file(struct pen_deal *d, struct pen_err *err)
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
	/* not every file system can do without a name */
	snprintf(name, sizeof(name), "%s.%ld.rows", d->path, (long)getpid());
	d->fd = open(name, O_CREAT | O_EXCL | O_RDWR | O_CLOEXEC, 0600);
	if (d->fd < 0)
		return pen__fail_sys(err, errno, name, "cannot be written");
	unlink(name);
	return 0;
}

static int write_all(struct pen_deal *d, struct pen_err *err)
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
					     "rows cannot be written beside "
					     "it while they are shuffled");
		done += (size_t)n;
	}
	d->at += done;
	return rc;
}

static int read_all(struct pen_deal *d, uint64_t at, size_t n,
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
			return pen__fail_sys(err, k ? errno : EIO, d->path,
					     "rows beside it cannot be read");
		done += (size_t)k;
	}
	d->packed.n = n;
	return 0;
}

/* ---- in ---- */

/* Where rows begin, by their records. */
static uint64_t *starts_of(const struct pen_deal *d, const struct pen_buf *r,
			   uint64_t *n)
{
	uint64_t *start, at = 0;

	*n = r->n / d->record;
	start = pen__alloc(*n + 1, sizeof(*start));
	for (uint64_t i = 0; start && i < *n; i++) {
		start[i] = at;
		at += length_of(r->p + i * d->record);
	}
	if (start)
		start[*n] = at;
	return start;
}

/* What waits becomes a block of the file. */
static int put_block(struct pen_deal *d, struct bucket *b, struct pen_err *err)
{
	struct block k = { .at = d->at };
	struct rows *r = &b->waiting;
	uint64_t n;
	uint64_t *start = starts_of(d, &r->record, &n);
	const struct pen_cellrows rows = { start, 8, (uint32_t)n };
	int rc;

	if (!start)
		return nomem(d, n * sizeof(*start), err);
	k.nrows = (uint32_t)n;
	k.nnz = (uint32_t)start[n];
	k.record = (uint32_t)r->record.n;
	k.crc = pen__crc32c(0, r->record.p, r->record.n);
	d->packed.n = 0;
	pen__buf_put(&d->packed, r->record.p, r->record.n);
	if (d->spec->sparse)
		pen__places_pack(&rows, (const uint32_t *)(void *)r->places.p,
				 k.nnz, &d->packed);
	k.places = (uint32_t)d->packed.n - k.record;
	pen__numbers_pack(&rows, d->spec->dtype, r->values.p, k.nnz, &d->packed,
			  NULL);
	k.values = (uint32_t)d->packed.n - k.record - k.places;
	pen__buf_put(&b->blocks, &k, sizeof(k));
	rc = d->packed.bad || b->blocks.bad ? nomem(d, d->packed.n, err)
					    : write_all(d, err);
	empty_rows(r);
	pen__free(start);
	return rc;
}

static struct bucket *bucket_of(const struct pen_deal *d, uint64_t place)
{
	/* the first place of bucket i is i * n / nbuckets, rounded down */
	uint64_t i = place * d->nbuckets / d->spec->nrows;

	while (i + 1 < d->nbuckets && place >= d->bucket[i + 1].first)
		i++;
	while (place < d->bucket[i].first)
		i--;
	return &d->bucket[i];
}

static int put_row(struct pen_deal *d, const struct pen_cells_rows *r,
		   uint64_t i, struct pen_err *err)
{
	const struct pen_cells_spec *s = d->spec;
	const uint64_t place = pen__perm_inverse(&d->perm, d->next_row);
	const uint64_t at = s->sparse ? r->start[i] : i * s->ncols;
	const uint64_t n = s->sparse ? r->start[i + 1] - at : s->ncols;
	struct bucket *b = bucket_of(d, place);
	struct rows *w = &b->waiting;

	pen__buf_le(&w->record, place, 8);
	pen__buf_le(&w->record, n, 4);
	for (uint32_t k = 0; k < ncolumns(s); k++) {
		const size_t size = width_of(s, k);
		const uint8_t *p = k < s->nobs ? r->obs[k]
					       : r->dense[k - s->nobs];

		pen__buf_put(&w->record, p + i * size, size);
	}
	if (s->sparse)
		pen__buf_put(&w->places, r->indices + at, n * 4);
	pen__buf_put(&w->values, (const uint8_t *)r->values + at * d->item,
		     n * d->item);
	if (bad_rows(w))
		return nomem(d, w->values.n, err);
	d->next_row++;
	if (w->record.n + w->places.n + w->values.n < d->limit)
		return 0;
	return put_block(d, b, err);
}

int pen__deal_put(struct pen_deal *d, const struct pen_cells_rows *r,
		  struct pen_err *err)
{
	int rc = 0;

	if (r->n > d->spec->nrows - d->next_row)
		return pen__fail(err, PEN_EDATA, d->path,
				 "more rows than were announced");
	for (uint64_t i = 0; rc >= 0 && i < r->n; i++)
		rc = put_row(d, r, i, err);
	return rc;
}

/* ---- out ---- */

/* Room for n more bytes at the end of b. */
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

static int damaged(const struct pen_deal *d, const char *why,
		   struct pen_err *err)
{
	return pen__fail(err, PEN_EDATA, d->path,
			 "rows that were put beside it came back otherwise: %s",
			 why);
}

static int make_room(struct pen_deal *d, size_t n, struct pen_err *err)
{
	if (n <= d->scratch.size)
		return 0;
	pen__scratch_fini(&d->scratch);
	return pen__scratch_init(&d->scratch, n) < 0 ? nomem(d, n, err) : 0;
}

static int take_block(struct pen_deal *d, const struct block *k,
		      struct pen_err *err)
{
	struct pen_cellrows rows = { NULL, 8, k->nrows };
	struct pen_cellplaces g = { &rows, NULL, k->nnz, 4 };
	struct pen_cellnumbers c = { d->spec->dtype, d->spec->dtype, k->nnz,
				     NULL, &rows };
	const char *why = "another checksum";
	struct pen_buf record;
	uint64_t n, *start;
	const uint8_t *p;
	int rc = read_all(d, k->at, (size_t)k->record + k->places + k->values,
			  err);

	if (rc >= 0)
		rc = make_room(d, pen__numbers_room(c.dtype, k->nnz), err);
	if (rc < 0)
		return rc;
	p = d->packed.p;
	if (pen__crc32c(0, p, k->record) != k->crc)
		return damaged(d, why, err);
	record = (struct pen_buf){ .p = d->packed.p, .n = k->record };
	pen__buf_put(&d->all.record, p, k->record);
	g.to = grow(&d->all.places, d->spec->sparse ? 4 * (size_t)k->nnz : 0);
	c.to = grow(&d->all.values, d->item * k->nnz);
	rows.starts = start = starts_of(d, &record, &n);
	if (!start || d->all.record.bad || (k->nnz && !c.to)) {
		pen__free(start);
		return nomem(d, d->item * k->nnz, err);
	}
	if (d->spec->sparse)
		rc = pen__places_unpack(&g, p + k->record, k->places, &why);
	if (rc >= 0)
		rc = pen__numbers_unpack(&c, p + k->record + k->places,
					 k->values, &d->scratch, &why);
	pen__free(start);
	return rc < 0 ? damaged(d, why, err) : 0;
}

/* Which row is at which place; every place has one. */
static int sort_rows(struct pen_deal *d, const struct bucket *b,
		     struct pen_err *err)
{
	uint64_t n, place;

	pen__free(d->start);
	pen__free(d->order);
	d->start = starts_of(d, &d->all.record, &n);
	d->order = pen__alloc(b->n + 1, sizeof(*d->order));
	if (!d->start || !d->order)
		return nomem(d, n * sizeof(*d->start), err);
	memset(d->order, 0xff, (b->n + 1) * sizeof(*d->order));
	for (uint64_t i = 0; i < n; i++) {
		memcpy(&place, d->all.record.p + i * d->record, 8);
		if (place < b->first || place - b->first >= b->n)
			return damaged(d, "another place", err);
		d->order[place - b->first] = (uint32_t)i;
	}
	for (uint64_t i = 0; i < b->n; i++)
		if (d->order[i] == UINT32_MAX)
			return pen__fail(err, PEN_EDATA, d->path,
					 "fewer rows than were announced");
	return 0;
}

static int open_bucket(struct pen_deal *d, struct pen_err *err)
{
	struct bucket *b = &d->bucket[d->open++];
	const uint64_t n = b->blocks.n / sizeof(struct block);
	int rc = 0;

	d->given = 0;
	empty_rows(&d->all);
	if (!n) { /* all of it is still here */
		free_rows(&d->all);
		d->all = b->waiting;
		b->waiting = (struct rows){ 0 };
		return sort_rows(d, b, err);
	}
	if (b->waiting.record.n)
		rc = put_block(d, b, err);
	free_rows(&b->waiting);
	b->waiting = (struct rows){ 0 };
	for (uint64_t i = 0; rc >= 0 && i < b->blocks.n / sizeof(struct block);
	     i++)
		rc = take_block(d,
				&((const struct block *)(void *)b->blocks.p)[i],
				err);
	return rc < 0 ? rc : sort_rows(d, b, err);
}

static void give_row(struct pen_deal *d, uint32_t row)
{
	const struct pen_cells_spec *s = d->spec;
	const uint64_t at = d->start[row], n = d->start[row + 1] - at;
	const uint8_t *p = d->all.record.p + row * d->record + HEAD;
	uint64_t end;

	if (s->sparse)
		pen__buf_put(&d->out.places, d->all.places.p + at * 4, n * 4);
	pen__buf_put(&d->out.values, d->all.values.p + at * d->item,
		     n * d->item);
	end = d->out.values.n / d->item;
	pen__buf_put(&d->out_start, &end, sizeof(end));
	for (uint32_t k = 0; k < ncolumns(s); k++) {
		const size_t size = width_of(s, k);

		pen__buf_put(&d->column[k], p, size);
		p += size;
	}
}

int pen__deal_take(struct pen_deal *d, struct pen_cells_rows *r,
		   struct pen_err *err)
{
	const uint32_t n = ncolumns(d->spec);
	const uint64_t zero = 0;
	bool bad;
	int rc = 0;

	*r = (struct pen_cells_rows){ 0 };
	while (rc >= 0 && (!d->open || d->given == d->bucket[d->open - 1].n)) {
		if (d->open == d->nbuckets)
			return 0;
		rc = open_bucket(d, err);
	}
	if (rc < 0)
		return rc;
	empty_rows(&d->out);
	d->out_start.n = 0;
	pen__buf_put(&d->out_start, &zero, sizeof(zero));
	for (uint32_t k = 0; k < n; k++)
		d->column[k].n = 0;
	for (; r->n < ROWS && d->given < d->bucket[d->open - 1].n; r->n++)
		give_row(d, d->order[d->given++]);
	bad = bad_rows(&d->out) || d->out_start.bad;
	for (uint32_t k = 0; k < n; k++) {
		bad |= d->column[k].bad;
		d->pointer[k] = d->column[k].p;
	}
	r->start = (const uint64_t *)(void *)d->out_start.p;
	r->indices = (const uint32_t *)(void *)d->out.places.p;
	r->values = d->out.values.p;
	r->obs = d->pointer;
	r->dense = d->pointer + d->spec->nobs;
	return bad ? nomem(d, d->out.values.n, err) : 0;
}

/* ---- open and close ---- */

static int make_buckets(struct pen_deal *d, uint64_t memory,
			struct pen_err *err)
{
	const struct pen_cells_spec *s = d->spec;
	const uint64_t nnz = s->sparse ? s->nnz : s->nrows * s->ncols;
	const uint64_t all = nnz * (d->item + (s->sparse ? 4 : 0)) +
			     s->nrows * (d->record + 16);
	const uint64_t half = memory / 2 > LEAST ? memory / 2 : LEAST;

	d->nbuckets = all / half + 1;
	if (d->nbuckets > BUCKETS)
		return pen__fail(err, PEN_EINVAL, "memory",
				 "%" PRIu64 " MB are too few to shuffle "
				 "%" PRIu64 " MB; give at least %" PRIu64 "MB",
				 memory >> 20, all >> 20,
				 (all / BUCKETS * 2 >> 20) + 1);
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

		/* no product that is too large: nbuckets is small */
		b->first = s->nrows / d->nbuckets * i +
			   s->nrows % d->nbuckets * i / d->nbuckets;
		if (i)
			b[-1].n = b->first - b[-1].first;
		b->n = s->nrows - b->first;
	}
	return 0;
}

int pen__deal_new(struct pen_deal **out, const struct pen_deal_setup *setup,
		  struct pen_err *err)
{
	const struct pen_cells_spec *s = setup->spec;
	struct pen_deal *d = pen__calloc(1, sizeof(*d));
	int rc = 0;

	*out = NULL;
	if (!d)
		return pen__fail_nomem(err, setup->beside, sizeof(*d));
	d->fd = -1;
	d->spec = s;
	d->item = pen_dtype_size(s->dtype);
	d->record = HEAD;
	for (uint32_t i = 0; i < ncolumns(s); i++)
		d->record += width_of(s, i);
	d->path = pen__strdup(setup->beside);
	d->column = pen__calloc(ncolumns(s) + 1, sizeof(*d->column));
	d->pointer = pen__calloc(ncolumns(s) + 1, sizeof(*d->pointer));
	if (!d->path || !d->column || !d->pointer)
		rc = nomem(d, sizeof(*d->column), err);
	if (rc >= 0)
		rc = make_buckets(d, setup->memory, err);
	if (rc < 0) {
		pen__deal_free(d);
		return rc;
	}
	if (s->nrows)
		pen__deal_order(&d->perm, s->nrows, setup->seed);
	*out = d;
	return 0;
}

void pen__deal_free(struct pen_deal *d)
{
	if (!d)
		return;
	if (d->fd >= 0)
		close(d->fd);
	for (uint64_t i = 0; d->bucket && i < d->nbuckets; i++) {
		free_rows(&d->bucket[i].waiting);
		pen__buf_fini(&d->bucket[i].blocks);
	}
	for (uint32_t i = 0; d->column && i < ncolumns(d->spec); i++)
		pen__buf_fini(&d->column[i]);
	free_rows(&d->all);
	free_rows(&d->out);
	pen__buf_fini(&d->out_start);
	pen__buf_fini(&d->packed);
	pen__scratch_fini(&d->scratch);
	pen__free(d->start);
	pen__free(d->order);
	pen__free(d->column);
	pen__free(d->pointer);
	pen__free(d->bucket);
	pen__free(d->path);
	pen__free(d);
}

uint64_t pen__deal_nbuckets(const struct pen_deal *d)
{
	return d->nbuckets;
}

uint64_t pen__deal_bytes(const struct pen_deal *d)
{
	return d->at;
}
