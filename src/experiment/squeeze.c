/*
 * Less memory for files than they have bytes. A limit on address space is of
 * no use here, since mapped files are within it whether they are in memory or
 * not. So either the process goes into a cgroup of its own with a limit, where
 * one may be made, or pages of the files are dropped whenever as many bytes
 * were used as the limit has: no real limit, but the same misses for data used
 * in no order. Only version 2 of cgroups, with memory passed down, is used.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/page_cache.h"
#include "experiment/experiment.h"

/* ---- a cgroup ---- */

static bool read_word(const char *dir, const char *file, char *buf, size_t cap)
{
	char path[4400];
	ssize_t n;
	int fd;

	snprintf(path, sizeof(path), "%s/%s", dir, file);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	n = read(fd, buf, cap - 1);
	close(fd);
	if (n < 0)
		return false;
	buf[n] = '\0';
	return true;
}

static bool write_word(const char *dir, const char *file, const char *word)
{
	char path[4400];
	const size_t n = strlen(word);
	bool ok;
	int fd;

	snprintf(path, sizeof(path), "%s/%s", dir, file);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	ok = write(fd, word, n) == (ssize_t)n;
	close(fd);
	return ok;
}

/* This process's own group, by the line "0::/path". */
static bool own_group(char *dir, size_t cap)
{
	static const char *const mounts[] = { "/sys/fs/cgroup",
					      "/sys/fs/cgroup/unified" };
	char text[4096], *line;

	if (!read_word("/proc/self", "cgroup", text, sizeof(text)))
		return false;
	line = !strncmp(text, "0::", 3) ? text : strstr(text, "\n0::");
	if (!line)
		return false;
	line += *line == '\n' ? 4 : 3;
	line[strcspn(line, "\n")] = '\0';
	for (size_t i = 0; i < 2; i++) {
		char all[1024];

		snprintf(dir, cap, "%s%s", mounts[i], line);
		if (read_word(dir, "cgroup.controllers", all, sizeof(all)))
			return true;
	}
	return false;
}

bool pen__squeeze_open(struct pen_squeeze *q, const char *in)
{
	char dir[2048], down[1024], limit[32];

	if (in)
		snprintf(dir, sizeof(dir), "%s", in);
	else if (!own_group(dir, sizeof(dir)))
		return false;
	/* nothing is made where it would be of no use */
	if (!read_word(dir, "cgroup.subtree_control", down, sizeof(down)) ||
	    !strstr(down, "memory"))
		return false;
	snprintf(q->group, sizeof(q->group), "%s/penstock.%ld", dir,
		 (long)getpid());
	snprintf(limit, sizeof(limit), "%llu", (unsigned long long)q->limit);
	if (mkdir(q->group, 0755)) {
		q->group[0] = '\0';
		return false;
	}
	if (!write_word(q->group, "memory.max", limit)) {
		pen__squeeze_close(q);
		return false;
	}
	(void)!write_word(q->group, "memory.swap.max", "0");
	return true;
}

void pen__squeeze_close(struct pen_squeeze *q)
{
	if (q->group[0])
		rmdir(q->group);
	q->group[0] = '\0';
}

int pen__squeeze_enter(const struct pen_squeeze *q, struct pen_err *err)
{
	char pid[32];

	if (!q->group[0])
		return 0;
	snprintf(pid, sizeof(pid), "%ld", (long)getpid());
	if (!write_word(q->group, "cgroup.procs", pid))
		return pen__fail_sys(err, errno, q->group, "cannot be joined");
	return 0;
}

/* ---- dropping pages ---- */

/* This process's mappings of files that begin with `path` let go of them. */
static void unmap_pages(const char *path)
{
	FILE *f = fopen("/proc/self/maps", "re");
	const size_t n = strlen(path);
	char line[4600];

	while (f && fgets(line, sizeof(line), f)) {
		unsigned long long from, to;
		const char *name = strchr(line, '/');

		if (!name || strncmp(name, path, n) != 0 ||
		    sscanf(line, "%llx-%llx", &from, &to) != 2)
			continue;
		madvise((void *)(uintptr_t)from, (size_t)(to - from),
			MADV_DONTNEED);
	}
	if (f)
		fclose(f);
}

static void drop(struct pen_squeeze *q)
{
	const uint64_t start = pen__now_ns();
	char path[4096];

	unmap_pages(q->path);
	for (uint64_t i = 0; i < pen_dataset_nobjects(q->ds); i++)
		if (!pen_dataset_object(q->ds, i, path, sizeof(path), NULL))
			pen__page_cache_drop(path);
	q->ndrops++;
	q->drop_ns += pen__now_ns() - start;
	q->used = 0;
}

int pen__squeeze_batch(void *arg, const struct pen_batch *b,
		       struct pen_err *err)
{
	struct pen_squeeze *q = arg;

	(void)err;
	for (uint32_t i = 0; i < b->ntensors; i++)
		q->used += b->tensors[i].nbytes;
	if (!q->group[0] && q->used >= q->limit)
		drop(q);
	return 0;
}
