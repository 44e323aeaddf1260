/*
 * Every key of a workload, once: its type, default and bounds. The parser, the
 * printer and the help all read this table; it is kept in the order in which
 * it is printed, sections in one piece. Bounds are such that no product of
 * sizes taken later overflows unseen.
 *
 * Below it: what old names are called today, what is a section, and what an
 * unknown name may have been meant to be. DLIO drops unknown keys without a
 * word, so that a typing error measures something else than was asked for;
 * here every key has to exist.
 */
#include <stdio.h>
#include <string.h>

#include "emulate/config_int.h"

#define OFF(x) offsetof(struct pen_config, x)

#define FLAG(key, to, d, h)                                                    \
	{                                                                      \
		.name = (key), .type = PEN_OPT_BOOL, .off = OFF(to),           \
		.dflt = (d), .help = (h)                                       \
	}
#define TEXT(key, to, d, h)                                                    \
	{                                                                      \
		.name = (key), .type = PEN_OPT_STR, .off = OFF(to),            \
		.dflt = (d), .help = (h)                                       \
	}
#define LIST(key, to, h)                                                       \
	{                                                                      \
		.name = (key), .type = PEN_OPT_LIST, .off = OFF(to),           \
		.dflt = "[]", .help = (h)                                      \
	}
#define PICK(key, to, d, from, h)                                              \
	{                                                                      \
		.name = (key), .type = PEN_OPT_ENUM, .off = OFF(to),           \
		.dflt = (d), .choices = (from), .help = (h)                    \
	}
#define NUM(t, key, to, d, lo, hi, h)                                          \
	{                                                                      \
		.name = (key), .type = PEN_OPT_##t, .off = OFF(to),            \
		.dflt = (d), .min = (lo), .max = (hi), .help = (h)             \
	}
/* A time: a number of seconds, or what it is drawn from. */
#define SPEC(key, to, h)                                                       \
	NUM(DOUBLE, key, to.mean, "0", 0, TIME, h),                            \
		PICK(key ".type", to.type, "normal", pen__draw_names,          \
		     "what it is drawn from"),                                 \
		NUM(DOUBLE, key ".mean", to.mean, "0", 0, TIME, "of normal"),  \
		NUM(DOUBLE, key ".stdev", to.stdev, "0", 0, TIME,              \
		    "of normal"),                                              \
		NUM(DOUBLE, key ".min", to.min, "0", 0, TIME, "of uniform"),   \
		NUM(DOUBLE, key ".max", to.max, "0", 0, TIME, "of uniform"),   \
		NUM(DOUBLE, key ".shape", to.shape, "0", 0, TIME, "of gamma"), \
		NUM(DOUBLE, key ".scale", to.scale, "0", 0, TIME,              \
		    "of gamma, exponential"),                                  \
		NUM(DOUBLE, key ".lam", to.lam, "0", 0, TIME, "of poisson"),   \
		NUM(DOUBLE, key "_stdev", to.stdev, "0", 0, TIME,              \
		    "the same as .stdev")

#define TIME 1e6 /* seconds: longer is a mistake */
#define FILES 0x1p32
#define SAMPLES 0x1p40
#define BYTES 0x1p48
#define EPOCHS 0x1p31
#define STEPS 0x1p48
#define PARTS 0x1p20 /* ranks, threads, batches */

static const char *const frameworks[] = { "tensorflow", "pytorch", NULL };
const char *const pen__draw_names[] = { "normal",      "uniform", "gamma",
					"exponential", "poisson", NULL };
static const char *const datatypes[] = { "int8", "uint8", "fp16", "bf16",
					 "fp32", "fp64",  NULL };
static const char *const storages[] = { "local_fs", "parallel_fs", "direct_fs",
					"s3",	    "aistore",	   NULL };
static const char *const formats[] = { "tfrecord",
				       "hdf5",
				       "csv",
				       "npz",
				       "npy",
				       "jpeg",
				       "png",
				       "indexed_binary",
				       "mmap_indexed_binary",
				       "synthetic",
				       "parquet",
				       NULL };
static const char *const compressions[] = { "none", "gzip", "lzf",    "zip",
					    "bz2",  "xz",   "snappy", "lz4",
					    "zstd", NULL };
static const char *const loaders[] = { "tensorflow",  "pytorch", "dali",
				       "native_dali", "custom",	 "none",
				       "synthetic",   NULL };
