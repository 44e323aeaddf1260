/*
 * Chunk indexes that are arrays: fixed arrays, for shapes that cannot grow, and
 * extensible arrays, for shapes that can grow along one axis. Both have an
 * element per chunk (address; with filters also size and mask) in blocks. Large
 * blocks are divided into pages; pages may be missing if they were never
 * written. The checksum of every block is verified.
 */
#include "format/hdf5/hdf5_int.h"

struct array {
	struct pen_h5_walk *w;
	unsigned element; /* bytes */
	bool filtered;
	unsigned page_bits;
	/* extensible only */
	unsigned bits, off_size;
	uint64_t first, least, pointers;
	uint64_t end; /* elements that can be set */
};

static int bad(const struct array *a, const char *what)
{
	return pen__h5_bad(a->w->h, a->w->err, what);
}

/* n elements, starting with number `at`. */
static int take_elements(struct array *a, struct pen_bytes *b, uint64_t at,
			 uint64_t n)
{
	const struct pen_h5_data *d = a->w->d;
	const unsigned so = a->w->h->so;
	int rc = 0;

	for (uint64_t i = 0; rc >= 0 && i < n; i++) {
		const uint64_t addr = pen__h5_addr(a->w->h, b);
		uint64_t size = d->chunk_bytes;
		uint32_t mask = 0;

		if (a->filtered) {
			size = pen__take_le(b, a->element - so - 4);
			mask = pen__take_u32(b);
		}
		if (b->bad)
			return bad(a, "the chunk index is truncated");
		rc = pen__h5_chunk_put(a->w, at + i, addr, size, mask);
	}
	return rc;
}

static bool check_element(struct array *a, unsigned client)
{
	const unsigned so = a->w->h->so;

	a->filtered = client == 1;
	if (client > 1 || a->filtered != (a->w->d->filters.n > 0))
		return false;
	return a->filtered ? a->element > so + 4 && a->element <= so + 12
			   : a->element == so;
}

static bool bit(const uint8_t *bits, uint64_t i)
{
	return bits[i / 8] & 0x80 >> (i % 8);
}

/* One page: elements and a checksum. */
static int take_page(struct array *a, uint64_t addr, uint64_t at, uint64_t n)
{
	struct pen_buf buf;
	struct pen_bytes b;
	int rc = pen__h5_load_as(
		a->w->h,
		(struct pen_h5_part){ addr, n * a->element + 4, "", true },
		&buf, &b, a->w->err);

	if (rc < 0)
		return rc;
	rc = take_elements(a, &b, at, n);
	pen__buf_fini(&buf);
	return rc;
}

/*
 * The pages of a block whose prefix ends at addr, for n elements from number
 * `at` on: those that `init` (from bit `first` on) marks as written.
 */
static int take_pages(struct array *a, uint64_t addr, uint64_t at, uint64_t n,
		      const uint8_t *init, uint64_t first)
{
	const uint64_t page = (uint64_t)1 << a->page_bits;
	const uint64_t step = page * a->element + 4;
	int rc = 0;

	for (uint64_t i = 0; rc >= 0 && i * page < n; i++) {
		uint64_t left = n - i * page;

		if (bit(init, first + i))
			rc = take_page(a, addr + i * step, at + i * page,
				       left < page ? left : page);
	}
	return rc;
}

/* ---- fixed ---- */

static int fixed_block(struct array *a, uint64_t addr, uint64_t n)
{
	struct pen_h5 *h = a->w->h;
	const uint64_t page = (uint64_t)1 << a->page_bits;
	const bool paged = n > page;
	const uint64_t nbits = paged ? (n - 1) / page + 1 : 0;
	const uint64_t head = 6 + h->so + (nbits + 7) / 8;
	struct pen_buf buf;
	struct pen_bytes b;
	int rc;

	rc = pen__h5_load_as(
		h,
		(struct pen_h5_part){ addr,
				      head + (paged ? 0 : n * a->element) + 4,
				      "FADB", true },
		&buf, &b, a->w->err);
	if (rc < 0)
		return rc;
	pen__take(&b, 2u + h->so);
	rc = paged ? take_pages(a, addr + head + 4, 0, n, b.p, 0)
		   : take_elements(a, &b, 0, n);
	pen__buf_fini(&buf);
	return rc;
}

int pen__h5_fixed_array(struct pen_h5_walk *w)
{
	struct array a = { .w = w };
	struct pen_buf buf;
	struct pen_bytes b;
	unsigned client;
	uint64_t n, addr;
	int rc;

	rc = pen__h5_load_as(w->h,
			     (struct pen_h5_part){ w->d->addr,
						   12u + w->h->sl + w->h->so,
						   "FAHD", true },
			     &buf, &b, w->err);
	if (rc < 0)
		return rc;
	pen__take_u8(&b);
	client = pen__take_u8(&b);
	a.element = pen__take_u8(&b);
	a.page_bits = pen__take_u8(&b);
	n = pen__h5_len(w->h, &b);
	addr = pen__h5_addr(w->h, &b);
	pen__buf_fini(&buf);
	if (b.bad || !check_element(&a, client) || a.page_bits > 32 ||
	    n != w->ncells || n > w->h->pk->size * 8)
		return bad(&a, "the fixed array of the chunk index is invalid");
	return addr == PEN_H5_NOWHERE ? 0 : fixed_block(&a, addr, n);
}

/* ---- extensible ---- */

/* Super block s: number of data blocks, and of elements in each. */
static uint64_t nblocks_of(unsigned s)
{
	return (uint64_t)1 << (s / 2);
}

static uint64_t nelements_of(const struct array *a, unsigned s)
{
	return a->least << ((s + 1) / 2);
}

