/*
 * JPEG through libjpeg-turbo, straight into the row, by a decompressor that
 * each thread keeps. The pixels are those Pillow gives: exact inverse
 * transform, smooth upsampling, no rotation by EXIF.
 *
 * A damaged or truncated image is an error, never a picture with a grey part:
 * the library only warns of these, so warnings count. Refuses CMYK, lossless
 * and 12-bit images, and more scans than a camera would ever write.
 */
#include <inttypes.h>
#include <turbojpeg.h>

#include "base/mem.h"
#include "decode/decode_image.h"

static const struct pen_opt jpeg_opts[] = {
	PEN_IMAGE_OPTS,
	{ .name = "strict",
	  .type = PEN_OPT_BOOL,
	  .off = offsetof(struct pen_images, strict),
	  .dflt = "true",
	  .help = "damaged images are errors; false: decode what can be" },
	{ .name = NULL },
};

/* ---- head: markers up to the frame header ---- */

static int damaged(struct pen_peek *pk, const char *what, struct pen_err *err)
{
	return pen__fail(err, PEN_EDATA, pk->name, "%s", what);
}

/*
 * Every block has a bit at least where codes are Huffman's. Of 32x32 pixels
 * there are 8 blocks, when one component is kept four times as fine across and
 * another one down, and else more.
 */
static bool holds(const struct pen_peek *pk, const struct pen_head *h)
{
	return (uint64_t)(h->shape[0] * h->shape[1]) / 1024 <= pk->size;
}

static int take_frame(const struct pen_decoder *d, struct pen_peek *pk,
		      uint64_t at, bool huffman, struct pen_head *out,
		      struct pen_err *err)
{
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
	if (b[5] != 1 && b[5] != 3)
		return pen__fail(err, PEN_ENOTSUP, pk->name,
				 "has %u components (CMYK?): only grey and "
				 "colour are read; convert it",
				 b[5]);
	*out = (struct pen_head){
		.dtype = PEN_U8,
		.ndim = 3,
		.kind = PEN_IMAGE_JPEG,
		.shape = { b[1] << 8 | b[2], b[3] << 8 | b[4], b[5] },
	};
	rc = pen__image_check(d, pk, out, err);
	if (rc || !huffman || holds(pk, out))
		return rc;
	return damaged(pk, "is too small for an image of its size", err);
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

static int jpeg_head(const struct pen_decoder *d, struct pen_peek *pk,
		     struct pen_head *out, struct pen_err *err)
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
			return take_frame(d, pk, at + 4, b[1] < 0xc9, out, err);
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

/* ---- decode ---- */

/* A thread's decompressor. busy: a decode failed, or was left by a fault of the
 * mapping it read from, and what the library holds of it is not to be used
 * again. */
struct unpacker {
	tjhandle tj;
	bool busy;
	bool strict; /* as it was last used: the library keeps that */
};

static void unpacker_free(void *arg)
{
	struct unpacker *d = arg;

	if (d->tj)
		tjDestroy(d->tj);
	pen__free(d);
}

static struct unpacker *unpacker_of(struct pen_scratch *s, bool strict)
{
	struct pen_kept *k = pen__scratch_keep(s, jpeg_opts);
	struct unpacker *d;

	if (!k)
		return NULL;
	if (!k->p) {
		k->p = pen__calloc(1, sizeof(*d));
		k->free = unpacker_free;
	}
	d = k->p;
	if (d && d->tj && (d->busy || d->strict != strict)) {
		tjDestroy(d->tj);
		d->tj = NULL;
		d->busy = false;
	}
	if (d && !d->tj && !pen__mem_tick())
		d->tj = tjInitDecompress();
	if (d)
		d->strict = strict;
	return d && d->tj ? d : NULL;
}

static int decode(const struct pen_images *p, tjhandle tj,
		  const struct pen_encoded *v)
{
	static const int formats[] = { 0, TJPF_GRAY, 0, TJPF_RGB, TJPF_RGBA };
	const struct pen_span s = v->bytes;
	const int format = formats[pen__image_channels(v->as)];
	const int flags = p->strict ? TJFLAG_STOPONWARNING | TJFLAG_LIMITSCANS
				    : TJFLAG_LIMITSCANS;
	int w = 0, h = 0, sub, space, rc;

	rc = tjDecompressHeader3(tj, s.p, s.n, &w, &h, &sub, &space);
	if (rc && (p->strict || tjGetErrorCode(tj) == TJERR_FATAL))
		return PEN_EDATA;
	if (w != v->head.shape[1] || h != v->head.shape[0])
		return PEN_ESTALE;
	rc = tjDecompress2(tj, s.p, s.n, v->dst, w, 0, h, format, flags);
	if (rc && (p->strict || tjGetErrorCode(tj) == TJERR_FATAL))
		return PEN_EDATA;
	return 0;
}

static int jpeg_decode(const struct pen_decoder *d, const struct pen_encoded *v,
		       struct pen_err *err)
{
	const struct pen_images *p = d->priv;
	struct unpacker *u = unpacker_of(v->scratch, p->strict);
	int rc;

	if (!u)
		return pen__fail_nomem(err, "jpeg", 0);
	if (v->len != (size_t)v->head.shape[0] * (size_t)v->head.shape[1] *
			      pen__image_channels(v->as))
		return pen__fail(err, PEN_EDATA, NULL, "does not fit its row");
	u->busy = true;
	rc = decode(p, u->tj, v);
	u->busy = rc != 0;
	if (!rc)
		return 0;
	if (rc == PEN_ESTALE)
		return pen__fail(err, PEN_EDATA, NULL,
				 "its header is not the one indexed");
	if (tjGetErrorCode(u->tj) != TJERR_WARNING)
		return pen__fail(err, PEN_EDATA, NULL, "damaged: %s",
				 tjGetErrorStr2(u->tj));
	return pen__fail(err, PEN_EDATA, NULL,
			 "damaged: %s; %sstrict=false takes it all the same",
			 tjGetErrorStr2(u->tj), d->prefix);
}

static const char *const jpeg_media[] = { "image/jpeg", NULL };

const struct pen_decoder_ops pen__decoder_jpeg = {
	.name = "jpeg",
	.help = "JPEG: pixels, HxWxC",
	.media = jpeg_media,
	.magic = "\xff\xd8",
	.opts = jpeg_opts,
	.priv_size = sizeof(struct pen_images),
	.open = pen__image_options,
	.head = jpeg_head,
	.join = pen__image_join,
	.settle = pen__image_settle,
	.decode = jpeg_decode,
	.looks = pen__image_looks,
};
