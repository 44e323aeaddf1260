/*
 * Operations on a dictionary. A key has an owner in every group of ranks that
 * holds a replica: reads go to the owner in this rank's group, writes to all.
 * Shards that are mapped are accessed directly; others get one request with all
 * keys of a call that they own.
 */
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "ddict/dictionary_int.h"

/* Keys and bytes of a put per message. */
#define PUT_KEYS 65536
#define PUT_BYTES ((uint64_t)32 << 20)

struct part { /* what one owner has of a call */
	struct pen_remote r;
	struct pen_key_pick pick;
	bool sent, done;
};

struct got {
	struct pen_got pub;
	struct pen_ddict *d;
	struct pen_value *values;
	struct pen_pin *pin; /* one per owner of the group */
	struct part *part;   /* those requested over the wire */
	struct pen_partition partition;
	int nparts, rc;
	enum pen_op op; /* for other machines */
};

int pen__partition_make(struct pen_partition *to, const struct pen_ddict *d,
			const struct pen_key *k, uint64_t n,
			struct pen_err *err)
{
	const uint32_t w = (uint32_t)d->width;

	*to = (struct pen_partition){ 0 };
	if (n > UINT32_MAX)
		return pen__fail(err, P_BAD_CALL, "keys",
				 "more than 4,294,967,295 keys in one call");
	to->at = pen__calloc(2 * n + w + 2, sizeof(*to->at));
	if (!to->at)
		return pen__fail_nomem(err, "dictionary", 8 * n);
	to->owner = to->at + n;
	to->from = to->owner + n;
	for (uint64_t i = 0; i < n; i++) {
		to->owner[i] = (uint32_t)pen__ddict_owner(d, k[i]);
		to->from[to->owner[i] + 2]++;
	}
	for (uint32_t i = 2; i < w + 2; i++)
		to->from[i] += to->from[i - 1];
	/* from[o + 1] moves from the start of o to its end */
	for (uint64_t i = 0; i < n; i++)
		to->at[to->from[to->owner[i] + 1]++] = (uint32_t)i;
	return 0;
}

void pen__partition_fini(struct pen_partition *d)
{
	pen__free(d->at);
	d->at = NULL;
}

static struct pen_key_pick part_of(const struct pen_partition *d, int owner)
{
	return (struct pen_key_pick){ d->at + d->from[owner],
				      d->from[owner + 1] - d->from[owner] };
}

/* --- reading --- */

static struct got *new_got(struct pen_ddict *d, uint64_t n, struct pen_err *err)
{
	const size_t w = (size_t)d->width;
	struct got *g;
	size_t bytes;

	if (!pen__mul(n, sizeof(struct pen_value), &bytes) ||
	    !pen__add(bytes, sizeof(*g) + w * sizeof(*g->pin), &bytes)) {
		pen__fail_nomem(err, "dictionary", SIZE_MAX);
		return NULL;
	}
	g = pen__alloc(bytes, 1);
	if (!g) {
		pen__fail_nomem(err, "dictionary", bytes);
		return NULL;
	}
	*g = (struct got){ .d = d };
	g->pin = (void *)(g + 1);
	memset(g->pin, 0, w * sizeof(*g->pin));
	g->values = (void *)(g->pin + w);
	g->pub = (struct pen_got){ n, g->values };
	return g;
}

static int ask_local(struct got *g, int owner, const struct pen_key *k,
		     const struct pen_key_pick *p, struct pen_err *err)
{
	struct pen_seg *s = g->d->seg[g->d->first + owner];
	int rc = pen__seg_pin(s, &g->pin[owner], err);

	if (rc)
		return rc;
	rc = pen__shard_find(s, k, p->at, p->n, g->values, err);
	pen__seg_settle(s, &g->pin[owner]);
	return rc;
}

static int ask_remote(struct got *g, int owner, const struct pen_key *k,
		      const struct pen_key_pick *p, struct pen_err *err)
{
	struct part *t = &g->part[g->nparts++];
	int rc;

	t->pick = *p;
	rc = pen__remote_make(&t->r, g->op, k, NULL, p, err);
	if (!rc) {
		if (g->op == PEN_OP_GET)
			pen__direct_plan(g->d, &t->r, g->d->first + owner, k,
					 p);
		rc = pen__remote_send(g->d, &t->r, g->d->first + owner, err);
	}
	t->sent = !rc;
	return rc;
}

