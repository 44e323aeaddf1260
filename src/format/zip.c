/*
 * A strict zip reader: values stored twice must agree, and members must not
 * share bytes. Rejects multi-part archives, archives with anything between
 * directory and end record or after it, and damaged ones; it does not repair.
 * Zip64 is supported everywhere.
 */
#include "format/zip.h"

#include <inttypes.h>
#include <stdlib.h>

#include "base/mem.h"
#include "base/quote.h"

#define EOCD_LEN 22u
#define LOCATOR_LEN 20u
#define EOCD64_LEN 56u
#define ENTRY_LEN 46u
#define LOCAL_LEN 30u
#define LOCAL_LOOK 256u /* large enough for nearly every local header */
#define LONGEST_COMMENT 65535u
#define FIRST_TAIL 1024u
#define ENCRYPTED 0x41u /* flags: in the usual way, or "strongly" */
#define PATCH 0x20u
#define LARGEST_DIR ((uint64_t)64 << 20)

static int damaged(const struct pen_peek *pk, struct pen_err *err,
		   const char *what)
{
	return pen__fail(err, P_DAMAGED, pk->name, "damaged zip archive: %s",
			 what);
}

/* Contents of the end record. */
struct tail {
	uint64_t at; /* of the end record, then of the zip64 one */
	uint64_t disk, dir_disk, nhere, n, dir_len, dir_at;
};

static bool parse_eocd(const uint8_t *p, size_t n, struct tail *t)
{
	struct pen_bytes b = pen__bytes(p, n);

	if (pen__take_u32(&b) != 0x06054b50)
		return false;
	t->disk = pen__take_u16(&b);
	t->dir_disk = pen__take_u16(&b);
	t->nhere = pen__take_u16(&b);
	t->n = pen__take_u16(&b);
	t->dir_len = pen__take_u32(&b);
	t->dir_at = pen__take_u32(&b);
	/* its comment must end at the end of the file */
	return pen__take_u16(&b) == pen__bytes_left(&b) && !b.bad;
}

/* Searches the last `want` bytes for the end record: 1 found, 0 not. */
static int scan_tail(struct pen_peek *pk, uint64_t want, struct tail *t,
		     struct pen_err *err)
{
	const size_t n = (size_t)(pk->size < want ? pk->size : want);
	uint8_t *p = pen__alloc(n, 1);
	int rc;

	if (!p)
		return pen__fail_nomem(err, pk->name, n);
	rc = pk->read(pk, pk->size - n, p, n, err);
	for (size_t i = n - EOCD_LEN + 1; rc == 0 && i-- > 0;) {
		if (!parse_eocd(p + i, n - i, t))
			continue;
		t->at = pk->size - n + i;
		rc = 1;
	}
	pen__free(p);
	return rc;
}

/* A number that fits into the narrow record is in both. */
static bool agree(uint64_t narrow, uint64_t wide, uint64_t most)
{
	return narrow == wide || narrow == most;
}

/* Zip64: the same numbers in 64 bits. */
static int read_eocd64(struct pen_peek *pk, struct tail *t, struct pen_err *err)
{
	const struct tail narrow = *t;
	uint8_t buf[EOCD64_LEN];
	struct pen_bytes b = pen__bytes(buf, LOCATOR_LEN);
	uint64_t at, disk, ndisks;
	int rc;

	if (t->at < LOCATOR_LEN + EOCD64_LEN)
		return damaged(
			pk, err,
			"the directory is not at the offset in the end record");
	rc = pk->read(pk, t->at - LOCATOR_LEN, buf, LOCATOR_LEN, err);
	if (rc < 0)
		return rc;
	if (pen__take_u32(&b) != 0x07064b50)
		return damaged(
			pk, err,
			"the directory is not at the offset in the end record");
	disk = pen__take_u32(&b);
	at = pen__take_u64(&b);
	ndisks = pen__take_u32(&b);
	if (disk || ndisks > 1)
		return pen__fail(err, P_UNSUPPORTED_FEATURE, pk->name,
				 "multi-part zip archives are not supported");
	/* it directly precedes its locator and has no optional parts */
	if (at != t->at - LOCATOR_LEN - EOCD64_LEN)
		return damaged(pk, err,
			       "the zip64 end record is not directly before "
			       "its locator");
	rc = pk->read(pk, at, buf, EOCD64_LEN, err);
	if (rc < 0)
		return rc;
	b = pen__bytes(buf, EOCD64_LEN);
	if (pen__take_u32(&b) != 0x06064b50 ||
	    pen__take_u64(&b) != EOCD64_LEN - 12)
		return damaged(pk, err, "the zip64 end record is missing");
	pen__take(&b, 4);
	*t = (struct tail){ .at = at };
	t->disk = pen__take_u32(&b);
	t->dir_disk = pen__take_u32(&b);
	t->nhere = pen__take_u64(&b);
	t->n = pen__take_u64(&b);
	t->dir_len = pen__take_u64(&b);
	t->dir_at = pen__take_u64(&b);
	if (!agree(narrow.n, t->n, UINT16_MAX) ||
	    !agree(narrow.dir_len, t->dir_len, UINT32_MAX) ||
	    !agree(narrow.dir_at, t->dir_at, UINT32_MAX))
		return damaged(
			pk, err,
			"the end record and the zip64 end record disagree");
	return 0;
}

