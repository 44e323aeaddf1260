/*
 * A vocabulary as a file. The order of words is by their letters, as text, so
 * that the same words have the same numbers however often they were seen.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "token/count.h"

/* Words of k - 1 letters and a pad: there are some three times as many of all
 * kinds. */
#define PADS_MOST (UINT32_C(1) << 20)

static const char *const cases[] = { "upper", "keep", NULL };

#define OFF(x) offsetof(struct pen_count_opts, x)
const struct pen_opt pen__count_opts[] = {
	{ .name = "k",
	  .type = PEN_OPT_INT,
	  .off = OFF(k),
	  .dflt = "4",
	  .min = 1,
	  .max = 12,
	  .help = "letters of a word" },
	{ .name = "stride",
	  .type = PEN_OPT_INT,
	  .off = OFF(stride),
	  .dflt = "1",
	  .min = 1,
	  .max = 1024,
	  .help = "letters from a word to the next: 1 counts all frames" },
	{ .name = "alphabet",
	  .type = PEN_OPT_STR,
	  .off = OFF(alphabet),
	  .dflt = "ACGTU",
	  .help = "known letters; words with others are left out" },
	{ .name = "case",
	  .type = PEN_OPT_ENUM,
	  .off = OFF(letters),
	  .dflt = "upper",
	  .choices = cases,
	  .help = "small letters: as capitals, or kept as they are" },
	{ .name = "rna",
	  .type = PEN_OPT_BOOL,
	  .off = OFF(rna),
	  .dflt = "false",
	  .help = "U is read as T" },
	{ .name = "min_count",
	  .type = PEN_OPT_COUNT,
	  .off = OFF(min_count),
	  .dflt = "1",
	  .help = "leave out words that were seen less often" },
	{ .name = "specials",
	  .type = PEN_OPT_STR,
	  .off = OFF(specials),
	  .help = "special tokens, which come first: unk,pad,..." },
	{ .name = "pads",
	  .type = PEN_OPT_BOOL,
	  .off = OFF(pads),
	  .dflt = "false",
	  .help = "add words with X before and Y after a sequence, for "
		  "tokens=dm" },
	{ .name = NULL },
};

/* A word that was seen, by a code in the order of text. */
struct seen {
	uint32_t code;
	uint64_t count;
};

static int by_code(const void *a, const void *b)
{
	const uint32_t x = ((const struct seen *)a)->code;
	const uint32_t y = ((const struct seen *)b)->code;

	return x < y ? -1 : x > y;
}

static bool often(const struct pen_counts *c, const struct pen_count_opts *o,
		  uint64_t i)
{
	return c->count[i] && c->count[i] >= o->min_count;
}

static uint32_t code_at(const struct pen_counts *c, uint64_t i)
{
	return c->key ? c->key[i] - 1 : (uint32_t)i;
}

/* The alphabet in the order of text, and which letter is which in it. */
static void sort_letters(const char *alphabet, char *sorted, uint8_t *place)
{
	size_t n = 0;

	for (unsigned i = 1; i < 128; i++) {
		const char *at = strchr(alphabet, (int)i);

		if (!at)
			continue;
		place[at - alphabet] = (uint8_t)n;
		sorted[n++] = (char)i;
	}
	sorted[n] = '\0';
}

static uint32_t recode(const struct pen_word_code *w, uint32_t code,
		       const uint8_t *place)
{
	uint32_t v = 0;

	for (unsigned i = 0; i < w->k; i++, code /= w->nletters)
		v += place[code % w->nletters] * w->power[i];
	return v;
}

/* "word<TAB>count": by hand, as there may be many millions. */
static void put_word(struct pen_text *t, const char *word, size_t k,
		     uint64_t count)
{
	char line[48], digits[24];
	size_t n = 0, at = k + 1;

	memcpy(line, word, k);
	line[k] = '\t';
	do
		digits[n++] = (char)('0' + count % 10);
	while (count /= 10);
	while (n)
		line[at++] = digits[--n];
	line[at++] = '\n';
	pen__text_put(t, line, at);
}

static void put_sorted(const struct pen_counts *c,
		       const struct pen_count_opts *o, struct seen *all,
		       struct pen_text *t)
{
	uint8_t place[64] = { 0 };
	char sorted[64], word[16];
	bool ordered = true;
	uint64_t n = 0;

	sort_letters(o->alphabet, sorted, place);
	for (uint64_t i = 0; i < c->slots; i++) {
		if (!often(c, o, i))
			continue;
		all[n].code = recode(&c->code, code_at(c, i), place);
		all[n].count = c->count[i];
		ordered = ordered && (!n || all[n - 1].code < all[n].code);
		n++;
	}
	if (!ordered)
		qsort(all, (size_t)n, sizeof(*all), by_code);
	for (uint64_t i = 0; i < n; i++) {
		pen__word_spell(&c->code, all[i].code, sorted, word);
		put_word(t, word, c->code.k, all[i].count);
	}
}

