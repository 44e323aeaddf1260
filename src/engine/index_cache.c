/*
 * The index on disk: one file with arrays as they are in memory, mapped
 * read-only and used in place, so that a million objects open in milliseconds.
 *
 * A wrong index gives wrong data, so the file is trusted only if everything
 * matches: key (paths, format, options), version, both checksums, the bounds of
 * all offsets, and the inode and time of every directory. Files changed in
 * place do not touch their directory; up to STAT_ALL objects are compared one
 * by one, beyond that a sample of them, and the store compares size and time of
 * each object again when it opens it. A directory changed less than RACY_NS
 * before it was indexed could change again without its time moving, so such an
 * index is not trusted either.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/rng.h"
#include "base/stale.h"
#include "base/text.h"
#include "codec/deflate.h"
#include "engine/index.h"
#include "engine/spec.h"

#define STAT_ALL 4096
#define RACY_NS 20000000 /* coarser than any kernel's file times */
/* A process suspended while it builds must not block all others. */
#define LOCK_WAIT_NS UINT64_C(60000000000)
#define LOCK_NAP_NS 2000000

/* Incremented when the contents change, including the blobs of formats. */
#define VERSION 10

static const char magic[8] = { 'P', 'E', 'N', 'I', 'D', 'X', '1', '\n' };

struct header {
	char magic[8];
	uint32_t version, header_size;
	uint64_t key_a, key_b;
	int64_t listed_ns;
	uint64_t ndir, nobj, nnames, nblobs, nblob_bytes, nfirst;
	uint64_t per_object, nsamples, total_bytes, order;
	char format[32]; /* so that no name has to be checked again */
	uint32_t body_crc, header_crc; /* header_crc is last: over all before */
};

/* Sections in file order, each 8-byte aligned. */
struct sections {
	size_t dir, obj, blob_off, first, names, blobs, end;
};

static bool place(size_t *at, size_t *where, uint64_t n, size_t size)
{
	size_t bytes;

	*where = *at;
	return pen__mul(n, size, &bytes) && pen__add(*at, bytes, at) &&
	       pen__add(*at, 7, at) && (*at &= ~(size_t)7, true);
}

static bool lay_out(const struct header *h, struct sections *s)
{
	size_t at = (sizeof(*h) + 7) & ~(size_t)7;

	if (h->nblobs == UINT64_MAX)
		return false;
	return place(&at, &s->dir, h->ndir, sizeof(struct pen_dir)) &&
	       place(&at, &s->obj, h->nobj, sizeof(struct pen_object)) &&
	       place(&at, &s->blob_off, h->nblobs + 1, 8) &&
	       place(&at, &s->first, h->nfirst, 8) &&
	       place(&at, &s->names, h->nnames, 1) &&
	       place(&at, &s->blobs, h->nblob_bytes, 1) && (s->end = at, true);
}

static uint32_t header_crc(const struct header *h)
{
	return pen__crc32(0, h, offsetof(struct header, header_crc));
}

void pen__index_key_add(struct pen_index_key *k, const char *text)
{
	uint64_t n = strlen(text) + 1; /* NUL: "a","b" differs from "ab" */

	for (uint64_t i = 0; i < n; i++) {
		k->a = pen__mix64(k->a ^ (uint8_t)text[i]);
		k->b = pen__mix64(k->b + (uint8_t)text[i] + 1) * 31;
	}
}

