/* Parses flags and settings of an experiment by its description. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/opt.h"
#include "experiment/harness.h"

static const struct pen_flag *find(const struct pen_session *r,
				   const char *name, struct pen_taken **v)
{
	for (size_t i = 0; i < r->of->nflags; i++)
		if (!strcmp(r->of->flag[i].name, name)) {
			*v = &r->value[i];
			return &r->of->flag[i];
		}
	return NULL;
}

bool pen__has_flag(const struct pen_session *r, const char *flag)
{
	struct pen_taken *v;

	return find(r, flag, &v);
}

const struct pen_taken *pen__value(const struct pen_session *r,
				   const char *flag)
{
	static const struct pen_taken none;
	struct pen_taken *v;

	return find(r, flag, &v) ? v : &none;
}

double pen__number(const struct pen_session *r, const char *flag)
{
	return pen__value(r, flag)->v[0];
}

bool pen__given(const struct pen_session *r, const char *flag)
{
	return pen__value(r, flag)->text;
}

const char *pen__name(const struct pen_session *r, const char *flag, size_t i)
{
	struct pen_taken *v;

	return find(r, flag, &v)->names[i];
}

bool pen__chosen(const struct pen_session *r, const char *flag, size_t i)
{
	const struct pen_taken *v = pen__value(r, flag);

	for (size_t k = 0; k < v->n; k++)
		if ((size_t)v->v[k] == i)
			return true;
	return !v->n;
}

/* ---- values ---- */

/* "64MB" or a number of bytes; in a list of sizes a number alone is in GiB, as
 * in the published example of `bench dna`. */
static bool parse_size(const struct pen_flag *f, const char *word, double *v)
{
	uint64_t n;
	char *end;

	*v = strtod(word, &end) * 0x1p30;
	if (end == word)
		return false;
	if (*end || f->many == 1) {
		if (pen__parse_size(word, &n))
			return false;
		*v = (double)n;
	}
	return *v >= f->least && *v <= f->most;
}

/* Accepts counts ("10k") and numbers of C ("1e6"). */
static bool parse_number(const struct pen_flag *f, const char *word, double *v)
{
	uint64_t n;
	char *end;

	if (f->takes == PEN_TAKES_SIZES)
		return parse_size(f, word, v);
	if (!pen__parse_count(word, &n)) {
		*v = (double)n;
		return *v >= f->least && *v <= f->most;
	}
	*v = strtod(word, &end);
	if (end == word || *end || !(*v >= f->least) || *v > f->most)
		return false;
	return f->takes == PEN_TAKES_MS || *v == (double)(uint64_t)*v;
}

static int refuse(const struct pen_session *r, const struct pen_flag *f,
		  const char *text, struct pen_err *err)
{
	const bool sizes = f->takes == PEN_TAKES_SIZES;
	const char *what = f->takes == PEN_TAKES_MS ? "milliseconds"
			   : sizes		    ? "sizes"
						    : "numbers";
	char most[48];

	snprintf(most, sizeof(most), "%s",
		 sizes ? pen__show_bytes(f->most).s
		       : pen__show_whole(f->most).s);
	if (f->many > 1)
		return pen__fail(err, P_BAD_VALUE, r->name,
				 "%s: '%s' is not a list of %s from %.0f to "
				 "%s, such as %s",
				 f->name, text, what, f->least, most,
				 sizes ? "1MB,4MB" : "1,2,4");
	return pen__fail(err, P_BAD_VALUE, r->name,
			 "%s: '%s' is not a %s from %.0f to %s", f->name, text,
			 sizes ? "size" : "number", f->least, most);
}

static int take_numbers(const struct pen_session *r, const struct pen_flag *f,
			const char *text, struct pen_taken *v,
			struct pen_err *err)
{
	const char *p = text;

	v->n = 0;
	do {
		const size_t len = strcspn(p, ",");
		char word[32];

		if (!len || len >= sizeof(word) || v->n >= f->many)
			return refuse(r, f, text, err);
		snprintf(word, sizeof(word), "%.*s", (int)len, p);
		if (!parse_number(f, word, &v->v[v->n]))
			return refuse(r, f, text, err);
		if (f->takes == PEN_TAKES_MS)
			v->v[v->n] /= 1e3;
		v->n++;
		p += len + (p[len] == ',');
	} while (*p);
	return 0;
}

static int refuse_name(const struct pen_session *r, const struct pen_flag *f,
		       const char *name, int n, struct pen_err *err)
{
	char all[256] = "";
	size_t at = 0;

	for (size_t i = 0; f->names[i] && at < sizeof(all); i++)
		at += (size_t)snprintf(all + at, sizeof(all) - at, "%s%s",
				       i ? ", " : "", f->names[i]);
	return pen__fail(err, P_UNKNOWN_NAME, r->name,
			 "%s: unknown name '%.*s'; choose from %s", f->name, n,
			 name, all);
}

/* A name, or the first one with this prefix. */
static int take_names(const struct pen_session *r, const struct pen_flag *f,
		      const char *p, struct pen_taken *v, struct pen_err *err)
{
	do {
		const size_t len = strcspn(p, ",");
		size_t i = 0, at;

		while (f->names[i] && (strlen(f->names[i]) != len ||
				       strncmp(f->names[i], p, len) != 0))
			i++;
		for (at = 0; !f->names[i] && f->names[at]; at++)
			if (len && !strncmp(f->names[at], p, len))
				i = at;
		if (!f->names[i] || v->n >= f->many)
			return refuse_name(r, f, p, (int)len, err);
		v->v[v->n++] = (double)i;
		p += len + (p[len] == ',');
	} while (*p);
	return 0;
}