static int data_block(struct array *a, uint64_t addr, uint64_t at, uint64_t n,
		      const uint8_t *init, uint64_t first)
{
	struct pen_h5 *h = a->w->h;
	const bool paged = n > (uint64_t)1 << a->page_bits;
	const uint64_t head = 6 + h->so + a->off_size;
	struct pen_buf buf;
	struct pen_bytes b;
	int rc;

	if (addr == PEN_H5_NOWHERE)
		return 0;
	rc = pen__h5_load_as(
		h,
		(struct pen_h5_part){ addr,
				      head + (paged ? 0 : n * a->element) + 4,
				      "EADB", true },
		&buf, &b, a->w->err);
	if (rc < 0)
		return rc;
	pen__take(&b, 2u + h->so + a->off_size);
	if (paged && !init)
		rc = bad(a, "a block of the chunk index has unexpected pages");
	else if (paged)
		rc = take_pages(a, addr + head + 4, at, n, init, first);
	else
		rc = take_elements(a, &b, at, n);
	pen__buf_fini(&buf);
	return rc;
}

static int super_block(struct array *a, uint64_t addr, unsigned s, uint64_t at)
{
	struct pen_h5 *h = a->w->h;
	const uint64_t nblocks = nblocks_of(s), n = nelements_of(a, s);
	const uint64_t page = (uint64_t)1 << a->page_bits;
	const uint64_t npages = n > page ? n / page : 0;
	const uint64_t nbits = nblocks * ((npages + 7) / 8);
	const uint8_t *init;
	struct pen_buf buf;
	struct pen_bytes b;
	int rc;

	if (addr == PEN_H5_NOWHERE)
		return 0;
	/* a super block exists only if the file has one of its data blocks */
	if (nblocks > h->pk->size || n > h->pk->size)
		return pen__h5_cut(
			h, a->w->err,
			"a block of the chunk index is outside the file");
	rc = pen__h5_load_as(h,
			     (struct pen_h5_part){ addr,
						   6 + h->so + a->off_size +
							   nbits +
							   nblocks * h->so + 4,
						   "EASB", true },
			     &buf, &b, a->w->err);
	if (rc < 0)
		return rc;
	pen__take(&b, 2u + h->so + a->off_size);
	init = pen__take(&b, nbits);
	for (uint64_t i = 0; rc >= 0 && i < nblocks; i++)
		rc = data_block(a, pen__h5_addr(h, &b), at + i * n, n,
				npages ? init : NULL, i * npages);
	pen__buf_fini(&buf);
	return rc;
}

/* Elements in the index block, then data blocks, then super blocks. */
static int index_block(struct array *a, uint64_t addr)
{
	struct pen_h5 *h = a->w->h;
	const unsigned nsuper = 1 + a->bits - pen__h5_log2(a->least);
	const unsigned direct = 2 * pen__h5_log2(a->pointers);
	const uint64_t ndata = 2 * (a->pointers - 1);
	uint64_t at = a->first;
	struct pen_buf buf;
	struct pen_bytes b;
	int rc;

	if (direct > nsuper)
		return bad(
			a,
			"the extensible array of the chunk index is invalid");
	rc = pen__h5_load_as(h,
			     (struct pen_h5_part){
				     addr,
				     6 + h->so + a->first * a->element +
					     (ndata + nsuper - direct) * h->so +
					     4,
				     "EAIB", true },
			     &buf, &b, a->w->err);
	if (rc < 0)
		return rc;
	pen__take(&b, 2u + h->so);
	rc = take_elements(a, &b, 0, a->first);
	for (unsigned s = 0; rc >= 0 && s < nsuper; s++) {
		const uint64_t n = nelements_of(a, s), k = nblocks_of(s);

		if (at >= a->end)
			break;
		if (s >= direct)
			rc = super_block(a, pen__h5_addr(h, &b), s, at);
		for (uint64_t i = 0; s < direct && rc >= 0 && i < k; i++)
			rc = data_block(a, pen__h5_addr(h, &b), at + i * n, n,
					NULL, 0);
		at += n * k;
	}
	pen__buf_fini(&buf);
	return rc;
}

int pen__h5_extensible_array(struct pen_h5_walk *w)
{
	struct array a = { .w = w };
	struct pen_buf buf;
	struct pen_bytes b;
	unsigned client;
	uint64_t addr;
	int rc;

	rc = pen__h5_load_as(w->h,
			     (struct pen_h5_part){
				     w->d->addr, 16u + 6u * w->h->sl + w->h->so,
				     "EAHD", true },
			     &buf, &b, w->err);
	if (rc < 0)
		return rc;
	pen__take_u8(&b);
	client = pen__take_u8(&b);
	a.element = pen__take_u8(&b);
	a.bits = pen__take_u8(&b);
	a.first = pen__take_u8(&b);
	a.least = pen__take_u8(&b);
	a.pointers = pen__take_u8(&b);
	a.page_bits = pen__take_u8(&b);
	pen__take(&b, 4u * w->h->sl);
	a.end = pen__h5_len(w->h, &b); /* one past the last element set */
	pen__take(&b, w->h->sl);
	addr = pen__h5_addr(w->h, &b);
	pen__buf_fini(&buf);
	a.off_size = (a.bits + 7) / 8;
	if (b.bad || !check_element(&a, client) || a.bits > 62 || !a.least ||
	    (a.least & (a.least - 1)) || !a.pointers ||
	    (a.pointers & (a.pointers - 1)) || a.page_bits > 32 ||
	    pen__h5_log2(a.least) > a.bits)
		return bad(
			&a,
			"the extensible array of the chunk index is invalid");
	return addr == PEN_H5_NOWHERE ? 0 : index_block(&a, addr);
}
