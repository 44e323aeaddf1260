/*
 * An npy file as a value, as np.save writes it, in a record or a separate file.
 * The row is the array in C order and native byte order. Rejects arrays that
 * are not numeric, and bytes after the array.
 */
#include <inttypes.h>
#include <string.h>

#include "codec/npy_header.h"
#include "decode/decode.h"

static int take_head(const struct pen_npy *n, const char *name,
		     struct pen_head *out, struct pen_err *err)
{
	if (n->extra)
		return pen__fail(err, P_DAMAGED, name,
				 "%" PRIu64 " bytes follow the array",
				 n->extra);
	if (n->a.ndim > PEN_HEAD_DIMS)
		return pen__fail(err, P_OVER_LIMIT, name,
				 "the array has %" PRIu32 " axes, more than %d",
				 n->a.ndim, PEN_HEAD_DIMS);
	*out = (struct pen_head){ .dtype = (uint8_t)n->a.dtype,
				  .ndim = (uint8_t)n->a.ndim };
	memcpy(out->shape, n->a.shape, n->a.ndim * sizeof(*out->shape));
	return 0;
}

static int npy_head(const struct pen_decoder *d, struct pen_peek *pk,
		    struct pen_head *out, struct pen_err *err)
{
	struct pen_npy n;
	int rc = pen__npy_read(pk, &n, err);

	(void)d;
	return rc ? rc : take_head(&n, pk->name, out, err);
}

static int npy_decode(const struct pen_decoder *d, const struct pen_encoded *v,
		      struct pen_err *err)
{
	struct pen_head h;
	struct pen_npy n;
	int rc = pen__npy_parse(v->bytes, NULL, &n, err);

	(void)d;
	if (!rc)
		rc = take_head(&n, NULL, &h, err);
	if (rc)
		return rc;
	if (h.dtype != v->head.dtype || h.ndim != v->head.ndim ||
	    memcmp(h.shape, v->head.shape, sizeof(h.shape)) != 0 ||
	    n.a.nbytes != v->len)
		return pen__fail(err, P_DAMAGED, NULL,
				 "the header differs from the indexed one");
	if (n.a.swap || (n.a.fortran && n.a.ndim > 1)) {
		const struct pen_view view = {
			.n = 1,
			.row = n.a.nbytes,
			.ndim = h.ndim,
			.dtype = h.dtype,
			.swap = n.a.swap,
			.fortran = n.a.fortran,
		};

		pen__view_copy(&view, n.a.shape, v->bytes.p + n.a.at, v->dst);
	} else if (v->len) {
		memcpy(v->dst, v->bytes.p + n.a.at, v->len);
	}
	return 0;
}

const struct pen_decoder_ops pen__decoder_npy = {
	.name = "npy",
	.help = "an array in npy format, as np.save writes it",
	.magic = "\x93NUMPY",
	.head = npy_head,
	.decode = npy_decode,
};
