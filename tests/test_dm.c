/*
 * Paragraph-vector samples through the engine: every sequence once per epoch,
 * even short ones, the same content however it is loaded, and different noise
 * in every epoch. And the vocabulary, with any number of threads.
 */
#include "test.h"

#include <unistd.h>

#include "base/rng.h"
#include "engine.h"
#include "make/count_vocab.h"
#include "experiment/experiment.h"

#define SEQS "t_dm_seqs.txt"
#define WORDS "t_dm_words.txt"
enum { N = 101, FIELDS = 4, EPOCHS = 3 };

static uint64_t length_of(unsigned i)
{
	return i % 50 == 49 ? 64 : i % 10 == 3 ? i % 8 + 1 : 300;
}

static void make(void)
{
	FILE *f = fopen(SEQS, "w");

	for (unsigned i = 0; i < N; i++) {
		for (uint64_t j = 0; j < length_of(i); j++)
			fputc((i < N / 2 ? "ACGT"
					 : "ACGU")[pen__rng_at(i, j) & 3],
			      f);
		fprintf(f, ",design_id_%u\n", i + 1);
	}
	CHECK_EQ(fclose(f), 0);
}

static void vocabularies(void)
{
	struct pen_text one = { 0 };

	for (unsigned threads = 1; threads <= 5; threads++) {
		const struct pen_count_opts o = {
			.k = 4,
			.stride = 1,
			.min_count = 1,
			.pads = true,
			.alphabet = (char *)(uintptr_t) "ACGTU",
		};
		struct pen_text text = { 0 };
		struct pen_vocab_result r;
		struct pen_err err = { 0 };
		char line[] = SEQS " format=lines";
		struct pen_vocab_job job = { .opts = &o, .threads = threads };
		struct pen_spec *spec;

		CHECK_EQ(eng_spec(&spec, line, &err), 0);
		job.source = spec;
		CHECK_EQ(pen__vocab_build(&job, &text, &r, &err), 0);
		CHECK_EQ(r.nsamples, N);
		CHECK_EQ(r.facts.nwords, 743);
		CHECK_EQ(r.facts.nseen, 431);
		if (threads == 1) {
			one = text;
			CHECK_EQ(pen__text_save(&one, WORDS, &err), 0);
		} else {
			CHECK_STR(text.p, one.p);
			pen__text_fini(&text);
		}
		pen_spec_free(spec);
	}
	pen__text_fini(&one);
}

/* Sums of each field in each epoch. */
static void epochs(const char *how, uint64_t sum[EPOCHS][FIELDS])
{
	struct pen_err err;
	struct pen_loader *l = eng_open(&err,
					SEQS " format=lines format.tokens=dm "
					     "format.vocab=" WORDS
					     " seed=4 epochs=3 %s",
					how);
	struct pen_batch *b;

	memset(sum, 0, sizeof(uint64_t) * EPOCHS * FIELDS);
	CHECK_STR(err.msg, "");
	for (unsigned e = 0; l && e < EPOCHS; e++) {
		bool seen[N] = { false };
		uint64_t n = 0, targets = 0;
		int rc;

		while ((rc = pen_loader_next(l, &b, &err)) == 0) {
			for (uint32_t i = 0; i < b->nsamples; i++) {
				CHECK(b->ids[i] < N && !seen[b->ids[i]]);
				seen[b->ids[i]] = true;
			}
			n += b->nsamples;
			targets += b->tensors[1].nbytes / 4;
			CHECK_EQ(b->ntensors, FIELDS);
			for (uint32_t t = 0; t < FIELDS; t++)
				sum[e][t] += pen__content_tensor(b, t, b->ids);
			pen_batch_unref(b);
		}
		CHECK_EQ(rc, PEN_END);
		CHECK_EQ(n, N);
		for (unsigned i = 0; i < N; i++)
			targets -= length_of(i) < 4 ? 0 : length_of(i) - 3;
		CHECK_EQ(targets, 0);
	}
	pen_loader_close(l);
}

static void contents(void)
{
	static const char *const ways[] = {
		"batch_size=7 threads=1",
		"batch_size=16 threads=4 shuffle=true",
		"batch_size=1 threads=2 store=posix",
		"batch_size=101 threads=3 sampler=block shuffle=true",
	};
	uint64_t first[EPOCHS][FIELDS], sum[EPOCHS][FIELDS];

	epochs(ways[0], first);
	for (unsigned e = 1; e < EPOCHS; e++) {
		for (unsigned t = 0; t + 1 < FIELDS; t++)
			CHECK(first[e][t] && first[e][t] == first[0][t]);
		CHECK(first[e][FIELDS - 1] != first[0][FIELDS - 1]);
	}
	for (size_t w = 1; w < sizeof(ways) / sizeof(ways[0]); w++) {
		epochs(ways[w], sum);
		CHECK(memcmp(sum, first, sizeof(sum)) == 0);
	}
}

int main(void)
{
	make();
	vocabularies();
	contents();
	unlink(SEQS);
	unlink(WORDS);
	return test_end();
}
