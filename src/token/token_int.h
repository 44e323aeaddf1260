/*
 * Shared by the tokenisers. Most make one list of ids from a sequence: they
 * count and write the ids, and token.c does the rest (special tokens,
 * truncation, padding). A tokeniser with fields of its own does everything
 * itself.
 */
#ifndef PEN_TOKEN_TOKEN_INT_H
#define PEN_TOKEN_TOKEN_INT_H

#include <string.h>

#include "base/mem.h"
#include "token/token.h"

#define PEN_TOKEN_SPECIALS 32 /* limit */
#define PEN_TOKEN_ENDS 8      /* limit before or after a sequence */
#define PEN_TOKEN_ALPHABET 64
/* Limit for one sequence: enough for any genome on one line, and small enough
 * to be multiplied by the size of anything a letter becomes. */
#define PEN_TOKEN_LETTERS (UINT64_C(1) << 40)

/* Values of a byte other than a letter's number in the alphabet. */
#define PEN_LETTER_UNKNOWN 0xffu
#define PEN_LETTER_PAD 0xfeu

struct pen_token_ops {
	/* Reads its options, and sets width, nwords and, unless dtype= was set,
	 * dtype. */
	int (*open)(struct pen_tokens *, const struct pen_token_opts *,
		    struct pen_err *);
	void (*close)(struct pen_tokens *); /* also partly opened; or NULL */
	/* Tokens for n letters, without special tokens; an upper bound if
	 * list() is set. */
	uint64_t (*count)(const struct pen_tokens *, uint64_t n);
	/* Writes tokens [first, first + n) in the field's dtype. */
	void (*write)(const struct pen_tokens *, const struct pen_sequence *,
		      uint64_t first, uint64_t n, void *out, void *room);
	/* Replaces write() if the number is not known in advance: writes all
	 * ids to out (room for count()), and returns their number or an
	 * error. */
	int64_t (*list)(const struct pen_tokens *, const struct pen_sequence *,
			uint32_t *out, void *room, struct pen_err *);
	/* The text of an id that is not a special token. */
	int (*word)(const struct pen_tokens *, uint64_t id, char *buf,
		    size_t cap);
	size_t (*scratch)(const struct pen_tokens *, uint64_t longest);
	/* For fields of its own: all of these, and none of the above. */
	uint32_t nfields;
	const char *const *names;
	/* sets ndim and shape */
	void (*shape)(const struct pen_tokens *, uint32_t i, uint64_t n,
		      struct pen_field *);
	int (*emit)(const struct pen_tokens *, const struct pen_sequence *,
		    const struct pen_token_row *, struct pen_err *);
	bool takes_specials, takes_length;
	bool takes_file, takes_merges; /* vocab=, merges= */
	bool has_letters;  /* takes alphabet= and related settings */
	bool whole_file;   /* special tokens come from the file */
	const char *own;   /* specific options, comma-separated */
	const char *field; /* name of the only field */
	const char *alphabet, *specials; /* defaults */
};

struct pen_tokens {
	const struct pen_token_ops *ops;
	const char *name;
	enum pen_dtype dtype;
	uint32_t width; /* numbers per token: 1 except for onehot */
	size_t item;	/* bytes per token */
	uint64_t length, max;
	bool pad_left, cut_left, strict, any_case;
	bool as_n; /* ambiguous letters count as N */
	bool dtype_given;
	char special[PEN_TOKEN_SPECIALS][16];
	uint32_t special_id[PEN_TOKEN_SPECIALS];
	uint32_t nspecials;
	uint32_t begin[PEN_TOKEN_ENDS], end[PEN_TOKEN_ENDS];
	uint32_t nbegin, nend;
	uint32_t pad, unk;
	char alphabet[PEN_TOKEN_ALPHABET + 1];
	uint32_t nletters;
	uint8_t code[256]; /* number in the alphabet, or PEN_LETTER_... */
	uint64_t nwords;   /* number of token ids; 0: not limited */
	void *priv;	   /* the tokeniser's */
};

const struct pen_token_ops *pen__token_at(unsigned i);
/* The smallest dtype for that many ids, unless dtype= is set. */
enum pen_dtype pen__tokens_dtype(const struct pen_tokens *, uint64_t nwords);
/* Fills t->code from t->alphabet and the settings for letters. */
void pen__tokens_codes(struct pen_tokens *, const struct pen_token_opts *);
/* Writes n ids in the field's dtype. */
void pen__tokens_put(const struct pen_tokens *, const uint32_t *ids, uint64_t n,
		     void *out);
/* For count(): at most one token per letter. */
uint64_t pen__tokens_each(const struct pen_tokens *, uint64_t n);
/* Length of the next name in a comma-separated list; 0 at the end. */
size_t pen__tokens_next_name(const char **s, const char **name);
/* Index of a special token in t->special, or -1. */
int pen__tokens_special(const struct pen_tokens *, const char *name, size_t n);

#endif
