/* The simulation against formulas, against slow and plain programs of the
 * same, and against input that cannot be. */
#include <math.h>

#include "base/mem.h"
#include "base/rng.h"
#include "simulate/share.h"
#include "simulate/simulate.h"
#include "test.h"

static bool near(double a, double b)
{
	const bool ok = fabs(a - b) <= 1e-9 * fmax(fabs(a), fabs(b)) + 1e-12;

	if (!ok)
		fprintf(stderr, "%.12g is not %.12g\n", a, b);
	return ok;
}

/* One rank for which nothing costs anything. */
static struct pen_sim plain(void)
{
	return (struct pen_sim){ .nodes = 1,
				 .ranks = 1,
				 .batch = 8,
				 .steps = 50,
				 .epochs = 1,
				 .sample_bytes = 1e6,
				 .compute = 0.1,
				 .barrier = true,
				 .threads = 4,
				 .ahead = 4,
				 .depth = 1,
				 .spread = 1,
				 .cores = 4,
				 .reads = 1,
				 .fan = 8,
				 .seed = 1 };
}

static struct pen_sim_result run(const struct pen_sim *m)
{
	struct pen_sim_result r;
	struct pen_err err = { 0 };

	CHECK_EQ(pen__simulate(m, &r, &err), 0);
	return r;
}

/* --- formulas --- */

static void test_compute_bound(void)
{
	struct pen_sim m = plain();
	struct pen_sim_result r = run(&m);

	CHECK(near(r.seconds, 50 * 0.1));
	CHECK(near(r.first.utilisation, 1));
	CHECK_EQ(pen__sim_limit(&r.first), PEN_SIM_BY_COMPUTE);

	m.cpu_load = 0.02; /* 8 samples on 4 threads: 40 ms */
	r = run(&m);
	CHECK(near(r.first_batch, 0.04));
	CHECK(near(r.seconds, 0.04 + 50 * 0.1));
	CHECK(near(r.first.utilisation, 5 / 5.04));
	CHECK(near(r.first.data, 0.04 / 5.04));
	m.skip = 1; /* the rest is all computing */
	CHECK(near(run(&m).first.utilisation, 1));
	m.skip = 0;
	m.sync = 0.01;
	r = run(&m);
	CHECK(near(r.seconds, 0.04 + 50 * 0.11));
	CHECK(near(r.first.sync, 0.5 / r.seconds));
}

static void test_storage_bound(void)
{
	struct pen_sim m = plain();
	struct pen_sim_result r;

	m.storage_rate = 40e6; /* a batch of 8 MB takes 0.2 s */
	r = run(&m);
	CHECK(near(r.seconds, 50 * 0.2 + 0.1));
	CHECK(near(r.first.storage_bytes, 400e6));
	CHECK(near(r.first.busy[PEN_SIM_STORAGE], 10 / 10.1));
	CHECK_EQ(pen__sim_limit(&r.first), PEN_SIM_STORAGE);
	CHECK_STR(pen__sim_limit_name(pen__sim_limit(&r.first)), "storage");
	m.ranks = 2; /* of one disk */
	CHECK(near(run(&m).seconds, 2 * 50 * 0.2 + 0.1));
	m.nodes = 3;
	CHECK(near(run(&m).seconds, 6 * 50 * 0.2 + 0.1));
	m.barrier = false; /* all get the same share, so nothing changes */
	CHECK(near(run(&m).seconds, 6 * 50 * 0.2 + 0.1));
	m.barrier = true;
	m.storage_rate = 1e12;
	m.client_rate = 40e6; /* two ranks share a node's */
	r = run(&m);
	CHECK(near(r.seconds, 2 * 50 * 0.2 + 0.1));
	CHECK_EQ(pen__sim_limit(&r.first), PEN_SIM_CLIENT);
}

static void test_pipeline(void)
{
	struct pen_sim m = plain();

	/* two requests a thread, one after the other, and then 0.2 s */
	m.storage_latency = 0.05;
	m.storage_rate = 40e6;
	CHECK(near(run(&m).seconds, 50 * (0.1 + 0.2) + 0.1));
	m.reads = 1.5;
	CHECK(near(run(&m).seconds, 50 * (0.15 + 0.2) + 0.1));
	m.reads = 1;
	/* one batch is unpacked while the next is fetched, ... */
	m.storage_latency = 0;
	m.cpu_load = 0.05; /* 0.1 s */
	CHECK(near(run(&m).seconds, 50 * 0.2 + 0.1 + 0.1));
	/* ... but not when there is room for one only: it is taken away at
	 * once, and the next is fetched while the accelerator computes */
	m.ahead = 1;
	CHECK(near(run(&m).seconds, 50 * (0.2 + 0.1) + 0.1));
	m.compute = 1;
	CHECK(near(run(&m).seconds, 0.3 + 50 * 1));
}

