/*
 * FASTA compared with htslib (pysam): records, windows and intervals, plain and
 * compressed, with index files that are valid or wrong; damaged files; random
 * shifts and strands; and written files, read back by htslib.
 */
#include "base/rng.h"
#include "format/sequence/sequence.h"
#include "formats.h"

static void test_damage(void)
{
	static const struct pen_opts_kv all[] = { { "fields", "all" },
						  { "window", "3" },
						  { "fai", "always" } };
	static const char *const files[] = { "small.fa", "small.fa.gz",
					     "small2.fa.gz" };

	for (size_t i = 0; i < 3; i++) {
		size_t n;
		uint8_t *p = golden_read(files[i], &n);

		formats_damage(files[i], "fasta", all, 1, i > 0, i ? 9 : 3);
		formats_damage(files[i], "fasta", all + 1, 2, false, 19);
		golden_check_nomem("fasta", all[i % 2],
				   (struct pen_span){ p, n });
		free(p);
	}
}

/* Intervals are read when a format is opened. */
static void test_bed_nomem(void)
{
	static const char text[] = ">chr0\nACGTACGT\nACGT\n>chr1\nACGTTTT\n";
	char path[160];
	FILE *f;

	snprintf(path, sizeof(path), "%s/nomem.bed", golden_dir);
	f = fopen(path, "w");
	fputs("chr0\t3\t9\t1\t0\t-\nchr1\t0\t7\t2\n", f);
	fclose(f);
	golden_check_nomem(
		"fasta", (struct pen_opts_kv){ "bed", path },
		(struct pen_span){ (const uint8_t *)text, sizeof(text) - 1 });
}

/* ---- bytes ---- */

static uint8_t turn(uint8_t c, bool rna)
{
	static const char from[] = "ACGTURYKMSWBDHVNacgturykmswbdhvn",
			  to[] = "TGCAAYRMKSWVHDBNtgcaayrmkswvhdbn";
	const char *at = c ? strchr(from, c) : NULL;

	if (rna && (c == 'A' || c == 'a'))
		return c == 'A' ? 'U' : 'u';
	return at ? (uint8_t)to[at - from] : c;
}

static void test_bytes(void)
{
	uint8_t a[300], b[300];

	for (size_t n = 0; n < 256; n++) {
		for (size_t i = 0; i < n; i++)
			a[i] = (uint8_t)(n + 255 - i);
		for (int rna = 0; rna < 2; rna++) {
			bool ok = true;

			pen__seq_reverse(a, b, n, rna);
			for (size_t i = 0; i < n; i++)
				ok &= b[n - 1 - i] == turn(a[i], rna);
			CHECK(ok);
		}
	}
	for (unsigned c = 0; c < 256; c++)
		for (size_t at = 0; at < 70; at += 3) {
			const bool odd = c < 0x21 || c > 0x7e;

			memset(a, 'A', 100);
			a[at] = (uint8_t)c;
			CHECK_EQ(pen__seq_odd(a, 70), odd ? at : 70);
			CHECK_EQ(pen__seq_stop(a, 70),
				 odd || c == ',' || c == ';' ? at : 70);
		}
}

static void check_column(const struct pen_list *l, size_t most)
{
	struct pen_buf b = { 0 };
	struct pen_column c;
	struct pen_bytes in;
	bool ok = true, rises = true;

	pen__column_put(&b, l);
	in = pen__bytes(b.p, b.n);
	CHECK(pen__column_take(&in, &c) && !pen__bytes_left(&in));
	CHECK_EQ(c.n, l->n);
	CHECK(b.n <= most);
	for (uint64_t i = 0; i < l->n; i++) {
		ok &= pen__column_at(&c, i) == l->v[i];
		rises &= !i || l->v[i] > l->v[i - 1];
	}
	for (uint64_t i = 0; rises && i < l->n; i++)
		ok &= pen__column_find(&c, l->v[i]) == i &&
		      pen__column_find(&c, l->v[i] + 1) ==
			      i + (i + 1 < l->n && l->v[i + 1] == l->v[i] + 1);
	CHECK(ok);
	for (size_t n = 0; n < b.n && n < 300; n++) {
		in = pen__bytes(b.p, n);
		CHECK(!pen__column_take(&in, &c));
	}
	pen__buf_fini(&b);
}

