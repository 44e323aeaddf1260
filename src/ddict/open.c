/*
 * Opening a dictionary. On one machine there is one shard, created here or
 * fetched by name from another process. Over ranks, every rank creates a shard;
 * ranks of one machine map each other's, and the others are reached over a
 * wire, which is opened only if a rank needs it.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/team.h"
#include "ddict/dictionary_int.h"

/* Wait for a name that is taken but does not respond: its owner may still be
 * creating the shard. */
#define PATIENCE_NS 4000000000u

static const char *const spreads[] = { "hash", "blocks", NULL };
static const char *const directs[] = { "auto", "always", "never", NULL };

#define O(member) offsetof(struct ddict_opts, member)
const struct pen_opt pen__ddict_opts[] = {
	{ "name", PEN_OPT_STR, O(name), NULL,
	  "name on this machine; joins the dictionary, or creates it if there "
	  "is none",
	  NULL, 0, 0 },
	{ "create", PEN_OPT_BOOL, O(create), "true",
	  "with name=, create the dictionary if there is none (false: only "
	  "join)",
	  NULL, 0, 0 },
	{ "memory", PEN_OPT_SIZE, O(memory), NULL,
	  "memory budget of a shard, allocated on demand (default: half the "
	  "free memory / ranks per machine)",
	  NULL, 0, 0 },
	{ "width", PEN_OPT_INT, O(width), "0",
	  "ranks that share one replica (0: all ranks, one replica)", NULL, 0,
	  1e9 },
	{ "spread", PEN_OPT_ENUM, O(spread), "hash",
	  "how integer keys are assigned to ranks: by hash, or in blocks of "
	  "consecutive keys (needs keys=)",
	  spreads, 0, 0 },
	{ "keys", PEN_OPT_COUNT, O(keys), NULL,
	  "expected number of keys, to size the index once", NULL, 0, 0 },
	{ "transport", PEN_OPT_STR, O(transport), "auto",
	  "transport between machines: auto (the fastest that works), tcp, "
	  "mpi, ucx, rma; shm: none",
	  NULL, 0, 0 },
	{ "share", PEN_OPT_BOOL, O(share), "true",
	  "share memory between the ranks of a machine (false: use the "
	  "transport)",
	  NULL, 0, 0 },
	{ "direct", PEN_OPT_ENUM, O(direct), "auto",
	  "read values of a frozen dictionary from the memory of other "
	  "machines, through ucx: auto (if it is faster), always, never",
	  directs, 0, 0 },
	{ "restore", PEN_OPT_STR, O(restore), NULL,
	  "start from a saved dictionary, mapped and frozen if the shards "
	  "match",
	  NULL, 0, 0 },
	{ "writable", PEN_OPT_BOOL, O(writable), "false",
	  "with restore=, read it into memory so that it can be changed", NULL,
	  0, 0 },
	{ "verify", PEN_OPT_BOOL, O(verify), "false",
	  "with restore=, verify the checksums of all bytes first", NULL, 0,
	  0 },
	{ NULL, 0, 0, NULL, NULL, NULL, 0, 0 },
};
#undef O

static int read_settings(struct ddict_opts *o, const char *const *settings,
			 uint32_t n, struct pen_err *err)
{
	int rc = pen__opt_defaults(pen__ddict_opts, o, err);

	for (uint32_t i = 0; i < n && !rc; i++) {
		const char *eq = strchr(settings[i], '=');
		char key[64];

		if (!eq || (size_t)(eq - settings[i]) >= sizeof(key))
			return pen__fail(err, P_BAD_VALUE, settings[i],
					 "not a setting; write key=value");
		memcpy(key, settings[i], (size_t)(eq - settings[i]));
		key[eq - settings[i]] = '\0';
		rc = pen__opt_set(pen__ddict_opts, o, key, eq + 1, err);
	}
	if (!rc && o->name)
		rc = pen__name_check(o->name, err);
	if (!rc && o->spread == SPREAD_BLOCKS && !o->keys)
		rc = pen__fail(
			err, P_MISSING_SETTING, "spread",
			"blocks requires keys=, the expected number of keys");
	return rc;
}

