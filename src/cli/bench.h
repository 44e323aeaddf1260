/*
 * What the experiments of `penstock bench` share: flags, the data described,
 * trials in processes of their own, rows added to a file of results. One file
 * an experiment; bench.c has the table of them.
 */
#ifndef PEN_CLI_BENCH_H
#define PEN_CLI_BENCH_H

#include <stdatomic.h>

#include "cli/cli.h"
#include "emulate/system.h"
#include "experiment/experiment.h"
#include "report/lines.h"

extern const struct command pen__bench_blocks, pen__bench_chunks,
	pen__bench_prefetch, pen__bench_batch_size, pen__bench_formats,
	pen__bench_shuffle, pen__bench_startup, pen__bench_resume,
	pen__bench_mmap, pen__bench_neighbour;
extern const struct command pen__bench_overlap, pen__bench_workers,
	pen__bench_iterate, pen__bench_prealloc, pen__bench_memory,
	pen__bench_headspace;

/* What a child tells while it runs. */
struct trial_watch {
	atomic_uint_fast64_t done, total;
};

struct bench {
	struct pen_spec *spec;		/* path and settings of the loader */
	struct pen_text settings, meta; /* as given; meta: key NUL value NUL */
	const char *out;
	char path[4096];
	bool resume, quiet, json, cold, warm, made;
	bool any_order; /* the sampler is the user's choice */
	uint64_t repeats, batches;
	struct pen_lines rows; /* --resume: that were there; and new ones */
	struct pen_host host;
	/* the data */
	char format[64];
	double bytes, samples, objects, ncols;
	bool has_output; /* format.output=dense|csr: cells */
	/* trials */
	struct trial_watch *watch;
	uint64_t start_ns, ntrials, at, nskipped, nadded;
};

/* One run. */
struct trial {
	char setup[1024]; /* what is run, in full: the same text, the same run
			   */
	char title[128];
	bool cold;
	unsigned repeat;
	/* What the row says of the setup, in the parent or the child. */
	void (*head)(struct pen_text *, const struct trial *);
	/* In the child: runs, and adds figures. */
	int (*run)(struct bench *, const struct trial *, struct pen_text *,
		   struct pen_err *);
	const void *arg;
};

#define BENCH_FLAGS                                                            \
	{ "-o", "FILE", "where rows are added, one a run (JSON lines)" },      \
		{ "-M", "KEY=VALUE", "metadata for every row; repeatable" },   \
		{ "-n", "N", "stop a run after N batches" },                   \
		{ "--cold", NULL,                                              \
		  "drop the files from the page cache before each run, and "   \
		  "say "                                                       \
		  "whether that worked" },                                     \
		{ "--warm", NULL,                                              \
		  "read the files into the page cache first (the default); "   \
		  "with "                                                      \
		  "--cold: both" },                                            \
		{ "--repeats", "N",                                            \
		  "runs of each setting, in turns (default 1)" },              \
		{ "--resume", NULL, "leave out what the file has rows of" },   \
		{ "--json", NULL, "print the rows instead of a table" },       \
	{                                                                      \
		"--quiet", NULL, "no progress line"                            \
	}

int bench_init(struct bench *, const char *out);
/* A common flag or a setting. EXIT code or -1. */
int bench_arg(struct bench *, const struct args *, int kind);
/* The path is known: looks at the data and the file of rows. EXIT or -1. */
int bench_open(struct bench *);
/* The file of rows alone, where the experiment makes its data. */
int bench_open_rows(struct bench *);
void bench_close(struct bench *);
/* Describes the text of a setup: what all experiments have in common. */
void bench_setup(const struct bench *, struct trial *, const char *experiment,
		 const char *fmt, ...) __attribute__((format(printf, 4, 5)));
/* Sets one more of the loader's settings in a copy of the spec. */
int bench_set(struct pen_spec *, const char *key, uint64_t value,
	      struct pen_err *);

/*
 * Runs a trial in a process of its own and adds its row to the file. -1: done,
 * and *row is it (to be freed), or it was left out and row->n is 0. Else the
 * EXIT code. A child that ran out of memory leaves a row with oom=true.
 */
int bench_trial(struct bench *, const struct trial *, struct pen_line *row);
/* Runs fn in a child, for its text; EXIT code or -1. *oom: it was killed, or
 * ran out of memory. */
int trial_run(struct bench *, const struct trial *, struct pen_text *,
	      bool *oom);
/* The same for a text that is an object; out of memory ends it all. */
int trial_row(struct bench *, const struct trial *, struct pen_line *);
/* Ends a line of the table: says when a run that should be cold was not. */
void bench_print_end(const struct pen_line *);
/* The end of all: what was left out, where the rows are. */
int bench_end(struct bench *, int rc);

#endif
