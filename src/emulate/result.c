/*
 * result.json: all settings and results of a run in one versioned file, for
 * reports, comparisons and people. docs/result.md describes it. Keys include
 * their unit; nothing has to be computed from a log.
 */
#include "emulate/result.h"

#include <math.h>
#include <string.h>

#include "base/mem.h"

#define MIB (1024.0 * 1024.0)

/* Unix time with microseconds, which nine digits would lose. */
static void put_unix(struct pen_text *t, const char *key, double at)
{
	long long us = at > 0 && at < 1e12 ? llround(at * 1e6) : 0;

	pen__json_int(t, key, (uint64_t)(us / 1000000));
	pen__text_add(t, ".%06u", (unsigned)(us % 1000000));
}

static void put_time(struct pen_text *t, const char *key, double at)
{
	char buf[32];

	pen__json_str(t, key, pen__iso_time(at, buf));
}

static void put_mean(struct pen_text *t, const char *key,
		     const struct pen_mean *m)
{
	const bool compact = t->compact;

	pen__json_open(t, key, '{');
	t->compact = true;
	pen__json_num(t, "mean", m->mean);
	pen__json_num(t, "stdev", m->stdev);
	pen__json_close(t, '}');
	t->compact = compact;
}

/* Writes the lines of a text as an array of strings. */
static void put_lines(struct pen_text *t, const char *key,
		      const struct pen_text *lines)
{
	pen__json_open(t, key, '[');
	for (const char *s = lines->p; s && *s;) {
		const char *end = strchr(s, '\n');
		size_t n = end ? (size_t)(end - s) : strlen(s);
		char *line = pen__strndup(s, n);

		if (line)
			pen__json_str(t, NULL, line);
		t->failed |= !line;
		pen__free(line);
		s = end ? end + 1 : NULL;
	}
	pen__json_close(t, ']');
}

static void put_settings(struct pen_text *t, const struct pen_record *r,
			 const struct pen_settings *s)
{
	const bool compact = t->compact;

	if (!s)
		return;
	pen__json_str(t, "workload", s->workload ? s->workload : "");
	pen__json_str(t, "source", s->source ? s->source : "");
	put_lines(t, "overrides", &s->overrides);
	put_lines(t, "notes", &s->notes);
	pen__json_open(t, "settings", '[');
	for (size_t i = 0; i < s->n; i++) {
		pen__json_open(t, NULL, '{');
		t->compact = true;
		pen__json_str(t, "key", s->v[i].key);
		pen__json_str(t, "value", s->v[i].value ? s->v[i].value : "");
		pen__json_str(t, "origin",
			      s->v[i].origin ? s->v[i].origin : "");
		pen__json_close(t, '}');
		t->compact = compact;
	}
	pen__json_close(t, ']');
	pen__json_open(t, "config", '{');
	pen__config_json(r->c, t);
	pen__json_close(t, '}');
}

static void put_device(struct pen_text *t, const struct pen_rank_host *h)
{
	if (!h->disk_name[0])
		return;
	pen__json_open(t, "device", '{');
	pen__json_str(t, "name", h->disk_name);
	if (h->disk.known) {
		pen__json_str(t, "model", h->disk.model);
		pen__json_int(t, "size_bytes", h->disk.size_bytes);
		pen__json_int(t, "read_ahead_kb", h->disk.read_ahead_kb);
		pen__json_int(t, "nr_requests", h->disk.nr_requests);
		pen__json_str(t, "scheduler", h->disk.scheduler);
		pen__json_bool(t, "rotational", h->disk.rotational);
	}
	pen__json_close(t, '}');
}

