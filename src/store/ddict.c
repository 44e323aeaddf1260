/*
 * A dictionary on top of another store: data that was read once stays in the
 * memory of the processes or ranks that share it, and any of them gets it from
 * there the next time.
 *
 * Ranges are kept as they are read, so this works for any format. The key
 * identifies the object (its path, size and time) and the range by a hash of
 * 128 bits: another data set, or a file that has changed, has other keys. Reads
 * are collected until they are reaped, and then requested all together: one
 * request for each rank that owns some. Misses are read from the store below,
 * neighbours in one read, and put. A read completes when its data is available
 * to all; while some puts are on their way to other machines, the next ranges
 * are read.
 *
 * A full dictionary is not an error: what did not fit is read again. Neither is
 * a rank that has closed. A rank that died is: its part is lost, and with it
 * the job; every read then ends with PEN_ECLOSED.
 *
 * Bytes are copied to the caller. They could be lent where the owner is on this
 * machine, but a store lends all of its reads or none.
 */
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/guard.h"
#include "base/rng.h"
#include "ddict/dictionary.h"
#include "store/files.h"
#include "store/over.h"
#include "store/tier.h"

#define JOIN_MOST ((size_t)4 << 20) /* bytes of neighbours per read */
/* Reads that take this long, or have this many bytes, are put while more is
 * read; less is not worth a message. And how many puts are in flight. */
#define PUT_NS 2000000u
#define PUT_BYTES ((size_t)4 << 20)
#define FLIGHTS 8

struct name { /* a hash of 128 bits */
	uint64_t a, b;
};

enum state {
	WORKS,
	CLOSED, /* a rank has closed: no more gets or puts */
	LOST,	/* a rank has died: no more reads */
};

struct tier {
	struct pen_over over;
	char *under, *name, *transport;
	uint64_t memory;
	int64_t width;
	bool share;
	struct pen_comm *comm;
	struct pen_ddict *d;
	bool met; /* has met the other ranks */
	struct name *dir;
	atomic_int state;
	atomic_bool full;
	struct pen_err lost; /* why; written once, under the lock */
	atomic_uint_fast64_t hits, hit_bytes, reads, read_bytes, kept,
		kept_bytes;
};

/* A read in progress. Neighbours in the object and in memory that are read from
 * the store below together with it hang on it. */
struct ride {
	struct pen_io io;
	struct pen_io *orig;
	struct name key;
	struct ride *next, *more;
};

struct rides {
	struct ride *head, *tail;
};

/* A put in flight, and the rides that end with it. */
struct flight {
	struct pen_puts *puts;
	struct rides rides;
	unsigned n;
	uint64_t bytes;
	struct pen_key *keys;
	struct pen_value *values;
};

struct tier_queue {
	struct pen_queue *under;
	struct ride *all, *free;
	struct rides asked, missed; /* collected; to be read below */
	struct pen_key *keys;
	struct pen_io **reaped;
	struct pen_done done;
	unsigned busy, nasked, below;
	/* a ring; the one after those in flight is being loaded */
	struct flight flights[FLIGHTS];
	unsigned first, nflights;
};

static const struct pen_opt opts[] = {
	{ .name = "under",
	  .type = PEN_OPT_STR,
	  .off = offsetof(struct tier, under),
	  .dflt = "posix",
	  .help = "store below this one, which receives all other settings" },
	{ .name = "memory",
	  .type = PEN_OPT_SIZE,
	  .off = offsetof(struct tier, memory),
	  .help = "memory per rank (default: half of the available memory, "
		  "divided among the ranks of a machine)" },
	{ .name = "name",
	  .type = PEN_OPT_STR,
	  .off = offsetof(struct tier, name),
	  .help = "share the dictionary with all processes on this machine "
		  "that use the same name" },
	{ .name = "width",
	  .type = PEN_OPT_INT,
	  .off = offsetof(struct tier, width),
	  .dflt = "0",
	  .max = 1e9,
	  .help = "number of ranks that together hold all data (0 = all "
		  "ranks)" },
	{ .name = "transport",
	  .type = PEN_OPT_STR,
	  .off = offsetof(struct tier, transport),
	  .dflt = "auto",
	  .help = "how to reach ranks on other machines: auto, tcp, mpi or "
		  "rma" },
	{ .name = "share",
	  .type = PEN_OPT_BOOL,
	  .off = offsetof(struct tier, share),
	  .dflt = "true",
	  .help = "access the memory of ranks on the same machine directly "
		  "(false = use the transport)" },
	{ .name = NULL },
};

/* --- the store --- */

