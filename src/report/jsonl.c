/*
 * Reads and appends to result files. The reader accepts strict JSON within
 * limits: 256 MiB per file, 1 MiB per line, 16 levels, 4,096 values per line.
 * Other lines are counted and skipped, because the rest of the file is still
 * useful.
 */
#include "report/jsonl.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/sync.h"

#define MAX_FILE ((size_t)256 << 20)
#define MAX_LINE ((size_t)1 << 20)
#define MAX_DEPTH 16
#define MAX_CELLS 4096

/* ---- one line ---- */

struct reader {
	const char *p, *end;
	struct pen_text mem; /* keys and texts, NUL-terminated */
	struct pen_cell *cell;
	size_t n, cap;
	bool nomem;
};

static void blanks(struct reader *r)
{
	while (r->p < r->end && strchr(" \t\r\n", *r->p) && *r->p)
		r->p++;
}

static bool take(struct reader *r, char c)
{
	blanks(r);
	if (r->p >= r->end || *r->p != c)
		return false;
	r->p++;
	return true;
}

static bool hex4(struct reader *r, unsigned *out)
{
	*out = 0;
	if (r->end - r->p < 4)
		return false;
	for (int i = 0; i < 4; i++) {
		const char c = *r->p++;
		const char *at = strchr("0123456789abcdef", c | 0x20);

		if (!c || !at)
			return false;
		*out = *out << 4 | (unsigned)(at - "0123456789abcdef");
	}
	return true;
}

static void put_utf8(struct pen_text *t, unsigned c)
{
	unsigned char b[4];
	size_t n = 0;

	if (c < 0x80) {
		b[n++] = (unsigned char)c;
	} else if (c < 0x800) {
		b[n++] = (unsigned char)(0xc0 | c >> 6);
	} else if (c < 0x10000) {
		b[n++] = (unsigned char)(0xe0 | c >> 12);
		b[n++] = (unsigned char)(0x80 | (c >> 6 & 63));
	} else {
		b[n++] = (unsigned char)(0xf0 | c >> 18);
		b[n++] = (unsigned char)(0x80 | (c >> 12 & 63));
		b[n++] = (unsigned char)(0x80 | (c >> 6 & 63));
	}
	if (c >= 0x80)
		b[n++] = (unsigned char)(0x80 | (c & 63));
	pen__text_put(t, b, n);
}

static bool escape(struct reader *r)
{
	static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
	const char *at;
	unsigned c, low;

	if (r->p >= r->end)
		return false;
	if (*r->p != 'u') {
		at = *r->p ? strchr(from, *r->p) : NULL;
		if (!at)
			return false;
		r->p++;
		pen__text_put(&r->mem, &to[at - from], 1);
		return true;
	}
	r->p++;
	if (!hex4(r, &c))
		return false;
	if (c >= 0xd800 && c < 0xdc00 && r->end - r->p >= 6 &&
	    r->p[0] == '\\' && r->p[1] == 'u') {
		r->p += 2;
		if (!hex4(r, &low) || low < 0xdc00 || low > 0xdfff)
			return false;
		c = 0x10000 + ((c - 0xd800) << 10) + (low - 0xdc00);
	}
	/* a lone surrogate, or a NUL, which would end the text, is replaced */
	put_utf8(&r->mem, !c || (c >= 0xd800 && c < 0xe000) ? 0xfffd : c);
	return true;
}

/* Parses a string into mem, without a NUL. */
static bool string(struct reader *r)
{
	if (!take(r, '"'))
		return false;
	while (r->p < r->end && *r->p != '"') {
		const char *from = r->p;

		if ((unsigned char)*r->p < 0x20)
			return false;
		if (*r->p == '\\') {
			r->p++;
			if (!escape(r))
				return false;
			continue;
		}
		while (r->p < r->end && *r->p != '"' && *r->p != '\\' &&
		       (unsigned char)*r->p >= 0x20)
			r->p++;
		pen__text_put(&r->mem, from, (size_t)(r->p - from));
	}
	return take(r, '"');
}

static struct pen_cell *new_cell(struct reader *r, size_t key)
{
	if (r->n >= MAX_CELLS)
		return NULL;
	if (r->n == r->cap) {
		const size_t cap = r->cap ? 2 * r->cap : 64;
		struct pen_cell *more =
			pen__realloc(r->cell, cap, sizeof(*more));

		if (!more) {
			r->nomem = true;
			return NULL;
		}
		r->cell = more;
		r->cap = cap;
	}
	r->cell[r->n] = (struct pen_cell){ .key = key, .text = r->mem.n };
	return &r->cell[r->n++];
}

