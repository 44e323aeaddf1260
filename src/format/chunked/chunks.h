/*
 * Arrays that lie in chunks, whatever file they are in: which chunks are
 * stored and where (the map, which index() puts into a blob), which of them a
 * row needs, and how their bytes become numbers. HDF5, AnnData in HDF5 and in
 * zarr, plain zarr and the packed layout all stand on this; only finding the
 * chunks differs.
 *
 * Maps stay in the blob, and numbers in them are this machine's own. Nobody
 * looks through one at bind(), so that it costs the same for a thousand chunks
 * and for a hundred million.
 */
#ifndef PEN_FORMAT_CHUNKED_CHUNKS_H
#define PEN_FORMAT_CHUNKED_CHUNKS_H

#include "codec/cellpack.h"
#include "format/chunked/filters.h"

#define PEN_CHUNKED_FILL 32 /* bytes of the largest element */

/* ---- what is stored, while a file is indexed ---- */

struct pen_chunk {
	uint64_t cell; /* in the grid of chunks, row-major */
	uint64_t at;
	uint32_t object; /* only when they are not all in the file itself */
	uint32_t size;
	uint32_t mask; /* bit i: filter i was not applied */
	uint32_t crc;  /* with crcs only */
};

struct pen_chunks {
	struct pen_chunk *c; /* by cell, each once */
	size_t n, cap;
	uint64_t ncells; /* those without a chunk read as the fill value */
	uint64_t stored; /* bytes they lie in */
};

/* 0, or PEN_ENOMEM. */
int pen__chunks_add(struct pen_chunks *, const struct pen_chunk *);
/* By cell; false when one is there twice. */
bool pen__chunks_sort(struct pen_chunks *);
/* Every chunk can become `bytes`, and they are not too many. */
int pen__chunks_check(const struct pen_chunks *, const struct pen_filters *,
		      uint64_t bytes, const char *where, struct pen_err *);
void pen__chunks_fini(struct pen_chunks *);

/* ---- an array, into a blob and out of it ---- */

enum pen_chunked_layout {
	PEN_CHUNKED_FLAT,  /* rows are runs of bytes, one after another */
	PEN_CHUNKED_GRID,  /* a grid of chunks, all of one size */
	PEN_CHUNKED_EMPTY, /* nothing is stored: all fill value */
	PEN_CHUNKED_KEPT,  /* the bytes are in the blob */
	/*
	 * Row r is in chunk r / group_rows, whole. The chunk's elements are
	 * those of rows [g * group_rows, (g + 1) * group_rows), as far as there
	 * are such, one after another: the first is the one where its first
	 * row begins (indptr; of a dense matrix row * ncols), and so its count,
	 * and the size it is unpacked to, differ from chunk to chunk. A chunk
	 * without elements has an entry in the map (offset 0, size 0) and is
	 * never fetched. Chunks are stored from row 0 on, none is left out.
	 * Without filters only the row's own bytes are read.
	 */
	PEN_CHUNKED_GROUPED,
};

/* What index() says of an array; what is 0 need not be said. */
struct pen_chunked_put {
	enum pen_chunked_layout layout;
	enum pen_dtype dtype;
	bool swap;    /* numbers are big-endian */
	bool fortran; /* of a chunk the first axis is the fastest */
	bool objects; /* chunks are in objects of their own */
	bool crcs;    /* chunks have crc32s, of what they are without a step of
		       * deflate that comes last */
	uint8_t fill[PEN_CHUNKED_FILL]; /* in this machine's order */
	uint32_t ndim;
	uint64_t dim[PEN_MAX_DIMS];
	uint64_t at;	      /* flat: where the first number is */
	struct pen_span kept; /* kept */
	/* the rest: a grid, or groups */
	uint64_t chunk[PEN_MAX_DIMS];
	uint64_t cut; /* of a list: elements of what chunks are pieces of */
	uint64_t group_rows, chunk_bytes; /* grouped */
	const struct pen_filters *filters;
	const struct pen_chunks *chunks;
};
void pen__chunked_put(struct pen_buf *, const struct pen_chunked_put *);

/* The same, as bind() has it. */
struct pen_chunked {
	uint64_t at;	      /* flat */
	uint64_t chunk_bytes; /* unpacked; grouped: of the largest chunk */
	uint64_t nchunks;
	/* Seen as rows and columns; a list is a single row. */
	uint64_t ncols;
	uint64_t chunk_rows, chunk_cols, grid_cols;
	/* a list whose chunks are pieces of larger ones: every cut_cols
	 * elements are cut into ncuts, of which the last may be shorter */
	uint64_t cut_cols, ncuts;
	uint64_t group_rows;
	/* the map, in the blob; NULL when left out */
	const uint8_t *cells, *offsets, *sizes, *masks;
	const uint8_t *objects; /* NULL: all in the file itself */
	const uint8_t *crcs;	/* NULL: there are none */
	const uint8_t *kept;
	const uint8_t *dims; /* in the blob: shape, then that of a chunk */
	uint32_t id0;	     /* number of its first chunk, among the file's */
	uint8_t ndim;
	uint8_t dtype, item;
	uint8_t layout; /* enum pen_chunked_layout */
	uint8_t kind;	/* of its units */
	bool swap, fortran;
	uint8_t fill[PEN_CHUNKED_FILL];
	struct pen_filters filters; /* none: numbers are as they are */
};
/* False: damaged. What is checked is what a kept index might have wrong. */
bool pen__chunked_take(struct pen_bytes *, struct pen_chunked *);
/* Numbers it has among the file's chunks, after *n; false: too many. */
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

