/*
 * What is done to images on their way into a batch: the settings image.*, and
 * what they mean for one image. Random choices depend on the key of a sample
 * only, that is on (seed, epoch, sample).
 */
#ifndef PEN_DECODE_IMAGE_PLAN_H
#define PEN_DECODE_IMAGE_PLAN_H

#include "base/dtype.h"
#include "base/opt.h"
#include "decode/image_resize.h"

/* Settings as given; NULL: not given. */
struct pen_image_texts {
	const char *preset, *size, *resize, *crop, *pad, *scale, *ratio;
	const char *filter, *flip, *vflip, *jitter, *grey, *normalize;
	const char *layout, *dtype;
};

enum pen_image_crop {
	PEN_CROP_NONE,
	PEN_CROP_CENTER,
	PEN_CROP_RANDOM, /* of random size and aspect ratio */
	PEN_CROP_WINDOW, /* of the size of rows, at a random place */
};

struct pen_image_plan {
	uint32_t height, width; /* of rows; 0: images stay as they are */
	uint32_t resize;	/* length of the shorter side, before a crop */
	uint32_t pad;
	int crop, filter;
	double scale[2], ratio[2];
	double flip, vflip, grey; /* probabilities */
	double jitter[4];	  /* brightness, contrast, saturation, hue */
	bool chw;
	uint8_t dtype;
	/* Per channel and value of a pixel: its element in the row, of 1, 2 or
	 * 4 bytes. */
	union {
		float f32[3][256];
		uint16_t f16[3][256];
	} value;
};

/* The draw of one image. */
struct pen_image_draw {
	uint32_t left, top; /* corner of the part that is resized */
	struct pen_resize_axis x, y;
	bool grey;
	/* Order and strength of brightness, contrast, saturation and hue. */
	uint8_t order[4];
	double strength[4];
};

/* The settings, to be placed in an option table; `at` is the offset of struct
 * pen_image_texts. */
extern const struct pen_opt pen__image_settings[];

/* Errors name settings without their prefix. */
int pen__image_plan(struct pen_image_plan *, const struct pen_image_texts *,
		    struct pen_err *);
void pen__image_draw(const struct pen_image_plan *, uint32_t height,
		     uint32_t width, uint64_t key, struct pen_image_draw *);
/* Brightness, contrast, saturation, hue and grey of n RGB pixels, as Pillow
 * does it. */
void pen__image_recolor(const struct pen_image_plan *,
			const struct pen_image_draw *, uint8_t *rgb, size_t n);

static inline bool pen__image_recolors(const struct pen_image_plan *p)
{
	return p->grey > 0 || p->jitter[0] > 0 || p->jitter[1] > 0 ||
	       p->jitter[2] > 0 || p->jitter[3] > 0;
}

#endif
