/*
 * Heads and blocks: checksum and packing method precede both places and
 * numbers.
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

	*why = "damaged: the checksum differs";
	if (in->bad || crc != pen__crc32c(0, p + 4, len - 4))
		return -1;
	*why = "the packing method is unknown to this version";
	if (how > most || none)
		return -1;
	*why = "damaged, although the checksum matches";
	return (int)how;
}

typedef uint32_t uvec __attribute__((vector_size(16)));
typedef uint16_t hvec __attribute__((vector_size(16)));

bool pen__cellpack_narrow(const uint32_t *in, uint64_t add, size_t n,
			  unsigned width, uint8_t *out)
{
	const uint32_t more = (uint32_t)add;
	uint32_t any = add > UINT16_MAX ? UINT32_MAX : 0;
	uvec all = { 0 }, a, b;
	size_t i = 0;

	/* a number or sum that does not fit has a higher bit set */
	for (; width == 2 && i + 8 <= n; i += 8) {
		memcpy(&a, in + i, sizeof(a));
		memcpy(&b, in + i + 4, sizeof(b));
		all |= a | b | (a + more) | (b + more);
		a += more;
		b += more;
		a = (uvec)__builtin_shufflevector((hvec)a, (hvec)b, 0, 2, 4, 6,
						  8, 10, 12, 14);
		memcpy(out + i * 2, &a, sizeof(a));
	}
	any |= all[0] | all[1] | all[2] | all[3];
	for (; i < n; i++) {
		const uint32_t v = in[i] + more;
		const uint16_t h = (uint16_t)v;

		any |= in[i] | v;
		if (width == 2)
			memcpy(out + i * 2, &h, 2);
		else
			out[i] = (uint8_t)v;
	}
	return !(any >> (8 * width));
}
