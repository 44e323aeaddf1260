/*
 * Writing the packed layout, in one pass: a chunk goes out when its rows are
 * there, a piece of a column when it is full, and what is kept until the end
 * is where they are, 16 bytes each. So memory grows by half a byte a cell.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

#include "base/mem.h"
#include "codec/cellpack.h"
#include "codec/crc32c.h"
#include "format/cells_write.h"
#include "format/packed.h"

#define FLUSH ((size_t)1 << 20)
/* Numbers that a chunk should have, where rows= does not say: enough for
 * packing, few enough for a row that is read alone. */
#define CHUNK 32768u

/* Elements on their way into pieces. */
struct column {
	enum pen_dtype dtype;
	size_t item;
	bool text;		/* names of rows, and their lengths */
	uint64_t n;		/* elements so far */
	struct pen_buf pending; /* less than a piece */
	struct pen_buf pieces;	/* where those are that were written */
};

struct packed {
	/* options */
	uint64_t rows;
	char *seed, *source;
	/* from open() on */
	int fd;
	uint64_t at; /* bytes written or about to be */
	struct pen_buf out;
	uint32_t group;
	uint64_t top;	       /* the largest number, see pen__numbers_pack() */
	struct pen_buf chunks; /* where they are */
	/* rows of the next chunk; starts: 4 bytes each */
	struct pen_buf places, values, starts;
	struct column lengths, *obs, *dense;
};

#define OFF(x) offsetof(struct packed, x)
static const struct pen_opt opts[] = {
	{ .name = "rows",
	  .type = PEN_OPT_COUNT,
	  .off = OFF(rows),
	  .dflt = "0",
	  .min = 0,
	  .max = 65536,
	  .help = "cells packed together, in one chunk; 0: as many as have "
		  "32,768 numbers" },
	{ .name = "shuffle_seed",
	  .type = PEN_OPT_STR,
	  .off = OFF(seed),
	  .help = "noted in the file: the seed its cells were shuffled with" },
	{ .name = "source",
	  .type = PEN_OPT_STR,
	  .off = OFF(source),
	  .help = "noted in the file: where its cells come from" },
	{ .name = NULL },
};

/* ---- bytes ---- */

static int flush(struct pen_cells_writer *w, struct pen_err *err)
{
	struct packed *p = w->priv;
	size_t done = 0;

	if (p->out.bad)
		return pen__fail_nomem(err, w->path, p->out.n);
	while (done < p->out.n) {
		const ssize_t n =
			write(p->fd, p->out.p + done, p->out.n - done);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return pen__fail_sys(err, n ? errno : ENOSPC, w->path,
					     "cannot be written");
		done += (size_t)n;
	}
	p->at += p->out.n;
	p->out.n = 0;
	return 0;
}

/* Notes that what was put since `from` is a piece; of a chunk, its places and
 * its numbers. */
static int end_chunk(struct pen_cells_writer *w, size_t from, size_t numbers,
		     struct pen_err *err)
{
	struct packed *p = w->priv;

	pen__buf_le(&p->chunks, p->at + from, 8);
	pen__buf_le(&p->chunks, numbers - from, 4);
	pen__buf_le(&p->chunks, p->out.n - numbers, 4);
	if (p->chunks.bad || p->out.bad)
		return pen__fail_nomem(err, w->path, p->out.n);
	return p->out.n >= FLUSH ? flush(w, err) : 0;
}

static int end_piece(struct pen_cells_writer *w, size_t from,
		     struct pen_buf *pieces, struct pen_err *err)
{
	struct packed *p = w->priv;

	pen__buf_le(pieces, p->at + from, 8);
	pen__buf_le(pieces, p->out.n - from, 4);
	if (pieces->bad || p->out.bad)
		return pen__fail_nomem(err, w->path, p->out.n);
	return p->out.n >= FLUSH ? flush(w, err) : 0;
}

/* ---- columns ---- */

static int put_piece(struct pen_cells_writer *w, struct column *c,
		     const void *values, uint32_t n, struct pen_err *err)
{
	struct packed *p = w->priv;
	const size_t from = p->out.n;

	pen__numbers_pack(NULL, c->dtype, values, n, &p->out, NULL);
	c->n += n;
	return end_piece(w, from, &c->pieces, err);
}

static uint32_t piece_of(const struct column *c)
{
	return c->dtype == PEN_U8 ? PEN_PACKED_BYTES : PEN_PACKED_PIECE;
}

