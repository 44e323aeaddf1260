/*
 * Chooses the arrays of a file that are fields. Without fields= these are
 * DLIO's records_0, records_1, ... and labels, or all numeric arrays whose
 * first axis is as long as that of the largest one. Rejects unlikely guesses:
 * single numbers as samples, of a sparse matrix (including Cell Ranger's) or of
 * one array among others of different lengths; and samples larger than such a
 * file can contain (a few bytes can declare any shape).
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/mem.h"
#include "format/chunked/plain.h"

#define MOST_SAMPLES ((uint64_t)1 << 40)

/* ---- collecting arrays ---- */

/* Names that identify the type of a group. */
static const char *const telling[] = { "data",	   "indices", "indptr",
				       "barcodes", "obs",     "var" };
enum { SPARSE = 7, RANGER = 8, ANNDATA = 48 };

void pen__picker_see(struct pen_picker *w, const char *name)
{
	for (unsigned i = 0; i < sizeof(telling) / sizeof(*telling); i++)
		if (strcmp(name, telling[i]) == 0)
			w->has |= 1u << i;
}

void pen__picker_judge(struct pen_picker *w)
{
	w->anndata |= !*w->path && (w->has & ANNDATA) == ANNDATA;
	if (w->any_sparse || (w->has & SPARSE) != SPARSE)
		return;
	w->any_sparse = true;
	w->ranger = w->has & RANGER;
	memcpy(w->sparse, w->path, sizeof(w->sparse));
	if (*w->sparse) /* without the trailing slash */
		w->sparse[strlen(w->sparse) - 1] = '\0';
}

int pen__picker_add(struct pen_picker *w, uint64_t addr,
		    const struct pen_chunked_put *d, struct pen_err *err)
{
	struct pen_plain_pick *c;

	if (strlen(w->path) >= sizeof(c->name)) {
		memcpy(w->too_long, w->path, sizeof(w->too_long));
		return 0;
	}
	if (w->n == w->cap) {
		const size_t cap = w->cap ? w->cap * 2 : 16;
		void *p = pen__realloc(w->c, cap, sizeof(*c));

		if (!p)
			return pen__fail_nomem(err, w->name, cap * sizeof(*c));
		w->c = p;
		w->cap = cap;
	}
	c = &w->c[w->n++];
	*c = (struct pen_plain_pick){ .addr = addr,
				      .ndim = d->ndim,
				      .dim0 = 1 };
	memcpy(c->name, w->path, strlen(w->path));
	c->nbytes = pen_dtype_size(d->dtype);
	for (uint32_t i = 0; i < d->ndim; i++)
		if (__builtin_mul_overflow(c->nbytes, d->dim[i], &c->nbytes))
			return pen__fail(
				err, P_DAMAGED, w->name,
				"damaged: the size of '%s' overflows 64 bits",
				c->name);
	if (c->ndim)
		c->dim0 = d->dim[0];
	return 0;
}

void pen__picker_fini(struct pen_picker *w)
{
	pen__free(w->c);
	w->c = NULL;
}

static int check_names(const struct pen_picker *w, struct pen_err *err)
{
	if (!*w->too_long)
		return 0;
	return pen__fail(err, P_OVER_LIMIT, w->name,
			 "the path of %s '%.120s' is longer than %zu bytes and "
			 "cannot be a field name; select others with fields=",
			 w->src->noun, w->too_long, sizeof(w->c->name) - 1);
}

/* ---- guessing fields ---- */

static int by_name(const void *a, const void *b)
{
	return strcmp(((const struct pen_plain_pick *)a)->name,
		      ((const struct pen_plain_pick *)b)->name);
}

/* The number of DLIO's records_<number>, or -1. */
static long dlio_number(const char *name)
{
	size_t n;

	if (strncmp(name, "records_", 8) != 0)
		return -1;
	n = strspn(name + 8, "0123456789");
	return n && n < 8 && !name[8 + n] ? strtol(name + 8, NULL, 10) : -1;
}

static int by_number(const void *a, const void *b)
{
	const long x = dlio_number(((const struct pen_plain_pick *)a)->name);
	const long y = dlio_number(((const struct pen_plain_pick *)b)->name);

	/* labels, without a number, come last */
	if ((x < 0) != (y < 0))
		return x < 0 ? 1 : -1;
	return (x > y) - (x < y);
}

