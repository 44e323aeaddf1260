/*
 * libhdf5, for those that write through it. It is not re-entrant as Debian
 * builds it for threads: one lock around every use, whoever uses it.
 */
#ifndef PEN_FORMAT_HDF5_LIB_H
#define PEN_FORMAT_HDF5_LIB_H

#include <hdf5.h>

#include "penstock.h"

/* Between these two, one thread at a time, libhdf5 prints nothing. */
struct pen_hdf5_turn {
	H5E_auto2_t shown;
	void *arg;
};
void pen__hdf5_enter(struct pen_hdf5_turn *);
void pen__hdf5_leave(struct pen_hdf5_turn *);

/* Within a turn: a new id to close, or negative. */
hid_t pen__hdf5_type(enum pen_dtype);

#endif
