/* See plan_by_length.h. Rejects settings that count batches of equal size and,
 * by default, samples that fit in no packed row. */
#include "engine/plan_by_length.h"

#include <string.h>

#include "engine/loader.h"

#define MOST_ROWS 65536 /* samples per batch, by default */

static uint64_t round_up(uint64_t n, uint64_t to)
{
	const uint64_t more = n % to ? to - n % to : 0;

	return n > UINT64_MAX - more ? UINT64_MAX : n + more;
}

/* ---- settings ---- */

static int check_settings(const struct pen_loader *l, struct pen_err *err)
{
	const struct pen_spec *s = l->ds->spec;
	const int how = s->too_long;

	if (s->batch_tokens && s->pack)
		return pen__fail(err, P_CONFLICT, "batch_tokens",
				 "cannot be combined with pack=; a packed "
				 "batch has batch_size rows of pack tokens");
	if ((s->batch_tokens || s->pack) &&
	    (s->epoch_batches || s->batch_group))
		return pen__fail(
			err, P_CONFLICT,
			s->epoch_batches ? "epoch_batches" : "batch_group",
			"cannot be combined with batch_tokens= or pack=, whose "
			"batches differ in size; omit it");
	if (s->pack && (s->take.n || s->cast))
		return pen__fail(
			err, P_CONFLICT, "pack",
			"cannot be combined with take= or cast=; omit them");
	if (s->pack && how == PEN_LONG_ALONE)
		return pen__fail(err, P_CONFLICT, "too_long",
				 "too_long=alone does not apply to packed "
				 "rows; use cut, split or fail");
	if (!s->pack && (how == PEN_LONG_CUT || how == PEN_LONG_SPLIT))
		return pen__fail(err, P_CONFLICT, "too_long",
				 "cut and split apply to packed rows only "
				 "(pack=); use alone or fail");
	return 0;
}

/* Is there a field `length`, to be used where no shape gives the length? */
static bool has_length(const struct pen_loader *l)
{
	const struct pen_format *f = l->ds->format;
	uint32_t object;
	uint64_t k;
	double v;

	pen__index_find(f->ix, pen__choice_at(&l->choice, 0), &object, &k);
	for (uint32_t i = 0; i < f->nfields; i++)
		if (strcmp(f->field[i].name, "length") == 0)
			return !f->field[i].ndim && f->ops->value &&
			       f->ops->value(f, object, k, i, &v);
	return false;
}

static int find_lengths(struct pen_loader *l, struct pen_err *err)
{
	struct pen_lengths *ls = &l->by_length.lengths;
	const bool pack = l->ds->spec->pack > 0;
	int rc = 0;

	ls->c = &l->choice;
	if (pack || !l->choice.lengths)
		rc = pen__lengths_field(ls, l->ds, l->varying, pack, err);
	if (!pack && !l->choice.lengths && (rc == PEN_ENOTFOUND || !ls->axes) &&
	    has_length(l))
		rc = pen__choice_lengths(&l->choice, l->ds, "field:length",
					 err);
	if (rc == PEN_ENOTFOUND && pack)
		return pen__fail(err, P_NO_SUCH_FIELD, "pack",
				 "no delivered field is a list of numbers");
	if (rc == PEN_ENOTFOUND)
		return pen__fail(err, P_NO_SUCH_FIELD, "lengths",
				 "no field gives the length of a sample; set "
				 "lengths=field:NAME or lengths=FILE");
	if (!pack)
		ls->table = l->choice.lengths;
	return rc;
}

static int fail_long(const struct pen_loader *l, const char *key,
		     const char *what, struct pen_err *err)
{
	const struct pen_lengths *ls = &l->by_length.lengths;

	return pen__fail(
		err, P_BAD_VALUE, key,
		"sample %llu has %llu tokens; raise %s=%s",
		(unsigned long long)pen__choice_at(&l->choice, ls->longest_of),
		(unsigned long long)ls->longest, key, what);
}

