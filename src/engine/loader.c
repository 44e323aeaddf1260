/*
 * The loader: opens everything, starts and stops the workers, and hands out
 * batches in order. The hot path is elsewhere (plan, fetch, finish).
 */
#include "engine/loader.h"

#include <sched.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/rng.h"
#include "comm/comm.h"
#include "engine/decoded.h"
#include "engine/plan.h"
#include "store/tier.h"

#define FAST_NS 200000 /* a batch: too fast to wake a worker for each */

/* Do samples share units? locate() knows; the first sample of each distinct
 * layout represents the others. */
static bool shares_units(const struct pen_dataset *ds, struct pen_unit *u)
{
	const struct pen_format *f = ds->format;

	if (f->all_plain || f->shares)
		return f->shares;
	/* blobs are numbered in the order of the objects that have them */
	for (uint64_t b = 0, o = 0; o < ds->objs.nobj; o++) {
		if (ds->objs.obj[o].blob < b ||
		    (ds->ix.first && ds->ix.first[o] == ds->ix.first[o + 1]))
			continue;
		b = (uint64_t)ds->objs.obj[o].blob + 1;
		f->ops->locate(f, (uint32_t)o, 0, u);
		for (uint32_t i = 0; i < f->units_per_sample; i++)
			if (u[i].object != PEN_NO_OBJECT &&
			    (u[i].flags & PEN_UNIT_SHARED))
				return true;
	}
	return false;
}

static bool makes_chunks(const struct pen_loader *l)
{
	const struct pen_format *f = l->ds->format;

	return l->sampler->chunk > 1 && f->uniform && !l->choice.list &&
	       l->choice.step == 1 && l->choice.start == 0 &&
	       !l->ds->store->lends && l->ds->ix.pub.per_object != 1;
}

/* True if it does not help to read the neighbours of a sample with it. */
static bool reads_apart(const struct pen_loader *l)
{
	const struct pen_sampler *s = l->sampler;

	return l->ds->store->lends || (!s->ops->in_order && !s->window);
}

/* A block shuffle uses every sample once, and a unit at the border of two
 * chunks is needed by two blocks. With other orders, and with ranks, it is not
 * known when all users of a unit have come. */
static bool waits_for_users(const struct pen_loader *l)
{
	return !l->chunked && l->sampler->chunk > 1 && l->sampler->window &&
	       l->world == 1 && !l->choice.list && l->choice.step == 1 &&
	       l->ds->format->ops->users;
}

static int open_units(struct pen_loader *l, struct pen_err *err)
{
	uint64_t cache = l->ds->spec->cache;

	if (!l->shared)
		return 0;
	if (cache > l->unit_budget / 2)
		cache = l->unit_budget / 2;
	if (pen__units_init(&l->units, l->pool,
			    2 * l->ds->format->units_per_sample, cache,
			    l->unit_most))
		return pen__fail_nomem(err, "unit table", 0);
	l->units.copied = l->room_limit;
	if (waits_for_users(l))
		l->units.later_bytes = l->budget / 8;
	return 0;
}

#define FAR_BATCH 4096u /* samples per request of a store that is far */

static void settle_settings(struct pen_loader *l)
{
	const struct pen_spec *s = l->ds->spec;
	/* a request goes to every rank, so a few large ones are better */
	uint32_t depth = l->ds->comm && l->ds->comm->size > 1 ? 256
							      : PEN_QUEUE_DEPTH;

	/* a batch is one request to each rank; the next one is on its way */
	if (l->ds->store->far)
		depth = s->batch_size < FAR_BATCH ? 2 * (uint32_t)s->batch_size
						  : 2 * FAR_BATCH;
	l->batch = (uint32_t)s->batch_size;
	l->world = s->world > 0 ? (uint64_t)s->world : 1;
	l->rank = (uint64_t)s->rank;
	l->nthreads = s->threads > 0 ? (uint32_t)s->threads : pen__cpus();
	l->depth = s->queue_depth > 0 ? (uint32_t)s->queue_depth : depth;
	l->drops = !s->decode;
	l->tail = s->drop_last ? PEN_TAIL_DROP : (enum pen_tail)s->tail;
	if (l->tail == PEN_TAIL_AUTO)
		l->tail = l->world > 1 ? PEN_TAIL_PAD : PEN_TAIL_KEEP;
}