static int ask_all(struct got *g, const struct pen_key *k, uint64_t n,
		   struct pen_err *err)
{
	struct pen_ddict *d = g->d;
	int rc;

	rc = pen__partition_make(&g->partition, d, k, n, err);
	if (rc)
		return rc;
	if (d->wire) {
		g->part = pen__calloc((size_t)d->width, sizeof(*g->part));
		if (!g->part)
			return pen__fail_nomem(err, "dictionary", 1);
		/* until the replies arrive */
		memset(g->values, 0, n * sizeof(*g->values));
	}
	/* send remote requests first, then look up local keys */
	for (int pass = 0; pass < 2; pass++)
		for (int o = 0; o < d->width && !rc; o++) {
			const struct pen_key_pick p = part_of(&g->partition, o);
			const bool here = d->seg[d->first + o] != NULL;

			if (!p.n || here != (pass == 1))
				continue;
			if (here)
				rc = ask_local(g, o, k, &p, err);
			else
				rc = ask_remote(g, o, k, &p, err);
		}
	return rc;
}

int pen__ddict_ask(struct pen_ddict *d, enum pen_part part,
		   const struct pen_key *k, uint64_t n, struct pen_got **out,
		   struct pen_err *err)
{
	static const enum pen_op ops[] = { PEN_OP_HAS, PEN_OP_HEADS,
					   PEN_OP_GET };
	struct got *g = new_got(d, n, err);
	int rc;

	*out = NULL;
	if (!g)
		return PEN_ENOMEM;
	g->op = ops[part];
	if (d->width == 1 && d->mine)
		rc = ask_local(g, 0, k, &(struct pen_key_pick){ NULL, n }, err);
	else
		rc = ask_all(g, k, n, err);
	if (rc) {
		pen_got_free(&g->pub);
		return rc;
	}
	*out = &g->pub;
	return 0;
}

PEN_API int pen_ddict_ask(struct pen_ddict *d, const struct pen_key *k,
			  uint64_t n, struct pen_got **out, struct pen_err *err)
{
	return pen__ddict_ask(d, PEN_VALUES, k, n, out, err);
}

PEN_API int pen_ddict_wait(struct pen_got *got, struct pen_err *err)
{
	struct got *g = (void *)got;

	if (g->rc)
		return pen__fail(err, g->rc, "dictionary",
				 "an earlier wait for these values failed");
	for (int i = 0; i < g->nparts && !g->rc; i++) {
		struct part *t = &g->part[i];

		if (t->done || !t->sent)
			continue;
		g->rc = pen__remote_wait(g->d, &t->r, err);
		t->done = true;
		if (!g->rc && t->r.reads)
			g->rc = pen__direct_values(g->d, &t->r, &t->pick,
						   g->values, err);
		else if (!g->rc)
			g->rc = pen__remote_values(&t->r, &t->pick, g->values,
						   err);
		if (!g->rc)
			pen__direct_note(g->d, &t->r, g->values, &t->pick);
	}
	return g->rc;
}

PEN_API void pen_got_free(struct pen_got *got)
{
	struct got *g = (void *)got;

	if (!g)
		return;
	for (int i = 0; i < g->nparts; i++) {
		struct part *t = &g->part[i];

		if (t->sent && !t->done)
			(void)pen__remote_wait(g->d, &t->r, NULL);
		pen__remote_fini(&t->r);
	}
	for (int o = 0; o < g->d->width; o++)
		if (g->pin[o].entry)
			pen__seg_unpin(g->d->seg[g->d->first + o], g->pin[o]);
	pen__partition_fini(&g->partition);
	pen__free(g->part);
	pen__free(g);
}

PEN_API int pen_ddict_get_many(struct pen_ddict *d, const struct pen_key *k,
			       uint64_t n, struct pen_got **out,
			       struct pen_err *err)
{
	int rc = pen_ddict_ask(d, k, n, out, err);

