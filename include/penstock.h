/*
 * penstock: loads training data of any format from any store into ready
 * batches, and measures how fast that is.
 *
 * This is the complete public interface. Conventions:
 *
 *  - Result: a function that can fail returns 0 or a negative enum pen_code.
 *    If err is not NULL, a failure fills it with what is wrong, where, and what
 *    to do; read it only after a failure. A failed call leaves nothing to free.
 *  - Ownership: an object returned through `**out` belongs to the caller, who
 *    frees or closes it with the function named there. A returned pointer is
 *    borrowed; its comment says for how long. Unless stated otherwise, the
 *    library keeps no pointer to strings and arrays that it is passed.
 *  - NULL: functions that free or close an object accept NULL and do nothing.
 *    All other pointers must be valid unless a comment says what NULL means.
 *  - Threads: an object may be used by one thread at a time unless stated
 *    otherwise. Different objects may be used by different threads.
 *  - Growing structs: a struct that is passed with its size, sizeof(*out), may
 *    grow at its end. The library writes at most that many bytes and zeroes
 *    members it does not know. All other structs keep their layout as long as
 *    the SONAME stays the same.
 *  - The library never prints and never exits. Its state is in the objects it
 *    returns, except for these process-wide effects:
 *     - a SIGBUS handler, installed when a file is first mapped: it turns reads
 *       past the end of a file that shrank into errors and forwards everything
 *       else to the previous handler;
 *     - fork handlers, installed when a dictionary first uses TCP: a child
 *       closes the sockets of its parent;
 *     - MPI, with the first pen_ranks_open() under mpirun or srun: initialised
 *       if it was not, with OMPI_MCA_mpi_yield_when_idle=1 in the environment
 *       unless that is set, and in that case finalised at exit;
 *     - a count of allocations, for the library's own tests.
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
	PEN_AGAIN = 2, /* not an error: no batch is ready yet */
	PEN_END = 1,   /* not an error: the epoch is over */
	PEN_OK = 0,
	PEN_ENOMEM = -1,    /* out of memory, or over the memory budget */
	PEN_EINVAL = -2,    /* a setting or an argument is invalid */
	PEN_EIO = -3,	    /* the store failed; err->sys is the errno */
	PEN_EDATA = -4,	    /* the data is damaged or inconsistent */
	PEN_ENOTFOUND = -5, /* no such object, key, option or element */
	PEN_ESTALE = -6,    /* an object changed after it was indexed */
	PEN_ENOTSUP = -7,   /* valid, but not supported by this build */
	PEN_ECLOSED = -8,   /* closed, or stopped by on_stop */
};

/*
 * Why a call failed. The caller provides the storage; pass NULL to ignore it.
 * Printed as "WHERE: MSG".
 */
struct pen_err {
	int code;	 /* enum pen_code */
	int sys;	 /* errno if a system call failed, otherwise 0 */
	char where[256]; /* a path, a setting or an object */
	char msg[252];	 /* one line: what is wrong, then what to do */
	int number;	 /* kind of error: 101 is P101 in docs/errors.md */
};

/* Element types, named as in NumPy. */
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

/* Bytes of one element; 0 if the type is not valid. Any thread. */
PEN_API size_t pen_dtype_size(enum pen_dtype);
/* Name of a type as in NumPy; "unknown" if it is not valid. A static string. */
PEN_API const char *pen_dtype_name(enum pen_dtype);

/* How the samples of a batch are arranged in a tensor. */
enum pen_layout {
	PEN_DENSE,  /* every sample has the same shape */
	PEN_PADDED, /* shapes differ: padded to the largest */
	PEN_RAGGED, /* shapes differ: values and offsets */
	PEN_PACKED, /* lengths differ: several samples per row (pack=) */
};

/* A named array that every sample has. */
struct pen_field {
	char name[64];
	enum pen_dtype dtype;
	enum pen_layout layout;
	uint32_t ndim;
	int64_t shape[PEN_MAX_DIMS]; /* of a sample; -1: varies */
	uint64_t max_bytes;	     /* of the largest sample */
};

