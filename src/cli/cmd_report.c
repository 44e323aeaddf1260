/* report: a page, or CSV, of result files. */
#include <string.h>

#include "cli/cli.h"
#include "report/report.h"

static const struct flag flags[] = {
	{ "-o", "FILE", "the page (default report.html); - for the terminal" },
	{ "--csv", "FILE",
	  "all rows with all their keys as CSV, instead of the page unless -o "
	  "is given, too" },
	{ "--openmetrics", "FILE",
	  "headline figures of runs as OpenMetrics text, for monitoring; the "
	  "same holds" },
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
			"penstock: %s: %s skipped (line %llu is the first): "
			"not whole\n",
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
		return complain_usage("report: --csv is of rows or of runs, "
				      "not of both at once");
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
		rc = complain_usage(
			"report: of which files? give what "
			"penstock run, load, capacity or bench left");
	if (rc < 0)
		rc = write_out(&q);
	pen__results_fini(&q.r);
	return rc;
}

static const char *const examples[] = {
	"penstock report runs/unet3d/2026-11-16-08-36-14",
	"a run: how it was fed, over time, by part, and on which machine",
	"penstock report runs/unet3d",
	"all runs below a folder, and how they differ",
	"penstock report blocks.jsonl",
	"report.html: the result in words, charts, and all runs in a table",
	"penstock report blocks.jsonl read-chunks.jsonl -o page.html --csv "
	"all.csv",
	"several experiments on one page, and all rows for a spreadsheet",
	NULL,
};

const struct command pen__cmd_report = {
	.name = "report",
	.args = "FILE... [-o report.html] [--csv FILE]",
	.summary = "a page with charts, or CSV, of results",
	.about = "FILE is a result.json of `penstock run` or a folder with "
		 "some below it, what `load --json` or `capacity --json` "
		 "printed (a .json), or "
		 "what `bench` and `sweep` left: one row of JSON a line. The "
		 "page is one file that needs no network; lines that are "
		 "not whole are left out with a warning.",
	.flags = flags,
	.examples = examples,
	.run = run_report,
};
