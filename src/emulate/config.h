/*
 * The settings of a workload: the keys of DLIO and additional ones. Every value
 * records its origin. Values come from a YAML file, then from key=value
 * arguments; an unknown key or a wrong type is an error with a suggestion.
 *
 * Keys are dotted paths below `workload` ("dataset.num_files_train"). Settings
 * below `loader.` are passed to the loader unchanged (loader.store=fault,
 * loader.store.read_delay=1ms): see `penstock load --help`.
 */
#ifndef PEN_EMULATE_CONFIG_H
#define PEN_EMULATE_CONFIG_H

#include <stdbool.h>

#include "base/opt.h"
#include "base/text.h"
#include "base/pairs.h"

enum pen_framework { PEN_TENSORFLOW, PEN_PYTORCH };
enum pen_shuffle { PEN_SHUFFLE_OFF, PEN_SHUFFLE_SEED, PEN_SHUFFLE_RANDOM };
enum pen_read_type { PEN_READ_ON_DEMAND, PEN_READ_MEMORY };
enum pen_page_cache {
	PEN_CACHE_KEEP,	   /* leave it alone */
	PEN_CACHE_DROP,	   /* files of the data set, before every epoch */
	PEN_CACHE_DROP_ALL /* entire page cache; needs root */
};
enum pen_draw_type {
	PEN_DRAW_NORMAL, /* the default: stdev 0 is a constant */
	PEN_DRAW_UNIFORM,
	PEN_DRAW_GAMMA,
	PEN_DRAW_EXPONENTIAL,
	PEN_DRAW_POISSON
};

enum pen_storage_type {
	PEN_STORAGE_LOCAL_FS,
	PEN_STORAGE_PARALLEL_FS,
	PEN_STORAGE_DIRECT_FS, /* local with reader.odirect */
	PEN_STORAGE_S3,	       /* this and the next: rejected by settle */
	PEN_STORAGE_AISTORE
};
enum pen_data_loader { /* labels, except synthetic: no I/O */
		       PEN_LOADER_TENSORFLOW,
		       PEN_LOADER_PYTORCH,
		       PEN_LOADER_DALI,
		       PEN_LOADER_NATIVE_DALI,
		       PEN_LOADER_CUSTOM, /* rejected by settle */
		       PEN_LOADER_NONE,
		       PEN_LOADER_SYNTHETIC
};
enum pen_compression {
	PEN_COMPRESS_NONE,
	PEN_COMPRESS_GZIP, /* hdf5 */
	PEN_COMPRESS_LZF,  /* hdf5 */
	PEN_COMPRESS_ZIP,  /* npz */
	PEN_COMPRESS_OTHER /* this and above: rejected by settle */
};
enum pen_profiler {
	PEN_PROFILER_NONE,
	PEN_PROFILER_IOSTAT,
	PEN_PROFILER_DARSHAN,
	PEN_PROFILER_TENSORBOARD
};

/* A time in seconds: a number, or a distribution to draw from. */
struct pen_time_spec {
	int type; /* enum pen_draw_type */
	double mean, stdev, min, max, shape, scale, lam;
};

struct pen_config {
	int framework;

	struct { /* model */
		char *name, *type;
		uint64_t size_bytes;
		int model_datatype, optimizer_datatype; /* pen_state_dtype */
		struct pen_opt_list optimization_groups, layer_parameters;
		int64_t num_layers;
		int64_t tensor, pipeline, data, zero_stage;
		int64_t vocab_size, hidden_size, ffn_hidden_size,
			num_attention_heads, num_kv_heads;
	} model;

	struct { /* workflow */
		bool generate_data, train, evaluation, checkpoint, profiling;
		char *query;
	} workflow;

	struct {	  /* storage */
		int type; /* pen_storage_type */
		char *root;
		struct pen_pairs options; /* storage_options.X=Y */
	} storage;

