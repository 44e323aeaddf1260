/*
 * A single process, the detection of launchers, and how ranks learn of one
 * another's failures: there, ranks are threads with the test's own transport.
 * e2e/mpi.sh tests MPI itself.
 */
#include "test.h"

#include <pthread.h>
#include <sched.h>

#include "base/mem.h"
#include "base/team.h"
#include "comm/host_barrier.h"
#include "comm/comm.h"
#include "comm/launch.h"

static const char *const variables[] = {
	"OMPI_COMM_WORLD_SIZE",
	"OMPI_COMM_WORLD_RANK",
	"PMI_RANK",
	"PMI_SIZE",
	"MPI_LOCALNRANKS",
	"PMIX_RANK",
	"PMIX_NAMESPACE",
	"SLURM_STEP_ID",
	"SLURM_PROCID",
	"SLURM_NTASKS",
	"SLURM_STEP_NUM_TASKS",
	"PENSTOCK_MODULES",
};

/* Only these are set: "NAME=value", up to four. */
static void environment(const char *const *set)
{
	char name[64];

	for (size_t i = 0; i < sizeof(variables) / sizeof(variables[0]); i++)
		unsetenv(variables[i]);
	for (int i = 0; i < 4 && set[i]; i++) {
		const char *eq = strchr(set[i], '=');

		snprintf(name, sizeof(name), "%.*s", (int)(eq - set[i]),
			 set[i]);
		setenv(name, eq + 1, 1);
	}
}

static void launches(void)
{
	static const struct {
		const char *set[4];
		const char *by; /* NULL: alone */
		int size, rank;
	} good[] = {
		{ { NULL }, NULL, 1, -1 },
		{ { "OMPI_COMM_WORLD_SIZE=4", "OMPI_COMM_WORLD_RANK=3" },
		  "mpirun",
		  4,
		  3 },
		{ { "OMPI_COMM_WORLD_SIZE=1" }, "mpirun", 1, -1 },
		{ { "PMI_RANK=1", "PMI_SIZE=2" }, "mpiexec", 2, 1 },
		{ { "PMI_RANK=1" }, "PMI", 0, 1 },
		{ { "PMIX_RANK=2" }, "PMIx", 0, 2 },
		/* a batch script, not a step of it */
		{ { "SLURM_NTASKS=8", "SLURM_PROCID=0" }, NULL, 1, -1 },
		{ { "SLURM_NTASKS=8", "SLURM_PROCID=5", "SLURM_STEP_ID=0" },
		  "srun",
		  8,
		  5 },
		{ { "SLURM_NTASKS=8", "SLURM_PROCID=0", "SLURM_STEP_ID=0",
		    "SLURM_STEP_NUM_TASKS=1" },
		  "srun",
		  1,
		  0 },
		/* mpirun inside a step of one task */
		{ { "OMPI_COMM_WORLD_SIZE=6", "SLURM_STEP_ID=0",
		    "SLURM_PROCID=0", "SLURM_STEP_NUM_TASKS=1" },
		  "mpirun",
		  6,
		  -1 },
		{ { "PMIX_RANK=3", "SLURM_STEP_ID=0", "SLURM_PROCID=3",
		    "SLURM_NTASKS=4" },
		  "srun",
		  4,
		  3 },
		{ { "PMIX_NAMESPACE=prterun-h-1@1", "PMIX_RANK=3",
		    "SLURM_STEP_ID=0", "SLURM_PROCID=0" },
		  "PMIx",
		  0,
		  3 },
	};
	static const char *const bad[][4] = {
		{ "OMPI_COMM_WORLD_SIZE=" },
		{ "OMPI_COMM_WORLD_SIZE=0" },
		{ "OMPI_COMM_WORLD_SIZE=-2" },
		{ "OMPI_COMM_WORLD_SIZE=four" },
		{ "OMPI_COMM_WORLD_SIZE=4294967297" },
		{ "PMI_RANK=x", "PMI_SIZE=2" },
		{ "SLURM_STEP_ID=0", "SLURM_PROCID=0", "SLURM_NTASKS=2(x3)" },
	};
	struct pen_launch l;
	struct pen_err e = { 0 };

	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		environment(good[i].set);
		CHECK_EQ(pen__comm_launch(&l, &e), 0);
		CHECK_STR(l.by ? l.by : "alone",
			  good[i].by ? good[i].by : "alone");
		CHECK_EQ(l.size, good[i].size);
		CHECK_EQ(l.rank, good[i].rank);
	}
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		environment(bad[i]);
		e.where[0] = '\0';
		CHECK_EQ(pen__comm_launch(&l, &e), PEN_EINVAL);
		CHECK(e.where[0]);
	}
}

