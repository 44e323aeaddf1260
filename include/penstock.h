/*
 * penstock: load training data of any format from any store into ready
 * batches, and measure how fast that goes.
 *
 * This is the whole public interface. Conventions:
 *  - A function that can fail returns 0 or a negative pen_code and, when err
 *    is not NULL, fills it once with what went wrong, where, and what to do.
 *  - `**out` belongs to the caller; a returned plain pointer is borrowed.
 *  - Objects may be used from one thread at a time unless stated otherwise.
 *  - A struct that may grow at its end is passed with its size, sizeof(*out):
 *    the library writes no more than that, and sets what it does not know yet
 *    to zero. All other structs stay as they are while the SONAME does.
 *  - The library never prints and never exits. What it keeps is in the objects
 *    it hands out, but for this, of which the process has one:
 *     - a SIGBUS handler, from the first file on that it maps: it turns reads
 *       past the end of a file that shrank into errors, and passes all else on
 *       to the handler that was there before;
 *     - fork handlers, from the first dictionary over TCP on: a child closes
 *       the sockets of its parent's;
 *     - MPI, from the first pen_ranks_open() under mpirun or srun on: started
 *       if it was not, with OMPI_MCA_mpi_yield_when_idle=1 in the environment
 *       unless that is set, and then ended at exit;
 *     - a count of allocations, which the library's own tests read.
 */
#ifndef PENSTOCK_H
#define PENSTOCK_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define PEN_API __attribute__((visibility("default")))
#define PEN_MUST __attribute__((warn_unused_result))

#define PEN_MAX_DIMS 32 /* as NumPy */
#define PEN_MAX_FIELDS 64

enum pen_code {
	PEN_AGAIN = 2, /* not an error: it is not there yet */
	PEN_END = 1,   /* not an error: the epoch is over */
	PEN_OK = 0,
	PEN_ENOMEM = -1, /* out of memory, or over the memory budget */
	PEN_EINVAL = -2, /* a setting or an argument is wrong */
	PEN_EIO = -3,	 /* the store failed; err->sys has errno */
	PEN_EDATA = -4,	 /* the bytes are damaged or contradict themselves */
	PEN_ENOTFOUND = -5,
	PEN_ESTALE = -6,  /* an object changed since it was indexed */
	PEN_ENOTSUP = -7, /* well-formed, but of a kind not supported */
	PEN_ECLOSED = -8, /* the loader was closed meanwhile */
};

/* The caller's storage; every function takes NULL when nobody asks. */
struct pen_err {
	int code;	 /* enum pen_code */
	int sys;	 /* errno where a system call failed, else 0 */
	char where[256]; /* the object: a path, a key, a setting */
	char msg[256];	 /* one line: what is wrong and what to do */
};

enum pen_dtype {
	PEN_BOOL,
	PEN_I8,
	PEN_U8,
	PEN_I16,
	PEN_U16,
	PEN_I32,
	PEN_U32,
	PEN_I64,
	PEN_U64,
	PEN_F16,
	PEN_F32,
	PEN_F64,
	PEN_F80, /* x86 long double in 16 bytes, NumPy's float128 */
	PEN_C64,
	PEN_C128,
	PEN_C160, /* two PEN_F80, NumPy's complex256 */
	PEN_NDTYPES
};

/* Bytes of one element. */
PEN_API size_t pen_dtype_size(enum pen_dtype);
PEN_API const char *pen_dtype_name(enum pen_dtype); /* "float32", ... */

enum pen_layout {
	PEN_DENSE,  /* every sample has the same shape */
	PEN_PADDED, /* shapes differ: filled up to the largest */
	PEN_RAGGED, /* shapes differ: values one after another + offsets */
	PEN_PACKED, /* lengths differ: several samples in a row (pack=) */
};

/* One named array of every sample. */
struct pen_field {
	char name[64];
	enum pen_dtype dtype;
	enum pen_layout layout;
	uint32_t ndim;
	int64_t shape[PEN_MAX_DIMS]; /* of one sample; -1 where it varies */
	uint64_t max_bytes;	     /* the largest sample's */
};

