/*
 * Reads merges from a file: lines of two words ("A C") in order of priority, or
 * a tokenizer.json, which includes the vocabulary. Without a vocabulary,
 * letters get the first ids and merges the following ones. Prefixes and
 * suffixes of words, dropout and similar settings are refused: they have no
 * meaning for sequences, or would change the tokens.
 */
#include <stdio.h>

#include "token/bpe.h"

#define FILE_LIMIT (UINT64_C(1) << 28)

void pen__bpe_fini(struct pen_bpe *p)
{
	pen__words_fini(&p->words);
	pen__free(p->merge);
	pen__free(p->slot);
}

static int bad_merge(const struct pen_bpe *p, int kind, const char *where,
		     const char *what, struct pen_err *err)
{
	return pen__fail(err, kind, where, "merge %llu %s",
			 (unsigned long long)p->nmerges + 1, what);
}

struct word {
	const char *s;
	size_t n;
};

/* Adds the next merge; both words and the result must be in the vocabulary. */
static int add_merge(struct pen_bpe *p, const char *where, struct word a,
		     struct word b, struct pen_err *err)
{
	char both[2 * PEN_WORD_LETTERS];
	struct pen_merge m;
	uint64_t at;

	if (!a.n || !b.n || a.n > PEN_WORD_LETTERS || b.n > PEN_WORD_LETTERS)
		return bad_merge(p, P_BAD_TEXT, where, "is not a pair of words",
				 err);
	memcpy(both, a.s, a.n);
	memcpy(both + a.n, b.s, b.n);
	m.left = pen__words_find(&p->words, a.s, a.n);
	m.right = pen__words_find(&p->words, b.s, b.n);
	m.made = pen__words_find(&p->words, both, a.n + b.n);
	if (m.left == UINT32_MAX || m.right == UINT32_MAX ||
	    m.made == UINT32_MAX)
		return bad_merge(
			p, P_FILES_DISAGREE, where,
			"uses or makes a word that is not in the vocabulary; "
			"use the vocabulary and merges of one model",
			err);
	if (pen__bpe_find(p, m.left, m.right) != PEN_BPE_NONE)
		return bad_merge(p, P_BAD_TEXT, where, "is listed twice", err);
	p->merge[p->nmerges] = m;
	at = ((uint64_t)m.left << 32 | m.right) * 0x9e3779b97f4a7c15u;
	for (at >>= 20; p->slot[at & p->mask];)
		at++;
	p->slot[at & p->mask] = ++p->nmerges;
	return 0;
}

static int reserve(struct pen_bpe *p, const char *where, uint64_t n,
		   struct pen_err *err)
{
	uint64_t slots = 16;

	if (n >= UINT32_MAX / 8)
		return pen__fail(err, P_OVER_LIMIT, where, "too many merges");
	while (slots < 2 * n)
		slots *= 2;
	p->merge = pen__alloc((size_t)n + 1, sizeof(*p->merge));
	p->slot = pen__calloc((size_t)slots, sizeof(*p->slot));
	p->mask = (uint32_t)(slots - 1);
	return p->merge && p->slot
		       ? 0
		       : pen__fail_nomem(err, where, (size_t)slots * 16);
}

/* Splits a line into two words; false: an empty line or a version line. */
static bool split_line(const char *s, const char *end, const char **b,
		       size_t *na, size_t *nb)
{
	if (end > s && end[-1] == '\r')
		end--;
	if (s == end || (end - s > 8 && memcmp(s, "#version", 8) == 0))
		return false;
	*b = memchr(s, ' ', (size_t)(end - s));
	*na = *b ? (size_t)(*b - s) : (size_t)(end - s);
	*b = *b ? *b + 1 : end;
	*nb = (size_t)(end - *b);
	return true;
}

/* Calls one() for every line of merges. */
static int each_line(struct pen_bpe *p, const char *where, const char *s,
		     const char *end,
		     int (*one)(struct pen_bpe *, const char *, const char *,
				size_t, const char *, struct pen_err *),
		     struct pen_err *err)
{
	int rc = 0;

