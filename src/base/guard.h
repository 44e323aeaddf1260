/*
 * A file that shrinks while it is mapped raises SIGBUS at the first access to
 * the lost pages. pen__guard_run() turns that into a return value: fn must hold
 * nothing that needs cleanup while it accesses mapped memory.
 */
#ifndef PEN_BASE_GUARD_H
#define PEN_BASE_GUARD_H

#include <stdbool.h>
#include <stddef.h>

/* Installs the handler once per process, chained to the previous one. */
void pen__guard_install(void);
/* Returns fn's result; *lost is set if mapped memory was lost inside it. */
int pen__guard_run(int (*fn)(void *), void *arg, bool *lost);
/* memcpy() from mapped memory; false: some of it is gone. */
bool pen__guard_copy(void *to, const void *from, size_t n);

#endif
