/* The command load: measurements of a pass over a data set, and their sums over
 * ranks. */
#ifndef PEN_CLI_LOAD_H
#define PEN_CLI_LOAD_H

#include "cli/cli.h"
#include "cli/live.h"
#include "comm/comm.h"
#include "verdict/verdict.h"

struct epoch {
	double seconds, cpu_s;
	uint64_t samples, bytes;
};

struct cache { /* sums over all ranks */
	bool on;
	uint64_t hits, hit_bytes;   /* reads answered from memory */
	uint64_t reads, read_bytes; /* by the store beneath */
	bool full;
	uint64_t held_bytes;	     /* counting replicas once */
	double hit_rate, held_share; /* by bytes */
	char how[256];
};

struct run {
	struct pen_loader *l;
	struct pen_loader_info info; /* after opening */
	struct pen_dataset_info data;
	struct epoch *epoch;
	size_t nepochs;
	double seconds, cpu_s; /* iterating, excluding opening */
	uint64_t sum;	       /* of the samples, with --checksum */
	uint64_t max_batches;
	double max_seconds;
	bool checksum, json, quiet, drop, partial, quality;
	const char *out, *label;
	struct pen_quality *q;
	struct live live;
	struct pen_ranks *ranks; /* NULL: a single process */
	struct pen_comm *comm;	 /* of ranks */
	bool ranked;		 /* rank= or world= is set */
	struct pen_stats
		stats; /* sums over all ranks; times and limits of this one */
	struct cache cache;
	struct pen_facts facts; /* of all ranks, while batches were consumed */
	struct pen_verdict why; /* rank 0 */
};

/* Opens the ranks that mpirun or srun started. Exit code or -1. */
int load_ranks(struct run *, struct pen_spec *);
/* Collective: combines rc and figures of all ranks; rank 0 gets the sums. */
int load_sum(struct run *, int rc, struct pen_err *err);
/* load_json.c: writes the result to a file or, if NULL, to standard output.
 * Exit code. */
int load_json(const char *path, const struct run *);
/* The same for a run that was interrupted while indexing. */
int load_json_unopened(const char *path, const struct pen_spec *,
		       double open_s);
double per_second(double n, double s);
/* p99 over p50 of the waits: shows how evenly batches arrive. */
double load_unevenness(const struct run *);

/* load_why.c: facts for the verdict, and its sentences. */
void load_facts_start(struct run *);
void load_facts_end(struct run *);
void load_words(const struct run *);

void load_cache_json(struct pen_text *, const struct run *);
void load_cache_print(const struct run *);

#endif