static void put_hosts(struct pen_text *t, const struct pen_rank_host *all,
		      int n)
{
	pen__json_open(t, "hosts", '[');
	for (int i = 0; i < n; i++) {
		const struct pen_rank_host *h = &all[i];
		unsigned ranks = 0, naccel = 0;

		if (h->local_rank)
			continue;
		for (int k = 0; k < n; k++) {
			ranks += all[k].node == h->node;
			naccel += all[k].node == h->node ? all[k].naccel : 0;
		}
		pen__json_open(t, NULL, '{');
		pen__json_str(t, "name", h->host.name);
		pen__json_str(t, "kernel", h->host.kernel);
		pen__json_str(t, "cpu", h->host.cpu);
		pen__json_int(t, "cpus", h->host.cpus);
		pen__json_int(t, "memory_bytes", h->host.memory_bytes);
		pen__json_int(t, "ranks", ranks);
		pen__json_int(t, "accelerators", naccel);
		put_device(t, h);
		pen__json_close(t, '}');
	}
	pen__json_close(t, ']');
}

static void put_data(struct pen_text *t, const struct pen_record *r)
{
	pen__json_open(t, "data", '{');
	pen__json_int(t, "samples_train", r->nsamples_train);
	pen__json_int(t, "samples_eval", r->nsamples_eval);
	pen__json_int(t, "bytes_train", r->data_bytes_train);
	pen__json_int(t, "bytes_eval", r->data_bytes_eval);
	pen__json_int(t, "record_bytes", r->record_bytes);
	pen__json_int(t, "steps_per_epoch", r->steps_per_epoch);
	pen__json_int(t, "eval_steps", r->eval_steps);
	pen__json_num(t, "open_s", r->open_s);
	pen__json_num(t, "generate_s", r->generate_s);
	pen__json_int(t, "order_seed", r->seed);
	pen__json_int(t, "generated_files", r->generated_files);
	pen__json_int(t, "generated_bytes", r->generated_bytes);
	pen__json_int(t, "kept_files", r->kept_files);
	pen__json_close(t, '}');
	pen__json_open(t, "loader", '{');
	pen__json_str(t, "store", r->store);
	pen__json_str(t, "store_reason", r->store_reason);
	pen__json_str(t, "sampler", r->sampler);
	pen__json_int(t, "threads", r->nthreads);
	pen__json_int(t, "prefetch", r->prefetch);
	pen__json_int(t, "queue_depth", r->queue_depth);
	pen__json_close(t, '}');
}

static void put_cache(struct pen_text *t, const struct pen_record *r,
		      const struct pen_figures *f)
{
	pen__json_open(t, "page_cache", '{');
	pen__json_str(t, "state", r->cache_state);
	if (f->nepochs && f->epoch[0].cached_before >= 0)
		pen__json_num(t, "cached_before", f->epoch[0].cached_before);
	pen__json_num(t, "cached_share", f->cached_share);
	pen__json_close(t, '}');
}

static const struct {
	const char *key;
	enum pen_fact fact;
} stages[] = {
	{ "plan_ns", PEN_PLAN_S },
	{ "open_ns", PEN_OPEN_S },
	{ "read_ns", PEN_READ_S },
	{ "unpack_ns", PEN_UNPACK_S },
	{ "decode_ns", PEN_DECODE_S },
	{ "emit_ns", PEN_COPY_S },
	{ "preprocess_ns", PEN_PREPROCESS_S },
	{ "idle_ns", PEN_IDLE_S },
};

static uint64_t to_ns(double s)
{
	return s > 0 ? (uint64_t)(s * 1e9 + 0.5) : 0;
}

static void put_totals(struct pen_text *t, const struct pen_record *r,
		       const struct pen_figures *f)
{
	pen__json_open(t, "totals", '{');
	put_mean(t, "au", &f->au_all);
	pen__json_num(t, "au_wanted", 100 * r->c->au);
	pen__json_bool(t, "au_met", f->au_met);
	put_mean(t, "samples_per_s", &f->throughput_all);
	put_mean(t, "dlio_samples_per_s", &f->dlio_throughput_all);
	put_mean(t, "payload_mib_per_s", &f->io_all);
	put_mean(t, "record_mib_per_s", &f->record_io_all);
	put_mean(t, "dlio_mib_per_s", &f->dlio_io_all);
	pen__json_num(t, "read_mib_per_s",
		      f->train_s > 0 ? (double)f->read_bytes / MIB / f->train_s
				     : 0);
	pen__json_int(t, "samples", f->samples);
	pen__json_int(t, "payload_bytes", f->payload_bytes);
	pen__json_int(t, "read_bytes", f->read_bytes);
	pen__json_int(t, "reads", f->nreads);
	pen__json_int(t, "device_read_bytes", f->device_read_bytes);
	pen__json_num(t, "train_s", f->train_s);
	pen__json_num(t, "cpu_s", f->cpu_s);
	pen__json_num(t, "first_batch_s", f->first_batch_s);
	pen__json_num(t, "accelerator_load_s", f->load_s_sum);
	pen__json_num(t, "accelerator_compute_s", f->compute_s_sum);
	pen__json_num(t, "accelerator_slack_s", f->slack_s_sum);
	pen__json_close(t, '}');
	pen__json_open(t, "stages", '{');
	for (size_t i = 0; i < sizeof(stages) / sizeof(stages[0]); i++)
		pen__json_int(t, stages[i].key,
			      to_ns(f->facts.v[stages[i].fact]));
	pen__json_close(t, '}');
}