static int find_place(struct pen_ddict *d, struct pen_err *err)
{
	d->rank = d->comm ? d->comm->rank : 0;
	d->size = d->comm ? d->comm->size : 1;
	d->width = d->o.width ? (int)d->o.width : d->size;
	if (d->width > d->size || d->size % d->width)
		return pen__fail(err, P_BAD_VALUE, "width",
				 "%d does not divide the number of ranks, %d",
				 d->width, d->size);
	d->first = d->rank / d->width * d->width;
	d->pid = (uint64_t)getpid();
	if (gethostname(d->host, sizeof(d->host) - 1))
		snprintf(d->host, sizeof(d->host), "unknown");
	d->seg = pen__calloc((size_t)d->size, sizeof(*d->seg));
	return d->seg ? 0 : pen__fail_nomem(err, "dictionary", 1);
}

static int make_shard(struct pen_ddict *d, struct pen_err *err)
{
	const unsigned local = d->comm ? (unsigned)d->comm->local_size : 1;
	uint64_t size = d->o.memory;
	bool full;
	int rc;

	if (!size) {
		size = pen__memory_available() / 2 / local;
		size = size < PEN_SEG_MIN ? PEN_SEG_MIN : size;
		size = size > PEN_SEG_MAX ? PEN_SEG_MAX : size;
	}
	d->made = true;
	rc = pen__seg_create(&d->mine, size, err);
	if (rc || !d->o.keys)
		return rc;
	rc = pen__seg_lock(d->mine, err);
	if (rc)
		return rc;
	if (pen__table_reserve(d->mine, d->o.keys / (uint64_t)d->width + 1,
			       &full))
		rc = pen__fail(err, P_OVER_BUDGET, "memory",
			       "too small for an index of keys=%llu",
			       (unsigned long long)d->o.keys);
	pen__seg_unlock(d->mine);
	return rc;
}

/* Creates this process's shard, or maps a saved one. */
static int begin_shard(struct pen_ddict *d, struct pen_err *err)
{
	int rc;

	if (d->o.restore && !d->o.writable && !d->mine) {
		rc = pen__ddict_restore(d, err);
		if (rc || d->mine)
			return rc;
	}
	return make_shard(d, err);
}

/* --- one machine --- */

/* Serves the name, too, if a place is free. */
static int serve_name(struct pen_ddict *d, struct pen_err *err)
{
	for (int i = 0; i < PEN_NAME_SERVERS; i++) {
		int sock;
		int rc = pen__name_bind(d->o.name, i, &sock, err);

		if (rc < 0)
			return rc;
		if (!rc)
			return pen__name_serve(&d->server, sock, d->mine->fd,
					       err);
	}
	return 0;
}

static int join(struct pen_ddict *d, struct pen_err *err)
{
	int fd, rc;

	rc = pen__name_fetch(d->o.name, &fd, err);
	if (rc)
		return rc;
	rc = pen__seg_map(&d->mine, fd, d->o.name, err);
	if (!rc && d->o.create)
		rc = serve_name(d, err);
	return rc;
}

/* Joins, or creates the shard if this process gets the first place. */
static int open_named(struct pen_ddict *d, struct pen_err *err)
{
	const struct timespec nap = { .tv_nsec = 1000000 };
	const uint64_t until = pen__now_ns() + PATIENCE_NS;
	int rc, sock;

	/* by time: each try takes seconds if the other process is stopped */
	while (pen__now_ns() < until) {
		rc = join(d, err);
		if (rc != PEN_ENOTFOUND || !d->o.create)
			return rc;
		rc = pen__name_bind(d->o.name, 0, &sock, err);
		if (rc < 0)
			return rc;
		if (!rc) {
			rc = begin_shard(d, err);
			if (!rc)
				return pen__name_serve(&d->server, sock,
						       d->mine->fd, err);
			close(sock);
			return rc;
		}
		nanosleep(&nap, NULL);
	}
	return pen__fail(err, P_IO, d->o.name,
			 "the process that owns this name does not respond");
}

