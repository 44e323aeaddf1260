/*
 * Plain arrays of a zarr store as samples: an array at the root is field x;
 * arrays in groups are named by their paths (plain_pick.c chooses). A store is
 * AnnData if its attributes say so, or if its root has the members of AnnData:
 * obs and var, or some of them and nothing else (X next to y are plain arrays).
 * matrix= always asks for a matrix of cells.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/mem.h"
#include "format/cells/cells.h"
#include "format/cells/zarr.h"

#define MOST_ABSENT ((uint64_t)64 << 20) /* bytes that need not be stored */

struct walk {
	struct pen_picker w; /* must be first: the source gets this one */
	const struct pen_zarr *z;
	bool root;  /* the store is a single array */
	char **dir; /* directories of the store, sorted */
	size_t n, cap;
	bool nomem;
};

/* ---- AnnData or not ---- */

/* 1, 0 if it does not exist, or an error. */
static int find_node(const struct pen_zarr *z, const char *path, bool *group,
		     struct pen_err *err)
{
	struct pen_zarr_node node;
	const int rc = pen__zarr_node_open(z, path, &node, err);

	*group = node.group;
	pen__zarr_node_close(&node);
	return rc;
}

/* Whether a directory is a node, not part of a chunk's path. */
static bool is_node(const struct pen_zarr *z, const char *dir)
{
	static const char *const docs[] = { "zarr.json", ".zarray", ".zgroup" };
	struct pen_zarr_part part;
	char key[sizeof(((struct pen_picker *)0)->path) + 16];
	bool node = false;

	for (size_t i = 0; i < 3; i++) {
		snprintf(key, sizeof(key), "%s/%s", dir, docs[i]);
		node |= pen__zarr_find(z, key, &part);
	}
	return node;
}

/* Finds members of the root that AnnData does not have. */
struct foreign {
	const struct pen_zarr *z;
	bool any;
};

static void see_stranger(void *arg, const char *dir)
{
	static const char *const own[] = { "X",	   "obs",   "var",  "raw",
					   "obsm", "varm",  "obsp", "varp",
					   "uns",  "layers" };
	struct foreign *s = arg;

	for (size_t i = 0; i < sizeof(own) / sizeof(*own); i++)
		if (strcmp(dir, own[i]) == 0)
			return;
	s->any = s->any || (!strchr(dir, '/') && is_node(s->z, dir));
}

static int has_cells(const struct pen_zarr *z, struct pen_err *err)
{
	static const char *const parts[] = { "obs", "var",    "X",
					     "raw", "layers", "obsm" };
	struct foreign others = { .z = z };
	const struct pen_jdoc *j;
	unsigned has = 0;
	struct pen_zarr_node root;
	uint32_t kind;
	bool group;
	int rc = pen__zarr_node_open(z, "", &root, err);

	kind = pen__zarr_attr(&root, "encoding-type", &j);
	if (rc > 0)
		rc = root.group && pen__jdoc_is(j, kind, "anndata");
	for (size_t i = 0; root.group && !rc && i < 6; i++) {
		rc = find_node(z, parts[i], &group, err);
		has |= (unsigned)(rc > 0) << i;
		rc = rc < 0 || has == 3 ? rc : 0;
	}
	if (has && !rc) {
		pen__zarr_dirs(z, see_stranger, &others);
		rc = !others.any;
	}
	pen__zarr_node_close(&root);
	return rc;
}

/* An option that applies to cells only, or NULL. */
static const char *cells_option(const struct pen_cells *p)
{
	return p->obs		  ? "obs"
	       : p->var		  ? "var"
	       : p->genes	  ? "genes"
	       : p->filter	  ? "filter"
	       : p->dtype	  ? "dtype"
	       : p->normalize > 0 ? "normalize"
	       : p->log1p	  ? "log1p"
	       : p->output	  ? "output"
	       : p->join	  ? "join"
	       : p->source	  ? "source"
				  : NULL;
}

/* ---- finding arrays ---- */

static void where_of(const struct walk *k, const char *path, char *buf,
		     size_t cap)
{
	snprintf(buf, cap, "%.150s:%.100s", k->w.name, path);
}

