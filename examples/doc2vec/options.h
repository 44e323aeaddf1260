/* Options of doc2vec. */
#ifndef DOC2VEC_OPTIONS_H
#define DOC2VEC_OPTIONS_H

#include "model.h"
#include "penstock.h"

struct options {
	const char *vectors;		    /* output directory, or NULL */
	const char *labels, *save, *resume; /* files, or NULL */
	bool none, json, quiet;
	unsigned threads, dim, parts;
	uint64_t epochs, steps, seed, every;
	enum update update;
	double rate;
};

/* The defaults. */
void options_init(struct options *);
/* Returns 0, or the exit code after an error was printed; optind is then the
 * first path or setting. */
int options_parse(struct options *, int argc, char **argv, bool *help);
extern const char doc2vec_usage[];

/* Fills *err; returns code. */
int fail_at(struct pen_err *err, int code, const char *where, const char *fmt,
	    ...) __attribute__((format(printf, 4, 5)));
int fail_nomem(struct pen_err *err, const char *what_for);
int fail_sys(struct pen_err *err, const char *where); /* from errno */

#endif
