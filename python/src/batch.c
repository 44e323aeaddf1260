/* A batch: a mapping from field names to arrays. Arrays are created on access;
 * they are a few words each. */
#include "module.h"

#include <string.h>

PyTypeObject *penpy_batch_type;

struct batch {
	PyObject head;
	struct pen_batch *b;
	unsigned forks;
	uint64_t ncols;
};

static struct pen_batch *batch_of(PyObject *self)
{
	return ((struct batch *)self)->b;
}

PyObject *penpy_batch_new(struct pen_batch *b, uint64_t ncols)
{
	struct batch *o =
		(struct batch *)PyType_GenericAlloc(penpy_batch_type, 0);

	if (!o) {
		pen_batch_unref(b);
		return NULL;
	}
	o->b = b;
	o->ncols = ncols;
	o->forks = penpy_forks;
	return (PyObject *)o;
}

static void batch_dealloc(PyObject *self)
{
	PyTypeObject *type = Py_TYPE(self);

	penpy_unref(batch_of(self), ((struct batch *)self)->forks);
	PyObject_Free(self);
	Py_DECREF(type);
}

static const struct pen_tensor *find(PyObject *self, PyObject *key)
{
	const struct pen_batch *b = batch_of(self);
	const char *name = PyUnicode_Check(key)
				   ? PyUnicode_AsUTF8AndSize(key, NULL)
				   : NULL;

	PyErr_Clear(); /* not UTF-8: not a name of a field */
	for (uint32_t i = 0; name && i < b->ntensors; i++)
		if (!strcmp(b->tensors[i].name, name))
			return &b->tensors[i];
	return NULL;
}

static PyObject *batch_item(PyObject *self, PyObject *key)
{
	const struct pen_tensor *t = find(self, key);

	if (!t) {
		PyErr_SetObject(PyExc_KeyError, key);
		return NULL;
	}
	return penpy_tensor_new(batch_of(self), t);
}

static int batch_contains(PyObject *self, PyObject *key)
{
	return find(self, key) != NULL;
}

static Py_ssize_t batch_len(PyObject *self)
{
	return batch_of(self)->ntensors;
}

/* A list with the result of `make` for each tensor. */
static PyObject *each(PyObject *self,
		      PyObject *(*make)(struct pen_batch *,
					const struct pen_tensor *))
{
	struct pen_batch *b = batch_of(self);
	PyObject *out = PyList_New(b->ntensors);

	for (uint32_t i = 0; out && i < b->ntensors; i++) {
		PyObject *x = make(b, &b->tensors[i]);

		if (!x || PyList_SetItem(out, i, x))
			Py_CLEAR(out);
	}
	return out;
}

static PyObject *make_name(struct pen_batch *b, const struct pen_tensor *t)
{
	(void)b;
	return PyUnicode_FromString(t->name);
}

static PyObject *make_item(struct pen_batch *b, const struct pen_tensor *t)
{
	PyObject *x = penpy_tensor_new(b, t);

	return x ? Py_BuildValue("(sN)", t->name, x) : NULL;
}

static PyObject *batch_keys(PyObject *self, PyObject *unused)
{
	(void)unused;
	return each(self, make_name);
}

static PyObject *batch_values(PyObject *self, PyObject *unused)
{
	(void)unused;
	return each(self, penpy_tensor_new);
}

static PyObject *batch_items(PyObject *self, PyObject *unused)
{
	(void)unused;
	return each(self, make_item);
}

static PyObject *batch_iter(PyObject *self)
{
	PyObject *keys = each(self, make_name), *out;

	out = keys ? PyObject_GetIter(keys) : NULL;
	Py_XDECREF(keys);
	return out;
}

static PyObject *batch_get(PyObject *self, PyObject *args)
{
	PyObject *key, *dflt = Py_None;
	const struct pen_tensor *t;

	if (!PyArg_ParseTuple(args, "O|O:get", &key, &dflt))
		return NULL;
	t = find(self, key);
	if (t)
		return penpy_tensor_new(batch_of(self), t);
	Py_INCREF(dflt);
	return dflt;
}

