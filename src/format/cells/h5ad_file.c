/*
 * Single cells in HDF5, for cells_file.h: objects by path, attributes, lists,
 * and arrays as entries of the blob. Adjacent chunks without filters, which is
 * how h5py writes them, become one flat range. Before anndata 0.7 all of obsm
 * was one compound data set: a member of it is a matrix that shares its rows
 * with others. Refuses types that are neither numbers nor text, and sparse
 * arrays with parts that were never written.
 */
#include <inttypes.h>
#include <stdio.h>

#include "base/mem.h"
#include "format/cells/cells.h"
#include "format/cells/h5ad_file.h"

#define MOST_RATIO 1100 /* bytes that deflate can make of one, rounded up */

static int h5_open(struct pen_cells_file *f, uint64_t nfiles)
{
	struct pen_h5 *h = NULL;
	int rc = pen__h5_open(&h, f->pk, f->err);

	(void)nfiles;
	f->in = h;
	return rc;
}

static void h5_close(struct pen_cells_file *f)
{
	pen__h5_close(f->in);
}

/* ---- objects and attributes ---- */

int pen__h5ad_node(struct pen_cells_file *f, uint64_t addr, const char *path,
		   struct pen_cells_node *node)
{
	struct pen_h5_head hd;
	int rc = pen__h5_head_open(f->in, addr, &hd, f->err);

	if (rc < 0)
		return rc;
	*node = (struct pen_cells_node){ .addr = addr,
					 .group = pen__h5_is_group(&hd) };
	snprintf(node->path, sizeof(node->path), "%.600s", path);
	pen__h5_head_close(&hd);
	return 0;
}

/* Finds the member of a compound by name. */
static bool find_member(const struct pen_h5_type *t, const char *name,
			struct pen_h5_type *m, uint64_t *at)
{
	const char *s;

	for (uint32_t i = 0; t->cls == PEN_H5_COMPOUND && i < t->nmembers; i++)
		if (pen__h5_member(t, i, &s, m, at) && strcmp(s, name) == 0 &&
		    *at <= t->size && m->size <= t->size - *at)
			return true;
	return false;
}

/* "obsm/X_pca" if obsm is a compound with such a member. */
static int find_in_data(struct pen_cells_file *f, const char *path,
			struct pen_cells_node *node)
{
	const char *slash = strrchr(path, '/');
	char frame[PEN_CELLS_PATH];
	struct pen_h5_data d;
	struct pen_h5_type m;
	struct pen_err why = { 0 };
	uint64_t addr, at;
	bool is;
	int rc;

	if (!slash || slash == path || strlen(path) >= sizeof(frame))
		return 0;
	snprintf(frame, sizeof(frame), "%.*s", (int)(slash - path), path);
	rc = pen__h5_find(f->in, frame, &addr, &why);
	if (rc >= 0)
		rc = pen__h5_data_open(f->in, addr, &d, frame, &why);
	if (rc == PEN_ENOMEM || rc == PEN_EIO) {
		*f->err = why;
		return rc;
	}
	if (rc < 0) /* usually a group */
		return 0;
	is = find_member(&d.type, slash + 1, &m, &at);
	pen__h5_data_close(&d);
	if (!is)
		return 0;
	*node = (struct pen_cells_node){ .addr = addr, .member = true };
	snprintf(node->path, sizeof(node->path), "%s", path);
	return 1;
}

static int h5_find(struct pen_cells_file *f, const char *path,
		   struct pen_cells_node *node)
{
	struct pen_err why = { 0 };
	uint64_t addr;
	int rc = pen__h5_find(f->in, path, &addr, &why);

	if (rc == PEN_ENOTFOUND)
		return find_in_data(f, path, node);
	if (rc < 0 && f->err)
		*f->err = why;
	if (rc >= 0)
		rc = pen__h5ad_node(f, addr, path, node);
	return rc < 0 ? rc : 1;
}

struct text_attr {
	struct pen_cells_file *f;
	const char *name;
	struct pen_buf text;
};

static int see_text(void *arg, const struct pen_h5_attr *a, struct pen_err *err)
{
	struct text_attr *t = arg;
	int rc;

	if (strcmp(a->name, t->name) != 0 || a->space.ndim)
		return 0;
	if (a->type.dtype == PEN_BOOL && a->data.n) {
		pen__buf_str(&t->text, a->data.p[0] ? "True" : "False");
		return t->text.bad ? PEN_ENOMEM : 1;
	}
	if (a->type.cls != PEN_H5_STRING && !a->type.vlen_string)
		return 0;
	rc = pen__h5_string(t->f->in, &a->type, a->data, 0, &t->text, err);
	return rc < 0 ? rc : 1;
}

