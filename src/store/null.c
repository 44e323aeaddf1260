/*
 * The store that does nothing: objects of a given size, reads that finish
 * immediately and leave the buffer AS IT WAS, writes that are counted and
 * dropped. It measures the cost of everything above the stores. Contents have
 * no meaning here, so only formats that accept any bytes can use it; names have
 * no suffix, and list() accepts any path.
 */
#include "store/files.h"

#include <inttypes.h>
#include <stdio.h>

struct null_store {
	uint64_t size, objects;
};

struct null_queue {
	struct pen_done done; /* first */
};

static const struct pen_opt opts[] = {
	{ .name = "size",
	  .type = PEN_OPT_SIZE,
	  .off = offsetof(struct null_store, size),
	  .dflt = "1GiB",
	  .min = 0,
	  .max = 0x1p53,
	  .help = "size of each object in bytes" },
	{ .name = "objects",
	  .type = PEN_OPT_COUNT,
	  .off = offsetof(struct null_store, objects),
	  .dflt = "1",
	  .min = 1,
	  .max = 1e9,
	  .help = "number of objects" },
	{ .name = NULL },
};

static int null_list(struct pen_store *st, const char *path, pen_keep_fn *keep,
		     void *arg, struct pen_objects *set, struct pen_err *err)
{
	const struct null_store *n = st->priv;
	uint32_t dir;
	char name[32];
	int rc;

	(void)path;
	(void)keep;
	(void)arg;
	rc = pen__objects_add_dir(set, "", 0, 0, &dir);
	for (uint64_t i = 0; i < n->objects && !rc; i++) {
		snprintf(name, sizeof(name), "null-%" PRIu64, i);
		rc = pen__objects_add(set, dir, name, n->size, 0);
	}
	if (rc == PEN_ENOMEM)
		return pen__fail_nomem(err, "null", 0);
	return rc ? pen__fail(
			    err, P_BAD_VALUE, "null",
			    "objects x size exceeds 64 bits; lower one of them")
		  : 0;
}

static int null_queue_open(struct pen_queue *q, struct pen_err *err)
{
	(void)q;
	(void)err;
	return 0;
}

static void null_queue_close(struct pen_queue *q)
{
	(void)q;
}

static int null_submit(struct pen_queue *q, struct pen_io *io)
{
	const uint64_t size = q->st->objs->obj[io->object].size;
	const uint64_t off = io->offset < size ? io->offset : size;
	struct null_queue *p = q->priv;

	if (p->done.n >= q->depth)
		return PEN_END;
	pen__io_end(io, (int64_t)(io->len < size - off ? io->len : size - off),
		    0);
	pen__done_push(&p->done, io);
	return 0;
}

static int null_sink_open(struct pen_sink *s, const char *path,
			  struct pen_err *err)
{
	(void)s;
	(void)path;
	(void)err;
	return 0;
}

static int null_sink_write(struct pen_sink *s, const void *p, size_t n,
			   struct pen_err *err)
{
	(void)s;
	(void)p;
	(void)n;
	(void)err;
	return 0;
}

static int null_sink_close(struct pen_sink *s, bool commit, struct pen_err *err)
{
	(void)s;
	(void)commit;
	(void)err;
	return 0;
}

const struct pen_store_ops pen__store_null = {
	.name = "null",
	.help = "no data at all: measures everything except storage",
	.opts = opts,
	.priv_size = sizeof(struct null_store),
	.queue_size = sizeof(struct null_queue),
	.list = null_list,
	.queue_open = null_queue_open,
	.queue_close = null_queue_close,
	.submit = null_submit,
	.reap = pen__done_reap,
	.sink_open = null_sink_open,
	.sink_write = null_sink_write,
	.sink_close = null_sink_close,
};