/*
 * One field of a batch. All memory belongs to the batch.
 *
 * Dense, padded: dimension 0 is the sample. A padded tensor also has shapes.
 *
 * Ragged: one-dimensional. Row i is data[offsets[i] .. offsets[i + 1]), in
 * elements, and its shape is the row_ndim numbers from shapes[i * row_ndim].
 *
 * Packed (pack=N): [batch_size, N]. Sample i is the shapes[i] elements from
 * offsets[i], counted through all rows, and never crosses the end of a row.
 * Samples are in the order of their offsets; the remaining elements are
 * padding. Two int32 tensors of the same shape, offsets and shapes follow,
 * named after the first packed field: NAME.segment is 1, 2, ... for the samples
 * of a row and 0 for padding; NAME.position is the index of an element in its
 * sample. With too_long=split each piece counts as a sample: its id, labels and
 * other fields are repeated.
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
	const int64_t *offsets; /* ragged, packed: nsamples + 1 elements */
	const int64_t *shapes;	/* not dense: nsamples x row_ndim */
	int pad_before;		/* padded: padding precedes the sample */
};

/*
 * A batch that is ready for the model. It is reference-counted: the memory,
 * including data that may be written to, belongs to the caller until the last
 * pen_batch_unref(), even after the loader is closed.
 */
struct pen_batch {
	uint64_t seq; /* 0, 1, 2, ... over all epochs of the loader */
	uint64_t epoch;
	uint64_t position; /* of its first sample in the order of the epoch */
	uint64_t end; /* position after the step, of all ranks: resume here */
	uint32_t nsamples;
	uint32_t nskipped;     /* skipped (on_error=skip) */
	uint32_t nsubstituted; /* replaced (on_error=substitute) */
	uint32_t ntensors;
	const uint64_t *ids; /* numbers of the samples, in row order */
	const struct pen_tensor *tensors;
};

/* Adds a reference. Any thread. */
PEN_API void pen_batch_ref(struct pen_batch *);
/*
 * Drops a reference; the last one returns the memory to the loader's pool. Any
 * thread; NULL is accepted.
 */
PEN_API void pen_batch_unref(struct pen_batch *);

/*
 * What to load and how: paths and `key=value` settings. pen_option_at() and
 * `penstock load --help` list the keys; store.X, format.X and sampler.X are
 * options of the chosen implementation.
 */
struct pen_spec;
/* An empty spec, with every setting at its default. Free: pen_spec_free(). */
PEN_API PEN_MUST int pen_spec_new(struct pen_spec **out, struct pen_err *err);
/* Frees a spec; objects opened with it have their own copy. NULL is accepted.
 */
PEN_API void pen_spec_free(struct pen_spec *);
/*
 * Sets one setting; the value is checked immediately. value NULL resets it to
 * its default, or with "format.", "store.", ... as the key, all options of that
 * kind. PEN_EINVAL: unknown key or invalid value; the message suggests the
 * nearest one.
 */
PEN_API PEN_MUST int pen_spec_set(struct pen_spec *, const char *key,
				  const char *value, struct pen_err *err);
/* Sets one setting, written "key=value" in one string. */
PEN_API PEN_MUST int pen_spec_parse(struct pen_spec *, const char *setting,
				    struct pen_err *err);
/*
 * Writes the value of a setting to buf as text that pen_spec_set() accepts: the
 * value set, or the default, or "" if there is none. The text is NUL-terminated
 * and truncated to cap bytes. "sampler" combines sampler= and shuffle=.
 * PEN_ENOTFOUND: no such setting, or an option (store.X) that is not set.
 */
PEN_API int pen_spec_get(const struct pen_spec *, const char *key, char *buf,
			 size_t cap);
/* The value of a setting as a number; 0 if it is not a number. */
PEN_API uint64_t pen_spec_number(const struct pen_spec *, const char *key);
/* A copy with the same settings and paths. Free: pen_spec_free(). */
PEN_API PEN_MUST int pen_spec_copy(struct pen_spec **out,
				   const struct pen_spec *,
				   struct pen_err *err);
/*
 * Checks that the settings are compatible and that store, format and sampler
 * accept their options, without reading data. Opening checks the same.
 */
PEN_API PEN_MUST int pen_spec_check(const struct pen_spec *,
				    struct pen_err *err);
/*
 * Adds a file, directory, glob or @list. Samples are in the order of the calls;
 * those of one directory or glob are sorted by path.
 */
PEN_API PEN_MUST int pen_spec_add_path(struct pen_spec *, const char *path,
				       struct pen_err *err);
/* Removes all paths. */
PEN_API void pen_spec_clear_paths(struct pen_spec *);
/* The i-th path, valid until the spec changes; NULL past the last. */
PEN_API const char *pen_spec_path(const struct pen_spec *, uint64_t i);

