/*
 * Golden files for tests: written by data/make_golden.py with NumPy to a
 * directory of this process, and read back line by line of the manifest.
 */
#ifndef GOLDEN_H
#define GOLDEN_H

#include <ftw.h>
#include <limits.h>
#include <sys/wait.h>
#include <unistd.h>

#include "format_driver.h"
#include "test.h"

struct golden_case {
	char file[128], samples[16], field[64], dtype[32], raw[192];
	unsigned long long nobjects, nsamples;
	unsigned ndim;
	int64_t shape[PEN_MAX_DIMS];
};

static char golden_dir[64];

static inline int golden_unlink(const char *path, const struct stat *st,
				int kind, struct FTW *at)
{
	(void)st;
	(void)kind;
	(void)at;
	return remove(path);
}

static inline void golden_remove(void)
{
	if (nftw(golden_dir, golden_unlink, 16, FTW_DEPTH | FTW_PHYS) != 0)
		fprintf(stderr, "could not remove %s\n", golden_dir);
}

/* Runs Python, in a directory unless NULL; true if it exited with 0. */
static inline bool golden_python(const char *dir, const char *a, const char *b)
{
	int status = -1;
	pid_t pid = fork();

	if (pid == 0) {
		if (!dir || chdir(dir) == 0)
			execl(PYTHON, PYTHON, a, b, (char *)NULL);
		_exit(127);
	}
	return pid > 0 && waitpid(pid, &status, 0) == pid && status == 0;
}

/* Skips the test if NumPy is not installed. */
static inline void golden_make(const char *name)
{
	const char *source = getenv("SOURCE");
	char path[PATH_MAX] = __FILE__, *slash;

	if (!test_python_has("numpy"))
		TEST_SKIP("NumPy is not installed");
	slash = strrchr(path, '/');
	snprintf(slash ? slash + 1 : path, 32, "data/make_golden.py");
	if (source)
		snprintf(path, sizeof(path), "%s/tests/data/make_golden.py",
			 source);
	snprintf(golden_dir, sizeof(golden_dir), "golden-%s-%d", name,
		 (int)getpid());
	atexit(golden_remove);
	if (!CHECK(golden_python(NULL, path, golden_dir)))
		exit(1);
}

/* The contents of a file, the caller's to free. */
static inline uint8_t *golden_read(const char *name, size_t *n)
{
	char path[320];
	uint8_t *p;
	FILE *f;
	long len;

	snprintf(path, sizeof(path), "%s/%s", golden_dir, name);
	f = fopen(path, "rb");
	if (!CHECK(f != NULL))
		exit(1);
	fseek(f, 0, SEEK_END);
	len = ftell(f);
	rewind(f);
	p = malloc(len ? (size_t)len : 1);
	*n = p ? fread(p, 1, (size_t)len, f) : 0;
	CHECK_EQ(*n, len);
	fclose(f);
	return p;
}

static inline FILE *golden_list(const char *name)
{
	char path[128];
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", golden_dir, name);
	f = fopen(path, "r");
	if (!CHECK(f != NULL))
		exit(1);
	return f;
}

static inline bool golden_next(FILE *f, struct golden_case *c)
{
	long long v;

	if (fscanf(f, "%127s %15s %llu %llu %63s %31s %191s %u", c->file,
		   c->samples, &c->nobjects, &c->nsamples, c->field, c->dtype,
		   c->raw, &c->ndim) != 8)
		return false;
	for (unsigned i = 0; i < c->ndim; i++) {
		if (fscanf(f, "%lld", &v) != 1)
			return false;
		c->shape[i] = v;
	}
	return true;
}

static inline bool ends_in(const char *s, const char *suffix)
{
	size_t n = strlen(s), k = strlen(suffix);

	return n >= k && strcmp(s + n - k, suffix) == 0;
}

