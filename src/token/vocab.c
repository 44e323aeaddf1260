/*
 * Words of any length from a file: the longest match at every position. The
 * words form a trie, so a match takes as many steps as the word has letters.
 * Where no word matches, one letter becomes the special token unk of the file;
 * without one, it is an error.
 */
#include <stdio.h>

#include "token/kmers.h"

#define NODES (UINT32_C(1) << 27)

struct vocab {
	struct pen_words words;
	struct pen_letters letters;
	uint32_t nletters;
	/* nodes of nletters + 1: children, and the word that ends there + 1 */
	uint32_t *node;
	uint32_t nnodes, cap;
	bool has_unk;
};

static void vocab_close(struct pen_tokens *t)
{
	struct vocab *p = t->priv;

	if (!p)
		return;
	pen__words_fini(&p->words);
	pen__free(p->node);
	pen__free(p);
}

/* Numbers the letters that words use, except in special tokens. */
static int number_letters(struct pen_tokens *t, struct vocab *p,
			  struct pen_err *err)
{
	bool seen[256] = { false };

	t->nletters = 0;
	memset(t->alphabet, 0, sizeof(t->alphabet));
	for (uint32_t i = 0; i < p->words.n; i++) {
		const char *s = pen__words_at(&p->words, i);
		const uint32_t n = pen__words_length(&p->words, i);

		for (uint32_t j = 0; j < n && !pen__tokens_is_special(t, i);
		     j++) {
			if (seen[(uint8_t)s[j]])
				continue;
			if (t->nletters == PEN_TOKEN_ALPHABET)
				return pen__fail(err, P_OVER_LIMIT,
						 p->words.where,
						 "the words use more than %u "
						 "different letters",
						 PEN_TOKEN_ALPHABET);
			seen[(uint8_t)s[j]] = true;
			t->alphabet[t->nletters++] = s[j];
		}
	}
	p->nletters = t->nletters;
	return 0;
}

static int new_node(struct vocab *p, uint32_t *out, struct pen_err *err)
{
	const size_t size = (p->nletters + 1) * sizeof(*p->node);

	if (p->nnodes == p->cap) {
		const uint32_t most = NODES / (p->nletters + 1);
		const uint32_t twice = p->cap ? 2 * p->cap : 1024;
		const uint32_t cap = twice < most ? twice : most;
		uint32_t *more;

		if (p->nnodes == most)
			return pen__fail(
				err, P_OVER_LIMIT, p->words.where,
				"too many words for format.tokens=vocab; if "
				"all have one length, use format.tokens=kmers");
		more = pen__realloc(p->node, cap, size);
		if (!more)
			return pen__fail_nomem(err, p->words.where, cap * size);
		p->node = more;
		p->cap = cap;
	}
	memset(p->node + (size_t)p->nnodes * (p->nletters + 1), 0, size);
	*out = p->nnodes++;
	return 0;
}

static int add_word(struct vocab *p, const uint8_t *code, uint32_t id,
		    struct pen_err *err)
{
	const char *s = pen__words_at(&p->words, id);
	const uint32_t n = pen__words_length(&p->words, id);
	uint32_t at = 0, next, *word;

	for (uint32_t i = 0; i < n; i++) {
		const size_t child =
			(size_t)at * (p->nletters + 1) + code[(uint8_t)s[i]];

		next = p->node[child];
		if (!next) {
			int rc = new_node(p, &next, err);

			if (rc)
				return rc;
			p->node[child] = next;
		}
		at = next;
	}
	word = &p->node[(size_t)at * (p->nletters + 1) + p->nletters];
	if (*word)
		return pen__words_twice(&p->words, *word - 1, id, err);
	*word = id + 1;
	return 0;
}

