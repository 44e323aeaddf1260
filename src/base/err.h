/*
 * Errors: filled once, where the cause is known. NULL err is always allowed.
 */
#ifndef PEN_BASE_ERR_H
#define PEN_BASE_ERR_H

#include "penstock.h"

/* Fills err and returns code, so that `return pen__fail(...)` reads well. */
int pen__fail(struct pen_err *err, int code, const char *where, const char *fmt,
	      ...) __attribute__((format(printf, 4, 5)));

/* The same for a failed system call: adds strerror(sys) to the message. */
int pen__fail_sys(struct pen_err *err, int sys, const char *where,
		  const char *fmt, ...) __attribute__((format(printf, 4, 5)));

int pen__fail_nomem(struct pen_err *err, const char *where, size_t bytes);

/* Refuses s3://bucket/x and other URLs, which no store here reads. */
int pen__check_local(const char *path, struct pen_err *err);

/* An empty one, for hot paths: clearing all of it costs more than a row. */
static inline void pen__err_reset(struct pen_err *err)
{
	err->code = err->sys = 0;
	err->where[0] = err->msg[0] = '\0';
}

/* Names the object if the one who failed did not know it. */
void pen__err_where(struct pen_err *err, const char *where);

#endif
