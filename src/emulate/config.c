/*
 * Settings as they come in: from YAML, from arguments, each with its place.
 * Every one is checked when it is given, so that the error can point at it;
 * what must hold between them is settle's business.
 */
#include "emulate/config.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

#include "base/mem.h"
#include "emulate/config_int.h"
#include "emulate/workload.h"
#include "emulate/yaml.h"

/* Where a setting stands. */
struct place {
	const char *origin; /* a file, "argument" */
	unsigned source;
	unsigned line, col; /* 0: not in a file */
};

static const char *place_text(const struct place *at, char buf[512])
{
	if (at->line)
		snprintf(buf, 512, "%.480s:%u:%u", at->origin, at->line,
			 at->col);
	else
		snprintf(buf, 512, "%s", at->origin);
	return buf;
}

void pen__settings_init(struct pen_settings *s)
{
	*s = (struct pen_settings){ 0 };
}

void pen__settings_fini(struct pen_settings *s)
{
	for (size_t i = 0; i < s->n; i++) {
		pen__free(s->v[i].key);
		pen__free(s->v[i].value);
		pen__free(s->v[i].origin);
	}
	pen__free(s->v);
	pen__text_fini(&s->notes);
	pen__text_fini(&s->overrides);
	pen__free(s->workload);
	pen__free(s->source);
	pen__free(s->config_dir);
	*s = (struct pen_settings){ 0 };
}

void pen__settings_note(struct pen_settings *s, const char *fmt, ...)
{
	char line[512];
	const char *had = s->notes.p;
	va_list ap;
	size_t n;

	va_start(ap, fmt);
	vsnprintf(line, sizeof(line) - 1, fmt, ap);
	va_end(ap);
	n = strlen(line);
	line[n++] = '\n';
	line[n] = '\0';
	while (had && (had = strstr(had, line))) {
		if (had == s->notes.p || had[-1] == '\n')
			return;
		had++;
	}
	pen__text_put(&s->notes, line, n);
}

const struct pen_setting *pen__settings_find(const struct pen_settings *s,
					     const char *key)
{
	for (size_t i = s->n; i-- > 0;)
		if (!strcmp(s->v[i].key, key))
			return &s->v[i];
	return NULL;
}

/* A place in a file comes first; what an argument is, its key tells. */
static int fail_in(const struct place *at, const char *key, int code,
		   const char *what, struct pen_err *err)
{
	char buf[512];

	if (at->source == PEN_FROM_ARGS)
		return pen__fail(err, code, key, "%s", what);
	return pen__fail(err, code, place_text(at, buf), "%s: %s", key, what);
}

int pen__settings_fail(const struct pen_settings *s, int code, const char *key,
		       struct pen_err *err, const char *fmt, ...)
{
	const struct pen_setting *set = pen__settings_find(s, key);
	const struct place at = { .origin = set ? set->origin : NULL,
				  .source = set ? set->source : PEN_FROM_ARGS };
	char what[256];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(what, sizeof(what), fmt, ap);
	va_end(ap);
	return fail_in(&at, key, code, what, err);
}

/* Room for one at index i; the caller fills it. */
static struct pen_setting *insert(struct pen_settings *s, size_t i)
{
	struct pen_setting *v;

	if ((s->n & (s->n + 1)) == 0) { /* full at 0, 1, 3, 7, ... */
		v = pen__realloc(s->v, s->n * 2 + 1, sizeof(*v));
		if (!v)
			return NULL;
		s->v = v;
	}
	memmove(s->v + i + 1, s->v + i, (s->n - i) * sizeof(*s->v));
	s->n++;
	s->v[i] = (struct pen_setting){ 0 };
	return &s->v[i];
}

/* Takes `value`. YAML goes below the arguments. */
static int append(struct pen_settings *s, const struct pen_key *k, char *value,
		  const struct place *at, struct pen_err *err)
{
	char buf[512], *key = pen__strdup(k->name),
		       *origin = pen__strdup(place_text(at, buf));
	struct pen_setting *to = NULL;
	size_t i = s->n;

	while (i && s->v[i - 1].source > at->source)
		i--;
	if (key && origin)
		to = insert(s, i);
	if (!to) {
		pen__free(key);
		pen__free(origin);
		pen__free(value);
		return pen__fail_nomem(err, k->name, sizeof(*to));
	}
	*to = (struct pen_setting){ key, value, origin, at->source, k->rank };
	return 0;
}

