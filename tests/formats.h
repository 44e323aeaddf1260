/*
 * Formats against files of other programs: data/make_formats.py writes the
 * files of one format and a description of their contents. Here they are loaded
 * with the entire engine and compared value by value, then damaged in every
 * place.
 */
#ifndef FORMATS_H
#define FORMATS_H

#include "engine.h"
#include "golden.h"

/* Runs data/SCRIPT with these arguments, then a directory, then `more`; skips
 * the test if `needs`, Python modules, are not installed. */
static inline void formats_make_with(const char *script, const char *format,
				     const char *args, const char *more,
				     const char *needs)
{
	char path[PATH_MAX] = __FILE__, cmd[2 * PATH_MAX + 256], *slash;
	const char *source = getenv("SOURCE");

	if (!test_python_has(needs))
		TEST_SKIP("Python modules are not installed");
	slash = strrchr(path, '/');
	snprintf(slash ? slash + 1 : path, 64, "data/%s", script);
	if (source)
		snprintf(path, sizeof(path), "%s/tests/data/%s", source,
			 script);
	snprintf(golden_dir, sizeof(golden_dir), "formats-%s-%d", format,
		 (int)getpid());
	atexit(golden_remove);
	snprintf(cmd, sizeof(cmd), PYTHON " '%s' %s %s %s", path, args,
		 golden_dir, more);
	if (!CHECK(system(cmd) == 0))
		exit(1);
}

static inline void formats_make(const char *format, const char *needs)
{
	formats_make_with("make_formats.py", format, format, "", needs);
}

/* The next entry of the description: a field of a sample. */
struct formats_want {
	char name[64], dtype[32];
	uint32_t ndim;
	int64_t shape[8];
	uint64_t n;
	const uint8_t *p;
};

static inline bool formats_next(struct pen_bytes *b, struct formats_want *w)
{
	const uint8_t *name, *dtype;

	if (!pen__bytes_left(b))
		return false;
	name = pen__take(b, 64);
	dtype = pen__take(b, 32);
	w->ndim = pen__take_u32(b);
	for (uint32_t i = 0; i < w->ndim && i < 8; i++)
		w->shape[i] = (int64_t)pen__take_u64(b);
	w->n = pen__take_u64(b);
	w->p = pen__take(b, w->n);
	if (!CHECK(name && dtype && w->p && w->ndim <= 8))
		exit(1);
	memcpy(w->name, name, 64);
	memcpy(w->dtype, dtype, 32);
	return true;
}

static inline const struct pen_tensor *formats_tensor(const struct pen_batch *b,
						      const char *name)
{
	for (uint32_t i = 0; i < b->ntensors; i++)
		if (strcmp(b->tensors[i].name, name) == 0)
			return &b->tensors[i];
	return NULL;
}

static inline bool formats_row(const struct pen_batch *b, uint32_t row,
			       const struct formats_want *w)
{
	const struct pen_tensor *t = formats_tensor(b, w->name);
	const int64_t *shape;
	size_t at;

	if (!CHECK(t != NULL) || !CHECK_EQ(t->row_ndim, w->ndim) ||
	    !CHECK_STR(pen_dtype_name(t->dtype), w->dtype))
		return false;
	shape = t->layout == PEN_DENSE ? t->shape + 1
				       : t->shapes + (size_t)row * w->ndim;
	for (uint32_t i = 0; i < w->ndim; i++)
		if (!CHECK_EQ(shape[i], w->shape[i]))
			return false;
	at = t->layout == PEN_RAGGED
		     ? (size_t)t->offsets[row] * pen_dtype_size(t->dtype)
		     : t->nbytes / b->nsamples * row;
	return CHECK(at + w->n <= t->nbytes) &&
	       CHECK(!w->n ||
		     memcmp((const uint8_t *)t->data + at, w->p, w->n) == 0);
}

static inline bool formats_load(const char *name, const char *settings,
				const char *store)
{
	struct pen_err err;
	struct pen_loader *l;
	struct pen_batch *b;
	struct formats_want w;
	struct pen_bytes in;
	char file[160];
	uint8_t *want;
	bool ok = true;
	size_t n;
	int rc;

	l = eng_open(&err,
		     "%s batch_size=3 threads=2 epochs=1 "
		     "sampler=sequential %s",
		     settings, store);
	if (!CHECK(l != NULL)) {
		fprintf(stderr, "  %s: %s: %s\n", name, err.where, err.msg);
		return false;
	}
	snprintf(file, sizeof(file), "%s.want", name);
	want = golden_read(file, &n);
	in = pen__bytes(want, n);
	while (ok && (rc = pen_loader_next(l, &b, &err)) == 0) {
		for (uint32_t i = 0; ok && i < b->nsamples; i++)
			for (uint32_t f = 0; ok && f < b->ntensors; f++)
				ok = CHECK(formats_next(&in, &w)) &&
				     formats_row(b, i, &w);
		pen_batch_unref(b);
	}
	ok = ok && CHECK_EQ(rc, PEN_END) && CHECK_EQ(pen__bytes_left(&in), 0);
	if (!ok)
		fprintf(stderr, "  in %s %s: %s: %s\n", name, store, err.where,
			err.msg);
	pen_loader_close(l);
	free(want);
	return ok;
}

