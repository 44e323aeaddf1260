/* Calls on files: opening, reading, writing, names. See shim.c. */
#include "shim.h"

/* ---- opening and closing ---- */

int shim_open(int dir, const char *path, int flags, mode_t mode)
{
	int fd;

	if (shim_fails(K_open, dir, path))
		return -1;
	fd = (int)syscall(SYS_openat, dir, path, flags, mode);
	if (fd >= 0 && !shim_inside)
		shim_record_open(fd, flags);
	return fd;
}

#define MODE_OF(flags)                                                         \
	({                                                                     \
		mode_t mode_ = 0;                                              \
		if ((flags) & (O_CREAT | O_TMPFILE)) {                         \
			va_list ap_;                                           \
			va_start(ap_, flags);                                  \
			mode_ = va_arg(ap_, mode_t);                           \
			va_end(ap_);                                           \
		}                                                              \
		mode_;                                                         \
	})

int open(const char *path, int flags, ...)
{
	return shim_open(AT_FDCWD, path, flags, MODE_OF(flags));
}

int open64(const char *path, int flags, ...)
{
	return shim_open(AT_FDCWD, path, flags, MODE_OF(flags));
}

int openat(int dir, const char *path, int flags, ...)
{
	return shim_open(dir, path, flags, MODE_OF(flags));
}

int openat64(int dir, const char *path, int flags, ...)
{
	return shim_open(dir, path, flags, MODE_OF(flags));
}

int __open_2(const char *path, int flags);
int __open_2(const char *path, int flags)
{
	return shim_open(AT_FDCWD, path, flags, 0);
}

int __open64_2(const char *path, int flags);
int __open64_2(const char *path, int flags)
{
	return shim_open(AT_FDCWD, path, flags, 0);
}

int __openat_2(int dir, const char *path, int flags);
int __openat_2(int dir, const char *path, int flags)
{
	return shim_open(dir, path, flags, 0);
}

int __openat64_2(int dir, const char *path, int flags);
int __openat64_2(int dir, const char *path, int flags)
{
	return shim_open(dir, path, flags, 0);
}

static int made_temporary(int fd, int flags)
{
	if (fd >= 0)
		shim_record_open(fd, flags);
	return fd;
}

int mkostemps(char *path, int nsuffix, int flags)
{
	if (shim_fails(K_open, AT_FDCWD, path))
		return -1;
	return made_temporary(REAL(mkostemps)(path, nsuffix, flags), 0);
}

int mkostemps64(char *path, int nsuffix, int flags)
{
	return mkostemps(path, nsuffix, flags);
}

int mkostemp(char *path, int flags)
{
	if (shim_fails(K_open, AT_FDCWD, path))
		return -1;
	return made_temporary(REAL(mkostemp)(path, flags), 0);
}

int mkstemp(char *path)
{
	return mkostemp(path, 0);
}

int memfd_create(const char *name, unsigned flags)
{
	return shim_fails(K_open, -1, NULL)
		       ? -1
		       : (int)syscall(SYS_memfd_create, name, flags);
}

int shm_open(const char *name, int flags, mode_t mode)
{
	return shim_fails(K_open, -1, NULL) ? -1
					    : REAL(shm_open)(name, flags, mode);
}

DIR *opendir(const char *path)
{
	return shim_fails(K_open, AT_FDCWD, path) ? NULL : REAL(opendir)(path);
}

int scandir64(const char *path, struct dirent64 ***list,
	      int (*wanted)(const struct dirent64 *),
	      int (*order)(const struct dirent64 **, const struct dirent64 **))
{
	return shim_fails(K_open, AT_FDCWD, path)
		       ? -1
		       : REAL(scandir64)(path, list, wanted, order);
}

DIR *fdopendir(int fd)
{
	return shim_fails(K_open, fd, NULL) ? NULL : REAL(fdopendir)(fd);
}

/* As Linux does it: the file is closed even if close() reports an error. */
int close(int fd)
{
	const bool bad = shim_fails(K_close, fd, NULL);
	const int sys = errno;
	const int rc = (int)syscall(SYS_close, fd);

	if (bad)
		errno = sys;
	return bad ? -1 : rc;
}

