/*
 * The zip archive around the tensors, written and read like torch.save() and
 * torch.load() do: stored members, aligned to 64 bytes by an extra field, with
 * checksums after the data (so that a stream can be written). Zip64 where sizes
 * need it. Refuses compressed members and everything format/zip.c refuses.
 */
#include "make/torch_file.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/mem.h"
#include "codec/deflate.h"
#include "format/zip.h"

#define ALIGN 64u
#define WIDE UINT32_MAX		  /* zip64 from here on */
#define NEXTRA 3u		  /* members other than the tensors */
#define CHUNK ((size_t)256 << 10) /* fits in the cache */
#define SMALL_PICKLE ((uint64_t)1 << 20)

struct done { /* a finished member */
	uint64_t at, size;
	uint32_t crc;
};

struct writer {
	struct pen_torch_sink *to;
	uint64_t at; /* in the file */
	struct done *member;
	size_t n;
	uint32_t crc; /* of the current member */
	struct pen_buf head;
};

/* Member i is data.pkl, byteorder, then tensors, then version. */
static void member_name(size_t i, size_t n, char *buf, size_t cap)
{
	if (i == 0)
		snprintf(buf, cap, "archive/data.pkl");
	else if (i == 1)
		snprintf(buf, cap, "archive/byteorder");
	else if (i + 1 == n)
		snprintf(buf, cap, "archive/version");
	else
		snprintf(buf, cap, "archive/data/%zu", i - 2);
}

static int put(struct writer *w, const void *p, size_t n)
{
	const uint8_t *from = p;

	while (n) {
		size_t room;
		uint8_t *to = w->to->room(w->to->arg, &room);

		if (!to)
			return PEN_EIO;
		if (room > n)
			room = n;
		memcpy(to, from, room);
		w->to->put(w->to->arg, room);
		w->at += room;
		from += room;
		n -= room;
	}
	return 0;
}

/* Writes the bytes collected in head. */
static int put_head(struct writer *w)
{
	int rc = w->head.bad ? PEN_ENOMEM : put(w, w->head.p, w->head.n);

	w->head.n = 0;
	return rc;
}

static uint32_t narrow(uint64_t v)
{
	return v < WIDE ? (uint32_t)v : WIDE;
}

static int begin_member(struct writer *w, const char *name, uint64_t size)
{
	struct done *m = &w->member[w->n];
	struct pen_buf *h = &w->head;
	const bool wide = size >= WIDE;
	const size_t fixed = 30 + strlen(name) + (wide ? 20 : 0) + 4;
	const unsigned pad = (unsigned)(-(w->at + fixed) % ALIGN);

	*m = (struct done){ .at = w->at, .size = size };
	w->crc = 0;
	pen__buf_put(h, "PK\3\4", 4);
	pen__buf_le(h, wide ? 45 : 0, 2);
	pen__buf_le(h, size ? 0x808 : 0x800,
		    2); /* empty: no checksum follows */
	pen__buf_le(h, 0, 2);
	pen__buf_le(h, 0, 4); /* no time: equal content gives equal files */
	pen__buf_le(h, 0, 4);
	pen__buf_le(h, wide ? WIDE : 0, 4);
	pen__buf_le(h, wide ? WIDE : 0, 4);
	pen__buf_le(h, strlen(name), 2);
	pen__buf_le(h, (wide ? 20 : 0) + 4 + pad, 2);
	pen__buf_str(h, name);
	if (wide) {
		pen__buf_le(h, 1, 2);
		pen__buf_le(h, 16, 2);
		pen__buf_le(h, size, 8);
		pen__buf_le(h, size, 8);
	}
	pen__buf_put(h, "FB", 2);
	pen__buf_le(h, pad, 2);
	for (unsigned i = 0; i < pad; i++)
		pen__buf_put(h, "Z", 1);
	return put_head(w);
}

static int end_member(struct writer *w)
{
	struct done *m = &w->member[w->n++];
	const unsigned len = m->size < WIDE ? 4 : 8;

	m->crc = w->crc;
	if (!m->size)
		return 0;
	pen__buf_put(&w->head, "PK\7\10", 4);
	pen__buf_le(&w->head, m->crc, 4);
	pen__buf_le(&w->head, m->size, len);
	pen__buf_le(&w->head, m->size, len);
	return put_head(w);
}

static int put_member(struct writer *w, const char *name, const void *p,
		      size_t n)
{
	int rc = begin_member(w, name, n);

	if (rc < 0)
		return rc;
	w->crc = pen__crc32(0, p, n);
	rc = put(w, p, n);
	return rc < 0 ? rc : end_member(w);
}

