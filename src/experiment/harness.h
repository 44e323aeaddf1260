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

struct pen_session;
struct pen_trial;

/* ---- descriptions ---- */

#define PEN_MOST_VALUES 64 /* of a flag */
#define PEN_MOST_NAMES 16  /* that a flag chooses from */
#define PEN_MOST_FLAGS 24

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
	char preset[32]; /* as if it were given; "": nothing */
	double least, most;
	size_t many; /* values */
	char *names[PEN_MOST_NAMES + 1];
};

/* What a flag was given. */
struct pen_taken {
	double v[PEN_MOST_VALUES];
	size_t n;
	const char *text; /* as given last, or the preset; NULL: neither */
};

struct pen_pair {
	const char *first, *second;
};

struct pen_setup;
struct pen_experiment {
	/* What experiments.txt has: its name (which is here), and how rows are
	 * shown; the words of the command; flags. */
	struct pen_kind kind;
	const char *args, *summary, *about;
	struct pen_pair examples[8]; /* command, and what it does */
	struct pen_flag flag[PEN_MOST_FLAGS];
	size_t nflags;
	const char *settings; /* of a loader are taken; NULL: are not */
	/* Flags and "key=" (also "key*=", all that begin so) that are no choice
	 * of the user's: the experiment sets them, or why else. */
	struct pen_pair sets[4], refuses[4];
	struct pen_pair preset; /* a setting, unless it is given */
	const char *shape;	/* of data made; NULL: 32x32 */
	/* A flag whose values are the variants, and the setting they are of. */
	struct pen_pair vary;
	/* A table as it goes: columns "title=key:width". */
	const char *live;

	size_t own; /* bytes of a state of its own */
	/* All may be NULL; of what is varied, a pass over the data is enough.
	 * All arguments are known: opens the data, adds setups. */
	int (*prepare)(struct pen_session *, struct pen_err *);
	/* In a child: one setup, its figures into j. */
	int (*run)(struct pen_session *, const struct pen_trial *,
		   struct pen_text *j, struct pen_err *);
	/* A setting, a path (key NULL), or a flag that is
	 * left to it; 1: it is as any other. */
	int (*take)(struct pen_session *, const char *key, const char *value,
		    struct pen_err *);
	void (*head)(struct pen_text *, const struct pen_session *,
		     const struct pen_setup *); /* what a row says of it */
	void (*describe)(struct pen_session *, const struct pen_setup *,
			 struct pen_trial *); /* title, and text of the setup */
	void (*close)(struct pen_session *);
};
extern struct pen_experiment *const pen__experiments[]; /* NULL ends */
extern struct pen_experiment pen__exp_blocks, pen__exp_read_chunks,
	pen__exp_prefetch, pen__exp_batch_size, pen__exp_formats,
	pen__exp_shuffle, pen__exp_startup, pen__exp_resume, pen__exp_mmap,
	pen__exp_neighbour, pen__exp_overlap, pen__exp_workers,
	pen__exp_iterate, pen__exp_prealloc, pen__exp_memory,
	pen__exp_headspace, pen__exp_dna;
extern struct pen_experiment pen__exp_sweep; /* a command of its own */
extern const char pen__experiments_txt[];

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

struct pen_session {
	const struct pen_experiment *of;
	char name[40];			/* "bench shuffle", for messages */
	void *own;			/* shared, too */
	struct pen_taken *value;	/* of the flags */
	struct pen_spec *spec;		/* path and settings of the loader */
	struct pen_text settings, meta; /* as given; meta: key NUL value NUL */
	const char *out;
	char out_default[64], path[4096];
	bool resume, quiet, json, cold, warm, made_out, failed;
	bool nomem; /* a setup is missing */
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
	void (*on_wait)(struct pen_session *, const char *title);
	void (*on_row)(struct pen_session *, const struct pen_line *,
		       const struct pen_text *);
	void (*on_error)(struct pen_session *, const struct pen_err *);
	void (*on_others)(struct pen_session *, const struct pen_others *);
	/* The data at PATH is open, in a child of this process. */
	void (*on_open)(const struct pen_dataset *);
};

