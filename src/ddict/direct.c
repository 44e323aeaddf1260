/*
 * One-sided reads of a frozen dictionary. A rank fetches the index of another
 * rank's shard once: the slots, and the size of the record of each. After that
 * it finds records by itself and reads them from the owner's memory, together
 * with their keys: a slot has only a part of the hash, so the key decides. If
 * it is another key, which is rare, the owner is asked as before.
 *
 * A reply to a get shows that a shard is frozen, so nobody has to be told. The
 * shard must stay frozen: nothing would stop the reads of other ranks.
 *
 * What other ranks send is checked: records lie within the memory that their
 * owner exposed, and values within their records.
 */
#include <string.h>

#include "base/bytes.h"
#include "base/mem.h"
#include "ddict/dictionary_int.h"

/* Buckets per request, so that the owner's thread serves others in between. */
#define BUCKETS 16384
/* Sizes are in units of 16 bytes. */
#define TOO_LARGE UINT32_MAX

/* A part of an index: this, the key of the memory, the slots, the sizes. */
struct part {
	uint64_t base, size; /* of the memory */
	uint64_t nbuckets, first, n;
	uint64_t nkey;
};

/* The index of another rank's shard. */
struct far {
	struct pen_region *region;
	uint64_t size, nbuckets;
	uint64_t *slot;
	uint32_t *units;
};

struct pen_direct {
	/* Not one lock: the owner exposes its memory while it fetches. */
	pthread_mutex_t fetching, exposing;
	_Atomic(struct far *) *far; /* one per rank */
	_Atomic uint8_t *state;	    /* of a rank */
	const void *key;	    /* of this shard's memory; NULL: not yet */
	size_t nkey;
	uint64_t size;
};

enum { UNKNOWN, FROZEN, FAILED };

int pen__direct_open(struct pen_ddict *d, struct pen_err *err)
{
	const bool able = pen__wire_able_to_read(d->wire);
	const size_t n = (size_t)d->size;
	struct pen_direct *x;

	if (!able && d->o.direct == DIRECT_ALWAYS)
		return pen__fail(err, P_NO_TRANSPORT, "direct",
				 "always requires transport=ucx");
	if (!able || d->o.direct == DIRECT_NEVER)
		return 0;
	x = pen__calloc(1, sizeof(*x));
	if (!x)
		return pen__fail_nomem(err, "dictionary", sizeof(*x));
	pthread_mutex_init(&x->fetching, NULL);
	pthread_mutex_init(&x->exposing, NULL);
	d->direct = x;
	x->far = pen__calloc(n, sizeof(*x->far));
	x->state = pen__calloc(n, sizeof(*x->state));
	return x->far && x->state ? 0 : pen__fail_nomem(err, "dictionary", n);
}

static void far_free(struct far *f)
{
	if (!f)
		return;
	pen__free(f->slot);
	pen__free(f->units);
	pen__free(f);
}

void pen__direct_close(struct pen_ddict *d)
{
	struct pen_direct *x = d->direct;

	if (!x)
		return;
	for (int i = 0; x->far && i < d->size; i++)
		far_free(atomic_load(&x->far[i]));
	pthread_mutex_destroy(&x->fetching);
	pthread_mutex_destroy(&x->exposing);
	pen__free(x->far);
	pen__free(x->state);
	pen__free(x);
	d->direct = NULL;
}

void pen__direct_note(struct pen_ddict *d, const struct pen_remote *r,
		      const struct pen_value *v, const struct pen_key_pick *p)
{
	uint64_t bytes = 0;
	uint8_t unknown = UNKNOWN;

	for (uint64_t i = 0; i < p->n; i++)
		bytes += v[p->at ? p->at[i] : i].len;
	if (p->n)
		atomic_store_explicit(&d->typical, bytes / p->n,
				      memory_order_relaxed);
	if (d->direct && r->frozen)
		(void)atomic_compare_exchange_strong(
			&d->direct->state[r->call.to], &unknown, FROZEN);
}

/* --- serving --- */