static int h5_text_attr(struct pen_cells_file *f,
			const struct pen_cells_node *node, const char *name,
			char *buf, size_t cap)
{
	struct text_attr t = { .f = f, .name = name };
	struct pen_h5_head hd;
	size_t n;
	int rc = pen__h5_head_open(f->in, node->addr, &hd, f->err);

	buf[0] = '\0';
	if (rc < 0)
		return rc;
	rc = pen__h5_attrs(f->in, &hd, see_text, &t, f->err);
	n = t.text.n < cap ? t.text.n : cap - 1;
	if (n)
		memcpy(buf, t.text.p, n);
	buf[n] = '\0';
	pen__buf_fini(&t.text);
	pen__h5_head_close(&hd);
	return rc < 0 ? rc : 0;
}

struct shape_attr {
	const char *name;
	uint64_t *shape;
	bool there;
};

static int see_shape(void *arg, const struct pen_h5_attr *a,
		     struct pen_err *err)
{
	struct shape_attr *s = arg;
	uint64_t n;

	(void)err;
	if (strcmp(a->name, s->name) != 0 || a->type.dtype < 0 ||
	    a->type.dtype >= PEN_F16 || a->type.swap ||
	    !pen__h5_count(&a->space, &n) || n != 2)
		return 0;
	for (int i = 0; i < 2; i++) {
		const double v =
			pen__cells_number((enum pen_dtype)a->type.dtype,
					  a->data.p + i * (int)a->type.size);

		s->shape[i] = v >= 0 && v < 0x1p62 ? (uint64_t)v : UINT64_MAX;
	}
	s->there = true;
	return 1;
}

static int h5_shape_attr(struct pen_cells_file *f,
			 const struct pen_cells_node *node, const char *name,
			 uint64_t shape[2])
{
	struct shape_attr s = { .name = name, .shape = shape };
	struct pen_h5_head hd;
	int rc = pen__h5_head_open(f->in, node->addr, &hd, f->err);

	if (rc < 0)
		return rc;
	rc = pen__h5_attrs(f->in, &hd, see_shape, &s, f->err);
	pen__h5_head_close(&hd);
	return rc < 0 ? rc : s.there;
}

/* ---- lists ---- */

struct ref_attr {
	struct pen_cells_file *f;
	uint64_t addr;
};

static int see_categories(void *arg, const struct pen_h5_attr *a,
			  struct pen_err *err)
{
	struct ref_attr *r = arg;

	(void)err;
	if (strcmp(a->name, "categories") != 0)
		return 0;
	r->addr = pen__h5_referred(r->f->in, &a->type, a->data);
	return 1;
}

static int no_member(const struct pen_cells_file *f,
		     const struct pen_h5_type *t, const char *name,
		     const char *where)
{
	struct pen_near near = pen__near(name, strlen(name));
	struct pen_h5_type m;
	const char *s;
	uint64_t at;

	for (uint32_t i = 0; t->cls == PEN_H5_COMPOUND && i < t->nmembers; i++)
		if (pen__h5_member(t, i, &s, &m, &at))
			pen__near_see(&near, s, strlen(s));
	return pen__fail(f->err, P_NO_SUCH_PART, where, "no column '%s'%s",
			 name, pen__near_text(&near).s);
}

/* Reduces a list of compounds to one of their members. */
static bool take_member(struct pen_h5_type *t, const char *name,
			struct pen_buf *data)
{
	const size_t step = t->size, n = data->n / step;
	struct pen_h5_type m;
	uint64_t at;

	if (!find_member(t, name, &m, &at))
		return false;
	for (size_t i = 0; i < n; i++) {
		memmove(data->p + i * m.size, data->p + i * step + at, m.size);
		pen__h5_swap(&m, data->p + i * m.size, m.size);
	}
	data->n = n * m.size;
	*t = m;
	return true;
}

static int take_texts(struct pen_cells_file *f, const struct pen_h5_type *t,
		      struct pen_span data, struct pen_cells_list *l)
{
	struct pen_buf *out = &l->data;
	int rc = 0;

	l->text = true;
	for (uint64_t i = 0; rc >= 0 && i < l->n; i++) {
		const size_t at = out->n;
		uint32_t len;

		pen__buf_le(out, 0, 4);
		rc = pen__h5_string(f->in, t, data, i, out, f->err);
		if (rc >= 0 && out->bad)
			rc = pen__fail_nomem(f->err, f->name, out->n);
		if (rc < 0)
			break;
		len = (uint32_t)(out->n - at - 4);
		memcpy(out->p + at, &len, 4);
	}
	return rc;
}

