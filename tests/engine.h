/*
 * Loaders opened from one line of settings, batches serialised to bytes for
 * comparison, and checks of batches against what was written.
 */
#ifndef ENGINE_H
#define ENGINE_H

#include <dirent.h>
#include <sched.h>
#include <stdarg.h>

#include "base/bytes.h"
#include "engine/loader.h"
#include "engine_data.h"

/* ---- loading ---- */

/* "path key=value ...": words with '=' are settings, others are paths. */
static inline int eng_spec(struct pen_spec **out, char *text,
			   struct pen_err *err)
{
	int rc = pen_spec_new(out, err);
	char *word;

	if (!rc)
		rc = pen_spec_set(*out, "index_cache", "off", err);
	while (!rc && (word = strsep(&text, " ")) != NULL)
		if (*word)
			rc = strchr(word, '=')
				     ? pen_spec_parse(*out, word, err)
				     : pen_spec_add_path(*out, word, err);
	return rc;
}

static inline struct pen_loader *__attribute__((format(printf, 2, 3)))
eng_open(struct pen_err *err, const char *fmt, ...)
{
	struct pen_loader *l = NULL;
	struct pen_spec *spec = NULL;
	struct pen_err none;
	char text[ENG_TEXT];
	va_list ap;
	int rc;

	err = err ? err : &none;
	*err = (struct pen_err){ 0 };
	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	rc = eng_spec(&spec, text, err);
	if (!rc)
		rc = pen_loader_open(&l, spec, err);
	pen_spec_free(spec);
	CHECK(rc <= 0 && (rc == 0) == (l != NULL));
	CHECK_EQ(err->code, rc);
	return rc ? NULL : l;
}

/* Everything a consumer can see of a batch except seq, as bytes. */
static inline void eng_log(struct pen_buf *to, const struct pen_batch *b)
{
	const uint64_t head[] = { b->epoch,    b->position,	b->nsamples,
				  b->nskipped, b->nsubstituted, b->ntensors };

	pen__buf_put(to, head, sizeof(head));
	pen__buf_put(to, b->ids, b->nsamples * sizeof(*b->ids));
	for (uint32_t i = 0; i < b->ntensors; i++) {
		const struct pen_tensor *t = &b->tensors[i];
		size_t n = b->nsamples;

		pen__buf_str(to, t->name);
		pen__buf_put(to, t->shape, t->ndim * sizeof(*t->shape));
		if (t->offsets)
			pen__buf_put(to, t->offsets, (n + 1) * 8);
		if (t->shapes)
			pen__buf_put(to, t->shapes, n * t->row_ndim * 8);
		pen__buf_put(to, t->data, t->nbytes);
	}
}

/* Takes batches to the end of `epochs` or an error, which is returned; logs
 * them and the ends of epochs unless `to` is NULL. */
static inline int eng_run(struct pen_loader *l, uint64_t epochs,
			  struct pen_buf *to, struct pen_err *err)
{
	struct pen_batch *b;
	int rc = 0;

	while (epochs && rc >= 0) {
		rc = pen_loader_next(l, &b, err);
		if (rc == PEN_END) {
			epochs--;
			if (to)
				pen__buf_str(to, "end");
		} else if (!rc) {
			if (to)
				eng_log(to, b);
			pen_batch_unref(b);
		}
	}
	return rc;
}

static inline bool eng_same(const struct pen_buf *a, const struct pen_buf *b)
{
	return !a->bad && !b->bad && a->n == b->n &&
	       (!a->n || memcmp(a->p, b->p, a->n) == 0);
}

/* ---- checking ---- */

/* The number a sample had when it was written, from its file's name. */
static inline uint64_t eng_origin(const struct eng_set *s,
				  const struct pen_dataset *ds, uint64_t id)
{
	char path[512];
	const char *slash;
	uint32_t object;
	unsigned file;
	uint64_t k;

	pen_dataset_object_name(ds, id, path, sizeof(path));
	slash = strrchr(path, '/');
	if (sscanf(slash ? slash + 1 : path, "f%u", &file) != 1)
		return UINT64_MAX;
	pen__index_find(&ds->ix.pub, id, &object, &k);
	return eng_first(s, file) + k;
}

/* Does row r of tensor f contain what was written, in shape and content? */
static inline bool eng_row_right(const struct eng_set *s,
				 const struct pen_batch *b, uint32_t f,
				 uint32_t r, uint64_t id)
{
	const struct pen_tensor *t = &b->tensors[f];
	size_t item = pen_dtype_size(t->dtype), n, at;
	int64_t shape[PEN_MAX_DIMS];
	uint8_t want[512];

	n = eng_shape(s, f, id, shape);
	eng_fill(s, f, id, want, n);
	if (t->shapes && memcmp(t->shapes + (size_t)r * t->row_ndim, shape,
				t->row_ndim * sizeof(*shape)) != 0)
		return false;
	at = t->nbytes / (b->nsamples ? b->nsamples : 1) * r;
	if (t->layout == PEN_RAGGED) {
		at = (size_t)t->offsets[r] * item;
		if ((size_t)(t->offsets[r + 1] - t->offsets[r]) * item != n)
			return false;
	}
	return at + n <= t->nbytes &&
	       (n == 0 || memcmp((uint8_t *)t->data + at, want, n) == 0);
}

/* All rows of a dense or ragged batch; labels are checked elsewhere. */
static inline bool eng_right(const struct eng_set *s,
			     const struct pen_dataset *ds,
			     const struct pen_batch *b)
{
	bool ok = b->ntensors == eng_nfields(s) + ds->label.on;

	for (uint32_t f = 0; ok && f < eng_nfields(s); f++)
		for (uint32_t r = 0; ok && r < b->nsamples; r++)
			ok = eng_row_right(s, b, f, r,
					   eng_origin(s, ds, b->ids[r]));
	return ok;
}

/* The next allocation to fail: each of the first ones, and some of the many
 * later ones. */
static inline uint64_t eng_next_nth(uint64_t n)
{
	if (n < 150)
		return n + TEST_EVERY(3);
	return n + (n < 500 ? 5 : 50);
}

/* Entries of a directory of /proc/self: open files, threads. */
static inline unsigned eng_count(const char *dir)
{
	unsigned n = 0;
	DIR *d = opendir(dir);

	while (d && readdir(d))
		n++;
	if (d)
		closedir(d);
	return n;
}

#endif
