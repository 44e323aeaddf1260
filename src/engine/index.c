/*
 * Builds an index. Threads take runs of objects from a shared counter, ask the
 * format about each, and intern the blobs it returns in tables of their own,
 * because a million similar files have one blob and must not contend for it.
 * The tables are then joined in object order, so that the result does not
 * depend on which thread did what.
 */
#include "engine/index.h"

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "base/rng.h"
#include "base/team.h"

#define MOST_RUN 64 /* objects a thread takes at a time */
#define PEEK 4096
#define NO_BLOB UINT32_MAX /* of an object that could not be indexed */

/* Interned byte strings: id -> bytes, and back by hash. */
struct intern {
	struct pen_buf bytes;
	uint64_t *off; /* n + 1 */
	uint32_t n, cap;
	uint32_t *slot; /* id + 1, or 0 */
	uint32_t nslots;
};

static void intern_fini(struct intern *t)
{
	pen__buf_fini(&t->bytes);
	pen__free(t->off);
	pen__free(t->slot);
}

static uint64_t hash_bytes(const uint8_t *p, size_t n)
{
	uint64_t h = n;

	for (; n >= 8; n -= 8, p += 8) {
		uint64_t v;

		memcpy(&v, p, 8);
		h = pen__mix64(h ^ v) + 0x9e3779b97f4a7c15u;
	}
	for (; n; n--)
		h = pen__mix64(h ^ *p++);
	return h;
}

static bool intern_grow(struct intern *t)
{
	uint32_t cap = t->cap ? t->cap * 2 : 16, nslots = cap * 2;
	uint64_t *off = pen__realloc(t->off, (size_t)cap + 1, sizeof(*off));
	uint32_t *slot;

	if (!off)
		return false;
	t->off = off;
	if (!t->n)
		off[0] = 0;
	slot = pen__calloc(nslots, sizeof(*slot));
	if (!slot)
		return false;
	pen__free(t->slot);
	t->slot = slot;
	t->nslots = nslots;
	t->cap = cap;
	for (uint32_t id = 0; id < t->n; id++) {
		uint64_t h =
			hash_bytes(t->bytes.p + off[id], off[id + 1] - off[id]);

		while (slot[h & (nslots - 1)])
			h++;
		slot[h & (nslots - 1)] = id + 1;
	}
	return true;
}

/* The id of these bytes; false when memory is short. */
static bool intern_add(struct intern *t, const uint8_t *p, size_t n,
		       uint32_t *id)
{
	uint64_t h = hash_bytes(p, n);

	if (t->n == t->cap && !intern_grow(t))
		return false;
	for (;; h++) {
		uint32_t *s = &t->slot[h & (t->nslots - 1)];

		if (!*s) {
			pen__buf_put(&t->bytes, p, n);
			if (t->bytes.bad)
				return false;
			*id = t->n++;
			t->off[t->n] = t->bytes.n;
			*s = t->n;
			return true;
		}
		*id = *s - 1;
		if (t->off[*s] - t->off[*id] == n &&
		    (n == 0 || memcmp(t->bytes.p + t->off[*id], p, n) == 0))
			return true;
	}
}

struct part { /* one thread's */
	struct intern blobs;
	struct pen_bad_object *bad;
	size_t nbad, bad_cap;
	uint32_t fail_at; /* first object that failed, or UINT32_MAX */
	struct pen_err err;
};

/* Objects by path, for formats whose objects refer to one another. */
struct by_path {
	uint32_t *slot; /* object + 1, or 0 */
	uint64_t mask;	/* slots - 1 */
};

struct build {
	struct pen_objects *objs;
	struct by_path paths;
	struct pen_store *st;
	const struct pen_format *f;
	bool keep_bad;
	atomic_uint_fast64_t next;
	atomic_uint_fast64_t stop_at; /* objects from here on are ignored */
	uint64_t *nsamples;
	uint64_t run;	 /* objects per run */
	uint16_t *owner; /* per run: the part that indexed it */
	struct part *part;
	unsigned nparts;
	struct pen_stop stop;
};

static uint64_t path_slot(const struct by_path *t, const char *path)
{
	return hash_bytes((const uint8_t *)path, strlen(path)) & t->mask;
}

