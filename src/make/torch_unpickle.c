/*
 * Reads the pickle of a dict of tensors. A pickle is a program; this executes
 * only the opcodes that torch.save() needs, knows two functions by name, calls
 * nothing, and compares the result with the expected one. Everything else is
 * refused. Memory is bounded by the number of bytes read.
 */
#include <inttypes.h>

#include "base/mem.h"
#include "make/torch_file.h"

enum type {
	V_MARK,
	V_PLAIN, /* None, True, False: not distinguished */
	V_INT,
	V_STR,
	V_GLOBAL,
	V_TUPLE,
	V_STORAGE, /* the tuple that was its persistent id */
	V_TENSOR,  /* the tuple it was made from */
	V_DICT
};

struct value {
	enum type type;
	uint32_t n; /* STR, GLOBAL: length; tuples: elements */
	union {
		int64_t i;
		const char *s;
		uint32_t at; /* tuples: in `part`; DICT: its number */
	} v;
};

struct entry { /* of a dict */
	struct value key, value;
	uint32_t next; /* entry + 1, 0: none */
};

struct dict {
	uint32_t first, last; /* entry + 1, 0: none */
};

struct list { /* of any type */
	void *p;
	size_t n, cap;
};

struct machine {
	struct pen_bytes in;
	struct list stack, memo, part, entries, dicts;
	bool nomem;
};

static void *grow(struct machine *m, struct list *l, size_t size)
{
	if (l->n == l->cap) {
		const size_t cap = l->cap ? 2 * l->cap : 64;
		void *p = pen__realloc(l->p, cap, size);

		if (!p) {
			m->nomem = true;
			return NULL;
		}
		l->p = p;
		l->cap = cap;
	}
	return (char *)l->p + l->n++ * size;
}

static bool push(struct machine *m, struct value v)
{
	struct value *to = grow(m, &m->stack, sizeof(v));

	if (to)
		*to = v;
	return to;
}

/* The i-th from the top; NULL if there is none. */
static struct value *top(struct machine *m, size_t i)
{
	return i < m->stack.n ? (struct value *)m->stack.p + m->stack.n - 1 - i
			      : NULL;
}

/* The elements of a tuple of this type and length at least n, or NULL. */
static const struct value *parts(const struct machine *m, const struct value *v,
				 enum type type, uint32_t n)
{
	return v->type == type && v->n >= n && n
		       ? (const struct value *)m->part.p + v->v.at
		       : NULL;
}

/* Counts the values above the last mark; false: there is no mark. */
static bool to_mark(struct machine *m, size_t *n)
{
	const struct value *v;

	for (*n = 0; (v = top(m, *n)); ++*n)
		if (v->type == V_MARK)
			return true;
	return false;
}

static bool make_tuple(struct machine *m, size_t n)
{
	struct value t = { .type = V_TUPLE, .n = (uint32_t)n };

	if (m->stack.n < n)
		return false;
	t.v.at = (uint32_t)m->part.n;
	for (size_t i = n; i-- > 0;) {
		const struct value *v = top(m, i);
		struct value *to = grow(m, &m->part, sizeof(*to));

		if (!to || v->type == V_MARK)
			return false;
		*to = *v;
	}
	m->stack.n -= n;
	return push(m, t);
}

static bool make_dict(struct machine *m)
{
	struct value d = { .type = V_DICT };
	struct dict *to = grow(m, &m->dicts, sizeof(*to));

	if (!to)
		return false;
	*to = (struct dict){ 0 };
	d.v.at = (uint32_t)(m->dicts.n - 1);
	return push(m, d);
}

/* The top 2n values are keys and values of the dict below (and `skip`). */
static bool set_items(struct machine *m, size_t n, size_t skip)
{
	const struct value *d = top(m, 2 * n + skip);

	if (!d || d->type != V_DICT)
		return false;
	for (size_t i = n; i-- > 0;) {
		struct entry *e = grow(m, &m->entries, sizeof(*e));
		struct dict *to = (struct dict *)m->dicts.p + d->v.at;

		if (!e)
			return false;
		*e = (struct entry){ .key = *top(m, 2 * i + 1),
				     .value = *top(m, 2 * i) };
		if (to->last)
			((struct entry *)m->entries.p)[to->last - 1].next =
				(uint32_t)m->entries.n;
		else
			to->first = (uint32_t)m->entries.n;
		to->last = (uint32_t)m->entries.n;
	}
	m->stack.n -= 2 * n + skip;
	return true;
}

static bool is(const struct value *v, enum type type, const char *s)
{
	return v->type == type && v->n == strlen(s) && !memcmp(v->v.s, s, v->n);
}

/* A call: builds a tensor, or an empty OrderedDict. */
static bool reduce(struct machine *m)
{
	struct value *args = top(m, 0), *fn = top(m, 1);

	if (!fn || args->type != V_TUPLE)
		return false;
	if (is(fn, V_GLOBAL, "torch._utils\n_rebuild_tensor_v2")) {
		*fn = *args;
		fn->type = V_TENSOR;
		m->stack.n--;
		return true;
	}
	if (!is(fn, V_GLOBAL, "collections\nOrderedDict") || args->n)
		return false;
	m->stack.n -= 2;
	return make_dict(m);
}

