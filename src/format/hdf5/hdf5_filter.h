/* The filters a chunk went through, HDF5's or zarr's, and how to undo them. */
#ifndef PEN_FORMAT_HDF5_HDF5_FILTER_H
#define PEN_FORMAT_HDF5_HDF5_FILTER_H

#include "format/hdf5/hdf5.h"

struct pen_h5_pipe {
	uint32_t n;
	struct {
		uint16_t id;
		uint32_t item; /* shuffle: bytes of an item */
	} f[PEN_H5_FILTERS];
};

/* Refuses, by name, what cannot be undone. */
int pen__h5_pipe_init(struct pen_h5_pipe *, const struct pen_h5_data *,
		      const char *where, struct pen_err *);
/*
 * Adds what was done to chunks next, by the name zarr has for it: blosc, zstd,
 * gzip, zlib, lz4, shuffle (of items), crc32c; or "inflate", what a zip archive
 * does with its members.
 */
int pen__h5_pipe_add(struct pen_h5_pipe *, const char *name, uint32_t item,
		     const char *where, struct pen_err *);
/* Was only this done, by its name in zarr? */
bool pen__h5_pipe_is(const struct pen_h5_pipe *, const char *name);
/* Can `stored` bytes, with the filters not in mask, be `size` bytes? */
bool pen__h5_pipe_fits(const struct pen_h5_pipe *, uint32_t mask,
		       uint64_t stored, uint64_t size);
/* Every chunk can become what it has to, and they are not too many. */
int pen__h5_pipe_check(const struct pen_h5_pipe *, const struct pen_h5_data *,
		       const struct pen_h5_chunks *, const char *where,
		       struct pen_err *);
/* Working memory pen__h5_pipe_run() needs for chunks of `size` bytes. */
size_t pen__h5_pipe_room(const struct pen_h5_pipe *, uint64_t size);
/* The most that one byte can become. */
uint64_t pen__h5_pipe_ratio(const struct pen_h5_pipe *);
/* "shuffle, deflate" */
void pen__h5_pipe_text(const struct pen_h5_pipe *, char *buf, size_t cap);

struct pen_h5_run {
	const struct pen_h5_pipe *pipe;
	uint32_t mask; /* bit i: filter i was not applied */
	uint8_t *room; /* pen__h5_pipe_room() bytes */
	struct pen_scratch *scratch;
};
/* Exactly `size` bytes, or an error: *why then says which. */
int pen__h5_pipe_run(const struct pen_h5_run *, struct pen_span raw, void *out,
		     size_t size, const char **why);
/* At most cap bytes, *got of them; room as for chunks of cap bytes. */
int pen__h5_pipe_run_upto(const struct pen_h5_run *, struct pen_span raw,
			  void *out, size_t cap, size_t *got, const char **why);

#endif
