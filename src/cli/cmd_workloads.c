/* workloads: lists the built-in workloads, what each represents and its size.
 */
#include <ctype.h>
#include <string.h>
#include <stdlib.h>

#include "cli/cli.h"
#include "emulate/config.h"

#define MOST 256

static const struct flag flags[] = {
	{ "--json", NULL, "print the result as JSON" },
	{ NULL, NULL, NULL },
};

/* One line of the table. */
struct row {
	const char *name;
	size_t family; /* length of the name prefix shared by its family */
	char format[32], about[256];
	uint64_t files, samples, batch, accelerators;
	double bytes, checkpoint_bytes, parameters, compute_s;
	bool train, generate, checkpoint;
};

/* "llama3_8b" and "llama_7b" are llamas, "unet3d_a100" is a unet3d. */
static size_t family_of(const char *name)
{
	size_t n = strcspn(name, "_");

	while (n > 1 && isdigit((unsigned char)name[n - 1]))
		n--;
	return n;
}

static void fill(struct row *r, const struct pen_config *c)
{
	r->train = c->workflow.train;
	r->generate = c->workflow.generate_data;
	r->checkpoint = c->workflow.checkpoint;
	snprintf(r->format, sizeof(r->format), "%s", c->dataset.format);
	r->files = c->dataset.num_files_train + c->dataset.num_files_eval;
	r->samples = c->dataset.num_samples_per_file;
	r->batch = c->reader.batch_size;
	r->bytes = pen__config_data_bytes(c);
	r->compute_s = c->train.computation_time.mean;
	r->parameters = pen__config_parameters(c);
	r->checkpoint_bytes = pen__config_checkpoint_bytes(c);
	if (r->train || r->generate)
		return;
	r->bytes = 0; /* it does not read a data set */
	snprintf(r->format, sizeof(r->format), "checkpoint");
}

static int read_row(const struct pen_workload *w, struct row *r,
		    struct pen_err *err)
{
	struct pen_settings s;
	struct pen_config c;
	int rc;

	*r = (struct row){ .name = w->name, .family = family_of(w->name) };
	pen__workload_about(w, r->about, sizeof(r->about));
	pen__settings_init(&s);
	rc = pen__settings_load(&s, w->name, err);
	if (!rc)
		rc = pen__config_settle(&c, &s, err);
	if (!rc) {
		fill(r, &c);
		pen__config_fini(&c);
	}
	pen__settings_fini(&s);
	return rc;
}

static double size_of(const struct row *r)
{
	return r->bytes > 0 ? r->bytes : r->checkpoint_bytes;
}

/* By family, the smallest first. */
static int compare(const void *a, const void *b)
{
	const struct row *x = a, *y = b;
	const size_t n = x->family > y->family ? x->family : y->family;
	int by = strncmp(x->name, y->name, x->family == y->family ? n : n + 1);

	if (by)
		return by;
	if (size_of(x) < size_of(y) || size_of(x) > size_of(y))
		return size_of(x) < size_of(y) ? -1 : 1;
	return strcmp(x->name, y->name);
}

/* The terminal is too narrow for a table. */
static bool narrow(void)
{
	const size_t columns = terminal_columns();

	return columns && columns < 160;
}

static void show(const struct row *r)
{
	char files[104];
	struct pen_shown batch = { "" }, step = { "" };

	if (r->train || r->generate)
		snprintf(files, sizeof(files), "%s x %s", grouped(r->files),
			 grouped(r->samples));
	else
		snprintf(files, sizeof(files), "%s parameters",
			 human_count(r->parameters));
	if (r->train) {
		batch = pen__show_grouped(r->batch);
		step = pen__show_time(r->compute_s);
	}
	if (narrow()) {
		print_line(6, NULL, "%s: %s, %s, %s%s%s%s%s", r->name,
			   r->format, files, human_bytes(size_of(r)),
			   r->train ? ", batch " : "", batch.s,
			   r->train ? ", step " : "", step.s);
		fputs("    ", stdout);
		print_wrapped(stdout, r->about, 4, 4);
		return;
	}
	printf("%-24s %-19s %21s %8s %6s %8s  %s\n", r->name, r->format, files,
	       human_bytes(size_of(r)), batch.s, step.s, r->about);
}