/* ---- reading ---- */

ssize_t read(int fd, void *buf, size_t n)
{
	const enum hit h = shim_fault(K_read, fd, NULL);

	return h == FAIL ? -1 : syscall(SYS_read, fd, buf, shim_moved(h, n));
}

ssize_t __read_chk(int fd, void *buf, size_t n, size_t room);
ssize_t __read_chk(int fd, void *buf, size_t n, size_t room)
{
	return n > room ? (abort(), -1) : read(fd, buf, n);
}

ssize_t pread(int fd, void *buf, size_t n, off_t at)
{
	const enum hit h = shim_fault(K_read, fd, NULL);

	return h == FAIL ? -1
			 : syscall(SYS_pread64, fd, buf, shim_moved(h, n), at);
}

ssize_t pread64(int fd, void *buf, size_t n, off64_t at)
{
	return pread(fd, buf, n, at);
}

ssize_t __pread_chk(int fd, void *buf, size_t n, off_t at, size_t room);
ssize_t __pread_chk(int fd, void *buf, size_t n, off_t at, size_t room)
{
	return n > room ? (abort(), -1) : pread(fd, buf, n, at);
}

ssize_t __pread64_chk(int fd, void *buf, size_t n, off_t at, size_t room);
ssize_t __pread64_chk(int fd, void *buf, size_t n, off_t at, size_t room)
{
	return __pread_chk(fd, buf, n, at, room);
}

ssize_t readv(int fd, const struct iovec *v, int n)
{
	return shim_fails(K_read, fd, NULL) ? -1 : syscall(SYS_readv, fd, v, n);
}

ssize_t preadv(int fd, const struct iovec *v, int n, off_t at)
{
	return shim_fails(K_read, fd, NULL) ? -1 : REAL(preadv)(fd, v, n, at);
}

ssize_t preadv64(int fd, const struct iovec *v, int n, off64_t at)
{
	return preadv(fd, v, n, at);
}

/* Reading a directory is not interrupted. */
static bool no_entry(int fd)
{
	return shim_fails(K_read, fd, NULL) && errno != EINTR;
}

ssize_t getdents64(int fd, void *buf, size_t n)
{
	return no_entry(fd) ? -1 : syscall(SYS_getdents64, fd, buf, n);
}

struct dirent *readdir(DIR *d)
{
	return no_entry(dirfd(d)) ? NULL : REAL(readdir)(d);
}

struct dirent64 *readdir64(DIR *d)
{
	return no_entry(dirfd(d)) ? NULL : REAL(readdir64)(d);
}

/* ---- writing ---- */

static ssize_t write_at(int fd, const void *buf, size_t n, off_t at)
{
	const enum hit h = shim_fault(K_write, fd, NULL);
	const size_t m = h == FAIL ? 0 : shim_fitting(fd, shim_moved(h, n));
	off_t from = at;
	struct stat sb;
	ssize_t k;

	if (h == FAIL || (n && !m))
		return -1;
	if (shim_traces() && at < 0) {
		const int flags = (int)syscall(SYS_fcntl, fd, F_GETFL);

		from = flags & O_APPEND && shim_is_file(fd, &sb)
			       ? sb.st_size
			       : syscall(SYS_lseek, fd, 0, SEEK_CUR);
	}
	k = at < 0 ? syscall(SYS_write, fd, buf, m)
		   : syscall(SYS_pwrite64, fd, buf, m, at);
	if (k > 0)
		shim_record_fd('W', fd, (uint64_t)from, buf, (size_t)k);
	return k;
}

ssize_t write(int fd, const void *buf, size_t n)
{
	return write_at(fd, buf, n, -1);
}

ssize_t pwrite(int fd, const void *buf, size_t n, off_t at)
{
	return write_at(fd, buf, n, at);
}

ssize_t pwrite64(int fd, const void *buf, size_t n, off64_t at)
{
	return write_at(fd, buf, n, at);
}

/* One part a call: allowed, and enough to see every byte. */
ssize_t writev(int fd, const struct iovec *v, int n)
{
	for (int i = 0; i < n; i++)
		if (v[i].iov_len)
			return write_at(fd, v[i].iov_base, v[i].iov_len, -1);
	return 0;
}

