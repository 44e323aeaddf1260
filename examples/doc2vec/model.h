/*
 * Paragraph vectors, distributed memory, with negative sampling: a vector a
 * document and a word guess each word from its neighbours. Knows nothing of
 * files and loaders.
 *
 *	x     = docs[doc] + sum of words[context]
 *	s[j]  = x . out[target or noise j]
 *	loss  = -mean(log sigmoid(s[0]) + mean over noise (log sigmoid(-s[j])))
 *
 * A step is the gradient over all targets of a batch and one update with it.
 * Every sequence has its own gradient, and they are added in the order of the
 * batch: so the result does not depend on the number of threads.
 */
#ifndef DOC2VEC_MODEL_H
#define DOC2VEC_MODEL_H

#include <stdbool.h>
#include <stdint.h>

enum update {
	UPDATE_SPARSE, /* Adam that touches the rows that have a gradient */
	UPDATE_ADAM,   /* Adam over all rows, as the plain model has it */
	UPDATE_SGD,    /* only the gradient: to compare that */
};

#define LANES 8	      /* floats that are worked on at once */
#define MOST_DIM 1024 /* length of vectors */

/* Rows of `stride` floats, of which the first dim are used. */
struct table {
	uint64_t rows;
	float *at, *mean, *square; /* weights, and Adam's two moments */
};

struct model {
	uint32_t dim, stride;
	struct table docs, words, out;
	enum update update;
	double rate;
	uint64_t steps;
};

/* One document's targets; all arrays are of the batch. */
struct sequence {
	uint64_t doc;
	uint32_t ntargets, ncontext, nwords; /* nwords: target + noise */
	const int32_t *context;		     /* ntargets x ncontext */
	const int32_t *guess; /* ntargets x nwords, the target first */
};

/* What one sequence says: its rows of words and out are those whose mark is
 * set. Made once and used again. */
struct gradient {
	float *doc;
	float *words, *out;
	uint8_t *word_used, *out_used;
	double loss; /* sum over targets */
};

/* All false: out of memory. Weights are drawn from seed: docs and words
 * normal, out zero. */
bool model_init(struct model *, uint32_t dim, uint64_t ndocs, uint64_t nwords,
		uint64_t seed);
void model_fini(struct model *);
bool gradient_init(struct gradient *, const struct model *);
void gradient_fini(struct gradient *);

/* The gradient of a sequence whose share of the step's targets is `share`,
 * 1 / targets. false: a number in it is no word or no document. */
bool model_look(const struct model *, const struct sequence *, double share,
		struct gradient *);

/*
 * One update from the gradients of n sequences, in three parts that several
 * threads may share: begin, then rows [first, last) of docs, words or out,
 * with no row twice. docs: the sequences' documents, of which several may be
 * the same.
 */
void model_begin(struct model *);
void model_words(struct model *, const struct gradient *, uint32_t n,
		 uint64_t first, uint64_t last);
void model_docs(struct model *, const struct sequence *,
		const struct gradient *, uint32_t n);
/* UPDATE_ADAM: rows without a gradient move, too; after model_docs(). */
void model_drift(struct model *, const struct sequence *, uint32_t n,
		 uint64_t first, uint64_t last);

#endif
