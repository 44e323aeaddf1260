/* report: turns result files into a page or CSV. */
#include <string.h>

#include "cli/cli.h"
#include "report/report.h"

static const struct flag flags[] = {
	{ "-o", "FILE",
	  "output page (default report.html; -: standard output)" },
	{ "--csv", "FILE",
	  "write all rows with all keys as CSV; no page unless -o is also "
	  "given" },
	{ "--openmetrics", "FILE",
	  "write headline figures as OpenMetrics text; no page unless -o is "
	  "also given" },
	{ NULL, NULL, NULL },
};

struct request {
	struct pen_results r;
	const char *html, *csv, *metrics;
};

static int read_file(struct request *q, const char *path)
{
	const uint64_t bad = q->r.rows.nbad;
	struct pen_err err = { 0 };

	q->r.rows.first_bad = 0;
	q->r.rows.nbad = 0;
	if (pen__results_read(&q->r, path, &err))
		return complain(&err);
	if (q->r.rows.nbad)
		fprintf(stderr,
			"penstock: %s: %s skipped as incomplete (the first is "
			"line %llu)\n",
			shown(path), counted(q->r.rows.nbad, "line"),
			(unsigned long long)q->r.rows.first_bad);
	q->r.rows.nbad += bad;
	return -1;
}

static int write_csv(struct request *q)
{
	struct pen_text t = { 0 };
	struct pen_err err = { 0 };

	if (q->r.rows.n && q->r.ndocs)
		return complain_usage(P_CONFLICT, "report",
				      "--csv takes either rows of experiments "
				      "or results of runs, not both");
	if (q->r.ndocs)
		pen__documents_csv(&q->r, &t);
	else if (pen__report_csv(&q->r.rows, &t, &err))
		return complain(&err);
	return text_out(&t, q->csv);
}

static int write_out(struct request *q)
{
	struct pen_text t = { 0 };
	struct pen_err err = { 0 };
	int rc = 0;

	if (q->csv && (rc = write_csv(q)))
		return rc;
	if (q->metrics) {
		pen__documents_metrics(&q->r, &t);
		rc = text_out(&t, q->metrics);
	}
	if (rc || ((q->csv || q->metrics) && !q->html))
		return rc;
	t = (struct pen_text){ 0 };
	if (!q->html)
		q->html = "report.html";
	rc = pen__report_html(&q->r, &t, &err) ? complain(&err)
					       : text_out(&t, q->html);
	pen__text_fini(&t);
	if (!rc && strcmp(q->html, "-") != 0)
		printf("%s: %s\n", shown(q->html),
		       counted(q->r.rows.n + q->r.ndocs, "run"));
	return rc;
}

static int run_report(int argc, char **argv)
{
	struct args a = { .cmd = &pen__cmd_report, .argc = argc, .argv = argv };
	struct request q = { 0 };
	bool any = false;
	int kind, rc = -1;

	while (rc < 0 && (kind = args_next(&a)) != ARG_END) {
		if (kind == ARG_BAD)
			rc = EXIT_USAGE;
		else if (kind == ARG_FLAG)
			*(a.key[1] == 'o'	    ? &q.html
			  : !strcmp(a.key, "--csv") ? &q.csv
						    : &q.metrics) = a.value;
		else
			rc = read_file(&q, argv[a.at - 1]);
		any = any || kind == ARG_PATH || kind == ARG_SETTING;
	}
	if (rc < 0 && !any)
		rc = complain_usage(P_MISSING_SETTING, "report",
				    "no FILE given; name results of `penstock "
				    "run`, load, capacity or bench");
	if (rc < 0)
		rc = write_out(&q);
	pen__results_fini(&q.r);
	return rc;
}

static const char *const examples[] = {
	"penstock report runs/unet3d/2026-11-16-08-36-14",
	"a page of one run: utilisation over time, time by stage, and the "
	"machine",
	"penstock report runs/unet3d",
	"all runs below a directory and their differences",
	"penstock report blocks.jsonl",
	"writes report.html: a summary, charts, and a table of all runs",
	"penstock report blocks.jsonl read-chunks.jsonl -o page.html --csv "
	"all.csv",
	"several experiments on one page, and all rows for a spreadsheet",
	NULL,
};

const struct command pen__cmd_report = {
	.name = "report",
	.args = "FILE... [-o report.html] [--csv FILE]",
	.summary = "turn results into a page with charts, or CSV",
	.about = "FILE is a result.json of `penstock run` or a directory that "
		 "contains some, the output of `load --json` or `capacity "
		 "--json` (a .json file), or a file of `bench` or `sweep` with "
		 "one JSON row per line. The page is a single file that needs "
		 "no network. Incomplete lines are skipped with a warning.",
	.flags = flags,
	.examples = examples,
	.run = run_report,
};