ssize_t pwritev(int fd, const struct iovec *v, int n, off_t at)
{
	for (int i = 0; i < n; i++)
		if (v[i].iov_len)
			return write_at(fd, v[i].iov_base, v[i].iov_len, at);
	return 0;
}

ssize_t pwritev64(int fd, const struct iovec *v, int n, off64_t at)
{
	return pwritev(fd, v, n, at);
}

static int sync_fd(int fd, long call, char op)
{
	int rc;

	if (shim_fails(K_fsync, fd, NULL))
		return -1;
	rc = (int)syscall(call, fd);
	if (!rc)
		shim_record_fd(op, fd, 0, NULL, 0);
	return rc;
}

int fsync(int fd)
{
	return sync_fd(fd, SYS_fsync, 'S');
}

int fdatasync(int fd)
{
	return sync_fd(fd, SYS_fdatasync, 'S');
}

int syncfs(int fd)
{
	return sync_fd(fd, SYS_syncfs, 'F');
}

int ftruncate(int fd, off_t n)
{
	int rc;

	if (shim_fails(K_size, fd, NULL))
		return -1;
	rc = (int)syscall(SYS_ftruncate, fd, n);
	if (!rc)
		shim_record_fd('T', fd, (uint64_t)n, NULL, 0);
	return rc;
}

int ftruncate64(int fd, off64_t n)
{
	return ftruncate(fd, n);
}

int fallocate(int fd, int mode, off_t at, off_t n)
{
	if (shim_fails(K_size, fd, NULL))
		return -1;
	return (int)syscall(SYS_fallocate, fd, mode, at, n);
}

int fallocate64(int fd, int mode, off64_t at, off64_t n)
{
	return fallocate(fd, mode, at, n);
}

int posix_fallocate(int fd, off_t at, off_t n)
{
	return fallocate(fd, 0, at, n) ? errno : 0;
}

/* ---- names ---- */

int rename(const char *a, const char *b)
{
	int rc;

	if (shim_fails(K_rename, AT_FDCWD, a))
		return -1;
	rc = (int)syscall(SYS_renameat2, AT_FDCWD, a, AT_FDCWD, b, 0);
	if (!rc)
		shim_record_paths('R', a, AT_FDCWD, b);
	return rc;
}

int renameat(int da, const char *a, int db, const char *b)
{
	return shim_fails(K_rename, da, a)
		       ? -1
		       : (int)syscall(SYS_renameat2, da, a, db, b, 0);
}

int renameat2(int da, const char *a, int db, const char *b, unsigned flags)
{
	return shim_fails(K_rename, da, a)
		       ? -1
		       : (int)syscall(SYS_renameat2, da, a, db, b, flags);
}

int mkdir(const char *path, mode_t mode)
{
	int rc;

	if (shim_fails(K_mkdir, AT_FDCWD, path))
		return -1;
	rc = (int)syscall(SYS_mkdirat, AT_FDCWD, path, mode);
	if (!rc)
		shim_record_paths('M', path, AT_FDCWD, NULL);
	return rc;
}

char *mkdtemp(char *path)
{
	char *made = shim_fails(K_mkdir, AT_FDCWD, path) ? NULL
							 : REAL(mkdtemp)(path);

	if (made)
		shim_record_paths('M', made, AT_FDCWD, NULL);
	return made;
}

int unlinkat(int dir, const char *path, int flags)
{
	int rc;

	if (shim_fails(K_unlink, dir, path))
		return -1;
	rc = (int)syscall(SYS_unlinkat, dir, path, flags);
	if (!rc)
		shim_record_paths('U', path, dir, NULL);
	return rc;
}

int unlink(const char *path)
{
	return unlinkat(AT_FDCWD, path, 0);
}

int rmdir(const char *path)
{
	return unlinkat(AT_FDCWD, path, AT_REMOVEDIR);
}

int shm_unlink(const char *name)
{
	return shim_fails(K_unlink, -1, NULL) ? -1 : REAL(shm_unlink)(name);
}
