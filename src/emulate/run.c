/*
 * A run from start to end: the phases in order, on every rank, and the output.
 * Ranks agree on any failure, so that all of them end with the same message.
 */
#include "emulate/run.h"

#include <dirent.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/rng.h"
#include "base/team.h"
#include "emulate/data.h"
#include "emulate/draw.h"
#include "emulate/generate.h"
#include "emulate/layout.h"

double pen__unix_time(void)
{
	return (double)pen__clock_ns_of(CLOCK_REALTIME) / 1e9;
}

int pen__run_tick(struct pen_run *r, const struct pen_progress *p,
		  struct pen_err *err)
{
	if (!r->tick || !r->tick(r->arg, p))
		return 0;
	r->rec.partial = true;
	return pen__fail(err, P_INTERRUPTED, "run", "interrupted");
}

int pen__run_agree(struct pen_run *r, int rc, struct pen_err *err)
{
	if (r->ending)
		return rc;
	rc = pen__comm_agree(r->comm, rc, err);
	r->ending = rc != 0;
	return rc;
}

/* Rank 0 chooses the directory, since its name contains the time. */
static int choose_dir(struct pen_run *r, struct pen_err *err)
{
	const struct pen_config *c = r->c;
	const char *given = c->output.folder;
	time_t now = time(NULL);
	struct tm tm;
	char when[32];
	int rc = 0;

	/* the default of Hydra applies only if hydra.run.dir is set */
	for (size_t i = 0; !given && i < r->set->n; i++)
		if (!strcmp(r->set->v[i].key, "hydra.run.dir"))
			given = c->run_dir;
	if (given) {
		snprintf(r->dir, sizeof(r->dir), "%s", given);
	} else {
		localtime_r(&now, &tm);
		strftime(when, sizeof(when), "%Y-%m-%d-%H-%M-%S", &tm);
		snprintf(r->dir, sizeof(r->dir), "%s/%s/%s", r->base_dir,
			 c->model.name ? c->model.name : "run", when);
	}
	if (r->comm->rank == 0)
		rc = pen__make_dirs(r->dir, 0777, true, err);
	rc = pen__comm_agree(r->comm, rc, err);
	if (!rc)
		rc = pen__comm_bcast(r->comm, r->dir, sizeof(r->dir), 0, err);
	return rc;
}

static int open_output(struct pen_run *r, struct pen_err *err)
{
	const struct pen_config *c = r->c;
	char path[8300];
	int rc = choose_dir(r, err);

	if (rc)
		return rc;
	r->log.quiet = r->comm->rank != 0;
	if (r->comm->rank == 0) {
		snprintf(path, sizeof(path), "%s/%s", r->dir,
			 c->output.log_file ? c->output.log_file : "dlio.log");
		rc = pen__log_open(&r->log, path, err);
		snprintf(path, sizeof(path), "%s/%s", r->dir,
			 c->output_subdir ? c->output_subdir : ".hydra");
		if (!rc)
			rc = pen__make_dirs(path, 0777, true, err);
		if (!rc)
			rc = pen__config_save_hydra(c, r->set, path, err);
	}
	return pen__comm_agree(r->comm, rc, err);
}

static void log_start(struct pen_run *r)
{
	const struct pen_config *c = r->c;
	char mode[128];

	snprintf(mode, sizeof(mode), "%s%s%s%s",
		 c->workflow.generate_data ? "Generating data & " : "",
		 c->workflow.train ? "Training & " : "",
		 c->workflow.evaluation ? "Evaluation & " : "",
		 c->workflow.checkpoint ? "Checkpointing & " : "");
	if (strlen(mode) > 3)
		mode[strlen(mode) - 3] = '\0';
	pen__log(&r->log, "Running DLIO [%s] with %u process(es)", mode,
		 r->rec.world);
	pen__log(&r->log, "Reading workload YAML config file '%s'",
		 r->set->source ? r->set->source : "built in");
}

int pen__run_mark_epoch(struct pen_run *r, unsigned epoch, struct pen_err *err)
{
	struct pen_record *c = &r->rec;
	struct pen_epoch_mark *m =
		pen__realloc(c->epoch, c->nepochs + 1, sizeof(*m));

	if (!m)
		return pen__fail_nomem(err, "epochs", sizeof(*m));
	c->epoch = m;
	m[c->nepochs++] = (struct pen_epoch_mark){ .epoch = epoch,
						   .start = pen__unix_time(),
						   .meminfo = pen__proc_read(
							   "/proc/meminfo") };
	return 0;
}

