/*
 * One file of a workload's data set: how DLIO's generator of its format would
 * write it, and whether a file that is there is that file.
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
	struct pen_opts_kv kv[PEN_DATAFILE_OPTS]; /* of the format */
	size_t nkv;
	char text[2048]; /* what kv points into */
	size_t ntext;
};

int pen__datafile_init(struct pen_datafile *, const struct pen_data_layout *,
		       struct pen_err *err);
void pen__datafile_fini(struct pen_datafile *);

/* What may come between: asked before every write of n bytes. */
struct pen_datafile_step {
	int (*step)(void *arg, size_t n, struct pen_err *);
	void *arg;
};
/* Writes file i, all or nothing. Any thread. */
int pen__datafile_write(const struct pen_datafile *, uint64_t i,
			const struct pen_datafile_step *, struct pen_err *err);
/*
 * Whether file i is there, complete, and of the shape it should have. Its
 * content is not looked at, so one that DLIO wrote will do. Any thread.
 */
bool pen__datafile_there(const struct pen_datafile *, uint64_t i);
/* About what file i takes on disk, not more. */
uint64_t pen__datafile_size(const struct pen_datafile *, uint64_t i);

/* For checking: a table that has file i's fields and samples. field: 2. */
void pen__datafile_table(const struct pen_datafile *, uint64_t i,
			 struct pen_field *field, struct pen_table *out);

#endif
