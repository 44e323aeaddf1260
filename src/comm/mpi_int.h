/* What the files of the MPI module share. */
#ifndef PEN_COMM_MPI_INT_H
#define PEN_COMM_MPI_INT_H

#include <mpi.h>

#include "comm/module.h"

/* Collective; ranks is what it is made from, and named in errors. */
int pen__mpi_channel(MPI_Comm ranks, const struct pen_comm_host *,
		     struct pen_channel **out, struct pen_err *err);
/*
 * Collective: the lowest rank that found no memory, -1: all did; and what is
 * said of that. Where MPI fails it is rank 0.
 */
int pen__mpi_lacking(MPI_Comm ranks, bool found);
int pen__mpi_nomem(MPI_Comm ranks, int lacking, size_t bytes,
		   struct pen_err *err);
/* Collective: how long a one-sided get of 1 KB from another host takes. */
int pen__mpi_window(MPI_Comm ranks, int to, double *us, struct pen_err *err);

#endif
