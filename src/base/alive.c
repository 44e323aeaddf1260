/*
 * Uses /proc. A process that ended but was not waited for (a zombie) counts as
 * gone: it holds nothing. A process whose first thread alone has ended looks
 * like a zombie, but has other threads.
 */
#include "base/alive.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* From /proc/PID/stat; false: it cannot be read. */
struct seen {
	char state;
	uint64_t nthreads, born;
};

/* Reads the number n fields further on; NULL: there are fewer fields. */
static const char *skip(const char *p, int n, uint64_t *out)
{
	for (int i = 0; i < n && p; i++)
		p = strchr(p + 1, ' ');
	if (p)
		*out = strtoull(p + 1, NULL, 10);
	return p;
}

static bool look(uint64_t pid, struct seen *out)
{
	char path[64], buf[1024];
	const char *p;
	ssize_t n;
	int fd;

	snprintf(path, sizeof(path), "/proc/%llu/stat",
		 (unsigned long long)pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	n = read(fd, buf, sizeof(buf) - 1);
	close(fd);
	if (n <= 0)
		return false;
	buf[n] = '\0';
	/* the name may contain anything: start at the last parenthesis */
	p = strrchr(buf, ')');
	if (!p || p[1] != ' ' || !p[2])
		return false;
	out->state = p[2];
	/* fields 20 and 22; the state is field 3 */
	p = skip(p, 18, &out->nthreads);
	return p && skip(p, 2, &out->born);
}

uint64_t pen__alive_space(void)
{
	struct stat st;

	return stat("/proc/self/ns/pid", &st) ? 0 : (uint64_t)st.st_ino;
}

void pen__alive_init(struct pen_alive *a)
{
	struct seen now;

	*a = (struct pen_alive){ .pid = (uint64_t)getpid(),
				 .space = pen__alive_space() };
	if (look(a->pid, &now))
		a->born = now.born;
}

bool pen__alive_is(const struct pen_alive *a, uint64_t space)
{
	struct seen now;

	if (!space || a->space != space)
		return true;
	if (kill((pid_t)a->pid, 0) && errno == ESRCH)
		return false;
	if (!look(a->pid, &now))
		return true;
	if (a->born && now.born != a->born)
		return false;
	return (now.state != 'Z' && now.state != 'X') || now.nthreads > 1;
}
