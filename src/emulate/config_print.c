/*
 * Prints a configuration as YAML, as JSON, as files of Hydra, or one value as
 * text. Defaults are printed too, so that a result can be understood without
 * knowing them.
 */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "emulate/config_int.h"
#include "emulate/yaml.h"

/* The shortest text that reads back to the same number, in YAML 1.1 and 1.2. */
static void put_double(struct pen_text *t, double v)
{
	char buf[40], *e;
	double back = 0;

	if (v > -1e15 && v < 1e15 && v == (double)(int64_t)v) {
		pen__text_add(t, "%" PRId64,
			      (int64_t)v); /* as a person would write it */
		return;
	}
	for (int digits = 6; digits <= 17; digits++) {
		snprintf(buf, sizeof(buf), "%.*g", digits, v);
		for (char *p = buf; *p; p++)
			if (*p == ',')
				*p = '.'; /* decimal point of the locale */
		if (digits == 17 ||
		    (!pen__opt_set(
			     (const struct pen_opt[]){
				     { .name = "v", .type = PEN_OPT_DOUBLE },
				     { .name = NULL } },
			     &back, "v", buf, NULL) &&
		     memcmp(&back, &v, sizeof(v)) == 0))
			break;
	}
	e = strchr(buf, 'e');
	if (e && !memchr(buf, '.', (size_t)(e - buf)))
		pen__text_add(t, "%.*s.0%s", (int)(e - buf), buf, e);
	else
		pen__text_add(t, "%s", buf);
}

static void put_list(struct pen_text *t, const struct pen_opt_list *l)
{
	pen__text_put(t, "[", 1);
	for (size_t i = 0; i < l->n; i++)
		pen__text_add(t, "%s%" PRId64, i ? ", " : "", l->v[i]);
	pen__text_put(t, "]", 1);
}

/* Prints a distribution with the parameters of its type. */
static void put_spec(struct pen_text *t, const struct pen_time_spec *s)
{
	const double a[] = { s->mean, s->min, s->shape, s->scale, s->lam };
	const double b[] = { s->stdev, s->max, s->scale, 0, 0 };
	static const char *const an[] = { "mean", "min", "shape", "scale",
					  "lam" };
	static const char *const bn[] = { "stdev", "max", "scale", NULL, NULL };

	if (s->type == PEN_DRAW_NORMAL && s->stdev <= 0) {
		put_double(t, s->mean);
		return;
	}
	pen__text_add(t, "{type: %s, %s: ", pen__draw_names[s->type],
		      an[s->type]);
	put_double(t, a[s->type]);
	if (bn[s->type]) {
		pen__text_add(t, ", %s: ", bn[s->type]);
		put_double(t, b[s->type]);
	}
	pen__text_put(t, "}", 1);
}

static const void *member(const struct pen_config *c, const struct pen_opt *o)
{
	return (const char *)c + o->off;
}

static const char *str_of(const struct pen_config *c, const struct pen_opt *o)
{
	return *(char *const *)member(c, o);
}

/* Prints a value; text is quoted for YAML unless raw. */
static void put_value(const struct pen_config *c, const struct pen_opt *o,
		      bool raw, struct pen_text *t)
{
	struct pen_time_spec *spec =
		pen__key_time(o->name, (struct pen_config *)(uintptr_t)c);
	const void *at = member(c, o);
	const char *s;

	if (spec) {
		put_spec(t, spec);
		return;
	}
	switch (o->type) {
	case PEN_OPT_BOOL:
		s = *(const bool *)at ? "true" : "false";
		pen__text_put(t, s, strlen(s));
		return;
	case PEN_OPT_INT:
		pen__text_add(t, "%" PRId64, *(const int64_t *)at);
		return;
	case PEN_OPT_DOUBLE:
		put_double(t, *(const double *)at);
		return;
	case PEN_OPT_LIST:
		put_list(t, at);
		return;
	case PEN_OPT_ENUM:
		s = o->choices[*(const int *)at];
		break;
	case PEN_OPT_STR:
		s = str_of(c, o);
		break;
	default:
		pen__text_add(t, "%" PRIu64, *(const uint64_t *)at);
		return;
	}
	if (raw)
		pen__text_put(t, s ? s : "", s ? strlen(s) : 0);
	else if (!s && !o->dflt)
		pen__text_put(t, "null", 4);
	else
		pen__yaml_put_str(t, s ? s : "");
}