static const char *const shuffles[] = { "off", "seed", "random", NULL };
static const char *const read_types[] = { "on_demand", "memory", NULL };
static const char *const page_caches[] = { "keep", "drop", "drop_all", NULL };
static const char *const accesses[] = { "multi", "shared", "collective",
					"mpio",	 "posix",  NULL };
static const char *const contexts[] = { "fork", "spawn", "forkserver", "none",
					NULL };
static const char *const samplers[] = { "none", "iterative", "index", "iter",
					NULL };
static const char *const places[] = { "rank_zero", "all_ranks", NULL };
static const char *const modes[] = { "default", "subset", NULL };
static const char *const profilers[] = { "none", "iostat", "darshan",
					 "tensorboard", NULL };

#define UNUSED "accepted; without effect here"
#define PLUGIN "a Python class; cannot be run here"
#define PARQUET "of Parquet, which is not supported yet"

const struct pen_opt pen__config_opts[] = {
	PICK("framework", framework, "tensorflow", frameworks,
	     "by whose habits files are read; a name only"),

	TEXT("model.name", model.name, "default", "a label"),
	TEXT("model.type", model.type, NULL,
	     "transformer: checkpoints hold its layers"),
	NUM(SIZE, "model.model_size_bytes", model.size_bytes, "10240", 0, BYTES,
	    "in a checkpoint, unless it is a transformer"),
	PICK("model.model_datatype", model.model_datatype, "fp16", datatypes,
	     "of parameters in a checkpoint"),
	PICK("model.optimizer_datatype", model.optimizer_datatype, "fp32",
	     datatypes, "of optimizer state in a checkpoint"),
	LIST("model.optimization_groups", model.optimization_groups,
	     "explicit optimizer tensors, in bytes"),
	NUM(INT, "model.num_layers", model.num_layers, "-1", -1, PARTS,
	    "of the transformer; -1: no layers in checkpoints"),
	LIST("model.layer_parameters", model.layer_parameters,
	     "explicit tensors of a layer, in bytes"),
	NUM(INT, "model.parallelism.tensor", model.tensor, "1", 1, PARTS,
	    "ranks that share a layer"),
	NUM(INT, "model.parallelism.pipeline", model.pipeline, "1", 1, PARTS,
	    "ranks that share the layers"),
	NUM(INT, "model.parallelism.data", model.data, "-1", -1, PARTS,
	    "replicas, for checkpoint.mode=subset; -1: as ranks allow"),
	NUM(INT, "model.parallelism.zero_stage", model.zero_stage, "0", 0, 3,
	    "ZeRO: what replicas share out, 0 to 3"),
	NUM(INT, "model.transformer.vocab_size", model.vocab_size, "32000", 1,
	    0x1p30, "words"),
	NUM(INT, "model.transformer.hidden_size", model.hidden_size, "2048", 1,
	    0x1p20, "width"),
	NUM(INT, "model.transformer.ffn_hidden_size", model.ffn_hidden_size,
	    "8192", 1, 0x1p22, "inner width"),
	NUM(INT, "model.transformer.num_attention_heads",
	    model.num_attention_heads, "32", 1, 0x1p20, "heads"),
	NUM(INT, "model.transformer.num_kv_heads", model.num_kv_heads, "8", 1,
	    0x1p20, "heads of keys and values"),

	FLAG("workflow.generate_data", workflow.generate_data, "false",
	     "make the data set first"),
	FLAG("workflow.train", workflow.train, "true", "train"),
	FLAG("workflow.evaluation", workflow.evaluation, "false",
	     "evaluate between epochs"),
	FLAG("workflow.checkpoint", workflow.checkpoint, "false",
	     "write checkpoints; without train, nothing but those"),
	FLAG("workflow.profiling", workflow.profiling, "false",
	     "what profiling.profiler says"),
	TEXT("workflow.query", workflow.query, NULL,
	     "print the value of this key and stop"),
	FLAG("workflow.debug", unused.debug, "false", UNUSED),

	PICK("storage.storage_type", storage.type, "local_fs", storages,
	     "direct_fs is local_fs with reader.odirect"),
	TEXT("storage.storage_root", storage.root, "./",
	     "in front of dataset.data_folder"),
	TEXT("storage.storage_library", unused.storage_library, NULL, UNUSED),
	NUM(DOUBLE, "storage.post_generation_settle_seconds",
	    unused.settle_seconds, "0", 0, TIME, UNUSED),

	{ .name = "dataset.format",
	  .type = PEN_OPT_STR,
	  .off = OFF(dataset.format),
	  .dflt = "tfrecord",
	  .choices = formats,
	  .help = "of the files, and their suffix" },
	NUM(COUNT, "dataset.num_files_train", dataset.num_files_train, "8", 0,
	    FILES, "training files"),
	NUM(COUNT, "dataset.num_files_eval", dataset.num_files_eval, "0", 0,
	    FILES, "evaluation files"),
	NUM(COUNT, "dataset.num_samples_per_file", dataset.num_samples_per_file,
	    "1", 1, SAMPLES, "samples in each"),
	NUM(DOUBLE, "dataset.record_length_bytes", dataset.record_length,
	    "65536", 1, BYTES, "of a sample: a square of bytes, cut to one"),
	NUM(DOUBLE, "dataset.record_length_bytes_stdev",
	    dataset.record_length_stdev, "0", 0, BYTES,
	    "how sizes vary between files"),
	NUM(DOUBLE, "dataset.record_length_bytes_resize",
	    dataset.record_length_resize, "0", 0, BYTES,
	    "of a sample handed to the model; 0: as read"),
	LIST("dataset.record_dims", dataset.record_dims,
	     "shape of a sample, instead of its length"),
	TEXT("dataset.record_element_type", dataset.record_element_type,
	     "uint8", "as NumPy names it"),
	NUM(COUNT, "dataset.record_element_bytes", unused.record_element_bytes,
	    "0", 0, 64, "follows from record_element_type"),
	NUM(COUNT, "dataset.hdf5.num_dset_per_record", dataset.hdf5_num_dset,
	    "1", 1, 0x1p16, "HDF5 data sets a sample is split over"),
	LIST("dataset.hdf5.chunk_dims", dataset.hdf5_chunk_dims,
	     "HDF5 chunk, with the samples' axis first"),
	LIST("dataset.hdf5.max_shape", dataset.hdf5_max_shape,
	     "HDF5 maximal shape of a sample"),
	TEXT("dataset.data_folder", dataset.data_folder, "./data/",
	     "where train/ and valid/ are"),
	NUM(COUNT, "dataset.num_subfolders_train", dataset.num_subfolders_train,
	    "0", 0, 0x1p20, "of train/, when more than 1"),
	NUM(COUNT, "dataset.num_subfolders_eval", dataset.num_subfolders_eval,
	    "0", 0, 0x1p20, "of valid/, when more than 1"),
	TEXT("dataset.file_prefix", dataset.file_prefix, "img",
	     "what file names begin with"),
	PICK("dataset.compression", dataset.compression, "none", compressions,
	     "hdf5: gzip, lzf; npz: zip"),
	NUM(INT, "dataset.compression_level", dataset.compression_level, "4", 0,
	    9, "of gzip and zip"),
	FLAG("dataset.enable_chunking", dataset.enable_chunking, "false",
	     "superseded by dataset.hdf5.chunk_dims"),
	NUM(SIZE, "dataset.chunk_size", dataset.chunk_size, "0", 0, BYTES,
	    "superseded by dataset.hdf5.chunk_dims"),
	NUM(SIZE, "dataset.generation_buffer_size",
	    dataset.generation_buffer_size, "2147483648", 1, BYTES, UNUSED),
	FLAG("dataset.keep_files", dataset.keep_files, "true",
	     "false: the data set is removed at the end"),
	TEXT("dataset.data_gen_method", unused.data_gen_method, NULL, UNUSED),
	FLAG("dataset.skip_listing", unused.skip_listing, "false", UNUSED),
	NUM(COUNT, "dataset.listing_validation_interval",
	    unused.listing_interval, "1000", 0, SAMPLES, UNUSED),
	TEXT("dataset.parquet.columns", unused.parquet_columns, NULL, PARQUET),
	NUM(COUNT, "dataset.parquet.row_group_size", unused.parquet_row_group,
	    "1024", 1, SAMPLES, PARQUET),
	TEXT("dataset.parquet.partition_by", unused.parquet_partition, NULL,
	     PARQUET),
	NUM(COUNT, "dataset.parquet.generation_batch_size",
	    unused.parquet_batch, "0", 0, SAMPLES, PARQUET),
	FLAG("dataset.parquet.use_s3dlio_gen", unused.use_s3dlio_gen, "false",
	     PARQUET),
	TEXT("dataset.parquet.read_mode", unused.parquet_read_mode, NULL,
	     PARQUET),
	NUM(DOUBLE, "dataset.compressibility", dataset.compressibility, "0", 0,
	    1, "of the content made: 0 noise ... 1 zeros"),
	NUM(COUNT, "dataset.seed", dataset.seed, "10", 0, 0x1p53,
	    "of the content made"),

	PICK("reader.data_loader", reader.data_loader, "tensorflow", loaders,
	     "a name only, as framework; synthetic: nothing is read"),
	NUM(COUNT, "reader.batch_size", reader.batch_size, "1", 1, 0x1p24,
	    "of an accelerator"),
	NUM(COUNT, "reader.batch_size_eval", reader.batch_size_eval, "1", 1,
	    0x1p24, "in evaluation"),
	NUM(INT, "reader.read_threads", reader.read_threads, "1", 0, 1024,
	    "reading threads of an accelerator"),
	NUM(INT, "reader.computation_threads", reader.computation_threads, "1",
	    0, 1024, UNUSED),
	NUM(INT, "reader.prefetch_size", reader.prefetch_size, "2", 0, 4096,
	    "batches prepared ahead; 0: as fits"),
	PICK("reader.file_shuffle", reader.file_shuffle, "off", shuffles,
	     "order of files: seed is the same in every run"),
	PICK("reader.sample_shuffle", reader.sample_shuffle, "off", shuffles,
	     "order of samples: seed is the same in every run"),
	NUM(COUNT, "reader.shuffle_size", reader.shuffle_size, "1024", 0,
	    SAMPLES, UNUSED),
	PICK("reader.read_type", reader.read_type, "on_demand", read_types,
	     "memory: the whole data set is read into memory first"),
	PICK("reader.file_access", unused.file_access, "multi", accesses,
	     UNUSED),
	NUM(SIZE, "reader.transfer_size", reader.transfer_size, "0", 0, 0x1p34,
	    "of a read; 0: as fits"),
	FLAG("reader.odirect", reader.odirect, "false",
	     "read past the page cache"),
	FLAG("reader.dont_use_mmap", reader.dont_use_mmap, "false",
	     "read files, do not map them"),
	SPEC("reader.preprocess_time", reader.preprocess_time,
	     "seconds a sample, in a worker"),
	FLAG("reader.pin_memory", reader.pin_memory, "true",
	     "lock batches in memory"),
	PICK("reader.multiprocessing_context", unused.multiprocessing, "fork",
	     contexts, UNUSED),
	TEXT("reader.data_loader_classname", unused.data_loader_class, NULL,
	     PLUGIN),
	TEXT("reader.reader_classname", unused.reader_class, NULL, PLUGIN),
	PICK("reader.data_loader_sampler", unused.sampler, "none", samplers,
	     UNUSED),
	LIST("reader.transformed_record_dims", reader.transformed_dims,
	     "shape of a sample handed to the model"),
	TEXT("reader.transformed_record_element_type", reader.transformed_type,
	     "uint8", "its type"),
	NUM(INT, "reader.write_threads", unused.write_threads, "1", 0, 1024,
	    UNUSED),
	FLAG("reader.decode", reader.decode, "true",
	     "false: bytes are read, not decoded"),
	PICK("reader.page_cache", reader.page_cache, "keep", page_caches,
	     "before every epoch: drop the files' pages, or all (root)"),

	NUM(COUNT, "train.epochs", train.epochs, "1", 0, EPOCHS,
	    "passes over the data"),
	SPEC("train.computation_time", train.computation_time,
	     "seconds a step"),
	NUM(INT, "train.total_training_steps", train.total_training_steps, "-1",
	    -1, STEPS, "of an epoch, at most; -1: all"),
	NUM(COUNT, "train.seed", train.seed, "123", 0, 4294967295.0,
	    "of order and times"),
	FLAG("train.seed_change_epoch", train.seed_change_epoch, "true",
	     "every epoch another order"),
	FLAG("train.barrier", train.barrier, "true",
	     "accelerators end every step together"),

	SPEC("evaluation.eval_time", evaluation.eval_time, "seconds a step"),
	NUM(COUNT, "evaluation.eval_after_epoch", evaluation.eval_after_epoch,
	    "1", 0, EPOCHS, "the first one to evaluate after"),
	NUM(COUNT, "evaluation.epochs_between_evals",
	    evaluation.epochs_between_evals, "1", 0, EPOCHS,
	    "then every n; 0: every one"),

	TEXT("checkpoint.checkpoint_folder", checkpoint.folder,
	     "./checkpoints/", "where they are written"),
	NUM(COUNT, "checkpoint.checkpoint_after_epoch", checkpoint.after_epoch,
	    "1", 0, EPOCHS, "the first one to write after"),
	NUM(COUNT, "checkpoint.epochs_between_checkpoints",
	    checkpoint.epochs_between, "1", 1, EPOCHS, "then every n"),
	NUM(INT, "checkpoint.steps_between_checkpoints",
	    checkpoint.steps_between, "-1", -1, STEPS,
	    "by steps instead of epochs; -1: not"),
	PICK("checkpoint.type", unused.checkpoint_type, "rank_zero", places,
	     "follows from model.parallelism"),
	FLAG("checkpoint.fsync", checkpoint.fsync, "false",
	     "on disk when it counts as written"),
	FLAG("checkpoint.recovery_rank_shift", checkpoint.recovery_rank_shift,
	     "false", "a rank reads what another one wrote"),
	NUM(DOUBLE, "checkpoint.time_between_checkpoints",
	    checkpoint.time_between, "-1", -TIME, TIME,
	    "seconds before each, without train"),
	NUM(INT, "checkpoint.num_checkpoints_write", checkpoint.num_write, "-1",
	    -1, EPOCHS, "how many, without train"),
	NUM(INT, "checkpoint.num_checkpoints_read", checkpoint.num_read, "-1",
	    -1, EPOCHS, "of those, without train"),
	FLAG("checkpoint.rank_sync", checkpoint.rank_sync, "false",
	     "all ranks end each together"),
	PICK("checkpoint.mode", checkpoint.mode, "default", modes,
	     "subset: fewer ranks than model.parallelism asks for"),
	FLAG("checkpoint.randomize_tensor", checkpoint.randomize_tensor, "true",
	     "false: tensors of ones"),
	FLAG("checkpoint.ksm", checkpoint.ksm, "false", UNUSED),
	NUM(INT, "checkpoint.ksm.madv_mergeable_id",
	    checkpoint.ksm_mergeable_id, "12", 0, 1024, "madvise's number"),
	NUM(DOUBLE, "checkpoint.ksm.high_ram_trigger",
	    checkpoint.ksm_high_ram_trigger, "30", 0, 100,
	    "percent of memory to wait from"),
	NUM(INT, "checkpoint.ksm.low_ram_exit", checkpoint.ksm_low_ram_exit,
	    "15", 0, 100, "percent of memory to wait for"),
	NUM(INT, "checkpoint.ksm.await_time", checkpoint.ksm_await_time, "200",
	    0, TIME, "seconds to wait at most"),
	TEXT("checkpoint.checkpoint_mechanism_classname",
	     unused.checkpoint_class, NULL, PLUGIN),
	FLAG("checkpoint.odirect", checkpoint.odirect, "false",
	     "past the page cache"),
	FLAG("checkpoint.verify", checkpoint.verify, "true",
	     "compare what is read with what was written"),
	NUM(SIZE, "checkpoint.memory", checkpoint.memory, "64MiB", 1 << 20,
	    0x1p40, "of a process, at most"),
	NUM(SIZE, "checkpoint.block_size", checkpoint.block_size, "4MiB", 4096,
	    0x1p30, "of a write"),

	TEXT("output.folder", output.folder, NULL,
	     "of all results; empty: hydra.run.dir"),
	TEXT("output.log_file", output.log_file, "dlio.log", "in that folder"),
	NUM(COUNT, "output.metric.exclude_start_steps",
	    output.exclude_start_steps, "1", 0, STEPS,
	    "left out of the figures"),
	NUM(COUNT, "output.metric.exclude_end_steps", output.exclude_end_steps,
	    "0", 0, STEPS, "left out of the figures"),
	FLAG("output.trace", output.trace, "false",
	     "a trace for Perfetto beside the result"),

	NUM(DOUBLE, "metric.au", au, "0.90", 0, 100,
	    "accelerator utilization to reach, a fraction"),

	PICK("profiling.profiler", profiling.profiler, "iostat", profilers,
	     "what workflow.profiling switches on"),
	TEXT("profiling.iostat_devices", profiling.iostat_devices, NULL,
	     "empty: the one that holds the data"),

	NUM(COUNT, "accelerators", accelerators, "1", 1, 65536,
	    "emulated by this process"),

	TEXT("hydra.run.dir", run_dir, NULL,
	     "of the results; empty: hydra_log, by model and time"),
	TEXT("hydra.output_subdir", output_subdir, ".hydra",
	     "of the settings, in hydra.run.dir"),
	{ .name = NULL },
};

