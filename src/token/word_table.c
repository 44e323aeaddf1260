/* Maps codes of words to ids; see words.h. */
#include "token/words.h"

#include <string.h>

#define SMALL (UINT32_C(1) << 18)  /* 1 MiB: fits the caches */
#define DIRECT (UINT32_C(1) << 24) /* 64 MiB */

/* Chooses the table: direct if it is small, ranks if the words are in order,
 * otherwise the smaller one. */
static void choose(struct pen_word_table *t, bool ordered, uint64_t *bytes)
{
	const uint64_t all = t->code.power[t->code.k];
	const uint64_t slots = (uint64_t)t->mask + 1;

	t->kind = PEN_TABLE_HASH;
	*bytes = slots * sizeof(uint64_t);
	if (all <= SMALL || (!ordered && all <= DIRECT && all <= 8 * slots))
		t->kind = PEN_TABLE_DIRECT;
	else if (ordered && all / 32 <= 2 * slots)
		t->kind = PEN_TABLE_RANKS;
	if (t->kind == PEN_TABLE_DIRECT)
		*bytes = all * sizeof(uint32_t);
	if (t->kind == PEN_TABLE_RANKS)
		*bytes = (all / 32 + 1) * sizeof(uint64_t);
}

int pen__word_table_init(struct pen_word_table *t, unsigned k,
			 unsigned nletters, uint32_t nwords, bool ordered,
			 struct pen_err *err)
{
	uint64_t slots = 16, bytes;

	*t = (struct pen_word_table){ .shift = 60 };
	if (!pen__word_code_init(&t->code, k, nletters))
		return pen__fail(
			err, P_OVER_LIMIT, "k",
			"words of %u letters from an alphabet of %u are too "
			"many to number; reduce k or set rna=true",
			k, nletters);
	for (; slots < 2 * (uint64_t)nwords; t->shift--)
		slots *= 2;
	t->mask = (uint32_t)(slots - 1);
	choose(t, ordered, &bytes);
	if (pen__block_init(&t->mem, (size_t)bytes))
		return pen__fail_nomem(err, "words", (size_t)bytes);
	if (t->kind == PEN_TABLE_DIRECT)
		t->id = t->mem.p;
	else if (t->kind == PEN_TABLE_RANKS)
		t->rank = t->mem.p;
	else
		t->pair = t->mem.p;
	if (t->id || !t->mem.mapped) /* mapped memory is zero already */
		memset(t->mem.p, t->id ? 0xff : 0, (size_t)bytes);
	return 0;
}

uint32_t pen__word_table_put(struct pen_word_table *t, uint32_t code,
			     uint32_t id)
{
	uint32_t at, was;

	if (t->rank) { /* in order, so there are no duplicates */
		t->rank[code / 32] |= UINT32_C(1) << code % 32;
		return UINT32_MAX;
	}
	if (t->id) {
		was = t->id[code];
		t->id[code] = id;
		return was;
	}
	for (at = pen__word_slot(t, code); t->pair[at & t->mask]; at++)
		if (t->pair[at & t->mask] >> 32 == (uint64_t)code + 1)
			return (uint32_t)t->pair[at & t->mask];
	t->pair[at & t->mask] = ((uint64_t)code + 1) << 32 | id;
	return UINT32_MAX;
}

void pen__word_table_rank(struct pen_word_table *t, uint32_t first)
{
	const uint64_t n = (uint64_t)t->code.power[t->code.k] / 32 + 1;
	uint32_t before = 0;

	t->first = first;
	for (uint64_t i = 0; t->rank && i < n; i++) {
		t->rank[i] |= (uint64_t)before << 32;
		before += (uint32_t)__builtin_popcount((uint32_t)t->rank[i]);
	}
}

void pen__word_table_fini(struct pen_word_table *t)
{
	pen__block_fini(&t->mem);
}

/* Compiled twice: as is, and for CPUs with popcnt. */
static inline __attribute__((always_inline)) void
ranks(const struct pen_word_table *t, uint32_t *v, size_t n, uint32_t unk)
{
	const uint64_t *const rank = t->rank;
	const uint32_t first = t->first;

	for (size_t i = 0; i < n; i++) {
		const uint32_t code = v[i] == PEN_WORD_NONE ? 0 : v[i];
		const uint64_t r = rank[code / 32];
		const uint32_t bit = UINT32_C(1) << code % 32;
		const uint32_t below = (uint32_t)r & (bit - 1);
		const bool known = ((uint32_t)r & bit) && v[i] == code;

		v[i] = known ? first + (uint32_t)(r >> 32) +
				       (uint32_t)__builtin_popcount(below)
			     : unk;
	}
}

#ifdef __x86_64__
__attribute__((target("popcnt"))) static void
ranks_hw(const struct pen_word_table *t, uint32_t *v, size_t n, uint32_t unk)
{
	ranks(t, v, n, unk);
}

static bool has_hw(void)
{
	return __builtin_cpu_supports("popcnt");
}
#else
#define ranks_hw ranks

static bool has_hw(void)
{
	return false;
}
#endif

void pen__word_table_ids(const struct pen_word_table *t, uint32_t *v, size_t n,
			 uint32_t unk)
{
	if (t->rank && has_hw()) {
		ranks_hw(t, v, n, unk);
		return;
	}
	for (size_t i = 0; i < n; i++) {
		const uint32_t id = pen__word_table_get(t, v[i]);

		v[i] = id == UINT32_MAX ? unk : id;
	}
}
