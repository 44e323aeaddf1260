/* jpeg against Pillow: pixels, damage and writing. */
#include "formats.h"

static void test_damage(void)
{
	const struct pen_opts_kv loose = { "strict", "false" };
	size_t n;
	uint8_t *p = golden_read("small.jpg", &n);

	formats_damage("small.jpg", "jpeg", NULL, 0, false, 15);
	formats_damage("small.jpg", "jpeg", &loose, 1, false, 51);
	golden_check_nomem("jpeg", loose, (struct pen_span){ p, n });
	free(p);
}

/* Writes the same bytes as Pillow. */
static void test_write(void)
{
	static uint8_t pixels[20 * 30 * 3];
	struct pen_field fd = {
		.name = "x", .dtype = PEN_U8, .ndim = 3, .shape = { 20, 30, 3 }
	};
	const void *data = pixels;
	struct pen_table t = {
		.nsamples = 1, .nfields = 1, .field = &fd, .data = &data
	};
	char path[128];
	struct pen_err err = { 0 };

	for (unsigned i = 0; i < sizeof(pixels); i++)
		pixels[i] = (uint8_t)(i * 7 / 5);
	snprintf(path, sizeof(path), "%s/w/rgb.jpg", golden_dir);
	CHECK_EQ(eng_write(path, "jpeg", "", &t, &err), 0);
	fd.ndim = 2;
	snprintf(path, sizeof(path), "%s/w/grey.jpg", golden_dir);
	CHECK_EQ(eng_write(path, "jpeg", "quality=40", &t, &err), 0);
	CHECK_EQ(formats_python(
			 "import io, numpy as np\n"
			 "from PIL import Image\n"
			 "a = (np.arange(1800) * 7 // 5).astype(np.uint8)\n"
			 "for n, s, q in ('rgb', (20, 30, 3), 75), "
			 "('grey', (20, 30), 40):\n"
			 "    m = Image.fromarray(a[:np.prod(s)].reshape(s))\n"
			 "    b = io.BytesIO()\n"
			 "    m.save(b, 'JPEG', quality=q)\n"
			 "    w = np.array(Image.open(b))\n"
			 "    g = np.array(Image.open('w/%s.jpg' % n))\n"
			 "    assert np.array_equal(w, g)"),
		 0);
	formats_write_nomem("jpeg", NULL, 0, &t);
	fd.dtype = PEN_F32;
	CHECK_EQ(eng_write(path, "jpeg", "", &t, &err), PEN_EINVAL);
	CHECK(strstr(err.msg, "uint8") != NULL);
}

int main(void)
{
	if (!pen__format_find("jpeg"))
		TEST_SKIP("built without libturbojpeg");
	formats_make("jpeg", "numpy, PIL");
	formats_check(9);
	formats_refuse(7);
	test_damage();
	test_write();
	return test_end();
}
