/*
 * The processes that use a shard, and what they still read. In the shard, a
 * process publishes the epochs in which it found what it holds, in a few
 * entries. How many threads use each entry is counted in private memory, which
 * the kernel clears in a forked child, so that the child registers itself at
 * first use.
 *
 * A killed process is detected (base/alive.h), and what it held is released.
 */
#include "base/alive.h"
#include "ddict/seg.h"

static bool is_dead(const struct pen_seg_proc *p, uint64_t space)
{
	const struct pen_alive a = { atomic_load(&p->pid), p->born, p->ns };

	return a.pid && !pen__alive_is(&a, space);
}

static void drop(struct pen_seg_head *h, struct pen_seg_proc *p)
{
	atomic_fetch_add(&h->nputs, atomic_exchange(&p->nputs, 0));
	atomic_fetch_add(&h->ngets, atomic_exchange(&p->ngets, 0));
	atomic_fetch_add(&h->nserved, atomic_exchange(&p->nserved, 0));
	/* a block it was filling is in no list; a rebuild finds it */
	for (int i = 0; i < PEN_SEG_COPIES; i++)
		h->nfreed += atomic_exchange(&p->copy[i].size, 0) != 0;
	for (int i = 0; i < PEN_SEG_SINCE; i++)
		atomic_store(&p->since[i].begin, 0);
	atomic_store(&p->pid, 0);
}

void pen__seg_drop_dead(struct pen_seg *s)
{
	struct pen_seg_head *h = s->head;
	const uint64_t space = pen__alive_space();
	const uint32_t n = atomic_load(&h->nprocs);

	for (uint32_t i = 0; i < n && i < PEN_SEG_PROCESSES; i++)
		if (is_dead(&h->proc[i], space))
			drop(h, &h->proc[i]);
}

uint64_t pen__seg_oldest(struct pen_seg *s, bool dead)
{
	struct pen_seg_head *h = s->head;
	const uint32_t n = atomic_load(&h->nprocs);
	uint64_t oldest = UINT64_MAX;

	if (dead)
		pen__seg_drop_dead(s);
	for (uint32_t i = 0; i < n && i < PEN_SEG_PROCESSES; i++)
		for (int k = 0; k < PEN_SEG_SINCE; k++) {
			const uint64_t e =
				atomic_load(&h->proc[i].since[k].begin);

			if (e && e < oldest)
				oldest = e;
		}
	return oldest;
}

unsigned pen__seg_nprocs(struct pen_seg *s)
{
	const uint64_t space = pen__alive_space();
	unsigned n = 0;

	if (!s->head)
		return 1;
	for (uint32_t i = 0; i < atomic_load(&s->head->nprocs); i++) {
		const struct pen_seg_proc *p = &s->head->proc[i];

		n += atomic_load(&p->pid) && !is_dead(p, space);
	}
	return n;
}

static int find_entry(struct pen_seg_head *h)
{
	for (int i = 0; i < PEN_SEG_PROCESSES; i++)
		if (!atomic_load(&h->proc[i].pid))
			return i;
	return -1;
}

int pen__proc_join(struct pen_seg *s, struct pen_err *err)
{
	struct pen_seg_head *h = s->head;
	struct pen_seg_proc *p;
	struct pen_alive me;
	int i = find_entry(h);

	if (i < 0) {
		pen__seg_drop_dead(s);
		i = find_entry(h);
	}
	if (i < 0)
		return pen__fail(
			err, P_DICTIONARY_FULL, "dictionary",
			"%d processes use it already, which is the limit",
			PEN_SEG_PROCESSES);
	p = &h->proc[i];
	pen__alive_init(&me);
	p->ns = me.space;
	p->born = me.born;
	if (atomic_load(&h->nprocs) <= (uint32_t)i)
		atomic_store(&h->nprocs, (uint32_t)i + 1);
	atomic_store(&p->pid, me.pid);
	s->self->proc = (uint32_t)i;
	atomic_store(&s->self->pid, me.pid);
	return 0;
}

void pen__proc_leave(struct pen_seg *s)
{
	drop(s->head, &s->head->proc[s->self->proc]);
	atomic_store(&s->self->pid, 0);
}

/* The entry that counts reading from epoch e on: one of that epoch, or a free
 * one; otherwise the newest, since an older epoch is safe. */
static uint32_t entry_for(const struct pen_seg_self *me,
			  const struct pen_seg_proc *p, uint64_t e)
{
	if (me->since[me->newest].count &&
	    atomic_load_explicit(&p->since[me->newest].begin,
				 memory_order_relaxed) == e)
		return me->newest;
	for (uint32_t i = 0; i < PEN_SEG_SINCE; i++)
		if (!me->since[i].count)
			return i;
	return me->newest;
}

int pen__seg_pin(struct pen_seg *s, struct pen_pin *out, struct pen_err *err)
{
	struct pen_seg_self *me = s->self;
	struct pen_seg_proc *p;
	uint64_t e;
	uint32_t i;
	int rc;

	*out = (struct pen_pin){ 0 };
	if (pen__seg_frozen(s))
		return 0;
	if (!atomic_load_explicit(&me->pid, memory_order_acquire)) {
		rc = pen__seg_join(s, err);
		if (rc)
			return rc;
	}
	pthread_mutex_lock(&me->lock);
	p = &s->head->proc[me->proc];
	e = atomic_load(&s->head->epoch);
	i = entry_for(me, p, e);
	/* before any lookup, sequentially consistent; end before begin, which
	 * makes the entry valid */
	if (!me->since[i].active++)
		atomic_store(&p->since[i].end, UINT64_MAX);
	if (!me->since[i].count++)
		atomic_store(&p->since[i].begin, e);
	me->newest = i;
	out->pid = atomic_load_explicit(&me->pid, memory_order_relaxed);
	out->entry = i + 1;
	pthread_mutex_unlock(&me->lock);
	return 0;
}

/* True if a pin belongs to this process; a forked child does not own its
 * parent's. */
static bool is_own(const struct pen_seg *s, const struct pen_pin *pin)
{
	return pin->entry && atomic_load(&s->self->pid) == pin->pid;
}

/* With self->lock held. */
static void stop_looking(struct pen_seg *s, uint32_t i)
{
	struct pen_seg_self *me = s->self;

	if (!--me->since[i].active)
		atomic_store(&s->head->proc[me->proc].since[i].end,
			     atomic_load(&s->head->epoch));
}

void pen__seg_settle(struct pen_seg *s, struct pen_pin *pin)
{
	if (pin->settled || !is_own(s, pin))
		return;
	pin->settled = true;
	pthread_mutex_lock(&s->self->lock);
	stop_looking(s, pin->entry - 1);
	pthread_mutex_unlock(&s->self->lock);
}

void pen__seg_unpin(struct pen_seg *s, struct pen_pin pin)
{
	struct pen_seg_self *me = s->self;
	const uint32_t i = pin.entry - 1;

	if (!is_own(s, &pin))
		return;
	pthread_mutex_lock(&me->lock);
	if (!pin.settled)
		stop_looking(s, i);
	if (!--me->since[i].count)
		atomic_store_explicit(&s->head->proc[me->proc].since[i].begin,
				      0, memory_order_release);
	pthread_mutex_unlock(&me->lock);
}