/* All samples of one case against the dump. */
static inline void golden_check(const struct golden_case *c, const char *format,
				struct pen_opts_kv extra)
{
	const struct pen_opts_kv kv[] = { { "samples", c->samples }, extra };
	struct pen_err err = { 0 };
	struct drv_rows rows = { 0 };
	uint8_t *file, *raw;
	size_t n, nraw, len = 0;
	unsigned i = 0;
	struct drv d;
	bool ok;

	file = golden_read(c->file, &n);
	raw = golden_read(c->raw, &nraw);
	ok = CHECK_EQ(drv_open_one(&d, format, kv, extra.key ? 2 : 1,
				   c->nobjects, (struct pen_span){ file, n },
				   &err),
		      0);
	if (!ok)
		goto out;
	while (i < d.f->nfields && strcmp(d.f->field[i].name, c->field) != 0)
		i++;
	ok = CHECK(i < d.f->nfields) && CHECK_EQ(d.ix.nsamples, c->nsamples) &&
	     CHECK_STR(pen_dtype_name(d.f->field[i].dtype), c->dtype) &&
	     CHECK_EQ(d.f->field[i].ndim, c->ndim);
	for (unsigned j = 0; ok && j < c->ndim; j++)
		ok = CHECK_EQ(d.f->field[i].shape[j], c->shape[j]);
	for (uint64_t k = 0; ok && k < d.ix.nsamples; k++) {
		ok = CHECK_EQ(drv_sample(&d, 0, k, &rows, &err), 0);
		len = rows.len[i];
		ok = ok && CHECK((k + 1) * len <= nraw) &&
		     CHECK(memcmp(rows.p[i], raw + k * len, len) == 0);
		drv_rows_free(&rows);
	}
	ok = ok && CHECK_EQ(nraw, d.ix.nsamples * len);
out:
	if (!ok)
		fprintf(stderr, "  in %s samples=%s field=%s: %s: %s\n",
			c->file, c->samples, c->field, err.where, err.msg);
	drv_close(&d);
	free(file);
	free(raw);
}

/* Every file to reject of one format. */
static inline void golden_check_refused(const char *format)
{
	FILE *f = golden_list("refused");
	char name[128], kind[16], text[128];

	while (fscanf(f, "%127s %15s %127[^\n]", name, kind, text) == 3) {
		struct pen_err err = { 0 };
		uint8_t *file;
		struct drv d;
		size_t n;

		if (strcmp(kind, format) != 0)
			continue;
		file = golden_read(name, &n);
		CHECK(drv_open_one(&d, format, NULL, 0, 2,
				   (struct pen_span){ file, n }, &err) < 0);
		if (!CHECK(strstr(err.msg, text) != NULL))
			fprintf(stderr, "  in %s: \"%s\" lacks \"%s\"\n", name,
				err.msg, text);
		CHECK(strncmp(err.where, "object-0", 8) == 0);
		drv_close(&d);
		free(file);
	}
	fclose(f);
}

/* An output to memory. */
struct golden_out {
	struct pen_out out;
	struct pen_buf buf;
};

static inline int golden_write(struct pen_out *o, const void *p, size_t n,
			       struct pen_err *err)
{
	struct golden_out *g = (struct golden_out *)o;

	pen__buf_put(&g->buf, p, n);
	return g->buf.bad ? pen__fail_nomem(err, "memory", n) : 0;
}

/* The n-th allocation fails, for every n: an error each time, no leak. */
static inline void golden_check_nomem(const char *format, struct pen_opts_kv kv,
				      struct pen_span bytes)
{
	for (uint64_t n = 1; n < 10000; n++) {
		struct drv_rows rows = { 0 };
		struct pen_err err = { 0 };
		struct drv d;
		bool reached;
		int rc;

		pen__mem_fail_nth(n, n & 1);
		rc = drv_open_one(&d, format, &kv, 1, 2, bytes, &err);
		if (rc >= 0 && d.ix.nsamples)
			rc = drv_sample(&d, 0, 0, &rows, &err);
		reached = pen__mem_count() >= n;
		pen__mem_fail_nth(0, false);
		drv_rows_free(&rows);
		drv_close(&d);
		if (!reached) {
			CHECK_EQ(rc, 0);
			return;
		}
		CHECK_EQ(rc, PEN_ENOMEM);
		CHECK_EQ(err.code, PEN_ENOMEM);
	}
	CHECK(false);
}

