/*
 * Checkpoints: the files that a rank writes and the tensors in them, by the
 * rules of tensor, pipeline and data parallelism and ZeRO. Files have the
 * format of torch.save and are streamed, so that memory stays within a budget
 * whatever the size of the model.
 */
#ifndef PEN_EMULATE_CHECKPOINT_H
#define PEN_EMULATE_CHECKPOINT_H

#include <stdatomic.h>

#include "emulate/config.h"

struct pen_ckpt; /* the files of one rank; computed once */

#define PEN_CKPT_BLOCK ((uint64_t)4 << 20)    /* when block_size is 0 */
#define PEN_CKPT_MEMORY ((uint64_t)256 << 20) /* when memory is 0 */

/*
 * For accelerator `rank` of `world`; the config must outlive it. Fails if the
 * world does not match the parallelism. The format is that of torch.save
 * whatever the framework.
 */
int pen__ckpt_new(struct pen_ckpt **out, const struct pen_config *,
		  unsigned rank, unsigned world, struct pen_err *err);
void pen__ckpt_free(struct pen_ckpt *);
uint64_t pen__ckpt_bytes(const struct pen_ckpt *); /* tensor bytes it writes */
/* The sizes that DLIO counts: layers and optimizer state. Its total is the sum
 * over ranks, with pen__ckpt_dlio_model() in place of the layers. */
void pen__ckpt_dlio_bytes(const struct pen_ckpt *, double *layers,
			  double *optimizer);
double pen__ckpt_dlio_model(const struct pen_config *, double layers);
unsigned pen__ckpt_nfiles(const struct pen_ckpt *);
/* File i: its name and the tensor bytes in it. */
const char *pen__ckpt_file(const struct pen_ckpt *, unsigned i,
			   uint64_t *bytes);

/*
 * Writes the files of this rank to
 * {checkpoint_folder}/global_epoch{E}_step{S}/. A file gets its final name only
 * when it is complete (and on disk, with fsync).
 */
int pen__ckpt_save(struct pen_ckpt *, unsigned epoch, uint64_t step,
		   struct pen_err *err);
/*
 * Sets the number of ranks (accelerators) per node. With
 * checkpoint.recovery_rank_shift and more than one node, load() reads the files
 * of the rank at the same position on the next node: (rank + ranks_per_node)
 * mod world. Without this call, or with one node, a rank reads its own files.
 */
void pen__ckpt_set_node(struct pen_ckpt *, unsigned ranks_per_node);
/* Reads all bytes back and, with checkpoint.verify, compares them with what was
 * written. */
int pen__ckpt_load(struct pen_ckpt *, unsigned epoch, uint64_t step,
		   struct pen_err *err);
/* Tensor bytes that load() reads, possibly those of another rank. */
uint64_t pen__ckpt_load_bytes(const struct pen_ckpt *);
/* Shared by the threads that save or load and an observer; any thread. */
struct pen_ckpt_watch {
	atomic_bool stop;	    /* makes them return PEN_ECLOSED */
	atomic_uint_fast64_t bytes; /* written or read, or submitted */
};
/* For later calls of save() and load(); NULL: no observer. */
void pen__ckpt_set_watch(struct pen_ckpt *, struct pen_ckpt_watch *);
/* Removes the files of an interrupted save(), and the directory with the last
 * file. */
void pen__ckpt_drop(const struct pen_ckpt *, unsigned epoch, uint64_t step);
/* Number of checkpoints in the directory. */
uint64_t pen__ckpt_count(const struct pen_config *);

#endif
