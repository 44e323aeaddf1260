/*
 * A machine that has less than one would like: files mapped, read by pread, and
 * read whole into memory, when there is less memory than data; and loading
 * beside a training step that wants the CPU, both alone and both together, with
 * another number of loader threads: who takes how much from whom.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/team.h"
#include "experiment/harness.h"

/* ---- little memory ---- */

enum { MAPPED, PREAD, MEMORY, NWAYS };
static const char *const ways[] = { "mmap", "pread", "in memory" };
static const char *const stores[] = { "mmap", "posix", "ram" };

struct mapping {
	struct pen_squeeze q;
	char real[4096];
};

static int run_mapped(struct pen_session *r, const struct pen_trial *t,
		      struct pen_text *j, struct pen_err *err)
{
	const struct mapping *g = r->own;
	const struct pen_spec_change set[] = {
		{ "store", stores[t->of->kind], 0 }, { .key = NULL }
	};
	struct pen_squeeze q = g->q;
	/* cold, so that pages are this process's from the first on */
	struct pen_pass pass = { .content = true,
				 .temper = PEN_COLD,
				 .eat = pen__squeeze_batch,
				 .arg = &q };
	struct pen_dataset *ds;
	int rc = pen_dataset_open(&ds, r->spec, err);

	if (rc)
		return rc;
	q.path = g->real;
	q.ds = ds;
	rc = pen__squeeze_enter(&q, err);
	if (!rc)
		rc = pen__run_pass_with(r, t, &pass, set, j, err);
	if (!rc) {
		const double all = pass.open_s + pass.seconds;

		pen__json_num(j, "samples_per_s_in_all",
			      all > 0 ? (double)pass.nsamples / all : 0);
		pen__json_int(j, "limit_bytes", q.limit);
		pen__json_str(j, "limited_by",
			      q.group[0]	      ? "cgroup"
			      : t->of->kind == MEMORY ? "nothing"
						      : "dropping pages");
		pen__json_int(j, "n_drops", q.ndrops);
		pen__json_num(j, "drop_s", (double)q.drop_ns / 1e9);
	}
	pen_dataset_close(ds);
	return rc;
}

/* How memory is kept short, before any run. */
static int settle(struct pen_session *r, struct pen_err *err)
{
	const char *cgroup = pen__value(r, "--cgroup")->text;
	const bool evict = pen__given(r, "--evict");
	struct mapping *g = r->own;

	if (!realpath(pen_spec_path(r->spec, 0), g->real))
		return pen__fail(err, PEN_EINVAL, r->name,
				 "%s: one file or folder, please",
				 pen_spec_path(r->spec, 0));
	g->q.limit = pen__given(r, "--limit")
			     ? (uint64_t)pen__number(r, "--limit")
			     : (uint64_t)r->shared->bytes / 2;
	if (!evict && !pen__squeeze_open(&g->q, cgroup) && cgroup)
		return pen__fail(err, PEN_EINVAL, r->name,
				 "--cgroup: no group with a limit of memory "
				 "can be made in %s",
				 cgroup);
	pen__text_add(&r->notes, "  %s for the %sfiles, ",
		      pen__show_bytes((double)g->q.limit).s,
		      g->q.group[0] ? "process and its " : "");
	if (g->q.group[0])
		pen__text_add(&r->notes, "held by a cgroup.\n");
	else
		pen__text_add(
			&r->notes,
			"not held%s: pages are dropped whenever\n  that much "
			"was delivered; `in memory` is not limited at all.\n",
			evict ? "" : ", for no cgroup can be made here");
	return 0;
}

static int prepare_mapped(struct pen_session *r, struct pen_err *err)
{
	const struct mapping *g = r->own;
	int rc = pen__run_data(r, err);

	if (!rc)
		rc = settle(r, err);
	for (int i = 0; !rc && i < NWAYS; i++) {
		struct pen_setup *s =
			pen__setup_add(r, ways[i], "", (uint64_t)i);

		s->kind = i;
		s->as_it_is = true;
		snprintf(s->check, sizeof(s->check), "limit=%llu %s",
			 (unsigned long long)g->q.limit,
			 g->q.group[0] ? "cgroup" : "dropped");
	}
	return rc;
}

static void close_mapped(struct pen_session *r)
{
	pen__squeeze_close(&((struct mapping *)r->own)->q);
}

static bool is_limited(const struct pen_variants *a,
		       const struct pen_variant *m)
{
	(void)a;
	return strcmp(pen__line_text(m->row, "limited_by"), "nothing") != 0;
}

static void words_mapped(struct pen_text *t, const struct pen_variants *a)
{
	static const struct pen_ranking fastest = {
		.what = "Fastest with little memory",
		.key = "samples_per_s_in_all",
		.takes = is_limited
	};

	pen__put_best(t, a, &fastest);
}

