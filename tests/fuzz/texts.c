/* Texts that users and other programs write: workloads, arguments, settings,
 * lists of numbers, results. */
#include "fuzz.h"

#include <unistd.h>

#include "base/mem.h"
#include "emulate/config.h"
#include "engine/dataset.h"
#include "report/compare.h"
#include "report/report.h"

/* The next line of [*p, end) as a string; false: no more, or it is too long. */
static bool line(const char **p, const char *end, char *buf, size_t cap)
{
	const char *nl = *p < end ? memchr(*p, '\n', (size_t)(end - *p)) : NULL;
	const size_t n = (size_t)((nl ? nl : end) - *p);

	if (*p >= end || n >= cap)
		return false;
	memcpy(buf, *p, n);
	buf[n] = '\0';
	*p += n + (nl != NULL);
	return true;
}

static int take_args(struct pen_settings *s, const char *p, const char *end)
{
	struct pen_err e;
	char arg[512];
	int rc = 0;

	while (!rc && line(&p, end, arg, sizeof(arg)))
		rc = pen__settings_arg(s, arg, &e);
	return p < end ? PEN_EINVAL : rc;
}

static struct pen_text print(const struct pen_config *c,
			     const struct pen_settings *s)
{
	struct pen_text t = { 0 };

	pen__config_print(c, s, false, &t);
	return t;
}

/* What is printed is read, settles, and prints the same. */
static void read_back(const struct pen_text *want)
{
	struct pen_settings s;
	struct pen_config c;
	struct pen_text t;
	struct pen_err e;

	pen__settings_init(&s);
	FUZZ_MUST(!pen__settings_yaml(&s, want->p, want->n, "back", &e));
	FUZZ_MUST(!pen__config_settle(&c, &s, &e));
	t = print(&c, &s);
	FUZZ_MUST(t.n == want->n && !memcmp(t.p, want->p, t.n));
	pen__text_fini(&t);
	pen__config_fini(&c);
	pen__settings_fini(&s);
}

/* The bytes up to the first NUL are YAML, what follows are arguments, one a
 * line. */
void fuzz_config(const char *of, const uint8_t *p, size_t n)
{
	const char *text = (const char *)p, *end = text + n,
		   *nul = n ? memchr(text, '\0', n) : NULL;
	const size_t len = (size_t)((nul ? nul : end) - text);
	struct pen_settings s;
	struct pen_config c;
	struct pen_text t;
	struct pen_err e;

	(void)of;
	pen__settings_init(&s);
	s.lenient = n & 1;
	if (!(len && pen__settings_yaml(&s, text, len, "fuzz", &e)) &&
	    !(nul && take_args(&s, nul + 1, end)) &&
	    !pen__config_settle(&c, &s, &e)) {
		t = print(&c, &s);
		read_back(&t);
		pen__text_fini(&t);
		pen__config_fini(&c);
	}
	pen__settings_fini(&s);
}

/* Arguments alone, one a line, as DLIO's users write them for Hydra. */
void fuzz_arguments(const char *of, const uint8_t *p, size_t n)
{
	char *in = malloc(n + 1);

	in[0] = '\0';
	if (n)
		memcpy(in + 1, p, n);
	fuzz_config(of, (const uint8_t *)in, n + 1);
	free(in);
}

/* What was set can be read, and the value read can be set. */
static void set_again(const struct pen_spec *s, const char *setting)
{
	char key[512], value[512];
	struct pen_spec *t;

	snprintf(key, sizeof(key), "%s", setting);
	key[strcspn(key, "=")] = '\0';
	if (pen_spec_get(s, key, value, sizeof(value)) || !value[0] ||
	    strlen(value) + 1 >= sizeof(value))
		return;
	FUZZ_MUST(!pen_spec_new(&t, NULL));
	FUZZ_MUST(!pen_spec_set(t, key, value, NULL));
	pen_spec_free(t);
}

/* Settings of a loader, one a line. No paths: the machine's files are not the
 * input. */
void fuzz_settings(const char *of, const uint8_t *p, size_t n)
{
	const char *at = (const char *)p, *end = at + n;
	struct pen_err err = { 0 };
	struct pen_spec *s, *copy;
	char text[512];

	(void)of;
	if ((n && memchr(p, '/', n)) || pen_spec_new(&s, NULL))
		return;
	while (line(&at, end, text, sizeof(text)))
		if (pen_spec_parse(s, text, &err))
			FUZZ_MUST(err.msg[0]);
		else
			set_again(s, text);
	if (!pen_spec_copy(&copy, s, NULL)) {
		if (pen_spec_check(copy, &err))
			FUZZ_MUST(err.msg[0]);
		pen_spec_free(copy);
	}
	pen_spec_free(s);
}

/* subset=, weights=, labels= in text. */
void fuzz_numbers(const char *of, const uint8_t *p, size_t n)
{
	struct fuzz_file f = fuzz_file(p, n);
	struct pen_err err = { 0 };
	double *v = NULL;
	uint64_t nv;
	bool bools;

	(void)of;
	if (pen__numbers_read(f.path, &v, &nv, &bools, &err))
		FUZZ_MUST(err.msg[0]);
	pen__free(v);
	close(f.fd);
}

static void show(struct pen_results *r)
{
	struct pen_text t = { 0 };
	struct pen_err err = { 0 };

	if (!pen__report_html(r, &t, &err))
		FUZZ_MUST(t.n);
	pen__text_fini(&t);
	if (r->ndocs) {
		pen__documents_csv(r, &t);
		pen__text_fini(&t);
		pen__documents_metrics(r, &t);
	} else {
		(void)pen__report_csv(&r->rows, &t, &err);
	}
	pen__text_fini(&t);
}

static void compare(const char *path)
{
	struct pen_samples s[2] = { { 0 } };
	struct pen_err err = { 0 };
	struct pen_text t = { 0 };

	if (!pen__samples_read(&s[0], path, &err)) {
		s[1] = s[0];
		pen__compare_text(s, 2, 0, 80, &t);
		pen__compare_json(s, 2, 0, &t);
		pen__compare_html(s, 2, 0, &t);
		pen__text_fini(&t);
	}
	pen__samples_fini(&s[0]);
}

/* of: ".json", a document, or ".jsonl", rows. The name matters, so it is a file
 * of the current directory. */
void fuzz_report(const char *of, const uint8_t *p, size_t n)
{
	static bool read;
	struct pen_results r = { 0 };
	struct pen_err err = { 0 };
	char path[32];
	FILE *f;

	if (!read)
		FUZZ_MUST(!pen__experiments_read(&err));
	read = true;
	snprintf(path, sizeof(path), "fuzz-input%s", of);
	unlink(path); /* a truncated file would be flushed to disk */
	f = fopen(path, "w");
	FUZZ_MUST(f && fwrite(p, 1, n, f) == n);
	fclose(f);
	if (!pen__results_read(&r, path, &err))
		show(&r);
	pen__results_fini(&r);
	compare(path);
}