static int open_machine(struct pen_ddict *d, struct pen_err *err)
{
	int rc = d->o.name ? open_named(d, err) : begin_shard(d, err);

	if (rc)
		return rc;
	d->seg[0] = d->mine;
	snprintf(d->how, sizeof(d->how), "shared memory: %s%s%s",
		 d->mine->head ? "all processes are on this machine"
			       : "a saved file, mapped",
		 d->o.name ? ", named " : "", d->o.name ? d->o.name : "");
	return 0;
}

/* --- ranks --- */

/* A name that only these ranks know. */
static void peer_name(char *buf, size_t cap, uint64_t job, int rank)
{
	snprintf(buf, cap, "rank.%016llx.%d", (unsigned long long)job, rank);
}

/* node: an int per rank, unaligned. */
static void map_peers(struct pen_ddict *d, const char *node, uint64_t job)
{
	for (int i = 0; i < d->size; i++) {
		char name[64];
		int fd, at;

		memcpy(&at, node + (size_t)i * sizeof(at), sizeof(at));
		if (i == d->rank || at != d->comm->node)
			continue;
		peer_name(name, sizeof(name), job, i);
		/* on failure, the wire is used */
		if (!pen__name_fetch(name, &fd, NULL))
			(void)pen__seg_map(&d->seg[i], fd, name, NULL);
	}
}

static int share(struct pen_ddict *d, struct pen_err *err)
{
	struct pen_comm *c = d->comm;
	struct pen_name_server *server = NULL;
	uint64_t job = 0;
	char name[64], *node = NULL;
	size_t *len = pen__calloc((size_t)c->size, sizeof(*len));
	int rc, sock;

	if (getrandom(&job, sizeof(job), 0) != sizeof(job))
		job = (uint64_t)getpid();
	rc = len ? 0 : pen__fail_nomem(err, "ranks", (size_t)c->size * 8);
	rc = pen__comm_agree(c, rc, err);
	if (!rc)
		rc = pen__comm_bcast(c, &job, sizeof(job), 0, err);
	if (!rc)
		rc = pen__wire_exchange(c, &c->node, sizeof(c->node), &node,
					len, err);
	if (rc)
		goto out;
	peer_name(name, sizeof(name), job, d->rank);
	if (!pen__name_bind(name, 0, &sock, NULL))
		(void)pen__name_serve(&server, sock, d->mine->fd, NULL);
	rc = pen__comm_barrier(c, err);
	if (!rc) {
		map_peers(d, node, job);
		rc = pen__comm_barrier(c, err);
	}
	pen__name_server_close(server);
out:
	pen__free(node);
	pen__free(len);
	return rc;
}

/* Number of ranks not mapped, the maximum over all ranks. */
static int count_far(struct pen_ddict *d, double *far, struct pen_err *err)
{
	*far = 0;
	for (int i = 0; i < d->size; i++)
		*far += !d->seg[i];
	return pen__comm_reduce(d->comm, far, 1, PEN_MAX, err);
}

static int connect_ranks(struct pen_ddict *d, struct pen_err *err)
{
	const struct pen_wire_server server = { d, pen__ddict_serve,
						pen__ddict_sent };
	const bool shm = !strcmp(d->o.transport, "shm");
	double far;
	int rc;

	rc = count_far(d, &far, err);
	if (rc)
		return rc;
	if (far == 0) {
		snprintf(d->how, sizeof(d->how),
			 "shared memory: all %d ranks are on this machine",
			 d->size);
		return 0;
	}
	if (shm)
		return pen__fail(err, P_NO_TRANSPORT, "transport",
				 "shm reaches only the ranks that share memory "
				 "on this machine; set transport=auto");
	rc = pen__wire_open(&d->wire, d->comm, d->o.transport, &server, err);
	if (rc)
		return rc;
	snprintf(d->how, sizeof(d->how), "%s%s",
		 d->o.share && d->comm->local_size > 1
			 ? "shared memory on a machine, between machines "
			 : "",
		 pen__wire_why(d->wire));
	return pen__comm_agree(d->comm, pen__direct_open(d, err), err);
}

/* A number that almost certainly differs for different texts. */
static double number_of(const char *text)
{
	const struct pen_key k = { text, strlen(text) };

	return (double)(pen__key_hash(k) >> 12);
}

