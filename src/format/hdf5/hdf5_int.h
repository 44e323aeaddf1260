/* Internals of the HDF5 structure reader. */
#ifndef PEN_FORMAT_HDF5_HDF5_INT_H
#define PEN_FORMAT_HDF5_HDF5_INT_H

#include "format/hdf5/hdf5.h"

#define H5_BLOCK 4096u /* unit of reading for small structures */
#define H5_NBLOCKS 16u
#define PEN_H5_TABLES 8u    /* most shared message tables */
#define PEN_H5_SHARED_ID 8u /* bytes of the ID of a shared message */

/* Bytes of the file that are newer in the metadata cache image. */
struct pen_h5_piece {
	uint64_t addr;
	size_t n;
	const uint8_t *p;
};

/* The heap of shared messages of some types. */
struct pen_h5_table {
	uint16_t types; /* bit t: type t */
	uint64_t heap;
};

struct pen_h5 {
	struct pen_peek *pk;
	uint64_t base; /* added to every address in the file */
	uint64_t root;
	uint64_t extension; /* of the superblock, or PEN_H5_NOWHERE */
	struct pen_h5_table table[PEN_H5_TABLES];
	unsigned ntables;
	struct pen_buf image;	    /* the metadata cache image */
	struct pen_h5_piece *piece; /* its entries, by address */
	size_t npieces;
	uint64_t budget;	    /* bytes that may still be loaded */
	uint8_t so, sl;		    /* bytes per address, per length */
	uint8_t version;	    /* of the superblock */
	struct pen_buf strings;	    /* the global heap used last */
	uint64_t strings_at;	    /* its address */
	size_t strings_pos;	    /* where the last search ended */
	uint64_t block[H5_NBLOCKS]; /* number of the cached block, + 1 */
	uint8_t cache[H5_NBLOCKS][H5_BLOCK];
};

/* Errors with the object's name: damaged (what is a sentence), truncated
 * (likewise), the checksum of what differs, not supported. */
int pen__h5_bad(const struct pen_h5 *, struct pen_err *, const char *what);
int pen__h5_cut(const struct pen_h5 *, struct pen_err *, const char *what);
int pen__h5_wrong_sum(const struct pen_h5 *, struct pen_err *,
		      const char *what);
int pen__h5_cannot(const struct pen_h5 *, struct pen_err *, const char *what);
int pen__h5_nomem(const struct pen_h5 *, struct pen_err *, size_t n);

/* Loads n bytes at addr into a new buffer, which is the caller's to fini. */
int pen__h5_load(struct pen_h5 *, uint64_t addr, uint64_t n, struct pen_buf *,
		 struct pen_err *);
/* A structure that starts with a signature and, if `sum`, ends with a
 * checksum. */
struct pen_h5_part {
	uint64_t addr, n;
	const char *sign;
	bool sum;
};
/* Loads one; the cursor covers the bytes between the two. */
int pen__h5_load_as(struct pen_h5 *, struct pen_h5_part, struct pen_buf *,
		    struct pen_bytes *, struct pen_err *);

/* The next address (in the object, or PEN_H5_NOWHERE) or length. */
uint64_t pen__h5_addr(const struct pen_h5 *, struct pen_bytes *);
uint64_t pen__h5_len(const struct pen_h5 *, struct pen_bytes *);
/* Bytes needed to store numbers up to `most`. */
unsigned pen__h5_enc(uint64_t most);
unsigned pen__h5_log2(uint64_t v); /* floor; 0 for 0 */

/* Message bodies. The cursor is over the body; false: damaged. */
bool pen__h5_take_space(const struct pen_h5 *, struct pen_bytes *,
			struct pen_h5_space *);
bool pen__h5_take_type(struct pen_bytes *, struct pen_h5_type *);
/* Resolves a shared message: its holder is loaded into hd, which is the
 * caller's to close in any case. */
int pen__h5_shared(struct pen_h5 *, const struct pen_h5_msg *,
		   struct pen_h5_head *hd, const struct pen_h5_msg **out,
		   struct pen_err *);

/* The superblock's extension. */
int pen__h5_extend(struct pen_h5 *, uint64_t addr, struct pen_err *err);
int pen__h5_several(const struct pen_h5 *, struct pen_err *); /* fails */
/* Replaces bytes read at `at` by newer ones in the metadata cache image. */
void pen__h5_renew(const struct pen_h5 *, uint64_t at, uint8_t *to, size_t n);
/* Whether the image has some of these bytes. */
bool pen__h5_is_newer(const struct pen_h5 *, uint64_t at, uint64_t n);
/* A message of the shared message table, by its ID of PEN_H5_SHARED_ID bytes;
 * *out is the caller's to fini in any case. */
int pen__h5_shared_get(struct pen_h5 *, unsigned type, const uint8_t *id,
		       struct pen_buf *out, struct pen_err *);

/* Fractal heap: objects by ID. */
struct pen_h5_heap {
	uint64_t addr, root, huge;
	uint64_t start, most_direct, managed;
	uint32_t id_len, width, rows, bits;
	uint32_t off_size, len_size;
	uint8_t flags;
	struct pen_buf block; /* the direct block used last */
	uint64_t block_off;
};
int pen__h5_heap_open(struct pen_h5 *, uint64_t addr, struct pen_h5_heap *,
		      struct pen_err *);
void pen__h5_heap_close(struct pen_h5_heap *);
/* *out is valid until the next get or close; huge objects are loaded into mem,
 * which is the caller's to fini. */
int pen__h5_heap_get(struct pen_h5 *, struct pen_h5_heap *, const uint8_t *id,
		     struct pen_buf *mem, struct pen_span *out,
		     struct pen_err *);

/* Version 2 B-trees: all records in order. */
typedef int pen_h5_record_fn(void *arg, struct pen_bytes *record,
			     struct pen_err *);
int pen__h5_btree2(struct pen_h5 *, uint64_t addr, uint8_t type,
		   pen_h5_record_fn *, void *arg, struct pen_err *);

/* State of walking a chunk index, in the order of the file. */
struct pen_h5_walk {
	struct pen_h5 *h;
	const struct pen_h5_data *d;
	struct pen_chunks *out;
	uint64_t grid[PEN_MAX_DIMS];
	uint64_t order[PEN_MAX_DIMS]; /* axes of the data, in the order of the
					 index */
	uint64_t span[PEN_MAX_DIMS];  /* cells along each axis of the index */
	uint64_t ncells; /* of the index; may exceed those of the data */
	/* version 1 B-trees: the chunk before, if there is any */
	uint64_t last[PEN_MAX_DIMS];
	bool any;
	struct pen_err *err;
};
/* Adds a chunk by its grid coordinates; chunks outside the data are skipped. */
int pen__h5_chunk_add(struct pen_h5_walk *, const uint64_t *at, uint64_t addr,
		      uint64_t size, uint32_t mask);
/* Adds a chunk by its number in an array index. */
int pen__h5_chunk_put(struct pen_h5_walk *, uint64_t n, uint64_t addr,
		      uint64_t size, uint32_t mask);
int pen__h5_fixed_array(struct pen_h5_walk *);
int pen__h5_extensible_array(struct pen_h5_walk *);

#endif
