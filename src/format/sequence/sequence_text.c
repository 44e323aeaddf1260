/*
 * The text of an object, piece by piece: the object itself, a gzip file
 * decompressed as a whole, or the blocks of a bgzip file. The first bytes
 * decide which it is, not the name.
 *
 * Refuses gzip that decompresses to more than the limit, since it cannot be
 * read in parts, and damaged blocks, naming their offset.
 */
#include <inttypes.h>

#include "base/mem.h"
#include "base/team.h"
#include "codec/deflate.h"
#include "format/sequence/sequence.h"

#define PIECE ((size_t)256 << 10)
#define GZI_LIMIT ((uint64_t)1 << 32)
#define GZI_LOOKS 64u /* blocks compared with a .gzi */

/* ---- bgzip blocks: gzip members that state their size ---- */

size_t pen__bgzf_block(const uint8_t *p, size_t n, bool *more)
{
	struct pen_bytes b, extra;
	size_t head;

	*more = n < PEN_BGZF_HEAD;
	if (*more || p[0] != 0x1f || p[1] != 0x8b || p[2] != 8 || p[3] != 4)
		return 0;
	b = pen__bytes(p + 10, n - 10);
	head = pen__take_u16(&b);
	*more = head > pen__bytes_left(&b);
	if (*more)
		return 0;
	extra = pen__bytes(pen__take(&b, head), head);
	while (pen__bytes_left(&extra) >= 4) {
		const unsigned kind = pen__take_u16(&extra);
		const unsigned len = pen__take_u16(&extra);

		if (kind == 0x4342 && len == 2) {
			const size_t size = (size_t)pen__take_u16(&extra) + 1;

			return extra.bad || size < 12 + head + 8 ? 0 : size;
		}
		pen__take(&extra, len);
	}
	return 0;
}

/* Decompresses one block; *size: of the result. */
static int unpack_block(struct pen_scratch *s, struct pen_span raw, uint8_t *to,
			size_t cap, size_t *size)
{
	const size_t head = 12 + ((size_t)raw.p[10] | (size_t)raw.p[11] << 8);
	struct pen_bytes tail = pen__bytes(raw.p + raw.n - 8, 8);
	const uint32_t crc = pen__take_u32(&tail), n = pen__take_u32(&tail);
	int rc;

	if (n > cap || n > PEN_BGZF_MOST)
		return PEN_EDATA;
	rc = pen__inflate(s, raw.p + head, raw.n - head - 8, to, n);
	if (!rc && pen__crc32(0, to, n) != crc)
		rc = PEN_EDATA;
	*size = n;
	return rc;
}

int pen__bgzf_unpack(struct pen_scratch *s, struct pen_span raw, uint8_t *to,
		     size_t n)
{
	size_t at = 0, done = 0, got = 0;
	bool more;

	while (at < raw.n) {
		const size_t size =
			pen__bgzf_block(raw.p + at, raw.n - at, &more);
		int rc;

		if (!size || size > raw.n - at)
			return PEN_EDATA;
		rc = unpack_block(s, (struct pen_span){ raw.p + at, size },
				  to + done, n - done, &got);
		if (rc)
			return rc;
		at += size;
		done += got;
	}
	return done == n ? 0 : PEN_EDATA;
}

/* ---- opening ---- */

int pen__seq_text_open(struct pen_seq_text *t, struct pen_peek *pk,
		       uint64_t limit, struct pen_err *err)
{
	uint8_t head[64] = { 0 };
	const size_t n = pk->size < 64 ? (size_t)pk->size : 64;
	bool more;
	int rc;

	*t = (struct pen_seq_text){
		.pk = pk,
		.err = err,
		.limit = limit,
		.win.pk = pk,
		.end = pk->size,
	};
	rc = n ? pk->read(pk, 0, head, n, err) : 0;
	if (rc || n < 18 || head[0] != 0x1f || head[1] != 0x8b)
		return rc;
	t->kind = pen__bgzf_block(head, n, &more) ? PEN_SEQ_BGZF : PEN_SEQ_GZIP;
	rc = pen__scratch_init(&t->scratch, 0);
	return rc ? pen__fail_nomem(err, pk->name, 0) : 0;
}

void pen__seq_text_close(struct pen_seq_text *t)
{
	pen__ahead_free(t->ahead);
	pen__window_fini(&t->win);
	pen__free(t->out);
	if (t->kind != PEN_SEQ_PLAIN)
		pen__scratch_fini(&t->scratch);
	pen__list_fini(&t->raw);
	pen__list_fini(&t->blocks);
}

