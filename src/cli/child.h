/* Another program, or this one with other arguments, run to its end. */
#ifndef PEN_CLI_CHILD_H
#define PEN_CLI_CHILD_H

#include <stdbool.h>

#include "base/text.h"

struct child {
	int code; /* exit code; 128 + signal when one ended it */
	double real_s, user_s, system_s;
	uint64_t peak_bytes;
};

/*
 * argv ends with NULL; argv[0] "" is this program. What it prints goes to out.
 * An exit code other than 0 is an error of ours, with the last line the
 * program complained in.
 */
int child_run(const char *const *argv, struct pen_text *out, struct child *,
	      struct pen_err *err);

/* Is this one that `run` takes, or else data, for `load`? */
bool names_workload(const char *name);

/* A folder and all in it, as far as that goes. */
void remove_tree(const char *dir);

#endif
