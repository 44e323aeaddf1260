/*
 * Runs in separate processes, so that peak memory is that of the run, and
 * running out of memory ends the run and not the experiment. A function returns
 * its text or its error through a pipe. The pipe is also the standard output of
 * a program; its standard error goes to memory, for a one-line error message.
 * Both are killed if this process dies.
 */
#include "experiment/process.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <glob.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "emulate/config.h"
#include "report/doc.h"
#include "report/jsonl.h"

#define SELF "/proc/self/exe"
#define LOOK_MS 100
#define MOST ((size_t)64 << 20) /* bytes from the pipe */

struct child {
	int fd; /* read end of the pipe */
	pid_t pid, parent;
	sigset_t before;
	uint64_t start_ns;
};

/*
 * Forks; c->pid is 0 in the child. Signals are blocked meanwhile: the child
 * would lose one that arrives before its handlers are reset.
 */
static int begin(struct child *c, int *out, const char *name,
		 struct pen_err *err)
{
	sigset_t stop;
	int fd[2];

	c->parent = getpid();
	c->start_ns = pen__now_ns();
	if (pipe2(fd, O_CLOEXEC))
		return pen__fail_sys(err, errno, name,
				     "cannot start the process");
	sigemptyset(&stop);
	sigaddset(&stop, SIGINT);
	sigaddset(&stop, SIGTERM);
	sigprocmask(SIG_BLOCK, &stop, &c->before);
	c->pid = fork();
	if (!c->pid) {
		signal(SIGINT, SIG_DFL);
		signal(SIGTERM, SIG_DFL);
		sigprocmask(SIG_SETMASK, &c->before, NULL);
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (getppid() != c->parent)
			_exit(1);
		*out = fd[1];
		return 0;
	}
	sigprocmask(SIG_SETMASK, &c->before, NULL);
	close(fd[1]);
	c->fd = fd[0];
	if (c->pid > 0)
		return 0;
	close(fd[0]);
	return pen__fail_sys(err, errno, name, "cannot start the process");
}

static bool stopped(const struct pen_process *p)
{
	return p->stop && p->stop(NULL);
}

/* Reads until end of file or a stop request. Polls, because a signal to this
 * process alone does not interrupt a read. */
static void listen_to(const struct pen_process *p, int fd, struct pen_text *out)
{
	struct pollfd wait = { .fd = fd, .events = POLLIN };
	char piece[8192];

	while (!stopped(p)) {
		ssize_t n;

		if (poll(&wait, 1, LOOK_MS) <= 0) {
			if (p->wait)
				p->wait(p->arg);
			continue;
		}
		n = read(fd, piece, sizeof(piece));
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0 || out->n + (size_t)n > MOST)
			return;
		pen__text_put(out, piece, (size_t)n);
	}
}

static double seconds(struct timeval t)
{
	return (double)t.tv_sec + 1e-6 * (double)t.tv_usec;
}

static void finish(struct pen_process *p, const struct child *c, int end_with,
		   struct pen_text *out)
{
	struct rusage u = { 0 };
	int status = 0;

	listen_to(p, c->fd, out);
	close(c->fd);
	if (stopped(p))
		kill(c->pid, end_with);
	while (wait4(c->pid, &status, 0, &u) < 0 && errno == EINTR)
		;
	p->real_s = (double)(pen__now_ns() - c->start_ns) / 1e9;
	p->user_s = seconds(u.ru_utime);
	p->system_s = seconds(u.ru_stime);
	p->peak_bytes = (uint64_t)u.ru_maxrss * 1024;
	p->code = WIFSIGNALED(status) ? 128 + WTERMSIG(status)
				      : WEXITSTATUS(status);
}

/* ---- a function ---- */

static void send_all(int fd, const struct pen_text *t)
{
	size_t at = 0;

	while (!t->failed && at < t->n) {
		const ssize_t n = write(fd, t->p + at, t->n - at);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return;
		at += (size_t)n;
	}
}

static void put_failure(struct pen_text *j, int code, const struct pen_err *err)
{
	pen__text_fini(j);
	j->compact = true;
	pen__json_open(j, NULL, '{');
	pen__json_num(j, "failed", code);
	pen__json_num(j, "number", err->number);
	pen__json_str(j, "where", err->where);
	pen__json_str(j, "msg", err->msg);
	pen__json_close(j, '}');
}

/* The error that a child returned, if any. */
static int failure(const struct pen_text *out, const char *name,
		   struct pen_err *err)
{
	struct pen_err cause = { 0 };
	struct pen_line row;
	bool nomem;
	double code;
	int rc = 0;

	if (!pen__line_parse(&row, out->p, out->n, &nomem))
		return pen__fail(err, nomem ? P_NO_MEMORY : P_RUN_FAILED, name,
				 "the run returned no result");
	code = pen__line_number(&row, "failed");
	if (code < 0) {
		cause.code = (int)code;
		cause.number = (int)pen__line_number(&row, "number");
		rc = pen__fail_as(err, &cause, pen__line_text(&row, "where"),
				  "%s", pen__line_text(&row, "msg"));
	}
	pen__line_fini(&row);
	return rc;
}

