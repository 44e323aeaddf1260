/*
 * A futex shared by processes, independent of MPI. Polling with naps costs a
 * timer each time, tens of microseconds of CPU on a virtual machine, and reacts
 * half a nap late; a sleeper costs nothing and is woken immediately.
 *
 * No rank passes a call before all have arrived, so `passed` is never ahead of
 * a waiting rank. Dead ranks are not detected here; the sleep is bounded so
 * that the caller can check for them.
 */
#include "comm/host_barrier.h"

#include <limits.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

bool pen__host_barrier_passed(struct pen_host_barrier *b, uint64_t call)
{
	return atomic_load(&b->passed) == (unsigned)call;
}

void pen__host_barrier_arrive(struct pen_host_barrier *b, uint64_t call,
			      unsigned n)
{
	if (atomic_fetch_add(&b->arrived, 1) + 1 != call * n)
		return;
	/* either a sleeper sees this, or we see that it sleeps */
	atomic_store(&b->passed, (unsigned)call);
	if (atomic_load(&b->asleep))
		syscall(SYS_futex, &b->passed, FUTEX_WAKE, INT_MAX, NULL, NULL,
			0);
}

bool pen__host_barrier_wait(struct pen_host_barrier *b, uint64_t call)
{
	const struct timespec most = { .tv_nsec = 100000000 };
	unsigned seen;

	atomic_fetch_add(&b->asleep, 1);
	seen = atomic_load(&b->passed);
	if (seen != (unsigned)call)
		syscall(SYS_futex, &b->passed, FUTEX_WAIT, seen, &most, NULL,
			0);
	atomic_fetch_sub(&b->asleep, 1);
	return pen__host_barrier_passed(b, call);
}
