/*
 * Reads settings from YAML, from arguments in the syntax of Hydra, and from the
 * file or built-in text of a workload. The build turns the files of workloads/
 * into a table.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/mem.h"
#include "emulate/config_int.h"
#include "emulate/yaml.h"

static int walk(struct pen_settings *s, const struct pen_yaml_node *map,
		const char *prefix, const struct pen_place *at,
		struct pen_err *err);

static int set_flow(struct pen_settings *s, const char *key,
		    const struct pen_yaml_node *node,
		    const struct pen_place *at, struct pen_err *err)
{
	struct pen_config_value v = { .list = node->kind == PEN_YAML_LIST };
	struct pen_text t = { 0 };
	int rc;

	pen__yaml_flow(node, &t);
	v.text = t.p;
	rc = t.failed ? pen__fail_nomem(err, key, t.n)
		      : pen__setting_put(s, key, &v, at, err);
	pen__text_fini(&t);
	return rc;
}

static int set_map(struct pen_settings *s, const char *key,
		   const struct pen_yaml_node *node, const struct pen_place *at,
		   struct pen_err *err)
{
	const struct pen_config_value yes = { .text = "true" };
	char below[PEN_KEY_MAX];
	struct pen_config_key k;

	if (!strcmp(key, "checkpoint.ksm") && !node->n)
		return pen__setting_put(s, key, &yes, at, err);
	if (!pen__key_resolve(key, &k) ||
	    snprintf(below, sizeof(below), "%s.", k.name) >= (int)sizeof(below))
		return pen__fail_in(at, "key", P_TOO_LONG,
				    "the name is longer than any key", err);
	if (pen__key_is_section(k.name) || pen__key_is_section(key) ||
	    pen__starts_with(key, "hydra."))
		return walk(s, node, key, at, err);
	return pen__setting_refuse(s, k.opt ? below : key, at, err);
}

static int set_node(struct pen_settings *s, const char *key,
		    const struct pen_yaml_node *node,
		    const struct pen_place *at, struct pen_err *err)
{
	const struct pen_config_value v = {
		.text = node->text,
		.null = node->kind == PEN_YAML_NULL,
	};
	struct pen_config_key k;

	if (node->kind == PEN_YAML_MAP)
		return set_map(s, key, node, at, err);
	if (node->kind == PEN_YAML_LIST && !strcmp(key, "defaults")) {
		pen__settings_note(
			s, "defaults belongs to Hydra and has no effect");
		return 0;
	}
	if (node->kind == PEN_YAML_LIST)
		return set_flow(s, key, node, at, err);
	if (v.null && pen__key_resolve(key, &k) &&
	    (!k.opt || !strcmp(key, "model")) && pen__key_is_section(key))
		return 0; /* an empty section */
	return pen__setting_put(s, key, &v, at, err);
}

static int walk(struct pen_settings *s, const struct pen_yaml_node *map,
		const char *prefix, const struct pen_place *at,
		struct pen_err *err)
{
	char key[PEN_KEY_MAX], origin[512];
	struct pen_place here = *at;
	int rc = 0;

	if (at->source != PEN_FROM_ARGS)
		here.origin = origin;
	for (size_t i = 0; !rc && i < map->n; i++) {
		const struct pen_yaml_item *it = &map->item[i];

		snprintf(origin, sizeof(origin), "%.480s:%u:%u", at->file,
			 it->line, it->col);
		if (snprintf(key, sizeof(key), "%s%s%s", prefix,
			     *prefix ? "." : "", it->key) >= (int)sizeof(key))
			return pen__fail_in(&here, "key", P_TOO_LONG,
					    "the name is longer than any key",
					    err);
		if (!*prefix && !strcmp(key, "workload"))
			rc = it->node->kind == PEN_YAML_MAP
				     ? walk(s, it->node, "", &here, err)
				     : pen__fail_in(
					       &here, key, P_BAD_VALUE,
					       "expected settings; select a "
					       "workload with the argument "
					       "workload=NAME",
					       err);
		else
			rc = set_node(s, key, it->node, &here, err);
	}
	return rc;
}

int pen__settings_yaml(struct pen_settings *s, const char *text, size_t n,
		       const char *file, struct pen_err *err)
{
	const struct pen_place at = { .file = file, .source = s->nsources };
	struct pen_yaml doc;
	char where[256];
	int rc = pen__yaml_read(&doc, text, n, file, err);

	if (rc)
		return rc;
	s->nsources++;
	if (doc.root->kind == PEN_YAML_MAP) {
		rc = walk(s, doc.root, "", &at, err);
	} else {
		snprintf(where, sizeof(where), "%.200s:%u:%u", file,
			 doc.root->line, doc.root->col);
		rc = pen__fail(err, P_BAD_YAML, where,
			       "not a workload; write `key: value` lines");
	}
	pen__yaml_fini(&doc);
	return rc;
}

