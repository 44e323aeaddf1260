/*
 * Shared by image decoders: the head, with three axes HxWxC for C channels
 * (rows have two axes if there is one channel), and the options.
 */
#ifndef PEN_DECODE_DECODE_IMAGE_H
#define PEN_DECODE_DECODE_IMAGE_H

#include "decode/decode.h"
#include "decode/image_rows.h"

/* Values of kind: how the image is decoded without conversion. */
enum {
	PEN_IMAGE_JPEG,
	PEN_IMAGE_AS_IS,
	PEN_IMAGE_TO_GREY,
	PEN_IMAGE_TO_RGB,
	PEN_IMAGE_TO_RGBA
};

/* The private memory of image decoders starts with this. */
struct pen_images {
	uint64_t max_pixels;
	int color; /* channels of all rows; 0: as stored */
	bool strict;
	bool changes; /* images are changed by plan */
	struct pen_image_texts texts;
	struct pen_image_plan plan;
};
extern const char *const pen__image_colors[];

/* Options of all image decoders. */
#define PEN_IMAGE_OPTS                                                         \
	{ .name = "color",                                                     \
	  .type = PEN_OPT_ENUM,                                                \
	  .off = offsetof(struct pen_images, color),                           \
	  .dflt = "auto",                                                      \
	  .choices = pen__image_colors,                                        \
	  .help = "channels of decoded images (auto: as stored; if they "      \
		  "differ, enough for all)" },                                 \
	{                                                                      \
		.name = "max_pixels", .type = PEN_OPT_COUNT,                   \
		.off = offsetof(struct pen_images, max_pixels),                \
		.dflt = "178956970", .min = 1, .max = 4e9,                     \
		.help = "largest number of pixels accepted (rejects "          \
			"decompression bombs)"                                 \
	}

int pen__image_options(struct pen_decoder *, struct pen_err *);
/* Error: not an image of this kind; reports its first bytes. */
int pen__image_other(struct pen_peek *, const char *kind, struct pen_err *);
/* Checks the size, shape[0] x shape[1], against the limit. */
int pen__image_check(const struct pen_decoder *, struct pen_peek *,
		     const struct pen_head *, struct pen_err *);
const char *pen__image_join(const struct pen_decoder *, struct pen_head *all,
			    const struct pen_head *one);
void pen__image_settle(const struct pen_decoder *, struct pen_head *all);
const char *pen__image_looks(const struct pen_head *all);

/* Bytes of the row of a value. */
size_t pen__image_bytes(const struct pen_images *, const struct pen_encoded *);

/* Number of channels of rows. */
static inline unsigned pen__image_channels(const struct pen_head *all)
{
	return all->ndim == 2 ? 1 : (unsigned)all->shape[2];
}

#endif
