/*
 * The values of a dictionary: every key is an object, so a dictionary is a data
 * set like a folder of files. Objects are in the order of keys=, or integer
 * keys in numeric order and then the others bytewise: the same on every rank,
 * whoever put them.
 *
 * Values are lent: those of this machine from the shard, those of others from
 * the reply. Reads are collected and asked for together, with one request for
 * each rank that owns some. If ranks are a request away (st->far), a group is
 * sent when it is full, so that it travels while earlier values are decoded.
 *
 * A key that is gone when it is read is PEN_ENOTFOUND, a value of another
 * length PEN_ESTALE. A rank that died ends all reads with PEN_ECLOSED: its
 * values are lost. Pickles are refused: reading them would run code.
 */
#include "store/dict_values.h"

#include <glob.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/rng.h"
#include "ddict/dictionary.h"
#include "store/files.h"

extern const struct pen_store_ops pen__store_dictionary;

#define ASK_LENGTHS 65536 /* keys per request while listing */
#define HEADS 64	  /* values whose first bytes come together */
#define PROBES 8	  /* values checked for pickles */
/* From other machines: bytes per group, and in flight. */
#define GROUP_BYTES ((uint64_t)16 << 20)
#define FLIGHT_BYTES ((uint64_t)64 << 20)

struct dict_store {
	char *keys, *transport;
	uint64_t memory;
	bool share, local;
	struct pen_dict_source from;
	struct pen_ddict *d;
	bool met;
	struct pen_dict_keys of; /* per object */
	uint64_t *len;
	bool *gone;
	pthread_mutex_t lock;
	struct pen_err lost; /* written once, under the lock */
};

/* Reads that were asked for together. */
struct group {
	struct pen_got *got;
	struct group *next, *all;
	unsigned n, left; /* left: lent */
	uint64_t bytes;
	struct pen_io *io[];
};

struct dict_queue {
	struct pen_done done;
	struct group *all, *free, *load;
	struct group *first, *last; /* sent */
	struct pen_key *key;
	unsigned busy;	/* submitted, not reaped */
	uint64_t bytes; /* not released */
	/* a queue of one read, for indexing: the first bytes of some values */
	struct pen_got *heads;
	uint32_t heads_at;
};

static const struct pen_opt opts[] = {
	{ .name = "keys",
	  .type = PEN_OPT_STR,
	  .off = offsetof(struct dict_store, keys),
	  .help = "keys to load, in order: START:STOP[:STEP], a file, or "
		  "K,K,... (default: all, sorted)" },
	{ .name = "local",
	  .type = PEN_OPT_BOOL,
	  .off = offsetof(struct dict_store, local),
	  .dflt = "false",
	  .help = "give each rank the keys of its own shard as long as there "
		  "are any; for orders without shuffling" },
	{ .name = "memory",
	  .type = PEN_OPT_SIZE,
	  .off = offsetof(struct dict_store, memory),
	  .help = "for a saved dictionary that has to be read into memory: "
		  "budget per rank" },
	{ .name = "transport",
	  .type = PEN_OPT_STR,
	  .off = offsetof(struct dict_store, transport),
	  .dflt = "auto",
	  .help = "for a saved dictionary: how ranks on other machines are "
		  "reached" },
	{ .name = "share",
	  .type = PEN_OPT_BOOL,
	  .off = offsetof(struct dict_store, share),
	  .dflt = "true",
	  .help = "for a saved dictionary: map the shards of ranks on the "
		  "same machine (false = use the transport)" },
	{ .name = NULL },
};

/* --- opening --- */

static int dict_open(struct pen_store *st, struct pen_err *err)
{
	struct dict_store *s = st->priv;

	(void)err;
	pthread_mutex_init(&s->lock, NULL);
	st->lends = st->in_order = true;
	st->format = "files";
	st->lost = &s->lost;
	return 0;
}