static void absorb(struct name *n, uint64_t v)
{
	n->a = pen__mix64(n->a ^ v);
	n->b = pen__mix64(n->b + (v + 1) * 0x9e3779b97f4a7c15u);
}

static void absorb_text(struct name *n, const char *s)
{
	size_t len = strlen(s);

	absorb(n, len);
	for (size_t i = 0; i < len; i += 8) {
		uint64_t v = 0;

		memcpy(&v, s + i, len - i < 8 ? len - i : 8);
		absorb(n, v);
	}
}

static struct name key_of(const struct pen_store *st, const struct pen_io *io)
{
	const struct tier *t = st->priv;
	const struct pen_object *o = &st->objs->obj[io->object];
	struct name n = t->dir[o->dir];

	absorb_text(&n, pen__object_name(st->objs, io->object));
	absorb(&n, o->size);
	absorb(&n, (uint64_t)o->mtime_ns);
	absorb(&n, io->offset);
	absorb(&n, io->len);
	return n;
}

/* Directories count by their real path, however they were spelled. */
static int name_dirs(struct pen_store *st, struct pen_err *err)
{
	const struct pen_objects *o = st->objs;
	struct tier *t = st->priv;

	pen__free(t->dir);
	t->dir = pen__calloc(o->ndir + 1, sizeof(*t->dir));
	if (!t->dir)
		return pen__fail_nomem(err, "ddict", o->ndir * sizeof(*t->dir));
	for (uint64_t i = 0; i < o->ndir; i++) {
		const char *dir = o->names + o->dir[i].name;
		char room[PATH_MAX];
		const char *real = realpath(*dir ? dir : ".", room);

		t->dir[i] = (struct name){ 1, 2 };
		absorb_text(&t->dir[i], real ? real : dir);
	}
	return 0;
}

static void follow(struct pen_store *st)
{
	st->align = st->under->align;
	st->lends = st->waits = false;
	st->by_range = true;
}

static int tier_open(struct pen_store *st, struct pen_err *err)
{
	struct tier *t = st->priv;

	(void)err;
	pen__over_init(st);
	st->lost = &t->lost;
	follow(st);
	return 0;
}

static void tier_close(struct pen_store *st)
{
	struct tier *t = st->priv;

	/* other ranks may still ask for what is here, or wait for this rank,
	 * which notifies them; if a rank has died, nothing waits */
	if (t->d && t->comm && atomic_load(&t->state) != LOST)
		pen__comm_part(t->comm);
	pen_ddict_close(t->d);
	pen__free(t->dir);
	pen__over_fini(st);
}

static int open_dict(struct tier *t, struct pen_err *err)
{
	char memory[40], width[40], name[300], transport[64];
	const char *set[5];
	uint32_t n = 0;
	int rc;

	snprintf(width, sizeof(width), "width=%lld", (long long)t->width);
	snprintf(transport, sizeof(transport), "transport=%s",
		 t->transport ? t->transport : "auto");
	set[n++] = width;
	set[n++] = transport;
	set[n++] = t->share ? "share=true" : "share=false";
	if (t->memory) {
		snprintf(memory, sizeof(memory), "memory=%llu",
			 (unsigned long long)t->memory);
		set[n++] = memory;
	}
	if (t->name) {
		snprintf(name, sizeof(name), "name=%s", t->name);
		set[n++] = name;
	}
	t->met = true;
	rc = pen__ddict_open(&t->d, t->comm, set, n, err);
	if (!rc && err) /* joining may try what does not work */
		pen__err_reset(err);
	return rc;
}

static int tier_bind(struct pen_store *st, struct pen_err *err)
{
	struct tier *t = st->priv;
	int rc = pen__over_bind(st, err);

	follow(st);
	if (!rc)
		rc = name_dirs(st, err);
	if (!rc && t->name && t->comm && t->comm->size > 1)
		rc = pen__fail(err, P_CONFLICT, "cache.name",
			       "applies to processes on one machine; ranks "
			       "find each other without it, so omit it");
	if (!rc && !t->d)
		rc = open_dict(t, err);
	return rc;
}

void pen__tier_join(struct pen_store *st, struct pen_comm *comm)
{
	struct tier *t = st->priv;

	t->comm = comm;
}

/* --- a queue --- */

static void push(struct rides *l, struct ride *r)
{
	r->next = NULL;
	if (l->head)
		l->tail->next = r;
	else
		l->head = r;
	l->tail = r;
}

static struct ride *pop(struct rides *l)
{
	struct ride *r = l->head;

	if (r)
		l->head = r->next;
	return r;
}

