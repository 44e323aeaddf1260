/*
 * A library for LD_PRELOAD that counts the calls of a command and fails chosen
 * ones. tests/e2e/faults.py drives it through the environment:
 *
 *   FAULT_STATE=FILE    shared counters (struct state), for all processes
 *   FAULT=KIND N once|on|short|kill ERRNO
 *                       fails call N of a kind, or all from it on; `short`
 *                       moves half of the bytes; `kill` kills the process group
 *   FAULT_BUDGET=BYTES  regular files take this many bytes, then ENOSPC
 *   FAULT_TRACE=FILE    records what changes files, with the bytes
 *   FAULT_LOG=FILE      a line for each call: kind and path
 *
 * stdio streams of fopen() run through the same calls. What libc calls from
 * within (stdout, malloc's own mmap, the loader) does not pass through here.
 */
#include "shim.h"

static const char *const names[] = {
#define NAME(k) #k,
	KINDS(NAME)
#undef NAME
};

struct state {
	_Atomic uint64_t count[NKINDS];
	_Atomic uint64_t fired;
	_Atomic uint64_t written; /* bytes, to regular files */
};

static struct state *state;
static struct {
	enum kind kind;
	uint64_t n;
	bool on, brief, kill;
	int sys;
} want;
static uint64_t budget = UINT64_MAX;
static int trace_fd = -1, log_fd = -1;
__thread int shim_inside __attribute__((tls_model("initial-exec")));

/* ---- deciding ---- */

static void put_line(int fd, const char *line, size_t n)
{
	(void)!syscall(SYS_write, fd, line, n);
}

/* The path of an open file, as the kernel spells it. */
static void path_of(int fd, char *to, size_t cap)
{
	char link[64];
	long n;

	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	n = syscall(SYS_readlinkat, AT_FDCWD, link, to, cap - 1);
	to[n > 0 ? n : 0] = '\0';
}

static void full_path(int dir, const char *path, char *to, size_t cap)
{
	char base[4096];
	long n = 1;

	base[0] = '\0';
	if (path[0] != '/' && dir != AT_FDCWD)
		path_of(dir, base, sizeof(base));
	else if (path[0] != '/')
		n = syscall(SYS_getcwd, base, sizeof(base));
	if (n <= 0)
		base[0] = '\0';
	while (path[0] == '.' && path[1] == '/')
		path += 2;
	snprintf(to, cap, "%s%s%s", base, base[0] && path[0] ? "/" : "", path);
}

static void log_call(enum kind k, int fd, const char *path)
{
	char full[4096], line[4200];
	int n;

	if (log_fd < 0 || k == K_malloc)
		return;
	if (path)
		full_path(fd, path, full, sizeof(full));
	else if (fd >= 0)
		path_of(fd, full, sizeof(full));
	else
		full[0] = '\0';
	n = snprintf(line, sizeof(line), "%s %s\n", names[k], full);
	put_line(log_fd, line, (size_t)n);
}

/* Event counters of the process itself cannot fail. */
static bool is_counter(enum kind k, int fd)
{
	const int sys = errno;
	struct stat sb;
	const bool is = (k == K_write || k == K_read) && fd >= 0 &&
			!syscall(SYS_fstat, fd, &sb) && !(sb.st_mode & S_IFMT);

	errno = sys;
	return is;
}

enum hit shim_fault(enum kind k, int fd, const char *path)
{
	uint64_t n, all;
	int sys = errno;
	bool hit;

	if (!state || shim_inside || (want.n && !path && is_counter(k, fd)))
		return NONE;
	shim_inside++;
	n = atomic_fetch_add(&state->count[k], 1) + 1;
	all = atomic_fetch_add(&state->count[K_any], 1) + 1;
	log_call(k, fd, path);
	if (want.kind == K_any)
		n = all;
	hit = want.n && (want.kind == k || want.kind == K_any) &&
	      (want.on ? n >= want.n : n == want.n);
	if (hit) {
		atomic_fetch_add(&state->fired, 1);
		if (want.kill)
			kill(0, SIGKILL);
	}
	shim_inside--;
	errno = hit && !want.brief ? want.sys : sys;
	return !hit ? NONE : want.brief ? SHORT : FAIL;
}

bool shim_fails(enum kind k, int fd, const char *path)
{
	return shim_fault(k, fd, path) == FAIL;
}

bool shim_is_file(int fd, struct stat *sb)
{
	return !syscall(SYS_fstat, fd, sb) && S_ISREG(sb->st_mode);
}

