/* See plan_pack.h. A placement sorts the lengths and, for each piece, searches
 * a bitmap for the row with the least sufficient room. */
#include "engine/plan_pack.h"

#include <string.h>

#include "base/mem.h"
#include "base/sort.h"

#define NONE UINT32_MAX

int pen__row_packer_new(struct pen_row_packer **out, uint32_t nrows,
			uint32_t pack, uint32_t cap, struct pen_err *err)
{
	struct pen_row_packer *p = pen__calloc(1, sizeof(*p));
	const size_t nbits = (size_t)pack + 1, nwords = nbits / 64 + 1;

	*out = p;
	if (!p)
		return pen__fail_nomem(err, "pack", sizeof(*p));
	p->nrows = nrows;
	p->pack = pack;
	p->cap = cap;
	p->piece = pen__alloc(cap, sizeof(*p->piece));
	p->order = pen__alloc(cap, sizeof(*p->order));
	p->ids = pen__alloc(cap, sizeof(*p->ids));
	p->key = pen__alloc(cap, sizeof(*p->key));
	p->tmp = pen__alloc(cap, sizeof(*p->tmp));
	p->room = pen__calloc(nrows, sizeof(*p->room));
	p->next = pen__calloc((size_t)nrows + 1, sizeof(*p->next));
	p->head = pen__alloc(nbits, sizeof(*p->head));
	p->bits = pen__calloc(nwords, sizeof(*p->bits));
	p->words = pen__calloc(nwords / 64 + 1, sizeof(*p->words));
	if (!p->piece || !p->order || !p->ids || !p->key || !p->tmp ||
	    !p->room || !p->next || !p->head || !p->bits || !p->words) {
		pen__row_packer_free(p);
		*out = NULL;
		return pen__fail_nomem(err, "pack", nbits + cap);
	}
	memset(p->head, 0xff, nbits * sizeof(*p->head));
	return 0;
}

void pen__row_packer_free(struct pen_row_packer *p)
{
	if (!p)
		return;
	pen__free(p->piece);
	pen__free(p->order);
	pen__free(p->ids);
	pen__free(p->key);
	pen__free(p->tmp);
	pen__free(p->room);
	pen__free(p->next);
	pen__free(p->head);
	pen__free(p->bits);
	pen__free(p->words);
	pen__free(p);
}

void pen__row_packer_clear(struct pen_row_packer *p)
{
	p->npieces = p->nsamples = 0;
	p->tokens = 0;
}

bool pen__row_packer_add(struct pen_row_packer *p, uint64_t len)
{
	const uint64_t all = (uint64_t)p->nrows * p->pack;
	const uint64_t took = p->split || len < p->pack ? len : p->pack;
	const uint64_t n = took > p->pack ? (took - 1) / p->pack + 1 : 1;

	if (took > all - p->tokens || n > p->cap - p->npieces)
		return false;
	for (uint64_t i = 0; i < n; i++) {
		const uint64_t left = took - i * p->pack;

		p->piece[p->npieces++] = (struct pen_piece){
			.skip = len > p->pack ? (int64_t)(i * p->pack)
					      : PEN_WHOLE,
			.sample = p->nsamples,
			.len = left < p->pack ? (uint32_t)left : p->pack,
		};
	}
	p->nsamples++;
	p->tokens += took;
	return true;
}

static void push(struct pen_row_packer *p, uint32_t row, uint32_t room)
{
	p->room[row] = room;
	p->next[row] = p->head[room];
	p->head[room] = row;
	p->bits[room / 64] |= UINT64_C(1) << room % 64;
	p->words[room / 4096] |= UINT64_C(1) << room / 64 % 64;
}

static void mark_empty(struct pen_row_packer *p, uint32_t room)
{
	p->head[room] = NONE;
	p->bits[room / 64] &= ~(UINT64_C(1) << room % 64);
	if (!p->bits[room / 64])
		p->words[room / 4096] &= ~(UINT64_C(1) << room / 64 % 64);
}

