/*
 * Where an array's chunks lie: a file each, or ranges of shards, whose indexes
 * are all read here, so that reading later is the same for both. What is not
 * there reads as the fill value. Refuses grids of more chunks than the files
 * that are there could explain, indexes that point outside their shard, and
 * chunks that cannot become what they have to.
 */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

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
	struct pen_zarr_chunks *cs;
	struct pen_err *err;
	char where[256];
	char key[PEN_ZARR_PATH + 64]; /* of the file at hand */
	uint64_t files[2];	      /* grid of files */
	uint64_t cells[2];	      /* grid of chunks */
	uint32_t zip_bit;	      /* in masks, of the archive's own step */
	bool deflated;		      /* some member is */
	bool more;		      /* are absent than have been named */
};

static int bad(const struct walk *w, const char *what)
{
	return pen__fail(w->err, PEN_EDATA, w->where, "damaged: %s", what);
}

static int put(struct walk *w, const struct pen_zarr_chunk *c)
{
	struct pen_zarr_chunks *cs = w->cs;

	if (cs->n == cs->cap) {
		const size_t cap = cs->cap ? cs->cap * 2 : 64;
		void *p = pen__realloc(cs->c, cap, sizeof(*cs->c));

		if (!p)
			return pen__fail_nomem(w->err, w->where,
					       cap * sizeof(*cs->c));
		cs->c = p;
		cs->cap = cap;
	}
	cs->c[cs->n++] = *c;
	return 0;
}

/* A chunk, or all of a file, that is not stored: up to element `end` of a list.
 * Names of the first ones are kept, as far as there is room. */
static void __attribute__((format(printf, 3, 4)))
note_absent(struct walk *w, uint64_t end, const char *fmt, ...)
{
	struct pen_cells_absent *a = &w->cs->absent;
	const size_t at = strlen(a->names), left = sizeof(a->names) - at;
	char name[PEN_ZARR_PATH + 96];
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
		     const struct pen_zarr_chunk *c, struct pen_bytes *b)
{
	struct pen_zarr_chunk inner = *c;
	const uint64_t at = pen__take_u64(b), n = pen__take_u64(b);

	if (at == UINT64_MAX && n == UINT64_MAX) {
		note_absent(w, (c->cell + 1) * w->a->chunk[0],
			    "chunk %" PRIu64 " in %s", c->cell, w->key);
		return 0;
	}
	if (at > p->len || n > p->len - at)
		return bad(w, "the index of a shard points outside of it");
	if (n > UINT32_MAX)
		return bad(w, "a chunk in a shard has 4 GiB and more");
	inner.at = p->at + at;
	inner.size = (uint32_t)n;
	return put(w, &inner);
}

/* Shard (row, col) of the grid of files. */
static int put_shard(struct walk *w, const struct pen_zarr_part *p,
		     uint64_t row, uint64_t col, const struct pen_buf *index)
{
	const struct pen_zarr_array *a = w->a;
	const uint64_t nr = a->file[0] / a->chunk[0];
	const uint64_t nc = a->ndim > 1 ? a->file[1] / a->chunk[1] : 1;
	struct pen_bytes b = pen__bytes(index->p, index->n);
	int rc = 0;

	for (uint64_t i = 0; rc >= 0 && i < nr * nc; i++) {
		const uint64_t r = row * nr + i / nc, c = col * nc + i % nc;
		struct pen_zarr_chunk chunk = { .object = p->object };

		if (r >= w->cells[0] || c >= w->cells[1]) {
			pen__take(&b, 16);
			continue; /* beyond the array's edge */
		}
		chunk.cell = r * w->cells[1] + c;
		rc = put_inner(w, p, &chunk, &b);
	}
	return rc;
}

static int read_shard(struct walk *w, const struct pen_zarr_part *p,
		      uint64_t row, uint64_t col)
{
	const struct pen_zarr_array *a = w->a;
	const uint64_t nc = a->ndim > 1 ? a->file[1] / a->chunk[1] : 1;
	const uint64_t nr = a->file[0] / a->chunk[0];
	const uint64_t sum = a->index_crc ? 4 : 0;
	struct pen_buf b = { 0 };
	struct pen_bytes crc;
	uint64_t len;
	int rc;

	if (p->deflated)
		return pen__fail(w->err, PEN_ENOTSUP, w->where,
				 "is in shards that the archive compressed; "
				 "store them (zip -0)");
	if (nr > MOST_INDEX / 16 / nc || nr * nc * 16 + sum > p->len)
		return bad(w, "a shard is shorter than its index");
	len = nr * nc * 16 + sum;
	b.p = pen__alloc((size_t)len, 1);
	if (!b.p)
		return pen__fail_nomem(w->err, w->where, (size_t)len);
	b.n = b.cap = (size_t)(len - sum);
	rc = pen__zarr_read(w->z, p, a->index_first ? 0 : p->len - len, b.p,
			    (size_t)len, w->err);
	crc = pen__bytes(b.p + b.n, (size_t)sum);
	if (rc >= 0 && sum && pen__crc32c(0, b.p, b.n) != pen__take_u32(&crc))
		rc = bad(w, "the checksum of a shard's index differs");
	if (rc >= 0)
		rc = put_shard(w, p, row, col, &b);
	pen__buf_fini(&b);
	return rc;
}

