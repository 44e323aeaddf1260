/*
 * The verdict on recorded figures: every situation has one right answer, with
 * the figure that proves it, and no figures give two statements that exclude
 * each other. docs/method.md has the same situations as a table;
 * tests/e2e/verdict.py makes them happen.
 */
#include <math.h>

#include "base/rng.h"
#include "test.h"
#include "verdict_cases.h"

static void make(struct pen_facts *f, const struct situation *s)
{
	pen__facts_init(f);
	for (int i = PEN_PLAN_S; i <= PEN_IDLE_S; i++)
		f->v[i] = 0;
	f->v[PEN_LATE_S] = f->v[PEN_BARRIER_S] = f->v[PEN_FIRST_S] = 0;
	f->v[PEN_CACHE_BYTES] = 0;
	for (size_t i = 0; i < MOST && s->fact[i].value > 0; i++)
		f->v[s->fact[i].fact] = s->fact[i].value;
	f->training = s->training;
	snprintf(f->store, sizeof(f->store), "%s", s->store);
	snprintf(f->device, sizeof(f->device), "%s",
		 s->device ? s->device : "");
}

static void test_situation(const struct situation *s)
{
	struct pen_text t = { 0 };
	struct pen_verdict v;
	struct pen_facts f;

	make(&f, s);
	pen__verdict(&f, NULL, 0, &v);
	pen__verdict_text(&v, &t);
	if (!CHECK_EQ(v.cause, s->cause) ||
	    !CHECK(!s->proof || strstr(v.evidence, s->proof)) ||
	    !CHECK(!s->advice || strstr(v.advice, s->advice)))
		fprintf(stderr, "%s: %s: %s\n", s->name,
			pen__cause_name(v.cause), t.p);
	CHECK(!strstr(t.p, "nan") && !strstr(t.p, "inf"));
	CHECK_EQ(v.rank, -1);
	/* accelerators that are busy enough have no cause to wait */
	if (s->training) {
		f.fed = true;
		pen__verdict(&f, NULL, 0, &v);
		CHECK_EQ(v.cause, PEN_CAUSE_NONE);
	}
	pen__text_fini(&t);
}

/* One of four ranks is slow, for a reason of its own, and the others wait. */
static void test_slow_rank(void)
{
	static const struct situation slow = {
		.training = true,
		.store = "fault",
		.fact = { QUIET,
			  { PEN_COMPUTE_S, 1 },
			  { PEN_WAIT_S, 9 },
			  { PEN_READ_S, 19 },
			  { PEN_RUN_S, 0.1 },
			  { PEN_QUEUE_S, 0.1 },
			  { PEN_READS, 190 },
			  { PEN_TIMED_READS, 19 },
			  { PEN_TIMED_S, 1.9 },
			  { PEN_BEST_READ_S, 0.1 } }
	};
	static const struct situation fast = { .training = true,
					       .store = "posix",
					       .fact = {
						       QUIET,
						       { PEN_COMPUTE_S, 1 },
						       { PEN_WAIT_S, 0.1 },
						       { PEN_BARRIER_S, 8.9 },
						       { PEN_IDLE_S, 19 },
						       { PEN_RUN_S, 0.1 },
						       { PEN_QUEUE_S, 0.1 } } };
	struct pen_facts rank[4], all;
	struct pen_verdict v;

	for (int i = 0; i < 4; i++)
		make(&rank[i], i == 2 ? &slow : &fast);
	all = rank[0];
	for (int i = 1; i < 4; i++)
		pen__facts_join(&all, &rank[i]);
	CHECK(all.v[PEN_SECONDS] == 40 && all.v[PEN_WAIT_S] > 9.29);
	pen__verdict(&all, rank, 4, &v);
	CHECK_EQ(v.cause, PEN_CAUSE_RANK);
	CHECK_EQ(v.rank, 2);
	CHECK_EQ(v.there, PEN_CAUSE_LATENCY);
	CHECK(strstr(v.what, "Rank 2 is slow"));
	CHECK(strstr(v.evidence,
		     "took 10.0 s in total and those of a typical rank 1.10 s. "
		     "On rank 2: The bottleneck is storage latency"));
	CHECK(strstr(v.evidence, "100 ms at best"));
	CHECK(strstr(v.advice, "more reads in flight"));
	/* all alike: none is the slow one */
	for (int i = 0; i < 4; i++)
		make(&rank[i], &fast);
	pen__verdict(&all, rank, 4, &v);
	CHECK(v.cause != PEN_CAUSE_RANK);
	/* nor when one is always a little later than others as slow as it */
	for (int i = 0; i < 4; i++) {
		make(&rank[i], &slow);
		if (i == 2)
			continue;
		rank[i].v[PEN_WAIT_S] = 3;
		rank[i].v[PEN_BARRIER_S] = 6;
	}
	all = rank[0];
	for (int i = 1; i < 4; i++)
		pen__facts_join(&all, &rank[i]);
	pen__verdict(&all, rank, 4, &v);
	CHECK_EQ(v.cause, PEN_CAUSE_LATENCY);
	CHECK_EQ(v.rank, -1);
}

