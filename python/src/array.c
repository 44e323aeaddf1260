/*
 * Arrays: a pointer into a batch with a shape and a type, exported through the
 * buffer protocol and DLPack. Arithmetic is left to NumPy and PyTorch.
 */
#include "module.h"

#include <stdlib.h>
#include <string.h>

PyTypeObject *penpy_array_type, *penpy_ragged_type;

struct array {
	PyVarObject head;
	struct pen_batch *batch;
	void *data;
	const int64_t *shapes;	/* padded, packed: of samples; or NULL */
	const int64_t *offsets; /* packed: starts of samples; or NULL */
	bool before;		/* padded: padding comes first */
	Py_ssize_t nbytes;
	uint32_t nrows, row_ndim; /* of shapes */
	enum pen_dtype dtype;
	int ndim;
	unsigned forks;
	Py_ssize_t dims[1]; /* shape, then strides */
};

/* From dlpack.h, version 0, which all frameworks accept. */
struct dl_device {
	int32_t type, id;
};
struct dl_type {
	uint8_t code, bits;
	uint16_t lanes;
};
struct dl_tensor {
	void *data;
	struct dl_device device;
	int32_t ndim;
	struct dl_type dtype;
	int64_t *shape, *strides;
	uint64_t byte_offset;
};
struct dl_managed {
	struct dl_tensor tensor;
	void *ctx;
	void (*deleter)(struct dl_managed *);
};
struct dl_held {
	struct dl_managed pub;
	struct pen_batch *batch;
	unsigned forks;
	int64_t shape[]; /* then strides */
};

enum { DL_INT, DL_UINT, DL_FLOAT, DL_COMPLEX = 5, DL_BOOL };

/* Format letters of struct, or NumPy's where struct has none. dl: code or -1.
 */
static const struct {
	const char *letter;
	int dl;
} types[PEN_NDTYPES] = {
	[PEN_BOOL] = { "?", DL_BOOL },	   [PEN_I8] = { "b", DL_INT },
	[PEN_U8] = { "B", DL_UINT },	   [PEN_I16] = { "h", DL_INT },
	[PEN_U16] = { "H", DL_UINT },	   [PEN_I32] = { "i", DL_INT },
	[PEN_U32] = { "I", DL_UINT },	   [PEN_I64] = { "q", DL_INT },
	[PEN_U64] = { "Q", DL_UINT },	   [PEN_F16] = { "e", DL_FLOAT },
	[PEN_F32] = { "f", DL_FLOAT },	   [PEN_F64] = { "d", DL_FLOAT },
	[PEN_F80] = { "g", -1 },	   [PEN_C64] = { "Zf", DL_COMPLEX },
	[PEN_C128] = { "Zd", DL_COMPLEX }, [PEN_C160] = { "Zg", -1 },
};

void penpy_unref(struct pen_batch *b, unsigned forks)
{
	if (forks == penpy_forks)
		pen_batch_unref(b);
}

PyObject *penpy_array_new(struct pen_batch *b, const struct penpy_view *v)
{
	struct array *a = (struct array *)PyType_GenericAlloc(
		penpy_array_type, 2 * (Py_ssize_t)v->ndim);
	Py_ssize_t stride = (Py_ssize_t)pen_dtype_size(v->dtype);

	if (!a)
		return NULL;
	a->batch = b;
	a->data = v->data;
	a->dtype = v->dtype;
	a->ndim = (int)v->ndim;
	a->forks = penpy_forks;
	for (uint32_t i = v->ndim; i-- > 0;) {
		a->dims[i] = (Py_ssize_t)v->shape[i];
		a->dims[v->ndim + i] = stride;
		stride *= a->dims[i];
	}
	a->nbytes = stride;
	pen_batch_ref(b);
	return (PyObject *)a;
}

static void array_dealloc(PyObject *self)
{
	struct array *a = (struct array *)self;
	PyTypeObject *type = Py_TYPE(self);

	penpy_unref(a->batch, a->forks);
	PyObject_Free(self);
	Py_DECREF(type);
}

