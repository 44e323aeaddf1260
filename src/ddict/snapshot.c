/*
 * A shard in a file: a header, the index, and the records as in memory, in
 * their original order. It is mapped and used in place, read-only, by any
 * number of processes. Header and index are verified whenever the file is
 * opened; records only on request, since that reads all of them; bounds at
 * every use. If the file is truncated while mapped, the call that notices
 * returns an error and there is no signal; values handed out before are not
 * protected.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/guard.h"
#include "base/mem.h"
#include "base/rng.h"
#include "base/stale.h"
#include "base/sync.h"
#include "ddict/seg.h"

#define VERSION 1
#define HEAD 4096
#define PIECES 256 /* per write */

static const char magic[8] = { 'P', 'E', 'N', 'S', 'H', 'A', 'R', 'D' };

struct image {
	char magic[8];
	uint32_t version, head;
	uint32_t shard, nshards;
	uint64_t spread;
	uint64_t size, nbuckets, nkeys, value_bytes, data_at;
	uint64_t table_sum, data_sum;
	uint64_t head_sum; /* of everything above */
};

/* A checksum over multiples of 16 bytes. */
struct sum {
	uint64_t a, b;
};

static uint64_t turn(uint64_t x, uint64_t w)
{
	x ^= w;
	return (x << 29 | x >> 35) * 0x9fb21c651e98df25u;
}

static void sum_add(struct sum *s, const void *p, uint64_t n)
{
	const uint8_t *at = p;
	uint64_t w[2], a = s->a, b = s->b;

	for (; n >= 16; n -= 16, at += 16) {
		memcpy(w, at, 16);
		a = turn(a, w[0]);
		b = turn(b, w[1]);
	}
	s->a = a;
	s->b = b;
}

static uint64_t sum_end(const struct sum *s)
{
	return pen__mix64(s->a ^ pen__mix64(s->b + 0x9e3779b97f4a7c15u));
}

static uint64_t sum_of(const void *p, uint64_t n)
{
	struct sum s = { 1, 2 };

	sum_add(&s, p, n);
	return sum_end(&s);
}

static uint64_t head_sum(const struct image *m)
{
	uint8_t buf[(offsetof(struct image, head_sum) + 15) & ~(size_t)15] = {
		0
	};

	memcpy(buf, m, offsetof(struct image, head_sum));
	return sum_of(buf, sizeof(buf));
}

/* --- files truncated while mapped --- */

static int fail_cut(const struct pen_seg *s, struct pen_err *err)
{
	return pen__fail(err, P_DATA_CHANGED, s->where,
			 "truncated while in use; save the dictionary again "
			 "and reopen it");
}

/*
 * A file truncated within its last page reads as zeros there, without a signal.
 * So one byte is checked after every access: the last of that page that is not
 * zero, or any if all are.
 */
static void find_witness(struct pen_seg *s)
{
	const uint64_t page = (s->size - 1) & ~(uint64_t)4095;

	s->witness = s->size - 1;
	while (s->witness > page && !s->base[s->witness])
		s->witness--;
	s->seen = s->base[s->witness];
}

struct touch {
	const struct pen_seg *s;
	int (*fn)(void *);
	void *arg;
	bool whole;
};

static int touch(void *arg)
{
	struct touch *t = arg;
	int rc = t->fn(t->arg);
	const volatile uint8_t *witness = t->s->base + t->s->witness;

	t->whole = *witness == t->s->seen;
	return rc;
}

int pen__image_touch(const struct pen_seg *s, int (*fn)(void *), void *arg,
		     struct pen_err *err)
{
	struct touch t = { s, fn, arg, false };
	bool lost = false;
	int rc;

	if (s->head)
		return fn(arg);
	rc = pen__guard_run(touch, &t, &lost);
	return lost || !t.whole ? fail_cut(s, err) : rc;
}

