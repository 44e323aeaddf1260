/*
 * Starts and joins threads, and determines which resources of the machine the
 * process may use.
 *
 * Threads wait until all of them exist: if one cannot be started the others
 * leave without having run fn, so a failed start needs no cleanup. Limits are
 * read from cgroup files every time, because a container can be resized; a
 * missing or malformed file means "no limit".
 */
#include "base/team.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"

enum start { START_WAIT, START_GO, START_ABORT };

struct member {
	struct pen_team *team;
	pthread_t tid;
	unsigned i;
};

struct pen_team {
	pthread_mutex_t lock;
	pthread_cond_t moved;
	enum start start;
	void (*fn)(void *arg, unsigned i);
	void *arg;
	unsigned n; /* started */
	char name[16];
	struct member member[];
};

static bool may_start(struct pen_team *t)
{
	bool go;

	pthread_mutex_lock(&t->lock);
	while (t->start == START_WAIT)
		pthread_cond_wait(&t->moved, &t->lock);
	go = t->start == START_GO;
	pthread_mutex_unlock(&t->lock);
	return go;
}

static void *run(void *arg)
{
	struct member *m = arg;
	struct pen_team *t = m->team;
	char name[16]; /* the kernel keeps no more */

	snprintf(name, sizeof(name), "%.10s-%u", t->name, m->i % 10000);
	pthread_setname_np(pthread_self(), name);
	if (may_start(t))
		t->fn(t->arg, m->i);
	return NULL;
}

static void set_start(struct pen_team *t, enum start to)
{
	pthread_mutex_lock(&t->lock);
	t->start = to;
	pthread_cond_broadcast(&t->moved);
	pthread_mutex_unlock(&t->lock);
}

/*
 * The application's signals are for its own threads; ours take only what their
 * own instructions raise, and the profiler's tick.
 */
static void block_signals(sigset_t *old)
{
	static const int keep[] = { SIGBUS,  SIGSEGV, SIGFPE,  SIGILL,
				    SIGTRAP, SIGSYS,  SIGABRT, SIGPROF };
	sigset_t set;

	sigfillset(&set);
	for (size_t i = 0; i < sizeof(keep) / sizeof(keep[0]); i++)
		sigdelset(&set, keep[i]);
	pthread_sigmask(SIG_SETMASK, &set, old);
}

static int spawn(struct pen_team *t, unsigned n)
{
	sigset_t old;
	int e = 0;

	block_signals(&old);
	while (t->n < n && !e) {
		struct member *m = &t->member[t->n];

		m->team = t;
		m->i = t->n;
		/* a stack is an allocation, made by libc for us */
		e = pen__mem_tick() ? EAGAIN
				    : pthread_create(&m->tid, NULL, run, m);
		if (!e)
			t->n++;
	}
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	return e;
}

int pen__team_start(struct pen_team **out, unsigned n, const char *name,
		    void (*fn)(void *arg, unsigned i), void *arg,
		    struct pen_err *err)
{
	struct pen_team *t;
	size_t bytes;
	int e;

	*out = NULL;
	if (!pen__mul(n, sizeof(t->member[0]), &bytes) ||
	    !pen__add(bytes, sizeof(*t), &bytes))
		return pen__fail_nomem(err, name, 0);
	t = pen__calloc(1, bytes);
	if (!t)
		return pen__fail_nomem(err, name, bytes);
	pthread_mutex_init(&t->lock, NULL);
	pthread_cond_init(&t->moved, NULL);
	snprintf(t->name, sizeof(t->name), "%s", name);
	t->fn = fn;
	t->arg = arg;
	e = spawn(t, n);
	if (e) {
		unsigned started = t->n;

		set_start(t, START_ABORT);
		pen__team_join(t);
		pen__fail_sys(err, e, name,
			      "cannot start thread %u of %u (too many threads "
			      "or too little memory)",
			      started + 1, n);
		return pen__err_code(err, PEN_ENOMEM);
	}
	set_start(t, START_GO);
	*out = t;
	return 0;
}

