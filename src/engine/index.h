/*
 * The index: for every object, its number of samples and what the format found
 * in it. Built in parallel, cached on disk, and used in place where it is
 * mapped.
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
	bool borrowed; /* arrays belong to a pen_kept_index: never freed here */
	const struct pen_format_ops *of; /* the format it was made by */
	int64_t listed_ns;    /* wall clock before the objects were listed */
	struct pen_stop stop; /* stops building */
	/* Objects that fail have no samples and are listed in bad; otherwise
	 * the first failing object in order is the error. */
	bool keep_bad;
};

/*
 * Asks the format about every object of st->objs, on this many threads with one
 * read in flight each. stop and keep_bad are the caller's to set.
 */
int pen__index_build(struct pen_index_data *ix, struct pen_objects *objs,
		     struct pen_store *st, const struct pen_format *f,
		     unsigned threads, struct pen_err *err);
void pen__index_fini(struct pen_index_data *ix);
void pen__index_publish(struct pen_index_data *ix); /* fills pub's functions */

/* 128 bits that identify the data an index describes. */
struct pen_index_key {
	uint64_t a, b;
};
void pen__index_key_add(struct pen_index_key *, const char *text);
/* Hashes where the data is and how it is interpreted. lasting: valid for later
 * processes too; false if that cannot be known (a pattern, a list of files). */
bool pen__index_key_of(struct pen_index_key *, const struct pen_spec *,
		       bool lasting);

/*
 * The index of a data set that a process opens repeatedly with different loader
 * settings: built once, lent to all of them. Zeroed at first; the data sets are
 * closed before it is freed. load: PEN_ENOTFOUND if it describes other data;
 * the next save is then for the requested data.
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
 * The cache. load: PEN_OK with ix and objs filled from the mapped file, or
 * PEN_ENOTFOUND if there is none that is certainly right: anything stale,
 * damaged or doubtful is ignored. dir: where cache files are stored.
 */
int pen__cache_load(struct pen_index_data *ix, struct pen_objects *objs,
		    const char *dir, const struct pen_index_key *key);
int pen__cache_save(const struct pen_index_data *ix, const char *dir,
		    const struct pen_index_key *key, struct pen_err *err);
void pen__cache_drop(const char *dir, const struct pen_index_key *key);
/*
 * Ranks of a job open the same data at the same time: one builds the index, and
 * the others wait for it, up to a limit. Returns the lock, or -1: build the
 * index anyway. *waited: another process held the lock and may have saved an
 * index.
 */
int pen__cache_lock(const char *dir, const struct pen_index_key *key,
		    const struct pen_stop *stop, bool *waited);
void pen__cache_unlock(int lock, const char *dir,
		       const struct pen_index_key *key);
/* $XDG_CACHE_HOME/penstock or ~/.cache/penstock; false if neither is set. */
bool pen__cache_default_dir(char *buf, size_t cap);

#endif