/* Whose module is needed. */
static void mpi_of_launch(void)
{
	static const struct {
		const char *set[4];
		const char *mpi; /* NULL: any */
	} cases[] = {
		{ { "OMPI_COMM_WORLD_SIZE=2" }, "openmpi" },
		{ { "PMI_RANK=1", "PMI_SIZE=2" }, "mpich" },
		/* srun with PMI, and MPICH's launcher through srun */
		{ { "PMI_RANK=1", "PMI_SIZE=2", "SLURM_STEP_ID=0" }, NULL },
		{ { "PMI_RANK=1", "PMI_SIZE=2", "SLURM_STEP_ID=0",
		    "MPI_LOCALNRANKS=1" },
		  "mpich" },
		{ { "SLURM_NTASKS=8", "SLURM_PROCID=5", "SLURM_STEP_ID=0" },
		  NULL },
	};
	struct pen_launch l;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		environment(cases[i].set);
		CHECK_EQ(pen__comm_launch(&l, NULL), 0);
		CHECK_STR(l.mpi ? l.mpi : "any",
			  cases[i].mpi ? cases[i].mpi : "any");
	}
}

/* Several ranks but no module: the error names what to install. */
static void no_module(void)
{
	static const char *const many[][4] = {
		{ "OMPI_COMM_WORLD_SIZE=2", "PENSTOCK_MODULES=/nonexistent" },
		{ "PMI_RANK=0", "PMI_SIZE=2", "PENSTOCK_MODULES=/nonexistent" },
		{ "PMIX_RANK=0", "PENSTOCK_MODULES=/nonexistent" },
	};
	static const char *const package[] = { "install libopenmpi-dev and",
					       "install libmpich-dev and",
					       "libopenmpi-dev or libmpich" };
	static const char *const one[4] = { "OMPI_COMM_WORLD_SIZE=1",
					    "PENSTOCK_MODULES=/nonexistent" };
	struct pen_comm *c = NULL;
	struct pen_err e = { 0 };

	for (size_t i = 0; i < sizeof(many) / sizeof(many[0]); i++) {
		environment(many[i]);
		CHECK_EQ(pen__comm_open(&c, &e), PEN_ENOTSUP);
		CHECK(c == NULL);
		CHECK(strstr(e.msg, package[i]) != NULL);
		CHECK(strstr(e.msg, "PENSTOCK_MODULES") != NULL);
		CHECK_STR(e.where, "/nonexistent");
	}
	environment(one);
	CHECK_EQ(pen__comm_open(&c, &e), 0);
	CHECK(c && !strcmp(c->ops->name, "self"));
	pen__comm_close(c);
}

/* A file of that name that is not a module, or whose MPI is not installed. */
static void bad_module(void)
{
	char dir[] = "comm_XXXXXX", path[64];
	struct pen_comm *c = NULL;
	struct pen_err e = { 0 };
	FILE *f;

	if (!CHECK(mkdtemp(dir) != NULL))
		return;
	snprintf(path, sizeof(path), "%s/penstock-openmpi.so", dir);
	f = fopen(path, "w");
	if (CHECK(f != NULL)) {
		fputs("no shared object", f);
		fclose(f);
	}
	environment((const char *const[4]){ "OMPI_COMM_WORLD_SIZE=2" });
	setenv("PENSTOCK_MODULES", dir, 1);
	CHECK_EQ(pen__comm_open(&c, &e), PEN_ENOTSUP);
	CHECK(c == NULL);
	CHECK_STR(e.where, path);
	CHECK(strstr(e.msg, "libopenmpi3") != NULL);
	remove(path);
	remove(dir);
}

static void alone(void)
{
	static const char *const none[4] = { NULL };
	struct pen_err e = { 0 };
	struct pen_comm *c = NULL;
	double v[2] = { 3, -4 };
	char text[4] = "abc";
	size_t len[1] = { 0 };
	void *all = NULL;

	environment(none);
	pen__mem_fail_nth(1, false);
	CHECK_EQ(pen__comm_open(&c, &e), PEN_ENOMEM);
	CHECK(c == NULL);
	pen__mem_fail_nth(0, false);
	if (!CHECK_EQ(pen__comm_open(&c, &e), 0))
		return;
	CHECK_EQ(c->size, 1);
	CHECK_EQ(c->nnodes, 1);
	CHECK_EQ(c->local_size, 1);
	CHECK(!c->rank && !c->node && !c->local_rank);
	CHECK_EQ(pen__comm_barrier(c, &e), 0);
	CHECK_EQ(pen__comm_reduce(c, v, 2, PEN_SUM, &e), 0);
	CHECK(v[0] == 3 && v[1] == -4);
	CHECK_EQ(pen__comm_bcast(c, text, 4, 0, &e), 0);
	CHECK_EQ(pen__comm_gather(c, text, 4, &all, len, &e), 0);
	CHECK(all && len[0] == 4 && !memcmp(all, "abc", 4));
	pen__free(all);
	CHECK_EQ(pen__comm_gather(c, NULL, 0, &all, len, &e), 0);
	CHECK(all && len[0] == 0);
	pen__free(all);
	pen__mem_fail_nth(1, false);
	CHECK_EQ(pen__comm_gather(c, text, 4, &all, len, &e), PEN_ENOMEM);
	CHECK(all == NULL);
	pen__mem_fail_nth(0, false);
	CHECK_EQ(pen__comm_agree(c, 0, &e), 0);
	pen__fail(&e, P_DAMAGED, "thing", "is broken");
	CHECK_EQ(pen__comm_agree(c, PEN_EDATA, &e), PEN_EDATA);
	CHECK_STR(e.msg, "is broken");
	pen__comm_close(c);
	pen__comm_close(NULL);
}

