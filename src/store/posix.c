/*
 * The store of files read with pread: one system call per read, finished inside
 * submit. Every other store of files is measured against it, and it contains
 * what they share about the page cache and about writing.
 *
 * A file being written has a temporary name in the same folder until commit
 * renames it: no partial object is ever visible. Writing goes through the page
 * cache even if reading is direct.
 */
#include "store/files.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/show.h"
#include "base/sync.h"

#define STAGE_SIZE (256u << 10)
#define STAGE_FIRST (16u << 10) /* small files need no more */
#define NEAR (1u << 20)		/* a gap that still counts as sequential */
#define AHEAD_STEP (128u << 10) /* the kernel may truncate a longer request */

/* ---- hints ---- */

static void ask_ahead(struct pen_file *f, uint64_t from, uint64_t n)
{
	for (uint64_t i = 0; i < n; i += AHEAD_STEP)
		posix_fadvise(f->fd, (off_t)(from + i),
			      (off_t)(n - i < AHEAD_STEP ? n - i : AHEAD_STEP),
			      POSIX_FADV_WILLNEED);
}

static void advise(struct pen_file *f, int want)
{
	static const int of[] = {
		[PEN_ADVISE_NORMAL] = POSIX_FADV_NORMAL,
		[PEN_ADVISE_RANDOM] = POSIX_FADV_RANDOM,
		[PEN_ADVISE_SEQUENTIAL] = POSIX_FADV_SEQUENTIAL,
		[PEN_ADVISE_WILLNEED] = POSIX_FADV_WILLNEED,
		[PEN_ADVISE_NOREUSE] = POSIX_FADV_NOREUSE,
	};

	if (want == f->advice)
		return;
	posix_fadvise(f->fd, 0, 0, of[want]);
	f->advice = (uint8_t)want;
}

/*
 * auto: read-ahead ruins scattered small reads of a large object (the kernel
 * may read megabytes around each), and speeds up reads that continue where the
 * last one ended. So it is switched off for the former and left on for
 * everything else.
 */
void pen__file_before(const struct pen_file_opts *o,
		      const struct pen_objects *s, struct pen_file *f,
		      const struct pen_io *io)
{
	const uint64_t size = s->obj[io->object].size;
	const uint64_t end = io->offset + io->len;
	const bool goes_on = io->offset >= f->end && io->offset - f->end < NEAR;

	if (o->direct)
		return;
	f->streak = !goes_on ? 0 : f->streak < 2 ? f->streak + 1 : 2;
	if (o->advice != PEN_ADVISE_AUTO)
		advise(f, o->advice);
	else if (size > PEN_BIG_OBJECT)
		advise(f, io->len < PEN_SMALL_IO && f->streak < 2
				  ? PEN_ADVISE_RANDOM
				  : PEN_ADVISE_NORMAL);
	if (!goes_on)
		f->ahead = 0;
	f->end = end;
	if (!o->readahead || !goes_on || end >= size)
		return;
	if (f->ahead < end)
		f->ahead = end;
	if (f->ahead - end < o->readahead / 2) {
		uint64_t to = size - end < o->readahead ? size
							: end + o->readahead;

		if (to > f->ahead)
			ask_ahead(f, f->ahead, to - f->ahead);
		f->ahead = to > f->ahead ? to : f->ahead;
	}
}

/* Only entire pages are dropped, so the range grows to page boundaries. */
void pen__file_after(const struct pen_file_opts *o, const struct pen_objects *s,
		     struct pen_file *f, const struct pen_io *io)
{
	const uint64_t from = io->offset & ~(uint64_t)4095;
	const uint64_t size = s->obj[io->object].size;
	uint64_t n;

	if (!o->dropcache || o->direct || io->res <= 0)
		return;
	n = (io->offset + (uint64_t)io->res - from + 4095) & ~(uint64_t)4095;
	/* the last read includes what was read ahead: 0 = to the end */
	if (io->offset + (uint64_t)io->res >= size)
		n = 0;
	posix_fadvise(f->fd, (off_t)from, (off_t)n, POSIX_FADV_DONTNEED);
}

/* ---- sinks ---- */

static int fail_write(struct pen_file_sink *k, int sys, size_t more,
		      struct pen_err *err)
{
	struct statvfs vfs;

	k->bad = true;
	if ((sys == ENOSPC || sys == EDQUOT) && fstatvfs(k->fd, &vfs) == 0) {
		pen__fail(err, P_DISK_FULL, k->path,
			  "no space left: %s more needed, %s free; free some "
			  "space or choose another location",
			  pen__show_bytes((double)more).s,
			  pen__show_bytes((double)vfs.f_bavail *
					  (double)vfs.f_frsize)
				  .s);
		if (err)
			err->sys = sys;
		return PEN_EIO;
	}
	return pen__fail_sys(err, sys, k->path, "cannot write the file");
}

static int write_all(struct pen_file_sink *k, const void *buf, size_t n,
		     struct pen_err *err)
{
	const char *p = buf;