/* --- arguments --- */

/*
 * Converts {a:1,b:2} of Hydra to YAML: {a: 1,b: 2}. Only the ':' after a key is
 * changed, not that in http://.
 */
static void spread_map(const char *s, struct pen_text *t)
{
	bool key = false;
	char quote = '\0';

	for (; *s; s++) {
		pen__text_put(t, s, 1);
		if (quote) {
			quote = *s == quote ? '\0' : quote;
		} else if (*s == '\'' || *s == '"') {
			quote = *s;
		} else if (*s == '{' || *s == ',') {
			key = true;
		} else if (*s == ':' && key) {
			key = false;
			if (s[1] != ' ')
				pen__text_put(t, " ", 1);
		}
	}
}

/* Parses a value in brackets, braces or quotes as YAML. */
static int set_yaml(struct pen_settings *s, const char *key, const char *value,
		    const struct pen_place *at, struct pen_err *err)
{
	struct pen_text t = { 0 };
	struct pen_yaml doc = { 0 };
	int rc;

	spread_map(value, &t);
	rc = t.failed ? pen__fail_nomem(err, key, t.n)
		      : pen__yaml_read(&doc, t.p, t.n, key, err);
	if (!rc)
		rc = set_node(s, key, doc.root, at, err);
	pen__yaml_fini(&doc);
	pen__text_fini(&t);
	return rc;
}

int pen__settings_set(struct pen_settings *s, const char *key,
		      const char *value, const char *origin,
		      struct pen_err *err)
{
	const struct pen_place at = { .file = "",
				      .origin = origin,
				      .source = PEN_FROM_ARGS };
	const struct pen_config_value v = {
		.text = value,
		.null = !strcmp(value, "null") || !strcmp(value, "~"),
	};

	if (!pen__yaml_is_text(key) || !pen__yaml_is_text(value))
		return pen__fail(err, P_BAD_VALUE, "argument",
				 "not UTF-8 text");
	if (*value && strchr("[{'\"", *value))
		return set_yaml(s, key, value, &at, err);
	return pen__setting_put(s, key, &v, &at, err);
}

static int choose(struct pen_settings *s, const char *name, struct pen_err *err)
{
	char *copy = pen__strdup(name);

	if (!*name) {
		pen__free(copy);
		return pen__fail(err, P_MISSING_SETTING, "workload",
				 "the name is empty; write workload=NAME");
	}
	if (!copy)
		return pen__fail_nomem(err, "workload", strlen(name));
	pen__free(s->workload);
	s->workload = copy;
	return 0;
}

int pen__settings_arg(struct pen_settings *s, const char *arg,
		      struct pen_err *err)
{
	const char *from = arg + strspn(arg, "+"), *eq = strchr(from, '=');
	const bool drop = *from == '~';
	const size_t n = eq ? (size_t)(eq - from) : strlen(from);
	char key[PEN_KEY_MAX];
	int rc;

	if (n <= drop || (!eq && !drop) || n >= sizeof(key) ||
	    strchr(arg, '\n'))
		return pen__fail(err, P_BAD_VALUE, arg,
				 "not a setting; write key=value");
	snprintf(key, sizeof(key), "%.*s", (int)n - drop, from + drop);
	if (!strcmp(key, "workload") && !drop)
		rc = choose(s, eq + 1, err);
	else
		rc = pen__settings_set(
			s, pen__starts_with(key, "workload.") ? key + 9 : key,
			drop ? "null" : eq + 1, "argument", err);
	if (!rc)
		pen__text_add(&s->overrides, "%s\n", arg);
	if (!rc && s->overrides.failed)
		rc = pen__fail_nomem(err, "arguments", s->overrides.n);
	return rc;
}

/* --- workloads --- */

extern const struct pen_workload
	pen__workload_table[]; /* generated by the build */

const struct pen_workload *pen__workload_at(size_t i)
{
	for (size_t k = 0; k < i; k++)
		if (!pen__workload_table[k].name)
			return NULL;
	return pen__workload_table[i].name ? &pen__workload_table[i] : NULL;
}

const struct pen_workload *pen__workload_find(const char *name)
{
	for (const struct pen_workload *w = pen__workload_table; w->name; w++)
		if (!strcmp(w->name, name))
			return w;
	return NULL;
}