void pen__team_join(struct pen_team *t)
{
	if (!t)
		return;
	for (unsigned i = 0; i < t->n; i++)
		pthread_join(t->member[i].tid, NULL);
	pthread_cond_destroy(&t->moved);
	pthread_mutex_destroy(&t->lock);
	pen__free(t);
}

/* A small file as a string; false if it cannot be read. */
static bool read_text(const char *path, char *buf, size_t cap)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	size_t n = 0;
	ssize_t got = 1;

	if (fd < 0)
		return false;
	while (n < cap - 1 && got > 0) {
		got = read(fd, buf + n, cap - 1 - n);
		if (got > 0)
			n += (size_t)got;
		else if (got < 0 && errno == EINTR)
			got = 1;
	}
	close(fd);
	buf[n] = '\0';
	return n > 0;
}

/* A number at s, or `none` for "max", "-1" and anything else. */
static uint64_t number(const char *s, uint64_t none)
{
	unsigned long long v;
	char *end;

	while (*s == ' ' || *s == '\t')
		s++;
	if (*s < '0' || *s > '9')
		return none;
	errno = 0;
	v = strtoull(s, &end, 10);
	return errno ? none : v;
}

/* The number after a word at the start of a line, as in memory.stat. */
static uint64_t number_after(const char *text, const char *word, uint64_t none)
{
	const size_t n = strlen(word);

	for (const char *s = text; s; s = strchr(s, '\n')) {
		s += *s == '\n';
		if (!strncmp(s, word, n))
			return number(s + n, none);
	}
	return none;
}

/* Is name one of a comma-separated list? No name matches the empty list. */
static bool listed(const char *list, const char *name)
{
	const size_t n = strlen(name);

	if (!n)
		return !*list;
	for (; list; list = strchr(list, ',')) {
		list += *list == ',';
		if (!strncmp(list, name, n) && (list[n] == ',' || !list[n]))
			return true;
	}
	return false;
}

/*
 * Lines of /proc/self/cgroup read "id:controllers:path"; version 2 has one
 * line with no controllers. The root's path is "".
 */
static bool cgroup_path(const char *controller, char *out, size_t cap)
{
	char text[4096], *save, *line;

	if (!read_text("/proc/self/cgroup", text, sizeof(text)))
		return false;
	for (line = strtok_r(text, "\n", &save); line;
	     line = strtok_r(NULL, "\n", &save)) {
		char *names = strchr(line, ':');
		char *path = names ? strchr(names + 1, ':') : NULL;

		if (!path)
			continue;
		*path++ = '\0';
		if (!listed(names + 1, controller))
			continue;
		if (!strcmp(path, "/"))
			path++;
		return (size_t)snprintf(out, cap, "%s", path) < cap;
	}
	return false;
}

/* A limit applies to everything below it, so the lowest on the way up
 * counts. */
static void each_level(const char *controller,
		       void (*visit)(const char *dir, uint64_t *least),
		       uint64_t *least)
{
	char path[1024], dir[1100], *cut;

	if (!cgroup_path(controller, path, sizeof(path)))
		return;
	do {
		snprintf(dir, sizeof(dir), "/sys/fs/cgroup%s%s%s",
			 *controller ? "/" : "", controller, path);
		visit(dir, least);
		cut = strrchr(path, '/');
		if (cut)
			*cut = '\0';
	} while (cut);
}

static bool read_at(const char *dir, const char *name, char *buf, size_t cap)
{
	char path[1200];

	if ((size_t)snprintf(path, sizeof(path), "%s/%s", dir, name) >=
	    sizeof(path))
		return false;
	return read_text(path, buf, cap);
}

bool pen__cgroup_read(const char *controller, const char *file, char *buf,
		      size_t cap)
{
	char path[1024], dir[1100];

	if (!cgroup_path(controller, path, sizeof(path)))
		return false;
	snprintf(dir, sizeof(dir), "/sys/fs/cgroup%s%s%s",
		 *controller ? "/" : "", controller, path);
	return read_at(dir, file, buf, cap);
}

