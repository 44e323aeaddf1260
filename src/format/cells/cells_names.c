/*
 * A hash table of names (genes, categories): each gets a number, in order of
 * insertion. The strings are not copied.
 */
#include "base/mem.h"
#include "base/rng.h"
#include "format/cells/cells.h"

bool pen__cells_table_init(struct pen_cells_table *t, uint32_t cap)
{
	uint32_t nslots = 16;

	*t = (struct pen_cells_table){ .cap = cap ? cap : 1 };
	while (nslots / 2 < t->cap && nslots < UINT32_C(1) << 31)
		nslots *= 2;
	t->mask = nslots - 1;
	t->s = pen__alloc(t->cap, sizeof(*t->s));
	t->hash = pen__alloc(t->cap, sizeof(*t->hash));
	t->key = pen__alloc(t->cap, sizeof(*t->key));
	t->slot = pen__calloc(nslots, sizeof(*t->slot));
	return t->s && t->hash && t->key && t->slot;
}

void pen__cells_table_fini(struct pen_cells_table *t)
{
	pen__free(t->s);
	pen__free(t->hash);
	pen__free(t->key);
	pen__free(t->slot);
	*t = (struct pen_cells_table){ 0 };
}

uint64_t pen__cells_hash(struct pen_span s)
{
	uint64_t h = s.n, v;

	for (; s.n >= 8; s.n -= 8, s.p += 8) {
		memcpy(&v, s.p, 8);
		h = pen__mix64(h ^ v) + 0x9e3779b97f4a7c15u;
	}
	v = 0;
	if (s.n)
		memcpy(&v, s.p, s.n);
	return pen__mix64(h ^ v);
}

static bool is_same(const struct pen_cells_table *t, uint32_t id,
		    struct pen_span s)
{
	const struct pen_cells_key *k = &t->key[id];

	if (k->n != s.n)
		return false;
	return s.n <= sizeof(k->text) ? !s.n || !memcmp(k->text, s.p, s.n)
				      : !memcmp(t->s[id].p, s.p, s.n);
}

uint32_t pen__cells_table_find(const struct pen_cells_table *t,
			       struct pen_span s, uint64_t hash)
{
	const uint32_t tag = (uint32_t)(hash >> 32);

	for (uint32_t i = (uint32_t)hash & t->mask; t->slot[i].id;
	     i = (i + 1) & t->mask) {
		const uint32_t id = t->slot[i].id - 1;

		if (t->slot[i].tag == tag && is_same(t, id, s))
			return id;
	}
	return PEN_CELLS_NONE;
}

static void put_slot(struct pen_cells_table *t, uint32_t id)
{
	uint32_t i = (uint32_t)t->hash[id] & t->mask;

	while (t->slot[i].id)
		i = (i + 1) & t->mask;
	t->slot[i].tag = (uint32_t)(t->hash[id] >> 32);
	t->slot[i].id = id + 1;
}

static bool grow(struct pen_cells_table *t)
{
	struct pen_cells_table to;

	if (t->cap > UINT32_MAX / 4 ||
	    !pen__cells_table_init(&to, t->cap * 2)) {
		if (t->cap <= UINT32_MAX / 4)
			pen__cells_table_fini(&to);
		return false;
	}
	memcpy(to.s, t->s, t->n * sizeof(*t->s));
	memcpy(to.hash, t->hash, t->n * sizeof(*t->hash));
	memcpy(to.key, t->key, t->n * sizeof(*t->key));
	for (; to.n < t->n; to.n++)
		put_slot(&to, to.n);
	pen__cells_table_fini(t);
	*t = to;
	return true;
}

uint32_t pen__cells_table_add(struct pen_cells_table *t, struct pen_span s,
			      uint64_t hash)
{
	const uint32_t id = pen__cells_table_find(t, s, hash);

	if (id != PEN_CELLS_NONE)
		return id;
	if (s.n > UINT32_MAX || (t->n == t->cap && !grow(t)))
		return PEN_CELLS_NONE;
	t->s[t->n] = s;
	t->hash[t->n] = hash;
	t->key[t->n].n = (uint32_t)s.n;
	if (s.n && s.n <= sizeof(t->key->text))
		memcpy(t->key[t->n].text, s.p, s.n);
	put_slot(t, t->n);
	return t->n++;
}

void pen__cells_table_near(const struct pen_cells_table *t,
			   const uint64_t *hash, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		__builtin_prefetch(&t->slot[(uint32_t)hash[i] & t->mask]);
	for (uint32_t i = 0; i < n; i++) {
		const uint32_t id = t->slot[(uint32_t)hash[i] & t->mask].id;

		__builtin_prefetch(&t->key[id ? id - 1 : 0]);
	}
}

static struct pen_span trim(const uint8_t *p, size_t n)
{
	for (; n && (*p == ' ' || *p == '\t'); n--)
		p++;
	while (n && (p[n - 1] == ' ' || p[n - 1] == '\t' || p[n - 1] == '\r'))
		n--;
	return (struct pen_span){ p, n };
}

int pen__cells_table_lines(struct pen_cells_table *t,
			   const struct pen_buf *list, struct pen_err *err)
{
	struct pen_bytes b = pen__bytes(list->p, list->n);

	while (pen__bytes_left(&b) && t->n < PEN_CELLS_GENES) {
		const uint8_t *nl = memchr(b.p, '\n', pen__bytes_left(&b));
		const size_t n = nl ? (size_t)(nl - b.p) : pen__bytes_left(&b);
		const uint32_t before = t->n;
		struct pen_span s = trim(pen__take(&b, n), n);
		uint32_t id;

		pen__take(&b, nl != NULL);
		if (!s.n)
			continue;
		id = pen__cells_table_add(t, s, pen__cells_hash(s));
		if (id == PEN_CELLS_NONE)
			return pen__fail_nomem(err, "genes", list->n);
		if (id < before)
			return pen__fail(err, P_BAD_DATA_VALUE, "genes",
					 "gene '%.*s' is listed twice",
					 s.n < 100 ? (int)s.n : 100,
					 (const char *)s.p);
	}
	return 0;
}