static int array_buffer(PyObject *self, Py_buffer *view, int flags)
{
	struct array *a = (struct array *)self;

	if ((flags & PyBUF_F_CONTIGUOUS) == PyBUF_F_CONTIGUOUS && a->ndim > 1) {
		view->obj = NULL;
		PyErr_SetString(PyExc_BufferError,
				"the array is in C order, not Fortran order");
		return -1;
	}
	*view = (Py_buffer){
		.buf = a->data,
		.len = a->nbytes,
		.itemsize = (Py_ssize_t)pen_dtype_size(a->dtype),
		.ndim = a->ndim,
		.internal = NULL,
	};
	/* in C order, so a caller may do without the shape */
	if (flags & PyBUF_FORMAT)
		view->format = (char *)(uintptr_t)types[a->dtype].letter;
	if (flags & PyBUF_ND)
		view->shape = a->dims;
	else
		view->ndim = 1;
	if ((flags & PyBUF_STRIDES) == PyBUF_STRIDES)
		view->strides = a->dims + a->ndim;
	Py_INCREF(self);
	view->obj = self;
	return 0;
}

static void dl_delete(struct dl_managed *m)
{
	struct dl_held *h = (struct dl_held *)m;

	penpy_unref(h->batch, h->forks);
	free(h);
}

/* Only an unused capsule still has this name. */
static void capsule_delete(PyObject *capsule)
{
	struct dl_managed *m;

	if (!PyCapsule_IsValid(capsule, "dltensor"))
		return;
	m = PyCapsule_GetPointer(capsule, "dltensor");
	m->deleter(m);
}

static PyObject *capsule_of(struct array *a, int code)
{
	size_t n = (size_t)a->ndim;
	struct dl_held *h = malloc(sizeof(*h) + 2 * n * sizeof(int64_t));
	Py_ssize_t size = (Py_ssize_t)pen_dtype_size(a->dtype);
	PyObject *capsule;

	if (!h)
		return PyErr_NoMemory();
	for (size_t i = 0; i < n; i++) {
		h->shape[i] = a->dims[i];
		h->shape[n + i] = a->dims[n + i] / size;
	}
	h->pub = (struct dl_managed){
		.tensor = { .data = a->data,
			    .device = { 1, 0 }, /* CPU */
			    .ndim = a->ndim,
			    .dtype = { (uint8_t)code, (uint8_t)(size * 8), 1 },
			    .shape = h->shape,
			    .strides = h->shape + n },
		.deleter = dl_delete,
	};
	h->batch = a->batch;
	h->forks = a->forks;
	pen_batch_ref(a->batch);
	capsule = PyCapsule_New(&h->pub, "dltensor", capsule_delete);
	if (!capsule)
		dl_delete(&h->pub);
	return capsule;
}

/* stream, max_version, dl_device and copy have no effect. */
static PyObject *array_dlpack(PyObject *self, PyObject *args, PyObject *kw)
{
	struct array *a = (struct array *)self;

	(void)args;
	(void)kw;
	if (types[a->dtype].dl < 0)
		return PyErr_Format(PyExc_BufferError,
				    "DLPack has no %s; use numpy.asarray()",
				    pen_dtype_name(a->dtype));
	return capsule_of(a, types[a->dtype].dl);
}

static PyObject *array_dlpack_device(PyObject *self, PyObject *unused)
{
	(void)self;
	(void)unused;
	return Py_BuildValue("(ii)", 1, 0);
}

/* A function of another module, looked up once. */
static PyObject *function(PyObject **kept, const char *module, const char *name)
{
	PyObject *m;

	if (*kept)
		return *kept;
	m = PyImport_ImportModule(module);
	if (!m)
		return NULL;
	*kept = PyObject_GetAttrString(m, name);
	Py_DECREF(m);
	return *kept;
}

PyObject *penpy_to_numpy(PyObject *self, PyObject *unused)
{
	static PyObject *asarray;
	PyObject *f = function(&asarray, "numpy", "asarray");

	(void)unused;
	return f ? PyObject_CallFunctionObjArgs(f, self, NULL) : NULL;
}

