/*
 * See image_plan.h. The geometry is that of torchvision's transforms: the same
 * formulas, rounding and number of attempts, so crops have the same
 * distribution; the random numbers are our own.
 */
#include "decode/image_plan.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/half.h"
#include "base/rng.h"

#define SETTING(field, text)                                                   \
	{                                                                      \
		.name = #field, .type = PEN_OPT_STR,                           \
		.off = offsetof(struct pen_image_texts, field), .help = text   \
	}

const struct pen_opt pen__image_settings[] = {
	SETTING(preset, "train:SIZE or eval:RESIZE,SIZE, short for the usual "
			"settings (also: image=train:224)"),
	SETTING(size, "size of rows: N, or HEIGHTxWIDTH"),
	SETTING(resize, "resize the shorter side to this before crop=center or "
			"crop=window"),
	SETTING(crop,
		"none (resize all of it), center, random (RandomResizedCrop) "
		"or window (RandomCrop)"),
	SETTING(pad,
		"crop=window: zeros added on each side first (default: 0)"),
	SETTING(scale, "crop=random: smallest and largest share of the area "
		       "(default: 0.08,1)"),
	SETTING(ratio, "crop=random: smallest and largest aspect ratio "
		       "(default: 0.75,1.3333)"),
	SETTING(filter, "nearest, box, bilinear (default), hamming, bicubic or "
			"lanczos"),
	SETTING(flip, "probability of a horizontal flip (default: 0)"),
	SETTING(vflip, "probability of a vertical flip (default: 0)"),
	SETTING(jitter,
		"BRIGHTNESS,CONTRAST,SATURATION,HUE, as ColorJitter has "
		"them (default: 0,0,0,0)"),
	SETTING(grey, "probability of grey pixels (default: 0)"),
	SETTING(normalize, "imagenet, none (default), or the mean and standard "
			   "deviation of three channels: M,M,M,S,S,S"),
	SETTING(layout, "hwc (default) or chw"),
	SETTING(dtype, "uint8, float32 or float16 (default: uint8, float32 if "
		       "normalised)"),
	{ .name = NULL },
};

/* ---- settings ---- */

static int wrong(const char *name, const char *value, const char *want,
		 struct pen_err *err)
{
	return pen__fail(err, P_BAD_VALUE, name, "'%.60s' is not valid; use %s",
			 value, want);
}

/* n numbers in [lowest, highest], separated by commas. */
static int numbers(const char *name, const char *text, double *out, unsigned n,
		   const double bounds[2], struct pen_err *err)
{
	const char *p = text;
	char want[80], *end;

	for (unsigned i = 0; i < n; i++, p = end + (*end == ',')) {
		out[i] = strtod(p, &end);
		if (end == p || *end != (i + 1 < n ? ',' : '\0') ||
		    !(out[i] >= bounds[0] && out[i] <= bounds[1])) {
			snprintf(want, sizeof(want),
				 "%u number%s from %g to %g%s", n,
				 n > 1 ? "s" : "", bounds[0], bounds[1],
				 n > 1 ? ", separated by commas" : "");
			return wrong(name, text, want, err);
		}
	}
	return 0;
}

static int whole(const char *name, const char *text, uint32_t *out, double most,
		 struct pen_err *err)
{
	const double bounds[2] = { 0, most };
	double v = 0;
	int rc = text ? numbers(name, text, &v, 1, bounds, err) : 0;

	if (!rc && v != floor(v))
		rc = wrong(name, text, "an integer", err);
	if (!rc && text)
		*out = (uint32_t)v;
	return rc;
}

static int pick(const char *name, const char *text, const char *const *names,
		int *out, struct pen_err *err)
{
	char want[120] = "";

	for (int i = 0; names[i]; i++) {
		if (text && strcmp(text, names[i]) == 0) {
			*out = i;
			return 0;
		}
		snprintf(want + strlen(want), sizeof(want) - strlen(want),
			 "%s%s", i ? ", " : "one of ", names[i]);
	}
	return text ? wrong(name, text, want, err) : 0;
}

static const double chance[2] = { 0, 1 };
static const double imagenet[6] = { 0.485, 0.456, 0.406, 0.229, 0.224, 0.225 };

#define MOST_SIDE 65536

static int take_size(const char *text, struct pen_image_plan *p,
		     struct pen_err *err)
{
	unsigned h = 0, w = 0;
	char rest = 0;
	int n;

