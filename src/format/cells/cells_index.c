/*
 * index() for a file of single cells: finds the matrices, the location of their
 * arrays, the row offsets, and the parts of obs and var that the options
 * select. Everything that can be wrong with a file as a whole is found here;
 * only the gene indices of each row are left to be checked later. Refuses
 * matrices stored by column (csc), where reading a row means reading the whole
 * matrix.
 */
#include <inttypes.h>
#include <stdio.h>

#include "base/mem.h"
#include "format/cells/cells.h"

/* A file, and the matrix that is being read. */
struct matrix {
	struct pen_cells_file f; /* ncols: of this matrix */
	const struct pen_cells *p;
	struct pen_buf *blob, *common;
	const struct pen_cells_slot *slot;
	char path[256];
	struct pen_cells_node node;
	uint64_t nnz, most;
	uint64_t first, own; /* its own columns; own 0: all */
	char kind[32];	     /* encoding-type, or h5sparse_format */
	/* per file */
	const char *var[PEN_CELLS_FRAMES];
	uint64_t ngenes[PEN_CELLS_FRAMES]; /* 0: no matrix uses the frame */
	struct pen_buf rows, warned;
};

#define refuse(m, kind, ...)                                                   \
	pen__cells_refuse(&(m)->f, kind, (m)->path, __VA_ARGS__)

/* ---- which matrix ---- */

/* Whether the group is a matrix of Cell Ranger. */
static bool is_ranger(struct matrix *m, struct pen_span group)
{
	static const char *const parts[] = { "barcodes", "indptr", "indices" };
	struct pen_cells_node node;
	char path[300];

	for (size_t i = 0; i < sizeof(parts) / sizeof(*parts); i++) {
		snprintf(path, sizeof(path), "%.*s/%s", (int)group.n,
			 (const char *)group.p, parts[i]);
		if (m->f.src->find(&m->f, path, &node) <= 0)
			return false;
	}
	return true;
}

/* Lists the matrices that could have been meant. */
static int refuse_absent(struct matrix *m)
{
	struct pen_buf tree = { 0 };
	struct pen_span path, kind, first = { NULL, 0 };
	char list[120] = "";
	struct pen_bytes b;
	uint32_t n = 0;
	int rc = pen__cells_tree(&m->f, &tree);

	b = pen__bytes(tree.p, tree.n);
	while (rc >= 0 && pen__cells_next_name(&b, &path) &&
	       pen__cells_next_name(&b, &kind)) {
		const size_t at = strlen(list);

		if (path.n < 200 && is_ranger(m, path))
			rc = refuse(m, P_UNSUPPORTED_FEATURE,
				    "a file of 10x Genomics Cell Ranger (group "
				    "%.*s), which is not supported; convert it "
				    "to h5ad with scanpy: "
				    "read_10x_h5(this).write(that)",
				    path.n < 64 ? (int)path.n : 64,
				    (const char *)path.p);
		if (!pen__cells_is_matrix(path, kind) || path.n > 200)
			continue;
		if (path.n > 3 && memcmp(path.p, "raw", 3) == 0)
			path.n = 3; /* the name the option uses */
		first = first.p ? first : path;
		if (at + path.n + 8 < sizeof(list))
			snprintf(list + at, sizeof(list) - at, "%s%.*s",
				 n ? ", " : "", (int)path.n,
				 (const char *)path.p);
		else if (at + 4 < sizeof(list))
			memcpy(list + at, " ...", 5);
		n++;
	}
	if (rc >= 0 && first.p)
		rc = refuse(m, P_NO_SUCH_PART,
			    "no such matrix; the file contains %s: choose one, "
			    "as in format.matrix=%.*s",
			    list, first.n < 64 ? (int)first.n : 64,
			    (const char *)first.p);
	else if (rc >= 0)
		rc = refuse(m, P_NO_SUCH_PART,
			    "no such matrix, nor any other that can be read "
			    "(X, raw, layers, obsm)");
	pen__buf_fini(&tree);
	return rc;
}