/* --- generating --- */

static int generate_tick(void *arg, const struct pen_generate *g)
{
	struct pen_run *r = arg;
	struct pen_progress p = { .what = "generating",
				  .unit = "bytes",
				  .done = atomic_load(&g->bytes_done),
				  .total = atomic_load(&g->bytes_total) };

	return pen__run_tick(r, &p, NULL);
}

static int generate(struct pen_run *r, struct pen_err *err)
{
	struct pen_generate g = {
		.c = r->c, .comm = r->comm, .tick = generate_tick, .arg = r
	};
	uint64_t t0 = pen__now_ns();
	double n[3];
	int rc;

	pen__log(&r->log, "Starting data generation");
	rc = pen__generate(&g, err);
	r->rec.generate_s = (double)(pen__now_ns() - t0) / 1e9;
	r->ending = rc != 0; /* pen__generate() is collective */
	n[0] = (double)atomic_load(&g.bytes_done);
	n[1] = (double)atomic_load(&g.files_kept);
	n[2] = (double)atomic_load(&g.files_done) - n[1];
	if (!rc) {
		rc = pen__comm_reduce(r->comm, n, 3, PEN_SUM, err);
		r->ending = rc != 0;
	}
	r->rec.generated_bytes = (uint64_t)n[0];
	r->rec.kept_files = (uint64_t)n[1];
	r->rec.generated_files = (uint64_t)n[2];
	if (!rc)
		pen__log(&r->log, "Generation done");
	return rc;
}

/* --- setting up --- */

static void start_record(struct pen_run *r)
{
	struct pen_record *c = &r->rec;
	struct pen_data_layout lay;

	*c = (struct pen_record){ .c = r->c, .comm = r->comm };
	c->naccel = r->c->accelerators ? (unsigned)r->c->accelerators : 1;
	c->world = c->naccel * (unsigned)r->comm->size;
	c->first = c->naccel * (unsigned)r->comm->rank;
	c->start = pen__unix_time();
	pen__hist_init(&c->wait);
	pen__hist_init(&c->step);
	snprintf(c->cache_state, sizeof(c->cache_state),
		 "page cache left as it was");
	if (!pen__layout_init(&lay, r->c, NULL)) {
		c->record_bytes = (uint64_t)r->c->dataset.record_length;
		if (r->c->dataset.record_dims.n)
			c->record_bytes = pen__config_sample_bytes(r->c);
		pen__disk_of(lay.root, c->device, sizeof(c->device));
		pen__layout_fini(&lay);
	}
}

/* The seed of the sample order; "random" is a different one in every run, the
 * same on all ranks, and recorded in the result. */
static int settle_seed(struct pen_run *r, struct pen_err *err)
{
	const struct pen_config *c = r->c;
	int rc;

	r->seed = r->rec.seed = c->train.seed;
	if (c->reader.file_shuffle != PEN_SHUFFLE_RANDOM &&
	    c->reader.sample_shuffle != PEN_SHUFFLE_RANDOM)
		return 0;
	r->seed = pen__mix64(pen__clock_ns_of(CLOCK_REALTIME) ^
			     (uint64_t)getpid() << 40) >>
		  11;
	rc = pen__comm_bcast(r->comm, &r->seed, sizeof(r->seed), 0, err);
	r->rec.seed = r->seed;
	return rc;
}

static void log_sizes(struct pen_run *r, double model, double optimizer)
{
	const double gib = 1 << 30;
	const char *subset = r->c->checkpoint.mode == 1 ? " (subset)" : "";

	if (model > 0)
		pen__log(&r->log, "Model size: %.6f GB %s", model / gib,
			 subset);
	if (optimizer > 0 || r->c->model.optimization_groups.n)
		pen__log(&r->log, "Optimizer state size: %.6f GB %s",
			 optimizer / gib, subset);
	pen__log(&r->log, "Total checkpoint size: %.6f GB %s",
		 (model + optimizer) / gib, subset);
}

