/* compare: differences between results beyond noise, for people and CI. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "report/compare.h"

#define MOST 26	 /* results, labelled A to Z */
#define RULES 32 /* --fail-if */

/* "throughput<-5%": fails when it changed by more than that. */
struct rule {
	char name[96];
	bool below;
	double share;
	const char *text;
};

struct request {
	struct pen_samples samples[MOST];
	size_t n;
	struct rule rule[RULES];
	size_t nrules;
	const char *html, *json;
	double least;
};

static const struct flag flags[] = {
	{ "--fail-if", "RULE",
	  "exit with 5 if a figure changed beyond noise and by more than RULE, "
	  "such as throughput<-5% or wait_p99>+20%; repeatable" },
	{ "--least", "PERCENT",
	  "ignore changes below this (default 2, or 5 if the repeats are "
	  "epochs of one run)" },
	{ "-o", "FILE", "also write an HTML page" },
	{ "--json", "[=FILE]", "print (or write) the result as JSON" },
	{ NULL, NULL, NULL },
};

static bool percent(const char *text, double *out)
{
	char *end;

	*out = strtod(text, &end) / 100;
	return end != text && isfinite(*out) &&
	       (!*end || !strcmp(end, "%") || !strcmp(end, " %"));
}

static int rule_arg(struct request *q, const char *text)
{
	size_t n = strcspn(text, "<>");
	struct rule *r = &q->rule[q->nrules];

	if (q->nrules == RULES)
		return complain_usage(P_TOO_LONG, "compare",
				      "at most %d --fail-if rules are allowed",
				      RULES);
	if (!n || n >= sizeof(r->name) || !text[n] ||
	    !percent(text + n + 1, &r->share))
		return complain_usage(
			P_BAD_VALUE, "compare",
			"'%s' is not a valid rule; write a figure, < or >, and "
			"a change in percent, as in throughput<-5%%",
			text);
	memcpy(r->name, text, n);
	r->name[n] = '\0';
	r->below = text[n] == '<';
	r->text = text;
	q->nrules++;
	return -1;
}

static int samples_arg(struct request *q, const char *path)
{
	struct pen_err err = { 0 };

	if (q->n == MOST)
		return complain_usage(P_TOO_LONG, "compare",
				      "at most %d results are allowed", MOST);
	if (pen__samples_read(&q->samples[q->n++], path, &err))
		return complain(&err);
	return -1;
}

static int take(struct request *q, const struct args *a, int kind)
{
	if (kind == ARG_PATH)
		return samples_arg(q, a->value);
	if (kind != ARG_FLAG)
		return kind == ARG_BAD
			       ? EXIT_USAGE
			       : complain_usage(
					 P_UNKNOWN_NAME, "compare",
					 "takes no settings, found '%s='",
					 a->key);
	if (!strcmp(a->key, "--fail-if"))
		return rule_arg(q, a->value);
	if (!strcmp(a->key, "-o"))
		q->html = a->value;
	else if (!strcmp(a->key, "--json"))
		q->json = a->value ? a->value : "-";
	else if (!percent(a->value, &q->least) || q->least <= 0)
		return complain_usage(P_BAD_VALUE, "compare",
				      "--least: '%s' is not a percentage",
				      a->value);
	return -1;
}

/* Prints the rules that apply; EXIT_MISSED if there are any. */
static int judge(const struct request *q)
{
	int rc = EXIT_OK;

	for (size_t i = 0; i < q->nrules; i++) {
		const struct rule *r = &q->rule[i];
		const struct pen_figure *f =
			pen__samples_figure(q->samples, r->name);

		if (!f)
			return complain_usage(P_UNKNOWN_NAME, "compare",
					      "%s has no figure '%s'",
					      q->samples->name, r->name);
		for (size_t b = 1; b < q->n; b++) {
			struct pen_change c = pen__compare(
				q->samples, &q->samples[b], f, q->least);

			if (!pen__samples_figure(&q->samples[b], r->name))
				return complain_usage(P_UNKNOWN_NAME, "compare",
						      "%s has no figure '%s'",
						      q->samples[b].name,
						      r->name);
			/* an unchecked rule must not look like a pass */
			if (!c.differs && !isfinite(c.low))
				fprintf(stderr,
					"penstock: %s: %s: %s (--fail-if %s "
					"was not checked)\n",
					shown(q->samples[b].name),
					shown(r->name), c.why, shown(r->text));
			if (!c.differs || (r->below ? c.share >= r->share
						    : c.share <= r->share))
				continue;
			fprintf(stderr,
				"penstock: %s: %s changed by %s (--fail-if "
				"%s)\n",
				shown(q->samples[b].name), shown(r->name),
				pen__show_change(c.share).s, shown(r->text));
			rc = EXIT_MISSED;
		}
	}
	return rc;
}

static int show(const struct request *q)
{
	struct pen_text t = { 0 };
	int rc = 0;

	if (q->html) {
		pen__compare_html(q->samples, q->n, q->least, &t);
		rc = text_out(&t, q->html);
	}
	if (rc)
		return rc;
	t = (struct pen_text){ 0 };
	if (q->json)
		pen__compare_json(q->samples, q->n, q->least, &t);
	else
		pen__compare_text(q->samples, q->n, q->least,
				  terminal_columns(), &t);
	return text_out(&t, q->json ? q->json : "-");
}

static int run(int argc, char **argv)
{
	struct args a = { .cmd = &pen__cmd_compare,
			  .argc = argc,
			  .argv = argv };
	struct request q = { 0 };
	int kind, rc = -1;

	while (rc < 0 && (kind = args_next(&a)) != ARG_END)
		rc = take(&q, &a, kind);
	if (rc < 0 && q.n < 2)
		rc = complain_usage(P_MISSING_SETTING, "compare",
				    "needs at least two results");
	if (rc < 0)
		rc = show(&q);
	if (!rc)
		rc = judge(&q);
	for (size_t i = 0; i < q.n; i++)
		pen__samples_fini(&q.samples[i]);
	return rc;
}

static const char *const examples[] = {
	"penstock compare runs/before runs/after",
	"two directories of runs; every result.json below them is a repeat",
	"penstock compare a.json b.json --fail-if 'throughput<-5%'",
	"for CI: exit code 5 if b is more than 5 % slower, beyond noise",
	NULL,
};

const struct command pen__cmd_compare = {
	.name = "compare",
	.args = "A B [C...] [flags]",
	.summary = "compare results: differences beyond noise",
	.about = "Compares each result with the first: a result.json of `run`, "
		 "the output of `load --json`, files of rows of `bench` and "
		 "`sweep`, or directories of result.json files. A figure "
		 "differs if the 95 % bootstrap confidence interval of its "
		 "change excludes zero, a rank test agrees, and the change is "
		 "not too small to matter. The repeats of a single run are its "
		 "epochs; several runs give better evidence. Also lists "
		 "settings and machine properties that differ.",
	.flags = flags,
	.examples = examples,
	.run = run,
};
