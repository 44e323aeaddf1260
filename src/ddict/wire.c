/*
 * Opening a wire: all ranks try each requested transport together, those that
 * work are measured between two ranks, and all ranks use the fastest. A
 * transport that fails is not an error as long as another one works.
 */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/show.h"
#include "ddict/wire_int.h"

static const struct pen_transport *const transports[] = {
	&pen__wire_tcp,
	&pen__wire_mpi,
	&pen__wire_ucx,
	&pen__wire_rma,
};
#define NTRANSPORTS (sizeof(transports) / sizeof(transports[0]))

int pen__wire_exchange(struct pen_comm *comm, const void *mine, size_t n,
		       char **out, size_t *len, struct pen_err *err)
{
	void *all = NULL;
	size_t total = 0;
	int rc;

	*out = NULL;
	rc = pen__comm_gather(comm, mine, n, &all, len, err);
	if (!rc)
		rc = pen__comm_bcast(comm, len,
				     (size_t)comm->size * sizeof(*len), 0, err);
	if (rc)
		goto fail;
	for (int i = 0; i < comm->size; i++)
		if (!pen__add(total, len[i], &total))
			rc = pen__fail_nomem(err, "ranks", SIZE_MAX);
	if (!rc && comm->rank) {
		all = pen__alloc(total, 1);
		rc = all ? 0 : pen__fail_nomem(err, "ranks", total);
	}
	rc = pen__comm_agree(comm, rc, err);
	if (!rc)
		rc = pen__comm_bcast(comm, all, total, 0, err);
	if (rc)
		goto fail;
	*out = all;
	return 0;
fail:
	pen__free(all);
	return rc;
}

/* --- one wire --- */

static void wire_free(struct pen_wire *w)
{
	if (!w)
		return;
	while (w->regions) {
		struct pen_region *r = w->regions;

		w->regions = r->next;
		pen__free(r);
	}
	pthread_mutex_destroy(&w->lock);
	pen__free(w->probe_room);
	for (int i = 0; w->peers && i < w->size; i++) {
		pthread_mutex_destroy(&w->peers[i].lock);
		pen__free(w->peers[i].slots);
	}
	pen__free(w->peers);
	pen__free(w);
}

static int wire_new(struct pen_wire **out, const struct pen_comm *comm,
		    const struct pen_wire_server *server, struct pen_err *err)
{
	struct pen_wire *w = pen__calloc(1, sizeof(*w));

	if (!w)
		return pen__fail_nomem(err, "wire", sizeof(*w));
	w->rank = comm->rank;
	w->size = comm->size;
	w->pid = getpid();
	w->server = *server;
	w->peers = pen__calloc((size_t)w->size, sizeof(*w->peers));
	if (!w->peers) {
		pen__free(w);
		return pen__fail_nomem(err, "wire", sizeof(*w->peers));
	}
	pthread_mutex_init(&w->lock, NULL);
	for (int i = 0; i < w->size; i++) {
		struct pen_wire_peer *p = &w->peers[i];

		p->wire = w;
		p->rank = i;
		p->last = &p->first;
		pthread_mutex_init(&p->lock, NULL);
	}
	*out = w;
	return 0;
}

void pen__wire_close(struct pen_wire *w)
{
	/* a forked child has no thread to stop, and its locks may be held */
	if (w && w->pid != getpid())
		return;
	if (w && w->bulk)
		pen__wire_close(w->bulk);
	if (w && w->reader && w->reader != w->bulk)
		pen__wire_close(w->reader);
	if (w && w->transport)
		w->transport->close(w);
	wire_free(w);
}

/* --- one-sided reads --- */

static struct pen_wire *reader_of(const struct pen_wire *w)
{
	return w->reader ? w->reader : (struct pen_wire *)(uintptr_t)w;
}

bool pen__wire_able_to_read(const struct pen_wire *w)
{
	const struct pen_wire *r = reader_of(w);

	return r->transport && r->transport->read;
}

bool pen__wire_can_read(const struct pen_wire *w, bool bulk)
{
	return w->reads[bulk];
}

int pen__wire_expose(struct pen_wire *w, const void *p, uint64_t n,
		     const void **key, size_t *nkey, struct pen_err *err)
{
	struct pen_wire *r = reader_of(w);

	return r->transport->expose(r, p, n, key, nkey, err);
}

int pen__wire_region(struct pen_wire *front, const struct pen_exposed *e,
		     struct pen_region **out, struct pen_err *err)
{
	struct pen_wire *w = reader_of(front);
	struct pen_region *r = pen__alloc(sizeof(*r) + e->nkey, 1);

	if (!r)
		return pen__fail_nomem(err, "wire", sizeof(*r) + e->nkey);
	*r = (struct pen_region){
		.rank = e->rank, .base = e->base, .n = e->n, .nkey = e->nkey
	};
	memcpy(r->key, e->key, e->nkey);
	pthread_mutex_lock(&w->lock);
	r->next = w->regions;
	w->regions = r;
	pthread_mutex_unlock(&w->lock);
	*out = r;
	return 0;
}

struct card {
	char host[sizeof(((struct pen_wire_peer *)0)->host)];
	int node;
	struct pen_alive process;
};

