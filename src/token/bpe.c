/*
 * Byte-pair encoding: a sequence starts as single letters. Of all adjacent
 * pairs that have a merge, the one whose merge comes first in the file is
 * merged, leftmost first, until no pair has a merge.
 *
 * Each merge has a list of its pairs, and a bitmap shows which lists are not
 * empty, so a merge takes a few steps whatever the length of the sequence.
 * Order within a list matters only if pairs can overlap (a word merged with
 * itself): such lists are sorted. This holds as long as no merge makes a word
 * that an earlier one uses. If a file has such merges, every list is sorted,
 * and abandoned when an earlier merge becomes possible.
 */
#include <stdio.h>

#include "token/bpe.h"

#define NIL UINT32_MAX
/* Positions have 32 bits. */
#define LETTERS_MOST (UINT32_MAX - 1)

/* A position in the sequence; in use unless word is NIL. */
struct cell {
	uint32_t word, left, right;    /* word id and neighbours */
	uint32_t merge, before, after; /* of the pair that starts here */
};

struct work {
	const struct pen_bpe *p;
	struct cell *cell;
	uint32_t *head;	  /* per merge; valid only if its bit is set */
	uint64_t *some;	  /* a bit per merge: its list is not empty */
	uint64_t *groups; /* a bit per 64 bits of `some` */
	uint32_t *order;
};

static uint64_t words_of(uint64_t bits)
{
	return (bits + 63) / 64;
}

static size_t bpe_scratch(const struct pen_tokens *t, uint64_t n)
{
	const struct pen_bpe *p = t->priv;
	const uint64_t m = p->nmerges, some = words_of(m);

	return (size_t)(n * (sizeof(struct cell) + 4) + m * 4 +
			(some + words_of(some)) * 8 + 1024);
}

static uint8_t *take(uint8_t **room, size_t n)
{
	uint8_t *p = *room;

	*room += (n + 63) / 64 * 64;
	return p;
}

static void link_pair(struct work *w, uint32_t at, uint32_t merge)
{
	const uint64_t bit = UINT64_C(1) << (merge & 63);
	struct cell *c = &w->cell[at];

	c->merge = merge;
	if (merge == PEN_BPE_NONE)
		return;
	c->before = NIL;
	c->after = w->some[merge / 64] & bit ? w->head[merge] : NIL;
	if (c->after != NIL)
		w->cell[c->after].before = at;
	w->head[merge] = at;
	w->some[merge / 64] |= bit;
	w->groups[merge / 4096] |= UINT64_C(1) << (merge / 64 & 63);
}

static void unlink_pair(struct work *w, uint32_t at)
{
	struct cell *c = &w->cell[at];
	const uint32_t m = c->merge;

	if (m == PEN_BPE_NONE)
		return;
	if (c->after != NIL)
		w->cell[c->after].before = c->before;
	if (c->before != NIL)
		w->cell[c->before].after = c->after;
	else
		w->head[m] = c->after;
	if (w->head[m] == NIL) {
		w->some[m / 64] &= ~(UINT64_C(1) << (m & 63));
		if (!w->some[m / 64])
			w->groups[m / 4096] &= ~(UINT64_C(1) << (m / 64 & 63));
	}
	c->merge = PEN_BPE_NONE;
}

/* First merge that has pairs, starting at the group of `from`. */
static uint32_t lowest(const struct work *w, uint32_t from)
{
	const uint64_t n = words_of(words_of(w->p->nmerges));

	for (uint64_t g = from / 4096; g < n; g++)
		if (w->groups[g]) {
			const uint64_t s = g * 64 + (unsigned)__builtin_ctzll(
							    w->groups[g]);

			return (uint32_t)(s * 64 + (unsigned)__builtin_ctzll(
							   w->some[s]));
		}
	return PEN_BPE_NONE;
}

/* Merges the pair at `at`; returns the lowest merge that this makes
 * possible. */
static uint32_t merge_pair(struct work *w, uint32_t at)
{
	struct cell *c = &w->cell[at];
	const uint32_t right = c->right;
	uint32_t low, next;

	unlink_pair(w, right);
	c->word = w->p->merge[c->merge].made;
	unlink_pair(w, at);
	w->cell[right].word = NIL;
	next = w->cell[right].right;
	c->right = next;
	low = PEN_BPE_NONE;
	if (next != NIL) {
		w->cell[next].left = at;
		low = pen__bpe_find(w->p, c->word, w->cell[next].word);
		link_pair(w, at, low);
	}
	if (c->left != NIL) {
		const uint32_t m =
			pen__bpe_find(w->p, w->cell[c->left].word, c->word);

		unlink_pair(w, c->left);
		link_pair(w, c->left, m);
		low = m < low ? m : low;
	}
	return low;
}

/* Shell sort: it needs no memory, and the lists are mostly sorted. */
static void sort(uint32_t *v, uint32_t n)
{
	static const uint32_t gaps[] = { 8858192, 3936974, 1749766, 777674,
					 345633,  153615,  68273,   30343,
					 13486,	  5994,	   2664,    1184,
					 526,	  234,	   104,	    46,
					 20,	  9,	   4,	    1 };

	for (size_t g = 0; g < sizeof(gaps) / sizeof(gaps[0]); g++)
		for (uint32_t i = gaps[g]; i < n; i++) {
			const uint32_t x = v[i];
			uint32_t j = i;

			for (; j >= gaps[g] && v[j - gaps[g]] > x; j -= gaps[g])
				v[j] = v[j - gaps[g]];
			v[j] = x;
		}
}

