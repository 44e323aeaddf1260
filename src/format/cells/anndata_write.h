/*
 * AnnData's tree, for writers of it: which groups and arrays there are, with
 * which attributes, and arrays cut into chunks that several threads pack. What
 * a group, an array and a chunk look like on the disk is the sink's: HDF5 or
 * zarr. The sink is called by the thread that calls the writer only, chunks in
 * the order in which they filled up: the same rows give the same bytes,
 * however many threads there are.
 */
#ifndef PEN_FORMAT_CELLS_ANNDATA_WRITE_H
#define PEN_FORMAT_CELLS_ANNDATA_WRITE_H

#include "base/bytes.h"
#include "codec/pack.h"
#include "format/cells/cells_write.h"

/* A node's attributes; NULL where it has none of a kind. */
struct pen_ad_attrs {
	const char *type, *version; /* encoding-type and -version */
	const uint64_t *shape;	    /* of a sparse matrix: two */
	const char *index;	    /* of a frame: _index, and column-order: */
	const struct pen_cells_column_spec *columns; /* without the index */
	uint32_t ncolumns;
	const bool *ordered;
};

struct pen_ad_array {
	char *path; /* "obs/cell_type/codes" */
	enum pen_dtype dtype;
	bool text;  /* rows are strings, not dtype */
	bool list;  /* one axis; else nrows x ncols */
	bool grows; /* anndata lets it */
	bool is_x;  /* of the matrix: chunk= is for it */
	uint64_t nrows, ncols;
	uint64_t chunk; /* rows of one; text: likewise */
	size_t row;	/* bytes; of text: 0 */
	/* Set by the sink in array(): */
	bool plain;  /* chunks are not packed */
	bool ragged; /* the last chunk ends with the array, not full */
	int64_t id;
	uint64_t nchunks; /* in a shard */
	void *priv;	  /* freed with the array */
	/* being filled: */
	struct pen_buf part;
	uint64_t have, ndone; /* rows in part; chunks before */
};

/*
 * Bytes of text: how many rows (4 bytes), then each one's length (4 bytes) and
 * characters, which is how zarr stores them.
 */
struct pen_ad_chunk {
	uint64_t number, nrows; /* nrows: without the filling at the end */
	const uint8_t *p;
	size_t n;
	bool unpacked; /* packing would have made it larger */
};

struct pen_ad;
struct pen_ad_sink {
	uint64_t chunk_base; /* what usual chunks grow from, in bytes */
	int (*group)(struct pen_ad *, const char *path,
		     const struct pen_ad_attrs *, struct pen_err *);
	int (*array)(struct pen_ad *, struct pen_ad_array *,
		     const struct pen_ad_attrs *, struct pen_err *);
	int (*chunk)(struct pen_ad *, struct pen_ad_array *,
		     const struct pen_ad_chunk *, struct pen_err *);
};

/* A sparse matrix; or a dense one, in data alone. */
struct pen_ad_matrix {
	struct pen_ad_array *data, *indices, *indptr;
};

struct pen_ad_job;
struct pen_ad_column;
struct pen_ad {
	/* set by who opens: */
	const struct pen_ad_sink *sink;
	const struct pen_packer *packer; /* NULL: chunks stay as they are */
	struct pen_pack how;
	bool shuffle;	/* bytes, before packing, apart from the packer's */
	uint64_t chunk; /* numbers in a chunk of the matrix; 0: usual */
	unsigned threads;
	/* its own: */
	struct pen_cells_writer *w;
	struct pen_ad_array **array; /* in the order they were made */
	uint32_t narrays;
	struct pen_ad_matrix x, *csr;
	struct pen_ad_column *obs, *var; /* one more: an index of numbers */
	struct pen_ad_array **dense;
	struct pen_ring *todo;
	struct pen_order *done;
	struct pen_team *team;
	struct pen_scratch *scratch; /* per thread */
	struct pen_ad_job *job;
	unsigned njobs;
	uint64_t nqueued, nwritten;
};

/* Makes all nodes and writes var. close() in any case. */
int pen__ad_open(struct pen_ad *, struct pen_cells_writer *, struct pen_err *);
int pen__ad_rows(struct pen_ad *, const struct pen_cells_rows *,
		 struct pen_err *);
/* Hands the last chunks to the sink. */
int pen__ad_finish(struct pen_ad *, struct pen_err *);
void pen__ad_close(struct pen_ad *);

/* anndata_chunks.c: arrays being filled. */
int pen__ad_team(struct pen_ad *, struct pen_err *);
void pen__ad_disband(struct pen_ad *);
/* Room for n > 0 rows, and then as many were put there. */
void *pen__ad_room(struct pen_ad *, struct pen_ad_array *, uint64_t *n,
		   struct pen_err *);
int pen__ad_added(struct pen_ad *, struct pen_ad_array *, uint64_t n,
		  struct pen_err *);
int pen__ad_put(struct pen_ad *, struct pen_ad_array *, const void *,
		uint64_t n, struct pen_err *);
int pen__ad_put_text(struct pen_ad *, struct pen_ad_array *, const char *,
		     struct pen_err *);
int pen__ad_flush(struct pen_ad *, struct pen_ad_array *, struct pen_err *);
int pen__ad_drain(struct pen_ad *, struct pen_err *);

#endif
