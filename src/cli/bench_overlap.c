/*
 * bench overlap: a step with loading behind the computing of the step before,
 * and with one after the other. Loading is simulated (so the answer is known:
 * the longer of both, against their sum) and real.
 */
#include <math.h>
#include <stdio.h>

#include "cli/race.h"

static const struct flag flags[] = {
	{ "--load", "MS", "simulated loading of a batch (default 8)" },
	{ "--compute", "MS", "computing of a step; a list (default 15)" },
	{ "--workers", "N", "that load while the step computes (default 1)" },
	{ "--steps", "N", "how many (default 40)" },
	{ "--batch", "N", "samples in a batch (default 32)" },
	{ "--columns", "N", "of data that is made (default 4096)" },
	RACE_FLAGS,
	{ NULL, NULL, NULL },
};

static int add_arms(struct race *r, struct race_point *p)
{
	const uint64_t n = (uint64_t)r->workers.v[0];
	int rc;

	p->workers = 0;
	rc = race_add(r, p, "penstock, not overlapped");
	if (rc < 0)
		rc = race_add_python(r, p, "DataLoader, not overlapped", false);
	p->workers = n;
	if (rc < 0)
		rc = race_add(r, p, "penstock, overlapped");
	if (rc < 0)
		rc = race_add_python(r, p, "DataLoader, overlapped", false);
	return rc;
}

static int add_loads(struct race *r, double compute)
{
	struct race_point p = { .batch = r->batch,
				.steps = r->steps,
				.compute_s = compute };
	int rc = race_data(r, &p, r->steps * r->batch);

	for (size_t i = 0; rc < 0 && !r->given && i < r->load.n; i++) {
		p.load_s = r->load.v[i] / (double)r->batch;
		snprintf(p.load, sizeof(p.load), "%g ms simulated",
			 1e3 * r->load.v[i]);
		rc = add_arms(r, &p);
	}
	p.load_s = 0;
	snprintf(p.load, sizeof(p.load), "of real data");
	return rc < 0 ? add_arms(r, &p) : rc;
}

static int run(int argc, char **argv)
{
	struct race r = { .batch = 32, .steps = 40, .cols = 4096 };
	int rc = race_open(&r, &pen__bench_overlap, argc, argv);

	race_default(&r.load, (const double[]){ 0.008 }, 1);
	race_default(&r.compute, (const double[]){ 0.015 }, 1);
	race_default(&r.workers, (const double[]){ 1 }, 1);
	if (rc < 0 && r.workers.v[0] < 1)
		rc = complain_usage("bench overlap: --workers: one at least");
	for (size_t i = 0; rc < 0 && i < r.compute.n; i++)
		rc = add_loads(&r, r.compute.v[i]);
	return race_end(&r, rc);
}

static const char *const examples[] = {
	"penstock bench overlap",
	"loading of 8 ms and computing of 15 ms: 15 ms a step, or 23",
	"penstock bench overlap --load 10,20 --compute 10,20",
	"four pairs of times",
	"penstock bench overlap x.npy --compute 2 --workers 2",
	"real loading of a file, by two threads or processes",
	NULL,
};

const struct command pen__bench_overlap = {
	.name = "bench overlap",
	.args = "[PATH] [key=value ...] [flags]",
	.summary = "a step with loading behind computing, and without",
	.about = "The loop takes a batch, looks at all of it and waits as long "
		 "as a model would compute. Overlapped, the next batch is "
		 "loaded meanwhile, by threads of penstock or by processes of "
		 "PyTorch's DataLoader; else the loop loads it itself. "
		 "Simulated loading takes a set time at least; real loading "
		 "is of PATH, or of data made for the run.",
	.flags = flags,
	.takes_spec = true,
	.examples = examples,
	.run = run,
};
