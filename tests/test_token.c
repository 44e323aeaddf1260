/*
 * Parts of the tokenisers that tests/python/test_tokens.py does not cover:
 * inner loops at every length, rows that are too small, invalid files, and
 * running out of memory.
 */
#include "test.h"

#include <unistd.h>

#include "base/mem.h"
#include "base/rng.h"
#include "token/count.h"
#include "token/noise.h"
#include "token/token.h"
#include "token/words.h"

struct priv {
	struct pen_token_opts token;
};

static const struct pen_opt table[] = {
	PEN_TOKEN_OPTS(struct priv, token),
	{ .name = NULL },
};

/* "key=value key=value" */
static int open_tokens(struct pen_tokens **t, const char *settings,
		       struct pen_err *err)
{
	struct pen_opts_kv kv[16];
	char text[1024];
	size_t n = 0;
	struct priv p;
	int rc;

	*err = (struct pen_err){ 0 };
	*t = NULL;
	snprintf(text, sizeof(text), "%s", settings);
	for (char *rest = text, *s; (s = strsep(&rest, " "));) {
		char *eq = strchr(s, '=');

		*eq = '\0';
		kv[n++] = (struct pen_opts_kv){ s, eq + 1 };
	}
	rc = pen__opt_fill(table, &p, kv, n, "", err);
	if (rc)
		return rc;
	rc = pen__tokens_open(t, &p.token, err);
	pen__opt_fini(table, &p);
	return rc;
}

static void save(const char *path, const void *p, size_t n)
{
	FILE *f = fopen(path, "wb");

	CHECK(f && fwrite(p, 1, n, f) == n && fclose(f) == 0);
}

static void save_text(const char *path, const char *s)
{
	save(path, s, strlen(s));
}

static void letters_as_they_are(void)
{
	static const uint8_t text[] = "ACGTnn";
	const struct pen_sequence s = { text, 6, 0, 0 };
	struct pen_err err;
	struct pen_tokens *t;
	struct pen_field f;
	uint8_t out[6];
	void *dst[] = { out };
	size_t len[] = { 6 }, used[] = { 6 };
	const struct pen_token_row row = { dst, len, used, NULL };

	CHECK_EQ(open_tokens(&t, "tokens=none", &err), 0);
	CHECK_EQ(pen__tokens_nfields(t), 1);
	CHECK_EQ(pen__tokens_field(t, 0, 6, 6, &f, &err), 0);
	CHECK_STR(f.name, "seq");
	CHECK_EQ(f.dtype, PEN_U8);
	CHECK_EQ(f.shape[0], 6);
	CHECK_EQ(pen__tokens_field(t, 0, 2, 6, &f, &err), 0);
	CHECK_EQ(f.shape[0], -1);
	CHECK_EQ(f.max_bytes, 6);
	CHECK(pen__tokens_plain(t));
	CHECK_EQ(pen__tokens_emit(t, &s, &row, &err), 0);
	CHECK(memcmp(out, text, 6) == 0);
	/* more than any machine has */
	CHECK_EQ(pen__tokens_field(t, 0, 0, UINT64_MAX, &f, &err), PEN_EDATA);
	pen__tokens_close(t);
}

/* Every length and offset, compared with a table; nothing is written
 * outside. */
