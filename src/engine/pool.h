/*
 * Batches and the pool that owns them. A batch circulates: free -> planned ->
 * filled by the workers -> delivered -> unref'd by the consumer -> free. Its
 * memory is faulted in once, since fresh pages cost five times as much as the
 * copy itself. The pool outlives the loader while a consumer holds a batch.
 *
 * A consumer that keeps batches would leave none to work with, so the pool
 * grows, as far as the budget allows, and shrinks again as they come back.
 */
#ifndef PEN_ENGINE_POOL_H
#define PEN_ENGINE_POOL_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "base/mem.h"
#include "base/ring.h"
#include "engine/emit_crop.h"
#include "format/format.h"

enum { PEN_LANE_ROWS, PEN_LANE_UNIT, PEN_LANE_PLAN };

struct pen_live; /* fetch_units.h */

/* What a ring carries: the first member of batches, grains and units. */
struct pen_task {
	struct pen_pooled *batch;
	struct pen_live *live;
	uint32_t first, last; /* rows of a grain */
};

/* A row that failed. */
struct pen_row_fault {
	uint32_t row;
	struct pen_err err;
};

struct pen_pooled {
	struct pen_batch pub; /* must be first */
	struct pen_pool *pool;
	atomic_uint refs;
	bool out; /* with the consumer; under pool->lock */
	struct pen_task plan;
	struct pen_task *grain;
	uint32_t ngrains;

	struct pen_block mem;
	/* bytes of mem counted against the budget; read by other threads */
	atomic_size_t accounted;
	struct pen_tensor *tensor;
	uint64_t *ids;
	size_t *field_off; /* per field: offset in mem */
	/* variable shapes, else NULL: */
	int64_t *offsets[PEN_MAX_FIELDS]; /* cap + 1 */
	int64_t *shapes[PEN_MAX_FIELDS];  /* cap * ndim */
	int64_t *dims[PEN_MAX_FIELDS];	  /* padded: of this batch's rows */
	size_t row_bytes[PEN_MAX_FIELDS]; /* padded */
	/* packed batches, else NULL: per row, the elements of its sample before
	 * it (PEN_WHOLE: it is the entire sample), and whether the sample needs
	 * a hold of its own */
	int64_t *skip;
	bool *extra;
	/* shared units, else NULL: nrows x units_per_sample */
	struct pen_live **live;

	struct pen_pooled *next_parked; /* next batch whose plan waits */
	uint32_t nrows;			/* as planned */
	atomic_uint left;    /* pieces not done; the last one delivers */
	atomic_uint waiting; /* shared units still missing, + 1 for plan */
	atomic_bool faulty;
	atomic_bool gaps; /* some lists are shorter than planned */
	pthread_mutex_t fault_lock;
	struct pen_row_fault *fault; /* sorted by row; under fault_lock */
	uint32_t nfaults, fault_cap;
	bool fault_lost;    /* no memory to record one */
	struct pen_err err; /* delivered instead of the batch when code != 0 */
	bool fatal;	    /* ... and nothing follows it */
	bool counts;	    /* it counts down the batches of its epoch */
	bool last;	    /* cut by length: the last of its epoch */
};

struct pen_pool {
	pthread_mutex_t lock;
	struct pen_ring *ring; /* where a freed batch goes; NULL: stopped */
	bool closed;	       /* the loader is gone */
	uint32_t nbatches, nout;
	uint32_t usual; /* maximum not held by the consumer */
	/* free batches needed to wake a worker */
	atomic_uint_fast32_t enough;
	uint32_t cap; /* rows */
	size_t nlive; /* room for shared units in a batch */
	uint32_t nfields;
	struct pen_field field[PEN_MAX_FIELDS];
	struct pen_crop crop;
	bool hide[PEN_MAX_FIELDS]; /* excluded by fields= */
	struct pen_fill fill[PEN_MAX_FIELDS];
	/* packed batches: number and length of rows (0: not packed), the field
	 * that the extra tensors are named after, and their names */
	uint32_t rows, pack, packed;
	char more[2][80];
	bool mlock;
	struct pen_pooled **batch;
	struct pen_pooled *parked; /* plans that wait for memory */
	uint64_t parked_at;	   /* since when the first one waits */
	atomic_uint_fast64_t memory_wait_ns;
	/* the memory account of the entire loader */
	atomic_uint_fast64_t bytes, peak;
};