uint64_t pen__image_records(const struct pen_seg *s, uint64_t *at,
			    const struct pen_seg_rec **out, uint64_t n)
{
	const struct pen_seg_table *t = pen__table_of(s);
	const uint64_t slots = t->nbuckets * PEN_BUCKET;
	uint64_t k = 0;

	for (; *at < slots && k < n; ++*at) {
		out[k] = pen__slot_rec(s, atomic_load(&t->slot[*at]));
		k += out[k] != NULL;
	}
	return k;
}

/* --- saving --- */

struct out {
	int fd;
	const char *path;
	struct sum sum;
	struct iovec iov[PIECES];
	int n;
};

static int flush(struct out *o, struct pen_err *err)
{
	struct iovec *v = o->iov;

	while (o->n) {
		ssize_t k = writev(o->fd, v, o->n);

		if (k < 0 && errno == EINTR)
			continue;
		if (k < 0)
			return pen__fail_sys(err, errno, o->path,
					     "cannot write the file");
		while (o->n && (size_t)k >= v->iov_len) {
			k -= (ssize_t)v->iov_len;
			v++;
			o->n--;
		}
		if (o->n) {
			v->iov_base = (uint8_t *)v->iov_base + k;
			v->iov_len -= (size_t)k;
		}
	}
	return 0;
}

static int emit(struct out *o, const void *p, uint64_t n, struct pen_err *err)
{
	struct iovec *last = o->n ? &o->iov[o->n - 1] : NULL;
	int rc;

	sum_add(&o->sum, p, n);
	if (last && (uint8_t *)last->iov_base + last->iov_len == p) {
		last->iov_len += n;
		return 0;
	}
	if (o->n == PIECES) {
		rc = flush(o, err);
		if (rc)
			return rc;
	}
	o->iov[o->n++] = (struct iovec){ (void *)(uintptr_t)p, n };
	return 0;
}

static int by_place(const void *a, const void *b)
{
	const struct pen_seg_rec *const *x = a, *const *y = b;

	return (*x > *y) - (*x < *y);
}

/* A shard being saved. The caller frees its memory, since access to a saved
 * shard may be aborted at any point. */
struct body {
	struct pen_seg *s;
	struct out *o;
	struct image *m;
	const struct pen_seg_rec **r; /* in order of their offsets */
	uint64_t n;
	struct pen_seg_table *t; /* with their offsets in the file */
	struct pen_err *err;
};

static bool list(struct body *b)
{
	const struct pen_seg *s = b->s;
	const uint64_t most = s->head ? atomic_load(&s->head->nkeys) : s->nkeys;
	uint64_t at = 0;

	b->r = pen__alloc(most + 1, sizeof(*b->r));
	if (!b->r)
		return false;
	b->n = pen__image_records(s, &at, b->r, most);
	qsort(b->r, b->n, sizeof(*b->r), by_place);
	return true;
}

static int write_records(struct out *o, const struct pen_seg_rec **r,
			 uint64_t n, struct pen_err *err)
{
	int rc = 0;

	for (uint64_t i = 0; i < n && !rc; i++)
		rc = emit(o, r[i], pen__rec_size(r[i]), err);
	return rc ? rc : flush(o, err);
}

/* Builds the index, and sets sizes and checksums in the header. */
static bool make_index(struct body *b)
{
	struct image *m = b->m;
	uint64_t at;

	m->nkeys = b->n;
	m->nbuckets = pen__table_buckets(b->n);
	at = m->data_at = HEAD + pen__table_bytes(m->nbuckets);
	b->t = pen__calloc(pen__table_bytes(m->nbuckets), 1);
	if (!b->t)
		return false;
	b->t->nbuckets = m->nbuckets;
	for (uint64_t i = 0; i < b->n; i++) {
		const uint64_t hash = pen__key_hash(pen__rec_key(b->r[i]));

		pen__table_insert(b->t, pen__slot_make(at, hash), hash);
		at += pen__rec_size(b->r[i]);
		m->value_bytes += pen__rec_value(b->r[i]).len;
	}
	m->size = at;
	m->table_sum = sum_of(b->t, pen__table_bytes(m->nbuckets));
	return true;
}