/* {name: array converted by `how`} */
static PyObject *convert(PyObject *self, const char *method,
			 PyObject *(*how)(PyObject *, PyObject *))
{
	struct pen_batch *b = batch_of(self);
	PyObject *out = PyDict_New();

	for (uint32_t i = 0; out && i < b->ntensors; i++) {
		const struct pen_tensor *t = &b->tensors[i];
		PyObject *a = penpy_tensor_new(b, t), *x = NULL;

		if (a && t->layout == PEN_RAGGED)
			x = PyObject_CallMethod(a, method, NULL);
		else if (a)
			x = how(a, NULL);
		if (!x || PyDict_SetItemString(out, t->name, x))
			Py_CLEAR(out);
		Py_XDECREF(x);
		Py_XDECREF(a);
	}
	return out;
}

static PyObject *batch_numpy(PyObject *self, PyObject *unused)
{
	(void)unused;
	return convert(self, "numpy", penpy_to_numpy);
}

/* csr() and scipy(), which are rarely used, are written in Python. */
static PyObject *by_python(PyObject *self, PyObject *args, PyObject *kw,
			   const char *name)
{
	PyObject *m = PyImport_ImportModule("penstock._convert");
	PyObject *f = m ? PyObject_GetAttrString(m, name) : NULL;
	PyObject *one = f ? PyTuple_Pack(1, self) : NULL;
	PyObject *all = one ? PySequence_Concat(one, args) : NULL;
	PyObject *out = all ? PyObject_Call(f, all, kw) : NULL;

	Py_XDECREF(all);
	Py_XDECREF(one);
	Py_XDECREF(f);
	Py_XDECREF(m);
	return out;
}

static PyObject *batch_torch(PyObject *self, PyObject *unused)
{
	PyObject *none, *out;

	(void)unused;
	if (!((struct batch *)self)->ncols)
		return convert(self, "torch", penpy_to_torch);
	none = PyTuple_New(0);
	out = none ? by_python(self, none, NULL, "torch_sparse") : NULL;
	Py_XDECREF(none);
	return out;
}

static PyObject *batch_csr(PyObject *self, PyObject *args, PyObject *kw)
{
	return by_python(self, args, kw, "csr");
}

static PyObject *batch_scipy(PyObject *self, PyObject *args, PyObject *kw)
{
	return by_python(self, args, kw, "scipy_csr");
}

static PyObject *batch_torch_csr(PyObject *self, PyObject *args, PyObject *kw)
{
	return by_python(self, args, kw, "torch_csr");
}

static PyObject *batch_ids(PyObject *self, void *unused)
{
	struct pen_batch *b = batch_of(self);
	int64_t n = b->nsamples;

	(void)unused;
	return penpy_array_new(b,
			       &(struct penpy_view){ (void *)(uintptr_t)b->ids,
						     PEN_U64, 1, &n });
}

/* A number of the batch, by its offset in the struct. */
static PyObject *batch_u64(PyObject *self, void *off)
{
	uint64_t v;

	memcpy(&v, (char *)batch_of(self) + (uintptr_t)off, sizeof(v));
	return PyLong_FromUnsignedLongLong(v);
}

static PyObject *batch_u32(PyObject *self, void *off)
{
	uint32_t v;

	memcpy(&v, (char *)batch_of(self) + (uintptr_t)off, sizeof(v));
	return PyLong_FromUnsignedLong(v);
}

static PyObject *batch_ncols(PyObject *self, void *unused)
{
	(void)unused;
	return PyLong_FromUnsignedLongLong(((struct batch *)self)->ncols);
}

static PyObject *batch_repr(PyObject *self)
{
	const struct pen_batch *b = batch_of(self);
	PyObject *keys = each(self, make_name), *out;

	if (!keys)
		return NULL;
	out = PyUnicode_FromFormat("<penstock.Batch %u samples, %R>",
				   b->nsamples, keys);
	Py_DECREF(keys);
	return out;
}

