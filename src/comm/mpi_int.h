/* Shared by the files of the MPI module. */
#ifndef PEN_COMM_MPI_INT_H
#define PEN_COMM_MPI_INT_H

#include <mpi.h>

#include "comm/module.h"

/* Collective over the ranks of the communicator. */
int pen__mpi_channel(MPI_Comm ranks, const struct pen_comm_host *,
		     struct pen_channel **out, struct pen_err *err);
/*
 * Collective: the lowest rank without memory, -1: none (0 if MPI fails); and
 * the error that all ranks report.
 */
int pen__mpi_lacking(MPI_Comm ranks, bool found);
int pen__mpi_nomem(MPI_Comm ranks, int lacking, size_t bytes,
		   struct pen_err *err);
/* Collective: time of a one-sided get of 1 KB by rank 0 from `to`. */
int pen__mpi_window(MPI_Comm ranks, int to, double *us, struct pen_err *err);

#endif
