/*
 * The model: see model.h. Rows are a multiple of eight floats, to fit the
 * compiler's vectors; the hot functions are compiled twice, for any machine and
 * for AVX2, and the right version is chosen at start.
 */
#include "model.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define BETA1 0.9
#define BETA2 0.999
#define EPSILON 1e-8
#define MOST_LANES (MOST_DIM / LANES)
#define MOST_WORDS 72 /* target and noise, in multiples of LANES */

typedef float lanes __attribute__((vector_size(4 * LANES), aligned(4)));
typedef int32_t bits __attribute__((vector_size(4 * LANES), aligned(4)));

/* Functions that clang clones cannot be called from other files. */
#ifdef __clang__
#define FAST
#else
#define FAST __attribute__((target_clones("avx2", "default")))
#endif
#define INLINE static inline __attribute__((always_inline))

static uint64_t mix(uint64_t z)
{
	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
	z = (z ^ z >> 27) * 0x94d049bb133111ebu;
	return z ^ z >> 31;
}

/* The i-th draw of a standard normal distribution (Box and Muller). */
static float normal(uint64_t seed, uint64_t i)
{
	uint64_t a = mix(seed + (2 * i + 1) * 0x9e3779b97f4a7c15u);
	uint64_t b = mix(seed + (2 * i + 2) * 0x9e3779b97f4a7c15u);
	double u = ((double)(a >> 11) + 1) * 0x1p-53;
	double v = (double)(b >> 11) * 0x1p-53;

	return (float)(sqrt(-2 * log(u)) * cos(6.283185307179586 * v));
}

static void *zeros(uint64_t n, size_t size)
{
	return calloc(n ? n : 1, size);
}

static bool table_init(struct table *t, const struct model *m)
{
	uint64_t n;

	if (__builtin_mul_overflow(m->nwords, (uint64_t)m->stride, &n))
		return false;
	t->at = zeros(n, sizeof(float));
	t->mean = zeros(n, sizeof(float));
	t->square = zeros(n, sizeof(float));
	return t->at && t->mean && t->square;
}

static void table_fini(struct table *t)
{
	free(t->at);
	free(t->mean);
	free(t->square);
}

static void draw(const struct model *m, uint64_t seed, uint64_t row, float *at)
{
	for (uint32_t d = 0; d < m->dim; d++)
		at[d] = (float)m->spread * normal(mix(seed), row * m->dim + d);
}

bool model_init(struct model *m, uint32_t dim, uint64_t nwords)
{
	m->dim = dim;
	m->stride = (dim + LANES - 1) / LANES * LANES;
	m->nwords = nwords;
	m->steps = 0;
	if (!table_init(&m->words, m) || !table_init(&m->out, m))
		return false;
	for (uint64_t r = 0; r < nwords; r++)
		draw(m, 2 * m->seed + 2, r, m->words.at + r * m->stride);
	return true;
}

void model_fini(struct model *m)
{
	table_fini(&m->words);
	table_fini(&m->out);
}

size_t doc_bytes(const struct model *m)
{
	return sizeof(struct doc) + 3 * m->stride * sizeof(float);
}

void doc_draw(const struct model *m, uint64_t id, struct doc *d)
{
	memset(d, 0, doc_bytes(m));
	draw(m, 2 * m->seed + 1, id, d->v);
}

bool sums_init(struct sums *s, const struct model *m)
{
	const uint64_t rows = 2 * m->nwords;

	*s = (struct sums){
		.part = zeros(rows * m->stride, sizeof(float)),
		.total = zeros(rows * (m->stride + 1), sizeof(int64_t)),
		.marked = zeros(rows, 1),
		.list = zeros(rows + 1, sizeof(uint32_t)),
		.bits = zeros(rows / 64 + 1, sizeof(uint64_t)),
	};
	return s->part && s->total && s->marked && s->list && s->bits;
}

void sums_fini(struct sums *s)
{
	free(s->part);
	free(s->total);
	free(s->marked);
	free(s->list);
	free(s->bits);
}

/* where: all bits set or none, as from a comparison */
#define PICK(where, a, b)                                                      \
	((lanes)(((bits)(a) & (where)) | ((bits)(b) & ~(where))))

