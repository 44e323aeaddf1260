/* Threads that work on one thing together. */
#ifndef DOC2VEC_CREW_H
#define DOC2VEC_CREW_H

struct crew;

/* threads: number of threads, including the caller. NULL: out of memory, or a
 * thread could not be started. */
struct crew *crew_new(unsigned threads);
void crew_free(struct crew *); /* NULL ok */
unsigned crew_size(const struct crew *);
/* Calls fn on every thread, numbered from 0, the caller; returns when all are
 * done. */
void crew_run(struct crew *, void (*fn)(void *arg, unsigned thread), void *arg);

#endif