static int no_end(struct pen_peek *pk, struct pen_err *err)
{
	const size_t n = pk->size < 8 ? (size_t)pk->size : 8;
	uint8_t b[8] = { 0 };
	int rc = n ? pk->read(pk, 0, b, n, err) : 0;
	const int kind = memcmp(b, "PK", 2) == 0 ? P_TRUNCATED
						 : P_NOT_THIS_FORMAT;

	return rc ? rc
		  : pen__fail(err, kind, pk->name,
			      "not a zip archive, or truncated: it starts with "
			      "%s and has no end record",
			      pen__quoted(b, n).s);
}

static int read_tail(struct pen_peek *pk, struct tail *t, struct pen_err *err)
{
	int rc = 0;

	if (pk->size >= EOCD_LEN)
		rc = scan_tail(pk, FIRST_TAIL, t, err);
	if (rc == 0 && pk->size > FIRST_TAIL)
		rc = scan_tail(pk, EOCD_LEN + LONGEST_COMMENT, t, err);
	if (rc < 0)
		return rc;
	if (!rc)
		return no_end(pk, err);
	/* Some writers add zip64 records needlessly, so a gap before the end
	 * record also requires a look. */
	if (t->n == UINT16_MAX || t->dir_len == UINT32_MAX ||
	    t->dir_at == UINT32_MAX || t->dir_at + t->dir_len != t->at) {
		rc = read_eocd64(pk, t, err);
		if (rc < 0)
			return rc;
	}
	if (t->disk || t->dir_disk || t->nhere != t->n)
		return pen__fail(err, P_UNSUPPORTED_FEATURE, pk->name,
				 "multi-part zip archives are not supported");
	if (t->dir_at > t->at || t->dir_len != t->at - t->dir_at)
		return damaged(
			pk, err,
			"the directory is not at the offset in the end record");
	if (t->n > t->dir_len / ENTRY_LEN)
		return damaged(pk, err,
			       "the end record lists more members than the "
			       "directory can contain");
	if (t->dir_len > LARGEST_DIR)
		return pen__fail(err, P_OVER_LIMIT, pk->name,
				 "the zip directory has %" PRIu64
				 " bytes, more than 64 MiB",
				 t->dir_len);
	return 0;
}

/*
 * The zip64 extra field replaces those of v[0..n) that are saturated, in order.
 * False if one is saturated but not in the field.
 */
static bool widen(struct pen_bytes extra, uint64_t *const *v, unsigned n)
{
	struct pen_bytes wide = { 0 };
	bool ok = true;

	while (pen__bytes_left(&extra) >= 4) {
		unsigned id = pen__take_u16(&extra);
		size_t len = pen__take_u16(&extra);
		const uint8_t *p = pen__take(&extra, len);

		if (id == 1 && p)
			wide = pen__bytes(p, len);
	}
	for (unsigned i = 0; i < n; i++) {
		if (*v[i] != UINT32_MAX)
			continue;
		*v[i] = pen__take_u64(&wide);
		ok &= !wide.bad;
	}
	return ok;
}

