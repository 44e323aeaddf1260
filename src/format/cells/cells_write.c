/*
 * The part that all writers of single cells share. The spec and the rows are
 * checked once, here, so that a writer can trust them. A file gets its final
 * name only when it is complete and synced. An existing file, or a directory
 * that looks like a zarr store, is replaced; any other directory, and anything
 * that is neither a file nor a directory, is refused.
 */
#include "format/cells/cells_write.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/stale.h"
#include "base/sync.h"

const struct pen_cells_writer_ops *pen__cells_writer_find(const char *name)
{
	const struct pen_cells_writer_ops *ops;

	for (unsigned i = 0; (ops = pen__cells_writer_at(i)); i++)
		if (!strcmp(ops->name, name))
			return ops;
	return NULL;
}

static size_t trimmed(const char *path)
{
	size_t n = strlen(path);

	while (n > 1 && path[n - 1] == '/')
		n--;
	return n;
}

const struct pen_cells_writer_ops *pen__cells_writer_for(const char *path)
{
	const struct pen_cells_writer_ops *ops;
	const size_t n = trimmed(path);

	for (unsigned i = 0; (ops = pen__cells_writer_at(i)); i++) {
		const size_t k = strlen(ops->suffix);

		if (n > k && !memcmp(path + n - k, ops->suffix, k))
			return ops;
	}
	return NULL;
}

/* ---- the spec ---- */

static int check_column(const struct pen_cells_column_spec *c,
			struct pen_err *err)
{
	if (!c->name || !c->name[0] || strchr(c->name, '/') ||
	    c->name[0] == '.')
		return pen__fail(err, P_CANNOT_WRITE_THIS,
				 c->name ? c->name : "",
				 "not a valid column name");
	if (c->coded && (c->nnames > INT32_MAX || (!c->names && c->nnames)))
		return pen__fail(err, P_CANNOT_WRITE_THIS, c->name,
				 "the column has too many names, or none");
	if (!c->coded && c->dtype > PEN_F64)
		return pen__fail(err, P_UNSUPPORTED_TYPE, c->name,
				 "cannot write a column of type %s",
				 pen_dtype_name(c->dtype));
	return 0;
}

/* Whether the preceding column may have missing values. */
static bool fits_mask(const struct pen_cells_column_spec *c, uint32_t i)
{
	return i && !strcmp(c[i - 1].name, c[i].name) && !c[i].coded &&
	       c[i].dtype == PEN_BOOL && !c[i - 1].coded && !c[i - 1].mask;
}

static int check_columns(const struct pen_cells_column_spec *c, uint32_t n,
			 const char *frame, struct pen_err *err)
{
	unsigned nindex = 0;
	int rc = 0;

	for (uint32_t i = 0; !rc && i < n; i++) {
		rc = check_column(&c[i], err);
		nindex += c[i].coded && c[i].index;
		if (!rc && c[i].mask && !fits_mask(c, i))
			rc = pen__fail(err, P_CANNOT_WRITE_THIS, c[i].name,
				       "the mask has no column");
		for (uint32_t j = 0; !rc && !c[i].mask && j < i; j++)
			if (!strcmp(c[i].name, c[j].name))
				rc = pen__fail(err, P_CANNOT_WRITE_THIS, frame,
					       "two columns are named '%s'",
					       c[i].name);
	}
	if (!rc && nindex > 1)
		rc = pen__fail(err, P_CANNOT_WRITE_THIS, frame,
			       "two columns are marked as the index");
	return rc;
}

/* A matrix other than X. */
static int check_extra(const char *path, enum pen_dtype t, uint64_t ncols,
		       struct pen_err *err)
{
	const char *slash = strchr(path, '/');
	const size_t n = slash ? (size_t)(slash - path) : 0;

	if (!((n == 4 && !memcmp(path, "obsm", n)) ||
	      (n == 6 && !memcmp(path, "layers", n))) ||
	    !slash[1] || slash[1] == '.' || strchr(slash + 1, '/'))
		return pen__fail(err, P_CANNOT_WRITE_THIS, path,
				 "not a valid path of a matrix; use obsm/NAME "
				 "or layers/NAME");
	if (t > PEN_F64 || !ncols)
		return pen__fail(err, P_UNSUPPORTED_TYPE, path,
				 "the matrix has no columns, or a type that "
				 "cannot be written");
	return 0;
}

