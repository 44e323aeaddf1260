/*
 * bench iterate: all rows of an array in batches, by everything that is used
 * for it. Every batch is added up as it comes, so that a view of memory nobody
 * touched, or a loop that ends early, is not called fast.
 */
#include "cli/peers.h"

static const struct flag flags[] = {
	{ "--rows", "N,...", "of the array (default 16384,65536)" },
	{ "--columns", "N", "of float32 (default 256)" },
	{ "--batch", "N", "rows in a batch (default 256)" },
	{ "--workers", "N,...", "of DataLoader (default 0,2)" },
	{ "--shuffle", NULL, "in random order instead of as they are" },
	PEERS_FLAGS,
	{ NULL, NULL, NULL },
};

/* Threads are what penstock would take; workers are tried. */
static int add_arms(struct peers *r, struct peer_point *p)
{
	static const char *const loaders[] = { "DataLoader",
					       "DataLoader batched",
					       "DataLoader mapping" };
	int rc;

	p->workers = r->a.b.host.cpus;
	rc = peers_add(r, p, "penstock");
	if (rc < 0)
		rc = peers_add_python(r, p, "penstock from Python", true);
	for (size_t k = 0; k < 3; k++)
		for (size_t i = 0; rc < 0 && i < r->workers.n; i++) {
			p->workers = (uint64_t)r->workers.v[i];
			rc = peers_add_python(r, p, loaders[k], false);
		}
	p->has_workers = false;
	return rc < 0 ? peers_add_python(r, p, "slicing", false) : rc;
}

static int add_size(struct peers *r, uint64_t rows)
{
	struct peer_point p = { .batch = r->batch,
				.shuffle = r->shuffle,
				.has_workers = true };
	int rc;

	p.steps = rows / p.batch;
	if (!p.steps)
		return complain_usage("bench iterate: --rows: less than one "
				      "batch of %s",
				      grouped(p.batch));
	rc = peers_data(r, &p, p.steps * p.batch);
	return rc < 0 ? add_arms(r, &p) : rc;
}

static int add(struct peers *r)
{
	int rc = -1;

	for (size_t i = 0; rc < 0 && i < r->rows.n; i++)
		rc = add_size(r, (uint64_t)r->rows.v[i]);
	return rc;
}

static int run(int argc, char **argv)
{
	struct peers r = { .add = add,
			   .rows = { { 16384, 65536 }, 2 },
			   .workers = { { 0, 2 }, 2 },
			   .batch = 256,
			   .cols = 256 };

	return peers_main(&r, &pen__bench_iterate, &pen__kind_iterate, argc,
			  argv);
}

static const char *const examples[] = {
	"penstock bench iterate",
	"two sizes, rows of 1 KiB, in order",
	"penstock bench iterate --rows 1e6 --shuffle --workers 0,1,2,4",
	"a million rows in random order",
	"penstock bench iterate --rows 4096 --columns 150000 --batch 32",
	"large rows",
	NULL,
};

const struct command pen__bench_iterate = {
	.name = "bench iterate",
	.args = "[key=value ...] [flags]",
	.summary = "all rows of an array in batches, by every usual means",
	.about = "penstock in C and from Python reads the .npy file, from the "
		 "page cache; the others have the array in memory: PyTorch's "
		 "DataLoader as it is commonly used (a row an index, default "
		 "collate), batched (a BatchSampler, the array indexed once a "
		 "batch), over a mapping of tensors with __getitems__, and "
		 "plain slicing of the tensor. Every batch is added up, by one "
		 "thread, and count and sum are checked.",
	.flags = flags,
	.takes_spec = true,
	.examples = examples,
	.run = run,
};
