/*
 * Tokenisers: from the letters of a sequence to numbers, in the emit stage.
 * Shared by all formats that hold sequences: they hand in letters, and declare
 * and fill the fields that the tokeniser says. One file and one line of
 * CMakeLists.txt a tokeniser; what they share is in token_int.h.
 *
 * After open everything is const and re-entrant, and allocates nothing. Files
 * (a vocabulary, merges) are read in open, and never later.
 *
 * How a format uses it:
 *   opts   PEN_TOKEN_OPTS(struct my_priv, token) in its table of options
 *   open   pen__tokens_open(&p->tokens, &p->token, err)
 *   bind   pen__tokens_field() for each of pen__tokens_nfields(), with the
 *          letters of the shortest and the longest sequence of all; and
 *          scratch_size: what it needs itself + pen__tokens_scratch()
 *   shape  pen__tokens_shape() with the letters of the sample
 *   emit   pen__tokens_emit()
 *   close  pen__tokens_close()
 */
#ifndef PEN_TOKEN_TOKEN_H
#define PEN_TOKEN_TOKEN_H

#include "base/opt.h"

/* Settings that all sequence formats have. Owned by its format's table. */
struct pen_token_opts {
	int tokens; /* into pen__token_names */
	int model, dtype, pad, cut, letters, ambiguous, n, unknown;
	int64_t k, stride, context, noise;
	uint64_t length, max_length;
	double gap, power;
	bool rna, singles;
	bool k_set; /* no option: somebody asked for this k */
	char *alphabet, *specials, *begin, *end, *vocab, *merges;
};

/* Choices of the enums above; NULL-terminated. The first is of the registry. */
extern const char *const pen__token_names[];
extern const char *const pen__token_models[], *const pen__token_dtypes[];
extern const char *const pen__token_sides[], *const pen__token_cases[];
extern const char *const pen__token_ambiguous[], *const pen__token_ns[];
extern const char *const pen__token_unknowns[];

/* clang-format off */
#define PEN_TOKEN__OPT(T, m, x, what, def, text)                               \
	{ .name = #x, .type = PEN_OPT_##what, .off = offsetof(T, m.x),         \
	  .dflt = def, .help = text }
#define PEN_TOKEN__ENUM(T, m, x, list, def, text)                              \
	{ .name = #x, .type = PEN_OPT_ENUM, .off = offsetof(T, m.x),           \
	  .dflt = def, .choices = list, .help = text }
#define PEN_TOKEN__INT(T, m, x, def, hi, text)                                 \
	{ .name = #x, .type = PEN_OPT_INT, .off = offsetof(T, m.x),            \
	  .dflt = def, .max = hi, .help = text }

/* Rows of a struct pen_opt table: T is the format's private struct, m its
 * struct pen_token_opts. */
