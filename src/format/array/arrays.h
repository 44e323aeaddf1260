/* What the format arrays (arrays.c) has of an array, in its index. */
#ifndef PEN_FORMAT_ARRAY_ARRAYS_H
#define PEN_FORMAT_ARRAY_ARRAYS_H

#include "format/array/npy.h"

/* One array: which object, under which name, with which header. */
struct pen_named_array {
	char name[sizeof(((struct pen_field *)0)->name)];
	uint32_t object;
	struct pen_npy npy;
};
void pen__named_array_put(struct pen_buf *, const struct pen_named_array *);
bool pen__named_array_take(struct pen_bytes *, struct pen_named_array *);

struct pen_arrays {
	char *fields; /* comma list; NULL: all */
	int trailing; /* 0: bytes after an array are an error */
	/* from bind() on */
	struct pen_views views;
	struct pen_column {
		uint32_t object;
		size_t view;
	} * column;	 /* group * nfields + field */
	uint32_t *group; /* of an object that has samples */
	uint32_t ngroups;
	bool stores;
};

/* Is the array wanted, by fields=? */
bool pen__arrays_wants(const struct pen_arrays *, const char *name);
/* The header of an array that is to have rows. */
int pen__arrays_header(const struct pen_arrays *, struct pen_peek *,
		       struct pen_npy *out, struct pen_err *err);

/* arrays_store.c: the folder of a TensorStore, by its store.json. */
#define PEN_TENSOR_STORE "store.json"
bool pen__tensor_store_marks(const void *head, size_t n);
/* Does the object lie in the folder of a store? */
bool pen__tensor_store_has(struct pen_peek *);
/* All arrays that store.json names, and how many rows they have. */
int pen__tensor_store_index(const struct pen_arrays *, struct pen_peek *,
			    struct pen_found *, struct pen_err *err);

#endif
