/*
 * Stores as the rest of the program sees them: chosen by name, options filled,
 * the same lifetime and errors for all. A store with an option `under`
 * decorates another one, which gets the settings it does not know. Nothing here
 * moves bytes except pen__queue_read, which is for indexing, not for batches.
 */
#include "store/store.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/guard.h"
#include "base/mem.h"
#include "store/files.h"

#define MAX_NAMES 32
#define BOUNCE_SIZE (1u << 20)

/* Known, but not part of this build. */
static const struct {
	const char *name, *needs;
} absent[] = {
#define PEN_ABSENT(n, lib) { #n, lib },
#include "store_absent.h"
#undef PEN_ABSENT
	{ NULL, NULL },
};

const struct pen_store_ops *pen__store_find(const char *name)
{
	const struct pen_store_ops *ops;

	for (unsigned i = 0; (ops = pen__store_at(i)); i++)
		if (strcmp(ops->name, name) == 0)
			return ops;
	return NULL;
}

static int fail_unknown(const char *name, struct pen_err *err)
{
	const char *names[MAX_NAMES + 1] = { NULL }, *near;

	for (unsigned i = 0; absent[i].name; i++)
		if (strcmp(absent[i].name, name) == 0)
			return pen__fail(err, P_NOT_IN_BUILD, name,
					 "not part of this build; it needs %s",
					 absent[i].needs);
	for (unsigned i = 0; i < MAX_NAMES && pen__store_at(i); i++)
		names[i] = pen__store_at(i)->name;
	near = pen__nearest(name, names);
	return pen__fail(err, P_UNKNOWN_NAME, name, "unknown store%s%s%s",
			 near ? "; did you mean '" : "", near ? near : "",
			 near ? "'?" : "");
}

#define FEW_QUEUES 16
#define FEW_DESCRIPTORS 32 /* other descriptors of the process */

/* Open files allowed per queue; a ring takes one too. */
static unsigned max_open(unsigned nqueues)
{
	const unsigned n = nqueues > FEW_QUEUES ? nqueues : FEW_QUEUES;
	struct rlimit lim;
	rlim_t share;

	if (getrlimit(RLIMIT_NOFILE, &lim))
		return 1;
	share = lim.rlim_cur > 64 ? (lim.rlim_cur - 64) / n : 1;
	share -= share > 1 && nqueues > FEW_QUEUES;
	return share < 1 ? 1 : share > 1024 ? 1024 : (unsigned)share;
}

void pen__store_share_files(struct pen_store *st, unsigned nqueues,
			    unsigned open_files)
{
	st->nqueues = nqueues;
	st->max_open = open_files ? open_files : max_open(nqueues);
}

void pen__descriptors_reserve(uint64_t n)
{
	struct rlimit lim;
	int fd, high;

	n += FEW_DESCRIPTORS;
	if (getrlimit(RLIMIT_NOFILE, &lim) || !lim.rlim_cur)
		return;
	if (n >= lim.rlim_cur)
		n = lim.rlim_cur - 1;
	fd = n > FEW_DESCRIPTORS && n <= INT_MAX ? open("/", O_PATH | O_CLOEXEC)
						 : -1;
	if (fd < 0)
		return;
	high = fcntl(fd, F_DUPFD_CLOEXEC, (int)n);
	if (high >= 0)
		close(high);
	close(fd);
}

/*
 * Puts the settings of a decorator first and those of the store below after
 * them; *nmine is the boundary. Other stores keep all of them.
 */
static void split(const struct pen_store_ops *ops, bool decorates,
		  const struct pen_opts_kv *kv, size_t nkv,
		  struct pen_opts_kv *out, size_t *nmine)
{
	size_t n = 0, rest = nkv;

	for (size_t i = 0; i < nkv; i++)
		if (!decorates || pen__opt_find(ops->opts, kv[i].key))
			out[n++] = kv[i];
	*nmine = n;
	/* from the back, so that repeated settings stay in order */
	for (size_t i = nkv; decorates && i-- > 0;)
		if (!pen__opt_find(ops->opts, kv[i].key))
			out[--rest] = kv[i];
}

static int fill(struct pen_store *st, const struct pen_opts_kv *kv, size_t nkv,
		struct pen_err *err)
{
	const struct pen_store_ops *ops = st->ops;
	const struct pen_opt *u = pen__opt_find(ops->opts, "under");
	struct pen_opts_kv *sorted = pen__alloc(nkv + 1, sizeof(*sorted));
	const bool opens = u && !st->under;
	size_t nmine;
	int rc;