/*
 * One field of a batch. Dimension 0 is the sample, except that a ragged
 * tensor is one-dimensional: row i is data[offsets[i] .. offsets[i+1]) in
 * elements, and its shape is shapes[i*row_ndim ...]. Padded tensors carry
 * shapes, too. All memory belongs to the batch.
 *
 * A packed tensor (pack=N) is [batch_size, N]: sample i is the shapes[i]
 * elements from offsets[i] on, counted through all rows, and never leaves its
 * row; samples are in the order of their offsets, and what is in none of them
 * is filled. With it come two int32 tensors of the same shape, offsets and
 * shapes, named after the first packed field: NAME.segment, 1, 2, ... for the
 * samples of a row and 0 for filling, and NAME.position, an element's place in
 * its sample. Of a sample that was split (too_long=split) each piece counts as
 * a sample: its id, its labels and the like come again.
 */
struct pen_tensor {
	const char *name;
	void *data;
	size_t nbytes;
	enum pen_dtype dtype;
	enum pen_layout layout;
	uint32_t ndim;
	int64_t shape[PEN_MAX_DIMS + 1];
	uint32_t row_ndim;
	const int64_t *offsets; /* ragged, packed: nsamples + 1, in elements */
	const int64_t *shapes;	/* unless dense: nsamples x row_ndim */
	int pad_before; /* padded: filling comes first, the sample ends the row
			 */
};

/* Ready for the model. Reference-counted; content is yours until unref. */
struct pen_batch {
	uint64_t seq; /* 0, 1, 2, ... over all epochs of this loader */
	uint64_t epoch;
	uint64_t position; /* of its first sample in the epoch's global order */
	uint64_t end; /* position after it, of all ranks: where to resume */
	uint32_t nsamples;
	uint32_t nskipped;     /* left out by on_error=skip */
	uint32_t nsubstituted; /* replaced by on_error=substitute */
	uint32_t ntensors;
	const uint64_t *ids; /* which samples, in row order */
	const struct pen_tensor *tensors;
};

PEN_API void pen_batch_ref(struct pen_batch *);	  /* any thread */
PEN_API void pen_batch_unref(struct pen_batch *); /* any thread; NULL ok */

/*
 * What to load and how: `key=value` settings, all checked when set. The keys
 * are listed by pen_option_at() and in `penstock load --help`; store.X,
 * format.X and sampler.X reach the options of the chosen implementation. With
 * value NULL pen_spec_set() takes a setting back; with "format.", "store.", ...
 * all of those.
 */
struct pen_spec;
/* An empty spec: every setting has its default. Free it with pen_spec_free().
 */
PEN_API PEN_MUST int pen_spec_new(struct pen_spec **out, struct pen_err *err);
/* NULL is accepted. What was opened with it has a copy of its own. */
PEN_API void pen_spec_free(struct pen_spec *);
/* Checks the value at once; PEN_EINVAL suggests the nearest key or value. */
PEN_API PEN_MUST int pen_spec_set(struct pen_spec *, const char *key,
				  const char *value, struct pen_err *err);
/* "key=value" in one string */
PEN_API PEN_MUST int pen_spec_parse(struct pen_spec *, const char *setting,
				    struct pen_err *err);
/*
 * A setting as text that pen_spec_set() takes: what was set, or its default,
 * "" where it has none; buf is NUL-terminated and cut to cap. "sampler" is what
 * sampler= and shuffle= ask for together. PEN_ENOTFOUND: there is no such
 * setting, or an implementation's (store.X) that was not set.
 */
PEN_API int pen_spec_get(const struct pen_spec *, const char *key, char *buf,
			 size_t cap);
/* The same as a number; 0 where it is none. */
PEN_API uint64_t pen_spec_number(const struct pen_spec *, const char *key);
/* A second spec with the same settings and paths. */
PEN_API PEN_MUST int pen_spec_copy(struct pen_spec **out,
				   const struct pen_spec *,
				   struct pen_err *err);
