/*
 * The harness of all experiments. An experiment is a description: its help, its
 * flags, its variants, and how its rows are shown. The harness handles flags
 * and settings, generated data, interleaved trials in separate processes,
 * warm-up, --resume, rows, and the expected result of a pass. It prints
 * nothing; output goes through callbacks.
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
#define PEN_MOST_NAMES 16  /* to choose from, per flag */
#define PEN_MOST_FLAGS 24

enum pen_takes {
	PEN_TAKES_NOTHING,
	PEN_TAKES_TEXT,
	PEN_TAKES_COUNTS, /* "1,2,10k" */
	PEN_TAKES_MS,	  /* "5,50", stored as seconds */
	PEN_TAKES_TIME,	  /* "5ms" */
	PEN_TAKES_SIZES,  /* "64MB,1GiB" */
	PEN_TAKES_NAMES,  /* "raw,csr" or prefixes, stored as indices of
			     names; repeatable */
	PEN_TAKES_ANY,	  /* parsed by the experiment's take() */
};
struct pen_flag {
	const char *name, *arg, *help;
	enum pen_takes takes;
	char preset[32]; /* value if the flag is absent; "": none */
	double least, most;
	size_t many; /* values */
	char *names[PEN_MOST_NAMES + 1];
};

/* The values of a flag. */
struct pen_taken {
	double v[PEN_MOST_VALUES];
	size_t n;
	const char *text; /* the last one given, or the preset; NULL: none */
};

struct pen_pair {
	const char *first, *second;
};

struct pen_setup;
struct pen_experiment {
	/* From experiments.txt (but for the name): how rows are shown, the
	 * help of the command, its flags. */
	struct pen_kind kind;
	const char *args, *summary, *about;
	struct pen_pair examples[8]; /* command and description */
	struct pen_flag flag[PEN_MOST_FLAGS];
	size_t nflags;
	const char *settings; /* not NULL: takes settings of a loader */
	/* Flags and "key=" (also "key*=", a prefix) that the user must not
	 * set: the experiment sets them, or another reason. */
	struct pen_pair sets[4], refuses[4];
	struct pen_pair preset; /* a setting and its default value */
	const char *shape;	/* of generated data; NULL: 32x32 */
	/* A flag whose values are the variants, and the setting they are for.
	 */
	struct pen_pair vary;

	/* Runs on all ranks of a job: trials are then not in children. */
	bool ranks;
	size_t own;	  /* bytes of the experiment's own state */
	const void *work; /* parameters of functions that several share */
	/* All may be NULL: by default, a pass over the data for each value
	 * of `vary`. prepare opens the data and adds setups. */
	int (*prepare)(struct pen_session *, struct pen_err *);
	/* In a child: runs one setup and writes its figures into j. */
	int (*run)(struct pen_session *, const struct pen_trial *,
		   struct pen_text *j, struct pen_err *);
	/* A setting, a path (key NULL), or a flag of type `any`; returns 1
	 * to handle it as usual. */
	int (*take)(struct pen_session *, const char *key, const char *value,
		    struct pen_err *);
	void (*head)(struct pen_text *, const struct pen_session *,
		     const struct pen_setup *); /* keys of the setup */
	void (*describe)(struct pen_session *, const struct pen_setup *,
			 struct pen_trial *); /* sets title and setup */
	void (*close)(struct pen_session *);
};
extern struct pen_experiment *const pen__experiments[]; /* NULL ends */
extern struct pen_experiment pen__exp_blocks, pen__exp_read_chunks,
	pen__exp_prefetch, pen__exp_batch_size, pen__exp_formats,
	pen__exp_shuffle, pen__exp_startup, pen__exp_resume, pen__exp_mmap,
	pen__exp_neighbour, pen__exp_overlap, pen__exp_workers,
	pen__exp_iterate, pen__exp_prealloc, pen__exp_memory,
	pen__exp_headspace, pen__exp_dna;
extern struct pen_experiment pen__exp_sweep; /* a separate command */
extern const char pen__experiments_txt[];

/* ---- running an experiment ---- */

/* A variant with all its parameters. */
struct pen_setup {
	char name[48], group[48];
	/* Setups with the same string must deliver the same; "": unchecked. */
	char check[96];
	uint64_t value;	  /* of the varied setting */
	uint64_t samples; /* of its data; 0: those of the session */
	int kind;	  /* used by the experiment */
	bool lossy;	  /* delivers samples that differ from the generated */
	bool as_it_is;	  /* independent of --cold and --warm */
	bool may_fail;	  /* a failure does not stop the others */
};

/* Memory shared with children, which return their results in it. */
struct pen_shared {
	atomic_uint_fast64_t done, total; /* progress of a trial */
	/* the data */
	char format[64];
	double bytes, samples, objects, ncols;
	bool has_output; /* format.output=dense|csr: cells */
	uint64_t sum;	 /* of all generated samples, if has_sum */
	bool has_sum;
};

