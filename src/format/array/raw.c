/*
 * Raw records: consecutive arrays of one type and shape. The file does not
 * describe itself, so options do.
 */
#include "format/array.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/mem.h"
#include "format/value.h"

struct raw {
	/* options */
	uint64_t record;
	char *dtype, *shape;
	uint64_t header;
	bool big_endian;
	int partial; /* 0: an error */
	/* from open() on; view.row is 0 if no size is set */
	struct pen_view view;
	int64_t dims[PEN_MAX_DIMS];
};

static const char *const partial_choices[] = { "error", "drop", NULL };

static const struct pen_opt raw_opts[] = {
	{ .name = "record",
	  .type = PEN_OPT_SIZE,
	  .off = offsetof(struct raw, record),
	  .help = "bytes per record (default: the size of dtype and shape)" },
	{ .name = "dtype",
	  .type = PEN_OPT_STR,
	  .off = offsetof(struct raw, dtype),
	  .dflt = "uint8",
	  .help = "data type of the elements: uint8, int32, float32, ..." },
	{ .name = "shape",
	  .type = PEN_OPT_STR,
	  .off = offsetof(struct raw, shape),
	  .help = "shape of a record, such as 3x224x224 (default: one axis)" },
	{ .name = "header",
	  .type = PEN_OPT_SIZE,
	  .off = offsetof(struct raw, header),
	  .dflt = "0",
	  .help = "bytes to skip at the start of each file" },
	{ .name = "big_endian",
	  .type = PEN_OPT_BOOL,
	  .off = offsetof(struct raw, big_endian),
	  .dflt = "false",
	  .help = "elements are stored in big-endian byte order" },
	{ .name = "partial",
	  .type = PEN_OPT_ENUM,
	  .off = offsetof(struct raw, partial),
	  .dflt = "error",
	  .help = "what to do with an incomplete record at the end of a file",
	  .choices = partial_choices },
	{ .name = NULL },
};

static int raw_open(struct pen_format *f, struct pen_err *err)
{
	struct raw *p = f->priv;
	struct pen_view *v = &p->view;
	struct pen_array a;
	uint64_t item;
	int rc = pen__parse_array(p->dtype, p->shape, &a, err);

	if (rc)
		return rc;
	item = pen_dtype_size(a.dtype);
	if (p->record % item)
		return pen__fail(err, P_BAD_VALUE, "record",
				 "%" PRIu64
				 " bytes is not a multiple of the size of %s",
				 p->record, pen_dtype_name(a.dtype));
	if (!p->shape && p->record) {
		a.ndim = 1;
		a.shape[0] = (int64_t)(p->record / item);
		a.nbytes = p->record;
	}
	if (a.nbytes > INT64_MAX || p->header > INT64_MAX)
		return pen__fail(err, P_BAD_VALUE, "record",
				 "the record or the header is too large");
	if (p->record && p->record != a.nbytes)
		return pen__fail(err, P_CONFLICT, "record",
				 "a record has %" PRIu64
				 " bytes, but dtype and shape give %" PRIu64,
				 p->record, a.nbytes);
	memcpy(p->dims, a.shape, a.ndim * sizeof(*a.shape));
	v->dtype = (uint8_t)a.dtype;
	v->ndim = (uint8_t)a.ndim;
	v->row = v->step = a.nbytes;
	v->swap = p->big_endian && item > 1;
	v->plain = !v->swap;
	return 0;
}

static int no_size(const char *where, struct pen_err *err)
{
	return pen__fail(err, P_MISSING_SETTING, where,
			 "the record size is not set; set format.record=BYTES, "
			 "or format.dtype= and format.shape=");
}

static int raw_index(const struct pen_format *f, struct pen_peek *pk,
		     struct pen_found *found, struct pen_err *err)
{
	const struct raw *p = f->priv;
	uint64_t rest;

	if (!p->view.row)
		return no_size(pk->name, err);
	if (p->header > pk->size)
		return pen__fail(err, P_TRUNCATED, pk->name,
				 "the file has %" PRIu64
				 " bytes, fewer than its header of %" PRIu64,
				 pk->size, p->header);
	found->nsamples = (pk->size - p->header) / p->view.row;
	rest = (pk->size - p->header) % p->view.row;
	if (rest && !p->partial)
		return pen__fail(
			err, P_TRUNCATED, pk->name,
			"%" PRIu64 " bytes are left over after %" PRIu64
			" records of %" PRIu64
			" bytes; set format.partial=drop to ignore them",
			rest, found->nsamples, p->view.row);
	return 0;
}

static int raw_bind(struct pen_format *f, const struct pen_index *ix,
		    struct pen_err *err)
{
	const struct raw *p = f->priv;
	struct pen_field *fd = &f->field[0];

