/*
 * Turns settings into a configuration: defaults, then every source in turn,
 * then ${...} and derived values. A number set for a time clears the
 * distribution set before, and its `_stdev` is applied after it, wherever it is
 * written.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/mem.h"
#include "emulate/config_int.h"
#include "emulate/layout.h"

void pen__config_fini(struct pen_config *c)
{
	pen__opt_fini(pen__config_opts, c);
	pen__pairs_clear(&c->loader);
	pen__pairs_clear(&c->storage.options);
}

static bool ends_with(const char *s, const char *end)
{
	const size_t n = strlen(s), m = strlen(end);

	return n >= m && !strcmp(s + n - m, end);
}

/* A repeated key keeps its first position and its last value. */
static int apply_pair(struct pen_pairs *p, const char *key,
		      const struct pen_settings *s, const char *full,
		      struct pen_err *err)
{
	if (pen__pairs_get(p, key))
		return 0;
	return pen__pairs_add(p, key, pen__settings_find(s, full)->value, err);
}

static int apply(struct pen_config *c, const struct pen_settings *s,
		 const struct pen_setting *v, struct pen_err *err)
{
	static const char options[] = "storage.storage_options.";
	struct pen_time_spec *t = pen__key_time(v->key, c);

	if (pen__starts_with(v->key, "loader."))
		return apply_pair(&c->loader, v->key + strlen("loader."), s,
				  v->key, err);
	if (pen__starts_with(v->key, options))
		return apply_pair(&c->storage.options, v->key + strlen(options),
				  s, v->key, err);
	if (t)
		*t = (struct pen_time_spec){ 0 };
	if (pen__starts_with(v->key, "checkpoint.ksm."))
		c->checkpoint.ksm = true;
	return pen__opt_set(pen__config_opts, c, v->key, v->value, err);
}

