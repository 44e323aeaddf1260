/*
 * A store moves byte ranges of objects; it knows nothing about samples.
 *
 * Reading goes through a queue that belongs to one thread: submit hands over an
 * io, reap returns finished ones. A synchronous store finishes inside submit. A
 * store either fills the caller's buffer or lends memory of its own (mmap,
 * ram): then io->data points there until release.
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
	void *buf;	 /* destination; unused if the store lends */
	uint32_t object; /* index into the bound object set */
	int sys;	 /* out: errno of a failure */
	int64_t res; /* out: bytes read (< len only at the object's end) or a
			negative pen_code */
	const void *data;    /* out: the bytes: buf, or lent memory */
	void *lent;	     /* the store's own note while memory is lent */
	void *user;	     /* the caller's */
	struct pen_io *next; /* the queue's, while submitted */
};

struct pen_store {
	const struct pen_store_ops *ops;
	const struct pen_objects *objs; /* bound before the first queue */
	void *priv;		 /* ops->priv_size bytes, options parsed */
	struct pen_store *under; /* fault, ddict: the store below */
	uint32_t align;	   /* > 1: offset, len and buf must be multiples */
	bool lends;	   /* io->data is the store's own memory */
	bool waits;	   /* a read has finished when submit returns */
	bool checks_stale; /* compare size and mtime on open (default true) */
	bool by_range; /* data is cached by range: request the same bytes in the
			  same pieces */
	bool far;      /* reads take a round trip: many should be in flight */
	bool in_order; /* objects stay in the order in which they are listed */
	const char *format; /* of its objects unless one is named, or NULL */
	unsigned max_open;  /* open files allowed per queue */
	unsigned nqueues;   /* open at a time; 0: not known */
	/* Why reads end with PEN_ECLOSED: the store as a whole cannot
	 * continue. */
	const struct pen_err *lost;
	atomic_uint_fast64_t open_ns; /* time spent opening files, all queues */
};

struct pen_queue {
	struct pen_store *st;
	unsigned depth;
	/* Set by the store: submitted reads are made one after another when
	 * they are reaped, so other threads should take the next ones. */
	bool late;
	void *priv; /* ops->queue_size bytes */
};

/* A file being written. It gets its final name on commit. */
struct pen_sink {
	struct pen_store *st;
	uint64_t written;
	void *priv; /* ops->sink_size bytes */
};

/* Is the file of this name in this directory wanted? name NULL: are all files
 * wanted, including hidden ones? */
typedef bool pen_keep_fn(void *arg, const char *dir, const char *name);

struct pen_store_ops {
	const char *name;
	const char *help; /* one line */
	const struct pen_opt *opts;
	size_t priv_size, queue_size, sink_size;
	/* Options are parsed into st->priv; sets align and lends. */
	int (*open)(struct pen_store *, struct pen_err *);
	void (*close)(struct pen_store *);
	/*
	 * Adds all objects under path (a file, a directory with its subfolders,
	 * or a glob) to set, unsorted, and each directory visited. keep()
	 * selects them; NULL = all except hidden ones.
	 */
	int (*list)(struct pen_store *, const char *path, pen_keep_fn *keep,
		    void *arg, struct pen_objects *set, struct pen_err *);
	/*
	 * Reads everything at path, an object or not, up to limit bytes: for
	 * files that formats keep next to their objects. NULL if the store has
	 * none; PEN_ENOTFOUND if it does not exist.
	 */
	int (*read_whole)(struct pen_store *, const char *path, uint64_t limit,
			  struct pen_buf *out, struct pen_err *);
	/* Called once the object set is known, before queues; may be NULL. */
	int (*bind)(struct pen_store *, struct pen_err *);
	/* Before an object is indexed: an error if it does not exist; may be
	 * NULL. */
	int (*check)(struct pen_store *, uint32_t object, struct pen_err *);
	int (*queue_open)(struct pen_queue *, struct pen_err *);
	void (*queue_close)(struct pen_queue *); /* waits for reads in flight */
	/* 0, or PEN_END when full: reap first. Failures come out of reap. */
	int (*submit)(struct pen_queue *, struct pen_io *);
	/* At least min finished ones (fewer only if fewer are in flight). */
	unsigned (*reap)(struct pen_queue *, unsigned min, struct pen_io **done,
			 unsigned max);
	void (*release)(struct pen_queue *, struct pen_io *); /* may be NULL */
	/* Writing; NULL if the store is read-only. path is dir/name. */
	int (*sink_open)(struct pen_sink *, const char *path, struct pen_err *);
	int (*sink_write)(struct pen_sink *, const void *, size_t,
			  struct pen_err *);
	/* Changes bytes written before, and flushes everything, even with n =
	 * 0; may be NULL. */
	int (*sink_patch)(struct pen_sink *, uint64_t at, const void *, size_t,
			  struct pen_err *);
	/* commit: durable under its final name; else nothing stays behind */
	int (*sink_close)(struct pen_sink *, bool commit, struct pen_err *);
};

/* The registry; NULL past the end, or if unknown. */
const struct pen_store_ops *pen__store_at(unsigned i);
const struct pen_store_ops *pen__store_find(const char *name);

/* Objects that store=mmap keeps mapped: half of the kernel's usual limit. */
#define PEN_MAPPED_MAX 32768u

/* What store=auto chose: a store, its options, and the reason in one line. */
struct pen_pick {
	const char *name, *why;
	struct pen_opts_kv opt[1];
	size_t nopts;
};
/* Samples are entire objects, or else reads of about read_bytes from larger
 * ones; packed: from units that are unpacked; resident as below. */
struct pen_pick pen__store_pick(const struct pen_objects *, bool whole_objects,
				bool packed, uint64_t read_bytes,
				double resident);
/* Does a uring store exist, and does the kernel permit it? */
bool pen__store_uring_works(void);
/* Share of the bytes in the page cache, estimated by sampling; < 0: unknown. */
double pen__store_resident(const struct pen_objects *);
int pen__store_open(struct pen_store **out, const char *name,
		    const struct pen_opts_kv *kv, size_t nkv,
		    struct pen_err *err);
/* A decorator on top of an open store, which it owns from then on, even if this
 * fails. */
int pen__store_open_over(struct pen_store **out, const char *name,
			 struct pen_store *under, const struct pen_opts_kv *kv,
			 size_t nkv, struct pen_err *err);
void pen__store_close(struct pen_store *);
int pen__store_bind(struct pen_store *, const struct pen_objects *,
		    struct pen_err *);
/* Announces how many queues will be open at a time, which share the open files
 * that the process may have, unless each gets open_files. Called before the
 * first queue is opened. */
void pen__store_share_files(struct pen_store *, unsigned nqueues,
			    unsigned open_files);
int pen__queue_open(struct pen_queue **out, struct pen_store *, unsigned depth,
		    struct pen_err *err);
void pen__queue_close(struct pen_queue *);
/* One blocking read of exactly len bytes (for indexing and small things). */
int pen__queue_read(struct pen_queue *, uint32_t object, uint64_t off,
		    void *buf, size_t len, struct pen_err *err);
/* The error that a failed or short io stands for, naming the object. */
int pen__io_error(const struct pen_store *, const struct pen_io *,
		  struct pen_err *err);
int pen__sink_open(struct pen_sink **out, struct pen_store *, const char *path,
		   struct pen_err *err);
int pen__sink_write(struct pen_sink *, const void *, size_t,
		    struct pen_err *err);
/* Frees the sink in every case. */
int pen__sink_close(struct pen_sink *, bool commit, struct pen_err *err);

#endif
