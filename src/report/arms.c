/* Arms: runs taken together, and which of them are right. */
#include "report/arms.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

static bool same(const struct pen_line *a, const struct pen_line *b,
		 const char *key)
{
	return !strcmp(pen__line_text(a, key), pen__line_text(b, key));
}

static bool has(const struct pen_line *r, const char *key)
{
	return pen__line_text(r, key)[0] != '\0';
}

static bool ran(const struct pen_line *r)
{
	return !pen__line_true(r, "oom");
}

bool pen__arms_is_run(const struct pen_arm *m, const struct pen_line *r)
{
	return ran(r) && same(r, m->row, "setup");
}

/* ---- is it right? ---- */

static bool has_other_samples(const struct pen_line *r, char *why, size_t cap)
{
	static const char *const count[][2] = {
		{ "n_rows", "expected_rows" },
		{ "n_samples", "wanted_samples" },
	};
	static const char *const sum[] = { "expected_sum", "wanted_sum" };

	for (size_t i = 0; i < 2; i++) {
		const double n = pen__line_number(r, count[i][0]);
		const double want = pen__line_number(r, count[i][1]);

		if (!isnan(want) && n != want) {
			snprintf(why, cap, "%.0f samples, not %.0f",
				 isnan(n) ? 0 : n, want);
			return true;
		}
	}
	for (size_t i = 0; i < 2; i++) {
		const char *got = pen__line_text(r, "content_sum");
		const char *want = pen__line_text(r, sum[i]);

		if (*want && strcmp(got, want) != 0) {
			snprintf(why, cap, "content %.20s, not %.20s", got,
				 want);
			return true;
		}
	}
	return false;
}

static bool is_wrong(const struct pen_line *r, char *why, size_t cap)
{
	const struct pen_cell *said = pen__line_find(r, "wrong");

	if (said && said->kind == PEN_CELL_TEXT && has(r, "wrong")) {
		snprintf(why, cap, "%s", pen__line_text(r, "wrong"));
		return true;
	}
	if (pen__line_number(r, "n_skipped") > 0 ||
	    pen__line_number(r, "n_substituted") > 0) {
		snprintf(why, cap, "samples were left out or replaced");
		return true;
	}
	if (has_other_samples(r, why, cap))
		return true;
	if (pen__line_true(r, "wrong"))
		snprintf(why, cap, "other samples");
	return pen__line_true(r, "wrong");
}

bool pen__arms_row_wrong(const struct pen_line *r)
{
	char why[200];

	return is_wrong(r, why, sizeof(why));
}

/* Two arms that differ are both in doubt: nobody knows which one is right. */
static bool differs(const struct pen_arms *a, const struct pen_line *r,
		    char *why, size_t cap)
{
	for (size_t i = 0; has(r, "check") && i < a->n; i++) {
		const struct pen_line *o = a->row[i];

		if (!ran(o) || !same(r, o, "check") ||
		    !same(r, o, "settings") ||
		    (same(r, o, "content_sum") && same(r, o, "n_rows")))
			continue;
		snprintf(why, cap, "content %.16s, but %.16s with %.60s",
			 pen__line_text(r, "content_sum"),
			 pen__line_text(o, "content_sum"),
			 pen__line_text(o, "arm"));
		return true;
	}
	return false;
}

/* ---- names ---- */

static const struct variable {
	const char *key, *name;
	struct pen_shown (*show)(double);
} variables[] = {
	{ "load_s", "load", pen__show_time },
	{ "compute_s", "compute", pen__show_time },
	{ "rows", "rows", pen__show_whole },
	{ "cols", "columns", pen__show_whole },
	{ "length", "blocks", pen__show_whole },
	{ "workers", "workers", pen__show_whole },
	{ NULL, NULL, NULL },
};

/* "load 8.0 ms, compute 15 ms": what is compared. */
static void name_group(struct pen_arm *m, const struct pen_versus *x)
{
	const size_t cap = sizeof(m->group);
	size_t at = 0;

	for (size_t i = 0; i < 3 && x->vars[i] && at < cap; i++) {
		const struct variable *v = variables;
		const char *key = x->vars[i], *between = at ? ", " : "";
		const double value = pen__line_number(m->row, key);
		int n = 0;

		while (v->key && strcmp(v->key, key) != 0)
			v++;
		if (!v->key)
			n = snprintf(m->group + at, cap - at, "%s%s %s",
				     between, key, pen__line_text(m->row, key));
		else if (!isnan(value))
			n = snprintf(m->group + at, cap - at, "%s%s %s",
				     between, v->name, v->show(value).s);
		at += n > 0 ? (size_t)n : 0;
	}
}

/* Ours are threads, from Python too; theirs are processes. */
static void name_workers(struct pen_arm *m, const char *arm, double n)
{
	const bool threads = !strncmp(arm, "penstock", 8);

	snprintf(m->name, sizeof(m->name), "%.60s, %.0f %s%s", arm, n,
		 threads ? "thread" : "worker", n == 1 ? "" : "s");
	/* for charts on a phone */
	snprintf(m->brief, sizeof(m->brief), "%.24s %.0f%c", arm, n,
		 threads ? 't' : 'w');
}

