/*
 * load over ranks: the processes that mpirun or srun started form one job. Each
 * loads its slice of every global batch; all end together, with the error of
 * one if any, and rank 0 prints the sums.
 */
#include <string.h>

#include "base/mem.h"
#include "cli/load.h"
#include "comm/launch.h"

/* With rank= and world= set, every process loads that slice independently. */
static int copies(const struct pen_launch *by)
{
	if (by->by && by->size != 1 && by->rank <= 0)
		fprintf(stderr,
			"penstock: load: rank= and world= are set, so each "
			"process started by %s loads and reports "
			"independently\n",
			by->by);
	return -1;
}

int load_ranks(struct run *r, struct pen_spec *spec)
{
	struct pen_launch by;
	struct pen_err err = { 0 };
	char text[32];
	bool tier;
	int rc;

	tier = !pen_spec_get(spec, "cache", text, sizeof(text)) &&
	       !strncmp(text, "ddict", 5);
	if (pen__comm_launch(&by, &err))
		return complain(&err);
	if (!tier && (r->ranked || by.size == 1))
		return copies(&by);
	if (pen_ranks_open(&r->ranks, &err))
		return complain(&err);
	r->comm = r->ranks->comm;
	mute(r->comm->rank != 0);
	if (tier) {
		pen_spec_use_ranks(spec, r->ranks);
		return -1;
	}
	snprintf(text, sizeof(text), "%d", r->comm->size);
	rc = pen_spec_set(spec, "world", text, &err);
	snprintf(text, sizeof(text), "%d", r->comm->rank);
	if (!rc)
		rc = pen_spec_set(spec, "rank", text, &err);
	return rc ? complain(&err) : -1;
}

/* Figures of one rank. */
struct part {
	struct pen_stats stats;
	bool full; /* the cache is */
	struct pen_facts facts;
	uint64_t sum;
	double seconds, cpu_s;
};

static void add(struct run *r, const struct part *p)
{
	struct cache *c = &r->cache;
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
	c->full |= p->full;
	pen__facts_join(&r->facts, &p->facts);
	r->sum += p->sum;
	r->cpu_s += p->cpu_s;
	if (p->seconds > r->seconds)
		r->seconds = p->seconds;
}

static int sum_parts(struct run *r, struct pen_err *err)
{
	struct part mine = { .facts = r->facts,
			     .full = r->cache.full,
			     .sum = r->sum,
			     .seconds = r->seconds,
			     .cpu_s = r->cpu_s };
	size_t *len = pen__calloc((size_t)r->comm->size, sizeof(*len));
	void *all = NULL;
	int rc = len ? 0 : pen__fail_nomem(err, "ranks", 0);

	rc = pen__comm_agree(r->comm, rc, err);
	pen_loader_stats(r->l, &mine.stats, sizeof(mine.stats));
	if (!rc)
		rc = pen__comm_gather(r->comm, &mine, sizeof(mine), &all, len,
				      err);
	for (int i = 1; !rc && all && i < r->comm->size; i++)
		add(r, (const struct part *)all + i);
	pen__free(all);
	pen__free(len);
	return rc;
}

/* Sums over the epochs that all ranks completed. */
static int sum_epochs(struct run *r, struct pen_err *err)
{
	double n = (double)r->nepochs, *v;
	int rc = pen__comm_reduce(r->comm, &n, 1, PEN_MIN, err);

	if (rc)
		return rc;
	r->nepochs = (size_t)n;
	v = pen__calloc(4 * r->nepochs + 1, sizeof(*v));
	rc = pen__comm_agree(r->comm, v ? 0 : pen__fail_nomem(err, "epochs", 0),
			     err);
	if (rc) {
		pen__free(v);
		return rc;
	}
	for (size_t i = 0; i < r->nepochs; i++) {
		double *sum = v + r->nepochs + 3 * i;

		v[i] = r->epoch[i].seconds;
		sum[0] = r->epoch[i].cpu_s;
		sum[1] = (double)r->epoch[i].samples;
		sum[2] = (double)r->epoch[i].bytes;
	}
	rc = pen__comm_reduce(r->comm, v, r->nepochs, PEN_MAX, err);
	if (!rc)
		rc = pen__comm_reduce(r->comm, v + r->nepochs, 3 * r->nepochs,
				      PEN_SUM, err);
	for (size_t i = 0; i < r->nepochs && !rc; i++) {
		const double *sum = v + r->nepochs + 3 * i;

		r->epoch[i] = (struct epoch){ v[i], sum[0], (uint64_t)sum[1],
					      (uint64_t)sum[2] };
	}
	pen__free(v);
	return rc;
}

