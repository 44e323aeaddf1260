/*
 * A vocabulary: words, the numbers that stand for them, and how often each was
 * seen, as a file has them. Files are read whole, and believed in nothing:
 * lengths, numbers and duplicates are checked before use.
 *
 * A file is lines of "word" or "word<TAB>count", numbered from 0 as they come,
 * where lines that begin with "# " say more and are no words; or JSON: an
 * object of words and their numbers, or a tokenizer.json.
 */
#ifndef PEN_TOKEN_WORDS_H
#define PEN_TOKEN_WORDS_H

#include "base/json.h"
#include "base/text.h"
#include "token/letters.h"

struct pen_words {
	char *text;	 /* all words, each with a NUL behind it */
	uint32_t *start; /* by number: n + 1 of them; equal: no such word */
	uint64_t *count; /* how often it was seen; 0: never, or unknown */
	uint32_t n, longest;
	/* by the hash of a word: its number + 1, or 0 */
	uint32_t *slot;
	uint32_t mask;
	uint32_t k; /* as the file's first line says; 0: it says nothing */
	bool again; /* while reading: a word may come again */
	char *where;
};

#define PEN_WORD_LETTERS 1024u /* the most of a word */

int pen__words_load(struct pen_words *, const char *path, struct pen_err *);
/* The same from a node that is an object of words and numbers. */
int pen__words_parse(struct pen_words *, const struct pen_jdoc *, uint32_t node,
		     const char *where, struct pen_err *);
/* And from lines in memory, where a word that comes again is left out. */
int pen__words_lines(struct pen_words *, const char *, size_t n,
		     const char *where, struct pen_err *);
void pen__words_fini(struct pen_words *);
static inline uint32_t pen__words_length(const struct pen_words *w, uint32_t id)
{
	return w->start[id + 1] - w->start[id]
		       ? w->start[id + 1] - w->start[id] - 1
		       : 0;
}
static inline const char *pen__words_at(const struct pen_words *w, uint32_t id)
{
	return w->text + w->start[id];
}
/* The number of a word, or UINT32_MAX. */
uint32_t pen__words_find(const struct pen_words *, const char *, size_t n);

/* A file as a whole, at most limit bytes; *bytes is pen__free()'s. */
int pen__words_slurp(const char *path, uint64_t limit, char **bytes, size_t *n,
		     struct pen_err *);

/* From the code of a word (pen__word_codes) to its number: a plain table where
 * that is small, else by hash. UINT32_MAX: not there. */
struct pen_word_table {
	struct pen_word_code code;
	uint32_t *id;	/* direct: power[k] of them */
	uint64_t *pair; /* hash: code + 1 << 32 | id; 0 is empty */
	uint32_t mask;
};
int pen__word_table_init(struct pen_word_table *, unsigned k, unsigned nletters,
			 uint32_t nwords, struct pen_err *);
void pen__word_table_put(struct pen_word_table *, uint32_t code, uint32_t id);
void pen__word_table_fini(struct pen_word_table *);

static inline uint32_t pen__word_table_get(const struct pen_word_table *t,
					   uint32_t code)
{
	uint32_t at;

	if (code == PEN_WORD_NONE)
		return UINT32_MAX;
	if (t->id)
		return t->id[code];
	for (at = code * 0x9e3779b1u;; at++) {
		const uint64_t p = t->pair[at & t->mask];

		if (!p)
			return UINT32_MAX;
		if (p >> 32 == (uint64_t)code + 1)
			return (uint32_t)p;
	}
}

#endif
