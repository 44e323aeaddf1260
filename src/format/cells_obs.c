/*
 * Columns of obs and var, in every way anndata has written them: data sets and
 * groups {codes, categories} or {values, mask} (0.8 on), data sets whose
 * attribute refers to categories (0.7), members of one compound with
 * categories in uns (before). Categories become int32 codes, -1 where missing;
 * strings become codes of their sorted distinct values; integers that may be
 * missing float64 with NaN, booleans that may be int8 with -1.
 * Refuses codes without a category, and columns of another length.
 */
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/half.h"
#include "base/mem.h"
#include "format/cells.h"

#define PATH_CAP 512

static void where_of(const struct pen_cells_file *f, const char *path,
		     char *buf, size_t cap)
{
	snprintf(buf, cap, "%.150s:%.100s", f->pk->name, path);
}

static int __attribute__((format(printf, 4, 5)))
refuse(const struct pen_cells_file *f, int code, const char *path,
       const char *fmt, ...)
{
	char where[256], text[256];
	va_list ap;

	where_of(f, path, where, sizeof(where));
	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	return pen__fail(f->err, code, where, "%s", text);
}

static int nomem(const struct pen_cells_file *f, size_t n)
{
	return pen__fail_nomem(f->err, f->pk->name, n);
}

/* ---- objects, attributes, lists ---- */

int pen__cells_there(struct pen_cells_file *f, const char *path, uint64_t *addr)
{
	struct pen_err why = { 0 };
	int rc = pen__h5_find(f->h, path, addr, &why);

	if (rc == PEN_ENOTFOUND)
		return 0;
	if (rc < 0 && f->err)
		*f->err = why;
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

	if (strcmp(a->name, t->name) != 0 || a->space.ndim ||
	    (a->type.cls != PEN_H5_STRING && !a->type.vlen_string))
		return 0;
	rc = pen__h5_string(t->f->h, &a->type, a->data, 0, &t->text, err);
	return rc < 0 ? rc : 1;
}

int pen__cells_text_attr(struct pen_cells_file *f, const struct pen_h5_head *hd,
			 const char *name, char *buf, size_t cap)
{
	struct text_attr t = { .f = f, .name = name };
	int rc = pen__h5_attrs(f->h, hd, see_text, &t, f->err);
	const size_t n = t.text.n < cap ? t.text.n : cap - 1;

	if (n)
		memcpy(buf, t.text.p, n);
	buf[n] = '\0';
	pen__buf_fini(&t.text);
	return rc < 0 ? rc : 0;
}

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
	r->addr = pen__h5_referred(r->f->h, &a->type, a->data);
	return 1;
}

int pen__cells_list_open(struct pen_cells_file *f, uint64_t addr,
			 const char *path, struct pen_cells_list *l)
{
	struct ref_attr ref = { f, PEN_H5_NOWHERE };
	char where[256];
	int rc;

	*l = (struct pen_cells_list){ .categories = PEN_H5_NOWHERE };
	where_of(f, path, where, sizeof(where));
	rc = pen__h5_data_open(f->h, addr, &l->d, where, f->err);
	if (rc < 0)
		return rc;
	rc = pen__h5_attrs(f->h, &l->d.head, see_categories, &ref, f->err);
	if (rc >= 0)
		rc = pen__h5_read(f->h, &l->d, &l->data, where, f->err);
	if (rc < 0) {
		pen__cells_list_close(l);
		return rc;
	}
	l->categories = ref.addr;
	l->n = l->data.n / l->d.type.size;
	return 0;
}

void pen__cells_list_close(struct pen_cells_list *l)
{
	pen__h5_data_close(&l->d);
	pen__buf_fini(&l->data);
	*l = (struct pen_cells_list){ 0 };
}

