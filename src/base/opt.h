/*
 * Option tables: one place names a setting, its type, default and help; the
 * parser, `--help`, the man page and the docs all read it.
 */
#ifndef PEN_BASE_OPT_H
#define PEN_BASE_OPT_H

#include <stdbool.h>
#include <stddef.h>

#include "err.h"

enum pen_opt_type {
	PEN_OPT_BOOL,	/* bool: true/false/yes/no/on/off/1/0 */
	PEN_OPT_INT,	/* int64_t within [min, max] */
	PEN_OPT_SIZE,	/* uint64_t bytes: 4096, 64KiB, 1.5GB, 2G */
	PEN_OPT_COUNT,	/* uint64_t: 1000, 10k, 1M, 1e6 */
	PEN_OPT_DOUBLE, /* double */
	PEN_OPT_TIME,	/* uint64_t ns: 50us, 1.5ms, 2s */
	PEN_OPT_STR,	/* char *, owned by the struct; NULL when empty */
	PEN_OPT_ENUM,	/* int: index into choices */
	PEN_OPT_LIST,	/* struct pen_opt_list: [1, 2, 3] or 1,2,3 or 1x2x3 */
};

/* Integers, none below zero; owned by the struct it is in. */
struct pen_opt_list {
	int64_t *v;
	size_t n;
};

struct pen_opt {
	const char *name;
	enum pen_opt_type type;
	size_t off;		    /* offsetof in the struct it fills */
	const char *dflt;	    /* as a user would write it; NULL = zero */
	const char *help;	    /* one line */
	const char *const *choices; /* ENUM: NULL-terminated */
	double min, max;	    /* numbers: checked when max > min */
};

/* A setting as given, for an implementation chosen later. */
struct pen_opts_kv {
	const char *key, *value;
};

/* Tables end with an entry whose name is NULL. opts may be NULL. */
int pen__opt_defaults(const struct pen_opt *opts, void *to,
		      struct pen_err *err);
/* Unknown names are errors with a suggestion. */
int pen__opt_set(const struct pen_opt *opts, void *to, const char *name,
		 const char *value, struct pen_err *err);
/* Defaults, then all pairs; on failure what was set is freed. */
int pen__opt_fill(const struct pen_opt *opts, void *to,
		  const struct pen_opts_kv *kv, size_t nkv,
		  struct pen_err *err);
const struct pen_opt *pen__opt_find(const struct pen_opt *opts,
				    const char *name);
void pen__opt_fini(const struct pen_opt *opts, void *of); /* frees strings */
/* The nearest of a list by edit distance, or NULL when none is near. */
const char *pen__nearest(const char *word, const char *const *words);

int pen__parse_size(const char *s, uint64_t *out); /* 0 or PEN_EINVAL */
int pen__parse_count(const char *s, uint64_t *out);

#endif
