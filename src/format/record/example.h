/*
 * tf.train.Example, the message in most TFRecords: a map from names to lists of
 * bytes, floats or integers. Reading parses the bytes in place.
 */
#ifndef PEN_FORMAT_RECORD_EXAMPLE_H
#define PEN_FORMAT_RECORD_EXAMPLE_H

#include "format/format.h"

/* The field numbers in message Feature. */
enum pen_feature_kind {
	PEN_FEATURE_NONE,
	PEN_FEATURE_BYTES,
	PEN_FEATURE_FLOAT,
	PEN_FEATURE_INT64,
};

struct pen_feature {
	const uint8_t *name; /* not NUL-terminated */
	size_t name_len;
	enum pen_feature_kind kind;
	struct pen_span list; /* the encoded list */
};

struct pen_example {
	struct pen_bytes all, map;
};

static inline struct pen_example pen__example(const void *p, size_t n)
{
	return (struct pen_example){ pen__bytes(p, n), pen__bytes(p, 0) };
}

/* Returns 1 and the next feature, 0 at the end, or PEN_EDATA if it is not an
 * Example. If a name occurs several times, the last feature counts, as in any
 * map. */
int pen__example_next(struct pen_example *, struct pen_feature *out);

/*
 * Number of elements of a list: bytes of its only string, or numbers. 0,
 * PEN_EDATA if damaged, PEN_ENOTSUP for a list of several strings.
 */
int pen__feature_count(const struct pen_feature *, uint64_t *count);
/* Writes exactly `len` bytes to dst: uint8, float32 or int64. */
int pen__feature_get(const struct pen_feature *, void *dst, size_t len);
/* Location of the only string of a list of bytes; errors as for count. */
int pen__feature_bytes(const struct pen_feature *, struct pen_span *out);
enum pen_dtype pen__feature_dtype(enum pen_feature_kind);

/* Writing: appends one entry of the map, with n bytes, floats or integers at p;
 * for bytes with p NULL, only what precedes them. */
void pen__feature_put(struct pen_buf *, const char *name, enum pen_feature_kind,
		      const void *p, size_t n);
/* Writes what precedes a map of n bytes in an Example. */
void pen__example_head(struct pen_buf *, uint64_t n);
/* Writes the map as an Example. */
void pen__example_put(struct pen_buf *, const struct pen_buf *map);

#endif
