/* Training as a function: doc2vec itself, and `penstock bench dna`. */
#ifndef DOC2VEC_DOC2VEC_H
#define DOC2VEC_DOC2VEC_H

#include <stdio.h>

#include "options.h"

/*
 * Trains on paths and settings args[0 .. n), with all ranks; rank 0 prints the
 * result to `out`. Collective: if a rank fails, all return its error.
 */
int doc2vec(const struct options *, struct pen_ranks *, char *const *args,
	    int n, FILE *out, struct pen_err *);

#endif
