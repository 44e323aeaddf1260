/*
 * One result to compare: every figure with its repeats, and the conditions.
 * Reads result.json of `run`, the output of `load --json`, and files of rows
 * (bench, sweep).
 */
#ifndef PEN_REPORT_SAMPLES_H
#define PEN_REPORT_SAMPLES_H

#include <stdbool.h>

#include "base/err.h"
#include "report/page.h"

struct pen_figure {
	char *name; /* "throughput" */
	struct pen_shown (*show)(double);
	const char *unit;
	bool less;   /* lower is better */
	bool within; /* repeats are parts of one run (epochs) */
	double *v;
	size_t n, cap;
};

/* A setting or a property of the machine, as text. */
struct pen_fact {
	char *key, *value;
	bool varies; /* differs between runs */
};

struct pen_samples {
	const char *name; /* its path */
	size_t nruns;
	bool partial;	/* a run was interrupted */
	double seconds; /* of all epochs, if known */
	struct pen_figure *figure;
	size_t nfigures, figures_cap;
	struct pen_fact *fact;
	size_t nfacts, facts_cap;
	bool nomem;
};

/* Reads a file, or a directory: every result.json below it is a repeat. */
int pen__samples_read(struct pen_samples *, const char *path, struct pen_err *);
void pen__samples_fini(struct pen_samples *);
const struct pen_figure *pen__samples_figure(const struct pen_samples *,
					     const char *name);
const struct pen_fact *pen__samples_fact(const struct pen_samples *,
					 const char *key);

#endif
