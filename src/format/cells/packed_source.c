/*
 * Presents a packed file in the form common to files of single cells: groups
 * and lists by path. X is a group of data, indices and indptr, or one array;
 * columns are lists, and those with categories are groups of codes and
 * categories. Nothing is stored that way: paths are looked up in the directory,
 * and lists are made from its tables.
 */
#include <inttypes.h>
#include <stdio.h>

#include "base/mem.h"
#include "codec/cellpack.h"
#include "format/cells/cells.h"
#include "format/cells/packed.h"

/* What a path refers to; columns and matrices also have a number. */
enum {
	MATRIX,
	DATA,
	INDICES,
	INDPTR,
	FRAME,
	COLUMN,
	CODES,
	CATEGORIES,
	VALUES,
	MASK,
	DENSE,
};

/* Derived data of a chunked matrix, computed on first use. */
struct lists {
	bool there;
	struct pen_buf starts; /* sparse: nrows + 1 of 8 bytes */
	uint64_t most;	       /* values in the largest chunk */
};

struct source {
	struct pen_packed p;
	struct lists *lists; /* of X, then of the other matrices */
};

static uint64_t address(unsigned kind, uint64_t number)
{
	return (uint64_t)kind << 32 | number;
}

static unsigned kind_of(const struct pen_cells_node *n)
{
	return (unsigned)(n->addr >> 32);
}

static const struct pen_packed_column *column_of(const struct source *s,
						 const struct pen_cells_node *n)
{
	return &s->p.column[(uint32_t)n->addr];
}

/* X or another chunked matrix. */
static const struct pen_packed_matrix *matrix_of(const struct source *s,
						 const struct pen_cells_node *n)
{
	const uint32_t i = (uint32_t)n->addr;

	return i ? &s->p.csr[i - 1] : &s->p.x;
}

/* ---- open and close ---- */

static int nomem(const struct pen_cells_file *f, size_t n)
{
	return pen__fail_nomem(f->err, f->name, n);
}

/* Turns row lengths into row offsets; refuses chunks that declare more than
 * their bytes can unpack to. */
static int add_lengths(struct pen_cells_file *f, const char *path,
		       const struct pen_packed_matrix *m, struct lists *l,
		       const struct pen_buf *lengths)
{
	const uint64_t nrows = lengths->n / 4;
	uint64_t at = 0, first = 0;
	uint64_t *start = pen__alloc(nrows + 1, sizeof(*start));

	if (!start)
		return nomem(f, (nrows + 1) * sizeof(*start));
	l->starts = (struct pen_buf){ .p = (uint8_t *)start,
				      .n = (nrows + 1) * sizeof(*start) };
	start[0] = 0;
	for (uint64_t i = 0; i < nrows; i++) {
		at += pen__chunked_u32(lengths->p, i);
		start[i + 1] = at;
		if ((i + 1) % m->group && i + 1 < nrows)
			continue;
		if (at - first > PEN_PACKED_MOST ||
		    !pen__packed_holds(m, i / m->group, at - first))
			return pen__cells_refuse(
				f, P_DAMAGED, path,
				"the first %" PRIu64
				" rows are longer than their stored data",
				i + 1);
		if (at - first > l->most)
			l->most = at - first;
		first = at;
	}
	if (at == m->nnz)
		return 0;
	return pen__cells_refuse(f, P_DAMAGED, path,
				 "the rows have %" PRIu64
				 " values, but the matrix declares %" PRIu64,
				 at, m->nnz);
}

static int check_dense(struct pen_cells_file *f, struct source *s)
{
	const struct pen_packed_matrix *x = &s->p.x;
	const uint64_t nrows = s->p.nrows;
	const uint64_t rows = nrows < x->group ? nrows : x->group;

	if (x->ncols > PEN_CELLS_GENES ||
	    rows > PEN_PACKED_MOST / (x->ncols ? x->ncols : 1) ||
	    x->nnz != nrows * x->ncols)
		return pen__cells_refuse(f, P_DAMAGED, "X",
					 "a chunk is too large");
	s->lists[0].most = rows * x->ncols;
	for (uint64_t i = 0; i < x->chunks.n; i++) {
		const uint64_t left = nrows - i * x->group;

		if (!pen__packed_holds(x, i,
				       (left < rows ? left : rows) * x->ncols))
			return pen__cells_refuse(
				f, P_DAMAGED, "X",
				"a chunk is shorter than its rows");
	}
	return 0;
}

