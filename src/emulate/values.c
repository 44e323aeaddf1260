/*
 * Values as YAML 1.1 has them, into what the option tables take: 1_000, 0x10,
 * 0o17 and 1e3 are numbers, False and off switch a shuffle off, choices may be
 * written in any case.
 */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/mem.h"
#include "emulate/config_int.h"

#define NUMBER_MAX 64

/* Values that mean another one, for keys of which the choices are these. */
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

/* 0x1F, 0o17, 017, 0b1 as decimal; false when it is none of them. */
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

/* 1e3 and 8.0 where a whole number is wanted. */
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

/* false: too long to be a number; let the table say so. */
static bool plain_number(const struct pen_opt *o, const char *s,
			 char num[NUMBER_MAX])
{
	size_t n = 0;
	uint64_t size;

	if (strlen(s) >= NUMBER_MAX)
		return false;
	for (const char *p = s; *p; p++)
		if (*p != '_' || p == s || !isalnum((unsigned char)p[-1]))
			num[n++] = *p;
	num[n] = '\0';
	if (based(num, num))
		return true;
	if (o->type == PEN_OPT_INT)
		whole(num);
	/* lengths may be fractions of bytes, and may have units all the same */
	if (o->type == PEN_OPT_DOUBLE && n &&
	    isalpha((unsigned char)num[n - 1]) &&
	    pen__starts_with(o->name, "dataset.record_length") &&
	    !pen__parse_size(num, &size))
		snprintf(num, NUMBER_MAX, "%llu", (unsigned long long)size);
	return true;
}

/* Each number of a list on its own. */
static int plain_list(const struct pen_opt *o, const char *s,
		      struct pen_text *t)
{
	static const char between[] = "[], \t";
	const struct pen_opt number = { .name = o->name, .type = PEN_OPT_INT };
	char word[NUMBER_MAX], num[NUMBER_MAX];

	while (*s) {
		size_t n = strcspn(s, between);

		if (!n) {
			pen__text_put(t, s++, 1);
			continue;
		}
		snprintf(word, sizeof(word), "%.*s", (int)n, s);
		if (n < sizeof(word) && plain_number(&number, word, num))
			pen__text_put(t, num, strlen(num));
		else
			pen__text_put(t, s, n);
		s += n;
	}
	return t->failed ? PEN_ENOMEM : 0;
}

static int fail_choice(const struct pen_opt *o, const char *value,
		       struct pen_err *err)
{
	const char *near = pen__nearest(value, o->choices);
	char list[200] = "";
	size_t at = 0;

	for (size_t i = 0; o->choices[i] && at < sizeof(list); i++)
		at += (size_t)snprintf(list + at, sizeof(list) - at, "%s%s",
				       i ? ", " : "", o->choices[i]);
	if (near)
		return pen__fail(err, PEN_EINVAL, o->name,
				 "is not a choice: '%.40s'; did you mean "
				 "'%s'?",
				 value, near);
	return pen__fail(err, PEN_EINVAL, o->name,
			 "is not a choice: '%.40s' (choose from: %s)", value,
			 list);
}

static int choice(const struct pen_opt *o, const char *s, const char **out,
		  struct pen_err *err)
{
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		if (!strcmp(words[i].key, o->name) &&
		    !strcasecmp(words[i].from, s))
			s = words[i].to;
	for (size_t i = 0; o->choices[i]; i++)
		if (!strcasecmp(o->choices[i], s)) {
			*out = o->choices[i];
			return 0;
		}
	return fail_choice(o, s, err);
}

static bool takes_list(const struct pen_opt *o)
{
	return o->type == PEN_OPT_LIST ||
	       !strcmp(o->name, "profiling.iostat_devices") ||
	       pen__starts_with(o->name, "dataset.parquet.");
}

/* "[sda, sdb]" is kept as "sda, sdb". */
static void strip_brackets(struct pen_text *t)
{
	if (t->n >= 2 && t->p[0] == '[' && t->p[t->n - 1] == ']') {
		t->n -= 2;
		memmove(t->p, t->p + 1, t->n);
		t->p[t->n] = '\0';
	}
}

static int shape(const struct pen_opt *o, const char *s, struct pen_text *t,
		 struct pen_err *err)
{
	const char *picked = s;
	char num[NUMBER_MAX];
	int rc = 0;

	if (o->type != PEN_OPT_STR && strstr(s, "${"))
		return pen__fail(err, PEN_EINVAL, o->name,
				 "is '%.80s', but ${...} is resolved in text "
				 "only",
				 s);
	if (o->choices)
		rc = choice(o, s, &picked, err);
	else if (o->type == PEN_OPT_LIST)
		return plain_list(o, s, t);
	else if (o->type != PEN_OPT_STR && o->type != PEN_OPT_BOOL &&
		 plain_number(o, s, num))
		picked = num;
	if (!rc)
		pen__text_put(t, picked, strlen(picked));
	if (!strcmp(o->name, "profiling.iostat_devices"))
		strip_brackets(t);
	return rc;
}

/* Tried out on a configuration nobody sees. */
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

int pen__value_normal(const struct pen_opt *o, const struct pen_config_value *v,
		      char **out, struct pen_err *err)
{
	struct pen_text t = { 0 };
	const char *s = v->null ? (o->dflt ? o->dflt : "") : v->text;
	int rc;

	if (v->list && !takes_list(o))
		return pen__fail(err, PEN_EINVAL, o->name,
				 "takes one value, not a list: '%.80s'", s);
	pen__text_put(&t, "", 0);
	rc = v->null ? 0 : shape(o, s, &t, err);
	if (v->null)
		pen__text_put(&t, s, strlen(s));
	if (!rc && t.failed)
		rc = pen__fail_nomem(err, o->name, strlen(s));
	if (!rc)
		rc = try_out(o, t.p, err);
	if (rc) {
		pen__text_fini(&t);
		return rc;
	}
	*out = t.p;
	return 0;
}