/* --- names --- */

/* Also in front of what is below: train.eval_time.mean. */
struct alias {
	const char *old, *now;
};

static const struct alias sections[] = {
	{ "data_reader", "reader" },
	{ "data_loader", "reader" },
	{ NULL, NULL },
};

static const struct alias aliases[] = {
	{ "model", "model.name" },
	{ "logdir", "output.folder" },
	{ "model.model_size", "model.model_size_bytes" },
	{ "checkpoint.model_size", "model.model_size_bytes" },
	{ "workflow.evaluate", "workflow.evaluation" },
	{ "train.do_eval", "workflow.evaluation" },
	{ "checkpoint.do_checkpoint", "workflow.checkpoint" },
	{ "train.n_epochs", "train.epochs" },
	{ "train.eval_time", "evaluation.eval_time" },
	{ "train.eval_time_stdev", "evaluation.eval_time_stdev" },
	{ "train.eval_after_epoch", "evaluation.eval_after_epoch" },
	{ "checkpoint.output_folder", "checkpoint.checkpoint_folder" },
	{ "checkpoint.checkpoing_after_epoch",
	  "checkpoint.checkpoint_after_epoch" },
	{ "dataset.batch_size", "reader.batch_size" },
	{ "dataset.batch_size_eval", "reader.batch_size_eval" },
	{ "dataset.data_dir", "dataset.data_folder" },
	{ "dataset.num_files_val", "dataset.num_files_eval" },
	{ "dataset.record_length", "dataset.record_length_bytes" },
	{ "dataset.record_length_stdev", "dataset.record_length_bytes_stdev" },
	{ "dataset.record_length_resize",
	  "dataset.record_length_bytes_resize" },
	{ "dataset.chunking", "dataset.enable_chunking" },
	{ "reader.read_shuffle", "reader.file_shuffle" },
	{ "reader.memory_shuffle", "reader.sample_shuffle" },
	{ NULL, NULL },
};

