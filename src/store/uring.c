/*
 * The store of files read through io_uring: many reads in flight from one
 * thread, and one system call for a group of them. Each queue has a ring of its
 * own. Reads are collected until the caller reaps or the queue is full.
 *
 * Buffers belong to the caller and change, so they are not registered; files
 * can be (fixed_files). Where the kernel does not permit io_uring, opening a
 * queue fails: there is no silent fallback, which would be measured as
 * something it is not.
 */
#include "store/files.h"

#include <errno.h>
#include <fcntl.h>
#include <liburing.h>
#include <string.h>

#define MAX_READ (1u << 30) /* an SQE's length has 32 bits */

struct uring_store {
	struct pen_file_opts files; /* first */
	bool fixed_files, sqpoll;
};

struct req {
	struct pen_io *io;
	struct pen_file *file;
	size_t got;
	uint32_t next; /* free list, or those not handed over yet */
};

struct uring_queue {
	struct io_uring ring;
	struct pen_files files;
	struct pen_done done;
	struct req *req;
	uint64_t *fixed;      /* serial of the file registered in each slot */
	uint32_t free;	      /* list ends, index + 1 */
	uint32_t first, last; /* prepared, not handed over */
	unsigned flying;      /* requests in use */
	int broken;	      /* errno since nothing can be handed over */
	bool closing;
};

static const struct pen_opt opts[] = {
	PEN_FILES_DIRECT(offsetof(struct uring_store, files)),
	PEN_FILES_ADVICE(offsetof(struct uring_store, files)),
	PEN_FILES_DROPCACHE(offsetof(struct uring_store, files)),
	{ .name = "fixed_files",
	  .type = PEN_OPT_BOOL,
	  .off = offsetof(struct uring_store, fixed_files),
	  .dflt = "false",
	  .help = "register open files with the ring: cheaper reads, more "
		  "expensive opens" },
	{ .name = "sqpoll",
	  .type = PEN_OPT_BOOL,
	  .off = offsetof(struct uring_store, sqpoll),
	  .dflt = "false",
	  .help = "let a kernel thread submit reads without system calls (uses "
		  "one CPU)" },
	PEN_FILES_FSYNC(offsetof(struct uring_store, files)),
	{ .name = NULL },
};

static int uring_open(struct pen_store *st, struct pen_err *err)
{
	const struct uring_store *u = st->priv;

	st->align = u->files.direct ? 4096 : 1;
	return pen__files_check(&u->files, err);
}

/* Newer kernels interrupt less if a single thread does everything. */
static int ring_init(struct uring_queue *p, unsigned depth, bool sqpoll)
{
	const unsigned best = sqpoll ? IORING_SETUP_SQPOLL
				     : IORING_SETUP_COOP_TASKRUN |
					       IORING_SETUP_TASKRUN_FLAG;
	int rc = io_uring_queue_init(depth, &p->ring, best);

	if (rc == -EINVAL && !sqpoll)
		rc = io_uring_queue_init(depth, &p->ring, 0);
	return -rc;
}

static int fail_ring(int sys, struct pen_err *err)
{
	const char *why = strerrordesc_np(sys);

	switch (sys) {
	case EPERM:
	case EACCES:
		why = "not permitted (by seccomp or "
		      "/proc/sys/kernel/io_uring_disabled)";
		break;
	case ENOSYS:
		why = "this kernel does not support it";
		break;
	case EMFILE:
		why = "too many open files, and each thread needs one more "
		      "(raise `ulimit -n` or lower threads=)";
		break;
	case ENOMEM:
		why = "the limit of locked memory is too low (ulimit -l)";
		break;
	}
	pen__fail(err, P_UNSUPPORTED_SYSTEM, "store=uring",
		  "cannot use io_uring: %s; use store=posix",
		  why ? why : "unknown error");
	if (err)
		err->sys = sys;
	return PEN_ENOTSUP;
}

static int open_reqs(struct pen_queue *q, struct pen_err *err)
{
	const struct uring_store *u = q->st->priv;
	struct uring_queue *p = q->priv;
	int rc;

	p->req = pen__calloc(q->depth, sizeof(*p->req));
	if (!p->req)
		return pen__fail_nomem(err, "uring",
				       q->depth * sizeof(*p->req));
	for (uint32_t i = 0; i < q->depth; i++) {
		p->req[i].next = p->free;
		p->free = i + 1;
	}
	if (!u->fixed_files)
		return 0;
	p->fixed = pen__calloc(p->files.cap, sizeof(*p->fixed));
	if (!p->fixed)
		return pen__fail_nomem(err, "uring",
				       p->files.cap * sizeof(*p->fixed));
	rc = io_uring_register_files_sparse(&p->ring, p->files.cap);
	return rc ? pen__fail_sys(err, -rc, "store=uring",
				  "cannot register files (set "
				  "store.fixed_files=false)")
		  : 0;
}