	if (rc)
		return rc;
	rc = pen_ddict_wait(*out, err);
	if (rc) {
		pen_got_free(*out);
		*out = NULL;
	}
	return rc;
}

PEN_API int pen_ddict_get(struct pen_ddict *d, struct pen_key k, void *buf,
			  uint64_t *len, struct pen_err *err)
{
	struct pen_seg *s = d->seg[d->first + pen__ddict_owner(d, k)];
	struct pen_got *got;
	int rc;

	if (s)
		return pen__shard_get(s, k, buf, len, err);
	rc = pen_ddict_get_many(d, &k, 1, &got, err);
	if (rc)
		return rc;
	rc = pen__value_copy(got->values[0], buf, len, err);
	pen_got_free(got);
	return rc;
}

/* --- one request to one rank --- */

static int ask_rank(struct pen_ddict *d, struct pen_remote *r, int to,
		    enum pen_op op, const struct pen_key *k,
		    struct pen_err *err)
{
	const struct pen_key_pick p = { NULL, k ? 1 : 0 };
	int rc = pen__remote_make(r, op, k, NULL, &p, err);

	if (!rc)
		rc = pen__remote_send(d, r, to, err);
	return rc ? rc : pen__remote_wait(d, r, err);
}

PEN_API int pen_ddict_contains(struct pen_ddict *d, struct pen_key k,
			       struct pen_err *err)
{
	const int owner = d->first + pen__ddict_owner(d, k);
	const struct pen_key_pick one = { NULL, 1 };
	struct pen_value v = { 0 };
	struct pen_remote r = { 0 };
	struct pen_pin pin;
	int rc;

	if (d->seg[owner]) {
		rc = pen__seg_pin(d->seg[owner], &pin, err);
		if (!rc) {
			rc = pen__shard_find(d->seg[owner], &k, NULL, 1, &v,
					     err);
			pen__seg_unpin(d->seg[owner], pin);
		}
	} else {
		rc = ask_rank(d, &r, owner, PEN_OP_HAS, &k, err);
		if (!rc)
			rc = pen__remote_values(&r, &one, &v, err);
		pen__remote_fini(&r);
	}
	return rc ? rc : v.data != NULL;
}

/* --- writing --- */

/* Puts the keys of one owner, in order. */
static int put_local(struct pen_seg *s, const struct pen_key *k,
		     const struct pen_value *v, const struct pen_key_pick *p,
		     struct pen_err *err)
{
	struct pen_value *values;
	struct pen_key *keys;
	int rc;

	keys = pen__alloc(p->n, sizeof(*keys) + sizeof(*values));
	if (!keys)
		return pen__fail_nomem(err, "dictionary", p->n * 32);
	values = (void *)(keys + p->n);
	for (uint64_t i = 0; i < p->n; i++) {
		keys[i] = k[p->at[i]];
		values[i] = v[p->at[i]];
	}
	rc = pen__shard_put(s, keys, values, p->n, err);
	pen__free(keys);
	return rc;
}

/* Takes as many as go in one message. */
static struct pen_key_pick cut(const struct pen_value *v,
			       struct pen_key_pick rest)
{
	uint64_t bytes = 0, i = 0;

	while (i < rest.n && i < PUT_KEYS && (!i || bytes < PUT_BYTES))
		bytes += v[rest.at[i++]].len;
	return (struct pen_key_pick){ rest.at, i };
}

/* Waits for a message with some of *rest, and removes those that were put. */
static int put_sent(struct pen_ddict *d, struct pen_remote *r, uint64_t n,
		    struct pen_key_pick *rest, uint64_t *naps,
		    struct pen_err *err)
{
	struct pen_put put = { 0 };
	int rc = pen__remote_wait(d, r, err);

	if (!rc)
		rc = pen__remote_put_done(r, n, &put, err);
	pen__remote_fini(r);
	if (rc)
		return rc;
	rest->at += put.done;
	rest->n -= put.done;
	if (put.held && !pen__put_nap(&put, naps))
		return pen__fail(err, P_DICTIONARY_FULL, "dictionary",
				 "rank %d is full of removed values that are "
				 "still being read; raise memory=",
				 r->call.to);
	return 0;
}