static void dict_close(struct pen_store *st)
{
	struct dict_store *s = st->priv;

	if (s->d && s->d != s->from.given) {
		/* other ranks may still ask for values */
		if (pen__ddict_comm(s->d) && !s->lost.code)
			pen__comm_part(s->from.comm);
		pen_ddict_close(s->d);
	}
	pen__dict_keys_fini(&s->of);
	pen__free(s->len);
	pen__free(s->gone);
	pthread_mutex_destroy(&s->lock);
}

void pen__dict_join(struct pen_store *st, const struct pen_dict_source *from)
{
	struct dict_store *s = st->priv;

	if (st->ops == &pen__store_dictionary)
		s->from = *from;
}

bool pen__dict_met(const struct pen_store *st)
{
	const struct dict_store *s = st ? st->priv : NULL;

	return s && st->ops == &pen__store_dictionary && s->met;
}

bool pen__dict_local(const struct pen_store *st)
{
	const struct dict_store *s = st->priv;

	return st->ops == &pen__store_dictionary && s->local;
}

/* One file, or path.0-of-N; with a slash it is never a name. */
static bool is_saved(const char *path)
{
	char shards[PATH_MAX];
	glob_t found;
	bool any;

	if (strchr(path, '/') || !access(path, F_OK))
		return true;
	snprintf(shards, sizeof(shards), "%s.0-of-*", path);
	any = !glob(shards, GLOB_NOSORT, NULL, &found) && found.gl_pathc;
	globfree(&found);
	return any;
}

static int open_saved(struct dict_store *s, const char *path,
		      struct pen_err *err)
{
	char restore[PATH_MAX + 16], memory[40], transport[64];
	const char *set[4] = { restore, transport,
			       s->share ? "share=true" : "share=false",
			       memory };

	snprintf(restore, sizeof(restore), "restore=%s", path);
	snprintf(transport, sizeof(transport), "transport=%.50s", s->transport);
	snprintf(memory, sizeof(memory), "memory=%llu",
		 (unsigned long long)s->memory);
	return pen__ddict_open(&s->d, s->from.comm, set, s->memory ? 4 : 3,
			       err);
}

/* A name, or a file if there is one (*saved); both at a time would be a
 * guess. */
static int open_name(struct dict_store *s, const char *path, bool *saved,
		     struct pen_err *err)
{
	const size_t skip = strlen(PEN_DICT_PREFIX);
	const char *name = path + skip;
	char set[PATH_MAX + 16];
	const char *const settings[] = { set, "create=false" };
	int rc;

	if (strncmp(path, PEN_DICT_PREFIX, skip) != 0 || !*name)
		return pen__fail(err, P_BAD_VALUE, path,
				 "write ddict:NAME or ddict:FILE");
	*saved = is_saved(name);
	if (strchr(name, '/'))
		return 0;
	snprintf(set, sizeof(set), "name=%s", name);
	rc = pen__ddict_open(&s->d, NULL, settings, 2, *saved ? NULL : err);
	if (!rc && *saved)
		return pen__fail(err, P_AMBIGUOUS_DATA, path,
				 "is both a name and a saved dictionary; write "
				 "ddict:./%.100s for the file",
				 name);
	if (*saved && (rc == PEN_ENOTFOUND || rc == PEN_EINVAL))
		return 0;
	if (rc != PEN_ENOTFOUND)
		return rc;
	return pen__fail(err, P_NO_DICTIONARY, path,
			 "no process of this user on this machine has a "
			 "dictionary of this name, and there is no such file");
}

/* All ranks continue, or none, and all with a file or without. */
static int meet(struct dict_store *s, const char *path, bool saved, int rc,
		struct pen_err *err)
{
	double v[2] = { saved, -(double)saved };

	if (!s->from.comm)
		return rc;
	s->met = true;
	rc = pen__comm_agree(s->from.comm, rc, err);
	if (!rc)
		rc = pen__comm_reduce(s->from.comm, v, 2, PEN_MIN, err);
	if (!rc && v[0] != -v[1])
		rc = pen__fail(err, P_RANKS_DISAGREE, path,
			       "some ranks see a file, others do not; use a "
			       "path that all hosts share");
	return rc;
}

static int open_dict(struct dict_store *s, const char *path,
		     struct pen_err *err)
{
	bool saved = false;
	int rc = 0;

