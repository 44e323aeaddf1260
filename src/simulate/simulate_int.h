/* Between the files of the simulation. */
#ifndef PEN_SIMULATE_INT_H
#define PEN_SIMULATE_INT_H

#include "simulate/simulate.h"

int pen__sim_check(const struct pen_sim *, struct pen_err *err);

#endif