static int settle_tokens(struct pen_loader *l, struct pen_err *err)
{
	const struct pen_spec *s = l->ds->spec;
	struct pen_by_length *c = &l->by_length;
	uint64_t least, most;

	c->budget = c->tokens = s->batch_tokens;
	c->padded = s->shapes == PEN_SHAPES_PADDED;
	c->multiple = c->padded ? s->pad_multiple : 1;
	if (s->too_long == PEN_LONG_FAIL &&
	    round_up(c->lengths.longest, c->multiple) > c->budget)
		return fail_long(l, "batch_tokens", ", or set too_long=alone",
				 err);
	least = round_up(c->lengths.shortest ? c->lengths.shortest : 1,
			 c->multiple);
	most = s->batch_given ? s->batch_size : MOST_ROWS;
	if (most > c->budget / least)
		most = c->budget / least;
	l->batch = most ? (uint32_t)most : 1;
	return 0;
}

static int settle_pack(struct pen_loader *l, struct pen_err *err)
{
	const struct pen_spec *s = l->ds->spec;
	struct pen_by_length *c = &l->by_length;
	uint64_t most;

	c->pack = (uint32_t)s->pack;
	c->rows = (uint32_t)s->batch_size;
	c->budget = s->pack * s->batch_size;
	c->split = s->too_long == PEN_LONG_SPLIT;
	if (c->lengths.longest > s->pack && s->too_long != PEN_LONG_CUT &&
	    !c->split)
		return fail_long(l, "pack", ", or set too_long=cut or split",
				 err);
	if (c->split && c->lengths.longest > c->budget)
		return fail_long(l, "pack",
				 " or batch_size=, or set too_long=cut", err);
	most = c->budget / (c->lengths.shortest ? c->lengths.shortest : 1);
	most = most < MOST_ROWS ? most : MOST_ROWS;
	l->batch = (uint32_t)(most > c->rows ? most : c->rows);
	l->ds->format->field[c->lengths.field].layout = PEN_PACKED;
	return 0;
}

bool pen__sorts_by_length(const struct pen_loader *l)
{
	const struct pen_sampler_ops *ops =
		pen__sampler_find(pen__spec_sampler(l->ds->spec));

	return ops && ops->by_length;
}

int pen__lengths_settle(struct pen_loader *l, struct pen_err *err)
{
	int rc = check_settings(l, err);

	if (!rc)
		rc = find_lengths(l, err);
	if (!rc && pen__sorts_by_length(l) && !l->choice.lengths)
		rc = pen__lengths_tabulate(&l->by_length.lengths, err);
	return rc;
}

static int settle(struct pen_loader *l, struct pen_err *err)
{
	const struct pen_spec *s = l->ds->spec;
	struct pen_by_length *c = &l->by_length;
	int rc = pen__lengths_settle(l, err);

	if (rc)
		return rc;
	pen__lengths_measure(&c->lengths);
	rc = s->pack ? settle_pack(l, err) : settle_tokens(l, err);
	if (rc)
		return rc;
	l->typical = l->batch;
	if (c->lengths.mean * l->batch > (double)c->budget)
		l->typical = (uint32_t)((double)c->budget / c->lengths.mean);
	l->typical = l->typical ? l->typical : 1;
	l->pad_batch = s->batch_tokens || pen__sorts_by_length(l);
	return 0;
}

/* ---- batchers ---- */

static int batcher_new(struct pen_batcher **out, struct pen_loader *l,
		       struct pen_sampler *s, struct pen_err *err)
{
	const struct pen_by_length *c = &l->by_length;
	int rc = 0;

	*out = pen__calloc(1, sizeof(**out));
	if (!*out)
		return pen__fail_nomem(err, "batches by length", sizeof(**out));
	(*out)->l = l;
	(*out)->s = s;
	if (c->pack)
		rc = pen__row_packer_new(&(*out)->packer, c->rows, c->pack,
					 l->batch, err);
	if (!rc && c->pack)
		(*out)->packer->split = c->split;
	return rc;
}

static int open_by_length(struct pen_loader *l, struct pen_err *err)
{
	struct pen_by_length *c = &l->by_length;
	int rc = settle(l, err);

	if (!rc)
		rc = pen__steps_sampler(l, NULL, &l->sampler, err);
	if (!rc)
		rc = pen__steps_sampler(l, NULL, &c->counter, err);
	if (rc)
		return rc;
	l->length = l->sampler->length;
	l->rows = l->places = l->batch;
	rc = batcher_new(&c->plan, l, l->sampler, err);
	if (!rc)
		rc = batcher_new(&c->held, l, l->sampler, err);
	if (!rc)
		rc = batcher_new(&c->count, l, c->counter, err);
	return rc;
}

static void batcher_free(struct pen_batcher *c)
{
	if (c)
		pen__row_packer_free(c->packer);
	pen__free(c);
}