/*
 * 1 + exp(-|s|) of eight s, with a relative error of exp below 2e-7: 2^n from
 * the exponent bits, and a polynomial for the rest. Beyond 87, exp is
 * negligible.
 */
INLINE void one_plus_exp(const lanes *s, lanes *out)
{
	lanes x = PICK(*s > 0, -*s, *s), t, r, p;
	bits n;

	x = PICK(x < -87.0f, (lanes){ 0 } - 87.0f, x);
	n = __builtin_convertvector(x * 1.44269504f - 0.5f, bits);
	t = __builtin_convertvector(n, lanes);
	r = x - t * 0.693359375f + t * 2.12194440e-4f;
	p = r * 1.9875691e-4f + 1.3981999e-3f;
	p = p * r + 8.3334519e-3f;
	p = p * r + 4.1665795e-2f;
	p = p * r + 1.6666665e-1f;
	p = p * r + 0.5f;
	p = p * r * r + r + 1.0f;
	*out = 1.0f + p * (lanes)((n + 127) << 23);
}

/* Rows are processed in groups of lanes; their number n is a compile-time
 * constant for the usual vector length, so that they stay in registers. */
INLINE float dot(const lanes *a, const float *b, uint32_t n)
{
	lanes sum = a[0] * *(const lanes *)b;

	for (uint32_t i = 1; i < n; i++)
		sum += a[i] * *(const lanes *)(b + i * LANES);
	return ((sum[0] + sum[4]) + (sum[2] + sum[6])) +
	       ((sum[1] + sum[5]) + (sum[3] + sum[7]));
}

INLINE void take(lanes *to, const float *from, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		to[i] += *(const lanes *)(from + i * LANES);
}

INLINE void take_times(lanes *to, float by, const float *from, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		to[i] += by * *(const lanes *)(from + i * LANES);
}

INLINE void give(float *to, const lanes *from, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		*(lanes *)(to + i * LANES) += from[i];
}

INLINE void give_times(float *to, float by, const lanes *from, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		*(lanes *)(to + i * LANES) += by * from[i];
}

/* The loss of a sequence while it is summed: logarithms are taken of products
 * of up to some hundred factors, which fit a double. */
struct tally {
	double sum, noise_sum, product, noise_product;
	uint32_t factors;
};

static void tally_settle(struct tally *t)
{
	t->sum += log(t->product);
	t->noise_sum += log(t->noise_product);
	t->product = t->noise_product = 1;
	t->factors = 0;
}

/* Turns scores into their weights in the gradient of x. */
INLINE void weigh(float *s, uint32_t nwords, struct tally *t)
{
	float noise = nwords > 1 ? 1.0f / (float)(nwords - 1) : 0;
	float more[MOST_WORDS], above[MOST_WORDS], p[MOST_WORDS];
	uint32_t done = 0;

	/* a target's loss is softplus(-s), that of noise softplus(s), with
	 * softplus(s) = max(s, 0) + log(1 + exp(-|s|)) */
	s[0] = -s[0];
	do {
		const lanes *score = (const lanes *)(s + done);
		lanes sum, high;

		one_plus_exp(score, &sum);
		high = 1.0f / sum;
		*(lanes *)(more + done) = sum;
		*(lanes *)(above + done) = PICK(*score > 0, *score, sum - sum);
		*(lanes *)(p + done) = PICK(*score > 0, high, 1.0f - high);
		done += LANES;
	} while (done < nwords);
	t->sum += (double)above[0];
	t->product *= (double)more[0];
	s[0] = -p[0];
	for (uint32_t j = 1; j < nwords; j++) {
		t->noise_sum += (double)above[j];
		t->noise_product *= (double)more[j];
		s[j] = p[j] * noise;
	}
	t->factors += nwords;
	if (t->factors > 500)
		tally_settle(t);
}

INLINE float *row_of(float *table, int32_t row, uint32_t n)
{
	return table + (size_t)(uint32_t)row * n * LANES;
}

/* The gradient of targets [first, last), added to s->part; that of the document
 * goes to `all`. Returns the loss, summed over the targets. */