	if (!text)
		return 0;
	n = sscanf(text, "%5ux%5u%c", &h, &w, &rest);
	if (n == 1 && text[strspn(text, "0123456789")] == '\0')
		w = h;
	else if (n != 2)
		h = 0;
	if (!h || !w || h > MOST_SIDE || w > MOST_SIDE)
		return wrong("size", text, "N or HEIGHTxWIDTH", err);
	p->height = h;
	p->width = w;
	return 0;
}

/* "train:224" or "eval:256,224" */
static int take_preset(const char *text, struct pen_image_plan *p,
		       bool *normalised, struct pen_err *err)
{
	unsigned resize = 0, size = 0;
	char rest = 0;

	if (!text)
		return 0;
	*normalised = p->chw = true;
	if (sscanf(text, "train:%5u%c", &size, &rest) == 1 && size) {
		p->crop = PEN_CROP_RANDOM;
		p->flip = 0.5;
	} else if (sscanf(text, "eval:%5u,%5u%c", &resize, &size, &rest) == 2 &&
		   size && resize) {
		p->crop = PEN_CROP_CENTER;
		p->resize = resize;
	} else {
		return wrong("preset", text, "train:SIZE or eval:RESIZE,SIZE",
			     err);
	}
	p->height = p->width = size;
	return 0;
}

static int take_geometry(struct pen_image_plan *p,
			 const struct pen_image_texts *t, struct pen_err *err)
{
	static const char *const crops[] = { "none", "center", "random",
					     "window", NULL };
	static const char *const filters[] = { "nearest", "box",     "bilinear",
					       "hamming", "bicubic", "lanczos",
					       NULL };
	static const double area[2] = { 1e-6, 1 }, aspect[2] = { 1e-3, 1e3 };
	int rc = take_size(t->size, p, err);

	if (!rc)
		rc = whole("resize", t->resize, &p->resize, MOST_SIDE, err);
	if (!rc)
		rc = whole("pad", t->pad, &p->pad, MOST_SIDE, err);
	if (!rc)
		rc = pick("crop", t->crop, crops, &p->crop, err);
	if (!rc)
		rc = pick("filter", t->filter, filters, &p->filter, err);
	if (!rc && t->scale)
		rc = numbers("scale", t->scale, p->scale, 2, area, err);
	if (!rc && t->ratio)
		rc = numbers("ratio", t->ratio, p->ratio, 2, aspect, err);
	if (!rc && t->flip)
		rc = numbers("flip", t->flip, &p->flip, 1, chance, err);
	if (!rc && t->vflip)
		rc = numbers("vflip", t->vflip, &p->vflip, 1, chance, err);
	return rc;
}

static int no_effect(const char *name, const char *without, struct pen_err *err)
{
	return pen__fail(err, P_NO_EFFECT, name, "has no effect without %s",
			 without);
}

static int check_geometry(const struct pen_image_plan *p,
			  const struct pen_image_texts *t, struct pen_err *err)
{
	if (!p->height)
		return pen__fail(err, P_BAD_VALUE, "size",
				 "is missing: images must get one size; set "
				 "it, or image=train:224");
	if (p->resize && p->crop != PEN_CROP_CENTER &&
	    p->crop != PEN_CROP_WINDOW)
		return no_effect("resize", "crop=center or crop=window", err);
	if (t->pad && p->crop != PEN_CROP_WINDOW)
		return no_effect("pad", "crop=window", err);
	if ((t->scale || t->ratio) && p->crop != PEN_CROP_RANDOM)
		return no_effect(t->scale ? "scale" : "ratio", "crop=random",
				 err);
	if (p->scale[0] > p->scale[1])
		return wrong("scale", t->scale, "the smaller number first",
			     err);
	if (p->ratio[0] > p->ratio[1])
		return wrong("ratio", t->ratio, "the smaller number first",
			     err);
	if (t->filter && p->crop != PEN_CROP_NONE &&
	    p->crop != PEN_CROP_RANDOM && !p->resize)
		return no_effect("filter", "resize", err);
	return 0;
}