static const char *extra_path(const struct pen_cells_spec *s, uint32_t i)
{
	return i < s->ndense ? s->dense[i].path : s->csr[i - s->ndense].path;
}

static int check_paths(const struct pen_cells_spec *s, struct pen_err *err)
{
	for (uint32_t i = 0; i < s->ndense + s->ncsr; i++)
		for (uint32_t j = 0; j < i; j++)
			if (!strcmp(extra_path(s, i), extra_path(s, j)))
				return pen__fail(err, P_CANNOT_WRITE_THIS,
						 extra_path(s, i),
						 "two matrices have this path");
	return 0;
}

/* A column of var: its values are known from the start. */
static int check_codes(const struct pen_cells_column_spec *c,
		       const void *values, uint64_t n, struct pen_err *err)
{
	const int32_t *v = values;
	const char *const *text = values;

	if (!c->coded)
		return 0;
	for (uint64_t i = 0; !c->names && i < n; i++)
		if (c->index ? !text[i] : v[i] != -1)
			return pen__fail(
				err, P_CANNOT_WRITE_THIS, c->name,
				"the column has a value without a name");
	for (uint64_t i = 0; c->names && i < n; i++)
		if (v[i] < (c->index ? 0 : -1) || v[i] >= (int64_t)c->nnames)
			return pen__fail(
				err, P_CANNOT_WRITE_THIS, c->name,
				"the column has a value beyond its names");
	return 0;
}

static int check_indices(enum pen_dtype t, uint64_t ncols, const char *path,
			 struct pen_err *err)
{
	const uint64_t most = t == PEN_U16   ? UINT16_MAX
			      : t == PEN_U32 ? UINT32_MAX
					     : INT32_MAX;

	if (t != PEN_I32 && t != PEN_I64 && t != PEN_U16 && t != PEN_U32)
		return pen__fail(err, P_UNSUPPORTED_TYPE, path,
				 "cannot write indices of type %s",
				 pen_dtype_name(t));
	if (ncols && ncols - 1 > most)
		return pen__fail(
			err, P_CANNOT_WRITE_THIS, path,
			"indices of type %s are too narrow for %llu genes",
			pen_dtype_name(t), (unsigned long long)ncols);
	return 0;
}

static int check_matrix(const struct pen_cells_spec *s, const char *path,
			struct pen_err *err)
{
	if (s->dtype > PEN_F64)
		return pen__fail(err, P_UNSUPPORTED_TYPE, path,
				 "cannot write values of type %s",
				 pen_dtype_name(s->dtype));
	return s->sparse ? check_indices(s->indices, s->ncols, path, err) : 0;
}

static int check_spec(const struct pen_cells_spec *s, const char *path,
		      struct pen_err *err)
{
	size_t row, all;
	int rc = check_matrix(s, path, err);

	if (!rc &&
	    (!pen__mul((size_t)s->ncols, pen_dtype_size(s->dtype), &row) ||
	     !pen__mul(row, (size_t)s->nrows, &all)))
		rc = pen__fail(err, P_CANNOT_WRITE_THIS, path,
			       "the matrix would be too large");
	if (!rc)
		rc = check_columns(s->obs, s->nobs, "obs", err);
	if (!rc)
		rc = check_columns(s->var, s->nvar, "var", err);
	for (uint32_t i = 0; !rc && i < s->nvar; i++)
		rc = check_codes(&s->var[i], s->var_values[i], s->ncols, err);
	for (uint32_t i = 0; !rc && i < s->ndense; i++)
		rc = check_extra(s->dense[i].path, s->dense[i].dtype,
				 s->dense[i].ncols, err);
	for (uint32_t i = 0; !rc && i < s->ncsr; i++) {
		const struct pen_cells_csr_spec *c = &s->csr[i];

		rc = check_extra(c->path, c->dtype, c->ncols, err);
		if (!rc)
			rc = check_indices(c->indices, c->ncols, c->path, err);
	}
	return rc ? rc : check_paths(s, err);
}

/* ---- names in the file system ---- */

static bool remove_at(int dir, const char *name);

