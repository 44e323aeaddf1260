/*
 * The only way to parse a header: a cursor that cannot leave its bytes. Reads
 * past the end return 0 and set `bad`, so that a parser checks once, before it
 * uses the results.
 */
#ifndef PEN_BASE_BYTES_H
#define PEN_BASE_BYTES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct pen_bytes {
	const uint8_t *p, *end;
	bool bad;
};

static inline struct pen_bytes pen__bytes(const void *p, size_t n)
{
	const uint8_t *b = p;
	return (struct pen_bytes){ b, n ? b + n : b, false };
}

static inline size_t pen__bytes_left(const struct pen_bytes *b)
{
	return (size_t)(b->end - b->p);
}

/* The next n bytes, or NULL (and bad) if there are fewer. */
static inline const uint8_t *pen__take(struct pen_bytes *b, uint64_t n)
{
	const uint8_t *p = b->p;

	if (b->bad || n > pen__bytes_left(b)) {
		b->bad = true;
		b->p = b->end;
		return NULL;
	}
	b->p += n;
	return p;
}

static inline uint64_t pen__take_le(struct pen_bytes *b, unsigned n)
{
	const uint8_t *p = pen__take(b, n);
	uint64_t v = 0;

	for (unsigned i = 0; p && i < n; i++)
		v |= (uint64_t)p[i] << (8 * i);
	return v;
}

static inline uint64_t pen__take_be(struct pen_bytes *b, unsigned n)
{
	const uint8_t *p = pen__take(b, n);
	uint64_t v = 0;

	for (unsigned i = 0; p && i < n; i++)
		v = v << 8 | p[i];
	return v;
}

static inline uint8_t pen__take_u8(struct pen_bytes *b)
{
	return (uint8_t)pen__take_le(b, 1);
}
static inline uint16_t pen__take_u16(struct pen_bytes *b)
{
	return (uint16_t)pen__take_le(b, 2);
}
static inline uint32_t pen__take_u32(struct pen_bytes *b)
{
	return (uint32_t)pen__take_le(b, 4);
}
static inline uint64_t pen__take_u64(struct pen_bytes *b)
{
	return pen__take_le(b, 8);
}

/* Borrowed bytes. */
struct pen_span {
	const uint8_t *p;
	size_t n;
};

/* Growing output, for writers and index blobs. */
struct pen_buf {
	uint8_t *p;
	size_t n, cap;
	bool bad; /* an allocation failed; later puts do nothing */
};
void pen__buf_put(struct pen_buf *b, const void *p, size_t n);
void pen__buf_le(struct pen_buf *b, uint64_t v, unsigned n);
void pen__buf_str(struct pen_buf *b, const char *s);
void pen__buf_printf(struct pen_buf *b, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
void pen__buf_fini(struct pen_buf *b);

#endif