static void maps(void)
{
	static const char *const letters[] = { "ACGT", "acgtACGTnNuU*~", "" };
	uint8_t in[200], out[200], flat[256];

	for (unsigned i = 0; i < sizeof(in); i++)
		in[i] = (uint8_t)pen__rng_at(1, i);
	for (unsigned a = 0; a < 3; a++) {
		struct pen_letters l;
		unsigned bad = 0;

		for (unsigned i = 0; i < 256; i++) {
			const char *at = i ? strchr(letters[a], (int)i) : NULL;

			flat[i] = at ? (uint8_t)(at - letters[a]) : 0x80;
		}
		for (unsigned i = 0; i < 200; i += 2)
			if (letters[a][0])
				in[i] = (uint8_t)
					letters[a][i % strlen(letters[a])];
		pen__letters_init(&l, flat);
		for (unsigned n = 0; n < 150; n++) {
			memset(out, 7, sizeof(out));
			pen__letters_map(&l, in + n % 5, n, out + 8);
			for (unsigned i = 0; i < n; i++)
				bad += out[8 + i] != flat[in[n % 5 + i]];
			for (unsigned i = 0; i < 8; i++)
				bad += out[i] != 7 || out[8 + n + i] != 7;
		}
		CHECK_EQ(bad, 0);
	}
	for (unsigned i = 0; i < 256; i++)
		flat[i] = (uint8_t)pen__rng_at(2, i); /* all rows differ */
	{
		struct pen_letters l;
		unsigned bad = 0;

		pen__letters_init(&l, flat);
		pen__letters_map(&l, in, 200, out);
		for (unsigned i = 0; i < 200; i++)
			bad += out[i] != flat[in[i]];
		CHECK_EQ(bad, 0);
	}
}

/* Words one at a time, compared with all together. */
static void codes(void)
{
	enum { N = 2100 };
	static uint8_t code[N + 16];
	static uint32_t all[N + 16];

	for (unsigned letters = 2; letters < 9; letters += 3)
		for (unsigned k = 1; k <= 10; k++) {
			struct pen_word_code w;
			unsigned bad = 0;

			for (unsigned i = 0; i < N + 16; i++)
				code[i] =
					(uint8_t)(pen__rng_at(k, i) % letters) |
					(i % 97 == 5 ? 0x80 : 0);
			CHECK(pen__word_code_init(&w, k, letters));
			memset(all, 0x55, sizeof(all));
			pen__word_codes(&w, code, N, all);
			for (unsigned i = 0; i < N; i++) {
				uint32_t v;

				pen__word_codes(&w, code + i, 1, &v);
				bad += v != all[i];
			}
			CHECK_EQ(bad, 0);
			CHECK_EQ(all[N], 0x55555555);
		}
}

/* Follows noise.h, without its optimisations. */
static void draws(void)
{
	enum { WORDS = 300, N = 1003 };
	static uint32_t got[N + 8];
	static double weight[70000];
	const uint64_t key = 12345, mixed = pen__mix64(key);
	struct pen_noise t;
	unsigned bad = 0;

	for (unsigned i = 0; i < WORDS; i++)
		weight[i] = i % 3 ? 1 + i % 50 : 0;
	CHECK_EQ(pen__noise_init(&t, weight, WORDS), 0);
	pen__noise_draw(&t, key, N, got);
	for (uint32_t i = 0; i < N; i++) {
		uint32_t x = i * 0x9e3779b1u + (uint32_t)mixed;
		uint64_t at;

		x = (x ^ x >> 16) * 0x21f0aaadu;
		x ^= x >> 15 ^ (uint32_t)(mixed >> 32);
		x *= 0xd35a2d97u;
		x ^= x >> 15;
		at = (uint64_t)x * t.n;
		if ((uint32_t)at >= t.alias.table[at >> 32].keep >> 32)
			at = t.alias.table[at >> 32].other << 32;
		bad += got[i] != t.word[at >> 32] || !(weight[got[i]] > 0);
	}
	CHECK_EQ(bad, 0);
	pen__noise_fini(&t);
	/* more words than 16-bit ids */
	weight[69999] = 1e9;
	CHECK_EQ(pen__noise_init(&t, weight, 70000), 0);
	CHECK(!t.pair);
	pen__noise_draw(&t, key, N, got);
	for (uint32_t i = 0; i < N; i++)
		bad += got[i] == 69999;
	CHECK(bad > N * 9 / 10);
	pen__noise_fini(&t);
}

