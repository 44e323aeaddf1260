/*
 * Shuffle quality, counted while batches pass by: a few table look-ups per
 * sample, whatever the number of classes or chunks. Memory is one bit per
 * sample (seen in this epoch), one number for each of at most a million samples
 * (its successor), and tables in the size of a batch and of the label's
 * classes.
 *
 * The hash tables are never cleared: entries of earlier batches have an older
 * stamp and count as empty.
 */
#include "quality/quality.h"

#include <math.h>
#include <string.h>

#include "base/mem.h"
#include "base/rng.h"
#include "base/text.h"

#define FOLLOWED ((uint64_t)1 << 20) /* samples whose successor is kept */
#define LOGS 65536		     /* counts whose c log c is tabulated */
#define LEAST_DRAWS 13 /* for an expected entropy within 0.07 bit */

/* A chunk, how many samples of a batch come from it, and the label of the
 * first. */
struct tally {
	uint64_t chunk;
	int64_t label;
	uint32_t stamp, count;
};

/* A class of the label. */
struct kind {
	int64_t label;
	uint64_t total;	       /* this epoch */
	uint32_t stamp, count; /* this batch */
};

/* The sums of an epoch. */
struct sums {
	uint64_t nbatches, nsamples, repeated;
	double same; /* sum of shares over batches, */
	double want; /* and of their expected values; NAN: unknown */
	uint64_t paired, unlike; /* share a chunk; of these, unlike labels */
	double mean, m2;	 /* of entropies, by Welford */
	double entropy;
	uint32_t nclasses;
	uint64_t asked[2], kept[2]; /* neighbours: forward, backward */
};

struct pen_quality {
	struct pen_quality_setup set;
	struct sums now, done;
	bool complete;
	uint64_t nepochs;
	uint64_t missing;

	uint64_t *seen; /* one bit per sample */
	uint64_t first, step;
	uint64_t *element; /* of a sample, for a list of chosen ones */

	struct tally *tally;
	uint32_t stamp;
	uint64_t tally_mask;

	uint32_t *after; /* 1 + successor of sample i * stride */
	uint64_t stride;
	uint64_t last, last_end; /* the previous sample, and its position + 1 */

	struct kind *kind;
	uint32_t nkinds, cap;
	uint32_t *slot; /* hash of labels: 1 + class; 2 * cap of them */
	uint32_t *touched;
	double *clogc;
	uint32_t nlogs;
};

double pen__quality_same_chunk(uint64_t chunk, uint64_t samples)
{
	const double b = (double)chunk, n = (double)samples;
	const double full = (double)(samples / chunk);
	const double last = (double)(samples % chunk);

	if (samples < 2)
		return 0;
	return (full * b * (b - 1) + last * (last - 1)) / (n * (n - 1));
}

double pen__quality_n_eff(double m, double same_chunk)
{
	return m / (1 + (m - 1) * same_chunk);
}

/* Miller and Madow: by how much few draws fall short of the total entropy. */
double pen__quality_entropy(double entropy, uint64_t nclasses, double n_eff)
{
	double h;

	if (nclasses < 2 || n_eff <= 0)
		return 0;
	h = entropy - (double)(nclasses - 1) / (2 * n_eff * log(2));
	return h > 0 ? h : 0;
}

/* ---- creation ---- */

static bool is_integer(enum pen_dtype t)
{
	return t <= PEN_U64;
}

static int fail_label(const char *field, struct pen_err *err)
{
	return pen__fail(err, P_LABELS_DO_NOT_FIT, field,
			 "not a label; a label is one integer per sample");
}

static int fail_absent(const char *field, struct pen_err *err)
{
	return pen__fail(err, P_NO_SUCH_FIELD, field,
			 "not a field of the batches; for single cells, set "
			 "format.obs=%s if it is a column of obs",
			 field);
}

/* The first batch shows whether fields= excludes it. */
static int check_label(const struct pen_dataset *ds, const char *field,
		       struct pen_err *err)
{
	for (uint32_t i = 0; i < pen_dataset_nfields(ds); i++) {
		const struct pen_field *d = pen_dataset_field(ds, i);

		if (strcmp(d->name, field) == 0)
			return is_integer(d->dtype) && !d->ndim
				       ? 0
				       : fail_label(field, err);
	}
	return fail_absent(field, err);
}

