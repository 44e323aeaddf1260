/*
 * A file that is an image, which is a sample: what jpeg and png share. The
 * field x is HxW, or HxWxC with C channels; sizes may differ between files.
 */
#ifndef PEN_FORMAT_IMAGE_IMAGE_H
#define PEN_FORMAT_IMAGE_IMAGE_H

#include "format/format.h"

struct pen_image {
	uint32_t width, height;
	uint8_t channels;
	uint8_t dtype; /* PEN_U8 or PEN_U16 */
	uint8_t kind;  /* the format's own note */
};

/* The first thing in the private part of a format of images. */
struct pen_images {
	uint64_t max_pixels;	 /* option */
	uint8_t channels;	 /* of all rows, from bind() on; 0 before */
	struct pen_image *image; /* by blob */
};

/* The option every format of images has. */
#define PEN_IMAGE_MAX_PIXELS                                                   \
	{                                                                      \
		.name = "max_pixels", .type = PEN_OPT_COUNT,                   \
		.off = offsetof(struct pen_images, max_pixels),                \
		.dflt = "178956970", .min = 1, .max = 4e9,                     \
		.help = "larger images are refused, as they are most often "   \
			"made "                                                \
			"to do harm"                                           \
	}

/* PEN_EDATA: the file is no PNG, or what kind says; what it begins with. */
int pen__image_other(struct pen_peek *, const char *kind, struct pen_err *);
/* Checks the size against the limit and makes the blob. */
int pen__image_found(const struct pen_format *, struct pen_peek *,
		     const struct pen_image *, struct pen_found *,
		     struct pen_err *);
/*
 * Declares x. want: channels that all rows get, or 0 for what there is; then
 * files that differ get the most any has, and grey next to colour is colour.
 */
int pen__image_bind(struct pen_format *, const struct pen_index *,
		    unsigned want, struct pen_err *);
void pen__image_close(struct pen_format *);
const struct pen_image *pen__image_of(const struct pen_format *,
				      uint32_t object);
void pen__image_shape(const struct pen_format *, uint32_t object, uint64_t k,
		      uint32_t field, int64_t *shape);
void pen__image_locate(const struct pen_format *, uint32_t object, uint64_t k,
		       struct pen_unit *);
void pen__image_describe(const struct pen_format *, struct pen_describe *);
/*
 * A table to write as one image: its one sample and what it looks like. *mem
 * is the caller's to free. NULL: err says why.
 */
const void *pen__image_take(const struct pen_table *, struct pen_image *out,
			    void **mem, struct pen_err *);

#endif
