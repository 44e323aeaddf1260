/* See count.h. */
#include "token/count.h"

#include <ctype.h>
#include <string.h>

#include "base/mem.h"

#define DIRECT (UINT64_C(1) << 22) /* 32 MiB per thread */
#define FIRST (UINT64_C(1) << 16)
#define PAIRS 16384u /* 64 KiB */

void pen__counts_fini(struct pen_counts *c)
{
	pen__free(c->count);
	pen__free(c->key);
	pen__free(c->pair);
	*c = (struct pen_counts){ 0 };
}

/* Maps each byte to the number of its letter, or 0x80. */
static void letter_table(const struct pen_count_opts *o, uint8_t *table)
{
	for (unsigned i = 0; i < 256; i++) {
		char c = o->letters ? (char)i : (char)toupper((int)i);
		const char *at;

		if (o->rna && (c == 'U' || c == 'u'))
			c = c == 'U' ? 'T' : 't';
		at = c ? strchr(o->alphabet, c) : NULL;
		table[i] = at ? (uint8_t)(at - o->alphabet) : 0x80;
	}
}

static int check_alphabet(const struct pen_count_opts *o, struct pen_err *err)
{
	const char *s = o->alphabet ? o->alphabet : "";

	if (!*s || strlen(s) > 62)
		return pen__fail(err, P_BAD_VALUE, "alphabet",
				 "must have 1 to 62 letters");
	for (; *s; s++)
		if (*s <= ' ' || *s == 127 || strchr(s + 1, *s) ||
		    (!o->letters && islower((uint8_t)*s)) ||
		    (o->pads && (*s == 'X' || *s == 'Y')))
			return pen__fail(err, P_BAD_VALUE, "alphabet",
					 "'%c' is not printable, listed twice, "
					 "lowercase (set case=keep), or "
					 "reserved by pads=true (X, Y)",
					 *s);
	return 0;
}

/* Number of words with one letter more. */
static uint64_t npairs(const struct pen_counts *c)
{
	return (uint64_t)c->code.power[c->code.k] * c->code.nletters;
}

int pen__counts_init(struct pen_counts *c, const struct pen_count_opts *o,
		     struct pen_err *err)
{
	uint8_t table[256];
	int rc = check_alphabet(o, err);

	*c = (struct pen_counts){ .stride = (uint32_t)o->stride };
	if (rc)
		return rc;
	if (!pen__word_code_init(&c->code, (unsigned)o->k,
				 (unsigned)strlen(o->alphabet)))
		return pen__fail(
			err, P_BAD_VALUE, "k",
			"words of %u letters from an alphabet of %zu are too "
			"many to number; reduce k or the alphabet",
			(unsigned)o->k, strlen(o->alphabet));
	letter_table(o, table);
	pen__letters_init(&c->letters, table);
	c->slots = c->code.power[o->k];
	if (c->slots > DIRECT) {
		c->slots = FIRST;
		c->key = pen__calloc(c->slots, sizeof(*c->key));
	}
	c->count = pen__calloc(c->slots, sizeof(*c->count));
	if (c->stride == 1 && npairs(c) <= PAIRS)
		c->pair = pen__calloc(npairs(c), sizeof(*c->pair));
	if (c->count &&
	    (c->key || c->slots != FIRST || c->code.power[o->k] <= DIRECT))
		return 0;
	pen__counts_fini(c);
	return pen__fail_nomem(err, "words", DIRECT * sizeof(*c->count));
}

static uint64_t *slot_of(uint32_t *key, uint64_t *count, uint64_t slots,
			 uint32_t code, uint64_t *used)
{
	uint64_t at = code * UINT64_C(0x9e3779b97f4a7c15) >> 20;

	for (;; at++) {
		at &= slots - 1;
		if (key[at] == code + 1)
			return &count[at];
		if (!key[at]) {
			key[at] = code + 1;
			++*used;
			return &count[at];
		}
	}
}

