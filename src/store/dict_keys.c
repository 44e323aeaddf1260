/* Keys of a dictionary as text: lists of them for keys=, and their names. */
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "codec/npy_header.h"
#include "store/dict_values.h"

int pen__dict_keys_add(struct pen_dict_keys *to, struct pen_key k)
{
	if (to->n == to->cap) {
		const uint64_t cap = to->cap ? 2 * to->cap : 1024;
		void *more = pen__realloc(to->key, cap, sizeof(*to->key));

		if (!more)
			return PEN_ENOMEM;
		to->key = more;
		to->cap = cap;
	}
	if (k.bytes) {
		const uintptr_t at = to->bytes.n;

		/* a byte each, so that no offset is NULL */
		pen__buf_le(&to->bytes, 0, 1);
		pen__buf_put(&to->bytes, k.bytes, k.number);
		if (to->bytes.bad)
			return PEN_ENOMEM;
		k.bytes = (const void *)(at + 1);
	}
	to->key[to->n++] = k;
	return 0;
}

void pen__dict_keys_settle(struct pen_dict_keys *to)
{
	for (uint64_t i = 0; i < to->n; i++)
		if (to->key[i].bytes)
			to->key[i].bytes =
				to->bytes.p + (uintptr_t)to->key[i].bytes;
}

void pen__dict_keys_fini(struct pen_dict_keys *k)
{
	pen__free(k->key);
	pen__buf_fini(&k->bytes);
	*k = (struct pen_dict_keys){ 0 };
}

int pen__dict_key_compare(const void *va, const void *vb)
{
	const struct pen_key *a = va, *b = vb;
	uint64_t n;
	int c;

	if (!a->bytes || !b->bytes) {
		if (a->bytes || b->bytes)
			return a->bytes ? 1 : -1;
		return (a->number > b->number) - (a->number < b->number);
	}
	n = a->number < b->number ? a->number : b->number;
	c = n ? memcmp(a->bytes, b->bytes, n) : 0;
	return c ? c : (a->number > b->number) - (a->number < b->number);
}

/* --- words --- */

static bool is_digits(const char *s, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (!isdigit((unsigned char)s[i]))
			return false;
	return n > 0;
}

struct pen_dict_name pen__dict_name(struct pen_key k)
{
	const uint8_t *p = k.bytes;
	struct pen_dict_name r;
	size_t at = 0;

	if (!p) {
		snprintf(r.s, sizeof(r.s), "%llu",
			 (unsigned long long)k.number);
		return r;
	}
	if (!k.number)
		r.s[at++] = '%';
	for (uint64_t i = 0; i < k.number && at < sizeof(r.s) - 8; i++) {
		const bool fine = isgraph(p[i]) && !strchr("%/,", p[i]);

		if (fine && !(i == 0 && is_digits(k.bytes, k.number)))
			r.s[at++] = (char)p[i];
		else
			at += (size_t)snprintf(r.s + at, 4, "%%%02X", p[i]);
		if (at >= sizeof(r.s) - 8 && i + 1 < k.number)
			at += (size_t)snprintf(r.s + at, 4, "...");
	}
	r.s[at] = '\0';
	return r;
}

static int bad_word(const char *s, size_t n, struct pen_err *err)
{
	return pen__fail(err, P_BAD_VALUE, "keys",
			 "'%.*s' is not a key; write an integer below 2^64, or "
			 "text with %%XX for bytes that are not printable",
			 (int)(n < 60 ? n : 60), s);
}

static bool hex_at(const char *s, size_t n, uint8_t *out)
{
	char two[3] = { 0 };

	if (n < 3 || !isxdigit((unsigned char)s[1]) ||
	    !isxdigit((unsigned char)s[2]))
		return false;
	memcpy(two, s + 1, 2);
	*out = (uint8_t)strtoul(two, NULL, 16);
	return true;
}

/* One word; it is changed in place. */
static int add_word(struct pen_dict_keys *to, char *s, size_t n,
		    struct pen_err *err)
{
	struct pen_key k = { s, 0 };
	size_t i = 0;

	if (is_digits(s, n)) {
		char *end, digit = s[n];

		s[n] = '\0';
		errno = 0;
		k = (struct pen_key){ NULL, strtoull(s, &end, 10) };
		s[n] = digit;
		if (errno)
			return bad_word(s, n, err);
	}
	while (k.bytes && i < n && !(n == 1 && s[0] == '%')) {
		uint8_t c = (uint8_t)s[i];

		if (c == '%' && !hex_at(s + i, n - i, &c))
			return bad_word(s, n, err);
		i += s[i] == '%' ? 3 : 1;
		s[k.number++] = (char)c;
	}
	return pen__dict_keys_add(to, k) ? pen__fail_nomem(err, "keys", n) : 0;
}

static int add_words(struct pen_dict_keys *to, char *text, size_t n,
		     const char *ends, struct pen_err *err)
{
	int rc = 0;

	for (char *s = text; s < text + n && !rc;) {
		size_t k = strcspn(s, ends);

		if (k) /* empty lines do not count */
			rc = add_word(to, s, k, err);
		s += k + 1;
	}
	return rc;
}

