/* One field of all chosen samples as numbers: for labels= and weights=. */
#ifndef PEN_ENGINE_PLAN_COLUMN_H
#define PEN_ENGINE_PLAN_COLUMN_H

#include "engine/loader.h"

/*
 * One number per chosen sample, NAN where the data has none. From the index if
 * it has them, else by reading all samples once. *out is the caller's to free.
 */
int pen__column_read(const struct pen_dataset *, const struct pen_choice *,
		     const char *name, double **out, struct pen_err *);

#endif