static int find_matrix(struct matrix *m)
{
	const bool raw = m->slot->frame == PEN_CELLS_RAW_VAR;
	int rc;

	snprintf(m->path, sizeof(m->path), "%s", raw ? "raw/X" : m->slot->path);
	rc = m->f.src->find(&m->f, m->path, &m->node);
	if (rc == 0 && raw) { /* anndata before 0.7 */
		snprintf(m->path, sizeof(m->path), "raw.X");
		m->var[PEN_CELLS_RAW_VAR] = "raw.var";
		rc = m->f.src->find(&m->f, m->path, &m->node);
	}
	return rc > 0 ? 0 : rc < 0 ? rc : refuse_absent(m);
}

/* Reads the attribute under its current name, then under that before 0.7. */
static int see_attrs(struct matrix *m, uint64_t shape[2])
{
	const struct pen_cells_source *src = m->f.src;
	int rc = src->text_attr(&m->f, &m->node, "encoding-type", m->kind,
				sizeof(m->kind));

	if (rc >= 0 && !m->kind[0])
		rc = src->text_attr(&m->f, &m->node, "h5sparse_format", m->kind,
				    sizeof(m->kind));
	if (rc >= 0)
		rc = src->shape_attr(&m->f, &m->node, "shape", shape);
	if (rc == 0)
		rc = src->shape_attr(&m->f, &m->node, "h5sparse_shape", shape);
	return rc;
}

static int refuse_csc(const struct matrix *m)
{
	const char *slash = strchr(m->path, '/');
	char what[96] = "X";

	if (slash && m->slot->frame != PEN_CELLS_RAW_VAR)
		snprintf(what, sizeof(what), "%.*s['%.60s']",
			 (int)(slash - m->path), m->path, slash + 1);
	if (m->slot->frame == PEN_CELLS_RAW_VAR)
		return refuse(
			m, P_UNSUPPORTED_FEATURE,
			"stored by column (csc), which scatters a cell over "
			"the whole matrix; write it with anndata: b = "
			"a.raw.to_adata(); b.X = b.X.tocsr(); b.write(...)");
	return refuse(m, P_UNSUPPORTED_FEATURE,
		      "stored by column (csc), which scatters a cell over the "
		      "whole matrix; use anndata: a.%s = a.%s.tocsr(), then "
		      "write the file again",
		      what, what);
}

static int see_matrix(struct matrix *m)
{
	uint64_t shape[2];
	int rc;

	if (!m->node.group)
		return 0;
	rc = see_attrs(m, shape);
	if (rc < 0)
		return rc;
	if (strncmp(m->kind, "csc", 3) == 0)
		return refuse_csc(m);
	if (strncmp(m->kind, "csr", 3) != 0)
		return refuse(m, P_UNSUPPORTED_TYPE,
			      "a group with encoding-type '%s', not a matrix "
			      "(array or csr_matrix)",
			      m->kind);
	if (!rc)
		return refuse(m, P_DAMAGED, "no shape attribute");
	m->f.nrows = shape[0];
	m->f.ncols = shape[1];
	return 0;
}

static int check_size(const struct matrix *m)
{
	if (m->f.ncols > PEN_CELLS_GENES)
		return refuse(m, P_OVER_LIMIT,
			      "the matrix has %" PRIu64
			      " columns; at most %" PRIu64 " are supported",
			      m->f.ncols, PEN_CELLS_GENES);
	if (!m->f.ncols)
		return refuse(m, P_DAMAGED, "the matrix has no columns");
	return 0;
}

/* ---- its arrays ---- */

static int put_array(struct matrix *m, const char *name,
		     struct pen_cells_shape *shape)
{
	struct pen_cells_node node = m->node;
	char path[300];
	int rc = 0;

	if (name) {
		snprintf(path, sizeof(path), "%s/%s", m->path, name);
		rc = pen__cells_need(&m->f, path, &node);
	}
	*shape = (struct pen_cells_shape){ 0 };
	if (rc >= 0)
		rc = m->f.src->array(&m->f, &node, name != NULL, m->blob,
				     shape);
	if (rc >= 0 && name && strcmp(name, "indices") == 0 &&
	    (shape->dtype >= PEN_F16 || shape->dtype == PEN_BOOL))
		rc = pen__cells_refuse(&m->f, P_DAMAGED, path,
				       "the elements are not integers");
	return rc;
}

