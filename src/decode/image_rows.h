/*
 * From the rows of an image, as its decoder delivers them, to the row of a
 * batch: crop, resize, flip, colours, type and layout, in one pass.
 */
#ifndef PEN_DECODE_IMAGE_ROWS_H
#define PEN_DECODE_IMAGE_ROWS_H

#include "decode/decode.h"
#include "decode/image_plan.h"

/* The part of an image that is needed; nothing if height is 0. */
struct pen_image_part {
	uint32_t left, top, width, height;
};

struct pen_image_rows {
	const struct pen_image_plan *plan;
	const struct pen_encoded *value;
	struct pen_image_part part;
	/* owned by image_rows.c */
	struct pen_image_draw draw;
	struct image_work *work;
};

/* PEN_ENOMEM if memory is short. */
int pen__image_rows_start(struct pen_image_rows *,
			  const struct pen_image_plan *,
			  const struct pen_encoded *);
/* Takes the next row of the part: RGB, with 16 readable bytes after it. */
void pen__image_rows_put(struct pen_image_rows *, const uint8_t *rgb);
/* After the last row. */
void pen__image_rows_end(struct pen_image_rows *);

#endif
