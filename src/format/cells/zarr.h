/*
 * A reader of zarr, versions 2 and 3: groups, arrays, attributes, and where an
 * array's chunks lie. A store is a directory, whose files are objects of the
 * data set, or a zip archive, which is one object. Keys are paths from the
 * root of the store, with '/' between.
 *
 * Input is hostile: a document is small or refused, a shape is believed as far
 * as the files that are there can hold it.
 */
#ifndef PEN_FORMAT_CELLS_ZARR_H
#define PEN_FORMAT_CELLS_ZARR_H

#include "base/json.h"
#include "format/cells/cells_file.h"
#include "format/chunked/chunks.h"
#include "format/zip.h"

#define PEN_ZARR_PATH 768
#define PEN_ZARR_OWN (PEN_NO_OBJECT - 1) /* the object that is indexed */

/* ---- the store ---- */

struct pen_zarr {
	struct pen_peek *pk;
	int version;	 /* 2 or 3 */
	uint64_t nfiles; /* there are no more; 0: nobody knows */
	/* zip */
	bool zipped;
	struct pen_zip zip;
	uint32_t *by_name; /* members, by name; the last of equal ones */
	size_t nnames;
	char prefix[PEN_ZARR_PATH]; /* the folder in the archive, or "" */
};

/* One value of the store: bytes of an object. */
struct pen_zarr_part {
	uint64_t at, len;
	uint64_t size; /* without deflate: len */
	uint32_t object;
	uint32_t crc;
	bool deflated; /* by the archive */
};

/*
 * pk is the file that is at the root of a store, or an archive. nfiles: how
 * many objects there are.
 */
int pen__zarr_open(struct pen_zarr *, struct pen_peek *, uint64_t nfiles,
		   struct pen_err *);
void pen__zarr_close(struct pen_zarr *);
bool pen__zarr_find(const struct pen_zarr *, const char *key,
		    struct pen_zarr_part *);
/* len bytes of it, as they are stored. */
int pen__zarr_read(const struct pen_zarr *, const struct pen_zarr_part *,
		   uint64_t off, void *buf, size_t len, struct pen_err *);
/* All of it, at most limit bytes; key for messages. */
int pen__zarr_load(const struct pen_zarr *, const struct pen_zarr_part *,
		   const char *key, uint64_t limit, struct pen_buf *,
		   struct pen_err *);
/* Directories of the store, "a/b", in any order, some more than once. */
void pen__zarr_dirs(const struct pen_zarr *,
		    void (*see)(void *arg, const char *dir), void *arg);
/* "FILE:key", FILE being the store. */
void pen__zarr_where(const struct pen_zarr *, const char *key, char *buf,
		     size_t cap);

/* Is this file, by its name, the one at the root of its directory? And is it
 * what stands for a store, none of those around it being one? */
bool pen__zarr_is_marker(struct pen_peek *);
/* (A group of stores dataset_N is none: each of those is.) */
int pen__zarr_is_root(struct pen_peek *, bool *root, struct pen_err *);

/* ---- nodes ---- */

struct pen_zarr_node {
	char path[PEN_ZARR_PATH]; /* "" is the root */
	bool group;
	struct pen_jdoc meta; /* of an array, or of either in version 3 */
	struct pen_jdoc own;  /* version 2: attributes */
};

/* 1, 0 when there is none, or an error. Close it in any case. */
int pen__zarr_node_open(const struct pen_zarr *, const char *path,
			struct pen_zarr_node *, struct pen_err *);
void pen__zarr_node_close(struct pen_zarr_node *);
/* An attribute, and the document it is in; PEN_JDOC_NONE: none. */
uint32_t pen__zarr_attr(const struct pen_zarr_node *, const char *name,
			const struct pen_jdoc **);

/* A group of stores dataset_N, as annbatch writes them. */
bool pen__zarr_is_collection(const struct pen_zarr_node *);

/* ---- arrays ---- */

enum pen_zarr_text {
	PEN_ZARR_NUMBERS,
	PEN_ZARR_VLEN,	/* count, then each: length, UTF-8 */
	PEN_ZARR_UTF32, /* of fixed length */
	PEN_ZARR_BYTES, /* of fixed length */
	PEN_ZARR_OTHER, /* nothing that is read */
};

struct pen_zarr_array {
	enum pen_zarr_text text;
	int dtype; /* enum pen_dtype, or -1 */
	char type_name[48];
	size_t item; /* bytes of an element; 0: they differ */
	bool swap;
	uint8_t fill[8]; /* in this machine's order */
	uint32_t ndim;
	uint64_t dim[PEN_MAX_DIMS];
	uint64_t chunk[PEN_MAX_DIMS]; /* what is unpacked at a time */
	uint64_t chunk_bytes;	      /* numbers and fixed text */
	uint64_t file[PEN_MAX_DIMS];  /* what a file holds: a chunk, a shard */
	bool sharded, index_first, index_crc;
	char separator;
	bool under_c; /* keys are c/0/0 */
	bool fortran; /* of a chunk the first axis is the fastest */
	struct pen_filters filters; /* what was done to a chunk */
};

int pen__zarr_array(const struct pen_zarr *, const struct pen_zarr_node *,
		    struct pen_zarr_array *, struct pen_err *);

/*
 * Which chunks are stored; absent: what of them is not, or NULL. What an
 * archive did to its members becomes a step of the array's filters.
 */
int pen__zarr_chunks(const struct pen_zarr *, const struct pen_zarr_node *,
		     struct pen_zarr_array *, struct pen_chunks *,
		     struct pen_cells_absent *, struct pen_err *);
/* The array as a blob has it. */
void pen__zarr_put(const struct pen_zarr *, const struct pen_zarr_array *,
		   const struct pen_chunks *, struct pen_chunked_put *);

/* What chunks of a list were cut into. */
struct pen_zarr_blocks {
	uint64_t cols; /* elements of one; 0: they were not */
	uint32_t head; /* the first bytes of all headers */
};
/*
 * Blosc alone: its blocks can be unpacked one by one. They take the place of
 * the chunks, a mask says that one is stored as it is; or all stays as it is,
 * when the chunks are not alike, or there is something wrong with them.
 */
int pen__zarr_blocks(const struct pen_zarr *, const struct pen_zarr_array *,
		     struct pen_chunks *, struct pen_zarr_blocks *,
		     struct pen_err *);

/* Arrays of a store that is not AnnData: see pen_cells_source.plain. */
int pen__zarr_plain(struct pen_cells_file *, const struct pen_cells *,
		    struct pen_found *);

/*
 * All of a list: numbers in this machine's order, or texts, each as its length
 * (4 bytes) and its bytes. *out is the caller's to fini.
 */
int pen__zarr_read_list(const struct pen_zarr *, const struct pen_zarr_node *,
			struct pen_zarr_array *, struct pen_buf *out,
			struct pen_cells_absent *, struct pen_err *);

#endif
