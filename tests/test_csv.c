/* csv against pandas: values, damage and writing. */
#include <locale.h>
#include <math.h>

#include "base/rng.h"
#include "format/table/csv.h"
#include "formats.h"

static void test_damage(void)
{
	size_t n;
	uint8_t *p = golden_read("small.csv", &n);

	formats_damage("small.csv", "csv", NULL, 0, false, 1);
	golden_check_nomem("csv", (struct pen_opts_kv){ "dtype", "float64" },
			   (struct pen_span){ p, n });
	free(p);
}

/* Numbers have a decimal point in every locale, and read back exactly. */
static void test_write(void)
{
	static const float xs[][3] = { { 0.1f, -1, 1e-20f },
				       { 3.4028235e38f, 1.5f, 16777216 } };
	static const int64_t ys[][3] = { { INT64_MIN, INT64_MAX, 0 },
					 { -1, 1, 10 } };
	struct pen_field fd = {
		.name = "x", .dtype = PEN_F32, .ndim = 1, .shape = { 3 }
	};
	const void *data = xs;
	struct pen_table t = {
		.nsamples = 2, .nfields = 1, .field = &fd, .data = &data
	};
	struct pen_err err = { 0 };
	char path[128];

	setlocale(LC_ALL, "de_DE.UTF-8"); /* if it is installed */
	snprintf(path, sizeof(path), "%s/w/f.csv", golden_dir);
	CHECK_EQ(eng_write(path, "csv", "", &t, &err), 0);
	formats_write_nomem("csv", NULL, 0, &t);
	data = ys;
	fd.dtype = PEN_I64;
	snprintf(path, sizeof(path), "%s/w/i.csv", golden_dir);
	CHECK_EQ(eng_write(path, "csv", "delimiter=;", &t, &err), 0);
	setlocale(LC_ALL, "C");
	CHECK_EQ(formats_python(
			 "import numpy as np, pandas as pd\n"
			 "f = pd.read_csv('w/f.csv', header=None, "
			 "float_precision='round_trip').to_numpy().astype('f4')"
			 "\n"
			 "w = np.array([[0.1, -1, 1e-20], [3.4028235e38, 1.5, "
			 "16777216]], 'f4')\n"
			 "assert np.array_equal(f, w)\n"
			 "i = pd.read_csv('w/i.csv', header=None, sep=';')\n"
			 "m = np.iinfo('i8')\n"
			 "assert i.to_numpy().tolist() == "
			 "[[m.min, m.max, 0], [-1, 1, 10]]"),
		 0);
	fd.dtype = PEN_F16;
	CHECK_EQ(eng_write(path, "csv", "", &t, &err), PEN_EINVAL);
}

/* Every float reads back exactly, with as few digits as printf needs. */
static void test_shortest(void)
{
	static double xs[4096];
	static float ys[4096];
	struct pen_rng rng = pen__rng(1, 0);
	char a[40], b[40];
	unsigned wrong = 0;

	for (unsigned i = 0; i < 4096; i++) {
		const double u = pen__rng_double(&rng);

		xs[i] = ldexp(u - 0.5, (int)(i % 48) - 24);
		if (i % 3 == 0) /* few digits, and near powers of ten */
			xs[i] = round(u * 1e5) / pow(10, i % 8);
		if (i % 16 == 0)
			xs[i] = nextafter(pow(10, (int)(i / 16 % 16) - 8),
					  i % 32 ? 0 : 1e9);
		ys[i] = (float)xs[i];
	}
	for (unsigned i = 0; i < 8192; i++) {
		const bool single = i >= 4096;
		const double v = single ? (double)ys[i - 4096] : xs[i];

		for (int n = single ? 6 : 15; n <= 17; n++) {
			snprintf(b, sizeof(b), "%.*g", n, v);
			if (single ? strtof(b, NULL) == (float)v
				   : strtod(b, NULL) == v)
				break;
		}
		if (!strpbrk(b, ".en"))
			strncat(b, ".0", 3);
		pen__csv_print(single ? (const void *)&ys[i - 4096] : &xs[i],
			       single ? PEN_F32 : PEN_F64, a);
		if (strcmp(a, b) != 0 && !wrong++)
			CHECK_STR(a, b);
	}
	CHECK_EQ(wrong, 0);
}

int main(void)
{
	formats_make("csv", "numpy, pandas");
	formats_check(20);
	formats_refuse(21);
	test_damage();
	test_write();
	test_shortest();
	return test_end();
}
