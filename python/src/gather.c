/* Rows copied by several threads, for TensorStore. */
#include "module.h"

PyObject *penpy_gather(PyObject *module, PyObject *args)
{
	(void)module;
	(void)args;
	Py_RETURN_NONE;
}