/* A thread that waits for a read does not unpack. */
static void test_threads(void)
{
	struct pen_sim m = plain();
	struct pen_sim_result r;

	m.storage_latency = m.cpu_load = 0.05; /* 0.8 s of 4 threads a batch */
	r = run(&m);
	CHECK(near(r.seconds, 50 * 0.2 + 0.1));
	CHECK(near(r.first.busy[PEN_SIM_THREADS], 10 / 10.1));
	CHECK_EQ(pen__sim_limit(&r.first), PEN_SIM_THREADS);
	/* one thread does nothing at the same time as anything else */
	m.threads = 1;
	m.storage_rate = 40e6;
	CHECK(near(run(&m).seconds, 50 * (0.4 + 0.2 + 0.4) + 0.1));
	/* three samples keep three of four threads busy: two batches */
	m = plain();
	m.batch = 3;
	m.compute = 0.01;
	m.storage_latency = 0.04;
	m.ahead = 8;
	r = run(&m);
	CHECK(r.seconds >= 50 * 0.03 && r.seconds < 50 * 0.03 * 1.1);
	/* a batch of one sample is one thread's, and four are under way */
	m.batch = 1;
	m.cpu_load = 0.06;
	m.steps = 100;
	CHECK(near(run(&m).seconds, 100 * 0.1 / 4 + 4 * 0.01));
	/* with reads in flight latency is hidden, once there are enough */
	m = plain();
	m.storage_latency = 0.05;
	m.cpu_load = 0.05;
	m.storage_rate = 40e6;
	m.depth = 8;
	CHECK(near(run(&m).seconds, 50 * (0.05 + 0.2) + 0.1 + 0.1));
	m.threads = m.depth = 2; /* 4 at a time; and 0.2 s of CPU */
	CHECK(near(run(&m).seconds, 50 * (0.1 + 0.2) + 0.2 + 0.1));
}

/* What is on the way of everything a node does. */
static void test_node(void)
{
	struct pen_sim m = plain();
	struct pen_sim_result r;

	m.copy_rate = 40e6;
	m.ranks = 2;
	r = run(&m);
	CHECK(near(r.seconds, 2 * 50 * 0.2 + 0.1));
	CHECK_EQ(pen__sim_limit(&r.first), PEN_SIM_MEMORY);
	/* the storage is behind the network card */
	m = plain();
	m.by_net = true;
	m.net_rate = 40e6;
	r = run(&m);
	CHECK(near(r.seconds, 50 * 0.2 + 0.1));
	CHECK_EQ(pen__sim_limit(&r.first), PEN_SIM_IN);
	/* and what others put comes the same way: 8 MB and 4 */
	m.nodes = 2;
	m.cache = PEN_SIM_DDICT;
	r = run(&m);
	CHECK(r.seconds >= 50 * 0.3 && r.seconds < 50 * 0.3 * 1.05);
}

static void test_cpu_bound(void)
{
	struct pen_sim m = plain();
	struct pen_sim_result r;

	m.cpu_load = 0.1; /* 0.8 s of CPU a batch, on 4 threads */
	CHECK(near(run(&m).seconds, 50 * 0.2 + 0.1));
	m.cores = 2;
	CHECK(near(run(&m).seconds, 50 * 0.4 + 0.1));
	m.ranks = 4;
	r = run(&m);
	CHECK(near(r.seconds, 4 * 50 * 0.4 + 0.1));
	CHECK_EQ(pen__sim_limit(&r.first), PEN_SIM_CPU);
}

