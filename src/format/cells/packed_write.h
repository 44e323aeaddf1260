/* Internal to packed_write.c and packed_chunks.c: writing the packed layout. */
#ifndef PEN_FORMAT_CELLS_PACKED_WRITE_H
#define PEN_FORMAT_CELLS_PACKED_WRITE_H

#include "base/bytes.h"
#include "format/cells/cells_write.h"

/* Elements being collected into pieces. */
struct pen_pk_column {
	enum pen_dtype dtype;
	size_t item;
	bool text;		/* row names, and their lengths */
	uint64_t n;		/* elements so far */
	struct pen_buf pending; /* less than a piece */
	struct pen_buf pieces;	/* locations of the pieces written */
};

/* A matrix in chunks of complete rows: X, or another sparse matrix. */
struct pen_pk_matrix {
	const char *path;
	enum pen_dtype dtype, indices;
	bool sparse;
	uint64_t ncols, nnz;
	uint32_t group;	       /* rows per chunk */
	uint64_t top;	       /* the largest value, see pen__numbers_pack() */
	struct pen_buf chunks; /* locations of the chunks */
	struct pen_pk_column lengths;
	/* rows of the next chunk; starts: 4 bytes each */
	struct pen_buf places, values, starts;
};

/* A chunk being packed by the threads. */
struct pen_pk_job {
	struct pen_pk_matrix *m;
	uint64_t serial;
	struct pen_buf places, values, starts;
	struct pen_buf out;
	size_t numbers; /* their offset in out */
	uint64_t top;
};

#define PEN_PK_JOBS 16u

struct pen_pk {
	/* options */
	uint64_t rows;
	char *seed, *source;
	int64_t threads;
	/* set by open() */
	int fd;
	uint64_t at; /* bytes written or queued for writing */
	struct pen_buf out;
	struct pen_pk_matrix *matrix; /* X, then the others */
	struct pen_pk_column *obs, *dense;
	/* chunks being packed */
	struct pen_ring *todo;
	struct pen_order *done;
	struct pen_team *team;
	struct pen_pk_job *job; /* PEN_PK_JOBS */
	uint64_t nqueued, nwritten;
	size_t waiting; /* bytes of queued chunks */
};

/* packed_write.c: writes out to the file if it is long enough, or if `all`. */
int pen__pk_flush(struct pen_cells_writer *, bool all, struct pen_err *);

/* packed_chunks.c. Starts threads if there are several CPUs. */
int pen__pk_team(struct pen_cells_writer *, struct pen_err *);
void pen__pk_disband(struct pen_cells_writer *);
/* Adds rows [i, i + n) of l, which fit into the next chunk; start NULL: rows
 * of ncols values. */
int pen__pk_add(struct pen_cells_writer *, struct pen_pk_matrix *,
		const struct pen_cells_lists *l, uint64_t i, uint64_t n,
		struct pen_err *);
/* Rows waiting for their chunk to fill up. */
uint64_t pen__pk_waiting(const struct pen_pk_matrix *);
/* Flushes the last chunks of all matrices to the file or to out. */
int pen__pk_end(struct pen_cells_writer *, struct pen_err *);

/* The offset of row k among the values of l. */
static inline uint64_t pen__pk_start(const struct pen_pk_matrix *m,
				     const struct pen_cells_lists *l,
				     uint64_t k)
{
	return m->sparse ? l->start[k] : k * m->ncols;
}

#endif