void pen__by_length_close(struct pen_loader *l)
{
	batcher_free(l->by_length.plan);
	batcher_free(l->by_length.held);
	batcher_free(l->by_length.count);
	pen__sampler_close(l->by_length.counter);
	pen__lengths_fini(&l->by_length.lengths);
}

/* The run that contains a position of an epoch. NULL: the sampler failed. */
static const struct pen_batcher_run *
run_of(struct pen_batcher *c, uint64_t epoch, uint64_t pos, struct pen_err *err)
{
	const uint64_t nth = pos / PEN_BATCHER_RUN,
		       from = nth * PEN_BATCHER_RUN;
	const uint64_t left = c->s->length - from;
	struct pen_batcher_run *r = &c->run[nth % PEN_BATCHER_RUNS];
	const uint32_t n = left < PEN_BATCHER_RUN ? (uint32_t)left
						  : PEN_BATCHER_RUN;

	if (r->n && r->epoch == epoch && r->from == from)
		return r;
	r->n = 0;
	if (c->s->ops->ids(c->s, pen__order_of(c->l, epoch), from, n, r->id,
			   err))
		return NULL;
	for (uint32_t i = 0; i < n; i++)
		r->len[i] = pen__length_of(&c->l->by_length.lengths, r->id[i]);
	r->epoch = epoch;
	r->from = from;
	r->n = n;
	return r;
}

static int length_at(struct pen_batcher *c, uint64_t epoch, uint64_t pos,
		     uint64_t *len, struct pen_err *err)
{
	const struct pen_batcher_run *r;

	if (pos >= c->s->length)
		pos %= c->s->length;
	r = run_of(c, epoch, pos, err);
	if (!r)
		return PEN_ENOMEM;
	*len = r->len[pos % PEN_BATCHER_RUN];
	return 0;
}

static int ids_at(struct pen_batcher *c, uint64_t epoch, uint64_t first,
		  size_t n, uint64_t *out, struct pen_err *err)
{
	while (n) {
		const uint64_t pos = first % c->s->length;
		const struct pen_batcher_run *r = run_of(c, epoch, pos, err);
		const uint32_t at = pos % PEN_BATCHER_RUN;
		size_t now;

		if (!r)
			return PEN_ENOMEM;
		now = n < r->n - at ? n : r->n - at;
		memcpy(out, r->id + at, now * sizeof(*out));
		out += now;
		first += now;
		n -= now;
	}
	return 0;
}

/* End of a batch; full: it does not end because the epoch does. */
struct end {
	uint64_t pos;
	bool full;
};

/* Where the batch has to end, because the sampler starts another sorted
 * group. */
static uint64_t stop_of(struct pen_batcher *c, uint64_t epoch, uint64_t pos)
{
	struct pen_sampler *s = c->s;
	const uint64_t in = pos % s->length;

	if (!s->ops->batch_end)
		return UINT64_MAX;
	return pos - in + s->ops->batch_end(s, pen__order_of(c->l, epoch), in);
}

static int batch_of_tokens(struct pen_batcher *c, uint64_t epoch, uint64_t pos,
			   struct end *out, struct pen_err *err)
{
	const struct pen_by_length *how = &c->l->by_length;
	const uint64_t stop = stop_of(c, epoch, pos), length = c->l->length;
	uint64_t longest = 0, sum = 0, need = 0, at = pos, len;

	out->full = true;
	for (; at - pos < c->l->batch; at++) {
		if (at >= length && c->l->tail != PEN_TAIL_PAD) {
			out->full = need >= how->budget;
			break;
		}
		if (at >= stop)
			break;
		if (length_at(c, epoch, at, &len, err))
			return PEN_ENOMEM;
		len = round_up(len, how->multiple);
		longest = len > longest ? len : longest;
		if (__builtin_add_overflow(sum, len, &sum))
			sum = UINT64_MAX;
		need = sum;
		if (how->padded &&
		    __builtin_mul_overflow(longest, at - pos + 1, &need))
			need = UINT64_MAX;
		if (need > how->budget && at > pos)
			break;
	}
	out->pos = at;
	return 0;
}

static int batch_of_rows(struct pen_batcher *c, uint64_t epoch, uint64_t pos,
			 struct end *out, struct pen_err *err)
{
	struct pen_row_packer *p = c->packer;
	const uint64_t length = c->l->length;
	uint64_t at = pos, len, over;

