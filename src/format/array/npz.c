/*
 * NumPy's npz: a zip archive of npy members, one per field. Stored members are
 * read in place like npy files. Deflated ones are inflated per sample if the
 * file is the sample, otherwise once for all samples that need them. The crc32
 * of members is verified unless switched off; in first/last mode this requires
 * fetching entire stored members. npz_index.c documents what is rejected.
 */
#include "format/array/npz.h"

#include <stdio.h>

#include "base/mem.h"
#include "codec/deflate.h"

static const struct pen_opt npz_opts[] = {
	{ .name = "samples",
	  .type = PEN_OPT_ENUM,
	  .off = offsetof(struct pen_npz, samples),
	  .dflt = "auto",
	  .help = "what a sample is: the file, or an entry along the first or "
		  "last axis of each member",
	  .choices = pen__samples_choices },
	{ .name = "fields",
	  .type = PEN_OPT_STR,
	  .off = offsetof(struct pen_npz, fields),
	  .help = "members to read, separated by commas (default: all numeric "
		  "ones)" },
	{ .name = "crc",
	  .type = PEN_OPT_BOOL,
	  .off = offsetof(struct pen_npz, crc),
	  .dflt = "true",
	  .help = "verify the crc32 of each member" },
	{ .name = "compress",
	  .type = PEN_OPT_BOOL,
	  .off = offsetof(struct pen_npz, compress),
	  .dflt = "false",
	  .help = "writing: compress members with deflate" },
	{ .name = "level",
	  .type = PEN_OPT_INT,
	  .off = offsetof(struct pen_npz, level),
	  .dflt = "6",
	  .help = "writing: deflate level (12: smallest)",
	  .min = 1,
	  .max = 12 },
	{ .name = NULL },
};

static void npz_close(struct pen_format *f)
{
	struct pen_npz *p = f->priv;

	pen__views_fini(&p->views);
	pen__free(p->member);
	p->member = NULL;
}

/* State of bind() over the objects. */
struct binder {
	struct pen_format *f;
	const struct pen_index *ix;
	struct pen_err *err;
	uint64_t blob;
	enum pen_seen seen[PEN_MAX_FIELDS];
};

static int damaged(struct pen_err *err)
{
	return pen__fail(err, P_BAD_INDEX, "npz", "the index entry is damaged");
}

static int misfit(const struct binder *b, const char *field, const char *why)
{
	char name[256], where[336];

	pen__blob_name(b->ix, b->blob, name, sizeof(name));
	snprintf(where, sizeof(where), "%s:%s.npy", name, field);
	return pen__fail(b->err, P_FILES_DISAGREE, where, "%s", why);
}

static int field_of(const struct pen_format *f, const char *name)
{
	for (uint32_t i = 0; i < f->nfields; i++)
		if (strcmp(f->field[i].name, name) == 0)
			return (int)i;
	return -1;
}

/* Adds one member of one object; most have the same view as their predecessor.
 */
static int add_entry(struct binder *b, const struct pen_npz_entry *e,
		     enum pen_samples mode)
{
	struct pen_format *f = b->f;
	struct pen_npz *p = f->priv;
	struct pen_views *vs = &p->views;
	const int i = field_of(f, e->name);
	const struct pen_view *v;
	struct pen_npz_member *m;
	char why[192];

	if (i < 0)
		return misfit(b, e->name,
			      "earlier files do not contain this array; list "
			      "the arrays to read with fields=");
	if (pen__views_add(vs, &e->npy.a, mode) < 0)
		return pen__fail_nomem(b->err, "npz", sizeof(*vs->v));
	m = &p->member[b->blob * f->nfields + (unsigned)i];
	*m = e->m;
	m->view = vs->n - 1;
	if (b->blob && pen__views_fold(vs, (m - f->nfields)->view))
		m->view = (m - f->nfields)->view;
	v = &vs->v[m->view];
	if (pen__field_widen(&f->field[i], &b->seen[i], v, vs->dims + v->dims,
			     why, sizeof(why)))
		return misfit(b, e->name, why);
	if (m->deflated && v->n < 2 && m->usize > f->scratch_size)
		f->scratch_size = (size_t)m->usize;
	return 0;
}

