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

#include "base/mem.h"
#include "emulate/config_int.h"

static const char *place_text(const struct pen_place *at, char buf[512])
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
int pen__fail_in(const struct pen_place *at, const char *key, int code,
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
	const struct pen_place at = { .origin = set ? set->origin : NULL,
				      .source = set ? set->source
						    : PEN_FROM_ARGS };
	char what[256];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(what, sizeof(what), fmt, ap);
	va_end(ap);
	return pen__fail_in(&at, key, code, what, err);
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
static int append(struct pen_settings *s, const struct pen_config_key *k,
		  char *value, const struct pen_place *at, struct pen_err *err)
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
static int store(struct pen_settings *s, const struct pen_config_key *k,
		 char *value, const struct pen_place *at, struct pen_err *err)
{
	struct pen_setting *had = find_in_source(s, k->name, at->source);
	char what[640], buf[512];

	if (!had || (had->rank == k->rank && at->source == PEN_FROM_ARGS))
		return append(s, k, value, at, err);
	if (had->rank == k->rank) {
		pen__free(value);
		snprintf(what, sizeof(what), "is there twice, first at %s",
			 had->origin);
		return pen__fail_in(at, k->name, PEN_EINVAL, what, err);
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
			const struct pen_place *at, struct pen_err *err)
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
	return pen__fail_in(at, name, PEN_EINVAL, what, err);
}

/* A key that is none: a section's own name, or one below a value. */
int pen__setting_refuse(struct pen_settings *s, const char *name,
			const struct pen_place *at, struct pen_err *err)
{
	char above[PEN_KEY_MAX];
	char *dot;

	if (pen__key_is_section(name))
		return pen__fail_in(at, name, PEN_EINVAL,
				    "is a section; it takes `key: value` lines",
				    err);
	snprintf(above, sizeof(above), "%s", name);
	dot = strrchr(above, '.');
	if (dot)
		*dot = '\0';
	if (dot && pen__opt_find(pen__config_opts, above) &&
	    !pen__key_is_section(above))
		return pen__fail_in(at, above, PEN_EINVAL,
				    "takes one value, not a map", err);
	return fail_unknown(s, name, at, err);
}

/* Classes are Python: what they would do cannot be done here. */
static bool is_plugin(const struct pen_config_key *k,
		      const struct pen_config_value *v)
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

static int free_value(struct pen_settings *s, const struct pen_config_key *k,
		      const struct pen_config_value *v,
		      const struct pen_place *at, struct pen_err *err)
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
		return pen__fail_in(at, k->name, rc, what, err);
	}
	copy = pen__strdup(v->text);
	if (!copy)
		return pen__fail_nomem(err, k->name, strlen(v->text));
	return store(s, k, copy, at, err);
}

static int known_value(struct pen_settings *s, const struct pen_config_key *k,
		       const struct pen_config_value *v,
		       const struct pen_place *at, struct pen_err *err)
{
	static const char plugin[] =
		"Python plug-ins cannot be run; what is built in is listed by "
		"`penstock formats` and `penstock stores`";
	struct pen_err why = { 0 };
	char *value = NULL;
	int rc;

	if (is_plugin(k, v)) {
		if (!s->lenient)
			return pen__fail_in(at, k->name, PEN_ENOTSUP, plugin,
					    err);
		pen__settings_note(s,
				   "%s is ignored: Python plug-ins cannot "
				   "be run",
				   k->name);
		return 0;
	}
	rc = pen__value_normal(k->opt, v, &value, &why);
	if (rc)
		return pen__fail_in(at, k->name, rc, why.msg, err);
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

/* Old settings that became two, or none. 1: it was not one of them. */
static int set_old(struct pen_settings *s, const char *key,
		   const struct pen_config_value *v, const struct pen_place *at,
		   struct pen_err *err)
{
	const struct pen_config_value yes = { .text = "true" },
				      none = { .text = "0" };
	int rc = 0;

	if (!strcmp(key, "workflow.profiling") && !v->null && !v->list &&
	    !is_switch(v->text)) {
		pen__settings_note(s, "workflow.profiling is yes or no now; "
				      "profiling.profiler says which");
		rc = pen__setting_put(s, "profiling.profiler", v, at, err);
		return rc ? rc : pen__setting_put(s, key, &yes, at, err);
	}
	if (!strcmp(key, "data_loader.prefetch")) {
		pen__settings_note(s, "data_loader.prefetch is gone; "
				      "reader.prefetch_size says how many");
		if (!strcasecmp(v->text, "false"))
			rc = pen__setting_put(s, "reader.prefetch_size", &none,
					      at, err);
		return rc;
	}
	return 1;
}

static int set_hydra(struct pen_settings *s, const struct pen_config_key *k,
		     const struct pen_config_value *v,
		     const struct pen_place *at, struct pen_err *err)
{
	if (k->opt)
		return known_value(s, k, v, at, err);
	pen__settings_note(s, "%s is Hydra's own and has no effect", k->name);
	return 0;
}

int pen__setting_put(struct pen_settings *s, const char *key,
		     const struct pen_config_value *v,
		     const struct pen_place *at, struct pen_err *err)
{
	struct pen_config_key k;
	int rc = set_old(s, key, v, at, err);

	if (rc <= 0)
		return rc;
	if (!pen__key_resolve(key, &k))
		return pen__fail_in(at, "key", PEN_EINVAL,
				    "is longer than any key", err);
	if (pen__starts_with(k.name, "hydra."))
		return set_hydra(s, &k, v, at, err);
	if (!k.opt && !k.free)
		return pen__setting_refuse(s, k.name, at, err);
	if (k.old[0])
		pen__settings_note(s, "%s is the old name of %s", k.old, k.now);
	if (k.free)
		return free_value(s, &k, v, at, err);
	return known_value(s, &k, v, at, err);
}
