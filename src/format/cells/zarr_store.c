/*
 * A zarr store: values by key. In a directory they are objects of the data set,
 * found by name. In a zip archive they are members; the last one of a name
 * counts, because zarr overwrites by appending. Deflated members are supported.
 * Refuses encrypted members and other compression methods.
 */
#include <stdio.h>
#include <stdlib.h>

#include "base/mem.h"
#include "codec/deflate.h"
#include "format/cells/zarr.h"

static const char *const markers[] = { "zarr.json", ".zgroup", ".zarray" };
#define NMARKERS (sizeof(markers) / sizeof(markers[0]))

void pen__zarr_where(const struct pen_zarr *z, const char *key, char *buf,
		     size_t cap)
{
	const char *name = z->pk->name, *slash = strrchr(name, '/');
	int n = (int)strlen(name);

	/* a directory is shown by its own name, not by that of a file in it */
	if (!z->zipped)
		n = slash ? (int)(slash - name) : 0;
	if (n > 150)
		n = 150;
	snprintf(buf, cap, "%.*s:%.100s", n ? n : 1, n ? name : ".",
		 *key ? key : "/");
}

/* ---- zip ---- */

static int compare(const struct pen_zip_member *m, const char *name, size_t n)
{
	const size_t k = m->name_len < n ? m->name_len : n;
	const int c = k ? memcmp(m->name, name, k) : 0;

	return c ? c : (m->name_len > n) - (m->name_len < n);
}

static int by_name(const void *a, const void *b, void *zip)
{
	const struct pen_zip_member *m = ((struct pen_zip *)zip)->m;
	const uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
	const int c = compare(&m[x], m[y].name, m[y].name_len);

	return c ? c : (x > y) - (x < y);
}

static void sort_names(struct pen_zarr *z)
{
	const struct pen_zip_member *m = z->zip.m;
	size_t n = 0;

	for (size_t i = 0; i < z->zip.n; i++)
		z->by_name[i] = (uint32_t)i;
	qsort_r(z->by_name, z->zip.n, sizeof(*z->by_name), by_name, &z->zip);
	for (size_t i = 0; i < z->zip.n; i++) {
		const uint32_t k = z->by_name[i];

		if (n && compare(&m[z->by_name[n - 1]], m[k].name,
				 m[k].name_len) == 0)
			n--; /* the later one, further on in the file */
		z->by_name[n++] = k;
	}
	z->nnames = n;
}

/* The folder of the marker at the lowest depth. */
static bool find_prefix(struct pen_zarr *z)
{
	size_t best = SIZE_MAX, best_len = 0;
	const char *from = NULL;

	for (size_t i = 0; i < z->nnames; i++) {
		const struct pen_zip_member *m = &z->zip.m[z->by_name[i]];
		size_t deep = 0, dir = 0;

		for (size_t k = 0; k < m->name_len; k++)
			if (m->name[k] == '/') {
				deep++;
				dir = k + 1;
			}
		if (deep >= best || dir >= sizeof(z->prefix))
			continue;
		for (size_t k = 0; k < NMARKERS; k++)
			if (m->name_len - dir == strlen(markers[k]) &&
			    memcmp(m->name + dir, markers[k],
				   m->name_len - dir) == 0) {
				best = deep;
				best_len = dir;
				from = m->name;
			}
	}
	if (!from)
		return false;
	memcpy(z->prefix, from, best_len);
	z->prefix[best_len] = '\0';
	return true;
}

static int open_zip(struct pen_zarr *z, struct pen_err *err)
{
	int rc = pen__zip_open(&z->zip, z->pk, err);

	if (rc < 0)
		return rc;
	z->zipped = true;
	z->by_name = pen__alloc(z->zip.n, sizeof(*z->by_name));
	if (!z->by_name)
		return pen__fail_nomem(err, z->pk->name, z->zip.n * 4);
	sort_names(z);
	z->nfiles = z->nnames;
	if (!find_prefix(z))
		return pen__fail(err, P_NOT_THIS_FORMAT, z->pk->name,
				 "the archive does not contain a zarr store: "
				 "it has no zarr.json, .zgroup or .zarray");
	return 0;
}

static bool find_member(const struct pen_zarr *z, const char *key,
			struct pen_zarr_part *p)
{
	char name[2 * PEN_ZARR_PATH];
	const struct pen_zip_member *m;
	size_t lo = 0, hi = z->nnames;
	int n = snprintf(name, sizeof(name), "%s%s", z->prefix, key);

