/* How well vectors tell two classes of documents apart. */
#ifndef DOC2VEC_CLASSES_H
#define DOC2VEC_CLASSES_H

#include "penstock.h"

struct classes {
	uint64_t n;
	uint8_t *of; /* 0 or 1 per document */
};

/* Reads a label per line, of two kinds; n lines. Free: classes_fini(). */
int classes_read(struct classes *, const char *path, uint64_t n,
		 struct pen_err *);
void classes_fini(struct classes *);
/*
 * Accuracy of a logistic regression (L2 penalty of 1, as is usual) on vectors
 * of n documents that it was not fitted to: the mean of five folds. Shuffled:
 * the same with labels in random order, about a half. PEN_ENOMEM: no memory.
 */
int classes_accuracy(const struct classes *, const float *v, uint32_t dim,
		     double *accuracy, double *shuffled);

#endif
