/*
 * The file: superblock, loading of structures, checksums. Small structures are
 * read through a cache of 4 KiB blocks, because a store may have a high latency
 * and a header is read in two steps. All loads count against a budget of a
 * multiple of the object's size: a well-formed file rarely loads a
 * structure twice, and a malicious one stops there. Rejects multi-file sets
 * (driver information in the superblock or its extension).
 */
#include "format/hdf5/hdf5_int.h"

#include <inttypes.h>

#include "base/mem.h"
#include "base/quote.h"
#include "codec/lookup3.h"

#define BUDGET_TIMES 8u
#define BUDGET_LEAST ((uint64_t)32 << 20)
#define READ_COST 64u /* every load costs at least this much */

static const char signature[8] = "\x89HDF\r\n\x1a\n";

int pen__h5_bad(const struct pen_h5 *h, struct pen_err *err, const char *what)
{
	return pen__fail(err, P_DAMAGED, h->pk->name, "damaged HDF5 file: %s",
			 what);
}

int pen__h5_cut(const struct pen_h5 *h, struct pen_err *err, const char *what)
{
	return pen__fail(err, P_TRUNCATED, h->pk->name,
			 "truncated or damaged HDF5 file: %s", what);
}

int pen__h5_wrong_sum(const struct pen_h5 *h, struct pen_err *err,
		      const char *what)
{
	return pen__fail(err, P_CHECKSUM, h->pk->name,
			 "damaged HDF5 file: the checksum of %s differs", what);
}

int pen__h5_cannot(const struct pen_h5 *h, struct pen_err *err,
		   const char *what)
{
	return pen__fail(err, P_UNSUPPORTED_FEATURE, h->pk->name, "%s", what);
}

int pen__h5_nomem(const struct pen_h5 *h, struct pen_err *err, size_t n)
{
	return pen__fail_nomem(err, h->pk->name, n);
}

unsigned pen__h5_log2(uint64_t v)
{
	return v ? 63u - (unsigned)__builtin_clzll(v) : 0;
}

unsigned pen__h5_enc(uint64_t most)
{
	return pen__h5_log2(most) / 8 + 1;
}

/* One cached block; NULL with err set if it cannot be read. */
static const uint8_t *cached(struct pen_h5 *h, uint64_t block,
			     struct pen_err *err)
{
	const uint64_t at = block * H5_BLOCK, left = h->pk->size - at;
	const unsigned i = (unsigned)(block % H5_NBLOCKS);
	const size_t n = left < H5_BLOCK ? (size_t)left : H5_BLOCK;

	if (h->block[i] == block + 1)
		return h->cache[i];
	h->block[i] = 0;
	if (h->pk->read(h->pk, at, h->cache[i], n, err) < 0)
		return NULL;
	pen__h5_renew(h, at, h->cache[i], n);
	h->block[i] = block + 1;
	return h->cache[i];
}

/* at + n must be within the object. */
static int read_at(struct pen_h5 *h, uint64_t at, uint8_t *to, size_t n,
		   struct pen_err *err)
{
	if (n > H5_BLOCK) {
		const int rc = h->pk->read(h->pk, at, to, n, err);

		if (rc >= 0)
			pen__h5_renew(h, at, to, n);
		return rc;
	}
	while (n) {
		const size_t skip = (size_t)(at % H5_BLOCK);
		const size_t k = n < H5_BLOCK - skip ? n : H5_BLOCK - skip;
		const uint8_t *p = cached(h, at / H5_BLOCK, err);

		if (!p)
			return err && err->code < 0 ? err->code : PEN_EIO;
		memcpy(to, p + skip, k);
		to += k;
		at += k;
		n -= k;
	}
	return 0;
}

int pen__h5_load(struct pen_h5 *h, uint64_t addr, uint64_t n,
		 struct pen_buf *out, struct pen_err *err)
{
	int rc;

