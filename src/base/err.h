/*
 * Errors are filled in once, where the cause is known. A NULL err is allowed
 * everywhere.
 */
#ifndef PEN_BASE_ERR_H
#define PEN_BASE_ERR_H

#include "penstock.h"

/*
 * Every error is of one of these kinds: its number, which people look up as
 * P001 (`penstock explain P001`, docs/errors.md), its name here, and the
 * pen_code that programs act on. A number keeps its meaning for ever; a kind
 * that is no longer used leaves its number unused. tests/check/errors.py holds
 * that docs/errors.md has a section for each.
 */
#define PEN_ERROR_KINDS(X)                                                     \
	/* settings, arguments and calls */                                    \
	X(1, UNKNOWN_NAME, PEN_EINVAL)                                         \
	X(2, BAD_VALUE, PEN_EINVAL)                                            \
	X(3, CONFLICT, PEN_EINVAL)                                             \
	X(4, MISSING_SETTING, PEN_EINVAL)                                      \
	X(5, TOO_LONG, PEN_EINVAL)                                             \
	X(6, EXISTS, PEN_EINVAL)                                               \
	X(7, NOT_IN_BUILD, PEN_ENOTSUP)                                        \
	X(8, BAD_CALL, PEN_EINVAL)                                             \
	X(9, NO_EFFECT, PEN_EINVAL)                                            \
	/* finding samples in the data */                                      \
	X(101, NOT_FOUND, PEN_ENOTFOUND)                                       \
	X(102, NO_KNOWN_FORMAT, PEN_ENOTFOUND)                                 \
	X(103, AMBIGUOUS_DATA, PEN_EINVAL)                                     \
	X(104, NO_SAMPLES, PEN_EDATA)                                          \
	X(105, NO_SUCH_FIELD, PEN_EINVAL)                                      \
	X(106, FILES_DISAGREE, PEN_EDATA)                                      \
	X(107, TOO_FEW_SAMPLES, PEN_EINVAL)                                    \
	X(108, LABELS_DO_NOT_FIT, PEN_EINVAL)                                  \
	X(109, DATA_CHANGED, PEN_ESTALE)                                       \
	X(110, URL, PEN_ENOTSUP)                                               \
	X(111, NO_SUCH_PART, PEN_ENOTFOUND)                                    \
	X(112, WRONG_STATE, PEN_EINVAL)                                        \
	/* damaged data */                                                     \
	X(201, TRUNCATED, PEN_EDATA)                                           \
	X(202, CHECKSUM, PEN_EDATA)                                            \
	X(203, DAMAGED, PEN_EDATA)                                             \
	X(204, NOT_THIS_FORMAT, PEN_EDATA)                                     \
	X(205, BAD_TEXT, PEN_EDATA)                                            \
	X(206, BAD_DATA_VALUE, PEN_EDATA)                                      \
	X(207, CANNOT_DECODE, PEN_EDATA)                                       \
	X(208, BAD_INDEX, PEN_EDATA)                                           \
	X(209, COPY_DIFFERS, PEN_EDATA)                                        \
	/* data that is sound, but not supported */                            \
	X(301, UNSUPPORTED_TYPE, PEN_ENOTSUP)                                  \
	X(302, UNSUPPORTED_FEATURE, PEN_ENOTSUP)                               \
	X(303, OVER_LIMIT, PEN_ENOTSUP)                                        \
	X(304, CANNOT_WRITE_THIS, PEN_EINVAL)                                  \
	X(305, UNSUPPORTED_SYSTEM, PEN_ENOTSUP)                                \
	/* input and output */                                                 \
	X(401, IO, PEN_EIO)                                                    \
	X(402, NO_PERMISSION, PEN_EIO)                                         \
	X(403, DISK_FULL, PEN_EIO)                                             \
	X(404, TOO_MANY_FILES, PEN_EIO)                                        \
	/* memory */                                                           \
	X(501, NO_MEMORY, PEN_ENOMEM)                                          \
	X(502, OVER_BUDGET, PEN_ENOMEM)                                        \
	X(503, DICTIONARY_FULL, PEN_ENOMEM)                                    \
	/* ranks and the dictionary */                                         \
	X(601, RANK_FAILED, PEN_EIO)                                           \
	X(602, LAUNCH, PEN_EINVAL)                                             \
	X(603, NO_TRANSPORT, PEN_ENOTSUP)                                      \
	X(604, NO_DICTIONARY, PEN_ENOTFOUND)                                   \
	X(605, RANKS_DISAGREE, PEN_EINVAL)                                     \
	X(606, BAD_MESSAGE, PEN_EDATA)                                         \
	X(607, FROZEN, PEN_EINVAL)                                             \
	/* workloads and results */                                            \
	X(701, UNKNOWN_WORKLOAD, PEN_EINVAL)                                   \
	X(702, BAD_YAML, PEN_EINVAL)                                           \
	X(703, MISSING_DATA, PEN_ENOTFOUND)                                    \
	X(704, NOT_A_RESULT, PEN_EDATA)                                        \
	X(705, RUN_FAILED, PEN_EIO)                                            \
	/* ends */                                                             \
	X(901, INTERRUPTED, PEN_ECLOSED)                                       \
	X(902, CLOSED, PEN_ECLOSED)

enum pen_error_kind {
#define PEN_ERROR_ENUM(number, name, code) P_##name = (number),
	PEN_ERROR_KINDS(PEN_ERROR_ENUM)
#undef PEN_ERROR_ENUM
};

/* Fills in err and returns the pen_code of the kind, so that
 * `return pen__fail(...)` reads well. kind can also be a pen_code that came
 * from elsewhere: the number is then the most general one of that code. */
int pen__fail(struct pen_err *err, int kind, const char *where, const char *fmt,
	      ...) __attribute__((format(printf, 4, 5)));

/* Sets the code, and returns it. The number is kept if it belongs to that code;
 * otherwise it becomes the most general one, because people look it up. */
int pen__err_code(struct pen_err *err, int code);

/* Another message for an error that was found elsewhere: code, errno and number
 * are those of cause, which may be err itself, or come from another process. */
int pen__fail_as(struct pen_err *err, const struct pen_err *cause,
		 const char *where, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));

/* The same for a failed system call: errno tells the kind, and strerror(sys) is
 * added to the message. */
int pen__fail_sys(struct pen_err *err, int sys, const char *where,
		  const char *fmt, ...) __attribute__((format(printf, 4, 5)));

int pen__fail_nomem(struct pen_err *err, const char *where, size_t bytes);

/* Rejects s3://bucket/x and other URLs, which no store reads. */
int pen__check_local(const char *path, struct pen_err *err);

/* Resets an error on a hot path: clearing all of it costs more than a row. */
static inline void pen__err_reset(struct pen_err *err)
{
	err->code = err->sys = err->number = 0;
	err->where[0] = err->msg[0] = '\0';
}

/* Sets the object, unless the function that failed has set it. */
void pen__err_where(struct pen_err *err, const char *where);

#endif