static struct pen_setting *find_in_source(struct pen_settings *s,
					  const char *key, unsigned source)
{
	for (size_t i = s->n; i-- > 0;)
		if (s->v[i].source == source && !strcmp(s->v[i].key, key))
			return &s->v[i];
	return NULL;
}

/*
 * Takes `value`. One source may name a thing by an old and by today's name:
 * today's wins. Twice by the same name is an error in a file; of arguments,
 * the last wins.
 */
static int store(struct pen_settings *s, const struct pen_key *k, char *value,
		 const struct place *at, struct pen_err *err)
{
	struct pen_setting *had = find_in_source(s, k->name, at->source);
	char what[640], buf[512];

	if (!had || (had->rank == k->rank && at->source == PEN_FROM_ARGS))
		return append(s, k, value, at, err);
	if (had->rank == k->rank) {
		pen__free(value);
		snprintf(what, sizeof(what), "is there twice, first at %s",
			 had->origin);
		return fail_in(at, k->name, PEN_EINVAL, what, err);
	}
	pen__settings_note(
		s, "%s is given by two names; that of %s counts", k->name,
		had->rank > k->rank ? had->origin : place_text(at, buf));
	if (had->rank > k->rank) {
		pen__free(value);
		return 0;
	}
	pen__free(had->value);
	had->value = value;
	had->rank = k->rank;
	value = pen__strdup(place_text(at, buf));
	if (!value)
		return pen__fail_nomem(err, k->name, strlen(buf));
	pen__free(had->origin);
	had->origin = value;
	return 0;
}

static int fail_unknown(struct pen_settings *s, const char *name,
			const struct place *at, struct pen_err *err)
{
	const char *near = pen__key_suggest(name);
	char what[256];

	if (s->lenient) {
		if (near)
			pen__settings_note(s,
					   "unknown key %s is ignored; did "
					   "you mean %s?",
					   name, near);
		else
			pen__settings_note(s, "unknown key %s is ignored",
					   name);
		return 0;
	}
	if (near)
		snprintf(what, sizeof(what), "unknown key; did you mean %s?",
			 near);
	else
		snprintf(what, sizeof(what),
			 "unknown key; see `penstock config --help`");
	return fail_in(at, name, PEN_EINVAL, what, err);
}

/* A key that is none: a section's own name, or one below a value. */
static int fail_shape(struct pen_settings *s, const char *name,
		      const struct place *at, struct pen_err *err)
{
	char above[PEN_KEY_MAX];
	char *dot;

	if (pen__key_is_section(name))
		return fail_in(at, name, PEN_EINVAL,
			       "is a section; it takes `key: value` lines",
			       err);
	snprintf(above, sizeof(above), "%s", name);
	dot = strrchr(above, '.');
	if (dot)
		*dot = '\0';
	if (dot && pen__opt_find(pen__config_opts, above) &&
	    !pen__key_is_section(above))
		return fail_in(at, above, PEN_EINVAL,
			       "takes one value, not a map", err);
	return fail_unknown(s, name, at, err);
}

/* Classes are Python: what they would do cannot be done here. */
static bool is_plugin(const struct pen_key *k, const struct pen_value *v)
{
	static const char *const keys[] = {
		"reader.data_loader_classname", "reader.reader_classname",
		"checkpoint.checkpoint_mechanism_classname", NULL
	};

	for (size_t i = 0; keys[i]; i++)
		if (!strcmp(k->name, keys[i]))
			return !v->null && *v->text &&
			       strcasecmp(v->text, "none") != 0;
	return !strcmp(k->name, "reader.data_loader") && !v->null &&
	       !strcasecmp(v->text, "custom");
}

