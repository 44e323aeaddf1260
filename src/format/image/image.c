/*
 * Images of several formats, one per file, recognised by their first bytes; and
 * code shared by the writers of jpeg and png.
 */
#include "format/image/image.h"

#include "format/whole_files.h"

static const char *const colors[] = { "auto", "rgb", "rgba", NULL };

static const struct pen_opt image_opts[] = {
	{ .name = "color",
	  .type = PEN_OPT_ENUM,
	  .off = offsetof(struct pen_image_opts, color),
	  .dflt = "auto",
	  .choices = colors,
	  .help = "channels of decoded 8-bit images (auto: enough for all "
		  "images)" },
	PEN_IMAGE_STRICT,
	PEN_IMAGE_MAX_PIXELS,
	{ .name = NULL },
};

const void *pen__image_take(const struct pen_table *t, struct pen_image *m,
			    void **mem, struct pen_err *err)
{
	const struct pen_field *d = t->field;

	*mem = NULL;
	if (t->nfields != 1 || t->nsamples != 1 || d->ndim < 2 || d->ndim > 3 ||
	    d->shape[0] < 1 || d->shape[1] < 1 || d->shape[0] > INT32_MAX ||
	    d->shape[1] > INT32_MAX) {
		pen__fail(err, P_CANNOT_WRITE_THIS, "image",
			  "an image file stores one sample of a shape such as "
			  "224x224 or 224x224x3");
		return NULL;
	}
	*m = (struct pen_image){
		.height = (uint32_t)d->shape[0],
		.width = (uint32_t)d->shape[1],
		.channels = d->ndim == 2 || d->shape[2] < 1 || d->shape[2] > 4
				    ? d->ndim == 2
				    : (uint8_t)d->shape[2],
		.dtype = (uint8_t)d->dtype,
	};
	return pen__table_get(t, 0, mem, err);
}

const struct pen_format_ops pen__format_image = {
	.name = "image",
	.help = "JPEG and PNG images, one per file",
	.decoder = "jpeg png",
	.opts = image_opts,
	.priv_size = sizeof(struct pen_image_opts),
	.index = pen__files_index,
	.bind = pen__files_bind,
	.shape = pen__files_shape,
	.locate = pen__files_locate,
};
