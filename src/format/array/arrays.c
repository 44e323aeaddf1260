/*
 * NumPy arrays that are fields of the same samples: x.npy and y.npy, or all
 * arrays of a TensorStore. Sample i is row i of each. As with npy, rows stored
 * as the batch needs them are read straight into it.
 *
 * The samples belong to one object: the first array, or store.json of the
 * store. Several stores form one data set if their arrays match. npy_fields.c
 * decides which folders of npy files have this format.
 */
#include "format/array/arrays.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/mem.h"
#include "format/value.h"

enum { BLOB_ARRAY = 1, BLOB_STORE = 2 };

static const char *const trailing_choices[] = { "error", "ignore", NULL };

static const struct pen_opt arrays_opts[] = {
	{ .name = "fields",
	  .type = PEN_OPT_STR,
	  .off = offsetof(struct pen_arrays, fields),
	  .help = "arrays to read, separated by commas (default: all)" },
	{ .name = "trailing",
	  .type = PEN_OPT_ENUM,
	  .off = offsetof(struct pen_arrays, trailing),
	  .dflt = "error",
	  .help = "what to do with bytes after an array",
	  .choices = trailing_choices },
	{ .name = NULL },
};

static void arrays_close(struct pen_format *f)
{
	struct pen_arrays *p = f->priv;

	pen__views_fini(&p->views);
	pen__free(p->column);
	pen__free(p->group);
	p->column = NULL;
	p->group = NULL;
}

/* ---- index ---- */

void pen__named_array_put(struct pen_buf *b, const struct pen_named_array *a)
{
	pen__buf_le(b, strlen(a->name), 1);
	pen__buf_put(b, a->name, strlen(a->name));
	pen__buf_le(b, a->object, 4);
	pen__npy_put(b, &a->npy);
}

bool pen__named_array_take(struct pen_bytes *b, struct pen_named_array *a)
{
	const unsigned n = pen__take_u8(b);

	if (!n || n >= sizeof(a->name) || pen__bytes_left(b) < n)
		return false;
	memset(a->name, 0, sizeof(a->name));
	memcpy(a->name, pen__take(b, n), n);
	a->object = pen__take_u32(b);
	return pen__npy_take(b, &a->npy) && a->npy.a.ndim;
}

bool pen__arrays_wants(const struct pen_arrays *p, const char *name)
{
	return !p->fields || pen__in_list(p->fields, name, strlen(name)) >= 0;
}

int pen__arrays_header(const struct pen_arrays *p, struct pen_peek *pk,
		       struct pen_npy *out, struct pen_err *err)
{
	uint64_t n;
	int rc = pen__npy_read(pk, out, err);

	if (!rc && out->extra && !p->trailing)
		rc = pen__fail(err, P_DAMAGED, pk->name,
			       "%" PRIu64 " bytes follow the array; set "
			       "format.trailing=ignore to skip them",
			       out->extra);
	if (!rc)
		rc = pen__array_samples(&out->a, PEN_SAMPLES_FIRST, &n,
					pk->name, err);
	if (!rc && n && !out->a.nbytes)
		rc = pen__fail(err, P_DAMAGED, pk->name,
			       "the array has %" PRIu64 " rows of 0 bytes each",
			       n);
	return rc;
}

/* The name of a field is that of the file, without .npy. */
static int name_of_file(const char *path, char *name, size_t cap,
			struct pen_err *err)
{
	const char *slash = strrchr(path, '/');
	const char *base = slash ? slash + 1 : path;
	size_t n = strlen(base);

	if (n > 4 && strcmp(base + n - 4, ".npy") == 0)
		n -= 4;
	if (!n || n >= cap)
		return pen__fail(err, P_TOO_LONG, path,
				 "the file name is too long for a field name "
				 "(at most %zu bytes)",
				 cap - 1);
	memset(name, 0, cap);
	memcpy(name, base, n);
	return 0;
}

/* The object that owns the samples: the first requested array. */
static uint32_t lead_of(const struct pen_arrays *p, struct pen_peek *pk)
{
	const char *s = p->fields;
	uint32_t lead = UINT32_MAX, o;
	char path[128];
	uint64_t size;

	for (size_t n; s && *s; s += n + (s[n] == ',')) {
		n = strcspn(s, ",");
		snprintf(path, sizeof(path), "%.*s.npy", n < 100 ? (int)n : 100,
			 s);
		if (pk->find && pk->find(pk, path, &o, &size) && o < lead)
			lead = o;
	}
	return lead < UINT32_MAX ? lead : 0;
}

static int arrays_index(const struct pen_format *f, struct pen_peek *pk,
			struct pen_found *found, struct pen_err *err)
{
	const struct pen_arrays *p = f->priv;
	struct pen_named_array a = { .object = pk->object };
	const char *slash = strrchr(pk->name, '/');
	int rc;