static struct flight *flight_at(struct tier_queue *p, unsigned i)
{
	return &p->flights[(p->first + i) % FLIGHTS];
}

static void tier_queue_close(struct pen_queue *q)
{
	struct tier_queue *p = q->priv;

	/* the values belong to the caller */
	for (unsigned i = 0; i < p->nflights; i++)
		(void)pen__puts_end(flight_at(p, i)->puts, NULL);
	pen__queue_close(p->under);
	for (unsigned i = 0; i < FLIGHTS; i++) {
		pen__free(p->flights[i].keys);
		pen__free(p->flights[i].values);
	}
	pen__free(p->all);
	pen__free(p->keys);
	pen__free(p->reaped);
}

static bool make_flights(struct pen_queue *q)
{
	struct tier_queue *p = q->priv;

	for (unsigned i = 0; i < FLIGHTS; i++) {
		struct flight *f = &p->flights[i];

		f->keys = pen__calloc(q->depth, sizeof(*f->keys));
		f->values = pen__calloc(q->depth, sizeof(*f->values));
		if (!f->keys || !f->values)
			return false;
	}
	return true;
}

static int tier_queue_open(struct pen_queue *q, struct pen_err *err)
{
	struct tier_queue *p = q->priv;
	int rc;

	p->all = pen__calloc(q->depth, sizeof(*p->all));
	p->keys = pen__calloc(q->depth, sizeof(*p->keys));
	p->reaped = pen__calloc(q->depth, sizeof(*p->reaped));
	if (p->all && p->keys && p->reaped && make_flights(q))
		rc = pen__over_queue(q, &p->under, err);
	else
		rc = pen__fail_nomem(err, "ddict", q->depth * sizeof(*p->all));
	if (rc) {
		tier_queue_close(q);
		return rc;
	}
	for (unsigned i = 0; i < q->depth; i++) {
		p->all[i].next = p->free;
		p->free = &p->all[i];
	}
	q->late = p->under->st->waits;
	return 0;
}

static int tier_submit(struct pen_queue *q, struct pen_io *io)
{
	struct tier_queue *p = q->priv;
	struct ride *r = p->free;

	if (p->busy >= q->depth || !r)
		return PEN_END;
	p->free = r->next;
	r->orig = io;
	r->more = NULL;
	push(&p->asked, r);
	p->nasked++;
	p->busy++;
	return 0;
}

/* Ends a ride; its key stays valid until the next submit. */
static void end(struct tier_queue *p, struct ride *r, int64_t res, int sys)
{
	pen__io_end(r->orig, res, sys);
	pen__done_push(&p->done, r->orig);
	r->next = p->free;
	p->free = r;
}

/* The dictionary failed: can the store continue without it? */
static void give_up(struct tier *t, int rc, const struct pen_err *err)
{
	int was = WORKS;

	if (rc == PEN_ENOMEM)
		return;
	if (rc == PEN_ECLOSED) {
		atomic_compare_exchange_strong(&t->state, &was, CLOSED);
		return;
	}
	pthread_mutex_lock(&t->over.lock);
	if (!t->lost.code)
		pen__fail(&t->lost, P_CLOSED, "cache=ddict",
			  "%.60s: %.160s; start the job again", err->where,
			  err->msg);
	pthread_mutex_unlock(&t->over.lock);
	atomic_store(&t->state, LOST);
}

/* Requests all that was collected; NULL: there is nothing to get. */
static struct pen_got *ask(struct pen_queue *q, unsigned n)
{
	struct tier_queue *p = q->priv;
	struct tier *t = q->st->priv;
	struct pen_got *got = NULL;
	struct ride *r = p->asked.head;
	struct pen_err err;
	int rc;

	if (!n || atomic_load(&t->state) != WORKS)
		return NULL;
	for (unsigned i = 0; i < n; i++, r = r->next) {
		r->key = key_of(q->st, r->orig);
		p->keys[i] = (struct pen_key){ &r->key, sizeof(r->key) };
	}
	pen__err_reset(&err);
	rc = pen_ddict_get_many(t->d, p->keys, n, &got, &err);
	if (rc)
		give_up(t, rc, &err);
	return rc ? NULL : got;
}

