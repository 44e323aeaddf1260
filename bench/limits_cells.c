/*
 * The limit of single cells: a straight reader of one matrix whose chunk map it
 * is given. It does what every loader has to: each row once, in an order that
 * chunks of neighbouring rows shuffled and then the rows of a block of chunks
 * shuffled give, in batches in memory, dense or CSR, with each row's number.
 *
 * A block's stored chunks are read and unpacked once, straight into a CSR
 * block where all of a chunk is wanted; then threads take batches, each into
 * memory of its own that is used over and over. A dense row is made in a row of
 * zeros that stays in the cache, copied out past the caches, and cleared where
 * it had numbers (to clear it in the batch takes half as long again). Blocks
 * follow one another: unpacking and filling take turns, on all threads. Or (WAY
 * mmap) rows that are stored as they are go from the mapped file into the
 * batch, without a block between.
 *
 * Not in it: finding the chunks (MAP has them), obs, a check that genes are
 * those of the matrix, genes that come twice in a row, types other than
 * float32 and int32, a consumer. The one pass that is timed has the page
 * faults of all memory in it, as a loader's first epoch has. Sum, number of
 * values and row numbers are checked; of each thread's first batch all of it,
 * off the clock.
 */
#include "limits.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <libdeflate.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#ifdef BENCH_BLOSC
#include <blosc.h>
#endif

enum { RAW, ZLIB, BLOSC };
#define HEAD 6u /* words before the offsets of rows */

struct place {
	uint64_t offset, len;
};

/* Rows one after another in the file, and where they are in the block. */
struct run {
	uint64_t from, to; /* values */
	uint64_t at;
};

/* A stored chunk that is wanted, and the first run in it. */
struct want {
	uint32_t chunk, run;
};

struct cells {
	/* the file */
	uint64_t nrows, ngenes, total, kind, step, nchunks;
	uint64_t stride; /* of dense rows: a whole number of registers */
	const uint64_t *indptr;
	const struct place *place[2]; /* of data, of indices */
	const char *path;	      /* of a zarr store */
	const char *map;
	int fd;
	/* what is asked for */
	uint32_t rows, chunks, batch; /* rows of a chunk, chunks of a block */
	bool dense, mapped;
	unsigned nthreads;
	/* a block */
	uint32_t *order; /* of chunks of rows */
	uint32_t *id;	 /* rows as they are delivered */
	uint64_t *at;	 /* where each is in the block, or in the file */
	uint32_t n;
	uint32_t *column[2]; /* values as they are, indices */
	struct run *runs;
	struct want *wants;
	uint32_t nruns, nwants;
	atomic_uint_fast32_t next_want, next_batch;
	uint64_t random;
	pthread_barrier_t barrier;
};

/* Values one after another, in the block or in the file. */
struct part {
	uint64_t at, n;
};

struct hand {
	struct cells *c;
	pthread_t thread;
	struct libdeflate_decompressor *inflate;
	char *raw, *scratch;
	float *dense;
	uint32_t *list[2]; /* CSR */
	uint64_t *indptr;  /* CSR */
	uint32_t *id;	   /* the rows' numbers */
	float *row;	   /* dense: one, of zeros */
	uint64_t nvalues, ids;
	double sum, checking;
	bool checked;
};

/* Untouched memory, in large pages where the kernel has them. */
static void *fresh(size_t n, size_t size)
{
	const size_t huge = 2 << 20;
	void *p = NULL;

	if (!n)
		n = 1;
	if (n > SIZE_MAX / 2 / size ||
	    posix_memalign(&p, huge, (n * size + huge - 1) & ~(huge - 1)))
		die("no memory for %zu x %zu bytes", n, size);
	madvise(p, (n * size + huge - 1) & ~(huge - 1), MADV_HUGEPAGE);
	return p;
}

static void read_exactly(int fd, char *to, size_t n, uint64_t at)
{
	while (n) {
		const ssize_t k = pread(fd, to, n, (off_t)at);

		if (k <= 0)
			die("pread: %s", k ? strerror(errno) : "too short");
		to += k;
		n -= (size_t)k;
		at += (uint64_t)k;
	}
}

static void read_zarr(const struct cells *c, int which, uint32_t chunk,
		      char *to)
{
	char name[4096];
	int fd;

	snprintf(name, sizeof(name), "%s/X/%s/%u", c->path,
		 which ? "indices" : "data", chunk);
	fd = open(name, O_RDONLY);
	if (fd < 0)
		die("%s: %s", name, strerror(errno));
	read_exactly(fd, to, c->place[which][chunk].len, 0);
	close(fd);
}

