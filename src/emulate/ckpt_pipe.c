/*
 * A ring of blocks with I/O threads, so that content is generated and
 * checksummed while other blocks are written. Blocks are used round robin, so
 * that a reader gets them in order with any number of threads. The result of an
 * operation is stored in its block.
 */
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/ring.h"
#include "base/team.h"
#include "emulate/ckpt_int.h"

struct pen_ckpt_pipe {
	struct pen_ring *todo, *done;
	struct pen_team *team;
	struct pen_block mem;
	size_t block;
	unsigned nblocks;
	struct pen_ckpt_block b[];
};

static void write_block(struct pen_ckpt_block *b)
{
	size_t done = 0;

	while (done < b->n && !b->sys) {
		const ssize_t n = pwrite(b->fd, b->p + done, b->n - done,
					 (off_t)(b->off + done));

		if (n > 0)
			done += (size_t)n;
		else if (n == 0)
			b->sys = ENOSPC;
		else if (errno != EINTR)
			b->sys = errno;
	}
	/* otherwise the final fsync would write everything */
	if (!b->sys && b->kick)
		sync_file_range(b->fd, (off_t)b->off, (off_t)b->n,
				SYNC_FILE_RANGE_WRITE);
}

static void read_block(struct pen_ckpt_block *b)
{
	size_t done = 0;

	while (done < b->n && !b->sys) {
		const ssize_t n = pread(b->fd, b->p + done, b->n - done,
					(off_t)(b->off + done));

		if (n > 0)
			done += (size_t)n;
		else if (n == 0)
			break;
		else if (errno != EINTR)
			b->sys = errno;
		/* end of file: another direct read at this offset would fail */
		if (n > 0 && b->direct && (size_t)n % PEN_CKPT_PAGE)
			break;
	}
	b->n = done;
}

static void move(void *arg, unsigned i)
{
	struct pen_ckpt_pipe *p = arg;
	struct pen_ckpt_block *b;

	(void)i;
	while ((b = pen__ring_pop(p->todo, NULL, true))) {
		b->sys = 0;
		if (b->write)
			write_block(b);
		else
			read_block(b);
		pen__ring_push(p->done, 0, b);
	}
}

int pen__ckpt_pipe_new(struct pen_ckpt_pipe **out, size_t block,
		       unsigned nblocks, unsigned nthreads, struct pen_err *err)
{
	struct pen_ckpt_pipe *p;
	size_t bytes;
	int rc;

	*out = NULL;
	if (!pen__mul(block, nblocks, &bytes))
		return pen__fail_nomem(err, "checkpoint", block);
	p = pen__calloc(1, sizeof(*p) + nblocks * sizeof(p->b[0]));
	if (!p)
		return pen__fail_nomem(err, "checkpoint", sizeof(*p));
	p->block = block;
	p->nblocks = nblocks;
	if (pen__block_init(&p->mem, bytes) < 0 ||
	    pen__ring_new(&p->todo, nblocks, -1) < 0 ||
	    pen__ring_new(&p->done, nblocks, -1) < 0) {
		rc = pen__fail_nomem(err, "checkpoint", bytes);
		goto fail;
	}
	for (unsigned i = 0; i < nblocks; i++)
		p->b[i].p = (uint8_t *)p->mem.p + i * block;
	rc = pen__team_start(&p->team, nthreads, "checkpoint", move, p, err);
	if (rc < 0)
		goto fail;
	*out = p;
	return 0;
fail:
	pen__ckpt_pipe_free(p);
	return rc;
}

void pen__ckpt_pipe_free(struct pen_ckpt_pipe *p)
{
	if (!p)
		return;
	if (p->team) {
		pen__ckpt_pipe_drain(p);
		pen__ring_close(p->todo);
		pen__team_join(p->team);
	}
	pen__ring_free(p->todo);
	pen__ring_free(p->done);
	pen__block_fini(&p->mem);
	pen__free(p);
}

size_t pen__ckpt_pipe_block(const struct pen_ckpt_pipe *p)
{
	return p->block;
}

unsigned pen__ckpt_pipe_nblocks(const struct pen_ckpt_pipe *p)
{
	return p->nblocks;
}

static void wait_for(struct pen_ckpt_pipe *p, struct pen_ckpt_block *b)
{
	while (b->busy) {
		struct pen_ckpt_block *back =
			pen__ring_pop(p->done, NULL, true);

		back->busy = false;
	}
}

struct pen_ckpt_block *pen__ckpt_pipe_get(struct pen_ckpt_pipe *p, uint64_t i)
{
	struct pen_ckpt_block *b = &p->b[i % p->nblocks];

	wait_for(p, b);
	return b;
}

void pen__ckpt_pipe_submit(struct pen_ckpt_pipe *p, struct pen_ckpt_block *b)
{
	b->busy = true;
	pen__ring_push(p->todo, 0, b);
}

void pen__ckpt_pipe_drain(struct pen_ckpt_pipe *p)
{
	for (unsigned i = 0; i < p->nblocks; i++)
		wait_for(p, &p->b[i]);
}