/* Writes the file except its header, which comes last. */
static int write_body(void *arg)
{
	struct body *b = arg;
	struct out *o = b->o;
	int rc;

	if (!list(b) || !make_index(b))
		return pen__fail_nomem(b->err, o->path, b->n * 8);
	rc = emit(o, b->t, pen__table_bytes(b->m->nbuckets), b->err);
	if (!rc)
		rc = flush(o, b->err);
	o->sum = (struct sum){ 1, 2 };
	if (!rc)
		rc = write_records(o, b->r, b->n, b->err);
	b->m->data_sum = sum_end(&o->sum);
	return rc;
}

static int write_file(struct pen_seg *s, struct out *o, struct image *m,
		      struct pen_err *err)
{
	struct body b = { .s = s, .o = o, .m = m, .err = err };
	ssize_t n;
	int rc;

	if (lseek(o->fd, HEAD, SEEK_SET) != HEAD)
		return pen__fail_sys(err, errno, o->path,
				     "cannot seek in the file");
	rc = s->head ? pen__seg_lock(s, err) : 0;
	if (rc)
		return rc;
	rc = pen__image_touch(s, write_body, &b, err);
	if (s->head)
		pen__seg_unlock(s);
	pen__free(b.t);
	pen__free(b.r);
	if (rc)
		return rc;
	m->head_sum = head_sum(m);
	n = pwrite(o->fd, m, sizeof(*m), 0);
	if (n < 0 || fsync(o->fd))
		return pen__fail_sys(err, errno, o->path,
				     "cannot write the file");
	return n == sizeof(*m) ? 0
			       : pen__fail_sys(err, ENOSPC, o->path,
					       "cannot write the file");
}

int pen__image_save(struct pen_seg *s, const char *path,
		    struct pen_snapshot about, struct pen_err *err)
{
	struct image m = { .version = VERSION,
			   .head = HEAD,
			   .shard = about.shard,
			   .nshards = about.nshards,
			   .spread = about.spread };
	struct out *o;
	char tmp[PATH_MAX];
	int rc, sys;

	memcpy(m.magic, magic, sizeof(magic));
	if (snprintf(tmp, sizeof(tmp), "%s.%d.tmp", path, (int)getpid()) >=
	    (int)sizeof(tmp))
		return pen__fail(err, P_TOO_LONG, path, "the path is too long");
	pen__stale_remove(path);
	o = pen__calloc(1, sizeof(*o));
	if (!o)
		return pen__fail_nomem(err, path, sizeof(*o));
	o->path = path;
	o->fd = open(tmp, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
	if (o->fd < 0) {
		rc = pen__fail_sys(err, errno, path, "cannot create the file");
		pen__free(o);
		return rc;
	}
	rc = write_file(s, o, &m, err);
	if (close(o->fd) && !rc)
		rc = pen__fail_sys(err, errno, path, "cannot write the file");
	if (!rc && rename(tmp, path))
		rc = pen__fail_sys(err, errno, path,
				   "cannot rename the temporary file");
	if (rc)
		unlink(tmp);
	sys = rc ? 0 : pen__sync_parent(path);
	if (sys)
		rc = pen__fail_sys(err, sys, path,
				   "written, but its name may be lost in a "
				   "crash: cannot sync the directory");
	pen__free(o);
	return rc;
}

/* --- opening --- */

static int damaged(struct pen_err *err, int kind, const char *where,
		   const char *what)
{
	return pen__fail(err, kind, where,
			 "damaged: %s; save the dictionary again", what);
}

static int check_head(const struct image *m, uint64_t size, const char *where,
		      struct pen_err *err)
{
	uint64_t table;

