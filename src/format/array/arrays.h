/* Index entries of the format arrays (arrays.c). */
#ifndef PEN_FORMAT_ARRAY_ARRAYS_H
#define PEN_FORMAT_ARRAY_ARRAYS_H

#include "format/array/npy.h"

/* One array: name, object and header. */
struct pen_named_array {
	char name[sizeof(((struct pen_field *)0)->name)];
	uint32_t object;
	struct pen_npy npy;
};
void pen__named_array_put(struct pen_buf *, const struct pen_named_array *);
bool pen__named_array_take(struct pen_bytes *, struct pen_named_array *);

struct pen_arrays {
	char *fields; /* comma-separated; NULL: all */
	int trailing; /* 0: bytes after an array are an error */
	/* from bind() on */
	struct pen_views views;
	struct pen_column {
		uint32_t object;
		size_t view;
	} * column;	 /* group * nfields + field */
	uint32_t *group; /* of objects that own samples */
	uint32_t ngroups;
	bool stores;
};

/* Whether fields= selects the array. */
bool pen__arrays_wants(const struct pen_arrays *, const char *name);
/* The header of an array, which must have rows. */
int pen__arrays_header(const struct pen_arrays *, struct pen_peek *,
		       struct pen_npy *out, struct pen_err *err);

/* arrays_store.c: a TensorStore, by its store.json. */
#define PEN_TENSOR_STORE "store.json"
bool pen__tensor_store_marks(const void *head, size_t n);
/* Whether the object is in the folder of a store. */
bool pen__tensor_store_has(struct pen_peek *);
/* All arrays listed in store.json, and their number of rows. */
int pen__tensor_store_index(const struct pen_arrays *, struct pen_peek *,
			    struct pen_found *, struct pen_err *err);

#endif