/*
 * The functions below attach callbacks and objects to a spec and its copies.
 * These, and arg, must stay valid until everything opened with the spec is
 * closed.
 */
struct pen_ranks;
struct pen_kept_index;
/*
 * Sets a callback that can stop indexing: any thread calls stop() from time to
 * time while data is indexed. A result other than 0 ends indexing with
 * PEN_ECLOSED. NULL: no callback.
 */
PEN_API void pen_spec_on_stop(struct pen_spec *, int (*stop)(void *arg),
			      void *arg);
/*
 * Sets a callback for completed rows: the loader's threads, numbered from 0,
 * call rows() for n rows at a time, before the batch is delivered. It may take
 * long (emulated preprocessing); pen_stats.preprocess_ns counts its time. NULL:
 * no callback.
 */
PEN_API void pen_spec_on_rows(struct pen_spec *,
			      void (*rows)(void *arg, uint32_t thread,
					   uint32_t n),
			      void *arg);
/* Sets the ranks that share cache=ddict. NULL: the loader joins them itself. */
PEN_API void pen_spec_use_ranks(struct pen_spec *, struct pen_ranks *);
/*
 * Keeps the index between data sets: the same data, opened again with other
 * settings, is listed and indexed only once. NULL: the index is freed with the
 * data set.
 */
PEN_API void pen_spec_keep_index(struct pen_spec *, struct pen_kept_index *);
/* An empty index for pen_spec_keep_index(). Free: pen_kept_index_free(). */
PEN_API PEN_MUST int pen_kept_index_new(struct pen_kept_index **out,
					struct pen_err *err);
/* Frees a kept index. NULL is accepted. */
PEN_API void pen_kept_index_free(struct pen_kept_index *);

/*
 * The contents of this build, so that programs need no list of their own. A
 * kind is "format", "store", "decoder" or "sampler". All strings are static;
 * any thread may call.
 */
/* The i-th name of a kind; NULL past the last. */
PEN_API const char *pen_name_at(const char *kind, uint32_t i);
/* A one-line description; NULL if there is no such thing. */
PEN_API const char *pen_help_of(const char *kind, const char *name);
/* A setting, or an option of an implementation. */
struct pen_option {
	const char *name, *help;
	const char *dflt;	    /* as users write it, or NULL */
	const char *const *choices; /* NULL-terminated, or NULL: any value */
	const char *type; /* "boolean", "integer", "size", "count", "number",
			     "time", "text", "choice" or "list" */
};
/*
 * The i-th option of an implementation or, with kind "loader", "image" or
 * "ddict" and name NULL, the i-th setting. size is sizeof(*out).
 * PEN_ENOTFOUND: past the last, or no such implementation.
 */
PEN_API int pen_option_at(const char *kind, const char *name, uint32_t i,
			  struct pen_option *out, size_t size);
/* The format of a file by the suffix of its name; NULL if none matches. */
PEN_API const char *pen_format_for(const char *file_name);
/* The i-th suffix of a format; NULL past the last. */
PEN_API const char *pen_format_suffix(const char *format, uint32_t i);
/* 1 if a store is in this build and works on this machine, otherwise 0. */
PEN_API int pen_store_usable(const char *name);

/* A data set: its samples and fields, without loading them. */
struct pen_dataset;
/*
 * Lists and indexes the objects of the paths. The spec is copied. Close:
 * pen_dataset_close().
 */
PEN_API PEN_MUST int pen_dataset_open(struct pen_dataset **out,
				      const struct pen_spec *,
				      struct pen_err *err);
/* Invalidates everything borrowed from the data set. NULL is accepted. */
PEN_API void pen_dataset_close(struct pen_dataset *);
/* Number of samples. */
PEN_API uint64_t pen_dataset_nsamples(const struct pen_dataset *);
/* Number of objects (files). */
PEN_API uint64_t pen_dataset_nobjects(const struct pen_dataset *);
/* Total size of the objects in bytes. */
PEN_API uint64_t pen_dataset_nbytes(const struct pen_dataset *);
/* Number of fields of a sample. */
PEN_API uint32_t pen_dataset_nfields(const struct pen_dataset *);
/* Field i < nfields; valid until close. */
PEN_API const struct pen_field *pen_dataset_field(const struct pen_dataset *,
						  uint32_t i);