static int put_tensor(struct writer *w, const char *name, size_t tensor,
		      const struct pen_torch_item *it)
{
	const uint64_t size = it->n * pen__torch_size(it->dtype);
	struct pen_torch_piece x = { .tensor = tensor, .dtype = it->dtype };
	struct pen_torch_sink *to = w->to;
	int rc = begin_member(w, name, size);

	for (; !rc && x.off < size; x.off += x.n) {
		uint8_t *p = to->room(to->arg, &x.n);

		if (!p)
			return PEN_EIO;
		if (x.n > CHUNK)
			x.n = CHUNK;
		if (x.n > size - x.off)
			x.n = (size_t)(size - x.off);
		to->make(to->arg, &x, p);
		w->crc = pen__crc32(w->crc, p, x.n);
		to->put(to->arg, x.n);
		w->at += x.n;
	}
	return rc < 0 ? rc : end_member(w);
}

/* An entry of the directory; values that do not fit go into zip64 fields. */
static void put_entry(struct pen_buf *b, const struct done *m, const char *name)
{
	const bool wide = m->size >= WIDE, far = m->at >= WIDE;
	const unsigned extra = (wide ? 16 : 0) + (far ? 8 : 0);

	pen__buf_put(b, "PK\1\2", 4);
	pen__buf_le(b, extra ? 45 : 0, 2);
	pen__buf_le(b, extra ? 45 : 0, 2);
	pen__buf_le(b, m->size ? 0x808 : 0x800, 2);
	pen__buf_le(b, 0, 2);
	pen__buf_le(b, 0, 4);
	pen__buf_le(b, m->crc, 4);
	pen__buf_le(b, narrow(m->size), 4);
	pen__buf_le(b, narrow(m->size), 4);
	pen__buf_le(b, strlen(name), 2);
	pen__buf_le(b, extra ? extra + 4 : 0, 2);
	pen__buf_le(b, 0, 8); /* comment, disk, both kinds of attributes */
	pen__buf_le(b, 0, 2);
	pen__buf_le(b, narrow(m->at), 4);
	pen__buf_str(b, name);
	if (!extra)
		return;
	pen__buf_le(b, 1, 2);
	pen__buf_le(b, extra, 2);
	if (wide) {
		pen__buf_le(b, m->size, 8);
		pen__buf_le(b, m->size, 8);
	}
	if (far)
		pen__buf_le(b, m->at, 8);
}

static int put_directory(struct writer *w)
{
	struct pen_buf *b = &w->head;
	const uint64_t at = w->at;
	uint64_t len;

	for (size_t i = 0; i < w->n; i++) {
		char name[48];

		member_name(i, w->n, name, sizeof(name));
		put_entry(b, &w->member[i], name);
	}
	len = b->n;
	if (w->n >= UINT16_MAX || at >= WIDE || len >= WIDE) {
		pen__buf_put(b, "PK\6\6", 4);
		pen__buf_le(b, 44, 8);
		pen__buf_le(b, 45, 2);
		pen__buf_le(b, 45, 2);
		pen__buf_le(b, 0, 8);
		pen__buf_le(b, w->n, 8);
		pen__buf_le(b, w->n, 8);
		pen__buf_le(b, len, 8);
		pen__buf_le(b, at, 8);
		pen__buf_put(b, "PK\6\7", 4);
		pen__buf_le(b, 0, 4);
		pen__buf_le(b, at + len, 8);
		pen__buf_le(b, 1, 4);
	}
	pen__buf_put(b, "PK\5\6", 4);
	pen__buf_le(b, 0, 4);
	pen__buf_le(b, w->n < UINT16_MAX ? w->n : UINT16_MAX, 2);
	pen__buf_le(b, w->n < UINT16_MAX ? w->n : UINT16_MAX, 2);
	pen__buf_le(b, narrow(len), 4);
	pen__buf_le(b, narrow(at), 4);
	pen__buf_le(b, 0, 2);
	return put_head(w);
}

static int write_members(struct writer *w, const struct pen_torch_state *s,
			 const struct pen_buf *pickle)
{
	int rc = put_member(w, "archive/data.pkl", pickle->p, pickle->n);
	size_t t = 0;

	if (!rc)
		rc = put_member(w, "archive/byteorder", "little", 6);
	for (size_t i = 0; !rc && i < s->nitems; i++) {
		const struct pen_torch_item *it = &s->item[i];
		char name[48];

		if (it->kind != PEN_TORCH_TENSOR)
			continue;
		member_name(t + 2, s->ntensors + NEXTRA, name, sizeof(name));
		rc = put_tensor(w, name, t++, it);
	}
	if (!rc)
		rc = put_member(w, "archive/version", "3\n", 2);
	return rc ? rc : put_directory(w);
}

