/*
 * The harness of all experiments. An experiment is a description: its words,
 * its flags, which variants of what it runs, and how rows of it are shown.
 * Flags and settings, data made on the spot, trials in processes of their own
 * and in turns, warming up, --resume, rows and what has to come of a pass are
 * here. Nothing here prints: what people are to see goes through callbacks.
 */
#ifndef PEN_EXPERIMENT_HARNESS_H
#define PEN_EXPERIMENT_HARNESS_H

#include "emulate/system.h"
#include "experiment/experiment.h"
#include "experiment/process.h"
#include "report/variants.h"

struct pen_run;
struct pen_trial;

/* ---- descriptions ---- */

#define PEN_MOST_VALUES 64

enum pen_takes {
	PEN_TAKES_NOTHING,
	PEN_TAKES_TEXT,
	PEN_TAKES_COUNTS, /* "1,2,10k" */
	PEN_TAKES_MS,	  /* "5,50", as seconds */
	PEN_TAKES_TIME,	  /* "5ms" */
	PEN_TAKES_SIZES,  /* "64MB,1GiB" */
	PEN_TAKES_NAMES,  /* as places in names: "raw,csr", or their beginnings;
			     may be given again */
	PEN_TAKES_ANY,	  /* the experiment's take() has it */
};
struct pen_flag {
	const char *name, *arg, *help;
	enum pen_takes takes;
	const char *preset; /* as if it were given; NULL: nothing */
	double least, most;
	size_t many; /* values */
	const char *const *names;
};
#define PEN_FLAG(name, arg, help, takes)                                       \
	{                                                                      \
		name, arg, help, takes, NULL, 0, 0, 1, NULL                    \
	}
#define PEN_SWITCH(name, help) PEN_FLAG(name, NULL, help, PEN_TAKES_NOTHING)
#define PEN_TEXT(name, arg, help) PEN_FLAG(name, arg, help, PEN_TAKES_TEXT)
#define PEN_COUNT(name, help, preset, most)                                    \
	{                                                                      \
		name, "N", help, PEN_TAKES_COUNTS, preset, 1, most, 1, NULL    \
	}
#define PEN_LIST(name, arg, help, preset, least, most)                         \
	{                                                                      \
		name, arg, help, PEN_TAKES_COUNTS, preset, least, most,        \
			PEN_MOST_VALUES, NULL                                  \
	}
#define PEN_MS(name, arg, help, preset)                                        \
	{                                                                      \
		name, arg, help, PEN_TAKES_MS, preset, 0, 1e5,                 \
			PEN_MOST_VALUES, NULL                                  \
	}
#define PEN_NAMES(name, arg, help, names)                                      \
	{                                                                      \
		name, arg, help, PEN_TAKES_NAMES, NULL, 0, 0, PEN_MOST_VALUES, \
			names                                                  \
	}
#define PEN_FLAGS_END PEN_FLAG(NULL, NULL, NULL, PEN_TAKES_NOTHING)

/* What a flag was given. */
struct pen_taken {
	double v[PEN_MOST_VALUES];
	size_t n;
	const char *text; /* as given last, or the preset; NULL: neither */
};

/* Flags that several have. */
enum {
	PEN_HAS_PASS = 1,  /* how a pass over data is run: -n, --cold ... */
	PEN_HAS_MADE = 2,  /* data made on the spot: --samples, --shape ... */
	PEN_HAS_PEERS = 4, /* other loaders: --python */
	PEN_HAS_SPEC = 8,  /* settings of a loader */
	PEN_HAS_OWN = 16,  /* none but its own */
};

