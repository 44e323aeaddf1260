/*
 * Attributes, in the header or in a fractal heap, and strings, which are in
 * global heaps if they have variable length. Any of them, and their types and
 * shapes, may be in the shared message table of the file.
 */
#include "format/hdf5/hdf5_int.h"

#include <stdio.h>

#define TYPE_SHARED 1
#define SPACE_SHARED 2

struct lister {
	struct pen_h5 *h;
	pen_h5_attr_fn *fn;
	void *arg;
	struct pen_err *err;
	struct pen_h5_heap heap;
};

static uint64_t padded(unsigned n, bool pad)
{
	return pad ? ((uint64_t)n + 7) / 8 * 8 : n;
}

/* A part of the message; if it is shared, hd keeps it. */
static int take_part(struct lister *l, struct pen_h5_msg m,
		     struct pen_h5_head *hd, struct pen_bytes *b)
{
	const struct pen_h5_msg *real;
	int rc = pen__h5_shared(l->h, &m, hd, &real, l->err);

	if (rc >= 0)
		*b = pen__bytes(real->p, real->n);
	return rc;
}

static int deliver(struct lister *l, struct pen_h5_attr *a, struct pen_bytes *b)
{
	uint64_t n, bytes;

	if (!pen__h5_count(&a->space, &n) ||
	    __builtin_mul_overflow(n, a->type.size, &bytes) ||
	    bytes > pen__bytes_left(b))
		return pen__h5_bad(l->h, l->err, "an attribute is truncated");
	a->data = (struct pen_span){ pen__take(b, bytes), (size_t)bytes };
	return l->fn(l->arg, a, l->err);
}

static int take_attr(struct lister *l, struct pen_span s)
{
	struct pen_bytes b = pen__bytes(s.p, s.n), part;
	const unsigned version = pen__take_u8(&b), flags = pen__take_u8(&b);
	const unsigned nname = pen__take_u16(&b), ntype = pen__take_u16(&b);
	const unsigned nspace = pen__take_u16(&b);
	struct pen_h5_attr a = { 0 };
	struct pen_h5_msg type = { .n = ntype, .type = PEN_H5_MSG_TYPE };
	struct pen_h5_msg space = { .n = nspace, .type = PEN_H5_MSG_SPACE };
	struct pen_h5_head of_type = { 0 }, of_space = { 0 };
	const uint8_t *name;
	int rc;

	if (version == 3)
		pen__take_u8(&b); /* character set of the name */
	name = pen__take(&b, padded(nname, version == 1));
	type.p = pen__take(&b, padded(ntype, version == 1));
	space.p = pen__take(&b, padded(nspace, version == 1));
	if (b.bad || version < 1 || version > 3 || !nname ||
	    !memchr(name, 0, nname))
		return pen__h5_bad(l->h, l->err, "an attribute is invalid");
	a.name = (const char *)name;
	type.flags = version > 1 && (flags & TYPE_SHARED) ? 2 : 0;
	space.flags = version > 1 && (flags & SPACE_SHARED) ? 2 : 0;
	rc = take_part(l, space, &of_space, &part);
	if (rc >= 0 && !pen__h5_take_space(l->h, &part, &a.space))
		rc = pen__h5_bad(l->h, l->err,
				 "the shape of an attribute is invalid");
	if (rc >= 0)
		rc = take_part(l, type, &of_type, &part);
	if (rc >= 0 && !pen__h5_take_type(&part, &a.type))
		rc = pen__h5_bad(l->h, l->err,
				 "the type of an attribute is invalid");
	if (rc >= 0)
		rc = deliver(l, &a, &b);
	pen__h5_head_close(&of_space);
	pen__h5_head_close(&of_type);
	return rc;
}

static int dense_attr(void *arg, struct pen_bytes *rec, struct pen_err *err)
{
	struct lister *l = arg;
	struct pen_buf mem = { 0 };
	const uint8_t *id = pen__take(rec, l->heap.id_len);
	struct pen_span s;
	int rc;

	if (!id)
		return pen__h5_bad(l->h, err, "an attribute record is invalid");
	if (!(pen__take_u8(rec) & 2)) {
		rc = pen__h5_heap_get(l->h, &l->heap, id, &mem, &s, err);
	} else if (l->heap.id_len != PEN_H5_SHARED_ID) {
		rc = pen__h5_bad(l->h, err, "an attribute record is invalid");
	} else {
		rc = pen__h5_shared_get(l->h, PEN_H5_MSG_ATTR, id, &mem, err);
		s = (struct pen_span){ mem.p, mem.n };
	}
	if (rc >= 0)
		rc = take_attr(l, s);
	pen__buf_fini(&mem);
	return rc;
}

static int dense_attrs(struct lister *l, const struct pen_h5_msg *m)
{
	struct pen_bytes b = pen__bytes(m->p, m->n);
	const unsigned version = pen__take_u8(&b), flags = pen__take_u8(&b);
	uint64_t heap, tree;
	int rc;

	pen__take(&b, flags & 1 ? 2 : 0);
	heap = pen__h5_addr(l->h, &b);
	tree = pen__h5_addr(l->h, &b);
	if (b.bad || version)
		return pen__h5_bad(l->h, l->err,
				   "the attribute information is invalid");
	if (heap == PEN_H5_NOWHERE)
		return 0;
	rc = pen__h5_heap_open(l->h, heap, &l->heap, l->err);
	if (rc >= 0)
		rc = pen__h5_btree2(l->h, tree, 8, dense_attr, l, l->err);
	pen__h5_heap_close(&l->heap);
	return rc;
}

