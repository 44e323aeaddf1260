/* tune: the answer, for people and for programs. */
#include "cli/tune.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "cli/cli.h"
#include "report/spread.h"

const char *tune_name(const struct candidate *c)
{
	static char name[TUNE_SETTINGS * 65];
	size_t at = 0;

	for (size_t i = 0; i < c->n; i++)
		at += (size_t)snprintf(name + at, sizeof(name) - at, "%s%s",
				       i ? " " : "", c->set[i]);
	return c->n ? name : "defaults";
}

bool tune_better(const struct candidate *c, const struct candidate *dflt)
{
	double from[TUNE_RUNS], to[TUNE_RUNS];
	struct pen_change by;

	memcpy(from, dflt->rate, dflt->nruns * sizeof(*from));
	memcpy(to, c->rate, c->nruns * sizeof(*to));
	by = pen__change(from, dflt->nruns, to, c->nruns, TUNE_LEAST);
	return by.differs && by.share > 0;
}

struct candidate *tune_default(struct tune *t, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (t->c[i].is_default)
			return &t->c[i];
	return NULL;
}

/* The settings to recommend, by the rule that all commands use. */
static const struct candidate *choose(struct tune *t, size_t n)
{
	static double room[TUNE_MOST][TUNE_RUNS];
	struct pen_repeats r[TUNE_MOST] = { 0 };
	bool alike[TUNE_MOST];
	size_t dflt = n, at;

	for (size_t i = 0; i < n; i++) {
		const struct candidate *c = &t->c[i];

		/* a candidate that failed once is out */
		r[i] = (struct pen_repeats){ room[i],
					     isnan(c->median) ? 0 : c->nruns };
		memcpy(room[i], c->rate, r[i].n * sizeof(**room));
		dflt = c->is_default && r[i].n ? i : dflt;
	}
	at = pen__choose(r, n, dflt, TUNE_LEAST, alike);
	for (size_t i = 0; i < n; i++)
		t->c[i].alike = alike[i];
	return &t->c[at];
}

static void print_yaml(const struct tune *t, const struct candidate *c)
{
	printf("\nAs YAML:\n");
	if (!c->n)
		printf("  # the defaults\n");
	for (size_t i = 0; i < c->n; i++) {
		const char *eq = strchr(c->set[i], '=');
		const char *dot = strrchr(c->set[i], '.');

		if (t->workload && dot && dot < eq) {
			if (!i)
				printf("  reader:\n");
			printf("    %.*s: %s\n", (int)(eq - dot - 1), dot + 1,
			       eq + 1);
		} else {
			printf("  %.*s: %s\n", (int)(eq - c->set[i]), c->set[i],
			       eq + 1);
		}
	}
}

static bool is_word(const char *v)
{
	char *end;

	(void)strtod(v, &end);
	return (end == v || *end) && strcmp(v, "true") && strcmp(v, "false");
}

/* Adds "key=value" to the arguments, or if the key has a dot to the others,
 * which are passed as a dictionary. */
static void put_argument(struct pen_text *args, struct pen_text *others,
			 const char *set)
{
	const char *eq = strchr(set, '=');
	struct pen_text *t = args;

	if (!eq)
		return; /* another path */
	if (memchr(set, '.', (size_t)(eq - set))) {
		t = others;
		pen__text_add(t, ", %s\"%.*s\": ", t->n ? "" : "**{",
			      (int)(eq - set), set);
	} else {
		pen__text_add(t, ", %.*s=", (int)(eq - set), set);
	}
	if (is_word(eq + 1))
		pen__json_quote(t, eq + 1); /* also valid as a Python string */
	else
		pen__text_add(t, "%s",
			      !strcmp(eq + 1, "true")	 ? "True"
			      : !strcmp(eq + 1, "false") ? "False"
							 : eq + 1);
}

static void print_python(const struct tune *t, const struct candidate *c)
{
	struct pen_text args = { .ascii = true }, others = { .ascii = true };

	if (t->workload)
		return;
	pen__json_quote(&args, t->target);
	for (size_t i = 0; i < t->nfixed; i++)
		put_argument(&args, &others, t->fixed[i]);
	for (size_t i = 0; i < c->n; i++)
		put_argument(&args, &others, c->set[i]);
	printf("In Python:\n  penstock.Loader(%s%s%s)\n", args.p ? args.p : "",
	       others.n ? others.p : "", others.n ? "}" : "");
	pen__text_fini(&args);
	pen__text_fini(&others);
}

static void print_alike(const struct tune *t, size_t n)
{
	size_t shown = 0;

	for (size_t i = 0; i < n; i++)
		if (t->c[i].alike)
			printf("%s%s", shown++ ? "; " : "",
			       tune_name(&t->c[i]));
	printf(".%s\n", shown > 1 ? " The first one is used." : "");
}

