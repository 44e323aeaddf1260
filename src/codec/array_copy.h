/*
 * An n-dimensional array as declared by a header, and the conversion of its
 * bytes, in any order, to rows in C order and native byte order. Shared by
 * array formats and decoders.
 */
#ifndef PEN_CODEC_ARRAY_COPY_H
#define PEN_CODEC_ARRAY_COPY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/dtype.h"

/* What a header declares. */
struct pen_array {
	enum pen_dtype dtype;
	bool swap;    /* big-endian elements of more than one byte */
	bool fortran; /* first axis fastest */
	uint32_t ndim;
	int64_t shape[PEN_MAX_DIMS];
	uint64_t at;	 /* offset of the data in its file or member */
	uint64_t nbytes; /* of data */
};

/* An array by options: dtype (NULL: uint8) and, unless NULL, shape. Without one
 * ndim and nbytes are 0. Errors name the option. */
int pen__parse_array(const char *dtype, const char *shape,
		     struct pen_array *out, struct pen_err *);

/* The same as samples; shape: that of one sample. */
struct pen_view {
	uint64_t at, nbytes;
	uint64_t n;    /* samples */
	uint64_t row;  /* bytes of one sample */
	uint64_t step; /* from the first element of a sample to that of the next
			*/
	size_t dims;   /* start of its shape in the pool */
	uint8_t ndim;
	uint8_t dtype;
	bool swap, fortran;
	bool strided; /* elements of samples are interleaved */
	bool plain;   /* bytes [k * row, + row) are the row, unchanged */
};

/*
 * Writes the row of the sample whose first element is at src: v->row bytes in C
 * order and native byte order. At least pen__view_span() bytes must follow src.
 */
void pen__view_copy(const struct pen_view *, const int64_t *shape,
		    const uint8_t *src, void *dst);
uint64_t pen__view_span(const struct pen_view *);

/*
 * A 2-d copy with arbitrary strides (in bytes): dst[i][j] = src[i][j] for ni x
 * nj elements; `swap` is the size of the byte-swapped unit in an element, or 0.
 */
struct pen_tile {
	size_t ni, nj;
	size_t dst_i; /* elements along j are adjacent in dst */
	size_t src_i, src_j;
};
void pen__tile_copy(const struct pen_tile *, size_t item, size_t swap,
		    uint8_t *dst, const uint8_t *src);
/* Size of the byte-swapped unit: a complex number has two. */
size_t pen__swap_size(enum pen_dtype);
/* Swaps the byte order of n bytes of numbers in place. */
void pen__swap(enum pen_dtype, uint8_t *p, size_t n);

#endif
