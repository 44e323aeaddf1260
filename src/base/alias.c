/* See alias.h. The table is built by Vose's pairing, in O(n). */
#include "base/alias.h"

#include "base/mem.h"
#include "penstock.h"

static uint64_t largest(const double *w, uint64_t n)
{
	uint64_t top = 0;

	for (uint64_t i = 1; i < n; i++)
		if (w[i] > w[top])
			top = i;
	return top;
}

/* Shares of the mean, so that 1 fills a slot; relative to the largest weight
 * first, to avoid overflow. */
static void to_shares(const double *w, uint64_t n, double *share)
{
	const double most = w[largest(w, n)];
	long double sum = 0;
	double scale;

	for (uint64_t i = 0; i < n; i++) {
		share[i] = w[i] / most;
		sum += share[i];
	}
	scale = (double)((long double)n / sum);
	for (uint64_t i = 0; i < n; i++)
		share[i] *= scale;
}

/*
 * Slots with less than 1 are filled up from slots with more. todo holds the
 * small ones from its start and the large ones from its end.
 */
static void pair_up(struct pen_alias_slot *table, double *share, uint64_t *todo,
		    uint64_t n)
{
	uint64_t nsmall = 0, large = n;

	for (uint64_t i = 0; i < n; i++) {
		if (share[i] < 1)
			todo[nsmall++] = i;
		else
			todo[--large] = i;
	}
	while (nsmall && large < n) {
		const uint64_t lo = todo[--nsmall], hi = todo[large];

		table[lo].keep = (uint64_t)(share[lo] * 0x1p64);
		table[lo].other = hi;
		share[hi] -= 1 - share[lo];
		if (share[hi] < 1) {
			large++;
			todo[nsmall++] = hi;
		}
	}
	/* left over by rounding: full slots, which are their own other */
	for (; nsmall; nsmall--)
		table[todo[nsmall - 1]].other = todo[nsmall - 1];
	for (; large < n; large++)
		table[todo[large]].other = todo[large];
}

/* Rounding must not make an element of weight 0 a full slot. */
static void ban_zeroes(const double *w, uint64_t n,
		       struct pen_alias_slot *table)
{
	const uint64_t top = largest(w, n);

	for (uint64_t i = 0; i < n; i++)
		if (!(w[i] > 0) && table[i].other == i)
			table[i].other = top;
}

int pen__alias_init(struct pen_alias *a, const double *w, uint64_t n)
{
	double *share = pen__alloc(n, sizeof(*share));
	uint64_t *todo = pen__alloc(n, sizeof(*todo));
	int rc = 0;

	a->n = n;
	a->table = pen__calloc(n, sizeof(*a->table));
	if (share && todo && a->table) {
		to_shares(w, n, share);
		pair_up(a->table, share, todo, n);
		ban_zeroes(w, n, a->table);
	} else {
		rc = PEN_ENOMEM;
	}
	pen__free(todo);
	pen__free(share);
	return rc;
}

void pen__alias_fini(struct pen_alias *a)
{
	pen__free(a->table);
}
