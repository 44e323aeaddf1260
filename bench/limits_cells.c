/*
 * The limit for single cells: a minimal reader of one matrix with a given chunk
 * map. It does what every loader must do: deliver each row once, with shuffled
 * chunks of neighbouring rows and shuffled rows within a block of chunks, in
 * batches in memory, dense or CSR, with the number of each row.
 *
 * A compressed chunk is decompressed once, when a block first needs it: counts
 * and genes are kept for the entire pass, in two bytes each (the sum at the end
 * detects larger ones). Uncompressed rows are copied from the mapped file into
 * the batch. All threads alternate between decompressing and filling; each
 * fills batches in its own reused memory. A dense row is built in a row of
 * zeros that stays in the cache, copied with non-temporal stores, and cleared
 * where it had numbers (clearing it in the batch takes 1.5 times as long).
 *
 * Not included: finding the chunks (MAP has them), obs, checks of gene numbers,
 * duplicate genes in a row, types other than float32 and int32, a memory limit,
 * a consumer. The one timed pass includes the page faults of batches, like the
 * first epoch of a loader, but not those of the kept chunks, because a loader
 * may keep less. Sum, number of values and row numbers are checked, and all of
 * the first batch of each thread, outside the timed part.
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

enum { RAW, ZLIB, BLOSC };
#define HEAD 6u /* words before the offsets of rows */

struct place {
	uint64_t offset, len;
};

struct cells {
	/* the file */
	uint64_t nrows, ngenes, total, kind, step, nchunks;
	uint64_t stride; /* of dense rows: a multiple of a register */
	const uint64_t *indptr;
	const struct place *place[2]; /* of data, of indices */
	const char *path, *map;
	/* the arguments */
	uint32_t rows, chunks, batch; /* rows per chunk, chunks per block */
	bool dense;
	unsigned nthreads;
	/* decompressed values and indices of the entire file */
	uint16_t *narrow[2];
	bool *have; /* by stored chunk */
	uint32_t *wants, nwants;
	/* a block */
	uint32_t *order; /* of chunks of rows */
	uint32_t *id, n; /* rows in the order of delivery */
	atomic_uint_fast32_t next_want, next_batch;
	uint64_t random;
	pthread_barrier_t barrier;
};

struct hand {
	struct cells *c;
	pthread_t thread;
	struct libdeflate_decompressor *inflate;
	char *raw, *scratch;
	float *dense;
	uint32_t *list[2]; /* CSR, or the numbers of a dense row */
	uint64_t *indptr;
	uint32_t *id; /* row numbers */
	float *row;   /* dense: a row of zeros */
	uint64_t nvalues, ids;
	double sum, checking;
	bool checked;
};

/* ---- a block: its stored chunks, then their values ---- */

static void shuffle(struct cells *c, uint32_t *v, uint32_t n)
{
	for (uint32_t i = n; i > 1; i--) {
		const uint64_t j = (next_random(&c->random) >> 32) * i >> 32;
		const uint32_t t = v[i - 1];

		v[i - 1] = v[j];
		v[j] = t;
	}
}

/* Makes a block of chunks [first, last) of the order. */
static void plan_block(struct cells *c, uint32_t first, uint32_t last)
{
	c->n = c->nwants = 0;
	for (; first < last; first++) {
		const uint64_t row = (uint64_t)c->order[first] * c->rows;
		const uint64_t end = row + c->rows < c->nrows ? row + c->rows
							      : c->nrows;
		const uint64_t from = c->indptr[row], to = c->indptr[end];

		for (uint64_t r = row; r < end; r++)
			c->id[c->n++] = (uint32_t)r;
		if (c->kind == RAW || from == to)
			continue;
		for (uint64_t k = from / c->step; k * c->step < to; k++) {
			if (!c->have[k])
				c->wants[c->nwants++] = (uint32_t)k;
			c->have[k] = true;
		}
	}
	shuffle(c, c->id, c->n);
	atomic_store(&c->next_want, 0);
	atomic_store(&c->next_batch, 0);
}

/* Plain loops that the compiler vectorizes. */
#ifdef __x86_64__
#define WIDE __attribute__((target_clones("avx2", "default")))
#else
#define WIDE
#endif

WIDE static void narrow_values(const float *x, uint64_t n, uint16_t *to)
{
	for (uint64_t i = 0; i < n; i++)
		to[i] = (uint16_t)(int32_t)x[i];
}

WIDE static void narrow_genes(const uint32_t *x, uint64_t n, uint16_t *to)
{
	for (uint64_t i = 0; i < n; i++)
		to[i] = (uint16_t)x[i];
}

