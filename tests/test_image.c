/*
 * What is done to images: random draws have the distribution of torchvision's,
 * a part of an image decodes to the same pixels as the entire image, and the
 * loops with and without vector instructions agree. tests/python/test_images.py
 * compares the pixels with Pillow's.
 */
#include <math.h>

#include "test.h"

/* The resizer again, without vector instructions. */
#define pen__resize_start plain_start
#define pen__resize_push plain_push
#define pen__resize_pull plain_pull
#define pen__resize_fini plain_fini
#define PEN_NO_VECTORS
#include "decode/image_resize.c"
#include "decode/image_plan.h"
#undef pen__resize_start
#undef pen__resize_push
#undef pen__resize_pull
#undef pen__resize_fini
int pen__resize_start(struct pen_resizer *, int filter,
		      const struct pen_resize_axis *x,
		      const struct pen_resize_axis *y);
void pen__resize_push(struct pen_resizer *, const uint8_t *rgb);
const uint8_t *pen__resize_pull(struct pen_resizer *, uint32_t *y);
void pen__resize_fini(struct pen_resizer *);

static void plan(struct pen_image_plan *p, struct pen_image_texts *t)
{
	struct pen_err err = { 0 };

	if (!CHECK_EQ(pen__image_plan(p, t, &err), 0))
		fprintf(stderr, "  %s: %s\n", err.where, err.msg);
}

/* ---- draws ---- */

/* Of 40,000 draws: share of the area, and of images without a fitting draw;
 * as torchvision's own code gives them. */
static const struct {
	uint32_t width, height;
	double area, whole;
} crops[] = {
	{ 500, 375, 0.430, 0 },	     { 500, 333, 0.389, 0 },
	{ 375, 500, 0.434, 0 },	     { 640, 640, 0.476, 0 },
	{ 1000, 300, 0.211, 0.061 },
};

static void test_random_crops(void)
{
	struct pen_image_texts t = { .preset = "train:224" };
	struct pen_image_plan p;
	struct pen_image_draw d;

	plan(&p, &t);
	for (size_t i = 0; i < sizeof(crops) / sizeof(*crops); i++) {
		const uint32_t w = crops[i].width, h = crops[i].height;
		unsigned flips = 0, fell = 0;
		double area = 0;

		for (uint64_t key = 0; key < 40000; key++) {
			pen__image_draw(&p, h, w, key * 0x9e3779b97f4a7c15u,
					&d);
			CHECK(d.x.in >= 1 && d.left + d.x.in <= w);
			CHECK(d.y.in >= 1 && d.top + d.y.in <= h);
			area += (double)d.x.in * d.y.in / ((double)w * h);
			flips += d.x.flip;
			fell += d.y.in == h && d.x.in == rint(h * p.ratio[1]);
		}
		CHECK(fabs(area / 40000 - crops[i].area) < 0.005);
		CHECK(fabs(flips / 40000. - 0.5) < 0.01);
		CHECK(crops[i].whole == 0 ||
		      fabs(fell / 40000. - crops[i].whole) < 0.01);
	}
}

/* A draw is a function of the key. */
static void test_keys(void)
{
	struct pen_image_texts t = { .preset = "train:32",
				     .jitter = "0.4,0.4,0.4,0.1",
				     .grey = "0.2",
				     .vflip = "0.5" };
	struct pen_image_draw a, b;
	struct pen_image_plan p;
	unsigned same = 0;

	plan(&p, &t);
	for (uint64_t key = 0; key < 1000; key++) {
		memset(&a, 0, sizeof(a));
		memset(&b, 0, sizeof(b));
		pen__image_draw(&p, 300, 400, key, &a);
		pen__image_draw(&p, 300, 400, key, &b);
		CHECK(!memcmp(&a, &b, sizeof(a)));
		pen__image_draw(&p, 300, 400, key + 1, &b);
		same += !memcmp(&a, &b, sizeof(a));
	}
	CHECK_EQ(same, 0);
}

