/*
 * Parser of the npy header. The dictionary in it is Python source; this strict
 * parser accepts only the forms that NumPy has written (either quotes, any key
 * order, trailing commas, Python 2's long integers) and cannot evaluate
 * anything. Types that are not numeric are rejected by name, above all Python
 * objects: reading them means running a pickle.
 */
#include "codec/npy_header.h"

#include <inttypes.h>

#include "base/mem.h"
#include "base/quote.h"
#include "codec/deflate.h"

#define FIRST_LOOK 256u
#define LONGEST 65536u /* NumPy itself stops at 10,000 by default */

struct parser {
	struct pen_bytes b;
	const char *where;
	struct pen_err *err;
	struct pen_npy *out;
	const char *refused; /* why this type is not supported */
	uint64_t item;	     /* bytes per element; 0 if unknown */
	char descr[32];
};

static int damaged(struct parser *p, const char *what)
{
	return pen__fail(p->err, P_DAMAGED, p->where, "npy header: %s", what);
}

/* Reports what was expected, and the text found instead. */
static int unexpected(struct parser *p, const char *what)
{
	return pen__fail(p->err, P_DAMAGED, p->where,
			 "npy header: expected %s, found %s", what,
			 pen__quoted(p->b.p, pen__bytes_left(&p->b)).s);
}

static int peek_char(struct parser *p)
{
	while (p->b.p < p->b.end && (*p->b.p == ' ' || *p->b.p == '\n' ||
				     *p->b.p == '\t' || *p->b.p == '\r'))
		p->b.p++;
	return p->b.p < p->b.end ? *p->b.p : -1;
}

static bool accept(struct parser *p, int c)
{
	if (peek_char(p) != c)
		return false;
	p->b.p++;
	return true;
}

/* Parses a string of printable ASCII without escapes into buf. */
static bool string(struct parser *p, char *buf, size_t cap)
{
	const int quote = peek_char(p);
	size_t n = 0;

	if (quote != '\'' && quote != '"')
		return false;
	for (p->b.p++; p->b.p < p->b.end; p->b.p++) {
		int c = *p->b.p;

		if (c == quote) {
			buf[n] = '\0';
			p->b.p++;
			return true;
		}
		if (c == '\\' || c < 0x20 || c > 0x7e || n + 1 >= cap)
			return false;
		buf[n++] = (char)c;
	}
	return false;
}

static bool word(struct parser *p, const char *w)
{
	const size_t n = strlen(w);

	if (peek_char(p) < 0 || pen__bytes_left(&p->b) < n ||
	    memcmp(p->b.p, w, n) != 0)
		return false;
	p->b.p += n;
	return true;
}

/* Skips a list or tuple (a structured type), including strings. */
static bool skip_nested(struct parser *p)
{
	unsigned depth = 0;
	int quote = 0;

	for (; p->b.p < p->b.end; p->b.p++) {
		int c = *p->b.p;

		if (quote) {
			quote = c == quote ? 0 : quote;
			continue;
		}
		if (c == '\'' || c == '"')
			quote = c;
		if (c == '[' || c == '(')
			depth++;
		if ((c == ']' || c == ')') && --depth == 0) {
			p->b.p++;
			return true;
		}
	}
	return false;
}

/* NumPy's type codes: kind and size, or one character. */
static const struct {
	const char *code;
	enum pen_dtype dtype;
} codes[] = {
	{ "b1", PEN_BOOL },  { "?", PEN_BOOL }, { "i1", PEN_I8 },
	{ "b", PEN_I8 },     { "u1", PEN_U8 },	{ "B", PEN_U8 },
	{ "i2", PEN_I16 },   { "h", PEN_I16 },	{ "u2", PEN_U16 },
	{ "H", PEN_U16 },    { "i4", PEN_I32 }, { "i", PEN_I32 },
	{ "u4", PEN_U32 },   { "I", PEN_U32 },	{ "i8", PEN_I64 },
	{ "l", PEN_I64 },    { "q", PEN_I64 },	{ "u8", PEN_U64 },
	{ "L", PEN_U64 },    { "Q", PEN_U64 },	{ "f2", PEN_F16 },
	{ "e", PEN_F16 },    { "f4", PEN_F32 }, { "f", PEN_F32 },
	{ "f8", PEN_F64 },   { "d", PEN_F64 },	{ "f16", PEN_F80 },
	{ "g", PEN_F80 },    { "c8", PEN_C64 }, { "F", PEN_C64 },
	{ "c16", PEN_C128 }, { "D", PEN_C128 }, { "c32", PEN_C160 },
	{ "G", PEN_C160 },
};

