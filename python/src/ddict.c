/*
 * The dictionary: keys, values and lifetimes. The mapping interface on top is
 * written in Python. A lent value refers to its request, which refers to the
 * dictionary, so the dictionary cannot be closed as long as values are lent.
 *
 * All calls release the GIL, since any may wait for another process.
 */
#include "ddict_keys.h"

#include <string.h>

static PyTypeObject *dict_type, *got_type, *lent_type;

struct dict {
	PyObject head;
	struct pen_ddict *d; /* NULL: closed */
	struct pen_ranks *ranks;
	Py_ssize_t nlent, nloaders, busy;
};

struct got {
	PyObject head;
	struct dict *of;
	struct pen_got *g;
	bool waited, waiting;
	unsigned forks;
};

struct lent {
	PyObject head;
	struct got *of;
	struct pen_value v;
};

/* --- the dictionary --- */

static struct dict *begin(PyObject *self)
{
	struct dict *d = (struct dict *)self;

	if (!d->d) {
		PyErr_SetString(PyExc_ValueError, "the dictionary is closed");
		return NULL;
	}
	d->busy++;
	return d;
}

static PyObject *end(struct dict *d, int rc, const struct pen_err *err)
{
	d->busy--;
	if (rc < 0)
		return penpy_raise(err);
	Py_RETURN_NONE;
}

static void close_now(struct dict *d)
{
	struct pen_ddict *was = d->d;
	struct pen_ranks *ranks = d->ranks;

	d->d = NULL;
	d->ranks = NULL;
	Py_BEGIN_ALLOW_THREADS pen_ddict_close(was);
	pen_ranks_close(ranks);
	Py_END_ALLOW_THREADS
}

/* Dict([setting], ranks) */
static PyObject *dict_new(PyTypeObject *type, PyObject *args, PyObject *kw)
{
	const char *set[32];
	struct pen_err err = { 0 };
	PyObject *list;
	struct dict *d;
	int with_ranks, rc = 0;
	Py_ssize_t n;

	(void)kw;
	if (!PyArg_ParseTuple(args, "O!p", &PyList_Type, &list, &with_ranks))
		return NULL;
	n = PyList_Size(list);
	if (n > 32)
		return PyErr_Format(PyExc_ValueError, "too many settings");
	for (Py_ssize_t i = 0; i < n; i++) {
		set[i] = PyUnicode_AsUTF8AndSize(PyList_GetItem(list, i), NULL);
		if (!set[i])
			return NULL;
	}
	d = (struct dict *)PyType_GenericAlloc(type, 0);
	if (!d)
		return NULL;
	Py_BEGIN_ALLOW_THREADS if (with_ranks)
		rc = pen_ranks_open(&d->ranks, &err);
	if (!rc)
		rc = pen_ddict_open(&d->d, d->ranks, set, (uint32_t)n, &err);
	Py_END_ALLOW_THREADS if (!rc) return (PyObject *)d;
	Py_DECREF((PyObject *)d);
	return penpy_raise(&err);
}

static void dict_dealloc(PyObject *self)
{
	PyTypeObject *type = Py_TYPE(self);

	close_now((struct dict *)self);
	PyObject_Free(self);
	Py_DECREF(type);
}

struct pen_ddict *penpy_dict_hold(PyObject *o)
{
	struct dict *d = (struct dict *)o;

	if (!PyObject_TypeCheck(o, dict_type))
		return NULL;
	if (!d->d) {
		PyErr_SetString(PyExc_ValueError, "the dictionary is closed");
		return NULL;
	}
	Py_INCREF(o);
	d->nloaders++;
	return d->d;
}

void penpy_dict_drop(PyObject *o)
{
	if (!o)
		return;
	((struct dict *)o)->nloaders--;
	Py_DECREF(o);
}

static PyObject *dict_close(PyObject *self, PyObject *unused)
{
	struct dict *d = (struct dict *)self;

	(void)unused;
	if (d->busy || d->nlent || d->nloaders) {
		PyErr_SetString(
			PyExc_BufferError,
			d->busy	    ? "another thread is using the dictionary"
			: !d->nlent ? "a loader still reads from the "
				      "dictionary; close it first"
				    : "views of values are still in use; "
				      "delete them before closing");
		return NULL;
	}
	close_now(d);
	Py_RETURN_NONE;
}

