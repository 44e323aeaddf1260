/*
 * The output files of DLIO, in its layout, for programs that read them:
 * {rank}_output.json and {rank}_per_epoch_stats.json, where a rank is an
 * accelerator, and summary.json. Where the formula of DLIO is wrong, its key
 * has the correct figure and the key with `dlio_` has that of DLIO
 * (docs/method.md). Sizes are those of DLIO: train_io_* counts records as
 * configured, checkpoint_size_GB the tensors that DLIO counts; train_read_* and
 * checkpoint_written_GB are the bytes actually moved.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "emulate/output.h"

#define GIB (1024.0 * 1024.0 * 1024.0)

int pen__hosts_gather(const struct pen_record *r, struct pen_rank_host **all,
		      struct pen_err *err)
{
	const struct pen_comm *comm = r->comm;
	struct pen_rank_host *mine = pen__calloc(1, sizeof(*mine));
	size_t *len = pen__calloc((size_t)comm->size, sizeof(*len));
	void *got = NULL;
	int rc = 0;

	*all = NULL;
	if (!mine || !len)
		rc = pen__fail_nomem(err, "hosts", sizeof(*mine));
	rc = pen__comm_agree(r->comm, rc, err);
	if (rc)
		goto done;
	pen__host(&mine->host);
	pen__disk_about(r->device, &mine->disk);
	snprintf(mine->disk_name, sizeof(mine->disk_name), "%s", r->device);
	mine->rank = comm->rank;
	mine->node = comm->node;
	mine->local_rank = comm->local_rank;
	mine->naccel = r->naccel;
	rc = pen__comm_gather(r->comm, mine, sizeof(*mine), &got, len, err);
	rc = pen__comm_agree(r->comm, rc, err); /* only rank 0 may fail */
	if (rc)
		pen__free(got);
	else
		*all = got;
done:
	pen__free(len);
	pen__free(mine);
	return rc;
}

/* Bytes that `accels` accelerators read per epoch, as DLIO counts them. */
static double data_of(const struct pen_record *r, double accels)
{
	const struct pen_config *c = r->c;
	const double samples = (double)c->dataset.num_files_train *
			       (double)c->dataset.num_samples_per_file;

	return floor(accels * samples / (r->world ? r->world : 1)) *
	       (double)r->record_bytes;
}

/* Bytes that the accelerators of a host read per epoch. */
static double data_of_host(const struct pen_record *r,
			   const struct pen_rank_host *all, int node)
{
	double accels = 0;

	for (int i = 0; i < r->comm->size; i++)
		if (all[i].node == node)
			accels += all[i].naccel;
	return data_of(r, accels);
}

static void put_proc(struct pen_text *t, const char *key, const char *path)
{
	char *text = pen__proc_read(path);

	if (text) {
		pen__json_open(t, key, '{');
		pen__proc_json(t, text);
		pen__json_close(t, '}');
	}
	pen__free(text);
}

static void put_time(struct pen_text *t, const char *key, double at)
{
	char buf[32];

	pen__json_str(t, key, pen__iso_time(at, buf));
}

static unsigned last_epoch(const struct pen_record *r)
{
	unsigned last = 0;

	for (size_t i = 0; i < r->nepochs; i++)
		if (r->epoch[i].epoch > last)
			last = r->epoch[i].epoch;
	for (size_t i = 0; i < r->nphases; i++)
		if (r->phase[i].epoch > last)
			last = r->phase[i].epoch;
	return last;
}

/* Finds start and end of an epoch from its mark, or else from its phases. */
static bool find_epoch(const struct pen_record *r, unsigned epoch,
		       struct pen_epoch_mark *m)
{
	bool found = false;

	*m = (struct pen_epoch_mark){ .epoch = epoch };
	for (size_t i = 0; i < r->nepochs; i++)
		if (r->epoch[i].epoch == epoch) {
			*m = r->epoch[i];
			found = true;
		}
	for (size_t i = 0; i < r->nphases; i++) {
		const struct pen_phase *p = &r->phase[i];

		if (p->epoch != epoch)
			continue;
		if (!(m->start > 0) || p->start < m->start)
			m->start = p->start;
		if (!(m->end > 0) || p->end > m->end)
			m->end = p->end;
		found = true;
	}
	return found;
}

