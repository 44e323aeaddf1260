/* In place of hdf5_write.c in a build without libhdf5: says so. */
#include "format/hdf5/hdf5_fields.h"

int pen__h5_write(const struct pen_format *f, const struct pen_table *t,
		  struct pen_out *out, struct pen_err *err)
{
	(void)f;
	(void)t;
	(void)out;
	return pen__fail(err, PEN_ENOTSUP, "hdf5",
			 "writing is not in this build: HDF5 was not found");
}
