/*
 * load over ranks: with cache=ddict the processes that mpirun or srun started
 * are one job. They end together, with the error of one, and rank 0 prints
 * what all did.
 */
#include <string.h>

#include "base/mem.h"
#include "cli/load.h"

int load_ranks(struct run *r, struct pen_spec *spec)
{
	struct pen_err err = { 0 };

	if (!spec->tier)
		return -1;
	if (pen__comm_open(&r->comm, &err))
		return complain(&err);
	spec->comm = r->comm;
	mute(r->comm->rank != 0);
	return -1;
}

/* What a rank did. */
struct part {
	struct pen_stats stats;
	struct pen_tier_stats tier;
	uint64_t sum;
	double seconds, cpu_s;
};

static void add(struct run *r, const struct part *p)
{
	struct pen_tier_stats *c = &r->cache.s;
	struct pen_stats *s = &r->stats;

	s->nsamples += p->stats.nsamples;
	s->nbatches += p->stats.nbatches;
	s->nskipped += p->stats.nskipped;
	s->nsubstituted += p->stats.nsubstituted;
	s->payload_bytes += p->stats.payload_bytes;
	s->read_bytes += p->stats.read_bytes;
	s->nreads += p->stats.nreads;
	s->cache_hits += p->stats.cache_hits;
	s->cache_bytes += p->stats.cache_bytes;
	c->hits += p->tier.hits;
	c->hit_bytes += p->tier.hit_bytes;
	c->reads += p->tier.reads;
	c->read_bytes += p->tier.read_bytes;
	c->kept += p->tier.kept;
	c->kept_bytes += p->tier.kept_bytes;
	c->full |= p->tier.full;
	r->sum += p->sum;
	r->cpu_s += p->cpu_s;
	if (p->seconds > r->seconds)
		r->seconds = p->seconds;
}

static int sum_parts(struct run *r, struct pen_err *err)
{
	struct part mine = { .sum = r->sum,
			     .seconds = r->seconds,
			     .cpu_s = r->cpu_s };
	size_t *len = pen__calloc((size_t)r->comm->size, sizeof(*len));
	void *all = NULL;
	int rc = len ? 0 : pen__fail_nomem(err, "ranks", 0);

	rc = pen__comm_agree(r->comm, rc, err);
	pen_loader_stats(r->l, &mine.stats);
	(void)pen__tier_stats(r->l->ds->store, &mine.tier);
	if (!rc)
		rc = pen__comm_gather(r->comm, &mine, sizeof(mine), &all, len,
				      err);
	for (int i = 1; !rc && all && i < r->comm->size; i++)
		add(r, (const struct part *)all + i);
	pen__free(all);
	pen__free(len);
	return rc;
}

/* Epochs that all ranks have been through. */
static int sum_epochs(struct run *r, struct pen_err *err)
{
	double n = (double)r->nepochs, *v;
	int rc = pen__comm_reduce(r->comm, &n, 1, PEN_MIN, err);

	if (rc)
		return rc;
	r->nepochs = (size_t)n;
	v = pen__calloc(3 * r->nepochs + 1, sizeof(*v));
	rc = pen__comm_agree(r->comm, v ? 0 : pen__fail_nomem(err, "epochs", 0),
			     err);
	if (rc) {
		pen__free(v);
		return rc;
	}
	for (size_t i = 0; i < r->nepochs; i++) {
		v[i] = r->epoch[i].seconds;
		v[r->nepochs + 2 * i] = (double)r->epoch[i].samples;
		v[r->nepochs + 2 * i + 1] = (double)r->epoch[i].bytes;
	}
	rc = pen__comm_reduce(r->comm, v, r->nepochs, PEN_MAX, err);
	if (!rc)
		rc = pen__comm_reduce(r->comm, v + r->nepochs, 2 * r->nepochs,
				      PEN_SUM, err);
	for (size_t i = 0; i < r->nepochs && !rc; i++)
		r->epoch[i] =
			(struct epoch){ v[i], (uint64_t)v[r->nepochs + 2 * i],
					(uint64_t)v[r->nepochs + 2 * i + 1] };
	pen__free(v);
	return rc;
}