/* A row that is too small is an error, not a write beyond it. */
static void short_rows(void)
{
	static const char *const all[] = {
		"tokens=none",
		"tokens=chars alphabet=ACGTN specials=pad,unk,cls begin=cls "
		"length=12",
		"tokens=chars max_length=9",
		"tokens=kmers k=3",
		"tokens=frames k=3",
		"model=nucleotide_transformer",
		"tokens=onehot",
		"tokens=dm vocab=t_dm.txt",
		"tokens=vocab vocab=t_dm.txt",
	};
	static const uint8_t text[] = "ACGTACGTACGTA";
	static uint8_t out[4][4096];
	const struct pen_sequence s = { text, 13, 3, 9 };
	void *dst[4] = { out[0], out[1], out[2], out[3] };

	save_text("t_dm.txt", "ACGT\t3\nCGTA\t1\nGTAC\t1\nTACG\t1\nA\n<unk>\n");
	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		struct pen_tokens *t;
		struct pen_err err;
		struct pen_field f[4];
		size_t len[4], used[4];
		void *room;
		struct pen_token_row row = { dst, len, used, NULL };

		CHECK_EQ(open_tokens(&t, all[i], &err), 0);
		CHECK_STR(err.msg, "");
		if (!t)
			continue;
		room = malloc(pen__tokens_scratch(t, 13) + 1);
		row.room = room;
		for (uint32_t j = 0; j < pen__tokens_nfields(t); j++) {
			CHECK_EQ(pen__tokens_field(t, j, 13, 13, &f[j], &err),
				 0);
			len[j] = used[j] = f[j].max_bytes;
			memset(out[j], 0xee, sizeof(out[j]));
		}
		CHECK_EQ(pen__tokens_emit(t, &s, &row, &err), 0);
		for (uint32_t j = 0; j < pen__tokens_nfields(t); j++)
			CHECK(out[j][len[j]] == 0xee && used[j] <= len[j]);
		for (uint32_t j = 0; j < pen__tokens_nfields(t); j++)
			len[j] = used[j] = 1;
		memset(out, 0xee, sizeof(out));
		/* truncated, or an error; no byte after the row is written */
		(void)pen__tokens_emit(t, &s, &row, &err);
		for (uint32_t j = 0; j < pen__tokens_nfields(t); j++)
			CHECK_EQ(out[j][1], 0xee);
		free(room);
		pen__tokens_close(t);
	}
	unlink("t_dm.txt");
}

