/*
 * Ranks variants by the rule of `penstock compare` (spread.h), so that noise
 * does not make a winner.
 */
#include <math.h>
#include <string.h>

#include "report/variants.h"

#define MOST_NAMES 4

/* Warm variants are not compared with cold ones. */
static bool takes_part(const struct pen_variants *a,
		       const struct pen_ranking *c, const struct pen_variant *m,
		       bool cold)
{
	return !m->wrong[0] && pen__line_true(m->row, "cold") == cold &&
	       (!c->group || !strcmp(m->group, c->group)) &&
	       (!c->takes || c->takes(a, m));
}

/* Collects the values of variants with enough runs in a->repeats. Selects the
 * variants first, because that uses a->buf. */
static size_t enter(const struct pen_variants *a, const struct pen_ranking *c,
		    bool cold)
{
	struct pen_repeats *r = a->repeats;
	size_t nentries = 0, n = 0, at = 0;

	for (size_t i = 0; i < a->n; i++) {
		a->v[i].alike = false;
		if (takes_part(a, c, &a->v[i], cold))
			a->entry[nentries++] = &a->v[i];
	}
	for (size_t i = 0; i < nentries; i++) {
		r[n].v = a->buf + at;
		r[n].n = pen__values_of(a, a->entry[i], c->key, r[n].v);
		if (r[n].n < PEN_LEAST_RUNS)
			continue;
		at += r[n].n;
		a->entry[n++] = a->entry[i];
	}
	return n;
}

struct pen_ranked pen__rank(const struct pen_variants *a,
			    const struct pen_ranking *c)
{
	const bool less = pen__measure_of(c->key)->less;
	struct pen_ranked out = { 0 };
	size_t at;

	for (int cold = c->cold; !out.n && cold < 2; cold++)
		out.n = enter(a, c, cold);
	if (!out.n)
		return out;
	at = pen__best_of(a->repeats, out.n, less, PEN_LEAST_CHANGE, a->flag);
	out.best = a->entry[at];
	for (size_t i = 0; i < out.n; i++) {
		a->entry[i]->alike = a->flag[i];
		out.nalike += a->flag[i];
	}
	return out;
}

static void put_value(struct pen_text *t, const struct pen_variants *a,
		      const struct pen_ranking *c, const struct pen_variant *m)
{
	const struct pen_range r = pen__range_of(a, m, c->key);
	const struct pen_measure *u = pen__measure_of(c->key);

	pen__text_add(t, "%s (%s", m->name, u->show(r.mid).s);
	if (u->show == pen__show_count)
		pen__text_add(t, " %.20s/s", pen__line_unit(m->row));
	pen__text_add(t, "%s", pen__show_spread(r, u->show).s);
	if (c->also && !isnan(pen__median_of(a, m, c->also)))
		pen__text_add(t, " %s %s", c->with,
			      pen__shown_of(a, m, c->also).s);
	pen__text_add(t, ")");
}

/* The best one not shown yet. */
static struct pen_variant *next_alike(const struct pen_variants *a,
				      const struct pen_ranking *c)
{
	const bool less = pen__measure_of(c->key)->less;
	struct pen_variant *best = NULL;
	double at = NAN;

	for (size_t i = 0; i < a->n; i++) {
		double v;

		if (!a->v[i].alike || a->flag[i])
			continue;
		v = pen__median_of(a, &a->v[i], c->key);
		if (best && (less ? v >= at : v <= at))
			continue;
		best = &a->v[i];
		at = v;
	}
	if (best)
		a->flag[best - a->v] = true;
	return best;
}

/* The variants equal to the best within noise, the best first. */
static void put_alike(struct pen_text *t, const struct pen_variants *a,
		      const struct pen_ranking *c, const struct pen_ranked *o)
{
	size_t shown = 0;

	for (size_t i = 0; i < a->n; i++)
		a->flag[i] = false;
	for (; shown < MOST_NAMES && shown < o->nalike; shown++) {
		pen__text_add(t, "%s", shown ? ", " : "");
		put_value(t, a, c, next_alike(a, c));
	}
	if (o->nalike > shown)
		pen__text_add(t, " and %zu more", o->nalike - shown);
}

const struct pen_variant *pen__put_best(struct pen_text *t,
					const struct pen_variants *a,
					const struct pen_ranking *c)
{
	const struct pen_ranked o = pen__rank(a, c);

	if (!o.best)
		return NULL;
	pen__text_add(t, "%s%s: %s", c->what,
		      pen__line_true(o.best->row, "cold") ? " (cold)" : "",
		      o.nalike > 1 ? "equal within noise: "
		      : o.n == 1   ? "only "
				   : "");
	put_alike(t, a, c, &o);
	pen__text_add(t, ".\n");
	return o.best;
}

void pen__put_leanest(struct pen_text *t, const struct pen_variants *a,
		      const struct pen_variant *best)
{
	static const char key[] = "own_memory_bytes";
	const struct pen_variant *lean = best;

	for (size_t i = 0; i < a->n; i++)
		if (a->v[i].alike && pen__median_of(a, &a->v[i], key) <
					     pen__median_of(a, lean, key))
			lean = &a->v[i];
	if (pen__change_of(a, best, lean, key).differs)
		pen__text_add(t, "Of these, %s uses the least memory.\n",
			      lean->name);
}