	if (!p->view.row)
		return no_size("raw", err);
	f->ix = ix;
	*fd = (struct pen_field){
		.name = "x",
		.dtype = p->view.dtype,
		.ndim = p->view.ndim,
		.max_bytes = p->view.row,
	};
	memcpy(fd->shape, p->dims, p->view.ndim * sizeof(*p->dims));
	f->nfields = f->units_per_sample = 1;
	f->all_plain = f->uniform = p->view.plain;
	return 0;
}

static void raw_shape(const struct pen_format *f, uint32_t object, uint64_t k,
		      uint32_t field, int64_t *shape)
{
	const struct raw *p = f->priv;

	(void)object;
	(void)k;
	(void)field;
	memcpy(shape, p->dims, p->view.ndim * sizeof(*shape));
}

static void raw_locate(const struct pen_format *f, uint32_t object, uint64_t k,
		       struct pen_unit *u)
{
	const struct raw *p = f->priv;

	*u = (struct pen_unit){
		.offset = p->header + k * p->view.row,
		.len = p->view.row,
		.object = object,
		.flags = p->view.plain ? PEN_UNIT_PLAIN : 0,
	};
}

static int raw_emit(const struct pen_format *f, const struct pen_row *r,
		    struct pen_err *err)
{
	const struct raw *p = f->priv;

	if (r->data[0].n != p->view.row || r->dst_len[0] != p->view.row)
		return pen__object_fail(
			f, P_DAMAGED, r->object, NULL,
			"the bytes read do not match the record size", err);
	pen__view_copy(&p->view, p->dims, r->data[0].p, r->dst[0]);
	return 0;
}

static void raw_describe(const struct pen_format *f, struct pen_describe *d)
{
	const struct raw *p = f->priv;
	char text[48];

	snprintf(text, sizeof(text), "%" PRIu64 " bytes", p->view.row);
	d->fact(d->arg, "record", text);
	snprintf(text, sizeof(text), "%" PRIu64 " bytes", p->header);
	d->fact(d->arg, "header", text);
	d->fact(d->arg, "byte order",
		p->view.swap ? "big-endian" : "little-endian");
	d->fact(d->arg, "compression", "none");
	if (p->view.swap)
		d->advice(d->arg, "big-endian data is byte-swapped on every "
				  "read; store little-endian records");
	if (p->header % 64 || p->view.row % 64)
		d->advice(d->arg,
			  "records are not 64-byte aligned; make header and "
			  "record size multiples of 64 (4096 for direct I/O)");
}

static int write_zeros(uint64_t n, struct pen_out *out, struct pen_err *err)
{
	static const uint8_t zero[4096];
	int rc = 0;

	while (n && rc >= 0) {
		size_t k = n < sizeof(zero) ? (size_t)n : sizeof(zero);

		rc = out->write(out, zero, k, err);
		n -= k;
	}
	return rc;
}

/* An output that swaps the byte order. */
struct swap_out {
	struct pen_out out;
	struct pen_out *to;
	enum pen_dtype dtype;
};

static int write_swapped(struct pen_out *o, const void *data, size_t n,
			 struct pen_err *err)
{
	const struct swap_out *s = (const struct swap_out *)o;
	const size_t item = pen_dtype_size(s->dtype);
	uint8_t piece[8192]; /* a multiple of every element size */
	const uint8_t *p = data;
	int rc = 0;

	while (n && rc >= 0) {
		size_t k = n < sizeof(piece) ? n : sizeof(piece);
		struct pen_tile t = { .ni = 1, .nj = k / item, .src_j = item };

		pen__tile_copy(&t, item, pen__swap_size(s->dtype), piece, p);
		rc = s->to->write(s->to, piece, k, err);
		p += k;
		n -= k;
	}
	return rc;
}

static int raw_write(const struct pen_format *f, const struct pen_table *t,
		     struct pen_out *out, struct pen_err *err)
{
	const struct raw *p = f->priv;
	struct swap_out swap = { .out.write = write_swapped, .to = out };
	size_t row, all;
	int rc;

	rc = pen__table_single(f, t, &row, &all, err);
	if (rc)
		return rc;
	if (p->view.row && p->view.row != row)
		return pen__fail(
			err, P_CONFLICT, "raw",
			"a sample has %zu bytes, but a record has %" PRIu64,
			row, p->view.row);
	rc = write_zeros(p->header, out, err);
	if (rc < 0 || !all)
		return rc;
	swap.dtype = t->field->dtype;
	if (p->big_endian && pen_dtype_size(swap.dtype) > 1)
		return pen__table_put(t, 0, &swap.out, err);
	return pen__table_put(t, 0, out, err);
}

static const char *const raw_suffixes[] = { ".bin", ".raw", NULL };

const struct pen_format_ops pen__format_raw = {
	.name = "raw",
	.help = "consecutive records of one fixed size",
	.suffixes = raw_suffixes,
	.opts = raw_opts,
	.priv_size = sizeof(struct raw),
	.open = raw_open,
	.index = raw_index,
	.bind = raw_bind,
	.shape = raw_shape,
	.locate = raw_locate,
	.emit = raw_emit,
	.describe = raw_describe,
	.write = raw_write,
};
