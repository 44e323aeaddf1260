/*
 * Access to libhdf5, for writers. libhdf5 is not re-entrant: one lock covers
 * every use.
 */
#ifndef PEN_FORMAT_HDF5_HDF5_LIB_H
#define PEN_FORMAT_HDF5_HDF5_LIB_H

#include <stdbool.h>

#include <hdf5.h>

#include "penstock.h"

/* Memory that must be available when libhdf5 is called: see pen__can_alloc().
 */
#define PEN_HDF5_ROOM ((size_t)8 << 20)

/* Between these two calls, which one thread at a time can make, libhdf5 prints
 * nothing. */
struct pen_hdf5_turn {
	H5E_auto2_t shown;
	void *arg;
};
void pen__hdf5_enter(struct pen_hdf5_turn *);
void pen__hdf5_leave(struct pen_hdf5_turn *);

/*
 * State of writing to a file. libhdf5 is never told of a failure, because it
 * cannot handle one: callers check this after every call. Setting sys abandons
 * the file: nothing more is written to it.
 */
struct pen_hdf5_disk {
	int sys; /* errno of the first failure; 0: none */
};
/* Within a turn: files opened with this list are written through our driver;
 * disk must outlive them. */
bool pen__hdf5_set_driver(hid_t fapl, struct pen_hdf5_disk *disk);

/* Within a turn: a new ID, the caller's to close, or negative. */
hid_t pen__hdf5_type(enum pen_dtype);

#endif
