/*
 * Single cells in zarr, for cells_file.h. Codes written by anndata 0.7 name
 * their list of categories in an attribute, as a path from the frame. Refuses
 * frames stored as structures, as before 0.7, and everything zarr_meta.c
 * refuses.
 */
#include <inttypes.h>
#include <stdio.h>

#include "base/mem.h"
#include "format/cells/cells.h"
#include "format/cells/zarr.h"

#define MOST_ABSENT ((uint64_t)1 << 24) /* elements that need not be stored */

/* The stores of a collection must be separate objects. */
static int check_archive(struct pen_cells_file *f)
{
	struct pen_zarr_node root;
	bool is = false;
	int rc = pen__zarr_node_open(f->in, "", &root, f->err);

	if (rc > 0)
		is = pen__zarr_is_collection(&root);
	pen__zarr_node_close(&root);
	if (!is)
		return rc < 0 ? rc : 0;
	return pen__fail(f->err, P_UNSUPPORTED_FEATURE, f->name,
			 "the archive contains a collection of several stores; "
			 "unpack it");
}

static int zarr_open(struct pen_cells_file *f, uint64_t nfiles)
{
	struct pen_zarr *z = pen__calloc(1, sizeof(*z));
	char where[256];
	int rc;

	f->in = z;
	if (!z)
		return pen__fail_nomem(f->err, f->name, sizeof(*z));
	rc = pen__zarr_open(z, f->pk, nfiles, f->err);
	pen__zarr_where(z, "", where, sizeof(where));
	where[strlen(where) - 2] = '\0'; /* without ":/" */
	snprintf(f->name, sizeof(f->name), "%.199s", where);
	return rc < 0 || !z->zipped ? rc : check_archive(f);
}

static void zarr_close(struct pen_cells_file *f)
{
	if (f->in)
		pen__zarr_close(f->in);
	pen__free(f->in);
}

static int open_node(struct pen_cells_file *f, const struct pen_cells_node *n,
		     struct pen_zarr_node *node)
{
	int rc = pen__zarr_node_open(f->in, n->path, node, f->err);

	if (rc)
		return rc < 0 ? rc : 0;
	return pen__cells_refuse(f, P_NO_SUCH_PART, n->path,
				 "not found in the store");
}

static int zarr_find(struct pen_cells_file *f, const char *path,
		     struct pen_cells_node *out)
{
	struct pen_zarr_node node;
	int rc;

	if (strncmp(path, "./", 2) == 0)
		path += 2;
	if (strlen(path) >= sizeof(out->path))
		return 0;
	rc = pen__zarr_node_open(f->in, path, &node, f->err);
	if (rc > 0) {
		*out = (struct pen_cells_node){ .group = node.group };
		memcpy(out->path, node.path, strlen(node.path) + 1);
	}
	pen__zarr_node_close(&node);
	return rc;
}

static int zarr_text_attr(struct pen_cells_file *f,
			  const struct pen_cells_node *n, const char *name,
			  char *buf, size_t cap)
{
	const struct pen_jdoc *j;
	struct pen_zarr_node node;
	const char *s = NULL;
	uint32_t v;
	int rc = open_node(f, n, &node);

	buf[0] = '\0';
	if (rc >= 0) {
		v = pen__zarr_attr(&node, name, &j);
		s = pen__jdoc_text(j, v);
		if (pen__jdoc_type(j, v) == PEN_JDOC_TRUE)
			s = "True";
		if (pen__jdoc_type(j, v) == PEN_JDOC_FALSE)
			s = "False";
	}
	if (s)
		snprintf(buf, cap, "%s", s);
	pen__zarr_node_close(&node);
	return rc;
}

static int zarr_shape_attr(struct pen_cells_file *f,
			   const struct pen_cells_node *n, const char *name,
			   uint64_t shape[2])
{
	const struct pen_jdoc *j;
	struct pen_zarr_node node;
	uint32_t list, a;
	int rc = open_node(f, n, &node);

	if (rc >= 0) {
		list = pen__zarr_attr(&node, name, &j);
		a = pen__jdoc_first(j, list);
		rc = pen__jdoc_count(j, list) == 2 &&
		     pen__jdoc_count_of(j, a, &shape[0]) &&
		     pen__jdoc_count_of(j, pen__jdoc_next(j, a), &shape[1]);
	}
	pen__zarr_node_close(&node);
	return rc;
}

/* ---- lists ---- */

/* Attribute categories: a path relative to the array's group. */
static int find_categories(struct pen_cells_file *f,
			   const struct pen_zarr_node *node,
			   struct pen_cells_list *l)
{
	const struct pen_jdoc *j;
	const uint32_t v = pen__zarr_attr(node, "categories", &j);
	const char *to = pen__jdoc_text(j, v);
	const char *slash = strrchr(node->path, '/');
	char path[2 * PEN_ZARR_PATH];

	if (!to)
		return 0;
	snprintf(path, sizeof(path), "%.*s%s",
		 slash ? (int)(slash - node->path) + 1 : 0, node->path,
		 *to == '/' ? to + 1 : to);
	l->coded = true;
	return pen__cells_need(f, path, &l->categories);
}