static int mixed_by(const void *loader, uint64_t epoch, uint64_t position,
		    uint64_t *start, uint64_t *end)
{
	return pen_loader_mixed(loader, epoch, position, start, end);
}

static uint64_t chosen_by(const void *loader, uint64_t i)
{
	return pen_loader_chosen(loader, i);
}

int pen__quality_setup(struct pen_quality_setup *to, const struct pen_loader *l,
		       const char *field, struct pen_err *err)
{
	const struct pen_dataset *ds = pen_loader_dataset(l);
	struct pen_loader_info i;
	struct pen_state s;
	char subset[2];

	pen_loader_get_info(l, &i, sizeof(i));
	pen_loader_state(l, &s);
	*to = (struct pen_quality_setup){
		.nsamples = pen_dataset_nsamples(ds),
		.expected = i.world == 1 ? i.nchosen : 0,
		.batch = i.batch_samples,
		.chunk = i.chunk ? i.chunk : 1,
		.label = field,
		.mixed = mixed_by,
		.order = l,
		.length = s.length,
		.order_chunk = i.chunk,
		.in_order = i.in_order,
		.repeats = i.repeats,
		.nchosen = i.nchosen,
	};
	if (!pen_spec_get(pen_dataset_spec(ds), "subset", subset,
			  sizeof(subset)) &&
	    subset[0])
		to->chosen = chosen_by;
	/* consecutive neighbours: a batch is one chunk */
	if (i.in_order)
		to->chunk = to->batch * i.world;
	return field ? check_label(ds, field, err) : 0;
}

/* A range needs no table. */
static bool is_range(struct pen_quality *q)
{
	const struct pen_quality_setup *s = &q->set;
	uint64_t i = 0;

	if (s->nchosen)
		q->first = s->chosen(s->order, 0);
	if (s->nchosen > 1)
		q->step = s->chosen(s->order, 1) - q->first;
	while (i < s->nchosen &&
	       s->chosen(s->order, i) == q->first + i * q->step)
		i++;
	return i == s->nchosen && q->step && q->step < s->nsamples;
}

static int make_chosen(struct pen_quality *q)
{
	const struct pen_quality_setup *s = &q->set;

	q->step = 1;
	if (!s->chosen || is_range(q))
		return 0;
	q->first = 0;
	q->element = pen__calloc(s->nsamples, sizeof(*q->element));
	if (!q->element)
		return PEN_ENOMEM;
	for (uint64_t i = 0; i < s->nchosen; i++)
		if (s->chosen(s->order, i) < s->nsamples)
			q->element[s->chosen(s->order, i)] = i;
	return 0;
}

static int make_tables(struct pen_quality *q)
{
	const uint64_t n = q->set.nsamples;
	uint64_t size = 4;

	while (size < 2 * (uint64_t)q->set.batch)
		size *= 2;
	q->tally_mask = size - 1;
	q->tally = pen__calloc(size, sizeof(*q->tally));
	q->seen = pen__calloc(n / 64 + 1, sizeof(*q->seen));
	q->stride = (n - 1) / FOLLOWED + 1;
	q->after = pen__calloc((n - 1) / q->stride + 1, sizeof(*q->after));
	return q->tally && q->seen && q->after ? make_chosen(q) : PEN_ENOMEM;
}

static int make_logs(struct pen_quality *q)
{
	if (!q->set.label)
		return 0;
	q->nlogs = q->set.batch < LOGS ? q->set.batch + 1 : LOGS;
	q->clogc = pen__calloc(q->nlogs, sizeof(*q->clogc));
	q->touched = pen__alloc(q->set.batch, sizeof(*q->touched));
	if (!q->clogc || !q->touched)
		return PEN_ENOMEM;
	for (uint32_t c = 2; c < q->nlogs; c++)
		q->clogc[c] = c * log2(c);
	return 0;
}

