/*
 * Indexing of npz: which members are fields, their headers, and the number of
 * samples. The header of a stored member is read in place. Only the start of a
 * deflated member is fetched and inflated, since anything else would read the
 * entire data set; the result is verified later, when the member has been
 * inflated. Members that are not numeric arrays are skipped unless they are
 * requested by name.
 */
#include "format/array/npz.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/mem.h"
#include "codec/deflate.h"
#include "format/value.h"
#include "format/zip.h"

#define LOOK_IN ((size_t)16 << 10)
#define LOOK_OUT ((size_t)4 << 10)
#define PIECE ((size_t)64 << 10)

/* A peek into a member: into bytes of the object, or inflated ones. */
struct member_peek {
	struct pen_peek pk;
	struct pen_peek *object;
	uint64_t at;
	const uint8_t *mem;
	size_t mem_len;
};

static int read_stored(struct pen_peek *pk, uint64_t off, void *buf, size_t len,
		       struct pen_err *err)
{
	struct member_peek *mp = (struct member_peek *)pk;

	return mp->object->read(mp->object, mp->at + off, buf, len, err);
}

static int read_inflated(struct pen_peek *pk, uint64_t off, void *buf,
			 size_t len, struct pen_err *err)
{
	struct member_peek *mp = (struct member_peek *)pk;

	if (off > mp->mem_len || len > mp->mem_len - off)
		return pen__fail(err, P_DAMAGED, pk->name,
				 "the npy header is longer than expected");
	memcpy(buf, mp->mem + off, len);
	return 0;
}

/*
 * Inflates a member into out, which is the caller's to free: all of it, or the
 * part that a header may need.
 */
static int fetch_inflated(struct pen_peek *pk, const struct pen_zip_member *m,
			  bool whole, const char *where, struct pen_buf *out,
			  struct pen_err *err)
{
	const size_t csize = (size_t)m->csize, usize = (size_t)m->usize;
	const size_t in_len = whole || csize < LOOK_IN ? csize : LOOK_IN;
	const size_t len = whole || usize < LOOK_OUT ? usize : LOOK_OUT;
	uint8_t *in = pen__alloc(in_len, 1);
	struct pen_scratch s;
	int rc = 0;

	out->p = pen__alloc(len, 1);
	out->n = out->cap = len;
	pen__scratch_init(&s, 0);
	if (!in || !out->p)
		rc = PEN_ENOMEM;
	if (rc == 0 && in_len)
		rc = pk->read(pk, m->data, in, in_len, err);
	if (rc == 0) {
		rc = whole ? pen__inflate(&s, in, in_len, out->p, len)
			   : pen__inflate_start(&s, in, in_len, out->p, len);
		if (rc == PEN_EDATA)
			pen__fail(err, P_CANNOT_DECODE, where,
				  "damaged: the member cannot be inflated");
	}
	if (rc == PEN_ENOMEM)
		pen__fail_nomem(err, where, len);
	pen__scratch_fini(&s);
	pen__free(in);
	return rc;
}

static int look(struct member_peek *mp, const struct pen_zip_member *m,
		bool whole, struct pen_npy *out, struct pen_err *err)
{
	struct pen_buf b = { 0 };
	int rc = fetch_inflated(mp->object, m, whole, mp->pk.name, &b, err);

	if (rc == 0) {
		mp->mem = b.p;
		mp->mem_len = b.n;
		rc = pen__npy_read(&mp->pk, out, err);
	}
	pen__buf_fini(&b);
	return rc;
}

static int read_header(struct pen_peek *pk, const struct pen_zip_member *m,
		       const char *where, struct pen_npy *out,
		       struct pen_err *err)
{
	struct member_peek mp = {
		.pk = { .name = where, .size = m->usize, .read = read_stored },
		.object = pk,
		.at = m->data,
	};
	int rc;

	if (m->method == PEN_ZIP_STORED)
		return pen__npy_read(&mp.pk, out, err);
	mp.pk.read = read_inflated;
	rc = look(&mp, m, false, out, err);
	/* Too little of it, or damaged: the entire member decides, and
	 * explains. */
	if (rc == PEN_EDATA)
		rc = look(&mp, m, true, out, err);
	return rc;
}