double pen__cells_number(enum pen_dtype t, const uint8_t *p)
{
	const uint64_t n = pen_dtype_size(t);
	uint64_t u = 0;
	double d;
	float s;

	switch (t) {
	case PEN_F16:
		memcpy(&u, p, 2);
		return pen__half_to_double((uint16_t)u);
	case PEN_F32:
		memcpy(&s, p, 4);
		return (double)s;
	case PEN_F64:
		memcpy(&d, p, 8);
		return d;
	default:
		break;
	}
	memcpy(&u, p, n < 8 ? n : 8);
	if (t == PEN_BOOL || t == PEN_U8 || t == PEN_U16 || t == PEN_U32 ||
	    t == PEN_U64)
		return (double)u;
	/* the sign is where its own width ends */
	return (double)((int64_t)(u << (64 - 8 * n)) >> (64 - 8 * n));
}

static bool is_text(const struct pen_h5_type *t)
{
	return t->vlen_string || t->cls == PEN_H5_STRING;
}

static bool is_number(const struct pen_h5_type *t)
{
	return t->dtype >= 0 && t->dtype <= PEN_F64;
}

/* Element i as text, at the end of out. */
static int put_text(struct pen_cells_file *f, const struct pen_cells_list *l,
		    uint64_t i, const char *path, struct pen_buf *out)
{
	const struct pen_h5_type *t = &l->d.type;
	double v;

	if (is_text(t))
		return pen__h5_string(f->h, t,
				      (struct pen_span){ l->data.p, l->data.n },
				      i, out, f->err);
	if (!is_number(t))
		return refuse(f, PEN_ENOTSUP, path,
			      "holds %s where names or numbers should be",
			      pen__h5_type_name(t));
	v = pen__cells_number((enum pen_dtype)t->dtype,
			      l->data.p + i * t->size);
	if (t->dtype == PEN_BOOL)
		pen__buf_str(out, v != 0 ? "True" : "False");
	else
		pen__buf_printf(out, "%.17g", v);
	return 0;
}

int pen__cells_list_names(struct pen_cells_file *f,
			  const struct pen_cells_list *l, const char *path,
			  struct pen_buf *out)
{
	int rc = 0;

	for (uint64_t i = 0; rc >= 0 && i < l->n; i++) {
		const size_t at = out->n;
		uint32_t len;

		pen__buf_le(out, 0, 4);
		rc = put_text(f, l, i, path, out);
		if (rc >= 0 && out->bad)
			rc = nomem(f, out->n);
		if (rc < 0)
			break;
		len = (uint32_t)(out->n - at - 4);
		memcpy(out->p + at, &len, 4);
	}
	return rc;
}

bool pen__cells_next_name(struct pen_bytes *b, struct pen_span *s)
{
	const uint8_t *p = pen__take(b, 4);
	uint32_t len;

	if (!p)
		return false;
	memcpy(&len, p, 4);
	s->p = pen__take(b, len);
	s->n = len;
	return s->p != NULL;
}

/* ---- columns ---- */

int pen__cells_names(struct pen_cells_file *f, uint64_t addr, const char *path,
		     struct pen_buf *names, uint64_t *n)
{
	char values[PATH_CAP];
	struct pen_cells_list l;
	struct pen_h5_head hd;
	bool group;
	int rc = pen__h5_head_open(f->h, addr, &hd, f->err);

	if (rc < 0)
		return rc;
	group = pen__h5_is_group(&hd);
	pen__h5_head_close(&hd);
	if (group) { /* names of which some may be missing */
		snprintf(values, sizeof(values), "%.480s/values", path);
		rc = pen__h5_find(f->h, values, &addr, f->err);
		if (rc < 0)
			return rc;
	}
	rc = pen__cells_list_open(f, addr, path, &l);
	if (rc < 0)
		return rc;
	*n = l.n;
	rc = l.n > INT32_MAX ? refuse(f, PEN_ENOTSUP, path, "too many names")
			     : pen__cells_list_names(f, &l, path, names);
	pen__cells_list_close(&l);
	return rc;
}

static int take_names(struct pen_cells_file *f, struct pen_cells_column *c,
		      uint64_t addr, const char *path)
{
	uint64_t n = 0;
	int rc = pen__cells_names(f, addr, path, &c->names, &n);

	c->nnames = (uint32_t)n;
	return rc;
}

