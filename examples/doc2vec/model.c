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

#define FAST __attribute__((target_clones("avx2", "default")))
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

static bool table_init(struct table *t, const struct model *m, uint64_t rows)
{
	uint64_t n;

	if (__builtin_mul_overflow(rows, (uint64_t)m->stride, &n))
		return false;
	t->rows = rows;
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

static void table_draw(struct table *t, const struct model *m, uint64_t seed)
{
	for (uint64_t r = 0; r < t->rows; r++)
		for (uint32_t d = 0; d < m->dim; d++)
			t->at[r * m->stride + d] =
				normal(mix(seed), r * m->dim + d);
}

bool model_init(struct model *m, uint32_t dim, uint64_t ndocs, uint64_t nwords,
		uint64_t seed)
{
	m->dim = dim;
	m->stride = (dim + LANES - 1) / LANES * LANES;
	m->steps = 0;
	if (!table_init(&m->docs, m, ndocs) ||
	    !table_init(&m->words, m, nwords) ||
	    !table_init(&m->out, m, nwords))
		return false;
	table_draw(&m->docs, m, 2 * seed + 1);
	table_draw(&m->words, m, 2 * seed + 2);
	return true;
}

void model_fini(struct model *m)
{
	table_fini(&m->docs);
	table_fini(&m->words);
	table_fini(&m->out);
}

bool gradient_init(struct gradient *g, const struct model *m)
{
	uint64_t nwords = m->words.rows;

	*g = (struct gradient){
		.doc = zeros(m->stride, sizeof(float)),
		.words = zeros(nwords * m->stride, sizeof(float)),
		.out = zeros(nwords * m->stride, sizeof(float)),
		.word_used = zeros(nwords, 1),
		.out_used = zeros(nwords, 1),
	};
	return g->doc && g->words && g->out && g->word_used && g->out_used;
}

void gradient_fini(struct gradient *g)
{
	free(g->doc);
	free(g->words);
	free(g->out);
	free(g->word_used);
	free(g->out_used);
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
INLINE void weigh(float *s, uint32_t nwords, float share, struct tally *t)
{
	float noise = nwords > 1 ? share / (float)(nwords - 1) : 0;
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
	s[0] = -p[0] * share;
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

INLINE void look(const struct model *m, const struct sequence *q, float share,
		 struct gradient *g, uint32_t n)
{
	const float *doc = m->docs.at + q->doc * n * LANES;
	lanes x[MOST_LANES], gx[MOST_LANES], all[MOST_LANES];
	float s[MOST_WORDS] = { 0 };
	struct tally t = { .product = 1, .noise_product = 1 };

	memset(all, 0, n * sizeof(*all));
	for (uint32_t i = 0; i < q->ntargets; i++) {
		const int32_t *context = q->context + (size_t)i * q->ncontext;
		const int32_t *guess = q->guess + (size_t)i * q->nwords;

		for (uint32_t k = 0; k < n; k++) {
			x[k] = *(const lanes *)(doc + k * LANES);
			gx[k] = (lanes){ 0 };
		}
		for (uint32_t c = 0; c < q->ncontext; c++)
			take(x, row_of(m->words.at, context[c], n), n);
		for (uint32_t j = 0; j < q->nwords; j++)
			s[j] = dot(x, row_of(m->out.at, guess[j], n), n);
		weigh(s, q->nwords, share, &t);
		for (uint32_t j = 0; j < q->nwords; j++) {
			take_times(gx, s[j], row_of(m->out.at, guess[j], n), n);
			give_times(row_of(g->out, guess[j], n), s[j], x, n);
			g->out_used[guess[j]] = 1;
		}
		for (uint32_t k = 0; k < n; k++)
			all[k] += gx[k];
		for (uint32_t c = 0; c < q->ncontext; c++) {
			give(row_of(g->words, context[c], n), gx, n);
			g->word_used[context[c]] = 1;
		}
	}
	memcpy(g->doc, all, n * sizeof(*all));
	tally_settle(&t);
	g->loss = t.sum + (q->nwords > 1 ? t.noise_sum / (q->nwords - 1) : 0.0);
}

/* The usual length has its own version, with unrolled loops. */
FAST static void look_24(const struct model *m, const struct sequence *q,
			 float share, struct gradient *g)
{
	look(m, q, share, g, 24 / LANES);
}

FAST static void look_any(const struct model *m, const struct sequence *q,
			  float share, struct gradient *g)
{
	look(m, q, share, g, m->stride / LANES);
}

static bool in_range(const int32_t *v, uint64_t n, uint64_t limit)
{
	uint32_t most = 0;

	/* as unsigned numbers, negative ones are the largest */
	for (uint64_t i = 0; i < n; i++)
		most = (uint32_t)v[i] > most ? (uint32_t)v[i] : most;
	return n == 0 || most < limit;
}

bool model_look(const struct model *m, const struct sequence *q, double share,
		struct gradient *g)
{
	uint64_t nwords = m->words.rows;
	size_t bytes = (size_t)nwords * m->stride * sizeof(float);

	if (q->doc >= m->docs.rows || q->nwords > MOST_WORDS || !q->nwords ||
	    !in_range(q->context, (uint64_t)q->ntargets * q->ncontext,
		      nwords) ||
	    !in_range(q->guess, (uint64_t)q->ntargets * q->nwords, nwords))
		return false;
	memset(g->doc, 0, m->stride * sizeof(float));
	memset(g->words, 0, bytes);
	memset(g->out, 0, bytes);
	memset(g->word_used, 0, nwords);
	memset(g->out_used, 0, nwords);
	if (m->stride == 24)
		look_24(m, q, (float)share, g);
	else
		look_any(m, q, (float)share, g);
	return true;
}

void model_begin(struct model *m)
{
	m->steps++;
}

INLINE void add(float *to, const float *from, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		to[i] += from[i];
}

/* Step size, and scale and offset of the root in Adam. */
struct pace {
	float rate, root, epsilon;
};

static struct pace pace_of(const struct model *m)
{
	double c1 = 1 - pow(BETA1, (double)m->steps);
	double c2 = 1 - pow(BETA2, (double)m->steps);

	if (m->update == UPDATE_SGD)
		return (struct pace){ (float)m->rate, 1, 0 };
	/* they differ in whether epsilon is corrected for the bias */
	if (m->update == UPDATE_ADAM)
		return (struct pace){ (float)(m->rate / c1),
				      (float)(1 / sqrt(c2)), (float)EPSILON };
	return (struct pace){ (float)(m->rate * sqrt(c2) / c1), 1,
			      (float)EPSILON };
}

INLINE void update_row(const struct model *m, struct table *t, uint64_t row,
		       const float *grad, struct pace pace)
{
	float *at = t->at + row * m->stride;
	float *mean = t->mean + row * m->stride;
	float *square = t->square + row * m->stride;

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

/* Sums one row over the sequences; false: no sequence has it. */
INLINE bool gather(const struct gradient *g, uint32_t n, bool out, uint64_t row,
		   float *sum, uint32_t stride)
{
	bool any = false;

	memset(sum, 0, stride * sizeof(*sum));
	for (uint32_t i = 0; i < n; i++) {
		if (!(out ? g[i].out_used : g[i].word_used)[row])
			continue;
		add(sum, (out ? g[i].out : g[i].words) + row * stride, stride);
		any = true;
	}
	return any;
}

FAST void model_words(struct model *m, const struct gradient *g, uint32_t n,
		      uint64_t first, uint64_t last)
{
	bool all = m->update == UPDATE_ADAM;
	struct pace pace = pace_of(m);
	float sum[MOST_DIM];

	for (uint64_t row = first; row < last; row++) {
		if (gather(g, n, false, row, sum, m->stride) || all)
			update_row(m, &m->words, row, sum, pace);
		if (gather(g, n, true, row, sum, m->stride) || all)
			update_row(m, &m->out, row, sum, pace);
	}
}

/* A sequence without targets belongs to no document. */
static bool is_of(const struct sequence *q, uint64_t doc)
{
	return q->ntargets && q->doc == doc;
}

/* True for the first sequence of its document in the batch. */
static bool first_of_doc(const struct sequence *q, uint32_t i)
{
	for (uint32_t j = 0; j < i; j++)
		if (is_of(&q[j], q[i].doc))
			return false;
	return q[i].ntargets > 0;
}

FAST void model_docs(struct model *m, const struct sequence *q,
		     const struct gradient *g, uint32_t n)
{
	struct pace pace = pace_of(m);
	float sum[MOST_DIM];

	for (uint32_t i = 0; i < n; i++) {
		if (!first_of_doc(q, i))
			continue;
		memcpy(sum, g[i].doc, m->stride * sizeof(*sum));
		for (uint32_t j = i + 1; j < n; j++)
			if (is_of(&q[j], q[i].doc))
				add(sum, g[j].doc, m->stride);
		update_row(m, &m->docs, q[i].doc, sum, pace);
	}
}

FAST void model_drift(struct model *m, const struct sequence *q, uint32_t n,
		      uint64_t first, uint64_t last)
{
	struct pace pace = pace_of(m);
	float none[MOST_DIM];

	memset(none, 0, m->stride * sizeof(*none));
	for (uint64_t row = first; row < last; row++) {
		bool seen = false;

		for (uint32_t i = 0; i < n && !seen; i++)
			seen = is_of(&q[i], row);
		if (!seen)
			update_row(m, &m->docs, row, none, pace);
	}
}
