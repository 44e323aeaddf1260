/* One sequence per line, compared with plain Python; and damaged files. */
#include "formats.h"

/* A line has room for an id or a label, not both. */
static void test_write(void)
{
	static const struct pen_field fields[] = {
		{ .name = "seq", .dtype = PEN_U8, .ndim = 1, .shape = { 2 } },
		{ .name = "id", .dtype = PEN_U8, .ndim = 1, .shape = { 1 } },
		{ .name = "label", .dtype = PEN_I64 },
	};
	static const int64_t label = 7;
	static const void *const data[] = { "AC", "x", &label };
	const struct pen_table t = {
		.nsamples = 1, .nfields = 3, .field = fields, .data = data
	};
	struct pen_err err = { 0 };
	char path[160];

	snprintf(path, sizeof(path), "%s/w.seq", golden_dir);
	CHECK_EQ(eng_write(path, "lines", "", &t, &err), PEN_EINVAL);
	CHECK(strstr(err.msg, "either id or label"));
}

static void test_damage(void)
{
	static const struct pen_opts_kv all = { "fields", "all" };
	size_t n;
	uint8_t *p = golden_read("small.seq", &n);

	formats_damage("small.seq", "lines", &all, 1, false, 3);
	formats_damage("small.label.seq", "lines", &all, 1, false, 3);
	golden_check_nomem("lines", all, (struct pen_span){ p, n });
	free(p);
}

int main(void)
{
	formats_make_with("make_sequences.py", "lines", "lines", "",
			  "numpy, pysam");
	formats_check(24);
	formats_refuse(17);
	test_damage();
	test_write();
	return test_end();
}