/* Every case of the manifest over some stores. */
static inline void formats_check(unsigned at_least)
{
	FILE *f = golden_list("manifest");
	char line[1024], settings[2048];
	unsigned n = 0;

	while (fgets(line, sizeof(line), f)) {
		char *tab = strchr(line, '\t');

		line[strcspn(line, "\n")] = '\0';
		if (!CHECK(tab != NULL))
			break;
		*tab = '\0';
		snprintf(settings, sizeof(settings), "%s/%s", golden_dir,
			 tab + 1);
		formats_load(line, settings, "store=posix");
		formats_load(line, settings, "store=mmap");
		formats_load(line, settings, "store=fault");
		n++;
	}
	CHECK(n >= at_least);
	fclose(f);
}

/* Every case to reject: opening or loading fails with the reason. */
static inline void formats_refuse(unsigned at_least)
{
	FILE *f = golden_list("refused");
	char line[1024], *tab;
	unsigned n = 0;

	while (fgets(line, sizeof(line), f)) {
		struct pen_err err = { 0 };
		struct pen_loader *l;
		int rc = 0;

		line[strcspn(line, "\n")] = '\0';
		tab = strchr(line, '\t');
		if (!CHECK(tab != NULL))
			break;
		*tab = '\0';
		l = eng_open(&err,
			     "%s/%s batch_size=1 epochs=1 "
			     "sampler=sequential",
			     golden_dir, line);
		if (l)
			rc = eng_run(l, 1, NULL, &err);
		if (!CHECK(err.code < 0 && strstr(err.msg, tab + 1)))
			fprintf(stderr, "  %s: %d: \"%s: %s\" lacks \"%s\"\n",
				line, rc, err.where, err.msg, tab + 1);
		CHECK(err.where[0] != '\0');
		pen_loader_close(l);
		n++;
	}
	CHECK(n >= at_least);
	fclose(f);
}

/* The warnings of a data set: their number, and whether a text is among them.
 */
struct formats_warned {
	const char *text;
	uint64_t nbad, nnotes;
	bool found_bad, found_note;
};

static inline void formats_see(void *arg, const struct pen_err *e)
{
	struct formats_warned *w = arg;
	const bool has = strstr(e->msg, w->text) != NULL;

	CHECK(e->where[0] && e->msg[0]);
	CHECK(e->code == PEN_EDATA || e->code == PEN_OK);
	*(e->code ? &w->nbad : &w->nnotes) += 1;
	*(e->code ? &w->found_bad : &w->found_note) |= has;
}

/* Every case with a warning: it loads, and the warning exists, or none. */
static inline void formats_warn(unsigned at_least)
{
	FILE *f = golden_list("warned");
	char line[1024], *text = line, *settings, *kind;
	unsigned n = 0;

	for (; fgets(line, sizeof(line), f); text = line, n++) {
		struct formats_warned w = { 0 };
		struct pen_err err = { 0 };
		struct pen_loader *l;
		bool ok;

		line[strcspn(line, "\n")] = '\0';
		settings = strsep(&text, "\t");
		kind = strsep(&text, "\t");
		if (!CHECK(text != NULL))
			break;
		w.text = text;
		l = eng_open(&err, "%s/%s epochs=1", golden_dir, settings);
		if (l) {
			CHECK_EQ(eng_run(l, 1, NULL, &err), PEN_END);
			pen_dataset_warnings(l->ds, &w, formats_see);
		}
		ok = strcmp(kind, "bad") == 0	 ? w.found_bad
		     : strcmp(kind, "note") == 0 ? w.found_note && !w.nbad
						 : !w.nbad && !w.nnotes;
		if (!CHECK(l && ok))
			fprintf(stderr, "  %s: %s, not %s: %s %s\n", settings,
				w.nbad	   ? "bad"
				: w.nnotes ? "note"
					   : "none",
				kind, text, err.msg);
		pen_loader_close(l);
	}
	CHECK(n >= at_least);
	fclose(f);
}

/* ---- damage ---- */

/* Contents of an undamaged object. */
struct formats_was {
	struct drv_rows row[64];
	uint64_t n;
	struct pen_field field[PEN_MAX_FIELDS];
};

