/* Names, shapes and sizes of a data set match DLIO; compared with NumPy. */
#include "test.h"

#include <unistd.h>

#include "base/mem.h"
#include "emulate/layout.h"

static char img[] = "img", npz[] = "npz", u8[] = "uint8", dot[] = "./",
	    data[] = "./data/";

static struct pen_config config(void)
{
	return (struct pen_config){
		.storage.root = dot,
		.dataset = { .format = npz,
			     .num_files_train = 64,
			     .num_files_eval = 8,
			     .num_samples_per_file = 1,
			     .record_length = 4096,
			     .record_element_type = u8,
			     .hdf5_num_dset = 1,
			     .data_folder = data,
			     .file_prefix = img },
	};
}

static void check_path(struct pen_config *c, uint64_t i, const char *want)
{
	struct pen_data_layout l;
	struct pen_err err = { 0 };
	char got[PEN_LAYOUT_PATH];

	if (!CHECK_EQ(pen__layout_init(&l, c, &err), 0))
		return;
	pen__layout_path(&l, i, got, sizeof(got));
	CHECK_STR(got, want);
	pen__layout_fini(&l);
}

static void names(void)
{
	struct pen_config c = config();
	struct pen_data_layout l;
	char got[PEN_LAYOUT_PATH];
	char root[] = "runs/", abs[] = "/d//", deep[] = "x/y", slash[] = "/";
	char tf[] = "tfrecord", part[] = "part";

	check_path(&c, 3, "./data/train/img_03_of_64.npz");
	check_path(&c, 64, "./data/valid/img_0_of_8.npz");
	c.dataset.num_subfolders_train = 2;
	c.dataset.num_subfolders_eval = 10;
	check_path(&c, 3, "./data/train/1/img_03_of_64.npz");
	check_path(&c, 71, "./data/valid/07/img_7_of_8.npz");
	c.dataset.num_subfolders_train = 1;
	check_path(&c, 63, "./data/train/img_63_of_64.npz");
	c.dataset.num_files_train = 100;
	check_path(&c, 7, "./data/train/img_007_of_100.npz");
	c.storage.root = root;
	check_path(&c, 7, "runs/./data/train/img_007_of_100.npz");
	c.dataset.data_folder = deep;
	check_path(&c, 7, "runs/x/y/train/img_007_of_100.npz");
	c.dataset.data_folder = abs;
	check_path(&c, 7, "/d/train/img_007_of_100.npz");
	c.dataset.data_folder = slash;
	check_path(&c, 7, "/train/img_007_of_100.npz");
	c.dataset.data_folder = NULL;
	check_path(&c, 7, "runs/train/img_007_of_100.npz");
	c.storage.root = NULL;
	check_path(&c, 7, "./train/img_007_of_100.npz");

	c.dataset.data_folder = deep;
	c.dataset.format = tf;
	c.dataset.file_prefix = part;
	CHECK_EQ(pen__layout_init(&l, &c, NULL), 0);
	pen__layout_index_path(&l, 102, got, sizeof(got));
	CHECK_STR(got, "x/y/index/valid/part_2_of_8.tfrecord.idx");
	pen__layout_dir(&l, PEN_VALID, got, sizeof(got));
	CHECK_STR(got, "x/y/valid");
	CHECK_EQ(pen__layout_nsubfolders(&l, PEN_TRAIN), 0);
	CHECK_EQ(pen__layout_nsubfolders(&l, PEN_VALID), 10);
	pen__layout_subfolder(&l, PEN_VALID, 9, got, sizeof(got));
	CHECK_STR(got, "x/y/valid/09");
	pen__layout_fini(&l);
	c.dataset.format = npz;
	CHECK_EQ(pen__layout_init(&l, &c, NULL), 0);
	pen__layout_index_path(&l, 102, got, sizeof(got));
	CHECK_STR(got, "");
	pen__layout_fini(&l);
}

static void vectors(void)
{
	static const uint64_t want[] = { 224093125, 93582835, 139625640,
					 159581528 };
	struct pen_config c = config();
	struct pen_data_layout l;
	uint64_t sum = 0;

	c.dataset.record_length = 146600628;
	c.dataset.record_length_stdev = 68341808;
	c.dataset.num_files_train = 168;
	c.dataset.num_files_eval = 0;
	CHECK_EQ(pen__layout_init(&l, &c, NULL), 0);
	for (unsigned i = 0; i < 4; i++)
		CHECK_EQ(pen__layout_bytes(&l, i), want[i]);
	for (unsigned i = 0; i < 168; i++)
		sum += pen__layout_bytes(&l, i);
	CHECK_EQ(pen__layout_total(&l, PEN_TRAIN), sum);
	CHECK_EQ(pen__layout_total(&l, PEN_VALID), 0);
	pen__layout_fini(&l);
}

