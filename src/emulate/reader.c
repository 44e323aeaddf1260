/*
 * Translates the reader keys to loader settings. Settings of the form loader.X
 * are applied last and win.
 */
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/team.h"
#include "emulate/data.h"

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

/* The shape of a sample passed to the model; false: unchanged. */
static bool is_cut(const struct pen_config *c, char *shape, size_t cap)
{
	const struct pen_opt_list *dims = &c->reader.transformed_dims;
	int64_t side[2];

	if (dims->n) {
		shape_to(shape, cap, dims->v, dims->n);
		return true;
	}
	if (c->dataset.record_length_resize < 1)
		return false;
	side[0] = side[1] = (int64_t)sqrt(c->dataset.record_length_resize);
	shape_to(shape, cap, side, 2);
	return true;
}

static int put_take(struct pen_spec *s, const struct pen_config *c,
		    struct pen_err *err)
{
	char shape[600];
	int rc;

	if (!c->reader.decode || !is_cut(c, shape, sizeof(shape)))
		return 0;
	rc = put(s, err, "take", "%s", shape);
	if (!rc && c->reader.transformed_dims.n && c->reader.transformed_type)
		rc = put(s, err, "cast", "%s", c->reader.transformed_type);
	return rc;
}

/* Synthetic samples are generated in the shape passed to the model. */
static int put_synthetic(struct pen_spec *s, const struct pen_config *c,
			 const char *whole, struct pen_err *err)
{
	char shape[600];
	int rc;

	rc = put(s, err, "format.shape", "%s",
		 is_cut(c, shape, sizeof(shape)) ? shape : whole);
	return rc ? rc
		  : put(s, err, "format.samples", "%llu",
			(unsigned long long)c->dataset.num_samples_per_file);
}

/* Format options that cannot be derived from the files. */
static int put_format(struct pen_spec *s, const struct pen_config *c,
		      struct pen_err *err)
{
	const char *f = pen__is_synthetic(c) ? "synthetic" : c->dataset.format;
	bool many = c->dataset.num_samples_per_file > 1;
	const char *made = c->reader.transformed_type;
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
	if (!rc && !strcmp(f, "csv") && lay.sides)
		rc = put(s, err, "format.ragged", "true");
	if (!rc && !strcmp(f, "synthetic")) {
		if (!c->reader.transformed_dims.n || !made)
			made = pen_dtype_name(lay.dtype);
		rc = put(s, err, "format.dtype", "%s", made);
		if (!rc)
			rc = put_synthetic(s, c, shape, err);
	} else if (!rc) {
		rc = put_take(s, c, err);
	}
	pen__layout_fini(&lay);
	return rc;
}

/* Reads instead of mapping: as requested, or because mapped pages would stay in
 * the page cache when they should be dropped. Uses many reads in flight where
 * the kernel permits it. */
static int put_reads(struct pen_spec *s, bool direct, struct pen_err *err)
{
	int rc = put(s, err, "store", "%s",
		     pen_store_usable("uring") ? "uring" : "posix");

	return rc || !direct ? rc : put(s, err, "store.direct", "true");
}

static int put_store(struct pen_spec *s, const struct pen_config *c,
		     struct pen_err *err)
{
	if (pen__is_synthetic(c))
		return 0;
	if (c->reader.odirect)
		return put_reads(s, true, err);
	if (c->reader.read_type == PEN_READ_MEMORY)
		return put(s, err, "store", "ram");
	if (c->reader.page_cache != PEN_CACHE_KEEP || c->reader.dont_use_mmap)
		return put_reads(s, false, err);
	return 0;
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
	/* files in random order, each read sequentially */
	rc = put(s, err, "sampler", "block");
	if (!rc)
		rc = put(s, err, "sampler.chunk", "%llu",
			 (unsigned long long)spf);
	if (!rc)
		rc = put(s, err, "sampler.chunks", "1");
	return rc ? rc : put(s, err, "sampler.mix", "false");
}

/* The total of all accelerators of a process. Waiting threads cost little, so
 * either all requested threads are started, or none. */
static int times_accelerators(uint64_t each, uint64_t naccel, const char *key,
			      uint64_t *out, struct pen_err *err)
{
	*out = each * naccel;
	if (*out <= PEN_MOST_THREADS)
		return 0;
	return pen__fail(
		err, P_OVER_BUDGET, key,
		"%llu for each of %llu accelerators exceeds the limit of %u "
		"per process; lower it or use more processes (mpirun)",
		(unsigned long long)each, (unsigned long long)naccel,
		PEN_MOST_THREADS);
}

static int put_sizes(struct pen_spec *s, const struct pen_run *r,
		     enum pen_split split, uint64_t epochs, struct pen_err *err)
{
	const struct pen_config *c = r->c;
	uint64_t n = r->rec.naccel, batch = split == PEN_TRAIN
						    ? c->reader.batch_size
						    : c->reader.batch_size_eval;
	uint64_t threads = c->reader.read_threads > 0
				   ? (uint64_t)c->reader.read_threads
				   : 1;
	uint64_t ahead = c->reader.prefetch_size > 0
				 ? (uint64_t)c->reader.prefetch_size
				 : 1;
	int rc;

