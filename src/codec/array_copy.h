/*
 * An n-dimensional array as a header declares it, and how its bytes, in any
 * order, become rows in C order of this machine. Shared by formats of arrays
 * and by what decodes one.
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
	bool swap;    /* big-endian items of more than one byte */
	bool fortran; /* first axis fastest */
	uint32_t ndim;
	int64_t shape[PEN_MAX_DIMS];
	uint64_t at;	 /* where the data begins in its file or member */
	uint64_t nbytes; /* of data */
};

/* The same, seen as samples; shape is that of one sample. */
struct pen_view {
	uint64_t at, nbytes;
	uint64_t n;    /* samples */
	uint64_t row;  /* bytes of one sample */
	uint64_t step; /* from a sample's first item to the next sample's */
	size_t dims;   /* where its shape begins in the pool */
	uint8_t ndim;
	uint8_t dtype;
	bool swap, fortran;
	bool strided; /* items of one sample lie between those of others */
	bool plain;   /* bytes [k * row, + row) are the row, as they are */
};

/*
 * The row of the sample whose first item is at src: v->row bytes in C order,
 * this machine's byte order. The array's bytes reach at least as far as the
 * sample needs: `pen__view_span` of them.
 */
void pen__view_copy(const struct pen_view *, const int64_t *shape,
		    const uint8_t *src, void *dst);
uint64_t pen__view_span(const struct pen_view *);

/*
 * A 2-d copy with free strides (in bytes): dst[i][j] = src[i][j] for ni x nj
 * items; `swap` is the size of what is byte-swapped inside an item, or 0.
 */
struct pen_tile {
	size_t ni, nj;
	size_t dst_i; /* dst's j runs over adjacent items */
	size_t src_i, src_j;
};
void pen__tile_copy(const struct pen_tile *, size_t item, size_t swap,
		    uint8_t *dst, const uint8_t *src);
/* Bytes that swap as one: complex numbers are two of them. */
size_t pen__swap_size(enum pen_dtype);
/* n bytes of numbers into the other byte order, in place. */
void pen__swap(enum pen_dtype, uint8_t *p, size_t n);

#endif
