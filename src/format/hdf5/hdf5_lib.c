/* The lock around libhdf5, and its types. */
#include "format/hdf5/hdf5_lib.h"

#include <pthread.h>

static pthread_mutex_t libhdf5_lock = PTHREAD_MUTEX_INITIALIZER;

void pen__hdf5_enter(struct pen_hdf5_turn *t)
{
	pthread_mutex_lock(&libhdf5_lock);
	/* otherwise libhdf5 prints its errors */
	H5Eget_auto2(H5E_DEFAULT, &t->shown, &t->arg);
	H5Eset_auto2(H5E_DEFAULT, NULL, NULL);
}

void pen__hdf5_leave(struct pen_hdf5_turn *t)
{
	H5Eset_auto2(H5E_DEFAULT, t->shown, t->arg);
	pthread_mutex_unlock(&libhdf5_lock);
}

hid_t pen__hdf5_type(enum pen_dtype t)
{
	static const char *const names[2] = { "FALSE", "TRUE" };
	hid_t id;

	switch (t) {
	case PEN_BOOL:
		id = H5Tenum_create(H5T_STD_I8LE);
		for (int8_t i = 0; id >= 0 && i < 2; i++)
			H5Tenum_insert(id, names[i], &i);
		return id;
	case PEN_F16:
		id = H5Tcopy(H5T_IEEE_F32LE);
		if (id < 0 || H5Tset_fields(id, 15, 10, 5, 0, 10) < 0 ||
		    H5Tset_size(id, 2) < 0 || H5Tset_ebias(id, 15) < 0)
			return -1;
		return id;
	case PEN_I8:
		return H5Tcopy(H5T_STD_I8LE);
	case PEN_U8:
		return H5Tcopy(H5T_STD_U8LE);
	case PEN_I16:
		return H5Tcopy(H5T_STD_I16LE);
	case PEN_U16:
		return H5Tcopy(H5T_STD_U16LE);
	case PEN_I32:
		return H5Tcopy(H5T_STD_I32LE);
	case PEN_U32:
		return H5Tcopy(H5T_STD_U32LE);
	case PEN_I64:
		return H5Tcopy(H5T_STD_I64LE);
	case PEN_U64:
		return H5Tcopy(H5T_STD_U64LE);
	case PEN_F32:
		return H5Tcopy(H5T_IEEE_F32LE);
	case PEN_F64:
		return H5Tcopy(H5T_IEEE_F64LE);
	case PEN_F80:
		return H5Tcopy(H5T_NATIVE_LDOUBLE);
	default:
		return -1;
	}
}