/* How many of n bytes still fit on the disk; 0 sets errno. */
size_t shim_fitting(int fd, size_t n)
{
	const int sys = errno;
	struct stat sb;
	uint64_t had;

	/* with a log, only the calls of the command */
	if (!state || shim_inside || !n || log_fd >= 0 ||
	    !shim_is_file(fd, &sb)) {
		errno = sys;
		return n;
	}
	had = atomic_fetch_add(&state->written, n);
	errno = sys;
	if (had + n <= budget)
		return n;
	atomic_fetch_add(&state->fired, 1);
	if (had < budget)
		return (size_t)(budget - had);
	errno = ENOSPC;
	return 0;
}

/* ---- recording ---- */

static void record(const char *head, size_t nhead, const void *data, size_t n)
{
	const struct iovec v[3] = { { (void *)(uintptr_t)head, nhead },
				    { (void *)(uintptr_t)data, n },
				    { (void *)(uintptr_t) "\n", 1 } };

	(void)!syscall(SYS_writev, trace_fd, v, 3);
}

void shim_record_paths(char op, const char *a, int dir, const char *b)
{
	char one[4096], two[4096] = "", line[8300];
	const int sys = errno;

	if (trace_fd < 0)
		return;
	full_path(dir, a, one, sizeof(one));
	if (b)
		full_path(dir, b, two, sizeof(two));
	record(line,
	       (size_t)snprintf(line, sizeof(line), "%c\t%s\t%s", op, one, two),
	       NULL, 0);
	errno = sys;
}

void shim_record_fd(char op, int fd, uint64_t at, const void *data, size_t n)
{
	const int sys = errno;
	struct stat sb;
	char line[128];

	if (trace_fd >= 0 && !syscall(SYS_fstat, fd, &sb) &&
	    (S_ISREG(sb.st_mode) || S_ISDIR(sb.st_mode)))
		record(line,
		       (size_t)snprintf(
			       line, sizeof(line), "%c\t%lu\t%lu\t%zu\n", op,
			       (unsigned long)sb.st_ino, (unsigned long)at, n),
		       data, n);
	errno = sys;
}

void shim_record_open(int fd, int flags)
{
	const int sys = errno;
	char path[4096], line[4300];
	struct stat sb;

	if (trace_fd >= 0 && !syscall(SYS_fstat, fd, &sb)) {
		path_of(fd, path, sizeof(path));
		record(line,
		       (size_t)snprintf(line, sizeof(line), "%c\t%lu\t%s",
					flags & O_TRUNC ? 'C' : 'O',
					(unsigned long)sb.st_ino, path),
		       NULL, 0);
	}
	errno = sys;
}

/* ---- memory and threads ---- */

void *__libc_malloc(size_t n);
void *__libc_calloc(size_t n, size_t size);
void *__libc_realloc(void *p, size_t n);
void *__libc_memalign(size_t align, size_t n);

/* libhdf5 cannot handle a failed allocation, and ends the process; what calls
 * it makes sure of memory first. e2e/disk_full.py limits memory for it. */
static uintptr_t spared_from, spared_to, own_from, own_to;

static uintptr_t end_of(const struct dl_phdr_info *o)
{
	uintptr_t end = 0;

	for (int i = 0; i < o->dlpi_phnum; i++)
		if (o->dlpi_phdr[i].p_type == PT_LOAD)
			end = o->dlpi_addr + o->dlpi_phdr[i].p_vaddr +
			      o->dlpi_phdr[i].p_memsz;
	return end;
}

static int find_spared(struct dl_phdr_info *o, size_t n, void *arg)
{
	(void)n;
	(void)arg;
	if (!own_from) { /* the program comes first */
		own_from = o->dlpi_addr;
		own_to = end_of(o);
	}
	if (!strstr(o->dlpi_name, "libhdf5"))
		return 0;
	spared_from = o->dlpi_addr;
	spared_to = end_of(o);
	return 1;
}

bool shim_is_own(const void *caller)
{
	const uintptr_t at = (uintptr_t)caller;

	return at >= own_from && at < own_to;
}

static bool no_memory(const void *caller)
{
	const uintptr_t at = (uintptr_t)caller;

	return (at < spared_from || at >= spared_to) &&
	       shim_fails(K_malloc, -1, NULL);
}

#define NO_MEMORY() no_memory(__builtin_return_address(0))

void *malloc(size_t n)
{
	return NO_MEMORY() ? NULL : __libc_malloc(n);
}

