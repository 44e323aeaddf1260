/*
 * The header of an npy file: magic, version, and a Python dictionary with type,
 * order and shape.
 */
#ifndef PEN_CODEC_NPY_HEADER_H
#define PEN_CODEC_NPY_HEADER_H

#include "base/bytes.h"
#include "base/peek.h"
#include "codec/array_copy.h"

struct pen_npy {
	struct pen_array a; /* a.at: length of the header */
	uint8_t major;	    /* format version */
	uint32_t crc;	    /* crc32 of the header */
	uint64_t extra;	    /* bytes after the array */
};

/*
 * Reads the header at the start of pk. PEN_ENOTSUP only for an unsupported type
 * (with a header that matches the size, as far as can be checked); PEN_EDATA
 * for damaged or truncated data.
 */
int pen__npy_read(struct pen_peek *pk, struct pen_npy *out, struct pen_err *);

/* The same for a file in memory; allocates nothing. */
int pen__npy_parse(struct pen_span, const char *name, struct pen_npy *out,
		   struct pen_err *);

/* Encoding in an index blob. take() returns false if it is invalid. */
void pen__npy_put(struct pen_buf *, const struct pen_npy *);
bool pen__npy_take(struct pen_bytes *, struct pen_npy *);

#endif