static PyObject *dict_put(PyObject *self, PyObject *args)
{
	struct pen_err err = { 0 };
	struct pen_key k;
	struct dict *d;
	PyObject *key;
	Py_buffer v;
	int rc;

	if (!PyArg_ParseTuple(args, "Oy*:put", &key, &v))
		return NULL;
	d = penpy_to_key(key, &k) ? NULL : begin(self);
	if (!d) {
		PyBuffer_Release(&v);
		return NULL;
	}
	Py_BEGIN_ALLOW_THREADS rc = pen_ddict_put(
		d->d, k, (struct pen_value){ v.buf, (uint64_t)v.len }, &err);
	Py_END_ALLOW_THREADS PyBuffer_Release(&v);
	return end(d, rc, &err);
}

/* put_many(keys, [buffer]) */
static PyObject *dict_put_many(PyObject *self, PyObject *args)
{
	struct pen_err err = { 0 };
	struct penpy_views v = { 0 };
	PyObject *keys, *list, *out = NULL;
	struct penpy_keys k;
	struct dict *d;
	int rc;

	if (!PyArg_ParseTuple(args, "OO!:put_many", &keys, &PyList_Type, &list))
		return NULL;
	if (penpy_to_keys(keys, &k))
		return NULL;
	if (penpy_to_views(list, &v))
		goto out;
	if (v.n != k.n) {
		PyErr_Format(PyExc_ValueError, "%zd keys and %zd values", k.n,
			     v.n);
		goto out;
	}
	d = begin(self);
	if (!d)
		goto out;
	Py_BEGIN_ALLOW_THREADS rc =
		pen_ddict_put_many(d->d, k.k, v.v, (uint64_t)v.n, &err);
	Py_END_ALLOW_THREADS out = end(d, rc, &err);
out:
	penpy_free_views(&v);
	penpy_free_keys(&k);
	return out;
}

/* get(key) -> bytes or None */
static PyObject *dict_get(PyObject *self, PyObject *key)
{
	struct pen_err err = { 0 };
	struct pen_got *g = NULL;
	PyObject *out = NULL;
	struct pen_key k;
	struct dict *d;
	int rc;

	d = penpy_to_key(key, &k) ? NULL : begin(self);
	if (!d)
		return NULL;
	Py_BEGIN_ALLOW_THREADS rc = pen_ddict_get_many(d->d, &k, 1, &g, &err);
	Py_END_ALLOW_THREADS if (rc) return end(d, rc, &err);
	if (g->values[0].data)
		out = PyBytes_FromStringAndSize(g->values[0].data,
						(Py_ssize_t)g->values[0].len);
	pen_got_free(g);
	d->busy--;
	if (out || PyErr_Occurred())
		return out;
	Py_RETURN_NONE;
}

/* pop(key) -> bytes or None */
static PyObject *dict_pop(PyObject *self, PyObject *key)
{
	struct pen_err err = { 0 };
	struct pen_got *g = NULL;
	PyObject *out;
	struct pen_key k;
	struct dict *d;
	int rc;

	d = penpy_to_key(key, &k) ? NULL : begin(self);
	if (!d)
		return NULL;
	Py_BEGIN_ALLOW_THREADS rc = pen_ddict_pop(d->d, k, &g, &err);
	Py_END_ALLOW_THREADS if (rc) return end(d, rc == PEN_ENOTFOUND ? 0 : rc,
						&err);
	out = PyBytes_FromStringAndSize(g->values[0].data,
					(Py_ssize_t)g->values[0].len);
	pen_got_free(g);
	d->busy--;
	return out;
}

static PyObject *dict_contains(PyObject *self, PyObject *key)
{
	struct pen_err err = { 0 };
	struct pen_key k;
	struct dict *d;
	int rc;

	d = penpy_to_key(key, &k) ? NULL : begin(self);
	if (!d)
		return NULL;
	Py_BEGIN_ALLOW_THREADS rc = pen_ddict_contains(d->d, k, &err);
	Py_END_ALLOW_THREADS if (rc < 0) return end(d, rc, &err);
	d->busy--;
	return PyBool_FromLong(rc);
}

