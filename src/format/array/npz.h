/* Shared by the reader (npz.c, npz_index.c) and writer (npz_write.c) of npz. */
#ifndef PEN_FORMAT_ARRAY_NPZ_H
#define PEN_FORMAT_ARRAY_NPZ_H

#include "format/array/npy.h"

/* A field of one object: the location and encoding of its member. */
struct pen_npz_member {
	uint64_t at; /* of the member's bytes in the object */
	uint64_t csize, usize;
	uint32_t crc;	     /* of the member */
	uint32_t header_crc; /* of the npy header at its start */
	size_t view;
	bool deflated;
};

struct pen_npz {
	/* options */
	int samples;  /* enum pen_samples */
	char *fields; /* comma-separated; NULL: all numeric ones */
	bool crc;
	bool compress;
	int64_t level;
	/* from bind() on */
	struct pen_views views;
	struct pen_npz_member *member; /* blob id * nfields + field */
};

/* One member as index() found it; blobs consist of these. */
struct pen_npz_entry {
	char name[sizeof(((struct pen_field *)0)->name)];
	struct pen_npz_member m; /* m.view is not set */
	struct pen_npy npy;
};
void pen__npz_put(struct pen_buf *, const struct pen_npz_entry *);
bool pen__npz_take(struct pen_bytes *, struct pen_npz_entry *);

int pen__npz_index(const struct pen_format *, struct pen_peek *,
		   struct pen_found *, struct pen_err *);
int pen__npz_write(const struct pen_format *, const struct pen_table *,
		   struct pen_out *, struct pen_err *);

#endif
