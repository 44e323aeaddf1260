/* Options of doc2vec. */
#ifndef DOC2VEC_OPTIONS_H
#define DOC2VEC_OPTIONS_H

#include "model.h"

struct options {
	const char *vectors; /* output directory, or NULL */
	bool none, json, quiet;
	unsigned threads, dim;
	uint64_t epochs, steps, seed;
	enum update update;
	double rate;
};

/* Returns 0, or the exit code after an error was printed; optind is then the
 * first path or setting. */
int options_parse(struct options *, int argc, char **argv, bool *help);
extern const char doc2vec_usage[];

/* Prints one line to stderr; returns 1. */
int fail(const char *where, const char *msg);

#endif
