/* How this process was started, as the launchers' variables tell. */
#ifndef PEN_COMM_LAUNCH_H
#define PEN_COMM_LAUNCH_H

#include "base/err.h"

struct pen_launch {
	const char *by; /* "mpirun", "mpiexec", "srun", "PMIx"; NULL: alone */
	int size;	/* ranks; 0: by somebody who does not say */
	int rank;	/* -1: not told */
};

/* PEN_EINVAL when a variable holds no such number. */
int pen__comm_launch(struct pen_launch *out, struct pen_err *err);
/* From now on this process, and what it starts, is alone. */
void pen__comm_leave(void);

#endif
