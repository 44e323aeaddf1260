/*
 * Paragraph vectors (distributed memory) with negative sampling: a vector per
 * document and per word predict each word from its neighbours. Independent of
 * files and loaders.
 *
 *	x     = docs[doc] + sum of words[context]
 *	s[j]  = x . out[target or noise j]
 *	loss  = -mean(log sigmoid(s[0]) + mean over noise (log sigmoid(-s[j])))
 *
 * A batch is trained on in parts: part k of n has that share of the targets of
 * every sequence. The gradient over a part is computed, and one update is made
 * with it. Gradients are summed in fixed point, so that the result depends
 * neither on the number of threads nor on that of ranks.
 */
#ifndef DOC2VEC_MODEL_H
#define DOC2VEC_MODEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum update {
	UPDATE_SPARSE, /* Adam on the rows with a gradient */
	UPDATE_ADAM,   /* Adam on all rows, as in a plain model */
	UPDATE_SGD,    /* plain gradient descent, for comparison */
};

#define LANES 8	      /* floats processed together */
#define MOST_DIM 1024 /* longest vector */

#define FIXED 0x1p32 /* steps per 1 of sums in fixed point */

/* nwords rows of `stride` floats; the first dim are used. */
struct table {
	float *at, *mean, *square; /* weights and the two moments of Adam */
};

/* Step size, and scale and offset of the root in Adam. */
struct pace {
	float rate, root, epsilon;
};

struct model {
	/* set before model_init(); spread: deviation of the first weights */
	enum update update;
	double rate, spread;
	uint64_t seed;

	uint32_t dim, stride;
	uint64_t nwords, steps;
	struct table words, out;
	/* the current update; most: of a gradient, so that no sum overflows */
	struct pace pace;
	float most;
};

/* A document: weights and the two moments, stride floats each. */
struct doc {
	uint64_t steps; /* updates of the model until its last one; 0: none */
	float v[];
};

/* The targets of one document; the arrays belong to the batch. */
struct sequence {
	uint64_t doc;
	uint32_t ntargets, ncontext, nwords; /* nwords: target + noise */
	const int32_t *context;		     /* ntargets x ncontext */
	const int32_t *guess; /* ntargets x nwords, the target first */
	struct doc *row;
};

/* Targets [first, last) of a sequence. */
struct part {
	const struct sequence *of;
	uint32_t first, last;
};

/* What a thread sums. Rows are those of words, followed by those of out. */
struct sums {
	float *part;	/* of one part of a sequence; otherwise zero */
	int64_t *total; /* rows of stride + 1; the last: how many have it */
	uint8_t *marked;
	uint32_t *list;
	uint64_t nlisted;
	uint64_t *bits; /* rows with a total, a bit each */
	int64_t loss;
	bool wild; /* a gradient is too large, or not a number */
};

/* False: out of memory. Words are drawn from seed, from a normal distribution;
 * out is zero. */
bool model_init(struct model *, uint32_t dim, uint64_t nwords);
void model_fini(struct model *);
bool sums_init(struct sums *, const struct model *);
void sums_fini(struct sums *);

size_t doc_bytes(const struct model *);
/* The first weights of a document. */
void doc_draw(const struct model *, uint64_t id, struct doc *);
/* UPDATE_ADAM: makes the updates without a gradient that it has missed. */
void doc_catch_up(const struct model *, struct doc *, uint64_t steps);

/* False: an id is not that of a word, or there are too many noise words. */
bool model_accepts(const struct model *, const struct sequence *);
/* Starts an update from parts of so many sequences. */
void model_begin(struct model *, uint64_t nsequences);
/* Adds the gradient of a part to the sums, and updates its document; share: 1 /
 * targets of the update. */
void model_look(const struct model *, const struct part *, double share,
		struct sums *);
/* Updates a row of words or out from its sum. */
void model_update(struct model *, uint64_t row, const int64_t *sum,
		  double share);

#endif
