/* See pool.h. The only lock here guards which batches the consumer holds. */
#include "engine/pool.h"

#include <string.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/show.h"

void pen__pool_account(struct pen_pool *p, int64_t bytes)
{
	uint64_t now =
		atomic_fetch_add(&p->bytes, (uint64_t)bytes) + (uint64_t)bytes;
	uint64_t peak = atomic_load(&p->peak);

	while (now > peak && (int64_t)now > 0 &&
	       !atomic_compare_exchange_weak(&p->peak, &peak, now))
		;
}

static void batch_free(struct pen_pooled *b)
{
	if (!b)
		return;
	pen__pool_account(b->pool, -(int64_t)b->accounted);
	for (uint32_t f = 0; f < b->pool->nfields; f++) {
		pen__free(b->offsets[f]);
		pen__free(b->shapes[f]);
		pen__free(b->dims[f]);
	}
	pen__free(b->skip);
	pen__free(b->extra);
	pthread_mutex_destroy(&b->fault_lock);
	pen__block_fini(&b->mem);
	pen__free(b->tensor);
	pen__free(b->ids);
	pen__free(b->field_off);
	pen__free(b->live);
	pen__free(b->grain);
	pen__free(b->fault);
	pen__free(b);
}

static void pool_free(struct pen_pool *p)
{
	for (uint32_t i = 0; p->batch && i < p->nbatches; i++)
		batch_free(p->batch[i]);
	pen__free(p->batch);
	pthread_mutex_destroy(&p->lock);
	pen__free(p);
}

static bool variable_init(struct pen_pooled *b, uint32_t f)
{
	const struct pen_field *d = &b->pool->field[f];
	size_t dims = d->ndim ? d->ndim : 1;

	b->shapes[f] =
		pen__calloc((size_t)b->pool->cap * dims, sizeof(int64_t));
	if (!b->shapes[f])
		return false;
	if (d->layout == PEN_PADDED) {
		b->dims[f] = pen__alloc(dims, sizeof(int64_t));
		if (!b->dims[f])
			return false;
		memcpy(b->dims[f], d->shape, dims * sizeof(int64_t));
		b->row_bytes[f] = d->max_bytes;
		return true;
	}
	b->offsets[f] = pen__calloc((size_t)b->pool->cap + 1, sizeof(int64_t));
	return b->offsets[f] != NULL;
}

static struct pen_pooled *batch_new(struct pen_pool *p)
{
	struct pen_pooled *b = pen__calloc(1, sizeof(*b));
	size_t n = (size_t)p->nfields + 2; /* packed batches have two more */
	bool ok;

	if (!b)
		return NULL;
	b->pool = p;
	pthread_mutex_init(&b->fault_lock, NULL);
	b->plan.batch = b;
	b->tensor = pen__calloc(n, sizeof(*b->tensor));
	b->ids = pen__calloc(p->cap, sizeof(*b->ids));
	b->field_off = pen__calloc(n, sizeof(*b->field_off));
	b->grain = pen__calloc(p->cap, sizeof(*b->grain));
	ok = b->tensor && b->ids && b->field_off && b->grain;
	if (ok && p->nlive) {
		b->live = pen__calloc(p->nlive, sizeof(*b->live));
		ok = b->live != NULL;
	}
	if (ok && p->pack) {
		b->skip = pen__alloc(p->cap, sizeof(*b->skip));
		b->extra = pen__calloc(p->cap, sizeof(*b->extra));
		ok = b->skip && b->extra;
	}
	for (uint32_t f = 0; ok && f < p->nfields; f++)
		if (p->field[f].layout != PEN_DENSE)
			ok = variable_init(b, f);
	if (!ok) {
		batch_free(b);
		return NULL;
	}
	b->pub.ids = b->ids;
	b->pub.tensors = b->tensor;
	return b;
}

int pen__pool_new(struct pen_pool **out, const struct pen_format *f,
		  uint32_t rows, bool shared, struct pen_err *err)
{
	struct pen_pool *p = pen__calloc(1, sizeof(*p));

	if (!p)
		return pen__fail_nomem(err, "batch pool", sizeof(*p));
	pthread_mutex_init(&p->lock, NULL);
	p->cap = rows;
	p->nfields = f->nfields;
	memcpy(p->field, f->field, sizeof(p->field));
	for (uint32_t i = 0; i < f->nfields; i++)
		pen__fill_init(&p->fill[i], &f->pad[i], f->field[i].dtype);
	if (shared && !pen__mul(rows, f->units_per_sample, &p->nlive)) {
		pool_free(p);
		return pen__fail_nomem(err, "batch pool", rows);
	}
	*out = p;
	return 0;
}

