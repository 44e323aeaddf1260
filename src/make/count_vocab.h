/* Counts the words of a data set of sequences on all CPUs. */
#ifndef PEN_MAKE_COUNT_VOCAB_H
#define PEN_MAKE_COUNT_VOCAB_H

#include "penstock.h"
#include "token/count.h"

struct pen_vocab_job {
	const struct pen_spec *source; /* tokens=none */
	const struct pen_count_opts *opts;
	uint32_t threads; /* 0: one per CPU */
	/* Called once, after the source was opened. May be NULL. */
	void (*opened)(const struct pen_dataset *);
	/* Called periodically by one thread; a nonzero result aborts. */
	int (*tick)(void *arg, uint64_t done, uint64_t total, uint64_t bytes);
	void *arg;
};

struct pen_vocab_result {
	uint64_t nsamples, nletters;
	uint32_t threads;
	double seconds; /* from opening the data to the text */
	struct pen_vocab_facts facts;
};

/* Writes the vocabulary file to `text`, which the caller owns in any case.
 * PEN_ECLOSED: tick() aborted it. */
int pen__vocab_build(const struct pen_vocab_job *, struct pen_text *text,
		     struct pen_vocab_result *, struct pen_err *);

#endif
