/*
 * The loader's internals, which all stages share.
 *
 * Three kinds of task circulate in one ring, the lower lane first: fill rows of
 * a planned batch, fetch a shared unit, plan a free batch. Every worker takes
 * any task; planning is exclusive, so plan state needs no lock.
 */
#ifndef PEN_ENGINE_LOADER_H
#define PEN_ENGINE_LOADER_H

#include "base/hist.h"
#include "base/team.h"
#include "engine/plan_by_length.h"
#include "engine/dataset.h"
#include "engine/meter.h"
#include "engine/fetch_units.h"
#include "sampler/sampler.h"

/* Work that takes a thread longer than this is worth handing to another one:
 * waking it takes a tenth of that. */
#define PEN_WORTH_NS 200000

/* The samples to draw from: all, a range, or a list. */
struct pen_choice {
	uint64_t n, start, step;
	uint64_t *list; /* NULL: start + i * step */
	double *weights;
	int64_t *labels;
	int64_t *by_sample; /* labels by sample number, for a list */
	uint32_t *lengths;
};
int pen__choice_init(struct pen_choice *, const struct pen_dataset *,
		     struct pen_err *err);
void pen__choice_fini(struct pen_choice *);
/* One number per chosen sample from a file, which has them for all samples or
 * for the chosen ones. *out is the caller's to free. */
int pen__choice_numbers(const struct pen_choice *, const struct pen_dataset *,
			const char *path, double **out, struct pen_err *err);
/* Lengths from a file or a field, as in lengths=. */
int pen__choice_lengths(struct pen_choice *, const struct pen_dataset *,
			const char *from, struct pen_err *err);
static inline uint64_t pen__choice_at(const struct pen_choice *c, uint64_t i)
{
	return c->list ? c->list[i] : c->start + i * c->step;
}

struct pen_plan {		/* used by the planning worker only */
	struct pen_cursor at;	/* where the next global batch begins */
	struct pen_cursor held; /* shared units are held up to here */
	uint64_t origin;	/* where the epoch's first batch began */
	uint64_t window;	/* end of the window that is held entirely */
	uint32_t ahead;		/* limit of held units during that window */
	uint64_t seq;
	bool failed; /* an error was delivered: planning has ended */
	/* batches cut by length: the current step, the one behind it, and the
	 * one that `held` is in, while ready */
	struct pen_step step, next, of_held;
	bool step_ready, next_ready, held_ready;
};

/*
 * How batches are formed, one table each: the order in steps of one size
 * (plan_sampled.c), the order cut by length (plan_by_length.c), or requests
 * (plan_asked.c). All their differences are here.
 */
struct pen_steps {
	bool vary; /* batches differ in rows: room for their own only */
	/*
	 * Called when the choice is known: opens the sampler and sets length,
	 * typical, rows, places and the default of pad_batch. close(): also
	 * called after an open that failed, or without one.
	 */
	int (*open)(struct pen_loader *, struct pen_err *);
	void (*close)(struct pen_loader *);
	/* Approximate memory of a batch with these fields. */
	uint64_t (*bytes)(const struct pen_loader *, const struct pen_format *);
	/* Does this epoch exist? */
	bool (*comes)(const struct pen_loader *, uint64_t epoch);

	/* For the planner. Moves plan.at to the next step; false: all epochs
	 * are planned. */
	bool (*advance)(struct pen_loader *);
	/* The step at plan.at. PEN_AGAIN: there is none yet, and the batch is
	 * set aside. */
	int (*next)(struct pen_loader *, struct pen_pooled *, struct pen_step *,
		    struct pen_err *);
	/* Sets the samples of the batch. */
	int (*fill)(struct pen_loader *, struct pen_pooled *,
		    const struct pen_step *, struct pen_err *);
	/* The step was planned, or refused. */
	void (*done)(struct pen_loader *, const struct pen_step *);
	/* Does this position of the held epoch belong to this rank? */
	int (*mine)(struct pen_loader *, uint64_t pos, bool *yes,
		    struct pen_err *);
	/* Elements at positions, which may exceed the end of the epoch. */
	int (*ids)(struct pen_loader *, uint64_t epoch, uint64_t first,
		   size_t n, uint64_t *out, struct pen_err *);

	/* For the consumer: the batches to count down from a position to the
	 * end of the epoch; and the number of this rank's batches in an
	 * epoch. */
	uint64_t (*left)(const struct pen_loader *, uint64_t pos);
	uint64_t (*count)(struct pen_loader *, uint64_t epoch);
};
extern const struct pen_steps pen__steps_sampled, pen__steps_by_length,
	pen__steps_asked;
/* Opens the sampler; name NULL: as in the settings. */
int pen__steps_sampler(const struct pen_loader *, const char *name,
		       struct pen_sampler **out, struct pen_err *);
