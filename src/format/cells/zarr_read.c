/*
 * Reads entire lists of a zarr store while it is indexed: offsets, labels,
 * names. Strings have three encodings: variable length (vlen-utf8), and fixed
 * length in UTF-32 (NumPy's U) or bytes (S). Refuses more than one axis, and
 * lengths that the existing files cannot contain.
 */
#include <inttypes.h>
#include <stdio.h>

#include "base/mem.h"
#include "format/array.h"
#include "format/cells/zarr.h"

#define MOST_ABSENT ((uint64_t)64 << 20) /* bytes that need not be stored */
#define MOST_TEXT ((uint64_t)1 << 30)	 /* bytes of a chunk of strings */

struct reader {
	const struct pen_zarr *z;
	const struct pen_zarr_array *a;
	struct pen_chunks cs;
	struct pen_scratch scratch;
	struct pen_buf raw; /* of a chunk */
	struct pen_buf chunk;
	struct pen_buf *out;
	struct pen_err *err;
	char where[256];
};

static int bad(const struct reader *r, const char *what)
{
	return pen__fail(r->err, P_DAMAGED, r->where, "damaged: %s", what);
}

static int reserve(const struct reader *r, struct pen_buf *b, size_t n)
{
	void *p;

	if (n > b->cap) {
		p = pen__realloc(b->p, n, 1);
		if (!p)
			return pen__fail_nomem(r->err, r->where, n);
		b->p = p;
		b->cap = n;
	}
	b->n = n;
	return 0;
}

/* One attempt, with room for `size` bytes. */
static int try_unpack(struct reader *r, const struct pen_chunk *c, size_t size,
		      size_t *got, const char **why)
{
	const size_t room = pen__filters_room(&r->a->filters, size);
	struct pen_filter_run run = { .filters = &r->a->filters,
				      .mask = c->mask };
	int rc = reserve(r, &r->chunk, size ? size : 1);

	if (rc >= 0 && room > r->scratch.size) {
		pen__scratch_fini(&r->scratch);
		if (pen__scratch_init(&r->scratch, room) < 0)
			rc = pen__fail_nomem(r->err, r->where, room);
	}
	if (rc < 0)
		return rc;
	run.room = r->scratch.mem;
	run.scratch = &r->scratch;
	*got = 0;
	return pen__filters_run_upto(&run,
				     (struct pen_span){ r->raw.p, r->raw.n },
				     r->chunk.p, size, got, why);
}

/* The unpacked size of a chunk of strings is not known in advance. */
static int unpack_any(struct reader *r, const struct pen_chunk *c)
{
	const uint64_t ratio = pen__filters_ratio(&r->a->filters);
	uint64_t most = c->size * ratio + 1024, size = c->size * 4ull + 4096;
	const char *why = "";
	size_t got;
	int rc;

	if (most > MOST_TEXT)
		most = MOST_TEXT;
	for (;; size *= 4) {
		if (size > most)
			size = most;
		rc = try_unpack(r, c, (size_t)size, &got, &why);
		if (rc != PEN_EDATA || size == most)
			break;
	}
	if (rc == PEN_ENOMEM)
		return pen__fail_nomem(r->err, r->where, (size_t)size);
	if (rc < 0)
		return bad(r,
			   why + (strncmp(why, "damaged: ", 9) == 0 ? 9 : 0));
	r->chunk.n = got;
	return 0;
}

static int load_chunk(struct reader *r, const struct pen_chunk *c)
{
	const struct pen_zarr_part p = { .object = c->object,
					 .at = c->at,
					 .len = c->size };
	const size_t size = (size_t)r->a->chunk_bytes;
	const char *why = "";
	size_t got;
	int rc = reserve(r, &r->raw, c->size ? c->size : 1);

	r->raw.n = c->size;
	if (rc >= 0)
		rc = pen__zarr_read(r->z, &p, 0, r->raw.p, c->size, r->err);
	if (rc < 0)
		return rc;
	if (!r->a->item)
		return unpack_any(r, c);
	rc = try_unpack(r, c, size, &got, &why);
	if (rc == PEN_ENOMEM)
		return pen__fail_nomem(r->err, r->where, size);
	if (rc < 0 || got != size)
		return bad(r, "a chunk does not unpack to its declared size");
	return 0;
}

/* ---- strings ---- */

static void put_text(struct reader *r, const void *p, uint32_t n)
{
	pen__buf_put(r->out, &n, 4);
	pen__buf_put(r->out, p, n);
}

/* The first n strings of a chunk: a count, then a length and bytes for each. */
static int put_vlen(struct reader *r, uint64_t n)
{
	struct pen_bytes b = pen__bytes(r->chunk.p, r->chunk.n);

	if (pen__take_u32(&b) < n)
		return bad(r, "a chunk has fewer strings than expected");
	for (uint64_t i = 0; i < n; i++) {
		const uint32_t len = pen__take_u32(&b);
		const uint8_t *p = pen__take(&b, len);

		if (b.bad)
			return bad(r, "a chunk of strings is truncated");
		put_text(r, p, len);
	}
	return 0;
}

static size_t put_rune(uint8_t *to, uint32_t c)
{
	if (c < 0x80) {
		to[0] = (uint8_t)c;
		return 1;
	}
	if (c < 0x800) {
		to[0] = (uint8_t)(0xc0 | c >> 6);
		to[1] = (uint8_t)(0x80 | (c & 0x3f));
		return 2;
	}
	if (c > 0x10ffff || (c >= 0xd800 && c < 0xe000))
		c = 0xfffd; /* not a character */
	if (c < 0x10000) {
		to[0] = (uint8_t)(0xe0 | c >> 12);
		to[1] = (uint8_t)(0x80 | (c >> 6 & 0x3f));
		to[2] = (uint8_t)(0x80 | (c & 0x3f));
		return 3;
	}
	to[0] = (uint8_t)(0xf0 | c >> 18);
	to[1] = (uint8_t)(0x80 | (c >> 12 & 0x3f));
	to[2] = (uint8_t)(0x80 | (c >> 6 & 0x3f));
	to[3] = (uint8_t)(0x80 | (c & 0x3f));
	return 4;
}