int pen__quality_new(struct pen_quality **out,
		     const struct pen_quality_setup *set, struct pen_err *err)
{
	struct pen_quality *q;

	*out = NULL;
	if (!set->nsamples || !set->batch || !set->chunk)
		return pen__fail(err, P_BAD_CALL, "quality",
				 "nothing to measure: samples, batch and chunk "
				 "must be at least 1");
	q = pen__calloc(1, sizeof(*q));
	if (!q)
		return pen__fail_nomem(err, "quality", sizeof(*q));
	q->set = *set;
	q->last_end = UINT64_MAX;
	if (make_tables(q) || make_logs(q)) {
		pen__quality_free(q);
		return pen__fail_nomem(err, "quality", set->nsamples / 8);
	}
	*out = q;
	return 0;
}

void pen__quality_free(struct pen_quality *q)
{
	if (!q)
		return;
	pen__free(q->seen);
	pen__free(q->element);
	pen__free(q->tally);
	pen__free(q->after);
	pen__free(q->kind);
	pen__free(q->slot);
	pen__free(q->touched);
	pen__free(q->clogc);
	pen__free(q);
}

/* ---- labels ---- */

static uint64_t hash_label(int64_t label)
{
	return pen__mix64((uint64_t)label + 0x9e3779b97f4a7c15u);
}

static int grow_kinds(struct pen_quality *q)
{
	const uint32_t cap = q->cap ? 2 * q->cap : 64;
	struct kind *kind;
	uint32_t *slot;

	if (cap >= (uint32_t)1 << 30)
		return PEN_ENOMEM;
	kind = pen__realloc(q->kind, cap, sizeof(*kind));
	if (!kind)
		return PEN_ENOMEM;
	q->kind = kind;
	slot = pen__calloc((size_t)2 * cap, sizeof(*slot));
	if (!slot)
		return PEN_ENOMEM;
	for (uint32_t i = 0; i < q->nkinds; i++) {
		uint64_t at = hash_label(kind[i].label) & (2 * cap - 1);

		while (slot[at])
			at = (at + 1) & (2 * cap - 1);
		slot[at] = i + 1;
	}
	pen__free(q->slot);
	q->slot = slot;
	q->cap = cap;
	return 0;
}

/* The class of a label, added if new; NULL: no memory. */
static struct kind *kind_of(struct pen_quality *q, int64_t label)
{
	const uint64_t hash = hash_label(label);
	uint64_t at;

	if (q->nkinds == q->cap && grow_kinds(q))
		return NULL;
	at = hash & (2 * q->cap - 1);
	for (; q->slot[at]; at = (at + 1) & (2 * q->cap - 1))
		if (q->kind[q->slot[at] - 1].label == label)
			return &q->kind[q->slot[at] - 1];
	q->slot[at] = ++q->nkinds;
	q->kind[q->nkinds - 1] = (struct kind){ .label = label };
	return &q->kind[q->nkinds - 1];
}

static int64_t label_at(const struct pen_tensor *t, uint32_t i)
{
	switch (t->dtype) {
	case PEN_I8:
		return ((const int8_t *)t->data)[i];
	case PEN_I16:
		return ((const int16_t *)t->data)[i];
	case PEN_U16:
		return ((const uint16_t *)t->data)[i];
	case PEN_I32:
		return ((const int32_t *)t->data)[i];
	case PEN_U32:
		return ((const uint32_t *)t->data)[i];
	case PEN_I64:
	case PEN_U64:
		return ((const int64_t *)t->data)[i];
	default: /* PEN_BOOL, PEN_U8 */
		return ((const uint8_t *)t->data)[i];
	}
}

static double clogc(const struct pen_quality *q, uint64_t c)
{
	return c < q->nlogs ? q->clogc[c] : (double)c * log2((double)c);
}

static void add_entropy(struct sums *s, double h)
{
	const double d = h - s->mean;

	s->mean += d / (double)s->nbatches;
	s->m2 += d * (h - s->mean);
}

