/* formats, stores, samplers: what this build has, from the registries. */
#include "cli/cli.h"
#include "format/cells_write.h"
#include "format/format.h"
#include "sampler/sampler.h"
#include "store/store.h"

static const struct flag flags[] = {
	{ "--json", NULL, "for programs" },
	{ NULL, NULL, NULL },
};

/* One entry, whatever it is. */
struct entry {
	const char *name, *help;
	const char *const *suffixes;
	const struct pen_opt *opts;
	bool writes;
	const struct pen_opt *to_write; /* when they are others */
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
#undef PEN_ABSENT

static void show(const struct entry *e, const char *prefix)
{
	printf("%s: %s\n", e->name, e->help);
	if (e->suffixes && e->suffixes[0]) {
		fputs("  files:", stdout);
		for (const char *const *s = e->suffixes; *s; s++)
			printf(" *%s", *s);
		puts(e->writes ? " (read and written)" : " (read)");
	}
	print_opts(stdout, prefix, e->opts);
	if (e->to_write) {
		puts("  and to write, with gen:");
		print_opts(stdout, prefix, e->to_write);
	}
}

static void put_options(struct pen_text *j, const char *key,
			const struct pen_opt *opts)
{
	pen__json_open(j, key, '[');
	for (const struct pen_opt *o = opts; o && o->name; o++) {
		pen__json_open(j, NULL, '{');
		pen__json_str(j, "name", o->name);
		pen__json_str(j, "default", o->dflt ? o->dflt : "");
		pen__json_str(j, "help", o->help);
		pen__json_close(j, '}');
	}
	pen__json_close(j, ']');
}

static void show_json(struct pen_text *j, const struct entry *e)
{
	pen__json_open(j, NULL, '{');
	pen__json_str(j, "name", e->name);
	pen__json_str(j, "help", e->help);
	if (e->suffixes) {
		pen__json_open(j, "suffixes", '[');
		for (const char *const *s = e->suffixes; *s; s++)
			pen__json_str(j, NULL, *s);
		pen__json_close(j, ']');
		pen__json_bool(j, "writes", e->writes);
	}
	put_options(j, "options", e->opts);
	if (e->to_write)
		put_options(j, "options_to_write", e->to_write);
	pen__json_close(j, '}');
}

static int list(const struct command *cmd, int argc, char **argv,
		bool (*at)(unsigned, struct entry *), const char *prefix,
		const struct pen_absent *absent)
{
	struct args a = { .cmd = cmd, .argc = argc, .argv = argv };
	struct pen_text j = { 0 };
	bool json = false;
	struct entry e;
	int kind;

	while ((kind = args_next(&a)) != ARG_END) {
		if (kind == ARG_BAD)
			return EXIT_USAGE;
		if (kind != ARG_FLAG)
			return complain_usage("%s takes no '%s'", cmd->name,
					      argv[a.at - 1]);
		json = true;
	}
	if (json)
		pen__json_open(&j, NULL, '[');
	for (unsigned i = 0; at(i, &e); i++) {
		if (json)
			show_json(&j, &e);
		else
			show(&e, prefix);
	}
	if (json) {
		pen__json_close(&j, ']');
		return text_out(&j, NULL);
	}
	for (; absent && absent->name; absent++)
		printf("%s: not in this build (%s was not found)\n",
		       absent->name, absent->needs);
	return EXIT_OK;
}

static bool format_entry(unsigned i, struct entry *e)
{
	const struct pen_format_ops *o = pen__format_at(i);
	const struct pen_cells_writer_ops *w;

	if (!o)
		return false;
	w = pen__cells_writer_find(o->name);
	*e = (struct entry){ .name = o->name,
			     .help = o->help,
			     .suffixes = o->suffixes,
			     .opts = o->opts,
			     .writes = o->write || w,
			     .to_write = w ? w->opts : NULL };
	return true;
}

static bool store_entry(unsigned i, struct entry *e)
{
	const struct pen_store_ops *o = pen__store_at(i);

	if (o)
		*e = (struct entry){ .name = o->name,
				     .help = o->help,
				     .opts = o->opts };
	return o != NULL;
}

static bool sampler_entry(unsigned i, struct entry *e)
{
	const struct pen_sampler_ops *o = pen__sampler_at(i);

	if (o)
		*e = (struct entry){ .name = o->name,
				     .help = o->help,
				     .opts = o->opts };
	return o != NULL;
}

static int run_formats(int argc, char **argv)
{
	return list(&pen__cmd_formats, argc, argv, format_entry, "format.",
		    absent_formats);
}

static int run_stores(int argc, char **argv)
{
	return list(&pen__cmd_stores, argc, argv, store_entry, "store.",
		    absent_stores);
}

static int run_samplers(int argc, char **argv)
{
	return list(&pen__cmd_samplers, argc, argv, sampler_entry, "sampler.",
		    NULL);
}

const struct command pen__cmd_formats = {
	.name = "formats",
	.args = "[--json]",
	.summary = "what can be read, and the options of each",
	.about = "Lists the formats of this build.",
	.flags = flags,
	.run = run_formats,
};
const struct command pen__cmd_stores = {
	.name = "stores",
	.args = "[--json]",
	.summary = "ways to read bytes, and the options of each",
	.about = "Lists the stores of this build. store=auto chooses among "
		 "posix, mmap and uring by file sizes and the page cache.",
	.flags = flags,
	.run = run_stores,
};
const struct command pen__cmd_samplers = {
	.name = "samplers",
	.args = "[--json]",
	.summary = "orders of samples, and the options of each",
	.about = "Lists the samplers of this build.",
	.flags = flags,
	.run = run_samplers,
};
