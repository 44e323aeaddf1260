/*
 * A vocabulary: words, their ids, and their counts, read from a file. Files are
 * not trusted: lengths, ids and duplicates are checked before use.
 *
 * A file has lines of "word" or "word<TAB>count", with ids from 0 in order;
 * lines that start with "# " are comments. Or it is JSON: an object that maps
 * words to ids, or a tokenizer.json.
 */
#ifndef PEN_TOKEN_WORDS_H
#define PEN_TOKEN_WORDS_H

#include "base/json.h"
#include "base/mem.h"
#include "base/text.h"
#include "token/letters.h"

struct pen_words {
	char *text;	 /* all words, each followed by a NUL */
	uint32_t *start; /* by id: n + 1 offsets; equal: no such word */
	uint64_t *count; /* how often it was seen; 0: never or unknown */
	uint32_t n, longest;
	/* by hash of a word: its id + 1, or 0 */
	uint32_t *slot;
	uint32_t mask;
	uint32_t k; /* from the first line of the file; 0: not given */
	bool again; /* while reading: ignore duplicates */
	uint32_t unchecked;
	char *where;
};

#define PEN_WORD_LETTERS 1024u /* longest word */

/*
 * unchecked: words of this many letters, or as many as the first line of the
 * file states, are not entered for pen__words_find(); the caller enters them in
 * a table and detects duplicates. PEN_WORDS_ALL: all words that do not look
 * like special tokens. 0: none.
 */
#define PEN_WORDS_ALL UINT32_MAX
int pen__words_load(struct pen_words *, const char *path, uint32_t unchecked,
		    struct pen_err *);
/* Reports that words a and b are the same. */
int pen__words_twice(const struct pen_words *, uint32_t a, uint32_t b,
		     struct pen_err *);
/* The same from a JSON node that maps words to ids. */
int pen__words_parse(struct pen_words *, const struct pen_jdoc *, uint32_t node,
		     const char *where, struct pen_err *);
/* The same from lines in memory; duplicates are ignored. */
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
/* The id of a word, or UINT32_MAX. */
uint32_t pen__words_find(const struct pen_words *, const char *, size_t n);

/* Reads a file of at most `limit` bytes; free *bytes with pen__free(). */
int pen__words_slurp(const char *path, uint64_t limit, char **bytes, size_t *n,
		     struct pen_err *);

/*
 * Maps the code of a word (pen__word_codes) to its id; UINT32_MAX: none. A
 * direct table if that is small. If ids increase with codes, as in files from
 * `penstock vocab`, a bitmap with a running count for every 32 codes: 4 MiB
 * instead of 64 for 13 million words of 12 letters, which fits the caches.
 * Otherwise a hash table.
 */
enum pen_table_kind { PEN_TABLE_DIRECT, PEN_TABLE_RANKS, PEN_TABLE_HASH };
struct pen_word_table {
	struct pen_word_code code;
	enum pen_table_kind kind;
	struct pen_block mem; /* holds one of these: */
	uint32_t *id;	      /* power[k] ids */
	uint64_t *rank; /* 32 bits, and the number of bits set before them */
	uint64_t *pair; /* code + 1 << 32 | id; 0: empty */
	uint32_t first; /* ranks: id of the first word */
	uint32_t mask, shift;
};
/* ordered: ids increase with codes, without gaps. */
int pen__word_table_init(struct pen_word_table *, unsigned k, unsigned nletters,
			 uint32_t nwords, bool ordered, struct pen_err *);
/* Returns the previous id, or UINT32_MAX. */
uint32_t pen__word_table_put(struct pen_word_table *, uint32_t code,
			     uint32_t id);
/* Call after the last put, if words are in order. */
void pen__word_table_rank(struct pen_word_table *, uint32_t first);
void pen__word_table_fini(struct pen_word_table *);
/* In place: codes become ids, or unk. */
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