static void inflate_chunk(struct hand *h, int which, uint32_t chunk,
			  uint16_t *to)
{
	const struct cells *c = h->c;
	const struct place *p = &c->place[which][chunk];
	size_t got = 0;

	if (libdeflate_zlib_decompress(h->inflate, c->map + p->offset, p->len,
				       h->scratch, c->step * 4, &got) ||
	    got != c->step * 4)
		die("chunk %u is damaged", chunk);
	if (which)
		narrow_genes((const uint32_t *)h->scratch, c->step, to);
	else
		narrow_values((const float *)h->scratch, c->step, to);
}

#ifdef BENCH_LZ4
#include <lz4.h>

/* Numbers of four bytes, stored as four separate byte streams. */
WIDE static void weave_values(const uint8_t *s[4], uint64_t n, uint16_t *to)
{
	const uint8_t *a = s[0], *b = s[1], *c = s[2], *d = s[3];

	for (uint64_t i = 0; i < n; i++) {
		const uint32_t bits = a[i] | (uint32_t)b[i] << 8 |
				      (uint32_t)c[i] << 16 |
				      (uint32_t)d[i] << 24;
		float x;

		memcpy(&x, &bits, sizeof(x));
		to[i] = (uint16_t)(int32_t)x;
	}
}

WIDE static void weave_genes(const uint8_t *s[4], uint64_t n, uint16_t *to)
{
	const uint8_t *a = s[0], *b = s[1];

	for (uint64_t i = 0; i < n; i++)
		to[i] = (uint16_t)(a[i] | b[i] << 8);
}

/* A stream of a block: its length, then LZ4, or n uncompressed bytes. */
static const char *stream(const char **p, size_t n, char *room)
{
	uint32_t len;
	const char *in = *p + sizeof(len);

	memcpy(&len, *p, sizeof(len));
	*p = in + len;
	if (len == n)
		return in;
	if (LZ4_decompress_safe(in, room, (int)len, (int)n) != (int)n)
		die("a block is damaged");
	return room;
}

/* Blocks of Blosc have one stream per byte of a number; a shorter last block
 * has one stream for all of them. */
static void blosc_chunk(struct hand *h, int which, uint32_t chunk, uint16_t *to)
{
	const uint64_t len = h->c->place[which][chunk].len;
	uint32_t head[3]; /* bytes, of a block, packed */
	char name[4096];
	int fd;

	snprintf(name, sizeof(name), "%s/X/%s/%u", h->c->path,
		 which ? "indices" : "data", chunk);
	fd = open(name, O_RDONLY);
	if (fd < 0 || read(fd, h->raw, len) != (ssize_t)len)
		die("%s: %s", name, strerror(errno));
	close(fd);
	memcpy(head, h->raw + 4, sizeof(head));
	if (memcmp(h->raw, "\2\1\x21\4", 4) || head[0] != h->c->step * 4)
		die("%s: not byte-shuffled LZ4", name);
	for (uint64_t at = 0, b = 0; at < head[0]; at += head[1], b++) {
		const bool last = head[0] - at < head[1];
		const size_t n = (last ? head[0] - at : head[1]) / 4;
		const uint8_t *s[4];
		const char *p;
		uint32_t start;

		memcpy(&start, h->raw + 16 + b * 4, sizeof(start));
		p = h->raw + start;
		for (size_t i = 0; i < 4; i++)
			s[i] = last && i ? s[i - 1] + n
					 : (const uint8_t *)stream(
						   &p, last ? n * 4 : n,
						   h->scratch + i * n);
		(which ? weave_genes : weave_values)(s, n, to + at / 4);
	}
}
#else
static void blosc_chunk(struct hand *h, int which, uint32_t chunk, uint16_t *to)
{
	(void)h, (void)which, (void)chunk, (void)to;
	die("built without lz4");
}
#endif

/* ---- batches ---- */

WIDE static uint64_t restore(const uint16_t *x, uint64_t n, float *to)
{
	uint32_t sum = 0;

	for (uint64_t i = 0; i < n; i++) {
		to[i] = (float)x[i];
		sum += x[i];
	}
	return sum;
}

WIDE static void widen(const uint16_t *x, uint64_t n, uint32_t *to)
{
	for (uint64_t i = 0; i < n; i++)
		to[i] = x[i];
}

/* Exact, because counts are small and few. */
WIDE static uint64_t sum_of(const float *x, uint64_t n)
{
	uint32_t sum = 0;

	for (uint64_t i = 0; i < n; i++)
		sum += (uint32_t)(int32_t)x[i];
	return sum;
}