static int expose(struct pen_ddict *d, struct pen_err *err)
{
	struct pen_direct *x = d->direct;
	const struct pen_seg *s = d->mine;
	int rc = 0;

	pthread_mutex_lock(&x->exposing);
	if (!x->key) {
		/* not all of the budget: some networks would allocate it */
		x->size = (atomic_load(&s->head->top) + 4095) & ~(uint64_t)4095;
		x->size = x->size < s->size ? x->size : s->size;
		rc = pen__wire_expose(d->wire, s->base, x->size, &x->key,
				      &x->nkey, err);
	}
	pthread_mutex_unlock(&x->exposing);
	return rc;
}

static uint32_t units_of(const struct pen_seg *s, uint64_t slot)
{
	const struct pen_seg_rec *r = pen__slot_rec(s, slot);
	const uint64_t n = r ? pen__rec_size(r) / PEN_SEG_ALIGN : 0;

	return n < TOO_LARGE ? (uint32_t)n : TOO_LARGE;
}

int pen__direct_serve(struct pen_ddict *d, uint64_t bucket,
		      struct pen_reply *out, struct pen_err *err)
{
	const struct pen_seg_table *t;
	struct part part;
	uint32_t *units;
	char *room;
	size_t nhead;
	int rc;

	if (!d->direct || !d->mine->head || !pen__seg_frozen(d->mine))
		return pen__fail(err, P_NO_TRANSPORT, "dictionary",
				 "its memory is not readable");
	rc = expose(d, err);
	if (rc)
		return rc;
	t = pen__table_of(d->mine);
	if (bucket >= t->nbuckets)
		return pen__fail(err, P_BAD_MESSAGE, "dictionary",
				 "the index has no such bucket");
	part = (struct part){
		(uintptr_t)d->mine->base, d->direct->size, t->nbuckets, bucket,
		t->nbuckets - bucket,	  d->direct->nkey
	};
	part.n = part.n < BUCKETS ? part.n : BUCKETS;
	nhead = sizeof(part) + pen__round16(part.nkey);
	room = pen__reply_room(out, nhead + part.n * PEN_BUCKET * 4);
	if (!room)
		return pen__fail_nomem(err, "dictionary", nhead);
	memset(room, 0, nhead);
	memcpy(room, &part, sizeof(part));
	memcpy(room + sizeof(part), d->direct->key, part.nkey);
	units = (uint32_t *)(void *)(room + nhead);
	for (uint64_t i = 0; i < part.n * PEN_BUCKET; i++)
		units[i] = units_of(d->mine, t->slot[bucket * PEN_BUCKET + i]);
	if (pen__reply_add(out, room, nhead) ||
	    pen__reply_add(
		    out, (const void *)(uintptr_t)&t->slot[bucket * PEN_BUCKET],
		    part.n * PEN_BUCKET * 8) ||
	    pen__reply_add(out, units, part.n * PEN_BUCKET * 4))
		return pen__fail_nomem(err, "dictionary", nhead);
	return 0;
}

/* --- fetching an index --- */

static int make_far(struct pen_ddict *d, struct far *f, int rank,
		    const struct part *part, const void *key,
		    struct pen_err *err)
{
	size_t n;

	if (!pen__mul(part->nbuckets, PEN_BUCKET, &n))
		return pen__fail_nomem(err, "index", SIZE_MAX);
	f->nbuckets = part->nbuckets;
	f->size = part->size;
	f->slot = pen__alloc(n, sizeof(*f->slot));
	f->units = pen__alloc(n, sizeof(*f->units));
	if (!f->slot || !f->units)
		return pen__fail_nomem(err, "index", n * 12);
	return pen__wire_region(d->wire,
				&(struct pen_exposed){ rank, part->base,
						       part->size, key,
						       part->nkey },
				&f->region, err);
}

/* Adds a reply to the index; *next: the first bucket that is missing. */
static int add_part(struct pen_ddict *d, struct far *f,
		    const struct pen_remote *r, uint64_t *next,
		    struct pen_err *err)
{
	struct pen_bytes b = pen__bytes(r->call.reply, r->call.reply_len);
	const uint8_t *p = pen__take(&b, sizeof(struct part));
	const uint8_t *key, *slots, *units;
	struct part part = { 0 };
	int rc = 0;

