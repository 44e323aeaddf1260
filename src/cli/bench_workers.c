/*
 * bench workers: how many workers it takes to keep up. The simulated times
 * make the best answer known: a step takes the longer of computing and of
 * loading divided by the workers.
 */
#include "cli/peers.h"

static const struct flag flags[] = {
	{ "--workers", "N,...",
	  "how many; 0: the loop loads (default 0,1,2,3,4)" },
	{ "--load", "MS,...", "loading of a sample (default 10)" },
	{ "--compute", "MS,...", "computing of a step (default 3)" },
	{ "--steps", "N", "how many (default 40)" },
	{ "--batch", "N", "samples in a batch (default 1)" },
	{ "--columns", "N", "of the data that is made (default 64)" },
	PEERS_FLAGS,
	{ NULL, NULL, NULL },
};

static int add_times(struct peers *r, double load, double compute)
{
	struct peer_point p = { .batch = r->batch,
				.steps = r->steps,
				.has_workers = true,
				.load_s = load,
				.compute_s = compute };
	int rc = peers_data(r, &p, r->steps * r->batch);

	for (size_t i = 0; rc < 0 && i < r->workers.n; i++) {
		p.workers = (uint64_t)r->workers.v[i];
		rc = peers_add(r, &p, "penstock");
		if (rc < 0)
			rc = peers_add_python(r, &p, "DataLoader", false);
	}
	return rc;
}

static int add(struct peers *r)
{
	int rc = -1;

	for (size_t i = 0; rc < 0 && i < r->load.n; i++)
		for (size_t k = 0; rc < 0 && k < r->compute.n; k++)
			rc = add_times(r, r->load.v[i], r->compute.v[k]);
	return rc;
}

static int run(int argc, char **argv)
{
	struct peers r = { .add = add,
			   .load = { { 0.010 }, 1 },
			   .compute = { { 0.003 }, 1 },
			   .workers = { { 0, 1, 2, 3, 4 }, 5 },
			   .batch = 1,
			   .steps = 40,
			   .cols = 64 };

	return peers_main(&r, &pen__bench_workers, &pen__kind_workers, argc,
			  argv);
}

static const char *const examples[] = {
	"penstock bench workers",
	"0 to 4 workers, times that end in seconds",
	"penstock bench workers --load 50 --compute 15 --steps 100",
	"the times of the usual guides",
	"penstock bench workers --load 5,20 --compute 5 --workers 0,2,8",
	"two kinds of data",
	NULL,
};

const struct command pen__bench_workers = {
	.name = "bench workers",
	.args = "[key=value ...] [flags]",
	.summary = "step and waiting time by the number of workers",
	.about = "Loading a sample and computing a step take set times; what "
		 "is measured is how well workers hide the one behind the "
		 "other: mean time of a step, and of that in next(). Workers "
		 "are threads of penstock, which runs its real engine with a "
		 "wait in it, and processes of PyTorch's DataLoader; both keep "
		 "two batches a worker ahead.",
	.flags = flags,
	.takes_spec = true,
	.examples = examples,
	.run = run,
};