static int room_for(struct pen_seq_text *t, size_t n)
{
	void *p;

	if (n <= t->cap)
		return 0;
	p = pen__realloc(t->out, n, 1);
	if (!p)
		return pen__fail_nomem(t->err, t->pk->name, n);
	t->out = p;
	t->cap = n;
	return 0;
}

static int next_plain(struct pen_seq_text *t, struct pen_span *out)
{
	const uint64_t left = t->pk->size - t->at;
	int rc;

	if (!left)
		return PEN_END;
	if (!t->at && left >= PEN_AHEAD_LEAST && pen__cpus() > 1) {
		rc = pen__ahead_new(&t->ahead, t->pk, t->err);
		if (rc)
			return rc;
	}
	if (t->ahead) {
		rc = pen__ahead_next(t->ahead, out, t->err);
		if (rc)
			return rc;
	} else {
		out->n = left < PIECE ? (size_t)left : PIECE;
		out->p = pen__window_get(&t->win, t->at, out->n, 0, t->err);
		if (!out->p)
			return t->err->code;
	}
	t->at += out->n;
	t->text += out->n;
	return 0;
}

/* ---- gzip ---- */

static int too_large(struct pen_seq_text *t)
{
	return pen__fail(
		t->err, P_OVER_LIMIT, t->pk->name,
		"the gzip file decompresses to more than %" PRIu64
		" bytes; recompress it with bgzip, or raise format.gzip_limit=",
		t->limit);
}

static int bad_gzip(struct pen_seq_text *t)
{
	return pen__fail(t->err, P_DAMAGED, t->pk->name,
			 "the gzip data is damaged or truncated");
}

/* Decompresses all members into memory that grows up to the limit. */
static int inflate_all(struct pen_seq_text *t, const uint8_t *p, size_t n,
		       size_t *done)
{
	size_t at = 0;

	*done = 0;
	while (at < n && !(at && pen__seq_zeros(p + at, n - at))) {
		struct pen_gunzip g = { .in = p + at,
					.n = n - at,
					.out = t->out + *done,
					.cap = t->cap - *done };
		int rc = pen__gunzip(&t->scratch, &g);

		if (rc == PEN_ENOMEM)
			return pen__fail_nomem(t->err, t->pk->name, 0);
		if (rc == PEN_END && t->cap > t->limit)
			return too_large(t);
		if (rc == PEN_END)
			rc = room_for(t, t->cap < t->limit / 2
						 ? t->cap * 2
						 : (size_t)t->limit + 1);
		else if (rc)
			return bad_gzip(t);
		else {
			at += g.used;
			*done += g.got;
		}
		if (rc)
			return rc;
	}
	return *done > t->limit ? too_large(t) : 0;
}

static int next_gzip(struct pen_seq_text *t, struct pen_span *out)
{
	const uint64_t size = t->pk->size;
	const uint8_t *p;
	size_t n;
	int rc;

	if (t->at == size)
		return PEN_END;
	if (size > t->limit)
		return too_large(t);
	p = pen__window_get(&t->win, 0, (size_t)size, 0, t->err);
	if (!p)
		return t->err->code;
	rc = room_for(t, 65536 + (size_t)size * 4 < t->limit
				 ? 65536 + (size_t)size * 4
				 : (size_t)t->limit + 1);
	if (!rc)
		rc = inflate_all(t, p, (size_t)size, &n);
	if (rc)
		return rc;
	t->at = size;
	t->text = n;
	*out = (struct pen_span){ t->out, n };
	return 0;
}

/* ---- bgzip ---- */

static int bad_block(struct pen_seq_text *t, uint64_t at)
{
	return pen__fail(t->err, P_DAMAGED, t->pk->name,
			 "the bgzip block at byte %" PRIu64
			 " is damaged or truncated",
			 at);
}

/* A plain gzip member among the blocks: it cannot be read on its own. */
static int not_bgzf(struct pen_seq_text *t, uint64_t at)
{
	return pen__fail(t->err, P_NOT_THIS_FORMAT, t->pk->name,
			 "bgzip up to byte %" PRIu64
			 " and plain gzip from there on; recompress the entire "
			 "file with bgzip",
			 at);
}

/* After a block that cannot be read: if only zeros follow, the text has ended.
 * Returns 0, or the error that is already set. */
