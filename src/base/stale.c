/*
 * Decides by name: the process ID in it does not exist on this machine. A
 * process that we may not signal exists. If an ID was reused, the file stays
 * for another time; nothing is removed that may be in use.
 */
#include "base/stale.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <time.h>
#include <unistd.h>

#define HOUR 3600

/* The process ID in NAME.PID.SUFFIX or NAME.PID-MORE.SUFFIX, or 0. */
static long process_of(const char *name, const char *prefix, size_t nprefix,
		       const char *suffix)
{
	const size_t n = strlen(name), ns = strlen(suffix);
	const char *p, *end;
	char *stop;
	long pid;

	if (n < ns + 3 || strcmp(name + n - ns, suffix) != 0 ||
	    name[n - ns - 1] != '.')
		return 0;
	end = name + n - ns - 1;
	p = end;
	while (p > name && p[-1] != '.')
		p--;
	if (p == name || *p < '1' || *p > '9')
		return 0;
	if (nprefix && ((size_t)(p - 1 - name) != nprefix ||
			memcmp(name, prefix, nprefix) != 0))
		return 0;
	errno = 0;
	pid = strtol(p, &stop, 10);
	return !errno && (stop == end || *stop == '-') ? pid : 0;
}

/* Is it a file system that other machines may see? */
static bool is_shared(int fd)
{
	static const unsigned long local[] = {
		0xef53,	    0x58465342, 0x9123683e, 0x01021994, 0x858458f6,
		0x794c7630, 0x2fc12fc1, 0xf2f52010, 0x3153464a,
	};
	struct statfs sb;

	if (fstatfs(fd, &sb))
		return true;
	for (size_t i = 0; i < sizeof(local) / sizeof(local[0]); i++)
		if ((unsigned long)sb.f_type == local[i])
			return false;
	return true;
}

static bool is_old(int dir, const char *name)
{
	struct stat sb;

	return !fstatat(dir, name, &sb, AT_SYMLINK_NOFOLLOW) &&
	       time(NULL) - sb.st_mtime > HOUR;
}

void pen__stale_each(const char *path, const char *suffix,
		     void (*fn)(const char *stale, void *arg), void *arg)
{
	const char *slash = strrchr(path, '/');
	const char *prefix = slash ? slash + 1 : path;
	const size_t n = slash ? (size_t)(prefix - path) : 0;
	char full[4096];
	const struct dirent *e;
	bool shared;
	DIR *d;

	if (n >= sizeof(full))
		return;
	snprintf(full, sizeof(full), "%.*s", (int)n, path);
	d = opendir(n ? full : ".");
	if (!d)
		return;
	shared = is_shared(dirfd(d));
	while ((e = readdir(d))) {
		const long pid =
			process_of(e->d_name, prefix, strlen(prefix), suffix);

		if (!pid || kill((pid_t)pid, 0) == 0 || errno != ESRCH ||
		    (shared && !is_old(dirfd(d), e->d_name)) ||
		    n + strlen(e->d_name) >= sizeof(full))
			continue;
		snprintf(full + n, sizeof(full) - n, "%s", e->d_name);
		fn(full, arg);
	}
	closedir(d);
}

static void remove_file(const char *stale, void *arg)
{
	(void)arg;
	unlink(stale); /* directories stay */
}

void pen__stale_remove(const char *path)
{
	pen__stale_each(path, "tmp", remove_file, NULL);
}