static bool take_head(struct pen_bytes *b, unsigned *mode, unsigned *n)
{
	*mode = pen__take_u8(b);
	*n = pen__take_u8(b);
	return *mode > PEN_SAMPLES_AUTO && *mode < PEN_NSAMPLES && *n &&
	       *n <= PEN_MAX_FIELDS;
}

static int add_object(struct binder *b)
{
	const struct pen_span s = b->ix->blob(b->ix, b->blob);
	struct pen_bytes in = pen__bytes(s.p, s.n);
	struct pen_npz_entry e;
	unsigned mode, n;
	int rc;

	if (!take_head(&in, &mode, &n))
		return damaged(b->err);
	if (n != b->f->nfields)
		return misfit(b, "*",
			      "the number of arrays differs from earlier "
			      "files; list the arrays to read with fields=");
	for (unsigned i = 0; i < n; i++) {
		if (!pen__npz_take(&in, &e) ||
		    (mode != PEN_SAMPLES_FILE && !e.npy.a.ndim))
			return damaged(b->err);
		rc = add_entry(b, &e, (enum pen_samples)mode);
		if (rc < 0)
			return rc;
	}
	return 0;
}

/* The first object defines the fields. */
static int name_fields(struct pen_format *f, const struct pen_index *ix,
		       struct pen_err *err)
{
	const struct pen_span s = ix->blob(ix, 0);
	struct pen_bytes b = pen__bytes(s.p, s.n);
	struct pen_npz_entry e;
	unsigned mode, n;

	f->nfields = 0;
	if (!take_head(&b, &mode, &n))
		return damaged(err);
	for (unsigned i = 0; i < n; i++) {
		if (!pen__npz_take(&b, &e))
			return damaged(err);
		f->field[i] = (struct pen_field){ 0 };
		memcpy(f->field[i].name, e.name, sizeof(e.name));
	}
	f->nfields = f->units_per_sample = n;
	return 0;
}

/* Whether the entire member is fetched: decides flags and length. */
static bool whole_member(const struct pen_npz *p,
			 const struct pen_npz_member *m,
			 const struct pen_view *v)
{
	return m->deflated || v->strided || p->crc;
}

static int npz_bind(struct pen_format *f, const struct pen_index *ix,
		    struct pen_err *err)
{
	struct pen_npz *p = f->priv;
	struct binder b = { .f = f, .ix = ix, .err = err };
	size_t n;
	int rc;

	npz_close(f);
	f->ix = ix;
	f->scratch_size = 0;
	if (!ix->nblobs)
		return pen__fail(err, P_NOT_FOUND, "npz", "no objects found");
	rc = name_fields(f, ix, err);
	if (rc < 0)
		return rc;
	n = (size_t)ix->nblobs * f->nfields;
	p->member = pen__calloc(n, sizeof(*p->member));
	if (!p->member)
		return pen__fail_nomem(err, "npz", n * sizeof(*p->member));
	for (; b.blob < ix->nblobs; b.blob++) {
		rc = add_object(&b);
		if (rc < 0)
			return rc;
	}
	f->all_plain = true;
	f->uniform = f->nfields == 1 && f->field[0].layout == PEN_DENSE;
	for (size_t i = 0; i < n; i++) {
		const struct pen_npz_member *m = &p->member[i];
		const struct pen_view *v = &p->views.v[m->view];

		f->all_plain &= v->plain && !m->deflated &&
				(v->n == 1 || !whole_member(p, m, v));
	}
	f->uniform &= f->all_plain;
	return 0;
}

static const struct pen_npz_member *member_of(const struct pen_format *f,
					      uint32_t object, uint32_t field)
{
	const struct pen_npz *p = f->priv;

	return &p->member[f->ix->blob_of(f->ix, object) * f->nfields + field];
}