static PyMethodDef batch_methods[] = {
	{ "keys", batch_keys, METH_NOARGS, "The names of the fields." },
	{ "values", batch_values, METH_NOARGS, "The arrays of the fields." },
	{ "items", batch_items, METH_NOARGS, "Pairs of name and array." },
	{ "get", batch_get, METH_VARARGS,
	  "get(name, default=None): a field, or the default." },
	{ "numpy", batch_numpy, METH_NOARGS,
	  "Return {name: NumPy array}, without a copy." },
	{ "torch", batch_torch, METH_NOARGS,
	  "Return {name: PyTorch tensor}, without a copy. A CSR matrix "
	  "becomes\n"
	  "a sparse tensor under its own name." },
	{ "csr", (PyCFunction)(void (*)(void))batch_csr,
	  METH_VARARGS | METH_KEYWORDS,
	  "csr(name=None) -> (data, indices, indptr)\n\n"
	  "The arrays of a sparse matrix, loaded with output=\"csr\".\n"
	  "name: the matrix; default: the first." },
	{ "scipy", (PyCFunction)(void (*)(void))batch_scipy,
	  METH_VARARGS | METH_KEYWORDS,
	  "scipy(name=None, ncols=None) -> scipy.sparse.csr_matrix\n\n"
	  "A sparse matrix, loaded with output=\"csr\", without a copy." },
	{ "torch_csr", (PyCFunction)(void (*)(void))batch_torch_csr,
	  METH_VARARGS | METH_KEYWORDS,
	  "torch_csr(name=None, ncols=None) -> torch.Tensor\n\n"
	  "A sparse matrix, loaded with output=\"csr\", as a CSR tensor." },
	{ NULL, NULL, 0, NULL },
};

#define U64(x) (void *)offsetof(struct pen_batch, x)
static PyGetSetDef batch_fields[] = {
	{ "ids", batch_ids, NULL, "Numbers of the samples, in row order.",
	  NULL },
	{ "epoch", batch_u64, NULL, "The epoch, from 0.", U64(epoch) },
	{ "position", batch_u64, NULL,
	  "Position of its first sample in the order of the epoch.",
	  U64(position) },
	{ "end", batch_u64, NULL, "Position after the step, of all ranks.",
	  U64(end) },
	{ "seq", batch_u64, NULL, "Number of the batch, over all epochs.",
	  U64(seq) },
	{ "nsamples", batch_u32, NULL, "Number of samples.", U64(nsamples) },
	{ "ncols", batch_ncols, NULL,
	  "Columns of a sparse matrix; 0 if unknown.", NULL },
	{ "nskipped", batch_u32, NULL, "Samples skipped by on_error=\"skip\".",
	  U64(nskipped) },
	{ "nsubstituted", batch_u32, NULL,
	  "Samples replaced by on_error=\"substitute\".", U64(nsubstituted) },
	{ NULL, NULL, NULL, NULL, NULL },
};

static PyType_Slot batch_slots[] = {
	{ Py_tp_dealloc, batch_dealloc },
	{ Py_tp_methods, batch_methods },
	{ Py_tp_getset, batch_fields },
	{ Py_tp_repr, batch_repr },
	{ Py_tp_iter, batch_iter },
	{ Py_mp_subscript, batch_item },
	{ Py_mp_length, batch_len },
	{ Py_sq_contains, batch_contains },
	{ Py_tp_doc, "A batch: a mapping from field names to arrays.\n"
		     "\n"
		     "Values are `Array`, or `Ragged` for samples of different "
		     "shape. The memory\n"
		     "belongs to you, also for writing, as long as the batch "
		     "or a view of it exists;\n"
		     "then it returns to the loader's pool.\n"
		     "\n"
		     "Examples\n"
		     "--------\n"
		     ">>> batch = next(iter(penstock.Loader(\"x.npy\", 4)))\n"
		     ">>> list(batch), batch.ids.tolist(), batch.epoch\n"
		     "(['x'], [0, 1, 2, 3], 0)\n"
		     ">>> batch.numpy()[\"x\"].shape\n"
		     "(4, 8)" },
	{ 0, NULL },
};

static PyType_Spec batch_spec = {
	.name = "penstock.Batch",
	.basicsize = sizeof(struct batch),
	.flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION |
		 Py_TPFLAGS_IMMUTABLETYPE,
	.slots = batch_slots,
};

int penpy_batch_ready(PyObject *module)
{
	penpy_batch_type = (PyTypeObject *)PyType_FromSpec(&batch_spec);
	if (!penpy_batch_type)
		return -1;
	return PyModule_AddObjectRef(module, "Batch",
				     (PyObject *)penpy_batch_type);
}
