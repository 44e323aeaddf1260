/* Sequences a line against plain Python: what is in them, and damage. */
#include "formats.h"

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
	formats_check(19);
	formats_refuse(9);
	test_damage();
	return test_end();
}