/* Rejects single numbers as samples if the array is one among others of
 * different lengths. left: one of those, or NULL. */
static int check_guess(const struct pen_picker *w,
		       const struct pen_plain_pick *left, struct pen_err *err)
{
	for (size_t i = 0; i < w->n; i++)
		if (w->c[i].ndim != 1)
			return 0;
	if (!left || !w->n)
		return 0;
	return pen__fail(err, P_UNSUPPORTED_FEATURE, w->name,
			 "by default a sample would be one of the numbers of "
			 "'%.64s' (%" PRIu64 "), but '%.64s' has %" PRIu64
			 "; set fields=%.64s, or format.samples=file to read "
			 "the file as one sample",
			 w->c[0].name, w->c[0].dim0, left->name, left->dim0,
			 w->c[0].name);
}

/* Keeps the arrays that form the fields. */
static int keep_fields(struct pen_picker *w, struct pen_err *err)
{
	struct pen_plain_pick left = { 0 };
	const struct pen_plain_pick *largest = NULL;
	bool dlio = false;
	size_t n = 0;
	uint64_t dim0;

	qsort(w->c, w->n, sizeof(*w->c), by_name);
	for (size_t i = 0; i < w->n; i++)
		dlio |= dlio_number(w->c[i].name) >= 0;
	for (size_t i = 0; i < w->n; i++) {
		const struct pen_plain_pick *c = &w->c[i];

		if ((w->whole || c->ndim) &&
		    (!dlio || dlio_number(c->name) >= 0) &&
		    (!largest || c->nbytes > largest->nbytes))
			largest = c;
	}
	dim0 = largest ? largest->dim0 : 0;
	for (size_t i = 0; i < w->n; i++) {
		const struct pen_plain_pick c = w->c[i];

		if (!w->whole && (!c.ndim || c.dim0 != dim0)) {
			if (c.ndim && c.dim0 > left.dim0)
				left = c;
			continue;
		}
		if (dlio && dlio_number(c.name) < 0 &&
		    strcmp(c.name, "labels") != 0)
			continue;
		w->c[n++] = c;
	}
	w->nleft_out += (unsigned)(w->n - n);
	w->n = n;
	if (dlio)
		qsort(w->c, w->n, sizeof(*w->c), by_number);
	/* a single number is more likely a setting than data */
	return check_guess(w, !dlio && left.dim0 > 1 ? &left : NULL, err);
}

/* A sparse matrix consists of values, indices and offsets, which are not
 * samples. */
static int refuse_sparse(const struct pen_picker *w, struct pen_err *err)
{
	const char *name = *w->sparse ? w->sparse : "/";

	if (w->ranger)
		return pen__fail(
			err, P_UNSUPPORTED_FEATURE, w->name,
			"the matrix of 10x Genomics Cell Ranger (group "
			"'%.64s') is not supported; convert it to h5ad with "
			"scanpy: read_10x_h5(this).write(that)",
			name);
	if (w->anndata)
		return pen__fail(err, P_UNSUPPORTED_FEATURE, w->name,
				 "the file is AnnData; set format=h5ad to read "
				 "its cells");
	return pen__fail(
		err, P_UNSUPPORTED_FEATURE, w->name,
		"group '%.64s' is a sparse matrix (data, indices, indptr), "
		"whose numbers are not samples; select %ss with fields=, or "
		"set format.samples=file to read the file as one sample",
		name, w->src->noun);
}

static int pick_all(struct pen_picker *w, struct pen_err *err)
{
	int rc = w->src->all(w, err);

	if (rc < 0)
		return rc;
	if (w->any_sparse && !w->whole)
		return refuse_sparse(w, err);
	rc = check_names(w, err);
	if (rc >= 0 && w->n)
		rc = keep_fields(w, err);
	if (rc < 0)
		return rc;
	if (!w->n)
		return pen__fail(
			err, P_UNSUPPORTED_TYPE, w->name,
			"the file has no numeric %s %s(%u of other types)",
			w->src->noun, w->whole ? "" : "with a sample axis ",
			w->nleft_out);
	if (w->n > PEN_MAX_FIELDS)
		return pen__fail(err, P_OVER_LIMIT, w->name,
				 "the file has %zu %ss, more than %d; list the "
				 "ones to read with fields=",
				 w->n, w->src->noun, PEN_MAX_FIELDS);
	return 0;
}

