/*
 * Checks of `penstock doctor`. A check adds findings and never fails; what
 * cannot be determined is reported as unknown.
 */
#ifndef PEN_CLI_DOCTOR_H
#define PEN_CLI_DOCTOR_H

#include "base/text.h"

enum verdict {
	DOCTOR_FINE,   /* fine */
	DOCTOR_NOTE,   /* worth knowing; act only if it applies */
	DOCTOR_BETTER, /* works, but could be improved */
	DOCTOR_BROKEN, /* something required does not work */
};

struct finding {
	const char *part; /* the subject, such as "io_uring" */
	enum verdict verdict;
	char *is;     /* the state */
	char *why;    /* the consequence for loading; may be NULL */
	char *change; /* the advice, or NULL */
};

struct doctor {
	struct finding *finding;
	size_t n, cap;
	bool failed; /* out of memory */
};

#define DOCTOR_FORMAT(at) __attribute__((format(printf, at, at + 1)))
/* Adds a finding; the other two functions extend the last one. */
void doctor_say(struct doctor *, const char *part, enum verdict,
		const char *fmt, ...) DOCTOR_FORMAT(4);
void doctor_because(struct doctor *, const char *fmt, ...) DOCTOR_FORMAT(2);
void doctor_advise(struct doctor *, const char *fmt, ...) DOCTOR_FORMAT(2);

/* The first line of a small file; false: cannot be read. */
bool doctor_read(const char *path, char *buf, size_t cap);
/* The number at the start of a file. */
bool doctor_number(const char *path, uint64_t *out);

void doctor_machine(struct doctor *);  /* CPU, memory, limits, kernel */
void doctor_software(struct doctor *); /* MPI, Python, this build */
void doctor_path(struct doctor *,
		 const char *path); /* where the data is stored */
/* Adds how much of the data is in the page cache. */
void doctor_cached(struct doctor *, const char *path);

#endif
