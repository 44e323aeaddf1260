/* See share.h. */
#include "simulate/share.h"

#include <math.h>

#include "base/mem.h"
#include "penstock.h"

int pen__shares_init(struct pen_shares *s, uint32_t n)
{
	*s = (struct pen_shares){ .n = n };
	s->v = pen__calloc(n, sizeof(*s->v));
	s->due = pen__calloc(n, sizeof(*s->due));
	if (!s->v || !s->due) {
		s->n = 0;
		pen__shares_fini(s);
		return PEN_ENOMEM;
	}
	for (uint32_t i = 0; i < n; i++)
		s->v[i].rate = s->v[i].most = INFINITY;
	return 0;
}

void pen__shares_fini(struct pen_shares *s)
{
	for (uint32_t i = 0; i < s->n; i++)
		pen__free(s->v[i].heap);
	pen__free(s->v);
	pen__free(s->due);
	*s = (struct pen_shares){ 0 };
}

/* --- those who use one --- */

static void use_push(struct pen_share *h, struct pen_use u)
{
	uint32_t i = h->n++;

	while (i && h->heap[(i - 1) / 2].until > u.until) {
		h->heap[i] = h->heap[(i - 1) / 2];
		i = (i - 1) / 2;
	}
	h->heap[i] = u;
}

static struct pen_use use_pop(struct pen_share *h)
{
	const struct pen_use top = h->heap[0], u = h->heap[--h->n];
	uint32_t i = 0, c;

	while ((c = 2 * i + 1) < h->n) {
		if (c + 1 < h->n && h->heap[c + 1].until < h->heap[c].until)
			c++;
		if (h->heap[c].until >= u.until)
			break;
		h->heap[i] = h->heap[c];
		i = c;
	}
	h->heap[i] = u;
	return top;
}

/* --- which one is next --- */

static void due_set(struct pen_shares *s, uint32_t i, struct pen_due d)
{
	s->due[i] = d;
	s->v[d.share].place = i + 1;
}

/* Puts d where it belongs, i being free. */
static void due_settle(struct pen_shares *s, uint32_t i, struct pen_due d)
{
	uint32_t c;

	while (i && s->due[(i - 1) / 2].when > d.when) {
		due_set(s, i, s->due[(i - 1) / 2]);
		i = (i - 1) / 2;
	}
	while ((c = 2 * i + 1) < s->ndue) {
		if (c + 1 < s->ndue && s->due[c + 1].when < s->due[c].when)
			c++;
		if (s->due[c].when >= d.when)
			break;
		due_set(s, i, s->due[c]);
		i = c;
	}
	due_set(s, i, d);
}

static double speed(const struct pen_share *h)
{
	return fmin(h->most, h->rate / (double)h->n);
}

/* Says anew when a share lets go of the next one. */
static void retime(struct pen_shares *s, uint32_t share)
{
	struct pen_share *h = &s->v[share];
	uint32_t i = h->place ? h->place - 1 : s->ndue;

	if (h->n) {
		const double left = fmax(h->heap[0].until - h->own, 0);

		s->ndue += !h->place;
		due_settle(s, i,
			   (struct pen_due){ h->at + left / speed(h), share });
		return;
	}
	h->place = 0;
	/* small numbers are exact numbers: idle, its time begins anew */
	h->own = 0;
	if (i < --s->ndue)
		due_settle(s, i, s->due[s->ndue]);
}

static void look(struct pen_share *h, double now)
{
	if (h->n && now > h->at) {
		const double done = (now - h->at) * speed(h);

		h->own += done;
		h->work += done * (double)h->n;
	}
	h->at = now;
}

int pen__share_use(struct pen_shares *s, uint32_t share, double amount,
		   uint32_t who)
{
	struct pen_share *h = &s->v[share];

	if (h->n == h->room) {
		const uint32_t room = h->room ? h->room * 2 : 8;
		void *p = pen__realloc(h->heap, room, sizeof(*h->heap));

		if (!p)
			return PEN_ENOMEM;
		h->heap = p;
		h->room = room;
	}
	look(h, s->now);
	use_push(h, (struct pen_use){ h->own + amount, who });
	retime(s, share);
	return 0;
}

uint32_t pen__shares_next(struct pen_shares *s)
{
	struct pen_share *h;
	struct pen_use u;
	uint32_t share;

	if (!s->ndue)
		return UINT32_MAX;
	share = s->due[0].share;
	h = &s->v[share];
	s->now = fmax(s->now, s->due[0].when);
	look(h, s->now);
	u = use_pop(h);
	/* what was rounded must not make anybody late for ever */
	h->own = fmax(h->own, u.until);
	retime(s, share);
	return u.who;
}

double pen__share_work(struct pen_shares *s, uint32_t share)
{
	look(&s->v[share], s->now);
	if (s->v[share].n)
		retime(s, share);
	return s->v[share].work;
}
