/*
 * libhdf5, for those that write through it. It is not re-entrant as Debian
 * builds it for threads: one lock around every use, whoever uses it.
 */
#ifndef PEN_FORMAT_HDF5_HDF5_LIB_H
#define PEN_FORMAT_HDF5_HDF5_LIB_H

#include <stdbool.h>

#include <hdf5.h>

#include "penstock.h"

/* Bytes that libhdf5 has to find when it is called: see pen__can_alloc(). */
#define PEN_HDF5_ROOM ((size_t)8 << 20)

/* Between these two, one thread at a time, libhdf5 prints nothing. */
struct pen_hdf5_turn {
	H5E_auto2_t shown;
	void *arg;
};
void pen__hdf5_enter(struct pen_hdf5_turn *);
void pen__hdf5_leave(struct pen_hdf5_turn *);

/*
 * How writing to a file goes. libhdf5 is never told of a failure, as it cannot
 * cope with one: whoever calls it looks here after every call. Setting sys
 * gives the file up: nothing more is written to it.
 */
struct pen_hdf5_disk {
	int sys; /* errno of the first failure; 0: there was none */
};
/* Within a turn: files of this list are opened, and written, in that way; disk
 * has to outlive them. */
bool pen__hdf5_set_driver(hid_t fapl, struct pen_hdf5_disk *disk);

/* Within a turn: a new id to close, or negative. */
hid_t pen__hdf5_type(enum pen_dtype);

#endif
