/* All experiments, and how results of each are shown. */
#include "experiment/harness.h"

const struct pen_experiment *const pen__experiments[] = {
	&pen__exp_blocks,     &pen__exp_read_chunks, &pen__exp_prefetch,
	&pen__exp_batch_size, &pen__exp_formats,     &pen__exp_shuffle,
	&pen__exp_startup,    &pen__exp_resume,	     &pen__exp_mmap,
	&pen__exp_neighbour,  &pen__exp_overlap,     &pen__exp_workers,
	&pen__exp_iterate,    &pen__exp_prealloc,    &pen__exp_memory,
	&pen__exp_headspace,  &pen__exp_dna,	     NULL,
};

const struct pen_kind *const pen__kinds[] = {
	&pen__exp_blocks.kind,
	&pen__exp_read_chunks.kind,
	&pen__exp_prefetch.kind,
	&pen__exp_batch_size.kind,
	&pen__exp_formats.kind,
	&pen__exp_shuffle.kind,
	&pen__exp_startup.kind,
	&pen__exp_resume.kind,
	&pen__exp_mmap.kind,
	&pen__exp_neighbour.kind,
	&pen__exp_overlap.kind,
	&pen__exp_workers.kind,
	&pen__exp_iterate.kind,
	&pen__exp_prealloc.kind,
	&pen__exp_memory.kind,
	&pen__exp_headspace.kind,
	&pen__exp_sweep.kind,
	&pen__exp_dna.kind,
	NULL,
};
