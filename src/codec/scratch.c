/*
 * Working memory of a thread: one block of the size that the format requested
 * at bind(), which never grows, and decompressors, which codecs create on first
 * use and which are freed here.
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

struct pen_kept *pen__scratch_keep(struct pen_scratch *s, const void *key)
{
	for (unsigned i = 0; i < PEN_MAX_KEPT; i++) {
		if (!s->kept[i].key)
			s->kept[i].key = key;
		if (s->kept[i].key == key)
			return &s->kept[i];
	}
	return NULL;
}

void pen__scratch_fini(struct pen_scratch *s)
{
	for (unsigned i = 0; i < PEN_MAX_KEPT; i++)
		if (s->kept[i].p)
			s->kept[i].free(s->kept[i].p);
	if (s->inflater)
		libdeflate_free_decompressor(s->inflater);
	if (s->zstd)
		s->zstd_free(s->zstd);
	if (s->block.p)
		pen__block_fini(&s->block);
	*s = (struct pen_scratch){ 0 };
}
