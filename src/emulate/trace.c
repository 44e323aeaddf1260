/*
 * A Chrome trace of a process, for Perfetto: one track per accelerator, with
 * the categories and names of the tracer of DLIO. Written in pieces, because a
 * million events take a hundred megabytes.
 *
 * Times are integer nanoseconds since midnight (UTC) of the day of the start:
 * small enough to be exact in doubles, and the same for all ranks, so that
 * their files can be merged. Events of a track nest strictly: a step is inside
 * its block, and no event starts before the previous one ended.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <unistd.h>

#include "base/stale.h"
#include "base/sync.h"
#include "emulate/output.h"

#define MAX_EVENTS 1000000u
#define PIECE ((size_t)1 << 20)

struct pen_lay pen__lay_of(const struct pen_phase *p, unsigned accel)
{
	const struct pen_step_times *s = &p->of[accel];
	struct pen_lay lay = { .scale = 1 };
	double sum = 0;

	for (size_t i = 0; i < s->n; i++)
		sum += (double)s->load[i] + (double)s->compute[i];
	if (sum > p->seconds)
		lay.scale = p->seconds > 0 ? p->seconds / sum : 0;
	else if (s->n)
		lay.slack = (p->seconds - sum) / (double)s->n;
	return lay;
}

struct trace {
	struct pen_text text;
	int fd, sys;
	const struct pen_record *r;
	double origin;
	uint64_t step, nsteps, keep; /* number of steps to show */
};

struct event {
	const char *cat, *name;
	uint64_t at, ns;
	unsigned tid, epoch, block;
	uint64_t step; /* from 1; 0: not a step */
};

static void flush(struct trace *t)
{
	size_t done = 0;

	while (done < t->text.n && !t->sys) {
		ssize_t n = write(t->fd, t->text.p + done, t->text.n - done);

		if (n < 0 && errno != EINTR)
			t->sys = errno;
		done += n > 0 ? (size_t)n : 0;
	}
	t->text.n = 0;
}

static void put_event(struct trace *t, const struct event *e)
{
	struct pen_text *x = &t->text;

	pen__text_add(x,
		      ",\n{\"ph\":\"X\",\"cat\":\"%s\",\"name\":\"%s\","
		      "\"pid\":%d,\"tid\":%u,\"ts\":%" PRIu64 ".%03u,"
		      "\"dur\":%" PRIu64 ".%03u,\"args\":{\"epoch\":%u,",
		      e->cat, e->name, t->r->comm->rank, e->tid, e->at / 1000,
		      (unsigned)(e->at % 1000), e->ns / 1000,
		      (unsigned)(e->ns % 1000), e->epoch);
	if (e->step)
		pen__text_add(x, "\"step\":%" PRIu64 "}}", e->step);
	else
		pen__text_add(x, "\"block\":%u}}", e->block);
	if (x->n >= PIECE)
		flush(t);
}

static uint64_t to_ns(double s)
{
	return s > 0 && s < 1e9 ? (uint64_t)(s * 1e9) : 0;
}

/* Selects one of every nsteps/keep steps. */
static bool shown(struct trace *t)
{
	uint64_t i = t->step++;

	if (t->keep >= t->nsteps)
		return true;
	return (uint64_t)((double)(i + 1) * (double)t->keep /
			  (double)t->nsteps) >
	       (uint64_t)((double)i * (double)t->keep / (double)t->nsteps);
}

static void put_steps(struct trace *t, const struct pen_phase *p, unsigned a,
		      const struct event *block)
{
	const struct pen_step_times *s = &p->of[a];
	const struct pen_lay lay = pen__lay_of(p, a);
	const uint64_t end = block->at + block->ns;
	struct event fetch = { "dataloader", "fetch.iter", 0, 0,
			       block->tid,   block->epoch, 0, 0 };
	struct event compute = fetch;
	double at = 0;

	compute.cat = compute.name = "compute";
	for (size_t i = 0; i < s->n; i++) {
		double load = (double)s->load[i] * lay.scale,
		       work = (double)s->compute[i] * lay.scale;
		uint64_t from = block->at + to_ns(at),
			 mid = block->at + to_ns(at + load),
			 to = block->at + to_ns(at + load + work);

		at += load + work + lay.slack;
		if (!shown(t))
			continue;
		from = from < end ? from : end;
		mid = mid < end ? mid : end;
		to = to < end ? to : end;
		fetch.at = from;
		fetch.ns = mid - from;
		compute.at = mid;
		compute.ns = to - mid;
		fetch.step = compute.step = i + 1;
		put_event(t, &fetch);
		put_event(t, &compute);
	}
}

