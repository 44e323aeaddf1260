/* What gen's files share: they make samples, single cells, sequences. */
#ifndef PEN_CLI_GEN_H
#define PEN_CLI_GEN_H

#include <stdatomic.h>

#include "cli/cli.h"
#include "base/pairs.h"
#include "make/maker.h"

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
	const char *kind;		 /* of letters; NULL: no sequences */
	bool single, force, json, typed; /* typed: dtype= was given */
	bool many;	/* what is for several files was given */
	char hint[256]; /* settings to load it with */
	const char *suffix;
	const char *made;  /* the format */
	const char *cells; /* the same, of single cells; else NULL */
	struct pen_maker *maker;
	struct pen_pairs for_store, for_format; /* store.X=, format.X= */
	struct pen_field field[2];
	uint32_t nfields;
	uint64_t file_bytes; /* payload of one, about */
	/* running */
	atomic_uint_fast64_t bytes;
	struct progress progress;
};

void gen_file_name(const struct gen *, uint64_t i, char *buf, size_t cap);
int gen_check_target(struct gen *, struct pen_err *err);
/* Does PATH have a name that goes with this format, and with files=? */
int gen_check_name(const struct gen *, const char *format, struct pen_err *err);
/* Which settings a loader needs for what was made, into hint. */
void gen_settle_hint(struct gen *);
void gen_print_hint(const struct gen *); /* ends the line */
enum { GEN_SAMPLES, GEN_CELLS, GEN_SEQS };
/* dna, rna, ..., or NULL: a word that is none. */
const char *gen_kind(const char *word);
/* All of it; the exit code. */
int gen_seqs(struct gen *);
int gen_cells(struct gen *);

#endif
