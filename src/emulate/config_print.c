/*
 * A configuration as YAML, as JSON, or one value of it as text. All of it is
 * printed, defaults too: what a run did must not depend on knowing them.
 */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "emulate/config_int.h"
#include "emulate/yaml.h"

/* The shortest text that reads back to the same number, in every YAML. */
static void put_double(struct pen_text *t, double v)
{
	char buf[40], *e;
	double back = 0;

	if (v > -1e15 && v < 1e15 && v == (double)(int64_t)v) {
		pen__text_add(t, "%" PRId64, (int64_t)v); /* as people write */
		return;
	}
	for (int digits = 6; digits <= 17; digits++) {
		snprintf(buf, sizeof(buf), "%.*g", digits, v);
		for (char *p = buf; *p; p++)
			if (*p == ',')
				*p = '.'; /* the locale's point */
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

/* Of a time that is drawn: what its type takes. */
static void put_spec(struct pen_text *t, const struct pen_time_spec *s)
{
	static const char *const type[] = { "normal", "uniform", "gamma",
					    "exponential", "poisson" };
	const double a[] = { s->mean, s->min, s->shape, s->scale, s->lam };
	const double b[] = { s->stdev, s->max, s->scale, 0, 0 };
	static const char *const an[] = { "mean", "min", "shape", "scale",
					  "lam" };
	static const char *const bn[] = { "stdev", "max", "scale", NULL, NULL };

	if (s->type == PEN_DRAW_NORMAL && s->stdev <= 0) {
		put_double(t, s->mean);
		return;
	}
	pen__text_add(t, "{type: %s, %s: ", type[s->type], an[s->type]);
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

/* The value; text is quoted for YAML unless raw. */
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

/* A key of DLIO's without effect here, which nobody gave. */
static bool is_idle(const struct pen_settings *s, const struct pen_opt *o)
{
	const size_t from = offsetof(struct pen_config, unused);

	return o->off >= from && (!s || !pen__settings_find(s, o->name));
}

/* Parts of a time, Hydra's own, and ksm when it is off. */
static bool is_hidden(const struct pen_config *c, const struct pen_opt *o)
{
	return pen__key_in_time(o->name) ||
	       pen__starts_with(o->name, "hydra.") ||
	       !strcmp(o->name, "checkpoint.ksm") ||
	       (!c->checkpoint.ksm &&
		pen__starts_with(o->name, "checkpoint.ksm."));
}

/* --- YAML --- */

struct printer {
	const struct pen_config *c;
	const struct pen_settings *s;
	struct pen_text *out;
	unsigned indent;
	bool origins;
	char section[PEN_KEY_MAX]; /* "dataset.hdf5." that is open */
};

static unsigned common_dots(const char *a, const char *b, size_t *len)
{
	unsigned n = 0;

	*len = 0;
	for (size_t i = 0; a[i] && a[i] == b[i]; i++)
		if (a[i] == '.') {
			n++;
			*len = i + 1;
		}
	return n;
}

/* Opens the sections of name that are not open; returns its last part. */
static const char *open_sections(struct printer *p, const char *name)
{
	size_t at;
	unsigned depth = common_dots(name, p->section, &at);
	const char *dot;

	while ((dot = strchr(name + at, '.'))) {
		pen__text_add(p->out, "%*s%.*s:\n",
			      (int)(p->indent + 2 * depth), "",
			      (int)(dot - name - (ptrdiff_t)at), name + at);
		at = (size_t)(dot - name) + 1;
		depth++;
	}
	snprintf(p->section, sizeof(p->section), "%.*s", (int)at, name);
	pen__text_add(p->out, "%*s", (int)(p->indent + 2 * depth), "");
	return name + at;
}

/* The last of the key and what belongs to it. */
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

	if (!pairs->n)
		return;
	for (size_t i = 0; i < pairs->n; i++) {
		snprintf(key, sizeof(key), "%s.x", section);
		if (!i)
			open_sections(p, key);
		else
			pen__text_add(p->out, "%*s",
				      (int)p->indent + 2 +
					      2 * !!strchr(section, '.'),
				      "");
		pen__yaml_put_str(p->out, pairs->kv[i].key);
		pen__text_put(p->out, ": ", 2);
		pen__yaml_put_str(p->out, pairs->kv[i].value);
		snprintf(key, sizeof(key), "%s.%s", section, pairs->kv[i].key);
		end_line(p, key);
	}
}

static void print_opt(struct printer *p, const struct pen_opt *o)
{
	pen__text_add(p->out, "%s: ", open_sections(p, o->name));
	put_value(p->c, o, false, p->out);
	end_line(p, o->name);
}

void pen__config_yaml(const struct pen_config *c, const struct pen_settings *s,
		      unsigned indent, bool origins, struct pen_text *out)
{
	struct printer p = {
		.c = c, .s = s, .out = out, .indent = indent, .origins = origins
	};

	for (const struct pen_opt *o = pen__config_opts; o->name; o++) {
		if (!is_hidden(c, o) && !is_idle(s, o))
			print_opt(&p, o);
		if (!strcmp(o->name, "storage.storage_root"))
			print_pairs(&p, "storage.storage_options",
				    &c->storage.options);
	}
	print_pairs(&p, "loader", &c->loader);
}

void pen__config_print(const struct pen_config *c, const struct pen_settings *s,
		       bool origins, struct pen_text *out)
{
	static const char *const hydra[] = { "hydra.run.dir",
					     "hydra.output_subdir" };
	struct printer p = { .c = c, .s = s, .out = out, .origins = origins };

	pen__config_yaml(c, s, 0, origins, out);
	for (size_t i = 0; i < 2; i++)
		if (s && pen__settings_find(s, hydra[i]))
			print_opt(&p,
				  pen__opt_find(pen__config_opts, hydra[i]));
}

int pen__config_query(const struct pen_config *c, const char *key,
		      struct pen_text *out, struct pen_err *err)
{
	const char *pair = NULL;
	struct pen_config_key k;

	if (pen__starts_with(key, "workload."))
		key += strlen("workload.");
	if (!pen__key_resolve(key, &k))
		return pen__fail(err, PEN_EINVAL, "key", "is too long");
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
		return pen__fail(err, PEN_EINVAL, key,
				 "is a section, not a value");
	if (pen__key_suggest(key))
		return pen__fail(err, PEN_EINVAL, key,
				 "unknown key; did you mean %s?",
				 pen__key_suggest(key));
	return pen__fail(err, PEN_EINVAL, key, "unknown key");
}

/* --- JSON --- */

static void json_spec(const struct pen_time_spec *s, const char *key,
		      struct pen_text *j)
{
	static const char *const type[] = { "normal", "uniform", "gamma",
					    "exponential", "poisson" };

	pen__json_open(j, key, '{');
	pen__json_str(j, "type", type[s->type]);
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

/* Whole ones with all their digits. */
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

static unsigned dots(const char *s)
{
	unsigned n = 0;

	for (; *s; s++)
		n += *s == '.';
	return n;
}

static void json_pairs(const struct pen_pairs *pairs, const char *key,
		       struct pen_text *j)
{
	if (!pairs->n)
		return;
	pen__json_open(j, key, '{');
	for (size_t i = 0; i < pairs->n; i++)
		pen__json_str(j, pairs->kv[i].key, pairs->kv[i].value);
	pen__json_close(j, '}');
}

void pen__config_json(const struct pen_config *c, struct pen_text *j)
{
	char open[PEN_KEY_MAX] = "", part[PEN_KEY_MAX];
	size_t at;

	for (const struct pen_opt *o = pen__config_opts; o->name; o++) {
		const char *dot;
		unsigned keep;

		if (is_hidden(c, o) || is_idle(NULL, o))
			continue;
		keep = common_dots(o->name, open, &at);
		for (unsigned n = dots(open); n > keep; n--)
			pen__json_close(j, '}');
		while ((dot = strchr(o->name + at, '.'))) {
			snprintf(part, sizeof(part), "%.*s",
				 (int)(dot - o->name - (ptrdiff_t)at),
				 o->name + at);
			pen__json_open(j, part, '{');
			at = (size_t)(dot - o->name) + 1;
		}
		snprintf(open, sizeof(open), "%.*s", (int)at, o->name);
		json_value(c, o, o->name + at, j);
		if (!strcmp(o->name, "storage.storage_root"))
			json_pairs(&c->storage.options, "storage_options", j);
	}
	for (unsigned n = dots(open); n > 0; n--)
		pen__json_close(j, '}');
	json_pairs(&c->loader, "loader", j);
}