/* Computes the row offsets of matrix i, once. */
static int see_lists(struct pen_cells_file *f, uint32_t i, const char *path)
{
	struct source *s = f->in;
	const struct pen_packed_matrix *m = i ? &s->p.csr[i - 1] : &s->p.x;
	struct pen_buf lengths = { 0 };
	int rc;

	if (s->lists[i].there)
		return 0;
	if (!m->sparse) {
		rc = check_dense(f, s);
	} else {
		rc = pen__packed_table(&s->p, &m->lengths, path, &lengths,
				       f->err);
		if (rc >= 0)
			rc = add_lengths(f, path, m, &s->lists[i], &lengths);
		pen__buf_fini(&lengths);
	}
	s->lists[i].there = rc >= 0;
	return rc;
}

static int packed_open(struct pen_cells_file *f, uint64_t nfiles)
{
	struct source *s = pen__calloc(1, sizeof(*s));
	int rc;

	(void)nfiles;
	snprintf(f->name, sizeof(f->name), "%s", f->pk->name);
	f->in = s;
	if (!s)
		return nomem(f, sizeof(*s));
	rc = pen__packed_open(&s->p, f->pk, f->err);
	if (rc < 0)
		return rc;
	s->lists = pen__calloc((size_t)s->p.ncsr + 1, sizeof(*s->lists));
	return s->lists ? 0 : nomem(f, s->p.ncsr * sizeof(*s->lists));
}

static void packed_close(struct pen_cells_file *f)
{
	struct source *s = f->in;

	if (!s)
		return;
	for (uint32_t i = 0; s->lists && i <= s->p.ncsr; i++)
		pen__buf_fini(&s->lists[i].starts);
	pen__packed_close(&s->p);
	pen__free(s->lists);
	pen__free(s);
	f->in = NULL;
}

/* ---- paths ---- */

static bool is(const char *path, const char *name)
{
	return strcmp(path, name) == 0;
}

static bool found(struct pen_cells_node *n, unsigned kind, uint64_t number,
		  bool group)
{
	n->addr = address(kind, number);
	n->group = group;
	return true;
}

/* PATH, PATH/data and so on. */
static bool find_lists(const struct pen_packed_matrix *m, struct pen_span at,
		       uint32_t number, const char *path,
		       struct pen_cells_node *n)
{
	const char *rest = path + at.n;

	if (strlen(path) < at.n || memcmp(path, at.p, at.n) != 0)
		return false;
	if (!*rest)
		return found(n, MATRIX, number, m->sparse);
	if (m->sparse && is(rest, "/data"))
		return found(n, DATA, number, false);
	if (m->sparse && is(rest, "/indices"))
		return found(n, INDICES, number, false);
	return m->sparse && is(rest, "/indptr") &&
	       found(n, INDPTR, number, false);
}

static bool find_matrix(const struct source *s, const char *path,
			struct pen_cells_node *n)
{
	const struct pen_span x = { (const uint8_t *)"X", 1 };

	if (find_lists(&s->p.x, x, 0, path, n))
		return true;
	for (uint32_t i = 0; i < s->p.ncsr; i++)
		if (find_lists(&s->p.csr[i], s->p.csr[i].path, i + 1, path, n))
			return true;
	for (uint32_t i = 0; i < s->p.ndense; i++)
		if (s->p.dense[i].path.n == strlen(path) &&
		    memcmp(s->p.dense[i].path.p, path, strlen(path)) == 0)
			return found(n, DENSE, i, false);
	return false;
}

/* Row names are never presented as codes: they are a list in any case. */
static bool has_codes(const struct pen_packed_column *c)
{
	return (c->flags & PEN_PACKED_CODED) && !(c->flags & PEN_PACKED_INDEX);
}

/* Whether the next column of the same frame is its mask. */
static bool has_mask(const struct source *s, uint32_t i)
{
	return i + 1 < s->p.nobs + s->p.nvar &&
	       (s->p.column[i + 1].flags & PEN_PACKED_MASK);
}