static bool parse_entry(struct pen_bytes *b, struct pen_zip_member *m)
{
	uint64_t *wide[] = { &m->usize, &m->csize, &m->header };
	size_t extra_len, comment_len;
	const uint8_t *extra;
	unsigned disk;

	if (pen__take_u32(b) != 0x02014b50)
		return false;
	pen__take(b, 4); /* versions */
	m->flags = pen__take_u16(b);
	m->method = pen__take_u16(b);
	pen__take(b, 4); /* time and date */
	m->crc = pen__take_u32(b);
	m->csize = pen__take_u32(b);
	m->usize = pen__take_u32(b);
	m->name_len = pen__take_u16(b);
	extra_len = pen__take_u16(b);
	comment_len = pen__take_u16(b);
	disk = pen__take_u16(b);
	pen__take(b, 6); /* attributes */
	m->header = pen__take_u32(b);
	m->name = (const char *)pen__take(b, m->name_len);
	extra = pen__take(b, extra_len);
	pen__take(b, comment_len);
	return !b->bad && (disk == 0 || disk == UINT16_MAX) &&
	       widen(pen__bytes(extra, extra_len), wide, 3);
}

static int by_position(const void *a, const void *b)
{
	const struct pen_zip_member *x = a, *y = b;

	return (x->header > y->header) - (x->header < y->header);
}

/* The local header must agree with the directory, and the bytes must exist. */
static int check_local(struct pen_peek *pk, struct pen_zip_member *m,
		       const uint8_t *p, size_t n, struct pen_err *err)
{
	struct pen_bytes b = pen__bytes(p, n);
	uint64_t csize, usize, *wide[] = { &usize, &csize };
	unsigned flags, method;
	uint32_t crc;
	size_t name_len, extra_len;
	const uint8_t *name, *extra;

	pen__take(&b, 6);
	flags = pen__take_u16(&b);
	method = pen__take_u16(&b);
	pen__take(&b, 4);
	crc = pen__take_u32(&b);
	csize = pen__take_u32(&b);
	usize = pen__take_u32(&b);
	name_len = pen__take_u16(&b);
	extra_len = pen__take_u16(&b);
	name = pen__take(&b, name_len);
	extra = pen__take(&b, extra_len);
	if (b.bad || name_len != m->name_len ||
	    memcmp(name, m->name, name_len) != 0)
		return damaged(pk, err,
			       "a member and its directory entry "
			       "have different names");
	if (method != m->method || ((flags ^ m->flags) & 9))
		return damaged(pk, err,
			       "a member and its directory entry have "
			       "different compression methods");
	/* bit 3: sizes and crc follow the data instead */
	if (!(flags & 8) &&
	    (!widen(pen__bytes(extra, extra_len), wide, 2) || crc != m->crc ||
	     csize != m->csize || usize != m->usize))
		return damaged(pk, err,
			       "a member and its directory entry have "
			       "different sizes or checksums");
	m->data = m->header + n;
	if (m->csize > m->limit - m->data)
		return damaged(pk, err, "members overlap");
	return 0;
}

static int read_local(struct pen_peek *pk, struct pen_zip_member *m,
		      struct pen_err *err)
{
	const uint64_t room = m->limit - m->header;
	uint8_t first[LOCAL_LOOK], *whole = NULL;
	size_t have = room < LOCAL_LOOK ? (size_t)room : LOCAL_LOOK, n;
	int rc;

	if (room < LOCAL_LEN || m->name_len > room - LOCAL_LEN ||
	    m->csize > room - LOCAL_LEN - m->name_len)
		return damaged(pk, err, "members overlap");
	rc = pk->read(pk, m->header, first, have, err);
	if (rc < 0)
		return rc;
	if (memcmp(first, "PK\3\4", 4) != 0)
		return damaged(pk, err,
			       "a directory entry does not point to a member");
	n = LOCAL_LEN + (size_t)(first[26] | first[27] << 8) +
	    (size_t)(first[28] | first[29] << 8);
	if (n > room)
		return damaged(pk, err, "members overlap");
	if (n <= have)
		return check_local(pk, m, first, n, err);
	whole = pen__alloc(n, 1);
	if (!whole)
		return pen__fail_nomem(err, pk->name, n);
	rc = pk->read(pk, m->header, whole, n, err);
	if (rc >= 0)
		rc = check_local(pk, m, whole, n, err);
	pen__free(whole);
	return rc;
}