	if (n < 0 || (size_t)n >= sizeof(name))
		return false;
	while (lo < hi) {
		const size_t mid = lo + (hi - lo) / 2;

		if (compare(&z->zip.m[z->by_name[mid]], name, (size_t)n) < 0)
			lo = mid + 1;
		else
			hi = mid;
	}
	if (lo == z->nnames)
		return false;
	m = &z->zip.m[z->by_name[lo]];
	if (compare(m, name, (size_t)n) != 0)
		return false;
	*p = (struct pen_zarr_part){ .object = PEN_ZARR_OWN,
				     .at = m->data,
				     .len = m->csize,
				     .size = m->usize,
				     .crc = m->crc };
	p->deflated = m->method == PEN_ZIP_DEFLATED;
	/* unusable members are reported when they are read */
	if (pen__zip_usable(m, name, NULL) < 0)
		p->object = PEN_NO_OBJECT;
	return true;
}

/* ---- directory or zip ---- */

bool pen__zarr_find(const struct pen_zarr *z, const char *key,
		    struct pen_zarr_part *p)
{
	if (z->zipped)
		return find_member(z, key, p);
	*p = (struct pen_zarr_part){ 0 };
	if (!z->pk->find || !z->pk->find(z->pk, key, &p->object, &p->len))
		return false;
	p->size = p->len;
	return true;
}

void pen__zarr_dirs(const struct pen_zarr *z,
		    void (*see)(void *arg, const char *dir), void *arg)
{
	const size_t n = strlen(z->prefix);

	if (!z->zipped && z->pk->dirs)
		z->pk->dirs(z->pk, see, arg);
	for (size_t i = 0; z->zipped && i < z->nnames; i++) {
		const struct pen_zip_member *m = &z->zip.m[z->by_name[i]];
		char dir[PEN_ZARR_PATH];
		size_t end = m->name_len;

		while (end > n && m->name[end - 1] != '/')
			end--;
		if (end <= n + 1 || end - n > sizeof(dir) ||
		    memcmp(m->name, z->prefix, n) != 0)
			continue;
		snprintf(dir, sizeof(dir), "%.*s", (int)(end - n - 1),
			 m->name + n);
		see(arg, dir);
	}
}

int pen__zarr_read(const struct pen_zarr *z, const struct pen_zarr_part *p,
		   uint64_t off, void *buf, size_t len, struct pen_err *err)
{
	if (off > p->len || len > p->len - off)
		return pen__fail(
			err, P_TRUNCATED, z->pk->name,
			"truncated: a value of the store is too short");
	if (p->object == PEN_NO_OBJECT)
		return pen__fail(err, P_UNSUPPORTED_FEATURE, z->pk->name,
				 "a member of the archive is encrypted, or "
				 "compressed with a method other than deflate");
	if (p->object == PEN_ZARR_OWN)
		return z->pk->read(z->pk, p->at + off, buf, len, err);
	return z->pk->read_of(z->pk, p->object, p->at + off, buf, len, err);
}

static int inflate(const struct pen_zarr_part *p, const struct pen_buf *raw,
		   struct pen_buf *out, const char *where, struct pen_err *err)
{
	struct pen_scratch s;
	int rc = pen__scratch_init(&s, 0);

	out->p = rc < 0 ? NULL : pen__alloc((size_t)p->size + 1, 1);
	if (!out->p) {
		pen__scratch_fini(&s);
		return pen__fail_nomem(err, where, (size_t)p->size);
	}
	out->n = out->cap = (size_t)p->size;
	rc = pen__inflate(&s, raw->p, raw->n, out->p, out->n);
	pen__scratch_fini(&s);
	if (rc == PEN_ENOMEM)
		return pen__fail_nomem(err, where, out->n);
	return rc < 0 ? pen__fail(err, P_DAMAGED, where,
				  "damaged: the data does not inflate")
		      : 0;
}

int pen__zarr_load(const struct pen_zarr *z, const struct pen_zarr_part *p,
		   const char *key, uint64_t limit, struct pen_buf *out,
		   struct pen_err *err)
{
	struct pen_buf raw = { 0 };
	char where[256];
	int rc;

	*out = (struct pen_buf){ 0 };
	pen__zarr_where(z, key, where, sizeof(where));
	if (p->size > limit || p->len > limit)
		return pen__fail(err, P_DAMAGED, where,
				 "has %llu bytes; at most %llu are supported",
				 (unsigned long long)p->size,
				 (unsigned long long)limit);
	raw.p = pen__alloc((size_t)p->len + 1, 1);
	if (!raw.p)
		return pen__fail_nomem(err, where, (size_t)p->len);
	raw.n = raw.cap = (size_t)p->len;
	rc = pen__zarr_read(z, p, 0, raw.p, raw.n, err);
	if (rc >= 0 && p->deflated)
		rc = inflate(p, &raw, out, where, err);
	else if (rc >= 0) {
		*out = raw;
		raw = (struct pen_buf){ 0 };
	}
	if (rc >= 0 && z->zipped && pen__crc32(0, out->p, out->n) != p->crc)
		rc = pen__fail(err, P_CHECKSUM, where,
			       "damaged: the checksum differs");
	pen__buf_fini(&raw);
	if (rc < 0)
		pen__buf_fini(out);
	return rc;
}

