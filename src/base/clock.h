/* Monotonic time in nanoseconds, and CPU time of the process. */
#ifndef PEN_BASE_CLOCK_H
#define PEN_BASE_CLOCK_H

#include <stdint.h>
#include <time.h>

static inline uint64_t pen__clock_ns_of(clockid_t id)
{
	struct timespec t;

	clock_gettime(id, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}
static inline uint64_t pen__now_ns(void)
{
	return pen__clock_ns_of(CLOCK_MONOTONIC);
}
static inline uint64_t pen__cpu_ns(void)
{
	return pen__clock_ns_of(CLOCK_PROCESS_CPUTIME_ID);
}

#endif
