/*
 * What all writers of single cells share: the spec and the rows are checked
 * here, once, so that a writer can trust them; and a file has its final name
 * only when it is whole and on the disk. Replaces a file, or a directory that
 * looks like a zarr store; refuses to touch any other directory, and what is
 * neither file nor directory.
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
		return pen__fail(err, PEN_EINVAL, c->name ? c->name : "",
				 "cannot be the name of a column");
	if (c->coded && (c->nnames > INT32_MAX || (!c->names && c->nnames)))
		return pen__fail(err, PEN_EINVAL, c->name,
				 "has too many names, or they are not there");
	if (!c->coded && c->dtype > PEN_F64)
		return pen__fail(err, PEN_ENOTSUP, c->name,
				 "a column of %s cannot be written",
				 pen_dtype_name(c->dtype));
	return 0;
}

/* Is the column before it one that something may be missing in? */
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
			rc = pen__fail(err, PEN_EINVAL, c[i].name,
				       "a mask without its column");
		for (uint32_t j = 0; !rc && !c[i].mask && j < i; j++)
			if (!strcmp(c[i].name, c[j].name))
				rc = pen__fail(err, PEN_EINVAL, frame,
					       "has two columns '%s'",
					       c[i].name);
	}
	if (!rc && nindex > 1)
		rc = pen__fail(err, PEN_EINVAL, frame, "has two indices");
	return rc;
}

/* A matrix beside X. */
static int check_beside(const char *path, enum pen_dtype t, uint64_t ncols,
			struct pen_err *err)
{
	const char *slash = strchr(path, '/');
	const size_t n = slash ? (size_t)(slash - path) : 0;

	if (!((n == 4 && !memcmp(path, "obsm", n)) ||
	      (n == 6 && !memcmp(path, "layers", n))) ||
	    !slash[1] || slash[1] == '.' || strchr(slash + 1, '/'))
		return pen__fail(err, PEN_EINVAL, path,
				 "is not obsm/NAME or layers/NAME");
	if (t > PEN_F64 || !ncols)
		return pen__fail(err, PEN_ENOTSUP, path,
				 "has no columns, or a type that cannot be "
				 "written");
	return 0;
}

static const char *beside_at(const struct pen_cells_spec *s, uint32_t i)
{
	return i < s->ndense ? s->dense[i].path : s->csr[i - s->ndense].path;
}

static int check_paths(const struct pen_cells_spec *s, struct pen_err *err)
{
	for (uint32_t i = 0; i < s->ndense + s->ncsr; i++)
		for (uint32_t j = 0; j < i; j++)
			if (!strcmp(beside_at(s, i), beside_at(s, j)))
				return pen__fail(err, PEN_EINVAL,
						 beside_at(s, i),
						 "is there twice");
	return 0;
}

/* A column of var: its values are there from the start. */
static int check_codes(const struct pen_cells_column_spec *c,
		       const void *values, uint64_t n, struct pen_err *err)
{
	const int32_t *v = values;
	const char *const *text = values;

	if (!c->coded)
		return 0;
	for (uint64_t i = 0; !c->names && i < n; i++)
		if (c->index ? !text[i] : v[i] != -1)
			return pen__fail(err, PEN_EINVAL, c->name,
					 "has a value without a name");
	for (uint64_t i = 0; c->names && i < n; i++)
		if (v[i] < (c->index ? 0 : -1) || v[i] >= (int64_t)c->nnames)
			return pen__fail(err, PEN_EINVAL, c->name,
					 "has a value beyond its names");
	return 0;
}

static int check_indices(enum pen_dtype t, uint64_t ncols, const char *path,
			 struct pen_err *err)
{
	const uint64_t most = t == PEN_U16   ? UINT16_MAX
			      : t == PEN_U32 ? UINT32_MAX
					     : INT32_MAX;

	if (t != PEN_I32 && t != PEN_I64 && t != PEN_U16 && t != PEN_U32)
		return pen__fail(err, PEN_ENOTSUP, path,
				 "indices of %s cannot be written",
				 pen_dtype_name(t));
	if (ncols && ncols - 1 > most)
		return pen__fail(err, PEN_EINVAL, path,
				 "indices of %s are too narrow for %llu genes",
				 pen_dtype_name(t), (unsigned long long)ncols);
	return 0;
}

