/*
 * Validates combinations of settings, as far as that needs no knowledge of
 * ranks or files; the code that has it checks the rest. Contradictory settings
 * are rejected, and settings without effect are noted, so that nothing is
 * accepted and silently ignored. Built-in workloads are copies of those of DLIO
 * and cause no notes.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/mem.h"
#include "emulate/config_int.h"

struct check {
	struct pen_config *c;
	struct pen_settings *s;
	struct pen_err *err;
};

#define FAIL(k, kind, key, ...)                                                \
	pen__settings_fail((k)->s, kind, key, (k)->err, __VA_ARGS__)
/* The name of an enum value. */
#define CHOICE(key, value) pen__opt_find(pen__config_opts, key)->choices[value]

static bool is_format(const struct pen_config *c, const char *name)
{
	return !strcmp(c->dataset.format, name);
}

/* Replaces *to. */
static int set_text(const struct check *k, const char *key, char **to,
		    const char *text)
{
	char *copy = pen__strdup(text);

	if (!copy)
		return pen__fail_nomem(k->err, key, strlen(text));
	pen__free(*to);
	*to = copy;
	return 0;
}

/* Text with a default must not be empty: other code relies on it. */
static int check_texts(const struct check *k)
{
	for (const struct pen_opt *o = pen__config_opts; o->name; o++) {
		char **at = (char **)(void *)((char *)k->c + o->off);

		if (o->type != PEN_OPT_STR || !o->dflt || *at)
			continue;
		if (strcmp(o->name, "storage.storage_root"))
			return FAIL(k, P_BAD_VALUE, o->name,
				    "must not be empty");
		if (set_text(k, o->name, at, "./"))
			return PEN_ENOMEM;
	}
	return 0;
}

static int check_framework(const struct check *k)
{
	const int f = k->c->framework, l = k->c->reader.data_loader;

	if ((f == PEN_TENSORFLOW && l == PEN_LOADER_PYTORCH) ||
	    (f == PEN_PYTORCH && l == PEN_LOADER_TENSORFLOW))
		return FAIL(
			k, P_CONFLICT, "reader.data_loader",
			"%s does not match framework=%s; set both to the same",
			f == PEN_TENSORFLOW ? "pytorch" : "tensorflow",
			f == PEN_TENSORFLOW ? "tensorflow" : "pytorch");
	return 0;
}

static int check_storage(const struct check *k)
{
	const struct pen_config *c = k->c;
	const char *const places[][2] = {
		{ "storage.storage_root", c->storage.root },
		{ "dataset.data_folder", c->dataset.data_folder },
		{ "checkpoint.checkpoint_folder", c->checkpoint.folder },
		{ "output.folder", c->output.folder },
	};

	if (c->storage.type == PEN_STORAGE_S3 ||
	    c->storage.type == PEN_STORAGE_AISTORE)
		return FAIL(k, P_UNSUPPORTED_FEATURE, "storage.storage_type",
			    "object stores (%s) are not supported in this "
			    "version; use local_fs, parallel_fs or direct_fs",
			    CHOICE("storage.storage_type", c->storage.type));
	for (size_t i = 0; i < sizeof(places) / sizeof(*places); i++) {
		struct pen_err why = { 0 };

		if (places[i][1] && pen__check_local(places[i][1], &why))
			return FAIL(k, why.number, places[i][0], "%s: %s",
				    why.where, why.msg);
	}
	if (is_format(c, "parquet"))
		return FAIL(k, P_UNSUPPORTED_FEATURE, "dataset.format",
			    "parquet is not supported yet; use hdf5 or npz");
	return 0;
}

static int check_types(const struct check *k)
{
	const struct {
		const char *key;
		char **name;
	} types[] = {
		{ "dataset.record_element_type",
		  &k->c->dataset.record_element_type },
		{ "reader.transformed_record_element_type",
		  &k->c->reader.transformed_type },
	};
	int rc = 0;

	for (size_t i = 0; !rc && i < sizeof(types) / sizeof(types[0]); i++) {
		const enum pen_dtype t = pen__config_dtype(*types[i].name);

		if (t == PEN_NDTYPES)
			return FAIL(k, P_UNKNOWN_NAME, types[i].key,
				    "'%.40s' is not a NumPy type; use uint8, "
				    "float32, ...",
				    *types[i].name);
		rc = set_text(k, types[i].key, types[i].name,
			      pen_dtype_name(t));
	}
	return rc;
}

