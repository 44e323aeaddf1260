/*
 * Single cells from any of their formats to any that can be written, in their
 * order or shuffled, and verified: what was written is opened and compared
 * with what was read, cell by cell, before it gets its name.
 *
 * Memory: what a loader takes for the source (its index, and batches), and
 * `memory` for shuffling. It does not grow with the number of cells but by
 * the tables that an index has anyway (obs, where rows begin), and by 16 bytes
 * for every thousand cells for comparing.
 */
#ifndef PEN_MAKE_CONVERT_H
#define PEN_MAKE_CONVERT_H

#include "base/opt.h"
#include "make/convert_left.h"

enum pen_convert_phase {
	PEN_CONVERT_COUNT, /* of genes that are joined: numbers are counted */
	PEN_CONVERT_READ,  /* and written, unless cells are shuffled */
	PEN_CONVERT_WRITE, /* shuffled */
	PEN_CONVERT_VERIFY,
	PEN_CONVERT_PHASES
};

struct pen_convert {
	const struct pen_spec *source; /* paths and settings */
	const char *to;		       /* a format that cells are written to */
	const char *path;
	const struct pen_opts_kv *kv; /* the writer's settings */
	size_t nkv;
	bool shuffle, verify;
	uint64_t seed;
	uint64_t memory; /* for shuffling; 0: a quarter of what there is */
	/* Called once, when it is known what is read. May be NULL. */
	void (*opened)(const struct pen_dataset *);
	/* Called now and then; a result other than 0 ends it all. May be
	 * NULL. */
	int (*tick)(void *arg, enum pen_convert_phase, uint64_t done,
		    uint64_t total);
	void *arg;
};

struct pen_convert_result {
	uint64_t ncells, ngenes, nnz, nobs;
	uint64_t nobjects, bytes_in, bytes_out;
	uint64_t buckets, bucket_bytes; /* of shuffling */
	double seconds[PEN_CONVERT_PHASES];
	uint64_t nbeside;     /* matrices beside X */
	struct pen_left left; /* what does not come along; the caller's */
};

/* PEN_ECLOSED when tick() ended it. Nothing is left behind on failure. */
int pen__convert(const struct pen_convert *, struct pen_convert_result *,
		 struct pen_err *);

#endif