/* Do the settings go together, and would store, format and sampler take
 * theirs? Looks at no data; opening checks the same. */
PEN_API PEN_MUST int pen_spec_check(const struct pen_spec *,
				    struct pen_err *err);
/* A path, glob or @list. May be called more than once: samples are in the
 * order of the calls, those of one directory or glob sorted by path. */
PEN_API PEN_MUST int pen_spec_add_path(struct pen_spec *, const char *path,
				       struct pen_err *err);
/* Forgets all paths that were added. */
PEN_API void pen_spec_clear_paths(struct pen_spec *);
/* The i-th of them, until the spec changes; NULL past the last. */
PEN_API const char *pen_spec_path(const struct pen_spec *, uint64_t i);

/*
 * What a spec has besides settings; copies of it have it as well. All that is
 * given here has to stay until what was opened with it is closed.
 *
 * on_stop: asked now and then while data is indexed, by any thread; an answer
 * other than 0 ends that with PEN_ECLOSED.
 * on_rows: called by the loader's threads, numbered from 0, for the rows they
 * have made, n at a time, before the batch is delivered. It may take long, as
 * emulated preprocessing does, and counts as pen_stats.preprocess_ns.
 * use_ranks: the ranks that share cache=ddict, instead of ones of the loader's.
 * keep_index: for who opens the same data again and again with other settings:
 * it is listed and indexed once.
 */
struct pen_ranks;
struct pen_kept_index;
/* See above; stop NULL: nothing is asked. */
PEN_API void pen_spec_on_stop(struct pen_spec *, int (*stop)(void *arg),
			      void *arg);
/* See above; rows NULL: nothing is called. */
PEN_API void pen_spec_on_rows(struct pen_spec *,
			      void (*rows)(void *arg, uint32_t thread,
					   uint32_t n),
			      void *arg);
/* See above; NULL: the loader opens its own. */
PEN_API void pen_spec_use_ranks(struct pen_spec *, struct pen_ranks *);
/* See above; NULL: the index is dropped with the data set. */
PEN_API void pen_spec_keep_index(struct pen_spec *, struct pen_kept_index *);
/* An empty one, for pen_spec_keep_index(). */
PEN_API PEN_MUST int pen_kept_index_new(struct pen_kept_index **out,
					struct pen_err *err);
PEN_API void pen_kept_index_free(struct pen_kept_index *); /* NULL ok */

/*
 * What this build has, so that programs need no list of their own. A kind is
 * "format", "store", "decoder" or "sampler"; NULL past the last.
 */
PEN_API const char *pen_name_at(const char *kind, uint32_t i);
/* One line about it, or NULL. */
PEN_API const char *pen_help_of(const char *kind, const char *name);
struct pen_option {
	const char *name, *help;
	const char *dflt;	    /* as a user would write it, or NULL */
	const char *const *choices; /* NULL-terminated, or NULL: any value */
};
/* An option of one of them, or, with kind "loader" or "ddict" and name NULL, a
 * setting; size is that of *out.
 * PEN_ENOTFOUND past the last, or when there is no such thing. */
PEN_API int pen_option_at(const char *kind, const char *name, uint32_t i,
			  struct pen_option *out, size_t size);
/* The format of a file by the suffix of its name; NULL: none. */
PEN_API const char *pen_format_for(const char *file_name);
/* The i-th suffix of its files; NULL past the last. */
PEN_API const char *pen_format_suffix(const char *format, uint32_t i);
/* Is a store in this build, and does this machine let it be used? 1 or 0 */
PEN_API int pen_store_usable(const char *name);

/* A data set: what is there, without loading it. */
struct pen_dataset;
/* Lists and indexes the objects of the paths; copies the spec. */
PEN_API PEN_MUST int pen_dataset_open(struct pen_dataset **out,
				      const struct pen_spec *,
				      struct pen_err *err);
