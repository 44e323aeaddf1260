/* indexed_binary: data and index as DLIO writes them, and other forms. */
#include "formats.h"

static void test_damage(void)
{
	const struct pen_opts_kv kv = { "dtype", "uint8" };
	size_t n;
	uint8_t *p = golden_read("self.bin", &n);

	formats_damage("self.bin", "indexed_binary", NULL, 0, false, 1);
	golden_check_nomem("indexed_binary", kv, (struct pen_span){ p, n });
	free(p);
}

/* All three files are created, or none, for every size. */
static void test_write(void)
{
	struct pen_field fd = {
		.name = "x", .dtype = PEN_U8, .ndim = 1, .shape = { 6 }
	};
	const void *bytes = "abcdefghijkl";
	struct pen_table t = {
		.nsamples = 2, .nfields = 1, .field = &fd, .data = &bytes
	};
	char path[128];
	struct pen_err err = { 0 };

	snprintf(path, sizeof(path), "%s/w/a.indexed_binary", golden_dir);
	CHECK_EQ(eng_write(path, "indexed_binary", "", &t, &err), 0);
	CHECK_EQ(formats_python("import numpy as np\n"
				"f = 'w/a.indexed_binary'\n"
				"assert open(f).read() == 'abcdefghijkl'\n"
				"assert list(np.fromfile(f + '.off.idx', "
				"'<u8')) == [0, 6]\n"
				"assert list(np.fromfile(f + '.sz.idx', "
				"'<u8')) == [6, 6]"),
		 0);
	for (uint64_t i = 1, n = i; i <= n; i++) {
		struct stat sb;
		int rc;

		snprintf(path, sizeof(path), "%s/w/%llu.indexed_binary",
			 golden_dir, (unsigned long long)i);
		pen__mem_fail_nth(i, false);
		rc = eng_write(path, "indexed_binary", "", &t, &err);
		n = pen__mem_count();
		pen__mem_fail_nth(0, false);
		CHECK_EQ(rc, i <= n ? PEN_ENOMEM : 0);
		CHECK_EQ(stat(path, &sb) == 0, rc == 0);
	}
}

int main(void)
{
	formats_make("indexed_binary", "numpy");
	formats_check(6);
	formats_refuse(7);
	test_damage();
	test_write();
	return test_end();
}
