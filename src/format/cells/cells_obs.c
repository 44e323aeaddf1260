/*
 * Columns of obs and var, in every layout that anndata has written: data sets
 * and groups {codes, categories} or {values, mask} (since 0.8), data sets whose
 * attribute refers to categories (0.7), members of a compound with categories
 * in uns (before). Categories become int32 codes, -1 where missing; strings
 * become codes of their sorted distinct values; nullable integers become
 * float64 with NaN, nullable booleans int8 with -1 (file.exact: they keep their
 * type and get a mask). Refuses codes without a category and columns of a wrong
 * length.
 */
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/half.h"
#include "base/mem.h"
#include "format/cells/cells.h"

#define PATH_CAP 512

static int nomem(const struct pen_cells_file *f, size_t n)
{
	return pen__fail_nomem(f->err, f->name, n);
}

/* ---- objects and lists ---- */

void pen__cells_where(const struct pen_cells_file *f, const char *path,
		      char *buf, size_t cap)
{
	snprintf(buf, cap, "%.150s:%.100s", f->name, path);
}

int pen__cells_refuse(const struct pen_cells_file *f, int kind,
		      const char *path, const char *fmt, ...)
{
	char where[256], text[256];
	va_list ap;

	pen__cells_where(f, path, where, sizeof(where));
	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	return pen__fail(f->err, kind, where, "%s", text);
}

int pen__cells_need(struct pen_cells_file *f, const char *path,
		    struct pen_cells_node *node)
{
	const char *slash = strrchr(path, '/');
	int rc = f->src->find(f, path, node);

	return rc ? rc
		  : pen__cells_refuse(f, P_NO_SUCH_PART, path,
				      "no object '%s' in the file",
				      slash ? slash + 1 : path);
}

int pen__cells_list_open(struct pen_cells_file *f,
			 const struct pen_cells_node *node,
			 struct pen_cells_list *l)
{
	int rc;

	*l = (struct pen_cells_list){ 0 };
	rc = f->src->list(f, node, NULL, l);
	if (rc >= 0)
		pen__cells_warn_absent(f, node->path, &l->absent, false);
	return rc;
}

void pen__cells_list_close(struct pen_cells_list *l)
{
	pen__buf_fini(&l->data);
	*l = (struct pen_cells_list){ 0 };
}

void pen__cells_put_text(struct pen_buf *out, const void *p, size_t n)
{
	const uint32_t len = (uint32_t)n;

	pen__buf_put(out, &len, 4);
	pen__buf_put(out, p, len);
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
	/* extend the sign from the type's own width */
	return (double)((int64_t)(u << (64 - 8 * n)) >> (64 - 8 * n));
}

/* The fewest digits that identify the value among those of its type. */
static int digits(enum pen_dtype t, double v)
{
	char text[40];

	for (int n = 3; n < 17; n++) {
		double back;

		snprintf(text, sizeof(text), "%.*g", n, v);
		back = strtod(text, NULL);
		if (t == PEN_F32)
			back = (double)(float)back;
		if (t == PEN_F16)
			back = pen__half_to_double(pen__double_to_half(back));
		if (!(back < v || back > v))
			return n;
	}
	return 17;
}

/* A number in its usual notation: integers with all digits, others with as
 * few as needed. */
static void number_text(enum pen_dtype t, const uint8_t *p, char *buf,
			size_t cap)
{
	const double v = pen__cells_number(t, p);
	int64_t i;

	if (t == PEN_BOOL) {
		snprintf(buf, cap, "%s", v != 0 ? "True" : "False");
	} else if (t == PEN_I64 || t == PEN_U64) {
		memcpy(&i, p, 8);
		if (t == PEN_I64)
			snprintf(buf, cap, "%" PRId64, i);
		else
			snprintf(buf, cap, "%" PRIu64, (uint64_t)i);
	} else if (fabs(v) < 1e15 && fabs(v - trunc(v)) <= 0) {
		snprintf(buf, cap, "%.0f", v);
	} else {
		snprintf(buf, cap, "%.*g", digits(t, v), v);
	}
}