static int put_remote(struct pen_ddict *d, int to, const struct pen_key *k,
		      const struct pen_value *v, struct pen_key_pick rest,
		      struct pen_err *err)
{
	uint64_t naps = 0;
	int rc = 0;

	while (rest.n && !rc) {
		const struct pen_key_pick p = cut(v, rest);
		struct pen_remote r;

		rc = pen__remote_make(&r, PEN_OP_PUT, k, v, &p, err);
		if (!rc)
			rc = pen__remote_send(d, &r, to, err);
		if (!rc)
			rc = put_sent(d, &r, p.n, &rest, &naps, err);
		else
			pen__remote_fini(&r);
	}
	return rc;
}

struct pen_puts {
	struct pen_ddict *d;
	const struct pen_key *k;
	const struct pen_value *v;
	struct pen_partition partition;
	int rc; /* result of the local puts */
	struct pen_err err;
	struct part part[]; /* one per rank */
};

static int puts_new(struct pen_puts **out, struct pen_ddict *d,
		    const struct pen_key *k, const struct pen_value *v,
		    uint64_t n, struct pen_err *err)
{
	struct pen_puts *p = pen__calloc(
		1, sizeof(*p) + (size_t)d->size * sizeof(p->part[0]));
	int rc;

	if (!p)
		return pen__fail_nomem(err, "dictionary", (size_t)d->size);
	p->d = d;
	p->k = k;
	p->v = v;
	rc = pen__partition_make(&p->partition, d, k, n, err);
	if (rc) {
		pen__free(p);
		return rc;
	}
	*out = p;
	return 0;
}

/* To one rank of every group; all remote requests are sent first. */
static void puts_send(struct pen_puts *p)
{
	struct pen_ddict *d = p->d;

	for (int i = 0; i < d->size && !p->rc; i++) {
		struct part *t = &p->part[i];

		t->pick = part_of(&p->partition, i % d->width);
		if (d->seg[i] || !t->pick.n)
			continue;
		t->pick = cut(p->v, t->pick);
		p->rc = pen__remote_make(&t->r, PEN_OP_PUT, p->k, p->v,
					 &t->pick, &p->err);
		if (!p->rc)
			p->rc = pen__remote_send(d, &t->r, i, &p->err);
		t->sent = !p->rc;
	}
	for (int i = 0; i < d->size && !p->rc; i++)
		if (d->seg[i] && p->part[i].pick.n)
			p->rc = put_local(d->seg[i], p->k, p->v,
					  &p->part[i].pick, &p->err);
}

bool pen__puts_landed(struct pen_puts *p)
{
	for (int i = 0; i < p->d->size; i++)
		if (p->part[i].sent && !pen__call_done(&p->part[i].r.call))
			return false;
	return true;
}

int pen__puts_end(struct pen_puts *p, struct pen_err *err)
{
	struct pen_ddict *d = p->d;
	uint64_t naps = 0;
	int rc = p->rc;

	if (rc && err)
		*err = p->err;
	for (int i = 0; i < d->size; i++) {
		struct part *t = &p->part[i];
		struct pen_key_pick all = part_of(&p->partition, i % d->width);

		if (t->sent) {
			const int failed = put_sent(d, &t->r, t->pick.n, &all,
						    &naps, rc ? NULL : err);

			rc = rc ? rc : failed;
			if (!rc)
				rc = put_remote(d, i, p->k, p->v, all, err);
		}
		pen__remote_fini(&t->r);
	}
	pen__partition_fini(&p->partition);
	pen__free(p);
	return rc;
}

int pen__ddict_put_begin(struct pen_ddict *d, const struct pen_key *k,
			 const struct pen_value *v, uint64_t n,
			 struct pen_puts **out, struct pen_err *err)
{
	struct pen_puts *p = NULL;
	int rc;

	*out = NULL;
	if (!n)
		return 0;
	if (d->size == 1)
		return pen__shard_put(d->mine, k, v, n, err);
	rc = puts_new(&p, d, k, v, n, err);
	if (rc)
		return rc;
	puts_send(p);
	if (!d->wire)
		return pen__puts_end(p, err);
	*out = p;
	return 0;
}

