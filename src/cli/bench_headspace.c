/*
 * bench headspace: the most a faster loader could still gain. The same loop is
 * run with real loading and with a few batches that were kept, which cost
 * nothing to load; what is between the two is all there is to win.
 */
#include "cli/peers.h"

#define KEPT 8

static const struct flag flags[] = {
	{ "--compute", "MS,...", "computing of a step (default 0,1,5)" },
	{ "--workers", "N", "threads, or processes of DataLoader (default 2)" },
	{ "--steps", "N", "how many (default 200)" },
	{ "--batch", "N", "samples in a batch (default 64)" },
	{ "--columns", "N", "of data that is made (default 1024)" },
	PEERS_FLAGS,
	{ NULL, NULL, NULL },
};

static int add_pair(struct peers *r, struct peer_point *p, bool cached)
{
	int rc;

	p->cached = cached ? KEPT : 0;
	p->steps = r->steps;
	rc = peers_data(r, p, r->steps * r->batch);
	if (rc < 0)
		rc = peers_add(r, p, cached ? "penstock, cached" : "penstock");
	if (rc < 0)
		rc = peers_add_python(
			r, p, cached ? "DataLoader, cached" : "DataLoader",
			false);
	return rc;
}

static int add(struct peers *r)
{
	int rc = -1;

	if (r->workers.v[0] < 1)
		return complain_usage("bench headspace: --workers: one at "
				      "least");
	r->steps = r->steps < KEPT ? KEPT : r->steps - r->steps % KEPT;
	for (size_t i = 0; rc < 0 && i < r->compute.n; i++) {
		struct peer_point p = { .batch = r->batch,
					.compute_s = r->compute.v[i],
					.workers = (uint64_t)r->workers.v[0] };

		rc = add_pair(r, &p, false);
		if (rc < 0)
			rc = add_pair(r, &p, true);
	}
	return rc;
}

static int run(int argc, char **argv)
{
	struct peers r = { .add = add,
			   .compute = { { 0, 0.001, 0.005 }, 3 },
			   .workers = { { 2 }, 1 },
			   .batch = 64,
			   .steps = 200,
			   .cols = 1024 };

	return peers_main(&r, &pen__bench_headspace, &pen__kind_headspace, argc,
			  argv);
}

static const char *const examples[] = {
	"penstock bench headspace",
	"data made for it, steps of 0, 1 and 5 ms",
	"penstock bench headspace images/ --compute 20 --batch 32",
	"would a faster loader help a model that takes 20 ms a step?",
	NULL,
};

const struct command pen__bench_headspace = {
	.name = "bench headspace",
	.args = "[PATH] [key=value ...] [flags]",
	.summary = "the most a faster loader could still gain",
	.about = "A loop that takes a batch, looks at all of it and waits as "
		 "long as a model would compute, with real loading of PATH (or "
		 "of data made for it) and with eight batches that were kept "
		 "and are given over and over. No loader can be faster than "
		 "that, so the difference is the most that is to be gained. "
		 "PyTorch takes part when PATH is one .npy file.",
	.flags = flags,
	.takes_spec = true,
	.examples = examples,
	.run = run,
};
