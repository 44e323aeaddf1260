/* A new name is on the disk when its directory is synced. */
#include "base/sync.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

int pen__sync_parent(const char *path)
{
	char dir[PATH_MAX];
	size_t n = strlen(path);
	int fd, sys = 0;

	while (n > 1 && path[n - 1] == '/')
		n--;
	while (n && path[n - 1] != '/')
		n--;
	if (n >= sizeof(dir))
		return ENAMETOOLONG;
	snprintf(dir, sizeof(dir), "%.*s", n ? (int)n : 1, n ? path : ".");
	fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return errno == EACCES ? 0 : errno;
	if (fsync(fd) && errno != EINVAL && errno != EOPNOTSUPP)
		sys = errno;
	close(fd);
	return sys;
}
