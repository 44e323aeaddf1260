/* Each pair is one allocation, "key\0value", that its key points to. */
#include "base/pairs.h"

#include <string.h>

#include "base/mem.h"

static int copy(struct pen_opts_kv *out, const char *key, const char *value,
		struct pen_err *err)
{
	const size_t nk = strlen(key) + 1, nv = strlen(value) + 1;
	char *both = pen__alloc(nk + nv, 1);

	if (!both)
		return pen__fail_nomem(err, key, nk + nv);
	memcpy(both, key, nk);
	memcpy(both + nk, value, nv);
	*out = (struct pen_opts_kv){ both, both + nk };
	return 0;
}

int pen__pairs_add(struct pen_pairs *p, const char *key, const char *value,
		   struct pen_err *err)
{
	struct pen_opts_kv *kv = pen__realloc(p->kv, p->n + 1, sizeof(*kv));
	int rc;

	if (!kv)
		return pen__fail_nomem(err, key, sizeof(*kv));
	p->kv = kv;
	rc = copy(&kv[p->n], key, value, err);
	p->n += !rc;
	return rc;
}

void pen__pairs_clear(struct pen_pairs *p)
{
	for (size_t i = 0; i < p->n; i++)
		pen__free((void *)(uintptr_t)p->kv[i].key);
	pen__free(p->kv);
	*p = (struct pen_pairs){ NULL, 0 };
}

void pen__pairs_drop(struct pen_pairs *p, const char *key)
{
	size_t kept = 0;

	for (size_t i = 0; i < p->n; i++) {
		if (strcmp(p->kv[i].key, key) != 0)
			p->kv[kept++] = p->kv[i];
		else
			pen__free((void *)(uintptr_t)p->kv[i].key);
	}
	p->n = kept;
}

const char *pen__pairs_get(const struct pen_pairs *p, const char *key)
{
	for (size_t i = p->n; i-- > 0;)
		if (strcmp(p->kv[i].key, key) == 0)
			return p->kv[i].value;
	return NULL;
}
