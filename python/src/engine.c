/*
 * The engine: an open loader. Epochs, resuming and hooks are written in Python
 * on top of it; this file has what must be fast.
 *
 * A wait releases the GIL and returns ten times a second to check for signals,
 * so that Ctrl-C works. If another thread calls close() meanwhile, the waiting
 * thread closes the loader when it returns.
 */
#include "ddict_keys.h"

#include <string.h>

#define LOOK_NS 100000000 /* between checks for signals */

PyTypeObject *penpy_engine_type;

struct engine {
	PyObject head;
	struct pen_loader *l; /* NULL: closed */
	bool busy;	      /* a thread is in next() or restore() */
	bool closing;	      /* ... and closes when it returns */
	unsigned forks;
	PyObject *dict; /* that it reads from, or NULL */
	uint64_t ncols; /* of a sparse matrix; 0: unknown */
};

/* The loader if it is usable, otherwise NULL and an exception. */
static struct pen_loader *usable(struct engine *e)
{
	if (e->forks != penpy_forks) {
		PyErr_SetString(
			PyExc_RuntimeError,
			"this loader was opened before fork() and has no "
			"threads in the child; open it in the child, or pass a "
			"penstock.Dataset to worker processes");
		return NULL;
	}
	if (!e->l || e->closing) {
		PyErr_SetString(PyExc_ValueError, "the loader is closed");
		return NULL;
	}
	return e->l;
}

/* For all calls except next() and close(), which wait. */
static struct pen_loader *free_one(struct engine *e)
{
	struct pen_loader *l = usable(e);

	if (l && e->busy) {
		PyErr_SetString(PyExc_RuntimeError,
				"another thread is using this loader, which "
				"serves one at a time");
		return NULL;
	}
	return l;
}

static void close_now(struct engine *e)
{
	struct pen_loader *l = e->l;

	e->l = NULL;
	if (l && e->forks == penpy_forks) {
		Py_BEGIN_ALLOW_THREADS pen_loader_close(l);
		Py_END_ALLOW_THREADS
	}
	penpy_dict_drop(e->dict);
	e->dict = NULL;
}

static int add_paths(struct pen_spec *spec, PyObject *paths, PyObject **dict,
		     struct pen_err *err)
{
	Py_ssize_t n = PyList_Size(paths);

	for (Py_ssize_t i = 0; i < n; i++) {
		PyObject *o = PyList_GetItem(paths, i), *bytes = NULL;
		struct pen_ddict *d = *dict ? NULL : penpy_dict_hold(o);
		int rc;

		if (d) {
			*dict = o;
			rc = pen_spec_add_ddict(spec, d, err);
		} else if (PyErr_Occurred() ||
			   !PyUnicode_FSConverter(o, &bytes)) {
			return PEN_EINVAL;
		} else {
			rc = pen_spec_add_path(spec, PyBytes_AsString(bytes),
					       err);
			Py_DECREF(bytes);
		}
		if (rc)
			return rc;
	}
	return 0;
}

static int add_settings(struct pen_spec *spec, PyObject *settings,
			struct pen_err *err)
{
	Py_ssize_t n = PyList_Size(settings);

	for (Py_ssize_t i = 0; i < n; i++) {
		const char *key;
		PyObject *value; /* a path may contain any bytes */
		int rc;

		if (!PyArg_ParseTuple(PyList_GetItem(settings, i), "sO&", &key,
				      PyUnicode_FSConverter, &value))
			return PEN_EINVAL;
		rc = pen_spec_set(spec, key, PyBytes_AsString(value), err);
		Py_DECREF(value);
		if (rc)
			return rc;
	}
	return 0;
}

static PyObject *engine_new(PyTypeObject *type, PyObject *args, PyObject *kw)
{
	struct pen_err err = { 0 };
	struct pen_spec *spec = NULL;
	struct engine *e = NULL;
	PyObject *paths, *settings, *dict = NULL;
	int asked = 0, rc;

	(void)kw;
	if (!PyArg_ParseTuple(args, "O!O!|p", &PyList_Type, &paths,
			      &PyList_Type, &settings, &asked))
		return NULL;
	rc = pen_spec_new(&spec, &err);
	if (!rc)
		rc = add_paths(spec, paths, &dict, &err);
	if (!rc)
		rc = add_settings(spec, settings, &err);
	if (!rc) {
		e = (struct engine *)PyType_GenericAlloc(type, 0);
		rc = e ? 0 : PEN_ENOMEM;
	}
	if (e) {
		e->dict = dict;
		dict = NULL;
	}
	penpy_dict_drop(dict);
	if (!rc) {
		e->forks = penpy_forks;
		Py_BEGIN_ALLOW_THREADS rc =
			asked ? pen_loader_open_asked(&e->l, spec, &err)
			      : pen_loader_open(&e->l, spec, &err);
		Py_END_ALLOW_THREADS
	}
	pen_spec_free(spec);
	if (!rc)
		return (PyObject *)e;
	Py_XDECREF((PyObject *)e);
	return PyErr_Occurred() ? NULL : penpy_raise(&err);
}

