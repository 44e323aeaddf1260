/*
 * The set of objects of a data set: names, sizes, times. Flat arrays with a
 * name arena, about 32 bytes and a name per object, so that a million files
 * cost tens of megabytes, and a cached set can be used in place when mapped,
 * without parsing.
 */
#ifndef PEN_STORE_OBJECTS_H
#define PEN_STORE_OBJECTS_H

#include <stdbool.h>

#include "base/err.h"

struct pen_object {
	uint64_t size;
	int64_t mtime_ns;
	uint64_t name; /* offset into names: the part after the directory */
	uint32_t dir;  /* index into dirs */
	uint32_t blob; /* which layout the format found; see engine/index */
};

struct pen_dir {
	uint64_t name; /* offset into names; "" for objects without one */
	uint64_t ino;
	int64_t mtime_ns; /* changes when entries are added or removed */
};

struct pen_objects {
	struct pen_object *obj;
	struct pen_dir *dir;
	char *names;
	uint64_t nobj, ndir, nnames;
	uint64_t obj_cap, dir_cap, names_cap;
	uint64_t total_bytes;
	uint64_t order; /* 0: sorted by path; else a hash of their order */
	bool borrowed;	/* arrays belong to a mapped cache: never freed here */
};

/* Adds; returns 0, PEN_ENOMEM, or PEN_EINVAL past 2^32-1 objects. */
int pen__objects_add_dir(struct pen_objects *, const char *path, uint64_t ino,
			 int64_t mtime_ns, uint32_t *index);
int pen__objects_add(struct pen_objects *, uint32_t dir, const char *name,
		     uint64_t size, int64_t mtime_ns);
/* Sorts by directory path, then name, bytewise; equal paths are kept once. */
void pen__objects_sort(struct pen_objects *);
/* The same for the objects from `from` on, which belong to one path. */
void pen__objects_sort_from(struct pen_objects *, uint64_t from);
/*
 * After the objects of several paths were sorted path by path: sets `order`.
 * PEN_ENOMEM, or PEN_EINVAL if two paths share an object: *twice.
 */
int pen__objects_join(struct pen_objects *, uint32_t *twice);
void pen__objects_fini(struct pen_objects *);

static inline const char *pen__object_name(const struct pen_objects *s,
					   uint32_t i)
{
	return s->names + s->obj[i].name;
}
static inline const char *pen__object_dir(const struct pen_objects *s,
					  uint32_t i)
{
	return s->names + s->dir[s->obj[i].dir].name;
}
/* "dir/name", NUL-terminated; false if it does not fit (then truncated). */
bool pen__object_path(const struct pen_objects *, uint32_t i, char *buf,
		      size_t cap);

#endif
