/*
 * Settings from anywhere: the bytes up to the first NUL are YAML, what follows
 * are arguments, one a line. What settles must print, and read back the same.
 *
 * Seeds: the files in workloads/
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "emulate/config.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int take_args(struct pen_settings *s, const char *p, const char *end)
{
	struct pen_err e;
	char arg[512];
	int rc = 0;

	while (!rc && p < end) {
		const char *nl = memchr(p, '\n', (size_t)(end - p));
		const size_t n = (size_t)((nl ? nl : end) - p);

		if (n >= sizeof(arg))
			return PEN_EINVAL;
		memcpy(arg, p, n);
		arg[n] = '\0';
		rc = pen__settings_arg(s, arg, &e);
		p += n + 1;
	}
	return rc;
}

/* Prints c; when `want` is there, it must be the same. */
static struct pen_text print(const struct pen_config *c,
			     const struct pen_settings *s)
{
	struct pen_text t = { 0 };

	pen__config_print(c, s, false, &t);
	return t;
}

static void read_back(const struct pen_text *want)
{
	struct pen_settings s;
	struct pen_config c;
	struct pen_text t;
	struct pen_err e;

	pen__settings_init(&s);
	if (pen__settings_yaml(&s, want->p, want->n, "back", &e) ||
	    pen__config_settle(&c, &s, &e))
		abort();
	t = print(&c, &s);
	if (t.n != want->n || memcmp(t.p, want->p, t.n))
		abort();
	pen__text_fini(&t);
	pen__config_fini(&c);
	pen__settings_fini(&s);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *text = (const char *)data, *end = text + size,
		   *nul = size ? memchr(text, '\0', size) : NULL;
	struct pen_settings s;
	struct pen_config c;
	struct pen_text t;
	struct pen_err e;

	pen__settings_init(&s);
	s.lenient = size & 1;
	if (!pen__settings_yaml(&s, text, (size_t)((nul ? nul : end) - text),
				"fuzz", &e) &&
	    !(nul && take_args(&s, nul + 1, end)) &&
	    !pen__config_settle(&c, &s, &e)) {
		t = print(&c, &s);
		read_back(&t);
		pen__text_fini(&t);
		pen__config_fini(&c);
	}
	pen__settings_fini(&s);
	return 0;
}
