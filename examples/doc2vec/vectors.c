/* See vectors.h. Files are complete and synced before they are renamed. */
#include "vectors.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "options.h"

/* Files have a temporary name until they are complete. */
static const char *const files[] = { "docs.npy", "words.npy", "out.npy",
				     "words.txt" };
enum { DOCS, WORDS, OUT, TEXT, NFILES };

static const char *path_of(const struct vectors *v, int file, bool temporary,
			   char *buf, size_t cap)
{
	snprintf(buf, cap, "%s/%s%s", v->dir, files[file],
		 temporary ? ".tmp" : "");
	return buf;
}

static FILE *open_file(const struct vectors *v, int file, char *buf, size_t cap)
{
	FILE *f = fopen(path_of(v, file, true, buf, cap), "wbe");

	if (!f)
		fail(buf, strerror(errno));
	return f;
}

/* good: all writes succeeded. */
static int close_file(FILE *f, const char *path, bool good)
{
	good = good && !fflush(f) && !fsync(fileno(f));
	if (!good)
		fail(path, strerror(errno));
	if (fclose(f) && good)
		return fail(path, strerror(errno));
	return !good;
}

static int write_npy(const struct vectors *v, int file, const struct table *t)
{
	const struct model *m = v->model;
	char path[4096], head[128] = "\x93NUMPY\x01\x00\x76\x00", text[119];
	FILE *f = open_file(v, file, path, sizeof(path));
	bool good;

	if (!f)
		return 1;
	snprintf(text, sizeof(text),
		 "{'descr': '<f4', 'fortran_order': False, 'shape': "
		 "(%" PRIu64 ", %u), }",
		 t->rows, m->dim);
	memset(head + 10, ' ', 118);
	memcpy(head + 10, text, strlen(text));
	head[127] = '\n';
	good = fwrite(head, 1, 128, f) == 128;
	for (uint64_t i = 0; i < t->rows && good; i++)
		good = fwrite(t->at + i * m->stride, sizeof(float), m->dim,
			      f) == m->dim;
	return close_file(f, path, good);
}

static int write_words(const struct vectors *v)
{
	char path[4096], word[256];
	FILE *f = open_file(v, TEXT, path, sizeof(path));

	if (!f)
		return 1;
	for (uint64_t i = 0; i < v->model->words.rows; i++) {
		/* one line per id, even without a word */
		if (pen_dataset_label(v->data, v->field, i, word, sizeof(word)))
			word[0] = '\0';
		fprintf(f, "%s\n", word);
	}
	return close_file(f, path, !ferror(f));
}

static int name_files(const struct vectors *v)
{
	char from[4096], to[4096];

	for (int i = 0; i < NFILES; i++)
		if (rename(path_of(v, i, true, from, sizeof(from)),
			   path_of(v, i, false, to, sizeof(to))))
			return fail(to, strerror(errno));
	return 0;
}

int vectors_place(const char *dir)
{
	struct stat st;

	if (mkdir(dir, 0777) && errno != EEXIST)
		return fail(dir, strerror(errno));
	if (stat(dir, &st) || access(dir, W_OK | X_OK))
		return fail(dir, strerror(errno));
	return S_ISDIR(st.st_mode) ? 0 : fail(dir, "not a directory");
}

int vectors_save(const struct vectors *v)
{
	char path[4096];
	int rc;

	rc = write_npy(v, DOCS, &v->model->docs) ||
	     write_npy(v, WORDS, &v->model->words) ||
	     write_npy(v, OUT, &v->model->out) || write_words(v) ||
	     name_files(v);
	for (int i = 0; rc && i < NFILES; i++)
		unlink(path_of(v, i, true, path, sizeof(path)));
	return rc;
}