static void npz_shape(const struct pen_format *f, uint32_t object, uint64_t k,
		      uint32_t field, int64_t *shape)
{
	const struct pen_npz *p = f->priv;
	const struct pen_view *v =
		&p->views.v[member_of(f, object, field)->view];

	(void)k;
	memcpy(shape, p->views.dims + v->dims, v->ndim * sizeof(*shape));
}

static void npz_locate(const struct pen_format *f, uint32_t object, uint64_t k,
		       struct pen_unit *units)
{
	const struct pen_npz *p = f->priv;
	const struct pen_npz_member *m = member_of(f, object, 0);

	for (uint32_t i = 0; i < f->nfields; i++, m++) {
		const struct pen_view *v = &p->views.v[m->view];
		const bool whole = whole_member(p, m, v);
		struct pen_unit u = {
			.offset = m->at + v->at + (whole ? 0 : k * v->row),
			.len = whole ? v->nbytes : v->row,
			.id = (uint64_t)object << 8 | i,
			.object = object,
			.field = (uint16_t)i,
			.crc_seed = m->header_crc,
			.crc = m->crc,
		};

		if (m->deflated) {
			u.offset = m->at;
			u.len = m->csize;
			u.size = m->usize;
			if (v->n > 1)
				u.flags = PEN_UNIT_SHARED | PEN_UNIT_COMPRESSED;
		} else {
			if (p->crc)
				u.flags |= PEN_UNIT_CRC32;
			if (whole && v->n > 1)
				u.flags |= PEN_UNIT_SHARED;
			else if (v->plain)
				u.flags |= PEN_UNIT_PLAIN;
		}
		units[i] = u;
	}
}

static int member_fail(const struct pen_format *f, int kind,
		       const struct pen_unit *u, const char *what,
		       struct pen_err *err)
{
	return pen__object_fail(f, kind, u->object, f->field[u->field].name,
				what, err);
}

/* Inflates a member and checks that it is the indexed one. */
static int inflate(const struct pen_format *f, const struct pen_unit *u,
		   struct pen_span raw, struct pen_scratch *s, uint8_t *out,
		   struct pen_err *err)
{
	const struct pen_npz *p = f->priv;
	const struct pen_npz_member *m = member_of(f, u->object, u->field);
	const struct pen_view *v = &p->views.v[m->view];
	int rc;

	if (raw.n != m->csize)
		return member_fail(
			f, P_DAMAGED, u,
			"the bytes read do not match the member size", err);
	rc = pen__inflate(s, raw.p, raw.n, out, (size_t)m->usize);
	if (rc == PEN_ENOMEM)
		return pen__fail_nomem(err, "npz", 0);
	if (rc < 0)
		return member_fail(f, P_CANNOT_DECODE, u,
				   "damaged: the member cannot be inflated",
				   err);
	if (p->crc && pen__crc32(0, out, (size_t)m->usize) != m->crc)
		return member_fail(f, P_CHECKSUM, u,
				   "damaged: the crc32 of the member differs",
				   err);
	if (pen__crc32(0, out, (size_t)v->at) != m->header_crc)
		return member_fail(
			f, P_DAMAGED, u,
			"damaged: the npy header differs from the indexed one",
			err);
	return 0;
}

static int npz_unpack(const struct pen_format *f, const struct pen_unit *u,
		      struct pen_span raw, void *out, struct pen_scratch *s,
		      struct pen_err *err)
{
	return inflate(f, u, raw, s, out, err);
}

