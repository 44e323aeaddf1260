/*
 * How words of k letters get their numbers: computed, in the order of the
 * alphabet and after the specials, or as a vocabulary has them.
 */
#include <ctype.h>
#include <stdio.h>

#include "token/kmers.h"

/* "<cls>", "[CLS]": cls. 0: the word is no special. */
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
			return pen__fail(err, PEN_ENOTSUP, w->where,
					 "has more than %u special tokens",
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

/* All letters that words of k letters have, but for those of pads. */
static int learn_alphabet(struct pen_tokens *t, const struct pen_kmers *p,
			  const char *pads, struct pen_err *err)
{
	bool seen[256] = { false };

	t->nletters = 0;
	memset(t->alphabet, 0, sizeof(t->alphabet));
	for (uint32_t i = 0; i < p->words.n; i++)
		if (pen__words_length(&p->words, i) == p->k &&
		    !pen__tokens_is_special(t, i))
			for (unsigned j = 0; j < p->k; j++)
				seen[(uint8_t)pen__words_at(&p->words, i)[j]] =
					true;
	for (unsigned c = 33; c < 256; c++) {
		if (!seen[c] || strchr(pads, (int)c))
			continue;
		if (t->nletters + strlen(pads) >= PEN_TOKEN_ALPHABET)
			return pen__fail(err, PEN_ENOTSUP, p->words.where,
					 "has words of more than %u letters",
					 PEN_TOKEN_ALPHABET);
		t->alphabet[t->nletters++] = (char)c;
	}
	if (!t->nletters)
		return pen__fail(err, PEN_EDATA, p->words.where,
				 "has no words of %u letters: set k", p->k);
	return 0;
}

int pen__kmers_learn(struct pen_tokens *t, struct pen_kmers *p,
		     const char *pads, struct pen_err *err)
{
	char all[PEN_TOKEN_ALPHABET + 1];
	int rc = learn_alphabet(t, p, pads, err);

	if (rc)
		return rc;
	snprintf(all, sizeof(all), "%s%s", t->alphabet, pads);
	rc = pen__word_table_init(&p->table, p->k, (unsigned)strlen(all),
				  p->words.n, err);
	if (rc)
		return rc;
	p->code = p->table.code;
	for (uint32_t i = 0; i < p->words.n; i++) {
		const char *s = pen__words_at(&p->words, i);
		bool known = true;
		uint32_t v = 0;

		if (pen__words_length(&p->words, i) != p->k ||
		    pen__tokens_is_special(t, i))
			continue;
		for (unsigned j = 0; j < p->k && known; j++) {
			const char *at = strchr(all, s[j]);

			known = at != NULL;
			v = v * p->code.nletters +
			    (uint32_t)(known ? at - all : 0);
		}
		if (known) /* but for blanks and the like */
			pen__word_table_put(&p->table, v, i);
	}
	return 0;
}

static int open_vocab(struct pen_tokens *t, struct pen_kmers *p,
		      const struct pen_token_opts *o, struct pen_err *err)
{
	int at, rc;

	if (o->specials || o->alphabet)
		return pen__fail(err, PEN_EINVAL,
				 o->specials ? "specials" : "alphabet",
				 "is what the file of vocab= says: leave it "
				 "out");
	rc = pen__words_load(&p->words, o->vocab, err);
	if (rc)
		return rc;
	if (p->words.k && p->words.k <= 12)
		p->k = p->words.k;
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
		return pen__fail(err, PEN_EINVAL, "k",
				 "words of %u letters out of %u are too many "
				 "to number",
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
	uint8_t table[256];
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
	for (unsigned i = 0; i < 256; i++)
		table[i] = t->code[i] < t->nletters ? t->code[i] : 0x80;
	pen__letters_init(&p->letters, table);
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
