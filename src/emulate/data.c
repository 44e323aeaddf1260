/*
 * Finds the files of a workload and opens a loader on them.
 *
 * The emulated accelerators of a process share one loader and take its batches
 * in turn, so that together they read every sample once.
 */
#include "emulate/data.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/page_cache.h"
#include "base/show.h"
#include "base/team.h"
#include "emulate/draw.h"
#include "make/maker.h"

/* Lists all files of a split, sorted by path; once for several runs that share
 * r->opened. */
static int list_split(struct pen_run *r, enum pen_split split,
		      struct pen_there **out, char dir[4096],
		      struct pen_err *err)
{
	struct pen_opened *o = r->opened;
	struct pen_data_layout lay;
	int rc = pen__layout_init(&lay, r->c, err);

	if (rc)
		return rc;
	pen__layout_dir(&lay, split, dir, 4096);
	pen__layout_fini(&lay);
	*out = o ? o->there[split] : NULL;
	if (!*out)
		rc = pen__there_list(out, dir, r->c->dataset.format, err);
	if (!rc && o)
		o->there[split] = *out;
	return rc;
}

static void done_list(const struct pen_run *r, struct pen_there *t)
{
	if (!r->opened)
		pen__there_free(t);
}

static int by_name(const void *a, const void *b, void *set)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
	int d = strcmp(pen__there_name(set, x), pen__there_name(set, y));

	return d ? d : (x > y) - (x < y);
}

/* Adds the first n files, ordered by name. */
static int add_first(struct pen_spec *spec, const struct pen_there *set,
		     uint64_t n, struct pen_err *err)
{
	const uint64_t all = pen__there_n(set);
	uint64_t *order = pen__alloc(all, sizeof(*order));
	char path[4096];
	int rc = 0;

	if (!order)
		return pen__fail_nomem(err, "file list", all * sizeof(*order));
	for (uint64_t i = 0; i < all; i++)
		order[i] = i;
	qsort_r(order, all, sizeof(*order), by_name, (void *)(uintptr_t)set);
	for (uint64_t i = 0; !rc && i < n; i++)
		if (pen__there_path(set, order[i], path, sizeof(path)))
			rc = pen_spec_add_path(spec, path, err);
	pen__free(order);
	return rc;
}

static int add_files(struct pen_run *r, struct pen_spec *spec,
		     enum pen_split split, struct pen_err *err)
{
	const struct pen_config *c = r->c;
	bool train = split == PEN_TRAIN;
	uint64_t want = train ? c->dataset.num_files_train
			      : c->dataset.num_files_eval;
	struct pen_there *set = NULL;
	uint64_t n = 0;
	char dir[4096];
	int rc = list_split(r, split, &set, dir, err);

	if (!rc)
		n = pen__there_n(set);
	if (!rc && n < want)
		rc = pen__fail(err, P_MISSING_DATA, dir,
			       "Not enough %s dataset is found: %llu %s files "
			       "of %llu; generate them with "
			       "++workload.workflow.generate_data=True",
			       train ? "training" : "evaluation",
			       (unsigned long long)n, c->dataset.format,
			       (unsigned long long)want);
	if (!rc && n > want)
		pen__log_warn(&r->log,
			      "Number of files for %s in %s (%llu) is more "
			      "than requested (%llu). A subset of files will "
			      "be used",
			      train ? "training" : "evaluation", dir,
			      (unsigned long long)n, (unsigned long long)want);
	if (!rc)
		rc = n > want ? add_first(spec, set, want, err)
			      : pen_spec_add_path(spec, dir, err);
	done_list(r, set);
	return rc;
}

/* Emulates preprocessing: the worker is busy for this long with each sample. */
static void preprocess(void *arg, uint32_t worker, uint32_t n)
{
	struct pen_data *d = arg;
	double s = 0;
	struct timespec t;

	for (uint32_t i = 0; i < n; i++)
		s += pen__time_draw(&d->preprocess, &d->rng[worker]);
	t.tv_sec = (time_t)s;
	t.tv_nsec = (long)((s - floor(s)) * 1e9);
	while (nanosleep(&t, &t) && errno == EINTR)
		;
}

