/*
 * Counting words of k letters, and writing the vocabulary. Each thread has its
 * own struct pen_counts; they are added up at the end.
 */
#ifndef PEN_TOKEN_COUNT_H
#define PEN_TOKEN_COUNT_H

#include "base/opt.h"
#include "base/text.h"
#include "token/letters.h"

struct pen_count_opts {
	int64_t k, stride;
	char *alphabet, *specials;
	int letters; /* lowercase: 0: convert to uppercase, 1: keep */
	bool rna;
	uint64_t min_count;
	bool pads; /* X before and Y after a sequence, for tokens=dm */
};
extern const struct pen_opt pen__count_opts[];

struct pen_counts {
	struct pen_letters letters;
	struct pen_word_code code;
	uint32_t stride;
	uint64_t nletters, nwords, nunknown; /* seen so far */
	/* Indexed by the code of a word if that is small enough; otherwise a
	 * hash table with code + 1 as key. */
	uint64_t *count;
	uint32_t *key;
	uint64_t slots, used;
	/* Pairs of overlapping words, counted together if all possible pairs
	 * fit the L1 cache; moved to count by pen__counts_settle(). */
	uint32_t *pair;
	uint64_t npairs; /* pairs counted so far */
	bool failed;	 /* out of memory: the counts are incomplete */
};

int pen__counts_init(struct pen_counts *, const struct pen_count_opts *,
		     struct pen_err *);
void pen__counts_fini(struct pen_counts *);
void pen__counts_add(struct pen_counts *, const uint8_t *letters, size_t n);
void pen__counts_join(struct pen_counts *to, struct pen_counts *from);
void pen__counts_settle(struct pen_counts *); /* completes count */

/* Checks that the names are valid and unique. */
int pen__counts_specials(const struct pen_count_opts *, struct pen_err *);

struct pen_vocab_facts {
	uint64_t nwords;  /* lines, including special tokens and pads */
	uint64_t nseen;	  /* words seen often enough */
	uint64_t nrare;	  /* words seen too rarely */
	uint64_t nothers; /* positions with unknown letters */
};
/*
 * Writes the file that words.h reads: a line that records the settings, special
 * tokens, the words seen in alphabetical order, and, with pads, XXXX, YYYY and
 * all words that can contain X before or Y after a sequence, with count 0.
 */
int pen__counts_text(struct pen_counts *, const struct pen_count_opts *,
		     struct pen_text *, struct pen_vocab_facts *,
		     struct pen_err *);

#endif
