/*
 * Counting words of k letters, and the vocabulary that comes of it. One
 * struct pen_counts a thread; they are added up in the end.
 */
#ifndef PEN_TOKEN_COUNT_H
#define PEN_TOKEN_COUNT_H

#include "base/opt.h"
#include "base/text.h"
#include "token/letters.h"

struct pen_count_opts {
	int64_t k, stride;
	char *alphabet, *specials;
	int letters; /* 0: small letters as capitals, 1: as they are */
	bool rna;
	uint64_t min_count;
	bool pads; /* X and Y before and after: for tokens=dm */
};
extern const struct pen_opt pen__count_opts[];

struct pen_counts {
	struct pen_letters letters;
	struct pen_word_code code;
	uint32_t stride;
	uint64_t nletters, nwords, nunknown; /* seen so far */
	/* By the code of a word: plain where that is small, else by hash, with
	 * the code + 1 in key. */
	uint64_t *count;
	uint32_t *key;
	uint64_t slots, used;
	/* Two words at a time, which overlap but for a letter, where all there
	 * can be of them fit the CPU's nearest cache; until settled. */
	uint32_t *pair;
	uint64_t npairs; /* counted there */
	bool failed;	 /* out of memory: what is here is not all */
};

int pen__counts_init(struct pen_counts *, const struct pen_count_opts *,
		     struct pen_err *);
void pen__counts_fini(struct pen_counts *);
void pen__counts_add(struct pen_counts *, const uint8_t *letters, size_t n);
void pen__counts_join(struct pen_counts *to, struct pen_counts *from);
void pen__counts_settle(struct pen_counts *); /* count is all of it */

struct pen_vocab_facts {
	uint64_t nwords;  /* lines: with specials and pads */
	uint64_t nseen;	  /* words that were seen often enough */
	uint64_t nrare;	  /* words that were not */
	uint64_t nothers; /* places with letters of no alphabet */
};
/*
 * The file as words.h reads it: a line that says how it was made, specials,
 * the words that were seen by their letters, and, with pads, XXXX, YYYY and
 * all words that X before or Y after a sequence are part of, with count 0.
 */
int pen__counts_text(struct pen_counts *, const struct pen_count_opts *,
		     struct pen_text *, struct pen_vocab_facts *,
		     struct pen_err *);

#endif