static void test_cache(void)
{
	struct pen_sim m = plain();
	struct pen_sim_result r;

	m.nodes = 2;
	m.epochs = 3;
	m.compute = 0.001;
	m.cache = PEN_SIM_DDICT;
	m.net_rate = 10e6;
	m.storage_rate = 1e9;
	r = run(&m);
	/* half of a batch is on the other node: 4 MB at 10 MB/s */
	CHECK(near(r.hit, 1));
	CHECK(near(r.later.net_bytes, 2 * 50 * 4e6));
	CHECK(near(r.later.memory_bytes, 2 * 50 * 4e6));
	CHECK(near(r.later.storage_bytes, 0));
	CHECK(fabs(r.later.seconds - 50 * 0.4) < 0.05 * 20);
	CHECK_EQ(r.first.samples, 2 * 50 * 8);
	CHECK_EQ(r.later.samples, 2 * 50 * 8);
	/* room for half of the data, 800 MB, on both */
	m.cache_bytes = 200e6;
	r = run(&m);
	CHECK(near(r.hit, 0.5));
	CHECK(near(r.later.storage_bytes, 400e6));
	CHECK(near(r.later.net_bytes, 200e6));
	/* each for itself: a quarter */
	m.cache = PEN_SIM_LOCAL;
	r = run(&m);
	CHECK(near(r.hit, 0.25));
	CHECK(near(r.later.storage_bytes, 600e6));
	CHECK(near(r.later.net_bytes, 0));
	m.cache = PEN_SIM_NONE;
	r = run(&m);
	CHECK(near(r.later.storage_bytes, 800e6));
	CHECK(near(r.hit, 0));
}

/* Ranks answer one another with one thread each. */
static void test_serving(void)
{
	struct pen_sim m = plain();
	struct pen_sim_result r;

	m.nodes = 2;
	m.epochs = 2;
	m.cache = PEN_SIM_DDICT;
	m.cpu_serve = 0.1; /* of 4 of 8 samples: 0.4 s a batch */
	m.cores = 64;
	r = run(&m);
	CHECK(fabs(r.later.seconds - 50 * 0.4) < 0.05 * 20);
	CHECK_EQ(pen__sim_limit(&r.later), PEN_SIM_SERVE);
	/* a thread sends 10 MB/s, and the card does 5 */
	m.net_rate = 5e6;
	r = run(&m);
	CHECK(fabs(r.later.seconds - 50 * 0.8) < 0.05 * 40);
	CHECK(r.later.busy[PEN_SIM_OUT] > 0.9);
	m.net_rate = 0;
	/* one core for asking and answering */
	m.cores = 1;
	m.cpu_ask = 0.1;
	r = run(&m);
	CHECK(fabs(r.later.seconds - 50 * 0.8) < 0.05 * 40);
	CHECK_EQ(pen__sim_limit(&r.later), PEN_SIM_CPU);
	/* each owner has one thread: the busiest of eight decides, and not
	 * their mean, which would be 7 requests of 0.1 s in a step */
	m = plain();
	m.nodes = 9;
	m.ranks = 8;
	m.batch = 7;
	m.epochs = 2;
	m.cores = 1000;
	m.ahead = 1;
	m.cache = PEN_SIM_DDICT;
	m.cpu_serve = 0.1;
	r = run(&m);
	CHECK(r.later.seconds > 50 * 0.7 * 8 / 9 * 1.3);
}

/* --- oracles --- */

/* As the model draws: the two must agree on what is drawn, not on how it is
 * added up. */
static double drawn(uint64_t key, uint64_t i)
{
	const double u = (double)(pen__rng_at(key, 2 * i) >> 11) * 0x1p-53;
	const double v = (double)(pen__rng_at(key, 2 * i + 1) >> 11) * 0x1p-53;

	return sqrt(-2 * log(1 - u)) * cos(2 * M_PI * v);
}

/* Ranks with loaders of their own, in step: a recurrence. */
static double in_step(const struct pen_sim *m)
{
	const double sigma = log(m->spread) / 2.3263478740408408;
	const uint64_t world = m->nodes * m->ranks, n = m->steps * m->epochs;
	double *took = calloc(world * n, sizeof(*took));
	double *loaded = calloc(world, sizeof(*loaded)), end = 0;

	for (uint64_t s = 0; s < n; s++) {
		double last = 0;

		for (uint64_t r = 0; r < world; r++) {
			const uint64_t key = pen__rng_key(m->seed, r);
			const double factor =
				exp(sigma * drawn(key, s) - sigma * sigma / 2);
			const double room =
				s < m->ahead ? 0 : took[r * n + s - m->ahead];
			double from, t;

			loaded[r] = fmax(loaded[r], room) +
				    factor * m->cpu_load * (double)m->batch /
					    (double)m->threads;
			from = fmax(loaded[r], end);
			took[r * n + s] = from;
			t = fmax(0,
				 m->compute + m->compute_stdev *
						      drawn(key ^ 0x5555, s));
			last = fmax(last, from + t);
		}
		end = last + m->sync;
	}
	free(took);
	free(loaded);
	return end;
}

