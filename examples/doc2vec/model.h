/*
 * Paragraph vectors (distributed memory) with negative sampling: a vector per
 * document and per word predict each word from its neighbours. Independent of
 * files and loaders.
 *
 *	x     = docs[doc] + sum of words[context]
 *	s[j]  = x . out[target or noise j]
 *	loss  = -mean(log sigmoid(s[0]) + mean over noise (log sigmoid(-s[j])))
 *
 * A step is the gradient over all targets of a batch and one update with it.
 * Every sequence has its own gradient, and they are added in the order of the
 * batch, so the result does not depend on the number of threads.
 */
#ifndef DOC2VEC_MODEL_H
#define DOC2VEC_MODEL_H

#include <stdbool.h>
#include <stdint.h>

enum update {
	UPDATE_SPARSE, /* Adam on the rows with a gradient */
	UPDATE_ADAM,   /* Adam on all rows, as in a plain model */
	UPDATE_SGD,    /* plain gradient descent, for comparison */
};

#define LANES 8	      /* floats processed together */
#define MOST_DIM 1024 /* longest vector */

/* Rows of `stride` floats; the first dim are used. */
struct table {
	uint64_t rows;
	float *at, *mean, *square; /* weights and the two moments of Adam */
};

struct model {
	uint32_t dim, stride;
	struct table docs, words, out;
	enum update update;
	double rate;
	uint64_t steps;
};

/* The targets of one document; the arrays belong to the batch. */
struct sequence {
	uint64_t doc;
	uint32_t ntargets, ncontext, nwords; /* nwords: target + noise */
	const int32_t *context;		     /* ntargets x ncontext */
	const int32_t *guess; /* ntargets x nwords, the target first */
};

/* The gradient of one sequence: only rows of words and out that are marked as
 * used are valid. Reused from step to step. */
struct gradient {
	float *doc;
	float *words, *out;
	uint8_t *word_used, *out_used;
	double loss; /* sum over targets */
};

/* All functions return false if out of memory. Weights are drawn from seed:
 * docs and words from a normal distribution; out is zero. */
bool model_init(struct model *, uint32_t dim, uint64_t ndocs, uint64_t nwords,
		uint64_t seed);
void model_fini(struct model *);
bool gradient_init(struct gradient *, const struct model *);
void gradient_fini(struct gradient *);

/* Computes the gradient of a sequence; share: 1 / targets in the step. False:
 * an id is not a word or document. */
bool model_look(const struct model *, const struct sequence *, double share,
		struct gradient *);

/*
 * One update from the gradients of n sequences, in parts that several threads
 * may share: begin, then rows [first, last) of docs, words or out, each row
 * once. docs: the documents of the sequences, which may repeat.
 */
void model_begin(struct model *);
void model_words(struct model *, const struct gradient *, uint32_t n,
		 uint64_t first, uint64_t last);
void model_docs(struct model *, const struct sequence *,
		const struct gradient *, uint32_t n);
/* UPDATE_ADAM: moves rows without a gradient; after model_docs(). */
void model_drift(struct model *, const struct sequence *, uint32_t n,
		 uint64_t first, uint64_t last);

#endif