bool pen__index_key_of(struct pen_index_key *key, const struct pen_spec *s,
		       bool lasting)
{
	*key = (struct pen_index_key){ 1, 2 };
	/* a build with other formats may select other files */
	for (unsigned i = 0; pen__format_at(i); i++)
		pen__index_key_add(key, pen__format_at(i)->name);
	for (size_t i = 0; i < s->for_decode.n; i++) {
		pen__index_key_add(key, s->for_decode.kv[i].key);
		pen__index_key_add(key, s->for_decode.kv[i].value);
	}
	pen__index_key_add(key, s->format ? s->format : "");
	if (s->fields)
		pen__index_key_add(key, s->fields);
	if (s->fields && s->labels) { /* one of them may be the label */
		pen__index_key_add(key, s->labels);
		pen__index_key_add(key, s->label_name ? s->label_name : "");
	}
	for (size_t i = 0; i < s->for_format.n; i++) {
		pen__index_key_add(key, s->for_format.kv[i].key);
		pen__index_key_add(key, s->for_format.kv[i].value);
	}
	for (size_t i = 0; i < s->npaths; i++) {
		char *real = NULL;

		/* a glob or a list can match other files later */
		if (lasting && s->paths[i][0] != '@')
			real = realpath(s->paths[i], NULL);
		if (lasting && !real)
			return false;
		/* the spelling matters too: object names start with it */
		if (real)
			pen__index_key_add(key, real);
		pen__index_key_add(key, s->paths[i]);
		pen__free(real);
	}
	return true;
}

static void empty(struct pen_kept_index *k)
{
	pen__objects_fini(&k->objs);
	pen__index_fini(&k->ix);
	k->full = false;
}

/* Lends all arrays; the borrower frees nothing. */
static void lend(const struct pen_kept_index *k, struct pen_index_data *ix,
		 struct pen_objects *objs)
{
	*objs = k->objs;
	objs->borrowed = true;
	*ix = k->ix;
	ix->objs = objs;
	ix->borrowed = true;
}

int pen__kept_load(struct pen_kept_index *k, const struct pen_spec *s,
		   struct pen_index_data *ix, struct pen_objects *objs)
{
	struct pen_index_key key;

	pen__index_key_of(&key, s, false);
	pen__index_key_add(&key, s->store);
	for (size_t i = 0; i < s->for_store.n; i++) {
		pen__index_key_add(&key, s->for_store.kv[i].key);
		pen__index_key_add(&key, s->for_store.kv[i].value);
	}
	if (k->full && key.a == k->key.a && key.b == k->key.b) {
		lend(k, ix, objs);
		return 0;
	}
	empty(k);
	k->key = key;
	return PEN_ENOTFOUND;
}

void pen__kept_save(struct pen_kept_index *k, struct pen_index_data *ix,
		    struct pen_objects *objs)
{
	if (k->full || ix->nbad)
		return;
	k->objs = *objs;
	k->ix = *ix;
	k->ix.objs = &k->objs;
	k->full = true;
	lend(k, ix, objs);
}

PEN_API int pen_kept_index_new(struct pen_kept_index **out, struct pen_err *err)
{
	*out = pen__calloc(1, sizeof(**out));
	return *out ? 0 : pen__fail_nomem(err, "index", sizeof(**out));
}

PEN_API void pen_kept_index_free(struct pen_kept_index *k)
{
	if (!k)
		return;
	empty(k);
	pen__free(k);
}

bool pen__cache_default_dir(char *buf, size_t cap)
{
	const char *xdg = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
	int n = -1;

	if (xdg && *xdg == '/')
		n = snprintf(buf, cap, "%s/penstock", xdg);
	else if (home && *home == '/')
		n = snprintf(buf, cap, "%s/.cache/penstock", home);
	return n > 0 && (size_t)n < cap;
}

static bool cache_path(char *buf, size_t cap, const char *dir,
		       const struct pen_index_key *k)
{
	int n = snprintf(buf, cap, "%s/%016llx%016llx.idx", dir,
			 (unsigned long long)k->a, (unsigned long long)k->b);

	return n > 0 && (size_t)n < cap;
}

void pen__cache_drop(const char *dir, const struct pen_index_key *key)
{
	char path[4096];

	if (cache_path(path, sizeof(path), dir, key))
		unlink(path);
}

static bool lock_path(char *buf, size_t cap, const char *dir,
		      const struct pen_index_key *k)
{
	char path[4096];
	int n = -1;

	if (cache_path(path, sizeof(path), dir, k))
		n = snprintf(buf, cap, "%s.lock", path);
	return n > 0 && (size_t)n < cap;
}

