/*
 * Writes a vocabulary as a file. Words are in alphabetical order, so the same
 * words have the same ids whatever their counts.
 */
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "base/sort.h"
#include "token/count.h"
#include "token/token_int.h"

#define AHEAD 32u /* counts prefetched ahead */
/* Limit on words of k - 1 letters and one pad; there are about three times as
 * many padded words in all. */
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
	  .help = "letters per word" },
	{ .name = "stride",
	  .type = PEN_OPT_INT,
	  .off = OFF(stride),
	  .dflt = "1",
	  .min = 1,
	  .max = 1024,
	  .help = "letters between word starts (1: all reading frames)" },
	{ .name = "alphabet",
	  .type = PEN_OPT_STR,
	  .off = OFF(alphabet),
	  .dflt = "ACGTU",
	  .help = "known letters (words with other letters are not counted)" },
	{ .name = "case",
	  .type = PEN_OPT_ENUM,
	  .off = OFF(letters),
	  .dflt = "upper",
	  .choices = cases,
	  .help = "lowercase letters: convert to uppercase, or keep" },
	{ .name = "rna",
	  .type = PEN_OPT_BOOL,
	  .off = OFF(rna),
	  .dflt = "false",
	  .help = "read U as T" },
	{ .name = "min_count",
	  .type = PEN_OPT_COUNT,
	  .off = OFF(min_count),
	  .dflt = "1",
	  .help = "omit words seen fewer times than this" },
	{ .name = "specials",
	  .type = PEN_OPT_STR,
	  .off = OFF(specials),
	  .help = "special tokens, numbered first: unk,pad,..." },
	{ .name = "pads",
	  .type = PEN_OPT_BOOL,
	  .off = OFF(pads),
	  .dflt = "false",
	  .help = "add words padded with X before and Y after a sequence, for "
		  "tokens=dm" },
	{ .name = NULL },
};

static bool often(const struct pen_counts *c, const struct pen_count_opts *o,
		  uint64_t i)
{
	return c->count[i] && c->count[i] >= o->min_count;
}

static uint32_t code_at(const struct pen_counts *c, uint64_t i)
{
	return c->key ? c->key[i] - 1 : (uint32_t)i;
}

/* Sorts the alphabet, and finds the place of each letter. */
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

/* Writes "word<TAB>count"; without printf, as there may be millions. */
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

/* A word as letter numbers and as text. The next word is usually close, so only
 * few letters change. */
struct spelt {
	const struct pen_word_code *w;
	const char *letters;
	uint32_t code;
	uint32_t digit[12];
	char text[16];
};

static void spell_from(struct spelt *s, uint32_t code)
{
	const uint32_t n = s->w->nletters;
	uint32_t more = code - s->code;

	for (unsigned i = s->w->k; more && i-- > 0;) {
		const uint32_t room = n - s->digit[i];

		if (more < room) {
			s->digit[i] += more;
			more = 0;
		} else { /* digits are below n, so this does not overflow */
			more -= room;
			s->digit[i] = more % n;
			more = more / n + 1;
		}
		s->text[i] = s->letters[s->digit[i]];
	}
	s->code = code;
}

/* Collects the words seen, as sorted keys (alphabetical code << 32 | slot); tmp
 * has the same size. */
static void sort_seen(const struct pen_counts *c,
		      const struct pen_count_opts *o, const uint8_t *place,
		      uint64_t *key, uint64_t *tmp)
{
	bool same = true, ordered = true;
	uint64_t n = 0;

	for (unsigned i = 0; i < c->code.nletters; i++)
		same = same && place[i] == i;
	for (uint64_t i = 0; i < c->slots; i++) {
		uint32_t code;

		if (!often(c, o, i))
			continue;
		code = code_at(c, i);
		if (!same)
			code = recode(&c->code, code, place);
		key[n] = (uint64_t)code << 32 | i;
		ordered = ordered && (!n || key[n - 1] < key[n]);
		n++;
	}
	if (!ordered)
		pen__sort_high(key, tmp, n);
}