/* ---- a block: which chunks, then their values ---- */

static int by_number(const void *a, const void *b)
{
	const uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return (x > y) - (x < y);
}

static void shuffle(struct cells *c, uint32_t *v, uint32_t n)
{
	for (uint32_t i = n; i > 1; i--) {
		const uint64_t j = (next_random(&c->random) >> 32) * i >> 32;
		const uint32_t t = v[i - 1];

		v[i - 1] = v[j];
		v[j] = t;
	}
}

/* The stored chunks of a run; one that the last run also touched is wanted
 * already. */
static void want_run(struct cells *c, const struct run *r)
{
	uint64_t k = r->from / c->step;

	if (c->nwants && c->wants[c->nwants - 1].chunk == k)
		k++;
	for (; k * c->step < r->to; k++)
		c->wants[c->nwants++] =
			(struct want){ (uint32_t)k, (uint32_t)(r - c->runs) };
}

/* Chunks [first, last) of the order become a block. */
static void plan_block(struct cells *c, uint32_t first, uint32_t last)
{
	uint64_t at = 0;
	uint32_t *chunk = &c->order[first];
	const uint32_t n = last - first;

	qsort(chunk, n, sizeof(*chunk), by_number);
	c->nruns = c->nwants = c->n = 0;
	for (uint32_t i = 0; i < n; i++) {
		const uint64_t row = (uint64_t)chunk[i] * c->rows;
		const uint64_t end = row + c->rows < c->nrows ? row + c->rows
							      : c->nrows;
		const bool on = i && chunk[i] == chunk[i - 1] + 1;

		if (!on)
			c->runs[c->nruns++] =
				(struct run){ .from = c->indptr[row],
					      .at = at };
		c->runs[c->nruns - 1].to = c->indptr[end];
		at += c->indptr[end] - c->indptr[row];
		for (uint64_t r = row; r < end; r++)
			c->id[c->n++] = (uint32_t)r;
	}
	for (uint32_t i = 0; i < c->nruns && !c->mapped; i++)
		want_run(c, &c->runs[i]);
	/* where rows are, by their number; then the rows in their order */
	for (uint32_t i = 0, r = 0; i < c->n; i++) {
		const uint64_t from = c->indptr[c->id[i]];

		while (from >= c->runs[r].to && r + 1 < c->nruns)
			r++;
		c->at[c->id[i]] =
			c->mapped ? from
				  : from - c->runs[r].from + c->runs[r].at;
	}
	shuffle(c, c->id, c->n);
	atomic_store(&c->next_want, 0);
	atomic_store(&c->next_batch, 0);
}

static void unpack(struct hand *h, int which, const struct want *w, char *to)
{
	const struct cells *c = h->c;
	const struct place *p = &c->place[which][w->chunk];
	const size_t size = c->step * 4;
	size_t got = 0;

	if (c->kind == BLOSC)
		read_zarr(c, which, w->chunk, h->raw);
	else
		read_exactly(c->fd, c->kind == RAW ? to : h->raw, p->len,
			     p->offset);
	if (c->kind == ZLIB &&
	    libdeflate_zlib_decompress(h->inflate, h->raw, p->len, to, size,
				       &got))
		die("chunk %u is damaged", w->chunk);
#ifdef BENCH_BLOSC
	if (c->kind == BLOSC)
		got = (size_t)blosc_decompress_ctx(h->raw, to, size, 1);
#endif
	if (got != (c->kind == RAW ? 0 : size))
		die("chunk %u is damaged", w->chunk);
}

/* Values [from, to) of a chunk that starts at `start`, into the block. */
static void take_part(struct hand *h, int which, const struct want *w,
		      const struct run *part)
{
	const struct cells *c = h->c;
	const uint64_t start = w->chunk * c->step;
	uint32_t *to = c->column[which] + part->at;
	const size_t n = part->to - part->from;

	if (c->kind == RAW) {
		read_exactly(c->fd, (char *)to, n * 4,
			     c->place[which][w->chunk].offset +
				     (part->from - start) * 4);
		return;
	}
#ifdef BENCH_BLOSC
	if (c->kind == BLOSC) {
		/* only the parts of a chunk that it needs are unpacked */
		if (blosc_getitem(h->raw, (int)(part->from - start), (int)n,
				  to) != (int)(n * 4))
			die("chunk %u is damaged", w->chunk);
		return;
	}
#endif
	memcpy(to, h->scratch + (part->from - start) * 4, n * 4);
}

