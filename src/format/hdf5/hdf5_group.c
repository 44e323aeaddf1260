/*
 * Groups: links by symbol table (a version 1 B-tree over a local heap), as
 * messages in the header, or in a fractal heap. Paths are resolved link by
 * link; soft links are followed to a limited depth, external ones never: a file
 * must not make us open another.
 */
#include "format/hdf5/hdf5_int.h"

#include <stdio.h>

#define MOST_SOFT 16
#define MOST_LEVELS 16
#define LONGEST 1024 /* a path */

struct lister {
	struct pen_h5 *h;
	pen_h5_link_fn *fn;
	void *arg;
	struct pen_err *err;
	struct pen_buf names; /* data of the local heap */
	struct pen_h5_heap heap;
};

/* ---- symbol tables ---- */

/* A NUL-terminated string in the local heap. */
static const char *name_at(const struct lister *l, uint64_t off)
{
	if (off >= l->names.n ||
	    !memchr(l->names.p + off, 0, l->names.n - (size_t)off))
		return NULL;
	return (const char *)l->names.p + off;
}

static int take_symbol(struct lister *l, struct pen_bytes *b)
{
	const uint64_t name = pen__take_le(b, l->h->so);
	struct pen_h5_link link = { .addr = pen__h5_addr(l->h, b) };
	const uint32_t kind = pen__take_u32(b);
	uint32_t target;

	pen__take(b, 4);
	target = pen__take_u32(b);
	pen__take(b, 12);
	link.name = name_at(l, name);
	if (kind == 2)
		link.target = name_at(l, target);
	if (b->bad || !link.name || (kind == 2 && !link.target))
		return pen__h5_bad(l->h, l->err,
				   "a name in a group is invalid");
	return l->fn(l->arg, &link, l->err);
}

static int symbol_node(struct lister *l, uint64_t addr)
{
	const unsigned entry = 2u * l->h->so + 24;
	struct pen_buf buf;
	struct pen_bytes b;
	unsigned n;
	int rc;

	rc = pen__h5_load_as(l->h,
			     (struct pen_h5_part){ addr, 8, "SNOD", false },
			     &buf, &b, l->err);
	if (rc < 0)
		return rc;
	pen__take(&b, 2);
	n = pen__take_u16(&b);
	pen__buf_fini(&buf);
	rc = pen__h5_load(l->h, addr + 8, (uint64_t)n * entry, &buf, l->err);
	if (rc < 0)
		return rc;
	b = pen__bytes(buf.p, buf.n);
	for (unsigned i = 0; !rc && i < n; i++)
		rc = take_symbol(l, &b);
	pen__buf_fini(&buf);
	return rc;
}

/* level: that of the parent, or MOST_LEVELS; children are one below. */
static int group_tree(struct lister *l, uint64_t addr, unsigned level)
{
	const unsigned head = 8u + 2u * l->h->so;
	unsigned here, n;
	struct pen_buf buf;
	struct pen_bytes b;
	int rc;

	rc = pen__h5_load_as(l->h,
			     (struct pen_h5_part){ addr, head, "TREE", false },
			     &buf, &b, l->err);
	if (rc < 0)
		return rc;
	if (pen__take_u8(&b) != 0)
		b.bad = true;
	here = pen__take_u8(&b);
	n = pen__take_u16(&b);
	pen__buf_fini(&buf);
	if (b.bad || here >= level)
		return pen__h5_bad(l->h, l->err,
				   "a node of a group B-tree is invalid");
	rc = pen__h5_load(l->h, addr + head,
			  (uint64_t)n * (l->h->so + l->h->sl), &buf, l->err);
	if (rc < 0)
		return rc;
	b = pen__bytes(buf.p, buf.n);
	for (unsigned i = 0; !rc && i < n; i++) {
		uint64_t child;

		pen__h5_len(l->h, &b); /* the key */
		child = pen__h5_addr(l->h, &b);
		rc = here ? group_tree(l, child, here) : symbol_node(l, child);
	}
	pen__buf_fini(&buf);
	return rc;
}

