/*
 * The loader's inside, which all stages share.
 *
 * Three kinds of task go round in one ring, the lower lane first: fill rows of
 * a planned batch, fetch a shared unit, plan a free batch. Every worker does
 * whatever comes; planning is exclusive, so plan state needs no lock.
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
 * being woken takes a tenth of it. */
#define PEN_WORTH_NS 200000

/* Which samples there are to draw from: all, a range, or a list. */
struct pen_choice {
	uint64_t n, start, step;
	uint64_t *list; /* NULL: start + i * step */
	double *weights;
	int64_t *labels;
	int64_t *by_sample; /* a list's labels by number, when delivered */
	uint32_t *lengths;
};
int pen__choice_init(struct pen_choice *, const struct pen_dataset *,
		     struct pen_err *err);
void pen__choice_fini(struct pen_choice *);
/* A number for each chosen sample out of a file, which has them for all, or for
 * those chosen. *out is the caller's to free. */
int pen__choice_numbers(const struct pen_choice *, const struct pen_dataset *,
			const char *path, double **out, struct pen_err *err);
/* Lengths out of a file or a field, as the setting says. */
int pen__choice_lengths(struct pen_choice *, const struct pen_dataset *,
			const char *from, struct pen_err *err);
static inline uint64_t pen__choice_at(const struct pen_choice *c, uint64_t i)
{
	return c->list ? c->list[i] : c->start + i * c->step;
}

struct pen_plan {		/* touched by the planning worker only */
	struct pen_cursor at;	/* where the next global batch begins */
	struct pen_cursor held; /* shared units are held up to here */
	uint64_t origin;	/* where the epoch's first batch began */
	uint64_t window;	/* end of the one that is held as a whole */
	uint32_t ahead;		/* units that may be held while it is at hand */
	uint64_t seq;
	bool failed; /* an error was delivered: nothing comes after it */
	/* batches cut by length: the step at hand and the one behind it, and
	 * the one that `held` is in, while ready */
	struct pen_step step, next, of_held;
	bool step_ready, next_ready, held_ready;
};

/*
 * What batches are made of, a table each: the order in pieces of one size
 * (plan_sampled.c), the order cut by length (plan_by_length.c), or requests
 * (plan_asked.c). All in which they differ is here.
 */
struct pen_steps {
	bool vary; /* in rows: a batch has room for its own only */
	/*
	 * When the choice is known: opens the sampler and sets length, typical,
	 * rows, places and what pad_batch is unless a setting says. close():
	 * also after an open that failed, or never was.
	 */
	int (*open)(struct pen_loader *, struct pen_err *);
	void (*close)(struct pen_loader *);
	/* Memory of a batch with these fields, about. */
	uint64_t (*bytes)(const struct pen_loader *, const struct pen_format *);
	/* Is there an epoch of this number? */
	bool (*comes)(const struct pen_loader *, uint64_t epoch);

	/* The planner's. Moves plan.at to the next step; false: all epochs are
	 * planned. */
	bool (*advance)(struct pen_loader *);
	/* The step there. PEN_AGAIN: there is none yet, and the batch rests. */
	int (*next)(struct pen_loader *, struct pen_pooled *, struct pen_step *,
		    struct pen_err *);
	/* Which samples the batch has. */
	int (*fill)(struct pen_loader *, struct pen_pooled *,
		    const struct pen_step *, struct pen_err *);
	/* It is planned, or refused. */
	void (*done)(struct pen_loader *, const struct pen_step *);
	/* Is this position, of the epoch that is held, in this rank's part? */
	int (*mine)(struct pen_loader *, uint64_t pos, bool *yes,
		    struct pen_err *);
	/* Elements at positions, which may pass the end of the epoch. */
	int (*ids)(struct pen_loader *, uint64_t epoch, uint64_t first,
		   size_t n, uint64_t *out, struct pen_err *);

	/* The consumer's: what it counts down from a position to the end of
	 * the epoch; and this rank's batches of one. */
	uint64_t (*left)(const struct pen_loader *, uint64_t pos);
	uint64_t (*count)(struct pen_loader *, uint64_t epoch);
};
extern const struct pen_steps pen__steps_sampled, pen__steps_by_length,
	pen__steps_asked;
/* The order that open() opens; name NULL: as the settings say. */
int pen__steps_sampler(const struct pen_loader *, const char *name,
		       struct pen_sampler **out, struct pen_err *);