static void put_epochs(struct pen_text *t, const struct pen_figures *f)
{
	pen__json_open(t, "epochs", '[');
	for (size_t i = 0; i < f->nepochs; i++) {
		const struct pen_epoch_figures *e = &f->epoch[i];

		pen__json_open(t, NULL, '{');
		pen__json_int(t, "epoch", i + 1);
		pen__json_num(t, "au", f->au[i]);
		pen__json_num(t, "samples_per_s", f->throughput[i]);
		pen__json_num(t, "dlio_samples_per_s", f->dlio_throughput[i]);
		pen__json_num(t, "payload_mib_per_s", f->io_rate[i]);
		pen__json_num(t, "dlio_mib_per_s", f->dlio_io_rate[i]);
		pen__json_int(t, "steps", e->steps);
		pen__json_int(t, "samples", e->samples);
		pen__json_num(t, "seconds", e->seconds);
		pen__json_int(t, "payload_bytes", e->payload_bytes);
		pen__json_int(t, "read_bytes", e->read_bytes);
		pen__json_int(t, "reads", e->nreads);
		pen__json_int(t, "device_read_bytes", e->device_read_bytes);
		pen__json_num(t, "cached_share", e->cached_share);
		if (e->cached_before >= 0)
			pen__json_num(t, "cached_before", e->cached_before);
		pen__json_num(t, "first_batch_s", e->first_batch_s);
		pen__json_num(t, "cpu_s", e->cpu_s);
		pen__json_close(t, '}');
	}
	pen__json_close(t, ']');
	pen__json_open(t, "evaluations", '[');
	for (size_t i = 0; i < f->nevals; i++) {
		pen__json_open(t, NULL, '{');
		pen__json_num(t, "au", f->eval_au[i]);
		pen__json_num(t, "samples_per_s", f->eval_throughput[i]);
		pen__json_close(t, '}');
	}
	pen__json_close(t, ']');
}

static void put_ckpts(struct pen_text *t, const char *key,
		      const struct pen_ckpt_figures *k, size_t n)
{
	const double gib = 1024 * MIB;

	pen__json_open(t, key, '[');
	for (size_t i = 0; i < n; i++) {
		pen__json_open(t, NULL, '{');
		pen__json_int(t, "epoch", k[i].epoch);
		pen__json_int(t, "number", k[i].block);
		put_time(t, "start", k[i].start);
		pen__json_num(t, "seconds", k[i].seconds);
		pen__json_num(t, "dlio_seconds", k[i].dlio_seconds);
		pen__json_int(t, "bytes", k[i].bytes);
		pen__json_num(t, "gib_per_s",
			      k[i].seconds > 0
				      ? (double)k[i].bytes / gib / k[i].seconds
				      : 0);
		pen__json_bool(t, "verified", k[i].verified);
		pen__json_close(t, '}');
	}
	pen__json_close(t, ']');
}

