/*
 * bench memory: what workers cost. The memory of all processes is added up by
 * proportional share (PSS), so that a page which several have counts once, and
 * the peak is kept. A forked worker begins with shared pages and ends up with
 * copies of those that reference counts are in.
 */
#include "cli/peers.h"

static const struct flag flags[] = {
	{ "--workers", "N,...", "how many (default 1,2,4)" },
	{ "--rows", "N", "of the data (default 65536)" },
	{ "--columns", "N", "of float32 (default 256)" },
	{ "--batch", "N", "rows in a batch (default 256)" },
	PEERS_FLAGS,
	{ NULL, NULL, NULL },
};

static int add_arms(struct peers *r, struct peer_point *p)
{
	int rc = -1;

	for (size_t i = 0; rc < 0 && i < r->workers.n; i++) {
		p->workers = (uint64_t)r->workers.v[i];
		if (p->workers)
			rc = peers_add(r, p, "penstock");
		if (rc < 0 && p->workers)
			rc = peers_add_python(r, p, "penstock from Python",
					      true);
		if (rc < 0)
			rc = peers_add_python(r, p, "DataLoader array", false);
		if (rc < 0)
			rc = peers_add_python(r, p, "DataLoader mapped", false);
		if (rc < 0)
			rc = peers_add_python(r, p, "DataLoader list", false);
	}
	return rc;
}

static int add(struct peers *r)
{
	struct peer_point p = { .memory = true,
				.has_workers = true,
				.batch = r->batch,
				.steps = (uint64_t)r->rows.v[0] / r->batch };
	int rc;

	if (!p.steps)
		return complain_usage("bench memory: --rows: less than a "
				      "batch");
	rc = peers_data(r, &p, p.steps * p.batch);
	return rc < 0 ? add_arms(r, &p) : rc;
}

static int run(int argc, char **argv)
{
	struct peers r = { .add = add,
			   .rows = { { 65536 }, 1 },
			   .workers = { { 1, 2, 4 }, 3 },
			   .batch = 256,
			   .cols = 256 };

	return peers_main(&r, &pen__bench_memory, &pen__kind_memory, argc,
			  argv);
}

static const char *const examples[] = {
	"penstock bench memory",
	"1, 2 and 4 workers on 64 MiB",
	"penstock bench memory --rows 1000000 --workers 1,4,16",
	"a gigabyte, many workers",
	NULL,
};

const struct command pen__bench_memory = {
	.name = "bench memory",
	.args = "[key=value ...] [flags]",
	.summary = "peak memory by the number of workers",
	.about = "All arms go through the same rows once: penstock's threads, "
		 "which map the file, and DataLoader's processes, with the "
		 "data as one array in memory, as the mapped file, and as a "
		 "list of rows, as it is in many programs. Memory is that of "
		 "the process and all below it, "
		 "shared pages counted once (PSS), looked at every 10 to 20 ms "
		 "while it runs; Python and PyTorch themselves are in it, and "
		 "so is the mapped file. 'before loading' is what was there "
		 "when the workers were started.",
	.flags = flags,
	.takes_spec = true,
	.examples = examples,
	.run = run,
};
