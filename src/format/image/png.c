/*
 * PNG files through libspng: one image, one sample. Grey, grey with alpha,
 * RGB and RGBA come as they are, 8 or 16 bits deep; fewer bits become 8, and
 * palettes RGB, or RGBA when they have transparency. Colour correction and
 * transparent colours of images without alpha are left alone.
 *
 * Every chunk's crc is checked, and an image that could not come out of a
 * file of this size (deflate shrinks at most 1032 times) is refused before
 * anything is allocated for it.
 */
#include <inttypes.h>
#include <spng.h>
#include <stdio.h>

#include "base/mem.h"
#include "codec/deflate.h"
#include "format/image/image.h"
#include "format/value.h"

#define HEADER 33 /* signature and the header chunk */
#define MAX_CHUNK ((size_t)64 << 20)
#define MAX_RATIO 1032u

struct png {
	struct pen_images images; /* first */
	int color;
	int64_t level;
	bool filter;
};

enum { COLOR_AUTO, COLOR_RGB, COLOR_RGBA };
static const char *const colors[] = { "auto", "rgb", "rgba", NULL };

/* What an image's kind says: how it is decoded when left as it is. */
enum { AS_IS, TO_GREY, TO_RGB, TO_RGBA };

static const struct pen_opt png_opts[] = {
	{ .name = "color",
	  .type = PEN_OPT_ENUM,
	  .off = offsetof(struct png, color),
	  .dflt = "auto",
	  .choices = colors,
	  .help = "pixels to make of 8-bit images; auto: what they have" },
	{ .name = "level",
	  .type = PEN_OPT_INT,
	  .off = offsetof(struct png, level),
	  .dflt = "6",
	  .min = 0,
	  .max = 9,
	  .help = "writing: how hard to deflate" },
	{ .name = "filter",
	  .type = PEN_OPT_BOOL,
	  .off = offsetof(struct png, filter),
	  .dflt = "true",
	  .help = "writing: try which filter is best; of no use for noise" },
	PEN_IMAGE_MAX_PIXELS,
	{ .name = NULL },
};

/* ---- index ---- */

static int damaged(struct pen_peek *pk, const char *what, struct pen_err *err)
{
	return pen__fail(err, PEN_EDATA, pk->name, "%s", what);
}

/* Does a palette have transparency? Its chunk is before the pixels. */
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
	return damaged(pk, "has no pixels: it is truncated or damaged", err);
}

static int settle_kind(struct pen_peek *pk, uint8_t depth, uint8_t type,
		       struct pen_image *m, struct pen_err *err)
{
	static const uint8_t channels[] = { 1, 0, 3, 3, 2, 0, 4 };
	bool trns = false;
	int rc = 0;

	if (type > 6 || !channels[type] || !depth || depth > 16 ||
	    (depth & (depth - 1)) || (depth < 8 && type != 0 && type != 3) ||
	    (depth == 16 && type == 3))
		return damaged(pk, "has a colour type that does not exist",
			       err);
	m->channels = channels[type];
	m->dtype = depth == 16 ? PEN_U16 : PEN_U8;
	m->kind = depth < 8 ? TO_GREY : AS_IS;
	if (type != 3)
		return 0;
	rc = find_trns(pk, &trns, err);
	m->channels = trns ? 4 : 3;
	m->kind = trns ? TO_RGBA : TO_RGB;
	return rc;
}

static int png_index(const struct pen_format *f, struct pen_peek *pk,
		     struct pen_found *found, struct pen_err *err)
{
	static const uint8_t start[] = "\x89PNG\r\n\x1a\n\0\0\0\rIHDR";
	uint8_t b[HEADER] = { 0 }, depth, type;
	struct pen_image m = { 0 };
	struct pen_bytes in;
	int rc = pk->size >= HEADER ? pk->read(pk, 0, b, HEADER, err) : 0;

	if (rc)
		return rc;
	if (memcmp(b, start, 16) != 0)
		return pen__image_other(pk, "PNG", err);
	in = pen__bytes(b + 16, HEADER - 16);
	m.width = (uint32_t)pen__take_be(&in, 4);
	m.height = (uint32_t)pen__take_be(&in, 4);
	depth = pen__take_u8(&in);
	type = pen__take_u8(&in);
	pen__take(&in, 3);
	if (pen__take_be(&in, 4) != pen__crc32(0, b + 12, 17))
		return damaged(pk, "damaged: the crc of its header differs",
			       err);
	rc = settle_kind(pk, depth, type, &m, err);
	if (rc)
		return rc;
	/* a row is at least its pixels' bits and a byte */
	if (m.height && ((uint64_t)m.width * depth / 8 + 1) >
				pk->size * MAX_RATIO / m.height)
		return damaged(pk, "is too small for an image of its size",
			       err);
	return pen__image_found(f, pk, &m, found, err);
}

