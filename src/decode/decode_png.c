/*
 * PNG through libspng. Grey, grey with alpha, RGB and RGBA are decoded as
 * stored, with 8 or 16 bits; fewer bits become 8, and palettes RGB, or RGBA if
 * they have transparency. Colour correction and transparent colours of images
 * without alpha are ignored.
 *
 * The crc of every chunk is verified, and images that cannot result from the
 * number of bytes (deflate expands at most 1032 times) are rejected before
 * anything is allocated for them.
 */
#include <inttypes.h>

#include "base/mem.h"
#include "codec/deflate.h"
#include "codec/png_memory.h"
#include "decode/decode_image.h"

#define HEADER 33 /* signature and the header chunk */
#define MAX_CHUNK ((size_t)64 << 20)
#define MAX_RATIO 1032u
#define SLACK 64 /* readable bytes after a row */

static const struct pen_opt png_opts[] = {
	PEN_IMAGE_OPTS,
	{ .name = NULL },
};

/* ---- head ---- */

static int damaged(struct pen_peek *pk, const char *what, struct pen_err *err)
{
	return pen__fail(err, P_DAMAGED, pk->name, "%s", what);
}

/* Whether a palette has transparency: its chunk precedes the pixels. */
static int find_trns(struct pen_peek *pk, bool *found, struct pen_err *err)
{
	uint64_t at = HEADER;
	uint8_t b[8];

	*found = false;
	while (pk->size - at >= 12) {
		struct pen_bytes in;
		uint64_t len;
		int rc = pk->read(pk, at, b, 8, err);

		if (rc)
			return rc;
		in = pen__bytes(b, 8);
		len = pen__take_be(&in, 4);
		*found = !memcmp(b + 4, "tRNS", 4);
		if (*found || !memcmp(b + 4, "IDAT", 4))
			return 0;
		if (len > pk->size - at - 12)
			break;
		at += len + 12;
	}
	return damaged(pk, "truncated or damaged: the pixel data is missing",
		       err);
}

static int settle_kind(struct pen_peek *pk, uint8_t depth, uint8_t type,
		       struct pen_head *h, struct pen_err *err)
{
	static const uint8_t channels[] = { 1, 0, 3, 3, 2, 0, 4 };
	bool trns = false;
	int rc = 0;

	if (type > 6 || !channels[type] || !depth || depth > 16 ||
	    (depth & (depth - 1)) || (depth < 8 && type != 0 && type != 3) ||
	    (depth == 16 && type == 3))
		return damaged(pk, "the colour type is invalid", err);
	h->shape[2] = channels[type];
	h->dtype = depth == 16 ? PEN_U16 : PEN_U8;
	h->kind = depth < 8 ? PEN_IMAGE_TO_GREY : PEN_IMAGE_AS_IS;
	if (type != 3)
		return 0;
	rc = find_trns(pk, &trns, err);
	h->shape[2] = trns ? 4 : 3;
	h->kind = trns ? PEN_IMAGE_TO_RGBA : PEN_IMAGE_TO_RGB;
	return rc;
}

static int png_head(const struct pen_decoder *d, struct pen_peek *pk,
		    struct pen_head *out, struct pen_err *err)
{
	static const uint8_t start[] = "\x89PNG\r\n\x1a\n\0\0\0\rIHDR";
	uint8_t b[HEADER] = { 0 }, depth, type;
	uint64_t width, height;
	struct pen_bytes in;
	int rc = pk->size >= HEADER ? pk->read(pk, 0, b, HEADER, err) : 0;