	while (!rc && s < end) {
		const char *stop = memchr(s, '\n', (size_t)(end - s)), *b;
		size_t na, nb;

		if (split_line(s, stop ? stop : end, &b, &na, &nb))
			rc = one(p, where, s, na, b, err);
		s = stop ? stop + 1 : end;
	}
	return rc;
}

static size_t word_end(const char *b)
{
	return strcspn(b, "\r\n");
}

static int merge_line(struct pen_bpe *p, const char *where, const char *a,
		      size_t na, const char *b, struct pen_err *err)
{
	return add_merge(p, where, (struct word){ a, na },
			 (struct word){ b, word_end(b) }, err);
}

static int merges_text(struct pen_bpe *p, const char *where, const char *s,
		       size_t n, struct pen_err *err)
{
	uint64_t lines = 1;
	int rc;

	for (size_t i = 0; i < n; i++)
		lines += s[i] == '\n';
	rc = reserve(p, where, lines, err);
	return rc ? rc : each_line(p, where, s, s + n, merge_line, err);
}

/* "a b", or ["a", "b"] in newer files */
static int merge_node(struct pen_bpe *p, const struct pen_jdoc *d, uint32_t x,
		      const char *where, struct pen_err *err)
{
	const char *a = pen__jdoc_text(d, x), *b = NULL;
	uint32_t second;

	if (a) {
		b = strchr(a, ' ');
		return b ? add_merge(p, where,
				     (struct word){ a, (size_t)(b - a) },
				     (struct word){ b + 1, strlen(b + 1) }, err)
			 : add_merge(p, where, (struct word){ a, 0 },
				     (struct word){ a, 0 }, err);
	}
	x = pen__jdoc_first(d, x);
	second = pen__jdoc_next(d, x);
	a = pen__jdoc_text(d, x);
	b = pen__jdoc_text(d, second);
	return add_merge(p, where,
			 (struct word){ a ? a : "", a ? strlen(a) : 0 },
			 (struct word){ b ? b : "", b ? strlen(b) : 0 }, err);
}

/* Refuses settings of a tokenizer.json that would yield other tokens. */
static int check_model(const struct pen_jdoc *d, uint32_t model,
		       const char *where, struct pen_err *err)
{
	static const char *const odd[] = { "continuing_subword_prefix",
					   "end_of_word_suffix", "dropout",
					   "byte_fallback", "fuse_unk" };
	const uint32_t type = pen__jdoc_get(d, model, "type");

	if (type != PEN_JDOC_NONE && !pen__jdoc_is(d, type, "BPE"))
		return pen__fail(err, P_UNSUPPORTED_FEATURE, where,
				 "not a byte-pair encoding (BPE) model; try "
				 "format.tokens=vocab");
	for (size_t i = 0; i < sizeof(odd) / sizeof(odd[0]); i++) {
		const uint32_t x = pen__jdoc_get(d, model, odd[i]);
		const enum pen_jdoc_type t = pen__jdoc_type(d, x);
		const char *text = pen__jdoc_text(d, x);

		if (x != PEN_JDOC_NONE && t != PEN_JDOC_NULL &&
		    t != PEN_JDOC_FALSE && !(text && !*text))
			return pen__fail(
				err, P_UNSUPPORTED_FEATURE, where,
				"the model setting '%s' is not supported",
				odd[i]);
	}
	return 0;
}

static int merges_json(struct pen_bpe *p, const char *where, const char *s,
		       size_t n, struct pen_err *err)
{
	struct pen_jdoc d = { 0 };
	uint32_t model, list;
	int rc = pen__jdoc_open(&d, s, n, where, err);

	if (rc)
		return rc;
	model = pen__jdoc_get(&d, 0, "model");
	list = pen__jdoc_get(&d, model, "merges");
	rc = check_model(&d, model, where, err);
	if (!rc && pen__jdoc_type(&d, list) != PEN_JDOC_LIST)
		rc = pen__fail(err, P_NOT_THIS_FORMAT, where,
			       "the list model.merges is missing");
	if (!rc && !p->words.n)
		rc = pen__words_parse(&p->words, &d,
				      pen__jdoc_get(&d, model, "vocab"), where,
				      err);
	if (!rc)
		rc = reserve(p, where, pen__jdoc_count(&d, list), err);
	for (uint32_t x = pen__jdoc_first(&d, list); !rc && x != PEN_JDOC_NONE;
	     x = pen__jdoc_next(&d, x))
		rc = merge_node(p, &d, x, where, err);
	pen__jdoc_close(&d);
	return rc;
}

