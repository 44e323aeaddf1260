/*
 * What stores of files share: finding them, keeping them open, writing them,
 * and the list of finished reads of a store that finishes inside submit.
 */
#ifndef PEN_STORE_FILES_H
#define PEN_STORE_FILES_H

#include <limits.h>
#include <stdatomic.h>

#include "base/mem.h"
#include "store/store.h"

/* Options every store of files may have; first in its priv. */
struct pen_file_opts {
	bool direct, dropcache, fsync;
	int advice; /* enum pen_advice */
	uint64_t readahead;
	atomic_uint nsinks; /* makes temporary names differ */
};

enum pen_advice {
	PEN_ADVISE_AUTO,
	PEN_ADVISE_NORMAL,
	PEN_ADVISE_RANDOM,
	PEN_ADVISE_SEQUENTIAL,
	PEN_ADVISE_WILLNEED,
	PEN_ADVISE_NOREUSE,
};
extern const char *const pen__file_advice[]; /* their names, in that order */

/* Entries of option tables; `at` is where struct pen_file_opts is in priv. */
#define PEN_FILES_DIRECT(at)                                                   \
	{                                                                      \
		.name = "direct", .type = PEN_OPT_BOOL,                        \
		.off = (at) + offsetof(struct pen_file_opts, direct),          \
		.dflt = "false", .help = "bypass the page cache (O_DIRECT)"    \
	}
#define PEN_FILES_ADVICE(at)                                                   \
	{                                                                      \
		.name = "fadvise", .type = PEN_OPT_ENUM,                       \
		.off = (at) + offsetof(struct pen_file_opts, advice),          \
		.dflt = "auto", .choices = pen__file_advice,                   \
		.help = "access pattern announced to the kernel (auto = "      \
			"random for scattered small reads of large objects)"   \
	}
#define PEN_FILES_DROPCACHE(at)                                                \
	{                                                                      \
		.name = "dropcache", .type = PEN_OPT_BOOL,                     \
		.off = (at) + offsetof(struct pen_file_opts, dropcache),       \
		.dflt = "false",                                               \
		.help = "drop data from the page cache after reading, so "     \
			"that the next pass is cold too"                       \
	}
#define PEN_FILES_FSYNC(at)                                                    \
	{                                                                      \
		.name = "fsync", .type = PEN_OPT_BOOL,                         \
		.off = (at) + offsetof(struct pen_file_opts, fsync),           \
		.dflt = "false",                                               \
		.help = "sync written files, so that they survive a power "    \
			"failure"                                              \
	}

/* Reads of less than this from objects of more than that count as random. */
#define PEN_SMALL_IO (128u << 10)
#define PEN_BIG_OBJECT (4u << 20)

/* An errno as a pen_code. */
int pen__file_code(int sys);

/* pen_store_ops.list of a store of files. */
int pen__files_list(struct pen_store *, const char *path, pen_keep_fn *keep,
		    void *arg, struct pen_objects *set, struct pen_err *);

/* Rejects page cache settings that O_DIRECT ignores. */
int pen__files_check(const struct pen_file_opts *, struct pen_err *);

/* pen_store_ops.read_whole of a store of files. */
int pen__files_read_whole(struct pen_store *, const char *path, uint64_t limit,
			  struct pen_buf *out, struct pen_err *);

/*
 * With O_DIRECT: opens the first object that way, to report early what would
 * fail later, and sets st->align to what its file system needs.
 */
int pen__files_bind_direct(struct pen_store *, struct pen_err *);

/* An open (or mapped) object of one queue. */
struct pen_file {
	uint64_t serial; /* unique among the opened files of the queue */
	uint64_t end;	 /* where the last read ended */
	uint64_t ahead;	 /* end of the requested read-ahead */
	void *map;	 /* the mmap store's */
	size_t map_len;
	uint32_t object, chain, pins;
	int fd; /* -1: none */
	uint8_t advice, streak;
	bool recent;
};

/*
 * Open files of one queue, by object: at most cap, dropped in CLOCK order,
 * never while pinned. All operations are O(1) and allocate nothing.
 */