	struct { /* dataset */
		char *format;
		uint64_t num_files_train, num_files_eval, num_samples_per_file;
		double record_length, record_length_stdev, record_length_resize;
		struct pen_opt_list record_dims;
		char *record_element_type; /* as NumPy names it */
		uint64_t hdf5_num_dset;
		struct pen_opt_list hdf5_chunk_dims, hdf5_max_shape;
		char *data_folder, *file_prefix;
		uint64_t num_subfolders_train, num_subfolders_eval;
		int compression; /* pen_compression */
		int64_t compression_level;
		bool enable_chunking;
		uint64_t chunk_size, generation_buffer_size;
		bool keep_files;
		/* not in DLIO */
		double compressibility; /* 0: noise, 1: zeros */
		uint64_t seed;		/* seed of the content */
	} dataset;

	struct {		 /* reader */
		int data_loader; /* pen_data_loader */
		uint64_t batch_size, batch_size_eval;
		int64_t read_threads, computation_threads, prefetch_size;
		int file_shuffle, sample_shuffle; /* pen_shuffle */
		uint64_t shuffle_size;
		int read_type; /* pen_read_type */
		uint64_t transfer_size;
		bool odirect, dont_use_mmap, pin_memory;
		struct pen_time_spec
			preprocess_time; /* per sample, in a worker */
		struct pen_opt_list transformed_dims;
		char *transformed_type;
		/* not in DLIO */
		bool decode;	/* false: only read the bytes */
		int page_cache; /* pen_page_cache */
	} reader;

	struct { /* train */
		uint64_t epochs;
		struct pen_time_spec computation_time;
		int64_t total_training_steps; /* < 0: all */
		uint64_t seed;
		bool seed_change_epoch;
		bool barrier; /* not in DLIO: synchronise after every step */
	} train;

	struct { /* evaluation */
		struct pen_time_spec eval_time;
		uint64_t eval_after_epoch, epochs_between_evals;
	} evaluation;

	struct { /* checkpoint */
		char *folder;
		uint64_t after_epoch, epochs_between;
		int64_t steps_between; /* >= 0: by steps */
		bool fsync, recovery_rank_shift, rank_sync, randomize_tensor;
		int mode; /* 0 default, 1 subset */
		double time_between;
		int64_t num_write, num_read;
		bool ksm; /* any checkpoint.ksm.* key is set */
		int64_t ksm_mergeable_id, ksm_low_ram_exit, ksm_await_time;
		double ksm_high_ram_trigger;
		/* not in DLIO */
		bool odirect, verify;
		uint64_t memory;     /* budget per process */
		uint64_t block_size; /* bytes per write */
	} checkpoint;

	struct {	      /* output */
		char *folder; /* NULL: run_dir */
		char *log_file;
		uint64_t exclude_start_steps, exclude_end_steps;
		bool trace; /* not in DLIO: write a Chrome trace */
	} output;

	double au; /* metric.au: target utilisation, a fraction */

	struct {
		int profiler;	      /* pen_profiler */
		char *iostat_devices; /* "sda, sdb" */
	} profiling;

	uint64_t accelerators;	 /* not in DLIO: emulated by this process */
	struct pen_pairs loader; /* loader.X=Y */

	/* Keys of Hydra. run_dir contains the time of settling: in a job, use
	 * that of rank 0. */
	char *run_dir, *output_subdir;

	struct { /* keys of DLIO without effect here: validated and kept */
		bool debug, use_s3dlio_gen, skip_listing;
		int checkpoint_type, file_access, multiprocessing, sampler;
		char *data_loader_class, *reader_class, *checkpoint_class;
		char *storage_library, *data_gen_method;
		char *parquet_columns, *parquet_partition, *parquet_read_mode;
		uint64_t record_element_bytes, parquet_row_group, parquet_batch,
			listing_interval;
		int64_t write_threads;
		double settle_seconds;
	} unused;
};

/* --- origin of values --- */

struct pen_setting {
	char *key;	 /* canonical, dotted */
	char *value;	 /* as written; lists as [a, b] */
	char *origin;	 /* "workloads/unet3d.yaml:12:3", "argument" */
	unsigned source; /* the n-th YAML; PEN_FROM_ARGS */
	unsigned rank;	 /* if a source uses two names, the higher rank wins */
};
#define PEN_FROM_ARGS UINT32_MAX

