/*
 * Writes the packed layout in one pass: a chunk is written when its rows are
 * complete (packed_chunks.c), a piece of a column when it is full. Only their
 * locations are kept until the end, 16 bytes each, so memory grows by half a
 * byte per cell.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

#include "base/mem.h"
#include "codec/cellpack.h"
#include "codec/crc32c.h"
#include "format/cells/packed.h"
#include "format/cells/packed_write.h"

#define FLUSH ((size_t)1 << 20)
/* Values per chunk unless rows= is set: enough to pack well, few enough to
 * read a single row. */
#define CHUNK 32768u

#define OFF(x) offsetof(struct pen_pk, x)
static const struct pen_opt opts[] = {
	{ .name = "rows",
	  .type = PEN_OPT_COUNT,
	  .off = OFF(rows),
	  .dflt = "0",
	  .min = 0,
	  .max = 65536,
	  .help = "cells per chunk (0: as many as have 32,768 values)" },
	{ .name = "threads",
	  .type = PEN_OPT_INT,
	  .off = OFF(threads),
	  .dflt = "0",
	  .min = 0,
	  .max = 256,
	  .help = "packing threads (0: one per CPU); the file does not depend "
		  "on it" },
	{ .name = "shuffle_seed",
	  .type = PEN_OPT_STR,
	  .off = OFF(seed),
	  .help = "record in the file the seed its cells were shuffled with" },
	{ .name = "source",
	  .type = PEN_OPT_STR,
	  .off = OFF(source),
	  .help = "record in the file the source of its cells" },
	{ .name = NULL },
};

/* Features that older readers do not know make the file version 2. */
static unsigned version_of(const struct pen_cells_spec *s)
{
	bool later = s->ncsr > 0;

	for (uint32_t i = 0; i < s->nobs; i++)
		later |= s->obs[i].mask;
	for (uint32_t i = 0; i < s->nvar; i++)
		later |= s->var[i].mask;
	return later ? 2 : 1;
}

/* ---- bytes ---- */

int pen__pk_flush(struct pen_cells_writer *w, bool all, struct pen_err *err)
{
	struct pen_pk *p = w->priv;
	size_t done = 0;

	if (p->out.bad)
		return pen__fail_nomem(err, w->path, p->out.n);
	if (!all && p->out.n < FLUSH)
		return 0;
	while (done < p->out.n) {
		const ssize_t n =
			write(p->fd, p->out.p + done, p->out.n - done);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return pen__fail_sys(err, n ? errno : ENOSPC, w->path,
					     "cannot write");
		done += (size_t)n;
	}
	p->at += p->out.n;
	p->out.n = 0;
	return 0;
}

/* Records the bytes since `from` as a piece. */
static int end_piece(struct pen_cells_writer *w, size_t from,
		     struct pen_buf *pieces, struct pen_err *err)
{
	struct pen_pk *p = w->priv;

	pen__buf_le(pieces, p->at + from, 8);
	pen__buf_le(pieces, p->out.n - from, 4);
	if (pieces->bad || p->out.bad)
		return pen__fail_nomem(err, w->path, p->out.n);
	return pen__pk_flush(w, false, err);
}

/* ---- columns ---- */

static int put_piece(struct pen_cells_writer *w, struct pen_pk_column *c,
		     const void *values, uint32_t n, struct pen_err *err)
{
	struct pen_pk *p = w->priv;
	const size_t from = p->out.n;

	pen__numbers_pack(NULL, c->dtype, values, n, &p->out, NULL);
	c->n += n;
	return end_piece(w, from, &c->pieces, err);
}

static uint32_t piece_of(const struct pen_pk_column *c)
{
	return c->dtype == PEN_U8 ? PEN_PACKED_BYTES : PEN_PACKED_PIECE;
}

static int end_column(struct pen_cells_writer *w, struct pen_pk_column *c,
		      struct pen_err *err)
{
	const size_t n = c->pending.n / c->item;

	return n ? put_piece(w, c, c->pending.p, (uint32_t)n, err) : 0;
}

