/* Shared by formats with one image per file; see format/whole_files.h for
 * reading. */
#ifndef PEN_FORMAT_IMAGE_IMAGE_H
#define PEN_FORMAT_IMAGE_IMAGE_H

#include "format/format.h"

/* Options of the decoder, here only checked and listed. The private memory of
 * image formats starts with this. */
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
		.help = "treat damaged files as errors (false: decode what "   \
			"is readable)"                                         \
	}
#define PEN_IMAGE_MAX_PIXELS                                                   \
	{                                                                      \
		.name = "max_pixels", .type = PEN_OPT_COUNT,                   \
		.off = offsetof(struct pen_image_opts, max_pixels),            \
		.dflt = "178956970", .min = 1, .max = 4e9,                     \
		.help = "largest number of pixels accepted (rejects "          \
			"decompression bombs)"                                 \
	}

/* An image to write. */
struct pen_image {
	uint32_t width, height;
	uint8_t channels;
	uint8_t dtype;
};

/*
 * The single sample of a table to write as an image, and its properties. *mem
 * is the caller's to free. NULL: see err.
 */
const void *pen__image_take(const struct pen_table *, struct pen_image *out,
			    void **mem, struct pen_err *);

#endif
