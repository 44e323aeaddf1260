/*
 * Generated sequences: counts, letters and ids as specified, independent of the
 * number of threads; pieces of long sequences; and lack of memory at any point.
 */
#include "make/synth_seqs.h"
#include "engine.h"

struct made {
	struct pen_buf text;
	struct pen_synth_made n;
	int rc;
};

static struct made make(struct pen_synth_seqs s)
{
	struct made m = { .rc = 0 };
	struct pen_err err = { 0 };
	struct pen_store *st;
	struct pen_sink *sink;
	FILE *f;
	int c;

	m.rc = pen__store_open(&st, "posix", NULL, 0, &err);
	if (m.rc)
		return m;
	m.rc = pen__sink_open(&sink, st, "made", &err);
	if (!m.rc) {
		m.rc = pen__synth_seqs_write(&s, sink, &m.n, &err);
		c = pen__sink_close(sink, !m.rc, NULL);
		m.rc = m.rc ? m.rc : c;
	}
	pen__store_close(st);
	if (m.rc)
		return m;
	pen__mem_fail_nth(0, false);
	f = fopen("made", "rb");
	while ((c = getc(f)) != EOF) {
		const uint8_t b = (uint8_t)c;

		pen__buf_put(&m.text, &b, 1);
	}
	fclose(f);
	CHECK_EQ(m.n.bytes, m.text.n);
	return m;
}

/* Two halves of 10,000: nine full lines each, and one shorter line. */
static void test_lines(void)
{
	struct pen_synth_seqs s = { .seed = 5,
				    .size = 20000,
				    .letters = PEN_SYNTH_BOTH,
				    .length = 1024,
				    .threads = 2 };
	struct made m = make(s), other;
	const char *p = (const char *)m.text.p, *e = p + m.text.n;
	unsigned n = 0;

	CHECK_EQ(m.n.records, 20);
	CHECK_EQ(m.n.letters, 2 * (9 * 1024 + 775));
	while (p < e) {
		const size_t len = strspn(p, n < 10 ? "ATCG" : "AUCG");
		char want[32];

		CHECK_EQ(len, n % 10 < 9 ? 1024 : 775);
		snprintf(want, sizeof(want), ",design_id_%u\n", ++n);
		if (!CHECK(!strncmp(p + len, want, strlen(want))))
			break;
		p += len + strlen(want);
	}
	CHECK_EQ(n, 20);
	s.threads = 5;
	other = make(s);
	CHECK(other.text.n == m.text.n &&
	      !memcmp(other.text.p, m.text.p, m.text.n));
	pen__buf_fini(&other.text);
	s.seed = 6;
	other = make(s);
	CHECK(memcmp(other.text.p, m.text.p, m.text.n) != 0);
	pen__buf_fini(&other.text);
	pen__buf_fini(&m.text);
}

/* Longer than a block: lines continue across blocks. */
static void test_long(void)
{
	const struct pen_synth_seqs s = { .size = 2500001,
					  .letters = PEN_SYNTH_DNA,
					  .length = 2000000,
					  .fasta = true,
					  .threads = 3 };
	struct made m = make(s);
	const char *p = (const char *)m.text.p, *e = p + m.text.n, *nl;
	uint64_t letters = 0, odd = 0;

	CHECK_EQ(m.n.records, 2);
	CHECK_EQ(m.n.letters, 2500000);
	for (; p < e; p = nl + 1) {
		nl = memchr(p, '\n', (size_t)(e - p));
		if (!CHECK(nl != NULL))
			break;
		if (*p == '>')
			continue;
		letters += (uint64_t)(nl - p);
		odd += nl - p != 60;
	}
	CHECK_EQ(letters, 2500000);
	CHECK_EQ(odd, 2); /* last lines */
	pen__buf_fini(&m.text);
}

static void test_spread(void)
{
	const struct pen_synth_seqs s = { .size = 200000,
					  .letters = PEN_SYNTH_PROTEIN,
					  .length = 300,
					  .realistic = true,
					  .threads = 1 };
	struct made m = make(s);
	const char *p = (const char *)m.text.p, *e = p + m.text.n;
	unsigned shorter = 0, longer = 0, n = 0;

	for (; p < e; n++) {
		const size_t len = strspn(p, "ACDEFGHIKLMNPQRSTVWY");

		shorter += len < 150;
		longer += len > 600;
		p = (const char *)memchr(p, '\n', (size_t)(e - p)) + 1;
	}
	CHECK_EQ(n, m.n.records);
	CHECK(shorter > n / 20 && longer > n / 20);
	pen__buf_fini(&m.text);
}

static void test_nomem(void)
{
	const struct pen_synth_seqs s = { .size = 3000000,
					  .letters = PEN_SYNTH_RNA,
					  .length = 1000,
					  .threads = 1 };

	for (uint64_t n = 1; n < 1000; n++) {
		struct made m;
		bool reached;

		pen__mem_fail_nth(n, false);
		m = make(s);
		reached = m.rc != 0;
		pen__mem_fail_nth(0, false);
		pen__buf_fini(&m.text);
		if (!reached)
			return;
		/* EAGAIN: no memory for a thread */
		CHECK(m.rc == PEN_ENOMEM || m.rc == PEN_EIO);
	}
	CHECK(false);
}

int main(void)
{
	eng_start("seqs");
	test_lines();
	test_long();
	test_spread();
	test_nomem();
	eng_end();
	return test_end();
}
