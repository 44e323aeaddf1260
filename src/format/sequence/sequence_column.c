/*
 * Compact arrays of integers with random access: offsets from a base shared by
 * all, or by every 64 of them, in 1, 2, 4 or 8 bytes; evenly spaced numbers
 * take none. Offsets of records take 4 bytes each, lengths 1 or 2.
 */
#include "base/mem.h"
#include "format/sequence/sequence.h"

bool pen__list_grow(struct pen_list *l)
{
	const uint64_t cap = l->cap ? l->cap * 2 : 256;
	void *p = pen__realloc(l->v, cap, sizeof(*l->v));

	if (!p)
		return false;
	l->v = p;
	l->cap = cap;
	return true;
}

void pen__list_fini(struct pen_list *l)
{
	pen__free(l->v);
	*l = (struct pen_list){ 0 };
}

static unsigned width_of(uint64_t spread)
{
	return spread <= UINT8_MAX    ? 1
	       : spread <= UINT16_MAX ? 2
	       : spread <= UINT32_MAX ? 4
				      : 8;
}

static uint64_t lowest(const uint64_t *v, uint64_t n, uint64_t *spread)
{
	uint64_t lo = UINT64_MAX, hi = 0;

	for (uint64_t i = 0; i < n; i++) {
		lo = v[i] < lo ? v[i] : lo;
		hi = v[i] > hi ? v[i] : hi;
	}
	*spread = n ? hi - lo : 0;
	return n ? lo : 0;
}

static bool is_even(const struct pen_list *l)
{
	for (uint64_t i = 2; i < l->n; i++)
		if (l->v[i] - l->v[i - 1] != l->v[1] - l->v[0])
			return false;
	return true;
}

static uint64_t in_block(const struct pen_list *l, uint64_t at)
{
	return l->n - at < 64 ? l->n - at : 64;
}

void pen__column_put(struct pen_buf *b, const struct pen_list *l)
{
	uint64_t spread, most = 0, base = lowest(l->v, l->n, &spread), of;
	unsigned width = width_of(spread), near;
	bool blocked;

	for (uint64_t i = 0; i < l->n; i += 64) {
		lowest(l->v + i, in_block(l, i), &of);
		most = of > most ? of : most;
	}
	near = width_of(most);
	blocked = near < width;
	if (blocked)
		width = near;
	if (is_even(l))
		width = 0;
	pen__buf_le(b, width, 1);
	pen__buf_le(b, blocked && width, 1);
	pen__buf_le(b, l->n, 8);
	pen__buf_le(b, width ? base : l->n ? l->v[0] : 0, 8);
	pen__buf_le(b, l->n > 1 ? l->v[1] - l->v[0] : 0, 8);
	for (uint64_t i = 0; width && blocked && i < l->n; i += 64)
		pen__buf_le(b, lowest(l->v + i, in_block(l, i), &of), 8);
	for (uint64_t i = 0; width && i < l->n; i += 64) {
		const uint64_t n = in_block(l, i),
			       lo = lowest(l->v + i, n, &of);
		uint8_t some[64 * 8];

		for (uint64_t k = 0; k < n; k++) {
			const uint64_t v = l->v[i + k] - (blocked ? lo : base);

			memcpy(some + k * width, &v, width);
		}
		pen__buf_put(b, some, n * width);
	}
}

bool pen__column_take(struct pen_bytes *b, struct pen_column *c)
{
	const unsigned width = pen__take_u8(b);
	const bool blocked = pen__take_u8(b);

	*c = (struct pen_column){ .width = width, .n = pen__take_u64(b) };
	c->base = pen__take_u64(b);
	c->step = pen__take_u64(b);
	if (b->bad || width > 8 || (width & (width - 1)) ||
	    (width && c->n > pen__bytes_left(b) / width))
		return false;
	if (blocked)
		c->bases = pen__take(b, (c->n + 63) / 64 * 8);
	if (width)
		c->p = pen__take(b, c->n * width);
	return !b->bad;
}

uint64_t pen__column_find(const struct pen_column *c, uint64_t v)
{
	uint64_t lo = 0, hi = c->n;

	if (!c->width && c->step) {
		lo = (v - c->base) / c->step;
		return lo < c->n ? lo : c->n - 1;
	}
	while (hi - lo > 1) {
		const uint64_t mid = lo + (hi - lo) / 2;

		if (pen__column_at(c, mid) <= v)
			lo = mid;
		else
			hi = mid;
	}
	return lo;
}
