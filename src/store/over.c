/* Stores on top of another one: what they pass on unchanged. */
#include "store/over.h"

void pen__over_init(struct pen_store *st)
{
	struct pen_over *o = st->priv;

	pthread_mutex_init(&o->lock, NULL);
}

void pen__over_fini(struct pen_store *st)
{
	struct pen_over *o = st->priv;

	pthread_mutex_destroy(&o->lock);
}

/* Writes only what differs: open queues may be reading it. */
static void hand_down(const struct pen_store *st)
{
	if (st->under->checks_stale != st->checks_stale)
		st->under->checks_stale = st->checks_stale;
	if (st->under->max_open != st->max_open)
		st->under->max_open = st->max_open;
	if (st->under->nqueues != st->nqueues)
		st->under->nqueues = st->nqueues;
}

int pen__over_bind(struct pen_store *st, struct pen_err *err)
{
	hand_down(st);
	return pen__store_bind(st->under, st->objs, err);
}

int pen__over_queue(struct pen_queue *q, struct pen_queue **out,
		    struct pen_err *err)
{
	struct pen_over *o = q->st->priv;
	int rc;

	pthread_mutex_lock(&o->lock);
	hand_down(q->st);
	rc = pen__queue_open(out, q->st->under, q->depth, err);
	pthread_mutex_unlock(&o->lock);
	return rc;
}

int pen__over_list(struct pen_store *st, const char *path, pen_keep_fn *keep,
		   void *arg, struct pen_objects *set, struct pen_err *err)
{
	return st->under->ops->list(st->under, path, keep, arg, set, err);
}

int pen__over_read_whole(struct pen_store *st, const char *path, uint64_t limit,
			 struct pen_buf *out, struct pen_err *err)
{
	if (!st->under->ops->read_whole)
		return pen__fail(err, P_NOT_FOUND, path, "does not exist");
	return st->under->ops->read_whole(st->under, path, limit, out, err);
}

/* Sinks: ours holds that of the store below. */
int pen__over_sink_open(struct pen_sink *s, const char *path,
			struct pen_err *err)
{
	return pen__sink_open((struct pen_sink **)s->priv, s->st->under, path,
			      err);
}

int pen__over_sink_write(struct pen_sink *s, const void *p, size_t n,
			 struct pen_err *err)
{
	return pen__sink_write(*(struct pen_sink **)s->priv, p, n, err);
}

int pen__over_sink_close(struct pen_sink *s, bool commit, struct pen_err *err)
{
	return pen__sink_close(*(struct pen_sink **)s->priv, commit, err);
}
