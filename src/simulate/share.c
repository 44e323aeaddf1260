/* See share.h. */
#include "simulate/share.h"

#include <math.h>
#include <string.h>

#include "penstock.h"

#define WAYS 4u

_Static_assert(sizeof(struct pen_share) == 128, "two cache lines");

static uint32_t groups(uint32_t n)
{
	return n / WAYS + (n % WAYS != 0);
}

/* Lays out the levels of the tree at at, unless NULL; returns its size. */
static size_t due_init(struct pen_shares *s, double *at)
{
	uint32_t n = s->n;
	size_t all = 0;

	s->levels = 0;
	do {
		const size_t room = (size_t)(n ? groups(n) : 1) * WAYS;

		for (size_t i = 0; at && i < room; i++)
			at[all + i] = INFINITY;
		s->due[s->levels++] = at ? at + all : NULL;
		all += room;
		n = groups(n);
	} while (n > 1);
	return all;
}

/* Accesses are random, so the data is packed into few cache lines and huge
 * pages. */
int pen__shares_init(struct pen_shares *s, uint32_t n)
{
	size_t size;

	*s = (struct pen_shares){ .n = n, .last = UINT32_MAX };
	size = n * sizeof(*s->v) + due_init(s, NULL) * sizeof(double);
	if (pen__block_init(&s->mem, size)) {
		*s = (struct pen_shares){ 0 };
		return PEN_ENOMEM;
	}
	memset(s->mem.p, 0, size);
	s->v = s->mem.p;
	due_init(s, (void *)(s->v + n));
	for (uint32_t i = 0; i < n; i++) {
		s->v[i].rate = s->v[i].most = INFINITY;
		s->v[i].heap = s->v[i].few;
		s->v[i].room = PEN_SHARE_FEW;
	}
	return 0;
}

void pen__shares_fini(struct pen_shares *s)
{
	for (uint32_t i = 0; i < s->n; i++)
		if (s->v[i].heap != s->v[i].few)
			pen__free(s->v[i].heap);
	pen__free(s->wait);
	pen__block_fini(&s->mem);
	*s = (struct pen_shares){ 0 };
}

/* --- users and waiters: a heap with four children per node --- */

/* Makes room for one more; few is the inline storage, which is not freed. */
static int heap_room(struct pen_use **heap, uint32_t n, uint32_t *room,
		     struct pen_use *few)
{
	const uint32_t more = *room ? *room * 2 : 64;
	struct pen_use *p;

	if (n < *room)
		return 0;
	p = more > n ? pen__alloc(more, sizeof(*p)) : NULL;
	if (!p)
		return PEN_ENOMEM;
	if (n)
		memcpy(p, *heap, n * sizeof(*p));
	if (*heap != few)
		pen__free(*heap);
	*heap = p;
	*room = more;
	return 0;
}

static void heap_push(struct pen_use *heap, uint32_t *n, struct pen_use u)
{
	uint32_t i = (*n)++;

	while (i && heap[(i - 1) / 4].until > u.until) {
		heap[i] = heap[(i - 1) / 4];
		i = (i - 1) / 4;
	}
	heap[i] = u;
}

static struct pen_use heap_pop(struct pen_use *heap, uint32_t *n)
{
	const struct pen_use top = heap[0], u = heap[--*n];
	uint32_t i = 0, c;

	while ((c = 4 * i + 1) < *n) {
		const uint32_t end = c + 4 < *n ? c + 4 : *n;

		for (uint32_t k = c + 1; k < end; k++)
			c = heap[k].until < heap[c].until ? k : c;
		if (heap[c].until >= u.until)
			break;
		heap[i] = heap[c];
		i = c;
	}
	heap[i] = u;
	return top;
}

/* --- the next event --- */

static double lesser(double a, double b)
{
	return a < b ? a : b;
}

static double least(const double *v)
{
	return lesser(lesser(v[0], v[1]), lesser(v[2], v[3]));
}