static int hook_up(struct pen_data *d, const struct pen_run *r,
		   struct pen_spec *s, struct pen_err *err)
{
	const uint64_t given = pen_spec_number(s, "threads");
	const uint64_t n = given ? given : pen__cpus();

	d->preprocess = r->c->reader.preprocess_time;
	if (pen__time_mean(&d->preprocess) <= 0)
		return 0;
	d->rng = pen__alloc(n, sizeof(*d->rng));
	if (!d->rng)
		return pen__fail_nomem(err, "workers", n * sizeof(*d->rng));
	for (uint64_t i = 0; i < n; i++)
		d->rng[i] = pen__rng(r->seed, 0x70726570 + i);
	pen_spec_on_rows(s, preprocess, d);
	return 0;
}

int pen__fail_no_step(const char *where, uint64_t samples, uint64_t batch,
		      unsigned world, struct pen_err *err)
{
	if (world == 1)
		return pen__fail(err, P_TOO_FEW_SAMPLES, where,
				 "only %s, less than a batch of %s; use "
				 "more files or a smaller batch",
				 pen__show_counted(samples, "sample").s,
				 pen__show_grouped(batch).s);
	return pen__fail(err, P_TOO_FEW_SAMPLES, where,
			 "only %s, less than a batch of %s for each of %u "
			 "accelerators; use more files, a smaller batch or "
			 "fewer accelerators",
			 pen__show_counted(samples, "sample").s,
			 pen__show_grouped(batch).s, world);
}

int pen__fail_few_steps(const struct pen_config *c, uint64_t steps,
			struct pen_err *err)
{
	return pen__fail(err, P_TOO_FEW_SAMPLES, "train.total_training_steps",
			 "Only have enough data for %s but %lld wanted",
			 pen__show_counted(steps, "step").s,
			 (long long)c->train.total_training_steps);
}

/* Not enough data for one step is an error, but DLIO treats it as success: the
 * dlio_benchmark command only warns. */
static int no_step(const struct pen_data *d, struct pen_run *r,
		   enum pen_split split, struct pen_err *err)
{
	struct pen_err why = { 0 };

	pen__fail_no_step(split == PEN_TRAIN ? "dataset" : "evaluation data",
			  d->nsamples, d->batch, r->rec.world, &why);
	if (r->set->lenient) {
		pen__log_warn(&r->log, "0 steps will be run: %s: %s", why.where,
			      why.msg);
		return 0;
	}
	if (err)
		*err = why;
	return why.code;
}

/* Steps per epoch: the number that every accelerator can run. */
static int count_steps(struct pen_data *d, struct pen_run *r,
		       enum pen_split split, struct pen_err *err)
{
	int64_t want = split == PEN_TRAIN ? r->c->train.total_training_steps
					  : -1;
	struct pen_loader_info info;

	pen_loader_get_info(d->l, &info, sizeof(info));
	d->batch = info.batch_samples;
	d->nsamples = pen_dataset_nsamples(pen_loader_dataset(d->l));
	d->nbytes = pen_dataset_nbytes(pen_loader_dataset(d->l));
	d->steps = pen_loader_nbatches(d->l) / r->rec.naccel;
	if (!d->steps)
		return no_step(d, r, split, err);
	if (want > 0 && (uint64_t)want > d->steps)
		return pen__fail_few_steps(r->c, d->steps, err);
	return 0;
}

/* Creates a spec with the files of a split: listed, or as found by an earlier
 * run. */
static int open_spec(struct pen_spec **s, struct pen_run *r,
		     enum pen_split split, struct pen_err *err)
{
	struct pen_opened *o = r->opened;
	int rc;

	if (o && o->files[split])
		return pen_spec_copy(s, o->files[split], err);
	rc = pen_spec_new(s, err);
	if (rc)
		return rc;
	if (!pen__is_synthetic(r->c))
		rc = add_files(r, *s, split, err);
	if (!rc && o) {
		rc = pen_kept_index_new(&o->kept[split], err);
		pen_spec_keep_index(*s, o->kept[split]);
		if (!rc)
			rc = pen_spec_copy(&o->files[split], *s, err);
	}
	if (rc)
		pen_spec_free(*s);
	return rc;
}