static int symbol_table(struct lister *l, const struct pen_h5_msg *m)
{
	struct pen_bytes b = pen__bytes(m->p, m->n);
	const uint64_t tree = pen__h5_addr(l->h, &b);
	const uint64_t heap = pen__h5_addr(l->h, &b);
	uint64_t n, at;
	struct pen_buf buf;
	int rc;

	if (b.bad)
		return pen__h5_bad(l->h, l->err, "a symbol table is truncated");
	rc = pen__h5_load_as(l->h,
			     (struct pen_h5_part){ heap,
						   8 + 2u * l->h->sl + l->h->so,
						   "HEAP", false },
			     &buf, &b, l->err);
	if (rc < 0)
		return rc;
	pen__take(&b, 4);
	n = pen__h5_len(l->h, &b);
	pen__h5_len(l->h, &b); /* free list */
	at = pen__h5_addr(l->h, &b);
	pen__buf_fini(&buf);
	rc = pen__h5_load(l->h, at, n, &l->names, l->err);
	return rc < 0 ? rc : group_tree(l, tree, MOST_LEVELS);
}

/* ---- link messages ---- */

static int take_link(struct lister *l, struct pen_span s)
{
	struct pen_bytes b = pen__bytes(s.p, s.n);
	const unsigned version = pen__take_u8(&b), flags = pen__take_u8(&b);
	const unsigned kind = flags & 8 ? pen__take_u8(&b) : 0;
	char name[LONGEST], target[LONGEST];
	struct pen_h5_link link = { .name = name, .addr = PEN_H5_NOWHERE };
	const uint8_t *p;
	uint64_t n;

	pen__take(&b, (flags & 4 ? 8 : 0) + (flags & 16 ? 1 : 0));
	n = pen__take_le(&b, 1u << (flags & 3));
	p = pen__take(&b, n);
	if (b.bad || version != 1 || !n || memchr(p, 0, (size_t)n))
		return pen__h5_bad(l->h, l->err, "a link is invalid");
	if (n >= sizeof(name))
		return pen__h5_cannot(
			l->h, l->err,
			"link names longer than 1023 bytes are not supported");
	memcpy(name, p, (size_t)n);
	name[n] = '\0';
	if (kind == 0) {
		link.addr = pen__h5_addr(l->h, &b);
	} else if (kind == 1) {
		n = pen__take_u16(&b);
		p = pen__take(&b, n);
		if (!p || n >= sizeof(target))
			return pen__h5_bad(l->h, l->err,
					   "a soft link is invalid");
		memcpy(target, p, (size_t)n);
		target[n] = '\0';
		link.target = target;
	} else {
		link.external = true;
	}
	if (b.bad)
		return pen__h5_bad(l->h, l->err, "a link is truncated");
	return l->fn(l->arg, &link, l->err);
}

static int dense_link(void *arg, struct pen_bytes *rec, struct pen_err *err)
{
	struct lister *l = arg;
	struct pen_buf mem = { 0 };
	struct pen_span s;
	const uint8_t *id;
	int rc;

	pen__take(rec, 4); /* hash of the name */
	id = pen__take(rec, l->heap.id_len);
	if (!id)
		return pen__h5_bad(l->h, err, "a group record is invalid");
	rc = pen__h5_heap_get(l->h, &l->heap, id, &mem, &s, err);
	if (rc >= 0)
		rc = take_link(l, s);
	pen__buf_fini(&mem);
	return rc;
}

