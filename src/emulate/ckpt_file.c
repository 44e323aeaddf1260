/*
 * Writes and reads one file of a checkpoint. A file is written under a
 * temporary name that depends only on its final name, so that the next run
 * overwrites what a killed run left; it is renamed when it is complete. With
 * checkpoint.odirect, blocks bypass the page cache; the last block is padded
 * and the file truncated afterwards.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/show.h"
#include "emulate/ckpt_int.h"

static int refused_direct(const char *path, struct pen_err *err)
{
	return pen__fail_sys(err, EINVAL, path,
			     "the file system does not support direct I/O; set "
			     "checkpoint.odirect=false");
}

static bool stopped(const struct pen_ckpt_io *io)
{
	return io->watch &&
	       atomic_load_explicit(&io->watch->stop, memory_order_relaxed);
}

static void moved(const struct pen_ckpt_io *io, size_t n)
{
	if (io->watch)
		atomic_fetch_add_explicit(&io->watch->bytes, n,
					  memory_order_relaxed);
}

static int ended_early(const char *path, struct pen_err *err)
{
	return pen__fail(err, P_INTERRUPTED, path, "interrupted");
}

/* --- saving --- */

struct save {
	struct pen_ckpt_io *io;
	const struct pen_torch_state *state;
	int fd;
	struct pen_ckpt_block *b; /* the block being filled */
	size_t fill;
	uint64_t nblocks; /* blocks started */
	uint64_t size;	  /* bytes of the file so far */
	int sys;
	bool early; /* an observer requested the end */
};

static uint8_t *save_room(void *arg, size_t *n)
{
	struct save *s = arg;

	s->early |= !s->b && stopped(s->io);
	if (s->early)
		return NULL;
	if (!s->b) {
		s->b = pen__ckpt_pipe_get(s->io->pipe, s->nblocks++);
		s->fill = 0;
		s->sys = s->b->sys;
	}
	if (s->sys)
		return NULL;
	*n = pen__ckpt_pipe_block(s->io->pipe) - s->fill;
	return s->b->p + s->fill;
}

static void submit(struct save *s)
{
	const struct pen_config *c = s->io->c;
	struct pen_ckpt_block *b = s->b;

	b->off = s->size - s->fill;
	b->n = s->fill;
	b->fd = s->fd;
	b->write = true;
	b->direct = c->checkpoint.odirect;
	b->kick = c->checkpoint.fsync && !b->direct;
	if (b->direct && b->n % PEN_CKPT_PAGE) {
		const size_t pad = PEN_CKPT_PAGE - b->n % PEN_CKPT_PAGE;

		memset(b->p + b->n, 0, pad);
		b->n += pad;
	}
	pen__ckpt_pipe_submit(s->io->pipe, b);
	moved(s->io, s->fill);
	s->b = NULL;
}

static void save_put(void *arg, size_t n)
{
	struct save *s = arg;

	s->fill += n;
	s->size += n;
	if (s->fill == pen__ckpt_pipe_block(s->io->pipe))
		submit(s);
}

static void save_make(void *arg, const struct pen_torch_piece *x, uint8_t *to)
{
	struct save *s = arg;

	pen__ckpt_fill(&s->io->fill, x, to);
}

/* Waits for all submitted blocks; returns the errno of the first failure. */
static int settle(struct save *s)
{
	struct pen_ckpt_pipe *pipe = s->io->pipe;

	if (s->b && s->fill)
		submit(s);
	s->b = NULL;
	pen__ckpt_pipe_drain(pipe);
	for (unsigned i = 0; !s->sys && i < pen__ckpt_pipe_nblocks(pipe); i++)
		s->sys = pen__ckpt_pipe_get(pipe, i)->sys;
	return s->sys;
}

/* Writes all bytes of the open file, and syncs them where requested. */
static int save_bytes(struct save *s, const char *path, struct pen_err *err)
{
	struct pen_torch_sink sink = { s, save_room, save_put, save_make };
	const struct pen_config *c = s->io->c;
	int rc = pen__torch_write(s->state, &sink, path, err);

	settle(s);
	if (rc == PEN_ENOMEM)
		return rc;
	/* an interrupted file is removed: skip the sync */
	if (!s->sys && (s->early || stopped(s->io)))
		return ended_early(path, err);
	if (s->sys == EINVAL && c->checkpoint.odirect)
		return refused_direct(path, err);
	if (!s->sys && c->checkpoint.odirect &&
	    ftruncate(s->fd, (off_t)s->size))
		s->sys = errno;
	if (!s->sys && c->checkpoint.fsync && fsync(s->fd))
		s->sys = errno;
	if (s->sys)
		return pen__fail_sys(
			err, s->sys, path,
			"cannot write the checkpoint (%s of tensors)",
			pen__show_bytes((double)s->state->bytes).s);
	return 0;
}

int pen__ckpt_file_save(struct pen_ckpt_io *io,
			const struct pen_torch_state *state, const char *path,
			struct pen_err *err)
{
	const bool direct = io->c->checkpoint.odirect;
	struct save s = { .io = io, .state = state };
	char tmp[4128];
	int rc;

	if (snprintf(tmp, sizeof(tmp), "%s.tmp", path) >= (int)sizeof(tmp))
		return pen__fail(err, P_TOO_LONG, path, "the path is too long");
	unlink(tmp); /* left by a killed run */
	s.fd = open(tmp,
		    O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC |
			    (direct ? O_DIRECT : 0),
		    0666);
	if (s.fd < 0 && errno == EINVAL && direct) {
		unlink(tmp); /* some file systems create it and then fail */
		return refused_direct(path, err);
	}
	if (s.fd < 0)
		return pen__fail_sys(err, errno, path,
				     "cannot create the file");
	rc = save_bytes(&s, path, err);
	if (close(s.fd) && !rc)
		rc = pen__fail_sys(err, errno, path, "cannot write the file");
	if (!rc && rename(tmp, path))
		rc = pen__fail_sys(err, errno, path,
				   "cannot rename the temporary file");
	if (rc)
		unlink(tmp);
	return rc;
}

