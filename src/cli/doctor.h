/*
 * What `penstock doctor` looks at. A check adds findings; it never fails: what
 * cannot be known is said to be unknown.
 */
#ifndef PEN_CLI_DOCTOR_H
#define PEN_CLI_DOCTOR_H

#include "base/text.h"

enum verdict {
	DOCTOR_FINE,   /* as it should be */
	DOCTOR_NOTE,   /* worth knowing; nothing to do unless it applies */
	DOCTOR_BETTER, /* works, and would be better changed */
	DOCTOR_BROKEN, /* something that is needed does not work */
};

struct finding {
	const char *part; /* "io_uring": what the line is about */
	enum verdict verdict;
	char *is;     /* how it is */
	char *why;    /* what that means for loading data; may be NULL */
	char *change; /* what to do about it, or NULL */
};

struct doctor {
	struct finding *finding;
	size_t n, cap;
	bool failed; /* out of memory */
};

#define DOCTOR_FORMAT(at) __attribute__((format(printf, at, at + 1)))
/* A finding: how it is. The next two speak of the last one. */
void doctor_say(struct doctor *, const char *part, enum verdict,
		const char *fmt, ...) DOCTOR_FORMAT(4);
void doctor_because(struct doctor *, const char *fmt, ...) DOCTOR_FORMAT(2);
void doctor_advise(struct doctor *, const char *fmt, ...) DOCTOR_FORMAT(2);

/* A small file as text without its line end; false: not there. */
bool doctor_read(const char *path, char *buf, size_t cap);
/* The number a file begins with. */
bool doctor_number(const char *path, uint64_t *out);

void doctor_machine(struct doctor *);  /* CPU, memory, limits, kernel */
void doctor_software(struct doctor *); /* MPI, Python, this build */
void doctor_path(struct doctor *, const char *path); /* where data lies */
/* How much of what lies there is in the page cache. */
void doctor_cached(struct doctor *, const char *path);

#endif