	*out = (struct pen_buf){ 0 };
	if (addr > h->pk->size || n > h->pk->size - addr)
		return pen__h5_cut(h, err, "a structure is outside the file");
	if (h->budget < n + READ_COST)
		return pen__h5_bad(
			h, err, "the structures refer to each other endlessly");
	h->budget -= n + READ_COST;
	out->p = pen__alloc(n ? (size_t)n : 1, 1);
	if (!out->p)
		return pen__h5_nomem(h, err, (size_t)n);
	out->n = out->cap = (size_t)n;
	rc = read_at(h, addr, out->p, out->n, err);
	if (rc < 0)
		pen__buf_fini(out);
	return rc;
}

int pen__h5_load_as(struct pen_h5 *h, struct pen_h5_part part,
		    struct pen_buf *out, struct pen_bytes *b,
		    struct pen_err *err)
{
	const size_t ns = strlen(part.sign), tail = part.sum ? 4 : 0;
	struct pen_bytes end;
	int rc;

	*out = (struct pen_buf){ 0 };
	if (part.n < ns + tail)
		return pen__h5_bad(h, err, "a structure is too short");
	rc = pen__h5_load(h, part.addr, part.n, out, err);
	if (rc < 0)
		return rc;
	*b = pen__bytes(out->p + ns, out->n - ns - tail);
	if (memcmp(out->p, part.sign, ns) != 0) {
		rc = pen__fail(err, P_DAMAGED, h->pk->name,
			       "damaged HDF5 file: expected %s at byte %" PRIu64
			       ", found %s",
			       part.sign, part.addr, pen__quoted(out->p, ns).s);
	} else if (part.sum) {
		end = pen__bytes(out->p + out->n - 4, 4);
		if (pen__lookup3(out->p, out->n - 4) != pen__take_u32(&end))
			rc = pen__h5_wrong_sum(
				h, err, *part.sign ? part.sign : "a header");
	}
	if (rc < 0)
		pen__buf_fini(out);
	return rc;
}

uint64_t pen__h5_addr(const struct pen_h5 *h, struct pen_bytes *b)
{
	const uint64_t v = pen__take_le(b, h->so);
	const uint64_t none = UINT64_MAX >> (64 - 8 * h->so);
	uint64_t at;

	/* an address that overflows is outside the file, too */
	if (b->bad || v == none)
		return PEN_H5_NOWHERE;
	return __builtin_add_overflow(v, h->base, &at) ? PEN_H5_NOWHERE - 1
						       : at;
}

uint64_t pen__h5_len(const struct pen_h5 *h, struct pen_bytes *b)
{
	return pen__take_le(b, h->sl);
}

static bool size_ok(unsigned n)
{
	return n == 2 || n == 4 || n == 8;
}

int pen__h5_several(const struct pen_h5 *h, struct pen_err *err)
{
	return pen__h5_cannot(h, err,
			      "HDF5 data split over several files (family or "
			      "multi driver) is not supported");
}

/* Versions 0 and 1: the root group is a symbol table entry. */
static int old_superblock(struct pen_h5 *h, struct pen_bytes *b,
			  struct pen_err *err)
{
	uint64_t driver;

	pen__take(b, 4); /* versions of parts, reserved */
	h->so = pen__take_u8(b);
	h->sl = pen__take_u8(b);
	pen__take(b, 1 + 2 + 2 + 4 + (h->version ? 4 : 0));
	if (b->bad || !size_ok(h->so) || !size_ok(h->sl))
		return pen__h5_bad(h, err,
				   "the sizes in the superblock are invalid");
	h->base = 0;
	h->base = pen__h5_addr(h, b);
	pen__h5_addr(h, b); /* free space */
	pen__h5_addr(h, b); /* end of file */
	driver = pen__h5_addr(h, b);
	pen__take(b, h->so); /* name of the root group */
	h->root = pen__h5_addr(h, b);
	if (!b->bad && driver != PEN_H5_NOWHERE)
		return pen__h5_several(h, err);
	return b->bad ? pen__h5_bad(h, err, "the superblock is truncated") : 0;
}

