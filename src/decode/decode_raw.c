/*
 * Binary numbers whose type and shape only the reader knows. Rejects values of
 * another size.
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
	  .help = "data type of the elements: uint8, int32, float32, ..." },
	{ .name = "shape",
	  .type = PEN_OPT_STR,
	  .off = offsetof(struct raw, shape),
	  .help = "shape of a value, such as 3x224x224 (default: one axis)" },
	{ .name = "big_endian",
	  .type = PEN_OPT_BOOL,
	  .off = offsetof(struct raw, big_endian),
	  .dflt = "false",
	  .help = "elements are stored in big-endian byte order" },
	{ .name = NULL },
};

static int raw_open(struct pen_decoder *d, struct pen_err *err)
{
	struct raw *p = d->priv;
	struct pen_array a;
	int rc = pen__parse_array(p->dtype, p->shape, &a, err);

	if (rc)
		return rc;
	if (a.ndim > PEN_HEAD_DIMS)
		return pen__fail(err, P_BAD_VALUE, "shape",
				 "the shape has more than %d axes",
				 PEN_HEAD_DIMS);
	p->head = (struct pen_head){ .dtype = (uint8_t)a.dtype,
				     .ndim = (uint8_t)a.ndim };
	memcpy(p->head.shape, a.shape, a.ndim * sizeof(*a.shape));
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
		return pen__fail(err, P_DAMAGED, NULL,
				 "the value has %zu bytes, but %s%s%s needs "
				 "%zu",
				 v->bytes.n, pen_dtype_name(p->head.dtype),
				 p->shape ? " of shape " : "",
				 p->shape ? p->shape : "", v->len);
	if (swap > 1)
		pen__tile_copy(&t, item, swap, v->dst, v->bytes.p);
	else if (v->len)
		memcpy(v->dst, v->bytes.p, v->len);
	return 0;
}

const struct pen_decoder_ops pen__decoder_raw = {
	.name = "raw",
	.help = "binary numbers of a given data type and shape",
	.opts = raw_opts,
	.priv_size = sizeof(struct raw),
	.open = raw_open,
	.size = raw_size,
	.decode = raw_decode,
};
