/* Internal to the config_*.c files. */
#ifndef PEN_EMULATE_CONFIG_INT_H
#define PEN_EMULATE_CONFIG_INT_H

#include "emulate/config.h"

#define PEN_KEY_MAX 192

/* --- names (config_keys.c) --- */

/* A key under its current name. */
struct pen_config_key {
	char name[PEN_KEY_MAX];
	char old[PEN_KEY_MAX]; /* the name in the source, if it is an old one */
	char now[PEN_KEY_MAX]; /* its current name */
	unsigned rank;	       /* old name 0, current name 1, data_reader 2 */
	const struct pen_opt *opt; /* NULL: unknown or free-form */
	bool free; /* loader.X, storage.storage_options.X: not in the table */
};
/* false: longer than any key */
bool pen__key_resolve(const char *given, struct pen_config_key *out);
/* True if any key is below name. */
bool pen__key_is_section(const char *name);
/* The most similar key to an unknown one, or NULL. */
const char *pen__key_suggest(const char *name);
/* By enum pen_draw_type. */
extern const char *const pen__draw_names[];
/* Keys that are times; NULL-terminated. */
extern const char *const pen__key_times[];
/* The time in c that belongs to such a key, or NULL. */
struct pen_time_spec *pen__key_time(const char *name, struct pen_config *c);
/* True for keys below such a key and its _stdev: part of the spec, not printed
 * separately. */
bool pen__key_in_time(const char *name);
bool pen__starts_with(const char *s, const char *prefix);

/* --- settings (config_set.c) --- */

struct pen_config_value {
	const char *text;
	bool null, list;
};
/* Location of a setting. */
struct pen_place {
	const char *origin; /* "file.yaml:3:5", "argument" */
	const char *file;   /* "" for arguments */
	unsigned source;
};
/* Validates a setting and adds it. */
int pen__setting_put(struct pen_settings *, const char *key,
		     const struct pen_config_value *, const struct pen_place *,
		     struct pen_err *);
/* Reports that a name is a section, or unknown; in lenient mode, an unknown
 * name is only noted. */
int pen__setting_refuse(struct pen_settings *, const char *name,
			const struct pen_place *, struct pen_err *);
int pen__fail_in(const struct pen_place *, const char *key, int kind,
		 const char *what, struct pen_err *err);

/* Adds a line, unless it was added before. */
void pen__settings_note(struct pen_settings *, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
/* The last setting of a key, or NULL. */
const struct pen_setting *pen__settings_find(const struct pen_settings *,
					     const char *key);
/* Fails with the location of the setting, or else with its key. */
int pen__settings_fail(const struct pen_settings *, int kind, const char *key,
		       struct pen_err *err, const char *fmt, ...)
	__attribute__((format(printf, 5, 6)));

/* config_check.c: validates combinations of values; may add notes and derive
 * values. */
int pen__config_check(struct pen_config *, struct pen_settings *,
		      struct pen_err *);

#endif
