/*
 * Option tables: a setting's name, type, default and help are in one place; the
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

/* Non-negative integers; owned by the struct it is in. */
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
	const char *const *choices; /* ENUM, STR: NULL-terminated */
	double min, max;	    /* numbers: checked when max > min */
};

/* A setting as given, for an implementation chosen later. */
struct pen_opts_kv {
	const char *key, *value;
};
/* Settings as given, for an implementation. */
struct pen_opts {
	const struct pen_opts_kv *kv;
	size_t n;
};

/* Tables end with an entry whose name is NULL. opts may be NULL. */
int pen__opt_defaults(const struct pen_opt *opts, void *to,
		      struct pen_err *err);
/* Unknown names are errors with a suggestion. */
int pen__opt_set(const struct pen_opt *opts, void *to, const char *name,
		 const char *value, struct pen_err *err);
/* Defaults, then all pairs; on failure what was set is freed. kind is the
 * prefix of the names as users write them: "store." */
int pen__opt_fill(const struct pen_opt *opts, void *to,
		  const struct pen_opts_kv *kv, size_t nkv, const char *kind,
		  struct pen_err *err);
/* If an error names one of these options, adds the prefix that users write. */
void pen__opt_err(const struct pen_opt *opts, const char *kind,
		  struct pen_err *err);
const struct pen_opt *pen__opt_find(const struct pen_opt *opts,
				    const char *name);
/* The name of its type, as in struct pen_option. */
const char *pen__opt_type(const struct pen_opt *);
/* The value of an option in a struct, as a user would write it. */
void pen__opt_text(const struct pen_opt *, const void *of, char *buf,
		   size_t cap);
void pen__opt_fini(const struct pen_opt *opts, void *of); /* frees strings */
/* Guesses what a mistyped word was meant to be, by edit distance: try all
 * candidates in turn; best is what the nearest one stands for, NULL if none is
 * near. Starts as zeros. */
struct pen_guess {
	const char *best;
	unsigned edits;
};
void pen__guess(struct pen_guess *, const char *word, const char *candidate,
		const char *meant);
/* The nearest of a list, or NULL. */
const char *pen__nearest(const char *word, const char *const *words);
/* The same for names that come one by one, and the text to append to a message:
 * "; did you mean 'cell_type'?", or nothing. */
#define PEN_NEAR_MAX 40
struct pen_near {
	char word[PEN_NEAR_MAX + 1], best[PEN_NEAR_MAX + 1];
	unsigned edits;
};
struct pen_near pen__near(const void *word, size_t n);
void pen__near_see(struct pen_near *, const void *name, size_t n);
struct pen_near_text {
	char s[64];
};
struct pen_near_text pen__near_text(const struct pen_near *);

int pen__parse_size(const char *s, uint64_t *out); /* 0 or PEN_EINVAL */
int pen__parse_count(const char *s, uint64_t *out);

#endif
