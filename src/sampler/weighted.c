/*
 * Draws in proportion to given weights.
 *
 * With replacement every position is a draw of its own: Walker's alias table,
 * two random words, O(1). Without, an epoch is the order in which elements
 * arrive when element i arrives at an exponential time of rate weight[i]
 * (Efraimidis and Spirakis): each is drawn at most once, and the first draws
 * are distributed as successive draws by weight. That takes a sort an epoch.
 *
 * Weights that are negative, infinite or not numbers are refused, not mended.
 */
#include "sampler/sampler.h"

#include <math.h>
#include <stdlib.h>

#include "base/mem.h"
#include "base/rng.h"

/* Element i of a fair draw is kept when the coin is below `keep`. */
struct slot {
	uint64_t keep, other;
};

struct arrival {
	double time;
	uint64_t id;
};

struct weighted {
	bool replacement;
	uint64_t length;

	double largest; /* weights are used relative to it: no overflow */
	uint64_t npositive;
	struct slot *table;    /* with replacement */
	struct arrival *order; /* without: npositive of them */
	uint64_t epoch;	       /* of order, once ready */
	bool ready;
};

static const struct pen_opt options[] = {
	{ .name = "replacement",
	  .type = PEN_OPT_BOOL,
	  .off = offsetof(struct weighted, replacement),
	  .dflt = "true",
	  .help = "a sample may come more than once an epoch" },
	{ .name = "length",
	  .type = PEN_OPT_COUNT,
	  .off = offsetof(struct weighted, length),
	  .dflt = "0",
	  .help = "draws an epoch; 0 = as many as there are samples",
	  .min = 0,
	  .max = 1e18 },
	{ .name = NULL },
};

static int check_weights(struct pen_sampler *s, struct pen_err *err)
{
	struct weighted *w = s->priv;

	if (!s->pop.weights)
		return pen__fail(err, PEN_EINVAL, "weighted",
				 "needs a weight for every sample; give "
				 "weights=FILE.npy");
	for (uint64_t i = 0; i < s->pop.n; i++) {
		const double v = s->pop.weights[i];

		if (!(v >= 0) || isinf(v))
			return pen__fail(err, PEN_EINVAL, "weights",
					 "weight %llu is %g; weights are "
					 "finite and not negative",
					 (unsigned long long)i, v);
		if (v > w->largest)
			w->largest = v;
		w->npositive += v > 0;
	}
	if (!w->npositive)
		return pen__fail(err, PEN_EINVAL, "weights",
				 "all weights are 0: nothing can be drawn");
	return 0;
}

/* Shares of the mean, so that 1 fills a slot. */
static void to_shares(const struct pen_sampler *s, double *share)
{
	const struct weighted *w = s->priv;
	long double sum = 0;
	double scale;

	for (uint64_t i = 0; i < s->pop.n; i++) {
		share[i] = s->pop.weights[i] / w->largest;
		sum += share[i];
	}
	scale = (double)((long double)s->pop.n / sum);
	for (uint64_t i = 0; i < s->pop.n; i++)
		share[i] *= scale;
}

/*
 * Vose's pairing: slots with less than 1 are filled up from ones with more.
 * todo holds the small ones from its start and the large ones from its end.
 */
static void pair_up(struct slot *table, double *share, uint64_t *todo,
		    uint64_t n)
{
	uint64_t nsmall = 0, large = n;

	for (uint64_t i = 0; i < n; i++) {
		if (share[i] < 1)
			todo[nsmall++] = i;
		else
			todo[--large] = i;
	}
	while (nsmall && large < n) {
		const uint64_t lo = todo[--nsmall], hi = todo[large];

		table[lo].keep = (uint64_t)(share[lo] * 0x1p64);
		table[lo].other = hi;
		share[hi] -= 1 - share[lo];
		if (share[hi] < 1) {
			large++;
			todo[nsmall++] = hi;
		}
	}
	/* what rounding left over: full slots, their own other */
	for (; nsmall; nsmall--)
		table[todo[nsmall - 1]].other = todo[nsmall - 1];
	for (; large < n; large++)
		table[todo[large]].other = todo[large];
}