/* The crc of a stored member, in pieces. */
static int sum_stored(struct pen_peek *pk, const struct pen_zip_member *m,
		      uint32_t *crc, struct pen_err *err)
{
	const size_t cap = m->csize < PIECE ? (size_t)m->csize : PIECE;
	uint8_t *p = pen__alloc(cap, 1);
	int rc = 0;

	if (!p)
		return pen__fail_nomem(err, pk->name, cap);
	*crc = 0;
	for (uint64_t at = 0; at < m->csize && rc >= 0; at += cap) {
		size_t n = m->csize - at < cap ? (size_t)(m->csize - at) : cap;

		rc = pk->read(pk, m->data + at, p, n, err);
		if (rc >= 0)
			*crc = pen__crc32(*crc, p, n);
	}
	pen__free(p);
	return rc;
}

/*
 * A member that does not seem to be numeric is skipped. Check first that it is
 * not damaged, since nothing looks at it later: a flipped bit must not make a
 * field disappear.
 */
static int check_skipped(const struct pen_npz *p, struct pen_peek *pk,
			 const struct pen_zip_member *m, const char *where,
			 struct pen_err *err)
{
	struct pen_buf b = { 0 };
	uint32_t crc = 0;
	int rc;

	if (!p->crc)
		return 0;
	if (m->method == PEN_ZIP_STORED) {
		rc = sum_stored(pk, m, &crc, err);
	} else {
		rc = fetch_inflated(pk, m, true, where, &b, err);
		if (rc >= 0)
			crc = pen__crc32(0, b.p, b.n);
		pen__buf_fini(&b);
	}
	if (rc >= 0 && crc != m->crc)
		rc = pen__fail(err, P_CHECKSUM, where,
			       "damaged: the crc32 of the member differs");
	return rc;
}

/* Whether its name is that of an array. */
static bool is_array(const struct pen_zip_member *m)
{
	const size_t n = m->name_len;

	return n > 4 && memcmp(m->name + n - 4, ".npy", 4) == 0;
}

/* The name before .npy, if it is a valid field name. */
static bool field_name(const struct pen_zip_member *m, char *out, size_t cap)
{
	const size_t n = (size_t)m->name_len - 4;

	if (n >= cap)
		return false;
	for (size_t i = 0; i < n; i++)
		if ((unsigned char)m->name[i] < 0x20 || m->name[i] == 0x7f)
			return false;
	memcpy(out, m->name, n);
	out[n] = '\0';
	return true;
}

struct entries {
	struct pen_npz_entry e[PEN_MAX_FIELDS];
	uint32_t n;
	uint32_t nskipped;
};

/* Reads the header of the member into es->e[es->n], whose name is set. */
static int add_array(const struct pen_npz *p, struct pen_peek *pk,
		     const struct pen_zip_member *m, struct entries *es,
		     struct pen_err *err)
{
	struct pen_npz_entry *e = &es->e[es->n];
	char where[sizeof(err->where)];
	struct pen_err why = { 0 };
	int rc;

	snprintf(where, sizeof(where), "%s:%s.npy", pk->name, e->name);
	rc = pen__zip_usable(m, where, err);
	if (rc < 0)
		return rc;
	rc = read_header(pk, m, where, &e->npy, &why);
	if (rc == PEN_ENOTSUP && !p->fields) {
		es->nskipped++;
		return check_skipped(p, pk, m, where, err);
	}
	if (rc < 0 && err)
		*err = why;
	if (rc < 0)
		return rc;
	if (e->npy.extra)
		return pen__fail(err, P_DAMAGED, where,
				 "%" PRIu64 " bytes follow the array",
				 e->npy.extra);
	e->m = (struct pen_npz_member){
		.at = m->data,
		.csize = m->csize,
		.usize = m->usize,
		.crc = m->crc,
		.header_crc = e->npy.crc,
		.deflated = m->method == PEN_ZIP_DEFLATED,
	};
	es->n++;
	return 0;
}

static int add_member(const struct pen_npz *p, struct pen_peek *pk,
		      const struct pen_zip_member *m, struct entries *es,
		      struct pen_err *err)
{
	struct pen_npz_entry *e;
	char name[sizeof(e->name)];