static int end_in_zeros(struct pen_seq_text *t)
{
	const uint64_t size = t->pk->size;
	struct pen_err own = { 0 };

	if (t->err->code != PEN_EDATA || !t->at)
		return t->err->code;
	for (uint64_t at = t->at; at < size;) {
		const size_t n = size - at < PIECE ? (size_t)(size - at)
						   : PIECE;
		const uint8_t *p = pen__window_get(&t->win, at, n, 0, &own);

		if (!p)
			*t->err = own;
		if (!p || !pen__seq_zeros(p, n))
			return t->err->code;
		at += n;
	}
	pen__err_reset(t->err);
	t->end = t->at;
	return 0;
}

/* Returns a complete block; NULL: see err. */
static const uint8_t *get_block(struct pen_seq_text *t, uint64_t at,
				size_t *size)
{
	const uint64_t left = t->pk->size - at;
	const size_t n = left < PEN_BGZF_MOST ? (size_t)left : PEN_BGZF_MOST;
	const uint8_t *p = pen__window_get(&t->win, at, n, PIECE, t->err);
	bool more;

	if (!p)
		return NULL;
	*size = pen__bgzf_block(p, n, &more);
	if (*size && *size <= n)
		return p;
	if (!*size && !more && !memcmp(p, "\x1f\x8b\x08", 3))
		not_bgzf(t, at);
	else
		bad_block(t, at);
	return NULL;
}

static int note_block(struct pen_seq_text *t)
{
	return pen__list_add(&t->raw, t->at) &&
			       pen__list_add(&t->blocks, t->text)
		       ? 0
		       : pen__fail_nomem(t->err, t->pk->name, t->raw.n * 16);
}

static int next_bgzf(struct pen_seq_text *t, struct pen_span *out)
{
	size_t n = 0, size, got;
	int rc = room_for(t, PIECE + PEN_BGZF_MOST);

	while (!rc && n < PIECE && t->at < t->end) {
		const uint8_t *p = get_block(t, t->at, &size);

		rc = p ? note_block(t) : end_in_zeros(t);
		if (rc)
			return rc;
		if (!p)
			break;
		rc = unpack_block(&t->scratch, (struct pen_span){ p, size },
				  t->out + n, t->cap - n, &got);
		if (rc == PEN_ENOMEM)
			return pen__fail_nomem(t->err, t->pk->name, 0);
		if (rc)
			return bad_block(t, t->at);
		t->at += size;
		t->text += got;
		n += got;
	}
	if (rc)
		return rc;
	if (t->at == t->end && (!t->raw.n || t->raw.v[t->raw.n - 1] != t->at))
		rc = note_block(t);
	*out = (struct pen_span){ t->out, n };
	return rc ? rc : n ? 0 : PEN_END;
}

int pen__seq_text_next(struct pen_seq_text *t, struct pen_span *out)
{
	switch (t->kind) {
	case PEN_SEQ_PLAIN:
		return next_plain(t, out);
	case PEN_SEQ_GZIP:
		return next_gzip(t, out);
	default:
		return next_bgzf(t, out);
	}
}

/* ---- finding blocks without decompressing them ---- */

/* The block at t->at: its compressed and decompressed size. */
static int measure_block(struct pen_seq_text *t, size_t *size, uint32_t *n)
{
	const uint64_t left = t->pk->size - t->at;
	uint8_t head[1024];
	const size_t have = left < sizeof(head) ? (size_t)left : sizeof(head);
	bool more;
	int rc = t->pk->read(t->pk, t->at, head, have, t->err);

	if (rc)
		return rc;
	*size = pen__bgzf_block(head, have, &more);
	if (!*size || *size > left)
		return bad_block(t, t->at);
	rc = t->pk->read(t->pk, t->at + *size - 4, head, 4, t->err);
	*n = (uint32_t)head[0] | (uint32_t)head[1] << 8 |
	     (uint32_t)head[2] << 16 | (uint32_t)head[3] << 24;
	return rc ? rc : *n > PEN_BGZF_MOST ? bad_block(t, t->at) : 0;
}

static int walk_blocks(struct pen_seq_text *t)
{
	int rc = 0;

	while (!rc && t->at < t->end) {
		size_t size;
		uint32_t n;

		rc = measure_block(t, &size, &n);
		if (rc) {
			rc = end_in_zeros(t);
			break;
		}
		rc = note_block(t);
		t->at += size;
		t->text += n;
	}
	return rc ? rc : note_block(t);
}

/* Compares block i and the start of the next with the object: 0, PEN_END if
 * they differ, or an error. */