struct pen_setup;
struct pen_experiment {
	struct pen_kind kind; /* its name, and how rows of it are shown */
	const char *args, *summary, *about;
	const char *const *examples;
	const struct pen_flag *flags; /* its own */
	unsigned has;
	/* Pairs, NULL at the end: a flag or "key=" (also "key*=", all that
	 * begin so) that is no choice of the user's, and why. */
	const char *const *refuses;
	const char *preset[2]; /* a setting, unless one is given */
	const char *shape;     /* of data made; NULL: 32x32 */
	size_t own;	       /* bytes of a state of its own */
	/* All arguments are known: opens the data, adds setups. */
	int (*prepare)(struct pen_run *, struct pen_err *);
	/* In a child: one setup, its figures into j. */
	int (*run)(struct pen_run *, const struct pen_trial *,
		   struct pen_text *j, struct pen_err *);
	/* The rest may be NULL. A setting, a path (key NULL), or a flag that is
	 * left to it; 1: it is as any other. */
	int (*take)(struct pen_run *, const char *key, const char *value,
		    struct pen_err *);
	void (*head)(struct pen_text *, const struct pen_run *,
		     const struct pen_setup *); /* what a row says of it */
	void (*describe)(struct pen_run *, const struct pen_setup *,
			 struct pen_trial *); /* title, and text of the setup */
	/* A table as it goes: columns "title=key:width", and by what a row that
	 * has come is wrong. */
	const char *live;
	bool (*check)(struct pen_run *, const struct pen_setup *,
		      const struct pen_line *, struct pen_text *why);
	/* All runs are there: what to say, before the table. */
	int (*finish)(struct pen_run *, struct pen_text *, struct pen_err *);
	void (*close)(struct pen_run *);
};
extern const struct pen_experiment *const pen__experiments[]; /* NULL ends */
extern const struct pen_experiment pen__exp_blocks, pen__exp_read_chunks,
	pen__exp_prefetch, pen__exp_batch_size, pen__exp_formats,
	pen__exp_shuffle, pen__exp_startup, pen__exp_resume, pen__exp_mmap,
	pen__exp_neighbour, pen__exp_overlap, pen__exp_workers,
	pen__exp_iterate, pen__exp_prealloc, pen__exp_memory,
	pen__exp_headspace, pen__exp_dna;
extern const struct pen_experiment pen__exp_sweep; /* a command of its own */
/* For refuses, and more pairs behind it. */
#define PEN_SETS "is what the experiment sets"
extern const char *const pen__order_is_set[];

/* ---- a run of one ---- */

/* A variant with everything set. */
struct pen_setup {
	char name[48], group[48];
	/* Setups with the same text have to deliver the same; "": none has. */
	char check[96];
	uint64_t value;	  /* of what is varied */
	uint64_t samples; /* of its data; 0: as the run has it */
	int kind;	  /* the experiment's */
	bool lossy;	  /* of data made: delivers others than were made */
	bool as_it_is;	  /* whether cold or warm makes no difference */
	bool may_fail;	  /* the others go on */
};

/* What children write, too: that is how they answer. */
struct pen_shared {
	atomic_uint_fast64_t done, total; /* while it runs */
	/* the data */
	char format[64];
	double bytes, samples, objects, ncols;
	bool has_output; /* format.output=dense|csr: cells */
	uint64_t sum;	 /* of all samples, when made and has_sum */
	bool has_sum;
};

struct pen_run {
	const struct pen_experiment *of;
	char name[40];			/* "bench shuffle", for messages */
	void *own;			/* shared, too */
	struct pen_taken *value;	/* of the flags */
	struct pen_spec *spec;		/* path and settings of the loader */
	struct pen_text settings, meta; /* as given; meta: key NUL value NUL */
	const char *out;
	char out_default[64], path[4096];
	bool resume, quiet, json, cold, warm, made_out, failed;
	uint64_t repeats, batches;
	bool mixed_order;      /* setups in another order every time */
	struct pen_lines rows; /* --resume: that were there; and new ones */
	struct pen_host host;
	/* data made on the spot */
	struct pen_fresh made;
	bool is_made;
	const char *shape, *dtype, *dir;
	char folder[3072]; /* "": there is none */
	/* trials */
	struct pen_setup *setup;
	size_t n;
	struct pen_shared *shared;
	uint64_t start_ns, ntrials, at, nskipped, nadded;
	/* What was found while preparing, in lines: about the data, and what is
	 * left out. */
	struct pen_text notes, warnings;
	/* For who watches, all but stop may be NULL: a trial goes on, a row has
	 * come (and its text), a trial failed and the others go on, the machine
	 * is busy. */
	int (*stop)(void *);
	void (*on_wait)(struct pen_run *, const char *title);
	void (*on_row)(struct pen_run *, const struct pen_setup *,
		       const struct pen_line *, const struct pen_text *);
	void (*on_error)(struct pen_run *, const struct pen_err *);
	void (*on_others)(struct pen_run *, const struct pen_others *);
};

