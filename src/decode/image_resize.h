/*
 * Resizing as Pillow does it, to the bit, in one pass over the rows of an image
 * as they are decoded: a row is resampled horizontally when it arrives, and an
 * output row is computed as soon as its last input row has arrived. So the
 * image never exists as a whole: only as many rows as one output row needs.
 *
 * Only a window of the resized image is computed. It may extend beyond the
 * image; there the result is 0.
 */
#ifndef PEN_DECODE_IMAGE_RESIZE_H
#define PEN_DECODE_IMAGE_RESIZE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum pen_filter {
	PEN_FILTER_NEAREST,
	PEN_FILTER_BOX,
	PEN_FILTER_BILINEAR,
	PEN_FILTER_HAMMING,
	PEN_FILTER_BICUBIC,
	PEN_FILTER_LANCZOS,
};

/* One axis: `in` pixels are resized to `out`; of these, the window starts at
 * `at`, which may be negative, and has `n` pixels, mirrored if `flip`. */
struct pen_resize_axis {
	uint32_t in, out, n;
	int64_t at;
	bool flip;
};

/* Working memory of one thread. Starts as zeros. */
struct pen_resizer {
	/* Per axis (x, y) and pixel of the window: first input pixel, number of
	 * taps (0: outside the image), and `taps` weights each. */
	struct pen_taps {
		uint32_t *first, *count;
		int16_t *weight;
		uint32_t taps, n;
		uint32_t from, to; /* input pixels that are needed */
		size_t cap;
		bool copy; /* the input pixels are the output pixels */
	} axis[2];
	uint8_t *row; /* axis[1].taps rows, and one of output */
	size_t row_cap, stride;
	uint32_t next, done; /* next input row; output rows so far */
	bool flip;	     /* output rows come last to first */
};

/* 0, or PEN_ENOMEM. filter: enum pen_filter. */
int pen__resize_start(struct pen_resizer *, int filter,
		      const struct pen_resize_axis *x,
		      const struct pen_resize_axis *y);
/*
 * Takes the next of the rows axis[1].from to axis[1].to of the image, at pixel
 * axis[0].from; 16 bytes after pixel axis[0].to are readable. All finished rows
 * must have been pulled.
 */
void pen__resize_push(struct pen_resizer *, const uint8_t *rgb);
/* The next finished row of the window and its number, or NULL. Valid until the
 * next call of push or pull. */
const uint8_t *pen__resize_pull(struct pen_resizer *, uint32_t *y);
void pen__resize_fini(struct pen_resizer *);

#endif