/* The tensor of labels; *out is NULL if there is no label to look at. */
static int find_labels(const struct pen_quality *q, const struct pen_batch *b,
		       const struct pen_tensor **out, struct pen_err *err)
{
	const char *label = q->set.label;
	const struct pen_tensor *t;
	uint32_t i = 0;

	*out = NULL;
	if (!label)
		return 0;
	while (i < b->ntensors && strcmp(b->tensors[i].name, label) != 0)
		i++;
	if (i == b->ntensors)
		return fail_absent(label, err);
	t = &b->tensors[i];
	if (!is_integer(t->dtype) || t->layout != PEN_DENSE ||
	    t->nbytes != b->nsamples * pen_dtype_size(t->dtype))
		return fail_label(label, err);
	*out = t;
	return 0;
}

static int count_labels(struct pen_quality *q, const struct pen_batch *b,
			const struct pen_tensor *t, struct pen_err *err)
{
	uint32_t n = 0;
	double sum = 0;

	for (uint32_t i = 0; i < b->nsamples; i++) {
		struct kind *k = kind_of(q, label_at(t, i));

		if (!k)
			return pen__fail_nomem(err, t->name, 0);
		k->total++;
		if (k->stamp != q->stamp) {
			k->stamp = q->stamp;
			k->count = 0;
			q->touched[n++] = (uint32_t)(k - q->kind);
		}
		k->count++;
	}
	for (uint32_t i = 0; i < n; i++)
		sum += clogc(q, q->kind[q->touched[i]].count);
	if (b->nsamples == q->set.batch)
		add_entropy(&q->now,
			    log2(b->nsamples) - sum / (double)b->nsamples);
	return 0;
}

/* ---- ids ---- */

static uint64_t element_of(const struct pen_quality *q, uint64_t id)
{
	if (q->element)
		return q->element[id];
	id -= q->first;
	return q->step == 1 ? id : id / q->step;
}

/* The tally of a chunk in this batch. */
static struct tally *tally(struct pen_quality *q, uint64_t chunk)
{
	uint64_t at = (chunk * 0x9e3779b97f4a7c15u >> 20) & q->tally_mask;
	struct tally *t = &q->tally[at];

	while (t->stamp == q->stamp && t->chunk != chunk) {
		at = (at + 1) & q->tally_mask;
		t = &q->tally[at];
	}
	if (t->stamp != q->stamp)
		*t = (struct tally){ .chunk = chunk, .stamp = q->stamp };
	return t;
}

/* Counts a sample of a chunk; returns the earlier samples of that chunk. */
static uint32_t count_chunk(struct pen_quality *q, uint64_t id,
			    const struct pen_tensor *labels, uint32_t row)
{
	struct tally *t = tally(q, element_of(q, id) / q->set.chunk);
	const int64_t label = labels ? label_at(labels, row) : 0;

	if (!t->count)
		t->label = label;
	q->now.paired += t->count > 0;
	q->now.unlike += t->label != label;
	return t->count++;
}

/* The positions around pos whose chunks are mixed with one another. */
static bool mixed_at(const struct pen_quality *q, uint64_t epoch, uint64_t pos,
		     uint64_t *start, uint64_t *end)
{
	const struct pen_quality_setup *s = &q->set;

	if (s->in_order) { /* a chunk of its own */
		*start = pos - pos % s->chunk;
		*end = *start + s->chunk;
		if (*end > s->length)
			*end = s->length;
		return true;
	}
	if (s->order_chunk && s->order_chunk != s->chunk)
		return false;
	return s->mixed(s->order, epoch, pos, start, end);
}

/*
 * The expected share of pairs from one chunk in a batch of m samples from pos
 * on; NAN: there is no closed form. Pairs from two windows share no chunk.
 * Positions past the end of the epoch wrap around to its start, and may be in
 * the window that the batch started in.
 */
