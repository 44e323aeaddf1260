/*
 * Counters of one thread. The owner adds, any thread reads: relaxed atomics
 * cost nothing in the hot path and avoid data races.
 */
#ifndef PEN_ENGINE_METER_H
#define PEN_ENGINE_METER_H

#include <stdatomic.h>
#include <stdint.h>

struct pen_meter {
	atomic_uint_fast64_t plan_ns, read_ns, unpack_ns, decode_ns, emit_ns,
		preprocess_ns, idle_ns;
	atomic_uint_fast64_t read_bytes, nreads;
	/* Of threads that have ended; the kernel's counters of running threads
	 * are added on top. */
	atomic_uint_fast64_t cpu_ns, queue_ns;
	atomic_int tid; /* 0: not running */
	/* Some reads are timed individually: those of at least half of
	 * timed_len bytes, which is the longest so far. */
	atomic_uint_fast64_t timed_len, ntimed, timed_ns, best_ns;
};

static inline void pen__meter_add(atomic_uint_fast64_t *m, uint64_t v)
{
	/* one writer: no read-modify-write needed */
	atomic_store_explicit(m,
			      atomic_load_explicit(m, memory_order_relaxed) + v,
			      memory_order_relaxed);
}

static inline void pen__meter_set(atomic_uint_fast64_t *m, uint64_t v)
{
	atomic_store_explicit(m, v, memory_order_relaxed);
}

static inline uint64_t pen__meter_get(const atomic_uint_fast64_t *m)
{
	return atomic_load_explicit(m, memory_order_relaxed);
}

#endif