static uint64_t number_at(const char *dir, const char *name, uint64_t none)
{
	char buf[64];

	return read_at(dir, name, buf, sizeof(buf)) ? number(buf, none) : none;
}

/* CPUs of a quota, rounded up: half a CPU still runs one thread. */
static void cpu_limit(const char *dir, uint64_t *least)
{
	uint64_t quota = 0, period = 0;
	char buf[64], *gap;

	if (read_at(dir, "cpu.max", buf, sizeof(buf))) { /* version 2 */
		gap = strchr(buf, ' ');
		quota = number(buf, 0);
		period = gap ? number(gap, 0) : 0;
	} else {
		quota = number_at(dir, "cpu.cfs_quota_us", 0);
		period = number_at(dir, "cpu.cfs_period_us", 0);
	}
	if (quota && period && (quota - 1) / period + 1 < *least)
		*least = (quota - 1) / period + 1;
}

/*
 * What is left below a memory limit. File pages count as used there, but are
 * released on demand, and a loader fills any limit with them.
 */
static void memory_limit(const char *dir, uint64_t *least)
{
	const uint64_t none = UINT64_MAX;
	uint64_t limit, used, files = 0;
	char buf[4096];

	limit = number_at(dir, "memory.max", none); /* version 2 */
	used = number_at(dir, "memory.current", 0);
	if (limit == none) {
		limit = number_at(dir, "memory.limit_in_bytes", none);
		used = number_at(dir, "memory.usage_in_bytes", 0);
	}
	if (limit == none)
		return;
	if (read_at(dir, "memory.stat", buf, sizeof(buf)))
		files = number_after(buf, "inactive_file ", 0) +
			number_after(buf, "active_file ", 0);
	used -= files < used ? files : used;
	limit -= used < limit ? used : limit;
	if (limit < *least)
		*least = limit;
}

bool pen__thread_times(int tid, struct pen_thread_times *out)
{
	char path[64], buf[128], *gap;

	snprintf(path, sizeof(path), "/proc/self/task/%d/schedstat", tid);
	*out = (struct pen_thread_times){ 0 };
	if (!read_text(path, buf, sizeof(buf)))
		return false;
	gap = strchr(buf, ' ');
	if (!gap)
		return false;
	out->cpu_ns = number(buf, 0);
	out->queue_ns = number(gap, 0);
	return true;
}

unsigned pen__cpus(void)
{
	cpu_set_t set[8]; /* 8192 CPUs, the kernel's own limit */
	uint64_t n = 1;

	CPU_ZERO_S(sizeof(set), set);
	if (!sched_getaffinity(0, sizeof(set), set))
		n = (uint64_t)CPU_COUNT_S(sizeof(set), set);
	each_level("", cpu_limit, &n);
	each_level("cpu", cpu_limit, &n);
	return n ? (unsigned)n : 1;
}

uint64_t pen__memory_available(void)
{
	uint64_t kb = 0, n;
	char buf[4096];

	if (read_text("/proc/meminfo", buf, sizeof(buf)))
		kb = number_after(buf, "MemAvailable:", 0);
	/* kernels before 3.14 do not report it; use free memory */
	if (!kb)
		n = (uint64_t)sysconf(_SC_AVPHYS_PAGES) *
		    (uint64_t)sysconf(_SC_PAGESIZE);
	else
		n = kb * 1024;
	each_level("", memory_limit, &n);
	each_level("memory", memory_limit, &n);
	return n;
}

/* Not getrusage(): that includes the memory of the process that started the
 * program, before exec. */
uint64_t pen__memory_peak(void)
{
	char buf[4096];

	if (!read_text("/proc/self/status", buf, sizeof(buf)))
		return 0;
	return number_after(buf, "VmHWM:", 0) * 1024;
}