static double expect(const struct pen_quality *q, uint64_t epoch, uint64_t pos,
		     uint64_t m)
{
	const struct pen_quality_setup *s = &q->set;
	const uint64_t length = s->length;
	double sum = 0, first = 0, first_share = 0;
	uint64_t first_start = UINT64_MAX;

	if (!s->mixed || !length || m > length || s->repeats)
		return NAN;
	if (s->chunk == 1)
		return 0; /* each comes once */
	for (uint64_t left = m, n; left; left -= n, pos += n) {
		uint64_t start, end;
		double share;

		if (!mixed_at(q, epoch, pos % length, &start, &end))
			return NAN;
		n = end - pos % length < left ? end - pos % length : left;
		share = pen__quality_same_chunk(s->chunk, end - start);
		if (first_start == UINT64_MAX) {
			first_start = start;
			first_share = share;
		}
		if (start == first_start)
			first += (double)n;
		else
			sum += (double)n * (double)(n - 1) * share;
	}
	sum += first * (first - 1) * first_share;
	return sum / ((double)m * (double)(m - 1));
}

static void mark(struct pen_quality *q, uint64_t id)
{
	const uint64_t bit = (uint64_t)1 << (id & 63);

	q->now.repeated += (q->seen[id / 64] & bit) != 0;
	q->seen[id / 64] |= bit;
}

/* a is followed by b: was it, or the reverse, in the last epoch? The successor
 * of a is overwritten only after it was checked. */
static void follow(struct pen_quality *q, uint64_t a, uint64_t b)
{
	if (b % q->stride == 0) {
		q->now.asked[1]++;
		q->now.kept[1] += q->after[b / q->stride] == (uint32_t)a + 1;
	}
	if (a % q->stride == 0) {
		q->now.asked[0]++;
		q->now.kept[0] += q->after[a / q->stride] == (uint32_t)b + 1;
		q->after[a / q->stride] = (uint32_t)b + 1;
	}
}

static int check_ids(const struct pen_quality *q, const struct pen_batch *b,
		     struct pen_err *err)
{
	if (b->nsamples > q->set.batch)
		return pen__fail(
			err, P_BAD_CALL, "quality",
			"a batch has %u samples, more than the maximum of %u",
			b->nsamples, q->set.batch);
	for (uint32_t i = 0; i < b->nsamples; i++)
		if (b->ids[i] >= q->set.nsamples || b->ids[i] < q->first)
			return pen__fail(err, P_BAD_CALL, "quality",
					 "sample %llu is not in the data set",
					 (unsigned long long)b->ids[i]);
	return 0;
}

static void next_stamp(struct pen_quality *q)
{
	if (++q->stamp)
		return;
	memset(q->tally, 0, (q->tally_mask + 1) * sizeof(*q->tally));
	for (uint32_t i = 0; i < q->nkinds; i++)
		q->kind[i].stamp = 0;
	q->stamp = 1;
}

int pen__quality_batch(struct pen_quality *q, const struct pen_batch *b,
		       struct pen_err *err)
{
	const uint64_t m = b->nsamples;
	const bool full = m == q->set.batch;
	const struct pen_tensor *labels = NULL;
	uint64_t pairs = 0;
	int rc = check_ids(q, b, err);

	if (!rc && m)
		rc = find_labels(q, b, &labels, err);
	if (rc || !m)
		return rc;
	next_stamp(q);
	if (b->position == q->last_end)
		follow(q, q->last, b->ids[0]);
	for (uint32_t i = 0; i + 1 < m; i++)
		follow(q, b->ids[i], b->ids[i + 1]);
	q->last = b->ids[m - 1];
	q->last_end = b->position + m;
	for (uint32_t i = 0; i < m; i++) {
		mark(q, b->ids[i]);
		pairs += count_chunk(q, b->ids[i], labels, i);
	}
	q->now.nsamples += m;
	q->now.nbatches += full;
	if (full && m > 1) {
		q->now.same += 2 * (double)pairs / (double)m / (double)(m - 1);
		q->now.want += expect(q, b->epoch, b->position, m);
	}
	return labels ? count_labels(q, b, labels, err) : 0;
}

/* ---- sums ---- */

/* Classes and entropy of the label over the epoch so far. */
static void settle_classes(const struct pen_quality *q, struct sums *s)
{
	double sum = 0;

	s->nclasses = 0;
	for (uint32_t i = 0; i < q->nkinds; i++) {
		sum += clogc(q, q->kind[i].total);
		s->nclasses += q->kind[i].total != 0;
	}
	if (s->nsamples)
		s->entropy =
			log2((double)s->nsamples) - sum / (double)s->nsamples;
	if (s->nclasses < 2)
		s->entropy = 0; /* without rounding errors */
}

