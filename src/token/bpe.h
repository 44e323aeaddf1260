/* Byte-pair merges: read by bpe_load.c, applied by bpe.c. */
#ifndef PEN_TOKEN_BPE_H
#define PEN_TOKEN_BPE_H

#include "token/kmers.h"

struct pen_merge {
	uint32_t left, right, made; /* word ids */
};

struct pen_bpe {
	struct pen_words words;
	struct pen_merge *merge; /* in order of priority */
	uint32_t nmerges;
	/* by hash of a pair: its merge + 1, or 0 */
	uint32_t *slot;
	uint32_t mask;
	uint32_t letter[256]; /* id of a single byte, or UINT32_MAX */
	bool has_unk;
	bool ordered; /* no merge uses what a later one makes */
};

int pen__bpe_load(struct pen_bpe *, const char *vocab, const char *merges,
		  struct pen_err *);
void pen__bpe_fini(struct pen_bpe *);

#define PEN_BPE_NONE UINT32_MAX

/* The merge of two words, or PEN_BPE_NONE. */
static inline uint32_t pen__bpe_find(const struct pen_bpe *p, uint32_t left,
				     uint32_t right)
{
	uint64_t at = ((uint64_t)left << 32 | right) * 0x9e3779b97f4a7c15u;

	for (at >>= 20;; at++) {
		const uint32_t m = p->slot[at & p->mask];

		if (!m)
			return PEN_BPE_NONE;
		if (p->merge[m - 1].left == left &&
		    p->merge[m - 1].right == right)
			return m - 1;
	}
}

#endif
