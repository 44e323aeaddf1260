/*
 * Small data sets for tests of the engine, written by the formats' own writers
 * through a store's sink. Every byte of a sample is a function of its number,
 * so that content can be checked anywhere.
 */
#ifndef ENGINE_DATA_H
#define ENGINE_DATA_H

#include <ftw.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/rng.h"
#include "make/write.h"
#include "format/format.h"
#include "store/store.h"
#include "test.h"

#define ENG_TEXT 1024

/* A data set. Files are NAME/cJ/fIII.SUFFIX, in folders that keep the order of
 * files. */
struct eng_set {
	const char *name, *format;
	const char *write; /* the writing format's options: "k=v k=v" */
	const char *read;  /* settings of a loader: "format.k=v ..." */
	uint32_t nfiles;
	uint32_t per_file;
	uint32_t more;		   /* additional samples in every second file */
	bool varies;		   /* shapes depend on the sample */
	bool letters;		   /* bytes of field 0 are ACGT */
	struct pen_field field[2]; /* those with a name */
};

static const struct eng_set eng_sets[] = {
	{ .name = "npy_file",
	  .format = "npy",
	  .write = "samples=file",
	  .read = "format.samples=file",
	  .nfiles = 23,
	  .per_file = 1,
	  .field = { { .name = "x",
		       .dtype = PEN_F32,
		       .ndim = 2,
		       .shape = { 3, 4 } } } },
	{ .name = "npy_first",
	  .format = "npy",
	  .write = "samples=first",
	  .read = "format.samples=first",
	  .nfiles = 5,
	  .per_file = 5,
	  .more = 2,
	  .field = { { .name = "x",
		       .dtype = PEN_I16,
		       .ndim = 1,
		       .shape = { 7 } } } },
	{ .name = "npy_last",
	  .format = "npy",
	  .write = "samples=last",
	  .read = "format.samples=last",
	  .nfiles = 3,
	  .per_file = 9,
	  .field = { { .name = "x",
		       .dtype = PEN_F64,
		       .ndim = 2,
		       .shape = { 2, 3 } } } },
	{ .name = "npy_ragged",
	  .format = "npy",
	  .write = "samples=file",
	  .read = "format.samples=file",
	  .nfiles = 23,
	  .per_file = 1,
	  .varies = true,
	  .field = { { .name = "x",
		       .dtype = PEN_U16,
		       .ndim = 2,
		       .shape = { 0, 2 } } } },
	{ .name = "npz_file",
	  .format = "npz",
	  .write = "samples=file",
	  .read = "format.samples=file",
	  .nfiles = 17,
	  .per_file = 1,
	  .field = { { .name = "x",
		       .dtype = PEN_U8,
		       .ndim = 1,
		       .shape = { 50 } },
		     { .name = "y", .dtype = PEN_I64 } } },
	{ .name = "npz_packed",
	  .format = "npz",
	  .write = "samples=file compress=true",
	  .read = "format.samples=file",
	  .nfiles = 17,
	  .per_file = 1,
	  .field = { { .name = "x",
		       .dtype = PEN_F32,
		       .ndim = 2,
		       .shape = { 5, 5 } },
		     { .name = "y", .dtype = PEN_I64 } } },
	{ .name = "npz_first",
	  .format = "npz",
	  .write = "samples=first",
	  .read = "format.samples=first",
	  .nfiles = 4,
	  .per_file = 6,
	  .more = 1,
	  .field = { { .name = "x",
		       .dtype = PEN_F32,
		       .ndim = 1,
		       .shape = { 6 } },
		     { .name = "y", .dtype = PEN_I64 } } },
	{ .name = "npz_shared",
	  .format = "npz",
	  .write = "samples=first compress=true",
	  .read = "format.samples=first",
	  .nfiles = 4,
	  .per_file = 6,
	  .more = 1,
	  .field = { { .name = "x",
		       .dtype = PEN_I32,
		       .ndim = 1,
		       .shape = { 30 } },
		     { .name = "y", .dtype = PEN_I64 } } },
	{ .name = "npz_ragged",
	  .format = "npz",
	  .write = "samples=file compress=true",
	  .read = "format.samples=file",
	  .nfiles = 13,
	  .per_file = 1,
	  .varies = true,
	  .field = { { .name = "x",
		       .dtype = PEN_F32,
		       .ndim = 1,
		       .shape = { 1 } } } },
	{ .name = "raw",
	  .format = "raw",
	  .read = "format.dtype=uint32 format.shape=2x5",
	  .nfiles = 3,
	  .per_file = 13,
	  .field = { { .name = "x",
		       .dtype = PEN_U32,
		       .ndim = 2,
		       .shape = { 2, 5 } } } },
	{ .name = "tfrecord",
	  .format = "tfrecord",
	  .read = "",
	  .nfiles = 4,
	  .per_file = 6,
	  .more = 1,
	  .field = { { .name = "x",
		       .dtype = PEN_F32,
		       .ndim = 1,
		       .shape = { 6 } },
		     { .name = "y", .dtype = PEN_I64 } } },
	{ .name = "tfr_ragged",
	  .format = "tfrecord",
	  .read = "",
	  .nfiles = 13,
	  .per_file = 1,
	  .varies = true,
	  .field = { { .name = "x", .dtype = PEN_U8, .ndim = 1 },
		     { .name = "y", .dtype = PEN_I64 } } },
	{ .name = "indexed",
	  .format = "indexed_binary",
	  .read = "format.dtype=int16 format.shape=7",
	  .nfiles = 4,
	  .per_file = 6,
	  .more = 1,
	  .field = { { .name = "x",
		       .dtype = PEN_I16,
		       .ndim = 1,
		       .shape = { 7 } } } },
	{ .name = "indexed_ragged",
	  .format = "mmap_indexed_binary",
	  .read = "format.dtype=uint32",
	  .nfiles = 13,
	  .per_file = 1,
	  .varies = true,
	  .field = { { .name = "x",
		       .dtype = PEN_U32,
		       .ndim = 1,
		       .shape = { 1 } } } },
	{ .name = "csv",
	  .format = "csv",
	  .read = "format.dtype=int16",
	  .nfiles = 4,
	  .per_file = 6,
	  .more = 1,
	  .field = { { .name = "x",
		       .dtype = PEN_I16,
		       .ndim = 1,
		       .shape = { 7 } } } },
	{ .name = "lines",
	  .format = "lines",
	  .read = "",
	  .nfiles = 4,
	  .per_file = 6,
	  .more = 1,
	  .letters = true,
	  .field = { { .name = "seq",
		       .dtype = PEN_U8,
		       .ndim = 1,
		       .shape = { 30 } },
		     { .name = "label", .dtype = PEN_I64 } } },
	{ .name = "fasta",
	  .format = "fasta",
	  .write = "line=10",
	  .read = "",
	  .nfiles = 13,
	  .per_file = 1,
	  .varies = true,
	  .letters = true,
	  .field = { { .name = "seq",
		       .dtype = PEN_U8,
		       .ndim = 1,
		       .shape = { 25 } } } },
	{ .name = "fasta_bgzip",
	  .format = "fasta",
	  .write = "line=10 compress=bgzip",
	  .read = "",
	  .nfiles = 3,
	  .per_file = 9,
	  .letters = true,
	  .field = { { .name = "seq",
		       .dtype = PEN_U8,
		       .ndim = 1,
		       .shape = { 25 } } } },
	{ .name = "fastq",
	  .format = "fastq",
	  .read = "",
	  .nfiles = 4,
	  .per_file = 6,
	  .letters = true,
	  .field = { { .name = "seq",
		       .dtype = PEN_U8,
		       .ndim = 1,
		       .shape = { 40 } } } },
};
#define ENG_NSETS (sizeof(eng_sets) / sizeof(*eng_sets))

