/*
 * One file of the data set of a workload: how the generator of DLIO would write
 * it, and whether an existing file matches.
 */
#ifndef PEN_EMULATE_DATAFILE_H
#define PEN_EMULATE_DATAFILE_H

#include "emulate/layout.h"
#include "make/synth.h"
#include "make/maker.h"

#define PEN_DATAFILE_OPTS 10

struct pen_datafile {
	const struct pen_data_layout *l;
	const char *format;
	struct pen_maker *maker; /* shared by all threads */
	struct pen_synth synth;
	bool packed; /* members or chunks are compressed */
	struct pen_opts_kv kv[PEN_DATAFILE_OPTS]; /* options of the format */
	size_t nkv;
	char text[2048]; /* storage for kv */
	size_t ntext;
};

int pen__datafile_init(struct pen_datafile *, const struct pen_data_layout *,
		       struct pen_err *err);
void pen__datafile_fini(struct pen_datafile *);

/* Called before every write of n bytes; an error stops the file. */
struct pen_datafile_step {
	int (*step)(void *arg, size_t n, struct pen_err *);
	void *arg;
};
/* Writes file i atomically. Any thread. */
int pen__datafile_write(const struct pen_datafile *, uint64_t i,
			const struct pen_datafile_step *, struct pen_err *err);
/*
 * True if file i exists, is complete and has the right shape. Its content is
 * not compared, so a file written by DLIO is accepted. Any thread.
 */
bool pen__datafile_there(const struct pen_datafile *, uint64_t i);
/* Estimated bytes on disk of file i, not more. */
uint64_t pen__datafile_size(const struct pen_datafile *, uint64_t i);

/* For comparison: a table with the fields and samples of file i. field: room
 * for 2. */
void pen__datafile_table(const struct pen_datafile *, uint64_t i,
			 struct pen_field *field, struct pen_table *out);

#endif