/* Ranks that are threads: everything goes through one buffer and one
 * barrier. */
enum { N = 4 };
static struct {
	pthread_barrier_t barrier;
	double v[N][8];
	void *from;
	bool broken; /* the transport fails */
} hall;

static int hall_reduce(struct pen_comm *c, double *v, size_t n,
		       enum pen_reduce how, struct pen_err *err)
{
	if (hall.broken)
		return pen__fail(err, P_IO, "hall", "is broken");
	CHECK(how == PEN_MIN && n <= 8);
	memcpy(hall.v[c->rank], v, n * sizeof(*v));
	pthread_barrier_wait(&hall.barrier);
	for (int r = 0; r < N; r++)
		for (size_t i = 0; i < n; i++)
			if (hall.v[r][i] < v[i])
				v[i] = hall.v[r][i];
	pthread_barrier_wait(&hall.barrier);
	return 0;
}

static int hall_bcast(struct pen_comm *c, void *buf, size_t n, int root,
		      struct pen_err *err)
{
	(void)err;
	if (c->rank == root)
		hall.from = buf;
	pthread_barrier_wait(&hall.barrier);
	if (c->rank != root)
		memcpy(buf, hall.from, n);
	pthread_barrier_wait(&hall.barrier);
	return 0;
}

static void hall_close(struct pen_comm *c)
{
	c->size = 0;
}

static const struct pen_comm_ops hall_ops = { .name = "hall",
					      .close = hall_close,
					      .reduce = hall_reduce,
					      .bcast = hall_bcast };

static void fail_and_close(struct pen_comm *c)
{
	struct pen_err e = { 0 };
	const int rc = pen__fail(&e, P_DAMAGED, "thing", "is broken");

	CHECK_EQ(pen__comm_agree(c, rc, &e), PEN_EDATA);
	CHECK_STR(e.msg, "is broken");
}

/* Rank 2 fails while others continue, and they end in calls of all kinds. */
static void one_fails(struct pen_comm *c)
{
	struct pen_err e = { 0 };
	double v[1] = { 0 };
	size_t len[N];
	void *all = &e;
	int rc = 0;

	CHECK_EQ(pen__comm_agree(c, 0, &e), 0);
	if (c->rank == 2) {
		fail_and_close(c);
		return;
	}
	if (c->rank == 0)
		rc = pen__comm_reduce(c, v, 1, PEN_MIN, &e);
	else if (c->rank == 1)
		rc = pen__comm_gather(c, v, sizeof(v), &all, len, &e);
	else
		rc = pen__comm_barrier(c, &e);
	CHECK_EQ(rc, PEN_EDATA);
	CHECK_EQ(e.code, PEN_EDATA);
	CHECK_STR(e.where, "thing");
	CHECK_STR(e.msg, "rank 2 failed: is broken");
	/* reporting it again on the way out meets ranks that are already
	 * closing */
	if (c->rank == 3)
		CHECK_EQ(pen__comm_agree(c, rc, &e), PEN_EDATA);
}

/* Rank 1 closes without a message. */
static void one_leaves(struct pen_comm *c)
{
	struct pen_err e = { 0 };

	CHECK_EQ(pen__comm_barrier(c, &e), 0);
	if (c->rank == 1)
		return;
	for (int i = 0; i < 3; i++) {
		CHECK_EQ(pen__comm_barrier(c, &e), PEN_ECLOSED);
		CHECK(strstr(e.msg, "rank 1 closed") != NULL);
	}
}

/* Calls that do not match. */
static void mixed(struct pen_comm *c)
{
	struct pen_err e = { 0 };
	double v = 0;

	if (c->rank == 3)
		CHECK_EQ(pen__comm_bcast(c, &v, sizeof(v), 0, &e), PEN_EINVAL);
	else
		CHECK_EQ(pen__comm_barrier(c, &e), PEN_EINVAL);
	CHECK(e.msg[0]);
	CHECK_EQ(pen__comm_bcast(c, &v, sizeof(v), 0, &e), 0);
}

