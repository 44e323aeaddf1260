/* Internal to the command simulate. */
#ifndef PEN_CLI_CMD_SIMULATE_H
#define PEN_CLI_CMD_SIMULATE_H

#include "cli/cli.h"
#include "simulate/simulate.h"

#define SIM_MOST_ARGS 128
#define SIM_MOST_FILES 16
#define SIM_MOST_SETTINGS 40

/* Settings as given; see pen__sim_opts. */
struct sim_settings {
	struct pen_opt_list nodes;
	uint64_t ranks, samples, steps, sample_bytes, batch, epochs, skip;
	uint64_t compute, compute_stdev, sync, gradients;
	uint64_t threads, ahead, depth, at_once;
	double cores, spread, reads, seconds;
	uint64_t data;
	uint64_t cpu_load, cpu_hit, cpu_put, cpu_ask, cpu_serve;
	char *network, *storage, *client, *copy;
	int cache;
	uint64_t memory, fan, seed;
	bool barrier;
};

#define SIM_PARTS 3 /* measurements: their spread is that of the answer */

/* Figures of one run of `load`. */
struct sim_part {
	double samples_per_s, read_rate;
	double cpu_load; /* seconds of CPU per sample */
	double latency;	 /* of a read, as the threads see it */
};

/* The measurement of data on this machine, in parts, the slowest first. */
struct sim_measured {
	struct sim_part part[SIM_PARTS];
	unsigned n, mid; /* mid: the median */
	double seconds, samples, read_bytes;
	double cached;	     /* share from the page cache; NAN: unknown */
	double stored_bytes; /* of a sample */
	bool by_rate; /* bandwidth of storage was the limit, not latency */
	bool starved; /* of CPU, by other processes */
	bool given;   /* storage= or client= replaces what was measured */
	char why[1600];
};

struct sim_ask {
	const char *path;		     /* to be measured, or NULL */
	const char *load_arg[SIM_MOST_ARGS]; /* settings of its loader */
	unsigned nload;
	bool quiet;
	struct sim_measured measured;
	struct sim_settings s;
	const char *from[SIM_MOST_SETTINGS]; /* the source of each setting */
	const char *workload;		     /* as given, or NULL */
	const char *file[SIM_MOST_FILES];
	unsigned nfiles;
	const char *arg[SIM_MOST_ARGS]; /* key=value, of pen__sim_opts */
	unsigned nargs;
	struct pen_sim m; /* without nodes, steps and sync */
	struct pen_text notes;
};

extern const struct pen_opt pen__sim_opts[];

struct pen_settings;
/* Applies defaults, the workload, measurements and arguments, in this order,
 * and fills in the model. Exit code or -1. */
int sim_resolve(struct sim_ask *, struct pen_settings *);
void sim_ask_fini(struct sim_ask *);
/* The model for a number of nodes. false: the data has less than one step. */
bool sim_of(const struct sim_ask *, uint64_t nodes, struct pen_sim *);
/* "given", "assumed", the name of a file... */
const char *sim_from(const struct sim_ask *, const char *name);

/* --- for the sources of settings --- */

void sim_say(struct sim_ask *, const char *name, const char *from);
bool sim_assumed(const struct sim_ask *, const char *name);
uint64_t sim_ns(double seconds); /* negative becomes 0 */
/* Takes the measurements of `load` or `ddict bench`. Exit code or -1. */
int sim_take_file(struct sim_ask *, const char *path);
struct pen_doc;
int sim_take_load(struct sim_ask *, const struct pen_doc *);
/* simulate_measure.c: runs `load` on the path. Exit code or -1. */
int sim_measure(struct sim_ask *);
/* Is this argument data to be measured, and not a workload? */
bool sim_is_data(const char *arg);
/* The model as one part was measured. */
void sim_use_part(const struct sim_ask *, unsigned part, struct pen_sim *);

#endif