static int dense_links(struct lister *l, const struct pen_h5_msg *m)
{
	struct pen_bytes b = pen__bytes(m->p, m->n);
	const unsigned version = pen__take_u8(&b), flags = pen__take_u8(&b);
	uint64_t heap, tree;
	int rc;

	pen__take(&b, flags & 1 ? 8 : 0);
	heap = pen__h5_addr(l->h, &b);
	tree = pen__h5_addr(l->h, &b);
	if (b.bad || version)
		return pen__h5_bad(
			l->h, l->err,
			"the link information of a group is invalid");
	if (heap == PEN_H5_NOWHERE)
		return 0;
	rc = pen__h5_heap_open(l->h, heap, &l->heap, l->err);
	if (rc >= 0)
		rc = pen__h5_btree2(l->h, tree, 5, dense_link, l, l->err);
	pen__h5_heap_close(&l->heap);
	return rc;
}

static int list(struct lister *l, const struct pen_h5_head *hd)
{
	int rc = 0;

	for (size_t i = 0; !rc && i < hd->n; i++) {
		const struct pen_h5_msg *m = &hd->msg[i];

		if (m->type == PEN_H5_MSG_SYMBOLS)
			rc = symbol_table(l, m);
		else if (m->type == PEN_H5_MSG_LINK)
			rc = take_link(l, (struct pen_span){ m->p, m->n });
		else if (m->type == PEN_H5_MSG_LINK_INFO)
			rc = dense_links(l, m);
		pen__buf_fini(&l->names);
	}
	return rc;
}

int pen__h5_links(struct pen_h5 *h, uint64_t group, pen_h5_link_fn *fn,
		  void *arg, struct pen_err *err)
{
	struct lister l = { .h = h, .fn = fn, .arg = arg, .err = err };
	struct pen_h5_head hd;
	int rc = pen__h5_head_open(h, group, &hd, err);

	if (rc < 0)
		return rc;
	rc = pen__h5_is_group(&hd) ? list(&l, &hd)
				   : pen__fail(err, P_NO_SUCH_PART, h->pk->name,
					       "an object on the path is not a "
					       "group");
	pen__h5_head_close(&hd);
	return rc > 0 ? 0 : rc;
}

/* ---- paths ---- */

struct finder {
	struct pen_h5 *h;
	const char *name;
	size_t len;
	uint64_t addr;
	char *target; /* LONGEST bytes */
	bool found, soft;
};

static int see_link(void *arg, const struct pen_h5_link *l, struct pen_err *err)
{
	struct finder *f = arg;

	if (strncmp(l->name, f->name, f->len) != 0 || l->name[f->len])
		return 0;
	if (l->external)
		return pen__fail(
			err, P_UNSUPPORTED_FEATURE, f->h->pk->name,
			"'%s' is a link to another file, which is not followed",
			l->name);
	f->found = true;
	f->soft = l->target != NULL;
	f->addr = l->addr;
	if (f->soft)
		snprintf(f->target, LONGEST, "%s", l->target);
	return 1;
}

/* group: start of a relative path. nsoft: soft links followed so far. */
static int find(struct pen_h5 *h, uint64_t group, const char *path,
		uint64_t *out, unsigned nsoft, struct pen_err *err)
{
	char target[LONGEST];
	int rc;

	if (*path == '/')
		group = h->root;
	while (*path) {
		struct finder f = { .h = h, .target = target };

		f.name = path + strspn(path, "/");
		f.len = strcspn(f.name, "/");
		path = f.name + f.len;
		if (!f.len || (f.len == 1 && *f.name == '.'))
			continue;
		rc = pen__h5_links(h, group, see_link, &f, err);
		if (rc < 0)
			return rc;
		if (!f.found)
			return pen__fail(err, P_NO_SUCH_PART, h->pk->name,
					 "there is no object '%.*s'",
					 (int)f.len, f.name);
		if (f.soft && nsoft == MOST_SOFT)
			return pen__h5_cannot(h, err,
					      "soft links nested more than 16 "
					      "deep are not followed");
		if (f.soft)
			rc = find(h, group, target, &f.addr, nsoft + 1, err);
		if (rc < 0)
			return rc;
		group = f.addr;
	}
	*out = group;
	return 0;
}

int pen__h5_find(struct pen_h5 *h, const char *path, uint64_t *out,
		 struct pen_err *err)
{
	return find(h, h->root, path, out, 0, err);
}
