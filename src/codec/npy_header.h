/*
 * The header of an npy file: magic, version, and a Python dictionary that
 * says type, order and shape. Read and made here for all who have such bytes.
 */
#ifndef PEN_CODEC_NPY_HEADER_H
#define PEN_CODEC_NPY_HEADER_H

#include "base/bytes.h"
#include "base/peek.h"
#include "codec/array_copy.h"

struct pen_npy {
	struct pen_array a; /* a.at: the header's length */
	uint8_t major;	    /* format version */
	uint32_t crc;	    /* crc32 of the header's bytes */
	uint64_t extra;	    /* bytes after the array */
};

/*
 * Reads the header at the beginning of pk. PEN_ENOTSUP only for a type that
 * is not read (with a header that fits the size, as far as one can tell);
 * PEN_EDATA for damage and for data that ends too early.
 */
int pen__npy_read(struct pen_peek *pk, struct pen_npy *out, struct pen_err *);

/* The same of a whole file in memory; allocates nothing. */
int pen__npy_parse(struct pen_span, const char *name, struct pen_npy *out,
		   struct pen_err *);

/* Into and out of an index blob. take() is false when it is not one. */
void pen__npy_put(struct pen_buf *, const struct pen_npy *);
bool pen__npy_take(struct pen_bytes *, struct pen_npy *);

#endif
