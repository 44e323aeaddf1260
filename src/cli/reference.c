/*
 * Everything that --help prints, as one JSON document: commands with their
 * flags, settings and examples, and the options of formats, decoders, stores
 * and samplers. `make docs` turns it into the reference pages, so that they
 * cannot differ from what the command accepts.
 */
#include "cli/cli.h"

static void put_setting(struct pen_text *j, const struct pen_option *o)
{
	pen__json_open(j, NULL, '{');
	pen__json_str(j, "name", o->name);
	pen__json_str(j, "type", o->type);
	pen__json_str(j, "default", o->dflt ? o->dflt : "");
	pen__json_str(j, "help", o->help);
	if (o->choices) {
		pen__json_open(j, "choices", '[');
		for (const char *const *c = o->choices; *c; c++)
			pen__json_str(j, NULL, *c);
		pen__json_close(j, ']');
	}
	pen__json_close(j, '}');
}

static void put_table(struct pen_text *j, const char *key,
		      const struct pen_opt *opts)
{
	pen__json_open(j, key, '[');
	for (const struct pen_opt *o = opts; o && o->name; o++) {
		const struct pen_option x = option_of(o);

		put_setting(j, &x);
	}
	pen__json_close(j, ']');
}

static void put_options(struct pen_text *j, const char *key, const char *kind,
			const char *name)
{
	struct pen_option o;

	pen__json_open(j, key, '[');
	for (uint32_t i = 0; !pen_option_at(kind, name, i, &o, sizeof(o)); i++)
		put_setting(j, &o);
	pen__json_close(j, ']');
}

/* All implementations of a kind: "format", "store", ... */
static void put_kind(struct pen_text *j, const char *key, const char *kind)
{
	const char *name, *suffix;

	pen__json_open(j, key, '[');
	for (uint32_t i = 0; (name = pen_name_at(kind, i)); i++) {
		pen__json_open(j, NULL, '{');
		pen__json_str(j, "name", name);
		pen__json_str(j, "help", pen_help_of(kind, name));
		pen__json_open(j, "suffixes", '[');
		for (uint32_t k = 0; (suffix = pen_format_suffix(name, k)); k++)
			pen__json_str(j, NULL, suffix);
		pen__json_close(j, ']');
		put_options(j, "settings", kind, name);
		pen__json_close(j, '}');
	}
	pen__json_close(j, ']');
}

static void put_command(struct pen_text *j, const struct command *c)
{
	pen__json_open(j, NULL, '{');
	pen__json_str(j, "name", c->name);
	pen__json_str(j, "args", c->args);
	pen__json_str(j, "summary", c->summary);
	pen__json_str(j, "about", c->about);
	pen__json_open(j, "flags", '[');
	for (const struct flag *f = c->flags; f && f->name; f++) {
		pen__json_open(j, NULL, '{');
		pen__json_str(j, "name", f->name);
		pen__json_str(j, "arg", f->arg ? f->arg : "");
		pen__json_str(j, "help", f->help);
		pen__json_close(j, '}');
	}
	pen__json_close(j, ']');
	pen__json_open(j, "examples", '[');
	for (const char *const *e = c->examples; e && *e; e += 2) {
		pen__json_open(j, NULL, '{');
		pen__json_str(j, "command", e[0]);
		pen__json_str(j, "help", e[1]);
		pen__json_close(j, '}');
	}
	pen__json_close(j, ']');
	put_table(j, "settings", c->opts);
	pen__json_bool(j, "loader_settings", c->takes_spec);
	pen__json_str(j, "dictionary_settings", c->ddict ? c->ddict : "");
	pen__json_open(j, "commands", '[');
	for (const struct command *const *s = c->sub; s && *s; s++)
		put_command(j, *s);
	pen__json_close(j, ']');
	pen__json_close(j, '}');
}

int print_reference(void)
{
	struct pen_text j = { 0 };

	pen__json_open(&j, NULL, '{');
	pen__json_str(&j, "version", pen_version());
	pen__json_open(&j, "commands", '[');
	for (const struct command *const *c = pen__commands; *c; c++)
		put_command(&j, *c);
	pen__json_close(&j, ']');
	put_options(&j, "loader", "loader", NULL);
	put_options(&j, "ddict", "ddict", NULL);
	put_kind(&j, "formats", "format");
	put_kind(&j, "decoders", "decoder");
	put_kind(&j, "stores", "store");
	put_kind(&j, "samplers", "sampler");
	pen__json_close(&j, '}');
	return text_out(&j, NULL);
}