/* A key of DLIO without effect here that is not set. */
static bool is_idle(const struct pen_settings *s, const struct pen_opt *o)
{
	const size_t from = offsetof(struct pen_config, unused);

	return o->off >= from && (!s || !pen__settings_find(s, o->name));
}

/* Parts of a time, keys of Hydra, and ksm when it is off. */
static bool is_hidden(const struct pen_config *c, const struct pen_opt *o)
{
	return pen__key_in_time(o->name) ||
	       pen__starts_with(o->name, "hydra.") ||
	       !strcmp(o->name, "checkpoint.ksm") ||
	       (!c->checkpoint.ksm &&
		pen__starts_with(o->name, "checkpoint.ksm."));
}

static void json_spec(const struct pen_time_spec *s, const char *key,
		      struct pen_text *j)
{

	pen__json_open(j, key, '{');
	pen__json_str(j, "type", pen__draw_names[s->type]);
	pen__json_num(j, "mean", s->mean);
	pen__json_num(j, "stdev", s->stdev);
	if (s->type == PEN_DRAW_UNIFORM) {
		pen__json_num(j, "min", s->min);
		pen__json_num(j, "max", s->max);
	} else if (s->type == PEN_DRAW_POISSON) {
		pen__json_num(j, "lam", s->lam);
	} else if (s->type != PEN_DRAW_NORMAL) {
		pen__json_num(j, "shape", s->shape);
		pen__json_num(j, "scale", s->scale);
	}
	pen__json_close(j, '}');
}

/* Prints integers with all digits. */
static void json_number(struct pen_text *j, const char *key, double v)
{
	if (v >= 0 && v < 0x1p53 && v == floor(v))
		pen__json_int(j, key, (uint64_t)v);
	else
		pen__json_num(j, key, v);
}

static void json_value(const struct pen_config *c, const struct pen_opt *o,
		       const char *key, struct pen_text *j)
{
	const struct pen_time_spec *spec =
		pen__key_time(o->name, (struct pen_config *)(uintptr_t)c);
	const void *at = member(c, o);
	const struct pen_opt_list *l = at;

	if (spec) {
		json_spec(spec, key, j);
		return;
	}
	switch (o->type) {
	case PEN_OPT_BOOL:
		pen__json_bool(j, key, *(const bool *)at);
		return;
	case PEN_OPT_INT:
		json_number(j, key, (double)*(const int64_t *)at);
		return;
	case PEN_OPT_DOUBLE:
		json_number(j, key, *(const double *)at);
		return;
	case PEN_OPT_LIST:
		pen__json_open(j, key, '[');
		for (size_t i = 0; i < l->n; i++)
			pen__json_int(j, NULL, (uint64_t)l->v[i]);
		pen__json_close(j, ']');
		return;
	case PEN_OPT_ENUM:
		pen__json_str(j, key, o->choices[*(const int *)at]);
		return;
	case PEN_OPT_STR:
		pen__json_str(j, key, str_of(c, o) ? str_of(c, o) : "");
		return;
	default:
		pen__json_int(j, key, *(const uint64_t *)at);
	}
}

/* --- entire configuration --- */

struct printer {
	const struct pen_config *c;
	const struct pen_settings *s;
	struct pen_text *out;
	bool json, origins;
	unsigned indent;
	char section[PEN_KEY_MAX]; /* open section: "dataset.hdf5." */
};