static bool paths_init(struct by_path *t, const struct pen_objects *objs)
{
	char path[4096];
	uint64_t n = 16;

	while (n < objs->nobj * 2)
		n *= 2;
	t->slot = pen__calloc(n, sizeof(*t->slot));
	t->mask = n - 1;
	for (uint64_t i = 0; t->slot && i < objs->nobj; i++) {
		uint64_t at;

		if (!pen__object_path(objs, (uint32_t)i, path, sizeof(path)))
			continue; /* cannot be opened either */
		at = path_slot(t, path);
		while (t->slot[at])
			at = (at + 1) & t->mask;
		t->slot[at] = (uint32_t)i + 1;
	}
	return t->slot != NULL;
}

/* Serves index() from a window over the object, so that a header parsed in
 * small steps costs one read. */
struct peek {
	struct pen_peek pub;
	const struct build *b;
	struct pen_queue *q;
	uint32_t object;
	uint64_t win_off;
	size_t win_len;
	uint8_t win[PEEK];
};

static int peek_read(struct pen_peek *pub, uint64_t off, void *buf, size_t len,
		     struct pen_err *err)
{
	struct peek *pk = (struct peek *)pub;
	uint64_t n;
	int rc;

	if (off > pub->size || len > pub->size - off)
		return pen__fail(err, P_TRUNCATED, pub->name,
				 "truncated or damaged: %zu bytes are needed "
				 "at offset %llu, but it has only %llu",
				 len, (unsigned long long)off,
				 (unsigned long long)pub->size);
	if (len > PEEK)
		return pen__queue_read(pk->q, pk->object, off, buf, len, err);
	if (off < pk->win_off || off + len > pk->win_off + pk->win_len) {
		n = pub->size - off;
		if (n > PEEK)
			n = PEEK;
		pk->win_len = 0;
		rc = pen__queue_read(pk->q, pk->object, off, pk->win, n, err);
		if (rc)
			return rc;
		pk->win_off = off;
		pk->win_len = n;
	}
	if (len)
		memcpy(buf, pk->win + (off - pk->win_off), len);
	return 0;
}

/* Reads a file next to the object; only set if the store can. */
static int peek_read_side(struct pen_peek *pub, const char *suffix,
			  uint64_t limit, struct pen_buf *out,
			  struct pen_err *err)
{
	struct pen_store *st = ((struct peek *)pub)->q->st;
	char path[4096 + 64];
	int n = snprintf(path, sizeof(path), "%s%s", pub->name, suffix);

	if (n < 0 || (size_t)n >= sizeof(path))
		return pen__fail(err, P_TOO_LONG, pub->name,
				 "the path is too long");
	return st->ops->read_whole(st, path, limit, out, err);
}

/* Joins the directory of pub and a path, resolving "..". */
static bool peek_path(const struct pen_peek *pub, const char *path, char *out,
		      size_t cap)
{
	const char *slash = strrchr(pub->name, '/');
	size_t n = slash ? (size_t)(slash - pub->name) : 0;
	const size_t m = strlen(path);

	for (; strncmp(path, "../", 3) == 0; path += 3) {
		if (!n)
			return false; /* above the known part of the path */
		while (n && pub->name[n - 1] != '/')
			n--;
		n -= n > 1; /* its slash, unless it is the root's */
	}
	if (n + m + 2 > cap)
		return false;
	memcpy(out, pub->name, n);
	snprintf(out + n, cap - n, "%s%s", n && out[n - 1] != '/' ? "/" : "",
		 path);
	return true;
}

static bool peek_find(struct pen_peek *pub, const char *rel, uint32_t *object,
		      uint64_t *size)
{
	const struct build *b = ((struct peek *)pub)->b;
	char path[4096 + 256], other[4096];
	uint64_t at;

	if (!peek_path(pub, rel, path, sizeof(path)))
		return false;
	for (at = path_slot(&b->paths, path); b->paths.slot[at];
	     at = (at + 1) & b->paths.mask) {
		const uint32_t i = b->paths.slot[at] - 1;

		pen__object_path(b->objs, i, other, sizeof(other));
		if (strcmp(path, other) != 0)
			continue;
		*object = i;
		*size = b->objs->obj[i].size;
		return true;
	}
	return false;
}