static int put_seen(const struct pen_counts *c, const struct pen_count_opts *o,
		    struct pen_text *t, struct pen_vocab_facts *f,
		    struct pen_err *err)
{
	struct seen *all;

	for (uint64_t i = 0; i < c->slots; i++) {
		f->nseen += often(c, o, i);
		f->nrare += c->count[i] && !often(c, o, i);
	}
	if (!f->nseen)
		return pen__fail(err, PEN_EDATA, NULL,
				 "no word of %u letters out of %s was seen%s: "
				 "set k, alphabet or min_count",
				 c->code.k, o->alphabet,
				 f->nrare ? " often enough" : "");
	all = pen__alloc((size_t)f->nseen, sizeof(*all));
	if (!all)
		return pen__fail_nomem(err, "words",
				       (size_t)f->nseen * sizeof(*all));
	put_sorted(c, o, all, t);
	pen__free(all);
	return 0;
}

/* The letters that counted words have, in the order of text. */
static size_t letters_seen(const struct pen_counts *c,
			   const struct pen_count_opts *o, char *out)
{
	bool seen[256] = { false };
	size_t n = 0;

	for (uint64_t i = 0; i < c->slots; i++) {
		char word[16];

		if (!often(c, o, i))
			continue;
		pen__word_spell(&c->code, code_at(c, i), o->alphabet, word);
		for (unsigned j = 0; j < c->code.k; j++)
			seen[(uint8_t)word[j]] = true;
	}
	for (unsigned i = 1; i < 256; i++)
		if (seen[i])
			out[n++] = (char)i;
	out[n] = '\0';
	return n;
}

/* All words of nx pads and k - nx letters, pads before or after. */
static void put_padded(struct pen_text *t, unsigned k, unsigned nx,
		       const char *letters, bool before)
{
	const unsigned m = k - nx;
	struct pen_word_code rest;
	char word[32];

	pen__word_code_init(&rest, m, (unsigned)strlen(letters));
	for (uint32_t i = 0; i < rest.power[m]; i++) {
		pen__word_spell(&rest, i, letters, word + (before ? nx : 0));
		memset(word + (before ? 0 : m), before ? 'X' : 'Y', nx);
		put_word(t, word, k, 0);
	}
}

static int put_pads(const struct pen_counts *c, const struct pen_count_opts *o,
		    struct pen_text *t, struct pen_err *err)
{
	const unsigned k = c->code.k;
	char letters[64];
	struct pen_word_code most;

	if (!pen__word_code_init(&most, k - 1,
				 (unsigned)letters_seen(c, o, letters)) ||
	    most.power[k - 1] > PADS_MOST)
		return pen__fail(err, PEN_EINVAL, "pads",
				 "would be more than %u words for k=%u and %zu "
				 "letters: take a smaller k, or rna=true",
				 3 * PADS_MOST, k, strlen(letters));
	pen__text_add(t, "%.*s\t0\n%.*s\t0\n", (int)k, "XXXXXXXXXXXX", (int)k,
		      "YYYYYYYYYYYY");
	for (unsigned nx = 1; nx < k; nx++) {
		put_padded(t, k, nx, letters, true);
		put_padded(t, k, nx, letters, false);
	}
	return 0;
}

static void put_specials(const struct pen_count_opts *o, struct pen_text *t)
{
	const char *s = o->specials;

	while (s && *s) {
		size_t n;

		s += strspn(s, ", ");
		n = strcspn(s, ", ");
		if (n)
			pen__text_add(t, "<%.*s>\t0\n", (int)n, s);
		s += n;
	}
}

int pen__counts_text(struct pen_counts *c, const struct pen_count_opts *o,
		     struct pen_text *t, struct pen_vocab_facts *f,
		     struct pen_err *err)
{
	int rc;

	pen__counts_settle(c);
	*f = (struct pen_vocab_facts){ .nothers = c->nunknown };
	pen__text_add(t,
		      "# penstock vocabulary 1: k=%u stride=%u alphabet=%s "
		      "min_count=%llu; words of %llu letters\n",
		      c->code.k, c->stride, o->alphabet,
		      (unsigned long long)o->min_count,
		      (unsigned long long)c->nletters);
	put_specials(o, t);
	rc = c->failed ? pen__fail_nomem(err, "words", c->slots * 24)
		       : put_seen(c, o, t, f, err);
	if (!rc && o->pads)
		rc = put_pads(c, o, t, err);
	if (!rc && t->failed)
		rc = pen__fail_nomem(err, "words", t->n);
	for (size_t i = 0; !rc && i < t->n; i++)
		f->nwords += t->p[i] == '\n';
	f->nwords--; /* the first line */
	return rc;
}