static int end_column(struct pen_cells_writer *w, struct column *c,
		      struct pen_err *err)
{
	const size_t n = c->pending.n / c->item;

	return n ? put_piece(w, c, c->pending.p, (uint32_t)n, err) : 0;
}

static int put_column(struct pen_cells_writer *w, struct column *c,
		      const uint8_t *values, uint64_t n, struct pen_err *err)
{
	const size_t full = (size_t)piece_of(c) * c->item;
	size_t left = (size_t)n * c->item;
	int rc = 0;

	while (rc >= 0 && left) {
		const size_t room = full - c->pending.n;
		const size_t k = left < room ? left : room;

		pen__buf_put(&c->pending, values, k);
		if (c->pending.bad)
			return pen__fail_nomem(err, w->path, full);
		values += k;
		left -= k;
		if (c->pending.n < full)
			break;
		rc = end_column(w, c, err);
		c->pending.n = 0;
	}
	return rc;
}

static struct column column_of(enum pen_dtype t)
{
	return (struct column){ .dtype = t, .item = pen_dtype_size(t) };
}

static struct column column_for(const struct pen_cells_column_spec *s)
{
	struct column c = column_of(s->coded ? PEN_I32 : s->dtype);

	if (s->coded && s->index && !s->names)
		c = column_of(PEN_U8);
	c.text = c.dtype == PEN_U8 && s->coded;
	return c;
}

static void free_column(struct column *c)
{
	pen__buf_fini(&c->pending);
	pen__buf_fini(&c->pieces);
}

/* ---- rows ---- */

static uint64_t waiting(const struct packed *p)
{
	return p->starts.n ? p->starts.n / 4 - 1 : 0;
}

static int put_chunk(struct pen_cells_writer *w, struct pen_err *err)
{
	struct packed *p = w->priv;
	const enum pen_dtype t = w->spec->dtype;
	const uint32_t n = (uint32_t)(p->values.n / pen_dtype_size(t));
	const struct pen_cellrows rows = { p->starts.p, 4,
					   (uint32_t)waiting(p) };
	const size_t from = p->out.n;
	size_t numbers;
	uint64_t top;

	if (w->spec->sparse)
		pen__places_pack(&rows, (const uint32_t *)(void *)p->places.p,
				 n, &p->out);
	numbers = p->out.n;
	pen__numbers_pack(w->spec->sparse ? &rows : NULL, t, p->values.p, n,
			  &p->out, &top);
	p->top = top > p->top ? top : p->top;
	p->places.n = p->values.n = p->starts.n = 0;
	return end_chunk(w, from, numbers, err);
}

/* Rows of a matrix beside X: as they are. */
static int put_dense(struct pen_cells_writer *w, struct column *c,
		     const uint8_t *rows, uint64_t n, struct pen_err *err)
{
	struct packed *p = w->priv;
	int rc = 0;

	while (rc >= 0 && n) {
		const uint64_t room = p->group - c->pending.n / c->item;
		const uint64_t k = n < room ? n : room;
		const size_t from = p->out.n;

		pen__buf_put(&c->pending, rows, k * c->item);
		if (c->pending.bad)
			return pen__fail_nomem(err, w->path, c->pending.n);
		rows += k * c->item;
		n -= k;
		if (c->pending.n < p->group * c->item)
			break;
		pen__buf_put(&p->out, c->pending.p, c->pending.n);
		c->pending.n = 0;
		rc = end_piece(w, from, &c->pieces, err);
	}
	return rc;
}

/* Where row k begins among the numbers of r. */
static uint64_t start_of(const struct pen_cells_writer *w,
			 const struct pen_cells_rows *r, uint64_t k)
{
	return w->spec->sparse ? r->start[k] : k * w->spec->ncols;
}

