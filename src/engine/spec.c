/*
 * The spec: every setting of a loader, checked as it is set. Settings with a
 * dot (store.direct=true) belong to an implementation that is chosen later, so
 * they are kept as text and checked against that implementation's option table
 * when it is opened.
 */
#include "engine/spec.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/mem.h"
#include "base/team.h"
#include "comm/comm.h"
#include "format/format.h"
#include "sampler/sampler.h"
#include "store/store.h"

#define OFF(x) offsetof(struct pen_spec, x)

static const char *const tails[] = { "auto", "keep", "drop", "pad", NULL };
static const char *const policies[] = { "fail", "skip", "substitute", NULL };
static const char *const shapes[] = { "auto", "ragged", "padded", NULL };
static const char *const pad_to[] = { "auto", "data", "batch", NULL };
static const char *const too_long[] = { "auto", "fail",	 "alone",
					"cut",	"split", NULL };

const struct pen_opt pen__spec_opts[] = {
	{ .name = "format",
	  .type = PEN_OPT_STR,
	  .off = OFF(format),
	  .help = "file format (default: detected from the file names)" },
	{ .name = "store",
	  .type = PEN_OPT_STR,
	  .off = OFF(store),
	  .dflt = "auto",
	  .help = "how bytes are read (auto = chosen by file sizes and page "
		  "cache); see `penstock stores`" },
	{ .name = "batch_size",
	  .type = PEN_OPT_COUNT,
	  .off = OFF(batch_size),
	  .dflt = "32",
	  .min = 1,
	  .max = 1 << 24,
	  .help = "samples per batch on this rank (upper bound with "
		  "batch_tokens; rows with pack)" },
	{ .name = "batch_tokens",
	  .type = PEN_OPT_COUNT,
	  .off = OFF(batch_tokens),
	  .dflt = "0",
	  .max = 1e15,
	  .help = "token budget of a batch: sum of sample lengths, with "
		  "padding if padded (0 = use batch_size)" },
	{ .name = "pack",
	  .type = PEN_OPT_COUNT,
	  .off = OFF(pack),
	  .dflt = "0",
	  .max = 1 << 24,
	  .help = "pack several samples into rows of this length, batch_size "
		  "rows per batch (0 = off)" },
	{ .name = "too_long",
	  .type = PEN_OPT_ENUM,
	  .off = OFF(too_long),
	  .dflt = "auto",
	  .choices = too_long,
	  .help = "sample longer than batch_tokens: fail, or alone (auto); "
		  "longer than pack: fail (auto), cut or split" },
	{ .name = "epochs",
	  .type = PEN_OPT_COUNT,
	  .off = OFF(epochs),
	  .dflt = "1",
	  .help = "passes over the data (0 = endless)" },
	{ .name = "shuffle",
	  .type = PEN_OPT_STR,
	  .off = OFF(shuffle),
	  .help = "true, false, or the name of a sampler" },
	{ .name = "sampler",
	  .type = PEN_OPT_STR,
	  .off = OFF(sampler),
	  .help = "order of the samples; see `penstock samplers`" },
	{ .name = "seed",
	  .type = PEN_OPT_COUNT,
	  .off = OFF(seed),
	  .dflt = "0",
	  .help = "random seed; the order depends only on seed and epoch" },
	{ .name = "threads",
	  .type = PEN_OPT_INT,
	  .off = OFF(threads),
	  .dflt = "0",
	  .min = 0,
	  .max = PEN_MOST_THREADS,
	  .help = "worker threads (0 = one per CPU)" },
	{ .name = "prefetch",
	  .type = PEN_OPT_INT,
	  .off = OFF(prefetch),
	  .dflt = "0",
	  .min = 0,
	  .max = PEN_MOST_THREADS,
	  .help = "prefetch depth in batches (0 = chosen by batch size and "
		  "memory)" },
	{ .name = "queue_depth",
	  .type = PEN_OPT_INT,
	  .off = OFF(queue_depth),
	  .dflt = "0",
	  .min = 0,
	  .max = 4096,
	  .help = "reads in flight per thread with store=uring (0 = 32)" },
	{ .name = "memory",
	  .type = PEN_OPT_SIZE,
	  .off = OFF(memory),
	  .dflt = "0",
	  .help = "memory budget for batches and buffers (0 = 1/4 of the "
		  "available memory)" },
	{ .name = "cache",
	  .type = PEN_OPT_SIZE,
	  .off = OFF(cache),
	  .dflt = "0",
	  .help = "SIZE to keep unpacked units, `ddict` to cache reads on all "
		  "ranks (see `penstock stores`), or both: ddict,SIZE" },
	{ .name = "tail",
	  .type = PEN_OPT_ENUM,
	  .off = OFF(tail),
	  .dflt = "auto",
	  .choices = tails,
	  .help = "last batch: keep it short, drop it, or pad it from the "
		  "start of the epoch (auto = keep; pad with ranks)" },
	{ .name = "drop_last",
	  .type = PEN_OPT_BOOL,
	  .off = OFF(drop_last),
	  .dflt = "false",
	  .help = "same as tail=drop" },
	{ .name = "on_error",
	  .type = PEN_OPT_ENUM,
	  .off = OFF(on_error),
	  .dflt = "fail",
	  .choices = policies,
	  .help = "bad sample: fail, skip it, or substitute a neighbour" },
	{ .name = "max_errors",
	  .type = PEN_OPT_COUNT,
	  .off = OFF(max_errors),
	  .dflt = "0",
	  .help = "stop after this many bad samples (0 = never)" },
	{ .name = "shapes",
	  .type = PEN_OPT_ENUM,
	  .off = OFF(shapes),
	  .dflt = "auto",
	  .choices = shapes,
	  .help = "layout of samples that differ in shape: ragged (auto) or "
		  "padded" },
	{ .name = "pad_to",
	  .type = PEN_OPT_ENUM,
	  .off = OFF(pad_to),
	  .dflt = "auto",
	  .choices = pad_to,
	  .help = "pad to the largest sample of the data or of the batch (auto "
		  "= data; batch with batch_tokens or bucket)" },
	{ .name = "pad_multiple",
	  .type = PEN_OPT_COUNT,
	  .off = OFF(pad_multiple),
	  .dflt = "1",
	  .min = 1,
	  .max = 1 << 20,
	  .help = "round padded sizes up to a multiple of this" },
	{ .name = "rank",
	  .type = PEN_OPT_INT,
	  .off = OFF(rank),
	  .dflt = "0",
	  .min = 0,
	  .max = 1 << 24,
	  .help = "rank of this process (default: `penstock load` and Python "
		  "take rank and world from mpirun or srun)" },
	{ .name = "world",
	  .type = PEN_OPT_INT,
	  .off = OFF(world),
	  .dflt = "1",
	  .min = 1,
	  .max = 1 << 24,
	  .help = "number of ranks that share each global batch" },
	{ .name = "subset",
	  .type = PEN_OPT_STR,
	  .off = OFF(subset),
	  .help = "samples to use: START:STOP[:STEP], or a file of ids or a "
		  "boolean mask (.npy or text)" },
	{ .name = "weights",
	  .type = PEN_OPT_STR,
	  .off = OFF(weights),
	  .help = "weight per sample for sampler=weighted: a file (.npy), "
		  "field:NAME, or inverse:NAME (1 / class count)" },
	{ .name = "labels",
	  .type = PEN_OPT_STR,
	  .off = OFF(labels),
	  .help = "class per sample, delivered as field y and used by "
		  "sampler=balanced: a file (.npy), field:NAME or `folder`" },
	{ .name = "label_name",
	  .type = PEN_OPT_STR,
	  .off = OFF(label_name),
	  .help = "name of the field added by labels= (default: y)" },
	{ .name = "lengths",
	  .type = PEN_OPT_STR,
	  .off = OFF(lengths),
	  .help = "length per sample for batch_tokens and bucket: a file "
		  "(.npy) or field:NAME (default: first varying field)" },
	{ .name = "reshuffle",
	  .type = PEN_OPT_BOOL,
	  .off = OFF(reshuffle),
	  .dflt = "true",
	  .help = "use a new order in every epoch (false = repeat the first "
		  "one)" },
	{ .name = "epoch_batches",
	  .type = PEN_OPT_COUNT,
	  .off = OFF(epoch_batches),
	  .dflt = "0",
	  .max = 1e15,
	  .help = "batches per epoch (0 = until the data ends)" },
	{ .name = "batch_group",
	  .type = PEN_OPT_COUNT,
	  .off = OFF(batch_group),
	  .dflt = "0",
	  .max = 1 << 24,
	  .help = "make the batches of an epoch a multiple of this, for "
		  "accelerators that take turns (0 = off)" },
	{ .name = "fields",
	  .type = PEN_OPT_STR,
	  .off = OFF(fields),
	  .help = "deliver only these fields (x,y,...); others are not read "
		  "where the format allows it" },
	{ .name = "take",
	  .type = PEN_OPT_LIST,
	  .off = OFF(take),
	  .help = "crop the largest field to this shape (3x224x224), "
		  "zero-filled where a sample is smaller" },
	{ .name = "cast",
	  .type = PEN_OPT_STR,
	  .off = OFF(cast),
	  .help = "dtype of the largest field, as named by NumPy" },
	{ .name = "decode",
	  .type = PEN_OPT_BOOL,
	  .off = OFF(decode),
	  .dflt = "true",
	  .help = "false = read and drop the bytes, deliver empty batches" },
	{ .name = "image",
	  .type = PEN_OPT_STR,
	  .off = OFF(image),
	  .help = "crop, resize and normalise images: train:SIZE or "
		  "eval:RESIZE,SIZE; see `penstock decoders`" },
	{ .name = "read_size",
	  .type = PEN_OPT_SIZE,
	  .off = OFF(read_size),
	  .dflt = "0",
	  .max = 1e18,
	  .help = "largest single read in bytes (0 = entire units, or 1 MiB "
		  "where the bytes are not kept)" },
	{ .name = "index_cache",
	  .type = PEN_OPT_STR,
	  .off = OFF(index_cache),
	  .dflt = "auto",
	  .help = "where the index is cached: auto (user cache directory), "
		  "off, or a directory" },
	{ .name = "mlock",
	  .type = PEN_OPT_BOOL,
	  .off = OFF(mlock),
	  .dflt = "false",
	  .help = "lock batch memory into RAM" },
	{ .name = "open_files",
	  .type = PEN_OPT_COUNT,
	  .off = OFF(open_files),
	  .dflt = "0",
	  .min = 0,
	  .max = 1 << 24,
	  .help = "maximum number of files kept open (0 = from the process "
		  "limit)" },
	{ .name = NULL },
};