int pen__cells_list_names(struct pen_cells_file *f,
			  const struct pen_cells_list *l, struct pen_buf *out)
{
	char text[40];

	if (l->text)
		pen__buf_put(out, l->data.p, l->data.n);
	for (uint64_t i = 0; !l->text && i < l->n; i++) {
		number_text(l->dtype, l->data.p + i * l->size, text,
			    sizeof(text));
		pen__cells_put_text(out, text, strlen(text));
	}
	return out->bad ? nomem(f, out->n) : 0;
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

int pen__cells_names(struct pen_cells_file *f,
		     const struct pen_cells_node *node, struct pen_buf *names,
		     uint64_t *n)
{
	struct pen_cells_node values = *node;
	char path[PATH_CAP];
	struct pen_cells_list l;
	int rc = 0;

	if (node->group) { /* names that may be missing */
		snprintf(path, sizeof(path), "%.480s/values", node->path);
		rc = pen__cells_need(f, path, &values);
	}
	if (rc >= 0)
		rc = pen__cells_list_open(f, &values, &l);
	if (rc < 0)
		return rc;
	*n = l.n;
	rc = l.n > INT32_MAX
		     ? pen__cells_refuse(f, P_OVER_LIMIT, node->path,
					 "too many names (2^31 or more)")
		     : pen__cells_list_names(f, &l, names);
	pen__cells_list_close(&l);
	return rc;
}

static int take_names(struct pen_cells_file *f, struct pen_cells_column *c,
		      const struct pen_cells_node *node)
{
	uint64_t n = 0;
	int rc = pen__cells_names(f, node, &c->names, &n);

	c->nnames = (uint32_t)n;
	return rc;
}

/* Converts codes of any width to int32. */
static int take_codes(struct pen_cells_file *f, struct pen_cells_column *c,
		      const struct pen_cells_list *l, const char *path)
{
	if (l->text || l->dtype >= PEN_F16)
		return pen__cells_refuse(f, P_DAMAGED, path,
					 "the codes are not integers");
	c->dtype = PEN_I32;
	c->coded = true;
	for (uint64_t i = 0; i < l->n; i++) {
		const double v =
			pen__cells_number(l->dtype, l->data.p + i * l->size);
		int32_t code = -1;

		if (v < -1 || v >= c->nnames)
			return pen__cells_refuse(
				f, P_BAD_DATA_VALUE, path,
				"row %" PRIu64
				" has code %g, but there are %" PRIu32
				" categories",
				i, v, c->nnames);
		if (v >= 0)
			code = (int32_t)v;
		pen__buf_put(&c->values, &code, 4);
	}
	return c->values.bad ? nomem(f, l->n * 4) : 0;
}

struct text {
	struct pen_span s; /* must be first: compared by qsort */
	uint64_t row;
};

static int by_text(const void *a, const void *b)
{
	return pen__cells_compare(*(const struct pen_span *)a,
				  *(const struct pen_span *)b);
}

/* mask: nonzero means missing; NULL: none is missing. */
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

/* Strings become codes of the sorted distinct strings. */
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
	rc = pen__cells_list_names(f, l, &all);
	b = pen__bytes(all.p, all.n);
	for (uint64_t i = 0; rc >= 0 && i < l->n; i++)
		if (pen__cells_next_name(&b, &s))
			t[i] = (struct text){ s, i };
	if (rc >= 0)
		rc = l->n > INT32_MAX
			     ? pen__cells_refuse(
				       f, P_OVER_LIMIT, path,
				       "too many strings (2^31 or more)")
			     : code_texts(f, c, t, l->n, mask);
	pen__free(t);
	pen__buf_fini(&all);
	return rc;
}

/* The list is the column itself. */
static int take_list(struct pen_cells_file *f, struct pen_cells_column *c,
		     struct pen_cells_list *l, const char *path)
{
	if (l->text)
		return take_texts(f, c, l, path, NULL);
	c->dtype = (uint8_t)l->dtype;
	c->values = l->data;
	l->data = (struct pen_buf){ 0 };
	return 0;
}

static int take_nullable(struct pen_cells_file *f, struct pen_cells_column *c,
			 const struct pen_cells_list *l,
			 const struct pen_cells_list *mask, const char *path)
{
	if (mask->text || mask->size != 1 || mask->n != l->n)
		return pen__cells_refuse(
			f, P_DAMAGED, path,
			"the mask does not have one boolean per row");
	if (l->text)
		return take_texts(f, c, l, path, mask->data.p);
	if (f->exact && l->dtype < PEN_F16) {
		c->nullable = true;
		c->dtype = (uint8_t)l->dtype;
		pen__buf_put(&c->mask, mask->data.p, mask->n);
		pen__buf_put(&c->values, l->data.p, l->data.n);
		return c->values.bad || c->mask.bad ? nomem(f, l->n * 8) : 0;
	}
	c->dtype = l->dtype == PEN_BOOL ? PEN_I8 : PEN_F64;
	for (uint64_t i = 0; i < l->n; i++) {
		const double v =
			pen__cells_number(l->dtype, l->data.p + i * l->size);
		const double x = mask->data.p[i] ? NAN : v;
		const int8_t b = mask->data.p[i] ? -1 : v != 0;

		if (l->dtype == PEN_BOOL)
			pen__buf_put(&c->values, &b, 1);
		else
			pen__buf_put(&c->values, &x, 8);
	}
	return c->values.bad ? nomem(f, l->n * 8) : 0;
}

static int open_at(struct pen_cells_file *f, const char *path,
		   struct pen_cells_list *l)
{
	struct pen_cells_node node;
	int rc = pen__cells_need(f, path, &node);

	return rc < 0 ? rc : pen__cells_list_open(f, &node, l);
}

/* Whether the object declares its categories as ordered. */
static int see_order_at(struct pen_cells_file *f, struct pen_cells_column *c,
			const struct pen_cells_node *node)
{
	char text[8];
	int rc = f->src->text_attr(f, node, "ordered", text, sizeof(text));

	c->ordered = rc >= 0 && strcmp(text, "True") == 0;
	return rc;
}