/* NAME, or NAME/codes, NAME/categories; NAME/values, NAME/mask. */
static bool find_column(const struct source *s, const char *path, uint32_t from,
			uint32_t to, struct pen_cells_node *n)
{
	for (uint32_t i = from; i < to; i++) {
		const struct pen_packed_column *c = &s->p.column[i];
		const char *rest = path + c->name.n;

		if (strlen(path) < c->name.n ||
		    memcmp(path, c->name.p, c->name.n) != 0)
			continue;
		if (!*rest)
			return found(n, COLUMN, i,
				     has_codes(c) || has_mask(s, i));
		if (has_mask(s, i) && is(rest, "/values"))
			return found(n, VALUES, i, false);
		if (has_mask(s, i) && is(rest, "/mask"))
			return found(n, MASK, i + 1, false);
		if (has_codes(c) && is(rest, "/codes"))
			return found(n, CODES, i, false);
		if (has_codes(c) && is(rest, "/categories"))
			return found(n, CATEGORIES, i, false);
	}
	return false;
}

static int packed_find(struct pen_cells_file *f, const char *path,
		       struct pen_cells_node *n)
{
	const struct source *s = f->in;
	const uint32_t nobs = s->p.nobs, all = nobs + s->p.nvar;

	*n = (struct pen_cells_node){ 0 };
	snprintf(n->path, sizeof(n->path), "%s", path);
	if (is(path, "obs") || is(path, "var"))
		return found(n, FRAME, *path == 'v', true);
	if (strncmp(path, "obs/", 4) == 0)
		return find_column(s, path + 4, 0, nobs, n);
	if (strncmp(path, "var/", 4) == 0)
		return find_column(s, path + 4, nobs, all, n);
	return find_matrix(s, path, n);
}

/* ---- attributes ---- */

static int packed_text_attr(struct pen_cells_file *f,
			    const struct pen_cells_node *n, const char *name,
			    char *buf, size_t cap)
{
	const struct source *s = f->in;
	const bool var = (uint32_t)n->addr;
	const struct pen_packed_column *c = s->p.column + (var ? s->p.nobs : 0);

	*buf = '\0';
	if (kind_of(n) == MATRIX && matrix_of(s, n)->sparse &&
	    is(name, "encoding-type"))
		snprintf(buf, cap, "csr_matrix");
	if (kind_of(n) == COLUMN && is(name, "ordered") &&
	    (column_of(s, n)->flags & PEN_PACKED_ORDERED))
		snprintf(buf, cap, "True");
	if (kind_of(n) != FRAME || !is(name, "_index"))
		return 0;
	for (uint32_t i = 0; i < (var ? s->p.nvar : s->p.nobs); i++)
		if (c[i].flags & PEN_PACKED_INDEX)
			snprintf(buf, cap, "%.*s", (int)c[i].name.n,
				 (const char *)c[i].name.p);
	return 0;
}

static int packed_shape_attr(struct pen_cells_file *f,
			     const struct pen_cells_node *n, const char *name,
			     uint64_t shape[2])
{
	const struct source *s = f->in;

	if (kind_of(n) != MATRIX || !is(name, "shape"))
		return 0;
	shape[0] = s->p.nrows;
	shape[1] = matrix_of(s, n)->ncols;
	return 1;
}

/* ---- lists ---- */

static int take_table(struct pen_cells_file *f, const struct pen_cells_node *n,
		      const struct pen_packed_table *t,
		      struct pen_cells_list *l)
{
	const struct source *s = f->in;

	l->dtype = t->dtype;
	l->size = pen_dtype_size(t->dtype);
	l->n = t->n;
	return pen__packed_table(&s->p, t, n->path, &l->data, f->err);
}

/* Checks the number of strings and that each is complete. */
static int take_names(struct pen_cells_file *f, const struct pen_cells_node *n,
		      struct pen_cells_list *l)
{
	const struct pen_packed_column *c = column_of(f->in, n);
	struct pen_bytes b;
	struct pen_span name;
	int rc = take_table(f, n, &c->names, l);

	if (rc < 0)
		return rc;
	b = pen__bytes(l->data.p, l->data.n);
	l->text = true;
	for (l->n = 0; l->n < c->nnames && pen__cells_next_name(&b, &name);)
		l->n++;
	if (l->n == c->nnames && !pen__bytes_left(&b))
		return 0;
	return pen__cells_refuse(f, P_DAMAGED, n->path,
				 "the column has %" PRIu64
				 " names, but declares %" PRIu32,
				 l->n, c->nnames);
}