/* ask(keys) -> Got */
static PyObject *dict_ask(PyObject *self, PyObject *keys)
{
	struct pen_err err = { 0 };
	struct got *o = NULL;
	struct penpy_keys k;
	struct dict *d;
	int rc = 0;

	if (penpy_to_keys(keys, &k))
		return NULL;
	d = begin(self);
	if (d)
		o = (struct got *)PyType_GenericAlloc(got_type, 0);
	if (o) {
		Py_BEGIN_ALLOW_THREADS rc =
			pen_ddict_ask(d->d, k.k, (uint64_t)k.n, &o->g, &err);
		Py_END_ALLOW_THREADS Py_INCREF(self);
		o->of = d;
		o->forks = penpy_forks;
		d->nlent++;
	}
	penpy_free_keys(&k);
	if (d)
		d->busy--;
	if (rc) {
		Py_DECREF((PyObject *)o);
		return penpy_raise(&err);
	}
	return (PyObject *)o;
}

static int add_key(void *list, struct pen_key k)
{
	PyObject *o = penpy_from_key(k);
	int rc = o ? PyList_Append(list, o) : -1;

	Py_XDECREF(o);
	return rc ? 1 : 0;
}

/* keys(shard) -> list; keeps the GIL, because it creates objects */
static PyObject *dict_keys(PyObject *self, PyObject *args)
{
	struct pen_err err = { 0 };
	struct dict *d;
	PyObject *out;
	int shard, rc;

	if (!PyArg_ParseTuple(args, "i:keys", &shard))
		return NULL;
	d = begin(self);
	out = d ? PyList_New(0) : NULL;
	if (!out) {
		if (d)
			d->busy--;
		return NULL;
	}
	rc = pen_ddict_keys(d->d, shard, add_key, out, &err);
	d->busy--;
	if (!rc)
		return out;
	Py_DECREF(out);
	return rc < 0 ? penpy_raise(&err) : NULL;
}

static PyObject *dict_len(PyObject *self, PyObject *unused)
{
	struct pen_err err = { 0 };
	struct dict *d = begin(self);
	uint64_t n = 0;
	int rc;

	(void)unused;
	if (!d)
		return NULL;
	Py_BEGIN_ALLOW_THREADS rc = pen_ddict_len(d->d, &n, &err);
	Py_END_ALLOW_THREADS if (rc) return end(d, rc, &err);
	d->busy--;
	return PyLong_FromUnsignedLongLong(n);
}

/* Calls without arguments and result. */
static PyObject *simply(PyObject *self,
			int (*what)(struct pen_ddict *, struct pen_err *))
{
	struct pen_err err = { 0 };
	struct dict *d = begin(self);
	int rc;

	if (!d)
		return NULL;
	Py_BEGIN_ALLOW_THREADS rc = what(d->d, &err);
	Py_END_ALLOW_THREADS return end(d, rc, &err);
}

static PyObject *dict_clear(PyObject *self, PyObject *unused)
{
	(void)unused;
	return simply(self, pen_ddict_clear);
}

static PyObject *dict_freeze(PyObject *self, PyObject *unused)
{
	(void)unused;
	return simply(self, pen_ddict_freeze);
}

static PyObject *dict_compact(PyObject *self, PyObject *unused)
{
	(void)unused;
	return simply(self, pen_ddict_compact);
}

/* fetch_add(key, n) -> the value before */
static PyObject *dict_fetch_add(PyObject *self, PyObject *args)
{
	struct pen_err err = { 0 };
	struct pen_key k;
	struct dict *d;
	PyObject *key;
	uint64_t old = 0;
	long long n;
	int rc;

	if (!PyArg_ParseTuple(args, "OL:fetch_add", &key, &n) ||
	    penpy_to_key(key, &k))
		return NULL;
	d = begin(self);
	if (!d)
		return NULL;
	Py_BEGIN_ALLOW_THREADS rc =
		pen_ddict_fetch_add(d->d, k, (uint64_t)n, &old, &err);
	Py_END_ALLOW_THREADS d->busy--;
	return rc ? penpy_raise(&err) : PyLong_FromLongLong((int64_t)old);
}