static int take_time(const struct pen_flag *f, const char *text,
		     struct pen_taken *v, struct pen_err *err)
{
	const struct pen_opt opt[] = {
		{ .name = f->name, .type = PEN_OPT_TIME, .max = 3.6e12 },
		{ .name = NULL },
	};
	uint64_t ns;
	const int rc = pen__opt_set(opt, &ns, f->name, text, err);

	v->v[0] = rc ? 0 : (double)ns;
	return rc;
}

/* Keys are written to JSON without escapes. */
static int add_meta(struct pen_session *r, const char *text,
		    struct pen_err *err)
{
	const size_t n = strcspn(text, "=");

	if (!n || !text[n] ||
	    strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0"
			 "123456789_-.") != n)
		return pen__fail(err, P_BAD_VALUE, "bench",
				 "-M: '%s' is not KEY=VALUE; a KEY has "
				 "letters, digits, '_', '-' and '.'",
				 text);
	pen__text_put(&r->meta, text, n);
	pen__text_put(&r->meta, "", 1);
	pen__text_put(&r->meta, text + n + 1, strlen(text + n + 1) + 1);
	return 0;
}

/* ---- arguments ---- */

/* Copies the common flags into the session. */
static void settle(struct pen_session *r)
{
	const char *text;

	r->out = (text = pen__value(r, "-o")->text) ? text : r->out_default;
	r->shape = (text = pen__value(r, "--shape")->text) ? text : r->shape;
	r->dtype = (text = pen__value(r, "--dtype")->text) ? text : r->dtype;
	r->dir = pen__value(r, "--dir")->text;
	r->cold = pen__given(r, "--cold");
	r->warm = pen__given(r, "--warm");
	r->resume = pen__given(r, "--resume");
	r->json = pen__given(r, "--json");
	r->quiet = pen__given(r, "--quiet");
	r->batches = (uint64_t)pen__number(r, "-n");
	if (pen__given(r, "--repeats"))
		r->repeats = (uint64_t)pen__number(r, "--repeats");
	if (pen__given(r, "--samples"))
		r->made.nsamples = (uint64_t)pen__number(r, "--samples");
}

static int take_flag(struct pen_session *r, const char *key, const char *text,
		     struct pen_err *err)
{
	struct pen_taken *v;
	const struct pen_flag *f = find(r, key, &v);
	int rc = 0;

	if (!f)
		return pen__fail(err, P_UNKNOWN_NAME, r->name,
				 "unknown flag '%s'", key);
	if (!strcmp(key, "-M"))
		return add_meta(r, text, err);
	if (f->takes == PEN_TAKES_ANY)
		return r->of->take(r, key, text, err);
	/* a given value replaces the preset */
	if (f->many == 1 || v->text == f->preset)
		v->n = 0;
	if (f->takes == PEN_TAKES_NAMES)
		rc = take_names(r, f, text, v, err);
	else if (f->takes == PEN_TAKES_TIME)
		rc = take_time(f, text, v, err);
	else if (f->takes != PEN_TAKES_TEXT && f->takes != PEN_TAKES_NOTHING)
		rc = take_numbers(r, f, text, v, err);
	v->text = text ? text : "";
	settle(r);
	return rc;
}

/* Whether a list of "key=", "key*=" (a prefix) and flags names this key. */
static bool names(const char *list, const char *key)
{
	while (list && *list) {
		const size_t n = strcspn(list, "*=,");

		if (!strncmp(list, key, n) && (list[n] == '*' || !key[n]))
			return true;
		list = strstr(list, ", ");
		list += list ? 2 : 0;
	}
	return false;
}

static int check_choice(const struct pen_session *r, const char *key,
			struct pen_err *err)
{
	const char *eq = key[0] == '-' ? "" : "=";

	for (const struct pen_pair *p = r->of->sets; p->first; p++)
		if (names(p->first, key))
			return pen__fail(err, P_CONFLICT, r->name,
					 "%s%s is set by the experiment%s%s",
					 key, eq, p->second ? "; " : "",
					 p->second ? p->second : "");
	for (const struct pen_pair *p = r->of->refuses; p->first; p++)
		if (names(p->first, key))
			return pen__fail(err, P_CONFLICT, r->name, "%s%s %s",
					 key, eq, p->second);
	return 0;
}

int pen__run_take(struct pen_session *r, const char *key, const char *value,
		  struct pen_err *err)
{
	const bool flag = key && key[0] == '-';
	int rc = key ? check_choice(r, key, err) : 0;

	if (rc)
		return rc;
	if (flag)
		return take_flag(r, key, value, err);
	rc = r->of->take ? r->of->take(r, key, value, err) : 1;
	if (rc <= 0)
		return rc;
	if (!key && !strstr(r->of->args, "PATH"))
		return pen__fail(err, P_CONFLICT, r->name,
				 "the experiment generates its own data; "
				 "remove the PATH '%s'",
				 value);
	rc = key ? pen_spec_set(r->spec, key, value, err)
		 : pen_spec_add_path(r->spec, value, err);
	if (!rc && key)
		pen__text_add(&r->settings, "%s%s=%s", r->settings.n ? " " : "",
			      key, value);
	return rc;
}