static int zarr_list(struct pen_cells_file *f, const struct pen_cells_node *n,
		     const char *member, struct pen_cells_list *l)
{
	struct pen_zarr_array a;
	struct pen_zarr_node node;
	int rc = open_node(f, n, &node);

	if (rc >= 0 && member)
		rc = pen__cells_refuse(f, P_UNSUPPORTED_FEATURE, n->path,
				       "an array, not a group of columns; "
				       "write it with anndata 0.7 or later");
	if (rc >= 0)
		rc = pen__zarr_array(f->in, &node, &a, f->err);
	if (rc >= 0)
		rc = pen__zarr_read_list(f->in, &node, &a, &l->data, &l->absent,
					 f->err);
	if (rc >= 0) {
		l->text = a.text != PEN_ZARR_NUMBERS;
		l->dtype = l->text ? PEN_U8 : (enum pen_dtype)a.dtype;
		l->size = a.item;
		l->n = a.dim[0];
		rc = find_categories(f, &node, l);
		if (rc < 0)
			pen__cells_list_close(l);
	}
	pen__zarr_node_close(&node);
	return rc < 0 ? rc : 0;
}

/* ---- arrays ---- */

static int check(struct pen_cells_file *f, const char *path,
		 const struct pen_zarr_array *a, bool list)
{
	if (a->text != PEN_ZARR_NUMBERS)
		return pen__cells_refuse(f, P_UNSUPPORTED_TYPE, path,
					 "contains %s; a matrix needs numbers",
					 a->type_name);
	if (a->ndim != (list ? 1 : 2))
		return pen__cells_refuse(f, P_DAMAGED, path,
					 "has %u axes; expected %d", a->ndim,
					 list ? 1 : 2);
	if (a->fortran)
		return pen__cells_refuse(
			f, P_UNSUPPORTED_FEATURE, path,
			"stored by column (order F), which scatters a cell "
			"over the whole matrix; "
			"anndata.read_zarr(this).write_zarr(that) stores it by "
			"row");
	return 0;
}

static void put(const struct pen_zarr *z, const struct pen_zarr_array *a,
		const struct pen_chunks *cs,
		const struct pen_zarr_blocks *blocks, struct pen_buf *b)
{
	const struct pen_filters block = {
		.n = 1, .f[0] = { PEN_CHUNKED_BLOCK, blocks->head }
	};
	struct pen_chunked_put out;

	pen__zarr_put(z, a, cs, &out);
	if (blocks->cols) {
		out.cut = out.chunk[0];
		out.chunk[0] = blocks->cols;
		out.filters = &block;
		out.crcs = false;
	}
	if (!cs->ncells)
		out.layout = PEN_CHUNKED_FLAT;
	pen__chunked_put(b, &out);
}

/* Upper bound of the elements: from the stored bytes, plus an allowance for
 * omitted chunks. */
static uint64_t most_of(const struct pen_zarr_array *a,
			const struct pen_chunks *cs)
{
	uint64_t n;

	if (__builtin_mul_overflow(cs->stored, pen__filters_ratio(&a->filters),
				   &n))
		return UINT64_MAX / 2;
	return n / a->item + MOST_ABSENT;
}

static int zarr_array(struct pen_cells_file *f, const struct pen_cells_node *n,
		      bool list, struct pen_buf *b, struct pen_cells_shape *s)
{
	struct pen_cells_absent absent;
	struct pen_chunks cs = { 0 };
	struct pen_zarr_blocks blocks;
	struct pen_zarr_array a;
	struct pen_zarr_node node;
	int rc = open_node(f, n, &node);

	if (rc >= 0)
		rc = pen__zarr_array(f->in, &node, &a, f->err);
	if (rc >= 0)
		rc = check(f, n->path, &a, list);
	if (rc >= 0)
		rc = pen__zarr_chunks(f->in, &node, &a, &cs, &absent, f->err);
	if (rc >= 0)
		rc = pen__zarr_blocks(f->in, &a, &cs, &blocks, f->err);
	if (rc >= 0) {
		put(f->in, &a, &cs, &blocks, b);
		*s = (struct pen_cells_shape){ .ndim = a.ndim };
		s->dtype = (enum pen_dtype)a.dtype;
		memcpy(s->dim, a.dim, sizeof(s->dim)); /* at most two */
		s->most = most_of(&a, &cs);
		s->absent = absent;
	}
	pen__chunks_fini(&cs);
	pen__zarr_node_close(&node);
	return rc;
}

/* ---- for inspect ---- */

/* The length of the list at path; 0: unknown. */
static uint64_t length_of(struct pen_cells_file *f, const char *path)
{
	struct pen_zarr_node node;
	struct pen_zarr_array a;
	uint64_t n = 0;

	if (pen__zarr_node_open(f->in, path, &node, f->err) > 0 &&
	    !node.group && pen__zarr_array(f->in, &node, &a, f->err) >= 0 &&
	    a.ndim == 1)
		n = a.dim[0];
	pen__zarr_node_close(&node);
	return n;
}

