/*
 * What must hold between settings. Only what needs no knowledge of ranks or
 * files: those who have it check the rest.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/mem.h"
#include "emulate/config_int.h"

/* The settings, what they became, and where errors go. */
struct check {
	struct pen_config *c;
	struct pen_settings *s;
	struct pen_err *err;
};

#define FAIL(k, key, ...)                                                      \
	pen__settings_fail((k)->s, PEN_EINVAL, key, (k)->err, __VA_ARGS__)
#define REFUSE(k, key, ...)                                                    \
	pen__settings_fail((k)->s, PEN_ENOTSUP, key, (k)->err, __VA_ARGS__)

static bool is_format(const struct pen_config *c, const char *name)
{
	return !strcmp(c->dataset.format, name);
}

/* Text that has a default must not be empty: somebody counts on it. */
static int check_texts(const struct check *k)
{
	for (const struct pen_opt *o = pen__config_opts; o->name; o++) {
		char **at = (char **)(void *)((char *)k->c + o->off);

		if (o->type != PEN_OPT_STR || !o->dflt || *at)
			continue;
		if (strcmp(o->name, "storage.storage_root"))
			return FAIL(k, o->name, "must not be empty");
		*at = pen__strdup("./");
		if (!*at)
			return pen__fail_nomem(k->err, o->name, 3);
	}
	return 0;
}

static int check_framework(const struct check *k)
{
	const int f = k->c->framework, l = k->c->reader.data_loader;

	if ((f == PEN_TENSORFLOW && l == PEN_LOADER_PYTORCH) ||
	    (f == PEN_PYTORCH && l == PEN_LOADER_TENSORFLOW))
		return FAIL(k, "reader.data_loader",
			    "is %s, which does not go with framework=%s; set "
			    "both alike",
			    f == PEN_TENSORFLOW ? "pytorch" : "tensorflow",
			    f == PEN_TENSORFLOW ? "tensorflow" : "pytorch");
	return 0;
}

static int check_storage(const struct check *k)
{
	static const char *const schemes[] = { "s3://", "az://", "gs://",
					       "ais://", NULL };
	const struct pen_config *c = k->c;

	if (c->storage.type == PEN_STORAGE_S3 ||
	    c->storage.type == PEN_STORAGE_AISTORE)
		return REFUSE(k, "storage.storage_type",
			      "there is no %s store yet; use local_fs, "
			      "parallel_fs or direct_fs",
			      c->storage.type == PEN_STORAGE_S3 ? "s3"
								: "aistore");
	for (size_t i = 0; schemes[i]; i++) {
		if (pen__starts_with(c->dataset.data_folder, schemes[i]))
			return REFUSE(k, "dataset.data_folder",
				      "there is no store for %s yet; name a "
				      "directory",
				      schemes[i]);
		if (pen__starts_with(c->checkpoint.folder, schemes[i]))
			return REFUSE(k, "checkpoint.checkpoint_folder",
				      "there is no store for %s yet; name a "
				      "directory",
				      schemes[i]);
	}
	if (is_format(c, "parquet"))
		return REFUSE(k, "dataset.format",
			      "parquet is not supported yet; hdf5 or npz are "
			      "nearest");
	return 0;
}

static int check_type(const struct check *k, const char *key, char **name)
{
	const enum pen_dtype t = pen__config_dtype(*name);
	char *copy;

	if (t == PEN_NDTYPES)
		return FAIL(k, key,
			    "is not a type of NumPy: '%.40s' (try uint8, "
			    "float32)",
			    *name);
	copy = pen__strdup(pen_dtype_name(t));
	if (!copy)
		return pen__fail_nomem(k->err, key, 16);
	pen__free(*name);
	*name = copy;
	return 0;
}

static int check_dims(const struct check *k, const char *key,
		      const struct pen_opt_list *dims, size_t most)
{
	double bytes = 16;

	if (dims->n > most)
		return FAIL(k, key, "has %zu dimensions, at most %zu", dims->n,
			    most);
	for (size_t i = 0; i < dims->n; i++) {
		bytes *= (double)dims->v[i];
		if (dims->v[i] < 1)
			return FAIL(k, key, "has a dimension of 0");
		if (bytes > 0x1p48)
			return FAIL(k, key, "is too large a shape");
	}
	return 0;
}

