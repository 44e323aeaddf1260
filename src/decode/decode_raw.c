/*
 * Numbers as they lie in memory, such as the bytes of an array of which only
 * the reader knows type and shape. Refuses a value of another size than these
 * say, when it is read.
 */
#include <string.h>

#include "codec/array_copy.h"
#include "decode/decode.h"

struct raw {
	char *dtype, *shape;
	bool big_endian;
	/* from open() on */
	struct pen_head head;
};

static const struct pen_opt raw_opts[] = {
	{ .name = "dtype",
	  .type = PEN_OPT_STR,
	  .off = offsetof(struct raw, dtype),
	  .dflt = "uint8",
	  .help = "type of an item: uint8, int32, float32, ..." },
	{ .name = "shape",
	  .type = PEN_OPT_STR,
	  .off = offsetof(struct raw, shape),
	  .help = "shape of a value, 3x224x224; one axis when empty" },
	{ .name = "big_endian",
	  .type = PEN_OPT_BOOL,
	  .off = offsetof(struct raw, big_endian),
	  .dflt = "false",
	  .help = "items are stored high byte first" },
	{ .name = NULL },
};

static int raw_open(struct pen_decoder *d, struct pen_err *err)
{
	struct raw *p = d->priv;
	int64_t dims[PEN_MAX_DIMS];
	enum pen_dtype dtype;
	uint32_t ndim = 0;
	size_t bytes;
	int rc = pen__parse_dtype(p->dtype, &dtype, err);

	if (!rc && p->shape)
		rc = pen__parse_shape(p->shape, dims, &ndim, err);
	if (rc)
		return rc;
	if (ndim > PEN_HEAD_DIMS ||
	    !pen__shape_bytes(dims, ndim, dtype, &bytes))
		return pen__fail(err, PEN_EINVAL, "shape",
				 "is too large, or has more than %d axes",
				 PEN_HEAD_DIMS);
	p->head = (struct pen_head){ .dtype = (uint8_t)dtype,
				     .ndim = (uint8_t)ndim };
	memcpy(p->head.shape, dims, ndim * sizeof(*dims));
	return 0;
}

static void raw_size(const struct pen_decoder *d, uint64_t n,
		     struct pen_head *out)
{
	const struct raw *p = d->priv;

	*out = p->head;
	if (out->ndim)
		return;
	out->ndim = 1;
	out->shape[0] = (int64_t)(n / pen_dtype_size(out->dtype));
	out->follows = true;
}

static int raw_decode(const struct pen_decoder *d, const struct pen_encoded *v,
		      struct pen_err *err)
{
	const struct raw *p = d->priv;
	const size_t item = pen_dtype_size(p->head.dtype);
	const size_t swap = p->big_endian ? pen__swap_size(p->head.dtype) : 0;
	const struct pen_tile t = { 1, v->len / item, 0, 0, item };

	if (v->bytes.n != v->len)
		return pen__fail(err, PEN_EDATA, NULL,
				 "has %zu bytes, where type and shape (%s%s) "
				 "make %zu",
				 v->bytes.n, pen_dtype_name(p->head.dtype),
				 p->shape ? ", with a shape" : "", v->len);
	if (swap > 1)
		pen__tile_copy(&t, item, swap, v->dst, v->bytes.p);
	else if (v->len)
		memcpy(v->dst, v->bytes.p, v->len);
	return 0;
}

const struct pen_decoder_ops pen__decoder_raw = {
	.name = "raw",
	.help = "numbers as they lie in memory, of a type and shape to give",
	.opts = raw_opts,
	.priv_size = sizeof(struct raw),
	.open = raw_open,
	.size = raw_size,
	.decode = raw_decode,
};