/* Parses a number, true, false or null; the text is kept unchanged. */
static bool word(struct reader *r, struct pen_cell *c)
{
	char buf[64], *end;
	size_t n = 0;

	while (r->p < r->end && n < sizeof(buf) - 1 &&
	       !strchr(" \t\r\n,]}", *r->p))
		buf[n++] = *r->p++;
	buf[n] = '\0';
	pen__text_put(&r->mem, buf, n + 1);
	c->kind = PEN_CELL_BOOL;
	c->number = buf[0] == 't';
	if (!strcmp(buf, "true") || !strcmp(buf, "false"))
		return true;
	c->kind = PEN_CELL_NULL;
	if (!strcmp(buf, "null"))
		return true;
	c->kind = PEN_CELL_NUMBER;
	if (strspn(buf, "+-.0123456789eE") != n || !strchr("-0123456789", *buf))
		return false;
	c->number = strtod(buf, &end);
	return n && !*end && isfinite(c->number);
}

static bool value(struct reader *r, size_t key, int depth);

/* Appends the key "outer.inner" to mem; *out is its offset. */
static bool inner_key(struct reader *r, size_t key, bool object, size_t i,
		      size_t *out)
{
	const size_t start = r->mem.n;

	if (key != SIZE_MAX) {
		const size_t n = strlen(r->mem.p + key);

		/* mem may move when it grows: copy byte by byte */
		for (size_t k = 0; k < n && !r->mem.failed; k++)
			pen__text_put(&r->mem, &(char){ r->mem.p[key + k] }, 1);
		pen__text_put(&r->mem, ".", 1);
	}
	if (!object)
		pen__text_add(&r->mem, "%zu", i);
	else if (!string(r) || !take(r, ':'))
		return false;
	pen__text_put(&r->mem, "", 1);
	*out = start;
	return !r->mem.failed;
}

static bool container(struct reader *r, size_t key, int depth)
{
	const bool object = *r->p++ == '{';
	const char close = object ? '}' : ']';
	size_t inner;

	if (depth >= MAX_DEPTH)
		return false;
	if (take(r, close))
		return true;
	for (size_t i = 0;; i++) {
		if (!inner_key(r, key, object, i, &inner) ||
		    !value(r, inner, depth + 1))
			return false;
		if (take(r, close))
			return true;
		if (!take(r, ','))
			return false;
	}
}

static bool value(struct reader *r, size_t key, int depth)
{
	struct pen_cell *c;
	bool ok;

	blanks(r);
	if (r->p >= r->end)
		return false;
	if (*r->p == '{' || *r->p == '[')
		return container(r, key, depth);
	c = new_cell(r, key);
	if (!c)
		return false;
	if (*r->p != '"')
		return word(r, c);
	c->kind = PEN_CELL_TEXT;
	ok = string(r);
	pen__text_put(&r->mem, "", 1);
	return ok;
}

bool pen__line_parse(struct pen_line *row, const char *line, size_t n,
		     bool *nomem)
{
	struct reader r = { .p = line, .end = line + n };
	bool ok;

	blanks(&r);
	ok = r.p < r.end && *r.p == '{' && container(&r, SIZE_MAX, 0);
	blanks(&r);
	ok = ok && r.p == r.end && !r.mem.failed;
	*nomem = r.nomem || r.mem.failed;
	*row = (struct pen_line){ r.mem.p, r.cell, r.n };
	if (!ok)
		pen__line_fini(row);
	return ok;
}

void pen__line_fini(struct pen_line *r)
{
	pen__free(r->mem);
	pen__free(r->cell);
	*r = (struct pen_line){ 0 };
}

const struct pen_cell *pen__line_find(const struct pen_line *r, const char *key)
{
	for (size_t i = r->n; i-- > 0;) /* the last of duplicates */
		if (!strcmp(pen__cell_key(r, i), key))
			return &r->cell[i];
	return NULL;
}

const char *pen__line_text(const struct pen_line *r, const char *key)
{
	const struct pen_cell *c = pen__line_find(r, key);

	return c && c->kind != PEN_CELL_NULL ? r->mem + c->text : "";
}

double pen__line_number(const struct pen_line *r, const char *key)
{
	const struct pen_cell *c = pen__line_find(r, key);

	/* no figure is that large; sums and products stay finite */
	return c && c->kind == PEN_CELL_NUMBER && fabs(c->number) < 1e200
		       ? c->number
		       : NAN;
}