	if (strcmp(slash ? slash + 1 : pk->name, PEN_TENSOR_STORE) == 0) {
		pen__buf_le(&found->blob, BLOB_STORE, 1);
		return pen__tensor_store_index(p, pk, found, err);
	}
	if (pen__tensor_store_has(pk))
		return 0; /* store.json lists it if it is part of the store */
	rc = name_of_file(pk->name, a.name, sizeof(a.name), err);
	if (rc || !pen__arrays_wants(p, a.name))
		return rc;
	rc = pen__arrays_header(p, pk, &a.npy, err);
	if (rc)
		return rc;
	pen__buf_le(&found->blob, BLOB_ARRAY, 1);
	pen__named_array_put(&found->blob, &a);
	if (pk->object == lead_of(p, pk))
		found->nsamples = (uint64_t)a.npy.a.shape[0];
	return found->blob.bad ? pen__fail_nomem(err, pk->name, 64) : 0;
}

/* ---- bind ---- */

struct binder {
	struct pen_format *f;
	const struct pen_index *ix;
	struct pen_err *err;
	uint32_t group;
	uint64_t rows;	  /* of the arrays of the group */
	uint32_t rows_of; /* the object they were taken from */
	uint32_t nhere;	  /* arrays of the group so far */
	enum pen_seen seen[PEN_MAX_FIELDS];
};

static int damaged(struct pen_err *err)
{
	return pen__fail(err, P_BAD_INDEX, "arrays",
			 "the index entry is damaged");
}

static int misfit(const struct binder *b, int kind, uint32_t object,
		  const char *why)
{
	char name[256];

	b->ix->name_of(b->ix, object, name, sizeof(name));
	return pen__fail(b->err, kind, name, "%s", why);
}

/* The field of that name; arrays of the first group define the fields. */
static int field_of(struct binder *b, const struct pen_named_array *a,
		    uint32_t *out)
{
	struct pen_format *f = b->f;

	for (*out = 0; *out < f->nfields; ++*out)
		if (strcmp(f->field[*out].name, a->name) == 0)
			return b->group ? 0
					: misfit(b, P_DAMAGED, a->object,
						 "another array has the same "
						 "name");
	if (b->group)
		return misfit(b, P_FILES_DISAGREE, a->object,
			      "earlier stores do not contain this array; list "
			      "the arrays to read with fields=");
	if (f->nfields == PEN_MAX_FIELDS)
		return misfit(b, P_OVER_LIMIT, a->object,
			      "a data set has at most 64 arrays as fields; "
			      "list the arrays to read with fields=, or set "
			      "format=npy to read files as samples");
	f->field[f->nfields] = (struct pen_field){ 0 };
	memcpy(f->field[f->nfields++].name, a->name, sizeof(a->name));
	return 0;
}

static int check_rows(struct binder *b, const struct pen_named_array *a)
{
	const uint64_t n = (uint64_t)a->npy.a.shape[0];
	char name[100], why[256];

	if (!b->nhere++) {
		b->rows = n;
		b->rows_of = a->object;
	}
	if (n == b->rows)
		return 0;
	b->ix->name_of(b->ix, b->rows_of, name, sizeof(name));
	snprintf(why, sizeof(why),
		 "the array has %" PRIu64 " rows, but %s has %" PRIu64
		 "; all fields must have the same number",
		 n, name, b->rows);
	return misfit(b, P_FILES_DISAGREE, a->object, why);
}

static int add_array(struct binder *b, const struct pen_named_array *a)
{
	struct pen_arrays *p = b->f->priv;
	const struct pen_view *v;
	struct pen_column *c;
	char why[192];
	uint32_t i;
	int rc = check_rows(b, a);

	if (!rc)
		rc = field_of(b, a, &i);
	if (rc)
		return rc;
	if (pen__views_add(&p->views, &a->npy.a, PEN_SAMPLES_FIRST))
		return pen__fail_nomem(b->err, "arrays", sizeof(*v));
	c = &p->column[(size_t)b->group * PEN_MAX_FIELDS + i];
	*c = (struct pen_column){ a->object, p->views.n - 1 };
	v = &p->views.v[c->view];
	if (pen__field_widen(&b->f->field[i], &b->seen[i], v,
			     p->views.dims + v->dims, why, sizeof(why)))
		return misfit(b, P_FILES_DISAGREE, a->object, why);
	return 0;
}

