/*
 * Object headers, versions 1 and 2: a list of messages in one or more blocks.
 * The checksums of version 2 blocks are verified. Rejects headers of more than
 * 32 blocks.
 */
#include "format/hdf5/hdf5_int.h"

#include "base/mem.h"

#define V2_ORDER 0x04
#define V2_PHASE 0x10
#define V2_TIMES 0x20
#define SHARED 0x02

/* A block to be read. */
struct more {
	uint64_t addr, n;
};

struct reader {
	struct pen_h5 *h;
	struct pen_h5_head *hd;
	struct pen_err *err;
	struct more todo[32];
	uint32_t ntodo;
	bool v2, order;
};

static int add(struct reader *r, const struct pen_h5_msg *m)
{
	struct pen_h5_head *hd = r->hd;
	struct pen_h5_msg *p;
	size_t cap;

	if (hd->n == hd->cap) {
		cap = hd->cap ? hd->cap * 2 : 16;
		p = pen__realloc(hd->msg, cap, sizeof(*p));
		if (!p)
			return pen__h5_nomem(r->h, r->err, cap * sizeof(*p));
		hd->msg = p;
		hd->cap = cap;
	}
	hd->msg[hd->n++] = *m;
	return 0;
}

static int follow(struct reader *r, const struct pen_h5_msg *m)
{
	struct pen_bytes b = pen__bytes(m->p, m->n);
	const uint64_t addr = pen__h5_addr(r->h, &b);
	const uint64_t n = pen__h5_len(r->h, &b);

	if (b.bad)
		return pen__h5_bad(r->h, r->err, "a continuation is truncated");
	if (r->ntodo == 32)
		return pen__h5_cannot(r->h, r->err,
				      "object headers of more than 32 blocks "
				      "are not supported");
	r->todo[r->ntodo++] = (struct more){ addr, n };
	return 0;
}

/* The messages of one block; at: offset of b in the object. */
static int take_messages(struct reader *r, struct pen_bytes *b, uint64_t at)
{
	const uint8_t *const start = b->p;
	const size_t head = r->v2 ? 4u + (r->order ? 2 : 0) : 8;
	int rc = 0;

	/* a rest too short for a message is a gap */
	while (rc >= 0 && pen__bytes_left(b) >= head) {
		struct pen_h5_msg m = { 0 };

		m.type = r->v2 ? pen__take_u8(b) : pen__take_u16(b);
		m.n = pen__take_u16(b);
		m.flags = pen__take_u8(b);
		pen__take(b, r->v2 ? (r->order ? 2 : 0) : 3);
		m.at = at + (uint64_t)(b->p - start);
		m.p = pen__take(b, m.n);
		if (b->bad)
			return pen__h5_bad(r->h, r->err,
					   "a message is longer "
					   "than its object header");
		rc = m.type == PEN_H5_MSG_MORE ? follow(r, &m)
		     : m.type		       ? add(r, &m)
					       : 0;
	}
	return rc;
}

/* Loads a block into the header, which owns it from then on. */
static int load(struct reader *r, uint64_t addr, uint64_t n, const char *sign,
		struct pen_bytes *b)
{
	struct pen_h5_head *hd = r->hd;
	int rc;

	if (hd->nblocks == 32)
		return pen__h5_cannot(r->h, r->err,
				      "object headers of more than 32 blocks "
				      "are not supported");
	rc = pen__h5_load_as(r->h, (struct pen_h5_part){ addr, n, sign, r->v2 },
			     &hd->block[hd->nblocks], b, r->err);
	if (rc >= 0)
		hd->nblocks++;
	return rc;
}

static int open_v1(struct reader *r, uint64_t addr, struct pen_bytes *in)
{
	struct pen_bytes b;
	uint32_t n;
	int rc;

	pen__take(in, 2 + 2 + 4);
	n = pen__take_u32(in);
	if (in->bad)
		return pen__h5_bad(r->h, r->err,
				   "an object header is truncated");
	rc = load(r, addr + 16, n, "", &b);
	return rc < 0 ? rc : take_messages(r, &b, addr + 16);
}

static int open_v2(struct reader *r, uint64_t addr, struct pen_bytes *in)
{
	const uint8_t *start = in->p;
	uint8_t flags;
	uint64_t n, head;
	struct pen_bytes b;
	int rc;

	pen__take(in, 4);
	if (pen__take_u8(in) != 2)
		return pen__h5_bad(
			r->h, r->err,
			"the version of an object header is unknown");
	flags = pen__take_u8(in);
	pen__take(in, (flags & V2_TIMES ? 16 : 0) + (flags & V2_PHASE ? 4 : 0));
	n = pen__take_le(in, 1u << (flags & 3));
	head = (uint64_t)(in->p - start);
	if (in->bad || n > r->h->pk->size)
		return pen__h5_bad(r->h, r->err,
				   "an object header is truncated");
	r->v2 = true;
	r->order = flags & V2_ORDER;
	rc = load(r, addr, head + n + 4, "OHDR", &b);
	if (rc < 0)
		return rc;
	pen__take(&b, head - 4);
	return take_messages(r, &b, addr + head);
}