	if (memcmp(m->magic, magic, sizeof(magic)))
		return pen__fail(err, P_NOT_THIS_FORMAT, where,
				 "not a saved dictionary");
	if (m->version != VERSION)
		return pen__fail(
			err, P_UNSUPPORTED_FEATURE, where,
			"format version %u; this penstock reads version %u",
			m->version, VERSION);
	if (m->head_sum != head_sum(m))
		return damaged(err, P_CHECKSUM, where,
			       "the header does not match its checksum");
	if (m->size != size)
		return damaged(err, size < m->size ? P_TRUNCATED : P_DAMAGED,
			       where,
			       "the file size does not match the header");
	table = m->nbuckets < size / 64 ? pen__table_bytes(m->nbuckets) : size;
	if (!m->nbuckets || m->head != HEAD || m->data_at != HEAD + table ||
	    m->data_at > size || m->nkeys > m->nbuckets * PEN_BUCKET ||
	    !m->nshards || m->shard >= m->nshards)
		return damaged(err, P_DAMAGED, where,
			       "the header is inconsistent");
	return 0;
}

static int check_body(struct pen_seg *s, const struct image *m,
		      const char *where, bool verify, struct pen_err *err)
{
	const struct pen_seg_table *t = (const void *)(s->base + HEAD);

	if (t->nbuckets != m->nbuckets ||
	    sum_of(t, pen__table_bytes(m->nbuckets)) != m->table_sum)
		return damaged(err, P_CHECKSUM, where,
			       "the index does not match its checksum");
	if (verify &&
	    sum_of(s->base + m->data_at, m->size - m->data_at) != m->data_sum)
		return damaged(err, P_CHECKSUM, where,
			       "the values do not match their checksum");
	s->table = t;
	s->nkeys = m->nkeys;
	s->value_bytes = m->value_bytes;
	return 0;
}

struct opening {
	struct pen_seg *s;
	const char *where;
	bool verify;
	struct pen_snapshot about;
	struct pen_err *err;
};

static int check_all(void *arg)
{
	struct opening *o = arg;
	const struct image *m = (const void *)o->s->base;
	int rc = check_head(m, o->s->size, o->where, o->err);

	if (!rc)
		rc = check_body(o->s, m, o->where, o->verify, o->err);
	o->about = (struct pen_snapshot){ m->shard, m->nshards, m->spread };
	find_witness(o->s);
	return rc;
}

int pen__image_map(struct pen_seg *s, const char *where, bool verify,
		   struct pen_snapshot *about, struct pen_err *err)
{
	struct opening o = { s, where, verify, { 0 }, err };
	const size_t n = strlen(where);
	void *p;
	int rc;

	/* the end of a path is the most informative */
	snprintf(s->where, sizeof(s->where), "%s",
		 where + (n < sizeof(s->where) ? 0 : n - sizeof(s->where) + 1));
	pen__guard_install();
	if (s->size < HEAD)
		return pen__fail(err, P_NOT_THIS_FORMAT, where,
				 "not a saved dictionary");
	p = mmap(NULL, s->size, PROT_READ, MAP_SHARED, s->fd, 0);
	if (p == MAP_FAILED)
		return pen__fail_sys(err, errno, where, "cannot map the file");
	s->base = p;
	rc = pen__image_touch(s, check_all, &o, err);
	if (!rc && about)
		*about = o.about;
	return rc;
}

int pen__image_open(struct pen_seg **out, const char *path, bool verify,
		    struct pen_snapshot *about, struct pen_err *err)
{
	struct pen_seg *s = pen__calloc(1, sizeof(*s));
	struct stat st;
	int rc;

	if (!s)
		return pen__fail_nomem(err, path, sizeof(*s));
	s->fd = open(path, O_RDONLY | O_CLOEXEC);
	if (s->fd < 0 || fstat(s->fd, &st)) {
		rc = pen__fail_sys(err, errno, path, "cannot open the file");
		goto fail;
	}
	if (!S_ISREG(st.st_mode)) {
		rc = pen__fail(err, P_NOT_THIS_FORMAT, path,
			       "not a regular file");
		goto fail;
	}
	s->size = (uint64_t)st.st_size;
	rc = pen__image_map(s, path, verify, about, err);
	if (rc)
		goto fail;
	*out = s;
	return 0;
fail:
	pen__seg_close(s);
	return rc;
}
