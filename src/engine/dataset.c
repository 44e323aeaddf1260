/*
 * Opening a data set: find the objects, settle on a format, index them (or
 * take a cached index), let the format check that they fit together, and open
 * the store that suits them.
 */
#include "engine/dataset.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/team.h"
#include "comm/comm.h"
#include "engine/decoded.h"
#include "store/tier.h"

#define SMALL_OBJECT (1u << 20)
#define MOST_INDEXING 256 /* threads, unless more are requested */
#define MOSTLY 0.95	  /* share in the page cache that counts as all */

/* Which names to keep while listing. */
struct wanted {
	const struct pen_format_ops *format; /* NULL: any known format */
	bool any; /* named one by one by the user: the suffix does not matter */
	bool whole;   /* the directory itself belongs to the format */
	bool several; /* several paths, each sorted separately */
};

/* Is the file a marker of the format? */
static bool is_marker(const struct pen_format_ops *o, const char *path)
{
	char head[512];
	ssize_t n;
	int fd;

	if (!o->marks)
		return access(path, F_OK) == 0;
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (fd < 0)
		return false;
	n = read(fd, head, sizeof(head));
	close(fd);
	return n > 0 && o->marks(head, (size_t)n);
}

/* The format whose marker is at the top of a directory, or NULL. */
static const struct pen_format_ops *format_marked(const char *dir)
{
	const struct pen_format_ops *o;
	char path[4096];

	for (unsigned i = 0; (o = pen__format_at(i)); i++)
		for (const char *const *m = o->markers; m && *m; m++) {
			int n = snprintf(path, sizeof(path), "%s/%s", dir, *m);

			if (n > 0 && (size_t)n < sizeof(path) &&
			    is_marker(o, path))
				return o;
		}
	return NULL;
}

static bool keep_name(void *arg, const char *dir, const char *name)
{
	const struct wanted *w = arg;
	const struct pen_format_ops *of;

	of = w->format && !w->format->markers ? NULL : pen__format_of_dir(dir);
	if (w->whole || (of && (!w->format || pen__format_is(of, w->format))))
		return true;
	if (w->any || !name)
		return name != NULL;
	return w->format ? pen__format_takes(w->format, name)
			 : pen__format_for(name) != NULL;
}

/* Lists the objects of one path, after those of earlier paths. */
static int list_path(struct pen_dataset *ds, const char *path, struct wanted *w,
		     struct pen_err *err)
{
	const uint64_t from = ds->objs.nobj;
	int rc = ds->store->ops->list(ds->store, path, keep_name, w, &ds->objs,
				      err);

	if (!rc && w->several)
		pen__objects_sort_from(&ds->objs, from);
	return rc;
}

static int list_file(struct pen_dataset *ds, const char *path, struct wanted *w,
		     struct pen_err *err)
{
	char line[4096], full[8192];
	const char *slash = strrchr(path, '/');
	int dirlen = slash ? (int)(slash - path) + 1 : 0, rc = 0;
	FILE *in = fopen(path, "re");

	if (!in)
		return pen__fail_sys(err, errno, path,
				     "cannot read the list of files");
	while (!rc && fgets(line, sizeof(line), in)) {
		size_t n = strcspn(line, "\r\n");

		if (line[n] == '\0' && !feof(in)) {
			rc = pen__fail(err, P_TOO_LONG, path,
				       "a line has more than 4000 bytes");
			break;
		}
		line[n] = '\0';
		if (!n)
			continue;
		/* relative names are relative to the list */
		snprintf(full, sizeof(full), "%.*s%s",
			 line[0] == '/' ? 0 : dirlen, path, line);
		w->whole = pen__format_is(format_marked(full), w->format);
		rc = list_path(ds, full, w, err);
	}
	if (!rc && ferror(in))
		rc = pen__fail_sys(err, errno, path,
				   "cannot read the list of files");
	fclose(in);
	return rc;
}

/* Samples are numbered in the order of the given paths, so that what users
 * specify per sample (weights, labels, ids) applies to the samples they
 * mean. */
static int join_paths(struct pen_dataset *ds, struct pen_err *err)
{
	char path[4096];
	uint32_t twice;
	int rc = pen__objects_join(&ds->objs, &twice);

	if (rc == PEN_ENOMEM)
		return pen__fail_nomem(err, "paths", ds->objs.nobj * 4);
	if (!rc)
		return 0;
	pen__object_path(&ds->objs, twice, path, sizeof(path));
	return pen__fail(
		err, P_CONFLICT, path,
		"two of the given paths lead to this file; name each file once "
		"(subset= and sampler=weighted can repeat samples)");
}