/* "block1", "eval", "save_ckpt1", "load_ckpt1" */
static const char *phase_key(const struct pen_phase *p, char buf[32])
{
	static const char *const name[] = { "block", "eval", "save_ckpt",
					    "load_ckpt" };

	if (p->kind == PEN_PHASE_EVAL)
		return "eval";
	snprintf(buf, 32, "%s%u", name[p->kind], p->block);
	return buf;
}

/* --- {rank}_output.json --- */

enum list { LOAD, PROC, THROUGHPUT, AU, COMPUTE, DLIO_THROUGHPUT, NLISTS };

static void put_steps(struct pen_text *t, const char *key,
		      const struct pen_step_times *s, enum list what)
{
	pen__json_open(t, key, '[');
	t->compact = true;
	for (size_t i = 0; i < s->n; i++) {
		double load = (double)s->load[i],
		       compute = (double)s->compute[i];

		pen__json_num(t, NULL,
			      what == LOAD   ? load
			      : what == PROC ? load + compute
					     : compute);
	}
	pen__json_close(t, ']');
	t->compact = false;
}

static void put_phase(struct pen_text *t, const struct pen_record *r,
		      const struct pen_phase *p, unsigned a, enum list what)
{
	struct pen_block_figures f;
	char buf[32];
	const char *key = phase_key(p, buf);

	if (what == LOAD || what == PROC || what == COMPUTE) {
		put_steps(t, key, &p->of[a], what);
		return;
	}
	pen__block_figures(r->c, p, a, &f);
	pen__json_num(t, key,
		      what == AU	   ? f.au
		      : what == THROUGHPUT ? f.throughput
					   : f.dlio_throughput);
}

static void put_epoch(struct pen_text *t, const struct pen_record *r,
		      const struct pen_epoch_mark *m, unsigned a)
{
	static const char *const name[NLISTS] = {
		"load", "proc", "throughput", "au", "compute", "dlio_throughput"
	};
	char key[16];

	snprintf(key, sizeof(key), "%u", m->epoch);
	pen__json_open(t, key, '{');
	put_time(t, "start", m->start);
	for (enum list l = 0; l < NLISTS; l++) {
		pen__json_open(t, name[l], '{');
		for (size_t i = 0; i < r->nphases; i++)
			if (r->phase[i].epoch == m->epoch && r->phase[i].of)
				put_phase(t, r, &r->phase[i], a, l);
		pen__json_close(t, '}');
	}
	if (m->meminfo) {
		pen__json_open(t, "host_meminfo", '{');
		pen__proc_json(t, m->meminfo);
		pen__json_close(t, '}');
	}
	put_time(t, "end", m->end);
	pen__json_close(t, '}');
}

static void output_json(struct pen_text *t, const struct pen_record *r,
			const struct pen_host *h, unsigned a)
{
	const unsigned last = last_epoch(r);
	struct pen_epoch_mark m;

	pen__json_open(t, NULL, '{');
	pen__json_num(t, "host_memory_GB", (double)h->memory_bytes / GIB);
	pen__json_int(t, "host_cpu_count", h->cpus);
	pen__json_str(t, "host_processor_name", h->cpu);
	pen__json_int(t, "potential_caching",
		      data_of(r, (double)r->naccel * r->comm->local_size) <=
			      (double)h->memory_bytes);
	put_proc(t, "host_cpuinfo", "/proc/cpuinfo");
	put_proc(t, "host_meminfo", "/proc/meminfo");
	for (unsigned e = 1; e <= last; e++)
		if (find_epoch(r, e, &m))
			put_epoch(t, r, &m, a);
	pen__json_str(t, "hostname", h->name);
	pen__json_close(t, '}');
}

/* --- {rank}_per_epoch_stats.json --- */

static void put_duration(struct pen_text *t, double s)
{
	char buf[32];

	snprintf(buf, sizeof(buf), "%.2f", s);
	pen__json_str(t, "duration", buf);
}

/* GiB/s */
static double per(double bytes, double seconds)
{
	return seconds > 0 ? bytes / GIB / seconds : 0;
}

static void put_stats(struct pen_text *t, const struct pen_record *r,
		      const struct pen_phase *p)
{
	const bool steps = p->of != NULL;
	char buf[32];

	pen__json_open(t, phase_key(p, buf), '{');
	put_time(t, "start", p->start);
	put_time(t, "end", p->end);
	if (steps) {
		put_duration(t, p->seconds);
	} else {
		pen__json_num(t, "duration", p->seconds);
		pen__json_num(t, "throughput",
			      per((double)r->checkpoint_bytes, p->seconds));
		pen__json_num(t, "dlio_throughput",
			      per(r->dlio_checkpoint_bytes, p->seconds));
	}
	pen__json_close(t, '}');
}