#define NPREFIXES 6
static const char *const prefixes[NPREFIXES] = { "store.",   "format.",
						 "sampler.", "cache.",
						 "decode.",  "image." };

static struct pen_pairs *pairs_of(struct pen_spec *s, size_t i)
{
	struct pen_pairs *all[] = { &s->for_store,   &s->for_format,
				    &s->for_sampler, &s->for_cache,
				    &s->for_decode,  &s->for_image };
	return all[i];
}

PEN_API int pen_spec_new(struct pen_spec **out, struct pen_err *err)
{
	struct pen_spec *s = pen__calloc(1, sizeof(*s));
	int rc;

	if (!s)
		return pen__fail_nomem(err, "spec", sizeof(*s));
	rc = pen__opt_defaults(pen__spec_opts, s, err);
	if (rc) {
		pen_spec_free(s);
		return rc;
	}
	*out = s;
	return 0;
}

PEN_API void pen_spec_free(struct pen_spec *s)
{
	if (!s)
		return;
	pen_spec_clear_paths(s);
	for (size_t g = 0; g < NPREFIXES; g++)
		pen__pairs_clear(pairs_of(s, g));
	pen__opt_fini(pen__spec_opts, s);
	pen__free(s);
}

/* `ddict`, a size, or both. */
static int set_cache(struct pen_spec *s, const char *value, struct pen_err *err)
{
	static const char word[] = "ddict";
	const char *size = value;
	int rc = 0;

	if (strncmp(value, word, sizeof(word) - 1) == 0 &&
	    strchr(",", value[sizeof(word) - 1]))
		size += sizeof(word) - 1;
	if (size != value && *size == ',')
		rc = pen__opt_set(pen__spec_opts, s, "cache", size + 1, err);
	else if (size == value && pen__parse_size(value, &s->cache))
		rc = pen__fail(err, P_BAD_VALUE, "cache",
			       "'%.100s' is not valid; use a size such as "
			       "512MiB, `ddict`, or both: ddict,512MiB",
			       value);
	if (!rc)
		s->tier = size != value;
	return rc;
}