static void describe(struct pen_cells_file *f, const char *frame,
		     const char *name, char *text, size_t cap)
{
	const struct pen_jdoc *j;
	struct pen_zarr_node node;
	struct pen_zarr_array a = { 0 };
	const char *kind;
	char path[512];
	uint32_t v;

	snprintf(path, sizeof(path), "%.100s%s%.300s", frame, *frame ? "/" : "",
		 name);
	if (pen__zarr_node_open(f->in, path, &node, f->err) <= 0)
		goto out;
	v = pen__zarr_attr(&node, "encoding-type", &j);
	kind = pen__jdoc_text(j, v);
	snprintf(path, sizeof(path), "%.100s/%s%.300s%s", frame,
		 node.group ? "" : "__categories/", name,
		 node.group ? "/categories" : "");
	v = pen__zarr_attr(&node, "categories", &j);
	if ((kind && strcmp(kind, "categorical") == 0) ||
	    (!node.group && pen__jdoc_text(j, v)))
		snprintf(text, cap, "%" PRIu64 " categories",
			 length_of(f, path));
	else if (node.group)
		snprintf(text, cap, "%.60s", kind ? kind : "group");
	else if (pen__zarr_array(f->in, &node, &a, f->err) >= 0 && !a.fortran)
		snprintf(text, cap, "%s",
			 a.dtype >= 0 ? pen_dtype_name((enum pen_dtype)a.dtype)
			 : a.text == PEN_ZARR_OTHER ? a.type_name
						    : "strings");
	if (!node.group && a.ndim == 2 && !a.fortran)
		snprintf(text + strlen(text), cap - strlen(text),
			 " %" PRIu64 "x%" PRIu64, a.dim[0], a.dim[1]);
out:
	pen__zarr_node_close(&node);
}

/* Ignores damage, which does not prevent reading the matrix. */
static int inventory_end(const struct pen_cells_file *f,
			 const struct pen_err *why, const struct pen_buf *out)
{
	if (out->bad)
		return pen__fail_nomem(f->err, f->name, out->n);
	if (why->code != PEN_ENOMEM && why->code != PEN_EIO)
		return 0;
	if (f->err)
		*f->err = *why;
	return why->code;
}

static int zarr_inventory(struct pen_cells_file *f, const char *frame,
			  struct pen_buf *out)
{
	struct pen_cells_file mine = *f;
	const struct pen_jdoc *j;
	struct pen_zarr_node obs;
	struct pen_err why = { 0 };
	uint32_t v = PEN_JDOC_NONE;
	int rc;

	mine.err = &why;
	rc = pen__zarr_node_open(f->in, frame, &obs, &why);
	if (rc > 0) {
		v = pen__zarr_attr(&obs, "column-order", &j);
		v = pen__jdoc_first(j, v);
	}
	for (; v != PEN_JDOC_NONE; v = pen__jdoc_next(j, v)) {
		const char *name = pen__jdoc_text(j, v);
		char text[96] = "unreadable";

		if (!name)
			continue;
		describe(&mine, frame, name, text, sizeof(text));
		pen__cells_put_text(out, name, strlen(name));
		pen__cells_put_text(out, text, strlen(text));
	}
	pen__zarr_node_close(&obs);
	return inventory_end(f, &why, out);
}

/* Nodes that are directories directly below the group. */
struct children {
	struct pen_cells_file f; /* with its own error */
	const char *group;
	struct pen_buf *out;
};

static bool is_listed(const struct pen_buf *out, const char *name, size_t n)
{
	struct pen_bytes b = pen__bytes(out->p, out->n);
	struct pen_span s, kind;

	while (pen__cells_next_name(&b, &s) && pen__cells_next_name(&b, &kind))
		if (s.n == n && memcmp(s.p, name, n) == 0)
			return true;
	return false;
}

static void see_child(void *arg, const char *dir)
{
	struct children *c = arg;
	const size_t n = strlen(c->group);
	char name[256], text[96] = "unreadable";
	size_t len;

	if (n && (strncmp(dir, c->group, n) != 0 || dir[n] != '/'))
		return;
	dir += n ? n + 1 : 0;
	len = strcspn(dir, "/");
	if (!len || len >= sizeof(name))
		return;
	snprintf(name, sizeof(name), "%.*s", (int)len, dir);
	if (is_listed(c->out, name, len))
		return;
	describe(&c->f, c->group, name, text, sizeof(text));
	pen__cells_put_text(c->out, name, len);
	pen__cells_put_text(c->out, text, strlen(text));
}

static int zarr_children(struct pen_cells_file *f, const char *group,
			 struct pen_buf *out)
{
	struct pen_err why = { 0 };
	struct children c = { .f = *f, .group = group, .out = out };

	c.f.err = &why;
	pen__zarr_dirs(f->in, see_child, &c);
	return inventory_end(f, &why, out);
}

const struct pen_cells_source pen__cells_in_zarr = {
	.open = zarr_open,
	.close = zarr_close,
	.find = zarr_find,
	.text_attr = zarr_text_attr,
	.shape_attr = zarr_shape_attr,
	.list = zarr_list,
	.inventory = zarr_inventory,
	.children = zarr_children,
	.array = zarr_array,
	.plain = pen__zarr_plain,
};