struct pen_files {
	struct pen_store *st;
	struct pen_file *slot;
	uint32_t *head; /* hash: slot + 1, 0 = end of chain */
	int *dirfd;	/* per directory when there are few, else NULL */
	uint32_t mask, cap, n, hand, ndirfd;
	int flags; /* for open(2), beyond O_RDONLY | O_CLOEXEC */
	uint64_t serial;
	char path[PATH_MAX];
};

/*
 * Makes room for n descriptors. The kernel's descriptor table doubles whenever
 * it is full. In a process with threads that takes about 10 ms each time,
 * during which no thread can open a file. So it gets its full size before
 * threads start, or at least in one step. If that fails, it grows as before.
 */
void pen__descriptors_reserve(uint64_t n);

int pen__files_init(struct pen_files *, struct pen_store *, unsigned cap,
		    int flags, struct pen_err *);
void pen__files_fini(struct pen_files *);
/*
 * The object's slot, opened and checked, with one pin added. Returns 0, PEN_END
 * if all slots are pinned, or a negative pen_code with *sys its errno.
 */
int pen__files_get(struct pen_files *, uint32_t object, struct pen_file **out,
		   int *sys);
static inline void pen__files_put(struct pen_file *f)
{
	f->pins--;
}
/* Opens and checks one object without the cache. 0 or a pen_code. */
int pen__files_open(struct pen_files *, uint32_t object, int *fd, int *sys);

/* Announces the access to the kernel, before and after a read of an open
 * file. */
void pen__file_before(const struct pen_file_opts *, const struct pen_objects *,
		      struct pen_file *, const struct pen_io *);
void pen__file_after(const struct pen_file_opts *, const struct pen_objects *,
		     struct pen_file *, const struct pen_io *);

/*
 * Whether a read that brought `got` bytes of io has reached the end of the
 * object, as far as known without another call. O_DIRECT stops at the end only
 * in the middle of a block, and cannot continue from there.
 */
static inline bool pen__file_at_end(const struct pen_store *st,
				    const struct pen_io *io, uint64_t got)
{
	return io->offset + got >= st->objs->obj[io->object].size ||
	       (st->align > 1 && got % st->align);
}

/* Sinks of stores of files: pen_store_ops.sink_*. */
struct pen_file_sink {
	char *path, *tmp;
	int fd;
	bool bad; /* a write failed: never commit */
	struct pen_block stage;
	size_t fill;
};
int pen__file_sink_open(struct pen_sink *, const char *path, struct pen_err *);
int pen__file_sink_write(struct pen_sink *, const void *, size_t,
			 struct pen_err *);
int pen__file_sink_patch(struct pen_sink *, uint64_t at, const void *, size_t,
			 struct pen_err *);
int pen__file_sink_close(struct pen_sink *, bool commit, struct pen_err *);

/* Finished reads, first in first out. tail is only read when head is set. */
struct pen_done {
	struct pen_io *head, *tail;
	unsigned n;
};
static inline void pen__done_push(struct pen_done *d, struct pen_io *io)
{
	io->next = NULL;
	if (d->head)
		d->tail->next = io;
	else
		d->head = io;
	d->tail = io;
	d->n++;
}
static inline unsigned pen__done_pop(struct pen_done *d, struct pen_io **done,
				     unsigned max)
{
	unsigned n = 0;

	while (n < max && d->head) {
		done[n] = d->head;
		d->head = d->head->next;
		n++;
	}
	d->n -= n;
	return n;
}
/* pen_store_ops.reap of a store that finishes inside submit, and whose queue
 * starts with a struct pen_done. */
unsigned pen__done_reap(struct pen_queue *, unsigned min, struct pen_io **done,
			unsigned max);

/* Lends the io its part of an object of n bytes at p. */
static inline void pen__io_lend(struct pen_io *io, const uint8_t *p, size_t n)
{
	const size_t off = io->offset < n ? (size_t)io->offset : n;

	io->data = p + off;
	io->res = (int64_t)(io->len < n - off ? io->len : n - off);
	io->sys = 0;
	io->lent = NULL;
}
static inline void pen__io_end(struct pen_io *io, int64_t res, int sys)
{
	io->res = res;
	io->sys = sys;
	io->data = io->buf;
	io->lent = NULL;
}

#endif
