/* What the parts of checkpointing share. */
#ifndef PEN_EMULATE_CKPT_INT_H
#define PEN_EMULATE_CKPT_INT_H

#include "emulate/checkpoint.h"
#include "make/torch_file.h"

/* --- ckpt_layout.c: which files, of which tensors --- */

struct pen_ckpt_file {
	char name[64];
	struct pen_torch_state state;
};
struct pen_ckpt_plan {
	struct pen_ckpt_file *file;
	size_t nfiles, cap;
	uint64_t bytes; /* of all tensors */
	/* of layers and of optimizer state, as DLIO counts them */
	double dlio_model, dlio_optimizer;
};
int pen__ckpt_plan(struct pen_ckpt_plan *, const struct pen_config *,
		   unsigned rank, unsigned world, struct pen_err *err);
void pen__ckpt_plan_fini(struct pen_ckpt_plan *);
bool pen__ckpt_is_transformer(const struct pen_config *);

/* --- ckpt_fill.c: what is in a tensor --- */

#define PEN_CKPT_PAGE 4096u
#define PEN_CKPT_POOL 16u /* pages of noise that all others are made of */

struct pen_ckpt_fill {
	uint64_t *pool; /* NULL: tensors of ones */
	uint64_t key;	/* of the file in work */
};
int pen__ckpt_fill_init(struct pen_ckpt_fill *, const struct pen_config *,
			struct pen_err *err);
void pen__ckpt_fill_fini(struct pen_ckpt_fill *);
/* Which file is next, of which checkpoint: no two have equal pages. */
void pen__ckpt_fill_file(struct pen_ckpt_fill *, const struct pen_config *,
			 const char *name, unsigned epoch, uint64_t step);
void pen__ckpt_fill(const struct pen_ckpt_fill *,
		    const struct pen_torch_piece *, uint8_t *to);
/* How many bytes of p are as they must be, from the first on. */
size_t pen__ckpt_fill_check(const struct pen_ckpt_fill *,
			    const struct pen_torch_piece *, const uint8_t *p);

/* --- ckpt_pipe.c: blocks that move while others are made --- */

struct pen_ckpt_block {
	uint8_t *p;
	size_t n; /* to move; when reading, then: moved */
	uint64_t off;
	int fd;
	bool write, direct;
	bool kick; /* start the device on it, too */
	int sys;   /* errno, 0: went well */
	/* the owner's: */
	bool busy;
};
struct pen_ckpt_pipe;
/* nblocks of `block` bytes, moved by nthreads. Used by one thread. */
int pen__ckpt_pipe_new(struct pen_ckpt_pipe **out, size_t block,
		       unsigned nblocks, unsigned nthreads,
		       struct pen_err *err);
void pen__ckpt_pipe_free(struct pen_ckpt_pipe *); /* NULL ok */
size_t pen__ckpt_pipe_block(const struct pen_ckpt_pipe *);
unsigned pen__ckpt_pipe_nblocks(const struct pen_ckpt_pipe *);
/* Block i mod nblocks, as soon as it is not in work. */
struct pen_ckpt_block *pen__ckpt_pipe_get(struct pen_ckpt_pipe *, uint64_t i);
void pen__ckpt_pipe_submit(struct pen_ckpt_pipe *, struct pen_ckpt_block *);
void pen__ckpt_pipe_drain(struct pen_ckpt_pipe *); /* until all are back */

/* --- ckpt_file.c: one file --- */

struct pen_ckpt_io {
	const struct pen_config *c;
	struct pen_ckpt_pipe *pipe;
	struct pen_ckpt_fill fill;
	struct pen_ckpt_watch *watch; /* NULL: nobody looks */
};
int pen__ckpt_file_save(struct pen_ckpt_io *, const struct pen_torch_state *,
			const char *path, struct pen_err *err);
int pen__ckpt_file_load(struct pen_ckpt_io *, const struct pen_torch_state *,
			const char *path, struct pen_err *err);

#endif
