/* Writing the trained vectors: on rank 0. */
#ifndef DOC2VEC_VECTORS_H
#define DOC2VEC_VECTORS_H

#include "docs.h"

struct vectors {
	const char *dir;
	const struct model *model;
	const struct pen_dataset *data; /* has the words, */
	uint32_t field;			/* as labels of this field */
	const float *docs;		/* ndocs x dim */
	uint64_t ndocs;
};

/* Creates the directory if necessary. Called before training, so that an output
 * that cannot be written is reported early. */
int vectors_place(const char *dir, struct pen_err *);
/* All documents, ndocs x dim; the caller frees them. */
int vectors_docs(struct docs *, uint64_t ndocs, float **out, struct pen_err *);
/* Writes docs.npy, words.npy, out.npy and words.txt; after an error no partial
 * file is left. */
int vectors_save(const struct vectors *, struct pen_err *);

#endif