#define PEN_TOKEN_OPTS(T, m)                                                   \
	PEN_TOKEN__ENUM(T, m, tokens, pen__token_names, "none",                \
			"what letters become: see docs/tokens.md"),            \
	PEN_TOKEN__ENUM(T, m, model, pen__token_models, "none",                \
			"tokens as a published model has them"),               \
	PEN_TOKEN__ENUM(T, m, dtype, pen__token_dtypes, "auto",                \
			"of tokens; auto: the smallest that holds them"),      \
	PEN_TOKEN__INT(T, m, k, "0", 12, "letters of a word; 0: 4, or the "    \
		       "model's"),                                             \
	PEN_TOKEN__INT(T, m, stride, "0", 4096, "letters between words; 0: "   \
		       "1, or the model's"),                                   \
	PEN_TOKEN__OPT(T, m, singles, BOOL, "false",                           \
		       "kmers: letters alone where there is no whole word"),   \
	PEN_TOKEN__OPT(T, m, alphabet, STR, NULL,                              \
		       "known letters, in the order of their numbers"),        \
	PEN_TOKEN__OPT(T, m, specials, STR, NULL,                              \
		       "special tokens, in order: pad,unk,cls,..."),           \
	PEN_TOKEN__OPT(T, m, begin, STR, NULL,                                 \
		       "specials before each sequence, as cls"),               \
	PEN_TOKEN__OPT(T, m, end, STR, NULL,                                   \
		       "specials after each sequence, as sep"),                \
	PEN_TOKEN__OPT(T, m, length, COUNT, "0",                               \
		       "cut and pad all to so many tokens; 0: as they come"),  \
	PEN_TOKEN__OPT(T, m, max_length, COUNT, "0",                           \
		       "cut to so many tokens, pad nothing; 0: no limit"),     \
	PEN_TOKEN__ENUM(T, m, pad, pen__token_sides, "auto",                   \
			"side of padding; auto: right, or the model's"),       \
	PEN_TOKEN__ENUM(T, m, cut, pen__token_sides, "auto",                   \
			"side that is cut off; auto: right"),                  \
	{ .name = "case", .type = PEN_OPT_ENUM, .dflt = "upper",               \
	  .off = offsetof(T, m.letters), .choices = pen__token_cases,          \
	  .help = "small letters: as capitals, or kept as they are" },         \
	PEN_TOKEN__OPT(T, m, rna, BOOL, "false", "U is read as T"),            \
	PEN_TOKEN__ENUM(T, m, ambiguous, pen__token_ambiguous, "auto",         \
			"R, Y, K, ... of IUPAC: as N, or unknown"),            \
	PEN_TOKEN__ENUM(T, m, n, pen__token_ns, "keep",                        \
			"N: as it is, as padding, or unknown"),                \
	PEN_TOKEN__ENUM(T, m, unknown, pen__token_unknowns, "auto",            \
			"letters of no alphabet: a token, or an error"),       \
	PEN_TOKEN__OPT(T, m, gap, DOUBLE, "0",                                 \
		       "onehot: what an unknown letter is, 0 or 0.25"),        \
	PEN_TOKEN__OPT(T, m, vocab, STR, NULL,                                 \
		       "file of words: of `penstock vocab`, or a line each"),  \
	PEN_TOKEN__OPT(T, m, merges, STR, NULL,                                \
		       "bpe: merges.txt, or tokenizer.json"),                  \
	PEN_TOKEN__INT(T, m, context, "3", 16,                                 \
		       "dm: words of context on each side"),                   \
	PEN_TOKEN__INT(T, m, noise, "5", 64,                                   \
		       "dm: noise words for each target"),                     \
	PEN_TOKEN__OPT(T, m, power, DOUBLE, "0.75",                            \
		       "dm: noise is drawn by frequency to this power")
/* clang-format on */

/* One sequence on its way into its row. */
struct pen_sequence {
	const uint8_t *letters; /* as in the file, without line ends */
	size_t n;
	uint64_t number; /* of the sample in the data set */
	uint64_t key;	 /* random, by (seed, epoch, sample): row->key */
};

/* Where it goes; as in struct pen_row, from the tokeniser's first field on. */
struct pen_token_row {
	void *const *dst;
	const size_t *dst_len;
	size_t *used; /* smaller, where only emit knows how many there are */
	void *room;   /* pen__tokens_scratch() bytes, aligned as malloc's */
};

struct pen_tokens; /* ready: tables built, files read */

int pen__tokens_open(struct pen_tokens **out, const struct pen_token_opts *,
		     struct pen_err *err);
void pen__tokens_close(struct pen_tokens *); /* NULL ok */

uint32_t pen__tokens_nfields(const struct pen_tokens *);
/*
 * As bind() declares it: name, dtype, shape (-1 where it varies) and the bytes
 * of the longest sequence. PEN_EDATA when these are too many to count.
 */
int pen__tokens_field(const struct pen_tokens *, uint32_t i, uint64_t shortest,
		      uint64_t longest, struct pen_field *out,
		      struct pen_err *err);
/* What fills up rows that the engine pads, and on which side. */
void pen__tokens_pad(const struct pen_tokens *, uint32_t i, int64_t *value,
		     bool *before);
/* Shape of field i of a sequence of n letters: of lists whose length only
 * emit knows (vocab, bpe), the most. */
void pen__tokens_shape(const struct pen_tokens *, uint32_t i, uint64_t n,
		       int64_t *shape);
/* Bytes of room that emit takes for sequences of up to so many letters. */
size_t pen__tokens_scratch(const struct pen_tokens *, uint64_t longest);
int pen__tokens_emit(const struct pen_tokens *, const struct pen_sequence *,
		     const struct pen_token_row *, struct pen_err *err);
/* Are the fields the letters themselves, as they are in the file? Then rows
 * may be read in place (PEN_UNIT_PLAIN), and nothing needs to be emitted. */
bool pen__tokens_plain(const struct pen_tokens *);

/* What codes of the fields stand for: words of the vocabulary, specials. */
uint64_t pen__tokens_nwords(const struct pen_tokens *); /* 0: none */
int pen__tokens_word(const struct pen_tokens *, uint64_t id, char *buf,
		     size_t cap); /* 0 or PEN_ENOTFOUND */
/* For inspect. */
void pen__tokens_describe(const struct pen_tokens *, void *arg,
			  void (*fact)(void *arg, const char *name,
				       const char *value));

#endif
