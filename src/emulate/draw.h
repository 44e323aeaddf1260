/* Emulated time: what a step takes, drawn from its distribution, and waiting
 * for exactly that long while the CPU is left to the loader. */
#ifndef PEN_EMULATE_DRAW_H
#define PEN_EMULATE_DRAW_H

#include "base/rng.h"
#include "emulate/config.h"

/* One draw in seconds, never below zero: a pure function of the stream. */
double pen__time_draw(const struct pen_time_spec *, struct pen_rng *);
double pen__time_mean(const struct pen_time_spec *);

/* For the thread that waits: lets the kernel wake it without slack, and before
 * others where that is permitted. */
void pen__wait_init(void);
void pen__wait_fini(void);
/* Until the monotonic clock reads ns: sleeps, and spins only the last moment,
 * which the kernel cannot hit. */
void pen__wait_until(uint64_t ns);

#endif