static int list_objects(struct pen_dataset *ds,
			const struct pen_format_ops *format,
			struct pen_err *err)
{
	struct wanted w = { .format = format };
	int rc = 0;

	w.several = ds->spec->npaths > 1 || ds->spec->paths[0][0] == '@';
	for (size_t i = 0; !rc && i < ds->spec->npaths; i++) {
		const char *path = ds->spec->paths[i];
		struct stat sb;

		if (path[0] == '@') {
			w.any = format != NULL;
			rc = list_file(ds, path + 1, &w, err);
			continue;
		}
		w.any = format && (stat(path, &sb) || !S_ISDIR(sb.st_mode));
		w.whole = !w.any && pen__format_is(format_marked(path), format);
		rc = list_path(ds, path, &w, err);
	}
	if (rc)
		return rc;
	if (!ds->objs.nobj)
		return pen__fail(err, P_NO_KNOWN_FORMAT, ds->spec->paths[0],
				 format ? "contains no %s files"
					: "contains no files of a known "
					  "format%s; set format=",
				 format ? format->name : "");
	if (w.several)
		return join_paths(ds, err);
	pen__objects_sort(&ds->objs);
	return 0;
}

static const struct pen_format_ops *format_of(const struct pen_objects *o,
					      uint64_t i)
{
	const struct pen_format_ops *f =
		pen__format_of_dir(pen__object_dir(o, (uint32_t)i));

	return f ? f : pen__format_for(pen__object_name(o, (uint32_t)i));
}

/* Two formats may share a suffix. */
static bool takes(const struct pen_objects *o, uint64_t i,
		  const struct pen_format_ops *f)
{
	return pen__format_takes(f, pen__object_name(o, (uint32_t)i));
}

/* The family that the formats of all objects belong to, or NULL. */
static const struct pen_format_ops *find_family(const struct pen_objects *o)
{
	const struct pen_format_ops *f = format_of(o, 0), *all;

	all = f && f->family ? pen__format_find(f->family) : NULL;
	for (uint64_t i = 0; all && i < o->nobj; i++)
		if (!pen__format_is(format_of(o, i), all))
			all = NULL;
	return all;
}

/* The format of all listed names, or an error with counts. */
static int find_format(struct pen_dataset *ds,
		       const struct pen_format_ops **out, struct pen_err *err)
{
	const struct pen_format_ops *f, *other = NULL;
	uint64_t n = 0;

	f = format_of(&ds->objs, 0);
	for (uint64_t i = 0; i < ds->objs.nobj; i++) {
		const struct pen_format_ops *o = format_of(&ds->objs, i);

		if (f && (o == f || (!f->markers && takes(&ds->objs, i, f))))
			n++;
		else if (!other)
			other = o;
	}
	if (!f)
		return pen__fail(
			err, P_MISSING_SETTING, ds->spec->paths[0],
			"the format cannot be detected from the name; set "
			"format= (see `penstock formats`)");
	if (n != ds->objs.nobj && (*out = find_family(&ds->objs)))
		return 0;
	if (n != ds->objs.nobj)
		return pen__fail(err, P_AMBIGUOUS_DATA, ds->spec->paths[0],
				 "contains %llu %s files and %llu others (%s); "
				 "choose one with format=",
				 (unsigned long long)n, f->name,
				 (unsigned long long)(ds->objs.nobj - n),
				 other ? other->name : "unknown");
	*out = f;
	return 0;
}

static int open_format(struct pen_dataset *ds, const struct pen_format_ops *ops,
		       struct pen_err *err)
{
	struct pen_spec *s = ds->spec;
	char *fields = NULL;
	int rc = 0;

	if (s->cells && !pen__opt_find(ops->opts, s->cells->name))
		return pen__fail(err, P_BAD_VALUE, s->paths[0],
				 "the format '%s' has no cells; convert reads "
				 "h5ad, zarr and packed",
				 ops->name);
	/* a format that can skip fields is told which ones are needed */
	if (s->fields && pen__opt_find(ops->opts, "fields") &&
	    !ops->all_fields && !pen__pairs_get(&s->for_format, "fields"))
		rc = pen__fields_of_format(s, &fields, err);
	if (fields) {
		rc = pen_spec_set(s, "format.fields", fields, err);
		ds->label.unread = strcmp(fields, s->fields) != 0;
	}
	pen__free(fields);
	if (!rc)
		rc = pen__format_open(&ds->format, ops, s->for_format.kv,
				      s->for_format.n, err);
	if (rc)
		return rc;
	ds->format->nobjects_hint = ds->objs.nobj;
	return pen__decoded_open(&ds->format,
				 &(struct pen_decode_set){ s->for_decode,
							   s->for_image,
							   s->for_format },
				 err);
}