	if (!sorted)
		return pen__fail_nomem(err, ops->name, 0);
	split(ops, opens, kv, nkv, sorted, &nmine);
	/* on top of another store it is what cache= names */
	rc = pen__opt_fill(ops->opts, st->priv, sorted, nmine,
			   st->under ? "cache." : "store.", err);
	if (!rc && opens) {
		char *const *name = (void *)((char *)st->priv + u->off);

		rc = pen__store_open(&st->under, *name ? *name : "posix",
				     sorted + nmine, nkv - nmine, err);
		if (rc)
			pen__opt_fini(ops->opts, st->priv);
	}
	pen__free(sorted);
	return rc;
}

int pen__store_open_over(struct pen_store **out, const char *name,
			 struct pen_store *under, const struct pen_opts_kv *kv,
			 size_t nkv, struct pen_err *err)
{
	const struct pen_store_ops *ops = pen__store_find(name);
	struct pen_store *st;
	int rc;

	st = ops ? pen__calloc(1, sizeof(*st)) : NULL;
	if (!st) {
		pen__store_close(under);
		return ops ? pen__fail_nomem(err, name, sizeof(*st))
			   : fail_unknown(name, err);
	}
	st->ops = ops;
	st->under = under;
	st->align = 1;
	st->checks_stale = true;
	st->max_open = under ? under->max_open : max_open(FEW_QUEUES);
	st->priv = pen__calloc(1, ops->priv_size + !ops->priv_size);
	rc = st->priv ? fill(st, kv, nkv, err)
		      : pen__fail_nomem(err, name, ops->priv_size);
	if (rc)
		goto fail;
	rc = ops->open ? ops->open(st, err) : 0;
	if (!rc) {
		*out = st;
		return 0;
	}
	pen__opt_err(ops->opts, "store.", err);
	pen__opt_fini(ops->opts, st->priv);
fail:
	pen__store_close(st->under);
	pen__free(st->priv);
	pen__free(st);
	return rc;
}

int pen__store_open(struct pen_store **out, const char *name,
		    const struct pen_opts_kv *kv, size_t nkv,
		    struct pen_err *err)
{
	return pen__store_open_over(out, name, NULL, kv, nkv, err);
}

void pen__store_close(struct pen_store *st)
{
	if (!st)
		return;
	if (st->ops->close)
		st->ops->close(st);
	pen__store_close(st->under);
	pen__opt_fini(st->ops->opts, st->priv);
	pen__free(st->priv);
	pen__free(st);
}

int pen__store_bind(struct pen_store *st, const struct pen_objects *objs,
		    struct pen_err *err)
{
	st->objs = objs;
	return st->ops->bind ? st->ops->bind(st, err) : 0;
}

int pen__queue_open(struct pen_queue **out, struct pen_store *st,
		    unsigned depth, struct pen_err *err)
{
	const size_t size = st->ops->queue_size;
	struct pen_queue *q = pen__calloc(1, sizeof(*q));
	int rc;

	if (!q)
		return pen__fail_nomem(err, st->ops->name, sizeof(*q));
	q->st = st;
	q->depth = depth ? depth : 1;
	q->priv = pen__calloc(1, size + !size);
	rc = q->priv ? st->ops->queue_open(q, err)
		     : pen__fail_nomem(err, st->ops->name, size);
	if (!rc) {
		*out = q;
		return 0;
	}
	pen__free(q->priv);
	pen__free(q);
	return rc;
}

void pen__queue_close(struct pen_queue *q)
{
	if (!q)
		return;
	q->st->ops->queue_close(q);
	pen__free(q->priv);
	pen__free(q);
}

unsigned pen__done_reap(struct pen_queue *q, unsigned min, struct pen_io **done,
			unsigned max)
{
	(void)min; /* all submitted reads have finished */
	return pen__done_pop(q->priv, done, max);
}

/* Submits and waits; then `to` has the n bytes after `skip`. */
static int read_piece(struct pen_queue *q, struct pen_io *io, size_t skip,
		      void *to, size_t n, struct pen_err *err)
{
	const struct pen_store_ops *ops = q->st->ops;
	struct pen_io *done = NULL;
	const char *from;
	int rc = 0;

	if (ops->submit(q, io) || ops->reap(q, 1, &done, 1) != 1 || done != io)
		return pen__fail(err, P_BAD_CALL, ops->name,
				 "a blocking read needs an idle queue");
	if (io->res < 0 || (uint64_t)io->res < skip + n) {
		io->len = skip + n;
		rc = pen__io_error(q->st, io, err);
	} else {
		from = (const char *)io->data + skip;
		if (from != to && !pen__guard_copy(to, from, n)) {
			io->res = PEN_ESTALE;
			rc = pen__io_error(q->st, io, err);
		}
	}
	if (ops->release)
		ops->release(q, io);
	return rc;
}

