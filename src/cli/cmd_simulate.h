/* Between the files of the command simulate. */
#ifndef PEN_CLI_CMD_SIMULATE_H
#define PEN_CLI_CMD_SIMULATE_H

#include "cli/cli.h"
#include "simulate/simulate.h"

#define SIM_MOST_ARGS 128
#define SIM_MOST_FILES 16
#define SIM_MOST_SETTINGS 40

/* Settings as written, see pen__sim_opts. */
struct sim_settings {
	struct pen_opt_list nodes;
	uint64_t ranks, samples, steps, sample_bytes, batch, epochs, skip;
	uint64_t compute, compute_stdev, sync, gradients;
	uint64_t threads, ahead, depth, at_once;
	double cores, spread, reads;
	uint64_t cpu_load, cpu_hit, cpu_put, cpu_ask, cpu_serve;
	char *network, *storage, *client, *copy;
	int cache;
	uint64_t memory, fan, seed;
	bool barrier;
};

struct sim_ask {
	struct sim_settings s;
	const char *from[SIM_MOST_SETTINGS]; /* each: who said so */
	const char *workload;		     /* as asked for; or NULL */
	const char *file[SIM_MOST_FILES];
	unsigned nfiles;
	const char *arg[SIM_MOST_ARGS]; /* key=value, of the settings above */
	unsigned nargs;
	struct pen_sim m; /* but for nodes, steps and sync */
	struct pen_text notes;
};

extern const struct pen_opt pen__sim_opts[];

struct pen_settings;
/* Defaults, then the workload, what was measured, the arguments; then all of
 * it as the model takes it. Exit code or -1. */
int sim_resolve(struct sim_ask *, struct pen_settings *);
void sim_ask_fini(struct sim_ask *);
/* The model of so many nodes. false: the data has no full step for them. */
bool sim_of(const struct sim_ask *, uint64_t nodes, struct pen_sim *);
/* "given", "assumed", the name of a file... */
const char *sim_from(const struct sim_ask *, const char *name);

/* --- for files that set some of it --- */

void sim_say(struct sim_ask *, const char *name, const char *from);
bool sim_assumed(const struct sim_ask *, const char *name);
uint64_t sim_ns(double seconds); /* none below 0 */
/* What `load` or `ddict bench` measured. Exit code or -1. */
int sim_take_file(struct sim_ask *, const char *path);

#endif