/* wait_for(key, ns) -> bool */
static PyObject *dict_wait_for(PyObject *self, PyObject *args)
{
	struct pen_err err = { 0 };
	unsigned long long ns;
	struct pen_key k;
	struct dict *d;
	PyObject *key;
	int rc;

	if (!PyArg_ParseTuple(args, "OK:wait_for", &key, &ns) ||
	    penpy_to_key(key, &k))
		return NULL;
	d = begin(self);
	if (!d)
		return NULL;
	Py_BEGIN_ALLOW_THREADS rc = pen_ddict_wait_for(d->d, k, ns, &err);
	Py_END_ALLOW_THREADS d->busy--;
	if (rc && rc != PEN_AGAIN)
		return penpy_raise(&err);
	return PyBool_FromLong(rc == 0);
}

static PyObject *dict_owner(PyObject *self, PyObject *key)
{
	struct pen_key k;
	struct dict *d = penpy_to_key(key, &k) ? NULL : begin(self);

	if (!d)
		return NULL;
	d->busy--;
	return PyLong_FromUnsignedLong(pen_ddict_owner(d->d, k));
}

static PyObject *dict_barrier(PyObject *self, PyObject *unused)
{
	struct pen_err err = { 0 };
	struct dict *d = begin(self);
	int rc = 0;

	(void)unused;
	if (!d)
		return NULL;
	Py_BEGIN_ALLOW_THREADS if (d->ranks)
		rc = pen_ranks_barrier(d->ranks, &err);
	Py_END_ALLOW_THREADS return end(d, rc, &err);
}

static PyObject *dict_persist(PyObject *self, PyObject *path)
{
	struct pen_err err = { 0 };
	PyObject *bytes;
	struct dict *d;
	int rc;

	if (!PyUnicode_FSConverter(path, &bytes))
		return NULL;
	d = begin(self);
	if (!d) {
		Py_DECREF(bytes);
		return NULL;
	}
	Py_BEGIN_ALLOW_THREADS rc =
		pen_ddict_persist(d->d, PyBytes_AsString(bytes), &err);
	Py_END_ALLOW_THREADS Py_DECREF(bytes);
	return end(d, rc, &err);
}

static PyObject *dict_stats(PyObject *self, PyObject *args)
{
	struct pen_shard_stats s = { 0 };
	struct pen_err err = { 0 };
	struct dict *d;
	unsigned shard;
	int rc;

	if (!PyArg_ParseTuple(args, "I:stats", &shard))
		return NULL;
	d = begin(self);
	if (!d)
		return NULL;
	Py_BEGIN_ALLOW_THREADS rc =
		pen_ddict_stats(d->d, shard, &s, sizeof(s), &err);
	Py_END_ALLOW_THREADS if (rc) return end(d, rc, &err);
	d->busy--;
	return Py_BuildValue(
		"{sI ss sK sK sK sK sK sK sd sI sK sK sK sd sK}", "shard",
		s.shard, "host", s.host, "total_bytes", s.total_bytes,
		"used_bytes", s.used_bytes, "free_bytes", s.free_bytes,
		"garbage_bytes", s.garbage_bytes, "value_bytes", s.value_bytes,
		"keys", s.nkeys, "utilisation", s.utilisation, "processes",
		s.nprocesses, "puts", s.nputs, "gets", s.ngets, "served",
		s.nserved, "wait_s", (double)s.wait_ns / 1e9, "free_blocks",
		s.nfree_blocks);
}

static PyObject *dict_about(PyObject *self, PyObject *unused)
{
	struct dict *d = begin(self);
	PyObject *out;

	(void)unused;
	if (!d)
		return NULL;
	out = Py_BuildValue("(sIii)", pen_ddict_transport(d->d),
			    pen_ddict_nshards(d->d),
			    d->ranks ? pen_ranks_rank(d->ranks) : 0,
			    d->ranks ? pen_ranks_size(d->ranks) : 1);
	d->busy--;
	return out;
}

/* --- requested values --- */

/* Waits for values that were not waited for. In a forked child they never
 * arrive, and nothing is freed. */
static void free_got(struct got *o)
{
	if (o->waited) {
		pen_got_free(o->g);
		return;
	}
	if (o->forks != penpy_forks)
		return;
	Py_BEGIN_ALLOW_THREADS pen_got_free(o->g);
	Py_END_ALLOW_THREADS
}

