/* Words of k letters: what kmers, frames and dm share. */
#ifndef PEN_TOKEN_KMERS_H
#define PEN_TOKEN_KMERS_H

#include "token/token_int.h"
#include "token/words.h"

struct pen_kmers {
	struct pen_letters letters; /* to numbers of letters, 0x80: unknown */
	struct pen_word_code code;
	uint32_t k, stride;
	uint32_t base;	  /* number of the first word, without a vocabulary */
	uint32_t singles; /* number of the first letter that is a word */
	/* With a vocabulary: */
	struct pen_words words;
	struct pen_word_table table;
};

/* t->priv becomes a struct pen_kmers, and t->dtype and t->nwords are set. */
int pen__kmers_open(struct pen_tokens *, const struct pen_token_opts *,
		    struct pen_err *);
void pen__kmers_close(struct pen_tokens *);
/* The numbers of all words of n letters: n - k + 1 of them to ids. room:
 * n bytes. */
void pen__kmers_ids(const struct pen_tokens *, const uint8_t *letters,
		    uint64_t n, uint32_t *ids, uint8_t *room);
int pen__kmers_word(const struct pen_tokens *, uint64_t id, char *buf,
		    size_t cap);
/* The words of vocab=, and k from them, or from the options. */
int pen__kmers_load(struct pen_kmers *, const struct pen_token_opts *,
		    struct pen_err *);
/* The alphabet, codes and table from the words of k letters that w has; and
 * beside them letters x and y that stand for padding (0: none). */
int pen__kmers_learn(struct pen_tokens *, struct pen_kmers *, const char *pads,
		     struct pen_err *);
/* The specials that a file has: <cls>, [CLS]. */
int pen__tokens_file_specials(struct pen_tokens *, const struct pen_words *,
			      struct pen_err *);
bool pen__tokens_is_special(const struct pen_tokens *, uint32_t id);
/* No word of the file begins at a letter, and it has no <unk>. */
int pen__tokens_no_word(const struct pen_tokens *, const struct pen_sequence *,
			uint64_t at, const char *file, struct pen_err *);

#endif