/* Types of PyTorch that DLPack transfers unchanged. */
static bool torch_takes(enum pen_dtype t)
{
	return (t >= PEN_I8 && t <= PEN_I16) || t == PEN_I32 || t == PEN_I64 ||
	       (t >= PEN_F16 && t <= PEN_F64) || t == PEN_C64 || t == PEN_C128;
}

PyObject *penpy_to_torch(PyObject *self, PyObject *unused)
{
	static PyObject *from_dlpack, *other;
	struct array *a = (struct array *)self;
	PyObject *f, *capsule, *out;

	(void)unused;
	if (!torch_takes(a->dtype)) {
		f = function(&other, "penstock._convert", "torch_other");
		return f ? PyObject_CallFunctionObjArgs(f, self, NULL) : NULL;
	}
	f = function(&from_dlpack, "penstock._convert", "from_dlpack");
	capsule = f ? capsule_of(a, types[a->dtype].dl) : NULL;
	if (!capsule)
		return NULL;
	out = PyObject_CallFunctionObjArgs(f, capsule, NULL);
	Py_DECREF(capsule);
	return out;
}

static PyObject *numpy_then(PyObject *self, const char *method, PyObject *arg)
{
	PyObject *np = penpy_to_numpy(self, NULL), *out;

	if (!np)
		return NULL;
	/* "O" would unpack a tuple */
	out = arg ? PyObject_CallMethod(np, method, "(O)", arg)
		  : PyObject_CallMethod(np, method, NULL);
	Py_DECREF(np);
	return out;
}

static PyObject *array_item(PyObject *self, PyObject *key)
{
	return numpy_then(self, "__getitem__", key);
}

static PyObject *array_iter(PyObject *self)
{
	return numpy_then(self, "__iter__", NULL);
}

static PyObject *array_tolist(PyObject *self, PyObject *unused)
{
	PyObject *view = PyMemoryView_FromObject(self), *out;

	(void)unused;
	if (!view)
		return NULL;
	out = PyObject_CallMethod(view, "tolist", NULL);
	Py_DECREF(view);
	return out;
}

/* __array__(dtype=None, copy=None) */
static PyObject *array_array(PyObject *self, PyObject *args, PyObject *kw)
{
	static char *names[] = { "dtype", "copy", NULL };
	PyObject *dtype = Py_None, *copy = Py_None, *np, *out;

	if (!PyArg_ParseTupleAndKeywords(args, kw, "|OO", names, &dtype, &copy))
		return NULL;
	np = penpy_to_numpy(self, NULL);
	if (!np || (dtype == Py_None && copy != Py_True))
		return np;
	out = dtype == Py_None
		      ? PyObject_CallMethod(np, "copy", NULL)
		      : PyObject_CallMethod(np, "astype", "(O)", dtype);
	Py_DECREF(np);
	return out;
}

static Py_ssize_t array_len(PyObject *self)
{
	struct array *a = (struct array *)self;

	if (!a->ndim) {
		PyErr_SetString(PyExc_TypeError, "a scalar has no length");
		return -1;
	}
	return a->dims[0];
}

static PyObject *array_shape(PyObject *self, void *unused)
{
	struct array *a = (struct array *)self;
	PyObject *out = PyTuple_New(a->ndim);

	(void)unused;
	for (int i = 0; out && i < a->ndim; i++) {
		PyObject *n = PyLong_FromSsize_t(a->dims[i]);

		if (!n || PyTuple_SetItem(out, i, n))
			Py_CLEAR(out);
	}
	return out;
}

static PyObject *array_dtype(PyObject *self, void *unused)
{
	(void)unused;
	return PyUnicode_FromString(
		pen_dtype_name(((struct array *)self)->dtype));
}

static PyObject *array_ndim(PyObject *self, void *unused)
{
	(void)unused;
	return PyLong_FromLong(((struct array *)self)->ndim);
}

static PyObject *array_nbytes(PyObject *self, void *unused)
{
	(void)unused;
	return PyLong_FromSsize_t(((struct array *)self)->nbytes);
}

