/*
 * A reader of zarr, versions 2 and 3: groups, arrays, attributes, and the
 * locations of an array's chunks. A store is a directory, whose files are
 * objects of the data set, or a zip archive, which is one object. Keys are
 * paths from the root of the store, separated by '/'.
 *
 * Input is untrusted: documents over a size limit are refused, and a shape is
 * accepted only as far as the existing files can contain it.
 */
#ifndef PEN_FORMAT_CELLS_ZARR_H
#define PEN_FORMAT_CELLS_ZARR_H

#include "base/json.h"
#include "format/cells/cells_file.h"
#include "format/chunked/chunks.h"
#include "format/zip.h"

#define PEN_ZARR_PATH 768
#define PEN_ZARR_OWN (PEN_NO_OBJECT - 1) /* the object being indexed */

/* ---- the store ---- */

struct pen_zarr {
	struct pen_peek *pk;
	int version;	 /* 2 or 3 */
	uint64_t nfiles; /* upper bound of the files; 0: unknown */
	/* zip */
	bool zipped;
	struct pen_zip zip;
	uint32_t *by_name; /* members, by name; the last of equal ones */
	size_t nnames;
	char prefix[PEN_ZARR_PATH]; /* the folder in the archive, or "" */
};

/* A value of the store: bytes of an object. */
struct pen_zarr_part {
	uint64_t at, len;
	uint64_t size; /* uncompressed; without deflate: len */
	uint32_t object;
	uint32_t crc;
	bool deflated; /* by the archive */
};

/*
 * pk is the marker file at the root of a store, or an archive. nfiles: the
 * number of objects.
 */
int pen__zarr_open(struct pen_zarr *, struct pen_peek *, uint64_t nfiles,
		   struct pen_err *);
void pen__zarr_close(struct pen_zarr *);
bool pen__zarr_find(const struct pen_zarr *, const char *key,
		    struct pen_zarr_part *);
/* Reads len bytes of it, as stored. */
int pen__zarr_read(const struct pen_zarr *, const struct pen_zarr_part *,
		   uint64_t off, void *buf, size_t len, struct pen_err *);
/* Reads all of it, at most limit bytes; key for messages. */
int pen__zarr_load(const struct pen_zarr *, const struct pen_zarr_part *,
		   const char *key, uint64_t limit, struct pen_buf *,
		   struct pen_err *);
/* Visits the directories of the store, "a/b", in any order, some more than
 * once. */
void pen__zarr_dirs(const struct pen_zarr *,
		    void (*see)(void *arg, const char *dir), void *arg);
/* "FILE:key", FILE being the store. */
void pen__zarr_where(const struct pen_zarr *, const char *key, char *buf,
		     size_t cap);

/* Whether this file, by its name, is the marker of its directory; and
 * whether it represents a store, because no enclosing directory is one. */
bool pen__zarr_is_marker(struct pen_peek *);
/* (A group of stores dataset_N does not count: each of them is a store.) */
int pen__zarr_is_root(struct pen_peek *, bool *root, struct pen_err *);

/* ---- nodes ---- */

struct pen_zarr_node {
	char path[PEN_ZARR_PATH]; /* "" is the root */
	bool group;
	struct pen_jdoc meta; /* of an array, or of either kind in version 3 */
	struct pen_jdoc own;  /* version 2: attributes */
};

/* 1, 0 if it does not exist, or an error. Must be closed in any case. */
int pen__zarr_node_open(const struct pen_zarr *, const char *path,
			struct pen_zarr_node *, struct pen_err *);
void pen__zarr_node_close(struct pen_zarr_node *);
/* An attribute, and the document that contains it; PEN_JDOC_NONE: none. */
uint32_t pen__zarr_attr(const struct pen_zarr_node *, const char *name,
			const struct pen_jdoc **);

/* Whether it is a group of stores dataset_N, as annbatch writes them. */
bool pen__zarr_is_collection(const struct pen_zarr_node *);

/* ---- arrays ---- */

enum pen_zarr_text {
	PEN_ZARR_NUMBERS,
	PEN_ZARR_VLEN,	/* count, then each: length, UTF-8 */
	PEN_ZARR_UTF32, /* of fixed length */
	PEN_ZARR_BYTES, /* of fixed length */
	PEN_ZARR_OTHER, /* not supported */
};

struct pen_zarr_array {
	enum pen_zarr_text text;
	int dtype; /* enum pen_dtype, or -1 */
	char type_name[48];
	size_t item; /* bytes of an element; 0: variable */
	bool swap;
	uint8_t fill[8]; /* in native byte order */
	uint32_t ndim;
	uint64_t dim[PEN_MAX_DIMS];
	uint64_t chunk[PEN_MAX_DIMS]; /* the unit of decompression */
	uint64_t chunk_bytes;	      /* numbers and fixed-length text */
	uint64_t
		file[PEN_MAX_DIMS]; /* contents of a file: a chunk or a shard */
	bool sharded, index_first, index_crc;
	char separator;
	bool under_c; /* keys are c/0/0 */
	bool fortran; /* within a chunk the first axis varies fastest */
	struct pen_filters filters; /* applied to a chunk */
};

int pen__zarr_array(const struct pen_zarr *, const struct pen_zarr_node *,
		    struct pen_zarr_array *, struct pen_err *);

/*
 * Finds the stored chunks; absent: receives those that are not stored, or NULL.
 * Compression by the archive becomes a step of the array's filters.
 */
int pen__zarr_chunks(const struct pen_zarr *, const struct pen_zarr_node *,
		     struct pen_zarr_array *, struct pen_chunks *,
		     struct pen_cells_absent *, struct pen_err *);
/* Appends the array to a blob. */
void pen__zarr_put(const struct pen_zarr *, const struct pen_zarr_array *,
		   const struct pen_chunks *, struct pen_chunked_put *);

/* The blocks that chunks of a list are divided into. */
struct pen_zarr_blocks {
	uint64_t cols; /* elements of a block; 0: not divided */
	uint32_t head; /* the first bytes of all headers */
};
/*
 * Chunks packed by Blosc alone can be unpacked block by block. The blocks
 * replace the chunks, and a mask marks blocks that are stored uncompressed.
 * Nothing changes if the chunks differ from each other or are damaged.
 */
int pen__zarr_blocks(const struct pen_zarr *, const struct pen_zarr_array *,
		     struct pen_chunks *, struct pen_zarr_blocks *,
		     struct pen_err *);

/* Arrays of a store that is not AnnData: see pen_cells_source.plain. */
int pen__zarr_plain(struct pen_cells_file *, const struct pen_cells *,
		    struct pen_found *);

/*
 * Reads an entire list: numbers in native byte order, or strings, each as its
 * length (4 bytes) and its bytes. The caller finalises *out.
 */
int pen__zarr_read_list(const struct pen_zarr *, const struct pen_zarr_node *,
			struct pen_zarr_array *, struct pen_buf *out,
			struct pen_cells_absent *, struct pen_err *);

#endif