/* Empties a directory; true: something was removed. */
static bool empty_dir(int dir)
{
	_Alignas(struct dirent64) char buf[2048];
	bool some = false;
	ssize_t n;

	lseek(dir, 0, SEEK_SET);
	while ((n = getdents64(dir, buf, sizeof(buf))) > 0) {
		for (ssize_t at = 0; at < n;) {
			const struct dirent64 *d = (const void *)(buf + at);

			if (strcmp(d->d_name, ".") && strcmp(d->d_name, ".."))
				some |= remove_at(dir, d->d_name);
			at += d->d_reclen;
		}
	}
	return some;
}

/* Allocates nothing: lack of memory may be the reason for giving up a file. */
static bool remove_at(int dir, const char *name)
{
	bool gone = false, some = true;
	int fd;

	if (!unlinkat(dir, name, 0))
		return true;
	fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	while (fd >= 0 && !gone && some) {
		some = empty_dir(fd);
		gone = !unlinkat(dir, name, AT_REMOVEDIR);
	}
	if (fd >= 0)
		close(fd);
	return gone;
}

static void remove_tree(const char *path)
{
	(void)remove_at(AT_FDCWD, path);
}

static bool has(const char *dir, const char *name)
{
	char path[4096];

	return snprintf(path, sizeof(path), "%s/%s", dir, name) <
		       (int)sizeof(path) &&
	       !access(path, F_OK);
}

static bool is_store(const char *dir)
{
	return has(dir, ".zgroup") || has(dir, ".zarray") ||
	       has(dir, "zarr.json");
}

/* Whether any directory above, as spelled in the path, is a zarr store. */
static bool in_store(const char *path)
{
	char dir[4096];
	char *slash;

	if (snprintf(dir, sizeof(dir), "%s", path) >= (int)sizeof(dir))
		return false;
	while ((slash = strrchr(dir, '/')) && slash > dir) {
		*slash = '\0';
		if (is_store(dir))
			return true;
	}
	return false;
}

/* Whether an existing target may be replaced. */
static int check_target(const char *path, struct pen_err *err)
{
	struct stat sb;

	if (in_store(path))
		return pen__fail(err, P_BAD_VALUE, path,
				 "inside a zarr store, which the file would "
				 "corrupt; choose a path outside it");
	if (stat(path, &sb))
		return 0;
	if (S_ISDIR(sb.st_mode) && !has(path, ".zgroup") &&
	    !has(path, "zarr.json"))
		return pen__fail(err, P_EXISTS, path,
				 "the directory is not a zarr store and is not "
				 "replaced; choose another path");
	if (!S_ISDIR(sb.st_mode) && !S_ISREG(sb.st_mode))
		return pen__fail(err, P_EXISTS, path,
				 "not a regular file, so it is not replaced; "
				 "choose another path");
	return 0;
}

static char *sibling(const char *path, const char *suffix)
{
	char name[4128];

	if (snprintf(name, sizeof(name), "%s.%ld.%s", path, (long)getpid(),
		     suffix) >= (int)sizeof(name))
		return NULL;
	return pen__strdup(name);
}

/* Removes the leftovers of a killed process, a file or a directory. */
static void drop_stale(const char *stale, void *path)
{
	(void)path;
	remove_tree(stale);
}

/* The process was killed after it had moved the old target aside: the old
 * one is restored unless the new one exists. */
static void restore_stale(const char *stale, void *path)
{
	struct stat sb;

	if (!lstat(path, &sb) || rename(stale, path))
		remove_tree(stale);
}

void pen__cells_writer_clean(const char *path)
{
	char *name = pen__strndup(path, trimmed(path));

	if (!name)
		return;
	pen__stale_each(name, "old", restore_stale, name);
	pen__stale_each(name, "tmp", drop_stale, name);
	pen__stale_each(name, "rows", drop_stale, name);
	pen__free(name);
}

/* rename() cannot replace a non-empty directory, nor a file by a directory:
 * the old target is moved aside first. */
static int move_in(const struct pen_cells_writer *w, bool is_dir,
		   struct pen_err *err)
{
	struct stat sb;
	char *old;
	int sys = 0;

