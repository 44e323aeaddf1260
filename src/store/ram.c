/*
 * The store in memory: all listed files are read once, at bind, and reads lend
 * that memory. It shows what a loader could do if storage cost nothing, and
 * gives tests objects without files. It rejects a set that does not fit into
 * the available memory before it reads any of it.
 *
 * Objects put here (by the library or through a sink) are kept until the store
 * is closed, even if they are replaced: the old bytes may be lent.
 */
#include "store/ram.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/show.h"
#include "base/team.h"
#include "store/files.h"

#define CACHE_LINE 64u

struct put {
	char *name;
	uint8_t *p;
	size_t n;
	uint64_t seq;
};

struct view {
	const uint8_t *p;
	size_t n;
};

struct ram {
	pthread_mutex_t lock; /* for the puts */
	struct put *put;
	size_t nput, cap;
	struct pen_block block; /* all files, one after another */
	struct view *view;	/* per bound object */
};

struct ram_queue {
	struct pen_done done; /* first */
	const struct view *view;
};

struct ram_sink {
	char *name;
	struct pen_buf buf;
};

static const struct pen_opt opts[] = { { .name = NULL } };

static int ram_open(struct pen_store *st, struct pen_err *err)
{
	struct ram *r = st->priv;

	(void)err;
	pthread_mutex_init(&r->lock, NULL);
	st->lends = true;
	return 0;
}

static void ram_close(struct pen_store *st)
{
	struct ram *r = st->priv;

	for (size_t i = 0; i < r->nput; i++) {
		pen__free(r->put[i].name);
		pen__free(r->put[i].p);
	}
	pen__free(r->put);
	pen__free(r->view);
	pen__block_fini(&r->block);
	pthread_mutex_destroy(&r->lock);
}

/* Takes over name and p on success. */
static int put(struct ram *r, char *name, uint8_t *p, size_t n)
{
	int rc = 0;

	pthread_mutex_lock(&r->lock);
	if (r->nput == r->cap) {
		const size_t cap = r->cap ? 2 * r->cap : 16;
		struct put *more = pen__realloc(r->put, cap, sizeof(*more));

		if (more) {
			r->put = more;
			r->cap = cap;
		} else {
			rc = PEN_ENOMEM;
		}
	}
	if (!rc) {
		r->put[r->nput] = (struct put){ name, p, n, r->nput };
		r->nput++;
	}
	pthread_mutex_unlock(&r->lock);
	return rc;
}

int pen__ram_put(struct pen_store *st, const char *name, const void *p,
		 size_t n, struct pen_err *err)
{
	char *s = pen__strdup(name);
	uint8_t *bytes = pen__alloc(n ? n : 1, 1);
	int rc = PEN_ENOMEM;

	if (s && bytes) {
		if (n)
			memcpy(bytes, p, n);
		rc = put(st->priv, s, bytes, n);
	}
	if (!rc)
		return 0;
	pen__free(s);
	pen__free(bytes);
	return pen__fail_nomem(err, name, n);
}

/* By name, the newest of equal names first. */
static int by_name(const void *va, const void *vb)
{
	const struct put *a = va, *b = vb;
	const int c = strcmp(a->name, b->name);

	return c ? c : (a->seq < b->seq) - (a->seq > b->seq);
}

static int list_puts(struct ram *r, pen_keep_fn *keep, void *arg,
		     struct pen_objects *set)
{
	uint32_t dir;
	int rc = pen__objects_add_dir(set, "", 0, 0, &dir);

	if (r->nput)
		qsort(r->put, r->nput, sizeof(*r->put), by_name);
	for (size_t i = 0; i < r->nput && !rc; i++) {
		const struct put *o = &r->put[i];
		const char *slash = strrchr(o->name, '/');

		if (i && strcmp(o->name, r->put[i - 1].name) == 0)
			continue;
		if (!keep || keep(arg, "", slash ? slash + 1 : o->name))
			rc = pen__objects_add(set, dir, o->name, o->n, 0);
	}
	return rc;
}

