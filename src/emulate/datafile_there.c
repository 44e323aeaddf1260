/*
 * Is the file that is there the one that would be made? Its header is read
 * through its format and what it says compared: type, shape, number of
 * samples. Formats whose files say less are compared by size. Nothing is
 * decoded, so this is cheap; and damage inside the data is not found.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"
#include "emulate/datafile.h"

#define MOST_OF_EXAMPLE 256 /* bytes of a tf.train.Example around its data */

struct file {
	struct pen_peek peek; /* first */
	int fd;
	struct pen_store *st;
	struct pen_found found;
};

/* ---- reading ---- */

static int file_read(struct pen_peek *pk, uint64_t off, void *buf, size_t len,
		     struct pen_err *err)
{
	const struct file *f = (const struct file *)pk;
	char *to = buf;

	while (len) {
		const ssize_t n = pread(f->fd, to, len, (off_t)off);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return pen__fail_sys(err, n ? errno : 0, pk->name,
					     "cannot be read up to there");
		to += n;
		off += (uint64_t)n;
		len -= (size_t)n;
	}
	return 0;
}

static int file_side(struct pen_peek *pk, const char *suffix, uint64_t limit,
		     struct pen_buf *out, struct pen_err *err)
{
	struct pen_store *st = ((struct file *)pk)->st;
	char path[4096 + 64];

	snprintf(path, sizeof(path), "%s%s", pk->name, suffix);
	return st->ops->read_whole(st, path, limit, out, err);
}

static bool file_open(struct file *f, const char *path)
{
	struct stat sb;

	f->fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (f->fd < 0)
		return false;
	f->peek = (struct pen_peek){ .name = path,
				     .read = file_read,
				     .read_side = file_side };
	if (fstat(f->fd, &sb) || !S_ISREG(sb.st_mode)) {
		close(f->fd);
		return false;
	}
	f->peek.size = (uint64_t)sb.st_size;
	return true;
}

/* ---- an index of one object, for bind() ---- */

struct alone {
	struct pen_index ix; /* first */
	const struct file *f;
};

static struct pen_span alone_blob(const struct pen_index *ix, uint64_t id)
{
	const struct pen_buf *b = &((const struct alone *)ix)->f->found.blob;

	(void)id;
	return (struct pen_span){ b->p, b->n };
}

static uint64_t alone_blob_of(const struct pen_index *ix, uint64_t object)
{
	(void)ix;
	(void)object;
	return 0;
}

static uint64_t alone_size(const struct pen_index *ix, uint64_t object)
{
	(void)object;
	return ((const struct alone *)ix)->f->peek.size;
}

static void alone_name(const struct pen_index *ix, uint64_t object, char *buf,
		       size_t cap)
{
	(void)object;
	snprintf(buf, cap, "%s", ((const struct alone *)ix)->f->peek.name);
}

/* ---- comparing ---- */

static bool same_shape(const struct pen_field *a, const struct pen_field *b)
{
	return a->ndim == b->ndim &&
	       !memcmp(a->shape, b->shape, a->ndim * sizeof(*a->shape));
}

/*
 * Whether it is compressed or not, as it should be. A deflated member of npz
 * is not as long as what is in it. In hdf5 a chunk that would not shrink is
 * kept as it is, so that a file to be compressed may have none that are.
 */
static bool same_packing(const struct pen_datafile *d,
			 const struct pen_format *f)
{
	struct pen_unit *u = pen__calloc(f->units_per_sample, sizeof(*u));
	bool packed = false;

	if (!u)
		return false;
	f->ops->locate(f, 0, 0, u);
	if (!strcmp(d->ops->name, "npz"))
		packed = u[0].len != f->field[0].max_bytes;
	else
		for (uint32_t i = 0; i < f->units_per_sample; i++)
			packed |= u[i].object != PEN_NO_OBJECT &&
				  (u[i].flags & PEN_UNIT_PACKED);
	pen__free(u);
	return packed == d->packed ||
	       (d->packed && !strcmp(d->ops->name, "hdf5"));
}

/* What num_dset leaves of a record in each data set. */
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

static bool same_fields(const struct pen_datafile *d,
			const struct pen_format *f, struct pen_field *want)
{
	const bool hdf5 = !strcmp(d->ops->name, "hdf5");
	const bool npz = !strcmp(d->ops->name, "npz");
	const struct pen_field *x = &f->field[0];

	if (!strcmp(d->ops->name, "csv")) { /* a row of columns, of any type */
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
	return !strcmp(d->ops->name, "indexed_binary") ||
	       !strcmp(d->ops->name, "mmap_indexed_binary");
}

static bool bound_same(const struct pen_datafile *d, uint64_t i,
		       const struct file *f)
{
	struct alone a = { .ix = { .nobjects = 1,
				   .nblobs = 1,
				   .nsamples = f->found.nsamples,
				   .per_object = f->found.nsamples,
				   .blob = alone_blob,
				   .blob_of = alone_blob_of,
				   .size_of = alone_size,
				   .name_of = alone_name },
			   .f = f };
	struct pen_format *fresh;
	struct pen_field want[2];
	struct pen_table t;
	bool same;

	pen__datafile_table(d, i, want, &t);
	if (f->found.nsamples != t.nsamples ||
	    pen__format_open(&fresh, d->ops, d->kv, d->nkv, NULL))
		return false;
	same = !d->ops->bind(fresh, &a.ix, NULL);
	if (same && is_indexed(d)) /* says how long samples are, no more */
		same = f->peek.size == pen__layout_bytes(d->l, i) &&
		       fresh->field[0].max_bytes * t.nsamples == f->peek.size;
	else if (same)
		same = same_fields(d, fresh, want);
	pen__format_close(fresh);
	return same;
}

/* ---- formats compared by size ---- */

static bool same_number(struct file *f, uint64_t i)
{
	char want[24], got[24];
	const int n = snprintf(want, sizeof(want), "%" PRIu64, i);

	return f->peek.size == (uint64_t)n &&
	       !file_read(&f->peek, 0, got, (size_t)n, NULL) &&
	       !memcmp(want, got, (size_t)n);
}

static unsigned digits(uint64_t v)
{
	unsigned n = 1;

	for (; v >= 10; v /= 10)
		n++;
	return n;
}

/* All records have one length, so the first tells the rest, and what the
 * lines of the index have to be. */
static bool same_records(const struct pen_datafile *d, uint64_t i,
			 struct file *f)
{
	const uint64_t n = d->l->nsamples;
	const uint64_t payload = pen__layout_bytes(d->l, i) / n;
	char path[PEN_LAYOUT_PATH];
	uint64_t len, lines = 0;
	struct stat sb;

	if (f->peek.size < 16 || file_read(&f->peek, 0, &len, 8, NULL) ||
	    len < payload || len > payload + MOST_OF_EXAMPLE ||
	    f->peek.size % n || f->peek.size / n != len + 16)
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
	struct file f = { .st = d->st };
	bool same;

	pen__layout_path(d->l, i, path, sizeof(path));
	if (!file_open(&f, path))
		return false;
	if (!strcmp(d->ops->name, "synthetic"))
		same = same_number(&f, i);
	else if (!strcmp(d->ops->name, "tfrecord"))
		same = same_records(d, i, &f);
	else
		same = !d->ops->index(d->f, &f.peek, &f.found, NULL) &&
		       bound_same(d, i, &f);
	pen__buf_fini(&f.found.blob);
	close(f.fd);
	return same;
}
