/*
 * A store on top of another one that injects faults: late, short and failed
 * reads, counted over all queues of the store. Tests put it below everything;
 * users can see what a slow or broken store does to a run.
 *
 * A delay is slept in submit, so it blocks its queue as a slow synchronous
 * store does. Reads in flight wait out their delays at the same time; with a
 * rate they pass one after another, over all queues, as through one line.
 * Listing and writing are passed on unchanged.
 */
#include <errno.h>
#include <stdatomic.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/mem.h"
#include "store/files.h"
#include "store/over.h"

struct fault {
	struct pen_over over;
	char *under, *fail_object;
	uint64_t delay_ns, delay_every, rate;
	uint64_t fail_nth, fail_every, short_nth, short_bytes, truncate;
	int64_t fail_errno;
	atomic_uint_fast64_t nreads;
	atomic_uint_fast64_t free_at; /* rate: when earlier reads have passed */
};

/* A read on its way: the store below gets a copy of its own, and the original
 * gets the altered result. */
struct ride {
	struct pen_io io;
	struct pen_io *orig;
	struct ride *free;
	bool cut;
};

struct fault_queue {
	struct pen_queue *under;
	struct ride *all, *free;
	struct pen_done done; /* reads that failed here */
	unsigned busy;	      /* rides, and reads in done */
	uint64_t ticket;      /* number of the read to be submitted again */
};

static const struct pen_opt opts[] = {
	{ .name = "under",
	  .type = PEN_OPT_STR,
	  .off = offsetof(struct fault, under),
	  .dflt = "posix",
	  .help = "store below this one, which receives all other settings" },
	{ .name = "delay",
	  .type = PEN_OPT_TIME,
	  .off = offsetof(struct fault, delay_ns),
	  .dflt = "0ns",
	  .help = "delay added to a read" },
	{ .name = "delay_every",
	  .type = PEN_OPT_COUNT,
	  .off = offsetof(struct fault, delay_every),
	  .dflt = "1",
	  .help = "delay every n-th read" },
	{ .name = "rate",
	  .type = PEN_OPT_SIZE,
	  .off = offsetof(struct fault, rate),
	  .dflt = "0",
	  .help = "bandwidth limit of all threads together in bytes per second "
		  "(0 = none)" },
	{ .name = "fail_nth",
	  .type = PEN_OPT_COUNT,
	  .off = offsetof(struct fault, fail_nth),
	  .dflt = "0",
	  .help = "fail the n-th read (0 = none)" },
	{ .name = "fail_every",
	  .type = PEN_OPT_COUNT,
	  .off = offsetof(struct fault, fail_every),
	  .dflt = "0",
	  .help = "fail every n-th read (0 = none)" },
	{ .name = "fail_errno",
	  .type = PEN_OPT_INT,
	  .off = offsetof(struct fault, fail_errno),
	  .dflt = "5",
	  .min = 1,
	  .max = 4095,
	  .help = "errno of failed reads (5 = EIO)" },
	{ .name = "fail_object",
	  .type = PEN_OPT_STR,
	  .off = offsetof(struct fault, fail_object),
	  .help = "fail reads of objects whose name contains this" },
	{ .name = "short_nth",
	  .type = PEN_OPT_COUNT,
	  .off = offsetof(struct fault, short_nth),
	  .dflt = "0",
	  .help = "cut the n-th read short, as at the end of an object (0 = "
		  "none)" },
	{ .name = "short_bytes",
	  .type = PEN_OPT_SIZE,
	  .off = offsetof(struct fault, short_bytes),
	  .dflt = "0",
	  .help = "bytes delivered by the read that is cut short (0 = half of "
		  "them)" },
	{ .name = "truncate",
	  .type = PEN_OPT_SIZE,
	  .off = offsetof(struct fault, truncate),
	  .dflt = "0",
	  .help = "make every object appear to end at this byte (0 = off)" },
	{ .name = NULL },
};

static void follow(struct pen_store *st)
{
	const struct fault *f = st->priv;

	st->align = st->under->align;
	st->lends = st->under->lends;
	st->waits = st->under->waits || f->delay_ns || f->rate;
}

static int fault_open(struct pen_store *st, struct pen_err *err)
{
	(void)err;
	pen__over_init(st);
	follow(st);
	return 0;
}

static int fault_bind(struct pen_store *st, struct pen_err *err)
{
	int rc = pen__over_bind(st, err);

	follow(st);
	return rc;
}

static int fault_queue_open(struct pen_queue *q, struct pen_err *err)
{
	struct fault_queue *p = q->priv;
	int rc;

	p->all = pen__calloc(q->depth, sizeof(*p->all));
	if (!p->all)
		return pen__fail_nomem(err, "fault",
				       q->depth * sizeof(*p->all));
	for (unsigned i = 0; i < q->depth; i++) {
		p->all[i].free = p->free;
		p->free = &p->all[i];
	}
	rc = pen__over_queue(q, &p->under, err);
	if (rc)
		pen__free(p->all);
	return rc;
}