int pen__cache_lock(const char *dir, const struct pen_index_key *key,
		    const struct pen_stop *stop, bool *waited)
{
	const struct timespec nap = { .tv_nsec = LOCK_NAP_NS };
	const uint64_t until = pen__now_ns() + LOCK_WAIT_NS;
	char path[4096 + 8];
	int fd;

	*waited = false;
	if (!lock_path(path, sizeof(path), dir, key) ||
	    pen__make_dirs(dir, 0700, false, NULL))
		return -1;
	fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0)
		return -1;
	while (flock(fd, LOCK_EX | LOCK_NB)) {
		if (errno != EWOULDBLOCK || pen__now_ns() > until ||
		    pen__stopped(stop)) {
			close(fd);
			return -1;
		}
		*waited = true;
		nanosleep(&nap, NULL);
	}
	return fd;
}

void pen__cache_unlock(int lock, const char *dir,
		       const struct pen_index_key *key)
{
	char path[4096 + 8];

	if (lock < 0)
		return;
	/* waiting processes have it open; later ones find the index */
	if (lock_path(path, sizeof(path), dir, key))
		unlink(path);
	close(lock);
}

static void *map_file(const char *path, size_t *len)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct stat sb;
	void *p = NULL;

	if (fd < 0)
		return NULL;
	if (fstat(fd, &sb) == 0 && S_ISREG(sb.st_mode) &&
	    (size_t)sb.st_size >= sizeof(struct header)) {
		*len = (size_t)sb.st_size;
		p = mmap(NULL, *len, PROT_READ, MAP_PRIVATE | MAP_POPULATE, fd,
			 0);
		if (p == MAP_FAILED)
			p = NULL;
	}
	close(fd);
	return p;
}

static bool header_ok(const struct header *h, size_t len,
		      const struct pen_index_key *key, struct sections *s)
{
	return memcmp(h->magic, magic, 8) == 0 && h->version == VERSION &&
	       h->header_size == sizeof(*h) && h->header_crc == header_crc(h) &&
	       h->key_a == key->a && h->key_b == key->b && lay_out(h, s) &&
	       s->end == len && h->nobj < UINT32_MAX &&
	       h->nblobs <= 2 * h->nobj + 1 &&
	       (h->per_object ? h->nfirst == 0 : h->nfirst == h->nobj + 1) &&
	       h->nnames > 0 && memchr(h->format, '\0', sizeof(h->format));
}

/* Rejects offsets that lead out of the arrays, whatever the checksum. */
static bool body_ok(const struct pen_objects *o, const uint64_t *blob_off,
		    const uint64_t *first, const struct header *h)
{
	uint64_t sum = 0;

	if (o->names[o->nnames - 1] != '\0')
		return false;
	for (uint64_t i = 0; i < o->ndir; i++)
		if (o->dir[i].name >= o->nnames)
			return false;
	for (uint64_t i = 0; i < o->nobj; i++) {
		if (o->obj[i].name >= o->nnames || o->obj[i].dir >= o->ndir ||
		    o->obj[i].blob >= h->nblobs)
			return false;
		sum += o->obj[i].size;
	}
	if (sum != h->total_bytes || blob_off[0] != 0 ||
	    blob_off[h->nblobs] != h->nblob_bytes)
		return false;
	for (uint64_t i = 0; i < h->nblobs; i++)
		if (blob_off[i] > blob_off[i + 1])
			return false;
	if (!first) {
		uint64_t n;

		return !__builtin_mul_overflow(h->per_object, h->nobj, &n) &&
		       n == h->nsamples;
	}
	for (uint64_t i = 0; i < h->nobj; i++)
		if (first[i] > first[i + 1])
			return false;
	return first[0] == 0 && first[h->nobj] == h->nsamples;
}

