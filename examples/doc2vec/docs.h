/*
 * The documents of the model, in a dictionary in the memory of all ranks: each
 * rank owns some. A rank fetches those of its slice of a batch, trains them,
 * and stores them again. A document that no rank has stored yet has its first
 * weights.
 */
#ifndef DOC2VEC_DOCS_H
#define DOC2VEC_DOCS_H

#include "model.h"
#include "penstock.h"

struct docs {
	struct pen_ddict *dict;
	const struct model *model;
	struct pen_key *keys;
	struct pen_value *values;
	char *rows;
	uint32_t room;
};

/* Collective. The model must be initialised and outlive the documents. */
int docs_open(struct docs *, struct pen_ranks *, const struct model *,
	      uint64_t ndocs, struct pen_err *);
void docs_close(struct docs *); /* collective */
/* Sets the rows of n sequences; valid until the next fetch. */
int docs_fetch(struct docs *, struct sequence *, uint32_t n, struct pen_err *);
int docs_store(struct docs *, const struct sequence *, uint32_t n,
	       struct pen_err *);

#endif
