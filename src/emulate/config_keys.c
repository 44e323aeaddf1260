/*
 * Every key of a workload: its type, default and bounds. The parser, the
 * printer and the help use this table. It is in the order in which it is
 * printed, with each section contiguous. The bounds ensure that no later
 * product of sizes overflows.
 *
 * Below it: old names, sections, and suggestions for unknown names. DLIO
 * silently ignores unknown keys, so that a typing error measures something else
 * than intended; here every key must exist.
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
/* A time: a number of seconds or a distribution. */
#define SPEC(key, to, h)                                                       \
	NUM(DOUBLE, key, to.mean, "0", 0, TIME, h),                            \
		PICK(key ".type", to.type, "normal", pen__draw_names,          \
		     "distribution"),                                          \
		NUM(DOUBLE, key ".mean", to.mean, "0", 0, TIME,                \
		    "mean in seconds (normal)"),                               \
		NUM(DOUBLE, key ".stdev", to.stdev, "0", 0, TIME,              \
		    "standard deviation in seconds (normal)"),                 \
		NUM(DOUBLE, key ".min", to.min, "0", 0, TIME,                  \
		    "minimum in seconds (uniform)"),                           \
		NUM(DOUBLE, key ".max", to.max, "0", 0, TIME,                  \
		    "maximum in seconds (uniform)"),                           \
		NUM(DOUBLE, key ".shape", to.shape, "0", 0, TIME,              \
		    "shape (gamma)"),                                          \
		NUM(DOUBLE, key ".scale", to.scale, "0", 0, TIME,              \
		    "scale in seconds (gamma, exponential)"),                  \
		NUM(DOUBLE, key ".lam", to.lam, "0", 0, TIME,                  \
		    "rate lambda (poisson)"),                                  \
		NUM(DOUBLE, key "_stdev", to.stdev, "0", 0, TIME,              \
		    "alias of .stdev")

#define TIME 1e6 /* seconds: a longer time is a mistake */
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

#define UNUSED "accepted for compatibility; no effect"
#define PLUGIN "Python class; not supported"
#define PARQUET "Parquet only (not supported yet)"

