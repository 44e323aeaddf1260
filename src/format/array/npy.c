/*
 * NumPy's npy: one array per file. A sample that is stored as the batch needs
 * it is read straight into it; otherwise emit() swaps, transposes or gathers.
 * Rejects Python objects, strings, dates and records by name.
 */
#include "format/array/npy.h"

#include <inttypes.h>
#include <stdio.h>

struct npy {
	int samples;		/* enum pen_samples */
	int trailing;		/* 0: an error */
	uint8_t major;		/* of the first blob, for describe() */
	struct pen_views views; /* by blob id */
};

static const char *const trailing_choices[] = { "error", "ignore", NULL };

static const struct pen_opt npy_opts[] = {
	{ .name = "samples",
	  .type = PEN_OPT_ENUM,
	  .off = offsetof(struct npy, samples),
	  .dflt = "auto",
	  .help = "what a sample is: the file, or an entry along the first or "
		  "last axis",
	  .choices = pen__samples_choices },
	{ .name = "trailing",
	  .type = PEN_OPT_ENUM,
	  .off = offsetof(struct npy, trailing),
	  .dflt = "error",
	  .help = "what to do with bytes after the array",
	  .choices = trailing_choices },
	{ .name = NULL },
};

static void npy_close(struct pen_format *f)
{
	struct npy *p = f->priv;

	pen__views_fini(&p->views);
}

static int npy_index(const struct pen_format *f, struct pen_peek *pk,
		     struct pen_found *found, struct pen_err *err)
{
	const struct npy *p = f->priv;
	int mode = p->samples;
	struct pen_npy h;
	int rc = pen__npy_read(pk, &h, err);

	if (rc < 0)
		return rc;
	if (h.extra && !p->trailing)
		return pen__fail(
			err, P_DAMAGED, pk->name,
			"%" PRIu64
			" bytes follow the array, perhaps more arrays; set "
			"format.trailing=ignore to read only the first",
			h.extra);
	if (mode == PEN_SAMPLES_AUTO)
		mode = f->nobjects_hint == 1 && h.a.ndim ? PEN_SAMPLES_FIRST
							 : PEN_SAMPLES_FILE;
	rc = pen__array_samples(&h.a, (enum pen_samples)mode, &found->nsamples,
				pk->name, err);
	if (rc < 0)
		return rc;
	if (mode != PEN_SAMPLES_FILE && found->nsamples && !h.a.nbytes)
		return pen__fail(err, P_DAMAGED, pk->name,
				 "the array has %" PRIu64
				 " samples of 0 bytes each",
				 found->nsamples);
	pen__buf_le(&found->blob, (unsigned)mode, 1);
	pen__npy_put(&found->blob, &h);
	return found->blob.bad ? pen__fail_nomem(err, pk->name, 64) : 0;
}

static int npy_together(const struct pen_format *f, const struct pen_index *ix,
			uint64_t nbad, const char **other, struct pen_err *err)
{
	const struct npy *p = f->priv;

	*other = NULL;
	return p->samples == PEN_SAMPLES_AUTO
		       ? pen__npy_together(ix, nbad, other, err)
		       : 0;
}

static int npy_add(struct pen_format *f, const struct pen_index *ix,
		   uint64_t blob, enum pen_seen *seen, struct pen_err *err)
{
	const struct pen_span s = ix->blob(ix, blob);
	struct pen_bytes b = pen__bytes(s.p, s.n);
	struct npy *p = f->priv;
	const struct pen_view *v;
	const int64_t *shape;
	char name[256], why[192];
	unsigned mode = pen__take_u8(&b);
	struct pen_npy h;

	if (!pen__npy_take(&b, &h) || mode < PEN_SAMPLES_FILE ||
	    mode >= PEN_NSAMPLES || (mode != PEN_SAMPLES_FILE && !h.a.ndim))
		return pen__fail(err, P_BAD_INDEX, "npy",
				 "the index entry is damaged");
	if (pen__views_add(&p->views, &h.a, (enum pen_samples)mode) < 0)
		return pen__fail_nomem(err, "npy", sizeof(*v));
	v = &p->views.v[blob];
	shape = p->views.dims + v->dims;
	if (!blob)
		p->major = h.major;
	if (!pen__field_widen(&f->field[0], seen, v, shape, why, sizeof(why)))
		return 0;
	pen__blob_name(ix, blob, name, sizeof(name));
	return pen__fail(err, P_FILES_DISAGREE, name,
			 "%s; if the arrays are fields of the same samples, "
			 "set format=arrays",
			 why);
}

