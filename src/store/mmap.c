/*
 * The store of mapped files: a read lends the page cache's own memory, nothing
 * is copied and, once an object is mapped, no system call is made. Up to
 * PEN_MAPPED_MAX objects are mapped once for all queues and stay mapped; beyond
 * that each queue keeps those it used last, because the kernel limits the maps
 * of a process.
 *
 * The bytes are read from disk only when they are touched, which this store
 * cannot see; so whoever touches them is guarded against a file that shrinks.
 */
#include "store/files.h"

#include <errno.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/guard.h"

#define NLOCKS 16u

/* p is set last: a thread that sees it also sees n. */
struct mapped {
	_Atomic(const uint8_t *) p;
	size_t n;
};

struct mmap_store {
	struct pen_file_opts files; /* for the sinks; first */
	bool hugepages, populate;
	int advice;
	struct mapped *map; /* per object, or NULL when there are too many */
	uint64_t nmap;
	pthread_mutex_t lock[NLOCKS]; /* for mapping, by object */
};

struct mmap_queue {
	struct pen_done done; /* first */
	struct mapped *map;   /* the store's */
	struct pen_files files;
};

static const char *const advices[] = { "auto",	     "normal",	 "random",
				       "sequential", "willneed", NULL };

static const struct pen_opt opts[] = {
	{ .name = "hugepages",
	  .type = PEN_OPT_BOOL,
	  .off = offsetof(struct mmap_store, hugepages),
	  .dflt = "false",
	  .help = "ask for huge pages (effective if the file system supports "
		  "them)" },
	{ .name = "populate",
	  .type = PEN_OPT_BOOL,
	  .off = offsetof(struct mmap_store, populate),
	  .dflt = "false",
	  .help = "read an entire object on first use" },
	{ .name = "advise",
	  .type = PEN_OPT_ENUM,
	  .off = offsetof(struct mmap_store, advice),
	  .dflt = "auto",
	  .choices = advices,
	  .help = "access pattern announced to the kernel (auto = random for "
		  "objects over 4 MiB)" },
	PEN_FILES_FSYNC(offsetof(struct mmap_store, files)),
	{ .name = NULL },
};

static const uint8_t nothing[1]; /* what an empty object maps to */

static int mmap_open(struct pen_store *st, struct pen_err *err)
{
	struct mmap_store *m = st->priv;

	(void)err;
	for (unsigned i = 0; i < NLOCKS; i++)
		pthread_mutex_init(&m->lock[i], NULL);
	pen__guard_install();
	st->lends = true;
	return 0;
}

static void unmap_all(struct mmap_store *m)
{
	for (uint64_t i = 0; i < m->nmap; i++) {
		const uint8_t *p = atomic_load(&m->map[i].p);

		if (p && m->map[i].n)
			munmap((void *)(uintptr_t)p, m->map[i].n);
	}
	pen__free(m->map);
	m->map = NULL;
	m->nmap = 0;
}

static void mmap_close(struct pen_store *st)
{
	struct mmap_store *m = st->priv;

	unmap_all(m);
	for (unsigned i = 0; i < NLOCKS; i++)
		pthread_mutex_destroy(&m->lock[i]);
}

static int mmap_bind(struct pen_store *st, struct pen_err *err)
{
	struct mmap_store *m = st->priv;
	const uint64_t n = st->objs->nobj;

	unmap_all(m);
	if (!n || n > PEN_MAPPED_MAX)
		return 0;
	m->map = pen__calloc(n, sizeof(*m->map));
	if (!m->map)
		return pen__fail_nomem(err, "mmap", n * sizeof(*m->map));
	m->nmap = n;
	return 0;
}

static int mmap_queue_open(struct pen_queue *q, struct pen_err *err)
{
	const struct mmap_store *m = q->st->priv;
	struct mmap_queue *p = q->priv;

	p->map = m->map;
	return pen__files_init(&p->files, q->st, p->map ? 1 : q->st->max_open,
			       0, err);
}

static void mmap_queue_close(struct pen_queue *q)
{
	struct mmap_queue *p = q->priv;

	pen__files_fini(&p->files);
}

static void advise(const struct mmap_store *m, void *p, size_t n)
{
	static const int of[] = {
		[PEN_ADVISE_NORMAL] = MADV_NORMAL,
		[PEN_ADVISE_RANDOM] = MADV_RANDOM,
		[PEN_ADVISE_SEQUENTIAL] = MADV_SEQUENTIAL,
		[PEN_ADVISE_WILLNEED] = MADV_WILLNEED,
	};
	int want = m->advice;

	if (want == PEN_ADVISE_AUTO)
		want = n > PEN_BIG_OBJECT ? PEN_ADVISE_RANDOM
					  : PEN_ADVISE_NORMAL;
	if (want != PEN_ADVISE_NORMAL)
		madvise(p, n, of[want]);
	if (m->hugepages)
		madvise(p, n, MADV_HUGEPAGE);
}

