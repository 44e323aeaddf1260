/*
 * How words of k letters get their ids: computed, in the order of the alphabet
 * after the special tokens, or from a vocabulary.
 */
#include <ctype.h>
#include <stdio.h>

#include "token/kmers.h"

/* "<cls>", "[CLS]": cls. Returns 0 if the word is not a special token. */
static size_t special_name(const char *s, size_t n, char *out, size_t cap)
{
	if (n < 3 || n - 2 >= cap ||
	    !((s[0] == '<' && s[n - 1] == '>') ||
	      (s[0] == '[' && s[n - 1] == ']')))
		return 0;
	for (size_t i = 1; i + 1 < n; i++)
		out[i - 1] = (char)tolower((uint8_t)s[i]);
	out[n - 2] = '\0';
	return n - 2;
}

int pen__tokens_file_specials(struct pen_tokens *t, const struct pen_words *w,
			      struct pen_err *err)
{
	char name[sizeof(t->special[0])];

	for (uint32_t i = 0; i < w->n; i++) {
		const size_t n = special_name(pen__words_at(w, i),
					      pen__words_length(w, i), name,
					      sizeof(name));

		if (!n || pen__tokens_special(t, name, n) >= 0)
			continue;
		if (t->nspecials == PEN_TOKEN_SPECIALS)
			return pen__fail(err, P_OVER_LIMIT, w->where,
					 "more than %u special tokens",
					 PEN_TOKEN_SPECIALS);
		memcpy(t->special[t->nspecials], name, n + 1);
		t->special_id[t->nspecials++] = i;
	}
	return 0;
}

bool pen__tokens_is_special(const struct pen_tokens *t, uint32_t id)
{
	for (uint32_t i = 0; i < t->nspecials; i++)
		if (t->special_id[i] == id)
			return true;
	return false;
}

void pen__tokens_letters(const struct pen_tokens *t, struct pen_letters *l)
{
	uint8_t table[256];

	for (unsigned i = 0; i < 256; i++)
		table[i] = t->code[i] < t->nletters ? t->code[i] : 0x80;
	pen__letters_init(l, table);
}

int pen__kmers_load(struct pen_kmers *p, const struct pen_token_opts *o,
		    struct pen_err *err)
{
	int rc = pen__words_load(&p->words, o->vocab, (uint32_t)o->k, err);

	p->k = (uint32_t)o->k;
	if (rc || !p->words.k || p->words.k == p->k)
		return rc;
	if (o->k_set)
		return pen__fail(err, P_CONFLICT, "k",
				 "%u does not match %s, whose words have %u "
				 "letters; remove the setting",
				 p->k, o->vocab, p->words.k);
	p->k = p->words.k;
	return 0;
}

/* True for words that are numbered by their letters. */
static bool is_word(const struct pen_tokens *t, const struct pen_kmers *p,
		    uint32_t i)
{
	return pen__words_length(&p->words, i) == p->k &&
	       !pen__tokens_is_special(t, i);
}

/* Collects all letters of words of k letters, except those of pads. */
static int learn_alphabet(struct pen_tokens *t, const struct pen_kmers *p,
			  const char *pads, struct pen_err *err)
{
	bool seen[256] = { false };

	t->nletters = 0;
	memset(t->alphabet, 0, sizeof(t->alphabet));
	for (uint32_t i = 0; i < p->words.n; i++)
		if (is_word(t, p, i))
			for (unsigned j = 0; j < p->k; j++)
				seen[(uint8_t)pen__words_at(&p->words, i)[j]] =
					true;
	for (unsigned c = 33; c < 256; c++) {
		if (!seen[c] || strchr(pads, (int)c))
			continue;
		if (t->nletters + strlen(pads) >= PEN_TOKEN_ALPHABET)
			return pen__fail(
				err, P_OVER_LIMIT, p->words.where,
				"the words use more than %u different letters",
				PEN_TOKEN_ALPHABET);
		t->alphabet[t->nletters++] = (char)c;
	}
	if (!t->nletters)
		return pen__fail(err, P_BAD_DATA_VALUE, p->words.where,
				 "no words of %u letters; set format.k=", p->k);
	return 0;
}

/* Code of word i. place: number of each letter, 0xff if it is not in the
 * alphabet, as blanks in a file. */
static uint32_t code_of(const struct pen_kmers *p, const uint8_t *place,
			uint32_t i)
{
	const char *s = pen__words_at(&p->words, i);
	uint32_t v = 0, all = 0;

	for (unsigned j = 0; j < p->k; j++) {
		const uint8_t c = place[(uint8_t)s[j]];

		all |= c;
		v = v * p->code.nletters + c;
	}
	return all & 0x80 ? PEN_WORD_NONE : v;
}

/* True if ids increase with codes, without gaps; *first: the first id. */
static bool in_order(const struct pen_tokens *t, const struct pen_kmers *p,
		     const uint8_t *place, uint32_t *first)
{
	uint32_t n = 0, last = 0;

	for (uint32_t i = 0; i < p->words.n; i++) {
		const uint32_t v = is_word(t, p, i) ? code_of(p, place, i)
						    : PEN_WORD_NONE;

		if (v == PEN_WORD_NONE)
			continue;
		if (!n)
			*first = i;
		else if (i != *first + n || v <= last)
			return false;
		last = v;
		n++;
	}
	return n > 0;
}

