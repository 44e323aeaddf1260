/*
 * Finding a workload's files and opening a loader on them.
 *
 * The emulated accelerators of a process share one loader and take its batches
 * in turn, so that all of them together read every sample once.
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
#include "base/team.h"
#include "emulate/draw.h"
#include "format/format.h"
#include "store/store.h"

static bool wanted(void *ops, const char *dir, const char *name)
{
	(void)dir;
	return name && pen__format_takes(ops, name);
}

/* All files of a split, sorted by path. */
static int list_split(const struct pen_config *c, enum pen_split split,
		      struct pen_objects *set, char dir[4096],
		      struct pen_err *err)
{
	const struct pen_format_ops *ops = pen__format_find(c->dataset.format);
	struct pen_data_layout lay;
	struct pen_store *st;
	int rc = pen__layout_init(&lay, c, err);

	if (rc)
		return rc;
	pen__layout_dir(&lay, split, dir, 4096);
	pen__layout_fini(&lay);
	if (!ops)
		return pen__fail(err, PEN_EINVAL, c->dataset.format,
				 "is not a format this build has; see "
				 "`penstock formats`");
	rc = pen__store_open(&st, "posix", NULL, 0, err);
	if (rc)
		return rc;
	if (access(dir, F_OK) == 0)
		rc = st->ops->list(st, dir, wanted, (void *)(uintptr_t)ops, set,
				   err);
	pen__store_close(st);
	if (!rc)
		pen__objects_sort(set);
	return rc;
}

static int by_name(const void *a, const void *b, void *set)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
	int d = strcmp(pen__object_name(set, x), pen__object_name(set, y));

	return d ? d : (x > y) - (x < y);
}

/* The first n files in the order of their names, one path each. */
static int add_first(struct pen_spec *spec, const struct pen_objects *set,
		     uint64_t n, struct pen_err *err)
{
	uint32_t *order = pen__alloc(set->nobj, sizeof(*order));
	char path[4096];
	int rc = 0;

	if (!order)
		return pen__fail_nomem(err, "file list", set->nobj * 4);
	for (uint32_t i = 0; i < set->nobj; i++)
		order[i] = i;
	qsort_r(order, set->nobj, sizeof(*order), by_name,
		(void *)(uintptr_t)set);
	for (uint64_t i = 0; !rc && i < n; i++)
		if (pen__object_path(set, order[i], path, sizeof(path)))
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
	struct pen_objects set = { 0 };
	char dir[4096];
	int rc = list_split(c, split, &set, dir, err);

	if (!rc && set.nobj < want)
		rc = pen__fail(
			err, PEN_ENOTFOUND, dir,
			"Not enough %s dataset is found: %llu %s files, %llu "
			"are wanted; generate them with "
			"++workload.workflow.generate_data=True",
			train ? "training" : "evaluation",
			(unsigned long long)set.nobj, c->dataset.format,
			(unsigned long long)want);
	if (!rc && set.nobj > want)
		pen__log_warn(&r->log,
			      "Number of files for %s in %s (%llu) is more "
			      "than requested (%llu). A subset of files will "
			      "be used",
			      train ? "training" : "evaluation", dir,
			      (unsigned long long)set.nobj,
			      (unsigned long long)want);
	if (!rc)
		rc = set.nobj > want ? add_first(spec, &set, want, err)
				     : pen_spec_add_path(spec, dir, err);
	pen__objects_fini(&set);
	return rc;
}

/* Preprocessing emulated: the worker is busy for so long with each sample. */
static void preprocess(void *arg, unsigned worker, uint32_t n)
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
		   const struct pen_spec *s, struct pen_hook *hook,
		   struct pen_err *err)
{
	uint64_t n = s->threads > 0 ? (uint64_t)s->threads : pen__cpus();

	d->preprocess = r->c->reader.preprocess_time;
	if (pen__time_mean(&d->preprocess) <= 0)
		return 0;
	d->rng = pen__alloc(n, sizeof(*d->rng));
	if (!d->rng)
		return pen__fail_nomem(err, "workers", n * sizeof(*d->rng));
	for (uint64_t i = 0; i < n; i++)
		d->rng[i] = pen__rng(r->seed, 0x70726570 + i);
	*hook = (struct pen_hook){ .rows = preprocess, .arg = d };
	return 0;
}

/* Not even one step: an error, but DLIO calls it a success, and who asks for
 * its ways gets a warning. */
static int no_step(const struct pen_data *d, struct pen_run *r,
		   enum pen_split split, struct pen_err *err)
{
	struct pen_err why = { 0 };

	pen__fail(&why, PEN_EINVAL,
		  split == PEN_TRAIN ? "dataset" : "evaluation data",
		  "%llu samples are fewer than a batch of %u for each of %u "
		  "accelerators: more files, a smaller batch or fewer "
		  "accelerators",
		  (unsigned long long)d->nsamples, d->l->batch, r->rec.world);
	if (r->set->lenient) {
		pen__log_warn(&r->log, "0 steps will be run: %s: %s", why.where,
			      why.msg);
		return 0;
	}
	if (err)
		*err = why;
	return why.code;
}

/* Steps of an epoch: what all accelerators can take alike. */
static int count_steps(struct pen_data *d, struct pen_run *r,
		       enum pen_split split, struct pen_err *err)
{
	int64_t want = split == PEN_TRAIN ? r->c->train.total_training_steps
					  : -1;

	d->nsamples = pen_dataset_nsamples(d->l->ds);
	d->nbytes = pen_dataset_nbytes(d->l->ds);
	d->steps = pen_loader_nbatches(d->l) / r->rec.naccel;
	if (!d->steps)
		return no_step(d, r, split, err);
	if (want > 0 && (uint64_t)want > d->steps)
		return pen__fail(err, PEN_EINVAL, "train.total_training_steps",
				 "Only have enough data for %llu steps but "
				 "%lld wanted",
				 (unsigned long long)d->steps, (long long)want);
	return 0;
}

int pen__data_open(struct pen_data *d, struct pen_run *r, enum pen_split split,
		   uint64_t epochs, struct pen_err *err)
{
	struct pen_hook hook = { NULL, NULL, 0 };
	struct pen_spec *s;
	int rc = pen_spec_new(&s, err);

	*d = (struct pen_data){ 0 };
	if (rc)
		return rc;
	s->stop = r->stop;
	if (!pen__is_synthetic(r->c))
		rc = add_files(r, s, split, err);
	if (!rc)
		rc = pen__reader_spec(s, r, split, epochs, err);
	if (!rc)
		rc = hook_up(d, r, s, &hook, err);
	hook.group = r->rec.naccel;
	if (!rc)
		rc = pen__loader_open(&d->l, s, &hook, err);
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
			     "drop_all needs root; use drop, which drops the "
			     "data set's files only");
}

static int drop_split(struct pen_run *r, enum pen_split split,
		      struct pen_err *err)
{
	struct pen_objects set = { 0 };
	char dir[4096], path[4096];
	int rc = list_split(r->c, split, &set, dir, err);

	for (uint64_t i = (uint64_t)r->comm->local_rank; !rc && i < set.nobj;
	     i += (uint64_t)r->comm->local_size) {
		const struct pen_progress p = {
			.what = "dropping files from the page cache",
			.done = i,
			.total = set.nobj,
			.unit = "files"
		};

		if (pen__object_path(&set, (uint32_t)i, path, sizeof(path)))
			pen__store_drop_cached(path);
		rc = pen__run_tick(r, &p, err);
	}
	pen__objects_fini(&set);
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