static int64_t ns_of(const struct timespec *t)
{
	return (int64_t)t->tv_sec * 1000000000 + t->tv_nsec;
}

static bool dirs_unchanged(const struct pen_objects *o, int64_t listed_ns)
{
	for (uint64_t i = 0; i < o->ndir; i++) {
		const char *path = o->names + o->dir[i].name;
		struct stat sb;

		if (stat(*path ? path : ".", &sb) ||
		    sb.st_ino != o->dir[i].ino ||
		    ns_of(&sb.st_mtim) != o->dir[i].mtime_ns ||
		    o->dir[i].mtime_ns + RACY_NS >= listed_ns)
			return false;
	}
	return true;
}

static bool objects_unchanged(const struct pen_objects *o)
{
	uint64_t step = o->nobj > STAT_ALL ? o->nobj / (STAT_ALL / 4) : 1;

	for (uint64_t i = 0; i < o->nobj; i += step) {
		char path[4096];
		struct stat sb;

		if (!pen__object_path(o, (uint32_t)i, path, sizeof(path)) ||
		    stat(path, &sb) || (uint64_t)sb.st_size != o->obj[i].size ||
		    ns_of(&sb.st_mtim) != o->obj[i].mtime_ns)
			return false;
	}
	return true;
}

/* The map is read-only; the pointers are not const only because a built index
 * owns its arrays through the same members. */
static void *at(void *map, size_t off)
{
	return (char *)map + off;
}

int pen__cache_load(struct pen_index_data *ix, struct pen_objects *objs,
		    const char *dir, const struct pen_index_key *key)
{
	const struct header *h;
	struct sections s;
	char path[4096];
	size_t len = 0, head;
	void *map;

	if (!cache_path(path, sizeof(path), dir, key))
		return PEN_ENOTFOUND;
	map = map_file(path, &len);
	if (!map)
		return PEN_ENOTFOUND;
	h = map;
	head = sizeof(*h);
	if (!header_ok(h, len, key, &s) ||
	    pen__crc32(0, (char *)map + head, len - head) != h->body_crc)
		goto no;
	*objs = (struct pen_objects){
		.obj = at(map, s.obj),
		.dir = at(map, s.dir),
		.names = at(map, s.names),
		.nobj = h->nobj,
		.ndir = h->ndir,
		.nnames = h->nnames,
		.total_bytes = h->total_bytes,
		.order = h->order,
		.borrowed = true,
	};
	*ix = (struct pen_index_data){
		.objs = objs,
		.blob_off = at(map, s.blob_off),
		.blobs = at(map, s.blobs),
		.map = map,
		.map_len = len,
		.first = h->nfirst ? at(map, s.first) : NULL,
		.from_cache = true,
		.of = pen__format_find(h->format),
		.pub = { .nobjects = h->nobj,
			 .nsamples = h->nsamples,
			 .nblobs = h->nblobs,
			 .per_object = h->per_object },
	};
	if (!ix->of || !body_ok(objs, ix->blob_off, ix->first, h) ||
	    !dirs_unchanged(objs, h->listed_ns) || !objects_unchanged(objs))
		goto no;
	pen__index_publish(ix);
	return 0;
no:
	munmap(map, len);
	*objs = (struct pen_objects){ 0 };
	*ix = (struct pen_index_data){ 0 };
	return PEN_ENOTFOUND;
}

void pen__index_fini(struct pen_index_data *ix)
{
	if (ix->borrowed) {
		*ix = (struct pen_index_data){ 0 };
		return;
	}
	if (ix->map) {
		munmap(ix->map, ix->map_len);
	} else {
		pen__free(ix->first);
		pen__free(ix->blob_off);
		pen__free(ix->blobs);
	}
	pen__free(ix->bad);
	*ix = (struct pen_index_data){ 0 };
}

struct piece {
	const void *p;
	size_t at, n;
};

/* Writes all pieces with their padding to fd, and computes the checksum of
 * everything after the header. */