static void grow(struct pen_counts *c)
{
	const uint64_t slots = c->slots * 2;
	uint32_t *key = pen__calloc(slots, sizeof(*key));
	uint64_t *count = pen__calloc(slots, sizeof(*count)), used = 0;

	if (!key || !count) {
		pen__free(key);
		pen__free(count);
		c->failed = true;
		return;
	}
	for (uint64_t i = 0; i < c->slots; i++)
		if (c->key[i])
			*slot_of(key, count, slots, c->key[i] - 1, &used) =
				c->count[i];
	pen__free(c->key);
	pen__free(c->count);
	c->key = key;
	c->count = count;
	c->slots = slots;
}

static void add_hashed(struct pen_counts *c, uint32_t code, uint64_t n)
{
	if (c->used * 2 >= c->slots)
		grow(c);
	if (!c->failed)
		*slot_of(c->key, c->count, c->slots, code, &c->used) += n;
}

/* Counts the words with these n codes. */
static void add_codes(struct pen_counts *c, const uint32_t *code, size_t n)
{
	uint64_t unknown = 0;

	if (c->key) {
		for (size_t i = 0; i < n; i += c->stride)
			if (code[i] == PEN_WORD_NONE)
				unknown++;
			else
				add_hashed(c, code[i], 1);
	} else {
		uint64_t *const count = c->count;

		for (size_t i = 0; i < n; i += c->stride)
			if (code[i] == PEN_WORD_NONE)
				unknown++;
			else
				count[code[i]]++;
	}
	c->nunknown += unknown;
	c->nwords += (n + c->stride - 1) / c->stride;
}

/* Counts n words without unknown letters. */
static void add_pairs(struct pen_counts *c, const uint8_t *code, size_t n)
{
	const unsigned k = c->code.k;
	uint16_t v[PEN_WORD_BLOCK / 2];
	uint32_t last;

	pen__word_seconds(code, n / 2, k + 1, c->code.nletters, v);
	for (size_t i = 0; i < n / 2; i++)
		c->pair[v[i]]++;
	c->npairs += n / 2;
	if (n % 2) {
		pen__word_codes(&c->code, code + n - 1, 1, &last);
		c->count[last]++;
	}
	c->nwords += n;
	if (c->npairs > UINT32_MAX - PEN_WORD_BLOCK)
		pen__counts_settle(c);
}

void pen__counts_settle(struct pen_counts *c)
{
	for (uint64_t i = 0; c->npairs && i < npairs(c); i++) {
		c->count[i / c->code.nletters] += c->pair[i];
		c->count[i % c->slots] += c->pair[i];
		c->pair[i] = 0;
	}
	c->npairs = 0;
}

void pen__counts_add(struct pen_counts *c, const uint8_t *letters, size_t n)
{
	const size_t block = PEN_WORD_BLOCK / c->stride * c->stride;
	const size_t words = n < c->code.k ? 0 : n - c->code.k + 1;
	uint8_t code[PEN_WORD_BLOCK + 64];
	uint32_t v[PEN_WORD_BLOCK];

	c->nletters += n;
	for (size_t i = 0; i < words; i += block) {
		const size_t m = words - i < block ? words - i : block;
		const size_t all = m + c->code.k - 1;

		pen__letters_map(&c->letters, letters + i, all, code);
		if (c->pair && !pen__letters_unknown(code, all)) {
			add_pairs(c, code, m);
			continue;
		}
		pen__word_codes(&c->code, code, m, v);
		add_codes(c, v, m);
	}
}

void pen__counts_join(struct pen_counts *to, struct pen_counts *from)
{
	pen__counts_settle(to);
	pen__counts_settle(from);
	to->nletters += from->nletters;
	to->nwords += from->nwords;
	to->nunknown += from->nunknown;
	to->failed = to->failed || from->failed;
	for (uint64_t i = 0; i < from->slots; i++)
		if (!from->key)
			to->count[i] += from->count[i];
		else if (from->key[i])
			add_hashed(to, from->key[i] - 1, from->count[i]);
}