/* All sides of a data set as drawn by NumPy. */
static void against_numpy(double length, double stdev, uint64_t n)
{
	struct pen_config c = config();
	struct pen_data_layout l;
	char path[64], cmd[1024];
	int32_t *want = malloc(n * 8);
	FILE *f;

	c.dataset.record_length = length;
	c.dataset.record_length_stdev = stdev;
	c.dataset.num_files_train = n - 1;
	c.dataset.num_files_eval = 1;
	snprintf(path, sizeof(path), "sides-%d.bin", (int)getpid());
	snprintf(cmd, sizeof(cmd),
		 PYTHON " -c \"import math, numpy as np\n"
			"np.random.seed(10)\n"
			"v = np.random.normal(int(math.sqrt(%.17g)), "
			"%.17g / 2.0 / math.sqrt(%.17g), %llu)\n"
			"np.maximum(v.astype(int), 1).astype('<i4')"
			".tofile('%s')\"",
		 length, stdev, length, (unsigned long long)(2 * n), path);
	CHECK_EQ(system(cmd), 0);
	f = fopen(path, "rb");
	if (!CHECK(f && want && fread(want, 8, n, f) == n))
		exit(1);
	fclose(f);
	unlink(path);
	CHECK_EQ(pen__layout_init(&l, &c, NULL), 0);
	CHECK(l.sides && memcmp(l.sides, want, n * 8) == 0);
	pen__layout_fini(&l);
	free(want);
}

static void shapes(void)
{
	static int64_t dims[] = { 3, 5, 6 };
	struct pen_config c = config();
	struct pen_data_layout l;
	int64_t got[PEN_MAX_DIMS];
	char f4[] = "<f4", jpeg[] = "jpeg";

	c.dataset.record_length = 114660.07;
	c.dataset.num_samples_per_file = 1251;
	CHECK_EQ(pen__layout_init(&l, &c, NULL), 0);
	CHECK(!l.sides);
	CHECK_EQ(pen__layout_shape(&l, 5, got), 2);
	CHECK(got[0] == 338 && got[1] == 338);
	CHECK_EQ(pen__layout_bytes(&l, 70), 338 * 338 * 1251);
	CHECK_EQ(pen__layout_total(&l, PEN_TRAIN), 64ull * 338 * 338 * 1251);
	CHECK_EQ(pen__layout_total(&l, PEN_VALID), 8ull * 338 * 338 * 1251);
	pen__layout_fini(&l);

	c.dataset.record_dims = (struct pen_opt_list){ dims, 3 };
	c.dataset.record_element_type = f4;
	CHECK_EQ(pen__layout_init(&l, &c, NULL), 0);
	CHECK_EQ(pen__layout_shape(&l, 71, got), 3);
	CHECK(!memcmp(got, dims, sizeof(dims)));
	CHECK_EQ(l.dtype, PEN_F32);
	CHECK_EQ(pen__layout_bytes(&l, 0), 90 * 4 * 1251);
	pen__layout_fini(&l);

	/* an image consists of bytes, one per file */
	c.dataset.record_dims.n = 2;
	c.dataset.format = jpeg;
	CHECK_EQ(pen__layout_init(&l, &c, NULL), 0);
	CHECK_EQ(l.dtype, PEN_U8);
	CHECK_EQ(pen__layout_bytes(&l, 0), 15);
	pen__layout_fini(&l);
}

static void refuse(const struct pen_config *c, const char *where,
		   const char *what)
{
	struct pen_data_layout l;
	struct pen_err err = { 0 };

	CHECK_EQ(pen__layout_init(&l, c, &err), PEN_EINVAL);
	CHECK_STR(err.where, where);
	if (!CHECK(strstr(err.msg, what)))
		fprintf(stderr, "%s\n", err.msg);
}

