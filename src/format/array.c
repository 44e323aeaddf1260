/*
 * Arrays seen as samples: counting samples, locating their bytes, comparing
 * them across files. Everything that depends only on a file is computed once
 * here, so that locate() is a lookup. Rejects 0-d arrays along an axis, and
 * samples of 0 bytes, which would let a tiny file claim any number of samples.
 */
#include "format/array.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/mem.h"

const char *const pen__samples_choices[] = { "auto", "file", "first", "last",
					     NULL };

int pen__array_samples(const struct pen_array *a, enum pen_samples mode,
		       uint64_t *out, const char *where, struct pen_err *err)
{
	*out = 1;
	if (mode == PEN_SAMPLES_FILE)
		return 0;
	if (!a->ndim)
		return pen__fail(err, P_BAD_VALUE, where,
				 "a 0-d array has no %s axis to take samples "
				 "from; set format.samples=file",
				 pen__samples_choices[mode]);
	*out = (uint64_t)a->shape[mode == PEN_SAMPLES_FIRST ? 0 : a->ndim - 1];
	return 0;
}

static int grow(void **p, size_t *cap, size_t need, size_t size)
{
	size_t n = *cap;
	void *q;

	if (need <= n)
		return 0;
	n = n < 16 ? 16 : n;
	while (n < need)
		if (!pen__mul(n, 2, &n))
			return PEN_ENOMEM;
	q = pen__realloc(*p, n, size);
	if (!q)
		return PEN_ENOMEM;
	*p = q;
	*cap = n;
	return 0;
}

/* The shape is set; computes sizes, steps and flags. */
static void view_finish(struct pen_view *v, const int64_t *shape,
			enum pen_samples mode)
{
	const uint64_t item = pen_dtype_size(v->dtype);
	bool across;
	unsigned wide = 0; /* axes longer than 1 */

	v->row = item;
	for (unsigned i = 0; i < v->ndim; i++) {
		v->row *= (uint64_t)shape[i];
		wide += shape[i] > 1;
	}
	/* samples are along the axis that varies fastest in the file */
	across = mode == (v->fortran ? PEN_SAMPLES_FIRST : PEN_SAMPLES_LAST);
	v->strided = across && v->n > 1 && v->row > item;
	v->step = v->strided ? item : v->row;
	v->plain = !v->strided && !v->swap && (!v->fortran || wide < 2);
}

int pen__views_add(struct pen_views *vs, const struct pen_array *a,
		   enum pen_samples mode)
{
	const bool first = mode == PEN_SAMPLES_FIRST;
	const uint32_t nd = a->ndim - (mode != PEN_SAMPLES_FILE);
	struct pen_view *v;
	void *p = vs->v, *d = vs->dims;
	int rc = grow(&p, &vs->cap, vs->n + 1, sizeof(*vs->v));

	vs->v = p;
	if (!rc)
		rc = grow(&d, &vs->cap_dims, vs->ndims + nd + 1,
			  sizeof(*vs->dims));
	vs->dims = d;
	if (rc)
		return rc;
	v = &vs->v[vs->n++];
	*v = (struct pen_view){
		.at = a->at,
		.nbytes = a->nbytes,
		.n = 1,
		.dims = vs->ndims,
		.ndim = (uint8_t)nd,
		.dtype = (uint8_t)a->dtype,
		.swap = a->swap,
		.fortran = a->fortran,
	};
	if (mode != PEN_SAMPLES_FILE)
		v->n = (uint64_t)a->shape[first ? 0 : nd];
	memcpy(vs->dims + v->dims, a->shape + first, nd * sizeof(int64_t));
	vs->ndims += nd;
	view_finish(v, vs->dims + v->dims, mode);
	return 0;
}