/* The first bit set at or after bit `at` of n words, or NONE. */
static uint32_t next_bit(const uint64_t *w, size_t n, uint32_t at)
{
	size_t i = at / 64;
	uint64_t v = i < n ? w[i] & ~UINT64_C(0) << at % 64 : 0;

	while (!v && ++i < n)
		v = w[i];
	return v ? (uint32_t)(i * 64 + (unsigned)__builtin_ctzll(v)) : NONE;
}

/* The least sufficient room. */
static uint32_t find(const struct pen_row_packer *p, uint32_t len)
{
	const size_t nwords = ((size_t)p->pack + 1) / 64 + 1;
	const uint64_t here = p->bits[len / 64] & ~UINT64_C(0) << len % 64;
	uint32_t word;

	if (here)
		return len / 64 * 64 + (unsigned)__builtin_ctzll(here);
	word = next_bit(p->words, nwords / 64 + 1, len / 64 + 1);
	if (word == NONE)
		return NONE;
	return word * 64 + (unsigned)__builtin_ctzll(p->bits[word]);
}

static uint32_t pop(struct pen_row_packer *p, uint32_t room)
{
	const uint32_t row = p->head[room];

	p->head[room] = p->next[row];
	if (p->head[room] == NONE)
		mark_empty(p, room);
	return row;
}

/* Empties all rows, the first one on top. */
static void clear_rows(struct pen_row_packer *p)
{
	for (uint32_t r = 0; r < p->nrows; r++)
		mark_empty(p, p->room[r]);
	for (uint32_t r = p->nrows; r-- > 0;)
		push(p, r, p->pack);
}

uint64_t pen__row_packer_place(struct pen_row_packer *p)
{
	uint64_t over = 0;

	clear_rows(p);
	for (uint32_t i = 0; i < p->npieces; i++)
		p->key[i] = (uint64_t)(p->pack - p->piece[i].len) << 32 | i;
	pen__sort_high(p->key, p->tmp, p->npieces);
	for (uint32_t i = 0; i < p->npieces; i++) {
		struct pen_piece *x = &p->piece[(uint32_t)p->key[i]];
		uint32_t room;

		x->row = x->start = 0;
		if (!x->len) /* takes no room: goes to the first row */
			continue;
		room = find(p, x->len);
		if (room == NONE) {
			over += x->len;
			continue;
		}
		x->row = pop(p, room);
		x->start = p->pack - room;
		p->room[x->row] = room - x->len;
		if (room > x->len)
			push(p, x->row, room - x->len);
	}
	return over;
}

void pen__row_packer_drop(struct pen_row_packer *p, uint64_t elements)
{
	uint64_t gone = 0;

	while (p->nsamples > 1 && gone < elements) {
		p->nsamples--;
		while (p->npieces &&
		       p->piece[p->npieces - 1].sample == p->nsamples)
			gone += p->piece[--p->npieces].len;
	}
	p->tokens -= gone;
}

/* Pieces of a row were placed from its start, so walking them in placement
 * order leaves only the rows to be sorted. Pieces without elements are in the
 * first row, and come first. */
void pen__row_packer_sort(struct pen_row_packer *p)
{
	uint32_t *at = p->next; /* its lists are no longer needed */
	uint32_t sum = 0, first = 0;

	memset(at, 0, ((size_t)p->nrows + 1) * sizeof(*at));
	for (uint32_t i = 0; i < p->npieces; i++) {
		if (p->piece[i].len)
			at[p->piece[i].row]++;
		else
			first++;
	}
	sum = first;
	for (uint32_t r = 0; r < p->nrows; r++) {
		const uint32_t n = at[r];

		at[r] = sum;
		sum += n;
	}
	first = 0;
	for (uint32_t i = 0; i < p->npieces; i++) {
		const uint32_t k = (uint32_t)p->key[i];

		if (p->piece[k].len)
			p->order[at[p->piece[k].row]++] = k;
		else
			p->order[first++] = k;
	}
}
