/* What doc2vec is asked to do. */
#ifndef DOC2VEC_OPTIONS_H
#define DOC2VEC_OPTIONS_H

#include "model.h"

struct options {
	const char *vectors; /* directory to write to, or NULL */
	bool none, json, quiet;
	unsigned threads, dim;
	uint64_t epochs, steps, seed;
	enum update update;
	double rate;
};

/* 0, or the exit code of a line that was printed; optind is where paths and
 * settings begin. */
int options_parse(struct options *, int argc, char **argv, bool *help);
extern const char doc2vec_usage[];

/* One line to stderr; 1. */
int fail(const char *where, const char *msg);

#endif