static int emit_field(const struct pen_format *f, const struct pen_row *r,
		      uint32_t i, struct pen_err *err)
{
	const struct pen_npz *p = f->priv;
	const struct pen_npz_member *m = member_of(f, r->object, i);
	const struct pen_view *v = &p->views.v[m->view];
	const struct pen_unit *u = &r->units[i];
	struct pen_span s = r->data[i];
	uint64_t first = u->flags & PEN_UNIT_SHARED ? r->k * v->step : 0;
	int rc;

	if (m->deflated && !(u->flags & PEN_UNIT_COMPRESSED)) {
		/* bind() requested this size */
		if (r->scratch->size < m->usize)
			return member_fail(f, P_DAMAGED, u,
					   "the work buffer is too small to "
					   "inflate the member",
					   err);
		rc = inflate(f, u, s, r->scratch, r->scratch->mem, err);
		if (rc < 0)
			return rc;
		s = (struct pen_span){ r->scratch->mem, (size_t)m->usize };
	}
	if (m->deflated)
		first += v->at;
	if (r->dst_len[i] != v->row || first + pen__view_span(v) > s.n)
		return member_fail(
			f, P_DAMAGED, u,
			"the bytes read do not match the sample size", err);
	pen__view_copy(v, p->views.dims + v->dims, s.p + first, r->dst[i]);
	return 0;
}

static int npz_emit(const struct pen_format *f, const struct pen_row *r,
		    struct pen_err *err)
{
	int rc;

	for (uint32_t i = 0; i < r->nunits; i++) {
		if (r->units[i].flags & PEN_UNIT_PLAIN)
			continue; /* already in its row */
		rc = emit_field(f, r, i, err);
		if (rc < 0)
			return rc;
	}
	return 0;
}

static void npz_describe(const struct pen_format *f, struct pen_describe *d)
{
	const struct pen_npz *p = f->priv;
	bool swap = false, transposed = false, strided = false,
	     unaligned = false;
	bool stored = false, deflated = false, shared = false;
	const size_t n = (size_t)f->ix->nblobs * f->nfields;

	for (size_t i = 0; i < n; i++) {
		const struct pen_npz_member *m = &p->member[i];
		const struct pen_view *v = &p->views.v[m->view];

		swap |= v->swap;
		transposed |= v->fortran && !v->plain;
		strided |= v->strided;
		stored |= !m->deflated;
		deflated |= m->deflated;
		unaligned |= !m->deflated && (m->at + v->at) % 64 != 0;
		shared |= v->n > 1 && !m->deflated && !v->strided && p->crc;
	}
	d->fact(d->arg, "compression",
		!deflated ? "none (stored)"
		: stored  ? "some deflate"
			  : "deflate");
	d->fact(d->arg, "byte order", swap ? "big-endian" : "little-endian");
	d->fact(d->arg, "memory order", transposed ? "Fortran" : "C");
	d->fact(d->arg, "crc32", p->crc ? "checked" : "not checked");
	if (stored)
		d->fact(d->arg, "data alignment",
			unaligned ? "none" : "64 bytes");
	if (deflated)
		d->advice(d->arg,
			  "inflating runs at about 0.5 to 1 GB/s per core, "
			  "stored members are read at memory speed; use "
			  "np.savez instead of np.savez_compressed");
	if (strided)
		d->advice(d->arg, "samples are strided: each read touches the "
				  "whole file; store samples along the first "
				  "axis in C order");
	if (shared)
		d->advice(d->arg, "verifying crc32 reads entire members; set "
				  "format.crc=false to read single samples");
	if (transposed && !strided)
		d->advice(
			d->arg,
			"arrays in Fortran order are transposed on every read");
	if (swap)
		d->advice(d->arg,
			  "big-endian data is byte-swapped on every read");
	if (unaligned)
		d->advice(d->arg,
			  "data is not 64-byte aligned because zip does not "
			  "align members; npy files are aligned");
}

static const char *const npz_suffixes[] = { ".npz", NULL };

const struct pen_format_ops pen__format_npz = {
	.name = "npz",
	.help = "NumPy archive of named arrays, stored or deflated",
	.suffixes = npz_suffixes,
	.opts = npz_opts,
	.priv_size = sizeof(struct pen_npz),
	.close = npz_close,
	.index = pen__npz_index,
	.bind = npz_bind,
	.shape = npz_shape,
	.locate = npz_locate,
	.unpack = npz_unpack,
	.emit = npz_emit,
	.describe = npz_describe,
	.write = pen__npz_write,
};