/* One run of a setup. */
struct pen_trial {
	char setup[1024]; /* in full: the same text, the same run */
	char title[128];
	bool cold;
	unsigned repeat;
	const struct pen_setup *of;
};

int pen__run_open(struct pen_run *, const struct pen_experiment *,
		  struct pen_err *);
void pen__run_close(struct pen_run *);
/* A flag ("--x", value or NULL), a setting (key, value), or a path (NULL). */
int pen__run_take(struct pen_run *, const char *key, const char *value,
		  struct pen_err *);
/* All trials. PEN_END: it was stopped. */
int pen__run_all(struct pen_run *, struct pen_err *);
/* Rows of its setups, whoever ran them: the caller frees. NULL: no memory. */
const struct pen_line **pen__run_rows(struct pen_run *, size_t *n);

/* The i-th flag, its own ones and those that several have, in the order of the
 * help; NULL: there are no more. */
const struct pen_flag *pen__flag_at(const struct pen_experiment *, size_t i);
const struct pen_taken *pen__value(const struct pen_run *, const char *flag);
double pen__number(const struct pen_run *, const char *flag); /* the first */
bool pen__given(const struct pen_run *, const char *flag);
/* Is the i-th name chosen? Nothing chosen is everything. */
bool pen__chosen(const struct pen_run *, const char *flag, size_t i);

/* ---- for prepare ---- */

/* Looks at the data, or makes them: one npy file. */
int pen__run_data(struct pen_run *, struct pen_err *);
/* The file of rows alone, where there is nothing to look at. */
int pen__run_rows_open(struct pen_run *, struct pen_err *);
/* The folder, made when there is none yet. */
int pen__run_folder(struct pen_run *, struct pen_err *);
/* What is to be made is settled; the folder is there. */
int pen__run_made(struct pen_run *, struct pen_err *);
/* Adds a setup; NULL: no memory. */
struct pen_setup *pen__setup_add(struct pen_run *, const char *name,
				 const char *group, uint64_t value,
				 struct pen_err *);
/* What a trial is called in full: what all have in common, and the rest. */
void pen__setup_text(const struct pen_run *, struct pen_trial *,
		     const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
/* A function in a child, which answers in what is shared. */
typedef int (*pen_child_fn)(struct pen_run *, const void *arg,
			    struct pen_err *);
int pen__run_child(struct pen_run *, const char *title, pen_child_fn,
		   const void *arg, struct pen_err *);

/* ---- for run, in a child ---- */

struct pen_setting {
	const char *key, *value;
};
/* Has a setting this value; and one at all? */
bool pen__spec_is(const struct pen_spec *, const char *key, const char *value);
bool pen__spec_has(const struct pen_spec *, const char *key);
/* A copy of the spec, changed by settings that end with key NULL; "path" is
 * one of them, "format.*" drops those of the format, a value of NULL is none.
 */
int pen__run_spec(const struct pen_run *, const struct pen_setting *,
		  struct pen_spec **, struct pen_err *);
/* A pass as the trial says, with content summed up, into j. The pass is the
 * caller's to fini in any case. */
int pen__run_pass(struct pen_run *, const struct pen_trial *, struct pen_pass *,
		  struct pen_text *j, struct pen_err *);
/* The same with a copy of the spec, changed so; and the end of the pass, whose
 * figures stay. NULL: a plain one. */
int pen__run_pass_with(struct pen_run *, const struct pen_trial *,
		       struct pen_pass *, const struct pen_setting *,
		       struct pen_text *j, struct pen_err *);
void pen__json_hex(struct pen_text *, const char *key, uint64_t);

#endif