static void facts_mapped(struct pen_text *t, const struct pen_variants *a)
{
	const struct pen_variant *in = pen__variant_find(a, "in memory", NULL);
	const struct pen_variant *best = NULL;

	for (size_t i = 0; i < a->n && !best; i++)
		if (is_limited(a, &a->v[i]) && a->v[i].n)
			best = &a->v[i];
	if (!best)
		return;
	if (!strcmp(pen__line_text(best->row, "limited_by"), "cgroup")) {
		if (!in)
			pen__text_add(t, "Reading all into memory does not fit "
					 "into the limit.\n");
		return;
	}
	pen__text_add(
		t,
		"Memory was not limited: pages were dropped after every %s "
		"delivered.\n",
		pen__show_bytes(pen__median_of(a, best, "limit_bytes")).s);
	if (in && pen__median_of(a, in, "own_memory_bytes") >
			  pen__median_of(a, in, "limit_bytes"))
		pen__text_add(t,
			      "`in memory` took %s, more than the limit: it "
			      "could not have run.\n",
			      pen__shown_of(a, in, "own_memory_bytes").s);
}

struct pen_experiment pen__exp_mmap = {
	.kind = { .experiment = "mmap",
		  .words = words_mapped,
		  .facts = facts_mapped },
	.own = sizeof(struct mapping),
	.prepare = prepare_mapped,
	.run = run_mapped,
	.close = close_mapped,
};

/* ---- a busy CPU ---- */

enum { WORK, LOADER, BOTH };

static int work_alone(const struct pen_session *r, unsigned threads,
		      struct pen_text *j, struct pen_err *err)
{
	const uint64_t ms = (uint64_t)pen__number(r, "--alone");
	const struct timespec t = { (time_t)(ms / 1000),
				    (long)(ms % 1000) * 1000000 };
	struct pen_busy w;
	int rc = pen__busy_start(&w, threads, err);

	if (rc)
		return rc;
	nanosleep(&t, NULL);
	pen__json_num(j, "work_per_s", pen__busy_stop(&w));
	return 0;
}

static unsigned busy_threads(const struct pen_session *r)
{
	return pen__given(r, "--busy") ? (unsigned)pen__number(r, "--busy")
				       : pen__cpus();
}

static int run_beside(struct pen_session *r, const struct pen_trial *t,
		      struct pen_text *j, struct pen_err *err)
{
	const int kind = t->of->kind;
	const unsigned busy = kind == LOADER ? 0 : busy_threads(r);
	const struct pen_spec_change set[] = {
		{ "threads", NULL, t->of->value }, { .key = NULL }
	};
	struct pen_busy w;
	int rc;

	pen__json_int(j, "busy_threads", busy);
	pen__json_int(j, "loader_threads", t->of->value);
	if (kind == WORK)
		return work_alone(r, busy, j, err);
	rc = pen__busy_start(&w, busy, err);
	if (rc)
		return rc;
	rc = pen__run_pass_with(r, t, NULL, set, j, err);
	if (kind == BOTH)
		pen__json_num(j, "work_per_s", pen__busy_stop(&w));
	return rc;
}

static int prepare_beside(struct pen_session *r, struct pen_err *err)
{
	const unsigned busy = busy_threads(r);
	struct pen_taken threads = *pen__value(r, "--threads");
	struct pen_setup *s = pen__setup_add(r, "work alone", "", 0);

	s->kind = WORK;
	s->as_it_is = true;
	s->check[0] = '\0';
	for (unsigned n = 1; !pen__given(r, "--threads") &&
			     n <= 2 * pen__cpus() && threads.n < 16;
	     n *= 2)
		threads.v[threads.n++] = n;
	for (size_t i = 0; i < 2 * threads.n; i++) {
		const uint64_t n = (uint64_t)threads.v[i / 2];
		char name[48] = "loader alone";

		if (i % 2)
			snprintf(name, sizeof(name), "beside %.30s busy",
				 pen__show_grouped(busy).s);
		pen__setup_add(r, name, pen__show_counted(n, "thread").s, n)
			->kind = i % 2 ? BOTH : LOADER;
	}
	return pen__run_data(r, err);
}

static void words_beside(struct pen_text *t, const struct pen_variants *a)
{
	const struct pen_variant *alone =
		pen__variant_find(a, "work alone", "");

	for (size_t i = 0; i < a->n; i++) {
		const struct pen_variant *c = &a->v[i];
		const struct pen_variant *was =
			pen__variant_find(a, "loader alone", c->group);

		if (isnan(pen__median_of(a, c, "work_per_s")) ||
		    isnan(pen__median_of(a, c, "samples_per_s")) || !was)
			continue;
		pen__text_add(t,
			      "%s: of its rate the loader keeps %s, of its own "
			      "the work %s.\n",
			      c->group,
			      pen__part_of(a, was, c, "samples_per_s").s,
			      pen__part_of(a, alone, c, "work_per_s").s);
	}
}

struct pen_experiment pen__exp_neighbour = {
	.kind = { .experiment = "neighbour", .words = words_beside },
	.prepare = prepare_beside,
	.run = run_beside,
};
