/*
 * Checkpoints as part of a run: the shares of all local accelerators in
 * parallel, timed as a phase of its own, on all ranks together.
 */
#include <math.h>
#include <stdatomic.h>

#include "base/clock.h"
#include "base/futex.h"
#include "base/mem.h"
#include "base/team.h"
#include "emulate/draw.h"
#include "emulate/run.h"

/* Interval between checks for interrupts. */
#define LOOK_NS 50000000

struct ckpt_job {
	struct pen_run *r;
	struct pen_err *err; /* per accelerator */
	atomic_uint next;
	_Atomic uint32_t running; /* threads */
	struct pen_ckpt_watch watch;
	unsigned epoch, block;
	uint64_t step;
	bool load;
};

static void ckpt_work(void *arg, unsigned t)
{
	struct ckpt_job *j = arg;
	unsigned a;

	(void)t;
	while ((a = atomic_fetch_add(&j->next, 1)) < j->r->rec.naccel) {
		struct pen_ckpt *k = j->r->ckpt[a];

		if (j->load)
			pen__ckpt_load(k, j->epoch, j->step, &j->err[a]);
		else
			pen__ckpt_save(k, j->epoch, j->step, &j->err[a]);
	}
	atomic_fetch_sub(&j->running, 1);
	pen__futex_wake(&j->running);
}

/* The share of this process. */
static uint64_t share(const struct pen_run *r, bool load)
{
	uint64_t sum = 0;

	for (unsigned a = 0; a < r->rec.naccel; a++)
		sum += load ? pen__ckpt_load_bytes(r->ckpt[a])
			    : pen__ckpt_bytes(r->ckpt[a]);
	return sum;
}

/* Waits for all threads; they end early if the run is to end. */
static int ckpt_wait(struct ckpt_job *j, struct pen_err *err)
{
	struct pen_progress p = { .what = j->load ? "reading checkpoint"
						  : "saving checkpoint",
				  .part = j->block,
				  .total = share(j->r, j->load),
				  .unit = "bytes" };
	uint32_t n;
	int rc = 0;

	while ((n = atomic_load(&j->running))) {
		p.done = atomic_load(&j->watch.bytes);
		p.done = p.done < p.total ? p.done : p.total;
		if (!rc) {
			rc = pen__run_tick(j->r, &p, err);
			atomic_store(&j->watch.stop, rc != 0);
		}
		pen__futex_wait(&j->running, n, LOOK_NS);
	}
	return rc;
}

static int ckpt_all(struct ckpt_job *j, struct pen_err *err)
{
	unsigned n = j->r->rec.naccel, most = pen__cpus();
	struct pen_team *team = NULL;
	int rc = 0;

	j->err = pen__calloc(n, sizeof(*j->err));
	if (!j->err)
		return pen__fail_nomem(err, "checkpoint", n * sizeof(*j->err));
	for (unsigned a = 0; a < n; a++)
		pen__ckpt_set_watch(j->r->ckpt[a], &j->watch);
	most = n < most ? n : most;
	atomic_store(&j->running, most);
	/* not on this thread, which may have real-time priority */
	rc = pen__team_start(&team, most, "pen-ckpt", ckpt_work, j, err);
	if (!rc)
		rc = ckpt_wait(j, err);
	pen__team_join(team);
	for (unsigned a = 0; a < n; a++) {
		pen__ckpt_set_watch(j->r->ckpt[a], NULL);
		if (!rc && j->err[a].code) {
			*err = j->err[a];
			rc = err->code;
		}
	}
	pen__free(j->err);
	return rc;
}

/* An interrupted checkpoint is excluded from all figures and leaves no files.
 */
static void forget(struct ckpt_job *j)
{
	struct pen_run *r = j->r;

	r->rec.nphases--;
	for (unsigned a = 0; !j->load && a < r->rec.naccel; a++)
		pen__ckpt_drop(r->ckpt[a], j->epoch, j->step);
}