/* Row offsets: ascending, from 0 to the number of values. */
static int put_starts(struct matrix *m, const struct pen_cells_list *l)
{
	const unsigned width = m->nnz <= UINT32_MAX ? 4 : 8;
	const enum pen_dtype t = l->dtype;
	const size_t size = l->size;
	uint64_t last = 0;

	m->most = 0;
	if (l->text || t >= PEN_F16 || t == PEN_BOOL)
		return refuse(m, P_DAMAGED,
			      "the elements of indptr are not integers");
	if (l->n != m->f.nrows + 1)
		return refuse(m, P_DAMAGED,
			      "the matrix has %" PRIu64
			      " rows, but indptr has %" PRIu64 " elements",
			      m->f.nrows, l->n);
	pen__buf_le(m->blob, width, 1);
	pen__buf_le(m->blob, l->n, 8);
	for (uint64_t i = 0; i < l->n; i++) {
		const double at = pen__cells_number(t, l->data.p + i * size);
		uint64_t v;
		uint32_t w;

		/* values of 2^53 and above are beyond any file */
		v = at >= 0 && at <= 0x1p53 ? (uint64_t)at : UINT64_MAX;
		if (v < last || v > m->nnz || (!i && v))
			return refuse(
				m, P_DAMAGED,
				"invalid indptr: row %" PRIu64
				" starts at %g, the row before it at %" PRIu64
				", of %" PRIu64 " stored values",
				i, at, last, m->nnz);
		if (v - last > m->most)
			m->most = v - last;
		last = v;
		w = (uint32_t)v;
		pen__buf_put(m->blob, width == 4 ? (void *)&w : (void *)&v,
			     width);
	}
	if (m->most > INT32_MAX)
		return refuse(m, P_OVER_LIMIT,
			      "a row has %" PRIu64 " values, too many to load",
			      m->most);
	if (last != m->nnz)
		return refuse(m, P_DAMAGED,
			      "indptr ends at %" PRIu64
			      ", but there are %" PRIu64 " stored values",
			      last, m->nnz);
	return 0;
}

/* A chunk of indptr that is not stored reads as 0, which is correct if the
 * offsets after it are 0, too. */
static bool lacks_starts(const struct matrix *m, const struct pen_cells_list *l)
{
	const uint64_t end = l->absent.end;

	return m->nnz && l->absent.n &&
	       (end >= l->n ||
		pen__cells_number(l->dtype, l->data.p + end * l->size) > 0);
}

/*
 * Chunks of indices that are not stored read as one number, so a row with two
 * values in such chunks has the same gene twice, which no writer produces.
 * Other chunks may have been omitted because they contain nothing else (one
 * value per row).
 */
static bool lacks_genes(const struct matrix *m, size_t indices, size_t starts)
{
	const struct pen_buf *b = m->blob;
	struct pen_cells_matrix x = { .nrows = m->f.nrows,
				      .nnz = m->nnz,
				      .most = m->most,
				      .sparse = true,
				      .width = m->nnz <= UINT32_MAX ? 4 : 8 };
	struct pen_bytes in;

	if (b->bad)
		return false;
	in = pen__bytes(b->p + indices, b->n - indices);
	if (!pen__chunked_take(&in, &x.indices))
		return false;
	x.indptr = b->p + starts;
	return pen__cells_lacks(&x, &x.indices, 2);
}

static int put_sparse(struct matrix *m)
{
	struct pen_cells_shape data, indices;
	struct pen_cells_list l = { 0 };
	struct pen_cells_node node;
	char path[300];
	size_t at = 0, starts;
	int rc = put_array(m, "data", &data);

	if (rc >= 0) {
		at = m->blob->n;
		rc = put_array(m, "indices", &indices);
	}
	if (rc < 0)
		return rc;
	m->nnz = data.dim[0];
	if (indices.dim[0] != m->nnz)
		return refuse(m, P_DAMAGED,
			      "data has %" PRIu64
			      " elements, but indices has %" PRIu64,
			      m->nnz, indices.dim[0]);
	snprintf(path, sizeof(path), "%s/indptr", m->path);
	rc = pen__cells_need(&m->f, path, &node);
	if (rc >= 0)
		rc = m->f.src->list(&m->f, &node, NULL, &l);
	if (rc < 0)
		return rc;
	starts = m->blob->n + 9; /* after their width and count */
	rc = put_starts(m, &l);
	if (rc >= 0 && lacks_starts(m, &l))
		pen__cells_warn_absent(&m->f, path, &l.absent, true);
	pen__cells_list_close(&l);
	if (rc < 0)
		return rc;
	snprintf(path, sizeof(path), "%s/data", m->path);
	pen__cells_warn_absent(&m->f, path, &data.absent, false);
	snprintf(path, sizeof(path), "%s/indices", m->path);
	pen__cells_warn_absent(&m->f, path, &indices.absent,
			       indices.absent.n && lacks_genes(m, at, starts));
	return 0;
}