static const char *const free_sections[] = { "loader.",
					     "storage.storage_options.", NULL };

/* Sections, as candidates for a name that is none. */
static const char *const known_sections[] = { "model",
					      "model.parallelism",
					      "model.transformer",
					      "workflow",
					      "storage",
					      "storage.storage_options",
					      "dataset",
					      "dataset.hdf5",
					      "dataset.parquet",
					      "reader",
					      "train",
					      "evaluation",
					      "checkpoint",
					      "checkpoint.ksm",
					      "output",
					      "output.metric",
					      "metric",
					      "profiling",
					      "hydra",
					      "hydra.run",
					      "loader",
					      NULL };

const char *const pen__key_times[] = { "reader.preprocess_time",
				       "train.computation_time",
				       "evaluation.eval_time", NULL };

bool pen__starts_with(const char *s, const char *prefix)
{
	return strncmp(s, prefix, strlen(prefix)) == 0;
}

/* Is `name` equal to `key`, or below it? */
static bool is_or_below(const char *name, const char *key)
{
	const size_t n = strlen(key);

	return !strncmp(name, key, n) && (!name[n] || name[n] == '.');
}

/* Puts `now` in place of the first n bytes of name. */
static bool replace(char *name, size_t n, const char *now)
{
	char rest[PEN_KEY_MAX];

	snprintf(rest, sizeof(rest), "%s", name + n);
	return snprintf(name, PEN_KEY_MAX, "%s%s", now, rest) < PEN_KEY_MAX;
}

