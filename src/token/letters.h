/*
 * The inner loops of the tokenisers: letters to small numbers, 32 at a time if
 * the CPU can, and letter numbers to words.
 */
#ifndef PEN_TOKEN_LETTERS_H
#define PEN_TOKEN_LETTERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Every loop with AVX2 has a twin without. */
static inline bool pen__has_avx2(void)
{
#ifdef __x86_64__
	return __builtin_cpu_supports("avx2");
#else
	return false;
#endif
}

/* A table of 256 bytes, split into rows of 16; only those that differ from the
 * rest are stored. */
struct pen_letters {
	uint8_t table[256];
	uint8_t row[16][16]; /* xor rest */
	uint8_t high[16];    /* the high half of the row's bytes */
	uint8_t nrows;
	uint8_t rest;
	bool folds; /* case-insensitive: only uppercase letters have rows */
	bool same;  /* identity */
};

void pen__letters_init(struct pen_letters *, const uint8_t table[256]);
/* in and out do not overlap. */
void pen__letters_map(const struct pen_letters *, const uint8_t *in, size_t n,
		      uint8_t *out);
/* out[i] = in[i], in a wider type */
void pen__letters_widen(const uint8_t *in, size_t n, unsigned bytes, void *out);

/* Numbers words of k letters in base nletters. */
#define PEN_WORD_NONE UINT32_MAX /* contains an unknown letter */
#define PEN_WORD_BLOCK 1024u
struct pen_word_code {
	uint32_t k, nletters;
	uint32_t power[13]; /* of nletters; power[k]: number of words */
};
/* False: more words than 32 bits can number. */
bool pen__word_code_init(struct pen_word_code *, unsigned k, unsigned nletters);
/* Writes the code of code[i .. i + k) for each i < n. Input codes are below
 * nletters, or have the top bit set if unknown. code has n + k - 1 bytes. */
void pen__word_codes(const struct pen_word_code *, const uint8_t *code,
		     size_t n, uint32_t *out);
/*
 * Writes the code of code[2 * i .. 2 * i + k) for each i < n: every second
 * word. nletters^k is at most 65536, and no input has the top bit set; code has
 * 2 * n + k - 1 bytes, and 32 more must be readable.
 */
void pen__word_seconds(const uint8_t *code, size_t n, unsigned k,
		       unsigned nletters, uint16_t *out);
bool pen__letters_unknown(const uint8_t *code, size_t n); /* any unknown */
/* In place: a code becomes base + code, or unk. */
void pen__word_number(uint32_t *v, size_t n, uint32_t base, uint32_t unk);
/* Writes the letters of a word. */
void pen__word_spell(const struct pen_word_code *, uint32_t word,
		     const char *alphabet, char *out); /* k bytes + NUL */

#endif
