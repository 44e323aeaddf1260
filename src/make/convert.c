/*
 * Converts single cells: source to writer, directly or through a shuffle; then
 * the copy is opened like any other source and compared. Only then does it get
 * its name; until then it is a temporary file next to the target, removed after
 * any failure.
 */
#include "make/convert.h"

#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/rng.h"
#include "base/team.h"
#include "base/text.h"
#include "make/convert_source.h"
#include "make/convert_sums.h"
#include "make/row_shuffle.h"
#include "format/cells/cells_write.h"

#define LEAST_MEMORY ((uint64_t)64 << 20)

struct job {
	const struct pen_convert *c;
	struct pen_convert_result *r;
	struct pen_err *err;
	struct pen_cellsource src;
	struct pen_cells_writer *w;
	struct pen_row_shuffle *shuffle;
	struct pen_sums sums;
	uint64_t since; /* when the phase started */
	/* row names, for the writer */
	struct pen_buf texts;
	const char **text;
	uint64_t ntext;
	const void **obs;
};

static int tick(struct job *j, enum pen_convert_phase phase, uint64_t done)
{
	const uint64_t now = pen__now_ns();

	j->r->seconds[phase] += (double)(now - j->since) / 1e9;
	j->since = now;
	if (j->c->tick && j->c->tick(j->c->arg, phase, done, j->src.spec.nrows))
		return pen__fail(j->err, P_INTERRUPTED, j->c->path,
				 "interrupted; nothing was written");
	return 0;
}

static int nomem(const struct job *j, size_t n)
{
	return pen__fail_nomem(j->err, j->c->path, n);
}

/* ---- rows to the writer ---- */

/* The labels of the index codes, as strings. */
static int name_rows(struct job *j, const struct pen_cells_rows *r)
{
	const struct pen_cells_labels *label = j->src.index;
	const int32_t *code = r->obs[0];
	size_t at = 0;

	if (r->n > j->ntext) {
		const char **p = pen__realloc(j->text, r->n, sizeof(*p));

		if (!p)
			return nomem(j, r->n * sizeof(*p));
		j->text = p;
		j->ntext = r->n;
	}
	j->texts.n = 0;
	for (uint64_t i = 0; i < r->n; i++) {
		if ((uint32_t)code[i] >= label->n)
			return pen__fail(j->err, P_BAD_DATA_VALUE, j->c->path,
					 "a cell of the source has no name");
		pen__buf_put(&j->texts, label->s[code[i]].p,
			     label->s[code[i]].n);
		pen__buf_le(&j->texts, 0, 1);
	}
	if (j->texts.bad)
		return nomem(j, j->texts.n);
	for (uint64_t i = 0; i < r->n; i++) {
		j->text[i] = (const char *)j->texts.p + at;
		at += label->s[code[i]].n + 1;
	}
	return 0;
}

static int write_rows(struct job *j, const struct pen_cells_rows *r)
{
	struct pen_cells_rows out = *r;
	int rc = 0;

	if (j->src.index) {
		rc = name_rows(j, r);
		memcpy(j->obs, r->obs, j->src.spec.nobs * sizeof(*j->obs));
		j->obs[0] = j->text;
		out.obs = j->obs;
	}
	return rc < 0 ? rc : pen__cells_writer_rows(j->w, &out, j->err);
}

/* ---- phases ---- */

/* Joined genes drop some values; only reading shows how many are left. */
static int count(struct job *j)
{
	struct pen_cellsource s;
	struct pen_cells_rows r;
	int rc;

	if (pen__cellsource_count(&j->src))
		return 0;
	rc = pen__cellsource_open(&s, j->c->source, NULL, j->err);
	if (rc < 0)
		return rc;
	while (rc >= 0 && (rc = pen__cellsource_next(&s, &r, j->err)) == 0) {
		pen__cellsource_add(&j->src.spec, j->src.csr, &r);
		rc = tick(j, PEN_CONVERT_COUNT, s.done);
	}
	pen__cellsource_close(&s);
	return rc < 0 ? rc : 0;
}

static int open_shuffle(struct job *j)
{
	struct pen_row_shuffle_setup setup = { .spec = &j->src.spec,
					       .target = j->c->path,
					       .seed = j->c->seed,
					       .memory = j->c->memory };

	if (!setup.memory)
		setup.memory = pen__memory_available() / 4;
	if (setup.memory < LEAST_MEMORY && !j->c->memory)
		setup.memory = LEAST_MEMORY;
	return pen__row_shuffle_new(&j->shuffle, &setup, j->err);
}