/* Images are 2-D and of bytes. */
static int check_image(const struct check *k)
{
	struct pen_config *c = k->c;
	char *uint8;

	if (!is_format(c, "jpeg") && !is_format(c, "png"))
		return 0;
	if (c->dataset.record_dims.n > 2)
		return FAIL(k, "dataset.record_dims",
			    "%s format does not support more than 2 "
			    "dimensions, but got %zu dimensions.",
			    c->dataset.format, c->dataset.record_dims.n);
	if (!strcmp(c->dataset.record_element_type, "uint8"))
		return 0;
	pen__settings_note(k->s,
			   "dataset.record_element_type=%s is uint8 in %s "
			   "files",
			   c->dataset.record_element_type, c->dataset.format);
	uint8 = pen__strdup("uint8");
	if (!uint8)
		return pen__fail_nomem(k->err, "dataset.record_element_type",
				       6);
	pen__free(c->dataset.record_element_type);
	c->dataset.record_element_type = uint8;
	return 0;
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
		return FAIL(k, "dataset.hdf5.num_dset_per_record",
			    "is %llu, which does not divide record_dims[0] = "
			    "%lld",
			    (unsigned long long)parts, (long long)dims->v[0]);
	if (c->dataset.hdf5_chunk_dims.n &&
	    c->dataset.hdf5_chunk_dims.n != n + 1)
		return FAIL(k, "dataset.hdf5.chunk_dims",
			    "has %zu numbers; it takes %zu: the samples' axis "
			    "and the record's %zu",
			    c->dataset.hdf5_chunk_dims.n, n + 1, n);
	if (c->dataset.hdf5_max_shape.n && c->dataset.hdf5_max_shape.n != n)
		return FAIL(k, "dataset.hdf5.max_shape",
			    "has %zu numbers; a record has %zu dimensions",
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
	return FAIL(k, "dataset.compression",
		    "is not one that %s files can have; %s", c->dataset.format,
		    hdf5  ? "choose gzip, lzf or none"
		    : npz ? "choose zip or none"
			  : "choose none, or format hdf5 (gzip, lzf) or npz "
			    "(zip)");
}

/* No later product of these may overflow. */
static int check_sizes(const struct check *k)
{
	const struct pen_config *c = k->c;
	const double files = (double)c->dataset.num_files_train +
			     (double)c->dataset.num_files_eval,
		     samples = (double)c->dataset.num_samples_per_file,
		     bytes = (double)pen__config_sample_bytes(c);

	if (files * samples > 0x1p53)
		return FAIL(k, "dataset.num_samples_per_file",
			    "times the number of files is more than 2^53");
	if (bytes * samples > 0x1p62 || bytes * samples * files > 0x1p62)
		return FAIL(k, "dataset.record_length_bytes",
			    "times the number of samples is more than 2^62");
	if (c->dataset.record_dims.n && c->dataset.record_length_stdev > 0)
		return FAIL(k, "dataset.record_length_bytes_stdev",
			    "and record_dims do not go together; give "
			    "record_length_bytes instead of record_dims");
	return 0;
}

static int check_dataset(const struct check *k)
{
	struct pen_config *c = k->c;
	int rc = check_type(k, "dataset.record_element_type",
			    &c->dataset.record_element_type);

	if (!rc)
		rc = check_type(k, "reader.transformed_record_element_type",
				&c->reader.transformed_type);
	if (!rc)
		rc = check_dims(k, "dataset.record_dims",
				&c->dataset.record_dims, PEN_MAX_DIMS - 1);
	if (!rc)
		rc = check_dims(k, "dataset.hdf5.chunk_dims",
				&c->dataset.hdf5_chunk_dims, PEN_MAX_DIMS);
	if (!rc)
		rc = check_dims(k, "dataset.hdf5.max_shape",
				&c->dataset.hdf5_max_shape, PEN_MAX_DIMS);
	if (!rc)
		rc = check_dims(k, "reader.transformed_record_dims",
				&c->reader.transformed_dims, PEN_MAX_DIMS - 1);
	if (!rc)
		rc = check_image(k);
	if (!rc)
		rc = check_hdf5(k);
	if (!rc)
		rc = check_compression(k);
	return rc ? rc : check_sizes(k);
}

static int check_time(const struct check *k, const char *key)
{
	const struct pen_time_spec *t = pen__key_time(key, k->c);

	if (t->type == PEN_DRAW_UNIFORM && t->max < t->min)
		return FAIL(k, key, "has a max of %g, below its min of %g",
			    t->max, t->min);
	if (t->type == PEN_DRAW_GAMMA && !(t->shape > 0 && t->scale > 0))
		return FAIL(k, key, "gamma needs shape and scale above 0");
	if (t->type == PEN_DRAW_EXPONENTIAL && !(t->scale > 0))
		return FAIL(k, key, "exponential needs a scale above 0");
	return 0;
}

static int check_list(const struct check *k, const char *key,
		      const struct pen_opt_list *l)
{
	double sum = 0;

	for (size_t i = 0; i < l->n; i++)
		sum += (double)l->v[i];
	return sum > 0x1p48 ? FAIL(k, key, "is more than 2^48 bytes together")
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
		return FAIL(k, "model.parallelism.zero_stage",
			    "3 does not go with pipeline > 1");
	if (c->model.num_layers > 0 && c->model.num_layers < c->model.pipeline)
		return FAIL(k, "model.num_layers",
			    "is %lld, fewer than model.parallelism.pipeline",
			    (long long)c->model.num_layers);
	if (c->model.data > 0 && !subset)
		return FAIL(k, "model.parallelism.data",
			    "follows from the number of ranks; give it only "
			    "with checkpoint.mode=subset");
	if (subset && c->model.data <= 0)
		return FAIL(k, "checkpoint.mode",
			    "subset needs model.parallelism.data");
	if (pen__config_parameters(c) > 0x1p52)
		return FAIL(k, "model.num_layers",
			    "makes a model of more than 2^52 parameters");
	if (c->model.num_attention_heads > c->model.hidden_size)
		return FAIL(k, "model.transformer.num_attention_heads",
			    "is more than model.transformer.hidden_size");
	return 0;
}

static int check_checkpoint(const struct check *k)
{
	const struct pen_config *c = k->c;

	if (c->checkpoint.num_write > 0 &&
	    c->checkpoint.num_read > c->checkpoint.num_write)
		return FAIL(k, "checkpoint.num_checkpoints_read",
			    "is %lld, more than num_checkpoints_write = %lld",
			    (long long)c->checkpoint.num_read,
			    (long long)c->checkpoint.num_write);
	if (c->checkpoint.ksm && c->checkpoint.randomize_tensor)
		return FAIL(k, "checkpoint.ksm",
			    "merges equal pages; it needs "
			    "checkpoint.randomize_tensor=false");
	if (c->checkpoint.block_size > c->checkpoint.memory)
		return FAIL(k, "checkpoint.block_size",
			    "is more than checkpoint.memory");
	if (c->checkpoint.block_size % 4096)
		return FAIL(k, "checkpoint.block_size",
			    "is not a multiple of 4096");
	return 0;
}

/* A threshold of 90 is one of 0.90. */
static void settle_au(const struct check *k)
{
	if (k->c->au > 1) {
		pen__settings_note(k->s, "metric.au=%g is read as %g %%",
				   k->c->au, k->c->au);
		k->c->au /= 100;
	}
}

int pen__config_check(struct pen_config *c, struct pen_settings *s,
		      struct pen_err *err)
{
	static int (*const all[])(const struct check *) = {
		check_texts,   check_framework, check_storage,
		check_dataset, check_model,	check_checkpoint,
	};
	static const char *const times[] = { "reader.preprocess_time",
					     "train.computation_time",
					     "evaluation.eval_time" };
	const struct check k = { c, s, err };
	int rc = 0;

	for (size_t i = 0; !rc && i < sizeof(all) / sizeof(all[0]); i++)
		rc = all[i](&k);
	for (size_t i = 0; !rc && i < 3; i++)
		rc = check_time(&k, times[i]);
	settle_au(&k);
	return rc;
}
