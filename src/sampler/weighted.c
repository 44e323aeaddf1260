/*
 * Draws in proportion to given weights.
 *
 * With replacement every position is a separate draw or, with chunk=,
 * neighbours are drawn together (drawn.h). Without, an epoch is the order in
 * which elements arrive if element i arrives at an exponential time of rate
 * weight[i] (Efraimidis and Spirakis): each is drawn at most once, and the
 * first draws are distributed as successive draws by weight. That takes one
 * sort per epoch.
 *
 * Weights that are negative, infinite or not numbers are rejected, not
 * corrected.
 */
#include "sampler/drawn.h"

#include <math.h>
#include <stdlib.h>

#include "base/mem.h"
#include "base/rng.h"
#include "base/show.h"

struct arrival {
	double time;
	uint64_t id;
};

struct weighted {
	bool replacement;
	uint64_t length;

	double largest; /* weights are relative to it: no overflow */
	uint64_t npositive;
	struct pen_alias alias; /* with replacement */
	struct pen_drawn drawn; /* the same, for chunks */
	struct arrival *order;	/* without replacement: npositive of them */
	uint64_t epoch;		/* of order, once ready */
	bool ready;
};

static const struct pen_opt options[] = {
	{ .name = "replacement",
	  .type = PEN_OPT_BOOL,
	  .off = offsetof(struct weighted, replacement),
	  .dflt = "true",
	  .help = "a sample may be drawn more than once per epoch" },
	{ .name = "length",
	  .type = PEN_OPT_COUNT,
	  .off = offsetof(struct weighted, length),
	  .dflt = "0",
	  .help = "draws per epoch (0 = number of samples)",
	  .min = 0,
	  .max = 1e18 },
	PEN_DRAWN_OPTS(struct weighted),
	{ .name = NULL },
};

static int check_weights(struct pen_sampler *s, struct pen_err *err)
{
	struct weighted *w = s->priv;

	if (!s->pop.weights)
		return pen__fail(err, P_MISSING_SETTING, "weighted",
				 "needs a weight for every sample; set "
				 "weights=FILE.npy, weights=field:NAME or "
				 "weights=inverse:NAME");
	for (uint64_t i = 0; i < s->pop.n; i++) {
		const double v = s->pop.weights[i];

		if (!(v >= 0) || isinf(v))
			return pen__fail(err, P_LABELS_DO_NOT_FIT, "weights",
					 "weight %llu is %g; weights must be "
					 "finite and not negative",
					 (unsigned long long)i, v);
		if (v > w->largest)
			w->largest = v;
		w->npositive += v > 0;
	}
	if (!w->npositive)
		return pen__fail(err, P_LABELS_DO_NOT_FIT, "weights",
				 "all weights are 0, so nothing can be drawn");
	return 0;
}

static int open_with(struct pen_sampler *s, struct pen_err *err)
{
	struct weighted *w = s->priv;

	if (w->drawn.chunk > 1)
		return pen__drawn_init(&w->drawn, s, s->pop.weights, err);
	if (pen__alias_init(&w->alias, s->pop.weights, s->pop.n))
		return pen__fail_nomem(err, "weighted", 0);
	return 0;
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
		return open_with(s, err);
	if (w->drawn.chunk > 1)
		return pen__fail(err, P_CONFLICT, "chunk",
				 "chunks are drawn with replacement; omit "
				 "sampler.replacement=false or sampler.chunk=");
	if (!w->length)
		s->length = w->npositive;
	if (s->length > w->npositive)
		return pen__fail(err, P_TOO_FEW_SAMPLES, "length",
				 "%s without replacement, but only %s with a "
				 "weight above 0",
				 pen__show_counted(s->length, "draw").s,
				 pen__show_counted(w->npositive, "sample").s);
	w->order = pen__alloc(w->npositive, sizeof(*w->order));
	if (!w->order)
		return pen__fail_nomem(err, "weighted", 0);
	return 0;
}

static void weighted_close(struct pen_sampler *s)
{
	struct weighted *w = s->priv;

	pen__free(w->order);
	pen__alias_fini(&w->alias);
	pen__drawn_fini(&w->drawn);
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
	if (w->drawn.sum) {
		pen__drawn_ids(&w->drawn, s, epoch, pos, n, out);
		return 0;
	}
	for (size_t i = 0; i < n; i++)
		out[i] = pen__alias_draw(&w->alias, key, pos + i);
	return 0;
}

const struct pen_sampler_ops pen__sampler_weighted = {
	.name = "weighted",
	.help = "samples drawn in proportion to weights=",
	.opts = options,
	.repeats = true,
	.priv_size = sizeof(struct weighted),
	.by_weight = true,
	.open = weighted_open,
	.close = weighted_close,
	.ids = ids,
	.window_end = pen__drawn_end,
};