static void errors(void)
{
	int64_t dims[PEN_MAX_DIMS] = { 3, 0, 6 };
	struct pen_config c = config();
	char jpeg[] = "jpeg", hdf5[] = "hdf5", odd[] = "nix", slash[] = "a/b",
	     type[] = "unit8", *longer;

	c.dataset.record_dims = (struct pen_opt_list){ dims, 3 };
	refuse(&c, "dataset.record_dims", "at least 1");
	dims[1] = 5;
	c.dataset.format = jpeg;
	refuse(&c, "dataset.record_dims",
	       "does not support more than 2 dimensions");
	c.dataset.record_dims.n = 1;
	refuse(&c, "dataset.record_dims", "less");
	c.dataset.format = hdf5;
	c.dataset.hdf5_num_dset = 2;
	refuse(&c, "dataset.hdf5.num_dset_per_record", "not divisible by 2");
	c.dataset.hdf5_num_dset = 1;
	c.dataset.record_length_stdev = 5;
	refuse(&c, "dataset.record_length_bytes_stdev", "record_dims");
	c.dataset.record_dims.n = 0;
	c.dataset.record_length_stdev = 1e30;
	refuse(&c, "dataset.record_length_bytes_stdev", "largest");
	c.dataset.record_length_stdev = 0;
	c.dataset.record_length = 0.5;
	refuse(&c, "dataset.record_length_bytes", "at least 1");
	c.dataset.record_length = 1e30;
	refuse(&c, "dataset.record_length_bytes", "less than");
	c.dataset.record_length = 1e18;
	c.dataset.num_samples_per_file = 100;
	refuse(&c, "dataset", "largest possible file");
	c.dataset.num_samples_per_file = 0;
	refuse(&c, "dataset.num_samples_per_file", "at least 1");
	c = config();
	c.dataset.num_files_eval = UINT64_MAX;
	refuse(&c, "dataset.num_files_train", "too large");
	c.dataset.num_files_eval = INT64_MAX / 64;
	refuse(&c, "dataset", "2^64");
	c = config();
	c.dataset.format = odd;
	refuse(&c, "dataset.format", "nix");
	c = config();
	c.dataset.file_prefix = slash;
	refuse(&c, "dataset.file_prefix", "slash");
	c = config();
	c.dataset.record_element_type = type;
	refuse(&c, "dataset.record_element_type", "did you mean uint8");
	c = config();
	longer = malloc(5000);
	memset(longer, 'a', 4999);
	longer[4999] = '\0';
	c.dataset.data_folder = longer;
	refuse(&c, "dataset.data_folder", "too long");
	free(longer);
	c = config();
	dims[0] = INT64_MAX;
	c.dataset.record_dims = (struct pen_opt_list){ dims, 3 };
	refuse(&c, "dataset", "largest");
	c.dataset.record_dims.n = 40;
	refuse(&c, "dataset.record_dims", "axes");
}

static void dtypes(void)
{
	static const char *const names[] = {
		"uint8", "|u1",	   "int16",	"<i2",	 "=f4",	 "float",
		"int",	 "double", "half",	"bool",	 "?",	 "c16",
		"b",	 "B",	   "complex64", "uint",	 "e",	 "longlong",
		"i8",	 ">u1",	   "float128",	"ubyte", "intc", "D",
	};
	enum pen_dtype t;
	struct pen_err err;
	char cmd[2048] = PYTHON " -c \"import numpy as np\n";
	size_t n = strlen(cmd);

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
		if (!CHECK_EQ(pen__numpy_dtype(names[i], "k", &t, &err), 0))
			continue;
		n += (size_t)snprintf(
			cmd + n, sizeof(cmd) - n,
			"assert np.dtype('%s') == np.dtype('%s')\n", names[i],
			t == PEN_F80 ? "longdouble" : pen_dtype_name(t));
	}
	if (CHECK(n + 1 < sizeof(cmd)))
		strncat(cmd, "\"", 2);
	CHECK_EQ(system(cmd), 0);
	CHECK_EQ(pen__numpy_dtype(">f4", "k", &t, &err), PEN_ENOTSUP);
	CHECK_EQ(pen__numpy_dtype("", "k", &t, &err), PEN_EINVAL);
	CHECK_EQ(pen__numpy_dtype("<", "k", &t, &err), PEN_EINVAL);
	CHECK_EQ(pen__numpy_dtype("float33", "k", &t, &err), PEN_EINVAL);
	CHECK_STR(err.where, "k");
}

static void memory(void)
{
	struct pen_config c = config();
	struct pen_data_layout l;
	struct pen_err err = { 0 };

	c.dataset.record_length_stdev = 100;
	pen__mem_fail_nth(1, false);
	CHECK_EQ(pen__layout_init(&l, &c, &err), PEN_ENOMEM);
	pen__mem_fail_nth(0, false);
	CHECK_EQ(err.code, PEN_ENOMEM);
	/* 8 bytes per file, and none if all files are equal */
	CHECK_EQ(pen__layout_init(&l, &c, &err), 0);
	pen__layout_fini(&l);
	c.dataset.record_length_stdev = 0;
	pen__mem_fail_nth(1, true);
	CHECK_EQ(pen__layout_init(&l, &c, &err), 0);
	pen__mem_fail_nth(0, false);
	pen__layout_fini(&l);
}

int main(void)
{
	names();
	vectors();
	shapes();
	errors();
	memory();
	if (test_python_has("numpy")) {
		against_numpy(146600628, 68341808, 168);
		against_numpy(2828486, 71311, 524288);
		against_numpy(100, 200, 1000); /* many sides below 1 */
		against_numpy(114660.07, 1000.5, 77);
		dtypes();
	}
	return test_end();
}
