/*
 * A thread's working memory. The bytes are one block of the size the format
 * asked for; the inflater is made by codec/deflate.c when first needed and
 * freed here, so that nobody pays for a decompressor they do not use.
 * Refuses to grow: the size is known at bind().
 */
#include "codec/scratch.h"

#include <libdeflate.h>

#include "penstock.h"

int pen__scratch_init(struct pen_scratch *s, size_t size)
{
	*s = (struct pen_scratch){ 0 };
	if (!size)
		return 0;
	if (pen__block_init(&s->block, size) < 0)
		return PEN_ENOMEM;
	s->mem = s->block.p;
	s->size = size;
	return 0;
}

void pen__scratch_fini(struct pen_scratch *s)
{
	if (s->inflater)
		libdeflate_free_decompressor(s->inflater);
	if (s->block.p)
		pen__block_fini(&s->block);
	*s = (struct pen_scratch){ 0 };
}
