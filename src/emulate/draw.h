/* Emulated time: draws the duration of a step from its distribution, and waits
 * exactly that long while the loader has the CPU. */
#ifndef PEN_EMULATE_DRAW_H
#define PEN_EMULATE_DRAW_H

#include "base/rng.h"
#include "emulate/config.h"

/* One draw in seconds, never negative; a pure function of the stream. */
double pen__time_draw(const struct pen_time_spec *, struct pen_rng *);
double pen__time_mean(const struct pen_time_spec *);

/* Prepares the calling thread for precise waits: no timer slack and, where
 * permitted, real-time priority. */
void pen__wait_init(void);
void pen__wait_fini(void);
/* Waits until the monotonic clock reads ns: sleeps, and polls at the end, where
 * the kernel is not precise enough. */
void pen__wait_until(uint64_t ns);

#endif