bool pen__views_fold(struct pen_views *vs, size_t i)
{
	const struct pen_view *a = &vs->v[i], *b = &vs->v[vs->n - 1];

	if (a->at != b->at || a->nbytes != b->nbytes || a->n != b->n ||
	    a->row != b->row || a->step != b->step || a->ndim != b->ndim ||
	    a->dtype != b->dtype || a->swap != b->swap ||
	    a->fortran != b->fortran || a->strided != b->strided ||
	    memcmp(vs->dims + a->dims, vs->dims + b->dims,
		   a->ndim * sizeof(int64_t)) != 0)
		return false;
	vs->ndims = b->dims;
	vs->n--;
	return true;
}

void pen__views_fini(struct pen_views *vs)
{
	pen__free(vs->v);
	pen__free(vs->dims);
	*vs = (struct pen_views){ 0 };
}

void pen__shape_text(const int64_t *shape, uint32_t ndim, char *buf, size_t cap)
{
	size_t n = 0;

	snprintf(buf, cap, "scalar");
	for (uint32_t i = 0; i < ndim && n < cap; i++)
		n += (size_t)snprintf(buf + n, cap - n, "%s%" PRId64,
				      i ? "x" : "", shape[i]);
}

int pen__field_widen(struct pen_field *fd, enum pen_seen *seen,
		     const struct pen_view *v, const int64_t *shape, char *why,
		     size_t cap)
{
	char a[64], b[64];

	if (*seen != PEN_SEEN_NONE && !v->n)
		return 0;
	if (*seen != PEN_SEEN_SAMPLES) {
		fd->dtype = v->dtype;
		fd->ndim = v->ndim;
		fd->layout = PEN_DENSE;
		memcpy(fd->shape, shape, v->ndim * sizeof(*shape));
		fd->max_bytes = v->n ? v->row : 0;
		*seen = v->n ? PEN_SEEN_SAMPLES : PEN_SEEN_EMPTY;
		return 0;
	}
	if (fd->dtype != v->dtype) {
		snprintf(why, cap, "the dtype is %s, but %s in earlier files",
			 pen_dtype_name(v->dtype), pen_dtype_name(fd->dtype));
		return 1;
	}
	if (fd->ndim != v->ndim) {
		pen__shape_text(shape, v->ndim, a, sizeof(a));
		pen__shape_text(fd->shape, fd->ndim, b, sizeof(b));
		snprintf(why, cap,
			 "samples have %u axes (%s), but %u (%s) in earlier "
			 "files",
			 v->ndim, a, fd->ndim, b);
		return 1;
	}
	for (unsigned i = 0; i < v->ndim; i++) {
		if (fd->shape[i] == shape[i] || fd->shape[i] == -1)
			continue;
		fd->shape[i] = -1;
		fd->layout = PEN_PADDED;
	}
	if (v->row > fd->max_bytes)
		fd->max_bytes = v->row;
	return 0;
}

void pen__blob_name(const struct pen_index *ix, uint64_t blob, char *buf,
		    size_t cap)
{
	if (cap)
		buf[0] = '\0';
	for (uint64_t i = 0; i < ix->nobjects; i++) {
		if (ix->blob_of(ix, i) != blob)
			continue;
		ix->name_of(ix, i, buf, cap);
		return;
	}
}

int pen__object_fail(const struct pen_format *f, int kind, uint32_t object,
		     const char *member, const char *what, struct pen_err *err)
{
	char name[256], where[336];

	f->ix->name_of(f->ix, object, name, sizeof(name));
	snprintf(where, sizeof(where), "%s%s%s%s", name, member ? ":" : "",
		 member ? member : "", member ? ".npy" : "");
	return pen__fail(err, kind, where, "%s", what);
}

int pen__view_emit(const struct pen_format *f, const struct pen_row *r,
		   uint32_t i, const struct pen_view *v, const int64_t *shape,
		   struct pen_err *err)
{
	const uint64_t first = v->strided ? r->k * v->step : 0;

	if (r->data[i].n != r->units[i].len || r->dst_len[i] != v->row ||
	    first + pen__view_span(v) > r->data[i].n)
		return pen__object_fail(
			f, P_DAMAGED, r->units[i].object, NULL,
			"the bytes read do not match the sample size", err);
	pen__view_copy(v, shape, r->data[i].p + first, r->dst[i]);
	return 0;
}