	if (s->from.given)
		s->d = s->from.given;
	else
		rc = open_name(s, path, &saved, err);
	rc = meet(s, path, saved, rc, err);
	return rc || !saved
		       ? rc
		       : open_saved(s, path + strlen(PEN_DICT_PREFIX), err);
}

/* --- listing --- */

static int add_key(void *to, struct pen_key k)
{
	return pen__dict_keys_add(to, k);
}

static int all_keys(struct dict_store *s, struct pen_err *err)
{
	int rc = pen_ddict_keys(s->d, -1, add_key, &s->of, err);

	if (rc == PEN_ENOMEM)
		return pen__fail_nomem(err, "keys", s->of.n * 16);
	if (rc)
		return rc;
	pen__dict_keys_settle(&s->of);
	if (s->of.n > 1)
		qsort(s->of.key, s->of.n, sizeof(*s->of.key),
		      pen__dict_key_compare);
	return 0;
}

static int given_keys(struct dict_store *s, struct pen_err *err)
{
	struct pen_key *sorted;
	int rc = pen__dict_keys_parse(&s->of, s->keys, err);

	if (rc)
		return rc;
	pen__dict_keys_settle(&s->of);
	sorted = pen__alloc(s->of.n + 1, sizeof(*sorted));
	if (!sorted)
		return pen__fail_nomem(err, "keys", s->of.n * 16);
	if (s->of.n) {
		memcpy(sorted, s->of.key, s->of.n * sizeof(*sorted));
		qsort(sorted, s->of.n, sizeof(*sorted), pen__dict_key_compare);
	}
	for (uint64_t i = 1; i < s->of.n && !rc; i++)
		if (!pen__dict_key_compare(&sorted[i - 1], &sorted[i]))
			rc = pen__fail(err, P_CONFLICT, "store.keys",
				       "names the key %s twice; name each key "
				       "once (subset= and sampler=weighted can "
				       "repeat samples)",
				       pen__dict_name(sorted[i]).s);
	pen__free(sorted);
	return rc;
}

static int lengths(struct dict_store *s, struct pen_err *err)
{
	const uint64_t n = s->of.n;
	int rc = 0;

	s->len = pen__calloc(n + 1, sizeof(*s->len));
	s->gone = pen__calloc(n + 1, sizeof(*s->gone));
	if (!s->len || !s->gone)
		return pen__fail_nomem(err, "keys", n * 9);
	for (uint64_t at = 0; at < n && !rc; at += ASK_LENGTHS) {
		const uint64_t k = n - at < ASK_LENGTHS ? n - at : ASK_LENGTHS;
		struct pen_got *got;

		rc = pen__ddict_ask(s->d, PEN_LENGTHS, s->of.key + at, k, &got,
				    err);
		if (rc)
			break;
		rc = pen_ddict_wait(got, err);
		for (uint64_t i = 0; i < k && !rc; i++) {
			s->len[at + i] = got->values[i].len;
			s->gone[at + i] = !got->values[i].data;
		}
		pen_got_free(got);
	}
	return rc;
}

static bool is_pickle(struct pen_value v)
{
	const uint8_t *p = v.data;

	return v.data && v.len >= 4 && p[0] == 0x80 && p[1] >= 2 && p[1] <= 5 &&
	       p[v.len - 1] == '.';
}

/* All of a few values are pickles: numbers are not all alike. */
static int refuse_pickles(struct dict_store *s, const char *path,
			  struct pen_err *err)
{
	struct pen_key k[PROBES];
	uint64_t n = s->of.n < PROBES ? s->of.n : PROBES, npickles = 0;
	struct pen_got *got;
	int rc;

	for (uint64_t i = 0; i < n; i++)
		k[i] = s->of.key[s->of.n * i / n];
	rc = n ? pen_ddict_get_many(s->d, k, n, &got, err) : 0;
	if (rc || !n)
		return rc;
	for (uint64_t i = 0; i < n; i++)
		npickles += is_pickle(got->values[i]);
	pen_got_free(got);
	if (npickles < n)
		return 0;
	return pen__fail(err, P_UNSUPPORTED_TYPE, path,
			 "its values are Python pickles, which are not loaded "
			 "because they can run code; put arrays or bytes, "
			 "without pickle=True");
}

