/*
 * A file driver for libhdf5 whose writes never fail. libhdf5 cannot handle a
 * full disk: it cannot close a file that it could not flush, and crashes when
 * it tries to, at the latest at process exit. So the first error is recorded
 * for the caller, and later writes go to memory, from where they can be read
 * back. Closing then succeeds, and the file is discarded. Little is written
 * this way, because callers stop at the first error.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/mem.h"
#include "format/hdf5/hdf5_lib.h"

struct file {
	H5FD_t pub; /* must be first: the part that libhdf5 uses */
	struct pen_hdf5_disk *disk;
	int fd;
	haddr_t eoa, eof;
	struct pen_buf late; /* writes in order: address, length, bytes */
};

struct info {
	struct pen_hdf5_disk *disk;
};

static H5FD_t *driver_open(const char *name, unsigned flags, hid_t fapl,
			   haddr_t most)
{
	const struct info *in = H5Pget_driver_info(fapl);
	struct file *f = in ? pen__calloc(1, sizeof(*f)) : NULL;
	int how = flags & H5F_ACC_RDWR ? O_RDWR : O_RDONLY;

	(void)most;
	if (!f)
		return NULL;
	how |= flags & H5F_ACC_TRUNC ? O_TRUNC : 0;
	how |= flags & H5F_ACC_CREAT ? O_CREAT : 0;
	how |= flags & H5F_ACC_EXCL ? O_EXCL : 0;
	f->disk = in->disk;
	f->fd = open(name, how | O_CLOEXEC, 0666);
	if (f->fd < 0) {
		f->disk->sys = errno;
		pen__free(f);
		return NULL;
	}
	f->disk->sys = 0; /* an earlier attempt may have failed */
	return &f->pub;
}

static herr_t driver_close(H5FD_t *pub)
{
	struct file *f = (struct file *)pub;

	/* file systems with delayed writes report here that data did not fit */
	if (close(f->fd) && !f->disk->sys)
		f->disk->sys = errno;
	pen__buf_fini(&f->late);
	pen__free(f);
	return 0;
}

/* Like libhdf5's own file driver, so that files are identical. */
static herr_t driver_query(const H5FD_t *pub, unsigned long *flags)
{
	(void)pub;
	*flags = H5FD_FEAT_AGGREGATE_METADATA | H5FD_FEAT_ACCUMULATE_METADATA |
		 H5FD_FEAT_DATA_SIEVE | H5FD_FEAT_AGGREGATE_SMALLDATA;
	return 0;
}

static haddr_t driver_get_eoa(const H5FD_t *pub, H5FD_mem_t type)
{
	(void)type;
	return ((const struct file *)pub)->eoa;
}

static herr_t driver_set_eoa(H5FD_t *pub, H5FD_mem_t type, haddr_t at)
{
	(void)type;
	((struct file *)pub)->eoa = at;
	return 0;
}

static haddr_t driver_get_eof(const H5FD_t *pub, H5FD_mem_t type)
{
	(void)type;
	return ((const struct file *)pub)->eof;
}

/* Applies late writes to the bytes read. */
static void put_late(const struct file *f, haddr_t at, size_t n, uint8_t *to)
{
	struct pen_bytes b = pen__bytes(f->late.p, f->late.n);

	while (pen__bytes_left(&b)) {
		const uint64_t from = pen__take_u64(&b);
		const uint64_t len = pen__take_u64(&b);
		const uint8_t *p = pen__take(&b, len);
		const uint64_t lo = from > at ? from : at;
		const uint64_t hi = from + len < at + n ? from + len : at + n;

		if (p && lo < hi)
			memcpy(to + (lo - at), p + (lo - from),
			       (size_t)(hi - lo));
	}
}

/* Bytes that were never written read as zeros. */
static herr_t driver_read(H5FD_t *pub, H5FD_mem_t type, hid_t dxpl, haddr_t at,
			  size_t n, void *buf)
{
	const struct file *f = (const struct file *)pub;
	uint8_t *to = buf;
	size_t got = 0;

	(void)type;
	(void)dxpl;
	memset(to, 0, n);
	while (got < n) {
		const ssize_t k =
			pread(f->fd, to + got, n - got, (off_t)(at + got));

		if (k < 0 && errno == EINTR)
			continue;
		if (k < 0 && !f->disk->sys)
			f->disk->sys = errno;
		if (k <= 0)
			break;
		got += (size_t)k;
	}
	put_late(f, at, n, to);
	return 0;
}

static herr_t driver_write(H5FD_t *pub, H5FD_mem_t type, hid_t dxpl, haddr_t at,
			   size_t n, const void *buf)
{
	struct file *f = (struct file *)pub;
	const uint8_t *p = buf;
	size_t done = 0;

	(void)type;
	(void)dxpl;
	while (done < n && !f->disk->sys) {
		const ssize_t k =
			pwrite(f->fd, p + done, n - done, (off_t)(at + done));

		if (k >= 0)
			done += (size_t)k;
		else if (errno != EINTR)
			f->disk->sys = errno;
	}
	if (done < n) {
		pen__buf_le(&f->late, at + done, 8);
		pen__buf_le(&f->late, n - done, 8);
		pen__buf_put(&f->late, p + done, n - done);
	}
	if (at + n > f->eof)
		f->eof = at + n;
	return 0;
}

static herr_t driver_truncate(H5FD_t *pub, hid_t dxpl, hbool_t closing)
{
	struct file *f = (struct file *)pub;

	(void)dxpl;
	(void)closing;
	if (f->eoa != f->eof && !f->disk->sys &&
	    ftruncate(f->fd, (off_t)f->eoa))
		f->disk->sys = errno;
	f->eof = f->eoa;
	return 0;
}

static const H5FD_class_t driver = {
#if H5_VERSION_GE(1, 14, 0)
	.version = H5FD_CLASS_VERSION,
	.value = (H5FD_class_value_t)500, /* from the range for private use */
#endif
	.name = "penstock",
	.maxaddr = INT64_MAX,
	.fc_degree = H5F_CLOSE_WEAK,
	.fapl_size = sizeof(struct info),
	.open = driver_open,
	.close = driver_close,
	.query = driver_query,
	.get_eoa = driver_get_eoa,
	.set_eoa = driver_set_eoa,
	.get_eof = driver_get_eof,
	.read = driver_read,
	.write = driver_write,
	.truncate = driver_truncate,
	.fl_map = H5FD_FLMAP_DICHOTOMY,
};

bool pen__hdf5_set_driver(hid_t fapl, struct pen_hdf5_disk *disk)
{
	const struct info in = { disk };
	const hid_t id = H5FDregister(&driver);
	const bool ok = id >= 0 && H5Pset_driver(fapl, id, &in) >= 0;

	/* the list and the file hold their own references */
	if (id >= 0)
		H5FDunregister(id);
	return ok;
}