PEN_API int pen_ddict_put_many(struct pen_ddict *d, const struct pen_key *k,
			       const struct pen_value *v, uint64_t n,
			       struct pen_err *err)
{
	struct pen_puts *p;
	int rc = pen__ddict_put_begin(d, k, v, n, &p, err);

	return p ? pen__puts_end(p, err) : rc;
}

PEN_API int pen_ddict_put(struct pen_ddict *d, struct pen_key k,
			  struct pen_value v, struct pen_err *err)
{
	const int owner = pen__ddict_owner(d, k);

	if (d->width == d->size && d->seg[owner])
		return pen__shard_put(d->seg[owner], &k, &v, 1, err);
	return pen_ddict_put_many(d, &k, &v, 1, err);
}

/* Pops from this rank's group. */
static int pop_one(struct pen_ddict *d, int owner, struct pen_key k,
		   struct got *g, struct pen_err *err)
{
	struct pen_seg *s = d->seg[d->first + owner];
	struct part *t;
	int rc;

	if (s) {
		rc = pen__seg_pin(s, &g->pin[owner], err);
		if (!rc)
			rc = pen__shard_pop(s, k, g->values, err);
		pen__seg_settle(s, &g->pin[owner]);
		return rc;
	}
	g->part = pen__calloc(1, sizeof(*g->part));
	if (!g->part)
		return pen__fail_nomem(err, "dictionary", sizeof(*g->part));
	t = &g->part[g->nparts++];
	t->pick.n = 1;
	rc = ask_rank(d, &t->r, d->first + owner, PEN_OP_POP, &k, err);
	if (!rc)
		rc = pen__remote_values(&t->r, &t->pick, g->values, err);
	if (!rc && !g->values[0].data)
		rc = pen__value_absent(err);
	return rc;
}

/* Removes the replicas of other groups; it is not an error if a key is
 * absent. */
static int drop_others(struct pen_ddict *d, int owner, struct pen_key k,
		       struct pen_err *err)
{
	int rc = 0;

	for (int i = owner; i < d->size && !rc; i += d->width) {
		struct pen_remote r = { 0 };
		struct pen_value v;

		if (i == d->first + owner)
			continue;
		if (d->seg[i])
			rc = pen__shard_pop(d->seg[i], k, &v, err);
		else
			rc = ask_rank(d, &r, i, PEN_OP_POP, &k, err);
		pen__remote_fini(&r);
		if (rc == PEN_ENOTFOUND)
			rc = 0;
	}
	return rc;
}

PEN_API int pen_ddict_pop(struct pen_ddict *d, struct pen_key k,
			  struct pen_got **out, struct pen_err *err)
{
	const int owner = pen__ddict_owner(d, k);
	struct got *g = new_got(d, 1, err);
	int rc;

	if (out)
		*out = NULL;
	if (!g)
		return PEN_ENOMEM;
	rc = pop_one(d, owner, k, g, err);
	if (!rc)
		rc = drop_others(d, owner, k, err);
	if (!rc && out)
		*out = &g->pub;
	else
		pen_got_free(&g->pub);
	return rc;
}

/* --- all shards --- */

int pen__for_all_shards(struct pen_ddict *d, enum pen_op op,
			int (*here)(struct pen_seg *, struct pen_err *),
			struct pen_err *err)
{
	int rc = 0;

	/* a failure does not stop the others */
	for (int i = 0; i < d->size; i++) {
		struct pen_err *say = rc ? NULL : err;
		struct pen_remote r = { 0 };
		int failed;

		failed = d->seg[i] ? here(d->seg[i], say)
				   : ask_rank(d, &r, i, op, NULL, say);
		pen__remote_fini(&r);
		rc = rc ? rc : failed;
	}
	return rc;
}

PEN_API int pen_ddict_clear(struct pen_ddict *d, struct pen_err *err)
{
	return pen__for_all_shards(d, PEN_OP_CLEAR, pen__shard_clear, err);
}

PEN_API int pen_ddict_freeze(struct pen_ddict *d, struct pen_err *err)
{
	return pen__for_all_shards(d, PEN_OP_FREEZE, pen__shard_freeze, err);
}

