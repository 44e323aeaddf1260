/* What tune tries and what it found; its files share it. */
#ifndef PEN_CLI_TUNE_H
#define PEN_CLI_TUNE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "emulate/system.h"

#define TUNE_MOST 256
#define TUNE_ARGS 128
#define TUNE_SETTINGS 8
#define TUNE_RUNS 32
#define TUNE_LEAST 0.03 /* that is worth setting something for */

struct candidate {
	char set[TUNE_SETTINGS][64]; /* "threads=2" */
	size_t n;
	double rate[TUNE_RUNS]; /* of the last round on */
	size_t nruns;
	double median;
	bool is_default;
	bool alike; /* the best, or not to be told from it */
};

struct tune {
	const char *target;
	bool workload, cold, json, quiet, dry;
	const char *fixed[TUNE_ARGS]; /* arguments of all runs */
	size_t nfixed;
	double budget;
	struct candidate c[TUNE_MOST];
	size_t n;
	uint64_t start_ns, runs, failed;
	struct pen_others others;
	double epochs; /* of a run's second, for workloads */
	double over_s; /* of all runs: starting, opening, ending */
	double ramp_s; /* until the first batch is there, once open */
	double cached; /* share of the data in the page cache */
	/* where those leave their results: "output.folder=" and a path */
	char folder[4096];
	char why[256]; /* the last run that failed, */
	int code;      /* and its exit code */
};

/* tune_plan.c: candidates, the defaults first; what is given stays. */
void tune_plan(struct tune *);
/* Leaves out candidates with this setting. */
void tune_leave_out(struct tune *, const char *setting);

/* tune_print.c. "threads=2 store=posix", or "defaults" */
const char *tune_name(const struct candidate *);
/* Of the first n, which were the last ones in. */
struct candidate *tune_default(struct tune *, size_t n); /* NULL: not there */
/* Beyond noise, and not by a little? */
bool tune_better(const struct candidate *, const struct candidate *dflt);
int tune_print(struct tune *, size_t n);
int tune_print_plan(const struct tune *);

#endif