	out->full = true;
	pen__row_packer_clear(p);
	for (;; at++) {
		if (at >= length && c->l->tail != PEN_TAIL_PAD) {
			out->full = p->tokens == c->l->by_length.budget;
			break;
		}
		if (length_at(c, epoch, at, &len, err))
			return PEN_ENOMEM;
		if (!pen__row_packer_add(p, len))
			break;
	}
	while (p->nsamples > 1 && (over = pen__row_packer_place(p)) > 0) {
		pen__row_packer_drop(p, over);
		out->full = true;
	}
	out->pos = pos + p->nsamples;
	return 0;
}

static int step_at(struct pen_batcher *c, struct pen_cursor at,
		   struct pen_step *step, struct pen_err *err)
{
	const struct pen_loader *l = c->l;
	uint64_t pos = at.pos;
	bool full = true;

	*step = (struct pen_step){
		.at = at, .end = pos, .first = pos, .none = pos >= l->length
	};
	for (uint64_t r = 0; !step->none && r < l->world; r++) {
		struct end end = { pos, false };
		int rc = 0;

		if (pos < l->length || l->tail == PEN_TAIL_PAD)
			rc = l->by_length.pack
				     ? batch_of_rows(c, at.epoch, pos, &end,
						     err)
				     : batch_of_tokens(c, at.epoch, pos, &end,
						       err);
		if (rc)
			return rc;
		full = full && end.full;
		if (r == l->rank) {
			step->first = pos;
			step->n = (uint32_t)(end.pos - pos);
		}
		pos = end.pos;
	}
	if (l->tail == PEN_TAIL_DROP && !full)
		step->none = true;
	if (step->none)
		step->n = 0;
	else
		step->end = pos < l->length ? pos : l->length;
	step->last = step->none || step->end >= l->length;
	return 0;
}

static uint64_t count(struct pen_loader *l, uint64_t epoch)
{
	struct pen_by_length *c = &l->by_length;
	struct pen_cursor at = { epoch, 0 };
	struct pen_step step = { .last = false };
	uint64_t n = 0;

	if (c->counted_ready && c->counted_of == epoch)
		return c->counted;
	while (!step.last) {
		if (step_at(c->count, at, &step, NULL))
			return 0;
		n += step.n > 0;
		at.pos = step.end;
	}
	c->counted = n;
	c->counted_of = epoch;
	c->counted_ready = true;
	return n;
}

static void place_pieces(struct pen_pooled *b, const struct pen_row_packer *p)
{
	for (uint32_t f = 0; f < b->pool->nfields; f++) {
		if (b->pool->field[f].layout != PEN_PACKED)
			continue;
		for (uint32_t r = 0; r < b->nrows; r++) {
			const struct pen_piece *x = &p->piece[p->order[r]];

			b->offsets[f][r] = (int64_t)x->row * p->pack + x->start;
			b->shapes[f][r] = x->len;
		}
	}
}

static int pack_step(struct pen_batcher *c, const struct pen_step *step,
		     struct pen_pooled *b, struct pen_err *err)
{
	struct pen_row_packer *p = c->packer;
	uint64_t len = 0;

	pen__row_packer_clear(p);
	for (uint32_t i = 0; i < step->n; i++) {
		if (length_at(c, step->at.epoch, step->first + i, &len, err))
			return PEN_ENOMEM;
		if (!pen__row_packer_add(p, len))
			return pen__fail(err, P_DAMAGED, "pack",
					 "the lengths of samples have changed");
	}
	pen__row_packer_place(p); /* as it was when the step was cut */
	pen__row_packer_sort(p);
	b->nrows = p->npieces;
	for (uint32_t r = 0; r < b->nrows; r++) {
		const struct pen_piece *x = &p->piece[p->order[r]];

		b->ids[r] = p->ids[x->sample];
		b->skip[r] = x->skip;
		b->extra[r] = x->skip > 0 ||
			      step->first + x->sample >= c->l->length;
	}
	place_pieces(b, p);
	return 0;
}

/* ---- steps ---- */

/* Positions come in order, so the step of a position is the current one or the
 * next. */
static int mine(struct pen_loader *l, uint64_t pos, bool *yes,
		struct pen_err *err)
{
	struct pen_plan *p = &l->plan;
	struct pen_step *s = &p->of_held;

