/*
 * Finds the chunks of an array: one file each, or ranges of shards. All shard
 * indexes are read here, so that later reads are the same for both. Chunks that
 * are not stored read as the fill value. Refuses grids with more chunks than
 * the existing files could explain, indexes that point outside their shard, and
 * chunks that cannot unpack to their declared size.
 */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

#include "base/mem.h"
#include "codec/crc32c.h"
#include "format/cells/zarr.h"

#define SPARSE_GRID 65536u /* cells that may be empty, and for each file: */
#define SPARSE_FILE 1024u
#define MOST_INDEX ((uint64_t)1 << 30)

struct walk {
	const struct pen_zarr *z;
	const struct pen_zarr_node *node;
	struct pen_zarr_array *a;
	struct pen_chunks *cs;
	struct pen_cells_absent *absent;
	struct pen_err *err;
	char where[256];
	char key[PEN_ZARR_PATH + 1024]; /* of the current file */
	uint64_t files[PEN_MAX_DIMS];	/* grid of files */
	uint64_t cells[PEN_MAX_DIMS];	/* grid of chunks */
	uint64_t at[PEN_MAX_DIMS];	/* the current file */
	uint32_t zip_bit; /* the bit of the archive's filter in masks */
	bool deflated;	  /* some member is deflated */
	bool more;	  /* more chunks are absent than are named */
};

/* Names the current file, if there is one. */
static int bad(const struct walk *w, const char *what)
{
	return pen__fail(w->err, P_DAMAGED, w->where, "damaged: %s%s%.200s",
			 what, *w->key ? ": " : "", w->key);
}

static int put(struct walk *w, const struct pen_chunk *c)
{
	if (pen__chunks_add(w->cs, c) < 0)
		return pen__fail_nomem(w->err, w->where, w->cs->n * sizeof(*c));
	return 0;
}

/* Notes a chunk, or all chunks of a file, that is not stored, up to element
 * `end` of a list. Keeps the first names, as far as they fit. */
static void __attribute__((format(printf, 3, 4)))
note_absent(struct walk *w, uint64_t end, const char *fmt, ...)
{
	struct pen_cells_absent *a = w->absent;
	const size_t at = strlen(a->names), left = sizeof(a->names) - at;
	char name[sizeof(w->key) + 64];
	va_list ap;

	a->end = end < w->a->dim[0] ? end : w->a->dim[0];
	va_start(ap, fmt);
	vsnprintf(name, sizeof(name), fmt, ap);
	va_end(ap);
	if (w->more)
		return;
	w->more = strlen(name) + 8 > left;
	if (w->more && !at)
		snprintf(a->names, left, "%.*s...", (int)left - 4, name);
	else
		snprintf(a->names + at, left, "%s%s", at ? ", " : "",
			 w->more ? "..." : name);
}

/* ---- shards ---- */

static int put_inner(struct walk *w, const struct pen_zarr_part *p,
		     const struct pen_chunk *c, struct pen_bytes *b)
{
	struct pen_chunk inner = *c;
	const uint64_t at = pen__take_u64(b), n = pen__take_u64(b);

	if (at == UINT64_MAX && n == UINT64_MAX) {
		note_absent(
			w, w->a->ndim == 1 ? (c->cell + 1) * w->a->chunk[0] : 0,
			"chunk %" PRIu64 " in %s", c->cell, w->key);
		return 0;
	}
	if (at > p->len || n > p->len - at)
		return bad(w, "the index of a shard points outside it");
	if (n > UINT32_MAX)
		return bad(w, "a chunk in a shard has 4 GiB or more");
	inner.at = p->at + at;
	inner.size = (uint32_t)n;
	return put(w, &inner);
}

/* Chunks per shard; MOST_INDEX: too many. */
static uint64_t inner_of(const struct pen_zarr_array *a)
{
	uint64_t n = 1;

	for (uint32_t i = 0; i < a->ndim && n < MOST_INDEX; i++)
		if (__builtin_mul_overflow(n, a->file[i] / a->chunk[i], &n))
			n = MOST_INDEX;
	return n < MOST_INDEX ? n : MOST_INDEX;
}