static bool is_free(const char *name)
{
	for (size_t i = 0; free_sections[i]; i++)
		if (pen__starts_with(name, free_sections[i]) &&
		    name[strlen(free_sections[i])])
			return true;
	return false;
}

/* "model" is a section today, and was a name: only the bare word is old. */
static bool is_old(const char *name, const struct alias *a)
{
	return strchr(a->old, '.') ? is_or_below(name, a->old)
				   : !strcmp(name, a->old);
}

bool pen__key_resolve(const char *given, struct pen_config_key *k)
{
	*k = (struct pen_config_key){ .rank = 1 };
	if (snprintf(k->name, sizeof(k->name), "%s", given) >=
	    (int)sizeof(k->name))
		return false;
	for (const struct alias *a = sections; a->old; a++)
		if (k->name[strlen(a->old)] == '.' &&
		    is_or_below(k->name, a->old)) {
			snprintf(k->old, sizeof(k->old), "%s", a->old);
			snprintf(k->now, sizeof(k->now), "%s", a->now);
			k->rank = a == sections ? 2 : 0;
			replace(k->name, strlen(a->old), a->now);
			break;
		}
	k->opt = pen__opt_find(pen__config_opts, k->name);
	for (const struct alias *a = aliases; !k->opt && a->old; a++)
		if (is_old(k->name, a)) {
			snprintf(k->old, sizeof(k->old), "%s", given);
			k->rank = 0;
			if (!replace(k->name, strlen(a->old), a->now))
				return false;
			snprintf(k->now, sizeof(k->now), "%s", k->name);
			k->opt = pen__opt_find(pen__config_opts, k->name);
			break;
		}
	k->free = !k->opt && is_free(k->name);
	return true;
}

