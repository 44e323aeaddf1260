/*
 * Random sequences in one file: DNA, RNA, proteins. Letter i of record n is a
 * function of (seed, n, i), so several threads make one file, with the same
 * result every time.
 */
#ifndef PEN_MAKE_SYNTH_SEQS_H
#define PEN_MAKE_SYNTH_SEQS_H

#include <stdbool.h>

#include "base/err.h"

enum pen_synth_letters {
	PEN_SYNTH_DNA,
	PEN_SYNTH_RNA,
	PEN_SYNTH_BOTH, /* the first half DNA, the second RNA */
	PEN_SYNTH_PROTEIN,
	/* DNA: the first half uniform, the second 0.35 A and T each */
	PEN_SYNTH_AT,
};

/*
 * size: letters plus one byte per record; other bytes (ids, headings, line
 * ends) are not counted. The last record of a half takes what is left.
 */
struct pen_synth_seqs {
	uint64_t seed, size;
	enum pen_synth_letters letters;
	uint64_t length; /* of each record, */
	bool realistic;	 /* or roughly so, with some much longer than most */
	bool fasta; /* lines of 60 under headings; else one per line, `,id` */
	unsigned threads;
	/* Called periodically with the bytes so far; a nonzero result
	 * aborts. */
	int (*tick)(void *arg, uint64_t bytes);
	void *arg;
};

struct pen_synth_made {
	uint64_t records, letters, bytes;
};
struct pen_sink;
int pen__synth_seqs_write(const struct pen_synth_seqs *, struct pen_sink *,
			  struct pen_synth_made *, struct pen_err *err);
/* Writes a file through the maker's store. */
struct pen_maker;
int pen__synth_seqs_make(const struct pen_synth_seqs *,
			 const struct pen_maker *, const char *path,
			 struct pen_synth_made *, struct pen_err *err);

#endif