/* Rows [i, i + n) of r join the next chunk. */
static int add_rows(struct pen_cells_writer *w, const struct pen_cells_rows *r,
		    uint64_t i, uint64_t n, struct pen_err *err)
{
	struct packed *p = w->priv;
	const size_t item = pen_dtype_size(w->spec->dtype);
	const uint64_t first = start_of(w, r, i);
	const uint64_t count = start_of(w, r, i + n) - first;
	const uint64_t before = p->values.n / item;

	if (before + count > PEN_PACKED_MOST)
		return pen__fail(err, PEN_ENOTSUP, w->path,
				 "%" PRIu32 " cells have more than %" PRIu64
				 " numbers; pack fewer together with rows=",
				 p->group, PEN_PACKED_MOST);
	pen__buf_put(&p->values, (const uint8_t *)r->values + first * item,
		     count * item);
	if (w->spec->sparse)
		pen__buf_put(&p->places, r->indices + first, count * 4);
	if (!p->starts.n)
		pen__buf_le(&p->starts, 0, 4);
	for (uint64_t k = i + 1; k <= i + n; k++)
		pen__buf_le(&p->starts, before + start_of(w, r, k) - first, 4);
	if (p->values.bad || p->places.bad || p->starts.bad)
		return pen__fail_nomem(err, w->path, p->values.n);
	return waiting(p) == p->group ? put_chunk(w, err) : 0;
}

/* Names of rows, as they come. */
static int put_texts(struct pen_cells_writer *w, struct column *c,
		     const char *const *text, uint64_t n, struct pen_err *err)
{
	int rc = 0;

	for (uint64_t i = 0; rc >= 0 && i < n; i++) {
		const uint32_t len = (uint32_t)strlen(text[i]);

		rc = put_column(w, c, (const uint8_t *)&len, 4, err);
		if (rc >= 0)
			rc = put_column(w, c, (const uint8_t *)text[i], len,
					err);
	}
	return rc;
}

static int put_values(struct pen_cells_writer *w, struct column *c,
		      const void *values, uint64_t n, struct pen_err *err)
{
	return c->text ? put_texts(w, c, values, n, err)
		       : put_column(w, c, values, n, err);
}

/* All of row i but its numbers. */
static int put_row(struct pen_cells_writer *w, const struct pen_cells_rows *r,
		   uint64_t i, struct pen_err *err)
{
	const uint32_t len =
		(uint32_t)(start_of(w, r, i + 1) - start_of(w, r, i));
	struct packed *p = w->priv;
	int rc = 0;

	if (w->spec->sparse)
		rc = put_column(w, &p->lengths, (const uint8_t *)&len, 1, err);
	for (uint32_t k = 0; rc >= 0 && k < w->spec->nobs; k++) {
		const size_t size = p->obs[k].text ? sizeof(char *)
						   : p->obs[k].item;

		rc = put_values(w, &p->obs[k],
				(const uint8_t *)r->obs[k] + i * size, 1, err);
	}
	for (uint32_t k = 0; rc >= 0 && k < w->spec->ndense; k++)
		rc = put_dense(w, &p->dense[k],
			       (const uint8_t *)r->dense[k] +
				       i * p->dense[k].item,
			       1, err);
	return rc;
}

/* Row by row, so that the file does not depend on how many come at a time. */
static int packed_rows(struct pen_cells_writer *w,
		       const struct pen_cells_rows *r, struct pen_err *err)
{
	struct packed *p = w->priv;
	uint64_t i = 0;
	int rc = 0;

	while (rc >= 0 && i < r->n) {
		const uint64_t room = p->group - waiting(p);
		const uint64_t n = r->n - i < room ? r->n - i : room;

		for (uint64_t k = i; rc >= 0 && k < i + n; k++)
			rc = put_row(w, r, k, err);
		if (rc >= 0)
			rc = add_rows(w, r, i, n, err);
		i += n;
	}
	return rc;
}

/* ---- the directory ---- */

static void put_str(struct pen_buf *b, const char *s)
{
	pen__buf_le(b, strlen(s), 4);
	pen__buf_str(b, s);
}

static void put_pieces(struct pen_buf *b, const struct pen_buf *pieces,
		       unsigned step)
{
	pen__buf_le(b, pieces->n / step, 8);
	pen__buf_put(b, pieces->p, pieces->n);
}

static void put_table(struct pen_buf *b, const struct column *c)
{
	pen__buf_le(b, c->dtype, 1);
	pen__buf_le(b, c->n, 8);
	pen__buf_le(b, piece_of(c), 4);
	put_pieces(b, &c->pieces, 12);
}

/* The names of a column become a table of their bytes. */
static int put_names(struct pen_cells_writer *w,
		     const struct pen_cells_column_spec *s, struct pen_buf *dir,
		     struct pen_err *err)
{
	struct column c = column_of(PEN_U8);
	int rc = put_texts(w, &c, s->names, s->nnames, err);

	if (rc >= 0)
		rc = end_column(w, &c, err);
	put_table(dir, &c);
	free_column(&c);
	return rc;
}