/* Closes and opens sections for `name`; returns its last part. */
static const char *enter(struct printer *p, const char *name)
{
	char part[PEN_KEY_MAX];
	unsigned depth = 0;
	size_t at = 0;

	for (size_t i = 0; name[i] && name[i] == p->section[i]; i++)
		if (name[i] == '.') {
			at = i + 1;
			depth++;
		}
	for (const char *q = p->section + at; p->json && *q; q++)
		if (*q == '.')
			pen__json_close(p->out, '}');
	for (size_t n; n = strcspn(name + at, "."), name[at + n]; depth++) {
		snprintf(part, sizeof(part), "%.*s", (int)n, name + at);
		if (p->json)
			pen__json_open(p->out, part, '{');
		else
			pen__text_add(p->out, "%*s%s:\n",
				      (int)(p->indent + 2 * depth), "", part);
		at += n + 1;
	}
	snprintf(p->section, sizeof(p->section), "%.*s", (int)at, name);
	if (!p->json)
		pen__text_add(p->out, "%*s", (int)(p->indent + 2 * depth), "");
	return name + at;
}

/* The origin of the last setting of a key or, for a time, of its parts. */
static const char *origin_of(const struct pen_settings *s, const char *key,
			     bool time)
{
	const size_t n = strlen(key);

	for (size_t i = s->n; i-- > 0;) {
		const char *k = s->v[i].key;

		if (!strncmp(k, key, n) &&
		    (!k[n] || (time && (k[n] == '.' || k[n] == '_'))))
			return s->v[i].origin;
	}
	return "default";
}

static void end_line(struct printer *p, const char *key)
{
	const bool time =
		pen__key_time(key, (struct pen_config *)(uintptr_t)p->c);

	if (p->origins && p->s)
		pen__text_add(p->out, "  # %s", origin_of(p->s, key, time));
	pen__text_put(p->out, "\n", 1);
}

static void print_pairs(struct printer *p, const char *section,
			const struct pen_pairs *pairs)
{
	char key[PEN_KEY_MAX];

	for (size_t i = 0; i < pairs->n; i++) {
		const struct pen_opts_kv *kv = &pairs->kv[i];

		snprintf(key, sizeof(key), "%s.x", section);
		enter(p, key);
		if (p->json) {
			pen__json_str(p->out, kv->key, kv->value);
			continue;
		}
		pen__yaml_put_str(p->out, kv->key);
		pen__text_put(p->out, ": ", 2);
		pen__yaml_put_str(p->out, kv->value);
		snprintf(key, sizeof(key), "%s.%s", section, kv->key);
		end_line(p, key);
	}
}

static void print_opt(struct printer *p, const struct pen_opt *o)
{
	const char *key = enter(p, o->name);

	if (p->json) {
		json_value(p->c, o, key, p->out);
		return;
	}
	pen__text_add(p->out, "%s: ", key);
	put_value(p->c, o, false, p->out);
	end_line(p, o->name);
}

static void print_all(struct printer *p)
{
	for (const struct pen_opt *o = pen__config_opts; o->name; o++) {
		if (!is_hidden(p->c, o) && !is_idle(p->s, o))
			print_opt(p, o);
		if (!strcmp(o->name, "storage.storage_root"))
			print_pairs(p, "storage.storage_options",
				    &p->c->storage.options);
	}
	print_pairs(p, "loader", &p->c->loader);
}

void pen__config_print(const struct pen_config *c, const struct pen_settings *s,
		       bool origins, struct pen_text *out)
{
	static const char *const hydra[] = { "hydra.run.dir",
					     "hydra.output_subdir" };
	struct printer p = { .c = c, .s = s, .out = out, .origins = origins };

	print_all(&p);
	for (size_t i = 0; i < 2; i++)
		if (s && pen__settings_find(s, hydra[i]))
			print_opt(&p,
				  pen__opt_find(pen__config_opts, hydra[i]));
}

void pen__config_json(const struct pen_config *c, struct pen_text *j)
{
	struct printer p = { .c = c, .out = j, .json = true };

	print_all(&p);
	enter(&p, "");
}

int pen__config_query(const struct pen_config *c, const char *key,
		      struct pen_text *out, struct pen_err *err)
{
	const char *pair = NULL;
	struct pen_config_key k;