static int build(struct pen_tokens *t, struct vocab *p, struct pen_err *err)
{
	uint8_t code[256] = { 0 };
	uint32_t root;
	int rc = number_letters(t, p, err);

	if (rc || (rc = new_node(p, &root, err)))
		return rc;
	for (uint32_t i = 0; i < t->nletters; i++)
		code[(uint8_t)t->alphabet[i]] = (uint8_t)i;
	for (uint32_t i = 0; i < p->words.n && !rc; i++)
		if (pen__words_length(&p->words, i) &&
		    !pen__tokens_is_special(t, i))
			rc = add_word(p, code, i, err);
	return rc;
}

static int vocab_open(struct pen_tokens *t, const struct pen_token_opts *o,
		      struct pen_err *err)
{
	struct vocab *p = pen__calloc(1, sizeof(*p));
	int at, rc;

	if (!p)
		return pen__fail_nomem(err, "tokens", sizeof(*p));
	t->priv = p;
	if (!o->vocab)
		return pen__fail(err, P_MISSING_SETTING, "vocab",
				 "required by format.tokens=vocab; set it to a "
				 "file of words");
	rc = pen__words_load(&p->words, o->vocab, PEN_WORDS_ALL, err);
	if (!rc)
		rc = pen__tokens_file_specials(t, &p->words, err);
	if (!rc)
		rc = build(t, p, err);
	if (rc)
		return rc;
	pen__tokens_codes(t, o);
	pen__tokens_letters(t, &p->letters);
	at = pen__tokens_special(t, "unk", 3);
	p->has_unk = at >= 0;
	t->unk = at < 0 ? 0 : t->special_id[at];
	t->nwords = p->words.n;
	t->dtype = pen__tokens_dtype(t, t->nwords);
	return 0;
}

int pen__tokens_no_word(const struct pen_tokens *t,
			const struct pen_sequence *s, uint64_t at,
			const char *file, struct pen_err *err)
{
	const uint8_t c = s->letters[at];

	(void)t;
	return pen__fail(err, P_FILES_DISAGREE, file,
			 "no word for letter %llu of sample %llu, 0x%02x (%c), "
			 "and no <unk>; add one of them",
			 (unsigned long long)at + 1,
			 (unsigned long long)s->number, c,
			 c > 32 && c < 127 ? c : '?');
}

static int64_t vocab_list(const struct pen_tokens *t,
			  const struct pen_sequence *s, uint32_t *out,
			  void *room, struct pen_err *err)
{
	const struct vocab *p = t->priv;
	const uint32_t width = p->nletters + 1;
	uint8_t *code = room;
	uint64_t at = 0, made = 0;

	pen__letters_map(&p->letters, s->letters, s->n, code);
	while (at < s->n) {
		const uint32_t *node = p->node;
		uint64_t end = at;
		uint32_t id = 0;

		for (uint64_t i = at; i < s->n && code[i] < 0x80; i++) {
			const uint32_t next = node[code[i]];

			if (!next)
				break;
			node = p->node + (size_t)next * width;
			if (node[p->nletters]) {
				id = node[p->nletters];
				end = i + 1;
			}
		}
		if (end == at && !p->has_unk)
			return pen__tokens_no_word(t, s, at, p->words.where,
						   err);
		out[made++] = end == at ? t->unk : id - 1;
		at = end == at ? at + 1 : end;
	}
	return (int64_t)made;
}

static size_t vocab_scratch(const struct pen_tokens *t, uint64_t n)
{
	(void)t;
	return (size_t)n;
}

static int vocab_word(const struct pen_tokens *t, uint64_t id, char *buf,
		      size_t cap)
{
	const struct vocab *p = t->priv;

	snprintf(buf, cap, "%s", pen__words_at(&p->words, (uint32_t)id));
	return 0;
}

const struct pen_token_ops pen__token_vocab = {
	.takes_file = true,
	.field = "tokens",
	.takes_specials = true,
	.takes_length = true,
	.whole_file = true,
	.open = vocab_open,
	.close = vocab_close,
	.count = pen__tokens_each,
	.list = vocab_list,
	.scratch = vocab_scratch,
	.word = vocab_word,
};
