/*
 * penstock: load training data of any format from any store into ready
 * batches, and measure how fast that goes.
 *
 * This is the whole public interface. Conventions:
 *  - A function that can fail returns 0 or a negative pen_code and, when err
 *    is not NULL, fills it once with what went wrong, where, and what to do.
 *  - `**out` belongs to the caller; a returned plain pointer is borrowed.
 *  - Objects may be used from one thread at a time unless stated otherwise.
 *  - The library never prints, never exits and keeps no global state.
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
 * format.X and sampler.X reach the options of the chosen implementation.
 */
struct pen_spec;
PEN_API PEN_MUST int pen_spec_new(struct pen_spec **out, struct pen_err *err);
PEN_API void pen_spec_free(struct pen_spec *);
PEN_API PEN_MUST int pen_spec_set(struct pen_spec *, const char *key,
				  const char *value, struct pen_err *err);
/* "key=value" in one string */
PEN_API PEN_MUST int pen_spec_parse(struct pen_spec *, const char *setting,
				    struct pen_err *err);
/* A path, glob or @list; may be called more than once. */
PEN_API PEN_MUST int pen_spec_add_path(struct pen_spec *, const char *path,
				       struct pen_err *err);

/*
 * What this build has, so that programs need no list of their own. A kind is
 * "format", "store" or "sampler"; NULL past the last.
 */
PEN_API const char *pen_name_at(const char *kind, uint32_t i);
struct pen_option {
	const char *name, *help;
	const char *dflt;	    /* as a user would write it, or NULL */
	const char *const *choices; /* NULL-terminated, or NULL: any value */
};
/* An option of one of them, or, with kind "loader" or "ddict" and name NULL, a
 * setting.
 * PEN_ENOTFOUND past the last, or when there is no such thing. */
PEN_API int pen_option_at(const char *kind, const char *name, uint32_t i,
			  struct pen_option *out);
/* The format of a file by the suffix of its name; NULL: none. */
PEN_API const char *pen_format_for(const char *file_name);

/* A data set: what is there, without loading it. */
struct pen_dataset;
PEN_API PEN_MUST int pen_dataset_open(struct pen_dataset **out,
				      const struct pen_spec *,
				      struct pen_err *err);
PEN_API void pen_dataset_close(struct pen_dataset *);
PEN_API uint64_t pen_dataset_nsamples(const struct pen_dataset *);
PEN_API uint64_t pen_dataset_nobjects(const struct pen_dataset *);
PEN_API uint64_t pen_dataset_nbytes(const struct pen_dataset *);
PEN_API uint32_t pen_dataset_nfields(const struct pen_dataset *);
PEN_API const struct pen_field *pen_dataset_field(const struct pen_dataset *,
						  uint32_t i); /* until close */
PEN_API const char *pen_dataset_format(const struct pen_dataset *);
PEN_API const char *pen_dataset_store(const struct pen_dataset *);
/* The object that holds a sample, as a path; buf is NUL-terminated. */
PEN_API void pen_dataset_object_name(const struct pen_dataset *,
				     uint64_t sample, char *buf, size_t cap);

/* Facts about it ("genes", "33694") and advice, in words; either may be NULL.
 * Texts are the library's, until the function returns. */
PEN_API void pen_dataset_describe(const struct pen_dataset *, void *arg,
				  void (*fact)(void *arg, const char *name,
					       const char *value),
				  void (*advice)(void *arg, const char *text));

/*
 * What the codes of an integer field stand for, 0 .. nlabels - 1: categories,
 * distinct strings, files. nlabels is 0 when the field has no codes. label
 * puts the name of one into buf, NUL-terminated and cut to cap; 0, or
 * PEN_ENOTFOUND.
 */
PEN_API uint64_t pen_dataset_nlabels(const struct pen_dataset *,
				     uint32_t field);
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
	uint64_t plan_ns, read_ns, unpack_ns, emit_ns, idle_ns; /* workers */
	uint64_t wait_ns;	 /* the consumer, inside next() */
	uint64_t first_batch_ns; /* from open to the first batch */
	uint64_t open_ns;	 /* of which: finding and indexing the data */
	uint64_t elapsed_ns;	 /* from open until now */
	uint64_t memory_bytes, memory_peak_bytes, memory_budget_bytes;
	double ready_mean; /* batches ready when next() was called */
	uint32_t nthreads, prefetch, queue_depth;
	uint64_t cache_hits, cache_bytes; /* reads cache=ddict answered, which
					     the store did not have to */
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
PEN_API PEN_MUST int pen_loader_ask(struct pen_loader *, const uint64_t *ids,
				    uint32_t n, struct pen_err *err);
PEN_API const struct pen_dataset *pen_loader_dataset(const struct pen_loader *);
/*
 * Batches of an epoch. With batch_tokens= or pack= that differs from epoch to
 * epoch: of the one that is under way or comes next, counted by going through
 * its order once.
 */
PEN_API uint64_t pen_loader_nbatches(const struct pen_loader *);
PEN_API void pen_loader_state(const struct pen_loader *, struct pen_state *);
/* Go to a saved state, also one saved with another rank or batch count. */
PEN_API PEN_MUST int pen_loader_restore(struct pen_loader *,
					const struct pen_state *,
					struct pen_err *err);
PEN_API void pen_loader_stats(const struct pen_loader *, struct pen_stats *);
/* Batch-wait percentile in ns, 0 <= p <= 100; error below 0.8 %. */
PEN_API uint64_t pen_loader_wait_percentile(const struct pen_loader *,
					    double p);
/* The i-th skipped or substituted sample's error, oldest first; at most
 * 1000 are kept. PEN_ENOTFOUND past the last. */
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
 * it is rank 0 of 1. Opened the first time before threads are started. Calls
 * are collective: every rank makes them, in one order, from one thread.
 */
struct pen_ranks;
PEN_API PEN_MUST int pen_ranks_open(struct pen_ranks **out,
				    struct pen_err *err);
PEN_API void pen_ranks_close(struct pen_ranks *); /* NULL ok */
PEN_API int pen_ranks_rank(const struct pen_ranks *);
PEN_API int pen_ranks_size(const struct pen_ranks *);
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
 * What a put returned from, every later get sees. PEN_ENOMEM: the share that
 * owns a key is full; of many some may be there then. Bytes are copied.
 */
PEN_API PEN_MUST int pen_ddict_put(struct pen_ddict *, struct pen_key,
				   struct pen_value, struct pen_err *err);
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
PEN_API PEN_MUST int pen_ddict_ask(struct pen_ddict *, const struct pen_key *,
				   uint64_t n, struct pen_got **out,
				   struct pen_err *err);
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
PEN_API PEN_MUST int pen_ddict_len(struct pen_ddict *, uint64_t *out,
				   struct pen_err *err);
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
struct pen_ddict_stats {
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
PEN_API PEN_MUST int pen_ddict_stats(struct pen_ddict *, uint32_t shard,
				     struct pen_ddict_stats *out,
				     struct pen_err *err);

PEN_API const char *pen_version(void);

#ifdef __cplusplus
}
#endif
#endif