static int read_rows(struct job *j)
{
	struct pen_cells_rows r;
	uint64_t number = 0;
	int rc = 0;

	while (rc >= 0 &&
	       (rc = pen__cellsource_next(&j->src, &r, j->err)) == 0) {
		for (uint64_t i = 0; j->c->verify && i < r.n; i++)
			pen__sums_row(&j->sums, &j->src, &r, i, number + i);
		number += r.n;
		rc = j->shuffle ? pen__row_shuffle_put(j->shuffle, &r, j->err)
				: write_rows(j, &r);
		if (rc >= 0)
			rc = tick(j, PEN_CONVERT_READ, number);
	}
	return rc < 0 ? rc : 0;
}

static int write_shuffled(struct job *j)
{
	struct pen_cells_rows r;
	uint64_t done = 0;
	int rc;

	while ((rc = pen__row_shuffle_take(j->shuffle, &r, j->err)) >= 0 &&
	       r.n) {
		rc = write_rows(j, &r);
		done += r.n;
		if (rc >= 0)
			rc = tick(j, PEN_CONVERT_WRITE, done);
		if (rc < 0)
			break;
	}
	j->r->buckets = pen__row_shuffle_nbuckets(j->shuffle);
	j->r->bucket_bytes = pen__row_shuffle_bytes(j->shuffle);
	pen__row_shuffle_free(j->shuffle);
	j->shuffle = NULL;
	return rc;
}

/* ---- verification ---- */

/* Opens the same matrices of the copy. */
static int open_written(struct job *j, struct pen_cellsource *s)
{
	struct pen_text matrix = { 0 };
	struct pen_spec *spec;
	int rc = pen_spec_new(&spec, j->err);

	if (rc < 0)
		return rc;
	pen__text_add(&matrix, "X");
	for (uint32_t i = 0; i < j->src.spec.ndense; i++)
		pen__text_add(&matrix, ",%s", j->src.spec.dense[i].path);
	for (uint32_t i = 0; i < j->src.spec.ncsr; i++)
		pen__text_add(&matrix, ",%s", j->src.spec.csr[i].path);
	if (matrix.failed)
		rc = nomem(j, matrix.n);
	if (rc >= 0)
		rc = pen_spec_add_path(spec, j->w->tmp, j->err);
	if (rc >= 0)
		rc = pen_spec_set(spec, "format", j->c->to, j->err);
	if (rc >= 0)
		rc = pen_spec_set(spec, "index_cache", "off", j->err);
	if (rc >= 0)
		rc = pen_spec_set(spec, "format.matrix", matrix.p, j->err);
	if (rc >= 0)
		rc = pen__cellsource_open(s, spec, &j->src, j->err);
	pen__text_fini(&matrix);
	pen_spec_free(spec);
	return rc;
}

static int compare_rows(struct job *j, struct pen_cellsource *s,
			struct pen_sums *sums)
{
	const uint64_t n = j->src.spec.nrows;
	struct pen_cells_rows r;
	struct pen_perm perm;
	uint64_t at = 0;
	int rc = 0;

	if (j->c->shuffle && n)
		pen__row_shuffle_order(&perm, n, j->c->seed);
	while (rc >= 0 && (rc = pen__cellsource_next(s, &r, j->err)) == 0) {
		for (uint64_t i = 0; i < r.n; i++, at++)
			pen__sums_row(sums, s, &r, i,
				      j->c->shuffle ? pen__perm_at(&perm, at)
						    : at);
		rc = tick(j, PEN_CONVERT_VERIFY, at);
	}
	return rc < 0 ? rc : 0;
}

static int verify(struct job *j)
{
	struct pen_sums sums = { 0 };
	struct pen_cellsource s;
	int64_t place;
	int rc = open_written(j, &s);

	if (rc < 0)
		return rc;
	rc = pen__sources_same(&j->src, &s, j->c->path, j->err);
	if (rc >= 0)
		rc = pen__sums_init(&sums, j->src.spec.nrows, j->err);
	if (rc >= 0)
		rc = compare_rows(j, &s, &sums);
	place = rc >= 0 ? pen__sums_differ(&j->sums, &sums) : -1;
	if (place >= 0)
		rc = pen__fail(
			j->err, P_COPY_DIFFERS, j->c->path,
			"the copy differs from the source within cells %" PRIu64
			" to %" PRIu64
			" and was discarded; check the disk and the memory",
			(uint64_t)place * PEN_SUMS_ROWS,
			(uint64_t)(place + 1) * PEN_SUMS_ROWS - 1);
	pen__sums_fini(&sums);
	pen__cellsource_close(&s);
	return rc;
}

/* ---- the conversion ---- */