void pen__quality_epoch(struct pen_quality *q)
{
	const uint64_t distinct = q->now.nsamples - q->now.repeated;

	settle_classes(q, &q->now);
	q->missing = q->set.expected > distinct ? q->set.expected - distinct
						: 0;
	q->done = q->now;
	q->now = (struct sums){ 0 };
	q->complete = true;
	q->nepochs++;
	q->last_end = UINT64_MAX;
	memset(q->seen, 0, (q->set.nsamples / 64 + 1) * sizeof(*q->seen));
	for (uint32_t i = 0; i < q->nkinds; i++)
		q->kind[i].total = 0;
}

static double share(uint64_t n, uint64_t of)
{
	return of ? (double)n / (double)of : 0;
}

void pen__quality_result(const struct pen_quality *q,
			 struct pen_quality_result *r)
{
	const double m = q->set.batch;
	struct sums s = q->complete ? q->done : q->now;

	if (!q->complete)
		settle_classes(q, &s);
	*r = (struct pen_quality_result){
		.nbatches = s.nbatches,
		.nsamples = s.nsamples,
		.repeated = s.repeated,
		.missing = q->missing,
		.complete = q->complete,
		.nclasses = s.nclasses,
		.entropy = s.entropy,
		.batch_entropy = s.mean,
		.neighbours_kept = -1,
	};
	r->same_chunk_expected = s.want / (double)s.nbatches;
	r->n_eff_expected = pen__quality_n_eff(m, r->same_chunk_expected);
	if (s.nbatches) {
		r->same_chunk = s.same / (double)s.nbatches;
		r->n_eff = pen__quality_n_eff(m, r->same_chunk);
		r->batch_entropy_sd = sqrt(s.m2 / (double)s.nbatches);
	}
	r->batch_entropy_expected = NAN;
	if (r->n_eff_expected >= fmax(LEAST_DRAWS, s.nclasses) &&
	    20 * s.unlike <= s.paired)
		r->batch_entropy_expected = pen__quality_entropy(
			s.entropy, s.nclasses, r->n_eff_expected);
	if (q->nepochs > 1)
		r->neighbours_kept = share(s.kept[0], s.asked[0]) +
				     share(s.kept[1], s.asked[1]);
}

/* null in JSON if there was no full batch. */
static double measured(const struct pen_quality_result *r, double v)
{
	return r->nbatches ? v : NAN;
}

static void json_label(struct pen_text *j, const struct pen_quality_result *r)
{
	pen__json_open(j, "label", '{');
	pen__json_int(j, "classes", r->nclasses);
	pen__json_num(j, "entropy", r->entropy);
	pen__json_num(j, "batch_entropy", measured(r, r->batch_entropy));
	pen__json_num(j, "batch_entropy_sd", measured(r, r->batch_entropy_sd));
	pen__json_num(j, "batch_entropy_expected", r->batch_entropy_expected);
	pen__json_close(j, '}');
}

void pen__quality_json(struct pen_text *j, const char *key,
		       const struct pen_quality_result *r)
{
	pen__json_open(j, key, '{');
	pen__json_bool(j, "complete_epoch", r->complete);
	pen__json_int(j, "full_batches", r->nbatches);
	pen__json_int(j, "samples", r->nsamples);
	pen__json_int(j, "repeated", r->repeated);
	pen__json_int(j, "missing", r->missing);
	pen__json_bool(j, "exactly_once",
		       r->complete && !r->repeated && !r->missing);
	pen__json_num(j, "same_chunk", measured(r, r->same_chunk));
	pen__json_num(j, "same_chunk_expected", r->same_chunk_expected);
	pen__json_num(j, "n_eff", measured(r, r->n_eff));
	pen__json_num(j, "n_eff_expected", r->n_eff_expected);
	if (r->neighbours_kept >= 0)
		pen__json_num(j, "neighbours_kept", r->neighbours_kept);
	if (r->nclasses)
		json_label(j, r);
	pen__json_close(j, '}');
}
