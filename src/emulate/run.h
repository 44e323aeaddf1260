/*
 * A run: generate, train, evaluate, checkpoint, as the workload says; then
 * figures and files. The command only parses, shows and exits.
 */
#ifndef PEN_EMULATE_RUN_H
#define PEN_EMULATE_RUN_H

#include "emulate/checkpoint.h"
#include "emulate/output.h"

struct pen_progress {
	const char *what;     /* "generating", "epoch", ... */
	unsigned part, parts; /* epoch 2 of 5; 0: not counted */
	uint64_t done, total; /* of this part; total 0: unknown */
	const char *unit;     /* "bytes", "steps"; NULL: nothing is counted */
	/* Where batches are loaded, else NULL: the loader, how long they were
	 * waited for (NULL: as the loader has it), and the seconds of all
	 * accelerators since the start, computing and waiting. */
	const struct pen_loader *loader;
	const struct pen_hist *wait;
	double compute_s, load_s;
};

/* The data of several runs that differ in other things: listed and indexed by
 * the first. Zeroed at first. */
struct pen_opened {
	struct pen_spec *files[2]; /* by split: paths; NULL: not listed yet */
	struct pen_there *there[2];
	struct pen_kept_index *kept[2];
};
void pen__opened_fini(struct pen_opened *);

struct pen_run {
	/* given */
	struct pen_settings *set;
	const struct pen_config *c;
	struct pen_comm *comm;
	struct pen_log log;
	const char *base_dir; /* where results go by default: "hydra_log" */
	bool probe;	      /* only measure: leave no files behind */
	struct pen_opened *opened; /* NULL: everything is opened by this run */
	/* Asked often from the running thread: a result other than 0 ends the
	 * run, with a partial result. May be NULL. */
	int (*tick)(void *arg, const struct pen_progress *);
	void *arg;
	/* The same while data is indexed, by other threads; may be NULL. */
	int (*stop)(void *arg);

	/* out */
	struct pen_record rec;
	struct pen_figures fig;
	char dir[4096]; /* where the files are */

	/* running */
	struct pen_ckpt **ckpt;	    /* one per local accelerator; NULL: none */
	uint64_t seed;		    /* of the order, "random" resolved */
	bool ending;		    /* all ranks know of a failure */
	struct pen_self_io counted; /* device bytes in phases so far */
};

/* Collective. The record and figures are valid also after an interrupt. */
int pen__run(struct pen_run *, struct pen_err *err);
void pen__run_fini(struct pen_run *);

/* What a run would do, from the settings alone. */
struct pen_plan_figures {
	uint64_t files_train, files_eval, files_missing, samples_train;
	uint64_t steps, eval_steps, evals; /* an epoch's steps */
	uint64_t data_bytes, generate_bytes, read_bytes_epoch, read_bytes;
	uint64_t batch_bytes, memory_bytes;
	uint64_t checkpoints, checkpoint_bytes;
	double compute_s;   /* the accelerators alone, all epochs */
	double needed_rate; /* bytes/s of all ranks, for AU at the threshold */
};
int pen__run_plan(const struct pen_config *, unsigned world,
		  struct pen_plan_figures *, struct pen_err *err);
/* Would it fail? As far as that is known before it begins. */
int pen__run_plan_check(const struct pen_run *, unsigned world,
			const struct pen_plan_figures *, struct pen_err *err);
/* What the settings ask for and a run of so many steps an epoch does not do: a
 * line each. */
void pen__run_misses(const struct pen_config *, uint64_t steps,
		     struct pen_text *lines);
/* Is there something to do, and do the loader's settings go together? Called
 * by pen__run(), and where nothing is run. */
int pen__run_check(struct pen_run *, struct pen_err *err);

/* How often in so many epochs what is due after the first-th (0: 1st) and then
 * every so many. */
uint64_t pen__run_times(uint64_t epochs, uint64_t first, uint64_t every);

/* --- parts of a run, each in its file --- */

/* train.c: all epochs, with evaluation and checkpoints */
int pen__run_train(struct pen_run *, struct pen_err *err);
/* save.c: checkpoints alone */
int pen__run_checkpoints(struct pen_run *, struct pen_err *err);
/* save.c: one by all ranks, as a phase of its own; or its reading back */
int pen__run_checkpoint(struct pen_run *, unsigned epoch, unsigned block,
			uint64_t step, bool load, struct pen_err *err);
/* An epoch begins. */
int pen__run_mark_epoch(struct pen_run *, unsigned epoch, struct pen_err *err);
/* Does something end the run now? 0, or PEN_ECLOSED. */
int pen__run_tick(struct pen_run *, const struct pen_progress *,
		  struct pen_err *err);
/*
 * pen__comm_agree(), but once a failure is known to all ranks it is not voted
 * on again: they are on their way to the end by then, not all by the same.
 */
int pen__run_agree(struct pen_run *, int rc, struct pen_err *err);
/* Seconds since 1970. */
double pen__unix_time(void);

#endif