/* The store for listing and indexing: headers are small reads of many files,
 * where a mapping or a ring only adds cost. */
static const char *index_store(const char *name)
{
	return strcmp(name, "auto") == 0 || strcmp(name, "mmap") == 0 ||
			       strcmp(name, "uring") == 0 ||
			       strcmp(name, "ddict") == 0
		       ? "posix"
		       : name;
}

static int open_store(struct pen_dataset *ds, const char *name,
		      const struct pen_opts_kv *kv, size_t nkv,
		      struct pen_err *err)
{
	int rc;

	pen__store_close(ds->store);
	ds->store = NULL;
	rc = pen__store_open(&ds->store, name, kv, nkv, err);
	if (!rc && ds->spec->open_files)
		ds->store->max_open = (unsigned)ds->spec->open_files;
	return rc;
}

static void find_cache(struct pen_dataset *ds)
{
	const char *where = ds->spec->index_cache;

	ds->cache_dir[0] = '\0';
	if (!where || strcmp(where, "off") == 0 ||
	    strcmp(ds->store->ops->name, "posix") != 0 ||
	    !pen__index_key_of(&ds->key, ds->spec, true))
		return;
	if (strcmp(where, "auto") == 0) {
		if (!pen__cache_default_dir(ds->cache_dir,
					    sizeof(ds->cache_dir)))
			ds->cache_dir[0] = '\0';
	} else {
		snprintf(ds->cache_dir, sizeof(ds->cache_dir), "%s", where);
	}
}

static int64_t wall_ns(void)
{
	return (int64_t)pen__clock_ns_of(CLOCK_REALTIME);
}

/* The format suggested by a path alone: by its marker for a directory, else by
 * the name. */
static const struct pen_format_ops *format_at(const char *path)
{
	const struct pen_format_ops *o = format_marked(path);

	return o ? o : pen__format_for(path);
}

/* The requested format, or the one whose marker a directory has. NULL: decided
 * by the names of the objects. */
static const struct pen_format_ops *asked_format(const struct pen_spec *s)
{
	const struct pen_format_ops *ops = NULL;

	if (s->format)
		return pen__format_find(s->format);
	for (size_t i = 0; !ops && i < s->npaths; i++)
		ops = format_marked(s->paths[i]);
	for (size_t i = 0; ops && ops->family && i < s->npaths; i++)
		if (format_at(s->paths[i]) != ops)
			return pen__format_find(ops->family);
	return ops;
}

/* As many reads in flight as loading will have. A format may need much memory
 * to index a large object, so large objects get no more threads than
 * loading. */
static unsigned index_threads(const struct pen_dataset *ds)
{
	const struct pen_spec *s = ds->spec;
	const unsigned cpus = pen__cpus(), asked = (unsigned)s->threads,
		       n = asked > cpus ? asked : cpus;
	uint64_t reads = asked ? asked : cpus;

	if (ds->objs.total_bytes / ds->objs.nobj > SMALL_OBJECT ||
	    !(strcmp(s->store, "uring") == 0 ||
	      (strcmp(s->store, "auto") == 0 &&
	       pen__store_resident(&ds->objs) < MOSTLY)))
		return n;
	reads *= s->queue_depth > 0 ? (uint64_t)s->queue_depth
				    : PEN_QUEUE_DEPTH;
	reads = reads < MOST_INDEXING ? reads : MOST_INDEXING;
	return reads > n ? (unsigned)reads : n;
}

static int index_as(struct pen_dataset *ds, const struct pen_format_ops *ops,
		    unsigned threads, struct pen_err *err)
{
	int rc = open_format(ds, ops, err);

	ds->ix.stop = ds->spec->stop;
	ds->ix.keep_bad = ds->spec->on_error != PEN_ON_FAIL;
	if (rc)
		return rc;
	return pen__index_build(&ds->ix, &ds->objs, ds->store, ds->format,
				threads, err);
}