/* Takes ownership of data, or frees it. */
static int take_list(struct pen_cells_file *f,
		     const struct pen_cells_node *node,
		     const struct pen_h5_type *t, struct pen_buf *data,
		     struct pen_cells_list *l)
{
	int rc = 0;

	l->n = data->n / t->size;
	if (t->vlen_string || t->cls == PEN_H5_STRING) {
		rc = take_texts(f, t, (struct pen_span){ data->p, data->n }, l);
	} else if (t->dtype >= 0 && t->dtype <= PEN_F64) {
		l->dtype = (enum pen_dtype)t->dtype;
		l->size = t->size;
		l->data = *data;
		*data = (struct pen_buf){ 0 };
	} else {
		rc = pen__cells_refuse(
			f, P_UNSUPPORTED_TYPE, node->path,
			"contains %s; expected names, numbers or categories",
			pen__h5_type_name(t));
	}
	pen__buf_fini(data);
	if (rc < 0)
		pen__cells_list_close(l);
	return rc;
}

static int read_list(struct pen_cells_file *f,
		     const struct pen_cells_node *node, const char *member,
		     struct pen_h5_data *d, struct pen_cells_list *l)
{
	struct ref_attr ref = { f, PEN_H5_NOWHERE };
	struct pen_buf data = { 0 };
	char where[256];
	int rc = pen__h5_attrs(f->in, &d->head, see_categories, &ref, f->err);

	pen__cells_where(f, node->path, where, sizeof(where));
	if (rc >= 0)
		rc = pen__h5_read(f->in, d, &data, where, f->err);
	if (rc < 0)
		return rc;
	if (member && !take_member(&d->type, member, &data)) {
		pen__buf_fini(&data);
		return no_member(f, &d->type, member, where);
	}
	rc = take_list(f, node, &d->type, &data, l);
	if (rc >= 0 && ref.addr != PEN_H5_NOWHERE) {
		l->coded = true;
		rc = pen__h5ad_node(f, ref.addr, node->path, &l->categories);
		if (rc < 0)
			pen__cells_list_close(l);
	}
	return rc;
}

static int h5_list(struct pen_cells_file *f, const struct pen_cells_node *node,
		   const char *member, struct pen_cells_list *l)
{
	struct pen_h5_data d;
	char where[256];
	int rc;

	pen__cells_where(f, node->path, where, sizeof(where));
	if (node->member)
		member = strrchr(node->path, '/') + 1;
	rc = pen__h5_data_open(f->in, node->addr, &d, where, f->err);
	if (rc < 0)
		return rc;
	rc = read_list(f, node, member, &d, l);
	pen__h5_data_close(&d);
	return rc;
}

/* ---- arrays ---- */

/* axes: the expected number. */
static int check(const struct pen_h5_data *d, uint32_t axes, const char *where,
		 struct pen_err *err)
{
	if (d->type.dtype < 0 || d->type.dtype > PEN_F64)
		return pen__fail(
			err, P_UNSUPPORTED_TYPE, where,
			"contains %s; a matrix needs numbers",
			d->type.dtype < 0
				? pen__h5_type_name(&d->type)
				: pen_dtype_name(
					  (enum pen_dtype)d->type.dtype));
	if (d->space.null || d->space.ndim != axes)
		return pen__fail(err, P_DAMAGED, where,
				 "has %u axes; expected %u", d->space.ndim,
				 axes);
	return 0;
}

/* Whether rows are contiguous in the file as if there were no chunks. */
static bool in_line(const struct pen_h5_data *d, const struct pen_chunks *cs)
{
	const uint32_t last = d->space.ndim - 1;

	if (d->filters.n || cs->n != cs->ncells || !cs->n ||
	    (last && d->chunk[1] != d->space.dim[1]))
		return false;
	for (size_t i = 1; i < cs->n; i++)
		if (cs->c[i].at != cs->c[i - 1].at + d->chunk_bytes)
			return false;
	return true;
}

static int put_chunks(struct pen_cells_file *f, const struct pen_h5_data *d,
		      bool list, uint64_t cols, struct pen_buf *b,
		      const char *where)
{
	struct pen_chunked_put a;
	struct pen_chunks cs;
	int rc = pen__h5_chunks(f->in, d, &cs, where, f->err);

	if (rc >= 0 && list && cs.n < cs.ncells)
		rc = pen__fail(f->err, P_DAMAGED, where,
			       "%" PRIu64 " of %" PRIu64
			       " chunks were never written",
			       cs.ncells - cs.n, cs.ncells);
	if (rc >= 0) {
		pen__h5_put(d, &cs, &a);
		a.layout = PEN_CHUNKED_GRID;
		if (in_line(d, &cs)) {
			a.layout = PEN_CHUNKED_FLAT;
			a.at = cs.c[0].at;
		}
		if (cols)
			a.dim[1] = a.chunk[1] = cols, a.ndim = 2;
		pen__chunked_put(b, &a);
	}
	pen__chunks_fini(&cs);
	return rc;
}