static void take_want(struct hand *h, int which, const struct want *w)
{
	const struct cells *c = h->c;
	const uint64_t start = w->chunk * c->step, end = start + c->step;
	const struct run *r = &c->runs[w->run];

	if (r->from <= start && r->to >= end) {
		unpack(h, which, w,
		       (char *)(c->column[which] + r->at + start - r->from));
		return;
	}
	if (c->kind == BLOSC)
		read_zarr(c, which, w->chunk, h->raw);
	else if (c->kind == ZLIB)
		unpack(h, which, w, h->scratch);
	for (; r < c->runs + c->nruns && r->from < end; r++) {
		struct run part = *r;

		if (part.from < start) {
			part.at += start - part.from;
			part.from = start;
		}
		part.to = part.to < end ? part.to : end;
		take_part(h, which, w, &part);
	}
}

/* ---- batches ---- */

typedef float lanes __attribute__((vector_size(32), aligned(4)));

/* Exact: counts, and few of them. */
static float sum_of(const float *v, uint64_t n)
{
	lanes s = { 0 };
	float sum = 0;
	uint64_t i = 0;

	for (; i + 8 <= n; i += 8) {
		lanes x;

		memcpy(&x, v + i, sizeof(x));
		s += x;
	}
	for (; i < n; i++)
		sum += v[i];
	for (int k = 0; k < 8; k++)
		sum += s[k];
	return sum;
}

static struct part row_of(const struct cells *c, uint32_t id)
{
	return (struct part){ c->at[id], c->indptr[id + 1] - c->indptr[id] };
}

/* Values at `at` that lie in one piece, at most n of them. */
static uint64_t piece(const struct cells *c, uint64_t at, uint64_t n,
		      const uint32_t *v[2])
{
	const uint64_t chunk = at / c->step, in = at % c->step;

	for (int k = 0; k < 2; k++)
		v[k] = c->mapped
			       ? (const uint32_t *)(c->map +
						    c->place[k][chunk].offset) +
					 in
			       : c->column[k] + at;
	return c->mapped && n > c->step - in ? c->step - in : n;
}

#ifdef __x86_64__
#include <immintrin.h>

/* Past the caches, which a batch is larger than. */
__attribute__((target("avx"))) static void pour(float *to, const float *from,
						uint64_t n)
{
	uint64_t i = 0;

	for (; i + 8 <= n; i += 8)
		_mm256_stream_ps(to + i, _mm256_load_ps(from + i));
	memcpy(to + i, from + i, (n - i) * 4);
	_mm_sfence();
}
#else
static void pour(float *to, const float *from, uint64_t n)
{
	memcpy(to, from, n * 4);
}
#endif

static void fill_dense(struct hand *h, const uint32_t *id, uint32_t n)
{
	const struct cells *c = h->c;
	float *row = h->row;

	for (uint32_t i = 0; i < n; i++) {
		const struct part p = row_of(c, id[i]);
		const uint32_t *v[2];

		h->id[i] = id[i];
		h->nvalues += p.n;
		for (uint64_t at = 0, len; at < p.n; at += len) {
			const float *x;

			len = piece(c, p.at + at, p.n - at, v);
			x = (const float *)v[0];
			for (uint64_t k = 0; k < len; k++)
				row[v[1][k]] = x[k];
			h->sum += (double)sum_of(x, len);
		}
		pour(h->dense + i * c->stride, row, c->ngenes);
		for (uint64_t at = 0, len; at < p.n; at += len) {
			len = piece(c, p.at + at, p.n - at, v);
			for (uint64_t k = 0; k < len; k++)
				row[v[1][k]] = 0;
		}
	}
}

static void fill_csr(struct hand *h, const uint32_t *id, uint32_t n)
{
	const struct cells *c = h->c;
	const uint32_t *v[2];
	uint64_t to = 0;

	for (uint32_t i = 0; i < n; i++) {
		struct part p = row_of(c, id[i]);

		h->id[i] = id[i];
		h->indptr[i] = to;
		while (p.n) {
			const uint64_t len = piece(c, p.at, p.n, v);

			memcpy(h->list[0] + to, v[0], len * 4);
			memcpy(h->list[1] + to, v[1], len * 4);
			h->sum += (double)sum_of((const float *)h->list[0] + to,
						 len);
			to += len;
			p.at += len;
			p.n -= len;
		}
	}
	h->indptr[n] = to;
	h->nvalues += to;
}