bool pen__line_true(const struct pen_line *r, const char *key)
{
	const struct pen_cell *c = pen__line_find(r, key);

	return c && c->kind == PEN_CELL_BOOL && c->number > 0;
}

/* ---- files ---- */

static int add_line(struct pen_lines *rows, const char *line, size_t n,
		    uint64_t number, bool *nomem)
{
	struct pen_line row, *more;

	if (strspn(line, " \t\r") >= n)
		return 0;
	*nomem = false;
	if (n > MAX_LINE || memchr(line, '\0', n) ||
	    !pen__line_parse(&row, line, n, nomem)) {
		if (*nomem)
			return PEN_ENOMEM;
		if (!rows->nbad++)
			rows->first_bad = number;
		return 0;
	}
	more = pen__realloc(rows->row, rows->n + 1, sizeof(*more));
	if (!more) {
		pen__line_fini(&row);
		return PEN_ENOMEM;
	}
	rows->row = more;
	rows->row[rows->n++] = row;
	return 0;
}

static int add_lines(struct pen_lines *rows, const struct pen_text *t,
		     const char *path, struct pen_err *err)
{
	uint64_t number = 1;
	bool nomem = false;

	for (size_t at = 0; at < t->n; number++) {
		const char *end = memchr(t->p + at, '\n', t->n - at);
		const size_t n = end ? (size_t)(end - t->p) - at : t->n - at;

		if (add_line(rows, t->p + at, n, number, &nomem))
			return pen__fail_nomem(err, path, n);
		at += n + 1;
	}
	return 0;
}

int pen__lines_read(struct pen_lines *rows, const char *path,
		    struct pen_err *err)
{
	struct pen_text t = { 0 };
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK), rc = 0;
	char buf[65536];
	ssize_t n = 1;

	if (fd < 0 && errno == ENOENT)
		return pen__fail(err, P_NOT_FOUND, path,
				 "no such results file");
	if (fd < 0)
		return pen__fail_sys(err, errno, path, "cannot read the file");
	while (!rc && n && !t.failed) {
		n = read(fd, buf, sizeof(buf));
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			rc = pen__fail_sys(err, errno, path,
					   "cannot read the file");
		else if (t.n + (size_t)n > MAX_FILE)
			rc = pen__fail(
				err, P_OVER_LIMIT, path,
				"larger than 256 MiB; not a results file");
		else
			pen__text_put(&t, buf, (size_t)n);
	}
	close(fd);
	if (!rc && t.failed)
		rc = pen__fail_nomem(err, path, t.n);
	if (!rc)
		rc = add_lines(rows, &t, path, err);
	pen__text_fini(&t);
	return rc;
}

void pen__lines_fini(struct pen_lines *rows)
{
	for (size_t i = 0; i < rows->n; i++)
		pen__line_fini(&rows->row[i]);
	pen__free(rows->row);
	*rows = (struct pen_lines){ 0 };
}

/* True if the file ends in the middle of a line, as after a crash. */
static bool half_line(int fd)
{
	struct stat st;
	char last = '\n';

	return !fstat(fd, &st) && st.st_size > 0 &&
	       pread(fd, &last, 1, st.st_size - 1) == 1 && last != '\n';
}

int pen__lines_append(const char *path, const struct pen_text *line,
		      struct pen_err *err)
{
	struct pen_text t = { 0 };
	int fd, sys = 0;
	ssize_t n;

	if (line->failed)
		return pen__fail_nomem(err, path, line->n);
	fd = open(path, O_RDWR | O_APPEND | O_CREAT | O_CLOEXEC, 0666);
	if (fd < 0)
		return pen__fail_sys(err, errno, path, "cannot write the file");
	if (half_line(fd))
		pen__text_put(&t, "\n", 1);
	pen__text_put(&t, line->p, line->n);
	if (!line->n || line->p[line->n - 1] != '\n')
		pen__text_put(&t, "\n", 1);
	if (t.failed) {
		close(fd);
		return pen__fail_nomem(err, path, line->n);
	}
	n = write(fd, t.p, t.n);
	if (n < 0)
		sys = errno;
	else if ((size_t)n < t.n)
		sys = ENOSPC; /* incomplete line: readers skip it */
	else if (fsync(fd) && errno != EINVAL && errno != EROFS)
		sys = errno; /* pipes and terminals cannot be synced */
	else if (lseek(fd, 0, SEEK_CUR) == (off_t)t.n) /* a new file */
		sys = pen__sync_parent(path);
	close(fd);
	pen__text_fini(&t);
	return sys ? pen__fail_sys(err, sys, path, "cannot write the file") : 0;
}