	while (n) {
		const ssize_t w = write(k->fd, p, n);

		if (w < 0 && errno != EINTR)
			return fail_write(k, errno, n, err);
		if (w > 0) {
			p += w;
			n -= (size_t)w;
		}
	}
	return 0;
}

static int make_parents(char *path, bool sync, struct pen_err *err)
{
	for (char *p = path + 1; *p; p++) {
		int rc = 0, sys = 0;

		if (*p != '/')
			continue;
		*p = '\0';
		if (mkdir(path, 0777))
			sys = errno;
		else if (sync)
			sys = pen__sync_parent(path);
		if (sys && sys != EEXIST) {
			rc = pen__file_code(sys);
			pen__fail_sys(err, sys, path,
				      "cannot create the directory");
			pen__err_code(err, rc);
		}
		*p = '/';
		if (rc)
			return rc;
	}
	return 0;
}

static int open_tmp(struct pen_sink *s, struct pen_err *err)
{
	struct pen_file_opts *o = s->st->priv;
	struct pen_file_sink *k = s->priv;
	const size_t cap = strlen(k->path) + 48;

	if (!k->tmp)
		k->tmp = pen__alloc(1, cap);
	if (!k->tmp)
		return pen__fail_nomem(err, k->path, cap);
	/* the name may be left over from a process with our number */
	for (unsigned tries = 0; tries < 1000; tries++) {
		snprintf(k->tmp, cap, "%s.%ld-%u.tmp", k->path, (long)getpid(),
			 atomic_fetch_add(&o->nsinks, 1));
		k->fd = open(k->tmp, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC,
			     0644);
		if (k->fd >= 0 || errno != EEXIST)
			break;
	}
	if (k->fd >= 0)
		return 0;
	/* err stays untouched: the folders may have to be created */
	return errno == ENOENT || errno == ENOTDIR
		       ? PEN_ENOTFOUND
		       : pen__fail_sys(err, errno, k->tmp,
				       "cannot create the file");
}

static void sink_fini(struct pen_file_sink *k)
{
	pen__block_fini(&k->stage);
	pen__free(k->path);
	pen__free(k->tmp);
}

int pen__file_sink_open(struct pen_sink *s, const char *path,
			struct pen_err *err)
{
	const struct pen_file_opts *o = s->st->priv;
	struct pen_file_sink *k = s->priv;
	int rc;

	k->fd = -1;
	if (!*path || path[strlen(path) - 1] == '/')
		return pen__fail(err, P_BAD_VALUE, path,
				 "the path has no file name; add one");
	k->path = pen__strdup(path);
	if (!k->path)
		return pen__fail_nomem(err, path, strlen(path));
	rc = open_tmp(s, err);
	if (rc == PEN_ENOTFOUND) { /* the first file of its folder */
		rc = make_parents(k->path, o->fsync, err);
		if (!rc) {
			rc = open_tmp(s, err);
			if (rc == PEN_ENOTFOUND)
				pen__fail(err, P_NOT_FOUND, k->path,
					  "the directory was removed while the "
					  "file was being created");
		}
	}
	if (rc)
		sink_fini(k);
	return rc;
}

static int flush(struct pen_file_sink *k, struct pen_err *err)
{
	const size_t n = k->fill;

	k->fill = 0;
	return write_all(k, k->stage.p, n, err);
}

/* Large writes go straight through; small ones are buffered first. */
int pen__file_sink_write(struct pen_sink *s, const void *buf, size_t n,
			 struct pen_err *err)
{
	struct pen_file_sink *k = s->priv;
	const size_t cap = s->written + n <= STAGE_FIRST ? STAGE_FIRST
							 : STAGE_SIZE;
	int rc = 0;

	if (n >= STAGE_SIZE / 4 || k->fill + n > k->stage.cap)
		rc = flush(k, err);
	if (rc)
		return rc;
	if (n >= STAGE_SIZE / 4)
		return write_all(k, buf, n, err);
	if (!k->fill && pen__block_reserve(&k->stage, cap))
		return write_all(k, buf, n, err);
	memcpy((char *)k->stage.p + k->fill, buf, n);
	k->fill += n;
	return 0;
}

int pen__file_sink_patch(struct pen_sink *s, uint64_t at, const void *buf,
			 size_t n, struct pen_err *err)
{
	struct pen_file_sink *k = s->priv;
	const char *p = buf;
	int rc;

	if (at > s->written || n > s->written - at)
		return pen__fail(
			err, P_BAD_CALL, k->path,
			"cannot change bytes that have not been written yet");
	rc = flush(k, err);
	while (!rc && n) {
		const ssize_t w = pwrite(k->fd, p, n, (off_t)at);

		if (w < 0 && errno != EINTR)
			return fail_write(k, errno, n, err);
		if (w > 0) {
			p += w;
			at += (uint64_t)w;
			n -= (size_t)w;
		}
	}
	return rc;
}

