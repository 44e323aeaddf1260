/* A pass over a data set: what load measures, and how its ranks add it up. */
#ifndef PEN_CLI_LOAD_H
#define PEN_CLI_LOAD_H

#include "cli/cli.h"
#include "cli/live.h"
#include "comm/comm.h"
#include "engine/loader.h"
#include "store/tier.h"

struct epoch {
	double seconds;
	uint64_t samples, bytes;
};

struct cache { /* of all ranks */
	bool on;
	struct pen_tier_stats s;
	uint64_t held_bytes; /* each once, however many replicas there are */
	double hit_rate, held_share; /* of bytes */
	char how[256];
};

struct run {
	struct pen_loader *l;
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
	struct pen_comm *comm;	/* NULL: alone */
	struct pen_stats stats; /* of all ranks; times and limits of ours */
	struct cache cache;
};

/* cache=ddict: opens the ranks that mpirun or srun started. EXIT code or -1 */
int load_ranks(struct run *, struct pen_spec *);
/* Collective: every rank's rc and figures; rank 0 has the sums. */
int load_sum(struct run *, int rc, struct pen_err *err);
/* load_json.c: the result, to a file or (NULL) standard output; EXIT code. */
int load_json(const char *path, const struct run *);
/* The same of a run that was interrupted while it still indexed. */
int load_json_unopened(const char *path, const struct pen_spec *,
		       double open_s);
double per_second(double n, double s);
/* What bytes come from in the end; a cache over it has figures of its own. */
const char *load_store(const struct run *);
/* How even batches come, p99 over p50: a stall shows in the slowest ones. */
double load_unevenness(const struct run *);

void load_cache_json(struct pen_text *, const struct run *);
void load_cache_print(const struct run *);

#endif
