/*
 * A run: generate, train, evaluate and checkpoint as set by the workload, then
 * compute figures and write files. The command only parses arguments and
 * prints.
 */
#ifndef PEN_EMULATE_RUN_H
#define PEN_EMULATE_RUN_H

#include "emulate/checkpoint.h"
#include "emulate/output.h"

struct pen_progress {
	const char *what;     /* "generating", "epoch", ... */
	unsigned part, parts; /* epoch 2 of 5; 0: not counted */
	uint64_t done, total; /* within this part; total 0: unknown */
	const char *unit;     /* "bytes", "steps"; NULL: no count */
	/* While loading batches, else NULL: the loader, the waits for batches
	 * (NULL: those of the loader), and the time of all accelerators since
	 * the start, computing and waiting. */
	const struct pen_loader *loader;
	const struct pen_hist *wait;
	double compute_s, load_s;
};

/* The data of several runs that differ in other settings: listed and indexed by
 * the first run. Initially zero. */
struct pen_opened {
	struct pen_spec *files[2]; /* per split; NULL: not listed yet */
	struct pen_there *there[2];
	struct pen_kept_index *kept[2];
};
void pen__opened_fini(struct pen_opened *);

struct pen_run {
	/* input */
	struct pen_settings *set;
	const struct pen_config *c;
	struct pen_comm *comm;
	struct pen_log log;
	const char *base_dir;	   /* parent of default output: "hydra_log" */
	bool probe;		   /* only measure; write no files */
	struct pen_opened *opened; /* NULL: this run opens its own data */
	/* Called often by the running thread: a result other than 0 ends the
	 * run with a partial result. May be NULL. */
	int (*tick)(void *arg, const struct pen_progress *);
	void *arg;
	/* The same during indexing, from other threads; may be NULL. */
	int (*stop)(void *arg);

	/* output */
	struct pen_record rec;
	struct pen_figures fig;
	char dir[4096]; /* output directory */

	/* internal */
	struct pen_ckpt **ckpt; /* one per local accelerator; NULL: none */
	uint64_t seed;		/* seed of the order, with "random" resolved */
	bool ending;		/* all ranks know of a failure */
	struct pen_self_io counted; /* device bytes assigned to phases so far */
};

/* Collective. Record and figures are also valid after an interrupt. */
int pen__run(struct pen_run *, struct pen_err *err);
void pen__run_fini(struct pen_run *);

/* What a run would do, computed from the settings. */
struct pen_plan_figures {
	uint64_t files_train, files_eval, files_missing, samples_train;
	uint64_t steps, eval_steps, evals; /* steps per epoch */
	uint64_t data_bytes, generate_bytes, read_bytes_epoch, read_bytes;
	uint64_t batch_bytes, memory_bytes;
	uint64_t checkpoints, checkpoint_bytes;
	double compute_s;   /* compute time of all epochs */
	double needed_rate; /* bytes/s of all ranks to reach the target AU */
};
int pen__run_plan(const struct pen_config *, unsigned world,
		  struct pen_plan_figures *, struct pen_err *err);
/* Fails if the run would fail, as far as that is known in advance. */
int pen__run_plan_check(const struct pen_run *, unsigned world,
			const struct pen_plan_figures *, struct pen_err *err);
/* Lists settings that a run with this many steps per epoch would not honour,
 * one per line. */
void pen__run_misses(const struct pen_config *, uint64_t steps,
		     struct pen_text *lines);
/* Fails if there is nothing to do, or if loader settings conflict. Called by
 * pen__run(), and by commands that run nothing. */
int pen__run_check(struct pen_run *, struct pen_err *err);

/* Number of times that something is due in `epochs` epochs: after epoch `first`
 * (0: 1), then every `every` epochs. */
uint64_t pen__run_times(uint64_t epochs, uint64_t first, uint64_t every);

/* --- parts of a run --- */

/* train.c: all epochs, with evaluation and checkpoints */
int pen__run_train(struct pen_run *, struct pen_err *err);
/* save.c: checkpoints alone */
int pen__run_checkpoints(struct pen_run *, struct pen_err *err);
/* save.c: saves or loads one checkpoint on all ranks, as a phase of its own */
int pen__run_checkpoint(struct pen_run *, unsigned epoch, unsigned block,
			uint64_t step, bool load, struct pen_err *err);
/* Records the start of an epoch. */
int pen__run_mark_epoch(struct pen_run *, unsigned epoch, struct pen_err *err);
/* Reports progress; PEN_ECLOSED if the run is to end. */
int pen__run_tick(struct pen_run *, const struct pen_progress *,
		  struct pen_err *err);
/*
 * pen__comm_agree(), but without another vote once all ranks know of a failure:
 * by then they are on different paths to the end.
 */
int pen__run_agree(struct pen_run *, int rc, struct pen_err *err);
/* Seconds since 1970. */
double pen__unix_time(void);

#endif
