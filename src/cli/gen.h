/* What gen's files share: they make samples, single cells, sequences. */
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
	uint64_t size, length; /* sequences */
	int lengths;
	unsigned given; /* settings that not all of GEN_... have, as bits */
	/* settled */
	char path[3072];
	const char *kind; /* of letters; NULL: no sequences */
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
enum { GEN_SAMPLES, GEN_CELLS, GEN_SEQS };
/* dna, rna, ..., or NULL: a word that is none. */
const char *gen_kind(const char *word);
/* All of it; the exit code. */
int gen_seqs(struct gen *, const struct pen_pairs *for_store);
int gen_cells(struct gen *, const struct pen_pairs *for_writer);

#endif
