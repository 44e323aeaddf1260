/*
 * One pass over a data set, timed batch by batch from the point of view of a
 * training job. The clock starts with the workers and includes the work of the
 * consumer (measuring the mixing, converting).
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/page_cache.h"
#include "base/show.h"
#include "base/team.h"
#include "experiment/experiment.h"

/* ---- the page cache ---- */

static void read_through(const char *path, void *buf, size_t cap)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);

	if (fd < 0)
		return;
	while (read(fd, buf, cap) > 0)
		;
	close(fd);
}

/* Files larger than half the memory would evict one another. */
static void warm_up(const struct pen_dataset *ds)
{
	struct pen_dataset_info info;
	const size_t cap = (size_t)1 << 20;
	char path[4096], *buf;

	pen_dataset_get_info(ds, &info, sizeof(info));
	if (info.cached > 0.999 ||
	    pen_dataset_nbytes(ds) > pen__memory_available() / 2)
		return;
	buf = pen__alloc(cap, 1);
	for (uint64_t i = 0; buf && i < pen_dataset_nobjects(ds); i++)
		if (!pen_dataset_object(ds, i, path, sizeof(path), NULL))
			read_through(path, buf, cap);
	pen__free(buf);
}

static void cool_down(const struct pen_dataset *ds)
{
	char path[4096];

	for (uint64_t i = 0; i < pen_dataset_nobjects(ds); i++)
		if (!pen_dataset_object(ds, i, path, sizeof(path), NULL))
			pen__page_cache_drop(path);
}

/* Before the loader is opened, because opening chooses the store. */
static int set_temper(const struct pen_pass *p, struct pen_err *err)
{
	struct pen_dataset *ds;
	int rc;

	if (p->temper == PEN_AS_IT_IS)
		return 0;
	rc = pen_dataset_open(&ds, p->spec, err);
	if (rc)
		return rc;
	if (p->temper == PEN_COLD)
		cool_down(ds);
	else
		warm_up(ds);
	pen_dataset_close(ds);
	return 0;
}

/* ---- memory ---- */

#define LOOK_NS 1000000 /* between samples of memory */
#define LEAST_BLOCKS 10 /* for a rate without the first batch */

/* Resident pages that do not belong to a file. */
static uint64_t own_memory(int fd)
{
	unsigned long long size, resident, shared;
	char buf[128];
	const ssize_t n = pread(fd, buf, sizeof(buf) - 1, 0);

	if (n <= 0)
		return 0;
	buf[n] = '\0';
	if (sscanf(buf, "%llu %llu %llu", &size, &resident, &shared) != 3 ||
	    shared > resident)
		return 0;
	return (uint64_t)(resident - shared) * (uint64_t)sysconf(_SC_PAGESIZE);
}

struct look {
	int fd;
	uint64_t at;
};

static void look(struct look *k, struct pen_pass *p, uint64_t now)
{
	uint64_t own;

	if (k->fd < 0 || now - k->at < LOOK_NS)
		return;
	own = own_memory(k->fd);
	p->own_bytes = own > p->own_bytes ? own : p->own_bytes;
	k->at = now;
}

/* ---- the pass ---- */

static int keep_time(struct pen_pass *p, uint64_t ns)
{
	if (p->nbatches == p->cap) {
		const size_t cap = p->cap ? 2 * p->cap : 1024;
		uint64_t *more = pen__realloc(p->batch_ns, cap, sizeof(*more));

		if (!more)
			return PEN_ENOMEM;
		p->batch_ns = more;
		p->cap = cap;
	}
	p->batch_ns[p->nbatches++] = ns;
	return 0;
}

/* The batch with the sample numbers to report. */
static int name_batch(struct pen_pass *p, const struct pen_batch *b,
		      struct pen_batch *to, struct pen_err *err)
{
	*to = *b;
	if (!p->names)
		return 0;
	if (p->named_cap < b->nsamples) {
		pen__free(p->named);
		p->named = pen__alloc(b->nsamples, sizeof(*p->named));
		p->named_cap = p->named ? b->nsamples : 0;
		if (!p->named)
			return pen__fail_nomem(err, "names",
					       b->nsamples * sizeof(uint64_t));
	}
	for (uint32_t i = 0; i < b->nsamples; i++)
		p->named[i] = p->names[b->ids[i]];
	to->ids = p->named;
	return 0;
}