/* Appends "or 'format.join'" when some format has the option join. */
static void add_home(char *text, size_t cap, const char *prefix,
		     const char *key)
{
	const size_t n = strlen(text);

	snprintf(text + n, cap - n, "%s'%s%s'", n ? " or " : "", prefix, key);
}

/* Suggests where the option belongs, or a similar name, or the list of
 * settings. */
static int fail_unknown(const char *key, struct pen_err *err)
{
	const struct pen_format_ops *f = NULL;
	const struct pen_store_ops *st = NULL;
	const struct pen_sampler_ops *sa = NULL;
	const char *names[64], *near;
	char home[256] = "";
	size_t n = 0;

	for (unsigned i = 0; (f = pen__format_at(i)); i++)
		if (pen__opt_find(f->opts, key))
			break;
	for (unsigned i = 0; (st = pen__store_at(i)); i++)
		if (pen__opt_find(st->opts, key))
			break;
	for (unsigned i = 0; (sa = pen__sampler_at(i)); i++)
		if (pen__opt_find(sa->opts, key))
			break;
	if (f)
		add_home(home, sizeof(home), "format.", key);
	if (st)
		add_home(home, sizeof(home), "store.", key);
	if (sa)
		add_home(home, sizeof(home), "sampler.", key);
	if (home[0])
		return pen__fail(err, P_UNKNOWN_NAME, key,
				 "unknown setting; did you mean %s?", home);
	for (const struct pen_opt *o = pen__spec_opts; o->name; o++)
		names[n++] = o->name;
	names[n] = NULL;
	near = pen__nearest(key, names);
	if (near)
		return pen__fail(err, P_UNKNOWN_NAME, key,
				 "unknown setting; did you mean '%s'?", near);
	return pen__fail(err, P_UNKNOWN_NAME, key,
			 "unknown setting; see `penstock load --help`");
}

