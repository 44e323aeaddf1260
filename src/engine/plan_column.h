/* One field of all chosen samples as numbers: for labels= and weights=. */
#ifndef PEN_ENGINE_PLAN_COLUMN_H
#define PEN_ENGINE_PLAN_COLUMN_H

#include "engine/loader.h"

/*
 * A number for each chosen sample, NAN where there is none in the data. Out of
 * the index where that has it, else by reading all samples once. *out is the
 * caller's to free. setting: for messages.
 */
int pen__column_read(const struct pen_dataset *, const struct pen_choice *,
		     const char *name, double **out, struct pen_err *);

#endif
