/*
 * Chunked arrays, independent of the file format: which chunks are stored and
 * where (the map, which index() writes into a blob), which of them a row needs,
 * and how their bytes become numbers. HDF5, AnnData in HDF5 and zarr, plain
 * zarr and the packed layout are built on this; only finding the chunks
 * differs.
 *
 * Maps stay in the blob, in native byte order. bind() does not scan them, so
 * its cost does not depend on the number of chunks.
 */
#ifndef PEN_FORMAT_CHUNKED_CHUNKS_H
#define PEN_FORMAT_CHUNKED_CHUNKS_H

#include "codec/cellpack.h"
#include "format/chunked/filters.h"

#define PEN_CHUNKED_FILL 32 /* bytes of the largest element */

/* ---- stored chunks, while a file is indexed ---- */

struct pen_chunk {
	uint64_t cell; /* in the grid of chunks, row-major */
	uint64_t at;
	uint32_t object; /* used if chunks are not all in the file itself */
	uint32_t size;
	uint32_t mask; /* bit i: filter i was not applied */
	uint32_t crc;  /* with crcs only */
};

struct pen_chunks {
	struct pen_chunk *c; /* by cell, each once */
	size_t n, cap;
	uint64_t ncells; /* cells without a chunk have the fill value */
	uint64_t stored; /* bytes of all chunks */
};

/* 0, or PEN_ENOMEM. */
int pen__chunks_add(struct pen_chunks *, const struct pen_chunk *);
/* Sorts by cell; false if a cell occurs twice. */
bool pen__chunks_sort(struct pen_chunks *);
/* Checks that every chunk can decode to `bytes`, and their number. */
int pen__chunks_check(const struct pen_chunks *, const struct pen_filters *,
		      uint64_t bytes, const char *where, struct pen_err *);
void pen__chunks_fini(struct pen_chunks *);

/* ---- an array, to a blob and back ---- */

enum pen_chunked_layout {
	PEN_CHUNKED_FLAT,  /* rows are contiguous bytes, in order */
	PEN_CHUNKED_GRID,  /* a grid of chunks, all of one size */
	PEN_CHUNKED_EMPTY, /* not stored: the fill value */
	PEN_CHUNKED_KEPT,  /* the bytes are in the blob */
	/*
	 * Row r is in chunk r / group_rows entirely. A chunk contains the
	 * elements of rows [g * group_rows, (g + 1) * group_rows), as far as
	 * they exist, in order, starting with the first element of its first
	 * row (from indptr; row * ncols in a dense matrix). So the count and
	 * the unpacked size differ between chunks. A chunk without elements has
	 * an entry in the map (offset 0, size 0) and is never fetched. Chunks
	 * are stored from row 0 on, without gaps. Without filters only the
	 * bytes of the row are read.
	 */
	PEN_CHUNKED_GROUPED,
};

/* What index() declares of an array; unused members are 0. */
struct pen_chunked_put {
	enum pen_chunked_layout layout;
	enum pen_dtype dtype;
	bool swap;    /* numbers are big-endian */
	bool fortran; /* within a chunk the first axis varies fastest */
	bool objects; /* chunks are separate objects */
	bool crcs;    /* chunks have crc32s, from before a final deflate */
	uint8_t fill[PEN_CHUNKED_FILL]; /* in native byte order */
	uint32_t ndim;
	uint64_t dim[PEN_MAX_DIMS];
	uint64_t at;	      /* flat: offset of the first number */
	struct pen_span kept; /* kept */
	/* the rest: a grid, or groups */
	uint64_t chunk[PEN_MAX_DIMS];
	uint64_t cut; /* lists: elements of the larger chunks that were cut */
	uint64_t group_rows, chunk_bytes; /* grouped */
	const struct pen_filters *filters;
	const struct pen_chunks *chunks;
};
void pen__chunked_put(struct pen_buf *, const struct pen_chunked_put *);

/* The same as decoded by bind(). */
struct pen_chunked {
	uint64_t at;	      /* flat */
	uint64_t chunk_bytes; /* unpacked; grouped: size of the largest chunk */
	uint64_t nchunks;
	/* As rows and columns; a list is a single row. */
	uint64_t ncols;
	uint64_t chunk_rows, chunk_cols, grid_cols;
	/* a list whose chunks are pieces of larger ones: every cut_cols
	 * elements are cut into ncuts; the last one may be shorter */
	uint64_t cut_cols, ncuts;
	uint64_t group_rows;
	/* the map, in the blob; NULL if omitted */
	const uint8_t *cells, *offsets, *sizes, *masks;
	const uint8_t *objects; /* NULL: all in the file itself */
	const uint8_t *crcs;	/* NULL: none */
	const uint8_t *kept;
	const uint8_t *dims; /* in the blob: shape, then chunk shape */
	uint32_t id0;	     /* number of its first chunk within the file */
	uint8_t ndim;
	uint8_t dtype, item;
	uint8_t layout; /* enum pen_chunked_layout */
	uint8_t kind;	/* of its units */
	bool swap, fortran;
	uint8_t fill[PEN_CHUNKED_FILL];
	struct pen_filters filters; /* none: numbers are stored unchanged */
};
/* False: damaged. Checks what can be wrong in a cached index. */
bool pen__chunked_take(struct pen_bytes *, struct pen_chunked *);
/* Numbers the chunks within the file, after *n; false: too many. */
bool pen__chunked_number(struct pen_chunked *, uint64_t *n);

static inline uint64_t pen__chunked_u32(const uint8_t *p, uint64_t i)
{
	uint32_t v;

	memcpy(&v, p + i * sizeof(v), sizeof(v));
	return v;
}

static inline uint64_t pen__chunked_u64(const uint8_t *p, uint64_t i)
{
	uint64_t v;

	memcpy(&v, p + i * sizeof(v), sizeof(v));
	return v;
}

