/* Variants: grouping runs, checking them, and their figures. */
#include "report/variants.h"

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

bool pen__is_run(const struct pen_variant *m, const struct pen_line *r)
{
	return ran(r) && same(r, m->row, "setup");
}

/* ---- checks ---- */

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
			snprintf(why, cap, "%.0f samples instead of %.0f",
				 isnan(n) ? 0 : n, want);
			return true;
		}
	}
	for (size_t i = 0; i < 2; i++) {
		const char *got = pen__line_text(r, "content_sum");
		const char *want = pen__line_text(r, sum[i]);

		if (*want && strcmp(got, want) != 0) {
			snprintf(why, cap, "content %.20s instead of %.20s",
				 got, want);
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
		snprintf(why, cap, "samples were skipped or replaced");
		return true;
	}
	if (has_other_samples(r, why, cap))
		return true;
	if (pen__line_true(r, "wrong"))
		snprintf(why, cap, "different samples");
	return pen__line_true(r, "wrong");
}

bool pen__row_wrong(const struct pen_line *r)
{
	char why[200];

	return is_wrong(r, why, sizeof(why));
}

/* ---- names ---- */

/* Names of keys, if different. */
static const char *const words_of[][2] = {
	{ "load_s", "load" },
	{ "compute_s", "compute" },
	{ "cols", "columns" },
	{ "length", "blocks" },
};

/* The name of a group: "load 8.0 ms, compute 15 ms". */
static void name_group(struct pen_variant *m, const struct pen_versus *x)
{
	const size_t cap = sizeof(m->group);
	size_t at = 0;

	for (size_t i = 0; i < 3 && x->vars[i] && at < cap; i++) {
		const char *key = x->vars[i], *word = key;
		const struct pen_measure *u = pen__measure_of(key);
		const double value = pen__line_number(m->row, key);

		for (size_t k = 0; k < 4; k++)
			if (!strcmp(words_of[k][0], key))
				word = words_of[k][1];
		if (!u || !isnan(value))
			at += (size_t)snprintf(m->group + at, cap - at,
					       "%s%s %s", at ? ", " : "", word,
					       u ? u->show(value).s
						 : pen__line_text(m->row, key));
	}
}

/* The workers of penstock are threads, those of others are processes. */
static void name_workers(struct pen_variant *m, const char *of, double n)
{
	const bool threads = !strncmp(of, "penstock", 8);

	snprintf(m->name, sizeof(m->name), "%.60s, %.0f %s%s", of, n,
		 threads ? "thread" : "worker", n == 1 ? "" : "s");
	/* for narrow charts */
	snprintf(m->brief, sizeof(m->brief), "%.24s %.0f%c", of, n,
		 threads ? 't' : 'w');
}

static void name(struct pen_variant *m, const struct pen_kind *k)
{
	const struct pen_versus *x = k && k->versus.hero ? &k->versus : NULL;
	const char *of = pen__line_text(m->row, "arm");
	const double n = pen__line_number(m->row, "workers");

	if (x)
		name_group(m, x);
	else
		snprintf(m->group, sizeof(m->group), "%s",
			 pen__line_text(m->row, "group"));
	if (x && x->workers && n >= 0 && n < 1e6) {
		name_workers(m, of, n);
		return;
	}
	snprintf(m->name, sizeof(m->name), "%s", of);
	if (k && k->name)
		k->name(m);
	if (!m->brief[0])
		snprintf(m->brief, sizeof(m->brief), "%.39s", m->name);
}

static void check_of(const struct pen_kind *k, const struct pen_line *r,
		     char *buf, size_t cap)
{
	if (k && k->check)
		k->check(r, buf, cap);
	else
		snprintf(buf, cap, "%s", pen__line_text(r, "check"));
}

/* Two rows that differ are both doubtful: it is not known which one is right.
 */
static bool differs(const struct pen_variants *a, const struct pen_line *r,
		    char *why, size_t cap)
{
	char mine[200], theirs[200];

	check_of(a->kind, r, mine, sizeof(mine));
	for (size_t i = 0; mine[0] && i < a->nrows; i++) {
		struct pen_variant o = { .row = a->row[i] };

		check_of(a->kind, o.row, theirs, sizeof(theirs));
		if (!ran(o.row) || strcmp(mine, theirs) != 0 ||
		    !same(r, o.row, "settings") ||
		    (same(r, o.row, "content_sum") &&
		     same(r, o.row, "n_rows") && same(r, o.row, "nnz")))
			continue;
		name(&o, a->kind);
		snprintf(why, cap, "content %.16s differs from %.16s of %.60s",
			 pen__line_text(r, "content_sum"),
			 pen__line_text(o.row, "content_sum"), o.name);
		return true;
	}
	return false;
}