static int check_shape(const struct check *k, const char *key,
		       const struct pen_opt_list *dims, size_t most)
{
	double bytes = 16;

	if (dims->n > most)
		return FAIL(k, P_BAD_VALUE, key,
			    "%zu dimensions exceed the limit of %zu", dims->n,
			    most);
	for (size_t i = 0; i < dims->n; i++) {
		bytes *= (double)dims->v[i];
		if (dims->v[i] < 1)
			return FAIL(k, P_BAD_VALUE, key,
				    "a dimension is 0; use at least 1");
		if (bytes > 0x1p48)
			return FAIL(k, P_BAD_VALUE, key,
				    "the shape is too large");
	}
	return 0;
}

static int check_shapes(const struct check *k)
{
	const struct {
		const char *key;
		const struct pen_opt_list *dims;
		size_t most;
	} shapes[] = {
		{ "dataset.record_dims", &k->c->dataset.record_dims,
		  PEN_MAX_DIMS - 1 },
		{ "dataset.hdf5.chunk_dims", &k->c->dataset.hdf5_chunk_dims,
		  PEN_MAX_DIMS },
		{ "dataset.hdf5.max_shape", &k->c->dataset.hdf5_max_shape,
		  PEN_MAX_DIMS },
		{ "reader.transformed_record_dims",
		  &k->c->reader.transformed_dims, PEN_MAX_DIMS - 1 },
	};
	int rc = 0;

	for (size_t i = 0; !rc && i < sizeof(shapes) / sizeof(shapes[0]); i++)
		rc = check_shape(k, shapes[i].key, shapes[i].dims,
				 shapes[i].most);
	return rc;
}

/* Images have two dimensions and consist of bytes. */
static int check_image(const struct check *k)
{
	struct pen_config *c = k->c;

	if (!is_format(c, "jpeg") && !is_format(c, "png"))
		return 0;
	if (c->dataset.record_dims.n > 2)
		return FAIL(k, P_CONFLICT, "dataset.record_dims",
			    "%s format does not support more than 2 "
			    "dimensions, but got %zu dimensions.",
			    c->dataset.format, c->dataset.record_dims.n);
	if (!strcmp(c->dataset.record_element_type, "uint8"))
		return 0;
	pen__settings_note(k->s,
			   "dataset.record_element_type=%s is ignored: %s "
			   "files contain uint8",
			   c->dataset.record_element_type, c->dataset.format);
	return set_text(k, "dataset.record_element_type",
			&c->dataset.record_element_type, "uint8");
}

static int check_hdf5(const struct check *k)
{
	const struct pen_config *c = k->c;
	const struct pen_opt_list *dims = &c->dataset.record_dims;
	const uint64_t parts = c->dataset.hdf5_num_dset;
	/* a leading 1, after the split, is not stored */
	const bool lost = dims->n && (uint64_t)dims->v[0] == parts;
	const size_t n = dims->n ? dims->n - lost : 2;

	if (!is_format(c, "hdf5"))
		return 0;
	if (dims->n && (uint64_t)dims->v[0] % parts)
		return FAIL(k, P_CONFLICT, "dataset.hdf5.num_dset_per_record",
			    "%llu does not divide record_dims[0] = %lld",
			    (unsigned long long)parts, (long long)dims->v[0]);
	if (c->dataset.hdf5_chunk_dims.n &&
	    c->dataset.hdf5_chunk_dims.n != n + 1)
		return FAIL(k, P_CONFLICT, "dataset.hdf5.chunk_dims",
			    "has %zu numbers; specify %zu: the sample axis and "
			    "the %zu axes of a record",
			    c->dataset.hdf5_chunk_dims.n, n + 1, n);
	if (c->dataset.hdf5_max_shape.n && c->dataset.hdf5_max_shape.n != n)
		return FAIL(k, P_CONFLICT, "dataset.hdf5.max_shape",
			    "has %zu numbers, but a record has %zu dimensions",
			    c->dataset.hdf5_max_shape.n, n);
	return 0;
}

