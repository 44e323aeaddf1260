/*
 * The two sides of a comparison with other loaders. In C: the training loop,
 * and joining blocks; simulated loading waits in the workers of the engine,
 * through the hook of emulated preprocessing, so that threads, prefetching and
 * hand-over are the real ones. In Python: a process that runs peers.py. It is
 * killed with this process, and so are its workers; its answer is checked like
 * any input.
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

#include "base/clock.h"
#include "base/mem.h"
#include "report/jsonl.h"

#define MOST (1u << 20)	 /* bytes of output of peers.py */
#define LOOK_MS 20	 /* between samples of its memory */
#define DEEP 4		 /* levels of child processes */
#define SPIN_NS 80000	 /* most sleeps end at most this late */
#define LOOK_NS 10000000 /* between samples of memory */
#define WHOLE(x) ((uint64_t)(x))

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

/* Bytes of a process and its descendants; shared pages count once (PSS). 0:
 * unknown. */
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

static void look(pid_t pid, uint64_t *most)
{
	const uint64_t now = tree(pid, DEEP);

	if (now > *most)
		*most = now;
}

/* ---- the loop in C ---- */

/* Sleeps, then spins, to be exact to a few microseconds. */
static void wait_until(uint64_t ns)
{
	const uint64_t early = ns - (ns > SPIN_NS ? SPIN_NS : ns);
	const struct timespec t = { (time_t)(early / 1000000000),
				    (long)(early % 1000000000) };

	if (pen__now_ns() < early)
		while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t,
				       NULL) == EINTR)
			;
	while (pen__now_ns() < ns)
		;
}

/* ---- sums ---- */

#define LANES 32

static uint64_t sum_floats(const float *v, size_t n)
{
	float lane[LANES] = { 0 };
	double all = 0;
	size_t i = 0;

	for (; i + LANES <= n; i += LANES)
		for (size_t k = 0; k < LANES; k++)
			lane[k] += v[i + k];
	for (size_t k = 0; k < LANES; k++)
		all += (double)lane[k];
	for (; i < n; i++)
		all += (double)v[i];
	return WHOLE(all);
}

static uint64_t sum_up(bool floats, const void *p, size_t nbytes)
{
	const unsigned char *bytes = p;
	uint64_t sum = 0;

	if (floats)
		return sum_floats(p, nbytes / 4);
	for (size_t i = 0; nbytes % 4 && i < nbytes; i++)
		sum += bytes[i];
	for (size_t i = 0; nbytes % 4 == 0 && i < nbytes; i += 4) {
		uint32_t w;

		memcpy(&w, bytes + i, 4);
		sum += w;
	}
	return sum;
}

/* ---- the loop ---- */

struct run {
	const struct pen_point *p;
	struct pen_loader *l;
	struct pen_batch **kept;
	uint64_t *ids;
	uint64_t wait_ns, looked_ns, sum;
	struct pen_peer_answer *to;
};

static void load_hook(void *arg, uint32_t worker, uint32_t n)
{
	const double *s = arg;

	(void)worker;
	wait_until(pen__now_ns() + WHOLE(*s * n * 1e9));
}

/* Without prefetching: requests a batch when the loop needs it. */
static int next_alone(struct run *r, uint64_t step, struct pen_batch **out,
		      struct pen_err *err)
{
	const struct pen_point *s = r->p;
	const uint64_t until =
		pen__now_ns() + WHOLE(s->load_s * (double)s->batch * 1e9);
	int rc;

	for (uint64_t i = 0; i < s->batch; i++)
		r->ids[i] = step * s->batch + i;
	rc = pen_loader_ask(r->l, r->ids, (uint32_t)s->batch, err);
	if (!rc)
		rc = pen_loader_next(r->l, out, err);
	if (s->load_s > 0)
		wait_until(until);
	return rc;
}

static int next(struct run *r, uint64_t step, struct pen_batch **out,
		struct pen_err *err)
{
	int rc;

	if (r->kept) {
		*out = r->kept[step % r->p->cached];
		pen_batch_ref(*out);
		return 0;
	}
	rc = r->p->workers ? pen_loader_next(r->l, out, err)
			   : next_alone(r, step, out, err);
	if (rc == PEN_END)
		rc = pen__fail(err, P_DAMAGED, r->p->path,
			       "the data ended after %llu of %llu batches",
			       (unsigned long long)step,
			       (unsigned long long)r->p->steps);
	return rc;
}

static void look_at_us(struct run *r)
{
	const uint64_t now = pen__now_ns();

	if (!r->p->memory || now - r->looked_ns < LOOK_NS)
		return;
	look(getpid(), &r->to->peak_bytes);
	r->looked_ns = now;
}

/* Reads all of the largest tensor. */
static void take(struct run *r, const struct pen_batch *b)
{
	const struct pen_tensor *most = NULL;

	for (uint32_t i = 0; i < b->ntensors; i++)
		if (!most || b->tensors[i].nbytes > most->nbytes)
			most = &b->tensors[i];
	r->to->samples += b->nsamples;
	if (most)
		r->sum += sum_up(r->p->floats, most->data, most->nbytes);
}

static int loop(struct run *r, atomic_uint_fast64_t *done, struct pen_err *err)
{
	const struct pen_point *p = r->p;
	const uint64_t start = pen__now_ns();
	const uint64_t compute = WHOLE(p->compute_s * 1e9);

	for (uint64_t i = 0; i < p->steps; i++) {
		const uint64_t before = pen__now_ns();
		struct pen_batch *b;
		uint64_t after;
		int rc = next(r, i, &b, err);

		if (rc)
			return rc;
		after = pen__now_ns();
		r->wait_ns += after - before;
		take(r, b);
		pen_batch_unref(b);
		look_at_us(r);
		if (compute)
			wait_until(after + compute);
		atomic_store_explicit(done, i + 1, memory_order_relaxed);
	}
	r->to->seconds = (double)(pen__now_ns() - start) / 1e9;
	r->to->step_s = r->to->seconds / (double)p->steps;
	r->to->wait_s = (double)r->wait_ns / 1e9 / (double)p->steps;
	r->looked_ns = 0;
	look_at_us(r);
	return 0;
}

