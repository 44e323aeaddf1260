/*
 * The growing output buffer. A failed allocation is recorded in `bad` instead
 * of being returned by every put, so that writers check once, at the end; later
 * puts do nothing and the content must not be used.
 */
#include "base/bytes.h"

#include <stdarg.h>
#include <stdio.h>

#include "base/mem.h"

static bool reserve(struct pen_buf *b, size_t more)
{
	size_t need, cap;
	uint8_t *p;

	if (b->bad || !pen__add(b->n, more, &need))
		goto bad;
	if (need <= b->cap)
		return true;
	/* doubling: n puts cost O(n) copies in total */
	if (!pen__mul(b->cap, 2, &cap) || cap < need)
		cap = need;
	if (cap < 256)
		cap = 256;
	p = pen__realloc(b->p, cap, 1);
	if (!p)
		goto bad;
	b->p = p;
	b->cap = cap;
	return true;
bad:
	b->bad = true;
	return false;
}

void pen__buf_put(struct pen_buf *b, const void *p, size_t n)
{
	if (!n || !reserve(b, n))
		return;
	memcpy(b->p + b->n, p, n);
	b->n += n;
}

void pen__buf_le(struct pen_buf *b, uint64_t v, unsigned n)
{
	uint8_t le[8];

	for (unsigned i = 0; i < 8; i++)
		le[i] = (uint8_t)(v >> (8 * i));
	pen__buf_put(b, le, n < 8 ? n : 8);
}

void pen__buf_str(struct pen_buf *b, const char *s)
{
	pen__buf_put(b, s, strlen(s));
}

void pen__buf_printf(struct pen_buf *b, const char *fmt, ...)
{
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(NULL, 0, fmt, ap);
	va_end(ap);
	/* one more for the NUL, which is written but not counted */
	if (n < 0 || !reserve(b, (size_t)n + 1)) {
		b->bad = true;
		return;
	}
	va_start(ap, fmt);
	vsnprintf((char *)b->p + b->n, (size_t)n + 1, fmt, ap);
	va_end(ap);
	b->n += (size_t)n;
}

void pen__buf_fini(struct pen_buf *b)
{
	pen__free(b->p);
	*b = (struct pen_buf){ 0 };
}
