/*
 * Shared by image decoders. Rejects images beyond max_pixels before anything is
 * allocated for them, and images of different bit depths in one field.
 */
#include "decode/decode_image.h"

#include <inttypes.h>

#include "base/quote.h"

const char *const pen__image_colors[] = { "auto", "grey", "rgb", "rgba", NULL };

int pen__image_options(struct pen_decoder *d, struct pen_err *err)
{
	static const int channels[] = { 0, 1, 3, 4 };
	struct pen_images *p = d->priv;
	const char *const *text = (const char *const *)&p->texts;

	p->color = channels[p->color];
	for (size_t i = 0; i < sizeof(p->texts) / sizeof(*text); i++)
		p->changes = p->changes || text[i];
	if (p->changes && p->color && p->color != 3)
		return pen__fail(err, P_CONFLICT, "color",
				 "images changed by image.* settings are RGB; "
				 "omit it");
	return p->changes ? pen__image_plan(&p->plan, &p->texts, err) : 0;
}

size_t pen__image_bytes(const struct pen_images *p, const struct pen_encoded *v)
{
	if (p->changes)
		return (size_t)p->plan.height * p->plan.width * 3 *
		       pen_dtype_size(p->plan.dtype);
	return (size_t)v->head.shape[0] * (size_t)v->head.shape[1] *
	       pen__image_channels(v->as) * pen_dtype_size(v->as->dtype);
}

int pen__image_other(struct pen_peek *pk, const char *kind, struct pen_err *err)
{
	const size_t n = pk->size < 8 ? (size_t)pk->size : 8;
	uint8_t b[8];
	int rc = n ? pk->read(pk, 0, b, n, err) : 0;

	return rc ? rc
		  : pen__fail(err, P_NOT_THIS_FORMAT, pk->name,
			      "not a %s file: it starts with %s", kind,
			      pen__quoted(b, n).s);
}

int pen__image_check(const struct pen_decoder *d, struct pen_peek *pk,
		     const struct pen_head *h, struct pen_err *err)
{
	const struct pen_images *p = d->priv;
	const uint64_t height = (uint64_t)h->shape[0],
		       width = (uint64_t)h->shape[1];

	if (!width || !height)
		return pen__fail(err, P_DAMAGED, pk->name,
				 "the image has no pixels");
	if (width * height > p->max_pixels) /* both are below 2^32 */
		return pen__fail(err, P_OVER_LIMIT, pk->name,
				 "the image has %" PRIu64 "x%" PRIu64
				 " pixels, more than %smax_pixels=%" PRIu64,
				 width, height, d->prefix, p->max_pixels);
	return 0;
}

/* Adds channels: any 8-bit image can be converted to RGB or RGBA. */
const char *pen__image_join(const struct pen_decoder *d, struct pen_head *all,
			    const struct pen_head *one)
{
	const struct pen_images *p = d->priv;
	const int64_t want = p->color;
	const int64_t had = all->shape[2], own = one->shape[2];
	int64_t c = want ? want : had;

	if (p->changes)
		return NULL; /* all images become RGB of one size */
	if (!want && own != had)
		c = own == 4 || had == 4 || own == 2 || had == 2 ? 4 : 3;
	if (one->dtype != all->dtype || (one->dtype != PEN_U8 && own != c) ||
	    (c == 1 && own != 1 && one->kind != PEN_IMAGE_JPEG))
		return "the channels or the bit depth differ from earlier "
		       "images and cannot be converted";
	for (unsigned i = 0; i < 2; i++)
		if (all->shape[i] != one->shape[i])
			all->shape[i] = -1;
	all->shape[2] = c;
	return NULL;
}

void pen__image_settle(const struct pen_decoder *d, struct pen_head *all)
{
	const struct pen_images *p = d->priv;

	if (!p->changes) {
		all->ndim = all->shape[2] > 1 ? 3 : 2;
		return;
	}
	*all = (struct pen_head){ .dtype = p->plan.dtype, .ndim = 3 };
	all->shape[p->plan.chw ? 0 : 2] = 3;
	all->shape[p->plan.chw ? 1 : 0] = p->plan.height;
	all->shape[p->plan.chw ? 2 : 1] = p->plan.width;
}

const char *pen__image_looks(const struct pen_head *all)
{
	static const char *const names[] = { "", "grey", "grey and alpha",
					     "RGB", "RGBA" };

	/* channels come first in images changed to that layout */
	return all->ndim == 3 && all->shape[0] == 3 && all->shape[2] > 4
		       ? names[3]
		       : names[pen__image_channels(all)];
}
