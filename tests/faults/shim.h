/* What the files of the shim share: see shim.c. */
#ifndef PEN_TESTS_SHIM_H
#define PEN_TESTS_SHIM_H

#undef _FORTIFY_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/vfs.h>
#include <unistd.h>
#if __has_include(<liburing.h>)
#include <liburing.h>
#define HAS_URING 1
#endif

/* clang-format off */
#define KINDS(X) \
	X(any) X(malloc) X(mmap) X(open) X(stat) X(read) X(write) X(fsync) \
	X(rename) X(size) X(close) X(mkdir) X(unlink) X(uring) X(socket) \
	X(thread)
/* clang-format on */
enum kind {
#define NAME(k) K_##k,
	KINDS(NAME) NKINDS
#undef NAME
};
enum hit { NONE, FAIL, SHORT };

extern __thread int shim_inside __attribute__((tls_model("initial-exec")));

/* The next definition of a function; resolved once. */
#define REAL(name)                                                             \
	({                                                                     \
		static __typeof__(name) *real_;                                \
		if (!real_) {                                                  \
			shim_inside++;                                         \
			real_ = (__typeof__(name) *)dlsym(RTLD_NEXT, #name);   \
			shim_inside--;                                         \
		}                                                              \
		real_;                                                         \
	})

/* Counts a call on a path (relative to the directory fd), or else on fd; says
 * what it has to do and sets errno. */
enum hit shim_fault(enum kind k, int fd, const char *path);
bool shim_fails(enum kind k, int fd, const char *path);
int shim_errno(void); /* the chosen one */
size_t shim_moved(enum hit h, size_t n);
/* How many of n bytes still fit on the disk; 0 sets errno. */
size_t shim_fitting(int fd, size_t n);
/* Is that an address of the program, not of a library? */
bool shim_is_own(const void *caller);
bool shim_is_file(int fd, struct stat *sb);

bool shim_traces(void);
void shim_record_paths(char op, const char *a, int dir, const char *b);
void shim_record_fd(char op, int fd, uint64_t at, const void *data, size_t n);
void shim_record_open(int fd, int flags);
int shim_open(int dir, const char *path, int flags, mode_t mode);

#endif
