/*
 * Checkpoints: which files a rank writes, of which tensors, by the rules of
 * tensor, pipeline and data parallelism and ZeRO; written as torch.save does,
 * streamed, so that memory stays within a budget whatever the model's size.
 */
#ifndef PEN_EMULATE_CHECKPOINT_H
#define PEN_EMULATE_CHECKPOINT_H

#include <stdatomic.h>

#include "emulate/config.h"

struct pen_ckpt; /* what one rank writes, computed once */

#define PEN_CKPT_BLOCK ((uint64_t)4 << 20)    /* when block_size is 0 */
#define PEN_CKPT_MEMORY ((uint64_t)256 << 20) /* when memory is 0 */

/*
 * For accelerator `rank` of `world`; the config must outlive it. Refuses a
 * world that does not fit the parallelism. Files are torch.save's whatever the
 * framework is.
 */
int pen__ckpt_new(struct pen_ckpt **out, const struct pen_config *,
		  unsigned rank, unsigned world, struct pen_err *err);
void pen__ckpt_free(struct pen_ckpt *);
uint64_t pen__ckpt_bytes(const struct pen_ckpt *); /* tensor bytes it writes */
/* What DLIO counts of it: of layers, and of optimizer state. Its total is the
 * sum over ranks, with pen__ckpt_dlio_model() in place of the layers. */
void pen__ckpt_dlio_bytes(const struct pen_ckpt *, double *layers,
			  double *optimizer);
double pen__ckpt_dlio_model(const struct pen_config *, double layers);
unsigned pen__ckpt_nfiles(const struct pen_ckpt *);
/* File i: its name and the tensor bytes in it. */
const char *pen__ckpt_file(const struct pen_ckpt *, unsigned i,
			   uint64_t *bytes);

/*
 * Writes this rank's files into
 * {checkpoint_folder}/global_epoch{E}_step{S}/, each under its final name only
 * when it is complete (and on disk, with fsync).
 */
int pen__ckpt_save(struct pen_ckpt *, unsigned epoch, uint64_t step,
		   struct pen_err *err);
/*
 * Ranks (accelerators) on a node. With checkpoint.recovery_rank_shift and more
 * than one node, load() reads what the rank with the same place on the next
 * node wrote: (rank + ranks_per_node) mod world. Until this is called (or with
 * one node) a rank reads its own.
 */
void pen__ckpt_set_node(struct pen_ckpt *, unsigned ranks_per_node);
/* Reads them back, all bytes, and with checkpoint.verify compares them with
 * what was written. With recovery_rank_shift another rank's. */
int pen__ckpt_load(struct pen_ckpt *, unsigned epoch, uint64_t step,
		   struct pen_err *err);
/* Tensor bytes that load() reads: those of the rank it reads for. */
uint64_t pen__ckpt_load_bytes(const struct pen_ckpt *);
/* Between those who save or load, in any thread, and who looks on. */
struct pen_ckpt_watch {
	atomic_bool stop;	    /* they end early, with PEN_ECLOSED */
	atomic_uint_fast64_t bytes; /* moved, or about to be */
};
/* For save() and load() from now on; NULL: nobody looks. */
void pen__ckpt_set_watch(struct pen_ckpt *, struct pen_ckpt_watch *);
/* Removes what save() wrote: one that ended early is no checkpoint. The folder
 * goes with the last file. */
void pen__ckpt_drop(const struct pen_ckpt *, unsigned epoch, uint64_t step);
/* How many checkpoints are in the folder. */
uint64_t pen__ckpt_count(const struct pen_config *);

#endif