/* Without a vocabulary: collects the letters that the merges use. */
static int name_letters(struct pen_bpe *p, const char *where, const char *a,
			size_t na, const char *b, struct pen_err *err)
{
	bool *seen = (bool *)p->letter; /* not yet in use */

	(void)where, (void)err;
	for (size_t i = 0; i < na; i++)
		seen[(uint8_t)a[i]] = true;
	for (size_t i = 0; i < word_end(b); i++)
		seen[(uint8_t)b[i]] = true;
	return 0;
}

static int words_of_merges(struct pen_bpe *p, const char *where, const char *s,
			   size_t n, struct pen_err *err)
{
	const char *const end = s + n;
	bool *seen = (bool *)p->letter;
	struct pen_text text = { 0 };
	int rc = each_line(p, where, s, end, name_letters, err);

	for (unsigned c = 33; c < 256; c++) {
		const char word[2] = { (char)c, '\n' };

		if (seen[c])
			pen__text_put(&text, word, 2);
	}
	while (s < end) {
		const char *stop = memchr(s, '\n', (size_t)(end - s)), *b;
		size_t na, nb;

		if (split_line(s, stop ? stop : end, &b, &na, &nb)) {
			pen__text_put(&text, s, na);
			pen__text_put(&text, b, nb);
			pen__text_put(&text, "\n", 1);
		}
		s = stop ? stop + 1 : end;
	}
	if (!rc && text.failed)
		rc = pen__fail_nomem(err, where, text.n);
	if (!rc)
		rc = pen__words_lines(&p->words, text.p ? text.p : "", text.n,
				      where, err);
	pen__text_fini(&text);
	memset(p->letter, 0, sizeof(p->letter));
	return rc;
}

/* True if each word is made before it is used, as in trained files. */
static bool is_ordered(const struct pen_bpe *p, struct pen_err *err, int *rc)
{
	uint32_t *last = pen__calloc(p->words.n, sizeof(*last));
	bool ok = true;

	if (!last) {
		*rc = pen__fail_nomem(err, p->words.where, p->words.n * 4);
		return false;
	}
	for (uint32_t i = 0; i < p->nmerges; i++)
		last[p->merge[i].made] = i + 1;
	for (uint32_t i = 0; i < p->nmerges; i++)
		ok = ok && last[p->merge[i].left] <= i &&
		     last[p->merge[i].right] <= i;
	pen__free(last);
	return ok;
}

int pen__bpe_load(struct pen_bpe *p, const char *vocab, const char *merges,
		  struct pen_err *err)
{
	char *s = NULL;
	size_t n = 0;
	bool json;
	int rc = vocab ? pen__words_load(&p->words, vocab, 0, err) : 0;

	if (!rc)
		rc = pen__words_slurp(merges, FILE_LIMIT, &s, &n, err);
	if (rc)
		return rc;
	json = s[strspn(s, " \t\r\n")] == '{';
	if (!json && memchr(s, '\0', n))
		rc = pen__fail(err, P_BAD_TEXT, merges,
			       "NUL byte: this is not a text file");
	if (!rc && !json && !p->words.n)
		rc = words_of_merges(p, merges, s, n, err);
	if (!rc)
		rc = json ? merges_json(p, merges, s, n, err)
			  : merges_text(p, merges, s, n, err);
	pen__free(s);
	if (!rc)
		p->ordered = is_ordered(p, err, &rc);
	for (unsigned c = 0; c < 256 && !rc; c++) {
		const char letter = (char)c;

		p->letter[c] = pen__words_find(&p->words, &letter, 1);
	}
	return rc;
}
