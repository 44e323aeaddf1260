/* The module: errors as exceptions, contents of the build, fork(). */
#include "module.h"

#include <pthread.h>
#include <stdio.h>

unsigned penpy_forks;

static PyObject *error, *setting_error, *data_error;

static void forked(void)
{
	penpy_forks++;
}

PyObject *penpy_text(const char *s)
{
	return PyUnicode_DecodeFSDefault(s);
}

/* OSError(errno, message, file), which Python turns into a subclass. */
static PyObject *raise_os(int sys, const struct pen_err *err)
{
	PyObject *msg = penpy_text(err->msg);
	PyObject *where = msg ? penpy_text(err->where) : NULL;
	PyObject *e = where ? PyObject_CallFunction(PyExc_OSError, "iOO", sys,
						    msg, where)
			    : NULL;

	Py_XDECREF(msg);
	Py_XDECREF(where);
	if (!e)
		return NULL;
	PyErr_SetObject((PyObject *)Py_TYPE(e), e);
	Py_DECREF(e);
	return NULL;
}

static PyObject *raise(const struct pen_err *err)
{
	const char *sep = err->where[0] ? ": " : "";
	PyObject *type = error;

	switch (err->code) {
	case PEN_ENOMEM:
		type = PyExc_MemoryError;
		break;
	case PEN_EINVAL:
		type = setting_error;
		break;
	case PEN_EIO:
		return raise_os(err->sys ? err->sys : 5 /* EIO */, err);
	case PEN_ENOTFOUND:
		return raise_os(2 /* ENOENT */, err);
	case PEN_EDATA:
	case PEN_ESTALE:
	case PEN_ENOTSUP:
		type = data_error;
	}
	return PyErr_Format(type, "%s%s%s", err->where, sep, err->msg);
}

/* The matching exception; its attribute code is the kind of error, "P101". */
PyObject *penpy_raise(const struct pen_err *err)
{
	PyObject *type, *value, *trace, *code;

	raise(err);
	PyErr_Fetch(&type, &value, &trace);
	PyErr_NormalizeException(&type, &value, &trace);
	code = value ? PyUnicode_FromFormat("P%03d", err->number) : NULL;
	if (!code || PyObject_SetAttrString(value, "code", code))
		PyErr_Clear();
	Py_XDECREF(code);
	PyErr_Restore(type, value, trace);
	return NULL;
}

/* names(kind) -> [name] */
static PyObject *names(PyObject *self, PyObject *arg)
{
	const char *kind = PyUnicode_AsUTF8AndSize(arg, NULL), *name;
	PyObject *out = kind ? PyList_New(0) : NULL;

	(void)self;
	for (uint32_t i = 0; out && (name = pen_name_at(kind, i)); i++) {
		PyObject *x = PyUnicode_FromString(name);

		if (!x || PyList_Append(out, x))
			Py_CLEAR(out);
		Py_XDECREF(x);
	}
	return out;
}

/* options(kind, name) -> {option: (default, help)} */
static PyObject *options(PyObject *self, PyObject *args)
{
	const char *kind, *name;
	struct pen_option o;
	PyObject *out;

	(void)self;
	if (!PyArg_ParseTuple(args, "sz", &kind, &name))
		return NULL;
	out = PyDict_New();
	for (uint32_t i = 0;
	     out && !pen_option_at(kind, name, i, &o, sizeof(o)); i++) {
		PyObject *x = Py_BuildValue("(zs)", o.dflt, o.help);

		if (!x || PyDict_SetItemString(out, o.name, x))
			Py_CLEAR(out);
		Py_XDECREF(x);
	}
	return out;
}

static PyObject *format_for(PyObject *self, PyObject *arg)
{
	PyObject *bytes;
	const char *name;

	(void)self;
	if (!PyUnicode_FSConverter(arg, &bytes))
		return NULL;
	name = pen_format_for(PyBytes_AsString(bytes));
	Py_DECREF(bytes);
	if (!name)
		Py_RETURN_NONE;
	return PyUnicode_FromString(name);
}

static PyObject *forks(PyObject *self, PyObject *unused)
{
	(void)self;
	(void)unused;
	return PyLong_FromUnsignedLong(penpy_forks);
}

static PyMethodDef functions[] = {
	{ "names", names, METH_O, "Names of a kind." },
	{ "options", options, METH_VARARGS, "Options of an implementation." },
	{ "format_for", format_for, METH_O, "Format by file name." },
	{ "forks", forks, METH_NOARGS, "Forks since the module was loaded." },
	{ "gather", penpy_gather, METH_VARARGS, "Copy rows." },
	{ "gather_alike", penpy_gather_alike, METH_VARARGS,
	  "Copy rows of arrays that are alike." },
	{ NULL, NULL, 0, NULL },
};

static struct PyModuleDef definition = {
	PyModuleDef_HEAD_INIT,
	.m_name = "penstock._penstock",
	.m_doc = "The engine of penstock; import penstock instead.",
	.m_size = -1,
	.m_methods = functions,
};

/* An exception that also derives from a built-in one; code is that of an error
 * that Python code raises. */
static PyObject *exception(PyObject *module, const char *name, PyObject *bases,
			   const char *code, const char *doc)
{
	PyObject *dict = Py_BuildValue("{ss}", "code", code), *e;
	char full[64];

	snprintf(full, sizeof(full), "penstock.%s", name);
	e = dict ? PyErr_NewExceptionWithDoc(full, doc, bases, dict) : NULL;
	Py_XDECREF(dict);
	if (e && PyModule_AddObjectRef(module, name, e))
		Py_CLEAR(e);
	return e;
}

static int errors_ready(PyObject *m)
{
	PyObject *bases;

	error = exception(m, "Error", PyExc_RuntimeError, "P401",
			  "Base class of the exceptions of penstock.");
	bases = error ? PyTuple_Pack(2, error, PyExc_ValueError) : NULL;
	if (!bases)
		return -1;
	setting_error =
		exception(m, "SettingError", bases, "P002",
			  "A setting or an argument is unknown or invalid.");
	data_error = exception(m, "DataError", bases, "P203",
			       "The data is damaged, has changed, or is not "
			       "supported.");
	Py_DECREF(bases);
	return setting_error && data_error ? 0 : -1;
}

PyMODINIT_FUNC PyInit__penstock(void);
PyMODINIT_FUNC PyInit__penstock(void)
{
	PyObject *m = PyModule_Create(&definition);

	if (!m)
		return NULL;
	if (errors_ready(m) || penpy_array_ready(m) || penpy_batch_ready(m) ||
	    penpy_engine_ready(m) || penpy_memory_ready(m) ||
	    penpy_ddict_ready(m) ||
	    PyModule_AddStringConstant(m, "version", pen_version()) ||
	    pthread_atfork(NULL, NULL, forked)) {
		Py_DECREF(m);
		return NULL;
	}
	return m;
}
