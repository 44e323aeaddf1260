/* A function or a program in a process of its own, run to its end. */
#ifndef PEN_EXPERIMENT_PROCESS_H
#define PEN_EXPERIMENT_PROCESS_H

#include <stdatomic.h>
#include <stdbool.h>

#include "base/text.h"

struct pen_process {
	int (*stop)(void *);	 /* other than 0: end it; may be NULL */
	void (*wait)(void *arg); /* called now and then; may be NULL */
	void *arg;
	int code; /* exit code; 128 + signal when one ended it */
	double real_s, user_s, system_s;
	uint64_t peak_bytes;
};

/*
 * argv ends with NULL; argv[0] "" is this program. What it prints goes to out.
 * An exit code other than 0 is an error of ours, with the last line the
 * program complained in.
 */
int pen__process_run(struct pen_process *, const char *const *argv,
		     struct pen_text *out, struct pen_err *err);
/* The same of one that prints a JSON document, which the caller closes. */
struct pen_doc;
int pen__process_doc(struct pen_process *, const char *const *argv,
		     struct pen_doc *, struct pen_err *);
/*
 * The function, in a plain fork: the caller has no threads. Its text goes to
 * out, its error is the caller's; PEN_ENOMEM without a message: the kernel
 * killed it. PEN_END: it was stopped.
 */
int pen__process_call(struct pen_process *, const char *name,
		      int (*fn)(void *, struct pen_text *, struct pen_err *),
		      void *arg, struct pen_text *out, struct pen_err *err);

/* Is this one that `run` takes, or else data, for `load`? */
bool pen__names_workload(const char *name);
/* The first of some places that is there, from this program's folder on; names
 * may be patterns. None is: false, and the last place. */
bool pen__beside(const char *const *places, char *path, size_t cap);
/* A folder and all in it, as far as that goes. */
void pen__remove_tree(const char *dir);

#endif