/* All of a batch against the file's offsets and its own sum. */
static void check_batch(struct hand *h, uint32_t n, double sum)
{
	const struct cells *c = h->c;
	const double start = now();
	uint64_t want = 0, found = 0;
	double all = 0;

	for (uint32_t i = 0; i < n; i++)
		want += c->indptr[h->id[i] + 1] - c->indptr[h->id[i]];
	if (c->dense) {
		for (uint64_t i = 0; i < n * c->stride; i++) {
			found += h->dense[i] != 0;
			all += (double)h->dense[i];
		}
	} else {
		found = h->indptr[n];
		for (uint64_t i = 0; i < found; i++) {
			if (h->list[1][i] >= c->ngenes)
				die("no gene has number %u", h->list[1][i]);
			all += (double)((const float *)h->list[0])[i];
		}
	}
	if (found != want || all != sum)
		die("a batch is wrong");
	h->checked = true;
	h->checking = now() - start;
}

static void take_batches(struct hand *h)
{
	struct cells *c = h->c;
	uint32_t first;

	while ((first = (uint32_t)atomic_fetch_add(&c->next_batch, c->batch)) <
	       c->n) {
		const uint32_t left = c->n - first;
		const uint32_t n = left < c->batch ? left : c->batch;
		const double sum = h->sum;

		if (c->dense)
			fill_dense(h, c->id + first, n);
		else
			fill_csr(h, c->id + first, n);
		for (uint32_t i = 0; i < n; i++)
			h->ids += h->id[i];
		if (!h->checked)
			check_batch(h, n, h->sum - sum);
	}
}

static void *work(void *arg)
{
	struct hand *h = arg;
	struct cells *c = h->c;
	const uint32_t nchunks = (uint32_t)((c->nrows + c->rows - 1) / c->rows);

	for (uint32_t first = 0; first < nchunks; first += c->chunks) {
		const uint32_t last = first + c->chunks;
		uint32_t k;

		if (pthread_barrier_wait(&c->barrier) ==
		    PTHREAD_BARRIER_SERIAL_THREAD)
			plan_block(c, first, last < nchunks ? last : nchunks);
		pthread_barrier_wait(&c->barrier);
		while ((k = (uint32_t)atomic_fetch_add(&c->next_want, 1)) <
		       c->nwants * 2)
			take_want(h, k & 1, &c->wants[k / 2]);
		pthread_barrier_wait(&c->barrier);
		take_batches(h);
	}
	return NULL;
}

/* ---- the command ---- */

static void open_map(struct cells *c, const char *map, const char *path)
{
	const int fd = open(map, O_RDONLY);
	struct stat st;
	uint64_t *w;

	if (fd < 0 || fstat(fd, &st))
		die("%s: %s", map, strerror(errno));
	w = need(1, (size_t)st.st_size + HEAD * 8);
	read_exactly(fd, (char *)w, (size_t)st.st_size, 0);
	close(fd);
	c->nrows = w[0];
	c->ngenes = w[1];
	c->total = w[2];
	c->kind = w[3];
	c->step = w[4];
	c->nchunks = w[5];
	c->stride = (c->ngenes + 7) & ~(uint64_t)7;
	if (c->nrows >= UINT32_MAX || c->nchunks >= UINT32_MAX ||
	    (uint64_t)st.st_size != 8 * (HEAD + c->nrows + 1 + 4 * c->nchunks))
		die("%s: not a map of cells", map);
	c->indptr = w + HEAD;
	c->place[0] = (const struct place *)(c->indptr + c->nrows + 1);
	c->place[1] = c->place[0] + c->nchunks;
	c->path = path;
	if (c->kind == BLOSC)
		return;
	c->fd = open(path, O_RDONLY);
	if (c->fd < 0 || fstat(c->fd, &st))
		die("%s: %s", path, strerror(errno));
	if (!c->mapped)
		return;
	if (c->kind != RAW)
		die("%s: its rows are packed", path);
	c->map =
		mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_SHARED, c->fd, 0);
	if (c->map == MAP_FAILED)
		die("%s: mmap: %s", path, strerror(errno));
}

