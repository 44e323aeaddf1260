/*
 * Experiments in which several do the same work, some in C and some in Python:
 * data that is made when none is given, Python, and the check of what every
 * variant delivered. A description says which there are, and that is all.
 */
#ifndef PEN_EXPERIMENT_PEERS_H
#define PEN_EXPERIMENT_PEERS_H

#include "experiment/harness.h"
#include "experiment/peer.h"

/* A variant with everything set. */
struct pen_point {
	bool python;
	bool shuffle, memory, has_workers;
	char path[4096];
	char load[40]; /* in words */
	uint64_t rows, cols, batch, workers, steps, cached;
	uint64_t length, block; /* arrays put together: no other work then */
	double load_s, compute_s;
	uint64_t want_samples;
	char want_sum[32];
};

struct pen_peers {
	bool looked; /* at Python */
	bool given;  /* data of the user's */
	bool others; /* Python has PyTorch, and the data does for it */
	bool module_there;
	char why[256]; /* not */
	uint64_t sum;  /* of the first batches of the user's data */
	struct pen_peer peer;
	char module[4096];
	struct pen_point *point; /* by a setup's value */
};

enum pen_who { PEN_IN_C, PEN_IN_PYTHON, PEN_MODULE }; /* ours, from Python */

/* Data of so many rows, unless the user gave some; fills path, rows, cols and
 * what is wanted of the point. */
int pen__peers_data(struct pen_run *, struct pen_point *, uint64_t rows,
		    struct pen_err *);
/* Adds a variant, unless Python has not what it takes. */
int pen__peers_add(struct pen_run *, const struct pen_point *, const char *name,
		   enum pen_who, struct pen_err *);

/* What all of them have in their descriptions. */
int pen__peers_open(struct pen_run *, struct pen_err *); /* before data */
int pen__peers_run(struct pen_run *, const struct pen_trial *,
		   struct pen_text *, struct pen_err *);
void pen__peers_head(struct pen_text *, const struct pen_run *,
		     const struct pen_setup *);
void pen__peers_describe(struct pen_run *, const struct pen_setup *,
			 struct pen_trial *);
void pen__peers_close(struct pen_run *);

#endif