	if (pen__starts_with(key, "workload."))
		key += strlen("workload.");
	if (!pen__key_resolve(key, &k))
		return pen__fail(err, P_TOO_LONG, "key", "the key is too long");
	if (k.opt) {
		put_value(c, k.opt, true, out);
		return out->failed ? pen__fail_nomem(err, key, out->n) : 0;
	}
	if (pen__starts_with(k.name, "loader."))
		pair = pen__pairs_get(&c->loader, k.name + 7);
	else if (k.free)
		pair = pen__pairs_get(&c->storage.options,
				      k.name + strlen("storage.storage_"
						      "options."));
	if (pair) {
		pen__text_put(out, pair, strlen(pair));
		return 0;
	}
	if (pen__key_is_section(key))
		return pen__fail(
			err, P_BAD_VALUE, key,
			"a section, not a value; append the name of a key");
	if (pen__key_suggest(key))
		return pen__fail(err, P_UNKNOWN_NAME, key,
				 "unknown key; did you mean %s?",
				 pen__key_suggest(key));
	return pen__fail(err, P_UNKNOWN_NAME, key, "unknown key");
}

/*
 * --- files of Hydra ---
 * Drivers of benchmarks read these files after a run: config.yaml (all values),
 * overrides.yaml (arguments as passed) and hydra.yaml (paths and job).
 */

static bool is_hydra(const char *arg)
{
	return pen__starts_with(arg + strspn(arg, "+~"), "hydra.");
}

/* Prints arguments as a YAML list: those of Hydra, or all others. */
static void put_args(const struct pen_settings *s, bool hydra, int indent,
		     struct pen_text *t)
{
	const char *p = s->overrides.p;
	char arg[4096];
	size_t n = 0;

	while (p && *p) {
		const size_t len = strcspn(p, "\n");

		snprintf(arg, sizeof(arg), "%.*s", (int)len, p);
		if (is_hydra(arg) == hydra) {
			pen__text_add(t, "%*s- ", indent, "");
			pen__yaml_put_str(t, arg);
			pen__text_put(t, "\n", 1);
			n++;
		}
		p += len + (p[len] == '\n');
	}
	if (!n)
		pen__text_add(t, "%*s[]\n", indent, "");
}

static void put_hydra(const struct pen_config *c, const struct pen_settings *s,
		      struct pen_text *t)
{
	char cwd[4096];

	if (!getcwd(cwd, sizeof(cwd)))
		snprintf(cwd, sizeof(cwd), ".");
	pen__text_add(t, "hydra:\n  run:\n    dir: ");
	pen__yaml_put_str(t, c->run_dir);
	pen__text_add(t, "\n  output_subdir: ");
	pen__yaml_put_str(t, c->output_subdir);
	pen__text_add(t, "\n  overrides:\n    hydra:\n");
	put_args(s, true, 4, t);
	pen__text_add(t, "    task:\n");
	put_args(s, false, 4, t);
	pen__text_add(t, "  job:\n    name: dlio_benchmark\n"
			 "  runtime:\n    version: '1.3'\n"
			 "    version_base: '1.3'\n    cwd: ");
	pen__yaml_put_str(t, cwd);
	pen__text_add(t, "\n    output_dir: ");
	pen__yaml_put_str(t, c->run_dir);
	pen__text_add(t, "\n    choices:\n      workload: ");
	pen__yaml_put_str(t, s->workload ? s->workload : "default");
	pen__text_put(t, "\n", 1);
}

int pen__config_save_hydra(const struct pen_config *c,
			   const struct pen_settings *s, const char *dir,
			   struct pen_err *err)
{
	struct pen_text t = { 0 };
	struct printer p = { .c = c, .s = s, .out = &t, .indent = 2 };
	int rc = pen__make_dirs(dir, 0777, true, err);

	if (rc)
		return rc;
	pen__text_add(&t, "workload:\n");
	print_all(&p);
	rc = pen__text_save_in(&t, dir, "config.yaml", true, err);
	if (rc)
		return rc;
	put_args(s, false, 0, &t);
	rc = pen__text_save_in(&t, dir, "overrides.yaml", true, err);
	if (rc)
		return rc;
	put_hydra(c, s, &t);
	return pen__text_save_in(&t, dir, "hydra.yaml", true, err);
}