static int header_attr(struct lister *l, const struct pen_h5_msg *m)
{
	struct pen_h5_head other = { 0 };
	int rc = pen__h5_shared(l->h, m, &other, &m, l->err);

	if (rc >= 0)
		rc = take_attr(l, (struct pen_span){ m->p, m->n });
	pen__h5_head_close(&other);
	return rc;
}

int pen__h5_attrs(struct pen_h5 *h, const struct pen_h5_head *hd,
		  pen_h5_attr_fn *fn, void *arg, struct pen_err *err)
{
	struct lister l = { .h = h, .fn = fn, .arg = arg, .err = err };
	int rc = 0;

	for (size_t i = 0; !rc && i < hd->n; i++) {
		const struct pen_h5_msg *m = &hd->msg[i];

		if (m->type == PEN_H5_MSG_ATTR)
			rc = header_attr(&l, m);
		else if (m->type == PEN_H5_MSG_ATTR_INFO)
			rc = dense_attrs(&l, m);
	}
	return rc > 0 ? 0 : rc;
}

/* Makes the global heap at addr the current one. */
static int load_heap(struct pen_h5 *h, uint64_t addr, struct pen_err *err)
{
	struct pen_buf buf;
	struct pen_bytes b;
	uint64_t n;
	int rc;

	if (h->strings.p && h->strings_at == addr)
		return 0;
	pen__buf_fini(&h->strings);
	rc = pen__h5_load_as(
		h, (struct pen_h5_part){ addr, 8u + h->sl, "GCOL", false },
		&buf, &b, err);
	if (rc < 0)
		return rc;
	pen__take(&b, 4);
	n = pen__h5_len(h, &b);
	pen__buf_fini(&buf);
	rc = pen__h5_load_as(h, (struct pen_h5_part){ addr, n, "GCOL", false },
			     &h->strings, &b, err);
	if (rc < 0)
		return rc;
	h->strings_at = addr;
	h->strings_pos = 0;
	return 0;
}

/*
 * Searches the current heap for object `want`, from pos on (0: from the first
 * object). Objects are unordered, but those written together are adjacent, so a
 * search continues where the last one ended.
 */
static struct pen_span search(struct pen_h5 *h, uint32_t want, size_t pos)
{
	const size_t from = pos ? pos : 8u + h->sl;
	struct pen_bytes b = pen__bytes(h->strings.p, h->strings.n);
	struct pen_span found = { NULL, 0 };
	uint64_t work;

	pen__take(&b, from);
	while (pen__bytes_left(&b) >= 8u + h->sl) {
		const unsigned i = pen__take_u16(&b);
		const uint8_t *p;
		uint64_t n;

		pen__take(&b, 6);
		n = pen__h5_len(h, &b);
		if (!i || n > pen__bytes_left(&b))
			break; /* 0 is the free space at the end */
		p = pen__take(&b, n);
		n = (8 - n % 8) % 8; /* padding, except at the end */
		if (n > pen__bytes_left(&b))
			n = pen__bytes_left(&b);
		pen__take(&b, n);
		if (i == want) {
			found = (struct pen_span){ p, (size_t)(b.p - p) };
			h->strings_pos = (size_t)(b.p - h->strings.p);
			break;
		}
	}
	/* searching also counts against the budget */
	work = (uint64_t)(b.p - h->strings.p) - from;
	h->budget -= work < h->budget ? work : h->budget;
	return found;
}

static int vlen_string(struct pen_h5 *h, struct pen_bytes *ref,
		       struct pen_buf *out, struct pen_err *err)
{
	const uint32_t len = pen__take_u32(ref);
	const uint64_t addr = pen__h5_addr(h, ref);
	const uint32_t i = pen__take_u32(ref);
	struct pen_span s;
	int rc;

	if (ref->bad)
		return pen__h5_bad(h, err, "a string reference is truncated");
	if (!len)
		return 0;
	rc = load_heap(h, addr, err);
	if (rc < 0)
		return rc;
	s = search(h, i, h->strings_pos);
	if (!s.p && h->strings_pos)
		s = search(h, i, 0);
	if (!s.p || s.n < len || !h->budget)
		return pen__h5_bad(h, err, "a string is missing from its heap");
	pen__buf_put(out, s.p, len);
	return out->bad ? pen__h5_nomem(h, err, len) : 0;
}

int pen__h5_string(struct pen_h5 *h, const struct pen_h5_type *t,
		   struct pen_span data, uint64_t i, struct pen_buf *out,
		   struct pen_err *err)
{
	struct pen_bytes b = pen__bytes(data.p, data.n);
	const uint8_t *p, *end;
	size_t n = t->size;

	if (!t->vlen_string && t->cls != PEN_H5_STRING)
		return pen__h5_cannot(h, err, "the value is not a string");
	if (i >= data.n / t->size)
		return pen__h5_bad(h, err,
				   "the value has fewer strings than expected");
	pen__take(&b, i * t->size);
	if (t->vlen_string)
		return vlen_string(h, &b, out, err);
	p = pen__take(&b, n);
	end = memchr(p, 0, n);
	if (end && t->pad < 2)
		n = (size_t)(end - p);
	while (n && t->pad == 2 && p[n - 1] == ' ')
		n--;
	pen__buf_put(out, p, n);
	return out->bad ? pen__h5_nomem(h, err, n) : 0;
}
