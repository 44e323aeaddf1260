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
#include "base/mem.h"
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
	uint32_t unchecked;
	char *where;
};

#define PEN_WORD_LETTERS 1024u /* the most of a word */

/*
 * unchecked: words of so many letters, or of those that the file's first line
 * says, are not to be found by pen__words_find(), and whoever puts them into a
 * table of his own finds out which come twice; PEN_WORDS_ALL: all words that
 * do not look like specials. 0: none.
 */
#define PEN_WORDS_ALL UINT32_MAX
int pen__words_load(struct pen_words *, const char *path, uint32_t unchecked,
		    struct pen_err *);
/* Words a and b are the same. */
int pen__words_twice(const struct pen_words *, uint32_t a, uint32_t b,
		     struct pen_err *);
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

/*
 * From the code of a word (pen__word_codes) to its number; UINT32_MAX: it has
 * none. A plain table where that is small. Where numbers go up with codes, as
 * in files that `penstock vocab` writes, a bit a code, and for each 32 of them
 * how many are before: of 13 million words of 12 letters that is 4 MiB, which
 * stay in the caches, and not 64. Else by hash.
 */
enum pen_table_kind { PEN_TABLE_DIRECT, PEN_TABLE_RANKS, PEN_TABLE_HASH };
struct pen_word_table {
	struct pen_word_code code;
	enum pen_table_kind kind;
	struct pen_block mem; /* of one of these: */
	uint32_t *id;	      /* power[k] of them */
	uint64_t *rank;	      /* 32 bits, and how many are set before them */
	uint64_t *pair;	      /* code + 1 << 32 | id; 0 is empty */
	uint32_t first;	      /* ranks: the number of the first word */
	uint32_t mask, shift;
};
/* ordered: numbers go up with codes, one after another. */
int pen__word_table_init(struct pen_word_table *, unsigned k, unsigned nletters,
			 uint32_t nwords, bool ordered, struct pen_err *);
/* The number it had before, or UINT32_MAX. */
uint32_t pen__word_table_put(struct pen_word_table *, uint32_t code,
			     uint32_t id);
/* After the last put, where words are in order. */
void pen__word_table_rank(struct pen_word_table *, uint32_t first);
void pen__word_table_fini(struct pen_word_table *);
/* In place: codes become numbers, or unk. */
void pen__word_table_ids(const struct pen_word_table *, uint32_t *v, size_t n,
			 uint32_t unk);

static inline uint32_t pen__word_slot(const struct pen_word_table *t,
				      uint32_t code)
{
	return (uint32_t)(code * UINT64_C(0x9e3779b97f4a7c15) >> t->shift);
}

static inline uint32_t pen__word_table_get(const struct pen_word_table *t,
					   uint32_t code)
{
	uint32_t at;

	if (code == PEN_WORD_NONE)
		return UINT32_MAX;
	if (t->id)
		return t->id[code];
	if (t->rank) {
		const uint64_t r = t->rank[code / 32];
		const uint32_t bit = UINT32_C(1) << code % 32;

		return (uint32_t)r & bit
			       ? t->first + (uint32_t)(r >> 32) +
					 (uint32_t)__builtin_popcount(
						 (uint32_t)r & (bit - 1))
			       : UINT32_MAX;
	}
	for (at = pen__word_slot(t, code);; at++) {
		const uint64_t p = t->pair[at & t->mask];

		if (!p)
			return UINT32_MAX;
		if (p >> 32 == (uint64_t)code + 1)
			return (uint32_t)p;
	}
}

#endif
