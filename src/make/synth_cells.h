/*
 * Generates single cells that resemble measured ones: few genes with high
 * means, three counts in four equal to 1, libraries of all sizes, cell types
 * with their own markers, plates one after another. A row is a function of
 * (seed, file, row), so any thread can make any rows, with the same result.
 */
#ifndef PEN_MAKE_SYNTH_CELLS_H
#define PEN_MAKE_SYNTH_CELLS_H

#include <stdbool.h>

#include "base/opt.h"

struct pen_synth_cells_setup {
	uint64_t seed;
	uint64_t file; /* its number among several */
	uint64_t ncells, ngenes;
	double density; /* mean share of nonzero values */
	double overlap; /* share of genes common to all files */
	enum pen_dtype dtype;
	uint32_t npca; /* columns of obsm/X_pca; 0: none */
	bool dense;    /* X */
};

struct pen_synth_cells;
int pen__synth_cells_new(struct pen_synth_cells **out,
			 const struct pen_synth_cells_setup *,
			 struct pen_err *err);
void pen__synth_cells_free(struct pen_synth_cells *);
/* Nonzero values, and bytes of the matrix before compression. */
uint64_t pen__synth_cells_numbers(const struct pen_synth_cells *);
uint64_t pen__synth_cells_bytes(const struct pen_synth_cells *);
/* For a writer; valid until the cells are freed. */
struct pen_cells_spec;
struct pen_cells_rows;
const struct pen_cells_spec *
pen__synth_cells_spec(const struct pen_synth_cells *);

/* Some rows, and what a thread needs to make them. */
struct pen_synth_rows;
int pen__synth_rows_new(struct pen_synth_rows **out,
			const struct pen_synth_cells *, uint32_t most,
			struct pen_err *err);
void pen__synth_rows_free(struct pen_synth_rows *);
/* Rows [first, first + n), n <= most: valid until the next call. NULL: out
 * of memory. */
const struct pen_cells_rows *pen__synth_rows_make(struct pen_synth_rows *,
						  uint64_t first, uint32_t n);

/* Writes all rows to one file, made by several threads. */
struct pen_synth_cells_run {
	const char *format;	      /* output format */
	const struct pen_opts_kv *kv; /* for the writer */
	size_t nkv;
	const char *path;
	unsigned threads; /* 0: one per CPU */
	/* Called after rows were written; a nonzero result aborts
	 * (PEN_ECLOSED). May be NULL. */
	int (*tick)(void *arg, uint64_t nrows);
	void *arg;
};
int pen__synth_cells_write(const struct pen_synth_cells *,
			   const struct pen_synth_cells_run *,
			   struct pen_err *err);

#endif