struct pen_session {
	const struct pen_experiment *of;
	char name[40];			/* "bench shuffle", for messages */
	void *own;			/* shared as well */
	struct pen_taken *value;	/* of the flags */
	struct pen_spec *spec;		/* path and settings of the loader */
	struct pen_text settings, meta; /* as given; meta: key NUL value NUL */
	const char *out;
	char out_default[64], path[4096];
	bool resume, quiet, json, cold, warm, made_out, failed;
	bool nomem;		 /* a setup could not be added */
	struct pen_ranks *ranks; /* NULL: a single process */
	uint64_t repeats, batches;
	bool mixed_order;      /* setups in a different order each turn */
	struct pen_lines rows; /* new ones; with --resume also old ones */
	struct pen_host host;
	/* generated data */
	struct pen_fresh made;
	bool is_made;
	const char *shape, *dtype, *dir;
	char folder[3072]; /* temporary directory; "": none */
	/* trials */
	struct pen_setup *setup;
	size_t n;
	struct pen_shared *shared;
	uint64_t start_ns, ntrials, at, nskipped, nadded;
	/* Lines to print after preparing: about the data, and warnings. */
	struct pen_text notes, warnings;
	/* Callbacks, all but stop may be NULL: during a trial, after a row was
	 * added, after a trial that failed. */
	int (*stop)(void *);
	void (*on_wait)(struct pen_session *, const char *title);
	void (*on_row)(struct pen_session *, const struct pen_text *);
	void (*on_error)(struct pen_session *, const struct pen_err *);
	/* Called in a child process when the data at PATH is open. */
	void (*on_open)(const struct pen_dataset *);
};

/* One run of a setup. */
struct pen_trial {
	char setup[1024]; /* in full: equal strings are repeats */
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
/* After the last argument. */
int pen__run_prepare(struct pen_session *, struct pen_err *);
/* Runs all trials. PEN_END: stopped. */
int pen__run_all(struct pen_session *, struct pen_err *);
/* All rows of its setups, also of earlier sessions; the caller frees the array.
 * NULL: no memory. */
const struct pen_line **pen__run_rows(struct pen_session *, size_t *n);

/* Whether this process writes results, and files of its host. */
bool pen__run_first(const struct pen_session *);
bool pen__run_leads(const struct pen_session *);

bool pen__has_flag(const struct pen_session *, const char *flag);
const struct pen_taken *pen__value(const struct pen_session *,
				   const char *flag);
double pen__number(const struct pen_session *,
		   const char *flag); /* the first value */
bool pen__given(const struct pen_session *, const char *flag);
/* The i-th name that a flag accepts; NULL: past the end. Whether it is chosen:
 * all are if the flag is absent. */
const char *pen__name(const struct pen_session *, const char *flag, size_t i);
bool pen__chosen(const struct pen_session *, const char *flag, size_t i);

/* ---- for prepare ---- */

/* Adds a setup for every value of `vary`. */
void pen__run_vary(struct pen_session *);
/* Opens the data, or generates one npy file. */
int pen__run_data(struct pen_session *, struct pen_err *);
/* Opens only the file of rows, for experiments without a PATH. */
int pen__run_rows_open(struct pen_session *, struct pen_err *);
/* Creates the temporary directory unless it exists, one per host. */
int pen__run_folder(struct pen_session *, struct pen_err *);
/* Fixes the parameters of generated data and creates the directory. */
int pen__run_made(struct pen_session *, struct pen_err *);
/* Adds a setup. pen__run_all() reports a lack of memory. */
struct pen_setup *pen__setup_add(struct pen_session *, const char *name,
				 const char *group, uint64_t value);
/* Sets the setup string of a trial: common parts and the formatted rest. */
void pen__setup_text(const struct pen_session *, struct pen_trial *,
		     const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
/* Runs a function in a child; it returns results in shared memory. */
typedef int (*pen_child_fn)(struct pen_session *, const void *arg,
			    struct pen_err *);
int pen__run_child(struct pen_session *, const char *title, pen_child_fn,
		   const void *arg, struct pen_err *);

/* ---- for run, in a child ---- */

struct pen_spec_change {
	const char *key, *value;
	uint64_t number; /* used if value is NULL and this is not 0 */
};
/* Whether a setting has this value, or any value. */
bool pen__spec_is(const struct pen_spec *, const char *key, const char *value);
bool pen__spec_has(const struct pen_spec *, const char *key);
/* Whether an epoch delivers every sample exactly once, and unchanged. */
bool pen__spec_whole(const struct pen_spec *);
bool pen__spec_unchanged(const struct pen_spec *);
/* "3x224x224"; "1" for a single number. */
void pen__put_shape(const struct pen_field *, char *buf, size_t cap);
/* A copy of the spec with changes, up to key NULL; "path" replaces the paths,
 * "format.*" drops the format's settings, no value and number 0: no change. */
int pen__run_spec(const struct pen_session *, const struct pen_spec_change *,
		  struct pen_spec **, struct pen_err *);
/* Runs a pass of the trial with a changed copy of the spec (NULL: by `vary`)
 * and writes its figures into j. pass NULL: a plain pass with a checksum. */
int pen__run_pass_with(struct pen_session *, const struct pen_trial *,
		       struct pen_pass *, const struct pen_spec_change *,
		       struct pen_text *j, struct pen_err *);

#endif
