/*
 * bench prealloc: blocks put together into one array, by concatenation, into
 * memory asked for beforehand, into memory that was used before, and into a
 * file that is mapped. The array is added up afterwards: an arm that stores
 * nothing is found out.
 */
#include <stdio.h>

#include "cli/peers.h"
#include "experiment/steps.h"

static const struct flag flags[] = {
	{ "--length", "N,...", "blocks (default 16,64,256)" },
	{ "--block", "SIZE", "bytes of a block (default 256KiB)" },
	PEERS_FLAGS,
	{ NULL, NULL, NULL },
};

static int add_length(struct peers *r, uint64_t n)
{
	static const char *const python[] = { "torch.cat", "np.concatenate",
					      "preallocated", "reused" };
	struct peer_point p = { .length = n,
				.block = r->block & ~(uint64_t)3,
				.want_samples = n };
	int rc;

	if (!n || p.block < 64 || p.block / 4 > 1 << 24)
		return complain_usage("bench prealloc: blocks are of 64 bytes "
				      "to 64 MiB, and one at least");
	snprintf(p.want_sum, sizeof(p.want_sum), "%llu",
		 (unsigned long long)pen__blocks_sum(n, p.block));
	rc = peers_add(r, &p, "penstock, fresh");
	if (rc < 0)
		rc = peers_add(r, &p, "penstock, reused");
	for (size_t i = 0; rc < 0 && i < 4; i++)
		rc = peers_add_python(r, &p, python[i], false);
	return rc < 0 ? peers_add_python(r, &p, "TensorStore", true) : rc;
}

static int add(struct peers *r)
{
	int rc = -1;

	for (size_t i = 0; rc < 0 && i < r->length.n; i++)
		rc = add_length(r, (uint64_t)r->length.v[i]);
	return rc;
}

static int run(int argc, char **argv)
{
	struct peers r = { .add = add,
			   .length = { { 16, 64, 256 }, 3 },
			   .block = 256 << 10 };

	return peers_main(&r, &pen__bench_prealloc, &pen__kind_prealloc, argc,
			  argv);
}

static const char *const examples[] = {
	"penstock bench prealloc",
	"16 to 256 blocks of 256 KiB",
	"penstock bench prealloc --length 50,300,500 --block 3520000",
	"the sizes of a well-known comparison",
	NULL,
};

const struct command pen__bench_prealloc = {
	.name = "bench prealloc",
	.args = "[flags]",
	.summary = "arrays put together: concatenated or preallocated",
	.about = "Blocks are in memory; what is measured is bringing them into "
		 "one array: torch.cat and np.concatenate of a list, a tensor "
		 "made beforehand and filled, the same with memory that had "
		 "been written before (reused), penstock.TensorStore, which is "
		 "a mapped file, and copying in C into fresh and reused "
		 "memory. The array's content is checked in every run.",
	.flags = flags,
	.examples = examples,
	.run = run,
};