static int free_value(struct pen_settings *s, const struct pen_key *k,
		      const struct pen_value *v, const struct place *at,
		      struct pen_err *err)
{
	struct pen_err why = { 0 };
	struct pen_spec *spec = NULL;
	char *copy, what[400];
	int rc = 0;

	if (pen__starts_with(k->name, "loader.")) {
		rc = pen_spec_new(&spec, err);
		if (rc)
			return rc;
		rc = pen_spec_set(spec, k->name + strlen("loader."), v->text,
				  &why);
		pen_spec_free(spec);
	}
	if (rc) {
		snprintf(what, sizeof(what), "%s", why.msg);
		return fail_in(at, k->name, rc, what, err);
	}
	copy = pen__strdup(v->text);
	if (!copy)
		return pen__fail_nomem(err, k->name, strlen(v->text));
	return store(s, k, copy, at, err);
}

static int known_value(struct pen_settings *s, const struct pen_key *k,
		       const struct pen_value *v, const struct place *at,
		       struct pen_err *err)
{
	static const char plugin[] =
		"Python plug-ins cannot be run; what is built in is listed by "
		"`penstock formats` and `penstock stores`";
	struct pen_err why = { 0 };
	char *value = NULL;
	int rc;

	if (is_plugin(k, v)) {
		if (!s->lenient)
			return fail_in(at, k->name, PEN_ENOTSUP, plugin, err);
		pen__settings_note(s,
				   "%s is ignored: Python plug-ins cannot "
				   "be run",
				   k->name);
		return 0;
	}
	rc = pen__value_normal(k->opt, v, &value, &why);
	if (rc)
		return fail_in(at, k->name, rc, why.msg, err);
	return store(s, k, value, at, err);
}

static bool is_switch(const char *v)
{
	static const char *const w[] = { "true", "false", "yes", "no", "on",
					 "off",	 "1",	  "0",	 NULL };

	for (size_t i = 0; w[i]; i++)
		if (!strcasecmp(v, w[i]))
			return true;
	return false;
}

static int set(struct pen_settings *s, const char *key,
	       const struct pen_value *v, const struct place *at,
	       struct pen_err *err);

/* Old settings that became two, or none. 1: it was not one of them. */
static int set_old(struct pen_settings *s, const char *key,
		   const struct pen_value *v, const struct place *at,
		   struct pen_err *err)
{
	const struct pen_value yes = { .text = "true" }, none = { .text = "0" };
	int rc = 0;

	if (!strcmp(key, "workflow.profiling") && !v->null && !v->list &&
	    !is_switch(v->text)) {
		pen__settings_note(s, "workflow.profiling is yes or no now; "
				      "profiling.profiler says which");
		rc = set(s, "profiling.profiler", v, at, err);
		return rc ? rc : set(s, key, &yes, at, err);
	}
	if (!strcmp(key, "data_loader.prefetch")) {
		pen__settings_note(s, "data_loader.prefetch is gone; "
				      "reader.prefetch_size says how many");
		if (!strcasecmp(v->text, "false"))
			rc = set(s, "reader.prefetch_size", &none, at, err);
		return rc;
	}
	return 1;
}

static int set_hydra(struct pen_settings *s, const struct pen_key *k,
		     const struct pen_value *v, const struct place *at,
		     struct pen_err *err)
{
	if (k->opt)
		return known_value(s, k, v, at, err);
	pen__settings_note(s, "%s is Hydra's own and has no effect", k->name);
	return 0;
}

static int set(struct pen_settings *s, const char *key,
	       const struct pen_value *v, const struct place *at,
	       struct pen_err *err)
{
	struct pen_key k;
	int rc = set_old(s, key, v, at, err);

	if (rc <= 0)
		return rc;
	if (!pen__key_resolve(key, &k))
		return fail_in(at, "key", PEN_EINVAL, "is longer than any key",
			       err);
	if (pen__starts_with(k.name, "hydra."))
		return set_hydra(s, &k, v, at, err);
	if (!k.opt && !k.free)
		return fail_shape(s, k.name, at, err);
	if (k.old[0])
		pen__settings_note(s, "%s is the old name of %s", k.old, k.now);
	if (k.free)
		return free_value(s, &k, v, at, err);
	return known_value(s, &k, v, at, err);
}

