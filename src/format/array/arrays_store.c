/*
 * A TensorStore (python/penstock/_tensors.py): a folder with arrays as npy
 * files, in subfolders if their names contain slashes, and store.json, which
 * lists them and their number of rows. Other arrays are not part of the store;
 * a listed array that is missing or has a different number of rows is an error.
 */
#include <inttypes.h>
#include <stdio.h>

#include "base/json.h"
#include "base/mem.h"
#include "format/array/arrays.h"

#define FORMAT "penstock-tensors"
#define MOST_JSON (1u << 20)
#define MOST_UP 16 /* deepest nesting of an array below its store */

bool pen__tensor_store_marks(const void *head, size_t n)
{
	return n && memmem(head, n, FORMAT, sizeof(FORMAT) - 1);
}

bool pen__tensor_store_has(struct pen_peek *pk)
{
	char path[3 * MOST_UP + sizeof(PEN_TENSOR_STORE)] = "";
	uint64_t size;
	uint32_t o;
	size_t n = 0;

	if (!pk->find)
		return false;
	for (int i = 0; i <= MOST_UP; i++, n += 3) {
		snprintf(path + n, sizeof(path) - n, PEN_TENSOR_STORE);
		if (pk->find(pk, path, &o, &size))
			return true;
		if (i < MOST_UP)
			memcpy(path + n, "../", 3);
	}
	return false;
}

/* An array of the store, read as a separate object. */
struct array_peek {
	struct pen_peek pk;
	struct pen_peek *store;
	uint32_t object;
};

static int read_array(struct pen_peek *pk, uint64_t off, void *buf, size_t len,
		      struct pen_err *err)
{
	struct array_peek *ap = (struct array_peek *)pk;

	if (off > pk->size || len > pk->size - off)
		return pen__fail(
			err, P_TRUNCATED, pk->name,
			"truncated: %zu bytes are needed at offset %" PRIu64
			", but the file has %" PRIu64,
			len, off, pk->size);
	return ap->store->read_of(ap->store, ap->object, off, buf, len, err);
}

/* Rejects keys that lead out of the store or to hidden files. */
static bool good_key(const char *key)
{
	size_t n;

	for (const char *s = key;; s += n + 1) {
		n = strcspn(s, "/");
		if (!n || s[0] == '.')
			return false;
		if (!s[n])
			return true;
	}
}

static int add_array(const struct pen_arrays *p, struct pen_peek *pk,
		     const char *key, uint64_t rows, struct pen_found *found,
		     struct pen_err *err)
{
	struct array_peek ap = { .pk.read = read_array, .store = pk };
	const char *slash = strrchr(pk->name, '/');
	struct pen_named_array a = { 0 };
	const size_t n = strlen(key);
	char rel[sizeof(a.name) + 4], path[4096];
	int rc;

	if (n >= sizeof(a.name) || !good_key(key))
		return pen__fail(err, P_BAD_DATA_VALUE, pk->name,
				 "'%.80s' is not a valid field name", key);
	memcpy(a.name, key, n);
	snprintf(rel, sizeof(rel), "%s.npy", key);
	snprintf(path, sizeof(path), "%.*s%s",
		 slash ? (int)(slash + 1 - pk->name) : 0, pk->name, rel);
	if (!pk->find || !pk->find(pk, rel, &ap.object, &ap.pk.size))
		return pen__fail(
			err, P_FILES_DISAGREE, path,
			"the array is missing, but store.json lists it");
	ap.pk.name = path;
	rc = pen__arrays_header(p, &ap.pk, &a.npy, err);
	if (rc)
		return rc;
	if ((uint64_t)a.npy.a.shape[0] != rows)
		return pen__fail(err, P_FILES_DISAGREE, path,
				 "the array has %" PRId64
				 " rows, but store.json declares %" PRIu64,
				 a.npy.a.shape[0], rows);
	a.object = ap.object;
	pen__named_array_put(&found->blob, &a);
	return 0;
}

static int not_a_store(const char *name, struct pen_err *err)
{
	return pen__fail(err, P_NOT_THIS_FORMAT, name,
			 "not the store.json of a TensorStore");
}

static int add_arrays(const struct pen_arrays *p, struct pen_peek *pk,
		      const struct pen_jdoc *j, struct pen_found *found,
		      struct pen_err *err)
{
	const uint32_t all = pen__jdoc_get(j, 0, "arrays");
	uint64_t version, rows;
	size_t count = found->blob.n;
	uint32_t n = 0;
	int rc = 0;

	if (!pen__jdoc_is(j, pen__jdoc_get(j, 0, "format"), FORMAT) ||
	    !pen__jdoc_count_of(j, pen__jdoc_get(j, 0, "version"), &version) ||
	    version != 1 ||
	    !pen__jdoc_count_of(j, pen__jdoc_get(j, 0, "length"), &rows) ||
	    pen__jdoc_type(j, all) != PEN_JDOC_OBJECT)
		return not_a_store(pk->name, err);
	pen__buf_le(&found->blob, 0, 1);
	for (uint32_t v = pen__jdoc_first(j, all); !rc && v != PEN_JDOC_NONE;
	     v = pen__jdoc_next(j, v)) {
		const char *key = j->text + j->node[v].key;

		if (!pen__arrays_wants(p, key))
			continue;
		if (n++ == PEN_MAX_FIELDS)
			return pen__fail(err, P_MISSING_SETTING, pk->name,
					 "more than 64 arrays are listed, the "
					 "most a data set can have; list the "
					 "arrays to read with fields=");
		rc = add_array(p, pk, key, rows, found, err);
	}
	if (rc || found->blob.bad)
		return rc ? rc : pen__fail_nomem(err, pk->name, 64);
	found->blob.p[count] = (uint8_t)n;
	found->nsamples = n ? rows : 0;
	return 0;
}

int pen__tensor_store_index(const struct pen_arrays *p, struct pen_peek *pk,
			    struct pen_found *found, struct pen_err *err)
{
	struct pen_jdoc j = { 0 };
	char *text;
	int rc;

	if (!pk->size || pk->size > MOST_JSON)
		return not_a_store(pk->name, err);
	text = pen__alloc((size_t)pk->size, 1);
	if (!text)
		return pen__fail_nomem(err, pk->name, (size_t)pk->size);
	rc = pk->read(pk, 0, text, (size_t)pk->size, err);
	if (!rc)
		rc = pen__jdoc_open(&j, text, (size_t)pk->size, pk->name, err);
	if (!rc)
		rc = add_arrays(p, pk, &j, found, err);
	pen__jdoc_close(&j);
	pen__free(text);
	return rc;
}