/* Up to 6 digits, optionally followed by a unit in brackets. */
static bool item_size(const char *s, bool unit, uint64_t *out)
{
	uint64_t v = 0;
	unsigned n = 0;

	for (; *s >= '0' && *s <= '9' && n < 6; s++, n++)
		v = v * 10 + (unsigned)(*s - '0');
	*out = v;
	return n && (!*s || (unit && *s == '['));
}

/*
 * NumPy types that are not supported. They must be written exactly as NumPy
 * does, so that a flipped bit in a numeric type counts as damage and not as one
 * of these, which npz skips.
 */
static bool refused_type(struct parser *p, char order, const char *kind)
{
	uint64_t n = 0;
	bool sized = item_size(kind + 1, *kind == 'M' || *kind == 'm', &n);

	switch (*kind) {
	case 'O':
		p->refused = "the array contains Python objects (pickle), "
			     "which are never read because they can run code";
		return order == '|' && (!kind[1] || (sized && n % 4 == 0));
	case 'S':
	case 'a':
		p->refused = "the array contains byte strings";
		p->item = n;
		return order == '|' && sized;
	case 'U':
		p->refused = "the array contains Unicode strings";
		p->item = n * 4;
		return order != '|' && sized;
	case 'V':
		p->refused = "the array contains void elements";
		p->item = n;
		return order == '|' && sized;
	case 'M':
	case 'm':
		p->refused =
			*kind == 'M'
				? "the array contains dates (datetime64)"
				: "the array contains durations (timedelta64)";
		p->item = n;
		return order != '|' && sized && n == 8;
	}
	return false;
}

static int descr(struct parser *p)
{
	const int c = peek_char(p);
	struct pen_array *a = &p->out->a;
	const char *s = p->descr;
	char order = '|';

	if (c == '[' || c == '(') {
		p->refused =
			c == '[' ? "the array has a structured dtype (records)"
				 : "the array has a sub-array dtype";
		return skip_nested(p) ? 0
				      : damaged(p, "'descr' is not terminated");
	}
	if (!string(p, p->descr, sizeof(p->descr)))
		return unexpected(p, "a string for 'descr'");
	if (strchr("<>|=", *s) && *s)
		order = *s++;
	for (size_t i = 0; i < sizeof(codes) / sizeof(codes[0]); i++) {
		if (strcmp(codes[i].code, s) != 0)
			continue;
		a->dtype = codes[i].dtype;
		p->item = pen_dtype_size(a->dtype);
		a->swap = order == '>' && p->item > 1;
		return 0;
	}
	if (refused_type(p, order, s))
		return 0;
	return pen__fail(p->err, P_DAMAGED, p->where,
			 "npy header: unknown dtype '%s'", p->descr);
}

/* A non-negative integer that fits int64_t; Python 2 may append L. */
static bool integer(struct parser *p, int64_t *out)
{
	int64_t v = 0;
	int c = peek_char(p);

	if (c < '0' || c > '9')
		return false;
	if (c == '0' && pen__bytes_left(&p->b) > 1 && p->b.p[1] >= '0' &&
	    p->b.p[1] <= '9')
		return false; /* leading zeros are invalid in Python */
	for (; p->b.p < p->b.end; p->b.p++) {
		c = *p->b.p;
		if (c < '0' || c > '9')
			break;
		if (__builtin_mul_overflow(v, 10, &v) ||
		    __builtin_add_overflow(v, c - '0', &v))
			return false;
	}
	if (p->b.p < p->b.end && *p->b.p == 'L')
		p->b.p++;
	*out = v;
	return true;
}

static int shape(struct parser *p)
{
	struct pen_array *a = &p->out->a;
	bool comma = true;

	if (!accept(p, '('))
		return unexpected(p, "a tuple for 'shape'");
	while (!accept(p, ')')) {
		if (!comma)
			return unexpected(p, "a comma or ) in 'shape'");
		if (a->ndim == PEN_MAX_DIMS)
			return damaged(p, "'shape' has more than 32 axes");
		if (!integer(p, &a->shape[a->ndim++]))
			return unexpected(p, "a length in 'shape'");
		comma = accept(p, ',');
	}
	if (a->ndim == 1 && !comma)
		return damaged(p, "'shape' is a number, not a tuple");
	return 0;
}