/* --- loading --- */

struct load {
	struct pen_peek peek; /* must be first: read() gets only this */
	struct pen_ckpt_io *io;
	int fd;		/* data stream */
	int meta;	/* zip directory; never direct */
	uint64_t asked; /* blocks submitted */
	uint64_t taken;
};

static int peek_read(struct pen_peek *pk, uint64_t off, void *buf, size_t len,
		     struct pen_err *err)
{
	const struct load *l = (const struct load *)pk;
	uint8_t *to = buf;

	if (off > pk->size || len > pk->size - off)
		return pen__fail(err, P_TRUNCATED, pk->name,
				 "truncated: %" PRIu64
				 " bytes are needed at byte %" PRIu64
				 ", but the file has %" PRIu64 " bytes",
				 (uint64_t)len, off, pk->size);
	while (len) {
		const ssize_t n = pread(l->meta, to, len, (off_t)off);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return pen__fail_sys(err, errno, pk->name,
					     "cannot read at byte %" PRIu64,
					     off);
		if (!n)
			return pen__fail(
				err, P_TRUNCATED, pk->name,
				"the file shrank while it was being read");
		to += n;
		off += (uint64_t)n;
		len -= (size_t)n;
	}
	return 0;
}

/* Submits reads while the file and the pipe have room. */
static void ask(struct load *l)
{
	struct pen_ckpt_pipe *pipe = l->io->pipe;
	const size_t block = pen__ckpt_pipe_block(pipe);

	while (l->asked < l->taken + pen__ckpt_pipe_nblocks(pipe) &&
	       l->asked * block < l->peek.size) {
		struct pen_ckpt_block *b = pen__ckpt_pipe_get(pipe, l->asked);

		b->off = l->asked++ * block;
		b->n = block;
		b->fd = l->fd;
		b->write = false;
		b->direct = l->io->c->checkpoint.odirect;
		pen__ckpt_pipe_submit(pipe, b);
	}
}

static const uint8_t *load_next(void *arg, size_t *n, struct pen_err *err)
{
	struct load *l = arg;
	const size_t block = pen__ckpt_pipe_block(l->io->pipe);
	struct pen_ckpt_block *b;
	uint64_t rest;

	if (stopped(l->io)) {
		ended_early(l->peek.name, err);
		return NULL;
	}
	ask(l); /* the block returned last is free now */
	b = pen__ckpt_pipe_get(l->io->pipe, l->taken);
	rest = l->peek.size - l->taken++ * block;
	*n = rest < block ? (size_t)rest : block;
	if (b->sys == EINVAL && b->direct)
		refused_direct(l->peek.name, err);
	else if (b->sys)
		pen__fail_sys(err, b->sys, l->peek.name,
			      "cannot read at byte %" PRIu64, b->off);
	else if (b->n < *n)
		pen__fail(err, P_TRUNCATED, l->peek.name,
			  "the file shrank while it was being read");
	else
		return moved(l->io, *n), b->p;
	return NULL;
}

static size_t load_check(void *arg, const struct pen_torch_piece *x,
			 const uint8_t *p)
{
	struct load *l = arg;

	return pen__ckpt_fill_check(&l->io->fill, x, p);
}

static int open_both(struct load *l, const char *path, struct pen_err *err)
{
	const bool direct = l->io->c->checkpoint.odirect;
	struct stat st;

	l->meta = open(path, O_RDONLY | O_CLOEXEC);
	if (l->meta < 0)
		return pen__fail_sys(err, errno, path, "cannot open the file");
	if (fstat(l->meta, &st))
		return pen__fail_sys(err, errno, path, "cannot read the file");
	if (!S_ISREG(st.st_mode))
		return pen__fail(err, P_BAD_VALUE, path, "not a regular file");
	l->peek.size = (uint64_t)st.st_size;
	if (!direct) {
		l->fd = l->meta;
		posix_fadvise(l->fd, 0, 0, POSIX_FADV_SEQUENTIAL);
		return 0;
	}
	posix_fadvise(l->meta, 0, 0, POSIX_FADV_RANDOM);
	l->fd = open(path, O_RDONLY | O_CLOEXEC | O_DIRECT);
	if (l->fd >= 0)
		return 0;
	return errno == EINVAL ? refused_direct(path, err)
			       : pen__fail_sys(err, errno, path,
					       "cannot open the file");
}

int pen__ckpt_file_load(struct pen_ckpt_io *io,
			const struct pen_torch_state *state, const char *path,
			struct pen_err *err)
{
	struct load l = { .io = io, .fd = -1, .meta = -1 };
	struct pen_torch_source from = { &l, &l.peek, load_next, NULL };
	int rc;

	l.peek.name = path;
	l.peek.read = peek_read;
	if (io->c->checkpoint.verify)
		from.check = load_check;
	rc = open_both(&l, path, err);
	if (!rc) {
		rc = pen__torch_read(state, &from, err);
		pen__ckpt_pipe_drain(io->pipe);
	}
	if (l.fd >= 0 && l.fd != l.meta)
		close(l.fd);
	if (l.meta >= 0)
		close(l.meta);
	return rc;
}
