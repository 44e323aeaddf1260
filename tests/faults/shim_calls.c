/* Other calls: looking at files, streams, sockets, io_uring. See shim.c. */
#include "shim.h"

/* ---- looking ---- */

/* clang-format off */
#define LOOK(name, type) \
	int name(const char *path, type *to) \
	{ \
		return shim_fails(K_stat, AT_FDCWD, path) ? -1 \
						     : REAL(name)(path, to); \
	}
#define LOOK_FD(name, type) \
	int name(int fd, type *to) \
	{ \
		return shim_fails(K_stat, fd, NULL) ? -1 : REAL(name)(fd, to); \
	}
#define LOOK_AT(name, type) \
	int name(int dir, const char *path, type *to, int flags) \
	{ \
		return shim_fails(K_stat, dir, path) \
			       ? -1 : REAL(name)(dir, path, to, flags); \
	}
LOOK(stat, struct stat)
LOOK(stat64, struct stat64)
LOOK(lstat, struct stat)
LOOK(lstat64, struct stat64)
LOOK(statfs, struct statfs)
LOOK(statvfs, struct statvfs)
LOOK(statfs64, struct statfs64)
LOOK(statvfs64, struct statvfs64)
LOOK_FD(fstat, struct stat)
LOOK_FD(fstat64, struct stat64)
LOOK_FD(fstatfs, struct statfs)
LOOK_FD(fstatvfs, struct statvfs)
LOOK_FD(fstatfs64, struct statfs64)
LOOK_FD(fstatvfs64, struct statvfs64)
LOOK_AT(fstatat, struct stat)
LOOK_AT(fstatat64, struct stat64)
/* clang-format on */

int statx(int dir, const char *path, int flags, unsigned mask, struct statx *to)
{
	return shim_fails(K_stat, dir, path)
		       ? -1
		       : (int)syscall(SYS_statx, dir, path, flags, mask, to);
}

int access(const char *path, int mode)
{
	return shim_fails(K_stat, AT_FDCWD, path)
		       ? -1
		       : (int)syscall(SYS_faccessat, AT_FDCWD, path, mode);
}

ssize_t readlink(const char *path, char *buf, size_t n)
{
	return shim_fails(K_stat, AT_FDCWD, path)
		       ? -1
		       : syscall(SYS_readlinkat, AT_FDCWD, path, buf, n);
}

char *realpath(const char *path, char *to)
{
	return shim_fails(K_stat, AT_FDCWD, path) ? NULL
						  : REAL(realpath)(path, to);
}

/* ---- streams ---- */

static ssize_t stream_read(void *fd, char *buf, size_t n)
{
	ssize_t k;

	do /* our handlers have SA_RESTART */
		k = read((int)(intptr_t)fd, buf, n);
	while (k < 0 && errno == EINTR);
	return k;
}

static ssize_t stream_write(void *fd, const char *buf, size_t n)
{
	const ssize_t k = write((int)(intptr_t)fd, buf, n);

	return k < 0 ? 0 : k; /* fopencookie(3): 0 is the error */
}

static int stream_seek(void *fd, off64_t *at, int whence)
{
	*at = lseek((int)(intptr_t)fd, *at, whence);
	return *at < 0 ? -1 : 0;
}

static int stream_close(void *fd)
{
	return close((int)(intptr_t)fd);
}

FILE *fopen(const char *path, const char *mode)
{
	const cookie_io_functions_t io = { stream_read, stream_write,
					   stream_seek, stream_close };
	int flags = strchr(mode, '+') ? O_RDWR
		    : *mode == 'r'    ? O_RDONLY
				      : O_WRONLY;
	FILE *f;
	int fd;

	flags |= *mode == 'r' ? 0 : O_CREAT;
	flags |= *mode == 'w' ? O_TRUNC : *mode == 'a' ? O_APPEND : 0;
	flags |= strchr(mode, 'e') ? O_CLOEXEC : 0;
	fd = shim_open(AT_FDCWD, path, flags, 0666);
	if (fd < 0)
		return NULL;
	f = fopencookie((void *)(intptr_t)fd, mode, io);
	if (!f)
		syscall(SYS_close, fd);
	return f;
}

FILE *fopen64(const char *path, const char *mode)
{
	return fopen(path, mode);
}

/* ---- sockets ---- */

