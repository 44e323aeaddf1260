/*
 * Tokenisers turn the letters of a sequence into numbers, in the emit stage.
 * All sequence formats share them: a format passes in letters, and declares and
 * fills the fields that the tokeniser specifies. A tokeniser is one file and
 * one line in CMakeLists.txt; their shared parts are in token_int.h.
 *
 * After open, everything is const and re-entrant, and nothing is allocated.
 * Files (a vocabulary, merges) are read in open only.
 *
 * How a format uses a tokeniser:
 *   opts   PEN_TOKEN_OPTS(struct my_priv, token) in its table of options
 *   open   pen__tokens_open(&p->tokens, &p->token, err)
 *   bind   pen__tokens_field() for each of pen__tokens_nfields(), with the
 *          letters of the shortest and the longest sequence; scratch_size
 *          is the format's own need + pen__tokens_scratch()
 *   shape  pen__tokens_shape() with the letters of the sample
 *   emit   pen__tokens_emit()
 *   close  pen__tokens_close()
 */
#ifndef PEN_TOKEN_TOKEN_H
#define PEN_TOKEN_TOKEN_H

#include "base/opt.h"

/* Settings of all sequence formats, owned by the format's options. */
struct pen_token_opts {
	int tokens; /* index into pen__token_names */
	int model, dtype, pad, cut, letters, ambiguous, n, unknown;
	int64_t k, stride, context, noise;
	uint64_t length, max_length;
	double gap, power;
	bool rna, singles;
	bool k_set; /* not an option: k was set explicitly */
	char *alphabet, *specials, *begin, *end, *vocab, *merges;
};

/* Choices of the enums above, NULL-terminated; the first list comes from the
 * registry. */
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

/* Entries of a struct pen_opt table: T is the format's private struct, m its
 * struct pen_token_opts. */
#define PEN_TOKEN_OPTS(T, m)                                                   \
	PEN_TOKEN__ENUM(T, m, tokens, pen__token_names, "none",                \
			"tokeniser, see docs/tokens.md"),                      \
	PEN_TOKEN__ENUM(T, m, model, pen__token_models, "none",                \
			"use the tokens of a published model"),                \
	PEN_TOKEN__ENUM(T, m, dtype, pen__token_dtypes, "auto",                \
			"dtype of tokens; auto: the smallest that fits"),      \
	PEN_TOKEN__INT(T, m, k, "0", 12,                                       \
		       "letters per word (0: 4, or the model's)"),             \
	PEN_TOKEN__INT(T, m, stride, "0", 4096,                                \
		       "letters between word starts (0: 1, or the model's)"),  \
	PEN_TOKEN__OPT(T, m, singles, BOOL, "false",                           \
		       "kmers: single letters where no complete word fits"),   \
	PEN_TOKEN__OPT(T, m, alphabet, STR, NULL,                              \
		       "known letters, in order of their token ids"),          \
	PEN_TOKEN__OPT(T, m, specials, STR, NULL,                              \
		       "special tokens, in order: pad,unk,cls,..."),           \
	PEN_TOKEN__OPT(T, m, begin, STR, NULL,                                 \
		       "special tokens before each sequence, e.g. cls"),       \
	PEN_TOKEN__OPT(T, m, end, STR, NULL,                                   \
		       "special tokens after each sequence, e.g. sep"),        \
	PEN_TOKEN__OPT(T, m, length, COUNT, "0",                               \
		       "tokens per sample, truncated or padded (0: as is)"),   \
	PEN_TOKEN__OPT(T, m, max_length, COUNT, "0",                           \
		       "upper bound on tokens per sample (0: no limit)"),      \
	PEN_TOKEN__ENUM(T, m, pad, pen__token_sides, "auto",                   \
			"side to pad; auto: right, or the model's"),           \
	PEN_TOKEN__ENUM(T, m, cut, pen__token_sides, "auto",                   \
			"side to truncate; auto: right"),                      \
	{ .name = "case", .type = PEN_OPT_ENUM, .dflt = "upper",               \
	  .off = offsetof(T, m.letters), .choices = pen__token_cases,          \
	  .help = "lowercase letters: convert to uppercase, or keep" },        \
	PEN_TOKEN__OPT(T, m, rna, BOOL, "false", "read U as T"),               \
	PEN_TOKEN__ENUM(T, m, ambiguous, pen__token_ambiguous, "auto",         \
			"treat IUPAC codes R, Y, K, ... as N or unknown"),     \
	PEN_TOKEN__ENUM(T, m, n, pen__token_ns, "keep",                        \
			"treat N as a letter, padding, or unknown"),           \
	PEN_TOKEN__ENUM(T, m, unknown, pen__token_unknowns, "auto",            \
			"letters outside the alphabet: a token, or an error"), \
	PEN_TOKEN__OPT(T, m, gap, DOUBLE, "0",                                 \
		       "onehot: value of an unknown letter, e.g. 0 or 0.25"),  \
	PEN_TOKEN__OPT(T, m, vocab, STR, NULL,                                 \
		       "file of words (`penstock vocab`, or one per line)"),   \
	PEN_TOKEN__OPT(T, m, merges, STR, NULL,                                \
		       "bpe: merges.txt or tokenizer.json"),                   \
	PEN_TOKEN__INT(T, m, context, "3", 16,                                 \
		       "dm: context words on each side"),                      \
	PEN_TOKEN__INT(T, m, noise, "5", 64,                                   \
		       "dm: noise words per target"),                          \
	PEN_TOKEN__OPT(T, m, power, DOUBLE, "0.75",                            \
		       "dm: exponent of word frequency when drawing noise")