/* NULL is accepted. */
PEN_API void pen_dataset_close(struct pen_dataset *);
/* How many samples there are, */
PEN_API uint64_t pen_dataset_nsamples(const struct pen_dataset *);
/* objects that hold them, */
PEN_API uint64_t pen_dataset_nobjects(const struct pen_dataset *);
/* bytes of all objects, */
PEN_API uint64_t pen_dataset_nbytes(const struct pen_dataset *);
/* and fields of a sample. */
PEN_API uint32_t pen_dataset_nfields(const struct pen_dataset *);
/* One of them, i < nfields; until close. */
PEN_API const struct pen_field *pen_dataset_field(const struct pen_dataset *,
						  uint32_t i);
/* The format that is used: what was set, or found. */
PEN_API const char *pen_dataset_format(const struct pen_dataset *);
/* The store that is used: what store=auto chose. */
PEN_API const char *pen_dataset_store(const struct pen_dataset *);
/* Its own copy of the spec, until close. */
PEN_API const struct pen_spec *pen_dataset_spec(const struct pen_dataset *);
/* More about it. */
struct pen_dataset_info {
	const char *store_reason; /* why this store: one line, until close */
	const char *source;  /* the store that bytes come from; another one than
				pen_dataset_store() under a cache */
	double cached;	     /* share in the page cache at open; < 0: unknown */
	uint64_t per_object; /* samples of each object; 0: they differ */
	uint64_t nbad;	     /* objects left out (on_error=skip) */
	uint64_t open_ns;
	int index_cached; /* the index was there and was not made */
};
/* Fills the struct above; size is that of *out. */
PEN_API void pen_dataset_get_info(const struct pen_dataset *,
				  struct pen_dataset_info *out, size_t size);
/* What share of it is in the page cache now; < 0: unknown. */
PEN_API double pen_dataset_cached(const struct pen_dataset *);
/* Path and size (NULL ok) of an object by its number; 0, or PEN_ENOTFOUND: it
 * does not exist, or its path is longer than cap. */
PEN_API int pen_dataset_object(const struct pen_dataset *, uint64_t i,
			       char *buf, size_t cap, uint64_t *size);
/* The i-th object that was left out, and why. PEN_ENOTFOUND past the last. */
PEN_API int pen_dataset_bad(const struct pen_dataset *, uint64_t i,
			    uint64_t *object, struct pen_err *out);
/* The object that holds a sample, as a path; buf is NUL-terminated. */
PEN_API void pen_dataset_object_name(const struct pen_dataset *,
				     uint64_t sample, char *buf, size_t cap);

/* Facts about it ("genes", "33694") and advice, in words; either may be NULL.
 * Strings are owned by the library and valid only during the call. */
PEN_API void pen_dataset_describe(const struct pen_dataset *, void *arg,
				  void (*fact)(void *arg, const char *name,
					       const char *value),
				  void (*advice)(void *arg, const char *text));

/*
 * What is doubtful about data that can be read all the same. code is PEN_EDATA
 * where bytes are missing, so that samples are wrong or too few (`penstock
 * verify` counts it as bad), and PEN_OK where it may well be meant so, as
 * records that are shorter than a window. The error is the library's, until
 * see() returns.
 */
PEN_API void pen_dataset_warnings(const struct pen_dataset *, void *arg,
				  void (*see)(void *arg,
					      const struct pen_err *));

/*
 * What the codes of an integer field stand for, 0 .. nlabels - 1: categories,
 * distinct strings, files, folders (labels=folder). nlabels is 0 when the field
 * has no codes. label puts the name of one into buf, NUL-terminated and cut to
 * cap; 0, or PEN_ENOTFOUND.
 */
PEN_API uint64_t pen_dataset_nlabels(const struct pen_dataset *,
				     uint32_t field);
/* The name of a code; see above. */
PEN_API int pen_dataset_label(const struct pen_dataset *, uint32_t field,
			      uint64_t code, char *buf, size_t cap);