static bool remember(struct machine *m, uint64_t i)
{
	const struct value *v = top(m, 0);
	struct value *to;

	/* picklers number memo entries from 0, without gaps */
	if (!v || i > m->memo.n)
		return false;
	if (i == m->memo.n) {
		to = grow(m, &m->memo, sizeof(*to));
		if (!to)
			return false;
	}
	((struct value *)m->memo.p)[i] = *v;
	return true;
}

static bool recall(struct machine *m, uint64_t i)
{
	return i < m->memo.n && push(m, ((struct value *)m->memo.p)[i]);
}

static bool push_int(struct machine *m, int64_t i)
{
	return push(m, (struct value){ .type = V_INT, .v.i = i });
}

static bool push_str(struct machine *m, enum type type, uint64_t n)
{
	const uint8_t *p = pen__take(&m->in, n);
	struct value v = { .type = type, .n = (uint32_t)n };

	v.v.s = (const char *)p;
	return p && push(m, v);
}

static bool push_long(struct machine *m)
{
	const unsigned n = pen__take_u8(&m->in);
	uint64_t v;

	if (n > 8)
		return false;
	v = pen__take_le(&m->in, n);
	if (n && n < 8 && v >> (8 * n - 1))
		return false; /* negative: not a size */
	return v <= INT64_MAX && push_int(m, (int64_t)v);
}

/* Two lines: module and name. */
static bool push_global(struct machine *m)
{
	const uint8_t *p = m->in.p, *a, *b;

	a = memchr(p, '\n', pen__bytes_left(&m->in));
	b = a ? memchr(a + 1, '\n', (size_t)(m->in.end - a - 1)) : NULL;
	return b && push_str(m, V_GLOBAL, (uint64_t)(b - p)) &&
	       pen__take(&m->in, 1);
}

static bool to_storage(struct machine *m)
{
	struct value *v = top(m, 0);

	if (!v || v->type != V_TUPLE)
		return false;
	v->type = V_STORAGE;
	return true;
}

static bool close_tuple(struct machine *m)
{
	size_t n;
	struct value t;

	if (!to_mark(m, &n) || !make_tuple(m, n))
		return false;
	t = *top(m, 0);
	m->stack.n--;
	*top(m, 0) = t; /* replaces the mark */
	return true;
}

static bool close_items(struct machine *m)
{
	size_t n;

	return to_mark(m, &n) && n % 2 == 0 && set_items(m, n / 2, 1);
}

static bool constant(struct machine *m, unsigned op)
{
	switch (op) {
	case 'K':
		return push_int(m, pen__take_u8(&m->in));
	case 'M':
		return push_int(m, pen__take_u16(&m->in));
	case 'J':
		return push_int(m, (int32_t)pen__take_u32(&m->in));
	case 0x8a:
		return push_long(m);
	case 'X':
		return push_str(m, V_STR, pen__take_u32(&m->in));
	case 'c':
		return push_global(m);
	case 'N':
	case 0x88:
	case 0x89:
		return push(m, (struct value){ .type = V_PLAIN });
	}
	return false;
}

static bool step(struct machine *m, unsigned op)
{
	switch (op) {
	case 0x80: /* protocol 3 and later have other opcodes */
		return pen__take_u8(&m->in) == 2;
	case '(':
		return push(m, (struct value){ .type = V_MARK });
	case '}':
		return make_dict(m);
	case ')':
		return make_tuple(m, 0);
	case 0x85:
	case 0x86:
	case 0x87:
		return make_tuple(m, op - 0x84);
	case 't':
		return close_tuple(m);
	case 'Q':
		return to_storage(m);
	case 'R':
		return reduce(m);
	case 's':
		return set_items(m, 1, 0);
	case 'u':
		return close_items(m);
	case 'q':
		return remember(m, pen__take_u8(&m->in));
	case 'r':
		return remember(m, pen__take_u32(&m->in));
	case 'h':
		return recall(m, pen__take_u8(&m->in));
	case 'j':
		return recall(m, pen__take_u32(&m->in));
	}
	return constant(m, op);
}

static int run(struct machine *m, size_t len, const char *where,
	       struct pen_err *err)
{
	for (;;) {
		const size_t at = len - pen__bytes_left(&m->in);
		const unsigned op = pen__take_u8(&m->in);

		if (op == '.' && !m->in.bad)
			break;
		if ((!m->in.bad && step(m, op)) && !m->in.bad)
			continue;
		if (m->nomem)
			return pen__fail_nomem(err, where, len);
		return pen__fail(err, P_DAMAGED, where,
				 "the pickle is damaged or contains more than "
				 "dicts of tensors (at byte %zu of data.pkl)",
				 at);
	}
	if (m->stack.n != 1 || top(m, 0)->type != V_DICT)
		return pen__fail(err, P_DAMAGED, where,
				 "the pickle does not end with one dict");
	return 0;
}

