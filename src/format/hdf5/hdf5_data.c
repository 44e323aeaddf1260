/*
 * The header of a data set: shape, type, fill value, filters and the location
 * of its bytes (layout messages 1 to 4). Sizes are checked against each other
 * here, once: contiguous bytes against shape and type, rank and element of
 * chunks against those of the data. Rejects virtual data sets and data in other
 * files.
 */
#include "format/hdf5/hdf5_int.h"

#include <inttypes.h>

struct reader {
	struct pen_h5 *h;
	struct pen_h5_data *d;
	const char *where;
	struct pen_err *err;
};

static int bad(const struct reader *r, const char *what)
{
	return pen__fail(r->err, P_DAMAGED, r->where, "damaged: %s", what);
}

static int cannot(const struct reader *r, const char *what)
{
	return pen__fail(r->err, P_UNSUPPORTED_FEATURE, r->where, "%s", what);
}

static int take_type(struct reader *r)
{
	const struct pen_h5_msg *m = pen__h5_msg(&r->d->head, PEN_H5_MSG_TYPE);
	struct pen_h5_head other = { 0 };
	struct pen_bytes b;
	int rc;

	if (!m)
		return bad(r, "the type is missing");
	rc = pen__h5_shared(r->h, m, &other, &m, r->err);
	if (rc >= 0) {
		b = pen__bytes(m->p, m->n);
		if (!pen__h5_take_type(&b, &r->d->type))
			rc = bad(r, "the type is invalid");
	}
	/* the bytes of the type must outlive the header of the committed type
	 */
	if (rc >= 0 && other.nblocks) {
		if (r->d->head.nblocks + other.nblocks > 32)
			rc = cannot(r, "object headers of more than 32 blocks "
				       "are not supported");
		for (uint32_t i = 0; rc >= 0 && i < other.nblocks; i++) {
			r->d->head.block[r->d->head.nblocks++] = other.block[i];
			other.block[i] = (struct pen_buf){ 0 };
		}
	}
	pen__h5_head_close(&other);
	return rc;
}

/* Passes the body of a message to `take`; does nothing if it is missing. */
static int with_message(struct reader *r, enum pen_h5_msg_type type,
			int (*take)(struct reader *, struct pen_bytes))
{
	const struct pen_h5_msg *m = pen__h5_msg(&r->d->head, type);
	struct pen_h5_head other = { 0 };
	int rc;

	if (!m)
		return 0;
	rc = pen__h5_shared(r->h, m, &other, &m, r->err);
	if (rc >= 0)
		rc = take(r, pen__bytes(m->p, m->n));
	pen__h5_head_close(&other);
	return rc;
}

static int take_space(struct reader *r, struct pen_bytes b)
{
	return pen__h5_take_space(r->h, &b, &r->d->space)
		       ? 0
		       : bad(r, "the shape is invalid");
}

static int take_fill_old(struct reader *r, struct pen_bytes b)
{
	struct pen_h5_data *d = r->d;
	const uint32_t n = pen__take_u32(&b);
	const uint8_t *p = pen__take(&b, n);

	/* zeros are the default, so a lost fill value does no harm */
	if (!p || !n || n != d->type.size || n > sizeof(d->fill))
		return 0;
	d->has_fill = true;
	memcpy(d->fill, p, n);
	return 0;
}

static int take_fill(struct reader *r, struct pen_bytes b)
{
	const unsigned version = pen__take_u8(&b);
	unsigned defined;

	if (version < 3) {
		pen__take(&b, 2);
		defined = version == 1 ? 1 : pen__take_u8(&b);
		if (version == 1)
			pen__take_u8(&b);
	} else {
		defined = pen__take_u8(&b) & 0x20;
	}
	return defined ? take_fill_old(r, b) : 0;
}

static int take_filter(struct reader *r, struct pen_bytes *b, unsigned version)
{
	struct pen_filters *fs = &r->d->filters;
	const unsigned id = pen__take_u16(b);
	unsigned name = 0, n;

	if (version == 1 || id >= 256)
		name = pen__take_u16(b);
	pen__take_u16(b); /* flags */
	n = pen__take_u16(b);
	pen__take(b, version == 1 ? ((uint64_t)name + 7) / 8 * 8 : name);
	fs->f[fs->n].id = (uint16_t)id;
	fs->f[fs->n++].item = n ? pen__take_u32(b) : r->d->type.size;
	pen__take(b, n ? (n - 1) * (uint64_t)4 : 0);
	if (version == 1 && n % 2)
		pen__take(b, 4);
	return b->bad ? bad(r, "the filter list is invalid") : 0;
}