static void engine_dealloc(PyObject *self)
{
	PyTypeObject *type = Py_TYPE(self);

	close_now((struct engine *)self);
	PyObject_Free(self);
	Py_DECREF(type);
}

/* Waits and checks for signals. -100: a Python exception is set. */
static int wait_next(struct engine *e, struct pen_batch **b,
		     struct pen_err *err)
{
	struct pen_loader *l = e->l;
	int rc;

	do {
		Py_BEGIN_ALLOW_THREADS rc =
			pen_loader_next_within(l, LOOK_NS, b, err);
		Py_END_ALLOW_THREADS if (rc == PEN_AGAIN &&
					 PyErr_CheckSignals()) return -100;
	} while (rc == PEN_AGAIN && !e->closing);
	return rc;
}

static PyObject *engine_next(PyObject *self, PyObject *unused)
{
	struct engine *e = (struct engine *)self;
	struct pen_loader *l = free_one(e);
	struct pen_err err = { 0 };
	struct pen_batch *b = NULL;
	int rc;

	(void)unused;
	if (!l)
		return NULL;
	/* a ready batch is not worth releasing the GIL */
	rc = pen_loader_next_within(l, 0, &b, &err);
	if (rc == PEN_AGAIN) {
		e->busy = true;
		Py_INCREF(self);
		rc = wait_next(e, &b, &err);
		e->busy = false;
		if (e->closing) {
			close_now(e);
			if (!rc)
				pen_batch_unref(b);
			PyErr_SetString(PyExc_ValueError,
					"the loader was closed");
			rc = -100;
		}
		Py_DECREF(self);
	}
	if (!rc)
		return penpy_batch_new(b, e->ncols);
	if (rc == PEN_END)
		Py_RETURN_NONE;
	return rc == -100 ? NULL : penpy_raise(&err);
}

static PyObject *engine_ask(PyObject *self, PyObject *arg)
{
	struct pen_loader *l = free_one((struct engine *)self);
	struct pen_err err = { 0 };
	Py_buffer v;
	int rc;

	if (!l || PyObject_GetBuffer(arg, &v, PyBUF_SIMPLE))
		return NULL;
	rc = pen_loader_ask(l, v.buf, (uint32_t)(v.len / 8), &err);
	PyBuffer_Release(&v);
	if (rc == PEN_EINVAL)
		return PyErr_Format(PyExc_IndexError, "%s %s", err.where,
				    err.msg);
	if (rc)
		return penpy_raise(&err);
	Py_RETURN_NONE;
}

static PyObject *engine_close(PyObject *self, PyObject *unused)
{
	struct engine *e = (struct engine *)self;

	(void)unused;
	if (e->busy)
		e->closing = true;
	else
		close_now(e);
	Py_RETURN_NONE;
}

static PyObject *engine_state(PyObject *self, PyObject *unused)
{
	struct pen_loader *l = usable((struct engine *)self);
	struct pen_state s;

	(void)unused;
	if (!l)
		return NULL;
	pen_loader_state(l, &s);
	return Py_BuildValue("{sIsKsKsKsKsK}", "version", s.version, "seed",
			     (unsigned long long)s.seed, "epoch",
			     (unsigned long long)s.epoch, "position",
			     (unsigned long long)s.position, "length",
			     (unsigned long long)s.length, "order",
			     (unsigned long long)s.order);
}

static PyObject *engine_restore(PyObject *self, PyObject *args)
{
	struct engine *e = (struct engine *)self;
	struct pen_loader *l = free_one(e);
	unsigned long long seed, epoch, position, length, order;
	struct pen_err err = { 0 };
	struct pen_state s = { 0 };
	int rc;

	if (!l || !PyArg_ParseTuple(args, "IKKKKK", &s.version, &seed, &epoch,
				    &position, &length, &order))
		return NULL;
	s.seed = seed;
	s.epoch = epoch;
	s.position = position;
	s.length = length;
	s.order = order;
	e->busy = true; /* excludes next() and close() */
	Py_BEGIN_ALLOW_THREADS rc = pen_loader_restore(l, &s, &err);
	Py_END_ALLOW_THREADS e->busy = false;
	if (e->closing)
		close_now(e);
	if (rc)
		return penpy_raise(&err);
	Py_RETURN_NONE;
}