int pen__pool_fill(struct pen_pool *p, uint32_t nbatches, struct pen_err *err)
{
	p->batch = pen__calloc(nbatches, sizeof(struct pen_pooled *));
	for (uint32_t i = 0; p->batch && i < nbatches; i++) {
		p->batch[i] = batch_new(p);
		if (!p->batch[i])
			break;
		p->nbatches = p->usual = i + 1;
	}
	if (p->nbatches == nbatches)
		return 0;
	return pen__fail_nomem(err, "batch pool", (size_t)p->cap * nbatches);
}

void pen__pool_close(struct pen_pool *p)
{
	bool last;

	if (!p)
		return;
	pthread_mutex_lock(&p->lock);
	p->closed = true;
	p->ring = NULL;
	last = p->nout == 0;
	pthread_mutex_unlock(&p->lock);
	if (last)
		pool_free(p);
}

void pen__pool_start(struct pen_pool *p, struct pen_ring *ring)
{
	pthread_mutex_lock(&p->lock);
	p->ring = ring;
	p->parked = NULL;
	for (uint32_t i = 0; i < p->nbatches; i++)
		if (!p->batch[i]->out)
			pen__ring_push(ring, PEN_LANE_PLAN, &p->batch[i]->plan);
	pthread_mutex_unlock(&p->lock);
}

void pen__pool_stop(struct pen_pool *p)
{
	pthread_mutex_lock(&p->lock);
	p->ring = NULL;
	pthread_mutex_unlock(&p->lock);
}

void pen__pool_deliver(struct pen_pooled *b)
{
	pthread_mutex_lock(&b->pool->lock);
	b->out = true;
	b->pool->nout++;
	pthread_mutex_unlock(&b->pool->lock);
	atomic_store(&b->refs, 1);
}

/* Adds a batch. Batches differ in size if samples do; the first represents
 * all. */
static int grow(struct pen_pool *p, uint64_t budget)
{
	uint64_t one = p->batch[0]->accounted;
	struct pen_pooled **all, *b;

	if (atomic_load(&p->bytes) + one > budget)
		return PEN_ENOMEM;
	all = pen__realloc(p->batch, (size_t)p->nbatches + 1, sizeof(*all));
	if (!all)
		return PEN_ENOMEM;
	p->batch = all;
	b = batch_new(p);
	if (!b)
		return PEN_ENOMEM;
	all[p->nbatches++] = b;
	if (p->ring)
		pen__ring_push(p->ring, PEN_LANE_PLAN, &b->plan);
	return 0;
}

int pen__pool_supply(struct pen_pool *p, uint64_t budget, struct pen_err *err)
{
	/* one being filled and one planned, if there were two */
	uint32_t want = p->usual > 2 ? 2 : 1, nout;
	bool none = false;

	pthread_mutex_lock(&p->lock);
	while (!none && p->nbatches - p->nout < want)
		none = grow(p, budget) != 0;
	none = p->nbatches == p->nout;
	nout = p->nout;
	pthread_mutex_unlock(&p->lock);
	if (!none)
		return 0;
	return pen__fail(err, P_OVER_BUDGET, "memory",
			 "the caller holds all %u batches, and one more would "
			 "exceed the budget of %s; release some, copy what you "
			 "keep, or raise memory=",
			 nout, pen__show_bytes((double)budget).s);
}

/* More batches are free than the pool needs: frees one. */
static void drop(struct pen_pool *p, struct pen_pooled *b)
{
	uint32_t i = 0;

	while (p->batch[i] != b)
		i++;
	p->batch[i] = p->batch[--p->nbatches];
	batch_free(b);
}

void pen__batch_queue(void *ring, struct pen_pooled *b)
{
	uint32_t n = b->ngrains; /* b may be reused after its last push */
	void *some[64];

	for (uint32_t g = 0, k; g < n; g += k) {
		for (k = 0; k < 64 && g + k < n; k++)
			some[k] = &b->grain[g + k];
		if (n > 1)
			pen__ring_push_many(ring, PEN_LANE_ROWS, some, k);
		else /* this thread takes it itself, next */
			pen__ring_push_lazily(ring, PEN_LANE_ROWS, some[0], 2);
	}
}

