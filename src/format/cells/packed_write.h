/* Within packed_write.c and packed_chunks.c: writing the packed layout. */
#ifndef PEN_FORMAT_CELLS_PACKED_WRITE_H
#define PEN_FORMAT_CELLS_PACKED_WRITE_H

#include "base/bytes.h"
#include "format/cells/cells_write.h"

/* Elements on their way into pieces. */
struct pen_pk_column {
	enum pen_dtype dtype;
	size_t item;
	bool text;		/* names of rows, and their lengths */
	uint64_t n;		/* elements so far */
	struct pen_buf pending; /* less than a piece */
	struct pen_buf pieces;	/* where those are that were written */
};

/* A matrix in chunks of whole rows: X, or a sparse one beside it. */
struct pen_pk_matrix {
	const char *path;
	enum pen_dtype dtype, indices;
	bool sparse;
	uint64_t ncols, nnz;
	uint32_t group;	       /* rows of a chunk */
	uint64_t top;	       /* the largest number, see pen__numbers_pack() */
	struct pen_buf chunks; /* where they are */
	struct pen_pk_column lengths;
	/* rows of the next chunk; starts: 4 bytes each */
	struct pen_buf places, values, starts;
};

/* A chunk on its way through the threads. */
struct pen_pk_job {
	struct pen_pk_matrix *m;
	uint64_t serial;
	struct pen_buf places, values, starts;
	struct pen_buf out;
	size_t numbers; /* where in out they begin */
	uint64_t top;
};

#define PEN_PK_JOBS 16u

struct pen_pk {
	/* options */
	uint64_t rows;
	char *seed, *source;
	int64_t threads;
	/* from open() on */
	int fd;
	uint64_t at; /* bytes written or about to be */
	struct pen_buf out;
	struct pen_pk_matrix *matrix; /* X, then those beside it */
	struct pen_pk_column *obs, *dense;
	/* chunks that are packed */
	struct pen_ring *todo;
	struct pen_order *done;
	struct pen_team *team;
	struct pen_pk_job *job; /* PEN_PK_JOBS */
	uint64_t nqueued, nwritten;
	size_t waiting; /* bytes of chunks that are queued */
};

/* packed_write.c: out goes to the file when it is long. */
int pen__pk_flush(struct pen_cells_writer *, bool all, struct pen_err *);

/* packed_chunks.c. Threads, when there are several CPUs. */
int pen__pk_team(struct pen_cells_writer *, struct pen_err *);
void pen__pk_disband(struct pen_cells_writer *);
/* Rows [i, i + n) of l, which fit into the next chunk; start NULL: rows of
 * ncols numbers. */
int pen__pk_add(struct pen_cells_writer *, struct pen_pk_matrix *,
		const struct pen_cells_lists *l, uint64_t i, uint64_t n,
		struct pen_err *);
/* Rows that wait for their chunk to be full. */
uint64_t pen__pk_waiting(const struct pen_pk_matrix *);
/* The last chunks of all matrices are in the file, or in out. */
int pen__pk_end(struct pen_cells_writer *, struct pen_err *);

/* Where row k begins among the numbers of l. */
static inline uint64_t pen__pk_start(const struct pen_pk_matrix *m,
				     const struct pen_cells_lists *l,
				     uint64_t k)
{
	return m->sparse ? l->start[k] : k * m->ncols;
}

#endif