static int compare_block(struct pen_seq_text *t, uint64_t i)
{
	struct pen_err own = { 0 }, *err = t->err;
	size_t size;
	uint32_t n;
	int rc;

	t->at = t->raw.v[i];
	t->err = &own;
	rc = measure_block(t, &size, &n);
	t->err = err;
	if (rc == PEN_EDATA)
		return PEN_END;
	if (rc) {
		*err = own;
		return rc;
	}
	return t->at + size == t->raw.v[i + 1] &&
			       t->blocks.v[i] + n == t->blocks.v[i + 1]
		       ? 0
		       : PEN_END;
}

/* FILE.gzi: a u64 count, then pairs of offsets, without the first block. */
static int take_gzi(struct pen_seq_text *t, const struct pen_buf *b)
{
	struct pen_bytes in = pen__bytes(b->p, b->n);
	const uint64_t n = pen__take_u64(&in);
	uint64_t raw = 0, text = 0, step;
	int rc = note_block(t);

	if (in.bad || n != pen__bytes_left(&in) / 16 ||
	    pen__bytes_left(&in) % 16)
		return PEN_END;
	for (uint64_t i = 0; !rc && i < n; i++) {
		t->at = pen__take_u64(&in);
		t->text = pen__take_u64(&in);
		if (t->at <= raw || t->at - raw > PEN_BGZF_MOST ||
		    t->text < text || t->text - text > PEN_BGZF_MOST ||
		    t->at >= t->pk->size)
			return PEN_END;
		raw = t->at;
		text = t->text;
		rc = note_block(t);
	}
	step = n / GZI_LOOKS + 1;
	for (uint64_t i = 0; !rc && i < n; i += step)
		rc = compare_block(t, i);
	if (!rc && n)
		rc = compare_block(t, n - 1);
	t->at = raw;
	t->text = text;
	t->raw.n--; /* the walk continues from the last block */
	t->blocks.n--;
	return rc ? rc : walk_blocks(t);
}

int pen__seq_text_blocks(struct pen_seq_text *t)
{
	struct pen_buf b = { 0 };
	struct pen_err own;
	int rc = PEN_ENOTFOUND;

	if (t->kind != PEN_SEQ_BGZF)
		return 0;
	if (t->pk->read_side)
		rc = t->pk->read_side(t->pk, ".gzi", GZI_LIMIT, &b, &own);
	rc = rc ? PEN_END : take_gzi(t, &b);
	pen__buf_fini(&b);
	if (rc != PEN_END)
		return rc;
	t->raw.n = t->blocks.n = t->at = t->text = 0;
	return walk_blocks(t);
}

/* Decompresses the block that contains `at`; *from: its start. */
static int inflate_at(struct pen_seq_text *t, uint64_t at, uint64_t *from,
		      size_t *n)
{
	uint64_t lo = 0, hi = t->blocks.n - 1;
	const uint8_t *p;
	size_t size;
	int rc = room_for(t, PEN_BGZF_MOST);

	if (rc)
		return rc;
	while (hi - lo > 1) {
		const uint64_t mid = lo + (hi - lo) / 2;

		if (t->blocks.v[mid] <= at)
			lo = mid;
		else
			hi = mid;
	}
	p = get_block(t, t->raw.v[lo], &size);
	if (!p)
		return t->err->code;
	rc = unpack_block(&t->scratch, (struct pen_span){ p, size }, t->out,
			  PEN_BGZF_MOST, n);
	*from = t->blocks.v[lo];
	if (!rc && (at < *from || at - *from >= *n))
		rc = PEN_EDATA;
	return rc == PEN_EDATA ? bad_block(t, t->raw.v[lo])
	       : rc	       ? pen__fail_nomem(t->err, t->pk->name, 0)
			       : 0;
}

int pen__seq_text_read(struct pen_seq_text *t, uint64_t at, void *to, size_t n)
{
	uint8_t *dst = to;
	int rc = 0;

	if (t->kind == PEN_SEQ_PLAIN)
		return t->pk->read(t->pk, at, to, n, t->err);
	while (!rc && n) {
		uint64_t from = 0;
		size_t have = 0, take;

		rc = inflate_at(t, at, &from, &have);
		if (rc)
			break;
		take = have - (size_t)(at - from);
		take = take < n ? take : n;
		memcpy(dst, t->out + (at - from), take);
		dst += take;
		at += take;
		n -= take;
	}
	return rc;
}
