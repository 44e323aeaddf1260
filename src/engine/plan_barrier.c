/*
 * The barrier after the first epoch of ranks that share a cache. A rank that
 * continued immediately would miss what others have not read yet, and read it
 * itself; so nothing of the second epoch is planned before all ranks have taken
 * the last batch of the first. This is the only barrier in the life of a
 * loader, in next(). A rank that fails before it notifies the waiting ranks
 * when it closes.
 */
#include "comm/comm.h"
#include "engine/plan.h"
#include "store/store.h"

void pen__barrier_set(struct pen_loader *l, uint64_t epoch)
{
	l->barrier = l->ds->comm && !l->barrier_passed && !epoch &&
		     l->steps->comes(l, 1);
	l->barrier_told = false;
	l->at_barrier = NULL;
}

bool pen__barrier_holds(struct pen_loader *l, struct pen_pooled *b)
{
	bool shut;

	if (!l->plan.at.epoch)
		return false;
	pthread_mutex_lock(&l->lock);
	shut = l->barrier;
	if (shut) {
		b->next_parked = l->at_barrier;
		l->at_barrier = b;
	}
	pthread_mutex_unlock(&l->lock);
	return shut;
}

int pen__barrier_pass(struct pen_loader *l, struct pen_err *err)
{
	struct pen_pooled *b, *next;
	int rc;

	if (!l->barrier) /* only this thread changes it */
		return 0;
	rc = pen__comm_agree(l->ds->comm, 0, err);
	pthread_mutex_lock(&l->lock);
	l->barrier = false;
	l->barrier_passed = true;
	b = l->at_barrier;
	l->at_barrier = NULL;
	pthread_mutex_unlock(&l->lock);
	for (; b; b = next) {
		next = b->next_parked;
		pen__ring_push(l->ring, PEN_LANE_PLAN, &b->plan);
	}
	return rc;
}

void pen__barrier_leave(struct pen_loader *l)
{
	struct pen_err why = l->stop;

	/* if a rank has died, the others do not wait */
	if (!l->barrier || why.code >= 0 || l->ds->store->lost->code)
		return;
	l->barrier = false;
	(void)pen__comm_agree(l->ds->comm, why.code, &why);
}