/* The format in use: set, or detected. A static string. */
PEN_API const char *pen_dataset_format(const struct pen_dataset *);
/* The store in use, such as the choice of store=auto. A static string. */
PEN_API const char *pen_dataset_store(const struct pen_dataset *);
/* The data set's copy of the spec; valid until close. */
PEN_API const struct pen_spec *pen_dataset_spec(const struct pen_dataset *);
/* Details of a data set. Strings are valid until close. */
struct pen_dataset_info {
	const char *store_reason; /* why this store, in one line */
	const char *source;  /* the store that reads the bytes; differs from
				pen_dataset_store() under a cache */
	double cached;	     /* share in the page cache at open; < 0: unknown */
	uint64_t per_object; /* samples of every object; 0: they differ */
	uint64_t nbad;	     /* objects excluded by on_error=skip */
	uint64_t open_ns;    /* duration of open */
	int index_cached;    /* 1: the index came from the cache */
};
/* Fills *out with details of a data set; size is sizeof(*out). */
PEN_API void pen_dataset_get_info(const struct pen_dataset *,
				  struct pen_dataset_info *out, size_t size);
/* Share of the data in the page cache now, 0 to 1; < 0: unknown. */
PEN_API double pen_dataset_cached(const struct pen_dataset *);
/*
 * Writes the path of object i to buf and its size to *size (may be NULL).
 * PEN_ENOTFOUND: no such object, or the path does not fit in cap bytes.
 */
PEN_API int pen_dataset_object(const struct pen_dataset *, uint64_t i,
			       char *buf, size_t cap, uint64_t *size);
/* The i-th excluded object and the reason. PEN_ENOTFOUND past the last. */
PEN_API int pen_dataset_bad(const struct pen_dataset *, uint64_t i,
			    uint64_t *object, struct pen_err *out);
/* Writes the path of the object that contains a sample; NUL-terminated. */
PEN_API void pen_dataset_object_name(const struct pen_dataset *,
				     uint64_t sample, char *buf, size_t cap);

/*
 * Reports facts ("genes", "33694") and advice through the callbacks; either may
 * be NULL. Strings are owned by the library and valid only during the callback.
 */
PEN_API void pen_dataset_describe(const struct pen_dataset *, void *arg,
				  void (*fact)(void *arg, const char *name,
					       const char *value),
				  void (*advice)(void *arg, const char *text));

/*
 * Reports doubtful data that can still be read. The error's code is PEN_EDATA
 * if bytes are missing, so that samples are wrong or absent (`penstock verify`
 * counts it as bad), and PEN_OK if it may be intended, such as records shorter
 * than a window. The error is valid only during the callback.
 */
PEN_API void pen_dataset_warnings(const struct pen_dataset *, void *arg,
				  void (*see)(void *arg,
					      const struct pen_err *));

/*
 * Number of names that the codes of an integer field stand for: categories,
 * distinct strings, files, directories (labels=folder). Codes count from 0. The
 * result is 0 if the field has no codes.
 */
PEN_API uint64_t pen_dataset_nlabels(const struct pen_dataset *,
				     uint32_t field);
/*
 * Writes the name of a code to buf, NUL-terminated and truncated to cap bytes.
 * PEN_ENOTFOUND: no such code.
 */
PEN_API int pen_dataset_label(const struct pen_dataset *, uint32_t field,
			      uint64_t code, char *buf, size_t cap);

/* The position of a loader: plain numbers, to save with the model. */
struct pen_state {
	uint32_t version;
	uint32_t reserved;
	uint64_t seed, epoch;
	uint64_t position; /* samples that all ranks together took */
	uint64_t length;   /* samples per epoch; detects another data set */
	uint64_t
		order; /* hash of the order's settings; detects another order */
};

/* Counters since open. Thread times are sums over all threads, in ns. */
struct pen_stats {
	uint64_t nsamples, nbatches, nskipped, nsubstituted;
	uint64_t payload_bytes;	     /* delivered in batches */
	uint64_t read_bytes, nreads; /* by the store */
	uint64_t plan_ns, read_ns, unpack_ns, emit_ns, idle_ns; /* threads */
	uint64_t wait_ns;	 /* of the consumer, in next() */
	uint64_t first_batch_ns; /* from open to the first batch */
	uint64_t open_ns;	 /* included: listing and indexing the data */
	uint64_t elapsed_ns;	 /* from open until now */
	uint64_t memory_bytes, memory_peak_bytes, memory_budget_bytes;
	double ready_mean; /* mean number of ready batches at next() */
	uint32_t nthreads, prefetch, queue_depth;
	uint64_t cache_hits, cache_bytes; /* reads that cache=ddict answered
					     instead of the store */
	/* Further stages: decoding pixels and text (emit is copying), and
	 * opening files, which read_ns does not include. */
	uint64_t decode_ns, file_open_ns;
	uint64_t preprocess_ns; /* emulated preprocessing (penstock run) */
	/* From the kernel: time on a CPU, and time ready without a CPU. 0 if
	 * the kernel does not report it. */
	uint64_t cpu_ns, queue_ns;
	/* Some of the largest reads are timed: their number, total time, and
	 * the fastest. */
	uint64_t timed_reads, timed_ns, best_read_ns;
	/* Time in which planning waited for the memory budget, and the prefetch
	 * depth without the budget. */
	uint64_t memory_wait_ns;
	uint32_t prefetch_wanted;
};

