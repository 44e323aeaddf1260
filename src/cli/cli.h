/*
 * The command. One file a subcommand, one table that names them; help, man
 * page and completion are printed from the same tables as the parser uses.
 */
#ifndef PEN_CLI_CLI_H
#define PEN_CLI_CLI_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>

#include "base/opt.h"
#include "base/show.h"
#include "base/text.h"

/* Documented exit codes. */
enum {
	EXIT_OK = 0,
	EXIT_FAILED = 1, /* the run failed */
	EXIT_USAGE = 2,	 /* wrong arguments or settings */
	EXIT_DATA = 3,	 /* damaged or unsupported data */
	EXIT_IO = 4,	 /* the store failed */
	EXIT_MISSED = 5, /* what was asked for was not reached */
	EXIT_INTR = 130,
};

struct flag {
	const char *name; /* "--json" */
	const char *arg;  /* "FILE", "[=FIELD]" if one may leave it out, or
			     NULL for a switch */
	const char *help;
};

struct command {
	const char *name;
	const char *args;	     /* "PATH... [key=value ...]" */
	const char *summary;	     /* one line */
	const char *about;	     /* a paragraph */
	const struct flag *flags;    /* ends with name NULL; may be NULL */
	const struct pen_opt *opts;  /* settings; may be NULL */
	bool takes_spec;	     /* also all settings of a loader */
	const char *ddict;	     /* and of a dictionary, after this */
	const char *const *examples; /* command, what it does, ...; NULL */
	bool ranks; /* those mpirun or srun started are one job; else rank 0
		       does all */
	/* Commands below it, named "outer inner"; ends with NULL. */
	const struct command *const *sub;
	int (*run)(int argc, char **argv);
};

extern const struct command *const pen__commands[]; /* ends with NULL */
extern const struct command pen__cmd_load, pen__cmd_gen, pen__cmd_inspect,
	pen__cmd_verify, pen__cmd_run, pen__cmd_capacity, pen__cmd_formats,
	pen__cmd_stores, pen__cmd_decoders, pen__cmd_samplers, pen__cmd_config,
	pen__cmd_workloads, pen__cmd_bench, pen__cmd_report, pen__cmd_convert,
	pen__cmd_doctor, pen__cmd_compare, pen__cmd_tune, pen__cmd_vocab,
	pen__cmd_ddict, pen__cmd_simulate;

/* Made of the experiments' descriptions, all but its name, by bench_commands().
 */
extern struct command pen__cmd_sweep;
int bench_commands(void);

/* Under the name dlio_benchmark. */
int run_dlio(int argc, char **argv);

/* --- arguments --- */

/* What a command line comes apart into. */
struct args {
	const struct command *cmd;
	int argc;
	char **argv;
	int at;
	const char *value; /* of the flag or setting just returned */
	char key[128];
};
enum { ARG_END, ARG_FLAG, ARG_SETTING, ARG_PATH, ARG_BAD };
/* The next argument; flags are checked against the command's table. ARG_BAD:
 * a message was printed. */
int args_next(struct args *a);

/* --- output --- */

/* One line on stderr: cause first, then what to do; returns the exit code. */
int complain(const struct pen_err *err);
int exit_code(int code); /* of a pen_code */
/* What is doubtful about data that can be read, on stderr: the first ones. */
struct pen_dataset;
void warn_of(const struct pen_dataset *);
void mute(bool on); /* complain no more: another rank does */
int complain_usage(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
void print_help(const struct command *cmd);
void print_opts(FILE *out, const char *prefix, const struct pen_opt *opts);
/* The same of a part of the library, as pen_option_at() has them. */
void print_options(FILE *, const char *prefix, const char *kind,
		   const char *name);
/* Columns of the terminal that standard output is; 0: it is none. */
size_t terminal_columns(void);
/* Text in lines of at most 80 columns, or what the terminal has, all but the
 * first indented; at is the column it starts in. */
void print_wrapped(FILE *out, const char *text, size_t at, size_t indent);
/* "  label   text"; on a terminal the text is wrapped below itself. */
void print_line(int width, const char *label, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
void print_man(FILE *out);
void print_completion(FILE *out);

/* A text of others, as a file's name: without what a terminal would obey. Good
 * for a printf. */
const char *shown(const char *);

/* The same of a text of many lines, to standard output. */
void print_lines(const char *text);
/* Lines of text, each as a paragraph that is indented and wrapped, with space
 * between them or not; frees it. */
void print_paragraphs(struct pen_text *, bool apart);

struct pen_others;
/* That the machine was busy with other work since then, if it was; true when
 * it was said. */
bool print_others(const struct pen_others *);

/* Numbers as people read them (base/show.h): good for a printf. */
#define human_bytes(n) (pen__show_bytes(n).s)
#define human_count(n) (pen__show_count(n).s)
#define human_time(seconds) (pen__show_time(seconds).s)
#define grouped(n) (pen__show_grouped(n).s)
#define counted(n, what) (pen__show_counted(n, what).s)

/* A line with rate and ETA, on a terminal and after two seconds only. */
struct progress {
	const char *what; /* "samples" */
	uint64_t total;	  /* 0: unknown */
	uint64_t start_ns, shown_ns;
	bool tty, shown;
	const char *title; /* in front; may be NULL */
};
void progress_start(struct progress *, const char *what, uint64_t total);
void progress_show(struct progress *, uint64_t done, double bytes);
void progress_end(struct progress *); /* clears the line */

/* Ctrl-C and SIGTERM: the first asks to stop, the second kills. */
void interrupt_install(void);
int interrupted(void);	     /* the signal, or 0 */
int interrupt_asked(void *); /* 1 once there was one; of any thread */
/* The cursor is behind text of ours: who is killed there ends the line. */
void interrupt_below(bool on);

/* Prints a text, or saves it to path unless that is NULL or "-", and frees
 * it. 0, or complains and returns the exit code. */
int text_out(struct pen_text *, const char *path);

struct pen_quality_result;
/* Lines of a text result; label: the field's name. */
void print_quality(const struct pen_quality_result *, uint32_t batch,
		   const char *label);

struct pen_spec;
/* Settings and paths shared by the commands that read. EXIT code or -1. */
int spec_arg(struct pen_spec *, const struct args *, int kind);
struct pen_settings;
/* The same for the commands that take a workload: its *name, settings,
 * --lenient and --config-dir. EXIT code or -1. */
int settings_arg(struct pen_settings *, const char **name, const struct args *,
		 int kind);
void print_notes(const struct pen_settings *); /* on stderr */
/* "3x224x224" or "scalar" */
const char *shape_text(const int64_t *shape, uint32_t ndim);
struct pen_text;
/* "name", "dtype" and "shape" of a field, within an object. */
void json_field(struct pen_text *, const struct pen_field *);

#endif
