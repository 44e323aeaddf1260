/*
 * A barrier for the ranks of one host: waiting ranks sleep and are woken by the
 * last one, instead of polling. It is stored in shared memory, initially zero.
 * Every rank takes part in every call.
 */
#ifndef PEN_COMM_HOST_BARRIER_H
#define PEN_COMM_HOST_BARRIER_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct pen_host_barrier {
	atomic_uint_fast64_t arrived; /* arrivals, over all calls */
	atomic_uint passed; /* last call that all have reached, modulo 2^32 */
	atomic_uint asleep;
};

/* This rank arrives at call number `call`, from 1; the last of n opens it. */
void pen__host_barrier_arrive(struct pen_host_barrier *, uint64_t call,
			      unsigned n);
bool pen__host_barrier_passed(struct pen_host_barrier *,
			      uint64_t call); /* all have arrived */
/* Sleeps until all have arrived, at most a tenth of a second or until a signal;
 * returns whether all have. Only after this rank has arrived. */
bool pen__host_barrier_wait(struct pen_host_barrier *, uint64_t call);

#endif