static int entry(struct parser *p, unsigned *seen)
{
	static const char *const keys[] = { "descr", "fortran_order", "shape" };
	char key[16];
	unsigned k = 0;

	if (!string(p, key, sizeof(key)) || !accept(p, ':'))
		return unexpected(p, "'key':");
	while (k < 3 && strcmp(keys[k], key) != 0)
		k++;
	if (k == 3)
		return pen__fail(p->err, P_DAMAGED, p->where,
				 "npy header: unknown key '%s'", key);
	if (*seen & 1u << k)
		return damaged(p, "a key occurs twice");
	*seen |= 1u << k;
	if (k == 0)
		return descr(p);
	if (k == 2)
		return shape(p);
	p->out->a.fortran = word(p, "True");
	if (!p->out->a.fortran && !word(p, "False"))
		return unexpected(p, "True or False for 'fortran_order'");
	return 0;
}

static int dictionary(struct parser *p)
{
	bool comma = true;
	unsigned seen = 0;
	int rc;

	if (!accept(p, '{'))
		return unexpected(p, "{");
	while (!accept(p, '}')) {
		if (!comma)
			return unexpected(p, ", or }");
		rc = entry(p, &seen);
		if (rc < 0)
			return rc;
		comma = accept(p, ',');
	}
	if (seen != 7)
		return damaged(p, "descr, fortran_order or shape is missing");
	if (peek_char(p) != -1)
		return unexpected(p, "the end of the header");
	return 0;
}

/*
 * The product over non-zero axes must fit as well, so that no stride computed
 * from this shape overflows, even in an empty array.
 */
static bool array_bytes(const struct pen_array *a, uint64_t item, uint64_t *out)
{
	int64_t n = (int64_t)item;
	bool empty = false;

	for (uint32_t i = 0; i < a->ndim; i++) {
		empty |= a->shape[i] == 0;
		if (a->shape[i] && __builtin_mul_overflow(n, a->shape[i], &n))
			return false;
	}
	*out = empty ? 0 : (uint64_t)n;
	return true;
}

static int check_size(struct parser *p, uint64_t size)
{
	struct pen_npy *o = p->out;
	const uint64_t have = size - o->a.at;

	if (!array_bytes(&o->a, p->item, &o->a.nbytes))
		return damaged(p, "the size of 'shape' overflows 64 bits");
	if (o->a.nbytes > have)
		return pen__fail(p->err, P_TRUNCATED, p->where,
				 "truncated: %" PRIu64 " of %" PRIu64
				 " data bytes are missing",
				 o->a.nbytes - have, o->a.nbytes);
	o->extra = have - o->a.nbytes;
	return 0;
}

static int parse(struct pen_peek *pk, const uint8_t *bytes, size_t len,
		 struct pen_npy *out, struct pen_err *err)
{
	struct parser p = { .where = pk->name, .err = err, .out = out };
	int rc;

	out->crc = pen__crc32(0, bytes, len);
	p.b = pen__bytes(bytes, len);
	pen__take(&p.b, out->major == 1 ? 10 : 12);
	rc = dictionary(&p);
	if (rc < 0)
		return rc;
	/* pickled objects and records have no predictable size */
	if (p.item) {
		rc = check_size(&p, pk->size);
		if (rc < 0)
			return rc;
	}
	if (!p.refused)
		return 0;
	if (p.item && out->extra)
		return damaged(&p,
			       "the dtype does not match the size of the data");
	return pen__fail(err, P_UNSUPPORTED_TYPE, pk->name,
			 "%s; only numeric arrays are supported", p.refused);
}

/* Checks magic, version and length. Returns 0 and the length of the header, or
 * an error. */
static int preamble(const struct pen_peek *pk, const uint8_t *bytes, size_t n,
		    struct pen_npy *out, struct pen_err *err)
{
	struct pen_bytes b = pen__bytes(bytes, n);
	const uint8_t *magic = pen__take(&b, 6);
	unsigned minor;
	uint64_t len;

