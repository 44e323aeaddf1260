/*
 * Divides chunks packed by Blosc into their blocks: writers store a list in
 * chunks of megabytes, and a few rows need little of one. A buffer consists of
 * a header of 16 bytes, the offset of each block (4 bytes), and the blocks,
 * which threads may have written in any order; or all bytes uncompressed.
 *
 * Nothing is refused here: if a chunk differs from the others or is invalid,
 * chunks stay complete, and unpacking reports the damage. Blocks of a few
 * kilobytes stay together as well, since each would be a separate read.
 */
#include <stdlib.h>

#include "base/mem.h"
#include "format/cells/cells.h"
#include "format/cells/zarr.h"

#define HEAD 16u
#define VERSION 2u
#define AS_IT_IS 2u			/* flag: not compressed */
#define LEAST_BLOCK 16384u		/* bytes */
#define MOST_CHUNKS 100000u		/* each is a read while indexing */
#define MOST_BLOCKS ((uint64_t)1 << 22) /* of all chunks */

struct start {
	uint32_t at, block;
};

struct cut {
	const struct pen_zarr *z;
	const struct pen_zarr_array *a;
	struct pen_err *err;
	uint32_t bytes;	 /* of a chunk */
	uint32_t block;	 /* bytes of a block */
	uint32_t n;	 /* blocks of a chunk */
	uint32_t head;	 /* the common start of all headers */
	bool packed;	 /* head comes from a compressed chunk */
	uint8_t *raw;	 /* a header and the offsets */
	struct start *s; /* n, plus the end of the last one */
	struct pen_chunk *out;
};

static uint32_t word(const uint8_t *p, uint32_t i)
{
	struct pen_bytes b = pen__bytes(p + i * 4, 4);

	return pen__take_u32(&b);
}

static int read_start(const struct cut *c, const struct pen_chunk *k,
		      uint8_t *to, size_t n)
{
	const struct pen_zarr_part p = { .object = k->object,
					 .at = k->at,
					 .len = k->size };

	return pen__zarr_read(c->z, &p, 0, to, n, c->err);
}

static unsigned flags_of(const uint8_t *head)
{
	return head[2];
}

/* Whether a header is as expected; its item size is not 0. */
static bool fits(const struct cut *c, const struct pen_chunk *k,
		 const uint8_t *head)
{
	return head[0] == VERSION && head[3] && word(head, 1) == c->bytes &&
	       word(head, 3) == k->size;
}

/* Takes the block size from the first chunk; 0: chunks stay complete. */
static int measure(struct cut *c, const struct pen_chunks *cs)
{
	uint8_t head[HEAD];
	int rc;

	if (cs->c[0].size < HEAD)
		return 0;
	rc = read_start(c, &cs->c[0], head, HEAD);
	if (rc < 0)
		return rc;
	c->block = word(head, 2);
	c->head = word(head, 0);
	if (!fits(c, &cs->c[0], head) || c->block < LEAST_BLOCK ||
	    c->block >= c->bytes || c->block % c->a->item)
		return 0;
	c->n = (c->bytes - 1) / c->block + 1;
	return (uint64_t)c->n * cs->n <= MOST_BLOCKS &&
	       (uint64_t)c->n * cs->n * 4 <= cs->stored;
}

static int by_start(const void *a, const void *b)
{
	const struct start *x = a, *y = b;

	return (x->at > y->at) - (x->at < y->at);
}

/* A block ends where another starts, or at the end of the chunk. */
static bool cut_packed(struct cut *c, const struct pen_chunk *k,
		       struct pen_chunk *to)
{
	if (c->packed && word(c->raw, 0) != c->head)
		return false;
	c->head = word(c->raw, 0);
	c->packed = true;
	for (uint32_t i = 0; i < c->n; i++)
		c->s[i] = (struct start){ word(c->raw, 4 + i), i };
	qsort(c->s, c->n, sizeof(*c->s), by_start);
	c->s[c->n].at = k->size;
	if (c->s[0].at < HEAD + c->n * 4)
		return false;
	for (uint32_t i = 0; i < c->n; i++) {
		const uint32_t at = c->s[i].at, end = c->s[i + 1].at;
		struct pen_chunk *b = &to[c->s[i].block];

		if (at >= end || end - at > c->block + PEN_CHUNKED_BLOCK_MORE)
			return false;
		b->at = k->at + at;
		b->size = end - at;
	}
	return true;
}

static bool cut_stored(const struct cut *c, const struct pen_chunk *k,
		       struct pen_chunk *to)
{
	if (k->size - HEAD != c->bytes)
		return false;
	for (uint32_t i = 0; i < c->n; i++) {
		const uint32_t at = i * c->block, left = c->bytes - at;

		to[i].at = k->at + HEAD + at;
		to[i].size = left < c->block ? left : c->block;
		to[i].mask = 1;
	}
	return true;
}

/* 1: the chunk was divided; 0: it cannot be. */
static int cut_chunk(struct cut *c, const struct pen_chunk *k,
		     struct pen_chunk *to)
{
	const size_t n = HEAD + (size_t)c->n * 4;
	int rc;

	if (k->size < n || k->mask)
		return 0;
	rc = read_start(c, k, c->raw, n);
	if (rc < 0)
		return rc;
	if (!fits(c, k, c->raw) || word(c->raw, 2) != c->block)
		return 0;
	for (uint32_t i = 0; i < c->n; i++)
		to[i] = (struct pen_chunk){ .cell = k->cell * c->n + i,
					    .object = k->object };
	return flags_of(c->raw) & AS_IT_IS ? cut_stored(c, k, to)
					   : cut_packed(c, k, to);
}

static int cut_all(struct cut *c, struct pen_chunks *cs)
{
	const size_t all = cs->n * c->n;
	int rc = 1;

	c->raw = pen__alloc(HEAD + (size_t)c->n * 4, 1);
	c->s = pen__alloc((size_t)c->n + 1, sizeof(*c->s));
	c->out = pen__alloc(all, sizeof(*c->out));
	if (!c->raw || !c->s || !c->out)
		rc = pen__fail_nomem(c->err, c->z->pk->name,
				     all * sizeof(*c->out));
	for (size_t i = 0; rc > 0 && i < cs->n; i++)
		rc = cut_chunk(c, &cs->c[i], &c->out[i * c->n]);
	if (rc > 0) {
		pen__free(cs->c);
		cs->c = c->out;
		cs->n = cs->cap = all;
		cs->ncells *= c->n;
		c->out = NULL;
	}
	pen__free(c->out);
	pen__free(c->s);
	pen__free(c->raw);
	return rc;
}

int pen__zarr_blocks(const struct pen_zarr *z, const struct pen_zarr_array *a,
		     struct pen_chunks *cs, struct pen_zarr_blocks *b,
		     struct pen_err *err)
{
	struct cut c = { .z = z, .a = a, .err = err };
	int rc;

	*b = (struct pen_zarr_blocks){ 0 };
	if (a->ndim != 1 || !pen__filters_are(&a->filters, "blosc") || !cs->n ||
	    cs->n > MOST_CHUNKS || a->chunk_bytes > INT32_MAX ||
	    a->chunk_bytes <= LEAST_BLOCK)
		return 0;
	c.bytes = (uint32_t)a->chunk_bytes;
	rc = measure(&c, cs);
	if (rc > 0)
		rc = cut_all(&c, cs);
	if (rc <= 0)
		return rc;
	b->cols = c.block / a->item;
	b->head = c.head;
	return 0;
}
