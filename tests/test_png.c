/* png against Pillow: pixels, damage and writing. */
#include "formats.h"

static void test_damage(void)
{
	const struct pen_opts_kv kv = { "color", "auto" };
	size_t n;
	uint8_t *p = golden_read("small.png", &n);

	formats_damage("small.png", "png", NULL, 0, true, 7);
	formats_damage("pal.png", "png", NULL, 0, true, 7);
	golden_check_nomem("png", kv, (struct pen_span){ p, n });
	free(p);
}

static void test_write(void)
{
	static uint8_t pixels[20 * 30 * 4];
	struct pen_field fd = {
		.name = "x", .dtype = PEN_U8, .ndim = 3, .shape = { 20, 30, 4 }
	};
	const void *data = pixels;
	struct pen_table t = {
		.nsamples = 1, .nfields = 1, .field = &fd, .data = &data
	};
	char path[128];
	struct pen_err err = { 0 };

	for (unsigned i = 0; i < sizeof(pixels); i++)
		pixels[i] = (uint8_t)(i * 7 / 5);
	snprintf(path, sizeof(path), "%s/w/4.png", golden_dir);
	CHECK_EQ(eng_write(path, "png", "", &t, &err), 0);
	fd.shape[2] = 3;
	snprintf(path, sizeof(path), "%s/w/3.png", golden_dir);
	CHECK_EQ(eng_write(path, "png", "level=0", &t, &err), 0);
	fd.ndim = 2;
	snprintf(path, sizeof(path), "%s/w/1.png", golden_dir);
	CHECK_EQ(eng_write(path, "png", "", &t, &err), 0);
	CHECK_EQ(formats_python(
			 "import numpy as np\n"
			 "from PIL import Image\n"
			 "a = (np.arange(2400) * 7 // 5).astype(np.uint8)\n"
			 "for n in 1, 3, 4:\n"
			 "    g = np.array(Image.open('w/%d.png' % n))\n"
			 "    assert np.array_equal(a[:600 * n], g.ravel())\n"
			 "    assert g.ndim == 2 or g.shape[2] == n"),
		 0);
	formats_write_nomem("png", NULL, 0, &t);
	fd.dtype = PEN_F32;
	CHECK_EQ(eng_write(path, "png", "", &t, &err), PEN_EINVAL);
}

int main(void)
{
	if (!pen__format_find("png"))
		TEST_SKIP("built without libspng");
	formats_make("png", "numpy, PIL");
	formats_check(14);
	formats_refuse(8);
	test_damage();
	test_write();
	return test_end();
}