/* shared: with room for live units (units_per_sample per row). Creates no
 * batches: the caller sets more, and then calls pen__pool_fill(). */
int pen__pool_new(struct pen_pool **out, const struct pen_format *f,
		  uint32_t rows, bool shared, struct pen_err *err);
int pen__pool_fill(struct pen_pool *, uint32_t nbatches, struct pen_err *err);
/* The loader is done with it; the last batch returned frees it. */
void pen__pool_close(struct pen_pool *);
void pen__pool_account(struct pen_pool *, int64_t bytes);
/* Puts every batch the consumer does not hold into the plan lane. */
void pen__pool_start(struct pen_pool *, struct pen_ring *);
void pen__pool_stop(struct pen_pool *);
/* Makes sure that a batch can come; PEN_ENOMEM: the consumer holds them all,
 * and one more would exceed the budget. */
int pen__pool_supply(struct pen_pool *, uint64_t budget, struct pen_err *err);
/* Hands the batch to the consumer, with one reference. */
void pen__pool_deliver(struct pen_pooled *);
/* park(): the plan waits for memory. unpark(): retries all plans that wait. */
void pen__pool_park(struct pen_pooled *);
void pen__pool_unpark(struct pen_pool *);
/* Queues the grains of a planned batch whose units have arrived. */
void pen__batch_queue(void *ring, struct pen_pooled *);
/* Makes mem at least this big and counts it. */
int pen__pool_reserve(struct pen_pooled *, size_t bytes, struct pen_err *err);
/* Records a failed row; any thread. */
void pen__batch_fault(struct pen_pooled *, uint32_t row,
		      const struct pen_err *err);

/* Copies a row as emitted into its padded place and pads the rest; copies a
 * piece of a sample of n bytes. */
void pen__pad_row(const struct pen_pooled *, uint32_t field, uint32_t row,
		  const void *src);
void pen__copy_piece(const struct pen_pooled *, uint32_t field, uint32_t row,
		     const void *src, size_t n);
/* All rows of a packed batch are done: pads what is between them. */
void pen__pack_finish(struct pen_pooled *);

/* The row is assembled elsewhere first: to be padded or cropped, or because it
 * is not delivered. */
static inline bool pen__staged(const struct pen_pool *p, uint32_t field)
{
	return p->field[field].layout == PEN_PADDED ||
	       (p->crop.on && p->crop.field == field) || p->hide[field];
}

/* ... or because the row is a piece of a sample. */
static inline bool pen__is_piece(const struct pen_pooled *b, uint32_t field,
				 uint32_t row)
{
	return b->pool->field[field].layout == PEN_PACKED && b->skip[row] >= 0;
}

/* Room for it there, aligned for the next field. */
static inline size_t pen__stage_bytes(const struct pen_field *of_format)
{
	return (of_format->max_bytes + 63) & ~(size_t)63;
}

/* A row's bytes within a field; slower where rows differ in size. */
uint8_t *pen__batch_row_of(const struct pen_pooled *b, uint32_t field,
			   uint32_t row, size_t *len);
static inline uint8_t *pen__batch_row(const struct pen_pooled *b,
				      uint32_t field, uint32_t row, size_t *len)
{
	const struct pen_field *f = &b->pool->field[field];

	if (f->layout != PEN_DENSE)
		return pen__batch_row_of(b, field, row, len);
	*len = f->max_bytes;
	return (uint8_t *)b->mem.p + b->field_off[field] +
	       (size_t)row * f->max_bytes;
}

#endif
