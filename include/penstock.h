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
/* An option of one of them, or, with kind "loader" and name NULL, a setting.
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

PEN_API const char *pen_version(void);

#ifdef __cplusplus
}
#endif
#endif