int pen__torch_write(const struct pen_torch_state *s, struct pen_torch_sink *to,
		     const char *where, struct pen_err *err)
{
	struct writer w = { .to = to };
	struct pen_buf pickle = { 0 };
	int rc = PEN_ENOMEM;

	w.member = pen__calloc(s->ntensors + NEXTRA, sizeof(*w.member));
	pen__torch_pickle(s, &pickle);
	if (w.member && !pickle.bad)
		rc = write_members(&w, s, &pickle);
	if (rc == PEN_ENOMEM)
		pen__fail_nomem(err, where, s->ntensors * sizeof(*w.member));
	pen__buf_fini(&pickle);
	pen__buf_fini(&w.head);
	pen__free(w.member);
	return rc;
}

/* --- reading --- */

struct held { /* a tensor, unless item is NULL */
	size_t tensor;
	const struct pen_torch_item *item;
};

struct reader {
	const struct pen_torch_state *s;
	struct pen_torch_source *from;
	struct pen_err *err;
	struct pen_zip zip;
	struct held *held; /* per member */
	struct pen_torch_key *key;
	/* the current bytes */
	const uint8_t *p;
	size_t left;
	uint64_t at; /* offset of p in the file */
};

static int fail(struct reader *r, int kind, const char *what)
{
	return pen__fail(r->err, kind, r->from->peek->name, "%s", what);
}

static bool name_ends(const struct pen_zip_member *m, const char *end)
{
	const size_t n = strlen(end);

	return m->name_len > n && !memcmp(m->name + m->name_len - n, end, n);
}

static const struct pen_zip_member *find_pickle(const struct reader *r)
{
	for (size_t i = 0; i < r->zip.n; i++)
		if (name_ends(&r->zip.m[i], "/data.pkl"))
			return &r->zip.m[i];
	return NULL;
}

static int read_pickle(struct reader *r, const struct pen_zip_member *m)
{
	struct pen_peek *pk = r->from->peek;
	uint8_t *p;
	int rc;

	/* a tensor takes about 150 bytes, another name of a dict a dozen */
	if (m->csize > SMALL_PICKLE + 1024 * (uint64_t)r->s->nitems)
		return fail(r, P_DAMAGED,
			    "the pickle is too long for the expected tensors");
	p = pen__alloc((size_t)m->csize, 1);
	if (!p)
		return pen__fail_nomem(r->err, pk->name, (size_t)m->csize);
	rc = pk->read(pk, m->data, p, (size_t)m->csize, r->err);
	if (rc >= 0 && pen__crc32(0, p, (size_t)m->csize) != m->crc)
		rc = fail(r, P_CHECKSUM,
			  "the checksum of data.pkl differs: the file is "
			  "damaged");
	if (rc >= 0)
		rc = pen__torch_unpickle(
			r->s, (struct pen_span){ p, (size_t)m->csize },
			pk->name, r->key, r->err);
	pen__free(p);
	return rc < 0 ? rc : 0;
}

/* Whether it is PREFIX/data/KEY, with the pickle's prefix. */
static bool is_storage(const struct pen_zip_member *m,
		       const struct pen_zip_member *pickle, const char *key)
{
	const size_t prefix = pickle->name_len - strlen("data.pkl");
	const size_t n = strlen(key);

	return m->name_len == prefix + 5 + n &&
	       !memcmp(m->name, pickle->name, prefix) &&
	       !memcmp(m->name + prefix, "data/", 5) &&
	       !memcmp(m->name + prefix + 5, key, n);
}

/* Assigns members to tensors, one each and of the right size. */
static int assign(struct reader *r, const struct pen_zip_member *pickle)
{
	const struct pen_zip_member *m = r->zip.m;
	size_t t = 0, next = 0; /* usually in order: look there first */

	for (size_t i = 0; i < r->s->nitems; i++) {
		const struct pen_torch_item *it = &r->s->item[i];
		size_t tried = 0;

		if (it->kind != PEN_TORCH_TENSOR)
			continue;
		while (tried < r->zip.n &&
		       !is_storage(&m[next], pickle, r->key[t].s)) {
			next = next + 1 < r->zip.n ? next + 1 : 0;
			tried++;
		}
		if (tried == r->zip.n || r->held[next].item)
			return fail(r, P_DAMAGED,
				    "the bytes of a tensor are missing");
		if (m[next].csize != it->n * pen__torch_size(it->dtype))
			return fail(
				r, P_DAMAGED,
				"the size of a tensor differs from the pickle");
		r->held[next] = (struct held){ t++, it };
	}
	return 0;
}