static int peek_read_of(struct pen_peek *pub, uint32_t object, uint64_t off,
			void *buf, size_t len, struct pen_err *err)
{
	return pen__queue_read(((struct peek *)pub)->q, object, off, buf, len,
			       err);
}

static void peek_dirs(struct pen_peek *pub,
		      void (*see)(void *arg, const char *dir), void *arg)
{
	const struct pen_objects *o = ((struct peek *)pub)->b->objs;
	const char *slash = strrchr(pub->name, '/');
	const size_t n = slash ? (size_t)(slash - pub->name) : 0;

	for (uint64_t i = 0; i < o->ndir; i++) {
		const char *dir = o->names + o->dir[i].name;

		if (!slash && *dir)
			see(arg, dir);
		else if (slash && strncmp(dir, pub->name, n) == 0 &&
			 dir[n] == '/' && dir[n + 1])
			see(arg, dir + n + 1);
	}
}

static int index_one(struct build *b, struct part *p, struct peek *pk,
		     uint32_t i, struct pen_err *err)
{
	struct pen_found found = { 0 };
	char path[4096];
	uint32_t id = NO_BLOB, common;
	int rc;

	pen__object_path(b->objs, i, path, sizeof(path));
	pk->pub.name = path;
	pk->pub.size = b->objs->obj[i].size;
	pk->object = pk->pub.object = i;
	pk->win_len = 0;
	rc = b->st->ops->check ? b->st->ops->check(b->st, i, err) : 0;
	if (!rc)
		rc = b->f->ops->index(b->f, &pk->pub, &found, err);
	pen__err_where(err, path);
	if (!rc && (found.blob.bad || found.common.bad ||
		    !intern_add(&p->blobs, found.blob.p, found.blob.n, &id)))
		rc = pen__fail_nomem(err, path, found.blob.n);
	if (!rc && found.common.n &&
	    !intern_add(&p->blobs, found.common.p, found.common.n, &common))
		rc = pen__fail_nomem(err, path, found.common.n);
	pen__buf_fini(&found.blob);
	pen__buf_fini(&found.common);
	b->nsamples[i] = rc ? 0 : found.nsamples;
	b->objs->obj[i].blob = id;
	return rc;
}

static bool note_bad(struct part *p, uint32_t i, const struct pen_err *err)
{
	if (p->nbad == p->bad_cap) {
		size_t cap = p->bad_cap ? p->bad_cap * 2 : 8;
		void *bad = pen__realloc(p->bad, cap, sizeof(*p->bad));

		if (!bad)
			return false;
		p->bad = bad;
		p->bad_cap = cap;
	}
	p->bad[p->nbad++] = (struct pen_bad_object){ i, *err };
	return true;
}

static void stop_from(struct build *b, uint64_t i)
{
	uint64_t at = atomic_load(&b->stop_at);

	while (i < at && !atomic_compare_exchange_weak(&b->stop_at, &at, i))
		;
}

static void build_fail(struct build *b, struct part *p, uint32_t i,
		       const struct pen_err *err)
{
	if (i < p->fail_at) {
		p->fail_at = i;
		p->err = *err;
	}
	stop_from(b, i);
}

static bool interrupted(const struct build *b, uint64_t i, struct pen_err *err)
{
	if (!pen__stopped(&b->stop))
		return false;
	pen__fail(err, P_INTERRUPTED, pen__object_name(b->objs, (uint32_t)i),
		  "interrupted before it was indexed");
	return true;
}

static void build_part(void *arg, unsigned t)
{
	struct build *b = arg;
	struct part *p = &b->part[t];
	struct peek pk = { .pub.read = peek_read, .b = b };
	struct pen_err err = { 0 };
	uint64_t run;

	if (pen__queue_open(&pk.q, b->st, 1, &err)) {
		build_fail(b, p, 0, &err);
		return;
	}
	if (b->st->ops->read_whole)
		pk.pub.read_side = peek_read_side;
	if (b->paths.slot) {
		pk.pub.find = peek_find;
		pk.pub.read_of = peek_read_of;
		pk.pub.dirs = peek_dirs;
	}
	while ((run = atomic_fetch_add(&b->next, 1)) * b->run <
	       atomic_load(&b->stop_at)) {
		uint64_t end = (run + 1) * b->run;

		b->owner[run] = (uint16_t)t;
		for (uint64_t i = run * b->run; i < end && i < b->objs->nobj;
		     i++) {
			err = (struct pen_err){ 0 };
			if (interrupted(b, i, &err)) {
				build_fail(b, p, (uint32_t)i, &err);
				break;
			}
			if (!index_one(b, p, &pk, (uint32_t)i, &err))
				continue;
			if (b->keep_bad && err.code != PEN_ENOMEM &&
			    note_bad(p, (uint32_t)i, &err))
				continue;
			build_fail(b, p, (uint32_t)i, &err);
			break;
		}
	}
	pen__queue_close(pk.q);
}

