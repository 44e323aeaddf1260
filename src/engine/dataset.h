/* A data set: objects, their index, and the format and store to read them. */
#ifndef PEN_ENGINE_DATASET_H
#define PEN_ENGINE_DATASET_H

#include "engine/dataset_fields.h"
#include "engine/index.h"
#include "engine/spec.h"

struct pen_dataset {
	struct pen_spec *spec; /* our copy */
	struct pen_store *store;
	struct pen_format *format;
	struct pen_objects objs;
	struct pen_index_data ix;
	struct pen_label label;
	struct pen_comm *comm; /* of the ranks that share a cache, or NULL */
	bool own_comm;
	const char *why_store; /* one line: why store=auto chose as it did */
	double resident; /* share of the bytes in the page cache, or < 0 */
	uint64_t open_ns;
	char cache_dir[4096]; /* "" when the index is not kept */
	struct pen_index_key key;
};

/* As pen_dataset_open(), to be read from: over the cache that the spec asks
 * for. With ranks that is collective, as is closing it then. */
int pen__dataset_open(struct pen_dataset **out, const struct pen_spec *,
		      struct pen_err *err);
/* This rank cannot even begin, for reason rc: tells the others, who are about
 * to open it. Returns what is told. */
int pen__dataset_refuse(const struct pen_spec *, int rc, struct pen_err *err);

/* Numbers, one per element, from a .npy file or a text file; used for subset,
 * weights and labels. *bools: the file held booleans. */
int pen__numbers_read(const char *path, double **out, uint64_t *n, bool *bools,
		      struct pen_err *err);

#endif