	if (!magic || memcmp(magic, "\x93NUMPY", 6) != 0)
		return pen__fail(err, P_NOT_THIS_FORMAT, pk->name,
				 "not an npy file: it starts with %s instead "
				 "of '\\x93NUMPY'",
				 pen__quoted(bytes, n < 8 ? n : 8).s);
	out->major = pen__take_u8(&b);
	minor = pen__take_u8(&b);
	len = pen__take_le(&b, out->major == 1 ? 2 : 4);
	len += out->major == 1 ? 10 : 12;
	if (b.bad)
		return pen__fail(err, P_TRUNCATED, pk->name,
				 "truncated within the npy header");
	if (out->major < 1 || out->major > 3 || minor)
		return pen__fail(err, P_NOT_THIS_FORMAT, pk->name,
				 "npy version %u.%u is not supported (1.0, 2.0 "
				 "and 3.0 are)",
				 out->major, minor);
	if (len > pk->size)
		return pen__fail(err, P_TRUNCATED, pk->name,
				 "truncated: the npy header has %" PRIu64
				 " bytes, but the file has %" PRIu64,
				 len, pk->size);
	if (len > LONGEST)
		return pen__fail(
			err, P_DAMAGED, pk->name,
			"an npy header of %" PRIu64
			" bytes is longer than NumPy writes for numeric arrays",
			len);
	out->a.at = len;
	return 0;
}

int pen__npy_parse(struct pen_span s, const char *name, struct pen_npy *out,
		   struct pen_err *err)
{
	struct pen_peek pk = { .name = name, .size = s.n };
	int rc;

	*out = (struct pen_npy){ 0 };
	rc = preamble(&pk, s.p, s.n, out, err);
	return rc < 0 ? rc : parse(&pk, s.p, (size_t)out->a.at, out, err);
}

int pen__npy_read(struct pen_peek *pk, struct pen_npy *out, struct pen_err *err)
{
	uint8_t first[FIRST_LOOK];
	const size_t n = pk->size < FIRST_LOOK ? (size_t)pk->size : FIRST_LOOK;
	uint8_t *whole;
	int rc;

	*out = (struct pen_npy){ 0 };
	rc = n ? pk->read(pk, 0, first, n, err) : 0;
	if (rc < 0)
		return rc;
	rc = preamble(pk, first, n, out, err);
	if (rc < 0)
		return rc;
	if (out->a.at <= n)
		return parse(pk, first, (size_t)out->a.at, out, err);
	whole = pen__alloc((size_t)out->a.at, 1);
	if (!whole)
		return pen__fail_nomem(err, pk->name, (size_t)out->a.at);
	rc = pk->read(pk, 0, whole, (size_t)out->a.at, err);
	if (rc >= 0)
		rc = parse(pk, whole, (size_t)out->a.at, out, err);
	pen__free(whole);
	return rc;
}

void pen__npy_put(struct pen_buf *b, const struct pen_npy *h)
{
	pen__buf_le(b, h->major, 1);
	pen__buf_le(b, h->a.dtype, 1);
	pen__buf_le(b, (uint64_t)h->a.swap | (uint64_t)h->a.fortran << 1, 1);
	pen__buf_le(b, h->a.ndim, 1);
	pen__buf_le(b, h->a.at, 4);
	for (uint32_t i = 0; i < h->a.ndim; i++)
		pen__buf_le(b, (uint64_t)h->a.shape[i], 8);
}

bool pen__npy_take(struct pen_bytes *b, struct pen_npy *h)
{
	unsigned flags;

	*h = (struct pen_npy){ 0 };
	h->major = pen__take_u8(b);
	h->a.dtype = pen__take_u8(b);
	flags = pen__take_u8(b);
	h->a.swap = flags & 1;
	h->a.fortran = flags & 2;
	h->a.ndim = pen__take_u8(b);
	h->a.at = pen__take_u32(b);
	if (b->bad || h->a.ndim > PEN_MAX_DIMS || h->a.dtype >= PEN_NDTYPES)
		return false;
	for (uint32_t i = 0; i < h->a.ndim; i++) {
		h->a.shape[i] = (int64_t)pen__take_u64(b);
		if (h->a.shape[i] < 0)
			return false;
	}
	return !b->bad &&
	       array_bytes(&h->a, pen_dtype_size(h->a.dtype), &h->a.nbytes);
}
