/* The table: what the page of `penstock report` has, for a terminal. */
#include "cli/race_print.h"

#include <string.h>

#include "base/mem.h"
#include "cli/race.h"
#include "report/arms.h"

static void print_header(const struct pen_arm_kind *k)
{
	printf("\n  %-38s", "");
	for (size_t f = 0; f < PEN_ARM_FIGURES; f++)
		if (k->figure[f].key)
			printf(" %14s", k->figure[f].title);
	printf("   (lowest to highest)\n");
}

static void print_case(const struct pen_arm_kind *k,
		       const struct pen_arm_case *c)
{
	char name[160];

	pen__arm_name(k, c->row, name, sizeof(name));
	printf("    %-36s", name);
	if (c->nwrong) {
		printf(" WRONG: %s samples, not %s, or another content (%s, "
		       "not %s)\n",
		       pen__line_text(c->row, "n_samples"),
		       pen__line_text(c->row, "wanted_samples"),
		       pen__line_text(c->row, "content_sum"),
		       pen__line_text(c->row, "wanted_sum"));
		return;
	}
	if (!c->n) {
		puts(" ran out of memory");
		return;
	}
	for (size_t f = 0; f < PEN_ARM_FIGURES; f++)
		if (k->figure[f].key)
			printf(" %14s", k->figure[f].show(c->value[f]).s);
	printf("   (%s to %s)\n", k->figure[0].show(c->low).s,
	       k->figure[0].show(c->high).s);
}

/* Groups one after another, in the order they first came in. */
static void print_cases(const struct pen_arm_kind *k,
			const struct pen_arm_case *c, size_t n)
{
	char group[160], other[160];

	for (size_t i = 0; i < n; i++) {
		size_t first = 0;

		pen__arm_group(k, c[i].row, group, sizeof(group));
		for (; first < i; first++) {
			pen__arm_group(k, c[first].row, other, sizeof(other));
			if (!strcmp(group, other))
				break;
		}
		if (first < i)
			continue;
		printf("  %s\n", group);
		for (size_t j = i; j < n; j++) {
			pen__arm_group(k, c[j].row, other, sizeof(other));
			if (!strcmp(group, other))
				print_case(k, &c[j]);
		}
	}
}

static void print_words(const struct pen_arm_kind *k,
			const struct pen_arm_case *c, size_t n)
{
	struct pen_text t = { 0 };

	pen__arm_words(&t, k, c, n);
	for (char *p = t.p, *end; p && *p; p = end + 1) {
		end = strchr(p, '\n');
		*end = '\0';
		printf("\n  ");
		print_wrapped(stdout, p, 2, 2);
	}
	pen__text_fini(&t);
}

void race_print(const struct race *r)
{
	const struct pen_arm_kind *k = pen__arm_kind(r->name);
	struct pen_group g = { .n = r->results.n };
	struct pen_err err = { 0 };
	struct pen_arm_case *c;
	size_t n;

	if (!g.n)
		return;
	g.row = pen__calloc(g.n, sizeof(*g.row));
	for (size_t i = 0; g.row && i < g.n; i++)
		g.row[i] = &r->results.row[i];
	if (!g.row || pen__arm_cases(k, &g, &c, &n, &err)) {
		pen__fail_nomem(&err, "table", g.n * sizeof(*g.row));
		complain(&err);
		pen__free(g.row);
		return;
	}
	print_header(k);
	print_cases(k, c, n);
	print_words(k, c, n);
	pen__free(c);
	pen__free(g.row);
}