/*
 * A loader: the threads, memory and position that turn a data set into batches.
 * A forked child cannot use the loader of its parent.
 */
struct pen_loader;
/*
 * Opens the data set and starts the threads. The spec is copied. Close:
 * pen_loader_close(). With cache=ddict over ranks it is collective.
 */
PEN_API PEN_MUST int pen_loader_open(struct pen_loader **out,
				     const struct pen_spec *,
				     struct pen_err *err);
/*
 * Ends all threads. Batches that the caller still holds stay valid. It may be
 * called while another thread is in next(), which then returns PEN_ECLOSED.
 * NULL is accepted.
 */
PEN_API void pen_loader_close(struct pen_loader *);
/*
 * Waits for the next batch. 0: *out is a batch that belongs to the caller, who
 * returns it with pen_batch_unref(). PEN_END: the epoch is over, once after its
 * last batch; the next call continues with the next epoch. Negative: an error.
 * Batches come in order.
 */
PEN_API PEN_MUST int pen_loader_next(struct pen_loader *,
				     struct pen_batch **out,
				     struct pen_err *err);
/*
 * Waits for the next batch, but not longer than ns nanoseconds (0: not at all),
 * and then returns PEN_AGAIN. Otherwise as pen_loader_next(). For callers that
 * must also handle signals or other events.
 */
PEN_API PEN_MUST int pen_loader_next_within(struct pen_loader *, uint64_t ns,
					    struct pen_batch **out,
					    struct pen_err *err);
/*
 * Opens a loader for random access: it delivers the samples requested with
 * pen_loader_ask(). pen_loader_next() returns the batches in the order of the
 * requests, and PEN_END if no request is left. A batch that cannot be made
 * returns its error, and later requests are still served. Sampler, epochs,
 * ranks and tail have no effect.
 */
PEN_API PEN_MUST int pen_loader_open_asked(struct pen_loader **out,
					   const struct pen_spec *,
					   struct pen_err *err);
/*
 * Requests a batch of n <= batch_size samples. The ids are copied. PEN_EINVAL:
 * no such sample.
 */
PEN_API PEN_MUST int pen_loader_ask(struct pen_loader *, const uint64_t *ids,
				    uint32_t n, struct pen_err *err);
/* The data set of the loader; valid until close. */
PEN_API const struct pen_dataset *pen_loader_dataset(const struct pen_loader *);
/*
 * Number of batches per epoch. With batch_tokens= or pack= it differs between
 * epochs: the result is that of the current epoch or, between epochs, of the
 * next one, and the first call walks through its order. 0: tail=drop and fewer
 * samples than a batch; next() then only returns PEN_END.
 */
PEN_API uint64_t pen_loader_nbatches(const struct pen_loader *);
/* The position after the last batch that next() delivered. */
PEN_API void pen_loader_state(const struct pen_loader *, struct pen_state *);
/*
 * Continues from a saved state, which may have been saved with another number
 * of ranks or another batch size. PEN_EINVAL: the data, the seed or the order
 * differs.
 */
PEN_API PEN_MUST int pen_loader_restore(struct pen_loader *,
					const struct pen_state *,
					struct pen_err *err);
/* Fills *out with the counters of a loader; size is sizeof(*out). Any thread,
 * also while another one loads. */
PEN_API void pen_loader_stats(const struct pen_loader *, struct pen_stats *out,
			      size_t size);