static int check_shard(const struct pen_ddict *d, uint32_t shard,
		       struct pen_err *err)
{
	if (shard < (uint32_t)d->size)
		return 0;
	return pen__fail(err, P_BAD_CALL, "shard",
			 "no such shard; there are %d, numbered from 0",
			 d->size);
}

static int ask_stats(struct pen_ddict *d, uint32_t shard,
		     struct pen_shard_stats *out, struct pen_err *err)
{
	struct pen_remote r = { 0 };
	int rc = ask_rank(d, &r, (int)shard, PEN_OP_STATS, NULL, err);

	if (!rc && r.call.reply_len != sizeof(*out))
		rc = pen__fail(err, P_BAD_MESSAGE, "dictionary",
			       "the ranks run different versions of penstock; "
			       "use one version on all ranks");
	if (!rc)
		memcpy(out, r.call.reply, sizeof(*out));
	pen__remote_fini(&r);
	return rc;
}

PEN_API int pen_ddict_stats(struct pen_ddict *d, uint32_t shard,
			    struct pen_shard_stats *out, size_t size,
			    struct pen_err *err)
{
	struct pen_shard_stats s = { 0 };
	int rc = check_shard(d, shard, err);

	if (rc)
		return rc;
	if (d->seg[shard]) {
		pen__shard_stats(d->seg[shard], &s);
		memcpy(s.host, d->host, sizeof(s.host));
		s.shard = shard;
	} else {
		rc = ask_stats(d, shard, &s, err);
	}
	s.host[sizeof(s.host) - 1] = '\0';
	s.wait_ns = atomic_load(&d->wait_ns);
	if (!rc)
		pen__give(out, size, &s, sizeof(s));
	return rc;
}

PEN_API int pen_ddict_len(struct pen_ddict *d, uint64_t *out,
			  struct pen_err *err)
{
	*out = 0;
	for (int i = d->first; i < d->first + d->width; i++) {
		struct pen_shard_stats s;
		int rc;

		if (d->seg[i]) {
			*out += pen__shard_len(d->seg[i]);
			continue;
		}
		rc = pen_ddict_stats(d, (uint32_t)i, &s, sizeof(s), err);
		if (rc)
			return rc;
		*out += s.nkeys;
	}
	return 0;
}

static int shard_keys(struct pen_ddict *d, int shard,
		      int (*fn)(void *arg, struct pen_key), void *arg,
		      struct pen_err *err)
{
	struct pen_remote r = { 0 };
	int rc;

	if (d->seg[shard])
		return pen__shard_keys(d->seg[shard], fn, arg, err);
	rc = ask_rank(d, &r, shard, PEN_OP_KEYS, NULL, err);
	if (!rc)
		rc = pen__remote_each_key(&r, fn, arg, err);
	pen__remote_fini(&r);
	return rc;
}

PEN_API int pen_ddict_keys(struct pen_ddict *d, int shard,
			   int (*fn)(void *arg, struct pen_key), void *arg,
			   struct pen_err *err)
{
	int rc = 0;

	if (shard >= 0) {
		rc = check_shard(d, (uint32_t)shard, err);
		return rc ? rc : shard_keys(d, shard, fn, arg, err);
	}
	/* one replica has all keys */
	for (int i = 0; i < d->width && !rc; i++)
		rc = shard_keys(d, d->first + i, fn, arg, err);
	return rc;
}

struct pen_comm *pen__ddict_comm(const struct pen_ddict *d)
{
	return d->comm;
}

bool pen__ddict_far(const struct pen_ddict *d)
{
	return d->wire != NULL;
}

int pen__ddict_width(const struct pen_ddict *d)
{
	return d->width;
}

int pen__ddict_rank_of(const struct pen_ddict *d, struct pen_key k)
{
	return pen__ddict_owner(d, k);
}

PEN_API uint32_t pen_ddict_nshards(const struct pen_ddict *d)
{
	return (uint32_t)d->size;
}

PEN_API const char *pen_ddict_transport(const struct pen_ddict *d)
{
	return d->how;
}
