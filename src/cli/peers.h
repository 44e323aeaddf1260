/*
 * What those experiments of `penstock bench` share in which several arms do
 * the same work, some in C and some in Python: flags, data that is made when
 * none is given, Python, and the check of what every arm delivered. An
 * experiment says which arms there are, and that is all; arms.h does the rest.
 */
#ifndef PEN_CLI_PEERS_H
#define PEN_CLI_PEERS_H

#include "cli/arms.h"
#include "experiment/peer.h"

#define PEER_VALUES 16 /* of one variable */

struct peer_list {
	double v[PEER_VALUES];
	size_t n;
};

/* An arm with everything set. */
struct peer_point {
	bool python, own; /* own: the penstock module, too */
	bool shuffle, memory, has_workers;
	char path[4096];
	char load[40]; /* in words */
	uint64_t rows, cols, batch, workers, steps, cached;
	uint64_t length, block; /* arrays put together: no other work then */
	double load_s, compute_s;
	uint64_t want_samples;
	char want_sum[32];
};

struct peers {
	struct arms a;
	int (*add)(struct peers *); /* all arms. EXIT code or -1 */
	const char *python;
	struct peer_list load, compute, workers, rows, length; /* s, not ms */
	uint64_t batch, steps, cols, block, cached;
	bool shuffle;
	/* found and made */
	bool looked; /* at Python */
	bool given;  /* data of the user's */
	bool others; /* Python has PyTorch, and the data does for it */
	struct pen_peer peer;
	struct pen_answer has;
	char module[4096];
	struct peer_point *point; /* by an arm's value */
};

#define PEERS_FLAGS                                                            \
	{ "-o", "FILE", "where rows are added, one a run (JSON lines)" },      \
		{ "-M", "KEY=VALUE", "metadata for every row; repeatable" },   \
		{ "--repeats", "N",                                            \
		  "runs of each arm, in turns (default 3)" },                  \
		{ "--python", "EXE",                                           \
		  "Python that has PyTorch (default /usr/bin/python3)" },      \
		{ "--resume", NULL, "leave out what the file has rows of" },   \
		{ "--json", NULL, "print the rows instead of a table" },       \
	{                                                                      \
		"--quiet", NULL, "no progress line"                            \
	}

/* The whole command; defaults are in it. The exit code. */
int peers_main(struct peers *, const struct command *, const struct pen_kind *,
	       int argc, char **argv);
/* Data of so many rows, unless the user gave some; fills path, rows, cols and
 * what is wanted of the point. EXIT code or -1. */
int peers_data(struct peers *, struct peer_point *, uint64_t rows);
/* Adds an arm, unless Python has not what it takes. EXIT code or -1. */
int peers_add(struct peers *, const struct peer_point *, const char *name);
int peers_add_python(struct peers *, const struct peer_point *,
		     const char *name, bool own);

#endif