static int take_batch(struct pen_pass *p, struct pen_quality *q,
		      const struct pen_batch *given, struct pen_err *err)
{
	struct pen_batch named, *b = &named;
	int rc = name_batch(p, given, b, err);

	if (rc)
		return rc;
	if (!p->nbatches)
		p->first_samples = b->nsamples;
	p->nsamples += b->nsamples;
	if (q)
		rc = pen__quality_batch(q, b, err);
	if (p->content)
		p->content_sum += pen__content_batch(b, b->ids);
	if (!rc && p->eat)
		rc = p->eat(p->arg, b, err);
	if (p->done)
		atomic_store_explicit(p->done, p->nsamples,
				      memory_order_relaxed);
	return rc;
}

static int iterate(struct pen_pass *p, struct pen_loader *l,
		   struct pen_quality *q, struct pen_err *err)
{
	struct look k = { open("/proc/self/statm", O_RDONLY | O_CLOEXEC), 0 };
	struct pen_loader_info at;
	uint64_t start, last;
	struct pen_batch *b;
	int rc = 0;

	pen_loader_get_info(l, &at, sizeof(at));
	start = last = at.start_ns;
	while (!rc && (!p->max_batches || p->nbatches < p->max_batches)) {
		uint64_t now;

		rc = pen_loader_next(l, &b, err);
		if (rc == PEN_END) {
			if (q)
				pen__quality_epoch(q);
			pen_loader_get_info(l, &at, sizeof(at));
			if (at.ended)
				break;
			rc = 0;
			continue;
		}
		if (rc)
			break;
		rc = take_batch(p, q, b, err);
		pen_batch_unref(b);
		now = pen__now_ns();
		look(&k, p, now);
		if (!rc && keep_time(p, now - last))
			rc = pen__fail_nomem(err, "batch times", p->cap * 8);
		last = now;
	}
	p->seconds = (double)(last - start) / 1e9;
	p->cpu_s = (double)(pen__cpu_ns() - at.start_cpu_ns) / 1e9;
	p->peak_bytes = pen__memory_peak();
	if (k.fd >= 0)
		close(k.fd);
	return rc == PEN_END ? 0 : rc;
}