/* --- comparison with the expected state --- */

struct match {
	const struct machine *m;
	const struct pen_torch_state *s;
	struct pen_torch_key *key;
	const char *where;
	struct pen_err *err;
};

static int differs(const struct match *x, const char *key)
{
	return pen__fail(
		x->err, P_DAMAGED, x->where,
		"the tensors differ from those of this workload, starting at "
		"key '%s'; was the file written with other settings?",
		key);
}

static bool int_is(const struct value *v, uint64_t n)
{
	return v->type == V_INT && v->v.i >= 0 && (uint64_t)v->v.i == n;
}

static bool one_is(const struct machine *m, const struct value *v, uint64_t n)
{
	const struct value *a = parts(m, v, V_TUPLE, 1);

	return a && v->n == 1 && int_is(a, n);
}

/* The key of a storage that has exactly this tensor, or NULL. */
static const struct value *storage_key(const struct machine *m,
				       const struct value *v,
				       const struct pen_torch_item *it)
{
	const struct value *a = parts(m, v, V_STORAGE, 5);
	const char *type = pen__torch_storage(it->dtype);
	const size_t n = strlen(type);

	if (!a || !is(&a[0], V_STR, "storage") || a[1].type != V_GLOBAL ||
	    a[1].n != n + 6 || memcmp(a[1].v.s, "torch\n", 6) != 0 ||
	    memcmp(a[1].v.s + 6, type, n) != 0 || !int_is(&a[4], it->n))
		return NULL;
	return a[2].type == V_STR && a[2].n &&
			       a[2].n < sizeof(struct pen_torch_key)
		       ? &a[2]
		       : NULL;
}

static int match_tensor(const struct match *x, const struct value *v,
			const struct pen_torch_item *it, size_t tensor)
{
	struct pen_torch_key *key = &x->key[tensor], found = { 0 };
	const struct value *a = parts(x->m, v, V_TENSOR, 6);
	const struct value *k = a ? storage_key(x->m, &a[0], it) : NULL;

	if (!k || !int_is(&a[1], 0) || !one_is(x->m, &a[2], it->n) ||
	    !one_is(x->m, &a[3], 1))
		return differs(x, it->key);
	memcpy(found.s, k->v.s, k->n);
	if (key->s[0] && strcmp(key->s, found.s) != 0)
		return differs(x, it->key); /* not the same dict */
	*key = found;
	return 0;
}

/* One dict from item *i on, whose first tensor is number *t. */
static int match_dict(const struct match *x, const struct value *v, size_t *i,
		      size_t *t)
{
	const struct pen_torch_state *s = x->s;
	const struct entry *all = x->m->entries.p, *e;
	uint32_t at;
	int rc = 0;

	if (v->type != V_DICT && !*i)
		return pen__fail(x->err, P_DAMAGED, x->where,
				 "the pickled object is not a dict");
	if (v->type != V_DICT)
		return differs(x, s->item[*i - 1].key);
	at = ((const struct dict *)x->m->dicts.p)[v->v.at].first;
	for (; !rc && *i < s->nitems; ++*i, at = e->next) {
		const struct pen_torch_item *it = &s->item[*i];
		size_t same = 0, first = 0;

		if (it->kind == PEN_TORCH_CLOSE)
			break;
		e = at ? &all[at - 1] : NULL;
		if (!e || !is(&e->key, V_STR, it->key))
			return differs(x, it->key);
		if (it->kind == PEN_TORCH_TENSOR) {
			rc = match_tensor(x, &e->value, it, (*t)++);
		} else if (it->kind == PEN_TORCH_OPEN) {
			++*i;
			rc = match_dict(x, &e->value, i, t);
		} else {
			/* in a state that repeats dicts, dicts come first */
			while (s->item[same].kind != PEN_TORCH_OPEN)
				same++;
			same++;
			rc = match_dict(x, &e->value, &same, &first);
		}
	}
	if (!rc && at)
		return pen__fail(x->err, P_DAMAGED, x->where,
				 "the file contains more than expected; was it "
				 "written with other settings?");
	return rc;
}

static void machine_fini(struct machine *m)
{
	pen__free(m->stack.p);
	pen__free(m->memo.p);
	pen__free(m->part.p);
	pen__free(m->entries.p);
	pen__free(m->dicts.p);
}

int pen__torch_unpickle(const struct pen_torch_state *s, struct pen_span pickle,
			const char *where, struct pen_torch_key *key,
			struct pen_err *err)
{
	struct machine m = { .in = pen__bytes(pickle.p, pickle.n) };
	struct match x = { &m, s, key, where, err };
	size_t i = 0, t = 0;
	int rc;

	rc = run(&m, pickle.n, where, err);
	if (!rc)
		rc = match_dict(&x, top(&m, 0), &i, &t);
	machine_fini(&m);
	return rc;
}