static void print_verdict(struct tune *t, size_t n,
			  const struct candidate *best)
{
	const struct candidate *dflt = tune_default(t, n);
	size_t nalike = 0;

	for (size_t i = 0; i < n; i++)
		nalike += t->c[i].alike;
	if (dflt == best) {
		printf("\nNothing beats the defaults beyond noise; keep "
		       "them.\n");
		return;
	}
	if (dflt && isnan(dflt->median))
		printf("\nThe defaults do not work here.\n");
	else if (dflt)
		printf("\n%.2f times as fast as the defaults:\n",
		       best->median / dflt->median);
	printf("%s", nalike > 1 ? "These are equally fast: " : "Best: ");
	print_alike(t, n);
}

static void print_text(struct tune *t, size_t n)
{
	const struct candidate *best = choose(t, n);

	print_others(&t->others);
	printf("%s: %s tried in %s, %s\n", shown(t->target),
	       counted(t->n, "setting"), counted(t->runs, "run"),
	       human_time((double)(pen__now_ns() - t->start_ns) / 1e9));
	if (t->failed)
		printf("  (%s failed: %s)\n", counted(t->failed, "run"),
		       shown(t->why));
	printf("\n  %12s %21s  %s\n", "samples/s", "lowest .. highest",
	       "settings");
	for (size_t i = 0; i < n; i++) {
		const struct candidate *c = &t->c[i];
		double sorted[TUNE_RUNS];

		if (isnan(c->median))
			continue;
		memcpy(sorted, c->rate, c->nruns * sizeof(*sorted));
		pen__median(sorted, c->nruns);
		printf("  %12s %9s .. %9s  %s\n", human_count(c->median),
		       human_count(sorted[0]),
		       human_count(sorted[c->nruns - 1]), tune_name(c));
	}
	print_verdict(t, n, best);
	print_yaml(t, best);
	print_python(t, best);
}

static void json_settings(struct pen_text *j, const char *key,
			  const struct candidate *c)
{
	pen__json_open(j, key, '[');
	for (size_t k = 0; k < c->n; k++)
		pen__json_str(j, NULL, c->set[k]);
	pen__json_close(j, ']');
}

/* Prints the candidates of a dry run. */
int tune_print_plan(const struct tune *t)
{
	struct pen_text j = { 0 };

	for (size_t i = 0; i < t->n && !t->json; i++)
		printf("%s\n", tune_name(&t->c[i]));
	if (!t->json)
		return EXIT_OK;
	pen__json_open(&j, NULL, '{');
	pen__json_str(&j, "schema", "penstock.tune_plan/1");
	pen__json_str(&j, "target", t->target);
	pen__json_open(&j, "candidates", '[');
	for (size_t i = 0; i < t->n; i++)
		json_settings(&j, NULL, &t->c[i]);
	pen__json_close(&j, ']');
	pen__json_close(&j, '}');
	return text_out(&j, NULL);
}

static int print_json(struct tune *t, size_t n)
{
	const struct candidate *best = choose(t, n);
	struct pen_text j = { 0 };

	pen__json_open(&j, NULL, '{');
	pen__json_str(&j, "schema", "penstock.tune/1");
	pen__json_str(&j, "target", t->target);
	pen__json_int(&j, "tried", t->n);
	pen__json_int(&j, "runs", t->runs);
	pen__json_num(&j, "seconds",
		      (double)(pen__now_ns() - t->start_ns) / 1e9);
	pen__others_json(&j, "others", &t->others);
	pen__json_bool(&j, "beats_defaults", !best->is_default);
	json_settings(&j, "recommended", best);
	pen__json_open(&j, "finalists", '[');
	for (size_t i = 0; i < n; i++) {
		const struct candidate *c = &t->c[i];

		pen__json_open(&j, NULL, '{');
		pen__json_bool(&j, "default", c->is_default);
		pen__json_bool(&j, "alike", c->alike);
		pen__json_num(&j, "samples_per_s", c->median);
		json_settings(&j, "settings", c);
		pen__json_open(&j, "runs", '[');
		for (size_t k = 0; k < c->nruns; k++)
			pen__json_num(&j, NULL, c->rate[k]);
		pen__json_close(&j, ']');
		pen__json_close(&j, '}');
	}
	pen__json_close(&j, ']');
	pen__json_close(&j, '}');
	return text_out(&j, NULL);
}

int tune_print(struct tune *t, size_t n)
{
	if (t->json)
		return print_json(t, n);
	print_text(t, n);
	return EXIT_OK;
}
