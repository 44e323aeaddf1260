/*
 * Words of k letters in k reading frames: adjacent words from the first letter
 * on, then from the second letter on, and so on. These are the overlapping
 * words in another order.
 */
#include "token/kmers.h"

static uint64_t frames_count(const struct pen_tokens *t, uint64_t n)
{
	const struct pen_kmers *p = t->priv;

	return n < p->k ? 0 : n - p->k + 1;
}

static size_t ids_bytes(uint64_t n)
{
	return ((size_t)n * sizeof(uint32_t) + 63) / 64 * 64;
}

static size_t frames_scratch(const struct pen_tokens *t, uint64_t n)
{
	(void)t;
	return 2 * ids_bytes(n) + (size_t)n;
}

static void frames_write(const struct pen_tokens *t,
			 const struct pen_sequence *s, uint64_t first,
			 uint64_t n, void *out, void *room)
{
	const struct pen_kmers *p = t->priv;
	const uint64_t all = frames_count(t, s->n);
	uint32_t *ids = room;
	uint32_t *sorted = (void *)((uint8_t *)room + ids_bytes(s->n));
	uint32_t *to = sorted;

	pen__kmers_ids(t, s->letters, s->n, ids,
		       (uint8_t *)room + 2 * ids_bytes(s->n));
	for (uint32_t frame = 0; frame < p->k; frame++)
		for (uint64_t i = frame; i < all; i += p->k)
			*to++ = ids[i];
	pen__tokens_put(t, sorted + first, n, out);
}

const struct pen_token_ops pen__token_frames = {
	.own = "k",
	.takes_file = true,
	.field = "tokens",
	.alphabet = "ACGT",
	.has_letters = true,
	.takes_specials = true,
	.takes_length = true,
	.open = pen__kmers_open,
	.close = pen__kmers_close,
	.count = frames_count,
	.scratch = frames_scratch,
	.write = frames_write,
	.word = pen__kmers_word,
};