int pen__process_call(struct pen_process *p, const char *name,
		      int (*fn)(void *, struct pen_text *, struct pen_err *),
		      void *arg, struct pen_text *out, struct pen_err *err)
{
	struct child c = { 0 };
	int fd, rc = begin(&c, &fd, name, err);

	if (rc)
		return rc;
	if (!c.pid) {
		struct pen_text j = { .compact = true };
		struct pen_err mine = { 0 };

		rc = fn(arg, &j, &mine);
		if (!rc && j.failed)
			rc = pen__fail_nomem(&mine, "row", j.n);
		if (rc)
			put_failure(&j, rc, &mine);
		send_all(fd, &j);
		_exit(0);
	}
	finish(p, &c, SIGKILL, out);
	if (stopped(p))
		return PEN_END;
	if (p->code == 128 + SIGKILL) { /* sent when memory runs out */
		err->msg[0] = '\0';
		return pen__err_code(err, PEN_ENOMEM);
	}
	if (p->code || !out->n)
		return pen__fail(err, P_RUN_FAILED, name,
				 "the run ended with %s %d",
				 p->code > 128 ? "signal" : "exit code",
				 p->code > 128 ? p->code - 128 : p->code);
	if (out->failed)
		return pen__fail_nomem(err, "row", out->n);
	return failure(out, name, err);
}

/* ---- a program ---- */

/* Cuts " [P042]" off the end, and returns 42; 0: there is no such number. */
static int cut_number(char *line)
{
	char *at = strrchr(line, '[');
	int number = 0, n = 0;

	if (!at || at == line || at[-1] != ' ' ||
	    sscanf(at, "[P%3d]%n", &number, &n) != 1 || !n || at[n] ||
	    number <= 0)
		return 0;
	at[-1] = '\0';
	return number;
}

/* The last line without "penstock: " and the number of the error, which is
 * returned; 0: it has none. */
static int last_line(int fd, char *line, size_t cap)
{
	char text[2048];
	const off_t all = lseek(fd, 0, SEEK_END);
	const off_t most = (off_t)sizeof(text) - 1;
	ssize_t n = pread(fd, text, (size_t)most, all > most ? all - most : 0);
	char *from, *end;
	int number;

	line[0] = '\0';
	if (n <= 0)
		return 0;
	text[n] = '\0';
	for (end = text + n; end > text && end[-1] == '\n';)
		*--end = '\0';
	from = strrchr(text, '\n');
	from = from ? from + 1 : text;
	if (!strncmp(from, "penstock: ", 10))
		from += 10;
	number = cut_number(from);
	snprintf(line, cap, "%.*s", (int)cap - 1, from);
	return number;
}

int pen__process_run(struct pen_process *p, const char *const *argv,
		     struct pen_text *out, struct pen_err *err)
{
	const char *name = argv[0][0] ? argv[0] : "penstock";
	int errors = memfd_create("stderr", MFD_CLOEXEC), fd, number, rc;
	struct child c = { 0 };
	char line[256];

	p->code = 0;
	p->real_s = 0;
	if (errors < 0)
		return pen__fail_sys(err, errno, name,
				     "cannot start the process");
	rc = begin(&c, &fd, name, err);
	if (!rc && !c.pid) {
		if (dup2(fd, STDOUT_FILENO) >= 0 &&
		    dup2(errors, STDERR_FILENO) >= 0)
			/* execvp does not change its arguments */
			execvp(argv[0][0] ? argv[0] : SELF,
			       (char *const *)(uintptr_t)argv);
		_exit(127);
	}
	if (!rc)
		finish(p, &c, SIGTERM, out);
	number = last_line(errors, line, sizeof(line));
	close(errors);
	if (rc || !p->code)
		return rc;
	if (p->code == 127 && !line[0])
		return pen__fail(err, P_NOT_FOUND, name,
				 "cannot run the program");
	/* a message of this program says where */
	return pen__fail(err, number ? number : P_RUN_FAILED,
			 number && !argv[0][0] ? "" : name, "%s%s",
			 line[0] ? line
				 : "the program failed without a message",
			 p->code > 128 ? " (killed by a signal)" : "");
}

int pen__process_doc(struct pen_process *p, const char *const *argv,
		     struct pen_doc *d, struct pen_err *err)
{
	struct pen_text out = { 0 };
	int rc = pen__process_run(p, argv, &out, err);

	if (!rc)
		rc = pen__jdoc_open(&d->j, out.p ? out.p : "", out.n, argv[1],
				    err);
	pen__text_fini(&out);
	return rc;
}

/* ---- paths ---- */

bool pen__names_workload(const char *name)
{
	const size_t n = strlen(name);

	return pen__workload_find(name) ||
	       (n > 5 && !strcmp(name + n - 5, ".yaml")) ||
	       (n > 4 && !strcmp(name + n - 4, ".yml"));
}

bool pen__beside(const char *const *places, char *path, size_t cap)
{
	char dir[2048];
	ssize_t n = readlink(SELF, dir, sizeof(dir));

	while (n > 0 && dir[n - 1] != '/')
		n--;
	for (; *places; places++) {
		glob_t found;

		snprintf(path, cap, "%.*s%s", n > 0 ? (int)n : 0, dir, *places);
		if (!access(path, R_OK))
			return true;
		if (!glob(path, 0, NULL, &found)) {
			snprintf(path, cap, "%s", found.gl_pathv[0]);
			globfree(&found);
			return true;
		}
	}
	return false;
}

static int remove_one(const char *path, const struct stat *st, int flag,
		      struct FTW *ftw)
{
	(void)st;
	(void)flag;
	(void)ftw;
	remove(path);
	return 0;
}

void pen__remove_tree(const char *dir)
{
	nftw(dir, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}
