/* Words of k letters: shared by kmers, frames and dm. */
#ifndef PEN_TOKEN_KMERS_H
#define PEN_TOKEN_KMERS_H

#include "token/token_int.h"
#include "token/words.h"

struct pen_kmers {
	struct pen_letters letters; /* maps to letter numbers, 0x80: unknown */
	struct pen_word_code code;
	uint32_t k, stride;
	uint32_t base;	  /* id of the first word, without a vocabulary */
	uint32_t singles; /* id of the first single letter */
	/* With a vocabulary: */
	struct pen_words words;
	struct pen_word_table table;
};

/* Sets t->priv to a struct pen_kmers, and t->dtype and t->nwords. */
int pen__kmers_open(struct pen_tokens *, const struct pen_token_opts *,
		    struct pen_err *);
void pen__kmers_close(struct pen_tokens *);
/* Writes the ids of all n - k + 1 words of n letters. room: n bytes. */
void pen__kmers_ids(const struct pen_tokens *, const uint8_t *letters,
		    uint64_t n, uint32_t *ids, uint8_t *room);
int pen__kmers_word(const struct pen_tokens *, uint64_t id, char *buf,
		    size_t cap);
/* Loads the words of vocab=; k comes from them or from the options. */
int pen__kmers_load(struct pen_kmers *, const struct pen_token_opts *,
		    struct pen_err *);
/* Sets up alphabet, codes and table from the words of k letters; the letters in
 * `pads` stand for padding. */
int pen__kmers_learn(struct pen_tokens *, struct pen_kmers *, const char *pads,
		     struct pen_err *);
/* Finds the special tokens in a file: <cls>, [CLS]. */
int pen__tokens_file_specials(struct pen_tokens *, const struct pen_words *,
			      struct pen_err *);
/* Maps letters to their numbers in t->code; others become 0x80. */
void pen__tokens_letters(const struct pen_tokens *, struct pen_letters *);
bool pen__tokens_is_special(const struct pen_tokens *, uint32_t id);
/* Reports a letter at which no word of the file starts, in a file without
 * <unk>. */
int pen__tokens_no_word(const struct pen_tokens *, const struct pen_sequence *,
			uint64_t at, const char *file, struct pen_err *);

#endif