static void got_dealloc(PyObject *self)
{
	struct got *o = (struct got *)self;
	PyTypeObject *type = Py_TYPE(self);

	if (o->of) {
		free_got(o);
		o->of->nlent--;
		Py_DECREF((PyObject *)o->of);
	}
	PyObject_Free(self);
	Py_DECREF(type);
}

static int got_wait(struct got *o)
{
	struct pen_err err = { 0 };
	int rc;

	if (o->forks != penpy_forks) {
		PyErr_SetString(PyExc_RuntimeError,
				"these values were requested before fork(); "
				"request them again in the child");
		return -1;
	}
	if (o->waited)
		return 0;
	if (o->waiting) {
		PyErr_SetString(PyExc_RuntimeError,
				"another thread is waiting for these values");
		return -1;
	}
	o->waiting = true;
	Py_BEGIN_ALLOW_THREADS rc = pen_ddict_wait(o->g, &err);
	Py_END_ALLOW_THREADS o->waiting = false;
	if (rc)
		penpy_raise(&err);
	o->waited = !rc;
	return rc;
}

static PyObject *lend(struct got *o, struct pen_value v)
{
	struct lent *l;
	PyObject *view;

	if (!v.data)
		Py_RETURN_NONE;
	l = (struct lent *)PyType_GenericAlloc(lent_type, 0);
	if (!l)
		return NULL;
	Py_INCREF((PyObject *)o);
	l->of = o;
	l->v = v;
	view = PyMemoryView_FromObject((PyObject *)l);
	Py_DECREF((PyObject *)l);
	return view;
}

/* values() -> [memoryview or None] */
static PyObject *got_values(PyObject *self, PyObject *unused)
{
	struct got *o = (struct got *)self;
	PyObject *out;

	(void)unused;
	if (got_wait(o))
		return NULL;
	out = PyList_New((Py_ssize_t)o->g->n);
	for (uint64_t i = 0; out && i < o->g->n; i++) {
		PyObject *x = lend(o, o->g->values[i]);

		if (!x || PyList_SetItem(out, (Py_ssize_t)i, x))
			Py_CLEAR(out);
	}
	return out;
}

/* The first value whose size differs from a row; n if all match. */
static uint64_t copy_rows(const struct pen_got *g, uint8_t *to, uint64_t row)
{
	for (uint64_t i = 0; i < g->n; i++) {
		if (!g->values[i].data || g->values[i].len != row)
			return i;
		if (row)
			memcpy(to + i * row, g->values[i].data, row);
	}
	return g->n;
}

/* into(buffer): values of equal size, one after another */
static PyObject *got_into(PyObject *self, PyObject *args)
{
	struct got *o = (struct got *)self;
	const struct pen_value *v;
	uint64_t bad, row;
	Py_buffer b;

	if (!PyArg_ParseTuple(args, "w*:into", &b))
		return NULL;
	if (got_wait(o)) {
		PyBuffer_Release(&b);
		return NULL;
	}
	row = o->g->n ? (uint64_t)b.len / o->g->n : 0;
	if (row * o->g->n != (uint64_t)b.len) {
		PyBuffer_Release(&b);
		return PyErr_Format(PyExc_ValueError,
				    "%zd bytes cannot be divided into %zd rows",
				    b.len, (Py_ssize_t)o->g->n);
	}
	Py_BEGIN_ALLOW_THREADS bad = copy_rows(o->g, b.buf, row);
	Py_END_ALLOW_THREADS PyBuffer_Release(&b);
	if (bad == o->g->n)
		Py_RETURN_NONE;
	v = &o->g->values[bad];
	if (!v->data)
		return PyErr_Format(PyExc_KeyError, "key number %zd is missing",
				    (Py_ssize_t)bad);
	return PyErr_Format(
		PyExc_ValueError, "value %zd has %zd bytes, but a row has %zd",
		(Py_ssize_t)bad, (Py_ssize_t)v->len, (Py_ssize_t)row);
}

static void lent_dealloc(PyObject *self)
{
	PyTypeObject *type = Py_TYPE(self);

	Py_XDECREF((PyObject *)((struct lent *)self)->of);
	PyObject_Free(self);
	Py_DECREF(type);
}

