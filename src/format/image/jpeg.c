/*
 * JPEG files through libjpeg-turbo: one image, one sample, decoded straight
 * into its row by a decoder that each thread keeps. The pixels are those
 * Pillow gives: exact inverse transform, smooth upsampling, no rotation by
 * EXIF. Grey files next to colour ones become colour.
 *
 * A damaged or truncated file is an error, never a picture with a grey part:
 * the library only warns of these, so warnings count. Refuses CMYK, lossless
 * and 12-bit files, and more scans than a camera would ever write.
 */
#include <inttypes.h>
#include <stdio.h>
#include <turbojpeg.h>

#include "base/mem.h"
#include "format/image/image.h"
#include "format/value.h"

struct jpeg {
	struct pen_images images; /* first */
	int color;
	bool strict;
	int64_t quality;
};

enum { COLOR_AUTO, COLOR_GREY, COLOR_RGB };
static const char *const colors[] = { "auto", "grey", "rgb", NULL };

static const struct pen_opt jpeg_opts[] = {
	{ .name = "color",
	  .type = PEN_OPT_ENUM,
	  .off = offsetof(struct jpeg, color),
	  .dflt = "auto",
	  .choices = colors,
	  .help = "pixels to make; auto: grey only when all files are" },
	{ .name = "strict",
	  .type = PEN_OPT_BOOL,
	  .off = offsetof(struct jpeg, strict),
	  .dflt = "true",
	  .help = "damaged files are errors; false: decode what can be" },
	{ .name = "quality",
	  .type = PEN_OPT_INT,
	  .off = offsetof(struct jpeg, quality),
	  .dflt = "75",
	  .min = 1,
	  .max = 100,
	  .help = "writing" },
	PEN_IMAGE_MAX_PIXELS,
	{ .name = NULL },
};

/* ---- index: markers up to the frame header ---- */

static int damaged(struct pen_peek *pk, const char *what, struct pen_err *err)
{
	return pen__fail(err, PEN_EDATA, pk->name, "%s", what);
}

static int take_frame(const struct pen_format *f, struct pen_peek *pk,
		      uint64_t at, struct pen_found *found, struct pen_err *err)
{
	struct pen_image m = { .dtype = PEN_U8 };
	uint8_t b[6];
	int rc;

	if (pk->size - at < sizeof(b))
		return damaged(pk, "ends within its header: it is truncated",
			       err);
	rc = pk->read(pk, at, b, sizeof(b), err);
	if (rc)
		return rc;
	if (b[0] != 8)
		return pen__fail(err, PEN_ENOTSUP, pk->name,
				 "has %u bits a sample, not 8", b[0]);
	m.height = (uint32_t)b[1] << 8 | b[2];
	m.width = (uint32_t)b[3] << 8 | b[4];
	m.channels = b[5];
	if (m.channels != 1 && m.channels != 3)
		return pen__fail(err, PEN_ENOTSUP, pk->name,
				 "has %u components (CMYK?): only grey and "
				 "colour are read; convert it",
				 m.channels);
	return pen__image_found(f, pk, &m, found, err);
}

/* Baseline, extended and progressive; Huffman or arithmetic. */
static bool is_frame(uint8_t marker)
{
	return (marker >= 0xc0 && marker <= 0xc2) || marker == 0xc9 ||
	       marker == 0xca;
}

static bool is_other_frame(uint8_t marker)
{
	return marker >= 0xc3 && marker <= 0xcf && marker != 0xc4 &&
	       marker != 0xc8 && marker != 0xcc;
}

static int jpeg_index(const struct pen_format *f, struct pen_peek *pk,
		      struct pen_found *found, struct pen_err *err)
{
	uint8_t b[4] = { 0 };
	uint64_t at = 2;
	int rc = pk->size >= 4 ? pk->read(pk, 0, b, 2, err) : 0;

	if (rc)
		return rc;
	if (b[0] != 0xff || b[1] != 0xd8)
		return pen__image_other(pk, "JPEG", err);
	while (pk->size - at >= 4) {
		rc = pk->read(pk, at, b, 4, err);
		if (rc)
			return rc;
		if (b[0] != 0xff)
			return pen__fail(err, PEN_EDATA, pk->name,
					 "damaged: 0x%02x at byte %" PRIu64
					 ", where a marker (0xff) should be",
					 b[0], at);
		if (b[1] == 0xff) { /* fill */
			at++;
			continue;
		}
		if (is_frame(b[1]))
			return take_frame(f, pk, at + 4, found, err);
		if (is_other_frame(b[1]))
			return pen__fail(err, PEN_ENOTSUP, pk->name,
					 "is of a kind of JPEG (0x%02x) that "
					 "is not read",
					 b[1]);
		at += 2;
		if (b[1] == 0x01 || (b[1] >= 0xd0 && b[1] <= 0xd7))
			continue; /* these stand alone */
		if (b[1] < 0xc0 || b[1] == 0xd8 || b[1] == 0xd9 || b[1] == 0xda)
			break;
		at += (uint64_t)b[2] << 8 | b[3];
		if (at > pk->size)
			break;
	}
	return damaged(pk, "has no frame header: it is truncated or damaged",
		       err);
}

