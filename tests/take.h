/*
 * Data for tests of take=, decode= and read_size=: a data set of every format
 * that can be written, small and larger than a block of any store, and each of
 * its samples as loaded completely.
 */
#ifndef TAKE_H
#define TAKE_H

#include "engine.h"

#define TAKE_MOST 64 /* samples of a data set */

static const struct eng_set take_sets[] = {
	{ .name = "h5_flat",
	  .format = "hdf5",
	  .read = "",
	  .nfiles = 3,
	  .per_file = 7,
	  .field = { { .name = "x",
		       .dtype = PEN_F32,
		       .ndim = 2,
		       .shape = { 3, 4 } },
		     { .name = "y", .dtype = PEN_I64 } } },
	{ .name = "h5_chunked",
	  .format = "hdf5",
	  .write = "chunk=2x3x4",
	  .read = "",
	  .nfiles = 3,
	  .per_file = 7,
	  .field = { { .name = "x",
		       .dtype = PEN_I16,
		       .ndim = 2,
		       .shape = { 3, 4 } } } },
	{ .name = "h5_gzip",
	  .format = "hdf5",
	  .write = "chunk=3x5x7 compression=gzip",
	  .read = "",
	  .nfiles = 3,
	  .per_file = 7,
	  .field = { { .name = "x",
		       .dtype = PEN_F64,
		       .ndim = 2,
		       .shape = { 10, 14 } } } },
	{ .name = "h5_file",
	  .format = "hdf5",
	  .write = "samples=file",
	  .read = "format.samples=file format.fields=records_0",
	  .nfiles = 9,
	  .per_file = 1,
	  .varies = true,
	  .field = { { .name = "x",
		       .dtype = PEN_U16,
		       .ndim = 2,
		       .shape = { 30, 50 } } } },
	{ .name = "tfr_plain",
	  .format = "tfrecord",
	  .read = "format.decode=false format.crc=false",
	  .nfiles = 7,
	  .per_file = 2,
	  .varies = true,
	  .field = { { .name = "x",
		       .dtype = PEN_U8,
		       .ndim = 1,
		       .shape = { 60 } } } },
	{ .name = "jpeg",
	  .format = "jpeg",
	  .read = "",
	  .nfiles = 7,
	  .per_file = 1,
	  .field = { { .name = "x",
		       .dtype = PEN_U8,
		       .ndim = 3,
		       .shape = { 17, 9, 3 } } } },
	{ .name = "jpeg_ragged",
	  .format = "jpeg",
	  .read = "",
	  .nfiles = 7,
	  .per_file = 1,
	  .varies = true,
	  .field = { { .name = "x",
		       .dtype = PEN_U8,
		       .ndim = 2,
		       .shape = { 8, 5 } } } },
	{ .name = "png",
	  .format = "png",
	  .read = "",
	  .nfiles = 7,
	  .per_file = 1,
	  .field = { { .name = "x",
		       .dtype = PEN_U16,
		       .ndim = 2,
		       .shape = { 70, 90 } } } },
	{ .name = "png_ragged",
	  .format = "png",
	  .read = "",
	  .nfiles = 7,
	  .per_file = 1,
	  .varies = true,
	  .field = { { .name = "x",
		       .dtype = PEN_U8,
		       .ndim = 2,
		       .shape = { 8, 5 } } } },
	{ .name = "npy_big",
	  .format = "npy",
	  .write = "samples=file",
	  .read = "format.samples=file",
	  .nfiles = 5,
	  .per_file = 1,
	  .field = { { .name = "x",
		       .dtype = PEN_F32,
		       .ndim = 2,
		       .shape = { 41, 1033 } } } },
	{ .name = "npy_big_ragged",
	  .format = "npy",
	  .write = "samples=file",
	  .read = "format.samples=file",
	  .nfiles = 5,
	  .per_file = 1,
	  .varies = true,
	  .field = { { .name = "x",
		       .dtype = PEN_U16,
		       .ndim = 2,
		       .shape = { 200, 150 } } } },
	{ .name = "npz_big",
	  .format = "npz",
	  .write = "samples=file",
	  .read = "format.samples=file",
	  .nfiles = 5,
	  .per_file = 1,
	  .field = { { .name = "x",
		       .dtype = PEN_I32,
		       .ndim = 1,
		       .shape = { 20001 } },
		     { .name = "y",
		       .dtype = PEN_U8,
		       .ndim = 1,
		       .shape = { 70001 } } } },
	{ .name = "npz_big_packed",
	  .format = "npz",
	  .write = "samples=first compress=true",
	  .read = "format.samples=first",
	  .nfiles = 3,
	  .per_file = 3,
	  .field = { { .name = "x",
		       .dtype = PEN_U8,
		       .ndim = 1,
		       .shape = { 30001 } },
		     { .name = "y", .dtype = PEN_I64 } } },
	{ .name = "raw_big",
	  .format = "raw",
	  .read = "format.dtype=uint8 format.shape=100x333",
	  .nfiles = 3,
	  .per_file = 4,
	  .field = { { .name = "x",
		       .dtype = PEN_U8,
		       .ndim = 2,
		       .shape = { 100, 333 } } } },
};
#define TAKE_NSETS (sizeof(take_sets) / sizeof(*take_sets))