	if (p)
		memcpy(&part, p, sizeof(part));
	if (b.bad || part.first != *next || !part.n || part.n > BUCKETS ||
	    part.nkey > pen__bytes_left(&b) || *next > part.nbuckets ||
	    part.n > part.nbuckets - *next || part.size > PEN_SEG_MAX ||
	    part.nbuckets > PEN_SEG_MAX / PEN_BUCKET / 8 ||
	    (f->region && part.nbuckets != f->nbuckets))
		goto malformed;
	key = pen__take(&b, pen__round16(part.nkey));
	slots = pen__take(&b, part.n * PEN_BUCKET * 8);
	units = pen__take(&b, part.n * PEN_BUCKET * 4);
	if (b.bad)
		goto malformed;
	if (!f->region)
		rc = make_far(d, f, r->call.to, &part, key, err);
	if (rc)
		return rc;
	memcpy(f->slot + *next * PEN_BUCKET, slots, part.n * PEN_BUCKET * 8);
	memcpy(f->units + *next * PEN_BUCKET, units, part.n * PEN_BUCKET * 4);
	*next += part.n;
	return 0;
malformed:
	return pen__fail(err, P_BAD_MESSAGE, "dictionary",
			 "the index of rank %d is malformed; run one version "
			 "of penstock on all ranks",
			 r->call.to);
}

static int fetch_part(struct pen_ddict *d, struct far *f, int to,
		      uint64_t *next, struct pen_err *err)
{
	const struct pen_key k = { NULL, *next };
	const struct pen_key_pick one = { NULL, 1 };
	struct pen_remote r = { 0 };
	int rc = pen__remote_make(&r, PEN_OP_INDEX, &k, NULL, &one, err);

	r.call.lane = PEN_LANE_READER;
	if (!rc)
		rc = pen__remote_send(d, &r, to, err);
	if (!rc)
		rc = pen__remote_wait(d, &r, err);
	if (!rc)
		rc = add_part(d, f, &r, next, err);
	pen__remote_fini(&r);
	return rc;
}

/* NULL: not possible, or the rank is lost, which the next request will tell. */
static struct far *fetch(struct pen_ddict *d, int to)
{
	struct far *f = pen__calloc(1, sizeof(*f));
	uint64_t next = 0;
	int rc = f ? 0 : PEN_ENOMEM;

	while (!rc && (!f->region || next < f->nbuckets))
		rc = fetch_part(d, f, to, &next, NULL);
	if (!rc)
		return f;
	far_free(f);
	return NULL;
}

static struct far *far_of(struct pen_ddict *d, int to)
{
	struct pen_direct *x = d->direct;
	struct far *f;

	if (!x || atomic_load(&x->state[to]) != FROZEN)
		return NULL;
	f = atomic_load(&x->far[to]);
	if (f)
		return f;
	pthread_mutex_lock(&x->fetching);
	f = atomic_load(&x->far[to]);
	if (!f && atomic_load(&x->state[to]) == FROZEN) {
		f = fetch(d, to);
		atomic_store(&x->far[to], f);
		if (!f)
			atomic_store(&x->state[to], FAILED);
	}
	pthread_mutex_unlock(&x->fetching);
	return f;
}

/* --- reading --- */

/*
 * The record of a key: its position and size, size 0: there is none. False: it
 * cannot be told here.
 */
static bool locate(const struct far *f, struct pen_key k, struct pen_read *out)
{
	const uint64_t hash = pen__key_hash(k);
	uint64_t b = pen__mulhi(hash, f->nbuckets);
	unsigned found = 0;

	*out = (struct pen_read){ 0 };
	for (uint64_t tries = f->nbuckets; tries; tries--) {
		const uint64_t *slot = f->slot + b * PEN_BUCKET;
		bool more = true;

		for (int i = 0; i < PEN_BUCKET; i++) {
			const uint32_t units = f->units[b * PEN_BUCKET + i];

			more &= slot[i] != PEN_SLOT_EMPTY;
			if (!pen__slot_is(slot[i], hash) || !units)
				continue;
			out->off = pen__slot_off(slot[i]);
			out->n = (uint64_t)units * PEN_SEG_ALIGN;
			found += units == TOO_LARGE ? 2 : 1;
		}
		if (!more)
			break;
		b = b + 1 < f->nbuckets ? b + 1 : 0;
	}
	return found <= 1 && out->off <= f->size &&
	       out->n <= f->size - out->off;
}