/* Where a loader stands: plain data, to be saved with the model. */
struct pen_state {
	uint32_t version;
	uint32_t reserved;
	uint64_t seed, epoch;
	uint64_t position; /* samples of the epoch all ranks together took */
	uint64_t length;   /* samples in an epoch, to catch another data set */
	uint64_t order;	   /* hash of what defines the order, to catch others */
};

/* What happened so far. Times are summed over threads, in nanoseconds. */
struct pen_stats {
	uint64_t nsamples, nbatches, nskipped, nsubstituted;
	uint64_t payload_bytes;	     /* delivered in batches */
	uint64_t read_bytes, nreads; /* moved by the store */
	uint64_t plan_ns, read_ns, unpack_ns, emit_ns, idle_ns; /* threads */
	uint64_t wait_ns;	 /* the consumer, inside next() */
	uint64_t first_batch_ns; /* from open to the first batch */
	uint64_t open_ns;	 /* of which: finding and indexing the data */
	uint64_t elapsed_ns;	 /* from open until now */
	uint64_t memory_bytes, memory_peak_bytes, memory_budget_bytes;
	double ready_mean; /* batches ready when next() was called */
	uint32_t nthreads, prefetch, queue_depth;
	uint64_t cache_hits, cache_bytes; /* reads cache=ddict answered, which
					     the store did not have to */
	/* More stages of the threads: decoding pixels and text (emit is
	 * copying), and opening files, which read does not include. */
	uint64_t decode_ns, file_open_ns;
	uint64_t preprocess_ns; /* emulated preprocessing (penstock run) */
	/* What the kernel says of the threads: they ran, and they wanted a CPU
	 * and had none. 0: it says nothing. */
	uint64_t cpu_ns, queue_ns;
	/* Some reads of the longest were timed: how many, how long they took
	 * together, and the fastest. */
	uint64_t timed_reads, timed_ns, best_read_ns;
	/* Batches that could not be planned because the memory budget was used
	 * up, and how many more would be ahead with more of it. */
	uint64_t memory_wait_ns;
	uint32_t prefetch_wanted;
};

struct pen_loader;
/* Opens the data set, too. */
PEN_API PEN_MUST int pen_loader_open(struct pen_loader **out,
				     const struct pen_spec *,
				     struct pen_err *err);
/* May be called while another thread is in next(), which then returns. */
PEN_API void pen_loader_close(struct pen_loader *);
/*
 * 0 and a batch (yours, give it back with unref), PEN_END once after the last
 * batch of each epoch, or an error. Batches come in order; after PEN_END the
 * next call goes on with the next epoch.
 */
PEN_API PEN_MUST int pen_loader_next(struct pen_loader *,
				     struct pen_batch **out,
				     struct pen_err *err);
/*
 * The same, but waits no longer than ns (0: not at all), then PEN_AGAIN. For
 * callers that have other things to look after, as signals.
 */
PEN_API PEN_MUST int pen_loader_next_within(struct pen_loader *, uint64_t ns,
					    struct pen_batch **out,
					    struct pen_err *err);
/*
 * Random access: a loader that delivers what it is asked for, instead of an
 * order of its own. ask() queues a batch of n <= batch_size samples, next()
 * delivers batches in the order they were asked for, and PEN_END when there
 * is none left. A batch that cannot be made is its error, and the next one
 * comes all the same. Sampler, epochs, ranks and tail do not matter here.
 */
PEN_API PEN_MUST int pen_loader_open_asked(struct pen_loader **out,
					   const struct pen_spec *,
					   struct pen_err *err);
/* Queues a request; the ids are copied. PEN_EINVAL: no such sample. */
PEN_API PEN_MUST int pen_loader_ask(struct pen_loader *, const uint64_t *ids,
				    uint32_t n, struct pen_err *err);
