/* Settings as given, for an implementation that is chosen later. */
#ifndef PEN_BASE_PAIRS_H
#define PEN_BASE_PAIRS_H

#include "base/opt.h"

struct pen_pairs {
	struct pen_opts_kv *kv;
	size_t n;
};

/* Copies both; a key may be repeated. */
int pen__pairs_add(struct pen_pairs *, const char *key, const char *value,
		   struct pen_err *err);
void pen__pairs_drop(struct pen_pairs *, const char *key);
void pen__pairs_clear(struct pen_pairs *);
/* The last value of this key, or NULL. */
const char *pen__pairs_get(const struct pen_pairs *, const char *key);

#endif