	if (rc)
		return rc;
	if (memcmp(b, start, 16) != 0)
		return pen__image_other(pk, "PNG", err);
	in = pen__bytes(b + 16, HEADER - 16);
	width = pen__take_be(&in, 4);
	height = pen__take_be(&in, 4);
	depth = pen__take_u8(&in);
	type = pen__take_u8(&in);
	pen__take(&in, 3);
	if (pen__take_be(&in, 4) != pen__crc32(0, b + 12, 17))
		return pen__fail(err, P_CHECKSUM, pk->name,
				 "damaged: the crc of the header differs");
	*out = (struct pen_head){
		.ndim = 3,
		.shape = { (int64_t)height, (int64_t)width },
	};
	rc = settle_kind(pk, depth, type, out, err);
	if (rc)
		return rc;
	/* a row has at least the bits of its pixels and one byte */
	if (height && width * depth / 8 + 1 > pk->size * MAX_RATIO / height)
		return damaged(
			pk, "the file is too small for an image of this size",
			err);
	return pen__image_check(d, pk, out, err);
}

/* ---- decode ---- */

/* The library needs a context per image. It is stored with the state of the
 * thread, so that a context abandoned by a fault of the mapping is freed. */
struct unpacker {
	spng_ctx *ctx;
	uint8_t *row; /* a row as decoded, and one as RGB; or all rows */
	size_t cap;
};

static void unpacker_free(void *arg)
{
	struct unpacker *u = arg;

	spng_ctx_free(u->ctx);
	pen__free(u->row);
	pen__free(u);
}

static struct unpacker *unpacker_of(struct pen_scratch *s)
{
	struct pen_kept *k = pen__scratch_keep(s, png_opts);
	struct unpacker *u;

	if (!k)
		return NULL;
	if (!k->p) {
		k->p = pen__calloc(1, sizeof(*u));
		k->free = unpacker_free;
	}
	u = k->p;
	if (!u)
		return NULL;
	spng_ctx_free(u->ctx);
	u->ctx = pen__png_new(0);
	return u->ctx ? u : NULL;
}

static int start(spng_ctx *ctx, const struct pen_encoded *v)
{
	int rc = spng_set_png_buffer(ctx, v->bytes.p, v->bytes.n);

	if (!rc)
		rc = spng_set_crc_action(ctx, SPNG_CRC_ERROR, SPNG_CRC_ERROR);
	return rc ? rc : spng_set_chunk_limits(ctx, MAX_CHUNK, MAX_CHUNK);
}

static int decode(spng_ctx *ctx, int format, int flags,
		  const struct pen_encoded *v)
{
	int rc = start(ctx, v);
	size_t n;

	if (!rc)
		rc = spng_decoded_image_size(ctx, format, &n);
	if (!rc && n != v->len)
		rc = SPNG_EBUFSIZ;
	if (!rc)
		rc = spng_decode_image(ctx, v->dst, n, format, flags);
	/* check the chunks after the pixels, and the end */
	return rc ? rc : spng_decode_chunks(ctx);
}

static int format_of(const struct pen_encoded *v)
{
	const unsigned channels = pen__image_channels(v->as);

	if (channels != v->head.shape[2])
		return channels == 4 ? SPNG_FMT_RGBA8 : SPNG_FMT_RGB8;
	switch (v->head.kind) {
	case PEN_IMAGE_TO_GREY:
		return SPNG_FMT_G8;
	case PEN_IMAGE_TO_RGB:
		return SPNG_FMT_RGB8;
	case PEN_IMAGE_TO_RGBA:
		return SPNG_FMT_RGBA8;
	default:
		return SPNG_FMT_PNG;
	}
}

/* ---- a part of the image, as RGB ---- */

static bool reserve(struct unpacker *u, size_t bytes)
{
	if (bytes <= u->cap)
		return true;
	pen__free(u->row);
	u->row = pen__alloc(bytes, 1);
	u->cap = u->row ? bytes : 0;
	return u->row;
}

/* 16-bit grey becomes 8-bit as in Pillow: values above 255 are cut off. */
static void clip_to_rgb(const uint8_t *in, uint8_t *out, size_t n)
{
	for (size_t i = 0; i < n; i++, in += 2, out += 3) {
		uint16_t v;

		memcpy(&v, in, 2);
		memset(out, v > 255 ? 255 : v, 3);
	}
}