static int read_members(struct pen_zip *z, struct pen_peek *pk, size_t dir_len,
			struct pen_err *err)
{
	struct pen_bytes b = pen__bytes(z->dir, dir_len);
	int rc = pk->read(pk, z->dir_at, z->dir, dir_len, err);

	for (size_t i = 0; rc >= 0 && i < z->n; i++)
		if (!parse_entry(&b, &z->m[i]))
			return damaged(pk, err, "a directory entry is invalid");
	if (rc >= 0 && pen__bytes_left(&b))
		return damaged(pk, err,
			       "the directory has more entries than the end "
			       "record lists");
	if (rc < 0)
		return rc;
	qsort(z->m, z->n, sizeof(*z->m), by_position);
	/* if the last one is before the directory, all are */
	if (z->m[z->n - 1].header > z->dir_at)
		return damaged(pk, err, "a member starts after the directory");
	for (size_t i = 0; i < z->n; i++) {
		struct pen_zip_member *m = &z->m[i];

		m->limit = i + 1 < z->n ? z->m[i + 1].header : z->dir_at;
		rc = read_local(pk, m, err);
		if (rc < 0)
			return rc;
	}
	return 0;
}

int pen__zip_open(struct pen_zip *z, struct pen_peek *pk, struct pen_err *err)
{
	struct tail t = { 0 };
	int rc;

	*z = (struct pen_zip){ 0 };
	rc = read_tail(pk, &t, err);
	if (rc < 0)
		return rc;
	if (!t.n)
		return pen__fail(err, P_NO_SAMPLES, pk->name,
				 "the zip archive is empty");
	/* both are bounded by the size of the object: see read_tail() */
	z->dir = pen__alloc((size_t)t.dir_len, 1);
	z->m = pen__calloc((size_t)t.n, sizeof(*z->m));
	z->n = (size_t)t.n;
	z->dir_at = t.dir_at;
	if (!z->dir || !z->m)
		rc = pen__fail_nomem(err, pk->name, (size_t)t.dir_len);
	else
		rc = read_members(z, pk, (size_t)t.dir_len, err);
	if (rc < 0)
		pen__zip_close(z);
	return rc;
}

void pen__zip_close(struct pen_zip *z)
{
	pen__free(z->dir);
	pen__free(z->m);
	*z = (struct pen_zip){ 0 };
}

static const char *method_name(unsigned method)
{
	switch (method) {
	case 1:
		return "shrink";
	case 6:
		return "implode";
	case 9:
		return "deflate64";
	case 12:
		return "bzip2";
	case 14:
		return "lzma";
	case 93:
		return "zstd";
	case 95:
		return "xz";
	}
	return "an unknown method";
}

int pen__zip_usable(const struct pen_zip_member *m, const char *where,
		    struct pen_err *err)
{
	if (m->flags & ENCRYPTED)
		return pen__fail(
			err, P_UNSUPPORTED_FEATURE, where,
			"the member is encrypted, which is not supported");
	if (m->flags & PATCH)
		return pen__fail(err, P_UNSUPPORTED_FEATURE, where,
				 "the member is a patch of another file, which "
				 "is not supported");
	if (m->method != PEN_ZIP_STORED && m->method != PEN_ZIP_DEFLATED)
		return pen__fail(
			err, P_UNSUPPORTED_FEATURE, where,
			"the member is compressed with %s (method %u), which "
			"is not supported; store or deflate it",
			method_name(m->method), m->method);
	if (m->method == PEN_ZIP_STORED && m->csize != m->usize)
		return pen__fail(err, P_DAMAGED, where,
				 "damaged zip archive: the member is stored, "
				 "but its two sizes differ");
	/* Deflate's best is 258 bytes from 2 bits: 1032 to 1. */
	if (m->method == PEN_ZIP_DEFLATED && m->usize / 1032 > m->csize + 64)
		return pen__fail(err, P_DAMAGED, where,
				 "damaged zip archive: %" PRIu64
				 " bytes cannot come from %" PRIu64
				 " compressed bytes",
				 m->usize, m->csize);
	return 0;
}