/* The files of a folder, seen together, can turn out to be of another
 * format. */
static int index_together(struct pen_dataset *ds, unsigned threads,
			  struct pen_err *err)
{
	const struct pen_format_ops *ops = ds->format->ops;
	const char *other = NULL;
	struct stat sb;
	int rc;

	if (ds->spec->format || !ops->together || ds->spec->npaths != 1 ||
	    stat(ds->spec->paths[0], &sb) || !S_ISDIR(sb.st_mode))
		return 0;
	rc = ops->together(ds->format, &ds->ix.pub, ds->ix.nbad, &other, err);
	if (rc || !other)
		return rc;
	pen__format_close(ds->format);
	ds->format = NULL;
	pen__index_fini(&ds->ix);
	return index_as(ds, pen__format_find(other), threads, err);
}

static int build_index(struct pen_dataset *ds, struct pen_err *err)
{
	const struct pen_format_ops *ops = asked_format(ds->spec);
	int64_t listed_ns = wall_ns();
	unsigned threads;
	int rc;

	if (ds->spec->format && !ops)
		return pen__fail(err, P_UNKNOWN_NAME, ds->spec->format,
				 "is not a format; see `penstock formats`");
	rc = list_objects(ds, ops, err);
	if (!rc && !ops)
		rc = find_format(ds, &ops, err);
	if (!rc)
		rc = pen__store_bind(ds->store, &ds->objs, err);
	if (rc)
		return rc;
	threads = index_threads(ds);
	pen__store_share_files(ds->store, threads,
			       (unsigned)ds->spec->open_files);
	rc = index_as(ds, ops, threads, err);
	if (!rc)
		rc = index_together(ds, threads, err);
	if (rc)
		return rc;
	ds->ix.listed_ns = listed_ns;
	/* failing to save the index only costs time later */
	if (ds->cache_dir[0] && !ds->ix.nbad)
		(void)!pen__cache_save(&ds->ix, ds->cache_dir, &ds->key, NULL);
	return 0;
}

/* Loads the index from the cache, also when another process is just building
 * it. On failure, *lock is what other processes wait for until it is built
 * here. */
static int cached_index(struct pen_dataset *ds, int *lock)
{
	bool waited;
	int rc;

	*lock = -1;
	if (!ds->cache_dir[0])
		return PEN_ENOTFOUND;
	rc = pen__cache_load(&ds->ix, &ds->objs, ds->cache_dir, &ds->key);
	if (!rc)
		return 0;
	*lock = pen__cache_lock(ds->cache_dir, &ds->key, &ds->spec->stop,
				&waited);
	if (waited)
		rc = pen__cache_load(&ds->ix, &ds->objs, ds->cache_dir,
				     &ds->key);
	if (waited) { /* the index of this data may never be saved */
		pen__cache_unlock(*lock, ds->cache_dir, &ds->key);
		*lock = -1;
	}
	return rc;
}

static int load_index(struct pen_dataset *ds, struct pen_err *err)
{
	int rc, lock;

	if (ds->spec->kept &&
	    !pen__kept_load(ds->spec->kept, ds->spec, &ds->ix, &ds->objs))
		return open_format(ds, ds->ix.of, err);
	find_cache(ds);
	rc = cached_index(ds, &lock);
	if (!rc)
		return open_format(ds, ds->ix.of, err);
	rc = build_index(ds, err);
	pen__cache_unlock(lock, ds->cache_dir, &ds->key);
	return rc;
}

/* How samples are read, for the choice of a store. */
static void access_of(struct pen_dataset *ds, bool *whole, uint64_t *bytes)
{
	uint64_t n = ds->ix.pub.nsamples ? ds->ix.pub.nsamples : 1;

	*whole = ds->ix.pub.nobjects >= n;
	*bytes = ds->objs.total_bytes / n;
}

/* Are samples unpacked from compressed units? The first sample decides. */
static bool unpacks(const struct pen_dataset *ds)
{
	const struct pen_format *f = ds->format;
	struct pen_unit *u;
	bool packed = false;
	uint32_t object;
	uint64_t k;

	if (!f->shares)
		return false;
	u = pen__calloc(f->units_per_sample, sizeof(*u));
	if (!u)
		return false;
	pen__index_find(f->ix, 0, &object, &k);
	f->ops->locate(f, object, k, u);
	for (uint32_t i = 0; i < f->units_per_sample; i++)
		packed |= u[i].object != PEN_NO_OBJECT &&
			  u[i].flags & PEN_UNIT_COMPRESSED;
	pen__free(u);
	return packed;
}

