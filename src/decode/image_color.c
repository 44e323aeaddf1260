/*
 * Colours of an image, changed as Pillow's ImageEnhance, convert("HSV") and
 * convert("L") do it, to the bit: through 8-bit values after every step.
 */
#include <math.h>
#include <string.h>

#include "decode/image_plan.h"

/* Pillow's luma. */
static uint8_t luma(const uint8_t *p)
{
	return (uint8_t)((p[0] * 19595 + p[1] * 38470 + p[2] * 7471 + 0x8000) >>
			 16);
}

/* Between a and b, or beyond them: ImagingBlend. */
static uint8_t blend(int a, int b, float by)
{
	const float v = (float)a + by * (float)(b - a);

	return v <= 0 ? 0 : v >= 255 ? 255 : (uint8_t)v;
}

/* Brightness and contrast: every value is blended with the same one. */
static void blend_all(uint8_t *rgb, size_t n, int with, float by)
{
	uint8_t to[256];

	for (int v = 0; v < 256; v++)
		to[v] = blend(with, v, by);
	for (size_t i = 0; i < 3 * n; i++)
		rgb[i] = to[rgb[i]];
}

static int mean_luma(const uint8_t *rgb, size_t n)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < n; i++)
		sum += luma(rgb + 3 * i);
	return (int)((double)sum / (double)n + 0.5);
}

static void saturate(uint8_t *rgb, size_t n, float by)
{
	for (size_t i = 0; i < n; i++, rgb += 3) {
		const int grey = luma(rgb);

		for (unsigned c = 0; c < 3; c++)
			rgb[c] = blend(grey, rgb[c], by);
	}
}

static int clip(double v)
{
	return v < 0 ? 0 : v > 255 ? 255 : (int)v;
}

/* Hue and saturation of a colour that is not grey, 0 to 255. */
static void to_hsv(const uint8_t *p, int most, int least, uint8_t *hue,
		   uint8_t *sat)
{
	const float range = (float)(most - least), s = range / (float)most;
	const float r = (float)(most - p[0]) / range;
	const float g = (float)(most - p[1]) / range;
	const float b = (float)(most - p[2]) / range;
	float h;

	if (p[0] == most)
		h = b - g;
	else if (p[1] == most)
		h = (float)(2.0 + r - b);
	else
		h = (float)(4.0 + g - r);
	h = (float)fmod(h / 6.0 + 1.0, 1.0);
	*hue = (uint8_t)clip(h * 255.0);
	*sat = (uint8_t)clip(s * 255.0);
}

static void from_hsv(uint8_t hue, uint8_t sat, int v, uint8_t *p)
{
	const float h = (float)(hue * 6.0 / 255.0), s = (float)(sat / 255.0);
	const float i = floorf(h), f = h - i;
	const uint8_t a = (uint8_t)clip(round(v * (1.0 - s)));
	const uint8_t b = (uint8_t)clip(round(v * (1.0 - s * f)));
	const uint8_t c = (uint8_t)clip(round(v * (1.0 - s * (1.0 - f))));
	const uint8_t all[6][3] = {
		{ (uint8_t)v, c, a }, { b, (uint8_t)v, a },
		{ a, (uint8_t)v, c }, { a, b, (uint8_t)v },
		{ c, a, (uint8_t)v }, { (uint8_t)v, a, b }
	};

	memcpy(p, all[(int)i % 6], 3);
}

static void turn_hue(uint8_t *rgb, size_t n, double by)
{
	const uint8_t shift = (uint8_t)(int)(by * 255);

	for (size_t i = 0; i < n; i++, rgb += 3) {
		const int ab = rgb[0] > rgb[1] ? rgb[0] : rgb[1];
		const int most = ab > rgb[2] ? ab : rgb[2];
		const int lo = rgb[0] < rgb[1] ? rgb[0] : rgb[1];
		const int least = lo < rgb[2] ? lo : rgb[2];
		uint8_t hue = 0, sat = 0;

		if (most == least)
			continue; /* grey has no hue */
		to_hsv(rgb, most, least, &hue, &sat);
		if (sat)
			from_hsv((uint8_t)(hue + shift), sat, most, rgb);
		else
			memset(rgb, most, 3);
	}
}

void pen__image_recolor(const struct pen_image_plan *p,
			const struct pen_image_draw *d, uint8_t *rgb, size_t n)
{
	for (unsigned i = 0; i < 4; i++) {
		const unsigned what = d->order[i];
		const double by = d->strength[what];

		if (p->jitter[what] <= 0)
			continue;
		if (what == 0)
			blend_all(rgb, n, 0, (float)by);
		else if (what == 1)
			blend_all(rgb, n, mean_luma(rgb, n), (float)by);
		else if (what == 2)
			saturate(rgb, n, (float)by);
		else
			turn_hue(rgb, n, by);
	}
	for (size_t i = 0; d->grey && i < n; i++)
		memset(rgb + 3 * i, luma(rgb + 3 * i), 3);
}