bool pen__same_group(const struct pen_variants *a, const struct pen_variant *m,
		     const struct pen_variant *o)
{
	const struct pen_kind *k = a->kind;
	const struct pen_versus *x = k && k->versus.hero ? &k->versus : NULL;

	if (!x)
		return !strcmp(m->group, o->group);
	for (size_t i = 0; i < 3 && x->vars[i]; i++)
		if (!same(m->row, o->row, x->vars[i]))
			return false;
	return true;
}

/* ---- grouping ---- */

static void fill(struct pen_variants *a, struct pen_variant *m)
{
	for (size_t i = 0; i < a->nrows; i++) {
		const struct pen_line *r = a->row[i];

		if (!pen__is_run(m, r))
			continue;
		m->n++;
		if (!m->wrong[0] && !is_wrong(r, m->wrong, sizeof(m->wrong)))
			differs(a, r, m->wrong, sizeof(m->wrong));
	}
	a->nwrong += m->wrong[0] != '\0';
	if (!m->n)
		snprintf(m->wrong, sizeof(m->wrong), "ran out of memory");
	name(m, a->kind);
}

static void order(struct pen_variants *a)
{
	size_t at = 0;

	for (size_t i = 0; i < a->n; i++) {
		size_t first = 0;

		while (!pen__same_group(a, &a->v[first], &a->v[i]))
			first++;
		for (size_t k = i; first == i && k < a->n; k++)
			if (pen__same_group(a, &a->v[i], &a->v[k]))
				a->by_group[at++] = k;
	}
}

/* In descending order; variants without the figure last. */
static void order_by(struct pen_variants *a, const char *key)
{
	for (size_t i = 0; i < a->n; i++)
		a->v[i].by = pen__median_of(a, &a->v[i], key);
	for (size_t i = 1; i < a->n; i++) {
		const size_t me = a->by_group[i];
		const double v = a->v[me].by;
		size_t k = i;

		for (; k > 0 && !isnan(v); k--) {
			const double o = a->v[a->by_group[k - 1]].by;

			if (o >= v)
				break;
			a->by_group[k] = a->by_group[k - 1];
		}
		a->by_group[k] = me;
	}
}

/* Whether any variant has a figure in this column; always for text. */
static bool has_figures(const struct pen_variants *a,
			const struct pen_figure_column *c)
{
	for (size_t i = 0; c->show && i < a->n; i++)
		if (!isnan(pen__median_of(a, &a->v[i], c->key)))
			return true;
	return !c->show;
}

static void set_columns(struct pen_variants *a, const char *text)
{
	struct pen_figure_column c[PEN_MOST_COLUMNS];
	const size_t n = pen__columns_parse(text, c);

	for (size_t i = 0; i < n; i++)
		if (has_figures(a, &c[i]))
			a->column[a->ncolumns++] = c[i];
}

int pen__variants_init(struct pen_variants *a, const struct pen_kind *kind,
		       const struct pen_line *const *row, size_t n,
		       struct pen_err *err)
{
	*a = (struct pen_variants){ .kind = kind, .row = row, .nrows = n };
	a->v = pen__calloc(n ? n : 1, sizeof(*a->v));
	a->by_group = pen__alloc(n ? n : 1, sizeof(*a->by_group));
	a->buf = pen__alloc(n ? n : 1, sizeof(*a->buf));
	a->repeats = pen__alloc(n ? n : 1, sizeof(*a->repeats));
	a->entry = pen__alloc(n ? n : 1, sizeof(struct pen_variant *));
	a->flag = pen__alloc(n ? n : 1, sizeof(*a->flag));
	if (!a->v || !a->by_group || !a->buf || !a->repeats || !a->entry ||
	    !a->flag) {
		pen__variants_fini(a);
		return pen__fail_nomem(err, "variants", n * sizeof(*a->v));
	}
	for (size_t i = 0; i < n; i++) {
		size_t k = 0;

		while (k < a->n && !same(a->v[k].row, row[i], "setup"))
			k++;
		if (k < a->n)
			continue;
		a->v[k].row = row[i];
		a->n++;
		fill(a, &a->v[k]);
	}
	order(a);
	if (kind && kind->by)
		order_by(a, kind->by);
	if (kind && kind->columns)
		set_columns(a, kind->columns);
	return 0;
}

void pen__variants_fini(struct pen_variants *a)
{
	pen__free(a->v);
	pen__free(a->by_group);
	pen__free(a->buf);
	pen__free(a->repeats);
	pen__free(a->entry);
	pen__free(a->flag);
	*a = (struct pen_variants){ 0 };
}

/* ---- figures ---- */