void pen__pool_park(struct pen_pooled *b)
{
	struct pen_pool *p = b->pool;

	pthread_mutex_lock(&p->lock);
	if (!p->parked)
		p->parked_at = pen__now_ns();
	b->next_parked = p->parked;
	p->parked = b;
	pthread_mutex_unlock(&p->lock);
}

void pen__pool_unpark(struct pen_pool *p)
{
	struct pen_pooled *b, *next;

	pthread_mutex_lock(&p->lock);
	b = p->parked;
	p->parked = NULL;
	if (b)
		atomic_fetch_add(&p->memory_wait_ns,
				 pen__now_ns() - p->parked_at);
	for (; b && p->ring; b = next) {
		next = b->next_parked; /* b is another thread's once pushed */
		pen__ring_push(p->ring, PEN_LANE_PLAN, &b->plan);
	}
	pthread_mutex_unlock(&p->lock);
}

PEN_API void pen_batch_ref(struct pen_batch *pub)
{
	atomic_fetch_add(&((struct pen_pooled *)pub)->refs, 1);
}

PEN_API void pen_batch_unref(struct pen_batch *pub)
{
	struct pen_pooled *b = (struct pen_pooled *)pub;
	struct pen_pool *p;
	bool last;

	if (!b || atomic_fetch_sub(&b->refs, 1) != 1)
		return;
	p = b->pool;
	pthread_mutex_lock(&p->lock);
	b->out = false;
	p->nout--;
	if (p->nbatches - p->nout > p->usual)
		drop(p, b);
	else if (p->ring)
		pen__ring_push_lazily(
			p->ring, PEN_LANE_PLAN, &b->plan,
			(unsigned)atomic_load_explicit(&p->enough,
						       memory_order_relaxed));
	last = p->closed && p->nout == 0;
	pthread_mutex_unlock(&p->lock);
	if (last)
		pool_free(p);
}

uint8_t *pen__batch_row_of(const struct pen_pooled *b, uint32_t field,
			   uint32_t row, size_t *len)
{
	const struct pen_field *f = &b->pool->field[field];
	uint8_t *base = (uint8_t *)b->mem.p + b->field_off[field];
	const size_t size = pen_dtype_size(f->dtype);
	const int64_t *o = b->offsets[field];

	if (f->layout == PEN_PADDED) {
		*len = b->row_bytes[field];
		return base + (size_t)row * *len;
	}
	if (f->layout == PEN_PACKED)
		*len = (size_t)b->shapes[field][row] * size;
	else
		*len = (size_t)(o[row + 1] - o[row]) * size;
	return base + (size_t)o[row] * size;
}

int pen__pool_reserve(struct pen_pooled *b, size_t bytes, struct pen_err *err)
{
	if (b->mem.cap >= bytes)
		return 0;
	/* the old block is freed first, so that the two never coexist */
	pen__pool_account(b->pool, -(int64_t)b->accounted);
	b->accounted = 0;
	if (pen__block_reserve(&b->mem, bytes))
		return pen__fail_nomem(err, "batch", bytes);
	b->accounted = b->mem.cap;
	pen__pool_account(b->pool, (int64_t)b->accounted);
	if (b->pool->mlock && !pen__block_lock(&b->mem))
		return pen__fail(err, P_OVER_BUDGET, "mlock",
				 "cannot lock %s of memory; raise `ulimit -l` "
				 "or set mlock=false",
				 pen__show_bytes((double)b->mem.cap).s);
	return 0;
}

void pen__batch_fault(struct pen_pooled *b, uint32_t row,
		      const struct pen_err *err)
{
	uint32_t at;

	pthread_mutex_lock(&b->fault_lock);
	if (b->nfaults == b->fault_cap) {
		uint32_t cap = b->fault_cap ? b->fault_cap * 2 : 4;
		void *f = pen__realloc(b->fault, cap, sizeof(*b->fault));

		if (!f) {
			b->fault_lost = true;
			goto out;
		}
		b->fault = f;
		b->fault_cap = cap;
	}
	for (at = b->nfaults; at && b->fault[at - 1].row > row; at--)
		;
	if (at && b->fault[at - 1].row == row)
		goto out; /* a row with several units fails once */
	memmove(&b->fault[at + 1], &b->fault[at],
		(b->nfaults - at) * sizeof(*b->fault));
	b->fault[at] = (struct pen_row_fault){ row, *err };
	b->nfaults++;
out:
	atomic_store(&b->faulty, true);
	pthread_mutex_unlock(&b->fault_lock);
}
