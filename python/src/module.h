/*
 * The C part of the Python module: an engine (a loader), its batches, and
 * arrays that view their memory. It uses the stable ABI of Python 3.11, so that
 * one build serves every later version, and no NumPy: arrays are exported
 * through the buffer protocol and DLPack.
 *
 * Lifetimes: an array refers to its batch (pen_batch_ref), not to the Python
 * object of the batch; so does a DLPack capsule and what is made from it. Views
 * stay valid after batch, loader and module are gone, and the last one returns
 * the memory to the pool, on any thread.
 *
 * fork(): the child has none of the threads, and a lock may be held, so it uses
 * nothing of its parent's and frees nothing.
 */
#ifndef PENSTOCK_MODULE_H
#define PENSTOCK_MODULE_H

#define Py_LIMITED_API 0x030b0000
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdbool.h>

#include "penstock.h"

/* Number of forks between the process that loaded the module and this one. */
extern unsigned penpy_forks;

/* Raises err as an exception; returns NULL. */
PyObject *penpy_raise(const struct pen_err *err);
/* A str from a path or a message, which may contain any bytes. */
PyObject *penpy_text(const char *);

extern PyTypeObject *penpy_array_type, *penpy_ragged_type, *penpy_batch_type,
	*penpy_engine_type;

/* Memory and layout of an array. */
struct penpy_view {
	void *data;
	enum pen_dtype dtype;
	uint32_t ndim;
	const int64_t *shape;
};
/* A view of a batch; takes a reference to it. */
PyObject *penpy_array_new(struct pen_batch *, const struct penpy_view *);
/* A tensor of a batch: Array or Ragged. */
PyObject *penpy_tensor_new(struct pen_batch *, const struct pen_tensor *);
/* Takes over the reference to the batch, even if it fails. ncols: columns of a
 * sparse matrix in it; 0: unknown. */
PyObject *penpy_batch_new(struct pen_batch *, uint64_t ncols);

/* The array for NumPy and PyTorch, without a copy if possible. */
PyObject *penpy_to_numpy(PyObject *array, PyObject *);
PyObject *penpy_to_torch(PyObject *array, PyObject *);

/* Drops the reference, unless this is a forked child. */
void penpy_unref(struct pen_batch *, unsigned forks);

int penpy_array_ready(PyObject *module);
int penpy_batch_ready(PyObject *module);
int penpy_engine_ready(PyObject *module);
/* gather.c */
int penpy_memory_ready(PyObject *module);
PyObject *penpy_gather(PyObject *module, PyObject *args);
PyObject *penpy_gather_alike(PyObject *module, PyObject *args);
int penpy_ddict_ready(PyObject *module);

#endif