static int put_column(struct pen_cells_writer *w, struct pen_pk_column *c,
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

static struct pen_pk_column column_of(enum pen_dtype t)
{
	return (struct pen_pk_column){ .dtype = t, .item = pen_dtype_size(t) };
}

static struct pen_pk_column column_for(const struct pen_cells_column_spec *s)
{
	struct pen_pk_column c = column_of(s->coded ? PEN_I32 : s->dtype);

	if (s->coded && s->index && !s->names)
		c = column_of(PEN_U8);
	c.text = c.dtype == PEN_U8 && s->coded;
	return c;
}

static void free_column(struct pen_pk_column *c)
{
	pen__buf_fini(&c->pending);
	pen__buf_fini(&c->pieces);
}

/* ---- rows ---- */

/* Rows of a dense matrix other than X, not packed. */
static int put_dense(struct pen_cells_writer *w, struct pen_pk_column *c,
		     const uint8_t *rows, uint64_t n, struct pen_err *err)
{
	struct pen_pk *p = w->priv;
	const uint64_t group = p->matrix[0].group;
	int rc = 0;

	while (rc >= 0 && n) {
		const uint64_t room = group - c->pending.n / c->item;
		const uint64_t k = n < room ? n : room;
		const size_t from = p->out.n;

		pen__buf_put(&c->pending, rows, k * c->item);
		if (c->pending.bad)
			return pen__fail_nomem(err, w->path, c->pending.n);
		rows += k * c->item;
		n -= k;
		if (c->pending.n < group * c->item)
			break;
		pen__buf_put(&p->out, c->pending.p, c->pending.n);
		c->pending.n = 0;
		rc = end_piece(w, from, &c->pieces, err);
	}
	return rc;
}

/* Row names, in order. */
static int put_texts(struct pen_cells_writer *w, struct pen_pk_column *c,
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

static int put_values(struct pen_cells_writer *w, struct pen_pk_column *c,
		      const void *values, uint64_t n, struct pen_err *err)
{
	return c->text ? put_texts(w, c, values, n, err)
		       : put_column(w, c, values, n, err);
}

/* Everything of row i except its values. */
static int put_row(struct pen_cells_writer *w, const struct pen_cells_rows *r,
		   uint64_t i, struct pen_err *err)
{
	struct pen_pk *p = w->priv;
	int rc = 0;

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

/* The values of row i in one matrix. */
static int put_lists(struct pen_cells_writer *w, struct pen_pk_matrix *m,
		     const struct pen_cells_lists *l, uint64_t i,
		     struct pen_err *err)
{
	const uint32_t len =
		(uint32_t)(pen__pk_start(m, l, i + 1) - pen__pk_start(m, l, i));
	int rc = 0;

	if (m->sparse)
		rc = put_column(w, &m->lengths, (const uint8_t *)&len, 1, err);
	return rc < 0 ? rc : pen__pk_add(w, m, l, i, 1, err);
}

/* Row by row, so that the file does not depend on the number of rows per
 * call. */
static int packed_rows(struct pen_cells_writer *w,
		       const struct pen_cells_rows *r, struct pen_err *err)
{
	const struct pen_cells_lists x = { r->start, r->indices, r->values };
	struct pen_pk *p = w->priv;
	int rc = 0;

	for (uint64_t i = 0; rc >= 0 && i < r->n; i++) {
		rc = put_row(w, r, i, err);
		if (rc >= 0)
			rc = put_lists(w, &p->matrix[0], &x, i, err);
		for (uint32_t k = 0; rc >= 0 && k < w->spec->ncsr; k++)
			rc = put_lists(w, &p->matrix[k + 1], &r->csr[k], i,
				       err);
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

static void put_table(struct pen_buf *b, const struct pen_pk_column *c)
{
	pen__buf_le(b, c->dtype, 1);
	pen__buf_le(b, c->n, 8);
	pen__buf_le(b, piece_of(c), 4);
	put_pieces(b, &c->pieces, 12);
}

/* Writes the names of a column as a table of bytes. */
static int put_names(struct pen_cells_writer *w,
		     const struct pen_cells_column_spec *s, struct pen_buf *dir,
		     struct pen_err *err)
{
	struct pen_pk_column c = column_of(PEN_U8);
	int rc = put_texts(w, &c, s->names, s->nnames, err);

	if (rc >= 0)
		rc = end_column(w, &c, err);
	put_table(dir, &c);
	free_column(&c);
	return rc;
}

static int put_column_entry(struct pen_cells_writer *w,
			    const struct pen_cells_column_spec *s,
			    struct pen_pk_column *c, uint64_t n,
			    struct pen_buf *dir, struct pen_err *err)
{
	const unsigned flags =
		(s->coded && !c->text ? PEN_PACKED_CODED : 0u) |
		(s->coded && s->index ? PEN_PACKED_INDEX : 0u) |
		(s->coded && s->ordered ? PEN_PACKED_ORDERED : 0u) |
		(s->mask ? PEN_PACKED_MASK : 0u) |
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
	struct pen_pk *p = w->priv;
	int rc = 0;

	pen__buf_le(dir, s->nobs, 4);
	pen__buf_le(dir, s->nvar, 4);
	for (uint32_t i = 0; rc >= 0 && i < s->nobs; i++)
		rc = put_column_entry(w, &s->obs[i], &p->obs[i], s->nrows, dir,
				      err);
	for (uint32_t i = 0; rc >= 0 && i < s->nvar; i++) {
		struct pen_pk_column c = column_for(&s->var[i]);

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
	struct pen_pk *p = w->priv;
	int rc = 0;

	pen__buf_le(dir, s->ndense, 4);
	for (uint32_t i = 0; rc >= 0 && i < s->ndense; i++) {
		struct pen_pk_column *c = &p->dense[i];
		const size_t from = p->out.n;

		if (c->pending.n) {
			pen__buf_put(&p->out, c->pending.p, c->pending.n);
			rc = end_piece(w, from, &c->pieces, err);
		}
		put_str(dir, s->dense[i].path);
		pen__buf_le(dir, s->dense[i].dtype, 1);
		pen__buf_le(dir, s->dense[i].ncols, 8);
		pen__buf_le(dir, p->matrix[0].group, 4);
		put_pieces(dir, &c->pieces, 12);
	}
	return rc;
}

/* Everything about a chunked matrix except its size. */
static int put_chunks(struct pen_cells_writer *w, struct pen_pk_matrix *m,
		      struct pen_buf *dir, struct pen_err *err)
{
	int rc = m->sparse ? end_column(w, &m->lengths, err) : 0;

	pen__buf_le(dir, m->sparse, 1);
	pen__buf_le(dir, m->dtype, 1);
	pen__buf_le(dir, m->indices, 1);
	pen__buf_le(dir,
		    m->top <= UINT8_MAX	   ? 1
		    : m->top <= UINT16_MAX ? 2
					   : 0,
		    1);
	pen__buf_le(dir, m->group, 4);
	put_pieces(dir, &m->chunks, 16);
	if (m->sparse)
		put_table(dir, &m->lengths);
	return rc;
}

/* Sparse matrices other than X, in version 2 only. */
static int put_csr(struct pen_cells_writer *w, struct pen_buf *dir,
		   struct pen_err *err)
{
	struct pen_pk *p = w->priv;
	int rc = 0;

	pen__buf_le(dir, w->spec->ncsr, 4);
	for (uint32_t i = 0; rc >= 0 && i < w->spec->ncsr; i++) {
		struct pen_pk_matrix *m = &p->matrix[i + 1];

		put_str(dir, m->path);
		pen__buf_le(dir, m->ncols, 8);
		pen__buf_le(dir, m->nnz, 8);
		rc = put_chunks(w, m, dir, err);
	}
	return rc;
}

static void put_meta(const struct pen_pk *p, struct pen_buf *dir)
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
	struct pen_pk *p = w->priv;
	int rc;

	pen__buf_le(dir, s->nrows, 8);
	pen__buf_le(dir, s->ncols, 8);
	pen__buf_le(dir, s->sparse ? w->nnz : s->nrows * s->ncols, 8);
	rc = put_chunks(w, &p->matrix[0], dir, err);
	if (rc < 0)
		return rc;
	put_meta(p, dir);
	rc = put_columns(w, dir, err);
	if (rc >= 0)
		rc = put_matrices(w, dir, err);
	if (rc >= 0 && version_of(s) > 1)
		rc = put_csr(w, dir, err);
	if (rc >= 0 && dir->bad)
		rc = pen__fail_nomem(err, w->path, dir->n);
	return rc;
}

static void put_foot(struct pen_pk *p, const struct pen_buf *dir)
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
	struct pen_pk *p = w->priv;
	struct pen_buf dir = { 0 };
	int rc = pen__pk_end(w, err);

	if (rc >= 0)
		rc = put_directory(w, &dir, err);
	if (rc >= 0) {
		put_foot(p, &dir);
		rc = pen__pk_flush(w, true, err);
	}
	pen__buf_fini(&dir);
	return rc;
}

/* ---- open and close ---- */

/* A power of two, so that shuffle blocks of a power of two align with
 * chunks. */
static uint32_t choose_group(const struct pen_pk *p, uint64_t nrows,
			     uint64_t nnz)
{
	const uint64_t row = nrows ? nnz / nrows + 1 : 1;
	uint32_t group = 1;

	if (p->rows)
		return (uint32_t)p->rows;
	while (group < 1024 && (uint64_t)group * 2 * row <= CHUNK + CHUNK / 2)
		group *= 2;
	return group;
}

static void set_matrix(const struct pen_cells_writer *w,
		       struct pen_pk_matrix *m,
		       const struct pen_cells_csr_spec *s, bool sparse)
{
	*m = (struct pen_pk_matrix){ .path = s->path,
				     .dtype = s->dtype,
				     .indices = s->indices,
				     .sparse = sparse,
				     .ncols = s->ncols,
				     .nnz = s->nnz };
	m->lengths = column_of(PEN_U32);
	m->group = choose_group(w->priv, w->spec->nrows, s->nnz);
}

static int set_columns(struct pen_cells_writer *w, struct pen_err *err)
{
	const struct pen_cells_spec *s = w->spec;
	const struct pen_cells_csr_spec x = { "X", s->dtype, s->indices,
					      s->ncols,
					      s->sparse ? s->nnz
							: s->nrows * s->ncols };
	struct pen_pk *p = w->priv;

	p->obs = pen__calloc(s->nobs + 1, sizeof(*p->obs));
	p->dense = pen__calloc(s->ndense + 1, sizeof(*p->dense));
	p->matrix = pen__calloc((size_t)s->ncsr + 1, sizeof(*p->matrix));
	if (!p->obs || !p->dense || !p->matrix)
		return pen__fail_nomem(err, w->path, sizeof(*p->obs));
	for (uint32_t i = 0; i < s->nobs; i++)
		p->obs[i] = column_for(&s->obs[i]);
	for (uint32_t i = 0; i < s->ndense; i++) {
		p->dense[i] = column_of(s->dense[i].dtype);
		p->dense[i].item *= s->dense[i].ncols;
	}
	set_matrix(w, &p->matrix[0], &x, s->sparse);
	for (uint32_t i = 0; i < s->ncsr; i++)
		set_matrix(w, &p->matrix[i + 1], &s->csr[i], true);
	return 0;
}

static int packed_open(struct pen_cells_writer *w, struct pen_err *err)
{
	struct pen_pk *p = w->priv;
	uint8_t head[PEN_PACKED_HEAD] = { 0 };
	int rc;

	p->fd = -1;
	rc = set_columns(w, err);
	if (!rc)
		rc = pen__pk_team(w, err);
	if (rc)
		return rc;
	p->fd = open(w->tmp, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
	if (p->fd < 0)
		return pen__fail_sys(err, errno, w->path, "cannot write");
	memcpy(head, pen__packed_magic, sizeof(pen__packed_magic));
	head[8] = (uint8_t)version_of(w->spec);
	pen__buf_put(&p->out, head, sizeof(head));
	return p->out.bad ? pen__fail_nomem(err, w->path, sizeof(head)) : 0;
}

static void packed_close(struct pen_cells_writer *w)
{
	struct pen_pk *p = w->priv;

	pen__pk_disband(w);
	if (p->fd >= 0)
		close(p->fd);
	for (uint32_t i = 0; p->obs && i < w->spec->nobs; i++)
		free_column(&p->obs[i]);
	for (uint32_t i = 0; p->dense && i < w->spec->ndense; i++)
		free_column(&p->dense[i]);
	for (uint32_t i = 0; p->matrix && i <= w->spec->ncsr; i++) {
		struct pen_pk_matrix *m = &p->matrix[i];

		free_column(&m->lengths);
		pen__buf_fini(&m->chunks);
		pen__buf_fini(&m->places);
		pen__buf_fini(&m->values);
		pen__buf_fini(&m->starts);
	}
	pen__buf_fini(&p->out);
	pen__free(p->obs);
	pen__free(p->dense);
	pen__free(p->matrix);
}

const struct pen_cells_writer_ops pen__cells_packed_write = {
	.name = "packed",
	.help = "layout for fast loading: half the size of gzip, fast to "
		"unpack",
	.suffix = ".pen",
	.opts = opts,
	.priv_size = sizeof(struct pen_pk),
	.open = packed_open,
	.rows = packed_rows,
	.finish = packed_finish,
	.close = packed_close,
};