static int png_bind(struct pen_format *f, const struct pen_index *ix,
		    struct pen_err *err)
{
	const struct png *p = f->priv;

	return pen__image_bind(f, ix,
			       p->color == COLOR_RGB	? 3
			       : p->color == COLOR_RGBA ? 4
							: 0,
			       err);
}

/* ---- emit ---- */

/*
 * The library's allocator gets no argument of ours, and says "damaged" of some
 * images when zlib had no memory: so a failed allocation is noted here.
 */
static _Thread_local bool no_memory;

static void *noted(void *p)
{
	no_memory = no_memory || !p;
	return p;
}

static void *take_memory(size_t n)
{
	return noted(pen__alloc(n, 1));
}

static void *take_zeros(size_t n, size_t size)
{
	return noted(pen__calloc(n, size));
}

static void *grow_memory(void *p, size_t n)
{
	return noted(pen__realloc(p, n, 1));
}

/* The library has a context per image; it is kept where the thread keeps its
 * things, so that one left by a fault of the mapping it read from is freed. */
static void free_ctx(void *ctx)
{
	spng_ctx_free(ctx);
}

static spng_ctx *new_ctx(int flags)
{
	struct spng_alloc mem = { take_memory, grow_memory, take_zeros,
				  pen__free };

	no_memory = false;
	return spng_ctx_new2(&mem, flags);
}

static int decode(spng_ctx *ctx, struct pen_span s, int format, int flags,
		  const struct pen_row *r)
{
	int rc = spng_set_png_buffer(ctx, s.p, s.n);
	size_t n;

	if (!rc)
		rc = spng_set_crc_action(ctx, SPNG_CRC_ERROR, SPNG_CRC_ERROR);
	if (!rc)
		rc = spng_set_chunk_limits(ctx, MAX_CHUNK, MAX_CHUNK);
	if (!rc)
		rc = spng_decoded_image_size(ctx, format, &n);
	if (!rc && n != r->dst_len[0])
		rc = SPNG_EBUFSIZ;
	if (!rc)
		rc = spng_decode_image(ctx, r->dst[0], n, format, flags);
	/* what follows the pixels, and that there is an end */
	return rc ? rc : spng_decode_chunks(ctx);
}

static int format_of(const struct png *p, const struct pen_image *m)
{
	static const int formats[] = { SPNG_FMT_PNG, SPNG_FMT_G8, SPNG_FMT_RGB8,
				       SPNG_FMT_RGBA8 };

	if (p->images.channels == m->channels)
		return formats[m->kind];
	return p->images.channels == 4 ? SPNG_FMT_RGBA8 : SPNG_FMT_RGB8;
}

static int png_emit(const struct pen_format *f, const struct pen_row *r,
		    struct pen_err *err)
{
	const struct png *p = f->priv;
	const struct pen_image *m = pen__image_of(f, r->object);
	struct pen_kept *k = pen__scratch_keep(r->scratch, png_opts);
	char name[256];
	int rc;

	if (k && k->p)
		spng_ctx_free(k->p);
	if (k) {
		k->free = free_ctx;
		k->p = new_ctx(0);
	}
	if (!k || !k->p)
		return pen__fail_nomem(err, "png", 0);
	rc = decode(k->p, r->data[0], format_of(p, m),
		    m->kind == TO_RGBA ? SPNG_DECODE_TRNS : 0, r);
	spng_ctx_free(k->p);
	k->p = NULL;
	if (!rc)
		return 0;
	if (no_memory)
		return pen__fail_nomem(err, "png", r->dst_len[0]);
	f->ix->name_of(f->ix, r->object, name, sizeof(name));
	return pen__fail(err, PEN_EDATA, name, "damaged: %s",
			 spng_strerror(rc));
}

/* ---- writing ---- */

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
			       : pen__fail(err, PEN_EINVAL, "png", "%s",
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
		rc = pen__fail(err, PEN_EINVAL, "png",
			       "holds uint8 or uint16 of a shape like 224x224 "
			       "or 224x224x3, with at most 4 channels");
	} else {
		ctx = new_ctx(SPNG_CTX_ENCODER);
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
	.help = "PNG images, one a file",
	.suffixes = png_suffixes,
	.opts = png_opts,
	.priv_size = sizeof(struct png),
	.close = pen__image_close,
	.index = png_index,
	.bind = png_bind,
	.shape = pen__image_shape,
	.locate = pen__image_locate,
	.emit = png_emit,
	.describe = pen__image_describe,
	.write = png_write,
};
