/* The steps of a sequence job, by all ranks together: each returns its time and
 * what it found. */
#ifndef PEN_EXPERIMENT_EXP_DNA_H
#define PEN_EXPERIMENT_EXP_DNA_H

#include "doc2vec/options.h"
#include "experiment/harness.h"

#define PEN_DNA_SHARDS 64 /* most shards per rank */

/* A generated file. */
struct pen_seqs {
	char name[48];	   /* "dna 1MB" */
	char path[3200];   /* of the sequences, */
	char words[3200];  /* the vocabulary, */
	char labels[3200]; /* and the two classes; "": one class */
	int letters;	   /* enum pen_synth_letters */
	double bytes;
};

/* Results of a job; times are those of the slowest rank. */
struct pen_dna_result {
	double dict_s, vocab_s;
	double real_s, user_s, system_s; /* training; CPU time of all ranks */
	double peak_bytes;
	uint64_t nkeys, value_bytes, used_bytes, total_bytes, nwords;
	uint32_t nshards, nnodes;
	struct pen_text shards; /* a line per shard */
	struct pen_text report; /* JSON of doc2vec */
};

/* Generates the file and its labels, once per host. */
int pen__dna_make(const struct pen_session *, const struct pen_seqs *,
		  struct pen_err *);
/* Fills `nshards` dictionaries over the ranks with the sequences. */
int pen__dna_fill(struct pen_ranks *, const struct pen_seqs *, uint32_t nshards,
		  struct pen_dna_result *, struct pen_err *);
int pen__dna_vocab(struct pen_ranks *, const struct pen_seqs *,
		   struct pen_dna_result *, struct pen_err *);
/* settings: of the loader, up to NULL. */
int pen__dna_train(struct pen_ranks *, const struct options *,
		   const char *const *settings, struct pen_dna_result *,
		   struct pen_err *);

#endif
