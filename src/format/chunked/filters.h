/* The filters a chunk went through, HDF5's or zarr's, and how to undo them. */
#ifndef PEN_FORMAT_CHUNKED_FILTERS_H
#define PEN_FORMAT_CHUNKED_FILTERS_H

#include "format/format.h"

#define PEN_FILTERS 8

struct pen_filters {
	uint32_t n;
	struct {
		uint16_t id;
		uint32_t item; /* shuffle: bytes of an item */
	} f[PEN_FILTERS];
};

/* Refuses, by name, what of HDF5's cannot be undone. */
int pen__filters_known(const struct pen_filters *, const char *where,
		       struct pen_err *);
/*
 * Adds what was done to chunks next, by the name zarr has for it: blosc, zstd,
 * gzip, zlib, lz4, shuffle (of items), crc32c; or "inflate", what a zip archive
 * does with its members.
 */
int pen__filters_add(struct pen_filters *, const char *name, uint32_t item,
		     const char *where, struct pen_err *);
/* Was only this done, by its name in zarr? */
bool pen__filters_are(const struct pen_filters *, const char *name);
/* Can `stored` bytes, with the filters not in mask, be `size` bytes? */
bool pen__filters_fit(const struct pen_filters *, uint32_t mask,
		      uint64_t stored, uint64_t size);
/* Working memory pen__filters_run() needs for chunks of `size` bytes. */
size_t pen__filters_room(const struct pen_filters *, uint64_t size);
/* The most that one byte can become. */
uint64_t pen__filters_ratio(const struct pen_filters *);
/* "shuffle, deflate" */
void pen__filters_text(const struct pen_filters *, char *buf, size_t cap);

struct pen_filter_run {
	const struct pen_filters *filters;
	uint32_t mask; /* bit i: filter i was not applied */
	uint8_t *room; /* pen__filters_room() bytes */
	struct pen_scratch *scratch;
};
/* Exactly `size` bytes, or an error: *why then says which. */
int pen__filters_run(const struct pen_filter_run *, struct pen_span raw,
		     void *out, size_t size, const char **why);
/* At most cap bytes, *got of them; room as for chunks of cap bytes. */
int pen__filters_run_upto(const struct pen_filter_run *, struct pen_span raw,
			  void *out, size_t cap, size_t *got, const char **why);

#endif
