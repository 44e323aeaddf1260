/*
 * Which launcher started this process, and with how many ranks. Launchers set
 * environment variables, so this does not touch MPI: the command must know
 * before it loads MPI.
 *
 * The innermost launcher counts: mpirun inside a Slurm job sets its variables
 * in addition to Slurm's. A command started directly in a batch script has
 * SLURM_NTASKS, but is not a step and runs alone.
 */
#include "comm/launch.h"

#include <limits.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/opt.h"

/* Reads a number from a variable; *v is unchanged if it is not set. */
static int number_of(const char *name, int min, int *v, struct pen_err *err)
{
	const char *s = getenv(name);
	uint64_t n;

	if (!s)
		return 0;
	if (pen__parse_count(s, &n) || n > INT_MAX || (int)n < min)
		return pen__fail(err, P_LAUNCH, name,
				 "'%.40s' is not a valid rank or number of "
				 "ranks; unset the variable to run alone",
				 s);
	*v = (int)n;
	return 0;
}

/*
 * PMI is MPICH's, but srun has it for every library. MPICH's own launcher, also
 * one that starts its processes through srun, sets the second variable.
 */
static const char *mpi_of_pmi(void)
{
	return getenv("SLURM_STEP_ID") && !getenv("MPI_LOCALNRANKS") ? NULL
								     : "mpich";
}

static int read_ranks(struct pen_launch *l, const char *by, const char *rank,
		      const char *size, struct pen_err *err)
{
	int rc;

	l->by = by;
	rc = number_of(rank, 0, &l->rank, err);
	if (!rc && size)
		rc = number_of(size, 1, &l->size, err);
	return rc;
}

/* True for srun's own ranks: PMIx of another launcher inside a step is not
 * Slurm's. */
static bool in_step(void)
{
	const char *space = getenv("PMIX_NAMESPACE");

	if (!getenv("SLURM_STEP_ID") || !getenv("SLURM_PROCID"))
		return false;
	return !getenv("PMIX_RANK") || !space || !strncmp(space, "slurm.", 6);
}

int pen__comm_launch(struct pen_launch *l, struct pen_err *err)
{
	*l = (struct pen_launch){ .size = 1, .rank = -1 };
	if (getenv("OMPI_COMM_WORLD_SIZE")) {
		l->mpi = "openmpi";
		return read_ranks(l, "mpirun", "OMPI_COMM_WORLD_RANK",
				  "OMPI_COMM_WORLD_SIZE", err);
	}
	if (getenv("PMI_RANK") && getenv("PMI_SIZE")) {
		l->mpi = mpi_of_pmi();
		return read_ranks(l, "mpiexec", "PMI_RANK", "PMI_SIZE", err);
	}
	if (in_step())
		return read_ranks(l, "srun", "SLURM_PROCID",
				  getenv("SLURM_STEP_NUM_TASKS")
					  ? "SLURM_STEP_NUM_TASKS"
					  : "SLURM_NTASKS",
				  err);
	/* one of an unknown number of ranks */
	l->size = 0;
	if (getenv("PMIX_RANK"))
		return read_ranks(l, "PMIx", "PMIX_RANK", NULL, err);
	if (getenv("PMI_RANK"))
		return read_ranks(l, "PMI", "PMI_RANK", NULL, err);
	l->size = 1;
	return 0;
}

void pen__comm_leave(void)
{
	static const char *const names[] = {
		"OMPI_COMM_WORLD_RANK",
		"OMPI_COMM_WORLD_SIZE",
		"PMI_RANK",
		"PMI_SIZE",
		"PMIX_RANK",
		"SLURM_STEP_ID",
		"SLURM_PROCID",
	};

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		unsetenv(names[i]);
}