static void put_row(struct unpacker *u, const uint8_t *row, bool wide,
		    struct pen_image_rows *r)
{
	const struct pen_image_part *p = &r->part;

	if (!wide) {
		pen__image_rows_put(r, row + (size_t)p->left * 3);
		return;
	}
	clip_to_rgb(row + (size_t)p->left * 2, u->row, p->width);
	pen__image_rows_put(r, u->row);
}

/* Rows come one by one, or all at once if the image is interlaced. */
static int decode_part(struct unpacker *u, const struct pen_encoded *v,
		       struct pen_image_rows *r)
{
	const struct pen_image_part *p = &r->part;
	const size_t width = (size_t)v->head.shape[1];
	const bool wide = v->head.dtype == PEN_U16 && v->head.shape[2] == 1;
	const int format = wide ? SPNG_FMT_PNG : SPNG_FMT_RGB8;
	const size_t stride = width * (wide ? 2 : 3);
	const size_t rgb =
		width * 3 + SLACK; /* u->row starts with a row of RGB */
	struct spng_ihdr head;
	size_t rows = 1;
	int rc = start(u->ctx, v);

	if (!rc)
		rc = spng_get_ihdr(u->ctx, &head);
	if (rc)
		return rc;
	if (head.interlace_method)
		rows = (size_t)v->head.shape[0];
	if (!reserve(u, rgb + rows * stride + SLACK))
		return SPNG_EMEM;
	rc = spng_decode_image(u->ctx, rows > 1 ? u->row + rgb : NULL,
			       rows > 1 ? rows * stride : 0, format,
			       rows > 1 ? 0 : SPNG_DECODE_PROGRESSIVE);
	for (uint32_t y = 0; y < p->top + p->height && !rc; y++) {
		const uint8_t *row = u->row + rgb + (rows > 1 ? y * stride : 0);

		if (rows == 1)
			rc = spng_decode_row(u->ctx, u->row + rgb, stride);
		if (rc == SPNG_EOI && y + 1 == head.height)
			rc = 0;
		if (!rc && y >= p->top && p->height)
			put_row(u, row, wide, r);
	}
	pen__image_rows_end(r);
	return rc;
}

static int png_decode(const struct pen_decoder *d, const struct pen_encoded *v,
		      struct pen_err *err)
{
	const struct pen_images *p = d->priv;
	struct unpacker *u = unpacker_of(v->scratch);
	struct pen_image_rows rows;
	int rc;

	if (!u)
		return pen__fail_nomem(err, "png", 0);
	if (p->changes && v->len != pen__image_bytes(p, v))
		return pen__decoder_misfit(err);
	if (p->changes && pen__image_rows_start(&rows, &p->plan, v))
		return pen__fail_nomem(err, "png", v->len);
	rc = p->changes ? decode_part(u, v, &rows)
			: decode(u->ctx, format_of(v),
				 v->head.kind == PEN_IMAGE_TO_RGBA
					 ? SPNG_DECODE_TRNS
					 : 0,
				 v);
	spng_ctx_free(u->ctx);
	u->ctx = NULL;
	if (!rc)
		return 0;
	if (no_memory || rc == SPNG_EMEM)
		return pen__fail_nomem(err, "png", v->len);
	return pen__fail(err, P_CANNOT_DECODE, NULL, "damaged: %s",
			 spng_strerror(rc));
}

static const char *const png_media[] = { "image/png", NULL };

const struct pen_decoder_ops pen__decoder_png = {
	.name = "png",
	.help = "PNG image, as pixels HxWxC of 8 or 16 bits",
	.media = png_media,
	.magic = "\x89PNG\r\n\x1a\n",
	.opts = png_opts,
	.priv_size = sizeof(struct pen_images),
	.open = pen__image_options,
	.head = png_head,
	.join = pen__image_join,
	.settle = pen__image_settle,
	.group = "image",
	.group_opts = pen__image_settings,
	.group_off = offsetof(struct pen_images, texts),
	.decode = png_decode,
	.looks = pen__image_looks,
};