/* Puts the dictionary on top of the chosen store. */
static int add_tier(struct pen_dataset *ds, struct pen_err *err)
{
	const struct pen_pairs *given = &ds->spec->for_cache;
	struct pen_store *under = ds->store;
	int rc;

	ds->store = NULL;
	rc = pen__store_open_over(&ds->store, "ddict", under, given->kv,
				  given->n, err);
	if (!rc)
		pen__tier_join(ds->store, ds->comm);
	return rc;
}

/* queue_depth= needs a store that has reads in flight. */
static bool picks_depth(const struct pen_spec *s, struct pen_pick *pick)
{
	if (!s->queue_depth)
		return false;
	*pick = (struct pen_pick){ .name = "uring",
				   .why = "reads in flight, as queue_depth= "
					  "asks" };
	if (!pen__store_uring_works())
		*pick = (struct pen_pick){ .name = "posix",
					   .why = "io_uring is not allowed "
						  "here, so queue_depth= has "
						  "no effect" };
	return true;
}

static int settle_store(struct pen_dataset *ds, struct pen_err *err)
{
	const struct pen_pairs *given = &ds->spec->for_store;
	struct pen_pick pick = { .name = ds->spec->store, .why = "asked for" };
	bool is_auto = strcmp(pick.name, "auto") == 0;
	uint64_t bytes;
	bool whole;
	int rc = 0;

	ds->resident = pen__store_resident(&ds->objs);
	if (is_auto && (ds->comm || !picks_depth(ds->spec, &pick))) {
		access_of(ds, &whole, &bytes);
		pick = pen__store_pick(&ds->objs, whole, unpacks(ds), bytes,
				       ds->resident);
		/* data that is read once and copied need not be mapped */
		if (ds->comm && strcmp(pick.name, "mmap") == 0)
			pick = (struct pen_pick){ .name = "posix",
						  .why = "beneath a cache" };
	}
	ds->why_store = pick.why;
	if (strcmp(pick.name, ds->store->ops->name) != 0)
		rc = open_store(ds, pick.name, is_auto ? pick.opt : given->kv,
				is_auto ? pick.nopts : given->n, err);
	if (!rc && ds->comm)
		rc = add_tier(ds, err);
	return rc ? rc : pen__store_bind(ds->store, &ds->objs, err);
}

static int no_samples(const struct pen_dataset *ds, struct pen_err *err)
{
	const char *filter = pen__pairs_get(&ds->spec->for_format, "filter");
	const char *window = pen__pairs_get(&ds->spec->for_format, "window");
	const char *fields = pen__pairs_get(&ds->spec->for_format, "fields");

	if (filter && *filter)
		return pen__fail(
			err, P_NO_SAMPLES, ds->spec->paths[0],
			"format.filter=%.100s leaves no samples; see `penstock "
			"inspect` with format.obs= for the values of a column",
			filter);
	if (fields)
		return pen__fail(
			err, P_NO_SAMPLES, ds->spec->paths[0],
			"no samples with format.fields=%.100s; see `penstock "
			"inspect` without it for what the data contains",
			fields);
	if (window && strcmp(window, "0") != 0)
		return pen__fail(
			err, P_NO_SAMPLES, ds->spec->paths[0],
			"no record is long enough for format.window=%.40s; set "
			"format.last=keep to accept shorter ones",
			window);
	return pen__fail(err, P_NO_SAMPLES, ds->spec->paths[0],
			 "contains no samples");
}

static int bind_index(struct pen_dataset *ds, struct pen_err *err)
{
	if (!ds->ix.pub.nsamples && ds->ix.nbad) {
		if (err)
			*err = ds->ix.bad[0].err;
		return ds->ix.bad[0].err.code;
	}
	if (!ds->ix.pub.nsamples)
		return no_samples(ds, err);
	return ds->format->ops->bind(ds->format, &ds->ix.pub, err);
}

/* If a cached index does not bind, the index itself is at fault: another
 * version of the program may have written it. */
static int index_again(struct pen_dataset *ds, struct pen_err *err)
{
	int rc;

	if (err)
		pen__err_reset(err);
	pen__cache_drop(ds->cache_dir, &ds->key);
	pen__format_close(ds->format);
	ds->format = NULL;
	pen__objects_fini(&ds->objs);
	pen__index_fini(&ds->ix);
	ds->objs = (struct pen_objects){ 0 };
	ds->ix = (struct pen_index_data){ 0 };
	rc = build_index(ds, err);
	return rc ? rc : bind_index(ds, err);
}