static void test_stragglers(void)
{
	struct pen_sim m = plain();

	m.epochs = 2;
	m.nodes = 3;
	m.ranks = 5;
	m.cores = 5 * 4;
	m.sync = 0.003;
	for (uint64_t i = 0; i < 60; i++) {
		struct pen_sim_result r;

		m.seed = i;
		m.compute_stdev = i % 3 ? 0.03 : 0;
		m.spread = i % 4 ? 1 + (double)(i % 7) : 1;
		m.ahead = 1 + i % 5;
		m.cpu_load = 0.01 * (double)(i % 9);
		r = run(&m);
		CHECK(near(r.seconds, in_step(&m)));
		CHECK(near(r.first.utilisation + r.first.data +
				   r.first.waiting + r.first.sync,
			   1));
		CHECK(near(r.first.seconds + r.later.seconds, r.seconds));
	}
}

/* Even sharing, second by second: whoever has least left goes next. */
static void share_oracle(const double *come, const double *want, int n,
			 double rate, double most, double *gone)
{
	double left[64], now = 0;
	int in = 0, done = 0;

	memcpy(left, want, (size_t)n * sizeof(*left));
	while (done < n) {
		double users = 0, least = INFINITY, speed, dt;
		int who = -1;

		for (int i = 0; i < in; i++) {
			users += left[i] > 0;
			if (left[i] > 0 && left[i] < least) {
				least = left[i];
				who = i;
			}
		}
		speed = users > 0 ? fmin(most, rate / users) : 1;
		dt = who < 0 ? INFINITY : least / speed;
		if (in < n && come[in] - now <= dt)
			dt = come[in] - now;
		for (int i = 0; i < in; i++)
			if (left[i] > 0)
				left[i] -= dt * speed;
		now += dt;
		for (int i = 0; i < in; i++)
			if (left[i] != -1 && left[i] < 1e-12) {
				gone[i] = now;
				left[i] = -1;
				done++;
			}
		if (in < n && come[in] <= now + 1e-15)
			in++;
	}
}

static void check_share(uint64_t seed)
{
	struct pen_rng g = pen__rng(seed, 0);
	struct pen_shares s;
	double come[64], want[64], gone[64], at[64];
	const int n = 1 + (int)pen__rng_below(&g, 40);
	int next = 0;
	double t = 0, all = 0;

	for (int i = 0; i < n; i++) {
		t += pen__rng_double(&g);
		come[i] = t;
		want[i] = 0.01 + 5 * pen__rng_double(&g);
		all += want[i];
	}
	CHECK_EQ(pen__shares_init(&s, 2), 0);
	s.v[0].rate = 2;
	s.v[0].most = seed % 2 ? 0.7 : INFINITY;
	s.v[1].most = 1;
	share_oracle(come, want, n, 2, s.v[0].most, gone);
	/* the other share is time: it tells when the next one comes */
	CHECK_EQ(pen__share_use(&s, 1, come[0], 1000), 0);
	for (uint32_t who; (who = pen__shares_next(&s)) != UINT32_MAX;) {
		if (who != 1000) {
			at[who] = s.now;
			continue;
		}
		CHECK_EQ(pen__share_use(&s, 0, want[next], (uint32_t)next), 0);
		if (++next < n)
			CHECK_EQ(
				pen__share_use(&s, 1, come[next] - s.now, 1000),
				0);
	}
	for (int i = 0; i < n; i++)
		CHECK(fabs(at[i] - gone[i]) < 1e-9 * (1 + gone[i]));
	CHECK(near(pen__share_work(&s, 0), all));
	pen__shares_fini(&s);
}

/* Who comes at random to something that is shared evenly stays for
 * amount / (rate - load), however amounts are spread (M/G/1, shared); where one
 * goes after another (M/D/1), half of that and of what it takes alone. */