static int open_steps(struct pen_loader *l, struct pen_err *err)
{
	const struct pen_spec *s = l->ds->spec;
	int rc = pen__choice_init(&l->choice, l->ds, err);

	if (!rc)
		rc = l->steps->open(l, err);
	if (s->pad_to != PEN_PAD_AUTO)
		l->pad_batch = s->pad_to == PEN_PAD_BATCH;
	return rc;
}

static void name_packed(struct pen_loader *l)
{
	static const char *const more[] = { "segment", "position" };
	struct pen_pool *p = l->pool;

	p->pack = l->by_length.pack;
	p->rows = l->by_length.rows;
	p->packed = l->by_length.lengths.field;
	for (int i = 0; p->pack && i < 2; i++)
		snprintf(p->more[i], sizeof(p->more[i]), "%s.%s",
			 l->ds->format->field[p->packed].name, more[i]);
}

/* Creates batches with the fields as delivered: cropped, converted, or none. */
static int make_pool(struct pen_loader *l, struct pen_err *err)
{
	struct pen_format *out = pen__alloc(1, sizeof(*out));
	struct pen_crop crop = { 0 };
	bool hide[PEN_MAX_FIELDS];
	uint32_t largest = 0;
	int rc;

	if (!out)
		return pen__fail_nomem(err, "loader", sizeof(*out));
	*out = *l->ds->format;
	rc = pen__fields_hide(l->ds, hide, err);
	for (uint32_t i = 0; i < out->nfields; i++) {
		if (hide[i]) {
			out->field[i].layout = PEN_DENSE;
			out->field[i].max_bytes = 0;
		}
		if (hide[largest] ||
		    out->field[i].max_bytes > out->field[largest].max_bytes)
			largest = i;
	}
	if (l->drops)
		out->nfields = 0;
	else if (!rc && hide[largest] &&
		 (l->ds->spec->cast || l->ds->spec->take.n))
		rc = pen__fail(err, P_CONFLICT, "fields",
			       "leaves no field for take= or cast=; include "
			       "one, or omit them");
	else if (!rc && out->paired &&
		 out->field[largest].layout != PEN_DENSE &&
		 (l->ds->spec->cast || l->ds->spec->take.n))
		rc = pen__fail(err, P_CONFLICT,
			       l->ds->spec->cast ? "cast" : "take",
			       "cannot change one of two fields that belong "
			       "together, such as CSR rows; use "
			       "format.output=dense, or omit it");
	else if (!rc && out->nfields)
		rc = pen__crop_init(&crop, &out->field[largest], l->ds->spec,
				    err);
	crop.field = largest;
	if (l->ds->label.on && !l->drops)
		out->field[out->nfields++] = l->ds->label.field;
	if (!rc)
		rc = pen__budget_settle(l, out, err);
	if (!rc)
		rc = pen__pool_new(&l->pool, out, l->places, l->shared, err);
	if (!rc) {
		pen__fill_init(&crop.fill, &out->pad[largest], crop.to);
		l->pool->crop = crop;
		l->pool->mlock = l->ds->spec->mlock;
		memcpy(l->pool->hide, hide, sizeof(hide));
		name_packed(l);
		rc = pen__pool_fill(l->pool, l->prefetch + 1, err);
	}
	pen__free(out);
	return rc;
}

static int open_pool(struct pen_loader *l, struct pen_err *err)
{
	const struct pen_format *f = l->ds->format;
	int rc;

	l->plan_units =
		pen__calloc(f->units_per_sample, sizeof(*l->plan_units));
	l->skipped = pen__calloc(PEN_SKIPPED_KEPT, sizeof(*l->skipped));
	l->skipped_id = pen__calloc(PEN_SKIPPED_KEPT, sizeof(*l->skipped_id));
	if (!l->plan_units || !l->skipped || !l->skipped_id)
		return pen__fail_nomem(err, "loader", sizeof(*l));
	l->ds->format->apart = reads_apart(l);
	l->ds->format->narrow = true;
	pen__decoded_under(l->ds->format)->apart = l->ds->format->apart;
	pen__decoded_under(l->ds->format)->narrow = true;
	l->chunked = makes_chunks(l);
	l->shared = l->chunked || shares_units(l->ds, l->plan_units);
	rc = make_pool(l, err);
	if (rc)
		return rc;
	l->unit_lane = l->batch * f->units_per_sample;
	l->unit_lane = l->unit_lane < 16384 ? 32768 : l->unit_lane * 2;
	rc = open_units(l, err);
	return rc ? rc : pen__workers_new(l, err);
}

