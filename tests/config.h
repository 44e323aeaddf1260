/* Shared by the tests of settings and configurations. */
#ifndef TEST_CONFIG_H
#define TEST_CONFIG_H

#include "test.h"

#include "base/mem.h"
#include "emulate/config.h"

struct made {
	struct pen_settings s;
	struct pen_config c;
	struct pen_err e;
	int rc; /* 0: c is valid */
};

/* YAML (or NULL), then arguments, one per line (or NULL). */
static inline void make_as(struct made *m, const char *yaml, const char *args,
			   bool lenient)
{
	char arg[512];

	memset(m, 0, sizeof(*m));
	pen__settings_init(&m->s);
	m->s.lenient = lenient;
	if (yaml)
		m->rc = pen__settings_yaml(&m->s, yaml, strlen(yaml), "f.yaml",
					   &m->e);
	while (!m->rc && args && *args) {
		const size_t n = strcspn(args, "\n");

		snprintf(arg, sizeof(arg), "%.*s", (int)n, args);
		m->rc = pen__settings_arg(&m->s, arg, &m->e);
		args += n + (args[n] == '\n');
	}
	if (!m->rc)
		m->rc = pen__config_settle(&m->c, &m->s, &m->e);
}

static inline void make(struct made *m, const char *yaml, const char *args)
{
	make_as(m, yaml, args, false);
}

static inline void unmake(struct made *m)
{
	if (!m->rc)
		pen__config_fini(&m->c);
	pen__settings_fini(&m->s);
}

static inline const char *notes(const struct made *m)
{
	return m->s.notes.p ? m->s.notes.p : "";
}

/* The value of a key after YAML and arguments. */
static inline void gives(const char *yaml, const char *args, const char *key,
			 const char *want)
{
	struct pen_text t = { 0 };
	struct made m;

	make(&m, yaml, args);
	if (!CHECK(!m.rc)) {
		fprintf(stderr, "  %s: %s\n", m.e.where, m.e.msg);
	} else if (CHECK(!pen__config_query(&m.c, key, &t, &m.e)) &&
		   !CHECK_STR(t.p ? t.p : "", want)) {
		fprintf(stderr, "  of %s\n", key);
	}
	pen__text_fini(&t);
	unmake(&m);
}

/* An error at a location, with part of its message. */
static inline void fails(const char *yaml, const char *args, const char *where,
			 const char *what)
{
	struct made m;

	make(&m, yaml, args);
	if (!CHECK(m.rc))
		fprintf(stderr, "  taken: %s %s\n", yaml ? yaml : "",
			args ? args : "");
	else if (!CHECK(strstr(m.e.msg, what)))
		fprintf(stderr, "  '%s: %s' lacks '%s'\n", m.e.where, m.e.msg,
			what);
	else if (!CHECK_STR(m.e.where, where))
		fprintf(stderr, "  with '%s'\n", m.e.msg);
	CHECK(!strchr(m.e.msg, '\n'));
	unmake(&m);
}

#endif
