/*
 * Converts single cells between their formats, in order or shuffled, with
 * verification: the copy is opened and compared with the source, cell by cell,
 * before it gets its name.
 *
 * Memory: what a loader of the source takes (its index and batches), plus
 * `memory` for shuffling. It does not grow with the number of cells, apart from
 * the tables that an index has anyway (obs, row offsets) and 16 bytes per
 * thousand cells for the comparison.
 */
#ifndef PEN_MAKE_CONVERT_H
#define PEN_MAKE_CONVERT_H

#include "base/opt.h"
#include "make/convert_left.h"

enum pen_convert_phase {
	PEN_CONVERT_COUNT, /* with joined genes: count values */
	PEN_CONVERT_READ,  /* and write, unless cells are shuffled */
	PEN_CONVERT_WRITE, /* shuffled cells */
	PEN_CONVERT_VERIFY,
	PEN_CONVERT_PHASES
};

struct pen_convert {
	const struct pen_spec *source; /* paths and settings */
	const char *to;		       /* a format that can be written */
	const char *path;
	const struct pen_opts_kv *kv; /* the writer's settings */
	size_t nkv;
	bool shuffle, verify;
	uint64_t seed;
	uint64_t memory; /* for shuffling; 0: 1/4 of what is available */
	/* Called once, after the source was opened. May be NULL. */
	void (*opened)(const struct pen_dataset *);
	/* Called periodically; a nonzero result aborts the conversion. May
	 * be NULL. */
	int (*tick)(void *arg, enum pen_convert_phase, uint64_t done,
		    uint64_t total);
	void *arg;
};

struct pen_convert_result {
	uint64_t ncells, ngenes, nnz, nobs;
	uint64_t nobjects, bytes_in, bytes_out;
	uint64_t buckets, bucket_bytes; /* of the shuffle */
	double seconds[PEN_CONVERT_PHASES];
	uint64_t nbeside;     /* matrices other than X */
	struct pen_left left; /* what is not copied; owned by the caller */
};

/* PEN_ECLOSED if tick() aborted it. A failed conversion leaves no files. */
int pen__convert(const struct pen_convert *, struct pen_convert_result *,
		 struct pen_err *);

#endif
