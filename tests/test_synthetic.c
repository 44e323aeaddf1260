/* synthetic: samples follow the options, and nothing is read. */
#include "formats.h"

static void test_no_reads(void)
{
	struct pen_loader *l = eng_open(NULL,
					"%s/s batch_size=2 epochs=1 "
					"store=posix",
					golden_dir);
	struct pen_stats st;

	if (!CHECK(l != NULL))
		return;
	CHECK_EQ(eng_run(l, 1, NULL, NULL), PEN_END);
	pen_loader_stats(l, &st, sizeof(st));
	CHECK_EQ(st.nreads, 0);
	CHECK_EQ(st.nsamples, 5);
	pen_loader_close(l);
}

static void test_write(void)
{
	struct pen_field fd = { .name = "x", .dtype = PEN_U8 };
	struct pen_table t = { .nsamples = 1, .nfields = 1, .field = &fd };
	char path[128];

	snprintf(path, sizeof(path), "%s/w/a.synthetic", golden_dir);
	CHECK_EQ(eng_write(path, "synthetic", "index=42", &t, NULL), 0);
	CHECK_EQ(formats_python("assert open('w/a.synthetic').read() == '42'"),
		 0);
}

int main(void)
{
	const struct pen_opts_kv kv = { "shape", "5" };
	const struct pen_span s = { (const uint8_t *)"7", 1 };

	formats_make("synthetic", "numpy");
	formats_check(2);
	formats_refuse(2);
	formats_damage("small.synthetic", "synthetic", NULL, 0, true, 16);
	golden_check_nomem("synthetic", kv, s);
	test_no_reads();
	test_write();
	return test_end();
}
