/*
 * Heads and blocks of what is packed: checksum and way of packing in front of
 * both places and numbers.
 */
#include "codec/cellpack_int.h"

#include "codec/crc32c.h"

void pen__cellpack_block(const uint32_t *v, size_t n, struct pen_buf *out)
{
	uint8_t mem[PEN_BITPACK_BOUND];

	pen__buf_put(out, mem, pen__bitpack(v, n, mem));
}

static void patch(uint8_t *p, uint32_t v)
{
	for (unsigned i = 0; i < 4; i++)
		p[i] = (uint8_t)(v >> (8 * i));
}

size_t pen__cellpack_begin(struct pen_buf *out)
{
	const uint8_t head[PEN_CELLPACK_HEAD] = { 0 };

	pen__buf_put(out, head, sizeof(head));
	return out->n - (out->bad ? out->n : sizeof(head));
}

void pen__cellpack_end(struct pen_buf *out, size_t at, unsigned how)
{
	if (out->bad)
		return;
	out->p[at + 4] = (uint8_t)how;
	patch(out->p + at, pen__crc32c(0, out->p + at + 4, out->n - at - 4));
}

int pen__cellpack_open(struct pen_bytes *in, unsigned most, const char **why)
{
	const uint8_t *p = in->p;
	const size_t len = pen__bytes_left(in);
	const uint32_t crc = pen__take_u32(in);
	const unsigned how = pen__take_u8(in);
	const uint64_t none = pen__take_le(in, 3);

	*why = "is not what was packed: its checksum differs";
	if (in->bad || crc != pen__crc32c(0, p + 4, len - 4))
		return -1;
	*why = "is packed in a way this version does not know";
	if (how > most || none)
		return -1;
	*why = "is damaged, though its checksum is right";
	return (int)how;
}
