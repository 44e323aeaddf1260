/*
 * JPEG through libjpeg-turbo, straight into the row, with one decompressor per
 * thread. The pixels equal Pillow's: exact inverse DCT, smooth upsampling, CMYK
 * by Pillow's rule, no EXIF rotation.
 *
 * Of an image that is cropped only the part is decoded: columns outside it are
 * not reconstructed, and rows below it not even read.
 *
 * A damaged or truncated image is an error, never a partly grey picture: the
 * library only warns about these, so warnings count as errors. Rejects lossless
 * and 12-bit images, and excessive numbers of scans.
 */
#include <inttypes.h>
#include <setjmp.h>
#include <stdio.h>

/* these need the types of the headers above */
#include <jpeglib.h>

#include <jerror.h>

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
	if (b[5] != 1 && b[5] != 3 && b[5] != 4)
		return pen__fail(err, P_UNSUPPORTED_FEATURE, pk->name,
				 "the image has %u components; only grey, "
				 "colour and CMYK are supported",
				 b[5]);
	*out = (struct pen_head){
		.dtype = PEN_U8,
		.ndim = 3,
		.kind = PEN_IMAGE_JPEG,
		.shape = { b[1] << 8 | b[2], b[3] << 8 | b[4],
			   b[5] == 1 ? 1 : 3 },
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

/* Upsampled chroma depends on the neighbours of a pixel. */
#define MARGIN 2
#define MOST_SCANS 500 /* a progressive image may have any number of them */
#define SLACK 64       /* bytes after a row that may be read or written */

/*
 * Decompressor of a thread. `ready` is false while it is used, so that one that
 * was abandoned by a fault of the mapping it read from is not used again.
 */
struct unpacker {
	struct jpeg_decompress_struct j; /* first: errors get here from it */
	struct jpeg_error_mgr errors;
	struct jpeg_progress_mgr progress;
	jmp_buf fail;
	char why[JMSG_LENGTH_MAX];
	bool strict, damaged;
	bool made, ready;
	uint8_t *row; /* one row as decoded, and one as RGB */
	size_t cap;
};

static void on_error(j_common_ptr j)
{
	struct unpacker *u = (struct unpacker *)j;

	j->err->format_message(j, u->why);
	longjmp(u->fail, 1);
}

/* The library's warnings are damage, its other messages are of no interest. */
static void on_message(j_common_ptr j, int level)
{
	struct unpacker *u = (struct unpacker *)j;

	if (level >= 0 || !u->strict)
		return;
	u->damaged = true;
	on_error(j);
}

static void on_progress(j_common_ptr j)
{
	if (((j_decompress_ptr)j)->input_scan_number > MOST_SCANS)
		ERREXIT(j, JERR_BAD_PROGRESSION);
}

static void unpacker_free(void *arg)
{
	struct unpacker *u = arg;

	if (u->made)
		jpeg_destroy_decompress(&u->j);
	pen__free(u->row);
	pen__free(u);
}

static struct unpacker *unpacker_of(struct pen_scratch *s)
{
	struct pen_kept *k = pen__scratch_keep(s, jpeg_opts);
	struct unpacker *u;

	if (!k)
		return NULL;
	if (!k->p) {
		k->p = pen__calloc(1, sizeof(*u));
		k->free = unpacker_free;
	}
	u = k->p;
	if (u && u->made && !u->ready) {
		jpeg_destroy_decompress(&u->j);
		u->made = false;
	}
	if (!u || u->made)
		return u;
	u->j.err = jpeg_std_error(&u->errors);
	u->errors.error_exit = on_error;
	u->errors.emit_message = on_message;
	if (pen__mem_tick() || setjmp(u->fail))
		return NULL;
	jpeg_create_decompress(&u->j);
	u->progress.progress_monitor = on_progress;
	u->j.progress = &u->progress;
	u->made = true;
	return u;
}

static bool reserve(struct unpacker *u, size_t bytes)
{
	if (bytes <= u->cap)
		return true;
	pen__free(u->row);
	u->row = pen__alloc(bytes, 1);
	u->cap = u->row ? bytes : 0;
	return u->row;
}

/* Pillow's conversion, of values that are stored inverted: it takes all images
 * for Adobe's. */
static void cmyk_to_rgb(const uint8_t *in, uint8_t *out, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++, in += 4, out += 3)
		for (unsigned c = 0; c < 3; c++) {
			const uint32_t k = in[3];
			const uint32_t t = (255u - in[c]) * k + 128;

			out[c] = (uint8_t)(k - (((t >> 8) + t) >> 8));
		}
}

/* The next row, as RGB; at: pixels to leave out. */
static const uint8_t *next_row(struct unpacker *u, uint32_t at)
{
	const uint32_t width = u->j.output_width;
	uint8_t *row = u->row;

	jpeg_read_scanlines(&u->j, &row, 1);
	if (u->j.out_color_components == 3)
		return row + (size_t)at * 3;
	row += (size_t)width * 4 + SLACK;
	cmyk_to_rgb(u->row + (size_t)at * 4, row, width - at);
	return row;
}

