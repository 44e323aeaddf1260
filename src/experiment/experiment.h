/*
 * The measurements of `penstock bench`, without processes and terminals: grids,
 * one timed pass over a data set, and conversions.
 */
#ifndef PEN_EXPERIMENT_EXPERIMENT_H
#define PEN_EXPERIMENT_EXPERIMENT_H

#include <stdatomic.h>
#include <stdbool.h>

#include "base/mem.h"
#include "base/opt.h"
#include "base/text.h"
#include "quality/quality.h"

/* ---- grids ---- */

struct pen_block_sizes {
	uint64_t chunk, chunks; /* rows per chunk, chunks per block */
};

/* Defaults of the Census loader. */
#define PEN_CENSUS_CHUNK 64
#define PEN_CENSUS_CHUNKS 2000

/*
 * Adds the blocks that a string describes to a list, without duplicates:
 *   C          PEN_CENSUS_CHUNKS chunks of C rows
 *   NxC        N chunks of C rows
 *   B/N        blocks of B rows in N chunks
 *   B/[lo,hi]  the same for all powers of 2 from lo to hi, up or down
 */
int pen__blocks_parse(const char *text, struct pen_block_sizes **list,
		      size_t *n, struct pen_err *);

/* ---- content ---- */

/* Checksum of one field of a sample, and of a batch: the sum over its samples,
 * independent of their order. ids identify the samples; usually b->ids. */
uint64_t pen__content_row(uint64_t id, uint32_t field, const void *bytes,
			  size_t n);
uint64_t pen__content_batch(const struct pen_batch *, const uint64_t *ids);
/* The same for one field, if others differ between epochs (noise). */
uint64_t pen__content_tensor(const struct pen_batch *, uint32_t tensor,
			     const uint64_t *ids);

/* Writes a checksum: a JSON number may not keep all of its digits. */
void pen__json_hex(struct pen_text *, const char *key, uint64_t);

/* ---- generated data ---- */

struct pen_fresh {
	struct pen_field field;
	size_t row; /* bytes of a sample */
	uint64_t seed, nsamples;
	/* float32 values are small integers: a sum over up to
	 * pen__fresh_exact() rows is exact in any order */
	bool small;
};
uint64_t pen__fresh_exact(uint64_t columns);
double pen__fresh_small(uint64_t row, uint64_t column); /* one value */
/* Parses shape and dtype: "3x224x224", "uint8". */
int pen__fresh_init(struct pen_fresh *, const char *shape, const char *dtype,
		    struct pen_err *);
bool pen__fresh_is_image(const struct pen_fresh *); /* uint8, HxW or HxWx3 */
/* Bytes [off, off + n) of the concatenated samples; complete items only. */
void pen__fresh_fill(const struct pen_fresh *, uint64_t off, void *to,
		     size_t n);

struct pen_fresh_file {
	const char *path, *format;
	const struct pen_opts_kv *kv; /* settings of the writer */
	size_t nkv;
	uint64_t first, n; /* samples */
};
int pen__fresh_write(const struct pen_fresh *, const struct pen_fresh_file *,
		     struct pen_err *);
/* The sum that pen__content_batch() must return for these samples. */
int pen__fresh_sum(const struct pen_fresh *, uint64_t first, uint64_t n,
		   uint64_t *sum, struct pen_err *);

/* ---- one pass ---- */

enum pen_temper { PEN_AS_IT_IS, PEN_WARM, PEN_COLD };

struct pen_loader;
/* The parameters of a pass, then its results. */
struct pen_pass {
	const struct pen_spec *spec;
	uint64_t max_batches; /* 0: all */
	enum pen_temper temper;
	bool quality;
	const char *label; /* field to measure the mixing of; NULL: none */
	/* Number of neighbours that count as one chunk; 0: the sampler's
	 * chunk. Set to compare the quality of different orders. */
	uint64_t quality_chunk;
	/* Sample numbers for quality and content; NULL: their ids. */
	const uint64_t *names;
	bool content; /* compute the checksum */
	/* Called for each batch, inside the timed part; may be NULL. */
	int (*eat)(void *arg, const struct pen_batch *, struct pen_err *);
	void *arg;
	/* For progress: samples so far, and in total. May be NULL. */
	atomic_uint_fast64_t *done, *total;

	uint64_t nsamples, nbatches, first_samples;
	uint64_t window;	 /* samples that are mixed; 0: none */
	double seconds, first_s; /* from the start of the workers */
	double open_s, cpu_s;
	double p50_s, p99_s, max_s;	       /* from one batch to the next */
	double wait_s, wait_p50_s, wait_p99_s; /* for batches; total */
	uint64_t content_sum;
	double slow_share;   /* share of time in the slowest tenth of batches */
	double resident;     /* page cache share at the start; < 0: unknown */
	uint64_t peak_bytes; /* of the process, kept by the kernel */
	/* without pages of mapped files, which belong to the page cache;
	 * sampled with every batch */
	uint64_t own_bytes;
	struct pen_stats stats;
	char store[32];
	struct pen_quality_result mixed;
	bool has_mixed;
	uint64_t *batch_ns;
	size_t cap;
	uint64_t *named; /* sample numbers of a batch */
	size_t named_cap;
};

int pen__pass_run(struct pen_pass *, struct pen_err *);
/* Fails if an epoch has no batch, because all were dropped (tail=drop). */
int pen__check_any(const struct pen_loader *, struct pen_err *);
void pen__pass_fini(struct pen_pass *);
/* Appends the results to an open JSON object. */
void pen__pass_json(struct pen_text *, const struct pen_pass *);

/* ---- conversion of sparse chunks ---- */

enum pen_reader { PEN_READ_RAW, PEN_READ_TABLE, PEN_READ_COO, PEN_READ_CSR };
extern const char *const pen__readers[]; /* names, NULL at the end */

/* Sums that do not depend on any order. */
struct pen_sparse_sums {
	uint64_t nnz, rows;    /* rows: sum of sample numbers, once per value */
	uint64_t cols, values; /* values: sum of their bits */
};

struct pen_sparse_reader {
	enum pen_reader reader;
	struct pen_sparse_sums sums;
	struct pen_block part[4]; /* the last output, reused */
};
int pen__convert_batch(void *convert, const struct pen_batch *,
		       struct pen_err *);
void pen__convert_fini(struct pen_sparse_reader *);
void pen__sums_json(struct pen_text *, const struct pen_sparse_sums *);

#endif
