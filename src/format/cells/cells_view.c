/*
 * Parses index blobs into views. Nothing here reads per-row numbers; tables
 * with an entry per row are only checked for their length. Refuses blobs that
 * contradict themselves.
 */
#include "base/mem.h"
#include "format/cells/cells.h"

static int damaged(struct pen_err *err)
{
	return pen__fail(err, P_BAD_INDEX, NULL, "the index entry is damaged");
}

static struct pen_span take_bytes(struct pen_bytes *in)
{
	const uint64_t n = pen__take_u64(in);
	const uint8_t *p = pen__take(in, n);

	return (struct pen_span){ p, p ? (size_t)n : 0 };
}

/* ---- a view ---- */

static bool take_starts(struct pen_bytes *in, struct pen_cells_matrix *m,
			uint64_t *n)
{
	m->width = pen__take_u8(in);
	*n = pen__take_u64(in);
	if (in->bad || (m->width != 4 && m->width != 8) || !*n ||
	    *n > pen__bytes_left(in) / m->width)
		return false;
	m->indptr = pen__take(in, *n * m->width);
	return true;
}

/* An array of the matrix, and the numbers of its chunks. */
static bool take_array(struct pen_bytes *in, struct pen_chunked *a,
		       uint64_t *chunks)
{
	return pen__chunked_take(in, a) && a->ndim && a->ndim <= 2 &&
	       a->dtype <= PEN_F64 && pen__chunked_number(a, chunks);
}

static bool take_part(struct pen_bytes *in, struct pen_cells_matrix *m)
{
	m->first = pen__take_u64(in);
	m->nown = pen__take_u64(in);
	return !in->bad && (!m->nown || (!m->sparse && m->first <= m->ncols &&
					 m->nown <= m->ncols - m->first));
}

static bool take_matrix(struct pen_bytes *in, struct pen_cells_matrix *m,
			uint64_t *chunks)
{
	uint64_t n = 0;

	m->sparse = pen__take_u8(in);
	if (!take_array(in, &m->data, chunks) ||
	    (m->sparse &&
	     (!take_array(in, &m->indices, chunks) || !take_starts(in, m, &n))))
		return false;
	m->indices.kind = 1;
	m->nrows = pen__take_u64(in);
	m->ncols = pen__take_u64(in);
	m->nnz = pen__take_u64(in);
	m->most = pen__take_u64(in);
	m->extent = m->ncols;
	m->ntake = (uint32_t)m->ncols;
	if (in->bad || !m->ncols || m->ncols > PEN_CELLS_GENES ||
	    m->most > INT32_MAX || !take_part(in, m))
		return false;
	if (m->sparse)
		return n - 1 == m->nrows && m->data.ncols == m->nnz &&
		       m->indices.ncols == m->nnz;
	return m->most == m->ncols && m->nnz / m->ncols == m->nrows &&
	       (m->data.layout == PEN_CHUNKED_GROUPED ||
		m->data.ncols == m->ncols);
}

static bool take_rows(struct pen_bytes *in, struct pen_cells_view *v)
{
	struct pen_span s;

	v->nsamples = v->nrows;
	if (!pen__take_u8(in))
		return !in->bad;
	s = take_bytes(in);
	if (in->bad || s.n / 4 > v->nrows)
		return false;
	v->rows = s.p;
	v->nsamples = s.n / 4;
	return true;
}

static bool take_column(struct pen_bytes *in, struct pen_cells_field *c,
			uint64_t n)
{
	bool nullable;
	size_t bytes;

	c->dtype = pen__take_u8(in);
	nullable = pen__take_u8(in);
	c->coded = pen__take_u8(in);
	c->ordered = pen__take_u8(in);
	c->nnames = pen__take_u32(in);
	c->name = take_bytes(in);
	c->names = take_bytes(in);
	if (in->bad || c->dtype > PEN_F64 ||
	    (c->coded && c->dtype != PEN_I32) || c->nnames > c->names.n / 4 ||
	    !c->name.n || c->name.n >= PEN_CELLS_NAME ||
	    !pen__mul((size_t)n, pen_dtype_size(c->dtype), &bytes))
		return false;
	c->values = pen__take(in, bytes);
	c->mask = nullable ? pen__take(in, n) : NULL;
	return !in->bad;
}