/* The cell of chunk i of the current shard; false: beyond the edge of the
 * array. */
static bool cell_of(const struct walk *w, uint64_t i, uint64_t *cell)
{
	const struct pen_zarr_array *a = w->a;
	uint64_t step = 1;

	*cell = 0;
	for (uint32_t k = a->ndim; k-- > 0;) {
		const uint64_t n = a->file[k] / a->chunk[k];
		const uint64_t at = w->at[k] * n + i % n;

		if (at >= w->cells[k])
			return false;
		*cell += at * step;
		step *= w->cells[k];
		i /= n;
	}
	return true;
}

static int put_shard(struct walk *w, const struct pen_zarr_part *p,
		     const struct pen_buf *index)
{
	struct pen_bytes b = pen__bytes(index->p, index->n);
	int rc = 0;

	for (uint64_t i = 0; rc >= 0 && i < index->n / 16; i++) {
		struct pen_chunk chunk = { .object = p->object };

		if (cell_of(w, i, &chunk.cell))
			rc = put_inner(w, p, &chunk, &b);
		else
			pen__take(&b, 16);
	}
	return rc;
}

static int read_shard(struct walk *w, const struct pen_zarr_part *p)
{
	const struct pen_zarr_array *a = w->a;
	const uint64_t n = inner_of(a), sum = a->index_crc ? 4 : 0;
	struct pen_buf b = { 0 };
	struct pen_bytes crc;
	uint64_t len;
	int rc;

	if (p->deflated)
		return pen__fail(w->err, P_UNSUPPORTED_FEATURE, w->where,
				 "the archive compresses the shards; store "
				 "them uncompressed (zip -0)");
	if (n > MOST_INDEX / 16 || n * 16 + sum > p->len)
		return bad(w, "a shard is shorter than its index");
	len = n * 16 + sum;
	b.p = pen__alloc((size_t)len, 1);
	if (!b.p)
		return pen__fail_nomem(w->err, w->where, (size_t)len);
	b.n = b.cap = (size_t)(len - sum);
	rc = pen__zarr_read(w->z, p, a->index_first ? 0 : p->len - len, b.p,
			    (size_t)len, w->err);
	crc = pen__bytes(b.p + b.n, (size_t)sum);
	if (rc >= 0 && sum && pen__crc32c(0, b.p, b.n) != pen__take_u32(&crc))
		rc = pen__fail(w->err, P_CHECKSUM, w->where,
			       "damaged: the checksum of a shard's index "
			       "differs: %.200s",
			       w->key);
	if (rc >= 0)
		rc = put_shard(w, p, &b);
	pen__buf_fini(&b);
	return rc;
}

/* ---- files ---- */

/* "c/1/0", "1.0"; for an array without axes "c" or "0". */
static void name_key(struct walk *w)
{
	const struct pen_zarr_array *a = w->a;
	const char *path = w->node->path;
	const size_t cap = sizeof(w->key);
	size_t n = (size_t)snprintf(w->key, cap, "%s%s%s", path,
				    *path ? "/" : "",
				    a->under_c ? "c"
				    : !a->ndim ? "0"
					       : "");

	for (uint32_t i = 0; i < a->ndim; i++) {
		if (i || a->under_c)
			w->key[n++] = a->separator;
		n += (size_t)snprintf(w->key + n, cap - n, "%" PRIu64,
				      w->at[i]);
	}
}

/* Number `cell` of the grid of files is the current one. */
static int put_file(struct walk *w, uint64_t cell)
{
	struct pen_chunk c = { .cell = cell };
	struct pen_zarr_part p;

	name_key(w);
	if (!pen__zarr_find(w->z, w->key, &p)) {
		note_absent(w, w->a->ndim ? (w->at[0] + 1) * w->a->file[0] : 1,
			    "%s", w->key);
		return 0;
	}
	if (p.object == PEN_NO_OBJECT) {
		uint8_t none;

		return pen__zarr_read(w->z, &p, 0, &none, 0, w->err);
	}
	w->cs->stored += p.len;
	if (w->a->sharded)
		return read_shard(w, &p);
	if (p.len > UINT32_MAX)
		return bad(w, "a chunk has 4 GiB or more");
	c.object = p.object;
	c.at = p.at;
	c.size = (uint32_t)p.len;
	c.mask = p.deflated ? 0 : w->zip_bit;
	c.crc = p.crc;
	w->deflated |= p.deflated;
	return put(w, &c);
}