/* The data set that it loads, until close. */
PEN_API const struct pen_dataset *pen_loader_dataset(const struct pen_loader *);
/*
 * Batches of an epoch. With batch_tokens= or pack= that differs from epoch to
 * epoch: of the one that is under way or comes next, counted by going through
 * its order once. 0 with tail=drop and fewer samples than a batch: then there
 * is nothing but PEN_END.
 */
PEN_API uint64_t pen_loader_nbatches(const struct pen_loader *);
/* Where it stands now: after the last batch that next() delivered. */
PEN_API void pen_loader_state(const struct pen_loader *, struct pen_state *);
/* Go to a saved state, also one saved with another rank or batch count. */
PEN_API PEN_MUST int pen_loader_restore(struct pen_loader *,
					const struct pen_state *,
					struct pen_err *err);
/* From open until now; size is that of *out. Any thread may ask while another
 * one loads. */
PEN_API void pen_loader_stats(const struct pen_loader *, struct pen_stats *out,
			      size_t size);
/* How it was settled, and where it stands. */
struct pen_loader_info {
	const char *sampler;
	uint32_t batch_samples;	  /* of a batch; where they differ the most */
	uint32_t typical_samples; /* ... and on average */
	uint32_t pack, pack_rows; /* length and number of rows; 0: not packed */
	uint64_t batch_tokens;	  /* 0: batches are not cut by length */
	uint64_t rank, world;
	uint64_t epoch_samples; /* of all ranks */
	uint64_t padding;	/* samples of an epoch that come again */
	uint64_t window, chunk; /* the sampler's; 0: it has none */
	/* Loading began here: the monotonic clock, and CPU time so far. */
	uint64_t start_ns, start_cpu_ns;
	/* So far, as pen_stats has them, which takes longer to ask for. */
	uint64_t nsamples, nbatches, payload_bytes;
	uint32_t prefetch, ready; /* batches ahead at most, and now */
	int drops;		  /* tail=drop */
	int ended;		  /* the last epoch is over */
	/* cache=ddict, else NULL: the dictionary, until close; whether no more
	 * fits; and whether a rank that shares it is gone. */
	struct pen_ddict *cache;
	int cache_full, cache_lost;
	uint64_t nchosen; /* samples that there are to draw from (subset=) */
	int in_order;	  /* the sampler's: neighbours follow one another; */
	int repeats;	  /* a sample may come several times an epoch */
};
/* Fills the struct above; size is that of *out. */
PEN_API void pen_loader_get_info(const struct pen_loader *,
				 struct pen_loader_info *out, size_t size);
/* The i-th of the samples that there are to draw from, i < nchosen. */
PEN_API uint64_t pen_loader_chosen(const struct pen_loader *, uint64_t i);
/*
 * 1 and the positions [*start, *end) around one of an epoch that hold whole
 * chunks of neighbours, mixed uniformly, and no part of other chunks; 0: the
 * sampler does not mix in this way. Any thread.
 */
PEN_API int pen_loader_mixed(const struct pen_loader *, uint64_t epoch,
			     uint64_t position, uint64_t *start, uint64_t *end);
/*
 * With ranks that share cache=ddict, for one that takes no more batches: meets
 * those that wait for it at the end of the first epoch. Nothing, if nobody
 * does. Collective.
 */
PEN_API PEN_MUST int pen_loader_finish(struct pen_loader *,
				       struct pen_err *err);
/* Batch-wait percentile in ns, 0 <= p <= 100; error below 0.8 %. */
PEN_API uint64_t pen_loader_wait_percentile(const struct pen_loader *,
					    double p);
/* What share of all waiting the slowest p percent of the batches took. */
PEN_API double pen_loader_wait_slowest(const struct pen_loader *, double p);
/* The i-th skipped or substituted sample's error, oldest first, of those that
 * are kept. PEN_ENOTFOUND past the last. */
#define PEN_SKIPPED_KEPT 1000
PEN_API int pen_loader_skipped(const struct pen_loader *, uint64_t i,
			       uint64_t *sample, struct pen_err *out);