/* Ranks with different key distributions would not find each other's keys, and
 * with different transports they would not connect. */
static int compare_settings(struct pen_ddict *d, struct pen_err *err)
{
	const double mine[] = {
		d->width,
		d->o.spread,
		(double)d->o.keys,
		d->o.share,
		d->o.restore != NULL,
		d->o.writable,
		number_of(d->o.transport),
		d->o.direct,
	};
	enum { N = sizeof(mine) / sizeof(mine[0]) };
	double v[2 * N];
	int rc;

	for (int i = 0; i < N; i++) {
		v[i] = mine[i];
		v[N + i] = -mine[i];
	}
	rc = pen__comm_reduce(d->comm, v, 2 * N, PEN_MIN, err);
	for (int i = 0; i < N && !rc; i++)
		if (v[i] != -v[N + i])
			rc = pen__fail(err, P_RANKS_DISAGREE, "settings",
				       "width, spread, keys, share, restore, "
				       "writable, "
				       "transport and direct must be the same "
				       "on all ranks");
	return rc;
}

/* A saved shard that does not match on one rank is mapped on none. */
static int settle_restore(struct pen_ddict *d, struct pen_err *err)
{
	double made = d->made;
	int rc;

	if (!d->o.restore || d->o.writable)
		return 0;
	rc = pen__comm_reduce(d->comm, &made, 1, PEN_MAX, err);
	if (!rc && made > 0 && !d->made) {
		pen__seg_close(d->mine);
		d->mine = NULL;
		rc = make_shard(d, err);
	}
	return pen__comm_agree(d->comm, rc, err);
}

static int open_ranks(struct pen_ddict *d, struct pen_err *err)
{
	int rc = compare_settings(d, err);

	if (rc)
		return rc;
	rc = begin_shard(d, err);

	rc = pen__comm_agree(d->comm, rc, err);
	if (!rc)
		rc = settle_restore(d, err);
	if (rc)
		return rc;
	d->seg[d->rank] = d->mine;
	if (d->o.share) {
		rc = share(d, err);
		if (rc)
			return rc;
	}
	return connect_ranks(d, err);
}

int pen__ddict_open(struct pen_ddict **out, struct pen_comm *comm,
		    const char *const *settings, uint32_t n,
		    struct pen_err *err)
{
	struct pen_ddict *d = pen__calloc(1, sizeof(*d));
	int rc;

	*out = NULL;
	rc = d ? 0 : pen__fail_nomem(err, "dictionary", sizeof(*d));
	if (d) {
		d->comm = comm && comm->size > 1 ? comm : NULL;
		rc = read_settings(&d->o, settings, n, err);
		if (!rc)
			rc = find_place(d, err);
	}
	/* all ranks continue, or none */
	if (comm)
		rc = pen__comm_agree(comm, rc, err);
	if (!rc)
		rc = d->comm ? open_ranks(d, err) : open_machine(d, err);
	if (!rc && d->o.restore && d->made)
		rc = pen__ddict_restore(d, err);
	if (rc) {
		pen_ddict_close(d);
		return rc;
	}
	*out = d;
	return 0;
}

PEN_API int pen_ddict_open(struct pen_ddict **out, struct pen_ranks *ranks,
			   const char *const *settings, uint32_t n,
			   struct pen_err *err)
{
	return pen__ddict_open(out, ranks ? ranks->comm : NULL, settings, n,
			       err);
}

PEN_API void pen_ddict_close(struct pen_ddict *d)
{
	if (!d)
		return;
	/* a forked child has neither threads nor ranks */
	if (d->pid == (uint64_t)getpid()) {
		pen__wire_close(d->wire);
		pen__name_server_close(d->server);
	}
	pen__direct_close(d);
	for (int i = 0; d->seg && i < d->size; i++)
		if (d->seg[i] != d->mine)
			pen__seg_close(d->seg[i]);
	pen__seg_close(d->mine);
	pen__opt_fini(pen__ddict_opts, &d->o);
	pen__free(d->seg);
	pen__free(d);
}
