/*
 * The AnnData tree for its writers: the groups and arrays with their
 * attributes, and arrays cut into chunks that several threads compress. The
 * sink (HDF5 or zarr) defines how a group, an array and a chunk are stored. It
 * is called only from the thread that calls the writer, with chunks in the
 * order in which they fill up: the same rows give the same bytes for any number
 * of threads.
 */
#ifndef PEN_FORMAT_CELLS_ANNDATA_WRITE_H
#define PEN_FORMAT_CELLS_ANNDATA_WRITE_H

#include "base/bytes.h"
#include "codec/pack.h"
#include "format/cells/cells_write.h"

/* Attributes of a node; NULL for those it does not have. */
struct pen_ad_attrs {
	const char *type, *version; /* encoding-type and -version */
	const uint64_t *shape;	    /* of a sparse matrix: two numbers */
	const char *index;	    /* of a frame: _index; column-order is: */
	const struct pen_cells_column_spec *columns; /* without the index */
	uint32_t ncolumns;
	const bool *ordered;
};

struct pen_ad_array {
	char *path; /* "obs/cell_type/codes" */
	enum pen_dtype dtype;
	bool text;  /* rows are strings, not dtype */
	bool list;  /* one axis; else nrows x ncols */
	bool grows; /* anndata creates it resizable */
	bool is_x;  /* belongs to X: chunk= applies to it */
	uint64_t nrows, ncols;
	uint64_t chunk; /* rows per chunk, also of text */
	size_t row;	/* bytes; 0 for text */
	/* Set by the sink in array(): */
	bool plain;  /* chunks are not compressed */
	bool ragged; /* the last chunk may be partial */
	int64_t id;
	uint64_t nchunks; /* per shard */
	void *priv;	  /* freed with the array */
	/* being filled: */
	struct pen_buf part;
	uint64_t have, ndone; /* rows in part; chunks before */
};

/*
 * Encoding of text: the number of rows (4 bytes), then the length (4 bytes) and
 * characters of each, as zarr stores them.
 */
struct pen_ad_chunk {
	uint64_t number, nrows; /* nrows: without padding */
	const uint8_t *p;
	size_t n;
	bool unpacked; /* compression would have made it larger */
};

struct pen_ad;
struct pen_ad_sink {
	uint64_t chunk_base; /* base of the default chunk size, in bytes */
	int (*group)(struct pen_ad *, const char *path,
		     const struct pen_ad_attrs *, struct pen_err *);
	int (*array)(struct pen_ad *, struct pen_ad_array *,
		     const struct pen_ad_attrs *, struct pen_err *);
	int (*chunk)(struct pen_ad *, struct pen_ad_array *,
		     const struct pen_ad_chunk *, struct pen_err *);
};

/* A sparse matrix; or a dense one, in data only. */
struct pen_ad_matrix {
	struct pen_ad_array *data, *indices, *indptr;
};

struct pen_ad_job;
struct pen_ad_column;
struct pen_ad {
	/* set by the caller of pen__ad_open(), partly as options: */
	const struct pen_ad_sink *sink;
	const struct pen_packer *packer; /* NULL: no compression */
	struct pen_pack how;
	bool shuffle;	/* byte shuffle as a separate step before the packer */
	uint64_t chunk; /* values per chunk of X; 0: default */
	int64_t level, threads;
	/* private: */
	struct pen_cells_writer *w;
	struct pen_ad_array **array; /* in order of creation */
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

/* Sets packer and how for a compression; name: what the user calls it. */
int pen__ad_compress(struct pen_ad *, const char *packer, const char *name,
		     struct pen_err *);
/* Creates all nodes and writes var. Must be closed even after an error. */
int pen__ad_open(struct pen_ad *, struct pen_cells_writer *, struct pen_err *);
/* For a writer whose private data starts with a pen_ad. */
int pen__ad_rows(struct pen_cells_writer *, const struct pen_cells_rows *,
		 struct pen_err *);
/* Passes the last chunks to the sink. */
int pen__ad_finish(struct pen_ad *, struct pen_err *);
void pen__ad_close(struct pen_ad *);

/* anndata_chunks.c: arrays being filled. */
int pen__ad_team(struct pen_ad *, struct pen_err *);
void pen__ad_disband(struct pen_ad *);
/* Returns room for up to *n > 0 rows; pen__ad_added() reports how many were
 * written there. */
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
