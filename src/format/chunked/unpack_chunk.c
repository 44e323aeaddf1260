/*
 * From the bytes of a chunk to numbers: undoes filters, decodes a Blosc block
 * or the packed layout, verifies the checksum of an archive, and narrows
 * numbers if requested. The only place that interprets filter IDs.
 */
#include <stdio.h>

#include "codec/deflate.h"
#include "format/chunked/chunks.h"

static bool is_codec(const struct pen_chunked *a)
{
	return a->filters.n == 1 && a->filters.f[0].id >= PEN_CHUNKED_CODEC;
}

static bool is_block(const struct pen_chunked *a)
{
	return is_codec(a) && a->filters.f[0].id == PEN_CHUNKED_BLOCK;
}

size_t pen__chunked_room(const struct pen_chunked *a)
{
	if (!a->filters.n)
		return 0;
	if (is_block(a))
		return pen__block_room(a);
	if (is_codec(a))
		return a->filters.f[0].id == PEN_CHUNKED_NUMBERS
			       ? pen__numbers_room(pen__chunked_declared(a),
						   a->chunk_bytes / a->item)
			       : 0;
	return pen__filters_room(&a->filters, a->chunk_bytes);
}

void pen__chunked_text(const struct pen_chunked *a, char *buf, size_t cap)
{
	if (is_codec(a))
		snprintf(buf, cap, is_block(a) ? "blosc" : "packed");
	else
		pen__filters_text(&a->filters, buf, cap);
}

static int unpack_rows(const struct pen_chunk_job *c, const char **why)
{
	const struct pen_chunked *a = c->a;
	const uint64_t n = c->size / a->item;
	const struct pen_cellplaces places = { c->rows, c->out, (uint32_t)n,
					       a->item };
	const struct pen_cellnumbers to = { .dtype = pen__chunked_declared(a),
					    .as = a->dtype,
					    .n = (uint32_t)n,
					    .to = c->out,
					    .rows = c->rows };

	*why = "the encoding of the chunks is unknown";
	if (n > UINT32_MAX)
		return PEN_EDATA;
	if (a->filters.f[0].id == PEN_CHUNKED_NUMBERS &&
	    (to.as == to.dtype || to.as == PEN_U8 || to.as == PEN_U16))
		return pen__numbers_unpack(&to, c->raw.p, c->raw.n, c->scratch,
					   why);
	if (a->filters.f[0].id == PEN_CHUNKED_PLACES && c->rows &&
	    (a->item == 2 || a->item == 4))
		return pen__places_unpack(&places, c->raw.p, c->raw.n, why);
	return PEN_ENOTSUP;
}

static int unpack(const struct pen_chunk_job *c, const char **why)
{
	const struct pen_chunked *a = c->a;
	const struct pen_filter_run run = {
		.filters = &a->filters,
		.mask = a->masks ? (uint32_t)pen__chunked_u32(a->masks,
							      c->number)
				 : 0,
		.room = c->scratch->mem,
		.scratch = c->scratch,
	};

	*why = "the work buffer is too small to unpack a chunk";
	if (c->scratch->size < pen__chunked_room(a))
		return PEN_EDATA;
	if (is_block(a))
		return pen__block_unpack(c, run.mask, why);
	if (is_codec(a))
		return unpack_rows(c, why);
	return pen__filters_run(&run, c->raw, c->out, c->size, why);
}

/* The checksum of an archive covers a chunk before the archive deflated it.
 * These bytes exist only after unpacking, and only if no other filter was
 * applied. */
static bool is_whole(const struct pen_chunk_job *c, bool after)
{
	const struct pen_chunked *a = c->a;
	const struct pen_span s = after ? (struct pen_span){ c->out, c->size }
					: c->raw;
	struct pen_filters last = { .n = 1 };
	bool deflated;

	if (!a->crcs || !a->filters.n)
		return true;
	last.f[0] = a->filters.f[a->filters.n - 1];
	deflated = pen__filters_are(&last, "inflate") &&
		   !(a->masks && pen__chunked_u32(a->masks, c->number));
	if (deflated ? !after || a->filters.n > 1 : after)
		return true;
	return pen__crc32(0, s.p, s.n) == pen__chunked_u32(a->crcs, c->number);
}

int pen__chunked_unpack(const struct pen_chunk_job *c, const char **why)
{
	int rc;

	*why = "damaged: the checksum in the archive differs";
	if (!is_whole(c, false))
		return PEN_EDATA;
	rc = unpack(c, why);
	if (rc >= 0 && !is_whole(c, true)) {
		*why = "damaged: the checksum in the archive differs";
		return PEN_EDATA;
	}
	if (!rc && c->narrow)
		return pen__narrow(c->a, c->out, c->size);
	return rc;
}