static int take_colors(struct pen_image_plan *p,
		       const struct pen_image_texts *t, struct pen_err *err)
{
	static const double most[2] = { 0, 100 }, half[2] = { 0, 0.5 };
	const char *hue;
	int rc = 0;

	if (t->grey)
		rc = numbers("grey", t->grey, &p->grey, 1, chance, err);
	if (rc || !t->jitter)
		return rc;
	rc = numbers("jitter", t->jitter, p->jitter, 4, most, err);
	hue = strrchr(t->jitter, ',');
	if (!rc && hue)
		rc = numbers("jitter", hue + 1, &p->jitter[3], 1, half, err);
	return rc;
}

/* The element of each value of a pixel. Divides twice, like torchvision's
 * ToTensor and Normalize, so that the results are equal to the bit. */
static void fill_values(struct pen_image_plan *p, const double *stats)
{
	for (unsigned c = 0; c < 3; c++)
		for (unsigned v = 0; v < 256; v++) {
			float f = (float)v / 255.0f;

			if (stats)
				f = (f - (float)stats[c]) / (float)stats[3 + c];
			if (p->dtype == PEN_F32)
				p->value.f32[c][v] = f;
			else if (p->dtype == PEN_F16)
				p->value.f16[c][v] = pen__double_to_half(f);
		}
}

static int take_values(struct pen_image_plan *p,
		       const struct pen_image_texts *t, bool normalised,
		       struct pen_err *err)
{
	static const char *const layouts[] = { "hwc", "chw", NULL };
	static const char *const dtypes[] = { "uint8", "float32", "float16",
					      NULL };
	static const uint8_t of[] = { PEN_U8, PEN_F32, PEN_F16 };
	static const double any[2] = { -1e6, 1e6 };
	const char *norm = t->normalize ? t->normalize
			   : normalised ? "imagenet"
					: "none";
	double stats[6];
	int layout = p->chw, dtype, rc = 0;

	memcpy(stats, imagenet, sizeof(stats));
	normalised = strcmp(norm, "none") != 0;
	if (normalised && strcmp(norm, "imagenet") != 0)
		rc = numbers("normalize", norm, stats, 6, any, err);
	for (unsigned c = 3; c < 6 && !rc; c++)
		if (stats[c] <= 0)
			rc = wrong("normalize", norm,
				   "standard deviations above 0", err);
	dtype = normalised;
	if (!rc)
		rc = pick("layout", t->layout, layouts, &layout, err);
	if (!rc)
		rc = pick("dtype", t->dtype, dtypes, &dtype, err);
	if (!rc && normalised && !dtype)
		rc = pen__fail(err, P_CONFLICT, "dtype",
			       "uint8 contradicts normalize=%.40s; set "
			       "normalize=none or a floating-point type",
			       norm);
	p->chw = layout;
	p->dtype = of[dtype];
	fill_values(p, normalised ? stats : NULL);
	return rc;
}

int pen__image_plan(struct pen_image_plan *p, const struct pen_image_texts *t,
		    struct pen_err *err)
{
	bool normalised = false;
	int rc;

	*p = (struct pen_image_plan){ .filter = PEN_FILTER_BILINEAR,
				      .scale = { 0.08, 1 },
				      .ratio = { 3.0 / 4, 4.0 / 3 } };
	rc = take_preset(t->preset, p, &normalised, err);
	if (!rc)
		rc = take_geometry(p, t, err);
	if (!rc)
		rc = check_geometry(p, t, err);
	if (!rc)
		rc = take_colors(p, t, err);
	return rc ? rc : take_values(p, t, normalised, err);
}

/* ---- the draw of one image ---- */

static double between(struct pen_rng *r, double low, double high)
{
	return low + pen__rng_double(r) * (high - low);
}

static void set_part(struct pen_image_draw *d, uint32_t left, uint32_t top,
		     uint32_t width, uint32_t height)
{
	d->left = left;
	d->top = top;
	d->x.in = width;
	d->y.in = height;
}

/* Without a fitting draw: the central part with the nearest ratio. */
static void fall_back(const struct pen_image_plan *p, uint32_t height,
		      uint32_t width, struct pen_image_draw *d)
{
	const double ratio = (double)width / height;
	uint32_t w = width, h = height;

	if (ratio < p->ratio[0])
		h = (uint32_t)rint(w / p->ratio[0]);
	else if (ratio > p->ratio[1])
		w = (uint32_t)rint(h * p->ratio[1]);
	h = h < 1 ? 1 : h > height ? height : h;
	w = w < 1 ? 1 : w > width ? width : w;
	set_part(d, (width - w) / 2, (height - h) / 2, w, h);
}