/* Walks up only as far as a minimum changes. */
static void due_set(struct pen_shares *s, uint32_t i, double t)
{
	for (unsigned l = 0; l < s->levels; l++, i /= WAYS) {
		const double old = s->due[l][i];

		if (old == t)
			return;
		s->due[l][i] = t;
		if (l + 1 == s->levels)
			return;
		if (t < s->due[l + 1][i / WAYS])
			continue;
		if (old > s->due[l + 1][i / WAYS])
			return;
		t = least(s->due[l] + i / WAYS * WAYS);
	}
}

/* The share with the next event. */
static uint32_t due_first(const struct pen_shares *s)
{
	uint32_t i = 0;

	for (unsigned l = s->levels; l-- > 0;) {
		const double *v = s->due[l] + (size_t)i * WAYS;
		const unsigned a = v[1] < v[0], b = 2 + (v[3] < v[2]);

		i = i * WAYS + (v[b] < v[a] ? b : a);
	}
	return i;
}

static double speed(const struct pen_share *h)
{
	const double each = h->in_order ? h->rate : h->rate / (double)h->n;

	return lesser(each, h->most);
}

/* Updates the time at which a share releases its next user. */
static void retime(struct pen_shares *s, uint32_t share)
{
	struct pen_share *h = &s->v[share];
	double left;

	if (!h->n) {
		/* small numbers are exact: restart the clock of an idle share
		 */
		h->own = 0;
		due_set(s, share, INFINITY);
		return;
	}
	left = h->heap[0].until - h->own;
	due_set(s, share, left > 0 ? h->at + left / speed(h) : h->at);
}

static void look(struct pen_share *h, double now)
{
	if (h->n && now > h->at) {
		const double done = (now - h->at) * speed(h);

		h->own += done;
		h->work += h->in_order ? done : done * (double)h->n;
	}
	h->at = now;
}

int pen__share_use(struct pen_shares *s, uint32_t share, double amount,
		   uint32_t who)
{
	struct pen_share *h = &s->v[share];
	double from;

	if (heap_room(&h->heap, h->n, &h->room, h->few))
		return PEN_ENOMEM;
	look(h, s->now);
	from = h->in_order && h->n ? h->last : h->own;
	h->last = from + amount;
	heap_push(h->heap, &h->n, (struct pen_use){ h->last, who });
	retime(s, share);
	return 0;
}

int pen__share_wait(struct pen_shares *s, double seconds, uint32_t who)
{
	if (heap_room(&s->wait, s->nwait, &s->wait_room, NULL))
		return PEN_ENOMEM;
	heap_push(s->wait, &s->nwait,
		  (struct pen_use){ s->now + seconds, who });
	return 0;
}

void pen__share_rate(struct pen_shares *s, uint32_t share, double rate)
{
	struct pen_share *h = &s->v[share];

	look(h, s->now);
	h->rate = rate;
	if (h->n)
		retime(s, share);
}

static uint32_t next_wait(struct pen_shares *s)
{
	const struct pen_use u = heap_pop(s->wait, &s->nwait);

	s->now = u.until > s->now ? u.until : s->now;
	s->last = UINT32_MAX;
	return u.who;
}

uint32_t pen__shares_next(struct pen_shares *s)
{
	const double when = least(s->due[s->levels - 1]);
	struct pen_share *h;
	struct pen_use u;

	if (s->nwait && s->wait[0].until <= when)
		return next_wait(s);
	if (isinf(when))
		return UINT32_MAX;
	s->now = when > s->now ? when : s->now;
	s->last = due_first(s);
	h = &s->v[s->last];
	look(h, s->now);
	u = heap_pop(h->heap, &h->n);
	/* rounding errors must not accumulate */
	h->own = h->own > u.until ? h->own : u.until;
	retime(s, s->last);
	return u.who;
}

double pen__share_work(struct pen_shares *s, uint32_t share)
{
	look(&s->v[share], s->now);
	if (s->v[share].n)
		retime(s, share);
	return s->v[share].work;
}
