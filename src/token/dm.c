/*
 * Samples for the paragraph-vector model (distributed memory), with sequences
 * as documents. The targets of a sequence are its words in k reading frames,
 * frame by frame. The context of a target is the neighbouring words of its
 * frame on both sides, where the sequence is padded with X before and Y after
 * it. Each target comes with noise words, drawn by a power of their frequency:
 *
 *   doc_ids (n)               the number of the sequence
 *   target_ids (n)            n = letters - k + 1, or none
 *   context_ids (n, 2c)       left to right
 *   target_noise_ids (n, 1+m) the target, then the noise
 *
 * The vocabulary is a file from `penstock vocab pads=true`: all words that were
 * seen, and those that can contain X or Y.
 */
#include <math.h>
#include <stdio.h>

#include "token/dm.h"

enum { DOCS, TARGETS, CONTEXTS, NOISES, NFIELDS };

static const char *const names[] = { "doc_ids", "target_ids", "context_ids",
				     "target_noise_ids" };

static uint64_t targets_of(const struct pen_dm *p, uint64_t n)
{
	return n < p->kmers.k ? 0 : n - p->kmers.k + 1;
}

static void dm_shape(const struct pen_tokens *t, uint32_t i, uint64_t n,
		     struct pen_field *f)
{
	const struct pen_dm *p = t->priv;

	f->ndim = i == CONTEXTS || i == NOISES ? 2 : 1;
	f->shape[0] = (int64_t)targets_of(p, n);
	f->shape[1] = i == CONTEXTS ? 2 * p->context : 1 + p->noise;
}

static uint64_t padding(const struct pen_dm *p)
{
	return (uint64_t)p->kmers.k * p->context;
}

static size_t up(uint64_t n)
{
	return (size_t)((n + 63) / 64 * 64);
}

static size_t dm_scratch(const struct pen_tokens *t, uint64_t n)
{
	const struct pen_dm *p = t->priv;
	const uint64_t all = n + 2 * padding(p) + 64;

	/* letters, codes, ids of a frame, draws */
	return up(all) + 2 * up(4 * all) + up(4 * ((n + 1) * p->noise + 64));
}

/* Sets up the distribution of the noise. */
static int weigh(struct pen_dm *p, double power, struct pen_err *err)
{
	const struct pen_words *w = &p->kmers.words;
	double *weight = pen__alloc(w->n, sizeof(*weight));
	bool any = false;
	int rc = 0;

	if (!weight)
		return pen__fail_nomem(err, w->where, w->n * sizeof(*weight));
	for (uint32_t i = 0; i < w->n; i++) {
		weight[i] = w->count[i] ? pow((double)w->count[i], power) : 0;
		any = any || weight[i] > 0;
	}
	if (!any)
		rc = pen__fail(
			err, P_BAD_DATA_VALUE, w->where,
			"no word counts to draw noise from; create the file "
			"with `penstock vocab`, or set format.noise=0");
	else if (pen__noise_init(&p->draw, weight, w->n))
		rc = pen__fail_nomem(err, w->where, w->n * sizeof(*weight));
	pen__free(weight);
	return rc;
}

static int check(const struct pen_tokens *t, const struct pen_token_opts *o,
		 struct pen_err *err)
{
	if (!o->vocab)
		return pen__fail(
			err, P_MISSING_SETTING, "vocab",
			"required by format.tokens=dm; create one with "
			"`penstock vocab PATH pads=true -o FILE`");
	if (t->dtype != PEN_I32 && t->dtype != PEN_I64)
		return pen__fail(
			err, P_BAD_VALUE, "dtype",
			"must be int32 or int64 with format.tokens=dm");
	if (o->context < 1 || !(o->power >= 0 && o->power <= 8))
		return pen__fail(err, P_BAD_VALUE,
				 o->context < 1 ? "context" : "power",
				 "out of range: context must be at least 1, "
				 "power from 0 to 8");
	return 0;
}

static int dm_open(struct pen_tokens *t, const struct pen_token_opts *o,
		   struct pen_err *err)
{
	struct pen_dm *p = pen__calloc(1, sizeof(*p));
	int at, rc;

	if (!p)
		return pen__fail_nomem(err, "tokens", sizeof(*p));
	t->priv = p;
	p->context = (uint32_t)o->context;
	p->noise = (uint32_t)o->noise;
	p->wide = t->dtype == PEN_I64;
	rc = check(t, o, err);
	if (!rc)
		rc = pen__kmers_load(&p->kmers, o, err);
	if (rc)
		return rc;
	rc = pen__tokens_file_specials(t, &p->kmers.words, err);
	if (!rc)
		rc = pen__kmers_learn(t, &p->kmers, "XY", err);
	if (!rc && p->noise)
		rc = weigh(p, o->power, err);
	if (rc)
		return rc;
	pen__tokens_codes(t, o);
	pen__tokens_letters(t, &p->kmers.letters);
	at = pen__tokens_special(t, "unk", 3);
	t->unk = at < 0 ? UINT32_MAX : t->special_id[at];
	t->nwords = p->kmers.words.n;
	return 0;
}

static void dm_close(struct pen_tokens *t)
{
	struct pen_dm *p = t->priv;

	if (!p)
		return;
	pen__words_fini(&p->kmers.words);
	pen__word_table_fini(&p->kmers.table);
	pen__noise_fini(&p->draw);
	pen__free(p);
}

