/* Shared by the files that implement checkpoints. */
#ifndef PEN_EMULATE_CKPT_INT_H
#define PEN_EMULATE_CKPT_INT_H

#include "emulate/checkpoint.h"
#include "make/torch_file.h"

/* --- ckpt_layout.c: files and their tensors --- */

struct pen_ckpt_file {
	char name[64];
	struct pen_torch_state state;
};
struct pen_ckpt_plan {
	struct pen_ckpt_file *file;
	size_t nfiles, cap;
	uint64_t bytes; /* all tensors */
	/* layers and optimizer state as DLIO counts them */
	double dlio_model, dlio_optimizer;
};
int pen__ckpt_plan(struct pen_ckpt_plan *, const struct pen_config *,
		   unsigned rank, unsigned world, struct pen_err *err);
void pen__ckpt_plan_fini(struct pen_ckpt_plan *);
bool pen__ckpt_is_transformer(const struct pen_config *);

/* --- ckpt_fill.c: content of tensors --- */

#define PEN_CKPT_PAGE 4096u
#define PEN_CKPT_POOL 16u /* pages of noise; all others derive from them */

struct pen_ckpt_fill {
	uint64_t *pool; /* NULL: tensors of ones */
	uint64_t key;	/* key of the current file */
};
int pen__ckpt_fill_init(struct pen_ckpt_fill *, const struct pen_config *,
			struct pen_err *err);
void pen__ckpt_fill_fini(struct pen_ckpt_fill *);
/* Selects the file to fill; no two files share a page. */
void pen__ckpt_fill_file(struct pen_ckpt_fill *, const struct pen_config *,
			 const char *name, unsigned epoch, uint64_t step);
void pen__ckpt_fill(const struct pen_ckpt_fill *,
		    const struct pen_torch_piece *, uint8_t *to);
/* Returns the number of leading bytes of p that are correct. */
size_t pen__ckpt_fill_check(const struct pen_ckpt_fill *,
			    const struct pen_torch_piece *, const uint8_t *p);

/* --- ckpt_pipe.c: asynchronous I/O of blocks --- */

struct pen_ckpt_block {
	uint8_t *p;
	size_t n; /* bytes to move; after a read: bytes read */
	uint64_t off;
	int fd;
	bool write, direct;
	bool kick; /* start write-back immediately */
	int sys;   /* errno; 0: success */
	/* used by the owner only: */
	bool busy;
};
struct pen_ckpt_pipe;
/* nblocks of `block` bytes and nthreads I/O threads. Used by one thread. */
int pen__ckpt_pipe_new(struct pen_ckpt_pipe **out, size_t block,
		       unsigned nblocks, unsigned nthreads,
		       struct pen_err *err);
void pen__ckpt_pipe_free(struct pen_ckpt_pipe *); /* NULL ok */
size_t pen__ckpt_pipe_block(const struct pen_ckpt_pipe *);
unsigned pen__ckpt_pipe_nblocks(const struct pen_ckpt_pipe *);
/* Block i mod nblocks; waits until it is idle. */
struct pen_ckpt_block *pen__ckpt_pipe_get(struct pen_ckpt_pipe *, uint64_t i);
void pen__ckpt_pipe_submit(struct pen_ckpt_pipe *, struct pen_ckpt_block *);
void pen__ckpt_pipe_drain(
	struct pen_ckpt_pipe *); /* waits until all blocks are idle */

/* --- ckpt_file.c: one file --- */

struct pen_ckpt_io {
	const struct pen_config *c;
	struct pen_ckpt_pipe *pipe;
	struct pen_ckpt_fill fill;
	struct pen_ckpt_watch *watch; /* NULL: no observer */
};
int pen__ckpt_file_save(struct pen_ckpt_io *, const struct pen_torch_state *,
			const char *path, struct pen_err *err);
int pen__ckpt_file_load(struct pen_ckpt_io *, const struct pen_torch_state *,
			const char *path, struct pen_err *err);

#endif