/* ---- files ---- */

static void key_of(const struct walk *w, uint64_t row, uint64_t col, char *key,
		   size_t cap)
{
	const struct pen_zarr_array *a = w->a;
	const char *path = w->node->path, *slash = *path ? "/" : "";
	char start[3] = "";

	if (a->under_c)
		snprintf(start, sizeof(start), "c%c", a->separator);
	if (a->ndim > 1)
		snprintf(key, cap, "%s%s%s%" PRIu64 "%c%" PRIu64, path, slash,
			 start, row, a->separator, col);
	else
		snprintf(key, cap, "%s%s%s%" PRIu64, path, slash, start, row);
}

static int put_file(struct walk *w, uint64_t row, uint64_t col)
{
	struct pen_zarr_chunk c = { 0 };
	struct pen_zarr_part p;

	key_of(w, row, col, w->key, sizeof(w->key));
	if (!pen__zarr_find(w->z, w->key, &p)) {
		note_absent(w, (row + 1) * w->a->file[0], "%s", w->key);
		return 0;
	}
	if (p.object == PEN_NO_OBJECT) {
		uint8_t none;

		return pen__zarr_read(w->z, &p, 0, &none, 0, w->err);
	}
	w->cs->stored += p.len;
	if (w->a->sharded)
		return read_shard(w, &p, row, col);
	if (p.len > UINT32_MAX)
		return bad(w, "a chunk has 4 GiB and more");
	c.cell = row * w->files[1] + col;
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

static int measure(struct walk *w)
{
	const struct pen_zarr_array *a = w->a;
	uint64_t files = 1, cells = 1;
	bool ok = true;

	for (int i = 0; i < 2; i++) {
		const bool has = (uint32_t)i < a->ndim;

		w->files[i] = has ? divide(a->dim[i], a->file[i]) : 1;
		w->cells[i] = has ? divide(a->dim[i], a->chunk[i]) : 1;
		ok &= !__builtin_mul_overflow(files, w->files[i], &files);
		ok &= !__builtin_mul_overflow(cells, w->cells[i], &cells);
	}
	w->cs->ncells = cells;
	if (!ok || cells >= UINT32_MAX / 2)
		return pen__fail(w->err, PEN_ENOTSUP, w->where,
				 "has too many chunks");
	if (w->z->nfiles && files > SPARSE_GRID &&
	    files / SPARSE_FILE > w->z->nfiles)
		return bad(w, "it declares a thousand times as many chunks as "
			      "there are files");
	return 0;
}

static int by_cell(const void *a, const void *b)
{
	const struct pen_zarr_chunk *x = a, *y = b;

	return (x->cell > y->cell) - (x->cell < y->cell);
}

/* Every chunk can become what it has to. */
static int check(const struct walk *w)
{
	const struct pen_zarr_array *a = w->a;

	for (size_t i = 0; a->chunk_bytes && i < w->cs->n; i++) {
		const struct pen_zarr_chunk *c = &w->cs->c[i];

		if (!pen__h5_pipe_fits(&a->pipe, c->mask, c->size,
				       a->chunk_bytes))
			return pen__fail(w->err, PEN_EDATA, w->where,
					 "damaged: chunk %" PRIu64 " has %u "
					 "bytes, which cannot become %" PRIu64,
					 c->cell, c->size, a->chunk_bytes);
	}
	return 0;
}

int pen__zarr_chunks(const struct pen_zarr *z, const struct pen_zarr_node *node,
		     struct pen_zarr_array *a, struct pen_zarr_chunks *cs,
		     struct pen_err *err)
{
	struct walk w = { .z = z, .node = node, .a = a, .cs = cs, .err = err };
	int rc;

	*cs = (struct pen_zarr_chunks){ 0 };
	w.zip_bit = (uint32_t)1 << a->pipe.n;
	pen__zarr_where(z, node->path, w.where, sizeof(w.where));
	rc = measure(&w);
	for (uint64_t r = 0; rc >= 0 && r < w.files[0]; r++)
		for (uint64_t c = 0; rc >= 0 && c < w.files[1]; c++)
			rc = put_file(&w, r, c);
	if (rc >= 0 && w.deflated)
		rc = pen__h5_pipe_add(&a->pipe, "inflate", 1, w.where, err);
	for (size_t i = 0; rc >= 0 && !w.deflated && i < cs->n; i++)
		cs->c[i].mask = 0;
	if (rc >= 0 && a->sharded && a->ndim > 1 && cs->n)
		qsort(cs->c, cs->n, sizeof(*cs->c), by_cell);
	cs->absent.of = cs->ncells;
	cs->absent.n = cs->ncells - cs->n;
	return rc < 0 ? rc : check(&w);
}

void pen__zarr_chunks_fini(struct pen_zarr_chunks *cs)
{
	pen__free(cs->c);
	*cs = (struct pen_zarr_chunks){ 0 };
}
