/* formats, decoders, stores, samplers: lists the components of this build. */
#include <string.h>

#include "cli/cli.h"
#include "make/maker.h"

static const struct flag flags[] = {
	{ "--json", NULL, "print the result as JSON" },
	{ NULL, NULL, NULL },
};

struct pen_absent {
	const char *name, *needs;
};
#define PEN_ABSENT(x, n) { #x, n },
static const struct pen_absent absent_stores[] = {
#include "store_absent.h"
	{ NULL, NULL },
};
static const struct pen_absent absent_formats[] = {
#include "format_absent.h"
	{ NULL, NULL },
};
static const struct pen_absent absent_decoders[] = {
#include "decoder_absent.h"
	{ NULL, NULL },
};
#undef PEN_ABSENT

/* Settings of the writer of a format, if they differ from the reader's. */
static const struct pen_opt *to_write(const char *kind, const char *name)
{
	return strcmp(kind, "format") ? NULL : pen__cells_format_opts(name);
}

static bool writes(const char *name)
{
	return pen__format_writes(name) || pen__cells_format_suffix(name);
}

static void show(const char *kind, const char *name)
{
	const struct pen_opt *own = to_write(kind, name);
	const char *suffix;
	char prefix[32] = "";

	/* options of a decoder follow its name */
	if (strcmp(kind, "decoder") != 0)
		snprintf(prefix, sizeof(prefix), "%s.", kind);
	printf("%s: %s\n", name, pen_help_of(kind, name));
	if (!strcmp(kind, "format") && pen_format_suffix(name, 0)) {
		fputs("  files:", stdout);
		for (uint32_t i = 0; (suffix = pen_format_suffix(name, i)); i++)
			printf(" *%s", suffix);
		puts(writes(name) ? " (read and written)" : " (read)");
	}
	print_options(stdout, prefix, kind, name);
	if (own) {
		puts("  for writing, with gen:");
		print_opts(stdout, prefix, own);
	}
}

static void put_option(struct pen_text *j, const char *name, const char *dflt,
		       const char *help)
{
	pen__json_open(j, NULL, '{');
	pen__json_str(j, "name", name);
	pen__json_str(j, "default", dflt ? dflt : "");
	pen__json_str(j, "help", help);
	pen__json_close(j, '}');
}

static void show_json(struct pen_text *j, const char *kind, const char *name)
{
	const struct pen_opt *own = to_write(kind, name);
	const char *suffix;
	struct pen_option o;

	pen__json_open(j, NULL, '{');
	pen__json_str(j, "name", name);
	pen__json_str(j, "help", pen_help_of(kind, name));
	if (!strcmp(kind, "format") && pen_format_suffix(name, 0)) {
		pen__json_open(j, "suffixes", '[');
		for (uint32_t i = 0; (suffix = pen_format_suffix(name, i)); i++)
			pen__json_str(j, NULL, suffix);
		pen__json_close(j, ']');
		pen__json_bool(j, "writes", writes(name));
	}
	pen__json_open(j, "options", '[');
	for (uint32_t i = 0; !pen_option_at(kind, name, i, &o, sizeof(o)); i++)
		put_option(j, o.name, o.dflt, o.help);
	pen__json_close(j, ']');
	if (own) {
		pen__json_open(j, "options_to_write", '[');
		for (; own->name; own++)
			put_option(j, own->name, own->dflt, own->help);
		pen__json_close(j, ']');
	}
	pen__json_close(j, '}');
}

static int list(const struct command *cmd, int argc, char **argv,
		const char *of, const struct pen_absent *absent)
{
	struct args a = { .cmd = cmd, .argc = argc, .argv = argv };
	struct pen_text j = { 0 };
	const char *only = NULL;
	bool json = false;
	const char *name;
	int kind;

	while ((kind = args_next(&a)) != ARG_END) {
		if (kind == ARG_BAD)
			return EXIT_USAGE;
		if (kind == ARG_FLAG)
			json = true;
		else if (kind == ARG_PATH && !only)
			only = a.value;
		else
			return complain_usage(P_BAD_VALUE, cmd->name,
					      "takes one NAME, found also '%s'",
					      argv[a.at - 1]);
	}
	if (only && !pen_help_of(of, only))
		return complain_usage(
			P_UNKNOWN_NAME, cmd->name,
			"'%s' is not in this build; `penstock %s` lists all",
			only, cmd->name);
	if (json)
		pen__json_open(&j, NULL, '[');
	for (uint32_t i = 0; (name = pen_name_at(of, i)); i++) {
		if (only && strcmp(name, only) != 0)
			continue;
		if (json)
			show_json(&j, of, name);
		else
			show(of, name);
	}
	if (json) {
		pen__json_close(&j, ']');
		return text_out(&j, NULL);
	}
	if (!strcmp(of, "decoder") && !only) {
		puts("image.*: what is done to images while they are decoded");
		print_options(stdout, "image.", "image", NULL);
	}
	for (; !only && absent && absent->name; absent++)
		printf("%s: not in this build (%s was not found)\n",
		       absent->name, absent->needs);
	return EXIT_OK;
}

static int run_formats(int argc, char **argv)
{
	return list(&pen__cmd_formats, argc, argv, "format", absent_formats);
}

static int run_stores(int argc, char **argv)
{
	return list(&pen__cmd_stores, argc, argv, "store", absent_stores);
}

static int run_decoders(int argc, char **argv)
{
	return list(&pen__cmd_decoders, argc, argv, "decoder", absent_decoders);
}

static int run_samplers(int argc, char **argv)
{
	return list(&pen__cmd_samplers, argc, argv, "sampler", NULL);
}

const struct command pen__cmd_formats = {
	.name = "formats",
	.args = "[NAME] [--json]",
	.summary = "list the data formats and their options",
	.about = "Lists the formats of this build, or describes one of them.",
	.flags = flags,
	.run = run_formats,
};
const struct command pen__cmd_stores = {
	.name = "stores",
	.args = "[NAME] [--json]",
	.summary = "list the stores (ways to read bytes) and their options",
	.about = "Lists the stores of this build, or describes one of them. "
		 "store=auto chooses posix, mmap or uring by file size and "
		 "page cache state.",
	.flags = flags,
	.run = run_stores,
};
const struct command pen__cmd_decoders = {
	.name = "decoders",
	.args = "[NAME] [--json]",
	.summary = "list the decoders of byte fields and their options",
	.about = "Lists the decoders of this build, or describes one of them. "
		 "decode.FIELD=NAME decodes a byte field; options follow the "
		 "name: decode.image=jpeg:color=rgb,strict=false. "
		 "decode.FIELD=none leaves the bytes as they are; auto detects "
		 "the type of each value by its first bytes. Image files are "
		 "decoded without this setting.",
	.flags = flags,
	.run = run_decoders,
};
const struct command pen__cmd_samplers = {
	.name = "samplers",
	.args = "[NAME] [--json]",
	.summary = "list the samplers (sample orders) and their options",
	.about = "Lists the samplers of this build, or describes one of them.",
	.flags = flags,
	.run = run_samplers,
};