static int put_column_entry(struct pen_cells_writer *w,
			    const struct pen_cells_column_spec *s,
			    struct column *c, uint64_t n, struct pen_buf *dir,
			    struct pen_err *err)
{
	const unsigned flags =
		(s->coded && !c->text ? PEN_PACKED_CODED : 0u) |
		(s->coded && s->index ? PEN_PACKED_INDEX : 0u) |
		(s->coded && s->ordered ? PEN_PACKED_ORDERED : 0u) |
		(c->text ? PEN_PACKED_TEXT : 0u);
	int rc = 0;

	put_str(dir, s->name);
	pen__buf_le(dir, flags, 1);
	pen__buf_le(dir, c->text ? n : s->coded ? s->nnames : 0, 4);
	if (flags & PEN_PACKED_CODED)
		rc = put_names(w, s, dir, err);
	if (rc >= 0)
		rc = end_column(w, c, err);
	put_table(dir, c);
	return rc;
}

static int put_columns(struct pen_cells_writer *w, struct pen_buf *dir,
		       struct pen_err *err)
{
	const struct pen_cells_spec *s = w->spec;
	struct packed *p = w->priv;
	int rc = 0;

	pen__buf_le(dir, s->nobs, 4);
	pen__buf_le(dir, s->nvar, 4);
	for (uint32_t i = 0; rc >= 0 && i < s->nobs; i++)
		rc = put_column_entry(w, &s->obs[i], &p->obs[i], s->nrows, dir,
				      err);
	for (uint32_t i = 0; rc >= 0 && i < s->nvar; i++) {
		struct column c = column_for(&s->var[i]);

		rc = put_values(w, &c, s->var_values[i], s->ncols, err);
		if (rc >= 0)
			rc = put_column_entry(w, &s->var[i], &c, s->ncols, dir,
					      err);
		free_column(&c);
	}
	return rc;
}

static int put_matrices(struct pen_cells_writer *w, struct pen_buf *dir,
			struct pen_err *err)
{
	const struct pen_cells_spec *s = w->spec;
	struct packed *p = w->priv;
	int rc = 0;

	pen__buf_le(dir, s->ndense, 4);
	for (uint32_t i = 0; rc >= 0 && i < s->ndense; i++) {
		struct column *c = &p->dense[i];
		const size_t from = p->out.n;

		if (c->pending.n) {
			pen__buf_put(&p->out, c->pending.p, c->pending.n);
			rc = end_piece(w, from, &c->pieces, err);
		}
		put_str(dir, s->dense[i].path);
		pen__buf_le(dir, s->dense[i].dtype, 1);
		pen__buf_le(dir, s->dense[i].ncols, 8);
		pen__buf_le(dir, p->group, 4);
		put_pieces(dir, &c->pieces, 12);
	}
	return rc;
}

static void put_meta(const struct packed *p, struct pen_buf *dir)
{
	const char *const pair[][2] = {
		{ "writer", "penstock " PEN_VERSION },
		{ "source", p->source },
		{ "shuffle_seed", p->seed },
	};
	uint32_t n = 0;

	for (int i = 0; i < 3; i++)
		n += pair[i][1] != NULL;
	pen__buf_le(dir, n, 4);
	for (int i = 0; i < 3; i++) {
		if (!pair[i][1])
			continue;
		put_str(dir, pair[i][0]);
		put_str(dir, pair[i][1]);
	}
}

static int put_directory(struct pen_cells_writer *w, struct pen_buf *dir,
			 struct pen_err *err)
{
	const struct pen_cells_spec *s = w->spec;
	struct packed *p = w->priv;
	int rc = s->sparse ? end_column(w, &p->lengths, err) : 0;

	if (rc < 0)
		return rc;
	pen__buf_le(dir, s->nrows, 8);
	pen__buf_le(dir, s->ncols, 8);
	pen__buf_le(dir, s->sparse ? w->nnz : s->nrows * s->ncols, 8);
	pen__buf_le(dir, s->sparse, 1);
	pen__buf_le(dir, s->dtype, 1);
	pen__buf_le(dir, s->indices, 1);
	pen__buf_le(dir,
		    p->top <= UINT8_MAX	   ? 1
		    : p->top <= UINT16_MAX ? 2
					   : 0,
		    1);
	pen__buf_le(dir, p->group, 4);
	put_pieces(dir, &p->chunks, 16);
	if (s->sparse)
		put_table(dir, &p->lengths);
	put_meta(p, dir);
	rc = put_columns(w, dir, err);
	if (rc >= 0)
		rc = put_matrices(w, dir, err);
	if (rc >= 0 && dir->bad)
		rc = pen__fail_nomem(err, w->path, dir->n);
	return rc;
}