static bool join_blob(struct intern *all, const struct intern *in, uint32_t at,
		      uint32_t *id)
{
	if (*id != UINT32_MAX)
		return true;
	return intern_add(all, in->bytes.p + in->off[at],
			  in->off[at + 1] - in->off[at], id);
}

/* Joins the parts' blobs in object order, then those that belong to no
 * object. */
static int join_blobs(struct pen_index_data *ix, struct build *b)
{
	struct intern all = { 0 };
	uint32_t **map = pen__calloc(b->nparts, sizeof(*map));
	bool ok = map != NULL;

	for (unsigned t = 0; ok && t < b->nparts; t++) {
		map[t] = pen__alloc(b->part[t].blobs.n, sizeof(**map));
		ok = map[t] != NULL;
		if (ok)
			memset(map[t], 0xff,
			       b->part[t].blobs.n * sizeof(**map));
	}
	for (uint64_t i = 0; ok && i < b->objs->nobj; i++) {
		struct pen_object *o = &b->objs->obj[i];
		unsigned t = b->owner[i / b->run];

		if (o->blob == NO_BLOB) { /* not used: it has no samples */
			o->blob = 0;
			continue;
		}
		ok = join_blob(&all, &b->part[t].blobs, o->blob,
			       &map[t][o->blob]);
		o->blob = map[t][o->blob];
	}
	for (unsigned t = 0; t < b->nparts; t++)
		for (uint32_t i = 0; ok && i < b->part[t].blobs.n; i++)
			ok = join_blob(&all, &b->part[t].blobs, i, &map[t][i]);
	for (unsigned t = 0; map && t < b->nparts; t++)
		pen__free(map[t]);
	pen__free(map);
	if (!ok) {
		intern_fini(&all);
		return PEN_ENOMEM;
	}
	pen__free(all.slot);
	ix->blobs = all.bytes.p;
	ix->blob_off = all.off;
	ix->pub.nblobs = all.n;
	return 0;
}

static int join_bad(struct pen_index_data *ix, struct build *b)
{
	size_t n = 0;

	for (unsigned t = 0; t < b->nparts; t++)
		n += b->part[t].nbad;
	if (!n)
		return 0;
	ix->bad = pen__alloc(n, sizeof(*ix->bad));
	if (!ix->bad)
		return PEN_ENOMEM;
	for (unsigned t = 0; t < b->nparts; t++)
		for (size_t i = 0; i < b->part[t].nbad; i++) {
			size_t at = ix->nbad++;

			/* few: insertion keeps object order */
			while (at && ix->bad[at - 1].object >
					     b->part[t].bad[i].object) {
				ix->bad[at] = ix->bad[at - 1];
				at--;
			}
			ix->bad[at] = b->part[t].bad[i];
		}
	return 0;
}

static int count_samples(struct pen_index_data *ix, struct build *b,
			 struct pen_err *err)
{
	uint64_t nobj = b->objs->nobj, sum = 0;
	bool same = true;

	for (uint64_t i = 0; i < nobj; i++) {
		same = same && b->nsamples[i] == b->nsamples[0];
		if (__builtin_add_overflow(sum, b->nsamples[i], &sum))
			return pen__fail(
				err, P_DAMAGED, "index",
				"the objects have more than 2^64 samples");
	}
	ix->pub.nobjects = nobj;
	ix->pub.nsamples = sum;
	ix->pub.per_object = same && nobj ? b->nsamples[0] : 0;
	if (ix->pub.per_object)
		return 0;
	ix->first = pen__alloc(nobj + 1, sizeof(*ix->first));
	if (!ix->first)
		return pen__fail_nomem(err, "index", nobj * 8);
	sum = 0;
	for (uint64_t i = 0; i < nobj; i++) {
		ix->first[i] = sum;
		sum += b->nsamples[i];
	}
	ix->first[nobj] = sum;
	return 0;
}

