/* A data set: objects, their index, and the format and store to read them. */
#ifndef PEN_ENGINE_DATASET_H
#define PEN_ENGINE_DATASET_H

#include "engine/dataset_fields.h"
#include "engine/index.h"
#include "engine/spec.h"
#include "store/dict_values.h"

struct pen_dataset {
	struct pen_spec *spec; /* our copy */
	struct pen_store *store;
	struct pen_format *format;
	struct pen_objects objs;
	struct pen_index_data ix;
	struct pen_label label;
	struct pen_comm *comm; /* of the ranks that share a cache, or NULL */
	bool own_comm;
	struct pen_dict_source with; /* for a path ddict: */
	const char *why_store;	     /* why store=auto chose it, in one line */
	double resident; /* share of the bytes in the page cache, or < 0 */
	uint64_t open_ns;
	char cache_dir[4096]; /* "" if the index is not cached */
	struct pen_index_key key;
};

/* Like pen_dataset_open(), but for reading: on top of the cache that the spec
 * requests. With ranks, opening and closing are collective. */
int pen__dataset_open(struct pen_dataset **out, const struct pen_spec *,
		      struct pen_err *err);
/* This rank failed with rc before it could open: tells the other ranks, which
 * are about to. Returns the agreed code. */
int pen__dataset_refuse(const struct pen_spec *, int rc, struct pen_err *err);

/* For a path ddict:NAME (dataset_dict.c), in this order: the ranks that list
 * the same keys, collective; settings; the open store; after indexing. */
int pen__dict_ranks(struct pen_dataset *, struct pen_err *err);
int pen__dict_prepare(struct pen_dataset *, struct pen_err *err);
void pen__dict_begin(struct pen_dataset *);
int pen__dict_settle(struct pen_dataset *, struct pen_err *err);

/* Numbers, one per element, from a .npy or text file; for subset, weights and
 * labels. *bools: the file contains booleans. *out is the caller's to free. */
int pen__numbers_read(const char *path, double **out, uint64_t *n, bool *bools,
		      struct pen_err *err);

#endif