/*
 * A damaged object may be rejected, or look unchanged. With `exact`, its
 * samples must also be right.
 */
struct golden_whole {
	uint64_t nsamples;
	uint32_t nfields;
	struct pen_field field[PEN_MAX_FIELDS];
	uint8_t *rows;
	size_t nrows;
};

static inline int golden_all_rows(struct drv *d, struct pen_buf *out)
{
	for (uint64_t k = 0; k < d->ix.nsamples; k++) {
		struct drv_rows r = { 0 };
		int rc = drv_sample(d, 0, k, &r, NULL);

		for (uint32_t i = 0; i < r.n && rc >= 0; i++)
			pen__buf_put(out, r.p[i], r.len[i]);
		drv_rows_free(&r);
		if (rc < 0)
			return rc;
	}
	return 0;
}

static inline void golden_whole_of(struct drv *d, struct golden_whole *w)
{
	struct pen_buf b = { 0 };

	CHECK_EQ(golden_all_rows(d, &b), 0);
	w->nsamples = d->ix.nsamples;
	w->nfields = d->f->nfields;
	memcpy(w->field, d->f->field, sizeof(w->field));
	w->rows = b.p;
	w->nrows = b.n;
}

static inline bool golden_same(struct drv *d, const struct golden_whole *w,
			       bool exact)
{
	struct pen_buf b = { 0 };
	bool ok = d->ix.nsamples == w->nsamples && d->f->nfields == w->nfields;
	int rc;

	for (uint32_t i = 0; ok && i < w->nfields; i++)
		ok = d->f->field[i].ndim == w->field[i].ndim &&
		     memcmp(d->f->field[i].shape, w->field[i].shape,
			    sizeof(w->field[i].shape)) == 0;
	rc = golden_all_rows(d, &b);
	if (ok && exact && rc >= 0)
		ok = b.n == w->nrows && memcmp(b.p, w->rows, b.n) == 0;
	pen__buf_fini(&b);
	return ok;
}

/* step n tries every n-th of the 255 other values of a byte. */
static inline void golden_check_damage(const char *format,
				       struct pen_opts_kv kv,
				       struct pen_span bytes, bool exact,
				       unsigned step)
{
	struct golden_whole w = { 0 };
	uint8_t *copy = malloc(bytes.n);
	unsigned ntaken = 0;
	struct drv d;

	memcpy(copy, bytes.p, bytes.n);
	CHECK_EQ(drv_open_one(&d, format, &kv, 1, 2, bytes, NULL), 0);
	golden_whole_of(&d, &w);
	drv_close(&d);
	for (size_t n = 0; n < bytes.n; n = test_next_place(n, bytes.n)) {
		CHECK(drv_open_one(&d, format, &kv, 1, 2,
				   (struct pen_span){ copy, n }, NULL) < 0);
		drv_close(&d);
	}
	for (size_t i = 0; i < bytes.n; i = test_next_place(i, bytes.n)) {
		for (unsigned x = 1; x < 256; x += step) {
			copy[i] = (uint8_t)(bytes.p[i] ^ x);
			if (drv_open_one(&d, format, &kv, 1, 2,
					 (struct pen_span){ copy, bytes.n },
					 NULL) >= 0) {
				if (!CHECK(golden_same(&d, &w, exact)))
					fprintf(stderr, "  byte %zu ^ %u\n", i,
						x);
				ntaken++;
			}
			drv_close(&d);
		}
		copy[i] = bytes.p[i];
	}
	CHECK(ntaken > 0);
	pen__free(w.rows);
	free(copy);
}

#endif