static void test_columns(void)
{
	static uint64_t v[1000];
	struct pen_list l = { v, 1000, 1000 };
	struct pen_rng r = pen__rng(1, 1);

	for (unsigned i = 0; i < 1000; i++)
		v[i] = 77 + i * 1000ull;
	check_column(&l, 40);
	for (unsigned i = 0; i < 1000; i++)
		v[i] = 1ull << 60 | (pen__rng_u64(&r) & 255);
	check_column(&l, 1040);
	for (unsigned i = 1; i < 1000; i++)
		v[i] = v[i - 1] + 1 + (pen__rng_u64(&r) & 0xfffff);
	check_column(&l, 4200);
	for (unsigned i = 0; i < 1000; i++)
		v[i] = pen__rng_u64(&r);
	check_column(&l, 8040);
	for (l.n = 0; l.n < 3; l.n++)
		check_column(&l, 64);
}

/* ---- random shifts and strands ---- */

#define WINDOW 50
#define SHIFT 6

static struct pen_loader *drawn(const char *file, const char *how)
{
	struct pen_err err;
	struct pen_loader *l = eng_open(
		&err,
		"%s/%s format.window=50 format.step=45 format.shift=6 "
		"format.last=drop format.rc=random batch_size=16 epochs=2 "
		"sampler=shuffle %s",
		golden_dir, file, how);

	if (!CHECK(l != NULL))
		fprintf(stderr, "  %s: %s\n", err.where, err.msg);
	return l;
}

static bool is_at(const uint8_t *row, const uint8_t *at, bool turned)
{
	for (unsigned i = 0; i < WINDOW; i++)
		if (row[i] !=
		    (turned ? turn(at[WINDOW - 1 - i], false) : at[i]))
			return false;
	return true;
}

/* Every row is its window, shifted by at most the limit, possibly reversed; and
 * all shifts and both strands occur. */
static void test_drawn(const char *file)
{
	static unsigned moves[2 * SHIFT + 1], strands[2];
	size_t n;
	uint8_t *all = golden_read("drawn.txt", &n);
	struct pen_loader *l = drawn(file, "threads=2");
	struct pen_batch *b;
	unsigned lost = 0, epochs = 0;
	int rc;

	while ((rc = pen_loader_next(l, &b, NULL)) >= 0 && epochs < 2) {
		if (rc == PEN_END) {
			epochs++;
			continue;
		}
		for (uint32_t i = 0; i < b->nsamples; i++) {
			const uint8_t *row = (uint8_t *)b->tensors[0].data +
					     i * (size_t)WINDOW;
			const size_t at = b->ids[i] * 45;
			bool found = false;

			for (int m = -SHIFT; m <= SHIFT && !found; m++)
				for (int t = 0; t < 2 && !found; t++) {
					const int64_t to = (int64_t)at + m;

					found = to >= 0 &&
						to + WINDOW <= (int64_t)n &&
						is_at(row, all + to, t);
					moves[m + SHIFT] += found;
					strands[t] += found;
				}
			lost += !found;
		}
		pen_batch_unref(b);
	}
	CHECK_EQ(lost, 0);
	for (unsigned i = 0; i < 2 * SHIFT + 1; i++)
		CHECK(moves[i] > 20);
	CHECK(strands[0] > 200 && strands[1] > 200);
	pen_loader_close(l);
	free(all);
}

/* The result does not depend on the number of threads or the compression. */
static void test_drawn_same(void)
{
	static const char *const how[] = { "threads=1 store=posix",
					   "threads=3 store=mmap",
					   "threads=2" };
	static const char *const files[] = { "drawn.fa", "drawn.fa",
					     "drawn.fa.gz" };
	struct pen_buf was = { 0 };

	for (unsigned i = 0; i < 3; i++) {
		struct pen_buf now = { 0 };
		struct pen_loader *l = drawn(files[i], how[i]);

		CHECK_EQ(eng_run(l, 2, &now, NULL), PEN_END);
		CHECK(now.n > 100000);
		CHECK(!i || (now.n == was.n && !memcmp(now.p, was.p, now.n)));
		pen_loader_close(l);
		pen__buf_fini(&was);
		was = now;
	}
	pen__buf_fini(&was);
}

/* ---- an index for other intervals is not used ---- */

static uint64_t with_bed(const char *text)
{
	struct pen_err err;
	struct pen_loader *l;
	char path[160];
	uint64_t n = 0;
	FILE *f;

	snprintf(path, sizeof(path), "%s/now.bed", golden_dir);
	f = fopen(path, "w");
	fputs(text, f);
	fclose(f);
	l = eng_open(&err, "%s/chr/a.fa format.bed=%s index_cache=%s/cache",
		     golden_dir, path, golden_dir);
	if (CHECK(l != NULL))
		n = pen_dataset_nsamples(pen_loader_dataset(l));
	pen_loader_close(l);
	return n;
}

