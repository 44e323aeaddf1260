/*
 * Copies rows with several threads, for TensorStore, and provides memory to
 * copy to. Fresh memory costs more than the copy, so freed memory is kept for
 * the next array of its size.
 */
#include "module.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define PAGE ((size_t)4096)
#define HUGE ((size_t)2 << 20)
#define KEPT 16
#define KEPT_BYTES ((size_t)256 << 20)

/* ---- memory ---- */

struct memory {
	PyObject head;
	void *p;
	size_t n, cap;
};

static PyTypeObject *memory_type;
/* freed memory; protected by the GIL */
static struct {
	void *p;
	size_t cap;
} kept[KEPT];
static size_t kept_bytes;

static void *take_kept(size_t n, size_t *cap)
{
	const size_t most = 2 * (n < PAGE ? PAGE : n);

	for (int i = 0; i < KEPT; i++)
		if (kept[i].p && kept[i].cap >= n && kept[i].cap <= most) {
			void *p = kept[i].p;

			*cap = kept[i].cap;
			kept_bytes -= kept[i].cap;
			kept[i].p = NULL;
			return p;
		}
	return NULL;
}

static void *fresh(size_t n, size_t *cap)
{
	size_t unit = n >= HUGE ? HUGE : PAGE;
	void *p = NULL;

	if (n > PTRDIFF_MAX - unit)
		return NULL;
	*cap = (n + unit - 1) / unit * unit;
	if (posix_memalign(&p, unit, *cap))
		return NULL;
	if (unit == HUGE)
		(void)!madvise(p, *cap, MADV_HUGEPAGE);
	return p;
}

static PyObject *memory_new(PyTypeObject *type, PyObject *args, PyObject *kw)
{
	struct memory *m;
	Py_ssize_t n;

	(void)kw;
	if (!PyArg_ParseTuple(args, "n", &n))
		return NULL;
	if (n < 0)
		return PyErr_NoMemory();
	m = (struct memory *)PyType_GenericAlloc(type, 0);
	if (!m)
		return NULL;
	m->n = (size_t)n;
	m->p = take_kept(m->n, &m->cap);
	if (!m->p)
		m->p = fresh(m->n ? m->n : 1, &m->cap);
	if (m->p)
		return (PyObject *)m;
	Py_DECREF((PyObject *)m);
	return PyErr_NoMemory();
}

static void memory_dealloc(PyObject *self)
{
	struct memory *m = (struct memory *)self;
	PyTypeObject *type = Py_TYPE(self);
	int i = 0;

	while (i < KEPT && kept[i].p)
		i++;
	if (m->p && i < KEPT && kept_bytes + m->cap <= KEPT_BYTES) {
		kept[i].p = m->p;
		kept[i].cap = m->cap;
		kept_bytes += m->cap;
	} else {
		free(m->p);
	}
	PyObject_Free(self);
	Py_DECREF(type);
}

static int memory_buffer(PyObject *self, Py_buffer *view, int flags)
{
	struct memory *m = (struct memory *)self;

	return PyBuffer_FillInfo(view, self, m->p, (Py_ssize_t)m->n, 0, flags);
}

static PyType_Slot memory_slots[] = {
	{ Py_tp_new, memory_new },
	{ Py_tp_dealloc, memory_dealloc },
	{ Py_bf_getbuffer, memory_buffer },
	{ Py_tp_doc,
	  "Memory(n): n bytes that are reused after they are freed." },
	{ 0, NULL },
};

static PyType_Spec memory_spec = {
	.name = "penstock._penstock.Memory",
	.basicsize = sizeof(struct memory),
	.flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_IMMUTABLETYPE,
	.slots = memory_slots,
};

int penpy_memory_ready(PyObject *module)
{
	memory_type = (PyTypeObject *)PyType_FromSpec(&memory_spec);
	if (!memory_type)
		return -1;
	return PyModule_AddObjectRef(module, "Memory", (PyObject *)memory_type);
}

/* ---- copying ---- */

/* The copier of the process, started on first use; a forked child starts its
 * own. */
static struct pen_copier *copier(void)
{
	static struct pen_copier *all;
	static unsigned forks;
	struct pen_err err = { 0 };

	if (all && forks == penpy_forks)
		return all;
	all = NULL;
	forks = penpy_forks;
	if (pen_copier_new(&all, 0, &err))
		penpy_raise(&err);
	return all;
}

static void release(Py_buffer *b, Py_ssize_t n)
{
	for (Py_ssize_t i = 0; i < n; i++)
		PyBuffer_Release(&b[i]);
}