/* Maps an open file entirely; 0 or a pen_code and *sys. */
static int map_fd(const struct pen_store *st, int fd, uint32_t object,
		  const uint8_t **out, size_t *len, int *sys)
{
	const struct mmap_store *m = st->priv;
	uint64_t n = st->objs->obj[object].size;
	struct stat sb;
	void *p;

	if (!st->checks_stale && fstat(fd, &sb) == 0 && sb.st_size >= 0)
		n = (uint64_t)sb.st_size;
	*out = nothing;
	*len = (size_t)n;
	if (!n)
		return 0;
	p = mmap(NULL, (size_t)n, PROT_READ,
		 MAP_SHARED | (m->populate ? MAP_POPULATE : 0), fd, 0);
	if (p == MAP_FAILED) {
		*sys = errno;
		return pen__file_code(errno);
	}
	advise(m, p, (size_t)n);
	*out = p;
	return 0;
}

static int map_object(struct pen_queue *q, uint32_t object, const uint8_t **out,
		      size_t *len, int *sys)
{
	struct mmap_queue *p = q->priv;
	int fd, rc = pen__files_open(&p->files, object, &fd, sys);

	if (rc)
		return rc;
	rc = map_fd(q->st, fd, object, out, len, sys);
	close(fd);
	return rc;
}

/* The first use of a shared object; later ones never come here. */
static void lend_new(struct pen_queue *q, struct pen_io *io)
{
	struct mmap_store *m = q->st->priv;
	struct mapped *to = &m->map[io->object];
	pthread_mutex_t *lock = &m->lock[io->object % NLOCKS];
	const uint8_t *p;
	int rc = 0, sys = 0;

	pthread_mutex_lock(lock);
	p = atomic_load_explicit(&to->p, memory_order_relaxed);
	if (!p) {
		rc = map_object(q, io->object, &p, &to->n, &sys);
		if (!rc)
			atomic_store_explicit(&to->p, p, memory_order_release);
	}
	pthread_mutex_unlock(lock);
	if (rc)
		pen__io_end(io, rc, sys);
	else
		pen__io_lend(io, p, to->n);
}

/* All maps of the queue are lent: adds one for this read alone. */
static int lend_extra(struct pen_queue *q, struct pen_io *io, int *sys)
{
	struct pen_file *f = pen__calloc(1, sizeof(*f));
	const uint8_t *p;
	int rc;

	if (!f)
		return PEN_ENOMEM;
	rc = map_object(q, io->object, &p, &f->map_len, sys);
	if (rc) {
		pen__free(f);
		return rc;
	}
	f->map = (void *)(uintptr_t)p;
	pen__io_lend(io, p, f->map_len);
	io->lent = f; /* its serial is 0, unlike that of a slot */
	return 0;
}

static int lend_cached(struct pen_queue *q, struct pen_io *io, int *sys)
{
	struct mmap_queue *p = q->priv;
	struct pen_file *f;
	const uint8_t *at;
	int rc = pen__files_get(&p->files, io->object, &f, sys);

	if (rc == PEN_END)
		return lend_extra(q, io, sys);
	if (rc)
		return rc;
	if (!f->map) {
		rc = map_fd(q->st, f->fd, io->object, &at, &f->map_len, sys);
		if (rc) {
			f->map_len = 0;
			pen__files_put(f);
			return rc;
		}
		f->map = (void *)(uintptr_t)at;
		close(f->fd); /* the map keeps the file */
		f->fd = -1;
	}
	pen__io_lend(io, f->map, f->map_len);
	io->lent = f;
	return 0;
}

static int mmap_submit(struct pen_queue *q, struct pen_io *io)
{
	struct mmap_queue *p = q->priv;
	int rc, sys = 0;

	if (p->done.n >= q->depth)
		return PEN_END;
	if (p->map) {
		const struct mapped *m = &p->map[io->object];
		const uint8_t *at =
			atomic_load_explicit(&m->p, memory_order_acquire);

		if (at)
			pen__io_lend(io, at, m->n);
		else
			lend_new(q, io);
	} else {
		rc = lend_cached(q, io, &sys);
		if (rc)
			pen__io_end(io, rc, sys);
	}
	pen__done_push(&p->done, io);
	return 0;
}

static void mmap_release(struct pen_queue *q, struct pen_io *io)
{
	struct pen_file *f = io->lent;

	(void)q;
	if (!f)
		return;
	io->lent = NULL;
	if (f->serial) {
		pen__files_put(f);
		return;
	}
	if (f->map_len)
		munmap(f->map, f->map_len);
	pen__free(f);
}

const struct pen_store_ops pen__store_mmap = {
	.name = "mmap",
	.help = "memory-mapped files: no copies, and no system calls once "
		"mapped",
	.opts = opts,
	.priv_size = sizeof(struct mmap_store),
	.queue_size = sizeof(struct mmap_queue),
	.sink_size = sizeof(struct pen_file_sink),
	.open = mmap_open,
	.close = mmap_close,
	.list = pen__files_list,
	.read_whole = pen__files_read_whole,
	.bind = mmap_bind,
	.queue_open = mmap_queue_open,
	.queue_close = mmap_queue_close,
	.submit = mmap_submit,
	.reap = pen__done_reap,
	.release = mmap_release,
	.sink_open = pen__file_sink_open,
	.sink_write = pen__file_sink_write,
	.sink_patch = pen__file_sink_patch,
	.sink_close = pen__file_sink_close,
};
