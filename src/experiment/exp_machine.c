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

static int run_mapped(struct pen_run *r, const struct pen_trial *t,
		      struct pen_text *j, struct pen_err *err)
{
	const struct mapping *g = r->own;
	const struct pen_setting set[] = { { "store", stores[t->of->kind] },
					   { NULL, NULL } };
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
static int settle(struct pen_run *r, struct pen_err *err)
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

static int prepare_mapped(struct pen_run *r, struct pen_err *err)
{
	const struct mapping *g = r->own;
	int rc = pen__run_data(r, err);

	if (!rc)
		rc = settle(r, err);
	for (int i = 0; !rc && i < NWAYS; i++) {
		struct pen_setup *s =
			pen__setup_add(r, ways[i], "", (uint64_t)i, err);

		if (!s)
			return PEN_ENOMEM;
		s->kind = i;
		s->as_it_is = true;
		snprintf(s->check, sizeof(s->check), "limit=%llu %s",
			 (unsigned long long)g->q.limit,
			 g->q.group[0] ? "cgroup" : "dropped");
	}
	return rc;
}

static void close_mapped(struct pen_run *r)
{
	pen__squeeze_close(&((struct mapping *)r->own)->q);
}

static bool is_limited(const struct pen_variants *a,
		       const struct pen_variant *m)
{
	(void)a;
	return strcmp(pen__line_text(m->row, "limited_by"), "nothing") != 0;
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

static const struct pen_flag mmap_flags[] = {
	{ "--limit", "SIZE",
	  "memory for the files, as 64MB (default: half of their bytes)",
	  PEN_TAKES_SIZES, NULL, 1, 1e18, 1, NULL },
	PEN_TEXT("--cgroup", "DIR",
		 "make the group in this one (cgroup v2, memory passed down); "
		 "without it, in this process's own, where that may be"),
	PEN_SWITCH("--evict",
		   "drop pages instead, even if a cgroup can be made"),
	PEN_FLAGS_END,
};

static const char *const mmap_examples[] = {
	"penstock bench mmap x.npy",
	"in random order, with memory for half of it",
	"penstock bench mmap x.npy --limit 256MB sampler=block",
	"with memory for 256 MB, block by block",
	"penstock bench mmap --samples 100k --shape 64x64 --dir /data",
	"on data made for it, on that disk",
	NULL,
};

const struct pen_experiment pen__exp_mmap = {
	.kind = { .experiment = "mmap",
		  .title = "Less memory than data",
		  .columns =
			  "way=arm|limited by=limited_by|limit=limit_bytes|per "
			  "s in all=samples_per_s_in_all|once "
			  "open=samples_per_s|opening=open_s|memory=own_memory_"
			  "bytes|with mapped files=peak_memory_bytes|+CPU s "
			  "per million=cpu_s_per_million|+dropped "
			  "pages=n_drops|+in=drop_s",
		  .chart = { { "Samples a second",
			       "With less memory than data, opening included: "
			       "it is then that files are read into memory. "
			       "Longer is better.",
			       "samples_per_s_in_all" },
			     { "Memory of its own",
			       "Without pages of mapped files. Shorter is "
			       "better.",
			       "own_memory_bytes" } },
		  .best =
			  (const struct pen_ranking[]){
				  { .what = "Fastest with little memory",
				    .key = "samples_per_s_in_all",
				    .takes = is_limited },
				  { .what = NULL } },
		  .facts = facts_mapped },
	.args = "[PATH] [key=value ...] [flags]",
	.summary = "mapped, read, or in memory, with less memory than data",
	.about = "Starts cold. Memory is held to --limit by a cgroup where one "
		 "can be made; else pages of the files are dropped whenever "
		 "that many bytes were delivered, which misses as often in "
		 "random order but is no limit, and reading whole files into "
		 "memory is then not limited at all. What was done is in the "
		 "table and in every row. Time to drop pages is in the rates "
		 "(drop_s).",
	.flags = mmap_flags,
	.has = PEN_HAS_MADE | PEN_HAS_PASS | PEN_HAS_SPEC,
	.refuses = (const char *const[]){ "store=", PEN_SETS, NULL },
	.preset = { "sampler", "shuffle" },
	.examples = mmap_examples,
	.own = sizeof(struct mapping),
	.prepare = prepare_mapped,
	.run = run_mapped,
	.close = close_mapped,
};

/* ---- a busy CPU ---- */

enum { WORK, LOADER, BOTH };

static int work_alone(const struct pen_run *r, unsigned threads,
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

static unsigned busy_threads(const struct pen_run *r)
{
	return pen__given(r, "--busy") ? (unsigned)pen__number(r, "--busy")
				       : pen__cpus();
}

static int run_beside(struct pen_run *r, const struct pen_trial *t,
		      struct pen_text *j, struct pen_err *err)
{
	const int kind = t->of->kind;
	const unsigned busy = kind == LOADER ? 0 : busy_threads(r);
	char value[24];
	const struct pen_setting set[] = { { "threads", value },
					   { NULL, NULL } };
	struct pen_busy w;
	int rc;

	pen__json_int(j, "busy_threads", busy);
	pen__json_int(j, "loader_threads", t->of->value);
	if (kind == WORK)
		return work_alone(r, busy, j, err);
	snprintf(value, sizeof(value), "%llu",
		 (unsigned long long)t->of->value);
	rc = pen__busy_start(&w, busy, err);
	if (rc)
		return rc;
	rc = pen__run_pass_with(r, t, NULL, set, j, err);
	if (kind == BOTH)
		pen__json_num(j, "work_per_s", pen__busy_stop(&w));
	return rc;
}

static int prepare_beside(struct pen_run *r, struct pen_err *err)
{
	const unsigned busy = busy_threads(r);
	struct pen_taken threads = *pen__value(r, "--threads");
	struct pen_setup *s = pen__setup_add(r, "work alone", "", 0, err);

	if (!s)
		return PEN_ENOMEM;
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
		s = pen__setup_add(r, name, pen__show_counted(n, "thread").s, n,
				   err);
		if (!s)
			return PEN_ENOMEM;
		s->kind = i % 2 ? BOTH : LOADER;
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

static const struct pen_flag neighbour_flags[] = {
	PEN_LIST("--threads", "LIST",
		 "of the loader (default 1, 2, 4 ... up to twice the CPUs)",
		 NULL, 1, 1024),
	PEN_COUNT("--busy", "threads that compute (default: one a CPU)", NULL,
		  1024),
	{ "--alone", "MS",
	  "milliseconds the work is measured alone (default 1000)",
	  PEN_TAKES_COUNTS, "1000", 1, 3600000, 1, NULL },
	PEN_FLAGS_END,
};

static const char *const neighbour_examples[] = {
	"penstock bench neighbour data/ sampler=shuffle",
	"loader threads 1, 2, 4 ... beside one busy thread a CPU",
	"penstock bench neighbour pictures/ --threads 1,2 --busy 2 epochs=1",
	"two busy threads",
	"penstock bench neighbour --samples 50k",
	"on data made for it",
	NULL,
};

const struct pen_experiment pen__exp_neighbour = {
	.kind = { .experiment = "neighbour",
		  .title = "A busy CPU",
		  .columns = "loader=group|=arm|cache|per s=samples_per_s|work "
			     "per s=work_per_s|waited=wait_share|wait "
			     "p99=wait_p99_s|time=seconds",
		  .chart = { { "Samples a second",
			       "Alone and beside busy threads, by threads of "
			       "the loader. Longer is better.",
			       "samples_per_s" },
			     { "Work a second",
			       "Pieces of work that the busy threads got done, "
			       "alone and beside the loader. Longer is better.",
			       "work_per_s" } },
		  .words = words_beside },
	.args = "[PATH] [key=value ...] [flags]",
	.summary = "loading beside work that wants the CPU: who starves whom",
	.about = "Busy threads compute in the first cache and count what they "
		 "get done; the loader runs its epochs (10, or epochs=). Each "
		 "is measured alone and both together, for several numbers of "
		 "loader threads. A run that lasts less than a second says "
		 "little: give more epochs.",
	.flags = neighbour_flags,
	.has = PEN_HAS_MADE | PEN_HAS_PASS | PEN_HAS_SPEC,
	.refuses = (const char *const[]){ "threads=",
					  PEN_SETS "; see --threads", NULL },
	/* epochs enough for a scheduler to have its say */
	.preset = { "epochs", "10" },
	.examples = neighbour_examples,
	.prepare = prepare_beside,
	.run = run_beside,
};
