/* Opens JSON documents and looks up values by path. */
#include "report/doc.h"

#include <dirent.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/mem.h"

#define MAX_FILE ((size_t)256 << 20)
#define MAX_DEPTH 4

static int read_whole(const char *path, struct pen_buf *out,
		      struct pen_err *err)
{
	FILE *f = fopen(path, "rbe");
	char piece[65536];
	size_t n;
	int rc = 0;

	if (!f)
		return pen__fail_sys(err, errno, path, "cannot open the file");
	while (!rc && (n = fread(piece, 1, sizeof(piece), f)) > 0) {
		pen__buf_put(out, piece, n);
		if (out->bad)
			rc = pen__fail_nomem(err, path, out->n + n);
		else if (out->n > MAX_FILE)
			rc = pen__fail(
				err, P_NOT_A_RESULT, path,
				"larger than 256 MiB; not a result file");
	}
	if (!rc && ferror(f))
		rc = pen__fail_sys(err, errno, path, "cannot read the file");
	fclose(f);
	return rc;
}

int pen__doc_open(struct pen_doc *d, const char *path, struct pen_err *err)
{
	struct pen_buf text = { 0 };
	int rc = read_whole(path, &text, err);

	d->name = path;
	if (!rc)
		rc = pen__jdoc_open(&d->j, text.p, text.n, path, err);
	pen__buf_fini(&text);
	if (rc)
		return rc;
	if (!pen__doc_is(d, "penstock.")) {
		pen__jdoc_close(&d->j);
		return pen__fail(err, P_NOT_A_RESULT, path,
				 "not a Penstock result; use result.json of "
				 "run, the output of load --json or capacity "
				 "--json, or a .jsonl file of bench or sweep");
	}
	return 0;
}

void pen__doc_close(struct pen_doc *d)
{
	pen__jdoc_close(&d->j);
}

bool pen__doc_is(const struct pen_doc *d, const char *schema)
{
	return !strncmp(pen__doc_text(d, 0, "schema"), schema, strlen(schema));
}

/* ---- directories ---- */

struct walk {
	char path[4096];
	pen_doc_fn *found;
	void *arg;
	struct pen_err *err;
};

static int by_name(const struct dirent **a, const struct dirent **b)
{
	return strcmp((*a)->d_name, (*b)->d_name);
}

static int walk_dir(struct walk *w, int depth);

/* Links are not followed. */
static int visit(struct walk *w, const char *name, int depth)
{
	const size_t n = strlen(w->path);
	struct stat sb;
	int rc = 0;

	if (!strcmp(name, ".") || !strcmp(name, ".."))
		return 0;
	if (snprintf(w->path + n, sizeof(w->path) - n, "%s%s",
		     n && w->path[n - 1] == '/' ? "" : "/",
		     name) >= (int)(sizeof(w->path) - n))
		rc = pen__fail(w->err, P_TOO_LONG, name,
			       "the path is too long");
	else if (lstat(w->path, &sb))
		rc = pen__fail_sys(w->err, errno, w->path, "cannot look at it");
	else if (S_ISDIR(sb.st_mode) && name[0] != '.' && depth < MAX_DEPTH)
		rc = walk_dir(w, depth + 1);
	else if (S_ISREG(sb.st_mode) && !strcmp(name, "result.json"))
		rc = w->found(w->arg, w->path, w->err);
	w->path[n] = '\0';
	return rc;
}

/* Not fts_open(), which crashes when memory runs out. */
static int walk_dir(struct walk *w, int depth)
{
	struct dirent **list;
	const int n = scandir(w->path, &list, NULL, by_name);
	int rc = 0;

	if (n < 0)
		return pen__fail_sys(w->err, errno, w->path,
				     "cannot list the directory");
	for (int i = 0; i < n; i++) {
		if (!rc)
			rc = visit(w, list[i]->d_name, depth);
		pen__free(list[i]);
	}
	pen__free(list);
	return rc;
}

int pen__doc_walk(const char *dir, pen_doc_fn *found, void *arg,
		  struct pen_err *err)
{
	struct walk w = { .found = found, .arg = arg, .err = err };

	if (snprintf(w.path, sizeof(w.path), "%s", dir) >= (int)sizeof(w.path))
		return pen__fail(err, P_TOO_LONG, dir, "the path is too long");
	return walk_dir(&w, 0);
}

uint32_t pen__doc_at(const struct pen_doc *d, uint32_t node, const char *path)
{
	char key[64];

	while (*path) {
		size_t n = strcspn(path, ".");

		if (n >= sizeof(key))
			return PEN_JDOC_NONE;
		memcpy(key, path, n);
		key[n] = '\0';
		node = pen__jdoc_get(&d->j, node, key);
		path += n + (path[n] == '.');
	}
	return node;
}

double pen__doc_number(const struct pen_doc *d, uint32_t node, const char *path)
{
	double v;

	/* no figure is that large; sums and products stay finite */
	return pen__jdoc_number(&d->j, pen__doc_at(d, node, path), &v) &&
			       fabs(v) < 1e200
		       ? v
		       : NAN;
}

const char *pen__doc_text(const struct pen_doc *d, uint32_t node,
			  const char *path)
{
	const char *s = pen__jdoc_text(&d->j, pen__doc_at(d, node, path));

	return s ? s : "";
}

struct pen_when pen__doc_when(const struct pen_doc *d, const char *path)
{
	const char *iso = pen__doc_text(d, 0, path);
	struct pen_when w = { "" };

	snprintf(w.s, sizeof(w.s), "%.*s", (int)strcspn(iso, "."), iso);
	for (char *p = w.s; *p; p++)
		*p = *p == 'T' ? ' ' : *p;
	return w;
}

bool pen__doc_true(const struct pen_doc *d, uint32_t node, const char *path)
{
	return pen__jdoc_type(&d->j, pen__doc_at(d, node, path)) ==
	       PEN_JDOC_TRUE;
}

double *pen__doc_numbers(const struct pen_doc *d, uint32_t list,
			 const char *path, size_t *n)
{
	uint32_t count = pen__jdoc_count(&d->j, list);
	double *v = count ? pen__alloc(count, sizeof(*v)) : NULL;

	*n = 0;
	if (!v)
		return NULL;
	for (uint32_t c = pen__jdoc_first(&d->j, list); c != PEN_JDOC_NONE;
	     c = pen__jdoc_next(&d->j, c))
		v[(*n)++] = pen__doc_number(d, c, path ? path : "");
	return v;
}

const char *pen__doc_shown(const struct pen_doc *d, uint32_t node, char *buf,
			   size_t cap)
{
	switch (pen__jdoc_type(&d->j, node)) {
	case PEN_JDOC_STRING:
		return pen__jdoc_text(&d->j, node);
	case PEN_JDOC_NUMBER:
		snprintf(buf, cap, "%.12g", d->j.node[node].number);
		return buf;
	case PEN_JDOC_TRUE:
		return "true";
	case PEN_JDOC_FALSE:
		return "false";
	default:
		return "null";
	}
}