static void test_bed_changes(void)
{
	CHECK_EQ(with_bed("chr0\t0\t9\n"), 1);
	CHECK_EQ(with_bed("chr0\t0\t9\n"), 1);
	CHECK_EQ(with_bed("chr0\t0\t9\nchr1\t5\t9\n"), 2);
}

/* ---- writing ---- */

static const uint8_t letters[] = "ACGTNacgtu\0\0"
				 "\0\0\0\0\0\0\0\0\0\0\0\0"
				 "GATTACAGATTA";
static const uint8_t ids[] = "one\0two\0dri";
static const uint8_t qualities[36] = { 0, 93, 40, 1, 2, 3, 4, 5, 6, 7 };

static int put(const char *path, const char *format, const char *how,
	       uint32_t nfields)
{
	static const struct pen_field fields[] = {
		{ .name = "seq", .dtype = PEN_U8, .ndim = 1, .shape = { 12 } },
		{ .name = "id", .dtype = PEN_U8, .ndim = 1, .shape = { 4 } },
		{ .name = "quality",
		  .dtype = PEN_U8,
		  .ndim = 1,
		  .shape = { 12 } },
	};
	static const void *const data[] = { letters, ids, qualities };
	const struct pen_table t = {
		.nsamples = 3, .nfields = nfields, .field = fields, .data = data
	};
	struct pen_err err = { 0 };
	char full[160];

	snprintf(full, sizeof(full), "%s/w/%s", golden_dir, path);
	return eng_write(full, format, how, &t, &err);
}

static void test_write(void)
{
	CHECK_EQ(put("a.fa", "fasta", "line=5 index=true", 2), 0);
	CHECK_EQ(put("b.fa.gz", "fasta", "line=0 compress=bgzip index=true", 2),
		 0);
	CHECK_EQ(put("c.fq", "fastq", "", 3), 0);
	CHECK_EQ(put("d.fq.gz", "fastq", "compress=bgzip", 1), 0);
	CHECK_EQ(put("e.seq", "lines", "", 2), 0);
	CHECK_EQ(put("f.seq", "lines", "", 1), PEN_EINVAL); /* empty */
	CHECK_EQ(put("f.fa", "fasta", "", 3), PEN_EINVAL);
	CHECK_EQ(formats_python(
			 "import pysam, gzip\n"
			 "s = ['ACGTNacgtu', '', 'GATTACAGATTA']\n"
			 "n = ['one', 'two', 'dri']\n"
			 "for f in 'w/a.fa', 'w/b.fa.gz':\n"
			 "    f = pysam.FastaFile(f)\n"
			 "    assert list(f.references) == n[::2]\n"
			 "    assert [f.fetch(x) for x in n[::2]] == s[::2]\n"
			 "    assert f.fetch('dri', 3, 9) == s[2][3:9]\n"
			 "q = list(pysam.FastxFile('w/c.fq'))\n"
			 "assert [x.name for x in q] == n\n"
			 "assert [x.sequence or '' for x in q] == s\n"
			 "assert list(q[0].get_quality_array()) == "
			 "[0, 93, 40, 1, 2, 3, 4, 5, 6, 7]\n"
			 "q = list(pysam.FastxFile('w/d.fq.gz'))\n"
			 "assert [x.sequence or '' for x in q] == s\n"
			 "assert [x.name for x in q] == "
			 "['seq1', 'seq2', 'seq3']\n"
			 "assert open('w/e.seq').read() == "
			 "''.join(a + ',' + b + chr(10) "
			 "for a, b in zip(s, n))\n"),
		 0);
}

static void test_write_nomem(void)
{
	static const struct pen_opts_kv kv[] = { { "compress", "bgzip" } };
	static const struct pen_field field = {
		.name = "seq", .dtype = PEN_U8, .ndim = 1, .shape = { 12 }
	};
	static const void *const data[] = { letters };
	const struct pen_table t = {
		.nsamples = 3, .nfields = 1, .field = &field, .data = data
	};

	formats_write_nomem("fasta", kv, 1, &t);
	formats_write_nomem("fastq", NULL, 0, &t);
}

int main(void)
{
	test_bytes();
	test_columns();
	formats_make_with("make_sequences.py", "fasta", "fasta", "",
			  "numpy, pysam");
	formats_check(93);
	formats_refuse(48);
	formats_warn(16);
	test_damage();
	test_drawn("drawn.fa");
	test_drawn("drawn.fa.gz");
	test_drawn_same();
	test_bed_changes();
	test_bed_nomem();
	test_write();
	test_write_nomem();
	return test_end();
}
