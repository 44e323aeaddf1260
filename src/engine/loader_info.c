/* Queries about a loader: how it is set up, its progress, its statistics. */
#include "base/clock.h"
#include "base/mem.h"
#include "engine/loader.h"
#include "store/tier.h"

/* Samples that fill up the last batches of all ranks. */
static uint64_t padding(const struct pen_loader *l)
{
	const uint64_t global = l->world * l->batch;
	const uint64_t rest = l->length % global;

	return l->tail != PEN_TAIL_PAD || l->steps->vary || !rest
		       ? 0
		       : global - rest;
}

PEN_API void pen_loader_get_info(const struct pen_loader *l,
				 struct pen_loader_info *out, size_t size)
{
	const unsigned ready = l->order ? pen__order_ready(l->order) : 0;
	const struct pen_store *st = l->ds->store;
	struct pen_tier_stats tier = { 0 };
	const bool cached = pen__tier_stats(st, &tier);
	const struct pen_loader_info i = {
		.sampler = l->sampler->ops->name,
		.batch_samples = l->batch,
		.typical_samples = l->typical,
		.pack = l->by_length.pack,
		.pack_rows = l->by_length.pack ? l->by_length.rows : 0,
		.batch_tokens = l->by_length.tokens,
		.rank = l->rank,
		.world = l->world,
		.epoch_samples = l->length,
		.padding = padding(l),
		.window = l->sampler->window,
		.chunk = l->sampler->chunk,
		.start_ns = l->open_at + l->open_ns,
		.start_cpu_ns = l->open_cpu_ns,
		.nsamples = l->nsamples,
		.nbatches = l->nbatches,
		.payload_bytes = l->payload_bytes,
		.prefetch = l->prefetch,
		/* one more may be ready until the next is requested */
		.ready = ready < l->prefetch ? ready : l->prefetch,
		.drops = l->tail == PEN_TAIL_DROP,
		.ended = l->ended,
		.cache = cached ? pen__tier_dict(st) : NULL,
		.cache_full = tier.full,
		.cache_lost = st->lost && st->lost->code,
		.nchosen = l->choice.n,
		.in_order = l->sampler->ops->in_order,
		.repeats = l->sampler->ops->repeats,
	};

	pen__give(out, size, &i, sizeof(i));
}

PEN_API uint64_t pen_loader_chosen(const struct pen_loader *l, uint64_t i)
{
	return pen__choice_at(&l->choice, i);
}

PEN_API int pen_loader_mixed(const struct pen_loader *l, uint64_t epoch,
			     uint64_t position, uint64_t *start, uint64_t *end)
{
	const struct pen_sampler *s = l->sampler;

	return s->ops->mixed &&
	       s->ops->mixed(s, pen__order_of(l, epoch), position, start, end);
}

/* With a cache, only misses are reads of the store. */
static void add_cache(const struct pen_loader *l, struct pen_stats *out)
{
	struct pen_tier_stats t;

	if (!pen__tier_stats(l->ds->store, &t))
		return;
	out->cache_hits = t.hits;
	out->cache_bytes = t.hit_bytes;
	out->nreads = t.reads;
	out->read_bytes = t.read_bytes;
}

/* Adds the kernel's counters of a running thread to those of earlier ones. */
static void add_times(const struct pen_meter *m, struct pen_stats *out)
{
	const int tid = atomic_load(&m->tid);
	struct pen_thread_times t = { 0 };

	if (tid)
		pen__thread_times(tid, &t);
	out->cpu_ns += pen__meter_get(&m->cpu_ns) + t.cpu_ns;
	out->queue_ns += pen__meter_get(&m->queue_ns) + t.queue_ns;
}