static int run_parts(struct build *b, struct pen_err *err)
{
	struct pen_team *team;
	struct part *worst = NULL;
	int rc;

	rc = pen__team_start(&team, b->nparts, "pen-index", build_part, b, err);
	if (rc)
		return rc;
	pen__team_join(team);
	for (unsigned t = 0; t < b->nparts; t++)
		if (b->part[t].fail_at != UINT32_MAX &&
		    (!worst || b->part[t].fail_at < worst->fail_at))
			worst = &b->part[t];
	if (!worst)
		return 0;
	if (err)
		*err = worst->err;
	return worst->err.code;
}

/* A few objects may be large enough for a thread each, and with slow reads the
 * last runs should end together. */
static uint64_t run_for(uint64_t nobj, unsigned threads)
{
	const uint64_t n = nobj / (64 * (uint64_t)threads);

	return !n ? 1 : n < MOST_RUN ? n : MOST_RUN;
}

int pen__index_build(struct pen_index_data *ix, struct pen_objects *objs,
		     struct pen_store *st, const struct pen_format *f,
		     unsigned threads, struct pen_err *err)
{
	const uint64_t run = run_for(objs->nobj, threads);
	uint64_t runs = (objs->nobj + run - 1) / run;
	struct build b = {
		.objs = objs,
		.st = st,
		.f = f,
		.keep_bad = ix->keep_bad,
		.stop_at = objs->nobj,
		.stop = ix->stop,
		.nparts = (unsigned)(threads < runs ? threads : runs),
		.run = run,
		.nsamples = pen__calloc(objs->nobj, sizeof(uint64_t)),
		.owner = pen__calloc(runs, sizeof(uint16_t)),
	};
	int rc = 0;

	ix->objs = objs;
	ix->of = pen__format_find(f->ops->name);
	b.part = pen__calloc(b.nparts, sizeof(*b.part));
	if (!b.nsamples || !b.owner || !b.part ||
	    (f->ops->markers && !paths_init(&b.paths, objs))) {
		rc = pen__fail_nomem(err, "index", objs->nobj * 8);
		b.nparts = b.part ? b.nparts : 0;
	}
	for (unsigned t = 0; t < b.nparts; t++)
		b.part[t].fail_at = UINT32_MAX;
	if (!rc)
		rc = run_parts(&b, err);
	if (!rc && (join_blobs(ix, &b) || join_bad(ix, &b)))
		rc = pen__fail_nomem(err, "index", 0);
	if (!rc)
		rc = count_samples(ix, &b, err);
	for (unsigned t = 0; t < b.nparts; t++) {
		intern_fini(&b.part[t].blobs);
		pen__free(b.part[t].bad);
	}
	pen__free(b.part);
	pen__free(b.nsamples);
	pen__free(b.owner);
	pen__free(b.paths.slot);
	if (rc)
		pen__index_fini(ix);
	else
		pen__index_publish(ix);
	return rc;
}

static struct pen_span blob_at(const struct pen_index *pub, uint64_t id)
{
	const struct pen_index_data *ix = (const struct pen_index_data *)pub;

	return (struct pen_span){ ix->blobs + ix->blob_off[id],
				  ix->blob_off[id + 1] - ix->blob_off[id] };
}

static uint64_t blob_of(const struct pen_index *pub, uint64_t object)
{
	return ((const struct pen_index_data *)pub)->objs->obj[object].blob;
}

static uint64_t size_of(const struct pen_index *pub, uint64_t object)
{
	return ((const struct pen_index_data *)pub)->objs->obj[object].size;
}

static void name_of(const struct pen_index *pub, uint64_t object, char *buf,
		    size_t cap)
{
	const struct pen_index_data *ix = (const struct pen_index_data *)pub;

	pen__object_path(ix->objs, (uint32_t)object, buf, cap);
}

void pen__index_publish(struct pen_index_data *ix)
{
	ix->pub.first = ix->first;
	ix->pub.blob = blob_at;
	ix->pub.blob_of = blob_of;
	ix->pub.size_of = size_of;
	ix->pub.name_of = name_of;
}