static int check_compression(const struct check *k)
{
	const struct pen_config *c = k->c;
	const int z = c->dataset.compression;
	const bool hdf5 = is_format(c, "hdf5"), npz = is_format(c, "npz");

	if (z == PEN_COMPRESS_NONE ||
	    (hdf5 && (z == PEN_COMPRESS_GZIP || z == PEN_COMPRESS_LZF)) ||
	    (npz && z == PEN_COMPRESS_ZIP))
		return 0;
	return FAIL(
		k, P_CONFLICT, "dataset.compression",
		"not available in %s files; %s", c->dataset.format,
		hdf5  ? "use gzip, lzf or none"
		: npz ? "use zip or none"
		      : "use none, or format hdf5 (gzip, lzf) or npz (zip)");
}

/* Ensures that no later product overflows. */
static int check_sizes(const struct check *k)
{
	const struct pen_config *c = k->c;
	const double files = (double)c->dataset.num_files_train +
			     (double)c->dataset.num_files_eval,
		     samples = (double)c->dataset.num_samples_per_file,
		     bytes = (double)pen__config_sample_bytes(c);

	if (files * samples > 0x1p53)
		return FAIL(
			k, P_BAD_VALUE, "dataset.num_samples_per_file",
			"multiplied by the number of files it exceeds 2^53");
	if (bytes * samples > 0x1p62 || bytes * samples * files > 0x1p62)
		return FAIL(
			k, P_BAD_VALUE, "dataset.record_length_bytes",
			"multiplied by the number of samples it exceeds 2^62");
	if (c->dataset.record_dims.n && c->dataset.record_length_stdev > 0)
		return FAIL(k, P_CONFLICT, "dataset.record_length_bytes_stdev",
			    "cannot be combined with record_dims; set "
			    "record_length_bytes instead of record_dims");
	return 0;
}

static int check_times(const struct check *k)
{
	for (const char *const *key = pen__key_times; *key; key++) {
		const struct pen_time_spec *t = pen__key_time(*key, k->c);

		if (t->type == PEN_DRAW_UNIFORM && t->max < t->min)
			return FAIL(k, P_CONFLICT, *key,
				    "max %g is below min %g", t->max, t->min);
		if (t->type == PEN_DRAW_GAMMA &&
		    !(t->shape > 0 && t->scale > 0))
			return FAIL(k, P_BAD_VALUE, *key,
				    "gamma needs a shape and a scale above 0");
		if (t->type == PEN_DRAW_EXPONENTIAL && !(t->scale > 0))
			return FAIL(k, P_BAD_VALUE, *key,
				    "exponential needs a scale above 0");
	}
	return 0;
}

static int check_list(const struct check *k, const char *key,
		      const struct pen_opt_list *l)
{
	double sum = 0;

	for (size_t i = 0; i < l->n; i++)
		sum += (double)l->v[i];
	return sum > 0x1p48
		       ? FAIL(k, P_BAD_VALUE, key, "the sum exceeds 2^48 bytes")
		       : 0;
}

static int check_model(const struct check *k)
{
	const struct pen_config *c = k->c;
	const bool subset = c->checkpoint.mode == 1;
	int rc = check_list(k, "model.optimization_groups",
			    &c->model.optimization_groups);

	if (!rc)
		rc = check_list(k, "model.layer_parameters",
				&c->model.layer_parameters);
	if (rc)
		return rc;
	if (c->model.zero_stage == 3 && c->model.pipeline > 1)
		return FAIL(k, P_CONFLICT, "model.parallelism.zero_stage",
			    "stage 3 cannot be combined with pipeline > 1");
	if (c->model.num_layers > 0 && c->model.num_layers < c->model.pipeline)
		return FAIL(k, P_CONFLICT, "model.num_layers",
			    "%lld is below model.parallelism.pipeline",
			    (long long)c->model.num_layers);
	if (c->model.data > 0 && !subset)
		return FAIL(k, P_CONFLICT, "model.parallelism.data",
			    "follows from the number of ranks; set it only "
			    "with checkpoint.mode=subset");
	if (subset && c->model.data <= 0)
		return FAIL(k, P_MISSING_SETTING, "checkpoint.mode",
			    "subset needs model.parallelism.data");
	if (pen__config_parameters(c) > 0x1p52)
		return FAIL(k, P_BAD_VALUE, "model.num_layers",
			    "the model has more than 2^52 parameters");
	if (c->model.num_attention_heads > c->model.hidden_size)
		return FAIL(k, P_CONFLICT,
			    "model.transformer.num_attention_heads",
			    "exceeds model.transformer.hidden_size");
	return 0;
}

