/*
 * Adds one setting: the value is converted and validated where it is set, so
 * that the error can point at it, and stored with its location. Combinations of
 * settings are validated later, by pen__config_settle().
 *
 * Values are read as in YAML 1.1: 1_000, 0x10, 0o17 and 1e3 are numbers, False
 * and off disable shuffling, choices are case-insensitive.
 */
#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/mem.h"
#include "emulate/config_int.h"

#define NUMBER_MAX 64

/* --- the list --- */

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

/* A location in a file replaces the key as the place of an error. */
int pen__fail_in(const struct pen_place *at, const char *key, int kind,
		 const char *what, struct pen_err *err)
{
	if (at->source == PEN_FROM_ARGS)
		return pen__fail(err, kind, key, "%s", what);
	return pen__fail(err, kind, at->origin, "%s: %s", key, what);
}

int pen__settings_fail(const struct pen_settings *s, int kind, const char *key,
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
	return pen__fail_in(&at, key, kind, what, err);
}

/* Takes ownership of `value` and `origin`. YAML is inserted before the
 * arguments. */
static int append(struct pen_settings *s, const struct pen_config_key *k,
		  char *value, char *origin, unsigned source)
{
	char *key = pen__strdup(k->name);
	struct pen_setting *v = s->v;
	size_t i = s->n;

	if (key && (s->n & (s->n + 1)) == 0) /* full at 0, 1, 3, 7, ... */
		v = pen__realloc(s->v, s->n * 2 + 1, sizeof(*v));
	if (!key || !v) {
		pen__free(key);
		pen__free(origin);
		pen__free(value);
		return PEN_ENOMEM;
	}
	s->v = v;
	while (i && v[i - 1].source > source)
		i--;
	memmove(v + i + 1, v + i, (s->n++ - i) * sizeof(*v));
	v[i] = (struct pen_setting){ key, value, origin, source, k->rank };
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
 * Takes ownership of `value`. If a source uses both an old name and the current
 * one, the current one wins. The same name twice is an error in a file; of
 * several arguments, the last wins.
 */
static int store(struct pen_settings *s, const struct pen_config_key *k,
		 char *value, const struct pen_place *at, struct pen_err *err)
{
	struct pen_setting *had = find_in_source(s, k->name, at->source);
	char what[640], *origin;

	if (had && had->rank == k->rank && at->source != PEN_FROM_ARGS) {
		pen__free(value);
		snprintf(what, sizeof(what), "set twice, first at %s",
			 had->origin);
		return pen__fail_in(at, k->name, P_CONFLICT, what, err);
	}
	if (had && had->rank != k->rank)
		pen__settings_note(
			s, "%s is set under two names; the one at %s is used",
			k->name,
			had->rank > k->rank ? had->origin : at->origin);
	if (had && had->rank > k->rank) {
		pen__free(value);
		return 0;
	}
	origin = pen__strdup(at->origin);
	if (origin && had && had->rank < k->rank) {
		pen__free(had->value);
		pen__free(had->origin);
		had->value = value;
		had->origin = origin;
		had->rank = k->rank;
		return 0;
	}
	if (origin && !append(s, k, value, origin, at->source))
		return 0;
	if (!origin)
		pen__free(value);
	return pen__fail_nomem(err, k->name, strlen(at->origin));
}

/* --- values --- */

/* Aliases of values. */
static const struct {
	const char *key, *from, *to;
} words[] = {
	{ "dataset.format", "jpg", "jpeg" },
	{ "dataset.format", "jepg", "jpeg" },
	{ "reader.file_shuffle", "false", "off" },
	{ "reader.file_shuffle", "no", "off" },
	{ "reader.file_shuffle", "true", "seed" },
	{ "reader.sample_shuffle", "false", "off" },
	{ "reader.sample_shuffle", "no", "off" },
	{ "reader.sample_shuffle", "true", "seed" },
	{ "dataset.compression", "false", "none" },
	{ "profiling.profiler", "false", "none" },
};

/* Converts 0x1F, 0o17, 017 and 0b1 to decimal; false for anything else. */
static bool based(const char *s, char out[NUMBER_MAX])
{
	const char *p = s + (*s == '-' || *s == '+');
	int base = 0;
	uint64_t v;
	char *end;

	if (*p++ != '0')
		return false;
	if (*p == 'x' || *p == 'o' || *p == 'b')
		base = *p == 'x' ? 16 : *p == 'o' ? 8 : 2;
	else if (*p && strspn(p, "01234567") == strlen(p))
		base = 8;
	p += base && !isdigit((unsigned char)*p);
	if (!base || !isxdigit((unsigned char)*p) || strlen(p) > 20)
		return false;
	v = strtoull(p, &end, base);
	if (*end || v > INT64_MAX)
		return false;
	snprintf(out, NUMBER_MAX, "%s%llu", *s == '-' ? "-" : "",
		 (unsigned long long)v);
	return true;
}

/* Converts 1e3 and 8.0 where an integer is expected. */
static void whole(char num[NUMBER_MAX])
{
	const bool minus = *num == '-';
	uint64_t v;

	if (!num[strcspn(num, ".eE")] ||
	    strspn(num, "+-0123456789.eE") != strlen(num) ||
	    pen__parse_count(num + (minus || *num == '+'), &v) ||
	    v > (uint64_t)1 << 53)
		return;
	snprintf(num, NUMBER_MAX, "%s%llu", minus ? "-" : "",
		 (unsigned long long)v);
}

/* Converts a number of n bytes; text too long to be a number is left for the
 * table to reject. */
static void put_number(const struct pen_opt *o, const char *s, size_t n,
		       struct pen_text *t)
{
	char num[NUMBER_MAX];
	size_t to = 0;
	uint64_t size;

	if (n >= NUMBER_MAX) {
		pen__text_put(t, s, n);
		return;
	}
	for (size_t i = 0; i < n; i++)
		if (s[i] != '_' || !i || !isalnum((unsigned char)s[i - 1]))
			num[to++] = s[i];
	num[to] = '\0';
	if (!based(num, num)) {
		if (o->type == PEN_OPT_INT || o->type == PEN_OPT_LIST)
			whole(num);
		/* lengths may be fractions and may have units */
		if (o->type == PEN_OPT_DOUBLE && to &&
		    isalpha((unsigned char)num[to - 1]) &&
		    pen__starts_with(o->name, "dataset.record_length") &&
		    !pen__parse_size(num, &size))
			snprintf(num, NUMBER_MAX, "%llu",
				 (unsigned long long)size);
	}
	pen__text_put(t, num, strlen(num));
}

/* Converts each number of a list. */
static void put_numbers(const struct pen_opt *o, const char *s,
			struct pen_text *t)
{
	while (*s) {
		const size_t n = strcspn(s, "[], \t");

		if (n)
			put_number(o, s, n, t);
		else
			pen__text_put(t, s, 1);
		s += n ? n : 1;
	}
}

/* Returns the spelling of the table if s is a choice. */
static const char *choice(const struct pen_opt *o, const char *s)
{
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		if (!strcmp(words[i].key, o->name) &&
		    !strcasecmp(words[i].from, s))
			s = words[i].to;
	for (size_t i = 0; o->choices[i]; i++)
		if (!strcasecmp(o->choices[i], s))
			return o->choices[i];
	return s;
}

static void put_value(const struct pen_opt *o, const char *s,
		      struct pen_text *t)
{
	const size_t n = strlen(s);

	if (o->choices)
		s = choice(o, s);
	if (o->type == PEN_OPT_LIST)
		put_numbers(o, s, t);
	else if (!o->choices && o->type != PEN_OPT_STR &&
		 o->type != PEN_OPT_BOOL)
		put_number(o, s, n, t);
	else if (!strcmp(o->name, "profiling.iostat_devices") && n > 1 &&
		 *s == '[' && s[n - 1] == ']') /* "[sda, sdb]": "sda, sdb" */
		pen__text_put(t, s + 1, n - 2);
	else
		pen__text_put(t, s, strlen(s));
}

static bool takes_list(const struct pen_opt *o)
{
	return o->type == PEN_OPT_LIST ||
	       !strcmp(o->name, "profiling.iostat_devices") ||
	       pen__starts_with(o->name, "dataset.parquet.");
}

/* Validates a value with a scratch configuration. */
static int try_out(const struct pen_opt *o, const char *value,
		   struct pen_err *err)
{
	struct pen_config scratch;
	int rc;

	memset(&scratch, 0, sizeof(scratch));
	rc = pen__opt_set(pen__config_opts, &scratch, o->name, value, err);
	pen__opt_fini(pen__config_opts, &scratch);
	return rc;
}

/* Converts and validates a value; the caller frees *out. */
static int known_value(const struct pen_opt *o,
		       const struct pen_config_value *v, char **out,
		       struct pen_err *err)
{
	const char *s = v->null ? (o->dflt ? o->dflt : "") : v->text;
	struct pen_text t = { 0 };
	int rc;

	if (v->list && !takes_list(o))
		return pen__fail(err, P_BAD_VALUE, o->name,
				 "'%.80s' is a list; specify a single value",
				 s);
	if (o->type != PEN_OPT_STR && strstr(s, "${"))
		return pen__fail(err, P_BAD_VALUE, o->name,
				 "'%.80s' cannot be resolved; ${...} works in "
				 "text values only",
				 s);
	pen__text_put(&t, "", 0);
	if (v->null)
		pen__text_put(&t, s, strlen(s));
	else
		put_value(o, s, &t);
	rc = t.failed ? pen__fail_nomem(err, o->name, strlen(s))
		      : try_out(o, t.p, err);
	if (rc)
		pen__text_fini(&t);
	else
		*out = t.p;
	return rc;
}

/* A key that is not in the table: those of the loader are validated by a spec.
 */
static int free_value(const char *key, const struct pen_config_value *v,
		      char **out, struct pen_err *err)
{
	struct pen_spec *spec = NULL;
	int rc = 0;

	if (pen__starts_with(key, "loader.")) {
		rc = pen_spec_new(&spec, err);
		if (!rc)
			rc = pen_spec_set(spec, key + strlen("loader."),
					  v->text, err);
		pen_spec_free(spec);
	}
	if (rc)
		return rc;
	*out = pen__strdup(v->text);
	return *out ? 0 : pen__fail_nomem(err, key, strlen(v->text));
}

/* --- unknown and old keys --- */

static int fail_unknown(struct pen_settings *s, const char *name,
			const struct pen_place *at, struct pen_err *err)
{
	const char *near = pen__key_suggest(name);
	char what[256];

	if (!s->lenient) {
		snprintf(what, sizeof(what), "unknown key; %s%s%s",
			 near ? "did you mean "
			      : "see `penstock config --help`",
			 near ? near : "", near ? "?" : "");
		return pen__fail_in(at, name, P_UNKNOWN_NAME, what, err);
	}
	pen__settings_note(s, "unknown key %s is ignored%s%s%s", name,
			   near ? "; did you mean " : "", near ? near : "",
			   near ? "?" : "");
	return 0;
}

int pen__setting_refuse(struct pen_settings *s, const char *name,
			const struct pen_place *at, struct pen_err *err)
{
	char above[PEN_KEY_MAX];
	char *dot;

	if (pen__key_is_section(name))
		return pen__fail_in(
			at, name, P_BAD_VALUE,
			"a section; write `key: value` lines below it", err);
	snprintf(above, sizeof(above), "%s", name);
	dot = strrchr(above, '.');
	if (dot)
		*dot = '\0';
	if (dot && pen__opt_find(pen__config_opts, above) &&
	    !pen__key_is_section(above))
		return pen__fail_in(at, above, P_BAD_VALUE,
				    "a map where a single value is expected",
				    err);
	return fail_unknown(s, name, at, err);
}

/* Python classes cannot run here. */
static bool is_plugin(const struct pen_config_key *k,
		      const struct pen_config_value *v)
{
	static const char *const keys[] = {
		"reader.data_loader_classname", "reader.reader_classname",
		"checkpoint.checkpoint_mechanism_classname", NULL
	};

	if (v->null)
		return false;
	for (size_t i = 0; keys[i]; i++)
		if (!strcmp(k->name, keys[i]))
			return *v->text && strcasecmp(v->text, "none") != 0;
	return !strcmp(k->name, "reader.data_loader") &&
	       !strcasecmp(v->text, "custom");
}

static int refuse_plugin(struct pen_settings *s, const char *key,
			 const struct pen_place *at, struct pen_err *err)
{
	if (!s->lenient)
		return pen__fail_in(
			at, key, P_UNSUPPORTED_FEATURE,
			"Python plug-ins cannot run here; `penstock formats` "
			"and `penstock stores` list what is built in",
			err);
	pen__settings_note(s, "%s is ignored: Python plug-ins cannot run here",
			   key);
	return 0;
}

static bool is_switch(const struct pen_config_value *v)
{
	static const struct pen_opt opt[] = {
		{ .name = "v", .type = PEN_OPT_BOOL }, { .name = NULL }
	};
	bool b;

	return v->null || v->list || !pen__opt_set(opt, &b, "v", v->text, NULL);
}

/* Old settings that became two, or none. 1: not one of them. */
static int set_old(struct pen_settings *s, const char *key,
		   const struct pen_config_value *v, const struct pen_place *at,
		   struct pen_err *err)
{
	const struct pen_config_value yes = { .text = "true" },
				      none = { .text = "0" };
	int rc = 0;

	if (!strcmp(key, "workflow.profiling") && !is_switch(v)) {
		pen__settings_note(s,
				   "workflow.profiling is now true or false; "
				   "profiling.profiler selects the profiler");
		rc = pen__setting_put(s, "profiling.profiler", v, at, err);
		return rc ? rc : pen__setting_put(s, key, &yes, at, err);
	}
	if (!strcmp(key, "data_loader.prefetch")) {
		pen__settings_note(
			s, "data_loader.prefetch no longer exists; "
			   "reader.prefetch_size sets the prefetch depth");
		if (!strcasecmp(v->text, "false"))
			rc = pen__setting_put(s, "reader.prefetch_size", &none,
					      at, err);
		return rc;
	}
	return 1;
}

static void note_old(struct pen_settings *s, const struct pen_config_key *k)
{
	if (!strcmp(k->old, "model.model_size"))
		pen__settings_note(s,
				   "%s is read as %s; DLIO ignores it and "
				   "writes %s bytes",
				   k->old, k->now, k->opt->dflt);
	else if (k->old[0])
		pen__settings_note(s, "%s is the old name of %s", k->old,
				   k->now);
}

int pen__setting_put(struct pen_settings *s, const char *key,
		     const struct pen_config_value *v,
		     const struct pen_place *at, struct pen_err *err)
{
	struct pen_config_key k;
	struct pen_err why = { 0 };
	char *value = NULL;
	int rc = set_old(s, key, v, at, err);

	if (rc <= 0)
		return rc;
	if (!pen__key_resolve(key, &k))
		return pen__fail_in(at, "key", P_TOO_LONG,
				    "the name is longer than any key", err);
	if (!k.opt && pen__starts_with(k.name, "hydra.")) {
		pen__settings_note(s, "%s belongs to Hydra and has no effect",
				   k.name);
		return 0;
	}
	if (!k.opt && !k.free)
		return pen__setting_refuse(s, k.name, at, err);
	note_old(s, &k);
	if (is_plugin(&k, v))
		return refuse_plugin(s, k.name, at, err);
	rc = k.free ? free_value(k.name, v, &value, &why)
		    : known_value(k.opt, v, &value, &why);
	return rc ? pen__fail_in(at, k.name, why.number, why.msg, err)
		  : store(s, &k, value, at, err);
}
