/*
 * Batches of similar length, in random order: a global shuffle; then windows of
 * some batches, each sorted by length and cut into batches, which are shuffled.
 * The cost of padding drops to the differences of length within a batch, at the
 * price of samples of similar length coming together.
 *
 * Every element comes exactly once per epoch. What is left over when a window
 * is cut has any length, and comes last, so that batches start where they
 * should. The order depends on the batch size, not on the number of ranks;
 * `together` keeps batches of similar length next to one another, for ranks
 * that wait for the longest. Memory is some numbers per element of a window.
 */
#include "sampler/sampler.h"

#include <string.h>

#include "base/mem.h"
#include "base/rng.h"
#include "base/sort.h"

#define MOST ((uint64_t)1 << 28) /* elements of a window */

/* A batch of the sorted window. */
struct run {
	uint32_t from, n;
};

struct bucket {
	uint64_t window, together; /* options */

	uint64_t size; /* elements of a window */
	uint64_t *id, *key, *out;
	struct run *run; /* batches in the order they were cut */
	uint32_t *start; /* of batches as they come, and the end of the last */
	uint32_t nbatches;

	uint64_t epoch, cur; /* the current window, once ready */
	bool ready;
	struct pen_perm perm; /* of the epoch */
};

static const struct pen_opt options[] = {
	{ .name = "window",
	  .type = PEN_OPT_COUNT,
	  .off = offsetof(struct bucket, window),
	  .dflt = "100",
	  .help = "number of batches sorted by length together",
	  .min = 1,
	  .max = 1e9 },
	{ .name = "together",
	  .type = PEN_OPT_COUNT,
	  .off = offsetof(struct bucket, together),
	  .dflt = "1",
	  .help = "number of batches of similar length in a row (the number of "
		  "ranks)",
	  .min = 1,
	  .max = 1e9 },
	{ .name = NULL },
};

static uint64_t order_of(const struct pen_sampler *s)
{
	const struct pen_population *p = &s->pop;
	const struct bucket *b = s->priv;
	uint64_t h = pen__rng_key(b->size, p->tokens);

	if (!p->tokens)
		return pen__rng_key(h, p->batch);
	return pen__rng_key(pen__rng_key(h, p->most),
			    p->padded ? p->multiple + 1 : 0);
}

static int bucket_open(struct pen_sampler *s, struct pen_err *err)
{
	struct bucket *b = s->priv;

	if (!s->pop.lengths)
		return pen__fail(err, P_MISSING_SETTING, "bucket",
				 "sorts by length; set lengths=");
	if (!s->pop.batch)
		s->pop.batch = 1;
	if (b->window % b->together)
		b->window += b->together - b->window % b->together;
	b->size = b->window * s->pop.batch;
	if (b->size > s->pop.n)
		b->size = s->pop.n;
	if (b->size > MOST)
		return pen__fail(err, P_BAD_VALUE, "window",
				 "a window of %llu samples is too large to "
				 "sort; lower it",
				 (unsigned long long)b->size);
	b->id = pen__alloc(b->size, sizeof(*b->id));
	b->key = pen__alloc(b->size, sizeof(*b->key));
	b->out = pen__alloc(b->size, sizeof(*b->out));
	b->run = pen__alloc(b->size, sizeof(*b->run));
	b->start = pen__alloc(b->size + 1, sizeof(*b->start));
	if (!b->id || !b->key || !b->out || !b->run || !b->start)
		return pen__fail_nomem(err, "window", b->size * 36);
	s->order = order_of(s);
	return 0;
}

static void bucket_close(struct pen_sampler *s)
{
	struct bucket *b = s->priv;

	pen__free(b->id);
	pen__free(b->key);
	pen__free(b->out);
	pen__free(b->run);
	pen__free(b->start);
}

/* End of the batch that starts at `from`: sorted, the last is the longest. */
static uint32_t run_end(const struct pen_sampler *s, uint32_t from, uint32_t n)
{
	const struct pen_population *p = &s->pop;
	const struct bucket *b = s->priv;
	const uint64_t to = p->multiple > 1 ? p->multiple : 1;
	uint64_t sum = 0;
	uint32_t i = from;

	for (; i < n && i - from < p->most; i++) {
		uint64_t len = b->key[i] >> 32;

		len += len % to ? to - len % to : 0;
		sum = p->padded ? len * (i - from + 1) : sum + len;
		if (sum > p->tokens && i > from)
			break;
	}
	return i;
}

