/*
 * The command: one file per subcommand and one table of them. Help, man page
 * and completion are printed from the tables that the parser uses.
 */
#ifndef PEN_CLI_CLI_H
#define PEN_CLI_CLI_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>

#include "base/opt.h"
#include "base/show.h"
#include "base/text.h"

/* See exit_statuses in help.c. */
enum {
	EXIT_OK = 0,
	EXIT_FAILED = 1,
	EXIT_USAGE = 2,
	EXIT_DATA = 3,
	EXIT_IO = 4,
	EXIT_MISSED = 5,
	EXIT_INTR = 130,
};

struct exit_status {
	int code;
	const char *help;
};
extern const struct exit_status exit_statuses[]; /* ends with help NULL */

struct flag {
	const char *name; /* "--json" */
	const char *arg;  /* "FILE", "[=FIELD]" if it is optional, or NULL for a
			     switch */
	const char *help;
};

struct command {
	const char *name;
	const char *args;	    /* "PATH... [key=value ...]" */
	const char *summary;	    /* one line */
	const char *about;	    /* a paragraph */
	const struct flag *flags;   /* ends with name NULL; may be NULL */
	const struct pen_opt *opts; /* settings; may be NULL */
	bool takes_spec;	    /* also accepts all settings of a loader */
	const char *ddict;	    /* and of a dictionary, with this prefix */
	/* Pairs of command and description; ends with NULL. */
	const char *const *examples;
	bool ranks; /* ranks started by mpirun or srun form one job; otherwise
		       rank 0 does all the work */
	/* Subcommands, named "outer inner"; ends with NULL. */
	const struct command *const *sub;
	int (*run)(int argc, char **argv);
};

extern const struct command *const pen__commands[]; /* ends with NULL */
/* By name; NULL: unknown. name may be NULL. */
const struct command *find_command(const char *name);
const struct command *find_subcommand(const struct command *, const char *name);
extern const struct command pen__cmd_load, pen__cmd_gen, pen__cmd_inspect,
	pen__cmd_verify, pen__cmd_run, pen__cmd_capacity, pen__cmd_formats,
	pen__cmd_stores, pen__cmd_decoders, pen__cmd_samplers, pen__cmd_config,
	pen__cmd_workloads, pen__cmd_bench, pen__cmd_report, pen__cmd_convert,
	pen__cmd_doctor, pen__cmd_compare, pen__cmd_tune, pen__cmd_vocab,
	pen__cmd_ddict, pen__cmd_simulate, pen__cmd_explain;

/* bench_commands() fills in all but the name from the experiment descriptions.
 */
extern struct command pen__cmd_sweep;
int bench_commands(void);

/* The program when it is called dlio_benchmark. */
int run_dlio(int argc, char **argv);

/* --- arguments --- */

/* State of the argument parser. */
struct args {
	const struct command *cmd;
	int argc;
	char **argv;
	int at;
	const char *value; /* of the flag or setting just returned */
	char key[128];
};
enum { ARG_END, ARG_FLAG, ARG_SETTING, ARG_PATH, ARG_BAD };
/* Returns the kind of the next argument; flags are checked against the
 * command's table. ARG_BAD: an error was printed. */
int args_next(struct args *a);

/* --- output --- */

/* Prints an error as one line on stderr: cause first, then what to do. Returns
 * the exit code. */
int complain(const struct pen_err *err);
int exit_code(int code); /* of a pen_code */
/* Prints the first warnings about readable but doubtful data to stderr. */
struct pen_dataset;
void warn_of(const struct pen_dataset *);
void mute(bool on); /* suppress errors that another rank prints */
/* The same for a wrong argument: kind is a P_... of err.h, where the command,
 * file or setting, or NULL. Returns EXIT_USAGE. */
