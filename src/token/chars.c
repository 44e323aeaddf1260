/*
 * One token per letter: the special tokens come first, then the alphabet. A
 * letter outside the alphabet is the special token unk, otherwise N, otherwise
 * the last id. alphabet=bytes: every byte is its own id, as in byte-level
 * models, and the special tokens follow.
 */
#include <stdio.h>

#include "token/letters.h"
#include "token/token_int.h"

#define BLOCK 4096u

static void byte_table(struct pen_tokens *t, uint8_t *table)
{
	snprintf(t->alphabet, sizeof(t->alphabet), "bytes");
	t->strict = false; /* nothing is unknown */
	for (unsigned i = 0; i < 256; i++)
		table[i] = (uint8_t)i;
	for (uint32_t i = 0; i < t->nspecials; i++)
		t->special_id[i] = 256 + i;
	t->nwords = 256 + t->nspecials;
}

static void letter_table(struct pen_tokens *t, uint8_t *table)
{
	const int unk = pen__tokens_special(t, "unk", 3);
	const int pad = pen__tokens_special(t, "pad", 3);
	const char *n = strchr(t->alphabet, 'N');

	t->nwords = t->nspecials + t->nletters;
	if (unk >= 0)
		t->unk = (uint32_t)unk;
	else if (n)
		t->unk = t->nspecials + (uint32_t)(n - t->alphabet);
	else
		t->unk = (uint32_t)t->nwords++;
	for (unsigned i = 0; i < 256; i++) {
		const uint8_t c = t->code[i];
		uint32_t id = t->nspecials + c;

		if (c == PEN_LETTER_PAD && pad >= 0)
			id = (uint32_t)pad;
		else if (c >= t->nletters)
			id = t->unk;
		table[i] = (uint8_t)id;
	}
}

static int chars_open(struct pen_tokens *t, const struct pen_token_opts *o,
		      struct pen_err *err)
{
	struct pen_letters *l = pen__alloc(1, sizeof(*l));
	uint8_t table[256];

	if (!l)
		return pen__fail_nomem(err, "tokens", sizeof(*l));
	t->priv = l;
	if (o->alphabet && strcmp(o->alphabet, "bytes") == 0)
		byte_table(t, table);
	else
		letter_table(t, table);
	pen__letters_init(l, table);
	t->dtype = pen__tokens_dtype(t, t->nwords);
	return 0;
}

static void chars_close(struct pen_tokens *t)
{
	pen__free(t->priv);
}

static void chars_write(const struct pen_tokens *t,
			const struct pen_sequence *s, uint64_t first,
			uint64_t n, void *out, void *room)
{
	const uint8_t *in = s->letters + first;
	uint8_t some[BLOCK], *to = out;

	(void)room;
	if (t->item == 1) {
		pen__letters_map(t->priv, in, n, out);
		return;
	}
	for (uint64_t i = 0; i < n; i += BLOCK) {
		const size_t m = n - i < BLOCK ? (size_t)(n - i) : BLOCK;

		pen__letters_map(t->priv, in + i, m, some);
		pen__letters_widen(some, m, (unsigned)t->item,
				   to + i * t->item);
	}
}

static int chars_word(const struct pen_tokens *t, uint64_t id, char *buf,
		      size_t cap)
{
	const bool bytes = t->nwords >= 256;

	if (!bytes && id - t->nspecials >= t->nletters)
		snprintf(buf, cap, "<unk>");
	else if (bytes)
		snprintf(buf, cap, "0x%02x", (unsigned)id);
	else
		snprintf(buf, cap, "%c", t->alphabet[id - t->nspecials]);
	return 0;
}

const struct pen_token_ops pen__token_chars = {
	.field = "tokens",
	.alphabet = "ACGTN",
	.has_letters = true,
	.takes_specials = true,
	.takes_length = true,
	.open = chars_open,
	.close = chars_close,
	.count = pen__tokens_each,
	.write = chars_write,
	.word = chars_word,
};