static int jpeg_bind(struct pen_format *f, const struct pen_index *ix,
		     struct pen_err *err)
{
	const struct jpeg *p = f->priv;

	return pen__image_bind(f, ix,
			       p->color == COLOR_GREY  ? 1
			       : p->color == COLOR_RGB ? 3
						       : 0,
			       err);
}

/* ---- emit ---- */

/* A thread's decoder. busy: a decode was left by a fault of the mapping it
 * read from, and what the library holds of it is not to be used again. */
struct decoder {
	tjhandle tj;
	bool busy;
};

static void decoder_free(void *arg)
{
	struct decoder *d = arg;

	if (d->tj)
		tjDestroy(d->tj);
	pen__free(d);
}

static struct decoder *decoder_of(struct pen_scratch *s)
{
	struct pen_kept *k = pen__scratch_keep(s, jpeg_opts);
	struct decoder *d;

	if (!k)
		return NULL;
	if (!k->p) {
		k->p = pen__calloc(1, sizeof(*d));
		k->free = decoder_free;
	}
	d = k->p;
	if (d && d->busy) {
		tjDestroy(d->tj);
		d->tj = NULL;
		d->busy = false;
	}
	if (d && !d->tj && !pen__mem_tick())
		d->tj = tjInitDecompress();
	return d && d->tj ? d : NULL;
}

static int decode(const struct jpeg *p, tjhandle tj, const struct pen_image *m,
		  const struct pen_row *r)
{
	const struct pen_span s = r->data[0];
	const int format = p->images.channels == 1 ? TJPF_GRAY : TJPF_RGB;
	const int flags = p->strict ? TJFLAG_STOPONWARNING | TJFLAG_LIMITSCANS
				    : TJFLAG_LIMITSCANS;
	int w, h, sub, space, rc;

	rc = tjDecompressHeader3(tj, s.p, s.n, &w, &h, &sub, &space);
	if (rc && (p->strict || tjGetErrorCode(tj) == TJERR_FATAL))
		return PEN_EDATA;
	if ((uint32_t)w != m->width || (uint32_t)h != m->height)
		return PEN_ESTALE;
	rc = tjDecompress2(tj, s.p, s.n, r->dst[0], w, 0, h, format, flags);
	if (rc && (p->strict || tjGetErrorCode(tj) == TJERR_FATAL))
		return PEN_EDATA;
	return 0;
}

static int jpeg_emit(const struct pen_format *f, const struct pen_row *r,
		     struct pen_err *err)
{
	const struct jpeg *p = f->priv;
	const struct pen_image *m = pen__image_of(f, r->object);
	struct decoder *d = decoder_of(r->scratch);
	char name[256];
	int rc;

	if (!d)
		return pen__fail_nomem(err, "jpeg", 0);
	if (r->dst_len[0] != (size_t)m->width * m->height * p->images.channels)
		return pen__sample_fail(f, r->object, 0, "does not fit its row",
					err);
	d->busy = true;
	rc = decode(p, d->tj, m, r);
	d->busy = false;
	if (!rc)
		return 0;
	f->ix->name_of(f->ix, r->object, name, sizeof(name));
	if (rc == PEN_ESTALE)
		return pen__fail(err, PEN_EDATA, name,
				 "its header is not the one indexed");
	return pen__fail(err, PEN_EDATA, name, "damaged: %s%s",
			 tjGetErrorStr2(d->tj),
			 tjGetErrorCode(d->tj) == TJERR_WARNING
				 ? "; format.strict=false takes it all the same"
				 : "");
}

/* ---- writing ---- */

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
	/* exact transform and 4:2:0, as Pillow writes */
	if (tjCompress2(tj, pixels, (int)m->width, 0, (int)m->height,
			m->channels == 1 ? TJPF_GRAY : TJPF_RGB, &buf, &n, sub,
			(int)p->quality, TJFLAG_ACCURATEDCT | TJFLAG_NOREALLOC))
		rc = pen__fail(err, PEN_EINVAL, "jpeg", "%s",
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
		rc = pen__fail(err, PEN_EINVAL, "jpeg",
			       "holds uint8 of a shape like 224x224 or "
			       "224x224x3, at most 65500 each way");
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
	.help = "JPEG images, one a file",
	.suffixes = jpeg_suffixes,
	.opts = jpeg_opts,
	.priv_size = sizeof(struct jpeg),
	.close = pen__image_close,
	.index = jpeg_index,
	.bind = jpeg_bind,
	.shape = pen__image_shape,
	.locate = pen__image_locate,
	.emit = jpeg_emit,
	.describe = pen__image_describe,
	.write = jpeg_write,
};