/* How full the dictionary is, and what of the data it has. */
static int look_at_cache(struct run *r, struct pen_err *err)
{
	const struct pen_dataset *ds = r->l->ds;
	struct pen_ddict *d = pen__tier_dict(ds->store);
	const char *given = pen__pairs_get(&ds->spec->for_cache, "width");
	struct cache *c = &r->cache;
	uint64_t n = pen_ddict_nshards(d), width;
	double bytes;

	if (!given || pen__parse_count(given, &width) || !width || width > n)
		width = n;
	/* the first replica */
	for (uint32_t i = 0; i < width; i++) {
		struct pen_ddict_stats s;
		int rc = pen_ddict_stats(d, i, &s, err);

		if (rc)
			return rc;
		c->held_bytes += s.value_bytes;
	}
	bytes = (double)c->s.hit_bytes + (double)c->s.read_bytes;
	c->hit_rate = bytes > 0 ? (double)c->s.hit_bytes / bytes : 0;
	c->held_share =
		ds->objs.total_bytes
			? (double)c->held_bytes / (double)ds->objs.total_bytes
			: 0;
	snprintf(c->how, sizeof(c->how), "%s", pen_ddict_transport(d));
	return 0;
}

int load_sum(struct run *r, int rc, struct pen_err *err)
{
	const bool ranks = r->comm && r->comm->size > 1;

	/* Nobody waits for a rank that is gone: each says so, and all end. */
	if (ranks && rc == PEN_ECLOSED && r->l->ds->store->lost->code) {
		mute(false);
		complain(err);
		pen__comm_abort(r->comm, EXIT_IO);
	}
	pen_loader_stats(r->l, &r->stats);
	r->cache.on = pen__tier_stats(r->l->ds->store, &r->cache.s);
	/* who ended before the others meets them where they wait first */
	if (ranks && !rc)
		rc = pen__gate_pass(r->l, err);
	if (ranks)
		rc = pen__comm_agree(r->comm, rc, err);
	if (ranks && !rc)
		rc = sum_parts(r, err);
	if (ranks && !rc)
		rc = sum_epochs(r, err);
	if (!rc && r->cache.on && (!r->comm || r->comm->rank == 0))
		rc = look_at_cache(r, err);
	return rc;
}

void load_cache_json(struct pen_text *j, const struct run *r)
{
	const struct cache *c = &r->cache;

	if (!c->on)
		return;
	pen__json_open(j, "cache", '{');
	pen__json_int(j, "ranks", r->comm ? (uint64_t)r->comm->size : 1);
	pen__json_int(j, "hits", c->s.hits);
	pen__json_int(j, "hit_bytes", c->s.hit_bytes);
	pen__json_num(j, "hit_rate", c->hit_rate);
	pen__json_int(j, "store_reads", c->s.reads);
	pen__json_int(j, "store_bytes", c->s.read_bytes);
	pen__json_int(j, "held_bytes", c->held_bytes);
	pen__json_num(j, "held_share", c->held_share);
	pen__json_bool(j, "full", c->s.full);
	pen__json_str(j, "transport", c->how);
	pen__json_close(j, '}');
}

void load_cache_print(const struct run *r)
{
	const struct cache *c = &r->cache;

	if (!c->on)
		return;
	printf("  %-14s %.1f %% of the bytes out of memory (%s), the others "
	       "from "
	       "the store (%s)\n",
	       "cache", 100 * c->hit_rate, human_bytes((double)c->s.hit_bytes),
	       human_bytes((double)c->s.read_bytes));
	printf("  %-14s holds %s, %.1f %% of the data%s; %s\n", "",
	       human_bytes((double)c->held_bytes), 100 * c->held_share,
	       c->s.full ? ", and is full (cache.memory=)" : "", c->how);
}