static int open_all(struct reader *r, uint64_t addr)
{
	const uint64_t size = r->h->pk->size;
	struct pen_buf start;
	struct pen_bytes b;
	int rc;

	if (addr >= size)
		return pen__h5_cut(r->h, r->err,
				   "an object is outside the file");
	rc = pen__h5_load(r->h, addr, size - addr < 40 ? size - addr : 40,
			  &start, r->err);
	if (rc < 0)
		return rc;
	b = pen__bytes(start.p, start.n);
	if (start.n > 4 && memcmp(start.p, "OHDR", 4) == 0)
		rc = open_v2(r, addr, &b);
	else if (start.n > 16 && start.p[0] == 1)
		rc = open_v1(r, addr, &b);
	else
		rc = pen__h5_bad(r->h, r->err, "an object header is missing");
	pen__buf_fini(&start);
	for (uint32_t i = 0; rc >= 0 && i < r->ntodo; i++) {
		rc = load(r, r->todo[i].addr, r->todo[i].n, r->v2 ? "OCHK" : "",
			  &b);
		if (rc >= 0)
			rc = take_messages(r, &b,
					   r->todo[i].addr + (r->v2 ? 4 : 0));
	}
	return rc;
}

int pen__h5_head_open(struct pen_h5 *h, uint64_t addr, struct pen_h5_head *hd,
		      struct pen_err *err)
{
	struct reader r = { .h = h, .hd = hd, .err = err };
	int rc;

	memset(hd, 0, sizeof(*hd));
	rc = open_all(&r, addr);
	if (rc < 0)
		pen__h5_head_close(hd);
	return rc;
}

void pen__h5_head_close(struct pen_h5_head *hd)
{
	for (uint32_t i = 0; i < hd->nblocks; i++)
		pen__buf_fini(&hd->block[i]);
	pen__free(hd->msg);
	hd->msg = NULL;
	hd->n = hd->cap = hd->nblocks = 0;
}

const struct pen_h5_msg *pen__h5_msg(const struct pen_h5_head *hd,
				     enum pen_h5_msg_type type)
{
	for (size_t i = 0; i < hd->n; i++)
		if (hd->msg[i].type == type)
			return &hd->msg[i];
	return NULL;
}

bool pen__h5_is_group(const struct pen_h5_head *hd)
{
	return pen__h5_msg(hd, PEN_H5_MSG_SYMBOLS) ||
	       pen__h5_msg(hd, PEN_H5_MSG_LINK_INFO) ||
	       pen__h5_msg(hd, PEN_H5_MSG_LINK);
}

bool pen__h5_is_dataset(const struct pen_h5_head *hd)
{
	return pen__h5_msg(hd, PEN_H5_MSG_LAYOUT) &&
	       pen__h5_msg(hd, PEN_H5_MSG_SPACE);
}

/* Wraps a message of the shared message table in a header of its own. */
static int from_table(struct pen_h5 *h, const struct pen_h5_msg *m,
		      struct pen_bytes *b, struct pen_h5_head *hd,
		      struct pen_err *err)
{
	struct reader r = { .h = h, .hd = hd, .err = err };
	const uint8_t *id = pen__take(b, PEN_H5_SHARED_ID);
	struct pen_buf *buf = &hd->block[0];
	int rc;

	if (!id)
		return pen__h5_bad(h, err, "a shared message is truncated");
	hd->nblocks = 1;
	rc = pen__h5_shared_get(h, m->type, id, buf, err);
	if (rc >= 0 && buf->n > UINT32_MAX)
		rc = pen__h5_bad(h, err, "a shared message is too long");
	return rc < 0 ? rc
		      : add(&r, &(struct pen_h5_msg){ .p = buf->p,
						      .n = (uint32_t)buf->n,
						      .type = m->type });
}

int pen__h5_shared(struct pen_h5 *h, const struct pen_h5_msg *m,
		   struct pen_h5_head *hd, const struct pen_h5_msg **out,
		   struct pen_err *err)
{
	struct pen_bytes b = pen__bytes(m->p, m->n);
	uint8_t version, kind;
	uint64_t addr;
	int rc;

	*out = m;
	if (!(m->flags & SHARED))
		return 0;
	version = pen__take_u8(&b);
	kind = pen__take_u8(&b);
	if (version == 3 && kind == 1) {
		rc = from_table(h, m, &b, hd, err);
	} else {
		if (version == 1)
			pen__take(&b, 6u + h->sl); /* address of a local heap */
		addr = pen__h5_addr(h, &b);
		if (b.bad || version < 1 || version > 3)
			return pen__h5_bad(h, err,
					   "a shared message is truncated");
		rc = pen__h5_head_open(h, addr, hd, err);
	}
	if (rc < 0)
		return rc;
	*out = pen__h5_msg(hd, (enum pen_h5_msg_type)m->type);
	if (!*out || ((*out)->flags & SHARED))
		return pen__h5_bad(h, err, "a shared message is missing");
	return 0;
}
