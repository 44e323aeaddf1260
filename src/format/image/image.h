/* What formats of one image a file share; see format/whole_files.h for reading.
 */
#ifndef PEN_FORMAT_IMAGE_IMAGE_H
#define PEN_FORMAT_IMAGE_IMAGE_H

#include "format/format.h"

/* Options that the decoder gets: here only checked, and listed. The first
 * thing in the private part of a format of images. */
struct pen_image_opts {
	uint64_t max_pixels;
	int color;
	bool strict;
};

#define PEN_IMAGE_STRICT                                                       \
	{                                                                      \
		.name = "strict", .type = PEN_OPT_BOOL,                        \
		.off = offsetof(struct pen_image_opts, strict),                \
		.dflt = "true",                                                \
		.help = "damaged files are errors; false: decode what can be"  \
	}
#define PEN_IMAGE_MAX_PIXELS                                                   \
	{                                                                      \
		.name = "max_pixels", .type = PEN_OPT_COUNT,                   \
		.off = offsetof(struct pen_image_opts, max_pixels),            \
		.dflt = "178956970", .min = 1, .max = 4e9,                     \
		.help = "larger images are refused, as they are most often "   \
			"made "                                                \
			"to do harm"                                           \
	}

/* An image to be written. */
struct pen_image {
	uint32_t width, height;
	uint8_t channels;
	uint8_t dtype;
};

/*
 * A table to write as one image: its one sample and what it looks like. *mem
 * is the caller's to free. NULL: err says why.
 */
const void *pen__image_take(const struct pen_table *, struct pen_image *out,
			    void **mem, struct pen_err *);

#endif