static int uring_queue_open(struct pen_queue *q, struct pen_err *err)
{
	const struct uring_store *u = q->st->priv;
	struct uring_queue *p = q->priv;
	int rc, sys;

	rc = pen__files_init(&p->files, q->st, q->st->max_open,
			     u->files.direct ? O_DIRECT : 0, err);
	if (rc)
		return rc;
	sys = ring_init(p, q->depth, u->sqpoll);
	if (sys) {
		pen__files_fini(&p->files);
		return fail_ring(sys, err);
	}
	rc = open_reqs(q, err);
	if (!rc)
		return 0;
	io_uring_queue_exit(&p->ring);
	pen__free(p->req);
	pen__free(p->fixed);
	pen__files_fini(&p->files);
	return rc;
}

/* With its result set, the read leaves the ring. */
static void finish(struct pen_queue *q, struct req *r)
{
	struct uring_queue *p = q->priv;

	pen__file_after(q->st->priv, q->st->objs, r->file, r->io);
	pen__files_put(r->file);
	pen__done_push(&p->done, r->io);
	r->io = NULL;
	r->next = p->free;
	p->free = (uint32_t)(r - p->req) + 1;
	p->flying--;
}

/* The file's registered slot; -1 if it cannot be registered. */
static int fixed_slot(struct uring_queue *p, const struct pen_file *f)
{
	const unsigned slot = (unsigned)(f - p->files.slot);

	if (!p->fixed)
		return -1;
	if (p->fixed[slot] == f->serial)
		return (int)slot;
	/* replaces an older one whose slot is free: no read uses it */
	if (io_uring_register_files_update(&p->ring, slot, &f->fd, 1) < 0)
		return -1;
	p->fixed[slot] = f->serial;
	return (int)slot;
}

static bool passing(int rc)
{
	return rc >= 0 || rc == -EINTR || rc == -EAGAIN || rc == -EBUSY;
}

static void fail_req(struct pen_queue *q, struct req *r, int sys)
{
	pen__io_end(r->io, PEN_EIO, sys);
	finish(q, r);
}

/*
 * There is an SQE for every request, so one is available; but a polling kernel
 * thread may finish a read before it returns the SQE.
 */
static struct io_uring_sqe *next_sqe(struct uring_queue *p, int *sys)
{
	struct io_uring_sqe *sqe;
	int rc = 0;

	while (!(sqe = io_uring_get_sqe(&p->ring)) && passing(rc))
		rc = io_uring_sqring_wait(&p->ring);
	*sys = -rc;
	return sqe;
}

static void prepare(struct pen_queue *q, struct req *r)
{
	struct uring_queue *p = q->priv;
	const struct pen_io *io = r->io;
	const size_t left = io->len - r->got;
	const unsigned n = left < MAX_READ ? (unsigned)left : MAX_READ;
	const uint32_t id = (uint32_t)(r - p->req) + 1;
	const int slot = fixed_slot(p, r->file);
	int sys;
	struct io_uring_sqe *sqe = next_sqe(p, &sys);

	if (!sqe) {
		fail_req(q, r, sys);
		return;
	}
	io_uring_prep_read(sqe, slot < 0 ? r->file->fd : slot,
			   (char *)io->buf + r->got, n, io->offset + r->got);
	if (slot >= 0)
		io_uring_sqe_set_flags(sqe, IOSQE_FIXED_FILE);
	io_uring_sqe_set_data(sqe, r);
	r->next = 0;
	if (p->first)
		p->req[p->last - 1].next = id;
	else
		p->first = id;
	p->last = id;
}

/*
 * The ring refuses for good (its descriptor was closed behind our back):
 * nothing may wait for what it has not taken and, if it cannot even be waited
 * on, for anything. Its SQEs stay where they are and are never handed over
 * again.
 */
static void give_up(struct pen_queue *q, int sys, bool all)
{
	struct uring_queue *p = q->priv;

	p->broken = sys;
	while (p->first) {
		struct req *r = &p->req[p->first - 1];

		p->first = r->next;
		fail_req(q, r, sys);
	}
	for (unsigned i = 0; all && i < q->depth; i++)
		if (p->req[i].io)
			fail_req(q, &p->req[i], sys);
}

