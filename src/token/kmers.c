/*
 * Words of k letters, one every stride= letters: overlapping (1, DNABERT) or
 * adjacent (k). A word with an unknown letter is unknown, and a shorter rest is
 * dropped; with singles=true, both become single-letter tokens, as in the
 * Nucleotide Transformer.
 */
#include "token/kmers.h"

static uint64_t kmers_count(const struct pen_tokens *t, uint64_t n)
{
	const struct pen_kmers *p = t->priv;

	return n < p->k ? 0 : (n - p->k) / p->stride + 1;
}

/* Converts codes to ids in place. */
static void to_ids(const struct pen_tokens *t, uint32_t *v, size_t n)
{
	const struct pen_kmers *p = t->priv;

	if (p->words.n)
		pen__word_table_ids(&p->table, v, n, t->unk);
	else
		pen__word_number(v, n, p->base, t->unk);
}

void pen__kmers_ids(const struct pen_tokens *t, const uint8_t *letters,
		    uint64_t n, uint32_t *ids, uint8_t *room)
{
	const struct pen_kmers *p = t->priv;

	if (n < p->k)
		return;
	pen__letters_map(&p->letters, letters, n, room);
	pen__word_codes(&p->code, room, n - p->k + 1, ids);
	to_ids(t, ids, n - p->k + 1);
}

/* For strides above k: codes one word at a time. */
static uint32_t one_word(const struct pen_kmers *p, const uint8_t *letters)
{
	uint8_t code[16];
	uint32_t v;

	for (unsigned i = 0; i < p->k; i++)
		code[i] = p->letters.table[letters[i]];
	pen__word_codes(&p->code, code, 1, &v);
	return v;
}

/* Writes as many words as fit a block; returns how many. */
static size_t write_some(const struct pen_tokens *t, const uint8_t *letters,
			 uint64_t n, void *out)
{
	const struct pen_kmers *p = t->priv;
	uint32_t v[PEN_WORD_BLOCK];
	uint8_t code[PEN_WORD_BLOCK + 16];
	const uint64_t fit = (PEN_WORD_BLOCK - 1) / p->stride + 1;
	size_t m = n < fit ? (size_t)n : (size_t)fit;

	if (p->stride > p->k) {
		m = n < PEN_WORD_BLOCK ? (size_t)n : PEN_WORD_BLOCK;
		for (size_t i = 0; i < m; i++)
			v[i] = one_word(p, letters + i * p->stride);
	} else {
		const size_t all = (m - 1) * p->stride + 1;

		pen__letters_map(&p->letters, letters, all + p->k - 1, code);
		pen__word_codes(&p->code, code, all, v);
		for (size_t i = 1; i < m && p->stride > 1; i++)
			v[i] = v[i * p->stride];
	}
	to_ids(t, v, m);
	pen__tokens_put(t, v, m, out);
	return m;
}

static void kmers_write(const struct pen_tokens *t,
			const struct pen_sequence *s, uint64_t first,
			uint64_t n, void *out, void *room)
{
	const struct pen_kmers *p = t->priv;
	uint8_t *to = out;

	(void)room;
	for (uint64_t i = 0; i < n;)
		i += write_some(t, s->letters + (first + i) * p->stride, n - i,
				to + i * t->item);
}

static int64_t singles_list(const struct pen_tokens *t,
			    const struct pen_sequence *s, uint32_t *out,
			    void *room, struct pen_err *err)
{
	const struct pen_kmers *p = t->priv;
	uint8_t *code = room;
	uint64_t at = 0, bad = 0, made = 0;

	(void)err;
	pen__letters_map(&p->letters, s->letters, s->n, code);
	while (at < s->n) {
		uint32_t v = 0;

		/* end of the known letters, scanned only once */
		for (bad = bad < at ? at : bad;
		     bad < s->n && bad < at + p->k && code[bad] < 0x80;)
			bad++;
		if (bad - at < p->k) {
			const uint8_t c = code[at];

			out[made++] = c < 0x80	  ? p->singles + c
				      : c == 0x81 ? p->singles + t->nletters
						  : t->unk;
			at++;
			continue;
		}
		for (unsigned i = 0; i < p->k; i++)
			v = v * t->nletters + code[at + i];
		out[made++] = p->base + v;
		at += p->k;
	}
	return (int64_t)made;
}

static size_t singles_scratch(const struct pen_tokens *t, uint64_t n)
{
	(void)t;
	return (size_t)n;
}

static const struct pen_token_ops with_singles = {
	.field = "tokens",
	.takes_specials = true,
	.takes_length = true,
	.close = pen__kmers_close,
	.count = pen__tokens_each,
	.list = singles_list,
	.scratch = singles_scratch,
	.word = pen__kmers_word,
};

/* Single letters are words as well: those of the alphabet, then N. */
static int open_singles(struct pen_tokens *t, const struct pen_token_opts *o,
			struct pen_err *err)
{
	struct pen_kmers *p = t->priv;
	const bool has_unk = pen__tokens_special(t, "unk", 3) >= 0;
	uint8_t table[256];

	if (o->vocab || p->stride != p->k)
		return pen__fail(
			err, P_CONFLICT, "singles",
			"requires format.stride=%u and no format.vocab=; with "
			"a vocabulary, use format.tokens=vocab",
			p->k);
	memcpy(table, p->letters.table, sizeof(table));
	if (o->n == 0)
		table['N'] = 0x81;
	if (o->n == 0 && !t->any_case)
		table['n'] = 0x81;
	for (const char *c = "RYKMSWBDHVrykmswbdhv"; *c && t->as_n; c++)
		if (table[(uint8_t)*c] == 0x80)
			table[(uint8_t)*c] = 0x81;
	pen__letters_init(&p->letters, table);
	t->nwords = (uint64_t)p->singles + t->nletters + 1;
	if (!has_unk)
		t->unk = (uint32_t)t->nwords++;
	t->dtype = pen__tokens_dtype(t, t->nwords);
	t->ops = &with_singles;
	return 0;
}

static int kmers_open(struct pen_tokens *t, const struct pen_token_opts *o,
		      struct pen_err *err)
{
	const int rc = pen__kmers_open(t, o, err);

	return rc || !o->singles ? rc : open_singles(t, o, err);
}

const struct pen_token_ops pen__token_kmers = {
	.own = "k,stride,singles",
	.takes_file = true,
	.field = "tokens",
	.alphabet = "ACGT",
	.has_letters = true,
	.takes_specials = true,
	.takes_length = true,
	.open = kmers_open,
	.close = pen__kmers_close,
	.count = kmers_count,
	.write = kmers_write,
	.word = pen__kmers_word,
};