	if (!p->held_ready || s->at.epoch != p->held.epoch || pos < s->at.pos) {
		p->held_ready = true;
		if (step_at(l->by_length.held, p->at, s, err))
			return PEN_ENOMEM;
	}
	while (!s->none && pos >= s->end)
		if (step_at(l->by_length.held,
			    (struct pen_cursor){ p->held.epoch, s->end }, s,
			    err))
			return PEN_ENOMEM;
	*yes = !s->none && pos >= s->first && pos - s->first < s->n;
	return 0;
}

/* An epoch with no steps left still has one that says so. */
static bool advance(struct pen_loader *l)
{
	return pen__steps_comes(l, l->plan.at.epoch);
}

static int next(struct pen_loader *l, struct pen_pooled *b,
		struct pen_step *out, struct pen_err *err)
{
	struct pen_plan *p = &l->plan;
	struct pen_step *s = &p->step;
	int rc = 0;

	(void)b;
	if (!p->step_ready && p->next_ready)
		*s = p->next;
	else if (!p->step_ready)
		rc = step_at(l->by_length.plan, p->at, s, err);
	/* whether the next step is full is known only once it is cut */
	if (!rc && !p->step_ready && l->tail == PEN_TAIL_DROP && !s->last) {
		rc = step_at(l->by_length.plan,
			     (struct pen_cursor){ s->at.epoch, s->end },
			     &p->next, err);
		p->next_ready = true;
		s->last = p->next.none;
	}
	p->step_ready = !rc;
	*out = *s;
	out->counts = s->last;
	return rc;
}

static void done(struct pen_loader *l, const struct pen_step *s)
{
	struct pen_plan *p = &l->plan;

	pen__steps_done(l, s);
	p->step_ready = false;
	if (s->last) {
		p->at = (struct pen_cursor){ p->at.epoch + 1, 0 };
		p->next_ready = false;
	}
}

/* These positions have been looked up already. */
static int ids(struct pen_loader *l, uint64_t epoch, uint64_t first, size_t n,
	       uint64_t *out, struct pen_err *err)
{
	return ids_at(l->by_length.plan, epoch, first, n, out, err);
}

static int fill(struct pen_loader *l, struct pen_pooled *b,
		const struct pen_step *s, struct pen_err *err)
{
	struct pen_batcher *c = l->by_length.plan;
	int rc;

	if (!c->packer)
		return pen__steps_fill(l, b, s, err);
	rc = pen__steps_samples(l, s->at.epoch, s->first, s->n, c->packer->ids,
				err);
	return rc ? rc : pack_step(c, s, b, err);
}

/* Always 1: the last batch of an epoch is marked. */
static uint64_t left(const struct pen_loader *l, uint64_t pos)
{
	(void)l;
	(void)pos;
	return 1;
}

/* On average: the measured field has a known number of tokens, others a number
 * of samples. */
static uint64_t bytes(const struct pen_loader *l, const struct pen_format *f)
{
	const struct pen_by_length *c = &l->by_length;
	const uint64_t rows = l->length < l->typical ? l->length : l->typical;
	double n = 0;

	for (uint32_t i = 0; i < f->nfields; i++) {
		const struct pen_field *d = &f->field[i];
		double each = (double)rows * (double)d->max_bytes;

		if (d->layout == PEN_PACKED)
			each = (double)c->budget *
			       (double)pen_dtype_size(d->dtype);
		else if (d->layout != PEN_DENSE && i == c->lengths.field &&
			 c->lengths.axes && c->lengths.longest > c->budget)
			each = (double)d->max_bytes;
		else if (d->layout != PEN_DENSE && i == c->lengths.field &&
			 c->lengths.axes && c->lengths.longest)
			each = (double)c->budget * (double)d->max_bytes /
			       (double)c->lengths.longest;
		n += each + 63;
	}
	if (c->pack)
		n += 8 * (double)c->budget;
	return n < 0x1p62 ? pen__block_cost((uint64_t)n + 1) : INT64_MAX;
}

const struct pen_steps pen__steps_by_length = {
	.vary = true,
	.open = open_by_length,
	.close = pen__by_length_close,
	.bytes = bytes,
	.comes = pen__steps_comes,
	.advance = advance,
	.next = next,
	.fill = fill,
	.done = done,
	.mine = mine,
	.ids = ids,
	.left = left,
	.count = count,
};