/* Whether the object is in the folder of the first array. */
static bool in_first_folder(const struct binder *b, uint32_t object)
{
	char one[4096], other[4096], *slash;

	b->ix->name_of(b->ix, b->rows_of, one, sizeof(one));
	b->ix->name_of(b->ix, object, other, sizeof(other));
	slash = strrchr(one, '/');
	if (slash)
		slash[1] = '\0';
	else
		one[0] = '\0';
	return strncmp(one, other, strlen(one)) == 0 &&
	       !strchr(other + strlen(one), '/');
}

/* The arrays of one blob: one, or all of a store. */
static int add_blob(struct binder *b, uint32_t object, unsigned *kind)
{
	const struct pen_span s =
		b->ix->blob(b->ix, b->ix->blob_of(b->ix, object));
	struct pen_bytes in = pen__bytes(s.p, s.n);
	struct pen_named_array a;
	unsigned n = 1;
	int rc = 0;

	*kind = s.n ? pen__take_u8(&in) : 0;
	if (!*kind)
		return 0;
	if (*kind == BLOB_STORE)
		n = pen__take_u8(&in);
	else if (*kind != BLOB_ARRAY)
		return damaged(b->err);
	for (unsigned i = 0; !rc && i < n; i++) {
		if (!pen__named_array_take(&in, &a) ||
		    a.object >= b->ix->nobjects)
			return damaged(b->err);
		/* an unreadable array has the blob of another */
		if (*kind == BLOB_ARRAY && a.object != object)
			return misfit(
				b, P_DAMAGED, object,
				"the array cannot be read, and a field cannot "
				"be skipped; check it with `penstock verify`, "
				"or list the other arrays with fields=");
		if (*kind == BLOB_ARRAY && b->nhere &&
		    !in_first_folder(b, object))
			return misfit(
				b, P_FILES_DISAGREE, object,
				"the array is not in the directory of the "
				"earlier arrays; all fields must be in "
				"one directory or in one TensorStore");
		rc = add_array(b, &a);
	}
	return rc;
}

static int check_group(struct binder *b, uint32_t object)
{
	if (b->nhere == b->f->nfields)
		return 0;
	return misfit(b, P_FILES_DISAGREE, object,
		      "the store lacks an array that earlier stores contain; "
		      "list the arrays to read with fields=");
}

/* Every store is a group; separate arrays form one group. */
static int add_all(struct binder *b)
{
	struct pen_arrays *p = b->f->priv;
	uint32_t narrays = 0;
	unsigned kind;
	int rc = 0;

	for (uint32_t o = 0; !rc && o < b->ix->nobjects; o++) {
		rc = add_blob(b, o, &kind);
		if (!rc && kind == BLOB_STORE) {
			p->group[o] = b->group;
			rc = check_group(b, o);
			b->group++;
			b->nhere = 0;
		}
		narrays += kind == BLOB_ARRAY;
		p->stores |= kind == BLOB_STORE;
		if (!rc && narrays && p->stores)
			rc = misfit(b, P_FILES_DISAGREE, o,
				    "arrays next to the directory of a "
				    "TensorStore are not part of it; specify "
				    "either the store or the arrays");
	}
	p->ngroups = p->stores ? b->group : 1;
	return rc;
}

/* Only the file names of arrays that are not requested are known. */
static int no_array(const struct pen_format *f, const char *name, size_t n,
		    struct pen_err *err)
{
	struct pen_near near = pen__near(name, n);
	char path[4096];

	for (uint64_t i = 0; i < f->ix->nobjects; i++) {
		const char *slash, *dot;

		f->ix->name_of(f->ix, i, path, sizeof(path));
		slash = strrchr(path, '/');
		slash = slash ? slash + 1 : path;
		dot = strrchr(slash, '.');
		pen__near_see(&near, slash,
			      dot ? (size_t)(dot - slash) : strlen(slash));
	}
	return pen__fail(err, P_NO_SUCH_PART, "fields",
			 "there is no array '%.*s'%s", n < 100 ? (int)n : 100,
			 name, pen__near_text(&near).s);
}

static int check_fields(const struct pen_format *f, struct pen_err *err)
{
	const struct pen_arrays *p = f->priv;
	const char *s = p->fields;

	if (!f->nfields && !s)
		return pen__fail(err, P_NOT_FOUND, "arrays", "no arrays found");
	for (size_t n; s && *s; s += n + (s[n] == ',')) {
		uint32_t i = 0;

		n = strcspn(s, ",");
		while (i < f->nfields && (strlen(f->field[i].name) != n ||
					  memcmp(f->field[i].name, s, n)))
			i++;
		if (i == f->nfields)
			return no_array(f, s, n, err);
	}
	return 0;
}

