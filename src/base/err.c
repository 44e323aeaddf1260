/*
 * Errors are filled in once, where the cause is known, in the caller's storage:
 * there are no globals and no allocations, so reporting an error cannot fail.
 * Text that is too long is cut: a place keeps its end, which has the file name;
 * a message keeps its start. Names of files are untrusted, and messages end up
 * on terminals, so control characters are escaped.
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
	/* where may be err->where itself */
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

/* The most general kind for a code. */
static int general_kind(int code)
{
	switch (code) {
	case PEN_OK:
		return 0;
	case PEN_ENOMEM:
		return P_NO_MEMORY;
	case PEN_EINVAL:
		return P_BAD_VALUE;
	case PEN_EDATA:
		return P_DAMAGED;
	case PEN_ENOTFOUND:
		return P_NOT_FOUND;
	case PEN_ESTALE:
		return P_DATA_CHANGED;
	case PEN_ENOTSUP:
		return P_UNSUPPORTED_FEATURE;
	case PEN_ECLOSED:
		return P_CLOSED;
	default:
		return P_IO;
	}
}

static int code_of(int kind)
{
	if (kind <= 0)
		return kind;
	switch (kind) {
#define CODE(number, name, code)                                               \
	case number:                                                           \
		return code;
		PEN_ERROR_KINDS(CODE)
#undef CODE
	default:
		return PEN_EIO;
	}
}

int pen__err_code(struct pen_err *err, int code)
{
	if (!err)
		return code;
	err->code = code;
	if (err->number <= 0 || err->number > 999 ||
	    code_of(err->number) != code)
		err->number = general_kind(code);
	return code;
}

/* Says what and where, and returns the code that stands in err already. */
static int say(struct pen_err *err, const char *where, const char *fmt,
	       va_list ap) __attribute__((format(printf, 3, 0)));

static int say(struct pen_err *err, const char *where, const char *fmt,
	       va_list ap)
{
	set_msg(err, fmt, ap);
	set_where(err, where);
	return err->code;
}

int pen__fail(struct pen_err *err, int kind, const char *where, const char *fmt,
	      ...)
{
	va_list ap;
	int rc;

	if (!err)
		return code_of(kind);
	err->code = code_of(kind);
	err->sys = 0;
	err->number = kind > 0 ? kind : general_kind(kind);
	va_start(ap, fmt);
	rc = say(err, where, fmt, ap);
	va_end(ap);
	return rc;
}

int pen__fail_as(struct pen_err *err, const struct pen_err *cause,
		 const char *where, const char *fmt, ...)
{
	va_list ap;
	int rc;

	if (!err)
		return cause->code;
	err->sys = cause->sys;
	err->number = cause->number;
	pen__err_code(err, cause->code);
	va_start(ap, fmt);
	rc = say(err, where, fmt, ap);
	va_end(ap);
	return rc;
}

static int kind_of(int sys)
{
	switch (sys) {
	case ENOENT:
		return P_NOT_FOUND;
	case ENOMEM:
		return P_NO_MEMORY;
	case EACCES:
	case EPERM:
		return P_NO_PERMISSION;
	case ENOSPC:
	case EDQUOT:
		return P_DISK_FULL;
	case EMFILE:
	case ENFILE:
		return P_TOO_MANY_FILES;
	default:
		return P_IO;
	}
}

int pen__fail_sys(struct pen_err *err, int sys, const char *where,
		  const char *fmt, ...)
{
	const int kind = kind_of(sys);
	const int code = code_of(kind);
	char buf[128];
	size_t n;
	va_list ap;

	if (!err)
		return code;
	err->code = code;
	err->sys = sys;
	err->number = kind;
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
		return pen__fail(err, P_NO_MEMORY, where, "out of memory");
	return pen__fail(err, P_NO_MEMORY, where,
			 "out of memory: cannot allocate %s",
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
		return pen__fail(err, P_URL, path,
				 "URLs are not accepted; pass the path without "
				 "file://");
	return pen__fail(err, P_URL, path,
			 "object stores and URLs (%.*s://) are not supported "
			 "in this version; pass a path in a file system",
			 (int)(n < 16 ? n : 16), path);
}

void pen__err_where(struct pen_err *err, const char *where)
{
	if (err && !err->where[0])
		set_where(err, where);
}