/*
 * Rows copied by several threads, for arrays in memory: to[i] = from[ids[i]],
 * of several arrays at once. The caller helps, and does it alone when it is
 * little, or when another thread's copying is under way.
 */
struct pen_copier;
struct pen_rows {
	const void *from;
	void *to;
	uint64_t bytes; /* of a row */
	uint64_t nrows; /* of from */
};
/* Starts the threads. */
PEN_API PEN_MUST int pen_copier_new(struct pen_copier **out,
				    uint32_t threads, /* 0: CPUs */
				    struct pen_err *err);
PEN_API void pen_copier_free(struct pen_copier *); /* NULL ok */
/* Any thread. ids NULL: the first n rows, in order. Ids below zero count from
 * the end; others that are no row are errors, and some rows may be copied. */
PEN_API PEN_MUST int pen_copier_copy(struct pen_copier *,
				     const struct pen_rows *arrays,
				     uint32_t narrays, const int64_t *ids,
				     uint64_t n, struct pen_err *err);

/*
 * Ranks: this process among those that mpirun or srun started together; alone
 * it is rank 0 of 1. The first call must be made before the process starts any
 * thread. Calls
 * are collective: every rank makes them, in one order, from one thread.
 */
struct pen_ranks;
/* Joins the other ranks; under no launcher it succeeds at once. */
PEN_API PEN_MUST int pen_ranks_open(struct pen_ranks **out,
				    struct pen_err *err);
PEN_API void pen_ranks_close(struct pen_ranks *); /* NULL ok */
/* Which of them this process is, from 0. */
PEN_API int pen_ranks_rank(const struct pen_ranks *);
/* How many ranks there are. */
PEN_API int pen_ranks_size(const struct pen_ranks *);
/* Returns when every rank has called it; fails on all when one failed. */
PEN_API PEN_MUST int pen_ranks_barrier(struct pen_ranks *, struct pen_err *err);

/*
 * A dictionary of samples in the memory of many processes: of one machine by
 * name, and of all ranks of a job. Keys are numbers or bytes, values bytes of
 * any length. A value is written whole: readers see the old one, the new one,
 * or none. Any thread may call, unless a call is collective.
 */
struct pen_ddict;
struct pen_key {
	const void *bytes; /* NULL: the key is `number` */
	uint64_t number;   /* or the length of bytes */
};
struct pen_value {
	const void *data; /* NULL from a get: there is no such key */
	uint64_t len;
};

/*
 * Opens it with n settings "key=value"; pen_option_at("ddict", NULL, i) lists
 * them. ranks NULL: of this machine; with name= made or joined under that name,
 * without it of this process and those it forks. With ranks: collective, every
 * rank holds a share, and `ranks` has to outlive it.
 */
PEN_API PEN_MUST int pen_ddict_open(struct pen_ddict **out,
				    struct pen_ranks *ranks,
				    const char *const *settings, uint32_t n,
				    struct pen_err *err);
PEN_API void pen_ddict_close(struct pen_ddict *); /* collective; NULL ok */
/* How it reaches the others, and why so: one line, until close. */
PEN_API const char *pen_ddict_transport(const struct pen_ddict *);

/*
 * A completed put is visible to every later get. PEN_ENOMEM: the share that
 * owns a key is full; of many some may be there then. Bytes are copied.
 */
PEN_API PEN_MUST int pen_ddict_put(struct pen_ddict *, struct pen_key,
				   struct pen_value, struct pen_err *err);
/* Many at once: one request for each rank that owns some. */
PEN_API PEN_MUST int pen_ddict_put_many(struct pen_ddict *,
					const struct pen_key *,
					const struct pen_value *, uint64_t n,
					struct pen_err *err);

/*
 * Several at once: one request for each rank that owns some. ask() sends them
 * and returns; wait() returns when all values are there; any number may be
 * under way. Values of this machine are lent without a copy. All stay as they
 * are until free, whatever becomes of their keys, but not after close; a
 * forked child has none of them. `values` is in the order of the keys.
 */
