/*
 * Channels without MPI, for ranks that are threads: a mailbox per rank. Sends
 * complete immediately; a test takes messages out. If channel_fails is set,
 * every test fails, as MPI's may.
 */
#ifndef CHANNEL_H
#define CHANNEL_H

#include "ranks.h"

struct post {
	struct post *next;
	int from;
	size_t n;
	char bytes[];
};

struct channel {
	struct pen_channel channel;
	int rank;
	void *to[PEN_CHANNEL_REQS]; /* of pending requests; by handle - 2 */
};

/* Handle 1 is a completed send. */
static struct channel_boxes {
	pthread_mutex_t lock;
	struct post *first[RANKS_MAX], **last[RANKS_MAX];
} boxes = { .lock = PTHREAD_MUTEX_INITIALIZER };
static atomic_bool channel_fails;

static inline int channel_send(struct pen_channel *c, const void *p, size_t n,
			       int to, uint64_t *req, struct pen_err *err)
{
	struct post *m = malloc(sizeof(*m) + n);

	(void)err;
	m->next = NULL;
	m->from = ((struct channel *)c->priv)->rank;
	m->n = n;
	memcpy(m->bytes, p, n);
	pthread_mutex_lock(&boxes.lock);
	*boxes.last[to] = m;
	boxes.last[to] = &m->next;
	pthread_mutex_unlock(&boxes.lock);
	*req = 1;
	return 0;
}

static inline int channel_recv(struct pen_channel *c, void *p, size_t cap,
			       uint64_t *req, struct pen_err *err)
{
	struct channel *ch = c->priv;

	(void)cap, (void)err;
	for (unsigned i = 0; i < PEN_CHANNEL_REQS; i++)
		if (!ch->to[i]) {
			ch->to[i] = p;
			*req = 2 + i;
			return 0;
		}
	return PEN_ENOMEM;
}

static inline struct post *take_post(int rank)
{
	struct post *m;

	pthread_mutex_lock(&boxes.lock);
	m = boxes.first[rank];
	if (m) {
		boxes.first[rank] = m->next;
		if (!m->next)
			boxes.last[rank] = &boxes.first[rank];
	}
	pthread_mutex_unlock(&boxes.lock);
	return m;
}

static inline int channel_test(struct pen_channel *c, uint64_t *reqs, int n,
			       struct pen_channel_done *done,
			       struct pen_err *err)
{
	struct channel *ch = c->priv;
	int k = 0;

	if (atomic_load(&channel_fails))
		return pen__fail(err, P_IO, "channel", "is cut");
	for (int i = 0; i < n; i++) {
		struct post *m = NULL;

		if (!reqs[i])
			continue;
		if (reqs[i] > 1) {
			m = take_post(ch->rank);
			if (!m)
				continue;
			memcpy(ch->to[reqs[i] - 2], m->bytes, m->n);
			ch->to[reqs[i] - 2] = NULL;
		}
		done[k++] = (struct pen_channel_done){ i, m ? m->from : 0,
						       m ? m->n : 0 };
		reqs[i] = 0;
		free(m);
	}
	return k;
}

static inline void channel_cancel(struct pen_channel *c, uint64_t *reqs, int n)
{
	struct channel *ch = c->priv;

	for (int i = 0; i < n; i++) {
		if (reqs[i] > 1)
			ch->to[reqs[i] - 2] = NULL;
		reqs[i] = 0;
	}
}

static inline void channel_close(struct pen_channel *c)
{
	struct channel *ch = c->priv;
	struct post *m;

	while ((m = take_post(ch->rank)))
		free(m);
	free(ch);
}

static const struct pen_channel_ops channel_ops = {
	.close = channel_close,
	.send = channel_send,
	.recv = channel_recv,
	.test = channel_test,
	.cancel = channel_cancel,
};

static inline int channel_open(struct pen_comm *c, struct pen_channel **out,
			       struct pen_err *err)
{
	struct channel *ch = calloc(1, sizeof(*ch));

	(void)err;
	ch->rank = c->rank;
	ch->channel = (struct pen_channel){ &channel_ops, ch };
	pthread_mutex_lock(&boxes.lock);
	boxes.first[c->rank] = NULL;
	boxes.last[c->rank] = &boxes.first[c->rank];
	pthread_mutex_unlock(&boxes.lock);
	ranks_meet(c);
	*out = &ch->channel;
	return 0;
}

#endif