/* The contiguous part of numbers [at, end) in the mapped file. */
static uint64_t stored(const struct cells *c, uint64_t at, uint64_t end,
		       const float **x, const uint32_t **genes)
{
	const uint64_t chunk = at / c->step, in = at % c->step;
	const char *v[2];

	for (int k = 0; k < 2; k++)
		v[k] = c->map + c->place[k][chunk].offset + in * 4;
	*x = (const void *)v[0];
	*genes = (const void *)v[1];
	return end - at < c->step - in ? end - at : c->step - in;
}

/* Copies the numbers of a row. */
static uint64_t take_row(struct hand *h, uint32_t id, float *values,
			 uint32_t *genes)
{
	const struct cells *c = h->c;
	const uint64_t start = c->indptr[id], end = c->indptr[id + 1];
	const uint32_t *g;
	const float *x;

	if (c->kind != RAW) {
		h->sum += (double)restore(c->narrow[0] + start, end - start,
					  values);
		widen(c->narrow[1] + start, end - start, genes);
		return end - start;
	}
	for (uint64_t at = start, n; at < end; at += n) {
		n = stored(c, at, end, &x, &g);
		memcpy(values + at - start, x, n * sizeof(*x));
		memcpy(genes + at - start, g, n * sizeof(*g));
		h->sum += (double)sum_of(values + at - start, n);
	}
	return end - start;
}

#ifdef __x86_64__
#include <immintrin.h>

/* Non-temporal stores, because a batch is larger than the caches. */
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

static void put(float *row, const uint32_t *genes, const float *x, uint64_t n)
{
	for (uint64_t i = 0; i < n; i++)
		row[genes[i]] = x[i];
}

static void clear(float *row, const uint32_t *genes, uint64_t n)
{
	for (uint64_t i = 0; i < n; i++)
		row[genes[i]] = 0;
}

static void fill_dense(struct hand *h, const uint32_t *id, uint32_t n)
{
	const struct cells *c = h->c;
	const uint32_t *g = h->list[1];
	const float *x = (float *)h->list[0];

	for (uint32_t i = 0; i < n; i++) {
		const uint64_t start = c->indptr[id[i]];
		const uint64_t end = c->indptr[id[i] + 1];
		uint64_t len = end - start;

		h->id[i] = id[i];
		h->nvalues += len;
		if (c->kind != RAW)
			take_row(h, id[i], (float *)h->list[0], h->list[1]);
		for (uint64_t at = start; at < end; at += len) {
			if (c->kind == RAW) {
				len = stored(c, at, end, &x, &g);
				h->sum += (double)sum_of(x, len);
			}
			put(h->row, g, x, len);
		}
		pour(h->dense + i * c->stride, h->row, c->ngenes);
		for (uint64_t at = start; at < end; at += len) {
			if (c->kind == RAW)
				len = stored(c, at, end, &x, &g);
			clear(h->row, g, len);
		}
	}
}

static void fill_csr(struct hand *h, const uint32_t *id, uint32_t n)
{
	uint64_t to = 0;

	for (uint32_t i = 0; i < n; i++) {
		h->id[i] = id[i];
		h->indptr[i] = to;
		to += take_row(h, id[i], (float *)h->list[0] + to,
			       h->list[1] + to);
	}
	h->indptr[n] = to;
	h->nvalues += to;
}

/* Checks all of a batch against the offsets of the file and its sum. */
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
				die("the gene %u does not exist",
				    h->list[1][i]);
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

static void unpack(struct hand *h, int which, uint32_t chunk)
{
	uint16_t *to = h->c->narrow[which] + chunk * h->c->step;

	if (h->c->kind == BLOSC)
		blosc_chunk(h, which, chunk, to);
	else
		inflate_chunk(h, which, chunk, to);
}

static void *work(void *arg)
{
	struct hand *h = arg;
	struct cells *c = h->c;
	const uint32_t nchunks = (uint32_t)((c->nrows + c->rows - 1) / c->rows);

	for (uint32_t first = 0; first < nchunks; first += c->chunks) {
		const uint32_t last = first + c->chunks;
		uint32_t k;

		/* NOLINTNEXTLINE(bugprone-posix-return): it is negative */
		if (pthread_barrier_wait(&c->barrier) ==
		    PTHREAD_BARRIER_SERIAL_THREAD)
			plan_block(c, first, last < nchunks ? last : nchunks);
		pthread_barrier_wait(&c->barrier);
		while ((k = (uint32_t)atomic_fetch_add(&c->next_want, 1)) <
		       c->nwants * 2)
			unpack(h, k & 1, c->wants[k / 2]);
		pthread_barrier_wait(&c->barrier);
		take_batches(h);
	}
	return NULL;
}