/*
 * Numbers the samples so that the slice of rank r of every global batch has
 * keys of its shard, as long as there are any; then those of others, from the
 * longest list.
 */
static int order_locally(struct dict_store *s, struct pen_err *err)
{
	const uint64_t w = (uint64_t)pen__ddict_width(s->d), n = s->of.n;
	const uint64_t world = s->from.world ? s->from.world : 1;
	const uint64_t batch = s->from.batch ? s->from.batch : 1;
	struct pen_key *out = pen__alloc(n + 1, sizeof(*out));
	uint64_t *next = pen__calloc(3 * w + n + 1, sizeof(*next));
	uint64_t *end = next + w, *at = next + 2 * w;
	uint64_t done = 0;

	if (!out || !next) {
		pen__free(out);
		pen__free(next);
		return pen__fail_nomem(err, "keys", n * 24);
	}
	for (uint64_t i = 0; i < n; i++)
		end[pen__ddict_rank_of(s->d, s->of.key[i])]++;
	for (uint64_t o = 0, sum = 0; o < w; o++) {
		next[o] = sum;
		sum += end[o];
		end[o] = next[o];
	}
	for (uint64_t i = 0; i < n; i++)
		at[end[pen__ddict_rank_of(s->d, s->of.key[i])]++] = i;
	while (done < n) {
		uint64_t o = done / batch % world % w;

		for (uint64_t k = 0; next[o] == end[o] && k < w; k++)
			if (end[k] - next[k] > end[o] - next[o])
				o = k;
		out[done++] = s->of.key[at[next[o]++]];
	}
	memcpy(s->of.key, out, n * sizeof(*out));
	pen__free(out);
	pen__free(next);
	return 0;
}

static int add_objects(struct dict_store *s, const char *path,
		       struct pen_objects *set, struct pen_err *err)
{
	uint32_t dir;
	int rc = pen__objects_add_dir(set, path, 0, 0, &dir);

	for (uint64_t i = 0; i < s->of.n && !rc; i++)
		rc = pen__objects_add(set, dir, pen__dict_name(s->of.key[i]).s,
				      s->len[i], 0);
	if (rc == PEN_ENOMEM)
		return pen__fail_nomem(err, path, s->of.n * 64);
	return rc ? pen__fail(err, P_OVER_LIMIT, path,
			      "has more than 2^32 - 1 keys; choose some with "
			      "store.keys=")
		  : 0;
}

/* Ranks that see different keys would train some twice and others never. */
static int compare(struct dict_store *s, const char *path, struct pen_err *err)
{
	uint64_t h = s->of.n;
	double v[2];
	int rc;

	for (uint64_t i = 0; i < s->of.n; i++) {
		const struct pen_key k = s->of.key[i];

		h = pen__mix64(h ^ k.number) + s->len[i];
		for (uint64_t j = 0; k.bytes && j < k.number; j++)
			h = pen__mix64(h ^ ((const uint8_t *)k.bytes)[j]);
	}
	v[0] = (double)(h >> 12);
	v[1] = -v[0];
	rc = pen__comm_reduce(s->from.comm, v, 2, PEN_MIN, err);
	if (!rc && v[0] != -v[1])
		rc = pen__fail(err, P_RANKS_DISAGREE, path,
			       "the ranks see different keys; after the last "
			       "put, wait for all ranks (barrier) before you "
			       "load");
	return rc;
}

static int list(struct dict_store *s, const char *path, struct pen_objects *set,
		struct pen_err *err)
{
	int rc = s->keys ? given_keys(s, err) : all_keys(s, err);

	if (!rc && s->local)
		rc = order_locally(s, err);
	if (!rc)
		rc = lengths(s, err);
	if (!rc)
		rc = refuse_pickles(s, path, err);
	if (!rc && !s->of.n)
		rc = pen__fail(err, P_NO_SAMPLES, path, "has no keys");
	return rc ? rc : add_objects(s, path, set, err);
}

