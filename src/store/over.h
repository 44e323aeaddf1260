/*
 * What stores on top of another one share: everything they pass on unchanged.
 * Their priv starts with a struct pen_over.
 */
#ifndef PEN_STORE_OVER_H
#define PEN_STORE_OVER_H

#include <pthread.h>

#include "store/store.h"

struct pen_over {
	pthread_mutex_t lock; /* passes settings down, one queue at a time */
};

void pen__over_init(struct pen_store *);
void pen__over_fini(struct pen_store *);
/* Binds the store below; the caller then reads its properties. */
int pen__over_bind(struct pen_store *, struct pen_err *);
/* A queue of the store below, as deep as ours. */
int pen__over_queue(struct pen_queue *of, struct pen_queue **out,
		    struct pen_err *);

/* pen_store_ops */
int pen__over_list(struct pen_store *, const char *path, pen_keep_fn *keep,
		   void *arg, struct pen_objects *set, struct pen_err *);
int pen__over_read_whole(struct pen_store *, const char *path, uint64_t limit,
			 struct pen_buf *out, struct pen_err *);
/* sink_size is that of a pointer. */
int pen__over_sink_open(struct pen_sink *, const char *path, struct pen_err *);
int pen__over_sink_write(struct pen_sink *, const void *, size_t,
			 struct pen_err *);
int pen__over_sink_close(struct pen_sink *, bool commit, struct pen_err *);

#endif
