/*
 * Settings into a configuration: defaults, then every source in turn, then
 * what follows from other values. A number given for a time clears what it was
 * drawn from before, and its `_stdev` counts after it, wherever it is written.
 */
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "emulate/config_int.h"

int pen__pairs_add(struct pen_pairs *p, const char *key, const char *value,
		   struct pen_err *err)
{
	struct pen_opts_kv *kv;
	char *k = pen__strdup(key), *v = pen__strdup(value);

	kv = k && v ? pen__realloc(p->kv, p->n + 1, sizeof(*kv)) : NULL;
	if (!kv) {
		pen__free(k);
		pen__free(v);
		return pen__fail_nomem(err, key, sizeof(*kv));
	}
	p->kv = kv;
	kv[p->n++] = (struct pen_opts_kv){ k, v };
	return 0;
}

void pen__pairs_fini(struct pen_pairs *p)
{
	for (size_t i = 0; i < p->n; i++) {
		pen__free((void *)(uintptr_t)p->kv[i].key);
		pen__free((void *)(uintptr_t)p->kv[i].value);
	}
	pen__free(p->kv);
	*p = (struct pen_pairs){ NULL, 0 };
}

void pen__config_fini(struct pen_config *c)
{
	pen__opt_fini(pen__config_opts, c);
	pen__pairs_fini(&c->loader);
	pen__pairs_fini(&c->storage.options);
}

static bool ends_with(const char *s, const char *end)
{
	const size_t n = strlen(s), m = strlen(end);

	return n >= m && !strcmp(s + n - m, end);
}

/* A pair given again replaces the one before. */
static int apply_pair(struct pen_pairs *p, const char *key, const char *value,
		      struct pen_err *err)
{
	for (size_t i = 0; i < p->n; i++)
		if (!strcmp(p->kv[i].key, key)) {
			char *copy = pen__strdup(value);

			if (!copy)
				return pen__fail_nomem(err, key, strlen(value));
			pen__free((void *)(uintptr_t)p->kv[i].value);
			p->kv[i].value = copy;
			return 0;
		}
	return pen__pairs_add(p, key, value, err);
}

static int apply(struct pen_config *c, const struct pen_setting *s,
		 struct pen_err *err)
{
	static const char options[] = "storage.storage_options.";
	struct pen_time_spec *t = pen__key_time(s->key, c);

	if (pen__starts_with(s->key, "loader."))
		return apply_pair(&c->loader, s->key + strlen("loader."),
				  s->value, err);
	if (pen__starts_with(s->key, options))
		return apply_pair(&c->storage.options, s->key + strlen(options),
				  s->value, err);
	if (t)
		*t = (struct pen_time_spec){ 0 };
	if (pen__starts_with(s->key, "checkpoint.ksm."))
		c->checkpoint.ksm = true;
	return pen__opt_set(pen__config_opts, c, s->key, s->value, err);
}

/* One source: [from, to) of the settings. */
static int apply_source(struct pen_config *c, const struct pen_settings *s,
			size_t from, size_t to, struct pen_err *err)
{
	int rc = 0;

	for (unsigned pass = 0; pass < 2; pass++)
		for (size_t i = from; !rc && i < to; i++) {
			const bool late = pen__key_in_time(s->v[i].key) &&
					  ends_with(s->v[i].key, "_stdev");

			if (late == (pass == 1))
				rc = apply(c, &s->v[i], err);
		}
	return rc;
}

static int fill(struct pen_config *c, const struct pen_settings *s,
		struct pen_err *err)
{
	size_t to;
	int rc = 0;

	for (size_t from = 0; !rc && from < s->n; from = to) {
		for (to = from + 1; to < s->n; to++)
			if (s->v[to].source != s->v[from].source)
				break;
		rc = apply_source(c, s, from, to, err);
	}
	return rc;
}

/* "data/unet3d/" is "data/unet3d": names are joined to it. */
static void strip_slashes(char *path)
{
	size_t n = path ? strlen(path) : 0;

	while (n > 1 && path[n - 1] == '/')
		path[--n] = '\0';
}

/* Values that follow others unless they are given. */
static void follow(struct pen_config *c, const struct pen_settings *s)
{
	const bool framework = pen__settings_find(s, "framework"),
		   loader = pen__settings_find(s, "reader.data_loader");

	if (framework && !loader)
		c->reader.data_loader = c->framework == PEN_PYTORCH
						? PEN_LOADER_PYTORCH
						: PEN_LOADER_TENSORFLOW;
	else if (loader && !framework &&
		 c->reader.data_loader == PEN_LOADER_PYTORCH)
		c->framework = PEN_PYTORCH;
	if (c->storage.type == PEN_STORAGE_DIRECT_FS)
		c->reader.odirect = true;
	strip_slashes(c->dataset.data_folder);
	strip_slashes(c->checkpoint.folder);
}

/* As DLIO has it. */
static int default_run_dir(struct pen_config *c, struct pen_err *err)
{
	static const char dir[] = "./hydra_log/${workload.model.name}/"
				  "${now:%Y-%m-%d}-${now:%H-%M-%S}";

	if (!c->run_dir)
		c->run_dir = pen__strdup(dir);
	return c->run_dir ? 0
			  : pen__fail_nomem(err, "hydra.run.dir", sizeof(dir));
}

int pen__config_settle(struct pen_config *c, struct pen_settings *s,
		       struct pen_err *err)
{
	int rc;

	memset(c, 0, sizeof(*c));
	rc = pen__opt_defaults(pen__config_opts, c, err);
	if (!rc)
		rc = fill(c, s, err);
	if (!rc)
		rc = default_run_dir(c, err);
	if (!rc)
		rc = pen__config_interpolate(c, s, err);
	if (!rc)
		follow(c, s);
	if (!rc)
		rc = pen__config_check(c, s, err);
	if (!rc && s->notes.failed)
		rc = pen__fail_nomem(err, "notes", s->notes.n);
	if (!rc)
		return 0;
	pen__config_fini(c);
	memset(c, 0, sizeof(*c));
	return rc;
}
