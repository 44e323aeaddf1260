/* A pass over a data set: what load measures, and how its ranks add it up. */
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

struct cache { /* of all ranks */
	bool on;
	uint64_t hits, hit_bytes;   /* reads answered out of memory */
	uint64_t reads, read_bytes; /* by the store beneath */
	bool full;
	uint64_t held_bytes; /* each once, however many replicas there are */
	double hit_rate, held_share; /* of bytes */
	char how[256];
};

struct run {
	struct pen_loader *l;
	struct pen_loader_info info; /* after it was opened */
	struct pen_dataset_info data;
	struct epoch *epoch;
	size_t nepochs;
	double seconds, cpu_s; /* iterating, without opening */
	uint64_t sum;	       /* of the content, with --checksum */
	uint64_t max_batches;
	double max_seconds;
	bool checksum, json, quiet, drop, partial, quality;
	const char *out, *label;
	struct pen_quality *q;
	struct live live;
	struct pen_ranks *ranks; /* NULL: alone */
	struct pen_comm *comm;	 /* theirs */
	bool ranked;		 /* rank= or world= was given */
	struct pen_stats stats;	 /* of all ranks; times and limits of ours */
	struct cache cache;
	struct pen_facts facts; /* of all ranks, while batches were taken */
	struct pen_verdict why; /* rank 0 */
};

/* Opens the ranks that mpirun or srun started. EXIT code or -1 */
int load_ranks(struct run *, struct pen_spec *);
/* Collective: every rank's rc and figures; rank 0 has the sums. */
int load_sum(struct run *, int rc, struct pen_err *err);
/* load_json.c: the result, to a file or (NULL) standard output; EXIT code. */
int load_json(const char *path, const struct run *);
/* The same of a run that was interrupted while it still indexed. */
int load_json_unopened(const char *path, const struct pen_spec *,
		       double open_s);
double per_second(double n, double s);
/* How even batches come, p99 over p50: a stall shows in the slowest ones. */
double load_unevenness(const struct run *);

/* load_why.c: what is recorded for the verdict, and its words. */
void load_facts_start(struct run *);
void load_facts_end(struct run *);
void load_words(const struct run *);

void load_cache_json(struct pen_text *, const struct run *);
void load_cache_print(const struct run *);

#endif
