/* Medians, resampled intervals and ranks: see spread.h. */
#include "report/spread.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"

#define DRAWS 1000
#define MOST 4096 /* maximum number of repeats; more are thinned out */

static int order(const void *a, const void *b)
{
	const double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static double middle(const double *v, size_t n)
{
	if (!n)
		return NAN;
	return n % 2 ? v[n / 2] : (v[n / 2 - 1] + v[n / 2]) / 2;
}

double pen__median(double *v, size_t n)
{
	qsort(v, n, sizeof(*v), order);
	return middle(v, n);
}

/* The median of n draws with replacement from sorted v, from the number of
 * times that each was drawn. */
static double drawn_median(const double *v, size_t n, struct pen_rng *r,
			   uint32_t *count)
{
	size_t at = 0, seen;
	double low;

	memset(count, 0, n * sizeof(*count));
	for (size_t i = 0; i < n; i++)
		count[pen__mulhi(pen__rng_u64(r), n)]++;
	for (seen = count[0]; seen <= (n - 1) / 2;)
		seen += count[++at];
	low = v[at];
	while (seen <= n / 2)
		seen += count[++at];
	return (low + v[at]) / 2;
}

static void interval(const double *a, size_t na, const double *b, size_t nb,
		     struct pen_change *c)
{
	struct pen_rng r = pen__rng(na * 1000003 + nb, 1);
	double share[DRAWS];
	uint32_t room[MOST];

	for (size_t i = 0; i < DRAWS; i++) {
		const double from = drawn_median(a, na, &r, room);

		share[i] = drawn_median(b, nb, &r, room) / from - 1;
	}
	qsort(share, DRAWS, sizeof(*share), order);
	c->low = share[DRAWS / 40];
	c->high = share[DRAWS - 1 - DRAWS / 40];
}

/*
 * Counts the pairs with b above a: half if both are equal. Compared with chance
 * by the test of Mann and Whitney in its normal approximation, which is
 * conservative for small samples. Small samples must not overlap at all. With
 * three repeats per side chance alone separates them in one of ten cases: the
 * gap must be at least half of the larger range.
 */
static bool ranks_differ(const double *a, size_t na, const double *b, size_t nb)
{
	const double pairs = (double)na * (double)nb;
	double above = 0, z;

	for (size_t i = 0; i < na; i++)
		for (size_t k = 0; k < nb; k++)
			above += b[k] > a[i] ? 1.0 : b[k] == a[i] ? 0.5 : 0.0;
	if (above > 0 && above < pairs && (na < 5 || nb < 5))
		return false;
	if (na < 4 || nb < 4)
		return 2 * fmax(b[0] - a[na - 1], a[0] - b[nb - 1]) >=
		       fmax(a[na - 1] - a[0], b[nb - 1] - b[0]);
	if (na < 5 || nb < 5)
		return true;
	z = (fabs(above - pairs / 2) - 0.5) /
	    sqrt(pairs * (double)(na + nb + 1) / 12);
	return z > 2.4; /* 1 in 60: several figures are tested */
}

/* Sorts v and keeps at most MOST values, evenly spaced. */
static size_t settle(double *v, size_t n)
{
	qsort(v, n, sizeof(*v), order);
	if (n <= MOST)
		return n;
	for (size_t i = 0; i < MOST; i++)
		v[i] = v[i * n / MOST];
	return MOST;
}

struct pen_change pen__change(double *from, size_t nfrom, double *to,
			      size_t nto, double least)
{
	struct pen_change c = { .low = NAN, .high = NAN, .share = NAN };
	bool apart;

	nfrom = settle(from, nfrom);
	nto = settle(to, nto);
	c.from = middle(from, nfrom);
	c.to = middle(to, nto);
	if (isfinite(c.from) && isfinite(c.to) && c.from > 0)
		c.share = c.to / c.from - 1;
	if (!isfinite(c.share)) {
		c.why = !isfinite(c.from) || !isfinite(c.to) ? "not in both"
			: c.from == c.to		     ? "the same"
					 : "no share of zero";
		return c;
	}
	if (nfrom < 3 || nto < 3) {
		c.why = c.from == c.to ? "the same" : "too few repeats";
		return c;
	}
	if (from[0] <= 0 || to[0] < 0) {
		c.why = "no share of zero";
		return c;
	}
	interval(from, nfrom, to, nto, &c);
	apart = ranks_differ(from, nfrom, to, nto);
	c.differs = apart && (c.low > 0 || c.high < 0) &&
		    fabs(c.share) >= least;
	if (!c.differs)
		c.why = apart && fabs(c.share) < least ? "too small to matter"
						       : "within noise";
	return c;
}

size_t pen__best_of(const struct pen_repeats *r, size_t n, bool less,
		    double least, bool *alike)
{
	size_t best = n;
	double at = NAN;

	for (size_t i = 0; i < n; i++) {
		const double mid = pen__median(r[i].v, r[i].n);

		alike[i] = false;
		if (isnan(mid) || (best < n && (less ? mid >= at : mid <= at)))
			continue;
		best = i;
		at = mid;
	}
	for (size_t i = 0; best < n && i < n; i++)
		alike[i] = r[i].n &&
			   (i == best || !pen__change(r[best].v, r[best].n,
						      r[i].v, r[i].n, least)
						  .differs);
	return best;
}

size_t pen__choose(const struct pen_repeats *r, size_t n, size_t dflt,
		   double least, bool *alike)
{
	const size_t best = pen__best_of(r, n, false, least, alike);

	return dflt < n && alike[dflt] ? dflt : best;
}

struct pen_range pen__range(double *v, size_t n)
{
	struct pen_range r = { NAN, NAN, NAN, n };

	if (!n)
		return r;
	r.mid = pen__median(v, n);
	r.low = v[0];
	r.high = v[n - 1];
	return r;
}

struct pen_shown pen__show_spread(struct pen_range r,
				  struct pen_shown (*show)(double))
{
	const double off = fmax(r.high - r.mid, r.mid - r.low) / fabs(r.mid);
	struct pen_shown out = { "" };

	if (!isfinite(off) || off < 0.005)
		return out;
	if (off < 0.995)
		snprintf(out.s, sizeof(out.s), " +-%.0f %%", 100 * off);
	else /* more than 100 %: print the range instead */
		snprintf(out.s, sizeof(out.s), " (%.20s..%.20s)", show(r.low).s,
			 show(r.high).s);
	return out;
}

struct pen_shown pen__show_range(struct pen_range r,
				 struct pen_shown (*show)(double))
{
	struct pen_shown out = { "-" };

	if (!isnan(r.mid))
		snprintf(out.s, sizeof(out.s), "%.18s%.29s", show(r.mid).s,
			 pen__show_spread(r, show).s);
	return out;
}
