/* Keys and values of the dictionary. */
#ifndef PENSTOCK_DDICT_KEYS_H
#define PENSTOCK_DDICT_KEYS_H

#include "module.h"

struct penpy_keys {
	struct pen_key *k;
	Py_ssize_t n;
	PyObject *list; /* owns the bytes */
	Py_buffer view; /* or numbers */
	bool viewed;
};

/* -1: an exception is set. The bytes belong to the object. */
int penpy_to_key(PyObject *, struct pen_key *);
int penpy_to_keys(PyObject *, struct penpy_keys *);
void penpy_free_keys(struct penpy_keys *);
PyObject *penpy_from_key(struct pen_key);

struct penpy_views {
	Py_buffer *b;
	struct pen_value *v;
	Py_ssize_t n;
};

/* From a list of buffers. Must be freed even if it fails. */
int penpy_to_views(PyObject *list, struct penpy_views *);
void penpy_free_views(struct penpy_views *);

/* For a loader: the dictionary of a Dict, which is not closed until it is
 * dropped. NULL: it is something else, or closed (with an exception). */
struct pen_ddict *penpy_dict_hold(PyObject *);
void penpy_dict_drop(PyObject *); /* NULL ok */

#endif
