/*
 * What the experiments of `penstock bench` measure, without processes and
 * terminals: grids, one timed pass over a data set, and conversions.
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
	uint64_t chunk, chunks; /* rows a chunk, chunks a block */
};

/* The Census loader's defaults. */
#define PEN_CENSUS_CHUNK 64
#define PEN_CENSUS_CHUNKS 2000

/*
 * Adds what a text stands for to a list, unless it is there:
 *   C          PEN_CENSUS_CHUNKS chunks of C rows
 *   NxC        N chunks of C rows
 *   B/N        blocks of B rows, of N chunks each
 *   B/[lo,hi]  the same for all powers of 2 from lo to hi, which may be less
 */
int pen__blocks_parse(const char *text, struct pen_block_sizes **list,
		      size_t *n, struct pen_err *);

/* ---- content ---- */

/* A sample's field, and a batch: the sum over its samples, whatever their
 * order. ids: the names that samples go by, b->ids most often. */
uint64_t pen__content_row(uint64_t id, uint32_t field, const void *bytes,
			  size_t n);
uint64_t pen__content_batch(const struct pen_batch *, const uint64_t *ids);
/* The same of one field, where others differ from epoch to epoch (noise). */
uint64_t pen__content_tensor(const struct pen_batch *, uint32_t tensor,
			     const uint64_t *ids);

/* ---- data made on the spot ---- */

struct pen_fresh {
	struct pen_field field;
	size_t row; /* bytes of a sample */
	uint64_t seed, nsamples;
	/* float32 that are small whole numbers: of up to pen__fresh_exact()
	 * rows the sum is exact in any order */
	bool small;
};
uint64_t pen__fresh_exact(uint64_t columns);
double pen__fresh_small(uint64_t row, uint64_t column); /* a value */
/* Field and row from words: "3x224x224", "uint8". */
int pen__fresh_init(struct pen_fresh *, const char *shape, const char *dtype,
		    struct pen_err *);
bool pen__fresh_is_image(const struct pen_fresh *); /* bytes, HxW or HxWx3 */
/* Bytes [off, off + n) of all samples one after another; whole items. */
void pen__fresh_fill(const struct pen_fresh *, uint64_t off, void *to,
		     size_t n);

struct pen_fresh_file {
	const char *path, *format;
	const struct pen_opts_kv *kv; /* of the format, for writing */
	size_t nkv;
	uint64_t first, n; /* samples */
};
int pen__fresh_write(const struct pen_fresh *, const struct pen_fresh_file *,
		     struct pen_err *);
/* What pen__content_batch() has to come to for these samples. */
int pen__fresh_sum(const struct pen_fresh *, uint64_t first, uint64_t n,
		   uint64_t *sum, struct pen_err *);

/* ---- one pass ---- */

enum pen_temper { PEN_AS_IT_IS, PEN_WARM, PEN_COLD };

struct pen_loader;
/* What is to be done, and what came of it. */
struct pen_pass {
	const struct pen_spec *spec;
	uint64_t max_batches; /* 0: all */
	enum pen_temper temper;
	bool quality;
	const char *label; /* field, for quality; NULL: none */
	/* Neighbours that count as one chunk; 0: what the sampler keeps
	 * together. For orders that are to be held against one another. */
	uint64_t quality_chunk;
	/* Names of samples for quality and content; NULL: their ids. */
	const uint64_t *names;
	bool content; /* sum it up */
	/* Called for each batch, inside the clock; may be NULL. */
	int (*eat)(void *arg, const struct pen_batch *, struct pen_err *);
	void *arg;
	/* For who watches: samples so far, and in all. May be NULL. */
	atomic_uint_fast64_t *done, *total;

	uint64_t nsamples, nbatches, first_samples;
	uint64_t window;	 /* samples that are mixed; 0: no such thing */
	double seconds, first_s; /* from the start of the workers */
	double open_s, cpu_s;
	double p50_s, p99_s, max_s; /* of a batch, from one to the next */
	double wait_s, wait_p50_s, wait_p99_s; /* for batches, in all */
	uint64_t content_sum;
	double slow_share;   /* of the time, in the slowest tenth of batches */
	double resident;     /* in the page cache at the start; < 0: unknown */
	uint64_t peak_bytes; /* of the process, as the kernel keeps it */
	/* without pages of mapped files, which are the page cache's; looked
	 * at with every batch */
	uint64_t own_bytes;
	struct pen_stats stats;
	char store[32];
	struct pen_quality_result mixed;
	bool has_mixed;
	uint64_t *batch_ns;
	size_t cap;
	uint64_t *named; /* of a batch */
	size_t named_cap;
};

int pen__pass_run(struct pen_pass *, struct pen_err *);
/* Is there a batch in an epoch, or were all dropped (tail=drop)? An error for
 * those who would have nothing to tell. */
int pen__check_any(const struct pen_loader *, struct pen_err *);
void pen__pass_fini(struct pen_pass *);
/* Into an open JSON object. */
void pen__pass_json(struct pen_text *, const struct pen_pass *);

/* ---- little memory, and a busy CPU ---- */

struct pen_dataset;
/* Files get at most `limit` bytes of memory. */
struct pen_squeeze {
	uint64_t limit;
	char group[2100]; /* a cgroup; "": pages are dropped instead */
	const char *path; /* of the data: names of mappings begin with it */
	const struct pen_dataset *ds;
	uint64_t used, ndrops, drop_ns;
};
/* A cgroup with this limit, in another one or (NULL) in this process's own;
 * false: none can be made, and nothing was. */
bool pen__squeeze_open(struct pen_squeeze *, const char *in);
void pen__squeeze_close(struct pen_squeeze *);
int pen__squeeze_enter(const struct pen_squeeze *, struct pen_err *);
/* For a pass, without a cgroup: drops pages when it is time. */
int pen__squeeze_batch(void *squeeze, const struct pen_batch *,
		       struct pen_err *);

struct pen_team;
struct pen_busy {
	struct pen_team *team;
	atomic_uint_fast64_t done;
	atomic_bool stop;
	uint64_t start_ns;
};
int pen__busy_start(struct pen_busy *, unsigned threads, struct pen_err *);
double pen__busy_stop(struct pen_busy *); /* pieces of work a second */

/* ---- chunks into tables ---- */

enum pen_reader { PEN_READ_RAW, PEN_READ_TABLE, PEN_READ_COO, PEN_READ_CSR };
extern const char *const pen__readers[]; /* names, NULL at the end */

/* Sums that do not depend on the order of anything. */
struct pen_sparse_sums {
	uint64_t nnz, rows;    /* rows: of sample numbers, once a number */
	uint64_t cols, values; /* values: of their bits */
};

struct pen_sparse_reader {
	enum pen_reader reader;
	struct pen_sparse_sums sums;
	struct pen_block part[4]; /* what was made last, to be reused */
};
int pen__convert_batch(void *convert, const struct pen_batch *,
		       struct pen_err *);
void pen__convert_fini(struct pen_sparse_reader *);
void pen__sums_json(struct pen_text *, const struct pen_sparse_sums *);

#endif