/* Whether the sample is unchanged in the fields that still exist. */
static inline bool formats_same(const struct drv *d, uint64_t k,
				const struct drv_rows *r,
				const struct formats_was *was)
{
	if (k >= was->n)
		return false;
	for (uint32_t i = 0; i < r->n; i++)
		for (uint32_t j = 0; j < was->row[k].n; j++)
			if (!strcmp(d->f->field[i].name, was->field[j].name) &&
			    (r->len[i] != was->row[k].len[j] ||
			     memcmp(r->p[i], was->row[k].p[j], r->len[i])))
				return false;
	return true;
}

/* Opens, reads all samples and, with `was`, compares them with the original.
 * Returns their number. */
static inline unsigned formats_try(const char *format,
				   const struct pen_opts_kv *kv, size_t nkv,
				   struct pen_span bytes,
				   const struct formats_was *was)
{
	struct pen_err err = { 0 };
	struct drv_rows rows = { 0 };
	unsigned good = 0;
	struct drv d;

	if (drv_open_one(&d, format, kv, nkv, 2, bytes, &err) < 0) {
		CHECK(err.code < 0 && err.msg[0] && err.where[0]);
		drv_close(&d);
		return 0;
	}
	for (uint64_t k = 0; k < d.ix.nsamples && k < 64; k++) {
		err = (struct pen_err){ 0 };
		if (drv_sample(&d, 0, k, &rows, &err) < 0) {
			CHECK(err.code < 0 && err.msg[0] && err.where[0]);
		} else {
			good++;
			CHECK(!was || formats_same(&d, k, &rows, was));
		}
		drv_rows_free(&rows);
	}
	drv_close(&d);
	return good;
}

/*
 * Every truncation, and `1 / step` of all byte values at every position. exact:
 * samples that are read anyway must be right.
 */
static inline void formats_damage(const char *file, const char *format,
				  const struct pen_opts_kv *kv, size_t nkv,
				  bool exact, unsigned step)
{
	struct formats_was was = { .n = 0 };
	struct pen_err err = { 0 };
	struct drv d;
	size_t n;
	uint8_t *p = golden_read(file, &n);
	unsigned good = 0;

	if (!CHECK_EQ(drv_open_one(&d, format, kv, nkv, 2,
				   (struct pen_span){ p, n }, &err),
		      0))
		fprintf(stderr, "  %s: %s\n", file, err.msg);
	for (; was.n < d.ix.nsamples && was.n < 64; was.n++)
		CHECK_EQ(drv_sample(&d, 0, was.n, &was.row[was.n], &err), 0);
	memcpy(was.field, d.f->field, sizeof(was.field));
	drv_close(&d);
	for (size_t i = 0; i < n; i = test_next_place(i, n))
		good += formats_try(format, kv, nkv, (struct pen_span){ p, i },
				    exact ? &was : NULL);
	for (size_t i = 0; i < n; i = test_next_place(i, n)) {
		const uint8_t old = p[i];

		for (unsigned x = 1; x < 256; x += step) {
			p[i] = (uint8_t)(old ^ x);
			good += formats_try(format, kv, nkv,
					    (struct pen_span){ p, n },
					    exact ? &was : NULL);
		}
		p[i] = old;
	}
	CHECK(good > 0 || was.n == 1);
	while (was.n)
		drv_rows_free(&was.row[--was.n]);
	free(p);
}

/* Writes a table in memory with the n-th allocation failing, for every n. */
static inline void formats_write_nomem(const char *format,
				       const struct pen_opts_kv *kv, size_t nkv,
				       const struct pen_table *t)
{
	for (uint64_t i = 1; i < 10000; i++) {
		struct golden_out out = { .out.write = golden_write };
		struct pen_format *f;
		struct pen_err err = { 0 };
		uint64_t n;
		int rc;

		pen__mem_fail_nth(i, false);
		rc = pen__format_open(&f, pen__format_find(format), kv, nkv,
				      &err);
		if (!rc)
			rc = f->ops->write(f, t, &out.out, &err);
		n = pen__mem_count();
		pen__mem_fail_nth(0, false);
		pen__format_close(f);
		pen__buf_fini(&out.buf);
		if (n < i) {
			CHECK_EQ(rc, 0);
			return;
		}
		CHECK_EQ(rc, PEN_ENOMEM);
		CHECK_EQ(err.code, PEN_ENOMEM);
	}
	CHECK(false);
}

/* Runs Python in the directory of the golden files. */
static inline int formats_python(const char *code)
{
	char cmd[4096];

	snprintf(cmd, sizeof(cmd), "cd %s && " PYTHON " -c \"%s\"", golden_dir,
		 code);
	return system(cmd);
}

#endif