static int open_checkpoints(struct pen_run *r, struct pen_err *err)
{
	double sum[3] = { 0 }, model, optim; /* bytes; the two sizes of DLIO */
	int rc = 0;

	if (r->c->workflow.checkpoint) {
		r->ckpt = pen__calloc(r->rec.naccel, sizeof(struct pen_ckpt *));
		if (!r->ckpt)
			rc = pen__fail_nomem(err, "checkpoints", 0);
	}
	for (unsigned a = 0; !rc && r->ckpt && a < r->rec.naccel; a++) {
		rc = pen__ckpt_new(&r->ckpt[a], r->c, r->rec.first + a,
				   r->rec.world, err);
		if (rc)
			break;
		if (r->comm->nnodes > 1)
			pen__ckpt_set_node(r->ckpt[a],
					   (unsigned)r->comm->local_size *
						   r->rec.naccel);
		pen__ckpt_dlio_bytes(r->ckpt[a], &model, &optim);
		sum[0] += (double)pen__ckpt_bytes(r->ckpt[a]);
		sum[1] += model;
		sum[2] += optim;
	}
	rc = pen__run_agree(r, rc, err);
	if (!rc) {
		rc = pen__comm_reduce(r->comm, sum, 3, PEN_SUM, err);
		r->ending = rc != 0;
	}
	r->rec.checkpoint_bytes = (uint64_t)sum[0];
	sum[1] = pen__ckpt_dlio_model(r->c, sum[1]);
	r->rec.dlio_checkpoint_bytes = sum[1] + sum[2];
	if (!rc)
		log_sizes(r, sum[1], sum[2]);
	return rc;
}

/* Removes a file, its index files, and its directory if that is empty. */
static void remove_file(const char *path)
{
	static const char *const ends[] = { "", ".off.idx", ".sz.idx" };
	char name[PEN_LAYOUT_PATH + 16], *slash;

	for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++) {
		snprintf(name, sizeof(name), "%s%s", path, ends[i]);
		unlink(name);
	}
	slash = strrchr(name, '/');
	if (slash) {
		*slash = '\0';
		rmdir(name);
	}
}

/* keep_files=False: rank 0 removes all files of the layout. */
static void remove_data(const struct pen_run *r)
{
	struct pen_data_layout lay;
	char path[PEN_LAYOUT_PATH];

	if (r->c->dataset.keep_files || r->probe || r->comm->rank ||
	    pen__layout_init(&lay, r->c, NULL))
		return;
	for (uint64_t i = 0; i < lay.nfiles; i++) {
		pen__layout_path(&lay, i, path, sizeof(path));
		remove_file(path);
		pen__layout_index_path(&lay, i, path, sizeof(path));
		if (path[0])
			remove_file(path);
	}
	pen__layout_fini(&lay);
}

static int save_results(struct pen_run *r, const struct pen_text *watch,
			struct pen_err *err)
{
	char path[8300];
	int rc = pen__output_dlio(&r->rec, &r->fig, r->dir, err);

	if (!rc) {
		snprintf(path, sizeof(path), "%s/result.json", r->dir);
		rc = pen__output_result(&r->rec, &r->fig, r->set, watch, path,
					err);
	}
	if (!rc && r->c->output.trace) {
		snprintf(path, sizeof(path), "%s/trace-%d.json", r->dir,
			 r->comm->rank);
		rc = pen__output_trace(&r->rec, path, err);
	}
	return pen__comm_agree(r->comm, rc, err);
}

/* Computes figures and writes files; also after an interrupt. */
static int finish(struct pen_run *r, struct pen_watch *watch,
		  struct pen_err *err)
{
	struct pen_text samples = { 0 };
	char path[8300];
	int rc = 0;

	r->rec.peak_memory = pen__memory_peak();
	r->rec.end = pen__unix_time();
	if (watch && !r->comm->rank && !r->probe && r->c->workflow.profiling &&
	    r->c->profiling.profiler == PEN_PROFILER_IOSTAT) {
		snprintf(path, sizeof(path), "%s/iostat.json", r->dir);
		rc = pen__watch_iostat(watch, path, err);
	}
	pen__watch_stop(watch, &samples);
	rc = pen__comm_agree(r->comm, rc, err);
	if (!rc)
		rc = pen__figures(&r->fig, &r->rec, err);
	if (!rc && !r->probe)
		rc = save_results(r, &samples, err);
	pen__text_fini(&samples);
	if (!rc && !r->probe) {
		pen__log(&r->log, "Saved outputs in %s", r->dir);
		pen__log_metrics(&r->log, &r->rec, &r->fig);
	}
	return rc;
}

