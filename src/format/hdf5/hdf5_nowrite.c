/* Replaces hdf5_write.c in builds without libhdf5. */
#include "format/hdf5/hdf5_fields.h"

int pen__h5_write(const struct pen_format *f, const struct pen_table *t,
		  struct pen_out *out, struct pen_err *err)
{
	(void)f;
	(void)t;
	(void)out;
	return pen__fail(
		err, P_NOT_IN_BUILD, "hdf5",
		"writing HDF5 is not in this build: HDF5 was not found");
}