	if (!is_array(m))
		return 0;
	if (!field_name(m, name, sizeof(name)))
		return p->fields
			       ? 0
			       : pen__fail(err, P_OVER_LIMIT, pk->name,
					   "a member name is not a valid field "
					   "name (longer than %zu bytes, or "
					   "with control characters); list the "
					   "other arrays with fields=",
					   sizeof(name) - 1);
	if (p->fields && pen__in_list(p->fields, name, strlen(name)) < 0)
		return 0;
	for (uint32_t i = 0; i < es->n; i++)
		if (strcmp(es->e[i].name, name) == 0)
			return pen__fail(err, P_DAMAGED, pk->name,
					 "two members have the name '%s.npy'",
					 name);
	if (es->n == PEN_MAX_FIELDS)
		return pen__fail(err, P_OVER_LIMIT, pk->name,
				 "the archive has more than %d arrays; list "
				 "the arrays to read with fields=",
				 PEN_MAX_FIELDS);
	e = &es->e[es->n];
	*e = (struct pen_npz_entry){ 0 };
	memcpy(e->name, name, sizeof(name));
	return add_array(p, pk, m, es, err);
}

static int no_member(const struct pen_peek *pk, const struct entries *es,
		     const char *name, int len, struct pen_err *err)
{
	struct pen_near near = pen__near(name, (size_t)len);

	for (uint32_t i = 0; i < es->n; i++)
		pen__near_see(&near, es->e[i].name, strlen(es->e[i].name));
	return pen__fail(err, P_NO_SUCH_PART, pk->name,
			 "the archive has no member '%.*s.npy'%s",
			 len < 100 ? len : 100, name, pen__near_text(&near).s);
}

static int check_found(const struct pen_npz *p, struct pen_peek *pk,
		       const struct entries *es, struct pen_err *err)
{
	const char *list = p->fields;

	while (list) {
		const int len = (int)strcspn(list, ",");
		uint32_t i = 0;

		while (i < es->n && (strncmp(es->e[i].name, list, len) != 0 ||
				     es->e[i].name[len]))
			i++;
		if (i == es->n)
			return no_member(pk, es, list, len, err);
		list = list[len] ? list + len + 1 : NULL;
	}
	if (!es->n)
		return pen__fail(err, P_UNSUPPORTED_TYPE, pk->name,
				 es->nskipped
					 ? "none of the %u arrays is numeric"
					 : "the archive has no .npy members",
				 es->nskipped);
	return 0;
}

/* A single object whose arrays have first axes of equal length is a table. */
static enum pen_samples resolve(const struct pen_format *f,
				const struct entries *es)
{
	const struct pen_npz *p = f->priv;

	if (p->samples != PEN_SAMPLES_AUTO)
		return (enum pen_samples)p->samples;
	if (f->nobjects_hint != 1)
		return PEN_SAMPLES_FILE;
	for (uint32_t i = 0; i < es->n; i++) {
		const struct pen_array *a = &es->e[i].npy.a;

		if (!a->ndim || a->shape[0] < 2 ||
		    a->shape[0] != es->e[0].npy.a.shape[0])
			return PEN_SAMPLES_FILE;
	}
	return PEN_SAMPLES_FIRST;
}

static int count(const struct pen_peek *pk, const struct entries *es,
		 enum pen_samples mode, uint64_t *out, struct pen_err *err)
{
	char where[sizeof(err->where)];
	bool backed = false;
	uint64_t n;
	int rc;

	for (uint32_t i = 0; i < es->n; i++) {
		snprintf(where, sizeof(where), "%s:%s.npy", pk->name,
			 es->e[i].name);
		rc = pen__array_samples(&es->e[i].npy.a, mode, &n, where, err);
		if (rc < 0)
			return rc;
		if (i && n != *out)
			return pen__fail(err, P_FILES_DISAGREE, where,
					 "the array has %" PRIu64
					 " samples, but '%s' has %" PRIu64
					 "; check format.samples=%s",
					 n, es->e[0].name, *out,
					 pen__samples_choices[mode]);
		*out = n;
		backed |= es->e[i].npy.a.nbytes > 0;
	}
	if (*out && !backed && mode != PEN_SAMPLES_FILE)
		return pen__fail(err, P_DAMAGED, pk->name,
				 "the archive has %" PRIu64
				 " samples of 0 bytes each",
				 *out);
	return 0;
}

/* In the order of the option if it is set, else of the file. */
static void put_all(const struct pen_npz *p, const struct entries *es,
		    struct pen_buf *b)
{
	uint32_t nput = 0;

	for (int k = 0; nput < es->n; k++) {
		for (uint32_t i = 0; i < es->n; i++) {
			const char *name = es->e[i].name;

			if (p->fields &&
			    pen__in_list(p->fields, name, strlen(name)) != k)
				continue;
			pen__npz_put(b, &es->e[i]);
			nput++;
		}
	}
}