static void test_geometry(void)
{
	static const struct {
		uint32_t w, h, ow, oh;
		int64_t x, y;
	} all[] = {
		{ 500, 375, 341, 256, 58, 16 }, /* 58.5 to even */
		{ 375, 500, 256, 341, 16, 58 },
		{ 256, 256, 256, 256, 16, 16 },
		{ 1, 1000, 256, 256000, 16, 127888 },
	};
	struct pen_image_texts t = { .preset = "eval:256,224" };
	struct pen_image_plan p;
	struct pen_image_draw d;

	plan(&p, &t);
	for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++) {
		pen__image_draw(&p, all[i].h, all[i].w, 1, &d);
		CHECK_EQ(d.x.out, all[i].ow);
		CHECK_EQ(d.y.out, all[i].oh);
		CHECK_EQ(d.x.at, all[i].x);
		CHECK_EQ(d.y.at, all[i].y);
		CHECK(!d.x.flip && !d.y.flip);
	}
	/* smaller than the crop: zeros around it */
	t = (struct pen_image_texts){ .crop = "center", .size = "8x5" };
	plan(&p, &t);
	pen__image_draw(&p, 5, 3, 1, &d);
	CHECK_EQ(d.x.at, -1);
	CHECK_EQ(d.y.at, -1);
	t = (struct pen_image_texts){ .crop = "window",
				      .size = "32",
				      .pad = "4" };
	plan(&p, &t);
	for (uint64_t key = 0; key < 500; key++) {
		pen__image_draw(&p, 32, 32, key, &d);
		CHECK(d.x.at >= -4 && d.x.at <= 4);
		CHECK(d.y.at >= -4 && d.y.at <= 4);
	}
}

static void test_refused(void)
{
	static const struct {
		struct pen_image_texts t;
		const char *where;
	} all[] = {
		{ { .flip = "0.5" }, "size" },
		{ { .preset = "train" }, "preset" },
		{ { .preset = "eval:224" }, "preset" },
		{ { .preset = "train:0" }, "preset" },
		{ { .preset = "train:224x" }, "preset" },
		{ { .size = "224x" }, "size" },
		{ { .size = "0" }, "size" },
		{ { .size = "9", .crop = "middle" }, "crop" },
		{ { .size = "9", .scale = "0.1,1" }, "scale" },
		{ { .size = "9", .pad = "1" }, "pad" },
		{ { .size = "9", .resize = "12" }, "resize" },
		{ { .size = "9", .flip = "2" }, "flip" },
		{ { .size = "9", .flip = "nan" }, "flip" },
		{ { .preset = "train:9", .ratio = "2,1" }, "ratio" },
		{ { .preset = "train:9", .scale = "0,1" }, "scale" },
		{ { .preset = "train:9", .dtype = "uint8" }, "dtype" },
		{ { .size = "9", .dtype = "int8" }, "dtype" },
		{ { .size = "9", .jitter = "1,1,1,0.6" }, "jitter" },
		{ { .size = "9", .jitter = "1,1,1" }, "jitter" },
		{ { .size = "9", .normalize = "1,1,1,0,1,1" }, "normalize" },
		{ { .size = "9", .crop = "center", .filter = "box" },
		  "filter" },
	};

	for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++) {
		struct pen_err err = { 0 };
		struct pen_image_plan p;

		CHECK(pen__image_plan(&p, &all[i].t, &err) < 0);
		CHECK_STR(err.where, all[i].where);
	}
}

/* ---- resizing ---- */

static void run(uint8_t *out, const uint8_t *in, int filter,
		const struct pen_resize_axis *x,
		const struct pen_resize_axis *y, bool plain)
{
	struct pen_resizer r = { 0 };
	const uint8_t *row;
	uint32_t at;

	CHECK_EQ((plain ? plain_start : pen__resize_start)(&r, filter, x, y),
		 0);
	for (uint32_t i = r.axis[1].from;; i++) {
		while ((row = (plain ? plain_pull : pen__resize_pull)(&r, &at)))
			memcpy(out + (size_t)at * x->n * 3, row,
			       (size_t)x->n * 3);
		if (i >= r.axis[1].to)
			break;
		(plain ? plain_push : pen__resize_push)(
			&r, in + ((size_t)i * x->in + r.axis[0].from) * 3);
	}
	CHECK_EQ(r.done, y->n);
	(plain ? plain_fini : pen__resize_fini)(&r);
}

static void test_vectors(void)
{
	static uint8_t in[200 * 150 * 3 + 64], a[90 * 90 * 3], b[90 * 90 * 3];
	uint64_t seed = 1;

	for (size_t i = 0; i < sizeof(in); i++) {
		seed = seed * 6364136223846793005u + 1442695040888963407u;
		in[i] = (uint8_t)(seed >> 56);
	}
	for (int filter = 0; filter < 6; filter++)
		for (uint32_t n = 1; n < 90; n += 11) {
			const struct pen_resize_axis x = { 200, 3 * n, n, 5,
							   n & 1 };
			const struct pen_resize_axis y = { 150, n, n, -2,
							   n & 2 };

			run(a, in, filter, &x, &y, false);
			run(b, in, filter, &x, &y, true);
			CHECK(!memcmp(a, b, (size_t)n * n * 3));
		}
}

int main(void)
{
	test_random_crops();
	test_keys();
	test_geometry();
	test_refused();
	test_vectors();
	return test_end();
}
