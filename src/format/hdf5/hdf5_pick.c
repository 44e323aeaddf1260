/*
 * Finds the data sets of a file that can be fields (plain_pick.c chooses among
 * them). Groups are walked along hard links, each once; soft links are followed
 * only if listed in fields=. Files of more than 4096 groups require fields=.
 */
#include <stdio.h>

#include "base/mem.h"
#include "format/hdf5/hdf5_fields.h"

#define MOST_GROUPS 4096
#define DEEPEST 32

struct walk {
	struct pen_picker w; /* must be first: passed to the source */
	struct pen_h5 *h;
	uint64_t *seen; /* groups */
	size_t nseen, cap_seen;
	unsigned depth;
};

static int add(struct walk *k, uint64_t addr, const struct pen_h5_data *d,
	       struct pen_err *err)
{
	struct pen_chunks none = { 0 };
	struct pen_chunked_put a;

	pen__h5_put(d, &none, &a);
	return pen__picker_add(&k->w, addr, &a, err);
}

/* Skips what cannot be a field, but not what is damaged. */
static int see_dataset(struct walk *k, uint64_t addr, struct pen_err *err)
{
	struct pen_err why = { 0 };
	struct pen_h5_data d;
	char where[256];
	int rc;

	snprintf(where, sizeof(where), "%.150s:%.100s", k->w.name, k->w.path);
	rc = pen__h5_data_open(k->h, addr, &d, where, &why);
	if (rc < 0 && rc != PEN_ENOTSUP && err)
		*err = why;
	if (rc == PEN_ENOTSUP)
		k->w.nleft_out++;
	if (rc < 0)
		return rc == PEN_ENOTSUP ? 0 : rc;
	if (d.type.dtype < 0 || d.space.null)
		k->w.nleft_out++;
	else
		rc = add(k, addr, &d, err);
	pen__h5_data_close(&d);
	return rc;
}

static int see_link(void *arg, const struct pen_h5_link *l,
		    struct pen_err *err);

static int see_group(struct walk *k, uint64_t addr, struct pen_err *err)
{
	const unsigned above = k->w.has;
	int rc;

	for (size_t i = 0; i < k->nseen; i++)
		if (k->seen[i] == addr)
			return 0;
	if (k->depth == DEEPEST || k->nseen == MOST_GROUPS)
		return pen__fail(err, P_OVER_LIMIT, k->w.name,
				 "the file has more than %d groups, or groups "
				 "nested more than %d deep; list the data sets "
				 "to read with fields=",
				 MOST_GROUPS, DEEPEST);
	if (k->nseen == k->cap_seen) {
		const size_t cap = k->cap_seen ? k->cap_seen * 2 : 16;
		void *p = pen__realloc(k->seen, cap, sizeof(*k->seen));

		if (!p)
			return pen__fail_nomem(err, k->w.name, cap * 8);
		k->seen = p;
		k->cap_seen = cap;
	}
	k->seen[k->nseen++] = addr;
	k->depth++;
	k->w.has = 0;
	rc = pen__h5_links(k->h, addr, see_link, k, err);
	pen__picker_judge(&k->w);
	k->w.has = above;
	k->depth--;
	return rc;
}

static int see_link(void *arg, const struct pen_h5_link *l, struct pen_err *err)
{
	struct walk *k = arg;
	const size_t n = strlen(k->w.path), len = strlen(l->name);
	struct pen_h5_head hd;
	bool group, dataset;
	int rc;

	pen__picker_see(&k->w, l->name);
	/* soft links have a hard one elsewhere; external ones leave the file */
	if (l->target || l->external)
		return 0;
	if (n + len + 2 > sizeof(k->w.path))
		return pen__fail(err, P_OVER_LIMIT, k->w.name,
				 "a path is longer than %zu bytes; list the "
				 "data sets to read with fields=",
				 sizeof(k->w.path) - 2);
	rc = pen__h5_head_open(k->h, l->addr, &hd, err);
	if (rc < 0)
		return rc;
	group = pen__h5_is_group(&hd);
	dataset = pen__h5_is_dataset(&hd);
	pen__h5_head_close(&hd);
	memcpy(k->w.path + n, l->name, len + 1);
	if (dataset) {
		rc = see_dataset(k, l->addr, err);
	} else if (group) {
		memcpy(k->w.path + n + len, "/", 2);
		rc = see_group(k, l->addr, err);
	}
	k->w.path[n] = '\0';
	return rc;
}