static int ram_list(struct pen_store *st, const char *path, pen_keep_fn *keep,
		    void *arg, struct pen_objects *set, struct pen_err *err)
{
	struct ram *r = st->priv;
	bool own;
	int rc = 0;

	pthread_mutex_lock(&r->lock);
	own = r->nput > 0 || strcmp(path, "ram:") == 0;
	if (own)
		rc = list_puts(r, keep, arg, set);
	pthread_mutex_unlock(&r->lock);
	if (!own)
		return pen__files_list(st, path, keep, arg, set, err);
	return rc ? pen__fail(err, rc == PEN_ENOMEM ? P_NO_MEMORY : P_TOO_LONG,
			      path, "cannot list the objects")
		  : 0;
}

static size_t padded(uint64_t n)
{
	return (size_t)((n + CACHE_LINE - 1) / CACHE_LINE * CACHE_LINE);
}

static bool is_put(const struct pen_objects *s, uint32_t i)
{
	return !*pen__object_dir(s, i);
}

static int load(struct pen_store *st, struct pen_files *fs, uint32_t i,
		uint8_t *to, struct pen_err *err)
{
	struct pen_io io = { .object = i, .len = st->objs->obj[i].size };
	size_t got = 0;
	int fd, rc = pen__files_open(fs, i, &fd, &io.sys);

	if (rc) {
		io.res = rc;
		return pen__io_error(st, &io, err);
	}
	while (got < io.len) {
		const ssize_t n = pread(fd, to + got, io.len - got, (off_t)got);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0) {
			io.sys = n < 0 ? errno : 0;
			rc = n < 0 ? pen__file_code(errno) : PEN_ESTALE;
			break;
		}
		got += (size_t)n;
	}
	close(fd);
	io.res = rc;
	return rc ? pen__io_error(st, &io, err) : 0;
}

static int find_put(struct ram *r, const char *name, struct view *v)
{
	size_t lo = 0, hi = r->nput;

	/* the first that is not less: by_name() sorts the newest there */
	while (lo < hi) {
		const size_t mid = lo + (hi - lo) / 2;

		if (strcmp(r->put[mid].name, name) < 0)
			lo = mid + 1;
		else
			hi = mid;
	}
	if (lo == r->nput || strcmp(r->put[lo].name, name) != 0)
		return PEN_ENOTFOUND;
	*v = (struct view){ r->put[lo].p, r->put[lo].n };
	return 0;
}

static int fill_views(struct pen_store *st, struct pen_err *err)
{
	const struct pen_objects *s = st->objs;
	struct ram *r = st->priv;
	struct pen_files *fs = pen__calloc(1, sizeof(*fs));
	size_t at = 0;
	int rc;

	if (!fs)
		return pen__fail_nomem(err, "ram", sizeof(*fs));
	rc = pen__files_init(fs, st, 1, 0, err);
	for (uint32_t i = 0; i < s->nobj && !rc; i++) {
		struct view *v = &r->view[i];

		if (is_put(s, i)) {
			rc = find_put(r, pen__object_name(s, i), v);
			if (rc)
				pen__fail(err, P_NOT_FOUND,
					  pen__object_name(s, i),
					  "no such object in memory; list the "
					  "objects again");
			continue;
		}
		v->p = (uint8_t *)r->block.p + at;
		v->n = s->obj[i].size;
		rc = load(st, fs, i, (uint8_t *)r->block.p + at, err);
		at += padded(s->obj[i].size);
	}
	pen__files_fini(fs);
	pen__free(fs);
	return rc;
}

