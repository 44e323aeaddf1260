/* FASTQ compared with htslib (pysam): letters, quality values, windows,
 * damage. */
#include "formats.h"

static void test_damage(void)
{
	static const struct pen_opts_kv all = { "fields", "all" };
	size_t n;
	uint8_t *p = golden_read("small.fq", &n);

	formats_damage("small.fq", "fastq", &all, 1, false, 3);
	golden_check_nomem("fastq", all, (struct pen_span){ p, n });
	free(p);
}

int main(void)
{
	formats_make_with("make_sequences.py", "fastq", "fastq", "",
			  "numpy, pysam");
	formats_check(14);
	formats_refuse(22);
	test_damage();
	return test_end();
}
