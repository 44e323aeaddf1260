/* Runs a function or a program in a separate process. */
#ifndef PEN_EXPERIMENT_PROCESS_H
#define PEN_EXPERIMENT_PROCESS_H

#include <stdatomic.h>
#include <stdbool.h>

#include "base/text.h"

struct pen_process {
	int (*stop)(void *);	 /* not 0: end it; may be NULL */
	void (*wait)(void *arg); /* called periodically; may be NULL */
	void *arg;
	int code; /* exit code; 128 + signal if killed by one */
	double real_s, user_s, system_s;
	uint64_t peak_bytes;
};

/*
 * argv ends with NULL; argv[0] "" is this program. Its output goes to out. A
 * non-zero exit code is an error, with the last line of its standard error.
 */
int pen__process_run(struct pen_process *, const char *const *argv,
		     struct pen_text *out, struct pen_err *err);
/* The same for a program that prints a JSON document; the caller closes it. */
struct pen_doc;
int pen__process_doc(struct pen_process *, const char *const *argv,
		     struct pen_doc *, struct pen_err *);
/*
 * Runs a function in a fork; the caller must not have threads. Its text goes to
 * out and its error to err. PEN_ENOMEM without a message: killed by the kernel.
 * PEN_END: stopped.
 */
int pen__process_call(struct pen_process *, const char *name,
		      int (*fn)(void *, struct pen_text *, struct pen_err *),
		      void *arg, struct pen_text *out, struct pen_err *err);

/* Whether this is a workload for `run`, not data for `load`. */
bool pen__names_workload(const char *name);
/* The first path that exists, relative to the directory of this program;
 * patterns are allowed. None: false, and the last one. */
bool pen__beside(const char *const *places, char *path, size_t cap);
/* Removes a directory tree; ignores errors. */
void pen__remove_tree(const char *dir);

#endif
