/*
 * Gathering rows from one large mapped file, copying a file into shared memory,
 * and the file functions of all limits. Also generates data sets, byte for byte
 * as NumPy would.
 */
#include "limits.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static uint64_t sum_rows(const char *rows, uint32_t n, size_t row)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < n; i++)
		sum += first_word(rows + i * row);
	return sum;
}

/* Copies rows of a mapped file and prefetches the first lines of later ones. */
static uint64_t rows_body(struct loop *l, const uint32_t *ids, uint32_t n,
			  char *batch)
{
	enum { AHEAD = 4 };
	const char *base = l->map + l->offset;

	for (uint32_t i = 0; i < n; i++) {
		const uint32_t j = i + AHEAD < n ? i + AHEAD : n - 1;

		prefetch(base + ids[j] * l->row, l->lead);
		memcpy(batch + i * l->row, base + ids[i] * l->row, l->row);
	}
	return sum_rows(batch, n, l->row);
}

/* FILE OFFSET ROW NROWS BATCH THREADS SECONDS */
void cmd_rows(char **arg)
{
	struct loop l = { .body = rows_body };
	size_t size;

	l.offset = number(arg[1]);
	l.row = number(arg[2]);
	l.lead = l.row;
	l.nsamples = (uint32_t)number(arg[3]);
	l.batch = (uint32_t)number(arg[4]);
	l.nthreads = (unsigned)number(arg[5]);
	l.map = map_file(arg[0], MAP_POPULATE, &size);
	if (size < l.offset + l.nsamples * l.row || l.row < 8 || !l.batch)
		die("%s: too short", arg[0]);
	l.order = shuffled(l.nsamples);
	l.expect = sum_rows(l.map + l.offset, l.nsamples, l.row);
	run_loop(&l, decimal(arg[6]));
}

const char *map_file(const char *path, int flags, size_t *size)
{
	const int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct stat st;
	const char *p;

	if (fd < 0 || fstat(fd, &st))
		die("%s: %s", path, strerror(errno));
	*size = (size_t)st.st_size;
	p = mmap(NULL, *size, PROT_READ, MAP_SHARED | flags, fd, 0);
	if (p == MAP_FAILED)
		die("%s: mmap: %s", path, strerror(errno));
	close(fd);
	return p;
}