int pen__zarr_open(struct pen_zarr *z, struct pen_peek *pk, uint64_t nfiles,
		   struct pen_err *err)
{
	struct pen_zarr_part p;
	char start[4] = "";
	int rc = 0;

	*z = (struct pen_zarr){ .pk = pk, .nfiles = nfiles, .version = 2 };
	if (pk->size >= 4)
		rc = pk->read(pk, 0, start, 4, err);
	if (rc >= 0 && (!pen__zarr_is_marker(pk) || start[0] == 'P'))
		rc = open_zip(z, err);
	if (rc < 0)
		return rc;
	if (!z->zipped && !pk->find)
		return pen__fail(err, P_UNSUPPORTED_FEATURE, pk->name,
				 "a zarr store is read as a whole; specify its "
				 "directory");
	if (pen__zarr_find(z, "zarr.json", &p))
		z->version = 3;
	return 0;
}

void pen__zarr_close(struct pen_zarr *z)
{
	pen__zip_close(&z->zip);
	pen__free(z->by_name);
	z->by_name = NULL;
}

/* ---- the object that represents a store ---- */

bool pen__zarr_is_marker(struct pen_peek *pk)
{
	const char *slash = strrchr(pk->name, '/');
	const char *name = slash ? slash + 1 : pk->name;
	uint64_t size;
	uint32_t o;

	for (size_t i = 0; i < NMARKERS; i++) {
		if (strcmp(name, markers[i]) == 0)
			return true;
		/* a marker earlier in the list takes precedence */
		if (pk->find && pk->find(pk, markers[i], &o, &size))
			return false;
	}
	return false;
}

/* The marker of the directory `up`: "../" or "../../". */
static const char *marker_above(struct pen_peek *pk, const char *up,
				char path[32])
{
	uint64_t size;
	uint32_t o;

	for (size_t i = 0; i < NMARKERS; i++) {
		snprintf(path, 32, "%s%s", up, markers[i]);
		if (pk->find(pk, path, &o, &size))
			return path;
	}
	return NULL;
}

/* Whether the directory of the file is named like "dataset_3". */
static bool in_dataset(const struct pen_peek *pk)
{
	const char *end = strrchr(pk->name, '/'), *p = end;

	while (p && p > pk->name && p[-1] >= '0' && p[-1] <= '9')
		p--;
	return p && p < end && p - pk->name >= 8 &&
	       memcmp(p - 8, "dataset_", 8) == 0;
}

bool pen__zarr_is_collection(const struct pen_zarr_node *node)
{
	const struct pen_jdoc *j;
	const uint32_t a = pen__zarr_attr(node, "encoding-type", &j);

	return node->group && pen__jdoc_is(j, a, "annbatch-preshuffled");
}

/* Whether the group in this directory ("" or "..") is a collection. */
static int is_collection(struct pen_peek *pk, const char *dir, bool *is,
			 struct pen_err *err)
{
	struct pen_zarr z = { .pk = pk, .version = 2 };
	struct pen_zarr_node node;
	struct pen_zarr_part p;
	char key[64];
	int rc;

	snprintf(key, sizeof(key), "%szarr.json", *dir == '.' ? "../" : "");
	if (pen__zarr_find(&z, key, &p))
		z.version = 3;
	rc = pen__zarr_node_open(&z, dir, &node, err);
	*is = rc > 0 && pen__zarr_is_collection(&node);
	pen__zarr_node_close(&node);
	return rc < 0 ? rc : 0;
}

int pen__zarr_is_root(struct pen_peek *pk, bool *root, struct pen_err *err)
{
	char path[32];
	bool is;
	int rc;

	*root = false;
	if (!pen__zarr_is_marker(pk))
		return 0;
	if (!pk->find) {
		*root = true;
		return 0;
	}
	if (!marker_above(pk, "../", path)) {
		rc = is_collection(pk, "", &is, err);
		*root = !is;
		return rc;
	}
	if (!in_dataset(pk) || marker_above(pk, "../../", path))
		return 0;
	rc = is_collection(pk, "..", &is, err);
	*root = is;
	return rc;
}
