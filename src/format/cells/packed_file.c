/*
 * The directory of a packed file and the tables it describes. Everything in it
 * is checked before memory is allocated: pieces are between the head and the
 * directory, their number fits their elements, and the declared size of a piece
 * is no more than its bytes can unpack to. Refuses files of a later version.
 */
#include <inttypes.h>
#include <stdio.h>

#include "base/mem.h"
#include "base/quote.h"
#include "codec/cellpack.h"
#include "codec/crc32c.h"
#include "format/cells/packed.h"

/* No packing method expands a byte to more. */
#define MOST_RATIO 1100u
#define MOST_COLUMNS 100000u

const uint8_t pen__packed_magic[8] = {
	'P', 'E', 'N', 'C', 0x0d, 0x0a, 0x1a, 0
};

/* State while the directory is read. */
struct reader {
	struct pen_packed *f;
	struct pen_bytes in;
	uint64_t end; /* where the directory starts */
	struct pen_err *err;
};

static int damaged(const struct reader *r, const char *what)
{
	return pen__fail(r->err, P_DAMAGED, r->f->pk->name,
			 "the directory of the file is damaged: %s", what);
}

uint64_t pen__packed_offset(const struct pen_packed_pieces *ps, uint64_t i)
{
	struct pen_bytes b = pen__bytes(ps->p + i * ps->step, 8);

	return pen__take_u64(&b);
}

uint32_t pen__packed_length(const struct pen_packed_pieces *ps, uint64_t i)
{
	struct pen_bytes b = pen__bytes(ps->p + i * ps->step + 8, 4);

	return pen__take_u32(&b);
}

uint32_t pen__packed_numbers(const struct pen_packed_pieces *ps, uint64_t i)
{
	struct pen_bytes b = pen__bytes(ps->p + i * ps->step + 12, 4);

	return ps->step > 12 ? pen__take_u32(&b) : 0;
}

struct pen_span pen__packed_str(struct pen_bytes *in)
{
	const uint32_t n = pen__take_u32(in);
	const uint8_t *p = pen__take(in, n);

	return (struct pen_span){ p, p ? n : 0 };
}

/* ---- the directory ---- */

/* Stored bytes of a piece. */
static uint64_t stored_of(const struct pen_packed_pieces *ps, uint64_t i)
{
	return (uint64_t)pen__packed_length(ps, i) + pen__packed_numbers(ps, i);
}

/* Takes the pieces that n elements need, `each` per piece, all inside the
 * file. */
static int take_pieces(struct reader *r, uint64_t n, uint64_t each,
		       struct pen_packed_pieces *ps)
{
	ps->step = ps->step ? ps->step : 12;
	ps->n = pen__take_u64(&r->in);
	if (r->in.bad || !each || ps->n > pen__bytes_left(&r->in) / ps->step ||
	    ps->n != n / each + (n % each != 0))
		return damaged(r, "pieces are missing");
	ps->p = pen__take(&r->in, ps->n * ps->step);
	for (uint64_t i = 0; i < ps->n; i++) {
		const uint64_t at = pen__packed_offset(ps, i);

		if (at < PEN_PACKED_HEAD || at > r->end ||
		    stored_of(ps, i) > r->end - at)
			return damaged(r, "a piece is outside the file");
	}
	return 0;
}

/* Whether the pieces can unpack to n elements of `size` bytes. Pieces do not
 * overlap, so their total is at most the size of the file. */
static bool fits(const struct reader *r, const struct pen_packed_pieces *ps,
		 uint64_t n, uint64_t size)
{
	uint64_t stored = 0;

	for (uint64_t i = 0; i < ps->n; i++)
		stored += stored_of(ps, i);
	return stored <= r->end && n / MOST_RATIO <= stored / size;
}

static int take_table(struct reader *r, struct pen_packed_table *t)
{
	int rc;

	t->dtype = (enum pen_dtype)pen__take_u8(&r->in);
	t->n = pen__take_u64(&r->in);
	t->piece = pen__take_u32(&r->in);
	if (r->in.bad || t->dtype > PEN_F64 || !t->piece ||
	    t->piece > PEN_PACKED_MOST)
		return damaged(r, "a table has an unknown kind");
	rc = take_pieces(r, t->n, t->piece, &t->at);
	if (rc >= 0 && !fits(r, &t->at, t->n, pen_dtype_size(t->dtype)))
		rc = damaged(r, "a table is larger than its pieces");
	return rc;
}

static const char odd_matrix[] = "a matrix has an unknown kind";
static const char short_column[] = "a column has a wrong length or type";