/* Rows of a batch if an epoch has only n samples for this rank. */
uint32_t pen__steps_rows(const struct pen_loader *, uint64_t n);
bool pen__steps_comes(const struct pen_loader *, uint64_t epoch);
/* Samples, not elements, at positions; and those of a step as rows. */
int pen__steps_samples(struct pen_loader *, uint64_t epoch, uint64_t first,
		       size_t n, uint64_t *out, struct pen_err *);
int pen__steps_fill(struct pen_loader *, struct pen_pooled *,
		    const struct pen_step *, struct pen_err *);
/* The common part of every done(). */
void pen__steps_done(struct pen_loader *, const struct pen_step *);

struct pen_asked; /* plan_asked.c */

struct pen_loader {
	struct pen_dataset *ds;
	struct pen_choice choice;
	struct pen_sampler *sampler;
	struct pen_pool *pool;
	struct pen_units units;
	struct pen_ring *ring;
	struct pen_order *order;
	struct pen_team *team;
	struct pen_worker *worker;

	/* settled at open */
	uint32_t batch, nthreads, prefetch, depth, unit_lane;
	uint32_t rows;	  /* maximum per batch ... */
	uint32_t places;  /* ... and with repeated samples */
	uint32_t typical; /* average per batch */
	uint64_t share;	  /* reads a thread may have in flight */
	uint32_t wanted;  /* prefetch depth, if memory allowed it */
	uint64_t rank, world;
	enum pen_tail tail;
	uint64_t length; /* positions of an epoch that are used */
	struct pen_by_length by_length;
	uint32_t varying[PEN_MAX_FIELDS]; /* axes that vary, one bit each */
	bool pad_batch; /* pad to the largest sample of the batch */
	bool drops;	/* decode=false: bytes are read, not kept */
	uint64_t budget, unit_budget, unit_most, raw_limit;
	uint64_t room_limit; /* for units unpacked in a separate buffer */
	bool shared;	     /* rows come from shared units */
	bool chunked;	     /* ... which are runs of records formed here */

	struct pen_row_hook hook;
	const struct pen_steps *steps;
	struct pen_asked *asked; /* requests, or NULL */

	struct pen_plan plan;
	struct pen_unit *plan_units; /* room for the units of one sample */
	atomic_uint planned;	     /* batches planned and not finished */
	atomic_uint unit_tasks;	     /* fetches queued or in progress */
	/* Thread time per row, a running mean; 0: unknown. Workers write it,
	 * the planner sizes grains by it. */
	atomic_uint_fast64_t row_ns;
	atomic_bool stopping; /* workers drop work they have not started */
	pthread_mutex_t lock; /* guards at_barrier, asked, skipped */
	bool barrier;	      /* plan_barrier.c; changed under the lock */
	bool barrier_passed;
	bool barrier_told; /* the caller knows that next() will wait */
	struct pen_pooled *at_barrier; /* plans that wait for other ranks */
	struct pen_row_fault *skipped;
	uint64_t *skipped_id;
	uint64_t nskipped_kept;
	atomic_uint_fast64_t nskipped, nsubstituted;

	/* used by the consumer */
	struct pen_cursor taken; /* after the last batch handed out */
	uint64_t left;		 /* batches still to come in this epoch */
	bool ended;		 /* the last epoch is over */
	struct pen_err stop;	 /* code != 0: every next() returns it */
	atomic_uint in_next;
	atomic_bool closing;
	struct pen_hist wait;
	uint64_t open_at, first_batch_ns, open_ns, open_cpu_ns;
	uint64_t files_ns; /* spent opening files before the threads started */
	uint64_t nsamples, nbatches, payload_bytes, ready_sum, wait_ns;
	uint64_t waited_ns; /* so far for the next batch */
};

/* The epoch whose order is used in this one. */
static inline uint64_t pen__order_of(const struct pen_loader *l, uint64_t epoch)
{
	return l->ds->spec->reshuffle ? epoch : 0;
}

/* Sets the layout of every field (plan_shapes.c); and steps.bytes() of batches
 * with all their rows. */
int pen__shapes_settle(struct pen_loader *, struct pen_err *err);
uint64_t pen__shapes_bytes(const struct pen_loader *,
			   const struct pen_format *as_delivered);

/* Sets the prefetch depth and divides the rest of the budget
 * (pool_budget.c). */
int pen__budget_settle(struct pen_loader *, const struct pen_format *,
		       struct pen_err *err);

/* Time spent opening files, by the bottommost store. */
uint64_t pen__loader_files_ns(const struct pen_loader *);

int pen__workers_new(struct pen_loader *, struct pen_err *err);
void pen__workers_free(struct pen_loader *);
void pen__worker_run(void *loader, unsigned i);
const struct pen_meter *pen__worker_meter(const struct pen_loader *,
					  unsigned i);

#endif