static int check_matrix(const struct pen_cells_spec *s, const char *path,
			struct pen_err *err)
{
	if (s->dtype > PEN_F64)
		return pen__fail(err, PEN_ENOTSUP, path,
				 "numbers of %s cannot be written",
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
		rc = pen__fail(err, PEN_EINVAL, path, "would be too large");
	if (!rc)
		rc = check_columns(s->obs, s->nobs, "obs", err);
	if (!rc)
		rc = check_columns(s->var, s->nvar, "var", err);
	for (uint32_t i = 0; !rc && i < s->nvar; i++)
		rc = check_codes(&s->var[i], s->var_values[i], s->ncols, err);
	for (uint32_t i = 0; !rc && i < s->ndense; i++)
		rc = check_beside(s->dense[i].path, s->dense[i].dtype,
				  s->dense[i].ncols, err);
	for (uint32_t i = 0; !rc && i < s->ncsr; i++) {
		const struct pen_cells_csr_spec *c = &s->csr[i];

		rc = check_beside(c->path, c->dtype, c->ncols, err);
		if (!rc)
			rc = check_indices(c->indices, c->ncols, c->path, err);
	}
	return rc ? rc : check_paths(s, err);
}

/* ---- names in the file system ---- */

static bool remove_at(int dir, const char *name);

/* All that is in a directory; true: something is gone. */
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

/* Without memory: there may be none left, which is why a file is given up. */
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

/* Whether any of the directories above is a zarr store, as it is written. */
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

/* May what is there be replaced? */
static int check_target(const char *path, struct pen_err *err)
{
	struct stat sb;

	if (in_store(path))
		return pen__fail(err, PEN_EINVAL, path,
				 "is inside of a zarr store, which would no "
				 "longer be whole; name a place beside it");
	if (stat(path, &sb))
		return 0;
	if (S_ISDIR(sb.st_mode) && !has(path, ".zgroup") &&
	    !has(path, "zarr.json"))
		return pen__fail(err, PEN_EINVAL, path,
				 "is a directory and no zarr store; it is not "
				 "replaced: name another");
	if (!S_ISDIR(sb.st_mode) && !S_ISREG(sb.st_mode))
		return pen__fail(err, PEN_EINVAL, path,
				 "is not a file and cannot be replaced");
	return 0;
}

static char *beside(const char *path, const char *suffix)
{
	char name[4128];

	if (snprintf(name, sizeof(name), "%s.%ld.%s", path, (long)getpid(),
		     suffix) >= (int)sizeof(name))
		return NULL;
	return pen__strdup(name);
}

/* What a program that was killed left, of a file or a directory. */
static void drop_stale(const char *stale, void *path)
{
	(void)path;
	remove_tree(stale);
}

/* It was killed after what it should replace stepped aside: that comes back,
 * unless the new one is there. */
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

/* A directory takes nothing else's name, and gives its own to nothing: what
 * is there steps aside first. */
static int move_in(const struct pen_cells_writer *w, bool is_dir,
		   struct pen_err *err)
{
	struct stat sb;
	char *old;
	int sys = 0;