/* The settings in effect, and the progress. */
struct pen_loader_info {
	const char *sampler;
	uint32_t batch_samples;	  /* per batch; the most if they differ */
	uint32_t typical_samples; /* per batch, on average */
	uint32_t pack, pack_rows; /* length and number of rows; 0: not packed */
	uint64_t batch_tokens;	  /* 0: batches are not cut by length */
	uint64_t rank, world;
	uint64_t epoch_samples; /* of all ranks */
	uint64_t padding;	/* repeated samples per epoch (tail=pad) */
	uint64_t window, chunk; /* of the sampler; 0: none */
	/* When loading started: monotonic clock and CPU time. */
	uint64_t start_ns, start_cpu_ns;
	/* As in pen_stats, but cheaper to query. */
	uint64_t nsamples, nbatches, payload_bytes;
	uint32_t prefetch, ready; /* prefetch depth, and ready now */
	int drops;		  /* tail=drop */
	int ended;		  /* the last epoch is over */
	/* cache=ddict: the dictionary, valid until close (otherwise NULL);
	 * 1 if it is full; 1 if a rank that shares it is gone. */
	struct pen_ddict *cache;
	int cache_full, cache_lost;
	uint64_t nchosen; /* samples to draw from (subset=) */
	int in_order;	  /* the sampler keeps the stored order */
	int repeats;	  /* a sample may come several times per epoch */
};
/* Fills *out with details of a loader; size is sizeof(*out). */
PEN_API void pen_loader_get_info(const struct pen_loader *,
				 struct pen_loader_info *out, size_t size);
/* The number of the i-th sample to draw from, i < nchosen. */
PEN_API uint64_t pen_loader_chosen(const struct pen_loader *, uint64_t i);
/*
 * The block of positions that the sampler mixes. 1: [*start, *end) are the
 * positions around `position` that contain complete chunks of neighbours, mixed
 * uniformly, and no part of other chunks. 0: the sampler does not mix in this
 * way. Any thread.
 */
PEN_API int pen_loader_mixed(const struct pen_loader *, uint64_t epoch,
			     uint64_t position, uint64_t *start, uint64_t *end);
/*
 * Ends the part of a rank that takes no more batches although it shares
 * cache=ddict: it joins the ranks that wait for it at the end of the first
 * epoch. Does nothing if no rank waits. Collective.
 */
PEN_API PEN_MUST int pen_loader_finish(struct pen_loader *,
				       struct pen_err *err);
/* Percentile of the wait in next(), in ns; 0 <= p <= 100; error below 0.8 %. */
PEN_API uint64_t pen_loader_wait_percentile(const struct pen_loader *,
					    double p);
/* Share of all waiting that the slowest p percent of the batches caused. */
PEN_API double pen_loader_wait_slowest(const struct pen_loader *, double p);
/* At most this many skipped samples are recorded. */
#define PEN_SKIPPED_KEPT 1000
/*
 * The i-th skipped or substituted sample, oldest first, and its error (out may
 * be NULL). PEN_ENOTFOUND past the last. Any thread.
 */
PEN_API int pen_loader_skipped(const struct pen_loader *, uint64_t i,
			       uint64_t *sample, struct pen_err *out);

/*
 * Copies rows of arrays in memory with several threads: to[i] = from[ids[i]],
 * for several arrays at a time. The calling thread takes part; it copies alone
 * if there is little to copy or the threads are busy with another call.
 */
struct pen_copier;
struct pen_rows {
	const void *from;
	void *to;
	uint64_t bytes; /* per row */
	uint64_t nrows; /* in from */
};
/* Starts the threads of a copier. Free: pen_copier_free(). */
PEN_API PEN_MUST int pen_copier_new(struct pen_copier **out,
				    uint32_t threads, /* 0: one per CPU */
				    struct pen_err *err);
/* Ends the threads and frees the copier. NULL is accepted. */
PEN_API void pen_copier_free(struct pen_copier *);
/*
 * Copies the rows with these ids. ids NULL: the first n rows, in order.
 * Negative ids count from the end. An id out of range is an error; some rows
 * may have been copied by then. Any thread.
 */
PEN_API PEN_MUST int pen_copier_copy(struct pen_copier *,
				     const struct pen_rows *arrays,
				     uint32_t narrays, const int64_t *ids,
				     uint64_t n, struct pen_err *err);

/*
 * The ranks of a job: the processes that mpirun or srun started together. A
 * process without a launcher is rank 0 of 1. The first call must be made before
 * the process starts any thread. Calls are collective: every rank makes them,
 * in the same order, from one thread.
 */
struct pen_ranks;
/*
 * Joins the other ranks; without a launcher it succeeds immediately. Close:
 * pen_ranks_close().
 */
