/* Growing text, JSON, and files that appear only when they are complete. */
#include "base/text.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/stale.h"
#include "base/sync.h"

void pen__text_fini(struct pen_text *t)
{
	pen__free(t->p);
	*t = (struct pen_text){ 0 };
}

/* Makes room for n more bytes and the NUL. */
static bool make_room(struct pen_text *t, size_t n)
{
	size_t cap = t->cap ? t->cap : 256;
	char *p = NULL;

	if (t->failed)
		return false;
	if (n < t->cap - t->n)
		return true;
	/* t->n is below a quarter too, so neither sum nor double can wrap */
	if (n < SIZE_MAX / 4) {
		while (cap - t->n <= n)
			cap *= 2;
		p = pen__realloc(t->p, cap, 1);
	}
	if (!p) {
		t->failed = true;
		return false;
	}
	t->p = p;
	t->cap = cap;
	return true;
}

void pen__text_put(struct pen_text *t, const void *bytes, size_t n)
{
	if (!make_room(t, n))
		return;
	memcpy(t->p + t->n, bytes, n);
	t->n += n;
	t->p[t->n] = '\0';
}

void pen__text_add(struct pen_text *t, const char *fmt, ...)
{
	va_list ap;
	int n;

	if (!make_room(t, 120))
		return;
	va_start(ap, fmt);
	n = vsnprintf(t->p + t->n, t->cap - t->n, fmt, ap);
	va_end(ap);
	if (n > 0 && (size_t)n >= t->cap - t->n) {
		if (!make_room(t, (size_t)n)) {
			t->p[t->n] = '\0';
			return;
		}
		va_start(ap, fmt);
		n = vsnprintf(t->p + t->n, t->cap - t->n, fmt, ap);
		va_end(ap);
	}
	if (n > 0)
		t->n += (size_t)n;
}

void pen__text_quote(struct pen_text *t, const char *s)
{
	while (*s) {
		const size_t n = pen__plain_len(s);

		if (n)
			pen__text_put(t, s, n);
		else
			pen__text_add(t, "\\x%02x", (unsigned char)*s);
		s += n ? n : 1;
	}
}

static int write_all(int fd, const char *p, size_t n)
{
	while (n) {
		ssize_t done = write(fd, p, n);

		if (done < 0 && errno == EINTR)
			continue;
		if (done < 0)
			return errno;
		p += done;
		n -= (size_t)done;
	}
	return 0;
}

/* A device or a pipe is written to, not replaced as a file is. */
static bool is_special(const char *path)
{
	struct stat sb;

	return !stat(path, &sb) && !S_ISREG(sb.st_mode) && !S_ISDIR(sb.st_mode);
}

static int write_special(const struct pen_text *t, const char *path,
			 struct pen_err *err)
{
	const int fd = open(path, O_WRONLY | O_CLOEXEC);
	int sys = fd < 0 ? errno : write_all(fd, t->p, t->n);

	if (fd >= 0 && close(fd) && !sys)
		sys = errno;
	return sys ? pen__fail_sys(err, sys, path, "cannot write to it") : 0;
}

static int save(const struct pen_text *t, const char *path, bool sync,
		struct pen_err *err)
{
	char tmp[4128];
	int fd, sys;

	if (t->failed)
		return pen__fail_nomem(err, path, t->n);
	if (pen__check_local(path, err))
		return PEN_ENOTSUP;
	if (is_special(path))
		return write_special(t, path, err);
	if (snprintf(tmp, sizeof(tmp), "%s.%ld.tmp", path, (long)getpid()) >=
	    (int)sizeof(tmp))
		return pen__fail(err, P_TOO_LONG, path, "the path is too long");
	if (sync)
		pen__stale_remove(path);
	fd = open(tmp, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
	if (fd < 0)
		return pen__fail_sys(err, errno, path, "cannot write the file");
	sys = write_all(fd, t->p, t->n);
	if (!sys && sync && fsync(fd))
		sys = errno;
	if (close(fd) && !sys)
		sys = errno;
	if (!sys && rename(tmp, path))
		sys = errno;
	if (sys) {
		unlink(tmp);
		return pen__fail_sys(err, sys, path, "cannot write the file");
	}
	sys = sync ? pen__sync_parent(path) : 0;
	return sys ? pen__fail_sys(err, sys, path,
				   "written, but its name may be lost in a "
				   "crash: cannot sync the directory")
		   : 0;
}

int pen__text_save(const struct pen_text *t, const char *path,
		   struct pen_err *err)
{
	return save(t, path, true, err);
}

int pen__text_save_in(struct pen_text *t, const char *dir, const char *name,
		      bool sync, struct pen_err *err)
{
	char path[4096];
	int rc;

	if (snprintf(path, sizeof(path), "%s/%s", dir, name) >=
	    (int)sizeof(path))
		rc = pen__fail(err, P_TOO_LONG, dir, "the path is too long");
	else
		rc = save(t, path, sync, err);
	pen__text_fini(t);
	return rc;
}

int pen__make_dirs(const char *dir, unsigned mode, bool sync,
		   struct pen_err *err)
{
	char path[4096];
	int sys;

