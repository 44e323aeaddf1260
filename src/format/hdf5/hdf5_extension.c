/*
 * The superblock extension: the shared message table, and the metadata cache
 * image, a block with newer bytes of structures anywhere in the file. Every
 * load goes through the image, so readers of structures need not know of it.
 * Rejects multi-file sets.
 */
#include "format/hdf5/hdf5_int.h"

#include <stdlib.h>

#include "base/mem.h"

#define MSG_SHARED_TABLE 0x0f
#define MSG_DRIVER 0x14
#define MSG_CACHE_IMAGE 0x18
#define ENTRY_HEAD 14u /* bytes of an entry before address and length */

/* ---- the metadata cache image ---- */

static int by_addr(const void *a, const void *b)
{
	const struct pen_h5_piece *x = a, *y = b;

	return (x->addr > y->addr) - (x->addr < y->addr);
}

static bool take_piece(const struct pen_h5 *h, struct pen_bytes *b,
		       struct pen_h5_piece *p)
{
	unsigned nparents;
	uint64_t n;

	pen__take(b, 4 + 2 + 2); /* type, flags, ring, age, children */
	nparents = pen__take_u16(b);
	pen__take_u32(b); /* rank in the cache */
	p->addr = pen__h5_addr(h, b);
	n = pen__h5_len(h, b);
	pen__take(b, (uint64_t)nparents * h->so);
	p->p = pen__take(b, n);
	p->n = (size_t)n;
	return !b->bad && n && p->addr < h->pk->size &&
	       n <= h->pk->size - p->addr;
}

/* h->image contains the block; b is positioned after its signature. */
static int take_pieces(struct pen_h5 *h, struct pen_bytes *b,
		       struct pen_err *err)
{
	const unsigned version = pen__take_u8(b), flags = pen__take_u8(b);
	const uint64_t len = pen__h5_len(h, b);
	const uint32_t n = pen__take_u32(b);

	if (b->bad || version || flags || len != h->image.n ||
	    n > pen__bytes_left(b) / (ENTRY_HEAD + h->so + h->sl))
		return pen__h5_bad(h, err,
				   "the metadata cache image is invalid");
	h->piece = pen__alloc(n ? n : 1, sizeof(*h->piece));
	if (!h->piece)
		return pen__h5_nomem(h, err, n * sizeof(*h->piece));
	for (uint32_t i = 0; i < n; i++)
		if (!take_piece(h, b, &h->piece[i]))
			return pen__h5_bad(h, err,
					   "an entry of the metadata cache "
					   "image is invalid");
	qsort(h->piece, n, sizeof(*h->piece), by_addr);
	for (uint32_t i = 1; i < n; i++)
		if (h->piece[i].addr - h->piece[i - 1].addr < h->piece[i - 1].n)
			return pen__h5_bad(
				h, err,
				"entries of the metadata cache image overlap");
	h->npieces = n;
	return 0;
}

static int take_image(struct pen_h5 *h, const struct pen_h5_msg *m,
		      struct pen_err *err)
{
	struct pen_bytes b = pen__bytes(m->p, m->n);
	const unsigned version = pen__take_u8(&b);
	const uint64_t addr = pen__h5_addr(h, &b), n = pen__h5_len(h, &b);
	int rc;

	if (b.bad || version)
		return pen__h5_bad(h, err,
				   "the metadata cache image is invalid");
	rc = pen__h5_load_as(h, (struct pen_h5_part){ addr, n, "MDCI", true },
			     &h->image, &b, err);
	if (rc >= 0)
		rc = take_pieces(h, &b, err);
	/* blocks cached so far lack the image */
	memset(h->block, 0, sizeof(h->block));
	return rc;
}