/* Queues are created at each start: cheap, and nothing is left over. */
static int start(struct pen_loader *l, struct pen_cursor from,
		 struct pen_err *err)
{
	uint32_t n = l->prefetch + 1;
	uint64_t rows = (uint64_t)n * l->batch;
	uint32_t cap = l->shared && rows < 2 * (uint64_t)l->unit_lane
			       ? l->unit_lane * 2
			       : (uint32_t)rows;
	int rc;

	if (pen__ring_new(&l->ring, cap < n ? n : cap, PEN_LANE_PLAN) ||
	    pen__order_new(&l->order, n))
		return pen__fail_nomem(err, "queues", cap * sizeof(void *));
	pen__plan_seek(l, from);
	pen__barrier_set(l, from.epoch);
	l->taken = from;
	/* a state saved after the last epoch has no epoch left */
	l->ended = !l->steps->comes(l, from.epoch);
	l->left = l->ended ? 0 : l->steps->left(l, from.pos);
	l->stop.code = 0;
	rc = pen__team_start(&l->team, l->nthreads, "pen-worker",
			     pen__worker_run, l, err);
	if (!rc)
		pen__pool_start(l->pool, l->ring);
	return rc;
}

static void stop(struct pen_loader *l)
{
	atomic_store(&l->stopping, true);
	if (l->pool)
		pen__pool_stop(l->pool);
	if (l->ring)
		pen__ring_close(l->ring);
	pen__team_join(l->team);
	l->team = NULL;
	pen__ring_free(l->ring);
	pen__order_free(l->order);
	l->ring = NULL;
	l->order = NULL;
	l->at_barrier = NULL;
	atomic_store(&l->planned, 0);
	atomic_store(&l->unit_tasks, 0);
	atomic_store(&l->stopping, false);
	pen__units_fini(&l->units);
}

uint64_t pen__loader_files_ns(const struct pen_loader *l)
{
	const struct pen_store *st = l->ds->store;

	while (st->under)
		st = st->under;
	return atomic_load(&st->open_ns);
}

static int fill(struct pen_loader *l, const struct pen_spec *spec,
		struct pen_err *err)
{
	int rc = pen__spec_check(spec, err);

	if (rc)
		return pen__dataset_refuse(spec, rc, err);
	rc = pen__dataset_open(&l->ds, spec, err);
	if (!rc)
		rc = pen__spec_check_store(l->ds->spec, l->ds->store, err);
	if (rc)
		return rc;
	l->open_ns = pen__now_ns() - l->open_at;
	l->open_cpu_ns = pen__cpu_ns();
	l->files_ns = pen__loader_files_ns(l);
	if (l->ds->spec->rank >= l->ds->spec->world)
		return pen__fail(err, P_BAD_VALUE, "rank",
				 "%lld is out of range; with this world=, "
				 "ranks are 0 to %lld",
				 (long long)l->ds->spec->rank,
				 (long long)l->ds->spec->world - 1);
	settle_settings(l);
	rc = pen__shapes_settle(l, err);
	if (!rc)
		rc = open_steps(l, err);
	if (!rc)
		rc = open_pool(l, err);
	if (!rc)
		rc = start(l, (struct pen_cursor){ 0, 0 }, err);
	return rc;
}

static int open_loader(struct pen_loader **out, const struct pen_spec *spec,
		       const struct pen_steps *steps, struct pen_err *err)
{
	struct pen_loader *l = pen__calloc(1, sizeof(*l));
	int rc;

	if (!l)
		return pen__dataset_refuse(
			spec, pen__fail_nomem(err, "loader", sizeof(*l)), err);
	pthread_mutex_init(&l->lock, NULL);
	pen__hist_init(&l->wait);
	l->open_at = pen__now_ns();
	l->hook = spec->hook;
	l->steps = steps;
	rc = fill(l, spec, err);
	/* all ranks of a job open, or none */
	if (l->ds && l->ds->comm)
		rc = pen__comm_agree(l->ds->comm, rc, err);
	if (rc) {
		pen_loader_close(l);
		return rc;
	}
	*out = l;
	return 0;
}

PEN_API int pen_loader_open(struct pen_loader **out,
			    const struct pen_spec *spec, struct pen_err *err)
{
	return open_loader(out, spec,
			   spec->batch_tokens || spec->pack
				   ? &pen__steps_by_length
				   : &pen__steps_sampled,
			   err);
}