/* One run of a setup. */
struct pen_trial {
	char setup[1024]; /* in full: the same text, the same run */
	char title[128];
	bool cold;
	unsigned repeat;
	const struct pen_setup *of;
};

int pen__run_open(struct pen_session *, const struct pen_experiment *,
		  struct pen_err *);
void pen__run_close(struct pen_session *);
/* A flag ("--x", value or NULL), a setting (key, value), or a path (NULL). */
int pen__run_take(struct pen_session *, const char *key, const char *value,
		  struct pen_err *);
/* After all arguments. */
int pen__run_prepare(struct pen_session *, struct pen_err *);
/* All trials. PEN_END: it was stopped. */
int pen__run_all(struct pen_session *, struct pen_err *);
/* Rows of its setups, whoever ran them: the caller frees. NULL: no memory. */
const struct pen_line **pen__run_rows(struct pen_session *, size_t *n);

bool pen__has_flag(const struct pen_session *, const char *flag);
const struct pen_taken *pen__value(const struct pen_session *,
				   const char *flag);
double pen__number(const struct pen_session *,
		   const char *flag); /* the first */
bool pen__given(const struct pen_session *, const char *flag);
/* The i-th name that a flag chooses from; NULL: there is none. Is it chosen?
 * Nothing chosen is everything. */
const char *pen__name(const struct pen_session *, const char *flag, size_t i);
bool pen__chosen(const struct pen_session *, const char *flag, size_t i);

/* ---- for prepare ---- */

/* A setup for every value of what the description varies. */
void pen__run_vary(struct pen_session *);
/* Looks at the data, or makes them: one npy file. */
int pen__run_data(struct pen_session *, struct pen_err *);
/* The file of rows alone, where there is nothing to look at. */
int pen__run_rows_open(struct pen_session *, struct pen_err *);
/* The folder, made when there is none yet. */
int pen__run_folder(struct pen_session *, struct pen_err *);
/* What is to be made is settled; the folder is there. */
int pen__run_made(struct pen_session *, struct pen_err *);
/* Adds a setup. Running out of memory is noted, and told when they are run. */
struct pen_setup *pen__setup_add(struct pen_session *, const char *name,
				 const char *group, uint64_t value);
/* What a trial is called in full: what all have in common, and the rest. */
void pen__setup_text(const struct pen_session *, struct pen_trial *,
		     const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
/* A function in a child, which answers in what is shared. */
typedef int (*pen_child_fn)(struct pen_session *, const void *arg,
			    struct pen_err *);
int pen__run_child(struct pen_session *, const char *title, pen_child_fn,
		   const void *arg, struct pen_err *);

/* ---- for run, in a child ---- */

struct pen_spec_change {
	const char *key, *value;
	uint64_t number; /* without a value: this one, when it is not 0 */
};
/* Has a setting this value; and one at all? */
bool pen__spec_is(const struct pen_spec *, const char *key, const char *value);
bool pen__spec_has(const struct pen_spec *, const char *key);
/* A copy of the spec, changed by settings that end with key NULL; "path" is
 * one of them, "format.*" drops those of the format, a value of NULL is none.
 */
int pen__run_spec(const struct pen_session *, const struct pen_spec_change *,
		  struct pen_spec **, struct pen_err *);
/* A pass as the trial says, with a copy of the spec, changed so (NULL: by what
 * the description varies), into j; the figures of the pass stay (NULL: a plain
 * one, with content summed up). */
int pen__run_pass_with(struct pen_session *, const struct pen_trial *,
		       struct pen_pass *, const struct pen_spec_change *,
		       struct pen_text *j, struct pen_err *);
void pen__json_hex(struct pen_text *, const char *key, uint64_t);

#endif