static void stats_json(struct pen_text *t, const struct pen_record *r)
{
	const unsigned last = last_epoch(r);
	struct pen_epoch_mark m;
	char key[16];

	pen__json_open(t, NULL, '{');
	for (unsigned e = 1; e <= last; e++) {
		if (!find_epoch(r, e, &m))
			continue;
		snprintf(key, sizeof(key), "%u", e);
		pen__json_open(t, key, '{');
		put_time(t, "start", m.start);
		for (size_t i = 0; i < r->nphases; i++)
			if (r->phase[i].epoch == e)
				put_stats(t, r, &r->phase[i]);
		put_time(t, "end", m.end);
		put_duration(t, m.end > m.start ? m.end - m.start : 0);
		pen__json_close(t, '}');
	}
	pen__json_close(t, '}');
}

/* --- summary.json --- */

static void put_list(struct pen_text *t, const char *key, const double *v,
		     size_t n)
{
	pen__json_open(t, key, '[');
	for (size_t i = 0; i < n; i++)
		pen__json_num(t, NULL, v[i]);
	pen__json_close(t, ']');
}

static void put_mean(struct pen_text *t, const char *before, const char *after,
		     const struct pen_mean *m)
{
	char key[128];

	snprintf(key, sizeof(key), "%s_mean_%s", before, after);
	pen__json_num(t, key, m->mean);
	snprintf(key, sizeof(key), "%s_stdev_%s", before, after);
	pen__json_num(t, key, m->stdev);
}

static void put_training(struct pen_text *t, const struct pen_figures *f)
{
	const char *rate = "samples_per_second", *io = "MB_per_second";

	put_list(t, "train_au_percentage", f->au, f->nepochs);
	put_mean(t, "train_au", "percentage", &f->au_all);
	pen__json_str(t, "train_au_meet_expectation",
		      f->au_met ? "success" : "fail");
	put_list(t, "train_throughput_samples_per_second", f->throughput,
		 f->nepochs);
	put_mean(t, "train_throughput", rate, &f->throughput_all);
	put_mean(t, "train_io", io, &f->record_io_all);
	put_mean(t, "train_read", io, &f->read_io_all);
	put_mean(t, "train_delivered", io, &f->io_all);
	put_list(t, "dlio_train_throughput_samples_per_second",
		 f->dlio_throughput, f->nepochs);
	put_mean(t, "dlio_train_throughput", rate, &f->dlio_throughput_all);
	put_mean(t, "dlio_train_io", io, &f->dlio_io_all);
}

static void put_eval(struct pen_text *t, const struct pen_figures *f)
{
	const char *rate = "samples_per_second", *io = "MB_per_second";

	put_list(t, "eval_au_percentage", f->eval_au, f->nevals);
	put_mean(t, "eval_au", "percentage", &f->eval_au_all);
	pen__json_str(t, "eval_au_meet_expectation",
		      f->eval_au_met ? "success" : "fail");
	put_list(t, "eval_throughput_samples_per_second", f->eval_throughput,
		 f->nevals);
	put_mean(t, "eval_throughput", rate, &f->eval_throughput_all);
	put_mean(t, "eval_io", io, &f->eval_record_io_all);
	put_mean(t, "eval_read", io, &f->eval_read_io_all);
	put_mean(t, "eval_delivered", io, &f->eval_io_all);
}

static void put_checkpoints(struct pen_text *t, const struct pen_record *r,
			    const struct pen_figures *f)
{
	const char *rate = "GB_per_second", *time = "seconds";

	if (f->nsaves) {
		put_mean(t, "save_checkpoint_io", rate, &f->save_rate);
		put_mean(t, "save_checkpoint_duration", time, &f->save_time);
		put_mean(t, "dlio_save_checkpoint_io", rate,
			 &f->dlio_save_rate);
		put_mean(t, "dlio_save_checkpoint_duration", time,
			 &f->dlio_save_time);
	}
	if (f->nloads) {
		put_mean(t, "load_checkpoint_io", rate, &f->load_rate);
		put_mean(t, "load_checkpoint_duration", time, &f->load_time);
		put_mean(t, "dlio_load_checkpoint_io", rate,
			 &f->dlio_load_rate);
		put_mean(t, "dlio_load_checkpoint_duration", time,
			 &f->dlio_load_time);
	}
	pen__json_num(t, "checkpoint_size_GB", r->dlio_checkpoint_bytes / GIB);
	pen__json_num(t, "checkpoint_written_GB",
		      (double)r->checkpoint_bytes / GIB);
}