static void hostile(void)
{
	static const struct {
		const char *bytes, *settings, *says;
		size_t n;
	} bad[] = {
#define BAD(s, set, says) { s, set, says, sizeof(s) - 1 }
		BAD("", "tokens=vocab vocab=t_bad", "no words"),
		BAD("\n\n\r\n", "tokens=vocab vocab=t_bad", "no words"),
		BAD("A\nA\n", "tokens=vocab vocab=t_bad", "is also word"),
		BAD("ACGT\nCGTA\nACGT\n", "tokens=kmers vocab=t_bad",
		    "word 2, 'ACGT', is also word 0"),
		BAD("ACGT\t1\nACGT\t1\n", "tokens=dm vocab=t_bad",
		    "is also word"),
		BAD("AC\nACGT\nAC\n", "tokens=kmers vocab=t_bad",
		    "is also word"),
		BAD("<unk>\nAC\n<unk>\n", "tokens=vocab vocab=t_bad",
		    "is also word"),
		BAD("A\0C\n", "tokens=vocab vocab=t_bad", "a NUL byte"),
		BAD("A\t-1\n", "tokens=vocab vocab=t_bad", "not a count"),
		BAD("A\t99999999999999999999\n", "tokens=vocab vocab=t_bad",
		    "not a count"),
		BAD("{", "tokens=vocab vocab=t_bad", ""),
		BAD("{}", "tokens=vocab vocab=t_bad", "no JSON object"),
		BAD("{\"A\":0,\"C\":0}", "tokens=vocab vocab=t_bad",
		    "already taken"),
		BAD("{\"A\":-1}", "tokens=vocab vocab=t_bad", "not an integer"),
		BAD("{\"A\":1e15}", "tokens=vocab vocab=t_bad", "too large"),
		BAD("{\"A\":0.5}", "tokens=vocab vocab=t_bad",
		    "not an integer"),
		BAD("{\"\":0}", "tokens=vocab vocab=t_bad", "empty"),
		BAD("{\"model\":{\"vocab\":[1]}}", "tokens=vocab vocab=t_bad",
		    "no JSON object"),
		BAD("ACG\n", "tokens=kmers k=4 vocab=t_bad", "no words of 4"),
		BAD("ACGT\n", "tokens=dm vocab=t_bad", "no word counts"),
		BAD("A C\n", "tokens=bpe merges=t_bad vocab=t_bad", "merge 1"),
		BAD("A\n", "tokens=bpe merges=t_bad", "merge 1"),
		BAD("A C\nA C\n", "tokens=bpe merges=t_bad", "listed twice"),
		BAD("A\0C\n", "tokens=bpe merges=t_bad", "NUL byte"),
		BAD("{\"model\":{\"type\":\"BPE\",\"vocab\":{\"A\":0},"
		    "\"merges\":[\"A C\"]}}",
		    "tokens=bpe merges=t_bad", "of one model"),
		BAD("{\"model\":{\"vocab\":{\"A\":0},\"merges\":[[1,2]]}}",
		    "tokens=bpe merges=t_bad", "not a pair of words"),
		BAD("{\"model\":{\"vocab\":{\"A\":0},\"merges\":[[\"A\"]]}}",
		    "tokens=bpe merges=t_bad", "not a pair of words"),
		BAD("{\"model\":{\"vocab\":{\"A\":0},\"merges\":7}}",
		    "tokens=bpe merges=t_bad", "is missing"),
		BAD("{\"model\":{\"type\":\"WordPiece\",\"vocab\":{}}}",
		    "tokens=bpe merges=t_bad", "tokens=vocab"),
		BAD("{\"model\":{\"continuing_subword_prefix\":\"##\"}}",
		    "tokens=bpe merges=t_bad", "not supported"),
		BAD("[]", "tokens=bpe merges=t_bad", "merge 1"),
	};
	struct pen_tokens *t;
	struct pen_err err;

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		save("t_bad", bad[i].bytes, bad[i].n);
		CHECK(open_tokens(&t, bad[i].settings, &err) < 0);
		CHECK(!t);
		if (!strstr(err.msg, bad[i].says))
			CHECK_STR(err.msg, bad[i].says);
		CHECK_STR(err.where, "t_bad");
	}
	CHECK_EQ(truncate("t_bad", INT64_C(2) << 30), 0);
	CHECK(open_tokens(&t, "tokens=vocab vocab=t_bad", &err) < 0);
	CHECK(strstr(err.msg, "larger than the limit"));
	CHECK(open_tokens(&t, "tokens=bpe merges=t_bad", &err) < 0);
	unlink("t_bad");
	CHECK(open_tokens(&t, "tokens=bpe merges=t_bad", &err) < 0);
	CHECK(open_tokens(&t, "tokens=vocab vocab=.", &err) < 0);
	CHECK(strstr(err.msg, "not a regular file"));
}

/* Long words, and files of random bytes: no crash. */
static void noise_files(void)
{
	static const char *const ways[] = {
		"tokens=vocab vocab=t_bad", "tokens=bpe merges=t_bad",
		"tokens=kmers k=2 vocab=t_bad", "tokens=dm vocab=t_bad k=2",
		"tokens=bpe merges=t_bad vocab=t_bad"
	};
	static char text[3000];
	struct pen_tokens *t;
	struct pen_err err;

	memset(text, 'A', sizeof(text));
	save("t_bad", text, sizeof(text));
	CHECK(open_tokens(&t, ways[0], &err) < 0);
	CHECK(strstr(err.msg, "longer"));
	for (unsigned round = 0; round < 200; round++) {
		static const char some[] = "AC GT\n\t0{}[]\":,<>\r";
		const size_t n = pen__rng_at(3, round) % 120;

		for (size_t i = 0; i < n; i++)
			text[i] = some[pen__rng_at(round, i) %
				       (sizeof(some) - 1)];
		save("t_bad", text, n);
		for (size_t w = 0; w < sizeof(ways) / sizeof(ways[0]); w++) {
			const int rc = open_tokens(&t, ways[w], &err);

			if (rc || !t)
				CHECK(rc < 0 && err.msg[0]);
			pen__tokens_close(t);
		}
	}
	unlink("t_bad");
}