/* The declared shape is checked, since a few bytes can declare any shape. */
static int put_dense(struct matrix *m)
{
	struct pen_cells_shape shape;
	int rc = put_array(m, NULL, &shape);

	if (rc < 0)
		return rc;
	pen__cells_warn_absent(&m->f, m->node.path, &shape.absent, false);
	m->f.nrows = shape.dim[0];
	m->f.ncols = shape.dim[1];
	m->first = shape.first;
	m->own = shape.n;
	if (m->own && m->slot->frame != PEN_CELLS_NOVAR)
		return refuse(m, P_UNSUPPORTED_FEATURE,
			      "a member of a compound type, which is supported "
			      "in obsm only");
	if (m->f.ncols && m->f.nrows > shape.most / m->f.ncols)
		return refuse(m, P_DAMAGED,
			      "the shape declares %" PRIu64
			      " rows, more than the stored data can contain",
			      m->f.nrows);
	m->nnz = m->f.nrows * m->f.ncols;
	m->most = m->f.ncols;
	return 0;
}

/* ---- obs and var ---- */

static void put_bytes(struct pen_buf *b, const struct pen_buf *s)
{
	pen__buf_le(b, s->n, 8);
	pen__buf_put(b, s->p, s->n);
}

static int put_rows(struct matrix *m, uint64_t *nsamples)
{
	int rc = 0;

	*nsamples = m->f.nrows;
	pen__buf_le(m->blob, m->p->filter != NULL, 1);
	if (!m->p->filter)
		return 0;
	rc = pen__cells_filter(&m->f, m->p->filter, &m->rows);
	if (rc < 0)
		return rc;
	*nsamples = m->rows.n / 4;
	put_bytes(m->blob, &m->rows);
	return 0;
}

/* Values of `size` bytes, of some rows only unless `rows` is NULL. */
static void put_some(struct pen_buf *b, const struct pen_buf *values,
		     const struct pen_buf *rows, size_t size)
{
	if (!rows)
		pen__buf_put(b, values->p, values->n);
	for (uint64_t i = 0; rows && i < rows->n / 4; i++)
		pen__buf_put(b, values->p + pen__chunked_u32(rows->p, i) * size,
			     size);
}

/* A column, as pen__cells_take_views() parses it; rows: a subset. */
static void put_column(struct pen_buf *b, const struct pen_cells_column *c,
		       const char *name, const struct pen_buf *rows)
{
	const size_t size = pen_dtype_size((enum pen_dtype)c->dtype);

	pen__buf_le(b, c->dtype, 1);
	pen__buf_le(b, c->nullable, 1);
	pen__buf_le(b, c->coded, 1);
	pen__buf_le(b, c->ordered, 1);
	pen__buf_le(b, c->nnames, 4);
	pen__buf_le(b, strlen(name), 8);
	pen__buf_str(b, name);
	put_bytes(b, &c->names);
	put_some(b, &c->values, rows, size);
	if (c->nullable)
		put_some(b, &c->mask, rows, 1);
}

/* Columns of a frame to be added to a blob. */
struct columns {
	const char *frame;
	const char *ask; /* a,b,c or * */
	uint64_t nrows;
	const struct pen_buf *rows;
	struct pen_buf *out;
	uint32_t n;
};

/* any: omit the column if it cannot be a field. */
static int add_column(struct matrix *m, struct columns *cs, const char *name,
		      bool any)
{
	struct pen_cells_column c;
	struct pen_err why = { 0 }, *err = m->f.err;
	int rc;

	m->f.err = &why;
	m->f.exact = m->p->copy;
	rc = pen__cells_column_open(&m->f, cs->frame, name, cs->nrows, &c);
	m->f.exact = false;
	m->f.err = err;
	if (rc >= 0) {
		put_column(cs->out, &c, name, cs->rows);
		cs->n++;
	}
	pen__cells_column_close(&c);
	if (rc >= 0 || (any && rc != PEN_ENOMEM && rc != PEN_EIO &&
			rc != PEN_ESTALE && rc != PEN_ECLOSED))
		return 0;
	*err = why;
	return rc;
}