/* Hands over what was prepared and waits for `wait` completions. */
static void hand_over(struct pen_queue *q, unsigned wait)
{
	struct uring_queue *p = q->priv;
	struct io_uring_cqe *cqe;
	int n;

	if (p->broken) {
		n = wait ? io_uring_wait_cqe(&p->ring, &cqe) : 0;
		if (!passing(n))
			give_up(q, -n, true);
		return;
	}
	n = io_uring_submit_and_wait(&p->ring, wait);
	if (!passing(n))
		give_up(q, -n, false);
	/* the kernel takes them in order */
	for (; n > 0 && p->first; n--)
		p->first = p->req[p->first - 1].next;
}

/* One completion: the read has finished, or continues with the rest. */
static void complete(struct pen_queue *q, struct req *r, int res)
{
	struct uring_queue *p = q->priv;
	struct pen_io *io = r->io;
	const bool stop = p->closing || p->broken;

	if ((res == -EINTR || res == -EAGAIN) && !stop) {
		prepare(q, r);
		return;
	}
	if (res < 0) {
		pen__io_end(io, pen__file_code(-res), -res);
		finish(q, r);
		return;
	}
	r->got += (size_t)res;
	if (!res || r->got >= io->len || pen__file_at_end(q->st, io, r->got)) {
		pen__io_end(io, (int64_t)r->got, 0);
		finish(q, r);
	} else if (stop) {
		fail_req(q, r, p->broken ? p->broken : ECANCELED);
	} else {
		prepare(q, r);
	}
}

static void drain(struct pen_queue *q)
{
	struct uring_queue *p = q->priv;
	struct io_uring_cqe *cqe;

	while (io_uring_peek_cqe(&p->ring, &cqe) == 0) {
		struct req *r = io_uring_cqe_get_data(cqe);
		const int res = cqe->res;

		io_uring_cqe_seen(&p->ring, cqe);
		complete(q, r, res);
	}
}

static void uring_queue_close(struct pen_queue *q)
{
	struct uring_queue *p = q->priv;

	/* reads of files depend on nothing else: they always finish */
	p->closing = true;
	while (p->flying) {
		hand_over(q, 1);
		drain(q);
	}
	io_uring_queue_exit(&p->ring);
	pen__files_fini(&p->files);
	pen__free(p->req);
	pen__free(p->fixed);
}

static int uring_submit(struct pen_queue *q, struct pen_io *io)
{
	const struct pen_store *st = q->st;
	struct uring_queue *p = q->priv;
	struct pen_file *f;
	struct req *r;
	int rc, sys = 0;

	if (p->flying + p->done.n >= q->depth)
		return PEN_END;
	rc = pen__files_get(&p->files, io->object, &f, &sys);
	if (rc == PEN_END)
		return rc; /* all open files are being read */
	pen__io_end(io,
		    rc		? rc
		    : p->broken ? PEN_EIO
				: 0,
		    rc ? sys : p->broken);
	if (rc || p->broken || !io->len || io->offset > INT64_MAX - io->len) {
		if (!rc)
			pen__files_put(f);
		pen__done_push(&p->done, io);
		return 0;
	}
	pen__file_before(st->priv, st->objs, f, io);
	r = &p->req[p->free - 1];
	p->free = r->next;
	p->flying++;
	*r = (struct req){ .io = io, .file = f };
	prepare(q, r);
	if (p->flying + p->done.n == q->depth)
		hand_over(q, 0);
	return 0;
}

static unsigned uring_reap(struct pen_queue *q, unsigned min,
			   struct pen_io **done, unsigned max)
{
	struct uring_queue *p = q->priv;

	if (min > max)
		min = max;
	drain(q);
	if (p->first)
		hand_over(q, 0);
	drain(q);
	while (p->done.n < min && p->flying) {
		hand_over(q, 1);
		drain(q);
	}
	return pen__done_pop(&p->done, done, max);
}

const struct pen_store_ops pen__store_uring = {
	.name = "uring",
	.help = "files, read through io_uring: many reads in flight per thread",
	.opts = opts,
	.priv_size = sizeof(struct uring_store),
	.queue_size = sizeof(struct uring_queue),
	.sink_size = sizeof(struct pen_file_sink),
	.open = uring_open,
	.list = pen__files_list,
	.read_whole = pen__files_read_whole,
	.bind = pen__files_bind_direct,
	.queue_open = uring_queue_open,
	.queue_close = uring_queue_close,
	.submit = uring_submit,
	.reap = uring_reap,
	.sink_open = pen__file_sink_open,
	.sink_write = pen__file_sink_write,
	.sink_patch = pen__file_sink_patch,
	.sink_close = pen__file_sink_close,
};
