/* What gen's files share: one makes samples, the other single cells. */
#ifndef PEN_CLI_GEN_H
#define PEN_CLI_GEN_H

#include <stdatomic.h>

#include "cli/cli.h"
#include "engine/spec.h"
#include "format/cells_write.h"
#include "format/format.h"
#include "store/store.h"

struct gen {
	/* settings */
	char *format, *dtype, *shape, *prefix, *store;
	uint64_t files, samples, classes, subfolders, seed, genes, pca;
	double density, overlap;
	int64_t threads;
	bool dense;
	const char *odd[2]; /* a setting that only samples, or cells, have */
	/* settled */
	char path[3072];
	bool single, force, json;
	const char *suffix;
	const struct pen_format_ops *ops;
	struct pen_format *f;
	const struct pen_cells_writer_ops *writer; /* single cells */
	struct pen_store *st;
	struct pen_field field[2];
	uint32_t nfields;
	uint64_t file_bytes; /* payload of one, about */
	/* running */
	atomic_uint_fast64_t bytes;
	struct progress progress;
};

void gen_file_name(const struct gen *, uint64_t i, char *buf, size_t cap);
int gen_check_target(struct gen *, struct pen_err *err);
/* All of it; the exit code. */
int gen_cells(struct gen *, const struct pen_pairs *for_writer);

#endif
