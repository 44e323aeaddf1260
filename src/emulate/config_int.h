/* Shared by the files that make up the settings; nobody else includes it. */
#ifndef PEN_EMULATE_CONFIG_INT_H
#define PEN_EMULATE_CONFIG_INT_H

#include "emulate/config.h"

#define PEN_KEY_MAX 192

/* --- names (config_keys.c) --- */

/* A key as it is called today. */
struct pen_config_key {
	char name[PEN_KEY_MAX];
	char old[PEN_KEY_MAX]; /* what was written, when that is an old name */
	char now[PEN_KEY_MAX]; /* and what that is called today */
	unsigned rank;	       /* old name 0, today's 1, data_reader 2 */
	const struct pen_opt *opt; /* NULL: unknown, or free */
	bool free; /* loader.X, storage.storage_options.X: not in the table */
};
/* false: longer than any key */
bool pen__key_resolve(const char *given, struct pen_config_key *out);
/* Is there any key below it? */
bool pen__key_is_section(const char *name);
/* What could have been meant by an unknown key, or NULL. */
const char *pen__key_suggest(const char *name);
/* Of enum pen_draw_type. */
extern const char *const pen__draw_names[];
/* The keys of times; NULL ends them. */
extern const char *const pen__key_times[];
/* The time of such a key in c, or NULL. */
struct pen_time_spec *pen__key_time(const char *name, struct pen_config *c);
/* Below such a key, or its _stdev: part of the spec, not printed alone. */
bool pen__key_in_time(const char *name);
bool pen__starts_with(const char *s, const char *prefix);

/* --- settings (config_set.c) --- */

struct pen_config_value {
	const char *text;
	bool null, list;
};
/* Where a setting stands. */
struct pen_place {
	const char *origin; /* "file.yaml:3:5", "argument" */
	const char *file;   /* "" for arguments */
	unsigned source;
};
/* Checks one and adds it. */
int pen__setting_put(struct pen_settings *, const char *key,
		     const struct pen_config_value *, const struct pen_place *,
		     struct pen_err *);
/* Says why a name is not that of a value: a section's, or nobody's. In lenient
 * mode, the latter is only noted. */
int pen__setting_refuse(struct pen_settings *, const char *name,
			const struct pen_place *, struct pen_err *);
int pen__fail_in(const struct pen_place *, const char *key, int code,
		 const char *what, struct pen_err *err);

/* One line, once. */
void pen__settings_note(struct pen_settings *, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
/* The last one for a key, or NULL. */
const struct pen_setting *pen__settings_find(const struct pen_settings *,
					     const char *key);
/* Fails with the place where key was given, or else with its name. */
int pen__settings_fail(const struct pen_settings *, int code, const char *key,
		       struct pen_err *err, const char *fmt, ...)
	__attribute__((format(printf, 5, 6)));

/* What must hold between values (config_check.c); may add notes and settle
 * what follows from others. */
int pen__config_check(struct pen_config *, struct pen_settings *,
		      struct pen_err *);

#endif