static int by_value(const void *a, const void *b)
{
	const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

/* Excludes the first batch, which waits for the first block and is reported
 * separately. */
static void sum_up_times(struct pen_pass *p)
{
	uint64_t *v = p->batch_ns + 1, all = 0, slow = 0;
	size_t n;

	if (!p->nbatches)
		return;
	p->first_s = (double)p->batch_ns[0] / 1e9;
	n = p->nbatches - 1;
	if (!n)
		return;
	qsort(v, n, sizeof(*v), by_value);
	p->p50_s = (double)v[(n - 1) / 2] / 1e9;
	p->p99_s = (double)v[(size_t)((double)(n - 1) * 0.99)] / 1e9;
	p->max_s = (double)v[n - 1] / 1e9;
	for (size_t i = 0; i < n; i++) {
		all += v[i];
		slow += i >= n - (n + 9) / 10 ? v[i] : 0;
	}
	p->slow_share = all ? (double)slow / (double)all : 0;
}

static void set_total(struct pen_pass *p, const struct pen_loader *l,
		      const struct pen_loader_info *of)
{
	const struct pen_spec *spec = pen_dataset_spec(pen_loader_dataset(l));
	const uint64_t all =
		of->epoch_samples * pen_spec_number(spec, "epochs") / of->world;
	const uint64_t most = p->max_batches * of->batch_samples;

	if (p->total)
		atomic_store(p->total,
			     most && (!all || most < all) ? most : all);
}

static int run_open(struct pen_pass *p, struct pen_loader *l,
		    struct pen_err *err)
{
	struct pen_quality_setup set;
	struct pen_quality *q = NULL;
	int rc = 0;

	if (p->quality) {
		rc = pen__quality_setup(&set, l, p->label, err);
		if (!rc && p->quality_chunk)
			set.chunk = p->quality_chunk;
		if (p->names)
			set.mixed = NULL; /* ids refer to another order */
		if (!rc)
			rc = pen__quality_new(&q, &set, err);
	}
	if (!rc)
		rc = iterate(p, l, q, err);
	if (!rc && q) {
		pen__quality_result(q, &p->mixed);
		p->has_mixed = true;
	}
	pen__quality_free(q);
	return rc;
}

int pen__check_any(const struct pen_loader *l, struct pen_err *err)
{
	struct pen_loader_info i;
	char ranks[48] = "";

	pen_loader_get_info(l, &i, sizeof(i));
	if (!i.drops || pen_loader_nbatches(l))
		return 0;
	if (i.world > 1)
		snprintf(ranks, sizeof(ranks), " for each of %llu ranks",
			 (unsigned long long)i.world);
	return pen__fail(err, P_TOO_FEW_SAMPLES, "batch_size",
			 "%s samples do not fill one batch%s, and "
			 "drop_last=true (tail=drop) drops incomplete batches; "
			 "lower batch_size= or set tail=keep",
			 pen__show_grouped(i.epoch_samples).s, ranks);
}

int pen__pass_run(struct pen_pass *p, struct pen_err *err)
{
	struct pen_dataset_info data;
	struct pen_loader_info of;
	struct pen_loader *l;
	int rc = set_temper(p, err);

	if (!rc)
		rc = pen_loader_open(&l, p->spec, err);
	if (rc)
		return rc;
	rc = pen__check_any(l, err);
	if (rc) {
		pen_loader_close(l);
		return rc;
	}
	pen_loader_get_info(l, &of, sizeof(of));
	pen_dataset_get_info(pen_loader_dataset(l), &data, sizeof(data));
	p->resident = data.cached;
	snprintf(p->store, sizeof(p->store), "%s",
		 pen_dataset_store(pen_loader_dataset(l)));
	p->window = of.window;
	set_total(p, l, &of);
	rc = run_open(p, l, err);
	pen_loader_stats(l, &p->stats, sizeof(p->stats));
	p->open_s = (double)p->stats.open_ns / 1e9;
	p->wait_s = (double)p->stats.wait_ns / 1e9;
	p->wait_p50_s = (double)pen_loader_wait_percentile(l, 50) / 1e9;
	p->wait_p99_s = (double)pen_loader_wait_percentile(l, 99) / 1e9;
	pen_loader_close(l);
	if (!rc)
		sum_up_times(p);
	return rc;
}

void pen__pass_fini(struct pen_pass *p)
{
	pen__free(p->batch_ns);
	p->batch_ns = NULL;
	pen__free(p->named);
	p->named = NULL;
	p->named_cap = 0;
}

static double per_second(double n, double s)
{
	return s > 0 ? n / s : 0;
}

void pen__pass_json(struct pen_text *j, const struct pen_pass *p)
{
	const double n = (double)p->nsamples;
	const double rest = (double)(p->nsamples - p->first_samples);

	pen__json_str(j, "store", p->store);
	pen__json_int(j, "threads", p->stats.nthreads);
	pen__json_int(j, "prefetch", p->stats.prefetch);
	if (p->resident >= 0)
		pen__json_num(j, "resident", p->resident);
	pen__json_int(j, "n_rows", p->nsamples);
	pen__json_int(j, "n_batches", p->nbatches);
	pen__json_num(j, "open_s", p->open_s);
	pen__json_num(j, "first_batch_s", p->first_s);
	pen__json_num(j, "seconds", p->seconds);
	pen__json_num(j, "samples_per_s", per_second(n, p->seconds));
	/* the wait for the first batch also loads the rest of its block, so
	 * the rate after it needs several blocks */
	if (p->nbatches >= LEAST_BLOCKS &&
	    p->nsamples / LEAST_BLOCKS >= p->window)
		pen__json_num(j, "samples_per_s_rest",
			      per_second(rest, p->seconds - p->first_s));
	pen__json_int(j, "payload_bytes", p->stats.payload_bytes);
	pen__json_int(j, "read_bytes", p->stats.read_bytes);
	pen__json_num(j, "read_bytes_per_s",
		      per_second((double)p->stats.read_bytes, p->seconds));
	pen__json_int(j, "n_reads", p->stats.nreads);
	pen__json_num(j, "cpu_s", p->cpu_s);
	pen__json_num(j, "cpu_s_per_million", n > 0 ? p->cpu_s * 1e6 / n : 0);
	pen__json_int(j, "peak_memory_bytes", p->peak_bytes);
	if (p->own_bytes)
		pen__json_int(j, "own_memory_bytes", p->own_bytes);
	pen__json_int(j, "buffer_peak_bytes", p->stats.memory_peak_bytes);
	if (p->nbatches > 1) {
		pen__json_num(j, "batch_p50_s", p->p50_s);
		pen__json_num(j, "batch_p99_s", p->p99_s);
		pen__json_num(j, "batch_max_s", p->max_s);
		pen__json_num(j, "slow_tenth_share", p->slow_share);
	}
	if (p->content) {
		pen__json_hex(j, "content_sum", p->content_sum);
		pen__json_int(j, "n_skipped", p->stats.nskipped);
		pen__json_int(j, "n_substituted", p->stats.nsubstituted);
		pen__json_num(j, "wait_s", p->wait_s);
		pen__json_num(j, "wait_p50_s", p->wait_p50_s);
		pen__json_num(j, "wait_p99_s", p->wait_p99_s);
	}
	if (p->has_mixed)
		pen__quality_json(j, "quality", &p->mixed);
}