PEN_API int pen_loader_open_asked(struct pen_loader **out,
				  const struct pen_spec *spec,
				  struct pen_err *err)
{
	return open_loader(out, spec, &pen__steps_asked, err);
}

PEN_API void pen_loader_close(struct pen_loader *l)
{
	if (!l)
		return;
	atomic_store(&l->closing, true);
	if (l->order)
		pen__order_close(l->order);
	while (atomic_load(&l->in_next))
		sched_yield();
	stop(l);
	pen__barrier_leave(l);
	pen__workers_free(l);
	pen__pool_close(l->pool);
	l->steps->close(l);
	pen__sampler_close(l->sampler);
	pen__choice_fini(&l->choice);
	pen__free(l->plan_units);
	pen__free(l->skipped);
	pen__free(l->skipped_id);
	pen_dataset_close(l->ds);
	pthread_mutex_destroy(&l->lock);
	pen__free(l);
}

/* Ends an epoch with PEN_END; the next call continues. Where ranks wait for
 * each other, a caller that does not want to wait is told so once: Python then
 * releases its lock, which another of its threads may need before the other
 * ranks arrive. */
static int end_epoch(struct pen_loader *l, int64_t ns, struct pen_err *err)
{
	struct pen_err why = { 0 };

	if (l->ended)
		return PEN_END;
	if (!ns && l->barrier && !l->barrier_told) {
		l->barrier_told = true;
		return PEN_AGAIN;
	}
	l->taken = (struct pen_cursor){ l->taken.epoch + 1, 0 };
	l->left = l->steps->left(l, 0);
	l->ended = !l->left || !l->steps->comes(l, l->taken.epoch);
	if (l->ended)
		l->left = 0;
	if (!l->ended && pen__barrier_pass(l, &why)) {
		l->stop = why;
		if (err)
			*err = why;
		return why.code;
	}
	return PEN_END;
}

/* *out is NULL if no batch came within ns (negative: no limit), or if the
 * loader is closing. */
static int wait_batch(struct pen_loader *l, int64_t ns, struct pen_pooled **out,
		      struct pen_err *err)
{
	uint64_t t0 = pen__now_ns(), t1;
	struct pen_pooled *b;
	unsigned ready = 0;
	int rc;

	b = pen__order_get_within(l->order, 0, &ready);
	if (!b) {
		rc = pen__pool_supply(l->pool, l->budget, err);
		if (rc)
			return rc;
		pen__ring_rouse(l->ring);
		if (ns)
			b = pen__order_get_within(l->order, ns, NULL);
	}
	*out = b;
	t1 = pen__now_ns();
	l->waited_ns += t1 - t0;
	if (!b)
		return 0;
	atomic_store_explicit(
		&l->pool->enough,
		pen__order_pace_ns(l->order) < FAST_NS ? l->pool->usual / 4 : 0,
		memory_order_relaxed);
	pen__hist_add(&l->wait, l->waited_ns);
	l->wait_ns += l->waited_ns;
	l->waited_ns = 0;
	l->ready_sum += ready;
	if (!l->first_batch_ns)
		l->first_batch_ns = t1 - l->open_at;
	return 0;
}

/* The batch is an error: nothing follows it, unless each batch was requested
 * separately. */
static int take_error(struct pen_loader *l, struct pen_pooled *b,
		      struct pen_err *err)
{
	int code = b->err.code;

	if (err)
		*err = b->err;
	if (b->fatal) {
		l->stop = b->err;
		return code;
	}
	l->left--;
	pen__pool_deliver(b);
	pen_batch_unref(&b->pub);
	return code;
}

static int take(struct pen_loader *l, int64_t ns, struct pen_batch **out,
		struct pen_err *err)
{
	struct pen_pooled *b;
	bool empty;
	int rc;

	do {
		if (!l->left)
			return end_epoch(l, ns, err);
		rc = wait_batch(l, ns, &b, err);
		if (rc)
			return rc;
		if (!b && !atomic_load(&l->closing))
			return PEN_AGAIN;
		if (!b)
			return pen__fail(err, P_CLOSED, "loader",
					 "the loader is closed");
		if (b->err.code)
			return take_error(l, b, err);
		l->left -= b->counts;
		/* an epoch without any batch ends all epochs */
		if (b->last && !b->pub.end)
			l->ended = true;
		l->taken.pos = b->pub.end;
		pen__pool_deliver(b);
		/* no share of a short tail, or all rows skipped */
		empty = !b->nrows;
		if (empty)
			pen_batch_unref(&b->pub);
	} while (empty);
	l->nbatches++;
	l->nsamples += b->nrows;
	for (uint32_t i = 0; i < b->pub.ntensors; i++)
		l->payload_bytes += b->tensor[i].nbytes;
	*out = &b->pub;
	return 0;
}