/* A string of fixed length without its trailing NULs; text needs twice the
 * room. */
static uint32_t fixed_text(const struct pen_zarr_array *a, const uint8_t *p,
			   uint8_t *text)
{
	const size_t step = a->text == PEN_ZARR_UTF32 ? 4 : 1;
	size_t n = a->item, len = 0;

	while (n && !p[n - 1])
		n--;
	if (step == 1) {
		memcpy(text, p, n);
		return (uint32_t)n;
	}
	for (size_t i = 0; i < n; i += 4) {
		struct pen_bytes b = pen__bytes(p + i, 4);
		const uint32_t c = (uint32_t)(a->swap ? pen__take_be(&b, 4)
						      : pen__take_le(&b, 4));

		len += put_rune(text + len, c);
	}
	return (uint32_t)len;
}

static int put_fixed(struct reader *r, uint64_t n)
{
	uint8_t *text = pen__alloc(r->a->item, 1);

	if (!text)
		return pen__fail_nomem(r->err, r->where, r->a->item);
	for (uint64_t i = 0; i < n; i++)
		put_text(r, text,
			 fixed_text(r->a, r->chunk.p + i * r->a->item, text));
	pen__free(text);
	return 0;
}

/* ---- the list ---- */

static void put_numbers(struct reader *r, const uint8_t *p, uint64_t n)
{
	const size_t size = r->a->item;
	uint8_t *to = r->out->p + r->out->n;

	for (uint64_t i = 0; !p && i < n; i++)
		memcpy(to + i * size, r->a->fill, size);
	if (p)
		memcpy(to, p, n * size);
	if (p && r->a->swap)
		pen__swap((enum pen_dtype)r->a->dtype, to, n * size);
	r->out->n += n * size;
}

/* Elements [at, at + n) from the loaded chunk, or fill values. */
static int put_elements(struct reader *r, uint64_t n, bool there)
{
	int rc = 0;

	if (r->a->text == PEN_ZARR_NUMBERS)
		put_numbers(r, there ? r->chunk.p : NULL, n);
	else if (!there)
		for (uint64_t i = 0; i < n; i++)
			put_text(r, "", 0);
	else
		rc = r->a->text == PEN_ZARR_VLEN ? put_vlen(r, n)
						 : put_fixed(r, n);
	if (rc >= 0 && r->out->bad)
		rc = pen__fail_nomem(r->err, r->where, r->out->n);
	return rc;
}

static int read_chunks(struct reader *r)
{
	const uint64_t step = r->a->chunk[0], n = r->a->dim[0];
	size_t k = 0;
	int rc = 0;

	for (uint64_t i = 0; rc >= 0 && i < r->cs.ncells; i++) {
		const bool there = k < r->cs.n && r->cs.c[k].cell == i;
		const uint64_t left = n - i * step;

		if (there)
			rc = load_chunk(r, &r->cs.c[k++]);
		if (rc >= 0)
			rc = put_elements(r, left < step ? left : step, there);
	}
	return rc;
}

static int check_length(struct reader *r)
{
	const uint64_t ratio = pen__filters_ratio(&r->a->filters);
	const uint64_t item = r->a->item ? r->a->item : 4;
	uint64_t most;

	if (__builtin_mul_overflow(r->cs.stored, ratio, &most))
		most = UINT64_MAX / 2;
	if (r->a->dim[0] > (most + MOST_ABSENT) / item)
		return pen__fail(r->err, P_DAMAGED, r->where,
				 "declares %" PRIu64
				 " elements, more than files of %" PRIu64
				 " bytes can contain",
				 r->a->dim[0], r->cs.stored);
	return 0;
}

int pen__zarr_read_list(const struct pen_zarr *z,
			const struct pen_zarr_node *node,
			struct pen_zarr_array *a, struct pen_buf *out,
			struct pen_cells_absent *absent, struct pen_err *err)
{
	struct reader r = { .z = z, .a = a, .out = out, .err = err };
	int rc = 0;

	*out = (struct pen_buf){ 0 };
	pen__zarr_where(z, node->path, r.where, sizeof(r.where));
	if (a->ndim != 1)
		return pen__fail(err, P_DAMAGED, r.where,
				 "has %u axes; a list has one", a->ndim);
	if (a->text == PEN_ZARR_OTHER)
		return pen__fail(err, P_UNSUPPORTED_TYPE, r.where,
				 "contains %s; expected names or numbers",
				 a->type_name);
	rc = pen__zarr_chunks(z, node, a, &r.cs, absent, err);
	if (rc >= 0)
		rc = check_length(&r);
	if (rc >= 0 && a->text == PEN_ZARR_NUMBERS) {
		rc = reserve(&r, out, (size_t)(a->dim[0] * a->item) + 1);
		out->n = 0;
	}
	if (rc >= 0)
		rc = read_chunks(&r);
	pen__chunks_fini(&r.cs);
	pen__scratch_fini(&r.scratch);
	pen__buf_fini(&r.raw);
	pen__buf_fini(&r.chunk);
	if (rc < 0)
		pen__buf_fini(out);
	return rc;
}