	if (lstat(w->path, &sb) || (!is_dir && !S_ISDIR(sb.st_mode)))
		return rename(w->tmp, w->path)
			       ? pen__fail_sys(err, errno, w->path,
					       "cannot write")
			       : 0;
	old = sibling(w->path, "old");
	if (!old)
		return pen__fail_nomem(err, w->path, strlen(w->path));
	if (rename(w->path, old)) {
		sys = errno;
	} else if (rename(w->tmp, w->path)) {
		sys = errno;
		(void)rename(old, w->path);
	} else {
		remove_tree(old);
	}
	pen__free(old);
	return sys ? pen__fail_sys(err, sys, w->path,
				   "cannot replace the existing data")
		   : 0;
}

static int sync_path(const char *path, bool is_dir, struct pen_err *err)
{
	const int fd = open(path, O_RDONLY | O_CLOEXEC);
	int sys = 0;

	/* for a directory, everything written below it */
	if (fd < 0 || (is_dir ? syncfs(fd) : fsync(fd)))
		sys = errno;
	if (fd >= 0)
		close(fd);
	return sys ? pen__fail_sys(err, sys, path, "cannot sync") : 0;
}

/* Syncs the new name as well. */
static int sync_name(const char *path, struct pen_err *err)
{
	const int sys = pen__sync_parent(path);

	return sys ? pen__fail_sys(err, sys, path,
				   "written, but its directory cannot be "
				   "synced, so a crash may lose it")
		   : 0;
}

/* ---- the writer ---- */

int pen__cells_writer_open(struct pen_cells_writer **out,
			   const struct pen_cells_writer_ops *ops,
			   const char *path, const struct pen_cells_spec *spec,
			   struct pen_opts given, struct pen_err *err)
{
	const char *kind = spec->converts ? "to." : "format.";
	struct pen_cells_writer *w;
	int rc;

	*out = NULL;
	rc = pen__check_local(path, err);
	if (!rc)
		rc = check_spec(spec, path, err);
	if (rc)
		return rc;
	w = pen__calloc(1, sizeof(*w));
	if (!w)
		return pen__fail_nomem(err, path, sizeof(*w));
	w->ops = ops;
	w->spec = spec;
	w->failed = true;
	w->path = pen__strndup(path, trimmed(path));
	w->tmp = w->path ? sibling(w->path, "tmp") : NULL;
	w->priv = pen__calloc(1, ops->priv_size ? ops->priv_size : 1);
	w->csr_nnz = pen__calloc((size_t)spec->ncsr + 1, sizeof(*w->csr_nnz));
	if (!w->path || !w->tmp || !w->priv || !w->csr_nnz) {
		rc = pen__fail_nomem(err, path, ops->priv_size);
		goto fail;
	}
	rc = check_target(w->path, err);
	if (!rc)
		rc = pen__opt_fill(ops->opts, w->priv, given.kv, given.n, kind,
				   err);
	if (rc)
		goto fail;
	remove_tree(w->tmp);
	pen__cells_writer_clean(w->path);
	rc = ops->open(w, err);
	if (rc) {
		pen__opt_err(ops->opts, kind, err);
		pen__cells_writer_close(w);
		return rc;
	}
	w->failed = false;
	*out = w;
	return 0;
fail:
	pen__free(w->csr_nnz);
	pen__free(w->path);
	pen__free(w->tmp);
	pen__free(w->priv);
	pen__free(w);
	return rc;
}

/* left: values that may still come. */
static int check_sparse(const struct pen_cells_lists *l, uint64_t nrows,
			uint64_t ncols, uint64_t left, const char *path,
			struct pen_err *err)
{
	const uint64_t n = l->start[nrows];
	uint32_t most = 0;

	if (l->start[0])
		return pen__fail(err, P_BAD_CALL, path,
				 "the rows do not start at 0");
	for (uint64_t i = 0; i < nrows; i++)
		if (l->start[i] > l->start[i + 1])
			return pen__fail(err, P_BAD_CALL, path,
					 "a row ends before it starts");
	if (n > left)
		return pen__fail(err, P_BAD_CALL, path,
				 "more values than announced");
	for (uint64_t i = 0; i < n; i++)
		most = l->indices[i] > most ? l->indices[i] : most;
	if (n && most >= ncols)
		return pen__fail(err, P_BAD_CALL, path,
				 "gene %u is beyond the last one", most);
	return 0;
}