/*
 * Whatever the figures are: storage is named only where bytes were waited for
 * and the device had to bring them, the CPU only where threads wanted one;
 * and there are always words.
 */
static void test_any(void)
{
	struct pen_rng g = pen__rng(1, 2);
	struct pen_verdict v;
	struct pen_facts f;

	for (int i = 0; i < 200000; i++) {
		const struct situation *s =
			&situations[pen__rng_below(&g, NSITUATIONS)];
		double cached;

		make(&f, s);
		for (int k = 0; k < 6; k++) {
			double *x = &f.v[pen__rng_below(&g, PEN_NFACTS)];
			const uint64_t how = pen__rng_below(&g, 4);

			*x = how == 0	? NAN
			     : how == 1 ? 0
			     : how == 2 ? *x * 10
					: (double)pen__rng_below(&g, 100);
		}
		f.fed = pen__rng_below(&g, 8) == 0;
		snprintf(f.store, sizeof(f.store), "%s",
			 situations[pen__rng_below(&g, NSITUATIONS)].store);
		pen__verdict(&f, NULL, 0, &v);
		cached = pen__facts_cached(&f);
		if (pen__cause_storage(v.cause)) {
			CHECK(!(cached >= 0.9) || v.cause == PEN_CAUSE_CACHE);
			CHECK(!strstr(v.evidence, "page cache"));
		}
		CHECK(!f.training || !f.fed || v.cause == PEN_CAUSE_NONE ||
		      !(f.v[PEN_SECONDS] > 0));
		CHECK(v.what[0] && strlen(v.evidence) < 1023);
		if (!CHECK(!strstr(v.evidence, "nan") &&
			   !strstr(v.evidence, "inf")))
			fprintf(stderr, "%s: %s\n", v.what, v.evidence);
	}
}

static void test_facts(void)
{
	struct pen_facts a, b;

	for (int i = 0; i < PEN_NFACTS; i++) {
		CHECK(pen__fact_name(i));
		for (int k = 0; k < i; k++)
			CHECK(strcmp(pen__fact_name(i), pen__fact_name(k)));
	}
	for (int i = 0; i < PEN_NCAUSES; i++)
		CHECK(pen__cause_name(i));
	pen__facts_init(&a);
	b = a;
	a.v[PEN_READ_S] = 5;
	b.v[PEN_READ_S] = 2;
	a.v[PEN_BEST_READ_S] = 3;
	b.v[PEN_BEST_READ_S] = 2;
	a.v[PEN_QUEUE_S] = 1; /* the other does not know */
	pen__facts_since(&a, &b);
	CHECK(a.v[PEN_READ_S] == 3 && a.v[PEN_BEST_READ_S] == 3);
	CHECK(isnan(a.v[PEN_QUEUE_S]) && isnan(a.v[PEN_COPY_S]));
	pen__facts_join(&a, &b);
	CHECK(a.v[PEN_READ_S] == 5 && a.v[PEN_BEST_READ_S] == 2);
	CHECK(isnan(a.v[PEN_QUEUE_S]));
	CHECK(isnan(pen__facts_cached(&a)));
}

int main(void)
{
	test_facts();
	for (size_t i = 0; i < NSITUATIONS; i++)
		test_situation(&situations[i]);
	test_slow_rank();
	test_any();
	return test_end();
}
