/*
 * What the experiments of `penstock bench` share besides bench.h. An
 * experiment takes its arguments, lists its arms and runs one; repeats in
 * turns, --resume, the check that all delivered the same, table and words are
 * here, and so are data made on the spot, in a folder that is removed at the
 * end. Arms of other loaders are in peers.h.
 */
#ifndef PEN_CLI_ARMS_H
#define PEN_CLI_ARMS_H

#include "cli/bench.h"
#include "report/arms.h"

struct arms;

struct arm {
	const struct arms *of;
	char name[48], group[48];
	/* Arms with the same text have to deliver the same; "": none has. */
	char check[96];
	uint64_t value;	  /* of what is varied */
	uint64_t samples; /* of its data; 0: as bench.samples */
	int kind;	  /* the experiment's */
	bool lossy;	  /* of data made: delivers others than were made */
	bool as_it_is;	  /* whether cold or warm makes no difference */
	bool may_fail;	  /* the others go on */
};

struct setting {
	const char *key, *value;
};

struct arms {
	struct bench b;
	const struct command *cmd;
	const struct pen_kind *kind; /* without columns: no table at the end */
	/* An argument. EXIT code or -1. */
	int (*take)(struct arms *, struct args *, int kind);
	/* All arguments are known: opens the data, adds arms. EXIT or -1. */
	int (*prepare)(struct arms *);
	/* In a child: one arm (t->arg), its figures into j. */
	int (*run)(struct bench *, const struct trial *, struct pen_text *j,
		   struct pen_err *);
	/* May be NULL: what a row says of the setup; its title and text; a row
	 * that has come, to be printed at once; the end, instead of a table. */
	void (*head)(struct pen_text *, const struct trial *);
	void (*describe)(const struct arm *, struct trial *);
	void (*row)(struct arms *, const struct arm *, const struct pen_line *);
	int (*finish)(struct arms *);
	struct setting preset; /* unless an argument says otherwise */
	bool any_order;	       /* the sampler is the user's choice */

	struct arm *arm;
	size_t n;
	bool failed; /* one that may */
	/* Data made on the spot: */
	struct pen_fresh made;
	bool is_made;
	const char *shape, *dtype, *dir;
	char folder[3072]; /* "": there is none */
	char sum[24];	   /* of all samples, when made; "": not known */
};

#define ARMS_FLAGS                                                             \
	{ "--samples", "N", "without a PATH: make so many (default 10,000)" }, \
		{ "--shape", "SHAPE",                                          \
		  "of each, as 3x224x224 (default 32x32)" },                   \
		{ "--dtype", "TYPE",                                           \
		  "of its numbers, as NumPy names it (default float32)" },     \
		{ "--dir", "DIR",                                              \
		  "where the folder for it is made, and removed at the end "   \
		  "(default: $TMPDIR, or /tmp)" },                             \
		BENCH_FLAGS

/* The whole command: arguments, preparation, runs, table. The exit code. */
int arms_main(struct arms *, int argc, char **argv);
/* A flag of ARMS_FLAGS, a setting or the PATH. EXIT code or -1. */
int arms_arg(struct arms *, const struct args *, int kind);
/* "1,2,4" as counts; false: not that. At most `most` of them. */
bool arms_list(const char *text, uint64_t *v, size_t *n, size_t most);
/* Of what a flag chooses some by the beginning of their names. EXIT or -1. */
int arms_choose(const struct args *, const char *const *names, bool *chosen,
		int n);
/* Nothing chosen is everything. */
void arms_settle(bool *chosen, int n);
/* The folder, made when there is none yet. EXIT code or -1. */
int arms_folder(struct arms *);
/* What is to be made is settled; the folder is there. EXIT code or -1. */
int arms_made(struct arms *);
/* Looks at the data, or makes them: one npy file. EXIT code or -1. */
int arms_open(struct arms *);
/* Adds an arm; NULL: no memory, and it was said. */
struct arm *arms_add(struct arms *, const char *name, const char *group,
		     uint64_t value);

/* In a child: a copy of the spec, changed by these settings. */
int arms_spec(const struct bench *, const struct setting *, size_t n,
	      struct pen_spec **out, struct pen_err *);
/* Puts another path in place of the only one. */
int arms_path(struct pen_spec *, const char *path, struct pen_err *);
/* In a child: a pass as the trial says, with content summed up, into j. The
 * pass is the caller's to fini in any case. */
int arms_pass(struct bench *, const struct trial *, struct pen_pass *,
	      struct pen_text *j, struct pen_err *);
/* The same with nothing but settings. */
int arms_pass_with(struct bench *, const struct trial *, const struct setting *,
		   size_t n, struct pen_text *j, struct pen_err *);

#endif