static int keep(struct run *r, struct pen_err *err)
{
	const uint64_t n = r->p->cached;
	struct pen_batch **kept = pen__calloc(n, sizeof(*kept));
	int rc = kept ? 0 : pen__fail_nomem(err, "batches", n * sizeof(*kept));

	for (uint64_t i = 0; !rc && i < n; i++) {
		rc = next(r, i, &kept[i], err);
		if (!rc)
			continue;
		while (i--)
			pen_batch_unref(kept[i]);
		pen__free(kept);
		return rc;
	}
	r->kept = kept;
	return rc;
}

int pen__steps_run(const struct pen_point *p, struct pen_spec *spec,
		   atomic_uint_fast64_t *done, struct pen_peer_answer *to,
		   struct pen_err *err)
{
	struct run r = { .p = p, .to = to };
	double load_s = p->load_s;
	int rc;

	*to = (struct pen_peer_answer){ 0 };
	if (p->memory)
		look(getpid(), &to->base_bytes);
	r.ids = pen__calloc(p->batch, sizeof(*r.ids));
	if (!r.ids)
		return pen__fail_nomem(err, "batch", p->batch * 8);
	if (p->workers && load_s > 0)
		pen_spec_on_rows(spec, load_hook, &load_s);
	rc = p->workers ? pen_loader_open(&r.l, spec, err)
			: pen_loader_open_asked(&r.l, spec, err);
	if (!rc && p->cached)
		rc = keep(&r, err);
	if (!rc)
		rc = loop(&r, done, err);
	snprintf(to->sum, sizeof(to->sum), "%llu", (unsigned long long)r.sum);
	for (uint64_t i = 0; r.kept && i < p->cached; i++)
		pen_batch_unref(r.kept[i]);
	pen__free(r.kept);
	pen__free(r.ids);
	pen_loader_close(r.l);
	return rc;
}

/* ---- joining blocks ---- */

/* Replay buffers and sample caches are filled like this. Most of the cost is
 * page faults in fresh memory, so reused memory is measured, too. Block i holds
 * ones, except for its first value, which is i. */
uint64_t pen__blocks_sum(uint64_t length, uint64_t block_bytes)
{
	return length * (block_bytes / 4 - 1) + length * (length - 1) / 2;
}

int pen__blocks_fill(const struct pen_point *p, bool reuse,
		     struct pen_peer_answer *d, struct pen_err *err)
{
	const size_t per = p->block / 4, all = p->length * p->block;
	float *from = pen__alloc(p->length, p->block);
	float *to = reuse ? pen__alloc(p->length, p->block) : NULL;
	uint64_t start, sum = 0;

	for (uint64_t i = 0; from && i < p->length * per; i++)
		from[i] = i % per ? 1.0f : (float)(i / per);
	if (to)
		memset(to, 1, all);
	start = pen__now_ns();
	if (!to)
		to = pen__alloc(p->length, p->block);
	for (uint64_t i = 0; from && to && i < p->length; i++)
		memcpy(to + i * per, from + i * per, p->block);
	d->seconds = (double)(pen__now_ns() - start) / 1e9;
	for (uint64_t i = 0; from && to && i < p->length; i++)
		sum += (uint64_t)to[i * per] +
		       sum_floats(to + i * per + 1, per - 1);
	d->samples = from && to ? p->length : 0;
	snprintf(d->sum, sizeof(d->sum), "%llu", (unsigned long long)sum);
	pen__free(to);
	pen__free(from);
	return d->samples ? 0 : pen__fail_nomem(err, "blocks", all);
}

/* ---- in Python ---- */

/* 0 or an errno. peers.py asks the kernel to be killed with its parent. */
static int start(struct pen_peer_process *p, int fd)
{
	const char *const args[] = { p->python, "-c", pen__peers_py, NULL };
	char *argv[4]; /* posix_spawn does not change them */
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
		return pen__fail_sys(err, errno, python,
				     "cannot create a socket");
	rc = start(p, fd[1]);
	close(fd[1]);
	p->fd = fd[0];
	if (!rc)
		return 0;
	p->pid = 0;
	close(fd[0]);
	return pen__fail_sys(err, rc, python, "cannot run the interpreter");
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

static bool at_end(const struct pen_text *out)
{
	return out->n && out->p[out->n - 1] == '\n' &&
	       strstr(out->p, "\"end\": true");
}

/* Reads until the answer is complete or the peer ends. */
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
		/* the first line: its data is loaded. Sample memory on every
		 * line, since on a busy machine poll may not time out */
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
		return pen__fail(err, nomem ? P_NO_MEMORY : P_BAD_MESSAGE,
				 python, "the answer is not valid JSON");
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
		rc = pen__fail(err, P_UNSUPPORTED_FEATURE, python, "%.200s",
			       why);
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
	/* a peer that has ended gives no answer */
	send(p->fd, request->p, request->n, MSG_NOSIGNAL);
	listen_to(p, memory, &out, a);
	if (out.failed)
		rc = pen__fail_nomem(err, p->python, out.n);
	else if (!out.n)
		rc = pen__fail(err, P_NOT_FOUND, p->python,
			       "not a Python interpreter, or it has ended");
	else
		rc = read_answer(p->python, &out, a, err);
	pen__text_fini(&out);
	return rc;
}
