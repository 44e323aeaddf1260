/*
 * Who started us, and with how many others. Launchers tell their processes
 * through the environment, and nothing of MPI is touched to find out: the
 * command has to know before it loads MPI at all.
 *
 * The innermost launcher is believed: mpirun inside a Slurm job sets its own
 * variables over Slurm's. A batch script that runs the command by itself has
 * SLURM_NTASKS but is no step, and is alone.
 */
#include "comm/launch.h"

#include <limits.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/opt.h"

/* The number in a variable; *v stays as it is when the variable is not set. */
static int number_of(const char *name, int min, int *v, struct pen_err *err)
{
	const char *s = getenv(name);
	uint64_t n;

	if (!s)
		return 0;
	if (pen__parse_count(s, &n) || n > INT_MAX || (int)n < min)
		return pen__fail(err, PEN_EINVAL, name,
				 "'%.40s' is no number of ranks; unset it to "
				 "run alone",
				 s);
	*v = (int)n;
	return 0;
}

static int told_by(struct pen_launch *l, const char *by, const char *rank,
		   const char *size, struct pen_err *err)
{
	int rc;

	l->by = by;
	rc = number_of(rank, 0, &l->rank, err);
	if (!rc && size)
		rc = number_of(size, 1, &l->size, err);
	return rc;
}

/* srun's own ranks: PMIx of another launcher inside a step is not Slurm's. */
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
	if (getenv("OMPI_COMM_WORLD_SIZE"))
		return told_by(l, "mpirun", "OMPI_COMM_WORLD_RANK",
			       "OMPI_COMM_WORLD_SIZE", err);
	if (getenv("PMI_RANK") && getenv("PMI_SIZE"))
		return told_by(l, "mpiexec", "PMI_RANK", "PMI_SIZE", err);
	if (in_step())
		return told_by(l, "srun", "SLURM_PROCID",
			       getenv("SLURM_STEP_NUM_TASKS")
				       ? "SLURM_STEP_NUM_TASKS"
				       : "SLURM_NTASKS",
			       err);
	/* one of some number of ranks */
	l->size = 0;
	if (getenv("PMIX_RANK"))
		return told_by(l, "PMIx", "PMIX_RANK", NULL, err);
	if (getenv("PMI_RANK"))
		return told_by(l, "PMI", "PMI_RANK", NULL, err);
	l->size = 1;
	return 0;
}

void pen__comm_leave(void)
{
	static const char *const told[] = {
		"OMPI_COMM_WORLD_RANK",
		"OMPI_COMM_WORLD_SIZE",
		"PMI_RANK",
		"PMI_SIZE",
		"PMIX_RANK",
		"SLURM_STEP_ID",
		"SLURM_PROCID",
	};

	for (size_t i = 0; i < sizeof(told) / sizeof(*told); i++)
		unsetenv(told[i]);
}