/* Sets where each record goes in one allocation. */
static bool place(struct pen_remote *r, uint64_t n, uint64_t total)
{
	char *to = pen__alloc(total + 1, 1);

	if (!to)
		return false;
	r->call.reply = to;
	for (uint64_t i = 0; i < n; i++) {
		r->reads[i].to = to;
		to += r->reads[i].n;
	}
	return true;
}

static bool plan_reads(const struct pen_ddict *d, struct pen_remote *r,
		       const struct far *f, const struct pen_key *k,
		       const struct pen_key_pick *p)
{
	uint64_t total = 0;

	if (!p->n || p->n > UINT32_MAX)
		return false;
	r->reads = pen__alloc(p->n, sizeof(*r->reads));
	if (!r->reads)
		return false;
	for (uint64_t i = 0; i < p->n; i++) {
		if (!locate(f, k[p->at ? p->at[i] : i], &r->reads[i]))
			return false;
		total += r->reads[i].n;
	}
	r->call.lane = total / p->n < PEN_BULK ? PEN_LANE_SMALL : PEN_LANE_BULK;
	if (d->o.direct != DIRECT_ALWAYS &&
	    !pen__wire_can_read(d->wire, r->call.lane == PEN_LANE_BULK))
		return false;
	r->call.region = f->region;
	r->call.reads = r->reads;
	r->call.nreads = (uint32_t)p->n;
	return place(r, p->n, total);
}

void pen__direct_plan(struct pen_ddict *d, struct pen_remote *r, int to,
		      const struct pen_key *k, const struct pen_key_pick *p)
{
	struct far *f;

	if (atomic_load_explicit(&d->typical, memory_order_relaxed) >= PEN_BULK)
		r->call.lane = PEN_LANE_BULK;
	f = far_of(d, to);
	if (!f || plan_reads(d, r, f, k, p))
		return;
	pen__free(r->reads);
	r->reads = NULL;
}

/* The value of a record that was read; false: it is another key's. */
static bool value_of(const struct pen_read *read, struct pen_key k,
		     struct pen_value *out)
{
	const struct pen_seg_rec *r = read->to;
	struct pen_key is;
	uint64_t left = read->n;

	*out = (struct pen_value){ 0 };
	if (!read->n)
		return true;
	if (left < sizeof(*r))
		return false;
	left -= sizeof(*r);
	is = pen__rec_key(r);
	if (is.number != k.number || !is.bytes != !k.bytes)
		return false;
	if (is.bytes) {
		if (is.number > left || pen__round16(is.number) > left ||
		    memcmp(is.bytes, k.bytes, k.number) != 0)
			return false;
		left -= pen__round16(is.number);
	}
	*out = pen__rec_value(r);
	return out->len <= left;
}

/* Asks the owner instead. */
static int ask_again(struct pen_ddict *d, struct pen_remote *r,
		     const struct pen_key_pick *p, struct pen_value *values,
		     struct pen_err *err)
{
	struct pen_call c = { .to = r->call.to,
			      .nreq = r->call.nreq,
			      .req = r->call.req,
			      .lane = r->call.lane };
	int rc;

	pen__free(r->call.reply);
	pen__free(r->reads);
	r->reads = NULL;
	r->call = c;
	rc = pen__remote_send(d, r, c.to, err);
	if (!rc)
		rc = pen__remote_wait(d, r, err);
	return rc ? rc : pen__remote_values(r, p, values, err);
}

int pen__direct_values(struct pen_ddict *d, struct pen_remote *r,
		       const struct pen_key_pick *p, struct pen_value *values,
		       struct pen_err *err)
{
	struct pen_key *keys;
	bool same = true;
	int rc = pen__remote_keys(r, &keys, err);

	for (uint64_t i = 0; i < p->n && same && !rc; i++)
		same = value_of(&r->reads[i], keys[i],
				&values[p->at ? p->at[i] : i]);
	pen__free(keys);
	if (rc || same)
		return rc;
	return ask_again(d, r, p, values, err);
}
