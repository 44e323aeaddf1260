/*
 * A run in a process of its own, so that peak memory is the run's, and running
 * out of it ends the run and not the grid. The child is a plain fork: this
 * process has no threads and next to no memory. It sends its row, or its
 * error, through a pipe, and counts samples in a shared page.
 */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "cli/bench.h"

#define MOST ((size_t)4 << 20) /* of a row */

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

static void __attribute__((noreturn))
child(struct bench *b, const struct trial *t, int fd, pid_t parent)
{
	struct pen_text j = { .compact = true };
	struct pen_err err = { 0 };
	int rc;

	signal(SIGINT, SIG_DFL);
	signal(SIGTERM, SIG_DFL);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(1);
	rc = t->run(b, t, &j, &err);
	if (!rc && j.failed)
		rc = pen__fail_nomem(&err, "row", j.n);
	if (rc) {
		pen__text_fini(&j);
		j.compact = true;
		pen__json_open(&j, NULL, '{');
		pen__json_num(&j, "failed", rc);
		pen__json_str(&j, "where", err.where);
		pen__json_str(&j, "msg", err.msg);
		pen__json_close(&j, '}');
	}
	send_all(fd, &j);
	_exit(0);
}

/* "12 s", "3 min" */
static const char *roughly(double s)
{
	static char buf[32];

	if (s < 90)
		snprintf(buf, sizeof(buf), "%.0f s", s);
	else if (s < 5400)
		snprintf(buf, sizeof(buf), "%.0f min", s / 60);
	else
		snprintf(buf, sizeof(buf), "%.1f h", s / 3600);
	return buf;
}

static void show(const struct bench *b, const struct trial *t)
{
	const double done = (double)atomic_load(&b->watch->done);
	const double total = (double)atomic_load(&b->watch->total);
	const double part = total > 0 ? done / total : 0;
	const double s = (double)(pen__now_ns() - b->start_ns) / 1e9;
	const double at = (double)(b->at - b->nskipped) + part;
	const double left = (double)(b->ntrials - b->nskipped) - at;

	if (b->quiet || !b->ntrials || !isatty(STDERR_FILENO))
		return;
	fprintf(stderr, "\r\033[Krun %s of %s: %s, %.0f %%", grouped(b->at + 1),
		grouped(b->ntrials), t->title, 100 * part);
	if (at > 0.2)
		fprintf(stderr, ", about %s left", roughly(s / at * left));
	fflush(stderr);
}

/* Until the child closes its end, or someone wants to stop. */
static void listen_to(const struct bench *b, const struct trial *t, int fd,
		      struct pen_text *out)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };
	char buf[8192];

	while (!interrupted()) {
		ssize_t n;

		if (poll(&p, 1, 250) <= 0) {
			show(b, t);
			continue;
		}
		n = read(fd, buf, sizeof(buf));
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0 || out->n + (size_t)n > MOST)
			break;
		pen__text_put(out, buf, (size_t)n);
	}
	if (!b->quiet && isatty(STDERR_FILENO))
		fputs("\r\033[K", stderr);
}

/* What a child says that failed: as an error of ours. */
static int failed(const struct pen_text *out, bool *oom)
{
	struct pen_err err = { 0 };
	struct pen_line row;
	bool nomem;
	double code;

	if (!pen__line_parse(&row, out->p, out->n, &nomem)) {
		pen__fail(&err, nomem ? PEN_ENOMEM : PEN_EIO, "bench",
			  "a run left no result");
		return complain(&err);
	}
	code = pen__line_number(&row, "failed");
	if (code < 0) {
		pen__fail(&err, (int)code, pen__line_text(&row, "where"), "%s",
			  pen__line_text(&row, "msg"));
		*oom = err.code == PEN_ENOMEM;
	}
	pen__line_fini(&row);
	if (!err.code)
		return -1;
	/* the grid goes on, but why memory was short is worth knowing */
	return *oom ? (complain(&err), -1) : complain(&err);
}

static int settle(const struct trial *t, int status, const struct pen_text *out,
		  bool *oom)
{
	struct pen_err err = { 0 };

	if (interrupted())
		return 128 + interrupted();
	if (WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL) {
		*oom = true; /* the kernel's way to say so */
		return -1;
	}
	if (!WIFEXITED(status) || WEXITSTATUS(status) || !out->n) {
		pen__fail(&err, PEN_EIO, t->title, "the run ended by %s %d",
			  WIFSIGNALED(status) ? "signal" : "exit code",
			  WIFSIGNALED(status) ? WTERMSIG(status)
					      : WEXITSTATUS(status));
		complain(&err);
		return EXIT_FAILED;
	}
	return failed(out, oom);
}

int trial_run(struct bench *b, const struct trial *t, struct pen_text *out,
	      bool *oom)
{
	const pid_t parent = getpid();
	struct pen_err err = { 0 };
	int fd[2], status = 0;
	pid_t pid;

	*oom = false;
	atomic_store(&b->watch->done, 0);
	atomic_store(&b->watch->total, 0);
	if (pipe(fd)) {
		pen__fail_sys(&err, errno, "pipe", "none for a run");
		return complain(&err);
	}
	fflush(stdout);
	fflush(stderr);
	pid = fork();
	if (!pid) {
		close(fd[0]);
		child(b, t, fd[1], parent);
	}
	close(fd[1]);
	if (pid < 0) {
		close(fd[0]);
		pen__fail_sys(&err, errno, "fork", "no process for a run");
		return complain(&err);
	}
	listen_to(b, t, fd[0], out);
	close(fd[0]);
	if (interrupted())
		kill(pid, SIGKILL);
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	if (out->failed) {
		pen__fail_nomem(&err, "row", out->n);
		return complain(&err);
	}
	return settle(t, status, out, oom);
}

int trial_row(struct bench *b, const struct trial *t, struct pen_line *row)
{
	struct pen_text out = { 0 };
	bool oom, nomem;
	int rc = trial_run(b, t, &out, &oom);

	/* it said why, unless it was killed */
	if (rc < 0 && (oom || !pen__line_parse(row, out.p, out.n, &nomem)))
		rc = EXIT_FAILED;
	pen__text_fini(&out);
	return rc;
}