static int dict_list(struct pen_store *st, const char *path, pen_keep_fn *keep,
		     void *arg, struct pen_objects *set, struct pen_err *err)
{
	struct dict_store *s = st->priv;
	int rc = open_dict(s, path, err);

	(void)keep;
	(void)arg;
	if (rc)
		return rc;
	st->far = pen__ddict_far(s->d);
	rc = list(s, path, set, err);
	if (s->from.comm)
		rc = pen__comm_agree(s->from.comm, rc, err);
	if (!rc && s->from.comm)
		rc = compare(s, path, err);
	return rc;
}

static int dict_check(struct pen_store *st, uint32_t object,
		      struct pen_err *err)
{
	const struct dict_store *s = st->priv;

	return s->gone[object] ? pen__fail(err, P_NOT_FOUND, NULL,
					   "the dictionary has no such key")
			       : 0;
}

/* --- a queue --- */

static int dict_queue_open(struct pen_queue *q, struct pen_err *err)
{
	struct dict_queue *p = q->priv;

	p->key = pen__alloc(q->depth, sizeof(*p->key));
	return p->key ? 0 : pen__fail_nomem(err, "dictionary", q->depth * 16);
}

static void dict_queue_close(struct pen_queue *q)
{
	struct dict_queue *p = q->priv;

	for (struct group *g = p->all, *next; g; g = next) {
		next = g->all;
		pen_got_free(g->got);
		pen__free(g);
	}
	pen_got_free(p->heads);
	pen__free(p->key);
}

static struct group *take_group(struct pen_queue *q)
{
	struct dict_queue *p = q->priv;
	struct group *g = p->free;

	if (g) {
		p->free = g->next;
	} else {
		g = pen__calloc(1, sizeof(*g) + q->depth * sizeof(g->io[0]));
		if (!g)
			return NULL;
		g->all = p->all;
		p->all = g;
	}
	g->n = g->left = 0;
	g->bytes = 0;
	g->got = NULL;
	g->next = NULL;
	return g;
}

static void give_group(struct dict_queue *p, struct group *g)
{
	pen_got_free(g->got);
	g->got = NULL;
	p->bytes -= g->bytes;
	g->next = p->free;
	p->free = g;
}

/* A failed request: of a file that was truncated, or of a rank that died. */
static int lose(struct dict_store *s, int rc, const struct pen_err *err)
{
	if (rc == PEN_ESTALE || rc == PEN_ENOMEM)
		return rc;
	pthread_mutex_lock(&s->lock);
	if (!s->lost.code)
		pen__fail(&s->lost, P_CLOSED, err->where, "%.200s", err->msg);
	pthread_mutex_unlock(&s->lock);
	return PEN_ECLOSED;
}

static void fail_group(struct dict_queue *p, struct group *g, int rc)
{
	for (unsigned i = 0; i < g->n; i++) {
		pen__io_end(g->io[i], rc, 0);
		pen__done_push(&p->done, g->io[i]);
	}
	give_group(p, g);
}

/* Asks for what was collected. */
static void send(struct pen_queue *q)
{
	struct dict_store *s = q->st->priv;
	struct dict_queue *p = q->priv;
	struct group *g = p->load;
	struct pen_err err;
	int rc;

	p->load = NULL;
	pen__err_reset(&err);
	for (unsigned i = 0; i < g->n; i++)
		p->key[i] = s->of.key[g->io[i]->object];
	rc = pen__ddict_ask(s->d, PEN_VALUES, p->key, g->n, &g->got, &err);
	if (rc) {
		fail_group(p, g, lose(s, rc, &err));
		return;
	}
	if (p->first)
		p->last->next = g;
	else
		p->first = g;
	p->last = g;
}

static bool lend(const struct dict_store *s, struct pen_io *io,
		 struct pen_value v)
{
	if (!v.data || v.len != s->len[io->object]) {
		pen__io_end(io, v.data ? PEN_ESTALE : PEN_ENOTFOUND, 0);
		return false;
	}
	pen__io_lend(io, v.data, v.len);
	return true;
}