static int npy_bind(struct pen_format *f, const struct pen_index *ix,
		    struct pen_err *err)
{
	struct npy *p = f->priv;
	enum pen_seen seen = PEN_SEEN_NONE;
	int rc;

	pen__views_fini(&p->views);
	f->ix = ix;
	f->nfields = f->units_per_sample = 1;
	f->field[0] = (struct pen_field){ .name = "x" };
	for (uint64_t i = 0; i < ix->nblobs; i++) {
		rc = npy_add(f, ix, i, &seen, err);
		if (rc < 0)
			return rc;
	}
	f->all_plain = true;
	f->uniform = f->field[0].layout == PEN_DENSE;
	for (size_t i = 0; i < p->views.n; i++) {
		const struct pen_view *v = &p->views.v[i];

		f->all_plain &= v->plain;
		f->uniform &= v->row == p->views.v[0].row;
	}
	f->uniform &= f->all_plain;
	return 0;
}

static const struct pen_view *view_of(const struct pen_format *f,
				      uint32_t object)
{
	const struct npy *p = f->priv;

	return &p->views.v[f->ix->blob_of(f->ix, object)];
}

static void npy_shape(const struct pen_format *f, uint32_t object, uint64_t k,
		      uint32_t field, int64_t *shape)
{
	const struct npy *p = f->priv;
	const struct pen_view *v = view_of(f, object);

	(void)k;
	(void)field;
	memcpy(shape, p->views.dims + v->dims, v->ndim * sizeof(*shape));
}

static void npy_locate(const struct pen_format *f, uint32_t object, uint64_t k,
		       struct pen_unit *u)
{
	*u = pen__view_unit(view_of(f, object), object, k);
}

static int npy_emit(const struct pen_format *f, const struct pen_row *r,
		    struct pen_err *err)
{
	const struct npy *p = f->priv;
	const struct pen_view *v = view_of(f, r->object);

	return pen__view_emit(f, r, 0, v, p->views.dims + v->dims, err);
}

static void npy_describe(const struct pen_format *f, struct pen_describe *d)
{
	const struct npy *p = f->priv;
	const struct pen_views *vs = &p->views;
	bool swap = false, fortran = false, strided = false, unaligned = false;
	char text[32];

	for (size_t i = 0; i < vs->n; i++) {
		swap |= vs->v[i].swap;
		fortran |= vs->v[i].fortran && !vs->v[i].plain;
		strided |= vs->v[i].strided;
		unaligned |= vs->v[i].at % 64 != 0;
	}
	snprintf(text, sizeof(text), "%u.0", p->major);
	d->fact(d->arg, "version", text);
	d->fact(d->arg, "byte order", swap ? "big-endian" : "little-endian");
	d->fact(d->arg, "memory order", fortran ? "Fortran" : "C");
	d->fact(d->arg, "compression", "none");
	d->fact(d->arg, "data alignment", unaligned ? "none" : "64 bytes");
	if (strided)
		d->advice(d->arg, "samples are strided: each read touches the "
				  "whole file; store samples along the first "
				  "axis in C order");
	if (fortran && !strided)
		d->advice(d->arg, "arrays in Fortran order are transposed on "
				  "every read; save them in C order");
	if (swap)
		d->advice(d->arg, "big-endian data is byte-swapped on every "
				  "read; save little-endian arrays");
	if (unaligned)
		d->advice(d->arg, "data is not 64-byte aligned; NumPy 1.14 "
				  "and later align it");
}

static int npy_write(const struct pen_format *f, const struct pen_table *t,
		     struct pen_out *out, struct pen_err *err)
{
	const struct npy *p = f->priv;
	enum pen_samples mode;
	int rc;

	if (t->nfields != 1)
		return pen__fail(err, P_CANNOT_WRITE_THIS, "npy",
				 "the format stores one array, not %u; use npz",
				 t->nfields);
	rc = pen__npy_write_mode(t, p->samples, &mode, err);
	return rc < 0 ? rc : pen__npy_write(t, 0, mode, out, err);
}

static const char *const npy_suffixes[] = { ".npy", NULL };

const struct pen_format_ops pen__format_npy = {
	.name = "npy",
	.help = "NumPy array file",
	.suffixes = npy_suffixes,
	.family = "arrays",
	.opts = npy_opts,
	.priv_size = sizeof(struct npy),
	.close = npy_close,
	.index = npy_index,
	.bind = npy_bind,
	.together = npy_together,
	.shape = npy_shape,
	.locate = npy_locate,
	.emit = npy_emit,
	.describe = npy_describe,
	.write = npy_write,
};
