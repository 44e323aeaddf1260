/*
 * penstock: dispatches to a subcommand and prints the overview.
 */
#include <errno.h>
#include <string.h>

#include "cli/cli.h"
#include "comm/launch.h"
#include "emulate/config.h"
#include "penstock.h"

const struct command *const pen__commands[] = {
	&pen__cmd_run,	    &pen__cmd_capacity,	 &pen__cmd_load,
	&pen__cmd_gen,	    &pen__cmd_inspect,	 &pen__cmd_verify,
	&pen__cmd_formats,  &pen__cmd_decoders,	 &pen__cmd_stores,
	&pen__cmd_samplers, &pen__cmd_workloads, &pen__cmd_config,
	&pen__cmd_bench,    &pen__cmd_report,	 &pen__cmd_convert,
	&pen__cmd_doctor,   &pen__cmd_compare,	 &pen__cmd_sweep,
	&pen__cmd_tune,	    &pen__cmd_vocab,	 &pen__cmd_ddict,
	&pen__cmd_simulate, &pen__cmd_explain,	 NULL,
};

static void usage(void)
{
	char code[16];

	print_line(2, NULL,
		   "penstock %s: load training data fast, and measure how fast",
		   pen_version());
	puts("");
	print_line(7, NULL,
		   "usage: penstock COMMAND [PATH...] [key=value ...] "
		   "[--flags]");
	puts("");
	for (const struct command *const *c = pen__commands; *c; c++)
		print_line(10, (*c)->name, "%s", (*c)->summary);
	puts("");
	print_wrapped(stdout,
		      "`penstock COMMAND --help` describes a command, with "
		      "examples. Try:",
		      0, 0);
	puts("  penstock run unet3d_small\n"
	     "  penstock gen /tmp/data samples=1 files=1000 shape=64x64\n"
	     "  penstock load /tmp/data batch_size=64 shuffle=true epochs=3\n"
	     "\nexit codes:");
	for (const struct exit_status *x = exit_statuses; x->help; x++) {
		snprintf(code, sizeof(code), "%5d", x->code);
		print_line(6, code, "%s", x->help);
	}
	puts("");
	print_wrapped(stdout,
		      "Errors end with a number; `penstock explain P101` "
		      "describes it. With --json, a command that fails prints "
		      "its error as a JSON object. `penstock --man` prints the "
		      "man page, `penstock --completion bash` (or zsh, fish) a "
		      "completion script.",
		      0, 0);
}

const struct command *find_command(const char *name)
{
	for (const struct command *const *c = pen__commands; *c; c++)
		if (strcmp((*c)->name, name) == 0)
			return *c;
	return NULL;
}

const struct command *find_subcommand(const struct command *cmd,
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
		return complain_usage(P_UNKNOWN_NAME, NULL,
				      "'%s' is a workload, not a command; run "
				      "it with `penstock run %s`",
				      name, name);
	near = pen__nearest(name, names);
	if (near)
		return complain_usage(
			P_UNKNOWN_NAME, NULL,
			"unknown command '%s'; did you mean '%s'?", name, near);
	return complain_usage(P_UNKNOWN_NAME, NULL,
			      "unknown command '%s'; see `penstock --help`",
			      name);
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

/* Output that cannot be written is an error; a reader that closed the pipe
 * (head) is not reported. */
static int flushed(int rc)
{
	struct pen_err err = { 0 };

	if (!fflush(stdout) && !ferror(stdout))
		return rc;
	if (rc)
		return rc;
	if (errno == EPIPE)
		return EXIT_FAILED;
	pen__fail_sys(&err, errno, "standard output",
		      "cannot write the output");
	return complain(&err);
}

/* Commands that do not work across ranks run on rank 0 only: N copies would
 * write the same files and print N times. */
static bool has_nothing_to_do(const struct command *cmd)
{
	struct pen_launch by;

	if (cmd->ranks || pen__comm_launch(&by, NULL) || by.size == 1)
		return false;
	if (by.rank > 0)
		return true;
	fprintf(stderr,
		"penstock: %s does not work across ranks: rank 0 does all the "
		"work, the other ranks started by %s exit\n",
		cmd->name, by.by);
	pen__comm_leave();
	return false;
}

/* JSON goes to standard output, not to a file (--json=FILE). */
static bool wants_json(int argc, char **argv)
{
	for (int i = 2; i < argc; i++)
		if (!strcmp(argv[i], "--json") || !strcmp(argv[i], "--json=-"))
			return true;
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
		usage();
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
	if (!strcmp(name, "--completion"))
		return print_completion(argc > 2 ? argv[2] : NULL);
	if (!strcmp(name, "--complete")) {
		print_candidates(argc - 2, argv + 2);
		return EXIT_OK;
	}
	if (!strcmp(name, "--reference"))
		return print_reference();
	if (!strcmp(name, "help")) {
		help = true;
		argc--;
		argv++;
		name = argv[1];
	}
	cmd = find_command(name);
	if (!cmd)
		return unknown(name);
	outer = cmd;
	sub = find_subcommand(cmd, argc > 2 ? argv[2] : NULL);
	if (sub) {
		cmd = sub;
		argc--;
		argv++;
	}
	if (help || wants_help(argc - 2, argv + 2)) {
		print_help(cmd);
		return EXIT_OK;
	}
	if (has_nothing_to_do(sub && sub->ranks ? sub : outer))
		return EXIT_OK;
	interrupt_install();
	return cmd->run(argc - 2, argv + 2);
}

/* Other commands skip parsing the experiment descriptions. */
static bool looks_at_experiments(const char *name)
{
	return name[0] == '-' || !strcmp(name, "help") ||
	       !strcmp(name, "bench") || !strcmp(name, "sweep") ||
	       !strcmp(name, "report");
}

int main(int argc, char **argv)
{
	int rc = EXIT_OK;

	if (wants_json(argc, argv))
		json_wanted();
	if (argc < 2 || looks_at_experiments(argv[1]))
		rc = bench_commands();
	if (!rc)
		rc = run(argc, argv);
	json_finish(rc);
	return flushed(rc);
}
