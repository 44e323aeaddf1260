/* The filters applied to a chunk, by HDF5 or zarr, and how to undo them. */
#ifndef PEN_FORMAT_CHUNKED_FILTERS_H
#define PEN_FORMAT_CHUNKED_FILTERS_H

#include "format/format.h"

#define PEN_FILTERS 8

struct pen_filters {
	uint32_t n;
	struct {
		uint16_t id;
		uint32_t item; /* shuffle: bytes of an element */
	} f[PEN_FILTERS];
};

/* Rejects HDF5 filters that cannot be undone, by name. */
int pen__filters_known(const struct pen_filters *, const char *where,
		       struct pen_err *);
/*
 * Adds the next filter, by its name in zarr: blosc, zstd, gzip, zlib, lz4,
 * shuffle (of elements), crc32c; or "inflate", the compression of zip members.
 */
int pen__filters_add(struct pen_filters *, const char *name, uint32_t item,
		     const char *where, struct pen_err *);
/* Whether this is the only filter, by its name in zarr. */
bool pen__filters_are(const struct pen_filters *, const char *name);
/* Whether `stored` bytes can decode to `size` bytes with the filters not in
 * mask. */
bool pen__filters_fit(const struct pen_filters *, uint32_t mask,
		      uint64_t stored, uint64_t size);
/* Working memory of pen__filters_run() for chunks of `size` bytes. */
size_t pen__filters_room(const struct pen_filters *, uint64_t size);
/* Maximum expansion of one byte. */
uint64_t pen__filters_ratio(const struct pen_filters *);
/* "shuffle, deflate" */
void pen__filters_text(const struct pen_filters *, char *buf, size_t cap);

struct pen_filter_run {
	const struct pen_filters *filters;
	uint32_t mask; /* bit i: filter i was not applied */
	uint8_t *room; /* pen__filters_room() bytes */
	struct pen_scratch *scratch;
};
/* Writes exactly `size` bytes, or returns an error with the reason in *why. */
int pen__filters_run(const struct pen_filter_run *, struct pen_span raw,
		     void *out, size_t size, const char **why);
/* Writes at most cap bytes, *got of them; room as for chunks of cap bytes. */
int pen__filters_run_upto(const struct pen_filter_run *, struct pen_span raw,
			  void *out, size_t cap, size_t *got, const char **why);

#endif