/* The name of a frame's index, and whether it exists. */
static int find_index(struct matrix *m, const char *frame, char *name,
		      size_t cap, bool *there)
{
	char path[PEN_CELLS_PATH];
	struct pen_cells_node node;
	int rc = m->f.src->find(&m->f, frame, &node);

	*there = rc > 0;
	*name = '\0';
	if (rc > 0)
		rc = pen__cells_index_name(&m->f, frame, name, cap);
	if (rc >= 0 && *name && *there && node.group) {
		snprintf(path, sizeof(path), "%.300s/%.300s", frame, name);
		rc = m->f.src->find(&m->f, path, &node);
		*there = rc > 0;
	}
	return rc < 0 ? rc : 0;
}

static int add_all(struct matrix *m, struct columns *cs)
{
	struct pen_buf list = { 0 };
	struct pen_bytes b;
	struct pen_span s, kind;
	char name[PEN_CELLS_NAME], index[PEN_CELLS_NAME];
	/* longer names cannot be fields */
	const size_t most = m->p->copy ? sizeof(name)
				       : sizeof(((struct pen_field *)0)->name);
	bool there = false;
	int rc = pen__cells_columns_list(&m->f, cs->frame, &list);

	if (rc >= 0)
		rc = find_index(m, cs->frame, index, sizeof(index), &there);
	if (rc >= 0 && there && m->p->copy)
		rc = add_column(m, cs, "_index", false);
	b = pen__bytes(list.p, list.n);
	while (rc >= 0 && pen__cells_next_name(&b, &s) &&
	       pen__cells_next_name(&b, &kind)) {
		if (!s.n || s.n >= most)
			continue;
		memcpy(name, s.p, s.n);
		name[s.n] = '\0';
		if (strcmp(name, index) != 0)
			rc = add_column(m, cs, name, true);
	}
	pen__buf_fini(&list);
	return rc;
}

static int add_columns(struct matrix *m, struct columns *cs)
{
	const char *s = cs->ask;
	char name[PEN_CELLS_NAME];
	int rc = 0;

	if (s && strcmp(s, "*") == 0)
		return add_all(m, cs);
	while (rc >= 0 && s) {
		const size_t n = strcspn(s, ",");

		/* open() checked the lengths of names */
		snprintf(name, sizeof(name), "%.*s", (int)n, s);
		rc = add_column(m, cs, name, false);
		s = s[n] ? s + n + 1 : NULL;
	}
	return rc;
}

/* FNV-1a, to distinguish lists of names. */
static uint64_t hash(const struct pen_buf *b)
{
	uint64_t h = 0xcbf29ce484222325;

	for (size_t i = 0; i < b->n; i++)
		h = (h ^ b->p[i]) * 0x100000001b3;
	return b->n ? h : 0;
}

/* genes=var:COLUMN: one byte per gene. */
static int put_mask(struct matrix *m, const char *name)
{
	struct pen_cells_column c;
	int rc = pen__cells_column_open(&m->f, m->f.var, name, m->f.ncols, &c);

	if (rc >= 0 && c.dtype != PEN_BOOL)
		rc = refuse(m, P_BAD_VALUE,
			    "column '%s' of %s is not boolean, so it cannot "
			    "select genes",
			    name, m->f.var);
	if (rc >= 0)
		put_bytes(m->common, &c.values);
	pen__cells_column_close(&c);
	return rc;
}

static int put_genes(struct matrix *m, int frame)
{
	const char *genes = m->p->genes;
	struct pen_buf names = { 0 };
	int rc = 0;

	m->f.var = m->var[frame];
	m->f.ncols = m->ngenes[frame];
	pen__buf_le(m->blob, m->f.ncols, 8);
	if (m->f.ncols)
		rc = pen__cells_genes(&m->f, &names);
	if (rc >= 0) {
		pen__buf_le(m->blob, hash(&names), 8);
		if (m->f.ncols && genes && strncmp(genes, "var:", 4) == 0)
			rc = put_mask(m, genes + 4);
		else if ((genes && *genes == '@') || m->p->join)
			put_bytes(m->common, &names);
		else
			pen__buf_le(m->common, 0, 8);
	}
	pen__buf_fini(&names);
	return rc;
}