/* Reads the array at w.path of the store; 1, or 0: it cannot be a field. */
static int see_array(struct walk *k, struct pen_zarr_array *a,
		     struct pen_err *err)
{
	const char *path = k->root ? "" : k->w.path;
	struct pen_zarr_node node;
	char where[256];
	int rc = pen__zarr_node_open(k->z, path, &node, err);

	if (rc > 0)
		rc = pen__zarr_array(k->z, &node, a, err);
	pen__zarr_node_close(&node);
	if (rc < 0 || a->text == PEN_ZARR_NUMBERS)
		return rc < 0 ? rc : 1;
	where_of(k, k->w.path, where, sizeof(where));
	return pen__fail(err, P_UNSUPPORTED_TYPE, where,
			 "contains %s; a field needs numbers", a->type_name);
}

static int add(struct walk *k, struct pen_err *err)
{
	struct pen_zarr_array a;
	struct pen_chunked_put d;
	const int rc = see_array(k, &a, err);

	if (rc <= 0)
		return rc;
	pen__zarr_put(k->z, &a, NULL, &d);
	return pen__picker_add(&k->w, 0, &d, err);
}

static void see_dir(void *arg, const char *dir)
{
	struct walk *k = arg;

	if (k->nomem || strlen(dir) + 16 > sizeof(k->w.path) ||
	    !is_node(k->z, dir))
		return;
	if (k->n == k->cap) {
		const size_t cap = k->cap ? k->cap * 2 : 64;
		void *p = pen__realloc(k->dir, cap, sizeof(*k->dir));

		k->nomem = !p;
		k->dir = p ? p : k->dir;
		k->cap = p ? cap : k->cap;
	}
	if (k->nomem)
		return;
	k->dir[k->n] = pen__strdup(dir);
	k->nomem = !k->dir[k->n];
	k->n += !k->nomem;
}