/* Presents an array of bytes that is the value of a sample, to be decoded. */
static int show_value(const struct pen_format *f, struct pen_peek *pk,
		      const struct pen_npz_entry *e, struct pen_found *found,
		      struct pen_err *err)
{
	const struct pen_zip_member m = { .data = e->m.at,
					  .csize = e->m.csize,
					  .usize = e->m.usize };
	char where[sizeof(err->where)];
	struct member_peek mp = {
		.pk = { .name = where,
			.size = e->npy.a.nbytes,
			.read = read_stored },
		.object = pk,
		.at = e->m.at + e->npy.a.at,
	};
	struct pen_buf b = { 0 };
	int rc = 0;

	snprintf(where, sizeof(where), "%s:%s.npy", pk->name, e->name);
	if (e->m.deflated) {
		rc = fetch_inflated(pk, &m, true, where, &b, err);
		mp.pk.read = read_inflated;
		mp.mem = b.p + e->npy.a.at;
		mp.mem_len = mp.pk.size;
	}
	if (!rc)
		rc = f->see(f, e->name, 0, &mp.pk, found, err);
	pen__buf_fini(&b);
	return rc;
}

static int show_values(const struct pen_format *f, struct pen_peek *pk,
		       const struct entries *es, struct pen_found *found,
		       struct pen_err *err)
{
	int rc = 0;

	for (uint32_t i = 0; i < es->n && !rc; i++) {
		const struct pen_npz_entry *e = &es->e[i];

		if (e->npy.a.dtype == PEN_U8 && e->npy.a.ndim == 1 &&
		    f->see(f, e->name, 0, NULL, found, NULL))
			rc = show_value(f, pk, e, found, err);
	}
	return rc;
}

static int index_with(const struct pen_format *f, struct pen_peek *pk,
		      struct entries *es, struct pen_found *found,
		      struct pen_err *err)
{
	const struct pen_npz *p = f->priv;
	enum pen_samples mode;
	struct pen_zip z;
	int rc = pen__zip_open(&z, pk, err);

	if (rc < 0)
		return rc;
	for (size_t i = 0; i < z.n && rc >= 0; i++)
		rc = add_member(p, pk, &z.m[i], es, err);
	pen__zip_close(&z);
	if (rc >= 0)
		rc = check_found(p, pk, es, err);
	if (rc < 0)
		return rc;
	mode = resolve(f, es);
	rc = count(pk, es, mode, &found->nsamples, err);
	if (rc >= 0 && f->see && mode == PEN_SAMPLES_FILE)
		rc = show_values(f, pk, es, found, err);
	if (rc < 0)
		return rc;
	pen__buf_le(&found->blob, mode, 1);
	pen__buf_le(&found->blob, es->n, 1);
	put_all(p, es, &found->blob);
	return found->blob.bad ? pen__fail_nomem(err, pk->name, 256) : 0;
}

int pen__npz_index(const struct pen_format *f, struct pen_peek *pk,
		   struct pen_found *found, struct pen_err *err)
{
	struct entries *es = pen__calloc(1, sizeof(*es));
	int rc;

	if (!es)
		return pen__fail_nomem(err, pk->name, sizeof(*es));
	rc = index_with(f, pk, es, found, err);
	pen__free(es);
	return rc;
}

void pen__npz_put(struct pen_buf *b, const struct pen_npz_entry *e)
{
	const size_t n = strlen(e->name);

	pen__buf_le(b, n, 1);
	pen__buf_put(b, e->name, n);
	pen__buf_le(b, e->m.deflated, 1);
	pen__buf_le(b, e->m.at, 8);
	pen__buf_le(b, e->m.csize, 8);
	pen__buf_le(b, e->m.usize, 8);
	pen__buf_le(b, e->m.crc, 4);
	pen__buf_le(b, e->m.header_crc, 4);
	pen__npy_put(b, &e->npy);
}

bool pen__npz_take(struct pen_bytes *b, struct pen_npz_entry *e)
{
	const size_t n = pen__take_u8(b);
	const uint8_t *name = pen__take(b, n);

	*e = (struct pen_npz_entry){ 0 };
	if (!name || n >= sizeof(e->name))
		return false;
	memcpy(e->name, name, n);
	e->m.deflated = pen__take_u8(b);
	e->m.at = pen__take_u64(b);
	e->m.csize = pen__take_u64(b);
	e->m.usize = pen__take_u64(b);
	e->m.crc = pen__take_u32(b);
	e->m.header_crc = pen__take_u32(b);
	return pen__npy_take(b, &e->npy);
}
