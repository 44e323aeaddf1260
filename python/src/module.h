/*
 * The Python module's C part: an engine (a loader), its batches, and arrays
 * that look into them. Written against the stable ABI of Python 3.11, so that
 * one build serves every later version, and without NumPy: arrays go out by
 * the buffer protocol and DLPack.
 *
 * Lifetimes: an array holds its batch (pen_batch_ref), not the Python object
 * of the batch; a DLPack capsule and what is made of it do, too. So views stay
 * valid after batch, loader and module are gone, and the memory goes back to
 * the pool with the last of them, on whatever thread that is.
 *
 * fork(): the child has none of our threads and maybe a locked lock, so there
 * nothing of ours is used, and nothing is given back.
 */
#ifndef PENSTOCK_MODULE_H
#define PENSTOCK_MODULE_H

#define Py_LIMITED_API 0x030b0000
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdbool.h>

#include "penstock.h"

/* How many forks this process is away from the one that loaded the module. */
extern unsigned penpy_forks;

/* Raises what err says; returns NULL. */
PyObject *penpy_raise(const struct pen_err *err);
/* Of a path or a message, which may be of any bytes. */
PyObject *penpy_text(const char *);

extern PyTypeObject *penpy_array_type, *penpy_ragged_type, *penpy_batch_type,
	*penpy_engine_type;

/* Where an array's memory is, and how it is laid out. */
struct penpy_view {
	void *data;
	enum pen_dtype dtype;
	uint32_t ndim;
	const int64_t *shape;
};
/* A view into a batch, which it holds a reference to. */
PyObject *penpy_array_new(struct pen_batch *, const struct penpy_view *);
/* A tensor of a batch: an array, or a ragged one. */
PyObject *penpy_tensor_new(struct pen_batch *, const struct pen_tensor *);
/* Takes the reference to the batch over, also when it fails. ncols: of a
 * sparse matrix in it, 0: not known. */
PyObject *penpy_batch_new(struct pen_batch *, uint64_t ncols);

/* The array as NumPy's and as PyTorch's, without a copy where they can. */
PyObject *penpy_to_numpy(PyObject *array, PyObject *);
PyObject *penpy_to_torch(PyObject *array, PyObject *);

/* Gives the batch back, unless this is a forked child. */
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