/* One value per host, ordered by node. */
static void put_hosts(struct pen_text *t, const char *key,
		      const struct pen_record *r,
		      const struct pen_rank_host *all)
{
	pen__json_open(t, key, '[');
	for (int node = 0; node < r->comm->nnodes; node++) {
		const struct pen_host *h = NULL;

		for (int i = 0; i < r->comm->size && !h; i++)
			if (all[i].node == node && !all[i].local_rank)
				h = &all[i].host;
		if (!h)
			continue;
		if (!strcmp(key, "host_memory_GB"))
			pen__json_num(t, NULL, (double)h->memory_bytes / GIB);
		else if (!strcmp(key, "host_cpu_count"))
			pen__json_int(t, NULL, h->cpus);
		else
			pen__json_int(t, NULL,
				      (double)h->memory_bytes >
					      data_of_host(r, all, node));
	}
	pen__json_close(t, ']');
}

static void summary_json(struct pen_text *t, const struct pen_record *r,
			 const struct pen_figures *f,
			 const struct pen_rank_host *all)
{
	const struct pen_config *c = r->c;

	pen__json_open(t, NULL, '{');
	put_time(t, "start", r->start);
	pen__json_int(t, "num_accelerators", r->world);
	pen__json_int(t, "num_hosts", (uint64_t)r->comm->nnodes);
	pen__json_str(t, "hostname", all[0].host.name);
	pen__json_open(t, "metric", '{');
	if (f->nsaves || f->nloads)
		put_checkpoints(t, r, f);
	if (c->workflow.train)
		put_training(t, f);
	if (c->workflow.evaluation)
		put_eval(t, f);
	pen__json_close(t, '}');
	pen__json_int(t, "num_files_train", c->dataset.num_files_train);
	pen__json_int(t, "num_files_eval", c->dataset.num_files_eval);
	pen__json_int(t, "num_samples_per_file",
		      c->dataset.num_samples_per_file);
	put_hosts(t, "host_cpu_count", r, all);
	pen__json_str(t, "host_processor_name", all[0].host.cpu);
	put_hosts(t, "potential_caching", r, all);
	put_proc(t, "host_cpuinfo", "/proc/cpuinfo");
	put_proc(t, "host_meminfo", "/proc/meminfo");
	put_hosts(t, "host_memory_GB", r, all);
	pen__json_num(t, "data_size_per_host_GB",
		      data_of_host(r, all, all[0].node) / GIB);
	pen__json_int(t, "epochs", f->nepochs);
	put_time(t, "end", r->end);
	pen__json_close(t, '}');
}

/* --- all files --- */

static int save_accels(const struct pen_record *r, const char *dir,
		       struct pen_err *err)
{
	struct pen_host h;
	char name[64];
	int rc = 0;

	pen__host(&h);
	for (unsigned a = 0; a < r->naccel && !rc; a++) {
		struct pen_text t = { 0 };

		output_json(&t, r, &h, a);
		snprintf(name, sizeof(name), "%u_output.json", r->first + a);
		rc = pen__text_save_in(&t, dir, name, true, err);
		if (rc)
			break;
		stats_json(&t, r);
		snprintf(name, sizeof(name), "%u_per_epoch_stats.json",
			 r->first + a);
		rc = pen__text_save_in(&t, dir, name, true, err);
	}
	return rc;
}

int pen__output_dlio(const struct pen_record *r, const struct pen_figures *f,
		     const char *dir, struct pen_err *err)
{
	struct pen_rank_host *all;
	struct pen_text t = { 0 };
	int rc = pen__hosts_gather(r, &all, err);

	if (rc)
		return rc;
	rc = save_accels(r, dir, err);
	if (!rc && !r->comm->rank) {
		summary_json(&t, r, f, all);
		rc = pen__text_save_in(&t, dir, "summary.json", true, err);
	}
	pen__free(all);
	return pen__comm_agree(r->comm, rc, err);
}
