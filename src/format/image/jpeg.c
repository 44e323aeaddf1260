/*
 * JPEG files: one sample each, read by the decoder jpeg. Written here through
 * libjpeg-turbo.
 */
#include <stdio.h>
#include <turbojpeg.h>

#include "base/mem.h"
#include "format/whole_files.h"
#include "format/image/image.h"

struct jpeg {
	struct pen_image_opts decoder; /* must be first */
	int64_t quality;
};

static const char *const colors[] = { "auto", "grey", "rgb", NULL };

static const struct pen_opt jpeg_opts[] = {
	{ .name = "color",
	  .type = PEN_OPT_ENUM,
	  .off = offsetof(struct pen_image_opts, color),
	  .dflt = "auto",
	  .choices = colors,
	  .help = "channels of decoded images (auto: grey if all files are "
		  "grey)" },
	PEN_IMAGE_STRICT,
	{ .name = "quality",
	  .type = PEN_OPT_INT,
	  .off = offsetof(struct jpeg, quality),
	  .dflt = "75",
	  .min = 1,
	  .max = 100,
	  .help = "writing: quality of the compression" },
	PEN_IMAGE_MAX_PIXELS,
	{ .name = NULL },
};

static int compress(const struct jpeg *p, tjhandle tj,
		    const struct pen_image *m, const void *pixels,
		    struct pen_out *out, struct pen_err *err)
{
	const int sub = m->channels == 1 ? TJSAMP_GRAY : TJSAMP_420;
	unsigned long n = tjBufSize((int)m->width, (int)m->height, sub);
	unsigned char *buf = pen__alloc(n, 1);
	int rc;

	if (!buf)
		return pen__fail_nomem(err, "jpeg", n);
	/* exact DCT and 4:2:0, like Pillow */
	if (tjCompress2(tj, pixels, (int)m->width, 0, (int)m->height,
			m->channels == 1 ? TJPF_GRAY : TJPF_RGB, &buf, &n, sub,
			(int)p->quality, TJFLAG_ACCURATEDCT | TJFLAG_NOREALLOC))
		rc = pen__fail(err, P_CANNOT_WRITE_THIS, "jpeg",
			       "cannot encode the image: %s",
			       tjGetErrorStr2(tj));
	else
		rc = out->write(out, buf, n, err);
	pen__free(buf);
	return rc;
}

static int jpeg_write(const struct pen_format *f, const struct pen_table *t,
		      struct pen_out *out, struct pen_err *err)
{
	struct pen_image m;
	void *mem;
	const void *pixels = pen__image_take(t, &m, &mem, err);
	tjhandle tj = NULL;
	int rc;

	if (!pixels)
		return err ? err->code : PEN_EINVAL;
	if (m.dtype != PEN_U8 || (m.channels != 1 && m.channels != 3) ||
	    m.width > 65500 || m.height > 65500) {
		rc = pen__fail(
			err, P_CANNOT_WRITE_THIS, "jpeg",
			"JPEG stores uint8 of a shape such as 224x224 or "
			"224x224x3, with at most 65500 pixels per axis");
	} else {
		tj = pen__mem_tick() ? NULL : tjInitCompress();
		rc = tj ? compress(f->priv, tj, &m, pixels, out, err)
			: pen__fail_nomem(err, "jpeg", 0);
	}
	if (tj)
		tjDestroy(tj);
	pen__free(mem);
	return rc;
}

static const char *const jpeg_suffixes[] = { ".jpeg", ".jpg", NULL };

const struct pen_format_ops pen__format_jpeg = {
	.name = "jpeg",
	.help = "JPEG images, one per file",
	.family = "image",
	.decoder = "jpeg",
	.suffixes = jpeg_suffixes,
	.opts = jpeg_opts,
	.priv_size = sizeof(struct jpeg),
	.index = pen__files_index,
	.bind = pen__files_bind,
	.shape = pen__files_shape,
	.locate = pen__files_locate,
	.write = jpeg_write,
};
