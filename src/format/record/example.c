/*
 * The wire format of tf.train.Example:
 *   Example   { Features features = 1; }
 *   Features  { map<string, Feature> feature = 1; }
 *   Feature   { oneof: BytesList 1, FloatList 2, Int64List 3 }
 *   *List     { repeated value = 1; }   numbers packed or not
 * Parsed here, because it is only five messages and on the hot path: values go
 * from the record straight into the batch. Unknown fields are skipped, as
 * protocol buffers require; groups, lengths beyond the message and features of
 * two types are rejected.
 */
#include "format/record/example.h"

enum wire { VARINT = 0, FIXED64 = 1, BYTES = 2, FIXED32 = 5 };

static uint64_t take_varint(struct pen_bytes *b)
{
	uint64_t v = 0;

	for (unsigned shift = 0; shift < 64; shift += 7) {
		const uint8_t *p = pen__take(b, 1);

		if (!p)
			return 0;
		v |= (uint64_t)(*p & 0x7f) << shift;
		if (!(*p & 0x80))
			return v;
	}
	b->bad = true; /* more than ten bytes */
	return 0;
}

static struct pen_bytes take_message(struct pen_bytes *b)
{
	const uint64_t n = take_varint(b);
	const uint8_t *p = pen__take(b, n);

	return pen__bytes(p ? p : b->end, p ? (size_t)n : 0);
}

static void skip(struct pen_bytes *b, unsigned wire)
{
	switch (wire) {
	case VARINT:
		take_varint(b);
		break;
	case FIXED64:
		pen__take(b, 8);
		break;
	case BYTES:
		take_message(b);
		break;
	case FIXED32:
		pen__take(b, 4);
		break;
	default:
		b->bad = true;
	}
}

/* The next field number and its wire type; 0 at the end or on damage. */
static uint64_t next_field(struct pen_bytes *b, unsigned *wire)
{
	uint64_t tag;

	if (b->bad || !pen__bytes_left(b))
		return 0;
	tag = take_varint(b);
	*wire = tag & 7;
	if (tag >> 3 == 0)
		b->bad = true;
	return b->bad ? 0 : tag >> 3;
}

static bool take_feature(struct pen_bytes b, struct pen_feature *out)
{
	uint64_t field;
	unsigned wire;

	out->kind = PEN_FEATURE_NONE;
	while ((field = next_field(&b, &wire))) {
		struct pen_bytes list;

		if (field > PEN_FEATURE_INT64 || wire != BYTES) {
			skip(&b, wire);
			continue;
		}
		if (out->kind)
			return false;
		list = take_message(&b);
		out->kind = (enum pen_feature_kind)field;
		out->list = (struct pen_span){ list.p, pen__bytes_left(&list) };
	}
	return !b.bad;
}

static bool take_entry(struct pen_bytes b, struct pen_feature *out)
{
	uint64_t field;
	unsigned wire;

	*out = (struct pen_feature){ .name = b.p };
	while ((field = next_field(&b, &wire))) {
		struct pen_bytes m;

		if (field > 2 || wire != BYTES) {
			skip(&b, wire);
			continue;
		}
		m = take_message(&b);
		if (field == 1) {
			out->name = m.p;
			out->name_len = pen__bytes_left(&m);
		} else if (!take_feature(m, out)) {
			return false;
		}
	}
	return !b.bad;
}

int pen__example_next(struct pen_example *e, struct pen_feature *out)
{
	for (;;) {
		struct pen_bytes *b = pen__bytes_left(&e->map) ? &e->map
							       : &e->all;
		unsigned wire;
		uint64_t field = next_field(b, &wire);

		if (b->bad)
			return PEN_EDATA;
		if (!field)
			return 0;
		if (field != 1 || wire != BYTES) {
			skip(b, wire);
		} else if (b == &e->all) {
			e->map = take_message(b);
		} else if (!take_entry(take_message(b), out) || b->bad) {
			return PEN_EDATA;
		} else {
			return 1;
		}
		if (b->bad)
			return PEN_EDATA;
	}
}

/* One piece of a list of numbers, packed or single: *n is its size in bytes,
 * left the room in out. NULL out: count only. */
static bool take_floats(struct pen_bytes *b, unsigned wire, uint8_t *out,
			uint64_t left, uint64_t *n)
{
	struct pen_bytes run = { b->p, b->p, false };
	const uint8_t *p;

	if (wire == FIXED32) {
		p = pen__take(b, 4);
		*n = 4;
	} else if (wire == BYTES) {
		run = take_message(b);
		p = run.p;
		*n = pen__bytes_left(&run);
	} else {
		return false;
	}
	if (b->bad || *n % 4 || (out && *n > left))
		return false;
	if (out && *n)
		memcpy(out, p, *n);
	return true;
}

static bool take_ints(struct pen_bytes *b, unsigned wire, uint8_t *out,
		      uint64_t left, uint64_t *n)
{
	struct pen_bytes run = { b->p, b->p, false };
	struct pen_bytes *from = wire == VARINT ? b : &run;

	*n = 0;
	if (wire == BYTES)
		run = take_message(b);
	else if (wire != VARINT)
		return false;
	while (pen__bytes_left(from) && !from->bad) {
		const uint64_t v = take_varint(from);

		if (out && left - *n < 8)
			return false;
		if (out)
			memcpy(out + *n, &v, 8);
		*n += 8;
		if (from == b)
			break;
	}
	return !b->bad && !run.bad;
}