/* Learns hosts and processes of all ranks. Host names are for messages only, so
 * a truncated one does no harm. */
static int learn_hosts(struct pen_wire *w, struct pen_comm *comm,
		       struct pen_err *err)
{
	struct card mine = { .node = comm->node };
	size_t *len = pen__calloc((size_t)w->size, sizeof(*len));
	char *all = NULL;
	int rc = len ? 0 : pen__fail_nomem(err, "wire", sizeof(*len));

	rc = pen__comm_agree(comm, rc, err);
	if (!rc) {
		(void)gethostname(mine.host, sizeof(mine.host) - 1);
		pen__alive_init(&mine.process);
		rc = pen__wire_exchange(comm, &mine, sizeof(mine), &all, len,
					err);
	}
	for (int i = 0; i < w->size && !rc; i++) {
		struct card c;

		memcpy(&c, all + (size_t)i * sizeof(c), sizeof(c));
		memcpy(w->peers[i].host, c.host, sizeof(c.host) - 1);
		w->peers[i].node = c.node;
		w->peers[i].process = c.process;
	}
	pen__free(all);
	pen__free(len);
	return rc;
}

/* Collective, with the same result on all ranks. */
static int try_transport(struct pen_wire **out, struct pen_comm *comm,
			 const struct pen_transport *t,
			 const struct pen_wire_server *server,
			 struct pen_err *err)
{
	struct pen_wire *w = NULL;
	int rc;

	rc = pen__comm_agree(comm, wire_new(&w, comm, server, err), err);
	if (!rc)
		rc = learn_hosts(w, comm, err);
	if (!rc) {
		w->transport = t;
		rc = t->open(w, comm, err);
	}
	if (rc) {
		wire_free(w);
		return rc;
	}
	*out = w;
	return 0;
}

/* --- choosing --- */

/* Result of trying a transport. */
struct trial {
	struct pen_wire *wire; /* NULL: failed, or not requested */
	struct pen_speed speed;
	char reason[160];
};

