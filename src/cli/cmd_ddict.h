/* Shared by the ddict subcommands: settings, ranks, the table. */
#ifndef PEN_CLI_CMD_DDICT_H
#define PEN_CLI_CMD_DDICT_H

#include "cli/cli.h"
#include "comm/comm.h"
#include "penstock.h"

#define DICT_SETTINGS 32

struct dict {
	struct pen_ranks *ranks;
	struct pen_comm *comm; /* of ranks */
	struct pen_ddict *d;
	const char *set[DICT_SETTINGS]; /* as in argv */
	uint32_t nset;
};

/* Adds a setting of the dictionary. Exit code or -1. */
int dict_setting(struct dict *, const char *setting);
/* Opens the ranks, then the dictionary over them; only rank 0 prints errors.
 * Exit code or -1. The caller closes in either case. */
int dict_ranks(struct dict *);
int dict_open(struct dict *);
/* Collective: all ranks end with the error of one. Exit code or -1. */
int dict_agree(struct dict *, int rc, struct pen_err *err);
void dict_close(struct dict *);

/* One line per shard, or a JSON array named shards. */
int dict_table(struct pen_ddict *, struct pen_err *err);
int dict_json(struct pen_text *, struct pen_ddict *, struct pen_err *err);

extern const struct command pen__cmd_ddict_bench, pen__cmd_ddict_load;

#endif