static void check_random(bool spread, bool in_order, double load)
{
	const int n = 150000;
	struct pen_rng g = pen__rng(7, spread);
	struct pen_shares s;
	double *came = calloc((size_t)n, sizeof(*came)), sum = 0, want;
	int next = 0;

	CHECK_EQ(pen__shares_init(&s, 3), 0);
	s.v[1].rate = 2;
	s.v[1].in_order = in_order;
	CHECK_EQ(pen__share_wait(&s, 1, UINT32_MAX - 1), 0);
	for (uint32_t who; (who = pen__shares_next(&s)) != UINT32_MAX;) {
		if (who < (uint32_t)n) {
			sum += s.now - came[who];
			continue;
		}
		want = 1;
		if (spread)
			want = -log(1 - pen__rng_double(&g)) + 1e-9;
		came[next] = s.now;
		CHECK_EQ(pen__share_use(&s, 1, want, (uint32_t)next), 0);
		if (++next < n)
			CHECK_EQ(pen__share_wait(&s,
						 -log(1 - pen__rng_double(&g)) /
							 load,
						 UINT32_MAX - 1),
				 0);
	}
	want = 1 / (2 - load);
	if (in_order)
		want = want / 2 + 0.25;
	CHECK(fabs(sum / n / want - 1) < 0.04);
	pen__shares_fini(&s);
	free(came);
}

/* --- what always holds --- */

static void vary(struct pen_sim *m, uint64_t seed)
{
	struct pen_rng g = pen__rng(seed, 7);

	*m = plain();
	m->seed = seed;
	m->nodes = 1 + pen__rng_below(&g, 9);
	m->ranks = 1 + pen__rng_below(&g, 4);
	m->steps = 1 + pen__rng_below(&g, 12);
	m->epochs = 1 + pen__rng_below(&g, 3);
	m->batch = 1 + pen__rng_below(&g, 20);
	m->threads = 1 + pen__rng_below(&g, 6);
	m->ahead = 1 + pen__rng_below(&g, 90);
	m->cache = (int)pen__rng_below(&g, 3);
	m->cache_bytes = pen__rng_below(&g, 2) ? 0 : 20e6;
	m->barrier = pen__rng_below(&g, 2);
	m->compute_stdev = pen__rng_below(&g, 2) ? 0 : 0.2;
	m->spread = pen__rng_below(&g, 2) ? 1 : 5;
	m->storage_rate = pen__rng_below(&g, 2) ? 0 : 1e8;
	m->storage_latency = pen__rng_below(&g, 2) ? 0 : 0.01;
	m->net_rate = pen__rng_below(&g, 2) ? 0 : 1e8;
	m->net_latency = 1e-5;
	m->cpu_load = pen__rng_below(&g, 2) ? 0 : 0.01;
	m->cpu_ask = m->cpu_serve = pen__rng_below(&g, 2) ? 0 : 0.005;
}

/* Every sample once, all time accounted for, the same again. */
static void test_invariants(void)
{
	for (uint64_t i = 0; i < 300; i++) {
		struct pen_sim m;
		struct pen_sim_result r, again;
		uint64_t world;
		double bytes, min;

		vary(&m, i);
		world = m.nodes * m.ranks;
		r = run(&m);
		bytes = (double)(world * m.steps * m.batch) * m.sample_bytes;
		CHECK_EQ(r.batches, world * m.steps * m.epochs);
		CHECK_EQ(r.first.samples, world * m.steps * m.batch);
		CHECK(near(r.first.storage_bytes, bytes));
		if (m.epochs > 1) {
			CHECK_EQ(r.later.samples, r.first.samples);
			CHECK(near(r.later.storage_bytes + r.later.net_bytes +
					   r.later.memory_bytes,
				   bytes));
		}
		for (int p = 0; p < PEN_SIM_NPARTS; p++)
			CHECK(r.first.busy[p] < 1 + 1e-9 &&
			      r.later.busy[p] < 1 + 1e-9);
		CHECK(near(r.first.utilisation + r.first.data +
				   r.first.waiting + r.first.sync,
			   1));
		min = m.storage_rate > 0 ? bytes / m.storage_rate : 0;
		CHECK(r.seconds >= min * (1 - 1e-9));
		again = run(&m);
		CHECK(!memcmp(&r, &again, sizeof(r)));
		m.seed += 1000;
		again = run(&m);
		if (m.compute_stdev > 0)
			CHECK(again.seconds != r.seconds);
	}
}