static int take_column(struct reader *r, struct pen_packed_column *c,
		       uint64_t n)
{
	int rc = 0;

	c->name = pen__packed_str(&r->in);
	c->flags = pen__take_u8(&r->in);
	c->nnames = pen__take_u32(&r->in);
	if (r->in.bad || c->nnames > INT32_MAX)
		return damaged(r, "a column is truncated");
	if (c->flags & (PEN_PACKED_CODED | PEN_PACKED_TEXT)) {
		rc = take_table(r, &c->names);
		/* each name has at least 4 bytes of length */
		if (rc >= 0 &&
		    (c->names.dtype != PEN_U8 || c->names.n / 4 < c->nnames))
			rc = damaged(r, "the names of a column are missing");
	}
	if (c->flags & PEN_PACKED_TEXT)
		return rc >= 0 && c->nnames != n ? damaged(r, short_column)
						 : rc;
	if (rc >= 0)
		rc = take_table(r, &c->values);
	if (rc >= 0 && (c->values.n != n || ((c->flags & PEN_PACKED_CODED) &&
					     c->values.dtype != PEN_I32)))
		rc = damaged(r, short_column);
	return rc;
}

/* A mask has booleans and directly follows its column. */
static bool fits_mask(const struct pen_packed *f, uint32_t i)
{
	const struct pen_packed_column *c = &f->column[i];

	if (!(c->flags & PEN_PACKED_MASK))
		return true;
	return i && i != f->nobs && c->flags == PEN_PACKED_MASK &&
	       c->values.dtype == PEN_BOOL && !c[-1].flags &&
	       c->name.n == c[-1].name.n &&
	       memcmp(c->name.p, c[-1].name.p, c->name.n) == 0;
}

static int take_columns(struct reader *r)
{
	struct pen_packed *f = r->f;
	int rc = 0;

	f->nobs = pen__take_u32(&r->in);
	f->nvar = pen__take_u32(&r->in);
	if (r->in.bad || f->nobs > MOST_COLUMNS || f->nvar > MOST_COLUMNS)
		return damaged(r, "it has no column, or too many");
	f->column = pen__calloc(f->nobs + f->nvar + 1, sizeof(*f->column));
	if (!f->column)
		return pen__fail_nomem(r->err, f->pk->name, sizeof(*f->column));
	for (uint32_t i = 0; rc >= 0 && i < f->nobs + f->nvar; i++)
		rc = take_column(r, &f->column[i],
				 i < f->nobs ? f->nrows : f->x.ncols);
	for (uint32_t i = 0; rc >= 0 && i < f->nobs + f->nvar; i++)
		if (!fits_mask(f, i))
			rc = damaged(r, "a mask has no column");
	return rc;
}

/* Whether every piece has the size of its rows. */
static bool has_rows(const struct pen_packed_dense *d, uint64_t nrows)
{
	const uint64_t row = d->ncols * pen_dtype_size(d->dtype);

	for (uint64_t i = 0; i < d->at.n; i++) {
		const uint64_t left = nrows - i * d->group;
		const uint64_t n = left < d->group ? left : d->group;

		if (pen__packed_length(&d->at, i) != n * row)
			return false;
	}
	return true;
}

static int take_dense(struct reader *r, struct pen_packed_dense *d)
{
	int rc;

	d->path = pen__packed_str(&r->in);
	d->dtype = (enum pen_dtype)pen__take_u8(&r->in);
	d->ncols = pen__take_u64(&r->in);
	d->group = pen__take_u32(&r->in);
	if (r->in.bad || d->dtype > PEN_F64 || !d->ncols || !d->group ||
	    d->ncols > PEN_PACKED_MOST / d->group)
		return damaged(r, odd_matrix);
	rc = take_pieces(r, r->f->nrows, d->group, &d->at);
	if (rc >= 0 && (!has_rows(d, r->f->nrows) || !fits(r, &d->at, 0, 1)))
		rc = damaged(r, "a matrix has rows of a wrong length");
	return rc;
}

static int take_matrices(struct reader *r)
{
	struct pen_packed *f = r->f;
	int rc = 0;

	f->ndense = pen__take_u32(&r->in);
	if (r->in.bad || f->ndense > MOST_COLUMNS)
		return damaged(r, "it has too many matrices");
	f->dense = pen__calloc(f->ndense + 1, sizeof(*f->dense));
	if (!f->dense)
		return pen__fail_nomem(r->err, f->pk->name, sizeof(*f->dense));
	for (uint32_t i = 0; rc >= 0 && i < f->ndense; i++)
		rc = take_dense(r, &f->dense[i]);
	return rc;
}

