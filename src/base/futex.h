/* Sleeping until a word of this process changes. */
#ifndef PEN_BASE_FUTEX_H
#define PEN_BASE_FUTEX_H

#include <limits.h>
#include <linux/futex.h>
#include <stdatomic.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* Returns when woken, if *w is not `seen`, after ns (0: no limit), or
 * spuriously. */
static inline void pen__futex_wait(_Atomic uint32_t *w, uint32_t seen,
				   uint64_t ns)
{
	const struct timespec most = {
		.tv_sec = (time_t)(ns / 1000000000u),
		.tv_nsec = (long)(ns % 1000000000u),
	};

	syscall(SYS_futex, w, FUTEX_WAIT_PRIVATE, seen, ns ? &most : NULL, NULL,
		0);
}

/* Wakes all sleepers. The word may be gone already: only its address
 * matters. */
static inline void pen__futex_wake(_Atomic uint32_t *w)
{
	syscall(SYS_futex, w, FUTEX_WAKE_PRIVATE, INT_MAX, NULL, NULL, 0);
}

#endif
