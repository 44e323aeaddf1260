/*
 * The npz writer, like np.savez and np.savez_compressed: members in field
 * order, dated 1980-01-01, sizes repeated in a zip64 extra field of the local
 * header. The crc precedes its data: it is patched afterwards if the output
 * supports that; otherwise the data is generated twice. A deflated member is
 * built in memory, since libdeflate works on entire buffers.
 */
#include "format/array/npz.h"

#include "base/mem.h"
#include "codec/deflate.h"
#include "format/zip.h"

#define LIMIT32 ((uint64_t)INT32_MAX) /* as in Python's zipfile */
#define DATE_1980_01_01 0x21u
#define ATTR_0600 (0600u << 16)

struct member {
	uint64_t at, csize, usize;
	uint32_t crc;
};

struct writer {
	const struct pen_npz *p;
	const struct pen_table *t;
	struct pen_out *out;
	struct pen_err *err;
	enum pen_samples mode;
	uint64_t at;
	struct member m[PEN_MAX_FIELDS];
};

/* An output that computes a crc, and forwards the data if `to` is set. */
struct sum_out {
	struct pen_out out, *to;
	uint64_t n;
	uint32_t crc;
};

static int sum_write(struct pen_out *o, const void *p, size_t n,
		     struct pen_err *err)
{
	struct sum_out *s = (struct sum_out *)o;

	s->crc = pen__crc32(s->crc, p, n);
	s->n += n;
	return s->to ? s->to->write(s->to, p, n, err) : 0;
}

/* An output to memory. */
struct mem_out {
	struct pen_out out;
	struct pen_buf buf;
};

static int mem_write(struct pen_out *o, const void *p, size_t n,
		     struct pen_err *err)
{
	struct mem_out *m = (struct mem_out *)o;

	pen__buf_put(&m->buf, p, n);
	return m->buf.bad ? pen__fail_nomem(err, "npz", n) : 0;
}

static int put(struct writer *w, const void *p, size_t n)
{
	w->at += n;
	return w->out->write(w->out, p, n, w->err);
}

static int put_buf(struct writer *w, struct pen_buf *b)
{
	int rc = b->bad ? pen__fail_nomem(w->err, "npz", b->n)
			: put(w, b->p, b->n);

	pen__buf_fini(b);
	return rc;
}

/* Common part of local header and directory entry. */
static void put_common(const struct writer *w, const struct member *m,
		       const char *name, size_t extra_len, struct pen_buf *b)
{
	const bool wide = m->csize > LIMIT32 || m->usize > LIMIT32;

	pen__buf_le(b, 0, 2); /* flags */
	pen__buf_le(b, w->p->compress ? PEN_ZIP_DEFLATED : PEN_ZIP_STORED, 2);
	pen__buf_le(b, 0, 2);
	pen__buf_le(b, DATE_1980_01_01, 2);
	pen__buf_le(b, m->crc, 4);
	pen__buf_le(b, wide ? UINT32_MAX : m->csize, 4);
	pen__buf_le(b, wide ? UINT32_MAX : m->usize, 4);
	pen__buf_le(b, strlen(name) + 4, 2);
	pen__buf_le(b, extra_len, 2);
}

static int put_local(struct writer *w, const struct member *m, const char *name)
{
	const bool wide = m->csize > LIMIT32 || m->usize > LIMIT32;
	struct pen_buf b = { 0 };

	pen__buf_str(&b, "PK\3\4");
	pen__buf_le(&b, wide ? 45 : 20, 2);
	put_common(w, m, name, 20, &b);
	pen__buf_printf(&b, "%s.npy", name);
	pen__buf_le(&b, 1, 2);
	pen__buf_le(&b, 16, 2);
	pen__buf_le(&b, m->usize, 8);
	pen__buf_le(&b, m->csize, 8);
	return put_buf(w, &b);
}

static void put_entry(const struct writer *w, const struct member *m,
		      const char *name, struct pen_buf *b)
{
	const bool wide = m->csize > LIMIT32 || m->usize > LIMIT32;
	const bool far = m->at > LIMIT32;
	const size_t wide_len = (wide ? 16u : 0u) + (far ? 8u : 0u);
	const unsigned version = wide || far ? 45 : 20;

	pen__buf_str(b, "PK\1\2");
	pen__buf_le(b, version | 3 << 8, 2); /* 3: made on Unix */
	pen__buf_le(b, version, 2);
	put_common(w, m, name, wide_len ? wide_len + 4 : 0, b);
	pen__buf_le(b, 0, 6); /* comment, disk, attributes */
	pen__buf_le(b, ATTR_0600, 4);
	pen__buf_le(b, far ? UINT32_MAX : m->at, 4);
	pen__buf_printf(b, "%s.npy", name);
	if (!wide_len)
		return;
	pen__buf_le(b, 1, 2);
	pen__buf_le(b, wide_len, 2);
	if (wide) {
		pen__buf_le(b, m->usize, 8);
		pen__buf_le(b, m->csize, 8);
	}
	if (far)
		pen__buf_le(b, m->at, 8);
}