static int put(PyObject *dict, const char *name, PyObject *value)
{
	int rc = value ? PyDict_SetItemString(dict, name, value) : -1;

	Py_XDECREF(value);
	return rc;
}

static PyObject *engine_stats(PyObject *self, PyObject *unused)
{
	struct pen_loader *l = usable((struct engine *)self);
	struct pen_stats s;
	PyObject *d = PyDict_New();
	int rc = 0;

	(void)unused;
	if (!l || !d) {
		Py_XDECREF(d);
		return NULL;
	}
	pen_loader_stats(l, &s, sizeof(s));
#define COUNT(x)                                                               \
	if (!rc)                                                               \
	rc = put(d, #x, PyLong_FromUnsignedLongLong(s.x))
#define SECONDS(x)                                                             \
	if (!rc)                                                               \
	rc = put(d, #x "_s", PyFloat_FromDouble((double)s.x##_ns / 1e9))
	COUNT(nsamples);
	COUNT(nbatches);
	COUNT(nskipped);
	COUNT(nsubstituted);
	COUNT(payload_bytes);
	COUNT(read_bytes);
	COUNT(nreads);
	SECONDS(plan);
	SECONDS(read);
	SECONDS(file_open);
	SECONDS(unpack);
	SECONDS(decode);
	SECONDS(emit);
	SECONDS(idle);
	SECONDS(wait);
	SECONDS(first_batch);
	SECONDS(open);
	SECONDS(elapsed);
	COUNT(memory_bytes);
	COUNT(memory_peak_bytes);
	COUNT(memory_budget_bytes);
	COUNT(nthreads);
	COUNT(prefetch);
	COUNT(queue_depth);
	COUNT(cache_hits);
	COUNT(cache_bytes);
	SECONDS(cpu);
	SECONDS(queue);
	SECONDS(memory_wait);
	COUNT(prefetch_wanted);
#undef COUNT
#undef SECONDS
	if (!rc)
		rc = put(d, "ready_mean", PyFloat_FromDouble(s.ready_mean));
	if (rc)
		Py_CLEAR(d);
	return d;
}

static PyObject *engine_wait_percentile(PyObject *self, PyObject *arg)
{
	struct pen_loader *l = usable((struct engine *)self);
	double p = PyFloat_AsDouble(arg);

	if (!l || PyErr_Occurred())
		return NULL;
	return PyFloat_FromDouble((double)pen_loader_wait_percentile(l, p) /
				  1e9);
}

static PyObject *engine_skipped(PyObject *self, PyObject *unused)
{
	struct pen_loader *l = usable((struct engine *)self);
	PyObject *out = l ? PyList_New(0) : NULL;
	struct pen_err err;
	uint64_t sample;

	(void)unused;
	for (uint64_t i = 0; out && !pen_loader_skipped(l, i, &sample, &err);
	     i++) {
		PyObject *where = penpy_text(err.where);
		PyObject *msg = where ? penpy_text(err.msg) : NULL, *x = NULL;

		if (msg)
			x = Py_BuildValue("(KOO)", (unsigned long long)sample,
					  where, msg);
		if (!x || PyList_Append(out, x))
			Py_CLEAR(out);
		Py_XDECREF(where);
		Py_XDECREF(msg);
		Py_XDECREF(x);
	}
	return out;
}

static PyObject *shape_of(const struct pen_field *f)
{
	PyObject *out = PyTuple_New(f->ndim);

	for (uint32_t i = 0; out && i < f->ndim; i++) {
		PyObject *n = PyLong_FromLongLong(f->shape[i]);

		if (!n || PyTuple_SetItem(out, i, n))
			Py_CLEAR(out);
	}
	return out;
}

/* [(name, dtype, shape, layout)] */
static PyObject *engine_fields(PyObject *self, void *unused)
{
	static const char *const layouts[] = { "dense", "padded", "ragged",
					       "packed" };
	struct pen_loader *l = usable((struct engine *)self);
	PyObject *out = l ? PyList_New(0) : NULL;
	const struct pen_dataset *ds = l ? pen_loader_dataset(l) : NULL;

	(void)unused;
	for (uint32_t i = 0; out && i < pen_dataset_nfields(ds); i++) {
		const struct pen_field *f = pen_dataset_field(ds, i);
		PyObject *shape = shape_of(f), *x = NULL;

		if (shape)
			x = Py_BuildValue("(ssNs)", f->name,
					  pen_dtype_name(f->dtype), shape,
					  layouts[f->layout]);
		if (!x || PyList_Append(out, x))
			Py_CLEAR(out);
		Py_XDECREF(x);
	}
	return out;
}

/* labels(i): names of the codes of field i; None if it has no codes */
static PyObject *engine_labels(PyObject *self, PyObject *arg)
{
	struct pen_loader *l = usable((struct engine *)self);
	unsigned long long field = PyLong_AsUnsignedLongLong(arg), n;
	const struct pen_dataset *ds = l ? pen_loader_dataset(l) : NULL;
	PyObject *out;
	char name[4096];

	if (!l || PyErr_Occurred())
		return NULL;
	if (field >= pen_dataset_nfields(ds))
		return PyErr_Format(PyExc_IndexError, "no such field");
	n = pen_dataset_nlabels(ds, (uint32_t)field);
	if (!n)
		Py_RETURN_NONE;
	out = PyList_New(0);
	for (uint64_t i = 0; out && i < n; i++) {
		PyObject *x;

		if (pen_dataset_label(ds, (uint32_t)field, i, name,
				      sizeof(name)))
			name[0] = '\0';
		x = PyUnicode_DecodeUTF8(name, (Py_ssize_t)strlen(name),
					 "replace");
		if (!x || PyList_Append(out, x))
			Py_CLEAR(out);
		Py_XDECREF(x);
	}
	return out;
}

static void add_fact(void *dict, const char *name, const char *value)
{
	PyObject *text = PyUnicode_DecodeUTF8(value, (Py_ssize_t)strlen(value),
					      "replace");

	if (text && !PyErr_Occurred())
		PyDict_SetItemString(dict, name, text);
	Py_XDECREF(text);
}

static PyObject *engine_about(PyObject *self, PyObject *unused)
{
	struct pen_loader *l = usable((struct engine *)self);
	PyObject *out = l ? PyDict_New() : NULL;

	(void)unused;
	if (out)
		pen_dataset_describe(pen_loader_dataset(l), out, add_fact,
				     NULL);
	if (PyErr_Occurred())
		Py_CLEAR(out);
	return out;
}

static void add_warning(void *list, const struct pen_err *e)
{
	PyObject *where = PyErr_Occurred() ? NULL : penpy_text(e->where);
	PyObject *msg = where ? penpy_text(e->msg) : NULL, *x = NULL;

	if (msg)
		x = PyTuple_Pack(2, where, msg);
	if (x)
		(void)PyList_Append(list, x);
	Py_XDECREF(where);
	Py_XDECREF(msg);
	Py_XDECREF(x);
}

static PyObject *engine_warnings(PyObject *self, PyObject *unused)
{
	struct pen_loader *l = usable((struct engine *)self);
	PyObject *out = l ? PyList_New(0) : NULL;

	(void)unused;
	if (out)
		pen_dataset_warnings(pen_loader_dataset(l), out, add_warning);
	if (PyErr_Occurred())
		Py_CLEAR(out);
	return out;
}

static PyObject *engine_object_name(PyObject *self, PyObject *arg)
{
	struct pen_loader *l = usable((struct engine *)self);
	unsigned long long sample = PyLong_AsUnsignedLongLong(arg);
	char path[4096];

	if (!l || PyErr_Occurred())
		return NULL;
	if (sample >= pen_dataset_nsamples(pen_loader_dataset(l))) {
		PyErr_SetString(PyExc_IndexError, "no such sample");
		return NULL;
	}
	pen_dataset_object_name(pen_loader_dataset(l), sample, path,
				sizeof(path));
	return PyUnicode_DecodeFSDefault(path);
}

enum { NBATCHES, NSAMPLES, NOBJECTS, NBYTES };

static PyObject *engine_count(PyObject *self, void *which)
{
	struct pen_loader *l = usable((struct engine *)self);
	const struct pen_dataset *ds = l ? pen_loader_dataset(l) : NULL;
	uint64_t n;

	if (!l)
		return NULL;
	switch ((uintptr_t)which) {
	case NBATCHES:
		n = pen_loader_nbatches(l);
		break;
	case NSAMPLES:
		n = pen_dataset_nsamples(ds);
		break;
	case NOBJECTS:
		n = pen_dataset_nobjects(ds);
		break;
	default:
		n = pen_dataset_nbytes(ds);
	}
	return PyLong_FromUnsignedLongLong(n);
}

static PyObject *engine_format(PyObject *self, void *unused)
{
	struct pen_loader *l = usable((struct engine *)self);

	(void)unused;
	return l ? PyUnicode_FromString(
			   pen_dataset_format(pen_loader_dataset(l)))
		 : NULL;
}

static PyObject *engine_store(PyObject *self, void *unused)
{
	struct pen_loader *l = usable((struct engine *)self);

	(void)unused;
	return l ? PyUnicode_FromString(
			   pen_dataset_store(pen_loader_dataset(l)))
		 : NULL;
}

static PyObject *engine_closed(PyObject *self, void *unused)
{
	struct engine *e = (struct engine *)self;

	(void)unused;
	return PyBool_FromLong(!e->l || e->closing);
}

static PyObject *engine_ncols(PyObject *self, void *unused)
{
	(void)unused;
	return PyLong_FromUnsignedLongLong(((struct engine *)self)->ncols);
}

static int engine_set_ncols(PyObject *self, PyObject *value, void *unused)
{
	unsigned long long n = value ? PyLong_AsUnsignedLongLong(value) : 0;

	(void)unused;
	if (PyErr_Occurred())
		return -1;
	((struct engine *)self)->ncols = n;
	return 0;
}

static PyMethodDef engine_methods[] = {
	{ "next", engine_next, METH_NOARGS,
	  "The next batch; None once after the last one of each epoch." },
	{ "ask", engine_ask, METH_O,
	  "Request a batch of these samples (uint64)." },
	{ "close", engine_close, METH_NOARGS, "End all threads." },
	{ "state", engine_state, METH_NOARGS, "The current position." },
	{ "restore", engine_restore, METH_VARARGS,
	  "Continue from a position." },
	{ "stats", engine_stats, METH_NOARGS, "Counters since open." },
	{ "wait_percentile", engine_wait_percentile, METH_O,
	  "Percentile of the wait for a batch, in seconds." },
	{ "skipped", engine_skipped, METH_NOARGS,
	  "[(sample, where, why)] of skipped samples." },
	{ "labels", engine_labels, METH_O, "Names of a field's codes." },
	{ "about", engine_about, METH_NOARGS, "{fact: value} about the data." },
	{ "warnings", engine_warnings, METH_NOARGS,
	  "[(where, what)] of doubtful data." },
	{ "object_name", engine_object_name, METH_O,
	  "The file that contains a sample." },
	{ NULL, NULL, 0, NULL },
};

static PyGetSetDef engine_getset[] = {
	{ "nbatches", engine_count, NULL, "per epoch", (void *)NBATCHES },
	{ "nsamples", engine_count, NULL, "in the data set", (void *)NSAMPLES },
	{ "nobjects", engine_count, NULL, "files", (void *)NOBJECTS },
	{ "nbytes", engine_count, NULL, "of all files", (void *)NBYTES },
	{ "fields", engine_fields, NULL, "(name, dtype, shape, layout)s",
	  NULL },
	{ "format", engine_format, NULL, "its name", NULL },
	{ "store", engine_store, NULL, "its name", NULL },
	{ "ncols", engine_ncols, engine_set_ncols,
	  "columns of a sparse matrix, for batches; 0: unknown", NULL },
	{ "closed", engine_closed, NULL, "True after close()", NULL },
	{ NULL, NULL, NULL, NULL, NULL },
};

static PyType_Slot engine_slots[] = {
	{ Py_tp_new, engine_new },
	{ Py_tp_dealloc, engine_dealloc },
	{ Py_tp_methods, engine_methods },
	{ Py_tp_getset, engine_getset },
	{ Py_tp_doc, "Engine(paths, settings, asked=False)" },
	{ 0, NULL },
};

static PyType_Spec engine_spec = {
	.name = "penstock._penstock.Engine",
	.basicsize = sizeof(struct engine),
	.flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_IMMUTABLETYPE,
	.slots = engine_slots,
};

int penpy_engine_ready(PyObject *module)
{
	penpy_engine_type = (PyTypeObject *)PyType_FromSpec(&engine_spec);
	if (!penpy_engine_type)
		return -1;
	return PyModule_AddObjectRef(module, "Engine",
				     (PyObject *)penpy_engine_type);
}
