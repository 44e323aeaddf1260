/*
 * ${...} in text values, as Hydra resolves it: ${workload.model.name} is
 * another setting, ${now:%Y-%m-%d} the time. Nothing else is known, above all
 * no environment and no code.
 */
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/mem.h"
#include "emulate/config_int.h"

#define DEPTH 8 /* a value may hold ${...} itself */

/* What strftime has of use in a name, and Python's %f. */
static bool put_field(char field, const struct timespec *now,
		      const struct tm *tm, struct pen_text *out)
{
	switch (field) {
	case 'Y':
		pen__text_add(out, "%04d", tm->tm_year + 1900);
		return true;
	case 'm':
		pen__text_add(out, "%02d", tm->tm_mon + 1);
		return true;
	case 'd':
		pen__text_add(out, "%02d", tm->tm_mday);
		return true;
	case 'H':
		pen__text_add(out, "%02d", tm->tm_hour);
		return true;
	case 'M':
		pen__text_add(out, "%02d", tm->tm_min);
		return true;
	case 'S':
		pen__text_add(out, "%02d", tm->tm_sec);
		return true;
	case 'y':
		pen__text_add(out, "%02d", tm->tm_year % 100);
		return true;
	case 'j':
		pen__text_add(out, "%03d", tm->tm_yday + 1);
		return true;
	case 'f':
		pen__text_add(out, "%06ld", now->tv_nsec / 1000);
		return true;
	case '%':
		pen__text_put(out, "%", 1);
		return true;
	default:
		return false;
	}
}

static int put_now(const char *format, const char *key, struct pen_text *out,
		   struct pen_err *err)
{
	struct timespec now;
	struct tm tm;

	clock_gettime(CLOCK_REALTIME, &now);
	if (!localtime_r(&now.tv_sec, &tm))
		return pen__fail(err, PEN_EINVAL, key, "there is no time");
	for (const char *p = format; *p; p++) {
		if (*p != '%')
			pen__text_put(out, p, 1);
		else if (!put_field(*++p, &now, &tm, out))
			return pen__fail(err, PEN_EINVAL, key,
					 "${now:%.60s} is not a time format; "
					 "%%Y %%m %%d %%H %%M %%S %%y %%j %%f "
					 "are known",
					 format);
	}
	return 0;
}

/* One ${name}, name of n bytes. */
static int put_ref(const struct pen_config *c, const char *key,
		   const char *name, size_t n, struct pen_text *out,
		   struct pen_err *err)
{
	char ref[PEN_KEY_MAX];
	struct pen_config_key k;

	if (snprintf(ref, sizeof(ref), "%.*s", (int)n, name) >=
	    (int)sizeof(ref))
		return pen__fail(err, PEN_EINVAL, key, "a ${...} is too long");
	if (pen__starts_with(ref, "now:"))
		return put_now(ref + 4, key, out, err);
	if (pen__key_resolve(pen__starts_with(ref, "workload.") ? ref + 9 : ref,
			     &k) &&
	    k.opt)
		return pen__config_query(c, k.name, out, err);
	return pen__fail(err, PEN_EINVAL, key,
			 "${%.80s} cannot be resolved; ${now:FORMAT} and "
			 "${workload.KEY} can",
			 ref);
}

static int expand(const struct pen_config *c, const char *key, const char *s,
		  struct pen_text *out, struct pen_err *err)
{
	int rc = 0;

	pen__text_put(out, "", 0);
	while (!rc && *s) {
		const char *ref = strstr(s, "${"), *end;

		if (!ref)
			ref = s + strlen(s);
		pen__text_put(out, s, (size_t)(ref - s));
		if (!*ref)
			break;
		end = strchr(ref, '}');
		if (!end)
			return pen__fail(err, PEN_EINVAL, key,
					 "a ${ without a }: '%.80s'", ref);
		rc = put_ref(c, key, ref + 2, (size_t)(end - ref - 2), out,
			     err);
		s = end + 1;
		if (out->n > 4096)
			return pen__fail(err, PEN_EINVAL, key, "is too long");
	}
	if (!rc && out->failed)
		rc = pen__fail_nomem(err, key, out->n);
	return rc;
}

static int settle_text(struct pen_config *c, const struct pen_opt *o,
		       struct pen_err *err)
{
	char **at = (char **)(void *)((char *)c + o->off);
	unsigned rounds = 0;

	while (*at && strstr(*at, "${")) {
		struct pen_text t = { 0 };
		int rc = rounds++ < DEPTH
				 ? expand(c, o->name, *at, &t, err)
				 : pen__fail(err, PEN_EINVAL, o->name,
					     "refers to itself: '%.80s'", *at);

		if (rc) {
			pen__text_fini(&t);
			return rc;
		}
		pen__free(*at);
		*at = t.n ? t.p : NULL; /* as when it is set to nothing */
		if (!t.n)
			pen__text_fini(&t);
	}
	return 0;
}

int pen__config_interpolate(struct pen_config *c, const struct pen_settings *s,
			    struct pen_err *err)
{
	struct pen_err why = { 0 };
	int rc = 0;

	for (const struct pen_opt *o = pen__config_opts; !rc && o->name; o++) {
		if (o->type == PEN_OPT_STR)
			rc = settle_text(c, o, &why);
		if (rc)
			return pen__settings_fail(s, rc, o->name, err, "%s",
						  why.msg);
	}
	return 0;
}