static int check_checkpoint(const struct check *k)
{
	const struct pen_config *c = k->c;

	if (c->checkpoint.num_write > 0 &&
	    c->checkpoint.num_read > c->checkpoint.num_write)
		return FAIL(k, P_CONFLICT, "checkpoint.num_checkpoints_read",
			    "%lld exceeds num_checkpoints_write = %lld",
			    (long long)c->checkpoint.num_read,
			    (long long)c->checkpoint.num_write);
	if (c->checkpoint.ksm && c->checkpoint.randomize_tensor)
		return FAIL(k, P_CONFLICT, "checkpoint.ksm",
			    "merges equal pages only; set "
			    "checkpoint.randomize_tensor=false");
	if (c->checkpoint.block_size > c->checkpoint.memory)
		return FAIL(k, P_CONFLICT, "checkpoint.block_size",
			    "exceeds checkpoint.memory");
	if (c->checkpoint.block_size % 4096)
		return FAIL(k, P_BAD_VALUE, "checkpoint.block_size",
			    "not a multiple of 4096");
	return 0;
}

/* A target of 90 means 0.90. */
static int settle_au(const struct check *k)
{
	if (k->c->au > 1) {
		pen__settings_note(k->s, "metric.au=%g is taken as %g %%",
				   k->c->au, k->c->au);
		k->c->au /= 100;
	}
	return 0;
}

/* --- contradictions --- */

static int refuse_store(const struct check *k, const char *store,
			const char *setting, const char *instead)
{
	return FAIL(k, P_CONFLICT, "loader.store", "%s conflicts with %s; %s",
		    store, setting, instead);
}

/* Compares loader.store with the reader keys. */
static int check_store(const struct check *k)
{
	static const char reads[] =
		"use posix or uring, or remove one of the two";
	const struct pen_config *c = k->c;
	const char *store = pen__pairs_get(&c->loader, "store");

	if (!store)
		return 0;
	if (pen__is_synthetic(c))
		return refuse_store(k, store, "synthetic samples",
				    "remove it, as nothing is read");
	if (c->reader.read_type == PEN_READ_MEMORY && strcmp(store, "ram"))
		return refuse_store(k, store, "reader.read_type=memory",
				    "remove one of the two");
	if (strcmp(store, "mmap") != 0 && strcmp(store, "ram") != 0)
		return 0;
	if (c->reader.odirect)
		return refuse_store(k, store, "reader.odirect=true", reads);
	if (c->reader.page_cache != PEN_CACHE_KEEP)
		return refuse_store(k, store, "reader.page_cache", reads);
	if (c->reader.dont_use_mmap && !strcmp(store, "mmap"))
		return refuse_store(k, store, "reader.dont_use_mmap=true",
				    reads);
	return 0;
}

static int check_memory(const struct check *k)
{
	const struct pen_config *c = k->c;

	if (c->reader.read_type == PEN_READ_MEMORY &&
	    (c->reader.odirect || c->reader.page_cache != PEN_CACHE_KEEP))
		return FAIL(k, P_CONFLICT,
			    c->reader.odirect ? "reader.odirect"
					      : "reader.page_cache",
			    "conflicts with reader.read_type=memory, which "
			    "reads the data set once and keeps it; remove one "
			    "of the two");
	return 0;
}

/* Other profilers are not available; the dlio_benchmark command ignores them.
 */
static int check_profiler(const struct check *k)
{
	const int p = k->c->profiling.profiler;
	const char *name = CHOICE("profiling.profiler", p);

	if (!k->c->workflow.profiling || p == PEN_PROFILER_NONE ||
	    p == PEN_PROFILER_IOSTAT)
		return 0;
	if (!k->s->lenient)
		return FAIL(k, P_UNSUPPORTED_FEATURE, "profiling.profiler",
			    "%s is not supported; use iostat, or "
			    "output.trace=true for a trace",
			    name);
	pen__settings_note(k->s,
			   "profiling.profiler=%s is ignored: only iostat is "
			   "supported",
			   name);
	return 0;
}