/* --- files --- */

static int read_file(const char *path, struct pen_buf *out, struct pen_err *err)
{
	char room[65536];
	FILE *in = fopen(path, "re");
	size_t n;
	int rc = 0;

	if (!in)
		return pen__fail_sys(err, errno, path, "cannot read the keys");
	while ((n = fread(room, 1, sizeof(room), in)))
		pen__buf_put(out, room, n);
	if (ferror(in))
		rc = pen__fail_sys(err, errno, path, "cannot read the keys");
	fclose(in);
	pen__buf_le(out, 0, 1); /* ends the text */
	return !rc && out->bad ? pen__fail_nomem(err, path, out->n) : rc;
}

/* A little-endian integer; false: it is negative. */
static bool take_int(const uint8_t *p, enum pen_dtype t, uint64_t *out)
{
	const size_t size = pen_dtype_size(t);
	const bool has_sign = t == PEN_I8 || t == PEN_I16 || t == PEN_I32 ||
			      t == PEN_I64;

	*out = 0;
	memcpy(out, p, size);
	return !has_sign || !(p[size - 1] & 0x80);
}

static bool is_int(enum pen_dtype t)
{
	return t == PEN_I8 || t == PEN_I16 || t == PEN_I32 || t == PEN_I64 ||
	       t == PEN_U8 || t == PEN_U16 || t == PEN_U32 || t == PEN_U64;
}

static int add_npy(struct pen_dict_keys *to, const char *path,
		   const struct pen_buf *b, struct pen_err *err)
{
	struct pen_npy a;
	int rc = pen__npy_parse((struct pen_span){ b->p, b->n - 1 }, path, &a,
				err);

	if (rc)
		return rc;
	if (!is_int(a.a.dtype) || a.a.ndim != 1 || a.a.swap)
		return pen__fail(err, P_BAD_VALUE, path,
				 "keys are one axis of integers in "
				 "little-endian order");
	for (int64_t i = 0; i < a.a.shape[0] && !rc; i++) {
		const uint8_t *at =
			b->p + a.a.at + (size_t)i * pen_dtype_size(a.a.dtype);
		struct pen_key k = { 0 };

		if (!take_int(at, a.a.dtype, &k.number))
			rc = pen__fail(err, P_BAD_VALUE, path,
				       "entry %lld is negative; integer keys "
				       "start at 0",
				       (long long)i);
		else if (pen__dict_keys_add(to, k))
			rc = pen__fail_nomem(err, path, to->n * sizeof(k));
	}
	return rc;
}

static int add_file(struct pen_dict_keys *to, const char *path,
		    struct pen_err *err)
{
	const size_t n = strlen(path);
	struct pen_buf b = { 0 };
	int rc = read_file(path, &b, err);

	if (!rc && n > 4 && !strcmp(path + n - 4, ".npy"))
		rc = add_npy(to, path, &b, err);
	else if (!rc && strlen((char *)b.p) + 1 != b.n)
		rc = pen__fail(err, P_BAD_TEXT, path,
			       "has a NUL byte; write one key per line, with "
			       "%%XX for bytes that are not printable");
	else if (!rc)
		rc = add_words(to, (char *)b.p, b.n - 1, "\r\n", err);
	pen__buf_fini(&b);
	return rc;
}

/* --- keys= --- */

/* START:STOP[:STEP]; false: it is something else. */
static bool parse_range(const char *s, uint64_t v[3])
{
	const size_t n = strspn(s, "0123456789:");
	const char *colon = strchr(s, ':');
	char *end;

	v[0] = 0;
	v[2] = 1;
	if (s[n] || !colon || !isdigit((unsigned char)colon[1]))
		return false;
	errno = 0;
	if (colon != s)
		v[0] = strtoull(s, NULL, 10);
	v[1] = strtoull(colon + 1, &end, 10);
	if (*end == ':' && isdigit((unsigned char)end[1]))
		v[2] = strtoull(end + 1, &end, 10);
	return !*end && !errno && v[2];
}

static int add_range(struct pen_dict_keys *to, const uint64_t v[3],
		     struct pen_err *err)
{
	for (uint64_t i = v[0]; i < v[1]; i += v[2]) {
		if (pen__dict_keys_add(to, (struct pen_key){ NULL, i }))
			return pen__fail_nomem(err, "keys", to->n * 16);
		if (v[2] > v[1] - i)
			break;
	}
	return 0;
}

static int add_list(struct pen_dict_keys *to, const char *text,
		    struct pen_err *err)
{
	char *copy = pen__strdup(text);
	int rc = copy ? add_words(to, copy, strlen(copy), ",", err)
		      : pen__fail_nomem(err, "keys", strlen(text));

	pen__free(copy);
	return rc;
}

int pen__dict_keys_parse(struct pen_dict_keys *to, const char *text,
			 struct pen_err *err)
{
	const size_t n = strlen(text);
	uint64_t v[3];

	if (parse_range(text, v))
		return add_range(to, v, err);
	if ((n > 4 && !strcmp(text + n - 4, ".npy")) || !access(text, F_OK))
		return add_file(to, text, err);
	return add_list(to, text, err);
}