static void sort_out(struct pen_queue *q)
{
	struct tier_queue *p = q->priv;
	struct tier *t = q->st->priv;
	const unsigned n = p->nasked;
	struct pen_got *got = ask(q, n);
	const bool lost = n && atomic_load(&t->state) == LOST;
	uint64_t hits = 0, bytes = 0;

	p->nasked = 0;
	for (unsigned i = 0; i < n; i++) {
		struct ride *r = pop(&p->asked);
		struct pen_value v = got ? got->values[i]
					 : (struct pen_value){ NULL, 0 };

		if (lost) {
			end(p, r, PEN_ECLOSED, 0);
		} else if (!r->orig->len) {
			end(p, r, 0, 0);
		} else if (v.data && v.len <= r->orig->len) {
			memcpy(r->orig->buf, v.data, v.len);
			end(p, r, (int64_t)v.len, 0);
			hits++;
			bytes += v.len;
		} else {
			push(&p->missed, r);
		}
	}
	pen_got_free(got);
	if (n)
		q->late = p->missed.head && p->under->st->waits;
	if (hits) {
		atomic_fetch_add(&t->hits, hits);
		atomic_fetch_add(&t->hit_bytes, bytes);
	}
}

/* --- reading misses --- */

static bool adjoins(const struct ride *r, const struct pen_io *with)
{
	return with->object == r->io.object && r->io.len &&
	       with->offset == r->io.offset + r->io.len &&
	       with->buf == (char *)r->io.buf + r->io.len &&
	       r->io.len + with->len <= JOIN_MOST;
}

/* Copies from memory that the store below lends, which may be gone. */
static void take_lent(struct tier_queue *p, struct pen_io *io)
{
	const struct pen_store_ops *ops = p->under->st->ops;

	if (io->res > 0 && !pen__guard_copy(io->buf, io->data, (size_t)io->res))
		io->res = PEN_ESTALE;
	if (ops->release)
		ops->release(p->under, io);
}

/* Hands out what was read; what is to be kept is loaded into a flight. */
static void share_out(struct tier_queue *p, struct ride *r, bool keep)
{
	struct flight *f = flight_at(p, p->nflights);
	const int64_t res = r->io.res;
	const int sys = r->io.sys;
	int64_t at = 0;

	while (r) {
		struct ride *more = r->more;
		struct pen_io *io = r->orig;
		int64_t n = res;

		if (res >= 0) {
			n = res - at < (int64_t)io->len ? res - at
							: (int64_t)io->len;
			at += n;
		}
		if (n > 0 && keep) {
			f->keys[f->n] =
				(struct pen_key){ &r->key, sizeof(r->key) };
			f->values[f->n++] =
				(struct pen_value){ io->buf, (uint64_t)n };
			f->bytes += (uint64_t)n;
			r->io.res = n;
			push(&f->rides, r);
		} else {
			end(p, r, n, sys);
		}
		r = more;
	}
}

/* Records the result of a put and ends its rides. */
static void arrive(struct pen_queue *q, struct flight *f, int rc,
		   const struct pen_err *err)
{
	struct tier_queue *p = q->priv;
	struct tier *t = q->st->priv;
	struct ride *r;

	if (rc == PEN_ENOMEM) {
		atomic_store(&t->full, true);
	} else if (rc) {
		give_up(t, rc, err);
	} else {
		atomic_fetch_add(&t->kept, f->n);
		atomic_fetch_add(&t->kept_bytes, f->bytes);
	}
	while ((r = pop(&f->rides)))
		end(p, r, r->io.res, 0);
	f->n = 0;
	f->bytes = 0;
	f->puts = NULL;
}

/* Waits for the flight that left first. */
static void land(struct pen_queue *q)
{
	struct tier_queue *p = q->priv;
	struct flight *f = flight_at(p, 0);
	struct pen_err err;
	int rc;

	pen__err_reset(&err);
	rc = pen__puts_end(f->puts, &err);
	p->first = (p->first + 1) % FLIGHTS;
	p->nflights--;
	arrive(q, f, rc, &err);
}

static void land_all_there(struct pen_queue *q)
{
	struct tier_queue *p = q->priv;

	while (p->nflights && pen__puts_landed(flight_at(p, 0)->puts))
		land(q);
}

/* Starts the put of the loaded flight; on one machine it completes here. */
static void depart(struct pen_queue *q)
{
	struct tier_queue *p = q->priv;
	struct tier *t = q->st->priv;
	struct flight *f = flight_at(p, p->nflights);
	struct pen_err err;
	int rc;

	if (!f->n)
		return;
	pen__err_reset(&err);
	rc = pen__ddict_put_begin(t->d, f->keys, f->values, f->n, &f->puts,
				  &err);
	if (!f->puts) {
		arrive(q, f, rc, &err);
		return;
	}
	/* one more has to be free for the next load */
	if (++p->nflights == FLIGHTS)
		land(q);
}

