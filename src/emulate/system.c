/*
 * Information about the machine from /proc and /sys. Missing, truncated or
 * unexpected files make figures unknown (zero, empty), never an error: a
 * benchmark must not fail because a container hides /proc/pressure.
 */
#include "emulate/system.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/mem.h"

#define MAX_FILE ((size_t)16 << 20) /* enough for cpuinfo of large machines */
#define MAX_KEYS 256
#define SECTOR 512 /* unit of diskstats and /sys/block/X/size for all disks */

char *pen__proc_read(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	size_t n = 0, cap = 0;
	char *p = NULL;
	ssize_t got = 1;

	if (fd < 0)
		return NULL;
	while (got && n < MAX_FILE) { /* files in /proc have no size */
		if (cap - n < 2) {
			char *more = pen__realloc(p, cap ? 2 * cap : 4096, 1);

			if (!more) {
				got = -1;
				break;
			}
			p = more;
			cap = cap ? 2 * cap : 4096;
		}
		got = read(fd, p + n, cap - n - 1);
		if (got < 0 && errno != EINTR)
			break;
		n += got > 0 ? (size_t)got : 0;
		got = got < 0 ? 1 : got;
	}
	close(fd);
	if (got < 0) {
		pen__free(p);
		return NULL;
	}
	p[n] = '\0';
	return p;
}

/* --- "key : value" --- */

struct pair {
	const char *key, *value;
	size_t nkey, nvalue;
};

static void trim(const char **s, size_t *n)
{
	while (*n && isspace((unsigned char)**s)) {
		(*s)++;
		(*n)--;
	}
	while (*n && isspace((unsigned char)(*s)[*n - 1]))
		(*n)--;
}

/* Splits a line with exactly one colon and a non-empty key. */
static bool split_line(const char *line, size_t n, struct pair *p)
{
	const char *colon = memchr(line, ':', n);
	size_t left;

	if (!colon)
		return false;
	left = n - (size_t)(colon + 1 - line);
	if (memchr(colon + 1, ':', left))
		return false;
	*p = (struct pair){ line, colon + 1, (size_t)(colon - line), left };
	trim(&p->key, &p->nkey);
	trim(&p->value, &p->nvalue);
	return p->nkey > 0;
}

/* Keys are not escaped in JSON, so unsafe bytes are replaced. */
static void put_pair(struct pen_text *t, const struct pair *p)
{
	char key[128], value[8192];
	size_t n = p->nkey < sizeof(key) ? p->nkey : sizeof(key) - 1;

	for (size_t i = 0; i < n; i++) {
		unsigned char c = (unsigned char)p->key[i];

		key[i] = (char)(c < 0x20 || c > 0x7e || strchr("\"\\<", c) ? '?'
									   : c);
	}
	key[n] = '\0';
	n = p->nvalue < sizeof(value) ? p->nvalue : sizeof(value) - 1;
	memcpy(value, p->value, n);
	value[n] = '\0';
	pen__json_str(t, key, value);
}

void pen__proc_json(struct pen_text *t, const char *text)
{
	struct pair seen[MAX_KEYS], p;
	size_t nseen = 0;

	for (const char *s = text; s && *s;) {
		const char *end = strchr(s, '\n');
		size_t n = end ? (size_t)(end - s) : strlen(s), i = 0;

		/* repeated for every CPU: keep the last, without its number */
		if (split_line(s, n, &p) &&
		    !(p.nkey == 9 && !memcmp(p.key, "processor", 9))) {
			while (i < nseen &&
			       (seen[i].nkey != p.nkey ||
				memcmp(seen[i].key, p.key, p.nkey) != 0))
				i++;
			if (i < MAX_KEYS)
				seen[i] = p;
			nseen += i == nseen && i < MAX_KEYS;
		}
		s = end ? end + 1 : NULL;
	}
	for (size_t i = 0; i < nseen; i++)
		put_pair(t, &seen[i]);
}

/* Parses an unsigned number after optional blanks; advances *s. */
static bool number(const char **s, uint64_t *out)
{
	unsigned long long v;
	char *end;

	while (**s == ' ' || **s == '\t')
		(*s)++;
	if (!isdigit((unsigned char)**s))
		return false;
	errno = 0;
	v = strtoull(*s, &end, 10);
	*s = end;
	*out = v;
	return !errno;
}

static const char *line_of(const char *text, const char *key)
{
	const size_t n = strlen(key);

	for (const char *s = text; s; s = strchr(s, '\n')) {
		s += *s == '\n';
		if (!strncmp(s, key, n))
			return s + n;
	}
	return NULL;
}

