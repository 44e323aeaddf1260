/*
 * Checks whether an existing file is the one that would be generated: its
 * format reads the header, and type, shape and number of samples are compared.
 * Formats with less information are compared by size. Nothing is decoded, so
 * this is cheap, but damage inside the data is not detected.
 */
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"
#include "emulate/datafile.h"

#define MOST_OF_EXAMPLE 256 /* maximum overhead of a tf.train.Example */

/* ---- comparing ---- */

static bool same_shape(const struct pen_field *a, const struct pen_field *b)
{
	return a->ndim == b->ndim &&
	       !memcmp(a->shape, b->shape, a->ndim * sizeof(*a->shape));
}

/*
 * True if the file is compressed as configured. A deflated npz member differs
 * in size from its content. HDF5 stores chunks that would not shrink
 * uncompressed, so that a file may have no compressed chunk.
 */
static bool same_packing(const struct pen_datafile *d, const struct pen_look *f)
{
	const bool packed = !strcmp(d->format, "npz")
				    ? f->first_bytes != f->field[0].max_bytes
				    : f->packed;

	return packed == d->packed || (d->packed && !strcmp(d->format, "hdf5"));
}

/* The shape of a record in each of num_dset data sets. */
static void cut(const struct pen_datafile *d, struct pen_field *x)
{
	const int64_t parts = (int64_t)d->l->c->dataset.hdf5_num_dset;

	if (parts <= 1)
		return;
	x->shape[0] /= parts;
	if (x->shape[0] > 1)
		return;
	x->ndim--;
	memmove(x->shape, x->shape + 1, x->ndim * sizeof(*x->shape));
}

static bool same_fields(const struct pen_datafile *d, const struct pen_look *f,
			struct pen_field *want)
{
	const bool hdf5 = !strcmp(d->format, "hdf5");
	const bool npz = !strcmp(d->format, "npz");
	const struct pen_field *x = &f->field[0];

	if (!strcmp(d->format, "csv")) { /* one row of columns of any type */
		uint64_t n = 1;

		for (uint32_t k = 0; k < want->ndim; k++)
			n *= (uint64_t)want->shape[k];
		return x->ndim <= 1 &&
		       (x->ndim ? (uint64_t)x->shape[0] : 1) == n;
	}
	if (hdf5)
		cut(d, &want[0]);
	if (x->dtype != want[0].dtype || !same_shape(x, &want[0]))
		return false;
	if (npz && (f->nfields != 2 || strcmp(x[1].name, "y") != 0 ||
		    x[1].dtype != PEN_I64 || !same_shape(&x[1], &want[1])))
		return false;
	return (!npz && !hdf5) || same_packing(d, f);
}

static bool is_indexed(const struct pen_datafile *d)
{
	return !strcmp(d->format, "indexed_binary") ||
	       !strcmp(d->format, "mmap_indexed_binary");
}

static bool same_header(const struct pen_datafile *d, uint64_t i,
			const char *path)
{
	struct pen_field want[2];
	struct pen_table t;
	struct pen_look f;

	pen__datafile_table(d, i, want, &t);
	if (!pen__maker_look(d->maker, path, &f) || f.nsamples != t.nsamples)
		return false;
	if (is_indexed(d)) /* contains only the length of samples */
		return f.size == pen__layout_bytes(d->l, i) &&
		       f.field[0].max_bytes * t.nsamples == f.size;
	return same_fields(d, &f, want);
}

/* ---- formats compared by size ---- */

/* Reads the first n bytes and the size of a regular file; false if it is
 * shorter. */
static bool read_head(const char *path, void *buf, size_t n, uint64_t *size)
{
	const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	struct stat sb;
	bool good;

	if (fd < 0)
		return false;
	good = !fstat(fd, &sb) && S_ISREG(sb.st_mode) &&
	       pread(fd, buf, n, 0) == (ssize_t)n;
	*size = (uint64_t)sb.st_size;
	close(fd);
	return good;
}

static bool same_number(const char *path, uint64_t i)
{
	char want[24], got[24];
	const int n = snprintf(want, sizeof(want), "%" PRIu64, i);
	uint64_t size;

	return read_head(path, got, (size_t)n, &size) && size == (uint64_t)n &&
	       !memcmp(want, got, (size_t)n);
}

static unsigned digits(uint64_t v)
{
	unsigned n = 1;

	for (; v >= 10; v /= 10)
		n++;
	return n;
}

/* All records have the same length, so the first one determines the rest, and
 * the size of the index. */
static bool same_records(const struct pen_datafile *d, uint64_t i,
			 const char *file)
{
	const uint64_t n = d->l->nsamples;
	const uint64_t payload = pen__layout_bytes(d->l, i) / n;
	char path[PEN_LAYOUT_PATH];
	uint64_t len, size, lines = 0;
	struct stat sb;

	if (!read_head(file, &len, 8, &size) || size < 16 || len < payload ||
	    len > payload + MOST_OF_EXAMPLE || size % n || size / n != len + 16)
		return false;
	for (uint64_t k = 0; k < n; k++)
		lines += digits(k * (len + 16)) + 1 + digits(len + 16) + 1;
	pen__layout_index_path(d->l, i, path, sizeof(path));
	return !stat(path, &sb) && S_ISREG(sb.st_mode) &&
	       (uint64_t)sb.st_size == lines;
}

bool pen__datafile_there(const struct pen_datafile *d, uint64_t i)
{
	char path[PEN_LAYOUT_PATH];

	pen__layout_path(d->l, i, path, sizeof(path));
	if (!strcmp(d->format, "synthetic"))
		return same_number(path, i);
	if (!strcmp(d->format, "tfrecord"))
		return same_records(d, i, path);
	return same_header(d, i, path);
}