static void put_sorted(const struct pen_counts *c, const char *letters,
		       const uint64_t *key, uint64_t n, struct pen_text *t)
{
	struct spelt s = { .w = &c->code, .letters = letters };

	memset(s.text, letters[0], c->code.k);
	for (uint64_t i = 0; i < n; i++) {
		if (i + AHEAD < n) /* counts are spread over the table */
			__builtin_prefetch(&c->count[(uint32_t)key[i + AHEAD]]);
		spell_from(&s, (uint32_t)(key[i] >> 32));
		put_word(t, s.text, c->code.k, c->count[(uint32_t)key[i]]);
	}
}

static int put_seen(const struct pen_counts *c, const struct pen_count_opts *o,
		    struct pen_text *t, struct pen_vocab_facts *f,
		    struct pen_err *err)
{
	uint8_t place[64] = { 0 };
	char sorted[64];
	uint64_t *key;

	for (uint64_t i = 0; i < c->slots; i++) {
		f->nseen += often(c, o, i);
		f->nrare += c->count[i] && !often(c, o, i);
	}
	if (!f->nseen)
		return pen__fail(err, P_NO_SAMPLES, NULL,
				 "no word of %u letters from the alphabet %s "
				 "was found%s; change k, alphabet or min_count",
				 c->code.k, o->alphabet,
				 f->nrare ? " often enough" : "");
	if (c->slots > (uint64_t)UINT32_MAX + 1)
		return pen__fail(err, P_OVER_LIMIT, NULL,
				 "more words than a vocabulary can number; "
				 "reduce k or raise min_count");
	key = pen__alloc((size_t)f->nseen, 2 * sizeof(*key));
	if (!key)
		return pen__fail_nomem(err, "words",
				       (size_t)f->nseen * 2 * sizeof(*key));
	sort_letters(o->alphabet, sorted, place);
	sort_seen(c, o, place, key, key + f->nseen);
	put_sorted(c, sorted, key, f->nseen, t);
	pen__free(key);
	return 0;
}

/* Collects the letters of the counted words, sorted. */
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

/* Writes all words of nx pads and k - nx letters. */
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
		return pen__fail(err, P_BAD_VALUE, "pads",
				 "would add more than %u words for k=%u and "
				 "%zu letters; reduce k or set rna=true",
				 3 * PADS_MOST, k, strlen(letters));
	pen__text_add(t, "%.*s\t0\n%.*s\t0\n", (int)k, "XXXXXXXXXXXX", (int)k,
		      "YYYYYYYYYYYY");
	for (unsigned nx = 1; nx < k; nx++) {
		put_padded(t, k, nx, letters, true);
		put_padded(t, k, nx, letters, false);
	}
	return 0;
}

int pen__counts_specials(const struct pen_count_opts *o, struct pen_err *err)
{
	const char *s = o->specials, *name, *other;
	unsigned count = 0;
	size_t n, m;

	while (s && (n = pen__tokens_next_name(&s, &name))) {
		const char *rest = s;

		if (++count > 32 || n > 15 || memchr(name, '\t', n) ||
		    memchr(name, '\n', n))
			return pen__fail(
				err, P_BAD_VALUE, "specials",
				"accepts up to 32 names of up to 15 letters");
		while ((m = pen__tokens_next_name(&rest, &other)))
			if (m == n && !memcmp(name, other, n))
				return pen__fail(err, P_BAD_VALUE, "specials",
						 "'%.*s' is listed twice",
						 (int)n, name);
	}
	return 0;
}

static void put_specials(const struct pen_count_opts *o, struct pen_text *t)
{
	const char *s = o->specials, *name;
	size_t n;

	while (s && (n = pen__tokens_next_name(&s, &name)))
		pen__text_add(t, "<%.*s>\t0\n", (int)n, name);
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
	f->nwords--; /* the first line is not a word */
	return rc;
}
