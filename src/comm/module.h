/*
 * Interface to a module that connects ranks: a shared object that is loaded
 * only when needed, so that the command does not depend on MPI. A module uses
 * nothing of the program except what open() receives; memory it returns comes
 * from the program's allocator.
 */
#ifndef PEN_COMM_MODULE_H
#define PEN_COMM_MODULE_H

#include "comm/comm.h"
#include "comm/ucx.h"

/* Increment when anything here, in comm.h or in struct pen_err changes. */
#define PEN_COMM_VERSION 4

struct pen_comm_host {
	void *(*alloc)(size_t n, size_t size);
	void (*free)(void *p);
};

struct pen_comm_module {
	unsigned version; /* PEN_COMM_VERSION it was built with */
	int (*open)(const struct pen_comm_host *, struct pen_comm **out,
		    struct pen_err *err);
};

/* The one symbol a module exports. */
#define PEN_COMM_SYMBOL "pen_comm_module"

/*
 * Finds and loads the module of an MPI library, penstock-openmpi.so or
 * penstock-mpich.so; it stays loaded. A process can have only one MPI library:
 * if it has loaded one already (mpi4py), that one is used; otherwise `mpi`, or
 * with NULL the first that is installed. PENSTOCK_MODULES sets the only
 * directory to search; otherwise the directories next to the executable and of
 * the installation are searched. PEN_ENOTFOUND: no file.
 */
int pen__comm_load(const char *mpi, const struct pen_comm_module **out,
		   struct pen_err *err);
/* The same for penstock-ucx.so. */
int pen__ucx_load(const struct pen_ucx_module **out, struct pen_err *err);
/* Debian packages of an MPI library, for messages: to build with, to run. */
const char *pen__mpi_to_build(const char *mpi);
const char *pen__mpi_to_run(const char *mpi);

extern const struct pen_comm_ops pen__comm_self;

#endif