/* Applies one source: settings [from, to). */
static int apply_source(struct pen_config *c, const struct pen_settings *s,
			size_t from, size_t to, struct pen_err *err)
{
	int rc = 0;

	for (unsigned pass = 0; pass < 2; pass++)
		for (size_t i = from; !rc && i < to; i++) {
			const bool late = pen__key_in_time(s->v[i].key) &&
					  ends_with(s->v[i].key, "_stdev");

			if (late == (pass == 1))
				rc = apply(c, s, &s->v[i], err);
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

/*
 * --- ${...} in text values, as in Hydra ---
 * ${workload.model.name} is another setting, ${now:%Y-%m-%d} the time. Nothing
 * else is resolved, in particular no environment variables and no code.
 */

#define DEPTH 8 /* a value may contain ${...} again */

/* The subset of strftime() that is useful in names; -1: unknown. */
static int field(char name, const struct tm *tm)
{
	static const char names[] = "YmdHMSyj";
	const int v[] = { tm->tm_year + 1900, tm->tm_mon + 1, tm->tm_mday,
			  tm->tm_hour,	      tm->tm_min,     tm->tm_sec,
			  tm->tm_year % 100,  tm->tm_yday + 1 };
	const char *at = name ? strchr(names, name) : NULL;

	return at ? v[at - names] : -1;
}

static int put_now(const char *format, const char *key, struct pen_text *out,
		   struct pen_err *err)
{
	struct timespec now;
	struct tm tm;

	clock_gettime(CLOCK_REALTIME, &now);
	if (!localtime_r(&now.tv_sec, &tm))
		return pen__fail(err, P_BAD_VALUE, key,
				 "cannot determine the local time");
	for (const char *p = format; *p; p++) {
		if (*p != '%')
			pen__text_put(out, p, 1);
		else if (*++p == 'f') /* Python only */
			pen__text_add(out, "%06ld", now.tv_nsec / 1000);
		else if (*p == '%')
			pen__text_put(out, p, 1);
		else if (field(*p, &tm) >= 0)
			pen__text_add(out, "%0*d",
				      *p == 'Y'	  ? 4
				      : *p == 'j' ? 3
						  : 2,
				      field(*p, &tm));
		else
			return pen__fail(
				err, P_BAD_VALUE, key,
				"${now:%.60s} is not a valid time format; use "
				"%%Y %%m %%d %%H %%M %%S %%y %%j %%f",
				format);
	}
	return 0;
}

/* Expands one ${name}; name has n bytes. */
static int put_ref(const struct pen_config *c, const char *key,
		   const char *name, size_t n, struct pen_text *out,
		   struct pen_err *err)
{
	char ref[PEN_KEY_MAX];
	struct pen_config_key k;

	if (snprintf(ref, sizeof(ref), "%.*s", (int)n, name) >=
	    (int)sizeof(ref))
		return pen__fail(err, P_TOO_LONG, key,
				 "the name inside ${...} is too long");
	if (pen__starts_with(ref, "now:"))
		return put_now(ref + 4, key, out, err);
	if (pen__key_resolve(pen__starts_with(ref, "workload.") ? ref + 9 : ref,
			     &k) &&
	    k.opt)
		return pen__config_query(c, k.name, out, err);
	return pen__fail(
		err, P_UNKNOWN_NAME, key,
		"cannot resolve ${%.80s}; use ${now:FORMAT} or ${workload.KEY}",
		ref);
}

static int expand(const struct pen_config *c, const char *key, const char *s,
		  struct pen_text *out, struct pen_err *err)
{
	int rc = 0;

	pen__text_put(out, "", 0);
	while (!rc && *s) {
		const char *ref = strstr(s, "${"), *end;

		if (!ref)
			ref = s + strlen(s);
		pen__text_put(out, s, (size_t)(ref - s));
		if (!*ref)
			break;
		end = strchr(ref, '}');
		if (!end)
			return pen__fail(err, P_BAD_VALUE, key,
					 "'${' without a closing '}': '%.80s'",
					 ref);
		rc = put_ref(c, key, ref + 2, (size_t)(end - ref - 2), out,
			     err);
		s = end + 1;
		if (out->n > 4096)
			return pen__fail(err, P_TOO_LONG, key,
					 "the value is longer than 4096 bytes");
	}
	if (!rc && out->failed)
		rc = pen__fail_nomem(err, key, out->n);
	return rc;
}

static int settle_text(struct pen_config *c, const struct pen_opt *o,
		       struct pen_err *err)
{
	char **at = (char **)(void *)((char *)c + o->off);
	unsigned rounds = 0;

	while (*at && strstr(*at, "${")) {
		struct pen_text t = { 0 };
		int rc =
			rounds++ < DEPTH
				? expand(c, o->name, *at, &t, err)
				: pen__fail(
					  err, P_BAD_VALUE, o->name,
					  "the value refers to itself: '%.80s'",
					  *at);

		if (rc) {
			pen__text_fini(&t);
			return rc;
		}
		pen__free(*at);
		*at = t.n ? t.p : NULL; /* same as an empty setting */
		if (!t.n)
			pen__text_fini(&t);
	}
	return 0;
}

static int interpolate(struct pen_config *c, const struct pen_settings *s,
		       struct pen_err *err)
{
	struct pen_err why = { 0 };
	int rc = 0;

	for (const struct pen_opt *o = pen__config_opts; !rc && o->name; o++) {
		if (o->type == PEN_OPT_STR)
			rc = settle_text(c, o, &why);
		if (rc)
			return pen__settings_fail(s, why.number, o->name, err,
						  "%s", why.msg);
	}
	return 0;
}

/* --- derived values --- */

/* "data/unet3d/" becomes "data/unet3d": names are appended to it. */
static void strip_slashes(char *path)
{
	size_t n = path ? strlen(path) : 0;

	while (n > 1 && path[n - 1] == '/')
		path[--n] = '\0';
}

/* Derives values that are not set explicitly. */
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

/* The default of DLIO. */
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
		rc = interpolate(c, s, err);
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

/* --- sizes --- */

enum pen_dtype pen__config_dtype(const char *name)
{
	enum pen_dtype t;

	if (pen__starts_with(name, "np."))
		name += 3;
	return pen__numpy_dtype(name, NULL, &t, NULL) ? PEN_NDTYPES : t;
}

uint64_t pen__config_sample_bytes(const struct pen_config *c)
{
	const enum pen_dtype t =
		pen__config_dtype(c->dataset.record_element_type);
	const uint64_t size = t == PEN_NDTYPES ? 1 : pen_dtype_size(t);
	const uint64_t side = (uint64_t)sqrt(c->dataset.record_length);
	uint64_t n = 1;

	if (!c->dataset.record_dims.n)
		return side * side * size;
	for (size_t i = 0; i < c->dataset.record_dims.n; i++)
		n *= (uint64_t)c->dataset.record_dims.v[i];
	return n * size;
}

double pen__config_data_bytes(const struct pen_config *c)
{
	const double files = (double)c->dataset.num_files_train +
			     (double)c->dataset.num_files_eval;
	double bytes = (double)pen__config_sample_bytes(c);
	double samples = (double)c->dataset.num_samples_per_file;

	if (!strcmp(c->dataset.format, "synthetic"))
		return 0;
	/* noise at JPEG quality 75 compresses to this */
	if (!strcmp(c->dataset.format, "jpeg"))
		bytes *= 0.57;
	if (!strcmp(c->dataset.format, "jpeg") ||
	    !strcmp(c->dataset.format, "png"))
		samples = 1;
	if (!strcmp(c->dataset.format, "csv"))
		bytes *= 3.57; /* mean: 2.57 digits and a comma */
	return files * samples * bytes;
}

double pen__config_parameters(const struct pen_config *c)
{
	const double v = (double)c->model.vocab_size,
		     h = (double)c->model.hidden_size,
		     f = (double)c->model.ffn_hidden_size,
		     kv = (double)(c->model.hidden_size /
				   c->model.num_attention_heads *
				   c->model.num_kv_heads);

	if (c->model.num_layers <= 0)
		return 0;
	return 2 * v * h + h +
	       (double)c->model.num_layers *
		       (2 * h + h * (h + 2 * kv) + h * h + 3 * f * h);
}

static double sum(const struct pen_opt_list *l)
{
	double all = 0;

	for (size_t i = 0; i < l->n; i++)
		all += (double)l->v[i];
	return all;
}

double pen__config_checkpoint_bytes(const struct pen_config *c)
{
	static const double size[] = { 1, 1, 2, 2, 4, 8 };
	const double p = pen__config_parameters(c),
		     ranks = (double)(c->model.tensor * c->model.pipeline);
	const bool transformer = c->model.type &&
				 !strcmp(c->model.type, "transformer");
	double bytes = transformer ? 0 : (double)c->model.size_bytes * ranks;

	if (c->model.layer_parameters.n && c->model.num_layers > 0)
		bytes += sum(&c->model.layer_parameters) *
			 (double)c->model.num_layers;
	else
		bytes += p * size[c->model.model_datatype];
	/* two moments and a copy of the parameters; explicit sizes are per rank
	 */
	if (c->model.optimization_groups.n)
		bytes += 3 * sum(&c->model.optimization_groups) * ranks;
	else
		bytes += 3 * p * size[c->model.optimizer_datatype];
	return bytes;
}