/* ---- fields= ---- */

static int pick_named(struct pen_picker *w, const char *list,
		      struct pen_err *err)
{
	int rc = 0;

	while (rc >= 0 && list) {
		const size_t skip = strspn(list, "/ ");
		const size_t len = strcspn(list + skip, ",");

		if (!len || len >= sizeof(w->path) || w->n == PEN_MAX_FIELDS)
			return pen__fail(err, P_BAD_VALUE, "fields",
					 "specify at most %d paths separated "
					 "by commas, none of them empty",
					 PEN_MAX_FIELDS);
		memcpy(w->path, list + skip, len);
		w->path[len] = '\0';
		for (size_t i = 0; i < w->n; i++)
			if (strcmp(w->c[i].name, w->path) == 0)
				return pen__fail(err, P_BAD_VALUE, "fields",
						 "'%s' is listed twice",
						 w->path);
		rc = w->src->named(w, err);
		list = list[skip + len] ? list + skip + len + 1 : NULL;
	}
	return rc < 0 ? rc : check_names(w, err);
}

/* ---- indexing a file ---- */

/* The number of samples, which must be the same for all fields and have a
 * plausible size. */
static int count(struct pen_picker *w, uint64_t *out, struct pen_err *err)
{
	const uint64_t size = w->size;
	const uint64_t most = pen__chunked_most(size);
	uint64_t rows = 0, bytes = 0;

	*out = w->whole ? 1 : w->c[0].dim0;
	for (size_t i = 0; i < w->n; i++) {
		const struct pen_plain_pick *c = &w->c[i];
		uint64_t row;

		if (!w->whole && (!c->ndim || c->dim0 != *out))
			return pen__fail(
				err, P_FILES_DISAGREE, w->name,
				"'%s' has %" PRIu64
				" samples, but '%s' has %" PRIu64
				"; select %ss of one length with fields=",
				c->name, c->ndim ? c->dim0 : 0, w->c[0].name,
				*out, w->src->noun);
		row = w->whole || !c->dim0 ? c->nbytes : c->nbytes / c->dim0;
		bytes |= c->nbytes;
		if (row > most || (rows += row) > most)
			return pen__fail(err, P_DAMAGED, w->name,
					 "'%s' declares samples of %" PRIu64
					 " bytes, which a file of %" PRIu64
					 " bytes cannot contain",
					 c->name, row, size);
	}
	if (*out > MOST_SAMPLES || (*out && !bytes && !w->whole))
		return pen__fail(err, P_DAMAGED, w->name,
				 "the file declares %" PRIu64
				 " samples, more than it can contain",
				 *out);
	return 0;
}

int pen__plain_index(const struct pen_plain *p, struct pen_picker *w,
		     struct pen_found *found, struct pen_err *err)
{
	struct pen_buf *b = &found->blob;
	char where[256];
	int rc;

	w->whole = p->samples == PEN_SAMPLES_FILE;
	rc = p->fields ? pick_named(w, p->fields, err) : pick_all(w, err);
	if (rc >= 0)
		rc = count(w, &found->nsamples, err);
	if (rc < 0)
		return rc;
	pen__buf_le(b, PEN_PLAIN_BLOB, 1);
	pen__buf_le(b, w->whole ? PEN_SAMPLES_FILE : PEN_SAMPLES_FIRST, 1);
	pen__buf_le(b, w->version, 1);
	pen__buf_le(b, w->n, 1);
	pen__buf_le(b, p->fields ? 0 : w->nleft_out, 4);
	for (size_t i = 0; rc >= 0 && i < w->n; i++) {
		const struct pen_plain_pick *c = &w->c[i];

		snprintf(where, sizeof(where), "%s:%s", w->name, c->name);
		pen__buf_le(b, strlen(c->name), 1);
		pen__buf_str(b, c->name);
		rc = w->src->put(w, c, where, b, err);
	}
	if (rc >= 0 && b->bad)
		rc = pen__fail_nomem(err, w->name, b->n);
	return rc;
}
