/*
 * Letters to small numbers, 32 at a time where the CPU can, and numbers of
 * letters to numbers of words: the inner loops of the tokenisers.
 */
#ifndef PEN_TOKEN_LETTERS_H
#define PEN_TOKEN_LETTERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A table of 256 bytes, cut into the rows of 16 that differ from the rest. */
struct pen_letters {
	uint8_t table[256];
	uint8_t row[16][16]; /* xor rest */
	uint8_t high[16];    /* the upper half of the bytes of a row */
	uint8_t nrows;
	uint8_t rest;
	bool folds; /* small letters are as capitals: only these have rows */
	bool same;  /* every byte becomes itself */
};

void pen__letters_init(struct pen_letters *, const uint8_t table[256]);
/* in and out do not overlap. */
void pen__letters_map(const struct pen_letters *, const uint8_t *in, size_t n,
		      uint8_t *out);
/* out[i] = in[i], of another type */
void pen__letters_widen(const uint8_t *in, size_t n, unsigned bytes, void *out);

/* Words of k letters: what is needed to number them in base nletters. */
#define PEN_WORD_NONE UINT32_MAX /* has a letter that is none */
#define PEN_WORD_BLOCK 1024u
struct pen_word_code {
	uint32_t k, nletters;
	uint32_t power[13]; /* of nletters, up to the k-th: how many words */
};
/* false: there would be more words than 32 bits can number. */
bool pen__word_code_init(struct pen_word_code *, unsigned k, unsigned nletters);
/* The word of code[i .. i + k) for each i < n. Codes are below nletters, or
 * have the uppermost bit. code has n + k - 1 bytes. */
void pen__word_codes(const struct pen_word_code *, const uint8_t *code,
		     size_t n, uint32_t *out);
/*
 * The word of code[2 * i .. 2 * i + k) for each i < n: every second one.
 * nletters^k is at most 65536, and no code has the uppermost bit; code has
 * 2 * n + k - 1 bytes, and 32 more that may be read.
 */
void pen__word_seconds(const uint8_t *code, size_t n, unsigned k,
		       unsigned nletters, uint16_t *out);
bool pen__letters_unknown(const uint8_t *code, size_t n); /* any of them */
/* In place: a word's number is base + its code, or unk. */
void pen__word_number(uint32_t *v, size_t n, uint32_t base, uint32_t unk);
/* Their letters, from the last to the first. */
void pen__word_spell(const struct pen_word_code *, uint32_t word,
		     const char *alphabet, char *out); /* k bytes + NUL */

#endif