PEN_API PEN_MUST int pen_ranks_open(struct pen_ranks **out,
				    struct pen_err *err);
/* Leaves the other ranks. NULL is accepted. */
PEN_API void pen_ranks_close(struct pen_ranks *);
/* The number of this rank, from 0. Not collective. */
PEN_API int pen_ranks_rank(const struct pen_ranks *);
/* The number of ranks. Not collective. */
PEN_API int pen_ranks_size(const struct pen_ranks *);
/* Returns when every rank has called it; if one fails, all fail. */
PEN_API PEN_MUST int pen_ranks_barrier(struct pen_ranks *, struct pen_err *err);
/*
 * A barrier that reports failure: every rank passes its rc, 0 or a negative
 * pen_code with *err filled. If a rank failed, all get the code and error of
 * the lowest one that did. A rank may report a failure while the others are in
 * any other collective call, which then fails with that error. So a rank that
 * cannot go on calls this and then pen_ranks_close(), and no rank waits for it.
 */
PEN_API PEN_MUST int pen_ranks_agree(struct pen_ranks *, int rc,
				     struct pen_err *err);
enum pen_reduce {
	PEN_SUM, /* integers wrap around on overflow */
	PEN_MIN,
	PEN_MAX,
	PEN_OR, /* of bits; integers only */
};
/*
 * Combines the arrays of all ranks, element by element; every rank gets the
 * result in place. n, type and operation are the same on all ranks. Types:
 * PEN_I64, PEN_U64, PEN_F32, PEN_F64; PEN_EINVAL otherwise. A sum of integers
 * does not depend on the number of ranks; one of floats is rounded in an order
 * that does, but is the same on all ranks.
 */
PEN_API PEN_MUST int pen_ranks_reduce(struct pen_ranks *, void *data,
				      uint64_t n, enum pen_dtype,
				      enum pen_reduce, struct pen_err *err);
/* Copies n bytes from rank `root` to all; n and root are the same on all. */
PEN_API PEN_MUST int pen_ranks_broadcast(struct pen_ranks *, void *data,
					 uint64_t n, int root,
					 struct pen_err *err);

/*
 * A dictionary in memory that the processes of a machine share by name, and
 * that all ranks of a job share. Keys are numbers or bytes, values are bytes of
 * any length. A put is atomic: readers see the old value, the new value, or
 * none. Any thread may call, unless a call is collective.
 */
struct pen_ddict;
struct pen_key {
	const void *bytes; /* NULL: the key is `number` */
	uint64_t number;   /* or the number of bytes */
};
struct pen_value {
	const void *data; /* NULL in the result of a get: no such key */
	uint64_t len;
};

/*
 * Opens a dictionary with n settings "key=value"; pen_option_at("ddict", NULL,
 * i) lists them. Close: pen_ddict_close().
 *
 * ranks NULL: a dictionary of this machine. With name= it is created or joined
 * under that name; without, it belongs to this process and those it forks.
 * Otherwise the call is collective, every rank holds one shard, and `ranks`
 * must outlive the dictionary.
 */
PEN_API PEN_MUST int pen_ddict_open(struct pen_ddict **out,
				    struct pen_ranks *ranks,
				    const char *const *settings, uint32_t n,
				    struct pen_err *err);
/* Collective over ranks. Lent values become invalid. NULL is accepted. */
PEN_API void pen_ddict_close(struct pen_ddict *);
/* The transport between hosts and why it was chosen; valid until close. */
PEN_API const char *pen_ddict_transport(const struct pen_ddict *);

/*
 * Stores a value; its bytes are copied. A completed put is visible to every
 * later get. PEN_ENOMEM: the shard that owns the key is full.
 */
PEN_API PEN_MUST int pen_ddict_put(struct pen_ddict *, struct pen_key,
				   struct pen_value, struct pen_err *err);
/*
 * Stores n values with one request for each rank that owns some. After an error
 * some of them may be stored.
 */
PEN_API PEN_MUST int pen_ddict_put_many(struct pen_ddict *,
					const struct pen_key *,
					const struct pen_value *, uint64_t n,
					struct pen_err *err);

/*
 * The result of reading several keys, in their order. Values of this machine
 * are lent without a copy. They do not change until pen_got_free(), whatever
 * happens to their keys, but are invalid after pen_ddict_close() and in a
 * forked child.
 */