/* Reads all elements; *total is their size in bytes. */
static int read_list(const struct pen_feature *f, uint8_t *out, uint64_t len,
		     uint64_t *total)
{
	struct pen_bytes b = pen__bytes(f->list.p, f->list.n), s;
	unsigned wire, nstrings = 0;
	uint64_t field, n;
	bool ok = true;

	*total = 0;
	while ((field = next_field(&b, &wire)) && ok) {
		n = 0;
		if (field != 1) {
			skip(&b, wire);
		} else if (f->kind == PEN_FEATURE_FLOAT) {
			ok = take_floats(&b, wire, out ? out + *total : NULL,
					 len - *total, &n);
		} else if (f->kind == PEN_FEATURE_INT64) {
			ok = take_ints(&b, wire, out ? out + *total : NULL,
				       len - *total, &n);
		} else {
			s = take_message(&b);
			n = pen__bytes_left(&s);
			ok = wire == BYTES && (!out || n <= len);
			if (nstrings++)
				return PEN_ENOTSUP;
			if (ok && out && n)
				memcpy(out, s.p, n);
		}
		*total += n;
	}
	return ok && !b.bad ? 0 : PEN_EDATA;
}

int pen__feature_count(const struct pen_feature *f, uint64_t *count)
{
	int rc = read_list(f, NULL, 0, count);

	if (f->kind == PEN_FEATURE_FLOAT)
		*count /= 4;
	else if (f->kind == PEN_FEATURE_INT64)
		*count /= 8;
	return rc;
}

int pen__feature_get(const struct pen_feature *f, void *dst, size_t len)
{
	uint8_t none;
	uint64_t n;
	int rc = read_list(f, dst ? dst : &none, len, &n);

	return rc < 0 ? rc : n == len ? 0 : PEN_EDATA;
}

int pen__feature_bytes(const struct pen_feature *f, struct pen_span *out)
{
	struct pen_bytes b = pen__bytes(f->list.p, f->list.n), s;
	uint64_t n, field;
	unsigned wire;
	int rc = f->kind == PEN_FEATURE_BYTES ? read_list(f, NULL, 0, &n)
					      : PEN_EDATA;

	*out = (struct pen_span){ NULL, 0 };
	if (rc < 0)
		return rc;
	while ((field = next_field(&b, &wire))) {
		if (field != 1) {
			skip(&b, wire);
			continue;
		}
		s = take_message(&b);
		*out = (struct pen_span){ s.p, pen__bytes_left(&s) };
	}
	return 0;
}

enum pen_dtype pen__feature_dtype(enum pen_feature_kind kind)
{
	return kind == PEN_FEATURE_FLOAT   ? PEN_F32
	       : kind == PEN_FEATURE_INT64 ? PEN_I64
					   : PEN_U8;
}

static unsigned varint(uint8_t out[10], uint64_t v)
{
	unsigned n = 0;

	for (; v >= 0x80; v >>= 7)
		out[n++] = (uint8_t)(v | 0x80);
	out[n++] = (uint8_t)v;
	return n;
}

static unsigned varint_len(uint64_t v)
{
	uint8_t b[10];

	return varint(b, v);
}

/* Header of field `number`, a message of n bytes that follows. */
static void put_head(struct pen_buf *b, unsigned number, uint64_t n)
{
	uint8_t v[10];

	pen__buf_le(b, number << 3 | BYTES, 1);
	pen__buf_put(b, v, varint(v, n));
}

static uint64_t message_len(uint64_t n)
{
	return 1 + varint_len(n) + n;
}

/* Encoded size of the values: one string, or packed numbers. */
static uint64_t values_len(enum pen_feature_kind kind, const void *p, size_t n)
{
	const int64_t *v = p;
	uint64_t len = 0;

	if (kind != PEN_FEATURE_INT64)
		return kind == PEN_FEATURE_FLOAT ? 4 * n : n;
	for (size_t i = 0; i < n; i++)
		len += varint_len((uint64_t)v[i]);
	return len;
}

void pen__feature_put(struct pen_buf *b, const char *name,
		      enum pen_feature_kind kind, const void *p, size_t n)
{
	const uint64_t values = values_len(kind, p, n);
	const uint64_t list = message_len(values);
	const uint64_t feature = message_len(list);
	const size_t len = strlen(name);

	put_head(b, 1, message_len(len) + message_len(feature));
	put_head(b, 1, len);
	pen__buf_put(b, name, len);
	put_head(b, 2, feature);
	put_head(b, kind, list);
	put_head(b, 1, values);
	if (kind != PEN_FEATURE_INT64) {
		if (p)
			pen__buf_put(b, p, (size_t)values);
		return;
	}
	for (size_t i = 0; i < n; i++) {
		const int64_t number = ((const int64_t *)p)[i];
		uint8_t v[10];

		pen__buf_put(b, v, varint(v, (uint64_t)number));
	}
}

void pen__example_head(struct pen_buf *b, uint64_t n)
{
	put_head(b, 1, n);
}

void pen__example_put(struct pen_buf *b, const struct pen_buf *map)
{
	put_head(b, 1, map->n);
	pen__buf_put(b, map->p, map->n);
}
