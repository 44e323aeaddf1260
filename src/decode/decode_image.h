/*
 * What decoders of images share: the head, three axes HxWxC with C channels
 * (of rows two axes, when there is one channel), and its options.
 */
#ifndef PEN_DECODE_DECODE_IMAGE_H
#define PEN_DECODE_DECODE_IMAGE_H

#include "decode/decode.h"

/* What kind says: how the image is decoded when left as it is. */
enum {
	PEN_IMAGE_JPEG,
	PEN_IMAGE_AS_IS,
	PEN_IMAGE_TO_GREY,
	PEN_IMAGE_TO_RGB,
	PEN_IMAGE_TO_RGBA
};

/* The first thing in the private part of a decoder of images. */
struct pen_images {
	uint64_t max_pixels;
	int color; /* channels of all rows; 0: what the images have */
	bool strict;
};
extern const char *const pen__image_colors[];

/* The options that every decoder of images has. */
#define PEN_IMAGE_OPTS                                                         \
	{ .name = "color",                                                     \
	  .type = PEN_OPT_ENUM,                                                \
	  .off = offsetof(struct pen_images, color),                           \
	  .dflt = "auto",                                                      \
	  .choices = pen__image_colors,                                        \
	  .help = "pixels to make; auto: what the images have, and "           \
		  "where they differ, what shows all" },                       \
	{                                                                      \
		.name = "max_pixels", .type = PEN_OPT_COUNT,                   \
		.off = offsetof(struct pen_images, max_pixels),                \
		.dflt = "178956970", .min = 1, .max = 4e9,                     \
		.help = "larger images are refused, as they are most often "   \
			"made to do harm"                                      \
	}

int pen__image_options(struct pen_decoder *, struct pen_err *);
/* PEN_EDATA: it is no PNG, or what kind says; what it begins with. */
int pen__image_other(struct pen_peek *, const char *kind, struct pen_err *);
/* Checks the size, shape[0] x shape[1], against the limit. */
int pen__image_check(const struct pen_decoder *, struct pen_peek *,
		     const struct pen_head *, struct pen_err *);
const char *pen__image_join(const struct pen_decoder *, struct pen_head *all,
			    const struct pen_head *one);
void pen__image_settle(const struct pen_decoder *, struct pen_head *all);
const char *pen__image_looks(const struct pen_head *all);

/* Channels of rows. */
static inline unsigned pen__image_channels(const struct pen_head *all)
{
	return all->ndim == 2 ? 1 : (unsigned)all->shape[2];
}

#endif