/* Everything about a chunked matrix except its size. */
static int take_matrix(struct reader *r, struct pen_packed_matrix *m)
{
	const uint64_t nrows = r->f->nrows;
	int rc;

	m->sparse = pen__take_u8(&r->in);
	m->dtype = (enum pen_dtype)pen__take_u8(&r->in);
	m->indices = (enum pen_dtype)pen__take_u8(&r->in);
	m->narrow = pen__take_u8(&r->in);
	m->group = pen__take_u32(&r->in);
	if (r->in.bad || m->dtype > PEN_F64 || m->indices > PEN_U64 ||
	    m->narrow > 2 || !m->group || nrows > UINT32_MAX ||
	    m->ncols > UINT32_MAX)
		return damaged(r, odd_matrix);
	m->chunks.step = 16;
	rc = take_pieces(r, nrows, m->group, &m->chunks);
	if (rc >= 0 && !fits(r, &m->chunks, m->nnz, pen_dtype_size(m->dtype)))
		rc = damaged(r, "it declares more values than it contains");
	if (rc < 0 || !m->sparse)
		return rc;
	rc = take_table(r, &m->lengths);
	if (rc >= 0 && (m->lengths.n != nrows || m->lengths.dtype != PEN_U32))
		rc = damaged(r, "the row lengths are missing or invalid");
	return rc;
}

/* Sparse matrices other than X. */
static int take_csr(struct reader *r)
{
	struct pen_packed *f = r->f;
	int rc = 0;

	if (f->version < 2)
		return 0;
	f->ncsr = pen__take_u32(&r->in);
	if (r->in.bad || f->ncsr > MOST_COLUMNS)
		return damaged(r, "it has too many matrices");
	f->csr = pen__calloc(f->ncsr + 1, sizeof(*f->csr));
	if (!f->csr)
		return pen__fail_nomem(r->err, f->pk->name, sizeof(*f->csr));
	for (uint32_t i = 0; rc >= 0 && i < f->ncsr; i++) {
		f->csr[i].path = pen__packed_str(&r->in);
		f->csr[i].ncols = pen__take_u64(&r->in);
		f->csr[i].nnz = pen__take_u64(&r->in);
		rc = take_matrix(r, &f->csr[i]);
		if (rc >= 0 && !f->csr[i].sparse)
			rc = damaged(r, odd_matrix);
	}
	return rc;
}

static int take_directory(struct reader *r)
{
	struct pen_packed *f = r->f;
	const uint8_t *p;
	int rc;

	f->nrows = pen__take_u64(&r->in);
	f->x.ncols = pen__take_u64(&r->in);
	f->x.nnz = pen__take_u64(&r->in);
	rc = take_matrix(r, &f->x);
	if (rc >= 0) {
		f->nmeta = pen__take_u32(&r->in);
		p = r->in.p;
		for (uint64_t i = 0; !r->in.bad && i < 2 * (uint64_t)f->nmeta;
		     i++)
			pen__packed_str(&r->in);
		f->meta = (struct pen_span){ p, (size_t)(r->in.p - p) };
		rc = take_columns(r);
	}
	if (rc >= 0)
		rc = take_matrices(r);
	if (rc >= 0)
		rc = take_csr(r);
	if (rc >= 0 && (r->in.bad || pen__bytes_left(&r->in)))
		rc = damaged(r, "it has a wrong length");
	return rc;
}

/* ---- the file ---- */

static int read_directory(struct pen_packed *f, uint64_t at, uint64_t n,
			  uint32_t crc, struct pen_err *err)
{
	int rc;

	f->dir.p = pen__alloc((size_t)n + 1, 1);
	if (!f->dir.p)
		return pen__fail_nomem(err, f->pk->name, (size_t)n);
	f->dir.n = f->dir.cap = (size_t)n;
	rc = f->pk->read(f->pk, at, f->dir.p, f->dir.n, err);
	if (rc < 0)
		return rc;
	if (pen__crc32c(0, f->dir.p, f->dir.n) != crc)
		return pen__fail(err, P_CHECKSUM, f->pk->name,
				 "the directory of the file is damaged: the "
				 "checksum differs");
	return 0;
}

static int check_ends(struct pen_packed *f, uint8_t *foot, struct pen_err *err)
{
	uint8_t head[12];
	struct pen_bytes in;
	int rc;

	if (f->pk->size < PEN_PACKED_HEAD + PEN_PACKED_FOOT)
		return pen__fail(err, P_TRUNCATED, f->pk->name,
				 "too short to be a packed file");
	rc = f->pk->read(f->pk, 0, head, sizeof(head), err);
	if (rc < 0)
		return rc;
	if (memcmp(head, pen__packed_magic, 8) != 0)
		return pen__fail(err, P_NOT_THIS_FORMAT, f->pk->name,
				 "not a packed file: it starts with %s",
				 pen__quoted(head, 8).s);
	in = pen__bytes(head + 8, 4);
	f->version = pen__take_u32(&in);
	if (!f->version || f->version > PEN_PACKED_VERSION)
		return pen__fail(
			err, P_UNSUPPORTED_FEATURE, f->pk->name,
			"version %" PRIu32
			" of the packed layout is not supported (at most %u); "
			"convert it with the program that wrote it",
			f->version, PEN_PACKED_VERSION);
	rc = f->pk->read(f->pk, f->pk->size - PEN_PACKED_FOOT, foot,
			 PEN_PACKED_FOOT, err);
	if (rc >= 0 && memcmp(foot + 24, pen__packed_magic, 8) != 0)
		rc = pen__fail(
			err, P_TRUNCATED, f->pk->name,
			"truncated: the end is missing; convert it again");
	return rc;
}

