/*
 * The set of objects, as flat arrays that only grow at their end: an offset
 * stays valid when an array moves, and a set can be written to disk and mapped
 * again as it is. Nothing here touches a file, and a set is not searched by
 * name: users of an object have its index.
 */
#include "store/objects.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/rng.h"

/* Room for one more element of `size` bytes; at least doubles. */
static int grow(void **array, uint64_t n, uint64_t *cap, uint64_t more,
		size_t size)
{
	uint64_t want = *cap ? *cap : 64;
	void *p;

	if (more <= *cap - n)
		return 0;
	if (more > UINT64_MAX / 4 - n)
		return PEN_ENOMEM;
	while (want - n < more)
		want *= 2;
	p = pen__realloc(*array, want, size);
	if (!p)
		return PEN_ENOMEM;
	*array = p;
	*cap = want;
	return 0;
}

static int add_name(struct pen_objects *s, const char *name, uint64_t *at)
{
	const size_t n = strlen(name) + 1;
	void *names = s->names;

	if (grow(&names, s->nnames, &s->names_cap, n, 1))
		return PEN_ENOMEM;
	s->names = names;
	memcpy(s->names + s->nnames, name, n);
	*at = s->nnames;
	s->nnames += n;
	return 0;
}

int pen__objects_add_dir(struct pen_objects *s, const char *path, uint64_t ino,
			 int64_t mtime_ns, uint32_t *index)
{
	void *dir = s->dir;
	struct pen_dir *d;

	if (s->ndir >= UINT32_MAX)
		return PEN_EINVAL;
	if (grow(&dir, s->ndir, &s->dir_cap, 1, sizeof(*s->dir)))
		return PEN_ENOMEM;
	s->dir = dir;
	d = &s->dir[s->ndir];
	if (add_name(s, path, &d->name))
		return PEN_ENOMEM;
	d->ino = ino;
	d->mtime_ns = mtime_ns;
	*index = (uint32_t)s->ndir++;
	return 0;
}

int pen__objects_add(struct pen_objects *s, uint32_t dir, const char *name,
		     uint64_t size, int64_t mtime_ns)
{
	void *obj = s->obj;
	struct pen_object *o;

	if (s->nobj >= UINT32_MAX || dir >= s->ndir ||
	    size > UINT64_MAX - s->total_bytes)
		return PEN_EINVAL;
	if (grow(&obj, s->nobj, &s->obj_cap, 1, sizeof(*s->obj)))
		return PEN_ENOMEM;
	s->obj = obj;
	o = &s->obj[s->nobj];
	if (add_name(s, name, &o->name))
		return PEN_ENOMEM;
	o->size = size;
	o->mtime_ns = mtime_ns;
	o->dir = dir;
	o->blob = 0;
	s->nobj++;
	s->total_bytes += size;
	return 0;
}

static int by_path(const struct pen_objects *s, const struct pen_object *a,
		   const struct pen_object *b)
{
	int c = 0;

	if (a->dir != b->dir)
		c = strcmp(s->names + s->dir[a->dir].name,
			   s->names + s->dir[b->dir].name);
	return c ? c : strcmp(s->names + a->name, s->names + b->name);
}

/* Equal paths stay in the order they were added: name offsets only grow. */
static int compare(const void *va, const void *vb, void *set)
{
	const struct pen_object *a = va, *b = vb;
	const int c = by_path(set, a, b);

	return c ? c : (a->name > b->name) - (a->name < b->name);
}

static int compare_dirs(const void *va, const void *vb, void *set)
{
	const struct pen_objects *s = set;
	const struct pen_dir *a = &s->dir[*(const uint32_t *)va];
	const struct pen_dir *b = &s->dir[*(const uint32_t *)vb];
	const int c = strcmp(s->names + a->name, s->names + b->name);

	return c ? c : (a->name > b->name) - (a->name < b->name);
}

/*
 * Sorts the directories and keeps the first added of equal ones, whose time is
 * the oldest, so that a change between two visits is noticed later. Needs
 * memory for three small arrays; without it the directories stay as they are,
 * which is harmless: objects are ordered by path either way.
 */
