/* Shared by the files of gen, which make samples, single cells, sequences. */
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
	unsigned given; /* bit mask of the given settings that are listed in
			   `only` */
	/* settled */
	char path[3072];
	const char *kind;		 /* of letters; NULL: not sequences */
	bool single, force, json, typed; /* typed: dtype= was given */
	bool many;	/* a setting for several files was given */
	char hint[256]; /* settings needed to load it */
	const char *suffix;
	const char *made;  /* the format */
	const char *cells; /* the same if single cells, otherwise NULL */
	struct pen_maker *maker;
	struct pen_pairs for_store, for_format; /* store.X=, format.X= */
	struct pen_field field[2];
	uint32_t nfields;
	uint64_t file_bytes; /* approximate payload of one */
	/* running */
	atomic_uint_fast64_t bytes;
	struct progress progress;
};

void gen_file_name(const struct gen *, uint64_t i, char *buf, size_t cap);
int gen_check_target(struct gen *, struct pen_err *err);
/* Checks that the name of PATH agrees with the format and files=. */
int gen_check_name(const struct gen *, const char *format, struct pen_err *err);
/* Stores the settings that a loader needs in hint. */
void gen_settle_hint(struct gen *);
enum { GEN_SAMPLES, GEN_CELLS, GEN_SEQS };
/* dna, rna, ..., or NULL for any other word. */
const char *gen_kind(const char *word);
/* Each does all of the work and returns the exit code. */
int gen_seqs(struct gen *);
int gen_cells(struct gen *);

#endif