/* Only those of the command: MPI has its own. */
#define SOCKET(fd)                                                             \
	(shim_is_own(__builtin_return_address(0))                              \
		 ? shim_fault(K_socket, fd, NULL)                              \
		 : NONE)
#define NO_SOCKET(fd) (SOCKET(fd) == FAIL)

int socket(int domain, int type, int protocol)
{
	return NO_SOCKET(-1) ? -1
			     : (int)syscall(SYS_socket, domain, type, protocol);
}

int socketpair(int domain, int type, int protocol, int fd[2])
{
	return NO_SOCKET(-1) ? -1
			     : (int)syscall(SYS_socketpair, domain, type,
					    protocol, fd);
}

int connect(int fd, const struct sockaddr *a, socklen_t n)
{
	return NO_SOCKET(fd) ? -1 : (int)syscall(SYS_connect, fd, a, n);
}

int bind(int fd, const struct sockaddr *a, socklen_t n)
{
	return NO_SOCKET(fd) ? -1 : (int)syscall(SYS_bind, fd, a, n);
}

int listen(int fd, int n)
{
	return NO_SOCKET(fd) ? -1 : (int)syscall(SYS_listen, fd, n);
}

int accept4(int fd, struct sockaddr *a, socklen_t *n, int flags)
{
	return NO_SOCKET(fd) ? -1 : (int)syscall(SYS_accept4, fd, a, n, flags);
}

int accept(int fd, struct sockaddr *a, socklen_t *n)
{
	return NO_SOCKET(fd) ? -1 : (int)syscall(SYS_accept4, fd, a, n, 0);
}

ssize_t sendto(int fd, const void *buf, size_t n, int flags,
	       const struct sockaddr *a, socklen_t na)
{
	const enum hit h = SOCKET(fd);

	return h == FAIL ? -1
			 : syscall(SYS_sendto, fd, buf, shim_moved(h, n), flags,
				   a, na);
}

ssize_t send(int fd, const void *buf, size_t n, int flags)
{
	const enum hit h = SOCKET(fd);

	return h == FAIL ? -1
			 : syscall(SYS_sendto, fd, buf, shim_moved(h, n), flags,
				   NULL, 0);
}

ssize_t recvfrom(int fd, void *buf, size_t n, int flags, struct sockaddr *a,
		 socklen_t *na)
{
	const enum hit h = SOCKET(fd);

	return h == FAIL ? -1
			 : syscall(SYS_recvfrom, fd, buf, shim_moved(h, n),
				   flags, a, na);
}

ssize_t recv(int fd, void *buf, size_t n, int flags)
{
	const enum hit h = SOCKET(fd);

	return h == FAIL ? -1
			 : syscall(SYS_recvfrom, fd, buf, shim_moved(h, n),
				   flags, NULL, NULL);
}

ssize_t sendmsg(int fd, const struct msghdr *m, int flags)
{
	return NO_SOCKET(fd) ? -1 : syscall(SYS_sendmsg, fd, m, flags);
}

ssize_t recvmsg(int fd, struct msghdr *m, int flags)
{
	return NO_SOCKET(fd) ? -1 : syscall(SYS_recvmsg, fd, m, flags);
}

/* ---- io_uring ---- */

#ifdef HAS_URING
/* A completion is made to fail where it is requested: the kernel answers EBADF
 * to a read from no file, and moves half of a shortened read. */
static void spoil(struct io_uring *ring)
{
	const struct io_uring_sq *sq = &ring->sq;

	for (unsigned i = sq->sqe_head; i != sq->sqe_tail; i++) {
		struct io_uring_sqe *e = &sq->sqes[i & *sq->kring_mask];
		const enum hit h = shim_fault(K_uring, -1, NULL);

		if (h == FAIL) {
			e->fd = -1;
			e->flags &= (uint8_t)~IOSQE_FIXED_FILE;
		}
		e->len = (uint32_t)shim_moved(h, e->len);
	}
}

int io_uring_submit(struct io_uring *ring)
{
	spoil(ring);
	return REAL(io_uring_submit)(ring);
}

int io_uring_submit_and_wait(struct io_uring *ring, unsigned n)
{
	spoil(ring);
	return REAL(io_uring_submit_and_wait)(ring, n);
}

int io_uring_queue_init(unsigned n, struct io_uring *ring, unsigned flags)
{
	return shim_fails(K_uring, -1, NULL)
		       ? -shim_errno()
		       : REAL(io_uring_queue_init)(n, ring, flags);
}
#endif