	if (ahead < threads)
		ahead = threads; /* each worker fills a batch, as in PyTorch */
	rc = times_accelerators(threads, n, "reader.read_threads", &threads,
				err);
	if (!rc)
		rc = times_accelerators(ahead, n, "reader.prefetch_size",
					&ahead, err);
	if (!rc)
		rc = put(s, err, "batch_size", "%llu",
			 (unsigned long long)batch);
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

/* DLIO pins memory by default, which has no effect without a GPU: memory is
 * locked only if pin_memory is set explicitly. */
static bool pins(const struct pen_run *r)
{
	for (size_t i = 0; i < r->set->n; i++)
		if (!strcmp(r->set->v[i].key, "reader.pin_memory"))
			return r->c->reader.pin_memory;
	return false;
}

/* Applies loader.X=Y. Settings that the figures depend on are rejected. */
static int put_own(struct pen_spec *s, const struct pen_opts_kv *kv,
		   struct pen_err *err)
{
	static const char *const ours[][2] = {
		{ "format", "dataset.format" },
		{ "shuffle", "reader.sample_shuffle" },
		{ "batch_size", "reader.batch_size" },
		{ "batch_tokens", "reader.batch_size" },
		{ "pack", "reader.batch_size" },
		{ "epochs", "train.epochs" },
		{ "epoch_batches", "train.total_training_steps" },
		{ "decode", "reader.decode" },
		{ "rank", "mpirun" },
		{ "world", "mpirun" },
		{ "tail", "dataset.num_files_train" },
		{ "drop_last", "dataset.num_files_train" },
	};
	char where[64];

	for (size_t i = 0; i < sizeof(ours) / sizeof(ours[0]); i++)
		if (!strcmp(kv->key, ours[i][0])) {
			snprintf(where, sizeof(where), "loader.%s", kv->key);
			return pen__fail(
				err, P_CONFLICT, where,
				"cannot be set for a training job; use %s",
				ours[i][1]);
		}
	return pen_spec_set(s, kv->key, kv->value, err);
}

static int put_rest(struct pen_spec *s, const struct pen_run *r,
		    struct pen_err *err)
{
	const struct pen_config *c = r->c;
	int rc = pins(r) ? put(s, err, "mlock", "true") : 0;

	if (!rc && !c->reader.decode)
		rc = put(s, err, "decode", "false");
	if (!rc)
		rc = put_store(s, c, err);
	for (size_t i = 0; !rc && i < c->loader.n; i++)
		rc = put_own(s, &c->loader.kv[i], err);
	return rc;
}

/* ---- errors ---- */

/* The workload key of a loader setting; NULL: not a setting. */
static const char *key_of(const char *name, size_t n, char *buf, size_t cap)
{
	static const char *const keys[][2] = {
		{ "batch_size", "reader.batch_size" },
		{ "threads", "reader.read_threads" },
		{ "prefetch", "reader.prefetch_size" },
		{ "read_size", "reader.transfer_size" },
	};
	static const char *const parts[] = { "store.", "format.", "sampler.",
					     "cache.", "decode." };
	struct pen_option o;
	bool known = false;

	snprintf(buf, cap, "loader.%.*s", (int)n, name);
	name = buf + strlen("loader.");
	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
		if (!strcmp(name, keys[i][0]))
			return keys[i][1];
	for (uint32_t i = 0;
	     !known && !pen_option_at("loader", NULL, i, &o, sizeof(o)); i++)
		known = !strcmp(name, o.name);
	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++)
		known = known || !strncmp(name, parts[i], strlen(parts[i]));
	return known ? buf : NULL;
}

void pen__reader_err(struct pen_err *err)
{
	static const char letters[] = "abcdefghijklmnopqrstuvwxyz_.0123456789";
	char msg[sizeof(err->msg)], key[160];
	const char *as =
		key_of(err->where, strlen(err->where), key, sizeof(key));
	size_t at = 0, n;

	if (as && strlen(as) < sizeof(err->where))
		memcpy(err->where, as, strlen(as) + 1);
	memcpy(msg, err->msg, sizeof(msg));
	for (const char *p = msg; *p && at < sizeof(err->msg); p += n) {
		n = strspn(p, letters);
		as = n && (p[n] == '=' || p[n] == '\'')
			     ? key_of(p, n, key, sizeof(key))
			     : NULL;
		n += !n;
		at += (size_t)snprintf(err->msg + at, sizeof(err->msg) - at,
				       "%.*s", as ? (int)strlen(as) : (int)n,
				       as ? as : p);
	}
}

/* Synthetic samples: opens no files. */
static int put_no_files(struct pen_spec *s, uint64_t n, struct pen_err *err)
{
	int rc = pen_spec_add_path(s, "synthetic", err);

	if (!rc)
		rc = put(s, err, "store", "null");
	if (!rc)
		rc = put(s, err, "store.objects", "%llu",
			 (unsigned long long)n);
	return rc ? rc : put(s, err, "store.size", "1");
}

int pen__reader_spec(struct pen_spec *s, const struct pen_run *r,
		     enum pen_split split, uint64_t epochs, struct pen_err *err)
{
	const struct pen_config *c = r->c;
	int rc = 0;

	if (pen__is_synthetic(c))
		rc = put_no_files(s,
				  split == PEN_TRAIN
					  ? c->dataset.num_files_train
					  : c->dataset.num_files_eval,
				  err);
	if (!rc)
		rc = put_format(s, c, err);
	if (!rc)
		rc = put_order(s, r, err);
	if (!rc)
		rc = put_sizes(s, r, split, epochs, err);
	return rc ? rc : put_rest(s, r, err);
}
