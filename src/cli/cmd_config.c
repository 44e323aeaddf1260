/* config: the resolved settings of a workload and the origin of each. */
#include <string.h>

#include "base/mem.h"
#include "cli/cli.h"
#include "emulate/config.h"

static const struct flag flags[] = {
	{ "--lenient", NULL,
	  "report unknown keys and Python plug-ins as notes instead of "
	  "errors" },
	{ "--config-dir", "DIR",
	  "search DIR/workload/NAME.yaml before the built-in workloads" },
	{ "--no-origins", NULL, "omit the origin of each value" },
	{ "--json", NULL, "print the result as JSON" },
	{ NULL, NULL, NULL },
};

int settings_arg(struct pen_settings *s, const char **name,
		 const struct args *a, int kind)
{
	const char *raw = a->argv[a->at - 1];
	struct pen_err err = { 0 };

	/* it also applies to the settings before it */
	for (int i = 0; i < a->argc; i++)
		s->lenient |= !strcmp(a->argv[i], "--lenient");
	if (kind == ARG_PATH && raw[0] != '~') {
		if (*name)
			return complain_usage(
				P_BAD_VALUE, a->cmd->name,
				"takes one workload, found '%s' and '%s'",
				*name, raw);
		*name = raw;
		return -1;
	}
	if (kind == ARG_FLAG && !strcmp(a->key, "--lenient"))
		return -1;
	if (kind == ARG_FLAG) { /* --config-dir */
		pen__free(s->config_dir);
		s->config_dir = pen__strdup(a->value);
		if (s->config_dir)
			return -1;
		pen__fail_nomem(&err, a->key, strlen(a->value));
		return complain(&err);
	}
	return pen__settings_arg(s, raw, &err) ? complain(&err) : -1;
}

void print_notes(const struct pen_settings *s)
{
	const char *p = s->notes.p;

	while (p && *p) {
		const size_t n = strcspn(p, "\n");
		char line[4096];

		snprintf(line, sizeof(line), "%.*s", (int)n, p);
		fprintf(stderr, "penstock: note: %s\n", shown(line));
		p += n + (p[n] == '\n');
	}
}

struct request {
	struct pen_settings s;
	const char *name;
	bool json, plain;
};

/* EXIT code or -1. */
static int parse(struct request *r, struct args *a)
{
	int kind, rc = -1;

	while (rc < 0 && (kind = args_next(a)) != ARG_END) {
		if (kind == ARG_BAD)
			return EXIT_USAGE;
		if (kind == ARG_FLAG && !strcmp(a->key, "--json"))
			r->json = true;
		else if (kind == ARG_FLAG && !strcmp(a->key, "--no-origins"))
			r->plain = true;
		else
			rc = settings_arg(&r->s, &r->name, a, kind);
	}
	return rc;
}

static void notes_json(const struct pen_settings *s, struct pen_text *j)
{
	const char *p = s->notes.p;
	char line[512];

	pen__json_open(j, "notes", '[');
	while (p && *p) {
		const size_t n = strcspn(p, "\n");

		snprintf(line, sizeof(line), "%.*s", (int)n, p);
		pen__json_str(j, NULL, line);
		p += n + (p[n] == '\n');
	}
	pen__json_close(j, ']');
}

static int show_json(const struct pen_config *c, const struct pen_settings *s)
{
	struct pen_text j = { 0 };

	pen__json_open(&j, NULL, '{');
	pen__json_str(&j, "workload", s->workload);
	pen__json_str(&j, "source", s->source);
	pen__json_open(&j, "config", '{');
	pen__config_json(c, &j);
	pen__json_close(&j, '}');
	pen__json_open(&j, "settings", '[');
	for (size_t i = 0; i < s->n; i++) {
		pen__json_open(&j, NULL, '{');
		pen__json_str(&j, "key", s->v[i].key);
		pen__json_str(&j, "value", s->v[i].value);
		pen__json_str(&j, "origin", s->v[i].origin);
		pen__json_close(&j, '}');
	}
	pen__json_close(&j, ']');
	notes_json(s, &j);
	pen__json_close(&j, '}');
	return text_out(&j, NULL);
}

static int show(const struct request *r, const struct pen_config *c)
{
	struct pen_text t = { 0 };
	struct pen_err err = { 0 };

	if (!r->json)
		print_notes(&r->s);
	if (c->workflow.query) {
		if (pen__config_query(c, c->workflow.query, &t, &err)) {
			pen__text_fini(&t);
			return complain(&err);
		}
		pen__text_put(&t, "\n", 1);
		return text_out(&t, NULL);
	}
	if (r->json)
		return show_json(c, &r->s);
	pen__config_print(c, &r->s, !r->plain, &t);
	return text_out(&t, NULL);
}

static int run(int argc, char **argv)
{
	struct args a = { .cmd = &pen__cmd_config, .argc = argc, .argv = argv };
	struct request r = { .name = NULL };
	struct pen_config c;
	struct pen_err err = { 0 };
	int rc;

	pen__settings_init(&r.s);
	rc = parse(&r, &a);
	if (rc < 0 && !r.name && !r.s.workload)
		rc = complain_usage(P_MISSING_SETTING, "config",
				    "no workload given; name one of `penstock "
				    "workloads` or a .yaml file");
	if (rc < 0 && (pen__settings_load(&r.s, r.name, &err) ||
		       pen__config_settle(&c, &r.s, &err)))
		rc = complain(&err);
	if (rc < 0) {
		rc = show(&r, &c);
		pen__config_fini(&c);
	}
	pen__settings_fini(&r.s);
	return rc;
}

static const char *const examples[] = {
	"penstock config unet3d_h100",
	"every value and its origin",
	"penstock config my.yaml reader.batch_size=16 --no-origins",
	"a file with one value changed, as YAML",
	"penstock config workload=mine ++workload.train.epochs=2 "
	"--config-dir=DIR",
	"arguments in Hydra's syntax",
	"penstock config unet3d_h100 workflow.query=dataset.format",
	"one value",
	NULL,
};

const struct command pen__cmd_config = {
	.name = "config",
	.args = "NAME|FILE.yaml [key=value ...] [flags]",
	.summary = "show the settings of a workload and their origin",
	.about = "Reads a workload (a name listed by `penstock workloads`, or "
		 "a YAML file in DLIO's format), applies the arguments, checks "
		 "the result and prints it. Keys may use Hydra's syntax "
		 "(++workload.a.b=c). Settings that start with loader. are "
		 "passed to the loader: loader.store=uring.",
	.flags = flags,
	.opts = pen__config_opts,
	.examples = examples,
	.run = run,
};