static void put_checkpoints(struct pen_text *t, const struct pen_record *r,
			    const struct pen_figures *f)
{
	pen__json_open(t, "checkpoints", '{');
	pen__json_int(t, "bytes", r->checkpoint_bytes);
	pen__json_num(t, "dlio_bytes", r->dlio_checkpoint_bytes);
	put_mean(t, "save_s", &f->save_time);
	put_mean(t, "save_gib_per_s", &f->save_rate);
	put_mean(t, "dlio_save_s", &f->dlio_save_time);
	put_mean(t, "dlio_save_gib_per_s", &f->dlio_save_rate);
	put_mean(t, "load_s", &f->load_time);
	put_mean(t, "load_gib_per_s", &f->load_rate);
	put_mean(t, "dlio_load_s", &f->dlio_load_time);
	put_mean(t, "dlio_load_gib_per_s", &f->dlio_load_rate);
	put_ckpts(t, "saves", f->save, f->nsaves);
	put_ckpts(t, "loads", f->load, f->nloads);
	pen__json_close(t, '}');
}

/* The text is a JSON object: its members are copied. */
static void put_watch(struct pen_text *t, const struct pen_text *watch)
{
	const char *s = watch ? watch->p : NULL;
	size_t n = watch ? watch->n : 0;

	if (!s || watch->failed)
		return;
	while (n && strchr(" \n{", s[0])) {
		s++;
		n--;
	}
	while (n && strchr(" \n", s[n - 1]))
		n--;
	if (n && watch->p[0] == '{' && !watch->depth)
		n--;
	if (!n)
		return;
	pen__json_open(t, "watch", '{');
	pen__text_put(t, "\n", 1);
	pen__text_put(t, s, n);
	t->first = false;
	pen__json_close(t, '}');
}

static void put_head(struct pen_text *t, const struct pen_record *r,
		     const struct pen_figures *f)
{
	struct pen_text words = { 0 };

	pen__json_str(t, "schema", "penstock.result/1");
	pen__json_str(t, "version", pen_version());
	put_time(t, "start", r->start);
	put_time(t, "end", r->end);
	put_unix(t, "start_unix", r->start);
	put_unix(t, "end_unix", r->end);
	pen__json_bool(t, "partial", r->partial);
	pen__summary(r, f, &words);
	pen__json_str(t, "verdict", words.p ? words.p : "");
	t->failed |= words.failed;
	pen__text_fini(&words);
	if (f->samples)
		pen__verdict_json(t, &f->why, &f->facts);
	pen__json_int(t, "accelerators", r->world);
	pen__json_int(t, "processes", (uint64_t)r->comm->size);
}

/* Data gathered from all ranks. */
struct joined {
	struct pen_rank_host *hosts;
	struct pen_rank_figures *ranks;
	struct pen_run_series series;
};

static int join(struct joined *j, const struct pen_record *r,
		struct pen_err *err)
{
	int rc = pen__hosts_gather(r, &j->hosts, err);

	if (!rc)
		rc = pen__ranks_gather(r, &j->ranks, err);
	if (!rc)
		rc = pen__series(&j->series, r, err);
	return rc;
}

int pen__output_result(const struct pen_record *r, const struct pen_figures *f,
		       const struct pen_settings *s,
		       const struct pen_text *watch, const char *path,
		       struct pen_err *err)
{
	struct joined j = { 0 };
	struct pen_text t = { 0 };
	int rc = join(&j, r, err);

	if (!rc && !r->comm->rank) {
		pen__json_open(&t, NULL, '{');
		put_head(&t, r, f);
		put_totals(&t, r, f);
		put_epochs(&t, f);
		put_checkpoints(&t, r, f);
		put_cache(&t, r, f);
		put_data(&t, r);
		put_hosts(&t, j.hosts, r->comm->size);
		pen__ranks_json(&t, j.ranks, r->comm->size);
		pen__json_open(&t, "histograms", '{');
		pen__hist_json(&t, "wait", &f->wait);
		pen__hist_json(&t, "step", &f->step);
		pen__json_close(&t, '}');
		pen__series_json(&t, &j.series);
		put_watch(&t, watch);
		put_settings(&t, r, s);
		pen__json_close(&t, '}');
		rc = pen__text_save(&t, path, err);
		pen__text_fini(&t);
	}
	pen__free(j.hosts);
	pen__free(j.ranks);
	pen__series_fini(&j.series);
	return pen__comm_agree(r->comm, rc, err);
}
