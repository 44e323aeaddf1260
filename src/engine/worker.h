/*
 * The internals of a worker, which the stages share: a sample being made, a
 * read in flight, and the accounting of the worker's time. worker.c loops and
 * calls the stages; a stage calls only those after it: fetch.h, unpack.h,
 * emit.h, finish.h.
 */
#ifndef PEN_ENGINE_WORKER_H
#define PEN_ENGINE_WORKER_H

#include "base/clock.h"
#include "engine/loader.h"

/* A sample that its format makes, once all its units have arrived. */
struct pen_job {
	struct pen_pooled *batch;
	uint64_t k;
	uint32_t row, object;
	uint32_t left; /* reads in flight */
	struct pen_unit *unit;
	struct pen_span *data;
	struct pen_slot **slot; /* per unit: released after emit */
	struct pen_err err;	/* code != 0: this sample failed */
	struct pen_job *next;
};

/* A read in flight. */
struct pen_slot {
	struct pen_io io;
	struct pen_unit unit;
	struct pen_pooled *batch;
	struct pen_job *job;
	struct pen_live *live;
	uint8_t *dst;	/* where the bytes belong; NULL: they stay here */
	size_t skew;	/* bytes before them, read for alignment */
	size_t raw_len; /* counted in the worker's raw_bytes */
	bool drained;	/* the bytes are used as they come and not kept */
	uint64_t at;	/* bytes of the unit read before this */
	size_t piece;	/* bytes of the unit in this read */
	uint32_t crc;	/* running checksum */
	uint32_t row, nrows;
	uint32_t index; /* of the unit in its job */
	struct pen_block raw;
	struct pen_slot *next;
};

struct pen_worker {
	struct pen_meter meter;
	struct pen_loader *l;
	const struct pen_format *f;
	struct pen_queue *q;
	struct pen_scratch scratch;
	struct pen_slot *slot, *free;
	struct pen_slot **pending; /* per unit: a read that may grow */
	struct pen_slot *stalled, **stalled_end; /* the store was full */
	struct pen_slot *failed; /* failed before the store got them */
	struct pen_io **done;
	struct pen_job *job, *free_job;
	struct pen_block pad;  /* one row before it is padded */
	struct pen_block room; /* a unit while it is unpacked */
	uint64_t raw_bytes;    /* in buffers of reads in flight */
	uint64_t raw_cap;      /* of all slots' buffers */
	uint32_t nslots, njobs, nfree, inflight;
	bool time_next;		   /* the next read is to be timed */
	struct pen_task rows;	   /* the current grain; batch NULL: none */
	struct pen_gather *gather; /* NULL: the data does not allow it */
	bool closed;
	uint32_t ndone; /* being completed: done[at] is next */
	volatile uint32_t at;
	/* of this round, passed on at its end: */
	uint64_t nreads, read_bytes;
	uint64_t inner_ns; /* of the current stage, counted as another */
	uint64_t reaped_at, timed_at;
	const struct pen_slot *timed; /* the read that is timed; NULL: none */
	uint32_t nrounds;
	uint64_t rows_ns, nrows;   /* rows issued, and their time */
	struct pen_pooled *filled; /* this batch got nfilled more pieces */
	uint32_t first_filled, nfilled;
	uint32_t unhooked; /* pieces the hook was not called for yet */
	void *dst[PEN_MAX_FIELDS];
	size_t dst_len[PEN_MAX_FIELDS], used[PEN_MAX_FIELDS];
};

/*
 * Accounts for a worker's time. A stage lasts from t0 until now, without the
 * stages inside it; an inner one started at t0, when inner_ns was `before`.
 * Stages cover rounds of many rows: there is no clock call per row.
 */
static inline uint64_t pen__stage_end(struct pen_worker *w,
				      atomic_uint_fast64_t *to, uint64_t t0)
{
	const uint64_t now = pen__now_ns();

	pen__meter_add(to, now - t0 - w->inner_ns);
	w->inner_ns = 0;
	return now;
}

static inline void pen__inner_end(struct pen_worker *w,
				  atomic_uint_fast64_t *to, uint64_t t0,
				  uint64_t before)
{
	const uint64_t all = pen__now_ns() - t0;

	pen__meter_add(to, all - (w->inner_ns - before));
	w->inner_ns = before + all;
}

/* The stage that makes rows from what was read. */
static inline atomic_uint_fast64_t *pen__making(struct pen_worker *w)
{
	return w->f->decodes && !w->l->drops ? &w->meter.decode_ns
					     : &w->meter.emit_ns;
}

/* Called before anything is handed on, so that the statistics include the reads
 * of every delivered batch. */
static inline void pen__pass_counts(struct pen_worker *w)
{
	pen__meter_add(&w->meter.nreads, w->nreads);
	pen__meter_add(&w->meter.read_bytes, w->read_bytes);
	w->nreads = w->read_bytes = 0;
}

#endif