INLINE double look(const struct model *m, const struct part *p,
		   struct sums *sums, lanes *all, uint32_t n)
{
	const struct sequence *q = p->of;
	float *words = sums->part, *out = words + m->nwords * n * LANES;
	lanes x[MOST_LANES], gx[MOST_LANES];
	float s[MOST_WORDS] = { 0 };
	struct tally t = { .product = 1, .noise_product = 1 };

	memset(all, 0, n * sizeof(*all));
	for (uint32_t i = p->first; i < p->last; i++) {
		const int32_t *context = q->context + (size_t)i * q->ncontext;
		const int32_t *guess = q->guess + (size_t)i * q->nwords;

		for (uint32_t k = 0; k < n; k++) {
			x[k] = *(const lanes *)(q->row->v + k * LANES);
			gx[k] = (lanes){ 0 };
		}
		for (uint32_t c = 0; c < q->ncontext; c++)
			take(x, row_of(m->words.at, context[c], n), n);
		for (uint32_t j = 0; j < q->nwords; j++)
			s[j] = dot(x, row_of(m->out.at, guess[j], n), n);
		weigh(s, q->nwords, &t);
		for (uint32_t j = 0; j < q->nwords; j++) {
			take_times(gx, s[j], row_of(m->out.at, guess[j], n), n);
			give_times(row_of(out, guess[j], n), s[j], x, n);
		}
		for (uint32_t k = 0; k < n; k++)
			all[k] += gx[k];
		for (uint32_t c = 0; c < q->ncontext; c++)
			give(row_of(words, context[c], n), gx, n);
	}
	tally_settle(&t);
	return t.sum + (q->nwords > 1 ? t.noise_sum / (q->nwords - 1) : 0.0);
}

/* The usual length has its own version, with unrolled loops. */
FAST static double look_24(const struct model *m, const struct part *p,
			   struct sums *s, lanes *all)
{
	return look(m, p, s, all, 24 / LANES);
}

FAST static double look_any(const struct model *m, const struct part *p,
			    struct sums *s, lanes *all)
{
	return look(m, p, s, all, m->stride / LANES);
}

static bool in_range(const int32_t *v, uint64_t n, uint64_t limit)
{
	uint32_t most = 0;

	/* as unsigned numbers, negative ones are the largest */
	for (uint64_t i = 0; i < n; i++)
		most = (uint32_t)v[i] > most ? (uint32_t)v[i] : most;
	return n == 0 || most < limit;
}

bool model_accepts(const struct model *m, const struct sequence *q)
{
	return q->nwords && q->nwords <= MOST_WORDS &&
	       in_range(q->context, (uint64_t)q->ntargets * q->ncontext,
			m->nwords) &&
	       in_range(q->guess, (uint64_t)q->ntargets * q->nwords, m->nwords);
}

/* Lists the rows that the part has a gradient for. */
static void list_rows(struct sums *s, const int32_t *id, uint64_t n,
		      uint64_t offset)
{
	for (uint64_t i = 0; i < n; i++) {
		const uint64_t row = offset + (uint32_t)id[i];

		s->list[s->nlisted] = (uint32_t)row;
		s->nlisted += !s->marked[row];
		s->marked[row] = 1;
	}
}

/*
 * Adds a row to the total in fixed point, so that the sum does not depend on
 * its order, and clears it. A double near MAGIC has steps of 1 / FIXED: its
 * bits are then those of MAGIC plus the number of steps. False: too large.
 */
INLINE bool settle_row(float *from, int64_t *to, uint32_t n, float most)
{
	const union {
		double d;
		int64_t i;
	} magic = { .d = 1.5 * 0x1p52 / FIXED };
	uint32_t wild = 0;

	for (uint32_t i = 0; i < n; i++) {
		union {
			double d;
			int64_t i;
		} v = { .d = (double)from[i] + magic.d };

		wild |= !(fabsf(from[i]) < most);
		to[i] += v.i - magic.i;
		from[i] = 0;
	}
	return !wild;
}

