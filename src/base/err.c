/*
 * Errors are filled once, where the cause is known, in the caller's storage:
 * no globals and no allocation, so reporting cannot fail in turn. Text that is
 * too long is cut: a place keeps its end, because the file name is there, a
 * message keeps its start. Nothing here prints, but what is here is printed:
 * names of files come from others, and what a terminal would obey in them is
 * quoted.
 */
#include "base/err.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/quote.h"
#include "base/show.h"

static void set_where(struct pen_err *err, const char *where)
{
	const size_t cap = sizeof(err->where);
	char whole[sizeof(err->where)];

	if (!where)
		where = "";
	/* it may be what is there already */
	if (pen__quote(whole, cap, where)) {
		memcpy(err->where, whole, strlen(whole) + 1);
		return;
	}
	if (strlen(where) > cap - 4)
		where += strlen(where) - (cap - 4);
	/* do not start in the middle of a UTF-8 character */
	while (((unsigned char)*where & 0xc0) == 0x80)
		where++;
	/* quoted it can be longer than it is */
	while (!pen__quote(whole, cap - 3, where))
		where += pen__utf8_len(where) ? pen__utf8_len(where) : 1;
	memcpy(err->where, "...", 3);
	memcpy(err->where + 3, whole, strlen(whole) + 1);
}

/* Ends msg at a whole UTF-8 character, with "..." to say that it was cut. */
static void cut_msg(char *msg, size_t cap)
{
	size_t n = cap - 4;

	while (n && ((unsigned char)msg[n] & 0xc0) == 0x80)
		n--;
	memcpy(msg + n, "...", 4);
}

static void quote_msg(struct pen_err *err)
{
	char raw[sizeof(err->msg)];
	const size_t cap = sizeof(err->msg);

	if (pen__is_plain(err->msg))
		return;
	memcpy(raw, err->msg, cap);
	if (!pen__quote(err->msg, cap - 3, raw))
		memcpy(err->msg + strlen(err->msg), "...", 4);
}

static void set_msg(struct pen_err *err, const char *fmt, va_list ap)
	__attribute__((format(printf, 2, 0)));

static void set_msg(struct pen_err *err, const char *fmt, va_list ap)
{
	int n = vsnprintf(err->msg, sizeof(err->msg), fmt, ap);

	if (n < 0)
		err->msg[0] = '\0';
	else if ((size_t)n >= sizeof(err->msg))
		cut_msg(err->msg, sizeof(err->msg));
	quote_msg(err);
}

int pen__fail(struct pen_err *err, int code, const char *where, const char *fmt,
	      ...)
{
	va_list ap;

	if (!err)
		return code;
	err->code = code;
	err->sys = 0;
	va_start(ap, fmt);
	set_msg(err, fmt, ap);
	va_end(ap);
	set_where(err, where);
	return code;
}

static int code_of(int sys)
{
	switch (sys) {
	case ENOENT:
		return PEN_ENOTFOUND;
	case ENOMEM:
		return PEN_ENOMEM;
	default:
		return PEN_EIO;
	}
}

int pen__fail_sys(struct pen_err *err, int sys, const char *where,
		  const char *fmt, ...)
{
	const int code = code_of(sys);
	char buf[128];
	size_t n;
	va_list ap;

	if (!err)
		return code;
	err->code = code;
	err->sys = sys;
	va_start(ap, fmt);
	set_msg(err, fmt, ap);
	va_end(ap);
	n = strlen(err->msg);
	if ((size_t)snprintf(err->msg + n, sizeof(err->msg) - n, ": %s",
			     strerror_r(sys, buf, sizeof(buf))) >=
	    sizeof(err->msg) - n)
		cut_msg(err->msg, sizeof(err->msg));
	set_where(err, where);
	return code;
}

int pen__fail_nomem(struct pen_err *err, const char *where, size_t bytes)
{
	if (!bytes)
		return pen__fail(err, PEN_ENOMEM, where, "out of memory");
	return pen__fail(err, PEN_ENOMEM, where, "out of memory: %s asked for",
			 pen__show_bytes((double)bytes).s);
}

int pen__check_local(const char *path, struct pen_err *err)
{
	static const char letters[] = "abcdefghijklmnopqrstuvwxyz"
				      "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
				      "0123456789+-.";
	const size_t n = strspn(path, letters);

	if (!n || strncmp(path + n, "://", 3) != 0)
		return 0;
	if (n == 4 && strncmp(path, "file", 4) == 0)
		return pen__fail(err, PEN_ENOTSUP, path,
				 "is a URL: name the path without file://");
	return pen__fail(err, PEN_ENOTSUP, path,
			 "object stores and URLs (%.*s://) are not "
			 "supported in this "
			 "version: name a path in a file system",
			 (int)(n < 16 ? n : 16), path);
}

void pen__err_where(struct pen_err *err, const char *where)
{
	if (err && !err->where[0])
		set_where(err, where);
}
