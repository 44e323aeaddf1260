/*
 * Running a program: standard output through a pipe, standard error into
 * memory, so that a failure can be told in one line. It dies with us.
 */
#include "cli/child.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "cli/cli.h"
#include "emulate/workload.h"

#define SELF "/proc/self/exe"
#define LOOK_MS 100

static void __attribute__((noreturn))
begin(const char *const *argv, int out, int complaints, pid_t parent)
{
	const char *program = argv[0][0] ? argv[0] : SELF;

	signal(SIGINT, SIG_DFL);
	signal(SIGTERM, SIG_DFL);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() == parent && dup2(out, STDOUT_FILENO) >= 0 &&
	    dup2(complaints, STDERR_FILENO) >= 0)
		/* it takes what it may not change as if it could */
		execvp(program, (char *const *)(uintptr_t)argv);
	_exit(127);
}

/* Until it closes its end, or someone wants to stop: a signal that came to us
 * alone does not end a read. */
static void listen_to(int fd, struct pen_text *out)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };
	char piece[8192];

	while (!interrupted()) {
		ssize_t n;

		if (poll(&p, 1, LOOK_MS) <= 0)
			continue;
		n = read(fd, piece, sizeof(piece));
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return;
		pen__text_put(out, piece, (size_t)n);
	}
}

/* The last line, without the program's own name in front. */
static void last_line(int fd, char *line, size_t cap)
{
	char text[2048];
	const off_t all = lseek(fd, 0, SEEK_END);
	const off_t most = (off_t)sizeof(text) - 1;
	ssize_t n = pread(fd, text, (size_t)most, all > most ? all - most : 0);
	const char *from;
	char *end;

	line[0] = '\0';
	if (n <= 0)
		return;
	text[n] = '\0';
	for (end = text + n; end > text && end[-1] == '\n';)
		*--end = '\0';
	from = strrchr(text, '\n');
	from = from ? from + 1 : text;
	if (!strncmp(from, "penstock: ", 10))
		from += 10;
	snprintf(line, cap, "%.*s", (int)cap - 1, from);
}

static double seconds(struct timeval t)
{
	return (double)t.tv_sec + 1e-6 * (double)t.tv_usec;
}

static int finish(pid_t pid, uint64_t start, struct child *c)
{
	struct rusage u;
	int status;

	while (wait4(pid, &status, 0, &u) < 0)
		if (errno != EINTR)
			return -1;
	c->real_s = (double)(pen__now_ns() - start) / 1e9;
	c->user_s = seconds(u.ru_utime);
	c->system_s = seconds(u.ru_stime);
	c->peak_bytes = (uint64_t)u.ru_maxrss * 1024;
	c->code = WIFSIGNALED(status) ? 128 + WTERMSIG(status)
				      : WEXITSTATUS(status);
	return 0;
}

int child_run(const char *const *argv, struct pen_text *out, struct child *c,
	      struct pen_err *err)
{
	const char *name = argv[0][0] ? argv[0] : "penstock";
	int complaints = memfd_create("complaints", MFD_CLOEXEC), fd[2];
	uint64_t start = pen__now_ns();
	pid_t parent = getpid(), pid;
	char line[256];

	*c = (struct child){ 0 };
	if (complaints < 0)
		return pen__fail_sys(err, errno, name, "cannot be started");
	if (pipe2(fd, O_CLOEXEC)) {
		close(complaints);
		return pen__fail_sys(err, errno, name, "cannot be started");
	}
	pid = fork();
	if (!pid)
		begin(argv, fd[1], complaints, parent);
	close(fd[1]);
	if (pid > 0)
		listen_to(fd[0], out);
	close(fd[0]);
	if (pid > 0 && interrupted())
		kill(pid, SIGTERM);
	if (pid < 0 || finish(pid, start, c)) {
		close(complaints);
		return pen__fail_sys(err, errno, name, "cannot be started");
	}
	last_line(complaints, line, sizeof(line));
	close(complaints);
	if (c->code == 127 && !line[0])
		return pen__fail(err, PEN_ENOTFOUND, name,
				 "is not there, or cannot be run");
	if (c->code)
		return pen__fail(err, PEN_EINVAL, name, "%s%s",
				 line[0] ? line
					 : "ended with a signal, or "
					   "said nothing",
				 c->code > 128 ? " (ended by a signal)" : "");
	return 0;
}

bool names_workload(const char *name)
{
	const size_t n = strlen(name);

	return pen__workload_find(name) ||
	       (n > 5 && !strcmp(name + n - 5, ".yaml")) ||
	       (n > 4 && !strcmp(name + n - 4, ".yml"));
}

static int remove_one(const char *path, const struct stat *st, int flag,
		      struct FTW *ftw)
{
	(void)st;
	(void)flag;
	(void)ftw;
	remove(path); /* what stays is found by its name */
	return 0;
}

void remove_tree(const char *dir)
{
	nftw(dir, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}