void pen__opened_fini(struct pen_opened *o)
{
	for (unsigned i = 0; i < 2; i++) {
		pen_spec_free(o->files[i]);
		pen_kept_index_free(o->kept[i]);
		pen__there_free(o->there[i]);
	}
	*o = (struct pen_opened){ 0 };
}

int pen__data_check(const struct pen_run *r, struct pen_err *err)
{
	struct pen_spec *s;
	int rc = pen_spec_new(&s, err);

	if (rc)
		return rc;
	rc = pen__reader_spec(s, r, PEN_TRAIN, r->c->train.epochs, err);
	if (!rc) {
		rc = pen_spec_check(s, err);
		if (rc)
			pen__reader_err(err);
	}
	pen_spec_free(s);
	return rc;
}

int pen__data_open(struct pen_data *d, struct pen_run *r, enum pen_split split,
		   uint64_t epochs, struct pen_err *err)
{
	struct pen_spec *s;
	char group[24];
	int rc;

	*d = (struct pen_data){ 0 };
	rc = open_spec(&s, r, split, err);
	if (rc)
		return rc;
	if (r->stop)
		pen_spec_on_stop(s, r->stop, NULL);
	rc = pen__reader_spec(s, r, split, epochs, err);
	if (!rc)
		rc = hook_up(d, r, s, err);
	snprintf(group, sizeof(group), "%u", r->rec.naccel);
	if (!rc)
		rc = pen_spec_set(s, "batch_group", group, err);
	if (!rc) {
		rc = pen_loader_open(&d->l, s, err);
		if (rc)
			pen__reader_err(err);
	}
	if (!rc)
		rc = count_steps(d, r, split, err);
	pen_spec_free(s);
	if (rc)
		pen__data_close(d);
	return rc;
}

void pen__data_close(struct pen_data *d)
{
	pen_loader_close(d->l);
	pen__free(d->rng);
	*d = (struct pen_data){ 0 };
}

static int drop_all(struct pen_run *r, char *how, size_t cap,
		    struct pen_err *err)
{
	int fd, sys = 0;

	snprintf(how, cap, "whole page cache dropped before every epoch");
	if (r->comm->local_rank)
		return 0;
	sync(); /* dirty pages are not dropped */
	fd = open("/proc/sys/vm/drop_caches", O_WRONLY | O_CLOEXEC);
	if (fd < 0 || write(fd, "1\n", 2) != 2)
		sys = errno;
	if (fd >= 0)
		close(fd);
	if (!sys)
		return 0;
	return pen__fail_sys(err, sys, "reader.page_cache",
			     "drop_all needs root; use drop, which drops only "
			     "the files of the data set");
}

static int drop_files(struct pen_run *r, const struct pen_there *set,
		      struct pen_err *err)
{
	const uint64_t n = pen__there_n(set);
	char path[4096];
	int rc = 0;

	for (uint64_t i = (uint64_t)r->comm->local_rank; !rc && i < n;
	     i += (uint64_t)r->comm->local_size) {
		const struct pen_progress p = {
			.what = "dropping files from the page cache",
			.done = i,
			.total = n,
			.unit = "files"
		};

		if (pen__there_path(set, i, path, sizeof(path)))
			pen__page_cache_drop(path);
		rc = pen__run_tick(r, &p, err);
	}
	return rc;
}

static int drop_split(struct pen_run *r, enum pen_split split,
		      struct pen_err *err)
{
	struct pen_there *set = NULL;
	char dir[4096];
	int rc = list_split(r, split, &set, dir, err);

	if (!rc)
		rc = drop_files(r, set, err);
	done_list(r, set);
	return rc;
}

int pen__data_drop_cache(struct pen_run *r, char *how, size_t cap,
			 struct pen_err *err)
{
	int rc;

	if (r->c->reader.page_cache == PEN_CACHE_DROP_ALL)
		return drop_all(r, how, cap, err);
	snprintf(how, cap,
		 "data set dropped from the page cache before every "
		 "epoch");
	rc = drop_split(r, PEN_TRAIN, err);
	if (!rc && r->c->workflow.evaluation)
		rc = drop_split(r, PEN_VALID, err);
	return rc;
}