/* Cuts the sorted window into batches; *rest is what does not fill a batch,
 * from a random place among them. Returns the number of batches. */
static uint32_t cut_runs(const struct pen_sampler *s, uint32_t n, uint64_t key,
			 struct run *rest)
{
	const uint32_t batch = s->pop.batch;
	struct bucket *b = s->priv;
	uint32_t runs = 0, at = 0;

	*rest = (struct run){ n, 0 };
	if (!s->pop.tokens) {
		rest->n = n % batch;
		rest->from = batch * (uint32_t)pen__mulhi(pen__rng_at(key, 0),
							  n / batch + 1);
	}
	while (at < n) {
		uint32_t end = at + batch;

		if (rest->n && at == rest->from) {
			at += rest->n;
			continue;
		}
		if (s->pop.tokens)
			end = run_end(s, at, n);
		b->run[runs++] = (struct run){ at, end - at };
		at = end;
	}
	return runs;
}

static void put(struct bucket *b, const struct run *r)
{
	const uint32_t to = b->start[b->nbatches];

	for (uint32_t i = 0; i < r->n; i++)
		b->out[to + i] = b->id[(uint32_t)b->key[r->from + i]];
	b->start[++b->nbatches] = to + r->n;
}

/* Shuffled groups of batches, then batches without a group, then the rest. */
static void put_all(struct bucket *b, uint32_t runs, const struct run *rest,
		    uint64_t key)
{
	const uint64_t groups = runs / b->together;
	struct pen_perm p;

	b->nbatches = 0;
	b->start[0] = 0;
	if (groups)
		pen__perm_init(&p, groups, key, 1);
	for (uint64_t g = 0; g < groups; g++) {
		const uint64_t from = pen__perm_at(&p, g) * b->together;

		for (uint64_t i = 0; i < b->together; i++)
			put(b, &b->run[from + i]);
	}
	for (uint64_t i = groups * b->together; i < runs; i++)
		put(b, &b->run[i]);
	if (rest->n)
		put(b, rest);
}

static void enter(struct pen_sampler *s, uint64_t epoch, uint64_t w)
{
	struct bucket *b = s->priv;
	const uint64_t first = w * b->size, left = s->pop.n - first;
	const uint32_t n = (uint32_t)(left < b->size ? left : b->size);
	const uint64_t key = pen__rng_key(pen__rng_key(s->seed, epoch), w);
	struct run rest;

	if (b->ready && b->epoch == epoch && b->cur == w)
		return;
	if (!b->ready || b->epoch != epoch)
		pen__perm_init(&b->perm, s->pop.n, s->seed, epoch);
	pen__perm_range(&b->perm, first, n, b->id);
	for (uint32_t i = 0; i < n; i++)
		b->key[i] = (uint64_t)s->pop.lengths[b->id[i]] << 32 | i;
	pen__sort_high(b->key, b->out, n);
	put_all(b, cut_runs(s, n, key, &rest), &rest, key);
	b->epoch = epoch;
	b->cur = w;
	b->ready = true;
}

static int bucket_ids(struct pen_sampler *s, uint64_t epoch, uint64_t pos,
		      size_t n, uint64_t *out, struct pen_err *err)
{
	const struct bucket *b = s->priv;

	(void)err;
	while (n) {
		const uint64_t in = pos % b->size;
		size_t now;

		enter(s, epoch, pos / b->size);
		now = b->size - in < n ? (size_t)(b->size - in) : n;
		memcpy(out, b->out + in, now * sizeof(*out));
		out += now;
		pos += now;
		n -= now;
	}
	return 0;
}

/* Batches start in ascending order: binary search. */
static uint64_t bucket_end(struct pen_sampler *s, uint64_t epoch, uint64_t pos)
{
	const struct bucket *b = s->priv;
	const uint32_t in = (uint32_t)(pos % b->size);
	uint32_t lo = 0, hi;

	enter(s, epoch, pos / b->size);
	hi = b->nbatches;
	while (hi - lo > 1) {
		const uint32_t mid = lo + (hi - lo) / 2;

		if (b->start[mid] <= in)
			lo = mid;
		else
			hi = mid;
	}
	return pos - in + b->start[lo + 1];
}

const struct pen_sampler_ops pen__sampler_bucket = {
	.name = "bucket",
	.help = "shuffled batches of samples of similar length",
	.opts = options,
	.priv_size = sizeof(struct bucket),
	.by_length = true,
	.open = bucket_open,
	.close = bucket_close,
	.ids = bucket_ids,
	.batch_end = bucket_end,
};