static inline const struct eng_set *eng_find(const char *name)
{
	for (size_t i = 0; i < ENG_NSETS; i++)
		if (strcmp(eng_sets[i].name, name) == 0)
			return &eng_sets[i];
	abort();
}

/* ---- a temporary directory ---- */

static inline void eng_start(const char *name)
{
	char dir[64];

	snprintf(dir, sizeof(dir), "%s.XXXXXX", name);
	if (!mkdtemp(dir) || chdir(dir)) {
		perror(dir);
		exit(1);
	}
}

static inline int eng_remove_one(const char *path, const struct stat *sb,
				 int kind, struct FTW *at)
{
	(void)sb;
	(void)kind;
	(void)at;
	return remove(path);
}

static inline void eng_remove(const char *path)
{
	nftw(path, eng_remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

static inline void eng_end(void)
{
	char dir[4096];

	if (getcwd(dir, sizeof(dir)) && chdir("..") == 0)
		eng_remove(dir);
}

/* ---- content ---- */

static inline uint32_t eng_nfields(const struct eng_set *s)
{
	return s->field[1].name[0] ? 2 : 1;
}

static inline uint32_t eng_in_file(const struct eng_set *s, uint32_t file)
{
	return s->per_file + (file % 2 ? s->more : 0);
}

static inline uint64_t eng_first(const struct eng_set *s, uint32_t file)
{
	uint64_t n = 0;

	for (uint32_t i = 0; i < file; i++)
		n += eng_in_file(s, i);
	return n;
}

static inline uint64_t eng_total(const struct eng_set *s)
{
	return eng_first(s, s->nfiles);
}

static inline size_t eng_shape(const struct eng_set *s, uint32_t field,
			       uint64_t id, int64_t *shape)
{
	const struct pen_field *d = &s->field[field];
	size_t bytes = 0;

	for (uint32_t j = 0; j < d->ndim; j++)
		shape[j] =
			d->shape[j] + (s->varies ? (int64_t)((id + j) % 3) : 0);
	if (!pen__shape_bytes(shape, d->ndim, d->dtype, &bytes))
		abort();
	return bytes;
}

static inline void eng_fill(const struct eng_set *s, uint32_t field,
			    uint64_t id, void *buf, size_t n)
{
	pen__rng_fill(77 + field, id, 0, buf, n);
	for (size_t i = 0; s->field[field].dtype == PEN_BOOL && i < n; i++)
		((uint8_t *)buf)[i] &= 1;
	for (size_t i = 0; s->letters && !field && i < n; i++)
		((uint8_t *)buf)[i] = (uint8_t) "ACGT"[((uint8_t *)buf)[i] & 3];
}

/* ---- writing ---- */

/* Splits "k=v k=v" in place. */
static inline size_t eng_pairs(char *text, struct pen_opts_kv *kv, size_t max)
{
	size_t n = 0;
	char *word;

	while ((word = strsep(&text, " ")) != NULL) {
		char *eq = strchr(word, '=');

		if (!eq || n == max)
			continue;
		*eq = '\0';
		kv[n++] = (struct pen_opts_kv){ word, eq + 1 };
	}
	return n;
}

/* One object through a sink of this store. */
static inline int eng_put(struct pen_store *st, const char *path,
			  const char *format, const char *options,
			  const struct pen_table *t, struct pen_err *err)
{
	struct pen_write w = { .st = st, .path = path };
	struct pen_opts_kv kv[8];
	char text[ENG_TEXT];
	struct pen_format *f;
	size_t n;
	int rc;

	snprintf(text, sizeof(text), "%s", options ? options : "");
	n = eng_pairs(text, kv, 8);
	rc = pen__format_open(&f, pen__format_find(format), kv, n, err);
	if (rc)
		return rc;
	rc = pen__write_object(&w, f, t, err);
	pen__format_close(f);
	return rc;
}

static inline int eng_write(const char *path, const char *format,
			    const char *options, const struct pen_table *t,
			    struct pen_err *err)
{
	struct pen_store *st;
	int rc = pen__store_open(&st, "posix", NULL, 0, err);

	if (rc)
		return rc;
	rc = eng_put(st, path, format, options, t, err);
	pen__store_close(st);
	return rc;
}

static inline void eng_file_name(const struct eng_set *s, uint32_t i, char *buf,
				 size_t cap)
{
	snprintf(buf, cap, "%s/c%u/f%03u%s", s->name, i * 3 / s->nfiles, i,
		 pen__format_find(s->format)->suffixes[0]);
}

static inline void eng_make_file(const struct eng_set *s, uint32_t i)
{
	struct pen_field field[2];
	struct pen_table t = { .nsamples = eng_in_file(s, i),
			       .field = field,
			       .nfields = eng_nfields(s) };
	uint64_t first = eng_first(s, i);
	const void *data[2];
	struct pen_err err = { 0 };
	char path[128];

	for (uint32_t f = 0; f < t.nfields; f++) {
		size_t row;
		uint8_t *p;

		field[f] = s->field[f];
		row = eng_shape(s, f, first, field[f].shape);
		p = malloc(row * t.nsamples + 1);
		for (uint64_t k = 0; k < t.nsamples; k++)
			eng_fill(s, f, first + k, p + k * row, row);
		data[f] = p;
	}
	t.data = data;
	eng_file_name(s, i, path, sizeof(path));
	if (!CHECK_EQ(eng_write(path, s->format, s->write, &t, &err), 0))
		fprintf(stderr, "%s: %s\n", err.where, err.msg);
	for (uint32_t f = 0; f < t.nfields; f++)
		free((void *)(uintptr_t)data[f]);
}

static inline void eng_make(const struct eng_set *s)
{
	for (uint32_t i = 0; i < s->nfiles; i++)
		eng_make_file(s, i);
}

/* n numbers of f(i) as an npy file, for weights, labels, ids and masks. */
static inline void eng_numbers(const char *path, enum pen_dtype dtype,
			       const double *v, uint64_t n)
{
	struct pen_field field = { .name = "x", .dtype = dtype };
	void *p = calloc(n + 1, 8);
	const void *data[1] = { p };
	struct pen_table t = {
		.nsamples = n, .nfields = 1, .field = &field, .data = data
	};

	for (uint64_t i = 0; i < n; i++)
		if (dtype == PEN_BOOL)
			((uint8_t *)p)[i] = v[i] != 0;
		else if (dtype == PEN_I64)
			((int64_t *)p)[i] = (int64_t)v[i];
		else
			((double *)p)[i] = v[i];
	CHECK_EQ(eng_write(path, "npy", "samples=first", &t, NULL), 0);
	free(p);
}

#endif
