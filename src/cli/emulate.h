/* What the commands on workloads share: arguments, ranks, config, messages. */
#ifndef PEN_CLI_EMULATE_H
#define PEN_CLI_EMULATE_H

#include "cli/cli.h"
#include "emulate/run.h"

struct emulation {
	struct pen_settings set;
	struct pen_config c;
	struct pen_comm *comm;
	const char *name; /* the workload or file asked for */
};

/* Opens the ranks first, so that what all of them find wrong is said once.
 * An exit code, or -1. */
int emulation_init(struct emulation *);
void emulation_close(struct emulation *);
/* Each: an exit code when it went wrong (and said so), else -1. */
int emulation_arg(struct emulation *, const struct args *, int kind);
/* Workload and config; notes go to stderr once. */
int emulation_open(struct emulation *, const char *command);
/* workflow.query: prints one value. */
int emulation_query(const struct emulation *);
unsigned emulation_world(const struct emulation *);

#endif