static PyObject *array_shapes(PyObject *self, void *unused)
{
	struct array *a = (struct array *)self;
	int64_t shape[] = { a->nrows, a->row_ndim };

	(void)unused;
	if (!a->shapes)
		Py_RETURN_NONE;
	return penpy_array_new(
		a->batch, &(struct penpy_view){ (void *)(uintptr_t)a->shapes,
						PEN_I64, 2, shape });
}

static PyObject *array_offsets(PyObject *self, void *unused)
{
	struct array *a = (struct array *)self;
	int64_t shape[] = { (int64_t)a->nrows + 1 };

	(void)unused;
	if (!a->offsets)
		Py_RETURN_NONE;
	return penpy_array_new(
		a->batch, &(struct penpy_view){ (void *)(uintptr_t)a->offsets,
						PEN_I64, 1, shape });
}

static PyObject *array_before(PyObject *self, void *unused)
{
	(void)unused;
	return PyBool_FromLong(((struct array *)self)->before);
}

static PyObject *array_repr(PyObject *self)
{
	PyObject *shape = array_shape(self, NULL), *out;

	if (!shape)
		return NULL;
	out = PyUnicode_FromFormat(
		"<penstock.Array %R %s>", shape,
		pen_dtype_name(((struct array *)self)->dtype));
	Py_DECREF(shape);
	return out;
}

static PyMethodDef array_methods[] = {
	{ "__dlpack__", (PyCFunction)(void (*)(void))array_dlpack,
	  METH_VARARGS | METH_KEYWORDS,
	  "Return a DLPack capsule, without a copy." },
	{ "__dlpack_device__", array_dlpack_device, METH_NOARGS,
	  "The device of the memory: (1, 0), the CPU." },
	{ "__array__", (PyCFunction)(void (*)(void))array_array,
	  METH_VARARGS | METH_KEYWORDS,
	  "Convert with numpy.asarray(), without a copy." },
	{ "numpy", penpy_to_numpy, METH_NOARGS,
	  "Return the same memory as a NumPy array." },
	{ "torch", penpy_to_torch, METH_NOARGS,
	  "Return the same memory as a PyTorch tensor. Types that PyTorch "
	  "lacks\n"
	  "are copied to the next larger type." },
	{ "tolist", array_tolist, METH_NOARGS, "Return nested lists." },
	{ NULL, NULL, 0, NULL },
};

static PyGetSetDef array_fields[] = {
	{ "shape", array_shape, NULL, "Tuple of dimensions.", NULL },
	{ "dtype", array_dtype, NULL, "Element type, as NumPy names it.",
	  NULL },
	{ "ndim", array_ndim, NULL, "Number of dimensions.", NULL },
	{ "nbytes", array_nbytes, NULL, "Size in bytes.", NULL },
	{ "shapes", array_shapes, NULL,
	  "Padded and packed fields: the shape of each sample; otherwise None.",
	  NULL },
	{ "offsets", array_offsets, NULL,
	  "Packed fields: the offset of each sample, counted through all rows; "
	  "otherwise None.",
	  NULL },
	{ "before", array_before, NULL,
	  "Padded fields: True if padding precedes the samples.", NULL },
	{ NULL, NULL, NULL, NULL, NULL },
};

static PyType_Slot array_slots[] = {
	{ Py_tp_dealloc, array_dealloc },
	{ Py_tp_methods, array_methods },
	{ Py_tp_getset, array_fields },
	{ Py_tp_repr, array_repr },
	{ Py_tp_iter, array_iter },
	{ Py_mp_subscript, array_item },
	{ Py_mp_length, array_len },
	{ Py_bf_getbuffer, array_buffer },
	{ Py_tp_doc, "An array in a batch, returned by ``batch[\"x\"]``.\n"
		     "\n"
		     "Convert it with `numpy.asarray`, `torch.from_dlpack` or "
		     "`memoryview`, which do\n"
		     "not copy. The memory stays valid as long as the array or "
		     "any view of it\n"
		     "exists, even after the batch and the loader are gone.\n"
		     "\n"
		     "Examples\n"
		     "--------\n"
		     ">>> batch = next(iter(penstock.Loader(\"x.npy\", 256)))\n"
		     ">>> batch[\"x\"].shape, batch[\"x\"].dtype\n"
		     "((256, 8), 'float32')\n"
		     ">>> numpy.asarray(batch[\"x\"]).mean() > 0\n"
		     "True" },
	{ 0, NULL },
};