static uint64_t divide(uint64_t n, uint64_t by)
{
	return n / by + (n % by > 0);
}

/* Counts the files of the grid. */
static int measure(struct walk *w, uint64_t *nfiles)
{
	const struct pen_zarr_array *a = w->a;
	uint64_t files = 1, cells = 1;
	bool ok = true;

	for (uint32_t i = 0; i < a->ndim; i++) {
		w->files[i] = divide(a->dim[i], a->file[i]);
		w->cells[i] = divide(a->dim[i], a->chunk[i]);
		ok &= !__builtin_mul_overflow(files, w->files[i], &files);
		ok &= !__builtin_mul_overflow(cells, w->cells[i], &cells);
	}
	w->cs->ncells = cells;
	*nfiles = files;
	if (!ok || cells >= UINT32_MAX / 2)
		return pen__fail(w->err, P_OVER_LIMIT, w->where,
				 "too many chunks (2^31 or more)");
	if (w->z->nfiles && files > SPARSE_GRID &&
	    files / SPARSE_FILE > w->z->nfiles)
		return bad(w, "the array declares a thousand times as many "
			      "chunks as there are files");
	return 0;
}

static int put_files(struct walk *w)
{
	uint64_t n;
	int rc = measure(w, &n);

	for (uint64_t cell = 0; rc >= 0 && cell < n; cell++) {
		uint64_t left = cell;

		for (uint32_t i = w->a->ndim; i-- > 0;) {
			w->at[i] = left % w->files[i];
			left /= w->files[i];
		}
		rc = put_file(w, cell);
	}
	return rc;
}

int pen__zarr_chunks(const struct pen_zarr *z, const struct pen_zarr_node *node,
		     struct pen_zarr_array *a, struct pen_chunks *cs,
		     struct pen_cells_absent *absent, struct pen_err *err)
{
	struct pen_cells_absent mine;
	struct walk w = { .z = z, .node = node, .a = a, .cs = cs, .err = err };
	int rc;

	*cs = (struct pen_chunks){ 0 };
	w.absent = absent ? absent : &mine;
	*w.absent = (struct pen_cells_absent){ 0 };
	w.zip_bit = (uint32_t)1 << a->filters.n;
	pen__zarr_where(z, node->path, w.where, sizeof(w.where));
	rc = put_files(&w);
	w.key[0] = '\0'; /* later errors concern all files */
	if (rc >= 0 && w.deflated)
		rc = pen__filters_add(&a->filters, "inflate", 1, w.where, err);
	for (size_t i = 0; rc >= 0 && !w.deflated && i < cs->n; i++)
		cs->c[i].mask = 0;
	if (rc >= 0 && !pen__chunks_sort(cs))
		rc = bad(&w, "a chunk appears twice");
	w.absent->of = cs->ncells;
	w.absent->n = cs->ncells - cs->n;
	if (rc < 0 || !a->chunk_bytes)
		return rc;
	return pen__chunks_check(cs, &a->filters, a->chunk_bytes, w.where, err);
}

void pen__zarr_put(const struct pen_zarr *z, const struct pen_zarr_array *a,
		   const struct pen_chunks *cs, struct pen_chunked_put *out)
{
	*out = (struct pen_chunked_put){
		.layout = PEN_CHUNKED_GRID,
		.dtype = (enum pen_dtype)a->dtype,
		.swap = a->swap,
		.fortran = a->fortran,
		.objects = !z->zipped,
		.crcs = z->zipped && !a->sharded && a->filters.n > 0,
		.ndim = a->ndim,
		.filters = &a->filters,
		.chunks = cs,
	};
	memcpy(out->fill, a->fill, sizeof(a->fill));
	memcpy(out->dim, a->dim, sizeof(out->dim));
	memcpy(out->chunk, a->chunk, sizeof(out->chunk));
}