/*
 * The description of genes, which files of a collection tend to share, is a
 * separate blob; the blob of the file refers to it by its hash.
 */
static int put_vars(struct matrix *m, struct pen_buf *common)
{
	struct pen_buf body = { 0 }, columns = { 0 };
	const int frame = pen__cells_frame(m->p);
	struct columns cs = { .frame = m->var[frame],
			      .ask = m->p->var,
			      .nrows = m->ngenes[frame],
			      .out = &columns };
	struct pen_span s;
	uint64_t key[2];
	int rc = 0;

	m->common = &body;
	for (int i = 0; rc >= 0 && i < PEN_CELLS_FRAMES; i++)
		rc = put_genes(m, i);
	if (rc >= 0 && cs.nrows)
		rc = add_columns(m, &cs);
	pen__buf_le(&body, cs.n, 4);
	pen__buf_put(&body, columns.p, columns.n);
	if (rc >= 0 && (body.bad || columns.bad))
		rc = pen__fail_nomem(m->f.err, m->f.name, body.n);
	s = (struct pen_span){ body.p, body.n };
	key[0] = pen__cells_hash(s);
	key[1] = hash(&body);
	/* two lengths and a count: empty */
	if (rc >= 0 && body.n == PEN_CELLS_FRAMES * 8 + 4 && !cs.n)
		key[0] = key[1] = 0;
	pen__buf_le(m->blob, key[0], 8);
	pen__buf_le(m->blob, key[1], 8);
	if (rc >= 0 && (key[0] || key[1])) {
		pen__buf_le(common, PEN_CELLS_COMMON, 4);
		pen__buf_le(common, key[0], 8);
		pen__buf_le(common, key[1], 8);
		pen__buf_put(common, body.p, body.n);
		if (common->bad)
			rc = pen__fail_nomem(m->f.err, m->f.name, body.n);
	}
	m->common = NULL;
	pen__buf_fini(&body);
	pen__buf_fini(&columns);
	return rc;
}

/* Matrices of one frame have the same columns, and all have the same rows. */
static int check_shape(struct matrix *m, uint64_t nrows)
{
	uint64_t *n = m->slot->frame < PEN_CELLS_FRAMES
			      ? &m->ngenes[m->slot->frame]
			      : NULL;

	if (m->f.nrows != nrows)
		return refuse(m, P_DAMAGED,
			      "has %" PRIu64 " rows, but %s has %" PRIu64,
			      m->f.nrows, m->p->slot[0].path, nrows);
	if (n && *n && *n != m->f.ncols)
		return refuse(m, P_DAMAGED,
			      "the matrix has %" PRIu64
			      " columns, but another one over the same genes "
			      "has %" PRIu64,
			      m->f.ncols, *n);
	if (n)
		*n = m->f.ncols;
	return 0;
}

static int put_matrix(struct matrix *m, uint64_t *nrows)
{
	int rc = find_matrix(m);

	if (rc >= 0)
		rc = see_matrix(m);
	if (rc < 0)
		return rc;
	pen__buf_le(m->blob, m->node.group, 1);
	m->first = m->own = 0;
	rc = m->node.group ? put_sparse(m) : put_dense(m);
	if (rc >= 0)
		rc = check_size(m);
	if (rc >= 0 && m->slot == m->p->slot)
		*nrows = m->f.nrows;
	if (rc >= 0)
		rc = check_shape(m, *nrows);
	if (rc < 0)
		return rc;
	pen__buf_le(m->blob, m->f.nrows, 8);
	pen__buf_le(m->blob, m->f.ncols, 8);
	pen__buf_le(m->blob, m->nnz, 8);
	pen__buf_le(m->blob, m->most, 8);
	pen__buf_le(m->blob, m->first, 8);
	pen__buf_le(m->blob, m->own, 8);
	return 0;
}