static const struct pen_measure units[] = {
	{ "bytes_per_byte", pen__show_number, true },
	{ "_per_million", pen__show_number, true },
	{ "bytes_per_s", pen__show_bytes, false },
	{ "_bytes", pen__show_bytes, true },
	{ "_per_s", pen__show_count, false },
	{ "_per_s_in_all", pen__show_count, false },
	{ "_per_s_rest", pen__show_count, false },
	{ "s_per_batch", pen__show_time, true },
	{ "s_per_sample", pen__show_time, true },
	{ "_s", pen__show_time, true },
	{ "seconds", pen__show_time, true },
	{ "_share", pen__show_share, true },
	{ "neighbours_kept", pen__show_share, true },
	{ "au", pen__show_percent, false },
	{ "n_eff", pen__show_number, false },
	{ "n_eff_expected", pen__show_number, false },
	{ "_entropy", pen__show_number, false },
	{ "batch", pen__show_whole, false },
	{ "rows", pen__show_whole, false },
	{ "cols", pen__show_whole, false },
	{ "chunks", pen__show_whole, false },
	{ "length", pen__show_whole, false },
	{ "workers", pen__show_whole, false },
	{ "nnz", pen__show_whole, false },
	{ "n_drops", pen__show_whole, false },
	{ "n_samples", pen__show_whole, false },
	{ "n_sequences", pen__show_whole, false },
	{ "batches_before", pen__show_whole, false },
	{ "batches_compared", pen__show_whole, false },
};

const struct pen_measure *pen__measure_of(const char *key)
{
	const size_t n = strlen(key);

	for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
		const size_t k = strlen(units[i].tail);

		if (n >= k && !strcmp(key + n - k, units[i].tail))
			return &units[i];
	}
	return NULL;
}

size_t pen__values_of(const struct pen_variants *a, const struct pen_variant *m,
		      const char *key, double *to)
{
	size_t n = 0;

	for (size_t i = 0; m && !m->wrong[0] && i < a->nrows; i++) {
		const double v = pen__line_number(a->row[i], key);

		if (!isnan(v) && pen__is_run(m, a->row[i]))
			to[n++] = v;
	}
	return n;
}

struct pen_range pen__range_of(const struct pen_variants *a,
			       const struct pen_variant *m, const char *key)
{
	return pen__range(a->buf, pen__values_of(a, m, key, a->buf));
}

struct pen_shown pen__shown_of(const struct pen_variants *a,
			       const struct pen_variant *m, const char *key)
{
	return pen__show_range(pen__range_of(a, m, key),
			       pen__measure_of(key)->show);
}

struct pen_change pen__change_of(const struct pen_variants *a,
				 const struct pen_variant *from,
				 const struct pen_variant *to, const char *key)
{
	/* variants do not share rows, so the buffer fits both */
	const size_t n = pen__values_of(a, from, key, a->buf);
	const size_t m = from == to ? 0
				    : pen__values_of(a, to, key, a->buf + n);

	return pen__change(a->buf, n, a->buf + n, m, PEN_LEAST_CHANGE);
}

struct pen_shown pen__part_of(const struct pen_variants *a,
			      const struct pen_variant *of,
			      const struct pen_variant *part, const char *key)
{
	const struct pen_change c = pen__change_of(a, of, part, key);

	if (!isfinite(c.share))
		return (struct pen_shown){ "-" };
	return c.differs ? pen__show_share(1 + c.share)
			 : (struct pen_shown){ "all (within noise)" };
}

double pen__median_of(const struct pen_variants *a, const struct pen_variant *m,
		      const char *key)
{
	return pen__range_of(a, m, key).mid;
}

const struct pen_variant *pen__variant_at(const struct pen_variants *a,
					  size_t i)
{
	return &a->v[a->kind->versus.hero || a->kind->by ? a->by_group[i] : i];
}

const struct pen_variant *pen__variant_find(const struct pen_variants *a,
					    const char *which,
					    const char *group)
{
	for (size_t i = 0; i < a->n; i++) {
		const struct pen_variant *m = &a->v[i];

		if (!m->wrong[0] &&
		    (!which || !strcmp(pen__line_text(m->row, "arm"), which)) &&
		    (!group || !strcmp(m->group, group)))
			return m;
	}
	return NULL;
}

const struct pen_variant *pen__variant_most(const struct pen_variants *a,
					    const char *key)
{
	const struct pen_variant *most = NULL;
	double at = 0;

	for (size_t i = 0; i < a->n; i++) {
		const double v = pen__median_of(a, &a->v[i], key);

		if (isnan(v) || (most && v <= at))
			continue;
		most = &a->v[i];
		at = v;
	}
	return most;
}