/* --- YAML --- */

static int walk(struct pen_settings *s, const struct pen_yaml_node *map,
		const char *prefix, const struct place *at,
		struct pen_err *err);

static int set_flow(struct pen_settings *s, const char *key,
		    const struct pen_yaml_node *node, const struct place *at,
		    struct pen_err *err)
{
	struct pen_value v = { .list = node->kind == PEN_YAML_LIST };
	struct pen_text t = { 0 };
	int rc;

	pen__yaml_flow(node, &t);
	v.text = t.p;
	rc = t.failed ? pen__fail_nomem(err, key, t.n)
		      : set(s, key, &v, at, err);
	pen__text_fini(&t);
	return rc;
}

static int set_map(struct pen_settings *s, const char *key,
		   const struct pen_yaml_node *node, const struct place *at,
		   struct pen_err *err)
{
	const struct pen_value yes = { .text = "true" };
	char below[PEN_KEY_MAX];
	struct pen_key k;

	if (!strcmp(key, "checkpoint.ksm") && !node->n)
		return set(s, key, &yes, at, err);
	if (!pen__key_resolve(key, &k) ||
	    snprintf(below, sizeof(below), "%s.", k.name) >= (int)sizeof(below))
		return fail_in(at, "key", PEN_EINVAL, "is longer than any key",
			       err);
	if (pen__key_is_section(k.name) || pen__key_is_section(key) ||
	    pen__starts_with(key, "hydra."))
		return walk(s, node, key, at, err);
	return fail_shape(s, k.opt ? below : key, at, err);
}

/* at->origin is the place of this very node. */
static int set_node(struct pen_settings *s, const char *key,
		    const struct pen_yaml_node *node, const struct place *at,
		    struct pen_err *err)
{
	const struct pen_value v = {
		.text = node->text,
		.null = node->kind == PEN_YAML_NULL,
		.quoted = node->kind == PEN_YAML_QUOTED,
	};
	struct pen_key k;

	switch (node->kind) {
	case PEN_YAML_MAP:
		return set_map(s, key, node, at, err);
	case PEN_YAML_LIST:
		if (!strcmp(key, "defaults"))
			break;
		return set_flow(s, key, node, at, err);
	case PEN_YAML_NULL: /* a section with nothing in it */
		if (pen__key_resolve(key, &k) &&
		    (!k.opt || !strcmp(key, "model")) &&
		    pen__key_is_section(key))
			return 0;
		return set(s, key, &v, at, err);
	default:
		return set(s, key, &v, at, err);
	}
	pen__settings_note(s, "defaults is Hydra's own and has no effect");
	return 0;
}

static int walk(struct pen_settings *s, const struct pen_yaml_node *map,
		const char *prefix, const struct place *at, struct pen_err *err)
{
	char key[PEN_KEY_MAX];
	struct place here = *at;
	int rc = 0;

	for (size_t i = 0; !rc && i < map->n; i++) {
		const struct pen_yaml_item *it = &map->item[i];

		if (at->source != PEN_FROM_ARGS) {
			here.line = it->line;
			here.col = it->col;
		}
		if (snprintf(key, sizeof(key), "%s%s%s", prefix,
			     *prefix ? "." : "", it->key) >= (int)sizeof(key))
			return fail_in(&here, "key", PEN_EINVAL,
				       "is longer than any key", err);
		if (!*prefix && !strcmp(key, "workload") &&
		    it->node->kind == PEN_YAML_MAP)
			rc = walk(s, it->node, "", &here, err);
		else
			rc = set_node(s, key, it->node, &here, err);
	}
	return rc;
}

int pen__settings_yaml(struct pen_settings *s, const char *text, size_t n,
		       const char *file, struct pen_err *err)
{
	const struct place at = { .origin = file, .source = s->nsources };
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
		rc = pen__fail(err, PEN_EINVAL, where,
			       "is not a workload: it takes `key: value` "
			       "lines");
	}
	pen__yaml_fini(&doc);
	return rc;
}

/* --- arguments --- */