static int see_near(void *near, const struct pen_h5_link *l,
		    struct pen_err *err)
{
	(void)err;
	pen__near_see(near, l->name, strlen(l->name));
	return 0;
}

/* Suggests a similar name from the group of the missing object. */
static int no_object(struct walk *k, struct pen_err *err)
{
	const char *slash = strrchr(k->w.path, '/');
	const char *name = slash ? slash + 1 : k->w.path;
	struct pen_near near = pen__near(name, strlen(name));
	char group[sizeof(k->w.path)];
	uint64_t addr;

	snprintf(group, sizeof(group), "%.*s", (int)(name - k->w.path),
		 k->w.path);
	if (pen__h5_find(k->h, group, &addr, NULL) >= 0)
		(void)!pen__h5_links(k->h, addr, see_near, &near, NULL);
	return pen__fail(err, P_NO_SUCH_PART, k->w.name,
			 "there is no object '%s'%s", k->w.path,
			 pen__near_text(&near).s);
}

/* Adds one data set of fields=. */
static int h5_named(struct pen_picker *w, struct pen_err *err)
{
	struct walk *k = (struct walk *)w;
	char where[256];
	struct pen_h5_data d;
	uint64_t addr;
	int rc = pen__h5_find(k->h, k->w.path, &addr, err);

	if (rc == PEN_ENOTFOUND)
		return no_object(k, err);
	if (rc < 0)
		return rc;
	snprintf(where, sizeof(where), "%.150s:%.100s", k->w.name, k->w.path);
	rc = pen__h5_data_open(k->h, addr, &d, where, err);
	if (rc < 0)
		return rc;
	if (d.type.dtype < 0)
		rc = pen__fail(
			err, P_UNSUPPORTED_TYPE, where,
			"the data set contains %s, but a field must be numeric",
			pen__h5_type_name(&d.type));
	else if (d.space.null)
		rc = pen__fail(err, P_UNSUPPORTED_TYPE, where,
			       "the data set is empty (a null dataspace)");
	else
		rc = add(k, addr, &d, err);
	pen__h5_data_close(&d);
	return rc;
}

static int h5_all(struct pen_picker *w, struct pen_err *err)
{
	struct walk *k = (struct walk *)w;

	return see_group(k, pen__h5_root(k->h), err);
}

static int h5_put(struct pen_picker *w, const struct pen_plain_pick *c,
		  const char *where, struct pen_buf *b, struct pen_err *err)
{
	struct walk *k = (struct walk *)w;
	struct pen_chunks cs = { 0 };
	struct pen_chunked_put a;
	struct pen_h5_data d;
	int rc = pen__h5_data_open(k->h, c->addr, &d, where, err);

	if (rc < 0)
		return rc;
	if (d.layout == PEN_H5_CHUNKED)
		rc = pen__h5_chunks(k->h, &d, &cs, where, err);
	if (rc >= 0) {
		pen__buf_le(b, d.layout, 1);
		pen__h5_put(&d, &cs, &a);
		pen__chunked_put(b, &a);
	}
	pen__chunks_fini(&cs);
	pen__h5_data_close(&d);
	return rc;
}

static const struct pen_plain_source source = {
	.noun = "data set",
	.all = h5_all,
	.named = h5_named,
	.put = h5_put,
};

int pen__h5_index(const struct pen_format *f, struct pen_peek *pk,
		  struct pen_found *found, struct pen_err *err)
{
	struct walk k = {
		.w = { .src = &source, .name = pk->name, .size = pk->size }
	};
	struct pen_err mine;
	int rc;

	/* callers of the read callback need its error code */
	err = err ? err : &mine;
	*err = (struct pen_err){ 0 };
	rc = pen__h5_open(&k.h, pk, err);
	if (rc >= 0) {
		k.w.version = pen__h5_superblock(k.h);
		rc = pen__plain_index(f->priv, &k.w, found, err);
	}
	pen__h5_close(k.h);
	pen__picker_fini(&k.w);
	pen__free(k.seen);
	return rc;
}