FAST static void settle_all(const struct model *m, struct sums *s)
{
	bool tame = true;

	for (uint64_t i = 0; i < s->nlisted; i++) {
		const uint64_t row = s->list[i];
		int64_t *to = s->total + row * (m->stride + 1);

		tame &= settle_row(s->part + row * m->stride, to, m->stride,
				   m->most);
		to[m->stride]++;
		s->marked[row] = 0;
		s->bits[row / 64] |= (uint64_t)1 << row % 64;
	}
	s->nlisted = 0;
	s->wild |= !tame;
}

static struct pace pace_of(const struct model *m, uint64_t step)
{
	double c1 = 1 - pow(BETA1, (double)step);
	double c2 = 1 - pow(BETA2, (double)step);

	if (m->update == UPDATE_SGD)
		return (struct pace){ (float)m->rate, 1, 0 };
	/* they differ in whether epsilon is corrected for the bias */
	if (m->update == UPDATE_ADAM)
		return (struct pace){ (float)(m->rate / c1),
				      (float)(1 / sqrt(c2)), (float)EPSILON };
	return (struct pace){ (float)(m->rate * sqrt(c2) / c1), 1,
			      (float)EPSILON };
}

INLINE void update_row(const struct model *m, float *at, float *mean,
		       float *square, const float *grad, struct pace pace)
{
	if (m->update == UPDATE_SGD) {
		for (uint32_t i = 0; i < m->stride; i++)
			at[i] -= pace.rate * grad[i];
		return;
	}
	for (uint32_t i = 0; i < m->stride; i++) {
		float g = grad[i];

		mean[i] += (g - mean[i]) * (float)(1 - BETA1);
		square[i] += (g * g - square[i]) * (float)(1 - BETA2);
		at[i] -= pace.rate * mean[i] /
			 (sqrtf(square[i]) * pace.root + pace.epsilon);
	}
}

FAST static void update_doc(const struct model *m, struct doc *d,
			    const float *grad, struct pace pace)
{
	float *mean = d->v + m->stride, *square = mean + m->stride;

	update_row(m, d->v, mean, square, grad, pace);
}

void doc_catch_up(const struct model *m, struct doc *d, uint64_t steps)
{
	static const float none[MOST_DIM];

	if (m->update != UPDATE_ADAM || !d->steps)
		return;
	while (d->steps < steps)
		update_doc(m, d, none, pace_of(m, ++d->steps));
}

void model_begin(struct model *m, uint64_t nsequences)
{
	m->pace = pace_of(m, ++m->steps);
	m->most = (float)(0x1p30 / (double)nsequences);
	if (m->most > 0x1p18f)
		m->most = 0x1p18f;
}

void model_look(const struct model *m, const struct part *p, double share,
		struct sums *s)
{
	const struct sequence *q = p->of;
	const uint64_t n = p->last - p->first;
	lanes all[MOST_LANES];
	float *grad = (float *)all;
	double loss;

	doc_catch_up(m, q->row, m->steps - 1);
	if (!n)
		return;
	list_rows(s, q->context + (size_t)p->first * q->ncontext,
		  n * q->ncontext, 0);
	list_rows(s, q->guess + (size_t)p->first * q->nwords, n * q->nwords,
		  m->nwords);
	loss = m->stride == 24 ? look_24(m, p, s, all) : look_any(m, p, s, all);
	settle_all(m, s);
	s->wild |= !(loss < (double)m->most);
	if (s->wild)
		return;
	s->loss += (int64_t)(loss * FIXED);
	for (uint32_t i = 0; i < m->stride; i++)
		grad[i] *= (float)share;
	update_doc(m, q->row, grad, m->pace);
	q->row->steps = m->steps;
}

FAST void model_update(struct model *m, uint64_t row, const int64_t *sum,
		       double share)
{
	const bool is_out = row >= m->nwords;
	struct table *t = is_out ? &m->out : &m->words;
	const size_t at = (row - (is_out ? m->nwords : 0)) * m->stride;
	float grad[MOST_DIM];

	if (!sum[m->stride] && m->update != UPDATE_ADAM)
		return;
	for (uint32_t i = 0; i < m->stride; i++)
		grad[i] = (float)((double)sum[i] * (share / FIXED));
	update_row(m, t->at + at, t->mean + at, t->square + at, grad, m->pace);
}