/* 0: the file itself, else the number of chunk i's object plus 1. */
static inline uint32_t pen__chunked_object(const struct pen_chunked *a,
					   uint64_t i)
{
	return a->objects ? (uint32_t)pen__chunked_u32(a->objects, i) + 1 : 0;
}

/* ---- which chunks ---- */

/* The place in the map of the first chunk whose cell is not before this. */
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

/* Is the one at that place the cell's? */
static inline bool pen__chunked_has(const struct pen_chunked *a, uint64_t i,
				    uint64_t cell)
{
	return i < a->nchunks &&
	       (!a->cells || pen__chunked_u64(a->cells, i) == cell);
}

/* The place of a cell's chunk, or nchunks. */
static inline uint64_t pen__chunked_find(const struct pen_chunked *a,
					 uint64_t cell)
{
	const uint64_t i = pen__chunked_from(a, cell);

	return pen__chunked_has(a, i, cell) ? i : a->nchunks;
}

/* A chunk of a place in the map as a unit, of object 0, the file itself, or the
 * number of another one plus 1; size: unpacked. */
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

/* ---- from what is stored to numbers ---- */

/*
 * Ids of filters.f[0] from here on are no filters of HDF5's or zarr's, but ways
 * to store a chunk that are known here; filters.n is 1 then.
 */
#define PEN_CHUNKED_CODEC 0xff00u
#define PEN_CHUNKED_NUMBERS 0xff00u /* codec/cellpack.h: its numbers */
#define PEN_CHUNKED_PLACES 0xff01u  /* its places, of a grouped array */
/* Of those two, item is what the file declares them to be (enum pen_dtype), and
 * the array's dtype what they are unpacked to. */
/*
 * One block of a Blosc 1 buffer, without the header; of that item is the first
 * four bytes, which are the same for all. With a mask: bytes as they are.
 */
#define PEN_CHUNKED_BLOCK 0xff02u
#define PEN_CHUNKED_BLOCK_MORE 64u /* bytes a block may grow by */

/* What its numbers are in the file. */
static inline enum pen_dtype pen__chunked_declared(const struct pen_chunked *a)
{
	if (a->filters.n == 1 && a->filters.f[0].id >= PEN_CHUNKED_CODEC &&
	    a->filters.f[0].id < PEN_CHUNKED_BLOCK &&
	    a->filters.f[0].item <= PEN_F64)
		return (enum pen_dtype)a->filters.f[0].item;
	return (enum pen_dtype)a->dtype;
}

/* A chunk on its way. */
struct pen_chunk_job {
	const struct pen_chunked *a;
	uint32_t number;		 /* place in the map */
	const struct pen_cellrows *rows; /* of a group of a sparse matrix */
	struct pen_span raw;
	void *out;
	size_t size; /* bytes that out has to get, exactly */
	bool narrow; /* or fewer: see pen__narrow() */
	struct pen_scratch *scratch;
};
/* 0, or how many bytes there are when it narrowed them; *why says what is wrong
 * with the bytes. */
int pen__chunked_unpack(const struct pen_chunk_job *, const char **why);
/* Scratch it needs. */
size_t pen__chunked_room(const struct pen_chunked *);
/* For inspect: "shuffle, deflate". */
void pen__chunked_text(const struct pen_chunked *, char *buf, size_t cap);

/* The same for a block of Blosc's, and the room it needs. */
int pen__block_unpack(const struct pen_chunk_job *, uint32_t mask,
		      const char **why);
size_t pen__block_room(const struct pen_chunked *);

/* ---- numbers that are kept narrow ---- */

/* An unpacked chunk of `size` bytes in one or two bytes a number, in place: how
 * many bytes it has then, or 0: its numbers need more. */
int pen__narrow(const struct pen_chunked *, void *chunk, size_t size);
/* The same of n numbers of four bytes whose first bytes, second bytes, ... lie
 * apart; 0 leaves out with anything. */
int pen__narrow_streams(const struct pen_chunked *, const uint8_t *const s[4],
			uint64_t n, uint8_t *out);
/* n of its numbers, of `width` bytes, as they were. */
void pen__narrow_restore(const struct pen_chunked *, unsigned width,
			 const uint8_t *p, uint64_t n, uint8_t *out);

#endif