static int put_directory(struct writer *w)
{
	const uint32_t n = w->t->nfields;
	const uint64_t at = w->at;
	const bool far = at > LIMIT32;
	struct pen_buf b = { 0 };
	uint64_t len;

	for (uint32_t i = 0; i < n; i++)
		put_entry(w, &w->m[i], w->t->field[i].name, &b);
	len = b.n;
	if (far) {
		pen__buf_str(&b, "PK\6\6");
		pen__buf_le(&b, 44, 8);
		pen__buf_le(&b, 45, 2);
		pen__buf_le(&b, 45, 2);
		pen__buf_le(&b, 0, 8);
		pen__buf_le(&b, n, 8);
		pen__buf_le(&b, n, 8);
		pen__buf_le(&b, len, 8);
		pen__buf_le(&b, at, 8);
		pen__buf_str(&b, "PK\6\7");
		pen__buf_le(&b, 0, 4);
		pen__buf_le(&b, at + len, 8);
		pen__buf_le(&b, 1, 4);
	}
	pen__buf_str(&b, "PK\5\6");
	pen__buf_le(&b, 0, 4);
	pen__buf_le(&b, n, 2);
	pen__buf_le(&b, n, 2);
	pen__buf_le(&b, len, 4);
	pen__buf_le(&b, far ? UINT32_MAX : at, 4);
	pen__buf_le(&b, 0, 2);
	return put_buf(w, &b);
}

/* Sizes are known before the data; the crc, 14 bytes into the header, is
 * patched after it. */
static int put_patched(struct writer *w, uint32_t i)
{
	struct sum_out sum = { .out.write = sum_write, .to = w->out };
	const struct pen_field *fd = &w->t->field[i];
	struct member *m = &w->m[i];
	uint8_t crc[4];
	int rc;

	m->csize = m->usize = pen__npy_size(w->t, i, w->mode);
	rc = m->usize ? put_local(w, m, fd->name)
		      : pen__fail_nomem(w->err, fd->name, 128);
	if (rc >= 0)
		rc = pen__npy_write(w->t, i, w->mode, &sum.out, w->err);
	if (rc < 0)
		return rc;
	if (sum.n != m->usize)
		return pen__fail(
			w->err, P_CANNOT_WRITE_THIS, fd->name,
			"the size of the data does not match the shape");
	w->at += sum.n;
	m->crc = sum.crc;
	for (unsigned k = 0; k < 4; k++)
		crc[k] = (uint8_t)(sum.crc >> (8 * k));
	return w->out->patch(w->out, m->at + 14, crc, 4, w->err);
}

static int put_stored(struct writer *w, uint32_t i)
{
	struct sum_out sum = { .out.write = sum_write };
	struct member *m = &w->m[i];
	int rc = pen__npy_write(w->t, i, w->mode, &sum.out, w->err);

	if (rc < 0)
		return rc;
	m->crc = sum.crc;
	m->csize = m->usize = sum.n;
	rc = put_local(w, m, w->t->field[i].name);
	if (rc < 0)
		return rc;
	w->at += sum.n;
	return pen__npy_write(w->t, i, w->mode, w->out, w->err);
}

static int put_deflated(struct writer *w, uint32_t i)
{
	struct mem_out mem = { .out.write = mem_write };
	struct member *m = &w->m[i];
	int rc = pen__npy_write(w->t, i, w->mode, &mem.out, w->err);
	uint8_t *packed = NULL;
	size_t cap;

	if (rc < 0)
		goto out;
	cap = pen__deflate_bound(mem.buf.n);
	m->usize = mem.buf.n;
	m->crc = pen__crc32(0, mem.buf.p, mem.buf.n);
	packed = pen__alloc(cap, 1);
	m->csize = packed ? pen__deflate((int)w->p->level, mem.buf.p, mem.buf.n,
					 packed, cap)
			  : 0;
	if (!m->csize) {
		rc = pen__fail_nomem(w->err, "npz", cap);
		goto out;
	}
	rc = put_local(w, m, w->t->field[i].name);
	if (rc >= 0)
		rc = put(w, packed, (size_t)m->csize);
out:
	pen__free(packed);
	pen__buf_fini(&mem.buf);
	return rc;
}

int pen__npz_write(const struct pen_format *f, const struct pen_table *t,
		   struct pen_out *out, struct pen_err *err)
{
	struct writer w = { .p = f->priv, .t = t, .out = out, .err = err };
	int rc;

	if (!t->nfields || t->nfields > PEN_MAX_FIELDS)
		return pen__fail(err, P_CANNOT_WRITE_THIS, "npz",
				 "cannot write %u fields; npz takes 1 to %d",
				 t->nfields, PEN_MAX_FIELDS);
	rc = pen__npy_write_mode(t, w.p->samples, &w.mode, err);
	for (uint32_t i = 0; i < t->nfields && rc >= 0; i++) {
		w.m[i].at = w.at;
		rc = w.p->compress ? put_deflated(&w, i)
		     : out->patch  ? put_patched(&w, i)
				   : put_stored(&w, i);
	}
	return rc < 0 ? rc : put_directory(&w);
}