/* Bytes the files take, or PEN_ENOMEM if they do not fit. */
static int plan(const struct pen_store *st, size_t *total, struct pen_err *err)
{
	const uint64_t free_bytes = pen__memory_available();
	const struct pen_objects *s = st->objs;
	uint64_t n = 0;

	for (uint32_t i = 0; i < s->nobj; i++) {
		const uint64_t size = is_put(s, i) ? 0 : s->obj[i].size;

		if (size > free_bytes || n > free_bytes)
			n = UINT64_MAX / 2; /* enough to know */
		else
			n += padded(size);
	}
	*total = (size_t)n;
	if (n <= free_bytes)
		return 0;
	return pen__fail(
		err, P_OVER_BUDGET, "store=ram",
		"the data set takes %s, but only %s of memory is available; "
		"use store=mmap or store=posix, or fewer files",
		pen__show_bytes((double)s->total_bytes).s,
		pen__show_bytes((double)free_bytes).s);
}

static int ram_bind(struct pen_store *st, struct pen_err *err)
{
	const struct pen_objects *s = st->objs;
	struct ram *r = st->priv;
	size_t total;
	int rc = plan(st, &total, err);

	if (rc)
		return rc;
	pen__free(r->view);
	r->view = pen__calloc(s->nobj + 1, sizeof(*r->view));
	if (!r->view)
		return pen__fail_nomem(err, "store=ram",
				       s->nobj * sizeof(*r->view));
	if (total && pen__block_reserve(&r->block, total))
		return pen__fail_nomem(err, "store=ram", total);
	pthread_mutex_lock(&r->lock);
	if (r->nput)
		qsort(r->put, r->nput, sizeof(*r->put), by_name);
	rc = fill_views(st, err);
	pthread_mutex_unlock(&r->lock);
	return rc;
}

static int ram_queue_open(struct pen_queue *q, struct pen_err *err)
{
	const struct ram *r = q->st->priv;
	struct ram_queue *p = q->priv;

	(void)err;
	p->view = r->view;
	return 0;
}

static void ram_queue_close(struct pen_queue *q)
{
	(void)q;
}

static int ram_submit(struct pen_queue *q, struct pen_io *io)
{
	struct ram_queue *p = q->priv;
	const struct view *v = &p->view[io->object];

	if (p->done.n >= q->depth)
		return PEN_END;
	pen__io_lend(io, v->p, v->n);
	pen__done_push(&p->done, io);
	return 0;
}

static int ram_sink_open(struct pen_sink *s, const char *path,
			 struct pen_err *err)
{
	struct ram_sink *k = s->priv;

	k->name = pen__strdup(path);
	return k->name ? 0 : pen__fail_nomem(err, path, strlen(path));
}

static int ram_sink_write(struct pen_sink *s, const void *p, size_t n,
			  struct pen_err *err)
{
	struct ram_sink *k = s->priv;

	pen__buf_put(&k->buf, p, n);
	return k->buf.bad ? pen__fail_nomem(err, k->name, n) : 0;
}

static int ram_sink_close(struct pen_sink *s, bool commit, struct pen_err *err)
{
	struct ram_sink *k = s->priv;
	int rc = 0;

	if (commit && k->buf.bad)
		rc = pen__fail_nomem(err, k->name, 0);
	else if (commit && !k->buf.p)
		rc = pen__ram_put(s->st, k->name, "", 0, err);
	else if (commit && put(s->st->priv, k->name, k->buf.p, k->buf.n))
		rc = pen__fail_nomem(err, k->name, 0);
	else if (commit)
		return 0; /* the store owns name and bytes now */
	pen__buf_fini(&k->buf);
	pen__free(k->name);
	return rc;
}

const struct pen_store_ops pen__store_ram = {
	.name = "ram",
	.help = "files, loaded into memory first",
	.opts = opts,
	.priv_size = sizeof(struct ram),
	.queue_size = sizeof(struct ram_queue),
	.sink_size = sizeof(struct ram_sink),
	.open = ram_open,
	.close = ram_close,
	.list = ram_list,
	.read_whole = pen__files_read_whole,
	.bind = ram_bind,
	.queue_open = ram_queue_open,
	.queue_close = ram_queue_close,
	.submit = ram_submit,
	.reap = pen__done_reap,
	.sink_open = ram_sink_open,
	.sink_write = ram_sink_write,
	.sink_close = ram_sink_close,
};
