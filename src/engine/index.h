/*
 * The index: for every object how many samples it has and what its format
 * found in it. Built in parallel, kept on disk, and used where it is mapped.
 */
#ifndef PEN_ENGINE_INDEX_H
#define PEN_ENGINE_INDEX_H

#include <stdatomic.h>

#include "engine/spec.h"
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
	bool borrowed; /* arrays are a pen_kept_index's: never freed here */
	const struct pen_format_ops *of; /* the format it was made by */
	int64_t listed_ns;    /* wall clock before the objects were listed */
	struct pen_stop stop; /* ends building */
};

/*
 * Asks the format about every object of st->objs, on so many threads, each of
 * which has one read in flight. keep_bad: objects that fail have no samples and
 * are listed in ix->bad; otherwise the first failing object in order is the
 * error.
 */
int pen__index_build(struct pen_index_data *ix, struct pen_objects *objs,
		     struct pen_store *st, const struct pen_format *f,
		     bool keep_bad, unsigned threads, struct pen_err *err);
void pen__index_fini(struct pen_index_data *ix);
void pen__index_publish(struct pen_index_data *ix); /* fills pub's functions */

/* 128 bits that say what an index is of. */
struct pen_index_key {
	uint64_t a, b;
};
void pen__index_key_add(struct pen_index_key *, const char *text);
/* Where the data is and how it is understood. lasting: also for later
 * processes; false when that cannot be said (a pattern, a list of files). */
bool pen__index_key_of(struct pen_index_key *, const struct pen_spec *,
		       bool lasting);

/*
 * The index of a data set that a process opens again and again, with other
 * settings of the loader: indexed once, lent to all of them. Zeroed at first;
 * the data sets are closed before fini. load: PEN_ENOTFOUND when it is of
 * other data; what is saved next is of the data that was asked for.
 */
struct pen_kept_index {
	struct pen_objects objs;
	struct pen_index_data ix;
	struct pen_index_key key;
	bool full;
};
int pen__kept_load(struct pen_kept_index *, const struct pen_spec *,
		   struct pen_index_data *ix, struct pen_objects *objs);
void pen__kept_save(struct pen_kept_index *, struct pen_index_data *ix,
		    struct pen_objects *objs);

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
		    const struct pen_stop *stop, bool *waited);
void pen__cache_unlock(int lock, const char *dir,
		       const struct pen_index_key *key);
/* $XDG_CACHE_HOME/penstock or ~/.cache/penstock; false when neither is. */
bool pen__cache_default_dir(char *buf, size_t cap);

#endif