static void draw_random(const struct pen_image_plan *p, uint32_t height,
			uint32_t width, struct pen_rng *r,
			struct pen_image_draw *d)
{
	const double area = (double)height * width;
	const double low = log(p->ratio[0]), high = log(p->ratio[1]);

	for (unsigned i = 0; i < 10; i++) {
		const double target =
			area * between(r, p->scale[0], p->scale[1]);
		const double ratio = exp(between(r, low, high));
		const double w = rint(sqrt(target * ratio));
		const double h = rint(sqrt(target / ratio));

		if (w < 1 || h < 1 || w > width || h > height)
			continue;
		set_part(d, 0, 0, (uint32_t)w, (uint32_t)h);
		d->top = (uint32_t)pen__rng_below(r, height - d->y.in + 1);
		d->left = (uint32_t)pen__rng_below(r, width - d->x.in + 1);
		return;
	}
	fall_back(p, height, width, d);
}

/* Where a window of n pixels starts in m: in the middle. */
static int64_t middle(uint32_t m, uint32_t n)
{
	if (m >= n)
		return (int64_t)rint((m - n) / 2.0);
	return -(int64_t)((n - m) / 2);
}

static int64_t anywhere(uint32_t m, uint32_t n, uint32_t pad, struct pen_rng *r)
{
	const uint64_t all = (uint64_t)m + 2 * (uint64_t)pad;

	/* too small: padded on both sides like crop=center */
	return all < n ? middle(m, n)
		       : (int64_t)pen__rng_below(r, all - n + 1) - pad;
}

static void resize_shorter(const struct pen_image_plan *p,
			   struct pen_image_draw *d)
{
	const bool tall = d->y.in > d->x.in;
	const uint32_t shorter = tall ? d->x.in : d->y.in;
	const uint32_t longer = tall ? d->y.in : d->x.in;
	const uint32_t out = (uint32_t)((double)p->resize * longer / shorter);

	d->x.out = tall ? p->resize : out;
	d->y.out = tall ? out : p->resize;
}

static void draw_colors(const struct pen_image_plan *p, struct pen_rng *r,
			struct pen_image_draw *d)
{
	for (unsigned i = 0; i < 4; i++)
		d->order[i] = (uint8_t)i;
	for (unsigned i = 4; i > 1; i--) {
		const unsigned k = (unsigned)pen__rng_below(r, i);
		const uint8_t last = d->order[i - 1];

		d->order[i - 1] = d->order[k];
		d->order[k] = last;
	}
	for (unsigned i = 0; i < 4; i++) {
		const double v = p->jitter[i], u = pen__rng_double(r);
		const double low = i == 3 ? -v : v > 1 ? 0 : 1 - v;
		const double high = i == 3 ? v : 1 + v;

		d->strength[i] = low + u * (high - low);
	}
	d->grey = pen__rng_double(r) < p->grey;
}

void pen__image_draw(const struct pen_image_plan *p, uint32_t height,
		     uint32_t width, uint64_t key, struct pen_image_draw *d)
{
	struct pen_rng r =
		pen__rng(key, 0x696d616765); /* a stream of its own */

	*d = (struct pen_image_draw){ .x = { .n = p->width },
				      .y = { .n = p->height } };
	set_part(d, 0, 0, width, height);
	if (p->crop == PEN_CROP_RANDOM)
		draw_random(p, height, width, &r, d);
	d->x.out = p->width;
	d->y.out = p->height;
	if (p->crop == PEN_CROP_CENTER || p->crop == PEN_CROP_WINDOW) {
		d->x.out = width;
		d->y.out = height;
		if (p->resize)
			resize_shorter(p, d);
	}
	if (p->crop == PEN_CROP_CENTER) {
		d->y.at = middle(d->y.out, p->height);
		d->x.at = middle(d->x.out, p->width);
	} else if (p->crop == PEN_CROP_WINDOW) {
		d->y.at = anywhere(d->y.out, p->height, p->pad, &r);
		d->x.at = anywhere(d->x.out, p->width, p->pad, &r);
	}
	d->x.flip = p->flip > 0 && pen__rng_double(&r) < p->flip;
	d->y.flip = p->vflip > 0 && pen__rng_double(&r) < p->vflip;
	if (pen__image_recolors(p))
		draw_colors(p, &r, d);
}