static int next_within(struct pen_loader *l, int64_t ns, struct pen_batch **out,
		       struct pen_err *err)
{
	int rc;

	atomic_fetch_add(&l->in_next, 1);
	if (atomic_load(&l->closing)) {
		rc = pen__fail(err, P_CLOSED, "loader", "the loader is closed");
	} else if (l->stop.code) {
		if (err)
			*err = l->stop;
		rc = l->stop.code;
	} else {
		rc = take(l, ns, out, err);
	}
	atomic_fetch_sub(&l->in_next, 1);
	return rc;
}

PEN_API int pen_loader_next(struct pen_loader *l, struct pen_batch **out,
			    struct pen_err *err)
{
	return next_within(l, -1, out, err);
}

PEN_API int pen_loader_next_within(struct pen_loader *l, uint64_t ns,
				   struct pen_batch **out, struct pen_err *err)
{
	return next_within(l, ns < INT64_MAX ? (int64_t)ns : INT64_MAX, out,
			   err);
}

PEN_API const struct pen_dataset *pen_loader_dataset(const struct pen_loader *l)
{
	return l->ds;
}

PEN_API uint64_t pen_loader_nbatches(const struct pen_loader *l)
{
	/* the count is cached */
	return l->steps->count((struct pen_loader *)(uintptr_t)l,
			       l->taken.epoch);
}

/* Hashes what the order depends on, except epoch and position. */
static uint64_t order_hash(const struct pen_loader *l)
{
	const struct pen_spec *s = l->ds->spec;
	struct pen_index_key k = { s->seed, l->choice.n };

	pen__index_key_add(&k, pen__spec_sampler(s));
	for (size_t i = 0; i < s->for_sampler.n; i++) {
		pen__index_key_add(&k, s->for_sampler.kv[i].key);
		pen__index_key_add(&k, s->for_sampler.kv[i].value);
	}
	if (s->subset)
		pen__index_key_add(&k, s->subset);
	if (s->weights)
		pen__index_key_add(&k, s->weights);
	if (s->labels)
		pen__index_key_add(&k, s->labels);
	if (s->lengths)
		pen__index_key_add(&k, s->lengths);
	if (!s->reshuffle)
		pen__index_key_add(&k, "one order");
	/* the window may depend on the batch size; sorted paths: 0 */
	return pen__mix64(k.a ^ k.b ^ l->ds->ix.pub.nsamples ^
			  pen__mix64(l->ds->objs.order) ^
			  pen__mix64(l->sampler->window) ^ l->sampler->order);
}

PEN_API void pen_loader_state(const struct pen_loader *l, struct pen_state *out)
{
	*out = (struct pen_state){
		.version = 1,
		.seed = l->ds->spec->seed,
		.epoch = l->taken.epoch,
		.position = l->taken.pos,
		.length = l->sampler->length,
		.order = order_hash(l),
	};
}

PEN_API int pen_loader_restore(struct pen_loader *l, const struct pen_state *st,
			       struct pen_err *err)
{
	struct pen_err why = { 0 };
	int rc;

	if (!l->steps->comes(l, 0))
		return pen__fail(err, P_BAD_CALL, "state",
				 "cannot be restored: this loader has no order "
				 "of its own");
	if (st->version != 1)
		return pen__fail(err, P_WRONG_STATE, "state",
				 "version %u is not supported; this program "
				 "reads version 1",
				 st->version);
	if (st->length != l->sampler->length || st->order != order_hash(l) ||
	    st->position > st->length)
		return pen__fail(err, P_WRONG_STATE, "state",
				 "was saved with a different data set, order "
				 "of paths, sampler, subset or seed");
	stop(l);
	rc = open_units(l, &why);
	if (!rc)
		rc = start(l, (struct pen_cursor){ st->epoch, st->position },
			   &why);
	if (rc) { /* next() returns the error until a restore succeeds */
		stop(l);
		l->stop = why;
		if (err)
			*err = why;
	}
	return rc;
}

PEN_API int pen_loader_finish(struct pen_loader *l, struct pen_err *err)
{
	return pen__barrier_pass(l, err);
}