static bool write_pieces(int fd, const struct piece *piece, size_t n,
			 size_t end, uint32_t *crc)
{
	static const char zero[8];
	size_t pos = sizeof(struct header);

	*crc = 0;
	for (size_t i = 0; i <= n; i++) {
		size_t pad = (i < n ? piece[i].at : end) - pos;

		*crc = pen__crc32(*crc, zero, pad);
		if (pwrite(fd, zero, pad, (off_t)pos) != (ssize_t)pad)
			return false;
		pos += pad;
		for (size_t done = 0; i < n && done < piece[i].n;) {
			const char *p = (const char *)piece[i].p + done;
			ssize_t w =
				pwrite(fd, p, piece[i].n - done, (off_t)pos);

			if (w <= 0)
				return false;
			*crc = pen__crc32(*crc, p, (size_t)w);
			done += (size_t)w;
			pos += (size_t)w;
		}
	}
	return true;
}

static void fill_header(struct header *h, const struct pen_index_data *ix,
			const struct pen_index_key *key)
{
	*h = (struct header){
		.version = VERSION,
		.header_size = sizeof(*h),
		.key_a = key->a,
		.key_b = key->b,
		.listed_ns = ix->listed_ns,
		.ndir = ix->objs->ndir,
		.nobj = ix->objs->nobj,
		.nnames = ix->objs->nnames,
		.nblobs = ix->pub.nblobs,
		.nblob_bytes = ix->blob_off[ix->pub.nblobs],
		.nfirst = ix->first ? ix->objs->nobj + 1 : 0,
		.per_object = ix->pub.per_object,
		.nsamples = ix->pub.nsamples,
		.total_bytes = ix->objs->total_bytes,
		.order = ix->objs->order,
	};
	memcpy(h->magic, magic, 8);
	snprintf(h->format, sizeof(h->format), "%s", ix->of->name);
}

int pen__cache_save(const struct pen_index_data *ix, const char *dir,
		    const struct pen_index_key *key, struct pen_err *err)
{
	const struct pen_objects *o = ix->objs;
	char path[4096], tmp[4096 + 32];
	struct sections s;
	struct header h;
	uint32_t crc;
	int fd;

	fill_header(&h, ix, key);
	if (!cache_path(path, sizeof(path), dir, key) || !lay_out(&h, &s))
		return pen__fail(err, P_TOO_LONG, dir, "the path is too long");
	if (pen__make_dirs(dir, 0700, false, err))
		return PEN_EIO;
	snprintf(tmp, sizeof(tmp), "%s/", dir);
	pen__stale_remove(tmp);
	/* several threads of a process may save the same index */
	snprintf(tmp, sizeof(tmp), "%s.%ld-XXXXXX.tmp", path, (long)getpid());
	fd = mkostemps(tmp, 4, O_CLOEXEC);
	if (fd < 0)
		return pen__fail_sys(err, errno, tmp, "cannot write the index");
	struct piece piece[] = {
		{ o->dir, s.dir, o->ndir * sizeof(*o->dir) },
		{ o->obj, s.obj, o->nobj * sizeof(*o->obj) },
		{ ix->blob_off, s.blob_off, (h.nblobs + 1) * 8 },
		{ ix->first, s.first, h.nfirst * 8 },
		{ o->names, s.names, o->nnames },
		{ ix->blobs, s.blobs, h.nblob_bytes },
	};
	if (!write_pieces(fd, piece, sizeof(piece) / sizeof(*piece), s.end,
			  &crc))
		goto fail;
	h.body_crc = crc;
	h.header_crc = header_crc(&h);
	if (pwrite(fd, &h, sizeof(h), 0) != sizeof(h))
		goto fail;
	if (close(fd))
		goto fail_closed;
	if (rename(tmp, path) == 0)
		return 0;
	goto fail_closed;
fail:
	close(fd);
fail_closed:
	unlink(tmp);
	return pen__fail_sys(err, errno, path, "cannot write the index");
}