	if (snprintf(path, sizeof(path), "%s", dir) >= (int)sizeof(path))
		return pen__fail(err, P_TOO_LONG, dir, "the path is too long");
	for (char *p = path + 1; *path; p++) {
		const char c = *p;

		if (c && c != '/')
			continue;
		*p = '\0';
		sys = mkdir(path, mode) ? errno
		      : sync		? pen__sync_parent(path)
					: 0;
		if (sys && sys != EEXIST)
			return pen__fail_sys(err, sys, path,
					     "cannot create the directory");
		*p = c;
		if (!c)
			break;
	}
	return 0;
}

static void put_str(struct pen_text *t, const char *s)
{
	pen__text_put(t, s, strlen(s));
}

/* A comma if needed, a new line, and the key. */
static void json_key(struct pen_text *t, const char *key)
{
	if (t->depth && t->compact)
		put_str(t, t->first ? "" : ", ");
	else if (t->depth)
		pen__text_add(t, "%s%*s", t->first ? "\n" : ",\n", t->depth * 2,
			      "");
	t->first = false;
	if (key)
		pen__text_add(t, "\"%s\": ", key);
}

void pen__json_open(struct pen_text *t, const char *key, char bracket)
{
	json_key(t, key);
	pen__text_put(t, &bracket, 1);
	t->depth++;
	t->first = true;
}

void pen__json_close(struct pen_text *t, char bracket)
{
	t->depth--;
	if (!t->first && !t->compact)
		pen__text_add(t, "\n%*s", t->depth * 2, "");
	pen__text_put(t, &bracket, 1);
	t->first = false;
	if (!t->depth)
		put_str(t, "\n");
}

/* As \uXXXX in UTF-16; a surrogate pair beyond 16 bits. */
static void put_numbered(struct pen_text *t, const unsigned char *s, size_t n)
{
	uint32_t c = pen__utf8_value((const char *)s, n);

	if (c >= 0x10000) {
		pen__text_add(t, "\\u%04x", 0xd7c0u + (c >> 10));
		c = 0xdc00u | (c & 0x3ffu);
	}
	pen__text_add(t, "\\u%04x", c);
}

void pen__json_quote(struct pen_text *t, const char *value)
{
	const unsigned char *s = (const unsigned char *)value;

	put_str(t, "\"");
	while (*s) {
		size_t n = pen__utf8_len((const char *)s);

		if (!n) { /* an invalid byte: shown, not passed on */
			put_str(t, "\\ufffd");
			n = 1;
		} else if (*s < 0x20 || *s == '<' || *s == 0x7f) {
			pen__text_add(t, "\\u%04x", *s);
		} else if (*s == '"' || *s == '\\') {
			pen__text_add(t, "\\%c", *s);
		} else if (n > 1 &&
			   (t->ascii || !pen__plain_len((const char *)s))) {
			put_numbered(t, s, n);
		} else {
			pen__text_put(t, s, n);
		}
		s += n;
	}
	put_str(t, "\"");
}

void pen__json_str(struct pen_text *t, const char *key, const char *value)
{
	json_key(t, key);
	pen__json_quote(t, value);
}

void pen__json_int(struct pen_text *t, const char *key, uint64_t value)
{
	json_key(t, key);
	pen__text_add(t, "%" PRIu64, value);
}

void pen__json_num(struct pen_text *t, const char *key, double value)
{
	json_key(t, key);
	if (isfinite(value))
		pen__text_add(t, "%.9g", value);
	else
		put_str(t, "null");
}

void pen__json_bool(struct pen_text *t, const char *key, bool value)
{
	json_key(t, key);
	put_str(t, value ? "true" : "false");
}