/* The first piece that ends after `at`. */
static size_t piece_after(const struct pen_h5 *h, uint64_t at)
{
	size_t lo = 0, hi = h->npieces;

	while (lo < hi) {
		const size_t mid = lo + (hi - lo) / 2;

		if (h->piece[mid].addr + h->piece[mid].n <= at)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

bool pen__h5_is_newer(const struct pen_h5 *h, uint64_t at, uint64_t n)
{
	const size_t i = piece_after(h, at);

	return i < h->npieces && h->piece[i].addr < at + n;
}

void pen__h5_renew(const struct pen_h5 *h, uint64_t at, uint8_t *to, size_t n)
{
	const uint64_t end = at + n;

	for (size_t i = piece_after(h, at);
	     i < h->npieces && h->piece[i].addr < end; i++) {
		const struct pen_h5_piece *p = &h->piece[i];
		const uint64_t from = p->addr > at ? p->addr : at;
		const uint64_t stop = p->addr + p->n < end ? p->addr + p->n
							   : end;

		memcpy(to + (from - at), p->p + (from - p->addr),
		       (size_t)(stop - from));
	}
}

/* ---- shared messages ---- */

static int take_table(struct pen_h5 *h, const struct pen_h5_msg *m,
		      struct pen_err *err)
{
	struct pen_bytes b = pen__bytes(m->p, m->n);
	const unsigned version = pen__take_u8(&b);
	const uint64_t addr = pen__h5_addr(h, &b);
	const unsigned n = pen__take_u8(&b);
	struct pen_buf buf;
	int rc;

	if (b.bad || version || n > PEN_H5_TABLES)
		return pen__h5_bad(h, err,
				   "the table of shared messages is invalid");
	rc = pen__h5_load_as(
		h,
		(struct pen_h5_part){ addr, 4 + n * (14u + 2u * h->so) + 4,
				      "SMTB", true },
		&buf, &b, err);
	if (rc < 0)
		return rc;
	for (unsigned i = 0; i < n; i++) {
		struct pen_h5_table *t = &h->table[i];

		pen__take(&b, 2); /* version, type of index */
		t->types = pen__take_u16(&b);
		pen__take(&b, 4 + 2 + 2 + 2); /* limits, count */
		pen__h5_addr(h, &b);	      /* index, used for writing */
		t->heap = pen__h5_addr(h, &b);
	}
	h->ntables = n;
	pen__buf_fini(&buf);
	return 0;
}

/* The heap of messages of a type. */
static uint64_t heap_for(const struct pen_h5 *h, unsigned type)
{
	if (type == PEN_H5_MSG_FILL_OLD)
		type = PEN_H5_MSG_FILL;
	for (unsigned i = 0; i < h->ntables; i++)
		if (type < 16 && (h->table[i].types >> type & 1))
			return h->table[i].heap;
	return PEN_H5_NOWHERE;
}

int pen__h5_shared_get(struct pen_h5 *h, unsigned type, const uint8_t *id,
		       struct pen_buf *out, struct pen_err *err)
{
	const uint64_t addr = heap_for(h, type);
	struct pen_buf mem = { 0 };
	struct pen_h5_heap heap;
	struct pen_span s;
	int rc;

	*out = (struct pen_buf){ 0 };
	if (addr == PEN_H5_NOWHERE)
		return pen__h5_bad(h, err,
				   "a message is shared, but the file has no "
				   "table of shared messages");
	rc = pen__h5_heap_open(h, addr, &heap, err);
	if (rc < 0)
		return rc;
	rc = heap.id_len == PEN_H5_SHARED_ID
		     ? pen__h5_heap_get(h, &heap, id, &mem, &s, err)
		     : pen__h5_bad(h, err,
				   "the IDs of shared messages are invalid");
	if (rc >= 0) {
		pen__buf_put(out, s.p, s.n);
		if (out->bad)
			rc = pen__h5_nomem(h, err, s.n);
	}
	pen__buf_fini(&mem);
	pen__h5_heap_close(&heap);
	return rc;
}

/* ---- both ---- */

int pen__h5_extend(struct pen_h5 *h, uint64_t addr, struct pen_err *err)
{
	const struct pen_h5_msg *image = NULL, *table = NULL;
	struct pen_h5_head hd;
	int rc = pen__h5_head_open(h, addr, &hd, err);

	if (rc < 0)
		return rc;
	for (size_t i = 0; i < hd.n; i++) {
		if (hd.msg[i].type == MSG_CACHE_IMAGE)
			image = &hd.msg[i];
		if (hd.msg[i].type == MSG_SHARED_TABLE)
			table = &hd.msg[i];
		if (hd.msg[i].type == MSG_DRIVER)
			rc = pen__h5_several(h, err);
	}
	/* the table may itself be in the image */
	if (rc >= 0 && image)
		rc = take_image(h, image, err);
	if (rc >= 0 && table)
		rc = take_table(h, table, err);
	pen__h5_head_close(&hd);
	return rc;
}