/* Whether an object of the source is that file, or is below that directory. */
static bool is_read(const struct pen_objects *o, const char *path)
{
	char to[PATH_MAX], at[PATH_MAX];
	struct stat a, b;
	size_t n;

	if (!realpath(path, to) || stat(to, &a))
		return false;
	n = strlen(to);
	for (uint64_t i = 0; S_ISDIR(a.st_mode) && i < o->ndir; i++)
		if (realpath(o->names + o->dir[i].name, at) &&
		    !strncmp(at, to, n) && (at[n] == '/' || !at[n]))
			return true;
	for (uint64_t i = 0; S_ISREG(a.st_mode) && i < o->nobj; i++)
		if (pen__object_path(o, (uint32_t)i, at, sizeof(at)) &&
		    !stat(at, &b) && a.st_ino == b.st_ino &&
		    a.st_dev == b.st_dev)
			return true;
	return false;
}

/* A conversion may omit parts of a source, so its output never replaces the
 * source. */
static int check_apart(struct job *j)
{
	return is_read(&j->src.l->ds->objs, j->c->path)
		       ? pen__fail(j->err, P_CONFLICT, j->c->path,
				   "this is the source, which a conversion may "
				   "not copy completely; choose another file")
		       : 0;
}

/* The size of a file, or of all files below a directory. Not with fts_open(),
 * which crashes when memory runs out. */
static uint64_t bytes_at(int at, const char *name)
{
	const struct dirent *e;
	uint64_t n = 0;
	struct stat sb;
	DIR *d;
	int fd;

	if (fstatat(at, name, &sb, AT_SYMLINK_NOFOLLOW))
		return 0;
	if (!S_ISDIR(sb.st_mode))
		return S_ISREG(sb.st_mode) ? (uint64_t)sb.st_size : 0;
	fd = openat(at, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	d = fd < 0 ? NULL : fdopendir(fd);
	while (d && (e = readdir(d)))
		if (strcmp(e->d_name, ".") && strcmp(e->d_name, ".."))
			n += bytes_at(fd, e->d_name);
	if (d)
		closedir(d);
	else if (fd >= 0)
		close(fd);
	return n;
}

static int prepare(struct job *j)
{
	const struct pen_cells_spec *s = &j->src.spec;
	int rc = check_apart(j);

	if (rc >= 0)
		rc = count(j);
	j->obs = pen__calloc(s->nobs + 1, sizeof(*j->obs));
	if (rc >= 0 && !j->obs)
		rc = nomem(j, s->nobs * sizeof(*j->obs));
	if (rc >= 0 && j->c->verify)
		rc = pen__sums_init(&j->sums, s->nrows, j->err);
	if (rc >= 0 && j->c->shuffle)
		rc = open_shuffle(j);
	if (rc >= 0)
		rc = pen__cells_writer_open(
			&j->w, pen__cells_writer_find(j->c->to), j->c->path, s,
			(struct pen_opts){ j->c->kv, j->c->nkv }, j->err);
	return rc;
}

static void report(struct job *j)
{
	struct pen_convert_result *r = j->r;
	const struct pen_dataset *ds = j->src.l->ds;

	r->ncells = j->src.spec.nrows;
	r->ngenes = j->src.spec.ncols;
	r->nnz = j->src.spec.sparse ? j->src.spec.nnz : r->ncells * r->ngenes;
	r->nobs = j->src.spec.nobs;
	r->nobjects = pen_dataset_nobjects(ds);
	r->bytes_in = pen_dataset_nbytes(ds);
	r->bytes_out = bytes_at(AT_FDCWD, j->c->path);
	r->nbeside = j->src.spec.ndense + j->src.spec.ncsr;
	r->left = j->src.left;
	j->src.left = (struct pen_left){ 0 };
}

int pen__convert(const struct pen_convert *c, struct pen_convert_result *r,
		 struct pen_err *err)
{
	struct pen_err mine;
	struct job j = { .c = c, .r = r, .err = err ? err : &mine };
	int rc;

	*r = (struct pen_convert_result){ 0 };
	j.since = pen__now_ns();
	rc = pen__cellsource_open(&j.src, c->source, NULL, j.err);
	if (rc >= 0 && c->opened)
		c->opened(j.src.l->ds);
	if (rc >= 0)
		rc = prepare(&j);
	if (rc >= 0)
		rc = read_rows(&j);
	if (rc >= 0 && j.shuffle)
		rc = write_shuffled(&j);
	if (rc >= 0)
		rc = pen__cells_writer_seal(j.w, j.err);
	if (rc >= 0 && c->verify)
		rc = verify(&j);
	if (rc >= 0)
		rc = pen__cells_writer_finish(j.w, j.err);
	if (rc >= 0)
		report(&j);
	pen__cells_writer_close(j.w);
	pen__row_shuffle_free(j.shuffle);
	pen__sums_fini(&j.sums);
	pen__buf_fini(&j.texts);
	pen__free(j.text);
	pen__free(j.obs);
	pen__cellsource_close(&j.src);
	return rc;
}
