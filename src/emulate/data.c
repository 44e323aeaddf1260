/*
 * Finding a workload's files and opening a loader on them. The reader's keys
 * become settings of the loader; what is given as loader.X comes last and wins.
 *
 * The emulated accelerators of a process share one loader and take its batches
 * in turn, so that all of them together read every sample once.
 */
#include "emulate/data.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdarg.h>
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

/* More threads than this per CPU only get in each other's way. */
#define THREADS_PER_CPU 8

static bool wanted(void *ops, const char *name)
{
	return pen__format_takes(ops, name);
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

static int put(struct pen_spec *s, struct pen_err *err, const char *key,
	       const char *fmt, ...) __attribute__((format(printf, 4, 5)));
static int put(struct pen_spec *s, struct pen_err *err, const char *key,
	       const char *fmt, ...)
{
	char value[1024];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(value, sizeof(value), fmt, ap);
	va_end(ap);
	return pen_spec_set(s, key, value, err);
}

static void shape_to(char *buf, size_t cap, const int64_t *v, size_t n)
{
	size_t at = 0;

	buf[0] = '\0';
	for (size_t i = 0; i < n && at < cap; i++)
		at += (size_t)snprintf(buf + at, cap - at, "%s%lld",
				       i ? "x" : "", (long long)v[i]);
}

/* What a format has to be told, because its files do not say it. */
static int put_format(struct pen_spec *s, const struct pen_config *c,
		      struct pen_err *err)
{
	const char *f = c->dataset.format;
	bool many = c->dataset.num_samples_per_file > 1;
	struct pen_data_layout lay;
	char shape[600];
	int rc = pen__layout_init(&lay, c, err);

	if (rc)
		return rc;
	shape_to(shape, sizeof(shape), lay.dims, lay.ndim);
	rc = put(s, err, "format", "%s", f);
	if (!rc && (!strcmp(f, "npy") || !strcmp(f, "npz")))
		rc = put(s, err, "format.samples", "%s",
			 many ? "last" : "file");
	if (!rc && strstr(f, "indexed_binary")) {
		rc = put(s, err, "format.dtype", "%s",
			 pen_dtype_name(lay.dtype));
		if (!rc && c->dataset.record_dims.n)
			rc = put(s, err, "format.shape", "%s", shape);
	}
	if (!rc && !strcmp(f, "csv"))
		rc = put(s, err, "format.dtype", "%s",
			 lay.dtype == PEN_F16 ? "float32"
					      : pen_dtype_name(lay.dtype));
	if (!rc && !strcmp(f, "synthetic")) {
		rc = put(s, err, "format.dtype", "%s",
			 pen_dtype_name(lay.dtype));
		if (!rc)
			rc = put(s, err, "format.shape", "%s", shape);
		if (!rc)
			rc = put(s, err, "format.samples", "%llu",
				 (unsigned long long)
					 c->dataset.num_samples_per_file);
	}
	pen__layout_fini(&lay);
	return rc;
}

/* The sample as the model gets it, when that is not all of it. */
static int put_take(struct pen_spec *s, const struct pen_config *c,
		    struct pen_err *err)
{
	const struct pen_opt_list *dims = &c->reader.transformed_dims;
	char shape[600];
	int64_t side;
	int rc;

	if (dims->n) {
		shape_to(shape, sizeof(shape), dims->v, dims->n);
		rc = put(s, err, "take", "%s", shape);
		if (!rc && c->reader.transformed_type)
			rc = put(s, err, "cast", "%s",
				 c->reader.transformed_type);
		return rc;
	}
	if (c->dataset.record_length_resize < 1)
		return 0;
	side = (int64_t)sqrt(c->dataset.record_length_resize);
	return put(s, err, "take", "%lldx%lld", (long long)side,
		   (long long)side);
}

/* Past the page cache: with many reads in flight where the kernel lets us. */
static int put_direct(struct pen_spec *s, struct pen_err *err)
{
	int rc = put(s, err, "store", "%s",
		     pen__store_uring_works() ? "uring" : "posix");

	return rc ? rc : put(s, err, "store.direct", "true");
}

static int put_order(struct pen_spec *s, const struct pen_run *r,
		     struct pen_err *err)
{
	const struct pen_config *c = r->c;
	uint64_t spf = c->dataset.num_samples_per_file;
	int rc = put(s, err, "seed", "%llu", (unsigned long long)r->seed);

	if (!rc)
		rc = put(s, err, "reshuffle", "%s",
			 c->train.seed_change_epoch ? "true" : "false");
	if (rc)
		return rc;
	if (c->reader.sample_shuffle)
		return put(s, err, "sampler", "shuffle");
	if (!c->reader.file_shuffle)
		return put(s, err, "sampler", "sequential");
	if (spf < 2)
		return put(s, err, "sampler", "shuffle");
	/* files in random order, each read from its beginning to its end */
	rc = put(s, err, "sampler", "block");
	if (!rc)
		rc = put(s, err, "sampler.chunk", "%llu",
			 (unsigned long long)spf);
	if (!rc)
		rc = put(s, err, "sampler.chunks", "1");
	return rc ? rc : put(s, err, "sampler.mix", "false");
}

static int put_sizes(struct pen_spec *s, const struct pen_run *r,
		     enum pen_split split, uint64_t epochs, struct pen_err *err)
{
	const struct pen_config *c = r->c;
	uint64_t n = r->rec.naccel, most = (uint64_t)pen__cpus();
	uint64_t threads = c->reader.read_threads > 0
				   ? (uint64_t)c->reader.read_threads
				   : 1;
	uint64_t ahead = c->reader.prefetch_size > 0
				 ? (uint64_t)c->reader.prefetch_size
				 : 1;
	int rc;

	if (ahead < threads)
		ahead = threads; /* a worker holds a batch, as with PyTorch */
	most *= THREADS_PER_CPU;
	threads = threads * n < most ? threads * n : most;
	ahead = ahead * n < 4096 ? ahead * n : 4096;
	rc = put(s, err, "batch_size", "%llu",
		 (unsigned long long)(split == PEN_TRAIN
					      ? c->reader.batch_size
					      : c->reader.batch_size_eval));
	if (!rc)
		rc = put(s, err, "epochs", "%llu", (unsigned long long)epochs);
	if (!rc)
		rc = put(s, err, "threads", "%llu",
			 (unsigned long long)threads);
	if (!rc)
		rc = put(s, err, "prefetch", "%llu", (unsigned long long)ahead);
	if (!rc)
		rc = put(s, err, "memory", "%llu",
			 (unsigned long long)(pen__memory_available() / 2 /
					      (uint64_t)r->comm->local_size));
	if (!rc && split == PEN_TRAIN && c->train.total_training_steps > 0)
		rc = put(s, err, "epoch_batches", "%llu",
			 (unsigned long long)c->train.total_training_steps * n);
	if (!rc && c->reader.transfer_size)
		rc = put(s, err, "read_size", "%llu",
			 (unsigned long long)c->reader.transfer_size);
	if (!rc)
		rc = put(s, err, "rank", "%d", r->comm->rank);
	if (!rc)
		rc = put(s, err, "world", "%d", r->comm->size);
	return rc ? rc : put(s, err, "tail", "drop");
}

static int put_rest(struct pen_spec *s, const struct pen_config *c,
		    struct pen_err *err)
{
	int rc = 0;

	if (!c->reader.decode)
		rc = put(s, err, "decode", "false");
	if (!rc && c->reader.odirect)
		rc = put_direct(s, err);
	else if (!rc && c->reader.read_type == PEN_READ_MEMORY)
		rc = put(s, err, "store", "ram");
	for (size_t i = 0; !rc && i < c->loader.n; i++)
		rc = pen_spec_set(s, c->loader.kv[i].key, c->loader.kv[i].value,
				  err);
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

/* Steps of an epoch: what all accelerators can take alike. */
static int count_steps(struct pen_data *d, const struct pen_run *r,
		       enum pen_split split, struct pen_err *err)
{
	int64_t want = split == PEN_TRAIN ? r->c->train.total_training_steps
					  : -1;

	d->nsamples = pen_dataset_nsamples(d->l->ds);
	d->nbytes = pen_dataset_nbytes(d->l->ds);
	d->steps = pen_loader_nbatches(d->l) / r->rec.naccel;
	if (!d->steps)
		return pen__fail(err, PEN_EINVAL,
				 split == PEN_TRAIN ? "dataset"
						    : "evaluation data",
				 "%llu samples are fewer than a batch of %u "
				 "for each of %u accelerators: more files, a "
				 "smaller batch or fewer accelerators",
				 (unsigned long long)d->nsamples, d->l->batch,
				 r->rec.world);
	if (want > 0 && (uint64_t)want > d->steps)
		return pen__fail(err, PEN_EINVAL, "train.total_training_steps",
				 "Only have enough data for %llu steps but "
				 "%lld wanted",
				 (unsigned long long)d->steps, (long long)want);
	return 0;
}

static int make_spec(struct pen_spec *s, struct pen_run *r,
		     enum pen_split split, uint64_t epochs, struct pen_err *err)
{
	int rc = add_files(r, s, split, err);

	if (!rc)
		rc = put_format(s, r->c, err);
	if (!rc)
		rc = put_take(s, r->c, err);
	if (!rc)
		rc = put_order(s, r, err);
	if (!rc)
		rc = put_sizes(s, r, split, epochs, err);
	return rc ? rc : put_rest(s, r->c, err);
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
	rc = make_spec(s, r, split, epochs, err);
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

int pen__data_drop_cache(struct pen_run *r, enum pen_split split, char *how,
			 size_t cap, struct pen_err *err)
{
	struct pen_objects set = { 0 };
	char dir[4096], path[4096];
	int rc;

	if (r->c->reader.page_cache == PEN_CACHE_DROP_ALL)
		return drop_all(r, how, cap, err);
	snprintf(how, cap,
		 "data set dropped from the page cache before every "
		 "epoch");
	rc = list_split(r->c, split, &set, dir, err);
	for (uint64_t i = (uint64_t)r->comm->local_rank; !rc && i < set.nobj;
	     i += (uint64_t)r->comm->local_size) {
		int fd;

		if (!pen__object_path(&set, (uint32_t)i, path, sizeof(path)))
			continue;
		fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
		if (fd < 0)
			continue;
		(void)!fdatasync(fd);
		(void)!posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
		close(fd);
	}
	pen__objects_fini(&set);
	return rc;
}