/* Row names that are stored as codes. */
static int take_index(struct pen_cells_file *f, const struct pen_cells_node *n,
		      struct pen_cells_list *l)
{
	const struct pen_packed_column *c = column_of(f->in, n);
	struct pen_cells_list names = { 0 }, codes = { 0 };
	struct pen_span *name =
		pen__calloc((size_t)c->nnames + 1, sizeof(*name));
	struct pen_bytes b;
	int rc = name ? take_names(f, n, &names) : nomem(f, c->nnames);

	if (rc >= 0)
		rc = take_table(f, n, &c->values, &codes);
	b = pen__bytes(names.data.p, names.data.n);
	for (uint32_t i = 0; rc >= 0 && i < c->nnames; i++)
		(void)pen__cells_next_name(&b, &name[i]);
	for (uint64_t i = 0; rc >= 0 && i < codes.n; i++) {
		const uint64_t k = pen__chunked_u32(codes.data.p, i);

		if (k >= c->nnames)
			rc = pen__cells_refuse(f, P_BAD_DATA_VALUE, n->path,
					       "row %" PRIu64 " has no name",
					       i);
		else
			pen__cells_put_text(&l->data, name[k].p, name[k].n);
	}
	if (rc >= 0 && l->data.bad)
		rc = nomem(f, l->data.n);
	l->text = true;
	l->n = codes.n;
	pen__free(name);
	pen__cells_list_close(&names);
	pen__cells_list_close(&codes);
	return rc;
}

static int take_column(struct pen_cells_file *f, const struct pen_cells_node *n,
		       struct pen_cells_list *l)
{
	const struct pen_packed_column *c = column_of(f->in, n);

	if (c->flags & PEN_PACKED_TEXT)
		return take_names(f, n, l);
	if (c->flags & PEN_PACKED_CODED)
		return take_index(f, n, l);
	return take_table(f, n, &c->values, l);
}

static int take_starts(struct pen_cells_file *f, const struct pen_cells_node *n,
		       struct pen_cells_list *l)
{
	const struct source *s = f->in;
	const uint32_t i = (uint32_t)n->addr;
	int rc = see_lists(f, i, n->path);

	if (rc < 0)
		return rc;
	l->dtype = PEN_U64;
	l->size = 8;
	l->n = s->p.nrows + 1;
	pen__buf_put(&l->data, s->lists[i].starts.p, s->lists[i].starts.n);
	return l->data.bad ? nomem(f, s->lists[i].starts.n) : 0;
}

static int packed_list(struct pen_cells_file *f, const struct pen_cells_node *n,
		       const char *member, struct pen_cells_list *l)
{
	const struct source *s = f->in;
	int rc;

	(void)member;
	switch (kind_of(n)) {
	case COLUMN:
		rc = take_column(f, n, l);
		break;
	case CODES:
	case VALUES:
	case MASK:
		rc = take_table(f, n, &column_of(s, n)->values, l);
		break;
	case CATEGORIES:
		rc = take_names(f, n, l);
		break;
	case INDPTR:
		rc = take_starts(f, n, l);
		break;
	default:
		rc = pen__cells_refuse(f, P_DAMAGED, n->path,
				       "not a list of names or numbers");
	}
	if (rc < 0)
		pen__cells_list_close(l);
	return rc;
}

/* ---- arrays ---- */

/* The part of a chunk that an array consists of: gene indices, values, or
 * rows as stored. */
static int put_groups(struct pen_cells_file *f, struct pen_buf *b,
		      struct pen_chunked_put *a,
		      const struct pen_packed_pieces *ps)
{
	const struct pen_filters *fs = a->filters;
	const bool numbers = fs->n && fs->f[0].id == PEN_CHUNKED_NUMBERS;
	struct pen_chunks cs = { 0 };
	int rc = 0;

	for (uint64_t i = 0; !rc && i < ps->n; i++) {
		const uint32_t places = pen__packed_length(ps, i);
		const struct pen_chunk c = {
			.at = pen__packed_offset(ps, i) +
			      (numbers ? places : 0),
			.size = numbers ? pen__packed_numbers(ps, i) : places,
		};

		rc = pen__chunks_add(&cs, &c);
	}
	a->layout = PEN_CHUNKED_GROUPED;
	a->chunks = &cs;
	if (!rc)
		pen__chunked_put(b, a);
	pen__chunks_fini(&cs);
	return rc < 0 ? nomem(f, ps->n * sizeof(*cs.c)) : 0;
}

