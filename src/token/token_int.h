/*
 * What tokenisers share. Most make one list of numbers from one sequence:
 * these say how many and write them, and token.c does all else (specials,
 * cutting, padding). One that has fields of its own does it all by itself.
 */
#ifndef PEN_TOKEN_TOKEN_INT_H
#define PEN_TOKEN_TOKEN_INT_H

#include <string.h>

#include "base/mem.h"
#include "token/token.h"

#define PEN_TOKEN_SPECIALS 32 /* the most there are of them */
#define PEN_TOKEN_ENDS 8      /* the most before or after a sequence */
#define PEN_TOKEN_ALPHABET 64
/* Of one sequence: what fits one line of a file of any genome, and can be
 * multiplied by all that a letter may become. */
#define PEN_TOKEN_LETTERS (UINT64_C(1) << 40)

/* What a byte is, beside a letter's number in the alphabet. */
#define PEN_LETTER_UNKNOWN 0xffu
#define PEN_LETTER_PAD 0xfeu

struct pen_token_ops {
	/* Takes what it needs of the options, sets width, nwords and, unless
	 * dtype= was given, dtype. */
	int (*open)(struct pen_tokens *, const struct pen_token_opts *,
		    struct pen_err *);
	void (*close)(struct pen_tokens *); /* copes with half-built; or NULL */
	/* Tokens of n letters, specials aside: the most when list() is set. */
	uint64_t (*count)(const struct pen_tokens *, uint64_t n);
	/* Tokens [first, first + n) in the field's dtype. */
	void (*write)(const struct pen_tokens *, const struct pen_sequence *,
		      uint64_t first, uint64_t n, void *out, void *room);
	/* Instead of write(), where only making them tells how many: all of
	 * them to out (count() fit), then how many there are, or an error. */
	int64_t (*list)(const struct pen_tokens *, const struct pen_sequence *,
			uint32_t *out, void *room, struct pen_err *);
	/* A word that is no special. */
	int (*word)(const struct pen_tokens *, uint64_t id, char *buf,
		    size_t cap);
	size_t (*scratch)(const struct pen_tokens *, uint64_t longest);
	/* Fields of its own: all of these, and none of the above. */
	uint32_t nfields;
	const char *const *names;
	/* ndim and shape */
	void (*shape)(const struct pen_tokens *, uint32_t i, uint64_t n,
		      struct pen_field *);
	int (*emit)(const struct pen_tokens *, const struct pen_sequence *,
		    const struct pen_token_row *, struct pen_err *);
	bool takes_specials, takes_length;
	bool takes_file, takes_merges; /* vocab=, merges= */
	bool has_letters;	       /* alphabet= and all about it */
	bool whole_file;	       /* specials are what the file says */
	const char *own;   /* options that only some have, with commas */
	const char *field; /* name of the only field */
	const char *alphabet, *specials; /* unless set otherwise */
};

struct pen_tokens {
	const struct pen_token_ops *ops;
	const char *name;
	enum pen_dtype dtype;
	uint32_t width; /* numbers a token is: 1, but for onehot */
	size_t item;	/* bytes of a token */
	uint64_t length, max;
	bool pad_left, cut_left, strict, any_case;
	bool as_n; /* ambiguous letters are N */
	bool dtype_given;
	char special[PEN_TOKEN_SPECIALS][16];
	uint32_t special_id[PEN_TOKEN_SPECIALS];
	uint32_t nspecials;
	uint32_t begin[PEN_TOKEN_ENDS], end[PEN_TOKEN_ENDS];
	uint32_t nbegin, nend;
	uint32_t pad, unk;
	char alphabet[PEN_TOKEN_ALPHABET + 1];
	uint32_t nletters;
	uint8_t code[256]; /* number in the alphabet, or PEN_LETTER_X */
	uint64_t nwords;   /* numbers that tokens can be; 0: not limited */
	void *priv;	   /* the tokeniser's */
};

const struct pen_token_ops *pen__token_at(unsigned i);
/* The smallest type for so many numbers, unless dtype= says. */
enum pen_dtype pen__tokens_dtype(const struct pen_tokens *, uint64_t nwords);
/* Fills t->code from t->alphabet and what the settings say of letters. */
void pen__tokens_codes(struct pen_tokens *, const struct pen_token_opts *);
/* n numbers in the type of the field. */
void pen__tokens_put(const struct pen_tokens *, const uint32_t *ids, uint64_t n,
		     void *out);
/* A special's place in t->special, by its name, or -1. */
int pen__tokens_special(const struct pen_tokens *, const char *name, size_t n);

#endif
