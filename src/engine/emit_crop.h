/*
 * The part of a sample that goes into its row: take= crops every sample to one
 * shape, cast= changes its dtype. This stands in for the crop or resize of a
 * real job, so that the model gets what it would get and memory holds no more.
 */
#ifndef PEN_ENGINE_EMIT_CROP_H
#define PEN_ENGINE_EMIT_CROP_H

#include "engine/dataset.h"

/* The padding value: zero unless the format chooses another. */
struct pen_fill {
	bool other;
	uint8_t item[32]; /* one element */
	uint32_t size;
	bool before; /* padding precedes the data */
};
void pen__fill_init(struct pen_fill *, const struct pen_pad *, enum pen_dtype);
void pen__fill(const struct pen_fill *, void *to, size_t bytes);

struct pen_crop {
	bool on;
	uint32_t field; /* the largest one */
	enum pen_dtype from, to;
	size_t n; /* elements of a row */
	struct pen_fill fill;
};

/* Changes the field to its delivered form; `how` describes the conversion. */
int pen__crop_init(struct pen_crop *how, struct pen_field *field,
		   const struct pen_spec *, struct pen_err *);
/* The leading bytes of the sample that are needed. */
static inline size_t pen__crop_bytes(const struct pen_crop *t)
{
	return t->n * pen_dtype_size(t->from);
}
/*
 * Writes n bytes of the sample, from byte `at` on, into the row. With a
 * conversion, pieces start and end between elements, up to crop_bytes.
 */
void pen__crop_piece(const struct pen_crop *, void *row, size_t at,
		     const void *src, size_t n);
/* The sample has only n bytes: pads the rest of its row. */
void pen__crop_end(const struct pen_crop *, void *row, size_t n);

/* Element i of an array as a number; NAN for complex and long double. */
double pen__number_at(const void *p, enum pen_dtype, size_t i);

#endif