static int take_filters(struct reader *r, struct pen_bytes b)
{
	const unsigned version = pen__take_u8(&b), n = pen__take_u8(&b);
	int rc = 0;

	if (version == 1)
		pen__take(&b, 6);
	if (b.bad || version < 1 || version > 2)
		return bad(r, "the filter list is invalid");
	if (n > PEN_FILTERS)
		return cannot(r, "more than 8 filters are not supported");
	while (rc >= 0 && r->d->filters.n < n)
		rc = take_filter(r, &b, version);
	return rc;
}

/* Chunk lengths, followed by the element size. */
static int take_chunk(struct reader *r, struct pen_bytes *b, unsigned rank,
		      unsigned width)
{
	struct pen_h5_data *d = r->d;
	uint64_t v, bytes = d->type.size;

	if (rank != d->space.ndim + 1 || width < 1 || width > 8)
		return bad(
			r,
			"the rank of the chunks differs from that of the data");
	for (uint32_t i = 0; i < d->space.ndim; i++) {
		v = pen__take_le(b, width);
		if (!v || v > UINT32_MAX ||
		    __builtin_mul_overflow(bytes, v, &bytes))
			return bad(r, "the chunk shape is invalid");
		d->chunk[i] = (uint32_t)v;
	}
	v = pen__take_le(b, width);
	if (b->bad || v != d->type.size)
		return bad(r, "the element size of the chunks differs from "
			      "that of the type");
	if (bytes > UINT32_MAX)
		return bad(r, "the chunks are larger than 4 GiB");
	d->chunk_bytes = bytes;
	return 0;
}

/* Layout 4: shape and type of index, then its address. */
static int take_chunked4(struct reader *r, struct pen_bytes *b)
{
	const unsigned flags = pen__take_u8(b), rank = pen__take_u8(b);
	const unsigned width = pen__take_u8(b);
	struct pen_h5_data *d = r->d;
	int rc = take_chunk(r, b, rank, width);
	unsigned kind;

	if (rc < 0)
		return rc;
	kind = pen__take_u8(b);
	if (b->bad || kind < 1 || kind > 5)
		return bad(r, "the type of the chunk index is invalid");
	d->index = (enum pen_h5_index)kind;
	d->edge_plain = flags & 1;
	if (d->index == PEN_H5_SINGLE && (flags & 2)) {
		d->single_size = pen__h5_len(r->h, b);
		d->single_mask = pen__take_u32(b);
	} else if (d->index == PEN_H5_SINGLE) {
		d->single_size = d->chunk_bytes;
	}
	pen__take(b, d->index == PEN_H5_FIXED	     ? 1
		     : d->index == PEN_H5_EXTENSIBLE ? 5
		     : d->index == PEN_H5_BTREE2     ? 6
						     : 0);
	d->addr = pen__h5_addr(r->h, b);
	return b->bad ? bad(r, "the layout is truncated") : 0;
}

static int take_compact(struct reader *r, struct pen_bytes *b, uint64_t n,
			const struct pen_h5_msg *m)
{
	r->d->layout = PEN_H5_COMPACT;
	r->d->nbytes = n;
	r->d->addr = m->at + (uint64_t)(b->p - m->p);
	r->d->kept.p = pen__take(b, n);
	r->d->kept.n = (size_t)n;
	if (b->bad)
		return bad(r, "the data is truncated");
	if (!pen__h5_is_newer(r->h, r->d->addr, n))
		r->d->kept = (struct pen_span){ NULL, 0 };
	return 0;
}

static int take_old(struct reader *r, struct pen_bytes *b,
		    const struct pen_h5_msg *m)
{
	const unsigned rank = pen__take_u8(b), kind = pen__take_u8(b);
	struct pen_h5_data *d = r->d;

	pen__take(b, 5);
	if (kind)
		d->addr = pen__h5_addr(r->h, b);
	if (kind == 2) {
		d->layout = PEN_H5_CHUNKED;
		return take_chunk(r, b, rank, 4);
	}
	pen__take(b, 4 * (uint64_t)rank);
	if (kind == 0)
		return take_compact(r, b, pen__take_u32(b), m);
	d->layout = PEN_H5_CONTIGUOUS;
	d->nbytes = UINT64_MAX; /* given by shape and type */
	return b->bad || kind > 2 ? bad(r, "the layout is invalid") : 0;
}