static PyType_Spec array_spec = {
	.name = "penstock.Array",
	.basicsize = offsetof(struct array, dims),
	.itemsize = sizeof(Py_ssize_t),
	.flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION |
		 Py_TPFLAGS_IMMUTABLETYPE,
	.slots = array_slots,
};

/* ---- ragged: rows of different length ---- */

struct ragged {
	PyObject head;
	struct pen_batch *batch;
	const struct pen_tensor *t; /* valid as long as the batch */
	unsigned forks;
};

static void ragged_dealloc(PyObject *self)
{
	struct ragged *r = (struct ragged *)self;
	PyTypeObject *type = Py_TYPE(self);

	penpy_unref(r->batch, r->forks);
	PyObject_Free(self);
	Py_DECREF(type);
}

static PyObject *ragged_values(PyObject *self, void *unused)
{
	struct ragged *r = (struct ragged *)self;

	(void)unused;
	return penpy_array_new(r->batch,
			       &(struct penpy_view){ r->t->data, r->t->dtype, 1,
						     r->t->shape });
}

static PyObject *ragged_offsets(PyObject *self, void *unused)
{
	struct ragged *r = (struct ragged *)self;
	int64_t n = (int64_t)r->batch->nsamples + 1;

	(void)unused;
	return penpy_array_new(
		r->batch,
		&(struct penpy_view){ (void *)(uintptr_t)r->t->offsets, PEN_I64,
				      1, &n });
}

static PyObject *ragged_shapes(PyObject *self, void *unused)
{
	struct ragged *r = (struct ragged *)self;
	int64_t shape[] = { r->batch->nsamples, r->t->row_ndim };

	(void)unused;
	return penpy_array_new(
		r->batch, &(struct penpy_view){ (void *)(uintptr_t)r->t->shapes,
						PEN_I64, 2, shape });
}

static PyObject *ragged_dtype(PyObject *self, void *unused)
{
	(void)unused;
	return PyUnicode_FromString(
		pen_dtype_name(((struct ragged *)self)->t->dtype));
}

static Py_ssize_t ragged_len(PyObject *self)
{
	return ((struct ragged *)self)->batch->nsamples;
}

static PyObject *ragged_item(PyObject *self, Py_ssize_t i)
{
	struct ragged *r = (struct ragged *)self;
	const struct pen_tensor *t = r->t;

	if (i < 0 || i >= (Py_ssize_t)r->batch->nsamples) {
		PyErr_SetString(PyExc_IndexError, "no such row");
		return NULL;
	}
	return penpy_array_new(
		r->batch,
		&(struct penpy_view){ (char *)t->data +
					      (size_t)t->offsets[i] *
						      pen_dtype_size(t->dtype),
				      t->dtype, t->row_ndim,
				      t->shapes + (size_t)i * t->row_ndim });
}

static PyObject *ragged_convert(PyObject *self, const char *how)
{
	static PyObject *convert;
	PyObject *f = function(&convert, "penstock._convert", "ragged");

	return f ? PyObject_CallFunction(f, "Os", self, how) : NULL;
}

static PyObject *ragged_numpy(PyObject *self, PyObject *unused)
{
	(void)unused;
	return ragged_convert(self, "numpy");
}

static PyObject *ragged_torch(PyObject *self, PyObject *unused)
{
	(void)unused;
	return ragged_convert(self, "torch");
}

static PyObject *ragged_repr(PyObject *self)
{
	struct ragged *r = (struct ragged *)self;

	return PyUnicode_FromFormat(
		"<penstock.Ragged %u rows, %lld %s>", r->batch->nsamples,
		(long long)r->t->shape[0], pen_dtype_name(r->t->dtype));
}