int complain_usage(int kind, const char *where, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
void print_help(const struct command *cmd);
/* A setting of a command, as pen_option_at() describes those of the library. */
struct pen_option option_of(const struct pen_opt *);
void print_opts(FILE *out, const char *prefix, const struct pen_opt *opts);
/* The same for the options of a library component; see pen_option_at(). */
void print_options(FILE *, const char *prefix, const char *kind,
		   const char *name);
/* Width of the terminal on standard output; 0: not a terminal. */
size_t terminal_columns(void);
/* Wraps text at 80 columns, or at the terminal's width if smaller. Lines after
 * the first are indented; at is the column in which the text starts. */
void print_wrapped(FILE *out, const char *text, size_t at, size_t indent);
/* "  label   text"; on a terminal the text is wrapped in its own column. If
 * label is NULL, the text starts in column 0 and continues in column width. */
void print_line(int width, const char *label, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
void print_man(FILE *out);
/* The script for bash (also if NULL), zsh or fish. Exit code. */
int print_completion(const char *shell);
/* Candidates for the last of the words, for these scripts. */
void print_candidates(int argc, char **argv);
const char *explain_name(size_t i); /* "P001", ...; NULL past the last */
/* Everything in --help, as JSON. Exit code. */
int print_reference(void);

/* Untrusted text, such as a file name, with control characters escaped. The
 * result is valid for one printf. */
const char *shown(const char *);

/* Prints untrusted text of many lines to standard output, escaped. */
void print_lines(const char *text);
/* Prints every line as an indented, wrapped paragraph, with blank lines between
 * them if apart is set. Frees the text. */
void print_paragraphs(struct pen_text *, bool apart);

struct pen_others;
/* Warns if other processes kept the machine busy since pen__others_start().
 * Returns true if it printed a warning. */
bool print_others(const struct pen_others *);

/* Human-readable numbers (base/show.h), valid for one printf. */
#define human_bytes(n) (pen__show_bytes(n).s)
#define human_count(n) (pen__show_count(n).s)
#define human_time(seconds) (pen__show_time(seconds).s)
#define grouped(n) (pen__show_grouped(n).s)
#define counted(n, what) (pen__show_counted(n, what).s)

/* A progress line with rate and ETA, shown on terminals after two seconds. */
struct progress {
	const char *what; /* "samples" */
	uint64_t total;	  /* 0: unknown */
	uint64_t start_ns, shown_ns;
	bool tty, shown;
	const char *title; /* prefix; may be NULL */
};
void progress_start(struct progress *, const char *what, uint64_t total);
void progress_show(struct progress *, uint64_t done, double bytes);
void progress_end(struct progress *); /* clears the line */

/* Ctrl-C and SIGTERM: the first requests a stop, the second kills. */
void interrupt_install(void);
int interrupted(void); /* the signal, or 0 */
int interrupt_asked(
	void *); /* 1 after the first signal; callable from any thread */
/* The cursor is behind an unfinished line: if killed there, end the line. */
void interrupt_below(bool on);

/* Writes the text to path, or to standard output if path is NULL or "-", and
 * frees it. Returns 0, or prints an error and returns the exit code. */
int text_out(struct pen_text *, const char *path);

/*
 * Errors with --json: a command that fails without having printed a document
 * prints one JSON object with its first error instead. text_out() notes that it
 * printed a document; code that prints JSON otherwise calls json_printed().
 */
void json_wanted(void); /* --json was given */
void json_printed(void);
void json_finish(int rc); /* at the end: prints the error if there is one */

struct pen_quality_result;
/* Prints shuffle quality; label is the name of the field. */
void print_quality(const struct pen_quality_result *, uint32_t batch,
		   const char *label);

struct pen_spec;
/* Handles the settings and paths of commands that read data. Exit code or -1.
 */
int spec_arg(struct pen_spec *, const struct args *, int kind);
/* --sandbox: from now on this process reads only the files that the arguments
 * name, and writes none. Call it before the data is opened. */
#define SANDBOX_FLAG                                                           \
	{                                                                      \
		"--sandbox", NULL,                                             \
			"read only the files named here; no network, no "      \
			"writes"                                               \
	}
int sandbox_enter(struct pen_spec *, int argc, char **argv, struct pen_err *);
struct pen_settings;
/* The same for commands that take a workload: its *name, settings, --lenient
 * and --config-dir. Exit code or -1. */
int settings_arg(struct pen_settings *, const char **name, const struct args *,
		 int kind);
void print_notes(const struct pen_settings *); /* on stderr */
/* "3x224x224" or "scalar" */
const char *shape_text(const int64_t *shape, uint32_t ndim);
struct pen_text;
/* "code" of an error, such as "P042", within an object; none if 0. */
void json_code(struct pen_text *, int number);
/* "name", "dtype" and "shape" of a field, within an object. */
void json_field(struct pen_text *, const struct pen_field *);

#endif