struct pen_got {
	uint64_t n;
	const struct pen_value *values;
};
/* Sends the requests and returns; *out is freed with pen_got_free(). */
PEN_API PEN_MUST int pen_ddict_ask(struct pen_ddict *, const struct pen_key *,
				   uint64_t n, struct pen_got **out,
				   struct pen_err *err);
/* Returns when all values are there. */
PEN_API PEN_MUST int pen_ddict_wait(struct pen_got *, struct pen_err *err);
PEN_API void pen_got_free(struct pen_got *); /* waited for or not; NULL ok */
/* ask and wait */
PEN_API PEN_MUST int pen_ddict_get_many(struct pen_ddict *,
					const struct pen_key *, uint64_t n,
					struct pen_got **out,
					struct pen_err *err);
/* One, copied to buf; *len is its room before and the value's length after.
 * PEN_ENOTFOUND; PEN_ENOMEM: too little room, and *len says what it takes. */
PEN_API PEN_MUST int pen_ddict_get(struct pen_ddict *, struct pen_key,
				   void *buf, uint64_t *len,
				   struct pen_err *err);
/* Takes the key out; its value goes to *out unless that is NULL.
 * PEN_ENOTFOUND */
PEN_API PEN_MUST int pen_ddict_pop(struct pen_ddict *, struct pen_key,
				   struct pen_got **out, struct pen_err *err);
/* 1, 0, or an error */
PEN_API PEN_MUST int pen_ddict_contains(struct pen_ddict *, struct pen_key,
					struct pen_err *err);
/* Keys in all shards. */
PEN_API PEN_MUST int pen_ddict_len(struct pen_ddict *, uint64_t *out,
				   struct pen_err *err);
/* Removes every key. */
PEN_API PEN_MUST int pen_ddict_clear(struct pen_ddict *, struct pen_err *err);
/* From now on nobody writes: reading needs no bookkeeping. */
PEN_API PEN_MUST int pen_ddict_freeze(struct pen_ddict *, struct pen_err *err);

/* Calls fn with every key of a shard, or of all (-1), once and in no order,
 * until it returns other than 0, and returns that. The key's bytes are lent for
 * the call. */
PEN_API int pen_ddict_keys(struct pen_ddict *, int shard,
			   int (*fn)(void *arg, struct pen_key), void *arg,
			   struct pen_err *err);

/*
 * Saves it: one file a shard, `path`, or path.R-of-N of N shards. Opening with
 * restore=path maps them, or reads them in when there are other ranks now or
 * the dictionary is to be written to. Collective.
 */
PEN_API PEN_MUST int pen_ddict_persist(struct pen_ddict *, const char *path,
				       struct pen_err *err);

/* Shards: one a rank; 1 without ranks. */
PEN_API uint32_t pen_ddict_nshards(const struct pen_ddict *);
struct pen_shard_stats {
	char host[64];
	uint32_t shard;
	uint32_t nprocesses;  /* that have it mapped */
	uint64_t total_bytes; /* the budget */
	uint64_t used_bytes;  /* keys, values, index; dead ones, too */
	uint64_t free_bytes;  /* total - used */
	uint64_t value_bytes; /* of values alone */
	uint64_t nkeys;
	double utilisation;    /* used / total */
	uint64_t nputs, ngets; /* keys, of all processes so far */
	uint64_t nserved;      /* keys asked for by other nodes */
	uint64_t wait_ns;      /* this process, in wait() for others */
};
/* Of one shard, 0 .. nshards - 1; another host answers for its own. size is
 * that of *out. */
PEN_API PEN_MUST int pen_ddict_stats(struct pen_ddict *, uint32_t shard,
				     struct pen_shard_stats *out, size_t size,
				     struct pen_err *err);

/* "0.1.0"; the library's, which may be newer than this header. */
PEN_API const char *pen_version(void);

#ifdef __cplusplus
}
#endif
#endif
