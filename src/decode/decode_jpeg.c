/*
 * JPEG through libjpeg-turbo, straight into the row, with one decompressor per
 * thread. The pixels equal Pillow's: exact inverse DCT, smooth upsampling, no
 * EXIF rotation.
 *
 * A damaged or truncated image is an error, never a partly grey picture: the
 * library only warns about these, so warnings count as errors. Rejects CMYK,
 * lossless and 12-bit images, and excessive numbers of scans.
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
	  .help = "treat damaged images as errors (false: decode what is "
		  "readable)" },
	{ .name = NULL },
};

/* ---- head: markers up to the frame header ---- */

/*
 * With Huffman coding every block has at least one bit. 32x32 pixels have at
 * least 8 blocks: one component may have four times the horizontal resolution
 * and another one four times the vertical.
 */
static bool can_contain(const struct pen_peek *pk, const struct pen_head *h)
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
		return pen__fail(err, P_TRUNCATED, pk->name,
				 "truncated: the file ends within its header");
	rc = pk->read(pk, at, b, sizeof(b), err);
	if (rc)
		return rc;
	if (b[0] != 8)
		return pen__fail(err, P_UNSUPPORTED_FEATURE, pk->name,
				 "the image has %u bits per sample; only 8 are "
				 "supported",
				 b[0]);
	if (b[5] != 1 && b[5] != 3)
		return pen__fail(
			err, P_UNSUPPORTED_FEATURE, pk->name,
			"the image has %u components (CMYK?), but only grey "
			"and colour are supported; convert it",
			b[5]);
	*out = (struct pen_head){
		.dtype = PEN_U8,
		.ndim = 3,
		.kind = PEN_IMAGE_JPEG,
		.shape = { b[1] << 8 | b[2], b[3] << 8 | b[4], b[5] },
	};
	rc = pen__image_check(d, pk, out, err);
	if (rc || !huffman || can_contain(pk, out))
		return rc;
	return pen__fail(err, P_TRUNCATED, pk->name,
			 "the file is too small for an image of this size");
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
			return pen__fail(err, P_DAMAGED, pk->name,
					 "damaged: expected a marker (0xff) at "
					 "byte %" PRIu64 ", found 0x%02x",
					 at, b[0]);
		if (b[1] == 0xff) { /* fill byte */
			at++;
			continue;
		}
		if (is_frame(b[1]))
			return take_frame(d, pk, at + 4, b[1] < 0xc9, out, err);
		if (is_other_frame(b[1]))
			return pen__fail(
				err, P_UNSUPPORTED_FEATURE, pk->name,
				"the JPEG process 0x%02x is not supported",
				b[1]);
		at += 2;
		if (b[1] == 0x01 || (b[1] >= 0xd0 && b[1] <= 0xd7))
			continue; /* markers without a length */
		if (b[1] < 0xc0 || b[1] == 0xd8 || b[1] == 0xd9 || b[1] == 0xda)
			break;
		at += (uint64_t)b[2] << 8 | b[3];
		if (at > pk->size)
			break;
	}
	return pen__fail(err, P_DAMAGED, pk->name,
			 "truncated or damaged: the frame header is missing");
}

/* ---- decode ---- */

/* Decompressor of a thread. busy: a decode failed, or was interrupted by a
 * fault of the mapping it read from, so the library's state must not be used
 * again. */
struct unpacker {
	tjhandle tj;
	bool busy;
	bool strict; /* setting of the last use, which the library remembers */
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
		return pen__decoder_misfit(err);
	u->busy = true;
	rc = decode(p, u->tj, v);
	u->busy = rc != 0;
	if (!rc)
		return 0;
	if (rc == PEN_ESTALE)
		return pen__fail(err, P_DAMAGED, NULL,
				 "the header differs from the indexed one");
	if (tjGetErrorCode(u->tj) != TJERR_WARNING)
		return pen__fail(err, P_CANNOT_DECODE, NULL, "damaged: %s",
				 tjGetErrorStr2(u->tj));
	return pen__fail(err, P_CANNOT_DECODE, NULL,
			 "damaged: %s; set %sstrict=false to accept it",
			 tjGetErrorStr2(u->tj), d->prefix);
}

static const char *const jpeg_media[] = { "image/jpeg", NULL };

const struct pen_decoder_ops pen__decoder_jpeg = {
	.name = "jpeg",
	.help = "JPEG image, as pixels HxWxC",
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