static int no_word(const struct pen_tokens *t, const struct pen_sequence *s,
		   uint64_t at, struct pen_err *err)
{
	const struct pen_dm *p = t->priv;
	const uint64_t pad = padding(p);
	char word[16] = "";

	for (uint32_t i = 0; i < p->kmers.k; i++) {
		const uint64_t j = at + i;

		word[i] = j < pad	   ? 'X'
			  : j - pad < s->n ? (char)s->letters[j - pad]
					   : 'Y';
		if (word[i] < 33 || word[i] > 126)
			word[i] = '?';
	}
	return pen__fail(err, P_FILES_DISAGREE, p->kmers.words.where,
			 "no word '%s', which is in sample %llu, and no <unk>; "
			 "recreate the file with `penstock vocab` and "
			 "specials=unk or min_count=1",
			 word, (unsigned long long)s->number);
}

/*
 * Writes the ids of a frame's words and returns their number. Unknown words
 * become <unk>; without one, *bad is the first unknown word.
 */
static uint64_t frame_ids(const struct pen_tokens *t, const uint32_t *codes,
			  uint64_t n, uint32_t *out, int64_t *bad)
{
	const struct pen_kmers *p = &((const struct pen_dm *)t->priv)->kmers;
	const uint32_t k = p->k, *const id = p->table.id;
	uint32_t all = 0;
	uint64_t m = 0;

	for (uint64_t i = 0; i < n; i += k) {
		const uint32_t c = codes[i];
		const uint32_t v = !id ? pen__word_table_get(&p->table, c)
				   : c == PEN_WORD_NONE ? UINT32_MAX
							: id[c];

		all |= v;
		out[m++] = v;
	}
	*bad = -1;
	for (uint64_t i = 0; all >> 31 && i < m; i++)
		if (out[i] == UINT32_MAX) {
			out[i] = t->unk;
			if (*bad < 0 && t->unk == UINT32_MAX)
				*bad = (int64_t)i;
		}
	return m;
}

static int rows_fit(const struct pen_tokens *t, const struct pen_sequence *s,
		    const struct pen_token_row *row, struct pen_err *err)
{
	if (t->dtype == PEN_I32 && s->number > INT32_MAX)
		return pen__fail(err, P_BAD_VALUE, "dtype",
				 "int32 is too small for sample %llu; set "
				 "format.dtype=int64",
				 (unsigned long long)s->number);
	for (uint32_t i = 0; i < NFIELDS; i++) {
		struct pen_field f;
		size_t bytes;

		dm_shape(t, i, s->n, &f);
		bytes = (size_t)f.shape[0] * pen_dtype_size(t->dtype) *
			(f.ndim > 1 ? (size_t)f.shape[1] : 1);
		if (row->dst_len[i] < bytes)
			return pen__fail(err, P_DAMAGED, NULL,
					 "the letters of sample %llu (%zu) do "
					 "not fit its row",
					 (unsigned long long)s->number, s->n);
	}
	return 0;
}

static int dm_emit(const struct pen_tokens *t, const struct pen_sequence *s,
		   const struct pen_token_row *row, struct pen_err *err)
{
	const struct pen_dm *p = t->priv;
	const uint32_t k = p->kmers.k, c = p->context;
	const uint64_t pad = padding(p), all = s->n + 2 * pad;
	uint8_t *code = row->room;
	uint32_t *codes = (void *)(code + up(all + 64));
	uint32_t *ids = (void *)((uint8_t *)codes + up(4 * (all + 64)));
	uint32_t *draws = (void *)((uint8_t *)ids + up(4 * (all + 64)));
	struct pen_dm_rows to = {
		.draws = draws,
		.doc = s->number,
		.out = row->dst,
	};
	int rc = rows_fit(t, s, row, err);

	if (rc || s->n < k)
		return rc;
	memset(code, (int)t->nletters, pad);
	pen__letters_map(&p->kmers.letters, s->letters, s->n, code + pad);
	memset(code + pad + s->n, (int)t->nletters + 1, pad);
	pen__word_codes(&p->kmers.code, code, all - k + 1, codes);
	if (p->noise)
		pen__noise_draw(&p->draw, s->key, (s->n - k + 1) * p->noise,
				draws);
	for (uint32_t frame = 0; frame < k; frame++) {
		int64_t bad;
		const uint64_t m = frame_ids(t, codes + frame,
					     all - k + 1 - frame, ids, &bad);

		if (m <= 2 * c)
			continue;
		if (bad >= 0)
			return no_word(t, s, frame + (uint64_t)bad * k, err);
		pen__dm_rows(t, &to, ids, m - 2 * c);
	}
	return 0;
}

static int dm_word(const struct pen_tokens *t, uint64_t id, char *buf,
		   size_t cap)
{
	const struct pen_dm *p = t->priv;

	snprintf(buf, cap, "%s", pen__words_at(&p->kmers.words, (uint32_t)id));
	return 0;
}

const struct pen_token_ops pen__token_dm = {
	.own = "k,context,noise,power",
	.takes_file = true,
	.nfields = NFIELDS,
	.names = names,
	.whole_file = true,
	.open = dm_open,
	.close = dm_close,
	.scratch = dm_scratch,
	.shape = dm_shape,
	.emit = dm_emit,
	.word = dm_word,
};