/* Codes of any width become int32. */
static int take_codes(struct pen_cells_file *f, struct pen_cells_column *c,
		      const struct pen_cells_list *l, const char *path)
{
	const struct pen_h5_type *t = &l->d.type;

	if (!is_number(t) || t->dtype >= PEN_F16)
		return refuse(f, PEN_EDATA, path, "its codes are no integers");
	c->dtype = PEN_I32;
	c->coded = true;
	for (uint64_t i = 0; i < l->n; i++) {
		const double v = pen__cells_number((enum pen_dtype)t->dtype,
						   l->data.p + i * t->size);
		int32_t code = -1;

		if (v < -1 || v >= c->nnames)
			return refuse(f, PEN_EDATA, path,
				      "row %" PRIu64 " has code %g, but there "
				      "are %" PRIu32 " categories",
				      i, v, c->nnames);
		if (v >= 0)
			code = (int32_t)v;
		pen__buf_put(&c->values, &code, 4);
	}
	return c->values.bad ? nomem(f, l->n * 4) : 0;
}

struct text {
	struct pen_span s; /* first: what is compared */
	uint64_t row;
};

static int by_text(const void *a, const void *b)
{
	return pen__cells_compare(*(const struct pen_span *)a,
				  *(const struct pen_span *)b);
}

/* mask: missing where not 0; NULL: none is. */
static int code_texts(struct pen_cells_file *f, struct pen_cells_column *c,
		      struct text *t, uint64_t n, const uint8_t *mask)
{
	int32_t *codes = pen__alloc(n ? n : 1, sizeof(*codes));
	uint64_t k = 0;

	if (!codes)
		return nomem(f, n * sizeof(*codes));
	memset(codes, 0xff, n * sizeof(*codes));
	for (uint64_t i = 0; i < n; i++)
		if (!mask || !mask[t[i].row])
			t[k++] = t[i];
	qsort(t, k, sizeof(*t), by_text);
	for (uint64_t i = 0; i < k; i++) {
		if (!i || by_text(&t[i - 1], &t[i]) != 0) {
			const uint32_t len = (uint32_t)t[i].s.n;

			pen__buf_put(&c->names, &len, 4);
			pen__buf_put(&c->names, t[i].s.p, len);
			c->nnames++;
		}
		codes[t[i].row] = (int32_t)c->nnames - 1;
	}
	pen__buf_put(&c->values, codes, n * sizeof(*codes));
	pen__free(codes);
	return c->values.bad || c->names.bad ? nomem(f, n * 4) : 0;
}

/* Strings: codes of the sorted distinct ones. */
static int take_texts(struct pen_cells_file *f, struct pen_cells_column *c,
		      const struct pen_cells_list *l, const char *path,
		      const uint8_t *mask)
{
	struct pen_buf all = { 0 };
	struct pen_bytes b;
	struct pen_span s;
	struct text *t;
	int rc;

	c->dtype = PEN_I32;
	c->coded = true;
	t = pen__alloc(l->n ? l->n : 1, sizeof(*t));
	if (!t)
		return nomem(f, l->n * sizeof(*t));
	rc = pen__cells_list_names(f, l, path, &all);
	b = pen__bytes(all.p, all.n);
	for (uint64_t i = 0; rc >= 0 && i < l->n; i++)
		if (pen__cells_next_name(&b, &s))
			t[i] = (struct text){ s, i };
	if (rc >= 0)
		rc = l->n > INT32_MAX ? refuse(f, PEN_ENOTSUP, path, "too many")
				      : code_texts(f, c, t, l->n, mask);
	pen__free(t);
	pen__buf_fini(&all);
	return rc;
}

/* A list that is the column. */
static int take_list(struct pen_cells_file *f, struct pen_cells_column *c,
		     struct pen_cells_list *l, const char *path)
{
	if (is_text(&l->d.type))
		return take_texts(f, c, l, path, NULL);
	if (!is_number(&l->d.type))
		return refuse(f, PEN_ENOTSUP, path,
			      "holds %s; a column that is loaded has numbers, "
			      "strings or categories",
			      pen__h5_type_name(&l->d.type));
	c->dtype = (uint8_t)l->d.type.dtype;
	c->values = l->data;
	l->data = (struct pen_buf){ 0 };
	return 0;
}

