/* Shared by the commands on workloads: arguments, ranks, config, messages. */
#ifndef PEN_CLI_EMULATE_H
#define PEN_CLI_EMULATE_H

#include "cli/cli.h"
#include "emulate/run.h"

struct emulation {
	struct pen_settings set;
	struct pen_config c;
	struct pen_comm *comm;
	const char *name; /* the workload or file given */
};

/* Opens the ranks first, so that an error common to all is printed once. Exit
 * code or -1. */
int emulation_init(struct emulation *);
void emulation_close(struct emulation *);
/* These print an error and return an exit code, or return -1 on success. */
int emulation_arg(struct emulation *, const struct args *, int kind);
/* Loads workload and config; prints notes to stderr once. */
int emulation_open(struct emulation *, const char *command);
/* workflow.query: prints one value. */
int emulation_query(const struct emulation *);
unsigned emulation_world(const struct emulation *);

#endif