static void add(char *text, size_t cap, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
static void add(char *text, size_t cap, const char *fmt, ...)
{
	const size_t n = strlen(text);
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(text + n, cap - n, fmt, ap);
	va_end(ap);
}

static const char *between(size_t i)
{
	return i ? "; " : "";
}

static void say_reasons(const struct trial *t, char *text, size_t cap)
{
	text[0] = '\0';
	for (size_t i = 0; i < NTRANSPORTS; i++)
		if (t[i].reason[0])
			add(text, cap, "%s%s: %s", between(text[0]),
			    transports[i]->name, t[i].reason);
}

static void say_speed(const struct pen_speed *v, char *text, size_t cap)
{
	if (v->samples <= 0)
		return;
	add(text, cap, ": %s samples/s, %s/s, %s",
	    pen__show_count(v->samples).s, pen__show_bytes(v->bytes).s,
	    pen__show_time(v->round_trip_us * 1e-6).s);
	if (v->read_samples > 0)
		add(text, cap, ", one-sided %s samples/s, %s/s",
		    pen__show_count(v->read_samples).s,
		    pen__show_bytes(v->read_bytes).s);
}

/* The transport of each class of values. */
struct choice {
	size_t small, bulk;
	size_t reader; /* NTRANSPORTS: none */
	bool reads[2];
};

/* The one of small values comes first. */
static void say_why(const struct trial *t, const struct choice *c, char *text,
		    size_t cap)
{
	text[0] = '\0';
	add(text, cap, "%s", transports[c->small]->name);
	say_speed(&t[c->small].speed, text, cap);
	for (size_t i = 0; i < NTRANSPORTS; i++) {
		if (i == c->small || (!t[i].reason[0] && !t[i].wire))
			continue;
		add(text, cap, "; %s", transports[i]->name);
		if (t[i].reason[0])
			add(text, cap, ": %s", t[i].reason);
		else
			say_speed(&t[i].speed, text, cap);
	}
	if (c->bulk != c->small)
		add(text, cap, "; from 16 kB: %s", transports[c->bulk]->name);
	if (c->reads[0] || c->reads[1])
		add(text, cap, "; frozen%s: one-sided %s",
		    c->reads[0] && c->reads[1] ? ""
		    : c->reads[0]	       ? ", under 16 kB"
					       : ", from 16 kB",
		    transports[c->reader]->name);
}

static bool wanted(const char *transport, const char *name)
{
	return !transport || !strcmp(transport, "auto") ||
	       !strcmp(transport, name);
}

static int check_name(const char *transport, struct pen_err *err)
{
	char names[80] = "auto";

	if (wanted(transport, "auto"))
		return 0;
	for (size_t i = 0; i < NTRANSPORTS; i++) {
		if (!strcmp(transport, transports[i]->name))
			return 0;
		add(names, sizeof(names), ", %s", transports[i]->name);
	}
	return pen__fail(err, P_UNKNOWN_NAME, "transport",
			 "'%.40s' is not a transport; choose from %s",
			 transport, names);
}

/* Returns how many work; an error only if none does. */
static int try_all(struct trial *t, struct pen_comm *comm,
		   const char *transport, const struct pen_wire_server *server,
		   struct pen_err *err)
{
	int n = 0;

	for (size_t i = 0; i < NTRANSPORTS; i++) {
		struct pen_err e = { 0 };
		int rc;

		if (!wanted(transport, transports[i]->name))
			continue;
		rc = try_transport(&t[i].wire, comm, transports[i], server, &e);
		if (!rc)
			n++;
		else
			snprintf(t[i].reason, sizeof(t[i].reason), "%.159s",
				 e.msg);
	}
	if (!n) {
		char text[200];

		say_reasons(t, text, sizeof(text));
		return pen__fail(err, P_NO_TRANSPORT, "transport",
				 "no transport works between the ranks: %s",
				 text);
	}
	return n;
}

static double rate_of(const struct pen_speed *v, bool bulk)
{
	return bulk ? v->bytes : v->samples;
}

static double read_rate_of(const struct pen_speed *v, bool bulk)
{
	return bulk ? v->read_bytes : v->read_samples;
}

/*
 * The first in the table unless another one is clearly faster: a transport with
 * its own progress beats one that has to poll.
 */
static size_t best_of(const struct trial *t, bool bulk)
{
	size_t best = NTRANSPORTS;

	for (size_t i = 0; i < NTRANSPORTS; i++) {
		if (!t[i].wire)
			continue;
		if (best == NTRANSPORTS ||
		    rate_of(&t[i].speed, bulk) >
			    1.2 * rate_of(&t[best].speed, bulk))
			best = i;
	}
	return best;
}

/* Reads are used for a class if they are faster than its requests. */
static struct choice make_choice(const struct trial *t)
{
	struct choice c = { best_of(t, false),
			    best_of(t, true),
			    NTRANSPORTS,
			    { false, false } };

	for (size_t i = 0; i < NTRANSPORTS; i++) {
		const size_t best[2] = { c.small, c.bulk };

		if (!t[i].wire || !transports[i]->read)
			continue;
		for (int k = 0; k < 2; k++)
			c.reads[k] = read_rate_of(&t[i].speed, k) >
				     rate_of(&t[best[k]].speed, k);
		if (c.reads[0] || c.reads[1])
			c.reader = i;
	}
	return c;
}

/* A single one is measured only to compare reads with requests. */
static int measure_all(struct trial *t, struct pen_comm *comm, bool several,
		       struct pen_err *err)
{
	int rc = 0;

	for (size_t i = 0; i < NTRANSPORTS && !rc; i++)
		if (t[i].wire && (several || transports[i]->read))
			rc = pen__wire_measure(t[i].wire, comm, &t[i].speed,
					       err);
	return rc;
}

/* Closes those that no class of values uses. */
static void keep(struct trial *t, const struct choice *c)
{
	struct pen_wire *w = t[c->small].wire;

	memcpy(w->reads, c->reads, sizeof(w->reads));
	if (c->bulk != c->small)
		w->bulk = t[c->bulk].wire;
	if (c->reader < NTRANSPORTS && c->reader != c->small)
		w->reader = t[c->reader].wire;
	for (size_t i = 0; i < NTRANSPORTS; i++)
		if (i != c->small && i != c->bulk && i != c->reader)
			pen__wire_close(t[i].wire);
}

static int choose(struct pen_wire **out, struct pen_comm *comm,
		  const char *transport, const struct pen_wire_server *server,
		  struct pen_err *err)
{
	struct trial t[NTRANSPORTS];
	struct choice c;
	int n, rc;

	memset(t, 0, sizeof(t));
	n = try_all(t, comm, transport, server, err);
	if (n < 0)
		return n;
	rc = measure_all(t, comm, n > 1, err);
	if (!rc) {
		c = make_choice(t);
		*out = t[c.small].wire;
		say_why(t, &c, (*out)->why, sizeof((*out)->why));
		rc = pen__comm_bcast(comm, (*out)->why, sizeof((*out)->why), 0,
				     err);
	}
	if (!rc) {
		keep(t, &c);
		return 0;
	}
	*out = NULL;
	for (size_t i = 0; i < NTRANSPORTS; i++)
		pen__wire_close(t[i].wire);
	return rc;
}

int pen__wire_open(struct pen_wire **out, struct pen_comm *comm,
		   const char *transport, const struct pen_wire_server *server,
		   struct pen_err *err)
{
	int rc;

	*out = NULL;
	rc = pen__comm_agree(comm, check_name(transport, err), err);
	if (rc)
		return rc;
	if (comm->size > 1)
		return choose(out, comm, transport, server, err);
	rc = wire_new(out, comm, server, err);
	if (!rc)
		snprintf((*out)->why, sizeof((*out)->why),
			 "none: there is only one rank");
	return rc;
}

const char *pen__wire_name(const struct pen_wire *w)
{
	return w->transport ? w->transport->name : "none";
}

const char *pen__wire_why(const struct pen_wire *w)
{
	return w->why;
}

const char *pen__wire_host(const struct pen_wire *w, int rank)
{
	return rank >= 0 && rank < w->size ? w->peers[rank].host : "";
}
