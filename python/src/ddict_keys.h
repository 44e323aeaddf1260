/* What goes into a dictionary and comes out: keys, and memory of values. */
#ifndef PENSTOCK_DDICT_KEYS_H
#define PENSTOCK_DDICT_KEYS_H

#include "module.h"

struct penpy_keys {
	struct pen_key *k;
	Py_ssize_t n;
	PyObject *list; /* holds the bytes */
	Py_buffer view; /* or numbers */
	bool viewed;
};

/* -1: an exception is set. The bytes are the object's. */
int penpy_to_key(PyObject *, struct pen_key *);
int penpy_to_keys(PyObject *, struct penpy_keys *);
void penpy_free_keys(struct penpy_keys *);
PyObject *penpy_from_key(struct pen_key);

struct penpy_views {
	Py_buffer *b;
	struct pen_value *v;
	Py_ssize_t n;
};

/* Of a list of buffers; to be freed also when it fails. */
int penpy_to_views(PyObject *list, struct penpy_views *);
void penpy_free_views(struct penpy_views *);

#endif
