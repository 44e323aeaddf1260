/* Help and man page, printed from the same tables. */
#include <ctype.h>
#include <string.h>

#include "cli/cli.h"

#define WIDTH 80
#define NARROW 64 /* no room for two columns below this */

const struct exit_status exit_statuses[] = {
	{ EXIT_OK, "success" },
	{ EXIT_FAILED, "the run failed, or memory ran out" },
	{ EXIT_USAGE, "wrong arguments or settings" },
	{ EXIT_DATA, "damaged or unsupported data" },
	{ EXIT_IO, "input or output failed, or a file was not found" },
	{ EXIT_MISSED, "compare: a --fail-if rule applied" },
	{ EXIT_INTR, "interrupted (128 + number of the signal)" },
	{ 0, NULL },
};

static const char json_rule[] =
	"With --json a command prints one JSON document to standard output. If "
	"it fails before it has a document to print, it prints {\"schema\": "
	"\"penstock.error/1\", \"error\": {\"code\": \"P101\", \"where\": "
	"..., \"message\": ..., \"exit\": ...}} instead; the message also goes "
	"to standard error. Samples and objects that a document lists as "
	"skipped have a member \"code\", too. `penstock explain CODE` "
	"describes an error.";

static size_t text_width(void)
{
	const size_t has = terminal_columns();

	return has && has < WIDTH ? has : WIDTH;
}

/* Does the text start with a unit, as in "81 k", "5.1 ms," or "2 GB/s)"? */
static bool is_unit(const char *text)
{
	static const char *const units[] = { "ns", "us", "ms", "s",  "min",
					     "B",  "kB", "MB", "GB", "TB",
					     "k",  "M",	 "G",  "T",  NULL };
	const size_t n = strcspn(text, " ,;.:)/");

	for (const char *const *u = units; *u; u++)
		if (strlen(*u) == n && !strncmp(text, *u, n))
			return true;
	return false;
}

void print_wrapped(FILE *out, const char *text, size_t at, size_t indent)
{
	const size_t width = text_width();
	bool first = at <= indent;

	text = shown(text);
	while (*text) {
		size_t n = strcspn(text, " ");

		/* keep a number and its unit together: "81 k +-3 %" */
		while (text[n] && text[n + 1] &&
		       (strchr("%+", text[n + 1]) ||
			(isdigit((unsigned char)text[n ? n - 1 : 0]) &&
			 is_unit(text + n + 1))))
			n += 1 + strcspn(text + n + 1, " ");

		if (!first && at + 1 + n > width) {
			fprintf(out, "\n%*s", (int)indent, "");
			at = indent;
		} else if (!first) {
			fputc(' ', out);
			at++;
		}
		fwrite(text, 1, n, out);
		at += n;
		first = false;
		text += n + strspn(text + n, " ");
	}
	fputc('\n', out);
}

/* "  left   text"; the text goes on its own line when left is long. */
static void print_item(FILE *out, const char *left, const char *text)
{
	const size_t at = text_width() < NARROW ? 6 : 27;

	if (strlen(left) + 3 <= at)
		fprintf(out, "  %-*s ", (int)at - 3, left);
	else
		fprintf(out, "  %s\n%*s", left, (int)at, "");
	print_wrapped(out, text, at, at);
}

/* The help text followed by the choices. */
static const char *opt_text(const struct pen_option *o, char *buf, size_t cap)
{
	size_t at = (size_t)snprintf(buf, cap, "%s", o->help);

	for (const char *const *c = o->choices; c && *c && at < cap; c++)
		at += (size_t)snprintf(buf + at, cap - at, "%s%s%s",
				       c == o->choices ? " (" : ", ", *c,
				       c[1] ? "" : ")");
	return buf;
}

static void print_option(FILE *out, const char *prefix,
			 const struct pen_option *o)
{
	char left[96], text[512];

	snprintf(left, sizeof(left), "%s%s=%s", prefix, o->name,
		 o->dflt ? o->dflt : "");
	print_item(out, left, opt_text(o, text, sizeof(text)));
}

struct pen_option option_of(const struct pen_opt *o)
{
	return (struct pen_option){ o->name, o->help, o->dflt, o->choices,
				    pen__opt_type(o) };
}

void print_opts(FILE *out, const char *prefix, const struct pen_opt *opts)
{
	for (const struct pen_opt *o = opts; o && o->name; o++) {
		const struct pen_option x = option_of(o);

		print_option(out, prefix, &x);
	}
}

void print_options(FILE *out, const char *prefix, const char *kind,
		   const char *name)
{
	struct pen_option o;

	for (uint32_t i = 0; !pen_option_at(kind, name, i, &o, sizeof(o)); i++)
		print_option(out, prefix, &o);
}