static uint64_t most_values(const struct cells *c, uint32_t *most_of_batch)
{
	const uint64_t rows = (uint64_t)c->rows * c->chunks;
	uint64_t longest = 0;

	for (uint64_t i = 0; i < c->nrows; i++)
		if (c->indptr[i + 1] - c->indptr[i] > longest)
			longest = c->indptr[i + 1] - c->indptr[i];
	*most_of_batch = (uint32_t)(longest * c->batch);
	/* pages that are never touched cost nothing */
	return rows < c->nrows ? rows * longest : c->indptr[c->nrows];
}

static void prepare(struct cells *c, struct hand *h)
{
	const uint32_t nchunks = (uint32_t)((c->nrows + c->rows - 1) / c->rows);
	uint32_t most;
	const uint64_t values = most_values(c, &most);
	size_t raw = 1;

	for (uint64_t i = 0; i < c->nchunks * 2; i++)
		if (c->place[0][i].len > raw) /* indices follow data */
			raw = c->place[0][i].len;
	c->order = shuffled(nchunks);
	c->id = fresh(c->nrows, sizeof(*c->id));
	c->at = fresh(c->nrows, sizeof(*c->at));
	for (int k = 0; k < 2 && !c->mapped; k++)
		c->column[k] = fresh(values, 4);
	c->runs = fresh(c->chunks, sizeof(*c->runs));
	c->wants = fresh(c->nchunks + 1, sizeof(*c->wants));
	for (unsigned i = 0; i < c->nthreads; i++) {
		h[i] = (struct hand){ .c = c };
		h[i].inflate = libdeflate_alloc_decompressor();
		h[i].raw = fresh(1, raw);
		h[i].scratch = fresh(c->step, 4);
		h[i].id = fresh(c->batch, 4);
		h[i].indptr = fresh(c->batch + 1, 8);
		h[i].row = need(c->stride, sizeof(*h[i].row));
		memset(h[i].row, 0, c->stride * sizeof(*h[i].row));
		if (!h[i].inflate)
			die("no memory");
		if (c->dense) /* zeroed by the kernel, page by page */
			h[i].dense = mmap(NULL, c->batch * c->stride * 4,
					  PROT_READ | PROT_WRITE,
					  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		if (h[i].dense == MAP_FAILED)
			die("no memory for a batch");
		if (c->dense)
			madvise(h[i].dense, c->batch * c->stride * 4,
				MADV_HUGEPAGE);
		for (int k = 0; k < 2 && !c->dense; k++)
			h[i].list[k] = fresh(most, 4);
	}
}

static double run(struct cells *c, struct hand *h)
{
	const double start = now();
	double sum = 0, checking = 0;
	uint64_t nvalues = 0, ids = 0;
	double took;

	for (unsigned i = 0; i < c->nthreads; i++)
		if (pthread_create(&h[i].thread, NULL, work, &h[i]))
			die("pthread_create failed");
	for (unsigned i = 0; i < c->nthreads; i++)
		pthread_join(h[i].thread, NULL);
	took = now() - start;
	for (unsigned i = 0; i < c->nthreads; i++) {
		sum += h[i].sum;
		nvalues += h[i].nvalues;
		ids += h[i].ids;
		if (h[i].checking > checking)
			checking = h[i].checking;
	}
	if (sum != (double)c->total || nvalues != c->indptr[c->nrows] ||
	    ids != c->nrows * (c->nrows - 1) / 2)
		die("the content sum is wrong");
	return took - checking;
}

/* cells MAP PATH WAY OUTPUT ROWS CHUNKS BATCH THREADS: one whole pass. */
void cmd_cells(char **arg)
{
	struct cells c = { .random = 1, .fd = -1 };
	struct hand *h;
	double took;

	c.mapped = !strcmp(arg[2], "mmap");
	c.dense = !strcmp(arg[3], "dense");
	c.rows = (uint32_t)number(arg[4]);
	c.chunks = (uint32_t)number(arg[5]);
	c.batch = (uint32_t)number(arg[6]);
	c.nthreads = (unsigned)number(arg[7]);
	if (!c.rows || !c.chunks || !c.batch || !c.nthreads)
		die("cells: nothing to do");
	open_map(&c, arg[0], arg[1]);
#ifndef BENCH_BLOSC
	if (c.kind == BLOSC)
		die("built without blosc");
#endif
	h = need(c.nthreads, sizeof(*h));
	prepare(&c, h);
	pthread_barrier_init(&c.barrier, NULL, c.nthreads);
	took = run(&c, h);
	printf("{\"samples\": %" PRIu64 ", \"seconds\": %.6f, "
	       "\"sum\": %" PRIu64 "}\n",
	       c.nrows, took, c.total);
}
