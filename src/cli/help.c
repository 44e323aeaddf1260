/* Help, man page and completion: three views of the same tables. */
#include <string.h>

#include "cli/cli.h"

#define WIDTH 80

void print_wrapped(FILE *out, const char *text, size_t at, size_t indent)
{
	const size_t has = terminal_columns();
	const size_t width = has && has < WIDTH ? has : WIDTH;

	text = shown(text);
	while (*text) {
		size_t n = strcspn(text, " ");

		/* a number stays with what belongs to it: "81 k +-3 %" */
		while (text[n] && strchr("%+", text[n + 1]) && text[n + 1])
			n += 1 + strcspn(text + n + 1, " ");

		if (at > indent && at + 1 + n > width) {
			fprintf(out, "\n%*s", (int)indent, "");
			at = indent;
		} else if (at > indent) {
			fputc(' ', out);
			at++;
		}
		fwrite(text, 1, n, out);
		at += n;
		text += n + strspn(text + n, " ");
	}
	fputc('\n', out);
}

/* "  left   text", the text on a line of its own when left is long. */
static void print_item(FILE *out, const char *left, const char *text)
{
	if (strlen(left) <= 24)
		fprintf(out, "  %-24s ", left);
	else
		fprintf(out, "  %s\n  %-24s ", left, "");
	print_wrapped(out, text, 27, 27);
}

/* The help text with what can be chosen from. */
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

static struct pen_option option_of(const struct pen_opt *o)
{
	return (struct pen_option){ o->name, o->help, o->dflt, o->choices };
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
	printf("penstock %s: %s\n\nusage: penstock %s %s\n\n", cmd->name,
	       cmd->summary, cmd->name, cmd->args);
	print_wrapped(stdout, cmd->about, 0, 0);
	if (cmd->sub)
		puts("\nexperiments (each has its own --help):");
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
		puts("\nsettings (with their defaults):");
		print_opts(stdout, "", cmd->opts);
	}
	if (cmd->takes_spec) {
		puts("\nsettings of the loader (with their defaults):");
		print_options(stdout, "", "loader", NULL);
		puts("  store.X=, format.X=, sampler.X= reach the options that "
		     "`penstock stores`,\n  `formats` and `samplers` list; "
		     "decode.FIELD=NAME says what a field of bytes\n  is "
		     "(`penstock decoders`)");
	}
	if (cmd->ddict) {
		puts("\nsettings of the dictionary (with their defaults):");
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

/* roff takes a leading '.' or '\'' as a request, and '\' as an escape. */
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

/* All of a kind: "store", and so on. */
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
		fputs(":\n.PP\n.nf\n    ", out);
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
	fputs(".SH EXIT STATUS\n0 success, 1 failure, 2 wrong arguments, 3 "
	      "damaged or unsupported data, 4 input or output failed, 130 "
	      "interrupted.\n",
	      out);
}

static void completion_words(FILE *out, const struct command *c)
{
	struct pen_option s;

	for (const struct command *const *b = c->sub; b && *b; b++) {
		fprintf(out, "%s ", (*b)->name + strlen(c->name) + 1);
		completion_words(out, *b);
	}
	for (const struct flag *f = c->flags; f && f->name; f++)
		fprintf(out, "%s ", f->name);
	for (const struct pen_opt *o = c->opts; o && o->name; o++)
		fprintf(out, "%s= ", o->name);
	for (uint32_t i = 0;
	     c->takes_spec && !pen_option_at("loader", NULL, i, &s, sizeof(s));
	     i++)
		fprintf(out, "%s= ", s.name);
	for (uint32_t i = 0;
	     c->ddict && !pen_option_at("ddict", NULL, i, &s, sizeof(s)); i++)
		fprintf(out, "%s%s= ", c->ddict, s.name);
}

void print_completion(FILE *out)
{
	fputs("_penstock()\n{\n\tlocal cur words\n"
	      "\tcur=\"${COMP_LINE:0:COMP_POINT}\"; cur=\"${cur##* }\"\n"
	      "\tcase ${COMP_WORDS[1]} in\n",
	      out);
	for (const struct command *const *c = pen__commands; *c; c++) {
		fprintf(out, "\t%s) words='", (*c)->name);
		completion_words(out, *c);
		fputs("--help' ;;\n", out);
	}
	fputs("\t*) words='", out);
	for (const struct command *const *c = pen__commands; *c; c++)
		fprintf(out, "%s ", (*c)->name);
	fputs("--help --version' ;;\n\tesac\n"
	      "\tCOMPREPLY=($(compgen -W \"$words\" -- \"$cur\"))\n"
	      "\t[[ ${COMPREPLY[0]} == *= ]] && compopt -o nospace\n"
	      "\t[[ $COMP_CWORD -gt 1 ]] && "
	      "COMPREPLY+=($(compgen -f -- \"$cur\"))\n}\n"
	      "complete -o filenames -F _penstock penstock\n",
	      out);
}
