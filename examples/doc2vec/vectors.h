/* What was learnt, as files. */
#ifndef DOC2VEC_VECTORS_H
#define DOC2VEC_VECTORS_H

#include "model.h"
#include "penstock.h"

struct vectors {
	const char *dir;
	const struct model *model;
	const struct pen_dataset *data; /* knows the words, */
	uint32_t field;			/* by this field */
};

/* Makes the directory unless it is there. Learning takes long: what cannot be
 * written to is said before. 0, or 1 after a line to stderr. */
int vectors_place(const char *dir);
/* docs.npy, words.npy, out.npy and words.txt. 0, or 1 after a line to stderr,
 * and then nothing half-written is there. */
int vectors_save(const struct vectors *);

#endif