/* ---- the command ---- */

static void open_map(struct cells *c, const char *map, const char *path)
{
	size_t size;
	const uint64_t *w = (const void *)map_file(map, MAP_POPULATE, &size);

	if (size < HEAD * 8)
		die("%s: not a map of cells", map);
	c->nrows = w[0];
	c->ngenes = w[1];
	c->total = w[2];
	c->kind = w[3];
	c->step = w[4];
	c->nchunks = w[5];
	c->stride = (c->ngenes + 7) & ~(uint64_t)7;
	if (c->nrows >= UINT32_MAX || c->nchunks >= UINT32_MAX ||
	    size != 8 * (HEAD + c->nrows + 1 + 4 * c->nchunks))
		die("%s: not a map of cells", map);
	c->indptr = w + HEAD;
	c->place[0] = (const struct place *)(c->indptr + c->nrows + 1);
	c->place[1] = c->place[0] + c->nchunks;
	c->path = path;
	if (c->kind != BLOSC)
		c->map = map_file(path, 0, &size);
}

static void prepare(struct cells *c, struct hand *h)
{
	const uint32_t nchunks = (uint32_t)((c->nrows + c->rows - 1) / c->rows);
	uint64_t longest = 0;
	size_t raw = 1;

	for (uint64_t i = 0; i < c->nrows; i++)
		if (c->indptr[i + 1] - c->indptr[i] > longest)
			longest = c->indptr[i + 1] - c->indptr[i];
	for (uint64_t i = 0; i < c->nchunks * 2; i++)
		if (c->place[0][i].len > raw) /* indices follow data */
			raw = c->place[0][i].len;
	c->order = shuffled(nchunks);
	c->id = need_huge(c->nrows, sizeof(*c->id));
	c->have = need(c->nchunks, sizeof(*c->have));
	memset(c->have, 0, c->nchunks * sizeof(*c->have));
	c->wants = need_huge(c->nchunks, sizeof(*c->wants));
	/* not timed: a loader that keeps less has fewer page faults */
	for (int k = 0; k < 2 && c->kind != RAW; k++) {
		c->narrow[k] =
			need_huge(c->nchunks * c->step, sizeof(uint16_t));
		memset(c->narrow[k], 0,
		       c->nchunks * c->step * sizeof(uint16_t));
	}
	for (unsigned i = 0; i < c->nthreads; i++) {
		h[i] = (struct hand){ .c = c };
		h[i].inflate = libdeflate_alloc_decompressor();
		h[i].raw = need_huge(1, raw);
		h[i].scratch = need_huge(c->step, 4);
		h[i].id = need_huge(c->batch, 4);
		h[i].indptr = need_huge(c->batch + 1, 8);
		h[i].row = need(c->stride, sizeof(*h[i].row));
		memset(h[i].row, 0, c->stride * sizeof(*h[i].row));
		if (!h[i].inflate)
			die("no memory");
		if (c->dense) /* zeroed by the kernel */
			h[i].dense = mmap(NULL, c->batch * c->stride * 4,
					  PROT_READ | PROT_WRITE,
					  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		if (h[i].dense == MAP_FAILED)
			die("cannot allocate a batch");
		if (c->dense)
			madvise(h[i].dense, c->batch * c->stride * 4,
				MADV_HUGEPAGE);
		for (int k = 0; k < 2; k++)
			h[i].list[k] = need_huge(
				longest * (c->dense ? 1 : c->batch), 4);
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

/* cells MAP PATH OUTPUT ROWS CHUNKS BATCH THREADS: one complete pass. */
void cmd_cells(char **arg)
{
	struct cells c = { .random = 1 };
	struct hand *h;
	double took, cpu;

	c.dense = !strcmp(arg[2], "dense");
	c.rows = (uint32_t)number(arg[3]);
	c.chunks = (uint32_t)number(arg[4]);
	c.batch = (uint32_t)number(arg[5]);
	c.nthreads = (unsigned)number(arg[6]);
	if (!c.rows || !c.chunks || !c.batch || !c.nthreads)
		die("cells: nothing to do");
	open_map(&c, arg[0], arg[1]);
	h = need(c.nthreads, sizeof(*h));
	prepare(&c, h);
	pthread_barrier_init(&c.barrier, NULL, c.nthreads);
	cpu = cpu_now();
	took = run(&c, h);
	printf("{\"samples\": %" PRIu64 ", \"seconds\": %.6f, "
	       "\"cpu_s\": %.6f}\n",
	       c.nrows, took, cpu_now() - cpu);
}