static int see_order(struct pen_cells_file *f, struct pen_cells_column *c,
		     const char *path)
{
	struct pen_cells_node node;
	int rc = pen__cells_need(f, path, &node);

	return rc < 0 ? rc : see_order_at(f, c, &node);
}

/* A group: {codes, categories} or {values, mask}. */
static int take_group(struct pen_cells_file *f, struct pen_cells_column *c,
		      const char *path)
{
	struct pen_cells_list l = { 0 }, mask = { 0 };
	struct pen_cells_node node;
	char part[PATH_CAP];
	int rc;

	snprintf(part, sizeof(part), "%.480s/codes", path);
	rc = f->src->find(f, part, &node);
	if (rc < 0)
		return rc;
	if (rc) {
		rc = see_order(f, c, path);
		if (rc >= 0)
			rc = pen__cells_list_open(f, &node, &l);
		snprintf(part, sizeof(part), "%.480s/categories", path);
		if (rc >= 0)
			rc = pen__cells_need(f, part, &node);
		if (rc >= 0)
			rc = take_names(f, c, &node);
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

/* A single list: numbers, strings, or codes with categories elsewhere. */
static int take_plain(struct pen_cells_file *f, struct pen_cells_column *c,
		      const struct pen_cells_node *node)
{
	struct pen_cells_list l;
	int rc = pen__cells_list_open(f, node, &l);

	if (rc < 0)
		return rc;
	if (l.coded) {
		rc = see_order_at(f, c, &l.categories);
		if (rc >= 0)
			rc = take_names(f, c, &l.categories);
		if (rc >= 0)
			rc = take_codes(f, c, &l, node->path);
	} else {
		rc = take_list(f, c, &l, node->path);
	}
	pen__cells_list_close(&l);
	return rc;
}

/* From the compound that obs was before 0.7. */
static int take_member(struct pen_cells_file *f, struct pen_cells_column *c,
		       const struct pen_cells_node *frame)
{
	struct pen_cells_list l = { 0 };
	struct pen_cells_node node;
	char names[PATH_CAP];
	int rc = f->src->list(f, frame, c->name, &l);

	if (rc < 0)
		return rc;
	rc = 0;
	if (!l.text && l.dtype < PEN_F16) {
		snprintf(names, sizeof(names), "uns/%.300s_categories",
			 c->name);
		rc = f->src->find(f, names, &node);
	}
	if (rc > 0) {
		rc = take_names(f, c, &node);
		if (rc >= 0)
			rc = take_codes(f, c, &l, frame->path);
	} else if (rc == 0) {
		rc = take_list(f, c, &l, frame->path);
	}
	pen__cells_list_close(&l);
	return rc;
}

/* Suggests the nearest name, or inspect. */
static int no_column(const struct pen_cells_file *f, const char *frame,
		     const char *name)
{
	struct pen_near near = pen__near(name, strlen(name));
	struct pen_cells_file mine = *f;
	struct pen_buf list = { 0 };
	struct pen_err why = { 0 };
	struct pen_span s, kind;
	struct pen_bytes b;

	mine.err = &why;
	(void)!pen__cells_columns_list(&mine, frame, &list);
	b = pen__bytes(list.p, list.n);
	while (pen__cells_next_name(&b, &s) && pen__cells_next_name(&b, &kind))
		pen__near_see(&near, s.p, s.n);
	pen__buf_fini(&list);
	return pen__cells_refuse(
		f, P_NO_SUCH_PART, frame, "no column '%s'%s", name,
		*near.best ? pen__near_text(&near).s
			   : "; `penstock inspect` lists them");
}

static int take_column(struct pen_cells_file *f, const char *frame,
		       struct pen_cells_column *c)
{
	struct pen_cells_node node;
	char path[PATH_CAP];
	int rc = pen__cells_need(f, frame, &node);

	if (rc < 0)
		return rc;
	if (!node.group)
		return take_member(f, c, &node);
	snprintf(path, sizeof(path), "%.100s/%.300s", frame, c->name);
	rc = f->src->find(f, path, &node);
	if (rc == 0)
		return no_column(f, frame, c->name);
	if (rc < 0)
		return rc;
	return node.group ? take_group(f, c, path) : take_plain(f, c, &node);
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
		return pen__cells_refuse(
			f, P_OVER_LIMIT, frame,
			"the column name '%s' is longer than %zu bytes", name,
			sizeof(c->name) - 1);
	memcpy(c->name, name, strlen(name));
	rc = take_column(f, frame, c);
	if (rc < 0)
		return rc;
	size = pen_dtype_size((enum pen_dtype)c->dtype);
	if (c->values.n / size != n)
		return pen__cells_refuse(
			f, P_DAMAGED, frame,
			"column '%s' has %zu values, but there are %" PRIu64
			" rows",
			name, c->values.n / size, n);
	return 0;
}

void pen__cells_column_close(struct pen_cells_column *c)
{
	pen__buf_fini(&c->names);
	pen__buf_fini(&c->values);
	pen__buf_fini(&c->mask);
}
