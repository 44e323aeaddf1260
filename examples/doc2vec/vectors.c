/* See vectors.h. Files are complete and synced before they are renamed. */
#include "vectors.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "options.h"

/* Files have a temporary name until they are complete. */
static const char *const files[] = { "docs.npy", "words.npy", "out.npy",
				     "words.txt" };
enum { DOCS, WORDS, OUT, TEXT, NFILES };

#define CHUNK 4096 /* documents */

static const char *path_of(const struct vectors *v, int file, bool temporary,
			   char *buf, size_t cap)
{
	snprintf(buf, cap, "%s/%s%s", v->dir, files[file],
		 temporary ? ".tmp" : "");
	return buf;
}

static FILE *open_file(const struct vectors *v, int file, char *buf, size_t cap,
		       struct pen_err *err)
{
	FILE *f = fopen(path_of(v, file, true, buf, cap), "wbe");

	if (!f)
		fail_sys(err, buf);
	return f;
}

/* good: all writes succeeded. */
static int close_file(FILE *f, const char *path, bool good, struct pen_err *err)
{
	int rc = good && !fflush(f) && !fsync(fileno(f)) ? 0
							 : fail_sys(err, path);

	if (fclose(f) && !rc)
		rc = fail_sys(err, path);
	return rc;
}

/* Writes rows that start `stride` floats apart. */
static int write_npy(const struct vectors *v, int file, const float *at,
		     uint32_t stride, struct pen_err *err)
{
	char path[4096], head[128] = "\x93NUMPY\x01\x00\x76\x00", text[119];
	const uint64_t rows = file == DOCS ? v->ndocs : v->model->nwords;
	const uint32_t dim = v->model->dim;
	FILE *f = open_file(v, file, path, sizeof(path), err);
	bool good;

	if (!f)
		return err->code;
	snprintf(text, sizeof(text),
		 "{'descr': '<f4', 'fortran_order': False, 'shape': "
		 "(%" PRIu64 ", %u), }",
		 rows, dim);
	memset(head + 10, ' ', 118);
	memcpy(head + 10, text, strlen(text));
	head[127] = '\n';
	good = fwrite(head, 1, 128, f) == 128;
	for (uint64_t i = 0; i < rows && good; i++)
		good = fwrite(at + i * stride, sizeof(float), dim, f) == dim;
	return close_file(f, path, good, err);
}

static int write_words(const struct vectors *v, struct pen_err *err)
{
	char path[4096], word[256];
	FILE *f = open_file(v, TEXT, path, sizeof(path), err);

	if (!f)
		return err->code;
	for (uint64_t i = 0; i < v->model->nwords; i++) {
		/* one line per id, even without a word */
		if (pen_dataset_label(v->data, v->field, i, word, sizeof(word)))
			word[0] = '\0';
		fprintf(f, "%s\n", word);
	}
	return close_file(f, path, !ferror(f), err);
}

static int name_files(const struct vectors *v, struct pen_err *err)
{
	char from[4096], to[4096];

	for (int i = 0; i < NFILES; i++)
		if (rename(path_of(v, i, true, from, sizeof(from)),
			   path_of(v, i, false, to, sizeof(to))))
			return fail_sys(err, to);
	return 0;
}

int vectors_place(const char *dir, struct pen_err *err)
{
	struct stat st;

	if (mkdir(dir, 0777) && errno != EEXIST)
		return fail_sys(err, dir);
	if (stat(dir, &st) || access(dir, W_OK | X_OK))
		return fail_sys(err, dir);
	return S_ISDIR(st.st_mode)
		       ? 0
		       : fail_at(err, PEN_EINVAL, dir, "not a directory");
}

int vectors_docs(struct docs *d, uint64_t ndocs, float **out,
		 struct pen_err *err)
{
	const uint32_t dim = d->model->dim;
	struct sequence *q = calloc(CHUNK, sizeof(*q));
	float *v = calloc(ndocs ? ndocs : 1, dim * sizeof(*v));
	int rc = q && v ? 0 : fail_nomem(err, "the vectors");

	for (uint64_t at = 0; at < ndocs && !rc; at += CHUNK) {
		const uint64_t rest = ndocs - at;
		const uint32_t n = rest < CHUNK ? (uint32_t)rest : CHUNK;

		for (uint32_t i = 0; i < n; i++)
			q[i] = (struct sequence){ .doc = at + i,
						  .ntargets = 1 };
		rc = docs_fetch(d, q, n, err);
		for (uint32_t i = 0; i < n && !rc; i++) {
			doc_catch_up(d->model, q[i].row, d->model->steps);
			memcpy(v + (at + i) * dim, q[i].row->v,
			       dim * sizeof(*v));
		}
	}
	free(q);
	if (rc)
		free(v);
	else
		*out = v;
	return rc;
}

int vectors_save(const struct vectors *v, struct pen_err *err)
{
	const struct model *m = v->model;
	char path[4096];
	int rc;

	rc = write_npy(v, DOCS, v->docs, m->dim, err);
	if (!rc)
		rc = write_npy(v, WORDS, m->words.at, m->stride, err);
	if (!rc)
		rc = write_npy(v, OUT, m->out.at, m->stride, err);
	if (!rc)
		rc = write_words(v, err);
	if (!rc)
		rc = name_files(v, err);
	for (int i = 0; rc && i < NFILES; i++)
		unlink(path_of(v, i, true, path, sizeof(path)));
	return rc;
}
