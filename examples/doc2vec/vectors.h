/* Writing the trained vectors. */
#ifndef DOC2VEC_VECTORS_H
#define DOC2VEC_VECTORS_H

#include "model.h"
#include "penstock.h"

struct vectors {
	const char *dir;
	const struct model *model;
	const struct pen_dataset *data; /* has the words, */
	uint32_t field;			/* as labels of this field */
};

/* Creates the directory if necessary. Called before training, so that an output
 * that cannot be written is reported early. 0, or 1 after a line to stderr. */
int vectors_place(const char *dir);
/* Writes docs.npy, words.npy, out.npy and words.txt. 0, or 1 after a line to
 * stderr; then no partial file is left. */
int vectors_save(const struct vectors *);

#endif