	if (lstat(w->path, &sb) || (!is_dir && !S_ISDIR(sb.st_mode)))
		return rename(w->tmp, w->path)
			       ? pen__fail_sys(err, errno, w->path,
					       "cannot be written")
			       : 0;
	old = beside(w->path, "old");
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
	return sys ? pen__fail_sys(err, sys, w->path, "cannot be replaced") : 0;
}

static int sync_path(const char *path, bool is_dir, struct pen_err *err)
{
	const int fd = open(path, O_RDONLY | O_CLOEXEC);
	int sys = 0;

	/* of a directory everything that was written below it */
	if (fd < 0 || (is_dir ? syncfs(fd) : fsync(fd)))
		sys = errno;
	if (fd >= 0)
		close(fd);
	return sys ? pen__fail_sys(err, sys, path, "cannot be synced") : 0;
}

/* The new name is on the disk, too, where the file system can do that and the
 * directory may be read. */
static int sync_parent(char *path, struct pen_err *err)
{
	char *slash = strrchr(path, '/');
	int fd, sys = 0;

	if (slash)
		*slash = '\0';
	fd = open(!slash ? "." : *path ? path : "/", O_RDONLY | O_CLOEXEC);
	if (slash)
		*slash = '/';
	if (fd < 0 && errno != EACCES)
		sys = errno;
	if (fd >= 0 && fsync(fd) && errno != EINVAL && errno != EOPNOTSUPP)
		sys = errno;
	if (fd >= 0)
		close(fd);
	return sys ? pen__fail_sys(err, sys, path,
				   "is there, but its name may be lost in a "
				   "crash: its directory cannot be synced")
		   : 0;
}

/* ---- the writer ---- */

int pen__cells_writer_open(struct pen_cells_writer **out,
			   const struct pen_cells_writer_ops *ops,
			   const char *path, const struct pen_cells_spec *spec,
			   const struct pen_opts_kv *kv, size_t nkv,
			   struct pen_err *err)
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
	w->tmp = w->path ? beside(w->path, "tmp") : NULL;
	w->priv = pen__calloc(1, ops->priv_size ? ops->priv_size : 1);
	w->csr_nnz = pen__calloc((size_t)spec->ncsr + 1, sizeof(*w->csr_nnz));
	if (!w->path || !w->tmp || !w->priv || !w->csr_nnz) {
		rc = pen__fail_nomem(err, path, ops->priv_size);
		goto fail;
	}
	rc = check_target(w->path, err);
	if (!rc)
		rc = pen__opt_fill(ops->opts, w->priv, kv, nkv, kind, err);
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

/* left: numbers that may still come. */
static int check_sparse(const struct pen_cells_lists *l, uint64_t nrows,
			uint64_t ncols, uint64_t left, const char *path,
			struct pen_err *err)
{
	const uint64_t n = l->start[nrows];
	uint32_t most = 0;

	if (l->start[0])
		return pen__fail(err, PEN_EINVAL, path,
				 "rows that do not begin at 0");
	for (uint64_t i = 0; i < nrows; i++)
		if (l->start[i] > l->start[i + 1])
			return pen__fail(err, PEN_EINVAL, path,
					 "a row that ends before it begins");
	if (n > left)
		return pen__fail(err, PEN_EINVAL, path,
				 "more numbers than were announced");
	for (uint64_t i = 0; i < n; i++)
		most = l->indices[i] > most ? l->indices[i] : most;
	if (n && most >= ncols)
		return pen__fail(err, PEN_EINVAL, path,
				 "gene %u is beyond the last", most);
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
		return pen__fail(err, PEN_EINVAL, w->path,
				 "has failed or is finished already");
	if (!r->n)
		return 0;
	w->failed = true;
	if (r->n > s->nrows - w->nrows)
		return pen__fail(err, PEN_EINVAL, w->path,
				 "more rows than were announced");
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
		return pen__fail(err, PEN_EINVAL, w->path,
				 "has failed or is finished already");
	w->failed = true;
	for (uint32_t i = 0; i < s->ncsr; i++)
		whole &= w->csr_nnz[i] == s->csr[i].nnz;
	if (w->nrows != s->nrows || !whole || (s->sparse && w->nnz != s->nnz))
		return pen__fail(err, PEN_EINVAL, w->path,
				 "is not whole: %llu of %llu rows came",
				 (unsigned long long)w->nrows,
				 (unsigned long long)s->nrows);
	rc = w->ops->finish(w, err);
	if (rc)
		return rc;
	if (stat(w->tmp, &sb))
		return pen__fail_sys(err, errno, w->tmp, "is not there");
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
		rc = pen__fail(err, PEN_EINVAL, w->path,
			       "has failed or is finished already");
	if (rc)
		return rc;
	w->failed = true;
	if (stat(w->tmp, &sb))
		return pen__fail_sys(err, errno, w->tmp, "is not there");
	rc = check_target(w->path, err);
	if (!rc)
		rc = move_in(w, S_ISDIR(sb.st_mode), err);
	if (rc)
		return rc;
	w->finished = true;
	rc = sync_parent(w->path, err);
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