struct pen_settings {
	struct pen_setting *v; /* ordered by source; later ones win */
	size_t n;
	unsigned nsources;	   /* number of YAML texts read */
	bool lenient;		   /* unknown keys cause notes, as in DLIO */
	struct pen_text notes;	   /* one line each: old names, ignored keys */
	struct pen_text overrides; /* arguments as passed, one per line */
	char *workload;		   /* its name once selected */
	char *source;		   /* its file, or "built in: NAME" */
	char *config_dir;	   /* --config-dir, or NULL */
};

void pen__settings_init(struct pen_settings *);
void pen__settings_fini(struct pen_settings *);
/* Adds one setting with precedence over YAML. Resolves old names (with a note)
 * and checks that the key exists and the value has the right type, with a
 * suggestion if not. A value in brackets, braces or quotes is parsed as YAML.
 */
int pen__settings_set(struct pen_settings *, const char *key, const char *value,
		      const char *origin, struct pen_err *err);
/* Adds YAML text, with or without `workload:` at the top level; file is used in
 * origins. */
int pen__settings_yaml(struct pen_settings *, const char *text, size_t n,
		       const char *file, struct pen_err *err);
/*
 * Adds an argument in the syntax of Hydra or ours: workload=NAME,
 * ++workload.a.b=c, +workload.a.b=c, workload.a.b=c, a.b=c, hydra.run.dir=D,
 * hydra.output_subdir=D; lists as [1,2], maps as {a: 1}. pen__settings_load()
 * loads the workload, with lower precedence than all arguments.
 */
int pen__settings_arg(struct pen_settings *, const char *arg,
		      struct pen_err *err);
/* Loads the selected workload: from config_dir/workload/NAME.yaml, a file, or
 * the built-in ones. Arguments always take precedence. NULL: the workload set
 * by workload=NAME, or else "default". */
int pen__settings_load(struct pen_settings *, const char *name_or_file,
		       struct pen_err *err);

/* --- built-in workloads --- */

struct pen_workload {
	const char *name; /* "unet3d_h100" */
	const char *text; /* the YAML */
	size_t n;
};

/* NULL past the end; sorted by name. */
const struct pen_workload *pen__workload_at(size_t i);
const struct pen_workload *pen__workload_find(const char *name);
/* The comment at the top of its file, as one line. */
void pen__workload_about(const struct pen_workload *, char *buf, size_t cap);

/* --- configuration --- */

/* Fills c from defaults and settings, and validates combinations of values. On
 * failure c is empty. */
int pen__config_settle(struct pen_config *c, struct pen_settings *,
		       struct pen_err *err);
void pen__config_fini(struct pen_config *c);
/* Prints every key with its value and, with origins, its origin; as YAML that
 * reads back to the same values. */
void pen__config_print(const struct pen_config *c, const struct pen_settings *,
		       bool origins, struct pen_text *out);
/* The value of one dotted key as text; PEN_EINVAL if it does not exist. */
int pen__config_query(const struct pen_config *c, const char *key,
		      struct pen_text *out, struct pen_err *err);
/* Adds all values, typed, to the open JSON object, nested as in YAML. */
void pen__config_json(const struct pen_config *c, struct pen_text *json);
/* Writes {config,hydra,overrides}.yaml to DIR (created if missing), as Hydra
 * does. */
int pen__config_save_hydra(const struct pen_config *c,
			   const struct pen_settings *, const char *dir,
			   struct pen_err *err);
/* All keys, for help and documentation. */
extern const struct pen_opt pen__config_opts[];

/* --- sizes --- */

/* data_loader=synthetic: samples are generated in memory. */
static inline bool pen__is_synthetic(const struct pen_config *c)
{
	return c->reader.data_loader == PEN_LOADER_SYNTHETIC;
}
/* Bytes per sample as configured (before encoding). */
uint64_t pen__config_sample_bytes(const struct pen_config *);
/* Approximate bytes on disk of all files, train and eval. */
double pen__config_data_bytes(const struct pen_config *);
/* Number of parameters; 0: not a transformer. */
double pen__config_parameters(const struct pen_config *);
/* Approximate bytes of one checkpoint, of one replica of the model. */
double pen__config_checkpoint_bytes(const struct pen_config *);
/* PEN_NDTYPES: not a NumPy type. */
enum pen_dtype pen__config_dtype(const char *numpy_name);

#endif
