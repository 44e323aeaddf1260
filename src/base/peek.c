/* See peek.h. */
#include "base/peek.h"

#include <string.h>

static int read_bytes(struct pen_peek *pk, uint64_t off, void *buf, size_t len,
		      struct pen_err *err)
{
	const struct pen_span s = ((const struct pen_peek_bytes *)pk)->s;

	if (off > s.n || len > s.n - off)
		return pen__fail(err, P_TRUNCATED, pk->name,
				 "truncated or damaged");
	if (len)
		memcpy(buf, s.p + off, len);
	return 0;
}

struct pen_peek_bytes pen__peek_bytes(struct pen_span s, const char *name)
{
	return (struct pen_peek_bytes){
		.pk = { .name = name, .size = s.n, .read = read_bytes },
		.s = s,
	};
}