/* A setting of an implementation. NULL resets it; "format." with NULL resets
 * all settings of the format. */
static int set_pair(struct pen_pairs *p, const char *key, const char *value,
		    struct pen_err *err)
{
	if (value)
		return pen__pairs_add(p, key, value, err);
	if (*key)
		pen__pairs_drop(p, key);
	else
		pen__pairs_clear(p);
	return 0;
}

PEN_API int pen_spec_set(struct pen_spec *s, const char *key, const char *value,
			 struct pen_err *err)
{
	const bool given = value;
	const struct pen_opt *o;

	key += strspn(key, "+"); /* Hydra's ++key=value means the same */
	if (strcmp(key, "image") == 0)
		key = "image.preset";
	for (size_t i = 0; i < NPREFIXES; i++) {
		size_t n = strlen(prefixes[i]);

		if (strncmp(key, prefixes[i], n) == 0)
			return set_pair(pairs_of(s, i), key + n, value, err);
	}
	if (!pen__opt_find(pen__spec_opts, key))
		return fail_unknown(key, err);
	if (strcmp(key, "batch_size") == 0)
		s->batch_given = given;
	if (strcmp(key, "drop_last") == 0)
		s->last_given = given;
	if (strcmp(key, "rank") == 0 || strcmp(key, "world") == 0)
		s->ranked = given;
	if (!value) {
		o = pen__opt_find(pen__spec_opts, key);
		value = o && o->dflt ? o->dflt : "";
	}
	if (strcmp(key, "cache") == 0)
		return set_cache(s, value, err);
	return pen__opt_set(pen__spec_opts, s, key, value, err);
}