void print_help(const struct command *cmd)
{
	print_line(2, NULL, "penstock %s: %s", cmd->name, cmd->summary);
	puts("");
	print_line(7, NULL, "usage: penstock %s %s", cmd->name, cmd->args);
	puts("");
	print_wrapped(stdout, cmd->about, 0, 0);
	if (cmd->sub)
		puts("\nsubcommands (see also their --help):");
	for (const struct command *const *c = cmd->sub; c && *c; c++)
		print_item(stdout, (*c)->name, (*c)->summary);
	if (cmd->examples) {
		puts("\nexamples:");
		for (const char *const *e = cmd->examples; *e; e += 2) {
			printf("  %s\n      ", e[0]);
			print_wrapped(stdout, e[1], 6, 6);
		}
	}
	if (cmd->opts) {
		puts("\nsettings (with defaults):");
		print_opts(stdout, "", cmd->opts);
	}
	if (cmd->takes_spec) {
		puts("\nloader settings (with defaults):");
		print_options(stdout, "", "loader", NULL);
		fputs("  ", stdout);
		print_wrapped(stdout,
			      "store.X=, format.X= and sampler.X= set the "
			      "options that `penstock stores`, `formats` and "
			      "`samplers` list; decode.FIELD=NAME sets the "
			      "decoder of a byte field, and image.X= what is "
			      "done to images (`penstock decoders`)",
			      2, 2);
	}
	if (cmd->ddict) {
		puts("\ndictionary settings (with defaults):");
		print_options(stdout, cmd->ddict, "ddict", NULL);
	}
	if (cmd->flags) {
		puts("\nflags:");
		for (const struct flag *f = cmd->flags; f->name; f++) {
			char left[64];

			snprintf(left, sizeof(left), "%s%s%s", f->name,
				 f->arg && f->arg[0] != '[' ? " " : "",
				 f->arg ? f->arg : "");
			print_item(stdout, left, f->help);
		}
	}
}

/* In roff, a leading '.' or '\'' starts a request and '\' an escape. */
static void roff_text(FILE *out, const char *s)
{
	if (*s == '.' || *s == '\'')
		fputs("\\&", out);
	for (; *s; s++) {
		if (*s == '\\')
			fputs("\\e", out);
		else if (*s == '-')
			fputs("\\-", out);
		else
			fputc(*s, out);
	}
}

static void man_item(FILE *out, const char *name, const char *value,
		     const char *text)
{
	fputs(".TP\n\\fB", out);
	roff_text(out, name);
	fputs("\\fR", out);
	if (value)
		roff_text(out, value);
	fputc('\n', out);
	roff_text(out, text);
	fputc('\n', out);
}

static void man_option(FILE *out, const char *prefix,
		       const struct pen_option *o)
{
	char name[96], value[96], text[512];

	snprintf(name, sizeof(name), "%s%s", prefix, o->name);
	snprintf(value, sizeof(value), "=%s", o->dflt ? o->dflt : "");
	man_item(out, name, value, opt_text(o, text, sizeof(text)));
}

static void man_options(FILE *out, const char *prefix, const char *kind,
			const char *name)
{
	struct pen_option o;

	for (uint32_t i = 0; !pen_option_at(kind, name, i, &o, sizeof(o)); i++)
		man_option(out, prefix, &o);
}

/* All components of a kind, such as "store". */
static void man_kind(FILE *out, const char *kind)
{
	const char *name;
	char prefix[32];

	snprintf(prefix, sizeof(prefix), "%s.", kind);
	for (uint32_t i = 0; (name = pen_name_at(kind, i)); i++) {
		man_item(out, name, NULL, pen_help_of(kind, name));
		man_options(out, prefix, kind, name);
	}
}

static void man_command(FILE *out, const struct command *c)
{
	fprintf(out, ".SS penstock %s ", c->name);
	roff_text(out, c->args);
	fputc('\n', out);
	roff_text(out, c->about);
	fputc('\n', out);
	for (const struct flag *f = c->flags; f && f->name; f++) {
		char arg[32];

		snprintf(arg, sizeof(arg), "%s%s",
			 f->arg && f->arg[0] == '[' ? "" : " ",
			 f->arg ? f->arg : "");
		man_item(out, f->name, arg, f->help);
	}
	for (const struct pen_opt *o = c->opts; o && o->name; o++) {
		const struct pen_option x = option_of(o);

		man_option(out, "", &x);
	}
	if (c->ddict)
		man_options(out, c->ddict, "ddict", NULL);
	for (const char *const *e = c->examples; e && *e; e += 2) {
		fputs(".PP\n", out);
		roff_text(out, e[1]);
		fputs(":\n.PP\n.nf\n  ", out);
		roff_text(out, e[0]);
		fputs("\n.fi\n", out);
	}
}

void print_man(FILE *out)
{
	fprintf(out,
		".TH PENSTOCK 1 \"\" \"penstock %s\" \"User Commands\"\n"
		".SH NAME\npenstock \\- load training data fast, and measure "
		"how fast\n.SH SYNOPSIS\n\\fBpenstock\\fR \\fICOMMAND\\fR "
		"[\\fIPATH\\fR...] [\\fIkey\\fR=\\fIvalue\\fR ...]\n"
		".SH DESCRIPTION\nLoads training data into ready batches, and "
		"measures how well storage, file format and loader settings "
		"can feed an accelerator. \\fBpenstock\\fR \\fICOMMAND\\fR "
		"\\fB\\-\\-help\\fR lists the settings of a command.\n"
		".SH COMMANDS\n",
		pen_version());
	for (const struct command *const *c = pen__commands; *c; c++) {
		man_command(out, *c);
		for (const struct command *const *s = (*c)->sub; s && *s; s++)
			man_command(out, *s);
	}
	fputs(".SH SETTINGS\n", out);
	man_options(out, "", "loader", NULL);
	fputs(".SH STORES\n", out);
	man_kind(out, "store");
	fputs(".SH FORMATS\n", out);
	man_kind(out, "format");
	fputs(".SH SAMPLERS\n", out);
	man_kind(out, "sampler");
	fputs(".SH EXIT STATUS\n", out);
	for (const struct exit_status *x = exit_statuses; x->help; x++) {
		char code[16];

		snprintf(code, sizeof(code), "%d", x->code);
		man_item(out, code, NULL, x->help);
	}
	fputs(".SH JSON\n", out);
	roff_text(out, json_rule);
	fputc('\n', out);
}
