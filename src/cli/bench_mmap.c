/*
 * bench mmap: files mapped, read by pread, and read whole into memory, when
 * there is less memory than data. How memory is kept short is said with the
 * result; where it cannot be, pages are dropped instead, and that is said.
 */
#include <stdlib.h>
#include <string.h>

#include "cli/arms.h"
#include "engine/dataset.h"
#include "engine/spec.h"

enum { MAPPED, PREAD, MEMORY, NWAYS };
static const char *const ways[] = { "mmap", "pread", "in memory" };
static const char *const stores[] = { "mmap", "posix", "ram" };

struct mapping {
	struct arms a;
	struct pen_squeeze q;
	const char *cgroup;
	bool evict;
	char real[4096];
};

static const struct flag flags[] = {
	{ "--limit", "SIZE",
	  "memory for the files, as 64MB (default: half of their bytes)" },
	{ "--cgroup", "DIR",
	  "make the group in this one (cgroup v2, memory passed down); "
	  "without it, in this process's own, where that may be" },
	{ "--evict", NULL, "drop pages instead, even if a cgroup can be made" },
	ARMS_FLAGS,
	{ NULL, NULL, NULL },
};

static int run_squeezed(struct bench *b, const struct trial *t,
			struct pen_pass *pass, struct pen_text *j,
			struct pen_err *err)
{
	struct pen_squeeze *q = pass->arg;
	struct pen_dataset *ds;
	int rc = pen_dataset_open(&ds, pass->spec, err);

	if (rc)
		return rc;
	q->ds = ds;
	rc = pen__squeeze_enter(q, err);
	if (!rc)
		rc = arms_pass(b, t, pass, j, err);
	pen_dataset_close(ds);
	return rc;
}

static int run_arm(struct bench *b, const struct trial *t, struct pen_text *j,
		   struct pen_err *err)
{
	const struct arm *m = t->arg;
	const struct mapping *g = (const struct mapping *)(const void *)m->of;
	const struct setting set = { "store", stores[m->kind] };
	struct pen_squeeze q = g->q;
	/* cold, so that pages are this process's from the first on */
	struct pen_pass pass = { .max_batches = b->batches,
				 .temper = PEN_COLD,
				 .eat = pen__squeeze_batch,
				 .arg = &q };
	struct pen_spec *s;
	int rc = arms_spec(b, &set, 1, &s, err);

	if (rc)
		return rc;
	pass.spec = s;
	q.path = g->real;
	rc = run_squeezed(b, t, &pass, j, err);
	if (!rc) {
		const double all = pass.open_s + pass.seconds;

		pen__json_num(j, "samples_per_s_in_all",
			      all > 0 ? (double)pass.nsamples / all : 0);
		pen__json_int(j, "limit_bytes", q.limit);
		pen__json_str(j, "limited_by",
			      q.group[0]	  ? "cgroup"
			      : m->kind == MEMORY ? "nothing"
						  : "dropping pages");
		pen__json_int(j, "n_drops", q.ndrops);
		pen__json_num(j, "drop_s", (double)q.drop_ns / 1e9);
	}
	pen__pass_fini(&pass);
	pen_spec_free(s);
	return rc;
}

/* How memory is kept short, before any run. EXIT code or -1. */
static int settle(struct mapping *g)
{
	const struct pen_spec *s = g->a.b.spec;

	if (!realpath(s->paths[0], g->real))
		return complain_usage("bench mmap: %s: one file or folder, "
				      "please",
				      s->paths[0]);
	if (!g->q.limit)
		g->q.limit = (uint64_t)g->a.b.bytes / 2;
	if (!g->evict && !pen__squeeze_open(&g->q, g->cgroup) && g->cgroup)
		return complain_usage("bench mmap: --cgroup: no group with a "
				      "limit of memory can be made in %s",
				      g->cgroup);
	if (g->a.b.json)
		return -1;
	printf("  %s for the %sfiles, ", human_bytes((double)g->q.limit),
	       g->q.group[0] ? "process and its " : "");
	if (g->q.group[0])
		puts("held by a cgroup.");
	else
		printf("not held%s: pages are dropped whenever\n  that much "
		       "was delivered; `in memory` is not limited at all.\n",
		       g->evict ? "" : ", for no cgroup can be made here");
	return -1;
}

static int prepare(struct arms *a)
{
	struct mapping *g = (struct mapping *)(void *)a;
	int rc = arms_open(a);

	if (rc < 0)
		rc = settle(g);
	if (rc >= 0)
		return rc;
	for (int i = 0; i < NWAYS; i++) {
		struct arm *m = arms_add(a, ways[i], "", (uint64_t)i);

		if (!m)
			return EXIT_FAILED;
		m->kind = i;
		m->as_it_is = true;
		snprintf(m->check, sizeof(m->check), "limit=%llu %s",
			 (unsigned long long)g->q.limit,
			 g->q.group[0] ? "cgroup" : "dropped");
	}
	return -1;
}

static int take_arg(struct arms *a, struct args *arg, int kind)
{
	struct mapping *g = (struct mapping *)(void *)a;

	if (kind == ARG_FLAG && !strcmp(arg->key, "--limit"))
		return pen__parse_size(arg->value, &g->q.limit) || !g->q.limit
			       ? complain_usage("bench mmap: --limit: '%s' is "
						"not a size as 64MB",
						arg->value)
			       : -1;
	if (kind == ARG_FLAG && !strcmp(arg->key, "--cgroup")) {
		g->cgroup = arg->value;
		return -1;
	}
	if (kind == ARG_FLAG && !strcmp(arg->key, "--evict")) {
		g->evict = true;
		return -1;
	}
	if (kind == ARG_SETTING && !strcmp(arg->key, "store"))
		return complain_usage("bench mmap: store= is what the "
				      "experiment sets");
	return arms_arg(a, arg, kind);
}

static int run_mmap(int argc, char **argv)
{
	struct mapping g = { .a = { .cmd = &pen__bench_mmap,
				    .kind = &pen__kind_mmap,
				    .preset = { "sampler", "shuffle" },
				    .any_order = true,
				    .take = take_arg,
				    .prepare = prepare,
				    .run = run_arm } };
	const int rc = arms_main(&g.a, argc, argv);

	pen__squeeze_close(&g.q);
	return rc;
}

static const char *const examples[] = {
	"penstock bench mmap x.npy",
	"in random order, with memory for half of it",
	"penstock bench mmap x.npy --limit 256MB sampler=block",
	"with memory for 256 MB, block by block",
	"penstock bench mmap --samples 100k --shape 64x64 --dir /data",
	"on data made for it, on that disk",
	NULL,
};

const struct command pen__bench_mmap = {
	.name = "bench mmap",
	.args = "[PATH] [key=value ...] [flags]",
	.summary = "mapped, read, or in memory, with less memory than data",
	.about = "Starts cold. Memory is held to --limit by a cgroup where "
		 "one can be made; else pages of the files are dropped "
		 "whenever that many bytes were delivered, which misses as "
		 "often in random order but is no limit, and reading whole "
		 "files into memory is then not limited at all. What was done "
		 "is in the table and in every row. Time to drop pages is in "
		 "the rates (drop_s).",
	.flags = flags,
	.takes_spec = true,
	.examples = examples,
	.run = run_mmap,
};