int pen__file_sink_close(struct pen_sink *s, bool commit, struct pen_err *err)
{
	const struct pen_file_opts *o = s->st->priv;
	struct pen_file_sink *k = s->priv;
	int rc = 0, sys = 0;

	if (commit && k->bad)
		rc = pen__fail(err, P_IO, k->path,
			       "discarded, because an earlier write failed");
	if (commit && !rc)
		rc = flush(k, err);
	if (commit && !rc && o->fsync && fsync(k->fd))
		rc = fail_write(k, errno, 0, err);
	/* file systems that write late report errors here */
	if (close(k->fd) && commit && !rc)
		rc = pen__fail_sys(err, errno, k->path,
				   "cannot write the file");
	if (commit && !rc && rename(k->tmp, k->path))
		rc = pen__fail_sys(err, errno, k->path,
				   "cannot rename the temporary file");
	if (!commit || rc)
		unlink(k->tmp);
	else if (o->fsync)
		sys = pen__sync_parent(k->path);
	if (sys)
		rc = pen__fail_sys(err, sys, k->path,
				   "written, but its name may be lost in a "
				   "crash: cannot sync the directory");
	sink_fini(k);
	return rc;
}

/* ---- the store ---- */

struct posix_queue {
	struct pen_done done; /* first */
	struct pen_files files;
};

static const struct pen_opt opts[] = {
	PEN_FILES_DIRECT(0),
	PEN_FILES_ADVICE(0),
	{ .name = "readahead",
	  .type = PEN_OPT_SIZE,
	  .off = offsetof(struct pen_file_opts, readahead),
	  .dflt = "0",
	  .min = 0,
	  .max = 1u << 30,
	  .help = "bytes to read ahead of sequential reads (0 = kernel "
		  "default)" },
	PEN_FILES_DROPCACHE(0),
	PEN_FILES_FSYNC(0),
	{ .name = NULL },
};

int pen__files_check(const struct pen_file_opts *o, struct pen_err *err)
{
	const char *key = o->dropcache			 ? "dropcache"
			  : o->advice != PEN_ADVISE_AUTO ? "fadvise"
			  : o->readahead		 ? "readahead"
							 : NULL;

	if (!o->direct || !key)
		return 0;
	return pen__fail(err, P_NO_EFFECT, key,
			 "has no effect with store.direct=true, which bypasses "
			 "the page cache; omit one of them");
}

static int posix_open(struct pen_store *st, struct pen_err *err)
{
	const struct pen_file_opts *o = st->priv;

	st->align = o->direct ? 4096 : 1;
	st->waits = true;
	return pen__files_check(o, err);
}

static int posix_queue_open(struct pen_queue *q, struct pen_err *err)
{
	const struct pen_file_opts *o = q->st->priv;
	struct posix_queue *p = q->priv;

	return pen__files_init(&p->files, q->st, q->st->max_open,
			       o->direct ? O_DIRECT : 0, err);
}

static void posix_queue_close(struct pen_queue *q)
{
	struct posix_queue *p = q->priv;

	pen__files_fini(&p->files);
}

static void read_all(const struct pen_store *st, int fd, struct pen_io *io)
{
	size_t got = 0;

	pen__io_end(io, 0, 0);
	/* nothing is there, and pread would return an error */
	if (io->offset > INT64_MAX - io->len)
		return;
	while (got < io->len) {
		const ssize_t n = pread(fd, (char *)io->buf + got,
					io->len - got,
					(off_t)(io->offset + got));

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0) {
			pen__io_end(io, pen__file_code(errno), errno);
			return;
		}
		got += (size_t)n;
		if (!n || pen__file_at_end(st, io, got))
			break;
	}
	io->res = (int64_t)got;
}

static int posix_submit(struct pen_queue *q, struct pen_io *io)
{
	const struct pen_store *st = q->st;
	struct posix_queue *p = q->priv;
	struct pen_file *f;
	int rc, sys = 0;

	if (p->done.n >= q->depth)
		return PEN_END;
	rc = pen__files_get(&p->files, io->object, &f, &sys);
	if (rc) {
		pen__io_end(io, rc, sys);
	} else {
		pen__file_before(st->priv, st->objs, f, io);
		read_all(st, f->fd, io);
		pen__file_after(st->priv, st->objs, f, io);
		pen__files_put(f);
	}
	pen__done_push(&p->done, io);
	return 0;
}

const struct pen_store_ops pen__store_posix = {
	.name = "posix",
	.help = "files, read with pread",
	.opts = opts,
	.priv_size = sizeof(struct pen_file_opts),
	.queue_size = sizeof(struct posix_queue),
	.sink_size = sizeof(struct pen_file_sink),
	.open = posix_open,
	.list = pen__files_list,
	.read_whole = pen__files_read_whole,
	.bind = pen__files_bind_direct,
	.queue_open = posix_queue_open,
	.queue_close = posix_queue_close,
	.submit = posix_submit,
	.reap = pen__done_reap,
	.sink_open = pen__file_sink_open,
	.sink_write = pen__file_sink_write,
	.sink_patch = pen__file_sink_patch,
	.sink_close = pen__file_sink_close,
};