static int open_file(struct reader *r)
{
	const struct pen_zip_member *pickle;
	struct pen_peek *pk = r->from->peek;
	int rc = pen__zip_open(&r->zip, pk, r->err);

	if (rc < 0)
		return rc;
	for (size_t i = 0; i < r->zip.n; i++) {
		rc = pen__zip_usable(&r->zip.m[i], pk->name, r->err);
		if (rc < 0)
			return rc;
		if (r->zip.m[i].method != PEN_ZIP_STORED)
			return pen__fail(r->err, P_UNSUPPORTED_FEATURE,
					 pk->name,
					 "contains a compressed member, which "
					 "torch.save does not write");
	}
	pickle = find_pickle(r);
	if (!pickle)
		return fail(
			r, P_NOT_THIS_FORMAT,
			"no data.pkl; the file was not written by torch.save");
	r->held = pen__calloc(r->zip.n, sizeof(*r->held));
	r->key = pen__calloc(r->s->ntensors + 1, sizeof(*r->key));
	if (!r->held || !r->key)
		return pen__fail_nomem(r->err, pk->name,
				       r->zip.n * sizeof(*r->held));
	rc = read_pickle(r, pickle);
	return rc < 0 ? rc : assign(r, pickle);
}

static int have_bytes(struct reader *r)
{
	if (r->left)
		return 0;
	r->p = r->from->next(r->from->arg, &r->left, r->err);
	return r->p ? 0 : PEN_EIO;
}

static void use(struct reader *r, size_t n)
{
	r->p += n;
	r->left -= n;
	r->at += n;
}

/* Skips the bytes between members. */
static int skip_to(struct reader *r, uint64_t to)
{
	while (r->at < to) {
		const int rc = have_bytes(r);

		if (rc < 0)
			return rc;
		use(r, r->left < to - r->at ? r->left : (size_t)(to - r->at));
	}
	return 0;
}

static int content_error(struct reader *r, size_t good)
{
	return pen__fail(r->err, P_DAMAGED, r->from->peek->name,
			 "byte %" PRIu64
			 " is not what was saved: the file is damaged, or was "
			 "written by another program or with another seed or "
			 "settings (load it with checkpoint.verify=false)",
			 r->at + good);
}

static int read_member(struct reader *r, size_t i)
{
	const struct pen_zip_member *m = &r->zip.m[i];
	const struct pen_torch_source *from = r->from;
	const struct held *held = &r->held[i];
	struct pen_torch_piece x = { .tensor = held->tensor };
	uint32_t crc = 0;
	int rc = skip_to(r, m->data);

	if (held->item)
		x.dtype = held->item->dtype;
	for (; !rc && x.off < m->csize; x.off += x.n) {
		rc = have_bytes(r);
		if (rc < 0)
			return rc;
		x.n = r->left < CHUNK ? r->left : CHUNK;
		if (x.n > m->csize - x.off)
			x.n = (size_t)(m->csize - x.off);
		if (held->item && from->check) {
			const size_t good = from->check(from->arg, &x, r->p);

			if (good < x.n)
				return content_error(r, good);
		}
		crc = pen__crc32(crc, r->p, x.n);
		use(r, x.n);
	}
	if (!rc && crc != m->crc)
		return pen__fail(r->err, P_CHECKSUM, from->peek->name,
				 "the checksum of member %.*s (bytes %" PRIu64
				 " to %" PRIu64
				 ") differs: the file is damaged",
				 (int)(m->name_len < 64 ? m->name_len : 64),
				 m->name, m->data, m->data + m->csize);
	return rc;
}

int pen__torch_read(const struct pen_torch_state *s,
		    struct pen_torch_source *from, struct pen_err *err)
{
	struct pen_err unasked = { 0 };
	struct reader r = { .s = s, .from = from };
	int rc;

	r.err = err ? err : &unasked;
	pen__err_reset(r.err);
	rc = open_file(&r);
	for (size_t i = 0; !rc && i < r.zip.n; i++)
		rc = read_member(&r, i);
	if (!rc)
		rc = skip_to(&r, from->peek->size);
	pen__zip_close(&r.zip);
	pen__free(r.held);
	pen__free(r.key);
	/* the error of next() */
	return rc < 0 && r.err->code < 0 ? r.err->code : rc;
}