/* The size, preceded by "ddict," if a dictionary is requested. */
static void get_cache(const struct pen_spec *s, char *buf, size_t cap)
{
	if (s->tier && !s->cache)
		snprintf(buf, cap, "ddict");
	else
		snprintf(buf, cap, "%s%llu", s->tier ? "ddict," : "",
			 (unsigned long long)s->cache);
}

PEN_API int pen_spec_get(const struct pen_spec *s, const char *key, char *buf,
			 size_t cap)
{
	struct pen_spec *of = (struct pen_spec *)(uintptr_t)s;
	const struct pen_opt *o;

	if (cap)
		buf[0] = '\0';
	if (strcmp(key, "image") == 0)
		key = "image.preset";
	for (size_t i = 0; i < NPREFIXES; i++) {
		const size_t n = strlen(prefixes[i]);
		const char *value;

		if (strncmp(key, prefixes[i], n) != 0)
			continue;
		value = pen__pairs_get(pairs_of(of, i), key + n);
		snprintf(buf, cap, "%s", value ? value : "");
		return value ? 0 : PEN_ENOTFOUND;
	}
	o = pen__opt_find(pen__spec_opts, key);
	if (!o)
		return PEN_ENOTFOUND;
	if (strcmp(key, "cache") == 0)
		get_cache(s, buf, cap);
	else if (strcmp(key, "sampler") == 0)
		snprintf(buf, cap, "%s", pen__spec_sampler(s));
	else
		pen__opt_text(o, s, buf, cap);
	return 0;
}

PEN_API uint64_t pen_spec_number(const struct pen_spec *s, const char *key)
{
	char text[64];
	uint64_t n;

	if (pen_spec_get(s, key, text, sizeof(text)) ||
	    pen__parse_size(text, &n))
		return 0;
	return n;
}

PEN_API void pen_spec_clear_paths(struct pen_spec *s)
{
	for (size_t i = 0; i < s->npaths; i++)
		pen__free(s->paths[i]);
	pen__free(s->paths);
	s->paths = NULL;
	s->npaths = 0;
	s->dict = NULL;
}

PEN_API const char *pen_spec_path(const struct pen_spec *s, uint64_t i)
{
	return i < s->npaths ? s->paths[i] : NULL;
}

PEN_API void pen_spec_on_stop(struct pen_spec *s, int (*stop)(void *arg),
			      void *arg)
{
	s->stop = (struct pen_stop){ stop, arg };
}

PEN_API void pen_spec_on_rows(struct pen_spec *s,
			      void (*rows)(void *arg, uint32_t thread,
					   uint32_t n),
			      void *arg)
{
	s->hook = (struct pen_row_hook){ rows, arg };
}

PEN_API void pen_spec_use_ranks(struct pen_spec *s, struct pen_ranks *ranks)
{
	s->comm = ranks ? ranks->comm : NULL;
}

PEN_API void pen_spec_keep_index(struct pen_spec *s, struct pen_kept_index *k)
{
	s->kept = k;
}

PEN_API int pen_spec_parse(struct pen_spec *s, const char *setting,
			   struct pen_err *err)
{
	const char *eq = strchr(setting, '=');
	char key[128];

	if (!eq || eq == setting || (size_t)(eq - setting) >= sizeof(key))
		return pen__fail(err, P_BAD_VALUE, setting,
				 "not a setting; write it as key=value");
	memcpy(key, setting, (size_t)(eq - setting));
	key[eq - setting] = '\0';
	return pen_spec_set(s, key, eq + 1, err);
}

PEN_API int pen_spec_add_ddict(struct pen_spec *s, struct pen_ddict *d,
			       struct pen_err *err)
{
	int rc = pen_spec_add_path(s, "ddict:", err);

	if (!rc)
		s->dict = d;
	return rc;
}

bool pen__spec_dict(const struct pen_spec *s)
{
	for (size_t i = 0; i < s->npaths; i++)
		if (!strncmp(s->paths[i], "ddict:", 6))
			return true;
	return false;
}

const char *pen__spec_store(const struct pen_spec *s)
{
	return !strcmp(s->store, "auto") && pen__spec_dict(s) ? "dictionary"
							      : s->store;
}

