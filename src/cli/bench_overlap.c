/*
 * bench overlap: a step with loading behind the computing of the step before,
 * and with one after the other. Loading is simulated (so the answer is known:
 * the longer of both, against their sum) and real.
 */
#include <math.h>
#include <stdio.h>

#include "cli/peers.h"

static const struct flag flags[] = {
	{ "--load", "MS", "simulated loading of a batch (default 8)" },
	{ "--compute", "MS", "computing of a step; a list (default 15)" },
	{ "--workers", "N", "that load while the step computes (default 1)" },
	{ "--steps", "N", "how many (default 40)" },
	{ "--batch", "N", "samples in a batch (default 32)" },
	{ "--columns", "N", "of data that is made (default 4096)" },
	PEERS_FLAGS,
	{ NULL, NULL, NULL },
};

static int add_arms(struct peers *r, struct peer_point *p)
{
	const uint64_t n = (uint64_t)r->workers.v[0];
	int rc;

	p->workers = 0;
	rc = peers_add(r, p, "penstock, not overlapped");
	if (rc < 0)
		rc = peers_add_python(r, p, "DataLoader, not overlapped",
				      false);
	p->workers = n;
	if (rc < 0)
		rc = peers_add(r, p, "penstock, overlapped");
	if (rc < 0)
		rc = peers_add_python(r, p, "DataLoader, overlapped", false);
	return rc;
}

static int add_loads(struct peers *r, double compute)
{
	struct peer_point p = { .batch = r->batch,
				.steps = r->steps,
				.compute_s = compute };
	int rc = peers_data(r, &p, r->steps * r->batch);

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

static int add(struct peers *r)
{
	int rc = -1;

	if (r->workers.v[0] < 1)
		return complain_usage("bench overlap: --workers: one at least");
	for (size_t i = 0; rc < 0 && i < r->compute.n; i++)
		rc = add_loads(r, r->compute.v[i]);
	return rc;
}

static int run(int argc, char **argv)
{
	struct peers r = { .add = add,
			   .load = { { 0.008 }, 1 },
			   .compute = { { 0.015 }, 1 },
			   .workers = { { 1 }, 1 },
			   .batch = 32,
			   .steps = 40,
			   .cols = 4096 };

	return peers_main(&r, &pen__bench_overlap, &pen__kind_overlap, argc,
			  argv);
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