/* Reads through an aligned buffer, one piece at a time. */
static int read_aligned(struct pen_queue *q, struct pen_io *io, void *buf,
			size_t len, struct pen_err *err)
{
	const uint64_t align = q->st->align;
	const uint64_t off = io->offset;
	struct pen_block b = { 0 };
	size_t got = 0;
	int rc = pen__block_init(&b, BOUNCE_SIZE);

	if (rc)
		return pen__fail_nomem(err, q->st->ops->name, BOUNCE_SIZE);
	while (got < len && !rc) {
		const size_t skip = (off + got) % align;
		size_t n = BOUNCE_SIZE - skip;

		if (n > len - got)
			n = len - got;
		io->offset = off + got - skip;
		io->len = (skip + n + align - 1) / align * align;
		io->buf = b.p;
		rc = read_piece(q, io, skip, (char *)buf + got, n, err);
		got += n;
	}
	pen__block_fini(&b);
	return rc;
}

int pen__queue_read(struct pen_queue *q, uint32_t object, uint64_t off,
		    void *buf, size_t len, struct pen_err *err)
{
	struct pen_io io = {
		.object = object, .offset = off, .len = len, .buf = buf
	};

	if (!len)
		return 0;
	if (q->st->align > 1 && !q->st->lends)
		return read_aligned(q, &io, buf, len, err);
	return read_piece(q, &io, 0, buf, len, err);
}

static int fail_read(const struct pen_io *io, const char *path,
		     struct pen_err *err)
{
	const int code = (int)io->res;

	if (code == PEN_ESTALE)
		return pen__fail(
			err, P_DATA_CHANGED, path,
			"changed since it was indexed (size or time differs); "
			"run again, the index is rebuilt automatically");
	if (code == PEN_ENOTSUP)
		return pen__fail(err, P_UNSUPPORTED_SYSTEM, path,
				 "its file system does not support O_DIRECT; "
				 "set store.direct=false");
	if (code == PEN_ENOMEM)
		return pen__fail_nomem(err, path, io->len);
	if (code == PEN_ENOTFOUND)
		pen__fail(err, P_NOT_FOUND, path,
			  "no longer exists, although it is in the index; "
			  "restore it or run again");
	else if (io->sys == EMFILE)
		pen__fail(err, P_TOO_MANY_FILES, path,
			  "cannot open it: too many open files; raise `ulimit "
			  "-n` or lower threads=");
	else
		pen__fail_sys(err, io->sys, path,
			      "cannot read %zu bytes at offset %" PRIu64 "",
			      io->len, io->offset);
	if (err)
		err->sys = io->sys;
	return pen__err_code(err, code);
}

int pen__io_error(const struct pen_store *st, const struct pen_io *io,
		  struct pen_err *err)
{
	char path[PATH_MAX];

	if (io->res == PEN_ECLOSED && st->lost)
		return pen__fail(err, P_CLOSED, st->lost->where, "%s",
				 st->lost->msg);
	pen__object_path(st->objs, io->object, path, sizeof(path));
	if (io->res < 0)
		return fail_read(io, path, err);
	if ((uint64_t)io->res >= io->len)
		return 0;
	return pen__fail(err, P_TRUNCATED, path,
			 "truncated or changed: ends at byte %" PRIu64
			 ", but %zu bytes were expected at offset %" PRIu64
			 "; copy it again or exclude it",
			 io->offset + (uint64_t)io->res, io->len, io->offset);
}

int pen__sink_open(struct pen_sink **out, struct pen_store *st,
		   const char *path, struct pen_err *err)
{
	const size_t size = st->ops->sink_size;
	struct pen_sink *s;
	int rc;

	if (!st->ops->sink_open)
		return pen__fail(err, P_UNSUPPORTED_FEATURE, st->ops->name,
				 "this store cannot be written to; use posix");
	s = pen__calloc(1, sizeof(*s));
	if (!s)
		return pen__fail_nomem(err, path, sizeof(*s));
	s->st = st;
	s->priv = pen__calloc(1, size + !size);
	rc = s->priv ? st->ops->sink_open(s, path, err)
		     : pen__fail_nomem(err, path, size);
	if (!rc) {
		*out = s;
		return 0;
	}
	pen__free(s->priv);
	pen__free(s);
	return rc;
}

int pen__sink_write(struct pen_sink *s, const void *buf, size_t n,
		    struct pen_err *err)
{
	int rc = n ? s->st->ops->sink_write(s, buf, n, err) : 0;

	if (!rc)
		s->written += n;
	return rc;
}

int pen__sink_close(struct pen_sink *s, bool commit, struct pen_err *err)
{
	int rc = s->st->ops->sink_close(s, commit, err);

	pen__free(s->priv);
	pen__free(s);
	return rc;
}