/* Rounding must not make an element of weight 0 a full slot. */
static void ban_zeroes(const struct pen_sampler *s, struct slot *table)
{
	const struct weighted *w = s->priv;
	uint64_t top = 0;

	while (s->pop.weights[top] < w->largest)
		top++;
	for (uint64_t i = 0; i < s->pop.n; i++)
		if (!(s->pop.weights[i] > 0) && table[i].other == i)
			table[i].other = top;
}

static int make_table(struct pen_sampler *s, struct pen_err *err)
{
	struct weighted *w = s->priv;
	const uint64_t n = s->pop.n;
	double *share = pen__alloc(n, sizeof(*share));
	uint64_t *todo = pen__alloc(n, sizeof(*todo));
	int ret = 0;

	w->table = pen__calloc(n, sizeof(*w->table));
	if (share && todo && w->table) {
		to_shares(s, share);
		pair_up(w->table, share, todo, n);
		ban_zeroes(s, w->table);
	} else {
		ret = pen__fail_nomem(err, "weighted", 0);
	}
	pen__free(todo);
	pen__free(share);
	return ret;
}

static int weighted_open(struct pen_sampler *s, struct pen_err *err)
{
	struct weighted *w = s->priv;
	int ret = check_weights(s, err);

	if (ret)
		return ret;
	if (w->length)
		s->length = w->length;
	if (w->replacement)
		return make_table(s, err);
	if (!w->length)
		s->length = w->npositive;
	if (s->length > w->npositive)
		return pen__fail(err, PEN_EINVAL, "length",
				 "%llu draws without replacement, but only "
				 "%llu samples have a weight above 0",
				 (unsigned long long)s->length,
				 (unsigned long long)w->npositive);
	w->order = pen__alloc(w->npositive, sizeof(*w->order));
	if (!w->order)
		return pen__fail_nomem(err, "weighted", 0);
	return 0;
}

static void weighted_close(struct pen_sampler *s)
{
	struct weighted *w = s->priv;

	pen__free(w->order);
	pen__free(w->table);
}

static int by_time(const void *va, const void *vb)
{
	const struct arrival *a = va, *b = vb;

	if (a->time != b->time)
		return a->time < b->time ? -1 : 1;
	return a->id < b->id ? -1 : a->id > b->id;
}

static void enter_epoch(struct pen_sampler *s, uint64_t epoch, uint64_t key)
{
	struct weighted *w = s->priv;
	uint64_t n = 0;

	if (w->ready && w->epoch == epoch)
		return;
	for (uint64_t i = 0; i < s->pop.n; i++) {
		/* in (0, 1), so that the logarithm is finite and not 0 */
		const double u =
			((double)(pen__rng_at(key, i) >> 12) + 0.5) * 0x1p-52;

		if (s->pop.weights[i] > 0)
			w->order[n++] = (struct arrival){
				-log(u) / (s->pop.weights[i] / w->largest), i
			};
	}
	qsort(w->order, n, sizeof(*w->order), by_time);
	w->epoch = epoch;
	w->ready = true;
}

static int ids(struct pen_sampler *s, uint64_t epoch, uint64_t pos, size_t n,
	       uint64_t *out, struct pen_err *err)
{
	struct weighted *w = s->priv;
	const uint64_t key = pen__rng_key(s->seed, epoch);

	(void)err;
	if (!w->replacement) {
		enter_epoch(s, epoch, key);
		for (size_t i = 0; i < n; i++)
			out[i] = w->order[pos + i].id;
		return 0;
	}
	for (size_t i = 0; i < n; i++) {
		struct pen_rng r = { key, 2 * (pos + i) };
		/* not rng_below: that may draw more than is ours */
		const uint64_t at = pen__mulhi(pen__rng_u64(&r), s->pop.n);
		const struct slot *slot = &w->table[at];

		out[i] = pen__rng_u64(&r) < slot->keep ? at : slot->other;
	}
	return 0;
}

const struct pen_sampler_ops pen__sampler_weighted = {
	.name = "weighted",
	.help = "drawn in proportion to given weights",
	.opts = options,
	.priv_size = sizeof(struct weighted),
	.open = weighted_open,
	.close = weighted_close,
	.ids = ids,
};
