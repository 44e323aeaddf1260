/*
 * Conversion of keys and values from Python. Numbers may be an array of 8-byte
 * integers, which costs nothing per key; a str is its UTF-8.
 */
#include "ddict_keys.h"

#include <string.h>

int penpy_to_key(PyObject *o, struct pen_key *k)
{
	Py_ssize_t n;
	PyObject *number;
	char *p;

	*k = (struct pen_key){ 0 };
	if (PyUnicode_Check(o)) {
		k->bytes = PyUnicode_AsUTF8AndSize(o, &n);
		k->number = (uint64_t)n;
		return k->bytes ? 0 : -1;
	}
	if (PyBytes_Check(o)) {
		if (PyBytes_AsStringAndSize(o, &p, &n))
			return -1;
		k->bytes = p;
		k->number = (uint64_t)n;
		return 0;
	}
	number = PyNumber_Index(o);
	if (!number) {
		PyErr_Format(PyExc_TypeError,
			     "a key must be an int, str or bytes, not %R",
			     (PyObject *)Py_TYPE(o));
		return -1;
	}
	k->number = PyLong_AsUnsignedLongLong(number);
	Py_DECREF(number);
	if (PyErr_Occurred()) {
		PyErr_SetString(PyExc_ValueError,
				"an integer key must be from 0 to 2**64 - 1");
		return -1;
	}
	return 0;
}

void penpy_free_keys(struct penpy_keys *k)
{
	if (k->viewed)
		PyBuffer_Release(&k->view);
	Py_CLEAR(k->list);
	PyMem_Free(k->k);
	k->k = NULL;
}

/* A buffer of 8-byte integers, as in NumPy; -1: something else. */
static int keys_of_buffer(PyObject *o, struct penpy_keys *k)
{
	const int64_t *p;
	const char *f;

	if (!PyObject_CheckBuffer(o) || PyBytes_Check(o))
		return 1;
	if (PyObject_GetBuffer(o, &k->view, PyBUF_FORMAT | PyBUF_ND)) {
		PyErr_Clear();
		return 1;
	}
	f = k->view.format;
	if (!f || k->view.itemsize != 8 || k->view.ndim != 1 ||
	    !strchr("lqLQ", f[0]) || f[1]) {
		PyBuffer_Release(&k->view);
		return 1;
	}
	k->viewed = true;
	k->n = k->view.len / 8;
	k->k = PyMem_Malloc((size_t)(k->n + 1) * sizeof(*k->k));
	if (!k->k) {
		PyErr_NoMemory();
		return -1;
	}
	p = k->view.buf;
	for (Py_ssize_t i = 0; i < k->n; i++) {
		if (p[i] < 0 && (f[0] == 'l' || f[0] == 'q')) {
			PyErr_SetString(PyExc_ValueError,
					"an integer key must not be negative");
			return -1;
		}
		k->k[i] = (struct pen_key){ NULL, (uint64_t)p[i] };
	}
	return 0;
}

int penpy_to_keys(PyObject *o, struct penpy_keys *k)
{
	int rc;

	*k = (struct penpy_keys){ 0 };
	rc = keys_of_buffer(o, k);
	if (rc <= 0)
		goto out;
	rc = -1;
	k->list = PySequence_List(o);
	if (!k->list)
		goto out;
	k->n = PyList_Size(k->list);
	k->k = PyMem_Malloc((size_t)(k->n + 1) * sizeof(*k->k));
	if (!k->k) {
		PyErr_NoMemory();
		goto out;
	}
	for (Py_ssize_t i = 0; i < k->n; i++)
		if (penpy_to_key(PyList_GetItem(k->list, i), &k->k[i]))
			goto out;
	rc = 0;
out:
	if (rc)
		penpy_free_keys(k);
	return rc;
}

PyObject *penpy_from_key(struct pen_key k)
{
	PyObject *o;

	if (!k.bytes)
		return PyLong_FromUnsignedLongLong(k.number);
	o = PyUnicode_DecodeUTF8(k.bytes, (Py_ssize_t)k.number, NULL);
	if (o)
		return o;
	PyErr_Clear();
	return PyBytes_FromStringAndSize(k.bytes, (Py_ssize_t)k.number);
}

void penpy_free_views(struct penpy_views *v)
{
	for (Py_ssize_t i = 0; i < v->n; i++)
		PyBuffer_Release(&v->b[i]);
	PyMem_Free(v->b);
	PyMem_Free(v->v);
}

int penpy_to_views(PyObject *list, struct penpy_views *v)
{
	const Py_ssize_t n = PyList_Size(list);

	*v = (struct penpy_views){ 0 };
	v->b = PyMem_Malloc((size_t)(n + 1) * sizeof(*v->b));
	v->v = PyMem_Malloc((size_t)(n + 1) * sizeof(*v->v));
	if (!v->b || !v->v) {
		PyErr_NoMemory();
		return -1;
	}
	for (; v->n < n; v->n++) {
		Py_buffer *b = &v->b[v->n];

		if (PyObject_GetBuffer(PyList_GetItem(list, v->n), b,
				       PyBUF_SIMPLE))
			return -1;
		v->v[v->n] = (struct pen_value){ b->buf, (uint64_t)b->len };
	}
	return 0;
}
