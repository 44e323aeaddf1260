/* See drawn.h. Memory is one number per sample, and two per chunk. */
#include "sampler/drawn.h"

#include <math.h>

#include "base/mem.h"

static uint64_t chunk_end(const struct pen_drawn *d, uint64_t c, uint64_t n)
{
	return (c + 1) * d->chunk < n ? (c + 1) * d->chunk : n;
}

int pen__drawn_init(struct pen_drawn *d, struct pen_sampler *s, const double *w,
		    struct pen_err *err)
{
	const uint64_t n = s->pop.n;
	uint64_t nchunks;
	double *of_chunk, most = 0;
	int rc;

	if (d->chunk > n)
		d->chunk = n;
	nchunks = (n - 1) / d->chunk + 1;
	of_chunk = pen__calloc(nchunks, sizeof(*of_chunk));
	d->sum = pen__alloc(n, sizeof(*d->sum));
	for (uint64_t i = 0; i < n; i++)
		most = w[i] > most ? w[i] : most;
	for (uint64_t i = 0; of_chunk && d->sum && i < n; i++) {
		of_chunk[i / d->chunk] += w[i] / most;
		d->sum[i] = of_chunk[i / d->chunk];
	}
	rc = of_chunk && d->sum ? pen__alias_init(&d->alias, of_chunk, nchunks)
				: PEN_ENOMEM;
	pen__free(of_chunk);
	if (rc)
		return pen__fail_nomem(err, "chunk", n * sizeof(*d->sum));
	s->chunk = d->chunk;
	s->window = d->chunk * d->chunks;
	return 0;
}

void pen__drawn_fini(struct pen_drawn *d)
{
	pen__alias_fini(&d->alias);
	pen__free(d->sum);
}

/* The first element of the chunk whose cumulative weight exceeds `at`. */
static uint64_t search(const struct pen_drawn *d, uint64_t lo, uint64_t end,
		       double at)
{
	uint64_t hi = end - 1;

	while (lo < hi) {
		const uint64_t mid = lo + (hi - lo) / 2;

		if (d->sum[mid] > at)
			hi = mid;
		else
			lo = mid + 1;
	}
	return lo;
}

/* Sample number `slot` of a draw. */
static uint64_t pick(const struct pen_drawn *d, uint64_t n, uint64_t key,
		     uint64_t draw, uint64_t slot)
{
	const uint64_t c = pen__alias_draw(&d->alias, key, draw);
	const uint64_t first = c * d->chunk, end = chunk_end(d, c, n);
	const double u =
		(double)(pen__rng_at(pen__rng_key(key, 1), draw) >> 11) *
		0x1p-53;
	const double sum = d->sum[end - 1];
	double at = ((double)slot + u) / (double)d->chunk * sum;

	/* rounding must not lead past the last element with a weight */
	if (at >= sum)
		at = nextafter(sum, 0);
	return search(d, first, end, at);
}

static void enter_window(struct pen_drawn *d, const struct pen_sampler *s,
			 uint64_t epoch, uint64_t w)
{
	const uint64_t left = s->length - w * s->window;

	if (d->ready && d->epoch == epoch && d->cur == w)
		return;
	pen__perm_init(&d->rows, left < s->window ? left : s->window,
		       pen__rng_key(s->seed, epoch), w + 2);
	d->epoch = epoch;
	d->cur = w;
	d->ready = true;
}

void pen__drawn_ids(struct pen_drawn *d, const struct pen_sampler *s,
		    uint64_t epoch, uint64_t pos, size_t n, uint64_t *out)
{
	const uint64_t key = pen__rng_key(s->seed, epoch);

	for (size_t i = 0; i < n; i++) {
		const uint64_t w = (pos + i) / s->window;
		uint64_t at;

		enter_window(d, s, epoch, w);
		at = pen__perm_at(&d->rows, (pos + i) % s->window);
		out[i] = pick(d, s->pop.n, key, w * d->chunks + at / d->chunk,
			      at % d->chunk);
	}
}

uint64_t pen__drawn_end(struct pen_sampler *s, uint64_t epoch, uint64_t pos)
{
	const uint64_t end = (pos / s->window + 1) * s->window;

	(void)epoch;
	return end < s->length ? end : s->length;
}