void read_item(const struct item *it, char *to)
{
	const int fd = open(it->path, O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		die("%s: %s", it->path, strerror(errno));
	for (size_t got = 0; got < it->len;) {
		const ssize_t r = pread(fd, to + got, it->len - got,
					(off_t)(it->offset + got));

		if (r <= 0)
			die("%s: %s", it->path,
			    r ? strerror(errno) : "too short");
		got += (size_t)r;
	}
	close(fd);
}

struct item *read_list(const char *path, uint32_t *n, size_t *most)
{
	FILE *f = fopen(path, "r");
	struct item *items = NULL;
	uint32_t cap = 0;
	char line[4096];

	if (!f)
		die("%s: %s", path, strerror(errno));
	for (*n = 0; fgets(line, sizeof(line), f); (*n)++) {
		struct item it = { 0 };
		int at = 0;

		if (*n == cap) {
			cap = cap ? cap * 2 : 1024;
			items = realloc(items, cap * sizeof(*items));
			if (!items)
				die("no memory");
		}
		if (sscanf(line, "%" SCNu64 " %zu %" SCNx32 " %n", &it.offset,
			   &it.len, &it.crc, &at) < 3 ||
		    !at)
			die("%s: bad line %" PRIu32, path, *n + 1);
		line[strcspn(line, "\n")] = 0;
		it.path = strdup(line + at);
		if (!it.path)
			die("no memory");
		items[*n] = it;
		*most = it.len > *most || !*n ? it.len : *most;
	}
	fclose(f);
	if (!*n)
		die("%s: empty", path);
	return items;
}

#define PART ((size_t)256 << 10)

/* Reads a part of the file in pieces and copies each to its place. */
static void place_part(int fd, uint64_t at, uint64_t end, char *to)
{
	char *piece = need(1, PART);

	while (at < end) {
		const size_t n = end - at < PART ? (size_t)(end - at) : PART;

		if (pread(fd, piece, n, (off_t)at) != (ssize_t)n)
			_exit(1);
		memcpy(to + at, piece, n);
		at += n;
	}
}

static void place_once(int fd, uint64_t size, unsigned n)
{
	char *to = mmap(NULL, size, PROT_READ | PROT_WRITE,
			MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	int status;

	if (to == MAP_FAILED)
		die("no memory");
	for (unsigned i = 0; i < n; i++) {
		const pid_t pid = fork();

		if (pid < 0)
			die("fork failed");
		if (pid == 0) {
			place_part(fd, size * i / n, size * (i + 1) / n, to);
			_exit(0);
		}
	}
	for (unsigned i = 0; i < n; i++)
		if (wait(&status) < 0 || status)
			die("a process failed");
	munmap(to, size);
}

/* place FILE PROCESSES SECONDS: copies a file into shared memory, each process
 * a part, repeatedly until the time is over. */
void cmd_place(char **arg)
{
	const int fd = open(arg[0], O_RDONLY | O_CLOEXEC);
	const double start = now();
	struct stat st;
	unsigned times = 0;

	if (fd < 0 || fstat(fd, &st))
		die("%s: cannot open the file", arg[0]);
	do {
		place_once(fd, (uint64_t)st.st_size, (unsigned)number(arg[1]));
		times++;
	} while (now() - start < decimal(arg[2]));
	printf("{\"samples\": %u, \"seconds\": %.6f}\n", times, now() - start);
}

/* Reads the listed files into the page cache. */
void cmd_warm(char **arg)
{
	enum { PIECE = 1 << 20 };
	char *buf = need(1, PIECE);
	struct item *items;
	uint64_t total = 0;
	uint32_t n;
	size_t row;

	items = read_list(arg[0], &n, &row);
	for (uint32_t i = 0; i < n; i++) {
		int fd;
		ssize_t r;

		/* ranges of one file are adjacent */
		if (i && !strcmp(items[i].path, items[i - 1].path))
			continue;
		fd = open(items[i].path, O_RDONLY | O_CLOEXEC);
		if (fd < 0)
			die("%s: %s", items[i].path, strerror(errno));
		while ((r = read(fd, buf, PIECE)) > 0)
			total += (uint64_t)r;
		if (r < 0)
			die("%s: %s", items[i].path, strerror(errno));
		close(fd);
	}
	printf("{\"read_bytes\": %" PRIu64 "}\n", total);
}

/* Times reading the names of a directory. */
void cmd_scan(char **arg)
{
	DIR *d = opendir(arg[0]);
	struct timespec a, b;
	uint64_t n = 0;

	if (!d)
		die("%s: %s", arg[0], strerror(errno));
	clock_gettime(CLOCK_MONOTONIC, &a);
	for (const struct dirent *e = readdir(d); e; e = readdir(d))
		n += e->d_name[0] != '.';
	clock_gettime(CLOCK_MONOTONIC, &b);
	closedir(d);
	printf("{\"samples\": %" PRIu64 ", \"seconds\": %.6f}\n", n,
	       (double)(b.tv_sec - a.tv_sec) +
		       (double)(b.tv_nsec - a.tv_nsec) * 1e-9);
}

/* The header that np.save writes for one float32, then the number. */
static size_t tiny_npy(char out[132], float value)
{
	static const char dict[] =
		"{'descr': '<f4', 'fortran_order': False, 'shape': (1,), }";

	memset(out, ' ', 128);
	memcpy(out, "\x93NUMPY\x01\x00\x76\x00", 10);
	memcpy(out + 10, dict, sizeof(dict) - 1);
	out[127] = '\n';
	memcpy(out + 128, &value, sizeof(value));
	return 132;
}

void cmd_make_tiny(char **arg)
{
	const uint64_t n = number(arg[1]);
	char name[32], buf[132];
	int dir;

	if (mkdir(arg[0], 0777) && errno != EEXIST)
		die("%s: %s", arg[0], strerror(errno));
	dir = open(arg[0], O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (dir < 0)
		die("%s: %s", arg[0], strerror(errno));
	for (uint64_t i = 0; i < n; i++) {
		const size_t len = tiny_npy(buf, (float)i);
		int fd;

		snprintf(name, sizeof(name), "%07" PRIu64 ".npy", i);
		fd = openat(dir, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC,
			    0666);
		if (fd < 0 || write(fd, buf, len) != (ssize_t)len || close(fd))
			die("%s/%s: %s", arg[0], name, strerror(errno));
	}
	close(dir);
}

/* Writes random bytes, syncs them and drops them from the page cache. */
void cmd_make_random(char **arg)
{
	enum { PIECE = 1 << 20 };
	const uint64_t n = number(arg[1]);
	uint64_t *buf = need(1, PIECE), state = 1;
	int fd;

	fd = open(arg[0], O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
	if (fd < 0)
		die("%s: %s", arg[0], strerror(errno));
	for (uint64_t at = 0; at < n; at += PIECE) {
		const uint64_t left = n - at;
		const size_t len = left < PIECE ? left : PIECE;

		for (size_t i = 0; i < PIECE / sizeof(*buf); i++)
			buf[i] = next_random(&state);
		if (write(fd, buf, len) != (ssize_t)len)
			die("%s: %s", arg[0], strerror(errno));
	}
	if (fsync(fd) || posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED) ||
	    close(fd))
		die("%s: %s", arg[0], strerror(errno));
}
