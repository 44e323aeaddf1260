/*
 * bench batch-size: samples a batch against samples a second, and what a batch
 * costs by itself. All arms deliver the same samples, so a run is never a part
 * of an epoch: -n is refused.
 */
#include <string.h>

#include "cli/arms.h"
#include "engine/spec.h"

#define MOST 64

struct sizes {
	struct arms a;
	uint64_t size[MOST];
	size_t n;
};

static const struct flag flags[] = {
	{ "--sizes", "LIST",
	  "samples a batch (default 1,4,16,64,256,1024,4096)" },
	ARMS_FLAGS,
	{ NULL, NULL, NULL },
};

static int run_arm(struct bench *b, const struct trial *t, struct pen_text *j,
		   struct pen_err *err)
{
	const struct arm *m = t->arg;
	char value[24];
	const struct setting set = { "batch_size", value };

	snprintf(value, sizeof(value), "%llu", (unsigned long long)m->value);
	return arms_pass_with(b, t, &set, 1, j, err);
}

static int take_arg(struct arms *a, struct args *arg, int kind)
{
	struct sizes *g = (struct sizes *)(void *)a;

	if (kind == ARG_FLAG && !strcmp(arg->key, "--sizes"))
		return arms_list(arg->value, g->size, &g->n, MOST)
			       ? -1
			       : complain_usage("bench batch-size: --sizes: "
						"'%s' is not a list as 1,16",
						arg->value);
	if (kind == ARG_FLAG && !strcmp(arg->key, "-n"))
		return complain_usage("bench batch-size: -n would give every "
				      "size other samples; subset=0:N does it");
	if (kind == ARG_SETTING && !strcmp(arg->key, "batch_size"))
		return complain_usage("bench batch-size: batch_size= is what "
				      "the experiment sets; see --sizes");
	return arms_arg(a, arg, kind);
}

static int prepare(struct arms *a)
{
	const struct sizes *g = (const struct sizes *)(const void *)a;

	for (size_t i = 0; i < g->n; i++) {
		if (!g->size[i])
			return complain_usage("bench batch-size: --sizes: a "
					      "batch has at least one sample");
		if (!arms_add(a, grouped(g->size[i]), "", g->size[i]))
			return EXIT_FAILED;
	}
	return arms_open(a);
}

static int run_sizes(int argc, char **argv)
{
	struct sizes g = { .a = { .cmd = &pen__bench_batch_size,
				  .kind = &pen__kind_batch_size,
				  .any_order = true,
				  .take = take_arg,
				  .prepare = prepare,
				  .run = run_arm },
			   .size = { 1, 4, 16, 64, 256, 1024, 4096 },
			   .n = 7 };

	return arms_main(&g.a, argc, argv);
}

static const char *const examples[] = {
	"penstock bench batch-size data/ sampler=shuffle",
	"1 to 4,096 samples a batch",
	"penstock bench batch-size x.npy --sizes 32,64,128 threads=1 "
	"--repeats 5",
	"three sizes, five times in turns, with one thread",
	"penstock bench batch-size --samples 100k --shape 256",
	"on data made for it",
	NULL,
};

const struct command pen__bench_batch_size = {
	.name = "bench batch-size",
	.args = "[PATH] [key=value ...] [flags]",
	.summary = "samples a batch against samples a second",
	.about = "Runs the same epoch in batches of other sizes and says what "
		 "a batch costs by itself and what a sample does, by a line "
		 "through the times of a batch. Every byte delivered is read "
		 "once; arms that deliver something else have no rate.",
	.flags = flags,
	.takes_spec = true,
	.examples = examples,
	.run = run_sizes,
};
