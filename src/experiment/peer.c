/*
 * Runs peers.py. It dies with us, whatever ends us, and so do its workers. Its
 * answer is checked as any input is.
 */
#include "experiment/peers.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "report/jsonl.h"

#define MOST (1u << 20) /* of what it prints */
#define LOOK_MS 20
#define DEEP 4 /* processes below one another */

/* ---- memory ---- */

static uint64_t own_pss(pid_t pid)
{
	unsigned long long kb = 0;
	char path[64], line[256];
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/smaps_rollup", (int)pid);
	f = fopen(path, "re");
	while (f && fgets(line, sizeof(line), f))
		if (sscanf(line, "Pss: %llu kB", &kb) == 1)
			break;
	if (f)
		fclose(f);
	return (uint64_t)kb * 1024;
}

static uint64_t tree(pid_t pid, int depth)
{
	uint64_t sum = own_pss(pid);
	char path[64];
	int child;
	FILE *f;

	if (!depth)
		return sum;
	snprintf(path, sizeof(path), "/proc/%d/task/%d/children", (int)pid,
		 (int)pid);
	f = fopen(path, "re");
	while (f && fscanf(f, "%d", &child) == 1)
		sum += tree(child, depth - 1);
	if (f)
		fclose(f);
	return sum;
}

uint64_t pen__tree_memory(pid_t pid)
{
	return tree(pid, DEEP);
}

/* ---- the process ---- */

/* 0 or an errno; peers.py asks the kernel itself to die with us. */
static int start(struct pen_peer_process *p, int fd)
{
	const char *const args[] = { p->python, "-c", pen__peers_py, NULL };
	char *argv[4]; /* spawning takes texts it might change, and does not */
	posix_spawn_file_actions_t todo;
	int rc = posix_spawn_file_actions_init(&todo);

	if (rc)
		return rc;
	memcpy(argv, args, sizeof(argv));
	rc = posix_spawn_file_actions_adddup2(&todo, fd, 0);
	if (!rc)
		rc = posix_spawn_file_actions_adddup2(&todo, fd, 1);
	if (!rc)
		rc = posix_spawn_file_actions_addopen(&todo, 2, "/dev/null",
						      O_WRONLY, 0);
	if (!rc)
		rc = posix_spawn(&p->pid, p->python, &todo, NULL, argv,
				 environ);
	posix_spawn_file_actions_destroy(&todo);
	return rc;
}

int pen__peer_open(struct pen_peer_process *p, const char *python,
		   struct pen_err *err)
{
	int fd[2], rc;

	*p = (struct pen_peer_process){ .python = python };
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fd))
		return pen__fail_sys(err, errno, python, "no socket");
	rc = start(p, fd[1]);
	close(fd[1]);
	p->fd = fd[0];
	if (!rc)
		return 0;
	p->pid = 0;
	close(fd[0]);
	return pen__fail_sys(err, rc, python, "does not run");
}

void pen__peer_close(struct pen_peer_process *p)
{
	if (p->pid) {
		kill(p->pid, SIGKILL);
		while (waitpid(p->pid, NULL, 0) < 0 && errno == EINTR)
			;
		close(p->fd);
	}
	p->pid = 0;
}

static void look(pid_t pid, uint64_t *most)
{
	const uint64_t now = pen__tree_memory(pid);

	if (now > *most)
		*most = now;
}

static bool at_end(const struct pen_text *out)
{
	return out->n && out->p[out->n - 1] == '\n' &&
	       strstr(out->p, "\"end\": true");
}

/* Until the answer is whole, or none will come. */
static void listen_to(const struct pen_peer_process *p, bool memory,
		      struct pen_text *out, struct pen_peer_answer *a)
{
	struct pollfd wait = { .fd = p->fd, .events = POLLIN };
	char buf[4096];

	while (!at_end(out)) {
		ssize_t n;

		if (memory && poll(&wait, 1, LOOK_MS) <= 0) {
			look(p->pid, &a->peak_bytes);
			continue;
		}
		n = read(p->fd, buf, sizeof(buf));
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0 || out->n + (size_t)n > MOST)
			return;
		/* its first line says that its data is there; the last one may
		 * come before a busy machine let us look */
		if (memory && !a->base_bytes)
			look(p->pid, &a->base_bytes);
		if (memory)
			look(p->pid, &a->peak_bytes);
		pen__text_put(out, buf, (size_t)n);
	}
}

/* ---- the answer ---- */

static double number(const struct pen_line *row, const char *key)
{
	const double v = pen__line_number(row, key);

	return v >= 0 && v < 1e15 ? v : 0;
}

static int read_answer(const char *python, const struct pen_text *out,
		       struct pen_peer_answer *a, struct pen_err *err)
{
	const char *last = out->p, *why;
	struct pen_line row;
	bool nomem;
	int rc = 0;

	for (size_t i = 0; i + 1 < out->n; i++)
		if (out->p[i] == '\n')
			last = out->p + i + 1;
	if (!pen__line_parse(&row, last, (size_t)(out->p + out->n - last),
			     &nomem))
		return pen__fail(err, nomem ? PEN_ENOMEM : PEN_EDATA, python,
				 "gave no answer that is JSON");
	snprintf(a->sum, sizeof(a->sum), "%s",
		 pen__line_text(&row, "content_sum"));
	a->torch = *pen__line_text(&row, "torch");
	a->own = *pen__line_text(&row, "penstock");
	a->samples = (uint64_t)number(&row, "samples");
	a->seconds = number(&row, "seconds");
	a->step_s = number(&row, "step_s");
	a->wait_s = number(&row, "wait_s");
	why = pen__line_text(&row, "error");
	if (*why)
		rc = pen__fail(err, PEN_ENOTSUP, python, "%.200s", why);
	pen__line_fini(&row);
	return rc;
}

int pen__peer_ask(const struct pen_peer_process *p,
		  const struct pen_text *request, bool memory,
		  struct pen_peer_answer *a, struct pen_err *err)
{
	struct pen_text out = { 0 };
	int rc;

	*a = (struct pen_peer_answer){ 0 };
	if (request->failed)
		return pen__fail_nomem(err, p->python, request->n);
	/* one that is gone is noticed by its silence */
	send(p->fd, request->p, request->n, MSG_NOSIGNAL);
	listen_to(p, memory, &out, a);
	if (out.failed)
		rc = pen__fail_nomem(err, p->python, out.n);
	else if (!out.n)
		rc = pen__fail(err, PEN_ENOTFOUND, p->python,
			       "is not Python, or has ended");
	else
		rc = read_answer(p->python, &out, a, err);
	pen__text_fini(&out);
	return rc;
}