/* Values and gene indices are unpacked to the narrowest type, since it
 * determines the size of a shuffle block. */
static enum pen_dtype type_of(const struct pen_packed_matrix *m, bool places)
{
	if (places)
		return m->ncols <= (uint64_t)UINT16_MAX + 1 ? PEN_U16 : PEN_U32;
	if (m->narrow && m->narrow < pen_dtype_size(m->dtype))
		return m->narrow == 1 ? PEN_U8 : PEN_U16;
	return m->dtype;
}

static int put_matrix(struct pen_cells_file *f, const struct pen_cells_node *n,
		      struct pen_buf *b, struct pen_cells_shape *sh)
{
	const bool places = kind_of(n) == INDICES;
	const struct source *s = f->in;
	const struct pen_packed_matrix *m = matrix_of(s, n);
	const uint32_t i = (uint32_t)n->addr;
	const struct pen_filters filters = {
		.n = 1,
		.f[0] = { places ? PEN_CHUNKED_PLACES : PEN_CHUNKED_NUMBERS,
			  places ? m->indices : m->dtype },
	};
	struct pen_chunked_put a = {
		.dtype = type_of(m, places),
		.ndim = m->sparse ? 1 : 2,
		.dim = { m->sparse ? m->nnz : s->p.nrows, m->ncols },
		.group_rows = m->group,
		.filters = &filters,
	};
	int rc = see_lists(f, i, n->path);

	if (rc < 0)
		return rc;
	a.chunk_bytes = s->lists[i].most * pen_dtype_size(a.dtype);
	*sh = (struct pen_cells_shape){
		.dtype = a.dtype,
		.ndim = m->sparse ? 1 : 2,
		.dim = { m->sparse ? m->nnz : s->p.nrows, m->ncols },
		.most = m->nnz
	};
	return put_groups(f, b, &a, &m->chunks);
}

static int put_dense(struct pen_cells_file *f, uint32_t i, struct pen_buf *b,
		     struct pen_cells_shape *sh)
{
	const struct source *s = f->in;
	const struct pen_packed_dense *d = &s->p.dense[i];
	const struct pen_filters none = { 0 };
	struct pen_chunked_put a = {
		.dtype = d->dtype,
		.ndim = 2,
		.dim = { s->p.nrows, d->ncols },
		.group_rows = d->group,
		.filters = &none,
		.chunk_bytes = d->group * d->ncols * pen_dtype_size(d->dtype),
	};

	*sh = (struct pen_cells_shape){ .dtype = d->dtype,
					.ndim = 2,
					.dim = { s->p.nrows, d->ncols },
					.most = s->p.nrows * d->ncols };
	return put_groups(f, b, &a, &d->at);
}

static int packed_array(struct pen_cells_file *f,
			const struct pen_cells_node *n, bool list,
			struct pen_buf *b, struct pen_cells_shape *sh)
{
	(void)list;
	switch (kind_of(n)) {
	case MATRIX:
	case DATA:
	case INDICES:
		return put_matrix(f, n, b, sh);
	case DENSE:
		return put_dense(f, (uint32_t)n->addr, b, sh);
	default:
		return pen__cells_refuse(f, P_DAMAGED, n->path, "not a matrix");
	}
}

/* ---- for inspect ---- */

static int packed_inventory(struct pen_cells_file *f, const char *frame,
			    struct pen_buf *out)
{
	const struct source *s = f->in;
	const bool var = is(frame, "var");
	const uint32_t from = var ? s->p.nobs : 0;
	const uint32_t n = var ? s->p.nvar : is(frame, "obs") ? s->p.nobs : 0;
	char text[64];

	for (uint32_t i = from; i < from + n; i++) {
		const struct pen_packed_column *c = &s->p.column[i];

		if (c->flags & PEN_PACKED_MASK)
			continue;
		if (has_codes(c))
			snprintf(text, sizeof(text), "%" PRIu32 " categories",
				 c->nnames);
		else if (has_mask(s, i))
			snprintf(text, sizeof(text), "nullable-%s",
				 c->values.dtype == PEN_BOOL ? "boolean"
							     : "integer");
		else
			snprintf(text, sizeof(text), "%s",
				 c->flags ? "strings"
					  : pen_dtype_name(c->values.dtype));
		pen__cells_put_text(out, c->name.p, c->name.n);
		pen__cells_put_text(out, text, strlen(text));
	}
	return out->bad ? nomem(f, out->n) : 0;
}