static int by_text(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Judges a group, or the root, by its members, which may be parts of a
 * matrix. */
static int judge(struct walk *k, const char *dir, struct pen_err *err)
{
	static const char *const parts[] = { "data", "indices", "indptr" };
	bool group;
	int rc = 1;

	k->w.has = 0;
	for (size_t i = 0; rc > 0 && i < 3; i++) {
		snprintf(k->w.path, sizeof(k->w.path), "%s%s%s", dir,
			 *dir ? "/" : "", parts[i]);
		rc = find_node(k->z, k->w.path, &group, err);
		if (rc > 0)
			pen__picker_see(&k->w, parts[i]);
	}
	snprintf(k->w.path, sizeof(k->w.path), "%s%s", dir, *dir ? "/" : "");
	pen__picker_judge(&k->w);
	return rc < 0 ? rc : 0;
}

/* Skips arrays that cannot be fields, but not damaged ones. */
static int see_node(struct walk *k, const char *dir, struct pen_err *err)
{
	struct pen_err why = { 0 };
	bool group;
	int rc = find_node(k->z, dir, &group, err);

	if (rc <= 0)
		return rc;
	if (group)
		return judge(k, dir, err);
	snprintf(k->w.path, sizeof(k->w.path), "%s", dir);
	rc = add(k, &why);
	if (rc == PEN_ENOTSUP) {
		k->w.nleft_out++;
		return 0;
	}
	if (rc < 0)
		*err = why;
	return rc;
}

static int zarr_all(struct pen_picker *w, struct pen_err *err)
{
	struct walk *k = (struct walk *)w;
	int rc;

	if (k->root) {
		snprintf(w->path, sizeof(w->path), "x");
		return add(k, err);
	}
	pen__zarr_dirs(k->z, see_dir, k);
	if (k->nomem)
		return pen__fail_nomem(err, w->name, k->n * sizeof(*k->dir));
	if (k->n)
		qsort(k->dir, k->n, sizeof(*k->dir), by_text);
	rc = judge(k, "", err);
	for (size_t i = 0; rc >= 0 && i < k->n; i++)
		if (!i || strcmp(k->dir[i], k->dir[i - 1]) != 0)
			rc = see_node(k, k->dir[i], err);
	return rc;
}

static int zarr_named(struct pen_picker *w, struct pen_err *err)
{
	struct walk *k = (struct walk *)w;
	bool group = false;
	int rc = k->root ? strcmp(w->path, "x") == 0
			 : find_node(k->z, w->path, &group, err);

	if (rc < 0)
		return rc;
	if (!rc || group)
		return pen__fail(
			err, P_NO_SUCH_PART, w->name,
			group	  ? "'%s' is a group; list the arrays in it"
			: k->root ? "no array '%s'; the store is a single "
				    "array named x"
				  : "no array '%s'",
			w->path);
	return add(k, err);
}

/* The declared shape is checked, since a few bytes can declare any shape. */
static int check_row(const struct pen_picker *w, const struct pen_plain_pick *c,
		     const struct pen_filters *f, uint64_t stored,
		     struct pen_err *err)
{
	const uint64_t row = w->whole || !c->dim0 ? c->nbytes
						  : c->nbytes / c->dim0;
	uint64_t most;

	if (__builtin_mul_overflow(stored, pen__filters_ratio(f), &most))
		most = UINT64_MAX / 2;
	if (row <= most || row - most <= MOST_ABSENT)
		return 0;
	return pen__fail(err, P_DAMAGED, w->name,
			 "'%s' declares samples of %" PRIu64
			 " bytes, more than files of %" PRIu64
			 " bytes can contain",
			 c->name, row, stored);
}

static int zarr_put(struct pen_picker *w, const struct pen_plain_pick *c,
		    const char *where, struct pen_buf *b, struct pen_err *err)
{
	struct walk *k = (struct walk *)w;
	struct pen_chunks cs = { 0 };
	struct pen_chunked_put out;
	struct pen_zarr_array a;
	struct pen_zarr_node node;
	int rc = pen__zarr_node_open(k->z, k->root ? "" : c->name, &node, err);

	(void)where;
	if (rc >= 0)
		rc = pen__zarr_array(k->z, &node, &a, err);
	if (rc >= 0)
		rc = pen__zarr_chunks(k->z, &node, &a, &cs, NULL, err);
	if (rc >= 0)
		rc = check_row(w, c, &a.filters, cs.stored, err);
	if (rc >= 0) {
		pen__buf_le(b, PEN_STORED_CHUNKS, 1);
		pen__zarr_put(k->z, &a, &cs, &out);
		if (!cs.n)
			out.layout = PEN_CHUNKED_EMPTY;
		pen__chunked_put(b, &out);
	}
	pen__chunks_fini(&cs);
	pen__zarr_node_close(&node);
	return rc;
}

static const struct pen_plain_source source = {
	.noun = "array",
	.all = zarr_all,
	.named = zarr_named,
	.put = zarr_put,
};

int pen__zarr_plain(struct pen_cells_file *f, const struct pen_cells *p,
		    struct pen_found *found)
{
	const struct pen_zarr *z = f->in;
	struct walk k = { .w = { .src = &source,
				 .name = f->name,
				 .size = UINT64_MAX,
				 .version = (unsigned)z->version },
			  .z = z };
	const char *option = cells_option(p);
	bool group;
	int rc = p->copy || strcmp(p->matrix, "X") != 0;

	if (!rc)
		rc = has_cells(z, f->err);
	if (rc > 0 && p->plain.samples != PEN_SAMPLES_AUTO)
		return pen__fail(f->err, P_NO_EFFECT, "samples",
				 "applies to plain arrays only; in single-cell "
				 "data, such as %.150s, each cell is a sample",
				 f->name);
	if (rc)
		return rc < 0 ? rc : 0;
	if (option)
		return pen__fail(f->err, P_NO_EFFECT, option,
				 "applies to single cells, but %.150s contains "
				 "plain arrays; format.matrix= selects an "
				 "array as a matrix of cells",
				 f->name);
	rc = find_node(z, "", &group, f->err);
	k.root = rc > 0 && !group;
	if (rc >= 0)
		rc = pen__plain_index(&p->plain, &k.w, found, f->err);
	for (size_t i = 0; i < k.n; i++)
		pen__free(k.dir[i]);
	pen__free(k.dir);
	pen__picker_fini(&k.w);
	return rc < 0 ? rc : 1;
}