static int take_nullable(struct pen_cells_file *f, struct pen_cells_column *c,
			 const struct pen_cells_list *l,
			 const struct pen_cells_list *mask, const char *path)
{
	const struct pen_h5_type *t = &l->d.type;

	if (mask->d.type.size != 1 || mask->n != l->n)
		return refuse(f, PEN_EDATA, path,
			      "its mask is not one boolean for each row");
	if (is_text(t))
		return take_texts(f, c, l, path, mask->data.p);
	if (!is_number(t))
		return refuse(f, PEN_ENOTSUP, path, "holds %s",
			      pen__h5_type_name(t));
	c->dtype = t->dtype == PEN_BOOL ? PEN_I8 : PEN_F64;
	for (uint64_t i = 0; i < l->n; i++) {
		const double v = pen__cells_number((enum pen_dtype)t->dtype,
						   l->data.p + i * t->size);
		const double x = mask->data.p[i] ? NAN : v;
		const int8_t b = mask->data.p[i] ? -1 : v != 0;

		if (t->dtype == PEN_BOOL)
			pen__buf_put(&c->values, &b, 1);
		else
			pen__buf_put(&c->values, &x, 8);
	}
	return c->values.bad ? nomem(f, l->n * 8) : 0;
}

static int open_at(struct pen_cells_file *f, const char *path,
		   struct pen_cells_list *l)
{
	uint64_t addr;
	int rc = pen__h5_find(f->h, path, &addr, f->err);

	return rc < 0 ? rc : pen__cells_list_open(f, addr, path, l);
}

/* A group: {codes, categories} or {values, mask}. */
static int take_group(struct pen_cells_file *f, struct pen_cells_column *c,
		      const char *path)
{
	struct pen_cells_list l = { 0 }, mask = { 0 };
	char part[PATH_CAP];
	uint64_t addr;
	int rc;

	snprintf(part, sizeof(part), "%.480s/codes", path);
	rc = pen__cells_there(f, part, &addr);
	if (rc < 0)
		return rc;
	if (rc) {
		rc = pen__cells_list_open(f, addr, part, &l);
		snprintf(part, sizeof(part), "%.480s/categories", path);
		if (rc >= 0)
			rc = pen__h5_find(f->h, part, &addr, f->err);
		if (rc >= 0)
			rc = take_names(f, c, addr, part);
		if (rc >= 0)
			rc = take_codes(f, c, &l, path);
	} else {
		snprintf(part, sizeof(part), "%.480s/values", path);
		rc = open_at(f, part, &l);
		snprintf(part, sizeof(part), "%.480s/mask", path);
		if (rc >= 0)
			rc = open_at(f, part, &mask);
		if (rc >= 0)
			rc = take_nullable(f, c, &l, &mask, path);
	}
	pen__cells_list_close(&l);
	pen__cells_list_close(&mask);
	return rc;
}

/* A list by itself: numbers, strings, or codes with categories elsewhere. */
static int take_dataset(struct pen_cells_file *f, struct pen_cells_column *c,
			uint64_t addr, const char *path)
{
	struct pen_cells_list l;
	int rc = pen__cells_list_open(f, addr, path, &l);

	if (rc < 0)
		return rc;
	if (l.categories != PEN_H5_NOWHERE) {
		rc = take_names(f, c, l.categories, path);
		if (rc >= 0)
			rc = take_codes(f, c, &l, path);
	} else {
		rc = take_list(f, c, &l, path);
	}
	pen__cells_list_close(&l);
	return rc;
}

/* Which member of a compound has this name, -1: none. */
static int find_member(const struct pen_h5_type *t, const char *name,
		       struct pen_h5_type *m, uint64_t *at)
{
	const char *s;

	for (uint32_t i = 0; i < t->nmembers; i++)
		if (pen__h5_member(t, i, &s, m, at) && strcmp(s, name) == 0 &&
		    *at <= t->size && m->size <= t->size - *at)
			return (int)i;
	return -1;
}