struct pen_got {
	uint64_t n;
	const struct pen_value *values;
};
/*
 * Sends the requests, one for each rank that owns some keys, and returns. Any
 * number may be in flight. Free: pen_got_free().
 */
PEN_API PEN_MUST int pen_ddict_ask(struct pen_ddict *, const struct pen_key *,
				   uint64_t n, struct pen_got **out,
				   struct pen_err *err);
/* Returns when all values have arrived. */
PEN_API PEN_MUST int pen_ddict_wait(struct pen_got *, struct pen_err *err);
/* Frees a result, before or after pen_ddict_wait(). NULL is accepted. */
PEN_API void pen_got_free(struct pen_got *);
/* Gets n values: pen_ddict_ask(), then pen_ddict_wait(). Free: pen_got_free().
 */
PEN_API PEN_MUST int pen_ddict_get_many(struct pen_ddict *,
					const struct pen_key *, uint64_t n,
					struct pen_got **out,
					struct pen_err *err);
/*
 * Copies one value to buf. *len is the size of buf before and the length of the
 * value after the call. PEN_ENOTFOUND: no such key. PEN_ENOMEM: buf is too
 * small; *len is the size needed.
 */
PEN_API PEN_MUST int pen_ddict_get(struct pen_ddict *, struct pen_key,
				   void *buf, uint64_t *len,
				   struct pen_err *err);
/*
 * Removes a key and returns its value in *out (out may be NULL). Free:
 * pen_got_free(). PEN_ENOTFOUND: no such key.
 */
PEN_API PEN_MUST int pen_ddict_pop(struct pen_ddict *, struct pen_key,
				   struct pen_got **out, struct pen_err *err);
/* 1 if the key exists, 0 if not, or a negative error. */
PEN_API PEN_MUST int pen_ddict_contains(struct pen_ddict *, struct pen_key,
					struct pen_err *err);
/* Number of keys in all shards. */
PEN_API PEN_MUST int pen_ddict_len(struct pen_ddict *, uint64_t *out,
				   struct pen_err *err);
/* Removes all keys. */
PEN_API PEN_MUST int pen_ddict_clear(struct pen_ddict *, struct pen_err *err);
/* Makes the dictionary read-only; reading then needs no bookkeeping. */
PEN_API PEN_MUST int pen_ddict_freeze(struct pen_ddict *, struct pen_err *err);

/*
 * Calls fn once for every key of a shard, or of all shards (-1), in no
 * particular order, until it returns a value other than 0, and returns that
 * value. The bytes of the key are valid only during the callback.
 */
PEN_API int pen_ddict_keys(struct pen_ddict *, int shard,
			   int (*fn)(void *arg, struct pen_key), void *arg,
			   struct pen_err *err);

/*
 * Saves the dictionary, one file per shard: `path`, or path.R-of-N for N
 * shards. Opening with restore=path maps the files, or reads them into memory
 * if the number of ranks differs or the dictionary is opened for writing.
 * Collective.
 */
PEN_API PEN_MUST int pen_ddict_persist(struct pen_ddict *, const char *path,
				       struct pen_err *err);

/* Number of shards: one per rank; 1 without ranks. */
PEN_API uint32_t pen_ddict_nshards(const struct pen_ddict *);
/* Memory use and traffic of one shard. */
struct pen_shard_stats {
	char host[64];
	uint32_t shard;
	uint32_t nprocesses;  /* that have mapped it */
	uint64_t total_bytes; /* the budget */
	uint64_t used_bytes;  /* keys, values, index; including dead ones */
	uint64_t free_bytes;  /* total - used */
	uint64_t value_bytes; /* values only */
	uint64_t nkeys;
	double utilisation;    /* used / total */
	uint64_t nputs, ngets; /* keys, by all processes */
	uint64_t nserved;      /* keys requested by other hosts */
	uint64_t wait_ns;      /* of this process, in pen_ddict_wait() */
	uint64_t nfree_blocks; /* pieces that the free bytes are in */
};
/*
 * Fills *out with the memory and the counters of a shard, numbered from 0; asks
 * its host if necessary. size is sizeof(*out).
 */
PEN_API PEN_MUST int pen_ddict_stats(struct pen_ddict *, uint32_t shard,
				     struct pen_shard_stats *out, size_t size,
				     struct pen_err *err);

/* The version of the library, "0.1.0", which may be newer than this header. */
PEN_API const char *pen_version(void);

#ifdef __cplusplus
}
#endif
#endif