/* Reaps at least min reads from the store below. */
static void reap_below(struct pen_queue *q, unsigned min)
{
	struct tier_queue *p = q->priv;
	struct tier *t = q->st->priv;
	const bool keep = atomic_load(&t->state) == WORKS &&
			  !atomic_load(&t->full);
	uint64_t bytes = 0;
	unsigned n;

	if (!p->below)
		return;
	n = p->under->st->ops->reap(p->under, min < p->below ? min : p->below,
				    p->reaped, q->depth);
	p->below -= n;
	for (unsigned i = 0; i < n; i++) {
		struct ride *r = p->reaped[i]->user;

		if (p->under->st->lends)
			take_lent(p, &r->io);
		if (r->io.res > 0)
			bytes += (uint64_t)r->io.res;
		share_out(p, r, keep);
	}
	depart(q);
	atomic_fetch_add(&t->reads, n);
	atomic_fetch_add(&t->read_bytes, bytes);
}

/* Reads one miss and its neighbours; false: no more for now. */
static bool read_next(struct pen_queue *q, size_t *bytes)
{
	struct tier_queue *p = q->priv;
	const bool joins = !p->under->st->lends;
	struct ride *r = p->missed.head, *last = r, *rest;

	if (!r)
		return false;
	rest = r->next;
	r->io = *r->orig;
	r->io.user = r;
	r->more = NULL;
	for (; joins && rest && adjoins(r, rest->orig); rest = rest->next) {
		r->io.len += rest->orig->len;
		last->more = rest;
		rest->more = NULL;
		last = rest;
	}
	if (p->under->st->ops->submit(p->under, &r->io))
		return false;
	*bytes += r->io.len;
	p->missed.head = rest;
	p->below++;
	return true;
}

static void read_missed(struct pen_queue *q)
{
	struct tier_queue *p = q->priv;
	const bool waits = p->under->st->waits;
	uint64_t since = waits ? pen__now_ns() : 0;
	size_t bytes = 0;

	while (read_next(q, &bytes)) {
		/* finished reads need not wait for the others */
		if (!waits ||
		    (bytes < PUT_BYTES && pen__now_ns() - since < PUT_NS))
			continue;
		reap_below(q, p->below);
		land_all_there(q);
		since = pen__now_ns();
		bytes = 0;
	}
}

static unsigned tier_reap(struct pen_queue *q, unsigned min,
			  struct pen_io **done, unsigned max)
{
	struct tier_queue *p = q->priv;
	unsigned n;

	sort_out(q);
	do {
		read_missed(q);
		reap_below(q, 0);
		land_all_there(q);
		if (p->done.n >= min)
			break;
		if (p->nflights)
			land(q);
		else
			reap_below(q, min - p->done.n);
	} while (p->done.n < min &&
		 (p->below || p->missed.head || p->nflights));
	n = pen__done_pop(&p->done, done, max);
	p->busy -= n;
	return n;
}

const struct pen_store_ops pen__store_ddict = {
	.name = "ddict",
	.help = "another store, read once and then cached in the memory of all "
		"ranks; see cache=ddict",
	.opts = opts,
	.priv_size = sizeof(struct tier),
	.queue_size = sizeof(struct tier_queue),
	.sink_size = sizeof(struct pen_sink *),
	.open = tier_open,
	.close = tier_close,
	.list = pen__over_list,
	.read_whole = pen__over_read_whole,
	.bind = tier_bind,
	.queue_open = tier_queue_open,
	.queue_close = tier_queue_close,
	.submit = tier_submit,
	.reap = tier_reap,
	.sink_open = pen__over_sink_open,
	.sink_write = pen__over_sink_write,
	.sink_close = pen__over_sink_close,
};

bool pen__tier_met(const struct pen_store *st)
{
	const struct tier *t = st ? st->priv : NULL;

	return t && st->ops == &pen__store_ddict && t->met;
}

bool pen__tier_stats(const struct pen_store *st, struct pen_tier_stats *out)
{
	struct tier *t = st->priv;

	if (st->ops != &pen__store_ddict)
		return false;
	*out = (struct pen_tier_stats){
		.hits = atomic_load(&t->hits),
		.hit_bytes = atomic_load(&t->hit_bytes),
		.reads = atomic_load(&t->reads),
		.read_bytes = atomic_load(&t->read_bytes),
		.kept = atomic_load(&t->kept),
		.kept_bytes = atomic_load(&t->kept_bytes),
		.full = atomic_load(&t->full),
	};
	return true;
}

struct pen_ddict *pen__tier_dict(const struct pen_store *st)
{
	const struct tier *t = st->priv;

	return st->ops == &pen__store_ddict ? t->d : NULL;
}
