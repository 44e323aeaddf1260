/*
 * A store moves byte ranges of objects; it knows nothing of samples.
 *
 * Reading goes through a queue that belongs to one thread: submit hands over
 * an io, reap returns finished ones. A synchronous store finishes inside
 * submit. A store either fills the caller's buffer or lends memory it has
 * (mmap, ram): then io->data points there until release.
 */
#ifndef PEN_STORE_STORE_H
#define PEN_STORE_STORE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <sys/types.h>

#include "base/bytes.h"
#include "base/opt.h"
#include "store/objects.h"

struct pen_io {
	uint64_t offset;
	size_t len;
	void *buf;	     /* where bytes go; unused when the store lends */
	uint32_t object;     /* index into the bound object set */
	int sys;	     /* out: errno of a failure */
	int64_t res;	     /* out: bytes there are (< len only at the object's
				end) or a negative pen_code */
	const void *data;    /* out: the bytes: buf, or lent memory */
	void *lent;	     /* the store's own note while memory is lent */
	void *user;	     /* the caller's */
	struct pen_io *next; /* the queue's, while submitted */
};

struct pen_store {
	const struct pen_store_ops *ops;
	const struct pen_objects *objs; /* bound before the first queue */
	void *priv;		 /* ops->priv_size bytes, options parsed */
	struct pen_store *under; /* fault, ddict: the store beneath */
	uint32_t align;	   /* > 1: offset, len and buf must be multiples */
	bool lends;	   /* io->data is the store's own memory */
	bool waits;	   /* a read is over when submit returns */
	bool checks_stale; /* compare size and mtime on open (default true) */
	bool by_range;	   /* what was read is kept by its range: the same bytes
			      have to be asked for in the same pieces */
	unsigned max_open; /* open files allowed per queue */
	unsigned nqueues;  /* that will be open at once; 0: not known */
	/* The reason of reads that end with PEN_ECLOSED: the store as a whole
	 * cannot go on. */
	const struct pen_err *lost;
	atomic_uint_fast64_t open_ns; /* spent opening files, all queues */
};

struct pen_queue {
	struct pen_store *st;
	unsigned depth;
	/* Set by the store: reads that were submitted are made one after
	 * another when they are reaped, so others had better take the next. */
	bool late;
	void *priv; /* ops->queue_size bytes */
};

/* A file being written. Nothing has its final name before commit. */
struct pen_sink {
	struct pen_store *st;
	uint64_t written;
	void *priv; /* ops->sink_size bytes */
};

/* Is the file of this name in this directory wanted? NULL: are all, also
 * hidden ones? */
typedef bool pen_keep_fn(void *arg, const char *dir, const char *name);

struct pen_store_ops {
	const char *name;
	const char *help; /* one line */
	const struct pen_opt *opts;
	size_t priv_size, queue_size, sink_size;
	/* Options are parsed into st->priv; sets align, lends. */
	int (*open)(struct pen_store *, struct pen_err *);
	void (*close)(struct pen_store *);
	/*
	 * All objects under path (a file, a directory and its subfolders, or a
	 * glob) into set, unsorted. keep() says which are wanted; NULL = all
	 * but hidden ones. Also adds each directory visited.
	 */
	int (*list)(struct pen_store *, const char *path, pen_keep_fn *keep,
		    void *arg, struct pen_objects *set, struct pen_err *);
	/*
	 * All of what is at path, an object or not, at most limit bytes: for
	 * what formats keep beside their objects. NULL when there is nothing
	 * beside objects; PEN_ENOTFOUND when it is not there.
	 */
	int (*read_whole)(struct pen_store *, const char *path, uint64_t limit,
			  struct pen_buf *out, struct pen_err *);
	/* Called once the object set is known, before queues; may be NULL. */
	int (*bind)(struct pen_store *, struct pen_err *);
	int (*queue_open)(struct pen_queue *, struct pen_err *);
	void (*queue_close)(
		struct pen_queue *); /* waits for what is in flight */
	/* 0, or PEN_END when full: reap first. Failures come out of reap. */
	int (*submit)(struct pen_queue *, struct pen_io *);
	/* At least min finished ones (fewer only when fewer are in flight). */
	unsigned (*reap)(struct pen_queue *, unsigned min, struct pen_io **done,
			 unsigned max);
	void (*release)(struct pen_queue *, struct pen_io *); /* may be NULL */
	/* Writing; NULL when the store cannot. path is dir/name. */
	int (*sink_open)(struct pen_sink *, const char *path, struct pen_err *);
	int (*sink_write)(struct pen_sink *, const void *, size_t,
			  struct pen_err *);
	/* Changes bytes that were written before, which are out then, also
	 * with n = 0; may be NULL. */
	int (*sink_patch)(struct pen_sink *, uint64_t at, const void *, size_t,
			  struct pen_err *);
	/* commit: durable under its final name; else nothing stays behind */
	int (*sink_close)(struct pen_sink *, bool commit, struct pen_err *);
};

/* The registry; NULL past the end / when unknown. */
const struct pen_store_ops *pen__store_at(unsigned i);
const struct pen_store_ops *pen__store_find(const char *name);

/* Options given as key/value pairs fill the implementation's table. */
/* So many objects stay mapped by store=mmap: half of the kernel's usual
 * limit. */
#define PEN_MAPPED_MAX 32768u

/* What store=auto chose: a store, how to open it, and why, in one line. */
struct pen_pick {
	const char *name, *why;
	struct pen_opts_kv opt[1];
	size_t nopts;
};
/* Samples are whole objects, or else reads of about read_bytes out of bigger
 * ones; packed: out of units that are unpacked; resident as below. */
struct pen_pick pen__store_pick(const struct pen_objects *, bool whole_objects,
				bool packed, uint64_t read_bytes,
				double resident);
/* Is there a uring store, and does the kernel let us use it? */
bool pen__store_uring_works(void);
/* Share of the bytes that is in the page cache, by samples; < 0: unknown. */
double pen__store_resident(const struct pen_objects *);
int pen__store_open(struct pen_store **out, const char *name,
		    const struct pen_opts_kv *kv, size_t nkv,
		    struct pen_err *err);
/* A decorator over a store that is open: which is its own from then on, also
 * when this fails. */
int pen__store_open_over(struct pen_store **out, const char *name,
			 struct pen_store *under, const struct pen_opts_kv *kv,
			 size_t nkv, struct pen_err *err);
void pen__store_close(struct pen_store *);
int pen__store_bind(struct pen_store *, const struct pen_objects *,
		    struct pen_err *);
/* So many queues will be open at once: what the process may open is for all of
 * them, unless each is given its open_files. Called before the first is opened.
 */
void pen__store_share_files(struct pen_store *, unsigned nqueues,
			    unsigned open_files);
int pen__queue_open(struct pen_queue **out, struct pen_store *, unsigned depth,
		    struct pen_err *err);
void pen__queue_close(struct pen_queue *);
/* One blocking read of exactly len bytes (indexing, small things). */
int pen__queue_read(struct pen_queue *, uint32_t object, uint64_t off,
		    void *buf, size_t len, struct pen_err *err);
/* What a failed or short io means, as an error that names the object. */
int pen__io_error(const struct pen_store *, const struct pen_io *,
		  struct pen_err *err);
int pen__sink_open(struct pen_sink **out, struct pen_store *, const char *path,
		   struct pen_err *err);
int pen__sink_write(struct pen_sink *, const void *, size_t,
		    struct pen_err *err);
/* Frees the sink in every case. */
int pen__sink_close(struct pen_sink *, bool commit, struct pen_err *err);

#endif