static void put_child(struct pen_buf *out, struct pen_span name,
		      const struct pen_packed_matrix *m, uint64_t nrows)
{
	char text[96] = "csr_matrix";

	if (!m->sparse)
		snprintf(text, sizeof(text), "%s %" PRIu64 "x%" PRIu64,
			 pen_dtype_name(m->dtype), nrows, m->ncols);
	pen__cells_put_text(out, name.p, name.n);
	pen__cells_put_text(out, text, strlen(text));
}

static bool in_group(struct pen_span path, const char *group,
		     struct pen_span *name)
{
	const size_t n = strlen(group);

	if (path.n <= n + 1 || memcmp(path.p, group, n) != 0 ||
	    path.p[n] != '/')
		return false;
	*name = (struct pen_span){ path.p + n + 1, path.n - n - 1 };
	return true;
}

/* The directory has no groups; they are derived from the paths. */
static int packed_children(struct pen_cells_file *f, const char *group,
			   struct pen_buf *out)
{
	const struct pen_packed *p = &((const struct source *)f->in)->p;
	const struct pen_span x = { (const uint8_t *)"X", 1 };
	const size_t n = strlen(group);
	struct pen_span name;

	if (!n) {
		static const char *const groups[] = { "layers", "obsm" };

		put_child(out, x, &p->x, p->nrows);
		for (int i = 0; i < 2; i++) {
			pen__cells_put_text(out, groups[i], strlen(groups[i]));
			pen__cells_put_text(out, "group", 5);
		}
	}
	for (uint32_t i = 0; n && i < p->ndense; i++) {
		const struct pen_packed_dense *d = &p->dense[i];
		const struct pen_packed_matrix m = { .dtype = d->dtype,
						     .ncols = d->ncols };

		if (in_group(d->path, group, &name))
			put_child(out, name, &m, p->nrows);
	}
	for (uint32_t i = 0; n && i < p->ncsr; i++)
		if (in_group(p->csr[i].path, group, &name))
			put_child(out, name, &p->csr[i], p->nrows);
	return out->bad ? nomem(f, out->n) : 0;
}

static bool is_key(struct pen_span s, const char *text)
{
	return s.n == strlen(text) && memcmp(s.p, text, s.n) == 0;
}

static void put_fact(struct pen_buf *out, const char *name, struct pen_span s)
{
	pen__cells_put_text(out, name, strlen(name));
	pen__cells_put_text(out, s.p, s.n);
}

/* The source of the cells, and their order. */
static int packed_facts(struct pen_cells_file *f, struct pen_buf *out)
{
	const struct pen_packed *p = &((const struct source *)f->in)->p;
	struct pen_bytes in = pen__bytes(p->meta.p, p->meta.n);
	bool shuffled = false;
	char text[96];

	for (uint32_t i = 0; i < p->nmeta; i++) {
		const struct pen_span key = pen__packed_str(&in);
		const struct pen_span value = pen__packed_str(&in);

		if (in.bad)
			break;
		if (is_key(key, "writer"))
			put_fact(out, "written by", value);
		if (is_key(key, "source"))
			put_fact(out, "source", value);
		if (!is_key(key, "shuffle_seed"))
			continue;
		shuffled = true;
		snprintf(text, sizeof(text), "shuffled, seed %.*s",
			 value.n < 60 ? (int)value.n : 60,
			 (const char *)value.p);
	}
	if (!shuffled)
		snprintf(text, sizeof(text), "as in the source");
	pen__cells_put_text(out, "order", 5);
	pen__cells_put_text(out, text, strlen(text));
	snprintf(text, sizeof(text), "%" PRIu32 " cells", p->x.group);
	pen__cells_put_text(out, "chunk", 5);
	pen__cells_put_text(out, text, strlen(text));
	return out->bad ? nomem(f, out->n) : 0;
}

const struct pen_cells_source pen__cells_in_packed = {
	.open = packed_open,
	.close = packed_close,
	.find = packed_find,
	.text_attr = packed_text_attr,
	.shape_attr = packed_shape_attr,
	.list = packed_list,
	.inventory = packed_inventory,
	.children = packed_children,
	.facts = packed_facts,
	.array = packed_array,
};