static int lent_buffer(PyObject *self, Py_buffer *b, int flags)
{
	const struct lent *l = (struct lent *)self;

	return PyBuffer_FillInfo(b, self, (void *)(uintptr_t)l->v.data,
				 (Py_ssize_t)l->v.len, 1, flags);
}

/* --- types --- */

static PyMethodDef dict_methods[] = {
	{ "put", dict_put, METH_VARARGS, "put(key, buffer)" },
	{ "put_many", dict_put_many, METH_VARARGS, "put_many(keys, [buffer])" },
	{ "get", dict_get, METH_O, "get(key) -> bytes or None" },
	{ "ask", dict_ask, METH_O, "ask(keys) -> Got" },
	{ "pop", dict_pop, METH_O, "pop(key) -> bytes or None" },
	{ "contains", dict_contains, METH_O, "contains(key) -> bool" },
	{ "keys", dict_keys, METH_VARARGS, "keys(shard) -> list" },
	{ "len", dict_len, METH_NOARGS, "Number of keys." },
	{ "clear", dict_clear, METH_NOARGS, "Remove all keys." },
	{ "compact", dict_compact, METH_NOARGS, "Free what is free." },
	{ "fetch_add", dict_fetch_add, METH_VARARGS, "fetch_add(key, n)" },
	{ "wait_for", dict_wait_for, METH_VARARGS, "wait_for(key, ns)" },
	{ "owner", dict_owner, METH_O, "The shard of a key." },
	{ "freeze", dict_freeze, METH_NOARGS, "Make it read-only." },
	{ "barrier", dict_barrier, METH_NOARGS, "Wait for all ranks." },
	{ "persist", dict_persist, METH_O, "persist(path)" },
	{ "stats", dict_stats, METH_VARARGS, "stats(shard) -> dict" },
	{ "about", dict_about, METH_NOARGS,
	  "(transport, shards, rank, ranks)" },
	{ "close", dict_close, METH_NOARGS, "Close it." },
	{ NULL, NULL, 0, NULL },
};

static PyType_Slot dict_slots[] = {
	{ Py_tp_new, dict_new },
	{ Py_tp_dealloc, dict_dealloc },
	{ Py_tp_methods, dict_methods },
	{ Py_tp_doc, "A dictionary; use penstock.DDict." },
	{ 0, NULL },
};

static PyType_Spec dict_spec = {
	.name = "penstock._penstock.Dict",
	.basicsize = sizeof(struct dict),
	.flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_IMMUTABLETYPE,
	.slots = dict_slots,
};

static PyMethodDef got_methods[] = {
	{ "values", got_values, METH_NOARGS,
	  "values() -> [memoryview or None]; waits" },
	{ "into", got_into, METH_VARARGS, "into(buffer): waits and copies" },
	{ NULL, NULL, 0, NULL },
};

static PyType_Slot got_slots[] = {
	{ Py_tp_dealloc, got_dealloc },
	{ Py_tp_methods, got_methods },
	{ 0, NULL },
};

static PyType_Spec got_spec = {
	.name = "penstock._penstock.Got",
	.basicsize = sizeof(struct got),
	.flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION |
		 Py_TPFLAGS_IMMUTABLETYPE,
	.slots = got_slots,
};

static PyType_Slot lent_slots[] = {
	{ Py_tp_dealloc, lent_dealloc },
	{ Py_bf_getbuffer, lent_buffer },
	{ 0, NULL },
};

static PyType_Spec lent_spec = {
	.name = "penstock._penstock.Lent",
	.basicsize = sizeof(struct lent),
	.flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION |
		 Py_TPFLAGS_IMMUTABLETYPE,
	.slots = lent_slots,
};

int penpy_ddict_ready(PyObject *module)
{
	dict_type = (PyTypeObject *)PyType_FromSpec(&dict_spec);
	got_type = (PyTypeObject *)PyType_FromSpec(&got_spec);
	lent_type = (PyTypeObject *)PyType_FromSpec(&lent_spec);
	if (!dict_type || !got_type || !lent_type)
		return -1;
	return PyModule_AddObjectRef(module, "Dict", (PyObject *)dict_type);
}