PEN_API int pen_spec_add_path(struct pen_spec *s, const char *path,
			      struct pen_err *err)
{
	char **paths, *copy;

	if (!*path)
		return pen__fail(err, P_BAD_VALUE, "path", "the path is empty");
	paths = pen__realloc(s->paths, s->npaths + 1, sizeof(*paths));
	if (!paths)
		return pen__fail_nomem(err, path, sizeof(*paths));
	s->paths = paths;
	copy = pen__strdup(path);
	if (!copy)
		return pen__fail_nomem(err, path, strlen(path));
	paths[s->npaths++] = copy;
	return 0;
}

static int copy_list(struct pen_opt_list *to, const struct pen_opt_list *from)
{
	if (!from->n)
		return 0;
	to->v = pen__alloc(from->n, sizeof(*to->v));
	if (!to->v)
		return PEN_ENOMEM;
	memcpy(to->v, from->v, from->n * sizeof(*to->v));
	to->n = from->n;
	return 0;
}

static int copy_pairs(struct pen_pairs *to, const struct pen_spec *from,
		      size_t g, struct pen_err *err)
{
	const struct pen_pairs *p =
		pairs_of((struct pen_spec *)(uintptr_t)from, g);
	int rc = 0;

	for (size_t i = 0; !rc && i < p->n; i++)
		rc = pen__pairs_add(to, p->kv[i].key, p->kv[i].value, err);
	return rc;
}

static int copy_strings(struct pen_spec *to, const struct pen_spec *from)
{
	for (const struct pen_opt *o = pen__spec_opts; o->name; o++) {
		char *const *src;
		char **dst;

		if (o->type != PEN_OPT_STR)
			continue;
		src = (char *const *)(const void *)((const char *)from +
						    o->off);
		dst = (char **)(void *)((char *)to + o->off);
		*dst = NULL;
		if (*src && !(*dst = pen__strdup(*src)))
			return PEN_ENOMEM;
	}
	return 0;
}

PEN_API int pen_spec_copy(struct pen_spec **out, const struct pen_spec *from,
			  struct pen_err *err)
{
	struct pen_spec *s = pen__calloc(1, sizeof(*s));
	int rc = 0;

	if (!s)
		return pen__fail_nomem(err, "spec", sizeof(*s));
	/* Clear owned pointers first, so that a failed copy can be freed. */
	*s = *from;
	s->take = (struct pen_opt_list){ NULL, 0 };
	s->paths = NULL;
	s->npaths = 0;
	for (size_t g = 0; g < NPREFIXES; g++)
		*pairs_of(s, g) = (struct pen_pairs){ NULL, 0 };
	for (const struct pen_opt *o = pen__spec_opts; o->name; o++)
		if (o->type == PEN_OPT_STR)
			*(char **)(void *)((char *)s + o->off) = NULL;
	if (copy_strings(s, from) || copy_list(&s->take, &from->take))
		rc = pen__fail_nomem(err, "spec", 0);
	for (size_t i = 0; !rc && i < from->npaths; i++)
		rc = pen_spec_add_path(s, from->paths[i], err);
	for (size_t g = 0; g < NPREFIXES; g++)
		rc = rc ? rc : copy_pairs(pairs_of(s, g), from, g, err);
	if (rc) {
		pen_spec_free(s);
		return rc;
	}
	*out = s;
	return 0;
}

const char *pen__spec_sampler(const struct pen_spec *s)
{
	static const char *const yes[] = { "true", "yes",    "on",
					   "1",	   "global", NULL };
	static const char *const no[] = { "false", "no",   "off",
					  "0",	   "none", NULL };

	if (s->sampler)
		return s->sampler;
	if (!s->shuffle)
		return "sequential";
	for (size_t i = 0; yes[i]; i++)
		if (strcasecmp(s->shuffle, yes[i]) == 0)
			return "shuffle";
	for (size_t i = 0; no[i]; i++)
		if (strcasecmp(s->shuffle, no[i]) == 0)
			return "sequential";
	return s->shuffle;
}