/* clang-format on */

/* Input: one sequence. */
struct pen_sequence {
	const uint8_t *letters; /* as in the file, without line ends */
	size_t n;
	uint64_t number; /* of the sample in the data set */
	uint64_t key;	 /* random, from (seed, epoch, sample): row->key */
};

/* Output, as in struct pen_row, starting at the tokeniser's first field. */
struct pen_token_row {
	void *const *dst;
	const size_t *dst_len;
	size_t *used; /* bytes written, if only emit knows how many */
	void *room;   /* pen__tokens_scratch() bytes, aligned as malloc's */
};

struct pen_tokens; /* opaque: tables and files are loaded */

int pen__tokens_open(struct pen_tokens **out, const struct pen_token_opts *,
		     struct pen_err *err);
void pen__tokens_close(struct pen_tokens *); /* NULL ok */

uint32_t pen__tokens_nfields(const struct pen_tokens *);
/*
 * Describes field i for bind(): name, dtype, shape (-1 where it varies) and the
 * bytes of the longest sequence. PEN_EDATA: too many bytes.
 */
int pen__tokens_field(const struct pen_tokens *, uint32_t i, uint64_t shortest,
		      uint64_t longest, struct pen_field *out,
		      struct pen_err *err);
/* Value and side of the padding that the engine adds. */
void pen__tokens_pad(const struct pen_tokens *, uint32_t i, int64_t *value,
		     bool *before);
/* Shape of field i for a sequence of n letters; an upper bound if only emit
 * knows the length (vocab, bpe). */
void pen__tokens_shape(const struct pen_tokens *, uint32_t i, uint64_t n,
		       int64_t *shape);
/* Bytes of room that emit needs for sequences of up to `longest` letters. */
size_t pen__tokens_scratch(const struct pen_tokens *, uint64_t longest);
int pen__tokens_emit(const struct pen_tokens *, const struct pen_sequence *,
		     const struct pen_token_row *, struct pen_err *err);
/* True if the fields are the letters as in the file. Rows may then be read in
 * place (PEN_UNIT_PLAIN), without emit. */
bool pen__tokens_plain(const struct pen_tokens *);

/* Names of token ids: words of the vocabulary and special tokens. */
uint64_t pen__tokens_nwords(const struct pen_tokens *); /* 0: none */
int pen__tokens_word(const struct pen_tokens *, uint64_t id, char *buf,
		     size_t cap); /* 0 or PEN_ENOTFOUND */
/* For inspect. */
void pen__tokens_describe(const struct pen_tokens *, void *arg,
			  void (*fact)(void *arg, const char *name,
				       const char *value));

#endif