static const char *const take_stores[] = {
	"store=posix",
	"store=posix store.direct=true",
	"store=uring",
	"store=uring store.direct=true",
	"store=mmap",
	"store=ram",
	"store=fault store.delay=10us store.delay_every=7",
	"store=fault store.under=mmap",
	"store=fault store.under=posix store.direct=true",
};
#define TAKE_NSTORES (sizeof(take_stores) / sizeof(*take_stores))

/* All sets: the engine's own, then these. */
static inline const struct eng_set *take_set(size_t i)
{
	if (i < ENG_NSETS)
		return &eng_sets[i];
	return i - ENG_NSETS < TAKE_NSETS ? &take_sets[i - ENG_NSETS] : NULL;
}

static inline const struct eng_set *take_find(const char *name)
{
	const struct eng_set *s;

	for (size_t i = 0; (s = take_set(i)) != NULL; i++)
		if (strcmp(s->name, name) == 0)
			return s;
	abort();
}

/* ---- samples as they are ---- */

struct take_ref {
	uint64_t n, bytes; /* samples, and their bytes */
	uint32_t nfields;
	enum pen_dtype dtype[2];
	struct pen_span row[TAKE_MOST][2];
};

static inline void take_ref_init(struct take_ref *r, const struct eng_set *s)
{
	struct pen_err err;
	struct pen_loader *l = eng_open(&err,
					"%s %s store=posix threads=1 "
					"batch_size=1",
					s->name, s->read);
	struct pen_batch *b;

	memset(r, 0, sizeof(*r));
	if (!CHECK(l != NULL)) {
		fprintf(stderr, "%s: %s\n", err.where, err.msg);
		return;
	}
	while (pen_loader_next(l, &b, &err) == 0) {
		r->nfields = b->ntensors;
		for (uint32_t f = 0; f < b->ntensors && f < 2; f++) {
			const struct pen_tensor *t = &b->tensors[f];
			uint8_t *p = malloc(t->nbytes + 1);

			memcpy(p, t->data, t->nbytes);
			r->row[r->n][f] = (struct pen_span){ p, t->nbytes };
			r->dtype[f] = t->dtype;
			r->bytes += t->nbytes;
		}
		r->n++;
		pen_batch_unref(b);
	}
	CHECK(r->n == eng_total(s) && r->nfields && r->nfields <= 2);
	pen_loader_close(l);
}

static inline void take_ref_fini(struct take_ref *r)
{
	for (uint64_t i = 0; i < r->n; i++)
		for (uint32_t f = 0; f < 2; f++)
			free((void *)(uintptr_t)r->row[i][f].p);
}

/* Where row r of a tensor is. */
static inline struct pen_span take_row(const struct pen_batch *b, uint32_t f,
				       uint32_t r)
{
	const struct pen_tensor *t = &b->tensors[f];
	size_t item = pen_dtype_size(t->dtype), n = t->nbytes;
	const uint8_t *p = t->data;

	if (t->layout == PEN_RAGGED)
		return (struct pen_span){
			p + (size_t)t->offsets[r] * item,
			(size_t)(t->offsets[r + 1] - t->offsets[r]) * item
		};
	n /= b->nsamples;
	return (struct pen_span){ p + n * r, n };
}

/* A loader over a store that this machine may not have. */
static inline struct pen_loader *take_open(const struct eng_set *s,
					   const char *how, const char *store)
{
	struct pen_err err;
	struct pen_loader *l =
		eng_open(&err, "%s %s %s %s", s->name, s->read, how, store);

	if (!l && !strstr(store, "uring") && !strstr(store, "direct")) {
		CHECK(l != NULL);
		fprintf(stderr, "  %s %s %s: %s: %s\n", s->name, how, store,
			err.where, err.msg);
	}
	return l;
}

#endif