/* The n-th allocation fails, for all n. */
static void no_memory(void)
{
	static const char merges[] =
		"{\"model\":{\"type\":\"BPE\",\"vocab\":{\"A\":0,\"C\":1,"
		"\"AC\":2},\"merges\":[\"A C\"]}}";
	static const char *const all[] = {
		"tokens=chars",
		"tokens=onehot",
		"tokens=kmers k=4",
		"tokens=kmers k=4 vocab=t_words",
		"tokens=vocab vocab=t_words",
		"tokens=vocab vocab=t_merges",
		"tokens=dm vocab=t_words",
		"tokens=bpe merges=t_merges",
		"tokens=bpe merges=t_pairs",
	};

	save_text("t_words", "ACGT\t3\nCGTA\t1\nA\n<unk>\n");
	save_text("t_merges", merges);
	save_text("t_pairs", "A C\nAC G\n");
	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		struct pen_tokens *t;
		struct pen_err err;
		uint64_t n = 1;
		int rc;

		do {
			pen__mem_fail_nth(n++, false);
			rc = open_tokens(&t, all[i], &err);
			pen__mem_fail_nth(0, false);
			CHECK(rc == 0 || rc == PEN_ENOMEM);
			pen__tokens_close(t);
		} while (rc && n < 200);
		CHECK_EQ(rc, 0);
		CHECK(n > 2); /* at least one did fail */
	}
	unlink("t_words");
	unlink("t_merges");
	unlink("t_pairs");
}

static void counting(void)
{
	struct pen_count_opts o = { .k = 12,
				    .stride = 1,
				    .min_count = 1,
				    .alphabet = (char *)(uintptr_t) "ACGT" };
	struct pen_vocab_facts f;
	struct pen_text text = { 0 };
	struct pen_counts a, b;
	struct pen_err err;
	static uint8_t s[200000];
	uint64_t n = 1;
	int rc;

	for (size_t i = 0; i < sizeof(s); i++)
		s[i] = (uint8_t) "ACGT"[pen__rng_at(9, i) & 3];
	CHECK_EQ(pen__counts_init(&a, &o, &err), 0);
	CHECK_EQ(pen__counts_init(&b, &o, &err), 0);
	pen__counts_add(&a, s, sizeof(s)); /* grows */
	pen__counts_add(&b, s, sizeof(s));
	pen__counts_join(&a, &b);
	CHECK_EQ(a.nwords, 2 * (sizeof(s) - 11));
	CHECK_EQ(pen__counts_text(&a, &o, &text, &f, &err), 0);
	CHECK(f.nseen > 190000 && f.nseen == f.nwords);
	CHECK(strstr(text.p, "\t2\n") && !strstr(text.p, "\t1\n"));
	pen__text_fini(&text);
	pen__counts_fini(&a);
	pen__counts_fini(&b);
	do {
		pen__mem_fail_nth(n++, false);
		text = (struct pen_text){ 0 };
		rc = pen__counts_init(&a, &o, &err);
		if (!rc) {
			pen__counts_add(&a, s, sizeof(s));
			rc = pen__counts_text(&a, &o, &text, &f, &err);
		}
		pen__mem_fail_nth(0, false);
		CHECK(rc == 0 || rc == PEN_ENOMEM);
		pen__text_fini(&text);
		pen__counts_fini(&a);
	} while (rc && n < 100);
	CHECK_EQ(rc, 0);
	CHECK(n > 2);
	o.alphabet = (char *)(uintptr_t) "ACGTXY";
	o.pads = true;
	CHECK_EQ(pen__counts_init(&a, &o, &err), PEN_EINVAL);
	pen__counts_fini(&a);
}

