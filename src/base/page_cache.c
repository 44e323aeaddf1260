#include "base/page_cache.h"

#include <fcntl.h>
#include <unistd.h>

void pen__page_cache_drop(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);

	if (fd < 0)
		return;
	(void)!fdatasync(fd); /* dirty pages cannot be dropped */
	(void)!posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
	close(fd);
}