/* More bytes than a file of `size` bytes can plausibly unpack to: slightly
 * above the maximum expansion of deflate, as a few bytes can declare any shape.
 */
static inline uint64_t pen__chunked_most(uint64_t size)
{
	const uint64_t ratio = 1100;

	return ((uint64_t)1 << 20) +
	       (size < UINT64_MAX / 2 / ratio ? size * ratio : UINT64_MAX / 2);
}

/* 0: the file itself; otherwise 1 + the number of chunk i's object. */
static inline uint32_t pen__chunked_object(const struct pen_chunked *a,
					   uint64_t i)
{
	return a->objects ? (uint32_t)pen__chunked_u32(a->objects, i) + 1 : 0;
}

/* ---- finding chunks ---- */

/* Position in the map of the first chunk whose cell is at or after this one. */
static inline uint64_t pen__chunked_from(const struct pen_chunked *a,
					 uint64_t cell)
{
	uint64_t lo = 0, hi = a->nchunks;

	if (!a->cells)
		return cell < hi ? cell : hi;
	while (lo < hi) {
		const uint64_t mid = lo + (hi - lo) / 2;

		if (pen__chunked_u64(a->cells, mid) < cell)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

/* Whether the chunk at that position belongs to the cell. */
static inline bool pen__chunked_has(const struct pen_chunked *a, uint64_t i,
				    uint64_t cell)
{
	return i < a->nchunks &&
	       (!a->cells || pen__chunked_u64(a->cells, i) == cell);
}

/* Position of a cell's chunk, or nchunks. */
static inline uint64_t pen__chunked_find(const struct pen_chunked *a,
					 uint64_t cell)
{
	const uint64_t i = pen__chunked_from(a, cell);

	return pen__chunked_has(a, i, cell) ? i : a->nchunks;
}

/* The chunk at a position of the map as a unit. Its object is 0 (the file
 * itself) or 1 + the number of another one; size: unpacked. */
static inline void pen__chunked_unit(const struct pen_chunked *a, uint64_t i,
				     uint64_t size, struct pen_unit *u)
{
	u->object = pen__chunked_object(a, i);
	u->offset = pen__chunked_u64(a->offsets, i);
	u->len = a->sizes ? pen__chunked_u32(a->sizes, i) : size;
	u->size = size;
	u->id = a->id0 + i;
	u->field = a->kind;
	u->flags = PEN_UNIT_SHARED | (a->filters.n ? PEN_UNIT_COMPRESSED : 0);
}

/* ---- from stored bytes to numbers ---- */

/*
 * IDs of filters.f[0] from here on are not filters of HDF5 or zarr but our own
 * chunk encodings; filters.n is 1 then.
 */
#define PEN_CHUNKED_CODEC 0xff00u
#define PEN_CHUNKED_NUMBERS 0xff00u /* codec/cellpack.h: its numbers */
#define PEN_CHUNKED_PLACES 0xff01u  /* its places, of a grouped array */
/* For these two, item is the dtype that the file declares (enum pen_dtype), and
 * the dtype of the array the one they are unpacked to. */
/*
 * One block of a Blosc 1 buffer without the header; item contains the first
 * four bytes of the header, which are the same for all blocks. With a mask:
 * uncompressed bytes.
 */
#define PEN_CHUNKED_BLOCK 0xff02u
#define PEN_CHUNKED_BLOCK_MORE 64u /* bytes a block may grow by */

/* The dtype of its numbers in the file. */
static inline enum pen_dtype pen__chunked_declared(const struct pen_chunked *a)
{
	if (a->filters.n == 1 && a->filters.f[0].id >= PEN_CHUNKED_CODEC &&
	    a->filters.f[0].id < PEN_CHUNKED_BLOCK &&
	    a->filters.f[0].item <= PEN_F64)
		return (enum pen_dtype)a->filters.f[0].item;
	return (enum pen_dtype)a->dtype;
}

/* A chunk being unpacked. */
struct pen_chunk_job {
	const struct pen_chunked *a;
	uint32_t number;		 /* position in the map */
	const struct pen_cellrows *rows; /* for a group of a sparse matrix */
	struct pen_span raw;
	void *out;
	size_t size; /* exact number of bytes to write to out */
	bool narrow; /* or fewer: see pen__narrow() */
	struct pen_scratch *scratch;
};
/* Returns 0, or the number of bytes if it narrowed them; on an error *why is
 * the reason. */
int pen__chunked_unpack(const struct pen_chunk_job *, const char **why);
/* Scratch memory it needs. */
size_t pen__chunked_room(const struct pen_chunked *);
/* For inspect: "shuffle, deflate". */
void pen__chunked_text(const struct pen_chunked *, char *buf, size_t cap);

/* The same for a Blosc block. */
int pen__block_unpack(const struct pen_chunk_job *, uint32_t mask,
		      const char **why);
size_t pen__block_room(const struct pen_chunked *);

/* ---- numbers kept in one or two bytes ---- */

/* Stores an unpacked chunk of `size` bytes with one or two bytes per number, in
 * place. Returns the new size, or 0 if its numbers need more. */
int pen__narrow(const struct pen_chunked *, void *chunk, size_t size);
/* The same for n 4-byte numbers whose first bytes, second bytes, ... are in
 * separate streams; if it returns 0, the contents of out are undefined. */
int pen__narrow_streams(const struct pen_chunked *, const uint8_t *const s[4],
			uint64_t n, uint8_t *out);
/* Restores n numbers that are stored in `width` bytes each. */
void pen__narrow_restore(const struct pen_chunked *, unsigned width,
			 const uint8_t *p, uint64_t n, uint8_t *out);

#endif