/* The buffers of one array: 0, or -1 and an exception. */
static int rows_of(PyObject *from, PyObject *to, Py_buffer *b,
		   struct pen_rows *out)
{
	if (PyObject_GetBuffer(from, &b[0], PyBUF_ND | PyBUF_FORMAT))
		return -1;
	if (PyObject_GetBuffer(to, &b[1],
			       PyBUF_ND | PyBUF_FORMAT | PyBUF_WRITABLE)) {
		PyBuffer_Release(&b[0]);
		return -1;
	}
	*out = (struct pen_rows){ .from = b[0].buf, .to = b[1].buf };
	if (b[0].ndim < 1 || b[1].ndim < 1)
		goto bad;
	out->nrows = (uint64_t)b[0].shape[0];
	out->bytes = (uint64_t)b[0].itemsize;
	for (int i = 1; i < b[0].ndim; i++)
		out->bytes *= (uint64_t)b[0].shape[i];
	return 0;
bad:
	release(b, 2);
	PyErr_SetString(PyExc_ValueError, "expected arrays with rows");
	return -1;
}

/* Checks that every target has space for n rows. */
static bool fits(const struct pen_rows *rows, const Py_buffer *b, uint32_t n,
		 uint64_t nids)
{
	for (uint32_t i = 0; i < n; i++) {
		uint64_t need;

		if (__builtin_mul_overflow(rows[i].bytes, nids, &need) ||
		    (uint64_t)b[2 * i + 1].len != need)
			return false;
	}
	return true;
}

static int copy(const struct pen_rows *rows, const Py_buffer *b, uint32_t n,
		const Py_buffer *ids)
{
	uint64_t nids = ids ? (uint64_t)ids->len / 8 : rows[0].nrows;
	struct pen_copier *c = copier();
	struct pen_err err = { 0 };
	int rc;

	if (!c)
		return -1;
	if (!fits(rows, b, n, nids)) {
		PyErr_SetString(PyExc_ValueError,
				"the target is too small for the rows");
		return -1;
	}
	Py_BEGIN_ALLOW_THREADS rc =
		pen_copier_copy(c, rows, n, ids ? ids->buf : NULL, nids, &err);
	Py_END_ALLOW_THREADS if (rc)
		PyErr_Format(PyExc_IndexError, "%s %s", err.where, err.msg);
	return rc;
}

/* Do these arrays differ only in their number of rows? */
static bool alike(const Py_buffer *a, const Py_buffer *b)
{
	bool same = a->ndim == b->ndim && a->format && b->format &&
		    strcmp(a->format, b->format) == 0;

	for (int i = 1; same && i < a->ndim; i++)
		same = a->shape[i] == b->shape[i];
	return same;
}

struct asked {
	struct pen_rows rows[PEN_MAX_FIELDS];
	Py_buffer b[2 * PEN_MAX_FIELDS], ids;
	Py_ssize_t n, got; /* arrays, and acquired buffers */
	bool by_id, alike;
};

static int ask(struct asked *a, PyObject *args)
{
	PyObject *from, *to, *which;

	a->got = 0;
	a->by_id = false;
	a->alike = true;
	if (!PyArg_ParseTuple(args, "O!O!O", &PyList_Type, &from, &PyList_Type,
			      &to, &which))
		return -1;
	a->n = PyList_Size(from);
	if (a->n < 1 || a->n > PEN_MAX_FIELDS || PyList_Size(to) != a->n) {
		PyErr_SetString(PyExc_ValueError,
				"expected 1 to 64 arrays and as many targets");
		return -1;
	}
	if (which != Py_None && PyObject_GetBuffer(which, &a->ids, PyBUF_ND))
		return -1;
	a->by_id = which != Py_None;
	for (; a->got < a->n; a->got++) {
		Py_buffer *b = &a->b[2 * a->got];

		if (rows_of(PyList_GetItem(from, a->got),
			    PyList_GetItem(to, a->got), b, &a->rows[a->got]))
			return -1;
		a->alike = a->alike && alike(&b[0], &b[1]) && a->by_id &&
			   a->ids.ndim == 1 && b[1].shape[0] == a->ids.shape[0];
	}
	return 0;
}

static void done(struct asked *a)
{
	release(a->b, 2 * a->got);
	if (a->by_id)
		PyBuffer_Release(&a->ids);
}

/* gather([from], [to], ids or None): to[k][i] = from[k][ids[i]] */
PyObject *penpy_gather(PyObject *module, PyObject *args)
{
	struct asked a;
	int rc = ask(&a, args);

	(void)module;
	if (!rc)
		rc = copy(a.rows, a.b, (uint32_t)a.n, a.by_id ? &a.ids : NULL);
	done(&a);
	if (rc)
		return NULL;
	Py_RETURN_NONE;
}

/* The same for arrays with equal rows and one row per id. False: not so, or
 * without buffers; nothing is copied. */
PyObject *penpy_gather_alike(PyObject *module, PyObject *args)
{
	struct asked a;
	bool yes = !ask(&a, args) && a.alike;
	int rc = 0;

	(void)module;
	if (yes)
		rc = copy(a.rows, a.b, (uint32_t)a.n, &a.ids);
	else
		PyErr_Clear();
	done(&a);
	return rc ? NULL : PyBool_FromLong(yes);
}