static int take_layout(struct reader *r)
{
	const struct pen_h5_msg *m =
		pen__h5_msg(&r->d->head, PEN_H5_MSG_LAYOUT);
	struct pen_bytes b = pen__bytes(m->p, m->n);
	const unsigned version = pen__take_u8(&b);
	unsigned kind, rank;

	if (version == 1 || version == 2)
		return take_old(r, &b, m);
	kind = pen__take_u8(&b);
	if (b.bad || version < 3 || version > 4 || kind > 3)
		return cannot(r, "the version of the layout is unknown");
	if (kind == 3)
		return cannot(r, "virtual data sets (made of data sets of "
				 "other files) are not supported");
	if (kind == 0)
		return take_compact(r, &b, pen__take_u16(&b), m);
	if (kind == 1) {
		r->d->layout = PEN_H5_CONTIGUOUS;
		r->d->addr = pen__h5_addr(r->h, &b);
		r->d->nbytes = pen__h5_len(r->h, &b);
		return b.bad ? bad(r, "the layout is truncated") : 0;
	}
	r->d->layout = PEN_H5_CHUNKED;
	if (version == 4)
		return take_chunked4(r, &b);
	rank = pen__take_u8(&b);
	r->d->addr = pen__h5_addr(r->h, &b);
	return take_chunk(r, &b, rank, 4);
}

/* The stored bytes must match shape and type, and be inside the file. */
static int check_extent(struct reader *r)
{
	struct pen_h5_data *d = r->d;
	const uint64_t size = r->h->pk->size;
	uint64_t n, bytes;

	if (!pen__h5_count(&d->space, &n) ||
	    __builtin_mul_overflow(n, d->type.size, &bytes))
		return bad(r, "the size of the data overflows 64 bits");
	if (d->layout == PEN_H5_CHUNKED)
		return 0;
	if (d->filters.n)
		return bad(r, "the data is filtered but not chunked");
	if (d->nbytes == UINT64_MAX)
		d->nbytes = bytes;
	if (d->addr == PEN_H5_NOWHERE)
		return 0;
	if (d->nbytes < bytes)
		return pen__fail(
			r->err, P_DAMAGED, r->where,
			"damaged: %" PRIu64
			" bytes are stored, but the shape needs %" PRIu64,
			d->nbytes, bytes);
	d->nbytes = bytes;
	if (d->addr > size || bytes > size - d->addr)
		return pen__fail(r->err, P_TRUNCATED, r->where,
				 "truncated: %" PRIu64
				 " bytes are needed at offset %" PRIu64
				 ", but the file ends at %" PRIu64,
				 bytes, d->addr, size);
	return 0;
}

static int read_all(struct reader *r)
{
	const bool fill = pen__h5_msg(&r->d->head, PEN_H5_MSG_FILL);
	int rc;

	if (!pen__h5_is_dataset(&r->d->head))
		return pen__fail(r->err, P_NO_SUCH_PART, r->where,
				 "not a data set");
	if (pen__h5_msg(&r->d->head, PEN_H5_MSG_EXTERNAL))
		return cannot(r, "data in another file (external storage) is "
				 "not supported");
	rc = with_message(r, PEN_H5_MSG_SPACE, take_space);
	if (rc >= 0)
		rc = take_type(r);
	if (rc >= 0)
		rc = with_message(r, PEN_H5_MSG_FILTERS, take_filters);
	if (rc >= 0)
		rc = take_layout(r);
	if (rc >= 0 && fill)
		rc = with_message(r, PEN_H5_MSG_FILL, take_fill);
	else if (rc >= 0)
		rc = with_message(r, PEN_H5_MSG_FILL_OLD, take_fill_old);
	return rc < 0 ? rc : check_extent(r);
}

int pen__h5_data_open(struct pen_h5 *h, uint64_t addr, struct pen_h5_data *d,
		      const char *where, struct pen_err *err)
{
	struct reader r = { h, d, where, err };
	int rc;

	memset(d, 0, sizeof(*d));
	d->addr = PEN_H5_NOWHERE;
	rc = pen__h5_head_open(h, addr, &d->head, err);
	if (rc < 0)
		return rc;
	rc = read_all(&r);
	if (rc < 0)
		pen__h5_data_close(d);
	return rc;
}

void pen__h5_data_close(struct pen_h5_data *d)
{
	pen__h5_head_close(&d->head);
}