/* --- settings without effect --- */

/* Keys that have an effect in DLIO only, and the reason. */
static const struct {
	const char *key, *why;
} idle[] = {
	{ "reader.computation_threads",
	  "reader.read_threads threads both read and decode" },
	{ "reader.shuffle_size", "the entire data set is shuffled" },
	{ "reader.file_access", "every rank opens its own files" },
	{ "reader.multiprocessing_context", "workers are threads" },
	{ "reader.data_loader_sampler", "all ranks share one sample order" },
	{ "reader.write_threads", "every CPU generates files" },
	{ "dataset.enable_chunking", "use dataset.hdf5.chunk_dims" },
	{ "dataset.chunk_size", "use dataset.hdf5.chunk_dims" },
	{ "dataset.generation_buffer_size", "files are written in pieces" },
	{ "dataset.record_element_bytes",
	  "it follows from dataset.record_element_type" },
	{ "checkpoint.type", "it follows from model.parallelism" },
	{ "checkpoint.ksm", "tensors are not kept in memory" },
};

/* Why a key has no effect, or NULL. */
static const char *why_idle(const struct pen_config *c, const char *key)
{
	const struct pen_opt *o = pen__opt_find(pen__config_opts, key);

	for (size_t i = 0; i < sizeof(idle) / sizeof(idle[0]); i++)
		if (!strcmp(key, idle[i].key) ||
		    (pen__starts_with(key, idle[i].key) &&
		     key[strlen(idle[i].key)] == '.'))
			return idle[i].why;
	if (pen__starts_with(key, "storage.storage_options."))
		return "only files are read, not objects";
	if (pen__starts_with(key, "dataset.parquet."))
		return "the format is not parquet";
	if (pen__starts_with(key, "dataset.hdf5.") &&
	    strcmp(c->dataset.format, "hdf5") != 0)
		return "the format is not hdf5";
	if (pen__is_synthetic(c) && (!strcmp(key, "reader.odirect") ||
				     !strcmp(key, "reader.page_cache") ||
				     !strcmp(key, "reader.read_type") ||
				     !strcmp(key, "reader.transfer_size")))
		return "synthetic samples are not read";
	if (c->workflow.train &&
	    (pen__starts_with(key, "checkpoint.num_checkpoints_") ||
	     !strcmp(key, "checkpoint.time_between_checkpoints")))
		return "it applies to runs without workflow.train";
	if (!c->workflow.profiling && pen__starts_with(key, "profiling."))
		return "workflow.profiling is false";
	return o && o->off >= offsetof(struct pen_config, unused)
		       ? "it is accepted but not used"
		       : NULL;
}

static bool is_default(const struct pen_setting *v)
{
	const struct pen_opt *o = pen__opt_find(pen__config_opts, v->key);

	return o && (o->dflt ? !strcmp(o->dflt, v->value) : !*v->value);
}

static int note_idle(const struct check *k)
{
	for (size_t i = 0; i < k->s->n; i++) {
		const struct pen_setting *v = &k->s->v[i];
		const char *why = why_idle(k->c, v->key);

		if (why && !is_default(v) &&
		    !pen__starts_with(v->origin, "built in: ") &&
		    pen__settings_find(k->s, v->key) == v)
			pen__settings_note(k->s, "%s has no effect: %s", v->key,
					   why);
	}
	return 0;
}

int pen__config_check(struct pen_config *c, struct pen_settings *s,
		      struct pen_err *err)
{
	static int (*const all[])(const struct check *) = {
		check_texts,	check_framework,   check_storage,
		check_types,	check_shapes,	   check_image,
		check_hdf5,	check_compression, check_sizes,
		check_model,	check_checkpoint,  check_times,
		settle_au,	check_store,	   check_memory,
		check_profiler, note_idle,
	};
	const struct check k = { c, s, err };
	int rc = 0;

	for (size_t i = 0; !rc && i < sizeof(all) / sizeof(all[0]); i++)
		rc = all[i](&k);
	return rc;
}