int pen__cells_member(struct pen_cells_file *f, struct pen_cells_list *l,
		      const char *name, const char *path)
{
	const size_t step = l->d.type.size;
	struct pen_h5_type m;
	uint64_t at;

	if (l->d.type.cls != PEN_H5_COMPOUND ||
	    find_member(&l->d.type, name, &m, &at) < 0)
		return refuse(f, PEN_ENOTFOUND, path, "has no column %s", name);
	for (uint64_t i = 0; i < l->n; i++) {
		memmove(l->data.p + i * m.size, l->data.p + i * step + at,
			m.size);
		pen__h5_swap(&m, l->data.p + i * m.size, m.size);
	}
	l->data.n = l->n * m.size;
	l->d.type = m;
	return 0;
}

/* Of the compound that obs was before 0.7. */
static int take_member(struct pen_cells_file *f, struct pen_cells_column *c,
		       struct pen_cells_list *l, const char *path)
{
	char names[PATH_CAP];
	uint64_t addr;
	int rc = pen__cells_member(f, l, c->name, path);

	if (rc < 0)
		return rc;
	if (!is_number(&l->d.type) || l->d.type.dtype >= PEN_F16)
		return take_list(f, c, l, path);
	snprintf(names, sizeof(names), "uns/%.300s_categories", c->name);
	rc = pen__cells_there(f, names, &addr);
	if (rc <= 0)
		return rc < 0 ? rc : take_list(f, c, l, path);
	rc = take_names(f, c, addr, names);
	return rc < 0 ? rc : take_codes(f, c, l, path);
}

static int take_column(struct pen_cells_file *f, const char *frame,
		       struct pen_cells_column *c)
{
	struct pen_cells_list l;
	struct pen_h5_head hd;
	char path[PATH_CAP];
	uint64_t addr;
	bool group;
	int rc = pen__h5_find(f->h, frame, &addr, f->err);

	if (rc >= 0)
		rc = pen__h5_head_open(f->h, addr, &hd, f->err);
	if (rc < 0)
		return rc;
	group = pen__h5_is_group(&hd);
	pen__h5_head_close(&hd);
	if (!group) {
		rc = pen__cells_list_open(f, addr, frame, &l);
		if (rc < 0)
			return rc;
		rc = take_member(f, c, &l, frame);
		pen__cells_list_close(&l);
		return rc;
	}
	snprintf(path, sizeof(path), "%.100s/%.300s", frame, c->name);
	rc = pen__cells_there(f, path, &addr);
	if (rc == 0)
		return refuse(f, PEN_ENOTFOUND, frame,
			      "has no column %s; `penstock inspect` lists them",
			      c->name);
	if (rc > 0)
		rc = pen__h5_head_open(f->h, addr, &hd, f->err);
	if (rc < 0)
		return rc;
	group = pen__h5_is_group(&hd);
	pen__h5_head_close(&hd);
	return group ? take_group(f, c, path) : take_dataset(f, c, addr, path);
}

int pen__cells_column_open(struct pen_cells_file *f, const char *frame,
			   const char *name, uint64_t n,
			   struct pen_cells_column *c)
{
	char index[sizeof(c->name) + 1];
	size_t size;
	int rc;

	*c = (struct pen_cells_column){ 0 };
	if (strcmp(name, "_index") == 0) {
		rc = pen__cells_index_name(f, frame, index, sizeof(index));
		if (rc < 0)
			return rc;
		name = index;
	}
	if (strlen(name) >= sizeof(c->name))
		return refuse(f, PEN_ENOTSUP, frame,
			      "the name of column %s is longer than %zu bytes",
			      name, sizeof(c->name) - 1);
	memcpy(c->name, name, strlen(name));
	rc = take_column(f, frame, c);
	if (rc < 0)
		return rc;
	size = pen_dtype_size((enum pen_dtype)c->dtype);
	if (c->values.n / size != n)
		return refuse(f, PEN_EDATA, frame,
			      "column %s has %zu values, but there are %" PRIu64
			      " rows",
			      name, c->values.n / size, n);
	return 0;
}

void pen__cells_column_close(struct pen_cells_column *c)
{
	pen__buf_fini(&c->names);
	pen__buf_fini(&c->values);
}