/* Rows of a batch where an epoch has only n samples for this rank. */
uint32_t pen__steps_rows(const struct pen_loader *, uint64_t n);
bool pen__steps_comes(const struct pen_loader *, uint64_t epoch);
/* Samples, not elements, at positions; and those of a step as rows. */
int pen__steps_samples(struct pen_loader *, uint64_t epoch, uint64_t first,
		       size_t n, uint64_t *out, struct pen_err *);
int pen__steps_fill(struct pen_loader *, struct pen_pooled *,
		    const struct pen_step *, struct pen_err *);
/* Part of every done(). */
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
	uint32_t rows;	  /* the most of a batch ... */
	uint32_t places;  /* ... unless some of them are the same */
	uint32_t typical; /* on average */
	uint64_t share;	  /* reads a thread may have in flight */
	uint32_t wanted;  /* batches ahead, if memory allowed it */
	uint64_t rank, world;
	enum pen_tail tail;
	uint64_t length; /* positions of an epoch that are taken */
	struct pen_by_length by_length;
	uint32_t varying[PEN_MAX_FIELDS]; /* axes that do, a bit each */
	bool pad_batch; /* padded up to the largest of the batch */
	bool drops;	/* decode=false: bytes are read, not kept */
	uint64_t budget, unit_budget, unit_most, raw_limit;
	uint64_t room_limit; /* of units unpacked elsewhere than they stay */
	bool shared;	     /* rows come out of shared units */
	bool chunked;	     /* ... which are runs of records we made up */

	struct pen_row_hook hook;
	const struct pen_steps *steps;
	struct pen_asked *asked; /* what its steps are of, or NULL */

	struct pen_plan plan;
	struct pen_unit *plan_units; /* room for one sample's */
	atomic_uint planned;	     /* batches planned and not finished */
	atomic_uint unit_tasks;	     /* fetches queued or under way */
	/* Thread time per row, a running mean; 0: not known yet. Workers write
	 * it, the planner cuts grains by it. */
	atomic_uint_fast64_t row_ns;
	atomic_bool stopping; /* workers leave what they have not begun */
	pthread_mutex_t lock; /* at_barrier, asked, skipped */
	bool barrier;	      /* plan_barrier.c; changed with the lock */
	bool barrier_passed;
	bool barrier_told;	       /* that next() will wait there */
	struct pen_pooled *at_barrier; /* their plans wait for other ranks */
	struct pen_row_fault *skipped;
	uint64_t *skipped_id;
	uint64_t nskipped_kept;
	atomic_uint_fast64_t nskipped, nsubstituted;

	/* the consumer's */
	struct pen_cursor taken; /* after the last batch handed out */
	uint64_t left;		 /* batches still to come in this epoch */
	bool ended;		 /* the last epoch is over */
	struct pen_err stop;	 /* code != 0: every next() says so */
	atomic_uint in_next;
	atomic_bool closing;
	struct pen_hist wait;
	uint64_t open_at, first_batch_ns, open_ns, open_cpu_ns;
	uint64_t files_ns; /* spent opening files before the threads started */
	uint64_t nsamples, nbatches, payload_bytes, ready_sum, wait_ns;
	uint64_t waited_ns; /* in vain, for the batch that comes next */
};

/* The epoch whose order this one has. */
static inline uint64_t pen__order_of(const struct pen_loader *l, uint64_t epoch)
{
	return l->ds->spec->reshuffle ? epoch : 0;
}

/* The layout of every field (plan_shapes.c); and steps.bytes() of batches that
 * have all their rows. */
int pen__shapes_settle(struct pen_loader *, struct pen_err *err);
uint64_t pen__shapes_bytes(const struct pen_loader *,
			   const struct pen_format *as_delivered);

/* Sets prefetch and what the budget leaves for everything else (pool_budget.c).
 */
int pen__budget_settle(struct pen_loader *, const struct pen_format *,
		       struct pen_err *err);

/* Time spent opening files: of the store at the bottom, which has them. */
uint64_t pen__loader_files_ns(const struct pen_loader *);

int pen__workers_new(struct pen_loader *, struct pen_err *err);
void pen__workers_free(struct pen_loader *);
void pen__worker_run(void *loader, unsigned i);
const struct pen_meter *pen__worker_meter(const struct pen_loader *,
					  unsigned i);

#endif
