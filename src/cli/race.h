/*
 * What those experiments of `penstock bench` share in which several arms do
 * the same work, some in C and some in Python: flags, data that is made when
 * none is given, runs in turns, the check of what every arm delivered, the
 * table. An experiment says which arms there are, and that is all.
 */
#ifndef PEN_CLI_RACE_H
#define PEN_CLI_RACE_H

#include "cli/bench.h"
#include "experiment/peer.h"

#define RACE_VALUES 16 /* of one variable */

struct race_list {
	double v[RACE_VALUES];
	size_t n;
};

/* An arm with everything set. */
struct race_point {
	char arm[40];
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

struct race {
	struct bench b;
	const struct command *cmd;
	const char *name; /* of the experiment */
	const char *python;
	struct race_list load, compute, workers, rows, length; /* s, not ms */
	uint64_t batch, steps, cols, block, cached;
	bool shuffle;
	/* found and made */
	bool looked; /* at Python */
	bool given;  /* data of the user's */
	bool peers;  /* Python has PyTorch, and the data does for it */
	struct pen_peer peer;
	struct pen_answer has;
	char module[4096], out[64], made_dir[256];
	struct race_point *point;
	size_t npoints;
	struct pen_lines results;
	bool wrong, failed;
};

#define RACE_FLAGS                                                             \
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

/* Defaults are in r; reads the arguments, looks at the data. EXIT or -1. */
int race_open(struct race *r, const struct command *cmd, int argc, char **argv);
/* Data of so many rows, unless the user gave some; fills path, rows, cols and
 * what is wanted of the point. EXIT code or -1. */
int race_data(struct race *r, struct race_point *p, uint64_t rows);
/* Adds an arm, unless Python has not what it takes. EXIT code or -1. */
int race_add(struct race *r, const struct race_point *p, const char *arm);
int race_add_python(struct race *r, const struct race_point *p, const char *arm,
		    bool own);
/* Runs all, prints, and closes; rc: what came before. The EXIT code. */
int race_end(struct race *r, int rc);
/* Puts values where none were given. */
void race_default(struct race_list *, const double *v, size_t n);

#endif
