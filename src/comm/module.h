/*
 * The border to a module that connects ranks: a shared object that is loaded
 * only when it is needed, so that the command itself needs no MPI. A module
 * uses nothing of the program but what is handed to open(); what it returns is
 * made with the program's allocator.
 */
#ifndef PEN_COMM_MODULE_H
#define PEN_COMM_MODULE_H

#include "comm/comm.h"

/* Counts up when anything here, in comm.h or in struct pen_err changes. */
#define PEN_COMM_VERSION 2

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
 * Finds and loads a module, e.g. "mpi" is penstock-mpi.so; it stays loaded.
 * PENSTOCK_MODULES names the only directory to look into; else it is looked for
 * beside the executable and where it is installed. PEN_ENOTFOUND: no file.
 */
int pen__comm_load(const char *name, const struct pen_comm_module **out,
		   struct pen_err *err);

extern const struct pen_comm_ops pen__comm_self;

#endif