bool pen__proc_number(const char *text, const char *key, uint64_t *out)
{
	const char *s = text ? line_of(text, key) : NULL;

	return s && number(&s, out);
}

/* --- the host --- */

/* The memory limit of the container; UINT64_MAX: none. */
static uint64_t memory_limit(void)
{
	static const char *const path[] = {
		"/sys/fs/cgroup/memory.max",
		"/sys/fs/cgroup/memory/memory.limit_in_bytes",
	};
	uint64_t limit = UINT64_MAX, v;

	for (size_t i = 0; i < sizeof(path) / sizeof(path[0]); i++) {
		char *text = pen__proc_read(path[i]);
		const char *s = text;

		if (text && number(&s, &v) && v && v < limit)
			limit = v;
		pen__free(text);
	}
	return limit;
}

static void cpu_model(char *buf, size_t cap)
{
	char *text = pen__proc_read("/proc/cpuinfo");
	const char *s = text ? line_of(text, "model name") : NULL;
	size_t n;

	if (s) {
		s += strspn(s, " \t:");
		n = strcspn(s, "\n");
		snprintf(buf, cap, "%.*s", (int)(n < cap ? n : cap), s);
	}
	pen__free(text);
}

void pen__host(struct pen_host *h)
{
	struct utsname u;
	long cpus = sysconf(_SC_NPROCESSORS_ONLN);
	char *text = pen__proc_read("/proc/meminfo");
	uint64_t kib = 0, limit = memory_limit();

	*h = (struct pen_host){ .cpus = cpus > 0 ? (unsigned)cpus : 1 };
	if (!uname(&u)) {
		snprintf(h->name, sizeof(h->name), "%s", u.nodename);
		snprintf(h->kernel, sizeof(h->kernel), "%.20s %.100s",
			 u.sysname, u.release);
		snprintf(h->cpu, sizeof(h->cpu), "%s", u.machine);
	}
	cpu_model(h->cpu, sizeof(h->cpu));
	if (pen__proc_number(text, "MemTotal:", &kib) && kib < UINT64_MAX >> 10)
		h->memory_bytes = kib << 10;
	if (limit < h->memory_bytes)
		h->memory_bytes = limit;
	pen__free(text);
}

/* --- disks --- */

bool pen__disk_parse(const char *line, struct pen_disk *d)
{
	uint64_t v[19] = { 0 };
	size_t len, n = 0;

	*d = (struct pen_disk){ 0 };
	if (!number(&line, &v[0]) || !number(&line, &v[1]))
		return false;
	line += strspn(line, " \t");
	len = strcspn(line, " \t\n");
	if (!len || len >= sizeof(d->name))
		return false;
	memcpy(d->name, line, len);
	line += len;
	while (n < 17 && number(&line, &v[n]))
		n++;
	if (n < 11) /* Linux 4.18 added discards, 5.5 flushes */
		return false;
	for (size_t i = n; i < 17; i++)
		v[i] = 0;
	d->reads = v[0];
	d->reads_merged = v[1];
	d->read_bytes = v[2] * SECTOR;
	d->read_ms = v[3];
	d->writes = v[4];
	d->writes_merged = v[5];
	d->write_bytes = v[6] * SECTOR;
	d->write_ms = v[7];
	d->io_ms = v[9];
	d->weighted_ms = v[10];
	d->discards = v[11];
	d->discards_merged = v[12];
	d->discard_bytes = v[13] * SECTOR;
	d->discard_ms = v[14];
	d->flushes = v[15];
	d->flush_ms = v[16];
	return true;
}

bool pen__disk_read(const char *name, struct pen_disk *d)
{
	char *text = pen__proc_read("/proc/diskstats");
	bool found = false;

	*d = (struct pen_disk){ 0 };
	for (const char *s = text; s && !found; s = strchr(s, '\n')) {
		s += *s == '\n';
		found = pen__disk_parse(s, d) && !strcmp(d->name, name);
	}
	pen__free(text);
	if (!found)
		*d = (struct pen_disk){ 0 };
	return found;
}

/* Uses the nearest existing parent: the data may not exist yet. */
static bool stat_near(const char *path, struct stat *st)
{
	char at[PATH_MAX];
	char *slash;

	if (snprintf(at, sizeof(at), "%s", path) >= (int)sizeof(at))
		return false;
	while (stat(at, st)) {
		slash = strrchr(at, '/');
		if (!slash)
			return stat(".", st) == 0;
		if (slash == at)
			return stat("/", st) == 0;
		*slash = '\0';
	}
	return true;
}

