/*
 * A barrier of the ranks of one host: who waits for the last of them sleeps and
 * is woken, instead of looking again and again. It lies in memory they share,
 * which is zero at first. Every rank comes to every call.
 */
#ifndef PEN_COMM_HOST_BARRIER_H
#define PEN_COMM_HOST_BARRIER_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct pen_host_barrier {
	atomic_uint_fast64_t arrived; /* ranks, over all calls */
	atomic_uint passed;	      /* calls all have come to, modulo 2^32 */
	atomic_uint asleep;
};

/* This rank comes to call number `call`, from 1; the last of n opens it. */
void pen__host_barrier_arrive(struct pen_host_barrier *, uint64_t call,
			      unsigned n);
bool pen__host_barrier_passed(struct pen_host_barrier *,
			      uint64_t call); /* all have come */
/* Sleeps until all have come, at most for a tenth of a second or until a
 * signal; whether all have. Only for who has arrived. */
bool pen__host_barrier_wait(struct pen_host_barrier *, uint64_t call);

#endif