int pen__run_checkpoint(struct pen_run *r, unsigned epoch, unsigned block,
			uint64_t step, bool load, struct pen_err *err)
{
	const char *verb = load ? "loading" : "saving";
	/* DLIO names a checkpoint at the end of an epoch after the next step */
	const bool at_end = r->c->workflow.train &&
			    r->c->checkpoint.steps_between < 0;
	double cpu = (double)pen__cpu_ns() / 1e9, gib = 1 << 30;
	struct ckpt_job j = { .r = r,
			      .epoch = epoch,
			      .block = block,
			      .step = step + at_end,
			      .load = load };
	struct pen_self_io before, after;
	struct pen_phase *p;
	uint64_t t0;
	int rc;

	pen__log(&r->log,
		 "Starting %s checkpoint %u after total step %llu for epoch %u",
		 verb, block, (unsigned long long)step, epoch);
	p = pen__record_phase(&r->rec, load ? PEN_PHASE_LOAD : PEN_PHASE_SAVE,
			      epoch, block);
	if (!p)
		return pen__fail_nomem(err, "checkpoint", 0);
	pen__self_io(&before);
	p->start = pen__unix_time();
	t0 = pen__now_ns();
	rc = ckpt_all(&j, err);
	if (r->c->checkpoint.rank_sync)
		rc = pen__run_agree(r, rc, err);
	p->seconds = (double)(pen__now_ns() - t0) / 1e9;
	p->end = pen__unix_time();
	pen__self_io(&after);
	r->counted = after;
	p->bytes = share(r, load);
	p->verified = load && r->c->checkpoint.verify;
	p->io.cpu_s = (double)pen__cpu_ns() / 1e9 - cpu;
	p->io.device_read_bytes = after.read_bytes - before.read_bytes;
	p->io.device_write_bytes = after.write_bytes - before.write_bytes;
	p->io.written_bytes = load ? 0 : p->bytes;
	rc = pen__run_agree(r, rc, err);
	if (rc == PEN_ECLOSED)
		forget(&j);
	if (!rc)
		pen__log(&r->log,
			 "Finished %s checkpoint %u for epoch %u in %.4f s; "
			 "Throughput: %.4f GB/s",
			 verb, block, epoch, p->seconds,
			 (double)r->rec.checkpoint_bytes / gib / p->seconds);
	return rc;
}

static int pause_between(struct pen_run *r, struct pen_err *err)
{
	struct pen_progress p = { .what = "pausing before a checkpoint" };
	uint64_t end = pen__now_ns() +
		       (uint64_t)(fabs(r->c->checkpoint.time_between) * 1e9);
	int rc = 0;

	while (!rc && pen__now_ns() < end) {
		uint64_t next = pen__now_ns() + LOOK_NS;

		pen__wait_until(next < end ? next : end);
		rc = pen__run_tick(r, &p, err);
	}
	return pen__run_agree(r, rc, err);
}

int pen__run_checkpoints(struct pen_run *r, struct pen_err *err)
{
	int64_t nw = r->c->checkpoint.num_write, nr = r->c->checkpoint.num_read;
	int rc = pen__run_mark_epoch(r, 1, err);

	if (!rc && nw > 0)
		pen__log(&r->log, "Checkpointing write started");
	for (int64_t i = 1; !rc && i <= nw; i++) {
		rc = pause_between(r, err);
		if (!rc)
			rc = pen__run_checkpoint(r, 1, (unsigned)i, (uint64_t)i,
						 false, err);
	}
	if (!rc && nw > 0)
		pen__log(&r->log, "Checkpointing write finished");
	if (!rc && nr > 0 && pen__ckpt_count(r->c) < (uint64_t)nr)
		rc = pen__fail(err, P_MISSING_DATA, r->c->checkpoint.folder,
			       "contains %llu of the %lld checkpoints to read",
			       (unsigned long long)pen__ckpt_count(r->c),
			       (long long)nr);
	rc = pen__run_agree(r, rc, err);
	if (!rc && nr > 0)
		pen__log(&r->log, "Checkpointing read started");
	for (int64_t i = 1; !rc && i <= nr; i++) {
		rc = pause_between(r, err);
		if (!rc)
			rc = pen__run_checkpoint(r, 1, (unsigned)i, (uint64_t)i,
						 true, err);
	}
	if (!rc && nr > 0)
		pen__log(&r->log, "Checkpointing read finished");
	if (r->rec.nepochs)
		r->rec.epoch[r->rec.nepochs - 1].end = pen__unix_time();
	return rc;
}