/* Three letters as digits; 64: some are unknown. */
static uint64_t word_of(const uint8_t *s)
{
	uint64_t v = 0;

	for (unsigned j = 0; j < 3; j++) {
		const char *at = strchr("ACGT", s[j]);

		if (!at)
			return 64;
		v = v * 4 + (uint64_t)(strlen("ACGT") - strlen(at));
	}
	return v;
}

/* Ids in every dtype and length; no byte after them is written. */
static void types(void)
{
	static const struct {
		const char *settings;
		unsigned bytes;
	} all[] = { { "tokens=kmers k=3 alphabet=ACGT dtype=uint8", 1 },
		    { "tokens=kmers k=3 alphabet=ACGT dtype=uint16", 2 },
		    { "tokens=kmers k=3 alphabet=ACGT dtype=int32", 4 },
		    { "tokens=kmers k=3 alphabet=ACGT dtype=int64", 8 } };
	uint8_t text[202], out[201 * 8];

	for (unsigned i = 0; i < sizeof(text); i++)
		text[i] = (uint8_t) "ACGTN"[pen__rng_at(4, i) % 5];
	for (unsigned a = 0; a < 4; a++) {
		struct pen_tokens *t;
		struct pen_err err;

		CHECK_EQ(open_tokens(&t, all[a].settings, &err), 0);
		for (unsigned n = 0; n <= 200; n++) {
			const struct pen_sequence s = { text, n + 2, 0, 0 };
			void *dst[] = { out };
			size_t len[] = { n * all[a].bytes }, used[1];
			const struct pen_token_row row = { dst, len, used,
							   NULL };
			unsigned bad = 0;

			memset(out, 0xee, sizeof(out));
			CHECK_EQ(pen__tokens_emit(t, &s, &row, &err), 0);
			for (unsigned i = 0; i < n; i++) {
				uint64_t got = 0;

				memcpy(&got, out + i * all[a].bytes,
				       all[a].bytes);
				bad += got != word_of(text + i);
			}
			CHECK_EQ(bad, 0);
			CHECK_EQ(out[n * all[a].bytes], 0xee);
		}
		pen__tokens_close(t);
	}
}

/* Every kind of table maps every code to its id, or to none. */
static void table_of(unsigned k, uint32_t nwords, bool ordered,
		     enum pen_table_kind kind, unsigned every)
{
	const uint32_t all = UINT32_C(1) << 2 * k;
	uint32_t *want = malloc(all * sizeof(*want)), *v, n = 0;
	struct pen_word_table t;
	struct pen_err err;
	uint64_t bad = 0;

	v = malloc(all * sizeof(*v));
	CHECK_EQ(pen__word_table_init(&t, k, 4, nwords, ordered, &err), 0);
	CHECK_EQ(t.kind, kind);
	for (uint32_t c = 0; c < all; c++) {
		v[c] = c;
		want[c] = UINT32_MAX;
		if (pen__rng_at(k, c) % every)
			continue;
		want[c] = 7 + (ordered ? n : n ^ 1);
		n++;
		CHECK_EQ(pen__word_table_put(&t, c, want[c]), UINT32_MAX);
	}
	pen__word_table_rank(&t, 7);
	for (uint32_t c = 0; c < all; c++)
		bad += pen__word_table_get(&t, c) != want[c];
	CHECK_EQ(bad, 0);
	CHECK_EQ(pen__word_table_get(&t, PEN_WORD_NONE), UINT32_MAX);
	v[5] = PEN_WORD_NONE;
	want[5] = UINT32_MAX;
	pen__word_table_ids(&t, v, all, 3);
	for (uint32_t c = 0; c < all; c++)
		bad += v[c] != (want[c] == UINT32_MAX ? 3 : want[c]);
	CHECK_EQ(bad, 0);
	for (uint32_t c = 0; !t.rank && c < all; c += 999)
		if (c != 5 && want[c] != UINT32_MAX)
			CHECK_EQ(pen__word_table_put(&t, c, want[c]), want[c]);
	pen__word_table_fini(&t);
	free(v);
	free(want);
}