static PyMethodDef ragged_methods[] = {
	{ "numpy", ragged_numpy, METH_NOARGS,
	  "Return (values, offsets, shapes) as NumPy arrays, without a copy." },
	{ "torch", ragged_torch, METH_NOARGS,
	  "Return (values, offsets, shapes) as PyTorch tensors, without a\n"
	  "copy." },
	{ NULL, NULL, 0, NULL },
};

static PyGetSetDef ragged_fields[] = {
	{ "values", ragged_values, NULL, "All rows, one after another.", NULL },
	{ "offsets", ragged_offsets, NULL,
	  "Row i is values[offsets[i]:offsets[i + 1]].", NULL },
	{ "shapes", ragged_shapes, NULL, "The shape of each row.", NULL },
	{ "dtype", ragged_dtype, NULL, "Element type, as NumPy names it.",
	  NULL },
	{ NULL, NULL, NULL, NULL, NULL },
};

static PyType_Slot ragged_slots[] = {
	{ Py_tp_dealloc, ragged_dealloc },
	{ Py_tp_methods, ragged_methods },
	{ Py_tp_getset, ragged_fields },
	{ Py_tp_repr, ragged_repr },
	{ Py_sq_item, ragged_item },
	{ Py_sq_length, ragged_len },
	{ Py_tp_doc,
	  "Samples of different shape in one block of memory.\n"
	  "\n"
	  "`values` has all samples one after another, `offsets` their "
	  "boundaries and\n"
	  "`shapes` their shapes. ``ragged[i]`` is sample i, `len` the number "
	  "of samples.\n"
	  "\n"
	  "Examples\n"
	  "--------\n"
	  ">>> _ = [numpy.save(f\"r{n}.npy\", numpy.zeros(n)) for n in (2, "
	  "3)]\n"
	  ">>> batch = next(iter(penstock.Loader([\"r2.npy\", \"r3.npy\"], "
	  "2)))\n"
	  ">>> batch[\"x\"].offsets.tolist(), batch[\"x\"][1].shape\n"
	  "([0, 2, 5], (3,))" },
	{ 0, NULL },
};

static PyType_Spec ragged_spec = {
	.name = "penstock.Ragged",
	.basicsize = sizeof(struct ragged),
	.flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION |
		 Py_TPFLAGS_IMMUTABLETYPE,
	.slots = ragged_slots,
};

PyObject *penpy_tensor_new(struct pen_batch *b, const struct pen_tensor *t)
{
	if (t->layout == PEN_RAGGED) {
		struct ragged *r = (struct ragged *)PyType_GenericAlloc(
			penpy_ragged_type, 0);

		if (!r)
			return NULL;
		r->batch = b;
		r->t = t;
		r->forks = penpy_forks;
		pen_batch_ref(b);
		return (PyObject *)r;
	}
	PyObject *a =
		penpy_array_new(b, &(struct penpy_view){ t->data, t->dtype,
							 t->ndim, t->shape });

	if (a && (t->layout == PEN_PADDED || t->layout == PEN_PACKED)) {
		((struct array *)a)->shapes = t->shapes;
		((struct array *)a)->offsets = t->offsets;
		((struct array *)a)->before = t->pad_before;
		((struct array *)a)->nrows = b->nsamples;
		((struct array *)a)->row_ndim = t->row_ndim;
	}
	return a;
}

int penpy_array_ready(PyObject *module)
{
	penpy_array_type = (PyTypeObject *)PyType_FromSpec(&array_spec);
	penpy_ragged_type = (PyTypeObject *)PyType_FromSpec(&ragged_spec);
	if (!penpy_array_type || !penpy_ragged_type ||
	    PyModule_AddObjectRef(module, "Array",
				  (PyObject *)penpy_array_type))
		return -1;
	return PyModule_AddObjectRef(module, "Ragged",
				     (PyObject *)penpy_ragged_type);
}
