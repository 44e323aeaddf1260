/*
 * penstock: dispatch to a subcommand; help for people who do not know which.
 */
#include <errno.h>
#include <string.h>

#include "cli/cli.h"
#include "comm/launch.h"
#include "emulate/config.h"
#include "penstock.h"

const struct command *const pen__commands[] = {
	&pen__cmd_run,
	&pen__cmd_capacity,
	&pen__cmd_load,
	&pen__cmd_gen,
	&pen__cmd_inspect,
	&pen__cmd_verify,
	&pen__cmd_formats,
	&pen__cmd_decoders,
	&pen__cmd_stores,
	&pen__cmd_samplers,
	&pen__cmd_workloads,
	&pen__cmd_config,
	&pen__cmd_bench,
	&pen__cmd_report,
	&pen__cmd_convert,
	&pen__cmd_doctor,
	&pen__cmd_compare,
	&pen__cmd_sweep,
	&pen__cmd_tune,
	&pen__cmd_vocab,
	&pen__cmd_ddict,
	&pen__cmd_simulate,
	NULL,
};

static void usage(FILE *out)
{
	fprintf(out,
		"penstock %s: load training data fast, and measure how fast\n\n"
		"usage: penstock COMMAND [PATH...] [key=value ...] "
		"[--flags]\n\n",
		pen_version());
	for (const struct command *const *c = pen__commands; *c; c++)
		fprintf(out, "  %-10s %s\n", (*c)->name, (*c)->summary);
	fprintf(out,
		"\n`penstock COMMAND --help` explains one, with examples. "
		"Try:\n"
		"  penstock run unet3d_small\n"
		"  penstock gen /tmp/data samples=1 files=1000 shape=64x64\n"
		"  penstock load /tmp/data batch_size=64 shuffle=true "
		"epochs=3\n");
}

static const struct command *find(const char *name)
{
	for (const struct command *const *c = pen__commands; *c; c++)
		if (strcmp((*c)->name, name) == 0)
			return *c;
	return NULL;
}

/* The command below, when the next argument names one. */
static const struct command *descend(const struct command *cmd,
				     const char *name)
{
	const size_t n = strlen(cmd->name);

	for (const struct command *const *c = cmd->sub; name && c && *c; c++)
		if (!strcmp((*c)->name + n + 1, name))
			return *c;
	return NULL;
}

static int unknown(const char *name)
{
	const char *names[32];
	const char *near;
	size_t n = 0;

	for (const struct command *const *c = pen__commands; *c; c++)
		names[n++] = (*c)->name;
	names[n] = NULL;
	if (pen__workload_find(name))
		return complain_usage("'%s' is a workload: penstock run %s",
				      name, name);
	near = pen__nearest(name, names);
	if (near)
		return complain_usage("no command '%s'; did you mean '%s'?",
				      name, near);
	return complain_usage("no command '%s'; see penstock --help", name);
}

static bool wants_help(int argc, char **argv)
{
	for (int i = 0; i < argc && strcmp(argv[i], "--"); i++)
		if (!strcmp(argv[i], "--help") || !strcmp(argv[i], "-h"))
			return true;
	return false;
}

static bool called_as(const char *path, const char *name)
{
	const char *slash = strrchr(path, '/');

	return !strcmp(slash ? slash + 1 : path, name);
}

/* What was printed has to be out. A reader that has seen enough (head) is told
 * nothing. */
static int flushed(int rc)
{
	struct pen_err err = { 0 };

	if (!fflush(stdout) && !ferror(stdout))
		return rc;
	if (rc)
		return rc;
	if (errno == EPIPE)
		return EXIT_FAILED;
	pen__fail_sys(&err, errno, "standard output", "cannot be written");
	return complain(&err);
}

/* Ranks of a launch that the command has no use for: N copies of it would
 * write the same files and print N times. */
static bool has_nothing_to_do(const struct command *cmd)
{
	struct pen_launch by;

	if (cmd->ranks || pen__comm_launch(&by, NULL) || by.size == 1)
		return false;
	if (by.rank > 0)
		return true;
	fprintf(stderr,
		"penstock: %s does not share its work among ranks: rank 0 "
		"does all of it, the others that %s started end at once\n",
		cmd->name, by.by);
	pen__comm_leave();
	return false;
}

static int run(int argc, char **argv)
{
	const char *name = argc > 1 ? argv[1] : "--help";
	const struct command *cmd, *sub, *outer;
	bool help = false;

	if (called_as(argv[0], "dlio_benchmark")) {
		interrupt_install();
		return run_dlio(argc - 1, argv + 1);
	}

	if (!strcmp(name, "--help") || !strcmp(name, "-h") ||
	    (!strcmp(name, "help") && argc == 2)) {
		usage(stdout);
		return argc > 1 ? EXIT_OK : EXIT_USAGE;
	}
	if (!strcmp(name, "--version") || !strcmp(name, "version")) {
		printf("penstock %s\n", pen_version());
		return EXIT_OK;
	}
	if (!strcmp(name, "--man")) {
		print_man(stdout);
		return EXIT_OK;
	}
	if (!strcmp(name, "--completion")) {
		print_completion(stdout);
		return EXIT_OK;
	}
	if (!strcmp(name, "help")) {
		help = true;
		argc--;
		argv++;
		name = argv[1];
	}
	cmd = find(name);
	if (!cmd)
		return unknown(name);
	outer = cmd;
	sub = descend(cmd, argc > 2 ? argv[2] : NULL);
	if (sub) {
		cmd = sub;
		argc--;
		argv++;
	}
	if (help || wants_help(argc - 2, argv + 2)) {
		print_help(cmd);
		return EXIT_OK;
	}
	if (has_nothing_to_do(outer))
		return EXIT_OK;
	interrupt_install();
	return cmd->run(argc - 2, argv + 2);
}

/* The others do not wait for their descriptions to be read. */
static bool looks_at_experiments(const char *name)
{
	return name[0] == '-' || !strcmp(name, "help") ||
	       !strcmp(name, "bench") || !strcmp(name, "sweep") ||
	       !strcmp(name, "report");
}

int main(int argc, char **argv)
{
	const int rc = argc < 2 || looks_at_experiments(argv[1])
			       ? bench_commands()
			       : EXIT_OK;

	return rc ? rc : flushed(run(argc, argv));
}
