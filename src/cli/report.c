/* report: a page, or CSV, of result files. */
#include <string.h>

#include "cli/cli.h"
#include "report/report.h"

static const struct flag flags[] = {
	{ "-o", "FILE", "the page (default report.html); - for the terminal" },
	{ "--csv", "FILE",
	  "all rows with all their keys as CSV, instead of the page unless -o "
	  "is given, too" },
	{ NULL, NULL, NULL },
};

struct request {
	struct pen_lines rows;
	const char *html, *csv;
};

static int read_file(struct request *q, const char *path)
{
	const uint64_t bad = q->rows.nbad;
	struct pen_err err = { 0 };

	q->rows.first_bad = 0;
	q->rows.nbad = 0;
	if (pen__lines_read(&q->rows, path, &err))
		return complain(&err);
	if (q->rows.nbad)
		fprintf(stderr,
			"penstock: %s: %s skipped (line %llu is the first): "
			"not whole\n",
			path, counted(q->rows.nbad, "line"),
			(unsigned long long)q->rows.first_bad);
	q->rows.nbad += bad;
	return -1;
}

static int write_out(struct request *q)
{
	struct pen_text t = { 0 };
	struct pen_err err = { 0 };
	int rc = 0;

	if (q->csv) {
		rc = pen__report_csv(&q->rows, &t, &err) ? complain(&err)
							 : text_out(&t, q->csv);
		pen__text_fini(&t);
	}
	if (rc || (q->csv && !q->html))
		return rc;
	if (!q->html)
		q->html = "report.html";
	rc = pen__report_html(&q->rows, &t, &err) ? complain(&err)
						  : text_out(&t, q->html);
	pen__text_fini(&t);
	if (!rc && strcmp(q->html, "-") != 0)
		printf("%s: %s\n", q->html, counted(q->rows.n, "run"));
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
			*(a.key[1] == 'o' ? &q.html : &q.csv) = a.value;
		else
			rc = read_file(&q, argv[a.at - 1]);
		any = any || kind == ARG_PATH || kind == ARG_SETTING;
	}
	if (rc < 0 && !any)
		rc = complain_usage("report: of which files? give those that "
				    "penstock bench left");
	if (rc < 0)
		rc = write_out(&q);
	pen__lines_fini(&q.rows);
	return rc;
}

static const char *const examples[] = {
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
	.about = "FILE is what `penstock bench` left: one row of JSON a line. "
		 "The page is one file that needs no network; lines that are "
		 "not whole are left out with a warning.",
	.flags = flags,
	.examples = examples,
	.run = run_report,
};