/* cols: of rows that are compounds; 0: they are not. */
static int put_data(struct pen_cells_file *f, const struct pen_h5_data *d,
		    bool list, uint64_t cols, struct pen_buf *b,
		    const char *where)
{
	struct pen_chunked_put a;
	uint64_t n;
	int rc = check(d, list || cols ? 1 : 2, where, f->err);

	if (rc < 0)
		return rc;
	(void)pen__h5_count(&d->space, &n);
	if (n && d->layout == PEN_H5_CHUNKED)
		return put_chunks(f, d, list, cols, b, where);
	if (d->kept.p)
		return pen__fail(f->err, P_UNSUPPORTED_FEATURE, where,
				 "compact data in a metadata cache image is "
				 "not supported; read the file with anndata "
				 "and write it again");
	if (n && d->addr == PEN_H5_NOWHERE)
		return pen__fail(f->err, P_DAMAGED, where,
				 "the data was never written");
	pen__h5_put(d, &(struct pen_chunks){ 0 }, &a);
	a.layout = PEN_CHUNKED_FLAT;
	if (!n)
		a.at = 0;
	if (cols)
		a.dim[1] = cols, a.ndim = 2;
	pen__chunked_put(b, &a);
	return 0;
}

/*
 * Treats compounds as rows of the type of one member, so that some of the
 * elements of a row belong to it. False if the other members do not align.
 */
static bool see_as_rows(struct pen_h5_data *d, const char *name,
			struct pen_cells_shape *s)
{
	const uint64_t step = d->type.size;
	struct pen_h5_type m, base;
	uint64_t at;

	if (d->space.null || d->space.ndim != 1 ||
	    !find_member(&d->type, name, &m, &at))
		return false;
	if (m.cls != PEN_H5_ARRAY)
		base = m;
	else if (!pen__h5_base(&m, &base))
		return false;
	if (base.dtype < 0 || base.dtype > PEN_F64 || step % base.size ||
	    at % base.size)
		return false;
	s->first = at / base.size;
	s->n = m.size / base.size;
	s->dim[1] = step / base.size;
	d->type = base;
	/* unwritten data reads as zeros, whatever the members' fill values
	 * are */
	memset(d->fill, 0, sizeof(d->fill));
	return true;
}

static int refuse_member(struct pen_cells_file *f,
			 const struct pen_cells_node *node)
{
	return pen__cells_refuse(f, P_UNSUPPORTED_TYPE, node->path,
				 "a member of a compound type (anndata before "
				 "0.7) that is not a run of numbers; read the "
				 "file with anndata and write it again");
}

static int h5_array(struct pen_cells_file *f, const struct pen_cells_node *node,
		    bool list, struct pen_buf *b, struct pen_cells_shape *s)
{
	struct pen_cells_shape part = { 0 };
	struct pen_h5_data d;
	char where[256];
	int rc;

	pen__cells_where(f, node->path, where, sizeof(where));
	rc = pen__h5_data_open(f->in, node->addr, &d, where, f->err);
	if (rc < 0)
		return rc;
	if (node->member &&
	    (list || !see_as_rows(&d, strrchr(node->path, '/') + 1, &part)))
		rc = refuse_member(f, node);
	if (rc >= 0)
		rc = put_data(f, &d, list, part.dim[1], b, where);
	if (rc >= 0) {
		*s = part;
		s->ndim = list ? 1 : 2;
		s->dtype = (enum pen_dtype)d.type.dtype;
		memcpy(s->dim, d.space.dim, d.space.ndim * sizeof(*s->dim));
		if (__builtin_mul_overflow(f->pk->size + 64, MOST_RATIO,
					   &s->most))
			s->most = UINT64_MAX;
	}
	pen__h5_data_close(&d);
	return rc;
}

const struct pen_cells_source pen__cells_in_hdf5 = {
	.open = h5_open,
	.close = h5_close,
	.find = h5_find,
	.text_attr = h5_text_attr,
	.shape_attr = h5_shape_attr,
	.list = h5_list,
	.inventory = pen__h5ad_inventory,
	.children = pen__h5ad_inventory,
	.array = h5_array,
};
