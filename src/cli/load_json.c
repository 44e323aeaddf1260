/* load: the result as JSON; see docs/result.md. */
#include "base/team.h"
#include "cli/load.h"
#include "quality/quality.h"

static const double percentiles[] = { 50, 90, 99, 99.9, 100 };
static const char *const percentile_names[] = { "p50", "p90", "p99", "p99_9",
						"max" };

static void json_data(struct pen_text *j, const struct run *r)
{
	const struct pen_dataset *ds = pen_loader_dataset(r->l);

	pen__json_open(j, "data", '{');
	pen__json_str(j, "path", pen_spec_path(pen_dataset_spec(ds), 0));
	pen__json_str(j, "format", pen_dataset_format(ds));
	pen__json_int(j, "objects", pen_dataset_nobjects(ds));
	pen__json_int(j, "samples", pen_dataset_nsamples(ds));
	pen__json_int(j, "bytes", pen_dataset_nbytes(ds));
	pen__json_open(j, "fields", '[');
	for (uint32_t i = 0; i < pen_dataset_nfields(ds); i++) {
		const struct pen_field *f = pen_dataset_field(ds, i);

		pen__json_open(j, NULL, '{');
		json_field(j, f);
		pen__json_close(j, '}');
	}
	pen__json_close(j, ']');
	pen__json_num(j, "page_cache_share", r->data.cached);
	pen__json_close(j, '}');
}

double load_unevenness(const struct run *r)
{
	const uint64_t p50 = pen_loader_wait_percentile(r->l, 50);

	return p50 ? (double)pen_loader_wait_percentile(r->l, 99) / (double)p50
		   : 0;
}

static void json_times(struct pen_text *j, const struct run *r,
		       const struct pen_stats *s)
{
	pen__json_open(j, "wait_ns", '{');
	for (size_t i = 0; i < 5; i++)
		pen__json_int(j, percentile_names[i],
			      pen_loader_wait_percentile(r->l, percentiles[i]));
	pen__json_close(j, '}');
	pen__json_num(j, "wait_p99_over_p50", load_unevenness(r));
	pen__json_num(j, "wait_slowest_tenth",
		      pen_loader_wait_slowest(r->l, 10));
	pen__json_open(j, "stage_ns", '{');
	pen__json_int(j, "plan", s->plan_ns);
	pen__json_int(j, "open", s->file_open_ns);
	pen__json_int(j, "read", s->read_ns);
	pen__json_int(j, "unpack", s->unpack_ns);
	pen__json_int(j, "decode", s->decode_ns);
	pen__json_int(j, "emit", s->emit_ns);
	pen__json_int(j, "idle", s->idle_ns);
	pen__json_int(j, "consumer_wait", s->wait_ns);
	pen__json_close(j, '}');
	pen__verdict_json(j, &r->why, &r->facts);
	pen__json_open(j, "epochs", '[');
	for (size_t i = 0; i < r->nepochs; i++) {
		pen__json_open(j, NULL, '{');
		pen__json_num(j, "seconds", r->epoch[i].seconds);
		pen__json_num(j, "cpu_s", r->epoch[i].cpu_s);
		pen__json_int(j, "samples", r->epoch[i].samples);
		pen__json_int(j, "payload_bytes", r->epoch[i].bytes);
		pen__json_close(j, '}');
	}
	pen__json_close(j, ']');
}

static void json_quality(struct pen_text *j, const struct run *r)
{
	struct pen_quality_result q;

	if (!r->q)
		return;
	pen__quality_result(r->q, &q);
	pen__quality_json(j, "quality", &q);
}

static void json_errors(struct pen_text *j, const struct run *r)
{
	struct pen_err e;
	uint64_t id;

	pen__json_open(j, "errors", '[');
	for (uint64_t i = 0; !pen_loader_skipped(r->l, i, &id, &e); i++) {
		pen__json_open(j, NULL, '{');
		pen__json_int(j, "sample", id);
		pen__json_str(j, "object", e.where);
		json_code(j, e.number);
		pen__json_str(j, "error", e.msg);
		pen__json_close(j, '}');
	}
	pen__json_close(j, ']');
}

static void json_warning(void *arg, const struct pen_err *e)
{
	struct pen_text *j = arg;

	pen__json_open(j, NULL, '{');
	pen__json_str(j, "object", e->where);
	json_code(j, e->number);
	pen__json_str(j, "warning", e->msg);
	pen__json_bool(j, "damaged", e->code != PEN_OK);
	pen__json_close(j, '}');
}

double per_second(double n, double s)
{
	return s > 0 ? n / s : 0;
}

