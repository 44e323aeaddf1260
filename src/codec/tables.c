/*
 * Numbers by tables: for every row its distinct values, sorted, and for every
 * number its index among them. Cells whose counts were scaled by a factor per
 * cell have as many distinct values as they had counts. Only bytes are
 * compared, so any number is restored exactly. Rejects rows in which most
 * numbers differ.
 */
#include <stdlib.h>

#include "codec/cellpack_int.h"

/* The distinct values of one row, while they are counted. */
struct values {
	uint64_t *key;	/* by slot */
	uint32_t *code; /* of that key, from 1; 0: free slot */
	uint64_t *list; /* the values */
	uint32_t n, mask;
};

static uint64_t value_at(const uint8_t *p, size_t item, size_t i)
{
	uint64_t v = 0;

	memcpy(&v, p + i * item, item);
	return v;
}

static uint32_t slot_of(const struct values *t, uint64_t key)
{
	uint32_t i = (uint32_t)(key * 0x9e3779b97f4a7c15u >> 32) & t->mask;

	while (t->code[i] && t->key[i] != key)
		i = (i + 1) & t->mask;
	return i;
}

static int by_value(const void *a, const void *b)
{
	const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

/* Collects the distinct values of a row, sorted and numbered. */
static void count(struct values *t, const uint8_t *p, size_t item, size_t n)
{
	memset(t->code, 0, ((size_t)t->mask + 1) * sizeof(*t->code));
	t->n = 0;
	for (size_t i = 0; i < n; i++) {
		const uint64_t key = value_at(p, item, i);
		const uint32_t k = slot_of(t, key);

		if (t->code[k])
			continue;
		t->key[k] = key;
		t->code[k] = 1;
		t->list[t->n++] = key;
	}
	qsort(t->list, t->n, sizeof(*t->list), by_value);
	for (uint32_t i = 0; i < t->n; i++)
		t->code[slot_of(t, t->list[i])] = i + 1;
}

/* State of packing. */
struct packing {
	const struct pen_cellrows *r;
	const uint8_t *p;
	size_t item;
	uint32_t n;
	struct values t;
	uint32_t *size; /* of tables */
	uint32_t *code; /* of numbers */
	struct pen_buf tables;
};

/* Length of the longest row. */
static uint64_t longest(const struct packing *k)
{
	uint64_t at = 0, most = 0;

	for (uint32_t row = 0; row < k->r->nrows; row++) {
		const uint64_t end = row_end(k->r, row);

		if (end < at || end > k->n)
			return UINT64_MAX;
		most = end - at > most ? end - at : most;
		at = end;
	}
	return at == k->n ? most : UINT64_MAX;
}

static bool make_room(struct packing *k)
{
	const uint64_t most = longest(k);
	uint32_t slots = 64;

	if (most > UINT32_MAX / 4)
		return false;
	/* at most half full */
	while (slots < 2 * most)
		slots *= 2;
	k->t.mask = slots - 1;
	k->t.key = pen__alloc(slots, sizeof(*k->t.key));
	k->t.code = pen__alloc(slots, sizeof(*k->t.code));
	k->t.list = pen__alloc(slots, sizeof(*k->t.list));
	k->size = pen__alloc((size_t)k->r->nrows + 1, sizeof(*k->size));
	k->code = pen__alloc((size_t)k->n + 1, sizeof(*k->code));
	return k->t.key && k->t.code && k->t.list && k->size && k->code;
}

/* Row by row: table sizes, tables and codes. False if there are too many
 * distinct values to save space. */
static bool fill(struct packing *k)
{
	uint64_t at = 0;

	for (uint32_t row = 0; row < k->r->nrows; row++) {
		const uint64_t end = row_end(k->r, row);

		count(&k->t, k->p + at * k->item, k->item, (size_t)(end - at));
		if (k->tables.n / k->item + k->t.n > end / 2 + BLOCK)
			return false;
		k->size[row] = k->t.n;
		for (uint32_t i = 0; i < k->t.n; i++)
			pen__buf_put(&k->tables, &k->t.list[i], k->item);
		for (; at < end; at++) {
			const uint64_t v = value_at(k->p, k->item, at);

			k->code[at] = k->t.code[slot_of(&k->t, v)] - 1;
		}
	}
	return !k->tables.bad;
}

static void put_blocks(const uint32_t *v, uint32_t n, struct pen_buf *out)
{
	for (uint32_t at = 0; at < n; at += BLOCK)
		pen__cellpack_block(v + at, block_of(n, at), out);
}

bool pen__tables_pack(const struct pen_cellrows *r, size_t item,
		      const uint8_t *values, uint32_t n, struct pen_buf *out)
{
	struct packing k = { .r = r, .p = values, .item = item, .n = n };
	const size_t at = out->n;
	bool ok = make_room(&k) && fill(&k);

	if (ok) {
		put_blocks(k.size, r->nrows, out);
		pen__buf_put(out, k.tables.p, k.tables.n);
		put_blocks(k.code, n, out);
		ok = !out->bad && out->n - at < n * item / 4 * 3;
	}
	if (!ok && !out->bad)
		out->n = at;
	pen__free(k.t.key);
	pen__free(k.t.code);
	pen__free(k.t.list);
	pen__free(k.size);
	pen__free(k.code);
	pen__buf_fini(&k.tables);
	return ok;
}

/* ---- unpacking ---- */

/* State of reading tables along with rows. */
struct tables {
	const struct pen_cellrows *r;
	struct pen_bytes sizes, values;
	size_t item;
	uint32_t v[BLOCK]; /* sizes of the next rows */
	uint32_t row;
	/* of the previous row */
	uint64_t end;
	const uint8_t *table;
	uint32_t n;
};

/* Locates the tables; their total size follows from the sizes. */
static bool open_tables(struct tables *t, struct pen_bytes *in)
{
	uint64_t all = 0;
	const uint8_t *p;

	t->sizes = *in;
	for (uint32_t at = 0; at < t->r->nrows && !in->bad; at += BLOCK) {
		const size_t n = block_of(t->r->nrows, at);

		pen__bitunpack(in, n, t->v);
		for (size_t i = 0; !in->bad && i < n; i++)
			all += t->v[i];
		/* checked per block, so the sum cannot overflow */
		in->bad |= all > pen__bytes_left(in);
	}
	p = pen__take(in, all * t->item);
	t->values = pen__bytes(p, p ? all * t->item : 0);
	return !in->bad;
}

static bool next_row(struct tables *t)
{
	if (t->row == t->r->nrows)
		return false;
	if (t->row % BLOCK == 0)
		pen__bitunpack(&t->sizes, block_of(t->r->nrows, t->row), t->v);
	t->n = t->v[t->row % BLOCK];
	t->table = pen__take(&t->values, (uint64_t)t->n * t->item);
	t->end = row_end(t->r, t->row++);
	return !t->sizes.bad && !t->values.bad;
}

#define LOOK_UP(T)                                                             \
	for (uint32_t i = 0; i < n; i++) {                                     \
		const uint32_t k = code[i];                                    \
		most = k > most ? k : most;                                    \
		memcpy(out + i * sizeof(T),                                    \
		       t->table + (k < t->n ? k : 0) * sizeof(T), sizeof(T));  \
	}                                                                      \
	break

/* False if a code has no value. */
static bool look_up(const struct tables *t, const uint32_t *code, uint32_t n,
		    uint8_t *out)
{
	uint32_t most = 0;

	if (!t->n)
		return false;
	switch (t->item) {
	case 1:
		LOOK_UP(uint8_t);
	case 2:
		LOOK_UP(uint16_t);
	case 4:
		LOOK_UP(uint32_t);
	default:
		LOOK_UP(uint64_t);
	}
	return most < t->n;
}

static bool take_block(struct tables *t, const uint32_t *code, uint32_t n,
		       uint64_t at, uint8_t *out)
{
	uint32_t i = 0;

	while (i < n) {
		uint32_t stop = n;

		if (t->end <= at + i) {
			if (!next_row(t))
				return false;
			continue;
		}
		if (t->end < at + n)
			stop = (uint32_t)(t->end - at);
		if (!look_up(t, code + i, stop - i, out + i * t->item))
			return false;
		i = stop;
	}
	return true;
}

void pen__tables_unpack(const struct pen_cellnumbers *c, struct pen_bytes *in)
{
	struct tables t = { .r = c->rows, .item = pen_dtype_size(c->dtype) };
	uint8_t *out = c->to;
	uint32_t v[BLOCK];

	if (!c->rows || !open_tables(&t, in)) {
		in->bad = true;
		return;
	}
	for (uint32_t at = 0; at < c->n && !in->bad; at += BLOCK) {
		const uint32_t n = (uint32_t)block_of(c->n, at);

		pen__bitunpack(in, n, v);
		if (!in->bad && !take_block(&t, v, n, at, out + at * t.item))
			in->bad = true;
	}
}
