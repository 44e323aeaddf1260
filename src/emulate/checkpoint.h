/*
 * Checkpoints: which files a rank writes, of which tensors, by the rules of
 * tensor, pipeline and data parallelism and ZeRO; written as torch.save does,
 * streamed, so that memory stays within a budget whatever the model's size.
 */
#ifndef PEN_EMULATE_CHECKPOINT_H
#define PEN_EMULATE_CHECKPOINT_H

#include "emulate/config.h"

struct pen_ckpt; /* what one rank writes, computed once */

/* For accelerator `rank` of `world`. */
int pen__ckpt_new(struct pen_ckpt **out, const struct pen_config *,
		  unsigned rank, unsigned world, struct pen_err *err);
void pen__ckpt_free(struct pen_ckpt *);
uint64_t pen__ckpt_bytes(const struct pen_ckpt *); /* tensor bytes it writes */
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
/* Reads them back, all bytes, and with checkpoint.verify compares them with
 * what was written. With recovery_rank_shift another rank's. */
int pen__ckpt_load(struct pen_ckpt *, unsigned epoch, uint64_t step,
		   struct pen_err *err);
/* How many checkpoints are in the folder. */
uint64_t pen__ckpt_count(const struct pen_config *);

#endif
