/*
 * PNG files: one sample each, read by the decoder png. Written here through
 * libspng.
 */
#include <stdio.h>

#include "codec/png_memory.h"
#include "format/whole_files.h"
#include "format/image/image.h"

struct png {
	struct pen_image_opts decoder; /* must be first */
	int64_t level;
	bool filter;
};

static const char *const colors[] = { "auto", "rgb", "rgba", NULL };

static const struct pen_opt png_opts[] = {
	{ .name = "color",
	  .type = PEN_OPT_ENUM,
	  .off = offsetof(struct pen_image_opts, color),
	  .dflt = "auto",
	  .choices = colors,
	  .help = "channels of decoded 8-bit images (auto: as stored)" },
	{ .name = "level",
	  .type = PEN_OPT_INT,
	  .off = offsetof(struct png, level),
	  .dflt = "6",
	  .min = 0,
	  .max = 9,
	  .help = "writing: deflate level (9: smallest)" },
	{ .name = "filter",
	  .type = PEN_OPT_BOOL,
	  .off = offsetof(struct png, filter),
	  .dflt = "true",
	  .help = "writing: choose the best filter for each row (no gain for "
		  "noise)" },
	PEN_IMAGE_MAX_PIXELS,
	{ .name = NULL },
};

static int encode(const struct png *p, spng_ctx *ctx, struct pen_image *m,
		  const void *pixels, struct pen_out *out, struct pen_err *err)
{
	static const uint8_t types[] = { 0, 0, 4, 2, 6 };
	struct spng_ihdr head = {
		.width = m->width,
		.height = m->height,
		.bit_depth = m->dtype == PEN_U16 ? 16 : 8,
		.color_type = types[m->channels],
	};
	size_t n = (size_t)m->width * m->height * m->channels *
		   (head.bit_depth / 8);
	void *buf = NULL;
	int rc = spng_set_option(ctx, SPNG_ENCODE_TO_BUFFER, 1);

	if (!rc)
		rc = spng_set_option(ctx, SPNG_IMG_COMPRESSION_LEVEL,
				     (int)p->level);
	if (!rc && !p->filter)
		rc = spng_set_option(ctx, SPNG_FILTER_CHOICE,
				     SPNG_DISABLE_FILTERING);
	if (!rc)
		rc = spng_set_ihdr(ctx, &head);
	if (!rc)
		rc = spng_encode_image(ctx, pixels, n, SPNG_FMT_PNG,
				       SPNG_ENCODE_FINALIZE);
	if (!rc)
		buf = spng_get_png_buffer(ctx, &n, &rc);
	if (buf)
		rc = out->write(out, buf, n, err);
	else
		rc = no_memory ? pen__fail_nomem(err, "png", n)
			       : pen__fail(err, P_CANNOT_WRITE_THIS, "png",
					   "cannot encode the image: %s",
					   spng_strerror(rc));
	pen__free(buf);
	return rc;
}

static int png_write(const struct pen_format *f, const struct pen_table *t,
		     struct pen_out *out, struct pen_err *err)
{
	struct pen_image m;
	void *mem;
	const void *pixels = pen__image_take(t, &m, &mem, err);
	spng_ctx *ctx = NULL;
	int rc;

	if (!pixels)
		return err ? err->code : PEN_EINVAL;
	if ((m.dtype != PEN_U8 && m.dtype != PEN_U16) || !m.channels) {
		rc = pen__fail(err, P_CANNOT_WRITE_THIS, "png",
			       "PNG stores uint8 or uint16 of a shape such as "
			       "224x224 or 224x224x3, with at most 4 channels");
	} else {
		ctx = pen__png_new(SPNG_CTX_ENCODER);
		rc = ctx ? encode(f->priv, ctx, &m, pixels, out, err)
			 : pen__fail_nomem(err, "png", 0);
	}
	spng_ctx_free(ctx);
	pen__free(mem);
	return rc;
}

static const char *const png_suffixes[] = { ".png", NULL };

const struct pen_format_ops pen__format_png = {
	.name = "png",
	.help = "PNG images, one per file",
	.family = "image",
	.decoder = "png",
	.suffixes = png_suffixes,
	.opts = png_opts,
	.priv_size = sizeof(struct png),
	.index = pen__files_index,
	.bind = pen__files_bind,
	.shape = pen__files_shape,
	.locate = pen__files_locate,
	.write = png_write,
};