static void put_track(struct trace *t, unsigned a)
{
	static const char *const cat[] = { "pipeline", "pipeline", "checkpoint",
					   "checkpoint" };
	static const char *const name[] = { "train", "evaluate", "capture",
					    "restart" };
	uint64_t free_from = 0;

	for (size_t i = 0; i < t->r->nphases; i++) {
		const struct pen_phase *p = &t->r->phase[i];
		struct event e = { .cat = cat[p->kind],
				   .name = name[p->kind],
				   .at = to_ns(p->start - t->origin),
				   .ns = to_ns(p->seconds),
				   .tid = t->r->first + a,
				   .epoch = p->epoch,
				   .block = p->block };

		if (e.at < free_from) /* the wall clock was set back */
			e.at = free_from;
		free_from = e.at + e.ns;
		put_event(t, &e);
		if (p->of)
			put_steps(t, p, a, &e);
	}
}

static void put_meta(struct trace *t)
{
	const int rank = t->r->comm->rank;
	struct pen_text *x = &t->text;

	pen__text_add(x,
		      "[\n{\"ph\":\"M\",\"name\":\"process_name\",\"pid\":%d,"
		      "\"args\":{\"name\":\"rank %d\",\"origin_unix\":%.0f",
		      rank, rank, t->origin);
	if (t->keep < t->nsteps)
		pen__text_add(x,
			      ",\"note\":\"%" PRIu64 " of %" PRIu64
			      " steps are shown, evenly spread\"",
			      t->keep, t->nsteps);
	pen__text_add(x, "}}");
	for (unsigned a = 0; a < t->r->naccel; a++)
		pen__text_add(x,
			      ",\n{\"ph\":\"M\",\"name\":\"thread_name\","
			      "\"pid\":%d,\"tid\":%u,\"args\":{\"name\":"
			      "\"accelerator %u\"}}",
			      rank, t->r->first + a, t->r->first + a);
}

static void plan(struct trace *t)
{
	uint64_t others = 0;

	for (size_t i = 0; i < t->r->nphases; i++) {
		const struct pen_phase *p = &t->r->phase[i];

		others += t->r->naccel;
		for (unsigned a = 0; p->of && a < t->r->naccel; a++)
			t->nsteps += p->of[a].n;
	}
	t->keep = others < MAX_EVENTS ? (MAX_EVENTS - others) / 2 : 0;
	if (t->keep > t->nsteps)
		t->keep = t->nsteps;
	t->origin = floor(t->r->start / 86400) * 86400;
}

int pen__output_trace(const struct pen_record *r, const char *path,
		      struct pen_err *err)
{
	struct trace t = { .r = r };
	char tmp[4128];
	bool nomem;

	if (snprintf(tmp, sizeof(tmp), "%s.%ld.tmp", path, (long)getpid()) >=
	    (int)sizeof(tmp))
		return pen__fail(err, P_TOO_LONG, path, "the path is too long");
	pen__stale_remove(path);
	t.fd = open(tmp, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
	if (t.fd < 0)
		return pen__fail_sys(err, errno, path,
				     "cannot write the trace");
	plan(&t);
	put_meta(&t);
	for (unsigned a = 0; a < r->naccel; a++)
		put_track(&t, a);
	pen__text_add(&t.text, "\n]\n");
	flush(&t);
	nomem = t.text.failed;
	pen__text_fini(&t.text);
	if (!t.sys && !nomem && fsync(t.fd))
		t.sys = errno;
	if (close(t.fd) && !t.sys)
		t.sys = errno;
	if (!t.sys && !nomem && rename(tmp, path))
		t.sys = errno;
	if (!t.sys && !nomem)
		t.sys = pen__sync_parent(path);
	if (!t.sys && !nomem)
		return 0;
	unlink(tmp);
	if (nomem)
		return pen__fail_nomem(err, path, PIECE);
	return pen__fail_sys(err, t.sys, path, "cannot write the trace");
}