static void put_foot(struct packed *p, const struct pen_buf *dir)
{
	const uint64_t at = p->at + p->out.n;

	pen__buf_put(&p->out, dir->p, dir->n);
	pen__buf_le(&p->out, at, 8);
	pen__buf_le(&p->out, dir->n, 8);
	pen__buf_le(&p->out, pen__crc32c(0, dir->p, dir->n), 4);
	pen__buf_le(&p->out, 0, 4);
	pen__buf_put(&p->out, pen__packed_magic, sizeof(pen__packed_magic));
}

static int packed_finish(struct pen_cells_writer *w, struct pen_err *err)
{
	struct packed *p = w->priv;
	struct pen_buf dir = { 0 };
	int rc = waiting(p) ? put_chunk(w, err) : 0;

	if (rc >= 0)
		rc = put_directory(w, &dir, err);
	if (rc >= 0) {
		put_foot(p, &dir);
		rc = flush(w, err);
	}
	pen__buf_fini(&dir);
	return rc;
}

/* ---- open and close ---- */

/* A power of two, so that shuffle blocks of one fall on chunks. */
static uint32_t choose_group(const struct packed *p,
			     const struct pen_cells_spec *s)
{
	const uint64_t nnz = s->sparse ? s->nnz : s->nrows * s->ncols;
	const uint64_t row = s->nrows ? nnz / s->nrows + 1 : 1;
	uint32_t group = 1;

	if (p->rows)
		return (uint32_t)p->rows;
	while (group < 1024 && (uint64_t)group * 2 * row <= CHUNK + CHUNK / 2)
		group *= 2;
	return group;
}

static int packed_open(struct pen_cells_writer *w, struct pen_err *err)
{
	const struct pen_cells_spec *s = w->spec;
	struct packed *p = w->priv;
	uint8_t head[PEN_PACKED_HEAD] = { 0 };

	p->fd = -1;
	p->group = choose_group(p, s);
	p->lengths = column_of(PEN_U32);
	p->obs = pen__calloc(s->nobs + 1, sizeof(*p->obs));
	p->dense = pen__calloc(s->ndense + 1, sizeof(*p->dense));
	if (!p->obs || !p->dense)
		return pen__fail_nomem(err, w->path, sizeof(*p->obs));
	for (uint32_t i = 0; i < s->nobs; i++)
		p->obs[i] = column_for(&s->obs[i]);
	for (uint32_t i = 0; i < s->ndense; i++) {
		p->dense[i] = column_of(s->dense[i].dtype);
		p->dense[i].item *= s->dense[i].ncols;
	}
	p->fd = open(w->tmp, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
	if (p->fd < 0)
		return pen__fail_sys(err, errno, w->path, "cannot be written");
	memcpy(head, pen__packed_magic, sizeof(pen__packed_magic));
	head[8] = PEN_PACKED_VERSION;
	pen__buf_put(&p->out, head, sizeof(head));
	return p->out.bad ? pen__fail_nomem(err, w->path, sizeof(head)) : 0;
}

static void packed_close(struct pen_cells_writer *w)
{
	struct packed *p = w->priv;

	if (p->fd >= 0)
		close(p->fd);
	for (uint32_t i = 0; p->obs && i < w->spec->nobs; i++)
		free_column(&p->obs[i]);
	for (uint32_t i = 0; p->dense && i < w->spec->ndense; i++)
		free_column(&p->dense[i]);
	free_column(&p->lengths);
	pen__buf_fini(&p->out);
	pen__buf_fini(&p->chunks);
	pen__buf_fini(&p->places);
	pen__buf_fini(&p->values);
	pen__buf_fini(&p->starts);
	pen__free(p->obs);
	pen__free(p->dense);
}

const struct pen_cells_writer_ops pen__cells_packed_write = {
	.name = "packed",
	.help = "the layout made for loading: half of gzip, fast to unpack",
	.suffix = ".pen",
	.opts = opts,
	.priv_size = sizeof(struct packed),
	.open = packed_open,
	.rows = packed_rows,
	.finish = packed_finish,
	.close = packed_close,
};