bool pen__key_is_section(const char *name)
{
	const size_t n = strlen(name);

	for (const struct pen_opt *o = pen__config_opts; o->name; o++)
		if (!strncmp(o->name, name, n) && o->name[n] == '.')
			return true;
	for (const struct alias *a = sections; a->old; a++)
		if (!strcmp(name, a->old))
			return true;
	for (size_t i = 0; free_sections[i]; i++)
		if (!strncmp(free_sections[i], name, n) &&
		    free_sections[i][n] == '.')
			return true;
	return is_free(name) || pen__starts_with(name, "data_reader.") ||
	       !strcmp(name, "hydra");
}

struct pen_time_spec *pen__key_time(const char *name, struct pen_config *c)
{
	struct pen_time_spec *const of[] = { &c->reader.preprocess_time,
					     &c->train.computation_time,
					     &c->evaluation.eval_time };

	for (size_t i = 0; pen__key_times[i]; i++)
		if (!strcmp(name, pen__key_times[i]))
			return of[i];
	return NULL;
}

bool pen__key_in_time(const char *name)
{
	for (size_t i = 0; pen__key_times[i]; i++)
		if (pen__starts_with(name, pen__key_times[i]) &&
		    name[strlen(pen__key_times[i])] != '\0')
			return true;
	return false;
}