/* Applies a merge to all its pairs, or until an earlier merge is possible. */
static void merge_all(struct work *w, uint32_t m)
{
	const bool sorted = !w->p->ordered ||
			    w->p->merge[m].left == w->p->merge[m].right;
	uint32_t n = 0;

	if (!sorted) {
		while (w->some[m / 64] >> (m & 63) & 1)
			merge_pair(w, w->head[m]);
		return;
	}
	for (uint32_t at = w->head[m]; at != NIL; at = w->cell[at].after)
		w->order[n++] = at;
	sort(w->order, n);
	for (uint32_t i = 0; i < n; i++)
		if (w->cell[w->order[i]].merge == m &&
		    w->cell[w->order[i]].word != NIL &&
		    merge_pair(w, w->order[i]) <= m)
			return;
}

static void lay_out(struct work *w, uint64_t n, uint8_t *room)
{
	const uint64_t m = w->p->nmerges, some = words_of(m);

	w->cell = (void *)take(&room, n * sizeof(*w->cell));
	w->head = (void *)take(&room, m * sizeof(*w->head));
	w->some = (void *)take(&room, some * 8 + 8);
	w->groups = (void *)take(&room, words_of(some) * 8 + 8);
	w->order = (void *)take(&room, n * sizeof(*w->order));
	memset(w->some, 0, some * 8);
	memset(w->groups, 0, words_of(some) * 8);
}

/* Converts letters to words; PEN_BPE_NONE is an unknown one. */
static int64_t first_words(const struct pen_tokens *t, struct work *w,
			   const struct pen_sequence *s, struct pen_err *err)
{
	const uint32_t n = (uint32_t)s->n;

	for (uint32_t i = 0; i < n; i++) {
		const uint32_t id = w->p->letter[s->letters[i]];

		if (id == UINT32_MAX && !w->p->has_unk)
			return pen__tokens_no_word(t, s, i, w->p->words.where,
						   err);
		w->cell[i] = (struct cell){
			.word = id == UINT32_MAX ? t->unk : id,
			.left = i ? i - 1 : NIL,
			.right = i + 1 < n ? i + 1 : NIL,
			.merge = PEN_BPE_NONE,
		};
	}
	/* backwards, so that the lists run from left to right */
	for (uint32_t i = n > 1 ? n - 1 : 0; i-- > 0;)
		link_pair(w, i,
			  pen__bpe_find(w->p, w->cell[i].word,
					w->cell[i + 1].word));
	return 0;
}

static int64_t bpe_list(const struct pen_tokens *t,
			const struct pen_sequence *s, uint32_t *out, void *room,
			struct pen_err *err)
{
	struct work w = { .p = t->priv };
	uint32_t m = 0;
	int64_t made;

	if (s->n > LETTERS_MOST)
		return pen__fail(
			err, P_OVER_LIMIT, NULL,
			"sample %llu is too long for format.tokens=bpe",
			(unsigned long long)s->number);
	if (!s->n)
		return 0;
	lay_out(&w, s->n, room);
	made = first_words(t, &w, s, err);
	if (made < 0)
		return made;
	while ((m = lowest(&w, w.p->ordered ? m : 0)) != PEN_BPE_NONE)
		merge_all(&w, m);
	for (uint32_t at = 0; at != NIL; at = w.cell[at].right)
		out[made++] = w.cell[at].word;
	return made;
}

static void bpe_close(struct pen_tokens *t)
{
	if (t->priv)
		pen__bpe_fini(t->priv);
	pen__free(t->priv);
}

static void settle_letters(struct pen_tokens *t, struct pen_bpe *p,
			   const struct pen_token_opts *o)
{
	uint32_t own[256];

	memcpy(own, p->letter, sizeof(own));
	for (unsigned c = 0; c < 256; c++) {
		unsigned as = c;

		if (!t->any_case && c >= 'a' && c <= 'z')
			as = c - 'a' + 'A';
		if (o->rna && (as == 'U' || as == 'u'))
			as = as == 'U' ? 'T' : 't';
		p->letter[c] = own[as];
		if (p->letter[c] == UINT32_MAX && t->as_n && as &&
		    strchr("RYKMSWBDHV", (int)as))
			p->letter[c] = own['N'];
	}
}

static int bpe_open(struct pen_tokens *t, const struct pen_token_opts *o,
		    struct pen_err *err)
{
	struct pen_bpe *p = pen__calloc(1, sizeof(*p));
	int rc, at;

	if (!p)
		return pen__fail_nomem(err, "tokens", sizeof(*p));
	t->priv = p;
	if (!o->merges)
		return pen__fail(
			err, P_MISSING_SETTING, "merges",
			"required by format.tokens=bpe; set it to merges.txt "
			"(with format.vocab=) or to tokenizer.json");
	rc = pen__bpe_load(p, o->vocab, o->merges, err);
	if (!rc)
		rc = pen__tokens_file_specials(t, &p->words, err);
	if (rc)
		return rc;
	settle_letters(t, p, o);
	at = pen__tokens_special(t, "unk", 3);
	p->has_unk = at >= 0 && !t->strict;
	t->strict = false; /* first_words() checks this */
	t->unk = at < 0 ? 0 : t->special_id[at];
	t->nwords = p->words.n;
	t->dtype = pen__tokens_dtype(t, t->nwords);
	return 0;
}

static int bpe_word(const struct pen_tokens *t, uint64_t id, char *buf,
		    size_t cap)
{
	const struct pen_bpe *p = t->priv;

	snprintf(buf, cap, "%s", pen__words_at(&p->words, (uint32_t)id));
	return 0;
}

const struct pen_token_ops pen__token_bpe = {
	.takes_file = true,
	.takes_merges = true,
	.field = "tokens",
	.takes_specials = true,
	.takes_length = true,
	.whole_file = true,
	.open = bpe_open,
	.close = bpe_close,
	.count = pen__tokens_each,
	.list = bpe_list,
	.scratch = bpe_scratch,
	.word = bpe_word,
};