static void show_json(struct pen_text *j, const struct row *r)
{
	pen__json_open(j, NULL, '{');
	pen__json_str(j, "name", r->name);
	pen__json_str(j, "about", r->about);
	pen__json_str(j, "format", r->format);
	pen__json_bool(j, "generate_data", r->generate);
	pen__json_bool(j, "train", r->train);
	pen__json_bool(j, "checkpoint", r->checkpoint);
	if (r->train || r->generate) {
		pen__json_int(j, "files", r->files);
		pen__json_int(j, "samples_per_file", r->samples);
		pen__json_num(j, "bytes", r->bytes);
	}
	if (r->train) {
		pen__json_int(j, "batch_size", r->batch);
		pen__json_num(j, "computation_time_s", r->compute_s);
	}
	if (r->checkpoint)
		pen__json_num(j, "checkpoint_bytes", r->checkpoint_bytes);
	if (r->parameters > 0)
		pen__json_num(j, "parameters", r->parameters);
	pen__json_close(j, '}');
}

static int print_all(const struct row *rows, size_t n, bool json)
{
	struct pen_text j = { 0 };

	if (json) {
		pen__json_open(&j, NULL, '[');
		for (size_t i = 0; i < n; i++)
			show_json(&j, &rows[i]);
		pen__json_close(&j, ']');
		return text_out(&j, NULL);
	}
	if (narrow())
		print_line(6, NULL,
			   "name: format, files x samples, size, batch, step");
	else
		printf("%-24s %-19s %21s %8s %6s %8s  %s\n", "name", "format",
		       "files x samples", "size", "batch", "step",
		       "what it represents");
	for (size_t i = 0; i < n; i++) {
		if (!i || rows[i].family != rows[i - 1].family ||
		    strncmp(rows[i].name, rows[i - 1].name, rows[i].family))
			putchar('\n');
		show(&rows[i]);
	}
	puts("");
	print_wrapped(stdout,
		      "files x samples: files and samples per file; size: of "
		      "the data set on disk, or of one checkpoint; batch: "
		      "samples per step; step: "
		      "computing time. `penstock config NAME` shows all "
		      "settings of a workload.",
		      0, 0);
	return EXIT_OK;
}

static int run(int argc, char **argv)
{
	struct args a = { .cmd = &pen__cmd_workloads,
			  .argc = argc,
			  .argv = argv };
	static struct row rows[MOST];
	const struct pen_workload *w;
	struct pen_err err = { 0 };
	bool json = false;
	size_t n = 0;
	int kind;

	while ((kind = args_next(&a)) != ARG_END) {
		if (kind == ARG_BAD)
			return EXIT_USAGE;
		if (kind != ARG_FLAG)
			return complain_usage(P_BAD_VALUE, "workloads",
					      "takes no argument, found '%s'",
					      argv[a.at - 1]);
		json = true;
	}
	for (; n < MOST && (w = pen__workload_at(n)); n++)
		if (read_row(w, &rows[n], &err))
			return complain(&err);
	qsort(rows, n, sizeof(rows[0]), compare);
	return print_all(rows, n, json);
}

static const char *const examples[] = {
	"penstock workloads",
	"list all workloads",
	"penstock config unet3d_small",
	"all settings of one workload",
	NULL,
};

const struct command pen__cmd_workloads = {
	.name = "workloads",
	.args = "[--json]",
	.summary = "list the built-in workloads and their sizes",
	.about = "Lists the workloads of this build: those of DLIO and MLPerf "
		 "Storage, and a _small variant of each kind that runs in "
		 "seconds. Sizes are computed from the settings; those of JPEG "
		 "files are approximate.",
	.flags = flags,
	.examples = examples,
	.run = run,
};