/* Combines the threads whose timed reads are about as long as the longest. */
static void add_timed(const struct pen_loader *l, struct pen_stats *out)
{
	uint64_t longest = 0;

	for (uint32_t i = 0; i < l->nthreads; i++) {
		const uint64_t n =
			pen__meter_get(&pen__worker_meter(l, i)->timed_len);

		longest = n > longest ? n : longest;
	}
	for (uint32_t i = 0; i < l->nthreads; i++) {
		const struct pen_meter *m = pen__worker_meter(l, i);
		const uint64_t best = pen__meter_get(&m->best_ns);

		if (!best || pen__meter_get(&m->timed_len) < longest / 2)
			continue;
		out->timed_reads += pen__meter_get(&m->ntimed);
		out->timed_ns += pen__meter_get(&m->timed_ns);
		if (!out->best_read_ns || best < out->best_read_ns)
			out->best_read_ns = best;
	}
}

static void add_stages(const struct pen_loader *l, struct pen_stats *out)
{
	for (uint32_t i = 0; i < l->nthreads; i++) {
		const struct pen_meter *m = pen__worker_meter(l, i);

		out->plan_ns += pen__meter_get(&m->plan_ns);
		out->read_ns += pen__meter_get(&m->read_ns);
		out->unpack_ns += pen__meter_get(&m->unpack_ns);
		out->decode_ns += pen__meter_get(&m->decode_ns);
		out->preprocess_ns += pen__meter_get(&m->preprocess_ns);
		out->emit_ns += pen__meter_get(&m->emit_ns);
		out->idle_ns += pen__meter_get(&m->idle_ns);
		out->read_bytes += pen__meter_get(&m->read_bytes);
		out->nreads += pen__meter_get(&m->nreads);
		add_times(m, out);
	}
}

PEN_API void pen_loader_stats(const struct pen_loader *l, struct pen_stats *out,
			      size_t size)
{
	struct pen_stats s = {
		.nsamples = l->nsamples,
		.nbatches = l->nbatches,
		.nskipped = atomic_load(&l->nskipped),
		.nsubstituted = atomic_load(&l->nsubstituted),
		.payload_bytes = l->payload_bytes,
		.wait_ns = l->wait_ns,
		.first_batch_ns = l->first_batch_ns,
		.open_ns = l->open_ns,
		.elapsed_ns = pen__now_ns() - l->open_at,
		.memory_bytes = atomic_load(&l->pool->bytes),
		.memory_peak_bytes = atomic_load(&l->pool->peak),
		.memory_budget_bytes = l->budget,
		.memory_wait_ns = atomic_load(&l->pool->memory_wait_ns),
		.file_open_ns = pen__loader_files_ns(l) - l->files_ns,
		.prefetch_wanted = l->wanted,
		.nthreads = l->nthreads,
		.prefetch = l->prefetch,
		.queue_depth = l->depth,
	};
	if (l->wait.count)
		s.ready_mean = (double)l->ready_sum / (double)l->wait.count;
	add_stages(l, &s);
	/* files are opened by the first read */
	if (s.file_open_ns > s.read_ns)
		s.file_open_ns = s.read_ns;
	s.read_ns -= s.file_open_ns;
	add_timed(l, &s);
	add_cache(l, &s);
	pen__give(out, size, &s, sizeof(s));
}

PEN_API uint64_t pen_loader_wait_percentile(const struct pen_loader *l,
					    double p)
{
	return pen__hist_percentile(&l->wait, p);
}

PEN_API int pen_loader_skipped(const struct pen_loader *l, uint64_t i,
			       uint64_t *sample, struct pen_err *out)
{
	struct pen_loader *m = (struct pen_loader *)(uintptr_t)l;
	int rc = PEN_ENOTFOUND;

	pthread_mutex_lock(&m->lock);
	if (i < l->nskipped_kept) {
		*sample = l->skipped_id[i];
		if (out)
			*out = l->skipped[i].err;
		rc = 0;
	}
	pthread_mutex_unlock(&m->lock);
	return rc;
}

PEN_API double pen_loader_wait_slowest(const struct pen_loader *l, double p)
{
	return pen__hist_top(&l->wait, p);
}