void *calloc(size_t n, size_t size)
{
	return NO_MEMORY() ? NULL : __libc_calloc(n, size);
}

void *realloc(void *p, size_t n)
{
	return NO_MEMORY() ? NULL : __libc_realloc(p, n);
}

void *memalign(size_t align, size_t n)
{
	return NO_MEMORY() ? NULL : __libc_memalign(align, n);
}

void *aligned_alloc(size_t align, size_t n)
{
	return NO_MEMORY() ? NULL : __libc_memalign(align, n);
}

char *strdup(const char *from)
{
	const size_t n = strlen(from) + 1;
	char *to = NO_MEMORY() ? NULL : __libc_malloc(n);

	return to ? memcpy(to, from, n) : NULL;
}

int vasprintf(char **out, const char *fmt, va_list ap)
{
	const uintptr_t at = (uintptr_t)__builtin_return_address(0);
	const bool spared = at >= spared_from && at < spared_to;
	int n;

	shim_inside += spared;
	n = REAL(vasprintf)(out, fmt, ap);
	shim_inside -= spared;
	return n;
}

int posix_memalign(void **out, size_t align, size_t n)
{
	void *p = NO_MEMORY() ? NULL : __libc_memalign(align, n);

	if (!p)
		return ENOMEM;
	*out = p;
	return 0;
}

void *mmap(void *p, size_t n, int prot, int flags, int fd, off_t at)
{
	return shim_fails(K_mmap, fd, NULL)
		       ? MAP_FAILED
		       : (void *)syscall(SYS_mmap, p, n, prot, flags, fd, at);
}

void *mmap64(void *p, size_t n, int prot, int flags, int fd, off64_t at)
{
	return mmap(p, n, prot, flags, fd, at);
}

int pthread_create(pthread_t *t, const pthread_attr_t *a, void *(*fn)(void *),
		   void *arg)
{
	return shim_fails(K_thread, -1, NULL)
		       ? EAGAIN
		       : REAL(pthread_create)(t, a, fn, arg);
}

pid_t fork(void)
{
	return shim_fails(K_thread, -1, NULL) ? -1 : REAL(fork)();
}

size_t shim_moved(enum hit h, size_t n)
{
	return h == SHORT && n > 1 ? n / 2 : n;
}

int shim_errno(void)
{
	return want.sys;
}

bool shim_traces(void)
{
	return trace_fd >= 0;
}

/* ---- start and end ---- */

static int open_far(const char *name)
{
	const char *path = getenv(name);
	int fd, far;

	if (!path)
		return -1;
	fd = (int)syscall(SYS_openat, AT_FDCWD, path,
			  O_RDWR | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
	/* away from the numbers that the command gets */
	far = (int)syscall(SYS_fcntl, fd, F_DUPFD_CLOEXEC, 900);
	syscall(SYS_close, fd);
	return far;
}

static bool parse(const char *s)
{
	char kind[16], how[16];
	unsigned long n;

	if (sscanf(s, "%15s %lu %15s %d", kind, &n, how, &want.sys) != 4)
		return false;
	want.n = n;
	want.on = !strcmp(how, "on");
	want.brief = !strcmp(how, "short");
	want.kill = !strcmp(how, "kill");
	while (want.kind < NKINDS && strcmp(names[want.kind], kind) != 0)
		want.kind++;
	return want.kind < NKINDS;
}

__attribute__((constructor)) static void start(void)
{
	const char *s = getenv("FAULT"), *b = getenv("FAULT_BUDGET");
	const int fd = open_far("FAULT_STATE");
	void *p;

	if (fd < 0)
		return;
	if (s && !parse(s)) {
		put_line(2, "shim: bad FAULT\n", 16);
		_exit(99);
	}
	budget = b ? strtoull(b, NULL, 10) : UINT64_MAX;
	trace_fd = open_far("FAULT_TRACE");
	log_fd = open_far("FAULT_LOG");
	p = (void *)syscall(SYS_mmap, NULL, sizeof(struct state),
			    PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	syscall(SYS_close, fd);
	dl_iterate_phdr(find_spared, NULL);
	/* so that strace shows where counting starts and ends */
	syscall(SYS_faccessat, AT_FDCWD, "/faults-start", F_OK);
	errno = 0;
	if (p != MAP_FAILED)
		state = p;
}

__attribute__((destructor)) static void end(void)
{
	if (state)
		syscall(SYS_faccessat, AT_FDCWD, "/faults-end", F_OK);
	state = NULL;
}