static void tables(void)
{
	table_of(4, 200, true, PEN_TABLE_DIRECT, 2);
	table_of(10, 600000, true, PEN_TABLE_RANKS, 2);
	table_of(10, 600000, false, PEN_TABLE_DIRECT, 2);
	table_of(10, 3000, true, PEN_TABLE_HASH, 1000);
	table_of(10, 3000, false, PEN_TABLE_HASH, 1000);
}

/* Lines on the fast path and on the slow path, in one file. */
static void many_words(void)
{
	static const char *const ends[] = {
		"\t7\n",   "\n",   "\t12345678901234567\n",
		"\t7\r\n", "\r\n", "\t0\n# no word\n\n"
	};
	struct pen_text text = { 0 };
	struct pen_words w;
	struct pen_err err;
	char word[16];

	pen__text_add(&text, "# k=9 of someone\n<unk>\t0\n");
	for (uint32_t i = 0; i < 3000; i++) {
		for (unsigned j = 0; j < 9; j++)
			word[j] = "ACGT"[i >> 2 * (8 - j) & 3];
		pen__text_add(&text, "%.9s%s", word, ends[i % 6]);
	}
	pen__text_add(&text, "AAAA\t3");
	save("t_many", text.p, text.n);
	CHECK_EQ(pen__words_load(&w, "t_many", 4, &err), 0);
	CHECK_EQ(w.k, 9);
	CHECK_EQ(w.n, 3002);
	CHECK_EQ(w.longest, 9);
	for (uint32_t i = 0; i < 3000; i++) {
		static const uint64_t counts[] = { 7, 0, 12345678901234567,
						   7, 0, 0 };

		for (unsigned j = 0; j < 9; j++)
			word[j] = "ACGT"[i >> 2 * (8 - j) & 3];
		word[9] = '\0';
		CHECK_STR(pen__words_at(&w, i + 1), word);
		CHECK_EQ(pen__words_length(&w, i + 1), 9);
		CHECK_EQ(w.count[i + 1], counts[i % 6]);
	}
	CHECK_EQ(pen__words_find(&w, "AAAA", 4), 3001);
	CHECK_EQ(pen__words_find(&w, "<unk>", 5), 0);
	pen__words_fini(&w);
	pen__text_fini(&text);
	unlink("t_many");
}

/* Ids beyond int32 get the next dtype; a byte order mark is not a letter. */
static void odd_sets(void)
{
	struct pen_tokens *t;
	struct pen_field f;
	struct pen_err err;

	CHECK_EQ(open_tokens(&t, "tokens=kmers k=12 alphabet=ACGTNX", &err), 0);
	CHECK(t && !pen__tokens_field(t, 0, 12, 12, &f, &err) &&
	      f.dtype == PEN_I64);
	pen__tokens_close(t);
	CHECK_EQ(open_tokens(&t,
			     "tokens=kmers k=12 alphabet=ACGTNX dtype=int32",
			     &err),
		 PEN_EINVAL);
	save_text("t_bom", "\xef\xbb\xbf"
			   "ACGT\r\nCGTA\r\n");
	CHECK_EQ(open_tokens(&t, "tokens=kmers k=4 vocab=t_bom unknown=error",
			     &err),
		 0);
	if (t) {
		static const uint8_t text[] = "ACGT";
		const struct pen_sequence s = { text, 4, 0, 0 };
		uint8_t out = 9;
		void *dst[] = { &out };
		size_t len[] = { 1 }, used[] = { 1 };
		const struct pen_token_row row = { dst, len, used, NULL };

		CHECK_EQ(pen__tokens_emit(t, &s, &row, &err), 0);
		CHECK_EQ(out, 0);
	}
	pen__tokens_close(t);
	unlink("t_bom");
}

int main(void)
{
	types();
	tables();
	many_words();
	odd_sets();
	letters_as_they_are();
	maps();
	codes();
	draws();
	short_rows();
	hostile();
	noise_files();
	no_memory();
	counting();
	return test_end();
}