static int new_superblock(struct pen_h5 *h, struct pen_bytes *b,
			  const uint8_t *start, struct pen_err *err)
{
	uint32_t sum;

	h->so = pen__take_u8(b);
	h->sl = pen__take_u8(b);
	pen__take_u8(b); /* flags of writers */
	if (b->bad || !size_ok(h->so) || !size_ok(h->sl))
		return pen__h5_bad(h, err,
				   "the sizes in the superblock are invalid");
	h->base = 0;
	h->base = pen__h5_addr(h, b);
	h->extension = pen__h5_addr(h, b);
	pen__h5_addr(h, b); /* end of file */
	h->root = pen__h5_addr(h, b);
	sum = pen__lookup3(start, (size_t)(b->p - start));
	if (pen__take_u32(b) != sum || b->bad)
		return pen__h5_wrong_sum(h, err, "the superblock");
	return 0;
}

static uint64_t moved(const struct pen_h5 *h, uint64_t addr, uint64_t base)
{
	return addr == PEN_H5_NOWHERE ? addr : addr - h->base + base;
}

static int superblock_at(struct pen_h5 *h, uint64_t at, struct pen_err *err)
{
	uint64_t left = h->pk->size - at;
	struct pen_buf buf;
	struct pen_bytes b;
	int rc;

	rc = pen__h5_load(h, at, left < 128 ? left : 128, &buf, err);
	if (rc < 0)
		return rc;
	b = pen__bytes(buf.p, buf.n);
	pen__take(&b, 8);
	h->version = pen__take_u8(&b);
	if (h->version < 2)
		rc = old_superblock(h, &b, err);
	else if (h->version < 4)
		rc = new_superblock(h, &b, buf.p, err);
	else
		rc = pen__fail(err, P_UNSUPPORTED_FEATURE, h->pk->name,
			       "HDF5 superblock version %u is not supported",
			       h->version);
	pen__buf_fini(&buf);
	/* An embedded file keeps its own base of 0: what counts is where the
	 * superblock was found. */
	if (rc >= 0 && h->base != at) {
		h->root = moved(h, h->root, at);
		h->extension = moved(h, h->extension, at);
		h->base = at;
	}
	if (rc >= 0 && h->root >= h->pk->size)
		rc = pen__h5_cut(h, err, "the root group is outside the file");
	return rc;
}

static int find_superblock(struct pen_h5 *h, struct pen_err *err)
{
	const size_t n = h->pk->size < 8 ? (size_t)h->pk->size : 8;
	uint8_t s[8], first[8] = { 0 };
	int rc = n ? read_at(h, 0, first, n, err) : 0;

	if (rc < 0)
		return rc;
	for (uint64_t at = 0; at + 8 <= h->pk->size; at = at ? at * 2 : 512) {
		rc = read_at(h, at, s, 8, err);
		if (rc < 0)
			return rc;
		if (memcmp(s, signature, 8) == 0)
			return superblock_at(h, at, err);
	}
	return pen__fail(
		err, P_NOT_THIS_FORMAT, h->pk->name,
		"not an HDF5 file: it starts with %s and has no HDF5 signature",
		pen__quoted(first, n).s);
}

int pen__h5_open(struct pen_h5 **out, struct pen_peek *pk, struct pen_err *err)
{
	struct pen_h5 *h = pen__alloc(1, sizeof(*h));
	int rc;

	*out = NULL;
	if (!h)
		return pen__fail_nomem(err, pk->name, sizeof(*h));
	memset(h, 0, offsetof(struct pen_h5, cache));
	h->pk = pk;
	h->so = h->sl = 8;
	h->extension = PEN_H5_NOWHERE;
	h->budget = pk->size < UINT64_MAX / BUDGET_TIMES - BUDGET_LEAST
			    ? pk->size * BUDGET_TIMES + BUDGET_LEAST
			    : UINT64_MAX;
	rc = find_superblock(h, err);
	if (rc >= 0 && h->extension != PEN_H5_NOWHERE)
		rc = pen__h5_extend(h, h->extension, err);
	if (rc < 0) {
		pen__h5_close(h);
		return rc;
	}
	*out = h;
	return 0;
}

void pen__h5_close(struct pen_h5 *h)
{
	if (!h)
		return;
	pen__buf_fini(&h->strings);
	pen__buf_fini(&h->image);
	pen__free(h->piece);
	pen__free(h);
}

uint64_t pen__h5_root(const struct pen_h5 *h)
{
	return h->root;
}

unsigned pen__h5_superblock(const struct pen_h5 *h)
{
	return h->version;
}