static void fault_queue_close(struct pen_queue *q)
{
	struct fault_queue *p = q->priv;

	pen__queue_close(p->under);
	pen__free(p->all);
}

static void sleep_ns(uint64_t ns)
{
	struct timespec t = { (time_t)(ns / 1000000000u),
			      (long)(ns % 1000000000u) };

	while (ns && clock_nanosleep(CLOCK_MONOTONIC, 0, &t, &t) == EINTR)
		;
}

/* Waits until all bytes requested before, and these, have passed. */
static void wait_turn(struct fault *f, uint64_t bytes)
{
	const uint64_t takes = (uint64_t)((double)bytes * 1e9 /
					  (double)f->rate),
		       now = pen__now_ns();
	uint64_t at = atomic_load(&f->free_at), end;

	do {
		end = (at > now ? at : now) + takes;
	} while (!atomic_compare_exchange_weak(&f->free_at, &at, end));
	sleep_ns(end - now);
}

/* Bytes of this read that the object has. */
static uint64_t there(const struct pen_store *st, const struct pen_io *io)
{
	const uint64_t size = st->objs->obj[io->object].size,
		       left = io->offset < size ? size - io->offset : 0;

	return io->len < left ? io->len : left;
}

static bool fails(const struct pen_store *st, uint64_t n, uint32_t object)
{
	const struct fault *f = st->priv;

	return n == f->fail_nth || (f->fail_every && n % f->fail_every == 0) ||
	       (f->fail_object &&
		strstr(pen__object_name(st->objs, object), f->fail_object));
}

static int fault_submit(struct pen_queue *q, struct pen_io *io)
{
	struct fault_queue *p = q->priv;
	struct fault *f = q->st->priv;
	struct ride *r = p->free;
	uint64_t n;
	int rc;

	if (p->busy >= q->depth || !r)
		return PEN_END;
	n = p->ticket ? p->ticket : atomic_fetch_add(&f->nreads, 1) + 1;
	if (fails(q->st, n, io->object)) {
		const int sys = (int)f->fail_errno;

		pen__io_end(io, pen__file_code(sys), sys);
		pen__done_push(&p->done, io);
		p->busy++;
		p->ticket = 0;
		return 0;
	}
	if (n != p->ticket && f->delay_every && n % f->delay_every == 0)
		sleep_ns(f->delay_ns);
	if (n != p->ticket && f->rate)
		wait_turn(f, there(q->st, io));
	r->io = *io;
	r->io.user = r;
	r->orig = io;
	r->cut = n == f->short_nth;
	rc = p->under->st->ops->submit(p->under, &r->io);
	p->ticket = rc ? n : 0;
	if (rc)
		return rc;
	p->free = r->free;
	p->busy++;
	return 0;
}

static void finish(const struct fault *f, struct ride *r)
{
	struct pen_io *io = r->orig;
	int64_t res = r->io.res;

	if (res > 0 && f->truncate) {
		const uint64_t left =
			io->offset < f->truncate ? f->truncate - io->offset : 0;

		res = (uint64_t)res < left ? res : (int64_t)left;
	}
	if (res > 0 && r->cut) {
		const uint64_t n = f->short_bytes ? f->short_bytes
						  : (uint64_t)res / 2;

		res = (uint64_t)res < n ? res : (int64_t)n;
	}
	io->res = res;
	io->sys = r->io.sys;
	io->data = r->io.data;
	io->lent = r->io.lent;
}

static unsigned fault_reap(struct pen_queue *q, unsigned min,
			   struct pen_io **done, unsigned max)
{
	struct fault_queue *p = q->priv;
	unsigned own = pen__done_pop(&p->done, done, max), n = 0;

	if (own < max)
		n = p->under->st->ops->reap(p->under, min > own ? min - own : 0,
					    done + own, max - own);
	for (unsigned i = own; i < own + n; i++) {
		struct ride *r = done[i]->user;

		finish(q->st->priv, r);
		done[i] = r->orig;
		r->free = p->free;
		p->free = r;
	}
	p->busy -= own + n;
	return own + n;
}

static void fault_release(struct pen_queue *q, struct pen_io *io)
{
	struct fault_queue *p = q->priv;
	const struct pen_store_ops *ops = p->under->st->ops;

	if (ops->release)
		ops->release(p->under, io);
}

const struct pen_store_ops pen__store_fault = {
	.name = "fault",
	.help = "another store with injected delays, short reads and errors",
	.opts = opts,
	.priv_size = sizeof(struct fault),
	.queue_size = sizeof(struct fault_queue),
	.sink_size = sizeof(struct pen_sink *),
	.open = fault_open,
	.close = pen__over_fini,
	.list = pen__over_list,
	.read_whole = pen__over_read_whole,
	.bind = fault_bind,
	.queue_open = fault_queue_open,
	.queue_close = fault_queue_close,
	.submit = fault_submit,
	.reap = fault_reap,
	.release = fault_release,
	.sink_open = pen__over_sink_open,
	.sink_write = pen__over_sink_write,
	.sink_close = pen__over_sink_close,
};