/* Columns of obs; their number is stored before the matrices. */
static int put_obs(struct matrix *m, size_t at)
{
	struct columns cs = { .frame = "obs",
			      .ask = m->p->obs,
			      .nrows = m->f.nrows,
			      .rows = m->p->filter ? &m->rows : NULL,
			      .out = m->blob };
	int rc = add_columns(m, &cs);

	for (int i = 0; !m->blob->bad && i < 4; i++)
		m->blob->p[at + (size_t)i] = (uint8_t)(cs.n >> 8 * i);
	return rc;
}

/* The name of a frame's index; empty if it does not exist. */
static int put_index(struct matrix *m, const char *frame)
{
	char name[PEN_CELLS_NAME];
	bool there;
	int rc = find_index(m, frame, name, sizeof(name), &there);

	if (rc < 0)
		return rc;
	if (!there)
		*name = '\0';
	pen__buf_le(m->blob, strlen(name), 8);
	pen__buf_str(m->blob, name);
	return 0;
}

/* The contents of the file, if a copy has to report what it omits; and the
 * facts that the file states. */
static int put_rest(struct matrix *m)
{
	struct pen_buf tree = { 0 }, facts = { 0 };
	int rc = 0;

	if (m->p->copy)
		rc = pen__cells_tree(&m->f, &tree);
	if (rc >= 0 && m->p->copy)
		rc = pen__cells_tree_of(&m->f, "obs", true, &tree);
	if (rc >= 0 && m->p->copy)
		rc = pen__cells_tree_of(&m->f, m->var[pen__cells_frame(m->p)],
					true, &tree);
	if (rc >= 0 && m->f.src->facts)
		rc = m->f.src->facts(&m->f, &facts);
	if (rc >= 0) {
		put_bytes(m->blob, &tree);
		put_bytes(m->blob, &facts);
		put_bytes(m->blob, &m->warned);
	}
	if (rc >= 0 && m->warned.bad)
		rc = pen__fail_nomem(m->f.err, m->f.name, m->warned.n);
	pen__buf_fini(&tree);
	pen__buf_fini(&facts);
	return rc;
}

static int put_file(struct matrix *m, struct pen_found *found)
{
	struct pen_buf list = { 0 };
	uint64_t nrows = 0;
	size_t at;
	int rc = 0;

	pen__buf_le(m->blob, m->p->nmatrices, 4);
	at = m->blob->n;
	pen__buf_le(m->blob, 0, 4);
	for (uint32_t i = 0; rc >= 0 && i < m->p->nmatrices; i++) {
		m->slot = &m->p->slot[i];
		rc = put_matrix(m, &nrows);
	}
	if (rc >= 0)
		rc = put_rows(m, &found->nsamples);
	if (rc >= 0)
		rc = put_obs(m, at);
	if (rc >= 0)
		rc = put_vars(m, &found->common);
	if (rc >= 0)
		rc = pen__cells_columns_list(&m->f, "obs", &list);
	if (rc >= 0)
		put_bytes(m->blob, &list);
	if (rc >= 0)
		rc = put_index(m, "obs");
	if (rc >= 0)
		rc = put_index(m, m->var[pen__cells_frame(m->p)]);
	if (rc >= 0)
		rc = put_rest(m);
	pen__buf_fini(&list);
	if (rc >= 0 && m->blob->bad)
		rc = pen__fail_nomem(m->f.err, m->f.name, m->blob->n);
	return rc;
}

int pen__cells_index(const struct pen_format *f,
		     const struct pen_cells_source *src, struct pen_peek *pk,
		     struct pen_found *found, struct pen_err *err)
{
	struct matrix m = { .p = f->priv,
			    .blob = &found->blob,
			    .f = { .src = src, .pk = pk },
			    .var = { "var", "raw/var" } };
	struct pen_err mine;
	int rc;

	/* callers of the read callback need its error code */
	err = err ? err : &mine;
	*err = (struct pen_err){ 0 };
	m.f.err = err;
	m.f.warned = &m.warned;
	snprintf(m.f.name, sizeof(m.f.name), "%.199s", pk->name);
	rc = src->open(&m.f, f->nobjects_hint);
	if (rc >= 0 && src->plain && f->ops->opts == pen__zarr_opts)
		rc = src->plain(&m.f, m.p, found);
	if (rc == 0)
		rc = put_file(&m, found);
	pen__buf_fini(&m.rows);
	pen__buf_fini(&m.warned);
	src->close(&m.f);
	return rc < 0 ? rc : 0;
}