static bool take_vars(struct pen_bytes *in, struct pen_cells_view *v)
{
	for (int i = 0; i < PEN_CELLS_FRAMES; i++) {
		v->var[i].ncols = pen__take_u64(in);
		v->var[i].hash = pen__take_u64(in);
	}
	v->common[0] = pen__take_u64(in);
	v->common[1] = pen__take_u64(in);
	return !in->bad;
}

static bool take_matrices(struct pen_bytes *in, const struct pen_cells *p,
			  struct pen_cells_view *v)
{
	uint64_t chunks = 0;

	for (uint32_t i = 0; i < p->nmatrices; i++)
		if (!take_matrix(in, &v->matrix[i], &chunks) ||
		    v->matrix[i].nrows != v->matrix[0].nrows)
			return false;
	v->nrows = v->matrix[0].nrows;
	return true;
}

/* Whether matrices have as many columns as the frames that describe them. */
static bool fits_vars(const struct pen_cells *p, const struct pen_cells_view *v)
{
	for (uint32_t i = 0; i < p->nmatrices; i++)
		if (p->slot[i].frame < PEN_CELLS_FRAMES &&
		    v->var[p->slot[i].frame].ncols != v->matrix[i].ncols)
			return false;
	return true;
}

/* Excludes columns of other matrices with a map. */
static int map_own(struct pen_cells_matrix *m, struct pen_err *err)
{
	if (!m->nown)
		return 0;
	m->own = pen__alloc(m->ncols, sizeof(*m->own));
	if (!m->own)
		return pen__fail_nomem(err, "cells",
				       m->ncols * sizeof(*m->own));
	for (uint64_t i = 0; i < m->ncols; i++)
		m->own[i] = i - m->first < m->nown ? (uint32_t)(i - m->first)
						   : PEN_CELLS_NONE;
	m->map = m->own;
	m->ntake = (uint32_t)m->nown;
	return 0;
}

static int take_view(struct pen_cells *p, struct pen_cells_view *v,
		     struct pen_bytes *in, struct pen_err *err)
{
	int rc = 0;

	v->nfields = pen__take_u32(in);
	/* each takes at least a few bytes */
	if (in->bad || v->nfields > pen__bytes_left(in))
		return damaged(err);
	v->field = pen__calloc(v->nfields ? v->nfields : 1, sizeof(*v->field));
	if (!v->field)
		return pen__fail_nomem(err, "cells", v->nfields);
	if (!take_matrices(in, p, v) || !take_rows(in, v))
		return damaged(err);
	for (uint32_t i = 0; rc >= 0 && i < p->nmatrices; i++)
		rc = map_own(&v->matrix[i], err);
	if (rc < 0)
		return rc;
	for (uint32_t i = 0; i < v->nfields; i++)
		if (!take_column(in, &v->field[i], v->nsamples))
			return damaged(err);
	if (!take_vars(in, v) || !fits_vars(p, v))
		return damaged(err);
	v->inventory = take_bytes(in);
	v->obs_index = take_bytes(in);
	v->var_index = take_bytes(in);
	v->tree = take_bytes(in);
	v->facts = take_bytes(in);
	v->warned = take_bytes(in);
	return in->bad ? damaged(err) : 0;
}

/* ---- blobs shared by files ---- */

static int take_common(struct pen_cells *p, struct pen_bytes *in,
		       struct pen_err *err)
{
	struct pen_cells_common *c = &p->common[p->ncommon++];

	c->key[0] = pen__take_u64(in);
	c->key[1] = pen__take_u64(in);
	for (int i = 0; i < PEN_CELLS_FRAMES; i++)
		c->genes[i] = take_bytes(in);
	c->columns = *in;
	return in->bad ? damaged(err) : 0;
}

static struct pen_span key_of(const uint64_t key[2])
{
	return (struct pen_span){ (const uint8_t *)key, 2 * sizeof(*key) };
}

static int find_common(const struct pen_cells *p, struct pen_cells_table *t,
		       struct pen_cells_view *v, struct pen_err *err)
{
	const struct pen_span key = key_of(v->common);
	uint32_t id;