/* Joins the leading comment lines with spaces. */
void pen__workload_about(const struct pen_workload *w, char *buf, size_t cap)
{
	const char *p = w->text, *end = w->text + w->n;
	size_t n = 0;

	while (cap && p < end && *p == '#') {
		p++;
		while (p < end && *p == ' ')
			p++;
		if (n && n + 1 < cap)
			buf[n++] = ' ';
		for (; p < end && *p != '\n'; p++)
			if (n + 1 < cap)
				buf[n++] = *p;
		p += p < end;
	}
	if (cap)
		buf[n] = '\0';
}

static bool is_path(const char *name)
{
	const size_t n = strlen(name);

	return strchr(name, '/') || (n > 5 && !strcmp(name + n - 5, ".yaml")) ||
	       (n > 4 && !strcmp(name + n - 4, ".yml"));
}

static int load_text(struct pen_settings *s, const char *text, size_t n,
		     const char *file, struct pen_err *err)
{
	int rc = pen__settings_yaml(s, text, n, file, err);

	if (rc)
		return rc;
	pen__free(s->source);
	s->source = pen__strdup(file);
	return s->source ? 0 : pen__fail_nomem(err, file, strlen(file));
}

static int load_file(struct pen_settings *s, const char *path,
		     struct pen_err *err)
{
	const size_t most = PEN_YAML_MAX + 1; /* one byte more than allowed */
	char *text = pen__alloc(most, 1);
	FILE *f = text ? fopen(path, "rbe") : NULL;
	size_t n = 0;
	int rc = 0;

	if (!text)
		return pen__fail_nomem(err, path, most);
	if (f)
		n = fread(text, 1, most, f);
	if (f && ferror(f) && errno == EISDIR)
		rc = pen__fail(
			err, P_BAD_VALUE, path,
			"a directory, not a file; specify a YAML file in it");
	else if (!f || ferror(f))
		rc = pen__fail_sys(err, errno, path,
				   f ? "cannot read the file"
				     : "cannot open the file");
	else
		rc = load_text(s, text, n, path, err);
	if (f)
		fclose(f);
	pen__free(text);
	return rc;
}

static int fail_workload(const struct pen_settings *s, const char *name,
			 struct pen_err *err)
{
	struct pen_guess near = { 0 };
	size_t alike = 0;
	char list[256] = "";

	for (const struct pen_workload *w = pen__workload_table; w->name; w++) {
		const size_t at = strlen(list);

		pen__guess(&near, name, w->name, w->name);
		if (!pen__starts_with(w->name, name))
			continue;
		alike++;
		snprintf(list + at, sizeof(list) - at, "%s%s", at ? ", " : "",
			 w->name);
	}
	/* prefer names with this prefix to names with a similar spelling */
	if (alike > 1)
		return pen__fail(err, P_UNKNOWN_WORKLOAD, name,
				 "no such workload; similar names: %s", list);
	if (near.best)
		return pen__fail(err, P_UNKNOWN_WORKLOAD, name,
				 "no such workload; did you mean %s?",
				 near.best);
	if (s->config_dir)
		return pen__fail(err, P_UNKNOWN_WORKLOAD, name,
				 "no such workload in %.100s/workload or built "
				 "in; see `penstock workloads`",
				 s->config_dir);
	return pen__fail(err, P_UNKNOWN_WORKLOAD, name,
			 "no such workload; see `penstock workloads` or "
			 "specify a .yaml file");
}

static int load_named(struct pen_settings *s, const char *name,
		      struct pen_err *err)
{
	const struct pen_workload *w;
	struct stat st;
	char path[4096];

	if (s->config_dir && stat(s->config_dir, &st))
		return pen__fail(err, P_BAD_VALUE, s->config_dir,
				 "no such directory");
	if (s->config_dir &&
	    snprintf(path, sizeof(path), "%s/workload/%s.yaml", s->config_dir,
		     name) < (int)sizeof(path) &&
	    !stat(path, &st))
		return load_file(s, path, err);
	w = pen__workload_find(name);
	if (!w)
		return fail_workload(s, name, err);
	snprintf(path, sizeof(path), "built in: %s", name);
	return load_text(s, w->text, w->n, path, err);
}

int pen__settings_load(struct pen_settings *s, const char *name_or_file,
		       struct pen_err *err)
{
	int rc = 0;

	if (name_or_file && s->workload && strcmp(name_or_file, s->workload))
		return pen__fail(err, P_CONFLICT, "workload",
				 "specified twice: %.80s and %.80s",
				 name_or_file, s->workload);
	if (!s->workload)
		rc = choose(s, name_or_file ? name_or_file : "default", err);
	if (rc)
		return rc;
	return is_path(s->workload) ? load_file(s, s->workload, err)
				    : load_named(s, s->workload, err);
}