/* --- what cannot be --- */

static void refused(const struct pen_sim *m, const char *where)
{
	struct pen_sim_result r;
	struct pen_err err = { 0 };

	CHECK_EQ(pen__simulate(m, &r, &err), PEN_EINVAL);
	CHECK_STR(err.where, where);
	CHECK(err.msg[0]);
}

static void test_hostile(void)
{
	const struct pen_sim ok = plain();
	struct pen_sim m;

	for (size_t i = 0; i < 8; i++) {
		static const char *const names[] = { "nodes",  "ranks",
						     "batch",  "steps",
						     "epochs", "threads",
						     "ahead",  "depth" };
		uint64_t *v[] = { &m.nodes,  &m.ranks,	 &m.batch, &m.steps,
				  &m.epochs, &m.threads, &m.ahead, &m.depth };

		m = ok;
		*v[i] = 0;
		refused(&m, names[i]);
		*v[i] = UINT64_MAX;
		refused(&m, names[i]);
	}
	for (size_t i = 0; i < 6; i++) {
		static const char *const names[] = {
			"sample_bytes", "compute", "cores",
			"cpu_load",	"storage", "network"
		};
		double *v[] = { &m.sample_bytes, &m.compute,	  &m.cores,
				&m.cpu_load,	 &m.storage_rate, &m.net_rate };
		static const double bad[] = { -1, NAN, INFINITY, 1e300 };

		for (size_t k = 0; k < 4; k++) {
			m = ok;
			*v[i] = bad[k];
			refused(&m, names[i]);
		}
	}
	m = ok;
	m.spread = 0.5;
	refused(&m, "spread");
	m = ok;
	m.cores = 0;
	refused(&m, "cores");
	m = ok;
	m.cache = 9;
	refused(&m, "cache");
	m = ok;
	m.nodes = m.ranks = 1 << 19;
	refused(&m, "nodes x ranks");
	m = ok;
	m.steps = 1ull << 39;
	refused(&m, "steps");
	m = ok;
	m.fan = 0;
	refused(&m, "fan");
	/* large, but it can be */
	m = ok;
	m.compute = 1e9;
	m.sample_bytes = 1e15;
	m.storage_rate = 1;
	m.steps = 2;
	CHECK(isfinite(run(&m).seconds));
	m = ok;
	m.compute = 0;
	m.steps = 3;
	CHECK(near(run(&m).seconds, 0));
	m.ahead = m.threads = 65536;
	m.batch = 1;
	CHECK_EQ(run(&m).batches, 3);
}

static int stop(void *arg, uint64_t batches)
{
	(void)batches;
	return ++*(int *)arg == 2;
}

static void test_stop(void)
{
	struct pen_sim m = plain();
	struct pen_sim_result r;
	struct pen_err err = { 0 };
	int n = 0;

	m.ranks = 1000;
	m.steps = 1000;
	m.tick = stop;
	m.arg = &n;
	CHECK_EQ(pen__simulate(&m, &r, &err), PEN_ECLOSED);
	CHECK_EQ(n, 2);
}

static void test_no_memory(void)
{
	struct pen_sim m;
	struct pen_err err = { 0 };
	struct pen_sim_result r;
	uint64_t n = 0;
	int rc;

	vary(&m, 5);
	m.storage_rate = m.net_rate = 1e8;
	m.cache = PEN_SIM_DDICT;
	m.cpu_load = 0.01;
	do {
		pen__mem_fail_nth(++n, false);
		rc = pen__simulate(&m, &r, &err);
		pen__mem_fail_nth(0, false);
		CHECK(!rc || rc == PEN_ENOMEM);
	} while (rc && n < 10000);
	CHECK(n > 5 && !rc);
}

int main(void)
{
	test_compute_bound();
	test_storage_bound();
	test_pipeline();
	test_threads();
	test_node();
	test_cpu_bound();
	test_cache();
	test_serving();
	test_stragglers();
	for (uint64_t i = 0; i < 300; i++)
		check_share(i);
	for (int i = 0; i < 6; i++)
		check_random(i % 3 == 1, i % 3 == 2, i < 3 ? 1.4 : 0.6);
	test_invariants();
	test_hostile();
	test_stop();
	test_no_memory();
	return test_end();
}