int load_json(const char *path, const struct run *r)
{
	const struct pen_spec *spec =
		pen_dataset_spec(pen_loader_dataset(r->l));
	struct pen_text j = { 0 };
	const struct pen_stats s = r->stats;

	pen__json_open(&j, NULL, '{');
	pen__json_str(&j, "schema", "penstock.load/1");
	pen__json_str(&j, "version", pen_version());
	pen__json_bool(&j, "partial", r->partial);
	if (r->partial)
		pen__json_str(&j, "phase", "loading");
	json_data(&j, r);
	pen__json_str(&j, "store", r->data.source);
	pen__json_str(&j, "store_reason", r->data.store_reason);
	pen__json_str(&j, "sampler", r->info.sampler);
	pen__json_int(&j, "seed", pen_spec_number(spec, "seed"));
	pen__json_int(&j, "batch_size",
		      r->info.pack ? r->info.pack_rows : r->info.batch_samples);
	if (r->info.pack)
		pen__json_int(&j, "pack", r->info.pack);
	else if (r->info.batch_tokens)
		pen__json_int(&j, "batch_tokens", r->info.batch_tokens);
	pen__json_int(&j, "ranks", r->comm ? (uint64_t)r->comm->size : 1);
	pen__json_int(&j, "padding", r->info.padding);
	pen__json_int(&j, "threads", s.nthreads);
	pen__json_int(&j, "prefetch", s.prefetch);
	pen__json_int(&j, "queue_depth", s.queue_depth);
	pen__json_int(&j, "samples", s.nsamples);
	pen__json_int(&j, "batches", s.nbatches);
	pen__json_num(&j, "seconds", r->seconds);
	pen__json_num(&j, "samples_per_s",
		      per_second((double)s.nsamples, r->seconds));
	pen__json_int(&j, "payload_bytes", s.payload_bytes);
	pen__json_num(&j, "payload_bytes_per_s",
		      per_second((double)s.payload_bytes, r->seconds));
	pen__json_int(&j, "read_bytes", s.read_bytes);
	pen__json_num(&j, "read_bytes_per_s",
		      per_second((double)s.read_bytes, r->seconds));
	pen__json_int(&j, "nreads", s.nreads);
	pen__json_num(&j, "open_s", (double)s.open_ns / 1e9);
	pen__json_num(&j, "first_batch_s", (double)s.first_batch_ns / 1e9);
	pen__json_num(&j, "cpu_s", r->cpu_s);
	pen__json_num(&j, "cpu_s_per_gb",
		      s.payload_bytes ? r->cpu_s * 1e9 / (double)s.payload_bytes
				      : 0);
	pen__json_int(&j, "peak_memory_bytes", pen__memory_peak());
	pen__json_int(&j, "buffer_peak_bytes", s.memory_peak_bytes);
	pen__json_int(&j, "memory_budget_bytes", s.memory_budget_bytes);
	pen__json_num(&j, "ready_batches_mean", s.ready_mean);
	pen__json_int(&j, "skipped", s.nskipped);
	pen__json_int(&j, "substituted", s.nsubstituted);
	if (r->checksum)
		pen__json_int(&j, "checksum", r->sum);
	load_cache_json(&j, r);
	json_times(&j, r, &s);
	json_quality(&j, r);
	json_errors(&j, r);
	pen__json_open(&j, "warnings", '[');
	pen_dataset_warnings(pen_loader_dataset(r->l), &j, json_warning);
	pen__json_close(&j, ']');
	pen__json_close(&j, '}');
	return text_out(&j, path);
}

int load_json_unopened(const char *path, const struct pen_spec *spec,
		       double open_s)
{
	struct pen_text j = { 0 };

	pen__json_open(&j, NULL, '{');
	pen__json_str(&j, "schema", "penstock.load/1");
	pen__json_str(&j, "version", pen_version());
	pen__json_bool(&j, "partial", true);
	pen__json_str(&j, "phase", "indexing");
	pen__json_open(&j, "data", '{');
	pen__json_str(&j, "path", pen_spec_path(spec, 0));
	pen__json_close(&j, '}');
	pen__json_int(&j, "samples", 0);
	pen__json_int(&j, "batches", 0);
	pen__json_num(&j, "seconds", 0);
	pen__json_num(&j, "samples_per_s", 0);
	pen__json_int(&j, "payload_bytes", 0);
	pen__json_num(&j, "payload_bytes_per_s", 0);
	pen__json_num(&j, "open_s", open_s);
	pen__json_int(&j, "peak_memory_bytes", pen__memory_peak());
	pen__json_open(&j, "epochs", '[');
	pen__json_close(&j, ']');
	pen__json_open(&j, "errors", '[');
	pen__json_close(&j, ']');
	pen__json_close(&j, '}');
	return text_out(&j, path);
}