static void settle_kind(struct pen_format *f)
{
	const struct pen_arrays *p = f->priv;

	f->units_per_sample = f->nfields;
	f->all_plain = true;
	f->uniform = false;
	for (size_t i = 0; i < p->views.n; i++) {
		f->all_plain &= p->views.v[i].plain;
		f->shares |= p->views.v[i].strided;
	}
}

static int arrays_bind(struct pen_format *f, const struct pen_index *ix,
		       struct pen_err *err)
{
	struct pen_arrays *p = f->priv;
	struct binder b = { .f = f, .ix = ix, .err = err };
	size_t groups = 1;
	int rc;

	arrays_close(f);
	f->ix = ix;
	f->nfields = 0;
	f->shares = p->stores = false;
	for (uint64_t o = 0; o < ix->nobjects; o++) {
		const struct pen_span s = ix->blob(ix, ix->blob_of(ix, o));

		groups += s.n && s.p[0] == BLOB_STORE;
	}
	p->group = pen__calloc(ix->nobjects, sizeof(*p->group));
	p->column = pen__calloc(groups * PEN_MAX_FIELDS, sizeof(*p->column));
	if (!p->group || !p->column)
		return pen__fail_nomem(err, "arrays", ix->nobjects * 4);
	rc = add_all(&b);
	if (!rc)
		rc = check_fields(f, err);
	if (!rc)
		settle_kind(f);
	return rc;
}

/* ---- samples ---- */

static const struct pen_column *columns(const struct pen_format *f,
					uint32_t object)
{
	const struct pen_arrays *p = f->priv;

	return p->column + (size_t)p->group[object] * PEN_MAX_FIELDS;
}

static void arrays_shape(const struct pen_format *f, uint32_t object,
			 uint64_t k, uint32_t field, int64_t *shape)
{
	const struct pen_arrays *p = f->priv;
	const struct pen_view *v = &p->views.v[columns(f, object)[field].view];

	(void)k;
	memcpy(shape, p->views.dims + v->dims, v->ndim * sizeof(*shape));
}

static void arrays_locate(const struct pen_format *f, uint32_t object,
			  uint64_t k, struct pen_unit *units)
{
	const struct pen_arrays *p = f->priv;
	const struct pen_column *c = columns(f, object);

	for (uint32_t i = 0; i < f->nfields; i++) {
		units[i] =
			pen__view_unit(&p->views.v[c[i].view], c[i].object, k);
		units[i].field = (uint16_t)i;
	}
}

static int arrays_emit(const struct pen_format *f, const struct pen_row *r,
		       struct pen_err *err)
{
	const struct pen_arrays *p = f->priv;
	const struct pen_column *c = columns(f, r->object);

	for (uint32_t i = 0; i < f->nfields; i++) {
		const struct pen_view *v = &p->views.v[c[i].view];
		int rc = 0;

		if (!v->plain) /* else already in its row */
			rc = pen__view_emit(f, r, i, v, p->views.dims + v->dims,
					    err);
		if (rc)
			return rc;
	}
	return 0;
}

static void arrays_describe(const struct pen_format *f, struct pen_describe *d)
{
	const struct pen_arrays *p = f->priv;
	bool swap = false, transposed = false, strided = false;
	char text[32];

	for (size_t i = 0; i < p->views.n; i++) {
		swap |= p->views.v[i].swap;
		transposed |= p->views.v[i].fortran && !p->views.v[i].plain;
		strided |= p->views.v[i].strided;
	}
	if (p->stores) {
		snprintf(text, sizeof(text), "%u", p->ngroups);
		d->fact(d->arg, "TensorStores", text);
	}
	d->fact(d->arg, "a field is", "an array, a sample a row of each");
	d->fact(d->arg, "byte order", swap ? "big-endian" : "little-endian");
	d->fact(d->arg, "memory order", transposed ? "Fortran" : "C");
	d->fact(d->arg, "compression", "none");
	if (strided)
		d->advice(d->arg,
			  "an array is in Fortran order: each read touches the "
			  "whole file; save arrays in C order");
	if (swap)
		d->advice(d->arg, "big-endian data is byte-swapped on every "
				  "read; save little-endian arrays");
}

static const char *const markers[] = { PEN_TENSOR_STORE, NULL };

const struct pen_format_ops pen__format_arrays = {
	.name = "arrays",
	.help = "NumPy arrays of one directory, one field each (x.npy, y.npy), "
		"or "
		"a TensorStore",
	.markers = markers,
	.marks = pen__tensor_store_marks,
	.opts = arrays_opts,
	.priv_size = sizeof(struct pen_arrays),
	.close = arrays_close,
	.index = arrays_index,
	.bind = arrays_bind,
	.shape = arrays_shape,
	.locate = arrays_locate,
	.emit = arrays_emit,
	.describe = arrays_describe,
};