int pen__packed_open(struct pen_packed *f, struct pen_peek *pk,
		     struct pen_err *err)
{
	struct reader r = { .f = f, .err = err };
	uint8_t foot[PEN_PACKED_FOOT];
	struct pen_bytes in;
	uint64_t n;
	int rc;

	*f = (struct pen_packed){ .pk = pk };
	rc = check_ends(f, foot, err);
	if (rc < 0)
		return rc;
	in = pen__bytes(foot, sizeof(foot));
	r.end = pen__take_u64(&in);
	n = pen__take_u64(&in);
	if (r.end < PEN_PACKED_HEAD || n > pk->size ||
	    r.end != pk->size - PEN_PACKED_FOOT - n)
		return damaged(&r, "it is not at the expected offset");
	rc = read_directory(f, r.end, n, pen__take_u32(&in), err);
	r.in = pen__bytes(f->dir.p, f->dir.n);
	return rc < 0 ? rc : take_directory(&r);
}

void pen__packed_close(struct pen_packed *f)
{
	pen__buf_fini(&f->dir);
	pen__free(f->column);
	pen__free(f->dense);
	pen__free(f->csr);
}

/* ---- tables ---- */

bool pen__packed_holds(const struct pen_packed_matrix *m, uint64_t i,
		       uint64_t n)
{
	const uint64_t places = pen__packed_length(&m->chunks, i);
	const uint64_t numbers = pen__packed_numbers(&m->chunks, i);

	return n * pen_dtype_size(m->dtype) <= numbers * MOST_RATIO &&
	       (!m->sparse || n * 4 <= places * MOST_RATIO);
}

/* State while a table is read. */
struct loading {
	const struct pen_packed *f;
	const struct pen_packed_table *t;
	const char *what;
	struct pen_err *err;
	struct pen_block mem; /* a piece as stored */
	struct pen_scratch s;
};

static int read_piece(struct loading *l, uint64_t i, uint8_t *to)
{
	const struct pen_packed_table *t = l->t;
	const uint32_t len = pen__packed_length(&t->at, i);
	const uint64_t left = t->n - i * t->piece;
	const struct pen_cellnumbers c = {
		.dtype = t->dtype,
		.as = t->dtype,
		.n = left < t->piece ? (uint32_t)left : t->piece,
		.to = to,
	};
	char where[256];
	const char *why;
	int rc;

	if (pen__block_reserve(&l->mem, len) < 0)
		return pen__fail_nomem(l->err, l->f->pk->name, len);
	rc = l->f->pk->read(l->f->pk, pen__packed_offset(&t->at, i), l->mem.p,
			    len, l->err);
	if (rc < 0)
		return rc;
	rc = pen__numbers_unpack(&c, l->mem.p, len, &l->s, &why);
	if (rc == PEN_ENOMEM)
		return pen__fail_nomem(l->err, l->f->pk->name, len);
	if (rc >= 0)
		return 0;
	snprintf(where, sizeof(where), "%.150s:%.100s", l->f->pk->name,
		 l->what);
	return pen__fail(l->err, rc, where, "piece %" PRIu64 ": %s", i, why);
}

int pen__packed_table(const struct pen_packed *f,
		      const struct pen_packed_table *t, const char *what,
		      struct pen_buf *out, struct pen_err *err)
{
	struct loading l = { .f = f, .t = t, .what = what, .err = err };
	const size_t item = pen_dtype_size(t->dtype);
	const uint64_t piece = t->n < t->piece ? t->n : t->piece;
	size_t n, all;
	uint8_t *p;
	int rc = 0;

	if (!pen__mul((size_t)t->n, item, &n) || !pen__add(out->n, n, &all) ||
	    !(p = pen__realloc(out->p, all ? all : 1, 1)))
		return pen__fail_nomem(err, f->pk->name, n);
	out->p = p;
	out->cap = all ? all : 1;
	if (pen__scratch_init(&l.s, pen__numbers_room(t->dtype, piece)) < 0)
		return pen__fail_nomem(err, f->pk->name, n);
	for (uint64_t i = 0; rc >= 0 && i < t->at.n; i++)
		rc = read_piece(&l, i, p + out->n + i * piece * item);
	if (rc >= 0)
		out->n = all;
	pen__scratch_fini(&l.s);
	if (l.mem.p)
		pen__block_fini(&l.mem);
	return rc;
}