/*
 * Hydra's {a:1,b:2} as YAML has it: {a: 1,b: 2}. Only the ':' after a key is
 * touched, not the one in http://.
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

/* A value in brackets, braces or quotes: YAML. */
static int set_yaml(struct pen_settings *s, const char *key, const char *value,
		    const struct place *at, struct pen_err *err)
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

static int set_text(struct pen_settings *s, const char *key, const char *value,
		    const struct place *at, struct pen_err *err)
{
	const struct pen_value v = {
		.text = value,
		.null = !strcmp(value, "null") || !strcmp(value, "~"),
	};

	if (*value && strchr("[{'\"", *value))
		return set_yaml(s, key, value, at, err);
	return set(s, key, &v, at, err);
}

int pen__settings_set(struct pen_settings *s, const char *key,
		      const char *value, const char *origin,
		      struct pen_err *err)
{
	const struct place at = { .origin = origin, .source = PEN_FROM_ARGS };

	return set_text(s, key, value, &at, err);
}

static int choose(struct pen_settings *s, const char *name, struct pen_err *err)
{
	char *copy = pen__strdup(name);

	if (!*name) {
		pen__free(copy);
		return pen__fail(err, PEN_EINVAL, "workload", "needs a name");
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
	const struct place at = { .origin = "argument",
				  .source = PEN_FROM_ARGS };
	const char *from = arg + strspn(arg, "+"), *eq = strchr(from, '=');
	const bool drop = *from == '~';
	const size_t n = eq ? (size_t)(eq - from) : strlen(from);
	char key[PEN_KEY_MAX];
	int rc;

	if (n <= drop || (!eq && !drop) || n >= sizeof(key) ||
	    strchr(arg, '\n'))
		return pen__fail(err, PEN_EINVAL, arg,
				 "is not a setting: write key=value");
	snprintf(key, sizeof(key), "%.*s", (int)n - drop, from + drop);
	if (!strcmp(key, "workload") && !drop)
		rc = choose(s, eq + 1, err);
	else
		rc = set_text(
			s, pen__starts_with(key, "workload.") ? key + 9 : key,
			drop ? "null" : eq + 1, &at, err);
	if (!rc)
		pen__text_add(&s->overrides, "%s\n", arg);
	if (!rc && s->overrides.failed)
		rc = pen__fail_nomem(err, "arguments", s->overrides.n);
	return rc;
}

/* --- workloads --- */

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
	char *text = NULL;
	size_t n = 0;
	int rc = pen__yaml_slurp(path, &text, &n, err);

	if (!rc)
		rc = load_text(s, text, n, path, err);
	pen__free(text);
	return rc;
}

static int fail_workload(const struct pen_settings *s, const char *name,
			 struct pen_err *err)
{
	const char *names[256], *near;
	const struct pen_workload *w;
	size_t n = 0;

	for (; n < 255 && (w = pen__workload_at(n)); n++)
		names[n] = w->name;
	names[n] = NULL;
	near = pen__nearest(name, names);
	if (near)
		return pen__fail(err, PEN_EINVAL, name,
				 "no such workload; did you mean %s?", near);
	if (s->config_dir)
		return pen__fail(err, PEN_EINVAL, name,
				 "no such workload, neither in %.100s/workload "
				 "nor built in; see `penstock workloads`",
				 s->config_dir);
	return pen__fail(err, PEN_EINVAL, name,
			 "no such workload; see `penstock workloads`, or name "
			 "a .yaml file");
}

static int load_named(struct pen_settings *s, const char *name,
		      struct pen_err *err)
{
	const struct pen_workload *w;
	struct stat st;
	char path[4096];

	if (s->config_dir && stat(s->config_dir, &st))
		return pen__fail(err, PEN_EINVAL, s->config_dir,
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
		return pen__fail(err, PEN_EINVAL, "workload",
				 "is given twice: %.80s and %.80s",
				 name_or_file, s->workload);
	if (!s->workload)
		rc = choose(s, name_or_file ? name_or_file : "default", err);
	if (rc)
		return rc;
	return is_path(s->workload) ? load_file(s, s->workload, err)
				    : load_named(s, s->workload, err);
}
