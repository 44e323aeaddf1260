/*
 * Places of numbers in their rows. The distances between the genes of a cell
 * take a few bits each and are stored across rows without separators. If rows
 * are not sorted, distances may take more space than the places.
 */
#include "codec/cellpack_int.h"

enum { STEPS = 1, PLACES }; /* how they are packed */

/* ---- packing ---- */

static void put_steps(const struct pen_cellrows *r, const uint32_t *places,
		      uint32_t count, struct pen_buf *out)
{
	uint32_t v[BLOCK], last = UINT32_MAX, row = 0;
	uint64_t end = row_end(r, 0);

	for (uint32_t at = 0; at < count; at += BLOCK) {
		const size_t n = block_of(count, at);

		for (size_t i = 0; i < n; i++) {
			for (; end <= at + i; end = row_end(r, ++row))
				last = UINT32_MAX;
			v[i] = places[at + i] - last - 1;
			last = places[at + i];
		}
		pen__cellpack_block(v, n, out);
	}
}

static void put_places(const uint32_t *places, uint32_t n, struct pen_buf *out)
{
	for (uint32_t at = 0; at < n; at += BLOCK)
		pen__cellpack_block(places + at, block_of(n, at), out);
}

static bool is_sorted(const struct pen_cellrows *r, const uint32_t *places,
		      uint32_t n)
{
	uint64_t end = row_end(r, 0);
	uint32_t row = 0;

	for (uint32_t i = 1; i < n; i++) {
		while (end < i)
			end = row_end(r, ++row);
		if (end != i && places[i] <= places[i - 1])
			return false;
	}
	return true;
}

/* Steps, unless rows are not sorted and places are smaller. */
static unsigned choose_places(const struct pen_cellrows *r,
			      const uint32_t *places, uint32_t n,
			      struct pen_buf *out)
{
	const size_t at = out->n;
	struct pen_buf other = { 0 };

	put_steps(r, places, n, out);
	if (is_sorted(r, places, n))
		return STEPS;
	put_places(places, n, &other);
	out->bad |= other.bad;
	if (out->bad || other.n >= out->n - at) {
		pen__buf_fini(&other);
		return STEPS;
	}
	out->n = at;
	pen__buf_put(out, other.p, other.n);
	pen__buf_fini(&other);
	return PLACES;
}

void pen__places_pack(const struct pen_cellrows *r, const uint32_t *places,
		      uint32_t n, struct pen_buf *out)
{
	const size_t at = pen__cellpack_begin(out);

	pen__cellpack_end(out, at, choose_places(r, places, n, out));
}

/* ---- unpacking ---- */

typedef uint32_t uvec __attribute__((vector_size(16)));

/* Sums n steps, starting at `last`, four at a time. */
static uint32_t walk(const uint32_t *step, uint32_t n, uint32_t last,
		     uint32_t *out)
{
	const uvec none = { 0 };
	uint32_t i = 0;
	uvec x;

	for (; i + 4 <= n; i += 4) {
		memcpy(&x, step + i, sizeof(x));
		x += 1;
		x += __builtin_shufflevector(x, none, 4, 0, 1, 2);
		x += __builtin_shufflevector(x, none, 4, 5, 0, 1);
		x += last;
		memcpy(out + i, &x, sizeof(x));
		last = x[3];
	}
	for (; i < n; i++)
		out[i] = last += step[i] + 1;
	return last;
}

/* State of unpacking blocks of places. */
struct taking {
	const struct pen_cellplaces *c;
	uint32_t last, row;
	uint64_t end; /* of the row */
};

/* Converts n steps to places, restarting at every row. */
static void add_steps(struct taking *t, const uint32_t *v, uint32_t n,
		      uint64_t at, uint32_t *out)
{
	uint32_t i = 0;

	while (i < n) {
		uint32_t stop = n;

		/* also before i, if rows are damaged */
		if (t->end <= at + i) {
			t->end = row_end(t->c->rows, ++t->row);
			t->last = UINT32_MAX;
			continue;
		}
		if (t->end < at + n)
			stop = (uint32_t)(t->end - at);
		t->last = walk(v + i, stop - i, t->last, out + i);
		i = stop;
	}
}

static bool take_blocks(const struct pen_cellplaces *c, bool steps,
			struct pen_bytes *in)
{
	struct taking t = { .c = c,
			    .last = UINT32_MAX,
			    .end = row_end(c->rows, 0) };
	uint32_t v[BLOCK], w[BLOCK];
	bool fits = true;

	for (uint32_t at = 0; at < c->n; at += BLOCK) {
		const uint32_t n = (uint32_t)block_of(c->n, at);
		uint32_t *to = c->width == 4 ? (uint32_t *)c->to + at : w;

		pen__bitunpack(in, n, v);
		if (in->bad)
			return false;
		if (steps)
			add_steps(&t, v, n, at, to);
		else
			memcpy(to, v, n * sizeof(*v));
		if (c->width != 4)
			fits &= pen__cellpack_narrow(
				w, 0, n, 2, (uint8_t *)c->to + (size_t)at * 2);
	}
	return fits;
}

int pen__places_unpack(const struct pen_cellplaces *c, const uint8_t *p,
		       size_t len, const char **why)
{
	struct pen_bytes in = pen__bytes(p, len);
	const int how = pen__cellpack_open(&in, PLACES, why);

	if ((how != STEPS && how != PLACES) ||
	    !take_blocks(c, how == STEPS, &in) || pen__bytes_left(&in))
		return PEN_EDATA;
	return 0;
}
