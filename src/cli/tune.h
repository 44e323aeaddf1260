/* Candidates and results of tune; internal to its files. */
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
#define TUNE_LEAST 0.03 /* smaller gains are not worth a setting */

struct candidate {
	char set[TUNE_SETTINGS][64]; /* "threads=2" */
	size_t n;
	double rate[TUNE_RUNS]; /* from the last round on */
	size_t nruns;
	double median;
	bool is_default;
	bool alike; /* the best, or indistinguishable from it */
};

struct tune {
	const char *target;
	bool workload, cold, json, quiet, dry;
	const char *fixed[TUNE_ARGS]; /* arguments common to all runs */
	size_t nfixed;
	double budget;
	struct candidate c[TUNE_MOST];
	size_t n;
	uint64_t start_ns, runs, failed;
	struct pen_others others;
	double epochs; /* per second of a run, for workloads */
	double over_s; /* overhead of all runs: starting, opening, ending */
	double ramp_s; /* from opening to the first batch */
	double cached; /* share of the data in the page cache */
	/* for results of workloads: "output.folder=" and a path */
	char folder[4096];
	char why[256]; /* the last run that failed, */
	int code;      /* its exit code, */
	int number;    /* and that of its error */
};

/* tune_plan.c: lists the candidates, defaults first; given settings are kept.
 */
void tune_plan(struct tune *);
/* Drops the candidates with this setting. */
void tune_leave_out(struct tune *, const char *setting);

/* tune_print.c. "threads=2 store=posix", or "defaults" */
const char *tune_name(const struct candidate *);
/* Among the first n candidates, the finalists. */
struct candidate *tune_default(struct tune *,
			       size_t n); /* NULL: not among them */
/* Better beyond noise, and by more than TUNE_LEAST? */
bool tune_better(const struct candidate *, const struct candidate *dflt);
int tune_print(struct tune *, size_t n);
int tune_print_plan(const struct tune *);

#endif
