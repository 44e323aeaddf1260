/*
 * One block of a Blosc chunk. The encoding of nearly all zarr stores (4-byte
 * numbers, byte shuffle, LZ4) is decoded here: the four byte streams are used
 * in place (the lowest bytes of gene numbers are usually stored uncompressed),
 * and numbers that are kept narrow are never widened. Everything else goes to
 * libblosc through a buffer that contains only this block.
 */
#include "codec/codec.h"
#include "codec/byte_shuffle.h"
#include "format/chunked/chunks.h"

#define HEAD 20u /* bytes, including the offset of the only block */

/* Flags, the third byte of a header; the fourth is the type size. */
#define SHUFFLED 0x01u
#define NOT_PLAIN 0x06u /* stored uncompressed, or bit shuffle */
#define NOT_SPLIT 0x10u
#define CODEC_SHIFT 5u
#define CODEC_LZ4 1u

size_t pen__block_room(const struct pen_chunked *a)
{
	return HEAD + a->chunk_bytes + PEN_CHUNKED_BLOCK_MORE;
}

static unsigned flags_of(const struct pen_chunk_job *c)
{
	return c->a->filters.f[0].item >> 16 & 0xff;
}

/* Whether the streams have the usual encoding; *codec is LZ4 then. */
static bool is_usual(const struct pen_chunk_job *c,
		     const struct pen_codec **codec)
{
	const unsigned flags = flags_of(c);

	*codec = NULL;
	if (c->a->item == 4 && c->a->filters.f[0].item >> 24 == 4 &&
	    c->size % 4 == 0 && (flags & SHUFFLED) && !(flags & NOT_PLAIN) &&
	    flags >> CODEC_SHIFT == CODEC_LZ4)
		*codec = pen__codec_find("lz4");
	return *codec != NULL;
}

/* The next piece of a block: its length, then n bytes, compressed unless that
 * does not make them smaller. Returns where the n bytes are; NULL: damaged. */
static const uint8_t *next_piece(const struct pen_chunk_job *c,
				 const struct pen_codec *codec,
				 struct pen_bytes *in, uint8_t *room, size_t n)
{
	const uint32_t len = pen__take_u32(in);
	const uint8_t *p = pen__take(in, len);
	size_t got = 0;

	if (in->bad || len == n)
		return in->bad ? NULL : p;
	if (codec->unpack(c->scratch, p, len, room, n, &got) || got != n)
		return NULL;
	return room;
}

/* A block has one piece per stream, or one for all four: for the last, shorter
 * block of a chunk, and if the writer chose so. */
static int decode_streams(const struct pen_chunk_job *c,
			  const struct pen_codec *codec)
{
	struct pen_bytes in = pen__bytes(c->raw.p, c->raw.n);
	const bool split = !(flags_of(c) & NOT_SPLIT) &&
			   c->size == c->a->chunk_bytes;
	const size_t n = c->size / 4;
	uint8_t *room = c->scratch->mem;
	const uint8_t *s[4];
	int rc = 0;

	for (size_t i = 0; i < 4; i++) {
		s[i] = i && !split ? s[i - 1] + n
				   : next_piece(c, codec, &in, room + i * n,
						split ? n : c->size);
		if (!s[i])
			return PEN_EDATA;
	}
	if (c->narrow)
		rc = pen__narrow_streams(c->a, s, n, c->out);
	if (!rc)
		pen__weave4(s, n, c->out);
	return rc;
}

/*
 * The header keeps the original block size, because a shorter last block is
 * stored differently; libblosc then requires room for a full block, and uses
 * the size in the header.
 */
static int decode_other(const struct pen_chunk_job *c)
{
	const struct pen_codec *codec = pen__codec_find("blosc");
	const uint64_t block = c->a->chunk_bytes;
	const size_t n = HEAD + c->raw.n;
	uint8_t *p = c->scratch->mem;
	const uint32_t head[] = { c->a->filters.f[0].item, (uint32_t)c->size,
				  (uint32_t)block, (uint32_t)n, HEAD };
	size_t got = 0;
	int rc;

	if (!codec)
		return PEN_ENOTSUP;
	for (size_t i = 0; i < HEAD; i++)
		p[i] = (uint8_t)(head[i / 4] >> i % 4 * 8);
	memcpy(p + HEAD, c->raw.p, c->raw.n);
	rc = codec->unpack(c->scratch, p, n, c->out, (size_t)block, &got);
	return rc < 0 ? rc : got == c->size ? 0 : PEN_EDATA;
}

int pen__block_unpack(const struct pen_chunk_job *c, uint32_t mask,
		      const char **why)
{
	const uint64_t block = c->a->chunk_bytes;
	const struct pen_codec *codec;

	*why = "damaged: a block of a chunk cannot be unpacked";
	if (c->size > block || c->raw.n > block + PEN_CHUNKED_BLOCK_MORE)
		return PEN_EDATA;
	if (mask && c->raw.n != c->size)
		return PEN_EDATA;
	if (mask) {
		memcpy(c->out, c->raw.p, c->size);
		return 0;
	}
	return is_usual(c, &codec) ? decode_streams(c, codec) : decode_other(c);
}
