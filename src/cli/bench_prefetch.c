/*
 * bench prefetch: batches prepared ahead, against rate, wait and memory. A
 * consumer that takes its time (--step) is what prefetching is for: one that
 * asks at once empties every queue.
 */
#include <string.h>

#include "base/clock.h"
#include "cli/arms.h"
#include "engine/spec.h"

#define MOST 64

struct prefetch {
	struct arms a;
	uint64_t ahead[MOST];
	size_t n;
	uint64_t step_ns;
	bool busy;
};

static const struct flag flags[] = {
	{ "--ahead", "LIST",
	  "batches ahead; 0: as the loader chooses (default 0,1,2,4,8,16)" },
	{ "--step", "TIME",
	  "the consumer takes so long for a batch, as 5ms (default: no time)" },
	{ "--busy", NULL,
	  "and computes meanwhile, as a model on this CPU does; without it, it "
	  "waits, as for an accelerator" },
	ARMS_FLAGS,
	{ NULL, NULL, NULL },
};

/* A step of training. */
static int step(void *arg, const struct pen_batch *b, struct pen_err *err)
{
	const struct prefetch *p = arg;
	const uint64_t until = pen__now_ns() + p->step_ns;
	const struct timespec t = { (time_t)(until / 1000000000),
				    (long)(until % 1000000000) };

	(void)b;
	(void)err;
	while (p->busy && pen__now_ns() < until)
		;
	while (!p->busy &&
	       clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL))
		;
	return 0;
}

static int run_arm(struct bench *b, const struct trial *t, struct pen_text *j,
		   struct pen_err *err)
{
	const struct arm *m = t->arg;
	/* the arms are the first thing of it */
	const struct prefetch *p = (const struct prefetch *)(const void *)m->of;
	struct pen_pass pass = { .max_batches = b->batches,
				 .eat = p->step_ns ? step : NULL,
				 .arg = (void *)(uintptr_t)p };
	char value[24];
	const struct setting set = { "prefetch", value };
	struct pen_spec *s;
	int rc;

	snprintf(value, sizeof(value), "%llu", (unsigned long long)m->value);
	rc = arms_spec(b, &set, 1, &s, err);
	if (rc)
		return rc;
	pass.spec = s;
	pen__json_num(j, "step_s", (double)p->step_ns / 1e9);
	rc = arms_pass(b, t, &pass, j, err);
	pen__pass_fini(&pass);
	pen_spec_free(s);
	return rc;
}

static int prepare(struct arms *a)
{
	const struct prefetch *p = (const struct prefetch *)(const void *)a;

	for (size_t i = 0; i < p->n; i++) {
		char name[48];
		struct arm *m;

		snprintf(name, sizeof(name), "%s",
			 p->ahead[i] ? grouped(p->ahead[i]) : "auto");
		m = arms_add(a, name, "", p->ahead[i]);
		if (!m)
			return EXIT_FAILED;
		snprintf(m->check, sizeof(m->check), "step=%llu%s",
			 (unsigned long long)p->step_ns,
			 p->busy ? " busy" : "");
	}
	return arms_open(a);
}

static int take_time(const char *text, uint64_t *ns, struct pen_err *err)
{
	static const struct pen_opt opt[] = {
		{ .name = "--step", .type = PEN_OPT_TIME, .max = 3.6e12 },
		{ .name = NULL },
	};

	return pen__opt_set(opt, ns, "--step", text, err);
}

static int take_arg(struct arms *a, struct args *arg, int kind)
{
	struct prefetch *p = (struct prefetch *)(void *)a;

	struct pen_err err = { 0 };

	if (kind == ARG_FLAG && !strcmp(arg->key, "--ahead"))
		return arms_list(arg->value, p->ahead, &p->n, MOST)
			       ? -1
			       : complain_usage("bench prefetch: --ahead: '%s' "
						"is not a list as 1,2,4",
						arg->value);
	if (kind == ARG_FLAG && !strcmp(arg->key, "--step"))
		return take_time(arg->value, &p->step_ns, &err) ? complain(&err)
								: -1;
	if (kind == ARG_FLAG && !strcmp(arg->key, "--busy")) {
		p->busy = true;
		return -1;
	}
	if (kind == ARG_SETTING && !strcmp(arg->key, "prefetch"))
		return complain_usage("bench prefetch: prefetch= is what the "
				      "experiment sets; see --ahead");
	return arms_arg(a, arg, kind);
}

static int run_prefetch(int argc, char **argv)
{
	struct prefetch p = { .a = { .cmd = &pen__bench_prefetch,
				     .kind = &pen__kind_prefetch,
				     .any_order = true,
				     .take = take_arg,
				     .prepare = prepare,
				     .run = run_arm },
			      .ahead = { 0, 1, 2, 4, 8, 16 },
			      .n = 6 };

	return arms_main(&p.a, argc, argv);
}

static const char *const examples[] = {
	"penstock bench prefetch data/ batch_size=64 sampler=shuffle",
	"0 (auto), 1, 2, 4, 8 and 16 batches ahead",
	"penstock bench prefetch data/ --step 5ms --ahead 1,2,3,4,6,8",
	"beside a model that takes 5 ms a batch",
	"penstock bench prefetch --samples 20k --shape 3x64x64 --step 2ms "
	"--busy",
	"on data made for it, and a model that computes on this CPU",
	NULL,
};

const struct command pen__bench_prefetch = {
	.name = "bench prefetch",
	.args = "[PATH] [key=value ...] [flags]",
	.summary = "batches ahead against rate, wait and memory",
	.about = "Runs the same epoch with another number of batches prepared "
		 "ahead and says how long the consumer waited for batches "
		 "(median and 99th percentile) and what memory that took. "
		 "Every byte delivered is read once; arms that deliver "
		 "something else have no rate.",
	.flags = flags,
	.takes_spec = true,
	.examples = examples,
	.run = run_prefetch,
};