/* Waits for the group that was sent first. */
static void land(struct pen_queue *q)
{
	struct dict_store *s = q->st->priv;
	struct dict_queue *p = q->priv;
	struct group *g = p->first;
	struct pen_err err;
	int rc;

	p->first = g->next;
	pen__err_reset(&err);
	rc = pen_ddict_wait(g->got, &err);
	if (rc) {
		fail_group(p, g, lose(s, rc, &err));
		return;
	}
	for (unsigned i = 0; i < g->n; i++) {
		struct pen_io *io = g->io[i];

		if (lend(s, io, g->got->values[i])) {
			io->lent = g;
			g->left++;
		}
		pen__done_push(&p->done, io);
	}
	if (!g->left)
		give_group(p, g);
}

/* The first bytes of values on other machines, of some objects at a time. */
static int ask_heads(struct pen_queue *q, uint32_t object)
{
	struct dict_store *s = q->st->priv;
	struct dict_queue *p = q->priv;
	const uint64_t rest = s->of.n - object, n = rest < HEADS ? rest : HEADS;
	struct pen_err err;
	int rc;

	if (p->heads && object - p->heads_at < p->heads->n)
		return 0;
	pen_got_free(p->heads);
	p->heads = NULL;
	pen__err_reset(&err);
	rc = pen__ddict_ask(s->d, PEN_HEADS, s->of.key + object, n, &p->heads,
			    &err);
	if (!rc)
		rc = pen_ddict_wait(p->heads, &err);
	if (rc) {
		pen_got_free(p->heads);
		p->heads = NULL;
		return lose(s, rc, &err);
	}
	p->heads_at = object;
	return 0;
}

static void read_head(struct pen_queue *q, struct pen_io *io)
{
	struct dict_queue *p = q->priv;
	const int rc = ask_heads(q, io->object);

	if (rc)
		pen__io_end(io, rc, 0);
	else
		lend(q->st->priv, io,
		     p->heads->values[io->object - p->heads_at]);
	pen__done_push(&p->done, io);
}

static int dict_submit(struct pen_queue *q, struct pen_io *io)
{
	struct dict_queue *p = q->priv;
	const bool far = q->st->far;
	struct group *g;

	if (p->busy >= q->depth ||
	    (far && p->busy && p->bytes + io->len > FLIGHT_BYTES))
		return PEN_END;
	p->busy++;
	if (far && q->depth == 1 && io->offset + io->len <= PEN_HEAD_BYTES) {
		read_head(q, io);
		return 0;
	}
	if (!p->load)
		p->load = take_group(q);
	g = p->load;
	if (!g) {
		pen__io_end(io, PEN_ENOMEM, 0);
		pen__done_push(&p->done, io);
		return 0;
	}
	g->io[g->n++] = io;
	g->bytes += io->len;
	p->bytes += io->len;
	if (far && (g->n >= (q->depth + 1) / 2 || g->bytes >= GROUP_BYTES))
		send(q);
	return 0;
}

static unsigned dict_reap(struct pen_queue *q, unsigned min,
			  struct pen_io **done, unsigned max)
{
	struct dict_queue *p = q->priv;
	unsigned n;

	if (p->load)
		send(q);
	while (p->done.n < min && p->first)
		land(q);
	n = pen__done_pop(&p->done, done, max);
	p->busy -= n;
	return n;
}

static void dict_release(struct pen_queue *q, struct pen_io *io)
{
	struct group *g = io->lent;

	io->lent = NULL;
	if (g && !--g->left)
		give_group(q->priv, g);
}

const struct pen_store_ops pen__store_dictionary = {
	.name = "dictionary",
	.help = "the values of a dictionary: what a path ddict:NAME or "
		"ddict:FILE reads",
	.opts = opts,
	.priv_size = sizeof(struct dict_store),
	.queue_size = sizeof(struct dict_queue),
	.open = dict_open,
	.close = dict_close,
	.list = dict_list,
	.check = dict_check,
	.queue_open = dict_queue_open,
	.queue_close = dict_queue_close,
	.submit = dict_submit,
	.reap = dict_reap,
	.release = dict_release,
};