static int work(struct pen_run *r, struct pen_err *err)
{
	const struct pen_config *c = r->c;
	int rc = 0;

	if (c->workflow.generate_data)
		rc = generate(r, err);
	if (!rc && c->workflow.checkpoint)
		rc = open_checkpoints(r, err);
	if (!rc && c->workflow.train)
		rc = pen__run_train(r, err);
	else if (!rc && c->workflow.checkpoint)
		rc = pen__run_checkpoints(r, err);
	return rc;
}

/* The devices to profile; NULL: the device that stores the data. */
static const char *watched_disks(const struct pen_run *r)
{
	const struct pen_config *c = r->c;

	return c->workflow.profiling &&
			       c->profiling.profiler == PEN_PROFILER_IOSTAT
		       ? c->profiling.iostat_devices
		       : NULL;
}

static int check_work(const struct pen_run *r, struct pen_err *err)
{
	const struct pen_config *c = r->c;

	if (c->workflow.train || c->workflow.generate_data || r->set->lenient)
		return 0;
	if (!c->workflow.checkpoint)
		return pen__fail(err, P_NO_EFFECT, "workflow",
				 "nothing to do; set train, generate_data or "
				 "checkpoint to true");
	if (c->checkpoint.num_write > 0 || c->checkpoint.num_read > 0)
		return 0;
	return pen__fail(err, P_NO_EFFECT, "checkpoint.num_checkpoints_write",
			 "%lld leaves nothing to do without workflow.train "
			 "(num_checkpoints_read is %lld); set it above 0",
			 (long long)c->checkpoint.num_write,
			 (long long)c->checkpoint.num_read);
}

int pen__run_check(struct pen_run *r, struct pen_err *err)
{
	const struct pen_config *c = r->c;
	int rc = check_work(r, err);

	start_record(r);
	if (!rc && c->workflow.train)
		rc = pen__data_check(r, err);
	if (!rc && watched_disks(r) && !r->comm->rank)
		rc = pen__watch_check(watched_disks(r), err);
	return pen__comm_agree(r->comm, rc, err);
}

int pen__run(struct pen_run *r, struct pen_err *err)
{
	const struct pen_config *c = r->c;
	bool generate_only = !c->workflow.train && !c->workflow.checkpoint;
	struct pen_watch *watch = NULL;
	struct pen_err late = { 0 };
	int rc, end_rc;

	r->log.fd = -1;
	r->ending = false;
	rc = pen__run_check(r, err);
	if (!rc && !r->probe)
		rc = open_output(r, err);
	if (!rc)
		rc = settle_seed(r, err);
	if (rc)
		return rc;
	log_start(r);
	if (!generate_only && r->comm->local_rank == 0)
		(void)!pen__watch_start(&watch,
					watched_disks(r) ? watched_disks(r)
							 : r->rec.device,
					NULL);
	rc = pen__run_agree(r, work(r, err), err);
	/* an interrupted run has a result, marked as partial; a failed one has
	 * not */
	r->rec.partial = rc == PEN_ECLOSED;
	if (generate_only || (rc && rc != PEN_ECLOSED)) {
		struct pen_text none = { 0 };

		pen__watch_stop(watch, &none);
		pen__text_fini(&none);
		return rc;
	}
	end_rc = finish(r, watch, &late);
	if (end_rc) {
		*err = late;
		rc = end_rc;
	}
	remove_data(r);
	return rc;
}

void pen__run_fini(struct pen_run *r)
{
	for (unsigned a = 0; r->ckpt && a < r->rec.naccel; a++)
		pen__ckpt_free(r->ckpt[a]);
	pen__free(r->ckpt);
	r->ckpt = NULL;
	pen__log_close(&r->log);
	pen__figures_fini(&r->fig);
	pen__record_fini(&r->rec);
}