/* Reads the header and sets the output; false: not as indexed. */
static bool begin(struct unpacker *u, const struct pen_encoded *v,
		  J_COLOR_SPACE out)
{
	struct jpeg_decompress_struct *j = &u->j;

	jpeg_mem_src(j, v->bytes.p, v->bytes.n);
	jpeg_read_header(j, TRUE);
	if (j->image_width != (JDIMENSION)v->head.shape[1] ||
	    j->image_height != (JDIMENSION)v->head.shape[0])
		return false;
	j->out_color_space = j->num_components == 4 ? JCS_CMYK : out;
	jpeg_start_decompress(j);
	return true;
}

/* The part of the image that the row of the batch needs. */
static int decode_part(struct unpacker *u, const struct pen_encoded *v,
		       struct pen_image_rows *r)
{
	const struct pen_image_part *p = &r->part;
	const uint32_t left = p->left > MARGIN ? p->left - MARGIN : 0;
	JDIMENSION from = left, n = p->left - left + p->width + MARGIN;

	if (!begin(u, v, JCS_RGB))
		return PEN_ESTALE;
	if (n > u->j.output_width - left)
		n = u->j.output_width - left;
	if (p->height && n < u->j.output_width)
		jpeg_crop_scanline(&u->j, &from, &n);
	else
		from = 0;
	if (!reserve(u, (size_t)u->j.output_width * 7 + 2 * SLACK))
		return PEN_ENOMEM;
	if (p->height && p->top)
		jpeg_skip_scanlines(&u->j, p->top);
	for (uint32_t y = 0; y < p->height; y++)
		pen__image_rows_put(r, next_row(u, p->left - from));
	pen__image_rows_end(r);
	jpeg_abort_decompress(&u->j);
	return 0;
}

static uint8_t luma(const uint8_t *p)
{
	return (uint8_t)((p[0] * 19595 + p[1] * 38470 + p[2] * 7471 + 0x8000) >>
			 16);
}

/* A row of CMYK as grey, RGB or RGBA. */
static void convert_row(const uint8_t *rgb, uint8_t *to, uint32_t n,
			unsigned channels)
{
	for (uint32_t i = 0; i < n; i++, rgb += 3, to += channels) {
		if (channels == 1) {
			to[0] = luma(rgb);
			continue;
		}
		memcpy(to, rgb, 3);
		if (channels == 4)
			to[3] = 255;
	}
}

static int decode_all(struct unpacker *u, const struct pen_encoded *v)
{
	static const J_COLOR_SPACE spaces[] = { 0, JCS_GRAYSCALE, 0, JCS_RGB,
						JCS_EXT_RGBA };
	const unsigned channels = pen__image_channels(v->as);
	const size_t stride = (size_t)v->head.shape[1] * channels;
	uint8_t *to = v->dst;

	if (!begin(u, v, spaces[channels]))
		return PEN_ESTALE;
	if (u->j.num_components == 4 &&
	    !reserve(u, (size_t)u->j.output_width * 7 + 2 * SLACK))
		return PEN_ENOMEM;
	for (; u->j.output_scanline < u->j.output_height; to += stride)
		if (u->j.num_components == 4)
			convert_row(next_row(u, 0), to, u->j.output_width,
				    channels);
		else
			jpeg_read_scanlines(&u->j, &to, 1);
	jpeg_finish_decompress(&u->j);
	return 0;
}

/* libjpeg leaves its functions with longjmp(). */
static int decode(struct unpacker *u, const struct pen_encoded *v,
		  struct pen_image_rows *r)
{
	int rc;

	u->ready = u->damaged = false;
	if (setjmp(u->fail))
		return PEN_EDATA; /* the next one gets a new decompressor */
	rc = r ? decode_part(u, v, r) : decode_all(u, v);
	u->ready = !rc;
	return rc;
}

static int jpeg_decode(const struct pen_decoder *d, const struct pen_encoded *v,
		       struct pen_err *err)
{
	const struct pen_images *p = d->priv;
	struct unpacker *u = unpacker_of(v->scratch);
	struct pen_image_rows rows;
	int rc = u ? 0 : PEN_ENOMEM;

	if (!rc && v->len != pen__image_bytes(p, v))
		return pen__decoder_misfit(err);
	if (!rc && p->changes)
		rc = pen__image_rows_start(&rows, &p->plan, v);
	if (!rc) {
		u->strict = p->strict;
		rc = decode(u, v, p->changes ? &rows : NULL);
	}
	if (!rc)
		return 0;
	if (rc == PEN_ENOMEM)
		return pen__fail_nomem(err, "jpeg", v->len);
	if (rc == PEN_ESTALE)
		return pen__fail(err, P_DAMAGED, NULL,
				 "the header differs from the indexed one");
	if (!u->damaged)
		return pen__fail(err, P_CANNOT_DECODE, NULL, "damaged: %s",
				 u->why);
	return pen__fail(err, P_CANNOT_DECODE, NULL,
			 "damaged: %s; set %sstrict=false to accept it", u->why,
			 d->prefix);
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
	.group = "image",
	.group_opts = pen__image_settings,
	.group_off = offsetof(struct pen_images, texts),
	.decode = jpeg_decode,
	.looks = pen__image_looks,
};