/* The lowest of several failed ranks; the others get its error instead of their
 * own. */
static void many_fail(struct pen_comm *c)
{
	struct pen_err e = { 0 };
	int rc = 0;

	if (c->rank)
		rc = pen__fail(&e, -c->rank, "thing", "%d", c->rank);
	CHECK_EQ(pen__comm_agree(c, rc, &e), -1);
	CHECK_STR(e.msg, c->rank == 1 ? "1" : "rank 1 failed: 1");
	/* a rank may pass on the error: it still names the original rank */
	CHECK_EQ(pen__comm_agree(c, c->rank == 1 ? 0 : -7, &e), -7);
	CHECK_STR(e.msg, "rank 1 failed: 1");
	if (c->rank == 1)
		pen__fail(&e, -7, "thing", "1");
	CHECK_EQ(pen__comm_agree(c, -7, &e), -7);
	CHECK_STR(e.msg, c->rank == 1 ? "1" : "rank 1 failed: 1");
	CHECK_EQ(pen__comm_agree(c, c->rank == 3 ? PEN_EIO : 0, NULL), PEN_EIO);
}

/* Rank 1 wants to end together, and the others do not know yet. */
static void one_parts(struct pen_comm *c)
{
	struct pen_err e = { 0 };
	int rc;

	CHECK_EQ(pen__comm_barrier(c, &e), 0);
	if (c->rank != 1) {
		CHECK_EQ(pen__comm_barrier(c, &e), PEN_ECLOSED);
		CHECK(strstr(e.msg, "rank 1 closed") != NULL);
	}
	if (c->rank == 3) {
		rc = pen__fail(&e, P_DAMAGED, "thing", "is broken");
		CHECK_EQ(pen__comm_agree(c, rc, &e), PEN_EDATA);
	}
	pen__comm_part(c);
	CHECK_EQ(pen__comm_barrier(c, &e), 0);
}

/* Nor does it wait for a rank that closes immediately. */
static void one_closes(struct pen_comm *c)
{
	if (c->rank != 2)
		pen__comm_part(c);
}

/* A rank that fails without a transport keeps its own error. */
static void no_transport(struct pen_comm *c)
{
	struct pen_err e = { 0 };

	CHECK_EQ(pen__comm_barrier(c, &e), PEN_EIO);
	CHECK_STR(e.where, "hall");
	fail_and_close(c);
}

static void (*scene)(struct pen_comm *);

static void act(void *arg, unsigned i)
{
	struct pen_comm c = { .ops = &hall_ops, .rank = (int)i, .size = N };

	(void)arg;
	scene(&c);
	pen__comm_close(&c);
	CHECK_EQ(c.size, 0);
}

static void ranks(void)
{
	static void (*const scenes[])(struct pen_comm *) = {
		one_fails, one_leaves, mixed,	    many_fail,
		one_parts, one_closes, no_transport
	};
	struct pen_team *team;
	struct pen_err e = { 0 };

	pthread_barrier_init(&hall.barrier, NULL, N);
	for (size_t i = 0; i < sizeof(scenes) / sizeof(scenes[0]); i++) {
		scene = scenes[i];
		hall.broken = scene == no_transport;
		if (CHECK_EQ(pen__team_start(&team, N, "rank", act, NULL, &e),
			     0))
			pen__team_join(team);
	}
	pthread_barrier_destroy(&hall.barrier);
}

/* No rank passes the barrier before all have arrived. */
static struct pen_host_barrier host;
static atomic_uint come;

static void ring(void *arg, unsigned i)
{
	unsigned early = 0;

	(void)arg;
	for (uint64_t call = 1; call <= 500; call++) {
		atomic_fetch_add(&come, 1);
		pen__host_barrier_arrive(&host, call, N);
		/* some poll, some sleep */
		while (!((call + i) % 3
				 ? pen__host_barrier_wait(&host, call)
				 : pen__host_barrier_passed(&host, call)))
			sched_yield();
		early += atomic_load(&come) < call * N;
	}
	CHECK_EQ(early, 0);
}

static void hosts(void)
{
	struct pen_team *team;
	struct pen_err e = { 0 };

	if (CHECK_EQ(pen__team_start(&team, N, "rank", ring, NULL, &e), 0))
		pen__team_join(team);
	CHECK_EQ(atomic_load(&come), 500 * N);
	CHECK_EQ(atomic_load(&host.asleep), 0);
}

int main(void)
{
	launches();
	mpi_of_launch();
	no_module();
	bad_module();
	alone();
	ranks();
	hosts();
	return test_end();
}