static int dataset_fill(struct pen_dataset *ds, struct pen_err *err)
{
	const char *first;
	size_t given;
	int rc;

	if (!ds->spec->npaths && strcmp(ds->spec->store, "null") == 0)
		rc = pen_spec_add_path(ds->spec, "null:", err);
	else
		rc = 0;
	if (rc)
		return rc;
	if (!ds->spec->npaths)
		return pen__fail(err, P_MISSING_SETTING, "path",
				 "no PATH given; name a file or directory");
	rc = pen__spec_check_parts(ds->spec, err);
	if (rc)
		return rc;
	first = index_store(ds->spec->store);
	given = strcmp(first, ds->spec->store) == 0 ? ds->spec->for_store.n : 0;
	rc = open_store(ds, first, ds->spec->for_store.kv, given, err);
	if (!rc)
		rc = load_index(ds, err);
	if (!rc)
		rc = bind_index(ds, err);
	if (rc && ds->ix.from_cache)
		rc = index_again(ds, err);
	if (!rc && ds->spec->kept)
		pen__kept_save(ds->spec->kept, &ds->ix, &ds->objs);
	if (!rc)
		rc = settle_store(ds, err);
	if (!rc)
		rc = pen__label_open(ds, err);
	return rc;
}

/* Called before anything that may fail on a single rank. */
static int open_ranks(struct pen_dataset *ds, struct pen_err *err)
{
	struct pen_spec *s = ds->spec;
	int rc;

	ds->comm = s->comm;
	if (!ds->comm) {
		rc = pen__comm_open(&ds->comm, err);
		if (rc)
			return rc;
		ds->own_comm = true;
	}
	if (!s->ranked) {
		s->rank = ds->comm->rank;
		s->world = ds->comm->size;
	}
	return 0;
}

int pen__dataset_refuse(const struct pen_spec *spec, int rc,
			struct pen_err *err)
{
	struct pen_comm *comm = spec->comm;

	if (!spec->tier || (!comm && pen__comm_open(&comm, NULL)))
		return rc;
	rc = pen__comm_agree(comm, rc, err);
	if (!spec->comm)
		pen__comm_close(comm);
	return rc;
}

static int open_data(struct pen_dataset **out, const struct pen_spec *spec,
		     bool loads, struct pen_err *err)
{
	uint64_t start = pen__now_ns();
	struct pen_dataset *ds = pen__calloc(1, sizeof(*ds));
	int rc;

	rc = ds ? pen_spec_copy(&ds->spec, spec, err)
		: pen__fail_nomem(err, "data set", sizeof(*ds));
	if (rc) {
		pen_dataset_close(ds);
		return loads ? pen__dataset_refuse(spec, rc, err) : rc;
	}
	if (loads && ds->spec->tier)
		rc = open_ranks(ds, err);
	if (!rc)
		rc = dataset_fill(ds, err);
	if (rc) {
		if (ds->format)
			pen__format_err(ds->format->ops, err);
		/* formats do not know which of the two settings it is */
		if (err && !spec->fields && !strcmp(err->where, "fields"))
			snprintf(err->where, sizeof(err->where),
				 "format.fields");
		/* only once: all ranks must make the same calls */
		if (ds->comm && !pen__tier_met(ds->store))
			rc = pen__comm_agree(ds->comm, rc, err);
		pen_dataset_close(ds);
		return rc;
	}
	ds->open_ns = pen__now_ns() - start;
	*out = ds;
	return 0;
}

PEN_API int pen_dataset_open(struct pen_dataset **out,
			     const struct pen_spec *spec, struct pen_err *err)
{
	return open_data(out, spec, false, err);
}

int pen__dataset_open(struct pen_dataset **out, const struct pen_spec *spec,
		      struct pen_err *err)
{
	return open_data(out, spec, true, err);
}

PEN_API void pen_dataset_close(struct pen_dataset *ds)
{
	if (!ds)
		return;
	pen__label_close(ds);
	pen__format_close(ds->format);
	pen__store_close(ds->store);
	if (ds->own_comm)
		pen__comm_close(ds->comm);
	pen__objects_fini(&ds->objs);
	pen__index_fini(&ds->ix);
	pen_spec_free(ds->spec);
	pen__free(ds);
}