static void sort_dirs(struct pen_objects *s)
{
	const uint64_t n = s->ndir;
	uint32_t *order = pen__alloc(n, sizeof(*order));
	uint32_t *to = pen__alloc(n, sizeof(*to));
	struct pen_dir *dir = pen__alloc(n, sizeof(*dir));
	uint64_t kept = 0;

	if (!order || !to || !dir)
		goto out;
	for (uint64_t i = 0; i < n; i++)
		order[i] = (uint32_t)i;
	qsort_r(order, n, sizeof(*order), compare_dirs, s);
	for (uint64_t i = 0; i < n; i++) {
		const struct pen_dir *d = &s->dir[order[i]];

		if (!kept || strcmp(s->names + dir[kept - 1].name,
				    s->names + d->name) != 0)
			dir[kept++] = *d;
		to[order[i]] = (uint32_t)(kept - 1);
	}
	memcpy(s->dir, dir, kept * sizeof(*dir));
	s->ndir = kept;
	for (uint64_t i = 0; i < s->nobj; i++)
		s->obj[i].dir = to[s->obj[i].dir];
out:
	pen__free(order);
	pen__free(to);
	pen__free(dir);
}

void pen__objects_sort_from(struct pen_objects *s, uint64_t from)
{
	uint64_t kept = from;

	if (s->nobj - from > 1)
		qsort_r(s->obj + from, s->nobj - from, sizeof(*s->obj), compare,
			s);
	for (uint64_t i = from; i < s->nobj; i++) {
		if (kept > from &&
		    by_path(s, &s->obj[kept - 1], &s->obj[i]) == 0)
			s->total_bytes -= s->obj[i].size;
		else
			s->obj[kept++] = s->obj[i];
	}
	s->nobj = kept;
}

void pen__objects_sort(struct pen_objects *s)
{
	if (s->borrowed)
		return; /* sorted before it was cached */
	if (s->ndir > 1)
		sort_dirs(s);
	pen__objects_sort_from(s, 0);
}

static int compare_at(const void *va, const void *vb, void *set)
{
	const struct pen_objects *s = set;

	return compare(&s->obj[*(const uint32_t *)va],
		       &s->obj[*(const uint32_t *)vb], set);
}

static bool sorted(const struct pen_objects *s)
{
	for (uint64_t i = 1; i < s->nobj; i++)
		if (by_path(s, &s->obj[i - 1], &s->obj[i]) >= 0)
			return false;
	return true;
}

int pen__objects_join(struct pen_objects *s, uint32_t *twice)
{
	uint32_t *at;
	int rc = 0;

	if (s->ndir > 1)
		sort_dirs(s);
	s->order = 0;
	if (sorted(s))
		return 0;
	at = pen__alloc(s->nobj, sizeof(*at));
	if (!at)
		return PEN_ENOMEM;
	for (uint64_t i = 0; i < s->nobj; i++)
		at[i] = (uint32_t)i;
	qsort_r(at, s->nobj, sizeof(*at), compare_at, s);
	for (uint64_t i = 0; !rc && i < s->nobj; i++) {
		s->order = pen__mix64(s->order ^ at[i]) | 1;
		if (!i || by_path(s, &s->obj[at[i - 1]], &s->obj[at[i]]))
			continue;
		*twice = at[i];
		rc = PEN_EINVAL;
	}
	pen__free(at);
	return rc;
}

void pen__objects_fini(struct pen_objects *s)
{
	if (!s->borrowed) {
		pen__free(s->obj);
		pen__free(s->dir);
		pen__free(s->names);
	}
	*s = (struct pen_objects){ 0 };
}

bool pen__object_path(const struct pen_objects *s, uint32_t i, char *buf,
		      size_t cap)
{
	const char *dir = pen__object_dir(s, i), *name = pen__object_name(s, i);
	const size_t d = strcmp(dir, ".") == 0 ? 0 : strlen(dir);
	const size_t n = strlen(name);
	const size_t sep = d && dir[d - 1] != '/';

	/* this runs once per opened file: no printf */
	if (d + sep + n < cap) {
		memcpy(buf, dir, d);
		buf[d] = '/';
		memcpy(buf + d + sep, name, n + 1);
		return true;
	}
	if (cap)
		snprintf(buf, cap, "%.*s%s%s", (int)d, dir, sep ? "/" : "",
			 name);
	return false;
}