static void name(struct pen_arm *m, const struct pen_versus *x)
{
	const char *arm = pen__line_text(m->row, "arm");
	const double n = pen__line_number(m->row, "workers");

	if (x)
		name_group(m, x);
	else
		snprintf(m->group, sizeof(m->group), "%s",
			 pen__line_text(m->row, "group"));
	if (x && x->workers && n >= 0 && n < 1e6) {
		name_workers(m, arm, n);
		return;
	}
	snprintf(m->name, sizeof(m->name), "%s", arm);
	snprintf(m->brief, sizeof(m->brief), "%s", arm);
}

bool pen__arms_together(const struct pen_arms *a, const struct pen_arm *m,
			const struct pen_arm *o)
{
	const struct pen_versus *x = a->kind ? a->kind->versus : NULL;

	if (!x)
		return !strcmp(m->group, o->group);
	for (size_t i = 0; i < 3 && x->vars[i]; i++)
		if (!same(m->row, o->row, x->vars[i]))
			return false;
	return true;
}

/* ---- together ---- */

static void fill(struct pen_arms *a, struct pen_arm *m)
{
	for (size_t i = 0; i < a->n; i++) {
		const struct pen_line *r = a->row[i];

		if (!pen__arms_is_run(m, r))
			continue;
		m->n++;
		if (!m->wrong[0] && !is_wrong(r, m->wrong, sizeof(m->wrong)))
			differs(a, r, m->wrong, sizeof(m->wrong));
	}
	a->nwrong += m->wrong[0] != '\0';
	if (!m->n)
		snprintf(m->wrong, sizeof(m->wrong), "ran out of memory");
	name(m, a->kind ? a->kind->versus : NULL);
}

static void order(struct pen_arms *a)
{
	size_t at = 0;

	for (size_t i = 0; i < a->narms; i++) {
		size_t first = 0;

		while (!pen__arms_together(a, &a->arm[first], &a->arm[i]))
			first++;
		for (size_t k = i; first == i && k < a->narms; k++)
			if (pen__arms_together(a, &a->arm[i], &a->arm[k]))
				a->by_group[at++] = k;
	}
}

int pen__arms_init(struct pen_arms *a, const struct pen_kind *kind,
		   const struct pen_line *const *row, size_t n,
		   struct pen_err *err)
{
	*a = (struct pen_arms){ .kind = kind, .row = row, .n = n };
	a->arm = pen__calloc(n ? n : 1, sizeof(*a->arm));
	a->by_group = pen__alloc(n ? n : 1, sizeof(*a->by_group));
	a->buf = pen__alloc(n ? n : 1, sizeof(*a->buf));
	if (!a->arm || !a->by_group || !a->buf) {
		pen__arms_fini(a);
		return pen__fail_nomem(err, "arms", n * sizeof(*a->arm));
	}
	for (size_t i = 0; i < n; i++) {
		size_t k = 0;

		while (k < a->narms && !same(a->arm[k].row, row[i], "setup"))
			k++;
		if (k < a->narms)
			continue;
		a->arm[k].row = row[i];
		a->narms++;
		fill(a, &a->arm[k]);
	}
	order(a);
	return 0;
}

void pen__arms_fini(struct pen_arms *a)
{
	pen__free(a->arm);
	pen__free(a->by_group);
	pen__free(a->buf);
	*a = (struct pen_arms){ 0 };
}

/* ---- figures ---- */

double pen__arms_get(const struct pen_arms *a, const struct pen_arm *m,
		     const char *key, enum pen_of of)
{
	double mid;
	size_t n = 0;

	for (size_t i = 0; !m->wrong[0] && i < a->n; i++) {
		const double v = pen__line_number(a->row[i], key);

		if (!isnan(v) && pen__arms_is_run(m, a->row[i]))
			a->buf[n++] = v;
	}
	if (!n)
		return NAN;
	mid = pen__median(a->buf, n);
	if (of == PEN_MEDIAN)
		return mid;
	if (of == PEN_SPREAD)
		return n > 1 && mid > 0 ? (a->buf[n - 1] - a->buf[0]) / mid
					: NAN;
	return a->buf[of == PEN_LOWEST ? 0 : n - 1];
}

double pen__arms_median(const struct pen_arms *a, const struct pen_arm *m,
			const char *key)
{
	return m ? pen__arms_get(a, m, key, PEN_MEDIAN) : NAN;
}

const struct pen_arm *pen__arms_find(const struct pen_arms *a,
				     const char *which, const char *group)
{
	for (size_t i = 0; i < a->narms; i++) {
		const struct pen_arm *m = &a->arm[i];

		if (!m->wrong[0] &&
		    (!which || !strcmp(pen__line_text(m->row, "arm"), which)) &&
		    (!group || !strcmp(m->group, group)))
			return m;
	}
	return NULL;
}

const struct pen_arm *pen__arms_best(const struct pen_arms *a, const char *key,
				     bool smallest)
{
	const struct pen_arm *best = NULL;
	double at = 0;

	for (size_t i = 0; i < a->narms; i++) {
		const double v = pen__arms_median(a, &a->arm[i], key);

		if (isnan(v) || (best && (smallest ? v >= at : v <= at)))
			continue;
		best = &a->arm[i];
		at = v;
	}
	return best;
}