/* Determines how full the dictionary is and how much of the data it holds. */
static int look_at_cache(struct run *r, struct pen_err *err)
{
	const struct pen_dataset *ds = pen_loader_dataset(r->l);
	struct pen_ddict *d = r->info.cache;
	struct cache *c = &r->cache;
	uint64_t n = pen_ddict_nshards(d);
	uint64_t width = pen_spec_number(pen_dataset_spec(ds), "cache.width");
	const double all = (double)pen_dataset_nbytes(ds);
	double bytes;

	if (!width || width > n)
		width = n;
	/* the first replica */
	for (uint32_t i = 0; i < width; i++) {
		struct pen_shard_stats s;
		int rc = pen_ddict_stats(d, i, &s, sizeof(s), err);

		if (rc)
			return rc;
		c->held_bytes += s.value_bytes;
	}
	c->hits = r->stats.cache_hits;
	c->hit_bytes = r->stats.cache_bytes;
	c->reads = r->stats.nreads;
	c->read_bytes = r->stats.read_bytes;
	bytes = (double)c->hit_bytes + (double)c->read_bytes;
	c->hit_rate = bytes > 0 ? (double)c->hit_bytes / bytes : 0;
	c->held_share = all > 0 ? (double)c->held_bytes / all : 0;
	snprintf(c->how, sizeof(c->how), "%s", pen_ddict_transport(d));
	return 0;
}

int load_sum(struct run *r, int rc, struct pen_err *err)
{
	const bool ranks = r->comm && r->comm->size > 1;

	/* No rank waits for a lost one: each prints the error and all end. */
	pen_loader_get_info(r->l, &r->info, sizeof(r->info));
	if (ranks && rc == PEN_ECLOSED && r->info.cache_lost) {
		mute(false);
		complain(err);
		pen__comm_abort(r->comm, EXIT_IO);
	}
	pen_loader_stats(r->l, &r->stats, sizeof(r->stats));
	r->cache.on = r->info.cache != NULL;
	r->cache.full = r->info.cache_full;
	/* a rank that ended early joins the collectives that the others wait in
	 */
	if (ranks && !rc)
		rc = pen_loader_finish(r->l, err);
	if (ranks)
		rc = pen__comm_agree(r->comm, rc, err);
	if (ranks && !rc)
		rc = sum_parts(r, err);
	if (ranks && !rc)
		rc = sum_epochs(r, err);
	if (!rc && r->cache.on && (!r->comm || r->comm->rank == 0))
		rc = look_at_cache(r, err);
	pen__verdict(&r->facts, NULL, 0, &r->why);
	return rc;
}

void load_cache_json(struct pen_text *j, const struct run *r)
{
	const struct cache *c = &r->cache;

	if (!c->on)
		return;
	pen__json_open(j, "cache", '{');
	pen__json_int(j, "ranks", r->comm ? (uint64_t)r->comm->size : 1);
	pen__json_int(j, "hits", c->hits);
	pen__json_int(j, "hit_bytes", c->hit_bytes);
	pen__json_num(j, "hit_rate", c->hit_rate);
	pen__json_int(j, "store_reads", c->reads);
	pen__json_int(j, "store_bytes", c->read_bytes);
	pen__json_int(j, "held_bytes", c->held_bytes);
	pen__json_num(j, "held_share", c->held_share);
	pen__json_bool(j, "full", c->full);
	pen__json_str(j, "transport", c->how);
	pen__json_close(j, '}');
}

void load_cache_print(const struct run *r)
{
	const struct cache *c = &r->cache;

	if (!c->on)
		return;
	print_line(14, "cache",
		   "%.1f %% of the bytes from memory (%s), the rest from the "
		   "store (%s)",
		   100 * c->hit_rate, human_bytes((double)c->hit_bytes),
		   human_bytes((double)c->read_bytes));
	print_line(14, "", "holds %s, %.1f %% of the data%s; %s",
		   human_bytes((double)c->held_bytes), 100 * c->held_share,
		   c->full ? ", and is full (raise cache.memory=)" : "",
		   c->how);
}
