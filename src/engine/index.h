/*
 * The index: for every object how many samples it has and what its format
 * found in it. Built in parallel, kept on disk, and used where it is mapped.
 */
#ifndef PEN_ENGINE_INDEX_H
#define PEN_ENGINE_INDEX_H

#include <stdatomic.h>

#include "format/format.h"
#include "store/store.h"

/* An object that could not be indexed (on_error=skip only). */
struct pen_bad_object {
	uint32_t object;
	struct pen_err err;
};

struct pen_index_data {
	struct pen_index pub; /* what formats see; must be first */
	struct pen_objects *objs;
	uint64_t *first;    /* nobj + 1, or NULL when uniform */
	uint64_t *blob_off; /* nblobs + 1 */
	uint8_t *blobs;
	struct pen_bad_object *bad;
	size_t nbad;
	void *map; /* the cache file the arrays are in, or NULL */
	size_t map_len;
	bool from_cache;
	int64_t listed_ns;	 /* wall clock before the objects were listed */
	const atomic_bool *stop; /* given: its being true ends building */
};

/*
 * Asks the format about every object of st->objs, on several threads. keep_bad:
 * objects that fail have no samples and are listed in ix->bad; otherwise the
 * first failing object in order is the error.
 */
int pen__index_build(struct pen_index_data *ix, struct pen_objects *objs,
		     struct pen_store *st, const struct pen_format *f,
		     bool keep_bad, struct pen_err *err);
void pen__index_fini(struct pen_index_data *ix);
void pen__index_publish(struct pen_index_data *ix); /* fills pub's functions */

/* 128 bits that say what an index is of. */
struct pen_index_key {
	uint64_t a, b;
};
void pen__index_key_add(struct pen_index_key *, const char *text);

/*
 * The cache. load: PEN_OK and ix + objs filled from the mapped file, or
 * PEN_ENOTFOUND when there is none that is certainly right: anything stale,
 * damaged or doubtful counts as none. dir: where cache files live.
 */
int pen__cache_load(struct pen_index_data *ix, struct pen_objects *objs,
		    const char *dir, const struct pen_index_key *key);
int pen__cache_save(const struct pen_index_data *ix, const char *dir,
		    const struct pen_index_key *key, struct pen_err *err);
void pen__cache_drop(const char *dir, const struct pen_index_key *key);
/*
 * Ranks of a job open the same data at once: one of them builds the index, and
 * the others wait for it, for a time. Returns what to unlock, or -1: build it
 * all the same. *waited: somebody else had it, and may have saved an index.
 */
int pen__cache_lock(const char *dir, const struct pen_index_key *key,
		    const atomic_bool *stop, bool *waited);
void pen__cache_unlock(int lock, const char *dir,
		       const struct pen_index_key *key);
/* $XDG_CACHE_HOME/penstock or ~/.cache/penstock; false when neither is. */
bool pen__cache_default_dir(char *buf, size_t cap);

#endif