static const char *last_part(const char *name)
{
	const char *dot = strrchr(name, '.');

	return dot ? dot + 1 : name;
}

static bool in_section(const char *name, const char *of)
{
	const size_t n = (size_t)(last_part(of) - of);

	return n && !strncmp(name, of, n) && !strchr(name + n, '.');
}

/* The right word in the wrong place. */
static const char *misplaced(const char *word)
{
	for (const struct pen_opt *o = pen__config_opts; o->name; o++)
		if (!pen__key_in_time(o->name) &&
		    !strcmp(last_part(o->name), word))
			return o->name;
	for (const struct alias *a = aliases; a->old; a++)
		if (!strcmp(last_part(a->old), word))
			return a->now;
	return NULL;
}

const char *pen__key_suggest(const char *name)
{
	struct pen_guess near = { 0 }, section = { 0 }, full = { 0 },
			 last = { 0 };
	const char *word = last_part(name), *found = misplaced(word);

	if (found)
		return found;
	for (const struct pen_opt *o = pen__config_opts; o->name; o++) {
		/* what they share in front must not make them alike */
		if (in_section(o->name, name))
			pen__guess(&near, word, last_part(o->name), o->name);
		else
			pen__guess(&full, name, o->name, o->name);
		if (!pen__key_in_time(o->name))
			pen__guess(&last, word, last_part(o->name), o->name);
	}
	for (const char *const *k = known_sections; *k; k++)
		pen__guess(&section, name, *k, *k);
	return near.best      ? near.best
	       : section.best ? section.best
	       : full.best    ? full.best
			      : last.best;
}