	if (!v->matrix || (!v->common[0] && !v->common[1]))
		return 0;
	id = pen__cells_table_find(t, key, pen__cells_hash(key));
	if (id == PEN_CELLS_NONE)
		return damaged(err);
	for (int i = 0; i < PEN_CELLS_FRAMES; i++)
		v->var[i].genes = p->common[id].genes[i];
	return 0;
}

/* Columns of var, from the first file. */
static int take_columns(struct pen_cells *p, const struct pen_cells_common *c,
			struct pen_err *err)
{
	struct pen_bytes in = c->columns;
	const uint32_t n = pen__take_u32(&in);

	if (in.bad || n > pen__bytes_left(&in))
		return damaged(err);
	p->vars = pen__calloc(n ? n : 1, sizeof(*p->vars));
	if (!p->vars)
		return pen__fail_nomem(err, "var", n * sizeof(*p->vars));
	for (; p->nvars < n; p->nvars++)
		if (!take_column(&in, &p->vars[p->nvars],
				 p->view0->var[pen__cells_frame(p)].ncols))
			return damaged(err);
	return 0;
}

static int share(struct pen_cells *p, uint64_t *blob, struct pen_err *err)
{
	struct pen_cells_table t;
	int rc = 0;

	if (!pen__cells_table_init(&t, p->ncommon))
		rc = pen__fail_nomem(err, "cells", 0);
	for (uint32_t i = 0; rc >= 0 && i < p->ncommon; i++) {
		const struct pen_span key = key_of(p->common[i].key);

		if (pen__cells_table_add(&t, key, pen__cells_hash(key)) != i)
			rc = damaged(err);
	}
	for (uint64_t i = 0; rc >= 0 && i < p->nviews; i++) {
		*blob = i;
		rc = find_common(p, &t, &p->view[i], err);
	}
	for (uint32_t i = 0; rc >= 0 && i < p->ncommon; i++)
		if (memcmp(p->common[i].key, p->view0->common,
			   sizeof(p->common[i].key)) == 0)
			rc = take_columns(p, &p->common[i], err);
	pen__cells_table_fini(&t);
	return rc;
}

static int take_blob(struct pen_cells *p, uint64_t i, struct pen_span s,
		     struct pen_err *err)
{
	struct pen_bytes in = pen__bytes(s.p, s.n);
	struct pen_cells_view *v = &p->view[i];
	uint32_t n;

	if (!s.n) /* an object without cells, such as a chunk */
		return 0;
	n = pen__take_u32(&in);
	if (n == PEN_CELLS_COMMON)
		return take_common(p, &in, err);
	if (s.p[0] == PEN_PLAIN_BLOB)
		return pen__fail(err, P_FILES_DISAGREE, NULL,
				 "contains plain arrays, but earlier files "
				 "contain single cells");
	if (n != p->nmatrices)
		return damaged(err);
	v->matrix = p->matrices + i * p->nmatrices;
	if (!p->view0)
		p->view0 = v;
	return take_view(p, v, &in, err);
}

int pen__cells_take_views(struct pen_cells *p, const struct pen_index *ix,
			  uint64_t *blob, struct pen_err *err)
{
	const uint64_t n = ix->nblobs;
	size_t matrices;
	int rc = 0;

	if (!pen__mul((size_t)n, p->nmatrices, &matrices))
		return damaged(err);
	p->view = pen__calloc(n ? (size_t)n : 1, sizeof(*p->view));
	p->common = pen__calloc(n ? (size_t)n : 1, sizeof(*p->common));
	p->matrices =
		pen__calloc(matrices ? matrices : 1, sizeof(*p->matrices));
	if (!p->view || !p->common || !p->matrices)
		return pen__fail_nomem(err, "cells",
				       matrices * sizeof(*p->matrices));
	for (p->nviews = 0; rc >= 0 && p->nviews < n; p->nviews++) {
		*blob = p->nviews;
		rc = take_blob(p, *blob, ix->blob(ix, *blob), err);
	}
	if (rc >= 0 && !p->view0)
		rc = pen__fail(err, P_NOT_FOUND, "cells",
			       "there are no files with cells");
	return rc < 0 ? rc : share(p, blob, err);
}