const struct pen_opt pen__config_opts[] = {
	PICK("framework", framework, "tensorflow", frameworks,
	     "framework to emulate (a label; sets the default "
	     "reader.data_loader)"),

	TEXT("model.name", model.name, "default",
	     "name of the model; used in the default results directory"),
	TEXT("model.type", model.type, NULL,
	     "transformer: write checkpoints layer by layer"),
	NUM(SIZE, "model.model_size_bytes", model.size_bytes, "10240", 0, BYTES,
	    "size of the model in a checkpoint (not for transformers)"),
	PICK("model.model_datatype", model.model_datatype, "fp16", datatypes,
	     "data type of parameters in a checkpoint"),
	PICK("model.optimizer_datatype", model.optimizer_datatype, "fp32",
	     datatypes, "data type of optimizer state in a checkpoint"),
	LIST("model.optimization_groups", model.optimization_groups,
	     "sizes of the optimizer tensors in bytes, instead of the formula"),
	NUM(INT, "model.num_layers", model.num_layers, "-1", -1, PARTS,
	    "number of transformer layers (-1: no layers in checkpoints)"),
	LIST("model.layer_parameters", model.layer_parameters,
	     "sizes of the tensors of a layer in bytes, instead of the "
	     "formula"),
	NUM(INT, "model.parallelism.tensor", model.tensor, "1", 1, PARTS,
	    "tensor parallelism: ranks that share a layer"),
	NUM(INT, "model.parallelism.pipeline", model.pipeline, "1", 1, PARTS,
	    "pipeline parallelism: number of pipeline stages"),
	NUM(INT, "model.parallelism.data", model.data, "-1", -1, PARTS,
	    "data parallelism, with checkpoint.mode=subset (-1: from the "
	    "number of ranks)"),
	NUM(INT, "model.parallelism.zero_stage", model.zero_stage, "0", 0, 3,
	    "ZeRO stage, 0 to 3"),
	NUM(INT, "model.transformer.vocab_size", model.vocab_size, "32000", 1,
	    0x1p30, "size of the vocabulary"),
	NUM(INT, "model.transformer.hidden_size", model.hidden_size, "2048", 1,
	    0x1p20, "hidden size"),
	NUM(INT, "model.transformer.ffn_hidden_size", model.ffn_hidden_size,
	    "8192", 1, 0x1p22, "hidden size of the feed-forward network"),
	NUM(INT, "model.transformer.num_attention_heads",
	    model.num_attention_heads, "32", 1, 0x1p20,
	    "number of attention heads"),
	NUM(INT, "model.transformer.num_kv_heads", model.num_kv_heads, "8", 1,
	    0x1p20, "number of key/value heads"),

	FLAG("workflow.generate_data", workflow.generate_data, "false",
	     "generate the data set first"),
	FLAG("workflow.train", workflow.train, "true", "train on the data set"),
	FLAG("workflow.evaluation", workflow.evaluation, "false",
	     "evaluate between epochs"),
	FLAG("workflow.checkpoint", workflow.checkpoint, "false",
	     "write checkpoints (with train=false: checkpoints only)"),
	FLAG("workflow.profiling", workflow.profiling, "false",
	     "run the profiler set by profiling.profiler"),
	TEXT("workflow.query", workflow.query, NULL,
	     "print the value of this key and exit"),
	FLAG("workflow.debug", unused.debug, "false", UNUSED),

	PICK("storage.storage_type", storage.type, "local_fs", storages,
	     "type of storage (direct_fs: local_fs with reader.odirect)"),
	TEXT("storage.storage_root", storage.root, "./",
	     "directory that dataset.data_folder is relative to"),
	TEXT("storage.storage_library", unused.storage_library, NULL, UNUSED),
	NUM(DOUBLE, "storage.post_generation_settle_seconds",
	    unused.settle_seconds, "0", 0, TIME, UNUSED),

	{ .name = "dataset.format",
	  .type = PEN_OPT_STR,
	  .off = OFF(dataset.format),
	  .dflt = "tfrecord",
	  .choices = formats,
	  .help = "format of the files, also used as their suffix" },
	NUM(COUNT, "dataset.num_files_train", dataset.num_files_train, "8", 0,
	    FILES, "number of training files"),
	NUM(COUNT, "dataset.num_files_eval", dataset.num_files_eval, "0", 0,
	    FILES, "number of evaluation files"),
	NUM(COUNT, "dataset.num_samples_per_file", dataset.num_samples_per_file,
	    "1", 1, SAMPLES, "samples per file"),
	NUM(DOUBLE, "dataset.record_length_bytes", dataset.record_length,
	    "65536", 1, BYTES,
	    "bytes per sample, rounded down to a square number"),
	NUM(DOUBLE, "dataset.record_length_bytes_stdev",
	    dataset.record_length_stdev, "0", 0, BYTES,
	    "standard deviation of the sample size between files"),
	NUM(DOUBLE, "dataset.record_length_bytes_resize",
	    dataset.record_length_resize, "0", 0, BYTES,
	    "bytes per sample passed to the model (0: as read)"),
	LIST("dataset.record_dims", dataset.record_dims,
	     "shape of a sample, instead of record_length_bytes"),
	TEXT("dataset.record_element_type", dataset.record_element_type,
	     "uint8", "NumPy dtype of the elements of a sample"),
	NUM(COUNT, "dataset.record_element_bytes", unused.record_element_bytes,
	    "0", 0, 64, "no effect; follows from record_element_type"),
	NUM(COUNT, "dataset.hdf5.num_dset_per_record", dataset.hdf5_num_dset,
	    "1", 1, 0x1p16,
	    "number of HDF5 data sets that a sample is split into"),
	LIST("dataset.hdf5.chunk_dims", dataset.hdf5_chunk_dims,
	     "HDF5 chunk shape, sample axis first"),
	LIST("dataset.hdf5.max_shape", dataset.hdf5_max_shape,
	     "HDF5 maximum shape of a sample"),
	TEXT("dataset.data_folder", dataset.data_folder, "./data/",
	     "directory that contains train/ and valid/"),
	NUM(COUNT, "dataset.num_subfolders_train", dataset.num_subfolders_train,
	    "0", 0, 0x1p20, "subdirectories of train/ (0 or 1: none)"),
	NUM(COUNT, "dataset.num_subfolders_eval", dataset.num_subfolders_eval,
	    "0", 0, 0x1p20, "subdirectories of valid/ (0 or 1: none)"),
	TEXT("dataset.file_prefix", dataset.file_prefix, "img",
	     "prefix of file names"),
	PICK("dataset.compression", dataset.compression, "none", compressions,
	     "compression of the files (hdf5: gzip, lzf; npz: zip)"),
	NUM(INT, "dataset.compression_level", dataset.compression_level, "4", 0,
	    9, "compression level of gzip and zip"),
	FLAG("dataset.enable_chunking", dataset.enable_chunking, "false",
	     "no effect; use dataset.hdf5.chunk_dims"),
	NUM(SIZE, "dataset.chunk_size", dataset.chunk_size, "0", 0, BYTES,
	    "no effect; use dataset.hdf5.chunk_dims"),
	NUM(SIZE, "dataset.generation_buffer_size",
	    dataset.generation_buffer_size, "2147483648", 1, BYTES, UNUSED),
	FLAG("dataset.keep_files", dataset.keep_files, "true",
	     "keep the data set after the run"),
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
	    1, "compressibility of generated data (0: noise, 1: zeros)"),
	NUM(COUNT, "dataset.seed", dataset.seed, "10", 0, 0x1p53,
	    "seed of generated data"),

	PICK("reader.data_loader", reader.data_loader, "tensorflow", loaders,
	     "data loader to emulate (a label; synthetic: read no files)"),
	NUM(COUNT, "reader.batch_size", reader.batch_size, "1", 1, 0x1p24,
	    "samples per batch and accelerator"),
	NUM(COUNT, "reader.batch_size_eval", reader.batch_size_eval, "1", 1,
	    0x1p24, "samples per batch and accelerator in evaluation"),
	NUM(INT, "reader.read_threads", reader.read_threads, "1", 0, 1024,
	    "reader threads per accelerator"),
	NUM(INT, "reader.computation_threads", reader.computation_threads, "1",
	    0, 1024, UNUSED),
	NUM(INT, "reader.prefetch_size", reader.prefetch_size, "2", 0, 4096,
	    "prefetch depth: batches per accelerator (at least read_threads)"),
	PICK("reader.file_shuffle", reader.file_shuffle, "off", shuffles,
	     "shuffle files (seed: same order in every run)"),
	PICK("reader.sample_shuffle", reader.sample_shuffle, "off", shuffles,
	     "shuffle samples (seed: same order in every run)"),
	NUM(COUNT, "reader.shuffle_size", reader.shuffle_size, "1024", 0,
	    SAMPLES, UNUSED),
	PICK("reader.read_type", reader.read_type, "on_demand", read_types,
	     "memory: read the entire data set into memory first"),
	PICK("reader.file_access", unused.file_access, "multi", accesses,
	     UNUSED),
	NUM(SIZE, "reader.transfer_size", reader.transfer_size, "0", 0, 0x1p34,
	    "bytes per read (0: automatic)"),
	FLAG("reader.odirect", reader.odirect, "false",
	     "bypass the page cache (O_DIRECT)"),
	FLAG("reader.dont_use_mmap", reader.dont_use_mmap, "false",
	     "read files instead of mapping them"),
	SPEC("reader.preprocess_time", reader.preprocess_time,
	     "emulated preprocessing per sample in seconds"),
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
	     "shape of a sample passed to the model"),
	TEXT("reader.transformed_record_element_type", reader.transformed_type,
	     "uint8", "NumPy dtype of a sample passed to the model"),
	NUM(INT, "reader.write_threads", unused.write_threads, "1", 0, 1024,
	    UNUSED),
	FLAG("reader.decode", reader.decode, "true",
	     "decode samples (false: read the bytes only)"),
	PICK("reader.page_cache", reader.page_cache, "keep", page_caches,
	     "before every epoch: keep, drop the files, or drop_all (needs "
	     "root)"),

	NUM(COUNT, "train.epochs", train.epochs, "1", 0, EPOCHS,
	    "number of epochs"),
	SPEC("train.computation_time", train.computation_time,
	     "emulated compute time per step in seconds"),
	NUM(INT, "train.total_training_steps", train.total_training_steps, "-1",
	    -1, STEPS, "maximum steps per epoch (-1: all)"),
	NUM(COUNT, "train.seed", train.seed, "123", 0, 4294967295.0,
	    "seed of sample order and emulated times"),
	FLAG("train.seed_change_epoch", train.seed_change_epoch, "true",
	     "use a different order in every epoch"),
	FLAG("train.barrier", train.barrier, "true",
	     "synchronise all accelerators after every step"),

	SPEC("evaluation.eval_time", evaluation.eval_time,
	     "emulated compute time per evaluation step in seconds"),
	NUM(COUNT, "evaluation.eval_after_epoch", evaluation.eval_after_epoch,
	    "1", 0, EPOCHS, "first epoch followed by an evaluation"),
	NUM(COUNT, "evaluation.epochs_between_evals",
	    evaluation.epochs_between_evals, "1", 0, EPOCHS,
	    "epochs between evaluations (0: evaluate after every epoch)"),

	TEXT("checkpoint.checkpoint_folder", checkpoint.folder,
	     "./checkpoints/", "directory for checkpoints"),
	NUM(COUNT, "checkpoint.checkpoint_after_epoch", checkpoint.after_epoch,
	    "1", 0, EPOCHS, "first epoch followed by a checkpoint"),
	NUM(COUNT, "checkpoint.epochs_between_checkpoints",
	    checkpoint.epochs_between, "1", 1, EPOCHS,
	    "epochs between checkpoints"),
	NUM(INT, "checkpoint.steps_between_checkpoints",
	    checkpoint.steps_between, "-1", -1, STEPS,
	    "steps between checkpoints, instead of epochs (-1: off)"),
	PICK("checkpoint.type", unused.checkpoint_type, "rank_zero", places,
	     "no effect; follows from model.parallelism"),
	FLAG("checkpoint.fsync", checkpoint.fsync, "false",
	     "call fsync before a checkpoint counts as written"),
	FLAG("checkpoint.recovery_rank_shift", checkpoint.recovery_rank_shift,
	     "false", "read the checkpoint that a rank of the next node wrote"),
	NUM(DOUBLE, "checkpoint.time_between_checkpoints",
	    checkpoint.time_between, "-1", -TIME, TIME,
	    "pause before each checkpoint in seconds (with train=false)"),
	NUM(INT, "checkpoint.num_checkpoints_write", checkpoint.num_write, "-1",
	    -1, EPOCHS, "number of checkpoints to write (with train=false)"),
	NUM(INT, "checkpoint.num_checkpoints_read", checkpoint.num_read, "-1",
	    -1, EPOCHS,
	    "number of checkpoints to read back (with train=false)"),
	FLAG("checkpoint.rank_sync", checkpoint.rank_sync, "false",
	     "synchronise all ranks after every checkpoint"),
	PICK("checkpoint.mode", checkpoint.mode, "default", modes,
	     "subset: run fewer ranks than model.parallelism needs"),
	FLAG("checkpoint.randomize_tensor", checkpoint.randomize_tensor, "true",
	     "fill tensors with random data (false: ones)"),
	FLAG("checkpoint.ksm", checkpoint.ksm, "false", UNUSED),
	NUM(INT, "checkpoint.ksm.madv_mergeable_id",
	    checkpoint.ksm_mergeable_id, "12", 0, 1024,
	    "madvise() advice number"),
	NUM(DOUBLE, "checkpoint.ksm.high_ram_trigger",
	    checkpoint.ksm_high_ram_trigger, "30", 0, 100,
	    "memory use in percent that starts waiting"),
	NUM(INT, "checkpoint.ksm.low_ram_exit", checkpoint.ksm_low_ram_exit,
	    "15", 0, 100, "memory use in percent that ends waiting"),
	NUM(INT, "checkpoint.ksm.await_time", checkpoint.ksm_await_time, "200",
	    0, TIME, "maximum wait in seconds"),
	TEXT("checkpoint.checkpoint_mechanism_classname",
	     unused.checkpoint_class, NULL, PLUGIN),
	FLAG("checkpoint.odirect", checkpoint.odirect, "false",
	     "bypass the page cache (O_DIRECT)"),
	FLAG("checkpoint.verify", checkpoint.verify, "true",
	     "compare checkpoints that are read with what was written"),
	NUM(SIZE, "checkpoint.memory", checkpoint.memory, "64MiB", 1 << 20,
	    0x1p40, "memory budget per process"),
	NUM(SIZE, "checkpoint.block_size", checkpoint.block_size, "4MiB", 4096,
	    0x1p30, "bytes per write"),

	TEXT("output.folder", output.folder, NULL,
	     "directory for results (empty: hydra.run.dir)"),
	TEXT("output.log_file", output.log_file, "dlio.log",
	     "name of the log file in that directory"),
	NUM(COUNT, "output.metric.exclude_start_steps",
	    output.exclude_start_steps, "1", 0, STEPS,
	    "steps excluded from the figures at the start of a block"),
	NUM(COUNT, "output.metric.exclude_end_steps", output.exclude_end_steps,
	    "0", 0, STEPS,
	    "steps excluded from the figures at the end of a block"),
	FLAG("output.trace", output.trace, "false",
	     "write a trace for Perfetto alongside the result"),

	NUM(DOUBLE, "metric.au", au, "0.90", 0, 100,
	    "target accelerator utilisation (a fraction)"),

	PICK("profiling.profiler", profiling.profiler, "iostat", profilers,
	     "profiler to run with workflow.profiling"),
	TEXT("profiling.iostat_devices", profiling.iostat_devices, NULL,
	     "devices to profile (empty: the device that stores the data)"),

	NUM(COUNT, "accelerators", accelerators, "1", 1, 65536,
	    "accelerators emulated by each process"),

	TEXT("hydra.run.dir", run_dir, NULL,
	     "directory for results (empty: hydra_log/MODEL/TIME)"),
	TEXT("hydra.output_subdir", output_subdir, ".hydra",
	     "subdirectory of hydra.run.dir for the settings"),
	{ .name = NULL },
};

/* --- names --- */

/* Also a prefix of longer keys: train.eval_time.mean. */
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

/* Candidates for suggestions. */
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

/* True if `name` is `key` or below it. */
static bool is_or_below(const char *name, const char *key)
{
	const size_t n = strlen(key);

	return !strncmp(name, key, n) && (!name[n] || name[n] == '.');
}

/* Replaces the first n bytes of name by `now`. */
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

/* "model" is now a section and used to be a name: only the bare word is old. */
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

/* A known name in the wrong section. */
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
		/* a common prefix must not make them similar */
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
