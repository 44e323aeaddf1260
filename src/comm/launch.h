/* How this process was started, according to the launcher's variables. */
#ifndef PEN_COMM_LAUNCH_H
#define PEN_COMM_LAUNCH_H

#include "base/err.h"

struct pen_launch {
	const char *by; /* "mpirun", "mpiexec", "srun", "PMIx"; NULL: alone */
	int size;	/* number of ranks; 0: unknown */
	int rank;	/* -1: unknown */
	/* The launcher's MPI library, "openmpi" or "mpich"; NULL: any. */
	const char *mpi;
};

/* PEN_EINVAL: a variable is not a valid number. */
int pen__comm_launch(struct pen_launch *out, struct pen_err *err);
/* From now on, this process and its children run alone. */
void pen__comm_leave(void);

#endif