static int check_matrices(const struct pen_cells_writer *w,
			  const struct pen_cells_rows *r, struct pen_err *err)
{
	const struct pen_cells_spec *s = w->spec;
	const struct pen_cells_lists x = { r->start, r->indices, r->values };
	int rc = 0;

	if (s->sparse)
		rc = check_sparse(&x, r->n, s->ncols, s->nnz - w->nnz, w->path,
				  err);
	for (uint32_t i = 0; !rc && i < s->ncsr; i++)
		rc = check_sparse(&r->csr[i], r->n, s->csr[i].ncols,
				  s->csr[i].nnz - w->csr_nnz[i], s->csr[i].path,
				  err);
	return rc;
}

int pen__cells_writer_rows(struct pen_cells_writer *w,
			   const struct pen_cells_rows *r, struct pen_err *err)
{
	const struct pen_cells_spec *s = w->spec;
	int rc = 0;

	if (w->failed || w->sealed)
		return pen__fail(
			err, P_BAD_CALL, w->path,
			"the writer has failed or is already finished");
	if (!r->n)
		return 0;
	w->failed = true;
	if (r->n > s->nrows - w->nrows)
		return pen__fail(err, P_BAD_CALL, w->path,
				 "more rows than announced");
	rc = check_matrices(w, r, err);
	for (uint32_t i = 0; !rc && i < s->nobs; i++)
		rc = check_codes(&s->obs[i], r->obs[i], r->n, err);
	if (!rc)
		rc = w->ops->rows(w, r, err);
	if (rc)
		return rc;
	w->nrows += r->n;
	w->nnz += s->sparse ? r->start[r->n] : 0;
	for (uint32_t i = 0; i < s->ncsr; i++)
		w->csr_nnz[i] += r->csr[i].start[r->n];
	w->failed = false;
	return 0;
}

int pen__cells_writer_seal(struct pen_cells_writer *w, struct pen_err *err)
{
	const struct pen_cells_spec *s = w->spec;
	struct stat sb = { 0 };
	bool whole = true;
	int rc;

	if (w->failed || w->sealed)
		return pen__fail(
			err, P_BAD_CALL, w->path,
			"the writer has failed or is already finished");
	w->failed = true;
	for (uint32_t i = 0; i < s->ncsr; i++)
		whole &= w->csr_nnz[i] == s->csr[i].nnz;
	if (w->nrows != s->nrows)
		return pen__fail(err, P_BAD_CALL, w->path,
				 "incomplete: %llu of %llu rows were written",
				 (unsigned long long)w->nrows,
				 (unsigned long long)s->nrows);
	if (!whole || (s->sparse && w->nnz != s->nnz))
		return pen__fail(err, P_BAD_CALL, w->path,
				 "incomplete: fewer values than announced");
	rc = w->ops->finish(w, err);
	if (rc)
		return rc;
	if (stat(w->tmp, &sb))
		return pen__fail_sys(err, errno, w->tmp, "cannot stat");
	rc = sync_path(w->tmp, S_ISDIR(sb.st_mode), err);
	if (rc)
		return rc;
	w->failed = false;
	w->sealed = true;
	return 0;
}

int pen__cells_writer_finish(struct pen_cells_writer *w, struct pen_err *err)
{
	struct stat sb = { 0 };
	int rc = 0;

	if (!w->sealed)
		rc = pen__cells_writer_seal(w, err);
	else if (w->failed || w->finished)
		rc = pen__fail(err, P_BAD_CALL, w->path,
			       "the writer has failed or is already finished");
	if (rc)
		return rc;
	w->failed = true;
	if (stat(w->tmp, &sb))
		return pen__fail_sys(err, errno, w->tmp, "cannot stat");
	rc = check_target(w->path, err);
	if (!rc)
		rc = move_in(w, S_ISDIR(sb.st_mode), err);
	if (rc)
		return rc;
	w->finished = true;
	rc = sync_name(w->path, err);
	w->failed = rc != 0;
	return rc;
}

void pen__cells_writer_close(struct pen_cells_writer *w)
{
	if (!w)
		return;
	if (w->ops->close)
		w->ops->close(w);
	if (!w->finished)
		remove_tree(w->tmp);
	pen__opt_fini(w->ops->opts, w->priv);
	pen__free(w->csr_nnz);
	pen__free(w->path);
	pen__free(w->tmp);
	pen__free(w->priv);
	pen__free(w);
}