/* A partition is below its disk: .../vda/vda1. */
bool pen__disk_of(const char *path, char *name, size_t cap)
{
	char link[64], to[PATH_MAX], part[PATH_MAX + 16];
	struct stat st;
	char *slash;

	if (!cap || !stat_near(path, &st))
		return false;
	snprintf(link, sizeof(link), "/sys/dev/block/%u:%u", major(st.st_dev),
		 minor(st.st_dev));
	if (!realpath(link, to)) /* tmpfs, NFS, overlay: no device */
		return false;
	snprintf(part, sizeof(part), "%s/partition", to);
	slash = strrchr(to, '/');
	if (slash && !access(part, F_OK)) {
		*slash = '\0';
		slash = strrchr(to, '/');
	}
	return slash && slash[1] &&
	       snprintf(name, cap, "%s", slash + 1) < (int)cap;
}

static char *sys_block(const char *name, const char *file)
{
	char path[256];

	if (strchr(name, '/') ||
	    snprintf(path, sizeof(path), "/sys/block/%s/%s", name, file) >=
		    (int)sizeof(path))
		return NULL;
	return pen__proc_read(path);
}

static uint64_t sys_number(const char *name, const char *file)
{
	char *text = sys_block(name, file);
	const char *s = text;
	uint64_t v = 0;

	if (!text || !number(&s, &v))
		v = 0;
	pen__free(text);
	return v;
}

void pen__disk_about(const char *name, struct pen_disk_about *a)
{
	char *text;
	size_t n;

	*a = (struct pen_disk_about){ 0 };
	text = name[0] ? sys_block(name, "queue/scheduler") : NULL;
	a->known = text != NULL;
	if (text) { /* "mq-deadline [none]" */
		const char *s = strchr(text, '[');

		s = s ? s + 1 : text;
		n = strcspn(s, "] \n");
		snprintf(a->scheduler, sizeof(a->scheduler), "%.*s",
			 (int)(n < 31 ? n : 31), s);
	}
	pen__free(text);
	if (!a->known)
		return;
	text = sys_block(name, "device/model");
	if (text) {
		const char *s = text;

		n = strlen(text);
		trim(&s, &n);
		snprintf(a->model, sizeof(a->model), "%.*s",
			 (int)(n < 63 ? n : 63), s);
	}
	pen__free(text);
	a->read_ahead_kb = sys_number(name, "queue/read_ahead_kb");
	a->nr_requests = sys_number(name, "queue/nr_requests");
	a->rotational = sys_number(name, "queue/rotational") != 0;
	a->size_bytes = sys_number(name, "size") * SECTOR;
}

/* --- counters --- */

static bool pressure_of(const char *path, uint64_t *some, uint64_t *full)
{
	char *text = pen__proc_read(path);
	const char *s = text ? line_of(text, "some ") : NULL;
	bool ok = s != NULL;

	s = s ? strstr(s, "total=") : NULL;
	if (s) {
		s += 6;
		number(&s, some);
	}
	s = text ? line_of(text, "full ") : NULL;
	s = s ? strstr(s, "total=") : NULL;
	if (s) {
		s += 6;
		number(&s, full);
	}
	pen__free(text);
	return ok;
}

void pen__pressure_read(struct pen_pressure *p)
{
	*p = (struct pen_pressure){ 0 };
	p->known =
		pressure_of("/proc/pressure/cpu", &p->cpu_some, &p->cpu_full);
	pressure_of("/proc/pressure/io", &p->io_some, &p->io_full);
	pressure_of("/proc/pressure/memory", &p->memory_some, &p->memory_full);
}

void pen__self_io(struct pen_self_io *io)
{
	char *text = pen__proc_read("/proc/self/io");

	*io = (struct pen_self_io){ 0 };
	pen__proc_number(text, "read_bytes:", &io->read_bytes);
	pen__proc_number(text, "write_bytes:", &io->write_bytes);
	pen__proc_number(text, "rchar:", &io->rchar);
	pen__proc_number(text, "wchar:", &io->wchar);
	pen__free(text);
}

void pen__cpu_time(struct pen_cpu_time *c)
{
	char *text = pen__proc_read("/proc/stat");
	const char *s = text ? line_of(text, "cpu ") : NULL;
	uint64_t v[8] = { 0 };

	for (size_t i = 0; s && i < 8; i++)
		if (!number(&s, &v[i]))
			break;
	*c = (struct pen_cpu_time){ .user = v[0],
				    .nice = v[1],
				    .system = v[2] + v[5] + v[6],
				    .idle = v[3],
				    .iowait = v[4],
				    .steal = v[7] };
	pen__free(text);
}