int pen__kmers_learn(struct pen_tokens *t, struct pen_kmers *p,
		     const char *pads, struct pen_err *err)
{
	char all[PEN_TOKEN_ALPHABET + 1];
	uint8_t place[256];
	uint32_t first = 0;
	bool ordered;
	int rc = learn_alphabet(t, p, pads, err);

	if (rc)
		return rc;
	snprintf(all, sizeof(all), "%s%s", t->alphabet, pads);
	memset(place, 0xff, sizeof(place));
	for (unsigned i = 0; all[i]; i++)
		place[(uint8_t)all[i]] = (uint8_t)i;
	p->code.nletters = (uint32_t)strlen(all);
	ordered = in_order(t, p, place, &first);
	rc = pen__word_table_init(&p->table, p->k, p->code.nletters, p->words.n,
				  ordered, err);
	p->code = p->table.code;
	for (uint32_t i = 0; !rc && i < p->words.n; i++) {
		const uint32_t v = is_word(t, p, i) ? code_of(p, place, i)
						    : PEN_WORD_NONE;
		uint32_t was;

		if (v == PEN_WORD_NONE)
			continue;
		was = pen__word_table_put(&p->table, v, i);
		if (was != UINT32_MAX)
			rc = pen__words_twice(&p->words, was, i, err);
	}
	pen__word_table_rank(&p->table, first);
	return rc;
}

static int open_vocab(struct pen_tokens *t, struct pen_kmers *p,
		      const struct pen_token_opts *o, struct pen_err *err)
{
	int at, rc;

	if (o->specials || o->alphabet)
		return pen__fail(err, P_CONFLICT,
				 o->specials ? "specials" : "alphabet",
				 "defined by the file of format.vocab=; remove "
				 "the setting");
	rc = pen__kmers_load(p, o, err);
	if (rc)
		return rc;
	t->nwords = p->words.n;
	t->nspecials = 0;
	rc = pen__tokens_file_specials(t, &p->words, err);
	if (!rc)
		rc = pen__kmers_learn(t, p, "", err);
	at = pen__tokens_special(t, "unk", 3);
	t->unk = at < 0 ? (uint32_t)t->nwords++ : t->special_id[at];
	return rc;
}

static int number_words(struct pen_tokens *t, struct pen_kmers *p,
			struct pen_err *err)
{
	const int at = pen__tokens_special(t, "unk", 3);

	if (!t->nletters || !pen__word_code_init(&p->code, p->k, t->nletters) ||
	    p->code.power[p->k] > UINT32_MAX - 1024)
		return pen__fail(err, P_BAD_VALUE, "k",
				 "words of %u letters from an alphabet of %u "
				 "are too many to number; reduce format.k=",
				 p->k, t->nletters);
	p->base = t->nspecials;
	p->singles = p->base + p->code.power[p->k];
	t->nwords = p->singles;
	t->unk = at < 0 ? (uint32_t)t->nwords++ : t->special_id[at];
	return 0;
}

int pen__kmers_open(struct pen_tokens *t, const struct pen_token_opts *o,
		    struct pen_err *err)
{
	struct pen_kmers *p = pen__calloc(1, sizeof(*p));
	int rc;

	if (!p)
		return pen__fail_nomem(err, "tokens", sizeof(*p));
	t->priv = p;
	p->k = (uint32_t)o->k;
	p->stride = (uint32_t)o->stride;
	rc = o->vocab ? open_vocab(t, p, o, err) : number_words(t, p, err);
	if (rc)
		return rc;
	if (o->vocab)
		pen__tokens_codes(t, o);
	pen__tokens_letters(t, &p->letters);
	t->dtype = pen__tokens_dtype(t, t->nwords);
	return 0;
}

void pen__kmers_close(struct pen_tokens *t)
{
	struct pen_kmers *p = t->priv;

	if (!p)
		return;
	pen__words_fini(&p->words);
	pen__word_table_fini(&p->table);
	pen__free(p);
}

int pen__kmers_word(const struct pen_tokens *t, uint64_t id, char *buf,
		    size_t cap)
{
	const struct pen_kmers *p = t->priv;
	char word[16];

	if (p->words.n && id < p->words.n) {
		snprintf(buf, cap, "%s",
			 pen__words_at(&p->words, (uint32_t)id));
		return 0;
	}
	if (id == t->unk) {
		snprintf(buf, cap, "<unk>");
		return 0;
	}
	if (id >= p->singles) {
		const uint64_t i = id - p->singles;

		snprintf(buf, cap, "%c",
			 i < t->nletters ? t->alphabet[i] : 'N');
		return 0;
	}
	pen__word_spell(&p->code, (uint32_t)id - p->base, t->alphabet, word);
	snprintf(buf, cap, "%s", word);
	return 0;
}
